"""The tokens of an expression: numbers, names and operators, each with its position in the text.

Numbers and names are those of Python: ``1_000``, ``0x1f``, ``1e-3``; letters of every script.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIGITS = r"[0-9](?:_?[0-9])*"
_TOKEN = re.compile(
    rf"""(?P<number>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
                   |(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?)
       |(?P<name>(?:[^\W\d]|[^\x00-\x7f])(?:\w|[^\x00-\x7f])*)
       |(?P<mark>\*\*|[-+*/(),])
       |(?P<other>[^ \t\f\r\n])""",
    re.VERBOSE,
)


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
