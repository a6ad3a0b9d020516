"""A parabola through points: nothing but operators, a million and more of them.

So it tells what an operation costs until it runs, where there is nothing that could be said at once.
"""

import random
from functools import partial
from typing import Any

from programs.program import Numbers, Program


def data(points: int) -> tuple[Numbers, Numbers]:
    """Three coefficients, and points that lie near another parabola."""
    rng = random.Random(17)
    x = [rng.uniform(-1.0, 1.0) for _ in range(points)]
    y = [0.5 - x_i + 2.0 * x_i * x_i + rng.gauss(0.0, 0.1) for x_i in x]
    return {"coefficients": [rng.gauss(0.0, 1.0) for _ in range(3)]}, {"x": x, "y": y}


def scalars(w: Numbers, given: Numbers) -> Any:
    """The sum of the squares of the errors."""
    a, b, c = w["coefficients"]
    total = 0.0
    for x, y in zip(given["x"], given["y"], strict=True):
        error = a * x * x + b * x + c - y
        total = total + error * error
    return total


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    x, y = given["x"], given["y"]
    a, b, c = w["coefficients"]
    errors = a * x * x + b * x + c - y
    return (errors * errors).sum()


def parabola(points: int) -> Program:
    return Program(f"parabola in plain operators, {points:,} points", partial(data, points), scalars, arrays)
