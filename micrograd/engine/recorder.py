"""What records operations: the operators do it themselves, unless a Recorder is in use.

    with mg.no_grad():
        y = x * x          # x.__mul__ finds a recorder, and calls recorder.apply(mul, x, x)

no_grad, detect_anomaly and the compiler each have a Recorder. One is in use for one thread or asyncio task.

Recorders are context entries, each on top of the one before. At its end, a block removes its entry. If another entry
is on top, or another task ends the block, it closes its entry instead, and closed entries are skipped. So the blocks
of two generators may end in any order.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from micrograd._support.checks import Operand
from micrograd.engine.stored import SPECIAL

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from typing import TypeAlias

    from micrograd.engine.primitive import Primitive

    Contributions: TypeAlias = list[tuple[Any, Any]]

AnyEntry = TypeVar("AnyEntry", bound="ContextEntry")
RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of a generator, a coroutine and both at once


class ContextEntry:
    """What a with-block puts on top of what holds outside of it, until it is closed."""

    below: Any = None  # the open entry that was on top before
    is_open = True
    recorder: Any = None  # in use, where this is what puts one in use


def on_top(variable: ContextVar[AnyEntry | None]) -> AnyEntry | None:
    """The topmost entry that is open; those above it, which were closed elsewhere, are taken away."""
    entry = top = variable.get()
    while entry is not None and not entry.is_open:
        entry = entry.below
    if entry is not top:
        variable.set(entry)
    return entry


def holding(variable: ContextVar[AnyEntry | None], entry: AnyEntry) -> Generator[None, None, None]:
    """While this is open, the entry is on top.

    A generator is closed even where its block is left in between two instructions: when nothing refers to it any
    more. Tasks that were started inside keep the entry, as they keep all that held where they were started.
    """
    task, is_over = _running_task(), True
    try:
        entry.below = on_top(variable)
        variable.set(entry)
        yield
    finally:
        try:
            if variable.get() is entry and _running_task() is task:
                variable.set(entry.below)
                is_over = False
        finally:
            if is_over:  # for all who have it; to say so cannot fail
                entry.is_open, entry.recorder = False, _ENDED
            del entry  # which a traceback would keep
        if is_over:
            on_top(variable)


def _running_task() -> Any:
    """The asyncio task that is running, if any: it may not be the one that started a generator."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio and asyncio.current_task()
    except RuntimeError:  # no loop is running
        return None


class Recorder:
    """What a recorder may do instead of operators and backpropagation: six hooks, whose defaults change nothing.

    A recorder of numbers that are not known yet is a Tracer: see tracer.py.

    Attributes:
        is_open: whether it still records; if not, it is skipped.
        watches_gradients: whether backpropagation must call ``contributions``.
        lets_programs_run: whether a compiled function may run its program without recording its operations.
        remembers: whether results remember how they were made.
        remembers_calls: whether results remember the calls that they came out of; see contexts/calls.py.
        inner: the recorder whose results this one checks, if it does.
    """

    inner: Recorder | None = None
    is_open = True
    watches_gradients = False
    lets_programs_run = False
    remembers = True
    remembers_calls = False

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Apply a primitive to operands, and record it or not: the operators call this.

        They do not check whether the recorder is open. If it is closed, ``passed_over`` has the result.
        """
        raise NotImplementedError

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """start + xs[0] * ys[0] + ... as one operation; None if there is no such operation."""
        return None

    def keeps(self, node: Any) -> bool:
        """Whether gradients may flow to a node whose derivative is a closure."""
        return True

    def contributions(self, node: Any, gradient: Any, give: Callable[[], Contributions]) -> Contributions:
        """The contributions of a node with this gradient to its operands: those of give()."""
        return give()

    def under_no_grad(self) -> Recorder | None:
        """A recorder to use under no_grad inside this one; None for the one that records nothing."""
        return None

    def under_derivative(self) -> Recorder | None:
        """A recorder to use where a derivative is asked for inside of this one; None for this one itself."""
        return None


def passed_over(primitive: Primitive, operands: Sequence[Any]) -> Any:
    """What the operators do where the recorder that they ask is not open any more."""
    recorder_on_top()  # it takes those away that are not
    return next(operand for operand in operands if isinstance(operand, Operand))._apply(primitive, *operands)


class _Ended(Recorder):
    """What is in use where a block was ended elsewhere."""

    is_open = False

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Do what the operators do without it."""
        return passed_over(primitive, operands)


_ENDED = _Ended()


class Recording(ContextEntry):
    """A recorder in use: what contexts have, and copies of them, which may outlive the block.

    It is in SPECIAL from before the first context has it until nothing refers to it any more. So nothing but contexts
    and the running block may keep one. The recorder itself may be kept, and put in use again.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        SPECIAL.append(ref(self, SPECIAL.remove))


_recording: ContextVar[Recording | None] = ContextVar("recording", default=None)
recording_in_use = _recording.get  # the operators call this: it may be closed, and its recorder's apply finds out
NO_RECORDER = Recorder()  # what to ask where none is in use


def recorder_on_top() -> Recorder | None:
    """The recorder in use, if any; it is open."""
    recording = on_top(_recording) if SPECIAL else None
    while recording is not None and not recording.recorder.is_open:
        recording.is_open = False
        recording = on_top(_recording)
    return None if recording is None else recording.recorder


@contextmanager
def using(recorder: Recorder) -> Iterator[None]:
    """Let the operators call a recorder inside."""
    yield from holding(_recording, Recording(recorder))


class RecorderContext(ContextDecorator):
    """A context manager that puts a recorder in use for this thread or asyncio task, and decorates functions."""

    def recorder(self, outer: Recorder | None) -> Recorder:
        """A new recorder to use inside, where another one, or none, is in use outside."""
        raise NotImplementedError

    def __init__(self, *arguments: object) -> None:
        if arguments:
            name = type(self).__name__
            raise TypeError(f"{name} takes no arguments; to decorate a function write @{name}(), with parentheses")
        self._held: list[Generator[None, None, None]] = []

    def __enter__(self) -> None:
        held = holding(_recording, Recording(self.recorder(recorder_on_top())))
        try:
            next(held)
            self._held.append(held)
        except BaseException:
            held.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._held.pop().close()

    def _recreate_cm(self) -> RecorderContext:
        return type(self)()  # for each call of a decorated function: several threads may call it

    def __call__(self, function: Any) -> Any:
        """The function, run inside; TypeError for one that runs later than it is called."""
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & RUNS_LATER:
            name = type(self).__name__
            raise TypeError(f"{name} cannot decorate {function.__name__}, which runs later: use it inside")
        return super().__call__(function)


class Refusal(ContextEntry):
    """Inside, the float of a Value would lose its gradient without a word; the reason says what to do instead."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


_refusal: ContextVar[Refusal | None] = ContextVar("refusal", default=None)


@contextmanager
def refusing_floats(reason: str) -> Iterator[None]:
    """Let float(value) raise a TypeError inside, unless the Value is a constant."""
    yield from holding(_refusal, Refusal(reason))


def float_read() -> None:
    """Someone makes a float of a Value that requires a gradient: raise where that is refused."""
    if _refusal.get() is not None and (refusal := on_top(_refusal)) is not None:
        raise TypeError(refusal.reason)
