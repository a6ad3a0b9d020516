"""Deciding: runs of regions, which are straight programs with decisions between them.

A plan says what is done, step by step. Its numbers are in arrays: those of a region, and the buffers of its programs.

    move      numbers of the region to the inputs of a program, and its outputs back; or a row of numbers, by its number
    run       a program in its buffer
    choose    one of two plans
    repeat    a plan while another one gives a number that is not 0; the states may be kept
    unwind    a plan for each of the states that were kept, from the last to the first

Gradients take the same way back, in one plan with the way there. The states of a loop are kept as they are computed, so
nothing is kept for iterations that did not happen, and a loop needs no limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from micrograd.compiler.backends.shared.executable import Ports
from micrograd.compiler.numbers import part_of, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.backends.shared.executable import Executable
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.ir.regions import Region, Step, Straight
    from micrograd.compiler.numbers import Floats, Integers


@dataclass(frozen=True, eq=False)
class Cells:
    """Numbers in an array, and where in it they are."""

    array: Floats
    at: Integers

    def __getitem__(self, which: Any) -> Cells:
        """Some of the numbers."""
        return Cells(self.array, self.at[which])


class Move(NamedTuple):
    """Copy numbers, or add them to others.

    Attributes:
        source: which has an axis more if it has rows, of which one is meant.
        target: the same.
        adds: whether they are added.
        row: the number of the row; None where neither has rows.
    """

    source: Cells
    target: Cells
    adds: bool = False
    row: Cells | None = None


ZERO = Cells(np.zeros(1), np.zeros(1, dtype=np.int64))


def clear(target: Cells) -> Move:
    """Let numbers be 0."""
    return Move(ZERO[np.zeros(len(target.at), dtype=np.int64)], target)


class Check(NamedTuple):
    """Take note where a number is not finite: it might reach no result."""

    source: Cells
    failed: Cells


class Run(NamedTuple):
    """Run a program in its buffer."""

    executable: Executable


class Choose(NamedTuple):
    """Run one of two plans: the first if a number is not 0."""

    predicate: Cells
    then: Plan
    otherwise: Plan


class Repeat(NamedTuple):
    """Run a plan while another one gives a number that is not 0.

    Attributes:
        condition: the other one.
        answer: the number that it gives.
        body: the plan.
        limit: how many iterations there may be; None for any number.
        failed: the number that is not 0 if there would be more.
        states: what is kept of each iteration.
    """

    condition: Plan
    answer: Cells
    body: Plan
    limit: int | None
    failed: Cells
    states: States


class Unwind(NamedTuple):
    """Run a plan for each of the states that were kept, from the last to the first."""

    states: States
    body: Plan


Plan: TypeAlias = "list[Move | Check | Run | Choose | Repeat | Unwind]"


class States:
    """The states of a loop, one for each iteration.

    Args:
        state: where the state is.
        is_kept: whether the states are; else only their number is.

    Attributes:
        rows: the states, with room for more.
        count: how many there are.
    """

    def __init__(self, state: Cells, is_kept: bool) -> None:
        self.state, self.is_kept = state, is_kept
        self.rows = np.empty((FIRST_ROWS, len(state.at) if is_kept else 0))
        self.count = 0

    def grow(self) -> None:
        """Make room for as many again."""
        self.rows = np.concatenate([self.rows, np.empty_like(self.rows)])


FIRST_ROWS = 64


class Code(NamedTuple):
    """A plan that computes outputs, and where its numbers are.

    Attributes:
        plan: the plan.
        reads: which of the numbers of the region around its inputs are.
        inputs: where they go.
        outputs: where the results come.
        seeds: where the gradients of the results go.
        slopes: where the gradients of the inputs come.
    """

    plan: Plan
    reads: Integers
    inputs: Cells
    outputs: Cells
    seeds: Cells
    slopes: Cells


class Planner:
    """Makes the plans of regions.

    Args:
        lower: makes an executable of a program.

    Attributes:
        executables: those of all programs.
        failed: the number that is not 0 after a run in which a decision has failed.
    """

    def __init__(self, lower: Callable[[Program], Executable]) -> None:
        self._lower = lower
        self.executables: list[Executable] = []
        self.failed = Cells(np.zeros(1), np.zeros(1, dtype=np.int64))

    def code_of(self, region: Region, gradients: bool) -> Code:
        """The plan of a region on numbers of its own."""
        numbers = np.zeros(region.size)
        all_numbers = Cells(numbers, np.arange(region.size))
        last = self._straight(region.last, gradients)
        slopes = Cells(np.zeros_like(numbers), all_numbers.at) if gradients else None
        plan: Plan = []
        back: Plan = []
        for step in region.steps:
            if step.before is not None:
                before = self._straight(step.before.last, False)
                targets = all_numbers[step.targets]
                plan += [*self._called(before, all_numbers), Move(before.outputs, targets)]
            if step.decided.is_loop:
                backwards = self._loop(step, all_numbers, slopes, plan)
            else:
                backwards = self._choice(step, all_numbers, slopes, plan)
            plan.append(Check(all_numbers[np.array(step.decided.made)], self.failed))
            if slopes is not None:
                back = backwards + self._before_back(step, all_numbers, slopes) + back
        plan += self._called(last, all_numbers)
        if slopes is not None:
            plan += [clear(slopes), Move(last.slopes, slopes[last.reads], adds=True), *back]
        given = np.arange(region.given)
        return Code(plan, given, all_numbers[given], last.outputs, last.seeds, (slopes or all_numbers)[given])

    def _straight(self, part: Straight, gradients: bool) -> Code:
        program = part.gradients if gradients else part.value
        executable = self._lower(program)
        self.executables.append(executable)
        buffer, reads = executable.buffer, part.reads
        inputs, outputs = Cells(buffer, program.inputs[: len(reads)]), Cells(buffer, program.outputs)
        slopes = Cells(buffer, program.of_gradients)
        return Code([Run(executable)], reads, inputs, outputs, Cells(buffer, program.seeds), slopes)

    def _part(self, region: Region, gradients: bool) -> Code:
        return self.code_of(region, gradients) if region.steps else self._straight(region.last, gradients)

    @staticmethod
    def _called(code: Code, numbers: Cells) -> Plan:
        """The plan of a part, where what it reads are these numbers."""
        return [Move(numbers[code.reads], code.inputs), *code.plan]

    def _back(self, part: Region, numbers: Cells, read: Cells, seeds: Cells, *after: Move) -> Plan:
        """The plan of a part with its gradients.

        Args:
            part: the part.
            numbers: what it reads.
            read: the gradients of these, which are added to.
            seeds: the gradients of its results.
            *after: what to do as soon as these have been read.
        """
        code = self._part(part, True)
        if not len(code.seeds.at):  # it reads nothing
            return [*after]
        moved = [Move(numbers[code.reads], code.inputs), Move(seeds, code.seeds)]
        return [*moved, *after, *code.plan, Move(code.slopes, read[code.reads], adds=True)]

    def _before_back(self, step: Step, numbers: Cells, slopes: Cells) -> Plan:
        """What computes the numbers that a decision needs, backwards. These begin again: they have given all."""
        if step.before is None:
            return []
        targets = slopes[step.targets]
        return self._back(step.before, numbers, slopes, targets, clear(targets))

    def _choice(self, step: Step, numbers: Cells, slopes: Cells | None, plan: Plan) -> Plan:
        """Add a choice to a plan, and give what goes back through it."""
        decided, results = step.decided, numbers[step.decided.results]
        there, back = list[Any](), list[Any]()
        for part, reads in zip(step.parts, decided.reads, strict=True):
            code = self._part(part, False)
            there.append([*self._called(code, numbers[reads]), Move(code.outputs, results)])
            if slopes is not None:
                back.append(self._back(part, numbers[reads], slopes[reads], slopes[decided.results]))
        predicate = numbers[decided.predicate]
        plan.append(Choose(predicate, *there))
        return [Choose(predicate, *back)] if back else []

    def _loop(self, step: Step, numbers: Cells, slopes: Cells | None, plan: Plan) -> Plan:
        """Add a loop to a plan, and give what goes back through it."""
        decided, state = step.decided, numbers[step.decided.results]
        (condition, body), (asked, read) = (self._part(part, False) for part in step.parts), decided.reads
        states, row, width = States(state, slopes is not None), state[-1:], len(decided.state)
        moving, end = body.reads >= len(read), width + decided.stacked.shape[1]
        rows, sums = numbers[decided.moving[:, body.reads[moving] - len(read)]], numbers[decided.sums]
        of_condition, before_condition = _handed_over(condition, numbers[asked], width)
        of_body, before_body = _handed_over(body, numbers[read], width)
        again = [
            of_body,
            *_of_row(rows, body.inputs[moving], row),
            *body.plan,
            *_of_row(body.outputs[width:end], numbers[decided.stacked], row),
            *(Move(body.outputs[end:], sums, adds=True), Move(body.outputs[:width], state), Check(state, self.failed)),
        ]
        plan += [
            *(Move(numbers[decided.state], state), clear(sums), before_condition, before_body),
            Repeat(
                *([of_condition, *condition.plan], condition.outputs, again),
                *(decided.limit, self.failed, states),
            ),
        ]
        if slopes is None:
            return []
        seeds, (iteration, before) = slopes[decided.results], self._iteration_back(step, numbers, slopes)
        return [*before, Unwind(states, iteration), Move(seeds, slopes[decided.state], adds=True)]

    def _iteration_back(self, step: Step, numbers: Cells, slopes: Cells) -> tuple[Plan, Plan]:
        """The plan of an iteration with its gradients, and what comes once before all of them."""
        decided, (_, read), code = step.decided, step.decided.reads, self._part(step.parts[1], True)
        seeds, width, row = slopes[decided.results], len(decided.state), numbers[decided.results][-1:]
        if not len(code.seeds.at):  # it reads nothing
            return [clear(seeds)], []
        given, moving = code.reads < len(read), code.reads >= len(read)
        rows = decided.moving[:, code.reads[moving] - len(read)]
        of_iteration, before = _handed_over(code, numbers[read], width)
        end = width + decided.stacked.shape[1]
        iteration = [
            of_iteration,
            *_of_row(numbers[rows], code.inputs[moving], row),
            *(Move(seeds, code.seeds[:width]), clear(seeds)),
            *_of_row(slopes[decided.stacked], code.seeds[width:end], row),
            *(*code.plan, Move(code.slopes[given], slopes[read][code.reads[given]], adds=True)),
            *_of_row(code.slopes[moving], slopes[rows], row, adds=True),
        ]
        return iteration, [before, Move(slopes[decided.sums], code.seeds[end:])]


def _handed_over(code: Code, read: Cells, width: int) -> tuple[Move, Move]:
    """What hands numbers over to a part of a loop: in each iteration, and what is the same in all of them, once.

    Args:
        code: the part, which never changes its inputs.
        read: the numbers that it reads, but for its rows.
        width: how many of these, the last ones, are the state.
    """
    fixed = len(read.at) - width
    of_state = (code.reads >= fixed) & (code.reads < len(read.at))
    in_each, once = (Move(read[code.reads[part]], code.inputs[part]) for part in (of_state, code.reads < fixed))
    return in_each, once


def _of_row(source: Cells, target: Cells, row: Cells, adds: bool = False) -> Plan:
    """A row that is moved; nothing if a row has no numbers."""
    return [Move(source, target, adds, row)] if source.at.size and target.at.size else []


class RunOfRegion:
    """A run of a region: from inputs to outputs and gradients.

    Args:
        region: with the programs of its parts.
        wanted: the numbers of the inputs whose gradients are given.
        lower: makes an executable of a program.

    Attributes:
        program: of the outputs.
        executables: those of all programs.
    """

    def __init__(self, region: Region, wanted: Integers, lower: Callable[[Program], Executable]) -> None:
        planner = Planner(lower)
        gradients = len(wanted) > 0
        code = planner.code_of(region, gradients)
        self.program = region.last.gradients if gradients else region.last.value
        self.executables = planner.executables
        self._numbers, self._given = code.inputs.array, region.given
        self._output_positions = code.outputs.at
        self._outputs = code.outputs.array, part_of(code.outputs.at)
        self._seeds = code.seeds.array, part_of(code.seeds.at)
        self._slopes = code.slopes.array, part_of(wanted)
        self._is_seeded = len(code.seeds.at) > 1
        self._has_gradients, self._failed = gradients, planner.failed.array
        self.run = self.prepared(code.plan)

    def prepared(self, plan: Plan) -> Callable[[], object]:
        """What runs a plan."""
        steps = [_prepared(each) for each in plan]

        def run() -> None:
            with np.errstate(all="ignore"):
                _run(steps)

        return run

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs, and seeds where there are several outputs."""
        self._numbers[: self._given] = numbers[: self._given]
        if self._is_seeded:
            buffer, part = self._seeds
            buffer[part] = numbers[self._given :]
        self._run_again()
        buffer, part = self._outputs
        outputs = taken(buffer, part)
        if self._failed.item():
            outputs[:] = np.nan
        if not self._has_gradients:
            return outputs, _NONE
        buffer, part = self._slopes
        return outputs, buffer[part] + 0.0

    def keep(self, known: Floats) -> None:
        """Let the last inputs have these numbers, which calls do not give."""
        end = self._given
        self._given -= len(known)
        self._numbers[self._given : end] = known

    def ports(self) -> Ports:
        """Where the numbers are."""
        inputs = self._numbers, slice(0, self._given)
        return Ports(self._run_again, inputs, (self._outputs[0], self._output_positions), self._slopes, self._failed)

    def _run_again(self) -> None:
        self._failed[0] = 0.0
        self.run()


_NONE = np.zeros(0)


# On NumPy


def _run(prepared: Sequence[Callable[[], object]]) -> None:
    for each in prepared:
        each()


def _prepared(step: Any) -> Callable[[], object]:
    """What does a step of a plan in Python."""
    if isinstance(step, Run):
        return step.executable.run
    return partial(_STEPS[type(step)], *[_ready(part) for part in step])


def _ready(part: Any) -> Any:
    if isinstance(part, Cells):
        return part.array, part_of(part.at) if part.at.ndim == 1 else part.at
    return [_prepared(each) for each in part] if isinstance(part, list) else part


_Cells: TypeAlias = "tuple[Floats, Any]"


def _move(source: _Cells, target: _Cells, adds: bool, row: _Cells | None) -> None:
    (numbers, at), (others, to) = source, target
    if row is not None:
        which, position = row
        number = int(which[position].item())
        at, to = _row_of(at, number), _row_of(to, number)
    if adds:
        np.add.at(others, to, numbers[at])
    else:
        others[to] = numbers[at]


def _row_of(at: Any, number: int) -> Any:
    """One of the rows, where there are several."""
    return at[number] if isinstance(at, np.ndarray) and at.ndim > 1 else at


def _check(source: _Cells, failed: _Cells) -> None:
    numbers, at = source
    found = numbers[at]
    failed[0][0] += (found - found).sum()


def _choose(predicate: _Cells, then: Any, otherwise: Any) -> None:
    numbers, at = predicate
    _run(then if numbers[at].item() != 0.0 else otherwise)


def _repeat(condition: Any, answer: _Cells, body: Any, limit: int | None, failed: _Cells, states: States) -> None:
    (asked, at), state, count = answer, states.state, 0
    while True:
        _run(condition)
        if asked[at].item() == 0.0:
            break
        if count == limit:
            failed[0][0] = np.nan
            break
        if states.is_kept:
            if count == len(states.rows):
                states.grow()
            states.rows[count] = state.array[state.at]
        _run(body)
        count += 1
    states.count = count


def _unwind(states: States, body: Any) -> None:
    state = states.state
    for row in states.rows[: states.count][::-1]:
        state.array[state.at] = row
        _run(body)


_STEPS: dict[type, Callable[..., None]] = {
    Move: _move,
    Check: _check,
    Choose: _choose,
    Repeat: _repeat,
    Unwind: _unwind,
}
