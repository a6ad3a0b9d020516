"""Where everything is on a page: Graphviz lays out each group by itself, with the groups in it closed.

The page opens a group by making room for it, which moves the rest apart and changes no order. So a few
small layouts serve every way to open and close the groups, and those of neurons that are alike are one.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from micrograd.draw.layout import Picture

POINTS = 72  # an inch; the page counts points as pixels
CARD, CONSTANT, GROUP = (132, 66), (64, 28), (164, 66)  # width and height; the page draws to this size
CAPTION = 18  # more height of a closed kernel, for the line that says its shape
KERNEL = (184, 66 + CAPTION)
MATRIX, IMAGE = 90, 136  # the longer side of a heat map, and of an image that has one on top
COLUMN = 5  # items that nothing connects, up to which they stand one below the other
GAP = 16  # between items that nothing connects
STRAIGHT_FROM = 100  # items; beyond, arrows that bend around what is in their way take Graphviz too long
MOST_SHAPES = 50  # beyond so many, parts of what is too much are no longer laid out by Graphviz
TANGLED = 2.5  # arrows for each item, from which on Graphviz takes seconds, and what it draws is no clearer


def arrange(graph: dict[str, Any]) -> dict[str, Any]:
    """The shapes of all groups, and which group has which.

    Args:
        graph: the graph, as passes() gives it.

    Returns:
        ``shapes``, each with its size, the places of its items and the routes between them; and
        ``contents``, for the whole (first) and each group its shape and its items: ``n3`` is the Value
        3, ``g1`` the group 1.

    Raises:
        ImportError: if graphviz or pygraphviz is not installed.
    """
    items, arrows = _contents(graph)
    shapes: dict[str, dict[str, Any]] = {}
    position: dict[str, int] = {}
    contents = []
    for place, inside in enumerate(items):
        is_stack = place > 0 and graph["groups"][place - 1]["kind"] == "stack"
        between = [] if is_stack else arrows[place]  # its members stand side by side, however they feed each other
        number = {item: index for index, item in enumerate(inside)}
        pairs = [(number[tail], number[head]) for tail, head in between]
        sizes = [_size(item, graph) for item in inside]
        key = f"{sizes} {pairs}"
        if key not in shapes:
            position[key] = len(shapes)
            is_part = place > 0 and graph["groups"][place - 1]["kind"] == "part"
            shapes[key] = _laid_out(sizes, pairs, is_quick=is_part and len(shapes) > MOST_SHAPES)
        contents.append({"shape": position[key], "items": inside})
    return {"shapes": list(shapes.values()), "contents": contents}


def _contents(graph: dict[str, Any]) -> tuple[list[list[str]], list[list[tuple[str, str]]]]:
    """For the whole and each group: the items right inside, and the arrows between these."""
    nodes, groups = graph["nodes"], graph["groups"]
    items: list[dict[str, None]] = [{} for _ in range(len(groups) + 1)]
    arrows: list[list[tuple[str, str]]] = [[] for _ in items]
    seen: set[tuple[str, str]] = set()
    paths: list[list[tuple[int, str]]] = []
    for index, node in enumerate(nodes):
        if node["folded"] is not None:
            paths.append([])
            continue
        paths.append(_path(f"n{index}", node["group"], groups))
        for place, item in paths[-1]:
            items[place][item] = None
        for operand in node["operands"]:
            if nodes[operand]["folded"] is not None:
                continue
            place, tail, head = _meeting(paths[operand], paths[-1])
            if tail[0] == head[0] == "n" or (tail, head) not in seen:  # a * a has two arrows; a pair of groups has one
                seen.add((tail, head))
                arrows[place].append((tail, head))
    return [sorted(inside, key=_rank) for inside in items], arrows


def _rank(item: str) -> int:
    """Groups come after Values, in their own order, so that the first neuron of a layer is on top."""
    return int(item[1:]) if item[0] == "g" else -1


def _path(item: str, group: int | None, groups: list[dict[str, Any]]) -> list[tuple[int, str]]:
    """The way to an item from outside: the groups it leads through, with the item right inside each; 0 is the whole."""
    path = []
    while group is not None:
        path.append((group + 1, item))
        item, group = f"g{group}", groups[group]["parent"]
    path.append((0, item))
    return path[::-1]


def _meeting(tail: list[tuple[int, str]], head: list[tuple[int, str]]) -> tuple[int, str, str]:
    """The innermost place that two paths share, and what each of them enters there."""
    depth = 0
    while tail[depth] == head[depth]:
        depth += 1
    return *tail[depth], head[depth][1]


def _size(item: str, graph: dict[str, Any]) -> tuple[int, int]:
    if item[0] == "g":
        group = graph["groups"][int(item[1:])]
        if len(group["shape"]) != 2:
            return KERNEL if group["kernel"] else GROUP
        longer = IMAGE if group["image"] else MATRIX
        rows, columns = (size * longer / max(group["shape"]) for size in group["shape"])
        if group["image"]:
            return max(150, round(columns) + 20), round(rows) + 50
        least = KERNEL[0] if group["kernel"] else 110
        return max(least, round(2 * columns) + 30), round(rows) + 48 + (
            CAPTION if group["kernel"] else 0
        )  # numbers and gradients, side by side
    return CONSTANT if graph["nodes"][int(item[1:])]["kind"] == "constant" else CARD


def _laid_out(sizes: list[tuple[int, int]], pairs: list[tuple[int, int]], is_quick: bool) -> dict[str, Any]:
    """The shape of a box with items of these sizes, and arrows between these pairs of them."""
    if not pairs and len(sizes) > 1:
        return _grid(sizes)
    if is_quick or (len(sizes) > STRAIGHT_FROM and len(pairs) > TANGLED * len(sizes)):
        return _in_layers(sizes, pairs)
    return _the_right_way_up(_read(_picture(sizes, pairs).pipe("plain", encoding="utf-8")))


def _the_right_way_up(shape: dict[str, Any]) -> dict[str, Any]:
    """The same shape, upside down where items of one column mostly stand in the reverse of their order."""
    columns: dict[int, list[float]] = {}
    for x, y, _, _ in shape["places"]:
        columns.setdefault(round(x), []).append(y)
    pairs = [pair for column in columns.values() for pair in combinations(column, 2)]
    if 2 * sum(first > second for first, second in pairs) <= len(pairs):
        return shape
    height = shape["height"]
    places = [[x, round(height - y, 1), *size] for x, y, *size in shape["places"]]
    routes = [
        [tail, head, [round(height - number, 1) if index % 2 else number for index, number in enumerate(points)]]
        for tail, head, points in shape["routes"]
    ]
    return shape | {"places": places, "routes": routes}


def _grid(sizes: list[tuple[int, int]]) -> dict[str, Any]:
    """Rows of items that nothing connects: a little wider than high, in their order."""
    width, height = max(width for width, _ in sizes) + GAP, max(height for _, height in sizes) + GAP
    columns = 1 if len(sizes) <= COLUMN else round((1.6 * len(sizes) * height / width) ** 0.5)
    rows = -(-len(sizes) // columns)
    places = [
        [(index % columns + 0.5) * width - GAP / 2, (index // columns + 0.5) * height - GAP / 2, *size]
        for index, size in enumerate(sizes)
    ]
    return {
        "width": min(columns, len(sizes)) * width - GAP,
        "height": rows * height - GAP,
        "places": places,
        "routes": [],
    }


def _in_layers(sizes: list[tuple[int, int]], pairs: list[tuple[int, int]]) -> dict[str, Any]:
    """Columns of items, each right of those that feed it; the page draws the arrows between them as it can."""
    layers = [0] * len(sizes)
    users: list[list[int]] = [[] for _ in sizes]
    waiting = [0] * len(sizes)
    for tail, head in pairs:
        users[tail].append(head)
        waiting[head] += 1
    ready = [item for item, count in enumerate(waiting) if not count]
    for item in ready:
        for user in users[item]:
            layers[user] = max(layers[user], layers[item] + 1)
            waiting[user] -= 1
            if not waiting[user]:
                ready.append(user)
    columns: dict[int, list[int]] = {}
    for item, layer in enumerate(layers):
        columns.setdefault(layer, []).append(item)
    width, height = max(width for width, _ in sizes) + 2 * GAP, max(height for _, height in sizes) + GAP
    rows = max(map(len, columns.values()))
    places = [[0.0, 0.0, *size] for size in sizes]
    for position, layer in enumerate(sorted(columns)):
        above = (rows - len(columns[layer])) / 2
        for row, item in enumerate(columns[layer]):
            places[item][:2] = (position + 0.5) * width - GAP, (above + row + 0.5) * height - GAP / 2
    return {"width": len(columns) * width - 2 * GAP, "height": rows * height - GAP, "places": places, "routes": []}


def _picture(sizes: list[tuple[int, int]], arrows: list[tuple[int, int]]) -> Picture:
    effort = f"{min(30.0, 3e3 / (len(sizes) + 1)):.3g}"  # without a bound Graphviz may work for minutes
    style = {"rankdir": "LR", "ranksep": "0.45", "nodesep": "0.2", "nslimit": effort, "nslimit1": effort}
    if len(sizes) > STRAIGHT_FROM:
        style |= {"splines": "line", "mclimit": "0.1"}
    picture = Picture(graph_attr=style, node_attr={"shape": "box", "fixedsize": "true", "label": ""})
    for index, (width, height) in reversed(list(enumerate(sizes))):  # Graphviz puts what is declared last on top
        picture.node(str(index), width=f"{width / POINTS:.4f}", height=f"{height / POINTS:.4f}")
    for tail, head in arrows:
        picture.edge(str(tail), str(head), arrowhead="none")
    return picture


def _read(plain: str) -> dict[str, Any]:
    """What Graphviz's plain format says, in points from the upper left corner."""
    height, width = 0.0, 0.0
    places: dict[int, list[float]] = {}
    routes: list[list[Any]] = []

    def point(x: str, y: str) -> list[float]:
        return [round(float(x) * POINTS, 1), round(height - float(y) * POINTS, 1)]

    for line in plain.splitlines():
        match line.split():
            case ["graph", _, w, h]:
                width, height = float(w) * POINTS, float(h) * POINTS
            case ["node", name, x, y, w, h, *_]:
                places[int(name)] = [*point(x, y), round(float(w) * POINTS, 1), round(float(h) * POINTS, 1)]
            case ["edge", tail, head, count, *rest]:
                points = [number for i in range(0, 2 * int(count), 2) for number in point(rest[i], rest[i + 1])]
                routes.append([int(tail), int(head), points])
    ordered = [places[index] for index in sorted(places)]
    return {"width": round(width, 1), "height": round(height, 1), "places": ordered, "routes": routes}
