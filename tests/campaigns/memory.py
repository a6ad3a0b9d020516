"""Train with the garbage collector off and watch the memory: nothing in the engine is freed by the collector only.

python -m tests.campaigns.memory --steps 1000 --write docs/reliability.md
"""

import argparse
import gc
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

import micrograd as mg
from tests.campaigns.page import measured, report

HEADING = "## Memory"
SETTLED = 10  # steps after which the optimiser has its state and Python its caches


def plain() -> Callable[[], object]:
    """A step of training a network with Adam: forward, backward, update."""
    random.seed(0)
    model = mg.nn.MLP(3, [8, 8, 1], activation="gelu")
    optimizer = mg.optim.Adam(model.parameters())
    data = [([random.uniform(-1, 1) for _ in range(3)], random.uniform(-1, 1)) for _ in range(8)]

    def step() -> None:
        optimizer.zero_grad()
        mg.losses.mean_squared_error([model(x) for x, _ in data], [y for _, y in data]).backward()
        optimizer.step()

    return step


def penalised() -> Callable[[], object]:
    """A step whose loss has a gradient in it: a graph of second derivatives."""
    random.seed(0)
    model = mg.nn.MLP(2, [6, 1], activation="tanh")
    optimizer = mg.optim.SGD(model.parameters(), 0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        inputs = [mg.Value(0.5), mg.Value(-0.25)]
        output = model(inputs)
        slopes = mg.gradient(output, inputs, create_graph=True)
        (output * output + mg.dot(slopes, slopes)).backward()
        optimizer.step()

    return step


def watched() -> Callable[[], object]:
    """A step of the first kind while anomalies are looked for."""
    step = plain()

    def watching() -> None:
        with mg.detect_anomaly():
            step()

    return watching


def failing() -> Callable[[], object]:
    """A step that ends in an error, forward and backward."""
    x, zero = mg.Value(1.0), mg.Value(0.0)

    def step() -> None:
        for compute in (lambda: mg.log(x * -2), lambda: (mg.sqrt(zero) * x).backward()):
            try:
                compute()
            except (ValueError, ArithmeticError):
                continue
            raise AssertionError("it should have raised")

    return step


PROGRAMS = {program.__name__: program for program in (plain, penalised, watched, failing)}


def measure(program: Callable[[], Callable[[], object]], steps: int) -> Iterator[tuple[int, int]]:
    """After each step: how many containers and how many blocks of memory more than there were once it settled.

    The containers are all that could hold on to anything. Of the blocks some are spare: CPython keeps up to
    2,000 tuples of each size for its next ones, and gives them back in a collection only.
    """
    gc.collect()
    gc.disable()
    try:
        step = program()
        for _ in range(SETTLED):
            step()
        containers, blocks = len(gc.get_objects()), sys.getallocatedblocks()
        for _ in range(steps):
            step()
            yield len(gc.get_objects()) - containers, sys.getallocatedblocks() - blocks
    finally:
        gc.enable()


def main(words: list[str] | None = None) -> None:
    """Measure each program and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--write", type=Path, help="the Markdown page to put the section into")
    arguments = parser.parse_args(words)
    if arguments.steps < 1:
        parser.error(f"--steps must be at least 1, not {arguments.steps}")
    lines = ["| step | more containers at the end | more blocks of memory |", "|---|---|---|"]
    for name, program in PROGRAMS.items():
        for containers, blocks in tqdm(measure(program, arguments.steps), name, arguments.steps, unit="step"):  # noqa: B007
            pass
        lines.append(f"| {name} | {containers:,} | {blocks:,} |")
    text = f"""{HEADING}

The table shows what {arguments.steps:,} training steps with the garbage collector disabled leave behind,
after {SETTLED} steps to settle. If graphs waited for the collector, there would be thousands of containers. One or
two belong to the measurement. The blocks include up to 2,000 spare tuples of each size, which CPython keeps until it
collects.

{chr(10).join(lines)}

{measured(f"tests.campaigns.memory --steps {arguments.steps}")}
"""
    report(text, HEADING, arguments.write)


if __name__ == "__main__":
    main()
