"""All chapters and their exercises, found by number."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.learn.exercises import (
    chapter_01,
    chapter_02,
    chapter_03,
    chapter_04,
    chapter_05,
    chapter_06,
    chapter_07,
    chapter_08,
    chapter_09,
    chapter_10,
    chapter_11,
    chapter_12,
    chapter_13,
    chapter_14,
    chapter_15,
    chapter_16,
    chapter_17,
)
from micrograd.learn.running import shown

if TYPE_CHECKING:
    from micrograd.learn.exercise import Exercise


class Chapter(NamedTuple):
    """A chapter of the path.

    Args:
        number: from 1 on.
        title: as its page has it.
        exercises: in the order of the page.
    """

    number: int
    title: str
    exercises: tuple[Exercise, ...]


CHAPTERS = (
    Chapter(1, "One multiplication", chapter_01.EXERCISES),
    Chapter(2, "A graph", chapter_02.EXERCISES),
    Chapter(3, "Build your own micrograd", chapter_03.EXERCISES),
    Chapter(4, "Any function", chapter_04.EXERCISES),
    Chapter(5, "A network", chapter_05.EXERCISES),
    Chapter(6, "How wrong is it?", chapter_06.EXERCISES),
    Chapter(7, "Going down", chapter_07.EXERCISES),
    Chapter(8, "Is it right?", chapter_08.EXERCISES),
    Chapter(9, "Real digits", chapter_09.EXERCISES),
    Chapter(10, "Letters", chapter_10.EXERCISES),
    Chapter(11, "Attention", chapter_11.EXERCISES),
    Chapter(12, "What the compiler sees", chapter_12.EXERCISES),
    Chapter(13, "How it bends", chapter_13.EXERCISES),
    Chapter(14, "Why nothing learns", chapter_14.EXERCISES),
    Chapter(15, "By heart", chapter_15.EXERCISES),
    Chapter(16, "Shared weights", chapter_16.EXERCISES),
    Chapter(17, "Tokens", chapter_17.EXERCISES),
)
EXERCISES: dict[str, Exercise] = {exercise.number: exercise for chapter in CHAPTERS for exercise in chapter.exercises}


def find(number: Any) -> Exercise:
    """The exercise of a number.

    Raises:
        TypeError: if the number is no text; the float 3.1 might mean "3.1" or "3.10".
        ValueError: if there is no such exercise, with one that may have been meant.
    """
    if not isinstance(number, str):
        raise TypeError(
            f'an exercise is named by a text such as "2.3", not by {type(number).__name__}: {shown(number)}'
        )
    if (found := EXERCISES.get(number.strip())) is not None:
        return found
    titled = [exercise.number for exercise in EXERCISES.values() if exercise.title.lower() == number.strip().lower()]
    near = titled or get_close_matches(number.strip(), EXERCISES, 1, 0.5)
    meant = f"did you mean {near[0]!r}?" if near else f"they go from '{min(EXERCISES)}' to '{list(EXERCISES)[-1]}'"
    raise ValueError(f"there is no exercise {shown(number)}: {meant}")
