"""Products of matrices: a block of results is computed at a time, so that what is read serves several of them.

Four rows by sixteen columns of a product are 64 results. A term of all of them takes four numbers of the one matrix and
sixteen of the other one: 20 are read for 64 multiplications. Of one result, two are read for each. The sums of a
block stay in registers until they are complete.

The last block of rows, and of columns, ends with the last one: some results are computed twice, to the same end.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from llvmlite import ir

from micrograd.compiler.backends.llvm_codes import ALONG_COLUMNS, ALONG_ROWS, TOGETHER, WIDE
from micrograd.compiler.backends.llvm_functions import DOUBLE, integer
from micrograd.compiler.backends.llvm_writer import KernelWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from micrograd.compiler.backends.llvm_writer import Operand


class _Segment(NamedTuple):
    """Some of the terms of a block: for each factor the operand in each of the block's rows."""

    coefficient: Any
    factors: list[list[Operand]]
    terms: Any


class ProductWriter(KernelWriter):
    """Writes the function of a product of matrices."""

    def write(self) -> None:
        """The loops over blocks. Those of rows are the inner ones: what differs by column is used again at once."""
        wide = self.code.width if self.code.along == "columns" else TOGETHER
        with self._blocks(self.columns, wide) as column, self._blocks(self.rows, self.code.block) as row:
            target, *factors = (self._in_rows(operand, row) for operand in self.operands)
            if self.code.along == "columns":
                self._vectors_of_columns(target, self._segments(factors), column)
            else:
                self._vectors_of_terms(target, self._segments(factors), column)
        self.builder.ret_void()

    @contextmanager
    def _blocks(self, count: Any, size: int) -> Generator[Any, None, None]:
        """A loop over blocks of rows or columns, of which there are as many as in a block or more."""
        last = self.builder.sub(count, integer(size))
        with self.loop(integer(0), count, size) as first:
            within = self.builder.icmp_signed("<", first, last)
            yield self.builder.select(within, first, last)

    def _in_rows(self, operand: Operand, row: Any) -> list[Operand]:
        """An operand in each row of a block; the same one where it stays."""
        if ALONG_ROWS in operand.shape.stays:
            return [operand.in_row(row)] * self.code.block
        return [operand.in_row(self.builder.add(row, integer(index))) for index in range(self.code.block)]

    def _segments(self, factors: list[list[Operand]]) -> list[_Segment]:
        given = iter(factors)
        segments = []
        for place, (coefficient, count, _) in enumerate(self.code.parts):
            terms = self.argument(self.extra + place)
            segments.append(_Segment(ir.Constant(DOUBLE, coefficient), [next(given) for _ in range(count)], terms))
        return segments

    def _vectors_of_columns(self, target: list[Operand], segments: list[_Segment], column: Any) -> None:
        """A block in vectors of columns."""
        width = min(self.code.width, WIDE)
        columns = [self.builder.add(column, integer(index)) for index in range(0, self.code.width, width)]
        totals = self._sums(segments, columns, width, lambda terms: (integer(0), terms))
        for row, sums in zip(target, totals, strict=True):
            for place, total in zip(columns, sums, strict=True):
                self.store(row, place, total)

    def _vectors_of_terms(self, target: list[Operand], segments: list[_Segment], column: Any) -> None:
        """A block in vectors of terms, which are folded in the end; then come the terms that fill no vector."""
        builder, width = self.builder, self.code.width
        columns = [builder.add(column, integer(index)) for index in range(TOGETHER)]

        def whole(terms: Any) -> Any:
            return builder.mul(builder.sdiv(terms, integer(width)), integer(width))

        vectors = self._sums(segments, columns, width, lambda terms: (integer(0), whole(terms)))
        others = self._sums(segments, columns, 1, lambda terms: (whole(terms), terms))
        for row, sums, rest in zip(target, vectors, others, strict=True):
            self.store(row, column, self.both(self.folded(sums), self.together(rest)))

    def _sums(
        self, segments: list[_Segment], columns: list[Any], width: int, part: Callable[[Any], tuple[Any, Any]]
    ) -> list[list[Any]]:
        """The sums of a part of each segment's terms: for each row of the block one for each column."""
        count = len(columns)
        totals = [self.splat(self.nothing, width)] * (self.code.block * count)
        step = width if self.code.along == "terms" else 1
        for segment in segments:
            coefficient = self.splat(segment.coefficient, width)
            with self.loop(*part(segment.terms), step, totals) as (term, sums):
                self.carry(self._with_term(sums, segment, columns, term, width, coefficient))
            totals = self.carried
        return [totals[first : first + count] for first in range(0, len(totals), count)]

    def _with_term(
        self, totals: list[Any], segment: _Segment, columns: list[Any], term: Any, width: int, coefficient: Any
    ) -> list[Any]:
        """The totals with one more term of each. What results have in common is loaded once."""
        loaded: dict[tuple[Operand, int], Any] = {}

        def number(operand: Operand, place: int) -> Any:
            key = operand, 0 if ALONG_COLUMNS in operand.shape.stays else place
            if key not in loaded:
                loaded[key] = operand.load(columns[key[1]], term, segment.terms, width)
            return loaded[key]

        places = [(row, place) for row in range(self.code.block) for place in range(len(columns))]
        return [
            self.included(total, [number(rows[row], place) for rows in segment.factors], coefficient)
            for total, (row, place) in zip(totals, places, strict=True)
        ]
