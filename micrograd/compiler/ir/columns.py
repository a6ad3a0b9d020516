"""Columns: the operations of a trace as arrays, primitive by primitive; equal operations are one.

For ``x * y + x * x`` the tape says what stands on the left, and the columns are

    0  input        x                positions   operands
    1  input        y
    2  mul   0 1             mul     2, 3     0, 0  and  1, 0
    3  mul   0 0             add     4        2     and  3
    4  add   2 3

A trace becomes columns as soon as it is written, and its entries are forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive


class Column(NamedTuple):
    """All operations of one primitive.

    Attributes:
        primitive: what they apply.
        positions: where they stand on the tape.
        operands: for each operand, the positions of those of all operations.
    """

    primitive: Primitive
    positions: Integers
    operands: tuple[Integers, ...]


class Columns(NamedTuple):
    """A trace whose operations are columns.

    Attributes:
        trace: all else that it says; it has no operations.
        size: how many positions there are; at some there is nothing.
        literals: the positions of plain numbers.
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
        return len(self.literals) + sum(len(column.positions) for column in self.operations)
