"""What gradcheck is held to: at no scale a right derivative accused, or a wrong one passed.

The functions and their derivatives are plain floats here: nothing of the engine takes part.
"""

import math

import pytest

from micrograd.testing import GradientError, gradcheck

# Each has a scale of its own, s, as a formula in metres has when it is written in nanometres.
FUNCTIONS = {
    "sin": (lambda x, s: math.sin(x / s), lambda x, s: math.cos(x / s) / s),
    "exp of a bounded argument": (
        lambda x, s: math.exp(math.sin(x / s)),
        lambda x, s: math.exp(math.sin(x / s)) * math.cos(x / s) / s,
    ),
    "cube": (lambda x, s: x**3, lambda x, s: 3 * x * x),
    "log": (lambda x, s: math.log(x), lambda x, s: 1 / x),
    "reciprocal": (lambda x, s: 1 / x, lambda x, s: -1 / x**2),
    "root of a shifted square": (
        lambda x, s: math.sqrt(1 + (x / s) ** 2),
        lambda x, s: x / s**2 / math.sqrt(1 + (x / s) ** 2),
    ),
}
POINTS = [(scale, times * scale) for scale in (1e-8, 1e-4, 1.0, 1e4, 1e8) for times in (0.7, 1.0, 2.5)]
RELATIVE_ERRORS = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]


def test_these_are_90_right_derivatives_and_450_wrong_ones():
    assert len(FUNCTIONS) * len(POINTS) == 90
    assert len(FUNCTIONS) * len(POINTS) * len(RELATIVE_ERRORS) == 450


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.unmeasured
def test_a_right_derivative_is_not_accused_and_a_wrong_one_not_passed(name):
    """At 15 points of five scales, with five errors each."""
    f, slope = FUNCTIONS[name]
    for s, x in POINTS:

        def at_scale(x, s=s):
            return f(x, s)

        report = gradcheck(at_scale, [x], gradient=lambda x, s=s: slope(x, s))
        assert [row.verdict for row in report.rows] == ["right"], (s, x)
        for planted in RELATIVE_ERRORS:
            with pytest.raises(GradientError):
                gradcheck(at_scale, [x], gradient=lambda x, s=s, error=planted: slope(x, s) * (1 + error))


def mixed(x, y, z):
    """Several inputs of scales that lie far apart."""
    return math.sin(x * 1e8) * math.log(y) + z * 1e-8 * math.exp(math.cos(x * 1e8))


def gradient_of_mixed(x, y, z):
    c, s, e = math.cos(x * 1e8), math.sin(x * 1e8), math.exp(math.cos(x * 1e8))
    return [1e8 * c * math.log(y) - z * e * s, s / y, 1e-8 * e]


@pytest.mark.parametrize("wrong", [None, 0, 1, 2])
def test_inputs_of_scales_that_lie_far_apart(wrong):
    def gradient(*point):
        return [slope * (1 + 1e-6 * (index == wrong)) for index, slope in enumerate(gradient_of_mixed(*point))]

    point = [1.3e-8, 2.5, 0.7e8]
    if wrong is None:
        assert [row.verdict for row in gradcheck(mixed, point, gradient=gradient).rows] == ["right"] * 3
        return
    with pytest.raises(GradientError) as raised:
        gradcheck(mixed, point, gradient=gradient)
    assert [row.name for row in raised.value.report.rows if row.verdict == "WRONG"] == [str(wrong)]


@pytest.mark.parametrize("scale", [1e-8, 1e-4, 1e4])
def test_plain_functions_whose_last_digits_show_a_millionth(scale):
    """Without a scale of their own; at 1e-8 the slope of sqrt(1 + x * x) drowns in its rounding."""
    for f, slope in [(math.sin, math.cos), (math.expm1, math.exp), (math.atan, lambda x: 1 / (1 + x * x))]:
        for x in (scale, -0.3 * scale):
            if abs(x) > 100 and f is math.expm1:
                continue
            assert gradcheck(f, [x], gradient=slope)
            with pytest.raises(GradientError):
                gradcheck(f, [x], gradient=lambda x, slope=slope: slope(x) * (1 + 1e-6))


def verdict(f, x, slope):
    try:
        (row,) = gradcheck(f, [x], gradient=lambda x: slope).rows
    except GradientError as error:
        (row,) = error.report.rows
    return row.verdict


@pytest.mark.parametrize(
    ("f", "slope"),
    [
        (lambda x: math.exp(math.cos(x)), lambda x: -math.sin(x) * math.exp(math.cos(x))),
        (lambda x: math.sqrt(1 + x * x), lambda x: x / math.sqrt(1 + x * x)),
    ],
)
def test_where_rounding_hides_a_millionth_it_shows_ten_of_them(f, slope):
    for x, millionth in ((1e-8, "right"), (1e-7, "WRONG")):
        assert [verdict(f, x, slope(x) * off) for off in (1, 1 + 1e-6, 1 + 1e-5)] == ["right", millionth, "WRONG"]


def test_a_function_that_has_lost_its_digits_is_taken_at_its_word():
    assert verdict(lambda x: math.log(1 + math.exp(-x)), 40.0, 0.0) == "right"
    assert verdict(lambda x: (1e-8 * x + 1e8) - 1e8, 0.3, 1e-8) == "WRONG"
    assert verdict(lambda x: (1e-7 * x + 1e6) - 1e6, 0.3, 1e-7) == "unclear"
