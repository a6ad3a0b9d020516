"""Calls with plain floats are quick from the second one on, and nobody notices, except by the clock."""

import math

import pytest

import micrograd as mg
from micrograd import Value


def called(function, *calls):
    """What a compiled function gives for each of some arguments, and what it gives eagerly."""
    fast = mg.compile(function)
    return [(fast(*arguments), function(*arguments)) for arguments in calls]


@pytest.fixture
def weights():
    return [Value(0.5), Value(-1.5)]


class TestArguments:
    def test_other_floats(self):
        for found, expected in called(lambda x, y: x * y + 1.0, (1.0, 2.0), (3.0, 4.0), (-5.0, 0.5)):
            assert (type(found), found) == (float, expected)

    def test_others_after_floats(self):
        def total(*xs):
            return mg.dot(xs, xs)

        calls = (1.0, 2.0), (1.0, 2.0, 3.0), (1.0, 2.0), (3, 4.0), (5.0, 6.0), (True, 1.0), (7.0, 8.0)
        for found, expected in called(total, *calls):
            assert found == expected

    def test_named_arguments(self):
        fast = mg.compile(lambda x, y: x - y)
        assert [fast(5.0, 3.0), fast(7.0, 4.0), fast(y=5.0, x=9.0), fast(8.0, y=3.0)] == [2.0, 3.0, 4.0, 5.0]

    def test_the_last_call_is_known_whatever_it_was(self):
        fast = mg.compile(lambda x: x * 2.0)
        for argument in (1.0, 2.0, 3.0, Value(4.0), 5.0, 6.0):
            fast(argument)
            assert fast.last_call()[0].data == 2.0 * float(mg.detach(argument))

    def test_a_value_after_floats(self, weights):
        fast = mg.compile(lambda x: weights[0] * x)
        x = Value(3.0)
        results = [fast(2.0), fast(2.0), fast(x), fast(2.0)]
        assert [result.data for result in results] == [1.0, 1.0, 1.5, 1.0]
        results[2].backward()
        assert (weights[0].grad, x.grad) == (3.0, 0.5)


class TestWhatIsReadFromOutside:
    def test_numbers_of_values_are_those_of_now(self, weights):
        fast = mg.compile(lambda x: weights[0] * x + weights[1])
        assert [fast(1.0).data, fast(1.0).data] == [-1.0, -1.0]
        weights[0].data = 2.0
        assert fast(1.0).data == 0.5

    def test_a_replaced_value_is_noticed(self, weights):
        fast = mg.compile(lambda x: weights[0] * x)
        assert [fast(1.0).data, fast(1.0).data] == [0.5, 0.5]
        weights[0] = Value(4.0)
        fast(1.0).backward(3.0)
        assert weights[0].grad == 3.0

    def test_a_frozen_value_is_noticed(self, weights):
        fast = mg.compile(lambda x: weights[0] * x + weights[1])
        results = [fast(1.0), fast(1.0)]
        weights[0].requires_grad = False
        fast(1.0).backward()
        assert (weights[0].grad, weights[1].grad, results[1].data) == (0.0, 1.0, -1.0)

    def test_values_that_are_stored_and_newer(self):
        weights = [Value(0.1 * number) for number in range(20)]
        optimizer = mg.optim.SGD(weights, 0.5)
        fast = mg.compile(lambda x: weights[3] * x)
        for _ in range(4):
            optimizer.zero_grad()
            fast(2.0).backward()
            optimizer.step()
        assert fast(1.0).data == pytest.approx(0.3 - 4.0)


class TestResults:
    def test_backward_twice_and_graphs(self, weights):
        fast = mg.compile(lambda x: weights[0] ** 2 * x + mg.sin(weights[1]))
        fast(3.0)
        loss = fast(3.0)
        loss.backward()
        loss.backward()
        assert weights[0].grad == 6.0
        for weight in weights:
            weight.grad = 0.0
        fast(3.0).backward(create_graph=True)
        assert weights[0].grad.data == 3.0
        assert mg.gradient(weights[0].grad, weights) == [6.0, 0.0]
        assert weights[1].grad.data == math.cos(-1.5)

    def test_a_number_that_is_not_finite_is_what_eager_gives(self):
        fast = mg.compile(lambda x: mg.exp(x))
        assert [fast(0.0), fast(0.0)] == [1.0, 1.0]
        with pytest.raises(OverflowError):
            fast(1000.0)
        assert fast(0.0) == 1.0

    def test_a_gradient_that_is_not_finite_is_what_eager_gives(self, weights):
        fast = mg.compile(lambda x: mg.sqrt(weights[0] * x))
        assert [fast(2.0).data, fast(2.0).data] == [1.0, 1.0]
        root = fast(0.0)
        assert root.data == 0.0
        with pytest.raises(ZeroDivisionError):
            root.backward()

    def test_under_no_grad_there_is_no_gradient(self, weights):
        fast = mg.compile(lambda x: weights[0] * x)
        assert fast(1.0).requires_grad
        assert fast(1.0).requires_grad
        with mg.no_grad():
            assert not fast(1.0).requires_grad
        assert fast(1.0).requires_grad

    def test_derivatives_of_it(self):
        fast = mg.compile(lambda x: x**3)
        assert [fast(2.0), fast(2.0)] == [8.0, 8.0]
        assert mg.grad(fast)(2.0) == 12.0
        assert mg.grad(mg.grad(fast))(2.0) == 12.0
        assert fast(3.0) == 27.0

    def test_programs_that_were_given_up(self):
        fast = mg.compile(lambda x: x + 1.0)
        assert [fast(1.0), fast(2.0)] == [2.0, 3.0]
        fast.cache_clear()
        assert [fast(1.0), fast(2.0)] == [2.0, 3.0]
        assert fast.cache_info().programs == 1


class TestArraysWithoutCopies:
    """A result that is most of what a program computes is given as it is; so it must be nobody else's."""

    def test_a_result_and_the_argument_are_arrays_of_their_own(self):
        import numpy as np

        fast = mg.compile(mg.value_and_grad(lambda x: (x**2).sum()))
        x = np.arange(5.0)
        _, first = fast(x)
        first[:] = 7.0
        _, second = fast(x)
        assert (x.tolist(), second.tolist()) == ([0.0, 1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 4.0, 6.0, 8.0])
        assert first.tolist() == [7.0] * 5

    def test_an_array_that_is_returned_twice(self):
        import numpy as np

        def twice(x):
            y = x * 2.0
            return y, [y, y[:3]]

        first, (second, third) = mg.compile(twice)(np.arange(4.0))
        first[:] = 9.0
        assert (second.tolist(), third.tolist()) == ([0.0, 2.0, 4.0, 6.0], [0.0, 2.0, 4.0])
