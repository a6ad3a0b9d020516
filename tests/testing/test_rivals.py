"""Differences of shorter steps that contradict the best estimate: its error reaches to them, and to theirs."""

import pytest

from micrograd.testing.differences import Estimate, _with_rivals

BEST = Estimate(1.0, 0.125, 1.0)


@pytest.mark.parametrize(
    ("rivals", "reach"),
    [
        ([Estimate(3.0, 0.5, 0.01)], 2.5),
        ([Estimate(3.0, 0.5, 0.01), Estimate(2.0, 0.25, 0.001)], 2.5),
        ([Estimate(2.0, 0.25, 0.01), Estimate(-3.0, 0.5, 0.001)], 4.5),
        ([Estimate(1.5, 0.25, 0.01)], 0.75),
        ([Estimate(1.25, 0.125, 0.01)], 0.0),  # no further apart than both errors
        ([Estimate(1.375, 0.3125, 0.01)], 0.0),
        ([Estimate(3.0, 0.5, 4.0)], 0.0),  # of longer steps
        ([Estimate(-0.01, 0.2, 0.01)], 0.0),  # not known itself
        ([Estimate(0.0, 0.0, 0.01)], 0.0),  # may be a standstill
        ([], 0.0),
    ],
)
def test_the_error_reaches_to_the_furthest_that_shorter_steps_may_be(rivals, reach):
    assert _with_rivals(BEST, [BEST, *rivals]) == BEST._replace(error=0.125 + reach)
