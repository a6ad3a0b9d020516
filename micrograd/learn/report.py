"""Progress: what is done so far, chapter by chapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from micrograd.learn.catalogue import CHAPTERS, EXERCISES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from micrograd.learn.keeping import Notes


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
