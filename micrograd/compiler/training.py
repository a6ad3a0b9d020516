"""The steps of fit as compiled programs: losses, gradients and the update, all in one buffer.

    | parameters | gradients | state | what the update computes | program of the loss | another one ...

Examples of another structure (longer words, say) have a program of their own over the same parameters.
A step copies each example's numbers to where its program reads them, runs it, and adds its gradients up;
then the update is run on all parameters, and takes their place only if every number in it is finite.
Where one is not, the step is done eagerly instead, which raises what is to be raised.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.function import Specialised, Structure, backend_of
from micrograd.compiler.update import Update, update_of
from micrograd.engine import Value
from micrograd.interrupts import finish
from micrograd.optim import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.normalise import Floats


class CompiledSteps:
    """What takes the steps of a fit.

    Args:
        loss: of one example.
        examples: all of them, which decide what programs are needed.
        optimizer: whose update is compiled too.
        eager: takes a step that the programs cannot.
        backend: "auto", "numpy" or "llvm".

    Raises:
        TypeError: if the optimiser has a step of its own, or the loss does not return one Value.
    """

    def __init__(
        self, loss: Callable[..., Any], examples: Sequence[Any], optimizer: Optimizer, eager: Any, backend: str
    ) -> None:
        if type(optimizer).step is not Optimizer.step:
            raise TypeError(f"{type(optimizer).__name__} has a step of its own: compile=True takes its update only")
        self._optimizer, self._eager = optimizer, eager
        self._trained = [index for index, parameter in enumerate(optimizer.parameters) if parameter.requires_grad]
        if not self._trained:
            raise ValueError("no parameter requires a gradient: there is nothing to train")
        self._parameters = [optimizer.parameters[index] for index in self._trained]
        executable = backend_of(backend)
        self._update: Update = update_of(optimizer, self._states())
        structures = [Structure((example if isinstance(example, tuple) else (example,), {})) for example in examples]
        programs = self._programs(loss, structures, executable)
        end = max([self._update.program.size, *(program.size for program in programs)])
        self._buffer: Floats = np.zeros(end)
        self._step = executable(self._update.program, self._buffer)
        self._commit = executable(self._update.commit, self._buffer)
        runs = [executable(program, self._buffer) for program in programs]
        for special, program in zip(self._special, programs, strict=True):
            others = special.values[len(self._parameters) :]
            count = len(self._parameters)
            self._buffer[program.inputs[count : count + len(others)]] = [value.data for value in others]
            self._buffer[program.seeds] = 1.0
        numbers = [np.array([_number(leaf) for leaf in structure.leaves]) for structure in structures]
        self._batches = executable.batches(runs, numbers, self._which, self._update.gradients)
        self._current = False  # whether the buffer has what the Values have
        self._changed = False

    def step(self, batch: list[int], epoch: int) -> float:
        """One update from the mean loss of a batch, which is returned."""
        optimizer, update, buffer = self._optimizer, self._update, self._buffer
        rate = optimizer.next_rate()
        if not self._current:
            self._read_values()
        losses = self._batches.run(batch)
        mean = math.fsum(losses) / len(batch)
        if math.isfinite(mean):
            buffer[update.rate] = rate
            self._step.run()
            if all(np.isfinite(buffer[result]).all() for result in update.results):
                self._commit.run()
                optimizer.steps, optimizer.rate, self._changed = optimizer.steps + 1, rate, True
                return mean
        self.update_values()
        self._current = False
        return float(self._eager.step(batch, epoch))

    def update_values(self) -> None:
        """Write the parameters, their gradients and the state back to where they came from."""
        if not self._changed:
            return
        update, buffer, parameters = self._update, self._buffer, self._parameters
        numbers, gradients = buffer[update.parameters].tolist(), buffer[update.gradients].tolist()
        columns = [np.broadcast_to(buffer[place], len(parameters)).tolist() for place in update.states]
        states = list(zip(*columns, strict=True)) if columns else [()] * len(parameters)

        def commit() -> None:
            for parameter, number, gradient in zip(parameters, numbers, gradients, strict=True):
                parameter._data, parameter._grad = number, gradient
            for index, state in zip(self._trained, states, strict=True):
                self._optimizer._state[index] = state
            self._changed = False

        finish(commit)

    def _read_values(self) -> None:
        buffer, update = self._buffer, self._update
        buffer[update.parameters] = [parameter._data for parameter in self._parameters]
        for place, column in zip(update.states, self._states().T, strict=True):
            buffer[place] = column[: place.stop - place.start]
        self._current = True

    def _states(self) -> Floats:
        states = [self._optimizer._state[index] for index in self._trained]
        return np.array(states, dtype=float).reshape(len(states), -1)

    def _programs(self, loss: Callable[..., Any], structures: list[Structure], backend: type[Any]) -> list[Any]:
        """A program for each structure there is, one after the other in the buffer."""
        self._special: list[Specialised] = []
        known: dict[Any, int] = {}
        programs: list[Any] = []
        end = self._update.program.size
        for structure in structures:
            if structure.key in known:
                continue
            known[structure.key] = len(programs)
            special = Specialised(loss, structure, backend, self._parameters)
            if not isinstance(special.result, Value):
                raise TypeError(f"loss must return a Value, not {type(special.result).__name__}")
            special.want(range(len(self._parameters)))
            programs.append(special.program(True, start=end))
            end = programs[-1].size
            self._special.append(special)
        self._which = np.array([known[structure.key] for structure in structures])
        return programs


def _number(leaf: Any) -> float:
    return leaf._data if isinstance(leaf, Value) else float(leaf)
