"""no_grad: computing without recording.

    with mg.no_grad():
        y = x * x          # a constant: nothing keeps what it was made of

The transforms record under no_grad, too, because their caller wants a gradient.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from micrograd.engine.applying import evaluated, record
from micrograd.engine.node import forget
from micrograd.engine.recorder import Recorder, RecorderContext, recorder_on_top, using
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.engine.primitive import Primitive


class _Nothing(Recorder):
    """The recorder of no_grad: it computes, and remembers nothing."""

    lets_programs_run = True
    remembers = False

    def apply(self, primitive: Primitive, *operands: Any) -> Value:
        """The result of a primitive, as a constant."""
        node = object.__new__(Value)
        node._data, node._grad, node._uses = evaluated(primitive, operands)[0], 0.0, 0
        forget(node)
        return node

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """The sum as a constant; None where there is no Value, or something else than numbers."""
        bring_up_to_date()
        kinds = {type(start), *map(type, xs), *map(type, ys)}
        if Value not in kinds or not kinds <= {Value, float, int}:
            return None
        total = start._data if type(start) is Value else start
        first, second = ([x._data if type(x) is Value else x for x in side] for side in (xs, ys))
        for x, y in zip(first, second, strict=True):
            total += x * y
        return Value(total, requires_grad=False)

    def keeps(self, node: Any) -> bool:
        """False: a node whose derivative is a closure becomes a constant, as all others do."""
        return False

    def under_derivative(self) -> Recorder:
        """A recorder that records: somebody asks for a derivative."""
        return Everything()


class Everything(Recorder):
    """Records as the operators do by themselves, on top of a recorder that does not."""

    lets_programs_run = True

    def apply(self, primitive: Primitive, *operands: Any) -> Value:
        """The result of a primitive, which remembers."""
        return record(primitive, operands)


@contextmanager
def differentiating() -> Iterator[None]:
    """Record inside, under no_grad too, because somebody asks for a derivative."""
    outer = recorder_on_top()
    if outer is None or (recorder := outer.under_derivative()) is None:
        yield
    else:
        with using(recorder):
            yield


def quiet(outer: Recorder | None) -> Recorder:
    """A new recorder that records nothing inside of another one."""
    return (outer and outer.under_no_grad()) or _Nothing()


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
        """A recorder that records nothing; inside detect_anomaly, results are still checked."""
        return quiet(outer)
