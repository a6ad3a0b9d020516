"""Batches in native code, on all cores: blocks of packs, each with a sum of gradients of its own.

A batch of 64 examples has eight packs of eight (see batches.py), and each is a block. Threads (see thread_pool.py) take
one after the other. The sums of two blocks are added up, those of two pairs, and those of two fours:

    ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7))

So the numbers are the same on any number of cores. Each thread begins somewhere else, so that most of what it adds is
its own: to read what another core has written takes long. A thread that is interrupted, by Ctrl-C say, does not wait
for the others; what they work on is kept until they are done.
"""

from __future__ import annotations

import ctypes
import os
import time
from functools import partial
from itertools import chain, takewhile
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.llvm.llvm_batch_runner import AWAY, BATCH, PACK, WORKS, batch_runner
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_steps import STEPS, Given, step_runner
from micrograd.compiler.backends.llvm.llvm_update import NativeUpdate
from micrograd.compiler.backends.llvm.thread_pool import beside, cores
from micrograd.compiler.backends.shared.batches import Batches, first_own_input, in_packs
from micrograd.compiler.backends.shared.executable import new_buffer
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.packs import Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.backends.shared.batches import Stepping
    from micrograd.compiler.numbers import Floats, Integers

_BLOCKS = 8  # at most so many parts of a batch are run at once
_SMALLEST = 4  # a block has so many examples at least
_WORTH_A_THREAD = 400_000  # flops, which take longer than it takes to wake a thread
# To sleep for no time at all takes 50 microseconds and more on Linux.
_let_others_run: Callable[[], None] = getattr(os, "sched_yield", partial(time.sleep, 0))
_ITERATIONS = 1_000_000  # in which a thread looks out for the next batch: some 300 microseconds


class NativeBatches(Batches):
    """Runs the programs of the examples of a batch, in native code and on all cores.

    A batch is cut into blocks, which depend on nothing but its examples. Each other thread has a buffer of its own, and
    takes the parameters from this one.

    Attributes:
        buffer: the one of the parameters.
        jobs: how to run each program; see _job.
        numbers: the address of each example's numbers.
        call: the native function that runs blocks.
        gradients: where the gradients are in the buffer.
        kept: all that native code works on, but for a batch.
    """

    packing = Packing(8)  # fill a vector, and other threads have packs, too

    def __init__(
        self,
        buffer: Floats,
        runs: Sequence[Any],
        numbers: Sequence[Floats] | Floats,
        which: Integers,
        gradients: slice,
    ) -> None:
        self.buffer, self.gradients = buffer, gradients
        self._runs, self._programs, self._which = runs, which, which.tolist()
        if isinstance(numbers, np.ndarray):  # the rows of a matrix, which may be millions
            self.numbers = numbers.ctypes.data + numbers.strides[0] * np.arange(len(numbers))
        else:
            self.numbers = np.array([row.ctypes.data for row in numbers])
        self._lengths = [len(numbers[self._which.index(number)]) for number in range(len(runs))]
        outputs = [np.ascontiguousarray(run.program.outputs) for run in runs]
        self._sizes = list(map(len, outputs))
        jobs = [_job(*of_run) for of_run in zip(runs, self._lengths, outputs, strict=True)]
        self.jobs = np.array(jobs, dtype=np.int64)
        addresses, engines = machine().addresses({"micrograd_batch": batch_runner})
        self._runner = addresses["micrograd_batch"]
        self.call = BATCH(self._runner)
        self._take: Any = None  # what takes several steps
        self._flops = [run.program.flops for run in runs]
        self._calls_python = any(run.calls_python for run in runs)
        self._cores = 1 if self._calls_python else cores()
        self.kept = (buffer, self.jobs, self.numbers, numbers, runs, outputs, engines)
        self._here = _Worker(self, buffer, np.empty((0, 2), dtype=np.int64), 0)
        self._others: list[_Worker] = []
        self._plan: _Plan | None = None  # of the batch before, where nobody works on it any more
        self._packs: list[int] | None = None  # of the batch before

    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples, in any order; their mean gradient is in its place in the buffer then."""
        gradients = self.buffer[self.gradients]
        order, packs = self._in_packs(batch)
        blocks = _blocks(len(batch), len(packs) // PACK)
        threads = self._threads(packs, blocks)
        self._make_workers(threads - 1)
        states = [worker.state for worker in self._others]
        plan, self._plan = self._plan, None
        if plan is None or WORKS in states or (plan.count, plan.blocks) != (len(batch), blocks):
            plan = _Plan(len(batch), blocks, gradients)
        plan.begin(order, packs)
        free = [worker for worker, state in zip(self._others[: threads - 1], states, strict=False) if state != WORKS]
        for number, worker in enumerate([self._here, *free]):
            worker.take(plan, number * blocks // threads)
        asleep = [worker for worker in free if worker.state == AWAY]
        for worker in asleep:
            worker.state = WORKS
        beside(asleep)
        is_over = self._here.run([worker for worker in free if worker not in asleep])
        while not is_over:
            _let_others_run()  # another one is at the last block
            is_over = self._here.run([])
        if blocks > 1:
            gradients[:] = plan.sums[0]
        losses: list[float] = plan.losses.tolist()
        self._plan = plan
        for run in self._runs:
            run.raised.check()
        return losses

    def at_once(self, batches: Sequence[list[int]], stepping: Stepping) -> int:
        """For how many of these batches, from the first on, ``take_steps`` may take the steps.

        They must be of one size, and cut into packs alike. Nothing may call Python, and no thread be worth its while.
        """
        count = len(batches[0])
        if self._calls_python or (len(self._runs) > 1 and count > 1):
            return 0
        _, packs = self._in_packs(batches[0])
        if self._threads(packs, _blocks(count, len(packs) // PACK)) > 1 or stepping.update() is None:
            return 0
        return len([*takewhile(count.__eq__, map(len, batches))])

    @staticmethod
    def native_update(update: Callable[..., Any], shared: Sequence[bool]) -> NativeUpdate | None:
        """See Batches."""
        made = NativeUpdate(update, shared)
        return made if made.is_native else None

    def take_steps(self, batches: Sequence[list[int]], rates: Floats, losses: Floats, stepping: Stepping) -> None:
        """Take the steps of batches of one size, until a number of a step is not finite; see Batches."""
        buffer, gradients, (_, packs) = self.buffer, self.buffer[self.gradients], self._in_packs(batches[0])
        last = buffer[stepping.last_gradients :]
        plan = _Plan(len(batches[0]), _blocks(len(batches[0]), len(packs) // PACK), gradients)
        plan.begin(batches[0], packs)
        plans = np.tile(np.frombuffer(plan.table, dtype=np.int64), (len(batches), 1))
        if plan.blocks == 1:  # every other step leaves the gradient of the one before where it is
            plans[1::2, 2] = last.ctypes.data
        plans[:, 3] = losses.ctypes.data + losses.strides[0] * np.arange(len(batches))
        examples = plan.first_example
        plans[:, examples : examples + plan.count] = batches
        if len(self._runs) > 1:  # each example has a program of its own, and is a pack
            plans[:, examples + 1] = self._programs[plans[:, examples]]
        update, states, start = stepping.update(), stepping.states, buffer.ctypes.data
        length = states.stop - states.start
        buffer[stepping.next_states : stepping.next_states + length] = buffer[states]  # what updates leave as it is
        forth, back = (
            ctypes.create_string_buffer(update.addresses(*([start + 8 * at for at in part] for part in places)))
            for places in ((stepping.given, stepping.results), stepping.back())
        )
        given = Given(
            worker=self._here.address,
            batch_runner=self._runner,
            plans=plans.ctypes.data,
            plan_length=plans.shape[1],
            steps=len(batches),
            rates=rates.ctypes.data,
            done=stepping.done.ctypes.data,
            last_rate=stepping.last_rate.ctypes.data,
            buffer=buffer.ctypes.data,
            gradients=self.gradients.start,
            last_gradients=stepping.last_gradients,
            update=update.address,
            forth=ctypes.addressof(forth),
            back=ctypes.addressof(back),
            parameters=stepping.given[0],
            next=stepping.results[0],
            count=len(gradients),
            states=states.start,
            next_states=stepping.next_states,
            numbers=length,
            rate=stepping.given[2],
        )
        table = (ctypes.c_int64 * len(given))(*given)
        if self._take is None:
            addresses, engines = machine().addresses({"micrograd_steps": step_runner})
            self._take = STEPS(addresses["micrograd_steps"]), engines  # which stay in memory
        self._take[0](ctypes.addressof(table))

    def _in_packs(self, batch: Sequence[int]) -> tuple[Sequence[int], list[int]]:
        """The examples in their order, and the numbers of all packs; see in_packs."""
        if len(self._runs) == 1 and self._packs is not None and self._packs[-1] == len(batch):
            return batch, self._packs
        if max(self._sizes) > 1:
            batch, self._packs = in_packs(batch, self._which, self._sizes)
        else:  # each example is a pack
            packs = ((self._which[example], position, position + 1) for position, example in enumerate(batch))
            self._packs = [*chain.from_iterable(packs)]
        return batch, self._packs

    def _threads(self, packs: Sequence[int], blocks: int) -> int:
        """How many threads are worth their while."""
        most = min(self._cores, blocks)
        if most == 1:
            return most
        flops = sum(map(self._flops.__getitem__, packs[::PACK]))
        return max(1, min(most, flops // _WORTH_A_THREAD))

    def _make_workers(self, count: int) -> None:
        """Make workers for so many other threads, with the constants of the programs in their buffers."""
        if len(self._others) >= count:
            return
        programs = [run.program for run in self._runs]
        shared = _stretches(
            [one.inputs[: first_own_input(one, length)] for one, length in zip(programs, self._lengths, strict=True)]
        )
        for _ in range(count - len(self._others)):
            buffer = new_buffer(len(self.buffer))
            buffer[:] = self.buffer
            self._others.append(_Worker(self, buffer, shared, _ITERATIONS))


class _Plan:
    """What all workers of a batch share; the next batch may have it again, where none of them works on it any more.

    Args:
        count: how many examples there are.
        blocks: how many blocks their packs make.
        gradients: where their mean gradient goes. If there is one block only, it is added up there.

    Attributes:
        losses: of the examples.
        sums: the gradients of each block.
        table: what batch_runner asks for.
        address: of the table.
        first_example: where in it the examples begin.
    """

    def __init__(self, count: int, blocks: int, gradients: Floats) -> None:
        self.count, self.blocks = count, blocks
        self.losses = np.empty(count)
        self.sums = gradients[None, :] if blocks == 1 else np.empty((blocks, len(gradients)))
        self._start = [0, blocks, self.sums.ctypes.data, self.losses.ctypes.data, count, *[0] * (2 * blocks)]
        self.first_example = len(self._start) + blocks + 1
        self._packs: Sequence[int] | None = None
        self.table: Any = (ctypes.c_int64 * (self.first_example + 4 * count))()  # there are no more packs
        self.address = ctypes.addressof(self.table)

    def begin(self, examples: Sequence[int], packs: Sequence[int]) -> None:
        """Begin with these examples and packs; no block is taken yet."""
        first, table = self.first_example, self.table
        table[: len(self._start)] = self._start
        table[first : first + self.count] = examples
        if packs is not self._packs:
            bounds = [len(packs) // PACK * block // self.blocks for block in range(self.blocks + 1)]
            table[len(self._start) : first] = bounds
            table[first + self.count : first + self.count + len(packs)] = packs
            self._packs = packs


def _blocks(examples: int, packs: int) -> int:
    """How many blocks so many examples have."""
    return min(_BLOCKS, max(1, examples // _SMALLEST), packs)


class _Worker:
    """Runs blocks of batches in one buffer. It keeps all that native code works on, as long as it does.

    Args:
        batches: has the programs, the examples, and the buffer with the parameters.
        buffer: where the programs run: that one, or one of another thread.
        shared: the stretches of that one that it copies first: where each begins and ends.
        iterations: in so many it looks out for the next batch.
    """

    def __init__(self, batches: NativeBatches, buffer: Floats, shared: Integers, iterations: int) -> None:
        self._call = batches.call
        self._kept = (buffer, shared, batches.kept)
        self._plan: _Plan | None = None
        width = batches.gradients.stop - batches.gradients.start
        jobs, numbers, source = batches.jobs.ctypes.data, batches.numbers.ctypes.data, batches.buffer.ctypes.data
        rest = [buffer.ctypes.data, jobs, numbers, width, source, shared.ctypes.data, len(shared)]
        self._table = (ctypes.c_int64 * 11)(AWAY, iterations, 0, 0, *rest)  # what batch_runner asks for
        self.address = ctypes.addressof(self._table)

    @property
    def state(self) -> int:
        """What it does: native code in its thread changes it."""
        return self._table[0]

    @state.setter
    def state(self, state: int) -> None:
        self._table[0] = state

    def take(self, plan: _Plan, first: int) -> None:
        """Take the plan of the next batch, and the block to try first."""
        self._plan = plan
        self._table[2:4] = [plan.address, first]

    def __call__(self) -> None:
        self.run([])

    def run(self, others: Sequence[_Worker]) -> bool:
        """Run blocks until none is left, with others that look out for work; whether the batch is over then."""
        called = (ctypes.c_int64 * len(others))(*[worker.address for worker in others])
        return bool(self._call(self.address, ctypes.addressof(called), len(others)))


def _stretches(positions: Sequence[Integers]) -> Integers:
    """Where each of the stretches of a buffer begins and ends that these positions make."""
    found = distinct(np.concatenate(positions))
    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    return np.array([(run[0], run[-1] + 1) for run in runs], dtype=np.int64)


def _job(run: Any, length: int, outputs: Integers) -> list[int]:
    """How to run a pack of examples.

    It is the program's table of kernels, and how many; where the numbers of the examples go, and how many each has;
    where the seeds are, the address of the positions of the losses, and where the gradients are; and how many examples
    there are.
    """
    program = run.program
    given = int(program.inputs[first_own_input(program, length)]) if length else 0
    where = [int(program.seeds[0]), outputs.ctypes.data, program.gradients.start]
    return [run.table.ctypes.data, len(run.table), given, length, *where, len(outputs)]
