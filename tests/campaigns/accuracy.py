"""Measure every primitive of the table against mpmath at 40 digits: value, first and second derivatives.

    python -m tests.campaigns.accuracy --points 10000 --seed 0 --write docs/reliability.md

The points are numbers of ordinary size, numbers of every magnitude down to the denormals, and numbers as near the
edges of the domain and to 1 as floats come. The error is counted in units in the last place of the true result;
where the result is a sum that has a root, of the sum's largest term.
"""

import argparse
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from micrograd.engine.primitive import Primitive
from tests.campaigns.page import measured, report
from tests.engine.test_higher_order import SECONDS, on_a_kink, second_derivatives
from tests.engine.test_primitives import LARGEST, TRUTHS, has_no_truth, mp
from tests.strategies import EXTREMES, TABLE

HEADING = "## Accuracy of the primitives"
ORDERS = ("value", "derivative", "second derivative")
ORDINARY = (1e-100, 1e100)

# The largest term of values that are sums with a root. That of the beta function is the line where it is 1.
TERMS: dict[str, Any] = {"betaln": lambda x, y: max(1, abs(mp.loggamma(x)), abs(mp.loggamma(y)))}


class Worst:
    """The worst errors of one primitive at one order, and how often there was no number where there is one.

    Two of them: over the ordinary points, and over those too where an operand or the result is tiny or huge.
    """

    def __init__(self) -> None:
        self.ordinary = self.anywhere = 0.0
        self.ordinary_point: tuple[float, ...] = ()
        self.point: tuple[float, ...] = ()
        self.missing: list[tuple[float, ...]] = []
        self.count = 0

    def add(self, found: float | None, true: Any, terms: Any, point: tuple[float, ...]) -> None:
        """Count one result; None where the computation raised."""
        self.count += 1
        if abs(true) > LARGEST / 4 and (found is None or not math.isfinite(found)):
            return  # no float is as large, or nearly so
        if found is None or not math.isfinite(found):
            self.missing.append(point)
            return
        ulps = float(abs(found - true) / math.ulp(float(max(abs(true), terms))))
        if all(size == 0 or ORDINARY[0] < size < ORDINARY[1] for size in (abs(true), *map(abs, point))):
            if ulps > self.ordinary:
                self.ordinary, self.ordinary_point = ulps, point
        elif ulps > self.anywhere:
            self.anywhere, self.point = ulps, point


def number(interval: tuple[float, float], random: random.Random) -> float:
    """A float strictly inside an interval: ordinary, of any magnitude, or near an edge or 1."""
    low, high = interval
    while True:
        kind = random.randrange(6)
        if kind == 0:
            x = random.uniform(-10, 10)
        elif kind == 1:
            x = random.uniform(-800, 800)
        elif kind == 2:  # any exponent that floats have, denormals included
            x = math.ldexp(random.choice([-1, 1]) * random.uniform(0.5, 1), random.randint(-1073, 1024))
        elif kind == 3:
            edge = random.choice([edge for edge in (low, high) if math.isfinite(edge)] or [0.0])
            x = edge + random.choice([-1, 1]) * 10.0 ** random.uniform(-18, 0)
        elif kind == 4:
            x = random.choice([*EXTREMES, math.nextafter(low, math.inf), math.nextafter(high, -math.inf)])
        else:
            x = random.choice([-1, 1]) + random.choice([-1, 1]) * 10.0 ** random.uniform(-17, 0)
        if low < x < high:
            return x


def attempt(compute: Any) -> Any:
    """What is computed; None where it raises what arithmetic raises."""
    try:
        return compute()
    except ArithmeticError:
        return None


def measure(primitive: Primitive, points: int, random: random.Random) -> Iterator[tuple[Worst, ...]]:
    """The worst errors of a primitive, value and derivatives, after each point."""
    value, first, second = worst = (Worst(), Worst(), Worst())
    truth, seconds = TRUTHS[primitive.name], SECONDS[primitive.name]
    for _ in range(points):
        inputs = tuple(number(interval, random) for interval in primitive.domain)
        if has_no_truth(primitive, inputs):
            continue
        exact = [mp.mpf(x) for x in inputs]
        true = truth.forward(*exact)
        output = attempt(lambda: primitive.forward(*inputs))  # noqa: B023  # called at once
        value.add(output, true, TERMS[primitive.name](*exact) if primitive.name in TERMS else 0, inputs)
        if output is not None and math.isfinite(output):
            for rule, derivative in zip(primitive.derivatives, truth.derivatives, strict=True):
                if rule is not None:
                    slope = attempt(lambda: rule(1.0, output, *inputs))  # noqa: B023
                    first.add(slope, derivative(*exact), truth.terms(*exact), inputs)
            if any(primitive.derivatives) and not on_a_kink(primitive, inputs):
                size = range(len(inputs))
                found = attempt(lambda: second_derivatives(primitive, inputs))  # noqa: B023
                for i in size:
                    for j in size:
                        by = seconds.by.get((min(i, j), max(i, j)))
                        true = by(*exact) if by else mp.mpf(0)
                        second.add(found and found[i][j], true, seconds.terms(*exact), inputs)
        yield worst


def table(results: dict[str, tuple[Worst, ...]]) -> str:
    """The results as a table of Markdown: a primitive a line."""
    lines = [
        "| primitive | value | derivative | second derivative | value, far out | derivative | second derivative |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, worst in results.items():
        cells = [shown(one.ordinary, one) for one in worst] + [shown(one.anywhere, one) for one in worst]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def shown(ulps: float, worst: Worst) -> str:
    """An error in a cell of the table: empty where nothing is differentiated."""
    return "" if not worst.count else f"{ulps:.1f}" if ulps < 100 else f"{ulps:.0e}"


def remarks(results: dict[str, tuple[Worst, ...]]) -> str:
    """The points of the errors of more than 8 units, and of results that are missing."""
    lines = []
    for name, worst in results.items():
        for order, one in zip(ORDERS, worst, strict=True):
            for ulps, point in ((one.ordinary, one.ordinary_point), (one.anywhere, one.point)):
                if ulps > 8:
                    lines.append(f"- {name}, {order}: {shown(ulps, one)} units at {point_shown(point)}")
            if one.missing:
                count = f"{len(one.missing)} of {one.count} results"
                lines.append(f"- {name}, {order}: {count} infinite or an error, as at {point_shown(one.missing[0])}")
    return "\n".join(lines)


def point_shown(point: tuple[float, ...]) -> str:
    return f"`{', '.join(format(x, '.4g') for x in point)}`"


def section(results: dict[str, tuple[Worst, ...]], points: int, seed: int) -> str:
    """The section of docs/reliability.md."""
    return f"""{HEADING}

The table shows the largest error of each primitive at {points:,} points, in units in the last place of the true result.
That is mpmath's at 40 digits. Rounding alone costs half a unit. If a derivative is a sum that has a root, the unit is
that of its largest term. In the first three columns, operands and results are 0 or between {ORDINARY[0]:g} and
{ORDINARY[1]:g} in size. In the last three they are tiny or huge, including denormals and the edges of the domain.
There an intermediate result may be denormal and lose digits.

{table(results)}

These errors exceed 8 units, or have no result:

{remarks(results) or "nowhere."}

{measured(f"tests.campaigns.accuracy --points {points} --seed {seed}")}
"""


def main(words: list[str] | None = None) -> None:
    """Measure, print the section, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--points", type=int, default=10_000, help="for each primitive")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--primitive", action="append", help="only this one; may be given several times")
    parser.add_argument("--write", type=Path, help="the Markdown page to put the section into")
    arguments = parser.parse_args(words)
    if arguments.points < 1:
        parser.error(f"--points must be at least 1, not {arguments.points}")
    if unknown := set(arguments.primitive or ()) - {primitive.name for primitive in TABLE}:
        parser.error(f"no primitive is named {', '.join(sorted(unknown))}")
    chosen = [primitive for primitive in TABLE if not arguments.primitive or primitive.name in arguments.primitive]
    results = {}
    with tqdm(total=len(chosen) * arguments.points, unit="point") as bar:
        for primitive in chosen:
            bar.set_postfix_str(primitive.name)
            for worst in measure(primitive, arguments.points, random.Random(arguments.seed)):
                results[primitive.name] = worst
                bar.update()
    text = section(results, arguments.points, arguments.seed)
    report(text, HEADING, arguments.write)


if __name__ == "__main__":
    main()
