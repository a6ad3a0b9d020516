"""Arrays of numbers and Values, row by row along an axis, as NumPy's reductions go.

NumPy is loaded when an array is needed.
"""

from __future__ import annotations

import operator
from math import prod
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import is_array, required_sequence
from micrograd._support.containers import array_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from numpy import ndarray

    Array = ndarray[Any, Any]


def required_numpy() -> ModuleType:
    """NumPy, or an error that says what to install."""
    try:
        import numpy
    except ImportError:
        raise ImportError("arrays of Values need NumPy: pip install numpy") from None
    return numpy


def array_of_objects(nested: Any) -> Array:
    """Nested lists, or an array, as an array of objects; numbers in it are Python's.

    Raises:
        ValueError: if the nested lists are not of one shape.
    """
    elements = required_numpy().empty(_shape(nested), dtype=object)
    elements[...] = nested
    return elements


def _shape(nested: Any) -> tuple[int, ...]:
    """The shape of nested lists, which must be the same side by side."""
    if not isinstance(nested, (list, tuple)):
        return tuple(getattr(nested, "shape", ()))
    shapes = sorted({_shape(item) for item in nested})
    if len(shapes) > 1:
        raise ValueError(f"the lists are not of one shape: {shapes[0]} and {shapes[1]} stand side by side")
    return (len(nested), *(shapes[0] if shapes else ()))


def array_with_axes(nested: Any, what: str) -> Array:
    """What a function that takes an axis is given, as an array of objects.

    Raises:
        TypeError: if it is no list, array or other iterable, or an array with a mask; what says what it must be.
        ValueError: if nested lists are not of one shape.
    """
    if hasattr(nested, "mask"):
        raise TypeError(f"{what}, not {type(nested).__name__} with a mask: fill it first")
    return array_of_objects(nested if is_array(nested) else required_sequence(nested, what))


def checked_axes(axis: Any, dimensions: int) -> list[int]:
    """The axes that an int or a tuple of ints stands for, as numbers from 0.

    Raises:
        TypeError: if it is something else.
        ValueError: if there is no such axis, one is there twice, or the tuple is empty.
    """
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = []
    for number in given:
        if isinstance(number, bool) or not hasattr(number, "__index__"):
            raise TypeError(f"axis must be an int or a tuple of ints, not {axis!r:.80}")
        if not -dimensions <= (position := operator.index(number)) < dimensions:
            raise ValueError(f"axis {position} is out of range for an array of {dimensions} dimensions")
        axes.append(position % dimensions)
    if len(set(axes)) < len(axes) or not axes:
        raise ValueError(f"axis must be one axis, or several that differ, not {axis!r}")
    return axes


def reduced(
    function: Callable[..., Any], arrays: Sequence[Array], axis: Any, name: str, *, keepdims: bool = False
) -> Any:
    """What a function makes of the rows of arrays of one shape, along an axis.

    Args:
        function: takes one row of each array, as a list.
        arrays: see array_with_axes.
        axis: an int, or a tuple of ints, whose elements make one row together.
        name: what to call the function in an error.
        keepdims: whether the axes stay, with one element each.

    Returns:
        An array of the axes that are left; where there are none, its only element.
    """
    shape = arrays[0].shape
    axes = checked_axes(axis, len(shape))
    others, found = _rows(function, arrays, axes, name)
    if keepdims:
        return array_of(tuple(1 if position in axes else size for position, size in enumerate(shape)))(found)
    return array_of(tuple(shape[position] for position in others))(found) if others else found[0]


def mapped(function: Callable[[list[Any]], list[Any]], array: Array, axis: Any, name: str) -> Array:
    """An array of the same shape, whose rows along an axis are what a function makes of those of the array."""
    axes = checked_axes(axis, array.ndim)
    others, found = _rows(function, [array], axes, name)
    order = [*others, *axes]
    result: Array = array_of(tuple(array.shape[position] for position in order))(
        [item for row in found for item in row]
    )
    return result.transpose([order.index(position) for position in range(array.ndim)])


def _rows(
    function: Callable[..., Any], arrays: Sequence[Array], axes: list[int], name: str
) -> tuple[list[int], list[Any]]:
    """The axes that are left, and what the function makes of each row."""
    shape = arrays[0].shape
    others = [position for position in range(len(shape)) if position not in axes]
    if not (size := prod(shape[position] for position in axes)):
        raise ValueError(f"{name} of nothing: an array of shape {shape} has no element along axis {axes[0]}")
    count = prod(shape[position] for position in others)
    tables = [array.transpose([*others, *axes]).reshape(count, size).tolist() for array in arrays]
    return others, [function(*rows) for rows in zip(*tables, strict=True)]
