"""Packs: one program for several examples of a batch, in the place of one that runs for each.

The graph of a loss reads the numbers of one example. What depends on them is there once for each example of a pack;
what is computed of parameters only is there once for all:

    loss = (w * x - y) ** 2        becomes        loss 0 = (w * x0 - y0) ** 2,  loss 1 = (w * x1 - y1) ** 2

So a matrix times a vector becomes a product of two matrices, and the gradients of a weight are added up where they are
computed. Each loss has a seed of its own, the gradient that it is given: it is 1, or 0 where a batch has no example
left for the pack.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.graph import ONE, Applications, Terms
from micrograd.compiler.ir.program import Singles
from micrograd.compiler.ir.vectors import Dots
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.reroll import reroll
from micrograd.compiler.passes.sums import in_pieces

if TYPE_CHECKING:
    from typing import Any

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Booleans, Integers

_COPIED = 750_000  # nodes, terms and elements of all examples together; with more, it takes long until a pack is ready
_KERNELS = 128  # an irregular program has more
_ALIKE = 4  # and each of its kernels computes fewer numbers, in the mean


class Packing(NamedTuple):
    """Which packs a backend is quick with.

    Attributes:
        largest: so many examples may be in a pack.
        irregular: whether examples of irregular programs are packed, too.
    """

    largest: int = 1
    irregular: bool = False


def size_of_pack(examples: int, largest: int, own: int = 0) -> int:
    """How many examples shall be in a pack, so that packs are large and alike.

    Args:
        examples: how many there are at a time.
        largest: how many may be in a pack.
        own: how many nodes, terms and elements of tables each has for itself.

    Example:
        >>> [size_of_pack(examples, 8) for examples in (1, 5, 8, 9, 32, 100)], size_of_pack(100, 8, own=200_000)
        ([1, 5, 8, 5, 8, 8], 3)
    """
    largest = min(largest, _COPIED // max(own, 1))
    return -(-examples // -(-examples // largest)) if examples and largest else 1


def packed(graph: Graph, examples: int, packing: Packing) -> Graph:
    """The graph for several examples, if there are several at a time.

    Args:
        graph: in normal form; its output is the loss of one example.
        examples: how many there are at a time.
        packing: how many may be in a pack.

    Returns:
        The graph with an output for each example of a pack. Their numbers come one after the other in the last group
        of its inputs.
    """
    if size_of_pack(examples, packing.largest) == 1:
        return graph
    own = ~graph.users().out_of_reach(graph.inputs[-1])
    copied = int(own.sum() + own[graph.terms.owner].sum()) + _taken_from(graph, own)
    size = size_of_pack(examples, packing.largest, copied)
    if size == 1 or (not packing.irregular and _is_irregular(graph, own)):
        return graph
    return _Packed(graph, own, size).graph()


def _taken_from(graph: Graph, own: Booleans) -> int:
    """How many elements the tables have together that an example takes something from."""
    tables = [part.tables[own[part.nodes]] for part in graph.applications if part.tables is not None]
    return sum(len(graph.tables[table]) for table in chain.from_iterable(tables))


def _is_irregular(graph: Graph, own: Booleans) -> bool:
    """Whether packs take longer: many kernels of an example compute few numbers each, or hardly read what is shared."""
    nodes = int(own.sum())
    if nodes <= _KERNELS:
        return False
    kernels = reroll(in_pieces(graph), 0).kernels
    count = sum(len(kernel.targets) if isinstance(kernel, Singles) else 1 for kernel in kernels)
    terms = graph.terms.kept(own[graph.terms.owner] & (graph.terms.second != ONE))
    of_own = own[terms.first] & own[terms.second]
    return count > _KERNELS and (nodes < _ALIKE * count or 2 * int(of_own.sum()) > len(of_own))


class _Packed:
    """The graph of one example with copies of its own nodes, which depend on it: a copy for each example but the first.

    Size is the number of examples.
    """

    def __init__(self, graph: Graph, own: Booleans, size: int) -> None:
        self._graph, self._own, self._size = graph, own, size
        # For each example, the node in the place of each node of the first; and of ONE, which is the last there.
        self._nodes = [np.append(nodes, ONE) for nodes in _numbers(own, size)]

    def graph(self) -> Graph:
        graph = self._graph
        *shared, given = graph.inputs
        marks = ("kind", "constants", "is_constant", "differentiable", "unordered", "from_zero")
        return replace(
            graph,
            **{name: self._of_all(getattr(graph, name)) for name in marks},
            terms=self._terms(),
            applications=tuple(map(self._applied, graph.applications)),
            tables=tuple(new[table] for table in graph.tables for new in self._nodes),
            inputs=(*shared, self._each(given)),
            outputs=self._each(graph.outputs),
            checked=distinct(self._each(graph.checked)),
            whole=tuple(map(self._dots, graph.whole)),
        )

    def _of_all(self, of_nodes: Any) -> Any:
        """What is known of each node, of the copies too."""
        return np.concatenate([of_nodes, np.tile(of_nodes[self._own], self._size - 1)])

    def _each(self, nodes: Integers) -> Integers:
        """These nodes of each example, one example after the other."""
        return np.concatenate([new[nodes] for new in self._nodes])

    def _terms(self) -> Terms:
        terms = self._graph.terms
        own = terms.kept(self._own[terms.owner])
        copies = [Terms(new[own.owner], own.coefficient, new[own.first], new[own.second]) for new in self._nodes[1:]]
        return Terms.joined([terms, *copies])  # sorted by their owners, as each copy comes after the one before

    def _applied(self, application: Applications) -> Applications:
        own = application.chosen(self._own[application.nodes])
        tables = None
        if application.tables is not None and own.tables is not None:
            first, copies = self._size * application.tables, self._size * own.tables
            tables = np.concatenate([first, *(copies + example for example in range(1, self._size))])
        return Applications(
            application.primitive,
            np.concatenate([application.nodes, *(new[own.nodes] for new in self._nodes[1:])]),
            np.concatenate([application.operands, *(new[own.operands] for new in self._nodes[1:])]),
            tables,
        )

    def _dots(self, dots: Dots) -> Dots:
        is_own = np.any(self._own[dots.elements], axis=1)
        own, vectors = dots.chosen(np.flatnonzero(self._own[dots.owner])), _numbers(is_own, self._size)
        copies = list(zip(self._nodes, vectors, strict=True))[1:]
        return Dots(
            np.concatenate([dots.elements, *(new[dots.elements[is_own]] for new, _ in copies)]),
            np.concatenate([dots.owner, *(new[own.owner] for new, _ in copies)]),
            np.concatenate([dots.first, *(vector[own.first] for _, vector in copies)]),
            np.concatenate([dots.second, *(vector[own.second] for _, vector in copies)]),
        )


def _numbers(own: Booleans, size: int) -> list[Integers]:
    """For each example the numbers of things, some of which are its own: the copies come after the first ones."""
    positions, found = np.flatnonzero(own), []
    for example in range(size):
        numbers = np.arange(len(own))
        if example:
            numbers[positions] = len(own) + (example - 1) * len(positions) + np.arange(len(positions))
        found.append(numbers)
    return found
