"""Gradients of symbols, recorded for many operations at once.

The backward pass goes from level to level: an operation is on the level after all that read its result. On each level,
the rule of a primitive runs once, on symbols with a lane for each of its operations.

    x           lanes at 0, 1, 2                 gradients at 9, 10, 11
    x * x       mul  0 0, 1 1, 2 2               contributions  9 * 0 ..., twice; for each x, the sum of two

Contributions are added in the same order as in a backward pass operation by operation: from the last operation to the
first, and for each in the order of its operands. So the sums are bitwise equal, but for those of many products.

A sum of products gives each factor the gradient times the other one. What such sums give something to has a sum of
products as its gradient, too, which starts with what other operations give to it. So the gradients of a product of
matrices are products of matrices, with an operation for each element and not for each product.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.entries import (
    FEWEST_LANES,
    INPUT,
    LITERAL,
    NO_POSITION,
    SUM_OF_PRODUCTS,
    TAKE,
    Called,
    made_at,
)
from micrograd.compiler.ir.program import IN_ORDER
from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import distinct, order_of, starts_run
from micrograd.compiler.tracing.lanes import OF_LIBRARY, TAKE_LITERALS, LanesTape, is_lanes
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.engine import primitives
from micrograd.engine.recorder import using

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from micrograd.compiler.ir.entries import Decided
    from micrograd.compiler.numbers import Booleans, Integers
    from micrograd.compiler.tracing.dependence import Cones, Dependence
    from micrograd.compiler.tracing.tape import Tape

_IN_LANES = {each for each in OF_LIBRARY - {SUM_OF_PRODUCTS, TAKE} if each.derivatives}


class GradientsInLanes:
    """The gradients of one symbol, or of several: a row for each.

    A term that only one sum reads has the gradient of that sum. So all terms of a chain ``((a + b) + c) + d`` have the
    gradient of its last sum, and are on its level, however long the chain is.

    Arrays have an element for each pair of a row and a position; see dependence.py.

    Args:
        tape: where to record them.
        dependence: the positions that gradients flow through.
        cones: what each symbol depends on.
        of_operation, of_call, of_decision: the contributions of an operation, a call or a decision; see derivatives.py.
    """

    def __init__(
        self, tape: Tape, dependence: Dependence, cones: Cones, of_operation: Any, of_call: Any, of_decision: Any
    ) -> None:
        self.tape, self._dependence, self._begin = tape, dependence, dependence.begin
        self._of_operation, self._of_call, self._of_decision = of_operation, of_call, of_decision
        self._cones, self._at, size = cones, cones.at, len(cones.at)
        # operations that pass gradients on, from the last to the first
        self._nodes = np.flatnonzero(dependence.passes[self._at])[::-1]
        self._operands = dependence.operands[:, self._at[self._nodes]].T
        self._sums = _SumsOfProducts(dependence)
        self._before = np.full(len(dependence.inside), NO_POSITION)  # what stands before the results of a call
        for called in dependence.calls:
            self._before[np.concatenate([each.ravel() for each in called.results]) - self._begin] = called.hub[0]
        for decided in dependence.decisions:
            self._before[np.array(decided.made[1:], dtype=np.int64) - self._begin] = decided.begin
        self._source, self._index, self._target = self._edges()
        applied = self._at[self._source]
        gives_all = dependence.is_kind(primitives.add)[applied]
        gives_all |= dependence.is_kind(primitives.sub)[applied] & (self._index == 0)
        gives_all &= (np.bincount(self._target, minlength=size) == 1)[self._target]
        alias = np.arange(size)  # whose gradient that of each is
        alias[self._target[gives_all]] = self._source[gives_all]
        while ((further := alias[alias]) != alias).any():
            alias = further
        self._source, self._index, self._target = (
            column[~gives_all] for column in (self._source, self._index, self._target)
        )
        levels = Edges(size, [alias[self._source]], [self._target]).levels()
        self._alias, self._levels = alias, levels[alias]
        self._depth = 1 + int(self._levels.max(initial=0))
        self._found = np.full(size, NO_POSITION)  # where the gradient of each is

    @property
    def are_wide(self) -> bool:
        """Whether levels have so many operations that this is quicker than a pass operation by operation."""
        return len(self._nodes) >= FEWEST_LANES * self._depth

    def _edges(self) -> Any:
        """From operations to operands that gradients flow to: sources, the index of the operand, and targets."""
        dependence, nodes, cones = self._dependence, self._nodes, self._cones
        targets: Integers = dependence.targets[:, self._at[nodes]].T
        rows, index = np.nonzero((targets >= 0) & dependence.inside[np.maximum(targets, 0)])
        is_further = dependence.is_kind(TAKE, INPUT)
        parts = [np.stack([nodes[rows], index, cones.pairs(nodes[rows], targets[rows, index])])]

        def inside(begins: Integers, index: Integers, ends: Integers) -> Integers:
            """Those edges that gradients take, given by positions."""
            edges = np.stack([begins - self._begin, index, dependence.first_of(ends)])
            found: Integers = edges[:, (edges[2] >= 0) & dependence.inside[edges[0]] & dependence.inside[edges[2]]]
            return found

        for called in dependence.calls:
            is_further[np.array(called.made) - self._begin] = False
            begins, ends = called.edges
            index = np.maximum(np.arange(len(begins)) - sum(each.size for each in called.results), 0)
            parts.append(inside(begins, index, ends))
        for decided in dependence.decisions:
            is_further[np.array(decided.made) - self._begin] = False
            begins, ends = decided.edges
            edges = inside(begins, np.arange(len(begins)), ends)
            # operands that are equal get one contribution
            parts.append(edges[:, np.sort(np.unique(edges[0] * len(self._at) + edges[2], return_index=True)[1])])
        is_sum = dependence.is_kind(SUM_OF_PRODUCTS)[self._at[nodes]]
        parts.append(self._edges_of_sums(nodes[is_sum]))
        nodes = nodes[is_further[self._at[nodes]]]
        further = [
            (node, number, dependence.equal[operand] - self._begin)
            for node, at in zip(nodes.tolist(), self._at[nodes].tolist(), strict=True)
            for number, operand in enumerate(dependence.written.operands(at + self._begin))
            if operand in dependence
        ]
        sources, index, targets = np.array(further, dtype=np.int64).reshape(-1, 3).T
        parts.append(np.stack([sources, index, cones.pairs(sources, targets)]))
        return np.concatenate(parts, axis=1)

    def _edges_of_sums(self, nodes: Integers) -> Integers:
        """The same from sums of products to their factors."""
        found = [np.zeros((3, 0), dtype=np.int64)]
        for rows, targets in self._sums.targets_of(self._at[nodes]):
            of, index = np.nonzero(targets >= 0)
            sources = nodes[rows[of]]
            found.append(np.stack([sources, 1 + index, self._cones.pairs(sources, targets[of, index])]))
        return np.concatenate(found, axis=1)

    def write(self, wanted: Collection[int]) -> tuple[Integers, Integers, Integers]:
        """Record all of them; the rows, the positions wanted, and the positions of the gradients there."""
        size = len(self._levels)
        rank = np.empty(size, dtype=np.int64)
        rank[order_of(self._levels)] = np.arange(size)
        by_source = order_of(self._index)  # as lexsort does it, in a third of the time
        by_source = by_source[order_of(size - self._source[by_source])]
        by_target = order_of(rank[self._target[by_source]])
        order = by_source[by_target]
        self._source, self._index, self._target = self._source[order], self._index[order], self._target[order]
        self._contributions = np.full(len(order), NO_POSITION)
        self._factors = np.full(len(order), NO_POSITION)  # what contributions of sums of products are to be times
        number = np.zeros(size, dtype=np.int64)
        number[self._nodes] = np.arange(len(self._nodes))
        rows = number[self._source]
        self._slots: Integers = np.full(
            self._operands.shape, NO_POSITION
        )  # of the contributions that operations give to their operands
        usual = np.flatnonzero(self._index < self._slots.shape[1])
        self._slots[rows[usual], self._index[usual]] = usual
        self._by_row = np.empty(len(order), dtype=np.int64)
        self._by_row[by_target] = np.arange(len(order))
        self._rows = rows[self._by_row]
        self._found[self._cones.roots] = self.tape.position(1.0)
        groups, levels = self._groups(), self._levels[self._nodes]
        nodes = np.lexsort((groups, levels))
        bounds = 1 + np.flatnonzero((np.diff(groups[nodes]) != 0) | (np.diff(levels[nodes]) != 0))
        pieces, done = np.split(nodes, bounds), 0
        ends = np.searchsorted(self._levels[self._target], np.arange(self._depth), side="right").tolist()
        added = 0
        for level, end in enumerate(ends):
            self._add(slice(added, end))
            added = end
            while done < len(pieces) and levels[pieces[done][0]] == level:
                self._through(pieces[done][::-1])  # in the order of the operations, so that they lie as these do
                done += 1
        found = self._found[self._alias]
        pairs = np.flatnonzero(
            self._cones.at_one_of(self._begin, wanted, len(self._dependence.inside)) & (found != NO_POSITION)
        )
        return self._cones.rows[pairs], self._at[pairs] + self._begin, found[pairs]

    def _groups(self) -> Integers:
        """A number for each operation, equal where a rule can run once: for one primitive, with like literals."""
        applied = self._dependence.written.operations.primitives
        at = self._at[self._nodes]
        groups = np.unique(self._dependence.kinds[at], return_inverse=True)[1]
        asked = np.flatnonzero(~self._dependence.is_kind(*TAKE_LITERALS, SUM_OF_PRODUCTS, TAKE)[at])
        for column in self._operands[asked].T:
            positions, inverse = np.unique(column, return_inverse=True)
            literals = [
                position if position >= 0 and applied[position] is LITERAL else NO_POSITION
                for position in positions.tolist()
            ]
            keys = groups.copy()
            keys[asked] += (1 + len(groups)) * (1 + np.array(literals, dtype=np.int64)[inverse])
            groups = np.unique(keys, return_inverse=True)[1]
        return groups

    def _through(self, rows: Integers) -> None:
        """The contributions of operations of one group on one level, given by their numbers among all."""
        gradients = self._found[self._alias[self._nodes[rows]]]
        rows, gradients = rows[gradients != NO_POSITION], gradients[gradients != NO_POSITION]
        positions = self._at[self._nodes[rows]] + self._begin
        primitive = self._dependence.written.operations.primitives[positions[0]] if len(rows) >= FEWEST_LANES else None
        if primitive is SUM_OF_PRODUCTS:
            self._through_sums(rows, gradients)
            return
        if primitive not in _IN_LANES:
            before = self._before[positions - self._begin]
            is_result = before != NO_POSITION  # what it is a result of is gone through later
            if is_result.any():
                self._found[before[is_result] - self._begin] = self.tape.position(0.0)
            applied = self._dependence.written.operations.primitives
            given = (column[~is_result].tolist() for column in (rows, positions, gradients))
            for row, position, at in zip(*given, strict=True):
                made = made_at(self._dependence.written, position) if applied[position] is INPUT else None
                if made is None:
                    self._one_by_one(row, position, at)
                elif isinstance(made, Called):
                    self._through_call(row, made)
                else:
                    self._through_decision(row, made)
            return
        assert primitive is not None
        for slots, rule in zip(self._slots[rows].T, primitive.derivatives, strict=False):
            lanes = np.flatnonzero(slots != NO_POSITION)
            if rule is not None and len(lanes):
                tape = LanesTape(self.tape, len(lanes))
                columns = self._operands[rows[lanes], : len(primitive.derivatives)].T
                gradient, output = (tape._symbol(column[lanes], Symbol) for column in (gradients, positions))
                with using(tape):
                    contribution = rule(gradient, output, *(self._given(tape, column) for column in columns))
                self._contributions[slots[lanes]] = (
                    contribution._position if is_lanes(contribution) else self.tape.position(contribution)
                )

    def _through_sums(self, rows: Integers, gradients: Integers) -> None:
        """The contributions of sums of products: to each factor, the gradient times the other one."""
        begins, ends = np.searchsorted(self._rows, [rows, rows + 1])
        counts = ends - begins
        which = np.repeat(np.arange(len(rows)), counts)
        slots = self._by_row[np.repeat(begins - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
        self._contributions[slots] = gradients[which]  # that of the start
        is_factor = self._index[slots] > 0
        slots, which = slots[is_factor], which[is_factor]
        self._factors[slots] = self._sums.other_factor(self._at[self._nodes[rows]][which], self._index[slots])

    def _given(self, tape: LanesTape, column: Integers) -> Any:
        """An operand with a lane for each operation; a number where it is the same literal for all."""
        entries, position = self._dependence.written.operations, int(column[0])
        if entries.primitives[position] is LITERAL and (column == position).all():
            return entries.numbers[entries.first[position]]
        return tape._symbol(column, Symbol)

    def _one_by_one(self, row: int, position: int, at: int) -> None:
        """The contributions of one operation at a position, whose gradient is at another one."""
        begin, end = np.searchsorted(self._rows, [row, row + 1])
        slots = self._by_row[begin:end].tolist()
        gradient, dependence = self.tape._symbol(at, Symbol), self._dependence
        for operand, contribution in self._of_operation(position, dependence.written, gradient, dependence):
            target = dependence.equal[operand] - self._begin
            # there is none for what has the gradient of the operation itself
            number = next((n for n, slot in enumerate(slots) if self._at[self._target[slot]] == target), None)
            if number is not None:
                self._contributions[slots[number]] = self.tape.position(contribution)
                del slots[: number + 1]

    def _through_call(self, row: int, called: Called) -> None:
        """The contributions of a call of a function of arrays, when the gradients of its results are complete."""
        seeds = []
        for positions in called.results:
            at = self._found[self._alias[positions - self._begin]]
            is_nothing = (at == NO_POSITION).all()
            seeds.append(np.zeros(at.shape) if is_nothing else np.where(at < 0, self.tape.position(0.0), at))
        slots = self._by_row[slice(*np.searchsorted(self._rows, [row, row + 1]))]
        numbers, begin = self._index[slots], 0  # of the elements of all operands that are given
        contributions = self._of_call(called, seeds, self._dependence)
        for operand, is_given, contribution in zip(called.operands, called.is_given, contributions, strict=True):
            end = begin + operand.size * is_given
            if contribution is not None:
                of_operand = (numbers >= begin) & (numbers < end)
                self._contributions[slots[of_operand]] = contribution.ravel()[numbers[of_operand] - begin]
            begin = end

    def _through_decision(self, row: int, decided: Decided) -> None:
        """The contributions of a decision, when the gradients of its results are complete."""
        made = np.array(decided.made)
        at = self._found[self._alias[made - self._begin]]
        given = at != NO_POSITION
        found = dict(zip(made[given].tolist(), self.tape.symbols(at[given].tolist(), Symbol), strict=True))
        self._of_decision(decided, self._dependence, found)
        slots = self._by_row[slice(*np.searchsorted(self._rows, [row, row + 1]))]
        targets = (self._at[self._target[slots]] + self._begin).tolist()
        pairs = [(slot, target) for slot, target in zip(slots.tolist(), targets, strict=True) if target in found]
        for slot, target in pairs:
            self._contributions[slot] = self.tape.position(found[target])

    def _add(self, slots: slice) -> None:
        """Sum the contributions to the positions on a level."""
        given = self._contributions[slots] != NO_POSITION
        targets, contributions, factors = (
            column[slots][given] for column in (self._target, self._contributions, self._factors)
        )
        if not len(targets):
            return
        is_product = factors != NO_POSITION
        begins = np.flatnonzero(starts_run(targets))
        counts, products = np.diff(begins, append=len(targets)), np.add.reduceat(is_product, begins, dtype=np.int64)
        is_whole = (products == counts) & (counts > 1)
        is_part = ~is_whole & (products > IN_ORDER)  # a sum so long may be in another order
        has_sum = is_whole | is_part
        in_sums = is_product & np.repeat(has_sum, counts)
        firsts = np.cumsum(products * has_sum) - products
        terms = np.stack([contributions, factors])[:, in_sums]

        def write(chosen: Booleans, starts: Any) -> None:
            """Sums of products, each from its start on."""
            for count in distinct(products[chosen]).tolist():
                rows = chosen & (products == count)
                numbers = map(self.tape.row_numbers, terms[:, firsts[rows, None] + np.arange(count)])
                found = targets[begins[rows]]
                self._found[found] = self.tape.sums_of_products(starts(found), *numbers)

        write(is_whole, lambda _: self.tape.position(-0.0))
        self._add_one_by_one(targets[~in_sums], contributions[~in_sums], factors[~in_sums])
        write(is_part, lambda found: self._found[found])

    def _add_one_by_one(self, targets: Integers, contributions: Integers, factors: Integers) -> None:
        """Sum contributions, of which some have a factor."""
        products = np.flatnonzero(factors != NO_POSITION)
        if len(products):
            tape = LanesTape(self.tape, len(products))
            gradient, factor = (tape._symbol(column[products], Symbol) for column in (contributions, factors))
            with using(tape):
                contributions[products] = (gradient * factor)._position
        begins = starts_run(targets)
        adds = ~begins
        positions = np.where(adds, len(self.tape.operations) + np.cumsum(adds) - 1, contributions)
        if adds.any():
            before = np.append(NO_POSITION, positions[:-1])
            self.tape.operations.append_chains(primitives.add, before[adds], contributions[adds])
        ends = np.append(begins[1:], True)[: len(targets)]
        self._found[targets[ends]] = positions[ends]


class _SumsOfProducts:
    """The factors of sums of products, by their indices among the operands: those of one row, and then of the other.

    Args:
        dependence: the operations; sums are given by their indices there.
    """

    def __init__(self, dependence: Dependence) -> None:
        self._dependence, written, begin = dependence, dependence.written, dependence.begin
        at = np.flatnonzero(dependence.is_kind(SUM_OF_PRODUCTS))
        entries, lengths = written.operations, np.fromiter(map(len, written.rows), np.int64, len(written.rows))
        starts = np.cumsum(lengths) - lengths
        self._elements = np.fromiter(chain.from_iterable(written.rows), np.int64, int(lengths.sum()))
        self._lengths = np.zeros(len(dependence.inside), dtype=np.int64)
        self._starts = np.zeros((2, len(dependence.inside)), dtype=np.int64)
        if len(at):
            positions = (at + begin).tolist()
            rows = [entries.second[each] for each in positions], [entries.further[each][0] for each in positions]
            self._lengths[at], self._starts[:, at] = lengths[np.array(rows[0])], starts[np.array(rows)]

    def targets_of(self, at: Integers) -> Iterator[tuple[Integers, Integers]]:
        """Which of some sums have one length, and what gradients flow to from their factors; negative if to nothing."""
        dependence, elements = self._dependence, self._elements
        inside = elements >= dependence.begin
        inside[inside] = dependence.inside[elements[inside] - dependence.begin]
        targets = np.where(inside, dependence.first_of(elements), NO_POSITION)
        lengths = self._lengths[at]
        for length in distinct(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            first, second = self._starts[:, at[rows], None] + np.arange(length)
            yield rows, np.concatenate([targets[first], targets[second]], axis=1)

    def factor(self, at: Integers, index: Integers) -> Integers:
        """The positions of factors with these indices."""
        lengths = self._lengths[at]
        of_second = index > lengths
        return self._elements[self._starts[of_second.astype(np.int64), at] + index - 1 - of_second * lengths]

    def other_factor(self, at: Integers, index: Integers) -> Integers:
        """The positions of what these are multiplied by."""
        lengths = self._lengths[at]
        return self.factor(at, np.where(index > lengths, index - lengths, index + lengths))
