"""no_grad inside of compiled functions: the same numbers, no gradient, and the same refusals."""

import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.tracing.trace import Tape, tracing
from micrograd.engine import primitives


def test_comparisons_and_choices_are_those_of_eager(backend):
    table = [Value(1.0), Value(5.0)]

    def f(x, index):
        with mg.no_grad():
            with mg.no_grad():
                larger = mg.where(x > 2.0, x, 2.0)
            taken = mg.take(table, index)
        return larger * taken * x

    for number, index in ((3.0, 0), (1.0, 1)):
        x, twin = Value(number), Value(number)
        fast = mg.compile(f, backend=backend)(x, index)
        slow = f(twin, index)
        fast.backward()
        slow.backward()
        assert (fast.data, x.grad) == (slow.data, twin.grad)
    assert [element.grad for element in table] == [2 * 9.0, 2 * 2.0]  # an element that is taken is itself


def test_what_would_freeze_a_number_is_refused_there_too(backend):
    w = Value(2.0)

    def reads(x):
        with mg.no_grad():
            return x * w.data

    def closes(x):
        with mg.no_grad():
            out = Value(1.0, (w,), "by hand")
        return x * out

    for f in (reads, closes):
        with pytest.raises(TraceError):
            mg.compile(f, backend=backend)(Value(1.0))


def test_a_tape_that_is_over_is_passed_over():
    tape = Tape()
    with tracing(tape):
        quiet = tape.under_no_grad()
    x = Value(2.0)
    assert not tape.is_open
    assert not quiet.is_open
    assert tape.apply(primitives.mul, x, x).data == 4.0
    assert quiet.apply(primitives.mul, x, x).data == 4.0
