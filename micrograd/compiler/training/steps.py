"""The steps of fit as compiled programs: losses, gradients and the update, on numbers that stay where they run.

Examples of another structure (longer words, say) have a program of their own over the same parameters. The subclasses
say where the numbers are, and what a step is there: in one buffer (buffer_steps.py), or on the devices that JAX finds
(mesh_steps.py). Here is what they share: the programs, and how numbers are copied from and to the Values. The next
parameters replace the old ones in one assignment, which nothing can interrupt, and only if they, the loss and the
gradients are finite, and the loss requires a gradient. Otherwise the step runs eagerly, which raises what is wrong.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import nullcontext, suppress
from itertools import chain, repeat
from marshal import dumps
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd._support.callers import warn_user
from micrograd.compiler.calling.boundary import numbers_of
from micrograd.compiler.calling.paths import PATHS
from micrograd.compiler.calling.specialise import TOO_OFTEN, Specialised
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.library_state import EXACT
from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.passes.progress import line_of
from micrograd.compiler.tracing.questions import ROUNDING
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.symbols import is_plain
from micrograd.compiler.training.update import Update, update_of
from micrograd.engine.commit import changing_gradients, commit, setting
from micrograd.engine.storage import Stored
from micrograd.engine.stored import bring_up_to_date, changing, requires_grad_version
from micrograd.engine.value import Value
from micrograd.optim import Optimizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from micrograd.compiler.backends.shared.backend import Backend
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats


# What a function raises on one of its paths: where it matters, it comes again
_ON_ONE_PATH = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
_LITTLE_MORE = 1.5  # times as much to compute


class Task(NamedTuple):
    """What a fit is asked to do.

    Attributes:
        loss: of one example.
        examples: all of them; each structure among them needs a program.
        optimizer: whose update is compiled too.
        eager: takes the steps that the programs cannot.
        batch_size: how many examples a step has, at most.
        named: the named arguments of the loss, which have other numbers in each step.
        draw: the function that gives these numbers, if there are any.
        clip_norm: the largest norm of the gradient; None for any.
    """

    loss: Callable[..., Any]
    examples: Sequence[Any] | Floats
    optimizer: Optimizer
    eager: Any
    batch_size: int = 1
    named: Mapping[str, Any] = MappingProxyType({})
    draw: Callable[..., Any] | None = None
    clip_norm: float | None = None


class CompiledSteps(ABC):
    """Takes the steps of a fit.

    Args:
        task: what is asked for.
        backend: what runs the programs.

    Attributes:
        leads: whether this process is the one that shows how far the training is.

    Raises:
        TypeError: if the optimiser has a step of its own, or the loss does not return one Value.
        ValueError: if nothing requires a gradient, or if a gradient would be lost.
    """

    leads = True
    at_once = 1  # how many batches to give to ``take``
    _follows = True  # whether examples that take other paths may have programs of their own
    _mean: float | None = None  # None where the step is taken eagerly

    def __init__(self, task: Task, backend: Backend) -> None:
        if type(task.optimizer).step is not Optimizer.step:
            raise TypeError(
                f"{type(task.optimizer).__name__} has a step of its own: compile=True takes its update only"
            )
        self._backend, self._batch_size = backend, task.batch_size
        self._loss, self._optimizer, self._eager = task.loss, task.optimizer, task.eager
        self._named, self._draw, self._clip_norm = dict(task.named), task.draw, task.clip_norm
        self._retraced = 0  # times in a row that the loss was traced again
        self._examples, self._structures = task.examples, _structures(task.examples, self._named)
        self._seen = self._fingerprint()
        # How many steps the optimiser has done, and its last rate; in arrays, as native code may write them
        self._done, self._last_rate = np.zeros(1, dtype=np.int64), np.zeros(1)
        self._build()

    def together(self) -> AbstractContextManager[None]:
        """A context for all steps, in which processes that train together begin and end alike."""
        return nullcontext()

    @abstractmethod
    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""

    def take(self, batches: Sequence[list[int]], epoch: int) -> list[float]:
        """A step for each of some batches, from the first on, and at least one; the mean losses of these."""
        return [self.step(batches[0], epoch)]

    def last_means(self, count: int) -> list[float]:
        """The mean losses of the last steps, known before their updates.

        Args:
            count: how many: at most as many as the last call has taken.
        """
        return [float(self._eager.mean) if self._mean is None else self._mean]

    def before_noise(self) -> None:
        """Bring the Values up to date, if the function that draws the noise may read or change them."""
        if self._draw_can_change:
            self.update_values()

    def read_examples(self) -> None:
        """Read the numbers of the examples again, if a callback has changed them in place."""
        fingerprint = self._fingerprint()
        if fingerprint is not None and fingerprint == self._seen:
            return
        keys = [structure.key for structure in self._structures]
        self._structures, self._seen = _structures(self._examples, self._named), fingerprint
        programs = [self._special[number] for number in self._which.tolist()]
        if [structure.key for structure in self._structures] == keys and all(
            special.serves(structure) for special, structure in zip(programs, self._structures, strict=True)
        ):
            self._give_numbers()
        else:
            self.update_values()
            self._built_for = ()  # the next step makes programs for them

    def _fingerprint(self) -> int | None:
        """A hash of the examples; None where they are not plain data."""
        if any(structure.of_objects for structure in self._structures):
            return None
        examples: Any = self._examples
        try:
            return hash(dumps(examples, EXACT))
        except ValueError:
            return None

    @abstractmethod
    def _give_numbers(self) -> None:
        """Take the numbers of the examples, whose structures have the programs that there are."""

    @abstractmethod
    def _programs(self) -> list[Program]:
        """The programs of self._special."""

    @abstractmethod
    def _make_runs(self, programs: list[Program]) -> None:
        """Make what runs the update and these programs."""

    @abstractmethod
    def _give(self, current: Floats, others: list[Floats]) -> None:
        """Take these numbers: what the update keeps, and the other Values that each program reads."""

    @abstractmethod
    def _current_numbers(self) -> Floats:
        """What the update keeps after the last step: parameters, states and gradients."""

    def _build(self) -> None:
        """Make the programs, for the parameters and the settings of the optimiser as they are now."""
        optimizer = self._optimizer
        self._trained = [index for index, parameter in enumerate(optimizer.parameters) if parameter.requires_grad]
        if not self._trained:
            raise ValueError("no parameter requires a gradient: there is nothing to train")
        self._parameters = [optimizer.parameters[index] for index in self._trained]
        self._frozen = [parameter for parameter in optimizer.parameters if not parameter.requires_grad]
        self._stored = Stored(self._parameters)
        self._built_for = self._settings()
        self._update: Update = update_of(optimizer, self._states())
        self._specialise()
        schedule: Callable[..., Any] = optimizer._schedule
        if type(optimizer).next_rate is not Optimizer.next_rate:
            schedule = optimizer.next_rate
        self._rate_can_change = self._can_change(schedule)
        self._draw_can_change = self._draw is not None and self._can_change(self._draw)
        programs = self._programs()
        with line_of(getattr(self._loss, "__name__", "a loss")):
            self._make_runs(programs)
        self._current = False  # whether the numbers are those of the Values
        self._done[0] = self._written = optimizer.steps  # after which the Values were read or written

    def _specialise(self) -> None:
        """Trace the loss for each structure there is; it reads the parameters first, and then other Values."""
        self._special: list[Specialised] = []
        self._which = np.zeros(len(self._structures), dtype=np.int64)
        alike: dict[Any, list[int]] = {}
        for number, structure in enumerate(self._structures):
            alike.setdefault(structure.key, []).append(number)
        for members in alike.values():
            for special, numbers in self._groups_of(members):
                self._which[numbers] = len(self._special)
                self._special.append(special)
        first, *rest = self._special
        self._watching = [first, *(one for one in rest if not one.closed_over.watches_the_same(first.closed_over))]
        self._others: list[Sequence[Value]] = [special.values[len(self._parameters) :] for special in self._special]
        if any(value.requires_grad and not value.is_leaf for others in self._others for value in others):
            raise ValueError(
                "the loss reads a Value that is computed outside of it, so no gradient would reach what it is "
                "made of: compute it inside, or detach it"
            )
        self._constant = {number for number, special in enumerate(self._special) if not special.is_differentiable}

    def _groups_of(self, members: list[int]) -> list[tuple[Specialised, list[int]]]:
        """The programs for some examples of one structure, each with the examples that it is for.

        Examples that take other paths through the loss have programs of their own, if their numbers decide the path.
        Where all paths together are little more work, one program computes them all and selects.
        """
        groups: list[tuple[Specialised, list[int]]] = []
        for number in members:
            structure = self._structures[number]
            group = next((group for group in groups if group[0].serves(structure)), None)
            if group is None:
                group = self._followed(structure, len(groups)), []
                groups.append(group)
            group[1].append(number)
        if len(groups) > 1:
            with suppress(TraceError):
                every = self._specialised(self._structures[members[0]], 0)
                if _work_of(every) <= _LITTLE_MORE * max(_work_of(special) for special, _ in groups):
                    return [(every, members)]
        return groups

    def _followed(self, structure: Structure, count: int) -> Specialised:
        """The programs for the path of one example; for all paths if there are many, or it cannot be told."""
        if self._follows and count < PATHS:
            stay = len(structure.leaves) - len(Structure(self._named).leaves)
            with suppress(*_ON_ONE_PATH):
                return self._specialised(structure, stay)
        return self._specialised(structure, 0)

    def _specialised(self, structure: Structure, stay: int) -> Specialised:
        source = Source(self._loss, structure, self._parameters, rounding=ROUNDING["float64"], every_path=stay)
        special = Specialised(source, self._backend)
        result = special.result.nested
        if not isinstance(result, Value) or is_plain(result):
            raise TypeError(f"loss must return a Value, not {result.__class__.__name__}")
        special.want(range(len(self._parameters)))
        return special

    def _has_constant_loss(self, batch: list[int]) -> bool:
        """Whether the loss of an example requires no gradient: then the step is done eagerly, which raises."""
        return bool(self._constant) and not self._constant.isdisjoint(self._which[batch].tolist())

    def _take_eagerly(self, batch: list[int], epoch: int, noise: Sequence[Any] | None) -> float:
        """A step without the programs."""
        self._mean = None
        self.update_values()
        return float(self._eager.step(batch, epoch, noise))

    def _can_change(self, function: Callable[..., Any]) -> bool:
        """Whether a user's function that runs between steps can change what the loss reads, or read Values."""
        reached = ClosedOver([("", function)])
        if reached.reaches_values():
            return True
        own = reached.containers()
        others = [*(special.closed_over for special in self._special), ClosedOver([("data", self._examples)])]
        return any(reached.may_set_what(other) or not own.isdisjoint(other.containers()) for other in others)

    def update_values(self) -> None:
        """Write the parameters, their gradients and the state back to where they came from."""
        self._current = False  # who asks for the Values may change them
        done = int(self._done[0])
        if done == self._written:
            return
        update, numbers, parameters = self._update, self._current_numbers(), self._parameters
        data, gradients = numbers[update.parameters], numbers[update.last_gradients]
        columns = [numbers[position] for position in update.states]
        kept = None if self._frozen else self._optimizer.in_columns(columns)
        rest = (
            setting([self._optimizer], "steps", [done]),
            setting([self._optimizer], "rate", [float(self._last_rate[0])]),
            setting([self], "_written", [done]),
        )
        if kept is not None and self._stored.grad() is not None:
            with changing_gradients:
                plan = self._stored.replacing(data.copy(), gradients.copy())
                commit(chain(plan, setting([self._optimizer], "_kept", [kept]), *rest))
            return
        lists = [np.broadcast_to(column, len(parameters)).tolist() for column in columns]
        of_all = list(self._optimizer._state)
        for index, state in zip(self._trained, zip(*lists, strict=True) if lists else repeat(()), strict=False):
            of_all[index] = state
        plan = chain(
            setting(parameters, "_data", data.tolist()),
            setting(parameters, "_grad", gradients.tolist()),
            setting(self._frozen, "_grad", repeat(0.0)),  # as zero_grad does before each step
            setting([self._optimizer], "_kept", [of_all]),
        )
        with changing([*parameters, *self._frozen]):
            commit(chain(plan, *rest))

    def _settings(self) -> tuple[Any, ...]:
        """What programs depend on and a callback may change: which Values are frozen, the optimiser's settings."""
        optimizer = self._optimizer
        numbers = {name: value for name, value in vars(optimizer).items() if isinstance(value, (int, float, str))}
        return requires_grad_version(), {
            name: number for name, number in numbers.items() if name not in ("steps", "rate")
        }

    def _bring_up_to_date(self) -> None:
        """Read the Values, and perhaps the examples, again where others may have changed them."""
        if not self._current:
            if self._rate_can_change or self._draw_can_change:
                self.read_examples()
            self._read_values()

    def _read_values(self) -> None:
        """Read the numbers of the Values and the optimiser's state; first make new programs if these no longer fit."""
        if any(self._others):
            bring_up_to_date()
        columns = self._state_columns()
        replaced = [special for special in self._watching if not special.closed_over.is_current()]
        self._retraced = self._retraced + 1 if replaced else 0
        if self._retraced == TOO_OFTEN:
            _warn_of_retraces(replaced[0])
        if (
            replaced
            or self._settings() != self._built_for
            or not all(
                position.stop - position.start > 1 or bool((column == column[0]).all())
                for column, position in zip(columns, self._update.states, strict=True)
            )
        ):
            self._build()
            columns = self._state_columns()
        update = self._update
        current = np.zeros(update.last_gradients.stop)
        current[update.parameters] = self._stored.data()
        for position, column in zip(update.states, columns, strict=True):
            current[position] = column[: position.stop - position.start]
        self._give(current, [np.array([value._data for value in others]) for others in self._others])
        self._done[0] = self._written = self._optimizer.steps
        self._current = True

    def _state_columns(self) -> list[Floats]:
        """What the optimiser keeps for the parameters: a column for each number, which may have one element for all."""
        kept = None if self._frozen else self._optimizer.kept_columns()
        return [*self._states().T] if kept is None else [np.atleast_1d(column) for column in kept]

    def _states(self) -> Floats:
        of_all = self._optimizer._state
        states = [of_all[index] for index in self._trained]
        return np.array(states, dtype=float)


def _work_of(special: Specialised) -> int:
    """How many terms and primitives a loss computes, for each example."""
    graph = special.graph.thing
    return int(graph.counts().sum()) + sum(len(part.nodes) for part in graph.applications)


def _warn_of_retraces(special: Specialised) -> None:
    warn_user(
        f"{special.name} was traced again before each of {TOO_OFTEN} steps, as {special.closed_over.change()} was "
        "replaced before each: that takes longer than the steps. Change the data of a Value instead, or pass the "
        "number to the loss with noise="
    )


def mean_of(losses: Sequence[float]) -> float:
    """The mean of some losses; NaN where they have no sum, as infinities of both signs: eager says what is wrong."""
    try:
        return math.fsum(losses) / len(losses)
    except (OverflowError, ValueError):
        return math.nan


def clipped(gradients: Any, norm: float, np: Any = np) -> Any:
    """Gradients, scaled down to this norm where theirs is larger.

    Args:
        gradients: an array, all finite.
        norm: the largest norm that they may have.
        np: the module of the array, NumPy or jax.numpy.
    """
    largest = np.abs(gradients).max()
    largest = np.where(largest > 0, largest, 1.0)
    shares = gradients / largest  # their squares do not overflow, as those of the gradients may
    root = np.sqrt((shares * shares).sum())
    return np.where(root > norm / largest, shares * (norm / np.where(root > 0, root, 1.0)), gradients)


def numbers_of_noise(noise: Sequence[Any]) -> Floats:
    """The numbers of each item, in a row of their own."""
    if isinstance(noise, np.ndarray):
        return noise.reshape(len(noise), -1).astype(float)
    return np.array([numbers_of(Structure(item)) for item in noise])


def _structures(examples: Sequence[Any] | Floats, named: Mapping[str, Any]) -> list[Structure]:
    """The structure of each example, as the loss is given it; the numbers of the named arguments come last."""
    found = [Structure((example if isinstance(example, tuple) else (example,), named)) for example in examples]
    for number, structure in enumerate(found):
        if any(isinstance(leaf, Value) and leaf.requires_grad for leaf in structure.leaves):
            raise ValueError(
                f"example {number} holds a Value that requires a gradient; compiled, examples are numbers: "
                "let the loss close over it, and take it with mg.take"
            )
    return found
