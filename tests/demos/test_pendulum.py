"""The demo that finds a pendulum's length and damping."""

import re

import pytest

from tests.demos.common import is_png, run

pytest.importorskip("matplotlib")

pytestmark = pytest.mark.slow

FOUND = re.compile(r"^(?:Length|Damping): .* found ([-\d.]+),", re.MULTILINE)


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    """What a small run of pendulum.py prints, and its report."""
    report = tmp_path_factory.mktemp("pendulum")
    result = run("pendulum.py", "--output", report, "--steps", 60, "--quiet")
    assert result.returncode == 0, result.stderr
    return result, report


def test_pendulum_finds_the_length_and_the_damping_and_draws_them(pendulum):
    result, report = pendulum
    length, damping = map(float, FOUND.findall(result.stdout))
    assert length == pytest.approx(1.0, abs=0.02)
    assert damping == pytest.approx(0.25, abs=0.02)
    pictures = sorted(report.iterdir())
    assert [path.name for path in pictures] == ["path.png", "swings.png"]
    assert all(is_png(path) for path in pictures)


def test_pendulum_step_by_step_comes_to_the_same(tmp_path):
    options = ("--steps", 50, "--epochs", 2, "--quiet")
    runs = [run("pendulum.py", "--output", tmp_path, *options, way) for way in ("--compile", "--no-compile")]
    assert FOUND.findall(runs[0].stdout) == FOUND.findall(runs[1].stdout)
    assert len(FOUND.findall(runs[0].stdout)) == 2
