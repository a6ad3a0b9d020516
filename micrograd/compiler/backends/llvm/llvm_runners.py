"""Runners: the native functions that call kernels, and how Python calls these.

A program is a table with two numbers for each kernel, the address of its function and that of its arguments. A runner
calls one after the other; that of a loop does so iteration after iteration, and that of a batch (llvm_batch_runner.py)
for each example.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_kernels import KERNEL
from micrograd.compiler.backends.llvm.llvm_writer import Loops

_ADDRESS = ctypes.c_void_p
RUN = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_int64)


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
