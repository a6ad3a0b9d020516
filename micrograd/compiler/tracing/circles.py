"""Circles: places of which each is computed from others, iteration after iteration.

    a, b, c = sin(b), sin(c), a + x        # a reads b, b reads c, and c reads a: a circle of three
    d, e = a, d                            # e reads d, which reads a: a path of two

After three iterations, a is computed from itself again. Where several circles meet, places are computed from themselves
after as many iterations as the greatest number that divides the lengths of all: that is the period of these places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def members(bits: int) -> list[int]:
    """Which bits are set.

    Example:
        >>> members(0b1101)
        [0, 2, 3]
    """
    digits, found = bin(bits)[:1:-1], list[int]()
    at = digits.find("1")
    while at >= 0:
        found.append(at)
        at = digits.find("1", at + 1)
    return found


def is_long_or_uneven(reads: Mapping[int, list[int]], most: int) -> bool:
    """Whether a path through places that read others is long, or a circle does not come round in some iterations.

    Args:
        reads: which places each one reads.
        most: how long a path may be, and how many iterations bring every circle round.

    Example:
        >>> is_long_or_uneven({0: [1], 1: [0], 2: [1]}, 8), is_long_or_uneven({0: [1], 1: [2], 2: [0]}, 8)
        (False, True)
    """
    lengths: dict[int, int] = {}  # of the longest path from a place on, through places that are in no circle
    for part in _parts_that_read_each_other(reads):
        further = [lengths[other] for place in part for other in reads[place] if other in lengths]
        is_circle = len(part) > 1
        length = max(further, default=-1) + (not is_circle)
        if length > most or (is_circle and most % _period(part, reads)):
            return True
        lengths.update(dict.fromkeys(part, length))
    return False


def _period(part: list[int], reads: Mapping[int, list[int]]) -> int:
    """The greatest number that divides the lengths of all circles among places that read each other."""
    depth, waiting, period = {part[0]: 0}, [part[0]], 0
    inside = set(part)
    while waiting:
        place = waiting.pop()
        for other in inside.intersection(reads[place]):
            if other not in depth:
                depth[other] = depth[place] + 1
                waiting.append(other)
            period = math.gcd(period, depth[place] + 1 - depth[other])
    return period


def _parts_that_read_each_other(reads: Mapping[int, list[int]]) -> Iterator[list[int]]:
    """The strongly connected components, each after those that it reads: the algorithm of Tarjan (1972)."""
    number: dict[int, int] = {}
    lowest: dict[int, int] = {}
    path: list[int] = []
    done: set[int] = set()
    for root in reads:
        stack = [] if root in number else [(root, iter(reads[root]))]
        while stack:
            place, others = stack[-1]
            if place not in number:
                number[place] = lowest[place] = len(number)
                path.append(place)
            for other in others:
                if other not in number:
                    stack.append((other, iter(reads[other])))
                    break
                if other not in done:
                    lowest[place] = min(lowest[place], number[other])
            else:
                stack.pop()
                if stack:
                    above = stack[-1][0]
                    lowest[above] = min(lowest[above], lowest[place])
                if lowest[place] == number[place]:
                    part = [path.pop()]
                    while part[-1] != place:
                        part.append(path.pop())
                    done.update(part)
                    yield part
