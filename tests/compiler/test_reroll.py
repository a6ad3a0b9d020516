"""That matrices are found: what kernels scalar programs become."""

import math
import random
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.executable import new_buffer
from micrograd.compiler.ir.program import Access, Map, Reduction, Segment


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


def test_a_layer_with_a_bias_and_a_residual_is_one_kernel_where_they_come_last():
    w, b = layer(6, 6), [Value(0.5) for _ in range(6)]

    def f(x):
        return [mg.dot(row, x) + bi + xi for xi, bi, row in zip(x, b, w, strict=True)]

    fast = mg.compile(f, backend="numpy")
    with mg.no_grad():
        fast([float(i) for i in range(6)])
    program = fast._last.compiled(False).program
    assert [(k.rows, k.columns, k.terms) for k in program.kernels] == [(1, 6, 8)]


def test_a_batch_is_a_product_of_matrices():
    model = mg.nn.MLP(4, [8, 3])
    points = [[random.random() for _ in range(4)] for _ in range(100)]

    def loss():
        return sum(sum(o * o for o in model(point)) for point in points)

    found = kernels(loss)
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


def test_index_maps_are_affine_for_layers_and_attention():
    model = mg.nn.MLP(3, [9, 9, 2])
    fast = mg.compile(lambda x: mg.logsumexp(model(x)), backend="numpy")
    program = fast.program([1.0, 2.0, 3.0]).program
    assert all(access.table is None for kernel in program.kernels for access in kernel.accesses)


def test_causal_sums_of_all_lengths_lie_together():
    n, width = 6, 4
    shares, tokens, mix = layer(n, n), layer(width, n), layer(width, width)

    def loss():
        mixed = [[mg.dot(shares[t][: t + 1], [x[j] for x in tokens[: t + 1]]) for j in range(width)] for t in range(n)]
        return sum(mg.tanh(mg.dot(row, x)) for x in mixed for row in mix)

    # The sums have 1 to 6 terms, and what uses them sees one matrix
    assert ("matrix product", n, width, width) in kernels(loss)


def test_sums_whose_factors_are_the_same_for_some_results_are_rows_of_these():
    """The first factors of a head's results are the same, and lie as a triangle: no steps lead from one to the next."""
    heads, width, n = 3, 8, 9
    shares, tokens = [numbers(n, n) for _ in range(heads)], numbers(n, heads * width)

    def mixed(shares, tokens):
        return [
            mg.dot([shares[head][i][i * i // n] for i in range(n)], [token[head * width + column] for token in tokens])
            for head in range(heads)
            for column in range(width)
        ]

    kernel = only_kernel(mixed, shares, tokens)
    assert (kernel.rows, kernel.columns) == (heads, width)
    assert [access.column_step for access in kernel.accesses] == [0, 1]
    eager, compiled = values(mixed, shares, tokens)
    assert eager == compiled


def test_a_long_sum_is_one_kernel():
    xs = [Value(float(i)) for i in range(1000)]
    assert ("sum", 1, 1, 1000) in kernels(lambda: sum(xs))


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


def test_programs_are_plain_data_that_is_the_same_each_time():
    x = [Value(float(i)) for i in range(4)]
    programs = [mg.compile(lambda: mg.dot(x, x), backend="numpy").program().program for _ in range(2)]
    assert str(programs[0].kernels) == str(programs[1].kernels)
    with pytest.raises(AttributeError):
        programs[0].kernels = ()


FROZEN = [Value(index + 1.5, requires_grad=False) for index in range(4)]


def test_an_operand_without_a_derivative_has_no_adjoint_and_nothing_behind_it():
    scaled = mg.primitive("scaled_compiled", "s", lambda x, y: x * y, lambda g, out, x, y: g * y, None, replace=True)
    x, y = Value(0.5), Value(0.25)
    found = kernels(lambda: scaled(mg.sin(x), mg.sin(y)))
    assert [kernel for kernel in found if kernel[0] in ("sin", "cos")] == [("sin", 1, 2, 1), ("cos", 1, 1, 1)]
    assert len(found) == 8  # two of them check the sines


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


def test_no_adjoint_is_computed_behind_what_lets_no_gradient_through():
    x, y = Value(0.5), Value(0.25)
    found = kernels(lambda: mg.detach(mg.sin(x)) * y)
    assert sorted(kind for kind, *_ in found) == ["copy", "detach", "product", "product", "sin"]


def test_a_gradient_that_nothing_adds_to_is_zero_and_the_others_are_not():
    level = mg.primitive("level_compiled", "l", lambda x: 2.0, lambda g, out, x: 0.0, replace=True)
    x, y = Value(0.5), Value(0.25)
    result = mg.compile(lambda: level(mg.sin(x)) + 5.0 * y + 7.0, backend="numpy")()
    result.backward()
    assert (result.data, x.grad, y.grad) == (10.25, 0.0, 5.0)


def test_many_constants_have_one_rule_and_few_have_each_their_own():
    x = Value(1.5)

    def count(exponents):
        return len(kernels(lambda: sum(x ** (2.55 + 0.1 * number) for number in range(exponents))))

    assert count(3) < count(10) < count(16) > count(17) == count(40)
    many = [Value(1.5 + number) for number in range(40)]
    assert len(kernels(lambda: sum(y**2.55 for y in many))) == count(1)


def only_kernel(f, *arguments):
    """The one kernel of what f computes from numbers."""
    fast = mg.compile(f, backend="numpy")
    fast(*arguments)
    (kernel,) = fast.program(*arguments).program.kernels
    return kernel


def numbers(rows, columns):
    return [[float(row + column) for column in range(columns)] for row in range(rows)]


def test_a_convolution_is_one_kernel_with_a_segment_for_each_row_of_the_filter():
    def convolved(image, f):
        window = [(i, j) for i in range(3) for j in range(3)]
        return [sum(f[i][j] * image[y + i][x + j] for i, j in window) for y in range(6) for x in range(6)]

    kernel = only_kernel(convolved, numbers(8, 8), numbers(3, 3))
    assert (kernel.kind, kernel.rows, kernel.columns) == ("matrix product", 6, 6)
    assert [part.terms for part in kernel.segments] == [3, 3, 3]


@pytest.mark.parametrize("columns", [2, 6])
def test_rows_picked_at_random_have_a_table_of_their_terms_alone(columns):
    rows = (1, 3, 4, 9, 10, 6, 11)
    kernel = only_kernel(lambda m: [sum(m[row][j] for row in rows) for j in range(columns)], numbers(12, columns))
    (access,) = kernel.accesses
    assert (access.column_step, access.table.shape) == (1, (1, 1, 7))
    assert access.table.ravel().tolist() == [columns * row for row in rows]


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


@pytest.mark.parametrize("factors", [[], [2.0] * 20, [float(number % 3) for number in range(20)]])
@pytest.mark.parametrize(
    "positions", [[3], [4, 1], [0, 2, 5], [0, 1, 2, 3, 7, 9, 11, 13], [5, 1, 4, 0, 8], list(range(18))]
)
def test_a_result_by_itself_has_the_kernel_that_it_has_beside_another_one(positions, factors):
    """One is found term by term, and several all at once."""

    def f(x, count):
        rows = [[x[position + number] for position in positions] for number in range(count)]
        return [mg.dot(row, factors[: len(row)]) if factors else sum(row) for row in rows]

    x = [float(number + 1) for number in range(20)]
    eager, compiled = values(partial(f, count=1), x)
    assert eager == compiled
    alone, first = (only_kernel(partial(f, count=count), x) for count in (1, 2))
    assert (alone.rows, alone.columns, first.rows * first.columns) == (1, 1, 2)
    assert [part.coefficient for part in alone.segments] == [part.coefficient for part in first.segments]
    for mine, its in zip(alone.segments, first.segments, strict=True):
        ours, theirs = (
            [access.positions(kernel.rows, kernel.columns, part.terms)[0, 0] for access in part.factors]
            for kernel, part in ((alone, mine), (first, its))
        )
        assert ours[0].tolist() == theirs[0].tolist()
        assert len(ours) == len(theirs)


def test_index_maps_step_only_where_there_is_somewhere_to_go():
    assert only_kernel(mg.exp, 2.0) == Map(mg.engine.primitives.exp, 1, 1, Access(1), (Access(0),))
    pairs = only_kernel(lambda m: [mg.exp(row[j]) for row in m for j in (0, 1)], numbers(3, 4))
    target, operand = Access(12, row_step=2, column_step=1), Access(0, row_step=4, column_step=1)
    assert pairs == Map(mg.engine.primitives.exp, 3, 2, target, (operand,))


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


def test_the_order_in_which_two_terms_or_factors_are_written_does_not_matter():
    def f(x):
        pairs = [(mg.sin(number), mg.cos(number)) for number in x]
        products = [s * c if index % 2 else c * s for index, (s, c) in enumerate(pairs)]
        sums = [s + c if index % 2 else c + s for index, (s, c) in enumerate(pairs)]
        longer = [s * s + c - 2 * s if index % 2 else c - 2 * s + s * s for index, (s, c) in enumerate(pairs)]
        return products, sums, longer

    fast = mg.compile(f, backend="numpy")
    x = [float(number) for number in range(6)]
    assert fast(x) == tuple(pytest.approx(part) for part in f(x))
    shapes = sorted((k.kind, k.rows * k.columns, k.terms) for k in fast.program(x).program.kernels)
    assert shapes == [("cos", 6, 1), *[("dot", 3, 3)] * 2, ("product", 6, 1), ("sin", 6, 1), ("sum", 6, 2)]


def test_nodes_of_other_groups_are_other_kernels():
    def f(x):
        return [mg.atan(y) for y in [*map(mg.tanh, x), *map(mg.relu, x[:4])]]

    fast = mg.compile(f, backend="numpy")
    x = [float(number) for number in range(6)]
    assert fast(x) == pytest.approx(f(x))
    shapes = [(k.kind, k.rows, k.columns) for k in fast.program(x).program.kernels]
    assert sorted(shapes) == [("atan", 1, 4), ("atan", 1, 6), ("relu", 1, 4), ("tanh", 1, 6)]


def test_groups_of_a_cache_line_and_more_begin_at_one_and_others_lie_side_by_side():
    """A cache line has eight numbers; programs that keep to them are as quick as the machine allows."""

    def starts(*counts):
        def f(x):
            pairs = zip((mg.sin, mg.cos, mg.exp), counts, strict=True)
            return [function(number) for function, count in pairs for number in x[:count]]

        return [kernel.target.base for kernel in mg.compile(f, backend="numpy").program([0.5] * 9).program.kernels]

    assert starts(9, 8, 7) == [16, 32, 40]
    assert starts(7, 8, 9) == [9, 16, 24]
    assert starts(7, 7, 7) == [9, 16, 23]
    buffers = [new_buffer(size) for size in range(1, 1000, 7)]
    assert [buffer.shape for buffer in buffers] == [(size,) for size in range(1, 1000, 7)]
    assert not any(buffer.ctypes.data % 64 or buffer.any() for buffer in buffers)


def test_constants_of_a_primitive_become_numbers_of_one_kernel_where_there_are_many():
    """A few have derivatives of their own, with the constant in them; of many these would be a kernel each."""
    x = [Value(0.1 * position) for position in range(40)]
    fast = mg.compile(
        lambda: sum(mg.maximum(value, 0.09 * position) for position, value in enumerate(x)), backend="numpy"
    )
    assert len(fast.program().program.kernels) < 10


def test_sums_are_cut_into_few_long_runs_or_not_at_all():
    def parts(*positions):
        kernel = only_kernel(lambda x: sum(x[position] for position in positions), [1.0] * 20)
        return [(segment.terms, segment.first.table is None) for segment in kernel.segments]

    assert parts(0, 1, 10, 11) == [(2, True), (2, True)]
    assert parts(0, 1, 2, 10, 11, 12, 16, 17) == [(3, True), (3, True), (2, True)]
    assert parts(0, 1, 10) == [(3, False)]
    assert parts(0, 1, 10, 11, 16) == [(5, False)]


def test_constants_that_repeat_are_in_the_buffer_once():
    def constants(f, *arguments):
        program = mg.compile(f, backend="numpy").program(*arguments).program
        return [part.tolist() for _, part in program.constants]

    assert constants(lambda x: mg.dot(x, [2.5] * 5), [1.0] * 5) == [[2.5]]
    rows = numbers(4, 3)
    assert constants(
        lambda m: [mg.dot(row, [c] * 3) for row, c in zip(m, (5.0, 3.0, 5.0, 3.0), strict=True)], rows
    ) == [[5.0, 3.0]]
    points = [[1.0, 2.0, 4.0], [3.0, 5.0, 7.0]] * 2
    assert constants(lambda m: [mg.dot(row, point) for row, point in zip(m, points, strict=True)], rows) == [
        [1.0, 2.0, 4.0, 3.0, 5.0, 7.0]
    ]


def test_constants_lie_side_by_side_along_the_vectors_of_a_gradient():
    """Constant points: side by side lie the terms in a layer, and the columns in the gradient of its weights."""
    w = layer(9, 4)
    points = [[math.sin(10.0 * i + j) for j in range(9)] for i in range(6)]

    def loss():
        return sum(mg.tanh(mg.dot(row, point)) for point in points for row in w)

    found = {(k.rows, k.columns, k.terms): k for k in mg.compile(loss).program().program.kernels if k.terms in (6, 9)}
    forward, backward = found[6, 4, 9].segments[0], found[4, 9, 6].segments[0]
    assert [factor.term_step for factor in (forward.first, forward.second)] == [1, 1]
    assert [factor.column_step for factor in (backward.first, backward.second)] == [0, 1]
    assert forward.second.base == backward.second.base  # and they are in the buffer once


def checks(f, *arguments):
    """The kernels that look whether numbers are finite, and the one that hands on what they found."""
    fast = mg.compile(f, backend="numpy")
    with mg.no_grad():
        fast(*arguments)
    found = [kernel for kernel in fast._last.compiled(False).program.kernels if isinstance(kernel, Reduction)]
    looking = [kernel for kernel in found if any(segment.coefficient == 0 for segment in kernel.segments)]
    return [(kernel.rows, kernel.columns, kernel.terms) for kernel in [*looking, found[-1]]]


def test_what_may_raise_side_by_side_is_checked_at_once():
    assert checks(lambda xs: [mg.tanh(mg.exp(x)) for x in xs], [1.0] * 10) == [(1, 1, 10), (1, 10, 2)]


@pytest.mark.parametrize(("length", "found"), [(1, [(1, 1, 1)]), (7, [(1, 1, 1)] * 7), (8, [(1, 1, 8)])])
def test_what_may_raise_apart_is_checked_one_by_one_up_to_seven(length, found):
    def f(x, y):
        for _ in range(length):
            x = mg.tanh(mg.exp(x * y))
        return x

    assert checks(f, 0.5, 1.0) == [*found, (1, 1, 1 + len(found))]


def test_a_chain_of_operations_that_may_raise_raises_as_eager_does_and_costs_one_check():
    """More hidden operations, apart from each other, than get a check each."""

    def f(x, y):
        for _ in range(30):
            x = mg.tanh(mg.exp(x * y))
        return x

    fast = mg.compile(f, backend="numpy")
    assert fast(Value(0.5), Value(1.0)).data == pytest.approx(f(0.5, 1.0), rel=1e-14)
    with pytest.raises(OverflowError, match=r"exp\(1000"):
        f(0.5, 2000.0)
    with pytest.raises(OverflowError, match=r"exp\(1000"):
        fast(Value(0.5), Value(2000.0))
    program = fast._last.compiled(False).program
    assert len([kernel for kernel in program.kernels if isinstance(kernel, Reduction) and kernel.terms == 30]) == 1
