"""Exported tables of few different rows: these, and which of them each row is."""

from itertools import pairwise

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.c.distinct_rows import Sequences, by_distinct_rows
from micrograd.compiler.backends.c.regions import Added, Block
from micrograd.compiler.ir.program import Access, Reduction, Segment
from tests.compiler.c_files import Built, needs_cc
from tests.compiler.test_export_large import numbers
from tests.compiler.test_scattered import LETTERS, drawn, program_of, sums_of

pytestmark = needs_cc


def by_rows(starts):
    """The index map of rows that start there."""
    return Access(table=starts[:, None, None])


@pytest.mark.parametrize("is_in_order", [False, True])
def test_sums_by_a_table_of_few_different_rows_are_added_up_row_by_row_first(is_in_order):
    text = np.array(drawn(200, 3))
    kernel = Added(600, 1, Access(table=LETTERS[text].reshape(-1, 1, 1)), -2.0, (Access(20, 1),), is_in_order)
    (block,), program = by_distinct_rows([Block(1, (kernel,))], program_of(700), Sequences())
    if is_in_order:
        assert (block.kernels, program.size) == ((kernel,), 700)
        return
    assert [each.rows * each.columns for each in block.kernels] == [program.size - 700, 600, program.size - 700]
    assert program.size <= 760
    memory = np.append(numbers(700), np.zeros(60))
    expected = sums_of([kernel], memory)
    np.testing.assert_allclose(sums_of(block.kernels, memory)[:700], expected[:700], rtol=1e-12)


@pytest.mark.parametrize("iterations", [1, 5])
def test_what_a_table_of_few_different_rows_names_is_copied_first(iterations):
    text = np.array(drawn(200, 3))
    parts = Segment(0.5, 1, Access(table=LETTERS[text].reshape(-1, 1, 1)), Access(20, 1))
    kernel = Reduction(600, 1, Access(700, 1), (parts,))
    (block,), program = by_distinct_rows([Block(iterations, (kernel,))], program_of(1300), Sequences())
    if iterations > 1:
        assert (block.kernels, program.size) == ((kernel,), 1300)
        return
    memory = np.append(numbers(1300), np.zeros(60))
    assert [each.rows * each.columns for each in block.kernels] == [program.size - 1300, 600]
    assert program.size <= 1360
    np.testing.assert_array_equal(sums_of(block.kernels, memory)[:1300], sums_of([kernel], memory)[:1300])


@pytest.mark.parametrize(
    "kernel",
    [
        Reduction(300, 2, Access(900, 2, 1), (Segment(1.0, 1, by_rows(np.arange(300) % 7), None),)),
        Reduction(300, 1, Access(900, 1), (Segment(1.0, 2, by_rows(np.arange(300) % 7), None),)),
        Reduction(600, 1, Access(900, 1), (Segment(1.0, 1, by_rows(np.arange(600) ** 2 % 601), None),)),
        Reduction(521, 1, Access(900, 1), (Segment(1.0, 1, by_rows(np.arange(521) ** 2 % 499), None),)),
    ],
    ids=["columns", "terms", "no rows that come again", "a prime number of rows"],
)
def test_other_kernels_stay(kernel):
    (block,), _ = by_distinct_rows([Block(1, (kernel,))], program_of(1500), Sequences())
    assert block.kernels == (kernel,)


@pytest.mark.parametrize("interleaved", [False, True])
def test_which_row_each_is_is_said_once_for_tables_of_the_same_text(interleaved):
    """The second table goes backwards, and without the first letters; or two such tables lie in each other."""
    letters = np.random.default_rng(3).permutation(99).reshape(9, 11)
    text = np.array(drawn(101, 9))
    first = letters[text].ravel()
    second = letters[:, ::-1][text[:1:-1]]
    if interleaved:
        second = np.stack([second + 100, letters[text[1:-1][::-1]]], axis=1)
    second = second.ravel()
    kernels = [
        Reduction(len(table), 1, Access(start, 1), (Segment(1.0, 1, Access(table=table.reshape(-1, 1, 1)), None),))
        for start, table in ((300, first), (1600, second))
    ]
    sequences = Sequences()
    (block,), program = by_distinct_rows([Block(1, tuple(kernels))], program_of(4100), sequences)
    assert len(block.kernels) == 2 + (4 if interleaved else 2)  # a copy of what is different, and all rows of it
    memory = np.append(numbers(4100), np.zeros(program.size - 4100))
    np.testing.assert_array_equal(sums_of(block.kernels, memory)[:4100], sums_of(kernels, memory)[:4100])
    which, backwards = sequences.find(text)
    assert not backwards
    assert len(sequences.around(which[3:])) == len(text)


@pytest.mark.parametrize("order", [1, -1])
def test_texts_that_overlap_are_one(order):
    text = np.array([*drawn(60, 5), 7])
    sequences = Sequences()
    for part in [text[:-1], text[2:]][::order]:
        sequences.add(part)
    for part in text[:-1], text[2:]:
        which, backwards = sequences.find(part)
        assert len(sequences.around(which)) == len(text)
        assert not backwards
        assert len({*zip(which.tolist(), part.tolist(), strict=True)}) == len({*part.tolist()})


def test_texts_that_differ_are_several():
    one, other = np.array(drawn(60, 5)), np.array(drawn(60, 5, seed=2))
    sequences = Sequences()
    sequences.add(one)
    assert sequences.find(other) is None
    sequences.add(other)
    assert sequences.find(other) is not None
    assert len(sequences.around(np.arange(70))) == 70


def network(count):
    """A network of two layers that reads a text of bits and says the next letter, and what it has for parameters."""
    rng = np.random.default_rng(4)
    letters = (rng.random((12, 6)) < 0.5).astype(float)
    text = letters[rng.integers(0, 12, count)].tolist()
    parameters = rng.uniform(-1.0, 1.0, (5, 6)).tolist()

    def f(w):
        c, total = [0.2] * 6, 0.0
        for now, following in pairwise(text):
            h = [mg.tanh(a * x + b * y) for a, b, x, y in zip(w[0], w[1], now, c, strict=True)]
            c = [mg.sigmoid(a * x + y) for a, x, y in zip(w[2], h, c, strict=True)]
            p = [a * x + b for a, b, x in zip(w[3], w[4], c, strict=True)]
            total += mg.dot(following, [x - mg.log(2 + sum(mg.exp(x) for x in p)) for x in p])
        return total / count

    return f, parameters


@pytest.mark.slow
def test_a_program_that_reads_a_text_is_as_short_for_a_long_one(tmp_path):
    sizes = []
    for count in 60, 120:
        f, parameters = network(count)
        file = Built(mg.compile(f).export(tmp_path / f"f_{count}.c", parameters))
        found, gradients = file.both(np.array(parameters))
        w = [[Value(number) for number in row] for row in parameters]
        result = f(w)
        slopes = mg.gradient(result, [leaf for row in w for leaf in row])
        assert found[0] == pytest.approx(result.data, rel=1e-12)
        np.testing.assert_allclose(gradients, [float(slope) for slope in slopes], rtol=1e-10)
        assert file.source.count("for (int step = ") == 3  # forward in both functions, and back
        assert f"step < {count - 1};" in file.source
        sizes.append(len(file.source))
    assert sizes[1] < sizes[0] + 100 * 6  # which letter it is, and a comma
