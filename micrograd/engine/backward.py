"""Backpropagation: the order in which nodes take their turns, and the chain rule at each of them.

Take ``b = a * a`` and ``c = b + a``. Going out from c, a first walk counts the uses: b has 1, a has 3.
Then c passes its gradient on: to b, whose only use has thereby spoken, and once to a. So b is next,
and gives a its other two shares. Now a has heard from all three uses and its gradient is complete.
No order has to be stored, no node is met before its uses, and no recursion limits the depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import explained
from micrograd._support.interrupts import finish
from micrograd.engine.closures import changing_gradients
from micrograd.engine.order import topological_order
from micrograd.engine.primitive import CONSTANT, LEAF, times_first, times_second, unchanged

if TYPE_CHECKING:
    from collections.abc import Collection

    from micrograd.engine.value import Value

_running: list[Value] = []


def backpropagate(root: Value, gradient: float) -> list[Value]:
    """Run the chain rule from root to the leaves, which add up what they are given over calls.

    Returns the Values that gradients flow to, in the order in which they took their turns.

    On an error every leaf has the gradient it had before, and the nodes between have none.
    """
    leaves: list[tuple[Value, float]] = []  # and the gradients they had
    with changing_gradients:  # the counts are in the nodes too, so no two threads may walk shared nodes at a time
        if root._primitive.accumulate(root, gradient):
            return [root, *root._x]
        if _running and any(node._uses for node in topological_order(root) if not node.is_leaf):
            raise ValueError(f"the graph of {root!r} is being backpropagated through already; detach what they share")
        depth = len(_running)
        try:
            _running.append(root)
            count = _count_uses(root, leaves)
            root._grad = gradient
            turns = _pass_gradients(root)
            if len(turns) != count:
                raise ValueError(f"the graph of {root!r} has a cycle")
            for leaf, before in leaves:
                leaf._grad += before
        except BaseException:
            finish(lambda: _restore(root, leaves))
            raise
        finally:
            del _running[depth:]
    return turns


def set_gradients(leaves: Collection[Value], gradients: Collection[Any]) -> None:
    """Set the gradients of leaves: of all of them, also where Ctrl-C comes."""

    def commit() -> None:
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf._grad = gradient

    finish(commit)


def _count_uses(root: Value, leaves: list[tuple[Value, float]]) -> int:
    """Count in _uses how often each Value under root is used there, and set its gradient to 0.

    Returns how many Values there are.
    """
    count = 0
    stack = [root]
    while stack:
        node = stack.pop()
        count += 1
        if node._primitive is LEAF:
            leaves.append((node, node._grad))
            node._grad = 0.0
            continue
        node._grad = 0.0
        # The two operands are written out, here and below: a loop would take half as long again.
        operand = node._first
        if operand._primitive is not CONSTANT:
            if not (uses := operand._uses):
                stack.append(operand)
            operand._uses = uses + 1
        elif node._primitive.first is None:
            for operand in node._primitive.receivers(node):
                if not operand._uses:
                    stack.append(operand)
                operand._uses += 1
        operand = node._second
        if operand._primitive is not CONSTANT:
            if not (uses := operand._uses):
                stack.append(operand)
            operand._uses = uses + 1

    return count


def _pass_gradients(root: Value) -> list[Value]:
    """Let each Value pass its gradient on, once all of its uses have passed theirs to it.

    Nearly all nodes are sums and products, so their rules are written out where the calls would be.

    Returns those that did, in this order: in a cycle each waits for another.
    """
    turns: list[Value] = []
    take_turn = turns.append
    ready = [root]
    while ready:
        node = ready.pop()
        take_turn(node)
        gradient = node._grad
        primitive = node._primitive
        try:
            operand = node._first
            if operand._primitive is not CONSTANT:
                rule = primitive.first
                if rule is unchanged:
                    operand._grad += gradient
                elif rule is times_second:
                    operand._grad += gradient * node._y
                else:
                    operand._grad += rule(gradient, node._data, node._x, node._y)
                operand._uses = uses = operand._uses - 1
                if not uses:
                    ready.append(operand)
            elif primitive.first is None and primitive is not LEAF:
                for operand, share in primitive.shares(node, gradient):
                    operand._grad += share
                    operand._uses -= 1
                    if not operand._uses:
                        ready.append(operand)
            operand = node._second
            if operand._primitive is not CONSTANT:
                rule = primitive.second
                if rule is unchanged:
                    operand._grad += gradient
                elif rule is times_first:
                    operand._grad += gradient * node._x
                else:
                    operand._grad += rule(gradient, node._data, node._x, node._y)
                operand._uses = uses = operand._uses - 1
                if not uses:
                    ready.append(operand)
        except (ArithmeticError, ValueError, TypeError) as error:
            raise explained(error, primitive, node._inputs(), node._operands(), "the derivative of ") from error
    return turns


def _restore(root: Value, leaves: list[tuple[Value, float]]) -> None:
    """Undo a backpropagation that failed."""
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        node._uses = 0
        if not node.is_leaf:
            node._grad = 0.0
        fresh = [operand for operand in node._operands() if operand not in seen]
        seen.update(fresh)
        stack += fresh
    for leaf, before in leaves:
        leaf._grad = before
