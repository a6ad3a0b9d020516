"""Plant the mistakes in the compiler's passes, and see whether the verifier finds them, and whether eager does.

    python -m tests.campaigns.verified                                   # a line for each mistake
    python -m tests.campaigns.verified --write docs/reliability.md       # and the table

Each is planted in a fork, as mistakes.py does it. The programs are those of the suite of benchmarks, tiny, and a few
more; small programs are fused and share memory as large ones do. Values and gradients of the compiled function are
compared with eager to nine digits.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.campaigns.mistakes import MISTAKES, Mistake, planted, read
from tests.campaigns.page import measured, report
from tests.campaigns.planting import ROOT, Loader, forked, load_libraries, path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PACKAGES = "compiler.passes.", "compiler.ir."
HEADING = "## What the verifier finds"
DIGITS = 1e-9
INDEX = 2  # the argument of each program


def programs() -> dict[str, Callable[[], tuple[Callable[[int], Any], list[Any]]]]:
    """Functions that make a function of an index, and the Values that it reads."""
    import micrograd as mg

    sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))
    from tests.test_suite import NAMES, tiny

    def of_suite(name: str) -> Callable[[], Any]:
        def made() -> Any:
            program, parts = tiny(name), import_module("programs.program")
            numbers, given = program.data()
            weights = {key: parts.mapped(mg.Value, nested) for key, nested in numbers.items()}
            return lambda _: program.scalars(weights, given), parts.flat(weights)

        return made

    def of_values(function: Callable[..., Any], count: int = 24, takes: bool = False) -> Callable[[], Any]:
        def made() -> Any:
            xs = [mg.Value(0.2 + 0.137 * number) for number in range(count)]
            return lambda index: function(xs, index) if takes else function(xs), xs

        return made

    def step(height: Any, x: Any) -> tuple[Any, Any]:
        return mg.tanh(height * 0.5 + x), height

    return {
        **{name: of_suite(name) for name in NAMES},
        "powers": of_values(lambda xs: xs[0] ** xs[1] + xs[2] ** 2 - 2.0 ** xs[3] / xs[4] + (xs[0] - (xs[1] - xs[0]))),
        "choices": of_values(lambda xs: mg.softmax(xs)[3] * mg.maximum(xs[0], -xs[1]) + sum(map(mg.relu, xs))),
        "take": of_values(lambda xs, index: mg.take(xs, index) * mg.take(xs[:9], index + 1), takes=True),
        "scan": of_values(lambda xs: mg.scan(step, 0.1, xs)[0]),
        "second derivatives": of_values(lambda xs: mg.grad(mg.grad(lambda x: x**3 * mg.exp(x * xs[1])))(xs[0])),
        "elements": of_values(lambda xs: sum(mg.relu(mg.tanh(-(x * x)) * 2.0 + 0.5) - x * 3.0 for x in xs), 600),
    }


def _differs(made: Callable[[], Any], verify: bool) -> str:
    """How a compiled program is seen to be wrong, if it is."""
    import micrograd as mg
    from micrograd.compiler.passes.interpreters import VerificationError

    (function, leaves), (plain, others) = made(), made()
    try:
        result = mg.compile(function, backend="llvm", verify=verify)(INDEX)
        result.backward()
    except VerificationError as error:
        return str(error)
    except Exception as error:  # of a mistake, it may be any
        return f"{type(error).__name__}: {error}"
    expected = plain(INDEX)
    expected.backward()
    pairs = [(result.data, expected.data), *((x.grad, y.grad) for x, y in zip(leaves, others, strict=True))]
    wrong = sum(abs(found - right) > DIGITS * (1 + abs(right)) or found != found for found, right in pairs)
    return f"{wrong} of {len(pairs)} numbers differ" if wrong and not verify else ""


def _trains(verify: bool) -> str:
    import micrograd as mg
    from micrograd.compiler.passes.interpreters import VerificationError

    def weights(**how: Any) -> list[float]:
        v = [mg.Value(0.1 * number) for number in range(4)]
        rows = [([0.1 * row, 1.0, 0.3], 0.2 * row) for row in range(24)]
        mg.fit(
            lambda x, y: (mg.tanh(mg.dot(v[:3], x) + v[3]) - y) ** 2,
            rows,
            mg.optim.SGD(v, 0.1),
            epochs=2,
            batch_size=8,
            seed=0,
            **how,
        )
        return [value.data for value in v]

    try:
        found = weights(compile="llvm")
    except VerificationError as error:
        return str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    wrong = sum(abs(x - y) > DIGITS for x, y in zip(found, weights(), strict=True))
    return f"{wrong} weights differ" if wrong and not verify else ""


def seen(mistake: Mistake | None) -> tuple[str, str]:
    """How a mistake is seen first by the verifier, and by the comparison with eager; nothing where it is not."""

    def work(pipe: Any) -> None:
        if mistake is not None:
            source = planted(mistake, path_of(mistake.module).read_text("utf-8"))
            sys.meta_path.insert(0, Loader(mistake.module, source))
        os.environ["MICROGRAD_CACHE"] = "off"
        from micrograd.compiler.passes import allocate

        allocate._LARGE = 0  # small programs are fused and share memory, too
        found = ["", ""]
        for verify in (True, False):
            os.environ["MICROGRAD_VERIFY"] = str(int(verify))
            sights = (_differs(made, verify) for made in programs().values())
            found[not verify] = next(filter(None, sights), "") or _trains(verify)
        json.dump(found, pipe)

    sent, ended_by = forked(work)
    return (f"it ended by signal {ended_by}",) * 2 if sent is None else tuple(sent)


def section(mistakes: Sequence[Mistake], by_verifier: Sequence[str], by_eager: Sequence[str]) -> str:
    """The section of docs/reliability.md."""
    found: Counter[tuple[str, str]] = Counter()
    for mistake, *sightings in zip(mistakes, by_verifier, by_eager, strict=True):
        kinds = zip(("verifier", "eager"), sightings, strict=True)
        found[mistake.module, " and ".join(kind for kind, sight in kinds if sight) or "neither"] += 1
    modules = dict.fromkeys(mistake.module for mistake in mistakes)
    columns = "verifier and eager", "verifier", "eager", "neither"
    rows = [f"| {name} | {' | '.join(str(found[name, column]) for column in columns)} |" for name in modules]
    sums = [sum(count for (_, column), count in found.items() if column == wanted) for wanted in columns]
    return f"""{HEADING}

The mistakes of the table above that are in the passes and representations of the compiler, each planted while a fixed
set of programs is compiled: those of the suite of benchmarks, tiny, and seven more.
[The verifier](compiler.md#verifying-the-passes) looks after each pass; eager is what the compiled function is compared
with, to nine digits. An error or a crash counts as seen. Neither sees what concerns rounding, the sign of 0, numbers
that are not finite, time and memory, or programs of other kinds: for these, the tests named beside each mistake are
needed.

| module | both | verifier only | eager only | neither |
|---|---|---|---|---|
{chr(10).join(rows)}
| all | {" | ".join(map(str, sums))} |

{measured("tests.campaigns.verified", "Planted", "plant them")}
"""


def main(words: list[str] | None = None) -> int:
    """Plant the mistakes; say who sees which."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", type=Path, help="the Markdown page to put the table into")
    arguments = parser.parse_args(words)
    load_libraries()
    for name in "scipy.stats", "scipy.spatial.transform":
        import_module(name)
    if right := list(filter(None, seen(None))):
        raise SystemExit(f"without any mistake, {right[0]}")
    mistakes = [mistake for mistake in read(MISTAKES.read_text("utf-8")) if mistake.module.startswith(PACKAGES)]
    sightings = []
    for mistake in mistakes:
        sightings.append(seen(mistake))
        lines = f"    verifier: {sightings[-1][0] or '-':.100}\n    eager:    {sightings[-1][1] or '-':.100}"
        sys.stdout.write(f"{mistake}\n{lines}\n")
        sys.stdout.flush()
    report(section(mistakes, *zip(*sightings, strict=True)), HEADING, arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
