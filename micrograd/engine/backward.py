"""Backpropagation: two passes from the root, and the guards around them.

Take ``b = a * a`` and ``c = b + a``. The first pass starts at c and counts the uses: b has 1, a has 3.
In the second pass, c adds to the gradients of b and a. That was the only use of b, so b is next. It adds to the
gradient of a twice. Now all three uses of a have contributed, so its gradient is complete.
No order is stored, no node is visited before its uses, and no recursion limits the depth.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import explained
from micrograd.engine.commit import ABOVE, changing_gradients, commit, keeping_gradients, setting, traversal
from micrograd.engine.failures import clear
from micrograd.engine.higher_order import pass_watched_gradients, set_adjoints
from micrograd.engine.primitive import CONSTANT, LEAF, times_first, times_second, unchanged
from micrograd.engine.primitive_base import passed_on
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.stored import LATER, SPECIAL, bring_up_to_date, forget_stored, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from micrograd.engine.history import History


# Each pass follows one operand at once, and lets others wait. The two operands are written out, because a loop over
# them would take a quarter as long again. The loops have no condition, because CPython 3.11 makes a function fast when
# it has been called, or has jumped back, eight times; and it counts only jumps without a condition. What is compared
# with again and again is in local variables, which are read faster than global ones.
def _count_uses(root: History, floor: int, leaves: list[History], before: list[Any]) -> int:
    """Count from floor on in _uses how often each node under root is used there, and set its gradient to 0."""
    node, waiting, count, once, constant = root, list[Any](), 0, floor + 1, CONSTANT
    while True:
        count += 1
        following = None
        operand = node._first
        if (uses := operand._uses) > floor:  # no constant has uses
            operand._uses = uses + 1
        elif operand._primitive is not constant:
            operand._uses = once
            following = operand
        elif (primitive := node._primitive) is LEAF:
            leaves.append(node)
            before.append(node._grad)
        elif primitive.variadic:
            for operand in primitive.receivers(node):
                if (uses := operand._uses) <= floor:
                    waiting.append(operand)
                    uses = floor
                operand._uses = uses + 1
        node._grad = 0.0
        operand = node._second
        if (uses := operand._uses) > floor:
            operand._uses = uses + 1
        elif operand._primitive is not constant:
            operand._uses = once
            if following is not None:
                waiting.append(following)
            following = operand
        if following is not None:
            node = following
        elif waiting:
            node = waiting.pop()
        else:
            return count


def _pass_gradients(root: History, floor: int) -> list[History]:
    """Let each node pass its gradient on, once all of its uses have passed theirs to it; the nodes as visited."""
    node, waiting, visited, once = root, list[Any](), list[Any](), floor + 1
    sum_rule, first_rule, second_rule = unchanged, times_second, times_first
    try:
        while True:
            visited.append(node)
            primitive, gradient = node._primitive, node._grad
            following = None
            operand = node._first
            if (uses := operand._uses) > floor:
                # Nearly all nodes are sums and products: their rules are written out where the calls would be.
                if (rule := primitive.first) is sum_rule:
                    operand._grad += gradient
                elif rule is first_rule:
                    operand._grad += gradient * node._y
                else:
                    operand._grad += rule(gradient, node._data, node._x, node._y)
                if uses == once:
                    operand._uses = floor
                    following = operand
                else:
                    operand._uses = uses - 1
            elif primitive.variadic:
                waiting += passed_on(primitive.contributions(node, gradient), floor)
            operand = node._second
            if (uses := operand._uses) > floor:
                if (rule := primitive.second) is sum_rule:
                    operand._grad += gradient
                elif rule is second_rule:
                    operand._grad += gradient * node._x
                else:
                    operand._grad += rule(gradient, node._data, node._x, node._y)
                if uses == once:
                    if following is not None:
                        waiting.append(following)
                    operand._uses = floor
                    following = operand
                else:
                    operand._uses = uses - 1
            if following is not None:
                node = following
            elif waiting:
                node = waiting.pop()
            else:
                return visited
    except (ArithmeticError, ValueError, TypeError) as error:
        raise explained(error, primitive, node._inputs(), node._operands(), "the derivative of ") from error


def backpropagate(root: History, gradient: float) -> Iterable[Any]:
    """Run the chain rule from root to the leaves, whose gradients add up over calls: completely, or not at all.

    Returns the nodes that gradients flow to, in the order in which they were visited. After an error, every leaf
    has the gradient it had before.
    """
    with changing_gradients:  # the counts are in the nodes, so no two threads may visit shared nodes at a time
        if (primitive := root._primitive).variadic and primitive.backpropagates_at_once(root, gradient):
            return chain([root], root._x)
        if LATER:
            bring_up_to_date()
        if traversal.undo is not None:  # a derivative starts this inside of another traversal, whose counts must stay
            return list(set_adjoints(root, gradient, create_graph=False))
        floor, above = traversal.floor, traversal.floor + ABOVE
        leaves, before = list[Any](), list[Any]()
        undo = setting(leaves, "_grad", before)
        keeping_gradients([root])  # a rehearsal: there is room on the stack for the undo
        try:
            traversal.undo = undo
            count = _count_uses(root, floor, leaves, before)
            root._grad = gradient
            watched = SPECIAL and (recorder := recorder_on_top()) is not None and recorder.watches_gradients
            visited = pass_watched_gradients(root, floor) if watched else _pass_gradients(root, floor)
            if len(visited) != count:  # in a cycle each waits for another
                raise ValueError(f"the graph of {root!r} has a cycle")
            sums = [leaf._grad + earlier for leaf, earlier in zip(leaves, before, strict=True)]
            if any(map(storage_of, leaves)):
                forget_stored(leaves)
            commit(setting(leaves, "_grad", sums))
        except BaseException:
            traversal.floor = above  # no count is trusted any more
            commit(undo)
            clear(root, floor)
            raise
        finally:
            traversal.undo = None
    return visited
