"""Tape-based autograd: one worked example, three programs checked against differences, and a picture."""

import math
import re

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.testing import GradientError, gradcheck, numerical_gradient


class TestWorkedExample:
    def test_data_and_gradients_of_every_node(self):
        x, y, z = Value(2.0), Value(-3.0), Value(10.0)
        a = x * y
        f = a + z
        assert (a.data, f.data) == (-6.0, 4.0)
        f.backward()
        assert [node.grad for node in (x, y, z, a, f)] == [-3.0, 2.0, 1.0, 1.0, 1.0]

    def test_the_operators_and_their_reverse_forms(self):
        def program(x, y):
            forward = (x + y) * (x - y) / (x * y) + x**3 - -y
            reverse = (2 + x) + (2 * x) + (2 - x) + (2 / x) + 2**y
            return forward * reverse

        assert gradcheck(program, [1.5, 0.7])

    @pytest.mark.parametrize(
        ("name", "slope"),
        [
            ("exp", math.exp(0.4)),
            ("log", 1 / 0.4),
            ("relu", 1.0),
            ("sigmoid", math.exp(-0.4) / (1 + math.exp(-0.4)) ** 2),
            ("tanh", 1 / math.cosh(0.4) ** 2),
        ],
    )
    def test_the_functions_have_the_derivatives_of_the_textbook(self, name, slope):
        x = Value(0.4)
        getattr(x, name)().backward()
        assert x.grad == pytest.approx(slope, rel=1e-14)


def cubic(x):
    return x**3 - 2 * x + 5


def mixed(x, y):
    return mg.tanh(x * y + mg.exp(x))


def side_by_side(w1, w2, w3, w4, b1, b2):
    """Two neurons over the same two inputs, each to give 1."""
    first, second = mg.tanh(w1 * 1.0 + w2 * 0.5 + b1), mg.tanh(w3 * 1.0 + w4 * 0.5 + b2)
    return (first - 1) ** 2 + (second - 1) ** 2


def in_a_row(w1, w2, w3, w4, b1, b2):
    """One neuron over two inputs, and a second over the first one's output and the last input."""
    hidden = mg.tanh(w1 * 1.0 + w2 * 0.5 + b1)
    return (mg.tanh(w3 * hidden + w4 * 0.5 + b2) - 1) ** 2


NETWORK = [0.5, -0.3, 0.8, 0.1, 0.0, 0.2]
CHECKS = {
    "cubic": (cubic, [2.5]),
    "tanh of a product and an exponential": (mixed, [0.7, -0.4]),
    "two neurons side by side": (side_by_side, NETWORK),
    "two neurons in a row": (in_a_row, NETWORK),
}


def two_sided_differences(f, inputs, h=1e-7):
    """The article's own check, without a line of the library's."""
    return [
        (f(*inputs[:i], x + h, *inputs[i + 1 :]) - f(*inputs[:i], x - h, *inputs[i + 1 :])) / (2 * h)
        for i, x in enumerate(inputs)
    ]


class TestThreeChecks:
    @pytest.mark.parametrize(("f", "inputs"), CHECKS.values(), ids=CHECKS.keys())
    def test_gradients_and_two_sided_differences_agree_to_six_decimals(self, f, inputs):
        values = [Value(x) for x in inputs]
        f(*values).backward()
        gradients = [value.grad for value in values]
        assert all(gradients)
        assert gradients == pytest.approx(two_sided_differences(f, inputs), rel=0, abs=0.5e-6)

    @pytest.mark.parametrize(("f", "inputs"), CHECKS.values(), ids=CHECKS.keys())
    def test_gradcheck_and_numerical_gradient_say_the_same_more_exactly(self, f, inputs):
        values = [Value(x) for x in inputs]
        f(*values).backward()
        assert [value.grad for value in values] == pytest.approx(numerical_gradient(f, inputs), rel=1e-10)
        assert gradcheck(f, inputs)

    def test_the_first_two_have_the_gradients_of_their_formulas(self):
        assert mg.grad(cubic)(2.5) == 3 * 2.5**2 - 2
        x, y = 0.7, -0.4
        steepness = 1 / math.cosh(x * y + math.exp(x)) ** 2
        assert mg.grad(mixed, argnums=(0, 1))(x, y) == pytest.approx(
            (steepness * (y + math.exp(x)), steepness * x), rel=1e-14
        )

    def test_a_wrong_gradient_is_caught(self):
        @mg.operation
        def wrong_cube(x):
            return x**3, lambda g: g * 3 * x

        with pytest.raises(GradientError, match="WRONG"):
            gradcheck(wrong_cube, [2.5])


class TestPicture:
    def test_it_shows_value_and_gradient_at_every_node(self, text_of):
        x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(10.0, label="z")
        f = x * y + z
        f.backward()
        text = text_of(f)
        for data, gradient in ((2, -3), (-3, 2), (10, 1), (-6, 1), (4, 1)):
            assert re.search(rf"data\s+{data}\b\D[^a-z]*grad\s+{gradient}\b", text), (data, gradient)
        for label in ("x", "y", "z"):
            assert re.search(rf"\b{label}\b", text)
