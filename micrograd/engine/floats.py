"""Forward functions of primitives that Python's math does not have, on floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def power(x: float, y: float) -> float:
    """X to the power of y, for a real result; infinity where it is too large, as a product of floats gives it."""
    if x < 0 and not y.is_integer() and math.isfinite(y):
        raise ValueError("a negative base with a fractional exponent has no real value")
    try:
        return x**y
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf


def maximum(x: float, y: float) -> float:
    """The larger; NaN where one is NaN."""
    return x if x >= y or math.isnan(x) else y


def minimum(x: float, y: float) -> float:
    """The smaller; NaN where one is NaN."""
    return x if x <= y or math.isnan(x) else y


def floor(x: float) -> float:
    """The highest whole number that is not above x, as a float; 0, infinity and NaN are themselves."""
    return float(math.floor(x)) if x and math.isfinite(x) else x


def exact_fma(x: float, y: float, z: float) -> float:
    """X * y + z, rounded once, by a quotient of integers; it raises what math.fma raises."""
    plain = x * y + z
    if not (math.isfinite(x) and math.isfinite(y)):
        if math.isnan(plain) and not any(map(math.isnan, (x, y, z))):
            raise ValueError("invalid operation in fma")
        return plain
    if not math.isfinite(z):
        return z  # where the product of floats overflows, too
    if not (x and y):
        return plain  # the product is exact, and so is its sign
    (a, b), (c, d), (e, f) = (number.as_integer_ratio() for number in (x, y, z))
    try:
        return (a * c * f + e * b * d) / (b * d * f)  # Python rounds a quotient of integers once
    except OverflowError:
        raise OverflowError("overflow in fma") from None


fma: Callable[[float, float, float], float] = getattr(math, "fma", exact_fma)  # Python has it from 3.13 on
