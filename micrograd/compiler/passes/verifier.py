"""Verifier: whether a pass left what a program computes as it was.

A program before a pass and the one after it are evaluated at the same random point, modulo the prime 2**61 - 1, with
each primitive replaced by a keyed random function of its operands. For ``tanh(a * b + c)`` with the inputs 3, 5 and 7,
both must give k(22), for one random function k. Where a pass swaps two operands, reads a wrong number or loses a term,
they differ, except with a probability of about one in 2**61 for each operation. Rounding plays no part, so the order
of a sum may change.

    Verifier().check("normalise", columns, graph, wanted)     raises VerificationError where an output differs

The gradients that the adjoint pass adds are compared with a second derivation: reverse mode over the graph that the
pass was given, level by level, as eager does it. Only the primitives' own rules are common to both; each is written
down once on symbols, and evaluated here for whole columns.

Not seen are the sign of 0, the order and the rounding of sums, the checks of what is finite, and what a backend makes
of the last program. The comparison with eager looks at these.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.columns import Columns
from micrograd.compiler.ir.entries import INPUT, LITERAL, TAKE, Trace
from micrograd.compiler.ir.graph import MAXIMUM, ONE, Graph
from micrograd.compiler.ir.program import Program
from micrograd.compiler.passes.adjoint import FEW_CONSTANTS, rules_on_symbols
from micrograd.compiler.passes.field import PRIME, element_of, plus, times, total
from micrograd.compiler.passes.interpreters import (
    Memory,
    Point,
    VerificationError,
    applied,
    of_graph,
    of_program,
    of_trace,
    steps_of,
    times_of_elements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from micrograd.compiler.ir.graph import Applications
    from micrograd.compiler.numbers import Booleans, Floats, Integers
    from micrograd.compiler.passes.field import Elements
    from micrograd.compiler.passes.interpreters import Step


class Verifier:
    """Checks passes one after the other: each program is evaluated once, as what one pass makes the next one is given.

    Example:
        >>> Verifier().check("cse", None, None, np.arange(0))  # what is no program is not looked at
    """

    def __init__(self) -> None:
        self._last: tuple[Any, list[int], tuple[Elements, Elements]] | None = None

    def check(self, name: str, before: Any, after: Any, wanted: Integers) -> None:
        """Compare the program after a pass with the one before it.

        Args:
            name: of the pass.
            before: a trace, columns, a graph or a program. Anything else is not looked at.
            after: what the pass made of it.
            wanted: the numbers of the inputs whose gradients are wanted.

        Raises:
            VerificationError: if an output or a gradient differs, or a number is read before it is written.
        """
        are_programs = all(isinstance(thing, Trace | Columns | Graph | Program) for thing in (before, after))
        if are_programs and after is not before:  # the same program computes the same
            try:
                self._check(before, after, wanted)
            except VerificationError as error:
                raise VerificationError(f"{name}: {error}") from None

    def _check(self, before: Any, after: Any, wanted: Integers) -> None:
        inputs, outputs, answers = _shape(before)
        copies = max(len(_results(after)) // max(outputs, 1), 1)  # a batch: so many examples in the place of one
        own = len(before.inputs[-1]) if copies > 1 and isinstance(before, Graph) else 0
        draw = np.random.default_rng(0)
        points = [
            Point(
                draw.integers(0, PRIME, inputs + (copies - 1) * own, dtype=np.uint64),
                draw.integers(0, PRIME, copies * (outputs - answers), dtype=np.uint64),
            )
            for _ in range(2)  # a program runs twice, as nothing that one run leaves behind may reach the next
        ]
        is_alone = not isinstance(before, Program)  # then the pass before has shown that it reads nothing else
        *_, (common, seeds) = points
        sizes, last = [len(common), len(seeds)], self._last  # the sizes say what the points are
        expected: list[tuple[Elements, Elements]] = []
        if copies == 1 and last is not None and last[0] is before and last[1] == sizes:
            expected.append(last[2])
        else:
            for copy in range(copies):
                given = np.append(common[: inputs - own], common[inputs - own :][copy * own : (copy + 1) * own])
                chosen = [point._replace(inputs=given) for point in points] if own else points
                expected.append(_evaluated(before, chosen, is_alone))
        found = _evaluated(after, points, is_alone)
        self._last = after, sizes, found
        outputs_before = np.concatenate([made[0] for made in expected])
        gradients_before = expected[0][1]
        if isinstance(before, Graph) and not len(before.seeds) and isinstance(after, Graph) and len(after.seeds):
            gradients_before = gradients(before, wanted, Point(common, seeds))
        _compare("output", outputs_before, found[0])
        _compare("gradient", gradients_before, found[1])


def _shape(thing: Any) -> tuple[int, int, int]:
    """How many inputs and outputs there are, and how many of these answer questions."""
    if isinstance(thing, Program):
        inputs = len(thing.inputs) - (len(thing.seeds) if len(thing.seeds) > 1 else 0)
        return inputs, len(thing.outputs), thing.answers
    written = thing.trace if isinstance(thing, Columns) else thing
    answers = written.answers if isinstance(written, Graph) else len(written.questions)
    return sum(map(len, written.inputs)), len(_results(thing)), answers


def _results(thing: Any) -> Any:
    return thing.trace.outputs if isinstance(thing, Columns) else thing.outputs


def _evaluated(thing: Any, points: list[Point], is_alone: bool) -> tuple[Elements, Elements]:
    """The outputs and the gradients at the last point."""
    if isinstance(thing, Program):
        return of_program(thing, points, is_alone)
    if isinstance(thing, Graph):
        memory = of_graph(thing.expanded(), points[-1])
        return memory.read(thing.outputs), memory.read(thing.gradients)
    return of_trace(thing, points[-1]), np.zeros(0, dtype=np.uint64)


def _compare(kind: str, before: Elements, after: Elements) -> None:
    if len(before) != len(after):
        raise VerificationError(f"there were {len(before)} {kind}s, and there are {len(after)}")
    if len(wrong := np.flatnonzero(before != after)):
        raise VerificationError(
            f"{kind} {wrong[0]} differs, the first of {len(wrong)} among {len(after)}; modulo 2**61 - 1 it was "
            f"{before[wrong[0]]}, and is {after[wrong[0]]}"
        )


# Gradients


def gradients(graph: Graph, wanted: Integers, point: Point) -> Elements:
    """The gradients of some inputs, by reverse mode over a graph without gradients."""
    graph = graph.expanded()
    memory, inputs = of_graph(graph, point), np.concatenate(graph.inputs)[wanted]
    needed = _between(graph, inputs)
    adjoints = np.zeros(graph.size + 1, dtype=np.uint64)
    _add(adjoints, graph.differentiated, point.seeds)
    numbers = {id(application): _known(graph, application, needed) for application in graph.applications}
    for _, application, rows in reversed(steps_of(graph)):
        if application is None:
            rows = rows[needed[graph.terms.owner[rows]]]
            terms = graph.terms[rows]
            if (graph.kind[terms.owner] == MAXIMUM).any():
                raise VerificationError("a gradient flows through a maximum of several numbers")
            gradient = times(element_of(terms.coefficient), adjoints[terms.owner])
            for factor, other in (terms.first, terms.second), (terms.second, terms.first):
                _add(adjoints, factor, times(gradient, memory.read(other)), needed[factor])
            continue
        rows = rows[needed[application.nodes[rows]]]
        part = application.chosen(rows)
        if part.primitive is TAKE:
            _through_takes(graph, part, memory, adjoints, needed)
            continue
        for same, known in _cases(numbers[id(application)][rows]):
            _through_rules(part.chosen(same), known, memory, adjoints, needed)
    return adjoints[inputs]


def _add(adjoints: Elements, nodes: Integers, values: Elements, chosen: Any = slice(None)) -> None:
    reached, positions = np.unique(nodes[chosen], return_inverse=True)
    adjoints[reached] = plus(adjoints[reached], total(values[chosen], positions, len(reached)))


def _between(graph: Graph, inputs: Integers) -> Booleans:
    """The nodes on a path from these inputs to the outputs that a gradient takes; the last entry is ONE."""
    steps, depends, reached = steps_of(graph), np.zeros(graph.size + 1, bool), np.zeros(graph.size + 1, bool)
    depends[inputs] = reached[graph.differentiated] = True
    for step in steps:
        for owners, factors in _paths(graph, step):
            depends[owners[depends[factors]]] = True
    for step in reversed(steps):
        for owners, factors in _paths(graph, step):
            reached[factors[reached[owners]]] = True
    reached[ONE] = False
    return depends & reached


def _paths(graph: Graph, step: Step) -> Iterator[tuple[Integers, Integers]]:
    """The nodes of a step, and beside each a node that a gradient flows on to."""
    if step.application is None:
        owner = graph.terms.owner[step.rows]
        yield owner, graph.terms.first[step.rows]
        yield owner, graph.terms.second[step.rows]
        return
    part = step.application.chosen(step.rows)
    if part.tables is not None:
        for node, table in zip(part.nodes.tolist(), part.tables.tolist(), strict=True):
            yield np.full(len(graph.tables[table]), node), graph.tables[table]
    for rule, column in zip(part.primitive.derivatives, part.operands.T, strict=False):
        if rule is not None:
            yield part.nodes, column


def _through_takes(graph: Graph, part: Applications, memory: Memory, adjoints: Elements, needed: Booleans) -> None:
    assert part.tables is not None
    for node, index, table in zip(part.nodes.tolist(), part.operands, part.tables.tolist(), strict=True):
        elements = graph.tables[table]
        factors = times_of_elements(memory.read(index), len(elements))[0]
        _add(adjoints, elements, times(adjoints[[node]], factors), needed[elements])


def _known(graph: Graph, part: Applications, needed: Booleans) -> Floats:
    """The operands that are constants, and NaN for others; the rules are run with the numbers if these are few."""
    numbers = np.where(graph.is_constant[part.operands], graph.constants[part.operands], np.nan)
    has_rule = np.array([rule is not None for rule in part.primitive.derivatives] or [False])
    flows = (needed[part.operands] & has_rule).any(axis=1) & needed[part.nodes]
    few = len(np.unique(numbers[flows].view(np.int64), axis=0)) <= FEW_CONSTANTS
    return numbers if few else np.full_like(numbers, np.nan)


def _cases(known: Floats) -> Iterator[tuple[Integers, list[float | None]]]:
    """Rows that have the same constants, and what these are."""
    found, which = np.unique(known.view(np.int64), axis=0, return_inverse=True)
    for number, row in enumerate(found.view(np.float64).tolist()):
        yield np.flatnonzero(which.ravel() == number), [None if math.isnan(known) else known for known in row]


def _through_rules(
    part: Applications, known: list[float | None], memory: Memory, adjoints: Elements, needed: Booleans
) -> None:
    """Add what the rules of a primitive give."""
    operands = part.operands.T
    flows = [
        needed[column] if rule else np.zeros(len(column), dtype=bool)
        for column, rule in zip(operands, part.primitive.derivatives, strict=True)
    ]
    written, results = rules_on_symbols(part.primitive, [bool(column.any()) for column in flows], known)
    given = {"gradient": adjoints[part.nodes], "output": memory.read(part.nodes)}
    made: list[Elements] = []
    for operation, *positions in written.operations:
        if operation is INPUT:
            made.append(given[positions[0]] if positions[0] in given else memory.read(operands[positions[0]]))
        elif operation is LITERAL:
            made.append(element_of(np.full(len(part.nodes), positions[0])))
        else:
            made.append(applied(operation, *(made[position] for position in positions)))
    for column, position in results:
        values = element_of(np.full(len(part.nodes), position)) if isinstance(position, float) else made[position]
        _add(adjoints, operands[column], values, flows[column])
