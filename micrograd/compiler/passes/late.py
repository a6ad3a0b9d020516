"""Late: what is computed as soon as it can be stands in the way of a loop, and waits until it is needed.

The level of a node is the first one on which it can be computed. So in the reverse program of

    for letter in text: h = tanh(w * h + rows[letter])

the gradient of a row stands on the level after the last time that its letter was read, and no iteration from there on
is like those before. And where a state is read by a slower one, as in ``c = c * h; h = tanh(w * h + c)``, the one runs
ahead of the other: then no iteration has the same operands as the one before.

From the level on where this begins, all nodes are moved to the last level on which they may stand, where that makes
more of a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.passes.aligned import aligned
from micrograd.compiler.passes.repeats import Operands, Stretches, better, same_operands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Integers

_GAP = 32  # levels in no loop that are worth a look
_TRIES = 3


def with_late(graph: Graph, levels: Integers) -> tuple[Integers, Stretches | None]:
    """The levels of all nodes, where some are late, and the stretches that repeat then, which begin and end together.

    Args:
        graph: in normal form, with no terms that stay whole.
        levels: of its nodes; 0 for what is given.
    """
    stretches = Stretches.of(graph, levels)
    if stretches is None:
        return levels, None
    operands = Operands.of(graph)
    stretches = same_operands(graph, levels, stretches, operands)
    tried = set[int]()
    while len(tried) < _TRIES:
        first = next((first for first in _interrupted(stretches) if first not in tried), None)
        if first is None:
            break
        tried.add(first)
        levels, stretches = better(graph, (levels, stretches), _delayed(levels, operands, first), operands)
    return aligned(graph, levels, stretches, operands)


def _interrupted(stretches: Stretches) -> Iterator[int]:
    """The first level of each stretch after which it goes on soon, and the first of many that are in no stretch."""
    end, last = 1, len(stretches.starts) - 1
    before = (0, 0, 0)
    for first, period, count in [*stretches.found, (last, 0, 0)]:
        if before[1] == period and first - end <= 2 * period:
            yield before[0]
        elif first - end > _GAP:
            yield end
        before, end = (first, period, count), first + period * count


def _delayed(levels: Integers, operands: Operands, first: int) -> Integers:
    """The last levels on which nodes may stand, of those from a level on."""
    nodes = np.flatnonzero(levels >= first)
    owners, _, used = operands.of_nodes(nodes)
    below = np.append(levels, 0)[used]  # the last is that of ONE
    chosen = np.flatnonzero(below >= first)
    chosen = chosen[np.argsort(-below[chosen], kind="stable")]
    users, used, below = nodes[owners[chosen]], used[chosen], below[chosen]
    late = levels.copy()
    late[nodes] = int(levels.max())
    cuts = np.flatnonzero(np.diff(below, append=-1)) + 1
    begin = 0
    for end in cuts.tolist():  # the users of nodes on one level are on higher ones
        np.minimum.at(late, used[begin:end], late[users[begin:end]] - 1)
        begin = end
    return late
