"""Calls: which run of which function made a Value. Pages show each run as a group.

    @mg.scope
    def attention(x): ...

    y = attention(x)       # y remembers the run: its name, when it was, and which Values went in

A run is what lies between its inputs and its results, so only the results remember it, and nodes inside cost nothing.
A run keeps no Value alive: it has only the ids of its inputs. They stay valid, because a result keeps its operands.
Small functions are called often, so runs are plain tuples.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from micrograd._support.checks import is_array
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.stored import SPECIAL
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

tick = count(1).__next__  # each start and each end of a run has a number of its own: runs lie in each other or apart
DEPTH = 6  # of containers in containers, in which Values are looked for
_SINGLE = frozenset([Value, float, int, bool, str, type(None)])  # what has no Values in it, and Values


class Call(NamedTuple):
    """One run of a function.

    Attributes:
        name: of the group.
        of: the function or module that ran.
        inputs: the ids of the Values that went in, and of other objects.
        start, end: when it began and ended. The iterations of a loop occupy intervals of equal length between them.
    """

    name: str
    of: Any
    inputs: Sequence[int]
    start: float
    end: float


def calls_of(value: Value) -> list[Call]:
    """The runs that a Value came out of, the innermost first.

    Example:
        >>> double = remembered(lambda x: x * 2, "double")
        >>> again = remembered(double, "again")
        >>> [call.name for call in calls_of(again(Value(3.0)))]
        ['double', 'again']
    """
    calls = value._calls
    return [_call(call) for call in (calls if type(calls) is list else [calls])] if calls else []


def _call(remembered: tuple[Any, ...]) -> Call:
    """A run as a Value remembers it: as it is, or as the iteration of a loop that has this number."""
    if len(remembered) == 5:
        return Call(*remembered)
    (name, function, inputs, start, end, iterations), iteration = remembered
    return Call(name, function, inputs, start + iteration / iterations, end - 1 + (iteration + 1) / iterations)


def _remember(result: Any, call: tuple[Any, ...]) -> None:
    """A run is over: let the results that came out remember it, alone or after those inside of it."""
    kind = type(result)
    for value in result if kind is list or kind is tuple else (result,):
        if type(value) is Value:
            if (primitive := value._primitive) is not LEAF and primitive is not CONSTANT:
                inner = value._calls
                value._calls = [*(inner if type(inner) is list else [inner]), call] if inner else call
        elif value is not None and type(value) not in _SINGLE:
            _remember(_values(value), call)


def remembered(function: AnyFunction, name: str = "", is_method: bool = False) -> AnyFunction:
    """The function, whose results remember the run that they came out of.

    While something else records, as the compiler does while it traces, it is called as it is.

    Args:
        function: any that gives Values, alone or in containers.
        name: of its runs; its own where left out.
        is_method: whether it is the ``__call__`` of a class: then it is the object that runs, by the name of its class.
    """
    name = name or function.__name__
    cells = getattr(function, "__closure__", None) or ()

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if SPECIAL and not _is_remembering():
            return function(*arguments, **named)
        inputs: list[int] = []
        _add_ids(arguments[1:] if is_method else arguments, inputs, 1)
        if named:
            _add_ids(named.values(), inputs, 1)
        if cells:
            _add_ids(_contents(cells), inputs, 1)
        start = tick()
        result = function(*arguments, **named)
        if is_method:
            _remember(result, (type(arguments[0]).__name__, arguments[0], inputs, start, tick()))
        else:
            _remember(result, (name, function, inputs, start, tick()))
        return result

    return run  # type: ignore[return-value]  # it takes and gives the same


def remembered_for_terms(function: AnyFunction, name: str) -> AnyFunction:
    """As remembered, and cheaper: for a function of a flat sequence, and of what has no Values in it."""

    def run(terms: Sequence[Any], *others: Any) -> Any:
        if SPECIAL and not _is_remembering():
            return function(terms, *others)
        start = tick()
        result = function(terms, *others)
        _remember(result, (name, function, (*map(id, terms),), start, tick()))
        return result

    return run  # type: ignore[return-value]  # it takes and gives the same


def remembering_iterations(function: Callable[..., Any], name: str, given: Any) -> Callable[[Sequence[Any]], None]:
    """What a loop hands the results of its iterations to, when it is over: it lets each remember its iteration.

    Args:
        function: what is called iteration after iteration.
        name: of the iterations.
        given: what the loop goes through, and starts from.
    """
    if not _is_remembering():
        return lambda results: None
    inputs: list[int] = []  # looked for once: what an iteration has besides is of earlier iterations
    _add_ids((given, *_contents(getattr(function, "__closure__", None) or ())), inputs, 1)
    start = tick()

    def remember(results: Sequence[Any]) -> None:
        loop = (name, function, inputs, start, tick(), len(results))
        for iteration, result in enumerate(results):
            for value in result if type(result) is tuple else (result,):
                if type(value) is Value and not value._calls:  # as most are; here, so that they cost no call
                    if (primitive := value._primitive) is not LEAF and primitive is not CONSTANT:
                        value._calls = loop, iteration
                elif value is not None:
                    _remember(value, (loop, iteration))

    return remember


def _is_remembering() -> bool:
    return (recorder := recorder_on_top()) is None or recorder.remembers_calls


def _contents(cells: Iterable[Any]) -> list[Any]:
    """What a function has from around it."""
    contents = []
    for cell in cells:
        with suppress(ValueError):  # a variable that is assigned later
            contents.append(cell.cell_contents)
    return contents


def _add_ids(items: Iterable[Any], found: list[int], depth: int) -> None:
    """Add the ids of the Values in nested containers, and of what else is in them."""
    for item in items:
        found.append(id(item))
        if (kind := type(item)) not in _SINGLE and depth < DEPTH:
            if (kind is list or kind is tuple) and _SINGLE.issuperset(map(type, item)):
                found += map(id, item)
            else:
                _add_ids(_inside(item), found, depth + 1)


def _values(nested: Any, depth: int = 1) -> list[Value]:
    """The Values in nested containers."""
    found: list[Value] = []
    for item in _inside(nested):
        if (kind := type(item)) is Value:
            found.append(item)
        elif kind not in _SINGLE and depth < DEPTH:
            found += _values(item, depth + 1)
    return found


def _inside(container: Any) -> Iterable[Any]:
    """What is right inside of a container; nothing for what is none."""
    if isinstance(container, (list, tuple)):
        return container
    if isinstance(container, dict):
        return container.values()
    if is_array(container):
        return container.ravel().tolist() if container.dtype == object else ()
    return (container,) if isinstance(container, Value) else ()  # of a class of its own
