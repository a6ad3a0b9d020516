"""Training steps of one program on all engines: the same numbers, and how long each takes."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from time import process_time
from typing import TYPE_CHECKING

from workers import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engines import Engine


@dataclass
class Result:
    """What an engine computed in a step, and how long it took, in each round."""

    nodes: int
    loss: float
    gradients: list[float]
    seconds: list[float]
    before: list[float]  # how long the first engine's step took that each of these came right after

    def ratios(self) -> list[float]:
        """How many times as long as the first engine's each step took, pair by pair."""
        return [mine / others for mine, others in zip(self.seconds, self.before, strict=True)]


def compare(program: str, engines: list[type[Engine]], rounds: int) -> list[Result]:
    """Let the first engine and each of the others take a step in turn: what slows the machine for a while slows both.

    Args:
        program: the module with the parameters and the loss.
        engines: the first is the one that the others must agree with.
        rounds: how many steps are timed, after those that warm up.

    Raises:
        ValueError: if an engine computes another loss or another gradient.
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(engine, serve, program)) for engine in engines]
        results = [Result(*worker.ask(), seconds=[], before=[]) for worker in workers]
        for engine, result in zip(engines, results, strict=True):
            check(engine.name, result, results[0])
        for engine, worker in zip(engines, workers, strict=True):
            for _ in range(engine.warm_up):
                worker.ask()
        for _ in range(rounds):
            for worker, result in zip(workers[1:], results[1:], strict=True):
                result.before.append(workers[0].ask())
                result.seconds.append(worker.ask())
    results[0].seconds = results[0].before = [seconds for result in results for seconds in result.before]
    return results


def serve(engine: Engine, program: str) -> Iterator[tuple[int, float, list[float]] | float]:
    """In the worker: yield a step's nodes, loss and gradients, then the seconds of one step after another.

    A step builds the graph, backpropagates and frees the graph, with the garbage collector as Python
    sets it up. Setting the gradients to 0 and updating the parameters is not counted. The seconds are
    the processor's, which other processes disturb less than they do the clock's.
    """
    module = import_module(program)
    weights = module.parameters(engine.leaf)
    parameters = [parameter for matrix in weights.values() for row in matrix for parameter in row]
    engine.keep()
    root = module.loss(weights, engine.leaf)
    root.backward()
    yield engine.nodes(root, parameters), root.data, [parameter.grad for parameter in parameters]
    del root
    engine.free()
    while True:
        engine.zero(parameters)
        start = process_time()
        module.loss(weights, engine.leaf).backward()
        engine.free()
        yield process_time() - start


def check(name: str, result: Result, expected: Result) -> None:
    """Compare the loss and every gradient, to nine digits."""
    pairs = zip([result.loss, *result.gradients], [expected.loss, *expected.gradients], strict=True)
    for number, (mine, others) in enumerate(pairs):
        if not math.isclose(mine, others, rel_tol=1e-9, abs_tol=1e-15):
            what = f"gradient {number - 1}" if number else "loss"
            raise ValueError(f"{name}: the {what} is {mine!r}, not {others!r}")


def rows(engines: list[type[Engine]], results: list[Result]) -> list[list[str]]:
    """The table, a line an engine."""
    lines = [["engine", "ms a step", "fastest", "times ours (min to max)", "nodes", "loss", "largest gradient"]]
    for engine, result in zip(engines, results, strict=True):
        ratios = result.ratios()
        lines.append(
            [
                engine.name,
                f"{1e3 * median(result.seconds):.1f}",
                f"{1e3 * min(result.seconds):.1f}",
                f"{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
                f"{result.nodes:,}",
                f"{result.loss:.12f}",
                f"{max(result.gradients, key=abs):.12f}",
            ]
        )
    return lines
