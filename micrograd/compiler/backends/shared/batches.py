"""Batches: the examples of a step of fit, run in packs of those that have a program in common.

    batch        0 1 2 3 4 5 6           example 2 has a program of its own
    in packs     0 1 3 4 | 5 6 . . | 2   a pack of the first program is 4 examples, one of the other is 1

Where examples are left over, the last one stands in the places that are free, and their seeds are 0: it is computed
again there, and adds nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.passes.packs import Packing


class Stepping(NamedTuple):
    """What follows a batch in a step, where several steps are taken at once.

    Attributes:
        update: gives the optimiser's update in native code, if there is some; see ``Batches.native_update``.
        given: where in the buffer the parameters are, the mean gradients of a batch, the learning rate, and each number
            of the state.
        results: where an update puts the next parameters, and each number of the next state.
        states: where the states are, which only updates read; the next ones are as many.
        next_states: where these begin.
        last_gradients: where the gradients of the last step are.
        done: an array of one number: how many steps were taken.
        last_rate: another one: the learning rate of the last of them.
    """

    update: Callable[[], Any]
    given: list[int]
    results: list[int]
    states: slice
    next_states: int
    last_gradients: int
    done: Integers
    last_rate: Floats

    def back(self) -> tuple[list[int], list[int]]:
        """The same as given and results for a step that follows at once: both regions have changed places."""
        away = self.next_states - self.states.start

        def moved(position: int) -> int:
            if position == self.given[1]:
                return self.last_gradients
            is_state, is_next = (self.states.start <= at < self.states.stop for at in (position, position - away))
            return position + away * (is_state - is_next)

        return [*map(moved, self.given)], [*map(moved, self.results)]


class Batches(ABC):
    """Runs the programs of the examples of a batch.

    Args:
        buffer: the one that all programs share.
        runs: the programs, as executables in that buffer. Each has an output for every example of a pack.
        numbers: the numbers of each example: arrays of their own, or the rows of a matrix.
        which: for each example, which of the programs it runs.
        gradients: where in the buffer the mean gradient shall be.

    Attributes:
        packing: which packs there may be.
    """

    packing: Packing

    @abstractmethod
    def __init__(
        self, buffer: Floats, runs: Sequence[Any], numbers: Sequence[Floats] | Floats, which: Integers, gradients: slice
    ) -> None: ...

    @abstractmethod
    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples, in any order; their mean gradient is in its place in the buffer then."""

    @staticmethod
    def native_update(update: Callable[..., Any], shared: Sequence[bool]) -> Any:
        """An optimiser's update in native code; shared says which states are one for all parameters."""
        raise NotImplementedError

    def at_once(self, batches: Sequence[list[int]], stepping: Stepping) -> int:
        """For how many of these batches, from the first on, ``take_steps`` may take the steps."""
        return 0

    def take_steps(self, batches: Sequence[list[int]], rates: Floats, losses: Floats, stepping: Stepping) -> None:
        """Take the steps of batches of one size, until a number of a step is not finite: nothing of that one is kept.

        Args:
            batches: of which at_once says that it can be done.
            rates: the learning rate of each step.
            losses: what the losses are written to: a row for each batch.
            stepping: what follows a batch.
        """
        raise NotImplementedError


def in_packs(batch: Sequence[int], which: Sequence[int], sizes: Sequence[int]) -> tuple[list[int], list[int]]:
    """Put the examples of a batch into packs.

    Args:
        batch: the examples.
        which: for each example there is, which program it runs.
        sizes: for each program how many examples are in a pack.

    Returns:
        The examples, in the order of their programs; and three numbers for each pack: its program, and where in that
        order its examples begin and end.

    Example:
        >>> in_packs([0, 1, 2, 3, 4, 5, 6], which=[0, 0, 1, 0, 0, 0, 0], sizes=[4, 1])
        ([0, 1, 3, 4, 5, 6, 2], [0, 0, 4, 0, 4, 6, 1, 6, 7])
    """
    of_programs: defaultdict[int, list[int]] = defaultdict(list)
    for example in batch:
        of_programs[which[example]].append(example)
    order: list[int] = []
    packs: list[int] = []
    for program in sorted(of_programs):
        first, size = len(order), sizes[program]
        order += of_programs[program]
        last = len(order) - 1 - (len(order) - 1 - first) % size  # where the last pack begins, which may not be full
        for begin in range(first, last, size):
            packs += program, begin, begin + size
        packs += program, last, len(order)
    return order, packs


def first_own_input(program: Program, length: int) -> int:
    """Where, among a program's inputs, those of its examples begin; they are the last ones.

    Args:
        program: with an output for each example. They have a seed each among the inputs, if there are several.
        length: how many numbers an example has.
    """
    size = len(program.outputs)
    return len(program.inputs) - size * length - (size if size > 1 else 0)
