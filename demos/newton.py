"""Walk down a curved valley with Newton's method and with gradient descent, and draw both walks.

The valley is Rosenbrock's function, flat along its floor and a hundred times steeper across it. Gradient
descent knows the slope only: it zigzags or creeps. Newton's method knows the curvature too, from exact
second derivatives, and steps to where a parabola of that slope and curvature has its lowest point. The
report is a folder with

    paths.png        both walks on a map of the valley
    convergence.png  how far each was from the lowest point, step by step
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from common import BLUE, DARK, ORANGE, at_least_one, new_figure, optional, read_options, run, save_figure, with_report

import micrograd as mg

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np

    Point = np.ndarray  # x and y
else:
    np = optional("numpy")

START = (-1.2, 1.0)  # Rosenbrock's own
LOWEST = (1.0, 1.0)
RATE = 0.001  # of gradient descent; with twice as much it leaves the valley


def valley(point: Any) -> Any:
    """Rosenbrock's function (1960); works on Values, floats and whole grids of floats."""
    x, y = point
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


slope = mg.grad(valley)  # the gradient: two first derivatives
curvature = mg.hessian(valley)  # the Hessian: two by two second derivatives


def gradient_step(point: Point) -> Point:
    """A short step straight down the slope."""
    return point - RATE * slope(point)


def newton_step(point: Point) -> Point:
    """The step to the lowest point of the parabola, halved until it leads down."""
    step = np.linalg.solve(curvature(point), -slope(point))
    while valley(point + step) > valley(point):
        step /= 2
    return point + step


def walk(take_step: Callable[[Point], Point], steps: int) -> np.ndarray:
    """The points from the start on, one a row, until there are enough or no step leads anywhere."""
    points = [np.array(START)]
    for _ in range(steps):
        if np.linalg.norm(slope(points[-1])) < 1e-12:
            break
        points.append(take_step(points[-1]))
    return np.array(points)


def distances(points: np.ndarray) -> np.ndarray:
    """How far each point is from the lowest one."""
    return np.linalg.norm(points - LOWEST, axis=1)


def print_walk(title: str, points: np.ndarray, shown: list[int], seconds: float) -> None:
    """A table of some of the points of a walk."""
    print(f"\n{title}: {len(points) - 1:,} steps, {seconds:.2f} s")
    print("  step         x         y    height  distance")
    for step in shown:
        (x, y), height, distance = points[step], valley(points[step]), distances(points)[step]
        print(f"{step:6,}  {x:8.5f}  {y:8.5f}  {height:8.2g}  {distance:8.2g}")


def draw_paths(newton: np.ndarray, descent: np.ndarray, path: Path) -> None:
    """Both walks on a map of the valley, with lines of equal height, and how far gradient descent was when."""
    from matplotlib.colors import LinearSegmentedColormap

    xs, ys = np.linspace(-1.75, 1.55, 661), np.linspace(-0.6, 2.1, 541)
    heights = np.log10(valley(np.meshgrid(xs, ys)) + 0.01)  # the sum keeps the lowest point in the picture
    levels = np.linspace(-2, 3.5, 23)
    figure = new_figure(8, 6.6)
    axes = figure.add_subplot(title="Two ways down Rosenbrock's valley", xlabel="x", ylabel="y", aspect="equal")
    shades = LinearSegmentedColormap.from_list("valley", ["#a8c8dc", "#e3edf2", "#f7f3ec", "#ece2d0"])
    axes.contourf(xs, ys, heights, levels=levels, cmap=shades)
    axes.contour(xs, ys, heights, levels=levels, colors="white", linewidths=0.7)
    axes.plot(*descent.T, color=ORANGE, linewidth=5, alpha=0.55, label=f"gradient descent, {len(descent) - 1:,} steps")
    label = f"Newton's method, {len(newton) - 1} steps"
    axes.plot(*newton.T, "o-", color=BLUE, linewidth=1.5, markersize=6, markeredgecolor="white", label=label)
    for step, side in ((100, "left"), (1000, "right"), (10_000, "right")):
        if step < len(descent):
            axes.plot(*descent[step], "s", color=ORANGE, markersize=7, markeredgecolor="white")
            away = (12 if side == "left" else -12, 5)
            label = f"step {step:,}"
            axes.annotate(
                label, descent[step], xytext=away, textcoords="offset points", color=ORANGE, weight="bold", ha=side
            )
    axes.plot(*LOWEST, "*", color=DARK, markersize=17, markeredgecolor="white", label="the lowest point")
    axes.annotate("start", START, xytext=(-8, -4), textcoords="offset points", ha="right", weight="bold")
    axes.legend(loc="lower left", framealpha=0.9, edgecolor="none", borderpad=0.8)
    save_figure(figure, path)


def draw_convergence(newton: np.ndarray, descent: np.ndarray, path: Path) -> None:
    """The distance to the lowest point after each step, both on logarithmic axes."""
    figure = new_figure(8, 4.2)
    axes = figure.add_subplot(title="How far from the lowest point", xlabel="step", ylabel="distance")
    axes.set(xscale="log", yscale="log", ylim=(1e-12, 10))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(color="#eeeeee", linewidth=0.8)
    walks = (("gradient descent", descent, ORANGE, "-"), ("Newton's method", newton, BLUE, "o-"))
    for label, points, color, style in walks:
        steps, far = range(1, len(points)), distances(points)[1:]
        axes.plot(steps, far, style, color=color, linewidth=2, markeredgecolor="white", label=label)
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, path)


def main() -> None:
    """Walk, print and draw."""
    parser = with_report(__doc__.partition("\n")[0], "newton-report")
    parser.add_argument(
        "--steps", type=at_least_one, default=10_000, help="how many steps a walk may take (default: %(default)s)"
    )
    arguments = read_options(parser, "numpy", "matplotlib")

    print("The gradient and the Hessian at the start, both exact:")
    start = np.array(START)
    print(f"{slope(start)}\n{curvature(start)}")
    walks = []
    for title, take_step in (("Newton's method", newton_step), ("Gradient descent", gradient_step)):
        begin = time.perf_counter()
        points = walk(take_step, arguments.steps)
        last = len(points) - 1
        shown = list(range(last)) if last < 30 else [0, *(10**power for power in range(9) if 10**power < last)]
        print_walk(title, points, [*shown, last], time.perf_counter() - begin)
        walks.append(points)
    newton, descent = walks
    draw_paths(newton, descent, arguments.output / "paths.png")
    draw_convergence(newton, descent, arguments.output / "convergence.png")
    print(f"\nReport: {arguments.output}/")


if __name__ == "__main__":
    run(main)
