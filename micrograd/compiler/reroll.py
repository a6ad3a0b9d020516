"""Reroll: group nodes that are alike into kernels over arrays.

Two nodes are alike when three things hold. They stand on the same level, which is the number of steps from
the inputs. They are made by the same primitive, or have equally many terms. And their operands come from the
same groups, place by place. Each group lies in the buffer without gaps, so the operands of its nodes mostly
stand there at regular distances, and a loop over them is a loop over an array. In

    y[o] = w[o][0] * x[0] + w[o][1] * x[1]        for three o

all y are on one level, have two terms, and take w and x from the inputs. Term t of y[o] has its first
factor at ``base of w + 2 * o + t`` and its second at ``base of x + t``: a matrix times a vector.

Where the levels repeat (see repeats.py and turn_graph.py), the kernels of one turn become a loop.
"""

from __future__ import annotations

import math
import os
import sys
from collections import defaultdict
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from micrograd.compiler.checks import to_look_at
from micrograd.compiler.graph import MAXIMUM
from micrograd.compiler.layout import Layout
from micrograd.compiler.program import IN_ORDER, Access, Kernel, Loop, Map, Program, Reduction, Segment, Take
from micrograd.compiler.repeats import repeats
from micrograd.compiler.trace import TAKE
from micrograd.compiler.turn_graph import turn_graph_of
from micrograd.compiler.walks import Edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from micrograd.compiler.graph import Applications, Graph
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.turn_graph import TurnGraph

# The groups of what is in no group: of ONE, the factor that is none, and of constants. They come after all others.
_NOTHING = sys.maxsize
_CONSTANTS = _NOTHING - 1
_IN_TABLE = _NOTHING - 2  # what a loop reads from its table
_FEW = 16  # up to so many runs of numbers are checked by a kernel each


def reroll(graph: Graph, start: int) -> Program:
    """Kernels for a graph.

    Args:
        graph: in normal form.
        start: the place from which on all but the first group of inputs lies. Programs that share a buffer have
            the first group in common, and begin each where the one before it ends.

    Returns:
        The program. The inputs lie in its buffer in order, and the gradients one after the other.
    """
    rolling = _Rolling(graph, Layout(), count())
    for nodes in (*graph.inputs, graph.seeds):
        rolling.place(nodes)
        rolling.layout.end = max(rolling.layout.end, start)
    gradients = rolling.reserve(graph.gradients)
    rolling.roll(with_loops=os.environ.get("MICROGRAD_LOOPS") != "0")
    given = [*graph.inputs, graph.seeds] if len(graph.seeds) > 1 else graph.inputs  # of a single output, it is 1
    outputs = rolling.with_checks(rolling.outputs(graph.outputs), to_look_at(graph))
    return Program(
        size=rolling.layout.end,
        kernels=tuple(rolling.kernels),
        inputs=rolling.position[np.concatenate(given)],
        outputs=outputs,
        seeds=rolling.position[graph.seeds],
        gradients=gradients,
        constants=tuple(rolling.layout.constants),
    )


def _alike(*signatures: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Each different row of the matrices, laid side by side, and the numbers of the rows that are the same."""
    rows = np.concatenate(signatures, axis=1)
    order = np.lexsort(rows.T)
    changes = np.flatnonzero((np.diff(rows[order], axis=0) != 0).any(axis=1)) + 1
    for where in np.split(order, changes) if len(order) else ():
        yield rows[where[0]], where


_Places: TypeAlias = "tuple[Integers, int]"  # positions, and how far they move at each turn of the loop


def _run(rolls: dict[int, list[Callable[[], None]]], begin: int, end: int) -> None:
    """Roll the nodes of some levels."""
    for level in range(begin, end):
        for roll in rolls.get(level, ()):
            roll()


class _Alike(NamedTuple):
    """Nodes whose terms are alike: their factors, a row for each node; and each term's groups and coefficient."""

    nodes: Integers
    first: Integers
    second: Integers
    signature: Integers


class _Rolling:
    """One reroll as far as it has come: where each node lies, in which group it is, and the kernels.

    Of the body of a loop, what is said of a node is so at the first turn, and ``turn_step`` is how far it then moves
    at each turn. The nodes of a group move equally far.
    """

    def __init__(self, graph: Graph, layout: Layout, groups: Iterator[int]) -> None:
        self.graph, self.layout, self.groups = graph, layout, groups
        self.position = np.zeros(graph.size, dtype=np.int64)
        self.reserved = np.zeros(graph.size, dtype=np.int64)  # not 0 for what has a position before it is rolled
        self.group = np.append(np.full(graph.size, _CONSTANTS), _NOTHING)  # the last entry is that of ONE
        self.turn_step = np.zeros(graph.size, dtype=np.int64)
        self.placed: list[Integers] = []  # groups, in the order in which they got their places
        self.kernels: list[Kernel | Loop] = []

    def roll(self, with_loops: bool) -> None:
        """Roll all nodes, level after level, and what repeats as a loop."""
        users, used = self.graph.edges()
        levels = Edges(self.graph.size, used, users).levels()
        rolls = self._by_level(levels)
        done = 0
        for repeat in repeats(self.graph, levels) if with_loops else ():
            _run(rolls, done, repeat.first)
            done = repeat.first
            turn = turn_graph_of(self.graph, repeat, self.position, self.reserved != 0)
            if turn is not None:
                _run(rolls, done, turn.repeat.first)
                self._loop(turn)
                done = turn.repeat.end
        _run(rolls, done, max(rolls, default=0) + 1)

    def _by_level(self, levels: Integers) -> dict[int, list[Callable[[], None]]]:
        """The calls that roll the nodes of each level."""
        graph = self.graph
        by_level: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)
        owners, starts, counts = np.unique(graph.terms.owner, return_index=True, return_counts=True)
        for (level,), rows in _alike(levels[owners][:, None]):
            by_level[level].append(partial(self.reductions, owners[rows], starts[rows], counts[rows]))
        for application in graph.applications:
            roll = self.take if application.primitive is TAKE else self.map
            for (level,), rows in _alike(levels[application.nodes][:, None]):
                by_level[level].append(partial(roll, application.chosen(rows)))
        return by_level

    def _loop(self, turn: TurnGraph) -> None:
        """Roll a loop. Its first turn is rolled twice: before, to see which groups its nodes make."""
        repeat, own = turn.repeat, turn.repeat.nodes.shape[1]
        reserved = np.where(self.reserved[repeat.nodes[0]] != 0, 1, 0)
        if reserved.any():
            moves = self.position[repeat.nodes[1]] - self.position[repeat.nodes[0]]
            reserved = np.where(reserved, 1 + np.unique(moves, return_inverse=True)[1], 0)
        table = self._table(turn.table)
        trial = self._of_turn(turn, Layout(), *table)
        trial.reserved[:own] = reserved
        trial.position[:own] = np.where(reserved, self.position[repeat.nodes[0]], 0)
        earlier = np.flatnonzero(turn.owners >= 0)
        trial.group[own + earlier] = self._new_groups(repeat.alike[turn.owners[earlier]], turn.lags[earlier])
        trial.roll(with_loops=False)

        offsets, turn_step = trial.laid_out(own)
        turns_before = int(turn.lags.max(initial=0))
        start = self.layout.stretch_in_lines(turn_step * (turns_before + repeat.turns)) + turns_before * turn_step
        at_turn = start + offsets + turn_step * np.arange(repeat.turns)[:, None]
        self.position[repeat.nodes] = np.where(reserved, self.position[repeat.nodes], at_turn)
        self._copy(turn.given, start + offsets[turn.given_owners] + turn_step * turn.given_turns)

        rolling = self._of_turn(turn, self.layout, *table)
        rolling.position[:own] = self.position[repeat.nodes[0]]
        rolling.turn_step[:own] = self.position[repeat.nodes[1]] - self.position[repeat.nodes[0]]
        rolling.reserved[:own] = 1 + reserved
        owners = turn.owners[earlier]
        rolling.turn_step[own + earlier] = rolling.turn_step[owners]
        rolling.position[own + earlier] = rolling.position[owners] - turn.lags[earlier] * rolling.turn_step[owners]
        rolling.group[own + earlier] = trial.group[owners]
        rolling.roll(with_loops=False)
        kernels = cast("list[Reduction | Map]", rolling.kernels)  # no take repeats, and there is no loop inside
        self.kernels.append(Loop(repeat.turns, tuple(kernels)))
        self.group[repeat.nodes] = rolling.group[:own]

    def laid_out(self, count: int) -> tuple[Integers, int]:
        """Where each of the first so many nodes lies among those of a turn, and how many numbers a turn takes."""
        layout, offsets = Layout(), np.zeros(count, dtype=np.int64)
        for nodes in self.placed:
            offsets[nodes] = layout.stretch_in_lines(len(nodes)) + np.arange(len(nodes))
        return offsets, layout.whole_lines()

    def _table(self, nodes: Integers) -> tuple[Integers, Integers]:
        """Put nodes into a table with a row for each turn: where each column starts, and how far apart the rows are."""
        count = int(self.graph.is_constant[nodes].all(axis=0).sum())  # constants come first
        constants, others = np.split(nodes, [count], axis=1)
        start = self.layout.constant(self.graph.constants[constants]) if constants.size else 0
        places = self.layout.stretch(others.size) + np.arange(others.size).reshape(others.shape)
        self._copy(others.ravel(), places.ravel())
        starts = np.concatenate([start + np.arange(count), places[0], [0]])  # the last is of what is in no table
        return starts, np.repeat([count, others.shape[1], 0], [count, others.shape[1], 1])

    def _of_turn(self, turn: TurnGraph, layout: Layout, starts: Integers, turn_steps: Integers) -> _Rolling:
        """The rolling of a loop's first turn; what it reads of others has its place and its group."""
        rolling = _Rolling(turn.graph, layout, self.groups)
        in_table = turn.columns >= 0
        position = np.where(in_table, starts[turn.columns], self.position[turn.sources])
        turn_step = np.where(in_table, turn_steps[turn.columns], turn.turn_steps)
        group = self._new_groups(np.where(in_table, _IN_TABLE, self.group[turn.sources]), turn_step)
        own = turn.repeat.nodes.shape[1]
        is_constant = turn.graph.is_constant[own:]
        rolling.position[own:] = position
        rolling.turn_step[own:] = turn_step
        rolling.group[own:-1] = np.where(is_constant, _CONSTANTS, group)
        return rolling

    def _new_groups(self, *described: Integers) -> Integers:
        """A group for each of some nodes; it is the same one for those that are described by the same numbers."""
        _, which = np.unique(np.stack(described), axis=1, return_inverse=True)
        groups = np.array([next(self.groups) for _ in range(int(which.max(initial=-1)) + 1)], dtype=np.int64)
        return groups[which.ravel()]

    def _copy(self, nodes: Integers, places: Integers) -> None:
        """Copy the numbers of nodes to some places."""
        if len(nodes):
            operand = self._positions(nodes[:, None]), 0
            rows, columns, target, (access,) = _accesses((places, 0), [operand])
            self.kernels.append(Reduction(rows, columns, target, (Segment(1.0, 1, access, None),)))

    def reserve(self, nodes: Integers) -> slice:
        """Give nodes a place each, side by side, before they are rolled."""
        start = self.layout.stretch(len(nodes))
        self.position[nodes] = np.arange(start, start + len(nodes))
        self.reserved[nodes] = 1
        return slice(start, start + len(nodes))

    def place(self, nodes: Integers) -> None:
        """Give nodes a place each, side by side, unless one is reserved for them; and make them a group."""
        if not self.reserved[nodes].any():
            self.placed.append(nodes)
            start = self.layout.stretch_in_lines(len(nodes))
            self.position[nodes] = np.arange(start, start + len(nodes))
        self.group[nodes] = next(self.groups)

    def outputs(self, nodes: Integers) -> Integers:
        """Where nodes are, constants among them too."""
        return np.array([self._positions(node.reshape(1, 1)).item() for node in nodes], dtype=np.int64)

    def with_checks(self, outputs: Integers, nodes: Integers) -> Integers:
        """Where the outputs are that are NaN if one of these nodes is not finite."""
        if not len(nodes) or not len(outputs):
            return outputs
        places = np.sort(self.position[nodes])
        runs = np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)
        if len(runs) > _FEW:
            runs = [places]
        start = self.layout.stretch(len(runs))
        for number, run in enumerate(runs):
            *_, (access,) = _accesses((run[:1], 0), [(run[None, :], 0)])
            zeros = Segment(0.0, len(run), access, None)  # 0 times what is not finite is NaN
            self.kernels.append(Reduction(1, 1, Access(start + number), (zeros,)))
        made = self.layout.stretch(len(outputs))
        apart = Access(int(outputs[0]), column_step=_step(outputs))
        is_even = not np.diff(outputs, n=2).any()
        found = Segment(1.0, 1, apart if is_even else Access(table=outputs[None, :, None]), None)
        zeros = Segment(1.0, len(runs), Access(start, term_step=1), None)
        self.kernels.append(Reduction(1, len(outputs), Access(made, column_step=1), (found, zeros)))
        return np.arange(made, made + len(outputs))

    def reductions(self, nodes: Integers, starts: Integers, counts: Integers) -> None:
        """Roll the sums and maxima of a level, given where their terms start and how many they have.

        Sums over the same groups become one group even if they differ in length, as those of causal
        attention do. What uses them then finds them side by side.
        """
        together: defaultdict[tuple[Any, ...], list[_Alike]] = defaultdict(list)
        kinds = self.graph.kind[nodes]
        # Few terms stay in the order of the program. Of two, the order does not matter.
        in_order = (kinds != MAXIMUM) & ~self.graph.unordered[nodes] & (counts > 2) & (counts <= IN_ORDER)
        keys = np.stack([kinds, self.reserved[nodes], counts, in_order, self.graph.from_zero[nodes]], axis=1)
        for (kind, reserved, terms, ordered, from_zero), chosen in _alike(keys):
            rows = starts[chosen][:, None] + np.arange(terms)
            for alike in self._alike_terms(nodes[chosen], rows, sort=not ordered):
                groups = frozenset(map(tuple, alike.signature.tolist()))
                together[kind, reserved, from_zero, groups].append(alike)
        for (kind, _, from_zero, _), parts in together.items():
            self.place(np.sort(np.concatenate([part.nodes for part in parts])))
            for part in parts:
                self._reduction(part, bool(kind == MAXIMUM), bool(from_zero))

    def _alike_terms(self, nodes: Integers, rows: Integers, sort: bool) -> Iterator[_Alike]:
        """Nodes with equally many terms, group by group, with the terms of all in one order, or each in its own."""
        terms, group, position = self.graph.terms, self.group, self.position
        first, second, coefficient = terms.first[rows], terms.second[rows], terms.coefficient[rows]
        swapped = group[first] > group[second]  # x * w is w * x
        first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        if sort:  # the same order for all nodes, and as their factors lie in the buffer
            order = np.lexsort((position[second], position[first], coefficient, group[second], group[first]))
            first, second = np.take_along_axis(first, order, axis=1), np.take_along_axis(second, order, axis=1)
            coefficient = np.take_along_axis(coefficient, order, axis=1)
        for signature, alike in _alike(group[first], group[second], coefficient.view(np.int64)):
            yield _Alike(nodes[alike], first[alike], second[alike], np.stack(np.split(signature, 3), axis=1))

    def _reduction(self, alike: _Alike, largest: bool, from_zero: bool) -> None:
        parts: list[tuple[float, int, bool]] = []
        operands = []
        changes = np.flatnonzero((np.diff(alike.signature, axis=0) != 0).any(axis=1)) + 1
        for columns in np.split(np.arange(len(alike.signature)), changes):
            _, other, coefficient = alike.signature[columns[0]]
            factors = [self._operand(alike.first[:, columns])]
            if other != _NOTHING:
                factors.append(self._operand(alike.second[:, columns], across=_lie_apart(factors[0][0])))
            for start, end in _affine_runs([positions for positions, _ in factors]):
                operands += [(positions[:, start:end], turn_step) for positions, turn_step in factors]
                parts.append((float(coefficient.view(np.float64)), end - start, len(factors) == 2))
        rows, width, target, accesses = _accesses(self._target(alike.nodes), operands)
        given = iter(accesses)
        segments = tuple(
            Segment(number, terms, next(given), next(given) if two else None) for number, terms, two in parts
        )
        self.kernels.append(Reduction(rows, width, target, segments, largest, from_zero))

    def map(self, application: Applications) -> None:
        """Roll nodes of one primitive."""
        for _, alike in _alike(self.group[application.operands]):
            nodes, operands = application.nodes[alike], application.operands[alike]
            self.place(nodes)
            columns = [self._operand(column[:, None]) for column in operands.T]
            rows, width, target, accesses = _accesses(self._target(nodes), columns)
            self.kernels.append(Map(application.primitive, rows, width, target, tuple(accesses)))

    def take(self, application: Applications) -> None:
        """Roll nodes that take an element of a table."""
        assert application.tables is not None
        tables = [self.graph.tables[table] for table in application.tables]
        heads = np.array([[len(table), self.group[table[0]]] for table in tables])
        for _, alike in _alike(heads, self.group[application.operands]):
            nodes, indices = application.nodes[alike], application.operands[alike]
            elements = self._positions(np.stack([tables[row] for row in alike]))
            self.place(nodes)
            rows, columns, target, (index, table) = _accesses(
                self._target(nodes), [self._operand(indices), (elements, 0)]
            )
            self.kernels.append(Take(rows, columns, elements.shape[1], target, index, table))

    def _target(self, nodes: Integers) -> _Places:
        """Where the nodes of a group lie."""
        return self.position[nodes], int(self.turn_step[nodes[0]])

    def _operand(self, nodes: Integers, across: bool = False) -> _Places:
        """Where a matrix of nodes of one group lies; see _positions."""
        return self._positions(nodes, across), int(self.turn_step[nodes[0, 0]])

    def _positions(self, nodes: Integers, across: bool = False) -> Integers:
        """Where a matrix of nodes lies.

        Constants are put into the buffer as they are needed: row after row, so that the terms of a sum lie side by
        side; or across, so that those of all sums do, term after term.
        """
        is_constant = self.graph.is_constant[nodes]
        if not is_constant.any():
            return self.position[nodes]
        if not is_constant.all():
            return np.where(is_constant, self._constants(self.graph.constants[nodes]), self.position[nodes])
        bits = self.graph.constants[nodes].view(np.int64)  # so that 0 is not -0, and NaN is NaN
        if (bits == bits[:, :1]).all():
            bits = bits[:, :1]
        # Rows that are the same, as a point's for all neurons of a layer, are one row in the buffer
        _, first, which = np.unique(bits, axis=0, return_index=True, return_inverse=True)
        numbers = bits[np.sort(first)].view(np.float64)
        rows = self._constants(numbers.T).T if across else self._constants(numbers)
        return np.asarray(np.broadcast_to(rows[np.argsort(np.argsort(first))[which.ravel()]], nodes.shape))

    def _constants(self, numbers: Floats) -> Integers:
        return self.layout.constant(numbers) + np.arange(numbers.size).reshape(numbers.shape)


def _lie_apart(positions: Integers) -> bool:
    """Whether the terms of a sum do not lie side by side."""
    return bool((np.abs(positions[0, 1:] - positions[0, :-1]) > 1).any())


def _affine_runs(factors: list[Integers]) -> list[tuple[int, int]]:
    """Cut the terms into runs in which all factors step evenly. Many short runs are not worth it: then no cut."""
    terms = factors[0].shape[1]
    even = [factor[0] for factor in factors if _same_steps(factor)]
    if not even:
        return [(0, terms)]
    runs, start = [], 0
    changes = (np.flatnonzero(np.diff(np.stack(even), n=2, axis=1).any(axis=0)) + 2).tolist()
    for change in [*changes, terms]:
        if change > start + 1 or change == terms:  # the step after a jump begins the next run
            runs.append((start, change))
            start = change
    return runs if len(runs) <= 1 + terms / 4 else [(0, terms)]


def _same_steps(positions: Integers) -> bool:
    """Whether the terms of all rows are equally far from the first."""
    return bool((positions - positions[:, :1] == positions[0] - positions[0, 0]).all())


def _step(positions: Integers) -> int:
    """How far apart are positions that are evenly apart."""
    return int(positions[1] - positions[0]) if len(positions) > 1 else 0


def _accesses(target: _Places, operands: list[_Places]) -> tuple[int, int, Access, list[Access]]:
    """Index maps for results and operands. The positions of an operand have a row for each result and a column a term.

    Returns:
        How many rows and columns the results are seen as, their map, and that of each operand.
    """
    results, turn_step = target
    matrices, turn_steps = zip((results[:, None], turn_step), *operands, strict=True)
    affine = [_same_steps(matrix) and not np.diff(matrix[0], n=2).any() for matrix in matrices]
    columns = len(results)
    for positions, is_affine in zip(matrices, affine, strict=True):
        if is_affine:
            distances = np.diff(positions[:, 0])
            breaks = np.flatnonzero(distances != distances[:1]) + 1
            columns = math.gcd(columns, int(np.gcd.reduce(breaks)))
    rows = len(results) // columns
    accesses = []
    for positions, is_affine, turn_step in zip(matrices, affine, turn_steps, strict=True):
        if not is_affine:
            accesses.append(_gather(np.stack(np.split(positions, rows)), turn_step))
            continue
        places = positions[:, 0]
        starts, column_step, term_step = places[::columns], _step(places[:columns]), _step(positions[0])
        if np.diff(starts, n=2).any():
            table = np.ascontiguousarray(starts)
            accesses.append(Access(0, 0, column_step, term_step, row_table=table, turn_step=turn_step))
        else:
            accesses.append(Access(int(starts[0]), _step(starts), column_step, term_step, turn_step=turn_step))
    return rows, columns, accesses[0], accesses[1:]


def _gather(positions: Integers, turn_step: int) -> Access:
    """The index map of what is not affine: a table. Where columns are evenly apart, it is one of terms only."""
    starts, column_step = positions[:, :1], _step(positions[0, :, 0])
    if (positions - starts == column_step * np.arange(positions.shape[1])[None, :, None]).all():
        return Access(column_step=column_step, table=np.ascontiguousarray(starts), turn_step=turn_step)
    return Access(table=np.ascontiguousarray(positions), turn_step=turn_step)
