"""no_grad inside of compiled functions: the same numbers, no gradient, and the same refusals."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value


def test_comparisons_and_choices_are_those_of_eager(backend):
    table = [Value(1.0), Value(5.0)]

    def f(x, index):
        with mg.no_grad():
            with mg.no_grad():
                larger = mg.where(x > 2.0, x, 2.0)
            taken = mg.take(table, index)
        return larger * taken * x

    for number, index in ((3.0, 0), (1.0, 1)):
        x, twin = Value(number), Value(number)
        fast = mg.compile(f, backend=backend)(x, index)
        slow = f(twin, index)
        fast.backward()
        slow.backward()
        assert (fast.data, x.grad) == (slow.data, twin.grad)
    assert [element.grad for element in table] == [2 * 9.0, 2 * 2.0]  # an element that is taken is itself


def test_functions_of_numpy_take_arrays_of_values_from_outside(backend):
    def run(compiled):
        x, weights = Value(1.5), mg.array([0.5, 2.0, 3.0])

        def f(x):
            with mg.no_grad():
                constants = np.exp(weights) + np.where(weights > 1.0, weights, x) + np.hypot(weights[0], 2.0)
            return (constants * weights * x).sum()

        result = mg.compile(f, backend=backend)(x) if compiled else f(x)
        result.backward()
        return [result.data, x.grad, *mg.gradients(weights).tolist()]

    assert run(compiled=True) == pytest.approx(run(compiled=False), rel=1e-15)
