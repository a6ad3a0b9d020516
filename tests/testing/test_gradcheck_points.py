"""Points where gradcheck comes to the end of what differences can tell, and how far off it may take them to be.

Each was found by planting mistakes in the differences, among thousands of random points, as one where a mistake shows:
the right derivative is accused, or called something else than it was, or the differences claim to know less. There are
only operations here that every machine rounds in the same way.
"""

import math
import random
import struct

import pytest

from micrograd.testing import GradientError, gradcheck
from tests.rounding import brain, half, single

pytestmark = pytest.mark.slow(together=True)


def cut(x):
    """A bfloat16 as machines make it that cut a float of 32 bits in half."""
    (bits,) = struct.unpack("I", struct.pack("f", x))
    return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]


def far(x, centre):
    """A float of 32 bits, whose point is rounded to 32 bits before."""
    apart = single(x) - centre
    return single(apart / (1 + apart * apart))


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
    (lambda x: far(x, -81.0), -81.1236, (0.9553142558970387,), "right", 0.000555),
    (
        lambda x: x / (1 + x * x) + 0.0449 * abs(x - 0.0312),
        0.0312,
        (0.9521844114783163, 1.0419844114783163),
        "kink",
        0.0459,
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
    # In coarse steps
    (lambda x: half(1 / x), 1.51, (-0.4385772553835358,), "unclear", 0.00447),
    (lambda x: half(x), 0.4765625, (1.0,), "unclear", 0.00175),
    (lambda x: half(x) - 1, 2.22, (1.0,), "unclear", 0.00391),
    (lambda x: half(x), -2.82, (1.0,), "unclear", 0.00439),
    (lambda x: half(x), 0.0366, (1.0,), "unclear", 0.0016),
    (lambda x: half(x * x * x), 0.03515625, (0.0037078857421875,), "unclear", 1.05e-05),
    (lambda x: half(x * x * x), 11.7, (410.67,), "unclear", 1.03),
    (lambda x: half(1 / half(1 + half(1 / half(x * x)))), 0.125, (0.24236686390532544,), "unclear", 0.000859),
    (lambda x: half(half(x) - x * x * x / 6), 0.615, (0.8108875,), "unclear", 0.0027),
    (lambda x: 1e6 * half(x * x), -0.013671875, (-27343.75,), "unclear", 27400.0),
    (lambda x: brain(brain(x) - x * x * x / 6), 1.5703125, (-0.232940673828125,), "unclear", 0.138),
    (lambda x: brain(1 / brain(1 + brain(1 / brain(x * x)))), 14.8, (0.00061134791938971,), "unclear", 0.0061),
    (lambda x: brain(x), 96908.2578125, (1.0,), "unclear", 0.0314),
    (lambda x: single(x), 267 + 2.0**-16, (1.0,), "unclear", 1.01),
    (lambda x: round(10 * x) / 10, 0.163, (1.0,), "unclear", 1.42),
    (lambda x: half(half(x) - x * x * x / 6), -2.25, (-1.53125,), "unclear", 1.01),
    (lambda x: brain(x), 1.57, (1.0,), "unclear", 0.0314),
    (lambda x: cut(x), 0.0988, (1.0,), "unclear", 0.00749),
    (lambda x: cut(1 / (1 + 9 * cut(x) * cut(x))), 0.001953125, (-0.0351538361361975,), "unclear", 0.1),
    (lambda x: cut(1 / (1 + 9 * cut(x) * cut(x))), -0.001953125, (0.0351538361361975,), "unclear", 0.1),
    (lambda x: round(4 * x * x) / 4, 0.663, (1.326,), "unclear", 2.71),
    (lambda x: 100 + round(1000 / x) / 1000, 80.7, (-0.00015355109950264796,), "unclear", 0.000315),
]


@pytest.mark.parametrize(("f", "x", "slopes", "verdict", "limit"), POINTS)
@pytest.mark.unmeasured
def test_a_right_derivative_passes_and_the_differences_are_sharp(f, x, slopes, verdict, limit):
    for slope in {*slopes, sum(slopes) / len(slopes)}:
        (row,) = gradcheck(f, [x], gradient=lambda x, slope=slope: slope).rows
        assert row.verdict == verdict
        (row,) = gradcheck(f, [x], gradient=lambda x, slope=slope: slope, tolerance=0).rows
        assert row.allowed <= limit


@pytest.mark.parametrize(("f", "x", "slopes", "verdict", "limit"), [point for point in POINTS if point[-1] < math.inf])
@pytest.mark.unmeasured
def test_a_derivative_farther_off_than_that_is_caught(f, x, slopes, verdict, limit):
    for wrong in (max(slopes) + 2.1 * limit, min(slopes) - 2.1 * limit):
        with pytest.raises(GradientError):
            gradcheck(f, [x], gradient=lambda x, wrong=wrong: wrong, tolerance=0)


def test_a_slope_of_0_is_not_accused_where_f_may_really_be_flat():
    for steps in (64, 1000):
        for slope in (0.0, steps):
            (row,) = gradcheck(lambda x, steps=steps: math.floor(steps * x), [0.7], gradient=lambda x, s=slope: s).rows
            assert row.verdict == "unclear"


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: 100 + math.floor(x), 0.328125),
        (lambda x: 0.7 * x / x, 2.9),  # whose last digit is another one in places
        (lambda x: 1.0 if x < 2 else math.inf, 1.3),
    ],
)
def test_a_function_that_is_flat_has_a_slope_of_0(f, x):
    (row,) = gradcheck(f, [x], gradient=lambda x: 0.0).rows
    assert (row.numeric, row.verdict) == (0.0, "right")
    with pytest.raises(GradientError):
        gradcheck(f, [x], gradient=lambda x: 1e-6)


@pytest.mark.parametrize(
    ("f", "slope", "size", "x", "height", "verdict"),
    [
        (lambda x: x * x * x, lambda x: 3 * x * x, 1e-6, 1.05, 6.3e-5, "jump"),
        (lambda x: x * x * x, lambda x: 3 * x * x, 1e-3, 0.847, 0.029, "jump"),
        (lambda x: 1 / x, lambda x: -1 / x**2, 1e-5, 3.1, 0.00021, "jump"),
        (lambda x: x * x * x, lambda x: 3 * x * x, 1e-6, 8.19, 0.0, "right"),
        (lambda x: 1 / x, lambda x: -1 / x**2, 1e-6, 9.09, 0.0, "right"),
    ],
)
def test_a_jump_a_few_dozen_times_as_high_as_noise_is_seen_and_noise_is_none(f, slope, size, x, height, verdict):
    """The noise looks random and is the same whenever x is."""

    def jumping(at):
        noise = random.Random(repr(at)).uniform(-1, 1)
        return f(at) * (1 + size * noise) + height * (at >= x)

    (row,) = gradcheck(jumping, [x], gradient=slope).rows
    assert row.verdict == verdict


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_point_whose_steps_have_no_square():
    """The square of a step of 1e-309 is 0."""
    assert gradcheck(lambda x, y, z: x * y + z * z, [9.549995429965697e-17, 2.225073858507203e-309, 0.0])
