"""The table of primitives: what each one computes, and its derivative, one entry each.

An entry reads like a line in a list of derivatives. For the quotient ``out = x / y`` it says:

    div = define("div", operator.truediv, lambda g, out, x, y: g / y, lambda g, out, x, y: -g * out / y)

a name, the forward function on floats, then a rule for each operand. A rule takes ``g``, the gradient of the
output, the output and the operands. By the chain rule, it returns ``g`` times the local derivative. ``None`` in place
of a rule means that no gradient flows to that operand. A primitive with a ``doc`` is public: functions.py makes it a
function and a method. A doc says what it computes, has an example and its result, and maybe what is raised, and when.

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

POSITIVE, HYPERBOLIC = ((0.0, math.inf),), ((-710.0, 710.0),)
EXPONENT = ((-math.inf, 709.782712893384),)  # beyond this, no float is large enough


# fmt: off
# Whether a power has its pole; there, lower_power has 1 in place of its base.
def _at_pole(x: Any, y: Any, k: Any) -> Any: return (x < 1e-307) * (x > -1e-307) * (y <= k - 1) * (y >= k - 1)
identity = define("identity", lambda x: x, unchanged, symbol="=")
detach = define("detach", lambda x: x, None,
    doc=("The number of x, as a constant that no gradient flows through.", "detach(Value(2.0)).requires_grad  # False"))
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
exp = define("exp", math.exp, lambda g, out, x: g * out, domain=EXPONENT,
    doc=("e to the power of x.", "exp(0.0)  # 1.0", "OverflowError: for x above 709.78."))
expm1 = define("expm1", math.expm1, lambda g, out, x: g * exp(x), domain=EXPONENT,
    doc=("exp(x) - 1, exact near 0 too.", "expm1(1e-13)  # 1.00000000000005e-13", "OverflowError: for x above 709.78."))
log: Primitive = define("log", math.log, lambda g, out, x: g / x, domain=POSITIVE,
    doc=("The natural logarithm of x.", "log(1.0)  # 0.0", "ValueError: for x of 0 or below."))
log1p = define("log1p", math.log1p, lambda g, out, x: g / (1 + x), domain=((-1.0, math.inf),),
    doc=("log(1 + x), exact near 0 too.", "log1p(1e-9)  # 9.999999995e-10", "ValueError: for x of -1 or below."))
sqrt = define("sqrt", math.sqrt, lambda g, out, x: g / (2 * out), domain=POSITIVE,
    doc=("The square root of x. At 0 the derivative raises ZeroDivisionError.", "sqrt(9.0)  # 3.0",
         "ValueError: for x below 0."))
# Circular and hyperbolic functions
sin = define("sin", math.sin, lambda g, out, x: g * cos(x),
    doc=("The sine of x, in radians.", "sin(0.0)  # 0.0", "ValueError: for an infinite x."))
cos: Primitive = define("cos", math.cos, lambda g, out, x: -g * sin(x),
    doc=("The cosine of x, in radians.", "cos(0.0)  # 1.0", "ValueError: for an infinite x."))
sinh = define("sinh", math.sinh, lambda g, out, x: g * cosh(x), domain=HYPERBOLIC,
    doc=("The hyperbolic sine of x.", "sinh(0.0)  # 0.0", "OverflowError: for x beyond 710.47 on either side."))
cosh: Primitive = define("cosh", math.cosh, lambda g, out, x: g * sinh(x), domain=HYPERBOLIC,
    doc=("The hyperbolic cosine of x.", "cosh(0.0)  # 1.0", "OverflowError: for x beyond 710.47 on either side."))
tanh = define("tanh", math.tanh, lambda g, out, x: 4 * g * logistic_pdf(2 * x),
    doc=("The hyperbolic tangent of x.", "tanh(0.0)  # 0.0"))
# Activations
sigmoid: Primitive = define("sigmoid", composites.sigmoid, lambda g, out, x: g * logistic_pdf(x),
    doc=("The logistic function 1 / (1 + exp(-x)); it neither overflows nor loses digits for any x.",
         "sigmoid(0.0)  # 0.5"))
softplus = define("softplus", composites.softplus, lambda g, out, x: g * sigmoid(x),
    doc=("log(1 + exp(x)), the smooth relu; it neither overflows nor loses digits for any x.",
         "softplus(1e4)  # 10000.0"))
relu = define("relu", lambda x: 0.0 if x <= 0 else x, lambda g, out, x: where(x <= 0, 0.0, g), symbol="ReLU",
    doc=("x where it is positive, elsewhere 0. The derivative at 0 is 0.", "relu(-2.0)  # 0.0"))
# The slope of sigmoid. Written out above, it would lose digits.
logistic_pdf: Primitive = define("logistic_pdf", composites.logistic_pdf, lambda g, out, x: -g * out * tanh(0.5 * x))
# Choices; x <= x does not hold for NaN
abs: Primitive = define("abs", math.fabs, lambda g, out, x: g * where(x > 0, 1.0, where(x < 0, -1.0, 0.0)),
    doc=("The absolute value of x. The derivative at 0 is 0.", "abs(-2.0)  # 2.0"))
maximum = define("maximum", floats.maximum, lambda g, out, x, y: where(x >= y, g, where(x <= x, 0.0, g)),
    lambda g, out, x, y: where(x >= y, 0.0, where(x <= x, g, 0.0)))
minimum: Primitive = define("minimum", floats.minimum, lambda g, out, x, y: where(x <= y, g, where(x <= x, 0.0, g)),
    lambda g, out, x, y: where(x <= y, 0.0, where(x <= x, g, 0.0)))
# fmt: on
