"""Expressions written as text: a part of Python's grammar, read into Values without ever running it.

    "x*y + tanh(z)"  with  x=2 y=-3 z=10    ->    the Value of it, and the Values x, y and z

Numbers, names, the operators + - * / **, and calls of the functions below: nothing else is let in, so
text from anywhere is safe to read.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from micrograd import functional
from micrograd.engine import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LONGEST = 10_000  # characters; the depth of what Python's parser takes is bounded too

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: lambda x: x}
_ONE_OPERAND = (
    "abs acos asin atan cos cosh elu erf exp expm1 gelu leaky_relu log log1p relu sigmoid silu sin sinh softplus "
    "sqrt tan tanh"
)
FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    **{name: (1, getattr(functional, name)) for name in _ONE_OPERAND.split()},
    "maximum": (2, functional.maximum),
    "minimum": (2, functional.minimum),
}


class ExpressionError(ValueError):
    """An expression that cannot be read; the message points at the culprit with a caret."""


def evaluate(text: str, names: Mapping[str, Value]) -> Value:
    """The Value of an expression.

    Args:
        text: the expression, in Python's notation.
        names: what the names in it stand for.

    Raises:
        ExpressionError: if the text is no such expression.
        ArithmeticError, ValueError: what the arithmetic raises, as 1 / 0 does.

    Example:
        >>> x = Value(3.0, label="x")
        >>> evaluate("x**2 + 1", {"x": x}).data
        10.0
    """
    if len(text) > LONGEST:
        raise ExpressionError(f"the expression is {len(text)} characters long; at most {LONGEST} are read")
    try:
        tree = ast.parse(text, mode="eval").body
        result = _value(tree, text, names)
    except SyntaxError as error:
        raise _at(text, (error.offset or 1) - 1, error.msg) from None
    except (RecursionError, MemoryError):
        raise ExpressionError("the expression is nested too deep") from None
    except ValueError as error:
        if isinstance(error, ExpressionError) or "null" not in str(error):
            raise
        raise ExpressionError("the expression has a null character in it") from None
    return result if isinstance(result, Value) else Value(result, requires_grad=False)


def _value(node: ast.expr, text: str, names: Mapping[str, Value]) -> Any:
    """The Value, or the plain number, of a part of the expression."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        try:
            return float(node.value)  # type: ignore[arg-type]  # an int or a float, as just seen
        except OverflowError:
            raise _at(text, node.col_offset, "no float is as large as this number") from None
    if isinstance(node, ast.Name):
        if node.id not in names:
            known = f"give it a value: {node.id}=1" if node.id not in FUNCTIONS else "it is a function: call it"
            raise _at(text, node.col_offset, f"{node.id!r} is not known; {known}")
        return names[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        left, right = _value(node.left, text, names), _value(node.right, text, names)
        # Numbers alone are recorded too, so that errors read alike and ** never goes complex.
        return BINARY[type(node.op)](left if isinstance(right, Value) else _as_value(left), right)
    if isinstance(node, ast.UnaryOp) and type(node.op) in UNARY:
        return UNARY[type(node.op)](_value(node.operand, text, names))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS:
        count, function = FUNCTIONS[node.func.id]
        if node.keywords or len(node.args) != count or any(isinstance(a, ast.Starred) for a in node.args):
            raise _at(text, node.col_offset, f"{node.func.id} takes {count} operand{'s' * (count > 1)}")
        return function(*(_as_value(_value(argument, text, names)) for argument in node.args))
    raise _at(text, node.col_offset, f"this cannot stand in an expression; there are + - * / ** and {_listed()}")


def _as_value(operand: Any) -> Value:
    return operand if isinstance(operand, Value) else Value(operand, requires_grad=False)


def _listed() -> str:
    return ", ".join(FUNCTIONS)


def _at(text: str, offset: int, message: str) -> ExpressionError:
    """The error at a place in the text: its line with a caret below."""
    line = text.splitlines()[0] if text.strip() else ""
    # col_offset counts bytes of UTF-8, the caret characters.
    column = len(line.encode()[: max(offset, 0)].decode(errors="ignore"))
    return ExpressionError(f"{message}\n  {line}\n  {' ' * column}^")
