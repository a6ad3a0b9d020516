"""Operations on arrays of symbols, which are written for all elements at once, against what eager code gives."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.tracing import derivatives

pytestmark = pytest.mark.slow(together=True)

# Small integers, on which float arithmetic is exact, with ties; 24 elements are enough to be written at once
X = np.array([[1.0, -2.0, 3.0, 4.0], [2.0, 2.0, -1.0, 1.0], [5.0, 1.0, 2.0, -3.0]]).repeat(2, axis=0)
Y = np.array([[1.0, 1.0, -2.0, 2.0], [4.0, 2.0, 1.0, 1.0], [-1.0, 2.0, 4.0, 2.0]]).repeat(2, axis=0)
COUNTS = np.arange(24).reshape(6, 4) % 5
WEIGHTS = [[Value(float(row - column)) for column in range(4)] for row in range(6)]
CONSTANT = mg.array(WEIGHTS)
MASK = COUNTS > 2


@pytest.fixture(autouse=True, scope="module")
def _however_few():
    """Gradients of few operations are written one by one, which is quicker; here they are not, either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derivatives, "_FEWEST_STEPS", 1)
        yield


OF_ELEMENTS = [
    lambda x, y: x + y,
    lambda x, y: x - y * 2,
    lambda x, y: 3.0 - x,
    lambda x, y: x / y + 1 / y + x / 3,
    lambda x, y: x**2 + x**3 - y**1,
    lambda x, y: 2.0**y + abs(x) ** 0.5,
    lambda x, y: -x + abs(y) + np.square(x),
    lambda x, y: x[:, None] * y[None],
    lambda x, y: x[::2, ::-1] * y[1::2] + x[0],
    lambda x, y: x.T @ y + (y.T @ x).T,
    lambda x, y: np.exp(x) * np.sin(y) + np.tanh(x) + np.arctan2(x, y),
    lambda x, y: np.log(abs(x)) + np.cbrt(y) + np.hypot(x, y),
    lambda x, y: np.rint(x / 2) * y,
    lambda x, y: np.floor(x / 2) * 1.0,
    lambda x, y: np.maximum(x, y) + np.minimum(x, 1.0) + np.clip(x, 0.0, 2.0),
    lambda x, y: np.maximum(x, x) * y,
    lambda x, y: np.maximum(x, COUNTS) * 1.0,
    lambda x, y: np.where(x > y, x, y * 2) + np.where(x >= 2, x, 0.0),
    lambda x, y: np.where(x > y, x, x) + np.where(MASK, x, y),
    lambda x, y: np.where((x > 0) & (y > 1) | np.logical_not(x < y), 1.0, y),
    lambda x, y: [x > y, x <= 2, (x < y) | (y < 1), x < COUNTS, x >= Y],
    lambda x, y: [np.copysign(y, x[0, 0]), (x > y) * COUNTS],
    lambda x, y: [np.where(x > y, 1.0, 1.0), [*x, [1.0, 2.0, 3.0, 4.0]], x * np.float32(2.0)],
    lambda x, y: (x > y) + (y > 1),
    lambda x, y: (x > y) * 2.0 + (x > y).sum(axis=0),
    lambda x, y: [(x > y).any(), (x > y).all(axis=1), ~(x > y)],
    lambda x, y: x * COUNTS + COUNTS - y * Y,
    lambda x, y: np.einsum("ij,kj->ki", x, y) + np.einsum("ij,kj", y, x) + np.einsum("ij, kj -> i", x, y[:6]),
    lambda x, y: [np.einsum("ij,ij", x, y), np.einsum("ij,kj,kl->il", x, y, x, optimize=True)],
    lambda x, y: np.einsum("nij,njk->nik", x.reshape(2, 3, 4), y.reshape(2, 4, 3)),
    lambda x, y: [np.einsum("ij,k->k", x, y[:, 0]), np.einsum("ij,ij->ij", x, y), np.einsum("ij,ij->i", x, COUNTS)],
    lambda x, y: [np.einsum("ii->i", x[:4]), np.einsum("ij,jj->i", x, y[:4]), np.einsum("...j,j->...", x, y[0])],
    lambda x, y: np.einsum("ij,j->i", x, [1.0, 2.0, 3.0, 4.0]) + np.einsum("ij,kj->i", x, y[:1]),
    lambda x, y: x * MASK + y * X.astype(np.float32),
    lambda x, y: COUNTS / y + x / COUNTS.clip(1),
    lambda x, y: x * CONSTANT + CONSTANT * y + CONSTANT,
    lambda x, y: CONSTANT * CONSTANT + x[0, 0],
    lambda x, y: np.where(x > 0, CONSTANT, y) + np.maximum(x, CONSTANT),
    lambda x, y: np.append(x.ravel(), 2.0) * 3,
    lambda x, y: np.append(x.ravel(), WEIGHTS[0]) * 3,
    lambda x, y: x * y[0, 0] + WEIGHTS[1][1] * x,
    lambda x, y: np.float64(2.0) * x + np.int64(3) * y,
    lambda x, y: [mg.sigmoid(x), mg.relu(y) + mg.softplus(x)],
    lambda x, y: x * 2**53 + x * 10**18,
    lambda x, y: x * np.full((6, 4), 2**60) + y * np.full((6, 4), 1 - 2**53),
    lambda x, y: x % 3.0 + y // 2.0,
]
OF_AXES = [
    lambda x, y: x.sum(),
    lambda x, y: [x.sum(axis=0), x.sum(axis=1, keepdims=True), np.sum(x * y, axis=(0, 1), keepdims=True)],
    lambda x, y: np.add.reduce(x) + np.add.reduce(y[:2]) + np.add.reduce(y[:3]),
    lambda x, y: (x[:, None] * y[None]).sum(axis=(0, 2)),
    lambda x, y: [x.T.sum(), x[::-1].sum(axis=0), x.T.sum(axis=1), np.asfortranarray(x).sum()],
    lambda x, y: [x.mean(), x.mean(axis=1), x.var(axis=0)],
    lambda x, y: [x.max(), x.max(axis=0), y.min(axis=1), (x * y).max(axis=1, keepdims=True)],
    lambda x, y: [np.broadcast_to(x[0], (6, 4)).max(axis=0), np.broadcast_to(x[0], (6, 4)).sum(axis=0)],
    lambda x, y: [np.stack([x[0]] * 6).max(axis=0), x.reshape(2, 12).max(axis=0), np.add.reduce(x.reshape(2, 12))],
    lambda x, y: [y[:, :2].prod(axis=1), y[:3].prod()],
    lambda x, y: [x.sum(axis=0, where=MASK), x.sum(initial=3.0), x[:, :1].sum(axis=1)],
    lambda x, y: [x @ y.T, x @ y[0], x[0] @ y.T, x.ravel() @ y.ravel(), x @ y.T[None]],
    lambda x, y: [x @ Y.T, COUNTS @ y.T, X.T @ y[:, 0], CONSTANT @ x.T],
    lambda x, y: [np.dot(x, y.T), np.dot(x[0], y[0]), np.dot(x, 2.0), np.dot(x[:, :1], y[:1]), np.inner(x, y)],
    lambda x, y: [x @ MASK.T, (x > y) @ y.T, x[:, :1] @ y[:1]],
    lambda x, y: [CONSTANT.sum(), CONSTANT.max() * x[0, 0]],
    lambda x, y: [x.cumsum(axis=0), np.diff(x), np.linalg.norm(x), np.trapezoid(y, axis=0)],
]


def shapes_of(result):
    """The shapes of the arrays in a result, and the classes of what is none."""
    if isinstance(result, (list, tuple)):
        return list(map(shapes_of, result))
    return (result.shape, result.dtype.kind) if isinstance(result, np.ndarray) else mg.Value


def parts_of(result):
    """The numbers and Values in a result, in order."""
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in parts_of(item)]
    return result.ravel().tolist() if isinstance(result, np.ndarray) else [result]


def numbers_of(result):
    """The numbers in a result, in order."""
    return [part.data if isinstance(part, Value) else float(part) for part in parts_of(result)]


def outcome(function, x, y):
    """What a function gives for arrays of Values: shapes, numbers, and the gradients of a weighted sum of these."""
    arrays = mg.array(x), mg.array(y)
    for value in CONSTANT.flat:
        value.zero_grad()
    result = function(*arrays)
    terms = [n % 7 * part for n, part in enumerate(parts_of(result), 1) if isinstance(part, Value)]
    if terms:
        sum(terms[1:], terms[0]).backward()
    gradients = [mg.gradients(array).tolist() for array in (*arrays, CONSTANT)]
    return shapes_of(result), numbers_of(result), gradients


@pytest.mark.slow
@pytest.mark.parametrize("function", [*OF_ELEMENTS, *OF_AXES])
@pytest.mark.unmeasured
def test_arrays_of_values_mean_what_they_mean_eagerly(function):
    shapes, values, gradients = outcome(function, X, Y)
    compiled_shapes, compiled_values, compiled_gradients = outcome(mg.compile(function, backend="numpy"), X, Y)
    assert compiled_shapes == shapes
    assert compiled_values == pytest.approx(values, rel=1e-14)
    for found, expected in zip(compiled_gradients, gradients, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("function", [*OF_ELEMENTS, *OF_AXES])
@pytest.mark.parametrize("y", [Y, mg.array(Y)], ids=["numbers", "mixed"])
def test_arrays_of_numbers_mean_what_they_mean_eagerly(function, y):
    expected, found = function(X, y), mg.compile(function, backend="numpy")(X, y)
    assert shapes_of(found) == shapes_of(expected)
    assert numbers_of(found) == pytest.approx(numbers_of(expected), rel=1e-14)


def rosenbrock(x, y):
    return (100.0 * (x[:, 1:] - x[:, :-1] ** 2) ** 2 + (1.0 - x[:, :-1]) ** 2).sum()


def nearest(x, y):
    return ((x[:, None] - y[None]) ** 2).sum(axis=2).min(axis=1).sum()


SCALAR = [
    rosenbrock,
    nearest,
    lambda x, y: (x @ y.T @ X).sum() + (x * x).max(),
    lambda x, y: np.log(np.exp(x - x.max()).sum()) + x.max(),
    lambda x, y: (np.where(x > y, x * y, y / x) * np.maximum(x, 0.0) * COUNTS).sum(),
    lambda x, y: ((x / Y) ** 2 * X / 4.0).sum() + (CONSTANT * x).sum() - (2.0 / y).sum(),
    lambda x, y: np.maximum(x * x, COUNTS).sum() + (x * y[0, 0]).sum() + (x**1.5 if X.min() > 0 else x).sum(),
    lambda x, y: (x * y).sum() * x.sum() + (x + x).sum(axis=0) @ (x + x).sum(axis=0),
    lambda x, y: sum((x * y).sum(axis=0)) + mg.dot(x.ravel(), y.ravel()),
    lambda x, y: (x * mg.detach(y)).sum() + np.rint(x).sum() + mg.detach(x * y).sum() + (3.0 - y[:1]).sum(),
    lambda x, y: sum([row.sum() * row[0] for row in x * y + 1.0]) + x[0, 0],
    lambda x, y: np.concatenate([x.ravel(), y.ravel() ** 2]).reshape(2, 24).prod(axis=0)[:3].sum(),
    lambda x, y: (x.sum(axis=1) + x.sum(axis=1)[::-1]) @ x.max(axis=1),
    lambda x, y: (np.append(x[0], y) * np.append(np.ones(4), y)).sum(),
]


@pytest.mark.slow
@pytest.mark.parametrize("function", SCALAR)
@pytest.mark.parametrize(
    "transform", [mg.value_and_grad, mg.grad, lambda f: mg.grad(lambda x, y: (mg.grad(f)(x, y) * y).sum())]
)
def test_derivatives_inside_mean_what_they_mean_eagerly(function, transform):
    derivative = transform(function)
    found, expected = mg.compile(derivative, backend="numpy")(X, Y), derivative(X, Y)
    assert numbers_of(found) == pytest.approx(numbers_of(expected), rel=1e-12)


def plain(term):
    """The sum of terms of neighbours, in a plain loop."""

    def function(xs, ys):
        total = 0.0
        for k in range(1, len(xs) - 1):
            total = total + term(k, xs, ys)
        return total

    return function


def in_iterations(xs, ys):
    total = 2.0 * xs[0]
    for k, (x, y) in enumerate(zip(xs, ys, strict=True)):
        total = total - x * y if k % 3 else y * x * 2 - total
    return total * total + total


LOOPS = [
    plain(lambda k, x, y: 100 * (x[k] - x[k - 1] ** 2) ** 2 + (x[k] - 1) ** 2),
    plain(lambda k, x, y: x[k] ** 3 - x[k] ** 4 / 8 + (x[k + 1] - x[k]) ** (3 if k % 2 else 4)),
    plain(lambda k, x, y: mg.where(x[k] > y[k], x[k] * y[k - 1], -x[k - 1]) + mg.where(y[k] > 0, x[k], x[k])),
    plain(lambda k, x, y: mg.dot([x[k], y[k], 2.0], [x[k + 1], x[k], x[k]]) * y[k] + mg.detach(x[k]) * x[k]),
    plain(lambda k, x, y: mg.maximum(x[k], 3.0) * mg.relu(y[k] - x[k]) + abs(x[k]) * y[0] + x[0]),
    plain(lambda k, x, y: (x[k] + x[k]) * (y[k] - y[k]) - (x[k] - (y[k] - x[k - 1])) + (x[k] if k != 7 else y[7])),
    lambda x, y: mg.dot(list(x), list(y)) + mg.dot(list(x), list(x)) * 2,
    lambda x, y: sum(x) * sum(y),
    in_iterations,
    lambda x, y: x[0],
    lambda x, y: sum(y),
]


@pytest.mark.parametrize("function", LOOPS)
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.unmeasured
def test_gradients_of_plain_loops_are_those_of_eager_code(function, order):
    rng = np.random.default_rng(7)
    x, y = rng.integers(-3, 4, 40).astype(float), rng.integers(1, 4, 40).astype(float)
    derivative = mg.grad(function)
    if order == 2:
        derivative = mg.grad(
            lambda x, y: sum([slope * other for slope, other in zip(mg.grad(function)(x, y), y, strict=True)])
        )
    found, expected = mg.compile(derivative, backend="numpy")(x, y), derivative(x, y)
    assert numbers_of(found) == numbers_of(expected)  # of small integers they are exact


def test_gradients_of_what_is_taken_are_those_of_eager_code():
    def function(x, indices):
        return sum([mg.take(list(x), index) * mg.take([x[2], *x[:k]], 0) for k, index in enumerate(indices)])

    x, indices = np.arange(30.0), np.arange(-30, 30, 2)
    found = mg.compile(mg.grad(function), backend="numpy")(x, indices)
    assert found.tolist() == mg.grad(function)(x, indices).tolist()


def test_gradients_by_the_weights_of_a_layer_are_those_of_eager_code():
    layer = mg.nn.Layer(4, 20, nonlin=False)

    def slopes(x):
        loss = sum([y * y * 0.5 for y in layer(x)])
        return mg.gradient(loss, layer.parameters())

    x = [1.0, -2.0, 0.5, 3.0]
    assert numbers_of(mg.compile(slopes, backend="numpy")(x)) == pytest.approx(numbers_of(slopes(x)))


def test_a_gradient_of_choices_after_other_choices_and_a_map_is_that_of_eager_code():
    def function(x):
        before = mg.where(x[0] > 0, x[0], 1.0) + sum(mg.vmap(lambda each: each * each)(x))
        return [before, *mg.grad(lambda y: mg.where(y[0] > 1, y[0] * y[1], y[1]))(x[:2])]

    x = np.arange(2.0, 42.0)
    assert numbers_of(mg.compile(function, backend="numpy")(x)) == numbers_of(function(x))


def test_gradients_of_a_long_chain_are_those_of_eager_code():
    def function(x):
        z = x[0]
        for _ in range(100):
            z = mg.tanh(z * x[1] + x[2])
        return z

    derivative, x = mg.grad(function), np.array([0.5, 0.9, 0.1])
    assert numbers_of(mg.compile(derivative, backend="numpy")(x)) == pytest.approx(numbers_of(derivative(x)))


def test_the_rules_of_ones_own_operation_are_asked_each_time(own_registry):
    asked = []

    def rule(g, out, x):
        asked.append(x)
        return g * 3.0

    triple = mg.primitive("triple", "3*", lambda x: 3.0 * x, rule)
    found = mg.compile(mg.grad(lambda x: sum([triple(each) * each for each in x])), backend="numpy")(np.arange(40.0))
    assert found.tolist() == (6.0 * np.arange(40.0)).tolist()
    assert len(asked) == 40


def test_derivatives_of_gradients_that_are_constant_in_part():
    def slopes(x, y):
        slope = mg.grad(lambda x: x.sum() + (x[0] * x[0]).sum())(x)
        return sum([np.arctan2(slope, y * n).sum() for n in range(1, 6)])

    slope = mg.grad(slopes, (0, 1))
    found, expected = mg.compile(slope, backend="numpy")(mg.array(X), Y), slope(mg.array(X), Y)
    assert numbers_of(found) == pytest.approx(numbers_of(expected))


def test_gradients_as_graphs_inside():
    def function(x):
        slopes = mg.gradient((x**3 * x).sum(), list(x.flat), create_graph=True)
        return [(np.array(slopes) * X.ravel()).sum(), mg.gradient(sum(slopes), x[0, 0])]

    compiled = mg.compile(function, backend="numpy")(mg.array(X))
    assert numbers_of(compiled) == pytest.approx(numbers_of(function(mg.array(X))))


def test_derivatives_by_nothing():
    compiled = mg.compile(mg.grad(lambda x, y: (y * y).sum()), backend="numpy")
    assert compiled([], X) == []


def test_a_gradient_of_what_comes_before_other_arrays():
    def function(x):
        return mg.grad(lambda x: [(x * 3.0).sum(), np.exp(x)][0])(x)

    assert numbers_of(mg.compile(function, backend="numpy")(X)) == pytest.approx(numbers_of(function(X)))


def test_an_array_that_escapes_is_refused_afterwards():
    kept = []

    def function(x):
        kept.append(x * 2.0)
        return x

    with pytest.raises(mg.compiler.TraceError):
        mg.compile(function, backend="numpy")(X)
    with pytest.raises(mg.compiler.TraceError):
        kept[0] + 1.0


def test_arrays_of_values_are_compared_and_chosen_from():
    def function(x, y):
        return [(x == y).any(), (x == x).all(), np.logical_and(x, y)]

    compiled = mg.compile(function, backend="numpy")(mg.array(X), mg.array(Y))
    assert numbers_of(compiled) == numbers_of(function(mg.array(X), mg.array(Y)))


def test_derivatives_by_values_that_are_closed_over():
    weights = mg.array(X)

    def loss(y):
        total = (weights * y).sum() ** 2 + (weights * weights).sum()
        return [*np.ravel(mg.gradient(total, list(weights.flat))), total]

    assert numbers_of(mg.compile(loss, backend="numpy")(Y)) == pytest.approx(numbers_of(loss(Y)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x[:, ::-1] * 2.0).sum(axis=1),
        lambda x: (x.T * 3.0)[:3].T.sum(axis=1),
        lambda x: np.add.reduce(x.reshape(2, 4, 3).T[::-1] * 1.0, axis=2)[:2].sum(axis=(0, 1), keepdims=True),
        lambda x: (x.reshape(2, 4, 3).T.sum(axis=2)[:, :2] * 3.0).sum(),
        lambda x: (x[::-1].T + x.T)[:2].sum(axis=1)[::-1].sum(),
    ],
)
def test_sums_have_the_order_that_they_have_eagerly(function):
    x = np.array([0.1 * 1.7**n * (-1) ** (n // 2) for n in range(24)]).reshape(6, 4)
    compiled, eager = mg.compile(function, backend="numpy")(mg.array(x)), function(mg.array(x))
    assert numbers_of(compiled) == numbers_of(eager)


def test_under_no_grad_no_gradient_flows_through_arrays():
    def function(x):
        with mg.no_grad():
            constant = x * x + np.where(x > 1, x, 2.0)
        return (constant * x).sum()

    assert mg.compile(mg.grad(function), backend="numpy")(X).tolist() == mg.grad(function)(X).tolist()


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", "ij,j->i", "ij->ij", "ij,ij->k"])
def test_a_contraction_that_numpy_refuses_is_refused(subscripts):
    fast = mg.compile(lambda x, y: np.einsum(subscripts, x, y))
    for run in (fast.__wrapped__, fast):
        with pytest.raises(ValueError, match=r"einstein|operand"):
            run(mg.array(X), mg.array(Y))


def test_what_an_element_raises_is_raised():
    for function, error in ((lambda x: (1.0 / (x - 5.0)).sum(), ZeroDivisionError), (lambda x: np.log(x), ValueError)):
        with pytest.raises(error):
            mg.compile(function, backend="numpy")(mg.array(X))


def test_an_operation_of_ones_own_comes_element_by_element(own_registry):
    seen = []

    def rule(g, out, x):
        seen.append(g)
        return g * 2.0

    double = mg.primitive("lanes_double", "double", lambda x: 2.0 * x, rule)
    slope = mg.compile(mg.grad(lambda x: np.frompyfunc(double, 1, 1)(x).sum()), backend="numpy")(X)
    assert slope.tolist() == [[2.0] * 4] * 6
    assert len(seen) == X.size


def test_an_index_that_depends_on_a_number_still_asks_about_one():
    compiled = mg.compile(lambda x: x * 2.0 if x[0, 0] > 0 else x + 1.0, backend="numpy")
    assert compiled(X).tolist() == (X * 2).tolist()
    assert compiled(-X).tolist() == (1 - X).tolist()


@pytest.mark.slow
@pytest.mark.unmeasured
def test_an_operation_on_an_array_runs_once_and_not_for_each_element():
    def function(x):
        for _ in range(30):
            x = np.tanh(np.where(x > 0.5, x * 0.9, x + 0.1)) / 2.0 + x
        return x

    def calls(size):
        """How many functions of Python run in the first call."""
        count, compiled, x = 0, mg.compile(function, backend="numpy"), np.linspace(0.0, 1.0, size)

        def seen(frame, event, argument):
            nonlocal count
            count += event == "call"

        before = sys.getprofile()
        sys.setprofile(seen)
        try:
            compiled(x)
        finally:
            sys.setprofile(before)
        return count

    calls(500)  # what is imported, and kept, for all functions, and for the source of this one
    assert calls(1000) - calls(500) < 30 * 500  # eagerly there are 240 operations for each element


STEPS = {
    "square": lambda a, c: a * a + c,
    "quotient": lambda a, c: a / (1.5 + c * c),
    "exponential": lambda a, c: np.exp(-np.abs(a)) * c,
    "tanh": lambda a, c: np.tanh(a - c),
    "choice": lambda a, c: np.where(a > c, a * 2.0, c - a),
    "maximum": lambda a, c: np.maximum(a, c * a),
    "mean": lambda a, c: a - a.mean(axis=0) + c,
    "sum": lambda a, c: a * a.sum(axis=1, keepdims=True) * 0.1 + c,
    "transposed": lambda a, c: (a.T @ a)[: len(a), :1] * 0.05 + a * c,
    "product": lambda a, c: a @ np.diag(c[0]) + a,
    "slices": lambda a, c: np.concatenate([a[1:], a[:1]]) * c,
    "reversed": lambda a, c: a[:, ::-1] + c * a,
    "power": lambda a, c: (a * a + 0.5) ** 1.5 - c,
    "clipped": lambda a, c: np.clip(a, -0.7, 0.9) * c + a,
}


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([(4, 4), (5, 4), (4, 8), (1, 20), (20, 1)]),
)
def test_random_programs_of_arrays_have_the_values_and_gradients_of_eager_code(names, seed, shape):
    random = np.random.default_rng(seed)
    constants = [random.normal(size=shape) for _ in names]

    def program(x):
        for name, constant in zip(names, constants, strict=True):
            if name == "transposed" and shape[0] > shape[1]:
                continue
            x = STEPS[name](x, constant)
        return (x * x).sum() * 0.5 + x.max()

    point = random.normal(size=shape)
    value, gradient = mg.compile(mg.value_and_grad(program), backend="numpy")(point)
    expected, slopes = mg.value_and_grad(program)(point)
    assert value == pytest.approx(expected, rel=1e-9)
    slopes = slopes.astype(float)
    np.testing.assert_allclose(gradient.astype(float), slopes, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())


@pytest.mark.parametrize("other", ["floats", "an argument", "ints", "Values", "a stack", "a vector"])
def test_products_of_many_terms_with_values_are_those_of_eager_code(other):
    rng = np.random.default_rng(0)
    w, v = (mg.array(rng.normal(size=(6, 40))) for _ in range(2))
    x = rng.normal(size=(40, 5))
    others = {
        "floats": lambda x: rng_numbers,
        "an argument": lambda x: x,
        "ints": lambda x: np.arange(200).reshape(40, 5),
        "Values": lambda x: v.T,
        "a stack": lambda x: np.stack([x, 2.0 * x]),
        "a vector": lambda x: x[:, 0],
    }
    rng_numbers = rng.normal(size=(40, 5))

    def f(x):
        return np.tanh(w @ others[other](x) * 0.01) + (v[0] @ v[1]) * x[0, 0]

    leaves = [*w.ravel(), *v.ravel()]
    found = [np.asarray(function(x)) for function in (mg.compile(f), f)]
    assert found[0].shape == found[1].shape
    np.testing.assert_allclose(mg.numbers(found[0]), mg.numbers(found[1]), rtol=1e-12, atol=1e-14)
    gradients = [mg.gradient(sum(each.ravel().tolist()), leaves) for each in found]
    np.testing.assert_allclose(*gradients, rtol=1e-9, atol=1e-12)


@given(st.integers(1, 6), st.integers(2, 12), st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_gradients_of_products_of_matrices_are_products_of_matrices(rows, length, columns, seed):
    random = np.random.default_rng(seed)
    x, y, known = (  # small integers, so that all is exact in any order
        random.integers(-3, 4, shape).astype(float) for shape in ((rows, length), (length, columns), (columns, length))
    )

    def f(x, y):
        return ((x @ y) ** 2).sum() + (x @ known.T).sum() * (known @ y).sum() + (x @ x.T).sum()

    def by_hand(x, y):
        by_x = 2 * (x @ y) @ y.T + known.sum(axis=0) * (known @ y).sum() + 2 * x.sum(axis=0)
        return by_x, 2 * x.T @ (x @ y) + known.sum(axis=0)[:, None] * (x @ known.T).sum()

    for found, expected in zip(mg.compile(mg.grad(f, argnums=(0, 1)))(x, y), by_hand(x, y), strict=True):
        assert np.array_equal(found, expected)

    def along(x, y):  # the second derivatives along ones
        return sum(each.sum() for each in mg.grad(f, argnums=(0, 1))(x, y))

    fast, slow = mg.compile(mg.grad(along, argnums=(0, 1))), mg.grad(along, argnums=(0, 1))
    for found, expected in zip(fast(x, y), slow(x, y), strict=True):
        assert np.array_equal(found, expected)
