"""Gradients that are graphs themselves, and gradients that are returned and leave no trace.

The rules of the table are written with operators, so handed Values they record what they compute. At
``y = x ** 3`` with a gradient g the rule for x gives ``g * 3 * x ** 2``: a float where g and x are
floats, and a graph, to be differentiated again, where they are Values.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd.backpropagation import topological_order
from micrograd.checks import explained
from micrograd.closures import HandWritten, Operation

if TYPE_CHECKING:
    from micrograd.engine import Value

# Whether a rule is being run on Values: one that took the float of a Value would lose its graph.
running_rules: ContextVar[bool] = ContextVar("running_rules", default=False)


def gradients(root: Value, start: Any, create_graph: bool) -> dict[Value, Any]:
    """The gradient of root, times start, with respect to each Value under it: floats, or graphs."""
    found = {root: start}
    for node in reversed(topological_order(root)):
        if node in found and not node.is_leaf:
            for operand, share in _shares(node, found[node], create_graph):
                found[operand] = found[operand] + share if operand in found else share
    return found


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
    for operand, number in zip(operands, node._inputs(), strict=True):
        if operand._data != number and operand._data == operand._data:
            raise ValueError(f"{operand!r} was {number} in the forward pass; compute the output anew")
    before = running_rules.set(True)
    try:
        return [
            (operand, rule(gradient, node, *operands))
            for operand, rule in zip(operands, primitive.derivatives, strict=True)
            if rule and operand.requires_grad
        ]
    finally:
        running_rules.reset(before)
