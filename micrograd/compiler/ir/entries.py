"""Entries: what a trace writes down, one operation after the other.

For ``x * y + x`` the tape says

    0  input        x
    1  input        y
    2  mul   0 1
    3  add   2 0

An entry is appended to three lists. A tuple for each, in a dictionary that finds an equal one at once, would take three
times as long and four times the memory. So only those are looked for whose operands have all been operands before: what
does not depend on the sample, in a loop over samples. Others that are equal become one later (see equals.py).
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count, repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import distinct
from micrograd.engine import primitives
from micrograd.engine.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from micrograd.compiler.guards.structure import Structure
    from micrograd.compiler.numbers import Integers
    from micrograd.engine.array_calls import ArrayFunction
    from micrograd.engine.value import Value

# What a tape may have beside the primitives of the table. No gradient flows through a comparison.
INPUT = Primitive("input", "", float)
LITERAL = Primitive("literal", "", float)  # a plain number
SUM_OF_PRODUCTS = Primitive("sum_of_products", "dot", float)  # its operands: the start, and the numbers of two rows
TAKE = Primitive("take", "take", float)  # its operands: an index, and the number of a table
# The first of two numbers, with the gradient of the second: what is computed in one way, and differentiated in another
DIFFERENTIATED_AS = Primitive("differentiated_as", "", lambda x, _: x, None, lambda gradient, *_: gradient)
LESS, LESS_EQUAL, EQUAL = primitives.less, primitives.less_equal, primitives.equal

FEWEST_LANES = 16  # fewer are gone through one by one
NO_POSITION = -1  # of an operand that there is not: in an array, the last element


class Entries:
    """Operations, inputs and literals, in order; the position of one is its number.

    Attributes:
        primitives: what each applies.
        first: the position of its first operand; of an input or a literal, which one it is.
        second: the position of its second operand.
        further: the other operands of what has more of them, by its position.
        names: what the inputs are called.
        numbers: what the literals are.
        in_lanes: how many operations were written many at a time.
    """

    __slots__ = ("first", "further", "in_lanes", "names", "numbers", "primitives", "second")

    def __init__(self) -> None:
        self.primitives: list[Primitive] = []
        self.first, self.second = array("q"), array("q")
        self.further: dict[int, tuple[int, ...]] = {}
        self.names: list[Any] = []
        self.numbers: list[float] = []
        self.in_lanes = 0

    def append(self, primitive: Primitive, first: int = NO_POSITION, second: int = NO_POSITION, *further: int) -> int:
        """Write one down, and give its position."""
        position = len(self.primitives)
        self.first.append(first)
        self.second.append(second)
        if further:
            self.further[position] = further
        self.primitives.append(primitive)  # the last, so that what is half written is seen
        return position

    def copy(self) -> Entries:
        """The same, to be written on."""
        made = Entries()
        made.primitives, made.first, made.second = self.primitives.copy(), self.first[:], self.second[:]
        made.further, made.names, made.numbers = self.further.copy(), self.names.copy(), self.numbers.copy()
        made.in_lanes = self.in_lanes
        return made

    def begin_with(self, others: Entries) -> bool:
        """Whether the first ones are these."""
        return self.begin_like(others) and self.names[: len(others.names)] == others.names

    def begin_like(self, others: Entries) -> bool:
        """Whether the first ones do what these do, whatever the inputs are called."""
        count = len(others)
        return (
            self.primitives[:count] == others.primitives
            and self.first[:count] == others.first
            and self.second[:count] == others.second
            and all(self.further.get(position) == further for position, further in others.further.items())
            and array("d", self.numbers[: len(others.numbers)]).tobytes() == array("d", others.numbers).tobytes()
        )

    @property
    def are_mostly_in_lanes(self) -> bool:
        """Whether at least half of the operations were written many at a time."""
        return 2 * self.in_lanes >= len(self) - len(self.names) - len(self.numbers)

    def are_whole(self) -> bool:
        """Whether none was left half written, by an exception between two lists."""
        return len(self.first) == len(self.primitives)

    def append_input(self, name: Any) -> int:
        """Write an input down, and give its position."""
        self.names.append(name)
        return self.append(INPUT, len(self.names) - 1)

    def append_inputs(self, names: Sequence[Any]) -> range:
        """Write several inputs down, and give their positions."""
        return self._append_leaves(INPUT, self.names, names)

    def append_literals(self, numbers: Sequence[float]) -> range:
        """Write several plain numbers down, and give their positions."""
        return self._append_leaves(LITERAL, self.numbers, numbers)

    def _append_leaves(self, primitive: Primitive, known: list[Any], new: Sequence[Any]) -> range:
        begin, count, numbered = len(self.primitives), len(new), len(known)
        known += new
        self.first.extend(range(numbered, numbered + count))
        self.second.extend(array("q", [NO_POSITION]) * count)
        self.primitives += [primitive] * count
        return range(begin, begin + count)

    def append_block(
        self, primitives: Sequence[Primitive], steps: int, width: int, operands: Sequence[Sequence[Any]]
    ) -> int:
        """Write many down, and give the position of the first: in each step some primitives, each in many lanes.

        Args:
            primitives: of one step.
            steps: how many there are.
            width: how many lanes.
            operands: for each primitive the positions of its operands: for each step and lane, for each lane, or one.
        """
        begin, longest = len(self.primitives), max(2, *map(len, operands))
        block = np.full((longest, steps, len(primitives), width), NO_POSITION)
        every = begin + np.arange(block[0].size).reshape(block[0].shape)
        for number, of_one in enumerate(operands):
            for column, positions in zip(block, of_one, strict=False):
                column[:, number] = positions
            if len(of_one) > 2:
                others = zip(*[column[:, number].ravel().tolist() for column in block[2 : len(of_one)]], strict=True)
                self.further.update(zip(every[:, number].ravel().tolist(), others, strict=True))
        self.in_lanes += every.size
        self.first.frombytes(block[0].tobytes())
        self.second.frombytes(block[1].tobytes())
        self.primitives += list(chain.from_iterable(repeat(primitive, width) for primitive in primitives)) * steps
        return begin

    def append_chains(self, primitive: Primitive, first: Integers, second: Integers) -> None:
        """Write down many of two operands, which may be others of them."""
        self.first.frombytes(first.data.cast("B"))
        self.second.frombytes(second.data.cast("B"))
        self.primitives += [primitive] * len(first)

    def append_literal(self, number: float) -> int:
        """Write a plain number down, and give its position."""
        self.numbers.append(number)
        return self.append(LITERAL, len(self.numbers) - 1)

    def operands(self, position: int) -> tuple[int, ...]:
        """The operands of the one at a position: positions, or numbers of rows and tables."""
        first, second = self.first[position], self.second[position]
        if second == NO_POSITION:
            return () if first == NO_POSITION else (first,)
        return first, second, *self.further.get(position, ())

    def __len__(self) -> int:
        return len(self.primitives)

    def __getitem__(self, position: int) -> tuple[Any, ...]:
        """A primitive with its operands, an input with its name, or a literal with its number and the sign of that."""
        primitive = self.primitives[position]
        if primitive is INPUT:
            return primitive, self.names[self.first[position]]
        if primitive is LITERAL:
            number = self.numbers[self.first[position]]
            return primitive, number, math.copysign(1.0, number)  # 0 is equal to -0, and is another number
        return primitive, *self.operands(position)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return map(self.__getitem__, range(len(self)))


NO_ROWS, NO_SUMS = np.zeros((0, 0), dtype=np.int64), np.zeros(0, dtype=np.int64)


class Decided(NamedTuple):
    """What ``mg.cond`` or ``mg.while_loop`` does, where the program decides; or ``mg.scan`` with checkpoints.

    A scan is a loop, too: the last number of its state is that of the iteration, and what it is given and what it gives
    besides is a row for each iteration.

    Attributes:
        traces: of both branches; or of the condition and of the body. Their inputs are the first group.
        reads: for each of both, where its inputs come from, as those of Mapped do; of a loop the last are its state.
        predicate: where the number is that a choice depends on; nothing for a loop.
        state: where the first state of a loop is; nothing for a choice.
        results: which inputs of the trace around the results go to, one after the other. There a loop has its state.
        limit: how many iterations there may be; None for any number.
        moving: where what differs from iteration to iteration comes from, with a row for each; it follows the state.
        stacked: where the outputs besides the state go, with a row for each iteration. Of a scan the first are the
            state that the iteration begins with.
        sums: where the sums of the last outputs over all iterations go.
    """

    traces: tuple[Trace, ...]
    reads: tuple[Integers, ...]
    predicate: Integers
    state: Integers
    results: Integers
    limit: int | None
    moving: Integers = NO_ROWS
    stacked: Integers = NO_ROWS
    sums: Integers = NO_SUMS

    @property
    def is_loop(self) -> bool:
        """Whether it is a loop, and no choice."""
        return len(self.state) > 0

    @property
    def is_scan(self) -> bool:
        """Whether it is a loop with rows."""
        return len(self.stacked) > 0

    @property
    def made(self) -> list[int]:
        """Where all of its results are, one after the other."""
        found: list[int] = [*self.results.tolist(), *self.stacked.ravel().tolist(), *self.sums.tolist()]
        return found

    @property
    def begin(self) -> int:
        """Where the first result is."""
        return int(self.results[0])

    def __contains__(self, position: Any) -> bool:
        """Whether a result is at a position."""
        return self.begin <= position < self.begin + len(self.results) + self.stacked.size + len(self.sums)

    def read(self) -> Integers:
        """All that it reads."""
        return np.concatenate([*self.reads, self.predicate, self.state, self.moving.ravel()])

    def operands_of(self, position: int) -> list[int]:
        """The positions that a gradient may flow to from a result: all that the results are computed from.

        There may be many results. So the first one stands before the others, and alone leads to what all read.
        """
        if position != self.begin:
            return [self.begin]
        reads = [self.fixed, self.state, self.moving.ravel()] if self.is_loop else self.reads
        found: list[int] = distinct(np.concatenate(reads)).tolist()
        return found

    @property
    def edges(self) -> tuple[Integers, Integers]:
        """The edges from its results to what they are computed from; see operands_of."""
        first, *others = self.made
        operands = np.array(self.operands_of(first), dtype=np.int64)
        users = np.append(np.full(len(operands), first), np.array(others, dtype=np.int64))
        return users, np.append(operands, np.full(len(others), first))

    @property
    def fixed(self) -> Integers:
        """Where the inputs of the body of a loop come from, but for the state and what differs."""
        return self.reads[1][: -len(self.state)]

    def described(self, indent: str = "") -> list[str]:
        """A line for it, and for each decision inside."""
        count = f"{len(self.results):,} number{'s'[: len(self.results) != 1]}"
        sizes = " and ".join(f"{len(trace.operations):,}" for trace in self.traces)
        most = "any number of" if self.limit is None else f"at most {self.limit:,}"
        text = f"loop    {most} iterations of a state of {count}" if self.is_loop else f"choice  of {count}"
        if self.is_scan:
            text = f"scan    {len(self.stacked):,} checkpoints: states of {count}, between which all is computed again"
        lines = [f"{indent}{text}; {sizes} operations"]
        return lines + [
            line for trace in self.traces for each in trace.decisions for line in each.described(indent + "  ")
        ]

    def reached(self, is_reached: Callable[[int], bool]) -> list[bool]:
        """From which results a gradient flows to some of what it reads.

        Args:
            is_reached: whether one flows to the number with this position.
        """
        if not self.is_loop:
            then, otherwise = (
                trace.reached([is_reached(position) for position in reads.tolist()])
                for trace, reads in zip(self.traces, self.reads, strict=True)
            )
            return [x or y for x, y in zip(then, otherwise, strict=True)]
        state = [is_reached(position) for position in self.state.tolist()]
        fixed = [is_reached(position) for position in self.fixed.tolist()]
        moving = [any(map(is_reached, column)) for column in self.moving.T.tolist()]
        while True:
            found = self.traces[1].reached([*fixed, *state, *moving])
            after = [x or y for x, y in zip(state, found, strict=False)]
            if after == state:
                end = len(found) - len(self.sums)
                return state + found[len(state) : end] * len(self.stacked) + found[end:]
            state = after

    def numbered(self, numbers: Integers) -> Decided:
        """The same with a number for each position."""
        reads = tuple(numbers[found] for found in self.reads)
        changed = {
            name: numbers[getattr(self, name)]
            for name in ("predicate", "state", "results", "moving", "stacked", "sums")
        }
        return self._replace(reads=reads, **changed)


@dataclass(frozen=True)
class Mapped:
    """What ``mg.vmap`` does: one function in many iterations, none of which reads what another one computes.

    Attributes:
        trace: of one iteration. Its inputs are two groups: what is the same in all iterations, and what differs.
        fixed: where the inputs that do not differ come from, in the trace around. While that is written, these are
            positions. Then they are numbers: of its inputs first, and of its ``needed`` positions after these.
        moving: the same of those that differ, with a row for each iteration.
        results: where the outputs go, with a row for each iteration: to inputs of the trace around.
        sums: where the sums of the other outputs over all iterations go, to the inputs that come next.
    """

    trace: Trace
    fixed: Integers
    moving: Integers
    results: Integers
    sums: Integers

    @property
    def made(self) -> list[int]:
        """Where all of its results are, one after the other."""
        found: list[int] = [*self.results.ravel().tolist(), *self.sums.tolist()]
        return found

    def read(self) -> Integers:
        """All that it reads."""
        return np.append(self.fixed, self.moving)

    def numbered(self, numbers: Integers) -> Mapped:
        """The same with a number for each position."""
        changed = {name: numbers[getattr(self, name)] for name in ("fixed", "moving", "results", "sums")}
        return replace(self, **changed)

    def is_continued_by(self, other: Mapped) -> bool:
        """Whether the iterations of another one do the same first, of the same numbers: gradients of it do."""
        (fixed, moving), (further_fixed, further_moving) = self.trace.inputs, other.trace.inputs
        return (
            further_fixed[: len(fixed)] == fixed
            and further_moving[: len(moving)] == moving
            and np.array_equal(other.fixed[: len(fixed)], self.fixed)
            and other.moving.shape[0] == self.moving.shape[0]
            and np.array_equal(other.moving[:, : len(moving)], self.moving)
            and other.trace.operations.begin_with(self.trace.operations)
            and other.trace.rows[: len(self.trace.rows)] == self.trace.rows
            and other.trace.tables[: len(self.trace.tables)] == self.trace.tables
        )

    def continued(self, other: Mapped) -> Mapped:
        """What computes the results of both, where it is continued by the other one."""
        (own, own_sums), (further, further_sums) = (
            (each.trace.outputs[: each.results.shape[1]], each.trace.outputs[each.results.shape[1] :])
            for each in (self, other)
        )
        return replace(
            other,
            trace=other.trace._replace(
                outputs=(*own, *further, *own_sums, *further_sums),
                checked=tuple(dict.fromkeys((*self.trace.checked, *other.trace.checked))),
            ),
            results=np.concatenate([self.results, other.results], axis=1),
            sums=np.append(self.sums, other.sums),
        )

    @cached_property
    def _bounds(self) -> tuple[int, int]:
        return min(self.made), max(self.made)

    @property
    def begin(self) -> int:
        """Where the first result is."""
        return self._bounds[0]

    def __contains__(self, position: int) -> bool:
        first, last = self._bounds
        return first <= position <= last

    def operands_of(self, position: int) -> list[int]:
        """The positions that a gradient flows to from a result."""
        row, output = divmod(position - self._bounds[0], max(self.results.shape[1], 1))
        if row >= self.results.shape[0] or not self.results.size:
            output = self.results.shape[1] + self.sums.tolist().index(position)
        fixed, moving = self._reads[output]
        rows = self.moving[row] if output < self.results.shape[1] else self.moving
        return [*self.fixed[fixed].tolist(), *rows[..., moving].ravel().tolist()]

    @property
    def edges(self) -> tuple[Integers, Integers]:
        """From what to what a gradient flows: from each result to what its iteration reads, from each sum to all."""
        pairs, width = [], self.results.shape[1]
        for output, (fixed, moving) in enumerate(self._reads):
            read, of_each = self.fixed[fixed], self.moving[:, moving]
            if output < width:
                made = self.results[:, output]
                pairs += [
                    (made.repeat(len(fixed)), np.tile(read, len(made))),
                    (made.repeat(len(moving)), of_each.ravel()),
                ]
            else:
                read = np.append(read, of_each)
                pairs.append((self.sums[output - width].repeat(len(read)), read))
        users, used = zip(*pairs, strict=True)
        return np.concatenate(users), np.concatenate(used)

    @cached_property
    def _reads(self) -> list[list[list[int]]]:
        """For each output, which of both groups of inputs a gradient flows to."""
        found = []
        for output in self.trace.outputs:
            reached, stack = {output}, [output]
            while stack:
                fresh = set(self.trace.receivers(stack.pop())) - reached
                reached |= fresh
                stack += fresh
            found.append(
                [[n for n, position in enumerate(group) if position in reached] for group in self.trace.inputs]
            )
        return found


@dataclass(frozen=True)
class Called:
    """A call of a function of whole arrays, such as the solution of linear equations, for which nothing is written.

    Attributes:
        function: what is called.
        operands: for each of them where its elements come from, as those of Mapped do, in an array of its shape; or
            its numbers, where they are known.
        hub: where the call itself is: all results depend on it, and it on all operands.
        results: for each of them where its elements go, in an array of its shape.
        has_gradient: whether gradients flow through it.
    """

    function: ArrayFunction
    operands: tuple[Any, ...]
    hub: Integers
    results: tuple[Integers, ...]
    has_gradient: bool

    @property
    def made(self) -> list[int]:
        """Where the call and all of its results are, one after the other."""
        found: list[int] = np.concatenate([self.hub, *map(np.ravel, self.results)]).tolist()
        return found

    @property
    def is_given(self) -> list[bool]:
        """Which operands are computed, or given at each run."""
        return [operand.dtype != float for operand in self.operands]

    def read(self) -> Integers:
        """All that it reads."""
        return np.concatenate([operand.ravel() for operand in self.operands if operand.dtype != float])

    def numbered(self, numbers: Integers) -> Called:
        """The same with a number for each position."""
        operands = tuple(each if each.dtype == float else numbers[each] for each in self.operands)
        results = tuple(numbers[each] for each in self.results)
        return replace(self, operands=operands, hub=numbers[self.hub], results=results)

    @cached_property
    def _end(self) -> int:
        return self.begin + 1 + sum(each.size for each in self.results)

    @cached_property
    def begin(self) -> int:
        """Where the call itself is, before its results."""
        return int(self.hub[0])

    def __contains__(self, position: int) -> bool:
        return self.begin <= position < self._end

    def computed(self, numbers: Sequence[float]) -> list[float]:
        """All results, for the numbers that it reads."""
        parts = iter(np.split(np.array(numbers), np.cumsum([o.size for o in self.operands if o.dtype != float])[:-1]))
        arrays = [o if o.dtype == float else next(parts).reshape(o.shape) for o in self.operands]
        found: list[float] = np.concatenate([np.ravel(each) for each in self.function.forward(*arrays)]).tolist()
        return found

    @property
    def edges(self) -> tuple[Integers, Integers]:
        """From what to what a gradient flows: from the results to the call, and from there to the operands."""
        results = np.concatenate(list(map(np.ravel, self.results)))
        read = self.read() if self.has_gradient else self.hub[:0]
        return (
            np.concatenate([results, self.hub.repeat(len(read))]),
            np.concatenate([self.hub.repeat(len(results)), read]),
        )

    def operands_of(self, position: int) -> list[int]:
        """The positions that a gradient flows to from the call, or from a result."""
        hub = int(self.hub[0])
        if position != hub:
            return [hub]
        return self.read().tolist() if self.has_gradient else []


def _serves_all(arguments: Structure) -> bool:
    return True


class Trace(NamedTuple):
    """What a function did to its symbols, as plain data.

    Attributes:
        operations: in order, with inputs and literals.
        tables: the positions of the elements of each sequence that something is taken from.
        rows: the positions of the factors of each sequence that is multiplied with another one.
        inputs: the positions of the numbers that are given at each run, group by group.
        outputs: the positions of the numbers that are wanted: the results, and the answers to the questions.
        values: the Values that the function read from outside; they are the first inputs.
        checked: the positions of what stands for an operation that raises where it is not finite.
        result: the Structure of what the function returned; its leaves are symbols, and numbers that never change.
        tells_apart: whether the function asked which Value is which, by == or as a key.
        depends_on_recording: whether a transform in the function gave Values that under no_grad would be plain numbers.
        takes_numbers: whether the function takes gradients of what depends on Values as plain numbers.
        questions: what the function asked of numbers; see questions.py.
        maps: the functions that run in many iterations, and those of whole arrays. Their results are the last groups of
            the inputs.
        decisions: what is decided when the program runs. Their results are groups of inputs, too.
        needed: how many of the outputs, the last ones, are what these read.
        equals: what has found the equal ones among many of the operations already; None if nothing has.
        remarks: what explain() says of how derivatives are computed.
        serves: whether it is for the numbers of other arguments, too, of the same structure.
        repeated: the positions of what a map computes and checks, too.
    """

    operations: Entries
    tables: Sequence[tuple[int, ...]]
    rows: Sequence[tuple[int, ...]]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    values: tuple[Value, ...] = ()
    checked: tuple[int, ...] = ()
    result: Any = None
    tells_apart: bool = False
    depends_on_recording: bool = False
    takes_numbers: bool = False
    questions: tuple[Any, ...] = ()
    maps: tuple[Mapped | Called, ...] = ()
    decisions: tuple[Decided, ...] = ()
    needed: int = 0
    equals: EqualsInOrder | None = None
    remarks: tuple[str, ...] = ()
    serves: Callable[[Structure], bool] = _serves_all
    repeated: tuple[range, ...] = ()

    def made_of(self, others: Iterable[Trace]) -> Trace:
        """The same, written from other traces of the function: what holds for one of them holds for it."""
        names = ("tells_apart", "depends_on_recording", "takes_numbers")
        traces = (self, *others)
        flags: dict[str, Any] = {name: any(getattr(each, name) for each in traces) for name in names}
        return self._replace(**flags)

    def reached(self, given: Sequence[bool]) -> list[bool]:
        """From which outputs a gradient flows to some of the inputs; without those that decisions read.

        Args:
            given: for each input, whether it is one of them; the results of decisions may be left out.
        """
        end, users = len(self.outputs) - self.needed, self._users()
        positions = np.array([*chain(*self.inputs), *self.outputs[end:]], dtype=np.int64)
        marks = users.no_marks()
        users.mark(positions[np.flatnonzero(given)], marks)
        for each in self.decisions:  # in order
            flows = each.reached(lambda number: bool(marks[positions[number]]))
            users.mark(positions[np.array(each.made)[np.flatnonzero(flows)]], marks)
        found: list[bool] = marks[list(self.outputs[:end])].tolist()
        return found

    def _users(self) -> Edges:
        """The edges that gradients take, from operands to what is computed from them."""
        entries, size = self.operations, len(self.operations)
        kinds = np.fromiter(map(id, entries.primitives), np.int64, size)
        columns = np.array(entries.first, dtype=np.int64), np.array(entries.second, dtype=np.int64)
        users, used = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for primitive in set(entries.primitives) - {INPUT, LITERAL}:
            at = np.flatnonzero(kinds == id(primitive))
            operands = [column[at] for column in columns]
            if primitive is TAKE:
                operands = [size + len(self.rows) + operands[1]]
            elif primitive is SUM_OF_PRODUCTS:
                further = [entries.further[position][0] for position in at.tolist()]
                operands = [operands[0], size + operands[1], size + np.array(further)]
            elif len(primitive.derivatives) in (1, 2):
                rules = zip(operands, primitive.derivatives, strict=False)
                operands = [column for column, rule in rules if rule is not None]
            else:
                every = [self.receivers(position) for position in at.tolist()]
                at, operands = np.repeat(at, list(map(len, every))), [np.array([*chain(*every)], dtype=np.int64)]
            users += [at] * len(operands)
            used += operands
        for number, elements in enumerate([*self.rows, *self.tables], size):
            users.append(np.full(len(elements), number))
            used.append(np.array(elements, dtype=np.int64))
        return Edges(size, used, users)

    def receivers(self, position: int) -> Sequence[int]:
        """The positions that the operation at a position passes gradients on to."""
        operands, rules = self.operands(position), self.operations.primitives[position].derivatives
        if None not in rules:
            return operands
        return [operand for operand, rule in zip(operands, rules, strict=True) if rule is not None]

    def operands(self, position: int) -> Sequence[int]:
        """The positions that a gradient flows to from the operation at a position."""
        entries = self.operations
        primitive = entries.primitives[position]
        if primitive is LITERAL:
            return ()
        if primitive is INPUT:
            made = made_at(self, position)
            return () if made is None else made.operands_of(position)
        first, second = entries.first[position], entries.second[position]
        if primitive is TAKE:
            return self.tables[second]
        if primitive is SUM_OF_PRODUCTS:
            return first, *self.rows[second], *self.rows[entries.further[position][0]]
        if second != NO_POSITION and position not in entries.further:  # nearly all operations have two
            return first, second
        return entries.operands(position)

    def read(self, position: int) -> Sequence[int]:
        """All positions that the operation at a position reads: of what takes an element, the index, too."""
        operands = self.operands(position)
        if self.operations.primitives[position] is TAKE:
            return self.operations.first[position], *operands
        return operands


_begin_of = attrgetter("begin")


def made_at(written: Any, position: int) -> Any:
    """What has a result at a position of a trace or a tape: a call, a function of iterations, or a decision."""
    for made in (written.maps, written.decisions):  # both in order; a loop of calls has thousands
        before = bisect_right(made, position, key=_begin_of)
        if before and position in made[before - 1]:
            return made[before - 1]
    return None


class EqualsInOrder:
    """Finds equal entries of a trace that grows: what was gone through once is not again."""

    def __len__(self) -> int:
        """How many entries were gone through."""
        return len(self._positions)

    def __init__(self) -> None:
        self._positions: list[int] = []
        self._known: dict[Any, int] = {}
        self._codes: defaultdict[Primitive, int] = defaultdict(count().__next__)
        self._leaves = {self._codes[INPUT], self._codes[LITERAL]}
        self._rows, self._tables = _Numbering(self._positions), _Numbering(self._positions)

    def of(self, trace: Trace) -> list[int]:
        """For each entry, the first that is equal to it, by its position; the list grows with the trace."""
        entries, positions, leaves, take = trace.operations, self._positions, self._leaves, self._codes[TAKE]
        done = len(positions)
        codes = map(self._codes.__getitem__, entries.primitives[done:])
        first, add, further = self._known.setdefault, positions.append, entries.further
        key: Any  # an integer where that will do: it is half as large as a tuple, and found in half the time
        for position, code, x, y in zip(count(done), codes, entries.first[done:], entries.second[done:], strict=False):
            if code in leaves:  # a tape has each of them once
                add(position)
                continue
            if y == NO_POSITION:
                key = (code,) if x == NO_POSITION else ~(code << 32 | positions[x])
            elif code == take:
                key = code, positions[x], self._tables.first(trace.tables, y)
            elif position not in further:
                key = (code << 32 | positions[x]) << 32 | positions[y]
            elif entries.primitives[position] is SUM_OF_PRODUCTS:
                rows = [self._rows.first(trace.rows, number) for number in (y, *further[position])]
                key = code, positions[x], *rows
            else:
                key = code, *[positions[operand] for operand in entries.operands(position)]
            add(first(key, position))
        return positions


class _Numbering:
    """Finds the number of the first sequence that is equal to one; its elements have their places by then."""

    def __init__(self, positions: Sequence[int]) -> None:
        self._positions = positions
        self._found: dict[int, int] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def first(self, sequences: Sequence[tuple[int, ...]], number: int) -> int:
        """The number, for one of these sequences."""
        if number not in self._found:
            elements = tuple([self._positions[element] for element in sequences[number]])
            self._found[number] = self._known.setdefault(elements, number)
        return self._found[number]
