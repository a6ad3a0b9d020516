"""Comparing what an answer gives with what is right: numbers as numbers, words as words."""

from __future__ import annotations

import math
import re
from typing import Any

_TOKEN = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?|[^\W\d_][^\W_]*|[*+/]")
_ARROW = re.compile(r"[-=]+>|→|⇒|➔")
# They change nothing in a short answer, and none of them is the name of a Value.
_FILLERS = frozenset({
    "and", "at", "because", "edge", "from", "images", "is", "it", "of", "on", "ones", "only", "path", "program", "that",
    "the", "then", "they", "this", "those", "to", "was", "were",
})  # fmt: skip
_SYNONYMS = {"cancel": "cancels", "canceled": "cancels", "cancelled": "cancels", "times": "*", "0": "zero"}
_PHRASES = {
    "notused": "unused",
    "neverused": "unused",
    "cancelsout": "cancels",
    "remainalike": "stayalike",
    "movesalongwith": "movesalong",
    "movesright": "movesalong",
    "cannotseeletters": "neverseesletters",
    "doesnotseeletters": "neverseesletters",
}


def alike(given: Any, expected: Any, tolerance: float = 1e-6, digits: int = 4) -> bool:
    """Whether what an answer gave is what was expected; a number may be rounded.

    Args:
        given: what the answer gave.
        expected: what is right: a number, or lists and dicts of numbers and texts.
        tolerance: the relative difference allowed between numbers; a fiftieth of it is always allowed.
        digits: the digits that a rounded number must have at least, or as many decimals.

    Example:
        >>> alike([1.0, (2.0, "a")], [1.0 + 1e-9, (2.0, "a")]), alike([1.0], [1.0, 1.0]), alike(0.5, "0.5")
        (True, False, False)
        >>> alike(0.3333, 1 / 3), alike(0.3334, 1 / 3), alike([10.0], 10.0)
        (True, False, True)
    """
    if isinstance(expected, (int, float)):
        if isinstance(given, list) and len(given) == 1:
            return alike(given[0], expected, tolerance, digits)
        return isinstance(given, (int, float)) and (
            math.isclose(given, expected, rel_tol=tolerance, abs_tol=0.02 * tolerance)
            or _is_rounded(given, expected, digits)
        )
    if isinstance(given, (list, tuple)) and type(given) is type(expected):
        return len(given) == len(expected) and all(map(lambda a, b: alike(a, b, tolerance, digits), given, expected))
    if isinstance(given, dict) and isinstance(expected, dict):
        return given.keys() == expected.keys() and all(
            alike(given[key], expected[key], tolerance, digits) for key in given
        )
    return bool(given == expected)


def _is_rounded(given: float, expected: float, digits: int) -> bool:
    """Whether a number is another one, rounded; with few digits left, as 0 and 1e-06, it says too little."""
    return math.isclose(given, expected, rel_tol=0.03) and any(
        given in (float(f"{expected:.{count}g}"), round(expected, count)) for count in range(digits, 16)
    )


def words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation, arrows and words that change nothing.

    Example:
        >>> words("The edge d -> a."), words("from d to a"), words("the valley at -1.22"), words("X*Y")
        (['d', 'a'], ['d', 'a'], ['valley', '-1.22'], ['x', '*', 'y'])
    """
    found = _TOKEN.findall(_ARROW.sub(" ", text.lower().replace("multiplied by", "times")))
    return [_SYNONYMS.get(word, word) for word in found if word not in _FILLERS]


def numbers(text: str) -> list[float] | None:
    """The numbers of a text that has nothing else in it; None for another one.

    Example:
        >>> numbers("4, 8 and 12"), numbers("four")
        ([4.0, 8.0, 12.0], None)
    """
    found = re.findall(r"-?\d+(?:\.\d+)?", text)
    rest = re.sub(r"-?\d+(?:\.\d+)?|and|[\s,;.\[\]()]", "", text)
    return [float(number) for number in found] if found and not rest else None


def same_words(text: str, options: Any) -> Any:
    """The option that a text means, however it is written; None for none.

    Example:
        >>> same_words("Switched-off.", ["switched off", "unused"]), same_words("it is not used", ["unused", "off"])
        ('switched off', 'unused')
    """
    meanings = {_meaning(option): option for option in options}
    return meanings.get(_meaning(text))


def _meaning(text: str) -> str:
    joined = "".join(words(text))
    return _PHRASES.get(joined, joined)
