"""Exported programs of many kernels: products of matrices, functions that kernels share, and parts."""

import itertools
import re

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends.c.memory import Tables
from micrograd.compiler.backends.c.regions import in_even_rows
from micrograd.compiler.ir.program import Access, Reduction, Segment
from tests.compiler.c_files import WATCHED, Built, needs_cc

pytestmark = [needs_cc, pytest.mark.slow]


def numbers(*shape):
    """Numbers that differ, of both signs."""
    count = int(np.prod(shape))
    return (np.sin(1.0 + 0.7 * np.arange(count)) * (1 + np.arange(count) % 5)).reshape(shape)


def check(function, tmp_path, *arguments, rel=1e-11, flags=(), **options):
    """The file, whose numbers are those of the eager function."""
    file = Built(mg.compile(function).export(tmp_path / "f_0.c", *arguments, **options), flags)
    values = [mg.array(item) for item in arguments]
    result = function(*values)
    expected = [float(slope) for slope in mg.gradient(result, [leaf for item in values for leaf in item.flat])]
    found, gradients = file.both(*arguments)
    assert file.value(*arguments)[0] == pytest.approx(float(result.data), rel=rel)
    assert found[0] == pytest.approx(float(result.data), rel=rel)
    np.testing.assert_allclose(gradients, expected, rtol=rel, atol=rel * np.abs(expected).max())
    return file


def layer(x, w, b):
    """Products of both kinds: terms side by side in the layer, and columns in its gradients."""
    return mg.mean(
        [mg.tanh(mg.dot(row, weights) + shift) ** 2 for row in x for weights, shift in zip(w, b, strict=True)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize(("rows", "outputs", "width"), [(12, 8, 32), (10, 6, 21), (14, 19, 35)])
def test_products_of_matrices_are_computed_in_blocks(rows, outputs, width, precision, tmp_path):
    """Whole blocks, and what is left over in rows, columns and terms."""
    arguments = numbers(rows, width) / 9.0, numbers(outputs, width) / 5.0, numbers(outputs)
    file = check(layer, tmp_path, *arguments, rel=1e-3 if precision == "float32" else 1e-11, precision=precision)
    assert f"f_0_multiply_dots({rows}, {outputs}, {width}, 1," in file.source
    assert f"f_0_multiply({outputs}, {width}, {rows}, 0," in file.source


LANES = {
    "as many as this processor has": ("-O3", "-march=native"),
    "two or four": (),
    "one": ("-U__SSE2__", "-U__ARM_NEON"),
    "watched": WATCHED,
}


@pytest.mark.slow
@pytest.mark.parametrize("lanes", LANES)
def test_any_number_of_lanes_gives_the_same_sums(lanes, tmp_path):
    check(layer, tmp_path, numbers(11, 37) / 9.0, numbers(21, 37) / 5.0, numbers(21), flags=LANES[lanes])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "lanes"), [("float64" if number else "float32", lanes) for number, lanes in enumerate(LANES)]
)
def test_rows_of_uneven_lengths(precision, lanes, tmp_path):
    """Each letter attends to those before it, so that sums have 1, 2, 3 ... terms, and tables lead to them."""
    given = numbers(10, 16) / 9.0, *(numbers(16, 16) / 20.0 + 0.1 * k for k in range(3))
    rel = 2e-3 if precision == "float32" else 1e-11
    file = check(attention, tmp_path, *given, rel=rel, flags=LANES[lanes], precision=precision)
    assert "f_0_multiply_row(" in file.source


@pytest.mark.parametrize(
    ("starts", "counts"),
    [
        ([10, 20, 30, 40, 50, 5], [5, 1]),
        ([10, 20, 15, 25, 35], [2, 3]),
        ([7, 1, 9, 2, 40, 3, 77, 1, 5], [9]),
        ([100 * n * n + 3 * k for n in range(32) for k in range(16)], [16] * 32),
    ],
    ids=["the last one", "three", "none", "many long ones"],
)
def test_rows_that_are_evenly_apart_but_for_a_few(starts, counts):
    """A sum is divided there, so that most of it is a product of matrices."""
    a, b = Access(table=np.array(starts)[:, None, None], term_step=1), Access(200, column_step=1, term_step=2)
    kernel = Reduction(len(starts), 2, Access(100, 2, 1), (Segment(1.0, 9, a, b),))
    parts = in_even_rows(kernel)
    assert [part.rows for part in parts] == counts
    for number in range(3):
        shape, whole = (2, 9 if number else 1), [kernel.target, *kernel.accesses][number]
        found = [[part.target, *part.accesses][number].positions(part.rows, *shape) for part in parts]
        np.testing.assert_array_equal(np.concatenate(found), whole.positions(kernel.rows, *shape))
    assert len(parts) == 1 or all(access.table is None for part in parts for access in part.accesses)


def attention(x, *weights):
    """Two heads of causal attention, and the mean of what they find."""
    keys, values, found = [], [], []
    for row in x:
        query, key, value = ([mg.dot(row, of) for of in matrix] for matrix in weights)
        keys.append(key)
        values.append(value)
        for head in (slice(0, 8), slice(8, 16)):
            shares = mg.softmax([mg.dot(query[head], key[head]) for key in keys])
            found += [
                mg.tanh(mg.dot(shares, column)) for column in zip(*(value[head] for value in values), strict=True)
            ]
    return mg.mean(found)


def test_sums_that_begin_with_zero_are_products_of_matrices_too(tmp_path):
    def f(x, w):
        return mg.mean([mg.sin(sum(a * b for a, b in zip(row, of, strict=True))) for row in x for of in w])

    file = check(f, tmp_path, numbers(10, 21) / 9.0, numbers(6, 21) / 5.0)
    assert "f_0_multiply" in file.source


def looks_back(x, w):
    """Each number looks at all before it, as letters in a transformer do."""
    lengths = range(9, len(x))
    return mg.mean([mg.logsumexp(x[:k]) * mg.dot(x[:k], w[:k]) for k in lengths])


def in_groups(x):
    """Layers of groups, each of which reads numbers of a group in the same order as the others."""
    for count in (12, 14, 16):
        pairs = [(0, 3), (1, 1), (3, 0), (0, 4), (4, 2), (2, 4)]
        x = [mg.sin(x[5 * group + a] * x[5 * group + b]) for group in range(count) for a, b in pairs]
    return mg.mean(x)


@pytest.mark.slow
@pytest.mark.parametrize("count", [14, 40])
def test_kernels_of_the_same_form_share_a_function(count, tmp_path):
    """There is one function for all lengths, and a loop over these; where there are many, they are in several parts."""
    file = check(looks_back, tmp_path, numbers(count), numbers(count))
    assert "void f_0_sum(int terms, double *result, const double *x, const double *y)" in file.source
    assert re.search(r"for \(int item = 0; item < \d+; item\+\+\) \{\n        f_0_sum\(item \+ \d+, &", file.source)
    assert ("    f_0_part_2(" in file.source) == (count == 40)


def test_tables_are_arguments_of_shared_functions(tmp_path):
    file = check(in_groups, tmp_path, numbers(60))

    assert "result[row] = x[x_at[row % 6] + 5 * (row / 6)] * y[y_at[row % 6] + 5 * (row / 6)];" in file.source


def test_sums_of_as_many_numbers_as_each_layer_has(tmp_path):
    def f(x):
        for count, terms in ((12, 9), (14, 11), (16, 13), (17, 10), (18, 12)):
            positions = [[(k * k + 3 * n * n + n) % len(x) for n in range(terms)] for k in range(count)]
            x = [mg.sin(sum(x[position] for position in row)) for row in positions]
        return mg.mean(x)

    check(f, tmp_path, numbers(60))


def test_layers_of_one_size(tmp_path):
    def f(x, *layers):
        for w in layers:
            x = [[mg.tanh(mg.dot(row, weights)) for weights in w] for row in x]
        return mg.mean([mg.mean(row) for row in x])

    check(f, tmp_path, numbers(12, 12) / 9, *[numbers(12, 12) / 7 + k for k in range(5)])


def test_the_largest_of_many_numbers(tmp_path):
    file = check(lambda x: mg.mean([mg.logsumexp(row) for row in x]), tmp_path, numbers(6, 20))
    assert "largest = f_0_maximum(largest, x[" in file.source


def test_a_table_that_repeats_is_written_once(tmp_path):
    def f(x):
        return mg.mean([mg.sin(a * b) for row in x for a, b in itertools.combinations(row, 2)])

    file = check(f, tmp_path, numbers(60, 6))
    assert "const int f_0_indices_1[15]" in file.source
    assert "f_0_indices_1[column] + 6 * row" in file.source


def pairs(kernels):
    """Which numbers are written, and what each of them is made of."""
    found = []
    for kernel in kernels:
        accesses = [kernel.target, *kernel.accesses]
        positions = (access.positions(kernel.rows, kernel.columns, 1).ravel().tolist() for access in accesses)
        found += zip(*positions, strict=True)
    return sorted(found)


def test_rows_stay_one_by_one_where_no_length_of_rows_makes_them_alike():
    uneven = Access(table=np.arange(1088)[:, None, None] ** 2 % 997)
    kernel = Reduction(1088, 1, Access(9000, 1), (Segment(1.0, 1, uneven, None),))
    assert in_even_rows(kernel) == [kernel]


def test_a_table_that_is_a_part_of_another_one_is_not_written():
    tables = Tables("f_0", single=False)
    squares = np.arange(40) ** 2
    assert [tables.name(table) for table in (squares, squares[3:30], squares[3:9])] == [
        f"f_0_indices_{number}" for number in (1, 2, 3)
    ]
    assert "#define f_0_indices_2 (f_0_indices_1 + 3)" in tables.lines
    assert "static const int f_0_indices_3[6] = {" in tables.lines  # as short as a line that says so
    ones = np.ones(40, dtype=int)
    tables.name(np.concatenate([[0], ones]))
    tables.name(256 * ones)  # whose bytes are those of the last table from the eighth one on
    assert "static const int f_0_indices_5[40] = {" in tables.lines


def test_tables_of_positions_that_are_further_apart_or_fall_are_the_same(tmp_path):
    """The program reads three arrays by squares: one number after the other, every third one, and backwards."""
    picked = [k**3 % 29 for k in range(24)]

    def f(x, y, z):
        return mg.mean([mg.sin(x[k] * y[3 * k] + z[60 - 2 * k]) for k in picked])

    file = check(f, tmp_path, numbers(31), numbers(93), numbers(61))
    table = "f_0_indices_1[row]"
    assert f"matrix_product_1[row] = x[{table}] * y[3 * {table}] + z[60 - 2 * {table}];" in file.source
