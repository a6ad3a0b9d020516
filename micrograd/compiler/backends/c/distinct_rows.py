"""Tables of few rows that come again and again, as a table of the different rows and one of which each is.

Of 1,000 letters of a text, each of 14 bits, hardly 40 are different. So a kernel that reads what a table names copies
first what the different rows name; one that adds to it adds the rows up first, one for each different row:

    y[i, j] = x[at[i, j]]      ->    rows[k, j] = x[at_different[k, j]];    y[i, j] = rows[which[i], j]
    y[at[i, j]] += x[i, j]     ->    rows[which[i], j] += x[i, j];    y[at_different[k, j]] += rows[k, j]

What a letter is said of in one table is said in most tables of the file: of the letters but the first, or backwards.
There the different rows are numbered in the same way, and ``which`` is one table, or a part of it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.backends.c.regions import Added, Block
from micrograd.compiler.ir.index_maps import Positions, accesses
from micrograd.compiler.ir.program import Map, Reduction, Segment
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.alike import different_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.backends.c.regions import Item
    from micrograd.compiler.ir.program import Access, Program
    from micrograd.compiler.numbers import Integers

_LONG, _WIDEST = 512, 64  # numbers of a table, and of a row of it, that may come again
_FEWER = 3  # times fewer numbers than the table has, for which it is worth it
_APART = 8  # rows by which one table may begin later than another


class Sequences:
    """Which of its different rows each row of a table is, for the tables of a file."""

    def __init__(self) -> None:
        self._known: list[Integers] = []

    def find(self, which: Integers) -> tuple[Integers, bool] | None:
        """The same in the numbers of a sequence that is known, and whether it goes backwards there."""
        for known in self._known:
            for backwards in (False, True):
                numbers = which[::-1] if backwards else which
                for begin in range(min(len(known) - len(which), _APART) + 1):
                    part = known[begin : begin + len(which)]
                    if _is_renamed(part, numbers):
                        return part, backwards
        return None

    def add(self, which: Integers) -> None:
        """Make a sequence known, unless it is; its rows are numbered as they come."""
        if self.find(which) is not None:
            return
        for position, known in enumerate(self._known):
            for joined in (_joined(known, which), _joined(which, known)):
                if joined is not None:
                    self._known[position] = _as_they_come(joined)
                    return
        self._known.append(_as_they_come(which))

    def around(self, numbers: Integers) -> Integers:
        """The sequence that these numbers are a part of; they themselves if there is none."""
        for known in self._known:
            for begin in range(min(max(len(known) - len(numbers) + 1, 0), _APART + 1)):
                if (known[begin : begin + len(numbers)] == numbers).all():
                    return known
        return numbers


def _as_they_come(which: Integers) -> Integers:
    """A sequence with other numbers: 0 for its first element, and 1 for the first that is another one."""
    _, first, numbers = np.unique(which, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]


def _joined(one: Integers, other: Integers) -> Integers | None:
    """Two sequences as one, where the other one begins a few elements later, and ends later; None if they differ."""
    for later in range(1, _APART + 1):
        count = len(one) - later
        if 0 < count < len(other) and _is_renamed(one[later:], other[:count]):
            names = np.arange(int(other.max()) + 1) + int(one.max()) + 1
            names[other[:count]] = one[later:]
            return np.append(one, names[other[count:]])
    return None


def _is_renamed(one: Integers, other: Integers) -> bool:
    """Whether two sequences are the same but for the numbers that stand for their elements."""
    count = len(distinct(one))
    return count == len(distinct(other)) == len(distinct(one * (int(other.max()) + 1) + other))


class _Rows(NamedTuple):
    """A table as rows, some of which are the same.

    Attributes:
        distinct: the rows that are different.
        which: which of these each row is.
        numbers: where each number of each row is in the table.
    """

    distinct: Integers
    which: Integers
    numbers: Integers

    def placed(self, start: int) -> tuple[Integers, Integers]:
        """A position for each number of the different rows, from one on; and where those of all rows are then."""
        own = start + np.arange(self.distinct.size)
        return own, own.reshape(self.distinct.shape)[self.which].ravel()

    def numbered(self, sequences: Sequences) -> _Rows:
        """The same rows, where the different ones are numbered as in another table, and in its order."""
        which, backwards = sequences.find(self.which) or (self.which, False)
        numbers = self.numbers[::-1] if backwards else self.numbers
        here = self.which[::-1] if backwards else self.which
        rows = np.repeat(self.distinct[:1], int(which.max()) + 1, axis=0)
        rows[which] = self.distinct[here]
        return _Rows(rows, which, numbers)


def _rows_of(table: Integers, sequences: Sequences | None = None) -> list[_Rows]:
    """The rows of a table, or of its even and its odd ones; none if it is small, or these are hardly fewer numbers."""
    best: list[_Rows] = []
    if table.size < _LONG or len(distinct(table)) > table.size // _FEWER:
        return best
    fewest = table.size // _FEWER + 1
    for count, width in product((1, 2) if sequences else (1,), range(2, _WIDEST + 1)):
        if table.size % (count * width) == 0:
            numbers = np.arange(table.size).reshape(-1, count, width)
            found = [_rows(table, numbers[:, part]) for part in range(count)]
            size = sum(rows.distinct.size for rows in found)
            if size < fewest:
                size += sum(len(rows.which) for rows in found if not (sequences and sequences.find(rows.which)))
            if size < fewest:
                best, fewest = found, size
    return best


def _rows(table: Integers, numbers: Integers) -> _Rows:
    rows = table.ravel()[numbers]
    first, which = different_rows(rows)
    return _Rows(rows[first], which, numbers)


def _separate(which: Integers) -> list[Integers]:
    """A sequence as its even and its odd elements, if these are different ones."""
    even, odd = which[::2], which[1::2]
    return [which] if len(even) > len(odd) or np.isin(even, odd).any() else [even, odd]


def fewer_numbers(table: Integers) -> int:
    """How many numbers say what a table says."""
    found = _rows_of(table)
    return found[0].distinct.size + len(found[0].which) if found else table.size


def by_distinct_rows(blocks: Sequence[Block], program: Program, sequences: Sequences) -> tuple[list[Block], Program]:
    """The blocks, with small tables in place of some large ones; and the program, whose buffer may be larger.

    Args:
        blocks: the kernels of a program.
        program: which it is.
        sequences: of the file's tables; those of the program are added.
    """
    kernels = [kernel for block in blocks if block.iterations == 1 for kernel in block.kernels]
    tables = {id(kernel): found for kernel in kernels if (found := _table_of(kernel))}
    known = [_rows_of(numbers.view(np.int64)) for _, numbers in program.constants]
    firsts = [rows[0].which for rows in (*(rows for _, rows in tables.values()), *known) if rows]
    for which in sorted(chain.from_iterable(map(_separate, firsts)), key=len, reverse=True):
        sequences.add(which)
    copies, program = _constants(program, sequences)
    found_ = [Block(1, tuple(copies))] if copies else []
    size = program.size
    for block in blocks:
        changed: list[Item] = []
        for kernel in block.kernels:
            if id(kernel) not in tables:
                changed.append(kernel)
                continue
            table, _ = tables[id(kernel)]
            for rows in _rows_of(table, sequences):
                rows = rows.numbered(sequences)
                changed += _parts(kernel, table, rows, size)
                size += rows.distinct.size
        found_.append(replace(block, kernels=tuple(changed)))
    return found_, replace(program, size=size)


def _constants(program: Program, sequences: Sequences) -> tuple[list[Item], Program]:
    """Kernels that fill tables of numbers, of which few rows are different, and the program with these alone."""
    copies: list[Item] = []
    constants, size = [], program.size
    for start, numbers in program.constants:
        found = _rows_of(numbers.view(np.int64), sequences)
        if not found:
            constants.append((start, numbers))
        for rows in found:
            rows = rows.numbered(sequences)
            _, of_rows = rows.placed(size)
            constants.append((size, rows.distinct.ravel().view(np.float64)))
            copies.append(_copy(start + rows.numbers.ravel(), of_rows))
            size += rows.distinct.size
    return copies, replace(program, constants=tuple(constants), size=size)


def _table_of(kernel: Item) -> tuple[Integers, list[_Rows]] | None:
    """The one table of few different rows that a kernel goes by, and these; None in columns, or where order matters."""
    if kernel.columns > 1 or not isinstance(kernel, (Added, Reduction, Map)):
        return None
    if isinstance(kernel, Added):
        tables = [] if kernel.is_in_order else [kernel.target.table]
    elif any(access.gathers or terms > 1 for access, terms in kernel.reads):
        return None
    else:
        tables = [access.table for access in kernel.accesses]
    found = [(table, rows) for table in tables if table is not None and (rows := _rows_of(table))]
    return found[0] if len(found) == 1 else None


def _parts(kernel: Any, table: Integers, rows: _Rows, start: int) -> Iterator[Item]:
    """Some rows of a kernel that goes by a table, with numbers of their own from a position on."""
    own, of_rows = rows.placed(start)
    chosen = rows.numbers.ravel()

    def positions(access: Access) -> Integers:
        return access.positions(kernel.rows, 1, 1).ravel()[chosen]

    if isinstance(kernel, Added):
        yield added(own, [], -0.0)
        yield added(of_rows, [positions(access) for access in kernel.factors], kernel.coefficient)
        yield added(rows.distinct.ravel(), [own], 1.0)
        return
    read = [of_rows if access.table is table else positions(access) for access in kernel.accesses]
    count, columns, *made = _accesses([positions(kernel.target), *read])
    given = iter(made)
    yield _copy(own, rows.distinct.ravel())
    yield replace(kernel.changed(lambda access: next(given)), rows=count, columns=columns)


def _copy(targets: Integers, positions: Integers) -> Reduction:
    rows, columns, to, access = _accesses([targets, positions])
    return Reduction(rows, columns, to, (Segment(1.0, 1, access, None),))


def added(targets: Integers, factors: Sequence[Integers], coefficient: float, is_in_order: bool = False) -> Added:
    """A kernel that adds products to numbers, given where these and the factors are."""
    rows, columns, to, *found = _accesses([targets, *factors])
    return Added(rows, columns, to, coefficient, tuple(found), is_in_order)


def _accesses(positions: Sequence[Integers]) -> tuple[Any, ...]:
    """How many rows and columns there are, and the index map of each operand, given where its elements are."""
    target, *others = (Positions.of(each[:, None]) for each in positions)
    rows, columns, to, found = accesses(target, others)
    return rows, columns, to, *found
