"""Measure the programs of the suite beside peers: ``python tests/benchmarks/suite.py``, some twenty minutes.

Prints one Markdown table; ``--write`` puts it into docs/performance.md, too. ``--only`` picks programs, ``--peers``
picks peers. They come from a group: ``pip install -e '.[all]' --group bench``; those that are missing are left out
and named.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from programs import PROGRAMS
from run import processor, show
from runners import RUNNERS, Ours
from turns import Limits, measured

if TYPE_CHECKING:
    from runners import Runner
    from turns import Row

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
START, END = "<!-- measured: python tests/benchmarks/suite.py --write -->", "<!-- end of what was measured -->"
HEADING = [
    "program",
    "by",
    "first call, s",
    "with import, s",
    "memory, MB",
    "plain call, ms",
    "step, ms",
    "times ours",
    "value alone, ms",
    "step / its value",
    "step / fastest value",
]


def main() -> None:
    """Print the table that the command line asks for."""
    parser = arguments()
    options = parser.parse_args()
    if not Ours.installed():
        parser.error(f"{Ours.name} needs {' and '.join(Ours.needs)}")
    if options.write and (options.only or options.peers is not None):
        parser.error("--write takes the whole table: leave out --only and --peers")
    wanted = [Ours, *peers([""] if options.peers is None else options.peers)]
    runners = [runner for runner in wanted if runner.installed()]
    limits = Limits(options.limit, options.memory, options.core)
    rows = []
    for key in options.only or PROGRAMS:
        rows.append(measured(PROGRAMS[key], runners, options.rounds, limits))
        sys.stderr.write("".join(f"{line}\n" for line in markdown([HEADING, *lines(rows[-1])])[2:]))
    missing = [runner.name for runner in wanted if not runner.installed()]
    body = [line for of_program in rows for line in lines(of_program)]
    text = report(body, versions(runners), missing, options.rounds)
    show(text)
    if options.write:
        PAGE.write_text(with_report(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Measure the programs of the suite beside peers.")
    parser.add_argument("--only", nargs="+", choices=[*PROGRAMS], metavar="NAME", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument(
        "--peers",
        nargs="*",
        type=str.lower,
        metavar="NAME",
        help="only peers with this in their name; without a name, none",
    )
    parser.add_argument("--rounds", type=int, default=9, help="turns of each (default: 9)")
    parser.add_argument("--limit", type=int, default=120, help="seconds that a first call may take (default: 120)")
    parser.add_argument("--memory", type=float, default=12.0, help="gigabytes for each process (default: 12)")
    parser.add_argument("--core", type=int, default=last_core(), help="the core to run on (default: the last one)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md, too")
    return parser


def peers(names: list[str]) -> list[type[Runner]]:
    """The peers with one of these in their name."""
    return [runner for runner in RUNNERS if runner is not Ours and any(name in runner.name.lower() for name in names)]


def last_core() -> int | None:
    """The last core that this process may run on; the first one has more to do for the system."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None


def versions(runners: list[type[Runner]]) -> list[str]:
    """The packages that run programs, with their versions."""
    return [f"{name} {version(name)}" for name in dict.fromkeys(name for runner in runners for name in runner.needs)]


def report(body: list[list[str]], packages: list[str], missing: list[str], rounds: int) -> str:
    """The table, and what it was measured on."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    where = ", ".join([python, *packages, processor(), f"{os.cpu_count()} cores"])
    left_out = f" Not installed, and left out: {', '.join(missing)}." if missing else ""
    said = f"Measured on {date.today().isoformat()}: {where}; medians of {rounds} rounds.{left_out}"
    return "\n".join([said, "", *markdown([HEADING, *body])])


def with_report(page: str, text: str) -> str:
    """A page with a report in the place of the one before."""
    start, end = (page.index(mark) for mark in (START, END))
    return f"{page[:start]}{START}\n\n{text}\n\n{page[end:]}"


def lines(rows: list[Row]) -> list[list[str]]:
    """The lines of the table for one program, its title in the first."""
    ours = rows[0].seconds.get("gradient")
    primals = [median(row.seconds["primal"]) for row in rows if "primal" in row.seconds]
    found = [line(row, ours, min(primals, default=None)) for row in rows]
    found[0][0] = rows[0].program
    return found


def line(row: Row, ours: list[float] | None, fastest: float | None) -> list[str]:
    """What was measured of a runner."""
    first = number(row.first, "{:.2f}") if row.first is not None or row.failure is None else row.failure
    whole = number(None if row.first is None or row.loading is None else row.first + row.loading, "{:.2f}")
    memory = number(row.memory, "{:,.0f}", 1e-6)
    cells = ["", row.runner, first, whole, memory]
    if row.failure is not None:
        return [*cells, row.failure if row.first is not None else "-", *["-"] * 5]
    plain, step, primal = (row.seconds.get(kind) for kind in ("plain", "gradient", "primal"))
    return [
        *cells,
        milliseconds(plain),
        milliseconds(step),
        ratio(step, ours),
        milliseconds(primal),
        ratio(step, primal, "{:,.1f}"),
        "-" if step is None or fastest is None else f"{median(step) / fastest:,.1f}",
    ]


def number(found: float | None, form: str, scale: float = 1.0) -> str:
    """A number, or a dash where there is none."""
    return "-" if found is None else form.format(found * scale)


def milliseconds(seconds: list[float] | None) -> str:
    if seconds is None:
        return "-"
    found = 1e3 * median(seconds)
    return f"{found:,.0f}" if found >= 100 else f"{found:#.3g}"


def ratio(seconds: list[float] | None, others: list[float] | None, form: str = "{:,.2f}") -> str:
    """The median of the ratios, round by round."""
    if seconds is None or others is None:
        return "-"
    return form.format(median(mine / other for mine, other in zip(seconds, others, strict=False)))


def markdown(table: list[list[str]]) -> list[str]:
    """The lines of a Markdown table, its first line the heading."""
    cells = [[re.sub(r"\|", r"\\|", cell) for cell in row] for row in table]
    heading, *body = [f"| {' | '.join(row)} |" for row in cells]
    return [heading, f"|{'---|' * len(table[0])}", *body]


if __name__ == "__main__":
    main()
