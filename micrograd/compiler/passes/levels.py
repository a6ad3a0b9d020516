"""Levels: on which level each operation is computed, so that loops are found as they were meant.

The level of a node is the first one on which it can be computed. Two things are in the way of a loop then.

What is computed as soon as it can be may wait until it is needed. In the reverse program of

    for letter in text: h = tanh(w * h + rows[letter])

the gradient of a row stands on the level after the last time that its letter was read, and no iteration from there on
is like those before. And where a state is read by a slower one, as in ``c = c * h; h = tanh(w * h + c)``, the one runs
ahead of the other: then no iteration has the same operands as the one before. From the level on where this begins, all
nodes are moved to the last level on which they may stand, where that makes more of a loop.

What belongs to one iteration may stand on the levels of another. In

    for x in xs: h = tanh(w * h + x); total += exp(h * h)

the square of h stands on the levels of the next h, so the first h and the last square belong to no iteration, and
would be kernels beside the loop. Here an iteration has as many levels as its longest chain of operations, and all that
belongs to it stands on them. That is found from the nodes of the loop, by going on to their operands and users beside
it, as far as these are made like those of the other iterations. Nothing depends on what is found but the order.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from micrograd.compiler.ir.graph import ONE
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.repeats import Operands, Stretches, better, counted, numbered, repeats, same_operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Booleans, Integers

_GAP = 32  # levels in no loop that are worth a look
_TRIES = 3
_DEEP = 128  # levels; where there are fewer, terms stay in the order that eager has more often
_MOST = 1 << 13  # nodes of an iteration: those beside the loop are looked at one by one


def with_late(graph: Graph, levels: Integers) -> tuple[Integers, Stretches | None]:
    """The levels of all nodes, where some are late, and the stretches that repeat then, which begin and end together.

    Args:
        graph: in normal form, in which dot products may be whole.
        levels: of its nodes; 0 for what is given.
    """
    operands = Operands.of(graph, levels)
    stretches = _same(graph, levels, operands)
    if stretches is None or 2 * stretches.of_iterations() < graph.is_made().sum():
        moved = _after_the_longest(graph, levels, operands)
        others = None if moved is None else _same(graph, moved, operands)
        if others is not None and (stretches is None or others.of_iterations() > stretches.of_iterations()):
            levels, stretches = cast("Integers", moved), others
    if stretches is None:
        return levels, None
    tried = set[tuple[int, int]]()
    while len(tried) < _TRIES:
        part = next((part for part in _interrupted(stretches) if part not in tried), None)
        if part is None:
            break
        tried.add(part)
        late, known = _delayed(graph, levels, operands, *part), (levels, stretches)
        levels, stretches = better(graph, known, late, operands) if _is_order(graph, late) else known
    found = _aligned(graph, levels, stretches, operands)
    short = _without_multiples(stretches)
    if len(short.found) < len(stretches.found):
        other = _aligned(graph, levels, short, operands)
        found = other if other[1].of_iterations() > found[1].of_iterations() else found
    return found


def _same(graph: Graph, levels: Integers, operands: Operands) -> Stretches | None:
    found = Stretches.of(graph, levels)
    return found and same_operands(graph, levels, found, operands)


def _after_the_longest(graph: Graph, levels: Integers, operands: Operands) -> Integers | None:
    """The levels of all nodes, where what the deepest operand of the last node needs comes first; None without gain.

    The gradient of ``for u in us: y = y + h * (u - p * y)`` adds up products of two chains, which do not know of each
    other: the states, and the adjoints, from the last one to the first. If an iteration of one has more levels than
    one of the other, no stretch of levels is like the next. So the adjoints begin when the states are there.
    """
    if (top := int(levels.max(initial=0))) < _DEEP:
        return None
    _, _, used = operands.of_nodes(np.flatnonzero(levels == top))
    is_first, is_made = np.zeros(graph.size, dtype=bool), graph.is_made()
    nodes = distinct(used[(used != ONE) & (levels[used] == top - 1)])
    while len(nodes):
        is_first[nodes] = True
        _, _, used = operands.of_nodes(nodes)
        used = used[used != ONE]
        nodes = distinct(used[is_made[used] & ~is_first[used]])
    others = np.flatnonzero(is_made & ~is_first)
    if not 0.1 < len(others) / is_made.sum() < 0.9:
        return None
    owners, _, used = operands.of_nodes(others)
    used, owners = used[used != ONE], others[owners[used != ONE]]
    order = np.argsort(levels[owners], kind="stable")
    used, owners = used[order], owners[order]
    moved = np.full_like(levels, top - 1)
    moved[others] = top
    begin = 0
    for end in (np.flatnonzero(np.diff(levels[owners], append=-1)) + 1).tolist():
        np.maximum.at(moved, owners[begin:end], moved[used[begin:end]] + 1)
        begin = end
    moved = np.where(is_first | ~is_made, levels, moved)
    return moved if _is_order(graph, moved) else None


def _without_multiples(stretches: Stretches) -> Stretches:
    """The stretches without those whose period is a multiple of that of another one.

    Where two chains of 4 and of 5 levels an iteration run side by side, 20 levels are alike to the next 20, for as long
    as both run. What is left of the longer one has the levels of an iteration.
    """
    periods = [period for _, period, _ in stretches.found]
    kept = [one for one in stretches.found if not any(each < one[1] and one[1] % each == 0 for each in periods)]
    return stretches._replace(found=kept)


def _interrupted(stretches: Stretches) -> Iterator[tuple[int, int]]:
    """From where to where nodes may be late: from the first level of a stretch after which it goes on soon, to the end.

    And from the first of many levels that are in no stretch, up to the stretch after the next one, or to the end.
    """
    end, last = 1, len(stretches.starts) - 1
    before = (0, 0, 0)
    further = [first for first, _, _ in stretches.found[1:]] + [last, last]
    for (first, period, count), limit in zip([*stretches.found, (last, 0, 0)], further, strict=False):
        if before[1] == period and first - end <= 2 * period:
            yield before[0], last
        elif first - end > _GAP:
            yield end, limit
            yield end, last
        before, end = (first, period, count), first + period * count


def _delayed(graph: Graph, levels: Integers, operands: Operands, first: int, last: int) -> Integers:
    """The last levels on which nodes may stand, of those from a level to another; elements of tables stay on theirs."""
    nodes = np.flatnonzero(levels >= first)
    owners, _, used = operands.of_nodes(nodes)
    below = np.append(levels, 0)[used]  # the last is that of ONE
    chosen = np.flatnonzero((below >= first) & (below < last))
    chosen = chosen[np.argsort(-below[chosen], kind="stable")]
    users, used, below = nodes[owners[chosen]], used[chosen], below[chosen]
    late = levels.copy()
    late[nodes[levels[nodes] < last]] = last - 1
    for table in graph.tables:
        late[table] = levels[table]
    cuts = np.flatnonzero(np.diff(below, append=-1)) + 1
    begin = 0
    for end in cuts.tolist():  # the users of nodes on one level are on higher ones
        np.minimum.at(late, used[begin:end], late[users[begin:end]] - 1)
        begin = end
    return late


def _aligned(graph: Graph, levels: Integers, stretches: Stretches, operands: Operands) -> tuple[Integers, Stretches]:
    """The levels of all nodes, where iterations begin and end together, and the stretches that repeat then.

    Args:
        graph: in normal form, in which dot products may be whole.
        levels: of its nodes; 0 for what is given.
        stretches: of these levels.
        operands: of its nodes.
    """
    loops = [repeat.nodes for repeat in repeats(graph, levels, stretches)]
    is_beside = graph.is_made()
    for nodes in loops:
        is_beside[nodes] = False
    moved = levels
    for nodes in reversed(loops):  # the levels before a loop stay as they are
        if nodes.shape[1] <= _MOST and is_beside.any():
            beside = _Beside(nodes, operands, stretches.kinds, is_beside)
            moved = _in_order(nodes, beside, operands, moved)
    if moved is levels or not _is_order(graph, moved):
        return levels, stretches
    moved = np.searchsorted(distinct(moved), moved)
    found = Stretches.of(graph, moved)
    same = found and same_operands(graph, moved, found, operands)
    # Where iterations are alike only some at a time, it depends on their number whether they are
    if found and same and [period for _, period, _ in found.found] == [period for _, period, _ in same.found]:
        return (moved, same) if same.of_iterations() > stretches.of_iterations() else (levels, stretches)
    return levels, stretches


class _Relations(NamedTuple):
    """Which nodes of an iteration are operands of which.

    Of the sum w * h + x at position 3, where h is at 5 of the iteration before: user 3, slot 1, used 5, lag 1.
    """

    users: Integers
    slots: Integers
    used: Integers
    lags: Integers


class _Grouped(NamedTuple):
    """Entries by a number that each of them has.

    Attributes:
        order: the entries, sorted by their numbers.
        numbers: these.
    """

    order: Integers
    numbers: Integers

    @staticmethod
    def by(numbers: Integers) -> _Grouped:
        """Group entries, given their numbers."""
        order = np.argsort(numbers, kind="stable")
        return _Grouped(order, numbers[order])

    def at(self, numbers: Integers) -> tuple[Integers, Integers]:
        """The entries of some numbers: of which of these each is, and the entry."""
        starts = np.searchsorted(self.numbers, numbers)
        counts = np.searchsorted(self.numbers, numbers, side="right") - starts
        of = np.repeat(np.arange(len(numbers)), counts)
        return of, self.order[starts[of] + counted(counts)]


class _Beside:
    """The nodes beside a loop that belong to one of its iterations, or to one before or after them.

    Args:
        nodes: of the loop, a row for each iteration.
        operands: of all nodes.
        kinds: for each node how it is made.
        is_beside: which nodes are in no loop, and made of others.

    Attributes:
        relations: of the nodes of an iteration.
        found: by iteration, the node at each of its positions, or -1: -1 is the iteration before the first.
    """

    def __init__(self, nodes: Integers, operands: Operands, kinds: Integers, is_beside: Booleans) -> None:
        self._nodes, self._operands, self._kinds = nodes, operands, kinds
        iterations, own = nodes.shape
        middle = iterations // 2
        numbers = numbered(nodes, len(kinds))
        users, slots, used = operands.of_nodes(nodes[middle])
        is_inside = numbers[used] >= 0
        row, position = np.divmod(numbers[used[is_inside]], own)
        self.relations = _Relations(users[is_inside], slots[is_inside], position, middle - row)
        same = operands.is_given[used] & (used != ONE) & (used == operands.of_nodes(nodes[middle + 1])[2])
        self._same: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for user, slot, node in zip(users[same].tolist(), slots[same].tolist(), used[same].tolist(), strict=True):
            self._same[user].append((slot, node))
        self._of_users, self._of_used = _Grouped.by(self.relations.users), _Grouped.by(self.relations.used)
        self._left = is_beside.copy()
        self.found: dict[int, Integers] = {}
        self._look()

    def _look(self) -> None:
        """Look for all of them, from the first iterations and from the last."""
        iterations, own = self._nodes.shape
        near = min(int(self.relations.lags.max(initial=0)) + 1, iterations)
        rows = distinct(np.append(np.arange(near), np.arange(iterations - near, iterations)))
        users, by_operand = self._users()
        known = [np.repeat(rows, own), np.tile(np.arange(own), len(rows)), self._nodes[rows].ravel()]
        while len(known[0]):
            new = []
            for row, position, candidates in self._next(known[0], known[1], known[2], users, by_operand):
                at_row = self.found.setdefault(row, np.full(own, -1))
                if at_row[position] >= 0:
                    continue
                alike = [each for each in candidates if self._is_like(each, row, position)]
                if len(alike) == 1:
                    at_row[position] = alike[0]
                    self._left[alike[0]] = False
                    new.append((row, position, alike[0]))
            known = [*np.array(new, dtype=np.int64).reshape(-1, 3).T]

    def _users(self) -> tuple[Integers, _Grouped]:
        """The nodes beside the loop that may be found, one for each operand of theirs; and these by their operands."""
        beside = np.flatnonzero(self._left & np.isin(self._kinds, self._kinds[self._nodes[0]]))
        owners, slots, operands = self._operands.of_nodes(beside)
        made = operands != ONE
        return beside[owners[made]], _Grouped.by(self._numbered(operands[made], slots[made]))

    def _numbered(self, operands: Integers, slots: Integers) -> Integers:
        """A number for each node as such an operand of others."""
        return slots * len(self._kinds) + operands

    def _next(
        self, rows: Integers, positions: Integers, nodes: Integers, users: Integers, by_operand: _Grouped
    ) -> Iterator[tuple[int, int, list[int]]]:
        """Where operands and users of some nodes are, by iteration and position, and which nodes these may be.

        Args:
            rows: the iteration of each node.
            positions: where it is in it.
            nodes: which they are.
            users: see _users.
            by_operand: see _users.
        """
        relations = self.relations
        of, which = self._of_users.at(positions)
        read = self._operands.numbers[self._operands.starts[nodes[of]] + relations.slots[which]]
        operands = of, which, rows[of] - relations.lags[which], relations.used[which], read
        of, which = self._of_used.at(positions)
        reader, user = by_operand.at(self._numbered(nodes[of], relations.slots[which]))
        of, which = of[reader], which[reader]
        found = of, len(relations.users) + which, rows[of] + relations.lags[which], relations.users[which], users[user]
        of, which, row, position, candidate = (np.concatenate(parts) for parts in zip(operands, found, strict=True))
        fits = ((row < 0) | (row >= len(self._nodes))) & (candidate != ONE)
        fits[fits] = self._left[candidate[fits]]
        fits[fits] = self._kinds[candidate[fits]] == self._kinds[self._nodes[0, position[fits]]]
        order = np.flatnonzero(fits)[np.argsort(of[fits], kind="stable")]
        listed = zip(*(each[order].tolist() for each in (of, which, row, position, candidate)), strict=True)
        for (_, _, row_, position_), same in groupby(listed, itemgetter(0, 1, 2, 3)):
            yield row_, position_, [candidate_ for *_, candidate_ in same]

    def _is_like(self, node: int, row: int, position: int) -> bool:
        """Whether a node beside the loop is made like those of a position, as far as is known."""
        if not self._left[node]:
            return False
        if any(self._operands.operand(node, slot) != same for slot, same in self._same[position]):
            return False
        begin, end = np.searchsorted(self.relations.users, [position, position + 1])
        _, slots, used, lags = (part[begin:end] for part in self.relations)
        operands = self._operands.numbers[self._operands.starts[node] + slots]
        for lag in distinct(lags).tolist():
            nodes = self._nodes[row - lag] if 0 <= row - lag < len(self._nodes) else self.found.get(row - lag)
            if nodes is not None:
                known = nodes[used]
                if ((known != operands) & (known >= 0) & (lags == lag)).any():
                    return False
        return True

    def reach(self) -> tuple[Integers, Integers]:
        """How many iterations further back, and further on, each position of an iteration is found."""
        iterations, own = self._nodes.shape
        before, after = np.zeros(own, dtype=np.int64), np.zeros(own, dtype=np.int64)
        for row in sorted(row for row in self.found if row >= iterations):
            after += (self.found[row] >= 0) & (row == iterations + after)
        for row in sorted((row for row in self.found if row < 0), reverse=True):
            before += (self.found[row] >= 0) & (row == -1 - before)
        return before, after


def _in_order(nodes: Integers, beside: _Beside, operands: Operands, levels: Integers) -> Integers:
    """The levels of all nodes where the iterations of a loop begin and end together; the same if nothing is gained."""
    relations, iterations = beside.relations, len(nodes)
    before, after = beside.reach()
    shift = _longest(before, relations, -relations.lags)
    begin, end = int((shift - before).max()), int((iterations + after + shift).min())
    if end - begin <= iterations:
        return levels
    is_together = relations.lags + shift[relations.users] == shift[relations.used]
    depth = _longest(np.zeros_like(shift), relations, np.where(is_together, 1, -len(shift)))
    period = int(depth.max()) + 1
    iteration, inner = np.full(len(levels), -1), np.zeros(len(levels), dtype=np.int64)
    iteration[nodes] = np.arange(iterations)[:, None] + shift
    inner[nodes] = depth
    for row, found in beside.found.items():
        positions = np.flatnonzero(found >= 0)
        iteration[found[positions]], inner[found[positions]] = row + shift[positions], depth[positions]
    is_inside = (iteration >= begin) & (iteration < end)
    lowest = int(levels[is_inside].min())
    is_needed = _needed(operands, is_inside, levels, lowest)
    start = max(lowest, int(levels[is_needed].max(initial=0)) + 1)
    is_later = ~is_inside & ~is_needed & (levels >= lowest)
    new = levels + np.where(is_later, start + period * (end - begin) - lowest, 0)
    new[is_inside] = start + (iteration[is_inside] - begin) * period + inner[is_inside]
    return new


def _needed(operands: Operands, is_inside: Booleans, levels: Integers, lowest: int) -> Booleans:
    """What the loop is computed from, of the other nodes on its levels."""
    is_needed = np.zeros(len(levels), dtype=bool)
    may_be = ~is_inside & (levels >= lowest)
    nodes = np.flatnonzero(is_inside)
    while len(nodes):
        _, _, used = operands.of_nodes(nodes)
        nodes = distinct(used[(used != ONE) & may_be[used]])
        may_be[nodes], is_needed[nodes] = False, True
    return is_needed


def _is_order(graph: Graph, levels: Integers) -> bool:
    """Whether the operands of each node are on lower levels than it."""
    below = np.append(levels, 0)  # the last is that of ONE
    terms = graph.terms
    owners = levels[terms.owner]
    highest = np.array([below[table].max(initial=0) for table in graph.tables])
    return (
        bool((below[terms.first] < owners).all() and (below[terms.second] < owners).all())
        and all(bool((below[each.operands] < levels[each.nodes, None]).all()) for each in graph.applications)
        and all(
            bool((highest[each.tables] < levels[each.nodes]).all())
            for each in graph.applications
            if each.tables is not None
        )
        and all(bool((part.highest(levels) < levels[part.owner]).all()) for part in graph.whole)
    )


def _longest(start: Integers, relations: _Relations, more: Integers) -> Integers:
    """The lengths of the longest paths through an iteration: to a user, that to its operand, and so much more."""
    longest = start.copy()
    while True:
        before = longest.copy()
        np.maximum.at(longest, relations.users, before[relations.used] + more)
        if (longest == before).all():
            return longest
