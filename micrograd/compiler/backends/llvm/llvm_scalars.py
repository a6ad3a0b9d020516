"""Small kernels of a loop as one function, written out number by number.

A kernel of two or three numbers takes less time than its call. So neighbours among the small kernels of a loop's
iteration become one function with neither loops nor calls, whose positions are fixed in the code. Of

    s = w * h + x        h = tanh(s)

the function of one iteration reads w, h and x, and writes s and h; s is not read again, as it is known already. The
code fits no other program, and is worth that where it runs often.
"""

from __future__ import annotations

import hashlib
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import vector_of
from micrograd.compiler.backends.llvm.llvm_functions import forward, integer, larger, native_name, new_function
from micrograd.compiler.backends.llvm.llvm_kernels import kernel_of
from micrograd.compiler.ir.program import Reduction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.program import Access, Map, Segment

_SMALL = 32  # products and sums of a small kernel, at most
_LONGEST = 1024  # and of all that become one function
_Kernel: TypeAlias = "Reduction | Map"


def together(kernels: Sequence[_Kernel]) -> list[list[_Kernel]]:
    """The kernels in their order: each alone, or small neighbours together."""
    found: list[list[_Kernel]] = []
    for small, neighbours in groupby(kernels, is_written_out):
        size = _LONGEST
        for kernel in neighbours:
            size += _size(kernel)
            if not small or size > _LONGEST:
                found.append([])
                size = _size(kernel)
            found[-1].append(kernel)
    return found


def is_written_out(kernel: _Kernel) -> bool:
    """Whether it has few numbers, and no vectors of them."""
    is_native = isinstance(kernel, Reduction) or native_name(kernel.primitive) is not None
    return is_native and _size(kernel) <= _SMALL and not vector_of(kernel)[0]


def _size(kernel: _Kernel) -> int:
    return kernel.rows * kernel.columns * kernel.terms


def name_of(kernels: Sequence[_Kernel]) -> str:
    """A name for the function of kernels of one number, another one for other code."""
    described = repr([_described(kernel) for kernel in kernels])
    return f"micrograd_scalars_{hashlib.sha256(described.encode()).hexdigest()[:32]}"


def _described(kernel: _Kernel) -> tuple[Any, ...]:
    positions = [(access.base, access.iteration_step) for access in (kernel.target, *kernel.accesses)]
    if isinstance(kernel, Reduction):
        terms = [(part.coefficient, len(part.factors)) for part in kernel.segments]
        return kernel.largest, kernel.from_zero, terms, positions
    return native_name(kernel.primitive), positions


def module_of_scalars(kernels: Sequence[_Kernel], name: str, number: Any) -> ir.Module:
    """The module with the function of kernels of one number, on such numbers, under a name."""
    writer = _Writer(new_function(name, kernel_of(number)))
    writer.write(kernels)
    return writer.module


class _Writer:
    """Writes the function of some numbers."""

    def __init__(self, function: ir.Function) -> None:
        self.module, self.builder = function.module, ir.IRBuilder(function.append_basic_block())
        self.buffer, _, self.iteration = function.args
        self.number = self.buffer.type.pointee
        self.known: dict[
            tuple[int, int], Any
        ] = {}  # what was read or written: each position is written once in an iteration
        self.starts: dict[int, Any] = {0: self.buffer}

    def write(self, kernels: Sequence[_Kernel]) -> None:
        for kernel in kernels:
            if isinstance(kernel, Reduction):
                number = self._reduced(kernel)
            else:
                number = forward(kernel.primitive, self.builder, self.module, [*map(self._read, kernel.operands)])
            self.builder.store(number, self._pointer(kernel.target))
            self.known[kernel.target.base, kernel.target.iteration_step] = number
        self.builder.ret_void()

    def _pointer(self, access: Access) -> Any:
        iteration_step = access.iteration_step
        if iteration_step not in self.starts:
            offset = self.builder.mul(self.iteration, integer(iteration_step))
            self.starts[iteration_step] = self.builder.gep(self.buffer, [offset])
        return self.builder.gep(self.starts[iteration_step], [integer(access.base)])

    def _read(self, access: Access) -> Any:
        key = access.base, access.iteration_step
        if key not in self.known:
            self.known[key] = self.builder.load(self._pointer(access))
        return self.known[key]

    def _reduced(self, kernel: Reduction) -> Any:
        """The sum of the terms, in their order, or the largest."""
        total, *others = map(self._term, kernel.segments)
        if kernel.from_zero:
            total = self.builder.fadd(ir.Constant(self.number, 0.0), total)
        for term in others:
            total = larger(self.builder, total, term) if kernel.largest else self.builder.fadd(total, term)
        return total

    def _term(self, part: Segment) -> Any:
        number, *others = map(self._read, part.factors)
        for factor in others:
            number = self.builder.fmul(number, factor)
        if part.coefficient == -1.0:
            return self.builder.fneg(number)
        return (
            number if part.coefficient == 1.0 else self.builder.fmul(number, ir.Constant(self.number, part.coefficient))
        )
