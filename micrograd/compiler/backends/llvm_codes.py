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

from micrograd.compiler.backends.llvm_functions import native_name
from micrograd.compiler.program import Map, Reduction, Take

if TYPE_CHECKING:
    from typing import TypeGuard

    from micrograd.compiler.program import Access, Kernel, Segment
    from micrograd.engine.primitive import Primitive

WIDE, _NARROW = 8, 4  # numbers in a vector
_WRITTEN_OUT = 4  # segments of a reduction that have a loop each
_LONG = 64  # terms, of which vectors are made however they lie, so that an addition need not wait for the one before
TILE = 64  # terms that are added for all results before the next ones are
_MANY_RESULTS = 16  # which are worth code that computes several of them together
_MANY_CHAINS = 64  # results, for whose chains there is code for just so many terms
_BLOCK = 4  # rows of a product of matrices that are computed at a time
TOGETHER = 4  # columns whose sums over vectors of terms are folded together

ROWS, TERMS, ELEMENTS = "r", "t", "e"  # what an operand's table has an entry for
ALONG_ROWS, ALONG_COLUMNS = "h", "v"  # where an operand stays, in the name of a code


@dataclass(frozen=True)
class Shape:
    """What the code of a kernel depends on, of one operand.

    Attributes:
        table: whether its table says where rows, terms of rows, or all elements are.
        step: along the vector, 1 where its numbers lie side by side, 0 where it is one number, and None where they
            are loaded one by one.
        stays: in a block of results, where its numbers are the same: from row to row, from column to column, or both.
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
        many: whether a part stands for any number of segments, whose coefficients are in a table.
        tiled: whether some terms of all results are added before the next ones are.
        block: how many rows are computed at a time, so that they share what they read.
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
    block: int = 1
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
            f"{self.along}{self.width}" + (f"by{self.block}" if self.block > 1 else ""),
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
    turning = any(access.turn_step for access in (kernel.target, *kernel.accesses))
    if isinstance(kernel, Map):
        return Code("map", along, width, _shapes(kernel, along), turning=turning, primitive=kernel.primitive)
    if isinstance(kernel, Take):
        return Code("take", along, width, _shapes(kernel, along))
    block = _BLOCK if _is_product(kernel, along) else 1
    if has_many_segments(kernel):
        sorts = sorted_segments(kernel)
        return Code(
            "maximum" if kernel.largest else "sum",
            along,
            width,
            (*_shapes(kernel, along)[:1], *chain.from_iterable(sorts)),
            tuple((None, len(factors), None) for factors in sorts),
            many=True,
            block=block,
            turning=turning,
        )
    chained = "chain_from_zero" if kernel.from_zero else "chain"
    kind = "maximum" if kernel.largest else chained if kernel.is_in_order else "sum"
    parts = tuple(
        (part.coefficient, len(part.factors), _written_out(kernel, part.terms, turning)) for part in kernel.segments
    )
    tiled = _is_tiled(kernel, along)
    return Code(kind, along, width, _shapes(kernel, along), parts, tiled=tiled, block=block, turning=turning)


def _written_out(kernel: Reduction, terms: int, turning: bool) -> int | None:
    """How many terms of a segment the code has one after the other; None where it has a loop, for any number of them.

    A chain of many results, or at each turn of a loop, is worth code of its own.
    """
    is_worth_it = turning or kernel.rows * kernel.columns >= _MANY_CHAINS
    return terms if kernel.is_in_order and (is_worth_it or terms == 1) else None


def vector_of(kernel: Kernel) -> tuple[str, int]:
    """Along what, and in how long vectors, a kernel is best computed."""
    columns, terms, operands = kernel.columns, kernel.terms, kernel.accesses
    if isinstance(kernel, Take) or (isinstance(kernel, Map) and not native_name(kernel.primitive)):
        return "", 1
    of_columns = all(access.has_columns_in_vectors for access in operands)
    if columns >= _NARROW and kernel.target.column_step == 1 and of_columns:
        if columns >= 2 * WIDE and terms > 1:
            return "columns", 2 * WIDE
        return "columns", WIDE if columns >= WIDE else _NARROW
    in_order = isinstance(kernel, Reduction) and kernel.is_in_order
    side_by_side = all(access.has_terms_in_vectors for access in operands)
    if not in_order and terms >= _NARROW and (side_by_side or terms >= _LONG):
        return "terms", WIDE if terms >= WIDE else _NARROW
    return "", 1


def _step_of_terms(access: Access) -> int | None:
    """How far apart terms are, if they are the same or lie side by side."""
    return access.term_step if access.has_terms_in_vectors else None


def _table(access: Access) -> str:
    return ROWS if access.table is None else TERMS if access.table.shape[1] == 1 else ELEMENTS


def _shapes(kernel: Kernel, along: str) -> tuple[Shape, ...]:
    target = kernel.target
    # Where terms are side by side in a vector, the target's step is that along the columns, if these are many.
    are_many = kernel.columns >= TOGETHER and kernel.rows * kernel.columns >= _MANY_RESULTS
    step = 1 if are_many and target.column_step == 1 and target.table is None else None
    first = Shape(_table(target), step) if along == "terms" else _shape(target, along)
    in_blocks = _is_product(kernel, along)
    return (first, *(_shape(access, along, in_blocks) for access in kernel.accesses))


def _shape(access: Access, along: str, in_blocks: bool = False) -> Shape:
    step = {"columns": access.column_step, "terms": _step_of_terms(access)}.get(along)
    return Shape(_table(access), step, _stays(access) if in_blocks else "")


def _is_product(kernel: Kernel, along: str) -> bool:
    """Whether it is a product of matrices, in which neighbouring rows read the same numbers."""
    if not isinstance(kernel, Reduction) or kernel.largest or kernel.is_in_order or kernel.rows < _BLOCK:
        return False
    if along == "terms":
        is_even = kernel.columns >= TOGETHER and kernel.target.column_step == 1 and kernel.target.table is None
        if not is_even or _is_tiled(kernel, along):
            return False
    return along != "" and all(
        any(ALONG_ROWS in _stays(factor) for factor in part.factors)
        and (part.second is None or any(ALONG_COLUMNS in _stays(factor) for factor in part.factors))
        for part in kernel.segments
    )


def _stays(access: Access) -> str:
    """Where an operand's numbers are the same."""
    along_rows = access.table is None and access.row_table is None and access.row_step == 0
    return ALONG_ROWS * along_rows + ALONG_COLUMNS * (access.column_step == 0 and _table(access) != ELEMENTS)


def _is_tiled(kernel: Reduction, along: str) -> bool:
    """Whether terms lie apart, and what is read for all results may be more than what is at hand for the next ones."""
    is_large = kernel.rows * kernel.columns >= _MANY_RESULTS and kernel.terms >= 2 * TILE
    apart = any(_step_of_terms(access) is None for access in kernel.accesses)
    return along == "terms" and apart and is_large and not has_many_segments(kernel)


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
