"""The base operations that NumPy and JAX have in common: both have each of these functions, under one name.

    functions_of(numpy)[built_in("atan")]      numpy.arctan
    functions_of(jax.numpy)[built_in("atan")]  jax.numpy.arctan

A backend on arrays adds what it has to compute in a way of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.compiler.backends.shared.written import WITH_OPERATORS, built_in
from micrograd.engine import primitives

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive

_SAME_NAME = "exp expm1 log sqrt sin cos tan tanh log2 log10 hypot floor abs"
_ARC = "asin acos atan asinh acosh atan2"  # which are arcsin and so on there


def functions_of(library: Any) -> dict[Primitive, Callable[..., Any]]:
    """The functions of a library of arrays, by the primitives that they compute.

    Args:
        library: numpy or jax.numpy.
    """
    functions = WITH_OPERATORS | {built_in(name): getattr(library, name) for name in _SAME_NAME.split()}
    functions |= {built_in(name): getattr(library, f"arc{name[1:]}") for name in _ARC.split()}
    return functions | {
        primitives.where: lambda condition, x, y: library.where(condition != 0, x, y),
        primitives.relu: lambda x: library.where(x <= 0, 0.0, x),
        primitives.maximum: lambda x, y: library.where((x >= y) | library.isnan(x), x, y),
        primitives.minimum: lambda x, y: library.where((x <= y) | library.isnan(x), x, y),
    }
