"""The contract of backends: a backend is a function that makes a run of a program.

    run = backend.run_of(program)
    outputs, gradients = run(np.array([0.5, -1.5]))     # the inputs, in the order of the program

A run takes the inputs as one array of floats, and gives two new ones: the outputs and the gradients that
the program has. Each gradient is that of the only output, with respect to an input. Overflow and the like
leave infinities and NaNs in the results, and raise nothing.

That is all a backend must do. If its runs are Executables, they keep their numbers in a buffer, and it
can train too: see executable.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.numbers import Floats

if TYPE_CHECKING:
    from micrograd.compiler.ir.program import Program

Run: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Backend:
    """A way to run programs.

    Attributes:
        name: as compile and fit take it.
        run_of: makes a run of a program; a subclass of Executable where programs stay in a buffer.
    """

    name: str
    run_of: Callable[[Program], Run]

    def executable(self, purpose: str) -> type[Executable]:
        """The subclass of Executable that its runs are of.

        Args:
            purpose: what needs a buffer, for the error message.

        Raises:
            ValueError: if its runs have no buffer.
        """
        if isinstance(self.run_of, type) and issubclass(self.run_of, Executable):
            return self.run_of
        raise ValueError(f"{purpose} keeps numbers in the buffer of a program, and the {self.name} backend has none")
