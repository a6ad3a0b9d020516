"""Random programs on small integers: compiled and eager are equal bit for bit.

``python tests/campaigns/integers.py --count 50000 --seed 0 --minutes 8`` prints what disagrees. Every program follows
from the seed and its number: ``--only 1234`` runs one again. Some are compiled together, as one program. On small
integers float arithmetic is exact, so however a sum is taken, there is one right result; and ties, where a gradient
jumps, are everywhere.
"""

import argparse
import math
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import micrograd as mg
from micrograd import Value

BACKENDS = ("numpy", "llvm")
LARGEST = 2.0**40  # numbers beyond are taken out of the way, so that all sums and products are exact

OPERATIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda x, y: x + y),
    "sub": (2, lambda x, y: x - y),
    "mul": (2, lambda x, y: x * y),
    "neg": (1, lambda x: -x),
    "square": (1, lambda x: x**2),
    "cube": (1, lambda x: x**3),
    "double": (1, lambda x: 2 * x),
    "half": (1, lambda x: x / 2),
    "less one": (1, lambda x: x - 1),
    "from one": (1, lambda x: 1 - x),
    "abs": (1, mg.abs),
    "relu": (1, mg.relu),
    "maximum": (2, mg.maximum),
    "minimum": (2, mg.minimum),
    "where less": (4, lambda a, b, x, y: mg.where(a < b, x, y)),
    "where less or equal": (4, lambda a, b, x, y: mg.where(a <= b, x, y)),
    "detach": (1, mg.detach),
    "chain": (5, lambda a, b, c, d, e: a - b * c + d - e),
    "nested": (4, lambda a, b, c, d: a - (b - (c - d))),
    "sum of 3": (3, lambda *xs: sum(xs)),
    "sum of 7": (7, lambda *xs: sum(xs)),
    "sum of 12": (12, lambda *xs: sum(xs)),
    "dot of 3": (6, lambda *xs: mg.dot(xs[::2], xs[1::2])),
    "dot of 10": (20, lambda *xs: mg.dot(xs[:10], xs[10:])),
    "mean of 4": (4, lambda *xs: mg.mean(xs)),
}


class Program(NamedTuple):
    """Operations on the numbers before them, and on the inputs."""

    inputs: list[float]
    steps: list[tuple[str, list[int]]]

    def __call__(self, *inputs: Any) -> Any:
        """The sum of the last three numbers."""
        numbers = list(inputs)
        for name, positions in self.steps:
            numbers.append(OPERATIONS[name][1](*[numbers[position] for position in positions]))
        return numbers[-1] + numbers[-2] - numbers[-3]


def program_of(seed: int, number: int, size: int = 14) -> Program:
    """The program of that number: the same in every run with that seed."""
    rng = random.Random(f"integers {seed} {number}")
    inputs = [float(rng.randint(-3, 3)) for _ in range(rng.randint(2, 5))]
    numbers, steps = list(inputs), []
    for _ in range(rng.randint(3, size)):
        name = rng.choice(list(OPERATIONS))
        arity, function = OPERATIONS[name]
        positions = [rng.randrange(len(numbers)) for _ in range(arity)]
        result = float(function(*[numbers[position] for position in positions]))
        if abs(result) > 64:
            continue  # the products of gradients must be exact, too
        steps.append((name, positions))
        numbers.append(result)
    return Program(inputs, steps)


def eager(program: Program, function: Callable[..., Any]) -> list[float]:
    """The value of a program and its gradients; then the signs of all these, as -0 is not 0."""
    leaves = [Value(number) for number in program.inputs]
    output = function(*leaves)
    if output.requires_grad:
        output.backward()
    numbers = [output.data, *(leaf.grad for leaf in leaves)]
    return [*numbers, *(math.copysign(1.0, number) for number in numbers)]


def is_exact(program: Program) -> bool:
    """Whether all numbers are small."""
    return max(map(abs, eager(program, program))) <= LARGEST


def disagreement(program: Program, backend: str) -> str | None:
    """What eager and compiled do not agree on; None where nothing is left to ask, as numbers are no longer exact."""
    expected = eager(program, program)
    if max(map(abs, expected)) > LARGEST:
        return None
    found = eager(program, mg.compile(partial(program), backend=backend))
    return None if found == expected else f"{backend}: eager {expected}, compiled {found}"


def disagreements(programs: dict[int, Program], backend: str) -> dict[int, str]:
    """What eager and compiled do not agree on, of programs that are compiled together; by their numbers."""
    exact = {number: program for number, program in programs.items() if is_exact(program)}

    def total(inputs: list[list[Any]]) -> Any:
        return sum(program(*numbers) for program, numbers in zip(exact.values(), inputs, strict=True))

    leaves = [[Value(number) for number in program.inputs] for program in exact.values()]
    found = []
    for function in (total, mg.compile(total, backend=backend)):
        for leaf in (all_leaves := [leaf for inputs in leaves for leaf in inputs]):
            leaf.grad = 0.0
        output = function(leaves)
        if isinstance(output, Value) and output.requires_grad:
            output.backward()
        found.append([getattr(output, "data", output), *(leaf.grad for leaf in all_leaves)])
    if found[0] == found[1]:
        return {}
    alone = {number: disagreement(program, backend) for number, program in exact.items()}
    return {number: what for number, what in alone.items() if what} or {
        number: f"{backend}: disagrees, but only together with {list(exact)}" for number in list(exact)[:1]
    }


def main(words: list[str] | None = None) -> int:
    """Run the campaign; 1 if anything disagrees."""
    parser = argparse.ArgumentParser(description="Random programs on small integers, compiled and eager.")
    parser.add_argument("--count", type=int, default=50_000, help="how many programs (default: 50,000)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other programs (default: 0)")
    parser.add_argument("--minutes", type=float, default=8.0, help="stop after so long (default: 8)")
    parser.add_argument("--together", type=int, default=20, help="how many are compiled together (default: 20)")
    parser.add_argument("--backends", nargs="+", default=BACKENDS, help="which backends (default: numpy llvm)")
    parser.add_argument("--size", type=int, default=14, help="how many operations at most (default: 14)")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="the program of that number alone")
    options = parser.parse_args(words)
    numbers = range(options.start, options.start + options.count)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    end = time.monotonic() + 60 * options.minutes
    count = failed = 0
    for start in range(numbers.start, numbers.stop, options.together):
        if time.monotonic() > end:
            break
        end_of_these = min(start + options.together, numbers.stop)
        several = {number: program_of(options.seed, number, options.size) for number in range(start, end_of_these)}
        for backend in options.backends:
            for number, what in disagreements(several, backend).items():
                failed += 1
                sys.stdout.write(f"program {number}, {what}\n    {several[number]}\n")
                sys.stdout.flush()
        count += len(several)
    sys.stdout.write(f"{count:,} programs with {len(options.backends)} backends: {failed:,} disagreements\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
