"""Compile thousands of different functions in one process and watch the memory: it stays flat, and so does the disk.

python -m tests.campaigns.soak --functions 10000 --write docs/reliability.md
"""

import argparse
import gc
import itertools
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tqdm import tqdm

import micrograd as mg
from tests.campaigns.page import measured, report

HEADING = "## Memory of compiled functions"
LIMITS = {"MICROGRAD_CODE_MB": "4", "MICROGRAD_CACHE_MB": "8", "MICROGRAD_PROGRAMS_MB": "4"}
UNARY = (mg.sin, mg.tanh, mg.exp, mg.sigmoid, mg.softplus, lambda x: x * x)


def drawn(chance: random.Random) -> Callable[[list[mg.Value]], mg.Value]:
    """A function that no other one is like: it has other operations, in another order."""
    steps = [(chance.choice(UNARY), chance.randrange(6), chance.uniform(-1, 1)) for _ in range(12)]

    def function(xs: list[mg.Value]) -> mg.Value:
        found = list(xs)
        for operation, position, number in steps:
            found.append(mg.tanh(operation(found[position]) * number + found[-1]))
        return mg.mean([operation(x) * y for x, y in itertools.pairwise(found)])

    return function


def bytes_in_memory() -> int:
    """Bytes of this process that are in memory; 0 where the system does not say."""
    pages = Path("/proc/self/statm")
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else 0


def measure(functions: int, every: int) -> Iterator[tuple[int, int, int, int]]:
    """After so many functions each time: how many there were, and bytes in memory, of native code and on disk."""
    chance = random.Random(0)
    xs = [mg.Value(0.1 * index) for index in range(6)]
    for number in range(1, functions + 1):
        fast = mg.compile(drawn(chance))
        fast(xs).backward()
        if number % every == 0:
            info = fast.cache_info()
            gc.collect()
            yield number, bytes_in_memory(), info.code_bytes, info.disk_bytes


def main(words: list[str] | None = None) -> None:
    """Measure, print the section, and write it to a page if asked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--functions", type=int, default=10_000)
    parser.add_argument("--write", type=Path, help="the Markdown page to put the section into")
    arguments = parser.parse_args(words)
    if arguments.functions < 1:
        parser.error(f"--functions must be at least 1, not {arguments.functions}")
    every = max(arguments.functions // 10, 1)
    before = {name: os.environ.get(name) for name in (*LIMITS, "MICROGRAD_CACHE")}
    lines = ["| functions | process, MB | native code, MB | disk, MB |", "|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            os.environ.update(LIMITS, MICROGRAD_CACHE=folder)
            for count, *sizes in tqdm(measure(arguments.functions, every), unit="tenth"):
                lines.append("".join(f"| {size} " for size in (f"{count:,}", *(f"{n / 1e6:.1f}" for n in sizes))) + "|")
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
    text = f"""{HEADING}

One process compiles {arguments.functions:,} different functions and differentiates each. The limits are
{", ".join(f"`{name}={value}`" for name, value in LIMITS.items())}.

{chr(10).join(lines)}

{measured(f"tests.campaigns.soak --functions {arguments.functions}")}
"""
    report(text, HEADING, arguments.write)


if __name__ == "__main__":
    main()
