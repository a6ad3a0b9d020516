"""Steps: many steps of fit in one native call.

With small batches, the Python between two steps takes longer than these. So the plans of some steps are made at once,
and one native function runs, for each of them,

    the blocks of its batch     the losses, and their mean gradient (llvm_batch_runner.py)
    the update                  the next parameters and states
    a copy                      which lets the parameters take the place of the ones before

Nobody else reads states and last gradients meanwhile. So they lie in two regions, and each step writes where those of
the step before the last one were. It ends before a step that has a number that is not finite: nothing of that step is
kept, and Python takes it again.
How many steps are done, and the last learning rate, are in memory that native code writes, since Ctrl-C may keep
Python from hearing what the function returns.
"""

from __future__ import annotations

import ctypes
from collections import namedtuple
from typing import Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_batch_runner import copy_numbers
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_update import UPDATE
from micrograd.compiler.backends.llvm.llvm_writer import Loops

STEPS = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_BATCH = ir.FunctionType(INTEGER, [INTEGER.as_pointer(), INTEGER.as_pointer(), INTEGER]).as_pointer()
_ROOM = 1e8  # times which a loss must be finite: then so is a sum of as many


# What the function is given, in this order: addresses, and positions and lengths in the buffer.
Given = namedtuple(
    "Given",
    "worker batch_runner plans plan_length steps rates done last_rate buffer gradients last_gradients update forth "
    "back parameters next count states next_states numbers rate",
)


def step_runner() -> ir.Module:
    """The function that takes steps until one is not finite; it is given the address of what Given has."""
    module = ir.Module(name="steps")
    integers, numbers = INTEGER.as_pointer(), DOUBLE.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [integers]), "micrograd_steps")
    code = Loops(function)
    builder = code.builder
    words = range(len(Given._fields))
    given = Given(*(builder.load(builder.gep(function.args[0], [integer(word)])) for word in words))
    worker, plans, done = (builder.inttoptr(address, integers) for address in (given.worker, given.plans, given.done))
    rates, last_rate, buffer = (
        builder.inttoptr(address, numbers) for address in (given.rates, given.last_rate, given.buffer)
    )
    run_batch = builder.inttoptr(given.batch_runner, _BATCH)
    update = builder.inttoptr(given.update, UPDATE.as_pointer())

    def region(start: Any) -> Any:
        return builder.gep(buffer, [start])

    before = builder.load(done)
    with code.loop(integer(0), given.steps, 1) as step:
        count = builder.add(before, step)
        is_back = builder.trunc(step, ir.IntType(1))
        with builder.if_then(builder.icmp_signed("==", builder.load(done), count)):  # all steps before are done
            plan = builder.gep(plans, [builder.mul(step, given.plan_length)])
            builder.store(builder.ptrtoint(plan, INTEGER), builder.gep(worker, [integer(2)]))
            builder.store(integer(0), builder.gep(worker, [integer(3)]))
            builder.call(run_batch, [worker, ir.Constant(integers, None), integer(0)])
            gradients = builder.select(is_back, region(given.last_gradients), region(given.gradients))
            sums = builder.inttoptr(builder.load(builder.gep(plan, [integer(2)])), numbers)
            with builder.if_then(builder.icmp_unsigned("!=", sums, gradients)):
                copy_numbers(code, sums, gradients, given.count)
            rate = builder.load(builder.gep(rates, [step]))
            is_finite = builder.fcmp_ordered("==", _check_of_losses(code, plan), ir.Constant(DOUBLE, 0.0))
            with builder.if_then(is_finite):
                builder.store(rate, region(given.rate))
                addresses = builder.select(is_back, given.back, given.forth)
                check = builder.call(update, [builder.inttoptr(addresses, integers), given.count])
                with builder.if_then(builder.fcmp_ordered("==", check, ir.Constant(DOUBLE, 0.0))):
                    copy_numbers(code, region(given.next), region(given.parameters), given.count)
                    builder.store(rate, last_rate)
                    builder.store(builder.add(count, integer(1)), done)
    is_odd = builder.trunc(builder.sub(builder.load(done), before), ir.IntType(1))
    with builder.if_then(is_odd):
        copy_numbers(code, region(given.next_states), region(given.states), given.numbers)
        copy_numbers(code, region(given.gradients), region(given.last_gradients), given.count)
    builder.ret_void()
    return module


def _check_of_losses(code: Loops, plan: Any) -> Any:
    """Write what gives 0 if the losses of a plan have a finite sum, and else NaN."""
    builder = code.builder
    address, count = (builder.load(builder.gep(plan, [integer(position)])) for position in (3, 4))
    losses = builder.inttoptr(address, DOUBLE.as_pointer())
    with code.loop(integer(0), count, 1, [ir.Constant(DOUBLE, 0.0)]) as (index, (check,)):
        loss = builder.fmul(builder.load(builder.gep(losses, [index])), ir.Constant(DOUBLE, _ROOM))
        code.carry([builder.fadd(check, builder.fsub(loss, loss))])
    return code.carried[0]
