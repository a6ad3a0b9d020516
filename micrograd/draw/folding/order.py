"""The order of the program, and what has no place of its own in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.engine.order import topological_order

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from micrograd.engine.value import Value


def in_program_order(root: Value, before: Iterable[Value] = ()) -> list[Value]:
    """Every Value after its operands, and the first operand before the second, as Python computes them.

    Args:
        root: the result.
        before: Values that were computed before it, in order, which it need not be made of.

    Raises:
        ValueError: if the graph has a cycle.

    Example:
        >>> from micrograd import Value
        >>> a, b = Value(1.0, label="a"), Value(2.0, label="b")
        >>> [node.label or node._op for node in in_program_order(a * a + b * b)]
        ['a', '*', 'b', '*', '+']
    """
    topological_order(root)  # which refuses a cycle
    order: dict[Value, None] = {}
    stack = [root, *[*before][::-1]]
    while stack:
        node = stack[-1]
        if node in order:
            stack.pop()
        elif waiting := [operand for operand in node._operands()[::-1] if operand not in order]:
            stack += waiting
        else:
            order[stack.pop()] = None
    return list(order)


def in_their_operations(nodes: Collection[Value], root: Value) -> dict[Value, Value]:
    """Plain numbers, which are shown in the operation that alone uses them; by number, the operation.

    Args:
        nodes: the Values of a graph.
        root: its result.

    Example:
        >>> from micrograd import Value
        >>> y = Value(3.0) * 2.0
        >>> [(number.data, operation._op) for number, operation in in_their_operations(in_program_order(y), y).items()]
        [(2.0, '*')]
    """
    users: dict[Value, Value] = {}
    shared: set[Value] = {root}
    for node in nodes:
        for operand in node._operands():
            if operand in users:
                shared.add(operand)
            users[operand] = node
    return {
        node: users[node]
        for node in nodes
        if node.is_leaf and not node.requires_grad and not node.label and node not in shared
    }
