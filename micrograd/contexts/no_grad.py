"""no_grad: computing without recording.

    with mg.no_grad():
        y = x * x          # a constant: what it was made of is free to go

The transforms record under no_grad too: whoever asks for a gradient there asks on purpose.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from micrograd.engine.node import forget
from micrograd.engine.recorder import Stretch, around, innermost, of_compiler, recorder_in_use, recording
from micrograd.engine.value import Value, evaluated

if TYPE_CHECKING:
    from collections.abc import Generator

    from micrograd.engine.primitive import Primitive


def record_nothing(primitive: Primitive, *operands: Any) -> Value:
    """The recorder of no_grad: apply a primitive and remember nothing."""
    node = object.__new__(Value)
    node._data = evaluated(primitive, operands)[0]
    node._grad = 0.0
    node._uses = 0
    node.label = ""
    forget(node)
    return node


@contextmanager
def differentiating() -> Generator[None, None, None]:
    """Record inside, under no_grad too: a derivative is asked for there on purpose."""
    before = recorder_in_use()
    yield from recording(around(before, None) if innermost(before) is record_nothing else before)


class no_grad(Stretch):  # noqa: N801  # used as a function is, as in PyTorch
    """Record nothing inside: results are constants. Holds for this thread or asyncio task only.

    A context manager, and a decorator of functions (not of generators and coroutines, which run later).

    Example:
        >>> x = Value(3.0)
        >>> with no_grad():
        ...     y = x * x
        >>> y.data, y.requires_grad
        (9.0, False)
    """

    def _stretch(self) -> Generator[None, None, None]:
        recorder = recorder_in_use()
        # A recorder of the compiler's has a quiet side of its own.
        return recording(of_compiler(recorder, "quietly") or around(recorder, record_nothing))
