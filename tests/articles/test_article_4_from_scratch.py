"""Autodiff from scratch: operations as functions that return value and backpropagate, up to a digits network."""

import math
import random

import pytest

import micrograd as mg
from micrograd import Value


@mg.operation
def ramp(x):
    return max(x, 0.0), lambda g: g * (x > 0)


@mg.operation
def scale(x, *, factor):
    return factor * x, lambda g: g * factor


@mg.operation
def exponential(x):
    y = math.exp(x)
    return y, lambda g: g * y


PROGRAMS = {
    "built in": lambda x: mg.exp(-2 * mg.maximum(x, 0.0)),
    "own operations": lambda x: exponential(scale(ramp(x), factor=-2.0)),
}


class TestFirstProgram:
    @pytest.fixture(params=PROGRAMS.values(), ids=PROGRAMS.keys())
    def program(self, request):
        return request.param

    @pytest.mark.parametrize("x", [0.1, 0.5, 1.0, 3.0])
    def test_to_the_right_of_zero_the_slope_is_minus_two_y(self, program, x):
        v = Value(x)
        y = program(v)
        y.backward()
        assert y.data == pytest.approx(math.exp(-2 * x), rel=1e-15)
        assert v.grad == pytest.approx(-2 * y.data, rel=1e-15)
        assert mg.testing.gradcheck(program, [x])

    @pytest.mark.parametrize("x", [-0.1, -1.0, -30.0])
    def test_to_the_left_of_zero_it_is_flat(self, program, x):
        v = Value(x)
        y = program(v)
        y.backward()
        assert (y.data, v.grad) == (1.0, 0.0)


class TestNetwork:
    @pytest.mark.slow
    def test_the_digits_network_has_203530_parameters(self):
        random.seed(1)
        model = mg.nn.MLP(784, [256, 10], initial="he")
        assert len(model.parameters()) == 784 * 256 + 256 + 256 * 10 + 10 == 203_530
        assert [len(layer.neurons) for layer in model.layers] == [256, 10]
        assert [layer.neurons[0].nonlin for layer in model.layers] == [True, False]

    @pytest.mark.unmeasured
    def test_the_same_network_in_small_learns_with_plain_gradient_descent(self):
        random.seed(1)
        model = mg.nn.MLP(4, [8, 3], initial="he")
        pictures = [([1.0, 0.0, 0.0, 1.0], 0), ([0.0, 1.0, 1.0, 0.0], 1), ([1.0, 1.0, 0.0, 0.0], 2)]
        history = mg.fit(
            lambda pixels, digit: mg.losses.cross_entropy(model(pixels), digit),
            pictures,
            mg.optim.SGD(model.parameters(), 0.1),
            epochs=100,
            batch_size=3,
            seed=0,
            progress=False,
        )
        assert history.epochs[-1] < 0.1 * history.epochs[0]
        with mg.no_grad():
            answers = [mg.numbers(model(pixels)).argmax() for pixels, _ in pictures]
        assert answers == [0, 1, 2]
