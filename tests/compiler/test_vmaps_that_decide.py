"""A vmap whose iterations call mg.cond, mg.switch or mg.while_loop: recorded once, and equal to eager code."""

import numpy as np
import pytest

import micrograd as mg

pytestmark = pytest.mark.slow(together=True)

X = np.linspace(-1.0, 2.0, 20)


def chosen(p, x):
    return np.sum(mg.vmap(lambda a: mg.cond(a > p, lambda: a * a * p, lambda: a - p))(x))


def unsafe_branches(p, x):
    """Each is only computed where it is chosen: the logarithm of the others would raise."""
    return mg.mean(mg.vmap(lambda a: mg.cond(a > 0.0, lambda v: mg.log(v) * p, lambda v: -v / (v - p), a))(x))


def several_results(p, x):
    def f(a, q):
        large, small = mg.cond(a > q, lambda: (a, q), lambda: (q, a))
        return {"large": large, "both": (small, large * q), "name": "same"}

    found = mg.vmap(f, (0, None))(x, p)
    return np.sum(found["large"] * found["both"][0]) + found["both"][1][3]


def nested(p, x):
    def row(a):
        return mg.mean(mg.vmap(lambda b: mg.cond(a > b, lambda: a * b, lambda: b * b * p))(x))

    return np.sum(mg.vmap(row)(x[:10]))


def with_a_loop(p, x):
    def f(a):
        return mg.while_loop(lambda s: s * s > 0.01, lambda s: 0.5 * p * s, a, limit=60)

    return np.sum(mg.vmap(f)(x) * x)


def with_a_switch(p, x):
    def f(a):
        return mg.switch(mg.floor(a + 1.0), [mg.sin, lambda v: p * v, lambda v: v + 1.0, lambda v: v], a)

    return np.sum(mg.vmap(f)(x))


def around_a_scan(p, x):
    def f(a):
        def step(s, v):
            return mg.cond(s > v, lambda: 0.5 * s, lambda: s + v * p), s

        last, every = mg.scan(step, a, [0.1 * number for number in range(12)])
        return last + mg.mean(every)

    return np.sum(mg.vmap(f)(x))


def of_rows(p, x):
    return np.sum(mg.vmap(lambda row: mg.cond(np.sum(row) > p, lambda: row * p, lambda: row * row))(x.reshape(10, 2)))


def of_lists(p, x):
    rows = [{"value": number, "weight": 2.0 * number} for number in x]
    return sum(mg.vmap(lambda row: mg.cond(row > p, lambda: row, lambda: row * p))([row["value"] for row in rows]))


def after_a_decision(p, x):
    x = mg.cond(np.sum(x) > p, lambda: x * p, lambda: x)
    return chosen(p, np.array(x))


FUNCTIONS = [
    *(chosen, unsafe_branches, several_results, nested, with_a_loop, with_a_switch, around_a_scan, of_rows, of_lists),
    after_a_decision,
]
ON_JAX = [chosen, several_results, with_a_loop, after_a_decision]  # XLA takes seconds for each


@pytest.mark.parametrize(
    ("function", "backend"),
    [
        *((function, backend) for backend in ("llvm", "numpy") for function in FUNCTIONS),
        *(pytest.param(function, "jax", marks=pytest.mark.slow) for function in ON_JAX),
    ],
)
def test_numbers_are_those_of_eager_code(function, backend):
    eager = mg.value_and_grad(function, (0, 1))
    fast = mg.compile(eager, backend=backend)
    for p, x in ((0.5, X), (0.05, X[::-1].copy()), (1.5, 0.3 * X), (0.05, X)):
        value, slopes = fast(p, x)
        expected, expected_slopes = eager(p, x)
        assert value == pytest.approx(expected, rel=1e-12)
        for found, other in zip(slopes, expected_slopes, strict=True):
            assert np.allclose(found, other, 1e-11, 1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("function", [chosen, nested, with_a_loop])
@pytest.mark.unmeasured
def test_second_derivatives(function):
    found = mg.compile(mg.hessian(function, 1))(0.5, X[:10])
    assert np.allclose(found, mg.hessian(function, 1)(0.5, X[:10]), 1e-10, 1e-12)


@pytest.mark.parametrize("function", [chosen, with_a_loop])
def test_more_iterations_are_no_more_code(function):
    fast = mg.compile(mg.value_and_grad(function))
    sizes = [0]
    for length in (20, 40, 80):
        x = np.linspace(-1.0, 2.0, length)
        assert fast(0.5, x) == pytest.approx(mg.value_and_grad(function)(0.5, x), rel=1e-12)
        sizes.append(fast.cache_info().code_bytes)
    first, second, third = np.diff(sizes)
    assert first > 0
    assert max(second, third) <= first


def test_gradients_of_values():
    w = [mg.Value(0.4), mg.Value(-1.5)]

    def function(x):
        return mg.mean(mg.vmap(lambda a: mg.cond(a > w[0], lambda: w[1] * a, lambda: w[0] * a * a))(x))

    fast = mg.compile(function)
    for x in (X, 0.3 * X):
        found, expected = (mg.gradient(each(x), w) for each in (fast, function))
        assert found == pytest.approx(expected, rel=1e-12)


def test_a_function_that_counts_runs_for_each_item():
    calls = []

    def f(a):
        calls.append(None)
        return mg.cond(a > 0.5, lambda: a * len(calls), lambda: a)

    assert mg.compile(lambda x: [*mg.vmap(f)(x), len(calls)])(X[:12].tolist())[-1] == 12


def test_errors_are_those_of_eager_code():
    def f(a):
        return mg.cond(a > 0.5, lambda: mg.log(a - 1.0), lambda: a)

    fast = mg.compile(mg.vmap(f))
    assert np.allclose(fast(0.2 * X), mg.vmap(f)(0.2 * X))
    with pytest.raises(ValueError, match="log"):
        fast(X)
    with pytest.raises(ValueError, match="length"):
        mg.compile(mg.vmap(lambda a, b: mg.cond(a > b, lambda: a, lambda: b)))(X, X[1:])


def test_floats_of_python_and_of_numpy_are_alike():
    fast = mg.compile(mg.vmap(lambda v: mg.cond(v > 0.5, lambda: mg.log(v), lambda: v - 1.0)))
    for x in (X, -X):
        assert np.allclose(fast(x), [np.log(v) if v > 0.5 else v - 1.0 for v in x])
    assert not fast.has_paths()
