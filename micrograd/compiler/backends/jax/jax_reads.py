"""Reads: how an operand is read from the arrays that hold the numbers of a buffer.

JAX has no buffer that is written to. Each kernel makes a new array, and Positions knows which array holds the number of
each position of the buffer now, and where in it:

    positions = Positions(12)
    matrix = positions.add(np.arange(6))                  # 3 rows of 2 numbers
    reader = positions.reader(np.array([[0, 2, 4], [1, 3, 5]]))
    reader(arrays)                                     # arrays[matrix].reshape(3, 2).T

A matrix that lies evenly in one array is a slice, a reshape and a transpose of it, which cost nothing where XLA finds
something to fuse them with. An axis may have two parts, as that of 0, 0, 0, 1, 1, 1 has. What lies in several arrays
is a concatenation, and the rest is gathered.
An axis along which nothing changes has length 1 in what is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Integers

Reader: TypeAlias = Callable[[Any], Any]  # of a sequence of arrays; inside of loops, of what an iteration can read

NO_POSITION = -1
_PIECES = 64  # of more pieces, numbers are gathered


class Positions:
    """Which array holds the number of each position, and where in it.

    Args:
        size: how many positions there are. At first, all are those of array 0, which is a single 0.

    Attributes:
        array: for each position the number of its array.
        offset: and where in that array it is.
        lengths: how many numbers each array has.
    """

    def __init__(self, size: int) -> None:
        self.array = np.zeros(size, dtype=np.int64)
        self.offset = np.zeros(size, dtype=np.int64)
        self.lengths = [1]

    def add(self, positions: Integers) -> int:
        """Another array holds the numbers of these positions from now on, in this order; gives its number.

        Args:
            positions: the positions; NO_POSITION for a number that nothing reads.
        """
        number = len(self.lengths)
        indices = np.flatnonzero(positions != NO_POSITION)
        self.array[positions[indices]] = number
        self.offset[positions[indices]] = indices
        self.lengths.append(len(positions))
        return number

    def reader(self, positions: Integers) -> Reader:
        """A function of the arrays that gives the numbers of these positions as they are now."""
        return reader_of(self.array[positions], self.offset[positions], self.lengths)


def reader_of(array: Integers, offset: Integers, lengths: Sequence[int]) -> Reader:
    """A function of arrays that reads numbers of them.

    Args:
        array: for each number which array it is in; of any shape.
        offset: where in that array it is.
        lengths: how many numbers each array has.
    """
    for axis, count in enumerate(array.shape):
        if count > 1 and _is_still(array, axis) and _is_still(offset, axis):
            array, offset = (np.take(found, [0], axis=axis) for found in (array, offset))
    if not array.size:
        return lambda arrays: jnp.zeros(array.shape)
    if (array == array.flat[0]).all():
        return _reader_of_one(int(array.flat[0]), offset)
    changes = [_changes(array, axis) for axis in range(array.ndim)]
    axis = min((axis for axis, found in enumerate(changes) if len(found)), key=lambda axis: len(changes[axis]))
    if len(changes[axis]) < _PIECES:
        return _reader_of_pieces(array, offset, lengths, axis, changes[axis])
    used = distinct(array)
    starts = np.zeros(len(lengths), dtype=np.int64)
    starts[used] = np.cumsum([0, *(lengths[number] for number in used[:-1])])
    indices = starts[array] + offset
    gathered = _gather_of(indices)
    return lambda arrays: gathered(jnp.concatenate([arrays[number] for number in used]))


def _is_still(numbers: Integers, axis: int) -> bool:
    """Whether nothing changes along an axis."""
    return bool((numbers == np.take(numbers, [0], axis=axis)).all())


def _changes(array: Integers, axis: int) -> Integers:
    """Where something changes along an axis."""
    others = tuple(other for other in range(array.ndim) if other != axis)
    return np.flatnonzero((np.diff(array, axis=axis) != 0).any(axis=others)) + 1


def _gather_of(indices: Integers) -> Callable[[Any], Any]:
    """What gathers numbers of a flat array: in whole runs, where numbers stand side by side along an axis."""
    mode = lax.GatherScatterMode.PROMISE_IN_BOUNDS
    for axis in reversed(range(indices.ndim)):
        if indices.shape[axis] > 1 and (np.diff(indices, axis=axis) == 1).all():
            starts, length = np.take(indices, 0, axis=axis)[..., None], (indices.shape[axis],)
            runs = lax.GatherDimensionNumbers(offset_dims=(axis,), collapsed_slice_dims=(), start_index_map=(0,))
            return lambda array: lax.gather(array, starts, runs, length, mode=mode)
    return lambda array: array.at[indices].get(mode=mode)


def _reader_of_pieces(
    array: Integers, offset: Integers, lengths: Sequence[int], axis: int, changes: Integers
) -> Reader:
    """Pieces that are read by themselves, one after the other along an axis."""
    pieces = [
        (reader_of(piece, positions, lengths), piece.shape)
        for piece, positions in zip(
            np.split(array, changes, axis=axis), np.split(offset, changes, axis=axis), strict=True
        )
    ]

    def read(arrays: Sequence[Any]) -> Any:
        return jnp.concatenate([jnp.broadcast_to(piece(arrays), shape) for piece, shape in pieces], axis=axis)

    return read


def _reader_of_one(number: int, offset: Integers) -> Reader:
    """Numbers of one array."""
    start = int(offset.flat[0])
    along = [np.moveaxis(offset, axis, 0).reshape(count, -1)[:, 0] - start for axis, count in enumerate(offset.shape)]
    grids = [_grid_of(numbers) for numbers in along]
    is_sum = np.array_equal(start + sum(np.ix_(*along)), offset)
    view = _view_of(start, grids) if is_sum else None
    if view is None:
        gathered = _gather_of(offset)
        return lambda arrays: gathered(arrays[number])
    return lambda arrays: view(arrays[number])


def _grid_of(numbers: Integers) -> list[tuple[int, int]] | None:
    """A sequence as runs of numbers evenly apart, whose starts are, too: how far, and how many, for both; or None.

    Example:
        >>> _grid_of(np.array([0, 1, 2, 10, 11, 12])), _grid_of(np.array([0, 3, 6])), _grid_of(np.array([0, 1, 3]))
        ([(10, 2), (1, 3)], [(3, 3)], None)
    """
    count, steps = len(numbers), np.diff(numbers)
    if (steps == steps[:1]).all():
        return [(int(steps.sum()) // max(count - 1, 1), count)]
    run = int(np.argmax(steps != steps[0])) + 1
    grid = [(int(numbers[run] - numbers[0]), count // run), (int(steps[0]), run)]
    found = np.add.outer(*(step * np.arange(length) for step, length in grid)).ravel()
    return grid if np.array_equal(found, numbers - numbers[0]) else None


def _view_of(start: int, grids: Sequence[list[tuple[int, int]] | None]) -> Reader | None:
    """What reads numbers of a flat array with slices, reshapes and a transpose.

    Args:
        start: where the first is.
        grids: for each axis of the result its parts: how far apart numbers are along each, and how many.

    Returns:
        None where numbers overlap, as the windows of a convolution do, or are not evenly apart.
    """
    known = [grid for grid in grids if grid is not None]
    if len(known) < len(grids):
        return None
    parts = [part for grid in known for part in grid]
    several = [position for position, (step, count) in enumerate(parts) if count > 1 and step]
    backwards = [position for position in several if parts[position][0] < 0]
    start += sum(parts[position][0] * (parts[position][1] - 1) for position in backwards)
    furthest = sorted(several, key=lambda position: -abs(parts[position][0]))
    axes = [(abs(parts[position][0]), parts[position][1]) for position in furthest]
    extent = 1
    for step, count in reversed(axes):
        if extent > step:
            return None
        extent = step * (count - 1) + extent
    order = [furthest.index(position) for position in several]
    still = [count if position in several else 1 for position, (_, count) in enumerate(parts)]
    full, shape = [count for _, count in parts], [math.prod(c for _, c in grid) for grid in known]

    def read(array: Any) -> Any:
        result = _sliced(array, start, axes)
        if order != sorted(order):
            result = lax.transpose(result, order)
        if backwards:
            result = lax.rev(lax.reshape(result, still), backwards)
        if still != full:
            result = jnp.broadcast_to(lax.reshape(result, still), full)
        return lax.reshape(result, shape)

    return read


def _sliced(array: Any, start: int, axes: Sequence[tuple[int, int]]) -> Any:
    """Numbers along the last axis, from a start on: how far apart along each of several axes, and how many."""
    if not axes:
        return _part(array, start, start + 1)
    (step, count), *others = axes
    length = array.shape[-1]
    if not others:
        return _part(array, start, start + step * (count - 1) + 1, step)
    begin = min(start, max(length - step * count, 0))  # so that there are whole rows, where the array has them
    end = begin + step * count
    if end > length:
        array = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, end - length)])
    rows = lax.reshape(_part(array, begin, end), (*array.shape[:-1], count, step))
    return _sliced(rows, start - begin, others)


def _part(array: Any, start: int, end: int, step: int = 1) -> Any:
    """Numbers along the last axis, with nothing for JAX to do where these are all."""
    is_all = (start, end, step) == (0, array.shape[-1], 1)
    return array if is_all else lax.slice_in_dim(array, start, end, step, axis=-1)
