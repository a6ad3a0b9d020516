"""Plant each mistake of mistakes.txt, one at a time, and see whether the tests that must notice it do.

    python -m tests.campaigns.mistakes
    python -m tests.campaigns.mistakes --modules engine optim
    python -m tests.campaigns.mistakes --only 17                         # shows one mistake and runs it
    python -m tests.campaigns.mistakes --write docs/reliability.md       # all of them, and the table

These are mistakes that a tired colleague could make, one idea each; Cosmic Ray plants the small slips. No file is
changed. The exit code is 1 if a mistake survives.
"""

from __future__ import annotations

import argparse
import ast
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.campaigns.page import measured, report
from tests.campaigns.planting import ROOT, Loader, Noticing, forked, load_libraries, path_of, run_pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MISTAKES = Path(__file__).with_name("mistakes.txt")
HEADING = "## Planted mistakes"
NOTICED_BY = "noticed by "
NOTHING_FAILED = (0, 5)  # what pytest ends with where all tests pass, and where there are none
FEW = 5  # so many forks are done before what they would load is loaded for all
PATIENCE = 120  # seconds, after which tests are taken to hang


class Mistake(NamedTuple):
    """What is wrong, where, and who must notice.

    Attributes:
        number: counted from 1, in the order of the file.
        module: as from inside of micrograd.
        what: is wrong, in a sentence.
        tests: files of tests/ without their suffix, or parts of them: ``test_optim::TestSchedules``.
        changes: the original lines and those in their place, with the indentation that they have in common left out.
    """

    number: int
    module: str
    what: str
    tests: tuple[str, ...]
    changes: tuple[tuple[list[str], list[str]], ...]

    def __str__(self) -> str:
        return f"{self.number}  {self.module}: {self.what}"

    @property
    def room(self) -> str:
        """The package that the module is in, or the module itself."""
        return self.module.rpartition(".")[0] or self.module


def read(text: str) -> list[Mistake]:
    """The mistakes of a file; see its head for how they are written."""
    mistakes = []
    for block in text.split("\n\n"):
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("#")]
        if not any(lines):
            continue
        tests: list[str] = []
        words: list[str] = []
        changes: list[tuple[list[str], list[str]]] = []
        before = ""
        for line in lines[1:]:
            sign, code = line[:1], line[2:]
            if sign == "-" and before != "-":
                changes.append(([], []))
            if sign in ("-", "+") and changes:
                changes[-1][sign == "+"].append(code)
            elif line.startswith(NOTICED_BY):
                tests += line.removeprefix(NOTICED_BY).split()
            else:
                words.append(line)
            before = sign
        mistake = Mistake(len(mistakes) + 1, lines[0], " ".join(words), tuple(tests), tuple(changes))
        if not (words and tests and changes):
            raise ValueError(f"{mistake}\n  needs a sentence, the tests that must notice, and original lines")
        mistakes.append(mistake)
    return mistakes


def planted(mistake: Mistake, source: str) -> str:
    """The source of a module with a mistake in it; a ValueError unless its original text is there exactly once."""
    lines = source.split("\n")
    for original, mutated in mistake.changes:
        places = []
        for start, line in enumerate(lines):
            indentation = line.removesuffix(original[0])
            end = start + len(original)
            if not indentation.strip() and lines[start:end] == _indented(original, indentation):
                places.append((start, end, indentation))
        if len(places) != 1:
            text = "".join(f"\n  - {line}" for line in original)
            raise ValueError(f"{mistake}\n  its original text must be there once, not {len(places)} times:{text}")
        ((start, end, indentation),) = places
        lines[start:end] = _indented(mutated, indentation)
    return "\n".join(lines)


def _indented(lines: list[str], indentation: str) -> list[str]:
    return [f"{indentation}{line}" if line else line for line in lines]


def words_of(tests: Iterable[str]) -> list[str]:
    """What pytest is told to run."""
    parts = [(*test.split("::", 1), "")[:2] for test in tests]
    return [f"{ROOT}/tests/{name}.py{'::' * bool(only)}{only}" for name, only in parts]


def check_quotes(mistakes: Sequence[Mistake]) -> None:
    """Stop if lines that mistakes change are not in their modules any more, and name all of these mistakes."""
    outdated = []
    for mistake in mistakes:
        try:
            ast.parse(planted(mistake, path_of(mistake.module).read_text("utf-8")))
        except (OSError, SyntaxError, ValueError) as error:  # noqa: PERF203  # each is named
            outdated.append(f"{error}")
    if outdated:
        raise SystemExit(
            "\n".join([*outdated, f"{len(outdated)} mistakes quote lines that have changed: quote them again"])
        )


def check_tests(mistakes: Sequence[Mistake]) -> None:
    """Run the tests named without any mistake: they must pass, or they would notice anything."""

    def work(pipe: Any) -> None:
        plugin = Noticing()
        status = run_pytest(words_of(sorted({test for mistake in mistakes for test in mistake.tests})), plugin)
        json.dump([status, plugin.failed], pipe)

    sent, _ = forked(work)
    if sent is None or sent[0] != 0:
        raise SystemExit(f"the tests fail without any mistake: {(sent and sent[1]) or 'they do not even start'}")


def noticed(mistake: Mistake) -> str:
    """Which test notices a mistake; nothing if it survives."""
    source = planted(mistake, path_of(mistake.module).read_text("utf-8"))

    def work(pipe: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
        plugin = Noticing(Loader(mistake.module, source))
        status = run_pytest(words_of(mistake.tests), plugin)
        json.dump("" if status in NOTHING_FAILED else plugin.failed or "loading", pipe)

    sent, ended_by = forked(work)
    return ("it hung" if ended_by == signal.SIGALRM else "it crashed") if sent is None else str(sent)


def section(mistakes: Sequence[Mistake], survivors: Sequence[Mistake]) -> str:
    """The section of docs/reliability.md."""
    counts, surviving = (Counter(mistake.room for mistake in some) for some in (mistakes, survivors))
    rows = [f"| {room} | {count} | {count - surviving[room]} |" for room, count in counts.items()]
    return f"""{HEADING}

Each is what a tired colleague could write: a lock that is left out, examples shuffled once and not before each epoch, a
checksum that forgets the names. They stand in `tests/campaigns/mistakes.txt`, one idea each, with the tests that must
notice. A mistake that none of these notices is said to survive.

| room | mistakes | noticed |
|---|---|---|
{chr(10).join(rows)}
| all | {len(mistakes)} | {len(mistakes) - len(survivors)} |

{measured("tests.campaigns.mistakes", "Planted", "plant them")}
"""


def main(words: list[str] | None = None) -> int:
    """Plant the mistakes; say which survive."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", type=int, metavar="NUMBER", help="show one mistake and run it")
    parser.add_argument("--modules", nargs="+", help="of micrograd; a package stands for all in it")
    parser.add_argument("--file", type=Path, default=MISTAKES, help="with the mistakes")
    parser.add_argument("--write", type=Path, help="the Markdown page to put the table into")
    arguments = parser.parse_args(words)
    mistakes = read(arguments.file.read_text("utf-8"))
    if arguments.only:
        mistakes = [mistake for mistake in mistakes if mistake.number == arguments.only]
        for original, mutated in (change for mistake in mistakes for change in mistake.changes):
            sys.stdout.write(
                "".join(f"  {sign} {line}\n" for sign, part in (("-", original), ("+", mutated)) for line in part)
            )
    if arguments.modules:
        mistakes = [m for m in mistakes if any(f"{m.module}.".startswith(f"{name}.") for name in arguments.modules)]
    if not mistakes:
        raise SystemExit("there is no such mistake")
    check_quotes(mistakes)
    if len(mistakes) > FEW:
        load_libraries()
    check_tests(mistakes)
    survivors = []
    for mistake in mistakes:
        start = time.perf_counter()
        by = noticed(mistake)
        survivors += [] if by else [mistake]
        took = f"{time.perf_counter() - start:.1f} s"
        sys.stdout.write(f"{mistake}\n    {by or 'SURVIVES'}  ({took})\n")
        sys.stdout.flush()
    if arguments.write or not (arguments.only or arguments.modules):
        report(section(mistakes, survivors), HEADING, arguments.write)
    sys.stdout.write(f"{len(mistakes)} mistakes, {len(survivors)} survive\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
