"""Kernels of all layouts, on each backend, against loops over their elements as Program describes them."""

import math
import random
import re

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends.llvm.llvm_codes import PANEL, code_of
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.calling.picture import draw_program
from micrograd.compiler.ir.program import Access, Loop, Map, Program, Reduction, Segment, Take

pytestmark = pytest.mark.slow(together=True)

GIVEN = 9000  # numbers that the kernels read
NOTHING = np.zeros(0, dtype=np.int64)
OWN = mg.primitive("own_map", "o", lambda x: 2 * x + 1, lambda g, out, x: 2 * g, replace=True)
BETWEEN, UNTOUCHED = 5, 0.12345  # so many positions before and after what a kernel writes stay as they are


def position(access, row, column, term):
    start = access.base + access.row_step * row
    if access.table is not None:
        columns, terms = access.table.shape[1:]
        start = access.table[row, column % columns, term % terms]
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
        return Access(0, 0, column_step, term_step, table=np.array(starts).reshape(-1, 1, 1))
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
    return Access(0, 0, 1, table=end + columns * np.array(rng.sample(range(rows), rows))[:, None, None])


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

    count = 6 if backend != "jax" else 2 if many else 4
    check(*drawn(make, count, 1), backend)


COUNTS = [12, 31, 33, 70, 511, 512, 543, 1100]  # of terms


@pytest.mark.parametrize("largest", [False, True], ids=["sums", "maxima"])
@pytest.mark.parametrize("segments", [1, 2, 9])
@pytest.mark.unmeasured
def test_few_results_of_any_number_of_terms_have_one_code(segments, largest, backend):
    def make(terms, end):
        factors = Access(terms, 7, 1, 1), None if largest else Access(2 * terms, 3, 1, 1)
        counts = [terms] * (segments - 1) + [terms - 3]
        parts = tuple(Segment(1.0 + number % 2, count, *factors) for number, count in enumerate(counts))
        return Reduction(2, 1, Access(end, 1, 1), parts, largest)

    kernels = [make(terms, GIVEN + BETWEEN + 7 * place) for place, terms in enumerate(COUNTS)]
    assert len({code_of(kernel).name for kernel in kernels}) == 1
    numbers = np.random.default_rng(1).normal(size=GIVEN).tolist()
    check(kernels, numbers, GIVEN + BETWEEN + 7 * len(kernels), backend)


@pytest.mark.parametrize("terms", [40, 600])
def test_few_results_in_a_loop_move_at_each_iteration(terms, backend):
    factors = Access(0, 0, 0, 1, iteration_step=3), Access(1000, 0, 0, 1, iteration_step=5)
    loop = Loop(3, (Reduction(1, 1, Access(2000, 1, 1, iteration_step=1), (Segment(1.0, terms, *factors),)),))
    numbers = np.random.default_rng(0).normal(size=2000)
    assert code_of(loop.kernels[0]).width == (8 if terms == 40 else 32)
    found = run([loop], numbers, 2003, backend)
    assert found == pytest.approx(run(loop.unrolled(), numbers, 2003, backend), rel=1e-12)


def factors_of_a_product(rng, rows, terms, side_by_side):
    """One that is the same in all rows, and one that is the same in all columns."""
    step = {"columns": (1, rng.choice([19, 40])), "terms": (rng.choice([terms, 0, 3]), 1)}[side_by_side]
    of_columns = Access(rng.randrange(50), 0, *step)
    of_terms = {"columns": rng.choice([0, 1, 7]), "terms": 1}[side_by_side]
    starts = np.array([rng.randrange(GIVEN // 2) for _ in range(rows)])
    of_rows = rng.choice(
        [
            Access(rng.randrange(50), rng.choice([1, terms, 5]), 0, of_terms),
            Access(0, 0, 0, of_terms, table=np.array(starts).reshape(-1, 1, 1)),
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
    count = 3 if backend == "jax" else 10
    kernels, numbers, end = drawn(lambda rng, end: product(rng, side_by_side, products, end), count, 4)
    assert all(code_of(kernel).block > 1 for kernel in kernels)
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
            of_rows = Access(0, 0, 0, 1, table=np.array(rng.sample(range(GIVEN // 2), rows))[:, None, None])
        segments.append(Segment(rng.choice([1.0, -1.0, 0.5]), terms, *rng.sample([of_columns, of_rows], 2)))
    return Reduction(rows, columns, Access(end, columns, 1), tuple(segments))


@pytest.mark.slow
@pytest.mark.unmeasured
def test_large_products_of_matrices_are_packed(backend):
    count = 3 if backend == "jax" else 8
    kernels, numbers, end = drawn(large_product, count, 5)
    assert all(code_of(kernel).packed for kernel in kernels)
    check(kernels, numbers, end, backend)


OF_COLUMNS, OF_ROWS = Access(0, 0, 20, 1), Access(500, 20, 0, 1)


@pytest.mark.parametrize(("rows", "most", "block"), [(16, 2, 2), (16, 8, 8), (18, 8, 4), (15, 8, 4)])
def test_a_product_is_computed_in_as_many_rows_as_the_processor_has_registers_for(rows, most, block):
    kernel = Reduction(rows, 16, Access(GIVEN, 16, 1), (Segment(1.0, 20, OF_COLUMNS, OF_ROWS),))
    assert code_of(kernel, most).block == block


@pytest.mark.parametrize(
    ("rows", "columns", "parts", "packed"),
    [
        (16, 16, [(20, OF_COLUMNS, OF_ROWS)], True),
        (16, 16, [(20, OF_ROWS, OF_COLUMNS), (1, Access(0, column_step=1), None)], True),
        (15, 16, [(20, OF_COLUMNS, OF_ROWS)], False),
        (16, 15, [(20, OF_COLUMNS, OF_ROWS)], False),
        (16, 16, [(PANEL + 1, OF_COLUMNS, OF_ROWS)], False),
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


def operand_of_one_column(rng, layout, rows, terms):
    """An access of a kernel of one column."""
    base, term_step = rng.randrange(50), rng.choice([0, 1, 1, 2])
    if layout == "tables":
        return Access(0, table=np.array([rng.randrange(GIVEN) for _ in range(rows * terms)]).reshape(rows, 1, terms))
    if layout in ("rows", "squares"):
        starts = np.array([rng.randrange(GIVEN - 2 * terms) for _ in range(rows)])
        return Access(0, term_step=1 if layout == "squares" else term_step, table=np.array(starts).reshape(-1, 1, 1))
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


@pytest.mark.unmeasured
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
    assert code_of(loop.kernels[0]).block > 1
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


@pytest.mark.unmeasured
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


@pytest.mark.parametrize("index", [1.0, -2.0, math.nan])
def test_a_take_reads_nothing_past_its_table(index, backend):
    table = np.array([0, 2**40])[:1].reshape(1, 1, 1)  # what follows it in memory is no position in the buffer
    kernel = Take(1, 1, 1, Access(2), Access(1), Access(0, table=table))
    assert math.isnan(run([kernel], [10.0, index], 3, backend)[2])


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
def test_a_sum_of_zeros_is_minus_zero_unless_it_starts_from_0(backend, columns):
    parts = Segment(1.0, 1, Access(0), None), Segment(-1.0, 1, Access(1), None)
    for from_zero, sign in ((False, -1.0), (True, 1.0)):
        kernel = Reduction(1, columns, Access(2, column_step=1), parts, from_zero=from_zero)
        found = run([kernel], [-0.0, 0.0], 2 + columns, backend)[2:]
        assert np.copysign(1.0, found).tolist() == [sign] * columns
