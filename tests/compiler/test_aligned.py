"""What belongs to an iteration of a loop is computed in it, from the first iteration to the last."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.compiler.test_late import loops

pytestmark = pytest.mark.slow(together=True)


def network(depth, count, readout, seed=1):
    """Layers of three numbers, each of which reads the one below it; and what is read out in each iteration."""
    rng = random.Random(seed)
    inputs = [[rng.uniform(-1, 1) for _ in range(3)] for _ in range(count)]
    weights = [[[Value(rng.uniform(-1, 1)) for _ in range(3)] for _ in range(2)] for _ in range(depth)]

    def f(w):
        states, total = [[0.1, 0.2, 0.3]] * depth, 0.0
        for x in inputs:
            for layer, (own, below) in enumerate(weights):
                states[layer] = x = [
                    mg.tanh(a * h + b * y * w) for a, b, h, y in zip(own, below, states[layer], x, strict=True)
                ]
            total += readout(x)
        return total

    return f, [each for layer in weights for row in layer for each in row]


def logarithm(x):
    """What takes longer to compute than the next state does."""
    return mg.log(2 + sum(mg.exp(each * each) for each in x))


@pytest.mark.parametrize("depth", [1, 3])
def test_a_loop_has_all_iterations_of_a_deep_network(depth):
    f, _ = network(depth, 30, logarithm)
    run = mg.compile(f, backend="numpy").program(Value(0.5))
    (forward, _), (backward, _) = loops(run)
    assert forward >= 29  # a first state that is a constant may be another thing than the others
    assert backward >= 28


@given(
    depth=st.integers(1, 3),
    count=st.integers(9, 18),
    kind=st.sampled_from(["sum", "logarithm", "last", "some"]),
    seed=st.integers(0, 99),
)
@settings(max_examples=5)
def test_deep_networks_have_the_numbers_of_eager(depth, count, kind, seed):
    steps = []

    def some(x):  # the readout of iterations that are drawn
        steps.append(0)
        return logarithm(x) if (len(steps) % count * 7 + seed) % 5 else x[0]

    readout = {"sum": sum, "logarithm": logarithm, "last": lambda x: x[-1], "some": some}[kind]
    f, leaves = network(depth, count, readout, seed)
    w = Value(0.5)
    expected = f(w)
    slopes = [float(slope) for slope in mg.gradient(expected, [w, *leaves])]
    for backend in "numpy", "llvm":
        steps.clear()
        found = mg.compile(f, backend=backend)(w)
        assert found.data == pytest.approx(expected.data, rel=1e-13)
        np.testing.assert_allclose([float(slope) for slope in mg.gradient(found, [w, *leaves])], slopes, rtol=1e-9)


def test_the_first_of_what_a_sum_from_zero_adds_up_is_like_the_others():
    """It is 0 + what was first read out, in Python: still this is no part of the outer sum."""

    def f(x, w):
        total, h = 0.0, x[0]
        for _ in range(20):
            h = mg.tanh(h * w)
            total += x[1] * h + x[2] * w
        return total

    x, w = [Value(0.5), Value(0.25), Value(-1.5)], Value(0.75)
    fast = mg.compile(f, backend="numpy")
    assert fast(x, w).data == pytest.approx(f(x, w).data, rel=1e-14)
    assert loops(fast.program(x, w))[0][0] >= 19
    zeros = [Value(-0.0)] * 3
    for sums in (lambda a: a[0] * 1.5 + a[1] * 2.5), (lambda a: sum([a[0] * 1.5 + a[1], a[1] * 2.5 + a[2]])):
        assert str(mg.compile(sums)(zeros).data) == str(sums(zeros).data)
