"""ADBench's Gaussian mixture: the logarithm of its likelihood and of a Wishart prior, with data as its generator draws.

Šrajer, Kukelova and Fitzgibbon, A benchmark of selected algorithmic differentiation tools on some problems in computer
vision and machine learning, 2018. A component's inverse covariance is Q^T Q with a lower triangular Q: the parameters
are the logarithms of its diagonal, and what is below the diagonal, column by column.
"""

import math
import random
from functools import partial
from typing import Any

import micrograd as mg
from programs.program import Numbers, Program

GAMMA, M = 1.0, 0  # of the Wishart prior


def data(dimensions: int, components: int, points: int) -> tuple[Numbers, Numbers]:
    """Means are drawn evenly from 0 to 1, everything else normally."""
    rng = random.Random(31)

    def normal(rows: int, columns: int) -> list[list[float]]:
        return [[rng.gauss(0.0, 1.0) for _ in range(columns)] for _ in range(rows)]

    parameters = {
        "weights": normal(1, components)[0],
        "means": [[rng.random() for _ in range(dimensions)] for _ in range(components)],
        "diagonals": normal(components, dimensions),
        "below": normal(components, dimensions * (dimensions - 1) // 2),
    }
    return parameters, {"points": normal(points, dimensions)}


def below_diagonal(dimensions: int) -> list[tuple[int, int]]:
    """Rows and columns of what is below the diagonal, in ADBench's order."""
    return [(row, column) for column in range(dimensions) for row in range(column + 1, dimensions)]


def scalars(w: Numbers, given: Numbers) -> Any:
    """The logarithm of the likelihood of the points, and of the prior."""
    points = given["points"]
    dimensions = len(points[0])
    positions = below_diagonal(dimensions)
    components = []
    for weight, mean, logs, numbers in zip(w["weights"], w["means"], w["diagonals"], w["below"], strict=True):
        lower = dict(zip(positions, numbers, strict=True))
        rows = [[lower[row, column] for column in range(row)] for row in range(dimensions)]
        components.append((weight + sum(logs), mean, [mg.exp(log) for log in logs], rows))
    likelihood = 0.0
    for point in points:
        terms = []
        for constant, mean, diagonal, rows in components:
            centred = [x - m for x, m in zip(point, mean, strict=True)]
            turned = [diagonal[0] * centred[0]]
            turned += [diagonal[i] * centred[i] + mg.dot(rows[i], centred[:i]) for i in range(1, dimensions)]
            terms.append(constant - 0.5 * mg.dot(turned, turned))
        likelihood += mg.logsumexp(terms)
    prior = 0.0
    for (_, _, diagonal, _), logs, numbers in zip(components, w["diagonals"], w["below"], strict=True):
        prior += 0.5 * GAMMA**2 * sum(q * q for q in [*diagonal, *numbers]) - M * sum(logs)
    normalised = likelihood - len(points) * mg.logsumexp(w["weights"])
    return normalised + prior + constant_part(dimensions, len(components), len(points))


def arrays(xp: Any, w: Numbers, given: Numbers) -> Any:
    points = given["points"]
    count, dimensions = points.shape
    rows, columns = zip(*below_diagonal(dimensions), strict=True)
    logs, diagonals = w["diagonals"], xp.exp(w["diagonals"])
    lower = xp.placed(w["below"], (dimensions, dimensions), rows, columns)
    centred = points[:, None, :] - w["means"]
    turned = diagonals * centred + xp.einsum("kij,nkj->nki", lower, centred)
    terms = w["weights"] + logs.sum(1) - 0.5 * (turned * turned).sum(2)
    prior = 0.5 * GAMMA**2 * ((diagonals**2).sum() + (w["below"] ** 2).sum()) - M * logs.sum()
    normalised = xp.logsumexp(terms, 1).sum() - count * xp.logsumexp(w["weights"], 0)
    return normalised + prior + constant_part(dimensions, len(logs), count)


def constant_part(dimensions: int, components: int, points: int) -> float:
    """What no parameter changes, as ADBench adds it."""
    freedom = dimensions + M + 1
    gammas = sum(math.lgamma(0.5 * freedom - 0.5 * i) for i in range(dimensions))
    gammas += 0.25 * dimensions * (dimensions - 1) * math.log(math.pi)
    of_prior = freedom * dimensions * math.log(GAMMA / math.sqrt(2)) - gammas
    return -points * dimensions * 0.5 * math.log(2 * math.pi) - components * of_prior


def gmm(dimensions: int, components: int, points: int = 1000) -> Program:
    """The program for so many dimensions, components and points."""
    title = f"ADBench GMM, d {dimensions}, k {components}, n {points:,}"
    return Program(title, partial(data, dimensions, components, points), scalars, arrays)
