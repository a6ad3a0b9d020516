"""Exercise: a question, how its answer is judged, and what is known about wrong ones."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import micrograd
from micrograd.engine.value import Value
from micrograd.learn.running import AnswerError

if TYPE_CHECKING:
    from micrograd.learn.kinds.kind import Kind, Result


LIKE = 0.6  # of the probes on which something is wrong, more than so many must agree: then it is the same mistake


class Text(str):
    """A text that a terminal and a notebook show as it reads, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def answer_of(source: str) -> Any:
    r"""What a piece of Python answers: the value of its last expression, or the function or class that it ends with.

    Example:
        >>> answer_of("2 * 3.0")
        6.0
        >>> answer_of("def twice(x):\n    return 2 * x")(4.0)
        8.0
    """
    module = ast.parse(source)
    *before, last = module.body
    names: dict[str, Any] = {"mg": micrograd, "Value": Value, "math": math, "__name__": "answer"}
    exec(compile(ast.Module(before, []), "<answer>", "exec"), names)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "<answer>", "eval"), names)
    exec(compile(ast.Module([last], []), "<answer>", "exec"), names)
    return names[last.name]  # type: ignore[attr-defined]  # a def or a class: a test looks at every one


def without(text: str, part: str, instead: str) -> str:
    """A solution with one thing wrong, for a mistake.

    Raises:
        ValueError: if the part is not in it.

    Example:
        >>> without("a += 1", "+=", "=")
        'a = 1'
    """
    changed = text.replace(part, instead)
    if changed == text:
        raise ValueError(f"{part!r} is not in the solution")
    return changed


@dataclass(frozen=True)
class Mistake:
    """A wrong answer that many give, and what helps whoever gave it.

    Args:
        name: what it is called, a few words.
        source: the answer as Python; or what to replace in the solution, each part with what is there instead.
        why: what is wrong with it, to be read below the facts.
    """

    name: str
    source: str | tuple[str, ...]
    why: str

    def answer(self, solution: str) -> str:
        """The answer as Python, for this solution of the exercise.

        Raises:
            ValueError: if the solution has no such part.
        """
        if isinstance(self.source, str):
            return self.source
        for part, instead in zip(self.source[::2], self.source[1::2], strict=True):
            solution = without(solution, part, instead)
        return solution


@dataclass(frozen=True)
class Exercise:
    """A question of a chapter.

    Args:
        number: chapter and place, such as "2.3".
        title: a few words.
        question: what is asked, and in which form the answer is wanted.
        kind: how the answer is judged.
        hints: the first a nudge, the last nearly the answer.
        solution: a right answer as Python.
        because: what to say to whoever is right.
        mistakes: wrong answers that are known, three to six.
    """

    number: str
    title: str
    question: str
    kind: Kind
    hints: tuple[str, ...]
    solution: str
    because: str
    mistakes: tuple[Mistake, ...]

    def __post_init__(self) -> None:
        self.kind.solution = self.solution

    def judge(self, answer: Any) -> Verdict:
        """Whether an answer is right; if not, what is wrong and why."""
        try:
            read = self.kind.read(answer)
        except AnswerError as error:
            return Verdict(self.number, False, str(error))
        fault = self.kind.first_fault(read)
        if fault is None:
            return Verdict(self.number, True, self.because)
        if (mistake := self._recognised(read)) is None:
            return Verdict(self.number, False, fault)
        return Verdict(self.number, False, f"{fault}\n{mistake.why}", mistake.name)

    def _recognised(self, answer: Any) -> Mistake | None:
        """The known mistake that a wrong answer is most like, if it is like one at all."""
        results = self.kind.results(answer)
        best, chosen = LIKE, None
        for mistake, others in zip(self.mistakes, _results_of_mistakes(self), strict=True):
            if (likeness := self.kind.likeness(results, others)) > best:
                best, chosen = likeness, mistake
        return chosen


@dataclass(frozen=True, repr=False)
class Verdict:
    """What there is to say about an answer: true if it is right, and a text when printed.

    Args:
        number: of the exercise.
        right: whether the answer is.
        message: what is wrong and why; or, of a right answer, why it is right.
        mistake: the name of the mistake that was recognised; empty for none.
        given: whether there was an answer at all.
    """

    number: str
    right: bool
    message: str
    mistake: str = ""
    given: bool = True

    def __bool__(self) -> bool:
        return self.right

    def __repr__(self) -> str:
        if not self.given:
            return f"{self.number}: no answer yet"
        return f"{self.number}: {'right.' if self.right else 'not yet.'} {self.message}"


@lru_cache
def _results_of_mistakes(exercise: Exercise) -> list[list[Result]]:
    kind = exercise.kind
    return [kind.results(kind.read(answer_of(mistake.answer(exercise.solution)))) for mistake in exercise.mistakes]
