"""Measure compiled functions beside peers: ``python tests/benchmarks/compiled.py``, about three minutes.

The peers come from a group: ``pip install -e '.[all]' --group bench``; those that are missing are left out. All run
in processes of their own and take turns, the garbage collector on; each turn repeats the step for some
hundredths of a second and gives the time of one. Prints Markdown tables.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from importlib import import_module
from statistics import median
from typing import TYPE_CHECKING, Any

import arrays
import large
import transformer
from engines import Ours, Pypi
from run import table
from workers import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Step = Callable[[], object]

TURN = 0.05  # seconds


class Peer(ABC):
    """One way to take a step of a program; the process that measures it makes it."""

    recursive = False
    name: str
    needs: tuple[str, ...] = ()

    @abstractmethod
    def step(self, program: str) -> Step:
        """The step to be timed. Its attribute result gives the loss and the largest gradient."""

    @classmethod
    def installed(cls) -> bool:
        """Whether what it needs is there."""
        return all(importlib.util.find_spec(module) for module in cls.needs)


def with_result(step: Step, result: Callable[[], tuple[float, float]]) -> Step:
    """A step that can be asked what it computes."""
    step.result = result  # type: ignore[attr-defined]  # functions take attributes
    return step


class Compiled(Peer):
    """This package, compiled, from buffer to buffer."""

    name = "compiled, buffer to buffer"
    backend = "llvm"
    needs = ("numpy", "llvmlite")

    def step(self, program: str) -> Step:
        """Run the program of the gradient."""
        executable = compiled(program, self.backend).program()
        buffer, found = executable.buffer, executable.program

        def result() -> tuple[float, float]:
            executable.run()
            return float(buffer[found.outputs[0]]), float(abs(buffer[found.gradients]).max())

        return with_result(lambda: executable.run(), result)  # a method takes no attribute


class Numpy(Compiled):
    """The same on NumPy."""

    name = "compiled, NumPy backend"
    backend = "numpy"
    needs = ("numpy",)


class ThroughValues(Compiled):
    """The same, filling the grad of every Value."""

    name = "compiled, through Values"

    def step(self, program: str) -> Step:
        """Call the function and backward."""
        fast = compiled(program, self.backend)
        fast()
        leaves = fast._last.values  # what it reads

        def step() -> None:
            fast().backward()

        def result() -> tuple[float, float]:
            for leaf in leaves:
                leaf.grad = 0.0
            output = fast()
            output.backward()
            return output.data, max(abs(leaf.grad) for leaf in leaves)

        return with_result(step, result)


class Eager(Peer):
    """This package, eager."""

    name = "eager"
    engine: Any = Ours

    def step(self, program: str) -> Step:
        """Build the graph and backpropagate."""
        engine = self.engine()
        module = import_module(program)
        weights = module.parameters(engine.leaf)
        leaves = [leaf for matrix in weights.values() for row in matrix for leaf in row]

        def step() -> None:
            module.loss(weights, engine.leaf).backward()

        def result() -> tuple[float, float]:
            engine.zero(leaves)
            output = module.loss(weights, engine.leaf)
            output.backward()
            return output.data, max(abs(leaf.grad) for leaf in leaves)

        return with_result(step, result)


class PypiEager(Eager):
    """micrograd 0.1.0."""

    name = "micrograd 0.1.0 (PyPI)"
    engine = Pypi
    recursive = True


class Torch(Peer):
    """PyTorch."""

    name = arrays.Torch.name
    needs = ("torch",)

    def step(self, program: str) -> Step:
        """The model in tensors."""
        return arrays.Torch(program).step


class Jax(Peer):
    """JAX."""

    name = arrays.Jax.name
    needs = ("jax",)

    def step(self, program: str) -> Step:
        """The model in arrays."""
        return arrays.Jax(program).step


class Casadi(Peer):
    """CasADi."""

    name = arrays.Casadi.name
    needs = ("casadi",)

    def step(self, program: str) -> Step:
        """The same scalars."""
        return arrays.Casadi(program).step


PROGRAMS: dict[str, tuple[str, tuple[type[Peer], ...]]] = {
    "transformer": (
        "transformer of the benchmark: loss and gradients of one word",
        (Compiled, ThroughValues, Numpy, Eager, PypiEager, Jax, Casadi, Torch),
    ),
    "perceptron": ("MLP 2-16-16-1 on 100 points, whole batch", (Compiled, ThroughValues, Eager, PypiEager, Torch)),
    "large": ("network 784-256-10, one sample", (Compiled, Torch)),
}


def compiled(program: str, backend: str) -> Any:
    """The compiled loss of a program, traced."""
    import micrograd as mg

    transformer.softmax = mg.softmax  # the largest of its inputs without .data
    if program == "large":
        weights = large.large_parameters(mg.Value)
        pixels, target = large.large_sample()

        def loss() -> Any:
            layer = zip(weights["hidden"], weights["hidden bias"], strict=True)
            hidden = [mg.relu(mg.dot(row, pixels) + bias) for row, bias in layer]
            outputs = zip(weights["output"], weights["output bias"], strict=True)
            return mg.losses.cross_entropy([mg.dot(row, hidden) + bias for row, bias in outputs], target)
    else:
        module = import_module(program)
        matrices = module.parameters(mg.Value)

        def loss() -> Any:
            return module.loss(matrices, lambda number: mg.Value(number, requires_grad=False))

    fast = mg.compile(loss, backend=backend)
    fast()
    return fast


def serve(peer: Peer, program: str) -> Iterator[Any]:
    """In the worker: what a step computes, and then the seconds of one, time after time."""
    start = time.perf_counter()
    step: Any = peer.step(program)
    made = time.perf_counter() - start
    yield *step.result(), made
    repeats = 1
    while True:
        start = time.perf_counter()
        for _ in range(repeats):
            step()
        seconds = (time.perf_counter() - start) / repeats
        yield seconds
        repeats = max(1, int(TURN / seconds))


def measured(program: str, rounds: int) -> list[list[str]]:
    """The table of a program."""
    peers = [peer for peer in PROGRAMS[program][1] if peer.installed()]
    workers = [Worker(peer, serve, program) for peer in peers]
    results = [worker.ask() for worker in workers]
    for _ in range(2):  # to warm up
        for worker in workers:
            worker.ask()
    seconds = [[worker.ask() for worker in workers] for _ in range(rounds)]
    for worker in workers:
        worker.__exit__()
    lines = [["", "microseconds", "fastest", "times compiled (median)", "ready after", "loss", "largest gradient"]]
    for index, (peer, (loss, gradient, made)) in enumerate(zip(peers, results, strict=True)):
        times = [turn[index] for turn in seconds]
        ratio = median(turn[index] / turn[0] for turn in seconds)
        row = [f"{1e6 * median(times):,.1f}", f"{1e6 * min(times):,.1f}", f"{ratio:,.1f}", f"{made:.2f} s"]
        lines.append([peer.name, *row, f"{loss:.12f}", f"{gradient:.12f}"])
    return lines


FIRST = """
import sys, time
sys.path.insert(0, {folder!r})
import micrograd as mg, transformer
transformer.softmax = mg.softmax
weights = transformer.parameters(mg.Value)
{before}
start = time.perf_counter()
mg.compile(lambda: transformer.loss(weights, mg.Value), backend="llvm")().backward()
print(time.perf_counter() - start)
"""


def first_calls(rounds: int) -> list[list[str]]:
    """From the first call to the first result, in new processes, without and with a cache on disk."""
    seconds: dict[str, list[float]] = {"an empty cache": [], "a full cache": []}
    program = FIRST.format(
        folder=os.path.dirname(__file__), before="import micrograd.compiler.backends.llvm.llvm_backend"
    )
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for found in seconds.values():
                environment = os.environ | {"MICROGRAD_CACHE": folder}
                output = subprocess.run(
                    [sys.executable, "-c", program], env=environment, capture_output=True, check=True
                )
                found.append(float(output.stdout))
    lines = [["from the first call to the first result", "seconds", "fastest"]]
    return lines + [[name, f"{median(found):.2f}", f"{min(found):.2f}"] for name, found in seconds.items()]


def main() -> None:
    """Print the tables that the command line asks for."""
    parser = argparse.ArgumentParser(description="Measure compiled functions beside peers.")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each peer (default: 15)")
    parser.add_argument("--only", nargs="+", choices=[*PROGRAMS, "first"], help="only these tables")
    options = parser.parse_args()
    for program, (title, _) in PROGRAMS.items():
        if program in (options.only or PROGRAMS):
            table(title, measured(program, options.rounds))
    if "first" in (options.only or ["first"]):
        table("the first call, transformer", first_calls(5))


if __name__ == "__main__":
    main()
