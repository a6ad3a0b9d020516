"""Statements that differ in numbers only, as a loop over these.

    multiply_dots(9, &work[704], &work[76]);           for (int item = 0; item < 3; item++) {
    multiply_dots(10, &work[768], &work[112]);    ->       multiply_dots(item + 9, &work[64 * item + 704],
    multiply_dots(11, &work[832], &work[152]);                 &work[indices_1[item] + 76]);
                                                       }

So there are loops where lengths differ from one iteration to the next, which a kernel cannot say. The order stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.backends.c.memory import indexed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.backends.c.memory import Tables
    from micrograd.compiler.numbers import Integers

_FEWEST = 3  # repeats that are worth a loop
_PERIODS = 8  # statements that are repeated together, at most
_NUMBER = re.compile(r"(?<![\w.])(?<!e[-+])\d+(?![\w.])")  # a whole one, by itself
_ITEM = "item"
_ENTRY = 6  # characters of a number in a table, about


class Statement(NamedTuple):
    """What a kernel becomes.

    Attributes:
        lines: its text.
        is_single: whether it computes one number: then a loop is worth it only if it needs no tables.
    """

    lines: list[str]
    is_single: bool


class _Parsed(NamedTuple):
    """A statement as a form and its numbers."""

    form: str
    numbers: list[int]
    statement: Statement


def repeated(statements: Sequence[Statement], tables: Tables) -> list[str]:
    """The lines of statements, with loops where they repeat but for numbers."""
    parsed = [_parsed(each) for each in statements if each.lines]
    lines: list[str] = []
    position = 0
    while position < len(parsed):
        best, gain = (1, 1), 0
        for period in range(1, _PERIODS + 1):
            count = _repeats(parsed, position, period)
            if count >= _FEWEST and (found := _gain(parsed, position, period, count)) > gain:
                best, gain = (period, count), found
        period, count = best
        lines += _loop(parsed, position, period, count, tables) if gain else parsed[position].statement.lines
        position += period * count
    return lines


def _parsed(statement: Statement) -> _Parsed:
    text = "\n".join(statement.lines)
    return _Parsed(_NUMBER.sub("#", text), [*map(int, _NUMBER.findall(text))], statement)


def _repeats(parsed: Sequence[_Parsed], start: int, period: int) -> int:
    """How often the next statements are repeated, the first time included."""
    end = start + period
    if any(first.statement.is_single for first in parsed[start:end]):
        while (
            end < len(parsed) and parsed[end].form == parsed[end - period].form and _is_even(parsed, start, end, period)
        ):
            end += 1
    else:
        while end < len(parsed) and parsed[end].form == parsed[end - period].form:
            end += 1
    return (end - start) // period


def _is_even(parsed: Sequence[_Parsed], start: int, end: int, period: int) -> bool:
    """Whether the numbers of a statement are as far from those of the last repeat as these from the one before."""
    if end - 2 * period < start:
        return True
    older, old, new = (parsed[end - back * period].numbers for back in (2, 1, 0))
    return all(c - b == b - a for a, b, c in zip(older, old, new, strict=True))


def _matrix(parsed: Sequence[_Parsed], start: int, period: int, count: int) -> Integers:
    """The numbers in each repeat."""
    rows = [
        [number for each in parsed[start + period * n : start + period * (n + 1)] for number in each.numbers]
        for n in range(count)
    ]
    return np.array(rows, dtype=int)


def _gain(parsed: Sequence[_Parsed], start: int, period: int, count: int) -> int:
    """How many characters fewer a loop has."""
    size = sum(len(each.form) for each in parsed[start : start + period])
    differences = np.diff(_matrix(parsed, start, period, count), axis=0)
    uneven = {column.tobytes() for column in differences.T if (column != column[0]).any()}
    return (count - 2) * size - _ENTRY * count * len(uneven)


def _loop(parsed: Sequence[_Parsed], start: int, period: int, count: int, tables: Tables) -> list[str]:
    columns = iter(_matrix(parsed, start, period, count).T)
    first = parsed[start].statement.lines[0]
    indent = first[: len(first) - len(first.lstrip())]
    lines = [f"{indent}for (int {_ITEM} = 0; {_ITEM} < {count}; {_ITEM}++) {{"]
    for each in parsed[start : start + period]:
        before, *others = each.form.split("#")
        text = before
        for after in others:
            number = indexed(next(columns), _ITEM, tables)
            product = text[-2:] in ("* ", "/ ", "% ", "- ") or after[:2] in (" *", " /", " %")
            text += (f"({number})" if product and " " in number else number) + after
        lines += [f"    {line}" for line in text.split("\n")]
    return [*lines, f"{indent}}}"]


def copied(count: int, target: str, source: str, sign: str = "=") -> list[str]:
    """The loop of an assignment, for so many numbers; for one, the assignment alone."""
    if count == 1:
        text = f"{target} {sign} {source};"
        return [text.replace(" + index", "").replace("index + ", "").replace("[index]", "[0]")]
    head = f"for (int index = 0; index < {count}; index++) {{"
    return [head, f"    {target} {sign} {source};", "}"] if count else []
