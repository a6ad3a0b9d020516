"""The methods of a Value: functions such as ``x.tanh()``, and what floats can do: compare, round, convert, print.

Also what NumPy and PyTorch ask of a number. If the result is a plain number, it has no gradient;
lost_gradients.py warns if the program may not have meant that.
"""

from __future__ import annotations

import math
import operator
from functools import cache
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import Operand, real_number
from micrograd.engine import further_primitives, primitives
from micrograd.engine.functions import FunctionMethods
from micrograd.engine.lost_gradients import compared_with_number, float_taken, rounded
from micrograd.engine.node import Node
from micrograd.engine.primitive import CONSTANT, named
from micrograd.engine.recorder import float_read
from micrograd.engine.stored import SPECIAL, looked_at
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from micrograd.engine.primitive import Primitive


@cache
def _value_arrays() -> ModuleType:
    """What NumPy does with Values. It needs NumPy, which whoever asks has loaded."""
    from micrograd.engine import value_arrays

    return value_arrays


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


def _whole(of_number: Callable[[Any], int]) -> Callable[[Methods], int]:
    """The method that gives the int of a number."""

    def method(self: Methods) -> int:
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            return of_number(tracer.symbol(self))
        return of_number(float(self))

    return method


def _operators(primitive: Primitive) -> tuple[Any, Any]:
    """An operator that few programs need, and its reflection."""

    def operator(self: Any, other: Any) -> Any:
        known = isinstance(other, Operand) or real_number(other) is not None
        return primitive(self, other) if known else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return NotImplemented if real_number(other) is None else primitive(other, self)

    return named(operator, primitive), named(reflected, primitive)


class Methods(FunctionMethods):
    """What Value inherits from here. Value has _applied_with."""

    __slots__ = ()

    _applied_with: Any

    # Numbers of SymPy would make a float of a Value, and lose its gradient; they leave to it what has a priority.
    _op_priority = math.inf

    def maximum(self, other: Any) -> Any:
        """See micrograd.maximum."""
        return self._applied_with(primitives.maximum, other)

    def minimum(self, other: Any) -> Any:
        """See micrograd.minimum."""
        return self._applied_with(primitives.minimum, other)

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

    __mod__, __rmod__ = _operators(further_primitives.remainder)
    __floordiv__, __rfloordiv__ = _operators(further_primitives.floor_divide)

    def __divmod__(self, other: Any) -> Any:
        whole = self // other
        return NotImplemented if whole is NotImplemented else (whole, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

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

    def conjugate(self) -> Any:
        """This Value, which is real; NumPy asks for it in dot products."""
        return self

    def item(self: Any) -> float:
        """The number: ``data`` under the name that PyTorch and NumPy have for it.

        Example:
            >>> from micrograd import Value
            >>> (Value(2.0) * 3).item()
            6.0
        """
        return self.data

    def zero_grad(self: Any) -> None:
        """Set ``grad`` to 0. Those of a whole model are set by ``model.zero_grad()``, all of them or none.

        Example:
            >>> from micrograd import Value
            >>> x = Value(3.0)
            >>> (x * x).backward()
            >>> x.zero_grad()
            >>> x.grad
            0.0
        """
        self.grad = 0.0

    def clip(self, low: Any, high: Any) -> Any:
        """See micrograd.clip."""
        return further_primitives.clip(self, low, high)

    def fma(self, y: Any, z: Any) -> Any:
        """See micrograd.fma."""
        return further_primitives.fma(self, y, z)

    def degrees(self) -> Any:
        """See micrograd.degrees."""
        return further_primitives.degrees(self)

    def radians(self) -> Any:
        """See micrograd.radians."""
        return further_primitives.radians(self)

    rad2deg, deg2rad = degrees, radians

    def leaky_relu(self, slope: Any = 0.01) -> Any:
        """See micrograd.leaky_relu."""
        return self._applied_with(further_primitives.leaky_relu, slope)

    def elu(self, alpha: Any = 1.0) -> Any:
        """See micrograd.elu."""
        return self._applied_with(further_primitives.elu, alpha)
