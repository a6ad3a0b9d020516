"""Deciding in native code: the steps of a plan are rows of a table, as kernels are.

Their functions are the same for all programs, so nothing is compiled for a plan. Their arguments have addresses:

    move, add    how many numbers, the addresses of each, how many addresses a row of both has, and where its number is
    check        how many numbers, and the addresses of each
    ..._run      the same for a run of numbers side by side: the first addresses, and how far apart rows are
    clear_run    how many numbers side by side become 0, and the first address
    program      a buffer, and the table of its kernels
    choose       the address of a number, and two tables
    repeat       the table of the condition and its answer, that of the body, and the states
    unwind       the states, and the table of what goes back

A loop calls Python where it has no room for more states, and now and then where none are kept, so that it can be
interrupted.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir

from micrograd.compiler.backends.llvm.llvm_functions import DOUBLE, INTEGER, integer
from micrograd.compiler.backends.llvm.llvm_kernels import KERNEL
from micrograd.compiler.backends.llvm.llvm_machine import machine
from micrograd.compiler.backends.llvm.llvm_runners import RUN, run_table, runner
from micrograd.compiler.backends.llvm.llvm_writer import Loops, loaded, stored, summed
from micrograd.compiler.backends.shared.deciding import ZERO, Check, Choose, Move, Run, RunOfRegion, Unwind
from micrograd.compiler.backends.shared.python_calls import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from micrograd.compiler.backends.shared.deciding import Cells, Plan, Repeat, States
    from micrograd.compiler.numbers import Integers

_ROOM = 1 << 20  # iterations between two calls of Python, where no states are kept
_WIDTH = 8  # numbers of a vector
_SHORT = 8  # numbers, in the mean, of runs that are copied one after the other
_COUNT, _CAPACITY, _STATES = 0, 1, 2  # of what a loop and its way back have in common


class NativeRun(RunOfRegion):
    """A run of a region in native code."""

    def prepared(self, plan: Plan) -> Callable[[], object]:
        """What runs a plan: one call into native code, and what it raised."""
        self._kept: list[Any] = []
        self._raised = Raised()
        self._unlinked: list[tuple[Integers, list[str]]] = []
        self._shared: dict[int, Integers] = {}  # what a loop and its way back have in common, by their states
        table = self._table(plan)
        names = {name for _, named in self._unlinked for name in named}
        functions = {"micrograd_run": runner, **{name: _WRITERS[name] for name in names}}
        addresses, engines = machine().addresses(functions)
        self._kept += engines
        for positions, named in self._unlinked:
            positions[:] = [addresses[name] for name in named]
        run = RUN(addresses["micrograd_run"])
        arguments = ctypes.c_void_p(0), ctypes.c_void_p(table.ctypes.data), ctypes.c_int64(len(table))
        executables: list[Any] = self.executables  # native ones
        raising = [each for each in executables if each.calls_python]

        def call() -> None:
            run(*arguments)
            self._raised.check()
            for each in raising:
                each.raised.check()

        return call

    def _table(self, plan: Plan) -> Integers:
        rows = [row for step in plan for row in self._rows(step)]
        table = np.array([(0, arguments.ctypes.data) for _, arguments in rows], dtype=np.int64).reshape(-1, 2)
        self._kept += [table, *(arguments for _, arguments in rows)]
        self._unlinked.append((table[:, 0], [name for name, _ in rows]))
        return table

    def _rows(self, step: Any) -> list[tuple[str, Integers]]:
        """The names of a step's functions, and their arguments."""
        if isinstance(step, Move):
            return self._moves(step)
        if isinstance(step, Check):
            source, failed = step.source, _address(step.failed)
            self._kept.append(source.array)
            if (runs := _runs([source.at])) is None:
                return [("micrograd_check", _integers(len(source.at), self._addresses(source), failed))]
            return [
                ("micrograd_check_run", _integers(end - begin, _address(source[begin:]), failed)) for begin, end in runs
            ]
        return [self._row(step)]

    def _moves(self, step: Move) -> list[tuple[str, Integers]]:
        """Copies of what lies side by side, where runs are long; else one number after the other."""
        source, target, row = step.source, step.target, _address(step.row or ZERO)
        self._kept += [source.array, target.array]
        if source.array is ZERO.array and (runs := _runs([target.at])) is not None:
            return [("micrograd_clear_run", _integers(end - begin, _address(target[begin:]))) for begin, end in runs]
        if (runs := _runs([source.at, target.at])) is not None:
            name, both = "micrograd_add_run" if step.adds else "micrograd_move_run", (source, target)
            steps = [_distance(cells.at) for cells in both]
            return [
                (name, _integers(end - begin, *(_address(cells[..., begin:]) for cells in both), *steps, row))
                for begin, end in runs
            ]
        count = source.at.shape[-1]
        steps = [count if cells.at.ndim > 1 else 0 for cells in (source, target)]
        arguments = count, self._addresses(source), self._addresses(target), *steps, row
        return [("micrograd_add" if step.adds else "micrograd_move", _integers(*arguments))]

    def _row(self, step: Any) -> tuple[str, Integers]:
        """The name of a step's function, and its arguments."""
        if isinstance(step, Run):
            executable: Any = step.executable
            buffer, table = executable.buffer, executable.table
            return "micrograd_program", _integers(buffer.ctypes.data, *_of(table))
        if isinstance(step, Choose):
            tables = [_of(self._table(part)) for part in (step.then, step.otherwise)]
            return "micrograd_choose", _integers(_address(step.predicate), *tables[0], *tables[1])
        if isinstance(step, Unwind):
            shared, state = self._shared[id(step.states)], step.states.state
            positions = len(state.at), self._addresses(state)
            return "micrograd_unwind", _integers(shared.ctypes.data, *positions, *_of(self._table(step.body)))
        return "micrograd_repeat", self._repeat(step)

    def _repeat(self, step: Repeat) -> Integers:
        states = step.states
        shared = self._shared[id(states)] = _integers(0, 0, 0)
        room = self._more(states, shared)
        next(room)
        more = _MORE(room.__next__)
        self._kept += [shared, states, more]
        condition, body = _of(self._table(step.condition)), _of(self._table(step.body))
        function = ctypes.cast(more, ctypes.c_void_p).value or 0
        kept = len(states.state.at) if states.is_kept else 0
        positions = kept, self._addresses(states.state)
        limit = -1 if step.limit is None else step.limit
        begin = shared.ctypes.data, _address(step.answer), _address(step.failed), limit, function
        return _integers(*begin, *condition, *body, *positions)

    def _more(self, states: States, shared: Integers) -> Generator[int, None, None]:
        """Make room again and again: 1, or 0 if that raised an error, which is kept: none may go into native code.

        An interrupt is raised as soon as Python runs, which for a generator is within its ``try``.
        """
        answer = 1
        while True:
            try:
                yield answer
                answer = 1
                if states.is_kept:
                    if shared[_CAPACITY]:
                        states.grow()
                    shared[_CAPACITY:] = len(states.rows), states.rows.ctypes.data
                else:
                    shared[_CAPACITY] += _ROOM
            except GeneratorExit:  # noqa: PERF203  # each iteration is a call
                return
            except BaseException as error:
                self._raised.append(error)
                answer = 0

    def _addresses(self, cells: Cells) -> int:
        """The address of a table with that of each number."""
        table = cells.array.ctypes.data + cells.array.itemsize * np.ascontiguousarray(cells.at, dtype=np.int64)
        self._kept += [table, cells.array]
        return int(table.ctypes.data)


_MORE = ctypes.CFUNCTYPE(ctypes.c_int64)


def _integers(*numbers: int) -> Integers:
    return np.array(numbers, dtype=np.int64)


def _of(table: Integers) -> tuple[int, int]:
    return table.ctypes.data, len(table)


def _address(cells: Cells) -> int:
    return int(cells.array.ctypes.data + cells.array.itemsize * int(cells.at.flat[0]))


def _distance(at: Integers) -> int:
    """How far apart rows are; 0 where there is one."""
    return int(at[1, 0] - at[0, 0]) if at.ndim > 1 and len(at) > 1 else 0


def _runs(every: Sequence[Integers]) -> list[tuple[int, int]] | None:
    """The ends of runs in which numbers lie side by side, in several arrays of positions; None where these are short.

    Rows have to be equally far apart.
    """
    count = every[0].shape[-1]
    if not count:
        return []
    is_beside = np.ones(count - 1, dtype=bool)
    for at in every:
        rows = at.reshape(-1, count)
        if len(rows) > 2 and (np.diff(rows, 2, axis=0) != 0).any():
            return None
        if len(rows) > 1 and (np.diff(rows[:2], axis=0) != _distance(at)).any():
            return None
        is_beside &= np.diff(rows[0]) == 1
    ends = np.append(np.flatnonzero(~is_beside) + 1, count).tolist()
    return None if count < _SHORT * len(ends) else [*zip([0, *ends], ends, strict=False)]


# The functions


class _Writer(Loops):
    """Writes the function of a step."""

    def __init__(self, name: str) -> None:
        self.module = ir.Module(name=name)
        super().__init__(ir.Function(self.module, KERNEL, name))
        _, self.arguments, _ = self.function.args

    def argument(self, number: int) -> Any:
        return self.builder.load(self.builder.gep(self.arguments, [integer(number)]))

    def pointer(self, number: int, kind: Any = DOUBLE) -> Any:
        return self.builder.inttoptr(self.argument(number), kind.as_pointer())

    def at(self, table: Any, index: Any) -> Any:
        """The address in a table."""
        return self.builder.inttoptr(self.builder.load(self.builder.gep(table, [index])), DOUBLE.as_pointer())

    def run(self, argument: int) -> None:
        """Run the table that is an argument, and whose length is the next one."""
        run_table(
            self, ir.Constant(DOUBLE.as_pointer(), None), self.pointer(argument, INTEGER), self.argument(argument + 1)
        )

    def vectors(self) -> Generator[tuple[Any, int], None, None]:
        """Loops over as many numbers as the first argument says: over vectors of them, and over those that are left."""
        count = self.argument(0)
        left = self.builder.and_(count, integer(-_WIDTH))
        for begin, end, width in ((integer(0), left, _WIDTH), (left, count, 1)):
            with self.loop(begin, end, width) as index:
                yield index, width

    def copied(self, count: Any, table: Any, rows: Any, *, comes_in: bool) -> None:
        """Copy a state to a row, or back."""
        with self.loop(integer(0), count, 1) as index:
            inside, row = self.at(table, index), self.builder.gep(rows, [index])
            self.builder.store(self.builder.load(row if comes_in else inside), inside if comes_in else row)

    def finished(self) -> ir.Module:
        self.builder.ret_void()
        return self.module


def _move(name: str) -> ir.Module:
    code, adds = _Writer(name), name == "micrograd_add"
    row = code.builder.fptosi(code.builder.load(code.pointer(5)), INTEGER)
    sources, targets = (
        code.builder.gep(code.pointer(table, INTEGER), [code.builder.mul(row, code.argument(step))])
        for table, step in ((1, 3), (2, 4))
    )
    with code.loop(integer(0), code.argument(0), 1) as index:
        target, number = code.at(targets, index), code.builder.load(code.at(sources, index))
        code.builder.store(code.builder.fadd(code.builder.load(target), number) if adds else number, target)
    return code.finished()


def _check() -> ir.Module:
    code = _Writer("micrograd_check")
    sources, failed = code.pointer(1, INTEGER), code.pointer(2)
    with code.loop(integer(0), code.argument(0), 1) as index:
        number = code.builder.load(code.at(sources, index))
        nothing = code.builder.fsub(number, number)  # 0, or NaN where it is not finite
        code.builder.store(code.builder.fadd(code.builder.load(failed), nothing), failed)
    return code.finished()


def _move_run(name: str) -> ir.Module:
    code, adds = _Writer(name), name == "micrograd_add_run"
    row = code.builder.fptosi(code.builder.load(code.pointer(5)), INTEGER)
    source, target = (
        code.builder.gep(code.pointer(first), [code.builder.mul(row, code.argument(step))])
        for first, step in ((1, 3), (2, 4))
    )
    for index, width in code.vectors():
        to, numbers = code.builder.gep(target, [index]), loaded(code.builder, code.builder.gep(source, [index]), width)
        if adds:
            numbers = code.builder.fadd(loaded(code.builder, to, width), numbers)
        stored(code.builder, numbers, to)
    return code.finished()


def _clear_run() -> ir.Module:
    code = _Writer("micrograd_clear_run")
    target = code.pointer(1)
    for index, width in code.vectors():
        stored(code.builder, code.splat(ir.Constant(DOUBLE, 0.0), width), code.builder.gep(target, [index]))
    return code.finished()


def _check_run() -> ir.Module:
    code = _Writer("micrograd_check_run")
    source, failed = code.pointer(1), code.pointer(2)
    for index, width in code.vectors():
        numbers = loaded(code.builder, code.builder.gep(source, [index]), width)
        nothing = summed(code.builder, code.builder.fsub(numbers, numbers))
        code.builder.store(code.builder.fadd(code.builder.load(failed), nothing), failed)
    return code.finished()


def _program() -> ir.Module:
    code = _Writer("micrograd_program")
    run_table(code, code.pointer(0), code.pointer(1, INTEGER), code.argument(2))
    return code.finished()


def _choose() -> ir.Module:
    code = _Writer("micrograd_choose")
    holds = code.builder.fcmp_unordered("!=", code.builder.load(code.pointer(0)), ir.Constant(DOUBLE, 0.0))
    with code.builder.if_else(holds) as (then, otherwise):
        with then:
            code.run(1)
        with otherwise:
            code.run(3)
    return code.finished()


def _repeat() -> ir.Module:
    """The arguments: what is shared, the answer, the failure, the limit, what to call; two tables; the state."""
    code = _Writer("micrograd_repeat")
    builder, function = code.builder, code.function
    shared, answer, failed, limit = code.pointer(0, INTEGER), code.pointer(1), code.pointer(2), code.argument(3)
    more = builder.inttoptr(code.argument(4), ir.FunctionType(INTEGER, []).as_pointer())
    size, state = code.argument(9), code.pointer(10, INTEGER)
    capacity = builder.gep(shared, [integer(_CAPACITY)])
    names = "head", "asked", "within", "full", "body", "failure", "end"
    head, asked, within, full, body, failure, end = map(function.append_basic_block, names)
    is_new = builder.icmp_signed("==", size, integer(0))  # nothing is kept: all iterations of this run are counted
    builder.store(builder.select(is_new, integer(0), builder.load(capacity)), capacity)
    begin = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    count = builder.phi(INTEGER)
    count.add_incoming(integer(0), begin)
    code.run(5)
    holds = builder.fcmp_unordered("!=", builder.load(answer), ir.Constant(DOUBLE, 0.0))
    builder.cbranch(holds, asked, end)
    builder.position_at_end(asked)
    builder.cbranch(builder.icmp_signed("==", count, limit), failure, within)
    builder.position_at_end(within)
    builder.cbranch(builder.icmp_signed("<", count, builder.load(capacity)), body, full)
    builder.position_at_end(full)
    builder.cbranch(builder.icmp_signed("!=", builder.call(more, []), integer(0)), body, failure)
    builder.position_at_end(body)
    rows = builder.inttoptr(builder.load(builder.gep(shared, [integer(_STATES)])), DOUBLE.as_pointer())
    code.copied(size, state, builder.gep(rows, [builder.mul(count, size)]), comes_in=False)
    code.run(7)
    count.add_incoming(builder.add(count, integer(1)), builder.block)
    builder.branch(head)
    builder.position_at_end(failure)
    builder.store(ir.Constant(DOUBLE, float("nan")), failed)
    builder.branch(end)
    builder.position_at_end(end)
    builder.store(count, builder.gep(shared, [integer(_COUNT)]))
    return code.finished()


def _unwind() -> ir.Module:
    """The arguments: what is shared, the state, and the table."""
    code = _Writer("micrograd_unwind")
    builder = code.builder
    shared, size, state = code.pointer(0, INTEGER), code.argument(1), code.pointer(2, INTEGER)
    count, address = (builder.load(builder.gep(shared, [integer(position)])) for position in (_COUNT, _STATES))
    rows = builder.inttoptr(address, DOUBLE.as_pointer())
    with code.loop(integer(0), count, 1) as index:
        row = builder.sub(builder.sub(count, integer(1)), index)
        code.copied(size, state, builder.gep(rows, [builder.mul(row, size)]), comes_in=True)
        code.run(3)
    return code.finished()


_WRITERS: dict[str, Callable[[], ir.Module]] = {
    **{name: partial(_move, name) for name in ("micrograd_move", "micrograd_add")},
    **{name: partial(_move_run, name) for name in ("micrograd_move_run", "micrograd_add_run")},
    "micrograd_clear_run": _clear_run,
    "micrograd_check": _check,
    "micrograd_check_run": _check_run,
    "micrograd_program": _program,
    "micrograd_choose": _choose,
    "micrograd_repeat": _repeat,
    "micrograd_unwind": _unwind,
}
