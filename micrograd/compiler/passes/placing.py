"""Placing: where each number of a program lies in the buffer, and which numbers are a group.

The nodes that are alike become a group, and lie side by side. A group gets its positions before what reads it is
rolled, so that an operand is known by its group, and by the positions of its numbers:

    group 3    y0 y1 y2    at 12 13 14

Constants are put into the buffer as they are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.index_maps import Positions, accesses
from micrograd.compiler.ir.layout import Layout
from micrograd.compiler.ir.program import Access, Reduction, Segment
from micrograd.compiler.passes.alike import different_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.program import Kernel, Loop, Singles
    from micrograd.compiler.numbers import Floats, Integers

# The groups of what is in no group: of ONE, the factor that is none, and of constants. They come after all others.
NOTHING = (1 << 31) - 1  # nobody has two billion groups
CONSTANTS = NOTHING - 1


class Placing:
    """Where each node of a graph lies, in which group it is, and the kernels so far.

    Of the body of a loop, what is said of a node is so at the first iteration, and ``iteration_step`` is how far it
    then moves at each iteration. The nodes of a group move equally far.
    """

    def __init__(self, graph: Graph, layout: Layout, groups: Iterator[int]) -> None:
        self.graph, self.layout, self.groups = graph, layout, groups
        self.position = np.zeros(graph.size, dtype=np.int64)
        self.reserved = np.zeros(graph.size, dtype=np.int64)  # not 0 for what has a position before it is rolled
        self.group = np.append(np.full(graph.size, CONSTANTS), NOTHING)  # the last entry is that of ONE
        self.iteration_step = np.zeros(graph.size, dtype=np.int64)
        self.placed: list[Integers] = []  # groups, in the order in which they got their positions
        self.kernels: list[Kernel | Loop | Singles] = []

    def reserve(self, nodes: Integers) -> slice:
        """Give nodes a position each, side by side, before they are rolled."""
        start = self.layout.stretch(len(nodes))
        self.position[nodes] = np.arange(start, start + len(nodes))
        self.reserved[nodes] = 1
        return slice(start, start + len(nodes))

    def lay_out(self, nodes: Integers) -> None:
        """Give nodes a position each, side by side, unless one is reserved for them; and make them a group."""
        if not self.reserved[nodes].any():
            self.placed.append(nodes)
            start = self.layout.stretch_in_lines(len(nodes))
            self.position[nodes] = np.arange(start, start + len(nodes))
        self.group[nodes] = next(self.groups)

    def laid_out(self, count: int) -> tuple[Integers, int]:
        """Where each of the first nodes lies among those of an iteration, and how many numbers an iteration has."""
        layout, offsets = Layout(), np.zeros(count, dtype=np.int64)
        for nodes in self.placed:
            offsets[nodes] = layout.stretch_in_lines(len(nodes)) + np.arange(len(nodes))
        return offsets, layout.whole_lines()

    def new_groups(self, *described: Integers) -> Integers:
        """A group for each of some nodes; it is the same one for those that are described by the same numbers."""
        _, which = different_rows(np.stack(described, axis=1))
        groups = np.array([next(self.groups) for _ in range(int(which.max(initial=-1)) + 1)], dtype=np.int64)
        return groups[which]

    def copy(self, nodes: Integers, positions: Integers) -> None:
        """Copy the numbers of nodes to some positions."""
        if len(nodes):
            operand = Positions.of(self.positions(nodes[:, None]))
            rows, columns, target, (access,) = accesses(Positions.of(positions[:, None]), [operand])
            self.kernels.append(Reduction(rows, columns, target, (Segment(1.0, 1, access, None),)))

    def outputs(self, nodes: Integers) -> Integers:
        """Where nodes are, constants among them too."""
        positions, at = self.position[nodes], np.flatnonzero(self.graph.is_constant[nodes])
        positions[at] = self.positions(nodes[at][:, None])[:, 0]
        return positions

    def target(self, nodes: Integers) -> Positions:
        """Where the nodes of a group lie."""
        return Positions.of(self.position[nodes][:, None], int(self.iteration_step[nodes[0]]))

    def target_of_one(self, node: int) -> Access:
        """The index map of a node."""
        return Access(int(self.position[node]), iteration_step=int(self.iteration_step[node]))

    def operand(self, nodes: Integers, across: bool = False) -> Positions:
        """Where a matrix of nodes of one group lies; see _positions."""
        return Positions.of(self.positions(nodes, across), int(self.iteration_step[nodes[0, 0]]))

    def operand_of_one(self, nodes: Integers) -> tuple[list[int], int]:
        """Where the terms of a single result lie, which are nodes of one group; and how far they move an iteration."""
        if self.group[nodes[0]] != CONSTANTS:
            return self.position[nodes].tolist(), int(self.iteration_step[nodes[0]])
        numbers = self.graph.constants[nodes]
        if len({*numbers.view(np.int64).tolist()}) > 1:
            return self._constants(numbers).tolist(), 0
        return [self.layout.constant(numbers[:1])] * len(nodes), 0

    def positions(self, nodes: Integers, across: bool = False) -> Integers:
        """Where a matrix of nodes lies.

        Constants are put into the buffer as they are needed: row after row, so that the terms of a sum lie side by
        side; or across, so that those of all sums do, term after term.
        """
        is_constant = self.graph.is_constant[nodes]
        if not is_constant.any():
            return self.position[nodes]
        if not is_constant.all():
            return np.where(is_constant, self._constants(self.graph.constants[nodes]), self.position[nodes])
        bits = self.graph.constants[nodes].view(np.int64)  # so that 0 is not -0, and NaN is NaN
        if (bits == bits[:, :1]).all():
            bits = bits[:, :1]
        # Rows that are the same, as a point's for all neurons of a layer, are one row in the buffer
        first, which = different_rows(bits)
        numbers = bits.view(np.float64) if len(first) == len(bits) else bits[np.sort(first)].view(np.float64)
        rows = self._constants(numbers.T).T if across else self._constants(numbers)
        if len(first) < len(bits):
            rows = rows[np.argsort(np.argsort(first))[which]]
        return np.asarray(np.broadcast_to(rows, nodes.shape))

    def _constants(self, numbers: Floats) -> Integers:
        return self.layout.constant(numbers) + np.arange(numbers.size).reshape(numbers.shape)
