"""The functions of one and two operands as methods of a Value: ``x.tanh()`` is ``tanh(x)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine import further_primitives, primitives
from micrograd.engine.primitive import method, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


def method_of_two(primitive: Primitive) -> Callable[[Any, Any], Any]:
    """The method that applies a primitive of two operands."""
    applied: Callable[[Any, Any], Any] = named(lambda self, other: self._applied_with(primitive, other), primitive)
    return applied


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
