"""Loops of a program as scans of JAX, so that XLA compiles their body once.

In a Program, a loop reads and writes further on in the buffer at each turn. In ``h = tanh(w * h + x)`` it reads w at
the same place at all turns, x one place further at each, and h where the turn before has written it. A scan has no
buffer; so each number that a turn reads is one of

    fixed       read once, before the scan: w
    moving      a row of an array with a row for each turn: x
    of a turn   what a kernel of the same turn made, or one of so many turns before: h, which the scan carries

Every place that a turn reads is looked up, of all turns. Where a loop does anything else, as none that the compiler
makes does, its turns are to be written out.
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
    from micrograd.compiler.backends.jax.jax_reads import Places, Reader
    from micrograd.compiler.ir.program import Access, Kernel, Loop
    from micrograd.compiler.numbers import Integers


class Scan(NamedTuple):
    """A loop as a scan.

    Attributes:
        targets: for each kernel, where it writes at each turn: a row for each turn.
        function: of the arrays before the loop, gives what each kernel made: a row for each turn.
    """

    targets: list[Integers]
    function: Callable[[Sequence[Any]], Sequence[Any]]


class _Read(NamedTuple):
    """What an operand reads: of each number, where it is at each turn, and who makes it.

    Attributes:
        shape: rows, columns and terms.
        places: a row for each turn; only one where nothing moves.
        kernels: the kernel of the loop that makes it; -1 for none.
        lags: how many turns before.
        indices: which of the results of that kernel it is.
    """

    shape: tuple[int, int, int]
    places: Integers
    kernels: Integers
    lags: Integers
    indices: Integers


class _Turn(NamedTuple):
    """What can be read in a turn: arrays that are fixed, rows of moving ones, and flat arrays of numbers by number."""

    fixed: Sequence[Any]
    moving: Sequence[Any]
    flat: list[Any]


def scan_of(loop: Loop, places: Places, functions: Functions) -> Scan | None:
    """The scan of a loop; None if a turn reads or writes otherwise than a scan can.

    Args:
        loop: what is run.
        places: which arrays hold the numbers before the loop.
        functions: what its kernels are made of.
    """
    written = _Written(loop, len(places.array))
    reads: list[dict[tuple[int, int], _Read]] = []
    for number, kernel in enumerate(loop.kernels):
        found = {(id(access), terms): written.read(number, kernel, access, terms) for access, terms in kernel.reads}
        if written.is_twice or None in found.values():
            return None
        reads.append({key: read for key, read in found.items() if read is not None})
    return Scan(written.targets, _Body(loop, places, written.targets, reads, functions).run)


class _Written:
    """Which kernel of a loop writes each place, at which turn.

    Attributes:
        targets: for each kernel, the places that it writes: a row for each turn.
        is_twice: whether a place is written more than once.
    """

    def __init__(self, loop: Loop, size: int) -> None:
        self._turns = np.arange(loop.turns)[:, None]
        self._steps = np.array([kernel.target.turn_step for kernel in loop.kernels])
        self._kernel, self._turn, self._index = np.full((3, size), -1)
        self.targets = []
        count = 0
        for number, kernel in enumerate(loop.kernels):
            first = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
            places = first + kernel.target.turn_step * self._turns
            self._kernel[places], self._turn[places] = number, self._turns
            self._index[places] = np.arange(len(first))
            self.targets.append(places)
            count += places.size
        self.is_twice = int((self._kernel >= 0).sum()) < count

    def read(self, number: int, kernel: Kernel, access: Access, terms: int) -> _Read | None:
        """What an operand of a kernel reads; None if it is not the same at all turns."""
        first = access.positions(kernel.rows, kernel.columns, terms)
        places = first.ravel() + access.turn_step * (self._turns if access.turn_step else self._turns[:1])
        kernels, last = self._kernel[places], self._turns[-1, 0]
        made = kernels[-1]
        lags = np.where(made >= 0, last - self._turn[places[-1]], 0)
        indices = np.where(made >= 0, self._index[places[-1]], 0)
        inside = (made >= 0) & (self._turns[: len(places)] >= lags)
        is_alike = (
            (kernels == np.where(inside, made, -1))
            & (np.where(inside, self._turn[places] + lags - self._turns[: len(places)], 0) == 0)
            & (np.where(inside, self._index[places] - indices, 0) == 0)
        ).all()
        is_before = (lags > 0) | ((lags == 0) & (made < number))
        moves = (made < 0) | (self._steps[made] == access.turn_step)
        if not is_alike or not (is_before & moves).all() or (not access.turn_step and (made >= 0).any()):
            return None
        return _Read(first.shape, places, made, lags, indices)


class _Body:
    """What is carried from turn to turn, what is read before the scan, and what a turn does.

    Args:
        loop: what is run.
        places: which arrays hold the numbers before it.
        targets: for each kernel, the places that it writes: a row for each turn.
        reads: for each kernel, what each of its operands reads.
        functions: what kernels are made of.
    """

    def __init__(
        self,
        loop: Loop,
        places: Places,
        targets: list[Integers],
        reads: list[dict[tuple[int, int], _Read]],
        functions: Functions,
    ) -> None:
        self._turns, self._places = loop.turns, places
        self._fixed: list[Reader] = []
        self._moving: list[Reader] = []
        self._others: list[Reader] = []  # numbers from before the loop that are beside others in an operand
        counts = [written.shape[1] for written in targets]
        self._carried = _carried(reads, counts)
        steps = [kernel.target.turn_step for kernel in loop.kernels]
        self._first = [
            places.reader(targets[kernel][0][indices] - lag * steps[kernel])
            for (kernel, lag), indices in self._carried.items()
        ]
        mixed = [read for found in reads for read in found.values() if (read.kernels >= 0).any()]
        others = [read for read in mixed if (read.kernels < 0).any()]
        for read in others:
            self._others.append(places.reader(read.places[:, read.kernels < 0]))
        self._start = len(self._carried) + len(others)  # the number of the first kernel's array
        self._lengths = [len(indices) for indices in self._carried.values()]
        self._lengths += [int((read.kernels < 0).sum()) for read in others]
        self._lengths += counts
        numbers = {id(read): len(self._carried) + number for number, read in enumerate(others)}
        self._functions = [
            function_of(kernel, partial(self._operand, found, numbers), functions)
            for kernel, found in zip(loop.kernels, reads, strict=True)
        ]

    def _operand(
        self, found: dict[tuple[int, int], _Read], numbers: dict[int, int], access: Access, terms: int
    ) -> Reader:
        return self._reader(found[id(access), terms], numbers)

    def _reader(self, read: _Read, numbers: dict[int, int]) -> Reader:
        """A function of a turn that reads an operand."""
        if (read.kernels >= 0).any():
            return self._reader_of_numbers(read, numbers.get(id(read), -1))
        if len(read.places) == 1:
            number = len(self._fixed)
            self._fixed.append(self._places.reader(read.places.reshape(read.shape)))
            return lambda turn: turn.fixed[number]
        number = len(self._moving)
        places = self._places.reader(read.places.reshape(-1, *read.shape))
        self._moving.append(lambda arrays: jnp.broadcast_to(found := places(arrays), (self._turns, *found.shape[1:])))
        return lambda turn: turn.moving[number]

    def _reader_of_numbers(self, read: _Read, others: int) -> Reader:
        """A function of a turn that reads an operand number by number."""
        array, offset = self._start + read.kernels, read.indices.copy()
        outside = read.kernels < 0
        array[outside], offset[outside] = others, np.arange(int(outside.sum()))
        for number, ((kernel, lag), indices) in enumerate(self._carried.items()):
            chosen = (read.kernels == kernel) & (read.lags == lag)
            array[chosen], offset[chosen] = number, np.searchsorted(indices, read.indices[chosen])
        flat = reader_of(array.reshape(read.shape), offset.reshape(read.shape), self._lengths)
        return lambda turn: flat(turn.flat)

    def run(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """What each kernel makes: a row for each turn."""
        fixed = [read(arrays) for read in self._fixed]
        moving = [read(arrays) for read in self._moving]
        pairs = zip(self._others, self._lengths[len(self._carried) :], strict=False)
        others = [jnp.broadcast_to(read(arrays), (self._turns, length)) for read, length in pairs]
        keys = list(self._carried)

        def step(carried: list[Any], rows: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            turn = _Turn(fixed, rows[0], [*carried, *rows[1]])
            for function in self._functions:
                turn.flat.append(function(turn))
            made = turn.flat[self._start :]
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
        _, made = lax.scan(step, first, (moving, others), length=self._turns)
        return made


def _chosen(array: Any, indices: Integers) -> Any:
    return array if len(indices) == len(array) else array[indices]


def _carried(reads: list[dict[tuple[int, int], _Read]], counts: list[int]) -> dict[tuple[int, int], Integers]:
    """Which results of each kernel are carried, by the kernel and how many turns before they were made."""
    marks: dict[tuple[int, int], Any] = {}
    for found in reads:
        for read in found.values():
            for kernel, lag in {*zip(read.kernels.tolist(), read.lags.tolist(), strict=True)}:
                indices = read.indices[(read.kernels == kernel) & (read.lags == lag)]
                for turns in range(1, lag + 1):  # what was made three turns before was carried through the two between
                    marks.setdefault((kernel, turns), np.zeros(counts[kernel], dtype=bool))[indices] = True
    return {key: np.flatnonzero(marked) for key, marked in sorted(marks.items())}
