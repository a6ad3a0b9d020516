"""What is left of a backpropagation that failed, or that a fork cut off: it is cleared, or not trusted any more."""

from __future__ import annotations

import os
from typing import Any

from micrograd.engine.commit import ABOVE, changing_gradients, commit, traversal


def clear(root: Any, floor: int) -> None:
    """Clear the counts, and the gradients of results, that a failed traversal left under root; then restore its floor.

    Leaves keep their gradients.
    """
    seen, stack = {root}, [root]
    while stack:
        node = stack.pop()
        node._uses = 0
        if not node.is_leaf:
            node._grad = 0.0
        fresh = [operand for operand in node._operands() if operand not in seen]
        seen.update(fresh)
        stack += fresh
    traversal.floor = floor


def _undo_in_child() -> None:
    """Undo, in a forked child, the traversal of another thread, which is not there any more."""
    if traversal.undo is not None and not changing_gradients._is_owned():
        traversal.floor += ABOVE
        commit(traversal.undo)
        traversal.undo = None


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows does not fork
    os.register_at_fork(after_in_child=_undo_in_child)
