"""A network of 784-256-10 on one sample: 203,530 parameters."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TITLE = "network 784-256-10, one sample"
INPUTS, HIDDEN, OUTPUTS = 784, 256, 10


def large_parameters(leaf: Callable[[float], Any]) -> dict[str, Any]:
    """The matrices and biases by name, the same numbers each time."""
    rng = random.Random(42)

    def matrix(rows: int, columns: int) -> list[list[Any]]:
        return [[leaf(rng.gauss(0.0, (2 / columns) ** 0.5)) for _ in range(columns)] for _ in range(rows)]

    return {
        "hidden": matrix(HIDDEN, INPUTS),
        "hidden bias": [leaf(0.0) for _ in range(HIDDEN)],
        "output": matrix(OUTPUTS, HIDDEN),
        "output bias": [leaf(0.0) for _ in range(OUTPUTS)],
    }


def large_sample() -> tuple[list[float], int]:
    """Pixels and a class."""
    rng = random.Random(7)
    return [rng.random() for _ in range(INPUTS)], 3
