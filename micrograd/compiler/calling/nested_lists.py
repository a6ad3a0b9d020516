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

from micrograd.compiler.calling.boundary import numbers_of
from micrograd.compiler.guards.library_state import EXACT
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.numbers import shape_of_floats

if TYPE_CHECKING:
    from micrograd.compiler.numbers import Floats

_FLOAT = np.dtype([("kind", "u1"), ("number", "<f8")])
_INT = np.dtype([("kind", "u1"), ("number", "<i4")])  # larger ones are of another kind
_HEAD = ("head", "V5")  # of a list or a tuple: its kind, and how many items it has
_MOST = 16  # items of a list that are not alike


class NestedLists:
    """Reads the numbers of lists and tuples that are nested in the same way as an example.

    Args:
        layout: of what is written.
        rest: what is left of it without the numbers.
    """

    def __init__(self, layout: np.dtype[Any], rest: bytearray) -> None:
        self._layout, self._rest = layout, rest

    @classmethod
    def of(cls, example: Any) -> NestedLists | None:
        """What reads arguments like this one; None where there are not only floats and ints, or too few are alike."""
        layout = _layout_of(example)
        if layout is None:
            return None
        written = bytearray(dumps(example, EXACT))
        if len(written) != layout.itemsize:
            return None
        found = _taken_out(np.frombuffer(written, layout)).ravel()
        return cls(layout, written) if found.tobytes() == numbers_of(Structure(example)).tobytes() else None

    def numbers(self, argument: Any) -> Floats | None:
        """The numbers of an argument in order; None where it is nested in another way."""
        try:
            written = bytearray(dumps(argument, EXACT))
        except ValueError:  # there is a Value in it, say
            return None
        if len(written) != len(self._rest):
            return None
        found: Floats = _taken_out(np.frombuffer(written, self._layout)).ravel()
        return found if written == self._rest else None


def _layout_of(item: Any) -> np.dtype[Any] | None:
    """The dtype of what is written of an item; None where it varies with numbers, or is of many kinds."""
    kind = type(item)
    if kind is float or kind is int:
        return _FLOAT if kind is float else _INT
    if (kind is not list and kind is not tuple) or not item:
        return None
    kinds = set(map(type, item))
    layouts = [_layout_of(part) for part in (item[:1] if kinds == {int} or shape_of_floats(item) else item)]
    if None in layouts:
        return None
    if all(layout is layouts[0] or layout == layouts[0] for layout in layouts):
        return np.dtype([_HEAD, ("items", layouts[0], (len(item),))])
    if len(item) > _MOST:
        return None
    return np.dtype([_HEAD, *((f"item {number}", layout) for number, layout in enumerate(layouts))])


def _taken_out(written: Any) -> Any:
    """Take the numbers out of items that are written alike, and leave 0 there; those of an item are the last axis."""
    names = written.dtype.names
    if names == _FLOAT.names:
        numbers = written["number"].astype(np.float64)[..., None]
        written["number"] = 0
        return numbers
    if names[1] == "items":
        return _taken_out(written["items"]).reshape(*written.shape, -1)
    return np.concatenate([_taken_out(written[name]) for name in names[1:]], axis=-1)
