"""What a learner has done so far: kept in one small file on the learner's machine, and sent nowhere.

MICROGRAD_PROGRESS in the environment says where: the path of the file, or "off" for nowhere. What pytest runs is not
what a learner has done: without that variable, nothing is kept of it. Where the file cannot be written, all works as it
does elsewhere, and is forgotten when the process ends.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from micrograd._support.files import write_atomically
from micrograd.learn.catalogue import CHAPTERS, EXERCISES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VARIABLE = "MICROGRAD_PROGRESS"
IN_A_TEST = "PYTEST_CURRENT_TEST"  # pytest sets it while a test runs


@dataclass(frozen=True)
class Notes:
    """What is known of one exercise.

    Args:
        tries: how often an answer was checked, up to the first right one.
        hints: how many hints were shown.
        right: whether a right answer was given.
        solution: whether the solution was shown before that.
    """

    tries: int = 0
    hints: int = 0
    right: bool = False
    solution: bool = False


_unsaved: dict[Path | None, dict[str, Notes]] = {}  # what could not be written, by where it should have been


class DamagedError(ValueError):
    """The file is there, and is not what this module writes."""


def place() -> Path | None:
    """Where the file is; None where nothing is to be kept, or there is no home."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen.lower() == "off" or (not chosen and IN_A_TEST in os.environ):
        return None
    if chosen:
        return Path(chosen)
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "micrograd" / "progress.json"


def notes() -> dict[str, Notes]:
    """What is known, by the number of the exercise.

    Raises:
        DamagedError: if the file is there and cannot be read.
    """
    path = place()
    if path in _unsaved:
        return _unsaved[path]
    return {} if path is None else notes_in(path)


def notes_in(path: Path) -> dict[str, Notes]:
    """What is known by a file, by the number of the exercise; nothing where there is none.

    Raises:
        DamagedError: if the file is there and cannot be read.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return {number: _note(entry) for number, entry in json.loads(data)["exercises"].items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged, or is not a file of progress") from error


def _note(entry: Any) -> Notes:
    note = Notes(**entry)
    if {name: type(item) for name, item in entry.items()} != {name: type(getattr(Notes, name)) for name in entry}:
        raise ValueError
    return note


def change(number: str, changed: Callable[[Notes], Notes]) -> Notes:
    """Change what is known of an exercise, and write it down where that is possible.

    Args:
        number: of the exercise.
        changed: from its notes to those that take their place.

    Returns:
        The notes as they were before.
    """
    path = place()
    try:
        known = notes()
    except DamagedError:
        known, path = _unsaved.get(None, {}), None  # the file stays as it is: progress() says what to do
    before = known.get(number, Notes())
    if (after := changed(before)) != before:
        _write(path, {**known, number: after})
    return before


def tried(number: str, right: bool) -> None:
    """Note that an answer was checked. After a right one, no others count."""
    change(number, lambda note: note if note.right else replace(note, tries=note.tries + 1, right=right))


def forget() -> None:
    """Forget everything.

    Raises:
        OSError: if the file is there and cannot be removed.
    """
    _unsaved.clear()
    if (path := place()) is not None:
        path.unlink(missing_ok=True)


def _write(path: Path | None, known: dict[str, Notes]) -> None:
    if path is not None:
        entries = {number: asdict(note) for number, note in sorted(known.items())}
        data = json.dumps({"version": 1, "exercises": entries}, indent=1).encode()
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, data)
            _unsaved.pop(path, None)
            return
    _unsaved[path] = known


def is_kept() -> bool:
    """Whether what is known is in the file, so that it is there tomorrow."""
    path = place()
    return path is not None and path not in _unsaved


@dataclass(frozen=True, repr=False)
class Progress:
    """What is known of each exercise; a table when printed.

    Args:
        notes: by the number of the exercise.
        kept: the file that they are in; None where they are in none.
        trouble: why they could not be read.
    """

    notes: Mapping[str, Notes]
    kept: Path | None
    trouble: str = ""

    @property
    def right(self) -> list[str]:
        """The numbers of the exercises that are done."""
        return [number for number in EXERCISES if number in self.notes and self.notes[number].right]

    def __repr__(self) -> str:
        done, width = set(self.right), max(len(chapter.title) for chapter in CHAPTERS)
        lines = [f"{len(done)} of {len(EXERCISES)} exercises are right"]
        for number, title, exercises in CHAPTERS:
            marks = "".join("●" if exercise.number in done else "○" for exercise in exercises)
            lines.append(f"{number:>3}  {title:<{width}}  {marks}")
        following = next((exercise for exercise in EXERCISES.values() if exercise.number not in done), None)
        lines.append(f"next: {following.number}, {following.title}" if following else "all done")
        kept = f"kept in {self.kept}" if self.kept else "not kept: it is forgotten when Python ends"
        return "\n".join([*lines, self.trouble or kept])
