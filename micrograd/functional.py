"""Functions over Values and plain floats, and the small programs written with them.

A function given plain numbers only gives a float; a Value among its operands makes the result a Value. Those that are
public primitives are made in engine/functions.py. They are methods too: ``v.tanh()`` is ``tanh(v)``.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, TypeVar, overload

import micrograd.engine.functions as functions  # Pyright would read __all__ of the package "from" which it came
from micrograd._support.axes import array_with_axes, mapped, reduced
from micrograd._support.checks import check_numbers, check_type, required_sequence
from micrograd.contexts.calls import observed
from micrograd.engine import further_primitives, primitives
from micrograd.engine.applying import applied_with
from micrograd.engine.choices import note_choice
from micrograd.engine.functions import *
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy import ndarray

    from micrograd.engine.primitive import Primitive

__all__ = [
    "clip",
    "degrees",
    "dot",
    "elu",
    "entr",
    "fma",
    "leaky_relu",
    "logaddexp",
    "logsumexp",
    "maximum",
    "mean",
    "minimum",
    "polygamma",
    "radians",
    "softmax",
    "take",
    "where",
]
__all__ += functions.__all__

# What a function of one operand is given is what it gives; a float for an int.
Scalar = TypeVar("Scalar", Value, float, "Value | float", "ndarray[Any, Any]")
LARGEST = sys.float_info.max  # of the finite floats


def logaddexp(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), for large numbers too; of any sequence, see logsumexp.

    Example:
        >>> logaddexp(1000.0, -1000.0)
        1000.0
    """
    return logsumexp([x, y])


def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z, rounded only once: a fused multiply-add.

    Args:
        x: a factor.
        y: the other factor.
        z: what is added to the product.

    Raises:
        OverflowError: if the result is too large for a float.
        ValueError: for infinity times 0, and for infinity minus infinity.

    Example:
        >>> fma(0.1, 10.0, -1.0), 0.1 * 10.0 - 1.0
        (5.551115123125783e-17, 0.0)
    """
    return further_primitives.fma(x, y, z)


def degrees(x: Scalar) -> Scalar:
    """An angle in radians as one in degrees.

    Example:
        >>> degrees(3.141592653589793)
        180.0
    """
    return further_primitives.degrees(x)


def radians(x: Scalar) -> Scalar:
    """An angle in degrees as one in radians.

    Example:
        >>> radians(180.0)
        3.141592653589793
    """
    return further_primitives.radians(x)


def leaky_relu(x: Any, slope: Any = 0.01) -> Any:
    """x where it is positive, elsewhere slope * x. The derivative at 0 is the slope.

    The slope may be a Value, learned with the rest (a PReLU).

    Example:
        >>> leaky_relu(-2.0)
        -0.02
    """
    return applied_with(x, further_primitives.leaky_relu, slope)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """x where it is positive, elsewhere alpha * (exp(x) - 1). The derivative at 0 is alpha.

    Example:
        >>> elu(0.0)
        0.0
    """
    return applied_with(x, further_primitives.elu, alpha)


def maximum(x: Any, y: Any = ..., *others: Any) -> Any:
    """The largest of its arguments. Of equal ones, the first gets the gradient. NaN wins over numbers.

    Example:
        >>> maximum(2.0, 3.0), maximum(1.0, 5.0, 3.0)
        (3.0, 5.0)
    """
    if y is ... or others:
        return _reduced(primitives.maximum, x, y, others)
    return applied_with(x, primitives.maximum, y)


def minimum(x: Any, y: Any = ..., *others: Any) -> Any:
    """The smallest of its arguments. Of equal ones, the first gets the gradient. NaN wins over numbers.

    Example:
        >>> minimum(2.0, 3.0), minimum(4.0, 1.0, 3.0)
        (2.0, 1.0)
    """
    if y is ... or others:
        return _reduced(primitives.minimum, x, y, others)
    return applied_with(x, primitives.minimum, y)


def _reduced(primitive: Primitive, x: Any, y: Any, others: tuple[Any, ...]) -> Any:
    if y is ...:
        name = primitive.name
        raise TypeError(f"{name} takes two numbers or more: write {name}(*numbers), not {name}({x!r:.80})")
    for other in (y, *others):
        x = applied_with(x, primitive, other)
    return x


def clip(x: Any, low: Any, high: Any) -> Any:
    """x, or the limit that it exceeds; there, x gets no gradient.

    Example:
        >>> clip(7.0, 0.0, 1.0)
        1.0
    """
    return further_primitives.clip(x, low, high)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y. Gradients flow to the one that is chosen.

    Args:
        condition: a bool, or a number or Value, which means False if it is 0.
        x: the result where the condition holds.
        y: the result elsewhere. Both are computed first.

    Example:
        >>> x = Value(3.0)
        >>> where(x > 2, x * x, 0.0).data
        9.0
    """
    return primitives.where(condition, x, y)


def take(sequence: Sequence[Any], index: Any) -> Any:
    """The element at an index: ``sequence[index]``, also for an index that is an argument of a compiled function.

    Args:
        sequence: numbers or Values, or a table: rows of them, of one length.
        index: an int, from -len(sequence), counted from the end, to below len(sequence).

    Returns:
        The element, or the row as a list.

    Raises:
        IndexError: if there is no such element.
        TypeError: if the index is not an int, or sequence is none.

    Example:
        >>> take([10.0, 20.0, 30.0], 1)
        20.0
        >>> take([[1.0, 2.0], [3.0, 4.0]], -1)
        [3.0, 4.0]
    """
    tracer = tracer_on_top() if isinstance(index, Value) else None  # which takes what is not known yet
    if tracer is None and (isinstance(index, Value) or not hasattr(index, "__index__")):
        raise TypeError(f"an index must be an int, not {type(index).__name__}: {index!r:.80}")
    if not hasattr(type(sequence), "__len__"):
        shown = f"{type(sequence).__name__}: {sequence!r:.80}"
        raise TypeError(f"take takes a sequence of numbers or Values, or of rows, not {shown}")
    if not len(sequence):
        raise IndexError("there is nothing to take from an empty sequence")
    if tracer is None and not -len(sequence) <= index < len(sequence):
        raise IndexError(f"index {index} is out of range for a sequence of {len(sequence)}")
    if tracer is None:
        note_choice()
    first = sequence[0]
    if not hasattr(type(first), "__len__"):
        return sequence[index] if tracer is None else tracer.take(sequence, index)
    if len({len(row) for row in sequence}) > 1:
        raise ValueError("the rows of a table to take from must be equally long")
    if tracer is None:
        return list(sequence[index])
    return [take(column, index) for column in zip(*sequence, strict=True)]


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
    check_type(not isinstance(n, bool) and hasattr(n, "__index__"), "the order of polygamma must be an int", n)
    if n < 0:
        raise ValueError(f"the order of polygamma must be 0 or more, not {n}")
    return further_primitives.digamma_slope(x, order=int(n)) if n else further_primitives.digamma(x)


def entr(x: Any) -> Any:
    """-x * log(x), and 0 where x is 0: one term of an entropy.

    Raises:
        ValueError: for x below 0.

    Example:
        >>> entr(0.0), entr(1.0)
        (0.0, 0.0)
    """
    return 0.0 - applied_with(x, further_primitives.xlogy, x)


def dot(xs: Iterable[Any], ys: Iterable[Any]) -> Any:
    """The sum of the products of two sequences of one length.

    Raises:
        ValueError: if one is longer than the other, or both are empty.
        TypeError: if an element is neither a number nor a Value.

    Example:
        >>> dot([1.0, 2.0], [3.0, 4.0])
        11.0
    """
    if hasattr(xs, "of_terms"):
        return xs.of_terms("dot", ys)
    xs = required_sequence(xs, "dot takes two sequences of numbers or Values")
    ys = required_sequence(ys, "dot takes two sequences of numbers or Values")
    check_numbers([*xs, *ys], "an element of a dot product")
    if len(xs) != len(ys):
        raise ValueError(f"dot needs two sequences of one length, not of {len(xs)} and {len(ys)}")
    if not xs:
        raise ValueError("dot of nothing: give at least one number or Value in each sequence")
    if (recorded := sum_of_products(xs, ys, -0.0)) is not None:  # to -0 whatever is added stays as it is
        return recorded
    products = [x * y for x, y in zip(xs, ys, strict=True)]
    return sum(products[1:], products[0])


def sum_of_products(xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
    """Start plus the sum of the products as one operation, where the recorder has one for it; else None.

    While a function is traced, one operation in the place of 32 makes the trace that much shorter. Under no_grad
    only numbers have to be computed.
    """
    recorder = recorder_on_top()
    return None if recorder is None else recorder.sum_of_products(xs, ys, start)


@overload
def mean(xs: Iterable[Scalar]) -> Scalar: ...
@overload
def mean(xs: Iterable[Any], axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Any: ...
def mean(xs: Iterable[Any], axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Any:
    """The arithmetic mean.

    Args:
        xs: a sequence of numbers or Values; with an axis, an array of them, or nested lists of one shape.
        axis: along which to take it, as in np.mean: an int or a tuple of ints; negative ones count from the end.
        keepdims: whether that axis stays, with one element.

    Returns:
        One number or Value; with an axis, an array of the remaining axes, if there are any.

    Raises:
        ValueError: if there is nothing to take the mean of, there is no such axis, or an array of several dimensions
            comes without an axis.
        TypeError: if an element is neither a number nor a Value, or axis is no int.

    Example:
        >>> mean([1.0, 2.0, 6.0])
        3.0
        >>> mean([[1.0, 2.0], [3.0, 6.0]], axis=0)
        array([2., 4.])
    """
    return _along(mean, _mean, xs, axis, "mean", keepdims)


def _mean_of(terms: Sequence[Any]) -> Any:
    return sum(terms[1:], terms[0]) / len(terms)


def logsumexp(xs: Iterable[Any], axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Any:
    """log(exp(x1) + exp(x2) + ...), without overflow: the largest x is taken out of the sum first.

    Args:
        xs: a sequence of numbers or Values; with an axis, an array of them, or nested lists of one shape.
        axis: along which to sum, as in np.sum: an int or a tuple of ints; negative ones count from the end.
        keepdims: whether that axis stays, with one element.

    Returns:
        One number or Value; with an axis, an array of the remaining axes, if there are any.

    Raises:
        ValueError: if there is nothing to sum, there is no such axis, or an array of several dimensions comes
            without an axis.
        TypeError: if an element is neither a number nor a Value, or axis is no int.

    Example:
        >>> logsumexp([1e4, 1e4 - 800])
        10000.0
        >>> logsumexp([[1e4, 0.0], [-800.0, 0.0]], axis=1)
        array([10000.,     0.])
    """
    return _along(logsumexp, _logsumexp, xs, axis, "logsumexp", keepdims)


def _logsumexp_of(terms: Sequence[Any]) -> Any:
    largest = _largest(terms)
    exponentials = [primitives.exp(x - largest) for x in terms]
    total = sum(exponentials[1:], exponentials[0])
    nothing = total <= 0  # so it is where a mask has made every term minus infinity
    return primitives.where(nothing, -math.inf, largest + primitives.log(primitives.where(nothing, 1.0, total)))


def softmax(xs: Iterable[Any], axis: int | tuple[int, ...] | None = None) -> Any:
    """exp(x) for each x, divided by their sum: positive numbers with the sum 1.

    Args:
        xs: a sequence of numbers or Values; with an axis, an array of them, or nested lists of one shape.
        axis: along which they add up to 1, as in np.sum: an int, from the end where it is negative, or a tuple of
            ints, for the elements of several axes together.

    Returns:
        A list; with an axis, an array of the shape of xs.

    Raises:
        ValueError: if there is nothing to normalise, there is no such axis, or an array of several dimensions comes
            without an axis.
        ZeroDivisionError: if every x is -inf.
        TypeError: if an element is neither a number nor a Value, or axis is no int.

    Example:
        >>> softmax([1e4, 1e4])
        [0.5, 0.5]
        >>> softmax([[1e4, 0.0], [0.0, 0.0]], axis=-1)
        array([[1. , 0. ],
               [0.5, 0.5]])
    """
    if hasattr(xs, "of_terms"):
        return xs.of_terms("softmax", axis=axis)
    if axis is not None:
        return mapped(softmax, _with_axes(xs, "softmax"), axis, "softmax")
    return _softmax(_some(xs, "softmax"))


def _softmax_of(terms: Sequence[Any]) -> Any:
    largest = _largest(terms)
    exponentials = [primitives.exp(x - largest) for x in terms]
    total = sum(exponentials[1:], exponentials[0])
    try:
        return [exponential / total for exponential in exponentials]
    except ZeroDivisionError:
        raise ZeroDivisionError("softmax of nothing but -inf: there is nothing to normalise") from None


def _along(
    function: Callable[..., Any], of_terms: Callable[..., Any], xs: Any, axis: Any, name: str, keepdims: bool
) -> Any:
    """What a function makes of a sequence; or with an axis, of each row of an array."""
    if axis is None and keepdims:
        raise ValueError("keepdims is for an array: give the axis")
    if hasattr(xs, "of_terms"):
        return xs.of_terms(name, axis=axis, keepdims=keepdims)
    if axis is not None:
        return reduced(function, [_with_axes(xs, name)], axis, name, keepdims=keepdims)
    return of_terms(_some(xs, name))


def _with_axes(xs: Iterable[Any], name: str) -> Any:
    return array_with_axes(xs, f"{name} takes a sequence of numbers or Values")


def _some(xs: Iterable[Any], name: str) -> Sequence[Any]:
    if (dimensions := getattr(xs, "ndim", 1)) != 1:
        raise ValueError(f"{name} takes a sequence, not an array of {dimensions} dimensions: give the axis")
    if not (terms := required_sequence(xs, f"{name} takes a sequence of numbers or Values")):
        raise ValueError(f"{name} of nothing: give at least one number or Value")
    check_numbers(terms, f"an element of what {name} takes")
    return terms


def _largest(terms: Sequence[Any]) -> Any:
    """The largest term as a finite constant. It is subtracted and added back, so it needs no gradient."""
    largest = terms[0]
    for term in terms[1:]:
        largest = primitives.maximum(largest, term)
    # Infinity minus infinity would be NaN.
    return primitives.maximum(primitives.minimum(primitives.detach(largest), LARGEST), -LARGEST)


# Each run is a box of a page.
_mean = observed(_mean_of, "mean")
_logsumexp = observed(_logsumexp_of, "logsumexp")
_softmax = observed(_softmax_of, "softmax")

# Where doctest finds the examples of functions that no def statement of this module makes
__test__ = {name: getattr(functions, name) for name in functions.__all__}
