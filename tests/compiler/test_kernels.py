"""Kernels of all layouts, on both backends, against loops over their elements as Program describes them."""

import math
import random

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.function import backend_of
from micrograd.compiler.program import Access, Map, Program, Reduction, Segment, Take

GIVEN = 600  # numbers that the kernels read
NOTHING = np.zeros(0, dtype=np.int64)


def place(access, row, column, term):
    """Where an element is."""
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
                return buffer[place(access, row, column, term)]  # noqa: B023  # called at once

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
            yield place(kernel.target, row, column, 0), result


def run(kernels, numbers, size, backend):
    program = Program(size, tuple(kernels), NOTHING, NOTHING, NOTHING, slice(0, 0), ())
    executable = backend_of(backend)(program)
    executable.buffer[: len(numbers)] = numbers
    executable.run()
    return executable.buffer


def operand(rng, layout, rows, columns, terms):
    """An access to the numbers that are given, in a layout."""
    base = rng.randrange(50)
    if layout == "elements":
        places = [rng.randrange(GIVEN) for _ in range(rows * columns * terms)]
        return Access(0, table=np.array(places).reshape(rows, columns, terms))
    row_step = rng.choice([0, columns, 29])
    column_step, term_step = {
        "columns": (1, rng.choice([0, columns, 7])),  # side by side along the columns
        "terms": (rng.choice([0, terms, 5]), 1),
        "still": (0, 0),
        "column": (0, rng.choice([1, 2])),
        "term": (rng.choice([1, 2]), 0),
        "apart": (3, 2),
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
    """Where a kernel writes, from a place on."""
    if even:
        return Access(end, columns, 1)
    places = end + np.array(rng.sample(range(rows * columns), rows * columns))
    if columns > 1 and rng.random() < 0.5:
        return Access(0, table=places.reshape(rows, columns, 1))
    if rng.random() < 0.5:
        return Access(end, 1, rows)
    return Access(0, 0, 1, row_table=end + columns * np.array(rng.sample(range(rows), rows)))


def check(kernels, numbers, end, backend):
    found = run(kernels, numbers, end, backend)
    for kernel in kernels:
        for where, result in expected(kernel, numbers):
            assert found[where] == pytest.approx(result, rel=1e-12, abs=1e-12), kernel


def drawn(make, count, seed):
    """Kernels that write side by side, after the numbers that are given."""
    rng = random.Random(seed)
    numbers = [rng.uniform(-2, 2) for _ in range(GIVEN)]
    kernels, end = [], GIVEN
    for _ in range(count):
        kernels.append(make(rng, end))
        end += kernels[-1].rows * kernels[-1].columns
    return kernels, numbers, end


LAYOUTS = ["columns", "terms", "still", "column", "term", "apart", "rows", "tables", "elements"]
MIXED = {"side by side": ["columns", "still", "term"], "along terms": ["terms", "column"], "any": LAYOUTS}


@pytest.mark.parametrize("layouts", MIXED)
@pytest.mark.parametrize("largest", [False, True], ids=["sums", "maxima"])
def test_reductions_of_all_layouts(layouts, largest, backend):
    def make(rng, end):
        rows, columns = rng.choice([1, 3]), rng.choice([1, 2, 4, 5, 8, 9, 16, 19, 33])
        segments = []
        for _ in range(rng.choice([1, 1, 2])):
            terms = rng.choice([1, 2, 4, 7, 8, 9, 17])
            first, second = (operand(rng, rng.choice(MIXED[layouts]), rows, columns, terms) for _ in range(2))
            two = not largest and rng.random() < 0.6
            segments.append(Segment(rng.choice([1.0, -1.0, 0.5]), terms, first, second if two else None))
        return Reduction(rows, columns, target(rng, rows, columns, end, rng.random() < 0.7), tuple(segments), largest)

    check(*drawn(make, 25, 1), backend)


def test_maps_of_all_layouts(backend):
    own = mg.primitive("own_map", "o", lambda x: 2 * x + 1, lambda g, out, x: 2 * g, replace=True)
    primitives = [mg.primitives.div, mg.primitives.sin, mg.primitives.sigmoid, mg.primitives.maximum, own]

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


def test_kernels_read_what_those_before_them_wrote_and_constants(backend):
    double = Reduction(1, 2, Access(4, column_step=1), (Segment(1.0, 1, Access(0, column_step=1), Access(2)),))
    negative = Reduction(1, 2, Access(6, column_step=1), (Segment(-1.0, 1, Access(4, column_step=1), None),))
    constants = ((2, np.array([2.0])),)
    program = Program(8, (double, negative), NOTHING, NOTHING, NOTHING, slice(0, 0), constants)
    executable = backend_of(backend)(program)
    executable.buffer[:2] = [3.0, 5.0]
    executable.run()
    assert executable.buffer.tolist() == [3.0, 5.0, 2.0, 0.0, 6.0, 10.0, -6.0, -10.0]
