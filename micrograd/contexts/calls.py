"""The observer of calls: which call of which function made a Value. Pages show each call as a group.

    @observed
    def attention(x): ...

    y = attention(x)       # y remembers the call: its name, when it was, and which Values went in

``observed`` is all that modules, scopes and functions of the library do about pages. A call is what lies between its
inputs and its results, so only the results remember it, and nodes inside cost nothing. A call keeps no Value alive: it
has only the ids of its inputs. They stay valid, because a result keeps its operands. There are many calls, so they are
plain tuples in an attribute of the node, which ``calls_of`` interprets later:

    (name, function, inputs, start, end)     a call of a function
    (None, module, inputs, start, end)       of a module
    (module, input, start, end)              of a module with one Value, which is an operand of the result
    (neuron, inputs, end)                    of a neuron, with the list itself, by which pages find layers
    (loop, number)                           an iteration of a loop
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from micrograd._support.checks import is_array
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.stored import SPECIAL
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

# The number of the last event. Each end of a call is an event, and its start is the number of the event before it: so
# calls lie in each other or apart. In a list, because a function that counts would take a fifth of a short call.
_clock = [0.0]
DEPTH = 6  # of containers in containers, in which Values are looked for
_SINGLE = frozenset([Value, float, int, bool, str, type(None), FunctionType])  # what has no Values in it, and Values
_VARIADIC = 0x04 | 0x08  # the flags of a function with *arguments, and with **named


def tick() -> float:
    """The number of a new event."""
    _clock[0] = now = _clock[0] + 1.0
    return now


def tick_of_start() -> float:
    """The number of an event after which all starts are later than it, also those of calls."""
    start = tick()
    tick()
    return start


class Call(NamedTuple):
    """One call of a function.

    Attributes:
        name: what its group is called.
        of: the function, or the module, that was called.
        inputs: the ids of the Values that went in, and of other objects.
        start: the event before it began. The iterations of a loop start between an event and the next.
        end: when it was over. The iterations of a loop end between its last event and the one before.
        given: the list that a neuron was called with; None for other calls.
    """

    name: str
    of: Any
    inputs: Sequence[int]
    start: float
    end: float
    given: Any = None


def calls_of(value: Value) -> list[Call]:
    """The calls that a Value came out of, the innermost first.

    Example:
        >>> double = observed(lambda x: x * 2, "double")
        >>> twice = observed(double, "twice")
        >>> [call.name for call in calls_of(twice(Value(3.0)))]
        ['double', 'twice']
    """
    return [_call(record) for record in _records(value)]


def neuron_call(value: Value) -> Call | None:
    """The call of a neuron that a Value came out of, if it did."""
    return next((_call(record) for record in _records(value) if len(record) == 3), None)


def _records(value: Value) -> Sequence[tuple[Any, ...]]:
    calls = value._calls
    return calls if type(calls) is list else [calls] if calls else []


def _call(record: tuple[Any, ...]) -> Call:
    if len(record) == 3:
        neuron, given, end = record
        return Call("Neuron", neuron, list(map(id, given)), end, end, given)
    if len(record) == 4:
        module, operand, start, end = record
        return Call(type(module).__name__, module, [id(operand)], start, end)
    if len(record) == 2:
        (name, function, inputs, start, end, iterations), iteration = record
        return Call(name, function, inputs, start + iteration / iterations, end - 1 + (iteration + 1) / iterations)
    name, of, inputs, start, end = record
    return Call(name or type(of).__name__, of, [inputs] if type(inputs) is int else inputs, start, end)


def _remember(result: Any, call: tuple[Any, ...]) -> None:
    """Record a finished call on its results, after the calls inside it that they have already."""
    kind = type(result)
    for value in result if kind is list or kind is tuple else (result,):
        if type(value) is Value:
            if (primitive := value._primitive) is not LEAF and primitive is not CONSTANT:
                inner = value._calls
                value._calls = [*(inner if type(inner) is list else [inner]), call] if inner else call
        elif value is not None and type(value) not in _SINGLE:
            _remember(_values(value), call)


def _came_out(name: str | None, of: Any, inputs: Any, start: float, result: Any) -> Any:
    """Record a finished call on its result, and return the result."""
    if type(result) is Value and not result._calls:  # as most; it costs less than _remember, which does the same
        primitive = result._primitive
        if primitive is not LEAF and primitive is not CONSTANT:
            _clock[0] = end = _clock[0] + 1.0
            result._calls = name, of, inputs, start, end
    else:
        _remember(result, (name, of, inputs, start, tick()))
    return result


def observed(function: AnyFunction, name: str = "") -> AnyFunction:
    """The function, whose results remember the call that they came out of.

    While something else records, as the compiler does while it traces, it is called as it is.

    Args:
        function: any that gives Values, alone or in containers.
        name: of its calls; its own where left out.
    """
    return _observed(function, name or function.__name__)


def observed_method(function: Any) -> Any:
    """A method that is observed: it is the object that is called, by the name of its class."""

    # One argument or two, as most have: to pack and unpack them would take longer than to compute a product.
    def of_one(self: Any, x: Any) -> Any:
        if SPECIAL and not _is_remembering():
            return function(self, x)
        start = _clock[0]
        inputs = x if type(x) is Value else _ids((x,))  # before a list changes
        result = function(self, x)
        if type(result) is Value and not result._calls:  # what _came_out does: to call it would take a tenth longer
            if result._second is x or result._first is x:  # the result keeps x, and its id would take a tenth longer
                _clock[0] = end = _clock[0] + 1.0
                result._calls = self, x, start, end
                return result
            primitive = result._primitive
            if primitive is not LEAF and primitive is not CONSTANT:
                _clock[0] = end = _clock[0] + 1.0
                result._calls = None, self, id(x) if inputs is x else inputs, start, end
            return result
        return _came_out(None, self, id(x) if inputs is x else inputs, start, result)

    def of_two(self: Any, x: Any, y: Any) -> Any:
        if SPECIAL and not _is_remembering():
            return function(self, x, y)
        inputs = (id(x), id(y)) if type(x) is Value and type(y) is Value else _ids((x, y))
        return _came_out(None, self, inputs, _clock[0], function(self, x, y))

    if getattr(function, "__closure__", None) or (run := with_parameters_of(function, of_one, of_two)) is None:
        return _observed(function, None)
    return run


def _observed(function: AnyFunction, name: str | None) -> AnyFunction:
    cells = getattr(function, "__closure__", None) or ()

    @wraps(function)
    def run(*arguments: Any, **named: Any) -> Any:
        if SPECIAL and not _is_remembering():
            return function(*arguments, **named)
        inputs = _ids(arguments if name else arguments[1:])
        if named:
            inputs += _ids(named.values())
        if cells:
            inputs += _ids(_contents(cells))
        of = function if name else arguments[0]
        return _came_out(name, of, inputs, _clock[0], function(*arguments, **named))

    return run  # type: ignore[return-value]  # it takes and gives the same


def with_parameters_of(method: Any, *functions: Any) -> Any:
    """The function that has as many parameters as a method, after it was given the names of the method's parameters.

    None where no function has as many, or the method has others: with defaults, or for names or positions only.
    """
    if type(method) is not FunctionType or method.__defaults__:
        return None
    code = method.__code__
    if code.co_posonlyargcount or code.co_kwonlyargcount or code.co_flags & _VARIADIC:
        return None
    for function in functions:
        if (own := function.__code__).co_argcount == code.co_argcount:
            names = *code.co_varnames[: code.co_argcount], *own.co_varnames[code.co_argcount :]
            function.__code__ = own.replace(co_varnames=names)
            return wraps(method)(function)
    return None


def neuron_called(output: Any, neuron: Any, given: Any) -> None:
    """Record the call of a neuron with a list of inputs on its output."""
    if type(output) is Value:
        if not output._calls and (primitive := output._primitive) is not LEAF and primitive is not CONSTANT:
            _clock[0] = end = _clock[0] + 1.0
            output._calls = neuron, given, end
        else:
            _remember(output, (neuron, given, tick()))


def observed_iterations(function: Callable[..., Any], name: str, given: Any) -> Callable[[Sequence[Any]], None]:
    """A function that a loop calls at its end with the results of all iterations; it records the iteration on each.

    Args:
        function: what is called iteration after iteration.
        name: of the iterations.
        given: what the loop goes through, and starts from.
    """
    if not _is_remembering():
        return lambda results: None
    # looked for once: what an iteration has besides is of earlier iterations
    inputs = _ids((given, *_contents(getattr(function, "__closure__", None) or ())))
    start = tick_of_start()

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
    """The values that a function closes over."""
    contents = []
    for cell in cells:
        with suppress(ValueError):  # a variable that is assigned later
            contents.append(cell.cell_contents)
    return contents


def _ids(items: Iterable[Any]) -> list[int]:
    """The ids of the Values in nested containers, and of what else is in them."""
    found: list[int] = []
    _add_ids(items, found, 1)
    return found


def _add_ids(items: Iterable[Any], found: list[int], depth: int) -> None:
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
    """The items of a container, without those of nested ones; nothing for what is no container."""
    if isinstance(container, (list, tuple)):
        return container
    if isinstance(container, dict):
        return container.values()
    if is_array(container):
        return container.ravel().tolist() if container.dtype == object else ()
    return (container,) if isinstance(container, Value) else ()  # of a custom class
