"""The contract of backends: a backend is a function that makes a run of a program.

    run = backend.run_of(program)
    outputs, gradients = run(np.array([0.5, -1.5]))     # the inputs, in the order of the program

A run takes the inputs as one array of floats, and gives two new ones: the outputs and the gradients that
the program has. Each gradient is that of the only output, with respect to an input, and 0.0 where it is -0.0:
so it is what a Value has whose gradient was 0.0. Overflow and the like leave infinities and NaNs in the results, and
raise nothing.

That is all a backend must do. If its runs are Executables, they keep their numbers in a buffer, and it
can train too: see executable.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.numbers import Floats
from micrograd.compiler.passes.lists import COMMON
from micrograd.compiler.passes.stages import Request
from micrograd.compiler.passes.verifier import Verifier

if TYPE_CHECKING:
    from micrograd.compiler.backends.shared.deciding import RunOfRegion
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.ir.regions import Region
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.passes.stages import Pass
    from micrograd.engine.array_calls import ArrayFunction
    from micrograd.engine.primitive import Primitive

Run: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]


@dataclass(frozen=True)
class Backend:
    """A way to run programs.

    Attributes:
        name: as compile and fit take it.
        lower: makes a run of a program; a subclass of Executable where programs stay in a buffer.
        passes: those that its programs go through; see passes/lists.py.
        has_code: whether it has code for a primitive, so that kernels of it may be fused.
        lower_in_float32: makes a run of a program that computes in float32.
        decide: makes a run of a region, with the gradients of some inputs; None where programs do not decide.
        arrays: makes what runs a function of whole arrays, and its rule; by default both run as they are.
    """

    name: str
    lower: Callable[..., Run]
    passes: tuple[Pass, ...] = COMMON
    has_code: Callable[[Primitive], object] = bool
    lower_in_float32: Callable[..., Run] | None = None
    decide: Callable[[Region, Integers], RunOfRegion] | None = None
    arrays: Callable[[ArrayFunction], Any] = lambda function: function

    def in_precision(self, precision: str) -> Backend:
        """This backend for programs that compute in "float64" or "float32".

        Raises:
            ValueError: for another precision.
        """
        if precision not in ("float64", "float32"):
            raise ValueError(f'precision must be "float64" or "float32", not {precision!r:.80}')
        if precision == "float64":
            return self
        if self.lower_in_float32 is None:
            raise ValueError(f"the {self.name} backend computes in float64 only")
        return replace(self, lower=self.lower_in_float32, decide=None)

    def request(self, name: str = "", disabled: frozenset[str] = frozenset(), verify: bool = False) -> Request:
        """What is asked of the passes for this backend; MICROGRAD_VERIFY=1 in the environment has them verified."""
        verify = verify or os.environ.get("MICROGRAD_VERIFY", "0") not in ("", "0")
        return Request(
            self.lower,
            self.passes,
            name=name,
            has_code=self.has_code,
            disabled=disabled,
            verify=verify,
            arrays=self.arrays,
        )

    def after_own_passes(self, program: Program, request: Request) -> Program:
        """A program of the passes of all backends, after those of this backend only."""
        verifier = Verifier()
        for each in self.passes[len(COMMON) :]:
            program = each.of(program, request, verifier)
        return program

    def run_of(self, program: Program, buffer: Floats | None = None, disabled: frozenset[str] = frozenset()) -> Run:
        """A run of a program, after the passes of this backend only.

        Args:
            program: what to run.
            buffer: the buffer to run it in, if it shares one with others.
            disabled: the names of the passes that do not run.
        """
        kernels = self.after_own_passes(program, self.request("", disabled))
        run = self.lower(kernels) if buffer is None else self.lower(kernels, buffer)
        if isinstance(run, Executable):
            run.program = program
        return run

    def executable(self, purpose: str) -> type[Executable]:
        """The subclass of Executable that its runs are of.

        Args:
            purpose: what needs a buffer, for the error message.

        Raises:
            ValueError: if its runs have no buffer.
        """
        if isinstance(self.lower, type) and issubclass(self.lower, Executable):
            return self.lower
        raise ValueError(f"{purpose} keeps numbers in the buffer of a program, and the {self.name} backend has none")
