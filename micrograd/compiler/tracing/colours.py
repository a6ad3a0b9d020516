"""Colours: the columns of a sparse Jacobian that one direction computes together.

In

    x  .  x  .
    .  x  x  .
    x  .  .  x

no row has an entry in both of the first two columns, nor in both of the last two. So two directions, (1, 1, 0, 0) and
(0, 0, 1, 1), give all entries: each row's derivative along one of them is one entry. That is less work than a gradient
for each row, where rows have much in common: a direction goes through that once.

A Hessian needs fewer, as it has each entry twice, and one of the two is enough. In

    x  x  x  x
    x  x  .  .
    x  .  x  .
    x  .  .  x

the first row has entries in all columns, and still (1, 0, 0, 0) and (0, 1, 1, 1) give all entries: those of the first
row are in the first column, too.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
    if max(map(len, rows), default=0) > most:
        return None
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


def star_coloured(rows: Mapping[int, Sequence[int]], most: int) -> dict[int, int] | None:
    """A colour for each column of a symmetric matrix, so that of each entry and its mirror image one stands alone.

    An entry stands alone if its row has no other one in a column of its colour. That is a star colouring of the graph
    whose edges are the entries: neighbours have different colours, and each path of four columns has three or more
    (Coleman and Moré 1984; Gebremedhin, Manne and Pothen 2005). Columns with most entries choose first.

    Args:
        rows: for each row the columns of its entries, where rows have the names of columns.
        most: how many colours there may be.

    Returns:
        The colours, numbered from 0; None if that many are not enough.

    Example:
        >>> star_coloured({0: [0, 1, 2, 3], 1: [0, 1], 2: [0, 2], 3: [0, 3]}, 2)
        {0: 0, 1: 1, 2: 1, 3: 1}
    """
    found: dict[int, int] = {}
    by_colour: dict[int, defaultdict[int, list[int]]] = {}  # the neighbours of a column that are coloured
    ends: dict[int, set[int]] = {}  # colours of neighbours that have another neighbour of this column's colour
    for column in sorted(rows, key=lambda column: -len(rows[column])):
        neighbours = [other for other in rows[column] if other in found and other != column]
        groups: defaultdict[int, list[int]] = defaultdict(list)
        for other in neighbours:
            groups[found[other]].append(other)
        taken = set(groups)
        for others in groups.values():  # of two, each would be inside of a path through both
            taken.update(*(by_colour[other] if len(others) > 1 else ends[other] for other in others))
        colour = next(colour for colour in count() if colour not in taken)
        if colour >= most:
            return None
        found[column], by_colour[column], ends[column] = colour, groups, set()
        for others in groups.values():
            if len(others) > 1:
                for other in others:
                    ends[other].add(colour)
        for other in neighbours:
            alike = by_colour[other][colour]
            alike.append(column)
            for each in alike if len(alike) == 2 else alike[2:][-1:]:
                ends[each].add(found[other])
    return found
