"""no_grad: computing without recording.

    with mg.no_grad():
        y = x * x          # a constant: what it was made of is free to go

The transforms record under no_grad too: whoever asks for a gradient there asks on purpose.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from micrograd.engine.node import forget
from micrograd.engine.recorder import Recorder, RecorderContext, handing_over, recorder_in_use
from micrograd.engine.value import Value, evaluated

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from micrograd.engine.primitive import Primitive


class _Nothing(Recorder):
    """The recorder of no_grad: it computes, and remembers nothing."""

    def apply(self, primitive: Primitive, *operands: Any) -> Value:
        """The result of a primitive, as a constant."""
        return _constant(evaluated(primitive, operands)[0])

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """The sum as a constant; None where there is no Value, or something else than numbers."""
        kinds = {type(start), *map(type, xs), *map(type, ys)}
        if Value not in kinds or not kinds <= {Value, float, int}:
            return None
        total = start._data if type(start) is Value else start
        first, second = ([x._data if type(x) is Value else x for x in side] for side in (xs, ys))
        for x, y in zip(first, second, strict=True):
            total += x * y
        return Value(total, requires_grad=False)

    def keeps(self, node: Any) -> bool:
        """No: a node whose derivative is a closure becomes a constant, as all others do."""
        return False

    def aloud(self) -> Recorder | None:
        """None: a derivative is asked for on purpose."""
        return None


NOTHING = _Nothing()


def _constant(number: float) -> Value:
    node = object.__new__(Value)
    node._data = number
    node._grad = 0.0
    node._uses = 0
    node.label = ""
    forget(node)
    return node


@contextmanager
def differentiating() -> Generator[None, None, None]:
    """Record inside, under no_grad too: a derivative is asked for there on purpose."""
    outer = recorder_in_use()
    yield from handing_over(outer if outer is None else outer.aloud())


class no_grad(RecorderContext):  # noqa: N801  # used as a function is, as in PyTorch
    """Record nothing inside: results are constants. Holds for this thread or asyncio task only.

    A context manager, and a decorator of functions (not of generators and coroutines, which run later).

    Example:
        >>> x = Value(3.0)
        >>> with no_grad():
        ...     y = x * x
        >>> y.data, y.requires_grad
        (9.0, False)
    """

    def recorder(self, outer: Recorder | None) -> Recorder:
        """The one that records nothing, looked at by whatever looks at results outside."""
        return (outer and outer.quietly()) or NOTHING
