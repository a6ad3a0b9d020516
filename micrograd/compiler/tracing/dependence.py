"""Dependence: what lies between the inputs of a transform and its outputs.

A function may ask for many derivatives, each of a little. So only what was written since the inputs of a transform is
looked at, in arrays with an element for each position:

    position   written        operands   depends on x   the result depends on it
    0       input  x       -          yes            yes
    1       mul  0 0       0, 0       yes            yes
    2       sin  0         0          yes            no
    3       exp  1         1          yes            yes: it is the result

Gradients flow through what has both. Positions that are equal to an earlier one give way to it.

The rows of a Jacobian are gradients of results that often have much in common. A gradient flows through each pair of a
row and a position by itself. All such pairs are the cones of the results:

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

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.numbers import Booleans, Integers

# Steps from a root to a source, for each root: of more, to go through positions one by one takes less time. (A step of
# all roots takes some 60 us, and what the rules write for a position 10.)
_DEEPEST = 16


class Dependence:
    """What some roots depend on, as far as that depends on some sources itself.

    In the arrays, an element stands for each position since that of the first source.

    Attributes:
        written: the trace.
        equal: for each position of the trace, the first one that is equal to it.
        begin: the position of the first source.
        kinds: for each position, a number for its primitive; see is_kind.
        edges: from each position to its operands, where these are not before the first source: users and used, by where
            they are in the arrays. Beyond are stand-ins for rows and tables.
        operands: the positions of the first operands of all, of the second ones, and so on; NO_POSITION where there is
            none, or where it is in a row or a table.
        first: for each position, where in the arrays the first one is that is equal to it.
        calls: those of functions of whole arrays.
        maps: the functions that run in many iterations.
        targets: the same for the operands.
        inside: through which positions gradients flow.
        counts: to how many operands they flow from each position.
        steps: to how many they flow in all.
    """

    def __init__(self, roots: Collection[int], sources: Collection[int], written: Trace, equal: Sequence[int]) -> None:
        self.written, self.equal = written, equal
        self.begin = begin = min(sources, default=len(equal))
        entries, size = written.operations, len(equal) - begin
        self.first = first = np.array(equal[begin:], dtype=np.int64) - begin
        self.calls = [each for each in written.maps if isinstance(each, Called) and each.hub[0] >= begin]
        self.maps = [each for each in written.maps if isinstance(each, Mapped) and each.made[0] >= begin]
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
        """All first operands, all second ones, and so on."""
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
        """From each position to its operands; by stand-ins beyond the others where these are in rows or tables."""
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
        functions: list[Called | Mapped] = [*self.calls, *self.maps]
        parts += [np.stack([start - begin, self.first_of(end)]) for start, end in (each.edges for each in functions)]
        for decided in written.decisions:
            for position in decided.made if decided.made[0] >= begin else ():
                operands = decided.operands_of(position)
                users += [position - begin] * len(operands)
                used += [self._at(operand) for operand in operands]
        found: Integers = np.concatenate([*parts, np.array([users, used], dtype=np.int64)], axis=1)
        return found[0, found[1] >= 0], found[1, found[1] >= 0]

    def _of_maps(self) -> dict[int, list[int]]:
        """For each result of a map, the operands that gradients flow to: few of many, where most are plain numbers."""
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
        """For each position, how many edges lead inside."""
        size = len(self.inside)
        count = max(size, 1 + int(max(users.max(initial=0), used.max(initial=0))))
        leads = used < size
        leads[leads] = self.inside[used[leads]]
        counts = np.bincount(users[leads], minlength=count)
        by_others = used >= size
        np.add.at(counts, users[by_others], counts[used[by_others]])
        return np.where(self.inside, counts[:size], 0)

    def first_of(self, positions: Integers) -> Integers:
        """Where in the arrays the first ones are that are equal to those at some positions; negative for outside."""
        return np.where(positions < self.begin, NO_POSITION, self.first[np.maximum(positions - self.begin, 0)])

    def _at(self, position: int) -> int:
        """Where the first place is that is equal to one; negative where that is outside."""
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
        """Where in the arrays the first ones of all operations are that pass gradients on."""
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
        """For each row the sources that it depends on; and how many directions are less work than all rows.

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
        """Whether a matrix of second derivatives has equal numbers on both sides of its diagonal.

        A user's rules may give what is no derivative: then only their own numbers are right.

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
        """Whether the roots have more steps to the sources, counted for each root, than so many times all together.

        Args:
            roots: their positions, by their numbers.
            cones: of all rows, if they are known.
            times: how many times.
        """
        return any(total > times * self.steps for total in accumulate(self._steps(roots, cones)))

    def _steps(self, roots: Mapping[int, int], cones: Cones | None) -> Iterator[int]:
        """The steps from roots to the sources, counted for each root, in parts."""
        if cones is not None:
            yield int(self.counts[cones.at].sum())
            return
        for root in roots.values():
            yield sum([self.passes_on(position) for position in self.order(self.equal[root])])


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
