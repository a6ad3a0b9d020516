"""The demo that swings up a pole."""

import re
from pathlib import Path

import pytest

from tests.demos.common import is_png, run

pytest.importorskip("matplotlib")
pytest.importorskip("scipy")

STAND_INS = Path(__file__).parents[1] / "stand_ins"
pytestmark = pytest.mark.slow


# SciPy solves it where cyipopt is not installed; what stands in for cyipopt calls the program as that does.
@pytest.mark.parametrize(("path", "solver"), [(None, "(IPOPT|SciPy)"), (STAND_INS, "IPOPT")])
def test_collocation_swings_up_the_pole_and_draws_it(tmp_path, path, solver):
    result = run("collocation.py", "--output", tmp_path, "--intervals", 40, path=path)
    assert result.returncode == 0, result.stderr
    assert re.search(f"Solved by {solver}", result.stdout)
    assert "205 variables, 168 constraints, 888 slopes" in result.stdout
    effort, defect = map(float, re.search(r"Effort: ([\d.]+); largest defect (.*)", result.stdout).groups())
    assert effort == pytest.approx(58.8, abs=2.0)  # Kelly (2017) has the same problem
    assert defect < 1e-8
    pictures = sorted(tmp_path.iterdir())
    assert [path.name for path in pictures] == ["sparsity.png", "swing.png"]
    assert all(is_png(path) for path in pictures)
