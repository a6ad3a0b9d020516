"""The engine: Value, a float that remembers how it was made, and backpropagation through it.

Every operator on Values does two things: it computes a float, and it makes a node that remembers the
primitive (from the table in primitives.py), the operands and the numbers they had. Nodes point at
their operands, so the result of a program is the root of a graph:

    a, b = Value(2.0), Value(3.0)
    c = a * b + a            # c = (+) of two operands: (*) of a and b, and a once more

``c.backward()`` walks that graph from the root. Each node multiplies its own gradient by its local
derivatives and adds the products to its operands' gradients: the chain rule, one step a node. A node
takes its turn only after everything that uses it has, so by then its gradient is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from micrograd._support.checks import explained, real_number, required_number
from micrograd.engine import primitives
from micrograd.engine.backward import backpropagate
from micrograd.engine.higher_order import gradients, set_graphs, shares, shares_of
from micrograd.engine.node import NUMBER, Node, forget
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import recorder_in_use

if TYPE_CHECKING:
    from collections.abc import Callable

_new = object.__new__


def _unary(primitive: Primitive) -> Callable[[Value], Value]:
    """The method that applies a primitive of one operand."""
    forward = primitive.forward

    def method(self: Value) -> Value:
        if (recorder := recorder_in_use()) is not None:
            return recorder(primitive, self)
        x = self._data
        try:
            data = forward(x)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (x,), (self,)) from error
        return _node(primitive, data, self, NUMBER, x, 0.0)

    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


def _binary(primitive: Primitive) -> Callable[[Value, Any], Value]:
    """The operator or method that applies a primitive of two operands, a Value and anything."""
    forward = primitive.forward

    def method(self: Value, other: Any) -> Value:
        if isinstance(other, Value):
            second, y = other, other._data
        elif (number := real_number(other)) is not None:
            second, y = NUMBER, number
        else:
            return NotImplemented
        if (recorder := recorder_in_use()) is not None:
            return recorder(primitive, self, other)
        x = self._data
        try:
            data = forward(x, y)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (x, y), (self, other)) from error
        # _node, written out: nearly all nodes are made here, and a call would take a tenth of the time
        node = _new(Value)
        node._data = data
        node._grad = 0.0
        node._uses = 0
        node.label = ""
        node._primitive = primitive
        node._first = self
        node._second = second
        node._x = x
        node._y = y
        if self._primitive is CONSTANT and second._primitive is CONSTANT:
            forget(node)
        return node

    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


def _reflected(primitive: Primitive) -> Callable[[Value, Any], Value]:
    """The operator that applies a primitive of two operands, a plain number and a Value."""
    forward = primitive.forward

    def method(self: Value, other: Any) -> Value:
        if (number := real_number(other)) is None:
            return NotImplemented
        if (recorder := recorder_in_use()) is not None:
            return recorder(primitive, other, self)
        y = self._data
        try:
            data = forward(number, y)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (number, y), (other, self)) from error
        return _node(primitive, data, NUMBER, self, number, y)

    return method


def apply(primitive: Primitive, *operands: Any) -> Any:
    """Apply a primitive to Values and real numbers, however many, and record the result."""
    if (recorder := recorder_in_use()) is not None:
        return recorder(primitive, *operands)
    data, inputs = evaluated(primitive, operands)
    if primitive.first is None:
        return _node(primitive, data, NUMBER, NUMBER, operands, inputs)
    first, second, *_ = (*(o if isinstance(o, Value) else NUMBER for o in operands), NUMBER)
    x, y, *_ = (*inputs, 0.0)
    return _node(primitive, data, first, second, x, y)


def evaluated(primitive: Primitive, operands: tuple[Any, ...]) -> tuple[float, tuple[float, ...]]:
    """The output of a primitive, and the numbers its operands have."""
    inputs = tuple([o._data if type(o) is Value else _number(o, primitive) for o in operands])
    try:
        data = primitive.forward(*inputs)
        return data if type(data) is float else required_number(data, f"the output of {primitive.name}"), inputs
    except (ArithmeticError, ValueError) as error:
        raise explained(error, primitive, inputs, operands) from error


def _number(operand: Any, primitive: Primitive) -> float:
    if isinstance(operand, Value):
        return operand._data
    return operand if type(operand) is float else required_number(operand, f"an operand of {primitive.name}")


def _node(primitive: Primitive, data: float, first: Value, second: Value, x: Any, y: Any) -> Value:
    """A Value that remembers how it was made, or a constant where no gradient would flow."""
    node = _new(Value)
    node._data = data
    node._grad = 0.0
    node._uses = 0
    node.label = ""
    node._primitive = primitive
    node._first = first
    node._second = second
    node._x = x
    node._y = y
    no_operand = first._primitive is CONSTANT and second._primitive is CONSTANT
    if no_operand and (primitive.first is not None or not primitive.receivers(node)):
        forget(node)
    return node


class Value(Node):
    """One float, its gradient, and how it was made.

    Args:
        data: a real number: int, float, bool, a NumPy scalar, Fraction or Decimal.
        _children: the operands of a hand-written operation; assign its ``_backward`` next.
        _op: the symbol of a hand-written operation.
        label: a name for pictures and error messages.
        requires_grad: False for a constant: no gradient flows to it, its ``grad`` stays 0.

    Raises:
        TypeError: for data that is not a real number.

    Example:
        >>> x, y = Value(3.0, label="x"), Value(2.0)
        >>> z = x * y + x
        >>> z.backward()
        >>> x, y.grad
        (Value(data=3.0, grad=3.0, label='x'), 3.0)
    """

    __slots__ = ()

    __add__, __radd__ = _binary(primitives.add), _reflected(primitives.add)
    __sub__, __rsub__ = _binary(primitives.sub), _reflected(primitives.sub)
    __mul__, __rmul__ = _binary(primitives.mul), _reflected(primitives.mul)
    __truediv__, __rtruediv__ = _binary(primitives.div), _reflected(primitives.div)
    __pow__, __rpow__ = _binary(primitives.pow), _reflected(primitives.pow)
    __neg__, __pos__ = _unary(primitives.neg), _unary(primitives.identity)
    __abs__ = abs = _unary(primitives.abs)

    exp, expm1 = _unary(primitives.exp), _unary(primitives.expm1)
    log, log1p = _unary(primitives.log), _unary(primitives.log1p)
    sqrt, erf = _unary(primitives.sqrt), _unary(primitives.erf)
    sin, cos, tan = _unary(primitives.sin), _unary(primitives.cos), _unary(primitives.tan)
    asin, acos, atan = _unary(primitives.asin), _unary(primitives.acos), _unary(primitives.atan)
    sinh, cosh, tanh = _unary(primitives.sinh), _unary(primitives.cosh), _unary(primitives.tanh)
    sigmoid, softplus = _unary(primitives.sigmoid), _unary(primitives.softplus)
    relu, silu, gelu = _unary(primitives.relu), _unary(primitives.silu), _unary(primitives.gelu)
    arcsin, arccos, arctan = asin, acos, atan  # what NumPy calls them

    _apply = staticmethod(apply)  # a primitive called with a Value calls this

    def maximum(self, other: Any) -> Value:
        """See micrograd.maximum."""
        return primitives.maximum(self, other)

    def minimum(self, other: Any) -> Value:
        """See micrograd.minimum."""
        return primitives.minimum(self, other)

    def leaky_relu(self, slope: Any = 0.01) -> Value:
        """See micrograd.leaky_relu."""
        return primitives.leaky_relu(self, slope)

    def elu(self, alpha: Any = 1.0) -> Value:
        """See micrograd.elu."""
        return primitives.elu(self, alpha)

    def backward(self, gradient: Any = 1.0, create_graph: bool = False) -> None:
        """Backpropagate: fill ``grad`` of every Value that this one was computed from.

        Leaves accumulate over calls, until their ``grad`` is set to 0. The nodes between have the
        gradient of the last call.

        Args:
            gradient: the gradient of this Value itself; a weight where there are several outputs.
            create_graph: make each ``grad`` a Value with a graph of its own, to differentiate again.

        Raises:
            ValueError: if this Value requires no gradient, if an operation on the way has no
                derivative, or if the graph has a cycle.
            ArithmeticError: what a derivative raises, as that of sqrt at 0 does. The leaves then have
                the gradients they had before, and the nodes between have none.
        """
        if self._primitive is CONSTANT:
            raise ValueError(f"{self!r} requires no gradient: it is a constant, made of constants, or under no_grad")
        if not create_graph:
            number = required_number(gradient, "the gradient of a Value")
            if shares_of.get() is not shares:
                gradients(self, number, create_graph=False)  # looked at, all of them, before any is set
            backpropagate(self, number)
            return
        start = gradient if isinstance(gradient, Value) else Value(gradient, requires_grad=False)
        set_graphs(self, start)

    def conjugate(self) -> Value:
        """This Value, which is real; NumPy asks for it in dot products."""
        return self

    _repr_svg_: ClassVar[Callable[[Any], str | None]]  # what a notebook shows: draw hands it over
