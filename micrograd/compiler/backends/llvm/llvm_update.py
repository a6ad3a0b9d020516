"""An optimiser's update of arrays in native code: one pass over memory, to the same bits as NumPy's.

The update is traced once, for one parameter. What only depends on numbers that all parameters share, such as the
learning rate, is computed before the loop over the parameters:

    1 - 0.9**count            before the loop
    mean / that               in the loop
"""

from __future__ import annotations

import ctypes
import hashlib
from array import array
from functools import partial
from struct import pack
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_batch_runner import in_vectors
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, constant, forward, integer, native_name
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_writer import Loops, loaded, stored, summed
from micrograd.compiler.ir.entries import LITERAL
from micrograd.compiler.tracing.trace import trace_of_update

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.primitive import Primitive

    _Computed: TypeAlias = dict[int, tuple[Primitive, tuple[int, ...]]]  # by its position: of what it is made, and how

_UPDATE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_char_p, ctypes.c_int64)
UPDATE = ir.FunctionType(DOUBLE, [INTEGER.as_pointer(), INTEGER])
_BYTES: Any = ctypes.c_char * 0
_STATE = 3  # where the state begins, behind the parameter, the gradient and the rate


class NativeUpdate:
    """An update in native code.

    Args:
        update: of an optimiser; it may take arrays.
        shared: which numbers of the state are one for all parameters.

    Attributes:
        is_native: whether there is native code for all that it does.
        address: of the function; see _module.
    """

    def __init__(self, update: Callable[..., Any], shared: Sequence[bool]) -> None:
        trace = trace_of_update(update, len(shared))
        operations, given = trace.operations, list(trace.inputs[0])
        constants = {
            position: operations.numbers[operations.first[position]]
            for position, primitive in enumerate(operations.primitives)
            if primitive is LITERAL
        }
        of_each = dict(zip(given, (True, True, False, *(not one for one in shared)), strict=True))  # not one for all
        computed: _Computed = {}
        for position, primitive in enumerate(operations.primitives):
            if position not in constants and position not in of_each:
                operands = operations.operands(position)
                computed[position] = primitive, operands
                of_each[position] = any(map(of_each.get, operands))
        self.is_native = all(native_name(primitive) for primitive, _ in computed.values())
        if not self.is_native:
            return
        before = [given[0], *given[_STATE:]]
        changed = [number for number, result in enumerate(trace.outputs) if result != before[number]]
        self._made = [number for number in changed if of_each[before[number]]]
        self._made_once = [number for number in changed if not of_each[before[number]]]
        self._arrays = [number for number, position in enumerate(given) if of_each[position]]
        self._shared = [number for number, position in enumerate(given) if not of_each[position]]
        self._constants = array("d", constants.values())
        reads = [given[number] for number in (*self._arrays, *self._shared)] + [*constants]
        writes = [(trace.outputs[number], of_each[before[number]]) for number in (*self._made, *self._made_once)]
        described = repr(
            [(native_name(primitive), operands) for primitive, operands in computed.values()]
            + [reads, len(self._arrays), writes, given[1]]
        )
        name = f"micrograd_update_{hashlib.sha256(described.encode()).hexdigest()[:32]}"
        module = partial(_module, name, computed, reads, len(self._arrays), writes, given[1])
        addresses, engines = machine().addresses({name: module})
        self.address, self._engines = addresses[name], engines
        self._call = _UPDATE(self.address)

    def addresses(self, given: Sequence[int], results: Sequence[int]) -> bytes:
        """What the function is given.

        Args:
            given: the addresses of the parameters, the gradients, the rate, and each number of the state.
            results: the addresses of the next parameters and the next state. What stays as it is is not written.
        """
        start, count = self._constants.buffer_info()
        words = [given[number] for number in self._arrays + self._shared]
        words += range(start, start + 8 * count, 8)
        words += [results[number] for number in self._made + self._made_once]
        return pack(f"{len(words)}q", *words)

    def __call__(self, data: Any, grad: Any, state: tuple[Any, ...], rate: float) -> tuple[Any, tuple[Any, ...]] | None:
        """The next numbers and the next state, in new arrays; None where something is not finite."""
        given = [data, grad, rate, *state]
        floats = array("d", [*map(given.__getitem__, self._shared), *[0.0] * len(self._made_once)])
        start = floats.buffer_info()[0]
        where, results = [0] * len(given), [0] * (len(given) - 2)
        for number in self._arrays:
            given[number] = np.ascontiguousarray(given[number])
            where[number] = ctypes.addressof(_BYTES.from_buffer(given[number]))
        for index, number in enumerate(self._shared):
            where[number] = start + 8 * index
        following = [data, *state]
        for number in self._made:
            following[number] = made = np.empty(len(data))
            results[number] = ctypes.addressof(_BYTES.from_buffer(made))
        for index, number in enumerate(self._made_once, len(self._shared)):
            results[number] = start + 8 * index
        if self._call(self.addresses(where, results), len(data)) != 0.0:
            return None
        for index, number in enumerate(self._made_once, len(self._shared)):
            following[number] = floats[index]
        numbers, *states = following
        return numbers, tuple(states)


def _module(
    name: str,
    computed: _Computed,
    reads: Sequence[int],
    arrays: int,
    writes: Sequence[tuple[int, bool]],
    gradient: int,
) -> ir.Module:
    """The module with the function of an update. It returns 0 if the gradient and all that it writes are finite.

    Args:
        name: of the function, which is given the addresses of what it reads and writes, and how long arrays are.
        computed: what it computes, in order.
        reads: arrays, and then numbers.
        arrays: how many of these are arrays.
        writes: the same: arrays, and then numbers; and which are arrays.
        gradient: which array has the gradients.
    """
    module = ir.Module(name=name)
    code = Loops(ir.Function(module, UPDATE, name))
    builder, (addresses, length) = code.builder, code.function.args

    def made(position: int, numbers: dict[int, Any]) -> Any:
        primitive, operands = computed[position]
        return forward(primitive, builder, module, [numbers[operand] for operand in operands])

    pointers = [
        builder.inttoptr(builder.load(builder.gep(addresses, [integer(number)])), DOUBLE.as_pointer())
        for number in range(len(reads) + len(writes))
    ]
    sources, targets = pointers[: len(reads)], pointers[len(reads) :]
    ones = {position: builder.load(pointer) for position, pointer in zip(reads[arrays:], sources[arrays:], strict=True)}
    for position, (_, operands) in computed.items():
        if ones.keys() >= set(operands):
            ones[position] = made(position, ones)
    for (position, is_array), pointer in zip(writes, targets, strict=True):
        if not is_array:
            builder.store(ones[position], pointer)
    total: Any = ir.Constant(DOUBLE, 0.0)
    for width, low, high in in_vectors(builder, length):
        kind = ir.VectorType(DOUBLE, width) if width > 1 else DOUBLE
        everywhere = {position: code.splat(number, width) for position, number in ones.items()}
        with code.loop(low, high, width, [constant(kind, 0.0)]) as (index, (check,)):
            vectors = everywhere | {
                position: loaded(builder, builder.gep(pointer, [index]), width)
                for position, pointer in zip(reads[:arrays], sources[:arrays], strict=True)
            }
            for position in computed:
                if position not in ones:
                    vectors[position] = made(position, vectors)
            for (position, is_array), pointer in zip(writes, targets, strict=True):
                if is_array:
                    stored(builder, vectors[position], builder.gep(pointer, [index]))
            for position in {gradient, *(position for position, is_array in writes if is_array)}:
                check = builder.fadd(check, builder.fsub(vectors[position], vectors[position]))
            code.carry([check])
        total = builder.fadd(total, summed(builder, code.carried[0]))
    builder.ret(total)
    return module
