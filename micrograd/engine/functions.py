"""The public primitives as functions, each of which is a method of Value too: ``v.tanh`` is ``tanh``.

All of them are made here from the table, so type checkers read functions.pyi instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine import further_primitives  # noqa: F401  # it completes the table
from micrograd.engine.node import Node
from micrograd.engine.primitive import PUBLIC

if TYPE_CHECKING:
    from collections.abc import Callable

METHODS_FOR_NUMPY = {  # by the names that NumPy has for them: it asks the elements of an array of Values
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2",
}

__all__ = sorted(PUBLIC)


class FunctionMethods(Node):
    """A Node with these functions as methods."""

    __slots__ = ()


def publish(make: Callable[..., Any]) -> None:
    """Make the functions and methods. applying.py calls this once, as it can apply a primitive to Values."""
    for name in __all__:
        globals()[name] = make(name, *PUBLIC[name])
        setattr(FunctionMethods, name, globals()[name])
    for name, ours in METHODS_FOR_NUMPY.items():
        setattr(FunctionMethods, name, globals()[ours])
