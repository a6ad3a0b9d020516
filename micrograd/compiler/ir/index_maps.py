"""Index maps: where the results and the operands of a kernel lie, found from the positions of single numbers.

The product of a 3 by 2 matrix at 0 and a vector at 6 has three results of two terms. The first factors lie at

    0 1
    2 3          which is starts 0 2 4, and steps 0 1 for each of them:   2 * column + term
    4 5

and the second ones at starts 6 6 6, and the same steps: ``6 + term``. What is not even becomes a table.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.program import Access

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Integers

_VECTOR = 8  # numbers that a processor computes at once
_FEWEST = 4  # terms; fewer are never cut
_MANY = 40  # results, and rows at least where these stand for others; of fewer, one kernel is as fast as two


@dataclass(frozen=True)
class Positions:
    """Where the terms of several results lie.

    Attributes:
        starts: the position of each result's first term.
        steps: how far each term is from the first, where that is the same for all results.
        matrix: else the position of each term of each result.
        iteration_step: how far all of them move at each iteration of the loop.
    """

    starts: Integers
    steps: Integers | None
    matrix: Integers | None = None
    iteration_step: int = 0

    @staticmethod
    def of(matrix: Integers, iteration_step: int = 0) -> Positions:
        """Those in a matrix with a row for each result and a column for each term."""
        steps = matrix[0] - matrix[0, 0]
        if matrix.shape[1] == 1 or (matrix - matrix[:, :1] == steps).all():
            return Positions(matrix[:, 0], steps, None, iteration_step)
        return Positions(matrix[:, 0], None, matrix, iteration_step)

    def part(self, begin: int, end: int) -> Positions:
        """Some of the terms."""
        if self.steps is None:
            return Positions.of(self.positions()[:, begin:end], self.iteration_step)
        if end - begin == len(self.steps):
            return self
        steps = self.steps[begin:end]
        return Positions(self.starts + steps[0], steps - steps[0], None, self.iteration_step)

    def rows(self, which: Integers | slice) -> Positions:
        """Those of some results; a result may be there several times."""
        matrix = None if self.matrix is None else self.matrix[which]
        return Positions(self.starts[which], self.steps, matrix, self.iteration_step)

    def positions(self) -> Integers:
        """The position of each term of each result."""
        if self.matrix is not None:
            return self.matrix
        assert self.steps is not None  # one of the two is there
        return self.starts[:, None] + self.steps

    @cached_property
    def is_affine(self) -> bool:
        """Whether the terms of each result are evenly apart."""
        return self.steps is not None and are_even(self.steps)

    def lie_apart(self) -> bool:
        """Whether the terms do not lie side by side."""
        return bool((np.abs(np.diff(self.positions()[0] if self.steps is None else self.steps)) > 1).any())


def affine_runs(factors: list[Positions]) -> list[tuple[int, int]]:
    """Cut the terms into runs in which all factors step evenly. Many short runs are not worth it: then no cut."""
    even = [factor.steps for factor in factors if factor.steps is not None]
    if not even:
        return [(0, factors[0].positions().shape[1])]
    terms = len(even[0])
    if terms < _FEWEST:
        return [(0, terms)]
    runs, start = [], 0
    changes = (np.flatnonzero(np.diff(np.stack(even), n=2, axis=1).any(axis=0)) + 2).tolist()
    for change in [*changes, terms]:
        if change > start + 1 or change == terms:  # the step after a jump begins the next run
            runs.append((start, change))
            start = change
    return runs if len(runs) <= 1 + terms / 4 else [(0, terms)]


def blocks_of(factors: list[Positions], runs: list[tuple[int, int]]) -> list[Positions] | None:
    """Where the terms of the first run of each result lie, and how far each run is from the one before; None if uneven.

    The runs are like the iterations of a loop.
    """
    length = runs[0][1]
    are_alike = all(end - begin == length for begin, end in runs)
    steps = [each.steps.reshape(-1, length) for each in factors if are_alike and each.steps is not None]
    if len(steps) < len(factors) or any(
        (each - each[:, :1] != each[0]).any() or not are_even(each[:, 0]) for each in steps
    ):
        return None
    return [
        Positions(factor.starts, each[0], None, step(each[:, 0])) for factor, each in zip(factors, steps, strict=True)
    ]


def stretches(positions: Sequence[Positions]) -> list[slice]:
    """The results; or two parts of them, of different lengths, where all positions step evenly in each of them.

    As one kernel they would have a table: for 10 weights and 40 numbers of 5 rows, and of 29 for 48 numbers.
    """
    count = len(positions[0].starts)
    if count < _MANY or not all(each.is_affine for each in positions):
        return [slice(None)]
    found = {part for each in positions for part in _breaks(each.starts).tolist()}
    ends = sorted(found) if len(found) == 1 and 2 * min(found) != count else []
    return [slice(begin, end) for begin, end in pairwise([0, *ends, count])]


def accesses(target: Positions, operands: list[Positions]) -> tuple[int, int, Access, list[Access]]:
    """Index maps for results and operands.

    Returns:
        How many rows and columns the results are seen as, their map, and that of each operand.
    """
    columns = len(target.starts)
    for positions in (target, *operands):
        if positions.is_affine:
            columns = math.gcd(columns, _even_columns(positions.starts))
    for positions in (target, *operands):
        if not positions.is_affine:  # what stays, or steps on, for a vector of columns needs a table of rows only
            even = math.gcd(columns, _even_columns(positions.positions()))
            columns = even if even >= _VECTOR else columns
    rows = len(target.starts) // columns
    of_target, *of_operands = [_access(positions, rows, columns) for positions in (target, *operands)]
    return rows, columns, of_target, of_operands


def _even_columns(positions: Integers) -> int:
    """In rows of how many columns each term is as far from that in the column before, everywhere; 0: of any number.

    Args:
        positions: where the terms of each column are, or where its first one is.
    """
    return int(np.gcd.reduce(_breaks(positions)))


def _breaks(positions: Integers) -> Integers:
    """At which columns a term is not as far from that in the column before as at the first ones."""
    distances = positions[1:] - positions[:-1]
    differ = distances != distances[(slice(1),) * distances.ndim]
    return np.flatnonzero(differ if differ.ndim == 1 else differ.any(axis=1)) + 1


def _access(positions: Positions, rows: int, columns: int) -> Access:
    if positions.steps is None or not positions.is_affine:
        return _gather(positions.positions().reshape(rows, columns, -1), positions.iteration_step)
    starts, iteration_step = positions.starts[::columns], positions.iteration_step
    column_step, term_step = step(positions.starts[:columns]), step(positions.steps)
    if not are_even(starts):
        return Access(0, 0, column_step, term_step, np.ascontiguousarray(starts)[:, None, None], iteration_step)
    return Access(int(starts[0]), step(starts), column_step, term_step, iteration_step=iteration_step)


def _gather(positions: Integers, iteration_step: int) -> Access:
    """The index map of what is not affine: a table. Where columns are evenly apart, it is one of terms only."""
    starts, column_step = positions[:, :1], step(positions[0, :, 0])
    if (positions - starts == column_step * np.arange(positions.shape[1])[None, :, None]).all():
        return Access(column_step=column_step, table=np.ascontiguousarray(starts), iteration_step=iteration_step)
    return Access(table=np.ascontiguousarray(positions), iteration_step=iteration_step)


def are_even(positions: Integers) -> bool:
    """Whether each position is as far from the one before as any other."""
    distances = positions[1:] - positions[:-1]
    return len(distances) < 2 or bool((distances == distances[0]).all())


def step(positions: Integers) -> int:
    """How far apart are positions that are evenly apart."""
    return int(positions[1] - positions[0]) if len(positions) > 1 else 0


def runs_of_one(factors: list[list[int]]) -> list[tuple[int, int]]:
    """As affine_runs, given where the terms of a single result lie."""
    terms = len(factors[0])
    return (
        [(0, terms)] if terms < _FEWEST else affine_runs([Positions.of(np.array([positions])) for positions in factors])
    )


def access_of_one(positions: list[int], iteration_step: int) -> Access:
    """The index map of an operand of a single result, given where its terms lie."""
    term_step = positions[1] - positions[0] if len(positions) > 1 else 0
    if len(positions) > 2 and any(after - before != term_step for before, after in pairwise(positions)):
        return Access(table=np.array(positions).reshape(1, 1, -1), iteration_step=iteration_step)
    return Access(positions[0], term_step=term_step, iteration_step=iteration_step)
