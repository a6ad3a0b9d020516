"""What the code of kernels is written with: loops, operands, and sums.

    with loop(0, terms, 1, [total]) as (term, [before]):
        carry([included(before, [first.load(column, term, ...), second.load(...)], coefficient)])

writes a loop over the terms of a result; carried is the total after it.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import COLUMNS, ELEMENTS, FOURS, ROWS, SAME, SQUARES, TERMS
from micrograd.compiler.backends.llvm.llvm_functions import (
    DOUBLE,
    FLOAT,
    INTEGER,
    bytes_in,
    constant,
    integer,
    larger,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from micrograd.compiler.backends.llvm.llvm_codes import Code, Shape

_FAST = ("contract", "reassoc")
_IN_TABLE = 2  # numbers of a segment in a table, beside those of its factors: its coefficient and its number of terms


class Loops:
    """Writes a function with loops."""

    def __init__(self, function: ir.Function) -> None:
        self.function = function
        self.entry = function.append_basic_block("entry")
        self.builder = ir.IRBuilder(self.entry)
        self.carried: list[Any] = []

    def splat(self, number: Any, width: int) -> Any:
        """A number in all positions of a vector."""
        if width == 1:
            return number
        if isinstance(number, ir.Constant):
            return ir.Constant(ir.VectorType(number.type, width), [number] * width)
        undefined = ir.Constant(ir.VectorType(number.type, width), ir.Undefined)
        vector = self.builder.insert_element(undefined, number, integer(0))
        return self.builder.shuffle_vector(vector, undefined, _integers([0] * width))

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int, first: Any = None) -> Generator[Any, None, None]:
        """A loop from start to below stop; what is written inside is its body.

        With first values, the loop has variables. The body says with carry what they are in the next iteration;
        after the loop, carried has what they were last.
        """
        builder = self.builder
        head = self.function.append_basic_block("head")
        body = self.function.append_basic_block("body")
        end = self.function.append_basic_block("end")
        before = builder.block
        builder.branch(head)
        builder.position_at_end(head)
        index = builder.phi(INTEGER)
        index.add_incoming(start, before)
        variables = [builder.phi(value.type) for value in first or []]
        for variable, value in zip(variables, first or [], strict=True):
            variable.add_incoming(value, before)
        builder.cbranch(builder.icmp_signed("<", index, stop), body, end)
        builder.position_at_end(body)
        yield index if first is None else (index, variables)
        index.add_incoming(builder.add(index, integer(step)), builder.block)
        if first is not None:
            for variable, value in zip(variables, self.carried, strict=True):
                variable.add_incoming(value, builder.block)
            self.carried = variables
        builder.branch(head)
        builder.position_at_end(end)

    @contextmanager
    def blocks(self, count: Any, size: int) -> Generator[Any, None, None]:
        """A loop over blocks of rows, columns or terms, of which there are as many as in a block or more.

        The last block ends with the last one: some are computed twice, to the same end.
        """
        last = self.builder.sub(count, integer(size))
        with self.loop(integer(0), count, size) as first:
            within = self.builder.icmp_signed("<", first, last)
            yield self.builder.select(within, first, last)

    def carry(self, values: list[Any]) -> None:
        """Say what the variables of the loop are in its next iteration."""
        self.carried = values


def loaded(builder: Any, pointer: Any, width: int) -> Any:
    """The vector of the numbers from a position on; a number where the width is 1."""
    if width == 1:
        return builder.load(pointer)
    kind = ir.VectorType(pointer.type.pointee, width)
    return builder.load(builder.bitcast(pointer, kind.as_pointer()), align=bytes_in(kind))


def stored(builder: Any, vector: Any, pointer: Any) -> None:
    """Write what stores a vector, or a number, from a position on."""
    builder.store(vector, builder.bitcast(pointer, vector.type.as_pointer()), align=bytes_in(vector.type))


def summed(builder: Any, vector: Any) -> Any:
    """Write the sum of the numbers of a vector, in order; of a number, that is the number."""
    if not isinstance(vector.type, ir.VectorType):
        return vector
    total: Any = ir.Constant(vector.type.element, 0.0)
    for position in range(vector.type.count):
        total = builder.fadd(total, builder.extract_element(vector, integer(position)))
    return total


class Operand:
    """An operand in the code: its arguments, and where the row that is being computed starts."""

    def __init__(self, writer: KernelWriter, arguments: list[Any], shape: Shape) -> None:
        self.writer, self.shape = writer, shape
        address, self.column_step, self.term_step, *iteration_step = arguments
        self.table = writer.builder.inttoptr(address, ir.IntType(32).as_pointer())
        is_along_columns = writer.code.along == "columns" or (writer.code.turned and shape.table == ROWS)
        if shape.step is not None and is_along_columns:
            self.column_step = integer(shape.step)
        elif shape.step is not None:
            self.term_step = integer(shape.step)
        self.offset = [writer.builder.mul(writer.iteration, step) for step in iteration_step]
        self.row: Any = None
        self.start: Any = None

    def begin_row(self, row: Any) -> None:
        """Find where a row starts."""
        self.row = row
        if self.shape.table == ROWS:
            self.start = self._entry(row)

    def in_row(self, row: Any) -> Operand:
        """The same operand, in a row."""
        operand = copy(self)
        operand.begin_row(row)
        return operand

    def pointer(self, column: Any, term: Any, terms: Any) -> Any:
        """Where an element is."""
        writer, builder = self.writer, self.writer.builder
        if self.shape.table in (ELEMENTS, FOURS):
            index = builder.add(builder.mul(self.row, writer.columns), column)
            if self.shape.table == FOURS:
                index = builder.sdiv(index, integer(SAME))
            position = self._entry(builder.add(builder.mul(index, terms), term))
        elif self.shape.table in (COLUMNS, SQUARES):
            position = builder.add(self._entry(column), builder.mul(term, self.term_step))
        else:
            if self.shape.table == TERMS:
                position = self._entry(builder.add(builder.mul(self.row, terms), term))
            else:
                position = builder.add(self.start, builder.mul(term, self.term_step))
            position = builder.add(position, builder.mul(column, self.column_step))
        return builder.gep(writer.buffer, [position])

    def load(self, column: Any, term: Any, terms: Any, width: int) -> Any:
        """A vector of elements from this one on; where they stand still, this one in all positions."""
        writer, builder = self.writer, self.writer.builder
        pointer = self.pointer(column, term, terms)
        if width == 1:
            return builder.load(pointer)
        if self.shape.step == 0:
            return writer.splat(builder.load(pointer), width)
        if self.shape.step is None:
            same = SAME if self.shape.table == FOURS else 1
            vector = writer.together(
                [self._number(column, term, terms, position) for position in range(0, width, same)]
            )
            return (
                writer.picked(vector, vector, [position // same for position in range(width)]) if same > 1 else vector
            )
        return loaded(builder, pointer, width)

    def _number(self, column: Any, term: Any, terms: Any, position: int) -> Any:
        """A number of a vector that begins there."""
        builder, further = self.writer.builder, integer(position)
        if self.writer.code.along == "columns":
            return builder.load(self.pointer(builder.add(column, further), term, terms))
        return builder.load(self.pointer(column, builder.add(term, further), terms))

    def _entry(self, index: Any) -> Any:
        builder = self.writer.builder
        entry = builder.sext(builder.load(builder.gep(self.table, [index])), INTEGER)
        return builder.add(entry, *self.offset) if self.offset else entry


class KernelWriter(Loops):
    """Writes the function of one code."""

    def __init__(self, function: ir.Function, code: Code) -> None:
        super().__init__(function)
        self.module, self.code = function.module, code
        self.buffer, self.arguments, self.iteration = function.args
        self.number = self.buffer.type.pointee
        self.rows, self.columns = self.argument(0), self.argument(1)
        if code.turned:
            self.rows, self.columns = self.columns, self.rows
        shapes, size = code.shapes[:1] if code.many else code.shapes, code.per_access
        self.operands = [
            Operand(self, [self.argument(2 + size * number + index) for index in range(size)], shape)
            for number, shape in enumerate(shapes)
        ]
        self.extra = 2 + size * len(shapes)  # the arguments from here on are the kind's own
        self.row: Any = None
        nothing = {"maximum": -math.inf, "chain": -0.0}  # 0 + -0 would be 0
        self.nothing = ir.Constant(self.number, nothing.get(code.kind, 0.0))
        self.flags = _FAST if code.kind == "sum" else ()

    def argument(self, number: int) -> Any:
        """An argument of the kernel, loaded at the start."""
        with self.builder.goto_block(self.entry):
            return self.builder.load(self.builder.gep(self.arguments, [integer(number)]))

    def store(self, target: Operand, column: Any, value: Any, term: Any = None) -> None:
        """Put a number, or a vector of them, where the result in a column, and those beside it, are."""
        stored(self.builder, value, target.pointer(column, term or integer(0), integer(1)))

    def over_segments(self, totals: list[Any], include: Callable[..., list[Any]]) -> list[Any]:
        """The totals with the terms of all segments.

        Args:
            totals: what they are before.
            include: writes the loop over the terms of a segment; takes the totals before, the coefficient, the factors
                and the number of terms, and gives the totals after.
        """
        number = 1
        for position, (coefficient, factors, terms) in enumerate(self.code.parts):
            following = number + factors
            if self.code.many:
                segments, table = self.argument(self.extra + 2 * position), self.argument(self.extra + 2 * position + 1)
                with self.loop(integer(0), segments, 1, totals) as (segment, sums):
                    own, *others = self._segment(table, segment, self.code.shapes[number:following])
                    known = own if coefficient is None else ir.Constant(self.number, coefficient)
                    self.carry(include(sums, known, *others))
                totals = self.carried
            else:
                count = self.argument(self.extra + position) if terms is None else terms
                constant = ir.Constant(self.number, coefficient)
                totals = include(totals, constant, self.operands[number:following], count)
            number = following
        return totals

    def _segment(self, table: Any, segment: Any, shapes: tuple[Shape, ...]) -> tuple[Any, list[Operand], Any]:
        """The coefficient of a segment in a table, its factors, and how many terms it has."""
        builder, per_access = self.builder, self.code.per_access
        size = _IN_TABLE + per_access * len(shapes)
        first = builder.gep(builder.inttoptr(table, INTEGER.as_pointer()), [builder.mul(segment, integer(size))])
        bits, terms, *numbers = (builder.load(builder.gep(first, [integer(index)])) for index in range(size))
        operands = [Operand(self, numbers[per_access * i :][:per_access], shape) for i, shape in enumerate(shapes)]
        for operand in operands:
            operand.begin_row(self.row)
        coefficient = builder.bitcast(bits, DOUBLE)
        return builder.fptrunc(coefficient, FLOAT) if self.number == FLOAT else coefficient, operands, terms

    def folded(self, vectors: list[Any]) -> Any:
        """Fold each of one, four or eight vectors into a number; those of several are a vector."""
        count, width = len(vectors), vectors[0].type.count
        for size in (1, 2, 4):
            if len(vectors) > 1:
                vectors = [self.both(*pair) for pair in self._exchanged(vectors, size)]
        total = self.narrowed(vectors[0], width, count)
        return total if count > 1 else self.builder.extract_element(total, integer(0))

    def narrowed(self, total: Any, width: int, count: int) -> Any:
        """A vector of so many numbers folded, half onto half, into one of fewer."""
        while width > count:
            width //= 2
            low, high = range(width), range(width, 2 * width)
            total = self.both(self.picked(total, total, low), self.picked(total, total, high))
        return total

    def transposed(self, rows: list[Any]) -> list[Any]:
        """The columns of a square of vectors, or of some squares side by side."""
        size = 1
        while size < len(rows):
            pairs = self._exchanged(rows, size)
            rows, size = [even for even, _ in pairs] + [odd for _, odd in pairs], 2 * size
        return rows

    def _exchanged(self, vectors: list[Any], size: int) -> list[tuple[Any, Any]]:
        """Of each two vectors one with the even groups of so many numbers, of both in turn, and one with the odd ones.

        In groups of one, a0 a1 a2 a3 and b0 b1 b2 b3 become a0 b0 a2 b2 and a1 b1 a3 b3.
        """
        width = vectors[0].type.count
        starts = range(0, width, 2 * size)
        even = [start + by + index for start in starts for by in (0, width) for index in range(size)]
        odd = [position + size for position in even]
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        return [(self.picked(x, y, even), self.picked(x, y, odd)) for x, y in pairs]

    def included(self, total: Any, factors: list[Any], coefficient: Any) -> Any:
        """A total with one more product of factors."""
        return self.both(total, self.product(factors, coefficient))

    def product(self, factors: list[Any], coefficient: Any) -> Any:
        """A product of factors, which is a term."""
        term, *others = factors
        for factor in others:
            term = self.builder.fmul(term, factor, flags=self.flags)
        if coefficient == constant(term.type, -1.0):
            return self.builder.fneg(term)
        return self.builder.fmul(term, coefficient, flags=self.flags)  # no code comes of a multiplication by 1

    def both(self, x: Any, y: Any) -> Any:
        """The sum of two, or the larger one; NaN where one is NaN."""
        if self.code.kind == "maximum":
            return larger(self.builder, x, y)
        return self.builder.fadd(x, y, flags=self.flags)

    def together(self, numbers: list[Any]) -> Any:
        """The vector of some numbers."""
        vector = ir.Constant(ir.VectorType(self.number, len(numbers)), ir.Undefined)
        for index, number in enumerate(numbers):
            vector = self.builder.insert_element(vector, number, integer(index))
        return vector

    def beside(self, x: Any, y: Any) -> Any:
        """One vector of two."""
        return self.picked(x, y, range(2 * x.type.count))

    def picked(self, x: Any, y: Any, positions: Any) -> Any:
        """A vector of the numbers at these positions of two vectors."""
        return self.builder.shuffle_vector(x, y, _integers(positions))


def _integers(values: Any) -> Any:
    values = list(values)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)
