"""Points where gradcheck comes to the end of what differences can tell, and how far off it may take them to be.

Each was found by planting mistakes in the differences, among thousands of random points, as one where a mistake shows:
the right derivative is accused, or called something else than it was, or the differences claim to know less. There are
only operations here that every machine rounds in the same way.
"""

from __future__ import annotations

import math
import struct

import pytest

from micrograd.testing import GradientError, gradcheck


def single(x):
    """The nearest number of 32 bits."""
    return struct.unpack("f", struct.pack("f", x))[0]


# A function, a point, its slope there or those of its two sides, the verdict, and how far off at most the differences
# may be taken to be.
POINTS = [
    (lambda x: (1 / x + 4.8e7) - 4.8e7, 941.0, (-1.129329708937854e-06,), "unclear", 1.19e-06),
    (lambda x: (x / (1 + x * x) + 150.0) - 150.0, -3.33e-07, (0.9999999999996675,), "right", 7.17e-11),
    (lambda x: 0.00049 * (1 / math.sqrt(1 + x * x)), 7.32e-06, (-3.5867999997117156e-09,), "right", 3.25e-17),
    (lambda x: 0.47 * (x * x * x * x - x), 0.999999, (1.4099943600056397,), "right", 6.19e-15),
    (lambda x: 1 / (1 + x * x), 0.999999, (-0.5000005000000001,), "right", 2.94e-13),
    (lambda x: 1 / x, 4.88, (-0.04199140016124698,), "right", 8.53e-14),
    (lambda x: 28.0 * x, 572.0, (28.0,), "right", 1.4e-13),
    (lambda x: 3.8e6 + 1 / (1 + 64 * x * x), 12000000.0, (-1.808449074074074e-23,), "unclear", 1.39e-15),
    (lambda x: single((x * x - 1.0) / (x * x + 1.0)), 0.000154, (0.0006159999707818889,), "unclear", 1.82e-05),
    (lambda x: single(x * x * x), 2.49, (18.600300000000004,), "right", 1.34e-05),
    (lambda x: x * abs(x), 0.826, (1.652,), "right", 4.72e-14),
    (lambda x: x * x, 0.0, (0.0,), "right", 3.39e-27),
    (lambda x: x * x * x, 0.169, (0.08568300000000001,), "right", 7.79e-17),
    (lambda x: x * x * x, 0.0, (0.0,), "right", 4.94e-38),
    (lambda x: x / (1 + x * x), -1.78e-05, (0.9999999990494798,), "right", 2.8e-16),
    (lambda x: x / math.sqrt(1.8 * 1.8 + x * x), 73.6, (8.119364573249939e-06,), "right", 2.7e-15),
    (lambda x: 0.0043 * single(x), 2.62, (0.0043,), "right", 1.96e-09),
    (lambda x: single(x), 4.43, (1.0,), "right", 4.73e-06),
    (lambda x: 1 / single(x), 6.99e-10, (-2.0466597489567155e18,), "right", 1.07e13),
    (
        lambda x: x * math.sqrt(1 + x * x) + 9.4e-05 * abs(x - 46.9),
        46.9,
        (93.7999084222785, 93.80009642227851),
        "kink",
        9.87e-05,
    ),
    (lambda x: x * x + 0.000305 * abs(x - 7.2), 7.2, (14.399695, 14.400305000000001), "kink", 0.000392),
    (lambda x: 660.0 * x - 5.55e-05 * abs(x + 430.00473), -430.0, (659.9999445,), "kink", 5.94e-05),
    (lambda x: x * x * abs(x) - 3.51e-06 * abs(x + 8.5900067002), -8.59, (-221.36430350999998,), "kink", 3.69e-06),
    (lambda x: 1 / x + (2.5e-05 if x >= 0.18 else 0.0), 0.18, (-30.8641975308642,), "jump", math.inf),
    (lambda x: x * x + (-4.11 if x >= 255000.0 else 0.0), 255000.0, (510000.0,), "right", 0.000453),
    (lambda x: 0.18 * x + (0.000186 if x >= 809005.9057 else 0.0), 809000.0, (0.18,), "jump", math.inf),
    (lambda x: 1 / x + (0.255 if x >= 4.62000000021252 else 0.0), 4.62, (-0.04685069620134555,), "jump", math.inf),
    (
        lambda x: math.sqrt(1 + x * x) + (-0.076 if x >= 0.49400014 else 0.0),
        0.494,
        (0.44290488957932805,),
        "right",
        1.18e-07,
    ),
    (lambda x: x * x * abs(x) + (0.00108 if x >= 4.629999991666 else 0.0), 4.63, (64.3107,), "right", 0.000181),
    (lambda x: x * math.sqrt(x) - 0.103 * abs(x - 7.740000015480001), 7.74, (4.276128322973067,), "kink", 0.111),
]


@pytest.mark.parametrize(("f", "x", "slopes", "verdict", "limit"), POINTS)
def test_a_right_derivative_passes_and_the_differences_are_sharp(f, x, slopes, verdict, limit):
    for slope in {*slopes, sum(slopes) / len(slopes)}:
        (row,) = gradcheck(f, [x], gradient=lambda x, slope=slope: slope).rows
        assert row.verdict == verdict
        (row,) = gradcheck(f, [x], gradient=lambda x, slope=slope: slope, tolerance=0).rows
        assert row.allowed <= limit


@pytest.mark.parametrize(("f", "x", "slopes", "verdict", "limit"), [point for point in POINTS if point[-1] < math.inf])
def test_a_derivative_farther_off_than_that_is_caught(f, x, slopes, verdict, limit):
    for wrong in (max(slopes) + 2.1 * limit, min(slopes) - 2.1 * limit):
        with pytest.raises(GradientError):
            gradcheck(f, [x], gradient=lambda x, wrong=wrong: wrong, tolerance=0)
