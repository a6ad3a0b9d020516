"""Alone: nodes that are like few others, found all at once.

An irregular program has hundreds of thousands of nodes that no other is like. To look for their likes level by level
takes longer than all else. So each node gets a number that is made of the numbers of what it is computed from, and this
again and again. In

    a = x + y        b = x + c        c = x - y        d = c + y        for x and y from one group

a and c are told apart at first, as a difference is no sum, and then b and d from them and from each other, as they are
of c. A node that shares its number with few others stays alone. One round is a few operations on arrays of all nodes
that still share theirs with many. In a table whose edge is of another kind, a round tells apart only what is beside
that, and the next one what is beside these; so what is left there gets its numbers level by level. Nodes that are alike
always have the same number, so no large group loses a node.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.ir.graph import MAXIMUM, ONE
from micrograd.compiler.ir.program import FROM_ZERO, LARGEST, SUM
from micrograd.engine import further_primitives, primitives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.graph import Applications, Graph
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.passes.sums import Owners
    from micrograd.engine.primitive import Primitive

_FEW = 4  # nodes that share a number, at most
_TERMS = 16  # of all of them, at most
_OPERANDS = 3  # of a primitive, at most
_WORTH = 8  # one in so many has to be found in a round, or there have to be twice as many numbers
_ODD = 0x9E3779B97F4A7C15  # spreads what it is multiplied with over 64 bits


class Made(NamedTuple):
    """Nodes, and what they are made of.

    Attributes:
        nodes: which they are.
        functions: as those of Singles.
        counts: how many terms, or operands, each has. These lie side by side.
        first: the first factors of terms, or operands.
        second: the second factors; ONE of operands.
        coefficients: of terms; of operands, which one it is.
    """

    nodes: Integers
    functions: Any
    counts: Integers
    first: Integers
    second: Integers
    coefficients: Any

    @property
    def starts(self) -> Integers:
        """Where the terms of each begin."""
        return np.cumsum(self.counts) - self.counts

    def part(self, rows: slice, terms: slice) -> Made:
        """Those that stand beside each other, with their terms."""
        return Made(*(array[rows] for array in self[:3]), *(array[terms] for array in self[3:]))

    def chosen(self, rows: Integers) -> Made:
        """Some of them, in this order."""
        counts = self.counts[rows]
        shifts = self.starts[rows] - (np.cumsum(counts) - counts)
        terms = np.repeat(shifts, counts) + np.arange(counts.sum())
        of_terms = (array[terms] for array in (self.first, self.second, self.coefficients))
        return Made(self.nodes[rows], self.functions[rows], counts, *of_terms)


class Alone:
    """The nodes that stay alone, level by level.

    Args:
        graph: all of it.
        owners: of its sums and maxima.
        levels: of all nodes.
        first: the lowest level that they may be on.
        group: of each node below that, and of ONE.
        reserved: which nodes have a place already.

    Attributes:
        nodes: those that are alone, by level; those that are computed in the same way, and may be alike, stand beside
            each other.
        likes: for each of them a number, which those that may be alike share.
        primitives: those that are applied.
    """

    def __init__(
        self, graph: Graph, owners: Owners, levels: Integers, first: int, group: Integers, reserved: Integers
    ) -> None:
        is_left = levels >= first
        applied = [application for application in graph.applications if _is_small(application.primitive)]
        self.primitives: tuple[Primitive, ...] = tuple(application.primitive for application in applied)
        made = _made(graph, owners, applied, is_left)
        level = levels[made.nodes]
        signs = _mixed(np.append(np.where(is_left, levels + (1 << 40), group[:-1]), group[-1]))
        keys = _mixed((level << 16) + 2 * made.functions + (reserved[made.nodes] != 0))
        tags = _mixed(made.coefficients.view(np.int64))
        rows = _like_few(made._replace(functions=keys, coefficients=tags), signs, level)
        self._made = made.chosen(
            rows[np.lexsort((signs[made.nodes[rows]], made.counts[rows], made.functions[rows], level[rows]))]
        )
        self.nodes = self._made.nodes
        self._levels = levels[self.nodes]
        self.likes = np.unique(signs[self.nodes], return_inverse=True)[1]
        self._ends = np.append(0, np.cumsum(self._made.counts))

    def between(self, begin: int, end: int) -> Made:
        """Those on some levels."""
        first, last = np.searchsorted(self._levels, (begin, end))
        return self._made.part(slice(first, last), slice(*self._ends[[first, last]]))


def _is_small(primitive: Primitive) -> bool:
    """Whether no backend calls Python for a primitive, and it has few operands."""
    of_library = (getattr(module, primitive.name, None) for module in (primitives, further_primitives))
    is_native = primitive.composite is not None or any(one is primitive for one in of_library)
    return is_native and primitive is not TAKE and len(primitive.derivatives) <= _OPERANDS


def _made(graph: Graph, owners: Owners, applied: Sequence[Applications], is_left: Booleans) -> Made:
    """The nodes that are left, of the sums of few terms and of what is applied to few operands."""
    chosen = is_left[owners.nodes] & (owners.counts <= _TERMS)
    nodes, counts = owners.nodes[chosen], owners.counts[chosen]
    of_sums = np.zeros(graph.size, dtype=bool)
    of_sums[nodes] = True
    terms = graph.terms.kept(of_sums[graph.terms.owner])
    functions = np.where(graph.kind[nodes] == MAXIMUM, LARGEST, np.where(graph.from_zero[nodes], FROM_ZERO, SUM))
    parts = [(nodes, functions, counts, terms.first, terms.second, terms.coefficient)]
    for number, application in enumerate(applied):
        application = application.chosen(is_left[application.nodes])
        operands = application.operands
        numbers = (np.full(len(operands), number), np.full(len(operands), operands.shape[1]))
        columns = np.tile(np.arange(operands.shape[1], dtype=float), len(operands))
        parts.append((application.nodes, *numbers, operands.ravel(), np.full(operands.size, ONE), columns))
    return Made(*map(np.concatenate, zip(*parts, strict=True)))


def _like_few(made: Made, signs: Any, level: Integers) -> Integers:
    """The rows of those whose number few others have, given a number for each node, and for ONE, to begin with.

    The functions are a number for each row, and the coefficients one for each term, that tell them apart.
    """
    rows = np.arange(len(made.nodes))
    few = [rows[:0]]
    before, salt = 1, 1  # the bins are others in each round
    while len(rows):
        found = signs[made.nodes] = _signs(made, signs)
        bins = ((found * np.uint64(salt)) >> np.uint64(63 - len(rows).bit_length())).astype(np.int64)
        counts = np.bincount(bins)
        sizes = counts[bins]  # or more, where different numbers share a bin
        is_few = _are_few(sizes, made)
        few.append(rows[is_few])
        different = int(np.count_nonzero(counts))
        is_slow = _WORTH * len(few[-1]) < len(rows) and different < 2 * before
        left = np.flatnonzero(~is_few)
        rows, made = rows[left], made.chosen(left)
        if is_slow:
            few.append(rows[_like_few_in_the_end(made, signs, level[rows])])
            break
        before, salt = max(1, different - len(few[-1])), salt * _ODD % 2**64
    return np.concatenate(few)


def _like_few_in_the_end(made: Made, signs: Any, level: Integers) -> Integers:
    """The same of what rounds would tell apart one level at a time, as where the edge of a table is of another kind."""
    rows = np.argsort(level, kind="stable")
    made = made.chosen(rows)
    bounds = np.flatnonzero(np.diff(level[rows], prepend=-1, append=-1)).tolist()
    starts = np.append(made.starts, len(made.first)).tolist()
    for begin, end in pairwise(bounds):
        part = made.part(slice(begin, end), slice(starts[begin], starts[end]))
        signs[part.nodes] = _signs(part, signs)
    _, which, counts = np.unique(signs[made.nodes], return_inverse=True, return_counts=True)
    return rows[_are_few(counts[which], made)]


def _are_few(sizes: Integers, made: Made) -> Booleans:
    """Which nodes are like so few others that they stay alone, given how many share the number of each."""
    return (sizes <= _FEW) & (sizes * made.counts <= _TERMS)


def _signs(made: Made, signs: Any) -> Any:
    """A number for each node, made of the numbers of what it is computed from, however many terms are alike."""
    terms = _mixed((signs[made.first] + signs[made.second]) * np.uint64(_ODD) + made.coefficients)
    largest, smallest = (combine.reduceat(terms, made.starts) for combine in (np.maximum, np.minimum))
    return _mixed(largest + np.uint64(_ODD) * smallest + made.functions)


def _mixed(numbers: Any) -> Any:
    """For each number another one, of 64 bits that all depend on all of its bits."""
    mixed = numbers.astype(np.uint64) * np.uint64(_ODD)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(_ODD)
    mixed ^= mixed >> np.uint64(29)
    return mixed
