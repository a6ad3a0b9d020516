"""A compiled function has one buffer for each of its programs, so threads take turns: its lock is held where it is."""

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.calling.specialise import Specialised
from tests.locks import is_held

pytestmark = pytest.mark.stress


@pytest.fixture
def asked(own_registry):
    """A primitive that NumPy's backend calls back for each element, a list of locks, and whether each was held."""
    locks, answers = [], []

    def forward(x):
        answers.extend(map(is_held, locks))
        return x * 2

    return mg.primitive("asked", "asked", forward, lambda g, out, x: g * 2), locks, answers


def test_a_call_runs_its_program_under_the_lock(asked):
    primitive, locks, answers = asked
    fast = mg.compile(lambda x: primitive(x) + 1, backend="numpy")
    locks.append(fast._lock)
    assert fast(Value(3.0)).data == 7.0
    assert answers
    assert all(answers)
    assert not is_held(fast._lock)


def test_the_gradients_of_one_of_several_outputs_are_computed_under_the_lock(asked):
    primitive, locks, answers = asked
    fast = mg.compile(lambda x: (primitive(x) * x, x * 3), backend="numpy")
    x = Value(3.0)
    first, _ = fast(x)
    locks.append(fast._lock)
    first.backward()
    assert x.grad == 12.0
    assert answers
    assert all(answers)
    assert not is_held(fast._lock)


@pytest.mark.parametrize("ask", ["explain", "program", "draw_dot"])
def test_a_program_that_is_asked_for_is_made_under_the_lock(monkeypatch, ask):
    fast = mg.compile(lambda x: x * 3, backend="numpy")
    fast(Value(2.0))
    answers, compiled = [], Specialised.compiled

    def asking(special, *given):
        answers.append(is_held(fast._lock))
        return compiled(special, *given)

    monkeypatch.setattr(Specialised, "compiled", asking)
    getattr(fast, ask)()
    assert answers == [True]
    assert not is_held(fast._lock)


def test_a_program_is_traced_under_the_lock_where_it_is_asked_for():
    answers = []

    @mg.compile
    def fast(x):
        answers.append(is_held(fast._lock))
        return x * 3

    fast._asked_for((Value(2.0),), {})
    assert answers == [True]
    assert not is_held(fast._lock)
