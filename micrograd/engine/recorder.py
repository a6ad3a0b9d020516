"""Who records what the operators do: they do it themselves, unless a Recorder is in use.

    with mg.no_grad():
        y = x * x          # x.__mul__ finds a recorder, and calls recorder.apply(mul, x, x)

no_grad, detect_anomaly and the compiler each have a Recorder. One is in use for one thread or asyncio task.
"""

from __future__ import annotations

from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from micrograd.engine.primitive import Primitive

    Shares = list[tuple[Any, Any]]

_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
recorder_in_use = _recorder.get
# Where the float of a Value would lose its gradient without a word, this says what to do instead.
floats_refused: ContextVar[str] = ContextVar("floats_refused", default="")
_RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of a generator, a coroutine and both at once


class Recorder:
    """What a recorder may do in place of the operators and of backpropagation; the defaults change nothing.

    Attributes:
        watches_gradients: whether ``shares`` looks at what nodes give, so that backpropagation must ask it.
    """

    watches_gradients = False

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Apply a primitive to operands, and record it or not."""
        raise NotImplementedError

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """Start + xs[0] * ys[0] + ... as one operation; None where there is no such operation."""
        return None

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """The element at an index that is a Value: only a compiled function takes one."""
        raise TypeError(f"an index must be an int, not {type(index).__name__}: {index!r:.80}")

    def compared(self, compare: Callable[..., bool], x: Any, y: Any) -> Any:
        """What comparing a Value with something gives; None for what comparing their numbers gives."""
        return None

    def number_read(self) -> None:
        """Someone reads the number of a Value: raise where it is not known yet."""

    def closure_given(self) -> None:
        """Someone gives a Value a derivative that is a closure: raise where that cannot be recorded."""

    def keeps(self, node: Any) -> bool:
        """Whether gradients may flow to a node whose derivative is a closure."""
        return True

    def shares(self, node: Any, gradient: Any, give: Callable[[], Shares]) -> Shares:
        """What a node with this gradient gives to its operands: what give() returns."""
        return give()

    def quietly(self) -> Recorder | None:
        """The recorder in use under no_grad inside of this one; None for the one that records nothing."""
        return None

    def aloud(self) -> Recorder | None:
        """The recorder in use where a derivative is asked for inside of this one, under no_grad too."""
        return self


NO_RECORDER = Recorder()  # what to ask where none is in use


def handing_over(recorder: Recorder | None) -> Generator[None, None, None]:
    """While this is open, the operators call the recorder; for None they record themselves."""
    before = _recorder.get()
    try:
        _recorder.set(recorder)
        yield
    finally:
        _recorder.set(before)


using = contextmanager(handing_over)  # the same as a context manager


class RecorderContext(ContextDecorator):
    """A context manager that puts a recorder in use for this thread or asyncio task, and decorates functions."""

    def recorder(self, outer: Recorder | None) -> Recorder:
        """The recorder to use inside, where another one, or none, is in use outside."""
        raise NotImplementedError

    def __init__(self, *arguments: object) -> None:
        if arguments:
            name = type(self).__name__
            raise TypeError(f"{name} takes no arguments; to decorate a function write @{name}(), with parentheses")
        self._open: list[Generator[None, None, None]] = []

    def __enter__(self) -> None:
        opened = handing_over(self.recorder(_recorder.get()))  # a generator closes even where Ctrl-C comes in between
        next(opened)
        self._open.append(opened)

    def __exit__(self, *_: object) -> None:
        self._open.pop().close()

    def _recreate_cm(self) -> RecorderContext:
        return type(self)()  # for each call of a decorated function: several threads may call it

    def __call__(self, function: Any) -> Any:
        """The function, run inside; TypeError for one that runs later than it is called."""
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RUNS_LATER:
            name = type(self).__name__
            raise TypeError(f"{name} cannot decorate {function.__name__}, which runs later: use it inside")
        return super().__call__(function)
