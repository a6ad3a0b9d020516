"""Batches in native code, on all cores: blocks of examples, each with a sum of gradients of its own.

A batch of 32 examples has eight blocks of four. Threads (see crew.py) take one after the other, and in the end the
sums of the blocks are added up in their order. So the numbers are the same on any number of cores. A thread that is
interrupted, by Ctrl-C say, does not wait for the others; what they work on is kept until they are done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.backends.crew import beside, cores
from micrograd.compiler.backends.executable import Batches, new_buffer
from micrograd.compiler.backends.llvm_machine import machine
from micrograd.compiler.backends.llvm_runners import BATCH, batch_runner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Floats, Integers

_BLOCKS = 8  # at most so many parts of a batch are run at once
_SMALLEST = 4  # a block has so many examples at least
_WORTH_A_THREAD = 400_000  # flops, which take longer than it takes to wake a thread


class NativeBatches(Batches):
    """Runs the programs of the examples of a batch, in native code and on all cores.

    A batch is cut into blocks, which depend on nothing but its length. The gradients of a block are added up in order,
    and then the sums of the blocks. So the numbers are the same on any number of cores. Each other thread has a buffer
    of its own, and takes the parameters from this one.

    Attributes:
        buffer: the one of the parameters.
        jobs: how to run each example; see _job.
        call: the native function that runs blocks.
        shared: what other threads read of the buffer.
    """

    def __init__(
        self,
        buffer: Floats,
        runs: Sequence[Any],
        numbers: Sequence[Floats] | Floats,
        which: Integers,
        gradients: slice,
    ) -> None:
        self.buffer, self._gradients = buffer, gradients
        self._runs, self._numbers, self._which = runs, numbers, which
        self.jobs = np.array([_job(run) for run in runs], dtype=np.int64)[which]
        if isinstance(numbers, np.ndarray):  # the rows of a matrix, which may be millions
            self.jobs[:, 2] = numbers.ctypes.data + numbers.strides[0] * np.arange(len(numbers))
            self.jobs[:, 4] = numbers.shape[1]
        else:
            self.jobs[:, 2] = [row.ctypes.data for row in numbers]
            self.jobs[:, 4] = list(map(len, numbers))
        self.jobs[:, 3] -= self.jobs[:, 4]  # an example's numbers are the last inputs
        self.call = BATCH(machine().address("micrograd_batch", batch_runner))
        self._flops = np.array([run.program.flops for run in runs])
        self._cores = 1 if any(run.calls_python for run in runs) else cores()
        self._others: list[Floats] = []  # the buffers of the other threads
        self.shared: list[slice] = []
        self._sums: Floats | None = None  # of the blocks, where nobody uses them

    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples; their mean gradient is in its place in the buffer then."""
        count, gradients = len(batch), self.buffer[self._gradients]
        blocks = min(_BLOCKS, max(1, count // _SMALLEST))
        sums, self._sums = self._sums, None
        if blocks == 1:
            sums = gradients[None, :]
        elif sums is None or len(sums) != blocks:
            sums = np.empty((blocks, len(gradients)))
        bounds = (count * block // blocks for block in range(blocks + 1))
        plan = np.array([0, 0, *bounds, *batch], dtype=np.int64)  # what batch_runner asks for
        losses = np.empty(count)
        arrays = (plan, sums, losses)
        threads = min(
            self._cores, blocks, max(1, int(self._flops[self._which[plan[-count:]]].sum()) // _WORTH_A_THREAD)
        )
        self._share(threads - 1)
        beside([_Worker(self, buffer, arrays) for buffer in self._others[: threads - 1]])
        here = _Worker(self, self.buffer, arrays)
        while here.run() < blocks:
            time.sleep(0)  # another one is at the last block
        if blocks > 1:
            np.add.reduce(sums, axis=0, out=gradients)
            self._sums = sums
        for run in self._runs:
            run.raise_what_was_raised()
        return losses.tolist()

    def _share(self, count: int) -> None:
        """Make buffers for so many other threads, with the constants of the programs in them, where there are none."""
        if len(self._others) >= count:
            return
        places = []
        for number, run in enumerate(self._runs):
            length = self.jobs[np.argmax(self._which == number), 4]  # of what each example has for itself
            places.append(run.program.inputs[: len(run.program.inputs) - length])
        self.shared = _stretches(places)
        for _ in range(count - len(self._others)):
            buffer = new_buffer(len(self.buffer))
            buffer[:] = self.buffer
            self._others.append(buffer)


class _Worker:
    """Runs blocks of a batch in one buffer. It keeps all that native code works on, as long as it does.

    Args:
        batches: has the programs, the examples, and the buffer with the parameters.
        buffer: where the programs run: that one, or one of another thread.
        arrays: the plan for this batch, the sums of its blocks, and its losses.
    """

    def __init__(self, batches: NativeBatches, buffer: Floats, arrays: tuple[Integers, Floats, Floats]) -> None:
        self._batches, self._buffer, self._arrays = batches, buffer, arrays
        self._addresses = [array.ctypes.data for array in (buffer, batches.jobs, *arrays)]

    def __call__(self) -> None:
        """Take the parameters, and run blocks."""
        for stretch in self._batches.shared:
            self._buffer[stretch] = self._batches.buffer[stretch]
        self.run()

    def run(self) -> int:
        """Run blocks until none is left; how many are finished by then."""
        buffer, jobs, plan, sums, losses = self._addresses
        blocks, width = self._arrays[1].shape
        return int(self._batches.call(buffer, jobs, plan, blocks, sums, width, 1 / len(self._arrays[2]), losses))


def _stretches(places: Sequence[Integers]) -> list[slice]:
    """The stretches of a buffer that these places make."""
    found = np.unique(np.concatenate(places))
    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    return [slice(int(run[0]), int(run[-1]) + 1) for run in runs if len(run)]


def _job(run: Any) -> list[int]:
    """How to run an example.

    It is the program's table of kernels, and how many; the example's numbers, the end of where they go, and how many;
    and where the results are. The numbers are filled in for each example.
    """
    program = run.program
    (loss,) = program.outputs.tolist()
    end = int(program.inputs[-1]) + 1
    return [run.table.ctypes.data, len(run.table), 0, end, 0, loss, program.gradients.start]
