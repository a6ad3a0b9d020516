"""Notation: the tokens of an expression, and what a text in mathematical notation may mean in Python's.

The tokens are those of Python: ``1_000``, ``0x1f``, ``1e-3``; letters of every script. What is suggested:

x^2, x²        x**2
√x · y − 1     sqrt(x) * y - 1
2x             2*x
sin x          sin(x)
ln(x)          log(x)
max(x, 1)      maximum(x, 1)
sigmod(x)      sigmoid(x)
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

ELSEWHERE = {"ln": "log", "max": "maximum", "min": "minimum"}  # how other languages and books name functions
SYMBOLS = {"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "²": "**2", "³": "**3", "√": "sqrt "}  # of books
LIKENESS = 0.8  # from 0 to 1: names less alike are not taken for one another
MOST_UNKNOWN = 10  # different functions that are not known: each costs a comparison with all that are
_DIGITS = r"[0-9](?:_?[0-9])*"
_TOKEN = re.compile(
    rf"""(?P<number>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
                   |(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)
       |(?P<name>(?:[^\W\d]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*)
       |(?P<mark>\*\*|[-+*/(),])
       |(?P<other>[^ \t\f\r\n])""",
    re.VERBOSE,
)
_WRITTEN = str.maketrans(SYMBOLS)


class Token(NamedTuple):
    """A token of an expression.

    Attributes:
        kind: "number", "name", "mark" (an operator, a bracket or a comma), or "other" for what no expression has.
        text: the token as it is written.
        start, end: where it is in the text.
    """

    kind: str
    text: str
    start: int
    end: int


def tokens_of(text: str) -> Iterator[Token]:
    """The tokens of a text, in order.

    Example:
        >>> [token.text for token in tokens_of("2x**-1.5e3")]
        ['2', 'x', '**', '-', '1.5e3']
    """
    for found in _TOKEN.finditer(text):
        # In Python, a middle dot can be a part of a name; who types one between two names means a product.
        is_wrong = found.lastgroup == "name" and ("·" in found[0] or not found[0].isidentifier())
        yield Token("other" if is_wrong else str(found.lastgroup), found[0], *found.span())


_END = Token("end", "", 0, 0)


def corrected(text: str, functions: Collection[str]) -> tuple[str, int] | None:
    """A text as it may have been meant, and where it first differs; None where there is nothing to correct.

    Args:
        text: what could not be read.
        functions: the names that can be called.

    Example:
        >>> corrected("x^2 + 3sin x", ["sin"])
        ('x**2 + 3*sin(x)', 1)
        >>> corrected("x**2 + ", ["sin"]) is None
        True
    """
    changes = [position for position, symbol in enumerate(text) if symbol in SYMBOLS][:1]
    text = text.replace("√(", "sqrt(").translate(_WRITTEN)
    tokens = list(tokens_of(text))
    called = {token.text for token, following in pairwise(tokens) if token.kind == "name" and following.text == "("}
    if len(called.difference(functions)) > MOST_UNKNOWN:
        return None
    pieces: list[str] = []
    opened: list[int] = []  # the depths at which a bracket was added that is still to be closed
    depth, end = 0, 0
    before = "mark"  # or "operand"; "function", whose bracket is next; "argument", after a bracket that was added
    for token, following in pairwise([*tokens, _END]):
        function = _function(token, following, functions)
        if function is None and _is_beyond_repair(token, following):
            return None
        gap, written = text[end : token.start], token.text
        end = token.end
        if before == "operand" and (function or token.text in ("+", "-", "*", "/", ",", ")")):
            while opened and opened[-1] == depth:
                pieces.append(")")
                opened.pop()
        if before == "operand" and _starts_operand(token):
            gap = "*"
            changes.append(token.start)
        if before == "argument":
            gap = ""
        kind = "operand" if token.kind in ("number", "name") or token.text == ")" else "mark"
        if function:
            written, kind = function, "function"
            if following.text != "(":
                written, kind = f"{function}(", "argument"
                opened.append(depth)
        elif token.text == "^":
            written = "**"
        if written != token.text:
            changes.append(token.start)
        depth += (token.text == "(") - (token.text == ")")
        pieces += [gap, written]
        before = kind
    pieces += [")" * len(opened), text[end:]]
    return ("".join(pieces), min(changes)) if changes else None


def _function(token: Token, following: Token, functions: Collection[str]) -> str | None:
    """The function that a name with an operand behind it means."""
    if token.kind != "name" or not _starts_operand(following):
        return None
    name = token.text.lower()
    meant = next(
        (n for n in (token.text, ELSEWHERE.get(name), name, name.replace("arc", "a", 1)) if n in functions), None
    )
    if meant is None and following.text == "(" and len(name) > 2 and name.isalpha():
        meant = _alike(name, tuple(functions))
    return meant


@lru_cache(maxsize=64)  # a name may stand in a text a thousand times
def _alike(name: str, functions: tuple[str, ...]) -> str | None:
    return next(iter(get_close_matches(name, functions, 1, LIKENESS)), None)


def _is_beyond_repair(token: Token, following: Token) -> bool:
    """Whether this is an unknown function, or a number beside a number; a single letter is rather a factor."""
    if token.kind == "name":
        return following.text == "(" and len(token.text) > 1
    return token.kind == following.kind == "number"


def _starts_operand(token: Token) -> bool:
    return token.kind in ("number", "name") or token.text == "("
