"""How the losses of predictions come together in a result: added up, and divided by how many there are.

A page that knows this can leave some of them out, as where a shorter word is typed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.engine.value import Value


@dataclass(frozen=True, eq=False)
class Total:
    """The sum or the mean of losses.

    Attributes:
        of: the sum.
        places: for each loss the addition that it goes into, and as which operand.
        count: the number that the sum is divided by, or the factor that it is multiplied by; None for a sum.
    """

    of: Value
    places: list[tuple[Value, int]]
    count: Value | None


def total_of(root: Value, losses: Sequence[Value]) -> Total | None:
    """How a result is made of these losses; None where it is made in another way.

    Args:
        root: the result.
        losses: at least two.

    Example:
        >>> from micrograd import Value
        >>> losses = [Value(1.0) * 2, Value(3.0) * 2]
        >>> total_of((losses[0] + losses[1]) / 2, losses).count.data
        2.0
    """
    total, count = root, None
    if root._primitive.name in ("div", "mul"):
        total, count = root._operands()
        factor = len(losses) if root._primitive.name == "div" else 1 / len(losses)
        if count.requires_grad or not count.is_leaf or count.data != factor:
            return None
    places: dict[Value, tuple[Value, int]] = {}
    stack = [total]
    while stack:
        node = stack.pop()
        if node._primitive.name != "add":
            return None
        for place, operand in enumerate(node._operands()):
            if operand in places:
                return None
            if operand in losses:
                places[operand] = node, place
            elif not operand.is_leaf:
                stack.append(operand)
    return Total(total, [places[loss] for loss in losses], count) if len(places) == len(losses) else None
