"""Predators and prey fitted to what was counted: Runge-Kutta's method of order 4, in a plain loop and with mg.scan.

The rates of x' = a x - b x y and y' = d x y - c y and the first numbers of both animals are the parameters; the loss
is the mean square of the errors after each step.
"""

from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

STEP = 0.01
TRUE = {"a": 1.1, "b": 0.4, "c": 0.4, "d": 0.1, "prey": 10.0, "predators": 5.0}
GUESS = {"a": 1.0, "b": 0.45, "c": 0.42, "d": 0.12, "prey": 9.0, "predators": 5.5}


def data(steps: int) -> tuple[Numbers, Numbers]:
    """A guess, and what was counted after each step: what the true parameters give."""
    counted = []
    state = TRUE["prey"], TRUE["predators"]
    for _ in range(steps):
        state = step(TRUE, state)
        counted.append(list(state))
    return dict(GUESS), {"counted": counted}


def change(w: Numbers, state: Any) -> tuple[Any, Any]:
    """How fast the numbers of prey and predators change."""
    x, y = state
    met = x * y
    return w["a"] * x - w["b"] * met, w["d"] * met - w["c"] * y


def step(w: Numbers, state: Any) -> tuple[Any, Any]:
    """Both numbers a step later."""
    x, y = state
    x1, y1 = change(w, (x, y))
    x2, y2 = change(w, (x + STEP / 2 * x1, y + STEP / 2 * y1))
    x3, y3 = change(w, (x + STEP / 2 * x2, y + STEP / 2 * y2))
    x4, y4 = change(w, (x + STEP * x3, y + STEP * y3))
    return x + STEP / 6 * (x1 + 2 * x2 + 2 * x3 + x4), y + STEP / 6 * (y1 + 2 * y2 + 2 * y3 + y4)


def scalars(w: Numbers, given: Numbers) -> Any:
    state = w["prey"], w["predators"]
    total = 0.0
    for prey, predators in given["counted"]:
        state = step(w, state)
        total += (state[0] - prey) ** 2 + (state[1] - predators) ** 2
    return total / len(given["counted"])


def with_scan(w: Numbers, given: Numbers) -> Any:
    """The same, without a loop of its own."""

    def after(state: Any, counted: Any) -> tuple[Any, Any]:
        x, y = step(w, state)
        prey, predators = counted
        return (x, y), (x - prey) ** 2 + (y - predators) ** 2

    _, errors = mg.scan(after, (w["prey"], w["predators"]), given["counted"])
    return sum(errors) / len(errors)


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same; there is nothing here for arrays but the errors."""

    def after(state: Any, _: Any) -> tuple[Any, Any]:
        state = step(w, state)
        return state, xp.stack(state)

    _, states = xp.scan(after, (w["prey"], w["predators"]), given["counted"])
    errors = states - given["counted"]
    return (errors * errors).sum() / len(given["counted"])


def runge_kutta(steps: int, scan: bool = False) -> Program:
    title = f"Runge-Kutta, {steps:,} steps, {'mg.scan' if scan else 'plain loop'}"
    return Program(title, partial(data, steps), with_scan if scan else scalars, arrays, c="runge_kutta.c")
