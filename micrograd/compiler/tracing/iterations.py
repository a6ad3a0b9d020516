"""Iterations: the loops of a traced function, which run on the tape; many iterations of a vmap are written once.

A ``vmap`` over many items is a program of its own:

    item 1            runs as it is written
    items 2 and 3     are recorded, on symbols of their own; if both wrote the same, the function does so for each item
    all items         are one recording, which runs for many of them at a time; see calling/mapped.py

A function that remembers something from item to item must run for each of them. So all that it can reach is looked at,
before and after. The items are written out if any of that was changed, or cannot be looked into, as iterators cannot,
or if the function draws random numbers; and where it asks which Value it is given, or differentiates by one that was
there before, which a recording cannot know.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from micrograd._support.interrupts import is_of_handler
from micrograd._support.memory import bytes_there, check_memory
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.tracing.body import Body, Leaves, UnlikeError, filled, plain_rows, told
from micrograd.compiler.tracing.choices import FEWEST_CHOOSING, are_rounded_alike
from micrograd.compiler.tracing.decisions import Deciding, choosing_on, in_blocks, may_be_in_blocks
from micrograd.compiler.tracing.delays import iterations_needed, looked_at, numbers_in
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape
from micrograd.engine.recorder import recorder_on_top
from micrograd.loops import Iterations, rows_in_use, taking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.tracing.questions import Questions
    from micrograd.engine.value import Value

# Iterations of vmap that are compiled once, and operations of all of them. Of fewer, one program is ready as soon when
# they are written out, and a call takes half the time: 0.2 in place of 0.4 ms for 1,000 iterations of 20 operations.
_FEWEST_MAPPED, OPERATIONS_MAPPED = 32, 1 << 15
# Iterations of a scan that decides. In blocks, a first call takes 0.26 s for 8 and for 100 of them; written out, 0.38 s
# and 7.6 s. A call takes as long.
_FEWEST_IN_BLOCKS = 8
# Operations of an iteration of a scan, and of all of them, from which on they are in blocks, too. A GRU of 32 neurons
# that sees 16 rows in each of 100 iterations has a first call of 1.2 s and 150 MB in place of 14 s and 1.8 GB. A call
# computes each iteration once more for its gradient: 3.1 ms in place of 2.1.
_LARGE, _MOST_WRITTEN_OUT = 1 << 15, 1 << 19
_MOST_OF_ONE = 100  # operations of an iteration that are written out for any number of them: each takes 8 bytes then
BYTES_OF_AN_OPERATION = 250  # or an argument, traced one by one: 3.6 GB for 13 million of them


def traced_once(function: Callable[..., Any], tests_bools: Callable[[], bool] = bool) -> Callable[..., Any]:
    """The function, where what mg.vmap runs for many items on a tape is written down once.

    Args:
        function: the function.
        tests_bools: whether its code asks whether a comparison is True itself; see Tape.
    """
    iterations = TracedOnce(bytes_there())  # asked before the trace, in which the system may not be read

    def run(*arguments: Any, **named: Any) -> Any:
        cast("Tape", recorder_on_top()).decides_at_once = tests_bools()
        with taking(iterations):
            return function(*arguments, **named)

    return run


class TracedOnce(Iterations):
    """Iterations on a tape.

    Args:
        memory: how many bytes there are.
    """

    def __init__(self, memory: float) -> None:
        self._memory, self._keeps_all = memory, False

    def of(self, function: Callable[..., Any], count: int, keeps_all: bool = False) -> Callable[..., Any]:
        """The function, which after some iterations refuses a loop that does not fit into memory."""
        tape, iterations, rows = recorder_on_top(), 0, rows_in_use()
        if not isinstance(tape, Tape):
            return function
        is_seen = rows is not None and not keeps_all and rows.grows(count)
        seen = looked_at(rows, count) if rows is not None and is_seen else -1
        # The first one may have written what all have in common; after the second, the others may be in blocks
        measured = 3 if self.blocks() else 2

        def run(*given: Any) -> Any:
            nonlocal iterations
            begin, iterations = len(tape.operations), iterations + 1
            before = numbers_in(given[0]) if iterations == seen else {}
            with self._keeping_all(keeps_all):
                result = function(*given)
            if iterations == measured:
                size = tape.size_from(begin)
                what = f"{count:,} iterations of {size:,} operations each, traced one by one,"
                check_memory(count * size * BYTES_OF_AN_OPERATION, self._memory, what)
            if rows is not None and iterations == seen:
                rows.needs(iterations_needed(count, tape, begin, before, numbers_in(result[0])), count)
            return result

        return run

    def mapped(self, function: Callable[..., Any], item: Callable[[int], Any], count: int) -> list[Any]:
        """What the function returns for the first items: for all of them, where one recording stands for many."""
        tape = recorder_on_top()
        if not isinstance(tape, Tape) or not tape.takes_maps or count <= _FEWEST_MAPPED:
            return []
        if tape.decisions or (tape.questions is not None and tape.questions.count()):
            return []  # a program with decisions has all of its operations in one
        with self._keeping_all(True):
            return _mapped(function, item, count, tape)

    @contextmanager
    def _keeping_all(self, keeps_all: bool) -> Iterator[None]:
        """Let scans inside keep all states: there are many of them, one for each item of a vmap."""
        before, self._keeps_all = self._keeps_all, self._keeps_all or keeps_all
        try:
            yield
        finally:
            self._keeps_all = before

    def blocks(self) -> Callable[..., tuple[Any, list[Any]]] | None:
        """What runs a scan whose states are kept between blocks only, where a program may compute the others again."""
        tape = _tape_that_decides()
        return None if tape is None or not tape.may_follow or self._keeps_all else partial(in_blocks, tape)

    def blocks_after(self, step: Callable[..., Any]) -> Callable[..., Any] | None:
        """What runs the iterations of a scan in blocks, after one that has left a choice to the program, or is large.

        Written out, each iteration would have programs of its own between the choices.
        """
        tape = _tape_that_decides()
        if tape is None or self.blocks() is None:
            return None
        before, begin, size, is_over = len(tape.decisions), len(tape.operations), -1, False
        reached: ClosedOver | None = None

        def is_large(count: int) -> bool:
            """Whether iterations like the first one, so many, take long to write out."""
            nonlocal size
            size = tape.size_from(begin) if size < 0 else size
            return size >= _LARGE and size * count >= _MOST_WRITTEN_OUT and not tape.outermost.writes_scans

        def in_blocks_of_one(reached: ClosedOver, *given: Any) -> Any:
            found = in_blocks(tape, *given)
            if not reached.is_as_before():  # it may do something else each time
                tape.follow()
            return found

        def may_go_on(state: Any, take: Callable[[int], Any], order: Sequence[int]) -> Any:
            nonlocal reached, is_over
            if is_over or len(order) < _FEWEST_IN_BLOCKS:
                return None
            has_decided = not all(each.is_scan for each in tape.decisions[before:])
            if not (has_decided or is_large(len(order))):
                return None
            if reached is None:  # another iteration runs as it is written, in case it changes something
                reached = ClosedOver([("", step)])
                return None
            is_over = True
            if not (reached.is_as_before() and may_be_in_blocks(state, take, order)):
                return None
            tape.outermost.leaves_scans = tape.outermost.leaves_scans or not has_decided
            return partial(in_blocks_of_one, reached)

        return may_go_on

    def choosing(self, function: Callable[[Any], Any], count: int) -> Callable[[Any], Any]:
        """The function of the items of a vmap, which leaves what it asks to the program, if there are many."""
        tape = recorder_on_top()
        if not isinstance(tape, Tape) or count < FEWEST_CHOOSING:
            return function
        if (choosing := choosing_on(tape)) is not None:
            return partial(choosing.of, function)
        return partial(_noticing_questions, tape.outermost, function) if tape.outermost.may_choose() else function

    def deciding(self, number: Any) -> Deciding | None:
        """What a program decides by, if a tape records for one that decides on numbers."""
        tape = _tape_that_decides() if isinstance(number, Symbol) else None
        return None if tape is None else Deciding(tape)


def _positions_in(tape: Tape, item: Any) -> set[int]:
    """The positions of symbols, and of Values from outside, in an item."""
    found: set[int] = set()

    def note(leaf: Any) -> Any:
        found.add(leaf._position if isinstance(leaf, Symbol) else tape.values.get(leaf, -1))
        return leaf

    filled(item, note)
    return found


def _noticing_questions(tape: Tape, function: Callable[[Any], Any], item: Any) -> Any:
    """What a function returns for an item; if it asks what depends on it, the trace begins again."""
    questions = cast("Questions", tape.questions)
    before = questions.count()
    result = function(item)
    if questions.count() > before and questions.read(before, _positions_in(tape, item)):
        tape.asks_in_iterations = True
        raise TraceError("an iteration asks")  # and it is traced again
    return result


def _tape_that_decides() -> Tape | None:
    """The tape that records, if its program decides on numbers."""
    tape = recorder_on_top()
    return tape if isinstance(tape, Tape) and tape.decides() else None


def _mapped(function: Callable[..., Any], item: Callable[[int], Any], count: int, tape: Tape) -> list[Any]:
    """What a function returns for the first items: for all where it does the same for each, or often for one.

    The first iteration runs as it is written, in case the function changes something. Then two are recorded. Where few
    rows stand for many, outlines have shown that it changes nothing and does the same each time: one is recorded.
    """
    reached = ClosedOver([("", function)])
    begin, before = len(tape.operations), len(tape.maps) + len(tape.decisions)
    first = [] if tape.in_lanes else [function(item(0))]
    end = len(tape.operations)
    is_small = not tape.in_lanes and tape.size_from(begin) * count < OPERATIONS_MAPPED
    if (is_small and not tape.writes_out) or not reached.is_as_before():
        return first
    recorded = []
    for index in (1, 2) if first else (0,):
        leaves, body, given = Leaves(), Body(tape), (item(index),)
        try:
            key = told(given, leaves.described)
            body.record(function, given, leaves)
        except Exception as error:  # one of the function's own comes again where it runs as it is written
            if is_of_handler(error) or not reached.is_as_before():
                raise
            return first
        if tape.in_lanes and body.size < _MOST_OF_ONE and not tape.writes_out:
            return first
        recorded.append((key, body.written()))
    if recorded[0] != recorded[-1] or not reached.is_as_before():
        return first
    stays = len(tape.maps) + len(tape.decisions) > before  # the first item has functions of its own inside
    for start in range(stays, len(first) + 1):
        rows = _rows(item, range(start, count), key)
        if rows and are_rounded_alike(tape, rows) and (made := body.mapped(rows)):
            tape.repeated += [range(begin, end)] * (start < len(first))
            return first[:start] + made
    return first


def _rows(item: Callable[[int], Any], items: range, key: Any) -> list[list[Value]]:
    """The Values among these items, a row for each; nothing if anything else differs from item to item."""
    rows: Any = plain_rows([list(item(index).values()) for index in items])
    if rows:
        return rows
    rows = []
    for index in items:
        leaves = Leaves()
        try:
            if told((item(index),), leaves.described) != key:
                return []
        except UnlikeError:
            return []
        rows.append(leaves.all)
    return rows
