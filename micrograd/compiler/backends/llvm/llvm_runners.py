"""Runners: the native functions that call kernels, and how Python calls these.

A program is a table with two numbers for each kernel, the address of its function and that of its arguments. A runner
calls one after the other; that of a loop does so iteration after iteration, and that of a batch (llvm_batch_runner.py)
for each example.

Python calls another one with floats, as it calls its own functions: ``direct(1.0, 2.0)`` puts them into the buffer and
runs the program. To do both in Python takes longer than a small program runs. The GIL is kept meanwhile.
"""

from __future__ import annotations

import ctypes
from struct import pack
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_kernels import KERNEL
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_writer import Loops

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.numbers import Floats, Integers

_ADDRESS = ctypes.c_void_p
RUN = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_int64)
_HEAD = object.__basicsize__  # of each object; the address of its class comes last
DIRECT = f"micrograd_direct_{_HEAD}_{bytes.__basicsize__}"
_FASTCALL = 0x80  # METH_FASTCALL: the arguments are in an array


def runner() -> ir.Module:
    """The function that runs a table of kernels."""
    module = ir.Module(name="run")
    numbers, integers = DOUBLE.as_pointer(), INTEGER.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [numbers, integers, INTEGER]), "micrograd_run")
    code = Loops(function)
    run_table(code, *function.args)
    code.builder.ret_void()
    return module


def turner() -> ir.Module:
    """The function that runs the kernels of a loop, iteration after iteration."""
    module = ir.Module(name="loop")
    function = ir.Function(module, KERNEL, "micrograd_loop")
    buffer, arguments, _ = function.args
    code = Loops(function)
    iterations, address, count = (
        code.builder.load(code.builder.gep(arguments, [integer(position)])) for position in range(3)
    )
    table = code.builder.inttoptr(address, INTEGER.as_pointer())
    with code.loop(integer(0), iterations, 1) as iteration:
        run_table(code, buffer, table, count, iteration)
    code.builder.ret_void()
    return module


def run_table(code: Loops, buffer: Any, table: Any, count: Any, iteration: Any = None) -> None:
    """Write a loop over a table of kernels and their arguments."""
    builder = code.builder
    with code.loop(integer(0), count, 1) as index:
        position = builder.mul(index, integer(2))
        kernel = builder.inttoptr(builder.load(builder.gep(table, [position])), KERNEL.as_pointer())
        arguments = builder.load(builder.gep(table, [builder.add(position, integer(1))]))
        builder.call(kernel, [buffer, builder.inttoptr(arguments, INTEGER.as_pointer()), iteration or integer(0)])


class _Method(ctypes.Structure):
    """A PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def direct_call(buffer: Floats, table: Integers, inputs: slice) -> tuple[Callable[..., bool], Any]:
    """What puts floats where the inputs are in a buffer, and runs a table of kernels; and what must be kept for it.

    One function serves all programs, with a table in the bytes that are its self. It gives False, and nothing has run,
    where an argument is no float.
    """
    addresses, engines = machine().addresses({DIRECT: module_of_direct})
    method = _Method(b"direct", addresses[DIRECT], _FASTCALL, None)
    python = ctypes.pythonapi
    keep = ctypes.cast(python.Py_IncRef, ctypes.c_void_p).value
    where = [inputs.start, inputs.stop - inputs.start, buffer.ctypes.data, table.ctypes.data, len(table)]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    itself = pack("9q", *where, id(float), id(False), id(True), keep)
    found = make(("PyCFunction_NewEx", python))(ctypes.addressof(method), itself, None)
    return found, (method, engines)


def module_of_direct() -> ir.Module:
    """The function: of its self, an array of its arguments, and how many these are."""
    module, integers, numbers = ir.Module(name="direct"), INTEGER.as_pointer(), DOUBLE.as_pointer()
    function = ir.Function(module, ir.FunctionType(INTEGER, [INTEGER, integers, INTEGER]), DIRECT)
    itself, arguments, given = function.args
    code = Loops(function)
    builder = code.builder
    table = builder.inttoptr(builder.add(itself, integer(bytes.__basicsize__ - 1)), integers)
    words = [builder.load(builder.gep(table, [integer(position)])) for position in range(9)]
    start, count, buffer, kernels, length, kind, no, yes, keep = words
    buffer, kernels = builder.inttoptr(buffer, numbers), builder.inttoptr(kernels, integers)
    keep = builder.inttoptr(keep, ir.FunctionType(ir.VoidType(), [INTEGER]).as_pointer())

    def give(answer: Any) -> None:
        builder.call(keep, [answer])
        builder.ret(answer)

    with builder.if_then(builder.icmp_signed("!=", given, count)):
        give(no)
    with code.loop(integer(0), count, 1) as index:
        argument = builder.load(builder.gep(arguments, [index]))
        of_kind = builder.load(builder.inttoptr(builder.add(argument, integer(_HEAD - 8)), integers))
        with builder.if_then(builder.icmp_signed("!=", of_kind, kind)):
            give(no)
        number = builder.load(builder.inttoptr(builder.add(argument, integer(_HEAD)), numbers))
        builder.store(number, builder.gep(buffer, [builder.add(start, index)]))
    run_table(code, buffer, kernels, length)
    give(yes)
    return module
