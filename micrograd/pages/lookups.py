"""Tables of which a program takes rows by their number, as that of the letters of a word: found by how they are used.

A row of weights is multiplied by something and added up. A row that was taken from a table is used number by number;
or the table has other rows, which the program left alone, or took in another iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.value import Value


@dataclass(frozen=True, eq=False)
class Lookup:
    """A row that was taken once.

    Attributes:
        row: its number.
        takers: what uses its numbers, for each of them in their order.
    """

    row: int
    takers: list[list[Value]]


@dataclass(frozen=True, eq=False)
class Table:
    """A matrix of parameters of which rows are taken.

    Attributes:
        name: of the parameters.
        rows: all of them, also those that are not in the graph.
        lookups: in the order of the program.
    """

    name: str
    rows: list[list[Value]]
    lookups: list[Lookup]


def tables(
    nodes: Sequence[Value],
    users: Mapping[Value, Sequence[Value]],
    places: Mapping[Value, Place],
    iterations: Mapping[Value, object],
) -> list[Table]:
    """The tables of a graph, in the order in which it first takes of them.

    Args:
        nodes: the Values, each after its operands.
        users: of each, what uses it.
        places: where parameters are in their modules.
        iterations: for what was computed in one of several iterations of the same part of the program, which of them.

    Example:
        >>> tables([], {}, {}, {})
        []
    """
    rank = {node: index for index, node in enumerate(nodes)}
    found = []
    for name, rows in _matrices(places).items():
        used = {number: row for number, row in rows.items() if any(value in rank for value in row)}
        if not used or any(value not in rank for row in used.values() for value in row):
            continue
        taken_in = {frozenset(iterations.get(taker) for taker in users[row[0]]) for row in used.values()}
        is_part = len(used) < len(rows) or len(taken_in) > 1  # of weights, each iteration uses all rows
        lookups = [
            lookup for number, row in used.items() for lookup in _lookups(number, row, users, rank, iterations, is_part)
        ]
        if lookups:
            lookups.sort(key=lambda lookup: rank[lookup.takers[0][0]])
            found.append(Table(name, list(rows.values()), lookups))
    return sorted(found, key=lambda table: rank[table.lookups[0].takers[0][0]])


def _matrices(places: Mapping[Value, Place]) -> dict[str, dict[int, list[Value]]]:
    """The rows of the matrices of parameters, by the name of each."""
    matrices: dict[str, dict[int, dict[int, Value]]] = {}
    for value, place in places.items():
        if len(place.indices) == 2 and len(place.boxes) == 1:
            row, column = place.indices
            matrices.setdefault(place.boxes[0], {}).setdefault(row, {})[column] = value
    return {
        name: {number: [row[column] for column in sorted(row)] for number, row in sorted(rows.items())}
        for name, rows in matrices.items()
    }


def _lookups(
    number: int,
    row: list[Value],
    users: Mapping[Value, Sequence[Value]],
    rank: Mapping[Value, int],
    iterations: Mapping[Value, object],
    is_part: bool,
) -> list[Lookup]:
    """How often a row was taken; none where it is a row of weights."""
    takers = [sorted(users[value], key=rank.__getitem__) for value in row]
    if len({len(each) for each in takers}) > 1:
        return []
    if _are_added_up(takers, users):
        others = [operand for taker in takers[0] for operand in taker._operands() if operand is not row[0]]
        if not is_part or not all(other.is_leaf and other.requires_grad for other in others):
            return []
        kinds = [iterations.get(taker) for taker in takers[0]]
        return [
            Lookup(number, [[taker for taker in each if iterations.get(taker) == kind] for each in takers])
            for kind in dict.fromkeys(kinds)
        ]
    return [Lookup(number, [[each[place]] for each in takers]) for place in range(len(takers[0]))]


def _are_added_up(takers: list[list[Value]], users: Mapping[Value, Sequence[Value]]) -> bool:
    """Whether products of different numbers of a row come together in one sum, as those of weights do."""
    tops = [{_top(taker, users) for taker in each if taker._primitive.name == "mul"} for each in takers[:2]]
    return bool(len(tops) > 1 and tops[0] & tops[1])


def _top(node: Value, users: Mapping[Value, Sequence[Value]]) -> Value:
    """The sum of all that a product is a term of."""
    while len(users[node]) == 1 and users[node][0]._primitive.name == "add":
        node = users[node][0]
    return node
