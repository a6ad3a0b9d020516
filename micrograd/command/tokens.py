"""The words of an expression: numbers, names and marks, each with its place in the text.

Numbers and names are those of Python: ``1_000``, ``0x1f``, ``1e-3``; letters of every script.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_DIGITS = r"[0-9](?:_?[0-9])*"
_NUMBER = re.compile(
    rf"0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"
    rf"|(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
)
_SPACE = re.compile(r"[ \t\f\r\n]+")
_MARKS = ("**", *"+-*/(),")


class Token(NamedTuple):
    """A word of an expression.

    Attributes:
        kind: "number", "name", "mark", or "other" for a character that no expression has.
        text: the word as it is written.
        start, end: where it stands in the text.
    """

    kind: str
    text: str
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """The words of a text, in their order.

    Example:
        >>> [token.text for token in tokens_of("2x**-1.5e3")]
        ['2', 'x', '**', '-', '1.5e3']
    """
    tokens, place = [], 0
    while place < len(text):
        if space := _SPACE.match(text, place):
            place = space.end()
            continue
        kind, end = _kind_and_end(text, place)
        tokens.append(Token(kind, text[place:end], place, end))
        place = end
    return tokens


def _kind_and_end(text: str, start: int) -> tuple[str, int]:
    """What kind of word begins at a place, and where it ends."""
    if number := _NUMBER.match(text, start):
        return "number", number.end()
    if text[start].isidentifier():
        end = start + 1
        while end < len(text) and f"_{text[end]}".isidentifier():
            end += 1
        return "name", end
    for mark in _MARKS:
        if text.startswith(mark, start):
            return "mark", start + len(mark)
    return "other", start + 1
