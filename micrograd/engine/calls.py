"""Calls: which run of which function a Value came out of. Pages show each run as a box.

    @mg.scope
    def attention(x): ...

    y = attention(x)       # y remembers the run: its name, when it was, and which Values went in

What a run computed lies between what went in and what came out, so only the latter remembers it; no node inside costs
anything. A run keeps no Value alive: of what went in, it has the ids. They stay right, because a result keeps what it
was computed from.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from micrograd._support.checks import is_array
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.recorder import recorder_in_use, recorder_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

clock = count(1)  # each start and each end of a run has a number of its own, so that runs lie in each other or apart
DEPTH = 5  # of containers in containers, in which Values are looked for
_NUMBERS = (float, int, bool, str, type(None))


class Call:
    """One run of a function.

    Attributes:
        name: what boxes are called.
        of: the function, or the module, that ran.
        inputs: the ids of the Values that went in.
        start, end: when it began, and when it was over.
    """

    __slots__ = ("end", "inputs", "name", "of", "start")

    def __init__(self, name: str, of: object, inputs: list[int]) -> None:
        self.name, self.of, self.inputs = name, of, inputs
        self.start = self.end = next(clock)

    def gave(self, result: Any) -> None:
        """The run is over: let the results that came out remember it."""
        self.end = next(clock)
        for value in (result,) if type(result) is Value else _values(result, []):
            primitive = value._primitive
            if primitive is not LEAF and primitive is not CONSTANT:
                value._calls = (value._calls, self) if value._calls else self


def calls_of(value: Value) -> list[Call]:
    """The runs that a Value came out of, the innermost first.

    Example:
        >>> double = remembered(lambda x: x * 2, "double")
        >>> again = remembered(double, "again")
        >>> [call.name for call in calls_of(again(Value(3.0)))]
        ['double', 'again']
    """
    found, rest = [], value._calls
    while isinstance(rest, tuple) and rest:
        rest, outer = rest
        found.append(outer)
    return [*([rest] if rest else []), *reversed(found)]


def remembered(function: AnyFunction, name: str = "", is_method: bool = False) -> AnyFunction:
    """The function, whose results remember the run that they came out of.

    While something else records, as the compiler does while it traces, it is called as it is.

    Args:
        function: any that gives Values, alone or in containers.
        name: of its runs; its own where left out.
        is_method: whether it is the ``__call__`` of a class: then it is the object that runs, by the name of its class.
    """
    name = name or function.__name__

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if not _is_remembering():
            return function(*arguments, **named)
        if is_method:
            call = Call(type(arguments[0]).__name__, arguments[0], _ids((arguments[1:], named)))
        else:
            call = Call(name, function, _ids((arguments, named, _closed_over(function))))
        result = function(*arguments, **named)
        call.gave(result)
        return result

    return run  # type: ignore[return-value]  # it takes and gives the same


def remembered_turns(function: Callable[..., Any], name: str, given: Any) -> Callable[..., Any]:
    """The function that a loop calls turn after turn, whose results remember the turn.

    Args:
        function: takes what the loop hands to it.
        name: of the turns.
        given: what the loop goes through, and starts from.
    """
    if not _is_remembering():
        return function
    inputs = _ids((given, _closed_over(function)))  # looked for once: what a turn has besides is of earlier turns

    def turn(*arguments: Any) -> Any:
        call = Call(name, function, inputs)
        result = function(*arguments)
        call.gave(result)
        return result

    return turn


def _is_remembering() -> bool:
    return recorder_in_use() is None or (recorder := recorder_on_top()) is None or recorder.remembers_calls


def _closed_over(function: Any) -> list[Any]:
    """What a function has from around it."""
    contents = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # a variable that is assigned later
            contents.append(cell.cell_contents)
    return contents


def _ids(given: Any) -> list[int]:
    return [id(value) for value in _values(given, [])]


def _values(nested: Any, found: list[Value], depth: int = 0) -> list[Value]:
    """The Values in nested containers, added to those found."""
    items: Iterable[Any] = nested
    if isinstance(nested, dict):
        items = nested.values()
    elif is_array(nested):
        items = nested.ravel().tolist() if nested.dtype == object else ()
    elif not isinstance(nested, (list, tuple)):
        items = (nested,) if isinstance(nested, Value) else ()
    for item in items:
        kind = type(item)
        if kind is Value:
            found.append(item)
        elif kind not in _NUMBERS and depth < DEPTH:
            _values(item, found, depth + 1)
    return found
