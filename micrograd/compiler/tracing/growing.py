"""Lists that grow: what a loop over many rows appends to, in an outline.

    states = [start]
    for x in xs:
        states.append(tanh(w * states[-1] + x))

Such a list is longer at each iteration. Yet iterations are alike if all they read of it are its last items, counted
from its end, or by the number of the iteration: ``states[i - 1]``. So the list takes note of whether it is asked for
anything else, as its length, and after the loop it is a list of many numbers without elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.tracing.outline import Index, OutlinedList, OutlineTape, shape_of_item
from micrograd.engine.recorder import recorder_on_top

if TYPE_CHECKING:
    from collections.abc import Callable

LAST = 4  # items that a loop may read


def growing(items: list[Any]) -> list[Any]:
    """A list that code appends to in a loop: in an outline, one that takes note of what it is asked for."""
    tape = recorder_on_top()
    if not isinstance(tape, OutlineTape):
        return items
    tape.growing.append(made := GrowingList(items))
    return made


def in_array(function: Callable[..., Any], *given: Any, **settings: Any) -> Any:
    """What a function of the name of one that makes an array of a list gives."""
    tape = recorder_on_top()
    items: Any = given[0] if len(given) == 1 and not settings else None
    is_list = type(items) is OutlinedList and function in (np.array, np.asarray, np.stack)
    if not is_list or not isinstance(tape, OutlineTape) or (function is np.stack and items.row is None):
        return function(*given, **settings)
    return tape.made("array", items, (len(items), *items.shape_of_row()))


class GrowingList(list[Any]):
    """A list in an outline.

    Attributes:
        asks: how often it was asked for anything but its last items.
        by_number: the loops whose numbers of iterations were an index.
    """

    stands_for = list

    def __init__(self, items: list[Any]) -> None:
        super().__init__(items)
        self.asks = 0
        self.by_number: list[Any] = []

    def last(self) -> tuple[Any, ...]:
        """The items that may be read."""
        return tuple(super().__getitem__(slice(-LAST, None)))

    def length(self) -> int:
        """How long it is, for those who take note of it."""
        return super().__len__()

    def __getitem__(self, index: Any) -> Any:
        """An item."""
        if type(index) is Index and index.times == 1:
            index, loop = index.now() - self.length(), index.loop
            self.by_number.append(loop)
            if not -LAST <= index < 0:
                loop.tape.fail("an item far from the end")
        self.asks += type(index) is not int or not -LAST <= index < 0
        return super().__getitem__(index)

    def become_long(self, tape: OutlineTape, length: int) -> None:
        """Be a list without elements from now on, of so many numbers, or rows of numbers, as the last item is."""
        row = shape_of_item(tape, self.last()[-1])
        if any(shape_of_item(tape, item) != row for item in self):
            tape.fail("a list of several kinds of items")
        if type(self.last()[-1]) is float:
            tape.fail("a list of known numbers")
        by = "grown", tape.told(list(self.last())), len(tape.operations)
        self.__class__ = OutlinedList  # type: ignore[assignment]  # they are lists with attributes, both
        OutlinedList.__init__(self, by, length, row, tape.nothing)  # type: ignore[arg-type]
        del self.asks, self.by_number


def _asked(name: str) -> Any:
    """A method of lists that is taken note of."""

    def method(self: GrowingList, *arguments: Any, **settings: Any) -> Any:
        self.asks += 1
        return getattr(list, name)(self, *arguments, **settings)

    return method


def _added_to(self: GrowingList, other: Any) -> Any:
    self.asks += 1
    return other + list(self)


_NOT_ASKED = ("append", "last", "length", "become_long", "__getitem__", "__class_getitem__", "__hash__", "__new__")
for _name in {*vars(list)} - {*_NOT_ASKED, "__init__", "__getattribute__", "__doc__"}:
    setattr(GrowingList, _name, _asked(_name))
GrowingList.__radd__ = _added_to  # type: ignore[attr-defined]
