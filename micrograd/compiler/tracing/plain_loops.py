"""Plain loops: loops in Python over many rows, of which an outline has a few iterations.

    for row, target in zip(rows, targets):
        total = total + (mg.dot(row, weights) - target) ** 2

Python is deterministic. If an iteration begins with the same variables as the one before, but for numbers that are not
known, and nothing else that the function reaches has changed, it does the same; and so do all that follow. So an
outline has the iterations up to there, and a comprehension, which sets no variables, has one.

A loop asks a list for an iterator, and does not say who it is. So the function has other code, in which what it goes
through is given to ``through``, and comprehensions to ``listed``; see indexing.py.
"""

from __future__ import annotations

import inspect
import operator
import sys
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.guards.code_names import ASKS
from micrograd.compiler.guards.structure import Same
from micrograd.compiler.tracing.outline import FEW, Index, Outlined, OutlinedList, OutlineTape, unchanged
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.variables import Look
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

EDGE = 8  # iterations more or fewer than there are rows
_MOST_UNLIKE = 8  # iterations, the first ones, which may differ from all others
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def through(function: Any, *given: Any, **settings: Any) -> Any:
    """What a loop goes through: what range, zip or enumerate gives; without such a function, the one thing given."""
    rows, tape = rows_in_use(), recorder_on_top()
    if rows is None or not any(function is each for each in (None, range, zip, enumerate)):
        return given[0] if function is None else function(*given, **settings)
    if function is range:
        function, given = None, (range(*given),)
    given = tuple(map(rows.given, given))
    rows.goes_through(max((len(each) for each in given if isinstance(each, (range, list, np.ndarray))), default=0))
    if isinstance(tape, OutlineTape) and any(_is_long(tape, each) for each in given):
        return _LongRows(tape, function, given, settings)
    return given[0] if function is None else function(*given, **settings)


def listed(function: Callable[[Any], Any], rows: Any) -> Any:
    """What a comprehension gives.

    Args:
        function: gives it for what it goes through.
        rows: that.
    """
    if not isinstance(rows, _LongRows):
        return function(rows)
    tape, begin = rows.tape, len(rows.tape.operations)
    with unchanged(function):
        (found,) = function(iter([rows[0]]))
    if not isinstance(found, Value):
        tape.fail("a list of something else than numbers")
    made = tape.made(("listed", begin), found, (len(rows),))
    return OutlinedList(("listed", made.position), len(rows), None, tape.nothing)


def summed(function: Any, *given: Any, **settings: Any) -> Any:
    """What the builtin sum gives, or another function with its name or with a generator for its argument."""
    tape = recorder_on_top()
    if isinstance(tape, OutlineTape) and given and _is_long(tape, given[0]):
        if function is sum:
            return given[0].of_terms("sum", given[1:], settings)
        if not str(function.__module__).startswith("micrograd."):
            tape.fail("a function that is given a generator")
    return function(*given, **settings)


_NO_NUMBERS = {list, tuple, dict, set, frozenset, str, bytes, np.ndarray, type(None)}


def asked(function: Any, *given: Any, **settings: Any) -> Any:
    """What a function gives that may be one of those, or an operator that compares who two objects are.

    In an outline, numbers have no class, and rows are others each time. Lists and arrays have a class of their own, and
    so have the numbers of iterations, but all of these are instances of those that they stand for.
    """
    tape = recorder_on_top()
    asks_who = any(function is each for each in (id, operator.is_, operator.is_not))
    if isinstance(tape, OutlineTape) and (asks_who or any(function is each for each in ASKS)):
        stand_in = (Symbol,) if function is isinstance else (Symbol, Index, Outlined, OutlinedList, _LongRows)
        if function is isinstance and len(given) == 2 and _NO_NUMBERS.issuperset(np.ravel(np.array(given[1], object))):
            return function(*given)  # as trees of arrays are gone through
        if any(issubclass(type(each), stand_in) or (asks_who and tape.has_taken(each)) for each in given):
            tape.fail("a class, or who an object is")
    return function(*given, **settings)


def _is_long(tape: OutlineTape, item: Any) -> bool:
    """Whether something is as long as the rows are many, or has no elements to be looked at one by one."""
    if type(item) is range:
        return item.step == 1 and abs(len(item) - tape.count) <= EDGE
    if not isinstance(item, (_LongRows, OutlinedList, Outlined)):
        return False
    return len(item) > FEW or abs(len(item) - tape.count) <= EDGE


class _LongRows:
    """What a loop goes through: lists and arrays without elements, and the numbers of iterations.

    Args:
        tape: the outline.
        function: zip or enumerate, if the loop goes through what that gives; else None.
        given: lists, arrays and ranges.
        settings: the named arguments of the function.
    """

    def __init__(self, tape: OutlineTape, function: Any, given: Sequence[Any], settings: dict[str, Any]) -> None:
        self.tape, self._function = tape, function
        self._parts, self._start = given, settings.get("start", 0)
        if function is enumerate and len(given) > 1:
            self._parts, self._start = given[:1], given[1]
        lengths = [len(part) if _is_long(tape, part) else -1 for part in self._parts]
        if len(set(lengths)) > 1 or type(self._start) is not int:
            tape.fail("a loop over rows and something else")
        self._length, self._number, self._before = lengths[0], 0, None

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> Any:
        """What an iteration gets."""
        items = [Index(part.start, part.stop) if type(part) is range else part[number] for part in self._parts]
        if self._function is enumerate:
            items.insert(0, Index(self._start, self._start + len(self)))
        return items[0] if self._function is None else tuple(items)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        tape, frame = self.tape, sys._getframe(1)
        if frame.f_code.co_flags & _SUSPENDED or not tape.reached.is_as_before():
            tape.fail("a loop that remembers something")
        begins = _Variables(tape).frame(frame)
        if begins == self._before:
            tape.made(("loop", len(self)), None, ())
            raise StopIteration
        if self._number == _MOST_UNLIKE:
            tape.fail("a loop that counts")
        self._number, self._before = self._number + 1, begins
        return self[self._number - 1]


class _Variables(Look):
    """Looks at variables in an outline.

    Args:
        tape: the outline.
    """

    _tape: OutlineTape

    def at(self, item: Any, depth: int = 0) -> Any:
        """What is known of an object; of a number of the tape, whether it is in other variables, too."""
        kind, tape = type(item), self._tape
        if isinstance(item, Symbol) and item._tape is tape:
            return kind, self._number(item)
        if kind is Outlined:
            return kind, self._number(item), tape.told(item)[-1]
        if kind is OutlinedList:
            return kind, self._number(item), len(item), item.row
        if kind is Index:
            return kind, item.begin, item.end
        if tape.reached.holds(item) or isinstance(item, (type, ModuleType, Primitive)):
            return kind, Same(item)
        return super().at(item, depth)

    def other(self, item: Any) -> Any:
        """What is known of a function in C; there is nothing that watches other objects."""
        is_function = type(item) is BuiltinFunctionType and isinstance(item.__self__, ModuleType)
        return item if is_function else self._tape.fail("an object in a variable")
