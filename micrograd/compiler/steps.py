"""The steps of fit as compiled programs: losses, gradients and the update, all in one buffer.

    | parameters | state | gradients | what the update computes | program of the loss | another one ...

Examples of another structure (longer words, say) have a program of their own over the same parameters.
A step copies the numbers of each example to where its program reads them, runs it, and adds its gradients
up. Then the update computes the next parameters. They take the place of the old ones in one assignment, which
nothing can cut in two, and only if they, the loss and the gradients are finite; otherwise the step is done
eagerly instead, which raises the error that says what is wrong.
"""

from __future__ import annotations

import math
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.choice import backend_of
from micrograd.compiler.backends.executable import new_buffer
from micrograd.compiler.progress import line_of
from micrograd.compiler.specialise import Specialised
from micrograd.compiler.structure import Structure
from micrograd.compiler.trace import is_plain
from micrograd.compiler.update import Update, alike, update_of
from micrograd.engine.commit import commit, setting
from micrograd.engine.node import requires_grad_version
from micrograd.engine.value import Value
from micrograd.optim import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.numbers import Floats
    from micrograd.compiler.program import Program


class CompiledSteps:
    """Takes the steps of a fit.

    Args:
        loss: of one example.
        examples: all of them; each structure among them needs a program. Or a matrix: the loss takes one of its
            rows, as a list, and all have one program.
        optimizer: whose update is compiled too.
        eager: takes the steps that the programs cannot.
        backend: "auto", "numpy", "llvm" or "jax".

    Raises:
        TypeError: if the optimiser has a step of its own, or the loss does not return one Value.
        ValueError: if the backend keeps no buffer, if nothing requires a gradient, or if a gradient would be lost.
    """

    def __init__(
        self, loss: Callable[..., Any], examples: Sequence[Any] | Floats, optimizer: Optimizer, eager: Any, backend: str
    ) -> None:
        if type(optimizer).step is not Optimizer.step:
            raise TypeError(f"{type(optimizer).__name__} has a step of its own: compile=True takes its update only")
        self._optimizer, self._eager = optimizer, eager
        self._loss, self._backend = loss, backend_of(backend)
        self._executable = self._backend.executable("fit")
        self._rows = examples if isinstance(examples, np.ndarray) else None
        different = examples if self._rows is None else [self._rows[0].tolist()]
        self._structures = [
            Structure((example if isinstance(example, tuple) else (example,), {})) for example in different
        ]
        for number, structure in enumerate(self._structures):
            if any(isinstance(leaf, Value) and leaf.requires_grad for leaf in structure.leaves):
                raise ValueError(
                    f"example {number} holds a Value that requires a gradient; compiled, examples are numbers: "
                    "let the loss close over it, and take it with mg.take"
                )
        self._build()

    def _build(self) -> None:
        """Make the programs, for the parameters and the settings of the optimiser as they are now."""
        optimizer, executable, structures = self._optimizer, self._executable, self._structures
        self._trained = [index for index, parameter in enumerate(optimizer.parameters) if parameter.requires_grad]
        if not self._trained:
            raise ValueError("no parameter requires a gradient: there is nothing to train")
        self._parameters = [optimizer.parameters[index] for index in self._trained]
        self._frozen = [parameter for parameter in optimizer.parameters if not parameter.requires_grad]
        self._built_for = self._settings()
        self._update: Update = update_of(optimizer, self._states())
        programs = self._programs(structures)
        end = max([self._update.program.size, *(program.size for program in programs)])
        self._buffer: Floats = new_buffer(end)
        self._other_values = self._read_beside_parameters(programs)
        with line_of(getattr(self._loss, "__name__", "a loss")) as line:
            line.stage = "compile"
            self._step = executable(self._update.program, self._buffer)
            self._runs = [executable(program, self._buffer) for program in programs]
            if self._rows is None:
                self._give([np.array(structure.numbers()) for structure in structures])
            else:
                self.give_rows(self._rows)
        self._current = False  # whether the buffer has the numbers of the Values
        self._changed = False  # whether it has newer ones
        self._steps: int = optimizer.steps
        self._rate: float | None = optimizer.rate

    def give_rows(self, rows: Floats) -> None:
        """Take the following steps on the rows of this matrix, which is as wide as the one before."""
        self._rows, self._which = rows, np.zeros(len(rows), dtype=np.int64)
        self._give(np.ascontiguousarray(rows))

    def _give(self, numbers: Sequence[Floats] | Floats) -> None:
        self._batches = self._executable.batches(self._buffer, self._runs, numbers, self._which, self._update.gradients)

    def numbers(self) -> list[float]:
        """What the parameters are after the last step; update_values gives the Values these numbers."""
        found: list[float] = self._buffer[self._update.parameters].tolist()
        return found

    def _read_beside_parameters(self, programs: list[Program]) -> list[tuple[Sequence[Value], Any]]:
        """The other Values that each program reads, and where in the buffer it does."""
        count = len(self._parameters)
        found: list[tuple[Sequence[Value], Any]] = []
        for special, program in zip(self._special, programs, strict=True):
            others = special.values[count:]
            if any(value.requires_grad and not value.is_leaf for value in others):
                raise ValueError(
                    "the loss reads a Value that is computed outside of it, so no gradient would reach what it is "
                    "made of: compute it inside, or detach it"
                )
            found.append((others, program.inputs[count : count + len(others)]))
        return found

    def step(self, batch: list[int], epoch: int) -> float:
        """One update from the mean loss of a batch, which is returned."""
        if not self._current:
            self._read_values()
        optimizer, update, buffer = self._optimizer, self._update, self._buffer
        rate = optimizer.next_rate(self._steps)
        losses = self._batches.run(batch)
        mean = math.fsum(losses) / len(batch)
        if math.isfinite(mean) and np.isfinite(buffer[update.gradients]).all():
            buffer[update.rate] = rate
            self._step.run()
            following, steps = buffer[update.next], self._steps + 1
            if np.isfinite(following).all():
                # Python looks for signals at calls and loops: there are none between here and the return
                buffer[update.current] = following
                self._steps, self._rate, self._changed = steps, rate, True
                return mean
        self.update_values()
        return float(self._eager.step(batch, epoch))

    def update_values(self) -> None:
        """Write the parameters, their gradients and the state back to where they came from."""
        self._current = False  # who asks for the Values may change them
        if not self._changed:
            return
        update, buffer, parameters = self._update, self._buffer, self._parameters
        numbers, gradients = buffer[update.parameters].tolist(), buffer[update.last_gradients].tolist()
        columns = [np.broadcast_to(buffer[place], len(parameters)).tolist() for place in update.states]
        states = list(zip(*columns, strict=True)) if columns else [()] * len(parameters)

        of_all = list(self._optimizer._state)
        for index, state in zip(self._trained, states, strict=True):
            of_all[index] = state
        commit(
            chain(
                setting(parameters, "_data", numbers),
                setting(parameters, "_grad", gradients),
                setting(self._frozen, "_grad", repeat(0.0)),  # as zero_grad does before each step
                setting([self._optimizer], "_state", [of_all]),
                setting([self._optimizer], "steps", [self._steps]),
                setting([self._optimizer], "rate", [self._rate]),
                setting([self], "_changed", [False]),
            )
        )

    def _settings(self) -> tuple[Any, ...]:
        """What the programs depend on and a callback may change: which Values are frozen, the optimiser's numbers."""
        optimizer = self._optimizer
        numbers = {name: value for name, value in vars(optimizer).items() if isinstance(value, (int, float, str))}
        return requires_grad_version(), {
            name: number for name, number in numbers.items() if name not in ("steps", "rate")
        }

    def _read_values(self) -> None:
        """Copy the Values and the optimiser's state into the buffer; first make new programs if these no longer fit."""
        states = self._states()
        replaced = not all(special.closed_over.is_current() for special in self._special)
        if (
            replaced
            or self._settings() != self._built_for
            or not all(
                same or place.stop - place.start == len(states)
                for same, place in zip(alike(states), self._update.states, strict=True)
            )
        ):
            self._build()
        buffer, update = self._buffer, self._update
        buffer[update.parameters] = [parameter._data for parameter in self._parameters]
        for values, places in self._other_values:
            buffer[places] = [value._data for value in values]
        for place, column in zip(update.states, self._states().T, strict=True):
            buffer[place] = column[: place.stop - place.start]
        self._steps, self._rate = self._optimizer.steps, self._optimizer.rate
        self._current = True

    def _states(self) -> Floats:
        states = [self._optimizer._state[index] for index in self._trained]
        return np.array(states, dtype=float)

    def _programs(self, structures: list[Structure]) -> list[Program]:
        """A program for each structure there is; they lie in the buffer one after the other."""
        self._special: list[Specialised] = []
        known: dict[Any, int] = {}
        programs: list[Program] = []
        end = self._update.program.size
        for structure in structures:
            if structure.key in known:
                continue
            known[structure.key] = len(programs)
            special = Specialised(self._loss, structure, self._backend, self._parameters)
            result = special.result.nested
            if not isinstance(result, Value) or is_plain(result):
                raise TypeError(f"loss must return a Value, not {result.__class__.__name__}")
            special.want(range(len(self._parameters)))
            programs.append(special.program(True, start=end))
            end = programs[-1].size
            self._special.append(special)
        self._which = np.array([known[structure.key] for structure in structures])
        return programs
