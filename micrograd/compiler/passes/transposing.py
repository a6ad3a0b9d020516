"""Transposing: numbers that belong to samples are laid out so that those of all samples stand side by side.

A program computes one sample after the other, and so its numbers come to lie in the buffer: of two samples a and b of
three numbers each,

    a0 a1 a2 b0 b1 b2        become        a0 b0 a1 b1 a2 b2

What is computed of each sample in the same way is then computed for several of them at a time, in a vector. It is worth
while where a program has many samples, and too little is side by side within each, as in a mixture of Gaussians whose
rows have one to ten numbers. Whether it is, is counted before and after.

Each array that is taken has the same number of samples. All index maps are derived again from the indices of single
numbers, and the results of a kernel come in the order of their new indices.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.arrays import Arrays
from micrograd.compiler.ir.index_maps import Positions, accesses
from micrograd.compiler.ir.program import Loop, Map, Reduction, Singles, Take

if TYPE_CHECKING:
    from micrograd.compiler.ir.program import Access, Kernel, Program
    from micrograd.compiler.numbers import Integers

_SAMPLES = 64  # fewer are not worth it
_NUMBERS = 1 << 14  # that are computed one by one, or as long as so many; fewer are not worth it
_VECTOR, _LONG = 4, 8  # fewer columns are no vector, or a short one
_ALONE, _SHORT = 6, 3  # numbers in vectors take as long as one alone, and as one in short vectors, row by row
_SHARE = 0.2  # of the time they take at least
_TRIED = 3  # numbers of samples, as rows of a matrix of pairs may be samples, and pairs too
_GAIN = 0.75  # of the time before; else all stays as it is


def has_samples(program: Program) -> bool:
    """Whether the program has so many samples, and computes so much of each, that it may be worth it."""
    return bool(_samples(program, sum(map(_time, program.kernels)), are_few=False))


def transposed(program: Program, are_few: bool = False) -> Program:
    """The program with the numbers of all samples side by side, if it has samples, and that is better.

    Args:
        program: the program.
        are_few: whether its samples stand for more of them, so that it is worth it for any number.
    """
    time = sum(map(_time, program.kernels))
    found, least = None, _GAIN * time
    for samples in _samples(program, time, are_few):
        chosen = _Chosen(program, samples)
        kernels = tuple(chosen.moved(kernel) for kernel in program.kernels) if chosen.arrays else program.kernels
        if (taken := sum(map(_time, kernels))) <= least:
            found, least = (samples, chosen, kernels), taken
    if found is None:
        return program
    samples, chosen, kernels = found
    moved = []
    for start, numbers in program.constants:
        rows = numbers.reshape(samples, -1) if start in chosen.arrays else numbers
        moved.append((start, np.ascontiguousarray(rows.T).ravel()))
    return replace(program, kernels=kernels, outputs=chosen.positions[program.outputs], constants=tuple(moved))


class _Chosen:
    """Which arrays are transposed, and where their numbers are then.

    Attributes:
        arrays: where they begin, and how many numbers they have.
        positions: for each position in the buffer where its number is then.
    """

    def __init__(self, program: Program, samples: int) -> None:
        self._samples, self._arrays = samples, Arrays(program)
        self._sizes = self._arrays.ends - self._arrays.starts
        touched = {id(kernel): self._arrays.of(kernel) for kernel in program.kernels}
        given = self._arrays.at(np.concatenate([program.inputs, program.seeds, program.of_gradients]))
        fixed = set(given.tolist()).union(*(touched[id(k)] for k in program.kernels if isinstance(k, Loop | Take)))
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
        self.arrays = {int(self._arrays.starts[number]): int(self._sizes[number]) for number in sorted(found)}
        self._kernels = {key for key, numbers in touched.items() if numbers & found}
        self.positions = np.arange(program.size)
        for start, size in self.arrays.items():
            self.positions[start : start + size] = start + np.arange(size).reshape(-1, samples).T.ravel()

    def moved(self, kernel: Kernel | Loop | Singles) -> Kernel | Loop | Singles:
        """A kernel where all numbers have their new positions."""
        if id(kernel) not in self._kernels or isinstance(kernel, Loop | Take):
            return kernel
        if isinstance(kernel, Singles):
            return kernel.moved(self.positions)
        targets, *operands = (
            self._positions(kernel, access, terms) for access, terms in [(kernel.target, 1), *kernel.reads]
        )
        order = np.argsort(targets[:, 0])
        positions = [Positions.of(operand[order]) for operand in operands]
        rows, columns, target, found = accesses(Positions.of(targets[order]), positions)
        given = iter([target, *found])
        return replace(kernel.changed(lambda _: next(given)), rows=rows, columns=columns)

    def _positions(self, kernel: Reduction | Map, access: Access, terms: int) -> Integers:
        """Where the numbers of an operand are then: a row for each result, with a position for each term."""
        return self.positions[access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms)]

    def _of_samples(self, kernel: Kernel | Loop | Singles) -> list[int]:
        """The numbers of the arrays in which a kernel of samples goes from one sample to the next, row by row."""
        if isinstance(kernel, Loop | Take | Singles) or _outer(kernel) != self._samples or _time_of_one(kernel) == 1:
            return []
        found = []
        for access in (kernel.target, *kernel.accesses):
            number = int(self._arrays.at(np.array(access.base)))
            step = access.row_step if kernel.rows > 1 else access.column_step
            is_even = access.table is None
            if is_even and step * self._samples == self._sizes[number]:
                found.append(number)
        return found


def _outer(kernel: Reduction | Map) -> int:
    """How often the outer one of a kernel's two loops runs; where it has but one row, there is only the other one."""
    return kernel.rows if kernel.rows > 1 else kernel.columns


def _samples(program: Program, time: int, are_few: bool) -> list[int]:
    """How many samples there may be, by what is computed slowly in the same way for each, where it is worth it.

    Args:
        program: whose numbers are looked at.
        time: how long all of it takes.
        are_few: whether it is worth it for any number of samples.
    """
    fewest, shortest = (_VECTOR, 0) if are_few else (_SAMPLES, _ALONE * _NUMBERS)
    times: Counter[int] = Counter()
    for kernel in program.kernels:
        if isinstance(kernel, Reduction | Map) and _outer(kernel) >= fewest and _time_of_one(kernel) > 1:
            times[_outer(kernel)] += _time(kernel)
    least = max(shortest, _SHARE * time)
    return [samples for samples, of_samples in times.most_common(_TRIED) if of_samples >= least]


def _time_of_one(kernel: Kernel | Singles) -> int:
    """How long a number of a kernel takes, as numbers in long vectors, in which columns or terms lie side by side."""
    has_columns = kernel.columns >= _VECTOR and kernel.target.column_step == 1
    if has_columns and all(access.has_columns_in_vectors for access in kernel.accesses):
        return _SHORT if kernel.columns < _LONG else 1
    in_any_order = isinstance(kernel, Reduction) and not kernel.is_in_order
    return 1 if in_any_order and all(access.has_terms_in_vectors for access in kernel.accesses) else _ALONE


def _time(kernel: Kernel | Loop | Singles) -> int:
    """How long a kernel takes, as numbers in vectors."""
    if isinstance(kernel, Loop):
        return kernel.iterations * sum(map(_time, kernel.kernels))
    return kernel.rows * kernel.columns * kernel.terms * _time_of_one(kernel)
