"""Gradients of a symbol, written for many operations at once where these were written for many.

What lanes.py has written is gone through in its runs: operations of one primitive, none of which reads another one.
Backwards, the rule of the primitive runs once on symbols with a lane for each operation of the run. What it gives is
added up as it is when operations are gone through one by one: in the order of the operations from the last to the
first, and for each of them in the order of its operands. So the sums are the same.

    x           lanes at 0, 1, 2                 gradients at 9, 10, 11
    x * x       mul  0 0, 1 1, 2 2               shares  9 * 0 ..., twice; for each x, the sum of two
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.entries import INPUT, LITERAL, NO_PLACE, Called
from micrograd.compiler.ir.equals import first_equals
from micrograd.compiler.tracing.alike_rows import OF_LIBRARY
from micrograd.compiler.tracing.lanes import LanesTape, is_lanes
from micrograd.compiler.tracing.trace import Symbol
from micrograd.engine import primitives
from micrograd.engine.recorder import using

if TYPE_CHECKING:
    from collections.abc import Collection

    from micrograd.compiler.ir.entries import Run, Trace
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.tracing.trace import Tape

# Their rules do not ask whether an operand is a number, or what they give is rounded alike
_TAKE_LITERALS = {
    *(primitives.add, primitives.sub, primitives.mul, primitives.div, primitives.where),
    *(primitives.maximum, primitives.minimum, primitives.less, primitives.less_equal),
}


class GradientsInLanes:
    """The gradients of one symbol.

    Attributes:
        tape: where they are written.
        written: what is on it already.
    """

    def __init__(self, tape: Tape, written: Trace, root: int, sources: Collection[int]) -> None:
        self.tape, self.written, self._root = tape, written, root
        self._equal = first_equals(written)
        self._first = array("q", self._equal.tobytes())  # the same, for places one by one
        self._is_literal = written.operations.are_literals()
        self._runs = list(written.operations.runs(0, root + 1))
        self._calls: dict[int, Any] = {int(each.hub[0]): each for each in written.maps if isinstance(each, Called)}
        self._reached = self._marks_of(root, sources)
        self._is_reached = np.frombuffer(self._reached, dtype=bool)
        self._places = array("q", [NO_PLACE]) * len(self._equal)  # where the gradient of each is
        self._found = np.frombuffer(self._places, dtype=np.int64)

    def _marks_of(self, root: int, sources: Collection[int]) -> bytearray:
        """Which places the root depends on, as far as these depend on a source themselves."""
        entries, operands, first = self.written.operations, self.written.operands, self._first
        size = len(first)
        needed, reached = bytearray(size), bytearray(size)
        is_needed, is_reached = (np.frombuffer(marks, dtype=bool) for marks in (needed, reached))
        needed[root] = needed[first[root]] = True
        for run in reversed(self._runs):
            if run.block is None:
                for place in range(run.end - 1, run.begin - 1, -1):
                    if needed[place]:
                        for operand in operands(place):
                            needed[operand] = needed[first[operand]] = True
                continue
            part = is_needed[run.begin : run.end]
            if (called := self._calls.get(run.begin)) is not None and part.any():
                part[0] = True
                read = np.array(called.operands_of(run.begin), dtype=np.int64)
                is_needed[read] = is_needed[self._equal[read]] = True
            if run.is_chain:  # each reads all before it
                part[:] = np.logical_or.accumulate(part.reshape(run.block.steps, -1)[::-1])[::-1].ravel()
            lanes = np.flatnonzero(part)
            for column in run.operands(entries) if len(lanes) else ():
                is_needed[column[lanes]] = is_needed[self._equal[column[lanes]]] = True
        is_source = np.zeros(size, dtype=bool)
        is_source[list(sources)] = True
        for run in self._runs:
            if run.block is None:
                for place in range(run.begin, run.end):
                    if needed[place]:
                        reached[place] = place in sources or any(reached[first[o]] for o in operands(place))
                continue
            part = is_source[run.begin : run.end]
            if (called := self._calls.get(run.begin)) is not None:
                part = part | is_reached[self._equal[called.operands_of(run.begin)]].any()
            for column in run.operands(entries):
                part = part | is_reached[self._equal[column]]
            if run.is_chain:
                part = np.logical_or.accumulate(part.reshape(run.block.steps, -1)).ravel()
            is_reached[run.begin : run.end] = part & is_needed[run.begin : run.end]
        return reached

    def write(self, wanted: Collection[int]) -> dict[int, Symbol]:
        """Write them, and give those of the places wanted."""
        self._places[self._first[self._root]] = self.tape.place(1.0)
        for run in reversed(self._runs):
            if run.begin in self._calls and run.block is not None:
                self._through_call(self._calls[run.begin])
            elif run.block is None or (run.is_chain and not self._is_sum_alone(run)):
                self._one_by_one(run)
            elif run.is_chain:
                self._through_chain(run)
            else:
                self._through_lanes(run)
        return {
            place: self.tape._symbol(self._places[place], Symbol) for place in wanted if self._places[place] != NO_PLACE
        }

    def _one_by_one(self, run: Run) -> None:
        """Go through operations that were not written at once."""
        places, reached, tape = self._places, self._reached, self.tape
        marks = _Marks(reached)
        for place in range(run.end - 1, run.begin - 1, -1):
            if place in self._calls:
                self._through_call(self._calls[place])
            if places[place] == NO_PLACE or not reached[place] or tape.operations.primitives[place] is INPUT:
                continue
            if not any(reached[self._first[operand]] for operand in self.written.operands(place)):
                continue
            gradient = tape._symbol(places[place], Symbol)
            for operand, share in tape._shares(place, self.written, gradient, marks):
                first = self._first[operand]
                if places[first] != NO_PLACE:
                    share = tape._symbol(places[first], Symbol) + share
                places[first] = tape.place(share)

    def _through_call(self, called: Any) -> None:
        """Go through a call, all of whose results are complete."""
        places = [self._found[each] for each in called.results]
        if not self._reached[int(called.hub[0])] or all((each == NO_PLACE).all() for each in places):
            return
        seeds = []
        for each in places:
            is_nothing = (each == NO_PLACE).all()
            seeds.append(np.zeros(each.shape) if is_nothing else np.where(each < 0, self.tape.place(0.0), each))
        shares = self.tape.shares_of_call(called, seeds, lambda o: self._is_reached[self._equal[o]].any())
        for targets, share in shares:
            equal = self._equal[targets.ravel()]
            chosen = np.flatnonzero(self._is_reached[equal])
            self._add(equal[chosen], share.ravel()[chosen])

    def _through_lanes(self, run: Run) -> None:
        """Go through operations of one primitive, none of which reads another one."""
        assert run.block is not None
        lanes = np.flatnonzero((self._found[run.begin : run.end] != NO_PLACE) & self._is_reached[run.begin : run.end])
        if not len(lanes) or run.block.is_of_leaves:
            return
        primitive = run.block.primitives[run.number]
        columns = [column[lanes] for column in run.operands(self.written.operations)]
        given = [self._given(column) for column in columns]
        if primitive not in OF_LIBRARY or (primitive not in _TAKE_LITERALS and any(each is None for each in given)):
            self._one_by_one(run)
            return
        wanted = np.array([self._is_reached[column] for column in columns])
        pairs = []
        patterns = wanted.T.dot(1 << np.arange(len(columns)))
        for pattern in np.unique(patterns).tolist():
            chosen = np.flatnonzero(patterns == pattern)[::-1]  # from the last to the first
            tape = LanesTape(self.tape, len(chosen))
            numbers = [
                tape._symbol(column[chosen], Symbol) if not isinstance(each, float) else each
                for column, each in zip(columns, given, strict=True)
            ]
            places = run.begin + lanes[chosen]
            gradient, output = tape._symbol(self._found[places], Symbol), tape._symbol(places, Symbol)
            for index, rule in enumerate(primitive.derivatives):
                if rule is not None and pattern >> index & 1:
                    with using(tape):
                        share = rule(gradient, output, *numbers)
                    at = share._place if is_lanes(share) else np.full(len(chosen), self.tape.place(share))
                    order = -places * len(columns) + index
                    pairs.append((order, self._equal[columns[index][chosen]], at))
        if len(pairs) == 1:
            self._add(*pairs[0][1:])
        elif pairs:
            order, targets, shares = map(np.concatenate, zip(*pairs, strict=True))
            places = np.argsort(order)
            self._add(targets[places], shares[places])

    def _given(self, column: Integers) -> Any:
        """A number that is the operand of all lanes; None where literals differ, or only some operands are literals."""
        entries = self.written.operations
        if (column == column[0]).all():
            place = int(column[0])
            return entries.numbers[entries.first[place]] if entries.primitives[place] is LITERAL else place
        return None if self._is_literal[column].any() else ()

    def _is_sum_alone(self, run: Run) -> bool:
        """Whether in a chain ``((a + b) + c) + d`` nothing else reads a sum, and gradients flow to all operands."""
        assert run.block is not None
        width, first, second = run.block.width, *run.operands(self.written.operations)
        own = np.arange(run.begin, run.end)
        return not (
            (self._found[run.begin : run.end - width] != NO_PLACE).any()
            or (self._found[run.end - width : run.end] == NO_PLACE).any()
            or (self._equal[own] != own).any()
            or not self._is_reached[first].all()
            or not self._is_reached[second].all()
        )

    def _through_chain(self, run: Run) -> None:
        """Go through such a chain: all operands get the gradient of the last sum."""
        assert run.block is not None
        width, first, second = run.block.width, *run.operands(self.written.operations)
        gradients = self._found[run.end - width : run.end][::-1]
        in_first_step = np.stack([first[:width][::-1], second[:width][::-1]], axis=1).ravel()
        targets = np.concatenate([second[width:][::-1], in_first_step])
        shares = np.concatenate([np.tile(gradients, run.block.steps - 1), np.repeat(gradients, 2)])
        self._add(self._equal[targets], shares)

    def _add(self, targets: Integers, shares: Integers) -> None:
        """Add shares to gradients, in this order for each of them."""
        order = np.argsort(targets, kind="stable")
        targets, shares = targets[order], shares[order]
        begins = np.append(True, targets[1:] != targets[:-1])
        before = self._found[targets]
        adds = ~begins | (before != NO_PLACE)
        places = np.where(adds, len(self.tape.operations) + np.cumsum(adds) - 1, shares)
        first = np.where(begins, before, np.append(0, places[:-1]))
        count, is_flat = int(adds.sum()), bool(begins.all())
        if count and is_flat:
            self.tape.operations.append_block([primitives.add], 1, count, [[first[adds], shares[adds]]])
        elif count:
            self.tape.operations.append_chains(primitives.add, first[adds], shares[adds])
        ends = np.append(begins[1:], True)
        self._found[targets[ends]] = places[ends]


class _Marks:
    """The places that are marked."""

    def __init__(self, marks: bytearray) -> None:
        self._marks = marks

    def __contains__(self, place: Any) -> bool:
        return bool(self._marks[place])
