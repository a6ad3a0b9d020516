"""Backpropagation: two walks from the root, and the guards around them.

Take ``b = a * a`` and ``c = b + a``. The first walk goes out from c and counts the uses: b has 1, a has 3.
In the second, c passes its gradient on: to b, whose only use has thereby spoken, and once to a. So b is
next, and gives a its other two shares. Now a has heard from all three uses, and its gradient is complete.
No order has to be stored, no node is met before its uses, and no recursion limits the depth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import explained
from micrograd.engine.closures import changing_gradients
from micrograd.engine.commit import undo_backpropagation
from micrograd.engine.higher_order import shares
from micrograd.engine.order import topological_order
from micrograd.engine.primitive import CONSTANT, LEAF, times_first, times_second, unchanged
from micrograd.engine.recorder import NO_RECORDER, recorder_in_use

if TYPE_CHECKING:
    from micrograd.engine.node import Node


def _count_uses(root: Node, leaves: list[tuple[Node, Any]]) -> int:
    """Count in _uses how often each node under root is used there, and set its gradient to 0; how many there are."""
    count, stack = 0, [root]
    while stack:
        node = stack.pop()
        count += 1
        primitive = node._primitive
        if primitive is LEAF:
            leaves.append((node, node._grad))
        node._grad = 0.0
        if primitive.wide:
            for operand in primitive.receivers(node):
                if not operand._uses:
                    stack.append(operand)
                operand._uses += 1
        # The two operands are written out, here and below: a loop would take a quarter as long again.
        operand = node._first
        if operand._primitive is not CONSTANT:
            if not (uses := operand._uses):
                stack.append(operand)
            operand._uses = uses + 1
        operand = node._second
        if operand._primitive is not CONSTANT:
            if not (uses := operand._uses):
                stack.append(operand)
            operand._uses = uses + 1
    return count


def _pass_gradients(root: Node, watched: bool) -> list[Node]:
    """Let each node pass its gradient on, once all of its uses have passed theirs to it; the nodes in their turns."""
    turns, ready = [], [root]
    while ready:
        node = ready.pop()
        turns.append(node)
        primitive, gradient = node._primitive, node._grad
        if primitive.wide or watched:
            for operand, share in shares(node, gradient):
                operand._grad += share
                operand._uses -= 1
                if not operand._uses:
                    ready.append(operand)
            continue
        try:
            operand = node._first
            if operand._primitive is not CONSTANT:
                # Nearly all nodes are sums and products: their rules are written out where the calls would be.
                if (rule := primitive.first) is unchanged:
                    operand._grad += gradient
                elif rule is times_second:
                    operand._grad += gradient * node._y
                else:
                    operand._grad += rule(gradient, node._data, node._x, node._y)
                operand._uses = uses = operand._uses - 1
                if not uses:
                    ready.append(operand)
            operand = node._second
            if operand._primitive is not CONSTANT:
                if (rule := primitive.second) is unchanged:
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


_running: list[Node] = []  # the roots: a hand-written derivative may run another backpropagation inside of one


def backpropagate(root: Node, gradient: float) -> list[Node]:
    """Run the chain rule from root to the leaves, which add up what they are given over calls: all of it, or nothing.

    Returns the nodes that gradients flow to, in the order in which they took their turns. On an error every leaf has
    the gradient it had before, and the nodes between have none.
    """
    leaves: list[tuple[Node, Any]] = []  # and the gradients that they had
    with changing_gradients:  # the counts are in the nodes, so no two threads may walk shared nodes at a time
        if root._primitive.backpropagates_at_once(root, gradient):
            return [root, *root._x]
        if _running and any(node._uses for node in topological_order(root) if not node.is_leaf):
            raise ValueError(f"the graph of {root!r} is being backpropagated through already; detach what they share")
        depth = len(_running)
        try:
            _running.append(root)
            count = _count_uses(root, leaves)
            root._grad = gradient
            turns = _pass_gradients(root, (recorder_in_use() or NO_RECORDER).watches_gradients)
            if len(turns) != count:  # in a cycle each waits for another
                raise ValueError(f"the graph of {root!r} has a cycle")
            for leaf, before in leaves:
                leaf._grad += before
        except BaseException:
            undo_backpropagation(root, leaves)
            raise
        finally:
            del _running[depth:]
    return turns
