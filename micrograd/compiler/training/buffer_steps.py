"""The steps of fit in one buffer, on the backends whose programs stay in one.

    | parameters | state | gradients | what the update computes | program of the loss | another one ...

A step copies the numbers of some examples to the inputs of their program, runs it and adds its gradients to the sum,
until all of the batch have run. Then the update computes the next parameters.
"""

from __future__ import annotations

import math
import time
from functools import cache, partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.shared.batches import Stepping
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


_FEWEST, _MOST = 8, 4096  # steps at once: fewer are taken one by one
_AT_ONCE = 0.02  # seconds for steps taken at once, in which Ctrl-C waits and a progress bar stands still


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
        self._losses: Floats | None = None  # of the steps that were taken at once, if the last ones were
        self._first = 0  # how many steps had been done before these
        self._error: BaseException | None = None  # what the schedule of learning rates raised for the next step
        super().__init__(task, chosen)

    def _programs(self) -> list[Program]:
        """A program for each structure of examples; they lie in the buffer one after the other."""
        programs: list[Program] = []
        end = self._update.program.size
        for number, special in enumerate(self._special):
            programs.append(special.program(True, end, self._at_a_time(number), self._executable.batches.packing))
            end = programs[-1].size
        return programs

    def _at_a_time(self, program: int) -> int:
        """How many examples of a program run at a time; half of the mean where batches differ, so that packs fill."""
        if len(self._special) == 1:
            return self._batch_size
        return int(self._batch_size * np.mean(self._which == program) / 2)

    def _make_runs(self, programs: list[Program]) -> None:
        end = max([self._update.program.size, *(program.size for program in programs)])
        self._buffer: Floats = new_buffer(end)
        update, count, disabled = self._update, len(self._parameters), disabled_passes(())
        starts = [position.start for position in update.states]
        shared = [position.stop - position.start < count for position in update.states]
        run_of = partial(self._backend.run_of, buffer=self._buffer, disabled=disabled)
        runs: Any = [run_of(program) for program in (update.program, *programs)]
        self._step, *self._runs = runs
        self._stepping = Stepping(
            update=cache(partial(self._executable.batches.native_update, self._optimizer.update, shared)),
            given=[0, update.gradients.start, update.rate, *starts],
            results=[update.next.start, *(update.next.start + start for start in starts)],
            states=slice(count, update.current.stop),
            next_states=update.next.start + count,
            last_gradients=update.last_gradients.start,
            done=self._done,
            last_rate=self._last_rate,
        )
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
        """The parameters after the last step; update_values writes them to the Values."""
        found: list[float] = self._buffer[self._update.parameters].tolist()
        return found

    def take(self, batches: Sequence[list[int]], epoch: int) -> list[float]:
        """A step for each of some batches, from the first on, and at least one; the mean losses of these.

        How long that takes says how many to give the next time.
        """
        begin = time.perf_counter()
        means = self._taken_at_once(batches) or [self.step(batches[0], epoch)]
        self.at_once = 1 + min(_MOST, int(len(means) * _AT_ONCE / (time.perf_counter() - begin)))
        return means

    def _taken_at_once(self, batches: Sequence[list[int]]) -> list[float]:
        """The mean losses of the steps that one call of native code took; none if it cannot take them."""
        if (error := self._error) is not None:
            self._error = None
            raise error
        if len(batches) < _FEWEST:
            return []
        self._bring_up_to_date()
        is_plain = not (self._rate_can_change or self._constant or self._clip_norm)
        count = self._batches.at_once(batches, self._stepping) if is_plain else 0
        if count < _FEWEST:
            return []
        rates, done = self._rates(count), int(self._done[0])
        count = len(rates)
        self._first, self._losses = done, np.empty((count, len(batches[0])))
        self._batches.take_steps(batches[:count], np.array(rates), self._losses, self._stepping)
        return self.last_means(int(self._done[0]) - done)

    def _rates(self, count: int) -> list[float]:
        """The learning rates of the next steps; if the schedule raises for one, the steps before it are taken first."""
        rates: list[float] = []
        done = int(self._done[0])
        if self._optimizer.has_constant_rate():
            return [self._optimizer.next_rate(done)] * count
        try:
            rates.extend(map(self._optimizer.next_rate, range(done, done + count)))
        except BaseException as error:
            if not rates:
                raise
            self._error = error
        return rates

    def last_means(self, count: int) -> list[float]:
        """The mean losses of the last steps, at most of those that were taken at once."""
        if self._losses is None:
            return super().last_means(count)
        done = int(self._done[0]) - self._first
        losses = self._losses[done - count : done]
        if losses.shape[1] == 1:
            return (losses[:, 0] + 0.0).tolist()  # as the mean of -0.0 is 0.0
        return [*map(mean_of, losses.tolist())]

    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""
        self._losses = None
        self._bring_up_to_date()
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
            done = int(self._done[0]) + 1
            buffer[update.rate] = rate = optimizer.next_rate(done - 1)
            self._step.run()
            following, gradients = buffer[update.next], buffer[update.gradients]
            if buffer[update.check] == 0.0:
                # Python looks for signals at calls and loops: there are none between here and the return
                buffer[update.current], buffer[update.last_gradients] = following, gradients
                self._last_rate[0], self._done[0] = rate, done
                return mean
        return self._take_eagerly(batch, epoch, noise)

    def _update_eagerly(self) -> None:
        """Let the optimiser do the update on the Values, as its learning rate may read or change these."""
        self.update_values()
        gradients = self._buffer[self._update.gradients].tolist()
        with changing([*self._parameters, *self._frozen]):
            commit(chain(setting(self._parameters, "_grad", gradients), setting(self._frozen, "_grad", repeat(0.0))))
        self._optimizer.step()

    def _give(self, current: Floats, others: list[Floats]) -> None:
        self._buffer[: len(current)] = current
        for positions, numbers in zip(self._positions_of_others, others, strict=True):
            self._buffer[positions] = numbers

    def _current_numbers(self) -> Floats:
        return self._buffer[: self._update.last_gradients.stop]
