"""Repeats: stretches of levels that come again and again, found in the graph before it becomes kernels.

A recurrent program has levels that come again and again. In

    for x in xs: h = tanh(w * h + x)

every second level is a sum and every second one a tanh. The nodes of one turn stand beside those of the next one
by one, and each operand is one of three things, the same in all turns:

    of a turn     h of this turn, or of the turn before it
    the same      w, or a constant
    further on    x, which lies a step further in the buffer at each turn

A Repeat is such a stretch. Whether it can be rolled is decided by looking at every operand of every turn, never by
the shape of the program alone. Turns at its begin or its end that do not fit are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.trace import TAKE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.graph import Graph
    from micrograd.compiler.numbers import Integers

FEWEST_TURNS = 8  # fewer are left as they are
_LONGEST_PERIOD = 1024  # levels of a turn
_OUTSIDE = -1


@dataclass(frozen=True)
class Repeat:
    """Levels that repeat, as far as the graph alone tells.

    Attributes:
        first: the first level.
        period: how many levels a turn has.
        nodes: those of each turn, of shape (turns, nodes of a turn); below a node stand its likes.
        alike: for each node of a turn a number: the same for nodes of one level that are made in the same way.
        terms: which terms of the graph are theirs, of shape (turns, terms of a turn).
        applications: for each of the graph's applications, which of its rows are theirs, in the same way.
    """

    first: int
    period: int
    nodes: Integers
    alike: Integers
    terms: Integers
    applications: tuple[Integers, ...]

    @property
    def turns(self) -> int:
        """How many there are."""
        return len(self.nodes)

    @property
    def end(self) -> int:
        """The level after the last."""
        return self.first + self.period * self.turns

    def part(self, begin: int, end: int) -> Repeat:
        """Some of the turns."""
        return Repeat(
            self.first + begin * self.period,
            self.period,
            self.nodes[begin:end],
            self.alike,
            self.terms[begin:end],
            tuple(rows[begin:end] for rows in self.applications),
        )


def repeats(graph: Graph, levels: Integers) -> list[Repeat]:
    """The stretches of levels that repeat, from the first to the last."""
    made = np.zeros(graph.size, dtype=bool)
    made[graph.terms.owner] = True
    for application in graph.applications:
        made[application.nodes] = True
    nodes = np.flatnonzero(made)
    count = int(levels.max(initial=0)) + 1
    kinds = _kinds(graph)
    order = nodes[np.lexsort((nodes, kinds[nodes], levels[nodes]))]
    starts = np.searchsorted(levels[order], np.arange(count + 1))
    described = _described(kinds[order], starts)
    found = []
    for first, period, turns in _periodic(described, 1, count):
        of_turns = order[starts[first] : starts[first + period * turns]].reshape(turns, -1)
        _, alike = np.unique(np.stack([levels, kinds])[:, of_turns[0]], axis=1, return_inverse=True)
        found.append(_repeat(graph, first, period, of_turns, alike.ravel()))
    return found


def _kinds(graph: Graph) -> Integers:
    """For each node a number that says how it is made; nodes of one number may be alike."""
    size, count = graph.size, len(graph.applications)
    made_by = np.full(size, count)
    for number, application in enumerate(graph.applications):
        made_by[application.nodes] = number
        if application.primitive is TAKE:  # they are not rolled: each is a kind of its own
            made_by[application.nodes] = count + 1 + np.arange(len(application.nodes))
    terms = np.bincount(graph.terms.owner, minlength=size)
    kinds = made_by
    for numbers in (graph.kind, terms, graph.from_zero, graph.unordered):
        kinds = kinds * (int(numbers.max(initial=0)) + 1) + numbers
    return np.asarray(np.unique(kinds, return_inverse=True)[1])


def _described(kinds: Integers, starts: Integers) -> Integers:
    """A number for each level, given the kinds of all nodes and where levels start: the same for the same kinds."""
    known: dict[bytes, int] = {}
    parts = [kinds[start:end].tobytes() for start, end in pairwise(starts.tolist())]
    return np.array([known.setdefault(part, len(known)) for part in parts])


def _periodic(described: Integers, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The first level, the period and the number of turns of each stretch, the longest ones first looked for."""
    best = (0, 0, 0)
    for period in range(1, min(_LONGEST_PERIOD, (end - begin) // FEWEST_TURNS) + 1):
        same = described[begin : end - period] == described[begin + period : end]
        changes = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
        starts, stops = changes[::2], changes[1::2]
        if len(starts):
            longest = int(np.argmax(stops - starts))
            turns = int(stops[longest] - starts[longest]) // period + 1
            if turns >= FEWEST_TURNS and turns * period > best[1] * best[2]:
                best = begin + int(starts[longest]), period, turns
    first, period, turns = best
    if turns:
        yield from _periodic(described, begin, first)
        yield best
        yield from _periodic(described, first + period * turns, end)


def _repeat(graph: Graph, first: int, period: int, nodes: Integers, alike: Integers) -> Repeat:
    starts = np.searchsorted(graph.terms.owner, nodes)
    counts = np.searchsorted(graph.terms.owner, nodes[0], side="right") - starts[0]
    place = np.full(graph.size, _OUTSIDE)
    applications = []
    for application in graph.applications:
        place[application.nodes] = np.arange(len(application.nodes))
        rows = place[nodes]
        applications.append(rows[:, rows[0] != _OUTSIDE])
        place[application.nodes] = _OUTSIDE
    terms = np.repeat(starts, counts, axis=1) + _counted(counts)
    return Repeat(first, period, nodes, alike, terms, tuple(applications))


def _counted(counts: Integers) -> Integers:
    """0, 1, 2 ... up to each of the counts."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
