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
from abc import ABC
from types import BuiltinFunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from micrograd.compiler.guards.code_names import ASKS
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.compiler.guards.structure import Same
from micrograd.compiler.tracing.counting import counts_of
from micrograd.compiler.tracing.delays import in_sight
from micrograd.compiler.tracing.growing import GrowingList
from micrograd.compiler.tracing.outline import EDGE, FEW, Index, Outlined, OutlinedList, OutlineTape, unchanged
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.variables import Look, in_slots
from micrograd.engine.copying import user_attributes
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MOST_UNLIKE = 8  # iterations, the first ones and the last, which may differ from all others
_WITHOUT_STATE = (object, ABC, Generic)
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def through(function: Any, *given: Any, **settings: Any) -> Any:
    """What a loop goes through: what range, zip or enumerate gives; without such a function, the one thing given."""
    rows, tape = rows_in_use(), recorder_on_top()
    if rows is None or not any(function is each for each in (None, range, zip, enumerate)):
        return given[0] if function is None else function(*given, **settings)
    if function is range:
        function, given = None, (range(*given),)
    given = tuple(map(rows.given, given))
    counts = [len(each) for each in given if isinstance(each, (range, list, np.ndarray))]
    rows.goes_through(*counts)
    if isinstance(tape, OutlineTape) and any(_is_long(tape, each) for each in given):
        return _LongRows(tape, function, given, settings)
    if isinstance(tape, OutlineTape):
        return given[0] if function is None else function(*given, **settings)
    if rows.counts:
        given = tuple([counts_of(each) if type(each) is range and rows.is_near(each) else each for each in given])
        if function is enumerate and isinstance(given[0], (list, np.ndarray)):
            function = _enumerated
    found = given[0] if function is None else function(*given, **settings)
    return in_sight(found, rows, min(counts)) if any(map(rows.grows, counts)) else found


def _enumerated(given: Any, start: int = 0) -> Any:
    """What enumerate gives, where a few of many rows are traced."""
    numbers, rows = range(start, start + len(given)), rows_in_use()
    is_near = rows is not None and rows.is_near(numbers)
    return zip(counts_of(numbers) if is_near else numbers, given, strict=True)


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

    Attributes:
        compared: the iterations whose numbers others were compared with.
    """

    def __init__(self, tape: OutlineTape, function: Any, given: Sequence[Any], settings: dict[str, Any]) -> None:
        self.tape, self._function = tape, function
        self._parts, self._start = given, settings.get("start", 0)
        if function is enumerate and len(given) > 1:
            self._parts, self._start = given[:1], given[1]
        lengths = [len(part) if _is_long(tape, part) else -1 for part in self._parts]
        if function is zip and not settings.get("strict") and min(lengths) > 0:
            lengths = [min(lengths)]
        if len(set(lengths)) > 1 or type(self._start) is not int:
            tape.fail("a loop over rows and something else")
        self._length, self._started, self._before = lengths[0], 0, None
        self.compared: set[int] = set()
        self._grown: list[Any] = []  # how long lists are, and what they were asked for, when each iteration began

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> Any:
        """What an iteration gets."""
        items = [self._index(part) if type(part) is range else part[number] for part in self._parts]
        if self._function is enumerate:
            items.insert(0, self._index(range(self._start, self._start + len(self))))
        return items[0] if self._function is None else tuple(items)

    def _index(self, counted: range) -> Index:
        loop = self if self._started else None  # else it is one of a comprehension, which stands for all of them
        return Index(loop, counted)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        tape, frame = self.tape, sys._getframe(1)
        if frame.f_code.co_flags & _SUSPENDED or not tape.reached.is_as_before():
            tape.fail("a loop that remembers something")
        self._grown.append({id(each): (each, each.length(), each.asks) for each in tape.growing})
        begins = _Variables(tape, self).frame(frame)
        last = len(self) - _MOST_UNLIKE
        if self._started < last and begins == self._before and not any(self.number <= n < last for n in self.compared):
            self._skip(last if max(self.compared, default=-1) >= last else len(self))
        if self._started == len(self):
            raise StopIteration
        if _MOST_UNLIKE == self._started < last:
            tape.fail("a loop that counts")
        self._started, self._before = self._started + 1, begins
        return self[self.number]

    @property
    def number(self) -> int:
        """The number of the iteration that runs."""
        return self._started - 1

    def has_grown(self, each: GrowingList) -> bool:
        """Whether a list was there when the loop began, and is longer now."""
        _, length, _ = self._grown[0].get(id(each), (each, each.length(), 0))
        return each.length() > length

    def _skip(self, end: int) -> None:
        """Go on at an iteration further on: those up to there do what the last one did, and so lists are known.

        The last ones run by themselves, if one of them may do something else.
        """
        tape = self.tape
        tape.made(("loop", len(self)), None, ())
        for each, _, asks in self._grown[0].values():
            growth = each.length() - self._grown[-2][id(each)][1]
            if self in each.by_number and growth != 1:
                tape.fail("a list with another number of items than iterations")
            if self.has_grown(each):
                if each.asks != asks:
                    tape.fail("a list that grows")
                each.become_long(tape, each.length() + growth * (end - self._started))
        tape.growing = [each for each in tape.growing if type(each) is GrowingList]
        self._started = end


class _Variables(Look):
    """Looks at variables in an outline, at the beginning of an iteration of a loop.

    Args:
        tape: the outline.
        loop: the loop.
    """

    _tape: OutlineTape

    def __init__(self, tape: OutlineTape, loop: _LongRows) -> None:
        super().__init__(tape)
        self._loop = loop

    def at(self, item: Any, depth: int = 0) -> Any:
        """What is known of an object; of a number of the tape, whether it is in other variables, too."""
        kind, tape = type(item), self._tape
        if isinstance(item, Value) and user_attributes(item):
            tape.fail("an attribute of a number")
        if isinstance(item, Symbol) and item._tape is tape:
            return kind, self._number(item)
        if kind is Outlined:
            return kind, self._number(item), tape.told(item)[-1]
        if kind is OutlinedList:
            return kind, self._number(item), len(item), item.row, item.changes
        if kind is Index:
            return kind, item.begin, item.last
        if kind is GrowingList:
            items = item.last() if self._loop.has_grown(item) else tuple(list.__iter__(item))
            return kind, self._number(item), self.at(items, depth + 1)
        if tape.reached.holds(item) or isinstance(item, Primitive) or _is_of_library(item):
            return kind, Same(item)
        return super().at(item, depth)

    def other(self, item: Any, depth: int) -> Any:
        """What is known of a function in C, or of an object of a class in Python; nothing watches others."""
        kind = type(item)
        if kind is BuiltinFunctionType and isinstance(item.__self__, ModuleType):
            return item
        if not all(each in _WITHOUT_STATE or self._is_watched(each) for each in kind.__mro__):
            self._tape.fail("an object in a variable")
        attributes = tuple(getattr(item, "__dict__", {}).items())
        return kind, self._number(item), self.at((tuple(in_slots(item)), attributes), depth + 1)

    def _is_watched(self, kind: type) -> bool:
        """Whether what the class of an object holds is watched, and objects have no more than attributes and slots."""
        return self._tape.reached.holds(kind) and not (is_foreign(kind.__module__) or "__new__" in vars(kind))


def _is_of_library(item: Any) -> bool:
    """Whether it is a class or a module of a library: their attributes stay."""
    if isinstance(item, ModuleType):
        return item is sys.modules.get(item.__name__) and is_foreign(item.__name__)
    if not isinstance(item, type) or not is_foreign(item.__module__):
        return False
    return getattr(sys.modules.get(item.__module__), item.__name__, None) is item
