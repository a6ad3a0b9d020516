"""Exported sums of different lengths."""

import random
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import micrograd as mg
from micrograd.compiler.backends.c.distinct_rows import Sequences, by_distinct_rows
from micrograd.compiler.backends.c.regions import Added, Block, in_even_rows
from micrograd.compiler.backends.c.scattered import scattered
from micrograd.compiler.ir.program import Access, Program, Reduction, Segment
from tests.compiler.c_files import Built, needs_cc
from tests.compiler.test_export_large import numbers, pairs
from tests.folders import ROOT

pytestmark = [pytest.mark.slow(together=True), needs_cc]


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "benchmarks"))


def drawn(count, of, seed=1):
    """Which of some each is, with as many of the last as there is room for."""
    rng = random.Random(seed)
    return [rng.randrange(of) for _ in range(count)]


def built(function, tmp_path, *arguments, **options):
    """The file, and the value and the gradients of eager."""
    file = Built(mg.compile(function).export(tmp_path / "f_0.c", *arguments, **options))
    values = [mg.array(item) for item in arguments]
    result = function(*values)
    slopes = [float(slope) for slope in mg.gradient(result, [leaf for item in values for leaf in item.flat])]
    return file, float(result.data), np.array(slopes)


def seen(which):
    """A sum over what is seen by one of several, each of which sees another number of points."""

    def f(x, w):
        return mg.mean([mg.sin(x[one, 0] * weight + x[one, 1]) for one, weight in zip(which, w, strict=True)])

    return f


def test_sums_of_different_lengths_are_one_loop(tmp_path):
    which = drawn(300, 12)
    file, value, slopes = built(seen(which), tmp_path, numbers(12, 2) / 9.0, numbers(300) / 5.0)
    found, gradients = file.both(numbers(12, 2) / 9.0, numbers(300) / 5.0)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-11)
    assert "] += " in file.source
    assert file.source.count("const int f_0_indices") <= 3  # which one it was, and little else
    assert len(file.source) < 12_000


def test_sums_of_different_lengths_beside_a_loop(tmp_path):
    sum_of = seen(drawn(300, 12))

    def f(x, w):
        state = 0.1
        for weight in w:
            state = mg.tanh(state * weight + x[0, 1])
        return sum_of(x, w) * state

    x, w = numbers(12, 2) / 9.0, numbers(300) / 5.0
    file, value, slopes = built(f, tmp_path, x, w)
    found, gradients = file.both(x, w)
    assert found[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(gradients, slopes, rtol=1e-10)
    assert "] += " in file.source
    assert "for (int step = " in file.source


def test_sums_of_few_terms_keep_their_order(tmp_path):
    """Bit for bit, as eager adds them up, whatever the order of the table."""
    which = [number for number, count in enumerate((3, 5, 2, 7, 4, 6)) for _ in range(count)]
    random.Random(2).shuffle(which)

    def f(x, w):
        return mg.dot([x[one] * weight for one, weight in zip(which, w, strict=True)], [1.0] * len(which))

    x, w = numbers(6) / 7.0, numbers(len(which)) / 3.0
    file, _, slopes = built(f, tmp_path, x, w)
    np.testing.assert_array_equal(file.both(x, w)[1], slopes)


@pytest.mark.parametrize("precision", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
@pytest.mark.unmeasured
def test_a_table_of_few_different_rows_is_short(precision, tmp_path):
    """Of 200 letters, each of eight bits, 20 are different: no table has a number for each bit."""
    rng = random.Random(4)
    alphabet = [[float(rng.random() < 0.5) for _ in range(8)] for _ in range(20)]
    text = [alphabet[rng.randrange(20)] for _ in range(200)]

    def f(w, scale):
        h = [0.1] * 8
        for row in text:
            h = [mg.tanh(w[0] * each + mg.sigmoid(bit * s)) for each, bit, s in zip(h, row, scale, strict=True)]
        return sum(h)

    w, scale = np.array([0.4]), np.abs(numbers(8)) / 4.0
    file, value, slopes = built(f, tmp_path, w, scale, precision=precision)
    rel = 1e-11 if precision == "float64" else 1e-4
    found, gradients = file.both(w, scale)
    assert found[0] == pytest.approx(value, rel=rel)
    np.testing.assert_allclose(gradients, slopes, rtol=rel, atol=rel)
    assert max(map(int, re.findall(r"const int \w+\[(\d+)\]", file.source))) <= 400
    assert "for (int step = 0; step < 1" in file.source


@pytest.mark.parametrize("target", [Access(9000, 1), Access(table=9000 + np.arange(1200)[:, None, None] ** 2)])
def test_every_third_row_shares_a_table(target):
    """What is read of each of 400 vectors are its last two numbers and its first one, in this order."""
    which = 3 * np.array(drawn(400, 50))
    read = Access(table=(which[:, None] + [1, 2, 0]).reshape(-1, 1, 1))
    even = Access(table=(6 * np.arange(400)[:, None] + [2, 0, 1]).reshape(-1, 1, 1))
    kernel = Reduction(1200, 1, target, (Segment(1.0, 1, Access(7, row_step=2), read), Segment(1.0, 1, even, None)))
    parts = in_even_rows(kernel)
    if target.table is not None:  # whose every third row is no table more than a number
        assert parts == [kernel]
        return
    assert [(part.rows, part.columns) for part in parts] == [(400, 1)] * 3
    assert pairs(parts) == pairs([kernel])


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(("name", "size"), [("bundle", ()), ("runge_kutta", (1000,)), ("recurrent", (250,))])
def test_a_file_is_short_whatever_the_number_of_steps_or_points(name, size, tmp_path):
    """1,000 steps or points take 60 kB, but for the numbers that the program was given, which are not there again."""
    program = getattr(import_module(f"programs.{name}"), name)(*size)
    numbers_, given = program.data()
    weights = {key: import_module("programs.program").mapped(mg.Value, each) for key, each in numbers_.items()}
    fast = mg.compile(lambda weights: program.scalars(weights, given))
    source = Path(fast.export(tmp_path / "f_0.c", weights, work="argument")[0]).read_text()
    code = re.sub(r"^static const double \w+\[\d*\] =\s*\{.*?\};", "", source, flags=re.MULTILINE | re.DOTALL)
    assert len(code) < 60_000
    assert "for (int " in code
    assert "weights" in code


def sums_of(kernels, memory):
    """The numbers of a buffer after kernels that set, add, or copy."""
    memory = memory.copy()
    for kernel in kernels:
        shape = kernel.rows, kernel.columns, 1
        targets = kernel.target.positions(*shape).ravel().tolist()
        if isinstance(kernel, Added):
            factors = [np.broadcast_to(each.positions(*shape), shape).ravel() for each in kernel.factors]
            terms = kernel.coefficient * np.prod([memory[each] for each in factors], axis=0) * np.ones(len(targets))
            for target, term in zip(targets, terms.tolist(), strict=True):
                memory[target] = memory[target] + term if factors else term
        else:
            (part,) = kernel.segments
            factors = [np.broadcast_to(each.positions(*shape), shape).ravel() for each in part.factors]
            memory[targets] = part.coefficient * np.prod([memory[each] for each in factors], axis=0)
    return memory


def program_of(size):
    """A program with a buffer of so many numbers, and nothing else."""
    return Program(size, ())


LETTERS = np.array([[3, 10, 5], [4, 10, 6], [3, 11, 6]])  # the positions that each of three letters names


def sums(lengths, table, target, coefficient=1.0, from_zero=False):
    """A sum of each length, of what the table says, one after the other."""
    ends = np.cumsum(lengths)
    return [
        Reduction(
            1,
            1,
            Access(target + number),
            (Segment(coefficient, length, Access(table=np.array(table[end - length : end]).reshape(1, 1, -1)), None),),
            from_zero=from_zero,
        )
        for number, (length, end) in enumerate(zip(lengths, ends.tolist(), strict=True))
    ]


@pytest.mark.parametrize("from_zero", [False, True])
def test_sums_become_a_loop_that_sets_them_and_one_that_adds(from_zero):
    order = np.random.default_rng(1).permutation(90)
    ends = [9, 19, 30, 45, 66, 90]
    table = [each for begin, end in zip([0, *ends], ends, strict=False) for each in sorted(order[begin:end].tolist())]
    kernels = sums([9, 10, 11, 15, 21, 24], table, 200, from_zero=from_zero)
    (block,) = scattered([Block(1, tuple(kernels))], program_of(300), np.zeros(0, dtype=int))
    zero, added = block.kernels
    assert (zero.rows * zero.columns, added.rows * added.columns) == (6, 90)
    assert str(zero.coefficient) == ("0.0" if from_zero else "-0.0")
    memory = numbers(300)
    expected = memory.copy()
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        expected[200 + number] = memory[table[begin:end]].sum()
    np.testing.assert_allclose(sums_of(block.kernels, memory), expected, rtol=1e-12)


def test_sums_of_two_arrays_that_begin_with_short_ones_each_are_two_loops():
    table = np.random.default_rng(1).permutation(120).tolist()
    kernels = sums([11, 12, 13, 14, 15, 11, 12, 13, 14], table, 200)
    (block,) = scattered([Block(1, tuple(kernels))], program_of(300), np.zeros(0, dtype=int))
    assert [each.rows * each.columns for each in block.kernels] == [5, 65, 4, 50]


def test_short_sums_whose_order_is_another_stay_in_it():
    order = [5, 3, 9, 1, 0, 8, 7, 2, 6, 4, 11, 10, 12, 15, 13, 14, 16, 19, 18, 17] * 3
    table = [3 * each + number // 20 for number, each in enumerate(order)]
    kernels = sums([6, 7, 7, 8, 8, 8, 8, 8], table, 200)
    (block,) = scattered([Block(1, tuple(kernels))], program_of(300), np.zeros(0, dtype=int))
    *_, added = block.kernels
    assert added.is_in_order
    read = [access.positions(added.rows, added.columns, 1).ravel().tolist() for access in added.factors]
    assert read == [table]


def test_a_short_sum_whose_parts_come_in_another_order_begins_again():
    table = np.random.default_rng(1).permutation(90).tolist()
    first, *others = sums([20, 30, 40], table, 200)
    less = sums([30], table[::-1][:30], 203, coefficient=-1.0)[0].segments[0]
    both = replace(first, segments=(*first.segments, less))
    mixed = replace(sums([3], table[:3], 206)[0], segments=(less, first.segments[0]))
    short = [replace(part, terms=4, first=Access(table=part.first.table[:, :, :4])) for part in mixed.segments]
    last = replace(mixed, segments=tuple(short))
    (block,) = scattered([Block(1, (both, *others, last))], program_of(300), np.zeros(0, dtype=int))
    assert block.kernels[-1] == last
    assert isinstance(block.kernels[0], Added)


def test_sums_by_letters_are_loops_over_rows_of_letters():
    text = np.array(drawn(200, 3))
    by_target = {target: np.flatnonzero(LETTERS[text].ravel() == target) for target in np.unique(LETTERS)}
    kernels = []
    for target, read in sorted(by_target.items(), key=lambda item: len(item[1])):
        table = Access(table=read.reshape(1, 1, -1))
        kernels.append(Reduction(1, 1, Access(700 + int(target)), (Segment(1.0, len(read), table, None),)))
    blocks = scattered([Block(1, tuple(kernels))], program_of(720), np.zeros(0, dtype=int))
    (block,), program = by_distinct_rows(blocks, program_of(720), Sequences())
    *_, own, added, last = block.kernels
    assert program.size == 720 + own.rows * own.columns == 720 + last.rows * last.columns
    assert added.rows * added.columns == 600
    memory = np.append(numbers(720), np.zeros(program.size - 720))
    expected = sums_of(block.kernels, memory)
    for target, read in by_target.items():
        assert expected[700 + target] == pytest.approx(memory[read].sum(), rel=1e-12)


@pytest.mark.parametrize("what", ["few", "read again", "another array", "a largest", "many", "other segments"])
def test_kernels_that_are_no_such_sums_stay(what):
    table = np.random.default_rng(1).permutation(90).tolist()
    kernels = sums([20, 30, 40], table, 200)
    gradients = np.zeros(0, dtype=int)
    if what == "few":
        kernels = kernels[:2]
    elif what == "read again":
        kernels[2] = sums([40], [200, *table[:39]], 202)[0]
    elif what == "another array":
        gradients = np.array([201])
    elif what == "a largest":
        kernels[1] = replace(kernels[1], largest=True)
    elif what == "many":
        kernels[1] = Reduction(300, 1, Access(300, 1), kernels[1].segments)
    else:
        kernels[1] = sums([30], table[:30], 201, coefficient=0.5)[0]
    (block,) = scattered([Block(1, tuple(kernels))], program_of(700), gradients)
    assert sorted(map(repr, block.kernels)) == sorted(map(repr, kernels))
