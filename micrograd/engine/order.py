"""Every Value after its operands: an order in which a program may have computed them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from micrograd.engine.history import History
from micrograd.engine.primitive import CONSTANT

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

AnyNode = TypeVar("AnyNode", bound=History)


def topological_order(root: AnyNode) -> list[AnyNode]:
    """Every Value that root was computed from, each after its operands, and root last.

    Raises:
        TypeError: for what is not a Value.
        ValueError: if the graph has a cycle.

    Example:
        >>> from micrograd import Value
        >>> a = Value(2.0, label="a")
        >>> [node.label or node._op for node in topological_order(a * a + a)]
        ['a', '*', '+']
    """
    if not isinstance(root, History):
        raise TypeError(f"topological_order takes a Value, not {type(root).__name__}: {root!r:.80}")
    return order_of([root])


def order_of(roots: Iterable[AnyNode]) -> list[AnyNode]:
    """Every Value that one of several was computed from, and these, each after its operands."""
    order: dict[AnyNode, None] = {}
    entered: set[AnyNode] = set()
    stack = [*roots]
    while stack:
        node = stack[-1]
        if node in order:
            stack.pop()
        elif node in entered:  # seen again, so all of its operands are in order
            order[stack.pop()] = None
        else:
            entered.add(node)
            for operand in node._operands():
                if operand in entered and operand not in order:
                    raise ValueError(f"the graph has a cycle: {operand!r} is computed from itself")
                stack.append(operand)
    return list(order)


def computed_from(results: Iterable[AnyNode], known: Container[AnyNode]) -> set[AnyNode]:
    """What results are computed from that are no leaves, and the results themselves, as far as what is known."""
    found: set[AnyNode] = set()
    waiting = [*results]
    while waiting:
        node = waiting.pop()
        if node not in found and node not in known and not node.is_leaf:
            found.add(node)
            waiting += node._operands()
    return found


def recorded(roots: Iterable[AnyNode]) -> Iterator[AnyNode]:
    """Every Value that gradients flow to from one of several, and these, each once and in no particular order."""
    stack = [node for node in dict.fromkeys(roots) if node._primitive is not CONSTANT]
    seen: set[History] = set(stack)
    while stack:
        node = stack.pop()
        yield node
        primitive = node._primitive
        for operand in primitive.receivers(node) if primitive.variadic else (node._first, node._second):
            if operand._primitive is not CONSTANT and operand not in seen:
                seen.add(operand)
                stack.append(operand)
