"""Sums: the sums and maxima of a level that are alike become one kernel.

In ``y[o] = w[o][0] * x[0] + w[o][1] * x[1]`` for three o, all y have two terms, with first factors from the group of w
and second ones from that of x. Terms may stand one by one in the graph, or be whole dot products (see vectors.py);
what is alike is found in the same way, of vectors by the groups of their elements.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import replace
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from micrograd.compiler.ir.graph import MAXIMUM, SUM
from micrograd.compiler.ir.index_maps import (
    Positions,
    access_of_one,
    accesses,
    affine_runs,
    blocks_of,
    runs_of_one,
    stretches,
)
from micrograd.compiler.ir.program import IN_ORDER, Loop, Reduction, Segment
from micrograd.compiler.passes.alike import alike_rows, different_rows
from micrograd.compiler.passes.placing import CONSTANTS, NOTHING, Placing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.vectors import Dots
    from micrograd.compiler.numbers import Booleans, Integers

_Piece: TypeAlias = "tuple[tuple[int, ...], slice]"  # what some rows beside each other are, and which they are
_Terms: TypeAlias = "tuple[float, int, list[Positions]]"  # a coefficient, how many terms, and where their factors lie

_ONCE = int(np.float64(1.0).view(np.int64))  # the bits of the coefficient 1
_FEW = 16  # terms; those of a node by itself are looked at one by one: 2,000 such nodes take 85 ms in place of 163
_SHORT = 3  # terms of a piece
_MANY_SHORT = IN_ORDER + 1  # short pieces beside each other, which had better be one
_MANY_BLOCKS = 32  # runs of terms, as the states of a loop are; the sum of each is computed by itself, and then theirs


def in_pieces(graph: Graph) -> Graph:
    """The graph in which no sum has more than one dot product that is whole; where one has, they are taken apart."""
    if not graph.whole:
        return graph
    in_dots = np.bincount(np.concatenate([part.owner for part in graph.whole]), minlength=graph.size)
    kept: list[Dots] = []
    others: list[Dots] = []
    for part in graph.whole:
        is_one = in_dots[part.owner] == 1
        for parts, rows in ((kept, is_one), (others, ~is_one)):
            if rows.any():
                parts.append(part.chosen(np.flatnonzero(rows)))
    return replace(graph, whole=(*kept, *others)).expanded(kept)


class _Run(NamedTuple):
    """Terms beside each other that have their coefficient and their groups in common, in several nodes.

    Attributes:
        coefficient: of each.
        factors: a call that gives where their factors lie, one or two.
    """

    coefficient: float
    factors: Callable[[], list[Positions]]


class _Alike(NamedTuple):
    """Nodes whose terms are alike.

    Attributes:
        nodes: which they are.
        described: what nodes have in common that become one group: their kind, how they are placed, whether 0 is
            one of their terms, and which groups and coefficients their terms have.
        roll: a call that makes their kernel once they have their places.
    """

    nodes: Integers
    described: tuple[int, int, bool, frozenset[tuple[int, ...]]]
    roll: Callable[[], None]


class Owners(NamedTuple):
    """The sums and maxima whose terms are one by one, but for those that have a dot product, too.

    Attributes:
        nodes: which they are.
        starts: where their terms start.
        counts: how many they have.
        in_order: whether these stay in the order of the program.
        keys: a number for each. It is the same for those that agree in the above, in their kind, in how they are
            placed, and in whether 0 is one of their terms.
    """

    nodes: Integers
    starts: Integers
    counts: Integers
    in_order: Booleans
    keys: Integers


class Sums(Placing):
    """Placing, and the kernels of sums and maxima.

    Attributes:
        has_loops: whether these may be loops.
    """

    has_loops = False

    def owners(self) -> Owners:
        """All whose terms are one by one."""
        graph, owner = self.graph, self.graph.terms.owner
        is_first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]  # they are sorted by their owners
        starts = np.flatnonzero(is_first)
        nodes, counts = owner[starts], np.diff(starts, append=len(owner))
        of_dots = [part.owner for part in graph.whole]  # they roll their other terms, too
        if of_dots:
            is_alone = np.ones(graph.size, dtype=bool)
            is_alone[np.concatenate(of_dots)] = False
            alone = is_alone[nodes]
            nodes, starts, counts = nodes[alone], starts[alone], counts[alone]
        kinds, reserved = graph.kind[nodes], self.reserved[nodes]
        # Few terms stay in the order of the program. Of two, the order does not matter.
        in_order = (kinds != MAXIMUM) & ~graph.unordered[nodes] & (counts > 2) & (counts <= IN_ORDER)
        keys = 2 * graph.from_zero[nodes] + in_order
        for numbers in (counts, reserved, kinds):
            keys = keys * (int(numbers.max(initial=0)) + 1) + numbers
        return Owners(nodes, starts, counts, in_order, keys)

    def reductions(self, owners: Owners, keyed: list[Integers], whole: list[Dots]) -> None:
        """Roll the sums and maxima of a level.

        Sums over the same groups become one group even if they differ in length, as those of causal
        attention do. What uses them then finds them side by side.

        Args:
            owners: those of all levels whose terms are one by one.
            keyed: which of them are of this level; those of each key are together.
            whole: those of this level of which a part is whole.
        """
        found = [alike for rows in keyed for alike in self._one_by_one(owners, rows)]
        for part in whole:
            found += self._dots(part)
        together: defaultdict[tuple[Any, ...], list[_Alike]] = defaultdict(list)
        for alike in found:
            together[alike.described].append(alike)
        for group in together.values():
            self.lay_out(np.sort(np.concatenate([alike.nodes for alike in group])))
            for alike in group:
                alike.roll()

    def _one_by_one(self, owners: Owners, rows: Integers) -> Iterator[_Alike]:
        """Those among some nodes of one key that are alike."""
        nodes, starts, count = owners.nodes[rows], owners.starts[rows], int(owners.counts[rows[0]])
        kind, reserved = int(self.graph.kind[nodes[0]]), int(self.reserved[nodes[0]])
        from_zero, in_order = bool(self.graph.from_zero[nodes[0]]), owners.in_order[rows[0]]
        first, second, signatures = self._terms(starts, count, sort=not in_order)
        for signature, chosen in alike_rows(*signatures):
            alike, of_terms = nodes[chosen], signature.reshape(3, -1).T
            pieces = _pieces(of_terms)
            groups = frozenset(groups for groups, _ in pieces)
            if len(chosen) == 1 and count <= _FEW:
                make = partial(self._alone, int(alike[0]), pieces, first[chosen[0]], second[chosen[0]])
            else:
                make = partial(self._reduction, alike, self._runs(first[chosen], second[chosen], pieces))
            yield _Alike(alike, (kind, reserved, from_zero, groups), partial(make, kind == MAXIMUM, from_zero))

    def _terms(self, starts: Integers, count: int, sort: bool) -> tuple[Integers, Integers, tuple[Integers, ...]]:
        """Equally many terms of several nodes, a row for each: both factors, and what is alike where they are.

        Args:
            starts: where the terms of each node start.
            count: how many each has.
            sort: whether all nodes shall have them in one order, or each in its own.
        """
        terms, position = self.graph.terms, self.position
        rows = starts[:, None] + np.arange(count)
        first, second, coefficient = terms.first[rows], terms.second[rows], terms.coefficient[rows]
        group, other = self.group[first], self.group[second]
        swapped = group > other  # x * w is w * x
        if swapped.any():
            first, second = np.where(swapped, second, first), np.where(swapped, first, second)
            group, other = np.where(swapped, other, group), np.where(swapped, group, other)
        if sort and count > 1:  # the same order for all nodes, and as their factors lie in the buffer
            order = np.lexsort((position[second], position[first], coefficient, other, group))
            order += np.arange(0, order.size, count)[:, None]  # in all rows laid end to end
            first, second, coefficient, group, other = (
                matrix.ravel()[order] for matrix in (first, second, coefficient, group, other)
            )
        return first, second, (group, other, coefficient.view(np.int64))

    def _runs(self, first: Integers, second: Integers, pieces: list[_Piece]) -> list[_Run]:
        """The runs of terms given by their factors, a row for each node, and what is the same in all rows."""
        runs = []
        for (_, other, bits), columns in self._joined(pieces, first, second):
            factors = first[:, columns], None if other == NOTHING else second[:, columns]
            runs.append(_Run(_number(bits), partial(self._factors, *factors)))
        return runs

    def _joined(self, pieces: list[_Piece], first: Integers, second: Integers) -> list[_Piece]:
        """The pieces, of which short ones beside each other are one if their terms lie alike in all rows."""
        if len(pieces) < _MANY_SHORT:
            return pieces
        joined: list[_Piece] = []
        for (bits, has_second, is_short), found in groupby(pieces, _kind_of_piece):
            alike = [*found]
            columns = slice(alike[0][1].start, alike[-1][1].stop)
            factors = [first[:, columns], second[:, columns]] if has_second else [first[:, columns]]
            if is_short and len(alike) >= _MANY_SHORT and all(map(self._lie_alike, factors)):
                alike = [((*alike[0][0][:2], bits), columns)]
            joined += alike
        return joined

    def _lie_alike(self, nodes: Integers) -> bool:
        """Whether the terms of all rows lie equally far from the first, at each iteration of a loop."""
        moves = self.iteration_step[nodes]
        return Positions.of(self.position[nodes]).steps is not None and bool((moves == moves[0, 0]).all())

    def _factors(self, first: Integers, second: Integers | None) -> list[Positions]:
        """Where factors lie, given a matrix of nodes for each."""
        positions = [self.operand(first)]
        return positions if second is None else [*positions, self.operand(second, across=positions[0].lie_apart())]

    def _dots(self, dots: Dots) -> Iterator[_Alike]:
        """Sums that a dot product is a part of. What else they have comes first; of so many, any order will do."""
        graph = self.graph
        starts = np.searchsorted(graph.terms.owner, dots.owner)
        counts = np.searchsorted(graph.terms.owner, dots.owner, side="right") - starts
        vectors, patterns, which, pattern = self._patterns(dots.elements, np.stack([dots.first, dots.second]))
        swapped = patterns[pattern[0], 0] > patterns[pattern[1], 0]
        (a, b), (of_a, of_b) = (np.where(swapped, pair[::-1], pair) for pair in (which, pattern))
        for (others,), chosen in alike_rows(counts[:, None]):
            first, second, signatures = self._terms(starts[chosen], others, sort=True)
            owners = dots.owner[chosen]
            keys = np.stack([of_a[chosen], of_b[chosen], self.reserved[owners], graph.from_zero[owners]], axis=1)
            for row, rows in alike_rows(keys, *signatures):
                alike = chosen[rows]
                (group_a, group_b), pieces = patterns[row[:2]], _pieces(row[4:].reshape(3, -1).T)
                nodes_a, nodes_b = vectors[a[alike[0]]], vectors[b[alike[0]]]
                order = np.lexsort((self.position[nodes_b], self.position[nodes_a], group_b, group_a))
                of_terms = np.stack([group_a, group_b, np.full(dots.length, _ONCE)], axis=1)[order]
                runs = self._runs(first[rows], second[rows], pieces)
                of_dots = _pieces(of_terms)
                for _, columns in of_dots:
                    runs.append(_Run(1.0, partial(self._rows, vectors[:, order[columns]], a[alike], b[alike])))
                reserved, from_zero = int(row[2]), bool(row[3])
                described = SUM, reserved, from_zero, frozenset(groups for groups, _ in [*pieces, *of_dots])
                make = partial(self._reduction, owners[rows], runs, False, from_zero)
                yield _Alike(owners[rows], described, make)

    def _rows(self, vectors: Integers, first: Integers, second: Integers) -> list[Positions]:
        """Where the factors of dot products lie, given which vectors they are."""
        positions: list[Positions] = []
        for which in (first, second):
            used, rows = np.unique(which, return_inverse=True)
            found = self.operand(vectors[used], across=bool(positions) and positions[0].lie_apart())
            positions.append(found.rows(rows.ravel()))
        return positions

    def _patterns(self, elements: Integers, which: Integers) -> tuple[Integers, Integers, Integers, Integers]:
        """The vectors that are used, and which patterns of groups they have; and for each use, the number of both."""
        used, rows = np.unique(which, return_inverse=True)
        rows, vectors = rows.reshape(which.shape), elements[used]
        groups = self.group[vectors]
        first, pattern = different_rows(groups)
        return vectors, groups[first], rows, pattern[rows]

    def _reduction(self, nodes: Integers, runs: list[_Run], largest: bool, from_zero: bool) -> None:
        """The kernel of nodes that are alike."""
        whole, terms = self.target(nodes), list[_Terms]()
        for coefficient, factors in runs:
            positions = factors()
            cuts = affine_runs(positions)
            blocks = blocks_of(positions, cuts) if self.has_loops and len(cuts) >= _MANY_BLOCKS else None
            if blocks is None:
                terms += [
                    (coefficient, end - begin, [each.part(begin, end) for each in positions]) for begin, end in cuts
                ]
            else:
                terms.append((1.0, len(cuts), [self._of_blocks((coefficient, cuts[0][1], blocks), len(cuts), largest)]))
        self.kernels += _kernels(whole, terms, largest, from_zero)

    def _of_blocks(self, first: _Terms, blocks: int, largest: bool) -> Positions:
        """Where the sums of each block of terms are, given the first one: a row for each result; a loop makes them."""
        results = len(first[2][0].starts)
        sums = self.layout.stretch_in_lines(blocks * results) + np.arange(results)
        of_first = Positions(sums, np.zeros(1, dtype=np.int64), None, results)
        kernels = _kernels(of_first, [first], largest, from_zero=False)
        self.kernels.append(Loop(blocks, tuple(kernels)))
        return Positions(sums, results * np.arange(blocks))

    def _alone(
        self, node: int, pieces: list[_Piece], first: Integers, second: Integers, largest: bool, from_zero: bool
    ) -> None:
        """The kernel of a node of few terms that is alike no other.

        Irregular programs have thousands of them. So their positions are Python's own integers: a call of NumPy takes
        as long as ten operations on these, however few numbers it is for.
        """
        segments = []
        for (_, other, bits), columns in pieces:
            operands = [first] if other == NOTHING else [first, second]
            factors = [self.operand_of_one(nodes[columns]) for nodes in operands]
            for start, end in runs_of_one([positions for positions, _ in factors]):
                found = [access_of_one(positions[start:end], iteration_step) for positions, iteration_step in factors]
                segments.append(Segment(_number(bits), end - start, found[0], found[1] if len(found) > 1 else None))
        self.kernels.append(Reduction(1, 1, self.target_of_one(node), tuple(segments), largest, from_zero))


def _kernels(whole: Positions, terms: list[_Terms], largest: bool, from_zero: bool) -> Iterator[Reduction]:
    """The kernel, or two, of the sums or maxima of some terms."""
    operands = [factor for *_, factors in terms for factor in factors]
    for part in stretches([whole, *operands]):
        rows, width, target, found = accesses(whole.rows(part), [operand.rows(part) for operand in operands])
        given = iter(found)
        segments = tuple(
            Segment(number, count, next(given), next(given) if len(factors) == 2 else None)
            for number, count, factors in terms
        )
        yield Reduction(rows, width, target, segments, largest, from_zero)


def _kind_of_piece(piece: _Piece) -> tuple[int, bool, bool]:
    """Its coefficient, whether it has a second factor, and whether it is short and has no constants."""
    (group, other, bits), columns = piece
    is_short = columns.stop - columns.start <= _SHORT and CONSTANTS not in (group, other)
    return bits, other != NOTHING, is_short


def _pieces(rows: Integers) -> list[_Piece]:
    """The rows, cut where one is not the same as the one before."""
    if len(rows) <= _FEW:
        listed = rows.tolist()
        changes = [number for number, (row, after) in enumerate(pairwise(listed), 1) if row != after]
    else:
        changes = (np.flatnonzero((rows[1:] != rows[:-1]).any(axis=1)) + 1).tolist()
    ends = [*changes, len(rows)]
    return [(tuple(rows[begin].tolist()), slice(begin, end)) for begin, end in pairwise([0, *ends]) if end]


def _number(bits: int) -> float:
    """The number that has these bits."""
    return float(struct.unpack("d", struct.pack("q", bits))[0])
