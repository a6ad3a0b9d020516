"""Equals: which entries of a trace are equal, so that one stands for all of them.

Of ``exp(x * y) + exp(x * y)`` the tape says what stands on the left. Entry 4 is equal to 2, and so is 5 to 3:

    0  input        x              0
    1  input        y              1
    2  mul   0 1                   2
    3  exp   2                     3
    4  mul   0 1                   2
    5  exp   4                     3
    6  add   3 5                   6

Who goes through the entries in their order finds this with a dictionary of all. Most programs have few equal entries,
or none; so it is quicker to look at all entries at once, in rounds. The first round finds that 4 is equal to 2. The
second one has these operands replaced, finds that 5 is equal to 3, and replaces it in 6. What is not at an end after
some rounds is done in order.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.columns import Column, Columns
from micrograd.compiler.ir.entries import INPUT, LITERAL, NO_POSITION, SUM_OF_PRODUCTS, TAKE, Entries, EqualsInOrder
from micrograd.compiler.numbers import distinct, no_integers, starts_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.engine.primitive import Primitive

_MOST_ROUNDS = 16  # so many take a third as long as going through the entries in their order, which then comes on top
_LARGE_PART = 4  # entries that are looked at once more in the rounds, for so many in all, are too many
_FEW = 1 << 12  # entries; these are gone through in their order soon
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 divided by the golden ratio, as in Knuth's multiplicative hashing


class Equals:
    """For each entry, each row and each table of a trace, the first one that is equal to it.

    They have numbers: an entry its position, then come the rows, and the tables. The last is NO_POSITION, for no entry.

    Attributes:
        first: the number of the first one that is equal to each.
        first_row: the number of the first row.
        first_table: the number of the first table.
    """

    def __init__(self, trace: Trace) -> None:
        self.first_row = len(trace.operations)
        self.first_table = self.first_row + len(trace.rows)
        self._sequences = [*trace.rows, *trace.tables]
        self._elements = np.fromiter(chain.from_iterable(self._sequences), np.int64)
        self._ends = np.cumsum(np.fromiter(map(len, self._sequences), np.int64))
        self._known: dict[tuple[bool, tuple[int, ...]], int] = {}
        self.first = np.append(np.arange(self.first_row + len(self._sequences)), NO_POSITION)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The rows, of entries that are the first of their kind."""
        return tuple(self._sequences[: self.first_table - self.first_row])

    @property
    def tables(self) -> tuple[tuple[int, ...], ...]:
        """The tables, of entries that are the first of their kind."""
        return tuple(self._sequences[self.first_table - self.first_row :])

    def merge(self, others: Integers, earlier: Integers) -> Booleans:
        """Take note that other entries are equal to earlier ones; say which of all has another first one now."""
        before, self.first = self.first, self.first.copy()
        self.first[others] = earlier
        self.first = self.first[self.first]  # one that is not first any more may have been the first for others
        changed = np.flatnonzero((self.first != before)[self._elements])
        if len(changed) and not self._known:
            self._known = {self._name(number): number for number in range(len(self._sequences))}
        for number in distinct(np.searchsorted(self._ends, changed, side="right")).tolist():
            self._sequences[number] = tuple(self.first[list(self._sequences[number])].tolist())
            self.first[self.first_row + number] = self.first_row + self._known.setdefault(self._name(number), number)
        return self.first != before

    def _name(self, number: int) -> tuple[bool, tuple[int, ...]]:
        return self.first_row + number < self.first_table, self._sequences[number]


def in_columns(trace: Trace, merged: bool = True) -> Columns:
    """The columns of a trace.

    Args:
        trace: what was written down.
        merged: whether equal operations become one.
    """
    entries, equal = trace.operations, Equals(trace)
    code, positions = _codes(entries)
    _, literals = (positions.pop(kind, no_integers()) for kind in (INPUT, LITERAL))
    operands = _operands(entries, positions, equal)
    if merged:
        find_equals(trace, code, operands, equal)
    operations = []
    for primitive, of_primitive in positions.items():
        number = len(entries.operands(int(of_primitive[0])))
        chosen = of_primitive[equal.first[of_primitive] == of_primitive]
        columns = [equal.first[operand[chosen]] for operand in operands[:number]]
        if primitive is SUM_OF_PRODUCTS or primitive is TAKE:
            begin = equal.first_row if primitive is SUM_OF_PRODUCTS else equal.first_table
            columns[1:] = [column - begin for column in columns[1:]]
        operations.append(Column(primitive, chosen, tuple(columns)))
    trace = trace._replace(
        operations=Entries(),
        equals=None,
        rows=equal.rows,
        tables=equal.tables,
        outputs=tuple(equal.first[list(trace.outputs)].tolist()),
        checked=tuple(dict.fromkeys(equal.first[list(trace.checked)].tolist())),
    )
    numbers = np.array(entries.numbers, dtype=np.float64)[operands[0, literals]]
    return Columns(trace, len(entries), literals, numbers, tuple(operations))


def first_equals(trace: Trace) -> Integers:
    """For each entry, the position of the first one that is equal to it; and beyond, what no entry reads."""
    equal = Equals(trace)
    code, positions = _codes(trace.operations)
    find_equals(trace, code, _operands(trace.operations, positions, equal), equal)
    return equal.first


def _codes(entries: Entries) -> tuple[Integers, dict[Primitive, Integers]]:
    """For each entry the number of its primitive, NO_POSITION where it has none; and each primitive's positions."""
    codes: defaultdict[Primitive, int] = defaultdict(count().__next__)
    code = np.fromiter(map(codes.__getitem__, entries.primitives), np.int64, len(entries))
    positions = {primitive: np.flatnonzero(code == number) for primitive, number in codes.items()}
    for kind in (INPUT, LITERAL):
        code[positions.get(kind, no_integers())] = NO_POSITION
    return code, positions


def _operands(entries: Entries, positions: Mapping[Primitive, Integers], equal: Equals) -> Integers:
    """In a row all first operands, in one the second ones and so on, by the numbers that Equals has for them."""
    longest = max(map(len, entries.further.values()), default=0)
    operands = np.full((2 + longest, len(entries)), NO_POSITION)
    operands[0], operands[1] = entries.first, entries.second
    further = list(entries.further)
    for number, row in enumerate(operands[2:]):
        row[further] = [others[number] if number < len(others) else NO_POSITION for others in entries.further.values()]
    for primitive, begin in (SUM_OF_PRODUCTS, equal.first_row), (TAKE, equal.first_table):
        if primitive in positions:
            operands[1 : 2 + (primitive is SUM_OF_PRODUCTS), positions[primitive]] += begin
    return operands


def find_equals(trace: Trace, code: Integers, operands: Integers, equal: Equals) -> None:
    """Find what is equal in a trace.

    Args:
        trace: a trace.
        code: for each entry, a number for its primitive; -1 for inputs and literals.
        operands: the numbers of all first operands as Equals has them, of all second ones, and so on.
        equal: where what is found is noted.
    """
    if trace.equals is not None:
        _merge_in_order(trace.equals, trace, equal)
        return
    rounds = _Rounds(code, operands, equal)
    others, earlier = rounds.first()
    most = _MOST_ROUNDS if len(code) > _FEW else 0
    while len(others) and most and rounds.looked_at * _LARGE_PART < len(code):
        others, earlier = rounds.next(equal.merge(others, earlier))
        most -= 1
    if len(others):
        _merge_in_order(EqualsInOrder(), trace, equal)


def _merge_in_order(equals: EqualsInOrder, trace: Trace, equal: Equals) -> None:
    positions = np.array(equals.of(trace))
    others = np.flatnonzero(positions != np.arange(len(positions)))
    equal.merge(others, positions[others])


class _Rounds:
    """Finds what is equal by looking at all entries at once, and then at those with an operand that was replaced."""

    def __init__(self, code: Integers, operands: Integers, equal: Equals) -> None:
        self._code, self._operands, self._equal = code, operands, equal
        self._left = code >= 0
        self._order, self._sorted = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
        self._known: dict[tuple[int, ...], int] = {}  # what was looked at once more
        self.looked_at = 0  # how many of these there were

    def first(self) -> tuple[Integers, Integers]:
        """Entries, and earlier ones that they are equal to."""
        positions = np.flatnonzero(self._left)
        hashes = _hashes(self._code, self._operands)[positions]
        ordered = np.sort(hashes)  # several times as fast as finding the order, and mostly none are the same
        if not (ordered[1:] == ordered[:-1]).any():
            return positions[:0], positions[:0]
        order = np.argsort(hashes)
        self._sorted, self._order = ordered, positions[order]
        is_first = starts_run(ordered)
        starts = np.flatnonzero(is_first)
        earliest = np.minimum.reduceat(self._order, starts)
        others = np.flatnonzero(~is_first | np.append(~is_first[1:], False))
        earlier, others = earliest[np.cumsum(is_first)[others] - 1], self._order[others]
        same = (earlier != others) & self._are_equal(others, earlier)
        return others[same], earlier[same]

    def next(self, changed: Booleans) -> tuple[Integers, Integers]:
        """The same, of entries with an operand that has changed."""
        self._left &= ~changed[: len(self._left)]
        positions = np.flatnonzero(self._left & changed[self._operands].any(axis=0))
        self.looked_at += len(positions)
        code, operands = self._code[positions], self._equal.first[self._operands[:, positions]]
        at = np.searchsorted(self._sorted, _hashes(code, operands)).clip(max=len(self._sorted) - 1)
        found = self._equal.first[self._order[at]]
        found = np.where(self._are_equal(positions, found), found, positions)
        others, earlier = [], []
        for position, other, *key in zip(
            positions.tolist(), found.tolist(), code.tolist(), *operands.tolist(), strict=True
        ):
            other = self._known.get(tuple(key), other)
            self._known[tuple(key)] = first = min(position, other)
            if other != position:
                others.append(max(position, other))
                earlier.append(first)
        return np.array(others, dtype=np.int64), np.array(earlier, dtype=np.int64)

    def _are_equal(self, some: Integers, others: Integers) -> Booleans:
        first = self._equal.first
        same: Booleans = self._code[some] == self._code[others]
        for operand in self._operands:
            same &= first[operand[some]] == first[operand[others]]
        return same


def _hashes(code: Integers, operands: Integers) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """A number for each operation, the same for equal ones; hardly ever for others."""
    hashes = code.astype(np.uint64)
    for operand in operands:
        hashes *= _ODD
        hashes += operand.astype(np.uint64)
    return hashes
