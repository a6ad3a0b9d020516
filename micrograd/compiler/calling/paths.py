"""Paths: the programs of a function that decides on numbers, one for each path that was taken through it.

A program also answers the questions of its function, such as ``if x > 0``. If an answer differs from that of the trace,
the results and all later answers are void. Then a program runs that has the same answers up to there and then the new
one. Where there is none, the function is traced for this call.

    lambda x: x if x > 0 else -x
    fast(2.0)      is traced: the path with the answer 1, whose result is x
    fast(-3.0)     runs that path, which answers 0: so the path with the answer 0 is traced, whose result is -x
    fast(-4.0)     runs the path with the answer 0, which was the last one
"""

from __future__ import annotations

import logging
import os
from collections import Counter, OrderedDict
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.callers import warn_user
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from micrograd.compiler.calling.specialise import Specialised
    from micrograd.compiler.tracing.questions import Question

PATHS = 64  # that are kept, unless mg.compile is told otherwise
_ENOUGH_TRACES, _MANY_QUESTIONS = 16, 64  # if no path was taken twice, and there are so many of them
_ENOUGH_CALLS = 1000  # on known paths, for a trace more where there were too many
_PERIOD, _SAMPLE = 1024, 16  # calls where there were too many, and how many of them find out what is faster
_INTERRUPTED = 2  # calls of a sample whose time does not count
_REMEMBERED = 4096  # pairs of a path, and of the answers that its program gave
_LOG = logging.getLogger("micrograd")
_BYTES = np.dtype(np.float64).itemsize


class Paths:
    """The programs of a function for one structure of its arguments, by their answers.

    Args:
        first: the program that was traced first.
        most: how many are kept. The one that was not used for longest is given up.

    Attributes:
        last: the one that was used last.
    """

    def __init__(self, first: Specialised, most: int) -> None:
        self.last = first
        self._most = self._enough = most
        self._is_known = False  # whether a path was taken twice
        self._programs: OrderedDict[bytes, Specialised] = OrderedDict({first.answers: first})
        self._traces, self._known_since = 1, 0  # calls on known paths since the last trace
        self._calls = -1  # in this period
        self._begun: float | None = None  # when the call began, if it is one of a sample
        self._seconds: tuple[list[float], list[float]] = [], []  # of eager calls, and of those that look for their path
        self._is_faster = True  # to look for one
        self._answers: Counter[tuple[str, float]] = Counter()  # of the paths that were given up
        self._warned = False
        self._following: dict[tuple[Specialised, bytes], Specialised | bool] = {}  # what was found, which takes longer

    def __len__(self) -> int:
        return len(self._programs)

    def are_worth_a_run(self) -> bool:
        """Whether the next call looks for its path.

        Where there were too many traces, some calls of each kind are timed, and the others are of the faster kind.
        """
        if not self._warned:
            return True
        self._begun = None  # the call before may have raised
        self._calls = (self._calls + 1) % _PERIOD
        if self._calls >= 2 * _SAMPLE:
            return self._is_faster
        self._begun = perf_counter()
        return self._calls < _SAMPLE

    def begin_with(self, path: Specialised) -> bool:
        """Whether the next call runs this path first, untimed."""
        return self.last is path and not self._warned

    def end(self, eager: Any = None) -> None:
        """Take note that a call has ended.

        Args:
            eager: its result if it ran eagerly. That of a Value takes as long again, as the gradient does.
        """
        if self._begun is None:
            return
        taken = (perf_counter() - self._begun) * (2.0 if isinstance(eager, Value) else 1.0)
        self._begun = None
        eagerly, by_paths = self._seconds
        (by_paths if self._calls < _SAMPLE else eagerly).append(taken)
        if self._calls == 2 * _SAMPLE - 1:
            self._is_faster = _total(by_paths) * len(eagerly) < _total(eagerly) * len(by_paths)
            eagerly.clear()
            by_paths.clear()

    def use(self, path: Specialised) -> None:
        """Take note that a call took a path."""
        path.taken += 1
        self._is_known = self._is_known or path.taken > 1
        self._known_since += 1
        if path is not self.last:
            self.last = path
            self._programs.move_to_end(path.answers)

    def after(self, path: Specialised, answers: bytes) -> Specialised | bool:
        """A path for the answers that another path has given, up to the first one that differs.

        True if it is to be traced. False if rounding might decide, or an answer is NaN: then the call runs eagerly.
        """
        if (found := self._following.get((path, answers))) is None:
            if len(self._following) >= _REMEMBERED:
                self._following.clear()
            found = self._following[path, answers] = self._after(path, answers)
        return found

    def _after(self, path: Specialised, answers: bytes) -> Specialised | bool:
        first = differing(path, answers)
        if not float(np.frombuffer(answers)[first]).is_integer():
            return False
        if answers in self._programs:
            return self._programs[answers]
        until = (first + 1) * _BYTES
        known = (program for key, program in reversed(self._programs.items()) if key[:until] == answers[:until])
        return next(known, True)

    def is_closed(self) -> bool:
        """Whether there were too many traces in few calls, of which the user was warned."""
        return self._warned and self._traces >= self._enough and self._known_since < _ENOUGH_CALLS

    def may_trace(self, path: Specialised, answers: bytes, compiled: object) -> bool:
        """Whether one more path may be traced: not after too many traces in few calls; then the user is warned."""
        if self._traces >= _ENOUGH_TRACES and len(path.questions) >= _MANY_QUESTIONS and not self._is_known:
            self._enough = min(self._enough, self._traces)
        if self._traces < self._enough or self._known_since >= _ENOUGH_CALLS:
            return True
        if not self._warned:
            self._warned = True
            _warn(compiled, self._traces, path.questions[differing(path, answers)])
        return False

    def count(self) -> None:
        """Count a trace, also one that raises; else such calls would be traced without end."""
        self._traces += 1
        self._known_since = 0
        self._begun = None  # a trace takes longer than any call

    def add(self, path: Specialised) -> None:
        """Keep a path that was traced."""
        path.paths = self
        self._following.clear()
        self._programs[path.answers] = path
        if len(self._programs) > self._most:
            _LOG.debug("%s: a path was given up, as %d are kept", path.name, self._most)
            self.forget(next(iter(self._programs.values())))

    def forget(self, path: Specialised) -> None:
        """Give a path up."""
        self._following.clear()
        self._answers.update(_answers_of(path))
        path.taken = 0
        self._programs.pop(path.answers, None)

    def size(self, first: Specialised) -> int:
        """About how many bytes the programs have, beside that of the first."""
        return sum(path.own_size() for path in self._programs.values() if path is not first)

    def explained(self) -> str:
        """Which lines ask, and how often each answer occurred."""
        found = self._answers.copy()
        for path in self._programs.values():
            found.update(_answers_of(path))
        by_line: dict[str, list[tuple[float, int]]] = {}
        for (line, answer), count in sorted(found.items()):
            by_line.setdefault(line, []).append((answer, count))
        lines = [f"paths  {len(self._programs)} kept, at most {self._most}; traced {self._traces} times"]
        for line, answers in by_line.items():
            shown = ", ".join(f"{answer:g} {count:,} times" for answer, count in answers[:_SHOWN])
            more = f", and {len(answers) - _SHOWN:,} other answers" if len(answers) > _SHOWN else ""
            lines.append(f"asked  {os.path.basename(line)}: {shown}{more}")
        return "\n".join(lines)


_SHOWN = 6


def _total(seconds: list[float]) -> float:
    return sum(sorted(seconds)[:-_INTERRUPTED])


def differing(path: Specialised, answers: bytes) -> int:
    """The number of the first question that has another answer."""
    return int(np.argmax(np.frombuffer(answers) != np.frombuffer(path.answers)))


def holding(path: Specialised, answers: bytes) -> list[float]:
    """The answers that hold for the numbers of a call: those up to the first one that differs."""
    found: list[float] = np.frombuffer(answers)[: differing(path, answers) + 1].tolist()
    return found


def _answers_of(path: Specialised) -> Counter[tuple[str, float]]:
    """How often calls on a path got each answer at each line."""
    return Counter(
        {
            asked: count * path.taken
            for asked, count in Counter((question.line, question.answer) for question in path.questions).items()
        }
    )


def _warn(compiled: object, traces: int, question: Question) -> None:
    warn_user(
        f"{compiled} was traced for {traces} ways through it, and takes yet another one: {question.line} asks, last "
        f"{question.text}. Calls that take ways which are not known run eagerly from now on. Write mg.where for a "
        "choice between two numbers, mg.while_loop for a loop, or make the number static: give it as a text"
    )
