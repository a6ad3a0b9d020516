"""Choices: what an iteration of ``mg.vmap`` asks of its numbers, as by ``if x > 0``, is left to the program.

    mg.vmap(lambda x: x * x if x > 0 else -x)       is recorded as
    mg.vmap(lambda x: mg.cond(x > 0, lambda: x * x, lambda: -x))

An iteration runs until it asks. The program decides by what it asks for, and each of both branches runs the iteration
from its beginning, with one answer more. Otherwise, the answers of all rows would make a path of the function, and
other numbers would mostly take another path. Where all branches are short and raise nothing, the program computes
all of them, side by side for many items, and selects: ``mg.where(x > 0, x * x, -x)``.

A program may round otherwise than Python. Where rounding might decide, a number is NaN, so that the call runs eagerly.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from micrograd._support.interrupts import is_of_handler
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.refusals import TraceError, refuse
from micrograd.compiler.ir.entries import EQUAL, INPUT
from micrograd.compiler.tracing.body import Body, Leaves, returned
from micrograd.compiler.tracing.promotion import kind_of_number
from micrograd.compiler.tracing.questions import Questions
from micrograd.compiler.tracing.symbols import BoolSymbol, FloatSymbol, Symbol, class_of, refuse_int
from micrograd.engine import primitives
from micrograd.engine.differentiation import is_differentiated
from micrograd.engine.recorder import recorder_on_top
from micrograd.loops import form_of, in_order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from micrograd.compiler.guards.structure import Structure
    from micrograd.compiler.tracing.tape import Tape

FEWEST_CHOOSING = 8  # items: fewer take few paths
_MOST_ASKED, _MOST_BRANCHES = 10, 32  # in one iteration; each branch is traced from the beginning


class _AskedForTruthError(BaseException):
    """An iteration asks, and there is no answer. A function that catches any Exception shall not catch this.

    Args:
        number: what the program decides by.
        may_be_close: whether it is 0.5 where rounding might decide.
    """

    def __init__(self, number: Symbol, may_be_close: bool) -> None:
        super().__init__()
        self.number, self.may_be_close = number, may_be_close


class _Answers(Questions):
    """The answers to the first questions of an iteration. The next question ends it.

    Args:
        tape: of the number that is asked for.
        answers: the answers; those that were given are taken out.
        rounding: see Questions; None for an outline, which has no numbers.
        raised: what ends the iteration is put there, too, as the function may catch it.
    """

    def __init__(
        self, tape: Tape, answers: list[bool], rounding: float | None, raised: list[_AskedForTruthError]
    ) -> None:
        super().__init__(tape, (), rounding or 0.0)
        self._exactness = tape.exactness
        self._answers, self._decides_exactly, self._raised = answers, rounding is None, raised

    def truth(self, position: int, is_bool: bool) -> bool:
        if self._answers:
            return self._answers.pop(0)
        if not self._decides_exactly:
            self._ask_truth(position, is_bool, truth=True)
            position = self._asked[-1].position
        may_be_close = self._tape.operations.primitives[position] is primitives.where
        self._raised.append(_AskedForTruthError(self._tape._symbol(position, BoolSymbol), may_be_close))
        raise self._raised[-1]

    def whole(self, position: int, of_number: Callable[[float], int]) -> NoReturn:
        """It may be any, and each would be a branch."""
        self._tape.outermost.follows = True
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
        return not _Answers(around, [], self.rounding, []).is_unrounded(outside)


class Choosing:
    """Lets the program decide what is asked.

    Args:
        tape: the outermost one, of a trace or an outline.
        chosen: gives what one of two branches returns, for what the program decides by.
        rounding: see Questions; None for an outline.
        of_branch: gives what counts of the result of a branch; None: all.
    """

    def __init__(
        self,
        tape: Tape,
        chosen: Callable[..., Any],
        rounding: float | None,
        of_branch: Callable[[Any], Any] | None = None,
    ) -> None:
        self._tape, self._chosen, self._rounding = tape, chosen, rounding
        self._of_branch = of_branch or (lambda result: result)
        self._asked: set[tuple[bool, ...]] = set()  # after which answers there is another question
        self._selects: bool | None = None
        self._checks = True  # whether a number is NaN where rounding might decide
        self._asks_nothing = False
        self._mixes = is_differentiated()  # a float and a Value: a transform gives plain numbers of both

    def of(self, function: Callable[[Any], Any], item: Any) -> Any:
        """What a function of the items of ``mg.vmap`` returns."""
        if self._rounding is None:
            return self.result(lambda: function(item))
        tape = cast("Tape", recorder_on_top())
        if self._selects is None:
            reached = ClosedOver([("", function)])
            self._selects = self._is_short_and_safe(tape, lambda: function(item))
            if not reached.is_as_before():  # in a branch that eagerly would not have run
                self._tape.follow()
        if self._selects:
            with self._selecting(), self._tape.following_errors():
                return self.result(lambda: function(item))
        if tape.decides():
            return self.result(lambda: function(item))
        with self._tape.answering(None):  # the iterations that are recorded once may not ask
            return function(item)

    @property
    def has_asked(self) -> bool:
        """Whether there was a question."""
        return bool(self._asked)

    def selected(self, function: Callable[[], Any]) -> Any:
        """What a function returns, selected among what all of its branches give.

        Raises:
            TraceError: if these are long, or may raise.
        """
        if self._selects is None:
            self._checks = False  # which raises nothing that eager would not
            is_safe = self._is_short_and_safe(cast("Tape", recorder_on_top()), function)
            self._checks = True
            if self._asks_nothing:  # so far
                return function()
            self._selects = is_safe
        if not self._selects:
            refuse("a choice of long branches in a loop", "Write mg.cond.")
        with self._selecting():
            return self.result(function)

    def result(self, function: Callable[[], Any], answers: tuple[bool, ...] = ()) -> Any:
        """What a function returns, if its first questions have these answers."""
        left, asked = [*answers], list[_AskedForTruthError]()
        try:
            with self._tape.answering(lambda tape: _Answers(tape, left, self._rounding, asked)):
                result = function()
        except BaseException as error:
            if not asked or (error is not asked[0] and is_of_handler(error)):
                raise
            if error is not asked[0]:
                self._refuse_what_catches_all()
        else:
            if asked:
                self._refuse_what_catches_all()
            return result
        number, asked_closely = asked[0].number, asked[0].may_be_close
        self._asked.add(answers)
        if len(answers) == _MOST_ASKED or len(self._asked) == _MOST_BRANCHES:
            self._refuse("more than a few questions in an iteration", "Write mg.while_loop, or mg.where.")
        tape, follows = cast("Tape", recorder_on_top()), self._tape.follows
        branches = [
            lambda answer=answer: self._of_branch(self.result(function, (*answers, answer))) for answer in (True, False)
        ]
        try:
            with self._tape.following_errors():
                if asked_closely and self._checks:
                    tape.apply(primitives.sqrt, 0.0 - tape.apply(EQUAL, number, 0.5))
                return self._chosen(number, branches, (), mixes=self._mixes)
        except Exception as error:
            if isinstance(error, (TraceError, MemoryError)) or is_of_handler(error):
                raise
            self._tape.follows = follows
            return self._of_branch_that_returns(tape, number, branches)

    def _refuse_what_catches_all(self) -> NoReturn:
        """The function has caught what ends it where it asks."""
        self._refuse("a question in code that catches BaseException", "Write except Exception.")

    def _refuse(self, what: str, instead: str) -> NoReturn:
        """Let the trace be repeated with questions, which make paths."""
        with self._tape.following_errors():
            refuse(what, instead)

    @contextmanager
    def _selecting(self) -> Iterator[None]:
        """Select among the results of all branches."""
        decided, self._chosen = self._chosen, self._selection
        try:
            yield
        finally:
            self._chosen = decided

    def _is_short_and_safe(self, tape: Tape, function: Callable[[], Any]) -> bool:
        """Whether all branches may be computed: together they are short, decide nothing, and raise for no numbers."""
        body, follows, self._asks_nothing = Body(tape), self._tape.follows, False
        try:
            with self._selecting():
                body.record(lambda: self._of_branch(self.result(function)), (), Leaves())
        except Exception as error:
            if is_of_handler(error):
                raise
            self._tape.follows = follows
            self._asked.clear()
            return False
        self._asks_nothing = not self._asked
        return body.is_simple()

    def _selection(self, number: Symbol, branches: Sequence[Callable[[], Any]], _: Any, mixes: bool) -> Any:
        """What one of two branches returns, where both are computed."""
        tape = cast("Tape", recorder_on_top())
        first, second = (branch() for branch in branches)
        first, second = returned(first), returned(in_order_of(second, first))
        return selected(tape, number, first, second, kinds_of_either(first, second, mixes))

    def _of_branch_that_returns(self, tape: Tape, number: Symbol, branches: Sequence[Callable[[], Any]]) -> Any:
        """What one of two branches returns, where the other one raises: for that, a number is NaN."""
        try:
            result = branches[0]()
        except Exception as error:
            if is_of_handler(error):  # pragma: no cover  # which may raise at any moment
                raise
            result = branches[1]()
            number = 1.0 - number
        tape.apply(primitives.sqrt, number - 1.0)
        return result


def selected(tape: Tape, number: Symbol, first: Structure, second: Structure, kinds: Sequence[type[Symbol]]) -> Any:
    """One of two results, number by number, of these classes: the first one where a number is not 0."""
    pairs = zip(first.leaves, second.leaves, kinds, strict=True)
    return first.rebuilt(
        [tape._symbol(tape.apply(primitives.where, number, x, y)._position, kind) for x, y, kind in pairs]
    )


def rounded_columns(tape: Tape, rows: Any) -> list[int]:
    """The numbers of those columns of positions in which a number may have been rounded."""
    if not tape.outermost.chooses:
        return []
    known = _Answers(tape, [], 0.0, [])
    return [number for number, column in enumerate(rows.T.tolist()) if not all(map(known.is_unrounded, column))]


def are_rounded_alike(tape: Tape, rows: Iterable[Iterable[Any]]) -> bool:
    """Whether the numbers of all items may have been rounded where those of the first one may have been."""
    if not tape.outermost.chooses:
        return True
    known = _Answers(tape, [], 0.0, [])
    return len({tuple([known.is_unrounded(tape.position(leaf)) for leaf in row]) for row in rows}) < 2


# Results of branches


def kinds_of_either(first: Structure, second: Structure, mixes: bool, exactly: bool = True) -> list[type[Symbol]]:
    """The class of the symbol for each number of a result, which one of two branches returns.

    Args:
        first: what the one returns.
        second: what the other one returns.
        mixes: whether one may return a plain number where the other one returns a Value.
        exactly: whether they must differ in numbers only.

    Raises:
        TraceError: if they are of two structures.
    """
    kinds, others = kinds_of(first), kinds_of(second)
    if form_of(first.nested) != form_of(second.nested) or (
        exactly and not (_are_alike(kinds, others, mixes) and _is_same(first, second))
    ):
        refuse(
            "a choice between results of two structures",
            "Let both functions that mg.cond is given return the same containers.",
        )
    return [kind_of_both(x, y) for x, y in zip(kinds, others, strict=True)]


def _is_same(*results: Structure) -> bool:
    """Whether two results differ in numbers only."""
    both = [each.rebuilt([0.0] * len(each.leaves)) for each in results]
    return bool(both[0] == both[1])


def kinds_of(structure: Structure) -> list[type[Symbol]]:
    """The class of the symbol for each leaf: that of Values, or of plain numbers of a kind."""
    return [class_of(kind_of_number(leaf)) for leaf in structure.leaves]


def kind_of_both(x: type[Symbol], y: type[Symbol]) -> type[Symbol]:
    """The class of the symbol for either of two numbers: a Value if one of them is, or a float."""
    if x is y:
        return x
    return Symbol if Symbol in (x, y) else FloatSymbol


def _are_alike(kinds: Sequence[type[Symbol]], others: Sequence[type[Symbol]], mixes: bool) -> bool:
    """Whether they are the same, but that a float may be one of NumPy's, or a plain number a Value."""
    pairs = zip(kinds, others, strict=True)
    return all(
        x is y or (mixes and Symbol in (x, y)) or {getattr(each, "kind", None) for each in (x, y)} == _FLOATS
        for x, y in pairs
    )


_FLOATS = {float, np.dtype(float)}
