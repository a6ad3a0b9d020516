"""Turns: the loops of a traced function, whose body runs a few times and is then repeated on the tape.

    turn 1      runs as it is written
    turn 2      is recorded: it runs on symbols of its own, and then what it wrote down is written on the tape
    turn 3      is recorded, too; if both wrote the same, the function does the same in each turn
    turn 4      is repeated: it is written on the tape with its own numbers, and the function does not run

So it goes for turns that are alike: they get numbers of the same kinds, in the same containers, and beside them the
same strings, flags and plain numbers. For others there is another recording.

A function that remembers something from turn to turn must run in each of them. So all that it can reach is looked at,
before and after. Every turn runs as it is written if any of that was changed, or cannot be looked into, as iterators
cannot, or if the function draws random numbers. So it does where a turn asks which Value it is given, or
differentiates by one that was there before, which a recording cannot know.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any, cast

from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.tracing.body import Body, Leaves, UnlikeError, told
from micrograd.compiler.tracing.decisions import chosen, repeated
from micrograd.compiler.tracing.trace import Symbol, Tape
from micrograd.engine.differentiation import running
from micrograd.engine.recorder import recorder_on_top
from micrograd.loops import Turns, taking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.value import Value

_FEWEST = 5  # turns: of fewer, hardly any would be repeated
# Iterations of vmap that are compiled once, and operations of all of them. Of fewer, one program is ready as soon when
# they are written out, and a call takes half the time: 0.2 in place of 0.4 ms for 1,000 iterations of 20 operations.
_FEWEST_MAPPED, OPERATIONS_MAPPED = 32, 1 << 15
_MOST_RECORDINGS = 8  # in a loop
_BYTES_OF_AN_OPERATION = 250  # 3.6 GB for 13 million of them


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, where loops that it runs on a tape write their bodies down once."""
    turns = TracedOnce(bytes_of_machine())  # asked before the trace, in which the system may not be read

    def run(*arguments: Any, **named: Any) -> Any:
        with taking(turns):
            return function(*arguments, **named)

    return run


class TracedOnce(Turns):
    """Turns that are repeated on the tape, where they are alike.

    Args:
        memory: how many bytes the machine has.
    """

    def __init__(self, memory: float) -> None:
        self._memory = memory

    def of(self, function: Callable[..., Any], count: int) -> Callable[..., Any]:
        """What repeats the function's turns where a tape records, and nothing is in between."""
        tape = recorder_on_top()
        return _Loop(function, tape, count, self._memory) if isinstance(tape, Tape) and count >= _FEWEST else function

    def mapped(self, function: Callable[..., Any], item: Callable[[int], Any], count: int) -> list[Any]:
        """What the function returns for the first items: for all of them, where one recording stands for many."""
        tape = recorder_on_top()
        if not isinstance(tape, Tape) or not tape.takes_maps or count <= _FEWEST_MAPPED:
            return []
        if tape.questions is not None and tape.questions.has_asked():
            return []  # a program with decisions has all of its operations in one
        return _mapped(function, item, count, tape)

    def leave(self, number: Any) -> bool:
        """Whether a tape records for a program that decides on numbers."""
        return isinstance(number, Symbol) and _tape_that_decides() is not None

    def chosen(self, predicate: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
        """What cond returns where a program decides."""
        return chosen(cast("Tape", _tape_that_decides()), predicate, branches, operands)

    def repeated(self, condition: Callable[..., Any], body: Callable[..., Any], state: Any, limit: int | None) -> Any:
        """What while_loop returns where a program decides."""
        return repeated(cast("Tape", _tape_that_decides()), condition, body, state, limit)


def _tape_that_decides() -> Tape | None:
    """The tape that records, if its program may decide on numbers."""
    tape = recorder_on_top()
    return tape if isinstance(tape, Tape) and tape.takes_decisions else None


def _mapped(function: Callable[..., Any], item: Callable[[int], Any], count: int, tape: Tape) -> list[Any]:
    """What a function returns for the first items: for all where it does the same for each, or often for one.

    The first iteration runs as it is written, in case the function changes something. Then two are recorded.
    """
    reached = ClosedOver([("", function)])
    begin = len(tape.operations)
    first = [function(item(0))]
    if tape.size_from(begin) * count < OPERATIONS_MAPPED or not _is_as_before(reached):
        return first
    recorded = []
    for index in (1, 2):
        leaves, body, given = Leaves(), Body(tape), (item(index),)
        try:
            key = told(given, leaves.described, leaves.described_at_once)
            body.record(function, given, leaves)
        except Exception:  # an error of the function's own comes again where it runs as it is written
            if not _is_as_before(reached):
                raise
            return first
        recorded.append((key, body.written))
    if recorded[0] != recorded[1] or not _is_as_before(reached):
        return first
    rows = _rows(item, count, recorded[0][0])
    return first if rows is None else first + body.mapped(rows)


def _rows(item: Callable[[int], Any], count: int, key: Any) -> list[list[Value]] | None:
    """The Values among all items but the first, a row for each; None if anything else differs from item to item."""
    rows = []
    for index in range(1, count):
        leaves = Leaves()
        try:
            if told((item(index),), leaves.described, leaves.described_at_once) != key:
                return None
        except UnlikeError:
            return None
        rows.append(leaves.all)
    return rows


def _is_as_before(reached: ClosedOver) -> bool:
    """Whether all that was reached could be looked into, and is still there."""
    reached.notice_new_attributes()
    return not reached.sources.iterators and reached.is_current()


def _check_memory(count: int, operations: int, there: float) -> None:
    """Refuse a loop that this machine has no memory for, before any of it is taken."""
    needed = count * operations * _BYTES_OF_AN_OPERATION
    if needed > there:
        raise MemoryError(
            f"{count:,} iterations of {operations:,} operations each take about {needed / 1e9:,.1f} GB to compile, and "
            f"this machine has {there / 1e9:,.1f} GB of memory: go through fewer in one call"
        )


def bytes_of_machine() -> float:
    """How much memory there is; infinity where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


class _Loop:
    """A function that is called turn after turn.

    Args:
        function: the body of the loop.
        tape: on which it is written.
        count: how often it is called.
        memory: how many bytes there are.

    Raises:
        MemoryError: when called, if what it writes in all of these calls does not fit into memory.
    """

    def __init__(self, function: Callable[..., Any], tape: Tape, count: int, memory: float) -> None:
        self._function, self._tape, self._count, self._memory = function, tape, count, memory
        self._reached: ClosedOver | None = None  # before the first turn
        self._bodies: dict[Any, Body] = {}  # by what turns are told by
        self._confirmed: set[Any] = set()  # of which another turn has written the same
        self._recordings = 0
        self._asks_what_is_reached = False  # whether a turn has
        self._as_written = False  # whether all turns from now on run as they are written

    def __call__(self, *given: Any) -> Any:
        """What the function returns in the next turn."""
        if self._as_written:
            return self._function(*given)
        if self._reached is None:
            return self._first(given)
        leaves = Leaves()
        try:
            key = self._key(told(given, leaves.described), leaves)
        except UnlikeError:
            return self._last(given)
        body = self._bodies[key] if key in self._confirmed else self._recorded(key, given, leaves)
        return self._last(given) if body is None else body.repeated(leaves.all)

    def _key(self, told_by: Any, leaves: Leaves) -> Any:
        """What turns that are alike are told by."""
        if not self._asks_what_is_reached:
            return told_by
        sources = [None, *running()]
        return told_by, tuple([self._tape.is_reached(leaf, source) for leaf in leaves.all for source in sources])

    def _first(self, given: tuple[Any, ...]) -> Any:
        """Run the first turn, and see whether others can be repeated."""
        self._reached = ClosedOver([("", self._function)])
        result = self._function(*given)
        self._as_written = not self._is_as_before()
        return result

    def _is_as_before(self) -> bool:
        assert self._reached is not None
        return _is_as_before(self._reached)

    def _last(self, given: tuple[Any, ...]) -> Any:
        """Run a turn as it is written, and all that come after it."""
        self._as_written = True
        return self._function(*given)

    def _recorded(self, key: Any, given: tuple[Any, ...], leaves: Leaves) -> Body | None:
        """Record a turn; None if that could not be done."""
        assert self._reached is not None
        if self._recordings == _MOST_RECORDINGS:
            return None
        body = Body(self._tape)
        try:
            body.record(self._function, given, leaves)
        except Exception:  # an error of the turn's own comes again where it runs as it is written
            if not self._is_as_before():
                raise
            return None
        if body.asks_what_is_reached and not self._asks_what_is_reached:
            self._asks_what_is_reached = True
            key = self._key(key, leaves)
        before = self._bodies.get(key)
        self._bodies[key] = body
        self._recordings += 1
        if before is not None and before.written == body.written:
            self._confirmed.add(key)
            _check_memory(self._count, len(body.written[0]), self._memory)
        self._as_written = (before is not None and key not in self._confirmed) or not self._is_as_before()
        return body
