"""A kernel as C: loops over rows, columns and terms.

Sums of few terms are written out, and computed in their order. A longer one is added up in one of these ways:

    multiply(...)                                              products of matrices, by a function in blocks
    for (j = 0; j < 64; j++) y[j] += w[k] * x[64 * k + j];     where neighbours are read and written side by side
    dot(64, w, x + 64 * j)                                     where terms lie side by side: eight sums at a time

Compilers make vectors of all of them without being told that they may reorder sums.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from micrograd.compiler.backends.c.formulas import literal
from micrograd.compiler.backends.c.memory import lookup_in, lookup_of
from micrograd.compiler.backends.c.products import COLUMNS, LANES, ROWS
from micrograd.compiler.backends.c.regions import Added
from micrograd.compiler.backends.c.repeats import Statement, repeated
from micrograd.compiler.ir.program import Map, Reduction, Take

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.memory import Tables
    from micrograd.compiler.backends.c.regions import Item, Use
    from micrograd.compiler.ir.program import Segment

_WIDE = 4  # columns that are worth a loop of their own in a long sum
_VECTOR = 8  # numbers that a processor computes at once
_LONG = 16  # terms that are worth several sums at a time
_LOOPS = 2  # of a sum; of more, each takes compilers too long, and a call does as well
_FEWEST = 4  # terms for a call there
_PARTS = 16  # of a sum that are an expression; more are statements, which may repeat


class _Names(Protocol):
    """What the operands of a kernel are called: Memory says it, and in functions that kernels share Form."""

    def at(self, use: Use, **fixed: int) -> str: ...
    def table(self, use: Use) -> str: ...
    def first(self, use: Use) -> str: ...
    def step(self, use: Use, axis: str) -> str: ...
    def size(self, name: str, count: int) -> str: ...


class Loops:
    """Writes a kernel as loops.

    Args:
        functions: those of the file.
        real: the type of numbers.
        names: of the operands.
        tables: those of the file.

    Attributes:
        lines: that it has written.
    """

    def __init__(self, functions: Functions, real: str, names: _Names, tables: Tables) -> None:
        self.functions, self.real, self.names, self.tables = functions, real, names, tables
        self.single = real == "float"
        self.lines: list[str] = []
        self._depth = 1

    def write(self, kernel: Item, operands: Sequence[Use], target: Use) -> None:
        """The lines of a kernel that computes more than one number, or one of many terms."""
        if isinstance(kernel, Map):
            text = self.functions.call(kernel.primitive, [*map(self.names.at, operands)], is_for_many(kernel))
            self._each(kernel, f"{self.names.at(target)} = {text};")
        elif isinstance(kernel, Reduction):
            {"in order": self._in_order, "side by side": self._side_by_side, "one by one": self._one_by_one}.get(
                manner(kernel), self._matrix_product
            )(kernel, operands, target)
        elif isinstance(kernel, Added):
            self._add(kernel, operands, target)
        else:
            assert isinstance(kernel, Take)  # tables are no loops
            self._take(kernel, operands, target)

    def written_out(self, kernel: Reduction, texts: Sequence[str]) -> str:
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

    def _in_order(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """A sum of few terms, written out."""
        texts, parts = [], []
        for part, factors, _ in parts_of(kernel, operands):
            for term in range(part.terms):
                texts += [self.names.at(factor, term=term) for factor in factors]
                parts.append(part)
        written = Reduction(1, 1, kernel.target, tuple(parts), from_zero=kernel.from_zero)
        self._each(kernel, f"{self.names.at(target)} = {self.written_out(written, texts)};")

    def _matrix_product(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """Products of matrices, each by a function; terms that stand alone come first."""
        name, names = manner(kernel), self.names
        parts = [*parts_of(kernel, operands)]
        alone = [self._product(part, factors) for part, factors, _ in parts if part.terms == 1]
        adds = bool(alone) or kernel.from_zero
        if adds:
            self._each(kernel, f"{names.at(target)} = {self._added(alone, kernel.from_zero)};")
        rows, columns = names.size("rows", kernel.rows), names.size("columns", kernel.columns)
        for part, factors, size in parts:
            if part.terms > 1:
                a, b = factors if part.first.column_step == 0 else reversed(factors)
                given = [rows, columns, names.size(size, part.terms), str(int(adds)), names.first(target)]
                given += [names.step(target, "row"), literal(part.coefficient, self.single), names.first(a)]
                if name == "multiply":
                    given += [names.step(a, "row"), names.step(a, "term"), names.table(a)]
                    given += [names.first(b), names.step(b, "term"), names.table(b)]
                else:
                    given += [names.step(a, "row"), names.first(b), names.step(b, "column")]
                self.line(f"{self.functions.product(name)}({', '.join(given)});")
                adds = True

    def _side_by_side(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """Sums of many terms for neighbours: one term of all after the other, but for single ones beside each other."""
        called = calls(kernel, operands)
        ways = [
            (part, factors, size, "call" if call else "alone" if part.terms == 1 else "loop")
            for (part, factors, size), call in zip(parts_of(kernel, operands), called, strict=True)
        ]
        with self._loop(kernel.rows, "row"):
            self._row_side_by_side(kernel, ways, target)

    def _row_side_by_side(
        self, kernel: Reduction, ways: Sequence[tuple[Segment, list[Use], str, str]], target: Use
    ) -> None:
        """The same for one row, given how each segment is added up."""
        columns, at = self.names.size("columns", kernel.columns), self.names.at(target)
        adds = kernel.from_zero or ways[0][3] == "loop"
        if adds:
            with self._loop(kernel.columns, "column"):
                self.line(f"{at} = {literal(0.0 if kernel.from_zero else -0.0, self.single)};")
        for way, together in groupby(ways, key=lambda each: each[3]):
            run = [*together]
            if way == "alone":
                signed = [self._product(part, factors) for part, factors, *_ in run]
                with self._loop(kernel.columns, "column"):
                    self.line(f"{at} = {self._added([(False, at)] * adds + signed, False)};")
                adds = True
            for part, factors, size, _ in run if way != "alone" else ():
                if way == "call":
                    self._row(part, factors, target, [columns, self.names.size(size, part.terms), str(int(adds))])
                else:
                    with self._loop(part.terms, "term", size), self._loop(kernel.columns, "column"):
                        negative, text = self._product(part, factors)
                        self.line(f"{at} {'-' if negative else '+'}= {text};")
                adds = True

    def _row(self, part: Segment, factors: Sequence[Use], target: Use, sizes: list[str]) -> None:
        """The sums of a row, by a function."""
        names = self.names
        a, b = factors if part.first.column_step == 0 else reversed(factors)
        given = [*sizes, f"&{names.at(target, column=0)}", literal(part.coefficient, self.single)]
        for factor in (a, b):
            table = names.table(factor)
            if table == "0":
                first = f"&{names.at(factor, term=0, column=0)}"
            else:
                step = names.step(factor, "row")
                first = names.first(factor) + (f" + {step} * row" if step != "0" else "")
            given += [first, names.step(factor, "term"), table]
        self.line(f"{self.functions.product('multiply_row')}({', '.join(given)});")

    def _one_by_one(self, kernel: Reduction, operands: Sequence[Use], target: Use) -> None:
        """Sums of many terms, or the largest of them, one result after the other."""
        parts = [*parts_of(kernel, operands)]
        called = calls(kernel, operands)
        is_added_up = all(part.terms == 1 or call for (part, _, _), call in zip(parts, called, strict=True))
        if not kernel.largest and is_added_up and len(parts) <= _PARTS:
            signed = [self._dot(*part) for part in parts]
            self._each(kernel, f"{self.names.at(target)} = {self._added(signed, kernel.from_zero)};")
            return
        name = "largest" if kernel.largest else "sum"
        start = "-INFINITY" if kernel.largest else literal(0.0 if kernel.from_zero else -0.0, self.single)
        with self._over(kernel, is_block=True):
            self.line(f"{self.real} {name} = {start};")
            statements, before = [], len(self.lines)
            for (part, factors, size), call in zip(parts, called, strict=True):
                with self._loop(1 if call else part.terms, "term", size):
                    negative, text = self._dot(part, factors, size) if call else self._product(part, factors)
                    if kernel.largest:
                        helper = self.functions.helper("maximum", self.single)
                        self.line(f"largest = {helper}(largest, {'-' if negative else ''}{text});")
                    else:
                        self.line(f"sum {'-' if negative else '+'}= {text};")
                statements.append(Statement(self.lines[before:], False))
                del self.lines[before:]
            self.lines += repeated(statements, self.tables)
            self.line(f"{self.names.at(target)} = {name};")

    def _product(self, part: Segment, factors: Sequence[Use]) -> tuple[bool, str]:
        """Whether a term is negative, and its size."""
        return _product(part.coefficient, [self.names.at(factor) for factor in factors], self.single)

    def _dot(self, part: Segment, factors: Sequence[Use], size: str) -> tuple[bool, str]:
        """The same of a dot product or a sum, by a function that adds up eight numbers at a time."""
        if part.terms == 1:
            return self._product(part, factors)
        near = len(factors) > 1 and all(use.access.term_step == 1 for use in factors)
        steps = ["" if near else f", {self.names.step(use, 'term')}" for use in factors]
        operands = ", ".join(f"&{self.names.at(use, term=0)}{step}" for use, step in zip(factors, steps, strict=True))
        apart = "dot_apart" if len(factors) > 1 else "sum"
        name = self.functions.product("dot") if near else self.functions.helper(apart, self.single)
        return _product(part.coefficient, [f"{name}({self.names.size(size, part.terms)}, {operands})"], self.single)

    def _add(self, kernel: Added, operands: Sequence[Use], target: Use) -> None:
        """Products that are added to numbers, or numbers that are set."""
        if operands:
            negative, text = _product(kernel.coefficient, [*map(self.names.at, operands)], self.single)
            self._each(kernel, f"{self.names.at(target)} {'-' if negative else '+'}= {text};")
        else:
            self._each(kernel, f"{self.names.at(target)} = {literal(kernel.coefficient, self.single)};")

    def _take(self, kernel: Take, operands: Sequence[Use], target: Use) -> None:
        """An element whose index is computed; NaN where there is none."""
        index, elements = operands
        count_of = literal(float(kernel.terms), self.single)
        floor = "floorf" if self.single else "floor"
        with self._over(kernel, is_block=True):
            self.line(f"const {self.real} index = {self.names.at(index)};")
            self.open(f"if (index >= -{count_of} && index < {count_of} && index == {floor}(index))")
            self.line(f"const int term = (int)index + (index < {literal(0.0, self.single)} ? {kernel.terms} : 0);")
            self.line(f"{self.names.at(target)} = {self.names.at(elements)};")
            self._depth -= 1
            self.line("} else {")
            self._depth += 1
            self.line(f"{self.names.at(target)} = NAN;")
            self.close()

    def _each(self, kernel: Item, statement: str) -> None:
        """A statement for each of a kernel's results."""
        with self._over(kernel):
            self.line(statement)

    @contextmanager
    def _over(self, kernel: Item, is_block: bool = False) -> Iterator[None]:
        """Loops over rows and columns; a block of its own, where there are none and it needs variables."""
        is_alone = is_block and kernel.rows * kernel.columns == 1
        with self._loop(kernel.rows, "row"), self._loop(kernel.columns, "column"):
            if is_alone:
                self.open("")
            yield
            if is_alone:
                self.close()

    @contextmanager
    def _loop(self, count: int, name: str, size: str = "") -> Iterator[None]:
        """A loop over rows, columns or terms; none where there is one.

        Args:
            count: how many there are.
            name: of the variable.
            size: the name of how many there are; for rows and columns, that is known.
        """
        if count > 1:
            self.open(f"for (int {name} = 0; {name} < {self.names.size(size or f'{name}s', count)}; {name}++)")
        yield
        if count > 1:
            self.close()

    def open(self, text: str) -> None:
        """Begin a block."""
        self.line(f"{text} {{".lstrip())
        self._depth += 1

    def close(self) -> None:
        """End it."""
        self._depth -= 1
        self.line("}")

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append("    " * self._depth + text)


def manner(kernel: Reduction) -> str:
    """How a sum, or the largest of many terms, is computed: the name of the function, if it is a matrix product."""
    if kernel.is_in_order:
        return "in order"
    if kernel.largest:
        return "one by one"
    for name, fits, columns in (("multiply", _is_row, COLUMNS), ("multiply_dots", _is_dots, LANES)):
        long = [part for part in kernel.segments if part.terms > 1]
        shaped = kernel.rows >= ROWS and kernel.columns >= columns and kernel.target.table is None
        if shaped and kernel.target.column_step == 1 and long and all(map(fits, long)):
            return name
    return "side by side" if _is_wide(kernel) else "one by one"


def _is_row(part: Segment) -> bool:
    """Whether the columns of a matrix lie side by side, and all rows have their terms at the same distances."""
    a, b = sorted(part.factors, key=lambda access: access.column_step)[:2] if part.second else (part.first,) * 2
    if a.column_step or b.column_step != 1:
        return False
    tables = [access.table is not None and lookup_in(access.table) for access in (a, b)]
    (_, a_term), (b_row, b_term) = (
        (table.far, 1) if table else (access.row_step, access.term_step)
        for access, table in zip((a, b), tables, strict=True)
    )
    by_term = all(table.is_for_all_rows and table.axes[-1][0] == "term" for table in tables if table)
    return by_term and b_row == 0 and a_term != 0 != b_term


def _is_dots(part: Segment) -> bool:
    """Whether the terms of both matrices lie side by side."""
    a, b = part.first, part.second
    if b is None or a.table is not None or b.table is not None:
        return False
    a, b = (a, b) if a.column_step == 0 else (b, a)
    return a.column_step == 0 != b.column_step and b.row_step == 0 and a.term_step == b.term_step == 1


def parts_of(kernel: Reduction, operands: Sequence[Use]) -> Iterator[tuple[Segment, list[Use], str]]:
    """The segments, each with its factors and the name of how many terms it has."""
    given = iter(operands)
    for number, part in enumerate(kernel.segments, 1):
        yield part, [next(given) for _ in part.factors], f"terms_{number}" if number > 1 else "terms"


def calls(kernel: Reduction, operands: Sequence[Use]) -> list[bool]:
    """Which segments of a sum have a function of their own, which adds up their terms."""
    called = _is_called_for_a_row if manner(kernel) == "side by side" else _is_dot
    return [called(kernel, part, factors) for part, factors, _ in parts_of(kernel, operands)]


def _is_dot(kernel: Reduction, part: Segment, factors: Sequence[Use]) -> bool:
    """Whether the terms of a segment, which is computed one by one, are evenly apart, and enough for a call."""
    least = _LONG if len(kernel.segments) <= _LOOPS else _FEWEST
    tables = any(use.access.gathers or use.is_number for use in factors)
    return not kernel.largest and part.terms >= least and not tables


def _is_called_for_a_row(kernel: Reduction, part: Segment, factors: Sequence[Use]) -> bool:
    """Whether the terms of a segment, which is computed side by side, are rows of numbers, each times one number."""
    lookups = [lookup for use in factors if (lookup := lookup_of(use))]
    least, wide = (_FEWEST, _VECTOR) if len(kernel.segments) <= _LOOPS and not lookups else (2, _WIDE)
    if kernel.columns < wide or part.terms < least or any(use.is_number for use in factors):
        return False
    if sorted(use.access.column_step for use in factors) != [0, 1]:
        return False
    return not any(lookup.period > 1 and lookup.axes[-1][0] == "term" for lookup in lookups)


def is_for_many(kernel: Item) -> bool:
    """Whether a kernel fills vectors."""
    return kernel.rows * kernel.columns >= _VECTOR


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


def _is_wide(kernel: Reduction) -> bool:
    """Whether neighbours are written, and read, side by side."""
    accesses = [kernel.target, *kernel.accesses]
    return (
        kernel.columns >= _WIDE
        and kernel.target.column_step == 1
        and all(access.has_columns_in_vectors for access in accesses)
        and any(access.column_step for access in kernel.accesses)
    )
