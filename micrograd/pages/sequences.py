"""What a page shows of a program that reads a sequence: tokens, heads of attention, predictions, and its blocks.

All of it is found in the graph: the rows that are taken from a table are the tokens, and a Value belongs to the
position of the token that it was computed from, but for what attention took from others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.draw.text import enclosed
from micrograd.engine.value import Value
from micrograd.pages.blocks import Positions, blocks
from micrograd.pages.lookups import tables
from micrograd.pages.softmaxes import softmaxes
from micrograd.pages.spelling import Word
from micrograd.pages.totals import total_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.draw.folding.groups import Grouping
    from micrograd.pages.lookups import Table
    from micrograd.pages.softmaxes import Head, Prediction

NO_CLASSES: Sequence[str] = ()


def sequence_of(
    root: Value,
    nodes: Sequence[Value],
    grouping: Grouping,
    classes: Sequence[str] = NO_CLASSES,
    tokens: Sequence[str | int] = NO_CLASSES,
) -> tuple[dict[str, Any] | None, dict[Value, Value]]:
    """What a page has to know of the tokens, heads and predictions in a graph.

    Args:
        root: the result.
        nodes: the Values as the page has them, each after its operands.
        grouping: their boxes and the places of parameters.
        classes: what the classes are called.
        tokens: those to show first, where they are others than those of the graph.

    Returns:
        Plain data, None where there is no prediction; and Values beyond the graph that the page takes for other tokens,
        each with one that it stands beside: the other rows of the table, and a zero for a loss that is left out.

    Raises:
        ValueError: if there are other classes than there are names, or for tokens that the program cannot read.

    Example:
        >>> import micrograd as mg
        >>> from micrograd.draw.folding.groups import Grouping
        >>> loss = mg.losses.cross_entropy([mg.Value(1.0), mg.Value(2.0)], 1)
        >>> nodes = mg.topological_order(loss)
        >>> sequence_of(loss, nodes, Grouping(nodes), ["cat", "dog"])[0]["classes"]
        ['cat', 'dog']
    """
    users: dict[Value, list[Value]] = {node: [] for node in nodes}
    for node in nodes:
        for operand in dict.fromkeys(node._operands()):
            users[operand].append(node)
    found = softmaxes(nodes, users)
    if not found.predictions:
        if classes:
            raise ValueError("there are no classes to name in this graph: it has no softmax that becomes a prediction")
        _refuse(tokens)
        return None, {}
    counts = sorted({len(prediction.scores) for prediction in found.predictions})
    if classes and len(classes) not in counts:
        raise ValueError(f"this graph has softmaxes of {', '.join(map(str, counts))} classes, not of {len(classes)}")
    number = {node: index for index, node in enumerate(nodes)}
    table = _table_of_tokens(nodes, users, grouping, counts)
    positions = Positions(nodes, table, found)
    data: dict[str, Any] = {
        "classes": list(map(enclosed, classes)),
        "predictions": [_prediction(each, positions, number) for each in found.predictions],
    }
    if table is None:
        _refuse(tokens)
        return data, {}
    beside = {value: table.rows[table.lookups[0].row][0] for row in table.rows for value in row if value not in number}
    total = total_of(root, [prediction.result for prediction in found.predictions])
    if total is not None:
        beside[zero := Value(0.0, requires_grad=False)] = total.of
    word = Word(nodes, table, positions, found.predictions, classes, total).described(tokens)
    number |= {value: len(number) + index for index, value in enumerate(beside)}
    return data | {
        "table": enclosed(table.name),
        "word": word,
        "rows": [[number[value] for value in row] for row in table.rows],
        "tokens": [
            {"row": lookup.row, "takers": [[number[taker] for taker in takers] for takers in lookup.takers]}
            for lookup in table.lookups
        ],
        "total": total
        and {
            "places": [[number[node], place] for node, place in total.places],
            "count": None if total.count is None else number[total.count],
            "zero": number[zero],
        },
        "heads": [_head(head, positions, number) for head in found.heads if head in positions.of_head],
        **blocks(nodes, users, positions, found),
    }, beside


def _refuse(tokens: Sequence[str | int]) -> None:
    if tokens:
        raise ValueError("tokens: this graph has none: no rows of a module's table are taken by their number")


def _table_of_tokens(
    nodes: Sequence[Value],
    users: dict[Value, list[Value]],
    grouping: Grouping,
    counts: Sequence[int],
) -> Table | None:
    """The table that tokens are rows of: one with as many rows as there are classes, else the first."""
    candidates = tables(nodes, users, grouping.places, _iterations(nodes, grouping))
    return next((table for table in candidates if len(table.rows) in counts), candidates[0] if candidates else None)


def _iterations(nodes: Sequence[Value], grouping: Grouping) -> dict[Value, object]:
    """The member of the outermost stack that each Value is in."""
    member: list[int | None] = []
    for index, parent in enumerate(grouping.parents):
        outer = None if parent is None else member[parent]
        is_member = parent is not None and grouping.groups[parent].kind == "stack"
        member.append(outer if outer is not None else index if is_member else None)
    return {node: None if (group := grouping.of[node]) is None else member[group] for node in nodes}


def _head(head: Head, positions: Positions, number: dict[Value, int]) -> dict[str, Any]:
    layer, place = positions.place_of_head[head]
    read = [pair for pair in zip(positions.read_by[head], head.weights, strict=True) if pair[0] is not None]
    return {
        "layer": layer,
        "head": place,
        "from": positions.of_head[head],
        "to": [position for position, _ in read],
        "weights": [number[weight] for _, weight in read],
    }


def _prediction(prediction: Prediction, positions: Positions, number: dict[Value, int]) -> dict[str, Any]:
    return {
        "position": positions.of_result(prediction.scores[0]),
        "scores": [number[score] for score in prediction.scores],
        "target": prediction.target,
        "result": number[prediction.result],
    }
