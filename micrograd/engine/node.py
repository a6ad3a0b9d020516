"""Node: a Value as a float, and micrograd's names for how it was made.

The product of a Value x, which is 3.0, and the plain number 2.0 is a node with

    _data 6.0, _primitive mul, _first x, _x 3.0, _second NUMBER, _y 2.0

It keeps the numbers beside the operands: the gradient belongs to the numbers of the forward pass, also when
x.data is set afterwards. The operators that make nodes, and backward(), are Value's: see value.py.
"""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import Operand, real_number, required_number
from micrograd.engine.closures import HandWritten
from micrograd.engine.lost_gradients import compared_with_number, float_taken, rounded
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.recorder import NO_RECORDER, float_read, recorder_on_top
from micrograd.engine.stored import LATER, SPECIAL, bring_up_to_date, looked_at, set_on
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import ModuleType

    from micrograd.engine.primitive import Primitive

# Not an attribute of the class: when a class changes, the interpreter drops what it has cached for it.
_version: list[object] = [object()]


def requires_grad_version() -> object:
    """An object that is replaced whenever requires_grad is set, so that caches can tell that they are stale."""
    return _version[0]


def user_attributes(node: Node) -> dict[str, Any]:
    """The attributes that the user has set on a node, by name, beside the label."""
    attributes = node.__dict__
    return {name: item for name, item in attributes.items() if name not in _OURS} if attributes else attributes


_OURS = ("label", "_call", "_calls", "_scope")


@cache
def _value_arrays() -> ModuleType:
    """What NumPy does with Values. It needs NumPy, which whoever asks has loaded."""
    from micrograd.engine import value_arrays

    return value_arrays


def forget(node: Node) -> None:
    """Turn a node into a constant."""
    node._primitive, node._first, node._second, node._x, node._y = CONSTANT, NUMBER, NUMBER, (), ()


def _compared(compare: Callable[[float, float], bool]) -> Callable[[Node, Any], bool]:
    """The operator that compares numbers; no gradient flows through it."""

    def method(self: Node, other: Any) -> bool:
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            return tracer.compared(compare, self, other)
        if type(other) is int:
            return compare(self.data, other)  # Python compares them exactly, also an int too large for a float
        try:
            number = other.data if isinstance(other, Node) else real_number(other)
        except OverflowError:
            return compare(self.data, other)  # Python compares a Fraction that is too large for a float exactly
        return NotImplemented if number is None else compare(self.data, number)

    return method


def _whole(of_number: Callable[[Any], int]) -> Callable[[Node], int]:
    """The method that gives the int of a number."""

    def method(self: Node) -> int:
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            return of_number(tracer.symbol(self))
        return of_number(float(self))

    return method


class Node(Operand):
    """What a Value remembers; its arguments are those of Value."""

    # How it was made: a primitive, its operands _first and _second, and the numbers _x and _y that they had.
    # NUMBER stands for a plain number, and for no operand. A variadic primitive (of more operands, or hand-written)
    # has all of them in _x and their numbers in _y. A leaf has () in both, or says in _x that it is the input of a
    # transform (see differentiation.py). There is no tuple and no closure, because the garbage
    # collector's time grows with the objects that it tracks: a node is one of them. _uses is 0 unless backward()
    # is running. All other attributes are in a dictionary, which is made when the first of them is set: the label,
    # those of the user's own, and three by which pages find groups: _call, in what a Neuron returns, is the Neuron, its
    # inputs and the number of the call; _calls, in what other modules and functions return, are these runs (see
    # calls.py), the innermost first; and _scope is the block around, where mg.record_scopes() is on.
    __slots__ = ("__dict__", "_data", "_first", "_grad", "_primitive", "_second", "_uses", "_x", "_y")

    # Numbers of SymPy would make a float of a Value, and lose its gradient; they leave to it what has a priority.
    _op_priority = math.inf

    label = ""
    _call: tuple[Any, Any, int]
    _calls: Any = ()
    _scope: Any = None
    _first: Any
    _second: Any

    def __init__(
        self,
        data: Any,
        _children: Iterable[Any] = (),
        _op: str = "",
        *,
        label: str = "",
        requires_grad: bool = True,
    ) -> None:
        self._data = required_number(data, "the data of a Value")
        self._grad: Any = 0.0
        self._uses = 0
        if label:
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

    @property
    def data(self) -> float:
        """The number. A leaf's may be set; a result's follows from its operands."""
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            tracer.number_read()
        if LATER:
            looked_at(self)
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if not self.is_leaf:
            raise ValueError(f"{self!r} is the result of {self._op!r}: set the data of a leaf, and compute it again")
        number = required_number(data, "the data of a Value")
        set_on(self, "_data", number)

    @property
    def grad(self) -> Any:
        """The gradient: the derivative, with respect to this Value, of what was backpropagated from.

        A float; after ``backward(create_graph=True)`` a Value.
        """
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            tracer.gradient_read()
        if LATER:
            looked_at(self)
        return self._grad

    @grad.setter
    def grad(self, grad: Any) -> None:
        graph = isinstance(grad, Node) and isinstance(self._grad, Node)  # a graph in place of a graph: grad *= 0.5
        grad = grad if graph else required_number(grad, "the grad of a Value")
        if self.is_leaf:
            set_on(self, "_grad", grad)
        else:
            self._grad = grad

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
        _version[0] = object()

    @property
    def _op(self) -> str:
        """The symbol of the primitive that made this Value; empty for a leaf."""
        return self._primitive.symbol

    @property
    def _prev(self) -> set[Any]:
        """The operands; a plain number among them is a Value that requires no gradient."""
        return set(self._operands())

    @property
    def _backward(self) -> Callable[[], object]:
        """The closure that adds this node's contribution to its operands' ``grad``, each time it is called."""
        return self._primitive.closure(self)

    @_backward.setter
    def _backward(self, backpropagate: Callable[[], object]) -> None:
        if not callable(backpropagate):
            raise TypeError(f"_backward must be a function of no arguments, not {backpropagate!r:.80}")
        if not self.is_leaf:  # below a leaf there is nothing to pass a gradient to
            self._remember_by_hand(self._operands(), HandWritten(self._op, backpropagate))

    def _remember_by_hand(self, children: tuple[Any, ...], primitive: HandWritten) -> None:
        for child in children:
            if not isinstance(child, Node):
                raise TypeError(f"a child must be a Value, not {type(child).__name__}: {child!r:.80}")
        if (tracer := tracer_on_top()) is not None:
            tracer.closure_given()
        recorder = recorder_on_top() or NO_RECORDER
        self._primitive, self._first, self._second = primitive, NUMBER, NUMBER
        bring_up_to_date()
        self._x, self._y = children, tuple(child._data for child in children)
        if not recorder.keeps(self) or not primitive.receivers(self):
            forget(self)

    @staticmethod
    def _array(array: Any) -> Any:
        tracer = tracer_on_top() if array.size else None  # an empty array of Values stays one
        return _value_arrays().arranged(array if tracer is None else tracer.array(array))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function of NumPy that works element by element makes of this and other inputs."""
        return _value_arrays().of_elements(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, _: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy makes of this and other arguments."""
        return _value_arrays().of_arrays(function, arguments, settings)

    def _operands(self) -> tuple[Any, ...]:
        """The operands in order. A plain number among them becomes a constant Value, and stays one."""
        if self.is_leaf:
            return ()
        kind: Any = type(self)  # Value
        if self._primitive.variadic:
            self._x = tuple(o if isinstance(o, Node) else kind(o, requires_grad=False) for o in self._x)
            return self._x
        if self._first is NUMBER:
            self._first = kind(self._x, requires_grad=False)
        if self._primitive.second is None:
            return (self._first,)
        if self._second is NUMBER:
            self._second = kind(self._y, requires_grad=False)
        return self._first, self._second

    def _inputs(self) -> tuple[float, ...]:
        """The numbers that the operands had."""
        if self.is_leaf:
            return ()
        if self._primitive.variadic:
            return tuple(self._y)
        return (self._x,) if self._primitive.second is None else (self._x, self._y)

    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)

    def __float__(self) -> float:
        number = self.data
        if self._primitive is not CONSTANT:
            float_read()
            float_taken()
        return number

    def __bool__(self) -> bool:
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            return bool(tracer.symbol(self))
        return self.data != 0

    __int__ = __trunc__ = _whole(int)
    __floor__, __ceil__ = _whole(math.floor), _whole(math.ceil)

    def __round__(self, digits: Any = None) -> Any:
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            return round(tracer.symbol(self), digits)
        number = round(float(self), digits)
        if self._primitive is not CONSTANT:
            rounded()
        return number

    def __eq__(self, other: object) -> Any:  # identity, which NotImplemented leads to
        if not isinstance(other, Node):
            compared_with_number(other)
        return NotImplemented

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        looked_at(self)
        label = f", label={self.label!r}" if self.label else ""
        grad = self._grad.data if isinstance(self._grad, Node) else self._grad
        return f"Value(data={self._data}, grad={grad}{label})"

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)


NUMBER: Any = object.__new__(Node)
NUMBER.__init__(0.0, requires_grad=False)  # every Node refers to it, and so does it itself


def evaluated(primitive: Primitive, operands: tuple[Any, ...]) -> tuple[float, tuple[float, ...]]:
    """The output of a primitive, and the numbers that its operands have."""
    inputs = tuple([o._data if isinstance(o, Node) else primitive.number(o) for o in operands])
    return primitive.computed(inputs, operands), inputs
