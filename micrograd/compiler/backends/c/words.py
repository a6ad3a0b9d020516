"""Numbers by themselves, as a table that one small function of the file goes through.

Where hardly two operations of a program are alike, each is a statement of its own, and a compiler of C takes minutes
over tens of thousands of them. So if there are too many for that, they become words:

    n, target, n runs                         a sum of products, in runs of the same coefficient, each of which is
                                              count, coefficient, (first, second) * count
    -k, target, operands                      the result of function number k
    0, times, one of these, steps             the same so often, its positions as many steps further each time

All but the counts are positions of one array. A product of one factor has 1 for the other, which is exact.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.c.regions import Block, Words
from micrograd.compiler.ir.program import Map, Reduction, Take, written_out

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.backends.c.regions import Item
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.engine.primitive import Primitive

_MANY = 30_000  # terms in all statements, over which gcc 12 takes about 4 s with -O3
_MANY_BESIDE_LOOPS = 1000  # statements of a program that has others, over which it takes about 2 s
_LOOPS = 64  # kernels that are loops, over which compilers are busy without statements
_FEWEST = 16  # in a row that are worth a table
_SMALL = 64  # terms for each statement that a kernel would be
_REPEATS = 4  # that are shorter as one


def in_words(blocks: list[Block], program: Program) -> tuple[list[Block], Program]:
    """The blocks, with tables where there would be too many statements, and the program with what these read."""
    straight = [kernel for block in blocks if block.iterations == 1 for kernel in block.kernels]
    small = [kernel for kernel in straight if _is_small(kernel)]
    has_loops = len(straight) - len(small) > _LOOPS or any(block.iterations > 1 for block in blocks)
    terms = sum(kernel.rows * kernel.columns * kernel.terms for kernel in small)
    if sum(map(_statements, straight)) <= _MANY_BESIDE_LOOPS or (terms <= _MANY and not has_loops):
        return blocks, program
    constants: dict[float, int] = {}  # and their positions, which come after all others

    def position(number: float) -> int:
        return constants.setdefault(number, program.size + len(constants))

    made = [block if block.iterations > 1 else Block(1, tuple(_shortened(block.kernels, position))) for block in blocks]
    numbers = np.array([*constants])
    added = (*program.constants, (program.size, numbers))
    return made, replace(program, size=program.size + len(numbers), constants=added)


def _shortened(kernels: Sequence[Item], position: Callable[[float], int]) -> list[Item]:
    found: list[Item] = []
    for is_small, group in groupby(kernels, _is_small):
        row: list[Any] = [*group]
        found += (
            [_words([one for kernel in row for one in written_out(kernel)], position)]
            if (is_small and len(row) >= _FEWEST)
            else row
        )
    return found


def _statements(kernel: Item) -> int:
    """How many a kernel would be."""
    return len(kernel.segments) if isinstance(kernel, Reduction) and not kernel.is_in_order else 1


def _is_small(kernel: Item) -> bool:
    if isinstance(kernel, Take) or (isinstance(kernel, Reduction) and kernel.largest):
        return False
    return kernel.rows * kernel.columns * kernel.terms <= _SMALL * _statements(kernel)


def _words(kernels: Sequence[Item], position: Callable[[float], int]) -> Words:
    """The table of kernels of one number each."""
    words: list[int] = []
    kinds: list[int] = []  # where words are no positions
    numbers: dict[Primitive, int] = {}
    one = position(1.0)
    starts: list[int] = []
    for kernel in kernels:
        starts.append(len(words))
        kinds.append(len(words))
        if isinstance(kernel, Map):
            words += [-1 - numbers.setdefault(kernel.primitive, len(numbers)), kernel.target.base]
            words += [access.base for access in kernel.operands]
            continue
        assert isinstance(kernel, Reduction)
        terms = [(one, position(0.0), one)] * kernel.from_zero
        for part in kernel.segments:
            second = one if part.second is None else part.second.base
            terms.append((position(part.coefficient), part.first.base, second))
        runs = [[*run] for _, run in groupby(terms, itemgetter(0))]
        words += [len(runs), kernel.target.base]
        for run in runs:
            kinds.append(len(words))
            words += [len(run), run[0][0], *(factor for _, *factors in run for factor in factors)]
    is_position = np.ones(len(words), dtype=bool)
    is_position[kinds] = False
    return Words(np.array(words), is_position, np.array(starts[1:]), tuple(numbers))


def folded(words: Integers, is_position: Booleans, starts: Integers) -> list[int]:
    """Words in which the same is said once where it is repeated with steps.

    Args:
        words: without repeats.
        is_position: which of them are positions.
        starts: where the second result begins, the third, and so on.
    """
    each = np.split(words, starts)
    same = [part.tobytes() for part in np.split(np.where(is_position, -1, words), starts)]
    found: list[int] = []
    position = 0
    while position < len(each):
        first, end = each[position], position + 1
        while end < len(each) and same[end] == same[position]:
            if (each[end] - each[end - 1] != each[position + 1] - first).any():
                break
            end += 1
        if end - position >= _REPEATS:
            found += [0, end - position, *first.tolist(), *(each[position + 1] - first)[1:].tolist()]
        else:
            found += [word for one in each[position:end] for word in one.tolist()]
        position = end
    return found
