"""Who records what the operators do: they do it themselves, unless a Recorder is in use.

    with mg.no_grad():
        y = x * x          # x.__mul__ finds a recorder, and calls recorder.apply(mul, x, x)

no_grad, detect_anomaly and the compiler each have a Recorder. One is in use for one thread or asyncio task.

Recorders are layers, each on top of the one that was in use before. A block that ends takes its own layer away, or
closes it where another one is on top or another task ends the block; a closed layer is passed over. So the blocks of
two generators may end in any order.
"""

from __future__ import annotations

import sys
from contextlib import ContextDecorator, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from micrograd._support.checks import Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from micrograd.engine.primitive import Primitive

    Shares: TypeAlias = list[tuple[Any, Any]]

AnyLayer = TypeVar("AnyLayer", bound="Layer")
RUNS_LATER = 0x20 | 0x80 | 0x200  # the flags of a generator, a coroutine and both at once


class Layer:
    """What a with-block puts on top of what holds outside of it, until it is closed."""

    below: Any = None  # the open layer that was on top before
    is_open = True


def on_top(variable: ContextVar[AnyLayer | None]) -> AnyLayer | None:
    """The topmost layer that is open; those above it, which were closed elsewhere, are taken away."""
    layer = top = variable.get()
    while layer is not None and not layer.is_open:
        layer = layer.below
    if layer is not top:
        variable.set(layer)
    return layer


def holding(variable: ContextVar[AnyLayer | None], layer: AnyLayer) -> Generator[None, None, None]:
    """While this is open, the layer is on top.

    A generator is closed even where its block is left in between two instructions: when nothing refers to it any
    more. Tasks that were started inside keep the layer, as they keep all that held where they were started.
    """
    task = _running_task()
    try:
        layer.below = on_top(variable)
        variable.set(layer)
        yield
    finally:
        try:
            if variable.get() is layer and _running_task() is task:
                variable.set(layer.below)
            else:
                layer.is_open = False
                on_top(variable)
        except BaseException:
            layer.is_open = False  # which cannot fail
            raise


def _running_task() -> Any:
    """The asyncio task that is running, if any: it may not be the one that started a generator."""
    asyncio = sys.modules.get("asyncio")
    try:
        return asyncio and asyncio.current_task()
    except RuntimeError:  # no loop is running
        return None


class Recorder(Layer):
    """What a recorder may do in place of the operators and of backpropagation; the defaults change nothing.

    Attributes:
        watches_gradients: whether ``shares`` looks at what nodes give, so that backpropagation must ask it.
        lets_programs_run: whether a compiled function may run its program, whose operations nobody records.
        remembers: whether results remember how they were made.
        remembers_calls: whether results remember the calls that they came out of; see calls.py.
    """

    watches_gradients = False
    lets_programs_run = False
    remembers = True
    remembers_calls = False

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Apply a primitive to operands, and record it or not: the operators call this.

        They do not look whether this layer is open. Where it is not, ``passed_over`` has the result.
        """
        raise NotImplementedError

    def passed_over(self, primitive: Primitive, operands: Sequence[Any]) -> Any:
        """What the operators do where this recorder is closed."""
        recorder_on_top()
        return next(operand for operand in operands if isinstance(operand, Operand))._apply(primitive, *operands)

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """Start + xs[0] * ys[0] + ... as one operation; None where there is no such operation."""
        return None

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """The element at an index that is a Value: only a compiled function takes one."""
        raise TypeError(f"an index must be an int, not {type(index).__name__}: {index!r:.80}")

    def compared(self, compare: Callable[..., bool], x: Any, y: Any) -> Any:
        """What comparing a Value with something gives; None for what comparing their numbers gives."""
        return None

    def array(self, array: Any) -> Any:
        """What stands for an array that has Values in it."""
        return array

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

    def copied(self, scalar: Any, source: Any) -> Any:
        """A copy of a number or Value for a transform, the source, to differentiate by; None for an ordinary one."""
        return None

    def reaches(self, results: Sequence[Any], sources: Sequence[Any]) -> bool | None:
        """Whether gradients flow to results from sources, as differentiation.reaches has it; None if they are known."""
        return None

    def number_of(self, value: Any) -> Any:
        """What stands for the plain number of a Value that is not known yet."""
        return value.data

    def adjoints(self, root: Any, wanted: Collection[Any] | None, create_graph: bool) -> Any:
        """The gradient of a Value that is not known yet, by each of those wanted; None if it is known."""
        return None

    def tangents(self, outputs: Sequence[Any], given: Mapping[Any, Any], create_graph: bool) -> Any:
        """The tangents of Values that are not known yet, from those that are given; None if they are known."""
        return None

    def numbers_taken(self, output: Any) -> None:
        """Someone takes plain numbers for the gradients of an output."""

    def quietly(self) -> Recorder | None:
        """A recorder to use under no_grad inside of this one; None for the one that records nothing."""
        return None

    def aloud(self) -> Recorder | None:
        """A recorder to use where a derivative is asked for inside of this one; None for this one itself."""
        return None


_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
recorder_in_use = _recorder.get  # the operators call this: it may be closed, and its apply finds out
NO_RECORDER = Recorder()  # what to ask where none is in use


def recorder_on_top() -> Recorder | None:
    """The recorder in use, if any; it is open."""
    return None if _recorder.get() is None else on_top(_recorder)


@contextmanager
def using(recorder: Recorder) -> Iterator[None]:
    """Let the operators call a recorder inside."""
    yield from holding(_recorder, recorder)


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
        held = holding(_recorder, self.recorder(recorder_on_top()))
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


class Refusal(Layer):
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
