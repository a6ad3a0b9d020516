"""That long dot products stay whole where there are many of them, and that nothing else comes of it."""

import random
import re

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.equals import in_columns
from micrograd.compiler.ir.program import Loop
from micrograd.compiler.passes import normalise as stage
from micrograd.compiler.passes.normalise import normalise
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.trace import trace
from micrograd.nn import Layer

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    """Keep dot products whole however few there are, and short ones, too: the numbers here are small integers."""
    monkeypatch.setattr(stage, "MANY", 0)
    monkeypatch.setattr(stage, "MANY_ON_A_LEVEL", 0)
    monkeypatch.setattr(stage, "IN_ORDER", 1)


def graph_of(function, *arguments):
    return normalise(in_columns(trace(Source(function, Structure((arguments, {}))))))


def numbers(seed, count):
    rng = random.Random(seed)
    return [Value(float(rng.randrange(-2, 3))) for _ in range(count)]


def matrix(seed, rows, columns):
    return [numbers(seed * 100 + row, columns) for row in range(rows)]


NEURONS = {width: Layer(width, 3, nonlin=False) for width in range(2, 6)}
for neurons in NEURONS.values():
    for position, leaf in enumerate(neurons.parameters()):
        leaf.data = float(position % 5 - 2)


def layer(w, x):
    return [mg.dot(row, x) for row in w]


def total(results):
    return sum(result * (1.0 + position % 3) for position, result in enumerate(results))


def assert_equal(function, leaves, backend):
    """Compiled and eager are equal bit for bit: results, and gradients of a sum of theirs, in the program and after."""
    several, one = (mg.compile(f, backend=backend) for f in (function, lambda: total(function())))
    for compiled in (several, one):
        compiled.program()  # else what raises an error while it is compiled might run eagerly
    found = []
    for f in (function, several, lambda: [one()], lambda: [total(function())]):
        for leaf in leaves:
            leaf.grad = 0.0
        results = f()
        (total(results) if len(results) > 1 else results[0]).backward()
        found.append([*(result.data for result in results), *(leaf.grad for leaf in leaves)])
    assert all(map(float.is_integer, found[0]))  # else nothing is exact
    if max(map(abs, found[0])) >= 2**52:
        raise OverflowError(f"too large to be exact: {max(map(abs, found[0]))}")
    assert (found[1], found[2]) == (found[0], found[3])


def test_a_recurrent_network_is_a_loop():
    w = matrix(1, 4, 4)

    def f(h):
        for _ in range(20):
            h = [mg.tanh(s) for s in layer(w, h)]
        return h

    assert len(graph_of(f, [0.5] * 4).whole) == 1
    kernels = mg.compile(f, backend="numpy").program([0.5] * 4).program.kernels
    assert [kernel.iterations for kernel in kernels if isinstance(kernel, Loop)] == [20, 19]


@pytest.mark.unmeasured
def test_layers_that_each_have_their_weights_stay_whole(backend):
    weights = [matrix(seed, 3, 3) for seed in range(6)]
    for value in (value for w in weights for row in w for value in row):
        value.data = abs(value.data) + 1.0  # so that relu lets all of it pass
    x = [Value(1.0), Value(2.0), Value(1.0)]

    def f():
        h = x
        for w in weights:
            h = [mg.relu(s) for s in layer(w, h)]
        return h

    assert len(graph_of(f).whole) == 1
    assert_equal(f, [*x, *(value for w in weights for row in w for value in row)], backend)


def test_a_loop_beside_what_is_whole_is_one(backend):
    w, x, y = matrix(1, 4, 3), numbers(2, 3), Value(1.0)

    def f():
        state = mg.dot(x, layer(w, x)[:3])
        for _ in range(20):
            state = mg.relu(state - y)
        return [state, *layer(w, x)]

    kernels = mg.compile(f, backend="numpy").program().program.kernels
    assert any(isinstance(kernel, Loop) for kernel in kernels)
    assert_equal(f, [*x, y, *(value for row in w for value in row)], backend)


def test_the_other_terms_of_a_sum_come_along(backend):
    """A bias before it, what is added after it, and a sum of which it is the second part, rounded on its own."""
    w, x, y = matrix(1, 4, 3), numbers(2, 3), numbers(3, 4)
    x[0].data, y[0].data = 3.0, 5.0

    def f():
        dots = layer(w, x)
        return [
            *(d + b for d, b in zip(dots, y, strict=True)),
            *(b - mg.dot(row, [1.0, *x[1:]]) for row, b in zip(w, y, strict=True)),
            *(b * b + mg.dot(row, x[::-1]) - 1.0 for row, b in zip(w, y, strict=True)),
            *NEURONS[3](x),
        ]

    leaves = [*x, *y, *(value for row in w for value in row), *NEURONS[3].parameters()]
    assert_equal(f, leaves, backend)


def test_squares_and_what_is_partly_frozen(backend):
    w, x, y = matrix(1, 4, 3), numbers(2, 3), numbers(3, 3)
    x[1].data = y[1].data = 2.0
    y[1].requires_grad = False

    def f():
        return [mg.dot(x, x), *layer(w, x), mg.dot(x, x) * mg.dot(y, y), *layer(w, y), mg.dot(w[0], w[0])]

    assert_equal(f, [*x, y[0], y[2], *(value for row in w for value in row)], backend)


@st.composite
def programs(draw):
    """A program of vectors of small integers: a function, and its leaves."""
    width = draw(st.integers(2, 5))
    seed = draw(st.integers(0, 99))
    leaves, vectors = [], []
    for position in range(draw(st.integers(1, 3))):
        made = numbers(seed + position, width)
        leaves += made
        vectors.append(made)
    vectors.append([float(position - 1) for position in range(width)])  # constants
    w = matrix(seed, draw(st.integers(2, 5)), width)
    leaves += [value for row in w for value in row]
    for leaf in leaves[1:]:
        leaf.requires_grad = draw(st.integers(0, 9)) > 0
    neurons = NEURONS[width]
    leaves += neurons.parameters()
    kinds = ["layer", "neurons", "reversed", "added", "relu", "mixed", "negated", "square", "shifted"]
    steps = draw(
        st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=6)
    )

    def f():
        known, results = [*vectors], [leaves[0] * 1.0]
        for kind, a, b in steps:
            x, y = known[a % len(known)], known[b % len(known)]
            if kind == "layer":
                found = layer(w[b % 2 :], x)
            elif kind == "neurons":
                found = neurons(x)
            elif kind == "reversed":
                found = [mg.dot(row, x[::-1]) + 1.0 for row in w]
            elif kind == "added":
                found = [s + t for s, t in zip(layer(w, x), y, strict=False)]
            elif kind == "relu":
                found = [mg.relu(s) for s in x]
            elif kind == "mixed":
                found = [*x[: width // 2], *y[width // 2 :]]
            elif kind == "negated":
                found = [-s for s in x]
            elif kind == "square":
                found = [mg.dot(x, x), mg.dot(x, y), mg.dot(y, x) - y[0]]
            else:
                found = [mg.dot(x, row) + mg.dot(x[:-1], row[1:]) for row in w]
            results += [number for number in found if isinstance(number, Value)]
            known.append((found * width)[:width])
        return results

    return f, [leaf for leaf in leaves if leaf.requires_grad]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@settings(max_examples=10)
@given(programs())
def test_random_programs_are_equal_bit_for_bit(backend, program):
    function, leaves = program
    try:
        assert_equal(function, leaves, backend)
    except OverflowError:
        reject()


def clipped(x):
    """Small integers stay small integers."""
    return np.minimum(np.maximum(x, -3.0), 3.0)


RECURRENCES = {
    "one product": lambda h, x, w, u: clipped(h @ w + x),
    "two products in a sum": lambda h, x, w, u: clipped(h @ w + x @ u),
    "two products, one after the other": lambda h, x, w, u: clipped(clipped(h @ w) @ u - x),
    "from the left": lambda h, x, w, u: clipped(w.T @ h.T).T + x,
    "the same matrix twice": lambda h, x, w, u: clipped(clipped(h @ w + x) @ w),
    "with itself": lambda h, x, w, u: clipped(h @ h.T) @ x,
    "gates": lambda h, x, w, u: clipped((h @ w) * (x @ u) + h),
    "columns apart": lambda h, x, w, u: clipped(np.concatenate([h[:, 1:], h[:, :1]], axis=1) @ w),
    "a part stays": lambda h, x, w, u: np.concatenate([h[:1], clipped(h[1:] @ w)], axis=0),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("step", RECURRENCES.values(), ids=RECURRENCES)
@settings(max_examples=3)
@given(
    st.integers(0, 99),
    st.integers(8, 20),
    st.sampled_from([(2, 3), (3, 4), (4, 4), (4, 5)]),
    st.booleans(),
    st.booleans(),
)
def test_products_of_matrices_in_loops(backend, step, seed, iterations, shape, is_scan, has_gradient):
    rows, columns = shape
    rng = np.random.default_rng(seed)
    sizes = [(columns, columns), (columns, columns), (rows, columns), (iterations, rows, columns)]
    numbers = [rng.integers(-1, 2, size).astype(float) for size in sizes]

    def f(w, u, h, xs):
        if is_scan:
            h, sums = mg.scan(lambda h, x: ((h := step(h, x, w, u)), h.sum()), h, xs)
            return (h * h).sum() + sum(sums)
        for x in xs:
            h = step(h, x, w, u)
        return (h * h).sum()

    derivative = mg.value_and_grad(f, argnums=(0, 1, 2, 3)) if has_gradient else f
    found, eager = mg.compile(derivative, backend=backend)(*numbers), derivative(*numbers)
    if not has_gradient:
        assert found == eager
    elif max(float(np.abs(np.asarray(each, dtype=float)).max()) for each in eager[1]) < 2**52:  # else nothing is exact
        assert found[0] == eager[0]
        assert all(map(np.array_equal, found[1], eager[1]))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_matrices_in_any_order(backend):
    rng = np.random.default_rng(0)
    order = [3, 1, 4, 1, 5, 0, 2, 0, 5, 3, 5, 2, 4, 3, 1]

    def f(ws, h, xs):
        for i in order:
            h = clipped(h @ ws[i] + xs[i])
        return (h * h).sum()

    numbers = [rng.integers(-1, 2, size).astype(float) for size in [(6, 4, 4), (4, 4), (6, 4, 4)]]
    derivative = mg.value_and_grad(f, argnums=(0, 1, 2))
    fast = mg.compile(derivative, backend=backend)
    found, eager = fast(*numbers), derivative(*numbers)
    assert found[0] == eager[0]
    assert all(map(np.array_equal, found[1], eager[1]))
    assert any(isinstance(kernel, Loop) for kernel in fast.program().program.kernels)


def test_layers_that_are_unlike_make_no_loop(backend):
    w, h = matrix(1, 3, 3), numbers(2, 3)
    functions = [mg.relu, abs, lambda s: s + 1.0, lambda s: mg.minimum(s, 3.0), lambda s: mg.maximum(s, -2.0)]
    functions += [
        lambda s: -s,
        lambda s: mg.minimum(s, h[0]),
        lambda s: mg.maximum(s, h[1]),
        mg.relu,
        lambda s: s * h[2],
    ]

    def f():
        state = h
        for function in functions:
            state = [function(s) for s in layer(w, [mg.minimum(mg.maximum(s, -3.0), 3.0) for s in state])]
        return state

    kernels = mg.compile(f, backend="numpy").program().program.kernels
    assert not any(isinstance(kernel, Loop) for kernel in kernels)
    assert_equal(f, [*h, *(value for row in w for value in row)], backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_backward_through_products_in_loops(backend):
    w, u, h = matrix(1, 3, 3), matrix(2, 3, 3), numbers(3, 3)

    def f():
        state = h
        for _ in range(12):
            sums = [s + t for s, t in zip(layer(w, state), layer(u, state[::-1]), strict=True)]
            state = [mg.minimum(mg.maximum(s, -3.0), 3.0) for s in sums]
        return state

    kernels = mg.compile(lambda: total(f()), backend=backend).program().program.kernels
    assert [kernel.iterations for kernel in kernels if isinstance(kernel, Loop)][:2] == [12, 11]
    assert_equal(f, [*h, *(value for row in (*w, *u) for value in row)], backend)


def test_kernels_of_products_that_stay_whole_are_those_of_their_terms(monkeypatch):
    """And far fewer numbers are looked at to find them: two matrices, not all products of their elements."""
    rng = np.random.default_rng(0)

    def loss(w, h, xs):
        h, _ = mg.scan(lambda h, x: (np.tanh(h @ w + x), 0.0), h, xs)
        return (h * h).sum()

    def kernels_of():
        fast = mg.compile(mg.value_and_grad(loss))
        result = fast(rng.normal(size=(5, 5)), rng.normal(size=(4, 5)), rng.normal(size=(20, 4, 5)))
        assert np.isfinite(result[1]).all()
        return [
            (type(kernel).__name__, kernel.iterations if isinstance(kernel, Loop) else 1)
            for kernel in fast.program().program.kernels
        ]

    whole = kernels_of()
    monkeypatch.setattr(stage, "MANY_ON_A_LEVEL", 1 << 60)
    assert kernels_of() == whole
    assert [iterations for kind, iterations in whole if kind == "Loop"] == [20, 19]


def test_the_gradient_of_a_factor_that_others_use_too_is_one_sum():
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(16, 16)) / 4, rng.normal(size=(8, 16)), rng.normal(size=(6, 8, 16))

    def operations(loss):
        derivative = mg.value_and_grad(loss, argnums=(0, 1, 2))
        fast = mg.compile(derivative)
        found, eager = fast(*arguments), derivative(*arguments)
        assert found[0] == pytest.approx(eager[0], rel=1e-12)
        for mine, other in zip(found[1], eager[1], strict=True):
            assert mine == pytest.approx(other, rel=1e-10, abs=1e-12)
        return int(re.search(r"(?m)^trace +\S+ +([\d,]+)", fast.explain(passes=True)).group(1).replace(",", ""))

    def last_state(w, h, xs):
        for x in xs:
            h = np.tanh(h @ w + x)
        return h.sum()

    def all_states(w, h, xs):
        seen = 0.0
        for x in xs:
            h = np.tanh(h @ w + x)
            seen = seen + (h * h).sum()
        return seen + h.sum()

    products = 6 * 8 * 16 * 16
    assert operations(all_states) - operations(last_state) < products / 2
