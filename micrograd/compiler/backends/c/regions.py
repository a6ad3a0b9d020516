"""Where the numbers of a program are in C: in arrays of the caller, in tables, in the work array, or local variables.

In a Program all numbers are in one buffer. What is read and written together is a region of it. A region of inputs only
is read where the caller has it; one of constants becomes a table; one of results is written where the caller wants it;
one number of a few becomes a local variable. All others are in the work array.

An array of a loop, of which each iteration reads what it has written itself, is needed for one iteration only:

    for step in 0, 1, 2, ...:    a[step] = sin(x[step])    x[step + 1] = x[step] + a[step]

Here a is one number. In the interleaved arrays of a loop, what is left is moved together.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from micrograd.compiler.ir.index_maps import access_of_one, are_even, step
from micrograd.compiler.ir.program import Access, Loop, Map, Reduction, Segment, Singles, Take, written_out
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.ir.program import Kernel, Program
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.engine.primitive import Primitive

Item: TypeAlias = "Reduction | Map | Take | Words | Added"

_SMALL, _FEW = 16, 4  # terms and numbers of a kernel that is written out number by number
_LOOPS = 64  # of a part, or so many statements for each of them:
_STATEMENTS = 4
_TERMS = 8  # of a sum that is as much as a statement
_PARTS = 3  # of a sum whose rows are not evenly apart
_MANY, _LARGE = 16, 512  # rows that are evenly apart, and worth a part, of a kernel whose table is long
_SHORT, _PERIOD = 8, 1024  # columns that such rows may be made of
_IRREGULAR = 2  # rows before they are even
_LOCALS = 128  # local variables of a block, so that they fit into the stack of a small machine


@dataclass(frozen=True)
class Words:
    """A kernel that goes through a table; see words.py.

    Attributes:
        words: the table. Functions are -1 for the first of the primitives, -2 for the second, and so on.
        is_position: which of the words are positions.
        starts: where the second result begins in the table, the third, and so on.
        primitives: that are applied.
    """

    words: Integers
    is_position: Booleans
    starts: Integers
    primitives: tuple[Primitive, ...]

    kind = "numbers"
    columns = terms = 1

    @property
    def rows(self) -> int:
        """How many positions there are."""
        return int(self.is_position.sum())

    @property
    def target(self) -> Access:
        """The index map of all positions, so that all are in one array."""
        return Access(table=self.words[self.is_position][:, None, None])

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The same, as what is read."""
        return [(self.target, 1)]

    def changed(self, change: Callable[[Access], Access]) -> Words:
        """The same with another index map."""
        words = self.words.copy()
        words[self.is_position] = change(self.target).positions(self.rows, 1, 1).ravel()
        return replace(self, words=words)


@dataclass(frozen=True)
class Added:
    """A kernel that adds a product to each of some numbers, or sets them; see scattered.py.

    Attributes:
        rows, columns: of the numbers; one may be there several times.
        target: where they are.
        coefficient: that products are multiplied by; without factors, what the numbers are set to.
        factors: where the factors are, at most two.
        is_in_order: whether the order matters in which one number is added to.
    """

    rows: int
    columns: int
    target: Access
    coefficient: float
    factors: tuple[Access, ...]
    is_in_order: bool

    kind = "sum"
    terms = 1

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The index maps of its factors, each of one term."""
        return [(access, 1) for access in self.factors]

    def changed(self, change: Callable[[Access], Access]) -> Added:
        """The same with other index maps: that of the target is changed first, then those of the factors in order."""
        target = change(self.target)
        return replace(self, target=target, factors=tuple(map(change, self.factors)))


@dataclass(frozen=True)
class Block:
    """Kernels that run so many times, one iteration after the other."""

    iterations: int
    kernels: tuple[Item, ...]


class Use(NamedTuple):
    """An operand or a target of a kernel.

    Attributes:
        block, kernel, operand: the numbers of its block, of its kernel there, and its own; that of a target is -1.
        access: where it is.
        shape: how many rows, columns and terms it has.
        iterations: how many iterations there are.
        is_scalar: whether its kernel computes one number.
    """

    block: int
    kernel: int
    operand: int
    access: Access
    shape: tuple[int, int, int]
    iterations: int
    is_scalar: bool

    @property
    def is_number(self) -> bool:
        """Whether it is one number, the same for all results and iterations."""
        access, (rows, columns, terms) = self.access, self.shape
        if access.table is not None:
            return False
        across = (access.row_step and rows > 1) or (access.column_step and columns > 1)
        return not (across or (access.term_step and terms > 1) or (access.iteration_step and self.iterations > 1))

    def step(self, axis: str) -> int:
        """How far it moves from one row, column or term to the next, but for what a table says."""
        access, (rows, columns, terms) = self.access, self.shape
        if axis == "row":
            return access.row_step if rows > 1 and access.table is None else 0
        if axis == "column":
            return access.column_step if columns > 1 else 0
        return access.term_step if terms > 1 else 0

    def mark(self, marks: Booleans) -> None:
        """Set the marks of all of its positions."""
        (low, high), (rows, columns, terms) = self.reach(), self.shape
        few = high - low >= rows * columns * terms * self.iterations
        marks[self.all_positions() if few else slice(low, high + 1)] = True

    def positions(self) -> Integers:
        """All of them in the first iteration."""
        return self.access.positions(*self.shape).ravel()

    def all_positions(self) -> Integers:
        """Those of all iterations."""
        positions, step = self.positions(), self.access.iteration_step
        return (positions + step * np.arange(self.iterations)[:, None]).ravel() if step else positions

    def reach(self) -> tuple[int, int]:
        """The first and the last position, in all iterations."""
        before, after = self.access.reach(self.shape, self.iterations)
        if (table := self.access.table) is None:
            return self.access.base + before, self.access.base + after
        return int(table.min()) + before, int(table.max()) + after


def blocks_of(program: Program) -> list[Block]:
    """The kernels of a program in blocks: each loop is one. Small kernels are written out."""
    blocks: list[Block] = []
    straight: list[Item] = []
    for kernel in program.kernels:
        if isinstance(kernel, Loop):
            blocks += [Block(1, tuple(straight))] if straight else []
            straight = []
            blocks.append(Block(kernel.iterations, tuple(chain.from_iterable(map(_if_small, kernel.kernels)))))
        elif isinstance(kernel, Singles):
            straight += kernel.unrolled()
        else:
            straight += _if_small(kernel)
    return [*blocks, Block(1, tuple(straight))] if straight else blocks


def evened(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, with kernels in parts that are even, where tables say so."""
    return [
        replace(block, kernels=tuple(part for kernel in block.kernels for part in in_even_rows(kernel)))
        for block in blocks
    ]


def in_even_rows(kernel: Item) -> Sequence[Item]:
    """A kernel as some whose rows are evenly apart, if that is so of many rows in a row, or all but a few of a sum.

    Buffers are used again, so of the rows of a matrix often all but the last are evenly apart.
    """
    if not isinstance(kernel, (Reduction, Map)):
        return [kernel]
    if parts := in_columns(kernel):
        return parts
    if isinstance(kernel, Reduction) and not kernel.is_in_order and kernel.rows * kernel.columns == 1:
        return [replace(kernel, segments=tuple(chain.from_iterable(map(in_even_terms, kernel.segments))))]
    tables = _row_tables(kernel)
    if tables is None:
        return [kernel]
    starts = even_parts(tables)
    is_long_sum = isinstance(kernel, Reduction) and not (kernel.is_in_order or kernel.largest)
    is_large = len(starts) * _MANY <= kernel.rows >= _LARGE
    if not is_large and not (is_long_sum and len(starts) <= _PARTS):
        return in_threads(kernel, tables) or [kernel]
    return [_rows(kernel, slice(*ends)) for ends in pairwise([*starts, kernel.rows])]


def in_even_terms(part: Segment) -> Sequence[Segment]:
    """The terms of a single sum as some segments whose terms are evenly apart, if there are few of these."""
    if not any(access.gathers for access in part.factors):
        return [part]
    starts = even_parts(np.stack([access.positions(1, 1, part.terms).ravel() for access in part.factors]))
    if len(starts) * _MANY > part.terms:
        return [part]

    def some(access: Access, start: int, end: int) -> Access:
        return access_of_one(access.positions(1, 1, part.terms)[0, 0, start:end].tolist(), access.iteration_step)

    return [
        replace(
            part,
            terms=end - start,
            first=some(part.first, start, end),
            second=part.second and some(part.second, start, end),
        )
        for start, end in pairwise([*starts, part.terms])
    ]


def in_columns(kernel: Reduction | Map) -> Sequence[Reduction | Map]:
    """A kernel of many rows as some of rows and columns, if that makes most of its tables even; none if not.

    So a table that moves numbers of a loop, some of each iteration, has these of one iteration only.
    """
    stacked, count = _row_tables(kernel), kernel.rows
    is_simple = kernel.columns == 1 and all(terms == 1 for _, terms in kernel.reads)
    if count < _LARGE or stacked is None or not is_simple:
        return []
    for period in (number for number in range(_SHORT, _PERIOD + 1) if count % number == 0 and number * _MANY <= count):
        uneven = (np.diff(stacked.reshape(len(stacked), -1, period), 2, axis=1) != 0).any(axis=0)
        first = _IRREGULAR if uneven[:_IRREGULAR].any() else 0
        even = ~uneven[first:].any(axis=0)
        if 2 * even.sum() > period:
            starts = [0, *(np.flatnonzero(np.diff(even)) + 1).tolist(), period]
            head = [_columns(kernel, period, (0, first), (0, period), False)] if first else []
            falls = bool((np.diff(stacked[-1].reshape(-1, period)[first:, even], axis=0) < 0).any())
            rows = first, count // period
            return head + [_columns(kernel, period, rows, columns, falls) for columns in pairwise(starts)]
    return []


def _columns(
    kernel: Reduction | Map, period: int, rows: tuple[int, int], columns: tuple[int, int], falls: bool
) -> Reduction | Map:
    """Some rows and columns of a kernel, of which so many rows are a longer one.

    Where what is read falls from row to row, the last row comes first, so that steps go up.
    """
    count, width = rows[1] - rows[0], columns[1] - columns[0]

    def part(access: Access) -> Access:
        positions = access.positions(kernel.rows, 1, 1).reshape(-1, period)[slice(*rows), slice(*columns)]
        positions = positions[::-1] if falls else positions
        down, right = step(positions[:, 0]), step(positions[0])
        even = positions[0, 0] + down * np.arange(count)[:, None] + right * np.arange(width)
        if (positions == even).all():
            return Access(int(positions[0, 0]), down, right, iteration_step=access.iteration_step)
        return Access(table=positions[:, :, None], iteration_step=access.iteration_step)

    return replace(kernel.changed(part), rows=count, columns=width)


def _row_tables(kernel: Reduction | Map) -> Integers | None:
    """The tables of where rows start, one below the other; None where there are none, or a table says more."""
    accesses = kernel.target, *kernel.accesses
    tables = [access.table.ravel() for access in accesses if access.table is not None]
    return None if not tables or any(access.gathers for access in accesses) else np.stack(tables)


def in_threads(kernel: Reduction | Map, tables: Integers) -> Sequence[Reduction | Map]:
    """A kernel of many rows as some of every second, third ... row, if these have the same tables; none if not.

    So the cross products of 1,000 vectors, some of which a table names, need a table with 1,000 entries, not 3,000.
    """
    for period in (number for number in range(2, _SHORT + 1) if kernel.rows % number == 0 and kernel.rows >= _LARGE):
        found = tables.reshape(len(tables), -1, period)
        is_same = (found - found[:, :, :1] == found[:, :1] - found[:, :1, :1]).all()
        if is_same and (np.diff(found[:, :, 0], 2, axis=1) != 0).any():
            return [_rows(kernel, slice(first, None, period)) for first in range(period)]
    return []


def _rows(kernel: Reduction | Map, chosen: slice) -> Reduction | Map:
    """Some rows of a kernel, without tables where they are evenly apart."""
    rows = range(kernel.rows)[chosen]

    def part(access: Access) -> Access:
        if access.table is None:
            return replace(
                access, base=access.base + rows.start * access.row_step, row_step=rows.step * access.row_step
            )
        starts = access.table[chosen].ravel()
        if are_even(starts):
            return replace(access, base=int(starts[0]), row_step=step(starts), table=None)
        return replace(access, table=access.table[chosen])

    return replace(kernel.changed(part), rows=len(rows))


def even_parts(tables: Integers) -> list[int]:
    """Where parts of tables begin in which all of these are even."""
    breaks = (np.diff(tables, 2, axis=1) != 0).any(axis=0).tolist()
    starts = [0]
    for number, breaks_off in enumerate(breaks, 2):
        if breaks_off and number - starts[-1] >= 2:  # two are always even
            starts.append(number)
    return starts


def in_parts(blocks: Sequence[Block], forms: Sequence[Any]) -> list[Block]:
    """The blocks, so divided that none has many loops or statements: compilers of C take long over a large function.

    Args:
        blocks: without loops.
        forms: of the kernels of all blocks; those of the same form in a row count once.
    """
    found: list[Block] = []
    given = iter(forms)
    for block in blocks:
        own = [next(given) for _ in block.kernels]
        is_same = [form is not None and form == before for before, form in pairwise([None, *own])]
        loops = np.cumsum([0 if same else _loops(one) for same, one in zip(is_same, block.kernels, strict=True)])
        part = 0
        while part < len(block.kernels):
            end = int(np.searchsorted(loops, (loops[part - 1] if part else 0) + _LOOPS, side="right"))
            end = max(end, part + 1)
            found.append(Block(1, block.kernels[part:end]))
            part = end
    return found


def _loops(kernel: Item) -> float:
    """How many loops a kernel has, about, or as much as how many it is."""
    if is_scalar(kernel):
        return (1 + kernel.terms // _TERMS) / _STATEMENTS
    return 1 if not isinstance(kernel, Reduction) or kernel.is_in_order else len(kernel.segments)


def is_scalar(kernel: Item) -> bool:
    """Whether a kernel computes one number of numbers at fixed positions."""
    if not isinstance(kernel, (Map, Reduction)) or kernel.rows * kernel.columns > 1:
        return False
    tables = any(access.table is not None for access, _ in kernel.reads)
    return not tables and (isinstance(kernel, Map) or all(part.terms == 1 for part in kernel.segments))


def _if_small(kernel: Kernel) -> Sequence[Item]:
    """A kernel of one number for each of the results of a small one."""
    count = kernel.rows * kernel.columns
    if isinstance(kernel, Take) or count > _FEW or count * kernel.terms > _SMALL:
        return [kernel]
    if isinstance(kernel, Reduction) and not (kernel.is_in_order or kernel.largest):
        return [kernel]
    return written_out(kernel)


def with_uses(blocks: Sequence[Block]) -> Iterator[tuple[Item, list[Use]]]:
    """Each kernel with its operands and, last, its target."""
    for number, block in enumerate(blocks):
        for position, kernel in enumerate(block.kernels):
            rows, columns, scalar = kernel.rows, kernel.columns, is_scalar(kernel)
            uses = [
                Use(number, position, operand, access, (rows, columns, terms), block.iterations, scalar)
                for operand, (access, terms) in [*enumerate(kernel.reads), (-1, (kernel.target, 1))]
            ]
            yield kernel, uses


def uses_of(blocks: Sequence[Block]) -> Iterator[Use]:
    """All operands and targets, kernel by kernel, operands first."""
    return chain.from_iterable(uses for _, uses in with_uses(blocks))


def regions_of(blocks: Sequence[Block], size: int) -> Integers:
    """For each position of a buffer a number, the same for what is read or written together."""
    covered = np.zeros(size, dtype=np.int64)
    for use in uses_of(blocks):
        low, high = use.reach()
        covered[low] += 1  # from here on to the position before the last, the next one is of the same region
        covered[high] -= 1
    return np.cumsum(np.append(0, np.cumsum(covered[:-1]) == 0))


def with_accesses(blocks: Sequence[Block], change: Callable[[Use], Access]) -> list[Block]:
    """The blocks with other operands and targets."""
    made = iter([_changed(kernel, [*map(change, uses)]) for kernel, uses in with_uses(blocks)])
    return [replace(block, kernels=tuple(islice(made, len(block.kernels)))) for block in blocks]


def _changed(kernel: Item, accesses: Sequence[Access]) -> Item:
    *operands, target = accesses
    given = iter([target, *operands])
    return kernel.changed(lambda access: next(given))


def contracted(blocks: list[Block], program: Program) -> list[Block]:
    """The blocks, with one number in place of an array of which each iteration reads only what it has written."""
    kept = np.zeros(program.size, dtype=bool)  # what is read elsewhere
    kept[np.concatenate([program.inputs, program.seeds, program.results])] = True
    writer = np.full((2, program.size), -1)  # the block and the step of what is written
    near: list[Use] = []  # targets, and operands that the same iteration has written
    for use in uses_of(blocks):
        step = use.access.iteration_step
        if use.operand == -1:
            if step:
                writer[:, use.positions()] = [[use.block], [step]]
                near.append(use)
        elif step and (writer[:, use.positions()] == [[use.block], [step]]).all():
            near.append(use)
        else:
            use.mark(kept)
    before = -1
    while before != (before := int(kept.sum())):
        for use in near:
            if kept[found := use.all_positions()].any():
                kept[found] = True
    moves = {use[:3] for use in near if not kept[use.positions()].any()}
    return with_accesses(blocks, lambda use: replace(use.access, iteration_step=0) if use[:3] in moves else use.access)


class _Lane(NamedTuple):
    """A number of a loop that each iteration computes of the one before.

    Attributes:
        block, kernel: that compute it.
        first: where the first iteration puts it.
        step: how far on each iteration puts it.
        iterations: how many iterations there are.
    """

    block: int
    kernel: int
    first: int
    step: int
    iterations: int

    @property
    def state(self) -> int:
        """Where it is before the first iteration."""
        return self.first - self.step

    @property
    def last(self) -> int:
        """Where the last iteration puts it."""
        return self.first + self.step * (self.iterations - 1)

    def allows(self, use: Use) -> bool:
        """Whether a use would find the number if there were but the state and the next one."""
        base = use.access.base
        if use.operand == -1 and use[:2] == self[:2]:
            return True
        if not use._replace(access=replace(use.access, iteration_step=0)).is_number:
            return False
        if use.block == self.block:
            is_later = use.kernel > self.kernel
            moves = use.operand != -1 and use.access.iteration_step == self.step
            return moves and (base == self.state or (base == self.first and is_later))
        if use.access.iteration_step:
            return False
        before, written = use.block < self.block, use.operand == -1
        return (
            base == self.state if before and written and use.is_scalar else base == self.last and not before | written
        )


def rolled(blocks: list[Block], program: Program) -> tuple[list[Block], dict[int, int]]:
    """The blocks, with two numbers in place of an array of which each iteration reads only what the last one wrote.

    Returns:
        The blocks; and where each of these numbers is after its loop, by where it was.
    """
    lanes: list[_Lane] = []
    lane_at = np.full(program.size, -1)
    good: list[bool] = []
    for use in uses_of(blocks):
        step = use.access.iteration_step
        if use.operand == -1 and use.is_scalar and step and 0 <= use.access.base - step < program.size:
            lane = _Lane(use.block, use.kernel, use.access.base, step, use.iterations)
            positions = lane.state + step * np.arange(use.iterations + 1)
            good.append(bool((lane_at[positions] < 0).all()))
            lane_at[positions[lane_at[positions] < 0]] = len(lanes)
            lanes.append(lane)
    started = set[int]()
    for use in uses_of(blocks):
        found = lane_at[use.all_positions()]
        for number in distinct(found[found >= 0]).tolist():
            good[number] = good[number] and lanes[number].allows(use)
            if use.operand == -1 and use.block < lanes[number].block:
                started.add(number)
    given = [program.inputs, program.seeds, program.of_gradients]
    given += [start + np.arange(len(numbers)) for start, numbers in program.constants]
    refused = {*lane_at[np.concatenate(given)].tolist()}
    refused |= (
        {int(lane_at[position]) for position in program.outputs.tolist() if position != lanes[lane_at[position]].last}
        if lanes
        else set()
    )
    kept = [n for n, lane in enumerate(lanes) if good[n] and n in started and n not in refused]
    at = {position: lanes[n] for n in kept for position in (lanes[n].state, lanes[n].first, lanes[n].last)}

    def change(use: Use) -> Access:
        access = use.access
        lane = at.get(access.base) if access.table is None else None
        if lane is None or not lane.allows(use):
            return access
        base = lane.state if use.block != lane.block else access.base
        return replace(access, base=base, iteration_step=0)

    made = with_accesses(blocks, change)
    for number in kept:
        lane = lanes[number]
        copy = Reduction(1, 1, Access(lane.state), (Segment(1.0, 1, Access(lane.first), None),))
        block = made[lane.block]
        made[lane.block] = replace(block, kernels=(*block.kernels, copy))
    return made, {lanes[number].last: lanes[number].state for number in kept}


def local_positions(blocks: Sequence[Block], program: Program) -> dict[int, int]:
    """The numbers that are local variables, each with the number of its loop or part; -1 if all is in one function."""
    refused = np.zeros(program.size, dtype=bool)
    refused[np.concatenate([program.inputs, program.seeds])] = True
    in_parts = len(blocks) > 1 and all(block.iterations == 1 for block in blocks)
    writer: dict[int, int] = {}
    for use in uses_of(blocks):
        inside, position = use.block if use.iterations > 1 or in_parts else -1, use.access.base
        if not use.is_number or (use.operand == -1 and not use.is_scalar):
            use.mark(refused)
        elif use.operand == -1:
            writer.setdefault(position, inside)  # a state is written again in its loop
        elif in_parts and writer.get(position) != inside:
            refused[position] = True
    results = set(program.results.tolist())
    found: dict[int, int] = {}
    counts: Counter[int] = Counter()
    for position, inside in writer.items():
        if not refused[position] and counts[inside] < _LOCALS and (inside == -1 or position not in results):
            counts[inside] += 1
            found[position] = inside
    return found


def compressed(blocks: list[Block], program: Program, others: Sequence[int]) -> tuple[list[Block], Integers]:
    """The blocks without gaps between what is read and written, and the new position of each number.

    Args:
        blocks: of a program.
        program: which it is.
        others: the positions of local variables, which come last.
    """
    used = np.zeros(program.size, dtype=bool)
    uses = [use for use in uses_of(blocks) if not use.is_number]
    used[np.concatenate([program.inputs, program.seeds, program.results])] = True
    for start, numbers in program.constants:
        used[start : start + len(numbers)] = True
    for use in uses_of(blocks):
        use.mark(used)
    used[others] = False
    while True:
        positions = np.cumsum(used) - used
        positions[others] = used.sum() + np.arange(len(others))
        uneven = [use for use in uses if _moved(use, positions) is None]
        if not uneven:
            break
        for use in uneven:
            low, high = use.reach()
            used[low : high + 1] = True
    return with_accesses(blocks, lambda use: cast("Access", _moved(use, positions))), positions


def _moved(use: Use, positions: Integers) -> Access | None:
    """An index map where each number is at another position; None if these are not evenly apart."""
    access, (rows, columns, terms) = use.access, use.shape

    def apart(table: Integers, far: int, count: int) -> int:
        start = int(table.flat[0])
        return int(positions[start + far] - positions[start]) if far and count > 1 else 0

    table = access.table
    starts = np.array([access.base]) if table is None else table
    moved = Access(
        int(positions[access.base]) if table is None else 0,
        apart(starts, access.row_step, rows) if table is None else 0,
        apart(starts, access.column_step, columns),
        apart(starts, access.term_step, terms),
        None if table is None else positions[table],
        apart(starts, access.iteration_step, use.iterations),
    )
    after = use._replace(access=moved)
    far = access.iteration_step and moved.iteration_step * np.arange(use.iterations)[:, None]
    return moved if (positions[use.all_positions()] == (after.positions() + far).ravel()).all() else None
