"""What it costs that results remember their calls: ``python tests/benchmarks/scopes.py``, about two minutes.

Steps of programs, forward and backward, with scopes and with the bare functions in their place take turns, the garbage
collector on, in processor time. The smaller what is called, the more it costs to remember its calls.
"""

import argparse
import sys
from pathlib import Path
from random import uniform
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

from run import table

import micrograd as mg
from micrograd import functional, loops, losses

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "demos"))

from collections.abc import Callable

import names

LEAST = 0.01  # seconds; what is shorter is called more often
STEPS = 8  # of which the collector comes by in some


class Scale(mg.nn.Module):
    """One product, as small as a module can be."""

    def __init__(self) -> None:
        self.factor = mg.Value(0.5)

    def forward(self, x: Any) -> Any:
        return self.factor * x


class Linear(mg.nn.Module):
    """A matrix times a vector, as a custom module."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.weights = [[mg.Value(uniform(-1, 1)) for _ in range(inputs)] for _ in range(outputs)]

    def __call__(self, x: list[Any]) -> list[Any]:
        return [mg.dot(row, x) for row in self.weights]


def values(count: int) -> list[Any]:
    return [mg.Value(uniform(-1, 1)) for _ in range(count)]


def programs() -> dict[str, Callable[[], Any]]:
    """What gives a loss, by what is called in it."""
    few, some, vocabulary, w, u = values(4), values(10), values(27), mg.Value(0.5), mg.Value(0.25)
    small, first, second = Linear(4, 4), Linear(16, 32), Linear(32, 10)
    scale, pixels, transformer = Scale(), values(16), names.Transformer(27, 8)

    def turn(state: Any, x: Any) -> tuple[Any, None]:
        return mg.tanh(w * state + x), None

    def turn_of_16(state: list[Any], x: list[Any]) -> tuple[list[Any], Any]:
        state = [mg.tanh(mg.dot(state, x) * w + mg.dot(x, x) * u) for _ in state]
        return state, state[0]

    return {
        "softmax of 4": lambda: mg.softmax(few)[0],
        "softmax of 10": lambda: mg.softmax(some)[0],
        "cross-entropy of 27": lambda: mg.losses.cross_entropy(vocabulary, 2),
        "module of one product": lambda: scale(w),
        "module of 4 x 4": lambda: sum(small(few)),
        "network 16-32-10 of modules, cross-entropy": lambda: mg.losses.cross_entropy(
            second([mg.relu(x) for x in first(pixels)]), 3
        ),
        "a name of seven letters, demos/names.py": lambda: transformer.loss([0, 5, 13, 13, 1, 12, 25, 14, 0]),
        "scan of 100 turns of 3 operations": lambda: mg.scan(turn, mg.Value(0.0), some * 10)[0],
        "scan of 20 turns of 100 operations": lambda: mg.mean(mg.scan(turn_of_16, few * 4, [few * 4] * 20)[1]),
    }


def bare() -> list[Any]:
    """What puts the bare functions in the place of those whose results remember their calls."""
    return [
        patch.object(functional, "_softmax", functional._softmax_of),
        patch.object(functional, "_logsumexp", functional._logsumexp_of),
        patch.object(functional, "_mean", functional._mean_of),
        patch.object(losses, "_cross_entropy", losses._cross_entropy_of_row),
        patch.object(loops, "observed_iterations", lambda *_: lambda results: None),
        patch.object(Scale, "forward", Scale.forward.__wrapped__),
        patch.object(Scale, "__call__", lambda self, *arguments, **named: self.forward(*arguments, **named)),
        *(patch.object(of, "__call__", of.__call__.__wrapped__) for of in (Linear, names.Transformer)),
        patch.object(names.Transformer, "attention", names.Transformer.attention.__wrapped__),
        patch.object(names, "normalised", names.normalised.__wrapped__),
    ]


def timed(loss: Callable[[], Any], steps: int) -> float:
    begin = process_time()
    for _ in range(steps):
        loss().backward()
    return (process_time() - begin) / steps


def compared(loss: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """How long a bare step takes, and how many times as long one with scopes.

    What comes first changes from round to round: the garbage collector, which comes by every few steps, would else
    meet the same one again and again.
    """
    patches = bare()
    steps = max(STEPS, round(LEAST / timed(loss, 3)))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for is_bare in (True, False) if number % 2 else (False, True):
            for each in patches if is_bare else ():
                each.start()
            seconds[is_bare].append(timed(loss, steps))
            for each in patches if is_bare else ():
                each.stop()
    return min(seconds[True]), median(seconds[False]) / median(seconds[True])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=40, help="pairs of each program (default: 40)")
    rounds = parser.parse_args().rounds
    lines = [["program", "microseconds without scopes", "with scopes, times as long"]]
    for name, loss in programs().items():
        seconds, ratio = compared(loss, rounds)
        lines.append([name, f"{seconds * 1e6:,.1f}", f"{ratio:.3f}"])
    table("a step with scopes, beside one without", lines)


if __name__ == "__main__":
    main()
