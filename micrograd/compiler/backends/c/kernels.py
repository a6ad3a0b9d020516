"""Kernels as C: loops over rows, columns and terms, and single statements.

Sums of few terms are written out, and computed in their order. A longer one is added up in one of two ways:

    for (j = 0; j < 64; j++) y[j] += w[k] * x[64 * k + j];     where neighbours are read and written side by side
    dot(64, w, x + 64 * j)                                     where terms lie side by side: eight sums at a time

Compilers make vectors of both without being told that they may reorder sums.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.backends.c.formulas import literal
from micrograd.compiler.backends.c.memory import kind_of
from micrograd.compiler.backends.c.regions import Words, is_scalar, uses_of
from micrograd.compiler.ir.program import Map, Reduction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.memory import Memory
    from micrograd.compiler.backends.c.regions import Block, Item, Use
    from micrograd.compiler.ir.program import Segment, Take

VARIABLES = {"row": "row", "column": "column", "term": "term", "turn": "step"}
_WIDE = 4  # columns that are worth a loop of their own in a long sum
_VECTOR = 8  # numbers that a processor computes at once
_LONG = 16  # terms that are worth several sums at a time
_LOOPS = 2  # of a sum; of more, each takes compilers too long, and a call does as well
_FEWEST = 4  # terms for a call there


class Writer:
    """Writes blocks as C.

    Args:
        memory: where the numbers are.
        functions: those of the file.
        real: the type of numbers.

    Attributes:
        lines: that it has written.
    """

    def __init__(self, memory: Memory, functions: Functions, real: str) -> None:
        self.memory, self.functions, self.real = memory, functions, real
        self.single = real == "float"
        self.lines: list[str] = []
        self._depth = 1

    def write(self, blocks: Sequence[Block]) -> None:
        """All blocks, but for local variables that nobody reads."""
        unread = self.memory.places.locals.keys() - _read(blocks, self.memory)  # the compiler of C would warn of these
        uses = uses_of(blocks)
        for number, block in enumerate(blocks):
            if block.turns > 1:
                self._open(f"for (int step = 0; step < {block.turns}; step++)")
                for line in self.memory.moving(number, self.real):
                    self.line(line)
            used = [(kernel, [next(uses) for _ in range(len(kernel.reads) + 1)]) for kernel in block.kernels]
            for kernel, (*operands, target) in [each for each in used if each[1][-1].access.base not in unread]:
                self._kernel(kernel, operands, target)
            if block.turns > 1:
                self._close()

    def _kernel(self, kernel: Item, operands: Sequence[Use], target: Use) -> None:
        if is_scalar(kernel):
            self._number(kernel, operands, target)
        elif isinstance(kernel, Map):
            self._over(kernel.rows, kernel.columns)
            many = kernel.rows * kernel.columns >= _VECTOR
            text = self.functions.call(kernel.primitive, [*map(self._at, operands)], many)
            self.line(f"{self._at(target)} = {text};")
            self._end(kernel.rows, kernel.columns)
        elif isinstance(kernel, Reduction):
            self._reduction(kernel, operands, target)
        elif isinstance(kernel, Words):
            self._words(kernel, target)
        else:
            self._take(kernel, operands, target)

    def _number(self, kernel: Item, operands: Sequence[Use], target: Use) -> None:
        texts = [self._at(use) for use in operands]
        if isinstance(kernel, Map):
            text = self.functions.call(kernel.primitive, texts)
        else:
            assert isinstance(kernel, Reduction)
            text = self._written_out(kernel, texts)
        if target.access.base not in self.memory.places.locals or not target.is_number:
            self.line(f"{self._at(target)} = {text};")
        elif line := self.memory.local(target.access.base, kind_of(kernel), text, self.real):
            self.line(line)

    def _written_out(self, kernel: Reduction, texts: Sequence[str]) -> str:
        """The terms of a reduction in their order, for segments of one term each."""
        given = iter(texts)
        signed = [
            _product(part.coefficient, [next(given) for _ in part.factors], self.single) for part in kernel.segments
        ]
        if kernel.largest:
            total, *terms = (_with_sign(*term) for term in signed)
            for term in terms:
                total = f"{self.functions.helper('maximum', self.single)}({total}, {term})"
            return total
        return self._added(signed, kernel.from_zero)

    def _added(self, signed: Sequence[tuple[bool, str]], from_zero: bool) -> str:
        """The sum of terms in their order."""
        first = literal(0.0, self.single) if from_zero else _with_sign(*signed[0])
        others = signed if from_zero else signed[1:]
        return " ".join([first, *(f"{'-' if negative else '+'} {text}" for negative, text in others)])

    def _reduction(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        if kernel.is_in_order:
            self._in_order(kernel, operands, target)
        elif not kernel.largest and _is_wide(kernel):
            self._side_by_side(kernel, operands, target)
        else:
            self._one_by_one(kernel, operands, target)

    def _in_order(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """A sum of few terms, written out."""
        self._over(kernel.rows, kernel.columns)
        given, texts, parts = iter(operands), [], []
        for part in kernel.segments:
            factors = [next(given) for _ in part.factors]
            for term in range(part.terms):
                texts += [self._at(factor, term) for factor in factors]
                parts.append(part)
        written = Reduction(1, 1, kernel.target, tuple(parts), from_zero=kernel.from_zero)
        self.line(f"{self._at(target)} = {self._written_out(written, texts)};")
        self._end(kernel.rows, kernel.columns)

    def _side_by_side(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """Sums of many terms for neighbours: one term of all of them after the other."""
        self._over(kernel.rows, 1)
        zero = literal(0.0 if kernel.from_zero else -0.0, self.single)
        self._over(1, kernel.columns)
        self.line(f"{self._at(target)} = {zero};")
        self._end(1, kernel.columns)
        for part, factors in _with_factors(kernel, operands):
            self._open_if(part.terms, "term")
            self._over(1, kernel.columns)
            negative, text = self._product(part, factors)
            self.line(f"{self._at(target)} {'-' if negative else '+'}= {text};")
            self._end(1, kernel.columns)
            self._close_if(part.terms)
        self._end(kernel.rows, 1)

    def _one_by_one(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """Sums of many terms, or the largest of them, one result after the other."""
        self._over(kernel.rows, kernel.columns)
        parts = [*_with_factors(kernel, operands)]
        least = _LONG if len(parts) <= _LOOPS else _FEWEST
        if not kernel.largest and all(part.terms == 1 or _is_dot(part, factors, least) for part, factors in parts):
            signed = [self._dot(part, factors) for part, factors in parts]
            self.line(f"{self._at(target)} = {self._added(signed, kernel.from_zero)};")
            self._end(kernel.rows, kernel.columns)
            return
        self._block(kernel)
        name = "largest" if kernel.largest else "sum"
        start = "-INFINITY" if kernel.largest else literal(0.0 if kernel.from_zero else -0.0, self.single)
        self.line(f"{self.real} {name} = {start};")
        for part, factors in parts:
            is_dot = not kernel.largest and _is_dot(part, factors, least)
            terms = 1 if is_dot else part.terms
            self._open_if(terms, "term")
            negative, text = self._dot(part, factors) if is_dot else self._product(part, factors)
            if kernel.largest:
                helper = self.functions.helper("maximum", self.single)
                self.line(f"largest = {helper}(largest, {'-' if negative else ''}{text});")
            else:
                self.line(f"sum {'-' if negative else '+'}= {text};")
            self._close_if(terms)
        self.line(f"{self._at(target)} = {name};")
        self._end_block(kernel)
        self._end(kernel.rows, kernel.columns)

    def _product(self, part: Segment, factors: Sequence[Use]) -> tuple[bool, str]:
        """Whether a term is negative, and its size."""
        return _product(part.coefficient, [self._at(factor) for factor in factors], self.single)

    def _dot(self, part: Segment, factors: Sequence[Use]) -> tuple[bool, str]:
        """The same of a dot product or a sum, by a function that adds up eight numbers at a time."""
        if part.terms == 1:
            return self._product(part, factors)
        near = len(factors) > 1 and all(use.access.term_step == 1 for use in factors)
        steps = ["" if near else f", {use.access.term_step}" for use in factors]
        operands = ", ".join(f"&{self._at(use, 0)}{step}" for use, step in zip(factors, steps, strict=True))
        name = "dot" if near else "dot_apart" if len(factors) > 1 else "sum"
        name = self.functions.helper(name, self.single)
        return _product(part.coefficient, [f"{name}({part.terms}, {operands})"], self.single)

    def _block(self, kernel: Item) -> None:
        if kernel.rows * kernel.columns == 1:
            self._open("")

    def _end_block(self, kernel: Item) -> None:
        if kernel.rows * kernel.columns == 1:
            self._close()

    def _take(self, kernel: Take, operands: Sequence[Use], target: Use) -> None:
        """An element whose index is computed; NaN where there is none."""
        index, elements = operands
        self._over(kernel.rows, kernel.columns)
        self._block(kernel)
        count_of = literal(float(kernel.terms), self.single)
        floor = "floorf" if self.single else "floor"
        self.line(f"const {self.real} index = {self._at(index)};")
        self._open(f"if (index >= -{count_of} && index < {count_of} && index == {floor}(index))")
        self.line(f"const int term = (int)index + (index < {literal(0.0, self.single)} ? {kernel.terms} : 0);")
        self.line(f"{self._at(target)} = {self._at(elements)};")
        self._depth -= 1
        self.line("} else {")
        self._depth += 1
        self.line(f"{self._at(target)} = NAN;")
        self._close()
        self._end_block(kernel)
        self._end(kernel.rows, kernel.columns)

    def _words(self, kernel: Words, target: Use) -> None:
        """A table, and the call of what goes through it."""
        region = self.memory.region(target.reach()[0])
        assert region is not None
        name, origin = self.memory.whole(region)
        words = kernel.words - np.where(kernel.is_place, origin, 0)
        functions = np.array([0, *(-self.functions.number(primitive) for primitive in kernel.primitives)])
        is_function = ~kernel.is_place & (words < 0)
        words[is_function] = functions[-words[is_function]]
        self.line(f"{self.functions.prefix}_run({len(words)}, {self.memory.tables.name(words)}, {name});")

    def _at(self, use: Use, term: int | None = None) -> str:
        """The expression of an operand, of one term where it is said which."""
        return self.memory.operand(use, VARIABLES if term is None else {**VARIABLES, "term": str(term)})

    def _over(self, rows: int, columns: int) -> None:
        self._open_if(rows, "row")
        self._open_if(columns, "column")

    def _end(self, rows: int, columns: int) -> None:
        self._close_if(columns)
        self._close_if(rows)

    def _open_if(self, size: int, name: str) -> None:
        if size > 1:
            self._open(f"for (int {name} = 0; {name} < {size}; {name}++)")

    def _close_if(self, size: int) -> None:
        if size > 1:
            self._close()

    def _open(self, text: str) -> None:
        self.line(f"{text} {{".lstrip())
        self._depth += 1

    def _close(self) -> None:
        self._depth -= 1
        self.line("}")

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self._depth + text)


def _product(coefficient: float, factors: Sequence[str], single: bool) -> tuple[bool, str]:
    """Whether a term is negative, and its size as an expression. Factors are multiplied before the coefficient."""
    one = literal(1.0, single)
    kept = [factor for factor in factors if factor != one] or [one]
    negative = coefficient == -1.0
    if abs(coefficient) != 1.0:
        kept.append(literal(coefficient, single))
    return negative, " * ".join(kept)


def _with_sign(negative: bool, text: str) -> str:
    """A term as the first of a sum."""
    return (f"-({text})" if text[0] == "-" else f"-{text}") if negative else text


def _is_dot(part: Segment, factors: Sequence[Use], least: int) -> bool:
    """Whether terms are evenly apart, and enough for a function of their own."""
    return part.terms >= least and not any(_has_table(use) for use in factors)


def _with_factors(kernel: Reduction, operands: Sequence[Use]) -> Iterator[tuple[Segment, list[Use]]]:
    given = iter(operands)
    for part in kernel.segments:
        yield part, [next(given) for _ in part.factors]


def _has_table(use: Use) -> bool:
    return use.access.table is not None or use.is_number


def _is_wide(kernel: Reduction) -> bool:
    """Whether neighbours are written, and read, side by side."""
    accesses = [kernel.target, *kernel.accesses]
    return (
        kernel.columns >= _WIDE
        and kernel.target.column_step == 1
        and all(access.has_columns_in_vectors for access in accesses)
        and any(access.column_step for access in kernel.accesses)
    )


def _read(blocks: Sequence[Block], memory: Memory) -> set[int]:
    """The positions of local variables that are read, or are results."""
    found: set[int] = set()
    for home in ("outputs", "gradients"):
        found.update(memory.places.of[home].tolist())
    uses = [*uses_of(blocks)]
    for use in reversed(uses):  # targets come before operands here
        if use.operand == -1:
            needed = use.access.base in found or use.access.base not in memory.places.locals
        elif needed and use.is_number:
            found.add(use.access.base)
    return found
