"""Forward functions that are formulas over other primitives, each written once for all that can compute them.

    @composite
    def softplus(on, x):
        return on.maximum(x, 0.0) + on.log1p(on.exp(-on.abs(x)))

``on`` has the primitives by their names, as functions of one kind of operand: of floats, of NumPy arrays, of LLVM's
numbers and vectors, of the symbols that a page's formulas are written with. So whoever computes has functions for
the base operations only (those of the table that have no formula here), and these follow.

A choice is ``on.where(condition, a, b)``, with a comparison by an operator. Both branches are computed, so the one that
is not chosen must not raise on floats: a ``minimum`` or ``maximum`` in it keeps exponentials and divisors in bounds.
Python's own products and sums give infinity where they overflow, and do not raise. What a rare case needs stands under
``if on.somewhere(condition)``: a float that is no such case does without, and so does an array that has none.
"""

from __future__ import annotations

import math
from typing import Any

from micrograd.engine.primitive import composite

_ROOT = math.sqrt(0.5)
_SPLITTER = 134217729.0  # 2 ** 27 + 1


def _high_half(x: Any) -> Any:
    """The leading half of the digits of x, whose square is exact (Dekker 1971)."""
    large = _SPLITTER * x
    return large - (large - x)


_HIGH_ROOT = _high_half(_ROOT)
_LOW_ROOT = _ROOT - _HIGH_ROOT - 4.833646656726457e-17  # with the next digits of sqrt(0.5)


# Activations


@composite
def sigmoid(on: Any, x: Any) -> Any:
    """1 / (1 + exp(-x)), with all its digits in the tail."""
    small = on.exp(-on.abs(x))
    return on.where(x >= 0, 1.0, small) / (1 + small)


@composite
def softplus(on: Any, x: Any) -> Any:
    """log(1 + exp(x)), for large x too."""
    return on.maximum(x, 0.0) + on.log1p(on.exp(-on.abs(x)))


@composite
def leaky_relu(on: Any, x: Any, slope: Any) -> Any:
    """X, and its multiple where it is negative."""
    return on.where(x > 0, x, slope * x)


@composite
def elu(on: Any, x: Any, alpha: Any) -> Any:
    """X, and a multiple of exp(x) - 1 where it is negative."""
    return on.where(x > 0, x, alpha * on.expm1(on.minimum(x, 0.0)))


@composite
def silu(on: Any, x: Any) -> Any:
    """X times its sigmoid."""
    root = on.exp(-0.5 * on.abs(x))  # exp(-abs(x)) itself, where it is below the normal floats, has lost digits
    return on.where(x >= 0, x, on.maximum(x, -2000.0) * root * root) / (1 + root * root)


@composite
def gelu(on: Any, x: Any) -> Any:
    """X times the probability that a normal variable is below x."""
    return on.maximum(x, -50.0) * on.normal_cdf(x)


# The normal distribution, and bells


@composite
def normal_cdf(on: Any, x: Any) -> Any:
    """The probability that a normal variable is below x."""
    near = on.maximum(x, -40.0)
    scaled = near * _ROOT
    body = 0.5 * on.erfc(-scaled)
    if not on.somewhere(x <= -1):
        return body
    # In the tail an error of one unit in the last place of scaled is one of x**2 units here: take it out.
    high = _high_half(near)
    lost = (high * _HIGH_ROOT - scaled) + (near - high) * _HIGH_ROOT + near * _LOW_ROOT
    rest = lost * on.exp(-scaled * scaled) / math.sqrt(math.pi)
    return body + on.where(x <= -1, rest, 0.0)


@composite
def logistic_pdf(on: Any, x: Any) -> Any:
    """The slope of the sigmoid."""
    small = on.exp(-on.abs(x))
    return small / ((1 + small) * (1 + small))


def _bell(on: Any, x: Any, factor: float) -> Any:
    """exp(-factor * x**2), for a factor that is a power of two; rounding the square would cost x**2 digits."""
    near = on.minimum(on.abs(x), 40.0)
    high = _high_half(near)
    return on.exp(-factor * high * high) * on.exp(-factor * (near - high) * (near + high))


@composite
def gaussian(on: Any, x: Any) -> Any:
    """exp(-x**2)."""
    return _bell(on, x, 1.0)


@composite
def normal_pdf(on: Any, x: Any) -> Any:
    """The density of the normal distribution."""
    return math.sqrt(0.5 / math.pi) * _bell(on, x, 0.5)


@composite
def lorentzian(on: Any, x: Any) -> Any:
    """1 / (1 + x**2), for large x too."""
    size = on.abs(x)
    near = 1 / (1 + x * x)
    if not on.somewhere(size > 1e150):
        return near
    far = on.maximum(size, 1.0)
    return on.where(size > 1e150, 1 / far / far, near)


# Powers


@composite
def lower_power(on: Any, x: Any, y: Any, k: Any) -> Any:
    """X ** (y - k), the power in the k-th derivative of x ** y; the factors y, y - 1 ... y - k + 1 stand beside it.

    Where y - k is rounded, the power is off by log(x) times that. Where the last of those factors is 0, and x as well
    (or so close to it that 1 / x overflows), the power does not exist, and 1 takes the place of the base.
    """
    lower = y - k
    size = on.abs(x)
    base = x
    if on.somewhere(size < 1e-307):
        base = on.where(size < 1e-307, on.where(on.equal(y, k - 1), 1.0, x), x)
    power = on.pow(base, lower)
    lost = y - (lower + k)  # it is NaN where y is infinite
    rounded = on.abs(lost) > 0
    if on.somewhere(rounded):
        power = power * on.where(rounded, 1 + lost * on.log(on.minimum(size, 1e308) + 2.3e-308), 1.0)
    return power


# Steps


@composite
def sign(on: Any, x: Any) -> Any:
    """1 above 0, -1 below; 0 and NaN are themselves."""
    return on.where(x > 0, 1.0, on.where(x < 0, -1.0, x))


@composite
def ceil(on: Any, x: Any) -> Any:
    """The lowest whole number that is not below x."""
    return -on.floor(-x)
