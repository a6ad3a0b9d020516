"""Does a signal cut a change in two? ``python tests/benchmarks/interrupts.py``, which takes a second or two.

A timer raises while many attributes are set: by a loop in Python, and by the one call of ``commit``. Then some have
the new number and some the old one, or not.
"""

from __future__ import annotations

import argparse
import random
import signal
from time import perf_counter
from typing import TYPE_CHECKING

from run import table

from micrograd import Value
from micrograd.engine.commit import commit, setting

if TYPE_CHECKING:
    from collections.abc import Callable

VALUES = [Value(0.0) for _ in range(2000)]


class Timer(Exception):  # noqa: N818  # no error: it is what the signal's handler raises
    """What the handler raises."""


def loop(numbers: list[float]) -> None:
    """Set them one after the other."""
    for value, number in zip(VALUES, numbers, strict=True):
        value._data = number


def at_once(numbers: list[float]) -> None:
    """Set them as the library does."""
    commit(setting(VALUES, "_data", numbers))


def raise_timer(*_: object) -> None:
    """Handle the signal."""
    raise Timer


def measure(change: Callable[[list[float]], None], tries: int) -> tuple[int, int]:
    """How many changes were interrupted, and how many of these were cut in two."""
    numbers = [0.0] * len(VALUES)
    start = perf_counter()
    for _ in range(100):
        change(numbers)
    takes = (perf_counter() - start) / 100
    chance, interrupted, cut = random.Random(0), 0, 0
    signal.signal(signal.SIGALRM, raise_timer)
    for turn in range(tries):
        numbers = [float(turn + 1)] * len(VALUES)
        try:
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.1, 1.0) * takes)
            change(numbers)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        except Timer:
            interrupted += 1
            cut += len({value._data for value in VALUES}) > 1
        change(numbers)
    return interrupted, cut


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tries", type=int, default=3000, help="of each (default: 3000)")
    tries = parser.parse_args().tries
    rows = [["numbers set by", "interrupted", "cut in two"]]
    for name, change in (("a loop", loop), ("one call", at_once)):
        rows.append([name, *(f"{count:,}" for count in measure(change, tries))])
    table(f"{len(VALUES):,} numbers, set {tries:,} times", rows)


if __name__ == "__main__":
    main()
