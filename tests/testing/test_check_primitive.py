"""check_primitive: the table passes it, and each kind of mistake is found and named."""

import itertools
import math
import re
import sys

import numpy as np
import pytest

import micrograd as mg
from micrograd.engine.primitive import Primitive
from micrograd.testing import PrimitiveError, check_primitive
from tests.strategies import TABLE

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_registry")]


# At one point inside of their domain these have no derivative, or jump so often that differences see nothing else.
ODD = {"atan2": "raises ZeroDivisionError", "hypot": "raises ZeroDivisionError", "remainder": "WRONG"}


@pytest.mark.unmeasured
@pytest.mark.parametrize("primitive", TABLE, ids=lambda primitive: primitive.name)
def test_every_primitive_of_the_table_is_as_it_must_be(primitive):
    if primitive.name in ODD:
        with pytest.raises(PrimitiveError, match=ODD[primitive.name]):
            check_primitive(primitive)
    else:
        assert check_primitive(primitive)


def test_where_it_overflows_nearby_nothing_is_accused():
    assert check_primitive(mg.engine.primitive.find("exp"))


def test_one_with_settings_and_an_operand_without_a_rule():
    huber = mg.primitive(
        "huber_loss",
        "huber",
        lambda e, w, delta: w * (0.5 * e**2 if abs(e) <= delta else delta * (abs(e) - delta / 2)),
        lambda g, out, e, w, delta: g * w * mg.maximum(-delta, mg.minimum(e, delta)),
        None,
    )
    assert check_primitive(huber.with_settings(delta=1.0))
    with pytest.raises(PrimitiveError, match="delta"):
        check_primitive(huber)


def message_of(forward, *rules, **settings):
    own = mg.primitive("own", "own", forward, *rules, **settings)
    with pytest.raises(PrimitiveError) as raised:
        check_primitive(own)
    return str(raised.value)


def test_a_wrong_rule_comes_with_the_table_of_gradcheck():
    said = message_of(lambda x, y: x * y, lambda g, out, x, y: g * y, lambda g, out, x, y: g * x * (1 + 1e-4))
    assert said.startswith("own is not as a primitive must be:\n- not so: has right rules, at (")
    assert "WRONG" in said
    assert said.count("- not so") == 1


def test_a_rule_wrong_in_one_branch_only():
    assert "has right rules" in message_of(
        lambda x: x * x if x > 2 else 4 * x - 4, lambda g, out, x: g * mg.where(x > 2, 3 * x, 4.0)
    )


def test_a_rule_that_forgets_the_gradient_it_is_handed():
    said = message_of(lambda x: x * x, lambda g, out, x: 2 * x)
    assert "is proportional" in said
    assert "rule 0 gives" in said


def test_a_rule_of_floats_cannot_be_differentiated_again():
    forward, rule = math.sinh, lambda g, out, x: g * math.cosh(x)
    said = message_of(forward, rule, domain=((-700.0, 700.0),))
    assert "has right second derivatives" in said
    assert "mg.exp, not math.exp" in said
    once = mg.primitive("once", "once", forward, rule, domain=((-700.0, 700.0),))
    assert check_primitive(once, order=1)


def test_a_rule_that_drops_its_graph_is_found():
    assert "has right second derivatives" in message_of(
        lambda x: x**3, lambda g, out, x: g * 3 * mg.detach(x) * mg.detach(x)
    )


def test_a_domain_that_promises_too_much():
    said = message_of(math.log, lambda g, out, x: g / x)
    assert "gives floats, at (" in said
    assert "math domain error" in said


def test_overflow_is_no_failure():
    assert check_primitive(mg.primitive("own", "own", math.exp, lambda g, out, x: g * out))


def test_a_rule_that_fails_inside_the_domain():
    said = message_of(lambda x: x, lambda g, out, x: g * math.sqrt(x) / math.sqrt(x))
    assert re.search(r"- not so: has right rules, at \(-\d\S+: raises ValueError: math domain error", said)


def test_a_rule_that_is_another_each_time_by_a_hair():
    hairs = itertools.count()
    said = message_of(
        lambda x, y: x * y, lambda g, out, x, y: g * y, lambda g, out, x, y: g * x * (1 + 1e-12 * next(hairs))
    )
    assert "has right rules" not in said
    assert re.search(r"- not so: backpropagates, at .*: operand 1 gets .*, and its rule gives ", said)
    assert re.search(r"- not so: takes plain numbers, at .*: operand 1 gets .* beside a plain number, ", said)


def test_a_forward_that_is_another_later_by_a_hair():
    calls = itertools.count()

    def forward(x):
        call = next(calls)
        return x + 1e-12 * (call % 2) if call > 100 else x

    assert re.search(
        r"- not so: backpropagates, at .*: Values give .*, floats ", message_of(forward, lambda g, out, x: g)
    )


def test_without_numpy_arrays_are_not_asked_for(monkeypatch):
    own = mg.primitive("own", "own", lambda x: 2 * x, lambda g, out, x: 2 * g)
    monkeypatch.setattr(Primitive, "_elementwise", lambda self, operands: [math.nan])
    with pytest.raises(PrimitiveError, match="works on arrays"):
        check_primitive(own)
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert check_primitive(own)


def test_a_forward_that_is_another_each_time():
    numbers = iter(range(10_000))
    said = message_of(lambda x: x + next(numbers), lambda g, out, x: g)
    first, second = said.partition("gives floats, at (")[2].partition("forward gives ")[2].split(" and then ")
    assert float(second) == pytest.approx(float(first) + 1)


@pytest.mark.parametrize("output", [np.str_("1"), None, [1.0]])
def test_a_forward_that_gives_no_number_at_first(output):
    outputs = iter([output, 1.0])
    assert f"forward gives {output!r}" in message_of(lambda x: next(outputs), lambda g, out, x: g)


def test_a_forward_that_gives_nan_at_first():
    outputs = iter([math.nan, 1.0])
    assert "forward gives nan and then 1.0" in message_of(lambda x: next(outputs), lambda g, out, x: g)


def test_a_rule_that_is_not_quite_proportional_to_the_gradient_it_is_handed():
    said = message_of(lambda x: 0.1 * x, lambda g, out, x: 0.1 * g * (1 + 1e-7 * (g - 1)))
    assert "is proportional" in said
    assert "has right rules" not in said


@pytest.mark.parametrize("output", ["1", None, [1.0], math.nan])
def test_a_forward_that_gives_no_number(output):
    assert "gives floats" in message_of(lambda x: output, lambda g, out, x: g)


def test_one_that_is_not_registered():
    with pytest.raises(PrimitiveError, match="is found: raises ValueError: no primitive named 'nowhere'"):
        check_primitive(Primitive("nowhere", "?", lambda x: x, lambda g, out, x: g))
    with pytest.raises(PrimitiveError, match="another primitive is registered under its name"):
        check_primitive(Primitive("sin", "?", lambda x: x, lambda g, out, x: g))


def test_points_of_the_callers_own():
    own = mg.primitive("own", "own", lambda x: x if x < 1e4 else 2 * x, lambda g, out, x: g)
    assert check_primitive(own)
    with pytest.raises(PrimitiveError, match=r"has right rules, at \(60000\.0,\)"):
        check_primitive(own, [[60000.0]])
    with pytest.raises(PrimitiveError, match=r"has right rules, at \(60000\.0,\)"):
        check_primitive(own, [(np.float64(60000.0),)])


def tried(*domain):
    """The operands that forward is called with, in order."""
    seen = []

    def forward(*operands):
        seen.append(operands)
        return math.fsum(operands)

    rules = [lambda g, out, *operands: g] * len(domain)
    own = mg.primitive("own", "own", forward, *rules, domain=domain, replace=True)
    assert check_primitive(own, order=1)
    return seen


@pytest.mark.parametrize(
    ("low", "high", "least", "most"),
    [
        (-math.inf, math.inf, -3.0, 3.0),
        (-100.0, 100.0, -3.0, 3.0),
        (0.0, math.inf, 0.0, 6.0),
        (-math.inf, 0.0, -6.0, 0.0),
        (10.0, 20.0, 10.0, 16.0),
        (-20.0, -10.0, -16.0, -10.0),
        (0.0, 1.0, 0.0, 1.0),
        (5.0, 7.0, 5.0, 7.0),
        (5.0, 9.5, 5.0, 9.5),
        (0.0, 8.0, 0.0, 6.0),
        (-9.0, -4.0, -9.0, -4.0),
    ],
)
@pytest.mark.unmeasured
def test_points_spread_over_the_ordinary_part_of_the_domain(low, high, least, most):
    points = [x for (x,) in tried((low, high))[:20]]
    assert all(least < x < most for x in points)
    assert max(points) - min(points) > (most - least) / 2
    assert min(points) < least + 0.3 * (most - least)
    assert max(points) > most - 0.3 * (most - least)
    assert len(set(points)) == 10
    assert all(least < x < most for pair in tried((low, high), (low, high))[:20] for x in pair)


@pytest.mark.parametrize(
    ("domain", "where"),
    [
        *[((-math.inf, math.inf), x) for x in (0.0, 1.0, 30.0, 1000.0, -30.0, -1000.0)],
        *[((2.0, math.inf), 2.0 + distance) for distance in (1e-1, 1e-3, 1e-6, 1e-9)],
        *[((-math.inf, 2.0), 2.0 - distance) for distance in (1e-1, 1e-3, 1e-6, 1e-9)],
    ],
)
def test_what_goes_wrong_far_out_at_zero_or_beside_an_edge_is_found(domain, where):
    said = message_of(lambda x: math.nan if x == where else x, lambda g, out, x: g, domain=(domain,))
    assert f"gives floats, at ({where},): forward gives nan" in said


def test_several_operands_are_tried_together_beside_their_edges():
    seen = tried((0.0, 1.0), (0.0, math.inf))
    assert sum(min(x, 1 - x) < 2e-3 and (y < 2e-3 or y > 20) for x, y in seen[:40]) >= 2
    assert all(0 < x < 1 and y > 0 for x, y in seen[:40])


def test_results_that_overflow_are_no_failure():
    steep = mg.primitive("steep", "s", lambda x: math.exp(x * x), lambda g, out, x: 2 * g * out * x)
    assert check_primitive(steep)
    endless = mg.primitive("endless", "e", lambda x: x * x * 1e305, lambda g, out, x: 2e305 * g * x)
    assert check_primitive(endless, order=1)


def test_a_rule_that_changes_beside_a_plain_number():
    said = message_of(
        lambda x, y: x * y,
        lambda g, out, x, y: g * y if isinstance(y, float) else g * y * 2,
        lambda g, out, x, y: g * x,
    )
    assert "- not so: " in said


def test_operands_without_rules_are_left_alone():
    first = mg.primitive("first", "f", lambda x, y: x * y, lambda g, out, x, y: g * y, None)
    second = mg.primitive("second", "s", lambda x, y: x * y, None, lambda g, out, x, y: g * x)
    neither = mg.primitive("neither", "n", lambda x, y: x * y, None, None)
    assert check_primitive(first)
    assert check_primitive(second)
    assert check_primitive(neither)
    assert "has right rules" in message_of(lambda x, y: x * y, None, lambda g, out, x, y: 1.01 * g * x)


def test_a_setting_that_cannot_be_pickled():
    own = mg.primitive("own", "own", lambda x, by: by(x), lambda g, out, x, by: g)
    with pytest.raises(PrimitiveError, match=r"can be pickled, at \(.*\): raises "):
        check_primitive(own.with_settings(by=lambda x: 1.0 * x))
