"""Sums of different lengths, as loops that add each term to the sum that a table names.

    y[0] = x[2] + x[5] + x[9]                      for (int row = 0; row < 3; row++) y[row] = -0.0;
    y[1] = x[0] + x[7]                       ->    for (int row = 0; row < 10; row++) y[at[row]] += x[row];
    y[2] = x[1] + x[3] + x[4] + x[6] + x[8]

Such are the gradients of what is read by a table: where 20 cameras saw 1,000 points, the table says which camera it was
each time. A kernel for each length would have that table once more, turned around. Sums of few terms keep their order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from micrograd.compiler.backends.c.distinct_rows import added, fewer_numbers
from micrograd.compiler.backends.c.memory import lookup_in
from micrograd.compiler.backends.c.regions import Added, even_parts, regions_of
from micrograd.compiler.ir.program import Reduction
from micrograd.compiler.numbers import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from micrograd.compiler.backends.c.regions import Block, Item
    from micrograd.compiler.ir.program import Access, Program
    from micrograd.compiler.numbers import Booleans, Integers

_FEWEST = 3  # kernels that are worth it
_LONG_SUM = 16  # terms of a sum that is moved beside others
_LARGE = 256  # results of a kernel that stays as it is
_PARTS = 4  # loops that set sums to 0; more are one, with a table
_LOOP, _OPERAND, _ENTRY = 80, 30, 4  # characters of a loop, of an operand, and of a number of a table, about

_Key: TypeAlias = "tuple[float | int, ...]"


def scattered(blocks: Sequence[Block], program: Program, gradients: Integers) -> list[Block]:
    """The blocks, with loops in place of sums of different lengths.

    Args:
        blocks: the kernels of a program.
        program: which it is.
        gradients: where its gradients are, in the order of the file.
    """
    region_of, array_of = regions_of(blocks, program.size), _arrays(program, gradients)
    found = []
    for block in blocks:
        if block.iterations == 1:
            clusters = _clusters(block.kernels, region_of, array_of)
            kernels = [*block.kernels]
            for cluster in clusters:
                kernels = _beside(kernels, cluster, program.size)
            of_kernel = {id(kernel): number for number, cluster in enumerate(clusters) for kernel in cluster}
            orders = [(block.kernels, {}), (kernels, of_kernel)][: 1 + bool(clusters)]
            ways = [tuple(_scattered(order, numbers, region_of, array_of)) for order, numbers in orders]
            block = replace(block, kernels=min(ways, key=lambda way: sum(map(_characters, way))))
        found.append(block)
    return found


def _arrays(program: Program, gradients: Integers) -> Integers:
    """For each position a number, the same for those that may be in the same array of C."""
    kind = np.full(program.size, -1)  # of the work array
    given = [program.inputs, program.seeds, *(start + np.arange(len(numbers)) for start, numbers in program.constants)]
    for positions in (*given, program.outputs):
        kind[positions] = program.size + positions  # apart: one may be anywhere
    kind[gradients] = np.arange(len(gradients)) - gradients + 3 * program.size
    return kind


def _clusters(kernels: Sequence[Item], region_of: Integers, array_of: Integers) -> list[list[Item]]:
    """Long sums of products of the same arrays, of which many are uneven; they are to stand beside each other.

    Such are sums over the iterations of a loop: those of one array of it, and of the same number in each iteration.
    """
    groups: dict[_Key, list[tuple[int, int, Item]]] = {}
    for kernel in kernels:
        if isinstance(kernel, Reduction) and not kernel.largest and kernel.terms >= _LONG_SUM:
            key, positions = _longest(kernel, region_of)
            step = int(np.gcd.reduce(np.diff(positions[0])))
            inside = positions[:, 0] % step if step else positions[:, 0]
            target = int(array_of[kernel.target.positions(kernel.rows, kernel.columns, 1).flat[0]])
            groups.setdefault((target, step, *key), []).append((int(inside.min()), int(inside.max()), kernel))
    found: list[list[Item]] = []
    for members in groups.values():
        end = -2
        for first, last, kernel in sorted(members, key=lambda member: member[:2]):
            if first > end + 1:
                found.append([])
            found[-1].append(kernel)
            end = max(end, last)
    return [cluster for cluster in found if sum(map(_is_uneven, cluster)) >= _FEWEST]


def _longest(kernel: Reduction, region_of: Integers) -> tuple[_Key, Integers]:
    """The coefficient and the arrays of most of the terms, and where their first factors are, a row for each sum."""
    found: dict[_Key, list[Integers]] = {}
    for part in kernel.segments:
        shape = kernel.rows, kernel.columns, part.terms
        factors = [np.broadcast_to(access.positions(*shape), shape).reshape(-1, part.terms) for access in part.factors]
        key = part.coefficient, *(int(region_of[factor[0, 0]]) for factor in factors)
        found.setdefault(key, []).append(factors[0])
    return max(
        ((key, np.concatenate(parts, axis=1)) for key, parts in found.items()), key=lambda item: item[1].shape[1]
    )


def _beside(kernels: list[Item], group: Sequence[Item], size: int) -> list[Item]:
    """The kernels, with a group of them beside each other: they wait, and what needs their results waits, too."""
    is_written, is_read = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
    of_group = {id(kernel) for kernel in group}
    numbers = [number for number, kernel in enumerate(kernels) if id(kernel) in of_group]
    first, last = numbers[0], numbers[-1]
    parts: tuple[list[Item], ...] = [], [], []
    before, beside, after = parts
    for kernel in kernels[first : last + 1]:
        target = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
        reads = [access.positions(kernel.rows, kernel.columns, terms).ravel() for access, terms in kernel.reads]
        must_wait = is_written[target].any() or is_read[target].any() or any(is_written[read].any() for read in reads)
        if not must_wait and id(kernel) not in of_group:
            before.append(kernel)
            continue
        (after if must_wait else beside).append(kernel)
        is_written[target] = True
        for read in reads:
            is_read[read] = True
    beside.sort(key=lambda kernel: (not _is_uneven(kernel), kernel.terms))
    return [*kernels[:first], *before, *beside, *after, *kernels[last + 1 :]]


def _scattered(
    kernels: Sequence[Item], cluster_of: Mapping[int, int], region_of: Integers, array_of: Integers
) -> Iterator[Item]:
    group, before = _Group(region_of, array_of), -1
    for kernel in kernels:
        cluster, before = before, cluster_of.get(id(kernel), -1)
        if cluster != before or not group.takes(kernel):
            yield from group.items()
            group = _Group(region_of, array_of)
            if not group.takes(kernel):
                yield kernel
    yield from group.items()


class _Terms(NamedTuple):
    """Terms that are added in one loop.

    Attributes:
        targets: the position of the sum of each.
        factors: the positions of one factor, or two.
        is_ordered: whether they keep their order.
    """

    targets: Integers
    factors: list[Integers]
    is_ordered: Booleans

    def added(self, coefficient: float) -> Added:
        """The loop. What is read comes in the order in which it lies there, if sums keep theirs."""
        key = max(self.factors, key=lambda factor: len(distinct(factor)))
        order = np.argsort(key, kind="stable")
        kept = order[self.is_ordered[order]]
        by_sum = kept[np.argsort(self.targets[kept], kind="stable")]
        if ((np.diff(by_sum) < 0) & (np.diff(self.targets[by_sum]) == 0)).any():
            order = np.arange(len(key))
        factors = [factor[order] for factor in self.factors]
        return added(self.targets[order], factors, coefficient, bool(len(kept)))


class _Group:
    """Kernels that become loops together.

    Args:
        region_of: for each position a number, the same for what is read or written together.
        array_of: and one that is the same for those that may be written together.
    """

    def __init__(self, region_of: Integers, array_of: Integers) -> None:
        self._region_of, self._array_of = region_of, array_of
        self._kernels: list[Reduction] = []
        self._parts: dict[_Key, list[_Terms]] = {}
        self._target: _Key = ()
        self._written, self._read = set[int](), set[int]()

    def takes(self, kernel: Item) -> bool:
        """Take a kernel, if it fits those before it; say whether it does."""
        if not isinstance(kernel, Reduction) or kernel.largest or kernel.rows * kernel.columns > _LARGE:
            return False
        goes_on = self._kernels and kernel.terms >= _LONG_SUM
        if kernel.rows * kernel.columns > 1 and not _is_uneven(kernel) and not goes_on:
            return False
        if len(self._parts) == 1 and kernel.terms < self._kernels[-1].terms:  # others begin with short ones again
            return False
        targets = kernel.target.positions(kernel.rows, kernel.columns, 1).ravel()
        target = int(self._array_of[targets[0]]), int(kernel.from_zero)
        parts = [*self._parts_of(kernel, targets)]
        shared = sum(len(terms.targets) for key, terms in parts if key in self._parts)
        if self._kernels and (target != self._target or 2 * shared <= len(targets) * kernel.terms):
            return False
        numbers = {key: number for number, key in enumerate(dict.fromkeys([*self._parts, *(key for key, _ in parts)]))}
        order = [numbers[key] for key, _ in parts]
        if kernel.is_in_order and order != sorted(order):
            return False
        written = set(targets.tolist())
        read = {position for _, terms in parts for factor in terms.factors for position in factor.tolist()}
        if (written & self._written) or (self._written | written) & (self._read | read):
            return False
        for key, terms in parts:
            self._parts.setdefault(key, []).append(terms)
        self._kernels.append(kernel)
        self._target = target
        self._written |= written
        self._read |= read
        return True

    def _parts_of(self, kernel: Reduction, targets: Integers) -> Iterator[tuple[_Key, _Terms]]:
        """The terms of each segment, with its coefficient and where its factors are."""

        def positions(access: Access, terms: int) -> Integers:
            found = access.positions(kernel.rows, kernel.columns, terms)
            return np.broadcast_to(found, (kernel.rows, kernel.columns, terms)).ravel()

        for part in kernel.segments:
            factors = [positions(access, part.terms) for access in part.factors]
            is_ordered = np.full(len(targets) * part.terms, kernel.is_in_order)
            regions = [int(self._region_of[factor[0]]) for factor in factors]
            yield (part.coefficient, *regions), _Terms(np.repeat(targets, part.terms), factors, is_ordered)

    def items(self) -> Sequence[Item]:
        """The loops; or the kernels themselves, where these take less to say."""
        if sum(map(_is_uneven, self._kernels)) < _FEWEST:
            return self._kernels
        targets = np.array(sorted(self._written))
        starts = even_parts(targets[None, :])
        ends = [*starts[1:], len(targets)] if len(starts) <= _PARTS else [len(targets)]
        zero = 0.0 if self._kernels[0].from_zero else -0.0
        found: list[Item] = [added(targets[start:end], [], zero) for start, end in zip(starts, ends, strict=False)]
        for (coefficient, *_), parts in self._parts.items():
            factors = [np.concatenate(sides) for sides in zip(*(part.factors for part in parts), strict=True)]
            of_sums, is_ordered = (np.concatenate([part[side] for part in parts]) for side in (0, 2))
            found.append(_Terms(of_sums, factors, is_ordered).added(coefficient))
        return found if sum(map(_characters, found)) < sum(map(_characters, self._kernels)) else self._kernels


def _characters(kernel: Item) -> int:
    """How many a kernel takes, about."""
    accesses_ = [kernel.target, *(access for access, _ in kernel.reads)]
    sizes = [lookup_in(access.table).numbers.size for access in accesses_ if access.table is not None]
    if isinstance(kernel, Added) and not kernel.is_in_order and kernel.target.table is not None:
        sizes[0] = min(sizes[0], fewer_numbers(kernel.target.table))
    return _LOOP + _OPERAND * len(kernel.reads) + _ENTRY * sum(sizes)


def _is_uneven(kernel: Item) -> bool:
    """Whether a table says where the terms of a kernel are."""
    return any(access.gathers for access, _ in kernel.reads)
