"""Reroll: group nodes that are alike into kernels over arrays.

Two nodes are alike when three things hold. They stand on the same level, which is the number of steps from
the inputs. They are made by the same primitive, or have equally many terms. And their operands come from the
same groups, position by position. Each group lies in the buffer without gaps, so the operands of its nodes mostly
stand there at regular distances, and a loop over them is a loop over an array. In

    y[o] = w[o][0] * x[0] + w[o][1] * x[1]        for three o

all y are on one level, have two terms, and take w and x from the inputs. Term t of y[o] has its first
factor at ``base of w + 2 * o + t`` and its second at ``base of x + t``: a matrix times a vector.

In an irregular program hardly two nodes are alike. So after many kernels, those that are like few others are found all
at once (see alone.py), and come between the levels as single numbers, not as a kernel each.

Where the levels repeat (see repeats.py and iteration_graph.py), the kernels of one iteration become a loop.
"""

from __future__ import annotations

import os
from itertools import count as numbers
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.ir.graph import ONE
from micrograd.compiler.ir.index_maps import Positions, access_of_one, accesses, are_even, step, stretches
from micrograd.compiler.ir.layout import Layout
from micrograd.compiler.ir.program import IN_ORDER, Access, Loop, Map, Program, Reduction, Segment, Singles, Take
from micrograd.compiler.passes.alike import RowsByLevel, alike_rows
from micrograd.compiler.passes.alone import Alone
from micrograd.compiler.passes.checks import to_look_at
from micrograd.compiler.passes.iteration_graph import iteration_graph_of
from micrograd.compiler.passes.levels import with_late
from micrograd.compiler.passes.normalise import are_in_loops
from micrograd.compiler.passes.placing import CONSTANTS
from micrograd.compiler.passes.repeats import Stretches, repeats
from micrograd.compiler.passes.sums import Owners, Sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.graph import Applications, Graph
    from micrograd.compiler.ir.vectors import Dots
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.passes.alone import Made
    from micrograd.compiler.passes.iteration_graph import IterationGraph
    from micrograd.compiler.passes.repeats import Repeat

_IN_TABLE = CONSTANTS - 1  # the group of what a loop reads from its table
_FEW = IN_ORDER - 1  # up to so many runs of numbers are checked by a kernel each: with a result they stay a short sum
# Kernels, after which those of nodes that are like no others are made all at once. If they never are, the irregular
# program of the suite takes 0.41 s in place of 0.15 at the first call, and the Gaussian process 1.7 s in place of 1.25.
_MANY = 2048


def reroll(graph: Graph, start: int, calls: Sequence[tuple[Integers, Integers]] = ()) -> Program:
    """Kernels for a graph.

    Args:
        graph: in normal form, and what is whole is of one piece; see in_pieces.
        start: the position from which on all but the first group of inputs lies. Programs that share a buffer have
            the first group in common, and begin each where the one before it ends.
        calls: of each call of a function outside of the program, in order, the nodes that it reads, and the inputs that
            it gives.

    Returns:
        The program. The inputs lie in its buffer in order, and the gradients one after the other.
    """
    with_loops = os.environ.get("MICROGRAD_LOOPS") != "0"
    rolling, gradients = _rolled(graph, start, calls, with_loops)
    if rolling.may_be_loops and not any(type(each) is Loop for each in rolling.kernels):
        graph = graph.expanded()
        rolling, gradients = _rolled(graph, start, calls, with_loops)
    given = [*graph.inputs, graph.seeds] if len(graph.seeds) > 1 else graph.inputs  # of a single output, it is 1
    outputs, count = rolling.outputs(graph.outputs), len(graph.outputs) - graph.answers - graph.read
    outputs = np.append(rolling.with_checks(outputs[:count], to_look_at(graph)), outputs[count:])
    return Program(
        size=rolling.layout.end,
        kernels=tuple(rolling.kernels),
        inputs=rolling.position[np.concatenate(given)],
        outputs=outputs,
        answers=graph.answers,
        calls=tuple(rolling.called),
        seeds=rolling.position[graph.seeds],
        gradients=gradients,
        constants=tuple(rolling.layout.constants),
        arrays=np.array(rolling.layout.arrays).reshape(-1, 2),
    )


def _rolled(
    graph: Graph, start: int, calls: Sequence[tuple[Integers, Integers]], with_loops: bool
) -> tuple[_Rolling, slice]:
    """What is rolled of a graph, and where the gradients are."""
    rolling = _Rolling(graph, Layout(), numbers())
    rolling.calls = calls
    for nodes in (*graph.inputs, graph.seeds):
        rolling.lay_out(nodes)
        rolling.layout.end = max(rolling.layout.end, start)
    gradients = rolling.reserve(graph.gradients)
    rolling.roll(with_loops, with_singles=True)
    return rolling, gradients


class _ByLevel(NamedTuple):
    """What is on each level of a graph.

    Attributes:
        owners: the nodes with terms one by one.
        sums: which of them are on each level.
        whole: the graph's whole dot products, and which of their rows are on each level.
        applications: the graph's applications, and which of their rows are on each level.
        is_busy: on which levels there is anything.
    """

    owners: Owners
    sums: RowsByLevel
    whole: list[tuple[Dots, RowsByLevel]]
    applications: list[tuple[Applications, RowsByLevel]]
    is_busy: list[bool]


class _Rolling(Sums):
    """One reroll as far as it has come.

    Attributes:
        levels: of the nodes.
        calls: of functions outside of the program.
        last_levels: for each call, the last level before it.
        called: how many kernels come before each call, as far as that is known.
        by_level: what is on each level and not alone.
        may_be_loops: whether dot products that are whole may be parts of loops.
        alone: the nodes that are, once they have been looked for.
    """

    levels: Integers
    calls: Sequence[tuple[Integers, Integers]] = ()
    last_levels: Integers
    called: list[int]
    by_level: _ByLevel
    alone: Alone | None = None
    may_be_loops = False

    def roll(self, with_loops: bool, with_singles: bool = False) -> None:
        """Roll all nodes, level after level, and what repeats as a loop.

        Args:
            with_loops: whether there may be loops.
            with_singles: whether there may be single numbers.
        """
        self.has_loops = with_loops
        given = self.graph.levels(self.calls)
        latest = [int(given[np.concatenate(call)].max(initial=0)) for call in self.calls]
        self.last_levels, self.called = np.maximum.accumulate(np.array(latest, dtype=np.int64)), []
        levels = given * self.graph.is_made()
        self.may_be_loops = with_loops and bool(self.graph.whole) and are_in_loops(self.graph, given)
        stretches: Stretches | None = None
        if with_loops and not len(self.calls) and (not self.graph.whole or self.may_be_loops):
            levels, stretches = with_late(self.graph, levels)
        elif with_loops:
            stretches = Stretches.of(self.graph, levels)
        self.levels = levels
        self.by_level = self._by_level(self.owners(), self.graph.applications)
        done = 0
        for repeat in repeats(self.graph, levels, stretches) if stretches is not None else ():
            self._roll_levels(done, repeat.first, with_singles)
            done = repeat.first
            iteration = iteration_graph_of(self.graph, repeat, self.position, self.group, self.reserved != 0)
            if iteration is not None and not self._has_calls(iteration.repeat):
                self._roll_levels(done, iteration.repeat.first, with_singles)
                self._loop(iteration)
                done = iteration.repeat.end
        self._roll_levels(done, int(levels.max(initial=-1)) + 1, with_singles)
        self.called += [len(self.kernels)] * (len(self.calls) - len(self.called))

    def _has_calls(self, repeat: Repeat) -> bool:
        """Whether there are calls between its levels."""
        return bool(((self.last_levels >= repeat.first) & (self.last_levels < repeat.end - 1)).any())

    def _by_level(self, owners: Owners, applications: Sequence[Applications]) -> _ByLevel:
        levels, whole = self.levels, self.graph.whole
        is_busy = np.zeros(int(levels.max(initial=-1)) + 1, dtype=bool)
        for nodes in (owners.nodes, *(part.owner for part in whole), *(each.nodes for each in applications)):
            is_busy[levels[nodes]] = True
        return _ByLevel(
            owners,
            RowsByLevel(levels[owners.nodes], owners.keys),
            [(part, RowsByLevel(levels[part.owner])) for part in whole],
            [(application, RowsByLevel(levels[application.nodes])) for application in applications],
            is_busy.tolist(),
        )

    def _roll_levels(self, begin: int, end: int, with_singles: bool) -> None:
        done = begin
        for level in range(begin, end):
            if with_singles and self.alone is None and len(self.kernels) >= _MANY:
                self._part_the_alone(level)
            if (count := np.searchsorted(self.last_levels, level)) > len(self.called):
                self._singly(done, level)
                done = level
                self.called += [len(self.kernels)] * (count - len(self.called))
            if self.by_level.is_busy[level]:
                self._singly(done, level + 1)
                self._roll_level(level)
                done = level + 1
        self._singly(done, end)

    def _roll_level(self, level: int) -> None:
        """Roll the nodes of a level that are not alone."""
        by_level = self.by_level
        sums = by_level.sums.at(level)
        whole = [part.chosen(rows) for part, of_part in by_level.whole for rows in of_part.at(level)]
        if sums or whole:
            self.reductions(by_level.owners, sums, whole)
        for application, of_application in by_level.applications:
            for rows in of_application.at(level):
                (self.take if application.primitive is TAKE else self.map)(application.chosen(rows))

    def _part_the_alone(self, level: int) -> None:
        """Look for the nodes that are alone, from a level on."""
        graph, owners = self.graph, self.by_level.owners
        self.alone = Alone(graph, owners, self.levels, level, self.group, self.reserved)
        is_other = np.ones(graph.size, dtype=bool)
        is_other[self.alone.nodes] = False
        new = np.fromiter(islice(self.groups, int(self.alone.likes.max(initial=-1)) + 1), np.int64)
        self.group[self.alone.nodes] = new[self.alone.likes]
        left = is_other[owners.nodes] & (self.levels[owners.nodes] >= level)
        applications = [application.chosen(is_other[application.nodes]) for application in graph.applications]
        self.by_level = self._by_level(Owners._make(array[left] for array in owners), applications)

    def _singly(self, begin: int, end: int) -> None:
        """Roll the nodes of some levels that are alone."""
        if self.alone is None:
            return
        made = self.alone.between(begin, end)
        if not len(made.nodes):
            return
        free = made.nodes[self.reserved[made.nodes] == 0]
        self.position[free] = self.layout.stretch(len(free)) + np.arange(len(free))
        numbers, coefficients = np.unique(made.coefficients.view(np.int64), return_inverse=True)
        arrays = (self.position[made.nodes], made.functions, made.counts, *self._positions_of(made), coefficients)
        narrow: Any = (array.astype(np.int32) for array in arrays)  # of millions, it is what takes the memory
        targets, functions, counts, first, second, which = narrow
        of_all = numbers.view(np.float64), self.alone.primitives
        self.kernels.append(Singles(targets, functions, counts, first, second, which, *of_all))

    def _positions_of(self, made: Made) -> Integers:
        """Where the factors lie; -1 for ONE."""
        factors = np.stack([made.first, made.second])
        positions = np.where(factors == ONE, -1, self.position[factors])
        constants = (factors != ONE) & self.graph.is_constant[factors]
        if constants.any():
            numbers, which = np.unique(self.graph.constants[factors[constants]].view(np.int64), return_inverse=True)
            positions[constants] = self.layout.constant(numbers.view(np.float64)) + which
        return positions

    def _loop(self, iteration: IterationGraph) -> None:
        """Roll a loop. Its first iteration is rolled twice: before, to see which groups its nodes make."""
        repeat, own = iteration.repeat, iteration.repeat.nodes.shape[1]
        reserved = np.where(self.reserved[repeat.nodes[0]] != 0, 1, 0)
        if reserved.any():
            moves = self.position[repeat.nodes[1]] - self.position[repeat.nodes[0]]
            reserved = np.where(reserved, 1 + np.unique(moves, return_inverse=True)[1], 0)
        table = self._table(iteration.table)
        trial = self._of_iteration(iteration, Layout(), *table)
        trial.reserved[:own] = reserved
        trial.position[:own] = np.where(reserved, self.position[repeat.nodes[0]], 0)
        earlier = np.flatnonzero(iteration.owners >= 0)
        trial.group[own + earlier] = self.new_groups(repeat.alike[iteration.owners[earlier]], iteration.lags[earlier])
        trial.roll(with_loops=False)

        offsets, iteration_step = trial.laid_out(own)
        iterations_before = int(iteration.lags.max(initial=0))
        start = (
            self.layout.stretch_in_lines(iteration_step * (iterations_before + repeat.iterations))
            + iterations_before * iteration_step
        )
        at_iteration = start + offsets + iteration_step * np.arange(repeat.iterations)[:, None]
        self.position[repeat.nodes] = np.where(reserved, self.position[repeat.nodes], at_iteration)
        self.copy(
            iteration.given, start + offsets[iteration.given_owners] + iteration_step * iteration.given_iterations
        )

        rolling = self._of_iteration(iteration, self.layout, *table)
        rolling.position[:own] = self.position[repeat.nodes[0]]
        rolling.iteration_step[:own] = self.position[repeat.nodes[1]] - self.position[repeat.nodes[0]]
        rolling.reserved[:own] = 1 + reserved
        owners = iteration.owners[earlier]
        rolling.iteration_step[own + earlier] = rolling.iteration_step[owners]
        rolling.position[own + earlier] = (
            rolling.position[owners] - iteration.lags[earlier] * rolling.iteration_step[owners]
        )
        rolling.group[own + earlier] = trial.group[owners]
        rolling.roll(with_loops=False)
        kernels = cast("list[Reduction | Map]", rolling.kernels)  # no take repeats, and there is no loop inside
        self.kernels.append(Loop(repeat.iterations, tuple(kernels)))
        self.group[repeat.nodes] = rolling.group[:own]

    def _table(self, nodes: Integers) -> tuple[Integers, Integers]:
        """Put nodes into a table, a row an iteration: where each column starts, and how far apart the rows are."""
        count = int(self.graph.is_constant[nodes].all(axis=0).sum())  # constants come first
        constants, others = np.split(nodes, [count], axis=1)
        start = self.layout.constant(self.graph.constants[constants]) if constants.size else 0
        positions = self.layout.stretch(others.size) + np.arange(others.size).reshape(others.shape)
        self.copy(others.ravel(), positions.ravel())
        starts = np.concatenate([start + np.arange(count), positions[0], [0]])  # the last is of what is in no table
        return starts, np.repeat([count, others.shape[1], 0], [count, others.shape[1], 1])

    def _of_iteration(
        self, iteration: IterationGraph, layout: Layout, starts: Integers, iteration_steps: Integers
    ) -> _Rolling:
        """The rolling of a loop's first iteration; what it reads of others has its place and its group."""
        rolling = _Rolling(iteration.graph, layout, self.groups)
        in_table = iteration.columns >= 0
        position = np.where(in_table, starts[iteration.columns], self.position[iteration.sources])
        iteration_step = np.where(in_table, iteration_steps[iteration.columns], iteration.iteration_steps)
        group = self.new_groups(np.where(in_table, _IN_TABLE, self.group[iteration.sources]), iteration_step)
        own = iteration.repeat.nodes.shape[1]
        is_constant = iteration.graph.is_constant[own:]
        rolling.position[own:] = position
        rolling.iteration_step[own:] = iteration_step
        rolling.group[own:-1] = np.where(is_constant, CONSTANTS, group)
        return rolling

    def with_checks(self, outputs: Integers, nodes: Integers) -> Integers:
        """Where the outputs are that are NaN if one of these nodes is not finite."""
        if not len(nodes) or not len(outputs):
            return outputs
        positions = np.sort(self.position[nodes])
        runs = np.split(positions, np.flatnonzero(np.diff(positions) != 1) + 1)
        if len(runs) > _FEW:
            runs = [positions]
        start = self.layout.stretch(len(runs))
        for number, run in enumerate(runs):
            *_, (access,) = accesses(Positions.of(run[:1, None]), [Positions.of(run[None, :])])
            self.kernels.append(Reduction.zero_if_finite(start + number, (len(run), access)))
        made = self.layout.stretch(len(outputs))
        apart = Access(int(outputs[0]), column_step=step(outputs))
        found = Segment(1.0, 1, apart if are_even(outputs) else Access(table=outputs[None, :, None]), None)
        checks = Access(start, term_step=1)
        zeros = Segment(-1.0, len(runs), checks, checks)  # -0 if all are 0 or -0, and so a result of -0 stays
        self.kernels.append(Reduction(1, len(outputs), Access(made, column_step=1), (found, zeros)))
        return np.arange(made, made + len(outputs))

    def map(self, application: Applications) -> None:
        for _, alike in alike_rows(self.group[application.operands]):
            nodes, operands = application.nodes[alike], application.operands[alike]
            self.lay_out(nodes)
            if len(nodes) == 1:
                found = [access_of_one(*self.operand_of_one(column)) for column in operands.T]
                self.kernels.append(Map(application.primitive, 1, 1, self.target_of_one(int(nodes[0])), tuple(found)))
                continue
            whole, columns = self.target(nodes), [self.operand(column[:, None]) for column in operands.T]
            for part in stretches([whole, *columns]):
                rows, width, target, found = accesses(whole.rows(part), [column.rows(part) for column in columns])
                self.kernels.append(Map(application.primitive, rows, width, target, tuple(found)))

    def take(self, application: Applications) -> None:
        """Roll nodes that take an element of a table."""
        assert application.tables is not None
        tables = [self.graph.tables[table] for table in application.tables]
        heads = np.array([[len(table), self.group[table[0]]] for table in tables])
        for _, alike in alike_rows(heads, self.group[application.operands]):
            nodes, indices = application.nodes[alike], application.operands[alike]
            elements = self.positions(np.stack([tables[row] for row in alike]))
            self.lay_out(nodes)
            rows, columns, target, (index, table) = accesses(
                self.target(nodes), [self.operand(indices), Positions.of(elements)]
            )
            self.kernels.append(Take(rows, columns, elements.shape[1], target, index, table))
