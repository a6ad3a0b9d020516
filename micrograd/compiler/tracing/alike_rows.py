"""Rows of a Jacobian that are computed alike: the gradients of one are written by the rules, those of others copied.

In

    [x[k] * x[k + 1] for k in range(n - 1)]

each residual is the product of two numbers. The rules of its operations run for two of them. What they wrote for the
second is kept, with numbers in place of what the operations read:

    reads     a, b, a * b
    writes    1 * b, 1 * a

A further residual whose operations are the same, on the same operands among those that it reads, has its own places
filled in. So a stencil of many rows takes little longer than one of few.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

from micrograd.compiler.ir.entries import INPUT, LITERAL, NO_PLACE, SUM_OF_PRODUCTS, TAKE
from micrograd.engine import further_primitives, primitives, special_functions
from micrograd.engine.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from micrograd.compiler.ir.entries import Entries, Trace

_MOST = 1000  # operations of a row; longer ones are rarely alike, and take long to compare
_NOT_COPIED = {INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE}
_MODULES = primitives, further_primitives, special_functions

# Rules of a user's primitives may do something else each time.
PURE = _NOT_COPIED.union(each for module in _MODULES for each in vars(module).values() if isinstance(each, Primitive))

Key = tuple[Any, ...]


def described(
    order: Sequence[int],
    written: Trace,
    equal: Sequence[int],
    edges: Mapping[int, Sequence[int]],
    wanted: Container[int],
) -> tuple[Key, list[int]] | None:
    """Which operations a row consists of, and on which operands; rows with equal keys are alike.

    Args:
        order: the places that the output depends on.
        written: the trace.
        equal: for each place, the first one that is equal to it.
        edges: for each place that a source reaches, those of its operands that one reaches.
        wanted: the places to differentiate by.

    Returns:
        The key, and the places of all operands and operations in the order of their numbers in it. None if the rules
        have to run for this row.
    """
    if len(order) > _MOST:
        return None
    numbers: dict[int, int] = {}
    number = numbers.setdefault
    entries, operands = written.operations, written.operands
    applied = entries.primitives
    key: list[Any] = []
    for place in order:
        if not edges[place]:  # the rules are not asked
            key.append(number(place, len(numbers)))
            continue
        if applied[place] not in PURE:
            return None
        key.append(applied[place])
        for operand in operands(place):
            first = equal[operand]
            if applied[operand] is LITERAL:
                key.append(entries[operand])
            key.append(number(operand, len(numbers)))
            key.append(operand in edges if first == operand else (number(first, len(numbers)), operand in edges))
        key.append((number(place, len(numbers)), place in wanted))
    return tuple(key), list(numbers)


class Copied:
    """What was written for one row, to be written for others."""

    def __init__(
        self, entries: Entries, begin: int, places: Sequence[int], checked: Sequence[int], found: Mapping[int, int]
    ) -> None:
        """Keep what was written from a place on.

        Args:
            entries: what is written.
            begin: the place.
            places: those that the row reads.
            checked: those of the new ones that are checked.
            found: for the places to differentiate by, those of their gradients.
        """
        block = range(begin, len(entries))
        self._applied = entries.primitives[begin:]
        self._further = [(place - begin, entries.further[place]) for place in block if place in entries.further]
        columns = [entries.first[begin:], entries.second[begin:], checked, found.keys(), found.values()]
        columns += [row for _, row in self._further]
        read = {place for column in columns for place in column}
        self._fixed = [place for place in read - set(places) if place < begin]
        numbers = {place: number for number, place in enumerate([*places, *self._fixed, *block])}
        self.is_whole = _NOT_COPIED.isdisjoint(self._applied) and all(
            place == NO_PLACE or entries.primitives[place] is LITERAL for place in self._fixed
        )
        first, second, self._checked, self._by, self._gradients, *further = (
            _chosen([numbers[place] for place in column]) for column in columns
        )
        self._first, self._second = first, second
        self._further_chosen = [(offset, chosen) for (offset, _), chosen in zip(self._further, further, strict=True)]

    def write(self, entries: Entries, places: Sequence[int], checked: dict[int, None]) -> dict[int, int]:
        """Write it for another row.

        Args:
            entries: where it is written.
            places: those that this row reads.
            checked: takes those of the new ones that are checked.

        Returns:
            For the places to differentiate by, those of their gradients.
        """
        begin = len(entries)
        every = [*places, *self._fixed, *range(begin, begin + len(self._applied))]
        entries.first.extend(self._first(every))
        entries.second.extend(self._second(every))
        for offset, chosen in self._further_chosen:
            entries.further[begin + offset] = chosen(every)
        entries.primitives += self._applied  # the last, so that what is half written is seen
        checked.update(dict.fromkeys(self._checked(every)))
        return dict(zip(self._by(every), self._gradients(every), strict=True))


def _chosen(numbers: Sequence[int]) -> Callable[[Sequence[int]], tuple[int, ...]]:
    """What takes the elements with these numbers out of a sequence."""
    if len(numbers) > 1:
        return itemgetter(*numbers)
    return lambda sequence: tuple([sequence[number] for number in numbers])
