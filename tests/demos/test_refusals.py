"""What the demos refuse: options that make no sense, and to run without what they need."""

import subprocess
import sys

import pytest

from tests.demos.common import run
from tests.folders import DEMOS, ROOT

pytest.importorskip("matplotlib")
pytest.importorskip("graphviz")

pytestmark = pytest.mark.slow


def assert_refused(result, *words):
    """The demo ended with a message that has these words, and with no traceback."""
    assert result.returncode != 0
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("digits.py", "--epochs", "0"), "--epochs: 0 is below 1"),
        (("digits.py", "--hidden", "many"), "--hidden: 'many' is not a whole number"),
        (("moons.py", "--output", "file"), "--output: cannot make the folder"),
        (("moons.py", "--nonsense"), "unrecognized arguments: --nonsense"),
        (("newton.py", "--steps", "0"), "0 is below 1"),
        (("pendulum.py", "--steps", "49"), "--steps: 49 is below 50"),
        (("newton.py", "--output", "file/report"), "cannot make the folder file/report"),
        (("arrays.py", "--depth", "3"), "unrecognized arguments"),
        (("names.py", "--temperature", "0"), "--temperature must be from 0.01 to 100"),
        (("names.py", "--temperature", "nan"), "--temperature must be from 0.01 to 100"),
        (("names.py", "--steps", "many"), "--steps: 'many' is not a whole number"),
        (("mnist.py", "--images", "file"), "--images and --labels go together"),
        (("mnist.py", "--samples", "1797"), "--samples must leave some to be tested on"),
    ],
)
def test_bad_options_are_refused(tmp_path, refusal, words, message):
    (tmp_path / "file").touch()
    code, error = refusal(*words)
    assert code == 2
    assert message in error
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]  # and no empty folder


@pytest.mark.parametrize("demo", ["digits.py", "moons.py", "newton.py"])
def test_missing_matplotlib_is_named_at_once(demo, tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ImportError('no matplotlib')")
    result = run(demo, folder=tmp_path, path=tmp_path)
    assert_refused(result, "This demo needs matplotlib: pip install matplotlib")
    assert result.stdout == ""
    assert not list(tmp_path.glob("*-report"))


@pytest.mark.parametrize("demo", ["arrays.py", "mnist.py", "newton.py", "pendulum.py"])
def test_missing_numpy_is_named_at_once(demo, tmp_path):
    (tmp_path / "numpy.py").write_text("raise ImportError('no numpy')")
    result = run(demo, folder=tmp_path, path=tmp_path)
    assert_refused(result, "This demo needs numpy", "pip install numpy")
    assert result.stdout == ""


@pytest.mark.parametrize("demo", sorted(path.name for path in DEMOS.glob("*.py") if path.name != "common.py"))
def test_help_needs_nothing(demo, tmp_path):
    """With the standard library only, and the same default for all that train."""
    command = [sys.executable, "-S", str(DEMOS / demo), "--help"]
    environment = {"PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert f"usage: {demo}" in result.stdout
    default = "(default: compiled where numpy and llvmlite are installed, which they are not here)"
    assert ("--compile" in result.stdout) == (" ".join(result.stdout.split()).count(default) == 1)
    assert list(tmp_path.iterdir()) == []


def test_missing_graphviz_is_named_at_once(tmp_path):
    for name in ("graphviz", "pygraphviz"):
        (tmp_path / f"{name}.py").write_text(f"raise ImportError('no {name}')")
    result = run("digits.py", "--output", tmp_path / "report", path=tmp_path)
    assert_refused(result, "Graphviz", "pip install graphviz pygraphviz")
    assert result.stdout == ""
