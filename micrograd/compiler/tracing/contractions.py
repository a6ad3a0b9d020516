"""Contractions: ``np.einsum`` of symbols as products of matrices, which are recorded as a whole.

    nij,njk->nik       x @ y
    ij,kj->ik          x @ y.T
    ni,ijk,nj->nk      of x and w, which gives njk; and then of this and y

An index of both operands that is in the result, as n, numbers matrices. One that is not, as j, is summed over. All
others are indices of rows or of columns.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from micrograd.compiler.tracing import lanes


def contracted(subscripts: Any, *operands: Any, **settings: Any) -> Any:
    """The result of ``np.einsum``; None where NumPy's loops have to go through the elements."""
    if type(subscripts) is not str or len(operands) < 2 or not settings.keys() <= {"optimize"}:
        return None
    given, arrow, result = subscripts.replace(" ", "").partition("->")
    indices = given.split(",")
    if not arrow:  # then these are the indices that come once, in alphabetical order
        result = "".join(sorted(index for index, count in Counter("".join(indices)).items() if count == 1))
    if not _are_plain(indices, result, operands):
        return None
    found, of_found = operands[0], indices[0]
    for number, (operand, of_operand) in enumerate(zip(operands[1:], indices[1:], strict=True), 2):
        made = _of_two(found, of_found, operand, of_operand, {*result, *"".join(indices[number:])})
        if made is None:
            return None
        found, of_found = made
    array = found.transpose([of_found.index(index) for index in result])
    return array if result else array[()]


def _are_plain(indices: list[str], result: str, operands: tuple[Any, ...]) -> bool:
    """Whether operands are arrays with an axis for each index, which stands for as many elements in all of them."""
    if len(indices) != len(operands) or not all(isinstance(each, np.ndarray) for each in operands):
        return False
    if any(len(set(each)) < len(each) for each in (*indices, result)) or not all(map(str.isalpha, indices)):
        return False
    if any(len(each) != operand.ndim for each, operand in zip(indices, operands, strict=True)):
        return False
    lengths = {pair for each, operand in zip(indices, operands, strict=True)
               for pair in zip(each, operand.shape, strict=True)}  # fmt: skip
    return len(lengths) == len({index for index, _ in lengths}) and {*result} <= {index for index, _ in lengths}


def _of_two(x: Any, of_x: str, y: Any, of_y: str, kept: set[str]) -> tuple[Any, str] | None:
    """The product of two arrays, and its indices; None where it is no product of matrices.

    Args:
        x: an array.
        of_x: its indices.
        y: another array.
        of_y: its indices.
        kept: the indices that are not summed over.
    """
    length = dict(zip(of_x + of_y, x.shape + y.shape, strict=True))
    both = [index for index in of_x if index in of_y]
    stacked, summed = ([index for index in both if (index in kept) is stays] for stays in (True, False))
    rows, columns = ([index for index in one if index not in other] for one, other in ((of_x, of_y), (of_y, of_x)))
    if not kept.issuperset((*rows, *columns)):
        return None  # a sum over one of them

    def arranged(array: Any, indices: str, *groups: list[str]) -> Any:
        """The array with an axis for each stacked index, and one for all indices of each group."""
        order = [indices.index(index) for index in (*stacked, *groups[0], *groups[1])]
        shape = [*map(length.__getitem__, stacked), *(math.prod(map(length.__getitem__, group)) for group in groups)]
        return array.transpose(order).reshape(shape)

    found = lanes.product(arranged(x, of_x, rows, summed), arranged(y, of_y, summed, columns))
    if found is None:
        return None
    indices = "".join([*stacked, *rows, *columns])
    return found.reshape([length[index] for index in indices]), indices
