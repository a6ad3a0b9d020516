"""Batch runner: the native function that runs the programs of a batch, in as many threads as call it.

Each thread brings a worker, an array of integers that says where its buffer and its work are. A batch has a plan,
another one, which all workers of the batch share; what they change in it they change atomically. The blocks of a plan
and the order of their sums are explained in llvm_batches.py, which makes workers and plans.
"""

from __future__ import annotations

import ctypes
from typing import Any

from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_codes import WIDE
from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_runners import run_table
from micrograd.compiler.backends.llvm.llvm_writer import Loops, loaded, stored

BATCH = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
JOB = 8  # how many numbers a job has; see _job
PACK = 3  # how many a pack has: its job, and where its examples begin and end
AWAY, LOOKS_OUT, WORKS = range(3)  # the states of a worker


def batch_runner() -> ir.Module:
    """The function that runs the programs of a batch block by block, and adds up their gradients.

    It is given a worker, and the addresses of others that shall work too. Several threads may call it at the same
    time, each with a worker of its own. Each takes block after block until none is left. Then, if it has run any, it
    looks out for the next batch for a while: to wake a thread takes longer than what is between two batches. It returns
    whether the batch is over.

    The sums of blocks are added in pairs, those of the pairs in pairs, and so on. Whoever finishes the second half of
    a pair does so, and whoever adds the last pair knows that the batch is over. So the order is always the same.

    A worker has a state, for how many turns it looks out, the plan of its batch, the block that it tries first, its
    buffer, the jobs, the addresses of each example's numbers, how many parameters there are, and what it copies from
    which buffer: where each stretch begins and ends, and how many there are.

    A plan has whether it is over, how many blocks there are, where the sums of their gradients are and the losses, how
    many examples there are, whether each block is taken, whether one half of each pair is finished (at the first block
    of its second half), where each block begins among the packs and the last ends, the examples, and the packs.
    """
    module = ir.Module(name="batch")
    given = [INTEGER.as_pointer(), INTEGER.as_pointer(), INTEGER]
    function = ir.Function(module, ir.FunctionType(INTEGER, given), "micrograd_batch")
    worker, others, count = function.args
    code = Loops(function)
    builder = code.builder
    with code.loop(integer(0), count, 1) as index:
        state = builder.inttoptr(builder.load(builder.gep(others, [index])), INTEGER.as_pointer())
        builder.cmpxchg(state, integer(LOOKS_OUT), integer(WORKS), "acq_rel", "acquire")
    begin, look, go_on, leave, end = map(function.append_basic_block, ("begin", "look", "go_on", "leave", "end"))
    builder.branch(begin)
    builder.position_at_end(begin)
    state = builder.gep(worker, [integer(0)])
    over, ran = _run_blocks(code, worker)
    iterations = builder.load(builder.gep(worker, [integer(1)]))
    iterations = builder.select(builder.icmp_signed(">", ran, integer(0)), iterations, integer(0))
    # From here on the plan may be gone: whoever sees this state may give the worker another one.
    builder.store_atomic(integer(LOOKS_OUT), state, "release", 8)
    before = builder.block
    builder.branch(look)
    builder.position_at_end(look)
    iteration = builder.phi(INTEGER)
    builder.cbranch(builder.icmp_signed("==", builder.load_atomic(state, "acquire", 8), integer(WORKS)), begin, go_on)
    builder.position_at_end(go_on)
    following = builder.add(iteration, integer(1))
    iteration.add_incoming(integer(0), before)
    iteration.add_incoming(following, go_on)
    builder.cbranch(builder.icmp_signed("<", following, iterations), look, leave)
    builder.position_at_end(leave)
    left = builder.cmpxchg(state, integer(LOOKS_OUT), integer(AWAY), "acq_rel", "acquire")
    builder.cbranch(builder.extract_value(left, 1), end, begin)
    builder.position_at_end(end)
    builder.ret(over)
    return module


def _run_blocks(code: Loops, worker: Any) -> tuple[Any, Any]:
    """Write what runs blocks until none is left; whether the batch is over then, and how many blocks ran here."""
    builder = code.builder
    numbers, integers = DOUBLE.as_pointer(), INTEGER.as_pointer()
    plan, attempted, buffer, jobs, given, parameters, source, stretches, count = (
        builder.load(builder.gep(worker, [integer(position)])) for position in range(2, 11)
    )
    plan, jobs, given, stretches = (builder.inttoptr(address, integers) for address in (plan, jobs, given, stretches))
    buffer, source = (builder.inttoptr(address, numbers) for address in (buffer, source))
    with code.loop(integer(0), count, 1) as stretch:
        ends = [builder.add(builder.mul(stretch, integer(2)), integer(side)) for side in range(2)]
        start, stop = (builder.load(builder.gep(stretches, [end])) for end in ends)
        copy_numbers(code, builder.gep(source, [start]), builder.gep(buffer, [start]), builder.sub(stop, start))
    over, *rest, taken = (builder.gep(plan, [integer(position)]) for position in range(6))
    blocks, sums, losses, length = map(builder.load, rest)
    sums, losses = (builder.inttoptr(address, numbers) for address in (sums, losses))
    joined = builder.gep(taken, [blocks])
    bounds = builder.gep(joined, [blocks])
    examples = builder.gep(bounds, [builder.add(blocks, integer(1))])
    packs = builder.gep(examples, [length])
    weight = builder.fdiv(ir.Constant(DOUBLE, 1.0), builder.sitofp(length, DOUBLE))
    with code.loop(integer(0), blocks, 1, [integer(0)]) as (attempt, (ran,)):
        block = builder.srem(builder.add(attempted, attempt), blocks)
        before = builder.atomic_rmw("xchg", builder.gep(taken, [block]), integer(1), "acq_rel")
        is_mine = builder.icmp_signed("==", before, integer(0))
        with builder.if_then(is_mine):
            row = builder.gep(sums, [builder.mul(block, parameters)])
            begin, end = (builder.load(builder.gep(bounds, [builder.add(block, integer(side))])) for side in range(2))
            with code.loop(begin, end, 1) as pack:
                pack_at = builder.gep(packs, [builder.mul(pack, integer(PACK))])
                start = _run_pack(code, buffer, jobs, given, pack_at, examples, losses)
                is_first = builder.icmp_signed("==", pack, begin)
                _add(code, row, start, parameters, weight, is_first)
            _join(code, block, blocks, joined, over, sums, parameters)
        code.carry([builder.add(ran, builder.zext(is_mine, INTEGER))])
    (ran,) = code.carried
    return builder.load_atomic(over, "acquire", 8), ran


def _run_pack(code: Loops, buffer: Any, jobs: Any, given: Any, pack: Any, examples: Any, losses: Any) -> Any:
    """Write what runs the program of a pack; where its gradients are then."""
    builder = code.builder
    integers = INTEGER.as_pointer()
    number, begin, end = (builder.load(builder.gep(pack, [integer(position)])) for position in range(PACK))
    job = builder.gep(jobs, [builder.mul(number, integer(JOB))])
    table, kernels, target, length, seeds, outputs, start, size = (
        builder.load(builder.gep(job, [integer(position)])) for position in range(JOB)
    )
    last = builder.sub(end, integer(1))
    with code.loop(integer(0), size, 1) as position:
        iteration = builder.add(begin, position)
        is_there = builder.icmp_signed("<", iteration, end)
        example = builder.load(builder.gep(examples, [builder.select(is_there, iteration, last)]))
        numbers = builder.inttoptr(builder.load(builder.gep(given, [example])), DOUBLE.as_pointer())
        copy_numbers(code, numbers, builder.gep(buffer, [builder.add(target, builder.mul(position, length))]), length)
        builder.store(builder.uitofp(is_there, DOUBLE), builder.gep(buffer, [builder.add(seeds, position)]))
    run_table(code, buffer, builder.inttoptr(table, integers), kernels)
    outputs = builder.inttoptr(outputs, integers)
    with code.loop(begin, end, 1) as iteration:
        output = builder.load(builder.gep(outputs, [builder.sub(iteration, begin)]))
        builder.store(builder.load(builder.gep(buffer, [output])), builder.gep(losses, [iteration]))
    return builder.gep(buffer, [start])


def copy_numbers(code: Loops, source: Any, target: Any, count: Any) -> None:
    """Write what copies so many numbers, most of them in vectors."""
    builder = code.builder
    for width, low, high in in_vectors(builder, count):
        with code.loop(low, high, width) as index:
            vector = loaded(builder, builder.gep(source, [index]), width)
            stored(builder, vector, builder.gep(target, [index]))


def in_vectors(builder: Any, count: Any, width: int = WIDE) -> tuple[tuple[int, Any, Any], ...]:
    """How so many numbers are taken, in vectors and then one by one: the widths, and where each begins and ends."""
    whole = builder.mul(builder.sdiv(count, integer(width)), integer(width))
    return (width, integer(0), whole), (1, whole, count)


def _join(code: Loops, block: Any, blocks: Any, joined: Any, over: Any, sums: Any, parameters: Any) -> None:
    """Write what adds up the pairs whose second half is finished with this block, and says when the batch is over."""
    builder = code.builder
    names = ("pair", "whole", "half", "second", "next", "end")
    pair, whole, half, second, following, end = map(code.function.append_basic_block, names)
    before = builder.block
    builder.branch(pair)
    builder.position_at_end(pair)
    size, first = builder.phi(INTEGER), builder.phi(INTEGER)  # of a half: how many blocks, and its first one
    builder.cbranch(builder.icmp_signed("<", size, blocks), half, whole)
    builder.position_at_end(whole)
    builder.store_atomic(integer(1), over, "release", 8)
    builder.branch(end)
    builder.position_at_end(half)
    double = builder.mul(size, integer(2))
    left = builder.mul(builder.sdiv(first, double), double)
    right = builder.add(left, size)
    with builder.if_then(builder.icmp_signed("<", right, blocks)):
        other = builder.atomic_rmw("xchg", builder.gep(joined, [right]), integer(1), "acq_rel")
        builder.cbranch(builder.icmp_signed("==", other, integer(1)), second, end)
        builder.position_at_end(second)
        totals, terms = (builder.gep(sums, [builder.mul(position, parameters)]) for position in (left, right))
        _add(code, totals, terms, parameters, ir.Constant(DOUBLE, 1.0), ir.Constant(ir.IntType(1), 0))
    builder.branch(following)
    builder.position_at_end(following)
    size.add_incoming(integer(1), before)
    size.add_incoming(double, following)
    first.add_incoming(block, before)
    first.add_incoming(left, following)
    builder.branch(pair)
    builder.position_at_end(end)


def _add(code: Loops, totals: Any, terms: Any, count: Any, weight: Any, is_first: Any) -> None:
    """Write what adds the weight times the terms to so many totals; the first replace them."""
    builder = code.builder
    with builder.if_else(is_first) as branches:
        for branch, is_there in zip(branches, (False, True), strict=True):
            with branch:
                for width, low, high in in_vectors(builder, count):
                    with code.loop(low, high, width) as index:
                        target = builder.gep(totals, [index])
                        total: Any = code.splat(ir.Constant(DOUBLE, 0.0), width)
                        total = loaded(builder, target, width) if is_there else total
                        term = loaded(builder, builder.gep(terms, [index]), width)
                        term = builder.fmul(term, code.splat(weight, width))
                        stored(builder, builder.fadd(total, term), target)
