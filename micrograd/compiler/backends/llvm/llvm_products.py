"""Products of matrices: a block of results is computed at a time, so that what is read serves several of them.

Four rows by sixteen columns of a product are 64 results. A term of all of them takes four numbers of the one matrix and
sixteen of the other one: 20 are read for 64 multiplications. Of one result, two are read for each. The sums of a
block stay in registers until they are complete. A processor that has registers for eight rows computes so many.

Where terms lie side by side, and not columns, a block has vectors of terms, and each of its sums is folded in the end.
Of a large product the columns of a block are copied side by side first, once for all rows: then nothing is folded.

The last block of rows, and of columns, ends with the last one: some results are computed twice, to the same end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.compiler.backends.llvm.llvm_codes import ALONG_COLUMNS, ALONG_ROWS, PANEL, ROWS, TOGETHER, WIDE, Shape
from micrograd.compiler.backends.llvm.llvm_functions import bytes_in, integer
from micrograd.compiler.backends.llvm.llvm_writer import KernelWriter, Operand, loaded

if TYPE_CHECKING:
    from collections.abc import Callable


class ProductWriter(KernelWriter):
    """Writes the function of a product of matrices."""

    def write(self) -> None:
        """The loops over blocks. Those of rows are the inner ones: what differs by column is used again at once."""
        wide = self.code.width if self.code.along == "columns" else TOGETHER
        with self.blocks(self.columns, wide) as column:
            columns = [self.builder.add(column, integer(index)) for index in range(wide)]
            if self.code.packed:
                self._pack(columns)
            with self.blocks(self.rows, self.code.block) as self.row:
                if self.code.along == "columns":
                    self._vectors_of_columns(columns)
                else:
                    self._vectors_of_terms(columns)
        self.builder.ret_void()

    def _pack(self, columns: list[Any]) -> None:
        """Copy the factors that differ by column, so that their numbers in these columns lie side by side."""
        builder, number = self.builder, 1
        with builder.goto_entry_block():
            start = builder.alloca(self.number, PANEL * 2 * WIDE)  # on the stack: several threads may run this
            start.align = bytes_in(self.number) * WIDE
        for position, (_, factors, _) in enumerate(self.code.parts):
            for packed in range(number, number + factors):
                if factors == 2 and self.operands[packed].shape.stays == ALONG_ROWS:
                    terms, panel = self.argument(self.extra + position), _Panel(self, start, columns)
                    panel.fill(self.operands[packed].in_row(integer(0)), terms)
                    self.operands[packed] = panel
                    start = builder.gep(start, [builder.mul(terms, integer(len(columns)))])
            number += factors

    def _vectors_of_columns(self, columns: list[Any]) -> None:
        width = min(self.code.width, WIDE)
        firsts = columns[::width]
        totals = self._sums(firsts, width, lambda terms: (integer(0), terms))
        for row, sums in zip(self._in_rows(self.operands[0]), totals, strict=True):
            for position, total in zip(firsts, sums, strict=True):
                self.store(row, position, total)

    def _vectors_of_terms(self, columns: list[Any]) -> None:
        """A block in vectors of terms, which are folded in the end; then come the terms that fill no vector."""
        builder, width = self.builder, self.code.width

        def whole(terms: Any) -> Any:
            return builder.mul(builder.sdiv(terms, integer(width)), integer(width))

        vectors = self._sums(columns, width, lambda terms: (integer(0), whole(terms)))
        others = self._sums(columns, 1, lambda terms: (whole(terms), terms))
        for row, sums, rest in zip(self._in_rows(self.operands[0]), vectors, others, strict=True):
            self.store(row, columns[0], self.both(self.folded(sums), self.together(rest)))

    def _in_rows(self, operand: Operand) -> list[Operand]:
        """An operand in each row of the block; the same one where it stays."""
        if ALONG_ROWS in operand.shape.stays:
            return [operand.in_row(self.row)] * self.code.block
        return [operand.in_row(self.builder.add(self.row, integer(index))) for index in range(self.code.block)]

    def _sums(self, columns: list[Any], width: int, part: Callable[[Any], tuple[Any, Any]]) -> list[list[Any]]:
        """The sums of a part of each segment's terms: for each row of the block one for each column."""
        step = width if self.code.along == "terms" else 1

        def include(totals: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            in_rows = [self._in_rows(factor) for factor in factors]
            coefficient = self.splat(coefficient, width)
            with self.loop(*part(terms), step, totals) as (term, sums):
                self.carry(self._with_term(sums, in_rows, columns, term, terms, width, coefficient))
            return self.carried

        count = len(columns)
        totals = self.over_segments([self.splat(self.nothing, width)] * (self.code.block * count), include)
        return [totals[first : first + count] for first in range(0, len(totals), count)]

    def _with_term(
        self, totals: list[Any], factors: Any, columns: list[Any], term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        """The totals with one more term of each. What results have in common is loaded once."""
        loaded: dict[tuple[Operand, int], Any] = {}

        def number(operand: Operand, position: int) -> Any:
            key = operand, 0 if ALONG_COLUMNS in operand.shape.stays else position
            if key not in loaded:
                loaded[key] = operand.load(columns[key[1]], term, terms, width)
            return loaded[key]

        positions = [(row, position) for row in range(self.code.block) for position in range(len(columns))]
        return [
            self.included(total, [number(rows[row], position) for rows in factors], coefficient)
            for total, (row, position) in zip(totals, positions, strict=True)
        ]


class _Panel(Operand):
    """An operand that was copied: the numbers of some columns for a term, then those for the next term.

    Eight terms of eight columns are loaded, and transposed:

        a0 a1 a2 ..    b0 b1 b2 ..    becomes    a0 b0 ..    a1 b1 ..    a2 b2 ..
    """

    def __init__(self, writer: ProductWriter, start: Any, columns: list[Any]) -> None:
        self.writer, self.shape = writer, Shape(ROWS, 1, ALONG_ROWS)
        self._start, self._columns = start, columns

    def begin_row(self, row: Any) -> None:
        """It is the same in all rows."""

    def fill(self, operand: Operand, terms: Any) -> None:
        """Copy an operand whose terms lie side by side."""
        with self.writer.blocks(terms, WIDE) as term:
            for position in range(0, len(self._columns), WIDE):
                columns = self._columns[position : position + WIDE]
                vectors = [loaded(self.writer.builder, operand.pointer(c, term, terms), WIDE) for c in columns]
                for index, vector in enumerate(self.writer.transposed(vectors)):
                    self.writer.store(self, columns[0], vector, self.writer.builder.add(term, integer(index)))

    def pointer(self, column: Any, term: Any, terms: Any) -> Any:
        builder = self.writer.builder
        index = builder.mul(term, integer(len(self._columns)))
        return builder.gep(self._start, [builder.add(index, integer(self._columns.index(column)))])
