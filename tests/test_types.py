"""What editors and type checkers see of the library."""

import importlib.util
import subprocess
import sys

import pytest

import micrograd as mg
from tests.folders import ROOT
from tests.typed import user_programs


def test_programs_with_types_run():
    user_programs.run()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_programs_with_types_are_sound():
    command = [sys.executable, "-m", "mypy", "--strict", "tests/typed/user_programs.py"]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_dir_names_what_is_public():
    names = dir(mg)
    assert {"Value", "tanh", "nn", "compile", "learn", "estimators"} <= set(names)
    assert not {"engine", "compiler", "_support", "TYPE_CHECKING", "draw"} & set(names)
    assert all(hasattr(mg, name) for name in mg.__all__)


@pytest.mark.parametrize("module", [mg.nn, mg.losses, mg.optim, mg.testing])
def test_dir_of_a_module_names_what_it_defines(module):
    for name in dir(module):
        assert getattr(getattr(module, name), "__module__", module.__name__).startswith(module.__name__), name
