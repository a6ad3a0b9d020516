"""All or nothing: what changes several Values at once, and what takes it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.interrupts import finish

if TYPE_CHECKING:
    from collections.abc import Collection

    from micrograd.engine.node import Node


def set_gradients(nodes: Collection[Node], gradients: Collection[Any]) -> None:
    """Set the gradients of nodes: of all of them, also where Ctrl-C comes."""

    def commit() -> None:
        for node, gradient in zip(nodes, gradients, strict=True):
            node._grad = gradient

    finish(commit)


def undo_backpropagation(root: Node, leaves: Collection[tuple[Node, Any]]) -> None:
    """Put back what a backpropagation from root has changed: leaves get their gradients back, the rest has none."""

    def undo() -> None:
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

    finish(undo)
