"""SciPy's special functions by SciPy's names: of floats, Values and arrays of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from micrograd.engine import further_primitives, primitives
from micrograd.engine.value import Value, applied_with

if TYPE_CHECKING:
    from numpy import ndarray

Scalar = TypeVar("Scalar", Value, float, "Value | float", "ndarray[Any, Any]")


def gammaln(x: Scalar) -> Scalar:
    """The natural logarithm of the absolute value of the gamma function at x: lgamma by SciPy's name.

    Raises:
        ValueError: for x of 0, -1, -2 and so on, where the gamma function is infinite.

    Example:
        >>> gammaln(1.0)
        0.0
    """
    return x._applied(further_primitives.lgamma) if type(x) is Value else further_primitives.lgamma(x)


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma.

    Args:
        n: the order, an int of 0 or more.
        x: a number, a Value or an array; above 0 if n is 1 or more.

    Raises:
        TypeError: if n is no int.
        ValueError: if n is below 0; and for x of 0 or below, if n is 1 or more.

    Example:
        >>> polygamma(1, 1.0)
        1.6449340668482264
    """
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"the order of polygamma must be an int, not {type(n).__name__}: {n!r:.80}")
    if n < 0:
        raise ValueError(f"the order of polygamma must be 0 or more, not {n}")
    return further_primitives.digamma_slope(x, order=int(n)) if n else further_primitives.digamma(x)


def betaln(x: Any, y: Any) -> Any:
    """The natural logarithm of the beta function of two positive numbers.

    Raises:
        ValueError: if one of them is 0.

    Example:
        >>> round(betaln(2.0, 1e9), 12)  # the difference of lgammas would keep 7 digits
        -41.446531674893
    """
    return applied_with(x, further_primitives.betaln, y)


def expit(x: Scalar) -> Scalar:
    """The logistic function: sigmoid by SciPy's name.

    Example:
        >>> expit(0.0)
        0.5
    """
    return x._applied(primitives.sigmoid) if type(x) is Value else primitives.sigmoid(x)


def logit(x: Scalar) -> Scalar:
    """log(x / (1 - x)), the inverse of expit.

    Raises:
        ValueError: for x outside of the open interval from 0 to 1.

    Example:
        >>> logit(0.5)
        0.0
    """
    return x._applied(further_primitives.logit) if type(x) is Value else further_primitives.logit(x)


def ndtr(x: Scalar) -> Scalar:
    """The probability that a normal variable is below x.

    Example:
        >>> ndtr(0.0)
        0.5
    """
    return x._applied(primitives.normal_cdf) if type(x) is Value else primitives.normal_cdf(x)


def log_ndtr(x: Scalar) -> Scalar:
    """The logarithm of ndtr(x), also where ndtr(x) is too small for a float.

    Example:
        >>> log_ndtr(-100.0)
        -5005.524208694205
    """
    return x._applied(further_primitives.log_ndtr) if type(x) is Value else further_primitives.log_ndtr(x)


def ndtri(x: Scalar) -> Scalar:
    """The inverse of ndtr: the quantile of the normal distribution.

    Raises:
        ValueError: for x outside of the open interval from 0 to 1.

    Example:
        >>> ndtri(0.975)
        1.9599639845400536
    """
    return x._applied(further_primitives.ndtri) if type(x) is Value else further_primitives.ndtri(x)


def erfinv(x: Scalar) -> Scalar:
    """The inverse of erf.

    Raises:
        ValueError: for x outside of the open interval from -1 to 1.

    Example:
        >>> erfinv(0.5)
        0.4769362762044699
    """
    return x._applied(further_primitives.erfinv) if type(x) is Value else further_primitives.erfinv(x)


def i0(x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind of order 0; infinite for x beyond 713.98 on either side.

    Example:
        >>> i0(0.0)
        1.0
    """
    return x._applied(further_primitives.i0) if type(x) is Value else further_primitives.i0(x)


def i1(x: Scalar) -> Scalar:
    """The modified Bessel function of the first kind of order 1; infinite for x beyond 713.98 on either side.

    Example:
        >>> i1(1.0)
        0.565159103992485
    """
    return x._applied(further_primitives.i1) if type(x) is Value else further_primitives.i1(x)


def xlogy(x: Any, y: Any) -> Any:
    """X * log(y), and 0 where x is 0, whatever y is.

    Raises:
        ValueError: for y of 0 or below, unless x is 0.

    Example:
        >>> xlogy(0.0, 0.0), xlogy(2.0, 1.0)
        (0.0, 0.0)
    """
    return applied_with(x, further_primitives.xlogy, y)


def entr(x: Any) -> Any:
    """-x * log(x), and 0 where x is 0: what one outcome adds to an entropy.

    Raises:
        ValueError: for x below 0.

    Example:
        >>> entr(0.0), entr(1.0)
        (0.0, 0.0)
    """
    return 0.0 - applied_with(x, further_primitives.xlogy, x)


def rel_entr(x: Any, y: Any) -> Any:
    """X * log(x / y), and 0 where x is 0: what one outcome adds to a relative entropy (Kullback-Leibler divergence).

    Raises:
        ValueError: if the quotient is below 0.
        ZeroDivisionError: for y of 0.

    Example:
        >>> rel_entr(0.5, 0.5), rel_entr(0.0, 0.5)
        (0.0, 0.0)
    """
    return applied_with(x, further_primitives.rel_entr, y)
