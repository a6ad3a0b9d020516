"""The table of primitives: what each one computes, and its derivative, one line each.

An entry reads like a line in a list of derivatives. For the quotient ``out = x / y`` it says:

    div = define("div", operator.truediv, lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y)

a name, the forward function on floats, then a rule for each operand. A rule takes ``g``, the gradient of the
output, the output and the operands. By the chain rule, it returns ``g`` times the local derivative. ``None`` in place
of a rule means that no gradient flows to that operand.

Rules use only operators and other primitives, so they work on any kind of number: floats give ordinary
backpropagation, Values a gradient that is itself a graph. With one rule per operand, a gradient that nobody needs is
not computed: the exponent of ``x ** 2`` has none if x is negative.

At a kink the derivative is that of the left branch, such as 0 for relu; abs has 0 at 0. If operands are equal, maximum
and minimum give the gradient to the first. At NaN the derivative is that of the branch that forward takes.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from micrograd.engine import composites, floats, special_functions
from micrograd.engine.primitive import REAL_LINE, Primitive, define, times_first, times_second, unchanged

POSITIVE, UNIT, HYPERBOLIC = ((0.0, math.inf),), ((-1.0, 1.0),), ((-710.0, 710.0),)
EXPONENT = ((-math.inf, 709.782712893384),)  # beyond this, no float is large enough


# fmt: off
# Helpers of the rules. Bells are 0 beyond the bounds, and infinity times 0 is to be 0 there; each form of 1 - x * x is
# exact where it is used, and so is its slope; where a power has its pole, lower_power has 1 in place of its base.
def _bounded(x: Any, limit: float = 50.0) -> Any: return maximum(minimum(x, limit), -limit)
def _one_less_square(x: Any) -> Any: return where(x * x < 0.25, 1 - x * x, (1 - x) * (1 + x))
def _at_pole(x: Any, y: Any, k: Any) -> Any: return (x < 1e-307) * (x > -1e-307) * (y <= k - 1) * (y >= k - 1)
identity = define("identity", lambda x: x, unchanged, symbol="=")
detach = define("detach", lambda x: x, None)
is_zero = define("is_zero", lambda x: float(x == 0), None, symbol="= 0")
equal = define("equal", lambda x, y: float(x == y), None, None, symbol="=")
less = define("less", lambda x, y: float(x < y), None, None, symbol="<")
less_equal = define("less_equal", lambda x, y: float(x <= y), None, None, symbol="<=")
where: Primitive = define("where", lambda condition, x, y: x if condition else y, None,
    lambda g, out, condition, x, y: where(condition, g, 0.0), lambda g, out, condition, x, y: where(condition, 0.0, g))
# Arithmetic
neg = define("neg", operator.neg, lambda g, out, x: -g, symbol="-")
add = define("add", operator.add, unchanged, unchanged, symbol="+")
sub = define("sub", operator.sub, unchanged, lambda g, out, x, y: -g, symbol="-")
mul = define("mul", operator.mul, times_second, times_first, symbol="*")
div = define("div", operator.truediv, lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y,
    symbol="/", domain=(REAL_LINE, *POSITIVE))
# At 0 ** y the logarithm does not exist: there 1 takes the place of the base, and out beside it makes the derivative 0.
# The exponent is the last factor, as in a compiled sum: g * y may overflow where the product with a power of 0 is 0.
pow = define("pow", floats.power, lambda g, out, x, y: g * lower_power(x, y, 1.0) * y,
    lambda g, out, x, y: g * out * log(where(is_zero(x), 1.0, x)), symbol="**", domain=(*POSITIVE, REAL_LINE))
# x ** (y - k), which exists at x = 0 where the factor that the k-th derivative of x ** y has beside it is 0.
lower_power: Primitive = define("lower_power", special_functions.lower_power,
    lambda g, out, x, y, k: g * lower_power(where(_at_pole(x, y, k), 1.0, x), y, k + 1) * (y - k),
    lambda g, out, x, y, k: g * out * log(where(is_zero(x), 1.0, x)), None, domain=(*POSITIVE, REAL_LINE, REAL_LINE))
# Exponentials, logarithms and roots
exp = define("exp", math.exp, lambda g, out, x: g * out, domain=EXPONENT)
expm1 = define("expm1", math.expm1, lambda g, out, x: g * exp(x), domain=EXPONENT)
log: Primitive = define("log", math.log, lambda g, out, x: g / x, domain=POSITIVE)
log1p = define("log1p", math.log1p, lambda g, out, x: g / (1 + x), domain=((-1.0, math.inf),))
sqrt = define("sqrt", math.sqrt, lambda g, out, x: g / (2 * out), domain=POSITIVE)
# Circular and hyperbolic functions
sin = define("sin", math.sin, lambda g, out, x: g * cos(x))
cos: Primitive = define("cos", math.cos, lambda g, out, x: -g * sin(x))
tan = define("tan", math.tan, lambda g, out, x: g * (1 + out * out))
asin = define("asin", math.asin, lambda g, out, x: g / sqrt(_one_less_square(x)), domain=UNIT)
acos = define("acos", math.acos, lambda g, out, x: -g / sqrt(_one_less_square(x)), domain=UNIT)
atan = define("atan", math.atan, lambda g, out, x: g * lorentzian(x))
sinh = define("sinh", math.sinh, lambda g, out, x: g * cosh(x), domain=HYPERBOLIC)
cosh: Primitive = define("cosh", math.cosh, lambda g, out, x: g * sinh(x), domain=HYPERBOLIC)
tanh = define("tanh", math.tanh, lambda g, out, x: 4 * g * logistic_pdf(2 * x))
# Activations
sigmoid: Primitive = define("sigmoid", composites.sigmoid, lambda g, out, x: g * logistic_pdf(x))
softplus = define("softplus", composites.softplus, lambda g, out, x: g * sigmoid(x))
relu = define("relu", lambda x: 0.0 if x <= 0 else x, lambda g, out, x: where(x <= 0, 0.0, g), symbol="ReLU")
leaky_relu = define("leaky_relu", composites.leaky_relu, lambda g, out, x, slope: g * where(x > 0, 1.0, slope),
    lambda g, out, x, slope: g * minimum(x, 0.0))
elu = define("elu", composites.elu, lambda g, out, x, alpha: g * where(x > 0, 1.0, alpha * exp(minimum(x, 0.0))),
    lambda g, out, x, alpha: g * expm1(minimum(x, 0.0)))
silu: Primitive = define("silu", composites.silu,
    lambda g, out, x: g * (sigmoid(x) + silu(minimum(x, 1000.0)) * sigmoid(-x)))
gelu = define("gelu", composites.gelu, lambda g, out, x: g * (normal_cdf(x) + _bounded(x) * normal_pdf(x)))
# The error function and the normal distribution
erf = define("erf", math.erf, lambda g, out, x: g * (2 / math.sqrt(math.pi)) * gaussian(x))
erfc = define("erfc", math.erfc, lambda g, out, x: -g * (2 / math.sqrt(math.pi)) * gaussian(x))
normal_cdf: Primitive = define("normal_cdf", special_functions.normal_cdf, lambda g, out, x: g * normal_pdf(x))
# Bells: the slopes of sigmoid, of normal_cdf, of erf and of atan. Written out above, they would lose digits.
logistic_pdf: Primitive = define("logistic_pdf", composites.logistic_pdf, lambda g, out, x: -g * out * tanh(0.5 * x))
normal_pdf: Primitive = define("normal_pdf", special_functions.normal_pdf, lambda g, out, x: -g * out * _bounded(x))
gaussian: Primitive = define("gaussian", special_functions.gaussian, lambda g, out, x: -2 * g * out * _bounded(x))
lorentzian: Primitive = define("lorentzian", special_functions.lorentzian,
    lambda g, out, x: -2 * g * out * _bounded(x, 1e200) * out)
# Choices; x <= x does not hold for NaN
abs: Primitive = define("abs", math.fabs, lambda g, out, x: g * where(x > 0, 1.0, where(x < 0, -1.0, 0.0)))
maximum = define("maximum", floats.maximum, lambda g, out, x, y: where(x >= y, g, where(x <= x, 0.0, g)),
    lambda g, out, x, y: where(x >= y, 0.0, where(x <= x, g, 0.0)))
minimum: Primitive = define("minimum", floats.minimum, lambda g, out, x, y: where(x <= y, g, where(x <= x, 0.0, g)),
    lambda g, out, x, y: where(x <= y, 0.0, where(x <= x, g, 0.0)))
# fmt: on
