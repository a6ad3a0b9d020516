"""Measure this engine beside others: ``python tests/benchmarks/run.py``, which takes about two minutes.

Prints Markdown tables. ``--only`` picks one of them, ``--deep`` adds chains of millions of nodes.
"""

import argparse
import platform
import sys
from importlib import import_module
from pathlib import Path

import chains
import steps
from engines import ENGINES

PROGRAMS = ("transformer", "perceptron")


def main() -> None:
    options = arguments().parse_args()
    engines = [engine for engine in ENGINES if engine is ENGINES[0] or options.against in engine.name]
    wanted = options.only or [*PROGRAMS, "memory", *(["deep"] if options.deep else [])]
    show(f"Python {platform.python_version()} ({platform.python_implementation()}), {processor()}")
    for program in PROGRAMS:
        if program in wanted:
            title = f"{import_module(program).TITLE}: build, backward, free; median of {options.rounds} rounds"
            table(title, steps.rows(engines, steps.compare(program, engines, options.rounds)))
    if "memory" in wanted:
        table("memory of a chain of additions", chains.memory_rows(engines))
    if "deep" in wanted:
        table("chains of additions, microseconds a node", chains.deep_rows(ENGINES[0]))


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure this engine beside others.")
    parser.add_argument("--rounds", type=int, default=15, help="how many steps to time on each engine (default: 15)")
    parser.add_argument("--only", nargs="+", choices=[*PROGRAMS, "memory", "deep"], help="only these tables")
    parser.add_argument("--against", default="", metavar="NAME", help="only engines with this in their name")
    parser.add_argument("--deep", action="store_true", help="also chains of 0.5 to 3 million additions")
    return parser


def processor() -> str:
    """The model of the processor, as far as Python or Linux tells."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def table(title: str, lines: list[list[str]]) -> None:
    """Print a Markdown table, its first line the heading."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    heading, *body = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))} |" for line in lines
    ]
    show("", f"**{title[0].upper()}{title[1:]}**", "", heading, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    show(*body)


def show(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
