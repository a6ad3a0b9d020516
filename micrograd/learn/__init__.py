"""Exercises of the learner's path, which check answers and say what is wrong and why.

The path is docs/learn/, a chapter a page. ``mg.learn`` loads when it is first asked for.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import fill
from typing import Any

from micrograd._support.checks import required_number
from micrograd.learn import keeping as _keeping
from micrograd.learn.catalogue import find as _find
from micrograd.learn.data import digits, names
from micrograd.learn.deadline import judge as _judge
from micrograd.learn.exercise import Text, Verdict
from micrograd.learn.keeping import Progress
from micrograd.learn.sliders import sliders

_WIDTH = 100  # characters of a line

__all__ = [
    "Progress",
    "Text",
    "Verdict",
    "check",
    "digits",
    "hint",
    "names",
    "progress",
    "question",
    "reset",
    "sliders",
    "solution",
]


def check(number: str, answer: Any, seconds: float | None = 10.0) -> Verdict:
    """Check the answer to an exercise. A function runs many times, and its printed output is hidden.

    It runs in a child process, which can be stopped; its changes stay there.

    Args:
        number: of the exercise, such as "2.3".
        answer: what the exercise asks for: a number, a dict, a function, a class. With ``...`` there is no answer yet.
        seconds: how long the answer may run; None for no limit, and in this process, for a debugger. On Windows there
            is no limit and no child process. On a page in a browser, Python itself restarts, without its
            variables.

    Returns:
        A Verdict, which is true if the answer is right; printed, it says what is wrong and why.

    Raises:
        ValueError: if there is no such exercise, or seconds is not positive.
        TypeError: if number is no string.
        KeyboardInterrupt: if you press Ctrl-C.

    Example:
        >>> check("1.2", 2.0)
        1.2: right. If y grows by a little, f grows by x times as much.
        >>> bool(check("1.2", -3.0))
        False
    """
    exercise = _find(number)
    limit = None if seconds is None else required_number(seconds, "seconds")
    if limit is not None and not 0 < limit < float("inf"):
        raise ValueError(f"seconds must be positive and finite, or None for no limit, not {seconds!r}")
    if answer is Ellipsis:
        return Verdict(exercise.number, False, "Put your answer in the place of the dots.", given=False)
    verdict = _judge(exercise, answer, limit)
    _keeping.tried(exercise.number, verdict.right)
    return verdict


def question(number: str) -> Text:
    """The question of an exercise, as in its chapter.

    Raises:
        ValueError, TypeError: as for check.

    Example:
        >>> question("1.2")
        1.2 The other slope
        Again f = x * y, with x = 2 and y = -3. What is the slope of f with respect to y?
    """
    exercise = _find(number)
    parts = exercise.question.split("\n\n")
    lines = [part if part.startswith(" ") else fill(part, _WIDTH, break_on_hyphens=False) for part in parts]
    return Text(f"{exercise.number} {exercise.title}\n" + "\n\n".join(lines))


def hint(number: str) -> Text:
    """The next hint of an exercise: a nudge first, then more.

    Raises:
        ValueError, TypeError: as for check.

    Example:
        >>> str(hint("1.2")).startswith("Hint ")
        True
    """
    exercise = _find(number)
    count = len(exercise.hints)
    shown = _keeping.change(exercise.number, lambda note: replace(note, hints=min(note.hints + 1, count))).hints
    place = min(shown, count - 1)
    last = "" if shown < count else f'\nThere are no more; mg.learn.solution("{exercise.number}") shows one way.'
    return Text(f"Hint {place + 1} of {count}: {exercise.hints[place]}{last}")


def solution(number: str) -> Text:
    """One way to solve an exercise, as Python.

    Raises:
        ValueError, TypeError: as for check.

    Example:
        >>> solution("1.2")
        2.0
    """
    exercise = _find(number)
    _keeping.change(exercise.number, lambda note: replace(note, solution=not note.right))
    return Text(exercise.solution.strip())


def progress() -> Progress:
    """Your progress: the exercises of each chapter, and which one is next.

    It is stored only on this machine, in the file that the last line names. MICROGRAD_PROGRESS in the environment
    chooses another file; "off" stores nothing.

    Example:
        >>> "exercises are right" in str(progress())
        True
    """
    try:
        return Progress(_keeping.notes(), _keeping.place() if _keeping.is_kept() else None)
    except _keeping.DamagedError as error:
        return Progress({}, None, f"{error}; mg.learn.reset() begins again")


def reset() -> None:
    """Forget all progress.

    Raises:
        OSError: if the file cannot be removed.
    """
    _keeping.forget()
