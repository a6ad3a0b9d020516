"""The types of functions.py. Do not edit: `python -m tests.function_types` writes this file from the table."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from numpy import ndarray

from micrograd.engine.node import Node
from micrograd.engine.value import Value

# fmt: off
__all__ = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "betaln", "ceil", "cos", "cosh", "detach",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expit", "expm1", "floor", "gammaln", "gelu", "hypot", "i0",
    "i1", "lgamma", "log", "log1p", "log2", "log10", "log_ndtr", "logit", "ndtr", "ndtri", "rel_entr", "relu",
    "sigmoid", "sign", "silu", "sin", "sinc", "sinh", "softplus", "sqrt", "tan", "tanh", "xlogy"
]
# fmt: on

_Self = TypeVar("_Self")
# What a function of one operand is given is what it gives; a float for an int.
_Scalar = TypeVar("_Scalar", Value, float, Value | float, ndarray[Any, Any])

def publish(make: Callable[..., Any]) -> None: ...

class _OfOne(Protocol):
    """A function of one operand. Not def: Mypy infers less of a call that such a generic function is passed to."""

    def __call__(self, x: _Scalar) -> _Scalar: ...

abs: _OfOne
"""The absolute value of x. The derivative at 0 is 0."""
acos: _OfOne
"""The angle in [0, pi] whose cosine is x. At -1 and 1 the derivative raises ZeroDivisionError."""
acosh: _OfOne
"""The number of 0 and above whose hyperbolic cosine is x. At 1 the derivative raises ZeroDivisionError."""
asin: _OfOne
"""The angle in [-pi/2, pi/2] whose sine is x. At -1 and 1 the derivative raises ZeroDivisionError."""
asinh: _OfOne
"""The number whose hyperbolic sine is x."""
atan: _OfOne
"""The angle in (-pi/2, pi/2) whose tangent is x."""

def atan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y) in radians, in [-pi, pi]. At (0, 0) it has no derivative: ZeroDivisionError."""

atanh: _OfOne
"""The number whose hyperbolic tangent is x."""

def betaln(x: Any, y: Any) -> Any:
    """The natural logarithm of the beta function of two positive numbers; a difference of lgammas loses digits."""

ceil: _OfOne
"""The lowest whole number that is not below x, as a float. It has no gradient."""
cos: _OfOne
"""The cosine of x, in radians."""
cosh: _OfOne
"""The hyperbolic cosine of x."""
detach: _OfOne
"""The number of x, as a constant that no gradient flows through."""
digamma: _OfOne
"""The derivative of lgamma."""
erf: _OfOne
"""The error function of x."""
erfc: _OfOne
"""1 - erf(x), with all its digits where erf(x) is nearly 1."""
erfinv: _OfOne
"""The inverse of erf."""
exp: _OfOne
"""e to the power of x."""
exp2: _OfOne
"""2 to the power of x."""
expit: _OfOne
"""The logistic function: sigmoid by SciPy's name."""
expm1: _OfOne
"""exp(x) - 1, exact near 0 too."""
floor: _OfOne
"""The highest whole number that is not above x, as a float (``math.floor(x)`` is an int). It has no gradient."""
gammaln: _OfOne
"""log(abs(gamma(x))): lgamma by SciPy's name."""
gelu: _OfOne
"""x times the normal distribution function of x (Hendrycks and Gimpel 2016, the exact form)."""

def hypot(x: Any, y: Any) -> Any:
    """The length of the vector (x, y). At (0, 0) it has no derivative: ZeroDivisionError in backward."""

i0: _OfOne
"""The modified Bessel function of the first kind of order 0; infinite beyond 713.98 on either side."""
i1: _OfOne
"""The modified Bessel function of the first kind of order 1; infinite beyond 713.98 on either side."""
lgamma: _OfOne
"""log(abs(gamma(x))), with all its digits near the roots at 1 and 2, which ``math.lgamma`` has not."""
log: _OfOne
"""The natural logarithm of x."""
log1p: _OfOne
"""log(1 + x), exact near 0 too."""
log2: _OfOne
"""The logarithm of x to base 2, exact for powers of 2."""
log10: _OfOne
"""The logarithm of x to base 10."""
log_ndtr: _OfOne
"""The logarithm of ndtr(x), also where ndtr(x) is too small for a float."""
logit: _OfOne
"""log(x / (1 - x)), the inverse of expit."""
ndtr: _OfOne
"""The probability that a normal variable is below x."""
ndtri: _OfOne
"""The inverse of ndtr: the quantile of the normal distribution."""

def rel_entr(x: Any, y: Any) -> Any:
    """x * log(x / y), and 0 where x is 0: one term of a relative entropy (Kullback-Leibler divergence)."""

relu: _OfOne
"""x where it is positive, elsewhere 0. The derivative at 0 is 0."""
sigmoid: _OfOne
"""The logistic function 1 / (1 + exp(-x)); it neither overflows nor loses digits for any x."""
sign: _OfOne
"""1 where x is positive, -1 where it is negative, and 0 at 0. It has no gradient."""
silu: _OfOne
"""x * sigmoid(x), also called swish."""
sin: _OfOne
"""The sine of x, in radians."""
sinc: _OfOne
"""sin(pi * x) / (pi * x), and 1 at 0, as in NumPy and PyTorch; accurate near whole numbers too."""
sinh: _OfOne
"""The hyperbolic sine of x."""
softplus: _OfOne
"""log(1 + exp(x)), the smooth relu; it neither overflows nor loses digits for any x."""
sqrt: _OfOne
"""The square root of x. At 0 the derivative raises ZeroDivisionError."""
tan: _OfOne
"""The tangent of x, in radians."""
tanh: _OfOne
"""The hyperbolic tangent of x."""

def xlogy(x: Any, y: Any) -> Any:
    """x * log(y), and 0 where x is 0, for any y."""

class FunctionMethods(Node):
    def abs(self: _Self) -> _Self: ...
    def acos(self: _Self) -> _Self: ...
    def acosh(self: _Self) -> _Self: ...
    def asin(self: _Self) -> _Self: ...
    def asinh(self: _Self) -> _Self: ...
    def atan(self: _Self) -> _Self: ...
    def atan2(self, x: Any) -> Any: ...
    def atanh(self: _Self) -> _Self: ...
    def betaln(self, y: Any) -> Any: ...
    def ceil(self: _Self) -> _Self: ...
    def cos(self: _Self) -> _Self: ...
    def cosh(self: _Self) -> _Self: ...
    def detach(self: _Self) -> _Self: ...
    def digamma(self: _Self) -> _Self: ...
    def erf(self: _Self) -> _Self: ...
    def erfc(self: _Self) -> _Self: ...
    def erfinv(self: _Self) -> _Self: ...
    def exp(self: _Self) -> _Self: ...
    def exp2(self: _Self) -> _Self: ...
    def expit(self: _Self) -> _Self: ...
    def expm1(self: _Self) -> _Self: ...
    def floor(self: _Self) -> _Self: ...
    def gammaln(self: _Self) -> _Self: ...
    def gelu(self: _Self) -> _Self: ...
    def hypot(self, y: Any) -> Any: ...
    def i0(self: _Self) -> _Self: ...
    def i1(self: _Self) -> _Self: ...
    def lgamma(self: _Self) -> _Self: ...
    def log(self: _Self) -> _Self: ...
    def log1p(self: _Self) -> _Self: ...
    def log2(self: _Self) -> _Self: ...
    def log10(self: _Self) -> _Self: ...
    def log_ndtr(self: _Self) -> _Self: ...
    def logit(self: _Self) -> _Self: ...
    def ndtr(self: _Self) -> _Self: ...
    def ndtri(self: _Self) -> _Self: ...
    def rel_entr(self, y: Any) -> Any: ...
    def relu(self: _Self) -> _Self: ...
    def sigmoid(self: _Self) -> _Self: ...
    def sign(self: _Self) -> _Self: ...
    def silu(self: _Self) -> _Self: ...
    def sin(self: _Self) -> _Self: ...
    def sinc(self: _Self) -> _Self: ...
    def sinh(self: _Self) -> _Self: ...
    def softplus(self: _Self) -> _Self: ...
    def sqrt(self: _Self) -> _Self: ...
    def tan(self: _Self) -> _Self: ...
    def tanh(self: _Self) -> _Self: ...
    def xlogy(self, y: Any) -> Any: ...
    def arcsin(self: _Self) -> _Self: ...
    def arccos(self: _Self) -> _Self: ...
    def arctan(self: _Self) -> _Self: ...
    def arcsinh(self: _Self) -> _Self: ...
    def arccosh(self: _Self) -> _Self: ...
    def arctanh(self: _Self) -> _Self: ...
    def arctan2(self, x: Any) -> Any: ...
