"""The stages in their order, each of which leaves what it is handed as it is."""

import time
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.passes.lists import COMMON
from micrograd.compiler.passes.stages import Made, Source, run_stages

MODEL = mg.nn.MLP(2, [3, 2])


def function(x, index):
    """Sums, maxima, primitives, constants, copies and a table."""
    out = MODEL(x)
    largest = mg.softmax(out)
    return mg.take(largest, index) / 3 + mg.maximum(-out[0], 0.5), out[1] * 2.0 - (x[0] - 1.0)


SOURCE = Source(function, Structure((([0.5, -1.5], 1), {})))
REQUEST = replace(backend_of("numpy").request(), wanted=np.arange(3))
NAMES = [*(each.name for each in COMMON), "compile"]


def made_by_each():
    """What each stage makes, in order."""
    made = [Made(SOURCE)]
    for name in NAMES:
        made.append(run_stages(made[-1], name, REQUEST))
    return dict(zip(NAMES, made[1:], strict=True))


def snapshot(thing):
    """All that is in a thing now, to be compared later."""
    if isinstance(thing, np.ndarray):
        return thing.dtype, thing.shape, thing.tobytes()
    if isinstance(thing, tuple):
        return tuple(map(snapshot, thing))
    if is_dataclass(thing):
        return tuple(snapshot(getattr(thing, field.name)) for field in fields(thing))
    return thing


def test_the_stages_are_listed_in_their_order_and_what_has_run_is_not_run_again():
    names = ["trace", "cse", "normalise", "batch", "adjoint", "split", "reroll", "transpose", "compile"]
    assert names == NAMES
    made = made_by_each()
    assert [list(each.seconds) for each in made.values()] == [NAMES[: index + 1] for index in range(9)]
    again = run_stages(made["reroll"], "reroll", REQUEST)
    assert again == made["reroll"]


@pytest.mark.parametrize("name", NAMES[3:-1])
def test_a_stage_leaves_what_it_is_handed_as_it_is(name):
    before = made_by_each()[NAMES[NAMES.index(name) - 1]]
    now = snapshot(before.thing), dict(before.seconds)
    for wanted in ([], [0], [0, 1]):
        run_stages(before, "transpose", replace(REQUEST, wanted=np.array(wanted, dtype=np.int64)))
    assert (snapshot(before.thing), before.seconds) == now


def test_the_stages_take_no_longer_than_the_whole():
    start = time.perf_counter()
    x = [Value(float(i)) for i in range(4)]
    seconds = mg.compile(lambda: time.sleep(0.01) or mg.dot(x, x), backend="numpy").program().program.seconds
    elapsed = time.perf_counter() - start
    assert list(seconds) == NAMES
    assert all(taken >= 0 for taken in seconds.values())
    assert seconds["trace"] >= 0.01
    assert 0 < sum(seconds.values()) < elapsed
