"""Allocation: arrays whose numbers nobody reads any more give their memory to later ones.

In a program each array has an address of its own. Of three kernels

    a = exp(x)      b = a * a      c = b + 1

the last may write where a was: a is not live any more by then. So native code does it. The program itself, in which
others look up what was computed, stays as it is.

Inputs, outputs, gradients, constants and all that loops and single numbers touch keep their addresses; so does an array
of few numbers, one that is not written in full, and one that no kernel reads: somebody else will.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.arrays import Arrays, Touched, touched
from micrograd.compiler.ir.program import Loop, Singles
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.program import Access, Kernel, Program
    from micrograd.compiler.numbers import Integers

_LARGE = 1 << 15  # numbers; those of a smaller program stay in the cache
_LEAST = 64  # numbers; fewer are not moved, nor is a program whose kernels have fewer in the mean
_LINE = 8  # numbers in a cache line: arrays lie in lines as before


def allocate(program: Program) -> Program:
    """The program with other addresses of its arrays, so that a run touches less memory."""
    if not is_worth_it(program):
        return program
    live = Liveness(program)
    far = live.shifts()[live.number]
    ends = np.cumsum([len(one.first) for of_kernel in live.touched for one in of_kernel])
    shifts = iter(np.split(far, ends))
    kernels = [
        _moved(kernel, [next(shifts) for _ in of_kernel])
        for kernel, of_kernel in zip(program.kernels, live.touched, strict=True)
    ]
    return replace(program, kernels=tuple(kernels))


def is_worth_it(program: Program) -> bool:
    """Whether a program has many numbers, and its kernels too, so that they lie in no near cache at each step."""
    return program.size >= max(_LARGE, _LEAST * len(program.kernels))


class Liveness:
    """From when to when each array of a program is live. Arrays that one row of an operand lies across are one.

    Attributes:
        touched: where the target and the operands of each kernel are.
        number: for each row that is touched, kernel by kernel, and then for each array that stays: the number of its
            array.
        starts: where each array begins.
        sizes: how many numbers each has.
        begins: when it is written first, as the number of a kernel.
        ends: when it is read or written last.
        kernels: how many kernels touch it.
        moves: whether it may have another address.
    """

    def __init__(self, program: Program) -> None:
        self.touched = [touched(kernel) for kernel in program.kernels]
        arrays = Arrays(program)
        fixed = arrays.holding(np.concatenate([program.inputs, program.seeds, program.results]))
        times = [time for time, of_kernel in enumerate(self.touched) for _ in of_kernel]
        stays = [*(isinstance(program.kernels[time], Loop | Singles) for time in times), True]
        every = [*(one for of_kernel in self.touched for one in of_kernel), Touched(fixed, fixed, 0)]
        times.append(len(program.kernels))
        rows = [len(one.first) for one in every]
        first, last = (np.concatenate([one[side] for one in every]) for side in (0, 1))
        time, written, must_stay = (
            np.repeat(numbers, rows) for numbers in (times, [one.written for one in every], stays)
        )
        self._arrays(arrays, first, last)
        count = len(self.starts)
        self.begins, self.ends = np.zeros((2, count), dtype=np.int64)
        self.begins[self.number[::-1]] = time[::-1]  # the first time is written last
        self.ends[self.number] = time
        self.kernels = np.bincount(distinct(self.number * len(times) + time) // len(times), minlength=count)
        is_whole, is_read, is_fixed = (
            np.bincount(self.number, weights, count) for weights in (written, written == 0, must_stay)
        )
        self.moves = (is_whole == self.sizes) & (is_read > 0) & (self.sizes >= _LEAST) & (is_fixed == 0)

    def _arrays(self, arrays: Arrays, first: Integers, last: Integers) -> None:
        """Join the arrays that a row lies across."""
        number, end = arrays.at(first), arrays.at(last)
        across = np.zeros(len(arrays.starts) + 1, dtype=np.int64)
        rows = number != end
        np.add.at(across, number[rows] + 1, 1)
        np.add.at(across, end[rows] + 1, -1)
        is_first = np.cumsum(across)[:-1] == 0
        heads = np.flatnonzero(is_first)
        self.starts = arrays.starts[heads]
        self.sizes = arrays.ends[np.append(heads[1:], len(arrays.ends)) - 1] - self.starts
        self.number = (np.cumsum(is_first) - 1)[number]

    def shifts(self) -> Integers:
        """How far each array moves: to the first room that is free when it is written."""
        moving = np.flatnonzero(self.moves)
        shifts = np.zeros(len(self.starts), dtype=np.int64)
        room = self._room(moving)
        done = moving[np.argsort(self.ends[moving], kind="stable")].tolist()
        for number in moving[np.argsort(self.begins[moving], kind="stable")].tolist():
            while self.ends[done[0]] < self.begins[number]:
                other = done.pop(0)
                room.leave(int(self.starts[other] + shifts[other]), int(self.sizes[other]))
            position = room.take(int(self.starts[number]), int(self.sizes[number]))
            if position is None:
                return np.zeros_like(shifts)
            shifts[number] = position - self.starts[number]
        return shifts

    def _room(self, moving: Integers) -> _Room:
        """The positions of all that moves, and what fills the lines between them."""
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
    """Runs of free positions, in order."""

    def __init__(self, runs: list[tuple[int, int]]) -> None:
        self._runs = runs

    def take(self, before: int, size: int) -> int | None:
        """The first place with so much room, which is as far into a cache line as the one before; None without any."""
        for index, (start, end) in enumerate(self._runs):
            position = start + (before - start) % _LINE
            if position + size <= end:
                left = (start, position), (position + size, end)
                self._runs[index : index + 1] = [run for run in left if run[0] < run[1]]
                return position
        return None

    def leave(self, start: int, size: int) -> None:
        """Let positions be taken again."""
        end, index = start + size, bisect(self._runs, (start,))
        if index < len(self._runs) and self._runs[index][0] == end:
            _, end = self._runs.pop(index)
        if index and self._runs[index - 1][1] == start:
            index -= 1
            start, _ = self._runs.pop(index)
        self._runs.insert(index, (start, end))


def _moved(kernel: Kernel | Loop | Singles, shifts: Sequence[Integers]) -> Kernel | Loop | Singles:
    """A kernel whose target and operands have moved so far; loops and single numbers stay."""
    if isinstance(kernel, Loop | Singles) or not any(far.any() for far in shifts):
        return kernel
    given = iter(shifts)
    return kernel.changed(lambda access: _further(access, next(given)))


def _further(access: Access, far: Integers) -> Access:
    if access.table is not None:
        return replace(access, table=access.table + far.reshape(access.table.shape))
    return replace(access, base=access.base + int(far[0]))
