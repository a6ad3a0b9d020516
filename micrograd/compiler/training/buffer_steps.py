"""The steps of fit in one buffer, on the backends whose programs stay in one.

    | parameters | state | gradients | what the update computes | program of the loss | another one ...

A step copies the numbers of some examples to where their program reads them, runs it, and adds its gradients
up, until all of the batch have run. Then the update computes the next parameters.
"""

from __future__ import annotations

import math
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.backends.shared.executable import new_buffer
from micrograd.compiler.calling.boundary import numbers_of
from micrograd.compiler.passes.lists import disabled_passes
from micrograd.compiler.training.steps import CompiledSteps, clipped, mean_of, numbers_of_noise
from micrograd.engine.commit import commit, setting
from micrograd.engine.stored import changing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats
    from micrograd.compiler.training.steps import Task


class BufferSteps(CompiledSteps):
    """Takes the steps of a fit.

    Args:
        task: what is asked for. The examples may be a matrix: the loss takes one of its rows, as a list.
        backend: "auto", or the name of a backend that keeps a buffer.

    Raises:
        TypeError: if the optimiser has a step of its own, or the loss does not return one Value.
        ValueError: if the backend keeps no buffer, if nothing requires a gradient, or if a gradient would be lost.
    """

    def __init__(self, task: Task, backend: str) -> None:
        chosen, examples = backend_of(backend), task.examples
        self._executable = chosen.executable("fit")
        self._rows: Floats | None = None
        task = task._replace(batch_size=min(task.batch_size, len(examples)))
        if isinstance(examples, np.ndarray):
            self._rows, task = examples, task._replace(examples=[examples[0].tolist()])
        self._follows = self._rows is None
        super().__init__(task, chosen)

    def _programs(self) -> list[Program]:
        """A program for each structure there is; they lie in the buffer one after the other."""
        programs: list[Program] = []
        end = self._update.program.size
        for number, special in enumerate(self._special):
            programs.append(special.program(True, end, self._at_a_time(number), self._executable.batches.packing))
            end = programs[-1].size
        return programs

    def _at_a_time(self, program: int) -> int:
        """How many examples of a program a batch has: half of their mean, where batches differ, so that packs fill."""
        if len(self._special) == 1:
            return self._batch_size
        return int(self._batch_size * np.mean(self._which == program) / 2)

    def _make_runs(self, programs: list[Program]) -> None:
        end = max([self._update.program.size, *(program.size for program in programs)])
        self._buffer: Floats = new_buffer(end)
        every, disabled = (self._update.program, *programs), disabled_passes(())
        runs: Any = [self._backend.run_of(program, self._buffer, disabled) for program in every]
        self._step, *self._runs = runs
        count = len(self._parameters)
        self._positions_of_others = [
            program.inputs[count : count + len(others)] for program, others in zip(programs, self._others, strict=True)
        ]
        if self._rows is None:
            self._give_numbers()
        else:
            self.give_rows(self._rows)

    def give_rows(self, rows: Floats) -> None:
        """Take the following steps on the rows of this matrix, which is as wide as the one before."""
        self._rows, self._which = rows, np.zeros(len(rows), dtype=np.int64)
        self._give_examples(np.ascontiguousarray(rows))

    def _give_numbers(self) -> None:
        self._numbers = [numbers_of(structure) for structure in self._structures]
        self._give_examples(self._numbers)

    def _give_examples(self, numbers: Sequence[Floats] | Floats) -> None:
        self._batches = self._executable.batches(self._buffer, self._runs, numbers, self._which, self._update.gradients)

    def numbers(self) -> list[float]:
        """What the parameters are after the last step; update_values gives the Values these numbers."""
        found: list[float] = self._buffer[self._update.parameters].tolist()
        return found

    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""
        if not self._current:
            if self._rate_can_change or self._draw_can_change:
                self.read_examples()
            self._read_values()
        if self._has_constant_loss(batch):
            return self._take_eagerly(batch, epoch, noise)
        if noise is not None:
            for index, numbers in zip(batch, numbers_of_noise(noise), strict=True):
                self._numbers[index][len(self._numbers[index]) - len(numbers) :] = numbers
        optimizer, update, buffer = self._optimizer, self._update, self._buffer
        losses = self._batches.run(batch)
        self._mean = mean = mean_of(losses)
        if math.isfinite(mean) and np.isfinite(buffer[update.gradients]).all():
            if self._clip_norm is not None:
                with np.errstate(all="ignore"):  # a bound for the root may be beyond floats
                    buffer[update.gradients] = clipped(buffer[update.gradients], self._clip_norm)
            if self._rate_can_change:
                self._update_eagerly()
                return mean
            buffer[update.rate] = rate = optimizer.next_rate(self._steps)
            self._step.run()
            following, steps = buffer[update.next], self._steps + 1
            if buffer[update.check] == 0.0:
                # Python looks for signals at calls and loops: there are none between here and the return
                buffer[update.current] = following
                self._steps, self._rate, self._changed = steps, rate, True
                return mean
        return self._take_eagerly(batch, epoch, noise)

    def _update_eagerly(self) -> None:
        """Leave the update to the optimiser, as its learning rate may read or change what only the Values have."""
        self.update_values()
        gradients = self._buffer[self._update.gradients].tolist()
        with changing([*self._parameters, *self._frozen]):
            commit(chain(setting(self._parameters, "_grad", gradients), setting(self._frozen, "_grad", repeat(0.0))))
        self._optimizer.step()

    def _give(self, current: Floats, others: list[Floats]) -> None:
        self._buffer[self._update.current] = current
        for positions, numbers in zip(self._positions_of_others, others, strict=True):
            self._buffer[positions] = numbers

    def _current_numbers(self) -> Floats:
        return self._buffer[self._update.current]
