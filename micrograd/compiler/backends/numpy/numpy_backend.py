"""The NumPy backend: each kernel is one or two calls of NumPy on views of the buffer.

The reference for the other backends. The views are made once: a matrix product over the buffer

    np.matmul(first, second, out=target)

reads its operands where the kernels before it wrote them, and copies nothing. Only operands that are
gathered through a table are copied.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from micrograd.compiler.backends.shared.backend import Backend
from micrograd.compiler.backends.shared.batches import Batches, first_own_input, in_packs
from micrograd.compiler.backends.shared.deciding import RunOfRegion
from micrograd.compiler.backends.shared.executable import Executable, InFloat32
from micrograd.compiler.backends.shared.python_calls import in_python
from micrograd.compiler.backends.shared.written import functions_of
from micrograd.compiler.ir.program import Map, Reduction, unrolled
from micrograd.compiler.passes.lists import NUMPY
from micrograd.compiler.passes.packs import Packing
from micrograd.engine import further_primitives, primitives
from micrograd.engine.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.program import Access, Kernel, Program, Segment, Take
    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.engine.primitive import Primitive

# Up to so many results have their terms added at once: eight terms of one number take 0.7 us in place of 8.4, of 64
# numbers 11 in place of 7.
_FEW = 64


def _power(x: Floats, y: Floats) -> Floats:
    # C has a power of minus infinity with any exponent
    return np.asarray(np.where((x == -np.inf) & (y != np.rint(y)), np.nan, np.power(x, y)))


# The base operations on arrays. What is made of them follows, and any other primitive is called element by element.
FUNCTIONS: dict[Primitive, Callable[..., Any]] = {
    **functions_of(np),
    primitives.pow: _power,
    primitives.log1p: np.log1p,
    primitives.sinh: np.sinh,
    primitives.cosh: np.cosh,
    further_primitives.exp2: np.exp2,
    further_primitives.atanh: np.arctanh,
    further_primitives.floor_divide: np.floor_divide,
    further_primitives.remainder: np.remainder,
}


class NumpyBatches(Batches):
    """Runs the programs of the examples of a batch."""

    packing = Packing(64, irregular=True)  # the calls of NumPy take most of the time

    def __init__(
        self,
        buffer: Floats,
        runs: Sequence[NumpyExecutable],
        numbers: Sequence[Floats] | Floats,
        which: Integers,
        gradients: slice,
    ) -> None:
        self._buffer, self._gradients = buffer, gradients
        self._runs, self._numbers, self._which = runs, numbers, which.tolist()
        self._sizes = [len(run.program.outputs) for run in runs]

    def run(self, batch: Sequence[int]) -> list[float]:
        """The losses of some examples, in any order; their mean gradient is in its place in the buffer then."""
        buffer, losses = self._buffer, []
        total = np.zeros(self._gradients.stop - self._gradients.start)
        order, packs = in_packs(batch, self._which, self._sizes)
        for number, begin, end in zip(packs[::3], packs[1::3], packs[2::3], strict=True):
            run, size = self._runs[number], self._sizes[number]
            program, examples = run.program, order[begin:end]
            examples += examples[-1:] * (size - len(examples))  # the last one, where none is left
            numbers = np.concatenate([self._numbers[example] for example in examples])
            first = first_own_input(program, len(numbers) // size)
            buffer[program.inputs[first : first + len(numbers)]] = numbers
            buffer[program.seeds] = np.arange(size) < end - begin
            run.run()
            losses += buffer[program.outputs[: end - begin]].tolist()
            total += buffer[program.gradients] / len(batch)
        buffer[self._gradients] = total
        return losses


class NumpyExecutable(Executable):
    """A program and its buffer, ready to run on NumPy."""

    batches = NumpyBatches
    functions = FUNCTIONS

    def __init__(self, program: Program, buffer: Floats | None = None) -> None:
        super().__init__(program, buffer)
        self._of_kernels = [[*map(self._step, unrolled(kernel))] for kernel in program.kernels]
        self._steps = [*chain.from_iterable(self._of_kernels)]

    def run(self) -> None:
        """Run the kernels on what is in the buffer. Overflow and the like leave infinities and NaNs there."""
        self._run(self._steps)

    def parts(self) -> list[Callable[[], object]]:
        """For each kernel and loop of the program a call that runs it alone, on what is in the buffer."""
        return [partial(self._run, steps) for steps in self._of_kernels]

    @staticmethod
    def _run(steps: Sequence[Callable[[], object]]) -> None:
        with np.errstate(all="ignore"):
            for step in steps:
                step()

    def _step(self, kernel: Kernel) -> Callable[[], object]:
        if isinstance(kernel, Reduction):
            return self._reduction(kernel)
        if isinstance(kernel, Map):
            return self._map(kernel)
        return self._take(kernel)

    def _view(
        self, access: Access, rows: int, columns: int, terms: int | None = None, first: bool = False
    ) -> Callable[[], Floats]:
        """A function that gives the operand as an array: a view that is made once, or a copy through a table.

        Args:
            access: where its numbers are.
            rows: how many there are.
            columns: how many there are.
            terms: how many there are; None for an array of rows and columns.
            first: whether terms are the first axis, and not the last.
        """
        shape = (rows, columns) if terms is None else (rows, columns, terms)
        if access.table is None:
            steps = (access.row_step, access.column_step, access.term_step)[: len(shape)]
            view = as_strided(self.buffer[access.base :], shape, [self.dtype.itemsize * step for step in steps])
            view = np.moveaxis(view, -1, 0) if first else view
            return lambda: view
        positions = access.positions(rows, columns, terms or 1).reshape(shape)
        positions = np.ascontiguousarray(np.moveaxis(positions, -1, 0)) if first else positions
        return lambda: self.buffer[positions]

    def _store(self, access: Access, rows: int, columns: int) -> Callable[[Floats], None]:
        if access.table is None:
            target = self._view(access, rows, columns)()

            def store(result: Floats) -> None:
                target[...] = result
        else:
            positions = access.positions(rows, columns, 1).squeeze(2)

            def store(result: Floats) -> None:
                self.buffer[positions] = result

        return store

    def _reduction(self, kernel: Reduction) -> Callable[[], object]:
        if kernel.is_in_order:
            return self._sum_in_order(kernel)
        parts = [
            self._largest(kernel, index) if kernel.largest else self._sum(kernel, index)
            for index in range(len(kernel.segments))
        ]
        store = self._store(kernel.target, kernel.rows, kernel.columns)
        combine = np.maximum if kernel.largest else np.add
        first, *others = parts

        def step() -> None:
            result = first()
            for part in others:
                result = combine(result, part())
            store(result)

        return step

    def _largest(self, kernel: Reduction, index: int) -> Callable[[], Floats]:
        part = kernel.segments[index]
        view = self._view(part.first, kernel.rows, kernel.columns, part.terms)
        return lambda: (part.coefficient * view()).max(axis=2)

    def _sum_in_order(self, kernel: Reduction) -> Callable[[], object]:
        """The terms one after the other, for all results at a time."""
        rows, columns = kernel.rows, kernel.columns
        parts = [self._products(part, rows, columns) for part in kernel.segments]
        if kernel.from_zero:
            zeros = np.zeros((1, rows, columns), dtype=self.dtype)
            parts.insert(0, lambda: zeros)
        store = self._store(kernel.target, rows, columns)
        first, *others = parts
        if kernel.terms == 1 and not others:
            return lambda: store(first()[0])
        if rows * columns > _FEW or kernel.terms == len(kernel.segments):
            return lambda: store(_added_one_by_one([part() for part in parts]))
        if not others:
            return lambda: store(_added_at_once(first()))
        return lambda: store(_added_at_once(np.concatenate([part() for part in parts])))

    def _products(self, part: Segment, rows: int, columns: int) -> Callable[[], Floats]:
        """A function that gives a segment's terms: the first axis is that of the terms."""
        x, *others = [self._view(access, rows, columns, part.terms, first=True) for access in part.factors]
        coefficient = part.coefficient
        if not others:
            return x if coefficient == 1 else lambda: coefficient * x()
        (y,) = others
        return (lambda: x() * y()) if coefficient == 1 else lambda: coefficient * (x() * y())

    def _sum(self, kernel: Reduction, index: int) -> Callable[[], Floats]:
        part = kernel.segments[index]
        rows, columns, terms, coefficient = kernel.rows, kernel.columns, part.terms, part.coefficient
        if part.second is None:
            view = self._view(part.first, rows, columns, terms)
            return lambda: coefficient * view().sum(axis=2)
        first, second = part.first, part.second
        if terms == 1:
            x, y = self._view(first, rows, columns), self._view(second, rows, columns)
            return lambda: coefficient * x() * y()
        for one, other in ((first, second), (second, first)):
            if not (one.gathers or other.gathers or one.column_step):
                x = self._view(one, rows, 1, terms)
                if not other.row_step and other.table is None:  # a product of two matrices
                    y = self._view(other, 1, columns, terms)
                    return lambda: coefficient * np.matmul(x().squeeze(1), y().squeeze(0).T)
                y = self._view(other, rows, columns, terms)
                return lambda: coefficient * np.matmul(x(), y().swapaxes(1, 2)).squeeze(1)
        x, y = self._view(first, rows, columns, terms), self._view(second, rows, columns, terms)
        return lambda: coefficient * np.einsum("rct,rct->rc", x(), y())

    def _map(self, kernel: Map) -> Callable[[], object]:
        function = on_arrays(kernel.primitive)
        operands = [self._view(access, kernel.rows, kernel.columns) for access in kernel.operands]
        store = self._store(kernel.target, kernel.rows, kernel.columns)
        return lambda: store(function(*[operand() for operand in operands]))

    def _take(self, kernel: Take) -> Callable[[], object]:
        positions = kernel.elements.positions(kernel.rows, kernel.columns, kernel.terms)
        index = self._view(kernel.index, kernel.rows, kernel.columns)
        store = self._store(kernel.target, kernel.rows, kernel.columns)

        def step() -> None:
            chosen = index()
            valid = (chosen >= -kernel.terms) & (chosen < kernel.terms) & (chosen == np.rint(chosen))
            element = chosen.astype(np.int64) % kernel.terms  # where it is not valid, any will do
            found = self.buffer[np.take_along_axis(positions, element[..., None], axis=2).squeeze(2)]
            store(np.where(valid, found, np.nan))

        return step


def _added_at_once(terms: Floats) -> Floats:
    """The sum over the first axis, in order: the last of all partial sums. It goes through the results one by one."""
    return np.add.accumulate(terms, axis=0)[-1]


def _added_one_by_one(parts: list[Floats]) -> Floats:
    """The sum over the first axes of arrays, in order."""
    total, *others = chain.from_iterable(parts)
    for term in others:
        total = total + term
    return total


def on_arrays(primitive: Primitive) -> Callable[..., Floats]:
    """A primitive's forward function on arrays."""
    if primitive in FUNCTIONS:
        return FUNCTIONS[primitive]
    if primitive.composite:
        return partial(primitive.composite, Operations(on_arrays, np.any))
    return _elementwise(primitive)


def _elementwise(primitive: Primitive) -> Callable[..., Floats]:
    """A primitive's forward function on arrays; NaN where it raises. The eager run then says what is wrong."""

    def function(*operands: Floats) -> Floats:
        return np.asarray(np.frompyfunc(forward, len(operands), 1)(*operands), dtype=float)

    forward = in_python(primitive)
    return function


class _InFloat32(InFloat32, NumpyExecutable):
    """A program on NumPy with numbers in float32."""


BACKEND = Backend(
    *("numpy", NumpyExecutable, NUMPY),
    lower_in_float32=_InFloat32,
    decide=partial(RunOfRegion, lower=NumpyExecutable),
)
