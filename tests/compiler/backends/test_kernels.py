"""Kernels of all layouts, on each backend, against loops over their elements as Program describes them."""

import math
import random
import re

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends.llvm.llvm_codes import code_of
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.calling.picture import draw_program
from micrograd.compiler.ir.program import Access, Loop, Map, Program, Reduction, Segment, Take

GIVEN = 9000  # numbers that the kernels read
NOTHING = np.zeros(0, dtype=np.int64)
OWN = mg.primitive("own_map", "o", lambda x: 2 * x + 1, lambda g, out, x: 2 * g, replace=True)
BETWEEN, UNTOUCHED = 5, 0.12345  # so many positions before and after what a kernel writes stay as they are


def position(access, row, column, term):
    if access.table is not None:
        if access.table.shape[1] == 1:
            return access.table[row, 0, term] + access.column_step * column
        return access.table[row, column, term]
    start = access.base + access.row_step * row if access.row_table is None else access.row_table[row]
    return start + access.column_step * column + access.term_step * term


def expected(kernel, buffer):
    """What a kernel computes, and where it writes it."""
    for row in range(kernel.rows):
        for column in range(kernel.columns):

            def number(access, term=0):
                return buffer[position(access, row, column, term)]  # noqa: B023  # called at once

            if isinstance(kernel, Reduction):
                terms = [
                    part.coefficient * number(part.first, term) * (number(part.second, term) if part.second else 1.0)
                    for part in kernel.segments
                    for term in range(part.terms)
                ]
                result = max(terms) if kernel.largest else math.fsum(terms)
            elif isinstance(kernel, Map):
                result = kernel.primitive.forward(*map(number, kernel.operands))
            else:
                result = number(kernel.elements, int(number(kernel.index)) % kernel.terms)
            yield position(kernel.target, row, column, 0), result


def run(kernels, numbers, size, backend):
    program = Program(size, tuple(kernels), NOTHING, NOTHING, NOTHING, slice(0, 0), ())
    executable = backend_of(backend).run_of(program)
    executable.buffer[: len(numbers)] = numbers
    executable.run()
    return executable.buffer


def operand(rng, layout, rows, columns, terms):
    """An access to the numbers that are given, in a layout."""
    base = 2 * (columns + terms) + rng.randrange(50)
    if layout == "elements":
        positions = [rng.randrange(GIVEN) for _ in range(rows * columns * terms)]
        return Access(0, table=np.array(positions).reshape(rows, columns, terms))
    row_step = rng.choice([0, columns, 29])
    column_step, term_step = {
        "columns": (1, rng.choice([0, columns, 7])),  # side by side along the columns
        "terms": (rng.choice([0, terms, 5]), 1),
        "still": (0, 0),
        "column": (0, rng.choice([1, 2])),
        "term": (rng.choice([1, 2]), 0),
        "apart": (3, 2),
        "backwards": (-1, -1),
        "rows": (rng.choice([0, 1]), rng.choice([0, 1])),
        "tables": (rng.choice([0, 1, 3]), 0),
    }[layout]
    if layout == "rows":
        starts = np.array([rng.randrange(GIVEN - columns - terms) for _ in range(rows)])
        return Access(0, 0, column_step, term_step, row_table=starts)
    if layout == "tables":
        starts = [rng.randrange(GIVEN - 3 * columns) for _ in range(rows * terms)]
        return Access(0, column_step=column_step, table=np.array(starts).reshape(rows, 1, terms))
    return Access(base, row_step, column_step, term_step)


def target(rng, rows, columns, end, even):
    """Where a kernel writes, from a position on."""
    if even:
        return rng.choice([Access(end, columns, 1), Access(end + columns - 1, columns, -1)])
    positions = end + np.array(rng.sample(range(rows * columns), rows * columns))
    if columns > 1 and rng.random() < 0.5:
        return Access(0, table=positions.reshape(rows, columns, 1))
    if rng.random() < 0.5:
        return Access(end, 1, rows)
    return Access(0, 0, 1, row_table=end + columns * np.array(rng.sample(range(rows), rows)))


def check(kernels, numbers, end, backend):
    """The kernels compute what they should, and write nothing else."""
    size = end + BETWEEN
    found = run(kernels, [*numbers, *[UNTOUCHED] * (size - len(numbers))], size, backend)
    written = np.full(size, UNTOUCHED)
    written[: len(numbers)] = numbers
    for kernel in kernels:
        for where, result in expected(kernel, numbers):
            assert found[where] == pytest.approx(result, rel=1e-12, abs=1e-12), kernel
            written[where] = found[where]
    assert found.tolist() == written.tolist()


def drawn(make, count, seed):
    """Kernels that write after the numbers that are given, one after the other with something between them."""
    rng = random.Random(seed)
    numbers = [rng.uniform(-2, 2) for _ in range(GIVEN)]
    kernels, end = [], GIVEN
    for _ in range(count):
        kernels.append(make(rng, end + BETWEEN))
        end += BETWEEN + kernels[-1].rows * kernels[-1].columns
    return kernels, numbers, end


LAYOUTS = ["columns", "terms", "still", "column", "term", "apart", "backwards", "rows", "tables", "elements"]
MIXED = {
    "side by side": ["columns", "still", "term"],
    "along terms": ["terms", "column"],
    "backwards": ["backwards"],
    "any": LAYOUTS,
}
# What is computed for them here, number by number, takes long; other tests have many segments, too.
MANY = pytest.mark.unmeasured


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("layouts", MIXED)
@pytest.mark.parametrize("largest", [False, True], ids=["sums", "maxima"])
@pytest.mark.parametrize("many", [False, pytest.param(True, marks=MANY)], ids=["few segments", "many"])
def test_reductions_of_all_layouts(layouts, largest, many, backend):
    def make(rng, end):
        rows, columns = rng.choice([1, 3]), rng.choice([1, 2, 4, 5, 8, 9, 16, 19, 33])
        segments = []
        for _ in range(rng.choice([1, 1, 2]) if not many else rng.randrange(9, 30)):
            terms = rng.choice([1, 2, 4, 7, 8, 9, 17, 70, 150])
            first, second = (operand(rng, rng.choice(MIXED[layouts]), rows, columns, terms) for _ in range(2))
            two = not largest and rng.random() < 0.6
            segments.append(Segment(rng.choice([1.0, -1.0, 0.5, -2.0, 0.0]), terms, first, second if two else None))
        return Reduction(rows, columns, target(rng, rows, columns, end, rng.random() < 0.7), tuple(segments), largest)

    count = 12 if backend != "jax" else 2 if many else 4
    check(*drawn(make, count, 1), backend)


def factors_of_a_product(rng, rows, terms, side_by_side):
    """One that is the same in all rows, and one that is the same in all columns."""
    step = {"columns": (1, rng.choice([19, 40])), "terms": (rng.choice([terms, 0, 3]), 1)}[side_by_side]
    of_columns = Access(rng.randrange(50), 0, *step)
    of_terms = {"columns": rng.choice([0, 1, 7]), "terms": 1}[side_by_side]
    starts = np.array([rng.randrange(GIVEN // 2) for _ in range(rows)])
    of_rows = rng.choice(
        [
            Access(rng.randrange(50), rng.choice([1, terms, 5]), 0, of_terms),
            Access(0, 0, 0, of_terms, row_table=starts),
        ]
    )
    return rng.sample([of_columns, of_rows], 2)


def product(rng, side_by_side, products, end):
    """The sum of some products of matrices, and maybe what is added to each of its rows."""
    rows, columns = rng.choice([4, 5, 7, 8]), rng.choice([4, 5, 8, 9, 16, 19, 33])
    segments = [Segment(rng.choice([1.0, -1.0, 0.5]), 1, Access(7, column_step=1), None)] if rng.random() < 0.5 else []
    for _ in range(rng.choice(products)):
        terms = rng.choice([9, 16, 17, 40])
        first, second = factors_of_a_product(rng, rows, terms, side_by_side)
        segments.append(Segment(rng.choice([1.0, -1.0, 0.5]), terms, first, second))
    return Reduction(rows, columns, Access(end, columns, 1), tuple(segments))


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("products", [[1, 1, 2], pytest.param([10, 12], marks=MANY)], ids=["few segments", "many"])
@pytest.mark.parametrize("side_by_side", ["columns", "terms"])
def test_products_of_matrices_in_blocks_of_rows(side_by_side, products, backend):
    count = 3 if backend == "jax" else 25
    kernels, numbers, end = drawn(lambda rng, end: product(rng, side_by_side, products, end), count, 4)
    assert {code_of(kernel).block for kernel in kernels} == {4}
    check(kernels, numbers, end, backend)


def large_product(rng, end):
    """A product of large matrices, whose terms lie side by side."""
    rows, columns = rng.choice([16, 19, 33]), rng.choice([16, 19, 33])
    segments = [Segment(2.0, 1, Access(7, column_step=1), None)] if rng.random() < 0.5 else []
    for _ in range(rng.choice([1, 1, 2, 3])):
        terms = rng.choice([9, 16, 17, 40])
        of_columns = Access(rng.randrange(50), 0, rng.choice([terms, 3]), 1)
        of_rows = Access(rng.randrange(50), rng.choice([terms, 0, 5]), 0, 1)
        if rng.random() < 0.5:
            of_rows = Access(0, 0, 0, 1, row_table=np.array(rng.sample(range(GIVEN // 2), rows)))
        segments.append(Segment(rng.choice([1.0, -1.0, 0.5]), terms, *rng.sample([of_columns, of_rows], 2)))
    return Reduction(rows, columns, Access(end, columns, 1), tuple(segments))


@pytest.mark.slow
@pytest.mark.unmeasured
def test_large_products_of_matrices_are_packed(backend):
    count = 3 if backend == "jax" else 15
    kernels, numbers, end = drawn(large_product, count, 5)
    assert all(code_of(kernel).packed for kernel in kernels)
    check(kernels, numbers, end, backend)


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("of", ["columns", "packed", "many"])
def test_larger_blocks_give_the_same_bits(of, monkeypatch):
    def make(rng, end):
        if of == "packed":
            return large_product(rng, end)
        return product(rng, "columns", [10] if of == "many" else [1, 2], end)

    kernels, numbers, end = drawn(make, 25, 12)
    assert {code_of(kernel, 8).block for kernel in kernels} == {4, 8}
    found = []
    for block in (4, 8):
        monkeypatch.setattr(machine(), "block", block)
        check(kernels, numbers, end, "llvm")
        found.append(run(kernels, numbers, end, "llvm").tobytes())
    assert found[0] == found[1]


OF_COLUMNS, OF_ROWS = Access(0, 0, 20, 1), Access(500, 20, 0, 1)


@pytest.mark.parametrize(
    ("rows", "columns", "parts", "packed"),
    [
        (16, 16, [(20, OF_COLUMNS, OF_ROWS)], True),
        (16, 16, [(20, OF_ROWS, OF_COLUMNS), (1, Access(0, column_step=1), None)], True),
        (15, 16, [(20, OF_COLUMNS, OF_ROWS)], False),
        (16, 15, [(20, OF_COLUMNS, OF_ROWS)], False),
        (16, 16, [(257, OF_COLUMNS, OF_ROWS)], False),
        (16, 16, [(20, OF_COLUMNS, OF_ROWS), (7, OF_COLUMNS, OF_ROWS)], False),
        (16, 16, [(90, Access(0, 0, 200, 2), OF_ROWS)], False),
        (16, 16, [(20, Access(0, 0, 0, 1), OF_ROWS)], False),
        (16, 16, [(20, OF_COLUMNS, OF_ROWS)] * 9, False),
    ],
)
def test_which_products_are_packed(rows, columns, parts, packed):
    segments = tuple(Segment(1.0, terms, first, second) for terms, first, second in parts)
    kernel = Reduction(rows, columns, Access(GIVEN, columns, 1), segments)
    assert code_of(kernel).packed is packed
    numbers = np.random.default_rng(6).normal(size=GIVEN).tolist()
    check([kernel], numbers, GIVEN + rows * columns, "llvm")


def test_segments_in_a_table_that_are_all_multiplied_by_1_have_code_without_that(backend):
    def total(coefficient):
        parts = [(1.0, Access(9 * k, 9, 0, 1), Access(300 + 9 * k, 0, 1, 7)) for k in range(10)]
        parts[3] = (coefficient, *parts[3][1:])
        return Reduction(5, 9, Access(GIVEN, 9, 1), tuple(Segment(c, 9, *factors) for c, *factors in parts))

    numbers = np.random.default_rng(7).normal(size=GIVEN).tolist()
    for coefficient, known in ((1.0, 1.0), (0.5, None)):
        kernel = total(coefficient)
        assert code_of(kernel).parts == ((known, 2, None),)
        check([kernel], numbers, GIVEN + 45, backend)


def operand_of_one_column(rng, layout, rows, terms):
    """An access of a kernel of one column."""
    base, term_step = rng.randrange(50), rng.choice([0, 1, 1, 2])
    if layout == "tables":
        return Access(0, table=np.array([rng.randrange(GIVEN) for _ in range(rows * terms)]).reshape(rows, 1, terms))
    if layout in ("rows", "squares"):
        starts = np.array([rng.randrange(GIVEN - 2 * terms) for _ in range(rows)])
        return Access(0, term_step=1 if layout == "squares" else term_step, row_table=starts)
    return Access(base, {"beside": 1, "still": 0, "apart": 3}[layout], 0, term_step)


OF_ONE_COLUMN = ["beside", "still", "apart", "rows", "squares", "tables"]


@pytest.mark.slow
@pytest.mark.parametrize("terms", [1, 2, 4, 8, 9, 17, 70, 150])
@pytest.mark.parametrize("largest", [False, True], ids=["sums", "maxima"])
def test_rows_of_one_column_are_computed_in_vectors(terms, largest, backend):
    def make(rng, end):
        rows = max(-(-512 // terms), 8) + rng.choice([0, 3])
        segments = []
        for of_segment in (terms, 3) if rng.random() < 0.3 else (terms,):
            layouts = ["squares"] * 2 if rng.random() < 0.3 else rng.choices(OF_ONE_COLUMN, k=2)
            first, second = (operand_of_one_column(rng, layout, rows, of_segment) for layout in layouts)
            two = not largest and rng.random() < 0.7
            segments.append(Segment(rng.choice([1.0, -1.0, 0.5]), of_segment, first, second if two else None))
        return Reduction(rows, 1, Access(end, row_step=1), tuple(segments), largest)

    kernels, numbers, end = drawn(make, 3 if backend == "jax" else 8, 8)
    assert all(code_of(kernel).turned and code_of(kernel).along for kernel in kernels)
    check(kernels, numbers, end, backend)


def test_maps_of_one_column_are_computed_in_vectors(backend):
    def make(rng, end):
        primitive = rng.choice([mg.engine.primitives.div, mg.engine.primitives.sigmoid])
        operands = [operand_of_one_column(rng, rng.choice(OF_ONE_COLUMN), 520, 1) for _ in primitive.domain]
        return Map(primitive, 520, 1, Access(end, row_step=1), tuple(operands))

    kernels, numbers, end = drawn(make, 8, 9)
    assert {(code.along, code.turned) for code in map(code_of, kernels)} == {("columns", True)}
    check(kernels, numbers, end, backend)


@pytest.mark.parametrize("same", [True, False])
def test_elements_that_are_the_same_in_four_columns_are_loaded_once(same, backend):
    rows, columns, terms = 9, 20, 6
    positions = np.random.default_rng(10).integers(GIVEN, size=(rows, columns, terms))
    if same:
        positions = np.repeat(positions[:, ::4], 4, axis=1)
    elements, numbers = Access(0, table=positions), np.random.default_rng(11).normal(size=GIVEN).tolist()
    product = Reduction(rows, columns, Access(GIVEN, columns, 1), (Segment(1.0, terms, elements, Access(3, 7, 1, 5)),))
    of_terms = Access(0, table=np.concatenate([positions[:, :, [term]] for term in range(terms)]))
    quotient = Map(mg.engine.primitives.div, 54, columns, Access(GIVEN, columns, 1), (of_terms, ROW))
    for kernel in (product, quotient):
        code = code_of(kernel)
        assert (code.along, code.shapes[1].table) == ("columns", "f" if same else "e")
        check([kernel], numbers, GIVEN + kernel.rows * kernel.columns, backend)


def test_a_product_of_matrices_in_a_loop_moves_at_each_iteration(backend):
    factors = Access(0, 0, 10, 1, iteration_step=3), Access(200, 11, 0, 1, iteration_step=5)
    loop = Loop(3, (Reduction(4, 4, Access(400, 4, 1, iteration_step=16), (Segment(1.0, 10, *factors),)),))
    numbers = np.random.default_rng(0).normal(size=400)
    assert code_of(loop.kernels[0]).block == 4
    found = run([loop], numbers, 448, backend)
    assert found == pytest.approx(run(loop.unrolled(), numbers, 448, backend), rel=1e-12)


def test_maps_of_all_layouts(backend):
    primitives = [
        mg.engine.primitives.div,
        mg.engine.primitives.sin,
        mg.engine.primitives.sigmoid,
        mg.engine.primitives.maximum,
        OWN,
    ]

    def make(rng, end):
        rows, columns = rng.choice([1, 3]), rng.choice([1, 2, 4, 5, 8, 9, 19])
        primitive = rng.choice(primitives)
        operands = [operand(rng, rng.choice(LAYOUTS), rows, columns, 1) for _ in primitive.domain]
        return Map(primitive, rows, columns, target(rng, rows, columns, end, rng.random() < 0.7), tuple(operands))

    check(*drawn(make, 25, 2), backend)


def test_takes_of_all_layouts(backend):
    def make(rng, end):
        rows, columns, terms = rng.choice([1, 3]), rng.choice([1, 2, 4, 5, 9]), rng.choice([1, 2, 5])
        index = operand(rng, rng.choice(LAYOUTS), rows, columns, 1)
        elements = operand(rng, rng.choice(LAYOUTS), rows, columns, terms)
        return Take(rows, columns, terms, target(rng, rows, columns, end, rng.random() < 0.7), index, elements)

    kernels, numbers, end = drawn(make, 25, 3)
    numbers = [math.floor(number) % 2 for number in numbers]
    check([kernel for kernel in kernels if kernel.terms > 1], [float(number) for number in numbers], end, backend)


@pytest.mark.parametrize(
    ("index", "result"),
    [(0.0, 10.0), (2.0, 30.0), (-1.0, 30.0), (-3.0, 10.0), (3.0, None), (-4.0, None), (0.5, None), (math.nan, None)],
)
def test_what_take_gives_for_an_index(index, result, backend):
    kernel = Take(1, 1, 3, Access(4), Access(3), Access(0, term_step=1))
    found = run([kernel], [10.0, 20.0, 30.0, index], 5, backend)[4]
    assert math.isnan(found) if result is None else found == result


def test_a_take_by_indices_and_from_elements_that_are_gathered(backend):
    numbers = [-1.0, 0.0, 2.0, 1.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    index = Access(0, table=np.array([[[3]], [[0]], [[2]]]))
    elements = Access(0, table=np.array([[[4, 5, 6]], [[7, 8, 9]], [[9, 4, 6]]]))
    for kernel in (
        Take(3, 1, 3, Access(10, row_step=1), index, elements),
        Take(1, 3, 3, Access(10, column_step=1), *(Access(0, table=a.table.swapaxes(0, 1)) for a in (index, elements))),
    ):
        assert run([kernel], numbers, 13, backend)[10:].tolist() == [20.0, 60.0, 30.0]


@pytest.mark.parametrize("index", [1.0, -2.0, math.nan])
def test_a_take_reads_nothing_past_its_table(index, backend):
    table = np.array([0, 2**40])[:1].reshape(1, 1, 1)  # what follows it in memory is no position in the buffer
    kernel = Take(1, 1, 1, Access(2), Access(1), Access(0, table=table))
    assert math.isnan(run([kernel], [10.0, index], 3, backend)[2])


@pytest.mark.parametrize("kind", [list, np.array])
@pytest.mark.parametrize("count", [1, 3, 8, 9, 20])
@pytest.mark.parametrize("pack", [1, 2, 3])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])  # on JAX, fit has no buffer
def test_the_mean_gradient_of_a_batch_is_in_its_position_and_nothing_else_is_written(count, pack, kind, backend):
    """The loss is the dot product of the parameters with an example's numbers, which are its gradients."""
    weights, gradients = slice(0, count), slice(count, 2 * count)
    given = slice(2 * count + 1, 2 * count + 1 + pack * count)
    seeds, losses = (slice(start, start + pack) for start in (given.stop + 1, given.stop + 1 + pack))
    own = slice(losses.stop, losses.stop + count)
    weight, number = Access(weights.start, term_step=1), Access(given.start, column_step=count, term_step=1)
    numbers, seed = Access(given.start, column_step=1, term_step=count), Access(seeds.start, term_step=1)
    kernels = (
        Reduction(1, pack, Access(losses.start, column_step=1), (Segment(1.0, count, weight, number),)),
        Reduction(1, count, Access(own.start, column_step=1), (Segment(1.0, pack, numbers, seed),)),
    )
    size = own.stop + 1
    inputs, outputs, seeds = np.r_[weights, given, seeds if pack > 1 else NOTHING], np.r_[losses], np.r_[seeds]
    program = Program(size, kernels, inputs, outputs, seeds, own, ())
    buffer = np.full(size, UNTOUCHED)
    buffer[weights] = range(count)
    executable = backend_of(backend).run_of(program, buffer)
    numbers = kind([np.array([row * position + 0.5 for position in range(count)]) for row in range(4)])
    batches = executable.batches(buffer, [executable], numbers, np.zeros(4, dtype=np.int64), gradients)
    for batch in ([0], [3, 1, 2], [2, 2], [3, 2, 1, 0]):
        chosen = np.array([numbers[example] for example in batch])
        assert batches.run(batch) == pytest.approx((chosen @ np.arange(count)).tolist(), rel=1e-14)
        assert buffer[gradients].tolist() == pytest.approx(chosen.mean(axis=0).tolist(), rel=1e-14)
        assert buffer[weights].tolist() == list(range(count))
        assert buffer[[2 * count, given.stop, size - 1]].tolist() == [UNTOUCHED] * 3


@pytest.mark.parametrize("columns", [1, 9])
@pytest.mark.parametrize("terms", [1, 3, 9])
def test_a_maximum_is_nan_where_a_term_is_and_minus_infinity_where_all_are(columns, terms, backend):
    kernel = Reduction(
        1, columns, Access(99, column_step=1), (Segment(1.0, terms, Access(0, 0, terms, 1), None),), True
    )
    for special in (math.nan, -math.inf):
        for number in (0, terms - 1):
            numbers = np.full(columns * terms, -math.inf)
            numbers[number::terms] = special
            found = run([kernel], numbers, 99 + columns, backend)[99:]
            assert all(math.isnan(x) if math.isnan(special) else x == -math.inf for x in found)


ROW, COLUMN, TERM = Access(0, row_step=1), Access(0, column_step=1), Access(0, term_step=1)
GATHER = Access(0, table=np.zeros((2, 3, 4), dtype=np.int64))


@pytest.mark.parametrize(
    ("rows", "columns", "parts", "kind", "flops"),
    [
        (1, 3, [(1, COLUMN, None)], "copy", 0),
        (2, 3, [(4, TERM, None)], "sum", 6 * 3),
        (2, 3, [(1, TERM, None), (1, ROW, None)], "sum", 6 * 1),
        (2, 3, [(1, ROW, COLUMN)], "product", 6 * 1),
        (2, 3, [(4, TERM, COLUMN)], "matrix product", 6 * 7),
        (1, 3, [(4, TERM, COLUMN)], "matrix-vector", 3 * 7),
        (1, 3, [(4, COLUMN, TERM)], "matrix-vector", 3 * 7),
        (2, 3, [(4, TERM, COLUMN), (1, ROW, None)], "matrix product", 6 * 8),
        (2, 3, [(4, COLUMN, COLUMN)], "dot", 6 * 7),
        (2, 3, [(4, GATHER, COLUMN)], "dot", 6 * 7),
        (2, 3, [(4, GATHER, TERM)], "matrix product", 6 * 7),
        (2, 3, [(4, TERM, COLUMN), (4, COLUMN, COLUMN)], "dot", 6 * 15),
    ],
)
def test_reductions_are_named_and_counted_by_what_their_terms_are(rows, columns, parts, kind, flops):
    segments = tuple(Segment(1.0, terms, first, second) for terms, first, second in parts)
    kernel = Reduction(rows, columns, COLUMN, segments)
    assert (kernel.kind, kernel.terms, kernel.flops) == (kind, sum(terms for terms, *_ in parts), flops)
    assert kernel.accesses == [access for _, *factors in parts for access in factors if access is not None]
    largest = Reduction(rows, columns, COLUMN, segments, largest=True)
    assert largest.kind == "maximum"


def test_the_explanation_is_a_table_of_kernels():
    dot = Reduction(2, 3, COLUMN, (Segment(1.0, 4, TERM, GATHER),))
    copy = Reduction(1, 600, COLUMN, (Segment(1.0, 1, COLUMN, None),))
    sin = Map(mg.engine.primitives.sin, 1, 3, COLUMN, (ROW,))
    pairs = Reduction(1, 5, COLUMN, (Segment(1.0, 2, COLUMN, None),))
    kernels = (copy, sin, copy, dot, pairs)
    program = Program(1000, kernels, NOTHING, NOTHING, NOTHING, slice(0, 0), ())
    assert program.seconds == {}
    assert program.explain().splitlines() == [
        "0 scalar operations became 5 kernels: 50 flops, 8,000 bytes",
        "",
        "kernel          rows x columns x terms  times  scalars  flops  gathers",
        "copy            1x600                   2      1,200    0      0",
        "matrix product  2x3x4                   1      24       42     1",
        "sum             1x5x2                   1      10       5      0",
        "sin             1x3                     1      3        3      0",
    ]
    described = program.described(1234, {"trace": 0.0125, "reroll": 2.5})
    assert str(described).splitlines()[:3] == [
        "1,234 scalar operations became 5 kernels: 50 flops, 8,000 bytes",
        "Took trace 12 ms, reroll 2500 ms",
        "",
    ]


def test_a_picture_shows_what_kernels_read_and_which_compute_gradients():
    copy = Reduction(1, 2, Access(3, column_step=1), (Segment(1.0, 1, Access(0, column_step=1), None),))
    total = Reduction(1, 1, Access(5), (Segment(1.0, 2, Access(3, term_step=1), None),))
    share = Reduction(2, 1, Access(6, row_step=1), (Segment(1.0, 1, Access(2), Access(3, row_step=1)),))
    taken = Take(1, 1, 2, Access(8), Access(0), Access(3, term_step=1))
    again = Map(mg.engine.primitives.sin, 1, 1, Access(9), (Access(6),))
    kernels = (copy, total, share, taken, again)
    inputs, outputs, seeds = np.array([0, 1]), np.array([5]), np.array([2])
    picture = draw_program(Program(10, kernels, inputs, outputs, seeds, slice(6, 8), ()))
    nodes = re.findall(r'^\t"?([\w ]+)"? \[label="?([^"\]]*?)"? fillcolor="(#\w+)"', picture.source, re.MULTILINE)
    labels, colours = ({name: found[index] for name, *found in nodes} for index in range(2))
    edges = set(re.findall(r'^\t"?([-\w ]+)"? -> "?([-\w ]+)"?$', picture.source, re.MULTILINE))
    assert edges == {
        ("given_inputs", "0"),
        ("0", "1"),
        ("1", "output"),
        ("0", "2"),
        ("given_1", "2"),
        ("2", "gradients"),
        ("0", "3"),
        ("given_inputs", "3"),
        ("2", "4"),
    }
    assert colours["2"] == colours["4"] != colours["0"] == colours["1"] == colours["3"]
    assert colours["2"][1:3] > colours["2"][5:7]  # gradients are warm, the rest is cold
    assert colours["0"][1:3] < colours["0"][5:7]
    assert labels == {
        "0": "copy\n2",
        "1": "sum\n1\n2 terms each",
        "2": "product\n2 × 1",
        "3": "take\n1\n2 terms each",
        "4": "sin\n1",
        "given_inputs": "inputs",
        "given_1": "1",
        "output": "output",
        "gradients": "gradients",
    }


def test_up_to_four_hundred_kernels_are_drawn():
    kernel = Map(mg.engine.primitives.sin, 1, 1, Access(1), (Access(0),))
    for count in (400, 401):
        program = Program(2, (kernel,) * count, np.array([0]), np.array([1]), NOTHING, slice(2, 2), ())
        if count == 400:
            assert draw_program(program).source.count('"sin') == 400
        else:
            with pytest.raises(ValueError, match="has 401 kernels; up to 400 can be drawn"):
                draw_program(program)


def test_kernels_that_differ_in_size_alone_have_one_code():
    def product(rows, columns, terms, coefficient=1.0):
        first, second = Access(0, terms, 0, 1), Access(50, 0, 1, columns)
        segments = (Segment(coefficient, terms, first, second),)
        return Reduction(rows, columns, Access(200, columns, 1), segments)

    names = [code_of(product(*sizes)).name for sizes in ((2, 20, 13), (3, 24, 15), (1, 99, 9))]
    assert len(set(names)) == 1
    assert re.fullmatch(r"\w+", names[0])
    others = [product(2, 20, 13, -1.0), product(2, 9, 13), product(2, 5, 13), product(2, 2, 9), product(2, 20, 8)]
    assert len({names[0], *(code_of(other).name for other in others)}) == 6


@pytest.mark.parametrize("from_zero", [False, True])
def test_chains_of_few_results_have_one_code_and_of_many_one_for_each_number_of_terms(from_zero):
    def chain(rows, columns, terms, iteration_step=0):
        parts = Segment(-1.0, terms, Access(0, terms, 0, 1), Access(50, 1, 9, 1)), Segment(1.0, 1, Access(7), None)
        target = Access(900, columns, 1, iteration_step=iteration_step)
        return Reduction(rows, columns, target, parts, from_zero=from_zero)

    few = [chain(3, 5, terms) for terms in range(2, 8)]
    assert len({code_of(kernel).name for kernel in few}) == 1
    others = [[chain(8, 9, terms) for terms in range(2, 8)], [chain(3, 5, terms, 15) for terms in range(2, 8)]]
    assert [len({code_of(kernel).name for kernel in kernels}) for kernels in others] == [6, 6]

    rng = np.random.default_rng(3)
    for kernel in (*few, *others[0]):
        numbers = rng.choice([1.0, 1e16, -1e16, 3.0, -0.0, 1e-3], 900) * rng.random(900)
        found = run([kernel], numbers, 1000, "llvm")[900 : 900 + kernel.rows * kernel.columns]
        in_order = []
        for row, column in np.ndindex(kernel.rows, kernel.columns):
            total = 0.0 if from_zero else -0.0
            for term in range(kernel.terms - 1):
                total -= numbers[(kernel.terms - 1) * row + term] * numbers[50 + row + 9 * column + term]
            in_order.append(total + numbers[7])
        assert found.tolist() == in_order


def test_the_code_of_a_sum_does_not_grow_with_its_segments():
    def total(count, largest=False):
        rng = random.Random(count)
        parts = [(rng.choice([1.0, 0.5, rng.random()]), rng.randrange(1, 9)) for _ in range(count)]
        segments = tuple(
            Segment(c, n, Access(20 * k, 0, 0, 1), Access(9 * k, term_step=1)) for k, (c, n) in enumerate(parts)
        )
        return code_of(Reduction(1, 1, Access(), segments, largest))

    assert total(9).name == total(90).name == total(900).name
    assert len(total(900).name) < 100
    assert total(90, largest=True).name != total(90).name
    assert total(4).name != total(5).name == total(9).name


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("terms", [512, 545, 1001])
def test_long_sums(columns, terms):
    numbers = np.random.default_rng(terms).standard_normal(1 + terms * (1 + columns))
    segment = Segment(0.5, terms, Access(1, term_step=1), Access(1 + terms, column_step=terms, term_step=1))
    found = run([Reduction(1, columns, Access(len(numbers), column_step=1), (segment,))], numbers, 5000, "llvm")
    vector, matrix = numbers[1 : 1 + terms], numbers[1 + terms :].reshape(columns, terms)
    assert found[len(numbers) :][:columns] == pytest.approx([math.fsum(0.5 * vector * row) for row in matrix], 1e-12)


ERRORS = {1.0: ValueError("domain"), 2.0: ZeroDivisionError("zero"), 3.0: LookupError("first"), 4.0: TypeError("other")}


def failing(x):
    if x in ERRORS:
        raise ERRORS[x]
    return 2 * x


def test_a_primitive_of_ones_own_that_fails(backend):
    own = mg.primitive("failing_map", "f", failing, lambda g, out, x: 2 * g, replace=True)
    kernel = Map(own, 1, 4, Access(4, column_step=1), (Access(0, column_step=1),))
    assert run([kernel], [0.0, 1.0, 2.0, 5.0], 8, backend)[4:].tolist() == pytest.approx(
        [0.0, math.nan, math.nan, 10.0], nan_ok=True
    )
    with pytest.raises(LookupError, match="first"):
        run([kernel], [0.0, 3.0, 1.0, 4.0], 8, backend)
    with pytest.raises(TypeError, match="other"):
        run([kernel], [4.0, 0.0, 3.0, 0.0], 8, backend)


def test_a_primitive_of_ones_own_that_fails_in_training(backend):
    own = mg.primitive("failing_map", "f", failing, lambda g, out, x: 2 * g, replace=True)
    for examples, error in (([0.5, 3.0], LookupError), ([0.5, 4.0], TypeError), ([0.5, 1.0], ValueError)):
        w = mg.Value(1.0)
        optimizer = mg.optim.SGD([w], 0.1)
        with pytest.raises(error):
            mg.fit(lambda x, w=w: own(w * x) ** 2, examples, optimizer, batch_size=2, compile=backend)
        assert w.data == 1.0


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_kernels_whose_coefficients_are_close_have_code_of_their_own(backend, columns):
    coefficients = [1 / 3, 0.333333, 0.33333333333]
    still, sizes = Access(0), (1, columns)
    kernels = [
        Reduction(*sizes, Access(1 + columns * position, column_step=1), (Segment(coefficient, 1, still, None),))
        for position, coefficient in enumerate(coefficients)
    ]
    found = run(kernels, [1.0], 1 + 3 * columns, backend)
    assert found.tolist() == [1.0, *np.repeat(coefficients, columns).tolist()]


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_sum_of_zeros_is_minus_zero_unless_it_starts_from_0(backend, columns):
    parts = Segment(1.0, 1, Access(0), None), Segment(-1.0, 1, Access(1), None)
    for from_zero, sign in ((False, -1.0), (True, 1.0)):
        kernel = Reduction(1, columns, Access(2, column_step=1), parts, from_zero=from_zero)
        found = run([kernel], [-0.0, 0.0], 2 + columns, backend)[2:]
        assert np.copysign(1.0, found).tolist() == [sign] * columns
