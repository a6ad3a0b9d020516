"""What installing and importing the package brings, and what it does not."""

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import micrograd as mg
from tests.folders import ROOT


def imported(statement):
    """The top-level modules that a statement loads beyond those of a bare interpreter."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in run.stdout.split()}


def test_import_loads_the_standard_library_only():
    assert imported("import micrograd") <= set(sys.stdlib_module_names) | {"micrograd"}


def test_the_core_has_no_dependencies():
    required = metadata.requires("micrograd") or []
    assert [line for line in required if "extra ==" not in line] == []


def test_the_version_is_that_of_the_distribution():
    assert mg.__version__ == metadata.version("micrograd")


def test_a_checkout_that_is_not_installed_has_no_version(monkeypatch):
    def none(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", none)
    assert mg.__version__ == "not installed"


def test_the_top_level_is_that_of_the_design():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    names = {file.partition("/")[0] for file in files if file and not file.startswith(".")}
    assert names == {"pyproject.toml", "README.md", "LICENSE", "micrograd", "tests", "demos", "docs"}
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


@pytest.mark.parametrize("name", ["SECURITY.md", "CONTRIBUTING.md"])
def test_platforms_find_their_files_and_links_in_them_lead_somewhere(name):
    page = ROOT / ".github" / name
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_package_is_marked_as_typed():
    assert (Path(mg.__file__).parent / "py.typed").exists()


def test_exercises_are_loaded_when_they_are_asked_for():
    """Asked of the function itself: what a package has loaded once, it has as an attribute."""
    assert mg.__getattr__("learn") is mg.learn
    with pytest.raises(AttributeError, match="'micrograd' has no attribute 'lern'"):
        _ = mg.lern


def test_strategies_are_loaded_when_they_are_asked_for():
    assert mg.testing.__getattr__("strategies") is mg.testing.strategies
    with pytest.raises(AttributeError, match=r"'micrograd\.testing' has no attribute 'strategy'"):
        _ = mg.testing.strategy


@pytest.mark.slow
def test_no_module_takes_the_name_of_what_its_package_offers():
    """Whoever imports it, if only inside of a function, would find it under that name from then on."""
    code = """
import micrograd, micrograd.compiler, micrograd.testing
from tests.modules import load_all
packages = micrograd, micrograd.compiler, micrograd.testing
offered = [(package, *item) for package in packages for item in vars(package).items()]
load_all()
print([name for package, name, thing in offered if vars(package)[name] is not thing])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout == "[]\n"


def test_importing_by_micrograds_module_names():
    from micrograd.engine import Value
    from micrograd.nn import MLP, Layer, Neuron

    assert Value is mg.Value
    assert {MLP, Layer, Neuron} == {mg.nn.MLP, mg.nn.Layer, mg.nn.Neuron}
