"""The progress of a class: who has done what, and where many are stuck.

    python -m micrograd.learn report class/*.progress
    python -m micrograd.learn report class/*.progress --csv class.csv

A file is the one that mg.learn.progress() names, or what the site exports; it is called as in the table, without its
ending.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.files import write_atomically
from micrograd.learn.catalogue import CHAPTERS, EXERCISES
from micrograd.learn.keeping import DamagedError, Notes, notes_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Class = Mapping[str, Mapping[str, Notes]]

STUCK = 5  # exercises that are named, those with which most have trouble


def table(learners: Class) -> str:
    """Who has done how many exercises of each chapter, and the exercises that give most trouble.

    Args:
        learners: by name, what is known of each exercise.

    Example:
        >>> print(table({"Ada": {"1.1": Notes(tries=1, right=True), "1.2": Notes(tries=4, hints=2)}}))
               1    2    3    4    5    6    7    8    9   10   11   12   13   14   15   16   17
        Ada  1/6  0/9 0/12  0/7  0/5  0/5  0/5  0/5  0/5  0/6  0/6  0/7  0/6  0/6  0/6  0/6  0/7   1 of 109
        <BLANKLINE>
        stuck most: 1.2, The other slope (1 tried, 0 right, 4.0 tries and 2.0 hints each)
    """
    width = max(map(len, learners))
    lines = [" " * width + "".join(f"{chapter.number:>5}" for chapter in CHAPTERS)]
    for name, notes in learners.items():
        right = {number for number, note in notes.items() if note.right} & EXERCISES.keys()
        counts = [
            f"{sum(exercise.number in right for exercise in chapter.exercises)}/{len(chapter.exercises)}"
            for chapter in CHAPTERS
        ]
        row = "".join(f"{count:>5}" for count in counts)
        lines.append(f"{name:<{width}}{row}   {len(right)} of {len(EXERCISES)}")
    return "\n".join([*lines, "", *_stuck(learners)])


def _stuck(learners: Class) -> list[str]:
    """The exercises that were tried most often in vain, or with most hints."""
    troubles: list[tuple[float, str]] = []
    for number, exercise in EXERCISES.items():
        tried = [notes[number] for notes in learners.values() if number in notes]
        count = len(tried)
        trouble = sum(max(note.tries - note.right, 0) + note.hints + note.solution for note in tried)
        if trouble:
            right = sum(note.right for note in tried)
            tries, hints = (sum(getattr(note, name) for note in tried) / count for name in ("tries", "hints"))
            words = f"{count} tried, {right} right, {tries:.1f} tries and {hints:.1f} hints each"
            troubles.append((-trouble, f"{number}, {exercise.title} ({words})"))
    return [f"stuck most: {words}" for _, words in sorted(troubles)[:STUCK]] or ["nobody was stuck"]


def as_csv(learners: Class) -> str:
    """A row for each learner and exercise that was tried."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["learner", "exercise", "title", "right", "tries", "hints", "solution"])
    for name, notes in learners.items():
        for number, exercise in EXERCISES.items():
            if (note := notes.get(number)) is not None:
                writer.writerow([name, number, exercise.title, note.right, note.tries, note.hints, note.solution])
    return text.getvalue()


def _read(paths: Sequence[Path]) -> Class:
    """What is known of each learner.

    Raises:
        ValueError: if a file is not there or is none of progress, or two are called alike.
    """
    learners: dict[str, Mapping[str, Notes]] = {}
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path} is no file")
        if path.stem in learners:
            raise ValueError(f"two files are called {path.stem}: rename one, as it is the name in the table")
        learners[path.stem] = notes_in(path)
    return learners


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; 1 where a file is none of progress."""
    parser = argparse.ArgumentParser(prog="python -m micrograd.learn", description="The progress of a class.")
    commands = parser.add_subparsers(required=True, metavar="report")
    report = commands.add_parser("report", help="a table of who has done what, and where many are stuck")
    report.add_argument("files", nargs="+", type=Path, help="the files that mg.learn.progress() names, one a learner")
    report.add_argument("--csv", type=Path, help="a file to write: a row for each learner and exercise")
    options = parser.parse_args(words)
    try:
        learners = _read(options.files)
        if options.csv is not None:
            write_atomically(options.csv, as_csv(learners).encode())
    except (DamagedError, OSError, ValueError) as error:
        print(f"micrograd.learn: {error}", file=sys.stderr)  # noqa: T201  # a command prints
        return 1
    print(table(learners))  # noqa: T201  # a command prints
    return 0


if __name__ == "__main__":
    sys.exit(main())
