"""Every path: a function with few ways through it as one program, in which choices stand for its decisions.

That is for programs that run for many examples at a time, as those of fit do, where each example may take another way.
The function is traced for each of them. What all have in common is written once, and of the results one is chosen:

    if x > 0:
        return mg.log(x)           where(x > 0,  log(where(x > 0, x, 0.5)),  -x)
    return -x

What may raise is given a number that it does not raise for, unless the example takes its path. Where rounding might
decide, or an example takes a path that raises, the result is not a number, so the step is taken eagerly.

What is decided by numbers that stay, such as the task that an example belongs to, is no choice. The trace follows the
answers of its own example, and is for those examples that have the same ones.
"""

from __future__ import annotations

import math
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd.compiler.guards.refusals import TraceError, refuse
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EQUAL, INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE, made_at
from micrograd.compiler.ir.safe import is_safe
from micrograd.compiler.passes.histories import Replay
from micrograd.compiler.tracing.questions import Questions, UndecidedError
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.symbols import Symbol, refuse_int
from micrograd.compiler.tracing.tape import Tape
from micrograd.compiler.tracing.trace import trace, traced_on
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import form_of, in_order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.entries import Called, Trace

_MOST_PATHS, _MOST_QUESTIONS = 64, 64
_HARMLESS = 0.5  # in the place of an operand, where nobody needs the result


class _Followed(NamedTuple):
    """What is decided by a number that stays: its position on the tape, what makes the answer of it, and the answer."""

    position: int
    of_number: Callable[[float], int]
    answer: int


class _Answering(Questions):
    """Questions with known answers; all after these are answered by yes.

    Args:
        answers: the known ones; all that are given are added.
        followed: what is decided by numbers that stay; it is added, too.
        stay: how many of the leaves, the first ones, do.
        *questions: what Questions take.
    """

    def __init__(self, answers: list[bool], followed: list[_Followed], stay: int, *questions: Any) -> None:
        super().__init__(*questions)
        self._answers, self._followed, self._stay = answers, followed, stay

    def truth(self, position: int, is_bool: bool) -> bool:
        if self._stays(position):
            return bool(self._follow(position, bool))
        number = len(self._asked)
        if number == _MOST_QUESTIONS:
            _refuse_many()
        if number == len(self._answers):
            self._answers.append(True)
        self._ask_truth(position, is_bool, self._answers[number])
        return self._answers[number]

    def whole(self, position: int, of_number: Callable[[float], int]) -> int:
        """It may be any, and each would be a path, unless it is the same in all steps."""
        return self._follow(position, of_number) if self._stays(position) else refuse_int()

    def _follow(self, position: int, of_number: Callable[[float], int]) -> int:
        answer = of_number(self._number(position))
        self._followed.append(_Followed(position, of_number, answer))
        return answer

    def _stays(self, position: int) -> bool:
        """Whether the number at a position is made of numbers that stay."""
        written, seen, waiting = self._tape.operations, {position}, [position]
        while waiting:
            this = waiting.pop()
            if written.primitives[this] is INPUT and made_at(self._tape, this) is None:
                name = written.names[written.first[this]]
                if isinstance(name, Value) or name >= self._stay:
                    return False
            new = set(self._operands(this)) - seen
            seen |= new
            waiting += new
        return True


class _Asked(Questions):
    """Questions that were followed, for the numbers of another example."""

    def are(self, followed: Sequence[_Followed]) -> bool:
        try:
            return all(each.of_number(self._number(each.position)) == each.answer for each in followed)
        except (ArithmeticError, ValueError, UndecidedError):
            return False


def _serves(paths: Sequence[tuple[Trace, list[_Followed]]], rounding: float, arguments: Structure) -> bool:
    """Whether an example has the answers that were followed on all paths."""
    leaves = arguments.leaves
    return all(_Asked(found, leaves, rounding).are(followed) for found, followed in paths)


def _refuse_many() -> None:
    refuse(
        f"the truth of numbers, with more than {_MOST_PATHS} ways through the function,",
        "Write mg.where(x > 0, a, b), mg.maximum or mg.minimum, which make none.",
    )


def trace_of_every_path(source: Source) -> Trace:
    """The trace of a function in which choices stand for its decisions.

    Raises:
        TraceError: if there are too many paths, or they return what has two structures.
    """
    paths, followed = _traced_paths(source)
    if (made := paths.get(())) is None:
        whole = _Whole(paths)
        made = trace(source.of(whole.run, takes_calls=source.takes_calls))
        made = made.made_of(each for each in paths.values() if each is not None)
    return made if not followed else made._replace(serves=partial(_serves, followed, source.rounding or 0.0))


def results_of_paths(function: Callable[..., Any], arguments: Structure, rounding: float) -> list[Any]:
    """What a function returns on each of its paths, with symbols in the place of numbers.

    Args:
        function: which is traced for each path.
        arguments: its positional and its named arguments.
        rounding: see trace.

    Raises:
        TraceError: if there are too many paths.
    """
    paths, _ = _traced_paths(Source(function, arguments, rounding=rounding, every_path=0))
    return [each.result.nested for each in paths.values() if each is not None]


def _traced_paths(
    source: Source,
) -> tuple[dict[tuple[bool, ...], Trace | None], list[tuple[Trace, list[_Followed]]]]:
    """The trace of each path by its answers, or None where it raises; and what of each follows from the arguments."""
    paths: dict[tuple[bool, ...], Trace | None] = {}
    followed: list[tuple[Trace, list[_Followed]]] = []
    waiting: list[tuple[bool, ...]] = [()]
    while waiting:
        known = waiting.pop()
        answers, of_path = [*known], list[_Followed]()
        tape = Tape(source.as_floats, source.is_recorded)
        tape.takes_calls = source.takes_calls
        try:
            found = traced_on(tape, source, partial(_Answering, answers, of_path, source.every_path or 0))
        except UndecidedError as error:
            raised = error.__cause__ or error
            if of_path or isinstance(raised, TraceError):
                raise raised from None
            paths[tuple(answers)] = None  # eager, it is raised where an example takes this path
        else:
            if of_path:
                followed.append((found, of_path))
            paths[tuple(answers)] = found
        waiting += [(*answers[:number], False) for number in range(len(known), len(answers))]
        if len(paths) + len(waiting) > _MOST_PATHS:
            _refuse_many()
    if not any(paths.values()):
        raise raised
    return paths, followed


class _Whole:
    """All paths as one function.

    Args:
        paths: the trace of each, by its answers; None for one that raises.
    """

    def __init__(self, paths: dict[tuple[bool, ...], Trace | None]) -> None:
        self._paths = paths
        traces = [each for each in paths.values() if each is not None]
        self._result: Structure = traces[0].result
        form = form_of(self._result.nested)
        if any(form_of(each.result.nested) != form for each in traces):
            refuse(
                "a choice between results of two structures",
                "Let the function return the same containers, whatever it decides.",
            )

    def run(self, *arguments: Any, **named: Any) -> Any:
        tape, given = cast("Tape", recorder_on_top()), Structure((arguments, named)).leaves
        self._replays = {
            answers: None if found is None else _Masked(tape, found, given, answers)
            for answers, found in self._paths.items()
        }
        return self._result.rebuilt(self._results(tape, ()))

    def _results(self, tape: Tape, known: tuple[bool, ...]) -> list[Any]:
        """The results for those examples that have these answers."""
        if known in self._paths:
            replay = self._replays[known]
            return [math.nan] * len(self._result.leaves) if replay is None else replay.results(self._result.nested)
        then, otherwise = (self._results(tape, (*known, answer)) for answer in (True, False))
        under = [each for answers, each in self._replays.items() if answers[: len(known)] == known]
        replay = next((each for each in under if each is not None), None)
        if replay is None:
            return then
        replay.taken_until(len(known) + 1)  # where rounding might decide, this is noticed
        asked = replay.asked(len(known))
        pairs = zip(then, otherwise, strict=True)
        return [tape._symbol(tape.apply(primitives.where, asked, x, y)._position, Symbol) for x, y in pairs]


class _Masked(Replay):
    """Writes a path, which has these answers; of it nothing raises for examples that take others."""

    def __init__(self, tape: Tape, found: Trace, given: Sequence[Any], answers: tuple[bool, ...]) -> None:
        super().__init__(tape, found, given)
        self._answers, self._asked = answers, [question.position for question in found.questions]
        self._taken: list[Symbol] = []  # after each question, whether the path has been taken up to there

    def results(self, like: Any) -> list[Any]:
        """What the function returns on this path, in the order of another path's result."""
        outputs = iter(self.trace.outputs)
        leaves = self.trace.result.leaves
        found = [self.symbol(next(outputs), Symbol) if isinstance(leaf, Symbol) else leaf for leaf in leaves]
        return Structure(in_order_of(self.trace.result.rebuilt(found), like), returned=True).leaves

    def asked(self, number: int) -> Symbol:
        return self.symbol(self._asked[number], Symbol)

    def written(self, primitive: Any, position: int, operands: list[int]) -> list[int]:
        """The operands, or others for examples that take another path."""
        number = sum(asked < position for asked in self._asked)
        if not number or primitive is SUM_OF_PRODUCTS or (primitive is not TAKE and is_safe(primitive)):
            return operands
        if primitive is TAKE:
            return [self._masked(number, operands[0], 0.0), *operands[1:]]
        primitive.forward(*[_HARMLESS] * len(operands))
        return [self._masked(number, operand, _HARMLESS) for operand in operands]

    def given_to(self, called: Called, operands: list[Any]) -> list[Any]:
        """The operands of a call, or for examples that take another path a matrix that all functions take."""
        number = sum(asked < called.hub[0] for asked in self._asked)
        return [self._masked_in(number, each) if number and each.dtype != float else each for each in operands]

    def _masked_in(self, number: int, operand: Any) -> Any:
        rows, columns = operand.shape[-2:]
        harmless = np.eye(rows, columns) * (1 + np.arange(columns) / columns)  # no two of its eigenvalues are equal
        numbers = np.broadcast_to(harmless, operand.shape).ravel().tolist()
        pairs = zip(operand.ravel().tolist(), numbers, strict=True)
        return np.array([self._masked(number, *pair) for pair in pairs], dtype=np.int64).reshape(operand.shape)

    def _masked(self, number: int, operand: int, harmless: float) -> int:
        """The position of an operand for examples on this path, and of a harmless number for others."""
        if self.tape.operations.primitives[operand] is LITERAL:
            return operand
        symbol = self.tape._symbol(operand, Symbol)
        position: int = self.tape.apply(primitives.where, self.taken_until(number), symbol, harmless)._position
        return position

    def taken_until(self, number: int) -> Symbol:
        """Whether an example has the answers of this path to so many questions."""
        while len(self._taken) < number:
            count = len(self._taken)
            asked, before = self.asked(count), self._taken[-1:]
            close: Any = reduce(lambda x, y: x * y, before, self.tape.apply(EQUAL, asked, 0.5))
            self.tape.apply(primitives.sqrt, 0.0 - close)  # it is NaN where rounding might decide
            holds = asked if self._answers[count] else self.tape.apply(primitives.is_zero, asked)
            self._taken.append(reduce(lambda x, y: x * y, before, holds))
        return self._taken[number - 1]
