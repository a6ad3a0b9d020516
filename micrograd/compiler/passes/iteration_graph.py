"""Iteration graph: what the iterations of a loop compute, as a graph of the first iteration.

The nodes of one iteration stand beside those of the next one by one. Each operand must be one of these, the same in all
iterations:

    of an iteration     a node of the same iteration, or of so many iterations before
    moving        a node that is not of the loop, and lies equally far on in the buffer at each iteration
    a constant    the same at each iteration
    of a table    any other node or constant that is not of the loop, one for each iteration; a table has them in a row

In ``for x in xs: h = tanh(w * h + x)`` they are the sum and h, then w, which moves by 0, and x, which moves by 1.
Every operand of every iteration is looked at. Iterations at the begin or at the end that do not fit are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from micrograd.compiler.ir.graph import ONE, OTHER, Applications, Graph, Terms
from micrograd.compiler.ir.vectors import Dots
from micrograd.compiler.numbers import no_integers, number_in_run
from micrograd.compiler.passes.alike import different_rows
from micrograd.compiler.passes.repeats import FEWEST_ITERATIONS, OUTSIDE, numbered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.passes.repeats import Repeat

_OWN, _EARLIER, _MOVING, _SAME, _TABLE = range(5)  # the sorts of operands
_LEFT_OUT = 4  # iterations, rather than that a table is made


@dataclass(frozen=True)
class IterationGraph:
    """A loop, and the graph of its first iteration.

    The nodes of the graph are those of the first iteration, in the order of Repeat.nodes, and then what they read
    beside each other. The arrays below have an entry for each of the latter.

    Attributes:
        repeat: the iterations.
        graph: of the first iteration.
        sources: the nodes of the whole graph that they are at the first iteration; of nodes of an iteration before, 0.
        iteration_steps: how far they move at each iteration.
        owners: of the nodes of an earlier iteration, which nodes of an iteration they are; -1 for others.
        lags: and how many iterations before.
        columns: of those that are in a table, which column of it they are; -1 for others.
        table: nodes of the whole graph, a row for each iteration.
        given: the nodes of the whole graph that are read at the first iterations in place of those of an iteration
            before.
        given_iterations: which iterations these stand for: -1 is the one before the first.
        given_owners: and which nodes of an iteration.
    """

    repeat: Repeat
    graph: Graph
    sources: Integers
    iteration_steps: Integers
    owners: Integers
    lags: Integers
    columns: Integers
    table: Integers
    given: Integers
    given_iterations: Integers
    given_owners: Integers


class _Vectors(NamedTuple):
    """The vectors that the dot products of iterations are of, if these stay whole.

    Attributes:
        elements: of each vector of each iteration, of shape (iterations, vectors, length).
        first, second: which vectors those of an iteration are of.
        fits: which iterations are alike in this.
    """

    elements: Integers
    first: Integers
    second: Integers
    fits: Booleans


def _dots_of(graph: Graph, repeat: Repeat) -> list[tuple[Dots, Integers]]:
    """The dot products that iterations have, and which rows of each are theirs."""
    parts = zip(graph.whole, repeat.dots, strict=True)
    return [(part, rows) for part, rows in parts if rows.size]


def _vectors_of(graph: Graph, repeat: Repeat) -> list[_Vectors]:
    """Those of each part of a graph."""
    found = []
    for dots, rows in _dots_of(graph, repeat):
        which = np.concatenate([dots.first[rows], dots.second[rows]], axis=1)
        _, examples, number = np.unique(which[repeat.iterations // 2], return_index=True, return_inverse=True)
        vectors = which[:, examples]
        fits = (which == vectors[:, number]).all(axis=1)
        first, second = number.reshape(2, -1)
        found.append(_Vectors(dots.elements[vectors], first, second, fits))
    return found


class _Operands:
    """All operands of all iterations, side by side: a row for each iteration.

    Attributes:
        nodes: which they are.
        sorts: what sort each column is of.
        owners: of nodes of an iteration, which one.
        lags: how many iterations before.
        steps: how far they move at each iteration.
        vectors: those that dot products are of; their elements come last among the operands.
    """

    def __init__(self, graph: Graph, repeat: Repeat, position: Integers) -> None:
        terms = [graph.terms.first[repeat.terms], graph.terms.second[repeat.terms]]
        applied = [
            application.operands[rows].reshape(repeat.iterations, -1)
            for application, rows in zip(graph.applications, repeat.applications, strict=True)
        ]
        self.vectors = _vectors_of(graph, repeat)
        elements = [each.elements.reshape(repeat.iterations, -1) for each in self.vectors]
        self.nodes = nodes = np.concatenate([*terms, *applied, *elements], axis=1)
        iterations, own = repeat.nodes.shape
        numbers = numbered(repeat.nodes, graph.size)[nodes]
        self.outside = numbers == OUTSIDE
        middle = iterations // 2  # what the first and the last iterations read may be something else
        example, following = nodes[middle], nodes[middle + 1]
        inside = ~self.outside[middle]
        iteration_of, self.owners = np.divmod(numbers[middle], own)
        self.lags = np.where(inside, middle - iteration_of, 0)
        is_constant = np.append(graph.is_constant, True)  # so is ONE
        changes = is_constant[example] & (example != ONE)
        changes[changes] = (nodes[:, changes] != example[changes]).any(axis=0)
        sorts = [inside & (self.lags == 0), inside, changes, is_constant[example]]
        self.sorts = np.select(sorts, [_OWN, _EARLIER, _TABLE, _SAME], _MOVING)
        earlier, same, moves = (self.sorts == sort for sort in (_EARLIER, _SAME, _MOVING))
        addresses = np.append(position, 0)
        self.steps = np.where(moves, addresses[following] - addresses[example], 0)

        iteration = np.arange(iterations)[:, None]
        self.in_a_table = self.outside & (nodes != ONE)
        self.fits = self.in_a_table.copy()
        self.fits[:, inside] = numbers[:, inside] == numbers[middle, inside] + (iteration - middle) * own
        self.fits[:, earlier] |= (iteration < self.lags[earlier]) & self.in_a_table[:, earlier]
        moving = nodes[:, moves]
        evenly = addresses[moving] == addresses[example[moves]] + (iteration - middle) * self.steps[moves]
        self.fits[:, moves] &= evenly & ~is_constant[moving]
        self.fits[:, same] = nodes[:, same] == example[same]

    def with_tables(self, alike: Integers) -> None:
        """Take from a table what does not move evenly, and what kernels would read beside it.

        Args:
            alike: a number for each operand, the same for those that one kernel may read.
        """
        moving = self.sorts == _MOVING
        lengths = np.array([end - begin for begin, end in map(_longest, self.fits.T)])
        uneven = moving & (lengths < len(self.fits) - _LEFT_OUT)
        uneven |= moving & np.isin(alike, alike[uneven])
        self.sorts[uneven], self.steps[uneven] = _TABLE, 0
        self.fits[:, uneven] = self.in_a_table[:, uneven]


def _read_alike(graph: Graph, repeat: Repeat, vectors: Sequence[_Vectors], groups: Integers) -> Integers:
    """For each operand of an iteration a number, the same for those that one kernel may read."""
    index_of = np.zeros(graph.size, dtype=np.int64)
    index_of[repeat.nodes[0]] = np.arange(repeat.nodes.shape[1])
    owners = index_of[graph.terms.owner[repeat.terms[0]]]
    terms = number_in_run(owners)  # those of one owner lie side by side
    parts = [np.stack([repeat.alike[owners], 2 * terms + factor]) for factor in range(2)]
    for application, rows in zip(graph.applications, repeat.applications, strict=True):
        nodes, count = index_of[application.nodes[rows[0]]], application.operands.shape[1]
        parts.append(np.stack([np.repeat(repeat.alike[nodes], count), np.tile(np.arange(count), len(nodes))]))
    for number, each in enumerate(vectors):
        parts.append(np.broadcast_to([[-1 - number], [0]], (2, each.elements[0].size)))
    return different_rows(np.append(np.concatenate(parts, axis=1), groups[None, :], axis=0).T)[1]


def iteration_graph_of(
    graph: Graph, repeat: Repeat, position: Integers, group: Integers, is_reserved: Booleans
) -> IterationGraph | None:
    """The longest loop among the iterations of a repeat; None if too few are alike.

    Args:
        graph: the whole graph.
        repeat: of it.
        position: where its nodes lie that are not of the repeat.
        group: the groups of these.
        is_reserved: which nodes of the repeat have a position, too.
    """
    operands = _Operands(graph, repeat, position)
    coefficients = graph.terms.coefficient[repeat.terms].view(np.int64)
    results = np.where(is_reserved[repeat.nodes], position[repeat.nodes], 0)
    middle = repeat.iterations // 2
    steps = results[middle + 1] - results[middle]
    evenly = results == results[middle] + (np.arange(repeat.iterations)[:, None] - middle) * steps
    others_fit = (coefficients == coefficients[middle]).all(axis=1) & evenly.all(axis=1)
    for vectors in operands.vectors:
        others_fit &= vectors.fits
    begin, end = _longest(operands.fits.all(axis=1) & others_fit)
    if end - begin < repeat.iterations - _LEFT_OUT:
        operands.with_tables(_read_alike(graph, repeat, operands.vectors, group[operands.nodes[middle]]))
        begin, end = _longest(operands.fits.all(axis=1) & others_fit)
    # What stands for nodes of an iteration before the first may be several things: then these iterations are no part
    # of the loop.
    if end > begin and _is_ambiguous(_given(operands, begin, end)):
        begin += int(operands.lags.max())
    if end - begin < FEWEST_ITERATIONS:
        return None
    return _iteration_graph(graph, repeat.part(begin, end), operands, begin, _given(operands, begin, end))


def _longest(fits: Booleans) -> tuple[int, int]:
    """Where the longest run of marks begins and ends."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8)))
    runs = [(begin, end) for begin, end in changes.reshape(-1, 2).tolist()]
    return max(runs, key=lambda run: run[1] - run[0], default=(0, 0))


def _given(operands: _Operands, begin: int, end: int) -> Integers:
    """What stands for nodes of iterations before the first: rows of iteration, node of an iteration, node."""
    rows = [np.zeros((0, 3), dtype=np.int64)]
    for lag in range(1, int(operands.lags.max(initial=0)) + 1):
        columns = np.flatnonzero((operands.sorts == _EARLIER) & (operands.lags >= lag))
        columns = columns[begin + operands.lags[columns] - lag < end]
        # the iterations that read what is this many iterations before the first
        iterations = operands.lags[columns] - lag
        nodes = operands.nodes[begin + iterations, columns]
        rows.append(np.stack([np.full(len(columns), -lag), operands.owners[columns], nodes], axis=1))
    given = np.concatenate(rows)
    return given[different_rows(given)[0]]


def _is_ambiguous(given: Integers) -> bool:
    return len(different_rows(given[:, :2])[0]) < len(given)


def _iteration_graph(graph: Graph, repeat: Repeat, operands: _Operands, begin: int, given: Integers) -> IterationGraph:
    """The graph, with what it reads beside it."""
    nodes = operands.nodes[begin : begin + repeat.iterations]
    in_table = np.flatnonzero(operands.sorts == _TABLE)
    first, which = different_rows(nodes[:, in_table].T)
    found = nodes[:, in_table[first]]
    order = np.lexsort((first, ~graph.is_constant[found].all(axis=0)))  # constants first, and as they are read
    columns = np.full(nodes.shape[1], -1)
    columns[in_table] = np.argsort(order)[which]

    sources = np.where(operands.sorts >= _MOVING, nodes[0], 0)
    earlier = operands.sorts == _EARLIER
    owners, lags = np.where(earlier, operands.owners, -1), np.where(earlier, operands.lags, 0)
    described = np.stack([sources, operands.steps, owners, lags, columns], axis=1)
    number = np.where(operands.sorts == _OWN, operands.owners, ONE)
    is_read = (operands.sorts != _OWN) & (nodes[0] != ONE)
    described = described[is_read]
    first, which = different_rows(described)
    number[is_read] = repeat.nodes.shape[1] + which
    sources, iteration_steps, owners, lags, columns = described[first].T
    made = _graph(graph, repeat, operands.vectors, number, sources, (owners >= 0) | (columns >= 0))
    before = {"given": given[:, 2], "given_iterations": given[:, 0], "given_owners": given[:, 1]}
    return IterationGraph(repeat, made, sources, iteration_steps, owners, lags, columns, found[:, order], **before)


def _graph(
    graph: Graph, repeat: Repeat, vectors: Sequence[_Vectors], number: Integers, sources: Integers, moves: Booleans
) -> Graph:
    """The graph of the first iteration.

    Args:
        graph: the whole graph.
        repeat: the iterations of the loop.
        vectors: of their dot products.
        number: which node of the new graph each operand is.
        sources: which nodes of the whole graph those are that come after the iteration's own.
        moves: which of them are something else at each iteration, and so no constants.
    """
    own, rows = repeat.nodes[0], repeat.terms[0]
    index_of = np.zeros(graph.size, dtype=np.int64)
    index_of[own] = np.arange(len(own))
    terms = Terms(
        index_of[graph.terms.owner[rows]], graph.terms.coefficient[rows], *number[: 2 * len(rows)].reshape(2, -1)
    )
    applications = []
    begin = 2 * len(rows)
    for application, (chosen, *_) in zip(graph.applications, repeat.applications, strict=True):
        operands = application.operands[chosen]
        end = begin + operands.size
        if len(chosen):
            nodes = index_of[application.nodes[chosen]]
            applications.append(Applications(application.primitive, nodes, number[begin:end].reshape(operands.shape)))
        begin = end
    whole = list[Dots]()
    for each, (part, (chosen, *_)) in zip(vectors, _dots_of(graph, repeat), strict=True):
        end = begin + each.elements[0].size
        elements = number[begin:end].reshape(each.elements[0].shape)
        whole.append(Dots(elements, index_of[part.owner[chosen]], each.first, each.second))
        begin = end

    def of_own(marks: Booleans) -> Booleans:
        return np.append(marks[own], np.zeros(len(sources), dtype=bool))

    size = len(own) + len(sources)
    return Graph(
        kind=np.append(graph.kind[own], np.full(len(sources), OTHER)),
        constants=np.append(np.full(len(own), np.nan), graph.constants[sources]),
        is_constant=np.append(np.zeros(len(own), dtype=bool), graph.is_constant[sources] & ~moves),
        terms=terms,
        applications=tuple(applications),
        tables=(),
        inputs=(),
        outputs=no_integers(),
        differentiable=np.zeros(size, dtype=bool),
        unordered=of_own(graph.unordered),
        from_zero=of_own(graph.from_zero),
        whole=tuple(whole),
    )
