"""The checker itself: planted wrong derivatives must be caught, right ones never accused."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.registry import Primitive
from micrograd.testing import GradientError, gradcheck, numerical_gradient

SCALES = [1e8, -1e8, 12345678.9, 1e4, 3.0, 1.0, 0.7, 1e-4, 1e-8, -1e-8, 1e-12, 0.0]

# Smooth functions, each with its derivative; at any of the scales where both are finite.
SMOOTH = {
    "line": (lambda x: 3 * x + 7, lambda x: 3.0),
    "square": (lambda x: x * x, lambda x: 2 * x),
    "cubic": (lambda x: x**3 - 2 * x + 5, lambda x: 3 * x * x - 2),
    "sin": (mg.sin, math.cos),
    "sin on a hill": (lambda x: 1000 + mg.sin(x), math.cos),
    "fast sin": (lambda x: mg.sin(50 * x), lambda x: 50 * math.cos(50 * x)),
    "slow sin": (lambda x: 1e8 * mg.sin(1e-8 * x), lambda x: math.cos(1e-8 * x)),
    "atan": (mg.atan, lambda x: 1 / (1 + x * x)),
    "log": (mg.log, lambda x: 1 / x),
    "square root": (mg.sqrt, lambda x: 0.5 / math.sqrt(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: -1 / x**2),
    "root of a shifted square": (lambda x: mg.sqrt(x * x + 1), lambda x: x / math.hypot(x, 1)),
    "softplus": (mg.softplus, mg.sigmoid),
    "x log x": (lambda x: x * mg.log(x), lambda x: math.log(x) + 1),
}
CASES = [
    (name, x)
    for name in SMOOTH
    for x in SCALES
    if not (x <= 0 and name in ("log", "square root", "x log x")) and not (x == 0 and name == "reciprocal")
]


def planted(f, slope_of, factor):
    """f as a hand-written operation, its derivative off by a factor."""

    def operation(x):
        if not isinstance(x, Value):
            return f(x)
        out = Value(f(x.data), (x,), "planted")

        def _backward():
            x.grad += out.grad * slope_of(x.data) * factor

        out._backward = _backward
        return out

    return operation


@pytest.mark.parametrize(("name", "x"), CASES)
def test_a_right_derivative_is_not_accused_at_any_scale(name, x):
    f, slope_of = SMOOTH[name]
    assert gradcheck(f, [x])
    assert gradcheck(planted(f, slope_of, 1.0), [x])


def shows_in_differences(name, x):
    """Whether the change of f over the scale of x, times 1e-7, is more than the last digits of f."""
    f, slope_of = SMOOTH[name]
    return abs(slope_of(x)) * max(1.0, abs(x)) > 1e-7 * abs(f(x))


@pytest.mark.parametrize(("name", "x"), [case for case in CASES if shows_in_differences(*case)])
def test_a_derivative_wrong_by_a_millionth_is_caught_at_any_scale(name, x):
    f, slope_of = SMOOTH[name]
    with pytest.raises(GradientError, match="WRONG"):
        gradcheck(planted(f, slope_of, 1 + 1e-6), [x])
    with pytest.raises(GradientError, match="WRONG"):
        gradcheck(planted(f, slope_of, 1 - 1e-6), [x])
    with pytest.raises(GradientError, match="WRONG"):
        gradcheck(planted(f, slope_of, -1), [x])


@given(st.floats(-20, 20), st.sampled_from(["sin", "cubic", "atan", "softplus", "root of a shifted square"]))
def test_numerical_gradient_is_exact_to_nine_digits(x, name):
    f, slope_of = SMOOTH[name]
    assert numerical_gradient(f, [x]) == pytest.approx([slope_of(x)], rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(-3, 3).map(lambda x: round(x, 9)), min_size=1, max_size=4))
@example([0.0])
def test_numerical_gradient_of_several_inputs(xs):
    def f(*xs):
        return sum((index + 1) * x * x for index, x in enumerate(xs)) + xs[0] * xs[-1]

    expected = [2 * (index + 1) * x for index, x in enumerate(xs)]
    expected[0] += xs[-1]
    expected[-1] += xs[0]
    found = numerical_gradient(f, xs)
    assert all(type(slope) is float for slope in found)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert gradcheck(f, xs)


@pytest.mark.parametrize(
    ("f", "x", "slope"),
    [
        (mg.log, 1e-3, 1e3),
        (mg.log, 1e-100, 1e100),
        (mg.log, 1e-300, 1e300),
        (mg.sqrt, 1e-12, 5e5),
        (mg.asin, 1 - 1e-6, 1 / math.sqrt((2 - 1e-6) * 1e-6)),
        (mg.acos, -1 + 1e-4, -1 / math.sqrt((2 - 1e-4) * 1e-4)),
        (mg.log1p, -1 + 1e-5, 1e5),
        (mg.exp, 709.0, math.exp(709.0)),
        (lambda x: x**0.5, 0.01, 5.0),  # a float below 0 makes it complex
        (lambda x: mg.exp(x**0.5), 0.01, 5.0 * math.exp(0.1)),
        (lambda x: 1 / x, 1e-3, -1e6),
    ],
)
def test_near_the_edge_of_a_domain_the_step_shrinks(f, x, slope):
    assert numerical_gradient(f, [x]) == pytest.approx([slope], rel=1e-8)
    assert gradcheck(f, [x])


def test_a_planted_error_near_an_edge_is_caught():
    with pytest.raises(GradientError):
        gradcheck(planted(mg.asin, lambda x: 1 / math.sqrt(1 - x), 1.0), [1 - 1e-6])
    with pytest.raises(GradientError):
        gradcheck(planted(mg.log, lambda x: 1 / (x + 1e-6), 1.0), [1e-5])


@pytest.mark.parametrize("x", [-1e-3, 1e-3, -1e-9, 1e-9, 2.0])
def test_the_step_stays_on_one_side_of_a_kink(x):
    assert numerical_gradient(mg.relu, [x]) == [float(x > 0)]
    assert numerical_gradient(abs, [x]) == [math.copysign(1.0, x)]


def test_one_wrong_input_among_right_ones_is_named_in_the_table():
    wrong = Primitive("wrong", "wrong", lambda x, y: x * y, lambda g, out, x, y: g * y, lambda g, out, x, y: g * x * 2)
    with pytest.raises(GradientError) as raised:
        gradcheck(wrong, [3.0, 5.0])
    title, header, first, second = str(raised.value).splitlines()
    assert "disagree" in title
    assert header.split() == ["input", "analytic", "numeric", "error", "allowed", "verdict"]
    assert first.split()[:3] == ["0", "3.0", "5.0"]
    assert first.endswith("right")
    assert second.split()[:3] == ["1", "5.0", "6.0"]
    assert float(second.split()[3]) == pytest.approx(3.0)
    assert float(second.split()[4]) == pytest.approx(3.0, rel=0.1)
    assert float(second.split()[5]) < 1e-5
    assert second.endswith("WRONG")
    assert isinstance(raised.value, AssertionError)


@pytest.mark.parametrize("gradient", [math.nan, math.inf, -math.inf])
def test_a_gradient_that_is_no_finite_number_is_wrong(gradient):
    with pytest.raises(GradientError):
        gradcheck(planted(mg.sin, lambda x: gradient, 1.0), [1.0])


def test_a_graph_that_was_cut_is_caught():
    with pytest.raises(GradientError):
        gradcheck(lambda x: x * float(x), [3.0])
    with pytest.raises(GradientError):
        gradcheck(lambda x: float(x) ** 2, [3.0])
    with pytest.raises(GradientError):
        gradcheck(lambda x: mg.detach(x), [3.0])


def test_a_function_that_ignores_its_inputs():
    assert numerical_gradient(lambda x, y: 5, [1.0, 2.0]) == [0.0, 0.0]
    assert gradcheck(lambda x, y: y * 2, [1.0, 2.0])
    assert gradcheck(lambda x: 5, [1.0])
    assert gradcheck(lambda: 5, [])
    assert numerical_gradient(lambda: 5, []) == []


def test_the_output_may_be_an_input():
    assert gradcheck(lambda x, y: y, [1.0, 2.0])


def test_the_tolerance_is_relative():
    off = planted(mg.exp, math.exp, 1 + 1e-4)
    with pytest.raises(GradientError):
        gradcheck(off, [20.0])
    assert gradcheck(off, [20.0], tolerance=1e-3)


def test_values_that_f_uses_besides_keep_their_gradient():
    weight = Value(2.0)
    weight.grad = 7.0
    assert gradcheck(lambda x: weight * mg.tanh(x * weight), [0.5])
    assert weight.grad == 7.0
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x + mg.sqrt(weight - 2), [0.5])
    assert weight.grad == 7.0


def test_numbers_of_any_kind():
    assert numerical_gradient(lambda x, y: x * y, (2, True)) == pytest.approx([1.0, 2.0])
    assert gradcheck(lambda x, y: x * y, iter([2, 3.0]))


@pytest.mark.parametrize("check", [numerical_gradient, gradcheck])
class TestWrongInput:
    def test_f_is_no_function(self, check):
        with pytest.raises(TypeError, match="f must be a function, not float"):
            check(3.0, [1.0])

    def test_inputs_are_no_sequence(self, check):
        with pytest.raises(TypeError, match="inputs must be a sequence of numbers, not float"):
            check(mg.sin, 1.0)

    @pytest.mark.parametrize("wrong", ["1", None, 1j, [1.0], Value(1.0)])
    def test_an_input_is_no_number(self, check, wrong):
        with pytest.raises(TypeError, match="an input must be a real number"):
            check(lambda x, y: 0.0, [1.0, wrong])

    @pytest.mark.parametrize("wrong", ["1", None, 1j, [1.0], (Value(1.0),)])
    def test_f_returns_no_number(self, check, wrong):
        with pytest.raises(TypeError, match="what f returns must be a real number"):
            check(lambda x: wrong, [1.0])

    @pytest.mark.parametrize("x", [math.nan, math.inf])
    def test_an_input_is_not_finite(self, check, x):
        with pytest.raises(ValueError, match="finite"):
            check(lambda x: x * 2, [x])

    def test_f_is_not_finite(self, check):
        with pytest.raises(ValueError, match="finite"):
            check(lambda x: x * math.inf, [1.0])

    def test_f_does_not_take_the_point(self, check):
        with pytest.raises(ValueError, match="math domain error"):
            check(mg.log, [-1.0])
        with pytest.raises(TypeError, match="argument"):
            check(lambda x: x, [1.0, 2.0])

    def test_f_ends_at_the_point(self, check):
        with pytest.raises(ValueError, match=r"too few differences at input 1, 0\.0"):
            check(lambda x, y: x + mg.sqrt(y), [1.0, 0.0])


def test_an_error_of_another_kind_comes_through():
    def f(x):
        if x != 1.0:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        numerical_gradient(f, [1.0])


def test_f_with_values_returns_no_number():
    with pytest.raises(TypeError, match="what f returns"):
        gradcheck(lambda x: x if isinstance(x, float) else None, [1.0])
