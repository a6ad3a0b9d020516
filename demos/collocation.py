"""Swing up a pole on a cart with the least force: an optimal control problem, solved by direct collocation.

The unknowns are the state of cart and pole at each point of time, and the force there. The constraints say that each
state follows from the one before by Newton's law (the trapezoidal rule), that the pole hangs at the start, and that it
stands at the end. Each constraint depends on ten unknowns of hundreds, so the Jacobian is nearly empty. mg.nlp finds
where its entries are, and computes these and nothing else. IPOPT solves the problem where cyipopt is installed, and
SciPy elsewhere. The report is a folder with

    swing.png      how the cart moves, how the pole swings, and the force
    sparsity.png   where the entries of the Jacobian and of the Hessian are
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import BLUE, DARK, ORANGE, at_least_one, new_figure, optional, read_options, run, save_figure

import micrograd as mg

if TYPE_CHECKING:
    from collections.abc import Sequence

np = optional("numpy")

GRAVITY, LENGTH = 9.81, 0.5  # metres per second per second; of the pole, metres
CART, POLE = 1.0, 0.3  # kilograms
SECONDS, WAY = 2.0, 1.0  # how long it takes, and how far the cart is in the end, metres
STATE = 4  # where the cart is, the pole's angle (0 hangs, pi stands), and how fast both change
EACH = STATE + 1  # unknowns of a point of time: the state and the force


def law(point: Sequence[Any]) -> list[Any]:
    """How fast the state changes at a point of time (Kelly 2017, equations 6.1 and 6.2)."""
    _, angle, speed, turning, force = point
    sine, cosine = mg.sin(angle), mg.cos(angle)
    mass = CART + POLE * (1 - cosine**2)
    pull = LENGTH * POLE * sine * turning**2
    return [
        speed,
        turning,
        (pull + force + POLE * GRAVITY * cosine * sine) / mass,
        -(pull * cosine + force * cosine + (CART + POLE) * GRAVITY * sine) / (LENGTH * mass),
    ]


def points_of(x: Any) -> list[list[Any]]:
    """The unknowns, point by point."""
    return [[x[EACH * k + i] for i in range(EACH)] for k in range(len(x) // EACH)]


def effort(x: Any) -> Any:
    """The square of the force, over time, by the trapezoidal rule."""
    forces = [x[k] ** 2 for k in range(STATE, len(x), EACH)]
    step = SECONDS / (len(forces) - 1)
    return step * (sum(forces[1:-1], 0.5 * forces[0]) + 0.5 * forces[-1])


def defects(x: Any) -> list[Any]:
    """What must be 0: how far each state is from where the law leads from the one before, and both ends."""
    points = points_of(x)
    step = SECONDS / (len(points) - 1)
    rates = [law(point) for point in points]
    found = [
        points[k + 1][i] - points[k][i] - 0.5 * step * (rates[k][i] + rates[k + 1][i])
        for k in range(len(points) - 1)
        for i in range(STATE)
    ]
    for point, goal in (points[0], (0.0, 0.0, 0.0, 0.0)), (points[-1], (WAY, math.pi, 0.0, 0.0)):
        found += [point[i] - goal[i] for i in range(STATE)]
    return found


def guess(intervals: int) -> Any:
    """A straight line from the start to the end."""
    x = np.zeros((intervals + 1, EACH))
    x[:, 0], x[:, 1] = np.linspace(0, WAY, intervals + 1), np.linspace(0, math.pi, intervals + 1)
    return x.ravel()


def solve(program: Any, start: Any) -> tuple[Any, str]:
    """The solution, and who found it."""
    if (cyipopt := optional("cyipopt")) is not None:
        zeros = np.zeros(program.constraint_count)
        problem = cyipopt.Problem(program.variables, len(zeros), problem_obj=program, cl=zeros, cu=zeros)
        problem.add_option("print_level", 0)
        solution, _ = problem.solve(start)
        return solution, "IPOPT"
    from scipy.optimize import minimize

    found = minimize(
        program.objective,
        start,
        jac=program.gradient,
        hess=program.objective_hessian,
        constraints=program.scipy_constraint(0.0, 0.0),
        method="trust-constr",
        options={"gtol": 1e-6, "xtol": 1e-10, "maxiter": 1000},
    )
    return found.x, f"SciPy, in {found.nit} iterations"


def draw_swing(x: Any, path: Path) -> None:
    """The cart and the pole every few moments, and the force over time."""
    points = np.array(points_of(x))
    figure = new_figure(8, 5.6)
    above, below = figure.subplots(2, height_ratios=[3, 2])
    above.set(title="The pole swings up", xlabel="metres", aspect="equal")
    below.set(title="The force", xlabel="seconds", ylabel="newtons")
    shown = np.linspace(0, len(points) - 1, 13).round().astype(int)
    for number, (cart, angle, *_) in zip(shown, points[shown], strict=True):
        shade = 0.25 + 0.75 * number / len(points)
        ends = (cart, cart + LENGTH * math.sin(angle)), (0, -LENGTH * math.cos(angle))
        above.plot(*ends, color=BLUE, linewidth=2, alpha=shade)
        above.plot(*(end[1] for end in ends), "o", color=BLUE, markersize=7, alpha=shade)
        above.plot(cart, 0, "s", color=DARK, markersize=7, alpha=shade)
    below.plot(np.linspace(0, SECONDS, len(points)), points[:, STATE], color=ORANGE, linewidth=2)
    below.axhline(0, color="#dddddd", linewidth=0.8, zorder=0)
    save_figure(figure, path)


def draw_sparsity(program: Any, x: Any, path: Path) -> None:
    """Where the entries of both matrices are."""
    figure = new_figure(8, 4.6)
    hessian = program.hessianstructure()
    parts = ("Jacobian of the constraints", program.jacobianstructure()), ("Hessian, lower triangle", hessian)
    for axes, (title, (rows, columns)) in zip(figure.subplots(1, 2), parts, strict=True):
        count = program.constraint_count if "Jacobian" in title else program.variables
        axes.plot(columns, rows, "s", color=BLUE, markersize=max(0.4, 150 / len(x)), markeredgewidth=0)
        axes.set(title=title, xlabel=f"{len(rows):,} of {count * len(x):,} entries", aspect="equal")
        axes.set(xlim=(-0.5, len(x) - 0.5), ylim=(count - 0.5, -0.5))
    save_figure(figure, path)


def main() -> None:
    """Solve the problem, and draw what came out."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    add = parser.add_argument
    add("--output", type=Path, default=Path("collocation-report"), help="the folder for the report (%(default)s)")
    add("--intervals", type=at_least_one, default=50, help="how many intervals of time (default: %(default)s)")
    arguments = read_options(parser, "numpy", "scipy", "matplotlib")
    start = guess(arguments.intervals)
    begin = time.perf_counter()
    program = mg.nlp(effort, defects, start=start)
    ready = time.perf_counter() - begin
    entries = len(program.jacobianstructure()[0])
    print(f"Problem: {program.variables:,} variables, {program.constraint_count:,} constraints, {entries:,} slopes")
    solution, solver = solve(program, start)
    print(f"Solved by {solver}: {time.perf_counter() - begin - ready:.2f} s; derivatives were ready in {ready:.2f} s")
    print(f"Effort: {program.objective(solution):.3f}; largest defect {abs(program.constraints(solution)).max():.1e}")
    draw_swing(solution, arguments.output / "swing.png")
    draw_sparsity(program, solution, arguments.output / "sparsity.png")
    print(f"Report: {arguments.output}/")


if __name__ == "__main__":
    run(main)
