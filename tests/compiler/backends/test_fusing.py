"""That kernels which only one other reads become a part of it, and that all numbers stay the same, to the last bit."""

import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm.llvm_functions import native_name
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Map, Program, Reduction, Segment
from micrograd.compiler.passes import allocate, fusing
from micrograd.engine.primitives import add, exp, less_equal, mul, neg, tanh, where
from tests.campaigns.integers import program_of

SIZE = 96  # numbers of a stretch, as 8 rows of 12, or 96 rows of 1
GIVEN = 4 * SIZE
A, B, C, D = range(GIVEN, GIVEN + 4 * SIZE, SIZE)
ARRAYS = np.array([(start, SIZE) for start in range(0, GIVEN + 8 * SIZE, SIZE)])
SHAPES = [(1, SIZE), (SIZE, 1), (8, 12)]


def fused(program):
    return fusing.fused(program, native_name)


@pytest.fixture(autouse=True)
def _programs_of_any_size_fuse(monkeypatch):
    monkeypatch.setattr(allocate, "_LARGE", 0)


def at(position, rows=1, columns=SIZE):
    """The numbers of a stretch in their order."""
    return Access(position, columns if rows > 1 else 0, 1 if columns > 1 else 0)


def of(primitive, target, *operands, shape=(1, SIZE)):
    accesses = (operand if isinstance(operand, Access) else at(operand, *shape) for operand in operands)
    return Map(primitive, *shape, at(target, *shape), tuple(accesses))


def total(target, *parts, shape=(1, SIZE), from_zero=False):
    """The sum of terms: each a coefficient and one or two factors."""
    segments = tuple(
        Segment(coefficient, 1, at(first, *shape), at(second[0], *shape) if second else None)
        for coefficient, first, *second in parts
    )
    return Reduction(*shape, at(target, *shape), segments, from_zero=from_zero)


def program_with(*kernels, outputs=None):
    last = kernels[-1].target.base
    positions = np.arange(last, last + SIZE) if outputs is None else np.array(outputs)
    return Program(GIVEN + 8 * SIZE, kernels, np.arange(GIVEN), positions, arrays=ARRAYS)


def results(program):
    numbers = np.random.default_rng(0).normal(size=GIVEN)
    return backend_of("llvm").run_of(program)(numbers)[0].tolist()


def check(program, count, monkeypatch):
    """Fused, there are so many kernels, and they give the same as those of the program, to the last bit."""
    assert len(fused(program).kernels) == count
    found = results(program)
    monkeypatch.setattr(allocate, "_LARGE", program.size + 1)
    assert fused(program) is program
    assert results(program) == found


ZERO = Access(3)  # the same number for all
X, Y, Z = 0, SIZE, 2 * SIZE  # inputs


class TestFused:
    def test_a_mask_and_a_choice_by_it(self, monkeypatch):
        check(program_with(of(less_equal, A, X, ZERO), of(where, B, A, ZERO, Y)), 1, monkeypatch)

    def test_a_chain_of_several(self, monkeypatch):
        chain = [of(exp, A, X), total(B, (1.0, A), (-1.0, Y)), of(tanh, C, B), total(D, (3.0, C, C), (1.0, X))]
        check(program_with(*chain), 1, monkeypatch)

    @pytest.mark.parametrize("from_zero", [False, True])
    @pytest.mark.parametrize("parts", [[(1.0, A)], [(-1.0, A, Y)], [(0.1, A, Y), (-1.0, Z), (1.0, A), (0.3, X, Z)]])
    def test_sums_are_rounded_in_their_order(self, parts, from_zero, monkeypatch):
        check(program_with(of(exp, A, X), total(B, *parts, from_zero=from_zero)), 1, monkeypatch)

    @pytest.mark.parametrize("first", SHAPES)
    @pytest.mark.parametrize("second", SHAPES)
    def test_numbers_in_other_rows(self, first, second, monkeypatch):
        kernels = total(A, (1.0, X), (0.7, Y, Z), shape=first), of(mul, B, A, Z, shape=second)
        check(program_with(*kernels), 1, monkeypatch)

    @pytest.mark.parametrize("is_first", [True, False])
    def test_what_is_the_same_in_a_row_stays_so(self, is_first, monkeypatch):
        rows = Access(Y, 1, 0)
        table = Access(0, 0, 1, table=np.array([5, 0, 7, 60, 3, 3, 9, 11])[:, None, None])
        many = of(mul, A if is_first else B, X if is_first else A, rows, shape=(8, 12))
        other = of(exp, B if is_first else A, A if is_first else X)
        again = of(add, C, B, table, shape=(8, 12))
        check(program_with(*([many, other] if is_first else [other, many]), again), 1, monkeypatch)

    def test_a_long_row_may_become_several(self, monkeypatch):
        padded = Access(Y, 60, 1)  # 2 rows of 48
        of_rows = of(mul, A, X, Access(Z, 1, 0), shape=(8, 12))
        check(program_with(of_rows, of(add, B, A, padded, shape=(2, 48))), 1, monkeypatch)

    def test_equal_operands_are_one(self):
        program = program_with(of(mul, A, X, Y), of(add, B, A, X))
        (kernel,) = fused(program).kernels
        assert [access.base for access in kernel.operands] == [X, Y]


class TestNotFused:
    def stays(self, *kernels, outputs=None):
        program = program_with(*kernels, outputs=outputs)
        assert fused(program).kernels == program.kernels

    def test_numbers_in_another_order(self):
        backwards = Access(A + SIZE - 1, 0, -1)
        self.stays(of(exp, A, X), of(neg, B, backwards))
        self.stays(of(exp, A, X), of(mul, B, A, backwards))
        self.stays(of(exp, A, X), of(neg, B, Access(0, table=(A + np.arange(SIZE)[::-1]).reshape(1, SIZE, 1))))

    def test_primitives_in_python_and_with_settings(self, own_registry):
        python = mg.primitive("doubled", "doubled", lambda x: 2 * float(x), lambda g, out, x: 2 * g)
        self.stays(of(python, A, X), of(neg, B, A))
        settings = mg.engine.further_primitives.leaky_relu.with_settings(slope=0.5)
        self.stays(of(exp, A, X), of(settings, B, A))

    def test_what_would_have_too_many_operands(self):
        parts = [(1.0, X + n, Y + n) for n in range(4)]
        last = total(B, (1.0, A), (1.0, Z))
        self.stays(total(A, *parts), last)
        assert len(fused(program_with(total(A, *parts[:3]), last)).kernels) == 1

    def test_rows_that_fit_neither(self):
        rows, columns = Access(Y, 1, 0), Access(Z, 0, 1)
        self.stays(of(mul, A, X, rows, shape=(8, 12)), of(mul, B, A, columns, shape=(12, 8)))
        self.stays(of(mul, A, X, rows, shape=(24, 4)), of(mul, B, A, Access(Z, 20, 1), shape=(8, 12)))


@pytest.mark.slow
def test_random_programs_of_samples_give_the_same_to_the_last_bit(monkeypatch):
    monkeypatch.setattr(allocate, "_LEAST", 16)
    fewer = []
    for number in range(4):
        of_number, rng = program_of(31, number, size=12), random.Random(number)
        samples = [rng.uniform(-2, 2) for _ in range(70)]
        shared = [rng.uniform(-2, 2) for _ in of_number.inputs[1:]]
        found, counts = [], []
        for least in (0, 1 << 30):
            monkeypatch.setattr(allocate, "_LARGE", least)
            leaves = [Value(x) for x in (*samples, *shared)]
            fast = mg.compile(lambda *xs, one=of_number: sum(one(x, *xs[70:]) for x in xs[:70]), backend="llvm")
            result = fast(*leaves)
            result.backward()
            found.append([result.data, *(leaf.grad for leaf in leaves)])
            counts.append(len(fused(fast.program(*leaves).program).kernels))
        assert found[0] == found[1]
        fewer.append(counts[0] < counts[1])
    assert any(fewer)
