"""The functions of one and two operands as methods of a Value: ``x.tanh()`` is ``tanh(x)``; and PyTorch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import Operand, real_number
from micrograd.engine import further_primitives, primitives

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from micrograd.engine.primitive import Primitive

    Self = TypeVar("Self", bound="Methods")


def named(method: Any, primitive: Primitive) -> Any:
    """Give a method the name of its primitive, for tracebacks and help()."""
    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


def method(primitive: Primitive) -> Callable[[Self], Self]:
    """The method that applies a primitive of one operand."""
    applied: Callable[[Self], Self] = named(lambda self: self._applied(primitive), primitive)
    return applied


def method_of_two(primitive: Primitive) -> Callable[[Self, Any], Any]:
    """The method that applies a primitive of two operands."""
    applied: Callable[[Self, Any], Any] = named(lambda self, other: self._applied_with(primitive, other), primitive)
    return applied


def operators(primitive: Primitive) -> tuple[Any, Any]:
    """An operator that few programs need, and its reflection."""

    def operator(self: Any, other: Any) -> Any:
        known = isinstance(other, Operand) or real_number(other) is not None
        return primitive(self, other) if known else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return NotImplemented if real_number(other) is None else primitive(other, self)

    return named(operator, primitive), named(reflected, primitive)


class Methods:
    """The methods that Value inherits from here. Value defines _applied and _applied_with, which they call."""

    __slots__ = ()

    _applied: Callable[[Primitive], Any]
    _applied_with: Callable[[Primitive, Any], Any]

    exp = method(primitives.exp)
    expm1 = method(primitives.expm1)
    log = method(primitives.log)
    log1p = method(primitives.log1p)
    exp2 = method(further_primitives.exp2)
    log2 = method(further_primitives.log2)
    log10 = method(further_primitives.log10)
    sqrt = method(primitives.sqrt)
    erf = method(primitives.erf)
    erfc = method(primitives.erfc)
    sin = method(primitives.sin)
    cos = method(primitives.cos)
    tan = method(primitives.tan)
    asin = method(primitives.asin)
    acos = method(primitives.acos)
    atan = method(primitives.atan)
    arcsin, arccos, arctan = asin, acos, atan  # what NumPy calls them
    sinh = method(primitives.sinh)
    cosh = method(primitives.cosh)
    tanh = method(primitives.tanh)
    asinh = method(further_primitives.asinh)
    acosh = method(further_primitives.acosh)
    atanh = method(further_primitives.atanh)
    arcsinh, arccosh, arctanh = asinh, acosh, atanh
    sinc = method(further_primitives.sinc)
    lgamma = method(further_primitives.lgamma)
    digamma = method(further_primitives.digamma)
    i0 = method(further_primitives.i0)
    i1 = method(further_primitives.i1)
    erfinv = method(further_primitives.erfinv)
    ndtri = method(further_primitives.ndtri)
    log_ndtr = method(further_primitives.log_ndtr)
    logit = method(further_primitives.logit)
    abs = method(primitives.abs)
    sign = method(further_primitives.sign)
    floor = method(further_primitives.floor)
    ceil = method(further_primitives.ceil)
    sigmoid = method(primitives.sigmoid)
    softplus = method(primitives.softplus)
    relu = method(primitives.relu)
    silu = method(primitives.silu)
    gelu = method(primitives.gelu)
    maximum = method_of_two(primitives.maximum)
    minimum = method_of_two(primitives.minimum)
    atan2 = arctan2 = method_of_two(further_primitives.atan2)
    hypot = method_of_two(further_primitives.hypot)
    betaln = method_of_two(further_primitives.betaln)
    xlogy = method_of_two(further_primitives.xlogy)
    rel_entr = method_of_two(further_primitives.rel_entr)

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

    __mod__, __rmod__ = operators(further_primitives.remainder)
    __floordiv__, __rfloordiv__ = operators(further_primitives.floor_divide)

    def __divmod__(self, other: Any) -> Any:
        whole = self // other
        return NotImplemented if whole is NotImplemented else (whole, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def leaky_relu(self, slope: Any = 0.01) -> Any:
        """See micrograd.leaky_relu."""
        return self._applied_with(primitives.leaky_relu, slope)

    def elu(self, alpha: Any = 1.0) -> Any:
        """See micrograd.elu."""
        return self._applied_with(primitives.elu, alpha)

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

    def detach(self) -> Any:
        """The number as a constant Value, through which no gradient flows; see micrograd.detach.

        Example:
            >>> from micrograd import Value
            >>> x = Value(3.0)
            >>> (x * x.detach()).backward()
            >>> x.grad
            3.0
        """
        return self._applied(primitives.detach)

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
