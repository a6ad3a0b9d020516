"""Rows of a Jacobian that are computed alike: the gradients of two are written by the rules, those of others copied.

In

    [x[k] * x[k + 1] for k in range(n - 1)]

each residual is the product of two numbers. The operations of all rows are followed together, from the results to the
variables, in arrays with an element for each row:

    results     a * b        of the rows 0, 1, 2 ...
    operands    a, b         of each

Rows that do the same operations, on the same operands among those that they read, are alike; plain numbers may differ
where rules do not look at them. The rules of their operations run for two of them. What they wrote for the second is
kept, with numbers in place of what the operations read, and is written for all the others at once. So a stencil of many
rows takes little longer than one of few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.entries import DIFFERENTIATED_AS, INPUT, LITERAL, NO_POSITION, SUM_OF_PRODUCTS, TAKE
from micrograd.engine import further_primitives, primitives, special_functions
from micrograd.engine.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from micrograd.compiler.ir.entries import Entries
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.tracing.dependence import Dependence

_FEWEST = 3  # rows that are worth the while: the rules run for two
_MOST = 1000  # numbers that a row reads or computes; longer rows are rarely alike
_ROUNDS = 6  # of operands that are compared before rows are followed
_TRIES = 4  # how many rows of those that look alike may be alike to no other
_AT_ONCE = 1024  # rows to write
_LONGEST = 8  # products of a sum that are looked at one by one
_NOT_COPIED = {INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE}
_MODULES = primitives, further_primitives, special_functions

# Rules of a user's primitives may do something else each time.
OF_LIBRARY = {*_NOT_COPIED, DIFFERENTIATED_AS}.union(
    each for module in _MODULES for each in vars(module).values() if isinstance(each, Primitive)
)
# Their rules do not ask whether an operand is a number, or what they give is rounded alike
TAKE_LITERALS = frozenset(
    (
        *(primitives.add, primitives.sub, primitives.mul, primitives.div, primitives.where),
        *(primitives.maximum, primitives.minimum, primitives.less, primitives.less_equal),
    )
)


class Alike(NamedTuple):
    """Rows that are alike.

    Attributes:
        rows: their numbers.
        positions: for each row, the positions of its result, its operations and their operands.
        passed: in which columns of positions those are that gradients come to.
        literals: which columns are plain numbers that may differ, each with the column of the operation that reads it
            and the number of its operand.
    """

    rows: Integers
    positions: Integers
    passed: list[int]
    literals: dict[int, tuple[int, int]]


def alike(roots: Mapping[int, int], dependence: Dependence, wanted: Collection[int]) -> Iterator[Alike]:
    """The rows that are alike.

    Args:
        roots: by their numbers, the positions of the rows' results.
        dependence: what lies between the positions to differentiate by and these.
        wanted: the positions to differentiate by.

    Yields:
        Three rows or more at a time.
    """
    if len(roots) < _FEWEST or dependence.written.maps:
        return
    program = _Program(dependence, wanted)
    ends = program.equal[list(roots.values())]
    are_passed = (ends >= dependence.begin) & (dependence.counts[np.maximum(ends - dependence.begin, 0)] > 0)
    rows, ends = np.array(list(roots))[are_passed], ends[are_passed]
    labels = program.labels()[ends]
    by_label = np.argsort(labels, kind="stable")
    for looking_alike in np.split(by_label, np.flatnonzero(np.diff(labels[by_label])) + 1):
        left, tries = looking_alike, 0
        while len(left) >= _FEWEST and tries < _TRIES and (followed := program.followed(ends[left])) is not None:
            are_alike, positions, passed, literals = followed
            if np.count_nonzero(are_alike) >= _FEWEST:
                yield Alike(rows[left[are_alike]], positions[are_alike], passed, literals)
            else:
                are_alike[1:] = False
                tries += 1
            left = left[~are_alike]


class _Program:
    """A trace in arrays, in which many rows are followed at once.

    Attributes:
        equal: for each position, the first one that is equal to it.
    """

    def __init__(self, dependence: Dependence, wanted: Collection[int]) -> None:
        entries = dependence.written.operations
        size = len(dependence.equal)
        applied = entries.primitives[:size]
        self.equal = np.array(dependence.equal)
        self._applied, self._dependence = applied, dependence
        columns = [entries.first[:size], entries.second[:size]]
        rows, further, short = dependence.written.rows, list[tuple[int, tuple[int, ...]]](), list[int]()
        for position, others in [each for each in entries.further.items() if each[0] < size]:
            if applied[position] is not SUM_OF_PRODUCTS:
                further.append((position, others))
            elif len(xs := rows[entries.second[position]]) <= _LONGEST:
                short.append(position)
                further.append((position, (*xs[1:], *rows[others[0]])))
        width = max((len(others) for _, others in further), default=0)
        self._operands = np.full((2 + width, size), NO_POSITION)
        self._operands[:2] = columns
        for position, others in further:
            self._operands[2 : 2 + len(others), position] = others
        for position in short:
            self._operands[1, position] = rows[entries.second[position]][0]
        kinds = np.fromiter(map(id, applied), np.uint64, size)
        is_literal = kinds == id(LITERAL)
        numbers = np.array(entries.numbers, dtype=float).view(np.uint64)
        self._is_literal, self._takes_any = is_literal, np.isin(kinds, list(map(id, TAKE_LITERALS)))
        self._takes_any[short] = True
        kinds[is_literal] += numbers[self._operands[0, is_literal]] * np.uint64(2)
        is_wanted, marks = np.zeros(size, dtype=bool), np.zeros(size, dtype=np.uint64)
        is_wanted[list(wanted)] = True
        of_sources = slice(dependence.begin, size)
        marks[of_sources] = dependence.inside * (1 + 2 * (dependence.counts > 0) + 4 * is_wanted[of_sources])
        self._kinds = kinds * np.uint64(8) + marks
        # of these, operands are numbers of something else; the rules are asked for rows that they are in
        self._has_none = is_literal | np.isin(kinds, [id(primitive) for primitive in _NOT_COPIED])
        self._has_none[short] = False
        self._operands[:, self._has_none] = NO_POSITION

    def labels(self) -> Integers:
        """A number for each position, by what is computed there: rows that are alike end where these are equal."""
        labels = self._kinds
        for _ in range(_ROUNDS):
            mixed = self._kinds.copy()
            for operands in self._operands:
                mixed *= np.uint64(0x9E3779B97F4A7C15)
                mixed ^= mixed >> np.uint64(29)
                is_any = (operands == NO_POSITION) | (self._takes_any & self._is_literal[operands])
                mixed += np.where(is_any, np.uint64(0), labels[operands])
            labels = mixed
        return labels.view(np.int64)

    def followed(self, ends: Integers) -> tuple[Integers, Integers, list[int], dict[int, tuple[int, int]]] | None:
        """Which rows do what the first one does, from their results on.

        Args:
            ends: the positions of the results.

        Returns:
            Whether each row is alike, its positions, in which columns those are that gradients come to, and which are
            plain numbers; see Alike. None if the rules have to run for the first row.
        """
        kinds, are_alike = self._kinds, np.ones(len(ends), dtype=bool)
        columns, numbers, passed = [ends], {int(ends[0]): 0}, [0]
        literals: dict[int, tuple[int, int]] = {}

        def number_of(positions: Integers) -> int:
            """The number of the column of an operand, which is a new one if the first row has not met it before."""
            number = numbers.setdefault(int(positions[0]), len(columns))
            if number == len(columns):
                columns.append(positions)
                np.logical_and(are_alike, kinds[positions] == kinds[positions[0]], out=are_alike)
            else:
                np.logical_and(are_alike, positions == columns[number], out=are_alike)
            return number

        met = {0}
        for column in passed:  # which grows
            position = int(columns[column][0])
            if not self._dependence.passes_on(position):
                continue
            if self._applied[position] not in OF_LIBRARY or self._has_none[position] or len(columns) > _MOST:
                return None
            for index, operands in enumerate(self._operands):
                of_rows = operands[columns[column]]
                first = int(of_rows[0])
                if first == NO_POSITION:
                    np.logical_and(are_alike, of_rows == NO_POSITION, out=are_alike)
                    continue
                if self._takes_any[position] and self._is_literal[first]:
                    np.logical_and(are_alike, (of_rows != NO_POSITION) & self._is_literal[of_rows], out=are_alike)
                    literals[len(columns)] = column, index
                    columns.append(of_rows)
                    continue
                number_of(of_rows)
                number = number_of(self.equal[of_rows])
                if first in self._dependence and number not in met:
                    met.add(number)
                    passed.append(number)
        positions = np.stack(columns, axis=1)
        in_order = sorted(passed, key=lambda column: positions[0, column])  # as gradients are added up
        are_alike &= (np.diff(positions[:, in_order], axis=1) > 0).all(axis=1)
        others = np.sort(np.delete(positions, list(literals), axis=1), axis=1)
        are_alike &= (np.diff(others, axis=1) > 0).all(axis=1)  # no two are one here and not there
        return are_alike, positions, passed, literals


class Copied:
    """What was written for one row, to be written for others."""

    def __init__(
        self, entries: Entries, begin: int, positions: Sequence[int], checked: Sequence[int], found: Mapping[int, int]
    ) -> None:
        """Keep what was written from a position on.

        Args:
            entries: what is written.
            begin: the position.
            positions: those that the row reads.
            checked: those of the new ones that are checked.
            found: for the positions to differentiate by, those of their gradients.
        """
        block = range(begin, len(entries))
        self._applied = entries.primitives[begin:]
        self._further = [
            (position - begin, entries.further[position]) for position in block if position in entries.further
        ]
        columns = [entries.first[begin:], entries.second[begin:], checked, found.keys(), found.values()]
        columns += [row for _, row in self._further]
        read = {position for column in columns for position in column}
        self._fixed = [position for position in read - set(positions) if position < begin]
        numbers = {position: number for number, position in enumerate([*positions, *self._fixed, *block])}
        self.is_whole = _NOT_COPIED.isdisjoint(self._applied) and all(
            position == NO_POSITION or entries.primitives[position] is LITERAL for position in self._fixed
        )
        self._first, self._second, self._checked, self._by, self._gradients, *self._others = (
            [numbers[position] for position in column] for column in columns
        )

    def write(
        self, entries: Entries, rows: Integers, positions: Integers, checked: dict[int, None]
    ) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Write it for other rows.

        Args:
            entries: where it is written.
            rows: their numbers.
            positions: those that these rows read, row by row.
            checked: takes those of the new ones that are checked.

        Yields:
            The numbers of some rows, and for each of them the positions to differentiate by and those of their
            gradients.
        """
        size = len(self._applied)
        for start in range(0, len(positions), _AT_ONCE):
            given, begin = positions[start : start + _AT_ONCE], len(entries)
            count = len(given)
            fixed = np.broadcast_to(np.array(self._fixed, dtype=np.int64), (count, len(self._fixed)))
            every = np.concatenate([given, fixed, begin + np.arange(count * size).reshape(count, size)], axis=1)
            entries.first.frombytes(every[:, self._first].tobytes())
            entries.second.frombytes(every[:, self._second].tobytes())
            for (offset, _), chosen in zip(self._further, self._others, strict=True):
                of_rows = zip(range(begin + offset, begin + count * size, size), every[:, chosen].tolist(), strict=True)
                entries.further.update((position, tuple(others)) for position, others in of_rows)
            entries.in_lanes += count * size
            entries.primitives += self._applied * count  # the last, so that what is half written is seen
            checked.update(dict.fromkeys(every[:, self._checked].ravel().tolist()))
            yield rows[start : start + _AT_ONCE], every[:, self._by], every[:, self._gradients]
