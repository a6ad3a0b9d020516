"""Equal operations of a trace are one, however that is found."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir import equals
from micrograd.compiler.ir.entries import EqualsInOrder
from micrograd.compiler.ir.equals import in_columns
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.tape import Tape, tracing
from micrograd.compiler.tracing.trace import trace
from micrograd.engine.primitive import Primitive

four = Primitive("four", "four", lambda a, b, c, d: a * b + c * d, *[lambda g, out, *operands: g] * 4)
OPERATIONS = {
    "add": lambda a, b, c, index: a + b,
    "mul": lambda a, b, c, index: a * b,
    "sub": lambda a, b, c, index: a - 0.5,
    "tanh": lambda a, b, c, index: mg.tanh(a),
    "where": lambda a, b, c, index: mg.where(a < b, b, c),
    "dot": lambda a, b, c, index: mg.dot([a, b, c, a], [b, c, a, 2.0]),
    "take": lambda a, b, c, index: mg.take([a, b, c], index),
    "four": lambda a, b, c, index: four(a, b, c, a),
}
steps = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), *[st.integers(0, 5)] * 3), min_size=1, max_size=30)


def program(steps, several):
    """What computes the steps more than once; the operands of a step are among the last numbers."""

    def f(xs, index):
        outputs = []
        for _ in range(several):
            numbers = list(xs)
            for name, *positions in steps:
                numbers.append(
                    OPERATIONS[name](*[numbers[-1 - position % len(numbers)] for position in positions], index)
                )
            outputs += numbers[-2:]
        return outputs

    return f


def columns_of(f, *more):
    return in_columns(trace(Source(f, Structure((([Value(0.5), Value(1.5), Value(2.5)], *more), {})))))


def counts(columns):
    return {column.primitive.name: len(column.positions) for column in columns.operations}


WAYS = {
    "in order": {},
    "in rounds": {"_FEW": 0, "_LARGE_PART": 0},
    "in one round and in order": {"_FEW": 0, "_LARGE_PART": 0, "_MOST_ROUNDS": 1},
}
SAME_HASHES = {"_FEW": 0, "_LARGE_PART": 0, "_hashes": lambda code, operands: np.zeros(len(code), dtype=np.uint64)}


@contextmanager
def found(way):
    """Find equal operations in one way."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in way.items():
            patch.setattr(equals, name, value)
        yield


@pytest.fixture(params=WAYS)
def way(request):
    """Each way in which equal operations may be found."""
    with found(WAYS[request.param]):
        yield


@settings(max_examples=24)
@given(steps, st.integers(2, 3))
@pytest.mark.parametrize(
    "name", ["in rounds", *(pytest.param(name, marks=pytest.mark.slow) for name in WAYS if name != "in rounds")]
)
def test_what_is_computed_again_costs_nothing(name, steps, several):
    with found(WAYS[name]):
        once, again = (columns_of(program(steps, times), 1) for times in (1, several))
    assert counts(again) == counts(once)
    assert again.nodes == once.nodes
    assert again.trace.outputs == once.trace.outputs * several


@settings(max_examples=12)
@given(steps)
@pytest.mark.slow
@pytest.mark.parametrize("way", [*WAYS.values(), SAME_HASHES], ids=[*WAYS, "same hashes"])
def test_numbers_are_those_of_eager(way, steps):
    """Also where different operations have the same hash."""
    f = program(steps, 2)
    numbers = [0.75, -1.5, 2.0]
    with found(way):
        compiled = mg.compile(f, backend="numpy")(list(map(Value, numbers)), 1)
    expected = f(list(map(Value, numbers)), 1)
    np.testing.assert_allclose([v.data for v in compiled], [v.data for v in expected], rtol=1e-13)


def test_operations_of_other_numbers_are_not_equal(way):
    def f(xs):
        x, y, z = xs
        return [x * y, y * x, x * z, x + y, x - y, x * 0.0, x * -0.0, mg.dot([x, y], [z, z]), mg.dot([x, z], [z, z])]

    assert counts(columns_of(f)) == {"mul": 5, "add": 1, "sub": 1, "sum_of_products": 2}


def test_checks_of_what_is_computed_again_raise_as_eagerly(way):
    def f(x):
        return x**-2 + x**-2

    assert mg.compile(f)(Value(0.5)).data == 8.0
    with pytest.raises(ZeroDivisionError):
        f(Value(0.0))
    with pytest.raises(ZeroDivisionError):
        mg.compile(f)(Value(0.0))


@settings(max_examples=12)
@given(st.lists(steps, min_size=2, max_size=4))
def test_a_trace_that_grows_is_gone_through_once(parts):
    tape, equal = Tape(), EqualsInOrder()
    with tracing(tape):
        xs, index = [tape.input(name) for name in "xyz"], tape.input("index", int)
        for steps in parts:
            program(steps, 2)(xs, index)
            written = tape.trace([], [])
            assert equal.of(written) == EqualsInOrder().of(written)
