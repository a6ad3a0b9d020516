"""What is like no other: irregular programs become single numbers, which are the same as eagerly, and no others do."""

import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm.llvm_backend import NativeExecutable
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.backends.shared.executable import Pace, new_buffer
from micrograd.compiler.ir.program import FROM_ZERO, LARGEST, SUM, Access, Map, Program, Reduction, Segment, Singles
from micrograd.compiler.passes import reroll
from micrograd.compiler.passes import transposing as stage
from micrograd.compiler.passes.transposing import transposed
from micrograd.engine import primitives

POSITIONS = np.array([1, 2, 3, 4, 5, 6])
SINGLES = Singles(
    targets=POSITIONS[1:5],
    functions=np.array([FROM_ZERO, 0, LARGEST, SUM]),
    counts=np.array([1, 2, 2, 3]),
    first=np.array([0, 2, 1, 3, 0, 4, 1, 2]),
    second=np.array([-1, -1, -1, -1, -1, 1, -1, 0]),
    coefficients=np.array([0, 0, 0, 0, 1, 1, 0, 1]),
    numbers=np.array([1.0, -0.5]),
    primitives=(primitives.div,),
)  # b = 0 + a, c = b / y, d = max(c, -a / 2) and e = -d * y / 2 + y - b * a / 2, for a at 0 and y at 1


@pytest.fixture
def at_once(monkeypatch):
    """Look for what is alone from the first level on, and not only after thousands of kernels."""
    monkeypatch.setattr(reroll, "_MANY", 0)


STEPS = [
    lambda x, y, others: (x + y) * 0.5,
    lambda x, y, others: x - 2.0 * y,
    lambda x, y, others: x * y,
    lambda x, y, others: mg.relu(x) - y,
    lambda x, y, others: mg.maximum(x, y),
    lambda x, y, others: mg.where(x < y, x, 3.0),
    lambda x, y, others: mg.abs(x) + 1.0,
    lambda x, y, others: sum(others[:3]) - y,
    lambda x, y, others: mg.dot(others, others[::-1]) - x,
    lambda x, y, others: mg.detach(mg.maximum(x, mg.maximum(y, 0.5))) * y,
    lambda x, y, others: x + y - others[0] + 4.0 * x * y - others[1],
]


def steps(rng, slots, count):
    """A function that replaces one of some numbers at each step, exact on small integers."""
    plan = [(rng.randrange(len(STEPS)), *(rng.randrange(slots) for _ in range(4))) for _ in range(count)]

    def function(*given):
        numbers = list(given)
        for step, i, j, k, other in plan:
            result = STEPS[step](numbers[i], numbers[j], [*numbers, *numbers][other : other + 6])
            is_large = step in (1, 2, 7, 8, 9, 10)
            numbers[k] = mg.minimum(mg.maximum(result, -8.0), 8.0) if is_large else result
        return sum(numbers)

    return function


def kernels_of(fast, *arguments):
    found = fast.program(*arguments).program.kernels
    singles = [kernel for kernel in found if isinstance(kernel, Singles)]
    return [kernel for kernel in found if not isinstance(kernel, Singles)], singles


def results(function, inputs):
    value = function(*inputs)
    return [value.data, *mg.gradient(value, inputs)]


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("seed", range(3))
def test_irregular_programs_are_single_numbers_and_exact(seed, at_once, backend):
    rng = random.Random(seed)
    function = steps(rng, slots=14, count=15 if backend == "jax" else 120)
    inputs = [Value(float(rng.randrange(-3, 4))) for _ in range(14)]
    fast = mg.compile(function, backend=backend)
    assert results(fast, inputs) == results(function, inputs)
    _, singles = kernels_of(fast, *inputs)
    assert singles


def best_alignment(*given):
    """The table of two sequences: what is beside its edge is computed from other things, and so on, cell by cell."""
    half = len(given) // 2
    above = [0.0] * (half + 1)
    for x in given[:half]:
        row = [0.0]
        for column, y in enumerate(given[half:]):
            row.append(mg.maximum(mg.maximum(above[column + 1], row[-1]), above[column] + x * y))
        above = row
    return above[-1]


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_table_whose_edge_is_of_another_kind_is_single_numbers_too(at_once, backend):
    rng = random.Random(5)
    inputs = [Value(float(rng.randrange(-3, 4))) for _ in range(8 if backend == "jax" else 40)]
    fast = mg.compile(best_alignment, backend=backend)
    assert results(fast, inputs) == results(best_alignment, inputs)
    others, singles = kernels_of(fast, *inputs)
    assert len(others) < 6 * len(inputs)
    assert sum(kernel.rows for kernel in singles) > len(inputs) ** 2 / 3


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
def test_it_takes_many_kernels_before_what_is_alone_is_looked_for(backend):
    rng = random.Random(0)
    function = steps(rng, slots=14, count=1500)
    inputs = [Value(float(rng.randrange(-3, 4))) for _ in range(14)]
    fast = mg.compile(function, backend=backend)
    assert results(fast, inputs) == results(function, inputs)
    others, singles = kernels_of(fast, *inputs)
    assert reroll._MANY <= len(others) < reroll._MANY + 100
    assert sum(kernel.rows for kernel in singles) > 3000


def test_what_is_regular_stays_as_it_is(monkeypatch):
    def function(x, *given):
        rows = [mg.tanh(mg.dot([x * (i + j) for j in range(6)], given)) for i in range(8)]
        return sum(rows) * steps(random.Random(1), 6, 60)(*given)

    def shapes():
        found, singles = kernels_of(mg.compile(function, backend="llvm"), *(Value(0.1 * i) for i in range(7)))
        return {(k.kind, k.rows, k.columns, k.terms) for k in found if k.rows * k.columns > 4}, len(singles)

    before, none = shapes()
    monkeypatch.setattr(reroll, "_MANY", 0)
    after, some = shapes()
    assert (before, none) == (after, 0)
    assert some
    assert ("tanh", 1, 8, 1) in after


def test_a_loop_among_single_numbers_stays_a_loop(at_once):
    irregular = steps(random.Random(3), 6, 40)

    def function(*given):
        angle, speed = irregular(*given), given[0]
        for _ in range(30):
            angle, speed = angle + 0.125 * speed, speed - 0.125 * angle
        return angle + irregular(*given[1:], speed)

    inputs = [Value(0.3 * n - 0.7) for n in range(6)]
    fast = mg.compile(function, backend="llvm")
    assert results(fast, inputs) == pytest.approx(results(function, inputs), rel=1e-11)
    assert "run 2" in fast.explain()  # times, or more


def test_a_primitive_in_python_is_no_single_number(at_once, own_registry):
    own = mg.primitive("own_root", "o", lambda x: x * x, lambda g, out, x: 2.0 * g * x)
    irregular = steps(random.Random(3), 6, 40)
    inputs = [Value(float(n - 2)) for n in range(6)]
    fast = mg.compile(lambda *given: irregular(*given, own(given[1])), backend="llvm")
    others, singles = kernels_of(fast, *inputs)
    assert "own_root" in [kernel.kind for kernel in others]
    assert all(own not in kernel.primitives for kernel in singles)


class TestSingles:
    """Single numbers as plain data."""

    def test_all_backends_run_them(self, backend):
        program = Program(6, (SINGLES,), inputs=np.array([0, 1]), outputs=np.array([2, 3, 4, 5]))
        outputs, _ = backend_of(backend).run_of(program)(np.array([3.0, 2.0]))
        assert outputs.tolist() == [3.0, 1.5, 1.5, -0.5 * 1.5 * 2.0 + 2.0 - 0.5 * 9.0]

    @pytest.mark.parametrize("backend", ["llvm", "numpy"])
    def test_each_part_runs_alone(self, backend):
        after = Map(primitives.exp, 1, 1, Access(5), (Access(4),))
        run = backend_of(backend).run_of(Program(6, (SINGLES, after)))
        run.buffer[:] = [3.0, 2.0, 0.0, 0.0, 0.0, 7.0]
        singles, other = run.parts()
        singles()
        assert run.buffer[4:].tolist() == [1.5, -4.0]
        other()
        assert run.buffer[5] == pytest.approx(np.exp(1.5), rel=1e-15)
        assert run.pace(SINGLES) is (Pace.ONE_BY_ONE if backend == "llvm" else Pace.IN_VECTORS)

    def test_they_move_with_the_numbers_of_samples(self, monkeypatch):
        for name, worth in {"_SAMPLES": 2, "_NUMBERS": 0, "_SHARE": -1.0, "_GAIN": float("inf")}.items():
            monkeypatch.setattr(stage, name, worth)
        samples, width = 6, 2
        apart = Reduction(samples, width, Access(12, 2, 1), (Segment(2.0, 1, Access(0, 2, 1), None),))
        chosen = np.array([12, 15, 22])
        singles = Singles(
            np.array([24, 25, 26]),
            np.full(3, SUM),
            np.ones(3, dtype=int),
            chosen,
            chosen[::-1],
            np.zeros(3, dtype=int),
            np.ones(1),
        )
        arrays = np.array([(12, 12), (24, 3)])
        program = Program(27, (apart, singles), np.arange(12), outputs=np.array([24, 25, 26]), arrays=arrays)
        moved = transposed(program)
        assert moved.kernels[1].first.tolist() != chosen.tolist()
        found = []
        for one in (program, moved):
            buffer = new_buffer(27)
            buffer[:12] = np.arange(12.0)
            NativeExecutable(one, buffer).run()
            found.append(buffer[one.outputs].tolist())
        assert found[0] == found[1] == [0.0 * 20.0, 6.0 * 6.0, 20.0 * 0.0]
