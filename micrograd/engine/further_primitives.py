"""The rest of the table: functions that fewer programs need, each made as those of primitives.py are."""

from __future__ import annotations

import math
import operator
from typing import Any

from micrograd.engine import floats, special_functions
from micrograd.engine.primitive import PRIMITIVES, REAL_LINE, Primitive, define, unchanged
from micrograd.engine.primitives import (
    POSITIVE,
    UNIT,
    _one_less_square,
    exp,
    is_zero,
    log,
    maximum,
    minimum,
    normal_pdf,
    sin,
    sqrt,
    where,
)

_LOG_2, _LOG_10 = math.log(2.0), math.log(10.0)
_ABOVE_1 = ((1.0, math.inf),)
_BESSEL = ((-713.0, 713.0),)


def _part(x: Any, y: Any, z: Any) -> Any:
    """X over y**2 + z**2, which itself may be too large or too small for a float."""
    size = hypot(y, z)
    return x / size / size


def _trigamma(x: Any) -> Any:
    """The slope of digamma; left of 0 by reflection (Abramowitz and Stegun 6.4.7)."""
    right = hurwitz_zeta(where(x < 0, 1 - x, x), 2.0)
    above = where(x < 0, -x - floor(-x), 0.5)
    ratio = math.pi / sin(math.pi * where(above > 0.5, above - 1, above))
    return where(x < 0, ratio * ratio - right, right)


def _digamma_gap(x: Any, y: Any) -> Any:
    """digamma(x) - digamma(x + y), whose poles at 0 would cancel."""
    return digamma(1 + x) - digamma(1 + x + y) - y / (x + y) / x


def _bessel_slope(x: Any, order: int) -> Any:
    """The slope of spherical_bessel by its neighbours (Abramowitz and Stegun 10.1.20)."""
    above = spherical_bessel(x, order=order + 1)
    if not order:
        return -math.pi * above
    return math.pi * (order * spherical_bessel(x, order=order - 1) - (order + 1) * above) / (2 * order + 1)


# fmt: off
# Exponentials and logarithms
exp2 = define("exp2", lambda x: 2.0**x, lambda g, out, x: g * _LOG_2 * out, domain=((-math.inf, 1024.0),))
log2 = define("log2", math.log2, lambda g, out, x: g / _LOG_2 / x, domain=POSITIVE)
log10 = define("log10", math.log10, lambda g, out, x: g / _LOG_10 / x, domain=POSITIVE)
# Areas, angles and lengths
asinh = define("asinh", math.asinh, lambda g, out, x: g / hypot(1.0, x))
acosh = define("acosh", math.acosh, lambda g, out, x: g / (sqrt(x - 1) * sqrt(x + 1)), domain=_ABOVE_1)
atanh = define("atanh", math.atanh, lambda g, out, x: g / _one_less_square(x), domain=UNIT)
atan2 = define("atan2", math.atan2, lambda g, out, y, x: g * _part(x, x, y), lambda g, out, y, x: -g * _part(y, x, y))
hypot: Primitive = define("hypot", math.hypot, lambda g, out, x, y: g * (x / out), lambda g, out, x, y: g * (y / out))
# A product and a sum, rounded once
fma = define("fma", floats.fma, lambda g, out, x, y, z: g * y, lambda g, out, x, y, z: g * x,
    lambda g, out, x, y, z: g)
# Division with a remainder, which has the sign of the divisor
floor_divide = define("floor_divide", operator.floordiv, None, None, symbol="//", domain=(REAL_LINE, *POSITIVE))
remainder = define("remainder", operator.mod, unchanged, lambda g, out, x, y: -g * floor_divide(x, y),
    symbol="%", domain=(REAL_LINE, *POSITIVE))
# Steps, through which no gradient flows
sign = define("sign", special_functions.sign, None)
floor = define("floor", floats.floor, None)
ceil = define("ceil", special_functions.ceil, None)
# Sines over their angle, and the gamma function; each has slopes that are functions of their own
sinc = define("sinc", special_functions.sinc, lambda g, out, x: -math.pi * g * spherical_bessel(x, order=1))
spherical_bessel: Primitive = define("spherical_bessel", special_functions.spherical_bessel,
    lambda g, out, x, order=1: g * _bessel_slope(x, order))
lgamma = define("lgamma", special_functions.lgamma, lambda g, out, x: g * digamma(x), domain=POSITIVE)
digamma: Primitive = define("digamma", special_functions.digamma, lambda g, out, x: g * _trigamma(x), domain=POSITIVE)
hurwitz_zeta: Primitive = define("hurwitz_zeta", special_functions.hurwitz_zeta,
    lambda g, out, x, power: -g * power * hurwitz_zeta(x, power + 1), None, domain=(*POSITIVE, (1.0, math.inf)))
digamma_slope: Primitive = define("digamma_slope", special_functions.digamma_slope,
    lambda g, out, x, order=1: g * digamma_slope(x, order=order + 1), symbol="polygamma", domain=POSITIVE)
betaln = define("betaln", special_functions.betaln, lambda g, out, x, y: g * _digamma_gap(x, y),
    lambda g, out, x, y: g * _digamma_gap(y, x), domain=(*POSITIVE, *POSITIVE))
# Modified Bessel functions, whose slopes are means of their neighbours (Abramowitz and Stegun 9.6.26)
i0 = define("i0", special_functions.i0, lambda g, out, x: g * i1(x), domain=_BESSEL)
i1: Primitive = define("i1", special_functions.i1,
    lambda g, out, x: g * 0.5 * (i0(x) + modified_bessel(x, order=2)), domain=_BESSEL)
modified_bessel: Primitive = define("modified_bessel", special_functions.modified_bessel,
    lambda g, out, x, order=2: g * 0.5 * (modified_bessel(x, order=order - 1) + modified_bessel(x, order=order + 1)),
    domain=_BESSEL)
# The normal distribution
ndtri = define("ndtri", special_functions.ndtri, lambda g, out, x: g / normal_pdf(out), domain=((0.0, 1.0),))
erfinv = define("erfinv", special_functions.erfinv, lambda g, out, x: g * (0.5 * math.sqrt(math.pi)) * exp(out * out),
    domain=UNIT)
log_ndtr = define("log_ndtr", special_functions.log_ndtr, lambda g, out, x: g * normal_hazard(x))
normal_hazard: Primitive = define("normal_hazard", special_functions.normal_hazard,
    lambda g, out, x: -g * out * hazard_gap(x))
hazard_gap: Primitive = define("hazard_gap", special_functions.hazard_gap,
    lambda g, out, x: g * (1 - normal_hazard(x) * out))
# Logarithms of probabilities
logit = define("logit", special_functions.logit, lambda g, out, x: g / (x * (1 - x)), domain=((0.0, 1.0),))
xlogy: Primitive = define("xlogy", special_functions.xlogy, lambda g, out, x, y: g * log(y),
    lambda g, out, x, y: g * x / (y + is_zero(x) * is_zero(y)), domain=(REAL_LINE, *POSITIVE))
log_ratio = define("log_ratio", special_functions.log_ratio, lambda g, out, x, y: g / x, lambda g, out, x, y: -g / y,
    domain=(*POSITIVE, *POSITIVE))
rel_entr = define("rel_entr", special_functions.rel_entr, lambda g, out, x, y: g * (log_ratio(x, y) + 1),
    lambda g, out, x, y: -g * (x / y), domain=(*POSITIVE, *POSITIVE))
# fmt: on


# Programs of these that are functions and methods alike
def clip(x: Any, low: Any, high: Any) -> Any:
    """X, or the limit that it is beyond."""
    return minimum(maximum(x, low), high)


def degrees(x: Any) -> Any:
    """An angle in radians as one in degrees."""
    return x * (180 / math.pi)


def radians(x: Any) -> Any:
    """An angle in degrees as one in radians."""
    return x * (math.pi / 180)


# Every primitive of the library that takes operands, by its name; others may register more
TABLE = {name: made for name, made in PRIMITIVES.items() if made.derivatives}
