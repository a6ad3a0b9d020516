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

from micrograd.compiler.backends.llvm_codes import ELEMENTS, ROWS, TERMS
from micrograd.compiler.backends.llvm_functions import DOUBLE, INTEGER, constant, integer, larger

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from micrograd.compiler.backends.llvm_codes import Code, Shape

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
        """A number in all places of a vector."""
        if width == 1:
            return number
        if isinstance(number, ir.Constant):
            return ir.Constant(ir.VectorType(DOUBLE, width), [number] * width)
        undefined = ir.Constant(ir.VectorType(DOUBLE, width), ir.Undefined)
        vector = self.builder.insert_element(undefined, number, integer(0))
        return self.builder.shuffle_vector(vector, undefined, _integers([0] * width))

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int, first: Any = None) -> Generator[Any, None, None]:
        """A loop from start to below stop; what is written inside is its body.

        With first values, the loop has variables. The body says with carry what they are in the next turn;
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

    def carry(self, values: list[Any]) -> None:
        """Say what the variables of the loop are in its next turn."""
        self.carried = values


class Operand:
    """An operand in the code: its arguments, and where the row that is being computed starts."""

    def __init__(self, writer: KernelWriter, arguments: list[Any], shape: Shape) -> None:
        self.writer, self.shape = writer, shape
        address, self.column_step, self.term_step, *turn_step = arguments
        self.table = writer.builder.inttoptr(address, INTEGER.as_pointer())
        along = writer.code.along
        if shape.step is not None and along == "columns":
            self.column_step = integer(shape.step)
        elif shape.step is not None:
            self.term_step = integer(shape.step)
        self.offset = [writer.builder.mul(writer.turn, step) for step in turn_step]
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
        if self.shape.table == ELEMENTS:
            index = builder.add(builder.mul(self.row, writer.columns), column)
            place = self._entry(builder.add(builder.mul(index, terms), term))
        else:
            if self.shape.table == TERMS:
                place = self._entry(builder.add(builder.mul(self.row, terms), term))
            else:
                place = builder.add(self.start, builder.mul(term, self.term_step))
            place = builder.add(place, builder.mul(column, self.column_step))
        return builder.gep(writer.buffer, [place])

    def load(self, column: Any, term: Any, terms: Any, width: int) -> Any:
        """A vector of elements from this one on; where they stand still, this one in all places."""
        writer, builder = self.writer, self.writer.builder
        pointer = self.pointer(column, term, terms)
        if width == 1:
            return builder.load(pointer)
        if self.shape.step == 0:
            return writer.splat(builder.load(pointer), width)
        if self.shape.step is None:
            vector = ir.Constant(ir.VectorType(DOUBLE, width), ir.Undefined)
            for place in range(width):
                pointer = self.pointer(column, builder.add(term, integer(place)), terms)
                vector = builder.insert_element(vector, builder.load(pointer), integer(place))
            return vector
        return builder.load(builder.bitcast(pointer, ir.VectorType(DOUBLE, width).as_pointer()), align=8)

    def _entry(self, index: Any) -> Any:
        entry = self.writer.builder.load(self.writer.builder.gep(self.table, [index]))
        return self.writer.builder.add(entry, *self.offset) if self.offset else entry


class KernelWriter(Loops):
    """Writes the function of one code."""

    def __init__(self, module: ir.Module, function: ir.Function, code: Code) -> None:
        super().__init__(function)
        self.module, self.code = module, code
        self.buffer, self.arguments, self.turn = function.args
        self.rows, self.columns = self.argument(0), self.argument(1)
        shapes, size = code.shapes[:1] if code.many else code.shapes, code.per_access
        self.operands = [
            Operand(self, [self.argument(2 + size * number + index) for index in range(size)], shape)
            for number, shape in enumerate(shapes)
        ]
        self.extra = 2 + size * len(shapes)  # the arguments from here on are the kind's own
        self.row: Any = None
        nothing = {"maximum": -math.inf, "chain": -0.0}  # 0 + -0 would be 0
        self.nothing = ir.Constant(DOUBLE, nothing.get(code.kind, 0.0))
        self.flags = _FAST if code.kind == "sum" else ()

    def argument(self, number: int) -> Any:
        """An argument of the kernel, loaded at the start."""
        with self.builder.goto_block(self.entry):
            return self.builder.load(self.builder.gep(self.arguments, [integer(number)]))

    def store(self, target: Operand, column: Any, value: Any) -> None:
        """Put a number, or a vector of them, where the result in a column, and those beside it, are."""
        pointer = target.pointer(column, integer(0), integer(1))
        if isinstance(value.type, ir.VectorType):
            pointer = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, pointer, align=8)

    def over_segments(self, totals: list[Any], include: Callable[..., list[Any]]) -> list[Any]:
        """The totals with the terms of all segments.

        Args:
            totals: what they are before.
            include: writes the loop over the terms of a segment; takes the totals before, the coefficient, the factors
                and the number of terms, and gives the totals after.
        """
        number = 1
        for place, (coefficient, factors, terms) in enumerate(self.code.parts):
            following = number + factors
            if coefficient is None:
                segments, table = self.argument(self.extra + 2 * place), self.argument(self.extra + 2 * place + 1)
                with self.loop(integer(0), segments, 1, totals) as (segment, sums):
                    self.carry(include(sums, *self._segment(table, segment, self.code.shapes[number:following])))
                totals = self.carried
            else:
                count = self.argument(self.extra + place) if terms is None else terms
                constant = ir.Constant(DOUBLE, coefficient)
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
        return builder.bitcast(bits, DOUBLE), operands, terms

    def folded(self, vectors: list[Any]) -> Any:
        """Fold each of one or four vectors into a number; those of four are a vector."""
        width = self.code.width
        while width > len(vectors):
            width //= 2
            low, high = range(width), range(width, 2 * width)
            vectors = [self.both(self._picked(v, v, low), self._picked(v, v, high)) for v in vectors]
        if width == 1:
            return self.builder.extract_element(*vectors, integer(0))
        a, b, c, d = vectors
        ab = self.both(self._picked(a, b, (0, 4, 2, 6)), self._picked(a, b, (1, 5, 3, 7)))
        cd = self.both(self._picked(c, d, (0, 4, 2, 6)), self._picked(c, d, (1, 5, 3, 7)))
        return self.both(self._picked(ab, cd, (0, 1, 4, 5)), self._picked(ab, cd, (2, 3, 6, 7)))

    def included(self, total: Any, factors: list[Any], coefficient: Any) -> Any:
        """A total with one more product of factors."""
        term, *others = factors
        for factor in others:
            term = self.builder.fmul(term, factor, flags=self.flags)
        if coefficient == constant(term.type, -1.0):
            term = self.builder.fneg(term)
        else:  # no code comes of a multiplication by 1
            term = self.builder.fmul(term, coefficient, flags=self.flags)
        return self.both(total, term)

    def both(self, x: Any, y: Any) -> Any:
        """The sum of two, or the larger one; NaN where one is NaN."""
        if self.code.kind == "maximum":
            return larger(self.builder, x, y)
        return self.builder.fadd(x, y, flags=self.flags)

    def together(self, numbers: list[Any]) -> Any:
        """The vector of some numbers."""
        vector = ir.Constant(ir.VectorType(DOUBLE, len(numbers)), ir.Undefined)
        for index, number in enumerate(numbers):
            vector = self.builder.insert_element(vector, number, integer(index))
        return vector

    def _picked(self, x: Any, y: Any, places: Any) -> Any:
        return self.builder.shuffle_vector(x, y, _integers(places))


def _integers(values: Any) -> Any:
    values = list(values)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)
