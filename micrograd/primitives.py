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
give the gradient to the first, as Python's own ``max`` picks the first.
"""

from __future__ import annotations

import math
import operator

from micrograd.registry import REAL_LINE, Primitive, define, times_first, times_second, unchanged


def _power(x: float, y: float) -> float:
    if x < 0 and not y.is_integer() and math.isfinite(y):
        raise ValueError("a negative base with a fractional exponent has no real value")
    return x**y  # type: ignore[no-any-return]  # the complex case is the one just refused


def _sigmoid(x: float) -> float:
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    small = math.exp(x)
    return small / (1 + small)


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x * math.sqrt(0.5))


def _maximum(x: float, y: float) -> float:
    return x if x >= y or math.isnan(x) else y


def _minimum(x: float, y: float) -> float:
    return x if x <= y or math.isnan(x) else y


POSITIVE = ((0.0, math.inf),)
UNIT = ((-1.0, 1.0),)
EXPONENT = ((-math.inf, math.log(1.7976931348623157e308)),)
HYPERBOLIC = ((-710.0, 710.0),)

# fmt: off
# Helpers of the rules

identity = define("identity", "=",    lambda x: x, unchanged)
detach   = define("detach",  "detach", lambda x: x, None)
is_zero  = define("is_zero", "= 0",    lambda x: float(x == 0), None)
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
# At 0 ** 0 (and so close to it that 1 / x overflows) the power in the first rule does not exist, nor
# does the logarithm in the second at 0 ** y:
# there 1 takes the place of the base, and the factor beside it makes the derivative 0.
pow = define("pow", "**", _power,
                lambda g, out, x, y: g * y * where((abs(x) < 1e-307) * is_zero(y), 1.0, x) ** (y - 1),
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
asin = define("asin", "asin", math.asin, lambda g, out, x: g / sqrt((1 - x) * (1 + x)), domain=UNIT)
acos = define("acos", "acos", math.acos, lambda g, out, x: -g / sqrt((1 - x) * (1 + x)), domain=UNIT)
atan = define("atan", "atan", math.atan, lambda g, out, x: g / (1 + x * x))
sinh = define("sinh", "sinh", math.sinh, lambda g, out, x: g * cosh(x), domain=HYPERBOLIC)
cosh: Primitive = define("cosh", "cosh", math.cosh, lambda g, out, x: g * sinh(x), domain=HYPERBOLIC)
tanh = define("tanh", "tanh", math.tanh, lambda g, out, x: 4 * g * sigmoid(2 * x) * sigmoid(-2 * x))

# Activations. sigmoid(-x) is 1 - sigmoid(x) without the cancellation; silu and gelu are 0 to the left of
# where max bounds x, which keeps infinity times 0 out.
sigmoid: Primitive = define("sigmoid",    "sigmoid",    _sigmoid,  lambda g, out, x: g * out * sigmoid(-x))
softplus   = define("softplus",   "softplus",   _softplus, lambda g, out, x: g * sigmoid(x))
relu       = define("relu",       "ReLU",       lambda x: 0.0 if x <= 0 else x,
                       lambda g, out, x: where(x > 0, g, 0.0))
leaky_relu = define("leaky_relu", "leaky_relu", lambda x, slope: x if x > 0 else slope * x,
                       lambda g, out, x, slope: g * where(x > 0, 1.0, slope),
                       lambda g, out, x, slope: g * minimum(x, 0.0))
elu        = define("elu",        "elu",        lambda x, alpha: x if x > 0 else alpha * math.expm1(x),
                       lambda g, out, x, alpha: g * where(x > 0, 1.0, alpha * exp(minimum(x, 0.0))),
                       lambda g, out, x, alpha: g * expm1(minimum(x, 0.0)))
silu       = define("silu",       "silu",       lambda x: max(x, -1000.0) * _sigmoid(x),
                       lambda g, out, x: g * sigmoid(x) * (1 + x * sigmoid(-x)))
gelu       = define("gelu",       "gelu",       lambda x: max(x, -50.0) * _normal_cdf(x),
                       lambda g, out, x: g * (normal_cdf(x) + x * math.sqrt(0.5 / math.pi) * exp(-0.5 * x * x)))

# The error function and the normal distribution
erf        = define("erf",        "erf",        math.erf, lambda g, out, x: g * 2 / math.sqrt(math.pi) * exp(-x * x))
normal_cdf: Primitive = define("normal_cdf", "normal_cdf", _normal_cdf,
                       lambda g, out, x: g * math.sqrt(0.5 / math.pi) * exp(-0.5 * x * x))

# Choices
abs: Primitive = define("abs", "abs",  math.fabs, lambda g, out, x: g * where(x > 0, 1.0, where(x < 0, -1.0, 0.0)))
maximum = define("maximum", "maximum", _maximum,
                    lambda g, out, x, y: where(x >= y, g, 0.0), lambda g, out, x, y: where(x >= y, 0.0, g))
minimum: Primitive = define("minimum", "minimum", _minimum,
                    lambda g, out, x, y: where(x <= y, g, 0.0), lambda g, out, x, y: where(x <= y, 0.0, g))
# fmt: on
