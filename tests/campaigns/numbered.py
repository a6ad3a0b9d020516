"""Programs of a campaign that follow from a seed and a number: the options that choose them, and their numbers."""

import argparse
import math
import time
from collections.abc import Iterator


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A parser of the options that ``numbers_of`` takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many")
    parser.add_argument("--only", type=int, help="the number of one program")
    return parser


def numbers_of(options: argparse.Namespace) -> Iterator[int]:
    """The numbers of the programs, as long as there is time."""
    end = time.monotonic() + 60 * options.minutes
    for number in range(options.first, options.first + options.count) if options.only is None else [options.only]:
        if time.monotonic() > end:
            return
        yield number
