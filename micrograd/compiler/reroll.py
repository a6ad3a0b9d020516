"""Reroll: group nodes that are alike into kernels over arrays.

Two nodes are alike when they stand on the same level (as many steps above the inputs), are made by the
same primitive or have equally many terms, and when their operands come from the same groups, place by
place. Each group lies in the buffer without gaps. So the operands of a group's nodes mostly stand in the
buffer at regular distances, and a loop over them is a loop over an array. In

    y[o] = w[o][0] * x[0] + w[o][1] * x[1]        for three o

all y are on one level, have two terms, and take w from the inputs and x from the inputs. Element o, t of
the first factor is at ``base + 2 * o + t`` and of the second at ``base + t``: a matrix times a vector.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.normalise import MAXIMUM, ONE
from micrograd.compiler.program import Access, Kernel, Map, Program, Reduction, Segment, Take
from micrograd.compiler.trace import TAKE
from micrograd.compiler.walks import Edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.normalise import Applications, Floats, Graph, Integers

_CONSTANTS = 1 << 40  # the group of constants, and the one of no factor at all: after all others
_NOTHING = _CONSTANTS + 1
_ALIGNMENT = 8  # numbers: a cache line


def reroll(graph: Graph, inputs: Sequence[Integers], seeds: Integers, gradients: Integers, start: int = 0) -> Program:
    """Kernels for a graph.

    Args:
        graph: in normal form.
        inputs: nodes that are given, group by group; they lie in the buffer in this order.
        seeds: nodes that are given as well: the gradients of the outputs.
        gradients: nodes that shall lie in the buffer one after the other.
        start: where all but the first inputs begin, in a buffer that programs share.
    """
    rolling = _Rolling(graph)
    for nodes in (*inputs, seeds):
        rolling.place(nodes)
        rolling.end = max(rolling.end, start)
    first = rolling.end
    rolling.position[gradients] = np.arange(first, first + len(gradients))
    rolling.end += len(gradients)
    for roll in _batches(graph, rolling):
        roll()
    outputs = rolling.outputs(graph.outputs[: len(graph.outputs) - len(gradients)])
    return Program(
        size=rolling.end,
        kernels=tuple(rolling.kernels),
        inputs=rolling.position[np.concatenate([*inputs, seeds[:0]])],
        outputs=outputs,
        seeds=rolling.position[seeds],
        gradients=slice(first, first + len(gradients)),
        constants=tuple(rolling.constants),
    )


def _batches(graph: Graph, rolling: _Rolling) -> Iterator[Callable[[], None]]:
    """What is to be rolled, level after level."""
    users, used = graph.edges()
    levels = Edges(graph.size, used, users).levels()
    by_level: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)
    owners, starts, counts = np.unique(graph.terms.owner, return_index=True, return_counts=True)
    for chosen in _runs(np.lexsort((owners, levels[owners])), levels[owners][:, None]):
        roll = partial(rolling.reductions, owners[chosen], starts[chosen], counts[chosen])
        by_level[levels[owners[chosen[0]]]].append(roll)
    for application in graph.applications:
        keys = levels[application.nodes]
        for chosen in _runs(np.lexsort((application.nodes, keys)), keys[:, None]):
            roll_one = rolling.take if application.primitive is TAKE else rolling.map
            by_level[keys[chosen[0]]].append(partial(roll_one, application, chosen))
    for level in sorted(by_level):
        yield from by_level[level]


def _runs(order: Integers, keys: Integers) -> list[Integers]:
    """The order, cut where the keys change."""
    if not len(order):
        return []
    changes = np.flatnonzero((np.diff(keys[order], axis=0) != 0).any(axis=1)) + 1
    return np.split(order, changes)


def _alike(*signatures: Integers) -> list[Integers]:
    """The rows that are the same in all of the matrices, group by group."""
    rows = np.concatenate(signatures, axis=1)
    if (rows == rows[0]).all():
        return [np.arange(len(rows))]
    _, which = np.unique(rows, axis=0, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(which[order])) + 1)


class _Alike(NamedTuple):
    """Nodes whose terms are alike: their factors row by row, and the coefficients and groups of them all."""

    nodes: Integers
    first: Integers
    second: Integers
    coefficient: Floats
    signature: Integers


class _Rolling:
    """The state of one reroll: where each node lies, in which group, and the kernels so far."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        size = graph.size
        self.position = np.full(size + 1, -1)
        self.group = np.full(size + 1, -1)
        self.group[:-1][graph.is_constant] = _CONSTANTS
        self.group[ONE] = _NOTHING
        self.groups = 0
        self.end = 0
        self.kernels: list[Kernel] = []
        self.constants: list[tuple[int, Floats]] = []
        self._known: dict[bytes, int] = {}

    def place(self, nodes: Integers) -> None:
        """Give nodes a place each, side by side, unless they have one, and make them a group."""
        if len(nodes) and self.position[nodes[0]] < 0:
            self.end = -(-self.end // _ALIGNMENT) * _ALIGNMENT if len(nodes) >= _ALIGNMENT else self.end
            self.position[nodes] = np.arange(self.end, self.end + len(nodes))
            self.end += len(nodes)
        self.group[nodes] = self.groups
        self.groups += 1

    def outputs(self, nodes: Integers) -> Integers:
        """Where nodes are, constants among them too."""
        return np.array([self._positions(node.reshape(1, 1))[0, 0] for node in nodes], dtype=np.int64)

    def reductions(self, nodes: Integers, starts: Integers, counts: Integers) -> None:
        """Roll the sums and maxima of a level, given where their terms start and how many they have.

        Sums over the same groups lie together even where they have more or fewer terms, as those of
        causal attention do: what uses them then finds them in one group.
        """
        together: defaultdict[tuple[Any, ...], list[_Alike]] = defaultdict(list)
        keys = np.stack([self.graph.kind[nodes], counts, self.position[nodes] >= 0], axis=1)
        for chosen in _runs(np.lexsort((nodes, *keys.T[::-1])), keys):
            rows = starts[chosen][:, None] + np.arange(counts[chosen[0]])
            for alike in self._sorted_terms(nodes[chosen], rows):
                together[(*keys[chosen[0], ::2], frozenset(map(tuple, alike.signature.tolist())))].append(alike)
        for parts in together.values():
            self.place(np.sort(np.concatenate([part.nodes for part in parts])))
            for part in parts:
                self._reduction(part)

    def _sorted_terms(self, nodes: Integers, rows: Integers) -> Iterator[_Alike]:
        """Nodes with equally many terms, group by group, with the terms of all in the same order."""
        terms, group, position = self.graph.terms, self.group, self.position
        first, second, coefficient = terms.first[rows], terms.second[rows], terms.coefficient[rows]
        swapped = group[first] > group[second]  # x * w is w * x
        if swapped.any():
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
        if rows.shape[1] > 1:
            # The order of terms is free: the same for all nodes, and as their factors lie in the buffer.
            order = np.lexsort((position[second], position[first], coefficient, group[second], group[first]))
            first, second = np.take_along_axis(first, order, axis=1), np.take_along_axis(second, order, axis=1)
            coefficient = np.take_along_axis(coefficient, order, axis=1)
        of_first, of_second = group[first], group[second]
        for alike in _alike(of_first, of_second, coefficient.view(np.int64)):
            row = alike[0]
            signature = np.stack([of_first[row], of_second[row], coefficient[row].view(np.int64)], axis=1)
            yield _Alike(nodes[alike], first[alike], second[alike], coefficient[row], signature)

    def _reduction(self, alike: _Alike) -> None:
        shapes: list[tuple[float, int, bool]] = []
        operands = [self.position[alike.nodes][:, None]]
        for columns in _runs(np.arange(len(alike.coefficient)), alike.signature):
            factors = [self._positions(alike.first[:, columns])]
            if alike.second[0, columns[0]] != ONE:
                factors.append(self._positions(alike.second[:, columns]))
            for start, end in _affine_runs(factors):
                operands += [factor[:, start:end] for factor in factors]
                shapes.append((float(alike.coefficient[columns[0]]), end - start, len(factors) == 2))
        rows, columns_, (target, *accesses) = _accesses(operands)
        given = iter(accesses)
        segments = tuple(
            Segment(number, terms, next(given), next(given) if two else None) for number, terms, two in shapes
        )
        largest = bool(self.graph.kind[alike.nodes[0]] == MAXIMUM)
        self.kernels.append(Reduction(rows, columns_, target, segments, largest))

    def map(self, application: Applications, chosen: Integers) -> None:
        """Roll nodes of one primitive."""
        for alike in _alike(self.group[application.operands[chosen]]):
            rows = chosen[alike]
            nodes, operands = application.nodes[rows], application.operands[rows]
            self.place(nodes)
            columns = [self._positions(column[:, None]) for column in operands.T]
            count, width, (target, *accesses) = _accesses([self.position[nodes][:, None], *columns])
            self.kernels.append(Map(application.primitive, count, width, target, tuple(accesses)))

    def take(self, application: Applications, chosen: Integers) -> None:
        """Roll nodes that take an element of a table."""
        assert application.tables is not None
        tables = [self.graph.tables[table] for table in application.tables[chosen]]
        heads = np.array([[len(table), self.group[table[0]]] for table in tables])
        for alike in _alike(heads, self.group[application.operands[chosen]]):
            nodes, indices = application.nodes[chosen[alike]], application.operands[chosen[alike]]
            elements = self._positions(np.stack([tables[row] for row in alike]))
            self.place(nodes)
            operands = [self.position[nodes][:, None], self._positions(indices), elements]
            rows, columns, (target, index, table) = _accesses(operands)
            self.kernels.append(Take(rows, columns, elements.shape[1], target, index, table))

    def _positions(self, nodes: Integers) -> Integers:
        """Where a matrix of nodes lies; constants are put into the buffer as they are needed, in order."""
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
        rows = self._constants(bits[np.sort(first)].view(np.float64))
        return np.asarray(np.broadcast_to(rows[np.argsort(np.argsort(first))[which.ravel()]], nodes.shape))

    def _constants(self, numbers: Floats) -> Integers:
        content = np.ascontiguousarray(numbers).tobytes()
        if content not in self._known:
            self._known[content] = self.end
            self.constants.append((self.end, np.frombuffer(content)))
            self.end += numbers.size
        return self._known[content] + np.arange(numbers.size).reshape(numbers.shape)


def _affine_runs(factors: list[Integers]) -> list[tuple[int, int]]:
    """Cut the terms into runs in which all factors step evenly; few long ones, or else no cut at all."""
    offsets = [factor[0] - factor[0, 0] for factor in factors if _same_steps(factor)]
    terms = factors[0].shape[1]
    if terms <= 2 or not offsets:
        return [(0, terms)]
    steps = np.diff(np.stack(offsets), axis=1)
    runs, start = [], 0
    changes = (np.flatnonzero((np.diff(steps, axis=1) != 0).any(axis=0)) + 2).tolist()
    for change in [*changes, terms]:
        if change > start + 1 or change == terms:  # the step after a jump begins the next run
            runs.append((start, change))
            start = change
    return runs if len(runs) <= 1 + terms // 4 else [(0, terms)]


def _same_steps(positions: Integers) -> bool:
    """Whether the terms of all rows are equally far from the first."""
    return bool((positions - positions[:, :1] == positions[0] - positions[0, 0]).all())


def _accesses(operands: list[Integers]) -> tuple[int, int, list[Access]]:
    """Index maps for matrices of positions, a row for each result and a column for each term.

    Returns:
        How many rows and columns the results are seen as, and the map of each operand.
    """
    count = len(operands[0])
    steps = [positions[0, 1:] - positions[0, :-1] for positions in operands]
    affine = [_same_steps(p) and (not len(s) or bool((s == s[0]).all())) for p, s in zip(operands, steps, strict=True)]
    columns = count
    for positions, is_affine in zip(operands, affine, strict=True):
        if is_affine and count > 1:
            distances = positions[1:, 0] - positions[:-1, 0]
            breaks = np.flatnonzero(distances != distances[0]) + 1
            columns = math.gcd(columns, int(np.gcd.reduce(breaks))) if len(breaks) else columns
    rows = count // columns
    accesses = []
    for positions, is_affine, step in zip(operands, affine, steps, strict=True):
        if not is_affine:
            accesses.append(_gather(positions.reshape(rows, columns, -1)))
            continue
        starts = positions[::columns, 0]
        column_step = int(positions[1, 0] - positions[0, 0]) if columns > 1 else 0
        term_step = int(step[0]) if len(step) else 0
        row_steps = starts[1:] - starts[:-1]
        if len(row_steps) and (row_steps != row_steps[0]).any():
            accesses.append(Access(0, 0, column_step, term_step, row_table=np.ascontiguousarray(starts)))
        else:
            row_step = int(row_steps[0]) if len(row_steps) else 0
            accesses.append(Access(int(starts[0]), row_step, column_step, term_step))
    return rows, columns, accesses


def _gather(positions: Integers) -> Access:
    """The index map of what is not affine: by a table, of each term alone where columns are evenly apart."""
    column_step = int(positions[0, 1, 0] - positions[0, 0, 0]) if positions.shape[1] > 1 else 0
    starts = positions[:, :1]
    if (positions - starts == column_step * np.arange(positions.shape[1])[None, :, None]).all():
        return Access(0, column_step=column_step, table=np.ascontiguousarray(starts))
    return Access(0, table=np.ascontiguousarray(positions))
