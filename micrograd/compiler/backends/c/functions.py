"""A function of C, made of a program: where its numbers come from, its lines, and where its results go."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from micrograd.compiler.backends.c.alike import forms_of
from micrograd.compiler.backends.c.distinct_rows import by_distinct_rows
from micrograd.compiler.backends.c.kernels import Writer
from micrograd.compiler.backends.c.memory import GIVEN, Memory, Positions, Tables, indexed
from micrograd.compiler.backends.c.regions import (
    blocks_of,
    compressed,
    contracted,
    even_parts,
    evened,
    in_parts,
    local_positions,
    rolled,
)
from micrograd.compiler.backends.c.repeats import Statement, copied, repeated
from micrograd.compiler.backends.c.scattered import scattered
from micrograd.compiler.backends.c.words import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd.compiler.backends.c.formulas import Functions
    from micrograd.compiler.backends.c.memory import Name, Region
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Booleans, Floats, Integers

STACK = 192  # numbers of a work array that is on the stack: with local variables, a page has room for it
_FEW = 8  # stretches that are copied by a loop or a statement each; more,
_LONG = 8  # if they have so many numbers each
_TABLE = 256  # constants side by side that are worth a table of their own


class Pattern(NamedTuple):
    """Where the entries of a sparse matrix among the outputs are, in compressed rows.

    Attributes:
        name: what its tables are named after.
        title: which outputs they are, and the shape.
        starts: where each row begins among the entries, and where the last one ends.
        columns: of the entries.
    """

    name: str
    title: str
    starts: Integers
    columns: Integers

    def tables(self) -> list[tuple[str, Integers]]:
        """The names of its tables, and what is in them."""
        return [(f"{self.name}_row_starts", self.starts), (f"{self.name}_columns", self.columns)]


class Source(NamedTuple):
    """What a file is made of.

    Attributes:
        name: of the function in C.
        title: what it is, as text.
        programs: of the outputs; and, if there are gradients, of the outputs and of these.
        given: for each of GIVEN, how many numbers there are.
        names: the parts of each of GIVEN, of "outputs" and of "gradients" that have names.
        positions: for each program, the positions of its inputs in the order of the file: for each of GIVEN.
        outputs: for each number of the result, which output of the programs it is, or -1.
        constants: for each number of the result its value, where it is none.
        order: of the gradients of the program, in the file.
        patterns: of the sparse matrices among the outputs.
        parameters: the numbers of the table; None where they are an argument.
        single: whether numbers are floats.
        work: whether the caller supplies all work arrays.
    """

    name: str
    title: str
    programs: Sequence[Program]
    positions: Sequence[dict[str, Integers]]
    outputs: Integers
    constants: Floats
    order: Integers
    names: dict[str, list[Name]]
    patterns: Sequence[Pattern]
    parameters: Floats | None
    single: bool = False
    work: bool = False


@dataclass
class Function:
    """A function of a file: how it is declared, and its lines.

    Attributes:
        name: its name.
        given: the names of what it takes.
        results: the names of what it writes.
        work: how many numbers its work array has.
        takes_work: whether the caller supplies that.
        lines: its body.
    """

    name: str
    given: list[str]
    results: list[str]
    work: int
    takes_work: bool
    lines: list[str]

    def parameters(self, real: str) -> str:
        """The parameters in its declaration."""
        work = ["work"] if self.takes_work else []
        return ", ".join(
            [*(f"const {real} *{name}" for name in self.given), *(f"{real} *{name}" for name in self.results + work)]
        )

    @property
    def arguments(self) -> str:
        """The arguments that hand on its parameters."""
        return ", ".join([*self.given, *self.results, *(["work"] if self.takes_work else [])])


def functions_of(
    source: Source, name: str, program: Program, given: dict[str, Integers], tables: Tables, functions: Functions
) -> list[Function]:
    """The function of a program, after those of its parts, if it has so many kernels that it is in parts."""
    seeds = given["seeds"]
    if not len(seeds) and len(program.seeds):  # there is one, which is 1
        program = replace(program, constants=(*program.constants, *((int(seed), np.ones(1)) for seed in program.seeds)))
    blocks, program = in_words(blocks_of(program), program)
    order = program.of_gradients
    order = order[source.order] if len(order) else order
    blocks, program = by_distinct_rows(blocks, program, tables.sequences)
    blocks, program = by_distinct_rows(scattered(evened(blocks), program, order), program, tables.sequences)
    with_loops = any(block.iterations > 1 for block in blocks)
    ends: dict[int, int] = {}
    if with_loops:
        blocks, ends = rolled(contracted(blocks, program), program)
        program = replace(program, outputs=np.array([ends.get(n, n) for n in program.outputs.tolist()]))
    else:
        blocks = in_parts(blocks, [form and form.key for form in forms_of(blocks)])
    locals_ = local_positions(blocks, program)
    fixed = source.outputs < 0
    positions = {**given, "outputs": np.where(fixed, -1, program.outputs[source.outputs]), "gradients": order}
    size, constants = program.size, list(program.constants)
    if with_loops:
        blocks, moved = compressed(blocks, program, [*locals_])
        positions = {home: np.where(found < 0, -1, moved[found]) for home, found in positions.items()}
        constants = [(int(moved[start]), numbers) for start, numbers in constants]
        locals_ = {int(moved[position]): inside for position, inside in locals_.items()}
        size = int(moved.max()) + 1
        ends = {end: int(moved[state]) for end, state in ends.items()}
    layout = Positions(size, positions, constants, source.names, locals_, frozenset(ends.values()))
    memory = Memory(layout, blocks, tables)
    writer = Writer(memory, functions, "float" if source.single else "double")
    written = writer.write(blocks)
    results = ["outputs", *(["gradients"] if len(order) else [])]
    takes = ["inputs", *(["parameters"] if source.parameters is None else []), *(["seeds"] if len(seeds) else [])]
    takes_work = memory.work > STACK or (source.work and memory.work > 0)
    parts: list[Function] = []
    if with_loops or len(written) <= 1:
        lines = [line for part in written for line in part]
    else:
        for part in written:
            body, words = _body(part, memory, source, takes, writer.real)
            given_, written_to = ([home for home in homes if home in words] for homes in (takes, results))
            part_name = f"{name}_part_{len(parts) + 1}"
            parts.append(Function(part_name, given_, written_to, memory.work, "work" in words, body))
        lines = [f"    {part.name}({part.arguments});" for part in parts]
    end = [f"    {line}" for home in results for line in _copied_out(memory, home, positions[home])]
    start = [f"    {line}" for line in [*_filled(source, fixed), *_copied_in(memory, {k: positions[k] for k in given})]]
    body, words = _body([*start, *lines, *end], memory, source, takes, writer.real)
    first = [f"    {writer.real} work[{memory.work}];"] if memory.work and not takes_work else []
    unused = [home for home in [*takes, *results, *(["work"] if takes_work else [])] if home not in words]
    body = [*first, *(f"    (void){home};" for home in unused), *body]
    return [*parts, Function(name, takes, results, memory.work, takes_work, body)]


def _body(
    lines: list[str], memory: Memory, source: Source, takes: Sequence[str], real: str
) -> tuple[list[str], set[str]]:
    """Lines after the declarations of what they read and write, and the names in all of these."""
    words = _words(lines)
    used = [each for each in memory.pointers.items() if each[0] in words]
    lines = [*(_declared(*each, real) for each in sorted(used, key=lambda each: _order(each[1]))), *lines]
    words = _words(lines)
    if "parameters" in words and "parameters" not in takes:
        lines.insert(0, f"    const {real} *const parameters = {source.name}_parameters;")
    return lines, words


def _declared(name: str, target: str, real: str) -> str:
    """The line that gives a number, or where an array begins, a name."""
    star = "" if target.endswith("]") else "*const "
    return f"    {'' if target.startswith('work') else 'const '}{real} {star}{name} = {target.removesuffix(' + 0')};"


def _order(target: str) -> tuple[int, int]:
    """The order of what names point to: as it is given, and as it lies there."""
    home, *position = re.findall(r"\w+", target)
    return [*GIVEN, "work"].index(home), int(position[0]) if position else 0


def _words(lines: Iterable[str]) -> set[str]:
    return set(re.findall(r"[A-Za-z_]\w*", "\n".join(lines)))


def _copied_in(memory: Memory, given: dict[str, Integers]) -> list[str]:
    """The lines that put into the work array what is given of it."""
    found = [(home, np.arange(len(positions)), positions) for home, positions in given.items()]
    constants = [
        (position, number)
        for start, numbers in memory.positions.constants
        for position, number in enumerate(numbers.tolist(), start)
        if memory.in_work(position)
    ]
    if constants:
        positions, kept = map(np.array, zip(*constants, strict=True))
        for start, end in _stretches(positions):
            found.append((memory.tables.name(kept[start:end]), np.arange(end - start), positions[start:end]))
    lines: list[str] = []
    for source, indices, positions in found:
        of_region: dict[Region, list[int]] = {}
        for index, position in zip(indices.tolist(), positions.tolist(), strict=True):
            if memory.in_work(position):
                of_region.setdefault(cast("Region", memory.region(position)), []).append(index)
        for region, chosen in of_region.items():
            name, origin = memory.whole(region)
            lines += _copies(memory, name, positions[chosen] - origin, source, np.array(chosen))
    return lines


def _filled(source: Source, fixed: Booleans) -> list[str]:
    """The lines that put numbers into the outputs which are the same in each call."""
    if not fixed.any():
        return []
    text = Tables("", source.single).text
    numbers, counts = np.unique(source.constants[fixed], return_counts=True)
    most = float(numbers[np.argmax(counts)]) if counts.max() > _FEW else None
    lines = []
    if most is not None:
        count = len(source.outputs)
        lines += [f"for (int index = 0; index < {count}; index++) {{", f"    outputs[index] = {text(most)};", "}"]
    others = fixed & ((source.constants != most) if most is not None else True)
    return lines + [
        f"outputs[{position}] = {text(float(source.constants[position]))};" for position in np.flatnonzero(others)
    ]


def _copied_out(memory: Memory, home: str, positions: Integers) -> list[str]:
    """The lines that put results where the caller wants them, unless they are there."""
    lines: list[str] = []
    of_region: dict[Region, list[tuple[int, int]]] = {}
    for index, position in enumerate(positions.tolist()):
        if position < 0:
            continue
        region = memory.region(position)
        if region is None or position in memory.positions.locals or region.home in GIVEN:
            lines.append(f"{home}[{index}] = {memory.number(position)};")
        elif (region.home, region.offset + position - region.start) != (home, index):
            of_region.setdefault(region, []).append((index, position))
    for region, pairs in of_region.items():
        targets, sources = np.array(pairs).T
        name, origin = memory.whole(region)
        lines += _copies(memory, home, targets, name, sources - origin)
    return lines


def _copies(memory: Memory, target: str, targets: Integers, source: str, sources: Integers) -> list[str]:
    """The lines that copy elements of one array to another."""
    runs = [*pairwise([*even_parts(np.stack([targets, sources])), len(targets)])]
    if len(runs) > _FEW and len(runs) * _LONG > len(targets):
        to, of = (indexed(found, "index", memory.tables) for found in (targets, sources))
        return copied(len(targets), f"{target}[{to}]", f"{source}[{of}]")
    statements = []
    for start, end in runs:
        to, of = (indexed(found[start:end], "index", memory.tables) for found in (targets, sources))
        statements.append(Statement(copied(end - start, f"{target}[{to}]", f"{source}[{of}]"), False))
    return repeated(statements, memory.tables)


def _stretches(positions: Integers) -> list[tuple[int, int]]:
    """Where constants are divided into tables: many side by side, which may be a table already, and all between."""
    ends = [0, *(np.flatnonzero(np.diff(positions) != 1) + 1).tolist(), len(positions)]
    marks = {0, len(positions)}
    marks.update(mark for start, end in pairwise(ends) if end - start >= _TABLE for mark in (start, end))
    return [*pairwise(sorted(marks))]
