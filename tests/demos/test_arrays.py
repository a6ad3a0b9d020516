"""The demo of arrays of Values."""

import pytest

from tests.demos.common import printed

pytestmark = pytest.mark.slow


def test_arrays_gives_the_gradients_of_the_article(tmp_path):
    out = printed(tmp_path, "arrays.py")
    assert "gradient\n[[-2. -1.  0.  1.]\n [-2. -1.  0.  1.]]" in out
    assert "gradient\n[[-4.]\n [-2.]\n [ 0.]\n [ 2.]]" in out
    assert "n3 = sum of n2 = 12.0" in out
    picture = (tmp_path / "arrays.svg").read_text(encoding="utf-8")
    assert "<svg" in picture
    assert "l2[3, 0]" in picture
