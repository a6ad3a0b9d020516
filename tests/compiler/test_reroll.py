"""That matrices are found: what kernels scalar programs become."""

import math
import random
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.ir.program import Access, Reduction, Segment

pytestmark = pytest.mark.slow(together=True)


def kernels(f, *arguments):
    """The kernels of a function with its gradient: (kind, rows, columns, terms), most flops first."""
    fast = mg.compile(f, backend="numpy")
    found = fast.program(*arguments).program.kernels
    return [(k.kind, k.rows, k.columns, k.terms) for k in sorted(found, key=lambda k: -k.flops)]


def layer(inputs, outputs):
    random.seed(0)
    return [[Value(random.random()) for _ in range(inputs)] for _ in range(outputs)]


def test_a_layer_is_one_matrix_vector_kernel_each_way():
    w, x = layer(5, 7), [Value(float(i)) for i in range(5)]
    found = kernels(lambda: [mg.dot(row, x) for row in w])
    assert ("matrix-vector", 1, 7, 5) in found  # w @ x
    assert ("matrix-vector", 1, 5, 7) in found  # the gradient of x: w.T @ gradient
    assert [kind for kind, *_ in found if kind == "dot"] == []


def test_a_batch_is_a_product_of_matrices():
    model = mg.nn.MLP(4, [8, 3])
    points = [[random.random() for _ in range(4)] for _ in range(100)]

    found = kernels(lambda: sum(sum(o * o for o in model(point)) for point in points))
    shapes = {(rows, columns) for kind, rows, columns, _ in found if kind == "matrix product"}
    assert {(100, 8), (100, 3)} <= shapes
    assert {("dot", 1, 100, 3), ("sum", 1, 1, 100)} <= set(found)  # the squares
    assert [kernel for kernel in found if kernel[0] == "dot" and kernel[3] != 3] == []
    assert len(found) < 25


def test_a_gradient_of_weights_is_a_product_over_the_batch():
    w = layer(4, 8)
    points = [[random.random() for _ in range(4)] for _ in range(10)]
    found = kernels(lambda: sum(mg.tanh(mg.dot(row, p)) for p in points for row in w))
    assert ("matrix product", 8, 4, 10) in found


def test_causal_sums_of_all_lengths_lie_together():
    n, width = 6, 4
    shares, tokens, mix = layer(n, n), layer(width, n), layer(width, width)

    def loss():
        mixed = [[mg.dot(shares[t][: t + 1], [x[j] for x in tokens[: t + 1]]) for j in range(width)] for t in range(n)]
        return sum(mg.tanh(mg.dot(row, x)) for x in mixed for row in mix)

    # The sums have 1 to 6 terms, and what uses them sees one matrix
    assert ("matrix product", n, width, width) in kernels(loss)


def test_nothing_is_computed_for_what_needs_no_gradient():
    w = layer(5, 7)
    constant = [[Value(v.data, requires_grad=False) for v in row] for row in w]
    x = [Value(1.0) for _ in range(5)]
    with_gradient = kernels(lambda: sum(mg.tanh(mg.dot(row, x)) for row in w))
    without = kernels(lambda: sum(mg.tanh(mg.dot(row, x)) for row in constant))
    assert ("product", 7, 5, 1) in with_gradient  # the gradient of w, an outer product
    assert not [k for k in without if k[:3] == ("product", 7, 5)]


def test_the_explanation_names_kernels_shapes_and_times():
    model = mg.nn.MLP(4, [8, 3])
    fast = mg.compile(lambda x: mg.logsumexp(model(x)), backend="numpy")
    fast([1.0, 2.0, 3.0, 4.0])
    text = fast.explain()
    assert text == repr(text) == str(text)
    assert text.startswith(str(fast.program().program))
    for part in ("scalar operations became", "kernels", "flops", "bytes", "matrix-vector", "1x8x5", "trace", "reroll"):
        assert part in text
    summary = mg.compile(lambda x: x * mg.sin(x) + x, backend="numpy").explain(2.0).splitlines()[0]
    assert summary == "3 scalar operations became 2 kernels: 3 flops, 24 bytes"


FROZEN = [Value(index + 1.5, requires_grad=False) for index in range(4)]


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x, y, z, v: mg.exp(x - 0.0), ["exp 1"]),
        (lambda x, y, z, v: mg.exp(x + 0.0), ["copy 1", "exp 1"]),
        (lambda x, y, z, v: mg.exp(sum([x, y, z])), ["sum 3", "exp 1"]),
        (lambda x, y, z, v: x + (y + (z + v)), ["sum 2", "sum 2", "sum 2"]),
        (lambda x, y, z, v: ((x + y) - z) + v, ["sum 4"]),
        (lambda x, y, z, v: -(x * y) + z, ["matrix-vector 2"]),
        (lambda x, y, z, v: -(x + y) + z, ["sum 2", "sum 2"]),
        (lambda x, y, z, v: sum([x * y]) + z, ["matrix-vector 2"]),
        (lambda x, y, z, v: z + sum([x * y]), ["product 1", "sum 2"]),
        (lambda x, y, z, v: x - (y - z * v), ["matrix-vector 2", "sum 2"]),
        (lambda x, y, z, v: (x + y) * z, ["sum 2", "product 1"]),
        (lambda x, y, z, v: mg.exp(x + y) + (x + y), ["sum 2", "exp 1", "sum 2"]),
        (lambda x, y, z, v: [x + y, (x + y) + z], ["sum 2", "sum 2"]),
        (lambda x, y, z, v: (-x) * (-y), ["product 1"]),
        (lambda x, y, z, v: y * -(x - z - y), ["sum 3", "product 1"]),
        (lambda x, y, z, v: mg.exp(-x), ["copy 1", "exp 1"]),
        (lambda x, y, z, v: mg.detach(mg.maximum(mg.maximum(x, y), z)), ["maximum 3", "detach 1"]),
        (lambda x, y, z, v: mg.detach(mg.maximum(x, -mg.maximum(y, z))), ["maximum 2", "maximum 2", "detach 1"]),
        (lambda x, y, z, v: mg.maximum(mg.maximum(x, y), z), ["maximum 1", "maximum 1"]),
        (lambda x, y, z, v: mg.dot([x, y], [z, v]) + 0.0, ["matrix-vector 2"]),
        (lambda x, y, z, v: x / 4, ["product 1"]),
        (lambda x, y, z, v: x / 0.25, ["product 1"]),
        (lambda x, y, z, v: x / 3, ["div 1"]),
        (lambda x, y, z, v: x / 1e-305, ["div 1"]),
        (lambda x, y, z, v: x / 1e305, ["div 1"]),
        (lambda x, y, z, v: x / y, ["div 1"]),
        (lambda x, y, z, v: x**1, []),
        (lambda x, y, z, v: x**2, ["product 1"]),
        (lambda x, y, z, v: x**3, ["product 1", "product 1"]),
        (lambda x, y, z, v: x**-1, ["div 1"]),
        (lambda x, y, z, v: x**0.5, ["sqrt 1"]),
        (lambda x, y, z, v: x**-0.5, ["pow 1"]),
        (lambda x, y, z, v: x**2.5, ["pow 1"]),
        (lambda x, y, z, v: 2**x, ["pow 1"]),
        (lambda x, y, z, v: +x, []),
    ],
)
def test_formulas_become_few_kernels(f, expected):
    fast = mg.compile(lambda: f(*FROZEN), backend="numpy")
    run = fast.program()
    assert [f"{kernel.kind} {kernel.terms}" for kernel in run.program.kernels] == expected
    assert (len(run.program.seeds), run.program.gradients.stop - run.program.gradients.start) == (0, 0)
    run.run()
    eager = f(*FROZEN)
    outputs = [value.data for value in (eager if isinstance(eager, list) else [eager])]
    assert run.buffer[run.program.outputs].tolist() == pytest.approx(outputs, rel=1e-14)


def only_kernel(f, *arguments):
    """The one kernel of what f computes from numbers."""
    fast = mg.compile(f, backend="numpy")
    fast(*arguments)
    (kernel,) = fast.program(*arguments).program.kernels
    return kernel


def numbers(rows, columns):
    return [[float(row + column) for column in range(columns)] for row in range(rows)]


def logarithm_of_determinant(m):
    """By the factor of Cholesky, in loops as one writes them down."""
    factor = []
    for i, row in enumerate(m):
        factor.append([])
        for j in range(i + 1):
            left = row[j]
            for k in range(j):
                left = left - factor[i][k] * factor[j][k]
            factor[i].append(mg.sqrt(left) if i == j else left / factor[j][j])
    return 2 * sum(mg.log(row[-1]) for row in factor)


def symmetric(n):
    rng = random.Random(n)
    drawn = [[rng.gauss(0, 1) for _ in range(n)] for _ in range(n)]
    return [[Value(mg.dot(a, b) + (n if a is b else 0.0)) for a in drawn] for b in drawn]


@pytest.mark.slow
def test_terms_that_lie_alike_are_few_segments_though_each_is_of_a_group_of_its_own():
    """In the factor of Cholesky each column is a group. A segment for each was n**3 / 3 of them."""

    def segments(n):
        fast = mg.compile(logarithm_of_determinant, backend="numpy")
        found = fast.program(symmetric(n)).program.kernels
        return [len(kernel.segments) for kernel in found if isinstance(kernel, Reduction)]

    large = segments(40)
    assert sum(large) < 5 * sum(segments(20))
    assert max(large) < 20


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_logarithm_of_a_determinant_and_its_gradient_are_those_of_numpy(backend):
    m = symmetric(10 if backend == "jax" else 24)  # XLA takes ten seconds for 24
    compiled = mg.compile(logarithm_of_determinant, backend=backend)(m)
    numbers = np.array([[value.data for value in row] for row in m])
    assert compiled.data == pytest.approx(np.linalg.slogdet(numbers)[1], rel=1e-12)
    compiled.backward()
    gradient = np.array([[value.grad for value in row] for row in m])
    inverse = np.linalg.inv(numbers)  # only what is below the diagonal is read
    assert gradient == pytest.approx(np.tril(2 * inverse) - np.diag(np.diag(inverse)), rel=1e-9, abs=1e-12)


def test_the_product_of_a_matrix_and_a_vector_is_the_kernel_of_the_documentation():
    """The example of micrograd.compiler.ir.program: the matrix at 0, the vector at 6, the product at 8."""
    kernel = only_kernel(lambda w, x: [mg.dot(row, x) for row in w], numbers(3, 2), [1.0, 2.0])
    matrix, vector = Access(0, column_step=2, term_step=1), Access(6, term_step=1)
    assert kernel == Reduction(1, 3, Access(8, column_step=1), (Segment(1.0, 2, matrix, vector),))


def values(f, *arguments):
    """What f gives, and what its program gives for the same."""
    eager, compiled = f(*arguments), mg.compile(f, backend="numpy")(*arguments)
    return eager, pytest.approx(compiled, rel=1e-14)


def test_distances_that_grow_are_not_taken_for_even_ones():
    """Of these squares and triangular numbers the second differences are all the same."""
    x = [math.sqrt(number + 2) for number in range(40)]
    for positions in ([0, 1, 3, 6], [0, 1, 3, 6, 10, 15, 21, 28, 36], [0, 1, 4, 9, 16, 25, 36]):
        for f in (
            lambda x, positions: sum(x[position] for position in positions),
            lambda x, positions: [mg.exp(x[position]) for position in positions],
            lambda x, positions: [mg.exp(x[position + column]) for position in positions for column in range(3)],
            lambda x, positions: [x[position] * x[39 - position] + x[position + 1] for position in positions],
            lambda x, positions: [mg.dot(x[position : position + 3], x[:3]) for position in positions],
            lambda x, positions: [mg.dot([x[position], x[position + 3]], x[:2]) for position in positions],
        ):
            eager, compiled = values(partial(f, positions=positions), x)
            assert eager == compiled


STATES = {
    "squares": lambda states, x: np.sum(states**2),
    "products with data": lambda states, x: np.sum(states * x * -2.0),
    "several sums": lambda states, x: np.prod(np.array([np.sum(states * k) for k in (1.0, 2.0, 3.0)])),
    "the largest": lambda states, x: np.max(states),
    "parts of states": lambda states, x: np.sum(states[1:, :5] * states[:-1, :5]),
}


@pytest.mark.parametrize("backend", ["llvm", "numpy", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", STATES)
def test_sums_over_the_states_of_a_loop(name, backend, capsys):
    rng = np.random.default_rng(1)
    weights, texts = 0.3 * rng.normal(size=(9, 9)), []

    def function(weights, x):
        h, states = np.zeros(9), []
        for row in x:
            h = np.tanh(weights @ h + row)
            states.append(h)
        return STATES[name](np.array(states), x)

    for steps in 40, 64:
        fast, x = mg.compile(mg.value_and_grad(function), backend=backend), rng.normal(size=(steps, 9))
        (value, gradient), (expected, slopes) = fast(weights, x), mg.value_and_grad(function)(weights, x)
        assert value == pytest.approx(float(expected), rel=1e-12)
        np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-12)
        fast.show()
        texts.append(len(capsys.readouterr().out))
    if name != "the largest":  # its gradient compares each state by itself
        assert texts[0] == texts[1]  # as many steps as digits


@pytest.mark.parametrize("backend", ["llvm", "numpy", pytest.param("jax", marks=pytest.mark.slow)])
def test_gradients_of_weights_over_all_states_are_a_product_an_iteration(backend, capsys):
    """They would be read by a table, one number after the other, if all states were one product."""
    rng = np.random.default_rng(2)
    weights, x = 0.3 * rng.normal(size=(9, 9)), rng.normal(size=(40, 4, 9))

    def function(weights, x):
        states, _ = mg.scan(lambda states, row: (np.tanh(states @ weights + row), 0.0), np.zeros((4, 9)), x)
        return np.sum(states**2)

    fast = mg.compile(mg.value_and_grad(function), backend=backend)
    (value, gradient), (expected, slopes) = fast(weights, x), mg.value_and_grad(function)(weights, x)
    assert value == pytest.approx(float(expected), rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-9, atol=1e-12)
    fast.show()
    text = capsys.readouterr().out
    assert "table" not in text
    assert text.count("loop of") == 3
