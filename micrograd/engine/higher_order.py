"""Gradients that are graphs themselves, and gradients that are returned and leave no trace.

The rules of the table are written with operators, so handed Values they record what they compute. At
``y = x ** 3`` with a gradient g the rule for x gives ``g * 3 * x ** 2``: a float where g and x are
floats, and a graph, to be differentiated again, where they are Values.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_unchanged, explained
from micrograd._support.interrupts import finish
from micrograd.engine.closures import changing_gradients
from micrograd.engine.node import Node
from micrograd.engine.order import topological_order
from micrograd.engine.recorder import floats_refused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from micrograd.engine.value import Value


def gradients(root: Value, start: Any, create_graph: bool, wanted: Collection[Value] | None = None) -> dict[Value, Any]:
    """The gradient of root, times start, with respect to the Values under it: floats, or graphs.

    Where only some are wanted, what does not lie on a way to them is not differentiated.
    """
    order = topological_order(root)
    needed = set(order) if wanted is None else _leading_to(set(wanted), order)
    useful = needed.union(wanted or ())
    found = {root: start}
    give = shares_of.get()
    for node in reversed(order):
        if node in found and node in needed:
            for operand, share in give(node, found[node], create_graph, useful):
                found[operand] = found[operand] + share if operand in found else share
    return found


def set_graphs(root: Value, start: Value) -> None:
    """Set the gradients of root, times start, as graphs: of all the Values under it, or of none."""
    found = gradients(root, start, create_graph=True)

    def commit() -> None:
        for node, grad in found.items():
            node._grad = grad

    with changing_gradients:
        for leaf in filter(lambda node: node.is_leaf, found):
            found[leaf] = leaf._grad + found[leaf] if isinstance(leaf._grad, Node) or leaf._grad else found[leaf]
        finish(commit)


def _leading_to(wanted: set[Value], order: list[Value]) -> set[Value]:
    """The nodes that a wanted Value was an operand of, directly or further down."""
    leading: set[Value] = set()
    for node in order:
        if any(operand in wanted or operand in leading for operand in node._operands()):
            leading.add(node)
    return leading


def shares(node: Value, gradient: Any, create_graph: bool, useful: set[Value]) -> list[tuple[Value, Any]]:
    """What a node gives to each of its operands that is of use."""
    if node.is_leaf:
        return []
    primitive = node._primitive
    try:
        return _graphs(node, gradient, useful) if create_graph else primitive.shares(node, gradient, useful)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise explained(error, primitive, node._inputs(), node._operands(), "the derivative of ") from error


# What gives the shares: where one is set that looks at them, it calls ``shares`` itself.
shares_of: ContextVar[Callable[..., list[tuple[Value, Any]]]] = ContextVar("shares_of", default=shares)


def _graphs(node: Value, gradient: Value, useful: set[Value]) -> list[tuple[Value, Value]]:
    """What a node gives to each of its operands, as graphs on the operands themselves."""
    primitive, operands = node._primitive, node._operands()
    primitive.check_differentiable_again()
    if not primitive.derivatives:
        raise ValueError("this primitive has no derivative")
    check_unchanged(operands, node._inputs())
    before = floats_refused.get()
    try:
        floats_refused.set("a rule must be written with operators and mg.exp, not math.exp, to be differentiated again")
        return [
            (operand, rule(gradient, node, *operands))
            for operand, rule in zip(operands, primitive.derivatives, strict=True)
            if rule and operand.requires_grad and operand in useful
        ]
    finally:
        floats_refused.set(before)
