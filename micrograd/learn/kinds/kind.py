"""Kind: how an answer is judged, in a form that tells one mistake from another.

An answer is put to probes: points, graphs, random programs. On each probe it has an *outcome*, which is compared with
the right one. Two answers with the same outcomes are the same answer, however they are written: so a wrong one is
recognised as a mistake that is known, and gets the explanation meant for it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.learn.comparing import alike
from micrograd.learn.running import AnswerError, outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Result(NamedTuple):
    """What an answer made of one probe, and whether that is wrong."""

    outcome: Any
    wrong: bool


class Kind:
    """A kind of exercise. Each says what it wants, which probes there are, and what is wrong on one of them."""

    tolerance = 1e-6
    solution = ""  # the source of a right answer; the exercise sets it

    def read(self, answer: Any) -> Any:
        """The answer in the form in which it is judged.

        Raises:
            AnswerError: if it is no answer to this kind of question; the message says what is.
        """
        raise NotImplementedError

    def probes(self) -> Sequence[Any]:
        """What the answer is tried on, the same each time."""
        return [None]

    def drawn(self) -> Iterable[Any]:
        """Further probes, other ones each time, so that nobody can know them."""
        return []

    def outcome(self, answer: Any, probe: Any) -> Any:
        """What the answer makes of a probe, or the answer itself where nothing is tried; AnswerError where it fails."""
        return answer

    def fault(self, answer: Any, probe: Any) -> str | None:
        """What is wrong with the answer on a probe, with what was expected beside what was given; None if it is right.

        Raises:
            AnswerError: if the answer fails there.
        """
        raise NotImplementedError

    def smaller(self, probe: Any) -> Iterable[Any]:
        """Probes that are simpler than this one, the simplest first."""
        return []

    def first_fault(self, answer: Any) -> str | None:
        """What is wrong with an answer, on the simplest probe on which it is wrong; None if it is right."""
        passed = ""
        for probe in chain(self.probes(), self.drawn()):
            if (found := self._fault_on(answer, probe)) is not None:
                return self._on_the_simplest(answer, probe, found) + passed
            passed = passed or self.passed(answer, probe)
        return None

    def passed(self, answer: Any, probe: Any) -> str:
        """What a message adds about a probe on which the answer is right, where it is wrong on another one."""
        return ""

    def _fault_on(self, answer: Any, probe: Any) -> str | None:
        try:
            return self.fault(answer, probe)
        except AnswerError as error:
            return str(error)

    def _on_the_simplest(self, answer: Any, probe: Any, fault: str) -> str:
        """The fault on a probe that no smaller one can take the place of."""
        for candidate in self.smaller(probe):
            if (found := self._fault_on(answer, candidate)) is not None:
                return self._on_the_simplest(answer, candidate, found)
        return fault

    def results(self, answer: Any) -> list[Result]:
        """What the answer makes of every probe."""
        return [
            Result(outcome(lambda probe=probe: self.outcome(answer, probe)), self._fault_on(answer, probe) is not None)  # type: ignore[misc]
            for probe in self.probes()
        ]

    def likeness(self, results: Sequence[Result], others: Sequence[Result]) -> float:
        """How alike two answers are, from 0 to 1: on how many of the probes on which either is wrong they agree.

        It need not be 1 for the same mistake: the operands of a Value are a set, which has no order.
        """
        pairs = [(one, other) for one, other in zip(results, others, strict=True) if one.wrong or other.wrong]
        agreeing = sum(
            one.wrong and other.wrong and alike(one.outcome, other.outcome, self.tolerance) for one, other in pairs
        )
        return agreeing / len(pairs) if pairs else 0.0
