"""The shares that make up a gradient, edge by edge, and what a wrong sum of them was probably made of.

An edge leads from a result to one of its operands. Over it goes a share: the gradient of the result, times the local
derivative. A Value that is used twice gets two shares, and its gradient is their sum.
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

_MOST_SHARES = 6  # of a sum that is taken apart: there are 2 ** 6 parts of it


class Share(NamedTuple):
    """What goes over one edge.

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


def turns(root: Value) -> list[Value]:
    """The Values under a root in the order of the engine's backward pass, which fills their gradients again."""
    for node in topological_order(root):
        node.grad = 0.0
    return list(backpropagate(root, 1.0))


def shares_under(root: Value) -> list[Share]:
    """Every share of the backward pass from a root, in backward order. It fills the gradients again."""
    found = []
    for node in turns(root):
        if node.is_leaf:
            continue
        for operand, rule in zip(node._operands(), node._primitive.derivatives, strict=True):
            if rule and operand.requires_grad:
                local = rule(1.0, node._data, *node._inputs())
                found.append(Share(name_of(node), name_of(operand), node.grad, local))
    return found


def labelled(root: Value) -> dict[str, Value]:
    """The Values under a root by label, in backward order: each before its operands."""
    return {name_of(node): node for node in turns(root)}


def about_sum(given: float, shares: Sequence[Share]) -> str:
    """What a wrong gradient was probably made of, given the shares that it should be the sum of; "" where unclear.

    Example:
        >>> shares = [Share("f", "x", 1.0, 3.0), Share("a", "x", 2.0, 2.0)]
        >>> about_sum(4.0, shares)
        'What comes by f -> x is missing.'
        >>> about_sum(12.0, shares)
        'The shares were multiplied; those of several uses are added.'
        >>> about_sum(-7.0, shares)
        'Its size is right, its sign is not.'
    """
    amounts = [share.amount for share in shares]
    total = sum(amounts)
    if alike(given, -total):
        return "Its size is right, its sign is not."
    counted = Counter(shares)
    if len(counted) < len(shares) and alike(given, sum(share.amount for share in counted)):
        user = next(share.user for share, count in counted.items() if count > 1)
        return f"Only one of two shares from {user} is there: {shares[0].operand} is its operand twice."
    for part in _parts(shares):
        left_out = [share for share in shares if share not in part]
        if left_out and part and alike(given, sum(share.amount for share in part)):
            edges = " and ".join(dict.fromkeys(f"{share.user} -> {share.operand}" for share in left_out))
            return f"What comes by {edges} is missing."
    if given == 0:
        return f"Nothing has arrived at {shares[0].operand}."
    if alike(given, sum(share.local for share in shares)):
        return "These are the local derivatives alone: each is multiplied by the gradient of its result first."
    if alike(given, sum(share.gradient for share in shares)):
        return "These are the gradients of the results alone: each is multiplied by the local derivative."
    if len(shares) > 1:
        product = 1.0
        for amount in amounts:
            product *= amount
        if alike(given, product):
            return "The shares were multiplied; those of several uses are added."
    if alike(given, 2 * total):
        return "It is twice what it should be: something is counted two times."
    for index, share in enumerate(shares):
        others = total - share.amount
        if alike(given, others - share.amount):
            return f"The share from {share.user} has the wrong sign."
        if alike(given, others + share.gradient + share.local):
            return f"For the share from {share.user}, gradient and local derivative were added, not multiplied."
        if alike(given, others + 2 * share.amount) and share.amount not in amounts[:index]:
            return f"The share from {share.user} is counted twice."
    return ""


def _parts(shares: Sequence[Share]) -> Iterable[tuple[Share, ...]]:
    """Every choice of some of the shares, the largest first; of many, one left out or one alone."""
    sizes = range(len(shares) - 1, 0, -1) if len(shares) <= _MOST_SHARES else (len(shares) - 1, 1)
    return (part for size in sizes for part in combinations(shares, size))


def as_sum(shares: Sequence[Share]) -> str:
    """The shares of a gradient in words."""
    told = "; ".join(map(str, shares))
    return told if len(shares) == 1 else f"{told}; together {readable(sum(share.amount for share in shares))}"
