"""Expressions written as text, parsed into Values without ever running anything.

    ParsedExpression("x*y + tanh(z)")(names)    with names {"x": Value(2.0), "y": Value(-3.0), "z": Value(10.0)}

Numbers, names, the operators + - * / ** with Python's precedence, calls of primitives, and the constants e and pi:
nothing else is let in, so text from anywhere is safe. ``ast`` finds the structure; what it is given has been checked
token by token before, and limited in length and depth, since ``ast`` may fail on deep nesting. Whatever is wrong,
with the text or with its arithmetic, raises an ExpressionError with carets under the part that is wrong:

    1.0 / (y = 0.0): float division by zero
      x + 1/y
          ^^^
"""

from __future__ import annotations

import ast
import keyword
import math
import operator
import re
import unicodedata
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd import functional
from micrograd.command.notation import corrected, tokens_of
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.primitive import PRIMITIVES
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from micrograd.command.notation import Token

LONGEST = 10_000  # characters; they bound time and memory
MOST_OPERATORS = 1_000  # each may be nested in the one before
DEEPEST = 100  # brackets in one another
CONSTANTS = {"e": math.e, "pi": math.pi}  # unless they are given as names
OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_SHOWN = 72  # characters of the line that an error shows
_BLANKS = str.maketrans("\t\f\r\n", "    ")


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    """What can be called: the public primitives of one or two operands but detach, and users' own.

    Each with the number of its operands, those that have a default left out.

    Example:
        >>> functions()["tanh"][0], functions()["leaky_relu"][0], functions()["maximum"][0]
        (1, 1, 2)
    """
    found: dict[str, tuple[int, Callable[..., Any]]] = {}
    for name, primitive in PRIMITIVES.items():
        public = getattr(functional, name, None)
        function = public if TABLE.get(name) is primitive else primitive
        defaults = [x for x in getattr(function, "__defaults__", None) or () if x is not ...]  # which maximum asks for
        count = len(primitive.derivatives) - len(defaults)
        if function and count in (1, 2) and name != "detach":
            found[name] = count, function
    return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the message has carets under what is wrong."""


class _Step(NamedTuple):
    """What to do with the results of the operands, which are steps before this one."""

    do: Callable[..., Any]
    operands: int
    node: ast.expr  # for the errors


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
        for do, count, node in self._steps:
            operands = [names, *results[len(results) - count :]]
            del results[len(results) - count :]
            try:
                results.append(do(*operands))
            except KeyError as error:
                name = error.args[0]
                message = f"{name!r:.40} is not known; give it a value: {name:.40}=1"
                raise _error(self.text, message, *_span(node, self.text)) from None
            except (ArithmeticError, ValueError) as error:
                raise _error(self.text, str(error), *_span(node, self.text)) from error
        return _as_value(results.pop())

    def _suggestion(self) -> ExpressionError | None:
        """The error that says what the text may have meant, where that can be read."""
        if len(self.text) > LONGEST or not (correction := corrected(self.text, self._functions)):
            return None
        meant, position = correction
        try:
            _Reader(meant, self._functions).read()
        except ExpressionError:
            return None
        start = max(position - _SHOWN // 2, 0) if len(meant) > _SHOWN else 0
        shown = " ".join(meant[start : start + _SHOWN].split())
        shown = f"{'... ' * (start > 0)}{shown}{' ...' * (start + _SHOWN < len(meant))}"
        return _error(self.text, f"did you mean `{shown}`?", position, position + 1)


class _Reader:
    """Parses a text into steps, each after those of its operands."""

    def __init__(self, text: str, known: Mapping[str, tuple[int, Callable[..., Any]]]) -> None:
        self.text, self.functions = text, known

    def read(self) -> tuple[list[_Step], tuple[str, ...]]:
        """The steps, and the names that need a Value."""
        if len(self.text) > LONGEST:
            raise ExpressionError(f"the expression is {len(self.text)} characters long; at most {LONGEST} are read")
        self._check()
        try:
            tree = ast.parse(_on_one_line(self.text), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:  # 007; and nesting, where the stack is in use
            position = min(max((getattr(error, "offset", None) or 0) - 2, 0), len(self.text) - 1)
            message = getattr(error, "msg", "the expression is nested too deep to be read here")
            raise _error(self.text, message, position, position + 1) from None
        nodes, waiting = [], [tree]
        while waiting:
            nodes.append(waiting.pop())
            waiting += _operands(nodes[-1])
        nodes.reverse()
        names = [node.id for node in nodes if isinstance(node, ast.Name) and node.id not in CONSTANTS]
        return [_Step(self._action(node), len(_operands(node)), node) for node in nodes], tuple(dict.fromkeys(names))

    def _check(self) -> None:
        """Refuse what ast could not read safely, and what it would not explain well."""
        brackets: list[Token] = []
        operators, before = 0, None
        for token in tokens_of(self.text):
            self._check_neighbours(before, token)
            before = token
            if token.text == "(":
                brackets.append(token)
            elif token.text == ")":
                if not brackets:
                    raise self._error("no bracket is open here", token)
                brackets.pop()
            else:
                operators += token.kind == "mark"
            if operators > MOST_OPERATORS or len(brackets) > DEEPEST:
                limits = f"{MOST_OPERATORS} operators and commas, and {DEEPEST} brackets in one another"
                raise self._error(f"an expression has at most {limits}", token)
        if before is None:
            raise ExpressionError("the expression is empty")
        if brackets:
            raise self._error("this bracket is never closed", brackets[-1])
        if not _ends_operand(before):
            end = len(self.text.rstrip())
            raise _error(self.text, "at the end a number, a name or a bracket is missing", end, end + 1)

    def _check_neighbours(self, before: Token | None, token: Token) -> None:
        """Refuse what is no token, and two operands or two operators beside each other."""
        if token.kind == "other" or keyword.iskeyword(token.text):
            known = f"numbers, names, + - * / **, parentheses and functions such as {next(iter(self.functions))}(x)"
            raise self._error(f"{token.text!r:.40} cannot stand in an expression; there are {known}", token)
        is_call = before is not None and before.kind == "name" and token.text == "("
        begins = token.kind in ("number", "name") or token.text == "("
        if begins and _ends_operand(before) and not is_call:
            raise self._error(f"before {token.text!r:.40} an operator is missing", token)
        if not begins and not _ends_operand(before) and token.text not in ("+", "-"):
            raise self._error(f"before {token.text!r:.40} a number, a name or a bracket is missing", token)

    def _action(self, node: ast.expr) -> Callable[..., Any]:
        """What a node does with the names and the results of its operands; all that is not known here is refused."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return self._number(number, node)
            case ast.Name(id=name) if name in self.functions:
                raise self._error(f"{name!r} is a function: call it", node)
            case ast.Name(id=name) if name in CONSTANTS:
                constant = Value(CONSTANTS[name], label=name, requires_grad=False)
                return lambda values: values.get(name, constant)
            case ast.Name(id=name):
                return lambda values: values[name]
            case ast.UnaryOp(op=sign):
                apply = OPERATORS[type(sign)]
                return lambda _, x: apply(x)
            case ast.BinOp(op=op):
                return _binary(OPERATORS[type(op)])
            case ast.Call(func=ast.Name(id=name), keywords=[]) as call:
                return self._function(name, call)
        raise self._error("a comma stands only between the operands of a function", node)

    def _number(self, number: float, node: ast.expr) -> Callable[..., Any]:
        try:
            number = float(number)
        except OverflowError:  # an int
            number = math.inf
        if number == math.inf:
            raise self._error("no float is as large as this number", node)
        return lambda _: number

    def _function(self, name: str, call: ast.Call) -> Callable[..., Any]:
        if name not in self.functions:
            raise self._error(f"{name!r:.40} is no function here; there are {', '.join(self.functions)}", call.func)
        count, apply = self.functions[name]
        if len(call.args) != count:
            raise self._error(f"{name} takes {count} operand{'s' * (count > 1)}", call)
        return lambda _, *operands: apply(*map(_as_value, operands))

    def _error(self, message: str, position: Token | ast.expr) -> ExpressionError:
        start, end = _span(position, self.text) if isinstance(position, ast.expr) else (position.start, position.end)
        return _error(self.text, message, start, end)


def _operands(node: ast.expr) -> list[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=args):
            return args
    return []


def _ends_operand(token: Token | None) -> bool:
    return token is not None and (token.kind in ("number", "name") or token.text == ")")


def _on_one_line(text: str) -> str:
    """What ast reads: brackets allow line breaks, and without these a column of the tree is a position."""
    return f"({text.translate(_BLANKS)})"


def _span(node: ast.expr, text: str) -> tuple[int, int]:
    """Where the text of a node starts and ends, in characters; the tree counts bytes, and brackets around the text."""
    line = _on_one_line(text).encode()
    start, end = (len(line[:column].decode()) - 1 for column in (node.col_offset, node.end_col_offset))
    return max(start, 0), end


def _binary(apply: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    # Plain numbers become Values too: so errors read alike, and ** never gives a complex number.
    return lambda _, x, y: apply(x if isinstance(y, Value) else _as_value(x), y)


def _error(text: str, message: str, start: int, end: int) -> ExpressionError:
    """The error at a position of a text: its line, or the part around the position, with carets below."""
    lines = list(re.finditer(r"[^\r\n]*(?:\r\n|\r|\n|$)", text))
    line = next(found for found in lines if start < found.end() or found.end() == len(text))
    start, end = start - line.start(), end - line.start()
    first = max(start - _SHOWN // 2, 0)
    written = line[0].rstrip("\r\n")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in written[first : first + _SHOWN])
    start, end = start - first, min(max(end, start + 1) - first, max(len(shown), 1))
    carets = " " * _width(shown[:start]) + "^" * max(_width(shown[start:end]), 1)
    return ExpressionError(f"{message}\n  {shown}\n  {carets}")


def _as_value(operand: Any) -> Value:
    return operand if isinstance(operand, Value) else Value(operand, requires_grad=False)


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
