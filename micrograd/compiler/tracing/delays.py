"""Delays: numbers that a loop hands on from variable to variable.

    line = [*line[1:], tanh(x + w * line[0])]         # a delay line
    heads = heads[1:] + heads[:1]                     # they take turns

A few iterations, of which the program for all is made, do not show what such a loop does: of a line of 30 numbers,
the first 30 iterations read what was there before the loop. So one iteration is looked at: which number is where when
it begins, and when the next one does, also in a sum or negated, as these add no level. Numbers may be handed on for as
many iterations as are known to differ from the others, and take turns that come to an end in the same way for a few
iterations and for all.
"""

from __future__ import annotations

import sys
from collections import deque
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.compiler.guards.sources import observing, resting
from micrograd.compiler.ir.entries import LITERAL
from micrograd.compiler.tracing.outline import EDGE
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from micrograd.loops import Rows

LOOKED_AT = EDGE + 2  # the iteration that is looked at; the first ones may do something else
_MOST = 100_000  # objects; of more, the others are not looked at
_DEEPEST = 20  # containers in one another
_MOST_TERMS = 100
_SUMS = frozenset((primitives.add, primitives.sub, primitives.neg, primitives.identity, primitives.detach))
_PRODUCTS = frozenset((primitives.mul, primitives.div))
_PLAIN = frozenset((float, int, bool, str, bytes, type(None), np.float64))


def in_sight(iterations: Iterable[Any], rows: Rows) -> Iterator[Any]:
    """What a loop of a few iterations goes through, which stand for many: rows take note if its numbers go round."""
    before: dict[Any, int] = {}
    is_new = False
    for number, item in enumerate(iterations):
        if number == LOOKED_AT:
            frame = sys._getframe(1)
            line = frame.f_code, frame.f_lasti
            if is_new := line not in rows.seen:
                rows.seen.add(line)
                before = numbers_in(frame.f_locals)
        elif number == LOOKED_AT + 1 and is_new:
            rows.go_round |= goes_round(recorder_on_top(), before, numbers_in(sys._getframe(1).f_locals))
        yield item


def goes_round(tape: Any, before: Mapping[Any, int], after: Mapping[Any, int]) -> bool:
    """Whether numbers are handed on from place to place for many iterations, or take turns in an unknown way.

    Args:
        tape: the tape.
        before: the position on the tape of the number at each place, when an iteration began.
        after: those when the next one began.
    """
    places: dict[int, Any] = {}
    for place, number in before.items():
        places.setdefault(number, place)
    came_from: dict[Any, Any] = {}
    for place, number in after.items():
        sources = _sources(tape.operations, number, places)
        if sources and before.get(place) not in sources:
            came_from[place] = places[sources[0]]
    for place in came_from:
        passed: dict[Any, int] = {}  # each place, and after how many steps
        while place in came_from and place not in passed:
            passed[place] = len(passed)
            place = came_from[place]
        if len(passed) > EDGE or (place in passed and EDGE % (len(passed) - passed[place])):
            return True
    return False


def _sources(written: Any, number: int, known: Container[int]) -> list[int]:
    """Which of the known numbers it is, or a sum or a negation of: no level of the program is between them."""
    found, stack, seen = list[int](), [number], set[int]()
    while stack and len(seen) < _MOST_TERMS:
        if (position := stack.pop()) in seen:
            continue
        seen.add(position)
        primitive = written.primitives[position]
        if position in known:
            found.append(position)
        elif primitive in _SUMS or (primitive in _PRODUCTS and _is_by_one(written, position)):
            stack += written.operands(position)
    return found


def _is_by_one(written: Any, position: int) -> bool:
    factors = [each for each in written.operands(position) if written.primitives[each] is LITERAL]
    return any(written.numbers[written.first[each]] == 1.0 for each in factors)


def numbers_in(nested: Any) -> dict[Any, int]:
    """The positions on the tape of the numbers in variables, and in what these lead to, by where they are."""
    found: dict[Any, int] = {}
    seen: set[int] = set()
    stack: list[tuple[Any, Any, int]] = [((), nested, 0)]
    with resting(observing()):
        while stack and len(seen) + len(found) < _MOST:
            path, item, depth = stack.pop()
            if isinstance(item, Symbol):
                found[path] = item._position
            elif id(item) not in seen and depth < _DEEPEST:
                seen.add(id(item))
                parts = [(name, part) for name, part in _parts_of(item) if type(part) not in _PLAIN]
                stack += [((path, name), part, depth + 1) for name, part in parts]
    return found


def _parts_of(item: Any) -> list[tuple[Any, Any]]:
    """What is in a container, or in an object of a class of the user, by where."""
    if is_array(item):
        return list(enumerate(item.ravel().tolist())) if item.dtype == object else []
    if isinstance(item, (list, tuple, deque)):
        return list(enumerate(item))
    kind = type(item)
    parts = list(item.items()) if isinstance(item, dict) else []
    if kind is MethodType:
        parts.append(("__self__", item.__self__))
    elif not (isinstance(item, type) or is_foreign(kind.__module__)):
        slots = [name for base in kind.__mro__ for name in vars(base).get("__slots__", ()) if name[:2] != "__"]
        parts += [(name, getattr(item, name)) for name in slots if hasattr(item, name)]
        parts += getattr(item, "__dict__", {}).items()
    return parts
