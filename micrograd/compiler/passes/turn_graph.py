"""Turn graph: what the turns of a loop compute, as a graph of the first turn.

The nodes of one turn stand beside those of the next one by one. Each operand must be one of these, the same in all
turns:

    of a turn     a node of the same turn, or of so many turns before
    moving        a node that is not of the loop, and lies equally far on in the buffer at each turn
    a constant    the same at each turn
    of a table    any other node or constant that is not of the loop, one for each turn; a table has them in a row

In ``for x in xs: h = tanh(w * h + x)`` they are the sum and h, then w, which moves by 0, and x, which moves by 1.
Every operand of every turn is looked at. Turns at the begin or at the end that do not fit are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.graph import ONE, OTHER, Applications, Graph, Terms
from micrograd.compiler.numbers import no_integers
from micrograd.compiler.passes.alike import different_rows
from micrograd.compiler.passes.repeats import FEWEST_TURNS

if TYPE_CHECKING:
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.passes.repeats import Repeat

_OWN, _EARLIER, _MOVING, _SAME, _TABLE = range(5)  # the sorts of operands
_OUTSIDE = -(1 << 62)  # the number of what is not of the turns: no other is as low
_LEFT_OUT = 4  # turns, rather than that a table is made


@dataclass(frozen=True)
class TurnGraph:
    """A loop, and the graph of its first turn.

    The nodes of the graph are those of the first turn, in the order of Repeat.nodes, and then what they read
    beside each other. The arrays below have an entry for each of the latter.

    Attributes:
        repeat: the turns.
        graph: of the first turn.
        sources: the nodes of the whole graph that they are at the first turn; of nodes of a turn before, 0.
        turn_steps: how far they move at each turn.
        owners: of the nodes of an earlier turn, which nodes of a turn they are; -1 for others.
        lags: and how many turns before.
        columns: of those that are in a table, which column of it they are; -1 for others.
        table: nodes of the whole graph, a row for each turn.
        given: the nodes of the whole graph that are read at the first turns in place of those of a turn before.
        given_turns: which turns these stand for: -1 is the one before the first.
        given_owners: and which nodes of a turn.
    """

    repeat: Repeat
    graph: Graph
    sources: Integers
    turn_steps: Integers
    owners: Integers
    lags: Integers
    columns: Integers
    table: Integers
    given: Integers
    given_turns: Integers
    given_owners: Integers


class _Operands:
    """All operands of all turns, side by side: a row for each turn.

    Attributes:
        nodes: which they are.
        sorts: what sort each column is of.
        owners: of nodes of a turn, which one.
        lags: how many turns before.
        steps: how far they move at each turn.
    """

    def __init__(self, graph: Graph, repeat: Repeat, position: Integers) -> None:
        terms = [graph.terms.first[repeat.terms], graph.terms.second[repeat.terms]]
        applied = [
            application.operands[rows].reshape(repeat.turns, -1)
            for application, rows in zip(graph.applications, repeat.applications, strict=True)
        ]
        self.nodes = nodes = np.concatenate([*terms, *applied], axis=1)
        turns, own = repeat.nodes.shape
        number_of = np.full(graph.size + 1, _OUTSIDE)  # counted on from turn to turn; the last entry is that of ONE
        number_of[repeat.nodes] = np.arange(turns * own).reshape(turns, own)
        numbers = number_of[nodes]
        self.outside = numbers == _OUTSIDE
        middle = turns // 2  # what the first and the last turns read may be something else
        example, following = nodes[middle], nodes[middle + 1]
        inside = ~self.outside[middle]
        turn_of, self.owners = np.divmod(numbers[middle], own)
        self.lags = np.where(inside, middle - turn_of, 0)
        is_constant = np.append(graph.is_constant, True)  # so is ONE
        changes = is_constant[example] & (example != ONE)
        changes[changes] = (nodes[:, changes] != example[changes]).any(axis=0)
        sorts = [inside & (self.lags == 0), inside, changes, is_constant[example]]
        self.sorts = np.select(sorts, [_OWN, _EARLIER, _TABLE, _SAME], _MOVING)
        earlier, same, moves = (self.sorts == sort for sort in (_EARLIER, _SAME, _MOVING))
        place = np.append(position, 0)
        self.steps = np.where(moves, place[following] - place[example], 0)

        turn = np.arange(turns)[:, None]
        self.in_a_table = self.outside & (nodes != ONE)
        self.fits = self.in_a_table.copy()
        self.fits[:, inside] = numbers[:, inside] == numbers[middle, inside] + (turn - middle) * own
        self.fits[:, earlier] |= (turn < self.lags[earlier]) & self.in_a_table[:, earlier]
        moving = nodes[:, moves]
        evenly = place[moving] == place[example[moves]] + (turn - middle) * self.steps[moves]
        self.fits[:, moves] &= evenly & ~is_constant[moving]
        self.fits[:, same] = nodes[:, same] == example[same]

    def with_tables(self) -> None:
        """Take from a table what does not move evenly."""
        uneven = (self.sorts == _MOVING) & ~self.fits.all(axis=0)
        self.sorts[uneven], self.steps[uneven] = _TABLE, 0
        self.fits[:, uneven] = self.in_a_table[:, uneven]


def turn_graph_of(graph: Graph, repeat: Repeat, position: Integers, is_reserved: Booleans) -> TurnGraph | None:
    """The longest loop among the turns of a repeat; None if too few are alike.

    Args:
        graph: the whole graph.
        repeat: of it.
        position: where its nodes lie that are not of the repeat.
        is_reserved: which nodes of the repeat have a position, too.
    """
    operands = _Operands(graph, repeat, position)
    coefficients = graph.terms.coefficient[repeat.terms].view(np.int64)
    results = np.where(is_reserved[repeat.nodes], position[repeat.nodes], 0)
    middle = repeat.turns // 2
    steps = results[middle + 1] - results[middle]
    evenly = results == results[middle] + (np.arange(repeat.turns)[:, None] - middle) * steps
    others_fit = (coefficients == coefficients[middle]).all(axis=1) & evenly.all(axis=1)
    begin, end = _longest(operands.fits.all(axis=1) & others_fit)
    if end - begin < repeat.turns - _LEFT_OUT:
        operands.with_tables()
        begin, end = _longest(operands.fits.all(axis=1) & others_fit)
    # What stands for nodes of a turn before the first may be several things: then these turns are no part of the loop.
    if end > begin and _is_ambiguous(_given(operands, begin, end)):
        begin += int(operands.lags.max())
    if end - begin < FEWEST_TURNS:
        return None
    return _turn_graph(graph, repeat.part(begin, end), operands, begin, _given(operands, begin, end))


def _longest(fits: Booleans) -> tuple[int, int]:
    """Where the longest run of marks begins and ends."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8)))
    runs = [(begin, end) for begin, end in changes.reshape(-1, 2).tolist()]
    return max(runs, key=lambda run: run[1] - run[0], default=(0, 0))


def _given(operands: _Operands, begin: int, end: int) -> Integers:
    """What is read in place of nodes of the turns before the first one: the turn, the node of a turn, and the node."""
    rows = [np.zeros((0, 3), dtype=np.int64)]
    for lag in range(1, int(operands.lags.max(initial=0)) + 1):
        columns = np.flatnonzero((operands.sorts == _EARLIER) & (operands.lags >= lag))
        columns = columns[begin + operands.lags[columns] - lag < end]
        turns = operands.lags[columns] - lag  # the turns that read what is this many turns before the first
        nodes = operands.nodes[begin + turns, columns]
        rows.append(np.stack([np.full(len(columns), -lag), operands.owners[columns], nodes], axis=1))
    given = np.concatenate(rows)
    return given[different_rows(given)[0]]


def _is_ambiguous(given: Integers) -> bool:
    """Whether something is given twice."""
    return len(different_rows(given[:, :2])[0]) < len(given)


def _turn_graph(graph: Graph, repeat: Repeat, operands: _Operands, begin: int, given: Integers) -> TurnGraph:
    """The graph, with what it reads beside it."""
    nodes = operands.nodes[begin : begin + repeat.turns]
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
    sources, turn_steps, owners, lags, columns = described[first].T
    made = _graph(graph, repeat, number, sources, (owners >= 0) | (columns >= 0))
    before = {"given": given[:, 2], "given_turns": given[:, 0], "given_owners": given[:, 1]}
    return TurnGraph(repeat, made, sources, turn_steps, owners, lags, columns, found[:, order], **before)


def _graph(graph: Graph, repeat: Repeat, number: Integers, sources: Integers, moves: Booleans) -> Graph:
    """The graph of the first turn.

    Args:
        graph: the whole graph.
        repeat: the turns of the loop.
        number: which node of the new graph each operand is.
        sources: which nodes of the whole graph those are that come after the turn's own.
        moves: which of them are something else at each turn, and so no constants.
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
    )
