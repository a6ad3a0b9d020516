"""Gradients that are graphs themselves, and gradients that are returned and leave no trace.

The rules of the table are written with operators, so handed Values they record what they compute. At
``y = x ** 3`` with a gradient g the rule for x gives ``g * 3 * x ** 2``: a float where g and x are
floats, and a graph, to be differentiated again, where they are Values.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd.backpropagation import topological_order
from micrograd.checks import check_unchanged, explained
from micrograd.closures import HandWritten, Operation

if TYPE_CHECKING:
    from collections.abc import Collection

    from micrograd.engine import Value

# Whether a rule is being run on Values: one that took the float of a Value would lose its graph.
running_rules: ContextVar[bool] = ContextVar("running_rules", default=False)


def gradients(root: Value, start: Any, create_graph: bool, wanted: Collection[Value] | None = None) -> dict[Value, Any]:
    """The gradient of root, times start, with respect to the Values under it: floats, or graphs.

    Where only some are wanted, what does not lie on a way to them is not differentiated.
    """
    order = topological_order(root)
    needed = set(order) if wanted is None else _leading_to(set(wanted), order)
    found = {root: start}
    for node in reversed(order):
        if node in found and node in needed and not node.is_leaf:
            for operand, share in _shares(node, found[node], create_graph):
                found[operand] = found[operand] + share if operand in found else share
    return found


def _leading_to(wanted: set[Value], order: list[Value]) -> set[Value]:
    """The nodes that a wanted Value was an operand of, directly or further down."""
    leading: set[Value] = set()
    for node in order:
        if any(operand in wanted or operand in leading for operand in node._operands()):
            leading.add(node)
    return leading


def _shares(node: Value, gradient: Any, create_graph: bool) -> list[tuple[Value, Any]]:
    """What a node gives to each of its operands."""
    primitive = node._primitive
    try:
        return _graphs(node, gradient) if create_graph else primitive.shares(node, gradient)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise explained(error, primitive, node._inputs(), node._operands(), "the derivative of ") from error


def _graphs(node: Value, gradient: Value) -> list[tuple[Value, Value]]:
    """What a node gives to each of its operands, as graphs on the operands themselves."""
    primitive, operands = node._primitive, node._operands()
    if isinstance(primitive, (HandWritten, Operation)):
        raise ValueError("its derivative is a closure on floats, no graph; make it a primitive, with a rule")
    if not primitive.derivatives:
        raise ValueError("this primitive has no derivative")
    check_unchanged(operands, node._inputs())
    before = running_rules.get()
    try:
        running_rules.set(True)
        return [
            (operand, rule(gradient, node, *operands))
            for operand, rule in zip(operands, primitive.derivatives, strict=True)
            if rule and operand.requires_grad
        ]
    finally:
        running_rules.set(before)
