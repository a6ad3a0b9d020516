"""Python calls: primitives for which a backend has no code are called in Python, number by number.

    call = in_python(primitive, raised)
    call(0.5)       # what the primitive's forward gives; NaN where that raises an error of arithmetic

The eager run then says what is wrong. Other exceptions, such as Ctrl-C, cannot unwind the frames of native code or of
XLA: where there is a list, they are kept in it, and whoever runs the program raises them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


class Raised(list[BaseException]):
    """What Python functions have raised while native code or XLA called them."""

    def check(self) -> None:
        """Raise the first, and forget all of them."""
        if self:
            first = self[0]
            self.clear()
            raise first


def in_python(primitive: Primitive, raised: Raised | None = None) -> Callable[..., float]:
    """A primitive's forward function of floats, as a backend calls it.

    Args:
        primitive: whose it is.
        raised: where exceptions are kept that are no errors of arithmetic; without it, they are raised.
    """

    def forward(*inputs: float) -> float:
        try:
            return float(primitive.forward(*inputs))
        except (ArithmeticError, ValueError):
            return math.nan
        except BaseException as error:
            if raised is None:
                raise
            raised.append(error)
            return math.nan

    return forward
