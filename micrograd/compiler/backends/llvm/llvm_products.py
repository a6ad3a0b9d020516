"""Products of matrices: a block of results is computed at a time, so that what is read serves several of them.

Four rows by sixteen columns of a product are 64 results. A term of all of them takes four numbers of the one matrix and
sixteen of the other one: 20 are read for 64 multiplications. Of one result, two are read for each. The sums of a
block stay in registers until they are complete. A processor that has registers for eight rows computes so many.

Where terms lie side by side, and not columns, a block has vectors of terms, and each of its sums is folded in the end.
Of a large product the columns of a block are copied side by side first, once for all rows: then nothing is folded.

The last block of rows, and of columns, ends with the last one: some results are computed twice, to the same end.
"""

from __future__ import annotations

from typing import Any

from micrograd.compiler.backends.llvm.llvm_codes import (
    ALONG_COLUMNS,
    ALONG_ROWS,
    PANEL,
    ROWS,
    SQUARES,
    TOGETHER,
    WIDE,
    Shape,
)
from micrograd.compiler.backends.llvm.llvm_functions import bytes_in, integer
from micrograd.compiler.backends.llvm.llvm_writer import KernelWriter, Operand, loaded


class ReductionWriter(KernelWriter):
    """Writes sums and maxima: those of some columns in a row, or in each row of a block."""

    def vectors_of_columns(self, columns: list[Any]) -> None:
        """Those of vectors of columns, of each of which this is the first; in a block they share what stays."""
        width = min(self.code.width, WIDE)

        def include(totals: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            if isinstance(terms, int) and factors[0].shape.table == SQUARES:
                return [self._with_square(totals[0], factors, columns[0], terms, coefficient)]
            in_rows, coefficient = list(map(self._in_rows, factors)), self.splat(coefficient, width)
            if isinstance(terms, int):  # so few that they need no loop
                for term in range(terms):
                    totals = self._with_term(
                        totals, in_rows, columns, integer(term), integer(terms), width, coefficient
                    )
                return totals
            with self.loop(integer(0), terms, 1, totals) as (term, sums):
                self.carry(self._with_term(sums, in_rows, columns, term, terms, width, coefficient))
            return self.carried

        totals = self.over_segments([self.splat(self.nothing, width)] * (self.code.block * len(columns)), include)
        for number, row in enumerate(self._in_rows(self.operands[0])):
            for position, total in zip(columns, totals[number * len(columns) :], strict=False):
                self.store(row, position, total)

    def _with_square(self, total: Any, factors: list[Operand], column: Any, terms: int, coefficient: Any) -> Any:
        """The total of a vector of columns, each with terms that lie side by side, as many as make squares of it.

        The products of the terms of a column are computed in a vector, and those of all columns transposed.
        """
        builder, coefficient, products = self.builder, self.splat(coefficient, terms), []
        for index in range(self.code.width):
            pointers = [f.pointer(builder.add(column, integer(index)), integer(0), integer(terms)) for f in factors]
            products.append(self.product([loaded(builder, pointer, terms) for pointer in pointers], coefficient))
        if terms < self.code.width:
            products = [self.beside(*pair) for pair in zip(products[:terms], products[terms:], strict=True)]
        for term in self.transposed(products):
            total = self.both(total, term)
        return total

    def vectors_of_terms(self, columns: list[Any]) -> None:
        """Those of columns side by side, over vectors of terms, which are folded in the end, and over what is left."""
        builder, width, count = self.builder, self.code.width, len(columns)
        results = self.code.block * count

        def include(sums: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            in_rows, vector = list(map(self._in_rows, factors)), self.splat(coefficient, width)
            whole = builder.mul(builder.sdiv(terms, integer(width)), integer(width))
            with self.loop(integer(0), whole, width, sums[:results]) as (term, found):
                self.carry(self._with_term(found, in_rows, columns, term, terms, width, vector))
            totals = self.carried
            with self.loop(whole, terms, 1, sums[results:]) as (term, found):
                self.carry(self._with_term(found, in_rows, columns, term, terms, 1, coefficient))
            return [*totals, *self.carried]

        sums = self.over_segments([self.splat(self.nothing, width)] * results + [self.nothing] * results, include)
        for number, row in enumerate(self._in_rows(self.operands[0])):
            vectors, rest = (sums[first : first + count] for first in (number * count, results + number * count))
            self.store(row, columns[0], self.both(self.folded(vectors), self.together(rest) if count > 1 else rest[0]))

    def _in_rows(self, operand: Operand) -> list[Operand]:
        """An operand in each row of the block; the same one where it stays."""
        if self.code.block == 1:
            return [operand]
        if ALONG_ROWS in operand.shape.stays:
            return [operand.in_row(self.row)] * self.code.block
        return [operand.in_row(self.builder.add(self.row, integer(index))) for index in range(self.code.block)]

    def _with_term(
        self, totals: list[Any], factors: Any, columns: list[Any], term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        """The totals with one more term of each. What results have in common is loaded once."""
        loaded: dict[tuple[Operand, int], Any] = {}

        def number(operand: Operand, position: int) -> Any:
            stays = ALONG_COLUMNS in operand.shape.stays or (self.code.along == "columns" and operand.shape.step == 0)
            key = operand, 0 if stays else position
            if key not in loaded:
                loaded[key] = operand.load(columns[key[1]], term, terms, width)
            return loaded[key]

        positions = [(row, position) for row in range(self.code.block) for position in range(len(columns))]
        return [
            self.included(total, [number(rows[row], position) for rows in factors], coefficient)
            for total, (row, position) in zip(totals, positions, strict=True)
        ]


class ProductWriter(ReductionWriter):
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
                    self.vectors_of_columns(columns[::WIDE])
                else:
                    self.vectors_of_terms(columns)
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
        """Where an element is."""
        builder = self.writer.builder
        index = builder.mul(term, integer(len(self._columns)))
        return builder.gep(self._start, [builder.add(index, integer(self._columns.index(column)))])
