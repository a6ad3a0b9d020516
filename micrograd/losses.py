"""Losses: how far predictions are from targets, as one Value to backpropagate from.

Each takes one prediction and its target, or sequences of them, of which it gives the mean; of arrays, along an axis.
"""

from __future__ import annotations

import math
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, overload

from micrograd import functional
from micrograd._support.axes import array_with_axes, checked_axes, reduced
from micrograd._support.checks import (
    Operand,
    check_numbers,
    is_unknown,
    real_number,
    required_number,
    required_sequence,
)
from micrograd.contexts.calls import observed
from micrograd.engine import primitives
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Axis: TypeAlias = int | tuple[int, ...] | None

One = TypeVar("One", Value, float, "Value | float")  # a loss of Values is a Value, one of floats a float

Loss = TypeVar("Loss", bound="Callable[..., Any]")

__all__ = ["binary_cross_entropy", "cross_entropy", "hinge", "mean_squared_error"]


def __dir__() -> list[str]:
    return __all__


def _of_many_rows(loss: Loss) -> Loss:
    """A loss of arrays that a tracer may not go through row by row: then these say what it makes of them."""

    @wraps(loss)
    def of_many_rows(*arguments: Any, **settings: Any) -> Any:
        sides = arguments[:2]
        for side in sides:
            if hasattr(side, "of_rows"):
                return side.of_rows(loss.__name__, sides, arguments[2:], settings)
        for side in sides:
            if hasattr(side, "beside"):
                return loss(*map(side.beside, sides), *arguments[2:], **settings)
        return loss(*arguments, **settings)

    return of_many_rows  # type: ignore[return-value]  # it has the same arguments


@overload
def mean_squared_error(predictions: One, targets: Any, axis: None = None) -> One: ...


@overload
def mean_squared_error(
    predictions: Sequence[One] | Sequence[Sequence[One]], targets: Any, axis: None = None
) -> One: ...


@overload
def mean_squared_error(predictions: Any, targets: Any, axis: Axis = None) -> Any: ...


@_of_many_rows
def mean_squared_error(predictions: Any, targets: Any, axis: Axis = None) -> Any:
    """The mean of (prediction - target) ** 2.

    Args:
        predictions: a number or Value, or a sequence of them, nested as deep as the targets are.
        targets: the same shape.
        axis: along which to take the mean, as in np.mean: an int or a tuple of ints, for arrays of one shape; by
            default over everything.

    Returns:
        One number or Value; with an axis, an array of the remaining axes, if there are any.

    Raises:
        ValueError: if the lengths differ, or there are no predictions.
        TypeError: if one of them is neither a number nor a Value.

    Example:
        >>> mean_squared_error([1.0, 2.0], [1.0, 4.0])
        2.0
    """
    if axis is not None:
        return _along(axis, mean_squared_error, predictions, targets)

    def squared_error(prediction: Any, target: Any) -> Any:
        error = prediction - target
        return error * error

    pairs = _pairs(predictions, targets)
    check_numbers([target for _, target in pairs], "a target")
    return _mean("mean_squared_error", squared_error, pairs)


@overload
def hinge(scores: One, targets: Any, axis: None = None) -> One: ...


@overload
def hinge(scores: Sequence[One] | Sequence[Sequence[One]], targets: Any, axis: None = None) -> One: ...


@overload
def hinge(scores: Any, targets: Any, axis: Axis = None) -> Any: ...


@_of_many_rows
def hinge(scores: Any, targets: Any, axis: Axis = None) -> Any:
    """The max-margin loss: the mean of relu(1 - target * score).

    Args:
        scores: a number or Value, or a sequence of them; its sign is the prediction.
        targets: -1 or 1 for each.
        axis: along which to take the mean, as in np.mean: an int or a tuple of ints, for arrays of one shape; by
            default over everything.

    Returns:
        One number or Value; with an axis, an array of the remaining axes, if there are any.

    Raises:
        ValueError: if a target is neither -1 nor 1, or the lengths differ.
        TypeError: if a score is neither a number nor a Value.

    Example:
        >>> hinge([2.0, 0.5], [1, -1])
        0.75
    """
    if axis is not None:
        return _along(axis, hinge, scores, targets)

    def margin(score: Any, target: Any) -> Any:
        if is_unknown(target):
            target = primitives.where(primitives.equal(target, 1.0) + primitives.equal(target, -1.0), target, math.nan)
        elif real_number(target) not in (-1.0, 1.0):
            raise ValueError(f"a target of the hinge loss must be the plain number -1 or 1, not {target!r}")
        return primitives.relu(1 - target * score)

    return _mean("hinge", margin, _pairs(scores, targets))


@overload
def binary_cross_entropy(
    logits: One, targets: Any, axis: None = None, weights: Sequence[float] | None = None
) -> One: ...


@overload
def binary_cross_entropy(
    logits: Sequence[One] | Sequence[Sequence[One]],
    targets: Any,
    axis: None = None,
    weights: Sequence[float] | None = None,
) -> One: ...


@overload
def binary_cross_entropy(
    logits: Any, targets: Any, axis: Axis = None, weights: Sequence[float] | None = None
) -> Any: ...


@_of_many_rows
def binary_cross_entropy(logits: Any, targets: Any, axis: Axis = None, weights: Sequence[float] | None = None) -> Any:
    """The mean of -log(the probability of the target), where the probability of 1 is sigmoid(logit).

    Exact for logits of any size: log(sigmoid(z)) is -softplus(-z).

    Args:
        logits: a number or Value, or a sequence of them, before the sigmoid.
        targets: 0 or 1 for each, or a probability in between.
        axis: along which to take the mean, as in np.mean: an int or a tuple of ints, for arrays of one shape; by
            default over everything.
        weights: factors of the losses for 0 and for 1, applied before the mean, for a case that is rare.

    Returns:
        One number or Value; with an axis, an array of the remaining axes, if there are any.

    Raises:
        ValueError: if a target is outside [0, 1], the lengths differ, or weights are not two numbers of at least 0.
        TypeError: if a logit is neither a number nor a Value.

    Example:
        >>> binary_cross_entropy(-1e4, 1)
        10000.0
    """
    if axis is not None:
        return _along(axis, partial(binary_cross_entropy, weights=weights), logits, targets)
    of_0, of_1 = _sides(weights)

    def entropy(logit: Any, target: Any) -> Any:
        if is_unknown(target):
            target = primitives.where((target < 0) + (target > 1), math.nan, target)
            return target * of_1(logit) + (1 - target) * of_0(logit)
        if (probability := real_number(target)) is None or not 0 <= probability <= 1:
            raise ValueError(f"a target of the binary cross-entropy must be a plain number from 0 to 1, not {target!r}")
        if probability == 1:
            return of_1(logit)
        if probability == 0:
            return of_0(logit)
        return probability * of_1(logit) + (1 - probability) * of_0(logit)

    return _mean("binary_cross_entropy", entropy, _pairs(logits, targets))


def _sides(weights: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The losses of a logit where the target is 0, and where it is 1."""
    if weights is None:
        return primitives.softplus, lambda logit: primitives.softplus(-logit)
    if len(numbers := _checked_weights(weights)) != 2:
        raise ValueError(f"weights must be two numbers, for 0 and for 1, not {len(numbers)}")
    of_0, of_1 = numbers
    return lambda logit: of_0 * primitives.softplus(logit), lambda logit: of_1 * primitives.softplus(-logit)


@overload
def cross_entropy(
    logits: Sequence[One] | Sequence[Sequence[One]],
    targets: Any,
    axis: int = -1,
    weights: Sequence[float] | None = None,
) -> One: ...


@overload
def cross_entropy(logits: Any, targets: Any, axis: int = -1, weights: Sequence[float] | None = None) -> Any: ...


@_of_many_rows
def cross_entropy(logits: Any, targets: Any, axis: int = -1, weights: Sequence[float] | None = None) -> Any:
    """The mean of -log(softmax(logits)[target]).

    Exact for logits of any size: it is softplus(logsumexp(the other logits) - logits[target]), where
    nothing overflows and a confident prediction keeps its digits.

    Args:
        logits: a number or Value for each class, before the softmax; or a sequence of such sequences, or an array
            of any shape.
        targets: the index of the right class; or a sequence of them, nested like the logits without their axis.
        axis: of the classes. Along the last one, rows may differ in length.
        weights: a factor for each class, applied to the losses of its examples before the mean, for classes that
            are rare.

    Raises:
        ValueError: if a target is not the index of a class, the lengths differ, or there is no such axis; if weights
            are negative, or not one per class.
        TypeError: if a target is not an int, or a logit is neither a number nor a Value.

    Example:
        >>> round(cross_entropy([0.0, 0.0], 1), 12)
        0.69314718056
        >>> cross_entropy([[1e4, 0.0], [0.0, 1e4]], [0, 0])
        5000.0
        >>> cross_entropy([[1e4, 0.0], [0.0, 2e4]], [0, 0], axis=0)
        10000.0
        >>> cross_entropy([1e4, 0.0], 1, weights=[1.0, 3.0])
        30000.0
    """
    if isinstance(axis, tuple):
        raise TypeError(f"the axis of the classes must be an int, not {axis!r:.80}")
    if type(axis) is not int or axis != -1:
        array = array_with_axes(logits, "logits must be an array, or nested lists")
        (position,) = checked_axes(axis, array.ndim)
        logits = array.transpose([*(other for other in range(array.ndim) if other != position), position]).tolist()
    if weights is not None:
        weights = _checked_weights(weights)
    if not _is_nested(targets):
        return _weighted(logits, targets, weights)
    return functional.mean(_weighted(row, target, weights) for row, target in _rows(logits, targets))


def _checked_weights(weights: Any) -> list[float]:
    numbers = [required_number(weight, "a weight") for weight in required_sequence(weights, "weights must be a list")]
    for number in numbers:
        if not 0 <= number < math.inf:
            raise ValueError(f"a weight must be finite and not negative, not {number}")
    return numbers


def _weighted(logits: Any, target: Any, weights: list[float] | None) -> Any:
    """The cross-entropy of a row, multiplied by the weight of its class."""
    entropy = _cross_entropy(logits, target)
    if weights is None:
        return entropy
    if len(weights) != len(logits):
        raise ValueError(f"weights must have a number for each of {len(logits)} classes, not {len(weights)} numbers")
    return entropy * functional.take(weights, target)


def _rows(logits: Any, targets: Any) -> list[tuple[Any, Any]]:
    """Each row of logits with its target, out of sequences nested alike."""
    if not _is_nested(targets):
        return [(logits, targets)]
    rows = required_sequence(logits, "logits must be a row of numbers or Values for each target")
    if len(rows) != len(targets) or not len(targets):
        raise ValueError(f"cross_entropy got {len(rows)} rows of logits for {len(targets)} targets")
    return [pair for row, target in zip(rows, targets, strict=True) for pair in _rows(row, target)]


def _is_nested(side: Any) -> bool:
    """Whether it is a sequence, and neither a text nor an array without axes."""
    return hasattr(type(side), "__len__") and not isinstance(side, str) and getattr(side, "ndim", 1) > 0


def _cross_entropy_of_row(logits: Sequence[Any], target: Any) -> Any:
    if getattr(logits, "ndim", 1) > 1:
        raise ValueError(f"cross_entropy got an array of shape {logits.shape} for one target: one row goes with it")  # type: ignore[attr-defined]  # it is an array
    if is_unknown(target):  # while a function is traced: minus infinity takes the logit of the target out
        others = [
            primitives.where(primitives.equal(target, index), -math.inf, logit) for index, logit in enumerate(logits)
        ]
        known = primitives.where(target < 0, math.nan, target)  # NaN is no index: the eager run says what is wrong
        return primitives.softplus(functional.logsumexp(others) - functional.take(logits, known))
    is_bool = isinstance(target, bool) or getattr(target, "dtype", None) == "bool"  # which older NumPy gives an index
    if is_bool or isinstance(target, Value) or not hasattr(target, "__index__"):
        raise TypeError(f"a target of the cross-entropy must be an int, the index of a class, not {target!r:.80}")
    if not hasattr(type(logits), "__len__") or isinstance(logits, str):
        raise TypeError(f"logits must be a sequence of numbers or Values, not {type(logits).__name__}: {logits!r:.80}")
    check_numbers(list(logits), "a logit")
    if not 0 <= target < len(logits):
        raise ValueError(f"target {target} is not the index of one of {len(logits)} classes")
    others = [logit for index, logit in enumerate(logits) if index != target]
    if not others:
        return logits[target] * 0.0  # a single class has probability 1
    return primitives.softplus(functional.logsumexp(others) - logits[target])


_cross_entropy = observed(_cross_entropy_of_row, "cross_entropy")  # each call is a group of a page


def _along(axis: Any, loss: Callable[[Any, Any], Any], predictions: Any, targets: Any) -> Any:
    """The means of a loss along an axis of predictions and targets."""
    what = "predictions and targets must be arrays of one shape, or nested lists"
    arrays = [array_with_axes(side, what) for side in (predictions, targets)]
    if arrays[0].shape != arrays[1].shape:
        raise ValueError(f"{what}, not of the shapes {arrays[0].shape} and {arrays[1].shape}")
    return reduced(loss, arrays, axis, getattr(loss, "func", loss).__name__)


def _mean(name: str, loss: Callable[[Any, Any], Any], pairs: list[tuple[Any, Any]]) -> Any:
    """The mean of a loss over predictions, each with its target."""
    predictions, targets = map(list, zip(*pairs, strict=True))
    check_numbers(predictions, "a prediction")
    return _OBSERVED[name](loss, predictions, targets)


def _mean_of(loss: Callable[[Any, Any], Any], predictions: list[Any], targets: list[Any]) -> Any:
    terms = list(map(loss, predictions, targets))
    return functional.mean(terms) if len(terms) > 1 else terms[0] / 1  # no nested group for one element


# Each call is a group of a page, by the name of the loss.
_OBSERVED = {name: observed(_mean_of, name) for name in ("mean_squared_error", "hinge", "binary_cross_entropy")}


def _pairs(predictions: Any, targets: Any) -> list[tuple[Any, Any]]:
    """Each prediction with its target, out of sequences nested alike."""
    nested = [_is_nested(side) for side in (predictions, targets)]
    if not any(nested):
        return [(predictions, targets)]
    if not all(nested) or len(predictions) != len(targets) or not len(targets):
        shown = [_described(side, deep) for side, deep in zip((predictions, targets), nested, strict=True)]
        raise ValueError(f"predictions and targets must be of one shape, and not empty: got {shown[0]} and {shown[1]}")
    return [pair for row in zip(predictions, targets, strict=True) for pair in _pairs(*row)]


def _described(side: Any, deep: bool) -> str:
    if deep:
        return f"{len(side)} values"
    is_number = isinstance(side, Operand) or real_number(side) is not None
    return "one value" if is_number else f"{type(side).__name__}: {side!r:.80}"
