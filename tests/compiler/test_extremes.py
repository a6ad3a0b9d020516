"""The largest and smallest elements of arrays, which are reductions, against the choices of eager code, bit for bit."""

import math
import sys

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.ir.program import Loop

pytestmark = pytest.mark.slow(together=True)

NAN, INF = math.nan, math.inf
ARRAYS = {
    "different": [3.0, -1.0, 4.0, 1.5, -9.0, 2.0, 6.0, -5.0] * 3 + [6.5, -9.5],
    "equal": [2.0] * 26,
    "several of the largest": [1.0, 5.0, -5.0, 5.0, -5.0] * 5 + [5.0],
    "zeros, of which -0 is the first": [-0.0, 0.0] * 13,
    "zeros, of which 0 is the first": [0.0, -0.0] * 13,
    "-0 alone": [-0.0] * 26,
    "-0 above others": [-1.0, -2.0, -0.0, 0.0, -0.0] * 5 + [-3.0],
    "-0 below others": [1.0, 2.0, -0.0, 0.0, -0.0] * 5 + [3.0],
    "infinite": [1.0, INF, -INF, 2.0, INF, -INF] * 4 + [0.0, 1.0],
    "-inf alone": [-INF] * 26,
    "NaN first": [NAN] + [1.0, 2.0, -1.0, 2.0, -1.0] * 5,
    "NaN between": [9.0, -9.0] + [1.0] * 4 + [NAN] + [2.0, -2.0, 2.0] * 6 + [1.0],
    "NaN last": [1.0, 2.0, -1.0, 2.0, -1.0] * 5 + [NAN],
    "NaN alone": [NAN] * 26,
}
FUNCTIONS = {
    "max": lambda x: x.max(),
    "min": lambda x: x.min() * -2.0,
    "of columns": lambda x: (x.reshape(-1, 1).max(axis=0) * 3.0 - np.min(x.reshape(26, 1), axis=0)).sum(),
    "of two axes": lambda x: x.reshape(13, 2).max(axis=(0, 1), keepdims=True).sum() - x.reshape(13, 2).T[0].min(),
    "of what was picked": lambda x: np.maximum(x, 0.5 * x).max() * 2.0,
    "hidden": lambda x: mg.where(x.max() > 1.5, 1.0, x[0]) + mg.where(x.min() < -1.5, x[1], 2.0),
}


def bits(parts):
    """Numbers, each told apart from all others; one NaN is like another."""
    return [float(part).hex() if part == part else "nan" for part in parts]


def outcome(function, numbers):
    """The bits of the value and of the gradient, or the class of what is raised."""
    try:
        with np.errstate(invalid="ignore"):
            value, gradient = function(np.array(numbers))
    except (ArithmeticError, ValueError) as error:
        return type(error)
    return bits([value, *gradient.tolist()])


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.unmeasured
def test_the_first_of_the_largest_has_the_number_and_the_gradient_as_eagerly(backend, name):
    eager = mg.value_and_grad(FUNCTIONS[name])
    fast = mg.compile(eager, backend=backend)
    expected = {about: outcome(eager, numbers) for about, numbers in ARRAYS.items()}
    assert {about: outcome(fast, numbers) for about, numbers in ARRAYS.items()} == expected


def test_the_largest_of_many_is_no_loop_over_them(backend):
    numbers = np.random.default_rng(0).permutation(12_000) / 8.0 + 1.0

    def spread(x):
        return x.max() ** 2 - x.min() * x[0]

    fast = mg.compile(mg.value_and_grad(spread), backend=backend)
    assert outcome(fast, numbers) == outcome(mg.value_and_grad(spread), numbers)
    kernels = fast.program(numbers).program.kernels
    assert len(kernels) < 40
    assert not any(isinstance(kernel, Loop) for kernel in kernels)


@pytest.mark.unmeasured
def test_many_columns_and_few_elements_are_compared_one_by_one_in_vectors(backend):
    numbers = np.random.default_rng(0).integers(-3, 4, (20, 24)).astype(float)

    def function(x):
        return (x.max(axis=0) * np.arange(24)).sum() + (x[:8, :2].min(axis=0) * [2.0, 3.0]).sum()

    found, expected = (
        mg.compile(mg.value_and_grad(function), backend=backend)(numbers),
        mg.value_and_grad(function)(numbers),
    )
    assert found[0] == expected[0]
    assert found[1].tolist() == expected[1].tolist()


def test_values_get_the_gradient_of_the_largest(backend):
    """Each pass is verified, and the program differentiates the number as the sum."""
    values = mg.array([3.0, -2.0, 5.0, 5.0, -2.0] * 5)

    def loss():
        return (2.0 * values).max() * values[1] + (values * values).min()

    expected, found = [], []
    for function, results in ((loss, expected), (mg.compile(loss, backend=backend, verify=True), found)):
        for value in values:
            value.zero_grad()
        result = function()
        result.backward()
        results += [result.data, *mg.gradients(values).tolist()]
    assert bits(found) == bits(expected)


@pytest.mark.unmeasured
def test_derivatives_of_higher_order(backend):
    numbers = np.array([2.0, -1.0, 3.0, 3.0, 1.0] * 4)

    def function(x):
        return (x * x * x).max() * x[0] + x.min() ** 2

    np.testing.assert_array_equal(
        mg.compile(mg.hessian(function), backend=backend)(numbers), mg.hessian(function)(numbers)
    )
    fast = mg.compile(lambda x: mg.jvp(function, (x,), (x + 1.0,)), backend=backend)
    assert fast(numbers) == mg.jvp(function, (numbers,), (numbers + 1.0,))


def test_a_decision_on_the_largest_is_exact(backend):
    """Rounding cannot have decided, even where both are equal. So the program answers, and nothing runs eagerly."""

    def function(x):
        return x.sum() * 2.0 if x.max() > 2.0 else x.min() * 1.0

    calls = []
    fast = mg.compile(mg.value_and_grad(function), backend=backend)
    numbers = np.array([2.0, -1.0, 1.0, 2.0] * 5)
    expected = outcome(mg.value_and_grad(function), numbers)
    assert outcome(fast, numbers) == expected
    before = sys.getprofile()
    sys.setprofile(lambda frame, *_: calls.append(frame.f_code))
    try:
        found = outcome(fast, numbers)
    finally:
        sys.setprofile(before)
    assert found == expected
    assert function.__code__ not in calls


@pytest.mark.slow
def test_training_on_the_largest():
    """JAX differentiates the loss itself."""
    histories = []
    for compiled in (False, "llvm", "jax"):
        weights = [mg.Value(0.1 * number) for number in range(20)]

        def loss(x, y, weights=weights):
            return ((mg.array(weights) * x).max() - y) ** 2

        examples = [([(-1.0) ** n * (k + 1) for n in range(20)], 1.0 + k) for k in range(4)]
        histories.append(
            mg.fit(
                loss, examples, mg.optim.SGD(weights, 0.01), epochs=3, compile=compiled, batch_size=2, shuffle=False
            ).epochs
        )
    assert histories[1] == pytest.approx(histories[0], rel=1e-12)
    assert histories[2] == pytest.approx(histories[0], rel=1e-6)
