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
