"""Graph: a program in normal form, which one stage hands to the next.

A node is a number of the program, and its name is an index. Most nodes are sums of terms; each term is a
coefficient times one or two other nodes. With the inputs b, w0, x0, w1 and x1 as nodes 0 to 4, the
function ``b + w0 * x0 - w1 * x1`` is one node more, number 5, with three terms:

    owner  coefficient  first  second
      5         1         0     ONE        b
      5         1         1      2         w0 * x0
      5        -1         3      4         w1 * x1

Terms of all nodes lie side by side in arrays, so that a stage treats them all with a few calls of NumPy.
Where there are very many products, those of long dot products stay whole (see vectors.py).
A graph does not change: a stage makes another one of it, which shares what stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.ir.traversals import Edges, Rows
from micrograd.compiler.numbers import no_integers, number_in_run, order_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.vectors import Dots
    from micrograd.compiler.numbers import Booleans, Floats, Integers, Kinds
    from micrograd.engine.primitive import Primitive

ONE = -1  # the second factor of a term that has one factor only
OTHER, SUM, MAXIMUM = range(3)  # what a node is: no matter of its terms, their sum, or the largest of them


@dataclass(frozen=True)
class Terms:
    """Terms side by side: ``coefficient * first * second`` is one term of the node that owns it."""

    owner: Integers
    coefficient: Floats
    first: Integers
    second: Integers

    def __getitem__(self, chosen: Any) -> Terms:
        return Terms(self.owner[chosen], self.coefficient[chosen], self.first[chosen], self.second[chosen])

    def kept(self, marks: Booleans) -> Terms:
        """Those that are marked."""
        # marks without a pattern take longer than positions
        return self if marks.all() else self[np.flatnonzero(marks)]

    def edges(self) -> Rows:
        """The edges from owners to factors, given that the terms are sorted by their owners."""
        return Rows(self.owner, [self.first, self.second])

    @staticmethod
    def one_by_one(part: Dots) -> Terms:
        """Those of what is whole."""
        owner, first, second = part.terms()
        return Terms(owner, np.ones(len(owner)), first, second)

    @staticmethod
    def joined(parts: Sequence[Terms], order: Integers | slice = slice(None)) -> Terms:
        """All terms of several, one after the other, or in another order."""
        return Terms(
            np.concatenate([part.owner for part in parts])[order],  # column by column: another takes its memory
            np.concatenate([part.coefficient for part in parts])[order],
            np.concatenate([part.first for part in parts])[order],
            np.concatenate([part.second for part in parts])[order],
        )

    @staticmethod
    def sorted(parts: Sequence[Terms]) -> Terms:
        """All terms of several, sorted by their owners."""
        return Terms.joined(parts, order_of(np.concatenate([part.owner for part in parts])))


@dataclass(frozen=True)
class Applications:
    """Nodes that all apply one primitive: a row each, with the nodes of its operands.

    Attributes:
        primitive: what is applied.
        nodes: the results.
        operands: a row for each result, of shape (number of nodes, arity).
        tables: of TAKE only: the number of the table that each result is taken from.
    """

    primitive: Primitive
    nodes: Integers
    operands: Integers
    tables: Integers | None = None

    def chosen(self, rows: Any) -> Applications:
        """Some of them."""
        tables = None if self.tables is None else self.tables[rows]
        return Applications(self.primitive, self.nodes[rows], self.operands[rows], tables)


@dataclass(frozen=True)
class Graph:
    """A program in normal form.

    Attributes:
        kind: for each node what it is: OTHER, SUM or MAXIMUM.
        constants: the number of each node that is a constant; NaN for other nodes.
        is_constant: which nodes are constants.
        terms: of all nodes, sorted by their owners.
        applications: of primitives other than + - *.
        tables: for each table, the nodes of its elements.
        inputs: the nodes that are given at each run, group by group.
        outputs: the nodes whose numbers the program returns.
        differentiable: which nodes a gradient reaches from the outputs.
        checked: the nodes that must be finite, as eager might have raised where they are not; see checks.py.
        unordered: which nodes are sums whose terms come in no order, as those of the adjoint stage.
        from_zero: which nodes are sums that 0 is one of the terms of, so that they are never -0.
        seeds: the gradients of the outputs, which are given too; none before the adjoint stage.
        gradients: the nodes of the gradients that the program returns; none before the adjoint stage.
        whole: further terms of sums, of which it is only said whose products they are.
        answers: how many of the outputs, the last ones but for those that are read, answer questions: no gradient flows
            from these.
        read: how many of the outputs, the last ones, functions of arrays read.
    """

    kind: Kinds
    constants: Floats
    is_constant: Booleans
    terms: Terms
    applications: tuple[Applications, ...]
    tables: tuple[Integers, ...]
    inputs: tuple[Integers, ...]
    outputs: Integers
    differentiable: Booleans
    unordered: Booleans
    from_zero: Booleans
    checked: Integers = field(default_factory=no_integers)
    seeds: Integers = field(default_factory=no_integers)
    gradients: Integers = field(default_factory=no_integers)
    whole: tuple[Dots, ...] = ()
    answers: int = 0
    read: int = 0

    @property
    def differentiated(self) -> Integers:
        """The outputs that gradients flow from."""
        end = len(self.outputs) - self.read
        return np.concatenate([self.outputs[: end - self.answers], self.outputs[end:]])

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self.kind)

    @property
    def results(self) -> Integers:
        """The nodes that the program returns, outputs and gradients. They are never merged into others."""
        return np.concatenate([self.outputs, self.gradients])

    def without_the_unused(self) -> Graph:
        """The graph without the terms and applications that neither a result nor a check needs."""
        return self.making(~self.operands().out_of_reach(np.concatenate([self.results, self.checked])))

    def making(self, needed: Booleans) -> Graph:
        """The graph without the terms and applications of other nodes than these."""
        return replace(
            self,
            terms=self.terms.kept(needed[self.terms.owner]),
            applications=tuple(a.chosen(needed[a.nodes]) for a in self.applications if needed[a.nodes].any()),
            whole=tuple(part.chosen(np.flatnonzero(needed[part.owner])) for part in self.whole),
        )

    def of_nodes(self, chosen: Booleans) -> Graph:
        """The graph of these nodes, which are numbered anew; no other one may be used, nor an element of a table."""
        new = np.append(np.cumsum(chosen) - 1, ONE)
        terms = self.terms
        marks = ("kind", "constants", "is_constant", "differentiable", "unordered", "from_zero")
        nodes = ("outputs", "checked", "seeds", "gradients")
        return replace(
            self,
            **{name: getattr(self, name)[chosen] for name in marks},
            **{name: new[getattr(self, name)] for name in nodes},
            terms=Terms(new[terms.owner], terms.coefficient, new[terms.first], new[terms.second]),
            applications=tuple(
                replace(each, nodes=new[each.nodes], operands=new[each.operands]) for each in self.applications
            ),
            tables=tuple(new[table] for table in self.tables),
            inputs=tuple(new[group] for group in self.inputs),
            whole=tuple(part.reading(new).merged(new) for part in self.whole),
        )

    def counts(self) -> Integers:
        """How many terms each node has."""
        counts = np.bincount(self.terms.owner, minlength=self.size)
        for part in self.whole:
            counts += part.length * np.bincount(part.owner, minlength=self.size)
        return counts

    def expanded(self, kept: Sequence[Dots] = ()) -> Graph:
        """The graph with all terms one by one, but for those that are kept whole."""
        parts = [Terms.one_by_one(part) for part in self.whole if not any(part is one for one in kept)]
        terms = Terms.sorted([self.terms, *parts]) if parts else self.terms
        return replace(self, terms=terms, whole=tuple(kept))

    def with_products_of(self, levels: Integers) -> Terms:
        """The terms, and one product of each dot product that is whole: on a level, each is of other elements.

        Args:
            levels: of the nodes.
        """
        parts = [self.terms]
        for part in self.whole:
            factors = []
            for vectors in (part.first, part.second):
                uses = levels[part.owner] * len(part.elements) + vectors
                order = np.argsort(uses, kind="stable")
                number = np.empty(len(order), dtype=np.int64)
                number[order] = number_in_run(uses[order])
                factors.append(part.elements[vectors, number % part.length])
            parts.append(Terms(part.owner, np.ones(len(part.owner)), *factors))
        return Terms.sorted(parts) if len(parts) > 1 else self.terms

    def levels(self, calls: Sequence[tuple[Integers, Integers]] = ()) -> Integers:
        """For each node, how many steps it is from what is given.

        Args:
            calls: the nodes that each call reads, and those that it gives, which count as made then. Each comes after
                the one before it.
        """
        return self._edges_between_made(calls).levels() + self.is_made()

    def _edges_between_made(self, calls: Sequence[tuple[Integers, Integers]]) -> Edges:
        """Those from what is used to what uses it. Large lists of them are forgotten before anybody walks along."""
        made = self.is_made()
        for _, given in calls:
            made[given] = True
        users, used = self.edges(between=made)
        start = self.size + self.edges_of_whole()[2]
        for stand_in, (read, given) in enumerate(calls, start):
            read = read[made[read]]  # the others may be millions of numbers of arguments
            before = np.arange(max(start, stand_in - 1), stand_in)
            users += [given, np.full(len(read), stand_in), np.full(len(before), stand_in)]
            used += [np.full(len(given), stand_in), read, before]
        return Edges(self.size, used, users)

    def is_made(self) -> Booleans:
        """Which nodes are computed from others; all others are given."""
        made = np.zeros(self.size, dtype=bool)
        for nodes in (
            self.terms.owner,
            *(part.owner for part in self.whole),
            *(each.nodes for each in self.applications),
        ):
            made[nodes] = True
        return made

    def operands(self, *, differentiable: bool = False) -> Edges:
        """The edges from nodes to what they are computed from, to be walked along; those of terms are sorted already.

        Args:
            differentiable: whether to leave out the edges that no gradient takes.
        """
        users, used, _ = self._edges_of_others(differentiable)
        return Edges(self.size, users, used, self.terms.edges())

    def users(self, *, differentiable: bool = False) -> Edges:
        """The same edges in the other direction: from nodes to what is computed from them."""
        users, used = self.edges(differentiable=differentiable)
        return Edges(self.size, used, users)

    def edges(
        self, *, differentiable: bool = False, between: Booleans | None = None
    ) -> tuple[list[Integers], list[Integers]]:
        """The same edges in parts; some of them lead through stand-ins.

        Args:
            differentiable: whether to leave out the edges that no gradient takes.
            between: the nodes between which they are; None for all.
        """
        users, used, stand_ins = self._edges_of_others(differentiable)
        users, used = [self.terms.owner, self.terms.owner, *users], [self.terms.first, self.terms.second, *used]
        leads_on = np.ones(self.size, dtype=bool) if between is None else between
        leads_on = np.concatenate([leads_on, np.ones(stand_ins, dtype=bool), [False]])  # the last is ONE
        chosen = [np.flatnonzero(leads_on[nodes]) for nodes in used]
        users, used = ([nodes[rows] for nodes, rows in zip(part, chosen, strict=True)] for part in (users, used))
        return users, used

    def _edges_of_others(self, differentiable: bool) -> tuple[list[Integers], list[Integers], int]:
        """Those of all that are no single terms, and how many stand-ins there are."""
        users, used, stand_ins = self.edges_of_whole()
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
        return users, used, stand_ins

    def edges_of_whole(self) -> tuple[list[Integers], list[Integers], int]:
        """Those of the terms that stay whole, and how many stand-ins there are."""
        users, used = [], []
        end = self.size
        for part in self.whole:
            of_part, to_part, stand_ins = part.edges(end)
            users.append(of_part)
            used.append(to_part)
            end += stand_ins
        return users, used, end - self.size
