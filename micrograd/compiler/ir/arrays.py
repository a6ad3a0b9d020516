"""Arrays: which arrays of a program a kernel reads and writes.

A program says where its arrays begin in the buffer, and how long they are. Of ``(0, 4), (4, 4), (8, 2)``, a kernel that
makes the numbers at 8 and 9 of those at 5 and 6 touches arrays 1 and 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.program import Map, Reduction, with_iterations
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from micrograd.compiler.ir.program import Access, Kernel, Loop, Program, Singles
    from micrograd.compiler.numbers import Integers


class Touched(NamedTuple):
    """Where a target or an operand is.

    Attributes:
        first: the first index in the buffer of each row; one for all rows where there is no table.
        last: the last index of each row.
        written: how many numbers of a row are written: 0 for an operand.
    """

    first: Integers
    last: Integers
    written: int


class Arrays:
    """The arrays of a program, in order.

    Attributes:
        starts: where each begins in the buffer.
        ends: where each ends.
    """

    def __init__(self, program: Program) -> None:
        arrays = program.arrays
        if not len(arrays) or arrays[0, 0]:  # what comes before the first array is one as well
            before = arrays[0, 0] if len(arrays) else program.size
            arrays = np.concatenate([[(0, before)], arrays])
        self.starts, lengths = arrays.T
        self.ends = self.starts + lengths

    def at(self, positions: Integers) -> Integers:
        """The numbers of the arrays that these indices in the buffer are in."""
        return np.searchsorted(self.starts, positions, side="right") - 1

    def holding(self, positions: Integers) -> Integers:
        """Where those arrays begin that have some of these indices in the buffer."""
        marks = np.zeros(self.ends[-1], dtype=bool)
        marks[positions] = True
        found: Integers = self.starts[np.logical_or.reduceat(marks, self.starts)]
        return found

    def of(self, kernel: Kernel | Loop | Singles) -> set[int]:
        """The numbers of the arrays that a kernel may read or write."""
        found: set[int] = set()
        for one in touched(kernel):
            pairs = distinct(self.at(one.first) * len(self.starts) + self.at(one.last))
            for first, last in zip(*(side.tolist() for side in np.divmod(pairs, len(self.starts))), strict=True):
                found.update(range(first, last + 1))
        return found


def conflicts(program: Program) -> list[bool]:
    """Whether each kernel goes beyond the buffer, or reads where it writes itself; of a loop, only the former."""
    found = []
    for kernel in program.kernels:
        has_conflict = False
        for iterations, inside in with_iterations(kernel):
            target, *operands = [
                _span(access, inside, terms, iterations) for access, terms in [(inside.target, 1), *inside.reads]
            ]
            has_conflict |= any(first < 0 or last >= program.size for first, last in (target, *operands))
            if isinstance(kernel, Reduction | Map):
                has_conflict |= any(first <= target[1] and last >= target[0] for first, last in operands)
        found.append(has_conflict)
    return found


def _span(access: Access, kernel: Kernel | Singles, terms: int, iterations: int) -> tuple[int, int]:
    """The first and the last index of an operand, in all iterations."""
    before, after = access.reach((kernel.rows, kernel.columns, terms), iterations)
    if access.table is None:
        return access.base + before, access.base + after
    return int(access.table.min()) + before, int(access.table.max()) + after


def touched(kernel: Kernel | Loop | Singles) -> list[Touched]:
    """Where the target of a kernel is, and where its operands are; of a loop, those of all its kernels."""
    found = []
    for iterations, inside in with_iterations(kernel):
        count = inside.rows * inside.columns
        for access, terms in [(inside.target, 1), *inside.reads]:
            first, last = _reach(access, inside, terms, iterations)
            found.append(Touched(first, last, count // len(first) if access is inside.target else 0))
    return found


def _reach(access: Access, kernel: Kernel | Singles, terms: int, iterations: int) -> tuple[Integers, Integers]:
    """The first and the last index of each row of an operand, or of some of its elements, in all iterations."""
    before, after = access.reach((kernel.rows, kernel.columns, terms), iterations)
    starts = np.array([access.base]) if access.table is None else access.table.ravel()
    return starts + before, starts + after
