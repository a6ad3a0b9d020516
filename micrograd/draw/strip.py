"""Many numbers as colours: a row of them, or a matrix, in Graphviz's table language.

Blue is positive and orange negative, the stronger the larger beside the others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from micrograd.draw.style import NEGATIVE, NOT_A_NUMBER, PALE, POSITIVE, mixed

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVELS = 5  # of colour, for each sign
LENGTH, HEIGHT = 126, 11  # points of a strip
MOST_CELLS = 63  # of a strip
SIDE, MOST_ROWS = 60, 20  # points, and cells, of the longer side of a heat map


def strip(numbers: Sequence[float]) -> str:
    """A row of numbers; of more than fit, some that are evenly spread.

    Example:
        >>> strip([1.0, -2.0]).count("<td")
        2
    """
    shown = [numbers[index] for index in _spread(len(numbers), MOST_CELLS)]
    width = LENGTH // len(shown)
    return _table([[(number, width, HEIGHT) for number in shown]])


def heat_map(rows: Sequence[Sequence[float]]) -> str:
    """A matrix of numbers; of more rows or columns than fit, some that are evenly spread.

    Example:
        >>> heat_map([[1.0, -2.0, 0.5], [0.0, 1.0, 3.0]]).count("<td")
        6
    """
    shown = [[row[column] for column in _spread(len(row), MOST_ROWS)] for row in _picked(rows)]
    size = max(2, min(12, SIDE // max(len(shown), len(shown[0]))))
    return _table([[(number, size, size) for number in row] for row in shown])


def _picked(rows: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    return [rows[index] for index in _spread(len(rows), MOST_ROWS)]


def _spread(count: int, most: int) -> list[int]:
    """So many places of count, at most, from the first to the last."""
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def _table(cells: list[list[tuple[float, int, int]]]) -> str:
    numbers = [number for row in cells for number, _, _ in row]
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    rows = "".join(
        f"<tr>{''.join(_cell(_colour(number, largest), width, height) for number, width, height in row)}</tr>"
        for row in cells
    )
    return f'<table border="0" cellborder="0" cellspacing="0" cellpadding="0">{rows}</table>'


def _cell(colour: str, width: int, height: int) -> str:
    return f'<td width="{width}" height="{height}" bgcolor="{colour}"></td>'


def _colour(number: float, largest: float) -> str:
    """The colour of a number, by the root of its share of the largest, in a few levels."""
    if math.isnan(number):
        return NOT_A_NUMBER
    if number == 0:
        return PALE
    share = math.sqrt(abs(number) / largest) if math.isfinite(number) else 1.0
    level = max(1, math.ceil(share * LEVELS))
    return mixed(POSITIVE if number > 0 else NEGATIVE, 0.12 + 0.88 * level / LEVELS)
