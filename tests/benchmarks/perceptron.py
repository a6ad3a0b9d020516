"""micrograd's demonstration: a perceptron 2-16-16-1 that tells two moons apart, the whole batch a step.

100 points, ReLU layers, the max-margin loss plus L2 regularisation. As there, the coordinates become
leaves at each step.
"""

import math
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

TITLE = "MLP 2-16-16-1, one training step on 100 points"
SIZES = (2, 16, 16, 1)
POINTS = 100
DECAY = 1e-4


def parameters(leaf: Callable[[float], Any]) -> dict[str, list[list[Any]]]:
    """The layers by name, a row a neuron: its weights and then its bias."""
    rng = random.Random(1337)
    return {
        f"layer {number}": [[leaf(rng.uniform(-1, 1)) for _ in range(inputs)] + [leaf(0.0)] for _ in range(neurons)]
        for number, (inputs, neurons) in enumerate(pairwise(SIZES))
    }


def loss(layers: dict[str, list[list[Any]]], leaf: Callable[[float], Any]) -> Any:
    """The mean margin by which points are missed, and the squares of all parameters."""
    margins = []
    for x, y, side in two_moons():
        score = evaluate(list(layers.values()), [leaf(x), leaf(y)])
        margins.append((1 + -side * score).relu())
    squares = sum(p * p for layer in layers.values() for neuron in layer for p in neuron)
    return sum(margins) * (1.0 / len(margins)) + DECAY * squares


def evaluate(layers: list[list[list[Any]]], inputs: list[Any]) -> Any:
    """The score of one point: above 0 for one moon, below 0 for the other."""
    *hidden, last = layers
    for layer in hidden:
        inputs = [neuron(row, inputs).relu() for row in layer]
    return neuron(last[0], inputs)


def neuron(row: list[Any], inputs: list[Any]) -> Any:
    """The weighted sum of the inputs, from the bias on."""
    *weights, bias = row
    return sum((w * x for w, x in zip(weights, inputs, strict=True)), bias)


def two_moons() -> list[tuple[float, float, int]]:
    """Points on two half circles that reach into each other, with some noise, and their side, 1 or -1."""
    rng = random.Random(7)
    points = []
    for number in range(POINTS):
        side = 1 if number % 2 else -1
        angle = rng.uniform(0.0, math.pi)
        x, y = math.cos(angle), math.sin(angle)
        if side == 1:
            x, y = 1.0 - x, 0.5 - y
        points.append((x + rng.gauss(0.0, 0.1), y + rng.gauss(0.0, 0.1), side))
    return points
