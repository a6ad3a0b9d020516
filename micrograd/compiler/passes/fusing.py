"""Fusing: of two kernels that compute number by number, the one of which only the other reads becomes a part of it.

Of a ReLU's gradient

    m = less_equal(x, 0)        d = where(m, 0, g)        become        d = where(less_equal(x, 0), 0, g)

so that m is neither written nor read. The result is a map of a primitive of its own, whose formula is made of both.
Each number is computed as before, rounded in the same positions; the program itself stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.program import Access, Map, Reduction
from micrograd.compiler.passes.allocate import Liveness, is_worth_it
from micrograd.engine.primitive import PRIMITIVES, Primitive, composite

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.program import Kernel, Loop, Program

_OPERANDS = 8  # of a fused kernel, at most
_FEWEST = 8  # columns of a kernel that is cut into rows: with fewer, they would be no vectors


@dataclass(frozen=True)
class _Each:
    """A kernel that computes number by number.

    Attributes:
        rows: how many there are.
        columns: how many numbers a row has.
        target: where they go.
        operands: what each is made of.
        formula: makes it of the operations and its operands.
    """

    rows: int
    columns: int
    target: Access
    operands: tuple[Access, ...]
    formula: Callable[..., Any]

    def in_shape(self, rows: int, columns: int) -> _Each | None:
        """The same numbers in the same order, in other rows and columns; None where operands do not lie so."""
        if (rows, columns) == (self.rows, self.columns):
            return self
        shaped = [_in_shape(access, self, columns) for access in (self.target, *self.operands)]
        found = [access for access in shaped if access is not None]
        if len(found) < len(shaped):
            return None
        return replace(self, rows=rows, columns=columns, target=found[0], operands=tuple(found[1:]))


def fused(program: Program, has_code: Callable[[Primitive], object]) -> Program:
    """The program with fewer kernels.

    Args:
        program: whose kernels are to be fused.
        has_code: whether a backend has code for a primitive; others are called in Python, and are not fused.
    """
    if not is_worth_it(program):
        return program
    live = Liveness(program)
    of_two = live.moves & (live.kernels == 2)
    pairs = sorted(zip(live.ends[of_two].tolist(), live.begins[of_two].tolist(), strict=True))
    each = {number: _each(program.kernels[number], has_code) for pair in pairs for number in pair}
    kernels = dict(enumerate(program.kernels))
    for second, first in pairs:  # readers in their order: each has its makers in it before it is one
        maker, reader = each[first], each[second]
        if maker and reader and (together := _together(maker, reader)):
            each[second], kernels[second] = together, _map(together)
            del kernels[first]
    calls = tuple(np.searchsorted([*kernels], program.calls).tolist())
    return replace(program, kernels=tuple(kernels.values()), calls=calls)


def _each(kernel: Kernel | Loop, has_code: Callable[[Primitive], object]) -> _Each | None:
    """What a kernel computes number by number, in code of the backend; None if it does not."""
    if isinstance(kernel, Map):
        if PRIMITIVES.get(kernel.primitive.name) is not kernel.primitive or not has_code(kernel.primitive):
            return None
        name = kernel.primitive.name
        return _Each(
            kernel.rows, kernel.columns, kernel.target, kernel.operands, lambda on, *xs: getattr(on, name)(*xs)
        )
    if isinstance(kernel, Reduction) and kernel.is_in_order and all(part.terms == 1 for part in kernel.segments):
        parts = [(part.coefficient, len(part.factors)) for part in kernel.segments]
        formula = _sum(parts, kernel.from_zero)
        return _Each(kernel.rows, kernel.columns, kernel.target, tuple(kernel.accesses), formula)
    return None


def _sum(parts: Sequence[tuple[float, int]], from_zero: bool) -> Callable[..., Any]:
    """The formula of a sum: the terms in their order, each rounded.

    Args:
        parts: of each term its coefficient, and how many factors it has.
        from_zero: whether 0 comes first.
    """

    def formula(on: Any, *operands: Any) -> Any:
        total: Any = 0.0 if from_zero else None
        given = iter(operands)
        for coefficient, factors in parts:
            term = next(given)
            for _ in range(1, factors):
                term = term * next(given)
            term = -term if coefficient == -1.0 else term if coefficient == 1.0 else term * coefficient
            total = term if total is None else total + term
        return total

    return formula


def _together(maker: _Each, reader: _Each) -> _Each | None:
    """Both as one, if the reader takes the numbers in the order in which they are made."""
    if maker.rows * maker.columns != reader.rows * reader.columns or _step(maker.target, maker) != 1:
        return None
    inside = [_step(access, reader) == 1 and access.base == maker.target.base for access in reader.operands]
    others = [access for access, within in zip(reader.operands, inside, strict=True) if not within]
    if any(_reads(reader, access, maker) for access in others):
        return None
    maker_in_shape, reader_in_shape = maker.in_shape(reader.rows, reader.columns), reader
    if maker_in_shape is None:
        maker_in_shape, other = maker, reader.in_shape(maker.rows, maker.columns)
        if other is None:
            return None
        reader_in_shape = other
    others = [access for access, within in zip(reader_in_shape.operands, inside, strict=True) if not within]
    operands: list[Access] = []
    positions: list[int] = []  # of the maker's operands and of the others, among those that remain
    for access in (*maker_in_shape.operands, *others):
        same = [position for position, other in enumerate(operands) if _are_the_same(access, other)]
        if not same:
            operands.append(access)
        positions.append(same[0] if same else len(operands) - 1)
    if len(operands) > _OPERANDS:
        return None
    count = len(maker_in_shape.operands)

    def formula(on: Any, *given: Any) -> Any:
        found = [given[position] for position in positions]
        made, of_reader = maker.formula(on, *found[:count]), iter(found[count:])
        return reader.formula(on, *(made if within else next(of_reader) for within in inside))

    return replace(reader_in_shape, operands=tuple(operands), formula=formula)


def _map(each: _Each) -> Map:
    primitive = Primitive("fused", "fused", composite(each.formula), *[None] * len(each.operands))
    return Map(primitive, each.rows, each.columns, each.target, each.operands)


def _step(access: Access, each: _Each) -> int | None:
    """How far apart neighbours are, row after row; None where they are not evenly apart."""
    if access.table is not None:
        return None
    if each.columns == 1:
        return access.row_step
    is_even = each.rows == 1 or access.row_step == each.columns * access.column_step
    return access.column_step if is_even else None


def _in_shape(access: Access, each: _Each, columns: int) -> Access | None:
    """An index map in rows of so many columns; None if it would be single numbers then."""
    step = _step(access, each)
    if step is not None:
        return Access(access.base, step * columns, step)
    if access.gathers or columns < _FEWEST or each.columns % columns:
        return None
    starts = access.positions(each.rows, each.columns, 1)[:, ::columns]
    return Access(column_step=access.column_step, table=starts.reshape(-1, 1, 1))


def _reads(reader: _Each, access: Access, maker: _Each) -> bool:
    """Whether an operand of the reader may be something that is made."""
    positions = access.positions(reader.rows, reader.columns, 1)
    start = maker.target.base
    return bool(((positions >= start) & (positions < start + maker.rows * maker.columns)).any())


def _are_the_same(access: Access, other: Access) -> bool:
    """Whether two index maps without tables lead to the same numbers."""
    return access.table is None and other.table is None and access == other
