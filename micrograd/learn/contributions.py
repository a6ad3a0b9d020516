"""The contributions to a gradient, edge by edge, and what a wrong sum of them was probably made of.

An edge leads from a result to one of its operands. The result contributes its gradient, times the local derivative, to
the gradient of the operand. A Value that is used twice gets two contributions, and its gradient is their sum.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from micrograd.draw.text import readable
from micrograd.engine.backward import backpropagate
from micrograd.engine.order import topological_order
from micrograd.learn.comparing import alike

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd.engine.value import Value

_MOST_CONTRIBUTIONS = 6  # of a sum that is taken apart: there are 2 ** 6 parts of it


class Contribution(NamedTuple):
    """What a result adds to the gradient of one of its operands.

    Args:
        user: the name of the result that gives it.
        operand: the name of the Value that gets it.
        gradient: that of the result.
        local: the local derivative.
    """

    user: str
    operand: str
    gradient: float
    local: float

    @property
    def amount(self) -> float:
        """The gradient times the local derivative."""
        return self.gradient * self.local

    def __str__(self) -> str:
        return f"{self.user} gives {readable(self.amount)} ({readable(self.gradient)} times {readable(self.local)})"


def named(label: str, node: Value) -> Value:
    """The Value, with a label."""
    node.label = label
    return node


def name_of(node: Value) -> str:
    """What a message calls a Value of an exercise: its label, or the operation that made it."""
    return node.label or node._op


def backward_order(root: Value) -> list[Value]:
    """The Values under a root in the order of the engine's backward pass, which fills their gradients again."""
    for node in topological_order(root):
        node.grad = 0.0
    return list(backpropagate(root, 1.0))


def contributions_under(root: Value) -> list[Contribution]:
    """Every contribution of the backward pass from a root, in backward order. It fills the gradients again."""
    found = []
    for node in backward_order(root):
        if node.is_leaf:
            continue
        for operand, rule in zip(node._operands(), node._primitive.derivatives, strict=True):
            if rule and operand.requires_grad:
                local = rule(1.0, node._data, *node._inputs())
                found.append(Contribution(name_of(node), name_of(operand), node.grad, local))
    return found


def labelled(root: Value) -> dict[str, Value]:
    """The Values under a root by label, in backward order: each before its operands."""
    return {name_of(node): node for node in backward_order(root)}


def about_sum(given: float, contributions: Sequence[Contribution]) -> str:
    """What a wrong gradient was probably made of, given those that it should be the sum of; "" where unclear.

    Example:
        >>> contributions = [Contribution("f", "x", 1.0, 3.0), Contribution("a", "x", 2.0, 2.0)]
        >>> about_sum(4.0, contributions)
        'What comes by f -> x is missing.'
        >>> about_sum(12.0, contributions)
        'The contributions were multiplied; those of several uses are added.'
        >>> about_sum(-7.0, contributions)
        'Its size is right, its sign is not.'
    """
    amounts = [contribution.amount for contribution in contributions]
    total = sum(amounts)
    if alike(given, -total):
        return "Its size is right, its sign is not."
    counted = Counter(contributions)
    if len(counted) < len(contributions) and alike(given, sum(contribution.amount for contribution in counted)):
        user = next(contribution.user for contribution, count in counted.items() if count > 1)
        return f"Only one of two contributions from {user} is there: {contributions[0].operand} is its operand twice."
    for part in _parts(contributions):
        left_out = [contribution for contribution in contributions if contribution not in part]
        if left_out and part and alike(given, sum(contribution.amount for contribution in part)):
            edges = " and ".join(dict.fromkeys(f"{missing.user} -> {missing.operand}" for missing in left_out))
            return f"What comes by {edges} is missing."
    if given == 0:
        return f"Nothing has arrived at {contributions[0].operand}."
    if alike(given, sum(contribution.local for contribution in contributions)):
        return "These are the local derivatives alone: each is multiplied by the gradient of its result first."
    if alike(given, sum(contribution.gradient for contribution in contributions)):
        return "These are the gradients of the results alone: each is multiplied by the local derivative."
    if len(contributions) > 1:
        product = 1.0
        for amount in amounts:
            product *= amount
        if alike(given, product):
            return "The contributions were multiplied; those of several uses are added."
    if alike(given, 2 * total):
        return "It is twice what it should be: something is counted two times."
    for index, contribution in enumerate(contributions):
        others = total - contribution.amount
        if alike(given, others - contribution.amount):
            return f"The contribution from {contribution.user} has the wrong sign."
        if alike(given, others + contribution.gradient + contribution.local):
            user = contribution.user
            return f"For the contribution from {user}, gradient and local derivative were added, not multiplied."
        if alike(given, others + 2 * contribution.amount) and contribution.amount not in amounts[:index]:
            return f"The contribution from {contribution.user} is counted twice."
    return ""


def _parts(contributions: Sequence[Contribution]) -> Iterable[tuple[Contribution, ...]]:
    """Every choice of some of the contributions, the largest first; of many, one left out or one alone."""
    most = len(contributions) - 1
    sizes = range(most, 0, -1) if most < _MOST_CONTRIBUTIONS else (most, 1)
    return (part for size in sizes for part in combinations(contributions, size))


def as_sum(contributions: Sequence[Contribution]) -> str:
    """The contributions of a gradient in words."""
    told = "; ".join(map(str, contributions))
    if len(contributions) == 1:
        return told
    return f"{told}; together {readable(sum(contribution.amount for contribution in contributions))}"
