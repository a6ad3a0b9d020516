"""Programs that decide on numbers: ``python tests/benchmarks/flow.py``, about three minutes; JAX where it is installed.

Each runs at several inputs, which take different paths, with the gradient. The best of several rounds counts, per call,
in processor time. What was not seen before is compiled before the first round.

A second table has what a decision costs: beside the same program without questions, where calls take eight known paths
in turn, and where there are more paths than are kept. Its figures are medians of rounds that alternate.
"""

import argparse
import random
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from time import process_time
from typing import Any

from run import table

import micrograd as mg
from micrograd import Value


def newton(x: Any) -> Any:
    """The square root, until it is one."""
    found = x
    while abs(found * found - x) > 1e-9 * x:
        found = 0.5 * (found + x / found)
    return found


def newton_by_while_loop(x: Any) -> Any:
    """The same with mg.while_loop."""
    return mg.while_loop(lambda y: abs(y * y - x) > 1e-9 * x, lambda y: 0.5 * (y + x / y), x)


def bouncing_ball(x: Any, steps: int = 200) -> Any:
    """The height of a ball that bounces off the floor, after some steps."""
    height, speed = x, 0.0 * x
    for _ in range(steps):
        speed = speed - 0.01 * 9.81
        height = height + 0.01 * speed
        if height < 0:
            height, speed = -0.9 * height, -0.9 * speed
    return height


def bouncing_ball_by_where(x: Any, steps: int = 200) -> Any:
    """The same, with the answer as data: one body for all histories."""
    height, speed = x, 0.0 * x
    for _ in range(steps):
        speed = speed - 0.01 * 9.81
        height = height + 0.01 * speed
        factor = mg.where(height < 0, -0.9, 1.0)
        height, speed = factor * height, factor * speed
    return height


def one_runge_kutta_step(x: Any, y: Any, step: Any) -> tuple[Any, Any]:
    """What follows y by y' = -x * y, and how wrong that may be."""

    def slope(y: Any) -> Any:
        return -x * y

    first = slope(y)
    second = slope(y + step * 0.5 * first)
    third = slope(y + step * 0.75 * second)
    following = y + step * (2.0 * first + 3.0 * second + 4.0 * third) / 9.0
    return following, abs(step * (-5.0 * first + 6.0 * second + 8.0 * third - 9.0 * slope(following)) / 72.0)


def adaptive_runge_kutta(x: Any) -> Any:
    """Solve y' = -x * y from 1, to time 2, with a step that the estimated error decides."""
    time, y, step = 0.0, 1.0, 0.25
    while time < 2.0:
        step = min(step, 2.0 - time)
        following, error = one_runge_kutta_step(x, y, step)
        if error < 1e-4:
            time, y = time + step, following
            step = 2.0 * step if error < 1e-5 else step
        else:
            step = 0.5 * step
    return y


def runge_kutta_by_while_loop(x: Any, library: Any = mg, while_loop: Any = mg.while_loop) -> Any:
    """Solve the same to time 20 with a thousandth of the error, by the loop of a library."""

    def body(state: Any) -> Any:
        time, y, step = state
        step = library.minimum(step, 20.0 - time)
        following, error = one_runge_kutta_step(x, y, step)
        fits = error < 1e-7
        time, y = library.where(fits, time + step, time), library.where(fits, following, y)
        return time, y, step * library.where(fits, library.where(error < 1e-8, 2.0, 1.0), 0.5)

    start = (0.0, 1.0, 0.25) if library is mg else (0.0 * x, 1.0 + 0.0 * x, 0.25 + 0.0 * x)  # JAX asks for types alike
    return while_loop(lambda state: state[0] < 20.0, body, start)[1]


def american_option(x: Any, steps: int = 20) -> Any:
    """A put on a binomial tree that may be exercised at any time."""
    up, discount = 1.02, 0.9995
    chance = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
    values = [mg.maximum(1.0 - x * up ** (2 * n - steps), 0.0) for n in range(steps + 1)]
    for step in reversed(range(steps)):
        values = [
            mg.maximum(discount * (chance * values[n + 1] + (1.0 - chance) * values[n]), 1.0 - x * up ** (2 * n - step))
            for n in range(step + 1)
        ]
    return values[0]


def sorting(x: Any) -> Any:
    """The weighted sum of five numbers in order, by Python's sorted."""
    numbers = sorted([x, 2.0 - x, x * x - 1.0, 0.5 * x + 0.4, 3.0 * x - 2.0])
    return sum(n * number for n, number in enumerate(numbers))


def sorting_network(x: Any) -> Any:
    """The same by comparators, which make no path."""
    numbers = [x, 2.0 - x, x * x - 1.0, 0.5 * x + 0.4, 3.0 * x - 2.0]
    for low, high in ((0, 3), (1, 4), (0, 2), (1, 3), (0, 1), (2, 4), (1, 2), (3, 4), (2, 3)):
        one, other = numbers[low], numbers[high]
        numbers[low], numbers[high] = mg.minimum(one, other), mg.maximum(one, other)
    return sum(n * number for n, number in enumerate(numbers))


def decision_tree(x: Any) -> Any:
    """Four questions, one after the other."""
    if x < 1.0:
        return mg.sin(x) if x < 0.5 else mg.cos(x) * x
    return mg.exp(-x) if x < 1.5 else mg.tanh(x) * x


PROGRAMS: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "Newton's root": (newton, (1.0, 9.0)),
    "Newton's root, `while_loop`": (newton_by_while_loop, (1.0, 9.0)),
    "bouncing ball, `if`": (bouncing_ball, (1.0, 5.0)),
    "bouncing ball, `mg.where`": (bouncing_ball_by_where, (1.0, 5.0)),
    "adaptive Runge-Kutta, `if`": (adaptive_runge_kutta, (0.5, 3.0)),
    "adaptive Runge-Kutta, `while_loop`": (runge_kutta_by_while_loop, (0.5, 3.0)),
    "American option": (american_option, (0.8, 1.2)),
    "sorting five numbers": (sorting, (0.1, 2.0)),
    "sorting network": (sorting_network, (0.1, 2.0)),
    "decision tree": (decision_tree, (0.1, 2.0)),
}


def in_jax() -> tuple[dict[str, Callable[[float], Any]], dict[str, Callable[[float], Any]]]:
    """Some of them compiled by JAX: value and gradient, and the value alone; none where JAX is not installed."""
    if find_spec("jax") is None:
        return {}, {}
    import jax
    from jax import lax
    from jax import numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def root(x: Any) -> Any:
        # while_loop has no reverse mode, so the gradient is that of the equation
        found = lax.while_loop(lambda y: abs(y * y - x) > 1e-9 * x, lambda y: 0.5 * (y + x / y), x)
        return lax.stop_gradient(found) + (x - lax.stop_gradient(found) ** 2) / (2.0 * lax.stop_gradient(found))

    def ball(x: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            height, speed = state
            speed = speed - 0.01 * 9.81
            height = height + 0.01 * speed
            state = lax.cond(height < 0, lambda h, s: (-0.9 * h, -0.9 * s), lambda h, s: (h, s), height, speed)
            return state, None

        return lax.scan(step, (x, 0.0 * x), None, length=200)[0][0]

    def tree(x: Any) -> Any:
        low = lambda x: lax.cond(x < 0.5, jnp.sin, lambda x: jnp.cos(x) * x, x)  # noqa: E731
        high = lambda x: lax.cond(x < 1.5, lambda x: jnp.exp(-x), lambda x: jnp.tanh(x) * x, x)  # noqa: E731
        return lax.cond(x < 1.0, low, high, x)

    def ordered(x: Any) -> Any:
        numbers = jnp.sort(jnp.stack([x, 2.0 - x, x * x - 1.0, 0.5 * x + 0.4, 3.0 * x - 2.0]))
        return jnp.dot(jnp.arange(5.0), numbers)

    def runge_kutta(x: Any) -> Any:
        return runge_kutta_by_while_loop(x, jnp, lax.while_loop)

    def option(x: Any, steps: int = 20) -> Any:
        up, discount = 1.02, 0.9995
        chance = (1.0 / discount - 1.0 / up) / (up - 1.0 / up)
        values = jnp.maximum(1.0 - x * up ** (2.0 * jnp.arange(steps + 1) - steps), 0.0)
        for step in reversed(range(steps)):
            held = discount * (chance * values[1:] + (1.0 - chance) * values[:-1])
            values = jnp.maximum(held, 1.0 - x * up ** (2.0 * jnp.arange(step + 1) - step))
        return values[0]

    def forwards(x: Any) -> Any:  # while_loop has no reverse mode, but a forward one
        return jax.jvp(runge_kutta, (x,), (1.0,))

    of = {"Newton's root": root, "Newton's root, `while_loop`": root, "decision tree": tree}
    of |= {"sorting five numbers": ordered, "sorting network": ordered, "American option": option}
    functions = {**of, "bouncing ball, `if`": ball, "bouncing ball, `mg.where`": ball}
    made = {name: jax.jit(jax.value_and_grad(function)) for name, function in functions.items()}
    made["adaptive Runge-Kutta, `while_loop`"] = jax.jit(forwards)
    functions["adaptive Runge-Kutta, `while_loop`"] = runge_kutta
    values = {name: jax.jit(function) for name, function in functions.items()}

    def numbers(fast: Callable[[float], Any], x: float) -> list[float]:
        return [float(part) for part in fast(x)]

    def number(fast: Callable[[float], Any], x: float) -> float:
        return float(fast(x))

    gradients: dict[str, Callable[[float], Any]] = {name: partial(numbers, fast) for name, fast in made.items()}
    return gradients, {name: partial(number, fast) for name, fast in values.items()}


def value_and_gradient(function: Callable[[Any], Any], x: float) -> tuple[float, float]:
    """What a user calls for one point."""
    point = Value(x)
    result = function(point)
    result.backward()
    return result.data, point.grad


def microseconds(function: Callable[[float], Any], points: list[float], rounds: int) -> float:
    """Of a call, on average over the points, in the best round."""
    best = float("inf")
    for _ in range(rounds + 1):  # the first compiles
        begin = process_time()
        for point in points:
            function(point)
        best = min(best, process_time() - begin)
    return best / len(points) * 1e6


# What deciding costs


def five_iterations(x: Any) -> Any:
    """Newton's root of 2, without questions."""
    found = x
    for _ in range(5):
        found = 0.5 * (found + x / found)
    return found


def in_order(x: Any) -> Any:
    """What sorting gives at 0.3, without questions."""
    return (x * x - 1.0) * 1.0 + x * 2.0 + (0.5 * x + 0.4) * 3.0 + (2.0 - x) * 4.0 + (3.0 * x - 2.0) * 0.0


def eight_paths(x: Any) -> Any:
    """Three questions, on the digits of 8 * x in base 2."""
    low = x if x < 0.5 else x - 0.5
    middle = low if low < 0.25 else low - 0.25
    factor = mg.sin(x) if middle < 0.125 else mg.cos(x)
    return factor * middle + low * x


def halved(x: Any) -> Any:
    """As many paths as there are sequences of large and small steps."""
    count = 0
    while x > 1.0:
        x, count = 0.5 * x if x > 3.0 else x - 0.3, count + 1
    return x * count


def medians(functions: dict[str, tuple[Callable[[float], Any], list[float]]], rounds: int) -> dict[str, float]:
    """The microseconds of a call of each: the median of rounds in which one comes after the other."""
    found: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(rounds + 1):  # the first compiles
        for name, (function, points) in functions.items():
            begin = process_time()
            for point in points:
                function(point)
            found[name].append((process_time() - begin) / len(points) * 1e6)
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def costs(rounds: int) -> list[list[str]]:
    """The rows of the second table."""
    lines = [["calls", "this", "compared", "with", "ratio"]]

    def gradient_of(function: Callable[[Any], Any]) -> Callable[[float], Any]:
        return partial(value_and_gradient, function)

    pairs: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
        "Newton's root of 2": (newton, five_iterations, 2.0),
        "sorting five numbers": (sorting, in_order, 0.3),
        "decision tree": (decision_tree, lambda x: mg.sin(x), 0.3),
    }
    for name, (asks, without, point) in pairs.items():
        both = {"asks": gradient_of(mg.compile(asks)), "without": gradient_of(mg.compile(without))}
        taken = medians({key: (each, [point] * 400) for key, each in both.items()}, rounds)
        ratio = f"{taken['asks'] / taken['without']:.2f} times"
        lines.append([name, f"{taken['asks']:.1f} µs", "without questions", f"{taken['without']:.1f} µs", ratio])
    fast = gradient_of(mg.compile(eight_paths))
    points = [0.0625 + 0.125 * number for number in (0, 5, 3, 6, 1, 4, 7, 2)]
    taken = medians({"in turn": (fast, points * 50), "one": (fast, points[:1] * 400)}, rounds)
    more = f"{taken['in turn'] - taken['one']:.1f} µs more"
    lines.append(["eight paths in turn", f"{taken['in turn']:.1f} µs", "one of them", f"{taken['one']:.1f} µs", more])
    draw = random.Random(1)
    for name, function, paths, (low, high) in (
        ("more paths than three are kept of", halved, 3, (1.0, 200.0)),
        ("four paths, of which one is kept", decision_tree, 1, (0.1, 2.0)),
    ):
        points = [draw.uniform(low, high) for _ in range(1200)]
        both = {"compiled": gradient_of(mg.compile(function, paths=paths)), "eager": gradient_of(function)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there are too many paths
            taken = medians({key: (each, points) for key, each in both.items()}, rounds)
        ratio = f"{taken['compiled'] / taken['eager']:.2f} times"
        lines.append([name, f"{taken['compiled']:.1f} µs", "eager", f"{taken['eager']:.1f} µs", ratio])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=40, help="inputs of each program")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    others, plain = in_jax()
    values = [["program", "compiled", "JAX"]]
    lines = [["program", "eager", "compiled", "times", "JAX", "paths"]]
    for name, (function, (low, high)) in PROGRAMS.items():
        draw = random.Random(0)
        points = [draw.uniform(low, high) for _ in range(options.points)]
        fast = mg.compile(function)
        for point in points:
            expected, found = value_and_gradient(function, point), value_and_gradient(fast, point)
            assert all(abs(a - b) <= 1e-9 * (1 + abs(a)) for a, b in zip(expected, found, strict=True)), (name, point)
        eager, compiled = (
            microseconds(partial(value_and_gradient, each), points, options.rounds) for each in (function, fast)
        )
        other = microseconds(others[name], points, options.rounds) if name in others else None
        if name in plain:
            both = (microseconds(each, points, options.rounds) for each in (fast, plain[name]))
            values.append([name, *(f"{each:,.1f} µs" for each in both)])
        shown = [f"{eager:,.0f} µs", f"{compiled:,.1f} µs", f"{eager / compiled:,.1f}"]
        lines.append([name, *shown, "" if other is None else f"{other:,.1f} µs", str(fast.cache_info().traces)])
    table("Programs that decide on numbers, value and gradient, one call", lines)
    table("The same, the value alone", values)
    table("What deciding costs, value and gradient, one call", costs(3 * options.rounds))


if __name__ == "__main__":
    main()
