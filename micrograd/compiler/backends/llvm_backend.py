"""The LLVM backend: native kernels, called one after the other by a loop that is native as well.

A program is a table: for each kernel the address of its function and the address of its arguments.

    for step in table: step.function(buffer, step.arguments, 0)

A loop in the program is a step, whose arguments say how many turns it has and where the table of its kernels is:

    for turn in range(turns): for step in table: step.function(buffer, step.arguments, turn)

Neighbours among the small kernels are one step together, whose arguments are words; see llvm_interpreter.py.

So only the functions that are new have to be compiled for a new program. They are looked up on disk first, and those
that are not there are compiled together, as one object.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from struct import pack, unpack
from typing import TYPE_CHECKING, Any, TypeAlias

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from micrograd._support.locks import new_lock_for_library
from micrograd.compiler.backends import (
    llvm_codes,
    llvm_functions,
    llvm_interpreter,
    llvm_kernels,
    llvm_products,
    llvm_scalars,
    llvm_writer,
)
from micrograd.compiler.backends.backend import Backend
from micrograd.compiler.backends.crew import at_once, cores
from micrograd.compiler.backends.executable import Batches, Executable, Pace, new_buffer
from micrograd.compiler.backends.llvm_codes import WIDE, code_of, has_many_segments, sorted_segments, vector_of
from micrograd.compiler.backends.llvm_functions import DOUBLE, INTEGER, integer, native_name
from micrograd.compiler.backends.llvm_interpreter import (
    PLACES,
    Words,
    is_small,
    module_of_interpreter,
    module_of_primitive,
)
from micrograd.compiler.backends.llvm_kernels import KERNEL, module_of
from micrograd.compiler.backends.llvm_scalars import module_of_scalars, name_of, scalars, together
from micrograd.compiler.backends.llvm_writer import Loops
from micrograd.compiler.backends.object_cache import cached, is_object
from micrograd.compiler.backends.python_calls import in_python
from micrograd.compiler.program import Loop, Map, Reduction, Take

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from micrograd.compiler.backends.llvm_codes import Code
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.program import Access, Kernel, Program, Segment
    from micrograd.engine.primitive import Primitive


_WRITERS = (llvm_codes, llvm_functions, llvm_interpreter, llvm_kernels, llvm_products, llvm_scalars, llvm_writer)


def _version() -> str:
    """A hash of the files that write the code, so that kernels of another version are not taken from disk.

    The formulas of composites are not in it: a kernel's name has a hash of what became of them.
    """
    files = [__file__, *(str(module.__file__) for module in _WRITERS)]
    content = b"".join(Path(file).read_bytes() for file in files)
    return hashlib.sha256(content).hexdigest()


class Machine:
    """The compiler for this machine's processor, and the functions that it has compiled."""

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        processor = llvm.get_host_cpu_name()
        try:
            features = llvm.get_host_cpu_features().flatten()
        except RuntimeError:  # LLVM cannot tell on every platform
            features = ""
        target = llvm.Target.from_default_triple()
        self._triple = target.triple
        self._machine = target.create_target_machine(cpu=processor, features=features, opt=2, jit=True)
        empty = llvm.parse_assembly("")
        empty.triple = self._triple
        self._engine = llvm.create_mcjit_compiler(empty, self._machine)
        self._described = "\n".join((self._triple, processor, features, llvmlite.__version__, _version()))
        self._addresses: dict[str, int] = {}

    def address(self, name: str, make: Callable[[], ir.Module]) -> int:
        """The address of a function; make gives a module with it."""
        return self.addresses({name: make})[name]

    def addresses(self, functions: Mapping[str, Callable[[], ir.Module]]) -> dict[str, int]:
        """The addresses of functions. Those that are neither in memory nor on disk are compiled, all at once."""
        with _lock:
            new = [name for name in functions if name not in self._addresses]
            keys = {f"{name}\n{self._described}": name for name in new}

            def make(missing: list[str]) -> bytes:
                names = [keys[key] for key in missing]
                content = self._compiled([functions[name]() for name in names])
                self._load(names, content)
                return content

            def load(found: list[str], content: bytes) -> None:
                names = [keys[key] for key in found]
                if not all(is_object(content, name, self._triple.partition("-")[0]) for name in names):
                    raise RuntimeError(f"no object for this processor with {', '.join(names)} in it")
                self._load(names, content)

            if new:
                cached([*keys], make, load)
            return {name: self._addresses[name] for name in functions}

    def _load(self, names: list[str], content: bytes) -> None:
        """Load an object with these functions in it, or raise a RuntimeError."""
        parsed = llvm.ObjectFileRef.from_data(content)
        if not parsed._ptr:  # LLVM could not read it, and would crash if it were to load it
            raise RuntimeError(f"no object: {content[:20]!r}")
        self._engine.add_object_file(parsed)
        self._engine.finalize_object()
        for name in names:
            if not (address := int(self._engine.get_function_address(name))):
                raise RuntimeError(f"no function {name} in its object")
            self._addresses[name] = address

    def _compiled(self, modules: list[ir.Module]) -> bytes:
        """One object of modules: most of the time of a small one goes into the preparations."""
        for module in modules:
            module.triple = self._triple
        whole, *others = (llvm.parse_assembly(str(module)) for module in modules)
        for other in others:
            whole.link_in(other)
        whole.verify()
        # No optimising passes: the loops are written as they shall run, and passes would double the time.
        return bytes(self._machine.emit_object(whole))


_lock = new_lock_for_library()
_machine: Machine | None = None


def machine() -> Machine:
    """The Machine of this process."""
    global _machine
    with _lock:
        if _machine is None:
            _machine = Machine()
        return _machine


_ADDRESS = ctypes.c_void_p
_RUN = ctypes.CFUNCTYPE(None, _ADDRESS, _ADDRESS, ctypes.c_int64)
_BATCH = ctypes.CFUNCTYPE(
    None,
    *[_ADDRESS] * 4,
    *[ctypes.c_int64] * 2,
    *(_ADDRESS, ctypes.c_int64, ctypes.c_double, _ADDRESS),
)
_JOB = 7  # how many numbers a job has; see _job


def _runner() -> ir.Module:
    """The function that runs a table of kernels."""
    module = ir.Module(name="run")
    numbers, integers = DOUBLE.as_pointer(), INTEGER.as_pointer()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [numbers, integers, INTEGER]), "micrograd_run")
    code = Loops(function)
    _run_table(code, *function.args)
    code.builder.ret_void()
    return module


def _turner() -> ir.Module:
    """The function that runs the kernels of a loop, turn after turn."""
    module = ir.Module(name="loop")
    function = ir.Function(module, KERNEL, "micrograd_loop")
    buffer, arguments, _ = function.args
    code = Loops(function)
    turns, address, count = (code.builder.load(code.builder.gep(arguments, [integer(place)])) for place in range(3))
    table = code.builder.inttoptr(address, INTEGER.as_pointer())
    with code.loop(integer(0), turns, 1) as turn:
        _run_table(code, buffer, table, count, turn)
    code.builder.ret_void()
    return module


def _run_table(code: Loops, buffer: Any, table: Any, count: Any, turn: Any = None) -> None:
    """Write a loop over a table of kernels and their arguments."""
    builder = code.builder
    with code.loop(integer(0), count, 1) as index:
        place = builder.mul(index, integer(2))
        kernel = builder.inttoptr(builder.load(builder.gep(table, [place])), KERNEL.as_pointer())
        arguments = builder.load(builder.gep(table, [builder.add(place, integer(1))]))
        builder.call(kernel, [buffer, builder.inttoptr(arguments, INTEGER.as_pointer()), turn or integer(0)])


def _batch_runner() -> ir.Module:
    """The function that runs the programs of some blocks of a batch, and adds up the gradients of each block."""
    module = ir.Module(name="batch")
    numbers, integers = DOUBLE.as_pointer(), INTEGER.as_pointer()
    given = [numbers, integers, integers, integers, INTEGER, INTEGER, numbers, INTEGER, DOUBLE, numbers]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), given), "micrograd_batch")
    buffer, jobs, examples, bounds, first_block, end_block, totals, parameters, weight, losses = function.args
    code = Loops(function)
    builder = code.builder
    with code.loop(first_block, end_block, 1) as block:
        row = builder.gep(totals, [builder.mul(block, parameters)])
        begin, end = (builder.load(builder.gep(bounds, [builder.add(block, integer(side))])) for side in range(2))
        with code.loop(begin, end, 1) as turn:
            job = builder.mul(builder.load(builder.gep(examples, [turn])), integer(_JOB))
            table, kernels, source, target, inputs, loss, start = (
                builder.load(builder.gep(jobs, [builder.add(job, integer(index))])) for index in range(_JOB)
            )
            source = builder.inttoptr(source, numbers)
            with code.loop(integer(0), inputs, 1) as index:
                number = builder.load(builder.gep(source, [index]))
                builder.store(number, builder.gep(buffer, [builder.add(target, index)]))
            _run_table(code, buffer, builder.inttoptr(table, integers), kernels)
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
    builder.ret_void()
    return module


_BLOCKS = 8  # at most so many parts of a batch are run at once
_SMALLEST = 4  # a block has so many examples at least
_WORTH_A_THREAD = 200_000  # flops, which take some ten microseconds


class NativeBatches(Batches):
    """Runs the programs of the examples of a batch, in native code and on all cores.

    A batch is cut into blocks, which depend on nothing but its length. The gradients of a block are added up in order,
    and then the sums of the blocks. So the numbers are the same on any number of cores. Each other thread has a buffer
    of its own, and takes the parameters from this one.

    Attributes:
        buffer: the one of the parameters.
        jobs: how to run each example; see _job.
        call: the native function that runs blocks.
        shared: what other threads read of the buffer.
    """

    def __init__(
        self,
        buffer: Floats,
        runs: Sequence[NativeExecutable],
        numbers: Sequence[Floats] | Floats,
        which: Integers,
        gradients: slice,
    ) -> None:
        self.buffer, self._gradients = buffer, gradients
        self._runs, self._numbers, self._which = runs, numbers, which
        self.jobs = np.array([_job(run) for run in runs], dtype=np.int64)[which]
        if isinstance(numbers, np.ndarray):  # the rows of a matrix, which may be millions
            self.jobs[:, 2] = numbers.ctypes.data + numbers.strides[0] * np.arange(len(numbers))
            self.jobs[:, 4] = numbers.shape[1]
        else:
            self.jobs[:, 2] = [row.ctypes.data for row in numbers]
            self.jobs[:, 4] = list(map(len, numbers))
        self.jobs[:, 3] -= self.jobs[:, 4]  # an example's numbers are the last inputs
        self.call = _BATCH(machine().address("micrograd_batch", _batch_runner))
        self._flops = np.array([run.program.flops for run in runs])
        self._cores = 1 if any(run.calls_python for run in runs) else cores()
        self._others: list[Floats] = []  # the buffers of the other threads
        self.shared: list[slice] = []
        self._sums: Floats | None = None  # of the blocks, where nobody uses them

    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples; their mean gradient is in its place in the buffer then."""
        count, gradients = len(batch), self.buffer[self._gradients]
        blocks = min(_BLOCKS, max(1, count // _SMALLEST))
        sums, self._sums = self._sums, None
        if blocks == 1:
            sums = gradients[None, :]
        elif sums is None or len(sums) != blocks:
            sums = np.empty((blocks, len(gradients)))
        examples, losses = np.array(batch, dtype=np.int64), np.empty(count)
        bounds = np.arange(blocks + 1) * count // blocks
        arrays = (examples, bounds, sums, losses)
        threads = min(self._cores, blocks, max(1, int(self._flops[self._which[examples]].sum()) // _WORTH_A_THREAD))
        here = _Worker(self, self.buffer, arrays)
        if threads == 1:
            here.run(0, blocks)
        else:
            self._share(threads - 1)
            at_once(blocks, [here, *(_Worker(self, buffer, arrays) for buffer in self._others[: threads - 1])])
        if blocks > 1:
            np.add.reduce(sums, axis=0, out=gradients)
            self._sums = sums
        for run in self._runs:
            run.raise_what_was_raised()
        return losses.tolist()

    def _share(self, count: int) -> None:
        """Make buffers for so many other threads, with the constants of the programs in them, where there are none."""
        if len(self._others) >= count:
            return
        places = []
        for number, run in enumerate(self._runs):
            length = self.jobs[np.argmax(self._which == number), 4]  # of what each example has for itself
            places.append(run.program.inputs[: len(run.program.inputs) - length])
        self.shared = _stretches(places)
        for _ in range(count - len(self._others)):
            buffer = new_buffer(len(self.buffer))
            buffer[:] = self.buffer
            self._others.append(buffer)


class _Worker:
    """Runs blocks of a batch in one buffer. It keeps all that native code works on, as long as it does.

    Args:
        batches: has the programs, the examples, and the buffer with the parameters.
        buffer: where the programs run: that one, or one of another thread.
        arrays: the examples of the batch, the bounds of the blocks, their sums, and the losses.
    """

    def __init__(
        self, batches: NativeBatches, buffer: Floats, arrays: tuple[Integers, Integers, Floats, Floats]
    ) -> None:
        self._batches, self._buffer, self._arrays = batches, buffer, arrays
        self._missing = iter(() if buffer is batches.buffer else batches.shared)
        self._addresses = [array.ctypes.data for array in (buffer, batches.jobs, *arrays)]

    def __call__(self, block: int) -> None:
        """Run a block; first of all, take the parameters."""
        for stretch in self._missing:
            self._buffer[stretch] = self._batches.buffer[stretch]
        self.run(block, block + 1)

    def run(self, first: int, end: int) -> None:
        """Run the blocks from one to another."""
        buffer, jobs, examples, bounds, sums, losses = self._addresses
        width, weight = self._arrays[2].shape[1], 1 / len(self._arrays[3])
        self._batches.call(buffer, jobs, examples, bounds, first, end, sums, width, weight, losses)


def _stretches(places: Sequence[Integers]) -> list[slice]:
    """The stretches of a buffer that these places make."""
    found = np.unique(np.concatenate(places))
    runs = np.split(found, np.flatnonzero(np.diff(found) != 1) + 1)
    return [slice(int(run[0]), int(run[-1]) + 1) for run in runs if len(run)]


def _job(run: NativeExecutable) -> list[int]:
    """How to run an example.

    It is the program's table of kernels, and how many; the example's numbers, the end of where they go, and how many;
    and where the results are. The numbers are filled in for each example.
    """
    program = run.program
    (loss,) = program.outputs.tolist()
    end = int(program.inputs[-1]) + 1
    return [run.table.ctypes.data, len(run.table), 0, end, 0, loss, program.gradients.start]


_Function: TypeAlias = "tuple[str, Callable[[], ir.Module]]"  # its name, and what makes a module with it


class NativeExecutable(Executable):
    """A program and its buffer, ready to run in native code."""

    batches = NativeBatches

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        super().__init__(program, buffer)
        self.raised: list[BaseException] = []
        self.calls_python = False
        self._kept: list[Any] = []  # what the table has addresses of must stay in memory
        self._unlinked: list[tuple[Integers, list[_Function]]] = []  # functions, and where their addresses go
        neighbours = [(small, [*kernels]) for small, kernels in groupby(program.kernels, self._is_small)]
        self.table = self._table([step for small, kernels in neighbours for step in self._steps(kernels, small)])
        self._run = _RUN(self._link())
        self._call = (self.buffer.ctypes.data, self.table.ctypes.data, len(self.table))

    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""
        self._run(*self._call)
        self.raise_what_was_raised()

    def parts(self) -> list[Callable[[], object]]:
        """For each kernel and loop of the program a call that runs it alone, on what is in the buffer."""
        table = self._table([step for one in self.program.kernels for step in self._steps([one], self._is_small(one))])
        self._link()
        return [partial(self._run, self.buffer.ctypes.data, row.ctypes.data, 1) for row in table]

    def pace(self, kernel: Kernel) -> Pace:
        """How a kernel's numbers are computed."""
        if isinstance(kernel, Map) and not native_name(kernel.primitive):
            return Pace.IN_PYTHON
        return Pace.IN_VECTORS if vector_of(kernel)[0] else Pace.ONE_BY_ONE

    def raise_what_was_raised(self) -> None:
        """Raise the first error of the Python functions that native code has called."""
        if self.raised:
            error = self.raised[0]
            self.raised.clear()
            raise error

    def _is_small(self, kernel: Kernel | Loop) -> bool:
        return len(self.buffer) <= PLACES and is_small(kernel)

    def _table(self, steps: Sequence[tuple[_Function, int]]) -> Integers:
        """The table of some steps. The addresses of their functions are in it when these are linked."""
        table = np.array([(0, arguments) for _, arguments in steps], dtype=np.int64).reshape(-1, 2)
        self._kept.append(table)
        self._unlinked.append((table[:, 0], [function for function, _ in steps]))
        return table

    def _link(self) -> int:
        """Put the addresses of functions where they belong, and give the runner's. New ones are compiled together."""
        functions: dict[str, Callable[[], ir.Module]] = {"micrograd_run": _runner}
        for _, named in self._unlinked:
            functions.update(named)
        addresses = machine().addresses(functions)
        for places, named in self._unlinked:
            places[:] = [addresses[name] for name, _ in named]
        self._unlinked.clear()
        return addresses["micrograd_run"]

    def _steps(self, kernels: Sequence[Any], small: bool) -> list[tuple[_Function, int]]:
        """The steps of neighbours: one of all that are small, of others one of each."""
        if not small:
            return [self._step(kernel) for kernel in kernels]
        self._kept.append(words := Words(kernels))
        self._unlinked.append((words.functions, [*map(_function_of_primitive, words.primitives)]))
        return [(_function("micrograd_words", module_of_interpreter), words.arguments.ctypes.data)]

    def _step(self, kernel: Kernel | Loop) -> tuple[_Function, int]:
        if isinstance(kernel, Loop):
            return self._loop(kernel)
        code = code_of(kernel)
        arguments = self._arguments(kernel, code)
        self._kept.append(arguments)
        return _function(f"micrograd_{code.name}", partial(module_of, code)), arguments.ctypes.data

    def _loop(self, loop: Loop) -> tuple[_Function, int]:
        parts = together(loop.kernels)
        table = self._table([self._step(*part) if len(part) == 1 else _written_out(part) for part in parts])
        arguments = np.array([loop.turns, table.ctypes.data, len(table)], dtype=np.int64)
        self._kept.append(arguments)
        return ("micrograd_loop", _turner), arguments.ctypes.data

    def _arguments(self, kernel: Kernel, code: Code) -> Integers:
        turning = code.turning
        numbers: list[Any] = [kernel.rows, kernel.columns, *self._places(kernel.rows, kernel.target, turning)]
        if has_many_segments(kernel):
            for parts in sorted_segments(kernel).values():
                table = np.array([self._segment(kernel.rows, part, turning) for part in parts], dtype=np.int64)
                self._kept.append(table)
                numbers += [len(parts), table.ctypes.data]
            return np.array(numbers, dtype=np.int64)
        for access in kernel.accesses:
            numbers += self._places(kernel.rows, access, turning)
        if isinstance(kernel, Reduction):
            numbers += [part.terms for part in kernel.segments]
        elif isinstance(kernel, Take):
            numbers.append(kernel.terms)
        elif not native_name(kernel.primitive):
            self.calls_python = True
            function = _callback(kernel.primitive, len(kernel.operands), self.raised)
            self._kept.append(function)
            numbers.append(ctypes.cast(function, ctypes.c_void_p).value)
        return np.array(numbers, dtype=np.int64)

    def _segment(self, rows: int, part: Segment, turning: bool) -> list[int]:
        """A segment in a table: the bits of its coefficient, how many terms it has, and where its factors are."""
        (bits,) = unpack("q", pack("d", part.coefficient))
        return [bits, part.terms, *chain.from_iterable(self._places(rows, factor, turning) for factor in part.factors)]

    def _places(self, rows: int, access: Access, turning: bool) -> list[int]:
        """Where an operand is: the address of its table, and its steps along columns, terms and, in a loop, turns."""
        table = access.table if access.table is not None else access.row_table
        if table is None:
            table = access.base + access.row_step * np.arange(rows)
        self._kept.append(table := np.ascontiguousarray(table, dtype=np.int64))
        return [table.ctypes.data, access.column_step, access.term_step, *([access.turn_step] if turning else [])]


def _function(name: str, module_of_name: Callable[[str], ir.Module]) -> _Function:
    return name, partial(module_of_name, name)


def _function_of_primitive(primitive: Primitive) -> _Function:
    return _function(f"micrograd_primitive_{native_name(primitive)}", partial(module_of_primitive, primitive))


def _written_out(kernels: Sequence[Reduction | Map]) -> tuple[_Function, int]:
    """The step of small neighbours in a loop, whose function needs no arguments."""
    found = scalars(kernels)
    return _function(name_of(found), partial(module_of_scalars, found)), 0


def _callback(primitive: Primitive, operands: int, raised: list[BaseException]) -> Any:
    """A primitive's forward function in Python, to be called from native code."""
    return ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * operands)(in_python(primitive, raised))


BACKEND = Backend("llvm", NativeExecutable)
