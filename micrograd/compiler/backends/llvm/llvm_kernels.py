"""Kernels as LLVM code: a function for each kind of loop, with offsets and extents as arguments.

Every kernel is compiled to the same signature,

    void kernel(double *buffer, const int64_t *arguments, int64_t iteration)

(or ``float *buffer``, where a program computes in float32),

and its arguments say where its operands are, how far apart they are and how many there are. Fixed in the
code is only what decides how the loop is best written, see llvm_codes.py.

A reduction of many segments, as a weight has that every step of a recurrent program uses, sorts them by the shapes
of their factors. One loop runs over all of a sort, and reads from a table what is another thing in each:

    for segment in table:
        for term in range(segment.terms): total += segment.coefficient * first[term] * second[term]

In a loop of kernels, each operand lies further on by its step times the iteration.

Where columns lie side by side, several columns are computed at a time in a vector; else, where terms do,
several terms; of a very long sum, however they lie. Many columns are computed in vectors even where an operand lies
apart: its numbers are loaded one by one. The rows of a kernel of one column are then the columns of one row, as where
each score of attention is divided by the sum of its position.

A chain is a sum of few terms, which are added in their order. Longer sums may be taken in another order, and a product
and a sum in them may be rounded once instead of twice.
Nothing else is assumed of the numbers: they may be infinite or NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import ALONG_COLUMNS, FOUR_VECTORS, SQUARES, TOGETHER, WIDE
from micrograd.compiler.backends.llvm.llvm_functions import (
    DOUBLE,
    FLOAT,
    INTEGER,
    forward,
    integer,
    native_name,
    new_function,
)
from micrograd.compiler.backends.llvm.llvm_products import ProductWriter
from micrograd.compiler.backends.llvm.llvm_writer import KernelWriter, Operand, loaded

if TYPE_CHECKING:
    from micrograd.compiler.backends.llvm.llvm_codes import Code


def kernel_of(number: Any) -> ir.FunctionType:
    """The type of kernels on such numbers."""
    return ir.FunctionType(ir.VoidType(), [number.as_pointer(), INTEGER.as_pointer(), INTEGER])


KERNEL = kernel_of(DOUBLE)


def module_of(code: Code, name: str, number: Any) -> ir.Module:
    """The module with the function of a code on such numbers, under a name."""
    writer = (ProductWriter if code.block > 1 else _Writer)(new_function(name, kernel_of(number)), code)
    writer.write()
    return writer.module


class _Writer(KernelWriter):
    """Writes the function of one code."""

    _index: Any = None  # of a take, where a row has but one

    def write(self) -> None:
        compute = {"map": self._map, "take": self._take}.get(self.code.kind, self._reduction)
        with self.loop(integer(0), self.rows, 1) as row:
            self.row = row
            for operand in self.operands:
                operand.begin_row(row)
            if self.code.kind == "take" and ALONG_COLUMNS in self.operands[1].shape.stays:
                self._index = self._index_of(integer(0))
            if self.code.along == "columns":
                with self.blocks(self.columns, self.code.width) as column:
                    compute(column)
            elif self.code.along == "terms" and self.code.turned:
                with self.blocks(self.columns, self.code.width) as column:
                    self._vectors_of_terms(column, self.code.width)
            elif self.code.width == FOUR_VECTORS:
                with self.loop(integer(0), self.columns, 1) as column:
                    self._of_few(column)
            elif self.code.along == "terms":
                done = integer(0)
                if self.code.shapes[0].step:  # results that lie side by side are stored together
                    done = self.builder.mul(self.builder.sdiv(self.columns, integer(TOGETHER)), integer(TOGETHER))
                    with self.loop(integer(0), done, TOGETHER) as column:
                        self._vectors_of_terms(column, TOGETHER)
                with self.loop(done, self.columns, 1) as column:
                    self._vectors_of_terms(column, 1)
            else:
                with self.loop(integer(0), self.columns, 1) as column:
                    compute(column)
        self.builder.ret_void()

    def _store(self, column: Any, value: Any) -> None:
        self.store(self.operands[0], column, value)

    def _reduction(self, column: Any) -> None:
        """A number, a vector of columns, or two of them that share what stands still."""
        width = min(self.code.width, WIDE)
        columns = [column] if self.code.width == width else [column, self.builder.add(column, integer(WIDE))]

        def include(totals: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            if isinstance(terms, int) and factors[0].shape.table == SQUARES:
                return [self._with_square(totals[0], factors, column, terms, coefficient)]
            coefficient = self.splat(coefficient, width)
            if isinstance(terms, int):  # so few that they need no loop
                for term in range(terms):
                    totals = self._next(totals, factors, columns, integer(term), integer(terms), width, coefficient)
                return totals
            with self.loop(integer(0), terms, 1, totals) as (term, sums):
                self.carry(self._next(sums, factors, columns, term, terms, width, coefficient))
            return self.carried

        totals = self.over_segments([self.splat(self.nothing, width) for _ in columns], include)
        for position, total in zip(columns, totals, strict=True):
            self._store(position, total)

    def _next(
        self, totals: Any, factors: Any, columns: Any, term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        """The totals with one more term of each; what stands still is loaded once."""
        column, *_ = columns
        shared = {f: f.load(column, term, terms, width) for f in factors if f.shape.step == 0}
        return [
            self.included(total, [shared.get(f) or f.load(position, term, terms, width) for f in factors], coefficient)
            for position, total in zip(columns, totals, strict=True)
        ]

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

    def _vectors_of_terms(self, column: Any, count: int) -> None:
        """The sums, or maxima, of a few columns, over vectors of terms first and then over what is left."""
        builder, width = self.builder, self.code.width
        columns = [builder.add(column, integer(index)) for index in range(count)]

        def include(sums: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            return self._with_terms(sums, coefficient, factors, columns, terms)

        nothing = [self.splat(self.nothing, width) for _ in columns] + [self.nothing for _ in columns]
        sums = self.over_segments(nothing, include)
        totals, rests = sums[:count], sums[count:]
        folded = self.folded(totals)
        if count == 1:
            self._store(column, self.both(folded, *rests))
            return
        self._store(column, self.both(folded, self.together(rests)))

    def _of_few(self, column: Any) -> None:
        """A sum, or maximum, that is one of few: of four vectors of terms, if it is long; else of one."""
        builder = self.builder
        many = self.argument(self.extra + len(self.code.parts) * (1 + self.code.many))  # 1 if it is long, else 0
        is_long = builder.icmp_signed("!=", many, integer(0))

        def include(sums: list[Any], coefficient: Any, factors: list[Operand], terms: Any) -> list[Any]:
            ends = [builder.mul(builder.sdiv(terms, integer(size)), integer(size)) for size in (FOUR_VECTORS, WIDE)]
            of_four = builder.mul(ends[0], many)
            of_one = builder.select(is_long, of_four, ends[1])
            begin, after = integer(0), []
            for end, width, total in zip((of_four, of_one, terms), (FOUR_VECTORS, WIDE, 1), sums, strict=True):
                vector = self.splat(coefficient, width)
                with self.loop(begin, end, width, [total]) as (term, found):
                    self.carry(self._terms(found, factors, [column], term, terms, width, vector))
                after += self.carried
                begin = end
            return after

        nothing = [self.splat(self.nothing, width) for width in (FOUR_VECTORS, WIDE, 1)]
        four, one, rest = self.over_segments(nothing, include)
        total = builder.select(is_long, self.narrowed(four, FOUR_VECTORS, WIDE), one)
        self._store(column, self.both(self.folded([total]), rest))

    def _with_terms(self, sums: list[Any], coefficient: Any, factors: Any, columns: Any, terms: Any) -> list[Any]:
        """The sums of vectors of a segment's terms, and of those that are left, for several columns."""
        builder, width = self.builder, self.code.width
        vector = self.splat(coefficient, width)
        whole = builder.mul(builder.sdiv(terms, integer(width)), integer(width))
        totals, rests = sums[: len(columns)], sums[len(columns) :]
        with self.loop(integer(0), whole, width, totals) as (term, found):
            self.carry(self._terms(found, factors, columns, term, terms, width, vector))
        totals = self.carried
        with self.loop(whole, terms, 1, rests) as (term, found):
            self.carry(self._terms(found, factors, columns, term, terms, 1, coefficient))
        return [*totals, *self.carried]

    def _terms(
        self, totals: Any, factors: Any, columns: Any, term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        return [
            self.included(total, [f.load(column, term, terms, width) for f in factors], coefficient)
            for column, total in zip(columns, totals, strict=True)
        ]

    def _map(self, column: Any) -> None:
        values = [operand.load(column, integer(0), integer(1), self.code.width) for operand in self.operands[1:]]
        primitive = self.code.primitive
        assert primitive is not None
        if native_name(primitive):
            self._store(column, forward(primitive, self.builder, self.module, values))
            return
        kind, builder, is_float = ir.FunctionType(DOUBLE, [DOUBLE] * len(values)), self.builder, self.number == FLOAT
        function = builder.inttoptr(self.argument(self.extra), kind.as_pointer())
        result = builder.call(function, [builder.fpext(value, DOUBLE) for value in values] if is_float else values)
        self._store(column, builder.fptrunc(result, FLOAT) if is_float else result)

    def _take(self, column: Any) -> None:
        valid, number, terms = self._index or self._index_of(column)
        element = self.operands[2].load(column, number, terms, 1)
        self._store(column, self.builder.select(valid, element, ir.Constant(self.number, math.nan)))

    def _index_of(self, column: Any) -> tuple[Any, Any, Any]:
        """Whether the index of a take is one, the number of its element, and how many elements there are."""
        builder = self.builder
        terms = self.argument(self.extra)
        index = self.operands[1].load(column, integer(0), integer(1), 1)
        high = builder.sitofp(terms, self.number)
        valid = builder.and_(
            builder.fcmp_ordered(">=", index, builder.fneg(high)), builder.fcmp_ordered("<", index, high)
        )
        number = builder.fptosi(builder.select(valid, index, ir.Constant(self.number, 0.0)), INTEGER)
        valid = builder.and_(valid, builder.fcmp_ordered("==", builder.sitofp(number, self.number), index))
        from_end = builder.icmp_signed("<", number, integer(0))
        return valid, builder.select(from_end, builder.add(number, terms), number), terms
