"""A primitive is one entry: everything else finds it there."""

import json
import math
import re
import sys

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.command.grammar import ParsedExpression, functions
from micrograd.engine.primitive import PRIMITIVES, composite
from micrograd.testing import strategies

ENTRIES = {
    "mish": (
        lambda name: mg.primitive(
            name,
            "mish",
            composite(lambda on, x: x * on.tanh(on.softplus(x))),
            lambda g, out, x: g * (mg.tanh(mg.softplus(x)) + x * mg.sigmoid(x) * (1 - mg.tanh(mg.softplus(x)) ** 2)),
        ),
        lambda x: x * math.tanh(math.log1p(math.exp(x))),
        (0.7,),
    ),
    "softer": (
        lambda name: mg.primitive(
            name,
            "softer",
            composite(lambda on, x, y: on.where(x > y, x, y) + on.log1p(on.exp(-on.abs(x - y)))),
            lambda g, out, x, y: g * mg.exp(x - out),
            lambda g, out, x, y: g * mg.exp(y - out),
        ),
        lambda x, y: math.log(math.exp(x) + math.exp(y)),
        (0.3, -0.4),
    ),
    "cube": (
        lambda name: mg.primitive(name, "cube", lambda x: x * x * x, lambda g, out, x: g * 3 * x * x),
        lambda x: x * x * x,
        (1.5,),
    ),
}


@pytest.fixture(params=ENTRIES)
def entry(request):
    """A primitive registered for one test, what it computes, and where."""
    name = f"entry_{request.param}"
    make, true, inputs = ENTRIES[request.param]
    yield make(name), true, inputs
    del PRIMITIVES[name]


def gradient(f, inputs):
    values = [Value(x) for x in inputs]
    f(*values).backward()
    return [value.grad for value in values]


def slopes(true, inputs, step=1e-6):
    found = []
    for position, x in enumerate(inputs):
        more, less = ([*inputs[:position], x + side, *inputs[position + 1 :]] for side in (step, -step))
        found.append((true(*more) - true(*less)) / (2 * step))
    return found


def test_eagerly_and_to_second_order(entry):
    primitive, true, inputs = entry
    assert primitive(*inputs) == pytest.approx(true(*inputs), rel=1e-14)
    assert gradient(primitive, inputs) == pytest.approx(slopes(true, inputs), rel=1e-8)
    assert mg.testing.gradcheck(primitive, inputs)
    assert mg.testing.gradcheck(mg.grad(primitive), inputs)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_compiled(entry, backend):
    primitive, true, inputs = entry
    fast = mg.compile(primitive, backend=backend)
    assert fast(*map(Value, inputs)).data == pytest.approx(true(*inputs), rel=1e-14)
    assert gradient(fast, inputs) == pytest.approx(gradient(primitive, inputs), rel=1e-14)
    many = mg.compile(lambda xs: sum(primitive(*(x * y for y in inputs)) for x in xs), backend=backend)
    points = [0.1 * number for number in range(12)]  # in vectors
    assert many([Value(x) for x in points]).data == pytest.approx(
        math.fsum(true(*(x * y for y in inputs)) for x in points), rel=1e-14
    )


def test_in_pictures_and_random_programs(entry):
    primitive, _, inputs = entry
    root = primitive(*(Value(x) for x in inputs))
    assert primitive.symbol in mg.draw_dot(root).source
    assert primitive in strategies.registered()


def test_in_pages(entry, tmp_path):
    primitive, _, inputs = entry
    mg.explore(primitive(*(Value(x) for x in inputs)), tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    (found,) = data["primitives"]
    assert found["name"] == primitive.name
    assert all(found["rules"])
    assert (found["forward"] is None) == (primitive.composite is None)  # a page computes what it has a formula of


def test_in_expressions_of_the_command(entry):
    primitive, true, inputs = entry
    names = dict(zip("xy", inputs, strict=False))
    text = f"{primitive.name}({', '.join(names)})"
    root = ParsedExpression(text)({name: Value(x, label=name) for name, x in names.items()})
    assert root.data == pytest.approx(true(*inputs), rel=1e-14)
    assert functions()[primitive.name][0] == len(inputs)


def test_the_commands_functions_of_the_library_are_the_public_ones():
    library = {name: count for name, (count, _) in functions().items() if hasattr(mg, name)}
    of_two = [name for name, count in library.items() if count == 2]
    assert of_two == ["atan2", "betaln", "hypot", "maximum", "minimum", "rel_entr", "xlogy"]
    assert {"tanh", "leaky_relu", "erfinv", "i0"} < library.keys()
    assert not {"detach", "where", "take", "dot", "polygamma"} & library.keys()


def test_a_page_without_the_formula_of_a_rule_computes_nothing():
    from micrograd.pages.passes import passes

    branching = mg.engine.primitive.Primitive(
        "branching", "b", composite(lambda on, x: on.abs(x)), lambda g, out, x: g if x > 0 else -g
    )
    data, _ = passes(branching(Value(1.0)))
    assert data["primitives"][0]["forward"] is None


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_formula_over_what_has_no_code_and_over_powers_of_numbers_is_computed_all_the_same(own_registry, backend):
    mg.primitive("whole", "whole", lambda x: float(int(x)), None)
    with_python = mg.primitive(
        "with_python", "f", composite(lambda on, x: on.whole(x) + x), lambda g, out, x: g, domain=((0.0, 9.0),)
    )
    power = mg.primitive(
        "power_of_two", "g", composite(lambda on, x: 2.0**x + x**2), lambda g, out, x: g * (out * math.log(2) + 2 * x)
    )
    for made, expected in ((with_python, 2.0 + 2.5), (power, 2.0**2.5 + 2.5**2)):
        assert mg.compile(lambda x, f=made: f(x) * 1.0, backend=backend)(Value(2.5)).data == pytest.approx(expected)


def is_ours(frame):
    return frame.f_globals["__name__"].startswith("micrograd.")  # not a callback of the garbage collector


def calls_of(function, *operands):
    """How many calls Python makes for one of a function."""
    events = []
    function(*operands)  # what is made at the first call is made
    sys.setprofile(lambda frame, event, _: events.append(event) if event == "call" and is_ours(frame) else None)
    try:
        function(*operands)
    finally:
        sys.setprofile(None)
    return len(events)


@pytest.mark.parametrize("name", [name for name in functions() if hasattr(mg, name) and hasattr(Value, name)])
def test_a_function_costs_as_many_calls_as_the_method(name):
    count, _ = functions()[name]
    point = Value(1.5 if name == "acosh" else 0.5), Value(0.25)
    of_method = calls_of(getattr(Value, name), *point[:count])
    assert calls_of(getattr(mg, name), *point[:count]) == of_method
