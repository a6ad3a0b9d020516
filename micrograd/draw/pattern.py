"""Where the entries of a sparse matrix are, as a picture: a square for each entry.

    [[x, y, 0],         two squares side by side
     [0, y, z]]         two more below, one to the right

Of a matrix that is larger than the picture, a square stands for all entries of a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

_SIDE = 480  # pixels of the longer side
_MOST = 480  # squares along it


class Pattern(csr_array):  # type: ignore[misc]  # SciPy has no types
    """A sparse matrix of bools that a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return svg_of_pattern(self)


def svg_of_pattern(matrix: Any) -> str:
    """The picture of a sparse matrix, as the text of an SVG file.

    Args:
        matrix: a sparse matrix or array of SciPy.

    Example:
        >>> picture = svg_of_pattern(csr_array([[1, 1, 0], [0, 1, 0]]))
        >>> picture.count("M"), "3 of 6 entries" in picture
        (2, True)
    """
    entries = matrix.tocoo()
    rows, columns = matrix.shape
    block = max(-(-max(rows, columns, 1) // _MOST), 1)  # rows and columns of a square
    cells = np.unique(np.stack([entries.row // block, entries.col // block], axis=1), axis=0)
    down, across = -(-rows // block), -(-columns // block)
    unit = _SIDE / max(down, across, 1)
    width, height = max(across * unit, 1.0), max(down * unit, 1.0)
    text = f"{entries.nnz:,} of {rows * columns:,} entries"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width + 2:.0f}" height="{height + 28:.0f}" role="img" '
        f'viewBox="-1 -1 {width + 2:g} {height + 28:g}"><title>{rows:,} rows, {columns:,} columns: {text}</title>'
        f'<rect x="-1" y="-1" width="{width + 2:g}" height="{height + 28:g}" fill="white"/>'
        f'<rect width="{width:g}" height="{height:g}" fill="none" stroke="#bbbbbb"/>'
        f'<path transform="scale({unit:g})" fill="#0072b2" d="{_squares(cells)}"/>'
        f'<text y="{height + 18:g}" font-family="sans-serif" font-size="13" fill="#333333">{text}</text></svg>'
    )


def _squares(cells: Any) -> str:
    """The squares of a path, those that are side by side as one."""
    parts = []
    starts = np.flatnonzero(np.append(True, (np.diff(cells[:, 0]) != 0) | (np.diff(cells[:, 1]) != 1)))
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True) if len(cells) else ():
        row, column = cells[start].tolist()
        parts.append(f"M{column} {row}h{end - start}v1h-{end - start}z")
    return "".join(parts)
