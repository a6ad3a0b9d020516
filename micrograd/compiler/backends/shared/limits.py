"""Limits: how many bytes compiled functions keep, so that a process may run for months.

    limit("MICROGRAD_CODE_MB")     # 64 megabytes, or what the variable says in the environment

What was not used for longest is given up first. It is made again when it is needed.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import fields, is_dataclass
from typing import Any

MEGABYTES = {
    "MICROGRAD_PROGRAMS_MB": 256,  # programs of one compiled function, each for another structure of its arguments
    "MICROGRAD_CODE_MB": 64,  # native code in memory, of all functions together
    "MICROGRAD_CACHE_MB": 512,  # native code on disk
}


def limit(variable: str) -> float:
    """How many bytes may be kept.

    Args:
        variable: one of MEGABYTES; the environment may have another number of megabytes under this name.

    Raises:
        ValueError: if what is there is not a finite number of at least 0. An empty text is as good as none.
    """
    given = os.environ.get(variable) or MEGABYTES[variable]
    try:
        most = float(given) * 1e6
    except ValueError:
        most = -1.0
    if not 0 <= most < math.inf:
        raise ValueError(f"{variable} must be a number of megabytes, 0 or more, not {given!r}")
    return most


def bytes_of(thing: Any) -> int:
    """About how many bytes there are in arrays, in lists, tuples, dicts and dataclasses of them, and in these."""
    found, stack, seen = 0, [thing], set[int]()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        found += getattr(item, "nbytes", 0) or sys.getsizeof(item)
        if isinstance(item, (list, tuple)):
            stack += item
        elif isinstance(item, dict):
            stack += item.values()
        elif is_dataclass(item) and not isinstance(item, type):
            stack += [getattr(item, field.name) for field in fields(item)]
    return found
