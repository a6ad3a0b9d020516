"""Every Value after its operands: the order in which a program computed them, or another as good."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from micrograd.engine.value import Value


def topological_order(root: Value) -> list[Value]:
    """Every Value that root was computed from, each after its operands, and root last.

    Raises:
        ValueError: if the graph has a cycle.

    Example:
        >>> from micrograd import Value
        >>> a = Value(2.0, label="a")
        >>> [node.label or node._op for node in topological_order(a * a + a)]
        ['a', '*', '+']
    """
    if not hasattr(root, "_operands"):
        raise TypeError(f"the graph of a Value has an order, and not {type(root).__name__}: {root!r:.80}")
    order: dict[Value, None] = {}
    entered: set[Value] = set()
    stack = [root]
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
