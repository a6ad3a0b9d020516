"""Teach a small network to tell two interleaving moons apart, and draw where it draws the line.

The points are random, and what is minimised is micrograd's classic: the hinge loss, which asks for a
score above 1 on one moon and below -1 on the other, and a little L2 regularisation. The report is a
folder with

    boundary.png   the points, and the network's score of every place around them
"""

from __future__ import annotations

import math
import random
import time
from typing import TYPE_CHECKING

from common import (
    BLUE,
    DARK,
    ORANGE,
    new_figure,
    options,
    read_options,
    run,
    save_figure,
    trained,
    watched,
)

import micrograd as mg

if TYPE_CHECKING:
    from pathlib import Path

POINTS = 100
BATCH_SIZE = 10

Point = tuple[list[float], int]  # two coordinates, and 1 or -1 for the moon it is on


def make_moons(count: int, noise: float = 0.1) -> list[Point]:
    """Points on two half circles of radius 1, scattered around them by some noise."""
    points = []
    for index in range(count):
        angle = random.uniform(0, math.pi)
        x, y, moon = math.cos(angle), math.sin(angle), 1
        if index % 2:
            x, y, moon = 1 - x, 0.5 - y, -1
        points.append(([random.gauss(x, noise), random.gauss(y, noise)], moon))
    return points


def accuracy(model: mg.nn.MLP, points: list[Point]) -> float:
    """The fraction of points whose score has the sign of their moon."""
    with mg.no_grad():
        return sum((model(place) > 0) == (moon > 0) for place, moon in points) / len(points)


def draw_boundary(model: mg.nn.MLP, points: list[Point], path: Path) -> None:
    """The score as colour, the boundary where it is 0, the margins where it is 1 and -1, the points on top."""
    from matplotlib.colors import LinearSegmentedColormap

    xs = [-1.5 + column / 16 for column in range(65)]
    ys = [-1.0 + row / 16 for row in range(41)]
    with mg.no_grad():
        scores = [[model([x, y]).data for x in xs] for y in ys]

    figure = new_figure(8, 5.4)
    axes = figure.add_subplot(title="Two moons, and the score between them", aspect="equal")
    colors = LinearSegmentedColormap.from_list("moons", [ORANGE, "white", BLUE])
    edges = (xs[0], xs[-1], ys[0], ys[-1])
    axes.imshow(scores, colors, alpha=0.3, vmin=-1, vmax=1, extent=edges, origin="lower", interpolation="bilinear")
    lines = axes.contour(
        xs, ys, scores, levels=[-1, 0, 1], colors=DARK, linewidths=[1, 2, 1], linestyles=[":", "-", ":"]
    )
    axes.clabel(lines, levels=[-1, 1], fmt="%+.0f", fontsize=9)
    for moon, color, marker in ((1, BLUE, "o"), (-1, ORANGE, "s")):
        places = [place for place, which in points if which == moon]
        across, up = zip(*places, strict=True)
        axes.scatter(across, up, color=color, marker=marker, edgecolor="white", s=45, zorder=3)
    axes.axis("off")
    save_figure(figure, path)


def main() -> None:
    """Train, test and draw."""
    parser = options(__doc__.partition("\n")[0], output="moons-report", epochs=30)
    arguments = read_options(parser, "matplotlib")
    random.seed(arguments.seed)
    points, others = make_moons(POINTS), make_moons(POINTS)
    model = mg.nn.MLP(2, [16, 16, 1])
    print(f"Points: {len(points)} to learn from, {len(others)} others to be tested on")
    print(f"Network: 2 coordinates, 16 and 16 relu neurons, 1 score: {len(model.parameters())} parameters")

    def loss(place: list[float], moon: int) -> mg.Value:
        return mg.losses.hinge(model(place), moon)

    # Weight decay is the gradient of the L2 term, 0.0001 times the sum of the squared parameters.
    steps = arguments.epochs * math.ceil(POINTS / BATCH_SIZE)
    rates = watched(mg.optim.linear(0.1, 0.01, steps), steps, arguments)
    optimizer = mg.optim.SGD(model.parameters(), rates, momentum=0.9, weight_decay=0.0002)
    start = time.perf_counter()
    history = mg.fit(
        loss,
        points,
        optimizer,
        epochs=arguments.epochs,
        batch_size=BATCH_SIZE,
        seed=arguments.seed,
        progress=False if arguments.quiet else None,
        compile=arguments.compile,
    )
    trained(history, time.perf_counter() - start)
    print(f"Accuracy: {accuracy(model, points):.1%} on its points, {accuracy(model, others):.1%} on the others")
    draw_boundary(model, points, arguments.output / "boundary.png")
    print(f"Report: {arguments.output / 'boundary.png'}")


if __name__ == "__main__":
    run(main)
