"""The LLVM backend: native kernels, called one after the other by a loop that is native as well.

A program is a table: for each kernel the address of its function and the address of its arguments.

    for step in table: step.function(buffer, step.arguments, 0)

A loop in the program is a step, whose arguments say how many turns it has and where the table of its kernels is:

    for iteration in range(iterations): for step in table: step.function(buffer, step.arguments, iteration)

Neighbours among the small kernels are one step together, whose arguments are words; see llvm_interpreter.py.

So only the functions that are new have to be compiled for a new program. They are looked up on disk first, and those
that are not there are compiled together, as one object.
"""

from __future__ import annotations

import ctypes
from functools import partial
from itertools import chain, groupby, pairwise
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from micrograd._support.locks import has_gil
from micrograd.compiler.backends.llvm.llvm_batches import NativeBatches
from micrograd.compiler.backends.llvm.llvm_calls import MODULES, adding, direct_call
from micrograd.compiler.backends.llvm.llvm_codes import (
    FOURS,
    SAME,
    code_of,
    has_many_segments,
    is_long,
    sorted_segments,
    vector_of,
)
from micrograd.compiler.backends.llvm.llvm_deciding import NativeRun
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, FLOAT, native_name
from micrograd.compiler.backends.llvm.llvm_interpreter import (
    Words,
    is_small,
    module_of_interpreter,
    module_of_primitive,
)
from micrograd.compiler.backends.llvm.llvm_kernels import module_of
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_runners import RUN, runner, turner
from micrograd.compiler.backends.llvm.llvm_scalars import is_written_out, module_of_scalars, name_of, together
from micrograd.compiler.backends.llvm.llvm_update import NativeUpdate
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.backends.shared.executable import Executable, InFloat32, Pace, Ports, new_buffer
from micrograd.compiler.backends.shared.python_calls import Raised, in_python
from micrograd.compiler.ir.program import Loop, Map, Reduction, Singles, Take, unrolled, written_out
from micrograd.compiler.passes.lists import NATIVE
from micrograd.optim import native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llvmlite import ir

    from micrograd.compiler.backends.llvm.llvm_codes import Code, Shape
    from micrograd.compiler.ir.program import Access, Kernel, Program, Segment
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive

_SHORT = 10_000  # flops: they take some microseconds

_Function: TypeAlias = "tuple[str, Callable[[], ir.Module]]"  # its name, and what makes a module with it


class NativeExecutable(Executable):
    """A program and its buffer, ready to run in native code."""

    batches = NativeBatches
    number = DOUBLE

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        super().__init__(program, buffer)
        self.raised = Raised()
        self.calls_python = False
        self._kept: list[Any] = []  # what the table has addresses of must stay in memory
        self._engines: list[Any] = []  # and so must its functions
        self._unlinked: list[tuple[Integers, list[_Function]]] = []  # functions, and where their addresses go
        stretches = [self._of_neighbours(program.kernels[stretch]) for stretch in program.stretches()]
        self.table = self._table([*chain.from_iterable(stretches)])
        self._ends = np.cumsum([*map(len, stretches)]).tolist()
        self._run = RUN(self._link())
        self._call = self._call_of(self.table)

    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""
        self._run(*self._call)
        if self.raised:
            self.raised.check()

    def ports(self) -> Ports:
        """Where the numbers are, and how a program that takes no longer than a call of Python is called."""
        return super().ports()._replace(direct=self._direct(), add=adding() if self._gradients else None)

    def _direct(self) -> tuple[Callable[..., Any], Floats] | None:
        """A call that runs a short program in a buffer of its own, as it does not wait for the other calls."""
        program, inputs = self.program, super().ports().inputs[1]
        is_short = program.flops < _SHORT and isinstance(inputs, slice) and len(program.outputs)
        if not is_short or self.calls_python or self.number is not DOUBLE or not has_gil():
            return None
        buffer = program.fill(new_buffer(program.size))
        self._kept.append(buffer)
        return direct_call(buffer, self.table, inputs, int(program.outputs[0]), program.gradients), buffer

    def between_calls(self) -> list[Callable[[], object]]:
        """For each stretch of kernels between calls of functions outside of the program a call that runs it."""
        stretches = [self.table[begin:end] for begin, end in pairwise([0, *self._ends])]
        return [partial(self._run_rows, *self._call_of(rows)) for rows in stretches]

    def parts(self) -> list[Callable[[], object]]:
        """For each kernel and loop of the program a call that runs it alone, where none share positions."""
        table = self._table([step for one in self.program.kernels for step in self._steps([one], self._is_small(one))])
        self._link()
        self._run(self.buffer.ctypes.data, table.ctypes.data, len(table))  # each on its numbers
        return [partial(self._run, self.buffer.ctypes.data, row.ctypes.data, 1) for row in table]

    def pace(self, kernel: Kernel | Singles) -> Pace:
        """How a kernel's numbers are computed."""
        if isinstance(kernel, Map) and not native_name(kernel.primitive):
            return Pace.IN_PYTHON
        if isinstance(kernel, Singles):
            return Pace.ONE_BY_ONE
        return Pace.IN_VECTORS if vector_of(kernel)[0] else Pace.ONE_BY_ONE

    def _call_of(self, rows: Integers) -> tuple[Any, ...]:
        """What the runner of some rows of the table is called with."""
        addresses = map(ctypes.c_void_p, (self.buffer.ctypes.data, rows.ctypes.data))
        return *addresses, ctypes.c_int64(len(rows))  # they are made once

    def _run_rows(self, *call: Any) -> None:
        self._run(*call)
        self.raised.check()

    def _of_neighbours(self, kernels: Sequence[Kernel | Loop | Singles]) -> list[tuple[_Function, int]]:
        """The steps of some kernels: one of small neighbours."""
        neighbours = [(small, [*some]) for small, some in groupby(kernels, self._is_small)]
        return [step for small, some in neighbours for step in self._steps(some, small)]

    def _is_small(self, kernel: Kernel | Loop | Singles) -> bool:
        return isinstance(kernel, Singles) or is_small(kernel)

    def _table(self, steps: Sequence[tuple[_Function, int]]) -> Integers:
        """The table of some steps. The addresses of their functions are in it when these are linked."""
        table = np.array([(0, arguments) for _, arguments in steps], dtype=np.int64).reshape(-1, 2)
        self._kept.append(table)
        self._unlinked.append((table[:, 0], [function for function, _ in steps]))
        return table

    def _link(self) -> int:
        """Put the addresses of functions where they belong, and give the runner's. New ones are compiled together."""
        functions: dict[str, Callable[[], ir.Module]] = {"micrograd_run": runner, **MODULES}
        for _, named in self._unlinked:
            functions.update(named)
        addresses, engines = machine().addresses(functions)
        self._engines += engines
        for positions, named in self._unlinked:
            positions[:] = [addresses[name] for name, _ in named]
        self._unlinked.clear()
        return addresses["micrograd_run"]

    def _steps(self, kernels: Sequence[Any], small: bool) -> list[tuple[_Function, int]]:
        """The steps of neighbours: one of all that are small, of others one of each."""
        if not small:
            return [self._step(kernel) for kernel in kernels]
        self._kept.append(words := Words(kernels, self.dtype))
        functions = [
            self._function(f"micrograd_primitive_{native_name(each)}", partial(module_of_primitive, each))
            for each in words.primitives
        ]
        self._unlinked.append((words.functions, functions))
        return [(self._function("micrograd_words", module_of_interpreter), words.arguments.ctypes.data)]

    def _function(self, name: str, module_of_name: Callable[[str, Any], ir.Module]) -> _Function:
        """A function on the numbers of this executable; one on float32 has a name that says so."""
        name = name if self.number is DOUBLE else f"{name}_in_float32"
        return name, partial(module_of_name, name, self.number)

    def _step(self, kernel: Kernel | Loop) -> tuple[_Function, int]:
        if isinstance(kernel, Loop):
            return self._loop(kernel)
        code = code_of(kernel, machine().block)
        arguments = self._arguments(kernel, code)
        self._kept.append(arguments)
        return self._function(f"micrograd_{code.name}", partial(module_of, code)), arguments.ctypes.data

    def _loop(self, loop: Loop) -> tuple[_Function, int]:
        parts = together(loop.kernels)
        table = self._table([self._step(*part) if len(part) == 1 else self._written_out(part) for part in parts])
        arguments = np.array([loop.iterations, table.ctypes.data, len(table)], dtype=np.int64)
        self._kept.append(arguments)
        return ("micrograd_loop", turner), arguments.ctypes.data

    def _written_out(self, kernels: Sequence[Reduction | Map]) -> tuple[_Function, int]:
        """The step of small neighbours in a loop, whose function needs no arguments."""
        found = [one for kernel in kernels for one in written_out(kernel)]
        return self._function(name_of(found), partial(module_of_scalars, found)), 0

    def _arguments(self, kernel: Kernel, code: Code) -> Integers:
        target, *shapes = code.shapes
        numbers: list[Any] = [kernel.rows, kernel.columns, *self._positions(kernel.rows, kernel.target, target, code)]
        if has_many_segments(kernel):
            for factors, parts in sorted_segments(kernel).items():
                table = np.array([self._segment(kernel.rows, part, factors, code) for part in parts], dtype=np.int64)
                self._kept.append(table)
                numbers += [len(parts), table.ctypes.data]
            return np.array([*numbers, is_long(kernel)], dtype=np.int64)
        for access, shape in zip(kernel.accesses, shapes, strict=True):
            numbers += self._positions(kernel.rows, access, shape, code)
        if isinstance(kernel, Reduction):
            numbers += [*(part.terms for part in kernel.segments), is_long(kernel)]
        elif isinstance(kernel, Take):
            numbers.append(kernel.terms)
        elif not native_name(kernel.primitive):
            self.calls_python = True
            function = _callback(kernel.primitive, len(kernel.operands), self.raised)
            self._kept.append(function)
            numbers.append(ctypes.cast(function, ctypes.c_void_p).value)
        return np.array(numbers, dtype=np.int64)

    def _segment(self, rows: int, part: Segment, shapes: Sequence[Shape], code: Code) -> list[int]:
        """A segment in a table: the bits of its coefficient, how many terms it has, and where its factors are."""
        (bits,) = unpack("q", pack("d", part.coefficient))
        factors = zip(part.factors, shapes, strict=True)
        positions = (self._positions(rows, factor, shape, code) for factor, shape in factors)
        return [bits, part.terms, *chain.from_iterable(positions)]

    def _positions(self, rows: int, access: Access, shape: Shape, code: Code) -> list[int]:
        """The address of an operand's table, and its steps along columns, terms and, in a loop, iterations."""
        if (table := access.table) is None:
            table = access.base + access.row_step * np.arange(rows)
        if shape.table == FOURS:
            table = table[:, ::SAME]
        self._kept.append(table := np.ascontiguousarray(table, dtype=np.int32))
        return [
            table.ctypes.data,
            access.column_step,
            access.term_step,
            *([access.iteration_step] if code.turning else []),
        ]


class PartExecutable(NativeExecutable):
    """A program between decisions, whose small kernels are written out: it runs many times."""

    def _steps(self, kernels: Sequence[Any], small: bool) -> list[Any]:
        if not small:
            return super()._steps(kernels, small)
        steps, by_themselves = [], chain.from_iterable(map(unrolled, kernels))
        for part in together(cast("list[Reduction | Map]", [*by_themselves])):
            if all(map(is_written_out, part)):
                steps.append(self._written_out(part))
            else:
                steps += super()._steps(part, small)
        return steps


def _callback(primitive: Primitive, operands: int, raised: Raised) -> Any:
    """A primitive's forward function in Python, to be called from native code."""
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * operands)(in_python(primitive, raised))


class _InFloat32(InFloat32, NativeExecutable):
    """A program in native code on numbers in float32; primitives are computed in float64, and rounded."""

    number = FLOAT


native.update = NativeUpdate
BACKEND = Backend("llvm", NativeExecutable, NATIVE, native_name, _InFloat32, partial(NativeRun, lower=PartExecutable))
