"""The demo that tells two moons apart."""

import re

import pytest

from tests.demos.common import is_png, run

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def moons(tmp_path_factory):
    """What a small run of moons.py prints, and its report."""
    report = tmp_path_factory.mktemp("moons")
    result = run("moons.py", "--output", report, "--epochs", 3, "--quiet")
    assert result.returncode == 0, result.stderr
    return result, report


def test_moons_tells_them_apart_and_draws_the_boundary(moons):
    result, report = moons
    assert float(re.search(r"^Accuracy: ([\d.]+)%", result.stdout, re.MULTILINE)[1]) > 75
    assert [path.name for path in report.iterdir()] == ["boundary.png"]
    assert is_png(report / "boundary.png")


def test_moons_step_by_step_comes_to_the_same(moons, tmp_path):
    result, _ = moons
    eager = run("moons.py", "--output", tmp_path, "--epochs", 3, "--quiet", "--no-compile")
    accuracies = [re.search(r"^Accuracy: .*$", r.stdout, re.MULTILINE)[0] for r in (result, eager)]
    assert accuracies[0] == accuracies[1]
