"""The table of primitives: what each one computes, and its derivative, a line each.

An entry reads like a line in a list of derivatives. For the quotient ``out = x / y`` it says:

    div = define("div", "/", operator.truediv, lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y)

a name, a symbol, the forward function on floats, then one rule for each operand. A rule takes ``g``,
the gradient of the output, the output and the operands, and gives the gradient of its operand (the
chain rule: ``g`` times the local derivative). ``None`` in place of a rule says that no gradient flows
to that operand.

Rules are written with operators and other primitives only, so they work on whatever they are handed:
floats give ordinary backpropagation, Values give a gradient that is itself a graph. Rules of one
operand are separate functions so that a gradient nobody needs is never computed: the exponent's, in
``x ** 2`` with a negative x, does not even exist.

At a kink the derivative is that of the branch on the left: 0 for relu, the slope for leaky_relu, alpha
for elu. abs has 0 in its corner, between its branches; of two equal operands, maximum and minimum
give the gradient to the first, as Python's own ``max`` picks the first. For a NaN the derivative is that
of the branch that forward takes: it is 1 for relu, maximum and minimum, which give NaN then; abs has 0.
"""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

from micrograd._support.checks import is_array, is_formula, is_unknown
from micrograd.engine import floats
from micrograd.engine.primitive import REAL_LINE, Primitive, define, times_first, times_second, unchanged

POSITIVE = ((0.0, math.inf),)
UNIT = ((-1.0, 1.0),)
EXPONENT = ((-math.inf, math.log(sys.float_info.max)),)
HYPERBOLIC = ((-710.0, 710.0),)


def _bounded(x: Any, limit: float = 50.0) -> Any:
    """X, but no farther out than where the bells below are 0: infinity times 0 is to be 0 there."""
    return maximum(minimum(x, limit), -limit)


def _one_power_lower(x: Any, y: Any) -> Any:
    """X ** (y - 1), for an x that may be 0 where y is.

    At 0 ** 0 (and so close to it that 1 / x overflows) this does not exist: 1 takes the place of the base there, and
    the factor y beside it makes the derivative 0. Where y - 1 is rounded, the power is off by log(x) times that.
    """
    lower = y - 1
    if _stands_for_many(y):
        x = where((abs(x) < 1e-307) * is_zero(y), 1.0, x)
        if is_formula(y):
            return x**lower  # to be read: the last digits are nothing to see there
        lost = y - detach(detach(lower) + 1)  # detached, these sums are no terms of one sum, which would be 0
        lost = where(abs(lost) > 0, lost, 0.0)  # it is NaN where y is infinite
    else:
        lost = y - (lower + 1)
        if y <= 0 <= y:
            x = where(abs(x) < 1e-307, 1.0, x)
        if not lost < 0 and not lost > 0:
            return x**lower
    size = x if not _stands_for_many(x) and 0 < x < math.inf else maximum(minimum(abs(x), 1e308), 1e-323)
    return x**lower * detach(1 + lost * log(size))


def _stands_for_many(x: Any) -> bool:
    """Whether this is an array, or a symbol: there is no one number to choose a way by."""
    return is_unknown(x) or is_array(x) or is_formula(x)


# fmt: off
# Helpers of the rules

identity = define("identity", "=",    lambda x: x, unchanged)
detach   = define("detach",  "detach", lambda x: x, None)
is_zero  = define("is_zero", "= 0",    lambda x: float(x == 0), None)
equal    = define("equal",   "=",      lambda x, y: float(x == y), None, None)
where: Primitive = define("where",   "where",  lambda condition, x, y: x if condition else y,
                    None,
                    lambda g, out, condition, x, y: where(condition, g, 0.0),
                    lambda g, out, condition, x, y: where(condition, 0.0, g))

# Arithmetic
neg = define("neg", "-", operator.neg,     lambda g, out, x: -g)
add = define("add", "+", operator.add,     unchanged, unchanged)
sub = define("sub", "-", operator.sub,     unchanged, lambda g, out, x, y: -g)
mul = define("mul", "*", operator.mul,     times_second, times_first)
div = define("div", "/", operator.truediv, lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y,
                domain=(REAL_LINE, *POSITIVE))
# At 0 ** y the logarithm in the second rule does not exist: there 1 takes the place of the base, and the factor
# beside it makes the derivative 0.
pow = define("pow", "**", floats.power,
                lambda g, out, x, y: g * y * _one_power_lower(x, y),
                lambda g, out, x, y: g * out * log(where(is_zero(x), 1.0, x)),
                domain=(*POSITIVE, REAL_LINE))

# Exponentials, logarithms and roots
exp   = define("exp",   "exp",   math.exp,   lambda g, out, x: g * out, domain=EXPONENT)
expm1 = define("expm1", "expm1", math.expm1, lambda g, out, x: g * exp(x), domain=EXPONENT)
log: Primitive = define("log",   "log",   math.log,   lambda g, out, x: g / x, domain=POSITIVE)
log1p = define("log1p", "log1p", math.log1p, lambda g, out, x: g / (1 + x), domain=((-1.0, math.inf),))
sqrt  = define("sqrt",  "sqrt",  math.sqrt,  lambda g, out, x: g / (2 * out), domain=POSITIVE)

# Circular and hyperbolic functions
sin  = define("sin",  "sin",  math.sin,  lambda g, out, x: g * cos(x))
cos: Primitive = define("cos",  "cos",  math.cos,  lambda g, out, x: -g * sin(x))
tan  = define("tan",  "tan",  math.tan,  lambda g, out, x: g * (1 + out * out))
# Both forms of 1 - x**2 are exact where they are used, and so are their derivatives.
asin = define("asin", "asin", math.asin,
                 lambda g, out, x: g / sqrt(where(x * x < 0.25, 1 - x * x, (1 - x) * (1 + x))), domain=UNIT)
acos = define("acos", "acos", math.acos,
                 lambda g, out, x: -g / sqrt(where(x * x < 0.25, 1 - x * x, (1 - x) * (1 + x))), domain=UNIT)
atan = define("atan", "atan", math.atan, lambda g, out, x: g * lorentzian(x))
sinh = define("sinh", "sinh", math.sinh, lambda g, out, x: g * cosh(x), domain=HYPERBOLIC)
cosh: Primitive = define("cosh", "cosh", math.cosh, lambda g, out, x: g * sinh(x), domain=HYPERBOLIC)
tanh = define("tanh", "tanh", math.tanh, lambda g, out, x: 4 * g * logistic_pdf(2 * x))

# Activations
sigmoid: Primitive = define("sigmoid",    "sigmoid",    floats.sigmoid,  lambda g, out, x: g * logistic_pdf(x))
softplus   = define("softplus",   "softplus",   floats.softplus, lambda g, out, x: g * sigmoid(x))
relu       = define("relu",       "ReLU",       lambda x: 0.0 if x <= 0 else x,
                       lambda g, out, x: where(x <= 0, 0.0, g))
leaky_relu = define("leaky_relu", "leaky_relu", lambda x, slope: x if x > 0 else slope * x,
                       lambda g, out, x, slope: g * where(x > 0, 1.0, slope),
                       lambda g, out, x, slope: g * minimum(x, 0.0))
elu        = define("elu",        "elu",        lambda x, alpha: x if x > 0 else alpha * math.expm1(x),
                       lambda g, out, x, alpha: g * where(x > 0, 1.0, alpha * exp(minimum(x, 0.0))),
                       lambda g, out, x, alpha: g * expm1(minimum(x, 0.0)))
silu: Primitive = define("silu",       "silu",       floats.silu,
                       lambda g, out, x: g * (sigmoid(x) + silu(minimum(x, 1000.0)) * sigmoid(-x)))
gelu       = define("gelu",       "gelu",       lambda x: max(x, -50.0) * floats.normal_cdf(x),
                       lambda g, out, x: g * (normal_cdf(x) + _bounded(x) * normal_pdf(x)))

# The error function and the normal distribution
erf = define("erf", "erf", math.erf, lambda g, out, x: g * (2 / math.sqrt(math.pi)) * gaussian(x))
normal_cdf: Primitive = define("normal_cdf", "normal_cdf", floats.normal_cdf, lambda g, out, x: g * normal_pdf(x))

# Bells: the slopes of sigmoid, of the normal distribution, of erf and of atan. Written out in the rules above
# they would lose digits, and their own slopes more of them.
logistic_pdf: Primitive = define("logistic_pdf", "logistic_pdf", floats.logistic_pdf,
                                 lambda g, out, x: -g * out * tanh(0.5 * x))
normal_pdf: Primitive = define("normal_pdf", "normal_pdf", floats.normal_pdf, lambda g, out, x: -g * out * _bounded(x))
gaussian: Primitive = define("gaussian", "gaussian", floats.gaussian, lambda g, out, x: -2 * g * out * _bounded(x))
lorentzian: Primitive = define("lorentzian", "lorentzian", floats.lorentzian,
                               lambda g, out, x: -2 * g * out * _bounded(x, 1e200) * out)

# Choices; x <= x does not hold for NaN
abs: Primitive = define("abs", "abs",  math.fabs, lambda g, out, x: g * where(x > 0, 1.0, where(x < 0, -1.0, 0.0)))
maximum = define("maximum", "maximum", floats.maximum,
                    lambda g, out, x, y: where(x >= y, g, where(x <= x, 0.0, g)),
                    lambda g, out, x, y: where(x >= y, 0.0, where(x <= x, g, 0.0)))
minimum: Primitive = define("minimum", "minimum", floats.minimum,
                    lambda g, out, x, y: where(x <= y, g, where(x <= x, 0.0, g)),
                    lambda g, out, x, y: where(x <= y, 0.0, where(x <= x, g, 0.0)))
# fmt: on
