"""Gradients of functions of whole arrays, as functions of whole arrays.

The rule of such a function would write operations for each element. What the program calls in its place is the rule on
arrays of floats, one call more: of the gradients of the results, the results, and the operands.

    x = solve(a, b)        gradient of solve (gradients of x, x, a, b)  =  gradients of a and b

It is a function of arrays itself, so it is differentiated as others are: what the rule gives is written then, in
operations of elements and further calls.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.engine.array_calls import ArrayFunction
from micrograd.engine.higher_order import adjoints
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence


@cache
def gradient_of(function: ArrayFunction, needed: tuple[bool, ...]) -> ArrayFunction:
    """The function that gives the gradients of some operands of another one.

    Args:
        function: the other one.
        needed: which of its operands these are.

    Returns:
        A function of the gradients of all results, the results and the operands.
    """

    def split(given: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        results = (len(given) - len(needed)) // 2
        return given[:results], given[results : 2 * results], given[2 * results :]

    def forward(*given: Any) -> tuple[Any, ...]:
        found = function.rule(*split(given), needed)
        return tuple(each for each, wanted in zip(found, needed, strict=True) if wanted)

    def shapes(*given: Any) -> list[tuple[int, ...]]:
        return [shape for shape, wanted in zip(split(given)[2], needed, strict=True) if wanted]

    def rule(gradients: Any, results: Any, operands: Any, moving: Sequence[bool]) -> list[Any]:
        arrays = [_leaves(each) if moves else each for each, moves in zip(operands, moving, strict=True)]
        found = [
            contribution
            for contribution, wanted in zip(function.rule(*split(arrays), needed), needed, strict=True)
            if wanted
        ]
        total = sum((g * contribution).sum() for g, contribution in zip(gradients, found, strict=True))
        leaves = [leaf for array, moves in zip(arrays, moving, strict=True) if moves for leaf in array.flat]
        tracer = tracer_on_top()
        slopes = adjoints(total, 1.0, tracer is not None, leaves) if isinstance(total, Value) else {}
        return [_of(slopes, array) if moves else None for array, moves in zip(arrays, moving, strict=True)]

    which = "".join(map(str, map(int, needed)))
    return ArrayFunction(f"gradient {which} of {function.name}", forward, rule, shapes, is_gradient=True)


def _leaves(array: Any) -> Any:
    """What to differentiate by in the place of floats, or of symbols."""
    tracer, elements = tracer_on_top(), array.ravel().tolist()
    made: list[Any] = list(map(Value, elements)) if tracer is None else tracer.copies(elements, object()) or []
    leaves = np.fromiter(made, object, array.size).reshape(array.shape)
    return leaves if tracer is None else tracer.array(leaves)


def _of(slopes: Any, array: Any) -> Any:
    found = [slopes.get(leaf, 0.0) for leaf in array.flat]
    if tracer_on_top() is None:
        return np.array(found).reshape(array.shape)
    return np.fromiter(found, object, array.size).reshape(array.shape)
