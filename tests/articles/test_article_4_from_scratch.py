"""Autodiff from scratch: operations as functions that return value and backpropagate, up to a digits network."""

import math
import random

import numpy as np
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


@mg.operation
def cross_entropy(*logits, target):
    """The softmax cross-entropy, stable because the largest logit is taken out before exp."""
    largest = max(logits)
    exponentials = [math.exp(logit - largest) for logit in logits]
    total = sum(exponentials)
    chances = [exponential / total for exponential in exponentials]

    def backpropagate(g):
        return tuple(g * (chance - (index == target)) for index, chance in enumerate(chances))

    return math.log(total) + largest - logits[target], backpropagate


class TestOperation:
    def test_one_of_several_operands_with_a_setting(self):
        logits = [Value(number) for number in (1.0, -2.0, 0.5)]
        loss = cross_entropy(*logits, target=2)
        loss.backward(gradient=2.0)
        chances = np.exp([1.0, -2.0, 0.5]) / np.exp([1.0, -2.0, 0.5]).sum()
        assert loss.data == pytest.approx(-math.log(chances[2]), rel=1e-14)
        assert [v.grad for v in logits] == pytest.approx(2 * (chances - [0.0, 0.0, 1.0]), rel=1e-14)
        assert loss._op == "cross_entropy"
        assert loss._prev == set(logits)
        assert cross_entropy.__doc__.startswith("The softmax cross-entropy")

    def test_it_mixes_with_operators_numbers_and_other_operations(self):
        def program(x, y):
            return cross_entropy(x * y, exponential(y), 1.5, target=0) * x

        assert mg.testing.gradcheck(program, [0.7, -0.4])

    def test_plain_numbers_give_a_plain_number_and_constants_a_constant(self):
        assert type(cross_entropy(0.0, 0.0, target=0)) is float
        assert cross_entropy(0.0, 0.0, target=0) == pytest.approx(math.log(2), rel=1e-15)
        constant = cross_entropy(Value(0.0, requires_grad=False), 0.0, target=0)
        assert not constant.requires_grad

    def test_each_call_keeps_its_own_numbers(self):
        x, y = Value(2.0), Value(3.0)
        first, second = exponential(x), exponential(y)
        (first + second).backward()
        assert (x.grad, y.grad) == (math.exp(2.0), math.exp(3.0))

    def test_over_an_array_each_element_keeps_its_own_numbers(self):
        x = mg.array([0.0, 1.0, 2.0])
        exponential(x).sum().backward()
        assert mg.gradients(x) == pytest.approx(np.exp([0.0, 1.0, 2.0]), rel=1e-15)

    def test_a_value_among_the_settings_is_an_error(self):
        with pytest.raises(TypeError, match="factor"):
            scale(Value(2.0), factor=Value(3.0))

    def test_what_is_not_a_value_and_a_function_is_an_error(self):
        @mg.operation
        def forgetful(x):
            return x * x

        with pytest.raises(TypeError, match="forgetful must return its value and a backpropagate function"):
            forgetful(Value(2.0))

    def test_a_wrong_number_of_gradients_is_an_error_and_leaves_the_leaves_alone(self):
        @mg.operation
        def times(x, y):
            return x * y, lambda g: (g * y,)

        x, y = Value(2.0), Value(3.0)
        with pytest.raises(ValueError, match="backpropagate gave 1 gradients for 2 operands"):
            (times(x, y) + x).backward()
        assert (x.grad, y.grad) == (0.0, 0.0)


class TestStableCrossEntropy:
    @pytest.mark.parametrize(
        "loss_of",
        [
            lambda logits, target: mg.losses.cross_entropy(logits, target),
            lambda logits, target: cross_entropy(*logits, target=target),
        ],
        ids=["built in", "own operation"],
    )
    @pytest.mark.parametrize(
        ("numbers", "target", "loss", "gradients"),
        [
            ([1e4, -1e4, 0.0], 0, 0.0, [0.0, 0.0, 0.0]),
            ([1e4, -1e4, 0.0], 1, 2e4, [1.0, -1.0, 0.0]),
            ([1e4, -1e4, 0.0], 2, 1e4, [1.0, 0.0, -1.0]),
            ([-1e4, -1e4], 0, math.log(2), [-0.5, 0.5]),
            ([1e4, 1e4], 1, math.log(2), [0.5, -0.5]),
        ],
    )
    def test_logits_of_ten_thousand_give_exact_losses_and_gradients(self, loss_of, numbers, target, loss, gradients):
        logits = [Value(number) for number in numbers]
        found = loss_of(logits, target)
        found.backward()
        assert found.data == pytest.approx(loss, rel=1e-12)
        assert [v.grad for v in logits] == pytest.approx(gradients, rel=1e-12)


class TestItsPains:
    def test_the_gradient_of_a_constant_exponent_is_not_computed_where_it_does_not_exist(self):
        base = Value(-3.0)
        (base**2).backward()
        assert base.grad == -6.0
        frozen = Value(2.0, requires_grad=False)
        base.grad = 0.0
        (base**frozen).backward()
        assert (base.grad, frozen.grad) == (-6.0, 0.0)
        with pytest.raises(ValueError, match="derivative"):
            (base ** Value(2.0)).backward()

    def test_using_a_value_twice_forward_is_a_sum_backward(self):
        x = Value(0.3)
        ((3 * x) + x.exp()).backward()
        assert x.grad == pytest.approx(3 + math.exp(0.3), rel=1e-15)

    @pytest.mark.parametrize(
        ("shape", "summed_over"), [((3,), (0,)), ((2, 1), (1,)), ((1, 1), (0, 1)), ((2, 3), ())], ids=str
    )
    def test_broadcasting_forward_is_a_reduce_sum_backward(self, shape, summed_over):
        weights = np.arange(6.0).reshape(2, 3) ** 2
        small = mg.array(np.ones(shape))
        (weights * (small + np.zeros((2, 3)))).sum().backward()
        expected = weights.sum(axis=summed_over, keepdims=True).reshape(shape)
        assert mg.gradients(small).tolist() == expected.tolist()

    def test_operators_and_broadcasting_need_no_calls(self):
        rows, weights, bias = np.array([[1.0, 2.0], [3.0, 4.0]]), mg.array([[0.5], [-1.0]]), mg.array([0.25])
        mg.relu(rows @ weights + bias).sum().backward()
        assert mg.gradients(bias).tolist() == [0.0]
        (rows @ -weights + bias).sum().backward()
        assert mg.gradients(bias).tolist() == [2.0]
        assert mg.gradients(weights).tolist() == [[-4.0], [-6.0]]


class TestNetwork:
    @pytest.mark.slow
    def test_the_digits_network_has_203530_parameters(self):
        random.seed(1)
        model = mg.nn.MLP(784, [256, 10], initial="he")
        assert len(model.parameters()) == 784 * 256 + 256 + 256 * 10 + 10 == 203_530
        assert [len(layer.neurons) for layer in model.layers] == [256, 10]
        assert [layer.neurons[0].nonlin for layer in model.layers] == [True, False]

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
