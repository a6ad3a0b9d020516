"""The graph as micrograd's lecture has it: there some operations are made of others.

Its engine adds, multiplies and raises to the power of a plain number; the rest follows:

    a - b     a + b * -1
    -a        a * -1
    a / b     a * b**-1
    a - 2     a + -2        a plain number is negated, or inverted, at once
    a / 2     a * 0.5
    a**2      the operation **2 of a alone

What is made here are copies for a picture: the nodes of the graph with their numbers, and those that the
lecture has besides. An added node has the gradient that backward() would have given to it: that of the result,
times the local derivative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.draw.text import readable
from micrograd.engine import primitives
from micrograd.engine.history import HandWritten
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from micrograd.engine.primitive import Primitive


def as_in_lecture(nodes: Iterable[Value]) -> Value:
    """The root of a copy of a graph, with the operations of the lecture.

    Args:
        nodes: the nodes of the graph, each after its operands, and its root last. Operands that are not among
            them are leaves of the copy.

    Example:
        >>> from micrograd.engine.order import topological_order
        >>> a, b = Value(3.0), Value(2.0)
        >>> copied = as_in_lecture(topological_order(a - b))
        >>> [(node._op, node.data) for node in topological_order(copied) if node._op]
        [('*', -2.0), ('+', 1.0)]
    """
    copies: dict[Value, Value] = {}
    for node in nodes:
        operands = []
        for operand in node._operands():
            if operand not in copies:
                copies[operand] = _leaf(operand)
            operands.append(copies[operand])
        copies[node] = _copy(node, operands)
    return copies[node]


def _copy(node: Value, operands: list[Value]) -> Value:
    """A node of the graph, made of these operands; the nodes that the lecture has between them are added."""
    if node.is_leaf:
        return _leaf(node)
    primitive, gradient = node._primitive, float(node.grad)
    made: Primitive = primitive
    match primitive.name:
        case "neg":
            made, operands = primitives.mul, [operands[0], _number(-1.0)]
        case "sub":
            made, operands = primitives.add, [operands[0], _negated(operands[1], node._y, gradient)]
        case "div":
            x, y = node._inputs()
            made, operands = primitives.mul, [operands[0], _inverse(operands[1], y, gradient * x if gradient else 0.0)]
        case "pow" if _is_number(operands[1]):
            made, operands = HandWritten(f"**{readable(node._y)}"), [operands[0]]
    return _result(made, operands, node._data, gradient, node.label)


def _negated(operand: Value, number: float, gradient: float) -> Value:
    if not operand.requires_grad:
        return _number(-number, operand.label and f"-{operand.label}")
    return _result(primitives.mul, [operand, _number(-1.0)], -number, gradient)


def _inverse(operand: Value, number: float, gradient: float) -> Value:
    if not operand.requires_grad:
        return _number(1.0 / number, operand.label and f"{operand.label}**-1")
    return _result(HandWritten("**-1"), [operand], 1.0 / number, gradient)


def _is_number(operand: Value) -> bool:
    """Whether an operand was a plain number in the program; a constant with a name was not."""
    return not operand.requires_grad and not operand.label


def _number(number: float, label: str = "") -> Value:
    return Value(number, label=label, requires_grad=False)


def _leaf(node: Value) -> Value:
    leaf = Value(node.data, label=node.label, requires_grad=node.requires_grad)
    leaf._grad = node.grad
    return leaf


def _result(primitive: Primitive, operands: list[Value], number: float, gradient: float, label: Any = "") -> Value:
    """A node with these numbers. Nothing is computed and nobody records it: it is for a picture only."""
    node = Value(number, label=label)
    node._grad, node._primitive = gradient, primitive
    if primitive.variadic:
        node._x = tuple(operands)
    else:
        node._first, node._second = operands[0], operands[-1]  # of one operand, the second is never read
    return node
