"""That samples lie side by side where that is better, and that nothing else comes of it."""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Loop, Map, Program, Reduction, Segment, Take
from micrograd.compiler.passes import transposing as stage
from micrograd.compiler.passes.transposing import transposed
from tests.campaigns.integers import LARGEST, program_of

SAMPLES, WIDTH = 6, 5


@pytest.fixture
def all_is_worth_it(monkeypatch):
    """Take every program with two samples for worth it."""
    for name, value in {"_SAMPLES": 2, "_NUMBERS": 0, "_SHARE": -1.0, "_GAIN": float("inf")}.items():
        monkeypatch.setattr(stage, name, value)


def triangles(points, rows, centres):
    """How far points are from each centre, by a triangular matrix for each: 1 to 5 numbers are side by side."""
    totals = []
    for point in points:
        distances = []
        for matrix, centre in zip(rows, centres, strict=True):
            apart = [number - other for number, other in zip(point, centre, strict=True)]
            distances.append(-sum(mg.dot(row, apart[: len(row)]) ** 2 for row in matrix))
        totals.append(mg.logsumexp(distances))
    return mg.mean(totals)


def mixture(count, clusters=3):
    rng = random.Random(1)
    points = [[rng.gauss(0, 1) for _ in range(WIDTH)] for _ in range(count)]
    rows = [[[Value(rng.gauss(0, 1)) for _ in range(i + 1)] for i in range(WIDTH)] for _ in range(clusters)]
    centres = [[Value(rng.gauss(0, 1)) for _ in range(WIDTH)] for _ in range(clusters)]
    return partial(triangles, points, rows, centres), [v for matrix in rows for row in matrix for v in row] + [
        v for centre in centres for v in centre
    ]


def gradients(function, leaves):
    for leaf in leaves:
        leaf.grad = 0.0
    loss = function()
    loss.backward()
    return [loss.data, *(leaf.grad for leaf in leaves)]


@pytest.mark.slow
def test_numbers_of_many_samples_lie_side_by_side(backend):
    loss, leaves = mixture(400)
    fast = mg.compile(loss, backend=backend)
    assert gradients(fast, leaves) == pytest.approx(gradients(loss, leaves), rel=1e-12)
    program = fast.program().program
    of_samples = [kernel for kernel in program.kernels if 400 in (kernel.columns, kernel.terms)]
    assert len(of_samples) > 20
    for kernel in of_samples:
        step = "column_step" if kernel.columns == 400 else "term_step"
        assert {getattr(access, step) for access in kernel.accesses} <= {0, 1}


@pytest.mark.slow
def test_so_do_those_that_would_be_computed_in_short_vectors():
    """Each sample has 5 numbers side by side: 1,000 rows of them, and no gradient, which would need more."""
    rng = random.Random(2)
    points = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(1000)]
    weights, means, scales = ([Value(rng.gauss(0, 1), requires_grad=False) for _ in range(5)] for _ in range(3))

    def loss():
        total = 0.0
        for x, y in points:
            turned = [[scale * (x - mean), scale * (y - mean) + x] for mean, scale in zip(means, scales, strict=True)]
            total += mg.logsumexp([w - 0.5 * mg.dot(pair, pair) for w, pair in zip(weights, turned, strict=True)])
        return total

    fast = mg.compile(loss, backend="numpy")
    assert float(fast()) == pytest.approx(float(loss()), rel=1e-12)
    kernels = fast.program().program.kernels
    assert not [kernel for kernel in kernels if (kernel.rows, kernel.columns) == (1000, 5)]
    assert [kernel for kernel in kernels if (kernel.rows, kernel.columns) == (5, 1000)]


@pytest.mark.slow
def test_of_pairs_the_rows_may_be_samples_and_the_pairs_too():
    """The differences of all pairs of points, of which each has two numbers side by side."""

    def apart(points):
        return mg.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2)).sum()

    points = np.random.default_rng(0).normal(size=(64, 2))
    fast = mg.compile(mg.value_and_grad(apart), backend="llvm")
    (value, slopes), (expected, expected_slopes) = fast(points), mg.value_and_grad(apart)(points)
    assert value == pytest.approx(expected, rel=1e-12)
    assert slopes == pytest.approx(expected_slopes, rel=1e-9, abs=1e-12)
    kernels = [kernel for kernel in fast.program(points).program.kernels if kernel.rows * kernel.columns == 64 * 64 * 2]
    assert kernels
    for kernel in kernels:
        assert kernel.columns >= 64
        assert {access.column_step for access in (kernel.target, *kernel.accesses)} <= {0, 1}


def test_few_samples_stay_one_after_the_other():
    loss, _ = mixture(40)
    program = mg.compile(loss, backend="numpy").program().program
    assert not [kernel for kernel in program.kernels if kernel.columns == 40 and kernel.rows > 1]


@pytest.mark.slow
@pytest.mark.usefixtures("all_is_worth_it")
@pytest.mark.parametrize("count", [3, 7])
def test_random_programs_of_samples_give_what_eager_gives(count, backend, monkeypatch):
    """Each sample has three numbers, the same program for each, and sums of one to three of the results."""
    moved = []

    def watched(program):
        result = transposed(program)
        moved.append(result is not program)
        return result

    monkeypatch.setattr("micrograd.compiler.passes.lists.transposed", watched)
    checked = 0
    for number in range({"numpy": 8, "llvm": 4, "jax": 2}[backend]):
        of_number = program_of(11, number, size=7)
        rng = random.Random(number)
        shared = [Value(float(rng.randint(-2, 2))) for _ in of_number.inputs[1:]]
        own = [[Value(float(rng.randint(-2, 2))) for _ in range(3)] for _ in range(count)]

        def loss(own=own, shared=shared, of_number=of_number):
            losses = []
            for sample in own:
                results = [of_number(x, *shared) for x in sample]
                sums = [mg.dot(results[:terms], sample[:terms]) for terms in (1, 2, 3)]
                losses.append(mg.maximum(*sums) - sums[0] * shared[0] + sums[1] * results[2])
            return sum(losses) + mg.maximum(*losses)

        leaves = [*shared, *(x for sample in own for x in sample)]
        expected = gradients(loss, leaves)
        if max(map(abs, expected)) <= LARGEST:
            assert gradients(mg.compile(loss, backend=backend), leaves) == expected, of_number
            checked += 1
    assert checked
    assert moved.count(True) >= checked / 2


def of_kernels(kernels, constants, outputs, last=0):
    """A program whose inputs come first in the buffer; with a last array of so many numbers."""
    sizes = {0: WIDTH, GIVEN: SAMPLES * WIDTH, MADE: SAMPLES * WIDTH, AFTER: SAMPLES * WIDTH, LAST: last}
    arrays = np.array([*sizes.items()])
    return Program(120 + last, (*kernels,), np.arange(WIDTH), np.array(outputs), constants=constants, arrays=arrays)


ROWS = Access(0, 0, 0, 1)  # the inputs, for all samples
GIVEN, MADE, AFTER = 8, 40, 80  # arrays: constants, and what is computed of them
LAST = AFTER + SAMPLES * WIDTH


def triangle(terms):
    """Of each sample the dot product of as many constants and inputs; beside it the one with fewer."""
    factors = Access(GIVEN, WIDTH, 0, 1), ROWS
    return Reduction(SAMPLES, 1, Access(MADE + terms - 1, WIDTH), (Segment(1.0, terms, *factors),))


@pytest.fixture
def program():
    numbers = np.random.default_rng(0).integers(-3, 4, SAMPLES * WIDTH).astype(float)
    triangles = [triangle(terms) for terms in range(1, WIDTH + 1)]
    return of_kernels(triangles, ((GIVEN, numbers),), [MADE, MADE + 7, MADE + SAMPLES * WIDTH - 1])


def results(program):
    return backend_of("numpy").run_of(program)(np.arange(1.0, 1 + WIDTH))[0].tolist()


@pytest.mark.usefixtures("all_is_worth_it")
class TestArrays:
    def test_constants_and_results_are_transposed(self, program):
        found = transposed(program)
        assert results(found) == results(program)
        for kernel in found.kernels:
            assert (kernel.rows, kernel.columns, kernel.target.column_step) == (1, SAMPLES, 1)
            assert kernel.segments[0].first.column_step == 1
        ((start, numbers),) = found.constants
        assert start == GIVEN
        assert numbers.reshape(WIDTH, SAMPLES).T.ravel().tolist() == program.constants[0][1].tolist()
        assert found.outputs.tolist() == [MADE, MADE + 2 * SAMPLES + 1, MADE + SAMPLES * WIDTH - 1]

    def test_what_is_computed_with_them_is_taken_too(self, program):
        double = Reduction(
            1, SAMPLES * WIDTH, Access(AFTER, column_step=1), (Segment(2.0, 1, Access(MADE, column_step=1), None),)
        )
        longer = of_kernels([*program.kernels, double], program.constants, [AFTER + 8, AFTER + 29])
        found = transposed(longer)
        assert results(found) == results(longer)
        assert found.outputs.tolist() == [AFTER + 3 * SAMPLES + 1, AFTER + 29]
        assert (found.kernels[-1].rows, found.kernels[-1].columns) == (1, SAMPLES * WIDTH)

    @pytest.mark.parametrize("kind", ["loop", "take"])
    def test_what_a_loop_or_a_take_touches_stays(self, program, kind):
        negative = Map(
            mg.engine.primitives.neg,
            1,
            2,
            Access(AFTER, 0, 1, iteration_step=2),
            (Access(MADE, 0, 1, iteration_step=2),),
        )
        reads = {
            "loop": Loop(3, (negative,)),
            "take": Take(1, 1, 3, Access(AFTER), Access(0), Access(MADE, term_step=1)),
        }[kind]
        longer = of_kernels([*program.kernels, reads], program.constants, [AFTER])
        found = transposed(longer)
        assert results(found) == results(longer)
        assert found.kernels[-1] is reads
        assert {kernel.target.base for kernel in found.kernels[:-1]} <= {MADE + i for i in range(WIDTH)}

    def test_an_array_that_samples_do_not_divide_stays(self, program):
        arrays = np.array([(0, WIDTH), (GIVEN, SAMPLES * WIDTH), (MADE, SAMPLES * WIDTH + 1)])
        assert transposed(replace(program, arrays=arrays)).outputs.tolist() == program.outputs.tolist()


def test_a_program_that_would_not_be_faster_stays(program, monkeypatch):
    monkeypatch.setattr(stage, "_SAMPLES", 2)
    monkeypatch.setattr(stage, "_NUMBERS", 0)
    assert transposed(program) is not program
    monkeypatch.setattr(stage, "_GAIN", 0.0)
    assert transposed(program) is program
