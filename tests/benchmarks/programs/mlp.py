"""A network of one hidden layer for images of digits, on a batch: 784-256-10."""

import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

SIZES = (784, 256, 10)


def data(batch: int, sizes: tuple[int, int, int] = SIZES) -> tuple[Numbers, Numbers]:
    """Weights, and a batch of images and their classes."""
    rng = random.Random(42)
    inputs, hidden, outputs = sizes

    def matrix(rows: int, columns: int) -> list[list[float]]:
        return [[rng.gauss(0.0, (2 / columns) ** 0.5) for _ in range(columns)] for _ in range(rows)]

    parameters = {
        "hidden": matrix(hidden, inputs),
        "hidden bias": [0.0] * hidden,
        "output": matrix(outputs, hidden),
        "output bias": [0.0] * outputs,
    }
    images = [[rng.random() for _ in range(inputs)] for _ in range(batch)]
    return parameters, {"images": images, "classes": [rng.randrange(outputs) for _ in range(batch)]}


def scalars(w: Numbers, given: Numbers) -> Any:
    outputs = []
    for image in given["images"]:
        layer = zip(w["hidden"], w["hidden bias"], strict=True)
        hidden = [mg.relu(mg.dot(row, image) + bias) for row, bias in layer]
        layer = zip(w["output"], w["output bias"], strict=True)
        outputs.append([mg.dot(row, hidden) + bias for row, bias in layer])
    return mg.losses.cross_entropy(outputs, given["classes"])


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    hidden = xp.relu(given["images"] @ w["hidden"].T + w["hidden bias"])
    return xp.cross_entropy(hidden @ w["output"].T + w["output bias"], given["classes"])


def numpy_gradient(w: Numbers, given: Numbers) -> tuple[float, Numbers]:
    """Backpropagation by hand."""
    import numpy as np

    images, classes = given["images"], given["classes"]
    batch = np.arange(len(images))
    sums = images @ w["hidden"].T + w["hidden bias"]
    hidden = np.maximum(sums, 0)
    scores = hidden @ w["output"].T + w["output bias"]
    powers = np.exp(scores - scores.max(1, keepdims=True))
    shares = powers / powers.sum(1, keepdims=True)
    loss = -np.log(shares[batch, classes]).mean()
    shares[batch, classes] -= 1
    of_scores = shares / len(images)
    of_sums = (of_scores @ w["output"]) * (sums > 0)
    return float(loss), {
        "hidden": of_sums.T @ images,
        "hidden bias": of_sums.sum(0),
        "output": of_scores.T @ hidden,
        "output bias": of_scores.sum(0),
    }


def mlp(batch: int = 32, sizes: tuple[int, int, int] = SIZES, arguments: bool = False) -> Program:
    """The program for a batch of so many images, which are constants of it or its arguments."""
    how = "images as arguments" if arguments else "images closed over"
    title = f"MLP {'-'.join(map(str, sizes))}, batch of {batch}, {how}"
    return Program(title, partial(data, batch, sizes), scalars, arrays, numpy_gradient, arguments=arguments)
