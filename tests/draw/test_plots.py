"""Plots in pages: in the page's colours, with axes and means that say what they seem to."""

import pandas as pd
import pytest

from micrograd.draw import plots

pytestmark = pytest.mark.slow

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(("least", "scale"), [(0.5, "linear"), (0.001, "log")])
def test_one_batch_far_off_does_not_stretch_the_axis_and_the_mean_is_one(least, scale):
    drawn = []

    def draw(figure):
        plots.draw_losses(figure, pd.Series([1.0] * 99 + [1e6], range(1, 101)), pd.Series([1.1, least], [0, 100]))
        drawn.append(figure)

    picture = plots.plot(draw)
    (axes,) = drawn[0].axes
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert lines["running mean of the batches"][-2:].tolist() == [1.0, (4 + 1e6) / 5]
    assert lines["of the test rows"].tolist() == [1.1, least]
    assert axes.get_ylim() == pytest.approx((0.9 * least, 1.1 * 1.1))
    assert axes.get_yscale() == scale
    assert "mathdefault" not in picture
    assert plots.INK not in picture
    assert "currentColor" in picture
