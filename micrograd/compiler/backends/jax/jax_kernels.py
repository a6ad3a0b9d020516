"""Kernels as functions of arrays.

A function of a kernel reads its operands, and gives its results side by side, row after row:

    Reduction, 3 rows, 1 column, 9 terms    einsum("rt,t->r", matrix, vector)
    Reduction of up to eight terms          a * b + c * d, in this order, each product and each sum rounded
    Map                                     the primitive's forward function
    Take                                    take_along_axis, and NaN where the index is out of range

Who makes the functions says how an operand is read: outside of loops and inside it is something else.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from operator import add, mul
from typing import TYPE_CHECKING, Any, TypeAlias

import jax.numpy as jnp
from jax import lax

from micrograd.compiler.backends.jax.jax_functions import added_to_zero, rounded
from micrograd.compiler.ir.program import IN_ORDER, Map, Reduction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from micrograd.compiler.backends.jax.jax_functions import Functions
    from micrograd.compiler.backends.jax.jax_reads import Reader
    from micrograd.compiler.ir.program import Access, Kernel, Segment, Take

ReaderOf: TypeAlias = "Callable[[Access, int], Reader]"  # of an operand with so many terms


def function_of(kernel: Kernel, reader: ReaderOf, functions: Functions) -> Reader:
    """The function of a kernel.

    Args:
        kernel: what it computes.
        reader: of an access and how many terms there are, the function that reads an operand.
        functions: what it is made of: those that JAX can differentiate, or plain ones.
    """
    if isinstance(kernel, Reduction):
        make = _largest if kernel.largest else _sum
        compute = make(kernel, reader, functions)
    elif isinstance(kernel, Map):
        compute = _map(kernel, reader, functions)
    else:
        compute = _take(kernel, reader)
    shape = kernel.rows, kernel.columns
    return lambda arrays: lax.reshape(_broadcast(compute(arrays), shape), (math.prod(shape),))


def _broadcast(array: Any, shape: tuple[int, ...]) -> Any:
    return array if array.shape == shape else jnp.broadcast_to(array, shape)


def _scaled(coefficient: float, numbers: Any) -> Any:
    if coefficient == 0:  # a check, whose gradient JAX would compute as many zeros
        numbers = lax.stop_gradient(numbers)
    return numbers if coefficient == 1 else -numbers if coefficient == -1 else coefficient * numbers


def _is_exact(part: Segment) -> bool:
    """Whether its products are exact: one factor, times a power of 2."""
    return part.second is None and abs(math.frexp(part.coefficient)[0]) == 0.5


def _sum(kernel: Reduction, reader: ReaderOf, functions: Functions) -> Reader:
    """The terms one after the other, or in any order."""
    readers = [reader(factor, part.terms) for part in kernel.segments for factor in part.factors]
    total: Callable[..., Any] = partial(_in_any_order, kernel)
    if kernel.is_in_order:
        total = functions.with_slope_of(partial(_in_order, kernel), total)
    return lambda arrays: total(*(read(arrays) for read in readers))


def _parts(kernel: Reduction, factors: Iterable[Any]) -> list[tuple[Segment, list[Any]]]:
    """The segments of a sum, each with its factors."""
    of_all = iter(factors)
    return [(part, [next(of_all) for _ in part.factors]) for part in kernel.segments]


def _in_order(kernel: Reduction, *factors: Any) -> Any:
    """The terms one after the other, each product and each sum rounded."""
    terms = []
    for part, found in _parts(kernel, factors):
        products = _scaled(part.coefficient, reduce(mul, found))
        products = products if _is_exact(part) else rounded(products)
        if products.shape[2] == 1:
            terms += [lax.squeeze(products, (2,))] * part.terms
        else:
            terms += [lax.index_in_dim(products, term, 2, keepdims=False) for term in range(part.terms)]
    first, *others = terms
    return reduce(add, others, added_to_zero(first) if kernel.from_zero else first)


def _in_any_order(kernel: Reduction, *factors: Any) -> Any:
    """The sums of the segments."""
    return reduce(add, (_product(part, found) for part, found in _parts(kernel, factors)))


def _product(part: Segment, factors: list[Any]) -> Any:
    """The sum over the terms of a segment: of few, of their products; of many, an einsum over the axes that change."""
    extents = [max(factor.shape[axis] for factor in factors) for axis in range(3)]
    if extents[2] == 1 or part.terms <= IN_ORDER:
        products = reduce(mul, factors)
        if extents[2] > 1:
            return _scaled(part.coefficient, lax.reduce_sum(products, (2,)))
        total = _scaled(part.coefficient * part.terms, lax.squeeze(products, (2,)))
        return total if part.terms == 1 else rounded(total)
    axes = ["".join(name for name, count in zip("rct", factor.shape, strict=True) if count > 1) for factor in factors]
    kept = "".join(name for name in "rc" if any(name in names for names in axes))
    squeezed = [factor.reshape([count for count in factor.shape if count > 1]) for factor in factors]
    total = jnp.einsum(f"{','.join(axes)}->{kept}", *squeezed, precision=lax.Precision.HIGHEST)
    return _scaled(part.coefficient, total.reshape(extents[:2]))


def _largest(kernel: Reduction, reader: ReaderOf, _: Functions) -> Reader:
    """The largest of all terms; no gradient flows through it."""
    parts = [(part, reader(part.first, part.terms)) for part in kernel.segments]

    def compute(arrays: Any) -> Any:
        first, *others = (_scaled(part.coefficient, read(arrays)).max(axis=2) for part, read in parts)
        for part in others:
            first = jnp.maximum(first, part)
        return lax.stop_gradient(first)

    return compute


def _map(kernel: Map, reader: ReaderOf, functions: Functions) -> Reader:
    operands = [reader(access, 1) for access in kernel.operands]
    function = functions.of(kernel.primitive)
    return lambda arrays: function(*(lax.squeeze(operand(arrays), (2,)) for operand in operands))


def _take(kernel: Take, reader: ReaderOf) -> Reader:
    read_index, read_elements = reader(kernel.index, 1), reader(kernel.elements, kernel.terms)

    def compute(arrays: Any) -> Any:
        index, elements = lax.stop_gradient(read_index(arrays)), read_elements(arrays)
        valid = (index >= -kernel.terms) & (index < kernel.terms) & (index == jnp.rint(index))
        positions = jnp.where(valid, index, 0).astype(int) % kernel.terms  # where it is not valid, any position will do
        elements = jnp.broadcast_to(elements, (*elements.shape[:2], kernel.terms))
        return jnp.where(valid.squeeze(2), _taken(elements, positions), jnp.nan)

    return compute


def _taken(elements: Any, positions: Any) -> Any:
    """Elements by their positions along the last axis."""
    (rows, columns, _), (positions_down, positions_across, _) = elements.shape, positions.shape
    if min(rows, positions_down) > 1 or min(columns, positions_across) > 1:  # each position has elements of its own
        shape = max(rows, positions_down), max(columns, positions_across)
        elements, positions = (jnp.broadcast_to(array, (*shape, array.shape[2])) for array in (elements, positions))
        return jnp.take_along_axis(elements, positions, axis=2).squeeze(2)
    found = elements.at[:, :, positions.reshape(positions_down, positions_across)].get(mode="promise_in_bounds")
    return found.transpose(0, 2, 1, 3).reshape(rows * positions_down, columns * positions_across)
