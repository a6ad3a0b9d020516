"""Histories: a loop that asks in every iteration becomes two bodies, and what is answered becomes data.

    for _ in range(200):
        height, speed = height + 0.01 * speed, speed - 0.1
        if height < 0:
            height, speed = -0.9 * height, -0.9 * speed

has 2 ** 200 histories. It is traced for two: all questions are answered by yes, and all by no. What lies between two
questions is a segment. Python is deterministic: what a segment does follows from where the function stands, from what
is in its variables, and from the answer. So both traces are looked at whenever they ask. If they stand in the same
position, with the same in all variables but for numbers that are computed, then each segment may follow either of the
two before it, whatever the other answers were. The program runs one of both for each question: a loop, where those of
all iterations are alike.

Some of what a segment follows from is in no variable: what an expression has computed so far, and what ``max`` or
``sorted`` has seen. So the function is traced for other answers, too, and each segment must be one of those two.

Where anything else differs, such as a count of the bounces, each history stays a path of its own.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EQUAL, INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE, Called
from micrograd.compiler.ir.safe import is_safe
from micrograd.compiler.tracing.body import UnlikeError
from micrograd.compiler.tracing.decisions import chosen, repeated
from micrograd.compiler.tracing.questions import Questions
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape
from micrograd.compiler.tracing.trace import trace, traced_on
from micrograd.compiler.tracing.variables import Look
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import FrameType

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.tracing.source import Source

_SHORT = 64  # operations that take no longer than a decision
_MOST_LOOKED_AT = 100_000  # objects in variables, at all questions of a history: each takes some microseconds
_MOST_SEGMENTS = 64  # that are not alike: more take long to compile


class _Snapshot(NamedTuple):
    """What a trace is at a question, or at its end.

    Attributes:
        begin: how many operations are written.
        known: where the function stands, and all in its variables that is no number of the trace.
        state: the positions of these numbers.
        kinds: which symbols stand for them.
    """

    begin: int
    known: Any
    state: tuple[int, ...]
    kinds: tuple[type[Symbol], ...]


def _snapshot(look: Look, tape: Tape, known: Any) -> _Snapshot:
    return _Snapshot(len(tape.operations), known, tuple(look.state), tuple(look.kinds))


class _Forced(Questions):
    """Questions whose answers do not depend on numbers.

    Args:
        answer: the answer to a question, by its number.
        most: how many there may be.
        *questions: what Questions take.

    Attributes:
        snapshots: what the trace is at each.
    """

    def __init__(self, answer: Callable[[int], bool], most: int, *questions: Any) -> None:
        super().__init__(*questions)
        self._answer, self._most = answer, most
        self.snapshots: list[_Snapshot] = []
        self._looked_at = 0

    def truth(self, position: int, is_bool: bool) -> bool:
        if len(self.snapshots) == self._most:
            raise UnlikeError
        found = self._answer(len(self.snapshots))
        self._ask_truth(position, is_bool, found)
        look = Look(self._tape)
        self.snapshots.append(_snapshot(look, self._tape, [look.frame(frame) for frame in _frames()]))
        self._looked_at += look.count
        if self._looked_at > _MOST_LOOKED_AT:
            raise UnlikeError
        self._exactness = {}
        return found

    def whole(self, position: int, of_number: Callable[[float], int]) -> int:
        """An int may be any."""
        raise UnlikeError

    def _is_before(self, position: int) -> bool:
        """Whether it was computed before this segment: then another history has another number there."""
        is_given = self._tape.operations.primitives[position] in (INPUT, LITERAL)
        return not is_given and bool(self.snapshots) and position < self.snapshots[-1].begin


def _frames() -> Iterator[FrameType]:
    """Those of the function that is traced, and of all that it has called, the last one first."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") in _OUTSIDE:
        frame = frame.f_back
    while frame is not None and frame.f_code is not traced_on.__code__:
        yield frame
        frame = frame.f_back


_OUTSIDE = dict.fromkeys((Questions.__module__, __name__, Symbol.__module__, Tape.__module__))


class _Forgetting(dict[Any, Any]):
    """It keeps nothing: an operation that is written again is not the first one, as a variable may be that."""

    def __setitem__(self, key: object, value: object) -> None:
        """Keep nothing."""


class _History(NamedTuple):
    """One of both traces.

    Attributes:
        trace: what it has written.
        snapshots: at each question, and at the end.
    """

    trace: Trace
    snapshots: list[_Snapshot]


# After so many questions, answers change. So any two differ in some history, unless a multiple of 8 lies between them.
_PERIODS = 1, 2, 4


def _traced(source: Source, answer: Callable[[int], bool]) -> _History:
    """The history of a function in which each question has the answer that follows from its number.

    Raises:
        UnlikeError: if there is none.
    """
    tape = Tape(source.as_floats, source.is_recorded)
    asked: list[_Forced] = []

    def ask(*given: Any) -> _Forced:
        asked.append(_Forced(answer, source.asked, *given))
        return asked[0]

    tape.known = _Forgetting()
    try:
        found = traced_on(tape, source, ask)
    except Exception as error:
        raise UnlikeError from error
    look = Look(tape)
    end = _snapshot(look, tape, look.at(found.result.nested))
    return _History(found, [*asked[0].snapshots, end._replace(begin=len(found.operations))])


def merged(source: Source) -> Trace:
    """The trace of a function in which all that is asked is data.

    Raises:
        UnlikeError: if that cannot be.
    """
    histories = [_traced(source, lambda number, answer=answer: answer) for answer in (True, False)]  # type: ignore[misc]
    whole = _Whole(*histories)
    for every in _PERIODS:
        for first in (True, False):
            whole.check(_traced(source, lambda number, every=every, first=first: (number // every % 2 == 0) is first))  # type: ignore[misc]
    made = trace(source.of(whole.run, takes_decisions=True))
    lines = Counter(os.path.basename(question.line) for question in histories[0].trace.questions)
    remarks = [f"asked  {line}: {count:,} times in a call; the answers are data" for line, count in lines.items()]
    return made.made_of(history.trace for history in histories)._replace(remarks=tuple(remarks))


class _Whole:
    """Both histories as one function.

    Args:
        yes, no: the histories.
    """

    def __init__(self, yes: _History, no: _History) -> None:
        if not _are_alike(yes, no):
            raise UnlikeError
        self._histories, self._live = (yes, no), _live(yes, no)
        self._segments = [
            tuple(_Segment(history, number, self._live) for history in self._histories)
            for number in range(len(yes.snapshots) - 1)
        ]
        texts = [tuple(segment.text for segment in pair) for pair in self._segments[:-1]]
        alike = [len([*same]) for _, same in groupby(texts)]
        if sum(count if count < _FEWEST_ALIKE else 2 for count in alike) > _MOST_SEGMENTS:
            raise UnlikeError
        self._alike = alike

    def check(self, history: _History) -> None:
        """See whether another history consists of segments of these two.

        Raises:
            UnlikeError: if it does not: then a segment follows from something that is in no variable.
        """
        if not _are_alike(self._histories[0], history):
            raise UnlikeError
        for number, question in enumerate(history.trace.questions):
            expected = self._segments[number][0 if question.answer else 1]
            if _Segment(history, number, self._live).text != expected.text:
                raise UnlikeError

    def run(self, *arguments: Any, **named: Any) -> Any:
        tape = cast("Tape", recorder_on_top())
        given = Structure((arguments, named)).leaves
        yes = self._histories[0]
        replay = Replay(tape, yes.trace, given)
        start = yes.snapshots[0]
        for position in range(start.begin):
            replay.at(position)
        asked = yes.trace.questions[0].position
        state = [replay.symbol(start.state[index], start.kinds[index]) for index in self._segments[0][0].live]
        state.append(replay.symbol(asked, Symbol))
        before = {position: replay.symbol(position, Symbol) for position in range(start.begin)}
        for segment in (each for pair in self._segments for each in pair):
            segment.given, segment.before = given, before
        number = 0
        for count in [*self._alike, 1]:
            pair = self._segments[number + count - 1]  # the first one of all reads no state
            if count < _FEWEST_ALIKE:
                for pair in self._segments[number : number + count]:
                    state = _answered(pair, state)
            else:
                *state, _ = repeated(
                    tape,
                    lambda state, count=count: state[-1] < float(count),
                    lambda state, pair=pair: [*_answered(pair, state[:-1]), state[-1] + 1.0],
                    [*state, 0.0],
                    count,
                )
            number += count
        result: Structure = yes.trace.result
        computed = iter(state)
        return result.rebuilt([next(computed) if isinstance(leaf, Symbol) else leaf for leaf in result.leaves])


_FEWEST_ALIKE = 3


def _answered(pair: tuple[_Segment, ...], state: Sequence[Any]) -> list[Any]:
    """The state after a question, whose answer is the last in the state; if it is close, the call runs eagerly."""
    tape = cast("Tape", recorder_on_top())
    *others, answer = state
    tape.apply(primitives.sqrt, 0.0 - tape.apply(EQUAL, answer, 0.5))
    if not all(segment.is_simple for segment in pair):
        found: list[Any] = chosen(tape, answer, pair, tuple(others))
        return found
    position, (yes, no) = tape.position(answer), (segment(*others) for segment in pair)  # quicker than a decision
    positions = [(tape.position(x), tape.position(y), type(x)) for x, y in zip(yes, no, strict=True)]
    return [
        tape._symbol(x, kind) if x == y else tape._written((primitives.where, position, x, y), True, kind)
        for x, y, kind in positions
    ]


def _are_alike(one: _History, other: _History) -> bool:
    """Whether two histories stand in the same positions whenever they ask, with the same in all but numbers."""
    pairs = [*zip(one.snapshots, other.snapshots, strict=False)]
    return (
        not any(each.trace.maps or each.trace.decisions for each in (one, other))  # which no snapshot shows
        and all(len(each.snapshots) - 1 == len(each.trace.questions) for each in (one, other))
        and len(one.snapshots) == len(other.snapshots)
        and all(x[1:2] + x[3:] == y[1:2] + y[3:] for x, y in pairs)
        and one.snapshots[0] == other.snapshots[0]
        and all(_pattern(x.state) == _pattern(y.state) for x, y in pairs[1:-1])
    )


def _pattern(state: Sequence[int]) -> list[int]:
    """Which numbers of a state are the same one: then, they are so whatever was answered before."""
    return [state.index(position) for position in state]


def _live(*histories: _History) -> list[int]:
    """Which numbers of a state differ from question to question, each once.

    Raises:
        UnlikeError: if a variable is at times what has another name, too: an argument, or a plain number.
    """
    columns = [
        [(position, history.trace.operations.primitives[position] in (INPUT, LITERAL)) for position in column]
        for history in histories
        for column in zip(*(snapshot.state for snapshot in history.snapshots[1:-1]), strict=True)
    ]
    half, begin = len(columns) // 2, histories[0].snapshots[0].begin
    found = dict[Any, int]()
    for number, column in enumerate(x + y for x, y in zip(columns[:half], columns[half:], strict=True)):
        is_constant = len(set(column)) == 1
        if any(is_leaf for _, is_leaf in column) and not is_constant:
            raise UnlikeError
        if not is_constant or column[0][0] >= begin:
            found.setdefault((tuple(column), histories[0].snapshots[0].state[number]), number)
    return list(found.values())


class _Segment:
    """What is written between two questions, or after the last.

    Args:
        history: the history.
        number: of the question before it.
        live: which numbers of a state are handed on.

    Attributes:
        given: the numbers of the arguments.
        before: for each position before the first question, what stands for it.
        text: what it does; two that do the same have the same.
        is_simple: whether it is short, and raises nothing.
    """

    def __init__(self, history: _History, number: int, live: Sequence[int]) -> None:
        self._history, self.given, self.before = history, list[Any](), dict[int, Symbol]()
        self._begin, self._end = history.snapshots[number : number + 2]
        self._first = history.snapshots[0].begin
        trace, last = history.trace, number + 2 == len(history.snapshots)
        self.live = live
        # the first one follows on what is known
        self._state = {self._begin.state[each]: index for index, each in enumerate(live)} if number else {}
        end = self._end
        if not last:
            end = end._replace(
                state=tuple(end.state[each] for each in live), kinds=tuple(end.kinds[each] for each in live)
            )
        self._end = end
        self._asked = () if last else (trace.questions[number + 1].position,)
        kinds = trace.operations.primitives
        # not what a segment writes only because no other one has yet
        written = [each for each in range(self._begin.begin, self._end.begin) if kinds[each] not in (INPUT, LITERAL)]
        self._number = {position: number for number, position in enumerate(written)}
        results = [*self._end.state, *self._asked]
        self.text = tuple(map(self._written, written)), tuple(map(self._code, results)), self._end.kinds
        simple = (kinds[each] is SUM_OF_PRODUCTS or is_safe(kinds[each]) for each in written)
        self.is_simple = len(written) <= _SHORT and all(simple)

    def _code(self, position: int) -> Any:
        """What stands at a position, told by how far on it is, or by what it is made of.

        Raises:
            UnlikeError: if it was computed in another segment, and is in no variable.
        """
        if position in self._state:
            return "state", self._state[position]
        if position < self._first:
            return "before", position
        trace = self._history.trace
        if trace.operations.primitives[position] in (INPUT, LITERAL):
            return trace.operations[position]
        if position < self._begin.begin:
            raise UnlikeError
        return "here", self._number[position]

    def _written(self, position: int) -> Any:
        trace = self._history.trace
        primitive = trace.operations.primitives[position]
        return primitive, tuple(map(self._code, trace.read(position))), position in trace.checked

    def __call__(self, *state: Any) -> list[Any]:
        """The state at the next question, and that question; or the results."""
        replay = Replay(cast("Tape", recorder_on_top()), self._history.trace, self.given)
        replay.made.update({position: replay.tape.position(state[index]) for position, index in self._state.items()})
        replay.before = self.before
        for position in range(self._begin.begin, self._end.begin):
            replay.at(position)
        ends = zip(self._end.state, self._end.kinds, strict=True)
        found = [replay.symbol(position, kind) for position, kind in ends]
        return [*found, *(replay.symbol(position, Symbol) for position in self._asked)]


class Replay:
    """Writes operations of one trace on the tape of another one.

    Args:
        tape: the tape.
        trace: what was written.
        given: the numbers of the arguments.

    Attributes:
        tape: the same.
        trace: the same.
        made: the position on the tape for each position of the history.
        before: what stands on a tape around for some of these positions.
    """

    def __init__(self, tape: Tape, trace: Trace, given: Sequence[Any]) -> None:
        self.tape, self.trace, self._given = tape, trace, given
        self.made: dict[int, int] = {}
        positions = np.array([*chain(*trace.inputs), *trace.outputs[len(trace.outputs) - trace.needed :]], dtype=int)
        self._calls = [each.numbered(positions) for each in trace.maps if isinstance(each, Called)]
        self.before: Mapping[int, Symbol] = {}

    def symbol(self, position: int, kind: type[Symbol]) -> Symbol:
        """The symbol for what stands at a position of the history."""
        return self.tape._symbol(self.at(position), kind)

    def at(self, position: int) -> int:
        """The position on the tape, where it is written if it is not yet."""
        waiting = [position]  # there may be as many as the history has operations
        while waiting:
            latest = waiting[-1]
            if missing := [each for each in self._read(latest) if each not in self.made]:
                waiting += reversed(missing)
                continue
            if waiting.pop() not in self.made:
                known = self.before.get(latest)
                self.made[latest] = self._written(latest) if known is None else self.tape.position(known)
        return self.made[position]

    def _read(self, position: int) -> Iterable[int]:
        """What has to be written before the operation at a position of the history."""
        if position in self.made or position in self.before:
            return ()
        primitive = self.trace.operations.primitives[position]
        if primitive is INPUT:
            called = self._called(position)
            return () if called is None else called.read().tolist()
        return () if primitive is LITERAL else self.trace.read(position)

    def _called(self, position: int) -> Called | None:
        """The call of a function of arrays that gives what stands at a position of the history."""
        return next((each for each in self._calls if position in each), None)

    def written(self, primitive: Any, position: int, operands: list[int]) -> list[int]:
        """The operands of the operation at a position of the history, which are positions on the tape."""
        return operands

    def given_to(self, called: Called, operands: list[Any]) -> list[Any]:
        """The operands of a call of a function of arrays, which are positions on the tape or numbers.

        Histories have no such calls, as no program decides between them.
        """
        raise NotImplementedError

    def _call(self, called: Called) -> None:
        """Write a call of a function of arrays, and all of its results."""
        operands = [
            each if each.dtype == float else np.array([*map(self.at, each.ravel().tolist())]).reshape(each.shape)
            for each in called.operands
        ]
        results = self.tape._call(called.function, self.given_to(called, operands), called.has_gradient)
        made = [cast("Called", self.tape.maps[-1]).hub, *map(np.ravel, results)]
        self.made.update(zip(called.made, np.concatenate(made).tolist(), strict=True))

    def _written(self, position: int) -> int:
        tape, written = self.tape, self.trace.operations
        primitive, name = written.primitives[position], written[position][1]
        if primitive is INPUT and (called := self._called(position)) is not None:
            self._call(called)
            return self.made[position]
        if primitive is INPUT:
            return tape.position(name if isinstance(name, Value) else self._given[name])
        if primitive is LITERAL:
            return tape.position(name)
        operands = self.written(primitive, position, [self.at(operand) for operand in self.trace.read(position)])
        if primitive is TAKE:
            table = tape.tables.setdefault(tuple(operands[1:]), len(tape.tables))
            operands = [operands[0], table]
        elif primitive is SUM_OF_PRODUCTS:
            half = 1 + len(operands) // 2
            rows = [tape.rows.setdefault(tuple(part), len(tape.rows)) for part in (operands[1:half], operands[half:])]
            operands = [operands[0], *rows]
        made: int = tape._written((primitive, *operands), True, Symbol)._position
        if position in self.trace.checked:
            tape.checked[made] = None
        return made
