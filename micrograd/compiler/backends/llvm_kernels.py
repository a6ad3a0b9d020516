"""Kernels as LLVM code: a function for each kind of loop, with offsets and extents as arguments.

Every kernel is compiled to the same signature,

    void kernel(double *buffer, const int64_t *arguments, int64_t turn)

and its arguments say where its operands are, how far apart they are and how many there are. Fixed in the
code is only what decides how the loop is best written: how many segments there are, and of each operand
whether its columns and terms lie side by side (step 1), stand still (step 0) or neither. So a transformer
needs some thirty functions, and one of another size needs no other functions.

A reduction of many segments, as a weight has that every step of a recurrent program uses, sorts them by the shapes
of their factors. One loop runs over all of a sort, and reads from a table what is another thing in each:

    for segment in table:
        for term in range(segment.terms): total += segment.coefficient * first[term] * second[term]

In a loop of kernels, each operand lies further on by its step times the turn.

Where columns lie side by side, several columns are computed at a time in a vector; else, where terms do,
several terms; of a very long sum, however they lie. A chain is a sum of few terms, which are added in their order.
Longer sums may be taken in another order, and a product and a sum in them may be rounded once instead of twice.
Nothing else is assumed of the numbers: they may be infinite or NaN.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from micrograd.compiler.backends.llvm_functions import DOUBLE, INTEGER, constant, forward, integer, larger, native_name
from micrograd.compiler.program import Map, Reduction, Take

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import TypeGuard

    from micrograd.compiler.program import Access, Kernel, Segment
    from micrograd.engine.primitive import Primitive

KERNEL = ir.FunctionType(ir.VoidType(), [DOUBLE.as_pointer(), INTEGER.as_pointer(), INTEGER])
_FAST = ("contract", "reassoc")
WIDE, _NARROW = 8, 4  # numbers in a vector
_WRITTEN_OUT = 8  # segments of a reduction that have a loop each
_IN_TABLE = 2  # numbers of a segment in a table, beside those of its factors: its coefficient and its number of terms
_LONG = 64  # terms, of which vectors are made however they lie, so that an addition need not wait for the one before
_TILE, _MANY_RESULTS = 64, 16  # terms that are added for all of so many results before the next ones are
_TOGETHER = 4  # columns whose sums over vectors of terms are folded together

ROWS, TERMS, ELEMENTS = "r", "t", "e"  # what an operand's table has an entry for


@dataclass(frozen=True)
class Shape:
    """What the code of a kernel depends on, of one operand.

    Attributes:
        table: whether its table says where rows, terms of rows, or all elements are.
        step: along the vector, 1 where its numbers lie side by side, 0 where it is one number, and None where they
            are loaded one by one.
    """

    table: str
    step: int | None = None

    def __str__(self) -> str:
        return f"{self.table}{'' if self.step is None else self.step}"


@dataclass(frozen=True)
class Code:
    """The code of a kernel: its name says all that it depends on.

    Attributes:
        kind: which loop.
        along: along what the loop is vectorised: "columns", "terms" or "" for nothing.
        width: how many numbers are computed at a time.
        shapes: of the target and of the operands.
        parts: the coefficient of each segment of a reduction, how many factors it has and, in a chain, how many terms.
        many: whether a part stands for any number of segments, whose coefficients are in a table.
        tiled: whether some terms of all results are added before the next ones are.
        turning: whether operands move at each turn of a loop.
        primitive: of a map.
    """

    kind: str
    along: str
    width: int
    shapes: tuple[Shape, ...]
    parts: tuple[tuple[float | None, int, int | None], ...] = ()
    many: bool = False
    tiled: bool = False
    turning: bool = False
    primitive: Primitive | None = None

    @property
    def per_access(self) -> int:
        """Arguments of an operand: the address of its table, its steps along columns and terms, and in a loop turns."""
        return 3 + self.turning

    @property
    def name(self) -> str:
        """Unique for what the code is."""
        name = [
            self.kind + "s" * self.many + "_tiled" * self.tiled + "_turning" * self.turning,
            f"{self.along}{self.width}",
            "".join(map(str, self.shapes)),
        ]
        for coefficient, factors, terms in self.parts:
            known = "" if coefficient is None else f"{coefficient:.17g}"
            name.append(f"{known}x{factors}x{terms or ''}")
        if self.primitive is not None:
            name.append(native_name(self.primitive) or "call")
        return "_".join(name).replace("-", "m").replace(".", "p").replace("+", "")


def code_of(kernel: Kernel) -> Code:
    """What code a kernel needs."""
    along, width = vector_of(kernel)
    shapes = _shapes(kernel, along)
    turning = any(access.turn_step for access in (kernel.target, *kernel.accesses))
    if has_many_segments(kernel):
        kind = "maximum" if kernel.largest else "sum"
        sorts = sorted_segments(kernel)
        shapes = (shapes[0], *chain.from_iterable(sorts))
        return Code(
            kind,
            along,
            width,
            shapes,
            tuple((None, len(factors), None) for factors in sorts),
            many=True,
            turning=turning,
        )
    if isinstance(kernel, Reduction):
        tiled = along == "terms" and any(shape.step is None for shape in shapes[1:]) and _is_large(kernel)
        chained = "chain_from_zero" if kernel.from_zero else "chain"
        kind = "maximum" if kernel.largest else chained if kernel.is_in_order else "sum"
        parts = tuple(
            (part.coefficient, 1 if part.second is None else 2, part.terms if kernel.is_in_order else None)
            for part in kernel.segments
        )
        return Code(kind, along, width, shapes, parts, tiled=tiled, turning=turning)
    if isinstance(kernel, Map):
        return Code("map", along, width, shapes, turning=turning, primitive=kernel.primitive)
    return Code("take", along, width, shapes)


def vector_of(kernel: Kernel) -> tuple[str, int]:
    """Along what, and in how long vectors, a kernel is best computed."""
    columns, terms, operands = kernel.columns, kernel.terms, kernel.accesses
    if isinstance(kernel, Take) or (isinstance(kernel, Map) and not native_name(kernel.primitive)):
        return "", 1
    if columns >= _NARROW and kernel.target.column_step == 1 and all(map(_is_even, operands)):
        if columns >= 2 * WIDE and terms > 1:
            return "columns", 2 * WIDE
        return "columns", WIDE if columns >= WIDE else _NARROW
    in_order = isinstance(kernel, Reduction) and kernel.is_in_order
    side_by_side = all(_step_of_terms(access) is not None for access in operands)
    if not in_order and terms >= _NARROW and (side_by_side or terms >= _LONG):
        return "terms", WIDE if terms >= WIDE else _NARROW
    return "", 1


def _is_even(access: Access) -> bool:
    return access.column_step in (0, 1) and _table(access) != ELEMENTS


def _step_of_terms(access: Access) -> int | None:
    """How far apart terms are, if they are the same or lie side by side."""
    return access.term_step if access.table is None and access.term_step in (0, 1) else None


def _table(access: Access) -> str:
    return ROWS if access.table is None else TERMS if access.table.shape[1] == 1 else ELEMENTS


def _shapes(kernel: Kernel, along: str) -> tuple[Shape, ...]:
    target = kernel.target
    # Where terms are side by side in a vector, the target's step is that along the columns.
    step = 1 if target.column_step == 1 and target.table is None else None
    first = Shape(_table(target), step) if along == "terms" else _shape(target, along)
    return (first, *(_shape(access, along) for access in kernel.accesses))


def _shape(access: Access, along: str) -> Shape:
    return Shape(_table(access), {"columns": access.column_step, "terms": _step_of_terms(access)}.get(along))


def _is_large(kernel: Reduction) -> bool:
    """Whether what a kernel reads for all results may be more than what is at hand for the next one."""
    return kernel.rows * kernel.columns >= _MANY_RESULTS and kernel.terms >= 2 * _TILE


def has_many_segments(kernel: Kernel) -> TypeGuard[Reduction]:
    """Whether a kernel is a reduction of so many segments that these are in a table."""
    return isinstance(kernel, Reduction) and len(kernel.segments) > _WRITTEN_OUT


def sorted_segments(kernel: Reduction) -> dict[tuple[Shape, ...], list[Segment]]:
    """The segments of a reduction by the shapes of their factors: all of a sort share a loop."""
    along, _ = vector_of(kernel)
    found: dict[tuple[Shape, ...], list[Segment]] = {}
    for part in kernel.segments:
        shapes = tuple(_shape(access, along) for access in part.factors)
        found.setdefault(shapes, []).append(part)
    return found


def module_of(code: Code, name: str) -> ir.Module:
    """The module with the function of a code, under a name."""
    module = ir.Module(name=name)
    function = ir.Function(module, KERNEL, name)
    function.attributes.add("nounwind")
    _Writer(module, function, code).write()
    return module


class _Operand:
    """An operand in the code: its arguments, and where the row that is being computed starts."""

    def __init__(self, writer: _Writer, arguments: list[Any], shape: Shape) -> None:
        self.writer, self.shape = writer, shape
        address, self.column_step, self.term_step, *turn_step = arguments
        self.table = writer.builder.inttoptr(address, INTEGER.as_pointer())
        along = writer.code.along
        if shape.step is not None and along == "columns":
            self.column_step = integer(shape.step)
        elif shape.step is not None:
            self.term_step = integer(shape.step)
        self.offset = [writer.builder.mul(writer.turn, step) for step in turn_step]
        self.start: Any = None

    def begin_row(self, row: Any) -> None:
        """Find where a row starts."""
        if self.shape.table == ROWS:
            self.start = self._entry(row)

    def pointer(self, column: Any, term: Any, terms: Any) -> Any:
        """Where an element is."""
        writer, builder = self.writer, self.writer.builder
        if self.shape.table == ELEMENTS:
            index = builder.add(builder.mul(writer.row, writer.columns), column)
            place = self._entry(builder.add(builder.mul(index, terms), term))
        else:
            if self.shape.table == TERMS:
                place = self._entry(builder.add(builder.mul(writer.row, terms), term))
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


class _Writer(Loops):
    """Writes the function of one code."""

    def __init__(self, module: ir.Module, function: ir.Function, code: Code) -> None:
        super().__init__(function)
        self.module, self.code = module, code
        self.buffer, self.arguments, self.turn = function.args
        self.rows, self.columns = self.argument(0), self.argument(1)
        shapes, size = code.shapes[:1] if code.many else code.shapes, code.per_access
        self.operands = [
            _Operand(self, [self.argument(2 + size * number + index) for index in range(size)], shape)
            for number, shape in enumerate(shapes)
        ]
        self.extra = 2 + size * len(shapes)  # the arguments from here on are the kind's own
        self.row: Any = None
        nothing = {"maximum": -math.inf, "chain": -0.0}  # 0 + -0 would be 0
        self.nothing = ir.Constant(DOUBLE, nothing.get(code.kind, 0.0))
        self.flags = _FAST if code.kind == "sum" else ()

    def write(self) -> None:
        """The loops over rows and columns."""
        if self.code.tiled:
            self._tiles()
            self.builder.ret_void()
            return
        compute = {"map": self._map, "take": self._take}.get(self.code.kind, self._reduction)
        with self.loop(integer(0), self.rows, 1) as row:
            self.row = row
            for operand in self.operands:
                operand.begin_row(row)
            if self.code.along == "columns":
                # The last vector ends with the last column: some columns are computed twice, to the same end.
                last = self.builder.sub(self.columns, integer(self.code.width))
                with self.loop(integer(0), self.columns, self.code.width) as column:
                    within = self.builder.icmp_signed("<", column, last)
                    compute(self.builder.select(within, column, last))
            elif self.code.along == "terms":
                done = integer(0)
                if self.code.shapes[0].step:  # results that lie side by side are stored together
                    done = self.builder.mul(self.builder.sdiv(self.columns, integer(_TOGETHER)), integer(_TOGETHER))
                    with self.loop(integer(0), done, _TOGETHER) as column:
                        self._vectors_of_terms(column, _TOGETHER)
                with self.loop(done, self.columns, 1) as column:
                    self._vectors_of_terms(column, 1)
            else:
                with self.loop(integer(0), self.columns, 1) as column:
                    compute(column)
        self.builder.ret_void()

    def _store(self, column: Any, value: Any) -> None:
        pointer = self.operands[0].pointer(column, integer(0), integer(1))
        if isinstance(value.type, ir.VectorType):
            pointer = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, pointer, align=8)

    def _reduction(self, column: Any) -> None:
        """A number, a vector of columns, or two of them that share what stands still."""
        width = min(self.code.width, WIDE)
        columns = [column] if self.code.width == width else [column, self.builder.add(column, integer(WIDE))]

        def include(totals: list[Any], coefficient: Any, factors: list[_Operand], terms: Any) -> list[Any]:
            coefficient = self.splat(coefficient, width)
            if isinstance(terms, int):  # so few that they need no loop
                for term in range(terms):
                    totals = self._next(totals, factors, columns, integer(term), integer(terms), width, coefficient)
                return totals
            with self.loop(integer(0), terms, 1, totals) as (term, sums):
                self.carry(self._next(sums, factors, columns, term, terms, width, coefficient))
            return self.carried

        totals = self._over_segments([self.splat(self.nothing, width) for _ in columns], include)
        for place, total in zip(columns, totals, strict=True):
            self._store(place, total)

    def _next(
        self, totals: Any, factors: Any, columns: Any, term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        """The totals with one more term of each; what stands still is loaded once."""
        column, *_ = columns
        shared = {f: f.load(column, term, terms, width) for f in factors if f.shape.step == 0}
        return [
            self._included(total, [shared.get(f) or f.load(place, term, terms, width) for f in factors], coefficient)
            for place, total in zip(columns, totals, strict=True)
        ]

    def _vectors_of_terms(self, column: Any, count: int) -> None:
        """The sums, or maxima, of a few columns, over vectors of terms first and then over what is left."""
        builder, width = self.builder, self.code.width
        columns = [builder.add(column, integer(index)) for index in range(count)]

        def include(sums: list[Any], coefficient: Any, factors: list[_Operand], terms: Any) -> list[Any]:
            return self._with_terms(sums, coefficient, factors, columns, terms, (integer(0), terms))

        nothing = [self.splat(self.nothing, width) for _ in columns] + [self.nothing for _ in columns]
        sums = self._over_segments(nothing, include)
        totals, rests = sums[:count], sums[count:]
        folded = self._folded(totals)
        if count == 1:
            self._store(column, self._both(folded, *rests))
            return
        rest = ir.Constant(ir.VectorType(DOUBLE, count), ir.Undefined)
        for index, number in enumerate(rests):
            rest = builder.insert_element(rest, number, integer(index))
        self._store(column, self._both(folded, rest))

    def _with_terms(
        self, sums: list[Any], coefficient: Any, factors: Any, columns: Any, terms: Any, part: tuple[Any, Any]
    ) -> list[Any]:
        """The sums of vectors of a part of a segment's terms, and of those that are left, for several columns."""
        builder, width, (begin, end) = self.builder, self.code.width, part
        vector = self.splat(coefficient, width)
        vectors = builder.sdiv(builder.sub(end, begin), integer(width))
        whole = builder.add(begin, builder.mul(vectors, integer(width)))
        totals, rests = sums[: len(columns)], sums[len(columns) :]
        with self.loop(begin, whole, width, totals) as (term, found):
            self.carry(self._terms(found, factors, columns, term, terms, width, vector))
        totals = self.carried
        with self.loop(whole, end, 1, rests) as (term, found):
            self.carry(self._terms(found, factors, columns, term, terms, 1, coefficient))
        return [*totals, *self.carried]

    def _tiles(self) -> None:
        """The loops over tiles of terms, and inside of them over all results, which wait in their places.

        Where terms lie apart, a cache line has numbers of one term for several results. So it is read once for all
        of these, and not once for each.
        """
        builder, number = self.builder, 1
        for place, (coefficient, count, _) in enumerate(self.code.parts):
            target, *factors = self.operands[:1] + self.operands[number : number + count]
            terms, constant = self.argument(self.extra + place), ir.Constant(DOUBLE, coefficient)
            with self.loop(integer(0), terms, _TILE) as begin:
                end = builder.add(begin, integer(_TILE))
                end = builder.select(builder.icmp_signed("<", end, terms), end, terms)
                with self.loop(integer(0), self.rows, 1) as self.row:
                    for operand in (target, *factors):
                        operand.begin_row(self.row)
                    with self.loop(integer(0), self.columns, 1) as column:
                        nothing = [self.splat(self.nothing, self.code.width), self.nothing]
                        sums = self._with_terms(nothing, constant, factors, [column], terms, (begin, end))
                        before = target.load(column, integer(0), integer(1), 1)
                        if number == 1:
                            is_first = builder.icmp_signed("==", begin, integer(0))
                            before = builder.select(is_first, self.nothing, before)
                        self._store(column, self._both(before, self._both(self._folded(sums[:1]), sums[1])))
            number += count

    def _terms(
        self, totals: Any, factors: Any, columns: Any, term: Any, terms: Any, width: int, coefficient: Any
    ) -> list[Any]:
        return [
            self._included(total, [f.load(column, term, terms, width) for f in factors], coefficient)
            for column, total in zip(columns, totals, strict=True)
        ]

    def _over_segments(self, totals: list[Any], include: Callable[..., list[Any]]) -> list[Any]:
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

    def _segment(self, table: Any, segment: Any, shapes: tuple[Shape, ...]) -> tuple[Any, list[_Operand], Any]:
        """The coefficient of a segment in a table, its factors, and how many terms it has."""
        builder, per_access = self.builder, self.code.per_access
        size = _IN_TABLE + per_access * len(shapes)
        first = builder.gep(builder.inttoptr(table, INTEGER.as_pointer()), [builder.mul(segment, integer(size))])
        bits, terms, *numbers = (builder.load(builder.gep(first, [integer(index)])) for index in range(size))
        operands = [_Operand(self, numbers[per_access * i :][:per_access], shape) for i, shape in enumerate(shapes)]
        for operand in operands:
            operand.begin_row(self.row)
        return builder.bitcast(bits, DOUBLE), operands, terms

    def _folded(self, vectors: list[Any]) -> Any:
        """Fold each of one or four vectors into a number; those of four are a vector."""
        width = self.code.width
        while width > len(vectors):
            width //= 2
            low, high = range(width), range(width, 2 * width)
            vectors = [self._both(self._picked(v, v, low), self._picked(v, v, high)) for v in vectors]
        if width == 1:
            return self.builder.extract_element(*vectors, integer(0))
        a, b, c, d = vectors
        ab = self._both(self._picked(a, b, (0, 4, 2, 6)), self._picked(a, b, (1, 5, 3, 7)))
        cd = self._both(self._picked(c, d, (0, 4, 2, 6)), self._picked(c, d, (1, 5, 3, 7)))
        return self._both(self._picked(ab, cd, (0, 1, 4, 5)), self._picked(ab, cd, (2, 3, 6, 7)))

    def _picked(self, x: Any, y: Any, places: Any) -> Any:
        return self.builder.shuffle_vector(x, y, _integers(places))

    def _included(self, total: Any, factors: list[Any], coefficient: Any) -> Any:
        term, *others = factors
        for factor in others:
            term = self.builder.fmul(term, factor, flags=self.flags)
        if coefficient == constant(term.type, -1.0):
            term = self.builder.fneg(term)
        else:  # no code comes of a multiplication by 1
            term = self.builder.fmul(term, coefficient, flags=self.flags)
        return self._both(total, term)

    def _both(self, x: Any, y: Any) -> Any:
        """The sum of two, or the larger one; NaN where one is NaN."""
        if self.code.kind == "maximum":
            return larger(self.builder, x, y)
        return self.builder.fadd(x, y, flags=self.flags)

    def _map(self, column: Any) -> None:
        values = [operand.load(column, integer(0), integer(1), self.code.width) for operand in self.operands[1:]]
        primitive = self.code.primitive
        assert primitive is not None
        if native_name(primitive):
            self._store(column, forward(primitive, self.builder, self.module, values))
            return
        kind = ir.FunctionType(DOUBLE, [DOUBLE] * len(values)).as_pointer()
        self._store(column, self.builder.call(self.builder.inttoptr(self.argument(self.extra), kind), values))

    def _take(self, column: Any) -> None:
        builder = self.builder
        terms = self.argument(self.extra)
        index = self.operands[1].load(column, integer(0), integer(1), 1)
        high = builder.sitofp(terms, DOUBLE)
        valid = builder.and_(
            builder.fcmp_ordered(">=", index, builder.fneg(high)), builder.fcmp_ordered("<", index, high)
        )
        number = builder.fptosi(builder.select(valid, index, ir.Constant(DOUBLE, 0.0)), INTEGER)
        valid = builder.and_(valid, builder.fcmp_ordered("==", builder.sitofp(number, DOUBLE), index))
        from_end = builder.icmp_signed("<", number, integer(0))
        number = builder.select(from_end, builder.add(number, terms), number)
        element = self.operands[2].load(column, number, terms, 1)
        self._store(column, builder.select(valid, element, ir.Constant(DOUBLE, math.nan)))

    # What the loops are written with

    def argument(self, number: int) -> Any:
        """An argument of the kernel, loaded at the start."""
        with self.builder.goto_block(self.entry):
            return self.builder.load(self.builder.gep(self.arguments, [integer(number)]))


def _integers(values: Any) -> Any:
    values = list(values)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(values)), values)
