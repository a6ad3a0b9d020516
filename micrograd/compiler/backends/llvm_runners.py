"""Runners: the native functions that call kernels, and how Python calls these.

A program is a table with two numbers for each kernel, the address of its function and that of its arguments. A runner
calls one after the other; that of a loop does so turn after turn, and that of a batch for each example.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from micrograd.compiler.backends.llvm_codes import WIDE
from micrograd.compiler.backends.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm_kernels import KERNEL
from micrograd.compiler.backends.llvm_writer import Loops

_ADDRESS = ctypes.c_void_p
RUN = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_int64)
BATCH = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    *(_ADDRESS, _ADDRESS, _ADDRESS, ctypes.c_int64),
    *(_ADDRESS, ctypes.c_int64, ctypes.c_double, _ADDRESS),
)
JOB = 7  # how many numbers a job has; see _job


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
    """The function that runs the kernels of a loop, turn after turn."""
    module = ir.Module(name="loop")
    function = ir.Function(module, KERNEL, "micrograd_loop")
    buffer, arguments, _ = function.args
    code = Loops(function)
    turns, address, count = (code.builder.load(code.builder.gep(arguments, [integer(place)])) for place in range(3))
    table = code.builder.inttoptr(address, INTEGER.as_pointer())
    with code.loop(integer(0), turns, 1) as turn:
        run_table(code, buffer, table, count, turn)
    code.builder.ret_void()
    return module


def run_table(code: Loops, buffer: Any, table: Any, count: Any, turn: Any = None) -> None:
    """Write a loop over a table of kernels and their arguments."""
    builder = code.builder
    with code.loop(integer(0), count, 1) as index:
        place = builder.mul(index, integer(2))
        kernel = builder.inttoptr(builder.load(builder.gep(table, [place])), KERNEL.as_pointer())
        arguments = builder.load(builder.gep(table, [builder.add(place, integer(1))]))
        builder.call(kernel, [buffer, builder.inttoptr(arguments, INTEGER.as_pointer()), turn or integer(0)])


def batch_runner() -> ir.Module:
    """The function that runs the programs of a batch block by block, and adds up the gradients of each block.

    Several threads may call it at the same time. Each takes the next block until none is left. The function returns how
    many are finished by then.

    A plan has how many blocks are begun and how many finished, where each begins and the last ends, and the examples.
    """
    module = ir.Module(name="batch")
    numbers, integers = DOUBLE.as_pointer(), INTEGER.as_pointer()
    given = [numbers, integers, integers, INTEGER, numbers, INTEGER, DOUBLE, numbers]
    function = ir.Function(module, ir.FunctionType(INTEGER, given), "micrograd_batch")
    buffer, jobs, plan, blocks, totals, parameters, weight, losses = function.args
    code = Loops(function)
    builder = code.builder
    begun, finished, bounds = (builder.gep(plan, [integer(place)]) for place in range(3))
    examples = builder.gep(bounds, [builder.add(blocks, integer(1))])
    with code.loop(integer(0), blocks, 1):
        block = builder.atomic_rmw("add", begun, integer(1), "acq_rel")
        with builder.if_then(builder.icmp_signed("<", block, blocks)):
            row = builder.gep(totals, [builder.mul(block, parameters)])
            begin, end = (builder.load(builder.gep(bounds, [builder.add(block, integer(side))])) for side in range(2))
            with code.loop(begin, end, 1) as turn:
                job = builder.mul(builder.load(builder.gep(examples, [turn])), integer(JOB))
                table, kernels, source, target, inputs, loss, start = (
                    builder.load(builder.gep(jobs, [builder.add(job, integer(index))])) for index in range(JOB)
                )
                source = builder.inttoptr(source, numbers)
                with code.loop(integer(0), inputs, 1) as index:
                    number = builder.load(builder.gep(source, [index]))
                    builder.store(number, builder.gep(buffer, [builder.add(target, index)]))
                run_table(code, buffer, builder.inttoptr(table, integers), kernels)
                builder.store(builder.load(builder.gep(buffer, [loss])), builder.gep(losses, [turn]))
                zero = ir.Constant(DOUBLE, 0.0)
                is_first = builder.icmp_signed("==", turn, begin)
                gradients = builder.gep(buffer, [start])
                whole = builder.mul(builder.sdiv(parameters, integer(WIDE)), integer(WIDE))
                for width, low, high in ((WIDE, integer(0), whole), (1, whole, parameters)):
                    with code.loop(low, high, width) as index:
                        pointers = [builder.gep(region, [index]) for region in (row, gradients)]
                        if width != 1:
                            vector = ir.VectorType(DOUBLE, width).as_pointer()
                            pointers = [builder.bitcast(pointer, vector) for pointer in pointers]
                        total, share = (builder.load(pointer, align=8) for pointer in pointers)
                        total = builder.select(is_first, code.splat(zero, width), total)
                        share = builder.fmul(share, code.splat(weight, width))
                        builder.store(builder.fadd(total, share), pointers[0], align=8)
            builder.atomic_rmw("add", finished, integer(1), "acq_rel")
    builder.ret(builder.load_atomic(finished, "acquire", 8))
    return module
