"""Apply any primitive to Values and numbers: of more than two operands, too, and where a recorder is in use.

The operators in value.py do the same for one and two operands. Value gets these functions as methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine import primitives
from micrograd.engine.functions import publish
from micrograd.engine.node import NUMBER, Node
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.stored import SPECIAL
from micrograd.engine.value import _VALUE, Value, _new, _node, _recorder, function_of_one

if TYPE_CHECKING:
    from collections.abc import Callable


def apply(primitive: Primitive, *operands: Any) -> Any:
    """Apply a primitive to Values and real numbers: what every operator does."""
    if SPECIAL and (recorder := _recorder()) is not None:
        return recorder.apply(primitive, *operands)
    return record(primitive, operands)


def record(primitive: Primitive, operands: tuple[Any, ...]) -> Value:
    """Compute, and remember."""
    data, inputs = evaluated(primitive, operands)
    if primitive.variadic:
        return _node(primitive, data, NUMBER, NUMBER, operands, inputs)
    nodes = [operand if isinstance(operand, Value) else NUMBER for operand in operands]
    if len(nodes) == 1:
        nodes, inputs = [*nodes, NUMBER], (*inputs, 0.0)
    return _node(primitive, data, *nodes, *inputs)


def evaluated(primitive: Primitive, operands: tuple[Any, ...]) -> tuple[float, tuple[float, ...]]:
    """The output of a primitive, and the numbers that its operands have."""
    inputs = tuple([o._data if isinstance(o, Node) else primitive.number(o) for o in operands])
    return primitive.computed(inputs, operands), inputs


def applied_with(first: Any, primitive: Primitive, second: Any) -> Any:
    """What ``primitive(first, second)`` gives, faster for Values and floats; for primitives of the table."""
    if SPECIAL:
        return primitive(first, second)
    if type(first) is Value:
        x = first._data
        if type(second) is Value:
            y, operands = second._data, (first, second)
        elif type(second) is float:
            y, operands = second, (first, NUMBER)
        else:
            return primitive(first, second)
    elif type(first) is float and type(second) is Value:
        x, y, operands = first, second._data, (NUMBER, second)
    else:
        return primitive(first, second)
    data = primitive.computed((x, y), (first, second))
    return _node(primitive, data, *operands, x, y)


def public_function(name: str, primitive: Primitive, doc: tuple[str, ...]) -> Callable[..., Any]:
    """The function and method of a public primitive of one or two operands.

    Args:
        name: what it is called.
        primitive: what it applies.
        doc: the first line of its docstring, an example with its result as a comment, and what it raises and when.
    """
    function: Callable[..., Any]
    if len(primitive.derivatives) == 1:
        function, operands = function_of_one(primitive), "x: a number, a Value, or an array of them."
    else:
        function, operands = _function_of_two(primitive), "x, y: numbers, Values, or arrays of them."
    about, example, *raises = doc
    call, _, result = example.partition("  # ")
    parts = [about, f"Args:\n    {operands}", f"Example:\n    >>> {call}\n    {result}"]
    if raises:
        parts.insert(2, "Raises:" + "".join(f"\n    {error}" for error in raises))
    function.__doc__ = "\n\n".join(parts)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "micrograd.functional"  # where users find it, and a pickle of it
    return function


def _function_of_two(primitive: Primitive) -> Callable[[Any, Any], Any]:
    def function(x: Any, y: Any) -> Any:
        return applied_with(x, primitive, y)

    # The operands have the names that the rules give them, also as keywords: y and x for atan2.
    names = primitive.first.__code__.co_varnames[2:4]
    function.__code__ = function.__code__.replace(co_varnames=names)
    return function


def picked(chosen: Any, other: Any) -> Any:
    """What ``where(1.0, chosen, other)`` gives, faster where the other one alone requires a gradient."""
    if SPECIAL or other._primitive is CONSTANT:
        return apply(primitives.where, 1.0, chosen, other)
    data = chosen if type(chosen) is float else chosen._data
    node = _new(*_VALUE)  # as in _node, which would look for what requires a gradient
    node._data, node._grad, node._uses = data, 0.0, 0
    node._primitive = primitives.where
    node._first = node._second = NUMBER
    node._x, node._y = (1.0, chosen, other), (1.0, data, other._data)
    return node


publish(public_function)
Value._apply = staticmethod(apply)  # a primitive that is called with a Value calls this
Value._applied_with = applied_with
Value._picked = staticmethod(picked)
