"""Sums of different lengths, as loops that add each term to the sum that a table names.

    y[0] = x[2] + x[5] + x[9]                      for (int row = 0; row < 3; row++) y[row] = -0.0;
    y[1] = x[0] + x[7]                       ->    for (int row = 0; row < 10; row++) y[at[row]] += x[row];
    y[2] = x[1] + x[3] + x[4] + x[6] + x[8]

Such are the gradients of what is read by a table: where 20 cameras saw 1,000 points, the table says which camera it was
each time. A kernel for each length would have that table once more, turned around. Sums of few terms keep their order.

A table may consist of few rows that come again and again: of 1,000 letters of a text, each of 14 bits, hardly 40 are
different. Then what the different rows name is copied first, or added up, and the table has a number for each row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from micrograd.compiler.backends.c.memory import lookup_in
from micrograd.compiler.backends.c.regions import Added, even_parts, regions_of
from micrograd.compiler.ir.index_maps import Positions, accesses
from micrograd.compiler.ir.program import Map, Reduction, Segment
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.alike import different_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.backends.c.regions import Block, Item
    from micrograd.compiler.ir.program import Access, Program
    from micrograd.compiler.numbers import Booleans, Integers

_FEWEST = 3  # kernels that are worth it
_LARGE = 256  # results of a kernel that stays as it is
_PARTS = 4  # loops that set sums to 0; more are one, with a table
_LOOP, _OPERAND, _ENTRY = 80, 30, 4  # characters of a loop, of an operand, and of a number of a table, about
_LONG, _WIDEST = 512, 64  # numbers of a table, and of a row of it, that may come again
_FEWER = 3  # times fewer numbers than the table has, for which it is worth it

_Key: TypeAlias = "tuple[float | int, ...]"


def scattered(blocks: Sequence[Block], program: Program, gradients: Integers) -> tuple[list[Block], Program]:
    """The blocks, with loops in place of sums of different lengths; and the program, whose buffer may be larger.

    Args:
        blocks: the kernels of a program.
        program: which it is.
        gradients: where its gradients are, in the order of the file.
    """
    region_of, array_of = regions_of(blocks, program.size), _arrays(program, gradients)
    found = [
        block if block.iterations > 1 else replace(block, kernels=tuple(_scattered(block.kernels, region_of, array_of)))
        for block in blocks
    ]
    return by_distinct_rows(found, program)


def by_distinct_rows(blocks: Sequence[Block], program: Program) -> tuple[list[Block], Program]:
    """The blocks, with small tables in place of some large ones; and the program, whose buffer may be larger."""
    size, found = program.size, []
    for block in blocks:
        kernels: list[Item] = []
        for kernel in block.kernels:
            parts = _by_distinct_rows(kernel, size) if block.iterations == 1 else [kernel]
            size += parts[0].rows * parts[0].columns if len(parts) > 1 else 0
            kernels += parts
        found.append(replace(block, kernels=tuple(kernels)))
    return found, replace(program, size=size)


def _arrays(program: Program, gradients: Integers) -> Integers:
    """For each position a number, the same for those that may be in the same array of C."""
    kind = np.full(program.size, -1)  # of the work array
    given = [program.inputs, program.seeds, *(start + np.arange(len(numbers)) for start, numbers in program.constants)]
    for positions in (*given, program.outputs):
        kind[positions] = program.size + positions  # apart: one may be anywhere
    kind[gradients] = np.arange(len(gradients)) - gradients + 3 * program.size
    return kind


def _scattered(kernels: Sequence[Item], region_of: Integers, array_of: Integers) -> Iterator[Item]:
    group = _Group(region_of, array_of)
    for kernel in kernels:
        if not group.takes(kernel):
            yield from group.items()
            group = _Group(region_of, array_of)
            if not group.takes(kernel):
                yield kernel
    yield from group.items()


class _Rows(NamedTuple):
    """A table as rows, some of which are the same.

    Attributes:
        distinct: the rows that are different.
        which: which of these each row is.
    """

    distinct: Integers
    which: Integers

    @property
    def size(self) -> int:
        """How many numbers say so."""
        return self.distinct.size + len(self.which)

    def placed(self, start: int) -> tuple[Integers, Integers]:
        """A position for each number of the different rows, from one on; and where those of all rows are then."""
        own = start + np.arange(self.distinct.size)
        return own, own.reshape(self.distinct.shape)[self.which].ravel()

    @staticmethod
    def of(table: Integers | None) -> _Rows | None:
        """Those of a table; None if it is small, or has hardly fewer numbers then."""
        if table is None or table.size < _LONG:
            return None
        found = []
        for width in range(2, _WIDEST + 1):
            if table.size % width == 0:
                rows = table.reshape(-1, width)
                first, which = different_rows(rows)
                found.append(_Rows(rows[first], which))
        best = min(found, key=lambda rows: rows.size, default=None)
        return None if best is None or best.size * _FEWER > table.size else best


def _by_distinct_rows(kernel: Item, start: int) -> list[Item]:
    """A kernel that goes by a large table as several, with numbers of their own from a position on."""
    if isinstance(kernel, Added):
        rows = None if kernel.columns > 1 or kernel.is_in_order else _Rows.of(kernel.target.row_table)
        if rows is None:
            return [kernel]
        own, of_rows = rows.placed(start)
        factors = [access.positions(kernel.rows, 1, 1).ravel() for access in kernel.factors]
        return [
            _added(own, [], -0.0),
            _added(of_rows, factors, kernel.coefficient),
            _added(rows.distinct.ravel(), [own], 1.0),
        ]
    if not isinstance(kernel, (Reduction, Map)) or kernel.columns > 1:
        return [kernel]
    if any(access.table is not None or terms > 1 for access, terms in kernel.reads):
        return [kernel]
    found = [rows for access in kernel.accesses if (rows := _Rows.of(access.row_table))]
    if len(found) != 1:
        return [kernel]
    own, of_rows = found[0].placed(start)

    def moved(access: Access) -> Integers:
        return of_rows if _Rows.of(access.row_table) else access.positions(kernel.rows, 1, 1).ravel()

    rows_, columns, *made = _accesses(
        [kernel.target.positions(kernel.rows, 1, 1).ravel(), *map(moved, kernel.accesses)]
    )
    given = iter(made)
    return [
        _copy(own, found[0].distinct.ravel()),
        replace(kernel.changed(lambda access: next(given)), rows=rows_, columns=columns),
    ]


def _copy(targets: Integers, positions: Integers) -> Reduction:
    rows, columns, to, access = _accesses([targets, positions])
    return Reduction(rows, columns, to, (Segment(1.0, 1, access, None),))


def _added(targets: Integers, factors: Sequence[Integers], coefficient: float, is_in_order: bool = False) -> Added:
    rows, columns, to, *found = _accesses([targets, *factors])
    return Added(rows, columns, to, coefficient, tuple(found), is_in_order)


def _accesses(positions: Sequence[Integers]) -> tuple[Any, ...]:
    """How many rows and columns there are, and the index map of each operand, given where its elements are."""
    target, *others = (Positions.of(each[:, None]) for each in positions)
    rows, columns, to, found = accesses(target, others)
    return rows, columns, to, *found


class _Terms(NamedTuple):
    """Terms that are added in one loop.

    Attributes:
        targets: the position of the sum of each.
        factors: the positions of one factor, or two.
        is_ordered: whether they keep their order.
    """

    targets: Integers
    factors: list[Integers]
    is_ordered: Booleans

    def added(self, coefficient: float) -> Added:
        """The loop. What is read comes in the order in which it lies there, if sums keep theirs."""
        key = max(self.factors, key=lambda factor: len(distinct(factor)))
        order = np.argsort(key, kind="stable")
        kept = order[self.is_ordered[order]]
        by_sum = kept[np.argsort(self.targets[kept], kind="stable")]
        if ((np.diff(by_sum) < 0) & (np.diff(self.targets[by_sum]) == 0)).any():
            order = np.arange(len(key))
        factors = [factor[order] for factor in self.factors]
        return _added(self.targets[order], factors, coefficient, bool(len(kept)))


class _Group:
    """Kernels that become loops together.

    Args:
        region_of: for each position a number, the same for what is read or written together.
        array_of: and one that is the same for those that may be written together.
    """

    def __init__(self, region_of: Integers, array_of: Integers) -> None:
        self._region_of, self._array_of = region_of, array_of
        self._kernels: list[Reduction] = []
        self._parts: dict[_Key, list[_Terms]] = {}
        self._target: _Key = ()
        self._written, self._read = set[int](), set[int]()

    def takes(self, kernel: Item) -> bool:
        """Take a kernel, if it fits those before it; say whether it does."""
        if not isinstance(kernel, Reduction) or kernel.largest or kernel.rows * kernel.columns > _LARGE:
            return False
        if kernel.rows * kernel.columns > 1 and not _is_uneven(kernel):
            return False
        if (
            len(self._parts) == 1 and kernel.terms < self._kernels[-1].terms
        ):  # others, which begin with short ones again
            return False
        targets = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
        target = int(self._array_of[targets[0]]), int(kernel.from_zero)
        parts = [*self._parts_of(kernel, targets)]
        shared = sum(len(terms.targets) for key, terms in parts if key in self._parts)
        if self._kernels and (target != self._target or 2 * shared <= len(targets) * kernel.terms):
            return False
        numbers = {key: number for number, key in enumerate(dict.fromkeys([*self._parts, *(key for key, _ in parts)]))}
        order = [numbers[key] for key, _ in parts]
        if kernel.is_in_order and order != sorted(order):
            return False
        written = set(targets.tolist())
        read = {position for _, terms in parts for factor in terms.factors for position in factor.tolist()}
        if (written & self._written) or (self._written | written) & (self._read | read):
            return False
        for key, terms in parts:
            self._parts.setdefault(key, []).append(terms)
        self._kernels.append(kernel)
        self._target = target
        self._written |= written
        self._read |= read
        return True

    def _parts_of(self, kernel: Reduction, targets: Integers) -> Iterator[tuple[_Key, _Terms]]:
        """The terms of each segment, with its coefficient and where its factors are."""

        def positions(access: Access, terms: int) -> Integers:
            found = access.positions(kernel.rows, kernel.columns, terms)
            return np.broadcast_to(found, (kernel.rows, kernel.columns, terms)).ravel()

        for part in kernel.segments:
            factors = [positions(access, part.terms) for access in part.factors]
            is_ordered = np.full(len(targets) * part.terms, kernel.is_in_order)
            regions = [int(self._region_of[factor[0]]) for factor in factors]
            yield (part.coefficient, *regions), _Terms(np.repeat(targets, part.terms), factors, is_ordered)

    def items(self) -> Sequence[Item]:
        """The loops; or the kernels themselves, where these take less to say."""
        if sum(map(_is_uneven, self._kernels)) < _FEWEST:
            return self._kernels
        targets = np.array(sorted(self._written))
        starts = even_parts(targets[None, :])
        ends = [*starts[1:], len(targets)] if len(starts) <= _PARTS else [len(targets)]
        zero = 0.0 if self._kernels[0].from_zero else -0.0
        found: list[Item] = [_added(targets[start:end], [], zero) for start, end in zip(starts, ends, strict=False)]
        for (coefficient, *_), parts in self._parts.items():
            factors = [np.concatenate(sides) for sides in zip(*(part.factors for part in parts), strict=True)]
            of_sums, is_ordered = (np.concatenate([part[side] for part in parts]) for side in (0, 2))
            found.append(_Terms(of_sums, factors, is_ordered).added(coefficient))
        return found if sum(map(_characters, found)) < sum(map(_characters, self._kernels)) else self._kernels


def _characters(kernel: Item) -> int:
    """How many a kernel takes, about."""
    accesses_ = [kernel.target, *(access for access, _ in kernel.reads)]
    tables = [table for access in accesses_ for table in (access.row_table, access.table)]
    sizes = [lookup_in(table).numbers.size for table in tables if table is not None]
    if isinstance(kernel, Added) and not kernel.is_in_order and (rows := _Rows.of(kernel.target.row_table)):
        sizes[0] = rows.size
    return _LOOP + _OPERAND * len(kernel.reads) + _ENTRY * sum(sizes)


def _is_uneven(kernel: Reduction) -> bool:
    """Whether a table says where the terms of a kernel are."""
    return any(access.table is not None for access in kernel.accesses)
