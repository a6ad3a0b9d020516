"""Adjoint: the reverse program, from the primitives' own derivative rules.

Each node v that a gradient flows through gets a second one, its adjoint: the derivative of the output
with respect to v. It is a sum over the uses of v, so it is in normal form already:

    v is a factor of the term c * v * w of a sum s      adds the term c * adjoint(s) * w
    v is an operand of a primitive                      adds what the primitive's derivative rule gives

A rule runs once, on symbols. That makes a small program, which is copied for every node of the primitive.
For ``s = w0 * x0 + w1 * x1``

    adjoint(w0) = adjoint(s) * x0          adjoint(x0) = adjoint(s) * w0 + ... the other uses of x0

So the adjoint of a matrix times a vector is the transpose times a vector. No rule says so: it follows. Where dot
products stay whole (see vectors.py), each vector gets a linear combination, which is one of the terms of its adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.entries import EQUAL, INPUT, LESS, LITERAL, TAKE, EqualsInOrder
from micrograd.compiler.ir.graph import ONE, OTHER, SUM, Applications, Graph, Terms
from micrograd.compiler.ir.vectors import Dots
from micrograd.compiler.numbers import distinct
from micrograd.compiler.passes.alike import different_rows
from micrograd.compiler.passes.checks import may_raise
from micrograd.compiler.passes.normalise import ARITHMETIC, flatten
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape, tracing
from micrograd.engine.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.numbers import Booleans, Floats, Integers, Kinds
    from micrograd.engine.primitive import Primitive

FEW_CONSTANTS = 16  # up to so many constants of a primitive get a program each, with the constant in it


class _TapeOfARule(Tape):
    """What a rule writes down: operations on single numbers only, as they are copied for every node."""

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> None:
        """Let the products be written one by one."""

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """Refuse an index that is not known, as it is refused where nothing is compiled."""
        return Tracer.take(self, elements, 0.0 if isinstance(index, Symbol) else index)


@dataclass
class _Builder:
    """Collects the nodes that are added to a graph."""

    graph: Graph
    kinds: list[Kinds] = field(default_factory=list)
    constants: list[Floats] = field(default_factory=list)
    terms: list[Terms] = field(default_factory=list)
    applications: list[Applications] = field(default_factory=list)
    whole: list[Dots] = field(default_factory=list)
    constant_nodes: dict[float, int] = field(default_factory=dict)
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.graph.size

    def nodes(self, count: int, kind: int, constant: float = np.nan) -> Integers:
        """A number of new nodes of one kind."""
        made = np.arange(self.size, self.size + count)
        self.size += count
        self.kinds.append(np.full(count, kind, dtype=np.int8))
        self.constants.append(np.full(count, constant))
        return made

    def constant(self, number: float) -> int:
        if number not in self.constant_nodes:
            self.constant_nodes[number] = self.nodes(1, OTHER, number).item()
        return self.constant_nodes[number]

    def add(self, owner: Integers, first: Integers, second: Integers | None = None, coefficient: Any = 1.0) -> None:
        second = np.full(len(owner), ONE) if second is None else second
        self.terms.append(
            Terms(owner, np.broadcast_to(np.asarray(coefficient, dtype=float), owner.shape), first, second)
        )

    def has_terms(self) -> Booleans:
        found = np.zeros(self.size, dtype=bool)
        for terms in self.terms:
            found[terms.owner] = True
        return found

    def new_terms(self) -> Terms:
        """Those that were added, which are not kept any longer."""
        terms = Terms.sorted(self.terms)
        self.terms.clear()
        return terms


def adjoint(graph: Graph, wanted: Integers) -> Graph:
    """Add the gradient of the outputs with respect to some of the inputs.

    Args:
        graph: in normal form.
        wanted: the numbers of the inputs, counted through all groups. If there are none, the graph stays as it is.

    Returns:
        The graph with two more fields: the seeds, which are the gradients of the outputs themselves (inputs
        that are to be given: 1 for a single output), and the gradients that are wanted.
    """
    if not len(wanted):
        return graph
    made = flatten(_with_adjoints(graph, wanted), first=graph.size)
    return replace(made, terms=Terms.joined([graph.terms, made.terms]))


def _with_adjoints(graph: Graph, wanted: Integers) -> Graph:
    """The graph with the gradients, which are not flat yet, and with the new terms only."""
    inputs = np.concatenate(graph.inputs)[wanted]
    needed = _needed(graph, inputs)
    builder = _Builder(graph)
    adjoints = np.full(graph.size, ONE)
    through = np.flatnonzero(needed)
    adjoints[through] = builder.nodes(len(through), SUM)

    seeds = builder.nodes(len(graph.differentiated), OTHER)
    flowing = needed[graph.differentiated]
    builder.add(adjoints[graph.differentiated[flowing]], seeds[flowing])
    _through_terms(graph.terms, needed, adjoints, builder)
    for part in graph.whole:
        _through_dots(part, needed, adjoints, builder)
    for application in graph.applications:
        if application.primitive is TAKE:
            _through_takes(application, graph, needed, adjoints, builder)
        else:
            _through_primitive(application, graph, needed, adjoints, builder)

    empty = adjoints[through][~builder.has_terms()[adjoints[through]]]
    builder.add(empty, np.full(len(empty), builder.constant(0.0)))  # no sum may be without terms
    gradients = np.array([adjoints[node] if needed[node] else builder.constant(0.0) for node in inputs], dtype=np.int64)
    copies = builder.nodes(len(gradients), SUM)  # gradients lie side by side, even if two are the same node
    builder.add(copies, gradients)

    return _with_gradients(graph, builder, adjoints[through], seeds, copies)


def _with_gradients(graph: Graph, builder: _Builder, adjoints: Integers, seeds: Integers, gradients: Integers) -> Graph:
    """The graph with all that was added to it, and with the new terms only: the others stay as they are."""
    unordered = np.zeros(builder.size, dtype=bool)
    unordered[adjoints] = True
    for part in builder.whole:
        unordered[part.owner] = True
    new_constants = np.concatenate(builder.constants)
    is_new_constant = np.zeros(len(new_constants), dtype=bool)
    is_new_constant[[node - graph.size for node in builder.constant_nodes.values()]] = True
    made = replace(
        graph,
        kind=np.concatenate([graph.kind, *builder.kinds]),
        constants=np.concatenate([graph.constants, new_constants]),
        is_constant=np.concatenate([graph.is_constant, is_new_constant]),
        terms=builder.new_terms(),
        applications=(*graph.applications, *builder.applications),
        differentiable=np.zeros(builder.size, dtype=bool),  # a second adjoint is not taken
        unordered=unordered,
        from_zero=np.append(graph.from_zero, np.zeros(builder.size - graph.size, dtype=bool)),
        seeds=seeds,
        gradients=gradients,
        whole=(*graph.whole, *builder.whole),
    )
    return replace(made, checked=np.concatenate([graph.checked, may_raise(made, builder.applications)]))


def _needed(graph: Graph, wanted: Integers) -> Booleans:
    """The nodes between the wanted ones and the outputs, both included."""
    return graph.differentiable & ~graph.users(differentiable=True).out_of_reach(wanted)


def _through_terms(terms: Terms, needed: Any, adjoints: Integers, builder: _Builder) -> None:
    """A factor of a term gets the coefficient times the adjoint of the sum times the other factor."""
    owners = adjoints[terms.owner]
    square = terms.first == terms.second
    flows = np.flatnonzero(needed[terms.owner] & needed[terms.first])
    builder.add(
        adjoints[terms.first[flows]],
        owners[flows],
        terms.second[flows],
        (terms.coefficient * np.where(square, 2.0, 1.0))[flows],
    )
    flows = np.flatnonzero(needed[terms.owner] & needed[terms.second] & ~square & (terms.second != ONE))
    builder.add(adjoints[terms.second[flows]], owners[flows], terms.first[flows], terms.coefficient[flows])


def _through_dots(dots: Dots, needed: Any, adjoints: Integers, builder: _Builder) -> None:
    """A vector gets the other vectors that it is multiplied by, each times the adjoint of the dot product."""
    flows = needed[dots.elements]
    vectors, others = np.concatenate([dots.first, dots.second]), np.concatenate([dots.second, dots.first])
    scalars = np.tile(adjoints[dots.owner], 2)
    square = np.concatenate([dots.first == dots.second, np.zeros(len(dots.owner), dtype=bool)])
    wanted = np.tile(needed[dots.owner], 2) & flows.any(axis=1)[vectors]
    wanted &= ~np.append(square[len(dots.owner) :], square[: len(dots.owner)])  # of a square, one of the two will do
    # What is used once, or only partly needs a gradient, gets its terms one by one.
    uses = np.bincount(vectors[wanted & ~square], minlength=len(flows))
    together = flows.all(axis=1) & (uses > 1)
    rows = np.flatnonzero(wanted & (square | ~together[vectors]))
    flowing = flows[vectors[rows]]
    scalar, coefficient = (
        np.broadcast_to(column[rows][:, None], flowing.shape)[flowing] for column in (scalars, 1.0 + square)
    )
    owner, other = adjoints[dots.elements[vectors[rows]]][flowing], dots.elements[others[rows]][flowing]
    builder.add(owner, scalar, other, coefficient)

    found = np.flatnonzero(together)
    nodes = builder.nodes(len(found) * dots.length, SUM).reshape(len(found), dots.length)
    builder.add(adjoints[dots.elements[found]].ravel(), nodes.ravel())
    rows = np.flatnonzero(wanted & ~square & together[vectors])
    rows = rows[np.argsort(vectors[rows], kind="stable")]
    starts = np.searchsorted(vectors[rows], found)
    for count in distinct(uses[found]).tolist():
        alike = np.flatnonzero(uses[found] == count)
        chosen = rows[starts[alike][:, None] + np.arange(count)]
        builder.whole.append(_combined(dots.elements, nodes[alike], scalars[chosen], others[chosen]))


def _combined(elements: Integers, nodes: Integers, scalars: Integers, vectors: Integers) -> Dots:
    """Linear combinations of vectors as dot products: of the scalars, and what the vectors have in one position.

    Args:
        elements: the nodes of each vector.
        nodes: the elements of each result, of shape (results, length).
        scalars: what the vectors are multiplied by, of shape (results, terms).
        vectors: which vectors they are, of the same shape.
    """
    (results, length), (examples, which) = nodes.shape, different_rows(vectors)
    columns = elements[vectors[examples]].transpose(0, 2, 1).reshape(-1, vectors.shape[1])
    second = results + (which[:, None] * length + np.arange(length)).ravel()
    return Dots(np.concatenate([scalars, columns]), nodes.ravel(), np.repeat(np.arange(results), length), second)


def _through_takes(takes: Applications, graph: Graph, needed: Any, adjoints: Integers, builder: _Builder) -> None:
    """The element that was taken gets the adjoint of the result; the other elements of the table get 0."""
    assert takes.tables is not None
    positions: dict[tuple[int, int], int] = {}
    hits: dict[tuple[int, int], int] = {}
    owners, taken, factors = [], [], []
    for node, (index,), table in zip(takes.nodes.tolist(), takes.operands.tolist(), takes.tables.tolist(), strict=True):
        if not needed[node]:
            continue
        elements = graph.tables[table].tolist()
        position = positions.setdefault((index, len(elements)), len(positions))
        for number, element in enumerate(elements):
            if needed[element]:
                owners.append(adjoints[element])
                taken.append(adjoints[node])
                factors.append(hits.setdefault((position, number), len(hits)))
    if not owners:
        return
    from_start = _from_start(np.array(list(positions)), builder)
    equal = builder.nodes(len(hits), OTHER)
    compared = np.array([(from_start[position], builder.constant(float(number))) for position, number in hits])
    builder.applications.append(Applications(EQUAL, equal, compared))
    builder.add(np.array(owners), np.array(taken), equal[factors])


def _from_start(indices: Integers, builder: _Builder) -> Integers:
    """New nodes, of indices counted from the start: a negative one counts from the end, as in Python.

    Args:
        indices: a row for each: its node, and how long the tables are.
        builder: of the new nodes.
    """
    given, lengths = indices.T
    negative = builder.nodes(len(given), OTHER)
    compared = np.stack([given, np.full(len(given), builder.constant(0.0))], axis=1)
    builder.applications.append(Applications(LESS, negative, compared))
    positions = builder.nodes(len(given), SUM)
    builder.add(positions, given)
    builder.add(positions, negative, coefficient=lengths)
    return positions


def _through_primitive(
    application: Applications, graph: Graph, needed: Any, adjoints: Integers, builder: _Builder
) -> None:
    """Each operand of a primitive gets what the rule for it gives."""
    primitive, operands = application.primitive, application.operands
    if not primitive.derivatives:
        if needed[application.nodes].any():
            raise ValueError(f"{primitive.name} has no derivative")
        return
    has_rule = np.array([rule is not None for rule in primitive.derivatives])
    wanted = needed[operands] & has_rule & needed[application.nodes][:, None]
    rows = np.flatnonzero(wanted.any(axis=1))
    if not len(rows):
        return
    fixed = graph.is_constant[operands]
    numbers = graph.constants[operands]
    bits = numbers.view(np.int64)  # so that 0 is not -0, and NaN is NaN
    if len(different_rows(bits[rows])[0]) > FEW_CONSTANTS:
        fixed, bits = np.zeros_like(fixed), np.zeros_like(bits)
    cases = np.concatenate([wanted, fixed, bits], axis=1)[rows]
    first, which = different_rows(cases)
    for case, example in enumerate(rows[first]):
        alike = rows[which == case]
        known = [float(numbers[example, i]) if fixed[example, i] else None for i in range(operands.shape[1])]
        case_of = Applications(primitive, application.nodes[alike], operands[alike])
        _written(case_of, wanted[example], known, adjoints, builder)


def _written(
    application: Applications,
    wanted: Sequence[bool],
    known: Sequence[float | None],
    adjoints: Integers,
    builder: _Builder,
) -> None:
    """Copy what the rules do for every node."""
    primitive, nodes, operands = application.primitive, application.nodes, application.operands
    names: dict[Any, Integers] = {"gradient": adjoints[nodes], "output": nodes, **dict(enumerate(operands.T))}
    written, results = rules_on_symbols(primitive, wanted, known)
    made: list[Integers] = []
    equal = EqualsInOrder().of(written)
    for position, (operation, *positions) in enumerate(written.operations):
        if equal[position] < position:
            made.append(made[equal[position]])
            continue
        if operation is INPUT:
            made.append(names[positions[0]])
            continue
        if operation is LITERAL:
            made.append(np.full(len(nodes), builder.constant(positions[0])))
            continue
        if operation in ARITHMETIC:
            made.append(builder.nodes(len(nodes), SUM))
            for coefficient, first, second in ARITHMETIC[operation]:
                other = made[positions[second - 1]] if second else None
                builder.add(made[-1], made[positions[first - 1]], other, coefficient)
        else:
            made.append(builder.nodes(len(nodes), OTHER))
            columns = np.stack([made[operand] for operand in positions], axis=1)
            builder.applications.append(Applications(operation, made[-1], columns))
    for column, result in results:
        if isinstance(result, int):
            builder.add(adjoints[operands[:, column]], made[result])
        elif result:
            builder.add(adjoints[operands[:, column]], np.full(len(nodes), builder.constant(result)))


def rules_on_symbols(
    primitive: Primitive, wanted: Sequence[bool], known: Sequence[float | None]
) -> tuple[Trace, list[tuple[int, int | float]]]:
    """Run the rules of a primitive once on symbols.

    Args:
        primitive: whose rules these are.
        wanted: for each operand whether its gradient is wanted.
        known: for each operand its number, if it is a constant.

    Returns:
        What they wrote down, of the inputs "gradient", "output" and the numbers of the operands; and for each
        operand that is wanted its number, and the position of its gradient there, or the gradient itself if it is a
        float.
    """
    tape = _TapeOfARule()
    asked = [
        (column, rule)
        for column, (rule, is_wanted) in enumerate(zip(primitive.derivatives, wanted, strict=True))
        if rule is not None and is_wanted
    ]
    with tracing(tape):
        gradient, output = tape.input("gradient"), tape.input("output")
        inputs = [tape.input(column) if number is None else number for column, number in enumerate(known)]
        made = [(column, rule(gradient, output, *inputs)) for column, rule in asked]
    results = [(column, found._position if isinstance(found, Symbol) else float(found)) for column, found in made]
    return tape.trace([], []), results
