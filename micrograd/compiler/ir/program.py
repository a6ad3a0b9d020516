"""Program: kernels over arrays in one buffer, as plain data that any backend can read.

All numbers of a program are in one buffer of float64: the inputs, then what the kernels compute, then
the constants. A kernel computes ``rows * columns`` numbers, each from up to ``terms`` terms, and says
where they are by affine maps: element (row, column, term) of an operand is at

    base + row * row_step + column * column_step + term * term_step

The product of a 3 by 2 matrix at 0 and a vector at 6, to be written at 8, is a kernel of 1 row and 3
columns: the target at 8 + column, the first factor at 0 + 2 * column + term, the second at 6 + term.
Where an index map is not affine, a table says where each row starts, or where each element is.

Kernels that repeat, as those of each step of a recurrent network do, are a loop: the same kernels run iteration after
iteration, and what they read and write moves by ``iteration_step`` at each iteration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise, repeat, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.numbers import no_integers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive


MOST_NUMBERS = 1 << 31  # that tables of positions, which have 32 bits each, tell apart
IN_ORDER = 8  # sums of up to so many terms are computed in the order of their terms
SUM, FROM_ZERO, LARGEST = -1, -2, -3  # what a single number is, if it is no result of a primitive


@dataclass(frozen=True)
class Access:
    """Where the numbers of an operand, or of the result, are.

    Attributes:
        base: where the first is.
        row_step: how far apart rows are.
        column_step: how far apart columns are.
        term_step: how far apart terms are.
        table: where each row starts, of shape (rows, 1, 1), in place of base and row_step; or where each term of each
            row starts, of shape (rows, 1, terms), in place of term_step, too; or where each element is, of shape
            (rows, columns, terms), in place of all of them.
        iteration_step: how far all of it moves at each iteration of the loop that the kernel is in.
    """

    base: int = 0
    row_step: int = 0
    column_step: int = 0
    term_step: int = 0
    table: Integers | None = None
    iteration_step: int = 0

    def at(self, iteration: int) -> Access:
        """The same at an iteration of the loop that it is in."""
        offset = iteration * self.iteration_step
        if not offset:
            return self
        return replace(self, base=self.base + offset, table=None if self.table is None else self.table + offset)

    @property
    def gathers(self) -> bool:
        """Whether its table says more than where rows start."""
        return self.table is not None and self.table.shape[1:] != (1, 1)

    def reach(self, shape: tuple[int, int, int], iterations: int = 1) -> tuple[int, int]:
        """How far before and after its base, or a number of its table, elements are at most.

        Args:
            shape: how many rows, columns and terms there are.
            iterations: of the loop that it is in.
        """
        before = after = 0
        row_step = self.row_step if self.table is None else 0
        for step, count in zip((row_step, self.column_step, self.term_step), shape, strict=True):
            before, after = before + min(0, step * (count - 1)), after + max(0, step * (count - 1))
        far = self.iteration_step * (iterations - 1)
        return before + min(0, far), after + max(0, far)

    @property
    def has_columns_in_vectors(self) -> bool:
        """Whether several columns can be read at a time: they lie side by side, or are one number."""
        return self.column_step in (0, 1) and (self.table is None or self.table.shape[1] == 1)

    @property
    def has_terms_in_vectors(self) -> bool:
        """Whether several terms can be read at a time."""
        return self.term_step in (0, 1) and not self.gathers

    def positions(self, rows: int, columns: int, terms: int) -> Integers:
        """The positions of all elements, of shape (rows, columns, terms)."""
        starts = self.base + self.row_step * np.arange(rows)[:, None, None] if self.table is None else self.table
        return starts + (self.column_step * np.arange(columns)[:, None] + self.term_step * np.arange(terms))


@dataclass(frozen=True)
class Segment:
    """Some of a kernel's terms: ``coefficient * first * second``, or without a second factor."""

    coefficient: float
    terms: int
    first: Access
    second: Access | None

    @property
    def factors(self) -> list[Access]:
        """The index maps of its factors, one or two."""
        return [self.first] if self.second is None else [self.first, self.second]


class _Reading(ABC):
    """What reads operands."""

    @property
    @abstractmethod
    def reads(self) -> list[tuple[Access, int]]:
        """The index maps of its operands, each with how many terms it has."""

    @property
    def accesses(self) -> list[Access]:
        """The index maps of its operands."""
        return [access for access, _ in self.reads]


@dataclass(frozen=True)
class Reduction(_Reading):
    """A kernel whose results are each the sum, or the largest, of all terms of all segments.

    A sum of few terms is computed in their order, each product and each sum rounded. A longer one may be taken in
    another order, and a product and a sum rounded once instead of twice.
    """

    rows: int
    columns: int
    target: Access
    segments: tuple[Segment, ...]
    largest: bool = False
    from_zero: bool = False  # whether 0 is a term besides: then no sum of few terms is -0

    @staticmethod
    def zero_if_finite(position: int, *parts: tuple[int, Access]) -> Reduction:
        """The kernel that puts 0 at a position if all terms are finite, and NaN otherwise, as 0 times them.

        Each part says how many terms there are, and where.
        """
        return Reduction(1, 1, Access(position), tuple(Segment(0.0, *part, None) for part in parts))

    @property
    def kind(self) -> str:
        """Its name: by what is done with the terms, and whether factors are multiplied."""
        if self.largest:
            return "maximum"
        if all(segment.second is None for segment in self.segments):
            return "copy" if self.terms == 1 else "sum"
        if self.terms == 1:
            return "product"
        if self._is_product_of_matrices():
            return "matrix product" if self.rows > 1 else "matrix-vector"
        return "dot"

    @property
    def terms(self) -> int:
        """How many terms each result has."""
        return sum(segment.terms for segment in self.segments)

    @property
    def is_in_order(self) -> bool:
        """Whether its terms are added in their order."""
        return self.terms <= IN_ORDER and not self.largest

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        products = sum(segment.terms * (2 if segment.second else 1) for segment in self.segments)
        return self.rows * self.columns * max(products - 1, 0)

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The index maps of its operands, each with how many terms it has."""
        return [(access, part.terms) for part in self.segments for access in part.factors]

    def changed(self, change: Callable[[Access], Access]) -> Reduction:
        """The same with other index maps: that of the target is changed first, then those of the operands in order."""
        target = change(self.target)
        segments = (
            replace(one, first=change(one.first), second=one.second and change(one.second)) for one in self.segments
        )
        return replace(self, target=target, segments=tuple(segments))

    def _is_product_of_matrices(self) -> bool:
        return all(
            any(factor.column_step == 0 and not factor.gathers for factor in (part.first, part.second) if factor)
            for part in self.segments
            if part.second is not None
        )


@dataclass(frozen=True)
class Map(_Reading):
    """A kernel that applies a primitive to each of its elements."""

    primitive: Primitive
    rows: int
    columns: int
    target: Access
    operands: tuple[Access, ...]

    terms = 1

    @property
    def kind(self) -> str:
        """The primitive's name."""
        return self.primitive.name

    @property
    def flops(self) -> int:
        """One for each element."""
        return self.rows * self.columns

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The index maps of its operands, each of one term."""
        return [(access, 1) for access in self.operands]

    def changed(self, change: Callable[[Access], Access]) -> Map:
        """The same with other index maps: that of the target is changed first, then those of the operands in order."""
        target = change(self.target)
        return replace(self, target=target, operands=tuple(map(change, self.operands)))


@dataclass(frozen=True)
class Take(_Reading):
    """A kernel whose results are each one of ``terms`` elements. The index of the element is a number in the buffer."""

    rows: int
    columns: int
    terms: int
    target: Access
    index: Access
    elements: Access

    kind = "take"
    flops = 0

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The index maps of the index, of one term, and of the elements."""
        return [(self.index, 1), (self.elements, self.terms)]

    def changed(self, change: Callable[[Access], Access]) -> Take:
        """The same with other index maps: that of the target is changed first, then those of the operands in order."""
        target = change(self.target)
        return replace(self, target=target, index=change(self.index), elements=change(self.elements))


Kernel = Reduction | Map | Take


@dataclass(frozen=True)
class Singles(_Reading):
    """Numbers by themselves, computed one after the other: small sums, and results of primitives, hardly two alike.

    An irregular program has hundreds of thousands of them, too many for an object each.

    Attributes:
        targets: where each goes.
        functions: which of the primitives each is a result of; or SUM, FROM_ZERO (0 is a term besides) or LARGEST.
        counts: how many terms, or operands, each has; one at least. These are side by side in the arrays below.
        first: where the first factor of each term is, or an operand.
        second: where the second factor is; -1 where there is none.
        coefficients: which of the numbers each term is multiplied by.
        numbers: that terms are multiplied by.
        primitives: that are applied.
    """

    targets: Integers
    functions: Integers
    counts: Integers
    first: Integers
    second: Integers
    coefficients: Integers
    numbers: Floats
    primitives: tuple[Primitive, ...] = ()

    kind = "single numbers"
    columns = terms = 1

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self.targets)

    @property
    def starts(self) -> Integers:
        """Where the terms of each begin."""
        return np.cumsum(self.counts) - self.counts

    @property
    def flops(self) -> int:
        """Multiplications and additions, and one for each result of a primitive."""
        products = np.add.reduceat(1 + (self.second >= 0), self.starts)
        return int(np.where(self.functions >= 0, 1, products - 1).sum())

    @property
    def target(self) -> Access:
        """The index map of the results."""
        return Access(table=self.targets[:, None, None])

    @property
    def reads(self) -> list[tuple[Access, int]]:
        """The index map of all that is read."""
        found = np.concatenate([self.first, self.second[self.second >= 0]])
        return [(Access(table=found[:, None, None]), 1)]

    def moved(self, positions: Integers) -> Singles:
        """The same where each position of the buffer is another one."""
        second = np.where(self.second < 0, -1, positions[self.second])
        return replace(self, targets=positions[self.targets], first=positions[self.first], second=second)

    def unrolled(self) -> Iterator[Reduction | Map]:
        """A kernel for each."""
        factors = zip(self.first.tolist(), self.second.tolist(), self.numbers[self.coefficients].tolist(), strict=True)
        for target, function, count in zip(
            *(a.tolist() for a in (self.targets, self.functions, self.counts)), strict=True
        ):
            terms = islice(factors, count)
            if function >= 0:
                operands = tuple(Access(first) for first, _, _ in terms)
                yield Map(self.primitives[function], 1, 1, Access(target), operands)
            else:
                segments = tuple(
                    Segment(number, 1, Access(first), None if second < 0 else Access(second))
                    for first, second, number in terms
                )
                yield Reduction(1, 1, Access(target), segments, function == LARGEST, function == FROM_ZERO)


@dataclass(frozen=True)
class Loop:
    """Kernels that run iteration after iteration, each reading and writing further on.

    Attributes:
        iterations: how many there are.
        kernels: those of the first iteration, in the order in which they run. There are no takes among them.
    """

    iterations: int
    kernels: tuple[Reduction | Map, ...]

    def unrolled(self) -> Iterator[Kernel]:
        """The kernels of all iterations, in the order in which they run."""
        for iteration in range(self.iterations):
            for kernel in self.kernels:
                yield kernel.changed(lambda access, iteration=iteration: access.at(iteration))  # type: ignore[misc]


def unrolled(kernel: Kernel | Loop | Singles) -> Iterator[Kernel]:
    """The kernels as they run: those of a loop once an iteration, and one for each single number."""
    yield from kernel.unrolled() if isinstance(kernel, Loop | Singles) else (kernel,)


def written_out(kernel: Reduction | Map) -> list[Reduction | Map]:
    """A kernel of one number for each of the results, with segments of one term."""

    def positions(access: Access, terms: int = 1) -> list[list[Access]]:
        found = access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms).tolist()
        return [[Access(position, iteration_step=access.iteration_step) for position in row] for row in found]

    targets = [target for (target,) in positions(kernel.target)]
    if isinstance(kernel, Map):
        operands = [positions(access) for access in kernel.operands]
        return [
            Map(kernel.primitive, 1, 1, target, tuple(found[number][0] for found in operands))
            for number, target in enumerate(targets)
        ]
    factors = [[positions(factor, part.terms) for factor in part.factors] for part in kernel.segments]
    return [
        Reduction(
            1,
            1,
            target,
            tuple(
                Segment(part.coefficient, 1, found[0][number][term], found[1][number][term] if part.second else None)
                for part, found in zip(kernel.segments, factors, strict=True)
                for term in range(part.terms)
            ),
            kernel.largest,
            kernel.from_zero,
        )
        for number, target in enumerate(targets)
    ]


def with_iterations(kernel: Kernel | Loop | Singles) -> Iterator[tuple[int, Kernel | Singles]]:
    """The kernels of a loop, or a kernel itself, each with how often it runs."""
    if isinstance(kernel, Loop):
        yield from zip(repeat(kernel.iterations), kernel.kernels, strict=False)
    else:
        yield 1, kernel


@dataclass(frozen=True)
class Program:
    """Kernels in the order in which they run, and where inputs and results are in the buffer.

    Attributes:
        size: how many numbers the buffer has.
        kernels: and loops and single numbers; each reads what inputs, constants and those before it have written.
        inputs: where the inputs are: the Values that were read, and then the leaves of the arguments; and where
            there are gradients of several outputs, the seeds.
        outputs: where the outputs are: the results, and the answers to questions.
        seeds: where the gradients of the outputs themselves are: each is 1 before it is set.
        gradients: where the gradients of the inputs that were asked for are, side by side.
        constants: where runs of constants begin, and what they are.
        arrays: where each array begins in the buffer, and how many numbers it has, in order. What one kernel after the
            other computes in the same way is an array, and so is what a loop writes.
        answers: how many of the outputs answer questions.
        calls: how many kernels come before each call of a function outside of the program: it reads outputs, and gives
            inputs.
        nodes: how many scalar operations were traced.
        seconds: how long each stage took.
    """

    size: int
    kernels: tuple[Kernel | Loop | Singles, ...]
    inputs: Integers = field(default_factory=no_integers)
    outputs: Integers = field(default_factory=no_integers)
    seeds: Integers = field(default_factory=no_integers)
    gradients: slice = field(default_factory=lambda: slice(0, 0))
    constants: tuple[tuple[int, Floats], ...] = ()
    arrays: Integers = field(default_factory=lambda: no_integers().reshape(0, 2))
    answers: int = 0
    calls: tuple[int, ...] = ()
    nodes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size >= MOST_NUMBERS:
            raise ValueError(
                f"a program of {self.size:,} numbers is too large: its tables have 32 bits for each position"
            )
        starts, lengths = self.arrays.T
        if len(starts) and ((starts[1:] < (starts + lengths)[:-1]).any() or starts[-1] + lengths[-1] > self.size):
            raise ValueError(
                f"the arrays of a program of {self.size} numbers overlap, or do not fit: {self.arrays.tolist()}"
            )

    @property
    def of_gradients(self) -> Integers:
        """The positions of the gradients."""
        return np.arange(self.gradients.start, self.gradients.stop)

    @property
    def results(self) -> Integers:
        """The positions of the outputs, and then of the gradients."""
        return np.concatenate([self.outputs, self.of_gradients])

    def fill(self, buffer: Floats) -> Floats:
        """Put what is the same at each run in its places: the constants and the seeds."""
        for start, numbers in self.constants:
            buffer[start : start + len(numbers)] = numbers
        buffer[self.seeds] = 1.0
        return buffer

    def described(self, nodes: int, seconds: dict[str, float]) -> Program:
        """The same program, with how many nodes were traced for it and how long the stages took."""
        return replace(self, nodes=nodes, seconds=seconds)

    def stretches(self) -> list[slice]:
        """Which kernels run one after the other, without a call of a function outside of the program between them."""
        return [slice(begin, end) for begin, end in pairwise([0, *self.calls, len(self.kernels)])]

    @property
    def flops(self) -> int:
        """How many operations on floats a run takes."""
        return sum(iterations * kernel.flops for iterations, kernel in self.with_iterations())

    def with_iterations(self) -> Iterator[tuple[int, Kernel | Singles]]:
        """Each kernel that is written down, and how often a run runs it."""
        for kernel in self.kernels:
            yield from with_iterations(kernel)

    def unrolled(self) -> Iterator[Kernel]:
        """All kernels as they run: those of a loop once an iteration, and one for each single number."""
        for kernel in self.kernels:
            yield from unrolled(kernel)

    def explain(self) -> str:
        """The kernels as a table: by kind and shape, how many there are, and what they gather."""
        counts, scalars, flops, gathers = (Counter[tuple[str, str]]() for _ in range(4))
        for iterations, kernel in self.with_iterations():
            key = (kernel.kind, size_text(kernel))
            counts[key] += iterations
            scalars[key] += iterations * kernel.rows * kernel.columns * kernel.terms
            flops[key] += iterations * kernel.flops
            gathers[key] += iterations * sum(access.gathers for access in kernel.accesses)
        rows = [["kernel", "rows x columns x terms", "times", "scalars", "flops", "gathers"]]
        rows += [
            [kind, shape, *(f"{table[kind, shape]:,}" for table in (counts, scalars, flops, gathers))]
            for kind, shape in sorted(counts, key=lambda key: -scalars[key])
        ]
        seconds = ", ".join(f"{stage} {1e3 * taken:.0f} ms" for stage, taken in self.seconds.items())
        loops = [
            f"{len(loop.kernels)} run {loop.iterations:,} times" for loop in self.kernels if isinstance(loop, Loop)
        ]
        summary = (
            f"{self.nodes:,} scalar operations became {sum(1 for _ in self.with_iterations()):,} kernels"
            f"{', of which ' + ', '.join(loops) if loops else ''}: {self.flops:,} flops, {8 * self.size:,} bytes"
        )
        return "\n".join([summary, *([f"Took {seconds}"] if seconds else []), "", *aligned(rows)])

    def __str__(self) -> str:
        return self.explain()


def size_text(kernel: Kernel | Singles) -> str:
    """How many rows, columns and terms a kernel has, as text."""
    return f"{kernel.rows}x{kernel.columns}" + (f"x{kernel.terms}" if kernel.terms > 1 else "")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, in which the cells of a column begin below one another."""
    widths = [max(map(len, column)) for column in zip_longest(*rows, fillvalue="")]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
