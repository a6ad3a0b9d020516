"""The checker itself: planted wrong derivatives must be caught, right ones never accused."""

import math
import pickle
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.engine.commit import changing_gradients, keeping_gradients
from micrograd.engine.primitive import Primitive
from micrograd.testing import GradientError, gradcheck, numerical_gradient
from tests.locks import is_held

pytestmark = pytest.mark.slow(together=True)

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


def scales_of(name):
    """Where the function is smooth."""
    if name == "reciprocal":
        return [x for x in SCALES if x != 0]
    return [x for x in SCALES if x > 0 or name not in ("log", "square root", "x log x")]


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


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.unmeasured
def test_a_right_derivative_is_not_accused_at_any_scale(name):
    f, slope_of = SMOOTH[name]
    for x in scales_of(name):
        assert gradcheck(f, [x])
        assert gradcheck(planted(f, slope_of, 1.0), [x])


def shows_in_differences(name, x):
    """Whether the change of f over the scale of x, times 1e-7, is more than the last digits of f."""
    f, slope_of = SMOOTH[name]
    return abs(slope_of(x)) * max(1.0, abs(x)) > 1e-7 * abs(f(x))


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1 + 1e-6, 1 - 1e-6, -1])
@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.unmeasured
def test_a_derivative_wrong_by_a_millionth_is_caught_at_any_scale(name, factor):
    f, slope_of = SMOOTH[name]
    for x in filter(lambda x: shows_in_differences(name, x), scales_of(name)):
        with pytest.raises(GradientError, match="WRONG"):
            gradcheck(planted(f, slope_of, factor), [x])


@pytest.mark.slow
@given(st.floats(-20, 20), st.sampled_from(["sin", "cubic", "atan", "softplus", "root of a shifted square"]))
def test_numerical_gradient_is_exact_to_nine_digits(x, name):
    f, slope_of = SMOOTH[name]
    assert numerical_gradient(f, [x]) == pytest.approx([slope_of(x)], rel=1e-9, abs=1e-9)


@pytest.mark.slow
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


def test_two_neighbouring_steps_are_enough():
    def f(x):
        if abs(x - 1) not in (0, 0.125, 0.0625):
            raise ValueError("not here")
        return x * x

    (row,) = gradcheck(f, [1.0], gradient=lambda x: 2.0).rows
    assert (row.numeric, row.verdict) == (2.0, "right")


@pytest.mark.parametrize("x", [0.5, -3.0, 1e6])
def test_a_smooth_function_is_called_fifty_times(x):
    calls = []
    numerical_gradient(lambda x: calls.append(x) or 1.0 + x * x, [x])
    assert len(calls) == len(set(calls)) < 50


def test_a_slope_that_rounding_hides_is_at_least_not_made_up():
    for x in (4.287551592837912e-20, 1e-30, 0.0):
        assert numerical_gradient(math.cosh, [x]) == pytest.approx([0.0], abs=1e-15)


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


def test_other_threads_wait_until_gradients_are_put_back(monkeypatch):
    answers = []

    def asking(nodes):
        answers.append(is_held(changing_gradients))
        return keeping_gradients(nodes)

    monkeypatch.setattr(sys.modules[gradcheck.__module__], "keeping_gradients", asking)
    assert gradcheck(lambda x: x * x, [3.0])
    assert answers == [True]
    assert not is_held(changing_gradients)


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


def test_the_inputs_may_be_an_array_of_another_library():
    point = np.array([0.7, -0.4])
    tensors = [np.asarray(number, dtype=np.float32) for number in point]  # of no dimensions, as PyTorch's iterates
    for inputs in (point, tensors):
        assert gradcheck(lambda x, y: x * y, inputs, gradient=lambda x, y: (y, x))


def test_what_gives_a_plain_number_for_values_is_named_where_the_gradient_is_wrong():
    hint = (
        "f returns a plain number for Values, so nothing is recorded: is there float(x) in it, or math.sin for mg.sin?"
    )
    with pytest.raises(GradientError) as caught:
        gradcheck(math.sin, [2.0])
    assert str(caught.value).splitlines()[-1] == hint
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    for wrong in (lambda: gradcheck(math.sin, [2.0], gradient=math.sin), lambda: gradcheck(mg.detach, [2.0])):
        with pytest.raises(GradientError) as caught:
            wrong()
        assert hint not in str(caught.value)
    assert gradcheck(lambda x: 3.0, [2.0])


def test_an_error_of_another_kind_comes_through():
    def f(x):
        if x != 1.0:
            raise KeyError("mine")
        return x

    with pytest.raises(KeyError, match="mine"):
        numerical_gradient(f, [1.0])


class TestGradientOfOnesOwn:
    def test_any_library_can_be_checked(self):
        import numpy as np

        assert gradcheck(
            lambda x, y: np.sin(x) * y, [0.5, 2.0], gradient=lambda x, y: np.array([np.cos(x) * y, np.sin(x)])
        )
        assert gradcheck(lambda x, y: x * y, [0.5, 2.0], gradient=lambda x, y: (y, x))
        assert gradcheck(math.sin, [0.5], gradient=math.cos)
        assert gradcheck(math.sin, [0.5], gradient=lambda x: [Value(math.cos(x))])
        assert gradcheck(math.sin, [0.5], gradient=lambda x: np.array(math.cos(x)))
        assert gradcheck(lambda x: np.array(math.sin(x)), [0.5], gradient=math.cos)

    @pytest.mark.unmeasured
    @pytest.mark.slow
    def test_32_bits_are_recognised(self):
        import numpy as np

        def f(x):
            return np.sin(np.float32(3) * np.float32(x))

        for x in np.linspace(-3, 3, 97):
            assert gradcheck(f, [x], gradient=lambda x: 3 * np.cos(np.float32(3) * np.float32(x)))
            with pytest.raises(GradientError):
                gradcheck(f, [x], gradient=lambda x: 1e-3 + 3 * np.cos(np.float32(3) * np.float32(x)))

    @pytest.mark.parametrize("x", [1000.7, 4321.1, -2500.3])
    def test_a_point_of_32_bits_is_recognised(self, x):
        """It is rounded to the next of them, and that moves f by more than its own rounding does."""
        import numpy as np

        assert gradcheck(lambda x: np.sin(np.float32(x)), [x], gradient=lambda x: np.cos(np.float32(x)))

    @pytest.mark.parametrize(("centre", "away"), [(22000, 0.37), (34900, -1.4), (58700, 0.87), (61900, 0.49)])
    def test_a_point_of_32_bits_far_from_0_is_at_least_not_accused(self, centre, away):
        import numpy as np

        def f(x):
            apart = float(np.float32(x)) - centre
            return np.float32(apart / math.sqrt(1 + apart * apart))

        def gradient(x):
            return (1 + (float(np.float32(x)) - centre) ** 2) ** -1.5

        assert gradcheck(f, [centre + away], gradient=gradient)

    def test_one_wrong_branch_is_caught_on_that_branch(self):
        def gradient(x):
            return 2 * x if x > 0 else 2 * x * (1 + 1e-6)

        assert gradcheck(lambda x: x * x, [0.3], gradient=gradient)
        with pytest.raises(GradientError):
            gradcheck(lambda x: x * x, [-0.3], gradient=gradient)


class TestSecondOrder:
    def test_right_ones_pass_with_a_row_for_each_pair(self):
        report = gradcheck(lambda x, y: mg.exp(x * y) + x**3, [0.5, -1.5], 2)
        assert [row.name for row in report.rows] == ["0", "1", "0, 0", "0, 1", "1, 0", "1, 1"]
        assert {row.verdict for row in report.rows} == {"right"}
        assert report.rows[2].analytic == pytest.approx(2.25 * math.exp(-0.75) + 3.0)

    def test_a_rule_right_once_and_wrong_twice_is_caught(self):
        square = Primitive("square", "²", lambda x: x * x, lambda g, out, x: g * 2 * mg.detach(x))
        assert gradcheck(square, [1.5])
        with pytest.raises(GradientError) as raised:
            gradcheck(square, [1.5], order=2)
        assert [row.verdict for row in raised.value.report.rows] == ["right", "WRONG"]

    @pytest.mark.parametrize("planted", [0.0, 1e-2, 1e-4, 1e-6])
    def test_a_hessian_of_ones_own(self, planted):
        def hessian(x, y):
            return [[-math.sin(x) * y, math.cos(x)], [math.cos(x) * (1 + planted), 0.0]]

        arguments = (lambda x, y: math.sin(x) * y, [0.5, 2.0], 2)
        if not planted:
            assert gradcheck(*arguments, gradient=lambda x, y: (math.cos(x) * y, math.sin(x)), hessian=hessian)
            return
        with pytest.raises(GradientError) as raised:
            gradcheck(*arguments, gradient=lambda x, y: (math.cos(x) * y, math.sin(x)), hessian=hessian)
        assert [row.name for row in raised.value.report.rows if row.verdict == "WRONG"] == ["1, 0"]

    def test_of_one_input_it_may_be_bare(self):
        assert gradcheck(math.sin, [0.5], 2, gradient=math.cos, hessian=lambda x: -math.sin(x))
        assert gradcheck(math.sin, [0.5], 2, gradient=math.cos, hessian=lambda x: [[-math.sin(x)]])

    def test_constants_have_none(self):
        assert gradcheck(lambda x, y: 5.0, [1.0, 2.0], 2)
        assert gradcheck(lambda x, y: x * 3, [1.0, 2.0], 2)

    def test_a_closure_on_floats_has_none_and_says_so(self):
        with pytest.raises(ValueError, match="make it a primitive"):
            gradcheck(planted(mg.sin, math.cos, 1.0), [0.5], 2)


class TestKinks:
    @pytest.mark.parametrize("f", [mg.relu, abs, lambda x: mg.maximum(3 * x, -x), lambda x: 1 + mg.relu(mg.sin(x))])
    @pytest.mark.parametrize("x", [0.0, 1e-300, -1e-300])
    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_one_at_the_point_is_named(self, f, x):
        (row,) = gradcheck(f, [x]).rows
        assert row.verdict in ("kink", "right")
        if x == 0:
            assert row.verdict == "kink"

    def test_one_so_near_that_rounding_hides_it_is_named(self):
        for distance in (1e-10, 1e-12, -1e-11):
            (row,) = gradcheck(lambda x: 1 + mg.relu(x), [distance]).rows
            assert row.verdict == "kink"

    @pytest.mark.parametrize(
        ("f", "slope_of", "x", "bend"),
        [
            (math.exp, math.exp, 0.459, 1.3e-6),
            (lambda x: x**3, lambda x: 3 * x * x, 3.48, -7.5e-6),
            (math.log, lambda x: 1 / x, 0.142, 3.4e-6),
            (lambda x: x * x, lambda x: 2 * x, 1.47e6, 0.443),
            (lambda x: x * x, lambda x: 2 * x, 0.0, -1e-9),
            (lambda x: 1e3 + math.sin(x), math.cos, -2.0, 1e-7),
        ],
    )
    def test_a_slight_one_on_a_steep_or_curved_function_is_named(self, f, slope_of, x, bend):
        def bent(at):
            return f(at) + bend * abs(at - x)

        for side in (-1.0, -0.5, 0.0, 0.5, 1.0):
            report = gradcheck(bent, [x], gradient=lambda x, side=side: slope_of(x) + side * bend)
            assert report.rows[0].verdict == "kink"
        for side in (-1.2, 1.2, 3.0, 100.0):
            with pytest.raises(GradientError):
                gradcheck(bent, [x], gradient=lambda x, side=side: slope_of(x) + side * bend, tolerance=0)

    @pytest.mark.parametrize("slope", [1.01, -1.01, 3.0, math.nan])
    def test_a_slope_outside_those_of_the_two_sides_is_wrong(self, slope):
        report = gradcheck(abs, [0.0], gradient=lambda x: 0.99)
        assert report.rows[0].verdict == "kink"
        with pytest.raises(GradientError):
            gradcheck(abs, [0.0], gradient=lambda x: slope * 1.05)

    @pytest.mark.parametrize("distance", [1e-1, 1e-3, 1e-5])
    def test_one_that_steps_can_stay_clear_of_hides_nothing(self, distance):
        def f(x):
            return math.exp(x) + max(x - 1.0, 0.0)

        for x, slope in [(1 + distance, math.exp(1 + distance) + 1), (1 - distance, math.exp(1 - distance))]:
            (row,) = gradcheck(f, [x], gradient=lambda x, slope=slope: slope).rows
            assert row.verdict == "right"
            with pytest.raises(GradientError):
                gradcheck(f, [x], gradient=lambda x, slope=slope: slope * (1 + 1e-6))

    def test_smooth_functions_that_bend_sharply_have_none(self):
        for x in (0.0, 1e-9, 1e-8, 3e-8, -1e-6, 1e-3):
            (row,) = gradcheck(lambda x: mg.sqrt(x * x + 1e-16), [x]).rows
            assert row.verdict == "right"

    def test_a_jump_is_named(self):
        (row,) = gradcheck(math.floor, [2.0], gradient=lambda x: 0.0).rows
        assert row.verdict == "jump"
        assert gradcheck(mg.relu, [0.0], 2).rows[1].verdict == "jump"


ACCUSED_ONCE = [
    mg.testing.Expression(lambda x, z: mg.silu(mg.minimum(x, z)), [-2.112, -2.42]),
    mg.testing.Expression(lambda x: mg.relu(mg.sigmoid(mg.relu(x))), [-0.217]),
    mg.testing.Expression(lambda x, y: mg.maximum(x, y) + mg.maximum(-2.016, x), [-2.45, 2.16]),
    mg.testing.Expression(lambda x, y: mg.erf(mg.maximum(x, y)), [-1.493, -1.696]),
    mg.testing.Expression(lambda x, y, z: ((mg.erf(mg.tan(z)) + x) + y) + 0.53, [0.901, -2.466, 1.377]),
    mg.testing.Expression(lambda x, y: (t := x + (x - mg.sinh(y)), mg.gelu(t) + (-t))[-1], [-1.867, -2.988]),
    mg.testing.Expression(lambda x, y, z: ((mg.erf(y + x) + z) + 2.248) + mg.gelu(y), [-2.91, -2.008, -1.148]),
    mg.testing.Expression(lambda x, y: mg.leaky_relu(x, y) / y, [-0.198, 0.104]),
    mg.testing.Expression(lambda x: mg.sin(mg.asin(x)) + mg.abs(x), [-0.601]),
    mg.testing.Expression(lambda x: mg.log(mg.erf(x + x)) + mg.atan(mg.log(mg.erf(x + x))), [2.503]),
    mg.testing.Expression(lambda x: 0.7 * mg.log(mg.erf(x + x)), [2.503]),
]


@pytest.mark.parametrize("expression", ACCUSED_ONCE)
def test_right_derivatives_that_random_expressions_found_accused(expression):
    """Beside a kink on a flat side; where a small slope comes out of large terms that cancel, or is all rounding;
    and where f moves in steps, because a number inside of it is 1 but for its last digits."""
    assert gradcheck(expression, expression.inputs)


class TestSteps:
    """Functions that stand still and then jump, by much or by what they are rounded to."""

    @pytest.mark.parametrize("x", [2.3, 2.5, 2.999, 2.000001, 1.999999, -1e-9, 5.3])
    def test_flat_between_jumps(self, x):
        (row,) = gradcheck(math.floor, [x], gradient=lambda x: 0.0).rows
        assert (row.numeric, row.verdict) == (0.0, "right")
        for slope in (1.0, 0.5, 1e-3):
            with pytest.raises(GradientError):
                gradcheck(math.floor, [x], gradient=lambda x, slope=slope: slope)

    @pytest.mark.slow
    @pytest.mark.parametrize("x", [1e-12, -1e-12, -1e-300, 1e-9, 1e-6, 1e-3, 0.3, 5.0, -7.0])
    @pytest.mark.unmeasured
    def test_away_from_a_jump(self, x):
        def f(x):
            return mg.where(x > 0, 1.0, 0.0)

        (row,) = gradcheck(f, [x]).rows
        assert (row.numeric, row.verdict) == (0.0, "right")
        with pytest.raises(GradientError):
            gradcheck(f, [x], gradient=lambda x: 0.5)

    @pytest.mark.unmeasured
    @pytest.mark.slow
    @pytest.mark.parametrize("x", [0.0, 1e-300, 1e-17])
    def test_at_a_jump(self, x):
        for slope in (0.0, 0.5, 1e6):
            report = gradcheck(lambda x: mg.where(x > 0, 1.0, 0.0), [x], gradient=lambda x, slope=slope: slope)
            assert report.rows[0].verdict == "jump"

    @pytest.mark.parametrize("times", [1e3, 1e6])
    def test_values_whose_differences_are_infinite_tell_nothing(self, times):
        (row,) = gradcheck(lambda x: 1e308 * mg.sin(times * x), [0.3], gradient=lambda x: 1e307).rows
        assert row.verdict == "unclear"

    def test_a_slope_that_comes_in_steps_of_rounding_is_unclear_and_a_wrong_one_seen(self):
        def f(x):
            return 0.7 * mg.log(mg.erf(x + x))

        (row,) = gradcheck(f, [2.503]).rows
        assert row.verdict == "unclear"
        assert row.numeric == pytest.approx(row.analytic, rel=0.01)
        for times in (-1.0, 3.0):
            with pytest.raises(GradientError):
                gradcheck(f, [2.503], gradient=lambda x, times=times: times * row.analytic)

    def test_steps_as_fine_as_rounding(self):
        for slope in (0.0, 1.0):
            for x in (100.3, 1000.3, 12345.6):
                report = gradcheck(math.floor, [x], gradient=lambda x, slope=slope: slope)
                assert report.rows[0].verdict == "unclear"
            with pytest.raises(GradientError):
                gradcheck(math.floor, [12345.6], gradient=lambda x: 3.0)
        (row,) = gradcheck(lambda x: (3e-7 * x + 1e6) - 1e6, [0.3]).rows
        assert row.verdict == "unclear"

    def test_flat_up_to_a_step_that_ends_at_0(self):
        """A step from 1 to the left ends at 0, where nothing is small beside the position."""
        assert numerical_gradient(lambda x: min(x, 0.25), [1.0]) == [0.0]
        assert [row.verdict for row in gradcheck(lambda x: min(x, 0.25), [1.0], gradient=lambda x: 0.0).rows] == [
            "right"
        ]

    def test_flat_in_the_middle_of_a_narrow_dead_zone(self):
        assert gradcheck(lambda x: math.copysign(max(abs(x) - 1e-9, 0.0), x), [0.0], gradient=lambda x: 0.0)


class TestReport:
    def test_what_rounding_hides_is_unclear(self):
        (row,) = gradcheck(lambda x: 1e20 + x, [1.0]).rows
        assert row.verdict == "unclear"

    def test_two_digits_of_the_differences_are_too_few_to_say_right_of_what_is_not_theirs(self):
        (row,) = gradcheck(lambda x: 1e14 + x * x, [3.0], gradient=lambda x: 6.006).rows
        assert (row.numeric, row.verdict) == (6.0, "unclear")
        assert 0.01 < row.allowed / 6 < 0.1

    def test_nor_do_they_say_it_of_their_own_slope_where_it_is_less_than_their_error(self):
        def f(x):
            return 3e14 + x * x

        (slope,) = numerical_gradient(f, [0.2])
        (row,) = gradcheck(f, [0.2], gradient=lambda x: slope).rows
        assert (row.error, row.verdict) == (0.0, "unclear")

    def test_for_an_input_without_influence_nothing_is_allowed(self):
        assert gradcheck(lambda x, y: y, [1.0, 0.0]).rows[0].allowed == 0.0

    def test_what_is_left_where_all_terms_cancel_is_unclear(self):
        (row,) = gradcheck(lambda x: mg.sin(mg.asin(x)) + mg.abs(x), [-0.601]).rows
        assert (row.verdict, row.numeric) == ("unclear", 0.0)
        assert 0 < row.error <= row.allowed < 1e-14

    @pytest.mark.parametrize("x", [1e11, 1e12, 1e13, 1e14, 1e15, -1e16, 1e20, 1e100, -1e308, 1.7e308])
    def test_a_function_that_turns_between_two_floats_is_never_accused(self, x):
        for f in (mg.sin, mg.cos, lambda x: mg.sin(x) * 1e-8, lambda x: 100 + mg.sin(2 * (x / 2))):
            assert gradcheck(f, [x])
        for f in (mg.sin, lambda x: mg.cos(x) * 1e-8):
            if abs(x) > 1e14:
                assert gradcheck(f, [x]).rows[0].verdict == "unclear"

    @pytest.mark.parametrize(("x", "frequency"), [(0.3, 1e10), (-40.0, 1e9), (1e6, 1e5)])
    def test_a_ripple_as_fine_as_that_on_a_slope_is_not_accused(self, x, frequency):
        assert gradcheck(lambda x: x + mg.sin(frequency * x) / frequency, [x])

    @pytest.mark.parametrize(("x", "frequency"), [(3.31e7, 2600.0), (1940000.0, 22000.0), (-2.7, 4e9)])
    def test_nor_where_it_stops_the_slope(self, x, frequency):
        turn = math.pi * (2 * round(frequency * x / (2 * math.pi)) + 1) / frequency
        assert gradcheck(lambda x: x + mg.sin(frequency * x) / frequency, [turn])

    @pytest.mark.parametrize("frequency", [1e13, 1e15, 1e20, 1e100])
    def test_so_is_one_that_turns_as_often_at_an_ordinary_point(self, frequency):
        for x in (0.3, -0.7, 2.9):
            assert gradcheck(lambda x: mg.sin(frequency * x), [x])
            assert gradcheck(lambda x: mg.sin(1 / x), [x / frequency])

    @pytest.mark.parametrize("x", [9.4, 3.14, -3.2])
    def test_differences_too_large_for_a_float_are_not_accused(self, x):
        (row,) = gradcheck(lambda x: 1.7e308 * math.cos(x), [x], gradient=lambda x: -1.7e308 * math.sin(x)).rows
        assert row.verdict == "right"

    @pytest.mark.unmeasured
    @pytest.mark.slow
    def test_what_is_too_small_for_a_float_is_not_accused(self):
        assert gradcheck(lambda x: x * x, [1e-200])
        assert gradcheck(lambda x: x * x * 1e-300, [1e-20])

    def test_a_constant_that_claims_a_slope_is_caught(self):
        for constant in (0.0, 5.0, 0.1, 1000.5, -123456.5, 1e7):
            with pytest.raises(GradientError):
                gradcheck(lambda x, constant=constant: constant, [1.0], gradient=lambda x: 1e-3)
        with pytest.raises(GradientError):
            gradcheck(lambda x: (x * 0.29 + 1) - x * 0.29, [0.18], gradient=lambda x: 1e-3)  # 1, but for rounding

    def test_an_error_carries_the_report_and_can_be_pickled(self):
        import pickle

        with pytest.raises(GradientError) as raised:
            gradcheck(mg.sin, [0.5], gradient=lambda x: 2.0)
        copied = pickle.loads(pickle.dumps(raised.value))
        assert str(copied) == str(raised.value)
        assert not copied.report
        assert copied.report.rows[0].verdict == "WRONG"

    def test_a_report_is_true_and_prints_as_a_table(self):
        report = gradcheck(lambda x, y: x * y, [2.0, 3.0])
        header, *rows = str(report).splitlines()
        assert bool(report) is True
        assert header.split() == ["input", "analytic", "numeric", "error", "allowed", "verdict"]
        assert [row.split()[0] for row in rows] == ["0", "1"]
        assert repr(report) == str(report)
        assert str(gradcheck(lambda: 5.0, [])).split() == header.split()

    @pytest.mark.slow
    @given(st.floats(-10, 10), st.floats(-12, 0), st.sampled_from([mg.sin, mg.tanh, abs]))
    def test_the_columns_never_contradict_the_verdict(self, x, digits, f):
        try:
            report = gradcheck(f, [x], gradient=lambda x: numerical_gradient(f, [x])[0] * (1 + 10.0**digits))
        except GradientError as error:
            report = error.report
        *_, error, allowed, verdict = str(report).splitlines()[1].split()
        assert (float(error) > float(allowed)) == (verdict == "WRONG")

    def test_an_error_just_above_what_is_allowed_shows_as_such(self):
        for times in (1 + 1e-9, 1 + 1e-6, 1.001):
            with pytest.raises(GradientError) as raised:
                gradcheck(lambda x: 8 * x, [1.0], gradient=lambda x, times=times: 8 / 0.99 * times, tolerance=0.01)
            *_, error, allowed, _ = str(raised.value).splitlines()[2].split()
            assert float(error) > float(allowed)
            digits = [len(number.partition("e")[0]) - 3 for number in (error, allowed)]
            assert digits[0] == digits[1]
            shorter = [f"{float(number):.{digits[0]}e}" for number in (error, allowed)]
            assert digits[0] == 0 or shorter[0] == shorter[1]  # no more digits than it takes


def test_a_tiny_second_derivative_that_is_wrong_is_caught():
    arguments = (lambda x: 1e-20 * x * x, [1.5], 2)
    assert gradcheck(*arguments, gradient=lambda x: 2e-20 * x, hessian=lambda x: 2e-20)
    with pytest.raises(GradientError):
        gradcheck(*arguments, gradient=lambda x: 2e-20 * x, hessian=lambda x: 4e-20)


def test_a_tolerance_of_nothing_leaves_the_errors_of_the_differences():
    (row,) = gradcheck(lambda x: 1e3 + mg.sin(x), [0.5], tolerance=0).rows
    assert row.verdict == "right"
    assert 0 < row.error <= row.allowed
    with pytest.raises(GradientError):
        gradcheck(mg.sin, [0.5], tolerance=0, gradient=lambda x: math.cos(x) * (1 + 1e-9))


def test_what_is_no_single_number_is_refused():
    import numpy as np

    with pytest.raises(TypeError, match="what f returns must be a real number, not ndarray"):
        gradcheck(lambda x: np.array([x]), [0.5])
    with pytest.raises(TypeError, match="what f returns must be a real number, not Shapeless"):
        gradcheck(lambda x: Shapeless(), [0.5])


class Shapeless:
    """Has no dimensions, as a tensor that is a number, and is none."""

    shape = ()


@pytest.mark.parametrize(
    ("f", "slope_of", "xs"),
    [
        (math.sin, math.cos, [0.5, 2.0, 10.3, 1e7]),
        (math.exp, math.exp, [0.5, -3.0, 3.0]),
        (lambda x: math.sin(300 * x), lambda x: 300 * math.cos(300 * x), [0.3, 1.7]),
        (lambda x: x**10, lambda x: 10 * x**9, [1.3, 3.1]),
        (math.log, lambda x: 1 / x, [0.1, 3.0]),
        (lambda x: 1 / x, lambda x: -1 / x**2, [0.01, 3.0]),
    ],
)
def test_about_twelve_digits_of_a_smooth_function_are_right(f, slope_of, xs):
    for x in xs:
        assert numerical_gradient(f, [x]) == pytest.approx([slope_of(x)], rel=2e-12)
        assert gradcheck(f, [x], gradient=slope_of, tolerance=0).rows[0].allowed < 1e-10 * abs(slope_of(x))


@pytest.mark.parametrize(
    ("f", "slope_of", "x", "error"),
    [
        (lambda x: 1e6 + math.sin(x), math.cos, 0.5, 5e-8),
        (lambda x: 1e4 + math.sin(30 * x), lambda x: 30 * math.cos(30 * x), 2.0, 5e-10),
        (math.log1p, lambda x: 1 / (1 + x), -1 + 1e-12, 2e-4),
        (lambda x: x + 0.018 * math.sin(2.5e7 * x), lambda x: 1 + 4.5e5 * math.cos(2.5e7 * x), 0.18, 1e-6),
    ],
)
def test_finer_steps_tell_more_where_there_is_rounding(f, slope_of, x, error):
    (row,) = gradcheck(f, [x], gradient=slope_of, tolerance=0).rows
    assert row.error < row.allowed < error * abs(row.analytic)


def test_nothing_is_allowed_of_what_is_nothing_and_little_of_what_is_infinite():
    report = gradcheck(lambda x: 0.0, [1.0])
    assert (report.rows[0].error, report.rows[0].allowed) == (0.0, 0.0)
    assert str(report).split()[-3:] == ["0.0e+00", "0.0e+00", "right"]
    with pytest.raises(GradientError) as raised:
        gradcheck(mg.sin, [0.5], gradient=lambda x: math.inf)
    assert 0 < raised.value.report.rows[0].allowed < 1e-9


def test_errors_print_with_two_digits_at_least():
    *_, error, allowed, _ = str(gradcheck(lambda x: 3 * x, [2.0])).split()
    assert [len(number.partition("e")[0]) for number in (error, allowed)] == [3, 3]
