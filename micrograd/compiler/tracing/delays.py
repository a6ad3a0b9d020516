"""Delays: numbers that lead from one to another in a loop, and how many iterations it takes until they do so evenly.

    line = [*line[1:], tanh(x + w * line[0])]         # a delay line
    a, b, c = sin(b), sin(c), sin(a)                  # they take turns
    heat = 0.5 * heat + 0.5 * [*heat[1:], x]          # each one reads its neighbour, too

A few iterations, of which the program for all is made, do not show what such a loop does. Of a line of 30 numbers, the
first 30 iterations read what was there before the loop. How many sines a result is made of, depends on whether 3
divides their number. And it takes as many iterations as there are neighbours until x comes to the first one.

So one iteration is looked at: what is each number computed from that is there when the next one begins? From this
follows what each is computed from after any number of iterations. From some iteration on, it must be the same as EDGE
iterations before. After the first EDGE ones, which are known to differ, it may only become more.
"""

from __future__ import annotations

import math
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
from micrograd.compiler.tracing.outline import EDGE
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.variables import ITERATORS, content, in_slots
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from micrograd.loops import Rows

_FEWEST = 5 * EDGE  # iterations
_MOST = 1_000_000  # objects; of more, nobody knows
_MOST_BITS = 1 << 34  # of sets of numbers
_MOST_PAIRS = 1 << 29  # of numbers that are computed from others
_MOST_ITERATIONS = 1000  # to be traced
_DEEPEST = 20  # containers in one another
_NUMBERS = frozenset((float, int, np.float64))
_PLAIN = _NUMBERS | {bool, str, bytes, type(None), Value}


def looked_at(rows: Rows, count: int) -> int:
    """The iteration of a loop that is looked at: a late one, as the first ones may do something else.

    Where there are too few of them, rows take note of it.
    """
    if count <= 2 * EDGE:
        rows.needs(_FEWEST, count)
    return count - 2 * EDGE


def in_sight(iterations: Iterable[Any], rows: Rows, count: int) -> Iterator[Any]:
    """What a loop of a few iterations goes through, which stand for many: rows take note of how many it takes."""
    first = looked_at(rows, count)
    before: dict[Any, Any] | None = {}
    begin = 0
    for number, item in enumerate(iterations):
        if first <= number <= first + 1:
            tape: Any = recorder_on_top()
            found = numbers_in(sys._getframe(1).f_locals)
            if number > first:
                rows.needs(iterations_needed(count, tape, begin, before, found), count)
            before, begin = found, len(tape.operations)
        yield item


def iterations_needed(
    count: int, tape: Any, begin: int, before: Mapping[Any, Any] | None, after: Mapping[Any, Any] | None
) -> float:
    """How many iterations show what a loop does, however many it has; infinity where no number of them does.

    Args:
        count: how many it has now.
        tape: the tape.
        begin: how many operations there were when an iteration began.
        before: the position on the tape of the number at each place, when it began; of an element that is
            known, a tuple with it; None if nobody knows.
        after: those when the next one began.
    """
    if before is None or after is None:
        return math.inf
    changing = [place for place, number in before.items() if after.get(place, number) != number]
    if any(isinstance(before[place], tuple) for place in changing):  # the number was known
        counts = any(isinstance(after[place], tuple) for place in changing)
        return math.inf if counts else 2 * count
    if len(changing) * (len(tape.operations) - begin) > _MOST_BITS:
        return math.inf
    known: dict[int, int] = {}
    for number, place in enumerate(changing):
        known[before[place]] = known.get(before[place], 0) | 1 << number
    sources = _sources(tape, begin, known)
    return 2 * EDGE + iterations_until_even([sources.get(after[place], 0) for place in changing])


def iterations_until_even(read: Sequence[int]) -> float:
    """After how many iterations each number is computed from the same as EDGE iterations later.

    Args:
        read: for each number, what it is computed from in one iteration: a bit for each of them.

    Returns:
        The iterations; infinity if there are too many, or if after EDGE of them something gets lost.

    Example:
        >>> turns_of_two, turns_of_three, neighbours = [0b10, 0b01], [0b010, 0b100, 0b001], [0b011, 0b110, 0b100]
        >>> [iterations_until_even(read) for read in (turns_of_two, turns_of_three, neighbours)]
        [0, inf, 2]
    """
    if len(read) ** 2 > _MOST_PAIRS:
        return math.inf
    which = {each: row for row, each in enumerate(dict.fromkeys(read))}
    rows, members = np.array([which[each] for each in read], dtype=np.int64), [_members(each) for each in which]
    longest = max(map(len, members), default=0)
    having = [[row for row, each in enumerate(members) if len(each) > number] for number in range(longest)]
    nth = [(np.array(some), np.array([members[row][n] for row in some])) for n, some in enumerate(having)]
    bits = np.packbits(np.eye(len(read), -(-len(read) // 64) * 64, dtype=bool), axis=1)
    now = bits.view(np.uint64)
    earlier = deque([now])
    for iterations in range(1, _MOST_ITERATIONS):
        of_each = np.zeros((len(which), now.shape[1]), dtype=np.uint64)
        for some, numbers in nth:
            of_each[some] |= now[numbers]
        now = of_each[rows]
        if iterations >= EDGE:
            before = earlier.popleft()
            if np.array_equal(now, before):
                return iterations - EDGE
            if iterations > 2 * EDGE and (before & ~now).any():
                return math.inf
        earlier.append(now)
    return math.inf


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
            if made is not None and position == made.begin:
                found.update(_sources_of_results(made, of))
            continue
        if primitive is SUM_OF_PRODUCTS:
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


def _sources_of_results(made: Any, of: Callable[[Iterable[int]], int]) -> dict[int, int]:
    """What the results of a choice are computed from: what decides, and what they are in each branch; else all."""
    is_choice = isinstance(made, Decided) and not made.is_loop
    inside = [
        (trace, _sources(trace, 0, {number: of((each,)) for number, each in zip(trace.inputs[0], reads, strict=True)}))
        for trace, reads in (zip(made.traces, map(np.ndarray.tolist, made.reads), strict=True) if is_choice else ())
    ]
    bits = of((made.predicate if is_choice else made.read()).tolist())
    return {
        position: reduce(or_, [found.get(trace.outputs[number], 0) for trace, found in inside], bits)
        for number, position in enumerate(made.made)
    }


def _members(bits: int) -> list[int]:
    """Which bits are set."""
    digits, found = bin(bits)[:1:-1], list[int]()
    at = digits.find("1")
    while at >= 0:
        found.append(at)
        at = digits.find("1", at + 1)
    return found


def numbers_in(nested: Any) -> dict[Any, Any] | None:
    """The positions on the tape of the numbers in variables, and in what these lead to, by where; None of too many.

    In place of a position, there is a tuple with the number for each element of an array that is known.
    """
    found: dict[Any, Any] = {}
    seen: dict[int, Any] = {}
    stack: list[tuple[Any, Any, int]] = [((), nested, 0)]
    with resting(observing()):
        while stack:
            path, item, depth = stack.pop()
            if isinstance(item, Symbol):
                found[path] = item._position
            elif id(item) not in seen and depth < _DEEPEST:
                seen[id(item)] = item
                parts = _parts_of(item)
                if is_array(item):
                    found.update({(path, name): (part,) for name, part in parts if type(part) in _NUMBERS})
                stack += [((path, name), part, depth + 1) for name, part in parts if type(part) not in _PLAIN]
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
