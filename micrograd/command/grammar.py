"""Expressions written as text: a part of Python's grammar, read into Values without ever running it.

    ParsedExpression("x*y + tanh(z)")(names)    with names {"x": Value(2.0), "y": Value(-3.0), "z": Value(10.0)}

Numbers, names, the operators + - * / **, and calls of primitives: nothing else is let in, so
text from anywhere is safe to read. Whatever is wrong, with the text or with its arithmetic, raises an
ExpressionError with carets under the part that is wrong:

    1.0 / (y = 0.0): float division by zero
      x + 1/y
          ^^^
"""

from __future__ import annotations

import ast
import operator
import re
import unicodedata
import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd import functional
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.primitive import PRIMITIVES
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LONGEST = 10_000  # characters; they bound time and memory, and Python's parser bounds the depth
_SHOWN = 72  # characters of the line that an error shows

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    """What can be called: the public primitives of one or two operands that a gradient flows through, and users' own.

    Each with the number of its operands, those that have a default left out.

    Example:
        >>> functions()["tanh"][0], functions()["leaky_relu"][0], functions()["maximum"][0]
        (1, 1, 2)
    """
    found: dict[str, tuple[int, Callable[..., Any]]] = {}
    for name, primitive in PRIMITIVES.items():
        public = getattr(functional, name, None)
        function = public if TABLE.get(name) is primitive else primitive
        count = len(primitive.derivatives) - len(getattr(function, "__defaults__", None) or ())
        if function and any(primitive.derivatives) and count in (1, 2):
            found[name] = count, function
    return dict(sorted(found.items(), key=lambda item: (item[1][0], item[0])))


class ExpressionError(ValueError):
    """An expression that cannot be read or computed; the message has carets under what is wrong."""


class _Span(NamedTuple):
    """Characters of one line of the text."""

    line: int
    start: int
    end: int


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
        names: the names in it that need a Value, in the order in which they come.

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
        self._lines = re.split(r"\r\n|\r|\n", text)  # Python's lines, which are fewer than str.splitlines sees
        self._functions = functions()
        names: dict[str, None] = {}
        self._steps = [self._step(node, names) for node in _operands_first(self._parsed())]
        self.names = tuple(names)

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
                raise self._error(f"{name!r} is not known; give it a value: {name}=1", node) from None
            except (ArithmeticError, ValueError) as error:
                raise self._error(str(error), node) from error
        return _as_value(results.pop())

    def _parsed(self) -> ast.expr:
        """Python's own tree of the text."""
        if len(self.text) > LONGEST:
            raise ExpressionError(f"the expression is {len(self.text)} characters long; at most {LONGEST} are read")
        if not self.text.strip():
            raise ExpressionError("the expression is empty")
        for number, line in enumerate(self._lines):
            if unreadable := re.search("[\0\ud800-\udfff]", line):
                message = f"no expression has the character {unreadable[0]!a} in it"
                raise self._error(message, _Span(number, *unreadable.span()))
        text = self.text.lstrip(" \t\f")  # indentation is an error to Python
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Python warns of "\d" and 1is 2, which are refused below anyway
                return ast.parse(text, mode="eval").body
        except SyntaxError as error:
            raise self._error(error.msg, self._place(error, len(self.text) - len(text))) from None
        except (RecursionError, MemoryError):
            raise ExpressionError("the expression is nested too deep") from None

    def _place(self, error: SyntaxError, indentation: int) -> _Span:
        """Where Python's parser found the text wrong; it says 0 for the end."""
        if not error.lineno or not error.offset:
            end = self.text.rstrip()
            line = len(re.findall(r"\r\n|\r|\n", end))
            start = len(self._lines[line].rstrip())
        else:
            line = min(error.lineno, len(self._lines)) - 1
            start = error.offset - 1 + (indentation if line == 0 else 0)
        return _Span(line, start, start + 1)

    def _step(self, node: ast.expr, names: dict[str, None]) -> _Step:
        """What a node of the tree does; a name that it needs is added to the names."""
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            try:
                number = float(node.value)  # type: ignore[arg-type]  # an int or a float, as just seen
            except OverflowError:
                raise self._error("no float is as large as this number", node) from None
            return _Step(lambda _: number, 0, node)
        if isinstance(node, ast.Name):
            name = node.id
            if name in self._functions:
                raise self._error(f"{name!r} is a function: call it", node)
            names[name] = None
            return _Step(lambda values: values[name], 0, node)
        if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
            apply = BINARY[type(node.op)]
            # Plain numbers become Values too: so errors read alike, and ** never gives a complex number.
            return _Step(lambda _, x, y: apply(x if isinstance(y, Value) else _as_value(x), y), 2, node)
        if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
            change = UNARY[type(node.op)]
            return _Step(lambda _, x: change(x), 1, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in self._functions:
            count, function = self._functions[node.func.id]
            if node.keywords or len(node.args) != count:
                raise self._error(f"{node.func.id} takes {count} operand{'s' * (count > 1)}", node)
            return _Step(lambda _, *operands: function(*map(_as_value, operands)), count, node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            raise self._error(f"{node.func.id!r} is no function here; there are {self._all()}", node.func)
        raise self._error(f"this cannot stand in an expression; there are {self._all()}", node)

    def _all(self) -> str:
        return f"numbers, names, + - * / ** and {', '.join(self._functions)}"

    def _span(self, node: ast.expr) -> _Span:
        """Where a node stands. The tree counts bytes of UTF-8, and not those before the expression."""
        line = node.lineno - 1
        indentation = len(self.text) - len(self.text.lstrip(" \t\f")) if line == 0 else 0
        encoded = self._lines[line][indentation:].encode()
        start, end = (
            indentation + len(encoded[:offset].decode(errors="ignore"))
            for offset in (node.col_offset, node.end_col_offset if node.end_lineno == node.lineno else None)
        )
        return _Span(line, start, end)

    def _error(self, message: str, place: ast.expr | _Span) -> ExpressionError:
        """The error at a place in the text: its line, or the part around the place, with carets below."""
        span = place if isinstance(place, _Span) else self._span(place)
        first = max(span.start - _SHOWN // 2, 0)
        shown = "".join(c if c.isprintable() else "\ufffd" for c in self._lines[span.line][first : first + _SHOWN])
        start, end = span.start - first, min(max(span.end, span.start + 1) - first, max(len(shown), 1))
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


def _operands_first(root: ast.expr) -> list[ast.expr]:
    """The nodes of the tree, each after its operands. Without recursion, as a long sum is a deep tree."""
    nodes, pending = [], [root]
    while pending:
        nodes.append(node := pending.pop())
        pending.extend(_operands(node))
    return nodes[::-1]


def _operands(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Call):
        yield from node.args


def _as_value(operand: Any) -> Value:
    return operand if isinstance(operand, Value) else Value(operand, requires_grad=False)


def _width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
