"""The stages in their order, each of which leaves what it is handed as it is."""

import time
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.graph import Graph, no_terms
from micrograd.compiler.passes.lists import COMMON
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.compiler.tracing.source import Source

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


def test_the_normal_form_serves_programs_with_gradients_and_without():
    graph = made_by_each()["normalise"]
    now = snapshot(graph.thing)
    found = [
        run_stages(graph, "reroll", replace(REQUEST, wanted=np.array(wanted, dtype=np.int64))).thing
        for wanted in ([], [0, 1], [], [0, 1])
    ]
    assert snapshot(graph.thing) == now
    assert str(found[0]) == str(found[2])
    assert str(found[1]) == str(found[3])
    assert [len(program.outputs) for program in found[:2]] == [2, 2]
    assert [len(program.seeds) for program in found[:2]] == [0, 2]
    assert [len(range(program.size)[program.gradients]) for program in found[:2]] == [0, 2]


def test_a_graph_says_what_is_an_output_and_what_is_a_gradient_and_cannot_change():
    made = made_by_each()
    plain, with_gradients = made["normalise"].thing, made["adjoint"].thing
    assert isinstance(plain, Graph)
    assert (len(plain.outputs), len(plain.seeds), len(plain.gradients)) == (2, 0, 0)
    assert (len(with_gradients.outputs), len(with_gradients.seeds), len(with_gradients.gradients)) == (2, 2, 3)
    assert with_gradients.outputs.tolist() == plain.outputs.tolist()
    parts = [(with_gradients, "outputs"), (with_gradients, "terms"), (plain.terms, "first"), (REQUEST, "start")]
    for part, name in [*parts, *((application, "nodes") for application in plain.applications)]:
        with pytest.raises(FrozenInstanceError):
            setattr(part, name, None)


def test_no_terms_are_an_empty_terms():
    assert [len(column) for column in (no_terms().owner, no_terms().first, no_terms().second)] == [0, 0, 0]
    assert len(no_terms().coefficient) == 0


def test_the_stages_take_no_longer_than_the_whole():
    start = time.perf_counter()
    x = [Value(float(i)) for i in range(4)]
    seconds = mg.compile(lambda: time.sleep(0.01) or mg.dot(x, x), backend="numpy").program().program.seconds
    elapsed = time.perf_counter() - start
    assert list(seconds) == NAMES
    assert all(taken >= 0 for taken in seconds.values())
    assert seconds["trace"] >= 0.01
    assert 0 < sum(seconds.values()) < elapsed
