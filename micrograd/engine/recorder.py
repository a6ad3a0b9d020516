"""Who records what the operators do: they do it themselves, unless a recorder is set.

    with mg.no_grad():
        y = x * x          # x.__mul__ finds a recorder, and hands it the primitive mul and its operands

A recorder is a function of a primitive and its operands. It holds for one thread or asyncio task, and
may look at what another one, its ``inner``, makes, as that of detect_anomaly does. That of the compiler
writes a tape; it has a few methods more, by the names that are asked for here.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_recorder: ContextVar[Callable[..., Any] | None] = ContextVar("recorder", default=None)
recorder_in_use = _recorder.get
# Where the float of a Value would lose its gradient without a word, this says what to do instead.
floats_refused: ContextVar[str] = ContextVar("floats_refused", default="")
_RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of a generator, a coroutine and both at once


def recording(recorder: Any) -> Generator[None, None, None]:
    """Once started and until closed, the operators hand their work to a recorder; for None they record it."""
    before = _recorder.get()
    try:
        _recorder.set(recorder)
        yield
    finally:
        _recorder.set(before)


def innermost(recorder: Any) -> Any:
    """What records in the end: a recorder may look at what another one, its ``inner``, makes."""
    return getattr(recorder, "inner", recorder)


def around(recorder: Any, inner: Any) -> Any:
    """What records as inner does, looked at by whatever looks at what the recorder makes."""
    return type(recorder)(inner) if hasattr(recorder, "inner") else inner


def of_compiler(recorder: Any, name: str) -> Any:
    """What the compiler's recorder, or its quiet side, has by this name; None of every other recorder."""
    return getattr(getattr(recorder, "__self__", recorder), name, None)


def refuse(recorder: Any, what: str, instead: str) -> None:
    """Let the compiler's recorder refuse what would freeze a number into a program; others let it be."""
    if (refusal := of_compiler(recorder, "refuse")) is not None:
        refusal(what, instead)


class Stretch(ContextDecorator):
    """A context manager that holds for this thread or asyncio task only, and decorates functions."""

    _stretch: Callable[[], Generator[None, None, None]]  # what it does, until it is closed

    def __init__(self, *arguments: object) -> None:
        if arguments:
            name = type(self).__name__
            raise TypeError(f"{name} takes no arguments; to decorate a function write @{name}(), with parentheses")
        self._running: list[Generator[None, None, None]] = []

    def __enter__(self) -> None:
        running = self._stretch()  # a generator puts things back even where Ctrl-C comes in between
        next(running)
        self._running.append(running)

    def __exit__(self, *_: object) -> None:
        self._running.pop().close()

    def _recreate_cm(self) -> Stretch:
        return type(self)()  # for each call of a decorated function, which threads may make at a time

    def __call__(self, function: Any) -> Any:
        """The function, run inside; TypeError for one that runs later than it is called."""
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & _RUNS_LATER:
            name = type(self).__name__
            raise TypeError(f"{name} cannot decorate {function.__name__}, which runs later: use it inside")
        return super().__call__(function)
