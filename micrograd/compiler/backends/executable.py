"""What backends make of a program: something with a buffer that runs.

    executable.buffer[executable.program.inputs] = numbers
    executable.run()
    executable.buffer[executable.program.outputs]

The program says where everything is; what runs it differs from backend to backend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.program import Program


class Executable(ABC):
    """A program and its buffer, ready to run.

    Args:
        program: what to run.
        buffer: where to run it, if not in a buffer of its own.

    Attributes:
        buffer: all of its numbers; see Program for what is where.
        batches: the Batches of this backend.
    """

    batches: type[Batches]

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        self.program = program
        self.buffer = program.fill(np.zeros(program.size) if buffer is None else buffer)

    @abstractmethod
    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""


class Batches(ABC):
    """Runs the programs of the examples of a batch.

    Args:
        buffer: that of all programs.
        runs: the programs.
        numbers: those of each example.
        which: of which program each example is.
        gradients: where in the buffer the mean gradient is to be.
    """

    @abstractmethod
    def __init__(
        self, buffer: Floats, runs: Sequence[Any], numbers: Sequence[Floats], which: Integers, gradients: slice
    ) -> None: ...

    @abstractmethod
    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples; their mean gradient is in its place in the buffer then."""
