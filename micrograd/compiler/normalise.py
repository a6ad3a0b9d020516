"""Normalise: everything is a sum of products, or a primitive.

Of the trace's additions, subtractions, negations and multiplications only one kind of node is left: a
sum of terms, each a coefficient times one or two factors. ``b + w0 * x0 - w1 * x1`` was four operations,
and is one node:

    1 * b  +  1 * w0 * x0  +  -1 * w1 * x1

That is a dot product with a bias, seen at a glance. A sum is taken into another one where it is used
once and as it is; a copy gives way to what it copies; what nothing needs is left out. Where no gradient
flows, as in the largest of softmax's inputs, maxima are flattened in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.trace import CONSTANT, INPUT, SUM_OF_PRODUCTS, TAKE
from micrograd.compiler.walks import Edges
from micrograd.engine import primitives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.trace import Tape
    from micrograd.engine.primitive import Primitive

ONE = -1  # the second factor of a term that has none
OTHER, SUM, MAXIMUM = range(3)  # what a node's terms make: nothing, their sum, the largest of them

# What an arithmetic primitive is as terms: for each, its coefficient and which operands are its factors.
ARITHMETIC: dict[Primitive, tuple[tuple[float, int, int], ...]] = {
    primitives.add: ((1.0, 1, 0), (1.0, 2, 0)),
    primitives.sub: ((1.0, 1, 0), (-1.0, 2, 0)),
    primitives.neg: ((-1.0, 1, 0),),
    primitives.mul: ((1.0, 1, 2),),
}


@dataclass
class Terms:
    """Terms side by side: ``coefficient * first * second`` is one term of the node that owns it."""

    owner: Integers
    coefficient: Floats
    first: Integers
    second: Integers

    def __getitem__(self, chosen: Any) -> Terms:
        return Terms(self.owner[chosen], self.coefficient[chosen], self.first[chosen], self.second[chosen])

    @staticmethod
    def joined(parts: Sequence[Terms]) -> Terms:
        """All terms of several, one after the other."""
        return Terms(
            np.concatenate([part.owner for part in parts]),
            np.concatenate([part.coefficient for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.second for part in parts]),
        )


@dataclass
class Applications:
    """Nodes that all apply one primitive: a row each, with the nodes of its operands."""

    primitive: Primitive
    nodes: Integers
    operands: Integers  # (number of nodes, arity)
    tables: Integers | None = None  # of TAKE: which table each takes from

    def chosen(self, rows: Any) -> Applications:
        """Some of them."""
        tables = None if self.tables is None else self.tables[rows]
        return Applications(self.primitive, self.nodes[rows], self.operands[rows], tables)


@dataclass
class Graph:
    """A program in normal form.

    Attributes:
        kind: for each node, what its terms make; nodes are indices into it.
        constants: the number of each constant node; NaN for other nodes.
        is_constant: which nodes are constants.
        terms: of all nodes.
        applications: of primitives other than + - *.
        tables: for each table, the nodes of its elements.
        outputs: the nodes whose numbers are wanted; they are never merged into others.
        differentiable: which nodes a gradient reaches from the outputs.
    """

    kind: Integers
    constants: Floats
    is_constant: np.ndarray[Any, np.dtype[np.bool_]]
    terms: Terms
    applications: list[Applications]
    tables: list[Integers]
    outputs: Integers
    differentiable: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.kind)

    def of(self, outputs: Integers) -> Graph:
        """The graph of some of the outputs, to add to and to flatten: it leaves this one as it is."""
        applications = [replace(application) for application in self.applications]
        graph = _without_the_unused(replace(self, applications=applications, outputs=outputs))
        reached = Edges(graph.size, *graph.edges(differentiable=True)).reached(outputs)
        return replace(graph, differentiable=graph.differentiable & reached)

    def edges(self, differentiable: bool = False) -> tuple[Integers, Integers]:
        """From each node that is computed to each that it needs: all, or those that a gradient takes."""
        second = self.terms.second != ONE
        users, used = [self.terms.owner, self.terms.owner[second]], [self.terms.first, self.terms.second[second]]
        for application in self.applications:
            columns = application.operands.T
            stops = [rule is None for rule in application.primitive.derivatives]
            stops = stops or [application.primitive is TAKE] * len(columns)
            for column, stop in zip(columns, stops, strict=True):
                if not differentiable or not stop:
                    users.append(application.nodes)
                    used.append(column)
            if application.tables is not None:
                for node, table in zip(application.nodes, application.tables, strict=True):
                    users.append(np.full(len(self.tables[table]), node))
                    used.append(self.tables[table])
        return np.concatenate(users), np.concatenate(used)


def normalise(tape: Tape, outputs: Sequence[int]) -> Graph:
    """The normal form of what a tape says of its outputs."""
    keys = list(tape.operations)
    places: defaultdict[Primitive, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key[0]].append(place)

    size = len(keys)
    kind = np.zeros(size, dtype=np.int64)
    constants = np.full(size, np.nan)
    is_constant = np.zeros(size, dtype=bool)
    parts, applications = [no_terms()], []
    for primitive, chosen in places.items():
        if primitive is INPUT:
            continue
        if primitive is SUM_OF_PRODUCTS:
            kind[chosen] = SUM
            parts += _sums_of_products([(place, *keys[place][1:]) for place in chosen])
            continue
        nodes = np.array(chosen)
        columns = [np.array(column) for column in list(zip(*[keys[place] for place in chosen], strict=True))[1:]]
        if primitive is CONSTANT:
            constants[nodes] = columns[0]
            is_constant[nodes] = True
        elif primitive is TAKE:
            applications.append(Applications(primitive, nodes, columns[0][:, None], columns[1]))
        elif primitive in ARITHMETIC:
            kind[nodes] = SUM
            for coefficient, first, second in ARITHMETIC[primitive]:
                others = columns[second - 1] if second else np.full(len(nodes), ONE)
                parts.append(Terms(nodes, np.full(len(nodes), coefficient), columns[first - 1], others))
        else:
            applications.append(Applications(primitive, nodes, np.stack(columns, axis=1)))
    terms = Terms.joined(parts)
    graph = Graph(
        kind=kind,
        constants=constants,
        is_constant=is_constant,
        terms=terms[np.argsort(terms.owner, kind="stable")],
        applications=applications,
        tables=[np.array(table) for table in tape.tables],
        outputs=np.array(outputs, dtype=np.int64),
        differentiable=np.zeros(size, dtype=bool),
    )
    graph = _without_the_unused(flatten(graph))  # flat, it is not as deep, and quicker to walk through
    graph.differentiable = Edges(size, *graph.edges(differentiable=True)).reached(graph.outputs)
    return flatten(_with_maxima(graph))


def _sums_of_products(rows: list[tuple[int, ...]]) -> list[Terms]:
    """The terms of sums of products: of those that are equally long, all at a time."""
    by_length: defaultdict[int, list[tuple[int, ...]]] = defaultdict(list)
    for row in rows:
        by_length[len(row) // 2 - 1].append(row)
    parts = []
    for length, alike in by_length.items():
        table = np.array(alike)
        nodes, starts = table[:, 0], table[:, 1]
        first, second = table[:, 2 : 2 + length].ravel(), table[:, 2 + length :].ravel()
        parts.append(Terms(nodes, np.ones(len(nodes)), starts, np.full(len(nodes), ONE)))
        parts.append(Terms(np.repeat(nodes, length), np.ones(len(first)), first, second))
    return parts


def _without_the_unused(graph: Graph) -> Graph:
    """Leave out what the outputs do not need."""
    needed = Edges(graph.size, *graph.edges()).reached(graph.outputs)
    graph.terms = graph.terms[needed[graph.terms.owner]]
    graph.applications = [a.chosen(needed[a.nodes]) for a in graph.applications if needed[a.nodes].any()]
    return graph


def _with_maxima(graph: Graph) -> Graph:
    """Make maxima through which no gradient flows nodes with terms, so that they can be flattened."""
    kept = []
    for application in graph.applications:
        if application.primitive is primitives.maximum:
            free = ~graph.differentiable[application.nodes]
            nodes = application.nodes[free]
            graph.kind[nodes] = MAXIMUM
            ones, alone = np.ones(len(nodes)), np.full(len(nodes), ONE)
            parts = [Terms(nodes, ones, column, alone) for column in application.operands[free].T]
            graph.terms = Terms.joined([graph.terms, *parts])
            application = application.chosen(~free)
        if len(application.nodes):
            kept.append(application)
    graph.terms = graph.terms[np.argsort(graph.terms.owner, kind="stable")]
    graph.applications = kept
    return graph


def no_terms() -> Terms:
    """Terms, none of them."""
    nothing = np.zeros(0, dtype=np.int64)
    return Terms(nothing, np.zeros(0), nothing, nothing)


def flatten(graph: Graph) -> Graph:
    """Leave out zeros, replace copies by what they copy, and take sums used once into the sums that use them."""
    return _merged(_without_copies(_without_zeros(graph)))


def _without_zeros(graph: Graph) -> Graph:
    """Leave out terms of 0, such as the one that Python's sum() starts from."""
    terms = graph.terms
    zero = (graph.constants[terms.first] == 0) & (terms.second == ONE) & (graph.kind[terms.owner] == SUM)
    if zero.any():
        others = np.bincount(terms.owner[~zero], minlength=graph.size)
        graph.terms = terms[~(zero & (others[terms.owner] > 0))]
    return graph


def _without_copies(graph: Graph) -> Graph:
    """Use, in the place of a node that only copies or negates another, that other node."""
    terms, size = graph.terms, graph.size
    counts = np.bincount(terms.owner, minlength=size)
    copies = (counts[terms.owner] == 1) & (terms.second == ONE)
    copies &= ~np.isin(terms.owner, graph.outputs)
    if not copies.any():
        return graph
    original, factor = np.arange(size + 1), np.ones(size + 1)  # the last is ONE itself
    original[-1] = ONE
    original[terms.owner[copies]] = terms.first[copies]
    factor[terms.owner[copies]] = terms.coefficient[copies]
    original, factor = _followed(original, factor)
    coefficient = terms.coefficient * factor[terms.first] * factor[terms.second]
    graph.terms = Terms(terms.owner, coefficient, original[terms.first], original[terms.second])
    same = factor[:-1] == 1
    alias = np.where(same, original[:-1], np.arange(size))
    for application in graph.applications:
        application.operands = alias[application.operands]
    graph.tables = [alias[table] for table in graph.tables]
    needed = _uses(graph) > 0
    graph.terms = graph.terms[~np.isin(graph.terms.owner, terms.owner[copies]) | needed[graph.terms.owner]]
    return graph


def _followed(target: Integers, factor: Floats) -> tuple[Integers, Floats]:
    """Where chains of targets end, and the product of the factors on the way."""
    while not np.array_equal(target[target], target):
        factor = factor * factor[target]
        target = target[target]
    return target, factor


def _uses(graph: Graph) -> Integers:
    """How often each node is used: by other nodes, and as an output."""
    second = graph.terms.second
    used = [graph.terms.first, second[second != ONE], graph.outputs]
    for application in graph.applications:
        used.append(application.operands.ravel())
        if application.tables is not None:
            used += [graph.tables[table] for table in np.unique(application.tables)]
    return np.bincount(np.concatenate(used), minlength=graph.size)


def _merged(graph: Graph) -> Graph:
    """Take sums that are used once, as they are, into the sums that use them; so with maxima."""
    terms = graph.terms
    once = (_uses(graph)[terms.first] == 1) & (terms.second == ONE)
    once &= graph.kind[terms.first] == graph.kind[terms.owner]
    once &= (graph.kind[terms.owner] == SUM) | (terms.coefficient == 1)  # the largest does not stay it when negated
    if not once.any():
        return graph
    size = graph.size
    owner, factor = np.arange(size), np.ones(size)
    owner[terms.first[once]] = terms.owner[once]
    factor[terms.first[once]] = terms.coefficient[once]
    owner, factor = _followed(owner, factor)
    kept = terms[~once]
    kept = Terms(owner[kept.owner], kept.coefficient * factor[kept.owner], kept.first, kept.second)
    graph.terms = kept[np.argsort(kept.owner, kind="stable")]
    return graph
