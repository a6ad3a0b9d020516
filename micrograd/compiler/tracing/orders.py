"""Orders: sorting, finding and picking elements of arrays by numbers that are known only when the program runs.

Which element is the largest is no operation on single numbers. So a program calls NumPy, between its kernels:

    order = np.argsort(x)   called; integers, to which no gradient flows
    np.sort(x)              x[order]
    x[order]                called "gather"; its gradient is "scatter", and that of "scatter" is "gather"
    x[np.argmax(x)]         an element by one index is no call: the program takes it itself, as mg.take does

Of equal numbers NumPy may have either first, and others in an array of Values, which it compares one by one. What is
called does so, too. Where a NaN would decide, the function runs eagerly. The public functions have NumPy's arguments.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from micrograd._support.checks import is_value
from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.tracing.promotion import INT64, kind_of
from micrograd.compiler.tracing.symbols import IntSymbol, Picked
from micrograd.engine.array_calls import ArrayFunction
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Array = np.ndarray[Any, Any]

_MOST_TAKEN = 64  # numbers that one index takes from an array; more of them are gathered by one call
_STABLE = ("stable", "mergesort")


class Taken(Picked):
    """A symbol for one of several Values; which one is not known."""

    __slots__ = ()

    def __hash__(self) -> int:
        refuse("a Value of a table as a key, or in a set,", "Use its position as an index of another list.")


# What programs call, of stacks of matrices with one column


def _without_nan(a: Array) -> Array:
    """The array.

    Raises:
        ValueError: if it has a NaN; then the function runs eagerly.
    """
    if np.isnan(a).any():
        raise ValueError("a NaN has no place in an order")
    return a


def _ordered(kind: Any, of_values: bool, a: Array) -> Array:
    order = np.argsort(_without_nan(a) if of_values else a, axis=-2, kind=kind)
    if of_values:
        found = np.take_along_axis(a, order, -2)
        if (found[..., 1:, :] == found[..., :-1, :]).any():
            return np.argsort(a.astype(object), axis=-2, kind=kind)
    return order


def _extreme(find: Callable[..., Array], of_values: bool, a: Array) -> Array:
    return find(_without_nan(a) if of_values else a, axis=-2, keepdims=True)


class _Finder(NamedTuple):
    """What finds positions: of plain numbers, and of Values."""

    of_numbers: ArrayFunction
    of_values: ArrayFunction


def _finder(name: str, find: Callable[..., Array], shapes: Callable[..., Sequence[tuple[int, ...]]]) -> _Finder:
    def made(of_values: bool) -> ArrayFunction:
        def forward(a: Array) -> tuple[Array]:
            return (find(of_values, a).astype(float),)

        def rule(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
            return [np.zeros(operands[0].shape)]

        return ArrayFunction(f"{name} of Values" if of_values else name, forward, rule, shapes)

    return _Finder(made(of_values=False), made(of_values=True))


_ARGSORT = _finder("argsort", partial(_ordered, None), lambda a: [a])
_STABLE_ARGSORT = _finder("stable argsort", partial(_ordered, "stable"), lambda a: [a])
_ARGMAX = _finder("argmax", partial(_extreme, np.argmax), lambda a: [(*a[:-2], 1, a[-1])])
_ARGMIN = _finder("argmin", partial(_extreme, np.argmin), lambda a: [(*a[:-2], 1, a[-1])])


def _gather(x: Array, index: Array) -> tuple[Array]:
    count = x.shape[-2]
    if ((index < -count) | (index >= count)).any():
        raise ValueError("an index is out of range")  # eagerly, it is said which
    return (np.take_along_axis(x, index.astype(int), axis=-2),)


def _scatter(g: Array, index: Array, like: Array) -> tuple[Array]:
    stack, count, columns = g.shape[:-2], like.shape[-2], g.shape[-1]
    total = np.zeros((*stack, count, columns)).reshape(-1, count, columns)
    rows = index.astype(int).reshape(-1, index.shape[-2])
    np.add.at(total, (np.arange(len(total))[:, None], rows), g.reshape(-1, *g.shape[-2:]))
    return (total.reshape(*stack, count, columns),)


def _rule_of_gather(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (x, index) = gradients, operands
    like = np.zeros((*x.shape[:-1], 0))
    return [SCATTER(g, index, like)[0] if needed[0] else None, np.zeros(index.shape)]


def _rule_of_scatter(gradients: Any, results: Any, operands: Any, needed: Any) -> list[Any]:
    (g,), (_, index, like) = gradients, operands
    return [GATHER(g, index)[0] if needed[0] else None, np.zeros(index.shape), np.zeros(like.shape)]


# The rows of matrices at some positions, which are a column; and what is given for these rows, added up in their places
GATHER = ArrayFunction("gather", _gather, _rule_of_gather, lambda x, index: [(*index[:-1], x[-1])])
SCATTER = ArrayFunction("scatter", _scatter, _rule_of_scatter, lambda g, index, like: [(*g[:-2], like[-2], g[-1])])


# Finding


def _found(finder: _Finder, rows: Array, refuses_nan: bool = False) -> Any:
    """The integers that are found in the last axis of an array, in an array of as many axes."""
    tape: Any = tracer_on_top()
    function = finder.of_values if refuses_nan or any(map(is_value, rows.flat)) else finder.of_numbers
    found = tape.called(function, [rows[..., None]], has_gradient=False)
    if found is None:
        refuse(f"{function.name}, in a function that is exported,", "Find it outside, and pass it in.")
    return _as_kind(INT64, found[0][..., 0])


def _as_kind(kind: Any, array: Any) -> Any:
    """Symbols as those of plain numbers of a kind; None stands for Values, each of them one of those that are there."""
    made = np.empty(array.shape, dtype=object)
    made.reshape(-1)[:] = [
        x._tape._symbol(x._position, Taken) if kind is None else x.as_plain(kind) for x in array.flat
    ]
    tape: Any = tracer_on_top()
    return tape.array(made)


def _check_settings(*settings: Any) -> None:
    if any(setting is not None for setting in settings):
        refuse("order=, out=, mode= or a heap sort of unknown numbers", "Leave it out, and use what is returned.")


def _objects(a: Any) -> Array:
    return np.asarray(a).view(np.ndarray)


def _with_axis_last(a: Any, axis: Any) -> tuple[Array, int]:
    """An array whose last axis is the one that is asked for, and where that is; of no axis, that of all elements."""
    a = _objects(a)
    a, axis = (a.ravel(), 0) if axis is None else (a, normalize_axis_index(axis, a.ndim))
    return np.moveaxis(a, axis, -1), axis


def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The order of the elements along an axis; see np.argsort."""
    if not np.ndim(a):
        return np.argsort(0.0, axis, kind)
    _check_settings(order)
    rows, axis = _with_axis_last(a, axis)
    return np.moveaxis(_order(rows, kind, stable), -1, axis)


def _order(rows: Array, kind: Any, stable: Any) -> Any:
    np.argsort(np.zeros(1), kind=kind, stable=stable)  # NumPy says what is wrong
    _check_settings(None if kind != "heapsort" else kind)
    return _found(_STABLE_ARGSORT if stable or kind in _STABLE else _ARGSORT, rows)


def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The elements in their order along an axis; see np.sort."""
    _check_settings(order)
    rows, axis = _with_axis_last(a, axis)
    return np.moveaxis(_along(rows, _order(rows, kind, stable)), -1, axis)


def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """The elements of which so many are smaller than the kth; see np.partition, which sorts an array of Values."""
    np.partition(np.zeros(np.size(a) if axis is None else np.shape(a)[axis]), kth, kind=kind)  # it says what is wrong
    if not all(map(is_value, _objects(a).flat)):
        refuse("the order in which np.partition leaves plain numbers", "Write np.sort.")
    return sort(a, axis, order=order)


def argmax(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The position of the largest element; see np.argmax."""
    return _position(_ARGMAX, a, axis, out, keepdims)


def argmin(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The position of the smallest element; see np.argmin."""
    return _position(_ARGMIN, a, axis, out, keepdims)


def _position(finder: _Finder, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    _check_settings(out)
    if not np.ndim(a):
        return np.argmax(0.0, axis, keepdims=keepdims)
    rows, at = _with_axis_last(a, axis)
    found = _found(finder, rows)
    if keepdims is True:
        return found.reshape((1,) * np.ndim(a)) if axis is None else np.moveaxis(found, -1, at)
    return found[..., 0][()]


def _in_order(rows: Array) -> Any:
    """The elements of each row in their order; where one is NaN, the function runs eagerly."""
    return _along(rows, _found(_ARGSORT, rows, refuses_nan=True))


def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: bool = False) -> Any:
    """The one in the middle, or the mean of both; see np.median."""
    _check_settings(out)
    rows, shape = _with_axes_last(a, axis, keepdims)
    begin, end = (rows.shape[-1] - 1) // 2, rows.shape[-1] // 2
    found = np.mean(_in_order(rows)[..., begin : end + 1], axis=-1)
    return found.reshape(shape) if shape else found


def percentile(a: Any, q: Any, *arguments: Any, **settings: Any) -> Any:
    """The numbers below which so many of a hundred are; see np.percentile."""
    if np.asarray(q).dtype != object:
        np.percentile(np.zeros(1), q)  # NumPy says what is wrong
    return quantile(a, np.true_divide(q, 100), *arguments, **settings)


def quantile(
    a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
    keepdims: bool = False, **others: Any,
) -> Any:  # fmt: skip
    """The numbers below which such shares of all are, between which is interpolated; see np.quantile."""
    _check_settings(out)
    if method != "linear" or others or np.asarray(q).dtype == object:
        refuse(
            "a quantile by another method, with weights, or of an unknown share,", "Give a share that is known only."
        )
    np.quantile(np.zeros(1), q)  # NumPy says what is wrong
    rows, shape = _with_axes_last(a, axis, keepdims)
    q, last = np.asarray(q, dtype=float), rows.shape[-1] - 1
    at = last * q
    before = np.floor(at)
    weight = np.where(at >= last, 1.0, at - before)
    begin = np.where(at >= last, last, before).astype(int)
    end = np.minimum(begin + 1, last)
    ordered = _in_order(rows)
    low, high = ordered[..., begin], ordered[..., end]
    found = np.where(weight >= 0.5, high - (high - low) * (1 - weight), low + (high - low) * weight)
    axes = range(q.ndim)
    return np.moveaxis(found, [len(rows.shape) - 1 + each for each in axes], axes).reshape(q.shape + shape)[()]


def _with_axes_last(a: Any, axis: Any, keepdims: Any) -> tuple[Array, tuple[int, ...]]:
    """An array whose last axis goes through some axes, and the shape of a result for each of the others."""
    a = _objects(a)
    axes = tuple(range(a.ndim)) if axis is None else normalize_axis_tuple(axis, a.ndim)
    others = [length for each, length in enumerate(a.shape) if each not in axes]
    shape = [1 if each in axes else length for each, length in enumerate(a.shape)] if keepdims else others
    return np.moveaxis(a, axes, range(-len(axes), 0)).reshape(*others, -1), tuple(shape)


# Picking


def _along(rows: Array, index: Any) -> Any:
    """The elements at positions along the last axis of an array."""
    return _gathered(rows[..., None], index)[..., 0]


def _gathered(matrices: Array, index: Any) -> Any:
    """The rows of a stack of matrices at some positions of each."""
    tape: Any = tracer_on_top()
    found = tape.called(GATHER, [matrices, index.view(np.ndarray)[..., None]])
    return _taken(matrices, index) if found is None else _as_kind(kind_of(matrices), found[0])


def _taken(matrices: Array, index: Any) -> Any:
    """The same, number by number, as mg.take does it."""
    tape: Any = tracer_on_top()
    made = np.empty((*index.shape, matrices.shape[-1]), dtype=object)
    for at in np.ndindex(index.shape):
        columns = matrices[at[:-1]].T
        made[at] = [tape.take(column.tolist(), index[at]) for column in columns]
    return tape.array(made)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """The elements at positions along an axis, which may not be known; see np.take."""
    if not is_unknown_index(indices := _objects(indices)):
        return None
    _check_settings(out, None if mode == "raise" else mode)
    a = _objects(a)
    a, axis = (a.ravel(), 0) if axis is None else (a, normalize_axis_index(axis, a.ndim))
    return picked(a, (*[slice(None)] * axis, indices))


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """The elements at positions of their own for each row, which may not be known; see np.take_along_axis."""
    if not is_unknown_index(indices := _objects(indices)):
        return None
    rows, at = _with_axis_last(arr, axis)
    if rows.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    index = np.moveaxis(indices, at, -1)
    stack = np.broadcast_shapes(rows.shape[:-1], index.shape[:-1])
    rows, index = (np.broadcast_to(each, (*stack, each.shape[-1])) for each in (rows, index))
    return np.moveaxis(_along(rows, index), -1, at)


def is_unknown_index(index: Any) -> bool:
    """Whether an index, or one of several, is an integer, or integers in an array or a list, that is not known."""
    if isinstance(index, (tuple, list)):
        return any(map(is_unknown_index, index))
    if isinstance(index, np.ndarray):
        return index.dtype == object and any(map(_is_integer, index.flat))
    return _is_integer(index)


def _is_integer(x: Any) -> bool:
    return issubclass(type(x), IntSymbol)


def picked(a: Any, index: Any) -> Any:
    """``a[index]``, where the index is not known; None where that is not to be written down.

    Integers that are not known may be beside slices and integers. An array of them may be beside slices; or beside
    integers and arrays of such that are known, and only these.
    """
    a, parts = _objects(a), list(index) if isinstance(index, tuple) else [index]
    unknown = [number for number, part in enumerate(parts) if is_unknown_index(part)]
    others = [part for number, part in enumerate(parts) if number not in unknown]
    wanted = [x for number in unknown for x in _objects(parts[number]).flat]
    if not all(_is_integer(x) or isinstance(x, (int, np.integer)) for x in wanted):
        return None
    are_slices = all(part is None or part is Ellipsis or isinstance(part, slice) for part in others)
    if are_slices or not any(map(np.ndim, parts)):
        has_arrays = any(np.ndim(parts[number]) for number in unknown)
        has_bools = any(isinstance(part, (bool, np.bool_)) for part in others)
        return None if has_bools or (has_arrays and len(unknown) > 1) else _beside_slices(a, parts, unknown)
    known = [np.asarray(part) for part in others if not isinstance(part, slice)]
    if len(unknown) > 1 or len(known) < len(others) or any(part.dtype.kind not in "iu" for part in known):
        return None
    return _beside_integers(a, known, unknown[0], _objects(parts[unknown[0]]))


def _beside_slices(a: Array, parts: list[Any], unknown: list[int]) -> Any:
    for at in [number for number, part in enumerate(parts) if part is Ellipsis]:  # one at most
        left = a.ndim - sum(part is not None for part in parts) + 1
        parts = [*parts[:at], *[slice(None)] * left, *parts[at + 1 :]]
        unknown = [number + (left - 1) * (number > at) for number in unknown]
    rows = a[tuple([slice(None) if number in unknown else part for number, part in enumerate(parts)])]
    for number in reversed(unknown):
        axis = sum(part is None or isinstance(part, slice) or n in unknown for n, part in enumerate(parts[:number]))
        which, rows = _objects(parts[number]), np.moveaxis(rows.view(np.ndarray), axis, 0)
        found = _rows_at(rows.reshape(len(rows), -1), which.reshape(-1)).reshape(which.shape + rows.shape[1:])
        rows = np.moveaxis(found, range(which.ndim), range(axis, axis + which.ndim))
    return rows[()]


def _rows_at(rows: Array, which: Array) -> Any:
    return (_taken if which.size == 1 and rows.size <= _MOST_TAKEN else _gathered)(rows, which)


def _beside_integers(a: Array, known: list[Array], at: int, which: Array) -> Any:
    shape = np.broadcast_shapes(which.shape, *(part.shape for part in known))
    rows = np.moveaxis(a, at, len(known))[tuple(np.broadcast_to(part, shape) for part in known)]
    stack = rows.reshape(*shape, rows.shape[len(shape)], -1)
    found = _taken(stack, np.broadcast_to(which, shape)[..., None])  # from few each, which a kernel does
    return found[..., 0, :].reshape(shape + rows.shape[len(shape) + 1 :])[()]
