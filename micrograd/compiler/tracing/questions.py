"""Questions: the decisions of a function on numbers, such as ``if x > 0``, which become guards of its program.

The trace follows the numbers of one call. Where the function asks for the truth of a comparison, or for the int of a
number, the tape so far is evaluated for these numbers, which gives the answer. The program computes the answers, too.
So each call sees whether the results are those that the function would give.

A program may round otherwise than Python, as it may add in another order. Where the two sides of a comparison are so
close that rounding might decide, it answers 0.5. No path has such an answer, so the call runs eagerly. What was rounded
at most once, as ``x - 1.0``, is bitwise the same everywhere.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd._support.callers import calling_frame
from micrograd._support.interrupts import is_of_handler
from micrograd.compiler.guards.refusals import TraceError, running_line
from micrograd.compiler.guards.words import running_expression
from micrograd.compiler.ir.entries import (
    DIFFERENTIATED_AS,
    EQUAL,
    INPUT,
    LESS,
    LESS_EQUAL,
    LITERAL,
    SUM_OF_PRODUCTS,
    TAKE,
    Called,
    made_at,
)
from micrograd.engine import further_primitives, primitives
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence


ROUNDING = {"float64": 3e-14, "float32": 1e-5}  # relative errors of what a program computes in a few steps
_LEAST = 1e-300  # of what is nearer, nothing can be said
_DEEPEST = 6  # operations that the size of a rounding error is followed through
_COMPARISONS = (LESS, LESS_EQUAL, EQUAL)
_CHOICES = {  # what gives one of its operands, or a whole number, without rounding
    *(primitives.where, primitives.maximum, primitives.minimum, primitives.relu, primitives.abs, primitives.neg),
    *(primitives.detach, primitives.identity, primitives.is_zero, *_COMPARISONS),
    *(further_primitives.floor, further_primitives.ceil, further_primitives.sign, DIFFERENTIATED_AS),
}
_SAME_SIZE = (primitives.neg, primitives.abs, primitives.detach)
_EXACT, _ROUNDED_ONCE, _ROUNDED = range(3)


class UndecidedError(TraceError):
    """The function is to run eagerly, and raises what it raises then.

    Args:
        message: why.
        raised: what the function raised on symbols, if it did.
        may_return: whether the result counts if nothing is raised then, because other numbers may have decided.
    """

    def __init__(self, message: str, raised: Exception | None = None, may_return: bool = True) -> None:
        super().__init__(message)
        self.raised, self.may_return = raised, may_return


class Question(NamedTuple):
    """A decision on a number.

    Attributes:
        position: of the answer on the tape.
        answer: what it was: 1 or 0 for a truth, or an int.
        line: which of the user's lines asked.
        text: what was asked, with the numbers.
        condition: the same as it is written, such as ``x > 0``; empty where Python or its source cannot tell.
        is_truth: whether the answer is a truth.
    """

    position: int
    answer: float
    line: str
    text: str
    condition: str
    is_truth: bool


class Questions:
    """The questions of one trace, and their answers for the numbers of one call.

    Args:
        tape: of the trace.
        leaves: the numbers and Values among the arguments.
        rounding: relative errors up to which the program's numbers may differ from Python's; see ROUNDING.
        given: the answers to the first questions, whatever the numbers are. The line of the last of them gets this
            answer for as many questions more: if it decides whether a loop goes on, the loop had better be too long.

    Attributes:
        rounding: the same.
    """

    def __init__(self, tape: Any, leaves: Sequence[Any], rounding: float, given: Sequence[float] = ()) -> None:
        self._asked: list[Question] = []
        self._undecided_by: UndecidedError | None = None
        self._tape, self._leaves, self.rounding, self._given = tape, leaves, rounding, given
        self._numbers: dict[int, float] = {}  # of each position that was asked for, and of what it depends on
        self._called: dict[int, list[float]] = {}  # the results of calls
        self._exactness: dict[int, int] = {}
        self._rows: list[tuple[int, ...]] = []
        self._tables: list[tuple[int, ...]] = []

    def answered(self) -> tuple[Question, ...]:
        """The questions, in order.

        Raises:
            UndecidedError: if one could not be answered, though the function has gone on.
        """
        if self._undecided_by is not None:
            raise self._undecided_by
        return tuple(self._asked)

    def are_given(self) -> bool:
        """Whether there are answers that do not follow from numbers."""
        return len(self._given) > 0

    def count(self) -> int:
        """How many questions there were."""
        return len(self._asked)

    def read(self, first: int, positions: Collection[int]) -> bool:
        """Whether a question, from the one of this number on, depends on what is at one of these positions."""
        waiting = {question.position for question in self._asked[first:]}
        seen = set(waiting)
        while waiting and seen.isdisjoint(positions):
            waiting = {operand for position in waiting for operand in self._operands(position)} - seen
            seen |= waiting
        return not seen.isdisjoint(positions)

    @contextmanager
    def undecided_by_errors(self) -> Iterator[None]:
        """Errors become an UndecidedError: eagerly, their messages show this call's numbers, and not symbols.

        Refusals do so on one of several paths only.
        """
        try:
            yield
        except Exception as error:
            if isinstance(error, (UndecidedError, MemoryError)) or is_of_handler(error):
                raise
            is_refusal = isinstance(error, TraceError)
            if is_refusal and not self._asked:
                raise
            may_return = bool(self._asked) and not is_refusal
            raise UndecidedError("the function raises an error", error, may_return) from error

    def truth(self, position: int, is_bool: bool) -> bool:
        """Whether the number at a position is not 0; a bool is 1 or 0."""
        given = self._given[-1] if self._repeats() else self.next_given()
        if given is not None:
            truth, text = bool(given), ""
        else:
            number = self._number(position)
            truth, text = number != 0, self._text_of_truth(position, number)
        self._ask_truth(position, is_bool, truth, text)
        return truth

    def next_given(self) -> float | None:
        """The answer to the next question, if it is given."""
        return self._given[len(self._asked)] if len(self._asked) < len(self._given) else None

    def _repeats(self) -> bool:
        count = len(self._given)
        return 0 < count <= len(self._asked) < 2 * count and self._asked[count - 1].line == running_line()

    def _ask_truth(self, position: int, is_bool: bool, truth: bool, text: str = "") -> None:
        answer = position if is_bool else self._write(primitives.is_zero, self._write(primitives.is_zero, position))
        self._ask(answer, self._closeness(answer), float(truth), text)

    def whole(self, position: int, of_number: Callable[[float], int]) -> int:
        """The int of the number at a position: by int, round, math.floor or math.ceil."""
        if (given := self.next_given()) is not None:
            answer, text = int(given), ""
        else:
            number = self._number(position)
            text = f"{of_number.__name__}({number:.6g})"
            try:
                answer = of_number(number)
            except (ValueError, OverflowError) as error:  # of NaN, and of infinity
                raise self._undecided() from error
        below = self._write(further_primitives.floor, position)
        written = _WHOLE[of_number](self, position, below)
        zero = self._tape.position(0.0)
        written = self._write(primitives.where, self._write(EQUAL, written, zero), zero, written)  # and not -0
        close: list[int] = []
        if not self._is_exact(position):
            above = self._write(primitives.sub, position, below)
            half = self._size_of(primitives.sub, above, self._tape.position(0.5))
            distance = half if of_number is round else self._write(primitives.sub, self._tape.position(0.5), half)
            close = [self._is_less(distance, self._magnitude(position))]
        self._ask(written, close, float(answer), text, is_truth=False)
        return answer

    def _ask(self, position: int, close: list[int], answer: float, text: str, is_truth: bool = True) -> None:
        half = self._tape.position(0.5)
        for one in dict.fromkeys(close):
            position = self._write(primitives.where, one, half, position)
        condition = running_expression(calling_frame())
        self._asked.append(Question(position, answer, running_line(), text or condition, condition, is_truth))

    def _text_of_truth(self, position: int, number: float) -> str:
        written = self._tape.operations
        if written.primitives[position] not in _COMPARISONS:
            return f"{number:.6g}"
        symbol = {LESS: "<", LESS_EQUAL: "<=", EQUAL: "=="}[written.primitives[position]]
        x, y = (self._number(operand) for operand in written.operands(position))
        return f"{x:.6g} {symbol} {y:.6g}"

    # The numbers of this call

    def _number(self, position: int) -> float:
        """The number at a position for this call, computed as Python does it."""
        known = self._numbers
        try:
            for this, operands in _in_order(position, known, self._operands):
                known[this] = self._computed(this, [known[operand] for operand in operands])
        except (ArithmeticError, ValueError, IndexError) as error:
            raise self._undecided() from error
        return known[position]

    def _undecided(self) -> UndecidedError:
        self._undecided_by = UndecidedError(
            f"the function decides on a number that cannot be computed for these arguments ({running_line()})"
        )
        return self._undecided_by

    def _operands(self, position: int) -> Sequence[int]:
        """The positions that a position is computed from."""
        written, tape = self._tape.operations, self._tape
        primitive = written.primitives[position]
        if primitive is INPUT and isinstance(called := made_at(tape, position), Called):
            return called.read().tolist() if position == called.hub[0] else called.hub.tolist()
        if primitive is INPUT or primitive is LITERAL:
            return ()
        operands = written.operands(position)
        if primitive is TAKE:
            if operands[1] >= len(self._tables):
                self._tables = list(tape.tables)
            return operands[0], *self._tables[operands[1]]
        if primitive is SUM_OF_PRODUCTS:
            if max(operands[1:]) >= len(self._rows):
                self._rows = list(tape.rows)
            return operands[0], *self._rows[operands[1]], *self._rows[operands[2]]
        return operands

    def _computed(self, position: int, numbers: list[float]) -> float:
        written = self._tape.operations
        primitive, first = written.primitives[position], written.first[position]
        if primitive is LITERAL:
            return written.numbers[first]
        if primitive is INPUT and (called := made_at(self._tape, position)) is not None:
            hub = int(called.hub[0])
            if position == hub:
                self._called[hub] = called.computed(numbers)
                return 0.0
            return self._called[hub][position - hub - 1]
        if primitive is INPUT:
            name = written.names[first]
            leaf = name if isinstance(name, Value) else self._leaves[name]
            bring_up_to_date()
            return float(leaf._data if isinstance(leaf, Value) else leaf)
        if primitive is TAKE:
            return numbers[1:][int(numbers[0])]
        if primitive is SUM_OF_PRODUCTS:
            total, half = numbers[0], 1 + len(numbers) // 2
            for x, y in zip(numbers[1:half], numbers[half:], strict=True):
                total = total + x * y
            return total
        return float(primitive.forward(*numbers))

    # What rounding might decide

    def _is_exact(self, position: int) -> bool:
        """Whether a program has Python's number at a position, bit for bit: it was rounded at most once."""
        return self.rounding == ROUNDING["float64"] and self._rounded(position) <= _ROUNDED_ONCE

    def is_unrounded(self, position: int) -> bool:
        """Whether the number at a position is one that was given, or a choice among such."""
        return self._rounded(position) is _EXACT

    def _rounded(self, position: int) -> int:
        """How often the number at a position was rounded: not at all, once, or more often."""
        known, applied = self._exactness, self._tape.operations.primitives

        def operands_of(this: int) -> Sequence[int]:
            operands = () if self._is_before(this) else self._operands(this)
            return operands[:1] if applied[this] is DIFFERENTIATED_AS else operands

        for this, operands in _in_order(position, known, operands_of):
            primitive, worst = applied[this], max((known[operand] for operand in operands), default=_EXACT)
            if self._is_before(this) or this in self._tape.checked:  # a power
                known[this] = _ROUNDED
            elif primitive in (primitives.add, primitives.sub, primitives.mul):
                known[this] = _ROUNDED_ONCE if worst is _EXACT else _ROUNDED
                if primitive is primitives.mul and self._is_one(operands[1]):  # a copy to differentiate by
                    known[this] = worst
            else:
                known[this] = worst if not operands or primitive in _CHOICES or primitive is TAKE else _ROUNDED
        return known[position]

    def _is_before(self, position: int) -> bool:
        """Whether a position was computed before what asks, in a way that is not known."""
        return False

    def _is_one(self, position: int) -> bool:
        written = self._tape.operations
        return written.primitives[position] is LITERAL and written.numbers[written.first[position]] == 1.0

    def _closeness(self, position: int) -> list[int]:
        """The positions of numbers that are 1 where rounding might decide, for each comparison in a truth."""
        found, stack, seen = list[int](), [position], set[int]()
        while stack:
            if (position := stack.pop()) in seen:  # as (x > 1).any() reads what is before it twice
                continue
            seen.add(position)
            primitive, operands = self._tape.operations.primitives[position], self._operands(position)
            if primitive in _COMPARISONS:
                found += self._close(*operands)
            elif primitive is primitives.is_zero and self._tape.operations.primitives[operands[0]] not in _TRUTHS:
                found += self._close(operands[0], self._tape.position(0.0))
            elif primitive in _TRUTHS:
                stack += operands
        return found

    def _close(self, x: int, y: int) -> list[int]:
        if self._is_exact(x) and self._is_exact(y):
            return []
        size = self._write(primitives.add, self._magnitude(x), self._magnitude(y))
        return [self._is_less(self._size_of(primitives.sub, x, y), size)]

    def _is_less(self, distance: int, size: int) -> int:
        error = self._write(primitives.mul, size, self._tape.position(self.rounding))
        return self._write(LESS, distance, self._write(primitives.add, error, self._tape.position(_LEAST)))

    def _magnitude(self, position: int, depth: int = 0) -> int:
        """The position of the magnitude that a rounding error is relative to: of a difference, that of a sum."""
        if self._is_before(position):
            return self._write(primitives.abs, position)
        primitive, operands = self._tape.operations.primitives[position], self._operands(position)
        if depth < _DEEPEST and primitive in (primitives.add, primitives.sub, primitives.mul):
            combine = primitives.mul if primitive is primitives.mul else primitives.add
            return self._write(combine, *[self._magnitude(operand, depth + 1) for operand in operands])
        if primitive in _SAME_SIZE and depth < _DEEPEST:
            return self._magnitude(operands[0], depth + 1)
        if primitive is SUM_OF_PRODUCTS:
            total = self._write(primitives.abs, operands[0])
            half = 1 + len(operands) // 2
            for x, y in zip(operands[1:half], operands[half:], strict=True):
                total = self._write(primitives.add, total, self._size_of(primitives.mul, x, y))
            return total
        return self._write(primitives.abs, position)

    def _size_of(self, primitive: Any, x: int, y: int) -> int:
        return self._write(primitives.abs, self._write(primitive, x, y))

    def _write(self, primitive: Any, *positions: int) -> int:
        return self._tape.operations.append(primitive, *positions)

    # What the program computes for the int of a number

    def _truncated(self, position: int, below: int) -> int:
        negative = self._write(LESS, position, self._tape.position(0.0))
        return self._write(primitives.where, negative, self._upwards(position, below), below)

    def _upwards(self, position: int, below: int) -> int:
        negated = self._write(further_primitives.floor, self._write(primitives.neg, position))
        return self._write(primitives.neg, negated)

    def _downwards(self, position: int, below: int) -> int:
        return below

    def _nearest(self, position: int, below: int) -> int:
        """The nearest int; of a half, the even one."""
        half, part = self._tape.position(0.5), self._write(primitives.sub, position, below)
        halved = self._write(primitives.mul, below, half)
        odd = self._write(LESS, self._write(further_primitives.floor, halved), halved)
        upwards = self._write(LESS, half, part)
        upwards = self._write(primitives.where, self._write(EQUAL, part, half), odd, upwards)
        return self._write(primitives.add, below, upwards)


def _in_order(
    position: int, known: Mapping[int, Any], operands_of: Callable[[int], Sequence[int]]
) -> Iterator[tuple[int, Sequence[int]]]:
    """The unknown ones of a position and all that it depends on, in order, each with its operands."""
    stack = [position]
    while stack:
        operands = () if stack[-1] in known else operands_of(stack[-1])
        if unknown := [operand for operand in operands if operand not in known]:
            stack += unknown
        elif (this := stack.pop()) not in known:
            yield this, operands


_TRUTHS = {primitives.where, primitives.is_zero, primitives.detach, primitives.identity, *_COMPARISONS}
_WHOLE: dict[Any, Callable[[Questions, int, int], int]] = {
    int: Questions._truncated,
    round: Questions._nearest,
    math.floor: Questions._downwards,
    math.ceil: Questions._upwards,
}
