"""Entries: native functions with the signature that a caller in C expects, each of one program.

    double f(double x):    a copy of the buffer, x in its place, run the program, the output

The copy is on the stack, or allocated and freed where it is large. So threads may call at the same time. The addresses
of the table of the program and of its numbers are in the code, which therefore is not kept on disk.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_runners import runner
from micrograd.compiler.backends.llvm.llvm_writer import Loops

if TYPE_CHECKING:
    from micrograd.compiler.backends.llvm.llvm_backend import NativeExecutable
    from micrograd.compiler.numbers import Integers

_POINTER, _VOID, _INT, _BYTES = DOUBLE.as_pointer(), ir.VoidType(), ir.IntType(32), ir.IntType(8).as_pointer()
_STACK = 2048  # numbers of a buffer that is on the stack
_LINE = 64  # bytes in a cache line
_D, _P = ctypes.c_double, ctypes.POINTER(ctypes.c_double)


class Signature(NamedTuple):
    """How a native function is called.

    Attributes:
        result: the type of what it returns.
        arguments: the types of what it takes.
        prototype: the same for ctypes.
    """

    result: Any
    arguments: list[Any]
    prototype: Any


SIGNATURES = {
    "double (double)": Signature(DOUBLE, [DOUBLE], ctypes.CFUNCTYPE(_D, _D)),
    "double (int, double *)": Signature(DOUBLE, [_INT, _POINTER], ctypes.CFUNCTYPE(_D, ctypes.c_int, _P)),
    "void (double *, double *, double *)": Signature(_VOID, [_POINTER] * 3, ctypes.CFUNCTYPE(None, _P, _P, _P)),
    "int (double *, intptr_t, double *, void *)": Signature(
        _INT,
        [_POINTER, INTEGER, _POINTER, _BYTES],
        ctypes.CFUNCTYPE(ctypes.c_int, _P, ctypes.c_ssize_t, _P, ctypes.c_void_p),
    ),
}


class Entry:
    """A native function of a program.

    Args:
        executable: the program, and its numbers as they are.
        inputs, outputs, gradients: the positions of what is given and of what is wanted.
        signature: one of SIGNATURES.

    Attributes:
        address: of the function; it stays valid for as long as the entry lives.
    """

    def __init__(
        self, executable: NativeExecutable, inputs: Integers, outputs: Integers, gradients: Integers, signature: str
    ) -> None:
        positions = [np.ascontiguousarray(found, dtype=np.int64) for found in (inputs, outputs, gradients)]
        functions, engines = machine().addresses({"micrograd_run": runner})
        template = executable.buffer.copy()
        self._kept = executable, template, positions, engines
        module = _module(executable, template, positions, functions["micrograd_run"], SIGNATURES[signature])
        self.address, self._engine = machine().alone(module, "micrograd_entry")


def _module(
    executable: NativeExecutable, template: Any, positions: list[Integers], run: int, signature: Signature
) -> Any:
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(signature.result, signature.arguments), "micrograd_entry")
    code = Loops(function)
    builder = code.builder

    def constant(address: int, kind: Any) -> Any:
        return builder.inttoptr(integer(address), kind)

    def external(name: str, result: Any, *arguments: Any) -> Any:
        return ir.Function(module, ir.FunctionType(result, arguments), name)

    large = template.size > _STACK
    if large:
        memory = builder.call(external("malloc", _BYTES, INTEGER), [integer(template.nbytes + _LINE)])
        rounded = builder.and_(builder.add(builder.ptrtoint(memory, INTEGER), integer(_LINE - 1)), integer(-_LINE))
        buffer = builder.inttoptr(rounded, _POINTER)
    else:
        buffer = builder.alloca(DOUBLE, max(template.size, 1))
        buffer.align = _LINE
    copy = external("memcpy", _BYTES, _BYTES, _BYTES, INTEGER)
    source = constant(template.ctypes.data, _BYTES)
    builder.call(copy, [builder.bitcast(buffer, _BYTES), source, integer(template.nbytes)])

    def each(table: Integers, outside: Any, *, comes_in: bool) -> None:
        """Copy numbers between the positions of a table and an array of the caller."""
        with code.loop(integer(0), integer(len(table)), 1) as number:
            position = builder.load(builder.gep(constant(table.ctypes.data, INTEGER.as_pointer()), [number]))
            inside, other = builder.gep(buffer, [position]), builder.gep(outside, [number])
            builder.store(builder.load(other if comes_in else inside), inside if comes_in else other)

    inputs, outputs, gradients = positions
    pointers = [argument for argument in function.args if argument.type == _POINTER]
    if pointers:
        each(inputs, pointers[0], comes_in=True)
    else:
        builder.store(function.args[0], builder.gep(buffer, [integer(int(inputs[0]))]))
    kind = ir.FunctionType(_VOID, [_POINTER, INTEGER, INTEGER])
    table = executable.table
    builder.call(constant(run, kind.as_pointer()), [buffer, integer(table.ctypes.data), integer(len(table))])
    result = builder.load(builder.gep(buffer, [integer(int(outputs[0]))]))
    for found, outside in zip((outputs, gradients), pointers[1:], strict=False):
        each(found, outside, comes_in=False)
    if large:
        builder.call(external("free", _VOID, _BYTES), [memory])
    if signature.result == _VOID:
        builder.ret_void()
    else:
        builder.ret(result if signature.result == DOUBLE else ir.Constant(_INT, 1))
    return module
