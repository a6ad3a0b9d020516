"""Colours: the columns of a sparse Jacobian that one direction computes together.

In

    x  .  x  .
    .  x  x  .
    x  .  .  x

no row has an entry in both of the first two columns, nor in both of the last two. So two directions, (1, 1, 0, 0) and
(0, 0, 1, 1), give all entries: each row's derivative along one of them is one entry. That is less work than a gradient
for each row, where rows have much in common: a direction goes through that once.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def coloured(rows: Sequence[Sequence[int]], most: int) -> dict[int, int] | None:
    """A colour for each column, so that no row has two columns of one colour: those with most entries choose first.

    Args:
        rows: for each row the columns of its entries.
        most: how many colours there may be.

    Returns:
        The colours, numbered from 0; None if that many are not enough.

    Example:
        >>> coloured([[0, 2], [1, 2], [0, 3]], 2)
        {0: 0, 2: 1, 1: 0, 3: 1}
    """
    members: defaultdict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        for column in row:
            members[column].append(number)
    used: list[set[int]] = [set() for _ in rows]
    found: dict[int, int] = {}
    for column in sorted(members, key=lambda column: -len(members[column])):
        taken = set().union(*(used[number] for number in members[column]))
        found[column] = colour = next(colour for colour in count() if colour not in taken)
        if colour >= most:
            return None
        for number in members[column]:
            used[number].add(colour)
    return found
