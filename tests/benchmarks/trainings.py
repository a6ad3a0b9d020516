"""Trainings of programs that decide on numbers: ``python -m tests.benchmarks.trainings``, about five minutes.

A GPT in one file trains by its own loop, Adam in Python included: unchanged, with the library's Value in the place of
its own, and compiled: processor time from the first step on. And ``fit`` trains on losses with ifs, beside the same
network without any: the best of several rounds, once all is compiled.
"""

import os
import random
import string
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import micrograd as mg
from micrograd import nn
from tests.outside.test_single_file_gpt import OWN_SIZE, Gpt, Own

sys.path.insert(0, str(Path(__file__).parent))
from collections.abc import Callable, Sequence

from run import show, table

ROUNDS, STEPS = 5, 1000
BATCH, EXAMPLES, EPOCHS = 32, 256, 500


def main() -> None:
    table("a step of a GPT in one file", [["program", "steps", "ms", "times", "losses"], *in_one_file()])
    table("an epoch of fit", [["loss", "ms", "beside one way"], *with_ifs()])


def in_one_file() -> list[list[str]]:
    """Milliseconds of a step of the program's own loop, which learns another name in each, and what it prints.

    Everything counts from the first step on, in an empty cache: there is a program for each length of a name.
    """
    draw = random.Random(1)
    lengths = draw.choices(range(3, 12), [60, 120, 250, 250, 170, 90, 35, 15, 10], k=STEPS)
    names = ["".join(draw.choices(string.ascii_lowercase, k=length)) for length in lengths]
    rows, slowest = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MICROGRAD_CACHE"] = folder
        for name, value, is_compiled, steps in (
            ("unchanged", Own, False, 20),
            ("on `Value`", mg.Value, False, 40),
            ("compiled", mg.Value, True, STEPS // 5),
            ("compiled", mg.Value, True, STEPS),
        ):
            model = Gpt(value, **OWN_SIZE)
            loss = mg.compile(model.loss) if is_compiled else model.loss
            begin = process_time()
            printed = [step_of(model, loss, names[number], number) for number in range(steps)]
            each = 1e3 * (process_time() - begin) / steps
            slowest = slowest or each
            figures = [f"{steps:,}", f"{each:.1f}", f"{slowest / each:.1f}", " ".join([*printed[:2], printed[19]])]
            rows.append([name, *figures])
            show(f"{name}: {each:.1f} ms")
    return rows


def step_of(model: Any, loss: Callable[[list[int]], Any], name: str, number: int) -> str:
    """One step of the program's own loop; the loss as it prints it."""
    result = loss(model.tokens(name))
    result.backward()
    model.update(number, STEPS)
    return f"{result.data:.4f}"


def hinge(networks: Sequence[Any], x: Any, y: Any, task: Any) -> Any:
    """The loss of a margin, written with an if."""
    margin = 1.0 - y * networks[0](x)
    return margin if margin > 0 else 0.0 * margin


def hinge_by_relu(networks: Sequence[Any], x: Any, y: Any, task: Any) -> Any:
    """The same without one."""
    return mg.relu(1.0 - y * networks[0](x))


def tasks(networks: Sequence[Any], x: Any, y: Any, task: Any) -> Any:
    """Several tasks, each of which has a network of its own."""
    return (networks[int(task)](x) - y) ** 2


def one_task(networks: Sequence[Any], x: Any, y: Any, task: Any) -> Any:
    return (networks[0](x) - y) ** 2


def with_ifs() -> list[list[str]]:
    """Milliseconds of an epoch; beside them those of the same loss with one way through it."""
    rows = []
    for name, loss, count, without in (
        ("hinge, by `if`", hinge, 1, hinge_by_relu),
        ("2 tasks, a network each", tasks, 2, one_task),
        ("8 tasks, a network each", tasks, 8, one_task),
    ):
        both = [epoch_of(each, number) for each, number in ((loss, count), (without, 1))]
        rows.append([name, f"{both[0]:.2f}", f"{both[1]:.2f}"])
    return rows


def epoch_of(loss: Callable[..., Any], count: int) -> float:
    """Milliseconds of an epoch, once all is compiled."""
    random.seed(0)
    networks = [nn.MLP(10, [32, 32, 1], activation="tanh") for _ in range(count)]
    examples = [
        ([random.gauss(0, 1) for _ in range(10)], random.choice([-1.0, 1.0]), number % count)
        for number in range(EXAMPLES)
    ]
    parameters = [p for network in networks for p in network.parameters()]

    def seconds(epochs: int) -> float:
        begin = process_time()
        mg.fit(
            lambda x, y, task: loss(networks, x, y, task),
            examples,
            mg.optim.SGD(parameters, 1e-3),
            epochs=epochs,
            batch_size=BATCH,
            seed=0,
            compile=True,
        )
        return process_time() - begin

    few, many = (min(seconds(epochs) for _ in range(ROUNDS)) for epochs in (1, 1 + EPOCHS))
    return 1e3 * (many - few) / EPOCHS


if __name__ == "__main__":
    main()
