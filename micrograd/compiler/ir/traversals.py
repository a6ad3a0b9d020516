"""Traversals through a graph, from one frontier to the next.

An edge goes from a source to a target. A traversal from {a} along the edges a -> b, a -> c and b -> c has two
frontiers: {a}, and then {b, c}. A step takes all nodes of a frontier at a time, with a few operations on arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Booleans, Counts, Integers


_AN_EDGE = np.int32(1)  # of one type with the counts that it is added to, which is ten times as fast
# Nodes of a frontier; an operation on arrays takes as long as going through so many. Without this, 1,000 steps of
# Runge-Kutta take 0.41 s in place of 0.28 at the first call.
_FEW = 8


class Rows(NamedTuple):
    """Edges that are sorted by their sources already, so that they can stay where they are.

    Attributes:
        sources: where they begin, sorted.
        targets: columns of where they end; -1 is nowhere.
    """

    sources: Integers
    targets: Sequence[Integers]


class Edges:
    """Edges, sorted by their sources.

    Args:
        size: how many nodes there are. Those beyond are stand-ins: traversals lead through them, and say nothing of
            them.
        sources: where edges begin, in parts; all of them are never joined, as of millions of edges that takes long.
        targets: where they end, in the same parts.
        rows: further edges.
    """

    def __init__(
        self, size: int, sources: Sequence[Integers], targets: Sequence[Integers], rows: Rows | None = None
    ) -> None:
        self.size = size
        self.count = max([size, *(int(part.max(initial=0)) + 1 for part in (*sources, *targets))])
        counts = np.zeros(self.count, dtype=np.int32)
        self.targets = np.empty(sum(map(len, sources)), dtype=np.int64)
        end = 0
        for source, target in zip(sources, targets, strict=True):
            np.add.at(counts, source, _AN_EDGE)
            keys = self.targets[end : end + len(source)]
            np.left_shift(source, 32, out=keys, dtype=np.int64)  # nobody has two billion nodes
            keys |= target
            end += len(source)
        self.targets.sort()  # twice as fast as finding the order of the sources
        self.targets &= 0xFFFFFFFF
        self._stretches = [_Stretches(counts, [self.targets])]
        if rows is not None:
            of_rows = np.bincount(rows.sources, minlength=self.count).astype(np.int32)
            self._stretches.append(_Stretches(of_rows, rows.targets))
        self._position = np.zeros(self.count, dtype=np.int64)
        self._forgotten: list[Integers] = []  # the targets of edges that are not taken

    def forget(self, sources: Booleans) -> None:
        """Forget the edges that leave some of the nodes."""
        self._forgotten.append(self.leaving(np.flatnonzero(sources)))
        for stretches in self._stretches:
            stretches.counts[: self.size][sources] = 0

    def leaving(self, nodes: Integers) -> Integers:
        """The targets of all edges that begin in these nodes; those of rows may be nowhere."""
        found = [targets for stretches in self._stretches for targets in stretches.taken(nodes)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _distinct(self, nodes: Integers) -> Integers:
        """The nodes without repetitions, in any order."""
        positions = np.arange(len(nodes))
        self._position[nodes] = positions
        return nodes[self._position[nodes] == positions]

    def out_of_reach(self, nodes: Integers) -> Booleans:
        """Which nodes cannot be reached from these, given that no traversal comes back to where it began.

        The time is that of what is found, and not of what is reached, which mostly is far more: the traversal begins
        where no edge leads to, and goes on to what is reached from nowhere else.
        """
        missing = self._arriving()
        missing[nodes] += 1  # of these, there is always one that is not taken away
        marks = missing[:-1] == 0
        frontier = self._leading_on(marks)
        while len(frontier):
            frontier = self._without(frontier, missing)
            marks[frontier] = True
        return marks[: self.size]

    def no_marks(self) -> Booleans:
        """For each node and stand-in, that it has no mark; and for what is nowhere, that there is nothing to mark."""
        return np.arange(self.count + 1) == self.count

    def mark(self, nodes: Integers, marks: Booleans) -> None:
        """Mark nodes, and all that can be reached from them. What is behind a mark has one, too."""
        frontier = nodes[~marks[nodes]]
        while len(frontier):
            marks[frontier] = True
            found = self.leaving(frontier)
            frontier = self._distinct(found[~marks[found]])

    def levels(self) -> Integers:
        """For each node, the length of the longest path to it, on which stand-ins do not count."""
        levels = np.zeros(self.size, dtype=np.int64)
        missing = self._arriving()
        frontier = self._leading_on(missing[:-1] == 0)
        level = 0
        while len(frontier):
            found = frontier
            while self.count > self.size and len(found):
                found = self._without(found[found >= self.size], missing)
                frontier = np.concatenate([frontier[frontier < self.size], found])
            levels[frontier] = level
            level += 1
            frontier = self._without(frontier, missing)
        return levels

    def _leading_on(self, marks: Booleans) -> Integers:
        """The marked nodes that edges begin in; most nodes may have none, as constants and what is left out do."""
        leading = np.zeros(self.count, dtype=bool)
        for stretches in self._stretches:
            leading |= stretches.counts > 0
        return np.flatnonzero(marks & leading)

    def _arriving(self) -> Counts:
        """How many edges end in each node; the last entry, of those that end nowhere, is never 0."""
        arriving = np.zeros(self.count + 1, dtype=np.int32)
        for stretches in self._stretches:
            for targets in stretches.columns:
                np.add.at(arriving, targets, _AN_EDGE)
        for targets in self._forgotten:
            np.subtract.at(arriving, targets, _AN_EDGE)
        arriving[-1] += 1
        return arriving

    def _without(self, nodes: Integers, missing: Counts) -> Integers:
        """The nodes that nothing is missing of any more once these are there."""
        if len(nodes) <= _FEW:
            return self._without_few(nodes, missing)
        found = self.leaving(nodes)
        np.subtract.at(missing, found, _AN_EDGE)
        return self._distinct(found[np.flatnonzero(missing[found] == 0)])

    def _without_few(self, nodes: Integers, missing: Counts) -> Integers:
        """The same for a few nodes, as on each level of a long chain: operations on arrays would take longer."""
        left, found = memoryview(missing.data), []
        for node in nodes.tolist():
            for stretches in self._stretches:
                begin = stretches.starts[node]
                for position in range(begin, begin + stretches.counts[node]):
                    for column in stretches.columns:
                        target = column[position]
                        left[target] -= 1
                        if not left[target]:
                            found.append(target)
        return np.array(found, dtype=np.int64)


class _Stretches:
    """Where edges lie that are sorted by their sources.

    Args:
        counts: how many leave each node.
        columns: their targets.
    """

    def __init__(self, counts: Counts, columns: Sequence[Integers]) -> None:
        self.counts, self.columns = counts, columns
        self.starts = np.cumsum(counts, dtype=np.int32)
        self.starts -= counts

    def taken(self, nodes: Integers) -> list[Integers]:
        """The targets of those that leave some nodes, column by column."""
        counts = self.counts[nodes]
        ends = counts.cumsum()  # methods, as a deep graph has many small frontiers
        if not len(ends) or not ends[-1]:
            return [column[:0] for column in self.columns]
        positions = (self.starts[nodes] - ends + counts).repeat(counts)
        positions += np.arange(len(positions))
        return [column[positions] for column in self.columns]
