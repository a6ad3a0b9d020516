"""Expressions written as text, read into Values without ever running anything.

    ParsedExpression("x*y + tanh(z)")(names)    with names {"x": Value(2.0), "y": Value(-3.0), "z": Value(10.0)}

Numbers, names, the operators + - * / ** with Python's precedence, calls of primitives, and the constants e and pi:
nothing else is let in, so text from anywhere is safe to read. Whatever is wrong, with the text or with its arithmetic,
raises an ExpressionError with carets under the part that is wrong:

    1.0 / (y = 0.0): float division by zero
      x + 1/y
          ^^^

The reader keeps what waits for operands on a stack of its own, so no expression is nested too deep for it.
"""

from __future__ import annotations

import keyword
import math
import operator
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd import functional
from micrograd.command.corrections import corrected
from micrograd.command.tokens import Token, tokens_of
from micrograd.engine import scipy_functions
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.primitive import PRIMITIVES
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST = 10_000  # characters; they bound time and memory
CONSTANTS = {"e": math.e, "pi": math.pi}  # unless they are given as names
_SHOWN = 72  # characters of the line that an error shows


class _Operator(NamedTuple):
    """How an operator binds: those of the higher precedence first, and equal ones from the left, or from the right."""

    apply: Callable[..., Any]
    operands: int
    precedence: int
    from_the_right: bool = False


BINARY = {
    "+": _Operator(operator.add, 2, 1),
    "-": _Operator(operator.sub, 2, 1),
    "*": _Operator(operator.mul, 2, 2),
    "/": _Operator(operator.truediv, 2, 2),
    "**": _Operator(operator.pow, 2, 4, from_the_right=True),
}
UNARY = {"-": _Operator(operator.neg, 1, 3), "+": _Operator(operator.pos, 1, 3)}


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    """What can be called: the public primitives of one or two operands but detach, and users' own.

    Each with the number of its operands, those that have a default left out.

    Example:
        >>> functions()["tanh"][0], functions()["leaky_relu"][0], functions()["maximum"][0]
        (1, 1, 2)
    """
    found: dict[str, tuple[int, Callable[..., Any]]] = {}
    for name, primitive in PRIMITIVES.items():
        public = getattr(functional, name, None) or getattr(scipy_functions, name, None)
        function = public if TABLE.get(name) is primitive else primitive
        count = len(primitive.derivatives) - len(getattr(function, "__defaults__", None) or ())
        if function and count in (1, 2) and name != "detach":
            found[name] = count, function
    return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the message has carets under what is wrong."""


class _Span(NamedTuple):
    """Characters of the text."""

    start: int
    end: int


class _Step(NamedTuple):
    """What to do with the results of the operands, which are steps before this one."""

    do: Callable[..., Any]
    operands: int
    span: _Span  # for the errors


class _Waiting(NamedTuple):
    """An operator or a bracket that waits for what is on its right."""

    token: Token
    operator: _Operator | None = None  # None: a bracket, of a function's operands where there is a function
    function: Token | None = None
    before: int = 0  # how many operands there were when the bracket was opened


class ParsedExpression:
    """An expression that has been read, and can be computed.

    Args:
        text: in Python's notation: ``x*y + tanh(z)``.

    Attributes:
        text: the text.
        names: the names in it that need a Value, in the order in which they come. ``e`` and ``pi`` need none.

    Raises:
        ExpressionError: if the text is no expression of numbers, names, operators and functions.

    Example:
        >>> expression = ParsedExpression("x**2 + y")
        >>> expression.names
        ('x', 'y')
        >>> expression({"x": Value(3.0), "y": Value(1.0)}).data
        10.0
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._functions = functions()
        try:
            self._steps, self.names = _Reader(text, self._functions).read()
        except ExpressionError as error:
            raise self._suggestion() or error from None

    def __call__(self, names: Mapping[str, Value]) -> Value:
        """The Value of the expression.

        Args:
            names: what the names in it stand for.

        Raises:
            ExpressionError: if a name has no Value, or the arithmetic fails, as 1 / 0 does.
        """
        results: list[Any] = []  # of the steps whose results are still to be used
        for do, count, span in self._steps:
            operands = [names, *results[len(results) - count :]]
            del results[len(results) - count :]
            try:
                results.append(do(*operands))
            except KeyError as error:
                name = error.args[0]
                raise _error(self.text, f"{name!r} is not known; give it a value: {name}=1", span) from None
            except (ArithmeticError, ValueError) as error:
                raise _error(self.text, str(error), span) from error
        return _as_value(results.pop())

    def _suggestion(self) -> ExpressionError | None:
        """The error that says what the text may have meant, where that can be read."""
        if len(self.text) > LONGEST or not (correction := corrected(self.text, self._functions)):
            return None
        meant, place = correction
        try:
            _Reader(meant, self._functions).read()
        except ExpressionError:
            return None
        start = max(place - _SHOWN // 2, 0) if len(meant) > _SHOWN else 0
        shown = " ".join(meant[start : start + _SHOWN].split())
        shown = f"{'... ' * (start > 0)}{shown}{' ...' * (start + _SHOWN < len(meant))}"
        return _error(self.text, f"did you mean `{shown}`?", _Span(place, place + 1))


class _Reader:
    """Reads a text into steps, each after those of its operands: the shunting yard of Dijkstra (1961)."""

    def __init__(self, text: str, known: Mapping[str, tuple[int, Callable[..., Any]]]) -> None:
        self.text, self.functions = text, known
        self.steps: list[_Step] = []
        self.names: dict[str, None] = {}
        self.spans: list[_Span] = []  # of the operands that are complete
        self.waiting: list[_Waiting] = []

    def read(self) -> tuple[list[_Step], tuple[str, ...]]:
        """The steps, and the names that need a Value."""
        if len(self.text) > LONGEST:
            raise ExpressionError(f"the expression is {len(self.text)} characters long; at most {LONGEST} are read")
        tokens = tokens_of(self.text)
        if not tokens:
            raise ExpressionError("the expression is empty")
        operand_is_next = True
        for before, token, following in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
            if token.kind == "other" or keyword.iskeyword(token.text):
                raise self._error(f"{token.text!r:.40} cannot stand in an expression; there are {self._all()}", token)
            take = self._operand if operand_is_next else self._operator
            operand_is_next = take(token, before, following)
        self._end(operand_is_next)
        return self.steps, tuple(self.names)

    def _operand(self, token: Token, before: Token | None, following: Token | None) -> bool:
        """Take a word where an operand is to begin; whether one is still to come."""
        if token.text == "(":
            function = before if before and before.kind == "name" else None
            self.waiting.append(_Waiting(token, function=function, before=len(self.spans)))
            return True
        if token.text in UNARY:
            self.waiting.append(_Waiting(token, UNARY[token.text]))
            return True
        if token.kind == "name" and following and following.text == "(":
            if _normal(token) not in self.functions:
                raise self._error(f"{token.text!r:.40} is no function here; there are {self._all()}", token)
            return True  # its bracket
        if token.kind == "name":
            self._name(token)
        elif token.kind == "number":
            self._add(self._number(token), token)
        elif token.text == ")" and self.waiting and self.waiting[-1].token is before and self.waiting[-1].function:
            self._close(token)  # a function of no operands: it says how many it takes
        else:
            raise self._error(f"before {token.text!r:.40} a number, a name or a bracket is missing", token)
        return False

    def _operator(self, token: Token, before: Token | None, following: Token | None) -> bool:
        """Take a word where an operand has ended; whether another one is to come."""
        if token.text in BINARY:
            binary = BINARY[token.text]
            self._apply_what_binds_more(binary.precedence + binary.from_the_right)
            self.waiting.append(_Waiting(token, binary))
            return True
        if token.text == ")":
            self._close(token)
            return False
        if token.text == ",":
            self._apply_what_binds_more(0)
            if not self.waiting or self.waiting[-1].function is None:
                raise self._error("a comma stands only between the operands of a function", token)
            return True
        raise self._error(f"before {token.text!r:.40} an operator is missing", token)

    def _end(self, operand_is_next: bool) -> None:
        brackets = [waiting for waiting in self.waiting if waiting.operator is None]
        if brackets:
            raise self._error("this bracket is never closed", brackets[-1].token)
        if operand_is_next:
            end = len(self.text.rstrip())
            raise self._error("at the end a number, a name or a bracket is missing", _Span(end, end + 1))
        self._apply_what_binds_more(0)

    def _number(self, token: Token) -> Callable[..., Any]:
        written = token.text.replace("_", "")
        try:
            number = float(int(written, 0)) if written[1:2] in tuple("xXoObB") else float(written)
        except OverflowError:
            number = math.inf
        if number == math.inf:
            raise self._error("no float is as large as this number", token)
        return lambda _: number

    def _name(self, token: Token) -> None:
        name = _normal(token)
        if name in self.functions:
            raise self._error(f"{name!r} is a function: call it", token)
        if name in CONSTANTS:
            constant = Value(CONSTANTS[name], label=name, requires_grad=False)
            self._add(lambda values: values.get(name, constant), token)
            return
        self.names[name] = None
        self._add(lambda values: values[name], token)

    def _close(self, token: Token) -> None:
        """Close a bracket, and call its function."""
        self._apply_what_binds_more(0)
        if not self.waiting:
            raise self._error("no bracket is open here", token)
        bracket, _, function, before = self.waiting.pop()
        if function is None:
            self.spans[-1] = _Span(bracket.start, token.end)
            return
        name = _normal(function)
        count, apply = self.functions[name]
        span = _Span(function.start, token.end)
        if len(self.spans) - before != count:
            raise self._error(f"{name} takes {count} operand{'s' * (count > 1)}", span)
        del self.spans[before:]
        self._add(lambda _, *operands: apply(*map(_as_value, operands)), span, count)

    def _apply_what_binds_more(self, precedence: int) -> None:
        """Apply the operators since the last bracket whose precedence is as high, or higher."""
        while self.waiting and (waiting := self.waiting[-1].operator) and waiting.precedence >= precedence:
            token, _, _, _ = self.waiting.pop()
            last = self.spans.pop()
            if waiting.operands == 1:
                self._add(_unary(waiting.apply), _Span(token.start, last.end), 1)
            else:
                self._add(_binary(waiting.apply), _Span(self.spans.pop().start, last.end), 2)

    def _add(self, do: Callable[..., Any], place: Token | _Span, operands: int = 0) -> None:
        span = _Span(place.start, place.end)
        self.steps.append(_Step(do, operands, span))
        self.spans.append(span)

    def _all(self) -> str:
        return f"numbers, names, + - * / ** and {', '.join(self.functions)}"

    def _error(self, message: str, place: Token | _Span) -> ExpressionError:
        return _error(self.text, message, place)


def _normal(name: Token) -> str:
    """A name as Python has it, which takes the micro sign for the Greek letter."""
    return unicodedata.normalize("NFKC", name.text)


def _unary(apply: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _, x: apply(x)


def _binary(apply: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    # Plain numbers become Values too: so errors read alike, and ** never gives a complex number.
    return lambda _, x, y: apply(x if isinstance(y, Value) else _as_value(x), y)


def _error(text: str, message: str, place: Token | _Span) -> ExpressionError:
    """The error at a place in a text: its line, or the part around the place, with carets below."""
    lines = list(re.finditer(r"[^\r\n]*(?:\r\n|\r|\n|$)", text))
    line = next(found for found in lines if place.start < found.end() or found.end() == len(text))
    start, end = place.start - line.start(), place.end - line.start()
    first = max(start - _SHOWN // 2, 0)
    written = line[0].rstrip("\r\n")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in written[first : first + _SHOWN])
    start, end = start - first, min(max(end, start + 1) - first, max(len(shown), 1))
    carets = " " * _width(shown[:start]) + "^" * max(_width(shown[start:end]), 1)
    return ExpressionError(f"{message}\n  {shown}\n  {carets}")


def evaluate(text: str, names: Mapping[str, Value]) -> Value:
    """The Value of an expression.

    Args:
        text: the expression, in Python's notation.
        names: what the names in it stand for.

    Raises:
        ExpressionError: if the text is no such expression, a name has no Value, or the arithmetic fails.

    Example:
        >>> evaluate("x**2 + 1", {"x": Value(3.0)}).data
        10.0
    """
    return ParsedExpression(text)(names)


def _as_value(operand: Any) -> Value:
    return operand if isinstance(operand, Value) else Value(operand, requires_grad=False)


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
