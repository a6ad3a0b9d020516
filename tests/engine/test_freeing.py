"""Graphs freed one node after the other, as in a browser."""

import gc
import sys

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.freeing import BROWSER, free_in_turns
from micrograd.engine.node import Node
from tests.engine.common import live_values


@pytest.fixture
def in_a_browser(without_collector):
    """Nodes are freed as in a browser, and only because the last reference to them is gone."""
    free_in_turns(BROWSER)
    yield
    del Node.__del__


class Probe:
    """Notes how many calls deep it is freed."""

    def __init__(self, depths):
        self.depths = depths

    def __del__(self):
        frame, depth = sys._getframe(), 0
        while frame := frame.f_back:
            depth += 1
        self.depths.append(depth)


def chain(start, length, step):
    """A chain of so many steps, with a probe in each node that a step gives."""
    depths, result = [], start
    for _ in range(length):
        result = step(result)
        result.probe = Probe(depths)
    return result, depths


STEPS = {
    "a sum": lambda value: value + 1.0,
    "a square, whose operands are one": lambda value: value * value,
    "the right operand": lambda value: 1.0 - value,
    "one of many operands": lambda value: mg.where(True, value, 0.0),
    "a hand-written operation": lambda value: Value(value.data, (value,), "same"),
}


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_long_chain_is_freed_at_one_depth(in_a_browser, step):
    before = live_values()
    result, depths = chain(Value(1.0), 2_000, step)
    del result
    assert live_values() == before
    assert len(depths) == 2_000
    assert max(depths) - min(depths) <= 2


def test_elsewhere_nothing_is_done(without_collector):
    free_in_turns("linux")
    assert not hasattr(Node, "__del__")


def test_what_others_hold_is_left_as_it_is(in_a_browser):
    a, b = Value(2.0), Value(3.0)
    middle = a * b
    result = mg.exp(middle) + middle
    del result
    assert (middle.data, middle._op, middle._prev) == (6.0, "*", {a, b})
    middle.backward()
    assert (a.grad, b.grad) == (3.0, 2.0)


def test_gradients_that_are_graphs_are_freed(in_a_browser):
    def differentiate_twice():
        x = Value(0.5)
        result, _ = chain(x, 300, lambda value: value * x + 1.0)
        result.backward(create_graph=True)
        x.grad.backward()

    before = live_values()
    differentiate_twice()
    gc.collect()
    assert live_values() == before


def test_closures_that_hold_their_nodes_are_left_to_the_collector(in_a_browser):
    before = live_values()
    result = Value(1.0)
    for _ in range(2_000):
        previous = result
        result = Value(previous.data, (previous,), "same")
        result._backward = lambda previous=previous, made=result: setattr(previous, "grad", made.grad)
    del previous, result
    gc.collect()
    assert live_values() == before


def test_a_value_that_was_refused_complains_once(in_a_browser, recwarn):
    with pytest.raises(TypeError, match="the data of a Value"):
        Value("two")
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []


def test_a_training_is_the_same(in_a_browser):
    def trained():
        weight = Value(0.5)
        optimizer = mg.optim.Adam([weight], 0.1)
        history = mg.fit(lambda x, y: (weight * x - y) ** 2, [(1.0, 2.0), (2.0, 4.0)], optimizer, epochs=20, seed=0)
        return history.epochs

    first = trained()
    del Node.__del__
    assert trained() == first
    free_in_turns(BROWSER)
