"""The functions of one and two operands as methods of a Value: ``x.tanh()`` is ``tanh(x)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine import primitives

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from micrograd.engine.primitive import Primitive

    Method: TypeAlias = Callable[[Any], Any]


def named(method: Any, primitive: Primitive) -> Any:
    """Give a method the name of its primitive, for tracebacks and help()."""
    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


def method(primitive: Primitive) -> Any:
    """The method that applies a primitive of one operand."""
    return named(lambda self: self._applied(primitive), primitive)


class Methods:
    """The methods that Value inherits from here. Value defines _applied, which they all call."""

    __slots__ = ()

    _applied: Callable[[Primitive], Any]

    exp: Method = method(primitives.exp)
    expm1: Method = method(primitives.expm1)
    log: Method = method(primitives.log)
    log1p: Method = method(primitives.log1p)
    sqrt: Method = method(primitives.sqrt)
    erf: Method = method(primitives.erf)
    sin: Method = method(primitives.sin)
    cos: Method = method(primitives.cos)
    tan: Method = method(primitives.tan)
    asin: Method = method(primitives.asin)
    acos: Method = method(primitives.acos)
    atan: Method = method(primitives.atan)
    arcsin, arccos, arctan = asin, acos, atan  # what NumPy calls them
    sinh: Method = method(primitives.sinh)
    cosh: Method = method(primitives.cosh)
    tanh: Method = method(primitives.tanh)
    abs: Method = method(primitives.abs)
    sigmoid: Method = method(primitives.sigmoid)
    softplus: Method = method(primitives.softplus)
    relu: Method = method(primitives.relu)
    silu: Method = method(primitives.silu)
    gelu: Method = method(primitives.gelu)

    def maximum(self, other: Any) -> Any:
        """See micrograd.maximum."""
        return primitives.maximum(self, other)

    def minimum(self, other: Any) -> Any:
        """See micrograd.minimum."""
        return primitives.minimum(self, other)

    def leaky_relu(self, slope: Any = 0.01) -> Any:
        """See micrograd.leaky_relu."""
        return primitives.leaky_relu(self, slope)

    def elu(self, alpha: Any = 1.0) -> Any:
        """See micrograd.elu."""
        return primitives.elu(self, alpha)

    def conjugate(self) -> Any:
        """This Value, which is real; NumPy asks for it in dot products."""
        return self
