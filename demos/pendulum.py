"""Find the length and the damping of a pendulum from noisy measurements of its swings.

The pendulum falls by Newton's law, and mg.scan takes it through a thousand steps of Runge and Kutta's method, each of
which is four evaluations of that law. Backpropagation goes back through all of them: it says how the length and the
damping would have to change for the swings to pass closer to what was measured. The report is a folder with

    swings.png   what was measured, the swings of the first guess, and those of the pendulum that was found
    path.png     how far each pendulum is from the measurements, and the way from the guess to the one found
"""

from __future__ import annotations

import argparse
import math
import random
import time
from typing import TYPE_CHECKING, Any

from common import (
    BLUE,
    DARK,
    ORANGE,
    at_least_one,
    new_figure,
    optional,
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

np = optional("numpy")

GRAVITY = 9.81  # metres per second, per second
SECONDS = 5.0
LENGTH, DAMPING = 1.0, 0.25  # of the pendulum that is measured: metres, and 1 per second
GUESS = (1.35, 0.05)  # where the search begins
STARTS = (0.5, 1.5, 2.5)  # the angles from which it is let go, in radians
MEASUREMENTS = 50  # of each swing, one after every so many steps
NOISE = 0.1  # the standard deviation of a measurement, in radians

State = tuple[Any, Any]  # the angle, and how fast it changes; floats, Values or arrays


def law(state: State, length: Any, damping: Any) -> State:
    """How fast the angle and its speed change."""
    angle, speed = state
    return speed, -GRAVITY / length * mg.sin(angle) - damping * speed


def moved(state: State, rates: State, seconds: float) -> State:
    """Where the pendulum is after some time at these rates."""
    return state[0] + seconds * rates[0], state[1] + seconds * rates[1]


def swing(start: Any, length: Any, damping: Any, steps: int) -> Any:
    """The angle after each step; works on floats, on Values, and on whole grids of lengths and dampings."""
    seconds = SECONDS / steps

    def step(state: State, _: None) -> tuple[State, Any]:
        first = law(state, length, damping)
        second = law(moved(state, first, seconds / 2), length, damping)
        third = law(moved(state, second, seconds / 2), length, damping)
        fourth = law(moved(state, third, seconds), length, damping)
        for rates, share in ((first, 1 / 6), (second, 1 / 3), (third, 1 / 3), (fourth, 1 / 6)):
            state = moved(state, rates, share * seconds)
        return state, state[0]

    return mg.scan(step, (start, 0.0 * start), length=steps)[1]


def distance(angles: Any, measured: list[float]) -> Any:
    """The mean squared difference between a swing and what was measured of it."""
    every = len(angles) // len(measured)
    return sum((angles[every * n + every - 1] - angle) ** 2 for n, angle in enumerate(measured)) / len(measured)


def measure(steps: int) -> list[tuple[float, list[float]]]:
    """Swings of the pendulum, each with its start and what was measured of it."""
    every = steps // MEASUREMENTS
    swings = [(start, swing(start, LENGTH, DAMPING, steps)[every - 1 :: every][:MEASUREMENTS]) for start in STARTS]
    return [(start, [random.gauss(angle, NOISE) for angle in angles]) for start, angles in swings]


def draw_swings(swings: list[tuple[float, list[float]]], found: tuple[float, float], steps: int, path: Path) -> None:
    """Each swing over time: measured, guessed and found."""
    figure = new_figure(8, 7)
    panels = figure.subplots(len(swings), sharex=True)
    times = [SECONDS * (step + 1) / steps for step in range(steps)]
    every = steps // MEASUREMENTS
    for axes, (start, measured) in zip(panels, swings, strict=True):
        axes.plot(times, swing(start, *GUESS, steps), color=ORANGE, linewidth=1.5, linestyle="--", label="first guess")
        axes.plot(times, swing(start, *found, steps), color=BLUE, linewidth=2, label="found")
        axes.plot(times[every - 1 :: every][:MEASUREMENTS], measured, ".", color=DARK, markersize=5, label="measured")
        axes.set(ylabel="angle", title=f"Let go at {math.degrees(start):.0f}°")
        axes.axhline(0, color="#dddddd", linewidth=0.8, zorder=0)
    panels[-1].set_xlabel("seconds")
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside upper right", ncols=3)
    save_figure(figure, path)


def draw_path(
    swings: list[tuple[float, list[float]]], places: list[tuple[float, float]], steps: int, path: Path
) -> None:
    """The way of length and damping on a map of the distance."""
    from matplotlib.colors import LinearSegmentedColormap

    lengths, dampings = np.linspace(0.75, 1.6, 60), np.linspace(0.0, 0.6, 50)
    over, down = np.meshgrid(lengths, dampings)
    distances = sum(
        distance(swing(np.full(over.shape, start), over, down, steps), measured) for start, measured in swings
    ) / len(swings)
    figure = new_figure(8, 5.6)
    axes = figure.add_subplot(title="How far from what was measured", xlabel="length, m", ylabel="damping, 1/s")
    shades = LinearSegmentedColormap.from_list("distance", ["#a8c8dc", "#e3edf2", "#f7f3ec", "#ece2d0"])
    heights, levels = np.log10(distances), 24
    axes.contourf(lengths, dampings, heights, levels=levels, cmap=shades)
    axes.contour(lengths, dampings, heights, levels=levels, colors="white", linewidths=0.6, linestyles="-")
    axes.plot(*zip(*places, strict=True), ".-", color=BLUE, linewidth=1.5, markersize=4, label="the search")
    axes.plot(*places[0], "s", color=ORANGE, markersize=9, markeredgecolor="white", label="first guess")
    axes.plot(LENGTH, DAMPING, "*", color=DARK, markersize=16, markeredgecolor="white", label="the pendulum")
    axes.plot(*places[-1], "o", color=BLUE, markersize=8, markeredgecolor="white", label="found")
    axes.legend(loc="upper left", framealpha=0.9, edgecolor="none", borderpad=0.8)
    save_figure(figure, path)


def steps_of_a_swing(text: str) -> int:
    """The option that says how many steps a swing takes: there is one for each measurement at least."""
    if (steps := at_least_one(text)) < MEASUREMENTS:
        raise argparse.ArgumentTypeError(f"{steps} is below {MEASUREMENTS}, the measurements of a swing")
    return steps


def main() -> None:
    """Measure, search and draw."""
    parser = options(__doc__.partition("\n")[0], output="pendulum-report", epochs=150)
    parser.add_argument(
        "--steps", type=steps_of_a_swing, default=1000, help="how many steps a swing takes (default: %(default)s)"
    )
    arguments = read_options(parser, "numpy", "matplotlib")
    random.seed(arguments.seed)
    swings = measure(arguments.steps)
    print(f"Swings: {len(swings)}, measured {MEASUREMENTS} times each; computed in {arguments.steps:,} steps each")
    length, damping = mg.Value(GUESS[0], label="length"), mg.Value(GUESS[1], label="damping")
    places = [GUESS]

    def loss(start: float, measured: list[float]) -> mg.Value:
        return distance(swing(start, length, damping, arguments.steps), measured)

    rates = watched(mg.optim.cosine(0.03, 0.003, arguments.epochs), arguments.epochs, arguments)
    begin = time.perf_counter()
    history = mg.fit(
        loss,
        swings,
        mg.optim.Adam([length, damping], rates),
        epochs=arguments.epochs,
        batch_size=len(swings),
        seed=arguments.seed,
        progress=False if arguments.quiet else None,
        compile=arguments.compile,
        callback=lambda history: places.append((length.data, damping.data)),
    )
    trained(history, time.perf_counter() - begin)
    for name, guess, found, true in zip(
        ("Length", "Damping"), GUESS, (length.data, damping.data), (LENGTH, DAMPING), strict=True
    ):
        print(f"{name}: guessed {guess:.2f}, found {found:.4f}, measured was one of {true:.2f}")
    draw_swings(swings, (length.data, damping.data), arguments.steps, arguments.output / "swings.png")
    draw_path(swings, places, arguments.steps, arguments.output / "path.png")
    print(f"Report: {arguments.output}/")


if __name__ == "__main__":
    run(main)
