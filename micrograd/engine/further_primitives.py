"""The rest of the table: functions that fewer programs need, each made as those of primitives.py are."""

from __future__ import annotations

import math
import operator
from typing import Any

from micrograd.engine import composites, floats, special_functions
from micrograd.engine.primitive import PRIMITIVES, PUBLIC, REAL_LINE, Primitive, define, unchanged
from micrograd.engine.primitives import (
    POSITIVE,
    exp,
    expm1,
    is_zero,
    log,
    maximum,
    minimum,
    sigmoid,
    sin,
    sqrt,
    where,
)

_LOG_2, _LOG_10 = math.log(2.0), math.log(10.0)
_ABOVE_1, _UNIT, _PROBABILITY = ((1.0, math.inf),), ((-1.0, 1.0),), ((0.0, 1.0),)
_BESSEL = ((-713.0, 713.0),)


def _bounded(x: Any, limit: float = 50.0) -> Any:
    """x, limited to bounds beyond which a bell is 0: the product is then 0 for an infinite x, too."""
    return maximum(minimum(x, limit), -limit)


def _one_less_square(x: Any) -> Any:
    """1 - x * x, without cancellation near -1 and 1, also in its derivative."""
    return where(x * x < 0.25, 1 - x * x, (1 - x) * (1 + x))


def _part(x: Any, y: Any, z: Any) -> Any:
    """x over y**2 + z**2, which itself may be too large or too small for a float."""
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
exp2 = define("exp2", lambda x: 2.0**x, lambda g, out, x: g * _LOG_2 * out, domain=((-math.inf, 1024.0),),
    doc=("2 to the power of x.", "exp2(3.0)  # 8.0", "OverflowError: for x of 1024 and above."))
log2 = define("log2", math.log2, lambda g, out, x: g / _LOG_2 / x, domain=POSITIVE,
    doc=("The logarithm of x to base 2, exact for powers of 2.", "log2(8.0)  # 3.0",
         "ValueError: for x of 0 or below."))
log10 = define("log10", math.log10, lambda g, out, x: g / _LOG_10 / x, domain=POSITIVE,
    doc=("The logarithm of x to base 10.", "log10(1000.0)  # 3.0", "ValueError: for x of 0 or below."))
# Tangents, angles, areas and lengths
tan = define("tan", math.tan, lambda g, out, x: g * (1 + out * out),
    doc=("The tangent of x, in radians.", "tan(0.0)  # 0.0", "ValueError: for an infinite x."))
asin = define("asin", math.asin, lambda g, out, x: g / sqrt(_one_less_square(x)), domain=_UNIT,
    doc=("The angle in [-pi/2, pi/2] whose sine is x. At -1 and 1 the derivative raises ZeroDivisionError.",
         "asin(0.0)  # 0.0", "ValueError: for x outside of [-1, 1]."))
acos = define("acos", math.acos, lambda g, out, x: -g / sqrt(_one_less_square(x)), domain=_UNIT,
    doc=("The angle in [0, pi] whose cosine is x. At -1 and 1 the derivative raises ZeroDivisionError.",
         "acos(1.0)  # 0.0", "ValueError: for x outside of [-1, 1]."))
atan = define("atan", math.atan, lambda g, out, x: g * lorentzian(x),
    doc=("The angle in (-pi/2, pi/2) whose tangent is x.", "atan(0.0)  # 0.0"))
asinh = define("asinh", math.asinh, lambda g, out, x: g / hypot(1.0, x),
    doc=("The number whose hyperbolic sine is x.", "asinh(0.0)  # 0.0"))
acosh = define("acosh", math.acosh, lambda g, out, x: g / (sqrt(x - 1) * sqrt(x + 1)), domain=_ABOVE_1,
    doc=("The number of 0 and above whose hyperbolic cosine is x. At 1 the derivative raises ZeroDivisionError.",
         "acosh(1.0)  # 0.0", "ValueError: for x below 1."))
atanh = define("atanh", math.atanh, lambda g, out, x: g / _one_less_square(x), domain=_UNIT,
    doc=("The number whose hyperbolic tangent is x.", "atanh(0.0)  # 0.0", "ValueError: for x outside of (-1, 1)."))
atan2 = define("atan2", math.atan2, lambda g, out, y, x: g * _part(x, x, y), lambda g, out, y, x: -g * _part(y, x, y),
    doc=("The angle of the point (x, y) in radians, in [-pi, pi]. At (0, 0) it has no derivative: ZeroDivisionError.",
         "atan2(1.0, 0.0)  # 1.5707963267948966"))
hypot: Primitive = define("hypot", math.hypot, lambda g, out, x, y: g * (x / out), lambda g, out, x, y: g * (y / out),
    doc=("The length of the vector (x, y). At (0, 0) it has no derivative: ZeroDivisionError in backward.",
         "hypot(3.0, 4.0)  # 5.0"))
# A product and a sum, rounded once
fma = define("fma", floats.fma, lambda g, out, x, y, z: g * y, lambda g, out, x, y, z: g * x,
    lambda g, out, x, y, z: g)
# Division with a remainder, which has the sign of the divisor
floor_divide = define("floor_divide", operator.floordiv, None, None, symbol="//", domain=(REAL_LINE, *POSITIVE))
remainder = define("remainder", operator.mod, unchanged, lambda g, out, x, y: -g * floor_divide(x, y),
    symbol="%", domain=(REAL_LINE, *POSITIVE))
# Activations
leaky_relu = define("leaky_relu", composites.leaky_relu, lambda g, out, x, slope: g * where(x > 0, 1.0, slope),
    lambda g, out, x, slope: g * minimum(x, 0.0))
elu = define("elu", composites.elu, lambda g, out, x, alpha: g * where(x > 0, 1.0, alpha * exp(minimum(x, 0.0))),
    lambda g, out, x, alpha: g * expm1(minimum(x, 0.0)))
silu: Primitive = define("silu", composites.silu,
    lambda g, out, x: g * (sigmoid(x) + silu(minimum(x, 1000.0)) * sigmoid(-x)),
    doc=("x * sigmoid(x), also called swish.", "silu(0.0)  # 0.0"))
gelu = define("gelu", composites.gelu, lambda g, out, x: g * (normal_cdf(x) + _bounded(x) * normal_pdf(x)),
    doc=("x times the normal distribution function of x (Hendrycks and Gimpel 2016, the exact form).",
         "gelu(0.0)  # 0.0"))
# Steps, through which no gradient flows
sign = define("sign", special_functions.sign, None,
    doc=("1 where x is positive, -1 where it is negative, and 0 at 0. It has no gradient.", "sign(-2.5)  # -1.0"))
floor = define("floor", floats.floor, None,
    doc=("The highest whole number that is not above x, as a float (``math.floor(x)`` is an int). It has no gradient.",
         "floor(-2.5)  # -3.0"))
ceil = define("ceil", special_functions.ceil, None,
    doc=("The lowest whole number that is not below x, as a float. It has no gradient.", "ceil(-2.5)  # -2.0"))
# The error function and the normal distribution
erf = define("erf", math.erf, lambda g, out, x: g * (2 / math.sqrt(math.pi)) * gaussian(x),
    doc=("The error function of x.", "erf(0.0)  # 0.0"))
erfc = define("erfc", math.erfc, lambda g, out, x: -g * (2 / math.sqrt(math.pi)) * gaussian(x),
    doc=("1 - erf(x), with all its digits where erf(x) is nearly 1.", "erfc(10.0)  # 2.088487583762545e-45"))
erfinv = define("erfinv", special_functions.erfinv, lambda g, out, x: g * (0.5 * math.sqrt(math.pi)) * exp(out * out),
    domain=_UNIT,
    doc=("The inverse of erf.", "erfinv(0.5)  # 0.4769362762044699", "ValueError: for x outside of (-1, 1)."))
normal_cdf: Primitive = define("normal_cdf", special_functions.normal_cdf, lambda g, out, x: g * normal_pdf(x))
ndtri = define("ndtri", special_functions.ndtri, lambda g, out, x: g / normal_pdf(out), domain=_PROBABILITY,
    doc=("The inverse of ndtr: the quantile of the normal distribution.", "ndtri(0.975)  # 1.9599639845400536",
         "ValueError: for x outside of (0, 1)."))
log_ndtr = define("log_ndtr", special_functions.log_ndtr, lambda g, out, x: g * normal_hazard(x),
    doc=("The logarithm of ndtr(x), also where ndtr(x) is too small for a float.",
         "log_ndtr(-100.0)  # -5005.524208694205"))
normal_hazard: Primitive = define("normal_hazard", special_functions.normal_hazard,
    lambda g, out, x: -g * out * hazard_gap(x))
hazard_gap: Primitive = define("hazard_gap", special_functions.hazard_gap,
    lambda g, out, x: g * (1 - normal_hazard(x) * out))
# Bells: the slopes of normal_cdf, of erf and of atan. Written out above, they would lose digits.
normal_pdf: Primitive = define("normal_pdf", special_functions.normal_pdf, lambda g, out, x: -g * out * _bounded(x))
gaussian: Primitive = define("gaussian", special_functions.gaussian, lambda g, out, x: -2 * g * out * _bounded(x))
lorentzian: Primitive = define("lorentzian", special_functions.lorentzian,
    lambda g, out, x: -2 * g * out * _bounded(x, 1e200) * out)
# Sines over their angle, and the gamma function; each has slopes that are functions of their own
sinc = define("sinc", special_functions.sinc, lambda g, out, x: -math.pi * g * spherical_bessel(x, order=1),
    doc=("sin(pi * x) / (pi * x), and 1 at 0, as in NumPy and PyTorch; accurate near whole numbers too.",
         "sinc(0.0), sinc(0.5)  # (1.0, 0.6366197723675814)"))
spherical_bessel: Primitive = define("spherical_bessel", special_functions.spherical_bessel,
    lambda g, out, x, order=1: g * _bessel_slope(x, order))
lgamma = define("lgamma", special_functions.lgamma, lambda g, out, x: g * digamma(x), domain=POSITIVE,
    doc=("log(abs(gamma(x))), with all its digits near the roots at 1 and 2, which ``math.lgamma`` has not.",
         "lgamma(3.0) == log(2.0), lgamma(2.0)  # (True, 0.0)", "ValueError: for x of 0, -1, -2 and so on."))
digamma: Primitive = define("digamma", special_functions.digamma, lambda g, out, x: g * _trigamma(x), domain=POSITIVE,
    doc=("The derivative of lgamma.", "digamma(2.0) - digamma(1.0)  # 1.0",
         "ZeroDivisionError: for x of 0, -1, -2 and so on."))
hurwitz_zeta: Primitive = define("hurwitz_zeta", special_functions.hurwitz_zeta,
    lambda g, out, x, power: -g * power * hurwitz_zeta(x, power + 1), None, domain=(*POSITIVE, (1.0, math.inf)))
digamma_slope: Primitive = define("digamma_slope", special_functions.digamma_slope,
    lambda g, out, x, order=1: g * digamma_slope(x, order=order + 1), symbol="polygamma", domain=POSITIVE)
betaln = define("betaln", special_functions.betaln, lambda g, out, x, y: g * _digamma_gap(x, y),
    lambda g, out, x, y: g * _digamma_gap(y, x), domain=(*POSITIVE, *POSITIVE),
    doc=("The natural logarithm of the beta function of two positive numbers; a difference of lgammas loses digits.",
         "round(betaln(2.0, 1e9), 12)  # -41.446531674893", "ValueError: if one of them is 0."))
# Modified Bessel functions, whose slopes are means of their neighbours (Abramowitz and Stegun 9.6.26)
i0 = define("i0", special_functions.i0, lambda g, out, x: g * i1(x), domain=_BESSEL,
    doc=("The modified Bessel function of the first kind of order 0; infinite beyond 713.98 on either side.",
         "i0(0.0)  # 1.0"))
i1: Primitive = define("i1", special_functions.i1,
    lambda g, out, x: g * 0.5 * (i0(x) + modified_bessel(x, order=2)), domain=_BESSEL,
    doc=("The modified Bessel function of the first kind of order 1; infinite beyond 713.98 on either side.",
         "i1(1.0)  # 0.565159103992485"))
modified_bessel: Primitive = define("modified_bessel", special_functions.modified_bessel,
    lambda g, out, x, order=2: g * 0.5 * (modified_bessel(x, order=order - 1) + modified_bessel(x, order=order + 1)),
    domain=_BESSEL)
# Logarithms of probabilities
logit = define("logit", special_functions.logit, lambda g, out, x: g / (x * (1 - x)), domain=_PROBABILITY,
    doc=("log(x / (1 - x)), the inverse of expit.", "logit(0.5)  # 0.0", "ValueError: for x outside of (0, 1)."))
xlogy: Primitive = define("xlogy", special_functions.xlogy, lambda g, out, x, y: g * log(y),
    lambda g, out, x, y: g * x / (y + is_zero(x) * is_zero(y)), domain=(REAL_LINE, *POSITIVE),
    doc=("x * log(y), and 0 where x is 0, for any y.", "xlogy(0.0, 0.0), xlogy(2.0, 1.0)  # (0.0, 0.0)",
         "ValueError: for y of 0 or below, unless x is 0."))
log_ratio = define("log_ratio", special_functions.log_ratio, lambda g, out, x, y: g / x, lambda g, out, x, y: -g / y,
    domain=(*POSITIVE, *POSITIVE))
rel_entr = define("rel_entr", special_functions.rel_entr, lambda g, out, x, y: g * (log_ratio(x, y) + 1),
    lambda g, out, x, y: -g * (x / y), domain=(*POSITIVE, *POSITIVE),
    doc=("x * log(x / y), and 0 where x is 0: one term of a relative entropy (Kullback-Leibler divergence).",
         "rel_entr(0.5, 0.5), rel_entr(0.0, 0.5)  # (0.0, 0.0)",
         "ValueError: if the quotient is below 0.", "ZeroDivisionError: for y of 0."))
# The names that SciPy has for some
PUBLIC["ndtr"] = normal_cdf, ("The probability that a normal variable is below x.", "ndtr(0.0)  # 0.5")
PUBLIC["expit"] = sigmoid, ("The logistic function: sigmoid by SciPy's name.", "expit(0.0)  # 0.5")
PUBLIC["gammaln"] = lgamma, ("log(abs(gamma(x))): lgamma by SciPy's name.", "gammaln(1.0)  # 0.0",
    "ValueError: for x of 0, -1, -2 and so on.")
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
