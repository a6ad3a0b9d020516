"""Which code a kernel needs, of those that fit kernels of any size.

The code of a kernel is told by its name. In a product of matrices of 3 by 8 numbers,

    sum_columns8_r1r1r0_1x2x

the loop is a sum; eight columns are computed at a time; results lie side by side (r1), and so do first factors, while
second ones are the same for all columns (r0); and products of two factors have the coefficient 1. So a transformer
needs some seventy functions, and one of another size hardly any others.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from micrograd.compiler.backends.llvm.llvm_functions import native_name
from micrograd.compiler.ir.program import Map, Reduction, Take

if TYPE_CHECKING:
    from typing import TypeGuard

    from micrograd.compiler.ir.program import Access, Kernel, Segment
    from micrograd.engine.primitive import Primitive

WIDE, _NARROW = 8, 4  # numbers in a vector
FOUR_VECTORS = 4 * WIDE  # the width of a code that adds up the terms of few results in four vectors, or in one
_WRITTEN_OUT = 4  # segments of a reduction that have a loop each
_LONG = 64  # terms, of which vectors are made however they lie, so that an addition need not wait for the one before
_MANY_TERMS = 512  # of few results: four vectors are added up beside one another (a sum of 16,577: 2.2 to 0.9 us)
_MANY_RESULTS = 16  # which are worth code that computes several of them together
_MANY_CHAINS = 64  # results, for whose chains there is code for just so many terms
_BLOCK = 4  # rows of a product of matrices that are computed at a time where the registers of any processor do
_SHORT = 2  # segments of a product, whose code for more rows is compiled soon, too
_PACKED_ROWS = 16  # of a product, for which it pays to pack what it is multiplied with
PANEL = 2048  # terms that are packed, at most: 256 KB on the stack. 32 x 256 sums of 784: 521 to 337 us (AVX2)
TOGETHER = 4  # columns whose sums over vectors of terms are folded together
_GATHERED = 256  # terms, of which vectors are made although some numbers are loaded one by one
_GATHERED_CALLS = 64  # the same of a map: 108 softmax shares take 0.15 us in place of 0.42

ROWS, COLUMNS, TERMS, ELEMENTS = "r", "c", "t", "e"  # what an operand's table has an entry for
SQUARES = "s"  # columns, too, with as many terms side by side as make a square of the vectors of some columns
FOURS = "f"  # elements, too, of which those of four columns are the same, and in the table once
# Without FOURS and SQUARES, 32 words of the benchmark's transformer take 1.14 times as long; without SQUARES, 1.1.
SAME = 4  # columns of these
ALONG_ROWS, ALONG_COLUMNS = "h", "v"  # where an operand stays, in the name of a code


@dataclass(frozen=True)
class Shape:
    """What the code of a kernel depends on, of one operand.

    Attributes:
        table: what its table has an entry for: rows, columns, terms of rows, or elements.
        step: along the vector, 1 where its numbers lie side by side, 0 where it is one number, and None where they
            are loaded one by one.
        stays: in a block of results, where its numbers are the same: from row to row, from column to column, or both;
            of the index of a take, whether it is the same from column to column.
    """

    table: str
    step: int | None = None
    stays: str = ""

    def __str__(self) -> str:
        return f"{self.table}{'' if self.step is None else self.step}{self.stays}"


@dataclass(frozen=True)
class Code:
    """The code of a kernel: its name says all that it depends on.

    Attributes:
        kind: which loop.
        along: along what the loop is vectorised: "columns", "terms" or "" for nothing.
        width: how many numbers are computed at a time.
        shapes: of the target and of the operands.
        parts: the coefficient of each segment of a reduction, how many factors it has and, in a chain, how many terms.
        many: whether a part stands for any number of segments in a table, each with its coefficient if it has none.
        block: how many rows are computed at a time, so that they share what they read.
        turning: whether operands move at each iteration of a loop.
        turned: whether the rows of a kernel of one column are the columns of a single row; see is_turned.
        packed: whether what differs by column is copied before a product, so that columns lie side by side.
        primitive: of a map.
    """

    kind: str
    along: str
    width: int
    shapes: tuple[Shape, ...]
    parts: tuple[tuple[float | None, int, int | None], ...] = ()
    many: bool = False
    block: int = 1
    turning: bool = False
    turned: bool = False
    packed: bool = False
    primitive: Primitive | None = None

    @property
    def per_access(self) -> int:
        """Arguments of an operand: its table's address, its steps along columns, terms and, in a loop, iterations."""
        return 3 + self.turning

    @property
    def name(self) -> str:
        """Unique for what the code is."""
        is_so = [word for word in ("turning", "turned", "packed") if getattr(self, word)]
        name = [
            "_".join([self.kind + "s" * self.many, *is_so]),
            f"{self.along}{self.width}" + (f"by{self.block}" if self.block > 1 else ""),
            "".join(map(str, self.shapes)),
        ]
        for coefficient, factors, terms in self.parts:
            known = "" if coefficient is None else f"{coefficient:.17g}"
            name.append(f"{known}x{factors}x{terms or ''}")
        if self.primitive is not None:
            name.append(native_name(self.primitive) or "call")
        return "_".join(name).replace("-", "m").replace(".", "p").replace("+", "")


def code_of(kernel: Kernel, most: int = _BLOCK) -> Code:
    """What code a kernel needs.

    Args:
        kernel: what to compute.
        most: how many rows of a product the processor has registers for.
    """
    along, width = vector_of(kernel)
    turning = _is_turning(kernel)
    shapes, turned = _shapes(kernel, along), along != "" and is_turned(kernel)
    if isinstance(kernel, Map):
        return Code("map", along, width, shapes, turning=turning, turned=turned, primitive=kernel.primitive)
    if isinstance(kernel, Take):
        target, index, elements = shapes
        stays = _stays(kernel.index).replace(ALONG_ROWS, "")
        return Code("take", along, width, (target, Shape(index.table, stays=stays), elements))
    packed, block = _is_packed(kernel, along), 1
    if _is_product(kernel, along):
        block = _rows_of_columns(kernel, 2 * WIDE if packed else width, most)
        if along == "terms" and not packed:
            block = max(most // 2, 1 if kernel.terms < _LONG else 2)
    if packed:
        along, width, shapes = "columns", 2 * WIDE, _shapes(kernel, "columns")
    if has_many_segments(kernel):
        sorts = sorted_segments(kernel)
        return Code(
            "maximum" if kernel.largest else "sum",
            along,
            width,
            (*shapes[:1], *chain.from_iterable(sorts)),
            tuple((_one_for_all(parts), len(factors), None) for factors, parts in sorts.items()),
            many=True,
            block=block,
            turning=turning,
        )
    chained = "chain_from_zero" if kernel.from_zero else "chain"
    kind = "maximum" if kernel.largest else chained if kernel.is_in_order else "sum"
    parts = tuple(
        (part.coefficient, len(part.factors), _written_out(kernel, part.terms, turning)) for part in kernel.segments
    )
    return Code(kind, along, width, shapes, parts, False, block, turning, turned, packed)


def _one_for_all(parts: list[Segment]) -> float | None:
    """The coefficient of all segments of a sort if it is 1, which is no multiplication; else each has its own."""
    return 1.0 if all(part.coefficient == 1.0 for part in parts) else None


def _written_out(kernel: Reduction, terms: int, turning: bool) -> int | None:
    """How many terms of a segment the code has one after the other; None where it has a loop, for any number of them.

    A chain of many results, or at each iteration of a loop, is worth code of its own.
    """
    is_worth_it = turning or kernel.rows * kernel.columns >= _MANY_CHAINS
    return terms if kernel.is_in_order and (is_worth_it or terms == 1) else None


def vector_of(kernel: Kernel) -> tuple[str, int]:
    """Along what, and in how long vectors, a kernel is best computed."""
    terms, operands, turned = kernel.terms, kernel.accesses, is_turned(kernel)
    columns = kernel.rows if turned else kernel.columns
    if isinstance(kernel, Take) or (isinstance(kernel, Map) and not native_name(kernel.primitive)):
        return "", 1
    along_columns = columns >= _NARROW and (turned or kernel.target.column_step == 1)
    in_vectors = [_step_of_columns(access, turned) is not None for access in operands]
    if along_columns and all(in_vectors):
        if columns >= 2 * WIDE and terms > 1:
            return "columns", 2 * WIDE
        return "columns", WIDE if columns >= WIDE else _NARROW
    in_order = isinstance(kernel, Reduction) and kernel.is_in_order
    side_by_side = all(access.has_terms_in_vectors for access in operands)
    if not in_order and terms >= _NARROW and (side_by_side or terms >= _LONG):
        are_few = terms >= WIDE and kernel.rows * kernel.columns < TOGETHER
        if side_by_side and are_few and (is_long(kernel) or not _is_turning(kernel)):  # one code for any number
            return "terms", FOUR_VECTORS
        return "terms", WIDE if terms >= WIDE else _NARROW
    if along_columns and (turned or any(in_vectors)) and kernel.rows * kernel.columns * terms >= _gathered(kernel):
        return "columns", WIDE if columns >= WIDE else _NARROW
    return "", 1


def _gathered(kernel: Kernel) -> int:
    """How many elements or terms a kernel must have so that vectors are made of numbers that are loaded one by one."""
    return _GATHERED_CALLS if isinstance(kernel, Map) else _GATHERED


def is_long(kernel: Map | Reduction) -> bool:
    """Whether the terms of few results are added up in four vectors: those of each segment are many."""
    counts = [part.terms for part in kernel.segments] if isinstance(kernel, Reduction) else [kernel.terms]
    return min(counts) >= _MANY_TERMS


def _is_turning(kernel: Kernel) -> bool:
    """Whether operands move at each iteration of a loop."""
    return any(access.iteration_step for access in (kernel.target, *kernel.accesses))


def is_turned(kernel: Kernel) -> bool:
    """Whether a kernel of one column is better computed as one of one row, as its results lie side by side.

    Example: the quotients of numbers and of the sums of the groups that they are in. Each row has a place of its own
    in the sums, so that they are a column, and yet the numbers and the quotients are read and written in vectors.
    """
    if isinstance(kernel, Take) or kernel.columns > 1:
        return False
    if kernel.rows < WIDE or kernel.rows * kernel.terms < _gathered(kernel):
        return False
    is_even = kernel.target.row_step == 1 and kernel.target.table is None
    return is_even and not has_many_segments(kernel)


def _step_of_columns(access: Access, turned: bool = False) -> int | None:
    """How far apart columns are, if they are the same or lie side by side."""
    if turned:
        in_vectors = access.row_step in (0, 1) and access.table is None
        return access.row_step if in_vectors else None
    return access.column_step if access.has_columns_in_vectors else None


def _step_of_terms(access: Access) -> int | None:
    """How far apart terms are, if they are the same or lie side by side."""
    return access.term_step if access.has_terms_in_vectors else None


def _table(access: Access) -> str:
    if access.table is None or not access.gathers:
        return ROWS
    return TERMS if access.table.shape[1] == 1 else ELEMENTS


def _shapes(kernel: Kernel, along: str) -> tuple[Shape, ...]:
    if along != "" and is_turned(kernel):
        return (Shape(ROWS, 1), *_turned_shapes(kernel, along))
    target = kernel.target
    # Where terms are side by side in a vector, the target's step is that along the columns, if these are many.
    are_many = kernel.columns >= TOGETHER and kernel.rows * kernel.columns >= _MANY_RESULTS
    step = 1 if are_many and target.column_step == 1 and not target.gathers else None
    first = Shape(_table(target), step) if along == "terms" else _shape(target, along)
    in_blocks = _is_product(kernel, along)
    return (first, *(_shape(access, along, in_blocks) for access in kernel.accesses))


def _shape(access: Access, along: str, in_blocks: bool = False) -> Shape:
    step = {"columns": _step_of_columns(access), "terms": _step_of_terms(access)}.get(along)
    table = FOURS if along == "columns" and step is None and _is_same_in_fours(access) else _table(access)
    return Shape(table, step, _stays(access) if in_blocks else "")


def _is_same_in_fours(access: Access) -> bool:
    """Whether columns are the same in fours, as the share of a head is for all numbers of a value in attention."""
    table = access.table
    if table is None or table.shape[1] % _NARROW:
        return False
    fours = table.reshape(len(table), -1, _NARROW, table.shape[2])
    return bool((fours == fours[:, :, :1]).all())


def _turned_shapes(kernel: Kernel, along: str) -> list[Shape]:
    """The shapes of the operands of a kernel that is turned."""
    groups = [(kernel.accesses, 1)]
    if isinstance(kernel, Reduction):
        groups = [(part.factors, part.terms) for part in kernel.segments]
    found = []
    for accesses, terms in groups:
        in_squares = terms in (_NARROW, WIDE) and all(_table(a) == ROWS and a.term_step == 1 for a in accesses)
        by_column = SQUARES if in_squares and along == "columns" else COLUMNS
        for access in accesses:
            step = _step_of_terms(access) if along == "terms" else _step_of_columns(access, turned=True)
            stays = along == "columns" and step is not None
            found.append(Shape(ELEMENTS if _table(access) != ROWS else ROWS if stays else by_column, step))
    return found


def _is_product(kernel: Kernel, along: str) -> bool:
    """Whether it is a product of matrices, in which neighbouring rows read the same numbers."""
    if not isinstance(kernel, Reduction) or kernel.largest or kernel.is_in_order or kernel.rows < _BLOCK:
        return False
    if is_turned(kernel):
        return False
    if along == "terms":
        is_even = kernel.columns >= TOGETHER and kernel.target.column_step == 1 and not kernel.target.gathers
        if not is_even:
            return False
    return along != "" and all(
        any(ALONG_ROWS in _stays(factor) for factor in part.factors)
        and (part.second is None or any(ALONG_COLUMNS in _stays(factor) for factor in part.factors))
        for part in kernel.segments
    )


def _rows_of_columns(kernel: Reduction, width: int, most: int) -> int:
    """How many rows of a product are computed at a time, in vectors of columns.

    As many as there are registers for, where no more rows are computed so, and their code is compiled soon.
    """
    if most < _BLOCK:
        return most if width > WIDE else _BLOCK
    is_short = has_many_segments(kernel) or len(kernel.segments) <= _SHORT
    are_as_many = kernel.rows >= most and -kernel.rows % most < _BLOCK
    return most if is_short and are_as_many else _BLOCK


def _is_packed(kernel: Reduction, along: str) -> bool:
    """Whether it is a large product of matrices, where each factor that differs by column has its terms side by side.

    In vectors of terms such a product folds all its sums, which for few terms takes longer than what it adds up.
    """
    is_large = kernel.rows >= _PACKED_ROWS and kernel.columns >= 2 * WIDE and kernel.terms <= PANEL
    if along != "terms" or not is_large or has_many_segments(kernel) or not _is_product(kernel, along):
        return False
    for part in kernel.segments:
        of_columns = [factor for factor in part.factors if _stays(factor) == ALONG_ROWS]
        if part.second is not None and (len(of_columns) != 1 or of_columns[0].term_step != 1 or part.terms < WIDE):
            return False
    return True


def _stays(access: Access) -> str:
    """Where an operand's numbers are the same."""
    along_rows = access.table is None and access.row_step == 0
    return ALONG_ROWS * along_rows + ALONG_COLUMNS * (access.column_step == 0 and _table(access) != ELEMENTS)


def has_many_segments(kernel: Kernel) -> TypeGuard[Reduction]:
    """Whether a kernel is a reduction of so many segments that these are in a table."""
    return isinstance(kernel, Reduction) and not kernel.is_in_order and len(kernel.segments) > _WRITTEN_OUT


def sorted_segments(kernel: Reduction) -> dict[tuple[Shape, ...], list[Segment]]:
    """The segments of a reduction by the shapes of their factors: all of a sort share a loop."""
    along, _ = vector_of(kernel)
    in_blocks = _is_product(kernel, along)
    found: dict[tuple[Shape, ...], list[Segment]] = {}
    for part in kernel.segments:
        shapes = tuple(_shape(access, along, in_blocks) for access in part.factors)
        found.setdefault(shapes, []).append(part)
    return found
