"""Executables: runs that keep a program and its numbers in a buffer.

    executable = NumpyExecutable(program)
    outputs, gradients = executable(numbers)      # as every run; or, without a copy of anything:
    executable.buffer[program.inputs] = numbers
    executable.run()
    executable.buffer[program.outputs]

Several programs may share one buffer. So fit keeps the parameters where the programs of the loss and of
the update read and write them, and its Batches (see batches.py) run a whole batch at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.ir.program import Map, Take
from micrograd.compiler.numbers import part_of, stretches_of, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from micrograd.compiler.backends.shared.batches import Batches
    from micrograd.compiler.ir.program import Kernel, Program, Singles
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive


NOT_FAILED = np.zeros(1)
_NONE = np.zeros(0)
_LINE = 64  # bytes in a cache line
_WHOLE_NUMBERS = 2**24  # up to which float32 has each


def new_buffer(size: int, dtype: Any = np.float64) -> Floats:
    """A buffer of zeros that begins with a cache line, as the longer stretches of a program do in it."""
    bytes_of_one = np.dtype(dtype).itemsize
    zeros: Floats = np.zeros(size + _LINE // bytes_of_one, dtype=dtype)
    start = -zeros.ctypes.data % _LINE // bytes_of_one
    return zeros[start : start + size]


class Ports(NamedTuple):
    """Where a run that keeps its numbers in arrays has them, for calls that copy nothing more than they need.

    Attributes:
        run: computes the outputs and the gradients of the inputs.
        inputs: an array, and where the inputs are in it.
        outputs: the same of the outputs.
        gradients: the same of the gradients.
        failed: an array of a number that is not 0 after a run whose results count for nothing.
        direct: does all of it where that is faster, and no other thread comes between; and the array where it does.
            Its arguments are floats. It gives what ``Quick`` says.
        add: adds to the gradients of a tuple of leaves a tuple of floats, and sets the gradient of a node; all at once,
            or False where one is no float. None where there is no faster way than that of Python.
    """

    run: Callable[[], object]
    inputs: tuple[Floats, Any]
    outputs: tuple[Floats, Integers]
    gradients: tuple[Floats, Any]
    failed: Floats
    direct: tuple[Callable[..., Any], Floats] | None = None
    add: Callable[[Any, Any, Any, float], bool] | None = None


class Pace(Enum):
    """How the numbers of a kernel are computed."""

    IN_VECTORS = "several at a time"
    ONE_BY_ONE = "one by one"
    IN_PYTHON = "by a Python function, one by one"


class Executable(ABC):
    """A program and its buffer, ready to run.

    Args:
        program: what to run.
        buffer: the buffer to run it in, if it shares one with others.

    Attributes:
        program: which says where inputs, outputs and gradients are in the buffer.
        buffer: has the inputs, outputs, gradients and constants where the program says. What is computed on the way
            may be written over.
        batches: the Batches of this backend, if its programs train in a buffer.
        dtype: of the numbers in the buffer.
        functions: those that it has for primitives; others are formulas of these, or called in Python.
    """

    batches: type[Batches]
    dtype: Any = np.dtype(np.float64)
    functions: Mapping[Primitive, Any]

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        self.program = program
        self.buffer = program.fill(new_buffer(program.size, self.dtype) if buffer is None else buffer)
        self._inputs, self._outputs = stretches_of(program.inputs), part_of(program.outputs)
        self._gradients = program.gradients if len(self.buffer[program.gradients]) else None

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs."""
        buffer = self.buffer
        for source, target in self._inputs:
            buffer[target] = numbers[source]
        self.run()
        return taken(buffer, self._outputs), buffer[self._gradients] + 0.0 if self._gradients else _NONE

    def ports(self) -> Ports:
        """Where the numbers are."""
        program, buffer = self.program, self.buffer
        inputs = buffer, part_of(program.inputs)
        return Ports(self.run, inputs, (buffer, program.outputs), (buffer, program.gradients), NOT_FAILED)

    @abstractmethod
    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""

    @abstractmethod
    def parts(self) -> list[Callable[[], object]]:
        """For each kernel and loop of the program a call that runs it alone, on what is in the buffer."""

    def between_calls(self) -> list[Callable[[], object]]:
        """For each stretch of kernels between calls of functions outside of the program a call that runs it."""
        parts = self.parts()
        return [partial(_run_all, parts[stretch]) for stretch in self.program.stretches()]

    def pace(self, kernel: Kernel | Singles) -> Pace:
        """How a kernel's numbers are computed."""
        if isinstance(kernel, Map) and kernel.primitive not in self.functions and not kernel.primitive.composite:
            return Pace.IN_PYTHON
        return Pace.IN_VECTORS


def _run_all(parts: Sequence[Callable[[], object]]) -> None:
    for part in parts:
        part()


class InFloat32(Executable):
    """A program and its buffer in float32: the base of what each backend has for it.

    Inputs are rounded, and results are given as float64. What is too large for float32 is infinite there.

    Raises:
        TraceError: if something is taken from more elements than float32 has whole numbers for.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        for _, kernel in program.with_iterations():
            if isinstance(kernel, Take) and kernel.terms > _WHOLE_NUMBERS:
                raise TraceError(
                    f"float32 cannot tell the indices of {kernel.terms:,} elements apart: beyond {_WHOLE_NUMBERS:,} it "
                    'has not every whole number. Take from fewer, or write precision="float64"'
                )
        with np.errstate(over="ignore"):
            super().__init__(program, buffer)

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs."""
        with np.errstate(over="ignore"):
            outputs, gradients = super().__call__(numbers.astype(np.float32))
        return outputs.astype(np.float64), gradients.astype(np.float64)
