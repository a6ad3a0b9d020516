"""That later kernels write over what is not read any more, and that nobody notices."""

import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Map, Program, Reduction, Segment, Take
from micrograd.compiler.passes import allocate as module
from micrograd.compiler.passes.allocate import allocate
from micrograd.engine.primitives import exp, neg, relu
from tests.campaigns.integers import LARGEST, program_of

SIZE = 80  # numbers of a stretch
A, B, C, D, E, F, G, H = range(SIZE, 9 * SIZE, SIZE)  # the inputs are at 0


@pytest.fixture(autouse=True)
def _programs_of_any_size(monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 0)


@pytest.fixture
def everything_moves(monkeypatch):
    """Arrays of one number are worth moving, too. Gives what became of the kernels of each program."""
    found = []

    def watched(program):
        result = allocate(program)
        assert_reads_the_same(program, result.kernels)
        found.append(result.kernels != program.kernels)
        return result

    monkeypatch.setattr(module, "_LEAST", 1)
    monkeypatch.setattr("micrograd.compiler.passes.lists.allocate", watched)
    return found


def at(position, **steps):
    return Access(position, **({"column_step": 1} | steps))


def of(primitive, target, *operands, columns=SIZE):
    return Map(primitive, 1, columns, at(target), tuple(map(at, operands)))


def chain(columns=SIZE):
    """Each reads the one before."""
    return [of(exp, A, 0, columns=columns), of(neg, B, A), of(relu, C, B), of(neg, D, C)]


def program_with(*kernels, outputs=(D,), gradients=slice(0, 0), size=H + SIZE):
    arrays = np.array([(start, SIZE) for start in range(0, size, SIZE)])
    return Program(size, kernels, np.arange(SIZE), np.array(outputs), gradients=gradients, arrays=arrays)


def test_a_program_of_more_numbers_than_its_tables_tell_apart_is_refused():
    with pytest.raises(ValueError, match="a program of 2,147,483,648 numbers"):
        Program(1 << 31, ())


@pytest.mark.parametrize("arrays", [[(0, 4), (3, 2)], [(0, 4), (4, 7)]])
def test_arrays_that_overlap_or_end_behind_the_buffer_are_refused(arrays):
    with pytest.raises(ValueError, match="the arrays of a program of 10 numbers overlap, or do not fit"):
        Program(10, (), arrays=np.array(arrays))


def targets(kernels):
    return [kernel.target.base for kernel in kernels]


def positions(access, kernel, terms=1):
    return access.positions(kernel.rows, kernel.columns, terms).ravel()


def read(kernel):
    """The positions of all that a kernel reads."""
    if isinstance(kernel, Reduction):
        return [positions(access, kernel, part.terms) for part in kernel.segments for access in part.factors]
    if isinstance(kernel, Take):
        return [positions(kernel.index, kernel), positions(kernel.elements, kernel, kernel.terms)]
    return [positions(access, kernel) for access in kernel.operands]


def assert_reads_the_same(program, kernels):
    """Each number that is read is the one that the program reads; in the end, results are where it says."""
    holds = np.arange(program.size)
    moved = Program(program.size, tuple(kernels))
    for before, after in zip(program.unrolled(), moved.unrolled(), strict=True):
        of_before, of_after = np.concatenate(read(before)), np.concatenate(read(after))
        assert (holds[of_after] == of_before).all()
        written, target = positions(before.target, before), positions(after.target, after)
        assert np.isin(target, of_after).any() == np.isin(written, of_before).any()
        holds[target] = written
    gradients = np.arange(program.gradients.start, program.gradients.stop)
    fixed = np.concatenate([program.inputs, program.outputs, program.seeds, gradients])
    assert (holds[fixed] == fixed).all()


class TestPositions:
    def test_where_there_is_no_room_all_stays(self):
        large = 2 * SIZE
        kernels = [
            of(neg, D, 0),  # goes where the larger one is to be
            of(exp, A, 0),
            of(neg, A + SIZE, 0),
            Reduction(1, SIZE, at(F), (Segment(1.0, 2, at(A, term_step=SIZE), at(D, term_step=0)),)),
        ]
        assert A + large < D
        program = program_with(*kernels, outputs=[F, C])
        assert allocate(program).kernels == program.kernels

    def test_tables_move_row_by_row(self):
        rows = Access(0, 0, 1, table=np.array([B, A])[:, None, None])
        pairs = Access(table=np.stack([A + np.arange(SIZE), B + np.arange(SIZE)], axis=1)[None])
        kernels = [
            of(exp, E, 0),
            of(neg, F, E),
            of(exp, A, F),
            of(neg, B, F),
            Reduction(2, SIZE, Access(G, SIZE, 1), (Segment(1.0, 1, rows, None),)),
            Take(1, SIZE, 2, at(C), at(0), pairs),
            of(neg, D, C),
        ]
        program = program_with(*kernels, outputs=[G, D])
        found = allocate(program).kernels
        assert targets(found) != targets(kernels)
        assert_reads_the_same(program, found)


def matrix(rows, columns, rng):
    return [[Value(rng.uniform(-0.3, 0.3)) for _ in range(columns)] for _ in range(rows)]


@pytest.fixture
def network():
    """A network of three layers, its weights, and a point."""
    rng = random.Random(3)
    layers = [matrix(10, 10, rng) for _ in range(3)]
    point = [Value(rng.uniform(-1, 1)) for _ in range(10)]

    def loss(x):
        for layer in layers:
            x = [mg.tanh(mg.dot(row, x)) for row in layer]
        return mg.logsumexp(x)

    return loss, [w for layer in layers for row in layer for w in row], point


def gradients(loss, leaves, *arguments):
    for leaf in leaves:
        leaf.grad = 0.0
    result = loss(*arguments)
    result.backward()
    return [result.data, *(leaf.grad for leaf in leaves)]


class TestNative:
    """What runs in native code. In every program, each number that is read is the right one; see everything_moves."""

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_random_programs_give_what_eager_gives(self, everything_moves):
        for number in range(8):
            program = program_of(23, number, size=40)
            leaves = [Value(x) for x in program.inputs]
            expected = gradients(program, leaves, *leaves)
            if max(map(abs, expected)) <= LARGEST:
                assert gradients(mg.compile(program, backend="llvm"), leaves, *leaves) == expected
        assert any(everything_moves)

    def test_each_call_starts_again(self, network, everything_moves):
        loss, weights, point = network
        fast = mg.compile(loss, backend="llvm")
        for shift in (0.0, 0.5, -0.25):
            for x in point:
                x.data += shift
            leaves = [*weights, *point]
            assert gradients(fast, leaves, point) == pytest.approx(gradients(loss, leaves, point), rel=1e-12)
        assert all(everything_moves)

    @pytest.mark.slow
    def test_a_profile_disturbs_nothing(self, network, everything_moves):
        loss, weights, point = network
        fast = mg.compile(loss, backend="llvm")
        expected = gradients(fast, weights, point)
        assert "kernels take" in fast.profile(point)
        assert gradients(fast, weights, point) == expected
        assert any(everything_moves)

    def test_kernels_alone_run_on_the_numbers_of_the_program(self):
        run = backend_of("llvm").run_of(program_with(*chain()))
        run.buffer[:SIZE] = 0.5
        run.parts()
        for position, number in ((A, np.exp(0.5)), (B, -np.exp(0.5)), (C, 0.0), (D, 0.0)):
            assert run.buffer[position : position + SIZE] == pytest.approx([number] * SIZE)

    def test_what_is_not_finite_is_noticed_where_it_is_written_over(self, everything_moves):
        xs = [Value(1.0) for _ in range(8)]
        fast = mg.compile(lambda: sum(mg.relu(-mg.log(x)) for x in xs), backend="llvm")
        assert fast().data == 0.0
        xs[3].data = -1.0
        with pytest.raises(ValueError, match="log"):
            fast()
        assert all(everything_moves)

    @pytest.mark.slow
    def test_training_in_one_buffer(self, network, everything_moves):
        loss, weights, _ = network
        rng = random.Random(5)
        examples = [[rng.uniform(-1, 1) for _ in range(10)] for _ in range(40)]
        before = [w.data for w in weights]
        found = []
        for compiled in (False, True):
            for w, number in zip(weights, before, strict=True):
                w.data = number
            history = mg.fit(loss, examples, mg.optim.Adam(weights), epochs=2, batch_size=20, compile=compiled, seed=0)
            found.append([*history.steps, *(w.data for w in weights)])
        assert found[1] == pytest.approx(found[0], rel=1e-9)
        assert any(everything_moves)
