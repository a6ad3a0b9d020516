"""Small kernels as words, which one function reads: what has few numbers needs no code of its own.

Irregular programs have thousands of kernels of a number or two, most of them with a pattern of their own. Each pattern
would be a function to compile, which takes milliseconds, and each kernel a call. So neighbours among the small kernels
become words of one table instead. Of

    s = w * h - x        t = tanh(s)

the words are, where the constants are 1, -1 and 1, and the only function is that of tanh,

    2  s  w h 0  x -1 1     two terms: where their sum goes, and of each two factors and the number of its coefficient
    0  t  0  s s s          a call: where its result goes, the number of the function, and the operands it may have

So each term is a product of three, and no code depends on what it looks like: x is x * 1 * -1, to the last bit. A
position below 0 is that of a constant, counted from their end, where there is a 1. Sums of up to four terms are written
out in the code; of longer ones, the number of terms is a word. All are added in their order, each rounded.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import vector_of
from micrograd.compiler.backends.llvm.llvm_functions import INTEGER, forward, integer, larger, native_name, new_function
from micrograd.compiler.backends.llvm.llvm_kernels import kernel_of
from micrograd.compiler.backends.llvm.llvm_writer import Loops
from micrograd.compiler.ir.program import FROM_ZERO, LARGEST, SUM, Map, Reduction, Singles

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.program import Access, Kernel, Loop
    from micrograd.compiler.numbers import Integers
    from micrograd.engine.primitive import Primitive

_WORD = ir.IntType(32)
_CALL, _WRITTEN_OUT, _CHAIN, _FROM_ZERO, _LARGEST = 0, 4, 5, 6, 7  # first words; up to four, it counts terms
_TERM = 3  # words of a term
_OPERANDS = 3  # of a function
_ONE = -1  # the position of a 1
_SMALL, _SMALL_IN_VECTORS = 64, 16  # products and sums of a small kernel, at most
_STARTS = {_CHAIN: -0.0, _FROM_ZERO: 0.0}  # 0 + -0 would be 0


def is_small(kernel: Kernel | Loop) -> bool:
    """Whether a kernel takes hardly longer as words than it would as code of its own."""
    if isinstance(kernel, Reduction):
        size = kernel.rows * kernel.columns * kernel.terms
    elif isinstance(kernel, Map) and len(kernel.operands) <= _OPERANDS and native_name(kernel.primitive):
        size = kernel.rows * kernel.columns
    else:
        return False
    return size <= _SMALL_IN_VECTORS or (size <= _SMALL and not vector_of(kernel)[0])


class Words:
    """The words of some small kernels.

    Args:
        kernels: in the order in which they run.
        dtype: of the numbers that they compute.

    Attributes:
        arguments: of the function that reads them.
        primitives: those that are called.
        functions: the addresses of their functions, to be filled in.
    """

    def __init__(self, kernels: Sequence[Reduction | Map | Singles], dtype: Any) -> None:
        constants: dict[float | str, int] = {}
        primitives: dict[Primitive, int] = {}
        words: list[Any] = []
        for kernel in kernels:
            if isinstance(kernel, Singles):
                words.append(_of_singles(kernel, constants, primitives))
            else:
                words.append(_sums(kernel, constants) if isinstance(kernel, Reduction) else _calls(kernel, primitives))
        self._words = np.concatenate([np.array(part, dtype=np.int32) for part in words])
        with np.errstate(over="ignore"):  # what is too large for float32 is infinite there
            self._constants = np.array([*map(float, constants), 1.0]).astype(dtype)
        self.primitives, self.functions = [*primitives], np.zeros(len(primitives), dtype=np.int64)
        stretches = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in (self._words, self._constants)]
        self.arguments: Integers = np.array([*stretches[0], *stretches[1], self.functions.ctypes.data], dtype=np.int64)


def _sums(kernel: Reduction, constants: dict[float | str, int]) -> list[int]:
    """The words of sums, or of the largest of some terms."""
    rows, columns, terms = kernel.rows, kernel.columns, kernel.terms
    parts = []
    for part in kernel.segments:
        first = _positions(part.first, rows, columns, part.terms)
        second = [_ONE] * len(first) if part.second is None else _positions(part.second, rows, columns, part.terms)
        parts.append((part.terms, first, second, _number_of(part.coefficient, constants)))
    kind = _LARGEST if kernel.largest else _FROM_ZERO if kernel.from_zero else _CHAIN
    is_written_out = kind == _CHAIN and 0 < terms <= _WRITTEN_OUT
    words: list[int] = []
    for number, target in enumerate(_positions(kernel.target, rows, columns, 1)):
        words += (terms, target) if is_written_out else (kind, target, terms)
        for count, first, second, constant in parts:
            for position in range(number * count, (number + 1) * count):
                words += first[position], second[position], constant
    return words


def _number_of(coefficient: float, constants: dict[float | str, int]) -> int:
    """The number of a coefficient among the constants."""
    key = coefficient or str(coefficient)  # 0 and -0 are equal, but two constants
    return constants.setdefault(key, len(constants))


def _of_singles(singles: Singles, constants: dict[float | str, int], primitives: dict[Primitive, int]) -> Integers:
    functions, counts, starts = singles.functions, singles.counts, singles.starts
    is_call = functions >= 0
    is_written_out = (functions == SUM) & (counts <= _WRITTEN_OUT)
    heads = np.where(is_written_out, 2, 3)
    lengths = heads + np.where(is_call, _OPERANDS, _TERM * counts)
    begins = np.cumsum(lengths) - lengths
    words = np.empty(int(lengths.sum()), dtype=np.int64)
    kinds = [is_call, is_written_out, functions == LARGEST, functions == FROM_ZERO]
    words[begins] = np.select(kinds, [_CALL, counts, _LARGEST, _FROM_ZERO], _CHAIN)
    words[begins + 1] = singles.targets
    words[begins[~is_written_out] + 2] = counts[~is_written_out]
    if is_call.any():
        numbers = np.array([primitives.setdefault(each, len(primitives)) for each in singles.primitives])
        calls = begins[is_call]
        words[calls + 2] = numbers[functions[is_call]]
        words[calls[:, None] + 3 + np.arange(_OPERANDS)] = singles.first[starts[is_call], None]
    positions = np.repeat(begins + heads, counts)
    positions += np.repeat(np.where(is_call, 1, _TERM), counts) * (
        np.arange(len(positions)) - np.repeat(starts, counts)
    )
    words[positions] = singles.first
    of_sums = np.repeat(~is_call, counts)
    positions = positions[of_sums]
    words[positions + 1] = singles.second[of_sums]
    constant = np.array([_number_of(number, constants) for number in singles.numbers.tolist()])
    words[positions + 2] = constant[singles.coefficients[of_sums]]
    return words


def _calls(kernel: Map, primitives: dict[Primitive, int]) -> list[int]:
    function = primitives.setdefault(kernel.primitive, len(primitives))
    accesses = kernel.target, *kernel.operands, *kernel.operands[:1] * (_OPERANDS - len(kernel.operands))
    positions = (_positions(access, kernel.rows, kernel.columns, 1) for access in accesses)
    return [word for target, *operands in zip(*positions, strict=True) for word in (_CALL, target, function, *operands)]


def _positions(access: Access, rows: int, columns: int, terms: int) -> list[int]:
    """The positions of all elements of an operand, those of a result side by side."""
    if rows * columns * terms == 1 and access.table is None:
        return [access.base]
    return access.positions(rows, columns, terms).ravel().tolist()


def module_of_interpreter(name: str, number: Any) -> ir.Module:
    """The module with the function that reads words and computes with such numbers, under a name."""
    function = new_function(name, kernel_of(number))
    _Writer(function).write()
    return function.module


def _function_of(number: Any) -> ir.FunctionType:
    return ir.FunctionType(number, [number] * _OPERANDS)


def module_of_primitive(primitive: Primitive, name: str, number: Any) -> ir.Module:
    """The module with the function of a primitive, under a name; those of fewer operands take no notice of the last."""
    function = new_function(name, _function_of(number))
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(forward(primitive, builder, function.module, function.args[: len(primitive.derivatives)]))
    return function.module


class _Writer(Loops):
    """Writes the function that reads words."""

    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self.buffer, arguments, _ = function.args
        self.number = number = self.buffer.type.pointee
        addresses = [self.builder.load(self.builder.gep(arguments, [integer(position)])) for position in range(5)]
        kinds = _WORD, _WORD, number, number, _function_of(number).as_pointer()
        self.first, self.end, self.constants, self.end_of_constants, self.functions = (
            self.builder.inttoptr(address, kind.as_pointer()) for address, kind in zip(addresses, kinds, strict=True)
        )

    def write(self) -> None:
        """The loop over all results. Each case computes one, and says where the next one's words are."""
        builder, function = self.builder, self.function
        head, body, store, end = (function.append_basic_block(name) for name in ("head", "body", "store", "end"))
        builder.branch(head)
        builder.position_at_end(head)
        words = builder.phi(_WORD.as_pointer())
        words.add_incoming(self.first, self.entry)
        builder.cbranch(builder.icmp_unsigned("<", words, self.end), body, end)
        builder.position_at_end(store)
        result, following = builder.phi(self.number), builder.phi(words.type)
        builder.store(result, builder.gep(self.buffer, [self._word(words, 1)]))
        words.add_incoming(following, store)
        builder.branch(head)
        builder.position_at_end(body)
        first = self._after(words, 2)
        cases = {count: partial(self._written_out, first, count) for count in range(1, _WRITTEN_OUT + 1)}
        cases |= {_CALL: partial(self._call, first), _LARGEST: partial(self._loop, first, -math.inf, larger)}
        cases |= {kind: partial(self._loop, first, start, ir.IRBuilder.fadd) for kind, start in _STARTS.items()}
        kind = builder.switch(builder.load(words), end)
        for number, case in cases.items():
            builder.position_at_end(block := function.append_basic_block("case"))
            kind.add_case(_WORD(number), block)
            for phi, value in zip((result, following), case(), strict=True):
                phi.add_incoming(value, builder.block)
            builder.branch(store)
        builder.position_at_end(end)
        builder.ret_void()

    def _written_out(self, words: Any, count: int) -> tuple[Any, Any]:
        """A sum of so many terms."""
        total, *others = (self._term(self._after(words, _TERM * number)) for number in range(count))
        for term in others:
            total = self.builder.fadd(total, term)
        return total, self._after(words, _TERM * count)

    def _loop(self, words: Any, start: float, both: Callable[[Any, Any, Any], Any]) -> tuple[Any, Any]:
        """A sum, or the largest, of terms that are counted by the first word."""
        first = [self.number(start), self._after(words, 1)]
        with self.loop(integer(0), self._word(words, 0), 1, first) as (_, (total, term)):
            self.carry([both(self.builder, total, self._term(term)), self._after(term, _TERM)])
        total, following = self.carried
        return total, following

    def _call(self, words: Any) -> tuple[Any, Any]:
        function = self.builder.load(self.builder.gep(self.functions, [self._word(words, 0)]))
        operands = [self._number(self.buffer, self._word(words, 1 + number)) for number in range(_OPERANDS)]
        return self.builder.call(function, operands), self._after(words, 1 + _OPERANDS)

    def _term(self, words: Any) -> Any:
        """The product of three factors."""
        builder = self.builder
        first, second, coefficient = (self._word(words, number) for number in range(_TERM))
        is_constant = builder.icmp_signed("<", second, integer(0))
        start = builder.select(is_constant, self.end_of_constants, self.buffer)
        product = builder.fmul(self._number(self.buffer, first), self._number(start, second))
        return builder.fmul(product, self._number(self.constants, coefficient))

    def _number(self, start: Any, position: Any) -> Any:
        return self.builder.load(self.builder.gep(start, [position]))

    def _after(self, words: Any, count: int) -> Any:
        return self.builder.gep(words, [integer(count)])

    def _word(self, words: Any, number: int) -> Any:
        return self.builder.sext(self.builder.load(self._after(words, number)), INTEGER)
