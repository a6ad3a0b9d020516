"""Late: what nobody waits for is computed in the end, where it stands in the way of a loop.

The level of a node is the first one on which it can be computed. So in the reverse program of

    for letter in text: h = tanh(w * h + rows[letter])

the gradient of a row stands on the level after the last time that its letter was read, and no iteration from there on
is like those before. Only a gradient is made of it, so it may as well be computed on the last levels. A node and what
is made of it are moved there if the iteration is like the others without them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.repeats import Stretches

if TYPE_CHECKING:
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Integers


def with_late(graph: Graph, levels: Integers) -> tuple[Integers, Stretches | None]:
    """The levels of all nodes, where some that interrupt a repeat are late, and the stretches that repeat then.

    Args:
        graph: in normal form.
        levels: of its nodes; 0 for what is given.
    """
    stretches = Stretches.of(graph, levels)
    if stretches is None:
        return levels, None
    late = _Late(graph, levels, stretches)
    for first, period, iterations in stretches.found:
        late.look_after(first + period * iterations, period)
    if not late.marks.any():
        return levels, stretches
    moved = np.where(late.marks, late.last, levels)
    found = Stretches.of(graph, moved)
    return (moved, found) if _repeated(found) > _repeated(stretches) else (levels, stretches)


def _repeated(stretches: Stretches | None) -> int:
    """How many levels are in iterations."""
    return 0 if stretches is None else sum(period * iterations for _, period, iterations in stretches.found)


class _Late:
    """Looks for nodes that interrupt repeats.

    Attributes:
        marks: which nodes are to be late.
    """

    def __init__(self, graph: Graph, levels: Integers, stretches: Stretches) -> None:
        self._graph, self._levels, self._stretches = graph, levels, stretches
        self.marks = np.zeros(graph.size, dtype=bool)

    @cached_property
    def _edges(self) -> tuple[list[Integers], list[Integers]]:
        return self._graph.edges(between=self._graph.is_made())

    @cached_property
    def last(self) -> Integers:
        """The last level on which each node may stand. Few programs need it, and it takes as long as the levels."""
        users, used = self._edges
        last: Integers = int(self._levels.max()) - Edges(self._graph.size, users, used).levels()
        return last

    @cached_property
    def _uses(self) -> Edges:
        users, used = self._edges
        return Edges(self._graph.size, used, users)

    def look_after(self, level: int, period: int) -> None:
        """Look at the iterations that come after a stretch, as long as they are like it but for what may be late."""
        end = len(self._stretches.starts) - 1
        while level + period <= end:
            before = self.marks.copy()
            is_alike = all(self._is_alike(further, period) for further in range(level, level + period))
            level += period
            if not is_alike or (self.marks.any() and (self.marks & (self.last < level)).any()):
                self.marks = before
                return

    def _is_alike(self, level: int, period: int) -> bool:
        """Whether a level is like that an iteration before; what it has besides is marked."""
        here, before = ((nodes := self._stretches.on(each))[~self.marks[nodes]] for each in (level, level - period))
        kinds, counts = np.unique(self._stretches.kinds[here], return_counts=True)
        expected = np.searchsorted(np.sort(self._stretches.kinds[before]), np.stack([kinds, kinds + 1]))
        more = counts - (expected[1] - expected[0])
        if more.sum() != len(here) - len(before) or (more < 0).any():
            return False
        for kind, count in zip(kinds[more > 0].tolist(), more[more > 0].tolist(), strict=True):
            alike = here[self._stretches.kinds[here] == kind]
            self._mark(alike[np.argsort(-self.last[alike], kind="stable")[:count]])
        return True

    def _mark(self, nodes: Integers) -> None:
        """Mark nodes, and what is made of them."""
        while len(nodes):
            self.marks[nodes] = True
            found = distinct(self._uses.leaving(nodes))
            nodes = found[~self.marks[found]]
