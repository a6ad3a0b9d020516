"""Attacks on what could be silently wrong, counted: in how many cases each is tried.

    python -m tests.campaigns.attacks --write docs/reliability.md

The cases are tests, which are run here with all that is slow; what none of them notices is no row of this table.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from tests.campaigns.page import measured, report
from tests.folders import ROOT
from tests.numpy_expressions import DIFFERENT, expressions, of_namespace

HEADING = "## Attacks"
STATE = "tests/compiler/test_kinds_of_state.py"


class Attack(NamedTuple):
    """What is tried: the tests by their files, which may be patterns, and by words in their names."""

    files: tuple[str, ...]
    names: str = ""


ATTACKS = {
    "derivatives inside losses": Attack(
        ("tests/test_derivatives_inside_losses.py", "tests/test_closed_over_gradients.py")
    ),
    "kinds of closed-over state that are watched": Attack((STATE,), "watched"),
    "kinds of closed-over state that are refused": Attack((STATE,), "refused"),
    "sources: random numbers, clocks, files, iterators": Attack(("tests/compiler/test_sources.py",)),
    "what changes between the steps of `fit`": Attack(
        ("tests/training/test_changes_between_steps.py", "tests/training/test_noise.py")
    ),
    "kinds of arguments": Attack(
        ("tests/compiler/test_structure.py", "tests/compiler/test_function.py", "tests/compiler/test_*argument*.py")
    ),
    "dtypes": Attack(
        ("tests/compiler/test_boundary.py", "tests/compiler/test_kinds_of_numbers.py", "tests/**/test_*dtype*.py")
    ),
    "NumPy expressions": Attack(("tests/**/test_numpy_*.py", "tests/compiler/test_arrays_inside.py")),
    "files from strangers": Attack(("tests/tables/test_strange_models.py", "tests/support/test_archives.py")),
    "interrupts and errors anywhere": Attack(
        ("tests/compiler/test_all_or_nothing.py", "tests/engine/test_failures.py", "tests/training/test_fit.py")
    ),
    "answers that never end": Attack(("tests/learn/test_check.py",), "TestWhatNeverEnds"),
    "bytes that are kept, in memory and on disk": Attack(
        ("tests/compiler/test_cache_limits.py", "tests/support/test_leftovers.py")
    ),
}


class Counts(NamedTuple):
    """What became of the cases of an attack."""

    tried: int
    wrong: int
    left_out: int


def files_of(attack: Attack) -> list[str]:
    """The files of an attack, each once; a pattern may stand for none."""
    found = (path for pattern in attack.files for path in ROOT.glob(pattern))
    return sorted({path.relative_to(ROOT).as_posix() for path in found})


def counted(attack: Attack) -> Counts:
    """Run the tests of an attack, and count them."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow"]
        words += ["-k", attack.names] if attack.names else []
        words += [f"--junitxml={results}", *files_of(attack)]
        on_all_backends = {**os.environ, "MICROGRAD_JAX_TESTS": "all"}
        run = subprocess.run(words, cwd=ROOT, env=on_all_backends, capture_output=True, text=True, check=False)
        if run.returncode not in (0, 1):
            raise RuntimeError(f"pytest did not run: {run.stdout}{run.stderr}")
        cases = list(ElementTree.parse(results).iter("testcase"))
    failed = [case for case in cases if case.find("failure") is not None or case.find("error") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    return Counts(len(cases), len(failed), len(skipped))


def main(words: list[str] | None = None) -> None:
    """Run all attacks, or those that are named, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="ATTACK")
    parser.add_argument("--write", type=Path, help="the Markdown page to put the section into")
    arguments = parser.parse_args(words)
    lines = ["| attack | cases | silently wrong, or failed | not run here |", "|---|---|---|---|"]
    for name in arguments.only:
        counts = counted(ATTACKS[name])
        lines.append(f"| {name} | {counts.tried:,} | {counts.wrong:,} | {counts.left_out:,} |")
    tried = len({*expressions(), *of_namespace()})
    text = f"""{HEADING}

These tests look for a silently wrong number, a torn state or a harmful file. A case expects the number of eager code,
an error that says what to write, or the state from before. On 2026-11-24, 164 further ways to change closed-over
state were tried: settings, introspection, locks, logs, names made at run time. Of these, 156 are watched or refused.
The other 8 are of the four kinds that the compiler page [lists](compiler.md#what-a-function-closes-over).

Of {tried:,} NumPy expressions, each on six kinds of arrays, {len(DIFFERENT)} differ from eager;
`tests/numpy_expressions.py` names them with the reason. They cover NumPy's public functions, linear algebra, Fourier
transforms and what programs write with them. All others have equal numbers and gradients, or both refuse them. Of
13,536 cases of `tests/campaigns/kinds.py` (188 expressions on arrays of twelve dtypes: vectors, matrices, large and
empty ones), none differed on 2026-11-25.

{chr(10).join(lines)}

{measured("tests.campaigns.attacks")}
"""
    report(text, HEADING, arguments.write)


if __name__ == "__main__":
    main()
