"""Products of matrices: a block of results is computed at a time, so that what is read serves several of them.

Four rows by sixteen columns of a product are 64 results. A term of all of them takes four numbers of the one matrix and
sixteen of the other one: 20 are read for 64 multiplications. Of one result, two are read for each. The sums of a
block stay in registers until they are complete.

The last block of rows, and of columns, ends with the last one: some results are computed twice, to the same end.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from micrograd.compiler.backends.llvm_codes import ALONG_COLUMNS, ALONG_ROWS, TOGETHER, WIDE
from micrograd.compiler.backends.llvm_functions import integer
from micrograd.compiler.backends.llvm_writer import KernelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from micrograd.compiler.backends.llvm_writer import Operand


class ProductWriter(KernelWriter):
    """Writes the function of a product of matrices."""

    def write(self) -> None:
        """The loops over blocks. Those of rows are the inner ones: what differs by column is used again at once."""
        wide = self.code.width if self.code.along == "columns" else TOGETHER
        with self._blocks(self.columns, wide) as column, self._blocks(self.rows, self.code.block) as self.row:
            if self.code.along == "columns":
                self._vectors_of_columns(column)
            else:
                self._vectors_of_terms(column)
        self.builder.ret_void()

    @contextmanager
    def _blocks(self, count: Any, size: int) -> Generator[Any, None, None]:
        """A loop over blocks of rows or columns, of which there are as many as in a block or more."""
        last = self.builder.sub(count, integer(size))
        with self.loop(integer(0), count, size) as first:
            within = self.builder.icmp_signed("<", first, last)
            yield self.builder.select(within, first, last)

    def _vectors_of_columns(self, column: Any) -> None:
        """A block in vectors of columns."""
        width = min(self.code.width, WIDE)
        columns = [self.builder.add(column, integer(index)) for index in range(0, self.code.width, width)]
        totals = self._sums(columns, width, lambda terms: (integer(0), terms))
        for row, sums in zip(self._in_rows(self.operands[0]), totals, strict=True):
            for place, total in zip(columns, sums, strict=True):
                self.store(row, place, total)

    def _vectors_of_terms(self, column: Any) -> None:
        """A block in vectors of terms, which are folded in the end; then come the terms that fill no vector."""
        builder, width = self.builder, self.code.width
        columns = [builder.add(column, integer(index)) for index in range(TOGETHER)]

        def whole(terms: Any) -> Any:
            return builder.mul(builder.sdiv(terms, integer(width)), integer(width))

        vectors = self._sums(columns, width, lambda terms: (integer(0), whole(terms)))
        others = self._sums(columns, 1, lambda terms: (whole(terms), terms))
        for row, sums, rest in zip(self._in_rows(self.operands[0]), vectors, others, strict=True):
            self.store(row, column, self.both(self.folded(sums), self.together(rest)))

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

        def number(operand: Operand, place: int) -> Any:
            key = operand, 0 if ALONG_COLUMNS in operand.shape.stays else place
            if key not in loaded:
                loaded[key] = operand.load(columns[key[1]], term, terms, width)
            return loaded[key]

        places = [(row, place) for row in range(self.code.block) for place in range(len(columns))]
        return [
            self.included(total, [number(rows[row], place) for rows in factors], coefficient)
            for total, (row, place) in zip(totals, places, strict=True)
        ]
