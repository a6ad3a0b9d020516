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

from micrograd.compiler.backends.llvm.llvm_codes import WIDE
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, constant, forward, integer, native_name
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_writer import Loops, loaded, stored, summed
from micrograd.compiler.ir.entries import LITERAL
from micrograd.compiler.tracing.trace import trace_of_update

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.primitive import Primitive

    _Computed: TypeAlias = dict[int, tuple[Primitive, tuple[int, ...]]]  # by its position: of what it is made, and how

_UPDATE = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int64)
_BYTES: Any = ctypes.c_char * 0
_VECTOR = ir.VectorType(DOUBLE, WIDE)


class NativeUpdate:
    """An update in native code.

    Args:
        update: of an optimiser; it may take arrays.
        shared: which numbers of the state are one for all parameters.
    """

    def __init__(self, update: Callable[..., Any], shared: Sequence[bool]) -> None:
        trace = trace_of_update(update, len(shared))
        operations, given = trace.operations, trace.inputs[0]
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
        self._given, self._results = given, trace.outputs
        new = [position for position in self._results if position in computed]
        self._arrays = [position for position in given if of_each[position]]
        self._made = [position for position in new if of_each[position]]
        self._shared = [position for position in given if not of_each[position]]
        self._shared_made = [position for position in new if not of_each[position]]
        self._constants = [*constants.values(), *[0.0] * len(self._shared_made)]
        positions = (*self._arrays, *self._made), (*self._shared, *constants, *self._shared_made)
        described = repr(
            [(native_name(primitive), operands) for primitive, operands in computed.values()] + [positions]
        )
        name = f"micrograd_update_{hashlib.sha256(described.encode()).hexdigest()[:32]}"
        module = partial(_module, name, computed, *positions)
        addresses, self._engines = machine().addresses({name: module})
        self._call = _UPDATE(addresses[name])

    def __call__(self, data: Any, grad: Any, state: tuple[Any, ...], rate: float) -> tuple[Any, tuple[Any, ...]] | None:
        """The next numbers and the next state, in new arrays; None where one of them is not finite."""
        found: dict[int, Any] = dict(zip(self._given, (data, grad, rate, *state), strict=True))
        floats = array("d", [*map(found.__getitem__, self._shared), *self._constants])
        arrays = [np.ascontiguousarray(found[position]) for position in self._arrays]
        for position in self._made:
            found[position] = made = np.empty(len(data))
            arrays.append(made)
        addresses = pack(f"{len(arrays)}q", *[ctypes.addressof(_BYTES.from_buffer(each)) for each in arrays])
        if self._call(addresses, floats.buffer_info()[0], len(data)) != 0.0:
            return None
        found.update(zip(reversed(self._shared_made), reversed(floats), strict=False))
        numbers, *states = [found[position] for position in self._results]
        return numbers, tuple(states)


def _module(name: str, computed: _Computed, arrays: Sequence[int], shared: Sequence[int]) -> ir.Module:
    """The module with the function of an update. It returns 0 if all numbers of arrays that it makes are finite.

    Args:
        name: of the function, which is given the addresses of arrays, where other numbers are, and how long arrays are.
        computed: what it computes, in order.
        arrays: which are arrays that it is given, and then those that it makes.
        shared: which are numbers that it is given, and then those that it makes.
    """
    module = ir.Module(name=name)
    kind = ir.FunctionType(DOUBLE, [INTEGER.as_pointer(), DOUBLE.as_pointer(), INTEGER])
    code = Loops(ir.Function(module, kind, name))
    builder, (addresses, numbers, length) = code.builder, code.function.args

    def made(position: int, numbers: dict[int, Any]) -> Any:
        primitive, operands = computed[position]
        return forward(primitive, builder, module, [numbers[operand] for operand in operands])

    positions = [(position, builder.gep(numbers, [integer(number)])) for number, position in enumerate(shared)]
    ones = {position: builder.load(pointer) for position, pointer in positions if position not in computed}
    for position, (_, operands) in computed.items():
        if ones.keys() >= set(operands):
            ones[position] = made(position, ones)
    for position, pointer in positions:
        builder.store(ones[position], pointer)
    pointers = {
        position: builder.inttoptr(builder.load(builder.gep(addresses, [integer(number)])), DOUBLE.as_pointer())
        for number, position in enumerate(arrays)
    }
    everywhere = {position: code.splat(number, WIDE) for position, number in ones.items()}
    last = builder.sub(length, integer(WIDE))
    with code.loop(integer(0), length, WIDE, [constant(_VECTOR, 0.0)]) as (start, (check,)):
        # The last vector ends with the last number: some are computed twice, to the same end.
        index = builder.select(builder.icmp_signed("<", start, last), start, last)
        here = {position: builder.gep(pointer, [index]) for position, pointer in pointers.items()}
        vectors = everywhere | {
            position: loaded(builder, here[position], WIDE) for position in here if position not in computed
        }
        for position in computed:
            if position not in ones:
                vectors[position] = made(position, vectors)
        for position in filter(here.__contains__, computed):
            stored(builder, vectors[position], here[position])
            check = builder.fadd(check, builder.fsub(vectors[position], vectors[position]))
        code.carry([check])
    builder.ret(summed(builder, code.carried[0]))
    return module
