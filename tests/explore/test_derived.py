"""What a large page leaves out: only what comes out the same from what is left."""

import micrograd as mg
from micrograd import Value
from micrograd.explore.derived import without_derived
from micrograd.explore.passes import passes


def left_of(root):
    data = passes(root)[0]
    names = [
        "" if node["primitive"] is None else data["primitives"][node["primitive"]]["name"] for node in data["nodes"]
    ]
    left = without_derived(data)
    numbers = {name: node["data"] for name, node in zip(names, left["nodes"], strict=True)}
    turns = {names[turn["node"]]: (turn["shares"], turn["locals"]) for turn in left["turns"]}
    return numbers, turns


def test_products_and_sums_are_left_out_and_exponentials_are_not():
    x = Value(0.5)
    root = mg.exp(x * 3.0) + 1.0
    numbers, turns = left_of(root)
    assert numbers["mul"] is None
    assert numbers["add"] is None
    assert numbers["exp"] == mg.exp(1.5)
    assert turns["add"] == ([True, None], None)  # no gradient flows into the plain number
    assert turns["exp"] == ([True], None)  # its rule is a product with what it has computed


def test_numbers_that_have_changed_since_stay():
    x = Value(0.1)
    first = x * 3.0
    x.data = 0.7
    root = first + x * 3.0
    left = without_derived(passes(root)[0])
    products = [node["data"] for node in left["nodes"] if node["primitive"] is not None]
    assert sum(number is not None for number in products) == 1


def test_what_is_not_finite_or_ones_own_stays(own_registry):
    triple = mg.primitive("triple", "triple", lambda x: 3 * x, lambda g, out, x: 3 * g)
    numbers, turns = left_of(triple(Value(2.0)) * 1.0)
    assert numbers["triple"] == 6.0
    assert turns["triple"] == ([True], None)
    plain = mg.primitive("plain", "plain", lambda x: x, lambda g, out, x: float(g))
    assert left_of(plain(Value(2.0)) * 1.0)[1]["plain"] == ([1.0], [1.0])  # its rule is no formula
    big = Value(1e308)
    assert left_of((big + big) * 0.5)[0]["add"] == "Infinity"


def test_a_logarithm_has_another_digit_elsewhere_and_its_quotient_has_not():
    numbers, turns = left_of(mg.log(Value(3.0)) * 2.0)
    assert numbers["log"] == mg.log(3.0)
    assert turns["log"] == ([True], None)
    assert left_of(mg.sin(Value(3.0)) * 2.0)[1]["sin"] == ([2 * mg.cos(3.0)], [mg.cos(3.0)])
