"""The primitives by their names, as functions of one kind of operand: what composites are written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.engine.primitive import PRIMITIVES

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


class Operations:
    """The primitives by their names, as functions of one kind of operand.

    Args:
        function: gives the function of a primitive on that kind of operand.
        somewhere: whether a condition may hold for an operand, or for one of its elements. Where it says no, a
            formula may leave out what it computes for that case alone.

    Example:
        >>> on = Operations(lambda primitive: primitive.forward)
        >>> on.maximum(on.exp(0.0), 0.5)
        1.0
    """

    def __init__(
        self,
        function: Callable[[Primitive], Callable[..., Any]],
        somewhere: Callable[[Any], bool] = lambda condition: True,
    ) -> None:
        self._function, self.somewhere = function, somewhere

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PRIMITIVES:
            raise AttributeError(f"no primitive named {name!r} is registered")
        return self._function(PRIMITIVES[name])
