"""Alike: which rows of matrices of integers are the same.

    3 5 0
    3 7 0        the first row and the last one are the same, and stand side by side once the rows are sorted
    3 5 0

Most columns are one number all the way down, as those of nodes that are made alike are, and need no sorting.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.numbers import Integers


def alike_rows(*signatures: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Each different row of the matrices, laid side by side, and the numbers of the rows that are the same."""
    order, starts = _grouped(*signatures)
    for begin, end in pairwise([*starts.tolist(), len(order)]):
        where = order[begin:end]
        yield np.concatenate([matrix[where[0]] for matrix in signatures]), where


class RowsByLevel:
    """Which rows are on each level, looked up as they are asked for: those with the same key are together.

    Args:
        levels: of each row.
        keys: of each row.
    """

    def __init__(self, levels: Integers, *keys: Integers) -> None:
        self._order, starts = _grouped(np.stack([*keys, levels], axis=1))
        self._bounds = [*starts.tolist(), len(levels)]
        self._groups = np.searchsorted(levels[self._order[starts]], np.arange(levels.max(initial=-1) + 2)).tolist()

    def at(self, level: int) -> list[Integers]:
        """The rows of a level, in order."""
        groups, bounds = self._groups[level : level + 2], self._bounds
        return [self._order[bounds[group] : bounds[group + 1]] for group in range(*groups)] if len(groups) > 1 else []


def different_rows(rows: Integers) -> tuple[Integers, Integers]:
    """Where each different row comes first, in the order of the rows; and for each row, which of these it is."""
    order, starts = _grouped(rows[:, ::-1])
    which = np.empty(len(rows), dtype=np.int64)
    which[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return order[starts], which


def _grouped(*matrices: Integers) -> tuple[Integers, Integers]:
    """The order in which rows are sorted, by the last column first, and where in it each different row starts."""
    count = len(matrices[0])
    differ = [np.flatnonzero((matrix != matrix[:1]).any(axis=0)) for matrix in matrices if count > 1]
    if sum(map(len, differ)) > count:  # else 1,000 steps of Runge-Kutta take 0.015 s longer, of 0.28, at the first call
        rows = [matrix[:, columns] for matrix, columns in zip(matrices, differ, strict=True)]
        return _listed(np.concatenate(rows, axis=1)[:, ::-1])
    varying = [
        matrix[:, column] for matrix, columns in zip(matrices, differ, strict=False) for column in columns.tolist()
    ]
    if not varying:
        return np.arange(count), np.arange(min(count, 1))
    order, is_first = np.lexsort(varying), np.zeros(count, dtype=bool)
    is_first[0] = True
    for key in varying:
        placed = key[order]
        is_first[1:] |= placed[1:] != placed[:-1]
    return order, np.flatnonzero(is_first)


def _listed(rows: Integers) -> tuple[Integers, Integers]:
    """The same for few long rows, each compared as a whole, and by its first column first."""
    # Without a sign, and the most significant byte first, numbers compare as their bytes do.
    keys = [(row.view(np.uint64) + np.uint64(1 << 63)).astype(">u8").tobytes() for row in rows]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    changes = [position for position, (one, after) in enumerate(pairwise(order), 1) if keys[one] != keys[after]]
    return np.array(order), np.array([0, *changes])
