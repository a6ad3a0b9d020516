"""The base operations that NumPy and JAX have in common: both have each of these functions, under one name.

    functions_of(numpy)[further_primitives.atan]        numpy.arctan
    functions_of(jax.numpy)[further_primitives.atan]    jax.numpy.arctan

A backend on arrays adds what it has to compute in a way of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine import further_primitives, primitives

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


def functions_of(library: Any) -> dict[Primitive, Callable[..., Any]]:
    """The functions of a library of arrays, by the primitives that they compute.

    Args:
        library: numpy or jax.numpy.
    """
    return {
        primitives.where: lambda condition, x, y: library.where(condition != 0, x, y),
        primitives.neg: library.negative,
        primitives.add: library.add,
        primitives.sub: library.subtract,
        primitives.exp: library.exp,
        primitives.expm1: library.expm1,
        primitives.log: library.log,
        primitives.sqrt: library.sqrt,
        primitives.sin: library.sin,
        primitives.cos: library.cos,
        further_primitives.tan: library.tan,
        further_primitives.asin: library.arcsin,
        further_primitives.acos: library.arccos,
        further_primitives.atan: library.arctan,
        primitives.tanh: library.tanh,
        further_primitives.log2: library.log2,
        further_primitives.log10: library.log10,
        further_primitives.asinh: library.arcsinh,
        further_primitives.acosh: library.arccosh,
        further_primitives.atan2: library.arctan2,
        further_primitives.hypot: library.hypot,
        further_primitives.floor: library.floor,
        primitives.relu: lambda x: library.where(x <= 0, 0.0, x),
        primitives.abs: library.abs,
        primitives.maximum: lambda x, y: library.where((x >= y) | library.isnan(x), x, y),
        primitives.minimum: lambda x, y: library.where((x <= y) | library.isnan(x), x, y),
    }
