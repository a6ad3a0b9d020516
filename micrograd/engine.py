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

import operator
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd import primitives
from micrograd.backpropagation import backpropagate
from micrograd.checks import explained, real_number, required_number
from micrograd.closures import HandWritten, changing_gradients
from micrograd.higher_order import floats_refused, gradients, shares, shares_of
from micrograd.interrupts import finish
from micrograd.registry import CONSTANT, LEAF, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

# Where one is set, the operators hand their work to it instead of recording it themselves.
_recorder: ContextVar[Callable[..., Any] | None] = ContextVar("recorder", default=None)
recorder_in_use = _current_recorder = _recorder.get
_new = object.__new__
# How often requires_grad was set: who remembers it can tell that nothing has changed. It is no attribute of
# the class, as each change of a class makes the interpreter forget what it has learnt of it.
freezings = [0]
_RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of a generator, a coroutine and both at once


def _unary(primitive: Primitive) -> Callable[[Value], Value]:
    """The method that applies a primitive of one operand."""
    forward = primitive.forward

    def method(self: Value) -> Value:
        if (recorder := _current_recorder()) is not None:
            return recorder(primitive, self)  # type: ignore[no-any-return]  # a Value
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
            return NotImplemented  # type: ignore[no-any-return]  # Python then asks the other operand
        if (recorder := _current_recorder()) is not None:
            return recorder(primitive, self, other)  # type: ignore[no-any-return]  # a Value
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
            _forget(node)
        return node

    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


def _reflected(primitive: Primitive) -> Callable[[Value, Any], Value]:
    """The operator that applies a primitive of two operands, a plain number and a Value."""
    forward = primitive.forward

    def method(self: Value, other: Any) -> Value:
        if (number := real_number(other)) is None:
            return NotImplemented  # type: ignore[no-any-return]  # Python then says what it cannot do
        if (recorder := _current_recorder()) is not None:
            return recorder(primitive, other, self)  # type: ignore[no-any-return]  # a Value
        y = self._data
        try:
            data = forward(number, y)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, primitive, (number, y), (other, self)) from error
        return _node(primitive, data, NUMBER, self, number, y)

    return method


def _compared(compare: Callable[[float, float], bool]) -> Callable[[Value, Any], bool]:
    """The operator that compares numbers; no gradient flows through it."""

    def method(self: Value, other: Any) -> bool:
        if (compared := _of_compiler(_current_recorder(), "compared")) is not None:
            return compared(compare, self, other)  # type: ignore[no-any-return]  # what stands for a bool there
        if type(other) is int:
            return compare(self.data, other)  # which floats do exactly, with ints beyond every float too
        try:
            number = other.data if isinstance(other, Value) else real_number(other)
        except OverflowError:
            return compare(self.data, other)  # a Fraction beyond every float, which Python compares exactly
        return NotImplemented if number is None else compare(self.data, number)

    return method


def _of_compiler(recorder: Any, name: str) -> Any:
    """What the compiler's recorder, or its quiet side, has by this name; None of every other recorder."""
    return getattr(getattr(recorder, "__self__", recorder), name, None)


def _refuse(recorder: Any, what: str, instead: str) -> None:
    """Let the compiler's recorder refuse what would freeze a number into a program; others let it be."""
    if (refuse := _of_compiler(recorder, "refuse")) is not None:
        refuse(what, instead)


def apply(primitive: Primitive, *operands: Any) -> Any:
    """Apply a primitive to Values and real numbers, however many, and record the result."""
    if (recorder := _current_recorder()) is not None:
        return recorder(primitive, *operands)
    data, inputs = _evaluated(primitive, operands)
    if primitive.first is None:
        return _node(primitive, data, NUMBER, NUMBER, operands, inputs)
    first, second, *_ = (*(o if isinstance(o, Value) else NUMBER for o in operands), NUMBER)
    x, y, *_ = (*inputs, 0.0)
    return _node(primitive, data, first, second, x, y)


def _evaluated(primitive: Primitive, operands: tuple[Any, ...]) -> tuple[float, tuple[float, ...]]:
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


def record_nothing(primitive: Primitive, *operands: Any) -> Value:
    """The recorder of no_grad: apply a primitive and remember nothing."""
    node = _new(Value)
    node._data = _evaluated(primitive, operands)[0]
    node._grad = 0.0
    node._uses = 0
    node.label = ""
    _forget(node)
    return node


def recording(recorder: Any) -> Generator[None, None, None]:
    """Once started and until closed, the operators hand their work to a recorder; for None they record it."""
    before = _recorder.get()
    try:
        _recorder.set(recorder)
        yield
    finally:
        _recorder.set(before)


def _innermost(recorder: Any) -> Any:
    """What records in the end: a recorder may look at what another one, its ``inner``, makes."""
    return getattr(recorder, "inner", recorder)


def _around(recorder: Any, inner: Any) -> Any:
    """What records as inner does, looked at by whatever looks at what the recorder makes."""
    return type(recorder)(inner) if hasattr(recorder, "inner") else inner


@contextmanager
def differentiating() -> Generator[None, None, None]:
    """Record inside, under no_grad too: a derivative is asked for there on purpose."""
    before = _recorder.get()
    yield from recording(_around(before, None) if _innermost(before) is record_nothing else before)


class Stretch(ContextDecorator):
    """A context manager that holds for this thread or asyncio task only, and decorates functions."""

    _stretch: Callable[[], Generator[None, None, None]]  # what it does, until it is closed

    def __init__(self, *arguments: object) -> None:
        if arguments:
            name = type(self).__name__
            raise TypeError(f"{name} takes no arguments; to decorate a function write @{name}(), with parentheses")
        self._running: list[Generator[None, None, None]] = []

    def __enter__(self) -> None:
        running = self._stretch()  # a generator puts things back even where Ctrl-C comes in between
        next(running)
        self._running.append(running)

    def __exit__(self, *_: object) -> None:
        self._running.pop().close()

    def _recreate_cm(self) -> Stretch:
        return type(self)()  # for each call of a decorated function, which threads may make at a time

    def __call__(self, function: Any) -> Any:
        """The function, run inside; TypeError for one that runs later than it is called."""
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RUNS_LATER:
            name = type(self).__name__
            raise TypeError(f"{name} cannot decorate {function.__name__}, which runs later: use it inside")
        return super().__call__(function)


class no_grad(Stretch):  # noqa: N801  # used as a function is, as in PyTorch
    """Record nothing inside: results are constants. Holds for this thread or asyncio task only.

    A context manager, and a decorator of functions (not of generators and coroutines, which run later).

    Example:
        >>> x = Value(3.0)
        >>> with no_grad():
        ...     y = x * x
        >>> y.data, y.requires_grad
        (9.0, False)
    """

    def _stretch(self) -> Generator[None, None, None]:
        recorder = _recorder.get()
        # A recorder of the compiler's has a quiet side of its own.
        return recording(_of_compiler(recorder, "quietly") or _around(recorder, record_nothing))


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
        _forget(node)
    return node


def node_of(primitive: Primitive, data: float, operands: tuple[Value, ...], inputs: Iterable[float]) -> Value:
    """A Value that remembers a primitive of any number of operands, all of which gradients flow to."""
    node = Value(data)
    node._primitive, node._x, node._y = primitive, operands, inputs
    return node


def _forget(node: Value) -> None:
    node._primitive, node._first, node._second, node._x, node._y = CONSTANT, NUMBER, NUMBER, (), ()


class Value:
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

    # How it was made: a primitive, its operands _first and _second and the numbers _x and _y that they
    # had. NUMBER stands for a plain number and for no operand. A primitive without .first (of more
    # operands, or hand-written) has all of them in _x and their numbers in _y. No tuple and no closure:
    # the garbage collector's time is spent on the objects it tracks, and one a node is the least
    # there can be. _uses is 0 whenever backward() is not running. _call is set in what a Neuron returns, to
    # the Neuron and its inputs, for pages to name groups by; elsewhere it is not set, and costs no time.
    __slots__ = ("_call", "_data", "_first", "_grad", "_primitive", "_second", "_uses", "_x", "_y", "label")

    _call: tuple[Any, Any]
    _first: Value
    _second: Value

    def __init__(
        self,
        data: Any,
        _children: Iterable[Value] = (),
        _op: str = "",
        *,
        label: str = "",
        requires_grad: bool = True,
    ) -> None:
        self._data = required_number(data, "the data of a Value")
        self._grad: Any = 0.0
        self._uses = 0
        self.label = label
        self._primitive: Primitive = LEAF if requires_grad else CONSTANT
        self._first = self._second = NUMBER
        self._x: Any = ()
        self._y: Any = ()
        try:
            children = tuple(_children)
        except TypeError:
            raise TypeError(f"the children of a Value must be a sequence of Values, not {_children!r:.80}") from None
        if children and requires_grad:
            self._remember_by_hand(children, HandWritten(_op))

    __add__, __radd__ = _binary(primitives.add), _reflected(primitives.add)
    __sub__, __rsub__ = _binary(primitives.sub), _reflected(primitives.sub)
    __mul__, __rmul__ = _binary(primitives.mul), _reflected(primitives.mul)
    __truediv__, __rtruediv__ = _binary(primitives.div), _reflected(primitives.div)
    __pow__, __rpow__ = _binary(primitives.pow), _reflected(primitives.pow)
    __neg__, __pos__ = _unary(primitives.neg), _unary(primitives.identity)
    __abs__ = abs = _unary(primitives.abs)
    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)

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
        return primitives.maximum(self, other)  # type: ignore[no-any-return]

    def minimum(self, other: Any) -> Value:
        """See micrograd.minimum."""
        return primitives.minimum(self, other)  # type: ignore[no-any-return]

    def leaky_relu(self, slope: Any = 0.01) -> Value:
        """See micrograd.leaky_relu."""
        return primitives.leaky_relu(self, slope)  # type: ignore[no-any-return]

    def elu(self, alpha: Any = 1.0) -> Value:
        """See micrograd.elu."""
        return primitives.elu(self, alpha)  # type: ignore[no-any-return]

    @property
    def data(self) -> float:
        """The number. A leaf's may be set; a result's follows from its operands."""
        if (recorder := _current_recorder()) is not None:
            _refuse(recorder, "reading the number of a Value", "Write mg.where, mg.maximum, mg.exp or mg.detach.")
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if not self.is_leaf:
            raise ValueError(f"{self!r} is the result of {self._op!r}: set the data of a leaf, and compute it anew")
        self._data = required_number(data, "the data of a Value")

    @property
    def grad(self) -> Any:
        """The gradient: the derivative, with respect to this Value, of what was backpropagated from.

        A float; after ``backward(create_graph=True)`` a Value.
        """
        return self._grad

    @grad.setter
    def grad(self, grad: Any) -> None:
        graph = isinstance(grad, Value) and isinstance(self._grad, Value)  # a graph in place of a graph: grad *= 0.5
        self._grad = grad if graph else required_number(grad, "the grad of a Value")

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this Value."""
        return self._primitive is LEAF or self._primitive is CONSTANT

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Value. A leaf's may be set, to freeze it or to free it."""
        return self._primitive is not CONSTANT

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        if not self.is_leaf:
            raise ValueError(f"{self!r} is the result of {self._op!r}: set requires_grad of its leaves")
        self._primitive = LEAF if requires_grad else CONSTANT
        freezings[0] += 1

    @property
    def _op(self) -> str:
        """The symbol of the primitive that made this Value; empty for a leaf."""
        return self._primitive.symbol

    @property
    def _prev(self) -> set[Value]:
        """The operands; a plain number among them is a Value that requires no gradient."""
        return set(self._operands())

    @property
    def _backward(self) -> Callable[[], object]:
        """The closure that adds this node's share to its operands' ``grad``, each time it is called."""
        return self._primitive.closure(self)

    @_backward.setter
    def _backward(self, backpropagate: Callable[[], object]) -> None:
        if not callable(backpropagate):
            raise TypeError(f"_backward must be a function of no arguments, not {backpropagate!r:.80}")
        if not self.is_leaf:  # below a leaf there is nothing to pass a gradient to
            self._remember_by_hand(self._operands(), HandWritten(self._op, backpropagate))

    def _remember_by_hand(self, children: tuple[Value, ...], primitive: HandWritten) -> None:
        for child in children:
            if not isinstance(child, Value):
                raise TypeError(f"a child must be a Value, not {type(child).__name__}: {child!r:.80}")
        _refuse(_current_recorder(), "a derivative that is a closure", "Make it a primitive: see mg.primitive.")
        self._primitive, self._first, self._second = primitive, NUMBER, NUMBER
        self._x, self._y = children, tuple(child._data for child in children)
        recorder: Any = _current_recorder()
        if hasattr(recorder, "look_at"):
            recorder.look_at(self)
        if _innermost(recorder) is not None or not primitive.receivers(self):
            _forget(self)

    def _operands(self) -> tuple[Value, ...]:
        """The operands in order; a plain number among them becomes a constant Value, for good."""
        if self.is_leaf:
            return ()
        if self._primitive.first is None:
            nodes = tuple(o if isinstance(o, Value) else Value(o, requires_grad=False) for o in self._x)
            self._x = nodes
            return nodes
        if self._first is NUMBER:
            self._first = Value(self._x, requires_grad=False)
        if self._primitive.second is None:
            return (self._first,)
        if self._second is NUMBER:
            self._second = Value(self._y, requires_grad=False)
        return self._first, self._second

    def _inputs(self) -> tuple[float, ...]:
        """The numbers that the operands had."""
        if self._primitive.first is None:
            return tuple(self._y)
        return (self._x,) if self._primitive.second is None else (self._x, self._y)

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
        found = gradients(self, start, create_graph=True)

        def commit() -> None:
            for node, grad in found.items():
                node._grad = grad

        with changing_gradients:
            for leaf in filter(lambda node: node.is_leaf, found):
                found[leaf] = leaf._grad + found[leaf] if isinstance(leaf._grad, Value) or leaf._grad else found[leaf]
            finish(commit)

    def conjugate(self) -> Value:
        """This Value, which is real; NumPy asks for it in dot products."""
        return self

    def __float__(self) -> float:
        if self._primitive is not CONSTANT and (reason := floats_refused.get()):
            raise TypeError(reason)
        return self.data

    def __bool__(self) -> bool:
        return self.data != 0

    def __repr__(self) -> str:
        label = f", label={self.label!r}" if self.label else ""
        grad = self._grad.data if isinstance(self._grad, Value) else self._grad
        return f"Value(data={self._data}, grad={grad}{label})"

    def _repr_svg_(self) -> str | None:
        """The picture that a notebook shows, where the extra for pictures is installed."""
        from micrograd.draw import svg_or_none  # what draws stands above the engine, and loads when used

        return svg_or_none(self)

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)


NUMBER = _new(Value)
NUMBER._primitive = CONSTANT
NUMBER.__init__(0.0, requires_grad=False)  # type: ignore[misc]  # every Value refers to it, it too
