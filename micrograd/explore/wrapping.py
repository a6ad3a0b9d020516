"""Long rows, wrapped as a text is: a chain of sixty operations is read line by line, from left to right."""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

LONG = 1_600  # pixels, up to which a row stays as it is
SHAPE = 1.6  # how much wider than high the rows are together, at most
MOST_ROWS = 40
LANE = 32  # between two rows, where arrows go from one to the next
SIDE = 14  # left of the rows, and beside the ends of arrows


def wrapped(shape: dict[str, Any]) -> dict[str, Any]:
    """The shape of a box, in rows one below the other where it is long and low.

    Args:
        shape: the size, the places of items and the routes between them, as arrange() has them.

    Example:
        >>> places = [[100.0 * number + 30, 30, 60, 60] for number in range(30)]
        >>> shape = wrapped({"width": 2960.0, "height": 60.0, "places": places, "routes": []})
        >>> shape["width"], shape["height"], sorted({y for _, y, _, _ in shape["places"]})
        (588.0, 428.0, [30.0, 122.0, 214.0, 306.0, 398.0])
    """
    width, height, places = shape["width"], shape["height"], shape["places"]
    if width <= LONG or width <= SHAPE * height:
        return shape
    for count in range(2, MOST_ROWS + 1):
        starts = _starts(places, width / count)
        row_of = [bisect_right(starts, x, lo=1) - 1 for x, *_ in places]
        inner = [route for route in shape["routes"] if row_of[route[0]] == row_of[route[1]]]
        tops, lanes, bottom = _heights(places, row_of, inner, len(starts))
        if width / count <= SHAPE * bottom:
            break

    def moved(x: float, y: float, row: int) -> list[float]:
        return [round(x - starts[row] + SIDE, 1), round(y + tops[row], 1)]

    new_places = [[*moved(x, y, row), w, h] for (x, y, w, h), row in zip(places, row_of, strict=True)]
    routes = [
        [
            tail,
            head,
            [number for at in range(0, len(points), 2) for number in moved(points[at], points[at + 1], row_of[tail])],
        ]
        for tail, head, points in inner
    ]
    for tail, head, _ in shape["routes"]:
        if row_of[tail] != row_of[head]:
            lane_below, lane_above = lanes[row_of[tail]], lanes[row_of[head] - 1]
            routes.append([tail, head, _around(new_places[tail], new_places[head], lane_below, lane_above)])
    right = max(x + w / 2 for x, _, w, _ in new_places) + SIDE
    return {"width": right, "height": round(bottom, 1), "places": new_places, "routes": routes}


def _starts(places: list[list[float]], length: float) -> list[float]:
    """Where rows of about this length begin: where no item is cut, and the first at 0."""
    starts = [0.0]
    right = 0.0
    for x, _, w, _ in sorted(places, key=lambda place: place[0] - place[2] / 2):
        left = x - w / 2
        if left >= right and left - starts[-1] > length:
            starts.append(left)
        right = max(right, x + w / 2)
    return starts


def _heights(
    places: list[list[float]], row_of: list[int], routes: list[list[Any]], count: int
) -> tuple[list[float], list[float], float]:
    """How far down each row moves, where the lanes below the rows are, and where the last row ends."""
    extents: list[list[float]] = [[] for _ in range(count)]
    for (_, y, _, h), row in zip(places, row_of, strict=True):
        extents[row] += [y - h / 2, y + h / 2]
    for tail, _, points in routes:
        extents[row_of[tail]] += points[1::2]
    tops, lanes, bottom = [], [], 0.0
    for extent in extents:
        tops.append(bottom - min(extent))
        bottom += max(extent) - min(extent)
        lanes.append(bottom + LANE / 2)
        bottom += LANE
    return tops, lanes, bottom - LANE


def _around(tail: list[float], head: list[float], below: float, above: float) -> list[float]:
    """An arrow from one row to another: through the lane below the first and that above the second."""
    start, end = (tail[0] + tail[2] / 2, tail[1]), (head[0] - head[2] / 2, head[1])
    corners = [start, (start[0] + SIDE / 2, start[1]), (start[0] + SIDE / 2, below)]
    if above != below:
        corners += [(SIDE / 4, below), (SIDE / 4, above)]
    corners += [(end[0] - SIDE / 2, above), (end[0] - SIDE / 2, end[1]), end]
    path = [*corners[0]]
    for (x, y), (u, v) in pairwise(corners):
        path += [(2 * x + u) / 3, (2 * y + v) / 3, (x + 2 * u) / 3, (y + 2 * v) / 3, u, v]
    return [round(number, 1) for number in path]
