"""Columns: the operations of a trace as arrays, primitive by primitive; equal operations are one.

For ``x * y + x * x`` the tape says what stands on the left, and the columns are

    0  input        x                places   operands
    1  input        y
    2  mul   0 1             mul     2, 3     0, 0  and  1, 0
    3  mul   0 0             add     4        2     and  3
    4  add   2 3

A trace becomes columns as soon as it is written, and its entries are forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.entries import INPUT, LITERAL, NO_PLACE, SUM_OF_PRODUCTS, TAKE, Entries
from micrograd.compiler.equals import Equals, find_equals
from micrograd.compiler.numbers import no_integers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from micrograd.compiler.entries import Trace
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive


class Column(NamedTuple):
    """All operations of one primitive.

    Attributes:
        primitive: what they apply.
        places: where they stand on the tape.
        operands: for each operand, the places of those of all operations.
    """

    primitive: Primitive
    places: Integers
    operands: tuple[Integers, ...]


class Columns(NamedTuple):
    """A trace whose operations are columns.

    Attributes:
        trace: all else that it says; it has no operations.
        size: how many places there are; at some there is nothing.
        literals: the places of plain numbers.
        numbers: what these numbers are.
        operations: the others, but for inputs.
    """

    trace: Trace
    size: int
    literals: Integers
    numbers: Floats
    operations: tuple[Column, ...]

    @property
    def nodes(self) -> int:
        """How many operations and literals there are."""
        return len(self.literals) + sum(len(column.places) for column in self.operations)


def in_columns(trace: Trace) -> Columns:
    """The columns of a trace."""
    entries, equal = trace.operations, Equals(trace)
    codes: defaultdict[Primitive, int] = defaultdict(count().__next__)
    code = np.fromiter(map(codes.__getitem__, entries.primitives), np.int64, len(entries))
    places = {primitive: np.flatnonzero(code == number) for primitive, number in codes.items()}
    inputs, literals = (places.pop(kind, no_integers()) for kind in (INPUT, LITERAL))
    code[inputs] = code[literals] = NO_PLACE
    operands = _operands(entries, places, equal)
    find_equals(trace, code, operands, equal)
    operations = []
    for primitive, of_primitive in places.items():
        number = len(entries.operands(int(of_primitive[0])))
        chosen = of_primitive[equal.first[of_primitive] == of_primitive]
        columns = [equal.first[operand[chosen]] for operand in operands[:number]]
        if primitive is SUM_OF_PRODUCTS or primitive is TAKE:
            begin = equal.first_row if primitive is SUM_OF_PRODUCTS else equal.first_table
            columns[1:] = [column - begin for column in columns[1:]]
        operations.append(Column(primitive, chosen, tuple(columns)))
    trace = trace._replace(
        operations=Entries(),
        rows=equal.rows,
        tables=equal.tables,
        outputs=tuple(equal.first[list(trace.outputs)].tolist()),
        checked=tuple(dict.fromkeys(equal.first[list(trace.checked)].tolist())),
    )
    numbers = np.array(entries.numbers, dtype=np.float64)[operands[0, literals]]
    return Columns(trace, len(entries), literals, numbers, tuple(operations))


def _operands(entries: Entries, places: Mapping[Primitive, Integers], equal: Equals) -> Integers:
    """In a row all first operands, in one the second ones and so on, by the numbers that Equals has for them."""
    longest = max(map(len, entries.further.values()), default=0)
    operands = np.full((2 + longest, len(entries)), NO_PLACE)
    operands[0], operands[1] = entries.first, entries.second
    further = list(entries.further)
    for number, row in enumerate(operands[2:]):
        row[further] = [others[number] if number < len(others) else NO_PLACE for others in entries.further.values()]
    for primitive, begin in (SUM_OF_PRODUCTS, equal.first_row), (TAKE, equal.first_table):
        if primitive in places:
            operands[1 : 2 + (primitive is SUM_OF_PRODUCTS), places[primitive]] += begin
    return operands
