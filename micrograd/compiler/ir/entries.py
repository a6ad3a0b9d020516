"""Entries: what a trace writes down, one operation after the other.

For ``x * y + x`` the tape says

    0  input        x
    1  input        y
    2  mul   0 1
    3  add   2 0

An entry is appended to three lists. A tuple for each, in a dictionary that finds an equal one at once, would take three
times as long and four times the memory. So only those are looked for whose operands have all been operands before: what
does not depend on the sample, in a loop over samples. Others that are equal become one later (see equals.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.engine import primitives
from micrograd.engine.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.engine.value import Value

# What a tape may have beside the primitives of the table. No gradient flows through a comparison.
INPUT = Primitive("input", "", float)
LITERAL = Primitive("literal", "", float)  # a plain number
SUM_OF_PRODUCTS = Primitive("sum_of_products", "dot", float)  # its operands: the start, and the numbers of two rows
TAKE = Primitive("take", "take", float)  # its operands: an index, and the number of a table
LESS, LESS_EQUAL, EQUAL = primitives.less, primitives.less_equal, primitives.equal

NO_PLACE = -1  # of an operand that there is not: in an array, the last element


class Entries:
    """Operations, inputs and literals, in order; the place of one is its number.

    Attributes:
        primitives: what each applies.
        first: the place of its first operand; of an input or a literal, which one it is.
        second: the place of its second operand.
        further: the other operands of what has more of them, by its place.
        names: what the inputs are called.
        numbers: what the literals are.
    """

    __slots__ = ("first", "further", "names", "numbers", "primitives", "second")

    def __init__(self) -> None:
        self.primitives: list[Primitive] = []
        self.first: list[int] = []
        self.second: list[int] = []
        self.further: dict[int, tuple[int, ...]] = {}
        self.names: list[Any] = []
        self.numbers: list[float] = []

    def append(self, primitive: Primitive, first: int = NO_PLACE, second: int = NO_PLACE, *further: int) -> int:
        """Write one down, and give its place."""
        place = len(self.primitives)
        self.first.append(first)
        self.second.append(second)
        if further:
            self.further[place] = further
        self.primitives.append(primitive)  # the last, so that what is half written is seen
        return place

    def are_whole(self) -> bool:
        """Whether none was left half written, by an exception between two lists."""
        return len(self.first) == len(self.primitives)

    def append_input(self, name: Any) -> int:
        """Write an input down, and give its place."""
        self.names.append(name)
        return self.append(INPUT, len(self.names) - 1)

    def append_literal(self, number: float) -> int:
        """Write a plain number down, and give its place."""
        self.numbers.append(number)
        return self.append(LITERAL, len(self.numbers) - 1)

    def operands(self, place: int) -> tuple[int, ...]:
        """The operands of the one at a place: places, or numbers of rows and tables."""
        first, second = self.first[place], self.second[place]
        if second == NO_PLACE:
            return () if first == NO_PLACE else (first,)
        return first, second, *self.further.get(place, ())

    def __len__(self) -> int:
        return len(self.primitives)

    def __getitem__(self, place: int) -> tuple[Any, ...]:
        """A primitive with its operands, an input with its name, or a literal with its number and the sign of that."""
        primitive = self.primitives[place]
        if primitive is INPUT:
            return primitive, self.names[self.first[place]]
        if primitive is LITERAL:
            number = self.numbers[self.first[place]]
            return primitive, number, math.copysign(1.0, number)  # 0 is equal to -0, and is another number
        return primitive, *self.operands(place)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self.__getitem__, range(len(self)))


class Trace(NamedTuple):
    """What a function did to its symbols, as plain data.

    Attributes:
        operations: in order, with inputs and literals.
        tables: the places of the elements of each sequence that something is taken from.
        rows: the places of the factors of each sequence that is multiplied with another one.
        inputs: the places of the numbers that are given at each run, group by group.
        outputs: the places of the numbers that are wanted.
        values: the Values that the function read from outside; they are the first inputs.
        checked: the places of what stands for an operation that raises where it is not finite.
        result: the Structure of what the function returned; its leaves are symbols, and numbers that never change.
        tells_apart: whether the function asked which Value is which, by == or as a key.
        depends_on_recording: whether a transform in the function gave Values that under no_grad would be plain numbers.
        takes_numbers: whether the function takes gradients of what depends on Values as plain numbers.
        equals: what has found the equal ones among many of the operations already; None if nothing has.
        remarks: what explain() says of how derivatives are computed.
    """

    operations: Entries
    tables: Sequence[tuple[int, ...]]
    rows: Sequence[tuple[int, ...]]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    values: tuple[Value, ...] = ()
    checked: tuple[int, ...] = ()
    result: Any = None
    tells_apart: bool = False
    depends_on_recording: bool = False
    takes_numbers: bool = False
    equals: EqualsInOrder | None = None
    remarks: tuple[str, ...] = ()

    def operands(self, place: int) -> tuple[int, ...]:
        """The places that a gradient flows to from the operation at a place."""
        entries = self.operations
        primitive = entries.primitives[place]
        if primitive is INPUT or primitive is LITERAL:
            return ()
        first, second = entries.first[place], entries.second[place]
        if primitive is TAKE:
            return self.tables[second]
        if primitive is SUM_OF_PRODUCTS:
            return first, *self.rows[second], *self.rows[entries.further[place][0]]
        if second != NO_PLACE and place not in entries.further:  # nearly all operations have two
            return first, second
        return entries.operands(place)


def equals_in_order(trace: Trace) -> list[int]:
    """For each entry, the place of the first one that is equal to it: its own where none comes before."""
    return EqualsInOrder().of(trace)


class EqualsInOrder:
    """Finds the same for a trace that grows: what was gone through once is not again."""

    def __len__(self) -> int:
        """How many entries were gone through."""
        return len(self._places)

    def __init__(self) -> None:
        self._places: list[int] = []
        self._known: dict[tuple[Any, ...], int] = {}
        self._rows, self._tables = _Numbering(self._places), _Numbering(self._places)

    def of(self, trace: Trace) -> list[int]:
        """For each entry, the place of the first one that is equal to it; the list grows with the trace."""
        entries, places, known = trace.operations, self._places, self._known
        done = len(places)
        columns = [column[done:] for column in (entries.primitives, entries.first, entries.second)]
        for primitive, x, y in zip(*columns, strict=True):
            place = len(places)
            key: tuple[Any, ...]
            if primitive is INPUT or primitive is LITERAL:  # a tape has each of them once
                places.append(place)
                continue
            if primitive is SUM_OF_PRODUCTS:
                rows = [self._rows.first(trace.rows, number) for number in (y, *entries.further[place])]
                key = primitive, places[x], *rows
            elif primitive is TAKE:
                key = primitive, places[x], self._tables.first(trace.tables, y)
            elif y == NO_PLACE or place in entries.further:
                key = primitive, *[places[operand] for operand in entries.operands(place)]
            else:
                key = primitive, places[x], places[y]
            places.append(known.setdefault(key, place))
        return places


class _Numbering:
    """Finds the number of the first sequence that is equal to one; its elements have their places by then."""

    def __init__(self, places: Sequence[int]) -> None:
        self._places = places
        self._found: dict[int, int] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def first(self, sequences: Sequence[tuple[int, ...]], number: int) -> int:
        """The number, for one of these sequences."""
        if number not in self._found:
            elements = tuple([self._places[element] for element in sequences[number]])
            self._found[number] = self._known.setdefault(elements, number)
        return self._found[number]
