"""Dependence: which operations lie between the inputs of a transform and its outputs.

A function may ask for many derivatives, each of a few operations. So only those since the inputs of a transform are
looked at, in arrays with an element for each position:

    position   written        operands   depends on x   the result depends on it
    0       input  x       -          yes            yes
    1       mul  0 0       0, 0       yes            yes
    2       sin  0         0          yes            no
    3       exp  1         1          yes            yes: it is the result

Gradients flow through positions with both. A position that is equal to an earlier one is replaced by that.

The rows of a Jacobian are gradients of results that often share operations. Each row has a gradient of its own at each
position. The pairs of a row and a position that gradients flow through are the cones of the results:

    results 1, and 3      cones   (0, 1) (0, 0)   and   (1, 3) (1, 1) (1, 0)
"""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.entries import INPUT, LITERAL, NO_POSITION, SUM_OF_PRODUCTS, TAKE, Called, Mapped
from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from micrograd.compiler.ir.entries import Decided, Trace
    from micrograd.compiler.numbers import Booleans, Integers

# Steps from a root to a source, for each root: of more, to go through positions one by one takes less time. (A step of
# all roots takes some 60 us, and what the rules write for a position 10.)
_DEEPEST = 16


class Dependence:
    """The operations that some roots depend on, and that depend on some sources themselves.

    Arrays have an element for each position from the first source on; an index is a position minus ``begin``.

    Attributes:
        written: the trace.
        equal: for each position of the trace, the first one that is equal to it.
        begin: the position of the first source.
        kinds: for each position, a number for its primitive; see is_kind.
        edges: from positions to their operands, as two arrays of indices, users and used. Indices beyond the arrays
            stand for rows and tables.
        operands: the positions of all first operands, of all second ones, and so on; NO_POSITION where there is none,
            or where it is in a row or a table.
        first: for each position, the index of the first one that is equal to it.
        targets: the same for the operands.
        calls: the calls of functions of whole arrays.
        maps: the functions that run in many iterations.
        decisions: what the program decides.
        inside: through which positions gradients flow.
        counts: to how many operands gradients flow from each position.
        steps: the sum of the counts.
    """

    def __init__(self, roots: Collection[int], sources: Collection[int], written: Trace, equal: Sequence[int]) -> None:
        self.written, self.equal = written, equal
        self.begin = begin = min(sources, default=len(equal))
        entries, size = written.operations, len(equal) - begin
        self.first = first = np.array(equal[begin:], dtype=np.int64) - begin
        self.calls = [each for each in written.maps if isinstance(each, Called) and each.hub[0] >= begin]
        self.maps = [each for each in written.maps if isinstance(each, Mapped) and each.made[0] >= begin]
        self.decisions = [each for each in written.decisions if each.begin >= begin]
        self.kinds = np.fromiter(map(id, entries.primitives[begin : len(equal)]), np.int64, size)
        self.operands = self._columns()
        self.targets = self.first_of(self.operands)
        self._is_first, first_inside = first == np.arange(size), np.maximum(first, 0)  # before 0 is outside
        users, used = self.edges = self._edges(first, self._is_first)
        of_roots = np.array([equal[root] - begin for root in roots], dtype=np.int64)
        of_sources = np.fromiter(sources, np.int64, len(sources)) - begin
        outside = Edges(size, [users], [used]).out_of_reach(of_roots[of_roots >= 0])
        outside |= Edges(size, [used], [users]).out_of_reach(of_sources)
        self.inside: Booleans = (first >= 0) & ~outside[first_inside]
        counts = self._counted(users, used)
        self.steps, self.counts = int(counts.sum()), np.where(self.inside, counts[first_inside], 0)
        self._is_inside, self._count = self.inside.tobytes(), self.counts.tolist()
        self._passed = self._of_maps()  # for positions, the operands that gradients flow to; order adds to them

    def _columns(self) -> Integers:
        """The operands; see there."""
        begin, end, entries = self.begin, len(self.equal), self.written.operations
        further = {}
        for position in reversed(entries.further):  # they are in order
            if position < begin:
                break
            further[position - begin] = entries.further[position]
        columns = np.full((2 + max(map(len, further.values()), default=0), end - begin), NO_POSITION)
        columns[0], columns[1] = entries.first[begin:end], entries.second[begin:end]
        if further:
            positions = list(further)
            for number, column in enumerate(columns[2:]):
                column[positions] = [each[number] if number < len(each) else NO_POSITION for each in further.values()]
        columns[:, self.is_kind(INPUT, LITERAL, TAKE)] = NO_POSITION
        columns[1:, self.is_kind(SUM_OF_PRODUCTS)] = NO_POSITION
        return columns

    def _edges(self, first: Integers, is_first: Booleans) -> tuple[Integers, Integers]:
        """The edges; see there."""
        written, begin, size = self.written, self.begin, len(first)
        parts = [
            np.stack([positions := np.flatnonzero(is_first & (column >= 0)), column[positions]])
            for column in self.targets
        ]
        entries, sequences = written.operations, [*written.rows, *written.tables]
        users: list[int] = []
        used: list[int] = []
        for position in np.flatnonzero(is_first & self.is_kind(SUM_OF_PRODUCTS, TAKE)).tolist():
            second = entries.second[begin + position]
            of_table = entries.primitives[begin + position] is TAKE
            numbers = (len(written.rows) + second,) if of_table else (second, *entries.further[begin + position])
            users += [position] * len(numbers)
            used += [size + number for number in numbers]
        for number in {position - size for position in used}:
            users += [size + number] * len(sequences[number])
            used += [self._at(element) for element in sequences[number]]
        functions: list[Called | Mapped | Decided] = [*self.calls, *self.maps, *self.decisions]
        parts += [np.stack([start - begin, self.first_of(end)]) for start, end in (each.edges for each in functions)]
        found: Integers = np.concatenate([*parts, np.array([users, used], dtype=np.int64)], axis=1)
        return found[0, found[1] >= 0], found[1, found[1] >= 0]

    def _of_maps(self) -> dict[int, list[int]]:
        """For each result of iterations, the operands that gradients flow to: most of many are plain numbers."""
        found: dict[int, list[int]] = {}
        for mapped in self.maps:
            found.update((position, []) for position in mapped.made)
            users, used = mapped.edges
            used = self.first_of(used)
            chosen = np.flatnonzero((used >= 0) & self.inside[used])
            for user, operand in zip(users[chosen].tolist(), used[chosen].tolist(), strict=True):
                found[user].append(operand + self.begin)
        return found

    def _counted(self, users: Integers, used: Integers) -> Integers:
        """For each position, to how many operands gradients flow."""
        size = len(self.inside)
        count = max(size, 1 + int(max(users.max(initial=0), used.max(initial=0))))
        leads = used < size
        leads[leads] = self.inside[used[leads]]
        counts = np.bincount(users[leads], minlength=count)
        by_others = used >= size
        np.add.at(counts, users[by_others], counts[used[by_others]])
        return np.where(self.inside, counts[:size], 0)

    def first_of(self, positions: Integers) -> Integers:
        """The indices of the first ones that are equal to those at some positions; negative before the first source."""
        return np.where(positions < self.begin, NO_POSITION, self.first[np.maximum(positions - self.begin, 0)])

    def _at(self, position: int) -> int:
        """The same for one position."""
        return max(self.equal[position] - self.begin, NO_POSITION)

    def is_kind(self, *primitives: Any) -> Booleans:
        """Which positions apply one of these primitives."""
        return np.isin(self.kinds, list(map(id, primitives)))

    def __contains__(self, position: Any) -> bool:
        """Whether gradients flow through a position."""
        return position >= self.begin and bool(self._is_inside[position - self.begin])

    def holds_any(self, positions: Integers) -> bool:
        """Whether gradients flow through one of some positions."""
        return bool(self.inside[positions[positions >= self.begin] - self.begin].any())

    def passes_on(self, position: int) -> int:
        """To how many operands of a position gradients flow."""
        return self._count[position - self.begin] if position >= self.begin else 0

    def positions(self) -> list[int]:
        """All positions through which gradients flow, in order."""
        found: list[int] = (np.flatnonzero(self.inside) + self.begin).tolist()
        return found

    @property
    def passes(self) -> Booleans:
        """Which positions pass gradients on, without those that are equal to an earlier one."""
        return self._is_first & (self.counts > 0)

    def order(self, root: int) -> list[int]:
        """The positions that a root depends on, in order; none if no source reaches it."""
        if root not in self:
            return []
        found, stack, passed = {root}, [root], self._passed
        while stack:
            position = stack.pop()
            if (operands := passed.get(position)) is None:
                every = self.written.operands(position) if self.passes_on(position) else ()
                passed[position] = operands = [first for operand in every if (first := self.equal[operand]) in self]
            for operand in operands:
                if operand not in found:
                    found.add(operand)
                    stack.append(operand)
        return sorted(found)

    def rows(
        self, count: int, roots: Mapping[int, int], cones: Cones | None, sources: Collection[int]
    ) -> tuple[list[list[int]], int]:
        """For each row the sources that it depends on; and up to how many directions are less work than all rows.

        Args:
            count: how many rows there are.
            roots: the positions of their results, by their numbers; no source reaches the others.
            cones: of all rows, if they are known.
            sources: the positions of the sources.
        """
        rows: list[list[int]] = [[]] * count
        if cones is not None:
            chosen = cones.at_one_of(self.begin, sources, len(self.inside))
            bounds = np.searchsorted(cones.rows[chosen], np.arange(count + 1)).tolist()
            found = (cones.at[chosen] + self.begin).tolist()
            rows = [found[begin:end] for begin, end in pairwise(bounds)]
        else:
            for number, root in roots.items():
                rows[number] = [position for position in self.order(self.equal[root]) if position in sources]
        return rows, (sum(self._steps(roots, cones)) - 1) // max(self.steps, 1)

    def is_symmetric(self, rows: Sequence[Sequence[int]], columns: Sequence[int], library: Collection[Any]) -> bool:
        """Whether a matrix of second derivatives is symmetric: not where a rule of the user may be no derivative.

        Args:
            rows: for each row the columns of its entries.
            columns: what the columns are, in the order of the rows.
            library: the primitives whose rules are not a user's.
        """
        if not self.is_kind(*library)[self.inside].all():
            return False
        entries = {(columns[number], position) for number, row in enumerate(rows) for position in row}
        return all((position, row) in entries for row, position in entries)

    def is_large(self, roots: Mapping[int, int], cones: Cones | None, times: int) -> bool:
        """Whether gradients of each root by itself take more than so many times the steps of one for all roots.

        Args:
            roots: their positions, by their numbers.
            cones: of all rows, if they are known.
            times: how many times.
        """
        return any(total > times * self.steps for total in accumulate(self._steps(roots, cones)))

    def _steps(self, roots: Mapping[int, int], cones: Cones | None) -> Iterator[int]:
        """The steps of a gradient of each root by itself, in parts."""
        if cones is not None:
            yield int(self.counts[cones.at].sum())
            return
        for root in roots.values():
            yield sum([self.passes_on(position) for position in self.order(self.equal[root])])


class Cones:
    """Pairs of a row and a position, in order.

    Attributes:
        rows: the row of each pair.
        at: the index of its position; see Dependence.
        roots: the indices of the pairs of the roots.
    """

    def __init__(self, rows: Integers, at: Integers, keys: Integers | None = None) -> None:
        self.rows, self.at, self._keys = rows, at, keys
        self.roots = np.zeros(0, dtype=np.int64)

    @classmethod
    def of_one(cls, dependence: Dependence, root: int) -> Cones:
        """The cone of the only root of a Dependence, with a pair for each of its positions."""
        size = len(dependence.inside)
        made = cls(np.zeros(size, dtype=np.int64), np.arange(size))
        made.roots = np.array([dependence.equal[root] - dependence.begin])
        return made

    @classmethod
    def of(cls, dependence: Dependence, roots: Mapping[int, int]) -> Cones | None:
        """The cones of several roots, given by their rows; None where they are so deep that this takes long.

        Pairs are found from those furthest from the sources on, so each after all that read it.
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
    """Append keys to the lists of their heights."""
    order = np.argsort(heights, kind="stable")
    heights, keys = heights[order], keys[order]
    bounds = np.flatnonzero(np.diff(heights, prepend=-1))
    for height, part in zip(heights[bounds].tolist(), np.split(keys, bounds[1:]), strict=False):
        waiting[height].append(part)
