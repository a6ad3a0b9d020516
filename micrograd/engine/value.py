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
from micrograd.engine.differentiation import check_no_gradient_is_lost, differentiation_in_use
from micrograd.engine.higher_order import set_adjoints
from micrograd.engine.history import History
from micrograd.engine.methods import Methods
from micrograd.engine.node import NUMBER, forget
from micrograd.engine.primitive import CONSTANT, LEAF, Primitive, named
from micrograd.engine.recorder import recording_in_use
from micrograd.engine.stored import LATER, SPECIAL, bring_up_to_date

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from micrograd.engine.primitive_base import Self
    from micrograd.engine.recorder import Recorder

_new = object.__new__
_NO_CHILDREN: tuple[Any, ...] = ()


def _recorder() -> Recorder | None:
    """The recorder in use, if any; Values are up to date afterwards. Asked only where SPECIAL is not empty."""
    if LATER:
        bring_up_to_date()
    recording = recording_in_use()
    return None if recording is None else recording.recorder


def _node(primitive: Primitive, data: float, first: Value, second: Value, x: Any, y: Any) -> Value:
    """The node of a result; a constant where no gradient would flow."""
    node = _new(*_VALUE)
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

    def operator(self: Value, other: Any) -> Any:  # nearly all nodes are made here
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
        node = _new(*_VALUE)  # as in _node: a call would take a tenth of the time
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


def function_of_one(primitive: Primitive) -> Callable[[Self], Self]:
    """The function that applies a primitive of one operand. It is the method, too."""
    forward, variadic = primitive.forward, primitive.variadic

    def function(x: Any) -> Any:
        if type(x) is not Value or SPECIAL or variadic:
            return x._apply(primitive, x) if isinstance(x, Value) else primitive(x)
        number = x._data
        try:
            data = forward(number)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (number,), (x,)) from error
        return _node(primitive, data, x, NUMBER, number, 0.0)

    return named(function, primitive)


class Value(Methods, History):
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

    def __init__(
        self,
        data: Any,
        _children: Iterable[Any] = (),
        _op: str = "",
        *,
        label: str = "",
        requires_grad: bool = True,
    ) -> None:
        self._data = data if type(data) is float else required_number(data, "the data of a Value")
        self._grad = 0.0
        self._uses = 0
        if label:
            self.label = label
        self._primitive = LEAF if requires_grad else CONSTANT
        self._first = self._second = NUMBER
        self._x = self._y = ()
        if _children is not _NO_CHILDREN:
            self._made_by_hand(_children, _op)

    __add__, __radd__ = _operators(primitives.add)
    __sub__, __rsub__ = _operators(primitives.sub)
    __mul__, __rmul__ = _operators(primitives.mul)
    __truediv__, __rtruediv__ = _operators(primitives.div)
    __pow__, __rpow__ = _operators(primitives.pow)
    __neg__, __pos__ = function_of_one(primitives.neg), function_of_one(primitives.identity)
    __abs__ = function_of_one(primitives.abs)

    _applied_with: Any  # handed over, like the next two, by applying.py
    _picked: ClassVar[Callable[[Any, Any], Any]]
    _apply: ClassVar[Callable[..., Any]]  # a primitive that is called with a Value calls this
    _repr_svg_: ClassVar[Callable[[Any], str | None]]  # the picture that a notebook shows: draw hands it over

    def backward(self, gradient: Any = 1.0, create_graph: bool = False) -> None:
        """Backpropagate: fill ``grad`` of every Value that this one was computed from.

        Leaves accumulate over calls, until you set their ``grad`` to 0; the other nodes have the gradient of the last
        call. After any error, also Ctrl-C, leaves have the gradients that they had before.

        Args:
            gradient: the gradient of this Value itself; a weight if there are several outputs.
            create_graph: make each ``grad`` a Value with a graph, to differentiate again.

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
            if SPECIAL or differentiation_in_use() is not None:
                check_no_gradient_is_lost(self, "backward()")
            number = gradient if type(gradient) is float else required_number(gradient, "the gradient of a Value")
            backpropagate(self, number)


_VALUE = (Value,)  # for _new(*_VALUE), which takes 0.7 of _new(Value): CPython would make this tuple at each call
