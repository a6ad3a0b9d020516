"""Pickling and deep-copying graphs of any depth.

Python copies referenced objects by recursion, and gives up on a chain of a few hundred nodes. Here the first
Value passes its whole graph as a list, operands first:

    c = a * b + a    ->    [a, b, a * b, c]    ->    the last of the copied list is the copy of c

When a node of the list is copied, its operands have been copied, and pickle and copy remember them. So nothing
recurses, and copies share what the originals share. Custom attributes of nodes come after all nodes, because they may
refer to any of them.
"""

from __future__ import annotations

import copyreg
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import ref

from micrograd.engine.node import Node
from micrograd.engine.order import topological_order
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


def user_attributes(node: Node) -> dict[str, Any]:
    """The attributes that the user has set on a node, by name, beside the label."""
    attributes = node.__dict__
    return {name: item for name, item in attributes.items() if name not in _OURS} if attributes else attributes


_OURS = ("label", "_calls", "_scope")


class _Graph(list[Value]):
    """The nodes under a root in topological order; it lives as long as the copying of it does."""

    def __init__(self, nodes: list[Value] | tuple[()] = ()) -> None:
        super().__init__(nodes)
        self.members = set(nodes)

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (), None, iter(self)


# The graphs that this thread or task is copying. The references to those it has copied are dead.
_graphs: ContextVar[tuple[ref[_Graph], ...]] = ContextVar("graphs", default=())


def _reduce(node: Value) -> tuple[Any, ...]:
    """What pickle and copy ask of a Value: how to make it again."""
    bring_up_to_date()
    if any(node in graph.members for reference in _graphs.get() if (graph := reference())):
        return _empty, (), _state(node, {})
    if node.is_leaf:
        return _empty, (), _state(node, user_attributes(node))
    graph = _Graph(topological_order(node))
    _graphs.set((*(reference for reference in _graphs.get() if reference()), ref(graph)))
    return _last, (graph, [(each, own) for each in graph if (own := user_attributes(each))])


def _state(node: Value, attributes: dict[str, Any]) -> tuple[Any, ...]:
    """The dictionary and the slots of a node."""
    own = {"label": node.label, **attributes} if node.label else attributes
    slots = {name: getattr(node, name) for name in Node.__slots__ if name != "__dict__"}
    return own or None, {**slots, "_y": ()} if node.is_leaf else slots  # a copy of a leaf is not stored where it is


def _empty() -> Value:
    return Value(0.0)


def _last(nodes: list[Value], attributes: Iterable[tuple[Value, dict[str, Any]]] = ()) -> Value:
    """The last node of a graph, when its nodes have their attributes again."""
    for node, own in attributes:
        node.__dict__.update(own)
    return nodes[-1]


copyreg.pickle(Value, _reduce)
copyreg.pickle(Node, lambda _: "NUMBER")  # the only Node that is no Value; there is one, and copies refer to it too
