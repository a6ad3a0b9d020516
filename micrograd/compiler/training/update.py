"""The optimiser's update as a program: traced on one parameter, and run for all of them.

An update is a formula on scalars. It is traced once, and each of its operations becomes a kernel over all parameters. A
number that all of them share, such as the learning rate or Adam's count of steps, stays one number:

    parameter - rate * gradient      2 operations, on 1,000 parameters: 2 kernels, of 1,000 columns each
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.equals import in_columns
from micrograd.compiler.ir.graph import MAXIMUM, ONE
from micrograd.compiler.ir.layout import Layout
from micrograd.compiler.ir.program import Access, Kernel, Map, Program, Reduction, Segment
from micrograd.compiler.passes.normalise import normalise
from micrograd.compiler.tracing.trace import trace_of_update

if TYPE_CHECKING:
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Floats
    from micrograd.optim import Optimizer


@dataclass(frozen=True)
class Update:
    """An optimiser's update for a number of parameters, in a buffer that starts with these.

    Attributes:
        program: computes the next parameters and states; the old ones stay as they are.
        parameters: where the parameters are.
        states: where each number of the state is: one for each parameter, or one that all share.
        current: both, one after the other.
        last_gradients: where the gradients of the last step are, right behind.
        next: where the next parameters and states are, in the same order.
        check: where 0 is if they are all finite, and else NaN.
        gradients: where the gradients for this step are to be given. A step is done when the next numbers are copied to
            current, and these to last_gradients.
        rate: where the learning rate is.
    """

    program: Program
    parameters: slice
    states: list[slice]
    current: slice
    last_gradients: slice
    next: slice
    check: int
    gradients: slice
    rate: int


def update_of(optimizer: Optimizer, states: Floats) -> Update:
    """The update of an optimiser for parameters with these states, a row each."""
    trace = trace_of_update(optimizer.update, states.shape[1])
    inputs, results = list(trace.inputs[0]), list(trace.outputs)
    graph = normalise(in_columns(trace)).expanded()
    shared = (states.min(axis=0) == states.max(axis=0)).tolist()  # which numbers of a state all parameters share
    while True:
        single = _single(graph, [2, *(3 + index for index, same in enumerate(shared) if same)], inputs)
        still = [same and bool(single[results[1 + index]]) for index, same in enumerate(shared)]
        if still == shared:
            break
        shared = still
    return _Widened(graph, single, inputs, results, len(states)).update()


def _single(graph: Graph, common: list[int], inputs: list[int]) -> Any:
    """Which nodes are the same for all parameters: those made of constants and of common inputs only."""
    single = graph.is_constant.copy()
    single[[inputs[index] for index in common]] = True
    for node, operands in _computed(graph):
        single[node] = all(single[operand] for operand in operands)
    return single


def _computed(graph: Graph) -> list[tuple[int, list[int]]]:
    """The nodes that are computed, in order, each with the nodes that it is computed from."""
    users, used = graph.edges()
    operands: dict[int, list[int]] = {}
    for user, operand in zip(np.concatenate(users).tolist(), np.concatenate(used).tolist(), strict=True):
        operands.setdefault(user, []).append(operand)
    return sorted(operands.items())


class _Widened:
    """A graph of one parameter, laid out for many."""

    def __init__(self, graph: Graph, single: Any, inputs: list[int], results: list[int], count: int) -> None:
        self.graph, self.single, self.inputs, self.results, self.count = graph, single, inputs, results, count
        self.layout = Layout()
        self.position: dict[int, int] = {}
        parameter, gradient, rate, *state = inputs
        for node in (parameter, *state):
            self._lay(node)
        self._current = slice(0, self.layout.end)
        self._last_gradients = self.layout.stretch(count)
        for node in (gradient, rate):
            self._lay(node)
        for node in np.flatnonzero(graph.is_constant).tolist():
            self.position[node] = self.layout.constant(graph.constants[[node]])

    def update(self) -> Update:
        """The kernels over all parameters."""
        start = self.layout.end
        parameter, gradient, rate, *state = self.inputs
        copied = []
        for result, node in zip(self.results, (parameter, *state), strict=True):
            width = self._width(node)
            position = self.layout.stretch(width)
            if result in self.position or self._width(result) < width:
                copied.append((result, position, width))
            else:
                self.position[result] = position  # it is computed there
        states, end = start + self.count, self.layout.end
        kernels = [self._kernel(node) for node, _ in _computed(self.graph)]
        kernels += [self._copy(*each) for each in copied]
        check = self.layout.stretch(1)
        parts = [(stop - first, Access(first, term_step=1)) for first, stop in pairwise((start, states, end))]
        kernels.append(Reduction.zero_if_finite(check, *filter(itemgetter(0), parts)))
        return Update(
            program=Program(
                self.layout.end,
                tuple(kernels),
                outputs=np.arange(start, end),
                constants=tuple(self.layout.constants),
                arrays=np.array(self.layout.arrays),
            ),
            parameters=self._slice(parameter),
            states=[self._slice(node) for node in state],
            current=self._current,
            last_gradients=slice(self._last_gradients, self._last_gradients + self.count),
            next=slice(start, end),
            check=check,
            gradients=self._slice(gradient),
            rate=self._slice(rate).start,
        )

    def _lay(self, node: int) -> None:
        self.position[node] = self.layout.stretch(self._width(node))

    def _width(self, node: int) -> int:
        return 1 if self.single[node] else self.count

    def _slice(self, node: int) -> slice:
        return slice(self.position[node], self.position[node] + self._width(node))

    def _access(self, node: int) -> Access:
        return Access(self.position[node], column_step=0 if self.single[node] else 1)

    def _kernel(self, node: int) -> Kernel:
        if node not in self.position:
            self._lay(node)
        columns = self._width(node)
        target = Access(self.position[node], column_step=1)
        for application in self.graph.applications:
            for row in np.flatnonzero(application.nodes == node).tolist():
                operands = tuple(self._access(operand) for operand in application.operands[row].tolist())
                return Map(application.primitive, 1, columns, target, operands)
        terms = self.graph.terms[self.graph.terms.owner == node]
        segments = tuple(
            Segment(coefficient, 1, self._access(first), None if second == ONE else self._access(second))
            for coefficient, first, second in zip(
                terms.coefficient.tolist(), terms.first.tolist(), terms.second.tolist(), strict=True
            )
        )
        largest, from_zero = bool(self.graph.kind[node] == MAXIMUM), bool(self.graph.from_zero[node])
        return Reduction(1, columns, target, segments, largest, from_zero)

    def _copy(self, source: int, position: int, width: int) -> Kernel:
        """A kernel that copies a node's numbers to a position."""
        segment = Segment(1.0, 1, self._access(source), None)
        return Reduction(1, width, Access(position, column_step=1), (segment,))
