"""An irregular program: operations at random on numbers at random, so that nothing repeats.

Its numbers stay between -1 and 1. It stands for what generators of code write, for mechanics, say.
"""

import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

KEPT = 100  # numbers at a time; each result takes the place of one of them

Step = tuple[int, int, int, int]


def steps(count: int) -> list[Step]:
    """For each operation which it is, the positions of its operands, and where the result goes."""
    rng = random.Random(23)
    return [(rng.randrange(3), rng.randrange(KEPT), rng.randrange(KEPT), rng.randrange(KEPT)) for _ in range(count)]


def data() -> tuple[Numbers, Numbers]:
    """The first numbers."""
    rng = random.Random(29)
    return {"numbers": [rng.uniform(-1.0, 1.0) for _ in range(KEPT)]}, {}


def scalars(planned: list[Step], w: Numbers, given: Numbers) -> Any:
    """The sum of the last numbers."""
    return sum(run(planned, w["numbers"], mg.tanh))


def arrays(planned: list[Step], xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same of arrays without axes: there is nothing to be put side by side."""
    return sum(run(planned, w["numbers"], xp.tanh))


def run(planned: list[Step], numbers: Any, tanh: Any) -> list[Any]:
    """The numbers after all operations."""
    numbers = [*numbers]
    for kind, first, second, target in planned:
        x, y = numbers[first], numbers[second]
        numbers[target] = tanh(x + y) if kind == 0 else 0.5 * (x - y) if kind == 1 else x * y
    return numbers


def irregular(count: int) -> Program:
    planned = steps(count)
    title = f"irregular, {count:,} operations at random"
    return Program(title, data, partial(scalars, planned), partial(arrays, planned))
