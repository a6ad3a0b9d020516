r"""Numbers and labels as a picture shows them.

A number is as long as it has to be, and a label is shown as typed: of a character that a picture cannot show,
such as a tab, a zero byte or half a surrogate pair, Python's way to write it is shown: ``\\t``, ``\\x00``.
"""

from __future__ import annotations

import unicodedata
from html import escape

LABEL_LIMIT = 60  # characters


def readable(number: float) -> str:
    """A number in full where that is short, else to four digits: 1.000 is nearly 1, and 1 is exactly 1.

    Example:
        >>> [readable(x) for x in (1.0, 0.99999, -24.5, 24.7041, 1382.47, 1e-300, 123456.0, float("nan"))]
        ['1', '1.000', '-24.5', '24.70', '1382.5', '1e-300', '123456', 'nan']
        >>> readable(-0.0)
        '0'
    """
    exact = repr(number + 0.0).removesuffix(".0")  # -0.0 + 0.0 is 0.0
    if len(exact.removeprefix("-")) <= 6:
        return exact
    rounded = f"{number:#.4g}"
    return f"{number:.1f}" if rounded.endswith(".") else rounded


def label_text(label: object) -> str:
    """A label, shown as typed, in Graphviz's language; cut where it is long."""
    text = str(label)
    if len(text) > LABEL_LIMIT:
        text = f"{text[: LABEL_LIMIT - 1]}…"
    text = "".join(map(visible, text)).replace("\\", "\\\\")  # Graphviz has its own use for \\N and \\L
    return escape(text).replace("\n", "<br/>")


def visible(character: str) -> str:
    """A character, or its escape in Python where it is one that XML cannot hold or Graphviz would drop."""
    unseen = unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"
    return repr(character)[1:-1] if unseen and character != "\n" else character


# What turns the direction of writing, with what ends it.
_TURNS = dict.fromkeys("\u202a\u202b\u202d\u202e", "\u202c") | dict.fromkeys("\u2066\u2067\u2068", "\u2069")


def enclosed(text: str) -> str:
    r"""A text as typed, that turns the direction of nothing beside it: what it turns ends in it.

    Example:
        >>> ascii(enclosed("to the \u202eleft"))
        "'to the \\u202eleft\\u202c'"
    """
    parts: list[str] = []
    ends: list[str] = []  # of what was begun, the innermost last
    for character in f"{text}\n":
        if character in _TURNS:
            ends.append(_TURNS[character])
        elif character in _TURNS.values():
            if character not in ends or (character == "\u202c" != ends[-1]):
                continue  # it would end what began before the text
            while ends.pop() != character:
                pass
        elif character in "\n\u2029":  # which end everything in some places, and nothing in others
            parts += ends[::-1]
            ends.clear()
        parts.append(visible(character))
    return "".join(parts[:-1])


def tooltip_text(text: str) -> str:
    """A text for a tooltip, shown as typed."""
    return escape("".join(map(visible, text))).replace("\\", 4 * "\\")  # a tooltip is unescaped twice
