"""Numbers that a page computes by itself, to the last bit: a large page leaves them out.

These are sums, products and quotients, which IEEE 754 rounds in one way only; exponentials, powers and the like may
end in another digit in a browser. Each number that is left out has been computed again here, from what is left.
"""

from __future__ import annotations

import math
from typing import Any

from micrograd.engine.further_primitives import TABLE

EXACT = frozenset(("add", "sub", "mul", "div", "neg", "relu", "identity", "detach", "maximum", "minimum"))


def without_derived(data: dict[str, Any]) -> dict[str, Any]:
    """The data of a page without the results, shares and local derivatives that it computes itself.

    Args:
        data: as passes() gives it.

    Returns:
        The same, where results have None as data, and turns None as their local derivatives, and whether there is one
        in the place of each share.

    Example:
        >>> from micrograd import Value
        >>> from micrograd.explore.passes import passes
        >>> x = Value(3.0)
        >>> left = without_derived(passes(x * x)[0])
        >>> [node["data"] for node in left["nodes"]], left["turns"]
        ([3.0, None], [{'node': 1, 'shares': [True, True], 'locals': None}])
    """
    nodes, primitives = data["nodes"], data["primitives"]
    numbers = [float(node["data"]) for node in nodes]
    left = []
    for node, number in zip(nodes, numbers, strict=True):
        entry = {} if node["primitive"] is None else primitives[node["primitive"]]
        is_exact = entry.get("library") and entry["name"] in EXACT and math.isfinite(number)
        if is_exact and _same(number, TABLE[entry["name"]].forward(*(numbers[each] for each in node["operands"]))):
            left.append(node | {"data": None})
        else:
            left.append(node)
    gradients = [0.0] * len(nodes)
    gradients[data["root"]] = 1.0
    turns = []
    for turn in data["turns"]:
        place = turn["node"]
        operands, rules = nodes[place]["operands"], primitives[nodes[place]["primitive"]]["rules"]
        inputs = [numbers[operand] for operand in operands]
        used = [(at, rules[at]) for at, share in enumerate(turn["shares"]) if share is not None]
        is_derived = all(
            _is_exact(rule)
            and _same(turn["shares"][at], _value(rule, gradients[place], numbers[place], inputs))
            and _same(turn["locals"][at], _value(rule, 1.0, numbers[place], inputs))
            for at, rule in used
        )
        for at, _ in used:
            gradients[operands[at]] += float(turn["shares"][at])
        shares = [None if share is None else True for share in turn["shares"]]
        turns.append(turn | {"shares": shares, "locals": None} if is_derived else turn)
    return {**data, "nodes": left, "turns": turns}


def _same(one: Any, other: float) -> bool:
    """Whether two numbers are the same, with the sign of a zero."""
    return isinstance(one, float) and one == other and math.copysign(1.0, one) == math.copysign(1.0, other)


def _is_exact(rule: Any) -> bool:
    """Whether a formula is made of operations that are rounded in one way only."""
    return rule is not None and (not isinstance(rule, list) or (rule[0] in EXACT and all(map(_is_exact, rule[1:]))))


def _value(rule: Any, gradient: float, out: float, inputs: list[float]) -> float:
    """The number of such a formula."""
    if isinstance(rule, list):
        return TABLE[rule[0]].forward(*(_value(operand, gradient, out, inputs) for operand in rule[1:]))
    if isinstance(rule, str):
        return gradient if rule == "g" else out if rule == "out" else inputs[int(rule)]
    return float(rule)
