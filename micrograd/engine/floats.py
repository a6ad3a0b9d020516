"""Forward functions of primitives that Python's math does not have, on floats: right in their tails too."""

from __future__ import annotations

import math


def power(x: float, y: float) -> float:
    """X to the power of y, for a real result."""
    if x < 0 and not y.is_integer() and math.isfinite(y):
        raise ValueError("a negative base with a fractional exponent has no real value")
    return x**y


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)), with all its digits in the tail."""
    if x >= 0:
        return 1 / (1 + math.exp(-x))
    small = math.exp(x)
    return small / (1 + small)


def logistic_pdf(x: float) -> float:
    """The slope of the sigmoid."""
    small = math.exp(-math.fabs(x))
    return small / (1 + small) ** 2


def softplus(x: float) -> float:
    """log(1 + exp(x)), for large x too."""
    return max(x, 0.0) + math.log1p(math.exp(-math.fabs(x)))


def silu(x: float) -> float:
    """X times its sigmoid."""
    if x >= -600:
        return x * sigmoid(x)
    root = math.exp(0.5 * x)  # exp(x) itself is below the normal floats: it has lost digits
    return max(x, -2000.0) * root * root


def lorentzian(x: float) -> float:
    """1 / (1 + x**2), for large x too."""
    return 1 / (1 + x * x) if -1e150 < x < 1e150 else 1 / x / x


def _high_half(x: float) -> float:
    """The leading half of the digits of x, whose square is exact (Dekker 1971)."""
    large = 134217729.0 * x
    return large - (large - x)


def gaussian(x: float, factor: float = 1.0) -> float:
    """exp(-factor * x**2), for a factor that is a power of two; rounding the square would cost x**2 digits."""
    if math.fabs(x) > 40:
        return 0.0
    high = _high_half(x)
    return math.exp(-factor * high * high) * math.exp(-factor * (x - high) * (x + high))


def normal_pdf(x: float) -> float:
    """The density of the normal distribution."""
    return math.sqrt(0.5 / math.pi) * gaussian(x, 0.5)


ROOT = math.sqrt(0.5)
REST_OF_ROOT = -4.833646656726457e-17  # what sqrt(0.5) has beyond the float


def normal_cdf(x: float) -> float:
    """How much of the normal distribution lies below x."""
    if x > -1:
        return 0.5 * math.erfc(-x * ROOT)
    if x < -40:
        return 0.0
    # In the tail an error of one unit in the last place of x * ROOT is one of x**2 units here: take it out.
    scaled = x * ROOT
    high, high_root = _high_half(x), _high_half(ROOT)
    low, low_root = x - high, ROOT - high_root
    lost = (high * high_root - scaled) + high * low_root + low * high_root + low * low_root + x * REST_OF_ROOT
    return 0.5 * math.erfc(-scaled) + lost * gaussian(scaled) / math.sqrt(math.pi)


def maximum(x: float, y: float) -> float:
    """The larger; NaN where one is NaN."""
    return x if x >= y or math.isnan(x) else y


def minimum(x: float, y: float) -> float:
    """The smaller; NaN where one is NaN."""
    return x if x <= y or math.isnan(x) else y
