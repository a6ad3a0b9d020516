"""The steps of fit on a mesh of JAX's devices: each device computes a part of the batch, and keeps all parameters.

    device 0    parameters, state    examples 0 to 7     gradient
    device 1    parameters, state    examples 8 to 15    gradient      their sum, and with it the update, on each device

A step is one function, which XLA compiles once. Where examples have several programs, each program is a function, and
so is the update; the gradient is summed from one to the next. A program takes as many examples at a time as a batch has
on average; where there are fewer, the last one is repeated with weight 0.

JAX differentiates the mean loss of a device's examples. That takes at most half the time of the compiler's reverse
programs under vmap, and no memory for the gradient of each example.

The numbers before a step are kept until the next ones are known to be finite: the step does not reuse their memory.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from struct import pack
from typing import TYPE_CHECKING, Any
from zlib import crc32

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from micrograd._support.callers import warn_user
from micrograd.compiler.backends.jax.jax_backend import BACKEND, Lowered
from micrograd.compiler.backends.jax.jax_functions import PLAIN
from micrograd.compiler.backends.jax.jax_mesh import AXIS, SAME, SPLIT, Devices
from micrograd.compiler.backends.jax.jax_processes import Processes
from micrograd.compiler.calling.boundary import numbers_of
from micrograd.compiler.numbers import distinct
from micrograd.compiler.training.steps import CompiledSteps, clipped, mean_of, numbers_of_noise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import TypeAlias

    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.training.steps import Task
    from micrograd.compiler.training.update import Update

    # Of the current numbers, the program and the position of each example, and the learning rate, it gives the next
    # numbers, the losses, and whether the gradient and the next numbers are finite.
    _Step: TypeAlias = Callable[[Any, Integers, Integers, float], tuple[Any, list[float], bool]]


class MeshSteps(CompiledSteps):
    """Takes the steps of a fit.

    Args:
        task: what is asked for.
        devices: how many, "all", or None for the one on which JAX computes anyway.
        precision: "float64" or "float32".

    Raises:
        TypeError: if the optimiser has a step of its own, or the loss does not return one Value.
        ValueError: if nothing requires a gradient, if a gradient would be lost, or if there are not as many devices.
        RuntimeError: if JAX has no float64 and that is asked for, or in a forked process.
    """

    def __init__(self, task: Task, devices: int | str | None, precision: str) -> None:
        self._devices = Devices(devices, precision)
        self._processes = Processes(self._devices.firsts) if len(self._devices.firsts) > 1 else None
        self.leads = self._processes is None or self._processes.leads
        self._warned = False  # that a step went beyond float32
        self._warned_of_rate = False  # that the learning rate makes all steps eager
        self._given = 0  # a digest of all numbers that were given so far
        self._share = min(task.batch_size / len(task.examples), 1.0)
        super().__init__(task, BACKEND)

    def together(self) -> AbstractContextManager[None]:
        """All steps are taken inside of this, so that processes that train together begin and end alike."""
        return nullcontext() if self._processes is None else self._processes.together()

    def _programs(self) -> list[Program]:
        return [special.program(False, start=len(self._parameters)) for special in self._special]

    def _make_runs(self, programs: list[Program]) -> None:
        self._groups = []
        self._position = np.zeros(len(self._which), dtype=np.int64)  # of each example, among those of its program
        for number, (program, others) in enumerate(zip(programs, self._others, strict=True)):
            members = np.flatnonzero(self._which == number)
            self._position[members] = np.arange(len(members))
            numbers = self._numbers_of(number)
            self._groups.append(
                _Group(self._devices, program, len(self._parameters), len(others), numbers, self._share)
            )
        update = _UpdateOnDevices(self._devices, self._update, self._clip_norm)
        groups, devices = self._groups, self._devices
        self._run = _in_one(devices, groups[0], update) if len(groups) == 1 else _one_by_one(devices, groups, update)
        self._numbers: Any = None  # what the update keeps, on each device
        self._others_given: list[bytes] = []
        self._digest_of_update = update.digest
        self._sum_up()

    def _sum_up(self) -> None:
        """Make the checksum that is equal in all processes which train the same."""
        digests = [self._devices.count, self._digest_of_update, *(group.digest for group in self._groups)]
        self._digest = crc32(repr(digests).encode())

    def _numbers_of(self, number: int) -> Floats:
        """The numbers of the examples that have the program with this number, a row each."""
        members = np.flatnonzero(self._which == number).tolist()
        return np.array([numbers_of(self._structures[member]) for member in members])

    def _give_numbers(self) -> None:
        for number, group in enumerate(self._groups):
            group.take(self._numbers_of(number))
        self._sum_up()

    def _give(self, current: Floats, others: list[Floats]) -> None:
        given = [numbers.tobytes() for numbers in others]
        changed = np.arange(len(current))
        if self._numbers is not None:  # what the Values were given after the last step stays where it is
            before = self._current_numbers()
            before[self._update.last_gradients] = 0.0
            changed = np.flatnonzero(before.view(np.int64) != current.view(np.int64))
        if not len(changed) and given == self._others_given:
            return
        self._numbers, self._others_given = self._devices.same(current), given
        for group, numbers in zip(self._groups, others, strict=True):
            group.others = self._devices.same(numbers)
        self._given = crc32(b"".join([changed.tobytes(), current[changed].tobytes(), *given]), self._given)

    def _current_numbers(self) -> Floats:
        return np.array(self._numbers, dtype=float)

    def step(self, batch: list[int], epoch: int, noise: Sequence[Any] | None = None) -> float:
        """One update from the mean loss of a batch, which is returned; noise has an item for each of its examples."""
        self._bring_up_to_date()
        if self._rate_can_change or self._has_constant_loss(batch):
            return self._take_eagerly(batch, epoch, noise)
        drawn = np.zeros(0) if noise is None else numbers_of_noise(noise)
        for index, numbers in zip(batch, drawn, strict=False):  # none are drawn without noise
            self._groups[self._which[index]].give_last(self._position[index], numbers)
        done = int(self._done[0])
        rate = self._optimizer.next_rate(done)
        processes = self._processes
        if processes is not None:
            processes.agree(self._digest, self._given, crc32(pack(f"d{len(batch)}q", rate, *batch) + drawn.tobytes()))
        with nullcontext() if processes is None else processes.waiting():
            following, losses, is_finite = self._run(self._numbers, self._which[batch], self._position[batch], rate)
        self._devices.caught.check()
        self._mean = mean = mean_of(losses)
        if is_finite and math.isfinite(mean):
            done += 1
            # Python looks for signals at calls and loops: there are none between here and the return
            self._numbers = following
            self._last_rate[0], self._done[0] = rate, done
            return mean
        mean = self._take_eagerly(batch, epoch, noise)
        if self._devices.type != np.float64 and not self._warned:
            self._warned = True
            warn_user(
                f"step {done} is not finite in float32, so it was taken in float64, without JAX, which is slow; so "
                'will be others like it. precision="float64" has room for larger numbers'
            )
        return mean

    def _take_eagerly(self, batch: list[int], epoch: int, noise: Sequence[Any] | None) -> float:
        if self._rate_can_change and not self._warned_of_rate:
            self._warned_of_rate = True
            warn_user(
                "the learning rate is a function that may read or change what the loss reads, so all steps are taken "
                "without JAX, which is slow: let a callback do that, or train with another backend"
            )
        return super()._take_eagerly(batch, epoch, noise)


def _digest_of(program: Program, lowered: Lowered) -> int:
    """A checksum of what a program computes, which all processes agree on."""
    kernels = [
        (iterations, kernel.kind, kernel.rows, kernel.columns, kernel.terms)
        for iterations, kernel in program.with_iterations()
    ]
    return crc32(repr(kernels).encode(), crc32(lowered.constants.tobytes()))


class _Group:
    """The examples of one program.

    Args:
        devices: what computes them.
        program: computes the loss of one example.
        parameters: how many parameters are its first inputs.
        others: how many other Values are its next inputs.
        numbers: the numbers of the examples, a row each.
        share: which part of all examples is in a batch.

    Attributes:
        numbers: as given, in the type of the devices.
        size: how many examples the devices compute at a time.
        constants: the constants of the program, on each device.
        others: the numbers of the other Values, on each device.
        digest: a checksum of the program and the numbers.
        shapes: the shapes of the arguments of ``summed``: constants, others and rows.
    """

    def __init__(
        self, devices: Devices, program: Program, parameters: int, others: int, numbers: Floats, share: float
    ) -> None:
        self.size = math.ceil(math.ceil(share * len(numbers)) / devices.count) * devices.count
        positions = np.split(program.inputs, [parameters, parameters + others])
        lowered = Lowered(program, *positions)
        self.constants, self.others = devices.same(lowered.constants), devices.same(np.zeros(others))
        self._devices, self._parameters = devices, parameters
        self._digest_of_program = _digest_of(program, lowered)
        self.take(numbers)
        self._loss = lowered.function(program.outputs)
        rows = self.size, numbers.shape[1] + 1
        self.shapes = [(lowered.constants.shape, SAME), ((others,), SAME), (rows, SPLIT)]

    def take(self, numbers: Floats) -> None:
        """Take these numbers of the examples from now on."""
        self.numbers = numbers.astype(self._devices.type)
        self.digest = crc32(self.numbers.tobytes(), self._digest_of_program)

    def give_last(self, position: int, numbers: Floats) -> None:
        """Let these be the last numbers of an example."""
        self.numbers[position, self.numbers.shape[1] - len(numbers) :] = numbers

    def rows(self, positions: Integers, weight: float) -> Any:
        """The numbers and the weights of up to ``size`` examples, split between the devices."""
        count = len(positions)
        filled = np.empty((self.size, self.numbers.shape[1] + 1), dtype=self.numbers.dtype)
        filled[:, :-1] = self.numbers[positions[np.minimum(np.arange(self.size), count - 1)]]
        filled[:count, -1], filled[count:, -1] = weight, 0.0
        return self._devices.split(filled)

    def summed(self, constants: Any, others: Any, rows: Any, current: Any) -> tuple[Any, Any]:
        """On one device, from its rows: the gradient of the weighted loss of all devices' rows, and all losses."""
        numbers, weights = rows[:, :-1], rows[:, -1]

        def weighted(parameters: Any) -> tuple[Any, Any]:
            losses = jax.vmap(self._loss, (None, None, None, 0))(constants, parameters, others, numbers)[:, 0]
            return (weights * losses).sum(), losses

        gradient, own = jax.grad(weighted, has_aux=True)(current[: self._parameters])
        first = lax.axis_index(AXIS) * len(weights)
        losses = lax.dynamic_update_slice(jnp.zeros(self.size), own, (first,))
        both = lax.psum(jnp.concatenate([gradient, losses]), AXIS)  # one sum takes half the time of two
        return both[: self._parameters], both[self._parameters :]


class _UpdateOnDevices:
    """The optimiser's update, which each device computes for itself.

    Attributes:
        constants: the constants of its program, on each device.
        digest: a checksum of its program.
        shapes: the shapes of the arguments of ``updated``: constants, current numbers, and rate.
        gradient: the shape of the gradient.
    """

    def __init__(self, devices: Devices, update: Update, clip_norm: float | None) -> None:
        kept = slice(0, update.last_gradients.stop)
        positions = [np.arange(position.start, position.stop) for position in (kept, update.gradients, update.next)]
        lowered = Lowered(update.program, *positions[:2], np.array([update.rate]), functions=PLAIN)
        self.constants = devices.same(lowered.constants)
        self.digest = crc32(repr(clip_norm).encode(), _digest_of(update.program, lowered))
        self._next, self._clip_norm = lowered.function(positions[2]), clip_norm
        self.shapes = [(lowered.constants.shape, SAME), (positions[0].shape, SAME), ((1,), SAME)]
        self.gradient = positions[1].shape

    def updated(self, constants: Any, current: Any, rate: Any, gradient: Any) -> tuple[Any, Any]:
        """The next numbers, and whether they and the gradient are finite."""
        if self._clip_norm is not None:
            gradient = clipped(gradient, self._clip_norm, jnp)
        following = self._next(constants, current, gradient, rate)
        return jnp.append(following, gradient), jnp.isfinite(gradient).all() & jnp.isfinite(following).all()


def _in_one(devices: Devices, group: _Group, update: _UpdateOnDevices) -> _Step:
    """A step of examples that all have one program: one function."""

    def compute(constants: Any, others: Any, rows: Any, of_update: Any, current: Any, rate: Any) -> tuple[Any, ...]:
        gradient, losses = group.summed(constants, others, rows, current)
        following, is_finite = update.updated(of_update, current, rate, gradient)
        return following, losses, is_finite

    compiled = devices.compiled(compute, [*group.shapes, *update.shapes], 3)

    def step(current: Any, which: Integers, positions: Integers, rate: float) -> tuple[Any, list[float], bool]:
        rows = group.rows(positions, 1 / len(positions))
        given = group.constants, group.others, rows, update.constants, current, devices.same([rate])
        following, losses, is_finite = compiled(*given)
        return following, np.asarray(losses, dtype=float)[: len(positions)].tolist(), bool(is_finite)

    return step


def _one_by_one(devices: Devices, groups: Sequence[_Group], update: _UpdateOnDevices) -> _Step:
    """A step of examples with several programs: a function for each, which adds to the gradient, and the update."""
    _, kept, _ = update.shapes
    sums = (update.gradient, SAME)
    adds = [devices.compiled(_adding(group), [*group.shapes, kept, sums], 2, taken=(4,)) for group in groups]
    updated = devices.compiled(update.updated, [*update.shapes, sums], 2)

    def step(current: Any, which: Integers, positions: Integers, rate: float) -> tuple[Any, list[float], bool]:
        total, found, losses = devices.same(np.zeros(update.gradient)), [], np.zeros(len(which))
        for number in distinct(which).tolist():
            group, members = groups[number], np.flatnonzero(which == number)
            for start in range(0, len(members), group.size):
                some = members[start : start + group.size]
                rows = group.rows(positions[some], 1 / len(positions))
                total, of_some = adds[number](group.constants, group.others, rows, current, total)
                found.append((some, of_some))
        following, is_finite = updated(update.constants, current, devices.same([rate]), total)
        for some, of_some in found:
            losses[some] = np.asarray(of_some)[: len(some)]
        return following, losses.tolist(), bool(is_finite)

    return step


def _adding(group: _Group) -> Callable[..., tuple[Any, Any]]:
    """A function that adds the gradient of a group's rows to the one before, and gives their losses too."""

    def add(constants: Any, others: Any, rows: Any, current: Any, total: Any) -> tuple[Any, Any]:
        gradient, losses = group.summed(constants, others, rows, current)
        return total + gradient, losses

    return add
