"""Cones: what each of several results depends on, as pairs of a row and a position.

The rows of a Jacobian are gradients of results that often have much in common. In

    0  input  x          results   1, and 2
    1  sin    0
    2  mul    1 0        cones     (0, 1) (0, 0)   and   (1, 2) (1, 1) (1, 0)

a gradient flows through each pair by itself. So the gradients of all rows are written together, as those of one are.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.tracing.dependence import Dependence

# Steps from a root to a source, for each root: of more, to go through positions one by one takes less time. (A step of
# all roots takes some 60 us, and what the rules write for a position 10.)
_DEEPEST = 16


class Cones:
    """Pairs of a row and a position, in order.

    Attributes:
        rows: the row of each pair.
        at: where in the arrays of Dependence its position is.
        roots: which pairs the roots are.
    """

    def __init__(self, rows: Integers, at: Integers, keys: Integers | None = None) -> None:
        self.rows, self.at, self._keys = rows, at, keys
        self.roots = np.zeros(0, dtype=np.int64)

    @classmethod
    def of_one(cls, dependence: Dependence, root: int) -> Cones:
        """That of the only root of a Dependence, with a pair for each of its positions."""
        size = len(dependence.inside)
        made = cls(np.zeros(size, dtype=np.int64), np.arange(size))
        made.roots = np.array([dependence.equal[root] - dependence.begin])
        return made

    @classmethod
    def of(cls, dependence: Dependence, roots: Mapping[int, int]) -> Cones | None:
        """Those of several roots, given by their rows; None where they are so deep that this takes long.

        A pair is found after all that read it: those that are furthest from the sources come first.
        """
        users, used = dependence.edges
        size, total = len(dependence.inside), 1 + int(max(users.max(initial=0), used.max(initial=0)))
        total = max(size, total)
        is_inside = np.append(dependence.inside, np.ones(total - size, dtype=bool))  # those beyond are stand-ins
        chosen = np.flatnonzero(is_inside[users] & is_inside[used])
        chosen = chosen[np.argsort(users[chosen], kind="stable")]
        users, used = users[chosen], used[chosen]
        heights = Edges(total, [used], [users]).levels()
        if heights.max(initial=0) > _DEEPEST * len(roots):
            return None
        counts = np.bincount(users, minlength=total)
        starts = np.cumsum(counts) - counts
        ends = np.array([dependence.equal[root] for root in roots.values()], dtype=np.int64) - dependence.begin
        rows = np.array([*roots], dtype=np.int64)
        rows, ends = (each[(ends >= 0) & dependence.inside[np.maximum(ends, 0)]] for each in (rows, ends))
        waiting: defaultdict[int, list[Integers]] = defaultdict(list)
        found = [np.zeros(0, dtype=np.int64)]
        _sort(waiting, heights[ends], rows * total + ends)
        while waiting:
            height = max(waiting)
            found.append(reached := distinct(np.concatenate(waiting.pop(height))))
            nodes = reached % total
            numbers = counts[nodes]
            edges = np.repeat(starts[nodes] - np.cumsum(numbers) + numbers, numbers) + np.arange(numbers.sum())
            below = used[edges]
            _sort(waiting, heights[below], np.repeat(reached - nodes, numbers) + below)
        keys = np.sort(np.concatenate(found))
        keys = keys[keys % total < size]
        made = cls(keys // total, keys % total, keys)
        made.roots = np.searchsorted(keys, rows * total + ends)
        return made

    def pairs(self, beside: Integers, at: Integers) -> Integers:
        """The pairs of the same rows as some others, at these positions."""
        if self._keys is None:
            return at
        return np.searchsorted(self._keys, self._keys[beside] - self.at[beside] + at)

    def at_one_of(self, begin: int, positions: Collection[int], size: int) -> Booleans:
        """Which pairs are at one of some positions."""
        marks = np.zeros(size, dtype=bool)
        marks[np.fromiter(positions, np.int64, len(positions)) - begin] = True
        return marks[self.at]


def _sort(waiting: defaultdict[int, list[Integers]], heights: Integers, keys: Integers) -> None:
    """Put keys where they wait, by their heights."""
    order = np.argsort(heights, kind="stable")
    heights, keys = heights[order], keys[order]
    bounds = np.flatnonzero(np.diff(heights, prepend=-1))
    for height, part in zip(heights[bounds].tolist(), np.split(keys, bounds[1:]), strict=False):
        waiting[height].append(part)
