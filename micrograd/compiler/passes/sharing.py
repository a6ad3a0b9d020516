"""Sharing: kernels write over numbers that nobody reads any more, so that a run touches less memory.

In a program each number has a place of its own. Of three kernels

    a = exp(x)      b = a * a      c = b + 1

the last may write where a was: it has been read for the last time by then. So native code does it. The program itself,
in which others look up what was computed, stays as it is.

What kernels read or write in one go is a stretch, and moves as a whole. Inputs, outputs, gradients, constants and all
that loops and single numbers touch stay where they are; so does a stretch of few numbers, one that is not written in
full, and one that no kernel reads: somebody else will.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.program import Loop, Singles, with_turns
from micrograd.compiler.passes.transposing import reach, with_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.program import Access, Kernel, Program
    from micrograd.compiler.numbers import Integers

_LARGE = 1 << 15  # numbers; those of a smaller program stay in the cache
_STRETCH = 64  # numbers; fewer are not worth moving, nor is a program whose kernels have fewer in the mean
_LINE = 8  # numbers in a cache line: stretches lie in lines as before


def sharing(program: Program) -> Sequence[Kernel | Loop | Singles]:
    """The kernels of a program, where those that come later write over what is not read any more."""
    if not is_worth_it(program):
        return program.kernels
    stretches = Stretches(program)
    touched = stretches.touched
    far = stretches.shifts()[stretches.number]
    ends = np.cumsum([len(one.first) for of_kernel in touched for one in of_kernel])
    shifts = iter(np.split(far, ends))
    return [
        _moved(kernel, [next(shifts) for _ in of_kernel])
        for kernel, of_kernel in zip(program.kernels, touched, strict=True)
    ]


def is_worth_it(program: Program) -> bool:
    """Whether a program has many numbers, and its kernels too, so that they lie in no near cache at each step."""
    return program.size >= max(_LARGE, _STRETCH * len(program.kernels))


class _Touched(NamedTuple):
    """Where a target or an operand is.

    Attributes:
        first: the first place of each row; one for all rows if they move alike.
        last: the last place of each row.
        written: how many numbers of a row are written: 0 for an operand.
    """

    first: Integers
    last: Integers
    written: int


class Stretches:
    """The stretches of the buffer, in order: each is what rows that overlap reach over.

    Attributes:
        touched: where the target and the operands of each kernel are.
        number: for each row that is touched, kernel by kernel, and then for each place of a result: the number of its
            stretch.
        starts: where each begins.
        sizes: how many places each has.
        begins: when it is written first, as the number of a kernel.
        ends: when it is read or written last.
        kernels: how many kernels touch it.
        moves: whether it may lie elsewhere.
    """

    def __init__(self, program: Program) -> None:
        self.touched = touched = [_touched(kernel) for kernel in program.kernels]
        gradients = np.arange(program.gradients.start, program.gradients.stop)
        fixed = np.concatenate([program.inputs, program.outputs, program.seeds, gradients])
        every = [*(one for of_kernel in touched for one in of_kernel), _Touched(fixed, fixed, 0)]
        times = [time for time, of_kernel in enumerate(touched) for _ in of_kernel]
        stays = [*(isinstance(program.kernels[time], Loop | Singles) for time in times), True]
        first, last = (np.concatenate([one[side] for one in every]) for side in (0, 1))
        rows = [len(one.first) for one in every]
        order = np.argsort(first, kind="stable")
        reached = np.maximum.accumulate(last[order])
        is_new = np.append(True, first[order[1:]] > reached[:-1])
        heads = np.flatnonzero(is_new)

        def of_each(combine: np.ufunc, numbers: Sequence[int]) -> Integers:
            found: Integers = combine.reduceat(np.repeat(numbers, rows)[order], heads)
            return found

        self.number = np.empty(len(first), dtype=np.int64)
        self.number[order] = np.cumsum(is_new) - 1
        self.starts = first[order[heads]]
        self.sizes = reached[np.append(heads[1:], len(first)) - 1] + 1 - self.starts
        times.append(len(touched))
        self.begins, self.ends = of_each(np.minimum, times), of_each(np.maximum, times)
        pairs = np.unique(self.number * len(times) + np.repeat(times, rows))
        self.kernels = np.bincount(pairs // len(times))
        written = [one.written for one in every]
        is_whole = of_each(np.add, written) == self.sizes
        is_read = of_each(np.minimum, written) == 0
        self.moves = is_whole & is_read & (self.sizes >= _STRETCH) & (of_each(np.maximum, stays) == 0)

    def shifts(self) -> Integers:
        """How far each stretch moves: to the first room that is free when it is written."""
        moving = np.flatnonzero(self.moves)
        shifts = np.zeros(len(self.starts), dtype=np.int64)
        room = self._room(moving)
        done = moving[np.argsort(self.ends[moving], kind="stable")].tolist()
        for number in moving[np.argsort(self.begins[moving], kind="stable")].tolist():
            while self.ends[done[0]] < self.begins[number]:
                other = done.pop(0)
                room.leave(int(self.starts[other] + shifts[other]), int(self.sizes[other]))
            place = room.take(int(self.starts[number]), int(self.sizes[number]))
            if place is None:
                return np.zeros_like(shifts)
            shifts[number] = place - self.starts[number]
        return shifts

    def _room(self, moving: Integers) -> _Room:
        """The places of all that moves, and what fills the lines between them."""
        runs: list[tuple[int, int]] = []
        before = -1
        for number in moving.tolist():
            start = int(self.starts[number])
            if number == before + 1 and runs and start - runs[-1][1] < _LINE:
                start, _ = runs.pop()
            runs.append((start, int(self.starts[number] + self.sizes[number])))
            before = number
        return _Room(runs)


class _Room:
    """Runs of free places, in order."""

    def __init__(self, runs: list[tuple[int, int]]) -> None:
        self._runs = runs

    def take(self, before: int, size: int) -> int | None:
        """The first place with so much room, which is as far into a cache line as the one before; None without any."""
        for index, (start, end) in enumerate(self._runs):
            place = start + (before - start) % _LINE
            if place + size <= end:
                left = (start, place), (place + size, end)
                self._runs[index : index + 1] = [run for run in left if run[0] < run[1]]
                return place
        return None

    def leave(self, start: int, size: int) -> None:
        """Let places be taken again."""
        end, index = start + size, bisect(self._runs, (start,))
        if index < len(self._runs) and self._runs[index][0] == end:
            _, end = self._runs.pop(index)
        if index and self._runs[index - 1][1] == start:
            index -= 1
            start, _ = self._runs.pop(index)
        self._runs.insert(index, (start, end))


def _touched(kernel: Kernel | Loop | Singles) -> list[_Touched]:
    """Where the target of a kernel is, and where its operands are; of a loop, those of all its kernels."""
    found = []
    for turns, inside in with_turns(kernel):
        count = inside.rows * inside.columns
        for access, terms in with_terms(inside):
            if access.table is None and access.row_table is None:
                first, last = _hull(access, inside, terms, turns)
            else:
                first, last = reach(access, inside, terms, turns)
            found.append(_Touched(first, last, count // len(first) if access is inside.target else 0))
    return found


def _hull(access: Access, kernel: Kernel | Singles, terms: int, turns: int) -> tuple[Integers, Integers]:
    """The first and the last place of an operand without a table."""
    low = high = access.base
    steps = (access.row_step, kernel.rows), (access.column_step, kernel.columns)
    for step, count in (*steps, (access.term_step, terms), (access.turn_step, turns)):
        far = step * (count - 1)
        if far < 0:
            low += far
        else:
            high += far
    return np.array([low]), np.array([high])


def _moved(kernel: Kernel | Loop | Singles, shifts: Sequence[Integers]) -> Kernel | Loop | Singles:
    """A kernel whose target and operands have moved so far; loops and single numbers stay."""
    if isinstance(kernel, Loop | Singles) or not any(far.any() for far in shifts):
        return kernel
    given = iter(shifts)
    return kernel.changed(lambda access: _further(access, next(given)))


def _further(access: Access, far: Integers) -> Access:
    """An index map whose rows lie so far on."""
    if access.table is not None:
        return replace(access, table=access.table + far.reshape(access.table.shape))
    if access.row_table is not None:
        return replace(access, row_table=access.row_table + far)
    return replace(access, base=access.base + int(far[0]))
