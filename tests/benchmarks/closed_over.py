"""What it costs to look at what is closed over: ``python tests/benchmarks/closed_over.py``, about half a minute.

A compiled function compares at each call what it closes over with what was there. Calls with that look and
without it take turns, the garbage collector on, in processor time.
"""

import argparse
from collections.abc import Callable
from random import uniform
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from run import table

import micrograd as mg
from micrograd import nn
from micrograd.compiler.guards.closed_over import ClosedOver

BACKENDS = ("llvm", "numpy")


class Neuron:
    """As those write it who follow a lecture on backpropagation."""

    def __init__(self, inputs: int, nonlin: bool) -> None:
        self.w = [mg.Value(uniform(-1, 1)) for _ in range(inputs)]
        self.b = mg.Value(0.0)
        self.nonlin = nonlin

    def __call__(self, x: list[Any]) -> Any:
        total = sum((w * x_i for w, x_i in zip(self.w, x, strict=True)), self.b)
        return total.tanh() if self.nonlin else total


class Network:
    """Layers of such neurons, the last one linear."""

    def __init__(self, inputs: int, sizes: list[int]) -> None:
        pairs = zip([inputs, *sizes], sizes, range(1, len(sizes) + 1), strict=False)
        self.layers = [[Neuron(nin, last < len(sizes)) for _ in range(nout)] for nin, nout, last in pairs]

    def __call__(self, x: list[Any]) -> Any:
        for layer in self.layers:
            x = [neuron(x) for neuron in layer]
        return x[0]


def programs() -> dict[str, tuple[Callable[[Any], Any], list[float]]]:
    """Functions that close over a few Values, and over networks; each with what it is called with."""
    w, b, v = mg.Value(0.5), mg.Value(0.25), mg.Value(2.0)
    found: dict[str, tuple[Callable[[Any], Any], list[float]]] = {
        "three Values": (lambda x: mg.tanh(w * x[0] + b) * v, [0.3])
    }
    array, numbers = np.ones(1_000_000), [1.0] * 1_000_000
    found["an array of a million"] = lambda x: w * x[0] * array[7], [0.3]
    found["a list of a million"] = lambda x: w * x[0] * numbers[7], [0.3]
    for sizes in ((3, [4, 4, 1]), (2, [16, 16, 1]), (16, [64, 64, 1])):
        found[f"MLP{sizes}"] = nn.MLP(*sizes, activation="tanh"), [0.1] * sizes[0]
        found[f"by hand{sizes}"] = Network(*sizes), [0.1] * sizes[0]
    return found


def timed(call: Callable[[], object], calls: int) -> float:
    begin = process_time()
    for _ in range(calls):
        call()
    return (process_time() - begin) / calls


def price(call: Callable[[], object], rounds: int) -> tuple[float, float]:
    """The median time of a call that does not look, in seconds; and how many times as long one that does takes."""
    look = ClosedOver.is_current
    call()
    calls = max(1, int(0.01 / timed(call, 10)))
    pairs = []
    try:
        for _ in range(rounds):
            with_look = timed(call, calls)
            ClosedOver.is_current = lambda self: True  # type: ignore[method-assign]  # put back at once
            without = timed(call, calls)
            ClosedOver.is_current = look  # type: ignore[method-assign]  # as it was
            pairs.append((without, with_look / without))
    finally:
        ClosedOver.is_current = look  # type: ignore[method-assign]  # whatever happens
    return median(without for without, _ in pairs), median(ratio for _, ratio in pairs)


def row(name: str, backend: str, program: Callable[[Any], Any], inputs: list[float], rounds: int) -> list[str]:
    fast = mg.compile(program, backend=backend)
    alone, ratio = price(lambda: fast(inputs), rounds)
    _, with_backward = price(lambda: fast(inputs).backward(), rounds)
    return [name, backend, f"{alone * 1e6:.0f} us", f"{ratio:.2f}", f"{with_backward:.2f}"]


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=51, help="pairs for each figure")
    rounds = parser.parse_args(words).rounds
    rows = [
        row(name, backend, program, inputs, rounds)
        for name, (program, inputs) in programs().items()
        for backend in BACKENDS
    ]
    heading = ["closes over", "backend", "a call without the look", "with it, times", "with backward(), times"]
    table("the price of looking at what is closed over", [heading, *rows])


if __name__ == "__main__":
    main()
