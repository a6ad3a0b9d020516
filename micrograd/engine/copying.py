"""Pickling and deep-copying graphs of any depth.

Python copies what an object refers to by recursion, and so gives up on a chain of a few hundred nodes.
Here the first Value that is met hands over its whole graph as a list, operands first:

    c = a * b + a    ->    [a, b, a * b, c]    ->    the last of the copied list is the copy of c

By the time a node of the list is copied, its operands have been copied, and pickle and copy remember
them: nothing recurses, and what several Values share their copies share too.
"""

from __future__ import annotations

import copyreg
from contextvars import ContextVar
from typing import Any
from weakref import ref

from micrograd.engine.node import Node
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value


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
    if node.is_leaf or any(node in graph.members for reference in _graphs.get() if (graph := reference())):
        return _empty, (), (None, {name: getattr(node, name) for name in Node.__slots__ if name != "_call"})
    graph = _Graph(topological_order(node))
    _graphs.set((*(reference for reference in _graphs.get() if reference()), ref(graph)))
    return _last, (graph,)


def _empty() -> Value:
    return Value(0.0)


def _last(nodes: list[Value]) -> Value:
    return nodes[-1]


copyreg.pickle(Value, _reduce)
copyreg.pickle(Node, lambda _: "NUMBER")  # the only Node that is no Value; there is one, and copies refer to it too
