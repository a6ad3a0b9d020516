"""The demo that swings up a pole."""

import re

import pytest

from tests.demos.common import is_png, run

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

pytestmark = pytest.mark.slow


def test_collocation_swings_up_the_pole_and_draws_it(tmp_path):
    result = run("collocation.py", "--output", tmp_path, "--intervals", 30)
    assert result.returncode == 0, result.stderr
    assert "155 variables, 128 constraints, 668 slopes" in result.stdout
    effort, defect = map(float, re.search(r"Effort: ([\d.]+); largest defect (.*)", result.stdout).groups())
    assert effort == pytest.approx(58.8, abs=2.0)  # Kelly (2017) has the same problem
    assert defect < 1e-8
    pictures = sorted(tmp_path.iterdir())
    assert [path.name for path in pictures] == ["sparsity.png", "swing.png"]
    assert all(is_png(path) for path in pictures)
