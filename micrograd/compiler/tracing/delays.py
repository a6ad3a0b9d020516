"""Delays: numbers that a loop hands on, from variable to variable or from one to another that is computed from it.

    line = [*line[1:], tanh(x + w * line[0])]         # a delay line
    a, b, c = sin(b), sin(c), sin(a)                  # they take turns

A few iterations, of which the program for all is made, do not show what such a loop does: of a line of 30 numbers,
the first 30 iterations read what was there before the loop; and how many sines a result is made of, depends on whether
3 divides their number. So one iteration is looked at: what is each number computed from that is there when the next one
begins? Most are computed from themselves. Others may lead from one to the next for as many iterations as are known to
differ from the others, and take turns that come to an end in the same way for a few iterations and for all.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import partial, reduce
from operator import or_
from types import CellType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import is_array
from micrograd.compiler.guards.libraries import is_foreign
from micrograd.compiler.guards.sources import observing, resting
from micrograd.compiler.ir.entries import INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE, Decided, made_at
from micrograd.compiler.tracing.circles import is_long_or_uneven, members
from micrograd.compiler.tracing.outline import EDGE
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.variables import ITERATORS, content, in_slots
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from micrograd.loops import Rows

LOOKED_AT = EDGE + 2  # the iteration that is looked at; the first ones may do something else
_MOST = 1_000_000  # objects; of more, nobody knows
_MOST_BITS = 1 << 34  # of sets of numbers
_DEEPEST = 20  # containers in one another
_PLAIN = frozenset((float, int, bool, str, bytes, type(None), np.float64, Value))


def in_sight(iterations: Iterable[Any], rows: Rows) -> Iterator[Any]:
    """What a loop of a few iterations goes through, which stand for many: rows take note if its numbers go round."""
    before: dict[Any, int] | None = {}
    begin = 0
    for number, item in enumerate(iterations):
        tape: Any = recorder_on_top()
        if number == LOOKED_AT:
            before, begin = numbers_in(sys._getframe(1).f_locals), len(tape.operations)
        elif number == LOOKED_AT + 1:
            rows.go_round |= goes_round(tape, begin, before, numbers_in(sys._getframe(1).f_locals))
        yield item


def goes_round(tape: Any, begin: int, before: Mapping[Any, int] | None, after: Mapping[Any, int] | None) -> bool:
    """Whether numbers lead from place to place for many iterations, or take turns in an unknown way.

    Args:
        tape: the tape.
        begin: how many operations there were when an iteration began.
        before: the position on the tape of the number at each place, when it began; None if nobody knows.
        after: those when the next one began.
    """
    if before is None or after is None:
        return True
    changing = [place for place, number in before.items() if after.get(place, number) != number]
    if len(changing) * (len(tape.operations) - begin) > _MOST_BITS:
        return True
    known: dict[int, int] = {}
    for number, place in enumerate(changing):
        known[before[place]] = known.get(before[place], 0) | 1 << number
    sources = _sources(tape, begin, known)
    read = [sources.get(after[place], 0) for place in changing]
    others = reduce(or_, (1 << number for number, each in enumerate(read) if not each >> number & 1), 0)
    return is_long_or_uneven({number: members(read[number] & others) for number in members(others)}, EDGE)


def _sources(written: Any, begin: int, known: Mapping[int, int]) -> dict[int, int]:
    """What the operations of a tape or a trace are computed from, from a position on: a bit for each number.

    Args:
        written: the tape or the trace.
        begin: the first position.
        known: the bits of numbers by their positions.
    """
    found, entries, rows, tables = dict(known), written.operations, [*written.rows], [*written.tables]
    of_rows: dict[int, int] = {}

    def of(positions: Iterable[int]) -> int:
        return reduce(or_, [found.get(position, 0) for position in positions], 0)

    def of_row(number: int) -> int:
        if number not in of_rows:
            of_rows[number] = of(rows[number])
        return of_rows[number]

    for position in range(begin, len(entries)):
        primitive = entries.primitives[position]
        if primitive is LITERAL or position in known:
            continue
        if primitive is INPUT:
            made = made_at(written, position)
            if isinstance(made, Decided) and not made.is_loop:
                if position == made.begin:
                    found.update(_sources_of_choice(made, of))
                continue
            bits = 0 if made is None else of(made.operands_of(position))
        elif primitive is SUM_OF_PRODUCTS:
            first, *factors = entries.operands(position)
            bits = of((first,)) | of_row(factors[0]) | of_row(factors[1])
        elif primitive is TAKE:
            index, table = entries.operands(position)
            bits = of((index, *tables[table]))
        else:
            bits = of(entries.operands(position))
        if bits:
            found[position] = bits
    return found


def _sources_of_choice(made: Decided, of: Callable[[Iterable[int]], int]) -> dict[int, int]:
    """What the results of a choice are computed from: what decides, and what they are made of in each branch."""
    inside = [
        _sources(trace, 0, {number: of((position,)) for number, position in zip(trace.inputs[0], reads, strict=True)})
        for trace, reads in zip(made.traces, map(np.ndarray.tolist, made.reads), strict=True)
    ]
    decides = of(made.predicate.tolist())
    return {
        position: reduce(
            or_, [found.get(trace.outputs[n], 0) for found, trace in zip(inside, made.traces, strict=True)], decides
        )
        for n, position in enumerate(made.results.tolist())
    }


def numbers_in(nested: Any) -> dict[Any, int] | None:
    """The positions on the tape of the numbers in variables, and in what these lead to, by where; None of too many."""
    found: dict[Any, int] = {}
    seen: dict[int, Any] = {}
    stack: list[tuple[Any, Any, int]] = [((), nested, 0)]
    with resting(observing()):
        while stack:
            path, item, depth = stack.pop()
            if isinstance(item, Symbol):
                found[path] = item._position
            elif id(item) not in seen and depth < _DEEPEST:
                seen[id(item)] = item
                parts = [(name, part) for name, part in _parts_of(item) if type(part) not in _PLAIN]
                stack += [((path, name), part, depth + 1) for name, part in parts]
            if len(seen) + len(found) > _MOST:
                return None
    return found


def _parts_of(item: Any) -> list[tuple[Any, Any]]:
    """What is in a container, in a function, or in an object of a class of the user, by where."""
    if is_array(item):
        return list(enumerate(item.ravel().tolist())) if item.dtype == object else []
    if isinstance(item, (list, tuple, deque)):
        return list(enumerate(item))
    kind = type(item)
    parts = list(item.items()) if isinstance(item, dict) else []
    if kind is MethodType:
        return [(0, item.__self__), (1, item.__func__)]
    if kind is FunctionType:
        return list(enumerate((item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__)))
    if kind is CellType:
        return [("content", content(item))]
    if kind is partial:
        return list(enumerate((item.func, item.args, item.keywords, vars(item))))
    if kind in (enumerate, zip, *ITERATORS):
        return list(enumerate(item.__reduce__()[1:]))
    if not (isinstance(item, type) or is_foreign(kind.__module__)):
        parts += [((base, name), part) for base, name, part in in_slots(item)]
        parts += getattr(item, "__dict__", {}).items()
    return parts
