"""That samples lie side by side where that is better, and that nothing else comes of it."""

import random
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.passes import transposing as stage
from micrograd.compiler.passes.transposing import transposed
from tests.campaigns.integers import LARGEST, program_of

WIDTH = 5


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
@pytest.mark.unmeasured
def test_numbers_of_many_samples_lie_side_by_side(backend):
    loss, leaves = mixture(300)
    fast = mg.compile(loss, backend=backend)
    assert gradients(fast, leaves) == pytest.approx(gradients(loss, leaves), rel=1e-12)
    program = fast.program().program
    of_samples = [kernel for kernel in program.kernels if 300 in (kernel.columns, kernel.terms)]
    assert len(of_samples) > 20
    for kernel in of_samples:
        step = "column_step" if kernel.columns == 300 else "term_step"
        assert {getattr(access, step) for access in kernel.accesses} <= {0, 1}


@pytest.mark.slow
@pytest.mark.unmeasured
def test_so_do_those_that_would_be_computed_in_short_vectors():
    """Each sample has 5 numbers side by side: 600 rows of them, and no gradient, which would need more."""
    rng = random.Random(2)
    points = [(rng.gauss(0, 1), rng.gauss(0, 1)) for _ in range(600)]
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
    assert not [kernel for kernel in kernels if (kernel.rows, kernel.columns) == (600, 5)]
    assert [kernel for kernel in kernels if (kernel.rows, kernel.columns) == (5, 600)]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_of_pairs_the_rows_may_be_samples_and_the_pairs_too():
    """The differences of all pairs of points, of which each has two numbers side by side."""

    def apart(points):
        return mg.exp(-0.5 * ((points[:, None] - points) ** 2).sum(axis=2)).sum()

    points = np.random.default_rng(0).normal(size=(64, 2))
    fast = mg.compile(mg.value_and_grad(apart), backend="llvm")
    value, slopes = fast(points)
    differences = points[:, None] - points
    near = np.exp(-0.5 * (differences**2).sum(axis=2))
    assert value == pytest.approx(near.sum(), rel=1e-12)
    assert slopes == pytest.approx(-2.0 * (near[:, :, None] * differences).sum(axis=1), rel=1e-9, abs=1e-12)
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
@pytest.mark.parametrize("count", [3, 5])
@pytest.mark.unmeasured
def test_random_programs_of_samples_give_what_eager_gives(count, backend, monkeypatch):
    """Each sample has three numbers, the same program for each, and sums of one to three of the results."""
    moved = []

    def watched(program, are_few):
        result = transposed(program, are_few)
        moved.append(result is not program)
        return result

    monkeypatch.setattr("micrograd.compiler.passes.lists.transposed", watched)
    checked = 0
    for number in range({"numpy": 4, "llvm": 3, "jax": 1}[backend]):
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
