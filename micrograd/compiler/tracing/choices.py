"""Choices: what an iteration of ``mg.vmap`` asks of its numbers, as by ``if x > 0``, is left to the program.

    mg.vmap(lambda x: x * x if x > 0 else -x)       is recorded as
    mg.vmap(lambda x: mg.cond(x > 0, lambda: x * x, lambda: -x))

An iteration runs until it asks. The program decides by what it asks for, and each of both branches runs the iteration
from its beginning, with one answer more. Otherwise, the answers of all rows would make a path of the function, and
other numbers would mostly take another path.

A program may round otherwise than Python. Where rounding might decide, a number is NaN, so that the call runs eagerly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, cast

from micrograd._support.interrupts import is_of_handler
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.refusals import TraceError, refuse
from micrograd.compiler.ir.entries import EQUAL, INPUT
from micrograd.compiler.tracing.body import Body
from micrograd.compiler.tracing.questions import Questions
from micrograd.compiler.tracing.symbols import BoolSymbol, Symbol, refuse_int
from micrograd.engine import primitives
from micrograd.engine.differentiation import is_differentiated
from micrograd.engine.recorder import recorder_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.tracing.tape import Tape

FEWEST_CHOOSING = 8  # items: fewer take few paths
_MOST_ASKED, _MOST_BRANCHES = 10, 32  # in one iteration; each branch is traced from the beginning


class _AskedForTruthError(BaseException):
    """An iteration asks, and there is no answer. A function that catches any Exception shall not catch this.

    Args:
        number: what the program decides by.
    """

    def __init__(self, number: Symbol) -> None:
        super().__init__()
        self.number = number


class _Answers(Questions):
    """The answers to the first questions of an iteration. The next question ends it.

    Args:
        tape: of the number that is asked for.
        answers: the answers; those that were given are taken out.
        rounding: see Questions; None for an outline, which has no numbers.
    """

    def __init__(self, tape: Tape, answers: list[bool], rounding: float | None) -> None:
        super().__init__(tape, (), rounding or 0.0)
        self._answers, self._decides_exactly = answers, rounding is None

    def truth(self, position: int, is_bool: bool) -> bool:
        if self._answers:
            return self._answers.pop(0)
        if not self._decides_exactly:
            self._ask_truth(position, is_bool, truth=True)
            position = self._asked[-1].position
        raise _AskedForTruthError(self._tape._symbol(position, BoolSymbol))

    def whole(self, position: int, of_number: Callable[[float], int]) -> NoReturn:
        """It may be any, and each would be a branch."""
        self._tape.follow()
        refuse_int()

    def _is_before(self, position: int) -> bool:
        """Whether a position is that of what the program has computed before, and maybe rounded."""
        tape = self._tape
        if tape.operations.primitives[position] is not INPUT:
            return False
        name = tape.operations[position][1]
        if not isinstance(tape, Body) or not isinstance(name, tuple):
            return isinstance(name, str)  # the results of calls and decisions
        kind, number = name
        if kind == "given" and number in tape.rounded:
            return True
        around, outside = tape.around(name)
        return not _Answers(around, [], self.rounding).is_unrounded(outside)


class Choosing:
    """Lets the program decide what is asked.

    Args:
        tape: the outermost one, of a trace or an outline.
        chosen: gives what one of two branches returns, for what the program decides by.
        rounding: see Questions; None for an outline.
    """

    def __init__(self, tape: Tape, chosen: Callable[..., Any], rounding: float | None) -> None:
        self._tape, self._chosen, self._rounding = tape, chosen, rounding
        self._asked: set[tuple[bool, ...]] = set()  # after which answers there is another question
        self._mixes = is_differentiated()  # a float and a Value: a transform gives plain numbers of both

    def of(self, function: Callable[[Any], Any], item: Any) -> Any:
        """What a function of the items of ``mg.vmap`` returns."""
        if self._rounding is not None and not cast("Tape", recorder_on_top()).decides():
            with self._tape.answering(None):
                return function(item)
        reached = ClosedOver([("", function)])
        result = self.result(lambda: function(item))
        if not reached.is_as_before():  # in a branch that eagerly would not have run
            self._tape.follow()
        return result

    def result(self, function: Callable[[], Any], answers: tuple[bool, ...] = ()) -> Any:
        """What a function returns, if its first questions have these answers."""
        left = [*answers]
        try:
            with self._tape.answering(lambda tape: _Answers(tape, left, self._rounding)):
                return function()
        except _AskedForTruthError as asked:
            number = asked.number
        self._asked.add(answers)
        if len(answers) == _MOST_ASKED or len(self._asked) == _MOST_BRANCHES:
            refuse("more than a few questions in an iteration", "Write mg.while_loop, or mg.where.")
        tape, follows = cast("Tape", recorder_on_top()), self._tape.follows
        if self._rounding is not None:
            tape.apply(primitives.sqrt, 0.0 - tape.apply(EQUAL, number, 0.5))
        branches = [lambda answer=answer: self.result(function, (*answers, answer)) for answer in (True, False)]
        try:
            return self._chosen(number, branches, (), mixes=self._mixes)
        except Exception as error:
            if isinstance(error, (TraceError, MemoryError)) or is_of_handler(error):
                raise
            self._tape.follows = follows
            return self._of_branch_that_returns(tape, number, branches)

    def _of_branch_that_returns(self, tape: Tape, number: Symbol, branches: Sequence[Callable[[], Any]]) -> Any:
        """What one of two branches returns, where the other one raises: for that, a number is NaN."""
        try:
            result = branches[0]()
        except Exception as error:
            if isinstance(error, TraceError) or is_of_handler(error):
                raise
            result = branches[1]()
            number = 1.0 - number
        tape.apply(primitives.sqrt, number - 1.0)
        return result


def rounded_columns(tape: Tape, rows: Any) -> list[int]:
    """The numbers of those columns of positions in which a number may have been rounded."""
    if not tape.outermost.chooses:
        return []
    known = _Answers(tape, [], 0.0)
    return [number for number, column in enumerate(rows.T.tolist()) if not all(map(known.is_unrounded, column))]
