"""A Gaussian process: how likely its numbers at some points are, by the factor of Cholesky.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1. In scalars the factor is computed
in three loops, as one writes them down: each of its sums has a term from each column before, and no two are alike.
"""

import math
import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

DIMENSIONS = 2


def data(points: int) -> tuple[Numbers, Numbers]:
    """Points of a square, and a wave with some noise; the parameters are logarithms."""
    rng = random.Random(23)
    positions = [[rng.uniform(-2.0, 2.0) for _ in range(DIMENSIONS)] for _ in range(points)]
    numbers = [math.sin(x) * math.cos(y) + rng.gauss(0.0, 0.1) for x, y in positions]
    return {"lengths": [0.1, -0.2], "height": 0.2, "noise": -1.5}, {"points": positions, "numbers": numbers}


def scalars(w: Numbers, given: Numbers) -> Any:
    """Minus the logarithm of the marginal likelihood."""
    scales = [mg.exp(-length) for length in w["lengths"]]
    height, noise = mg.exp(2 * w["height"]), mg.exp(2 * w["noise"])
    scaled = [[x * scale for x, scale in zip(point, scales, strict=True)] for point in given["points"]]
    factor: list[list[Any]] = []
    solved: list[Any] = []
    for i, number in enumerate(given["numbers"]):
        row: list[Any] = []
        factor.append(row)
        for j in range(i + 1):
            apart = [a - b for a, b in zip(scaled[i], scaled[j], strict=True)]
            left = height + noise if i == j else height * mg.exp(-0.5 * mg.dot(apart, apart))
            for k in range(j):
                left = left - row[k] * factor[j][k]
            row.append(mg.sqrt(left) if i == j else left / factor[j][j])
        for k in range(i):
            number = number - row[k] * solved[k]
        solved.append(number / row[i])
    logarithms = sum(mg.log(row[-1]) for row in factor)
    return 0.5 * mg.dot(solved, solved) + logarithms + 0.5 * len(solved) * math.log(2 * math.pi)


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    covariances, _ = covariance(xp, w, given["points"])
    factor = xp.linalg.cholesky(covariances)
    solved = xp.solved_below(factor, given["numbers"])
    return 0.5 * (solved * solved).sum() + xp.log(factor.diagonal()).sum() + 0.5 * len(solved) * math.log(2 * math.pi)


def covariance(xp: Any, w: Numbers, points: Any) -> tuple[Any, Any]:
    """The covariances of the numbers, and how far points are apart in each dimension."""
    scaled = points * xp.exp(-w["lengths"])
    apart = scaled[:, None] - scaled[None, :]
    smooth = xp.exp(2 * w["height"]) * xp.exp(-0.5 * (apart * apart).sum(2))
    return smooth + xp.exp(2 * w["noise"]) * xp.eye(len(points)), apart


def numpy_gradient(w: Numbers, given: Numbers) -> tuple[float, Numbers]:
    """By the inverse of the covariances; section 5.4 of the book."""
    import numpy as np

    numbers, noise = given["numbers"], np.exp(2 * w["noise"])
    covariances, apart = covariance(np, w, given["points"])
    smooth, inverse = covariances - noise * np.eye(len(numbers)), np.linalg.inv(covariances)
    weights = inverse @ numbers
    of_covariances = 0.5 * (inverse - np.outer(weights, weights))
    value = 0.5 * (numbers @ weights + np.linalg.slogdet(covariances)[1] + len(numbers) * math.log(2 * math.pi))
    return float(value), {
        "lengths": ((of_covariances * smooth)[:, :, None] * apart**2).sum((0, 1)),
        "height": 2 * (of_covariances * smooth).sum(),
        "noise": 2 * noise * of_covariances.trace(),
    }


def gaussian_process(points: int) -> Program:
    return Program(f"Gaussian process, {points:,} points", partial(data, points), scalars, arrays, numpy_gradient)
