"""Transposing: numbers that belong to samples are laid out so that those of all samples stand side by side.

A program computes one sample after the other, and so its numbers come to lie in the buffer: of two samples a and b of
three numbers each,

    a0 a1 a2 b0 b1 b2        become        a0 b0 a1 b1 a2 b2

What is computed of each sample in the same way is then computed for several of them at a time, in a vector. It is worth
while where a program has many samples, and too little is side by side within each, as in a mixture of Gaussians whose
rows have one to ten numbers. Whether it is, is counted before and after.

Each stretch of the buffer is a group of numbers; those that are taken have the same number of samples. All index maps
are found anew from the places of single numbers, and the results of a kernel come in the order of their new places.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.index_maps import Places, accesses
from micrograd.compiler.ir.program import Loop, Map, Reduction, Singles, Take, with_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.program import Access, Kernel, Program
    from micrograd.compiler.numbers import Integers

_SAMPLES = 64  # fewer are not worth it
_NUMBERS = 1 << 14  # that are computed one by one; fewer are not worth it
_VECTOR = 4  # fewer columns are no vector
_ALONE = 6  # numbers in vectors take as long as one alone
_SHARE = 0.2  # of the time they take at least
_GAIN = 0.7  # of the time before; else all stays as it is


def transposed(program: Program, stretches: Sequence[tuple[int, int]]) -> Program:
    """The program with the numbers of all samples side by side, if it has samples, and that is better.

    Args:
        program: as it was rolled.
        stretches: where groups of numbers begin, and how many they are; no inputs, and none of a loop.
    """
    samples = _samples(program)
    groups = [*stretches, *((start, len(numbers)) for start, numbers in program.constants)]
    if not samples or not groups:
        return program
    chosen = _Chosen(program, groups, samples)
    if not chosen.stretches:
        return program
    kernels = tuple(chosen.moved(kernel) for kernel in program.kernels)
    if sum(map(_time, kernels)) > _GAIN * sum(map(_time, program.kernels)):
        return program
    moved = []
    for start, numbers in program.constants:
        rows = numbers.reshape(samples, -1) if start in chosen.stretches else numbers
        moved.append((start, np.ascontiguousarray(rows.T).ravel()))
    return replace(program, kernels=kernels, outputs=chosen.places[program.outputs], constants=tuple(moved))


class _Chosen:
    """Which stretches are transposed, and where their numbers are then.

    Attributes:
        stretches: where they begin, and how many numbers they have.
        places: for each place in the buffer where its number is then.
    """

    def __init__(self, program: Program, stretches: Sequence[tuple[int, int]], samples: int) -> None:
        self._samples = samples
        self._starts, self._sizes = np.array(sorted(stretches), dtype=np.int64).reshape(-1, 2).T
        touched = {id(kernel): self._touched(kernel) for kernel in program.kernels}
        fixed = set[int]().union(*(touched[id(k)] for k in program.kernels if isinstance(k, Loop | Take)))
        possible = {
            number
            for number, size in enumerate(self._sizes.tolist())
            if size > samples and size % samples == 0 and number not in fixed
        }
        found = {number for kernel in program.kernels for number in self._of_samples(kernel)} & possible
        before: set[int] = set()
        while found != before:  # what is computed with them is taken too, so that it is in the same order
            before = found
            found = found.union(*(numbers & possible for numbers in touched.values() if numbers & found))
        self.stretches = {int(self._starts[number]): int(self._sizes[number]) for number in sorted(found)}
        self._kernels = {key for key, numbers in touched.items() if numbers & found}
        self.places = np.arange(program.size)
        for start, size in self.stretches.items():
            self.places[start : start + size] = start + np.arange(size).reshape(-1, samples).T.ravel()

    def moved(self, kernel: Kernel | Loop | Singles) -> Kernel | Loop | Singles:
        """A kernel where all numbers have their new places."""
        if id(kernel) not in self._kernels or isinstance(kernel, Loop | Take):
            return kernel
        if isinstance(kernel, Singles):
            return kernel.moved(self.places)
        targets, *operands = (self._places(kernel, access, terms) for access, terms in with_terms(kernel))
        order = np.argsort(targets[:, 0])
        places = [Places.of(operand[order]) for operand in operands]
        rows, columns, target, found = accesses(Places.of(targets[order]), places)
        given = iter([target, *found])
        return replace(kernel.changed(lambda _: next(given)), rows=rows, columns=columns)

    def _places(self, kernel: Reduction | Map, access: Access, terms: int) -> Integers:
        """Where the numbers of an operand are then: a row for each result, with a place for each term."""
        return self.places[access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms)]

    def _touched(self, kernel: Kernel | Loop | Singles) -> set[int]:
        """The numbers of the stretches that a kernel may read or write."""
        found: set[int] = set()
        for turns, inside in with_turns(kernel):
            for access, terms in with_terms(inside):
                first, last = reach(access, inside, terms, turns)
                low, high = self._numbers(np.array([first.min(), last.max()])).tolist()
                if low == high:  # all is in one stretch, or behind it
                    found |= {low} if first.min() < (self._starts + self._sizes)[low] else set()
                    continue
                numbers, ends = self._numbers(first), self._numbers(last)
                within = (numbers == ends) & (first < (self._starts + self._sizes)[numbers]) & (numbers >= 0)
                found |= {*np.flatnonzero(np.bincount(numbers[within])).tolist()}
                for across in np.flatnonzero(numbers != ends).tolist():
                    found |= {*range(int(numbers[across]), int(ends[across]) + 1)}
        return found

    def _numbers(self, places: Integers) -> Integers:
        """The number of the stretch that begins last before each place, or there; -1 where none does."""
        return np.searchsorted(self._starts, places, side="right") - 1

    def _of_samples(self, kernel: Kernel | Loop | Singles) -> list[int]:
        """The numbers of the stretches in which a kernel of samples goes from one sample to the next, row by row."""
        if isinstance(kernel, Loop | Take | Singles) or _outer(kernel) != self._samples or _is_in_vectors(kernel):
            return []
        found = []
        for access in (kernel.target, *kernel.accesses):
            number = int(self._numbers(np.array(access.base)))
            step = access.row_step if kernel.rows > 1 else access.column_step
            is_even = access.table is None and access.row_table is None and number >= 0
            if is_even and step * self._samples == self._sizes[number]:
                found.append(number)
        return found


def _outer(kernel: Reduction | Map) -> int:
    """How often the outer one of a kernel's two loops runs; where it has but one row, there is only the other one."""
    return kernel.rows if kernel.rows > 1 else kernel.columns


def reach(access: Access, kernel: Kernel | Singles, terms: int, turns: int) -> tuple[Integers, Integers]:
    """The first and the last place of each row of an operand, or of some of its elements, in all turns of a loop."""
    if access.table is not None:
        starts = access.table.ravel()
    elif access.row_table is not None:
        starts = access.row_table
    else:
        starts = access.base + access.row_step * np.arange(kernel.rows)
    steps = [(access.column_step, kernel.columns), (access.term_step, terms), (access.turn_step, turns)]
    distances = [step * (count - 1) for step, count in steps]
    return starts + sum(min(0, far) for far in distances), starts + sum(max(0, far) for far in distances)


def with_terms(kernel: Kernel | Singles) -> list[tuple[Access, int]]:
    """The index maps of a kernel's target and operands, with how many terms each has."""
    return [(kernel.target, 1), *kernel.reads]


def _samples(program: Program) -> int:
    """How many samples there are, by what is computed one by one in the same way for each; 0 if it is not worth it."""
    numbers: Counter[int] = Counter()
    for kernel in program.kernels:
        if isinstance(kernel, Reduction | Map) and _outer(kernel) >= _SAMPLES and not _is_in_vectors(kernel):
            numbers[_outer(kernel)] += kernel.rows * kernel.columns * kernel.terms
    ((samples, count),) = numbers.most_common(1) or [(0, 0)]
    is_much = count >= _NUMBERS and _ALONE * count > _SHARE * sum(map(_time, program.kernels))
    return samples if is_much else 0


def _is_in_vectors(kernel: Kernel | Singles) -> bool:
    """Whether several numbers can be computed at a time: columns or terms lie side by side."""
    has_columns = kernel.columns >= _VECTOR and kernel.target.column_step == 1
    if has_columns and all(access.has_columns_in_vectors for access in kernel.accesses):
        return True
    in_any_order = isinstance(kernel, Reduction) and not kernel.is_in_order
    return in_any_order and all(access.has_terms_in_vectors for access in kernel.accesses)


def _time(kernel: Kernel | Loop | Singles) -> int:
    """How long a kernel takes, as numbers in vectors."""
    if isinstance(kernel, Loop):
        return kernel.turns * sum(map(_time, kernel.kernels))
    return kernel.rows * kernel.columns * kernel.terms * (1 if _is_in_vectors(kernel) else _ALONE)
