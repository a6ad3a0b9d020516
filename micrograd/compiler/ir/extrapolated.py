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
from array import array
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from micrograd.compiler.ir.entries import Entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from micrograd.compiler.numbers import Integers

Thing = TypeVar("Thing")

_MOST_FLOATS = 64  # that an array which grows has
_WIDEST = 128  # elements of a row, where rows of several widths follow each other
_EDGE = 8  # rows at either end of an array, which may differ from those between
_NUMBER = re.compile(r"\d[\d,]*")


class UnlikeRowsError(Exception):
    """What was made for several numbers of rows does not differ by these alone."""


def extrapolated(
    sizes: Sequence[int],
    things: Sequence[Thing],
    size: int,
    floats: Mapping[tuple[float, ...], float] = MappingProxyType({}),
) -> Thing:
    """What this would be for another number of rows.

    Args:
        sizes: three numbers of rows.
        things: what was made for each: numbers, texts, arrays, tuples, lists, dicts and dataclasses of such. Other
            objects must be the same ones.
        size: the other number of rows.
        floats: which float stands for three that differ, where that is known; see floats_of.

    Raises:
        UnlikeRowsError: if they are not alike.

    Example:
        >>> extrapolated([10, 20, 40], [("x", 12), ("x", 22), ("x", 42)], 1000)
        ('x', 1002)
        >>> extrapolated([10, 20, 40], [np.arange(10), np.arange(20), np.arange(40)], 50)[-1]
        np.int64(49)
    """
    return _made(_Rows(sizes, size, floats), things)


def floats_of(things: Sequence[Any], whole: Any) -> dict[tuple[float, ...], float]:
    """The floats in what was made for three numbers of rows that differ, and what stands for them for another number.

    Args:
        things: what was made for each.
        whole: what was made for the other number, of the same structure where they are alike.

    Raises:
        UnlikeRowsError: if three floats stand for two.

    Example:
        >>> floats_of([[0.5, 1.5], [0.25, 1.5], [0.125, 1.5]], [0.0625, 1.5])
        {(0.5, 0.25, 0.125): 0.0625}
    """
    found: dict[tuple[float, ...], float] = {}
    stack = [(*things, whole)]
    while stack:
        parts = stack.pop()
        if isinstance(whole := parts[-1], np.ndarray):
            parts = tuple([each.ravel().tolist() if isinstance(each, np.ndarray) else [] for each in parts])
        kinds = set(map(type, parts))
        if kinds == {dict}:
            parts = tuple([list(each.values()) for each in parts])
        if kinds <= {tuple, list, dict}:
            stack += zip(*parts, strict=False)
        elif kinds == {float} and len(set(parts[:-1])) == len(things):
            *few, number = parts
            # not an infinity, or of another sign: what is computed of it at once might not be alike
            if (
                found.setdefault(tuple(few), number) != number
                or not min(few) * number > 0.0 < max(few) * number < math.inf
            ):
                raise UnlikeRowsError(f"{parts!r:.200}")
    return found


@dataclass(frozen=True)
class _Rows:
    """Three numbers of rows, and another one.

    Attributes:
        sizes: the three.
        size: the other one.
        floats: which float stands for three that differ, where that is known.
    """

    sizes: Sequence[int]
    size: int
    floats: Mapping[tuple[float, ...], float]


def _made(rows: _Rows, things: Sequence[Any]) -> Any:
    first: Any = things[0]
    kind = type(first)
    if set(map(type, things)) != {kind}:
        raise UnlikeRowsError(f"{things!r:.200}")
    made: Any = first
    if kind is int:
        made = first if first == things[1] == things[2] else int(_affine(rows, np.array(things, dtype=object)))
    elif kind is float:
        made = _float(rows, things)
    elif kind is str:
        made = _text(rows, things)
    elif kind is slice:
        bounds = [(each.start, each.stop, each.step) for each in things]
        made = slice(*_made(rows, bounds))
    elif isinstance(first, (tuple, list)):
        if len(set(map(len, things))) == 1:
            parts = [_made(rows, part) for part in zip(*things, strict=True)]
        else:
            parts = _list(rows, things)
        made = kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    elif kind is dict:
        keys = _made(rows, [list(each) for each in things])
        made = dict(zip(keys, _made(rows, [list(each.values()) for each in things]), strict=True))
    elif kind is np.ndarray:
        made = _array(rows, things)
    elif kind is array:
        made = array(first.typecode, _array(rows, [np.array(each) for each in things]).tobytes())
    elif kind is Entries:
        made = Entries()
        for name in Entries.__slots__:
            setattr(made, name, _made(rows, [getattr(thing, name) for thing in things]))
    elif is_dataclass(first):
        names = [each.name for each in fields(first)]
        parts = [_made(rows, [getattr(thing, name) for thing in things]) for name in names]
        made = kind(*parts)
    elif any(thing is not first and thing != first for thing in things):
        raise UnlikeRowsError(f"{things!r:.200}")
    return made


def is_same(one: Any, other: Any) -> bool:
    """Whether two things are equal to the last bit, down to what is in tuples, lists, dicts and arrays."""
    if one is other or type(one) is not type(other):
        return one is other
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(is_same, one.values(), other.values()))
    if isinstance(one, np.ndarray):
        return bool(one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes())
    if isinstance(one, float):
        return one.hex() == other.hex()
    return one is other or bool(one == other)


def _list(rows: _Rows, lists: Sequence[Any]) -> list[Any]:
    """Lists that grow: of integers, of tuples, or of a few other things, in any mixture."""
    kinds: dict[Any, int] = {}
    numbers = [[kinds.setdefault(_kind_of(item), len(kinds)) for item in each] for each in lists]
    if len(kinds) == 1:
        return _of_one_kind(rows, lists, next(iter(kinds)))
    parts = [
        [[item for item, number in zip(each, of_each, strict=True) if number == kind] for kind in kinds.values()]
        for each, of_each in zip(lists, numbers, strict=True)
    ]
    of_kinds = list(map(iter, _made(rows, parts)))
    return [next(of_kinds[number]) for number in _array(rows, list(map(np.array, numbers))).tolist()]


def _of_one_kind(rows: _Rows, lists: Sequence[Any], kind: tuple[type, int]) -> list[Any]:
    if kind[0] is int:
        found: list[Any] = _array(rows, list(map(np.array, lists))).tolist()
        return found
    if kind[1]:
        columns = [_made(rows, column) for column in zip(*[map(list, zip(*each, strict=True)) for each in lists],
                                                         strict=True)]  # fmt: skip
        return list(zip(*columns, strict=True))
    if is_dataclass(kind[0]):
        names = [each.name for each in fields(kind[0])]
        columns = [_made(rows, [[getattr(item, name) for item in each] for each in lists]) for name in names]
        return list(map(kind[0], *columns))
    few, numbers = [], []
    for each in lists:
        known: dict[Any, int] = {}
        numbers.append(np.array([known.setdefault(_code(item), len(known)) for item in each]))
        few.append([each[begin] for begin in np.unique(numbers[-1], return_index=True)[1]])
    if len(set(map(len, few))) > 1 or len(few[0]) > _MOST_FLOATS:
        raise UnlikeRowsError("lists of many things")
    things, positions = _made(rows, list(zip(few, numbers, strict=True)))
    return [things[position] for position in positions.tolist()]


def _kind_of(item: Any) -> tuple[type, int]:
    return type(item), len(item) if type(item) is tuple else 0


def _code(item: Any) -> Any:
    """What is equal for equal things only."""
    return item.hex() if type(item) is float else id(item)


def _affine(rows: _Rows, numbers: Any) -> Any:
    """Integers for another size, from those for three, along the first axis."""
    one, two, three = rows.sizes
    step = numbers[1] - numbers[0]
    made, rest = np.divmod(step * (rows.size - one), two - one)
    if np.any(rest) or np.any(step * (three - one) != (numbers[2] - numbers[0]) * (two - one)):
        raise UnlikeRowsError(f"{numbers!r:.200}")
    return numbers[0] + made


def _float(rows: _Rows, numbers: Any) -> float:
    """A float that does not change, or that is known, or is a number of rows, or 1 divided by one."""
    if (known := rows.floats.get(tuple(numbers))) is not None:
        return known
    if len({number.hex() for number in numbers}) == 1:
        return float(numbers[0])
    if all(number.is_integer() for number in numbers):
        return float(_made(rows, list(map(int, numbers))))
    if all(math.isfinite(number) and number for number in numbers):
        counts = [round(1.0 / number) for number in numbers]
        if all(count and 1.0 / count == number for count, number in zip(counts, numbers, strict=True)):
            return 1.0 / _made(rows, counts)
    raise UnlikeRowsError(f"{numbers!r:.200}")


def _text(rows: _Rows, texts: Any) -> str:
    """A text, with other numbers in it where these differ."""
    if len(set(texts)) == 1:
        return str(texts[0])
    if len({_NUMBER.sub("0", text) for text in texts}) > 1:
        raise UnlikeRowsError(f"{texts!r:.200}")
    counts = [[int(found.replace(",", "")) for found in _NUMBER.findall(text)] for text in texts]
    numbers = iter(_made(rows, counts))
    return _NUMBER.sub(lambda _: f"{next(numbers):,}", texts[0])


def _array(rows: _Rows, arrays: Sequence[Any]) -> Any:
    first = arrays[0]
    if any(each.dtype != first.dtype or each.ndim != first.ndim for each in arrays) or first.dtype == object:
        raise UnlikeRowsError("arrays of several kinds")
    shape = _made(rows, [each.shape for each in arrays])
    growing = [axis for axis, lengths in enumerate(zip(*(each.shape for each in arrays), strict=True))
               if len(set(lengths)) > 1]  # fmt: skip
    if not any(each.size for each in arrays):
        return np.zeros(shape, first.dtype)
    if first.dtype.kind != "i":
        return _of_few(rows, arrays) if growing else _alike(rows, arrays)
    arrays = [each.astype(np.int64) for each in arrays]  # which in Graph may have 8 bits
    if not growing:
        return _affine(rows, np.stack(arrays)).astype(first.dtype)
    if len(growing) > 1 or min(shape) < 0:
        raise UnlikeRowsError(f"arrays of shapes {[each.shape for each in arrays]}")
    flat = [np.moveaxis(each, growing[0], 0).ravel() for each in arrays]
    made = _by_runs(rows, flat) if len(first) == first.size else None
    if made is None:
        made = _row_by_row(rows, flat)
    if made is None:
        made = _part_by_part(rows, flat)
    moved = shape[growing[0]], *shape[: growing[0]], *shape[growing[0] + 1 :]
    return np.ascontiguousarray(np.moveaxis(made.reshape(moved), 0, growing[0])).astype(first.dtype, copy=False)


def _alike(rows: _Rows, arrays: Sequence[Any]) -> Any:
    """Arrays of one shape, of numbers that are no integers."""
    if len({each.tobytes() for each in arrays}) == 1:
        return arrays[0]
    numbers = [each.ravel().tolist() for each in arrays]
    return np.array(_made(rows, numbers), dtype=arrays[0].dtype).reshape(arrays[0].shape)


def _of_few(rows: _Rows, arrays: Sequence[Any]) -> Any:
    """Arrays that grow, of whole numbers, or of a few floats, from which of these there is where."""
    first = arrays[0]
    with np.errstate(invalid="ignore"):  # a NaN is no whole number
        whole = [each.astype(np.int64) for each in arrays] if first.dtype == np.float64 else []
    if whole and all(
        each.tobytes() == found.astype(float).tobytes() for each, found in zip(arrays, whole, strict=True)
    ):
        return _array(rows, whole).astype(float)
    values, numbers = [], []
    for each in arrays:
        bits = np.ascontiguousarray(each).view(f"i{first.dtype.itemsize}").ravel()
        _, begins, codes = np.unique(bits, return_index=True, return_inverse=True)
        order = np.argsort(begins)
        values.append(each.ravel()[begins[order]])
        numbers.append(np.argsort(order)[codes].reshape(each.shape))
    if len(set(map(len, values))) > 1 or len(values[0]) > _MOST_FLOATS:
        raise UnlikeRowsError("arrays of many floats")
    known, positions = _made(rows, list(zip(values, numbers, strict=True)))
    return known[positions]


def _by_runs(rows: _Rows, arrays: Sequence[Integers]) -> Integers | None:
    """Arrays of equally many stretches, in each of which all steps are equal; None for others."""
    coded = []
    for each in arrays:
        steps = np.diff(each)
        ends = np.flatnonzero(np.diff(steps, append=steps[-1:] + 1))
        coded.append((int(each[0]), steps[ends], np.diff(ends, prepend=-1)))
    if len({len(steps) for _, steps, _ in coded}) > 1 or not len(coded[0][1]):
        return None
    begin, steps, counts = _made(rows, coded)
    if (counts <= 0).any():
        raise UnlikeRowsError("arrays with stretches that shrink")
    found: Integers = np.repeat(np.append(begin, steps), np.append(1, counts))
    return np.cumsum(found, out=found)


def _row_by_row(rows: _Rows, arrays: Sequence[Integers]) -> Integers | None:
    """Arrays with as many elements more for each row, each an affine function of the row; None for others.

    Some at the ends may be no such function.
    """
    width = (len(arrays[1]) - len(arrays[0])) // (rows.sizes[1] - rows.sizes[0])
    counts, edge = [size - 2 * _EDGE for size in rows.sizes], _EDGE * width
    left = {len(array) - width * count - edge for array, count in zip(arrays, counts, strict=True)}
    if width <= 0 or min(counts) < 2 or len(left) > 1 or min(left) < 0:
        return None
    parts = []
    for each, count in zip(arrays, counts, strict=True):
        end = edge + count * width
        middle = each[edge:end].reshape(count, width)
        slope = middle[1] - middle[0]
        if (middle != middle[0] + slope * np.arange(count)[:, None]).any():
            return None
        parts.append((np.append(each[:edge], each[end:]), middle[0], slope))
    with suppress(UnlikeRowsError):
        ends, base, slope = _made(rows, parts)
        middle = base + slope * np.arange(rows.size - 2 * _EDGE)[:, None]
        return np.concatenate([ends[:edge], middle.ravel(), ends[edge:]])
    return None


class _Part(NamedTuple):
    """A part of an array, in which each element is an affine function of the row.

    Attributes:
        base: the first row.
        slope: the steps from row to row; none if there is one row.
        length: how many elements there are; those of the last row may be fewer.
    """

    base: Integers
    slope: Integers
    length: int

    def elements(self) -> Integers:
        """All of them."""
        if not len(self.slope):
            return self.base
        count = -(-self.length // len(self.base))
        elements: Integers = (self.base + self.slope * np.arange(count)[:, None]).ravel()
        return elements[: self.length]


def _part_by_part(rows: _Rows, arrays: Sequence[Integers]) -> Integers:
    """Arrays of several parts, which may have rows of several widths."""
    every = [_parts_of(each, rows.sizes[0] // 4) for each in arrays]
    if len({tuple([part.base.shape + part.slope.shape for part in parts]) for parts in every}) > 1:
        raise UnlikeRowsError(f"arrays of {[len(each) for each in arrays]} elements")
    made = _made(rows, every)
    if any(part.length <= 0 for part in made):
        raise UnlikeRowsError("arrays with parts that shrink")
    return np.concatenate([part.elements() for part in made])


def _parts_of(array: Integers, fewest: int) -> list[_Part]:
    """An array as parts, the longest that are found, of rows as short as can be.

    Args:
        array: the array.
        fewest: how many rows a part has at least.
    """
    found: list[tuple[int, int, int]] = []
    left = [(0, len(array))]
    for width in range(1, _WIDEST + 1):
        further = []
        for begin, end in left:
            start = begin
            for first, last in _stretches(array[begin:end], width, fewest * width):
                further.append((start, begin + first))
                found.append((begin + first, begin + last, width))
                start = begin + last
            further.append((start, end))
        left = further
    found += [(begin, end, 0) for begin, end in left if begin < end]
    parts = []
    for begin, end, width in sorted(found):
        part = array[begin:end]
        row = part[:width]
        parts.append(
            _Part(row, part[width : 2 * width] - row, len(part)) if width else _Part(part, part[:0], len(part))
        )
    return parts


def _stretches(array: Integers, width: int, fewest: int) -> Iterator[tuple[int, int]]:
    """From where to where the steps over so many elements repeat themselves, for so many elements at least."""
    if len(array) < fewest + 2 * width:
        return
    steps = array[width:] - array[:-width]
    repeats = np.zeros(len(array) - 2 * width + 2, dtype=bool)
    repeats[1:-1] = steps[width:] == steps[:-width]
    edges = np.flatnonzero(repeats[1:] != repeats[:-1]).reshape(-1, 2)
    end = 0
    for first, last in edges[edges[:, 1] - edges[:, 0] >= fewest].tolist():
        first = max(first, end)  # two may share elements
        end = last + 2 * width
        yield first, end
