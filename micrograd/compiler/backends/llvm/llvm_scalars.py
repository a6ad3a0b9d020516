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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import vector_of
from micrograd.compiler.backends.llvm.llvm_functions import forward, integer, larger, native_name, new_function
from micrograd.compiler.backends.llvm.llvm_kernels import kernel_of
from micrograd.compiler.ir.program import Reduction

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from micrograd.compiler.ir.program import Access, Map
    from micrograd.engine.primitive import Primitive

_SMALL = 32  # products and sums of a small kernel, at most
_LONGEST = 1024  # and of all that become one function
_Kernel: TypeAlias = "Reduction | Map"
# where a number is at the first iteration, and how far it moves at each iteration
Position: TypeAlias = "tuple[int, int]"


class Sum(NamedTuple):
    """A number that is the sum of products, in this order, or the largest of them."""

    target: Position
    largest: bool
    from_zero: bool
    terms: tuple[tuple[float, tuple[Position, ...]], ...]


class Application(NamedTuple):
    """A number that a primitive gives."""

    target: Position
    primitive: Primitive
    operands: tuple[Position, ...]


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


def scalars(kernels: Sequence[_Kernel]) -> list[Sum | Application]:
    """The numbers that small kernels compute, one by one."""
    return [scalar for kernel in kernels for scalar in _scalars(kernel)]


def _scalars(kernel: _Kernel) -> Iterator[Sum | Application]:
    targets = _positions(kernel.target, kernel, 1)
    if isinstance(kernel, Reduction):
        parts = [
            (part, [_positions(factor, kernel, part.terms) for factor in part.factors]) for part in kernel.segments
        ]
        for number, (target,) in enumerate(targets):
            terms = [
                (part.coefficient, tuple(positions[number][term] for positions in factors))
                for part, factors in parts
                for term in range(part.terms)
            ]
            yield Sum(target, kernel.largest, kernel.from_zero, tuple(terms))
    else:
        operands = [_positions(access, kernel, 1) for access in kernel.operands]
        for number, (target,) in enumerate(targets):
            yield Application(target, kernel.primitive, tuple(positions[number][0] for positions in operands))


def _positions(access: Access, kernel: _Kernel, terms: int) -> list[list[Position]]:
    """The positions of an operand: a list for each number of the kernel, with a position for each term."""
    positions = access.positions(kernel.rows, kernel.columns, terms).reshape(-1, terms)
    return [[(position, access.iteration_step) for position in row] for row in positions.tolist()]


def name_of(found: Sequence[Sum | Application]) -> str:
    """A name for their function, another one for other code."""
    described = [
        (scalar.target, native_name(scalar.primitive), scalar.operands) if isinstance(scalar, Application) else scalar
        for scalar in found
    ]
    return f"micrograd_scalars_{hashlib.sha256(repr(described).encode()).hexdigest()[:32]}"


def module_of_scalars(found: Sequence[Sum | Application], name: str, number: Any) -> ir.Module:
    """The module with their function on such numbers, under a name."""
    writer = _Writer(new_function(name, kernel_of(number)))
    writer.write(found)
    return writer.module


class _Writer:
    """Writes the function of some numbers."""

    def __init__(self, function: ir.Function) -> None:
        self.module, self.builder = function.module, ir.IRBuilder(function.append_basic_block())
        self.buffer, _, self.iteration = function.args
        self.number = self.buffer.type.pointee
        self.known: dict[Position, Any] = {}  # what was read or written: each position is written once in an iteration
        self.starts: dict[int, Any] = {0: self.buffer}

    def write(self, found: Sequence[Sum | Application]) -> None:
        """All numbers, one after the other."""
        for scalar in found:
            if isinstance(scalar, Sum):
                number = self._largest(scalar) if scalar.largest else self._sum(scalar)
            else:
                number = forward(scalar.primitive, self.builder, self.module, [*map(self._read, scalar.operands)])
            self.builder.store(number, self._pointer(scalar.target))
            self.known[scalar.target] = number
        self.builder.ret_void()

    def _pointer(self, position: Position) -> Any:
        base, iteration_step = position
        if iteration_step not in self.starts:
            offset = self.builder.mul(self.iteration, integer(iteration_step))
            self.starts[iteration_step] = self.builder.gep(self.buffer, [offset])
        return self.builder.gep(self.starts[iteration_step], [integer(base)])

    def _read(self, position: Position) -> Any:
        if position not in self.known:
            self.known[position] = self.builder.load(self._pointer(position))
        return self.known[position]

    def _sum(self, scalar: Sum) -> Any:
        first, *others = map(self._term, scalar.terms)
        total = self.builder.fadd(ir.Constant(self.number, 0.0), first) if scalar.from_zero else first
        for term in others:
            total = self.builder.fadd(total, term)
        return total

    def _largest(self, scalar: Sum) -> Any:
        first, *others = map(self._term, scalar.terms)
        for term in others:
            first = larger(self.builder, first, term)
        return first

    def _term(self, term: tuple[float, tuple[Position, ...]]) -> Any:
        coefficient, positions = term
        number, *others = map(self._read, positions)
        for factor in others:
            number = self.builder.fmul(number, factor)
        if coefficient == -1.0:
            return self.builder.fneg(number)
        return number if coefficient == 1.0 else self.builder.fmul(number, ir.Constant(self.number, coefficient))
