"""The demo of Newton's method."""

from pathlib import Path

import pytest

from tests.demos.common import is_png, printed

pytestmark = pytest.mark.slow


def test_newton_gets_there_in_far_fewer_steps(tmp_path):
    out = printed(tmp_path, "newton.py", "--steps", 300, "--output", Path("deep", "er"))
    assert "[-215.6  -88. ]\n[[1330.  480.]\n [ 480.  200.]]" in out
    assert "Newton's method: 22 steps" in out
    assert "Gradient descent: 300 steps" in out
    assert "    22   1.00000   1.00000" in out
    pictures = sorted((tmp_path / "deep" / "er").iterdir())
    assert [picture.name for picture in pictures] == ["convergence.png", "paths.png"]
    assert all(is_png(picture) for picture in pictures)
