"""Extrapolated: what a program would be for another number of rows, from what it is for three.

For 320, 336 and 368 rows, a program has

    320 columns, written at 640        336 columns, written at 672        368 columns, written at 736

So for 100,000 rows it has 100,000 columns, written at 200,000. Each integer must be an affine function of the number of
rows: two programs tell which one, and the third must agree. Arrays that grow with the rows are compared run by run,
or row by row. Whatever is not alike is an UnlikeRowsError, and no guess.
"""

from __future__ import annotations

import math
import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from micrograd.compiler.ir.entries import Entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Integers

Thing = TypeVar("Thing")

_MOST_FLOATS = 64  # that an array which grows has
_EDGE = 8  # rows at either end of an array, which may differ from those between
_NUMBER = re.compile(r"\d[\d,]*")


class UnlikeRowsError(Exception):
    """What was made for several numbers of rows does not differ by these alone."""


def extrapolated(sizes: Sequence[int], things: Sequence[Thing], size: int) -> Thing:
    """What this would be for another number of rows.

    Args:
        sizes: three numbers of rows.
        things: what was made for each: numbers, texts, arrays, tuples, lists, dicts and dataclasses of such. Other
            objects must be the same ones.
        size: the other number of rows.

    Raises:
        UnlikeRowsError: if they are not alike.

    Example:
        >>> extrapolated([10, 20, 40], [("x", 12), ("x", 22), ("x", 42)], 1000)
        ('x', 1002)
        >>> extrapolated([10, 20, 40], [np.arange(10), np.arange(20), np.arange(40)], 50)[-1]
        np.int64(49)
    """
    first: Any = things[0]
    kind = type(first)
    if any(type(thing) is not kind for thing in things):
        raise UnlikeRowsError(f"{things!r:.200}")
    made: Any = first
    if kind is int:
        made = int(_affine(sizes, np.array(things, dtype=object), size))
    elif kind is float:
        made = _float(sizes, things, size)
    elif kind is str:
        made = _text(sizes, things, size)
    elif kind is slice:
        bounds = [(each.start, each.stop, each.step) for each in things]  # type: ignore[attr-defined]
        made = slice(*extrapolated(sizes, bounds, size))
    elif isinstance(first, (tuple, list)):
        parts = [extrapolated(sizes, part, size) for part in _aligned(things)]
        made = kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    elif kind is dict:
        keys = extrapolated(sizes, [list(each) for each in things], size)  # type: ignore[call-overload]
        made = dict(zip(keys, extrapolated(sizes, [list(each.values()) for each in things], size), strict=True))  # type: ignore[attr-defined]
    elif kind is np.ndarray:
        made = _array(sizes, things, size)
    elif kind is Entries:
        made = Entries()
        for name in Entries.__slots__:
            setattr(made, name, extrapolated(sizes, [getattr(thing, name) for thing in things], size))
    elif is_dataclass(first):
        names = [each.name for each in fields(first)]
        parts = [extrapolated(sizes, [getattr(thing, name) for thing in things], size) for name in names]
        made = kind(*parts)
    elif any(thing is not first and thing != first for thing in things):
        raise UnlikeRowsError(f"{things!r:.200}")
    return made


def is_same(one: Any, other: Any) -> bool:
    """Whether two things are equal to the last bit, down to what is in tuples, lists, dicts and arrays."""
    if type(one) is not type(other):
        return False
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(is_same, one.values(), other.values()))
    if isinstance(one, np.ndarray):
        return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if isinstance(one, float):
        return one.hex() == other.hex()
    return one is other or bool(one == other)


def _aligned(things: Sequence[Any]) -> list[tuple[Any, ...]]:
    if len(set(map(len, things))) > 1:
        raise UnlikeRowsError(f"lengths {[len(each) for each in things]}")
    return list(zip(*things, strict=True))


def _affine(sizes: Sequence[int], numbers: Any, size: int) -> Any:
    """Integers for another size, from those for three, along the first axis."""
    one, two, three = sizes
    step = numbers[1] - numbers[0]
    made, rest = np.divmod(step * (size - one), two - one)
    if np.any(rest) or np.any(step * (three - one) != (numbers[2] - numbers[0]) * (two - one)):
        raise UnlikeRowsError(f"{numbers!r:.200}")
    return numbers[0] + made


def _float(sizes: Sequence[int], numbers: Any, size: int) -> float:
    """A float that does not change, or that is a number of rows, or 1 divided by one."""
    if len({number.hex() for number in numbers}) == 1:
        return float(numbers[0])
    if all(number.is_integer() for number in numbers):
        return float(extrapolated(sizes, list(map(int, numbers)), size))
    if all(math.isfinite(number) and number for number in numbers):
        counts = [round(1.0 / number) for number in numbers]
        if all(count and 1.0 / count == number for count, number in zip(counts, numbers, strict=True)):
            return 1.0 / extrapolated(sizes, counts, size)
    raise UnlikeRowsError(f"{numbers!r:.200}")


def _text(sizes: Sequence[int], texts: Any, size: int) -> str:
    """A text, with other numbers in it where these differ."""
    if len(set(texts)) == 1:
        return str(texts[0])
    if len({_NUMBER.sub("0", text) for text in texts}) > 1:
        raise UnlikeRowsError(f"{texts!r:.200}")
    counts = [[int(found.replace(",", "")) for found in _NUMBER.findall(text)] for text in texts]
    numbers = iter(extrapolated(sizes, counts, size))
    return _NUMBER.sub(lambda _: f"{next(numbers):,}", texts[0])


def _array(sizes: Sequence[int], arrays: Sequence[Any], size: int) -> Any:
    first = arrays[0]
    if any(each.dtype != first.dtype or each.ndim != first.ndim for each in arrays) or first.dtype == object:
        raise UnlikeRowsError("arrays of several kinds")
    shape = extrapolated(sizes, [each.shape for each in arrays], size)
    growing = [axis for axis, lengths in enumerate(zip(*(each.shape for each in arrays), strict=True))
               if len(set(lengths)) > 1]  # fmt: skip
    if not any(each.size for each in arrays):
        return np.zeros(shape, first.dtype)
    if first.dtype.kind != "i":
        return _of_few(sizes, arrays, size) if growing else _alike(sizes, arrays, size)
    arrays = [each.astype(np.int64) for each in arrays]  # which in Graph may have 8 bits
    if not growing:
        return _affine(sizes, np.stack(arrays), size).astype(first.dtype)
    if len(growing) > 1 or min(shape) < 0:
        raise UnlikeRowsError(f"arrays of shapes {[each.shape for each in arrays]}")
    rows = [np.moveaxis(each, growing[0], 0) for each in arrays]
    flat = [each.ravel() for each in rows]
    made = _by_runs(sizes, flat, size) if first.ndim == 1 else None
    if made is None:
        made = _row_by_row(sizes, flat, size, (len(flat[1]) - len(flat[0])) // (sizes[1] - sizes[0]))
    moved = shape[growing[0]], *shape[: growing[0]], *shape[growing[0] + 1 :]
    return np.ascontiguousarray(np.moveaxis(made.reshape(moved), 0, growing[0])).astype(first.dtype)


def _alike(sizes: Sequence[int], arrays: Sequence[Any], size: int) -> Any:
    """Arrays of one shape, of numbers that are no integers."""
    if len({each.tobytes() for each in arrays}) == 1:
        return arrays[0]
    numbers = [each.ravel().tolist() for each in arrays]
    return np.array(extrapolated(sizes, numbers, size), dtype=arrays[0].dtype).reshape(arrays[0].shape)


def _of_few(sizes: Sequence[int], arrays: Sequence[Any], size: int) -> Any:
    """Arrays that grow, of whole numbers, or of a few floats, from which of these there is where."""
    first = arrays[0]
    with np.errstate(invalid="ignore"):  # a NaN is no whole number
        whole = [each.astype(np.int64) for each in arrays] if first.dtype == np.float64 else []
    if whole and all(
        each.tobytes() == found.astype(float).tobytes() for each, found in zip(arrays, whole, strict=True)
    ):
        return _array(sizes, whole, size).astype(float)
    values, numbers = [], []
    for each in arrays:
        bits = np.ascontiguousarray(each).view(f"i{first.dtype.itemsize}").ravel()
        _, begins, codes = np.unique(bits, return_index=True, return_inverse=True)
        if len(begins) > _MOST_FLOATS:
            raise UnlikeRowsError("arrays of many floats")
        order = np.argsort(begins)
        values.append(each.ravel()[begins[order]])
        numbers.append(np.argsort(order)[codes].reshape(each.shape))
    known, positions = extrapolated(sizes, list(zip(values, numbers, strict=True)), size)
    return known[positions]


def _by_runs(sizes: Sequence[int], arrays: Sequence[Integers], size: int) -> Integers | None:
    """Arrays of equally many stretches, in each of which all steps are equal; None for others."""
    coded = []
    for array in arrays:
        steps = np.diff(array)
        ends = np.append(np.flatnonzero(np.diff(steps)), len(steps) - 1)
        if not len(steps):
            return None
        coded.append((int(array[0]), steps[ends], np.diff(ends, prepend=-1)))
    if len({len(steps) for _, steps, _ in coded}) > 1:
        return None
    begin, steps, counts = extrapolated(sizes, coded, size)
    if (counts <= 0).any():
        raise UnlikeRowsError("arrays with stretches that shrink")
    return begin + np.append(0, np.cumsum(np.repeat(steps, counts)))


def _row_by_row(sizes: Sequence[int], arrays: Sequence[Integers], size: int, width: int) -> Integers:
    """Arrays with so many elements a row more: each may be an affine function of the row, but for some at the ends."""
    rows, edge = [count - 2 * _EDGE for count in sizes], _EDGE * width
    left = {len(array) - width * count - edge for array, count in zip(arrays, rows, strict=True)}
    if width <= 0 or min(rows) < 2 or len(left) > 1 or min(left) < 0:
        raise UnlikeRowsError(f"arrays of {[len(each) for each in arrays]} elements")
    ends, bases, slopes = [], [], []
    for array, count in zip(arrays, rows, strict=True):
        middle = array[edge : edge + count * width].reshape(count, width)
        slope = middle[1] - middle[0]
        if (middle != middle[0] + slope * np.arange(count)[:, None]).any():
            raise UnlikeRowsError("arrays whose rows are not alike")
        ends.append(np.append(array[:edge], array[edge + count * width :]))
        bases.append(middle[0])
        slopes.append(slope)
    of_ends, base, slope = extrapolated(sizes, list(zip(ends, bases, slopes, strict=True)), size)
    middle = base + slope * np.arange(size - 2 * _EDGE)[:, None]
    return np.concatenate([of_ends[:edge], middle.ravel(), of_ends[edge:]])
