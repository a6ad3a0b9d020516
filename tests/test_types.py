"""What editors and type checkers see of the library."""

import importlib.util
import pickle
import subprocess
import sys

import pytest

import micrograd as mg
from micrograd import Value
from tests import function_types
from tests.folders import ROOT
from tests.typed import user_programs


def test_programs_with_types_run():
    user_programs.run()


def test_the_types_of_the_public_primitives_are_those_of_the_table():
    written = function_types.STUB.read_text(encoding="utf-8")
    assert written == function_types.text(), f"run {function_types.COMMAND}"
    assert "\ntanh: _OfOne\n" in written
    assert "    def arctan2(self, x: Any) -> Any: ...\n" in written


def test_a_public_primitive_is_one_function_and_method():
    for name in mg.engine.functions.__all__:
        function = getattr(mg, name)
        assert getattr(mg.functional, name) is getattr(Value, name) is function
        assert (function.__module__, function.__name__) == ("micrograd.functional", name)
        assert pickle.loads(pickle.dumps(function)) is function
    assert Value.arctan2 is mg.atan2
    assert mg.atan2(x=0.0, y=1.0) == mg.atan2(1.0, 0.0) > 1.5


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_programs_with_types_are_sound():
    command = [sys.executable, "-m", "mypy", "tests/typed/user_programs.py"]
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
