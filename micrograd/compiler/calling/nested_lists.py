"""Nested lists: their numbers as one array, at a cost that hardly depends on how many lists there are.

marshal, of Python's library, writes nested lists down in one go: of each its kind and how many items it has, and of
each number its kind and its bytes. Of [[0.5, 2.0], [1.0, 4.0]] these are

    [2  [2  g.......  g.......  [2  g.......  g.......        where g is a float, with 8 bytes

So what is written is an array of a structured dtype of NumPy. Its numbers are copied out of there and overwritten with
0; what is left says whether another argument has the same lists, with numbers of the same types. It takes 10 ns for
a number, and to look at each list would take a microsecond.
"""

from __future__ import annotations

from marshal import dumps
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.guards.library_state import EXACT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.numbers import Floats

_FLOAT = np.dtype([("kind", "u1"), ("number", "<f8")])
_INT = np.dtype([("kind", "u1"), ("number", "<i4")])  # larger ones are of another kind
_HEAD = ("head", "V5")  # of a list or a tuple: its kind, and how many items it has
_MOST = 16  # items of a list that are not alike


class NestedLists:
    """Reads the numbers of lists and tuples that are nested in the same way as an example.

    Args:
        layout: of what is written.
        count: how many numbers there are.
        rest: what is left of it without the numbers.
    """

    def __init__(self, layout: np.dtype[Any], count: int, rest: bytearray) -> None:
        self._layout, self._count, self._rest = layout, count, rest

    @classmethod
    def of(cls, example: Any) -> NestedLists | None:
        """What reads arguments like this one; None where there is anything but floats and ints, or too few are alike."""
        layout = _layout_of(example)
        if layout is None:
            return None
        expected = np.array([*_flat(example)], dtype=np.float64)
        written = bytearray(dumps(example, EXACT))
        if len(written) != layout.itemsize:
            return None
        found = _taken_out(written, layout, len(expected))
        return cls(layout, len(expected), written) if found.tobytes() == expected.tobytes() else None

    def numbers(self, argument: Any) -> Floats | None:
        """The numbers of an argument in order; None where it is nested in another way."""
        try:
            written = bytearray(dumps(argument, EXACT))
        except ValueError:  # there is a Value in it, say
            return None
        if len(written) != len(self._rest):
            return None
        found = _taken_out(written, self._layout, self._count)
        return found if written == self._rest else None


def _layout_of(item: Any) -> np.dtype[Any] | None:
    """The dtype of what is written of an item; None where it varies with numbers, or is of many kinds."""
    kind = type(item)
    if kind is float or kind is int:
        return _FLOAT if kind is float else _INT
    if (kind is not list and kind is not tuple) or not item:
        return None
    kinds = set(map(type, item))
    layouts = [_layout_of(part) for part in (item[:1] if kinds == {float} or kinds == {int} else item)]
    if None in layouts:
        return None
    if all(layout is layouts[0] or layout == layouts[0] for layout in layouts):
        return np.dtype([_HEAD, ("items", layouts[0], (len(item),))])
    if len(item) > _MOST:
        return None
    return np.dtype([_HEAD, *((f"item {number}", layout) for number, layout in enumerate(layouts))])


def _flat(item: Any) -> Iterator[float]:
    if isinstance(item, list | tuple):
        for part in item:
            yield from _flat(part)
    else:
        yield item


def _taken_out(written: bytearray, layout: np.dtype[Any], count: int) -> Floats:
    """Take the numbers out of what is written, where 0 is afterwards."""
    numbers = np.empty((1, count))
    _take_out(np.frombuffer(written, layout), numbers)
    return numbers[0]


def _take_out(written: Any, numbers: Any) -> None:
    """The same for some items that are written alike; the last axis of the numbers is for those of one item."""
    names = written.dtype.names
    if names == _FLOAT.names:
        numbers[..., 0] = written["number"]
        written["number"] = 0
    elif names[1] == "items":
        items = written["items"]
        _take_out(items, numbers.reshape(*items.shape, -1))
    else:
        begin = 0
        for name in names[1:]:
            part = written[name]
            end = begin + _count(part.dtype)
            _take_out(part, numbers[..., begin:end])
            begin = end


def _count(layout: np.dtype[Any]) -> int:
    """How many numbers an item has."""
    if layout.subdtype is not None:
        base, shape = layout.subdtype
        return int(np.prod(shape)) * _count(base)
    names = layout.names or ()
    return 1 if names == _FLOAT.names else sum(_count(layout[name]) for name in names[1:])
