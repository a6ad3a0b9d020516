"""Regions: straight programs with decisions between them, for backends that decide while a program runs.

All numbers that one program hands to the next are in one array: what is given, the results of decisions, and what these
need besides. A loop keeps its state where its results go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.ir.entries import Decided
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Integers


@dataclass(frozen=True)
class Straight:
    """A program without decisions.

    Attributes:
        reads: which numbers its inputs are.
        results: how many there are.
        value: the program of the results.
        gradients: that with the gradients of all that it reads.
    """

    reads: Integers
    results: int
    value: Program
    gradients: Program


@dataclass(frozen=True)
class Step:
    """A decision.

    Attributes:
        before: what computes numbers that it needs, of all others; None where there are none.
        targets: which numbers these are.
        decided: what it reads, and where its results are.
        parts: both branches, or the condition and the body of a loop.
    """

    before: Region | None
    targets: Integers
    decided: Decided
    parts: tuple[Region, Region]


@dataclass(frozen=True)
class Region:
    """What decides: steps, and a program of the results.

    Attributes:
        given: how many numbers are given, the first ones.
        size: how many numbers there are.
        steps: in order.
        last: the program of the results.
    """

    given: int
    size: int
    steps: tuple[Step, ...]
    last: Straight

    def changed(self, change: Callable[[Program], Program]) -> Region:
        """The same with other programs.

        Args:
            change: makes each of them of one.
        """
        value, gradients = change(self.last.value), change(self.last.gradients)
        steps = [
            replace(
                step,
                before=None if step.before is None else step.before.changed(change),
                parts=(step.parts[0].changed(change), step.parts[1].changed(change)),
            )
            for step in self.steps
        ]
        return replace(self, steps=tuple(steps), last=replace(self.last, value=value, gradients=gradients))
