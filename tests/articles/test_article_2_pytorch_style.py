"""The article on a PyTorch-style framework: arrays as variables, dot, relu and a sum, and higher orders."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value


@pytest.fixture
def matrices():
    return mg.array(np.arange(-4, 4).reshape(2, 4)), mg.array(np.arange(-2, 2).reshape(4, 1))


def network(first, second):
    """The example: the sum of the relu of a matrix product."""
    return mg.relu(first @ second).sum()


class TestExample:
    def test_the_numbers_on_the_way(self, matrices):
        first, second = matrices
        product = first @ second
        assert mg.numbers(product).tolist() == [[10.0], [2.0]]
        assert mg.numbers(mg.relu(product)).tolist() == [[10.0], [2.0]]
        assert network(first, second).data == 12.0

    def test_the_gradients_are_those_of_the_article(self, matrices):
        first, second = matrices
        network(first, second).backward()
        assert mg.gradients(first).tolist() == [[-2.0, -1.0, 0.0, 1.0], [-2.0, -1.0, 0.0, 1.0]]
        assert mg.gradients(second).tolist() == [[-4.0], [-2.0], [0.0], [2.0]]

    def test_the_same_gradients_come_from_a_function_of_plain_arrays(self):
        first, second = np.arange(-4.0, 4.0).reshape(2, 4), np.arange(-2.0, 2.0).reshape(4, 1)
        of_first, of_second = mg.grad(network, argnums=(0, 1))(first, second)
        assert of_first.tolist() == [[-2.0, -1.0, 0.0, 1.0], [-2.0, -1.0, 0.0, 1.0]]
        assert of_second.tolist() == [[-4.0], [-2.0], [0.0], [2.0]]


class TestHigherOrders:
    def test_a_gradient_with_a_graph_is_differentiated_again(self, matrices):
        first, second = matrices
        network(first, second).backward(create_graph=True)
        slopes = np.array([value.grad for value in first.ravel()])
        assert all(isinstance(slope, Value) for slope in slopes)
        assert mg.numbers(slopes).tolist() == [-2.0, -1.0, 0.0, 1.0] * 2
        # Each row of slopes is the second matrix, so the sum of their squares is twice that of its elements.
        again = mg.gradient((slopes * slopes).sum(), second.ravel())
        assert again.tolist() == [4 * number for number in (-2.0, -1.0, 0.0, 1.0)]
