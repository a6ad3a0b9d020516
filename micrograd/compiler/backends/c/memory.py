"""What the numbers of a program are called in C, and where they are.

A region is what some kernels read or write together. It is in one of these:

    inputs, parameters, seeds    of the caller, where the region has nothing else
    a table of constants         where nothing in it is written
    outputs, gradients           of the caller, where the region has nothing else
    the work array               all others; what is given of it is copied there at the start
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from micrograd.compiler.backends.c.distinct_rows import Sequences
from micrograd.compiler.backends.c.formulas import literal
from micrograd.compiler.backends.c.regions import uses_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from micrograd.compiler.backends.c.regions import Block, Item, Use
    from micrograd.compiler.numbers import Floats, Integers

GIVEN = ("inputs", "parameters", "seeds")
NAMED = ("inputs", "parameters")  # whose parts have names of their own in the code
RESULTS = ("outputs", "gradients")


AXES = {"row": "row", "column": "column", "term": "term"}  # and the variables that go along them
_LARGE = 64  # numbers of a table that may repeat
_SLICE = 16  # numbers that are worth a look whether they are a part of another table
_OFTEN = 3  # operands in an array that are worth a name for where an iteration begins in it
_NUMBER = re.compile(r"-?\d[\w.+-]*\Z")


class Name(NamedTuple):
    """A part of what is given, under a name of its own.

    Attributes:
        name: in C.
        title: in the program.
        shape: of the array; empty for a single number.
        start: where it begins.
        size: how many numbers it has.
    """

    name: str
    title: str
    shape: tuple[int, ...]
    start: int
    size: int


@dataclass
class Positions:
    """Where the numbers of a program are in its buffer.

    Attributes:
        size: of the buffer.
        of: for each of GIVEN and RESULTS the positions of its numbers, in order.
        constants: where runs of constants begin, and what they are.
        names: the parts of each of GIVEN that have names.
        locals: the positions of local variables, each with the number of its loop.
        states: the positions that a loop writes again and again.
    """

    size: int
    of: dict[str, Integers]
    constants: Sequence[tuple[int, Floats]]
    names: dict[str, list[Name]]
    locals: dict[int, int]
    states: frozenset[int]


class Tables:
    """The tables of a file, each written once.

    Args:
        prefix: of their names.
        single: whether numbers are floats.

    Attributes:
        lines: that define them.
        sequences: which of their different rows the rows of some are.
    """

    def __init__(self, prefix: str, single: bool) -> None:
        self.prefix, self.single = prefix, single
        self.lines: list[str] = []
        self.sequences = Sequences()
        self._names: dict[tuple[str, bytes], str] = {}

    def name(self, numbers: Floats | Integers) -> str:
        """The name of the table of these numbers."""
        kind = "indices" if numbers.dtype.kind == "i" else "constants"
        key = (kind, np.ascontiguousarray(numbers).tobytes())
        if key not in self._names:
            if kind == "indices" and len(around := self.sequences.around(numbers.astype(np.int64))) > numbers.size:
                self.name(around)
            self._names[key] = name = f"{self.prefix}_{kind}_{len(self._names) + 1}"
            whole = [(other, at) for other, at in map(partial(_found, *key), self._names) if at >= 0 and other != key]
            if whole and numbers.size >= _SLICE:
                other, at = whole[0]
                shift = f" + {at // numbers.itemsize}" if at else ""
                self.lines += [f"#define {name} ({self._names[other]}{shift})", ""]
            else:
                self.lines += self.define(name, numbers)
        return self._names[key]

    def text(self, number: float) -> str:
        """A number as the file writes it."""
        return literal(number, self.single)

    def _entry(self, number: float) -> str:
        """A number in a table, where whole ones are of that type anyway."""
        text = self.text(number)
        return text if text == "-0.0" else text.removesuffix(".0")

    def define(self, name: str, numbers: Floats | Integers) -> list[str]:
        """The lines of a table."""
        whole = numbers.dtype.kind == "i"
        kind = "int" if whole else "float" if self.single else "double"
        texts = map(str, numbers.ravel().tolist()) if whole else map(self._entry, numbers.tolist())
        return [f"static const {kind} {name}[{numbers.size}] = {{", *filled(texts), "};", ""]


def _found(kind: str, numbers: bytes, other: tuple[str, bytes]) -> tuple[tuple[str, bytes], int]:
    """A table, and where numbers are in it: -1 if they are not. Both are of eight bytes each."""
    at = other[1].find(numbers) if other[0] == kind else -1
    while at % 8 and at > 0:
        at = other[1].find(numbers, at + 1)
    return other, at


def filled(texts: Iterable[str], width: int = 120) -> list[str]:
    """Lines of texts with commas between them."""
    lines, line = [], "    "
    for text in texts:
        if len(line) + len(text) + 1 > width:
            lines.append(line)
            line = "    "
        line += f"{text},"
    return [*lines, line]


class Region(NamedTuple):
    """Some numbers in a row.

    Attributes:
        start, end: where they are in the buffer.
        home: what they are a part of: one of GIVEN or RESULTS, "table" or "work".
        offset: where they begin there; 0 of a table.
        name: of the table, or of the array in the work array; a single number there has none.
    """

    start: int
    end: int
    home: str
    offset: int = 0
    name: str = ""


class Memory:
    """Where each number of a program is.

    Args:
        positions: of what is given and of the results.
        blocks: that read and write them.
        tables: those of the file.

    Attributes:
        regions: in order.
        work: how many numbers the work array has.
        pointers: what the code needs before it: names, and what they point to.
    """

    def __init__(self, positions: Positions, blocks: Sequence[Block], tables: Tables) -> None:
        self.positions, self.tables = positions, tables
        self.pointers: dict[str, str] = {}
        self.work = 0
        self._counts: Counter[str] = Counter()
        self._locals: dict[int, str] = {}
        self._index = {home: np.full(positions.size, -1) for home in (*GIVEN, *RESULTS)}
        for home, found in positions.of.items():
            there = np.flatnonzero(found >= 0)[::-1]
            self._index[home][found[there]] = there
        self._constants, self._is_constant = np.zeros(positions.size), np.zeros(positions.size, dtype=bool)
        for start, numbers in positions.constants:
            self._constants[start : start + len(numbers)] = numbers
            self._is_constant[start : start + len(numbers)] = True
        self.regions: list[Region] = []
        self._find(blocks)
        self._starts = [region.start for region in self.regions]
        self._moving = self._find_moving(blocks)

    def _find(self, blocks: Sequence[Block]) -> None:
        spans: list[tuple[int, int]] = []
        written = np.zeros(self.positions.size, dtype=bool)
        kinds: dict[int, str] = {}
        for use in uses_of(blocks):
            low, high = use.reach()
            if use.operand == -1:
                written[low : high + 1] = True
                kinds[low] = "steps" if use.access.iteration_step else kind_of(blocks[use.block].kernels[use.kernel])
            if not (use.is_number and (low in self.positions.locals or self._is_constant[low])):
                spans.append((low, high + 1))
        for start, end in _joined(spans):
            home, offset = self._home(start, end, bool(written[start:end].any()))
            name = ""
            if home == "work":
                found = {
                    kinds[position]
                    for position in (np.flatnonzero(written[start:end]) + start).tolist()
                    if position in kinds
                }
                if end - start > 1:
                    name = self.unique(found.pop() if len(found) == 1 else "numbers")
                offset, self.work = self.work, self.work + end - start
            elif home == "table":
                name = self.tables.name(self._constants[start:end])
            self.regions.append(Region(start, end, home, offset, name))

    def _find_moving(self, blocks: Sequence[Block]) -> dict[tuple[int, str, int], tuple[str, int, bool]]:
        """By loop, array and step: the name of where an iteration begins, its index, and whether it is only read."""
        found: dict[tuple[int, str, int], list[int]] = {}
        constant: dict[str, bool] = {}
        for use in uses_of(blocks):
            if use.access.iteration_step and use.iterations > 1:
                name, start = self._array(use)
                found.setdefault((use.block, name, use.access.iteration_step), []).append(start)
                constant[name] = cast("Region", self.region(use.reach()[0])).home in (*GIVEN, "table")
        return {
            key: (self.unique("now"), min(starts), constant[key[1]])
            for key, starts in found.items()
            if len(starts) >= _OFTEN
        }

    def moving(self, block: int, real: str) -> list[str]:
        """The lines that say where an iteration begins in the arrays that it reads and writes."""
        return [
            f"{'const ' * constant}{real} *const {now} = {name} + {total(start, '', [(step, 'step')])};"
            for (number, name, step), (now, start, constant) in self._moving.items()
            if number == block
        ]

    def _array(self, use: Use) -> tuple[str, int]:
        """The array of an operand, and the index where it begins."""
        low, high = use.reach()
        region = self.region(low)
        assert region is not None  # each operand of a vector is in one
        name, origin = self.whole(region, low, high)
        lookup = lookup_of(use)
        return name, (use.access.base if lookup is None else lookup.start) - origin

    def _home(self, start: int, end: int, is_written: bool) -> tuple[str, int]:
        for home in RESULTS if is_written else GIVEN:
            found = self._index[home][start:end]
            if found[0] >= 0 and (found == found[0] + np.arange(end - start)).all():
                return home, int(found[0])
        return "table" if not is_written and self._is_constant[start:end].all() else "work", 0

    def unique(self, kind: str) -> str:
        """A new name for something of this kind."""
        self._counts[kind] += 1
        return f"{kind}_{self._counts[kind]}"

    def local(self, position: int, kind: str, text: str, real: str) -> str | None:
        """The statement that gives a local variable its number; None where the number has another name already."""
        states = [self._locals[state] for state in self.positions.states if state in self._locals]
        if position in self.positions.states:
            if position in self._locals:
                return f"{self._locals[position]} = {text};"
            self._locals[position] = self.unique("state")
            return f"{real} {self._locals[position]} = {text};"
        known = (text in self._locals.values() and text not in states) or text in self.pointers
        self._locals[position] = text if known or _NUMBER.match(text) else self.unique(kind)
        return None if self._locals[position] == text else f"{real} {self._locals[position]} = {text};"

    def region(self, position: int) -> Region | None:
        """The region that a position is in."""
        number = bisect_right(self._starts, position) - 1
        return self.regions[number] if number >= 0 and position < self.regions[number].end else None

    def in_work(self, position: int) -> bool:
        """Whether a position is in the work array."""
        region = self.region(position)
        return region is not None and region.home == "work"

    def number(self, position: int) -> str:
        """The expression of the number at a position."""
        if position in self._locals:
            return self._locals[position]
        region = self.region(position)
        if region is None:
            if self._is_constant[position]:
                return literal(float(self._constants[position]), self.tables.single)
            home = next(home for home in GIVEN if self._index[home][position] >= 0)
            region = Region(position, position + 1, home, int(self._index[home][position]))
        part = self._part(region, position, position)
        if part and not part.shape:
            return part.name
        name, origin = self.whole(region, position, position)
        return f"{name}[{position - origin}]"

    def at(self, use: Use, **fixed: int) -> str:
        """The expression of an operand, at this row, column or term where it is said which."""
        if use.is_number:
            return self.number(use.access.base)
        lookup, axes = lookup_of(use), AXES | {axis: str(number) for axis, number in fixed.items()}
        indices = "" if lookup is None else lookup.text(self.tables.name(lookup.numbers), axes, self.size)
        return self._element(use, indices, [(use.step(axis), axes[axis]) for axis in AXES])

    def table(self, use: Use) -> str:
        """The table of where an operand's terms are in a row, as a pointer; "0" where there is none."""
        lookup = lookup_of(use)
        return "0" if lookup is None else lookup.of_terms(self.tables.name(lookup.numbers), self.size)

    def first(self, use: Use) -> str:
        """Where an operand begins; where a table says where its elements are, what that counts from."""
        text = f"&{self.number(use.access.base) if use.is_number else self._element(use, '', [])}"
        return text[1:-3] if text.endswith("[0]") else text

    def step(self, use: Use, axis: str) -> str:
        """How far an operand moves from one row, column or term to the next, the same for all."""
        lookup = lookup_of(use)
        return str(use.step(axis) if lookup is None else lookup.step(axis, use)[1])

    def size(self, name: str, count: int) -> str:
        """How many rows, columns or terms there are."""
        return str(count)

    def _element(self, use: Use, indices: str, steps: Sequence[tuple[int, str]]) -> str:
        """The expression of an element: where it begins in this iteration, and what is added to the index."""
        name, start = self._array(use)
        parts = [(step, variable) for step, variable in steps if step]
        if (key := (use.block, name, use.access.iteration_step)) in self._moving:
            name, begin, _ = self._moving[key]
            start -= begin
        elif use.access.iteration_step and use.iterations > 1:
            parts.append((use.access.iteration_step, "step"))
        return f"{name}[{total(start, indices, parts)}]"

    def whole(self, region: Region, low: int = -1, high: int = -1) -> tuple[str, int]:
        """The name of the array of a region, or of these positions of it, and where it would begin in the buffer."""
        part = self._part(region, low, high) if low >= 0 else None
        return (part.name, region.start - region.offset + part.start) if part and part.shape else self._home_of(region)

    def _part(self, region: Region, low: int, high: int) -> Name | None:
        """What has these positions under a name of its own."""
        origin = region.start - region.offset
        for part in self.positions.names.get(region.home, ()) if region.home in NAMED else ():
            if part.start <= low - origin and high - origin < part.start + part.size:
                position = f"{region.home}[{part.start}]" if not part.shape else f"{region.home} + {part.start}"
                self.pointers[part.name] = position
                return part
        return None

    def _home_of(self, region: Region) -> tuple[str, int]:
        if region.home == "work" and region.name:
            self.pointers[region.name] = f"work + {region.offset}"
        if region.name:
            return region.name, region.start
        return region.home, region.start - region.offset


class Lookup(NamedTuple):
    """A table that says where elements are, as far as it does not repeat.

    Attributes:
        numbers: the table: how many times the scale an element is after the start. So tables of positions that are
            twice as far apart, or go the other way, are the same.
        axes: the axes that it has, and how long each is.
        period: after how many of the first axis it repeats; 0 where it does not.
        far: how much further on elements are each time.
        scale: of the numbers.
        start: the position that they count from.
    """

    numbers: Integers
    axes: tuple[tuple[str, int], ...]
    period: int
    far: int
    scale: int
    start: int

    def text(self, name: str, variables: dict[str, str], size: Callable[[str, int], str]) -> str:
        """The expression of how far an element is after the start.

        Args:
            name: of the table.
            variables: those that go along the axes.
            size: says how a number is written: how long an axis is, the "period", "far" or the "scale".
        """
        scale = size("scale", self.scale)
        again = ""
        if self.period and self.far:
            variable = variables[self.axes[0][0]]
            times = variable if self.period == 1 else f"({variable} / {size('period', self.period)})"
            again = f" + {size('far', self.far)} * {times}"
        return {"1": "", "-1": "-"}.get(scale, f"{scale} * ") + self._element(name, variables, size) + again

    def _element(self, name: str, variables: dict[str, str], size: Callable[[str, int], str]) -> str:
        (first, _), *others = self.axes
        index = variables[first]
        if self.period:
            index = "0" if self.period == 1 else f"{index} % {size('period', self.period)}"
        for axis, count in others:
            begin = f"{f'({index})' if ' ' in index else index} * {size(axis, count)} + "
            index = f"{'' if index == '0' else begin}{variables[axis]}"
        return f"{name}[{index.removesuffix(' + 0')}]"

    def of_terms(self, name: str, size: Callable[[str, int], str]) -> str:
        """Where a row of the table begins, as a pointer; "0" where terms are evenly apart."""
        if not self.has_terms:
            return "0"
        if self.is_for_all_rows:
            return name
        return f"&{self._element(name, AXES | {'term': '0'}, size)}"

    def step(self, axis: str, use: Use) -> tuple[str, int]:
        """How far an operand moves from one of an axis to the next, or for each of the table's numbers; its name."""
        if axis == "row":
            return "far", self.far
        return ("scale", self.scale) if axis == "term" and self.has_terms else (axis, use.step(axis))

    @property
    def has_terms(self) -> bool:
        """Whether it says where terms are."""
        return self.axes[-1][0] == "term"

    @property
    def is_for_all_rows(self) -> bool:
        """Whether rows differ only in where they begin, and evenly."""
        return self.period == 1 or self.axes[0][0] != "row"


def lookup_of(use: Use) -> Lookup | None:
    """The table of an operand."""
    return None if use.access.table is None else lookup_in(use.access.table)


def lookup_in(table: Integers) -> Lookup:
    """A table, as far as it does not repeat."""
    axes = tuple((axis, count) for axis, count in zip(AXES, table.shape, strict=False) if count > 1) or (("row", 1),)
    rows = table.reshape(axes[0][1], -1)
    for period in range(1, len(rows) // 2 + 1 if rows.size > _LARGE else 2):
        if len(rows) % period == 0 and len(rows) > period:
            parts = rows.reshape(len(rows) // period, period, -1)
            far = int(parts[1, 0, 0] - parts[0, 0, 0])
            if (parts == parts[0] + far * np.arange(len(parts))[:, None, None]).all():
                return _scaled(parts[0].ravel(), axes, period, far)
    return _scaled(table.ravel(), axes, 0, 0)


def _scaled(table: Integers, axes: tuple[tuple[str, int], ...], period: int, far: int) -> Lookup:
    """A table with the least numbers that say the same."""
    falls = bool(table[0] > table[-1])
    start = int(table.max() if falls else table.min())
    scale = int(np.gcd.reduce(table - start)) * (-1 if falls else 1) or 1
    return Lookup((table - start) // scale, axes, period, far, scale, start)


def indexed(numbers: Integers, variable: str, tables: Tables) -> str:
    """The expression of one of some numbers, by its index: with a table, unless they are evenly apart."""
    steps = np.diff(numbers)
    if not len(steps) or (steps == steps[0]).all():
        return total(int(numbers[0]), "", [(int(step), variable) for step in steps[:1] if step])
    lookup = lookup_in(numbers)
    text = lookup.text(tables.name(lookup.numbers), {"row": variable}, lambda _, number: str(number))
    return total(lookup.start, text, [])


def total(start: int, indices: str, parts: Sequence[tuple[int, str]]) -> str:
    """A sum of indices: of a number, of an element of a table, and of multiples of variables."""
    text = indices
    start += sum(step * int(name) for step, name in parts if name.isdigit())
    parts = [part for part in parts if not part[1].isdigit()]
    for step, name in sorted(parts, key=lambda part: -abs(part[0])):
        size = name if abs(step) == 1 else f"{abs(step)} * {name}"
        text += f" {'-' if step < 0 else '+'} {size}" if text or step < 0 else size
    text = text.removeprefix(" ")
    if not text or not start:
        return text or str(start)
    if text.startswith("-"):
        return f"{start} - {text[1:].lstrip()}"
    return f"{text} {'-' if start < 0 else '+'} {abs(start)}"


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans that overlap as one, in order."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def kind_of(kernel: Item) -> str:
    """A name for what a kernel computes."""
    kind = kernel.kind.replace("-", "_").replace(" ", "_")
    return "sum" if kind in ("dot", "matrix_vector") and kernel.rows * kernel.columns == 1 else kind
