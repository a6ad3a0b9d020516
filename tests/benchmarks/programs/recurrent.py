"""A recurrent network that predicts the next number of a series: a tanh layer 32 wide, a step at a time."""

import itertools
import math
import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

WIDTH = 32


def data(steps: int, width: int = WIDTH) -> tuple[Numbers, Numbers]:
    """Weights, and a series of a number more than there are steps: two sines and some noise."""
    rng = random.Random(11)
    scale = width**-0.5
    parameters = {
        "recurrent": [[rng.gauss(0.0, scale) for _ in range(width)] for _ in range(width)],
        "input": [rng.gauss(0.0, 1.0) for _ in range(width)],
        "bias": [rng.gauss(0.0, 0.1) for _ in range(width)],
        "output": [rng.gauss(0.0, scale) for _ in range(width)],
        "output bias": 0.0,
    }
    series = [math.sin(0.3 * t) + 0.5 * math.sin(0.11 * t) + rng.gauss(0.0, 0.05) for t in range(steps + 1)]
    return parameters, {"series": series}


def scalars(w: Numbers, given: Numbers) -> Any:
    series = given["series"]
    state = [0.0] * len(w["bias"])
    errors = []
    for number, following in itertools.pairwise(series):
        rows = zip(w["recurrent"], w["input"], w["bias"], strict=True)
        state = [mg.tanh(mg.dot(row, state) + weight * number + bias) for row, weight, bias in rows]
        errors.append(mg.dot(w["output"], state) + w["output bias"] - following)
    return mg.dot(errors, errors) / len(errors)


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same in arrays, the states from step to step."""
    series = given["series"]

    def step(state: Any, number: Any) -> tuple[Any, Any]:
        state = xp.tanh(w["recurrent"] @ state + w["input"] * number + w["bias"])
        return state, state

    _, states = xp.scan(step, xp.zeros(w["bias"].shape), series[:-1])
    errors = states @ w["output"] + w["output bias"] - series[1:]
    return (errors * errors).mean()


def numpy_gradient(w: Numbers, given: Numbers) -> tuple[float, Numbers]:
    """Backpropagation through time."""
    import numpy as np

    series = given["series"]
    steps, width = len(series) - 1, len(w["bias"])
    states = np.zeros((steps + 1, width))
    driven = np.outer(series[:-1], w["input"]) + w["bias"]
    for t in range(steps):
        states[t + 1] = np.tanh(w["recurrent"] @ states[t] + driven[t])
    errors = states[1:] @ w["output"] + w["output bias"] - series[1:]
    of_errors = 2 / steps * errors
    slopes = 1 - states[1:] ** 2
    of_sums = np.empty((steps, width))
    later = np.zeros(width)
    for t in range(steps - 1, -1, -1):
        of_sums[t] = slopes[t] * (of_errors[t] * w["output"] + later)
        later = of_sums[t] @ w["recurrent"]
    return float(errors @ errors) / steps, {
        "recurrent": of_sums.T @ states[:-1],
        "input": series[:-1] @ of_sums,
        "bias": of_sums.sum(0),
        "output": of_errors @ states[1:],
        "output bias": of_errors.sum(),
    }


def recurrent(steps: int, width: int = WIDTH) -> Program:
    title = f"recurrent net, {width} wide, {steps:,} steps"
    return Program(title, partial(data, steps, width), scalars, arrays, numpy_gradient)
