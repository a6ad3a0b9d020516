"""Repeats: stretches of levels that come again and again, found in the graph before it becomes kernels.

A recurrent program has levels that come again and again. In

    for x in xs: h = tanh(w * h + x)

every second level is a sum and every second one a tanh. The nodes of one iteration stand beside those of the next one
by one, and each operand is one of three things, the same in all iterations:

    of an iteration     h of this iteration, or of the iteration before it
    the same      w, or a constant
    further on    x, which lies a step further in the buffer at each iteration

A Repeat is such a stretch. Whether it can be rolled is decided by looking at every operand of every iteration, never by
the shape of the program alone. Iterations at its begin or its end that do not fit are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.passes.alike import different_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Booleans, Integers

FEWEST_ITERATIONS = 8  # fewer are left as they are
_FEWEST_LEVELS = 16  # of all iterations together
_LONGEST_PERIOD = 1024  # levels of an iteration
OUTSIDE = -(1 << 62)  # the number of what is not of the iterations: no other is as low
_MOST_TIMES = 12  # layers of a network that look alike
_MANY = 64  # iterations, in which nothing is the same again by chance


@dataclass(frozen=True)
class Repeat:
    """Levels that repeat, as far as the graph alone tells.

    Attributes:
        first: the first level.
        period: how many levels an iteration has.
        nodes: those of each iteration, of shape (iterations, nodes of an iteration); below a node stand its likes.
        alike: for each node of a turn a number: the same for nodes of one level that are made in the same way.
        terms: which terms of the graph are theirs, of shape (iterations, terms of an iteration).
        applications: for each of the graph's applications, which of its rows are theirs, in the same way.
        dots: for each part of the graph that is whole, which of its dot products are theirs, in the same way.
    """

    first: int
    period: int
    nodes: Integers
    alike: Integers
    terms: Integers
    applications: tuple[Integers, ...]
    dots: tuple[Integers, ...]

    @property
    def iterations(self) -> int:
        """How many there are."""
        return len(self.nodes)

    @property
    def end(self) -> int:
        """The level after the last."""
        return self.first + self.period * self.iterations

    def part(self, begin: int, end: int) -> Repeat:
        """Some of the iterations."""
        return Repeat(
            self.first + begin * self.period,
            self.period,
            self.nodes[begin:end],
            self.alike,
            self.terms[begin:end],
            tuple(rows[begin:end] for rows in self.applications),
            tuple(rows[begin:end] for rows in self.dots),
        )


@dataclass(frozen=True)
class Operands:
    """The operands of all nodes; of a dot product that is whole only two, an element of each vector.

    Attributes:
        numbers: those of a node lie side by side: two of each term, and of a dot product; or those of a primitive.
        starts: where those of each node begin.
        counts: how many each node has.
        is_given: which nodes are given, and no constants.
    """

    numbers: Integers
    starts: Integers
    counts: Integers
    is_given: Booleans

    @staticmethod
    def of(graph: Graph, levels: Integers) -> Operands:
        """Those of a graph, given the levels of its nodes."""
        terms = graph.with_products_of(levels)
        counts = 2 * np.bincount(terms.owner, minlength=graph.size)
        starts, end = np.cumsum(counts) - counts, 2 * len(terms.owner)
        parts = [np.stack([terms.first, terms.second], axis=1).ravel()]
        for application in graph.applications:
            rows, width = application.operands.shape
            starts[application.nodes], counts[application.nodes] = end + width * np.arange(rows), width
            parts.append(application.operands.ravel())
            end += rows * width
        return Operands(np.concatenate(parts), starts, counts, ~graph.is_made() & ~graph.is_constant)

    def of_nodes(self, nodes: Integers) -> tuple[Integers, Integers, Integers]:
        """The operands of some nodes: of which of these each is, which operand it is, and the operand."""
        counts = self.counts[nodes]
        owners, slots = np.repeat(np.arange(len(nodes)), counts), counted(counts)
        return owners, slots, self.numbers[self.starts[nodes][owners] + slots]

    def operand(self, node: int, slot: int) -> int:
        """One of a node's."""
        return int(self.numbers[self.starts[node] + slot])


class Stretches(NamedTuple):
    """Levels that repeat, as far as the kinds of their nodes tell.

    Attributes:
        kinds: for each node a number that says how it is made; nodes of one number may be alike.
        order: the nodes that are made, level by level, and by their kinds.
        starts: where each level begins in this order, and where the last one ends.
        found: the first level, the period and the number of iterations of each stretch.
    """

    kinds: Integers
    order: Integers
    starts: Integers
    found: list[tuple[int, int, int]]

    @staticmethod
    def of(graph: Graph, levels: Integers) -> Stretches | None:
        """Those of a graph; None if there are none."""
        count = int(levels.max(initial=0)) + 1
        # what repeats has as many nodes each time
        if count < _FEWEST_LEVELS or next(_overlapping(np.bincount(levels)), None) is None:
            return None
        kinds = _kinds(graph, _made_by(graph)[0], np.bincount(graph.terms.owner, minlength=graph.size))
        nodes = np.flatnonzero(graph.is_made())
        order = nodes[np.lexsort((kinds[nodes], levels[nodes]))]
        starts = np.searchsorted(levels[order], np.arange(count + 1))
        return Stretches(kinds, order, starts, _periodic(_described(kinds[order], starts)))

    def of_iterations(self) -> int:
        """How many nodes are in iterations."""
        return int(sum(self.starts[first + period * count] - self.starts[first] for first, period, count in self.found))


def repeats(graph: Graph, levels: Integers, stretches: Stretches) -> list[Repeat]:
    """The iterations of stretches of levels that repeat, from the first to the last."""
    order, starts, kinds = stretches.order, stretches.starts, stretches.kinds
    made_by, row = _made_by(graph)
    part, row_of_dots = _parts_of(graph)
    counts = np.bincount(graph.terms.owner, minlength=graph.size)  # of the terms of each node, which lie side by side
    first_terms = np.cumsum(counts) - counts
    found = []
    for first, period, iterations in stretches.found:
        of_iterations = order[starts[first] : starts[first + period * iterations]].reshape(iterations, -1)
        _, alike = different_rows(np.stack([levels[of_iterations[0]], kinds[of_iterations[0]]], axis=1))
        of_iteration = counts[of_iterations[0]]
        terms = np.repeat(first_terms[of_iterations], of_iteration, axis=1) + counted(of_iteration)
        rows = [row[of_iterations[:, made_by[of_iterations[0]] == number]] for number in range(len(graph.applications))]
        dots = [row_of_dots[of_iterations[:, part[of_iterations[0]] == n]] for n in range(1, 1 + len(graph.whole))]
        found.append(Repeat(first, period, of_iterations, alike, terms, tuple(rows), tuple(dots)))
    return found


def same_operands(graph: Graph, levels: Integers, stretches: Stretches, operands: Operands) -> Stretches:
    """Those of the stretches whose iterations have the same operands, with as many levels as that takes.

    Where each layer of a network of three is a level further than the one below it, all levels look alike, but only
    every third has the same layer do the same.
    """
    found = []
    for (first, period, iterations), repeat in zip(stretches.found, repeats(graph, levels, stretches), strict=True):
        if times := _times(repeat.nodes, operands):
            found.append((first, period * times, iterations // times))
    return stretches._replace(found=found)


def better(
    graph: Graph, known: tuple[Integers, Stretches], moved: Integers, operands: Operands
) -> tuple[Integers, Stretches]:
    """Levels and their stretches: those that are known, or others of which more repeats."""
    found = Stretches.of(graph, moved)
    if found and (found := same_operands(graph, moved, found, operands)).of_iterations() > known[1].of_iterations():
        return moved, found
    return known


def numbered(nodes: Integers, size: int) -> Integers:
    """A number for each node of a loop, counted on from iteration to iteration; OUTSIDE for others, and for ONE at -1.

    Args:
        nodes: those of each iteration, of shape (iterations, nodes of an iteration).
        size: how many nodes there are.
    """
    numbers = np.full(size + 1, OUTSIDE)
    numbers[nodes] = np.arange(nodes.size).reshape(nodes.shape)
    return numbers


def _times(nodes: Integers, operands: Operands) -> int:
    """How many iterations it takes to have most of the operands again, and nodes of as many iterations before; or 0."""
    iterations, own = nodes.shape
    # The same for 20 and for 60 iterations, as these may stand for more of them
    most = min(_MOST_TIMES, max(1 << iterations.bit_length() >> 5, 1 + (iterations >= 2 * FEWEST_ITERATIONS)))
    numbers = numbered(nodes, len(operands.counts))
    begin = iterations // 2
    read = np.array([operands.of_nodes(nodes[row])[2] for row in range(begin, begin + 2 * most)])
    inside = numbers[read]
    away = np.where(inside < 0, 0, own * np.arange(begin, begin + 2 * most)[:, None] - inside)
    found = [times for times in range(1, most + 1) if (away[:most] == away[times : times + most]).all()]
    if not found:
        return 0
    # Of two coefficients that take turns, each is the same one again after two iterations
    outside = np.where(inside < 0, read, -2 - np.arange(len(read))[:, None])
    stays = (outside[:most] == outside[found[0] : found[0] + most]).all(axis=0)
    for times in found[1:]:
        slots = np.flatnonzero((outside[:most] == outside[times : times + most]).all(axis=0) & ~stays)
        if len(slots):
            middle = nodes[most:-most][:_MANY]  # the ends may differ
            every = np.array([operands.of_nodes(row)[2][slots] for row in middle])
            if (every[times:] == every[:-times]).all(axis=0).any():
                return times
    return found[0]


def _made_by(graph: Graph) -> tuple[Integers, Integers]:
    """The number of the application that makes each node, and its row there; else how many applications there are."""
    made_by, row = np.full(graph.size, len(graph.applications)), np.zeros(graph.size, dtype=np.int64)
    for number, application in enumerate(graph.applications):
        made_by[application.nodes] = number
        row[application.nodes] = np.arange(len(application.nodes))
    return made_by, row


def _parts_of(graph: Graph) -> tuple[Integers, Integers]:
    """For each node the number of the part with its dot product, from 1 on, and the row there; 0 if it has none."""
    part, row = np.zeros(graph.size, dtype=np.int64), np.zeros(graph.size, dtype=np.int64)
    for number, dots in enumerate(graph.whole, 1):
        part[dots.owner], row[dots.owner] = number, np.arange(len(dots.owner))
    return part, row


def _kinds(graph: Graph, made_by: Integers, counts: Integers) -> Integers:
    """For each node a number that says how it is made, and from how many terms; nodes of one number may be alike."""
    kinds = made_by.copy()
    for numbers in (graph.kind, counts, graph.from_zero, graph.unordered, _parts_of(graph)[0]):
        if numbers.any():
            kinds = kinds * (int(numbers.max()) + 1) + numbers
    takes = [application.nodes for application in graph.applications if application.primitive is TAKE]
    end = int(kinds.max(initial=0)) + 1
    for nodes in takes:  # they are not rolled: each is a kind of its own
        kinds[nodes] = end + np.arange(nodes.size)
        end += nodes.size
    return kinds


def _described(kinds: Integers, starts: Integers) -> Integers:
    """A number for each level, given the kinds of all nodes and where levels start: the same for the same kinds."""
    known: dict[bytes, int] = {}
    parts = [kinds[start:end].tobytes() for start, end in pairwise(starts.tolist())]
    return np.array([known.setdefault(part, len(known)) for part in parts])


def _periodic(described: Integers) -> list[tuple[int, int, int]]:
    """The first level, the period and the number of iterations of stretches that do not overlap, in order.

    Where several overlap, the longest one is taken, and of equally long ones that with the shortest iterations.
    """
    taken, chosen = bytearray(len(described)), []
    longest_first = sorted(_overlapping(described), key=lambda found: (-found[1] * found[2], found[1]))
    for first, period, iterations in longest_first:
        end = first + period * iterations
        if taken.find(1, first, end) < 0:
            taken[first:end] = b"\1" * (end - first)
            chosen.append((first, period, iterations))
    return sorted(chosen)


def _overlapping(described: Integers) -> Iterator[tuple[int, int, int]]:
    """The same of all stretches, which may overlap, by their periods."""
    for period in range(1, min(_LONGEST_PERIOD, len(described) // FEWEST_ITERATIONS) + 1):
        fewest = period * (FEWEST_ITERATIONS - 1)  # levels that are the same an iteration later, in a row
        stride = max(1, fewest // 4)  # at such a distance, a stretch has at least three of them
        if b"\1\1\1" not in (described[:-period:stride] == described[period::stride]).tobytes():
            continue
        same = (described[:-period] == described[period:]).tobytes() + b"\0"
        fewest = max(fewest, _FEWEST_LEVELS - period)
        end, row = 0, b"\1" * fewest
        while (first := same.find(row, end)) >= 0:
            end = same.index(b"\0", first)
            yield first, period, (end - first) // period + 1


def counted(counts: Integers) -> Integers:
    """0, 1, 2 ... up to each of the counts."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
