"""The JAX backend: a program as one function of arrays, which XLA compiles for what JAX finds.

Each kernel makes an array from those before it; nothing is written to. The program of ``y = tanh(W @ x)`` is

    arrays = [zero, constants, inputs]
    arrays.append(einsum("rt,t->r", inputs[0:6].reshape(3, 2), inputs[6:8]))
    arrays.append(tanh(arrays[3]))

How an operand is read is found out once, before XLA is handed anything: see jax_reads.py. Constants are an argument
of the compiled function, so that XLA computes with them as with other numbers: where it knows a divisor, it multiplies
by the inverse.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from micrograd.compiler.backends.jax.jax_arrays import ArraysOnJax, on_jax
from micrograd.compiler.backends.jax.jax_checks import check_jax, check_process, in_float64
from micrograd.compiler.backends.jax.jax_deciding import JaxRun, Part
from micrograd.compiler.backends.jax.jax_functions import DIFFERENTIABLE, FUNCTIONS, PLAIN, Caught
from micrograd.compiler.backends.jax.jax_kernels import function_of
from micrograd.compiler.backends.jax.jax_loops import scan_of
from micrograd.compiler.backends.jax.jax_reads import Positions
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.backends.shared.executable import Executable, InFloat32
from micrograd.compiler.ir.program import Loop, unrolled
from micrograd.compiler.numbers import no_integers
from micrograd.compiler.passes.lists import JAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.backends.jax.jax_functions import Functions
    from micrograd.compiler.backends.jax.jax_reads import Reader
    from micrograd.compiler.ir.entries import Called
    from micrograd.compiler.ir.program import Access, Kernel, Program
    from micrograd.compiler.numbers import Floats, Integers


@cache
def compiler_options() -> dict[str, bool]:
    """What XLA is told for programs that are compiled here.

    On CPUs its newer emitter of fused loops takes twice as long for many small kernels, and gains nothing there.
    """
    options = {"xla_cpu_use_fusion_emitters": False}
    try:
        jax.jit(jnp.negative).lower(0.0).compile(compiler_options=options)
    except RuntimeError:  # pragma: no cover  # another XLA, which has no such option
        return {}
    return options


class Lowered:
    """The kernels of a program as functions of arrays.

    Args:
        program: what is to be run.
        given: the positions whose numbers are given at each run, array by array.
        functions: what kernels are made of: those that JAX can differentiate, or plain ones.
        calls: the functions of arrays that are called in the program, by where their numbers are.

    Attributes:
        positions: which array holds the number of each position in the end.
        constants: all constants of the program, side by side.
    """

    def __init__(
        self, program: Program, *given: Integers, functions: Functions = DIFFERENTIABLE, calls: Sequence[Called] = ()
    ) -> None:
        self._functions = functions
        self.positions = Positions(program.size)
        runs = [(np.arange(start, start + len(numbers)), numbers) for start, numbers in program.constants]
        runs.append((program.seeds, np.ones(len(program.seeds))))
        self.positions.add(np.concatenate([positions for positions, _ in runs]))
        self.constants: Floats = np.concatenate([numbers for _, numbers in runs])
        for positions in given:
            self.positions.add(positions)
        self._steps: list[Callable[[list[Any]], Sequence[Any]]] = []
        for stretch, call in zip_longest(program.stretches(), calls):
            for kernel in program.kernels[stretch]:
                if isinstance(kernel, Loop):
                    self._loop(kernel)
                else:
                    for each in unrolled(kernel):
                        self._kernel(each)
            if call is not None:
                self._call(call)

    def _call(self, called: Called) -> None:
        readers = [each if each.dtype == float else self.positions.reader(each) for each in called.operands]

        def step(arrays: list[Any]) -> list[Any]:
            pairs = zip(readers, called.operands, strict=True)
            given = [jnp.broadcast_to(r(arrays), each.shape) if callable(r) else r for r, each in pairs]
            return [found.ravel() for found in on_jax(called.function)(*given)]

        self._steps.append(step)
        for positions in called.results:
            self.positions.add(positions.ravel())

    def _kernel(self, kernel: Kernel) -> None:
        rows, columns = kernel.rows, kernel.columns

        def reader(access: Access, terms: int) -> Reader:
            return self.positions.reader(access.positions(rows, columns, terms))

        function = function_of(kernel, reader, self._functions)
        self._steps.append(lambda arrays: [function(arrays)])
        self.positions.add(kernel.target.positions(rows, columns, 1).ravel())

    def _loop(self, loop: Loop) -> None:
        scan = scan_of(loop, self.positions, self._functions)
        if scan is None:
            for kernel in loop.unrolled():
                self._kernel(kernel)
            return
        self._steps.append(lambda arrays: [made.ravel() for made in scan.function(arrays)])
        for target in scan.targets:
            self.positions.add(target.ravel())

    def function(self, positions: Integers) -> Callable[..., Any]:
        """A function of the constants and of the arrays that are given: the numbers of these positions."""
        read = self.positions.reader(positions)

        def compute(*given: Any) -> Any:
            arrays = [jnp.zeros(1), *given]
            for step in self._steps:
                arrays += step(arrays)
            return jnp.broadcast_to(read(arrays), positions.shape)

        return compute


class _Compiled:
    """A function of arrays, compiled by XLA for arrays of these shapes; the first argument is always the same."""

    def __init__(self, function: Callable[..., Any], constants: Floats, shape: tuple[int, ...], dtype: Any) -> None:
        self._caught = Caught()
        with self._caught, in_float64(dtype == np.float64), np.errstate(over="ignore"):
            self._constants = jnp.asarray(constants.astype(dtype))
            lowered = jax.jit(function).lower(self._constants, jax.ShapeDtypeStruct(shape, dtype))
            self._run = lowered.compile(compiler_options=compiler_options())

    def __call__(self, *given: Floats) -> Floats:
        """The results as a new array."""
        found = np.array(self._run(self._constants, *given))
        self._caught.check()
        return found


class JaxExecutable(Executable):
    """A program and its buffer, ready to run on what JAX finds.

    XLA compiles the program once for each way in which it is run: from inputs to outputs, and from buffer to buffer.
    """

    functions = FUNCTIONS
    check = staticmethod(check_jax)

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        self.check()
        super().__init__(program, buffer)
        self._from_inputs: _Compiled | None = None
        self._in_buffer: tuple[_Compiled, Integers] | None = None
        if buffer is None:  # with a buffer of others, it is run in that
            self._from_inputs = self._made()

    def _made(self) -> _Compiled:
        """The program from inputs to outputs and gradients."""
        lowered = Lowered(self.program, self.program.inputs, functions=PLAIN)
        return _Compiled(
            lowered.function(self.program.results), lowered.constants, self.program.inputs.shape, self.dtype
        )

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs; the buffer stays as it is."""
        self.check()
        if self._from_inputs is None:
            self._from_inputs = self._made()
        found = self._from_inputs(numbers)
        count = len(self.program.outputs)
        return found[:count], found[count:] + 0.0

    def _made_for_buffer(self) -> tuple[_Compiled, Integers]:
        """The program from buffer to buffer, and the positions that it writes."""
        if self._in_buffer is None:
            lowered = Lowered(self.program, np.arange(self.program.size), functions=PLAIN)
            written = np.flatnonzero(lowered.positions.array > 2)  # not the zero, a constant, or what was there
            compiled = _Compiled(lowered.function(written), lowered.constants, (self.program.size,), self.dtype)
            self._in_buffer = compiled, written
        return self._in_buffer

    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""
        self.check()
        compiled, written = self._made_for_buffer()
        self.buffer[written] = compiled(self.buffer[: self.program.size])

    def parts(self) -> list[Callable[[], object]]:
        """For each kernel and loop of the program a call that runs it alone, on what is in the buffer."""
        return self._stretches([slice(number, number + 1) for number in range(len(self.program.kernels))])

    def between_calls(self) -> list[Callable[[], object]]:
        """For each stretch of kernels between calls of functions outside of the program a call that runs it."""
        return self._stretches(self.program.stretches())

    def _stretches(self, stretches: Sequence[slice]) -> list[Callable[[], object]]:
        programs = [
            replace(self.program, kernels=self.program.kernels[stretch], constants=(), seeds=no_integers(), calls=())
            for stretch in stretches
        ]
        made = [type(self)(program, self.buffer) for program in programs]
        for each in made:
            each._made_for_buffer()
        return [each.run for each in made]


class _InFloat32(InFloat32, JaxExecutable):
    """A program on JAX in float32, whatever JAX is told of float64."""

    check = staticmethod(check_process)


def _part_of(program: Program) -> Part:
    """A program between decisions."""
    lowered = Lowered(program, program.inputs, program.seeds, functions=PLAIN)
    return Part(program, lowered.function(program.results))


def _compiled(function: Callable[..., Any], arrays: dict[int, Floats]) -> Callable[..., Any]:
    """A function of arrays, compiled by XLA for arrays of these shapes."""
    check_jax()
    caught = Caught()
    with caught:
        run = jax.jit(function).lower(arrays).compile(compiler_options=compiler_options())

    def checked(given: dict[int, Floats]) -> Any:
        check_jax()
        found = run(given)
        jax.block_until_ready(found)
        caught.check()
        return found

    return checked


BACKEND = Backend(
    *("jax", JaxExecutable, JAX),
    lower_in_float32=_InFloat32,
    arrays=ArraysOnJax,
    decide=partial(JaxRun, lower=_part_of, compiled=_compiled),
)
