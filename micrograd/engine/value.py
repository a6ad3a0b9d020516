"""Value: a float that remembers how it was made.

    a, b = Value(2.0), Value(3.0)
    c = a * b + a            # (+) of two operands: (*) of a and b, and a once more
    c.backward()             # a.grad is 4.0, b.grad is 2.0

An operator computes a float and makes a node, which remembers the primitive (one of the table in primitives.py), the
operands and the numbers they had. So a result is the root of a graph, which ``backward`` traverses (see backward.py).
Each node passes its gradient on to its operands, times its local derivatives. That is the chain rule, one step a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from micrograd._support.checks import explained, real_number, required_number
from micrograd.engine import primitives
from micrograd.engine.backward import backpropagate
from micrograd.engine.differentiation import check_no_gradient_is_lost
from micrograd.engine.higher_order import set_adjoints
from micrograd.engine.methods import Methods, method, named
from micrograd.engine.node import NUMBER, Node, evaluated, forget
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import recording_in_use
from micrograd.engine.stored import LATER, SPECIAL, bring_up_to_date

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.recorder import Recorder

_new = object.__new__


def apply(primitive: Primitive, *operands: Any) -> Any:
    """Apply a primitive to Values and real numbers: what every operator does."""
    if SPECIAL and (recorder := _recorder()) is not None:
        return recorder.apply(primitive, *operands)
    return record(primitive, operands)


def _recorder() -> Recorder | None:
    """The recorder in use, if any; Values are up to date afterwards. Asked only where SPECIAL is not empty."""
    if LATER:
        bring_up_to_date()
    recording = recording_in_use()
    return None if recording is None else recording.recorder


def record(primitive: Primitive, operands: tuple[Any, ...]) -> Value:
    """Compute, and remember."""
    data, inputs = evaluated(primitive, operands)
    if primitive.variadic:
        return _node(primitive, data, NUMBER, NUMBER, operands, inputs)
    nodes = [operand if isinstance(operand, Value) else NUMBER for operand in operands]
    if len(nodes) == 1:
        nodes, inputs = [*nodes, NUMBER], (*inputs, 0.0)
    return _node(primitive, data, *nodes, *inputs)


def _node(primitive: Primitive, data: float, first: Value, second: Value, x: Any, y: Any) -> Value:
    """The node of a result; a constant where no gradient would flow."""
    node = _new(Value)
    node._data, node._grad, node._uses = data, 0.0, 0
    node._primitive = primitive
    node._first, node._second = first, second
    node._x, node._y = x, y
    no_operand = first._primitive is CONSTANT and second._primitive is CONSTANT
    if no_operand and not (primitive.variadic and primitive.receivers(node)):
        forget(node)
    return node


def _operators(primitive: Primitive) -> tuple[Callable[[Value, Any], Value], Callable[[Value, Any], Value]]:
    """The operator that applies a primitive of two operands, and its reflection, with the Value on the right."""
    forward = primitive.forward

    def operator(self: Value, other: Any) -> Any:  # as apply does, for two operands: nearly all nodes are made here
        if SPECIAL and (recorder := _recorder()) is not None:
            known = isinstance(other, Value) or real_number(other) is not None
            return recorder.apply(primitive, self, other) if known else NotImplemented
        if type(other) is Value:
            second, y = other, other._data
        elif type(other) is float:
            second, y = NUMBER, other
        elif isinstance(other, Value):
            second, y = other, other._data
        elif (number := real_number(other)) is not None:
            second, y = NUMBER, number
        else:
            return NotImplemented  # Python then asks the other operand
        x = self._data
        try:
            data = forward(x, y)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (x, y), (self, other)) from error
        node = _new(Value)  # as in _node: a call would take a tenth of the time
        node._data = data
        node._grad = 0.0
        node._uses = 0
        node._primitive = primitive
        node._first = self
        node._second = second
        node._x = x
        node._y = y
        if self._primitive is CONSTANT and second._primitive is CONSTANT:
            forget(node)
        return node

    def reflected(self: Value, other: Any) -> Any:
        if (number := other if type(other) is float else real_number(other)) is None:
            return NotImplemented
        if SPECIAL and (recorder := _recorder()) is not None:
            return recorder.apply(primitive, other, self)
        data = primitive.computed((number, self._data), (other, self))
        return _node(primitive, data, NUMBER, self, number, self._data)

    return named(operator, primitive), named(reflected, primitive)


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


def picked(chosen: Any, other: Any) -> Any:
    """What ``where(1.0, chosen, other)`` gives, faster where the other one alone requires a gradient."""
    if SPECIAL or other._primitive is CONSTANT:
        return apply(primitives.where, 1.0, chosen, other)
    data = chosen if type(chosen) is float else chosen._data
    node = _new(Value)  # as in _node, which would look for what requires a gradient
    node._data, node._grad, node._uses = data, 0.0, 0
    node._primitive = primitives.where
    node._first = node._second = NUMBER
    node._x, node._y = (1.0, chosen, other), (1.0, data, other._data)
    return node


class Value(Methods, Node):
    """One float, its gradient, and how it was made.

    Args:
        data: a real number: int, float, bool, a NumPy scalar, Fraction or Decimal; TypeError for anything else.
        _children, _op: the operands and the symbol of a hand-written operation; assign its ``_backward`` next.
        label: a name for pictures and error messages.
        requires_grad: False for a constant: no gradient flows to it, its ``grad`` stays 0.

    Example:
        >>> x, y = Value(3.0, label="x"), Value(2.0)
        >>> (x * y + x).backward()
        >>> x, y.grad
        (Value(data=3.0, grad=3.0, label='x'), 3.0)
    """

    __slots__ = ()

    __add__, __radd__ = _operators(primitives.add)
    __sub__, __rsub__ = _operators(primitives.sub)
    __mul__, __rmul__ = _operators(primitives.mul)
    __truediv__, __rtruediv__ = _operators(primitives.div)
    __pow__, __rpow__ = _operators(primitives.pow)
    __neg__, __pos__ = method(primitives.neg), method(primitives.identity)
    __abs__ = method(primitives.abs)

    def _applied(self, primitive: Primitive) -> Any:  # as apply does, for one operand
        if SPECIAL or primitive.variadic:
            return apply(primitive, self)
        x = self._data
        try:
            data = primitive.forward(x)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (x,), (self,)) from error
        return _node(primitive, data, self, NUMBER, x, 0.0)

    _applied_with = applied_with
    _picked = staticmethod(picked)
    _apply = staticmethod(apply)  # a primitive that is called with a Value calls this
    _repr_svg_: ClassVar[Callable[[Any], str | None]]  # the picture that a notebook shows: draw hands it over

    def backward(self, gradient: Any = 1.0, create_graph: bool = False) -> None:
        """Backpropagate: fill ``grad`` of every Value that this one was computed from.

        Leaves accumulate over calls, until their ``grad`` is set to 0; the nodes between have the gradient of the last
        call. Whatever is raised, Ctrl-C too, leaves have the gradients that they had before.

        Args:
            gradient: the gradient of this Value itself; a weight where there are several outputs.
            create_graph: make each ``grad`` a Value with a graph of its own, to differentiate again.

        Raises:
            ValueError: if no gradient is required, an operation has no derivative, or the graph has a cycle; without
                create_graph, also inside of a function that a transform differentiates, if this depends on its inputs.
            ArithmeticError: what a derivative raises, as that of sqrt at 0 does.
        """
        if self._primitive is CONSTANT:
            raise ValueError(f"{self!r} requires no gradient: it is a constant, made of constants, or under no_grad")
        if create_graph:
            start = gradient if isinstance(gradient, Value) else Value(gradient, requires_grad=False)
            set_adjoints(self, start, create_graph=True)
        else:
            check_no_gradient_is_lost(self, "backward()")
            backpropagate(self, required_number(gradient, "the gradient of a Value"))
