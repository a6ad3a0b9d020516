"""Sorting, and elements by indices that are not known, in compiled functions: against what eager code gives."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import micrograd as mg
from tests.compiler.runs import compiled_only

pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(5)
ROW, TIES = RANDOM.normal(size=7), RANDOM.integers(0, 4, 40).astype(float)
TABLE = RANDOM.normal(size=(4, 3))
WEIGHTS = np.arange(1.0, 100.0)
KNOWN = np.array([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5])


def weighted(array):
    """A number that depends on all elements, and on where they are."""
    array = np.ravel(array)
    return array @ WEIGHTS[: len(array)]


def in_place(x):
    x = x.copy()
    x.sort()
    return weighted(x)


def partitioned(x):
    x = x.copy()
    x.partition(3)
    return weighted(x[:4])


def masked(x):
    x = x.copy()
    x[x < 0] = 0.25
    x[x > 0.5] = x.max()
    return weighted(x)


def in_a_loop(x):
    for _ in range(5):
        x = np.sort(x) * 0.9 + 0.1 * x[np.argmax(x)]
    return weighted(x)


def in_a_scan(x):
    def step(state, _):
        state = np.sort(state * 1.1 - 0.2)
        return state, state[0]

    state, firsts = mg.scan(step, x, None, length=6)
    return weighted(state) + sum(firsts)


OF_ROWS = {
    "sort": lambda x: weighted(np.sort(x)),
    "sort, stable": lambda x: weighted(np.sort(x, kind="stable")),
    "sort in place": in_place,
    "the largest three": lambda x: np.sort(x)[::-1][:3].sum(),
    "partition in place": partitioned,
    "the smallest three": lambda x: weighted(np.partition(x, 2)[:3]),
    "argsort": lambda x: (np.argsort(x) * x).sum(),
    "ranks": lambda x: (np.argsort(np.argsort(x)) * x).sum(),
    "an order of others": lambda x: weighted((x * 2)[x.argsort()]),
    "an order of known numbers": lambda x: (KNOWN[np.argsort(x[:7])] * x[:7]).sum(),
    "argmax": lambda x: x[np.argmax(x)] * x[x.argmin()],
    "median": lambda x: np.median(x) * x[0],
    "quantiles": lambda x: weighted(np.quantile(x, [0.0, 0.3, 0.8, 1.0])) + np.percentile(x, 45),
    "take": lambda x: np.take(x, np.argmax(x)) + np.take(x, [0, 99], mode="clip").sum(),
    "a mask": masked,
    "in a loop": in_a_loop,
    "in a scan": in_a_scan,
    "a derivative inside": lambda x: weighted(mg.grad(lambda z: weighted(np.sort(z) ** 2))(x)),
    "a decision": lambda x: mg.cond(x[np.argmax(x)] > 1, lambda y: y * 2, lambda y: y * y, x[0]),
    "an if": lambda x: x[0] if np.argmax(x) > 2 else x.sum(),
}
OF_TABLES = {
    "sort": lambda x: np.sort(x, axis=0)[0] @ np.sort(x)[:3, 1] + np.sort(x, axis=None)[2],
    "argmax": lambda x: (np.argmax(x, axis=0) * x[0]).sum() + (np.argmin(x, axis=1, keepdims=True) * x).sum(),
    "argmax of all": lambda x: np.ravel(x)[np.argmax(x)] * np.argmax(x, keepdims=True)[0, 0],
    "medians": lambda x: np.median(x, axis=0).sum() * np.median(x, axis=(0, 1)) + np.median(x, 1, keepdims=True)[0, 0],
    "quantiles": lambda x: weighted(np.quantile(x, [0.3, 0.8], axis=0)) + weighted(np.percentile(x, 50, axis=1)),
    "no axes": lambda x: x[0, 0] * (2 + np.argsort(x[0, 0]).sum() + np.argmax(x[1, 1])),
    "a row": lambda x: weighted(x[np.argmax(x[:, 0])]) + weighted(x[:, np.argmin(x[0])]),
    "from behind": lambda x: weighted(x[..., np.argsort(x[0])]) + weighted(x[None, np.argsort(x[:, 0])]),
    "along an axis": lambda x: weighted(np.take_along_axis(x, np.argsort(x[::-1], axis=0)[:2], axis=0)) * x[1, 1],
    "along no axis": lambda x: weighted(np.take_along_axis(x, np.argsort(x, axis=None)[3:5], axis=None)),
    "known positions": lambda x: np.take_along_axis(x, np.array([[0, 2]] * 4), axis=1).sum() * x[np.argmax(x[:, 0]), 0],
    "one of each row": lambda x: x[np.arange(4), np.argmax(x, axis=1)].sum() * x[2, np.argmax(x[2])],
}


@pytest.fixture(autouse=True)
def _own_cache(own_cache):
    """What the first test compiles, the others find."""


def agree(function, *given, backend, argnums=0):
    """Both give the same value, and the same gradients."""
    derived = mg.value_and_grad(function, argnums)
    found, expected = compiled_only(derived, *given, backend=backend), derived(*given)
    for one, other in zip(found, expected, strict=True):
        assert one == pytest.approx(other, rel=1e-12, abs=1e-12)


def on_backends(names, backends, on_jax):
    """Each of them on the backends, and some on JAX, whose compiler takes long."""
    every = [(name, backend) for name in names for backend in backends] + [(name, "jax") for name in on_jax]
    return pytest.mark.parametrize(("name", "backend"), every)


@on_backends(OF_ROWS, ["llvm", "numpy"], ["sort", "argsort", "argmax", "quantiles", "take", "a mask", "in a scan"])
def test_rows(name, backend):
    agree(OF_ROWS[name], ROW, backend=backend)
    if backend != "jax":  # which has equal numbers in an order of its own
        agree(OF_ROWS[name], TIES, backend=backend)


@on_backends(OF_TABLES, ["llvm"], ["sort", "medians", "one of each row"])
def test_tables(name, backend):
    agree(OF_TABLES[name], TABLE, backend=backend)


def test_positions_along_an_axis_have_as_many_axes_as_the_elements():
    with pytest.raises(ValueError, match="same number of dimensions"):
        mg.compile(lambda x: np.take_along_axis(x, np.argsort(x[0]), axis=1).sum())(TABLE)


PICKED = {
    "an element": (lambda x, n: x[n] * 2, ROW, [1, -1, np.int64(3)]),
    "rows and columns": (lambda x, n: x[n].sum() * x[n, 0] * x[0, n] * weighted(x[:, n]), TABLE, [1, -2]),
    "an element of each row": (lambda x, n: weighted(x[np.arange(4), n]), TABLE, [np.array([0, 2, -1, 1])]),
    "rows at a table of places": (lambda x, n: weighted(x[n]), TABLE, [np.array([[0, 2], [2, 3]]), [1, 1, 3]]),
    "numbers and slices": (
        lambda x, n: x[n, n - 1] * x[1, n] + weighted(x[..., None, n]) + x[n, ..., 0],
        TABLE,
        [1, -1],
    ),
    "places and slices": (lambda x, n: weighted(x[None, :, n]) + weighted(x[..., n]), TABLE, [np.array([0, 2, 2])]),
    "a known array": (lambda x, n: KNOWN[n] * x[0], ROW, [2, -7]),
    "a large row": (lambda x, n: weighted(np.tile(x, (1, 30))[n]), TABLE, [2]),
    "a decision before": (lambda x, n: (x[0] if x[0, 0] > 9 else x)[n].sum(), TABLE, [1]),
}


@on_backends(PICKED, ["llvm", "numpy"], ["rows and columns", "an element of each row", "places and slices"])
@pytest.mark.unmeasured
def test_indices_are_arguments(name, backend):
    function, x, indices = PICKED[name]
    for index in indices:
        agree(function, x, index, backend=backend)


@pytest.mark.parametrize("index", [7, -8, np.array([1, 7])])
def test_what_is_out_of_range_is_an_error_as_without_the_compiler(index):
    fast = mg.compile(mg.grad(lambda x, n: np.sum(x[n])))
    fast(ROW, index * 0)
    with pytest.raises(IndexError, match="out of bounds"):
        fast(ROW, index)
    assert fast(ROW, index * 0 + 1)[1] > 0


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -0.0])
@pytest.mark.parametrize("name", ["sort", "argsort", "argmax", "median", "quantiles"])
def test_numbers_that_are_none_and_infinities(name, number, values):
    given = np.array([0.5, number, -1.0, 0.0, number, 2.0, 0.0])
    function, fast = OF_ROWS[name], mg.compile(OF_ROWS[name])
    fast(mg.array(ROW) if values else ROW)
    outcomes = []
    for each in (function, fast):
        leaves = mg.array(given)
        with np.errstate(invalid="ignore"):
            result = each(leaves if values else given)
        if values:
            result.backward()
        outcomes.append([result.data, *mg.gradients(leaves)] if values else [result])
    assert outcomes[0] == pytest.approx(outcomes[1], nan_ok=True)


@given(arrays_of.arrays(float, st.integers(1, 40), elements=st.integers(-3, 3).map(float)))
def test_equal_values_are_in_the_order_of_numpy(numbers):
    """So each gradient is that of the same Value."""
    for function, fast in BOTH:
        x, y = mg.array(numbers), mg.array(numbers)
        function(x).backward()
        fast(y).backward()
        assert mg.gradients(x).tolist() == mg.gradients(y).tolist()


BOTH = [
    (function, mg.compile(function, backend="numpy"))
    for function in (
        lambda x: weighted(np.sort(x)),
        lambda x: weighted(np.sort(x, stable=True)),
        lambda x: np.median(x) + x[np.argmin(x)],
        lambda x: weighted(np.percentile(x, [20, 70])),
    )
]


def test_positions_and_kinds_are_those_of_numpy():
    def f(x):
        return np.argsort(x, stable=True), np.sort(x), np.argmax(x), x[np.argmin(x)]

    for numbers in (TIES, TIES.astype(int), TIES.astype(np.int8), TIES.astype(np.float32)):
        found, expected = mg.compile(f)(numbers), f(numbers)
        assert [np.asarray(each).tolist() for each in found] == [np.asarray(each).tolist() for each in expected]
        assert [each.dtype for each in found[:2]] == [each.dtype for each in expected[:2]]


def test_second_derivatives_and_jacobians():
    for function, derivative in [
        (lambda x: weighted(np.sort(x) ** 3), mg.hessian),
        (lambda x: np.quantile(x**3, 0.4) * x[0], mg.hessian),
        (lambda x: np.sort(x)[1:] * np.median(x), mg.jacobian),
    ]:
        expected = derivative(function)(ROW)
        assert compiled_only(derivative(function), ROW, backend="llvm") == pytest.approx(expected, rel=1e-12)


def test_each_item_of_a_vmap_has_an_order_of_its_own():
    rows = RANDOM.normal(size=(50, 4))
    function = mg.vmap(lambda x: np.sort(x)[0] * np.sort(x)[1] + x[np.argmax(x)])
    assert compiled_only(function, rows, backend="llvm") == pytest.approx(function(rows), rel=1e-12)


def test_values_that_a_function_closes_over_are_picked():
    w = mg.array(KNOWN)
    fast = mg.compile(lambda x: (w[np.argsort(x)] * x).sum() + w[np.argmax(x)])
    for _ in range(2):  # the second call is quick
        for each in w:
            each.grad = 0.0
        fast(ROW).backward()
    expected = np.zeros(7)
    expected[np.argsort(ROW)] = ROW
    expected[np.argmax(ROW)] += 1
    assert mg.gradients(w) == pytest.approx(expected)


def test_what_numpy_refuses_is_refused_by_numpy():
    for wrong in (
        lambda x: np.sort(x, axis=1),
        lambda x: np.sort(x, kind="fast"),
        lambda x: np.quantile(x, 2.0),
        lambda x: np.percentile(x, -1),
        lambda x: np.median(x, axis=2),
    ):
        with pytest.raises((TypeError, ValueError, IndexError)) as expected:
            wrong(ROW)
        with pytest.raises(type(expected.value)) as raised:
            mg.compile(wrong)(ROW)
        assert str(raised.value) == str(expected.value)


def test_what_is_exported_picks_elements_and_does_not_sort(tmp_path):
    fast = mg.compile(lambda z, y: z[np.arange(2), y].sum() + z[0, y[0]])
    fast.export(tmp_path / "picked.c", np.ones((2, 3)), np.array([0, 1]))
    with pytest.raises(mg.TraceError, match="argsort, in a function that is exported"):
        mg.compile(lambda x: np.sort(x)[0]).export(tmp_path / "sorted.c", ROW)
