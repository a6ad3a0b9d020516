"""Forward functions of primitives that Python's math does not have, on floats."""

from __future__ import annotations

import math


def power(x: float, y: float) -> float:
    """X to the power of y, for a real result."""
    if x < 0 and not y.is_integer() and math.isfinite(y):
        raise ValueError("a negative base with a fractional exponent has no real value")
    return x**y


def maximum(x: float, y: float) -> float:
    """The larger; NaN where one is NaN."""
    return x if x >= y or math.isnan(x) else y


def minimum(x: float, y: float) -> float:
    """The smaller; NaN where one is NaN."""
    return x if x <= y or math.isnan(x) else y


def floor(x: float) -> float:
    """The highest whole number that is not above x, as a float; 0, infinity and NaN are themselves."""
    return float(math.floor(x)) if x and math.isfinite(x) else x
