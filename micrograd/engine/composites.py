"""Forward functions that are formulas over other primitives, each written once for all backends.

    @composite
    def softplus(on, x):
        return on.maximum(x, 0.0) + on.log1p(on.exp(-on.abs(x)))

``on`` has the primitives by name, for one kind of operand: floats, NumPy arrays, LLVM's numbers and vectors, or
symbols of a page's formulas. So a backend only needs the base operations, those of the table without a formula here,
and the others follow.

Instead of ``if``, write ``on.where(condition, a, b)``, with a comparison by an operator. Both branches are computed, so
the other one must not raise an error on floats: bound its exponentials and divisors with ``minimum`` or ``maximum``.
Products and sums of Python floats overflow to infinity without an error. Put code for a rare case under
``if on.somewhere(condition)``: floats and arrays without such a case skip it.
"""

from __future__ import annotations

from typing import Any

from micrograd.engine.primitive import composite


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


@composite
def logistic_pdf(on: Any, x: Any) -> Any:
    """The slope of the sigmoid."""
    small = on.exp(-on.abs(x))
    return small / ((1 + small) * (1 + small))
