"""Loops of a program as scans of JAX, so that XLA compiles their body once.

In a Program, a loop reads and writes further on in the buffer at each iteration. In ``h = tanh(w * h + x)`` it reads w
at the same position at all iterations, x one position further at each, and h where the iteration before has written
it. A scan has no buffer; so each number that an iteration reads is one of

    fixed       read once, before the scan: w
    moving      a row of an array with a row for each iteration: x
    of an iteration   what a kernel of the same iteration made, or one of so many iterations before: h, which the scan
    carries

Every position that an iteration reads is looked up, of all iterations. Where a loop does anything else, as none that
the compiler makes does, its iterations are to be written out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from micrograd.compiler.backends.jax.jax_kernels import function_of
from micrograd.compiler.backends.jax.jax_reads import reader_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.backends.jax.jax_functions import Functions
    from micrograd.compiler.backends.jax.jax_reads import Positions, Reader
    from micrograd.compiler.ir.program import Access, Kernel, Loop
    from micrograd.compiler.numbers import Integers


class Scan(NamedTuple):
    """A loop as a scan.

    Attributes:
        targets: for each kernel, where it writes at each iteration: a row for each iteration.
        function: of the arrays before the loop, gives what each kernel made: a row for each iteration.
    """

    targets: list[Integers]
    function: Callable[[Sequence[Any]], Sequence[Any]]


class _Read(NamedTuple):
    """What an operand reads: of each number, where it is at each iteration, and who makes it.

    Attributes:
        shape: rows, columns and terms.
        positions: a row for each iteration; only one where nothing moves.
        kernels: the kernel of the loop that makes it; -1 for none.
        lags: how many iterations before.
        indices: which of the results of that kernel it is.
    """

    shape: tuple[int, int, int]
    positions: Integers
    kernels: Integers
    lags: Integers
    indices: Integers


class _Iteration(NamedTuple):
    """What can be read in an iteration: fixed arrays, rows of moving ones, and flat arrays of numbers."""

    fixed: Sequence[Any]
    moving: Sequence[Any]
    flat: list[Any]


def scan_of(loop: Loop, positions: Positions, functions: Functions) -> Scan | None:
    """The scan of a loop; None if an iteration reads or writes otherwise than a scan can.

    Args:
        loop: what is run.
        positions: which arrays hold the numbers before the loop.
        functions: what its kernels are made of.
    """
    written = _Written(loop, len(positions.array))
    reads: list[dict[tuple[int, int], _Read]] = []
    for number, kernel in enumerate(loop.kernels):
        found = {(id(access), terms): written.read(number, kernel, access, terms) for access, terms in kernel.reads}
        if written.is_twice or None in found.values():
            return None
        reads.append({key: read for key, read in found.items() if read is not None})
    return Scan(written.targets, _Body(loop, positions, written.targets, reads, functions).run)


class _Written:
    """Which kernel of a loop writes each position, at which iteration.

    Attributes:
        targets: for each kernel, the positions that it writes: a row for each iteration.
        is_twice: whether a position is written more than once.
    """

    def __init__(self, loop: Loop, size: int) -> None:
        self._iterations = np.arange(loop.iterations)[:, None]
        self._steps = np.array([kernel.target.iteration_step for kernel in loop.kernels])
        self._kernel, self._iteration, self._index = np.full((3, size), -1)
        self.targets = []
        count = 0
        for number, kernel in enumerate(loop.kernels):
            first = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
            positions = first + kernel.target.iteration_step * self._iterations
            self._kernel[positions], self._iteration[positions] = number, self._iterations
            self._index[positions] = np.arange(len(first))
            self.targets.append(positions)
            count += positions.size
        self.is_twice = int((self._kernel >= 0).sum()) < count

    def read(self, number: int, kernel: Kernel, access: Access, terms: int) -> _Read | None:
        """What an operand of a kernel reads; None if it is not the same at all iterations."""
        first = access.positions(kernel.rows, kernel.columns, terms)
        positions = first.ravel() + access.iteration_step * (
            self._iterations if access.iteration_step else self._iterations[:1]
        )
        kernels, last = self._kernel[positions], self._iterations[-1, 0]
        made = kernels[-1]
        lags = np.where(made >= 0, last - self._iteration[positions[-1]], 0)
        indices = np.where(made >= 0, self._index[positions[-1]], 0)
        inside = (made >= 0) & (self._iterations[: len(positions)] >= lags)
        is_alike = (
            (kernels == np.where(inside, made, -1))
            & (np.where(inside, self._iteration[positions] + lags - self._iterations[: len(positions)], 0) == 0)
            & (np.where(inside, self._index[positions] - indices, 0) == 0)
        ).all()
        is_before = (lags > 0) | ((lags == 0) & (made < number))
        moves = (made < 0) | (self._steps[made] == access.iteration_step)
        if not is_alike or not (is_before & moves).all() or (not access.iteration_step and (made >= 0).any()):
            return None
        return _Read(first.shape, positions, made, lags, indices)


class _Body:
    """What is carried from iteration to iteration, what is read before the scan, and what an iteration does.

    Args:
        loop: what is run.
        positions: which arrays hold the numbers before it.
        targets: for each kernel, the positions that it writes: a row for each iteration.
        reads: for each kernel, what each of its operands reads.
        functions: what kernels are made of.
    """

    def __init__(
        self,
        loop: Loop,
        positions: Positions,
        targets: list[Integers],
        reads: list[dict[tuple[int, int], _Read]],
        functions: Functions,
    ) -> None:
        self._iterations, self._positions = loop.iterations, positions
        self._fixed: list[Reader] = []
        self._moving: list[Reader] = []
        self._others: list[Reader] = []  # numbers from before the loop that are beside others in an operand
        counts = [written.shape[1] for written in targets]
        self._carried = _carried(reads, counts)
        steps = [kernel.target.iteration_step for kernel in loop.kernels]
        self._first = [
            positions.reader(targets[kernel][0][indices] - lag * steps[kernel])
            for (kernel, lag), indices in self._carried.items()
        ]
        mixed = [read for found in reads for read in found.values() if (read.kernels >= 0).any()]
        others = [read for read in mixed if (read.kernels < 0).any()]
        for read in others:
            self._others.append(positions.reader(read.positions[:, read.kernels < 0]))
        self._start = len(self._carried) + len(others)  # the number of the first kernel's array
        self._lengths = [len(indices) for indices in self._carried.values()]
        self._lengths += [int((read.kernels < 0).sum()) for read in others]
        self._lengths += counts
        numbers = {id(read): len(self._carried) + number for number, read in enumerate(others)}
        self._functions = [
            function_of(kernel, partial(self._reader, found, numbers), functions)
            for kernel, found in zip(loop.kernels, reads, strict=True)
        ]

    def _reader(
        self, found: dict[tuple[int, int], _Read], numbers: dict[int, int], access: Access, terms: int
    ) -> Reader:
        """A function of an iteration that reads an operand."""
        read = found[id(access), terms]
        if (read.kernels >= 0).any():
            return self._reader_of_numbers(read, numbers.get(id(read), -1))
        if len(read.positions) == 1:
            number = len(self._fixed)
            self._fixed.append(self._positions.reader(read.positions.reshape(read.shape)))
            return lambda iteration: iteration.fixed[number]
        number = len(self._moving)
        positions = self._positions.reader(read.positions.reshape(-1, *read.shape))
        self._moving.append(
            lambda arrays: jnp.broadcast_to(found := positions(arrays), (self._iterations, *found.shape[1:]))
        )
        return lambda iteration: iteration.moving[number]

    def _reader_of_numbers(self, read: _Read, others: int) -> Reader:
        """A function of an iteration that reads an operand number by number."""
        array, offset = self._start + read.kernels, read.indices.copy()
        outside = read.kernels < 0
        array[outside], offset[outside] = others, np.arange(int(outside.sum()))
        for number, ((kernel, lag), indices) in enumerate(self._carried.items()):
            chosen = (read.kernels == kernel) & (read.lags == lag)
            array[chosen], offset[chosen] = number, np.searchsorted(indices, read.indices[chosen])
        flat = reader_of(array.reshape(read.shape), offset.reshape(read.shape), self._lengths)
        return lambda iteration: flat(iteration.flat)

    def run(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """What each kernel makes: a row for each iteration."""
        fixed = [read(arrays) for read in self._fixed]
        moving = [read(arrays) for read in self._moving]
        pairs = zip(self._others, self._lengths[len(self._carried) :], strict=False)
        others = [jnp.broadcast_to(read(arrays), (self._iterations, length)) for read, length in pairs]
        keys = list(self._carried)

        def step(carried: list[Any], rows: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            iteration = _Iteration(fixed, rows[0], [*carried, *rows[1]])
            for function in self._functions:
                iteration.flat.append(function(iteration))
            made = iteration.flat[self._start :]
            following = []
            for kernel, lag in keys:
                indices = self._carried[kernel, lag]
                if lag == 1:
                    following.append(_chosen(made[kernel], indices))
                else:
                    before = np.searchsorted(self._carried[kernel, lag - 1], indices)
                    following.append(_chosen(carried[keys.index((kernel, lag - 1))], before))
            return following, made

        first = [
            jnp.broadcast_to(read(arrays), length) for read, length in zip(self._first, self._lengths, strict=False)
        ]
        _, made = lax.scan(step, first, (moving, others), length=self._iterations)
        return made


def _chosen(array: Any, indices: Integers) -> Any:
    return array if len(indices) == len(array) else array[indices]


def _carried(reads: list[dict[tuple[int, int], _Read]], counts: list[int]) -> dict[tuple[int, int], Integers]:
    """Which results of each kernel are carried, by the kernel and how many iterations before they were made."""
    marks: dict[tuple[int, int], Any] = {}
    for found in reads:
        for read in found.values():
            for kernel, lag in {*zip(read.kernels.tolist(), read.lags.tolist(), strict=True)}:
                indices = read.indices[(read.kernels == kernel) & (read.lags == lag)]
                # what was made three iterations before was carried through the two between
                for iterations in range(1, lag + 1):
                    marks.setdefault((kernel, iterations), np.zeros(counts[kernel], dtype=bool))[indices] = True
    return {key: np.flatnonzero(marked) for key, marked in sorted(marks.items())}
