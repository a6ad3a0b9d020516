"""Normalise: everything is a sum of products, or a primitive.

Of the trace's additions, subtractions, negations and multiplications only one kind of node is left: a
sum of terms, each a coefficient times one or two factors. ``b + w0 * x0 - w1 * x1`` was four operations,
and is one node:

    1 * b  +  1 * w0 * x0  +  -1 * w1 * x1

That is a dot product with a bias, seen at a glance. The terms stand in the order of the program: a chain of
+ and - from left to right becomes one sum, and what stands in parentheses on the right of an operator stays
a node of its own, as it is rounded on its own. A copy gives way to what it copies. What nothing needs is left
out. Where no gradient flows, as in the largest of softmax's inputs, a maximum of maxima becomes one maximum.

The terms of dot products that have very many stay whole (see vectors.py), unless these come level after level, as in
a recurrent network: then they are parts of a loop.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.entries import DIFFERENTIATED_AS, SUM_OF_PRODUCTS, TAKE
from micrograd.compiler.ir.graph import MAXIMUM, ONE, SUM, Applications, Graph, Terms
from micrograd.compiler.ir.program import IN_ORDER
from micrograd.compiler.ir.vectors import Dots
from micrograd.compiler.numbers import distinct, no_integers
from micrograd.compiler.passes.checks import may_raise
from micrograd.compiler.passes.repeats import FEWEST_ITERATIONS
from micrograd.engine import primitives

if TYPE_CHECKING:
    from micrograd.compiler.ir.columns import Columns
    from micrograd.compiler.ir.vectors import Rows
    from micrograd.compiler.numbers import Booleans, Counts, Floats, Integers
    from micrograd.engine.primitive import Primitive

# The terms of each arithmetic primitive: a coefficient, and which operands are the factors: 1, 2, or 0 for ONE.
ARITHMETIC: dict[Primitive, tuple[tuple[float, int, int], ...]] = {
    primitives.add: ((1.0, 1, 0), (1.0, 2, 0)),
    primitives.sub: ((1.0, 1, 0), (-1.0, 2, 0)),
    primitives.neg: ((-1.0, 1, 0),),
    primitives.mul: ((1.0, 1, 2),),
}

MANY = 1 << 17  # fewer terms of long dot products are taken one by one
# In each iteration of a loop, too. The first call of 40 steps of tanh(h @ W + x), value and gradient, takes 0.55 s in
# place of 0.60 with 1,728 products a step, 0.55 in place of 0.75 with 4,096, and 2.6 in place of 4.3 with 32,768.
MANY_ON_A_LEVEL = 1 << 10


def normalise(columns: Columns) -> Graph:
    """The normal form of a trace."""
    graph = flatten(_in_terms(columns)).without_the_unused()  # flat, it is not as deep, and quicker to walk through
    unreached = graph.operands(differentiable=True).out_of_reach(graph.differentiated)
    graph = flatten(_with_maxima(replace(graph, differentiable=~unreached))).without_the_unused()
    return graph.expanded() if graph.whole and _have_few_terms(graph) else graph


def _in_terms(columns: Columns) -> Graph:
    """The graph of a trace in which each arithmetic operation is a sum of its own."""
    trace, size = columns.trace, columns.size
    kind = np.zeros(size, dtype=np.int8)
    constants = np.full(size, np.nan)
    constants[columns.literals] = columns.numbers
    parts = [Terms(no_integers(), np.zeros(0), no_integers(), no_integers())]
    long: list[Dots] = []
    applications: list[Applications] = []
    for primitive, nodes, operands in columns.operations:
        if primitive is SUM_OF_PRODUCTS:
            kind[nodes] = SUM
            starts, *factors = operands
            parts.append(Terms(nodes, np.ones(len(starts)), starts, np.full(len(starts), ONE)))
            dots = _dots(trace.rows, nodes, np.stack(factors))
            long = [part for part in dots if part.length > IN_ORDER]
            if sum(part.length * len(part.owner) for part in long) < MANY:
                long = []
            parts += [Terms.one_by_one(part) for part in dots if not long or part.length <= IN_ORDER]
        elif primitive is TAKE:
            applications.append(Applications(primitive, nodes, operands[0][:, None], operands[1]))
        elif primitive in ARITHMETIC:
            kind[nodes] = SUM
            for coefficient, first, second in ARITHMETIC[primitive]:
                others = operands[second - 1] if second else np.broadcast_to(ONE, nodes.shape)
                parts.append(Terms(nodes, np.broadcast_to(coefficient, nodes.shape), operands[first - 1], others))
        else:
            applications.append(Applications(primitive, nodes, np.stack(operands, axis=1)))
    graph = Graph(
        kind=kind,
        constants=constants,
        is_constant=_marks(size, columns.literals),
        terms=Terms.sorted(parts),
        applications=tuple(applications),
        tables=tuple(np.array(table) for table in trace.tables),
        inputs=tuple(np.array(group, dtype=np.int64) for group in trace.inputs),
        outputs=np.array(trace.outputs, dtype=np.int64),
        differentiable=np.zeros(size, dtype=bool),
        unordered=np.zeros(size, dtype=bool),
        from_zero=np.zeros(size, dtype=bool),
        whole=tuple(long),
        answers=len(trace.questions),
        read=trace.needed,
    )
    checked = np.concatenate([np.array(trace.checked, dtype=np.int64), may_raise(graph)])
    for part in trace.repeated:
        checked = checked[(checked < part.start) | (checked >= part.stop)]
    return replace(graph, checked=checked)


def _dots(rows: Rows, owner: Integers, factors: Integers) -> list[Dots]:
    """The products of sums of products, given two rows of each; those of one length are taken together."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))[factors[0]]
    return [
        Dots.of(rows, owner[lengths == length], factors[:, lengths == length])
        for length in dict.fromkeys(lengths.tolist())
    ]


def are_in_loops(graph: Graph, levels: Integers) -> bool:
    """Whether there is a vector whose dot products are on so many levels that they may be parts of a loop."""
    for dots in graph.whole:
        of_level = levels[dots.owner] * len(dots.elements)
        uses = distinct(np.concatenate([of_level + dots.first, of_level + dots.second]))
        if np.bincount(uses % len(dots.elements)).max(initial=0) >= FEWEST_ITERATIONS:
            return True
    return False


def _have_few_terms(graph: Graph) -> bool:
    """Whether dot products that are on many levels have few terms on each of them."""
    levels = graph.levels()
    if not are_in_loops(graph, levels):
        return False
    terms = np.zeros(graph.size, dtype=np.int64)
    for dots in graph.whole:
        terms += dots.length * np.bincount(levels[dots.owner], minlength=graph.size)
    return int(terms.max()) < MANY_ON_A_LEVEL


def _with_maxima(graph: Graph) -> Graph:
    """Give maxima and copies through which no gradient flows terms, so that they can be flattened."""
    kind, parts, kept = graph.kind.copy(), [graph.terms], []
    for application in graph.applications:
        if application.primitive in (primitives.maximum, DIFFERENTIATED_AS):
            free = ~graph.differentiable[application.nodes]
            nodes, operands = application.nodes[free], application.operands[free].T
            kind[nodes] = MAXIMUM
            if application.primitive is DIFFERENTIATED_AS:
                kind[nodes], operands = SUM, operands[:1]
            ones, alone = np.ones(len(nodes)), np.full(len(nodes), ONE)
            parts += [Terms(nodes, ones, column, alone) for column in operands]
            application = application.chosen(~free)
        if len(application.nodes):
            kept.append(application)
    if len(parts) == 1:
        return graph
    return replace(graph, kind=kind, terms=Terms.sorted(parts), applications=tuple(kept))


def flatten(graph: Graph, first: int = 0) -> Graph:
    """Leave out zeros, use what copies copy, and make chains of sums that are used once one sum each.

    Args:
        graph: in normal form but for these.
        first: the nodes before this one are flat; their terms need not be in the graph.
    """
    for step in (_without_zeros, _without_copies, _doubled, _merged):
        graph = step(graph, first)  # the one before is not needed any more, and may be large
    return graph


def _without_zeros(graph: Graph, first: int) -> Graph:
    """Leave out terms of 0, such as the 0 that Python's sum() starts from; that the sum is not -0 is kept in mind."""
    terms = graph.terms
    zeros = np.flatnonzero((graph.constants == 0)[terms.first] & (terms.second == ONE))
    zeros = zeros[graph.kind[terms.owner[zeros]] == SUM]
    if not len(zeros):
        return graph
    owner = terms.owner[zeros]
    has_others = (graph.counts() > np.bincount(owner, minlength=graph.size))[owner]
    zeros, owner = zeros[has_others], owner[has_others]
    positive = ~np.signbit(graph.constants[terms.first[zeros]] * terms.coefficient[zeros])
    from_zero = graph.from_zero | _marks(graph.size, owner[positive])
    return replace(graph, terms=terms.kept(~_marks(len(terms.owner), zeros)), from_zero=from_zero & ~graph.unordered)


def _without_copies(graph: Graph, first: int) -> Graph:
    """Replace each node that only copies or negates another one by that other one."""
    terms, size = graph.terms, graph.size
    may_copy = (graph.counts() == 1) & ~graph.from_zero
    may_copy[graph.results] = False
    copies = np.flatnonzero(may_copy[terms.owner] & (terms.second == ONE))
    if not len(copies):
        return graph
    original, factor = np.arange(size + 1), np.ones(size + 1)  # the last entry is that of ONE
    original[-1] = ONE
    owner = terms.owner[copies]
    original[owner], factor[owner] = terms.first[copies], terms.coefficient[copies]
    _followed(original, factor, owner)
    coefficient = terms.coefficient * factor[terms.first] * factor[terms.second]
    terms = Terms(terms.owner, coefficient, original[terms.first], original[terms.second])
    alias, negated = original[:-1], np.flatnonzero(factor[:-1] != 1)
    alias[negated] = negated
    graph = replace(
        graph,
        terms=terms,
        applications=tuple(replace(a, operands=alias[a.operands]) for a in graph.applications),
        tables=tuple(alias[table] for table in graph.tables),
        whole=tuple(part.reading(alias) for part in graph.whole),
    )
    kept = ~_marks(size, owner) | (_uses(graph, first) > 0)
    return replace(graph, terms=graph.terms.kept(kept[graph.terms.owner]))


def _followed(target: Integers, factor: Floats, moving: Integers) -> Counts:
    """Turn targets into the ends of their chains, and factors into the products along these; how long each chain is.

    Args:
        target: where each goes.
        factor: of each.
        moving: those that go elsewhere.
    """
    length = np.zeros(len(target), dtype=np.int32)
    length[moving] = 1
    # each goes as far again as what it goes to: a chain of 1,000,000 takes 20 iterations, and 0.24 s
    while len(moving):
        reached = target[moving]
        beyond = target[reached]
        goes_on = np.flatnonzero(beyond != reached)
        moving, reached = moving[goes_on], reached[goes_on]
        turned = np.flatnonzero(factor[reached] != 1)  # few are
        factor[moving[turned]] *= factor[reached[turned]]
        length[moving] += length[reached]
        target[moving] = beyond[goes_on]
    return length


def _uses(graph: Graph, first: int) -> Integers:
    """How often each node is used, as a result too. Those before the first one are used elsewhere as well."""
    uses = np.zeros(graph.size + 1, dtype=np.int64)  # the last is ONE
    used = [graph.terms.first, graph.terms.second, graph.results, *(part.used for part in graph.whole)]
    for application in graph.applications:
        used.append(application.operands.ravel())
        if application.tables is not None:
            used += [graph.tables[table] for table in distinct(application.tables)]
    for nodes in used:
        np.add.at(uses, nodes, 1)
    uses[:first] += 2
    return uses[:-1]


def _marks(size: int, nodes: Integers) -> Booleans:
    """Which nodes are among these."""
    marks = np.zeros(size, dtype=bool)
    marks[nodes] = True
    return marks


def _doubled(graph: Graph, first: int) -> Graph:
    """Make one term of the first two of a sum where they are equal, as those of the gradient of ``x * x`` are."""
    terms = graph.terms
    starts = np.flatnonzero(np.append(True, terms.owner[1:] != terms.owner[:-1])[: len(terms.owner)])
    starts = starts[graph.kind[terms.owner[starts]] == SUM]
    seconds = (starts + 1) % len(terms.owner)  # that after the last is of another sum, or of the same one term
    columns = (terms.owner, terms.first, terms.second, terms.coefficient)
    equal = np.logical_and.reduce([column[starts] == column[seconds] for column in columns]) & (seconds != starts)
    if not equal.any():
        return graph
    coefficient = terms.coefficient.copy()
    coefficient[starts[equal]] *= 2.0
    twice = replace(terms, coefficient=coefficient)
    return replace(graph, terms=twice.kept(~_marks(len(terms.owner), seconds[equal])))


def _merged(graph: Graph, first: int) -> Graph:
    """Make products and the starts of chains that are used once part of the sums that use them.

    The order of the terms stays that of the program. A product takes the place of the term that it was. A sum
    of several terms must be the first term, ``(a + b) + c``: in any other position it is rounded on its own. And where
    sums are added up, the first of them stays what the others are.
    """
    terms, size, kind = graph.terms, graph.size, graph.kind
    has_one = graph.counts() == 1
    once = np.flatnonzero((_uses(graph, first) == 1)[terms.first] & (terms.second == ONE))
    once = once[kind[terms.first[once]] == kind[terms.owner[once]]]
    user, used = terms.owner[once], terms.first[once]
    is_first = terms.owner[once - 1] != user  # before the first of all comes the last one, which is of another sum
    is_product = has_one[used] & ~graph.from_zero[used]
    adds_sums = _marks(size, user[~is_product & ~is_first])
    adds_sums[used[is_first & adds_sums[user] & has_one[used] & graph.from_zero[used]]] = (
        True  # 0 and the first of them
    )
    ordered = ~graph.unordered[user] & ~graph.unordered[used]
    begins = is_first & ordered & (adds_sums[used] | ~adds_sums[user])
    # Negated, the largest is the smallest; and a sum that is 0 is -0, but the sum of its negated terms is not.
    is_sum = kind[user] == SUM
    merged = (is_sum & is_product) | (
        (terms.coefficient[once] == 1) & (begins | ~is_sum | (has_one & ~adds_sums)[user])
    )
    if not merged.any():
        return graph
    once, user, used, is_product = once[merged], user[merged], used[merged], is_product[merged]
    end, factor = np.arange(size), np.ones(size)
    end[used], factor[used] = user, terms.coefficient[once]
    depth = _followed(end, factor, used)
    rest = _in_order(terms, once, used[is_product], once[is_product], end, depth)
    owner = terms.owner[rest]
    coefficient = terms.coefficient[rest] * factor[owner]
    unordered = graph.unordered | _marks(size, end[graph.unordered])
    from_zero = graph.from_zero | _marks(size, end[graph.from_zero])
    return replace(
        graph,
        terms=Terms(end[owner], coefficient, terms.first[rest], terms.second[rest]),
        checked=np.flatnonzero(_marks(size, end[graph.checked])),
        whole=tuple(part.merged(end) for part in graph.whole),
        unordered=unordered,
        from_zero=from_zero & ~unordered,
    )


def _in_order(
    terms: Terms, merged: Integers, products: Integers, used_as: Integers, end: Integers, depth: Counts
) -> Integers:
    """The terms that are left, in the order in which they come then.

    Args:
        terms: of all nodes.
        merged: the terms that nodes are merged in the place of.
        products: which of these nodes are products.
        used_as: and in the place of which terms.
        end: for each node what it becomes a part of.
        depth: and how far inside it is.
    """
    rest = np.flatnonzero(~_marks(len(terms.owner), merged))
    owner = terms.owner[rest]
    # A product comes where it was used. Of a chain, what is farther in comes first.
    used_at = np.full(len(end), ONE, dtype=np.int32)
    used_at[products] = used_as
    position = rest.copy()
    moved = np.flatnonzero((used_at != ONE)[owner])
    position[moved] = used_at[owner[moved]]
    keys = end[owner] << 32  # nobody has two billion nodes or terms
    order = np.argsort(keys | position, kind="stable")
    # Mostly, what is farther in stands earlier anyway.
    keys |= depth.max() - depth[terms.owner[position]]
    ordered = keys[order]
    if (ordered[1:] < ordered[:-1]).any():
        order = np.lexsort((position, keys))
    return rest[order]
