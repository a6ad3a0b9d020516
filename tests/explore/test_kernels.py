"""Compiled functions on pages: their kernels as boxes, with the scalars in them."""

from __future__ import annotations

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.explore import kernels
from micrograd.explore.kernels import opened_calls
from micrograd.explore.passes import passes
from tests.explore.test_explore import explored

FIELDS = ("_primitive", "_first", "_second", "_x", "_y", "_scope")


def matrix():
    return [[Value(0.1 * row - 0.2 * column, label=f"w{row}{column}") for column in range(3)] for row in range(4)]


def vector():
    return [Value(number, label=f"x{index}") for index, number in enumerate((0.5, -1.0, 2.0))]


def tables(index, rows):
    return mg.tanh(mg.take(rows, index)[0] * 3.0) - 2.0 * mg.take(rows, index)[1]


def recurrent(state, inputs, weight):
    for x in inputs:
        state = mg.tanh(weight * state + x)
    return state


def boxes(data):
    return [group["name"] for group in data["groups"] if group["kind"] in ("run", "stack")]


def gradients(data):
    """What a page gives in the end, by label."""
    found = [0.0] * len(data["nodes"])
    found[data["root"]] = 1.0
    for turn in data["turns"]:
        for operand, share in zip(data["nodes"][turn["node"]]["operands"], turn["shares"], strict=True):
            found[operand] += share or 0.0
    return {node["label"]: gradient for node, gradient in zip(data["nodes"], found, strict=True) if node["label"]}


def leaves_of(thing):
    return [leaf for part in thing for leaf in leaves_of(part)] if isinstance(thing, list) else [thing]


CASES = {
    "layer": (lambda w, x: mg.mean([mg.tanh(mg.dot(row, x)) ** 2 for row in w]), lambda: (matrix(), vector())),
    "table": (lambda rows: tables(2, rows), lambda: (matrix(),)),
    "index": (tables, lambda: (2, matrix())),
    "largest": (lambda x: mg.logsumexp(x) * mg.maximum(*x), lambda: (vector(),)),
    "floats": (lambda x, scale: x[0] * scale - x[1] / 3.0 - x[2] + 1.5, lambda: (vector(), 7.0)),
    "loop": (recurrent, lambda: (Value(0.1, label="s"), [0.01 * k for k in range(40)], Value(0.9, label="w"))),
}


@pytest.mark.parametrize("name", CASES)
def test_the_kernels_make_the_number_and_the_gradients_of_the_function(name):
    function, make = CASES[name]
    arguments = make()
    result = mg.compile(function)(*arguments) * 2.0
    with opened_calls(result):
        data, _ = passes(result)
    eager = function(*arguments) * 2.0
    eager.backward()
    assert data["nodes"][data["root"]]["data"] == pytest.approx(eager.data, rel=1e-13)
    found = gradients(data)
    for leaf in leaves_of(list(arguments)):
        if isinstance(leaf, Value) and leaf.grad:
            assert found[leaf.label] == pytest.approx(leaf.grad, rel=1e-12), leaf.label
    inside = [group for group in data["groups"] if group["parent"] == 0 and group["kind"] in ("run", "stack")]
    assert data["groups"][0]["name"].startswith("compiled ")
    assert inside


def test_each_kernel_is_a_box_in_that_of_the_function(tmp_path):
    fast = mg.compile(CASES["layer"][0])
    data = explored(fast(matrix(), vector()), tmp_path)
    assert boxes(data) == ["compiled <lambda>", "1: matrix-vector", "2: tanh", "3: matrix-vector", "4: product"]


def test_the_turns_of_a_loop_and_several_calls_are_stacks(tmp_path):
    function, make = CASES["loop"]
    data = explored(mg.compile(function)(*make()), tmp_path)
    turns = [group for group in data["groups"] if group["name"].startswith("turn ")]
    assert len(turns) > 30
    assert data["groups"][turns[0]["parent"]]["kind"] == "stack"
    square = mg.compile(lambda x: mg.tanh(x) * x)
    total = square(Value(1.0)) + square(Value(2.0)) + square(Value(3.0))
    data = explored(total, tmp_path)
    assert [group["name"] for group in data["groups"] if group["kind"] == "stack"] == ["compiled <lambda>"]


def test_afterwards_the_graph_is_what_it_was_also_where_it_fails():
    result = mg.compile(CASES["layer"][0])(matrix(), vector())
    before = [getattr(result, field) for field in FIELDS]
    during = []

    def fails():
        with opened_calls(result):
            during.append(result._primitive)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert during != before[:1]
    for field, was in zip(FIELDS, before, strict=True):
        found = getattr(result, field)
        assert found is was or list(found) == list(was), field
    w, x = result._operands()[0], result._operands()[-1]
    result.backward()
    assert w.grad
    assert x.grad


def test_the_numbers_are_those_of_the_call(tmp_path):
    x = Value(3.0, label="x")
    result = mg.compile(lambda x: mg.exp(x) * x)(x)
    x.data = 100.0
    data = explored(result, tmp_path)
    assert data["nodes"][data["root"]]["data"] == result.data
    assert gradients(data)["x"] == pytest.approx(4 * mg.exp(3.0))
    assert data["notes"] == ["x is 100 by now; the page shows the pass that was recorded, where it was 3."]
    assert x.data == 100.0


def test_it_is_in_the_function_that_called_it(tmp_path):
    fast = mg.compile(lambda x: mg.tanh(x) * x)

    @mg.scope
    def outer(x):
        return fast(x * 2.0) + 1.0

    assert boxes(explored(outer(Value(1.0)), tmp_path))[:2] == ["outer", "compiled <lambda>"]


def test_what_cannot_be_opened_stays_one_value(tmp_path, monkeypatch):
    both = mg.compile(lambda x: [mg.exp(x), mg.sin(x)])
    one, other = both(Value(1.0))
    assert boxes(explored(one * other, tmp_path)) == []  # of several results
    element = mg.compile(lambda index, x: mg.take(x, index))(1, vector())
    assert boxes(explored(element, tmp_path)) == []  # nothing but what went in
    same = mg.compile(lambda x: x)(Value(2.0))
    assert boxes(explored(same, tmp_path)) == []
    exp = mg.compile(lambda x: mg.exp(x) * x)
    with mg.no_grad():
        inside = exp(Value(1.0))
    assert boxes(explored(inside, tmp_path)) == []
    result = exp(Value(1.0))
    with mg.no_grad():
        assert boxes(explored(result, tmp_path)) == []  # nothing is recorded here
    monkeypatch.setattr(kernels, "MOST_TERMS", 1)
    assert boxes(explored(result, tmp_path)) == []


def test_where_scalars_raise_what_rounding_spares_the_program_it_stays_one_value(tmp_path, monkeypatch):
    def add(self, kernel):
        raise ArithmeticError("sqrt(-1e-17): the square root of a negative number")

    monkeypatch.setattr(kernels._Run, "add", add)
    assert boxes(explored(mg.compile(lambda x: mg.exp(x) * x)(Value(1.0)), tmp_path)) == []
