"""Checks: where eager would have raised, the numbers of a program are not finite, and must be noticed.

Operators give infinity where they overflow, and do not raise for that. ``1 / 0``, ``exp(1000)``, ``log(-1)`` and an
index out of range do raise; a kernel gives infinity or NaN instead. Mostly that reaches an output or a gradient, whose
numbers are looked at after each run. Where it might get lost on the way, as in ``tanh(exp(x))`` or behind a
``where``, the program itself looks at it: 0 times each such number is 0, or NaN, and that is added to the outputs.
What is not finite without any of these primitives, such as a mask of -inf, is let pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.ir.graph import MAXIMUM
from micrograd.compiler.ir.safe import is_safe
from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import no_integers
from micrograd.engine import further_primitives as further
from micrograd.engine import primitives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.graph import Applications, Graph
    from micrograd.compiler.numbers import Integers

# Primitives that give nothing finite where their first operand is not finite.
_PASSING = {
    *(primitives.identity, primitives.detach, primitives.abs, primitives.div, primitives.sqrt, primitives.log),
    *(primitives.log1p, primitives.sin, primitives.cos, primitives.sinh, primitives.cosh),
    *(further.tan, further.asin, further.acos),
}


def may_raise(graph: Graph, applications: Sequence[Applications] | None = None) -> Integers:
    """The nodes where eager may raise: of all applications, or of some."""
    found = [no_integers()]
    for application in graph.applications if applications is None else applications:
        if application.primitive is primitives.div:
            divisors = application.operands[:, 1]
            safe = graph.is_constant[divisors] & (graph.constants[divisors] != 0)
            found.append(application.nodes[~safe])
        elif application.primitive is TAKE or not is_safe(application.primitive):
            found.append(application.nodes)
    return np.concatenate(found)


def to_look_at(graph: Graph) -> Integers:
    """The nodes to be checked that no result shows. A sum of products shows its factors, a quotient its dividend."""
    if not len(graph.checked):
        return graph.checked
    shows = [application for application in graph.applications if application.primitive in _PASSING]
    whole_users, whole_used, _ = graph.edges_of_whole()
    users = [*whole_users, *(application.nodes for application in shows)]
    used = [*whole_used, *(application.operands[:, 0] for application in shows)]
    edges = Edges(graph.size, users, used, graph.terms.edges())
    edges.forget(graph.kind == MAXIMUM)  # a maximum may hide what is not finite
    shown = np.append(graph.outputs[: len(graph.outputs) - graph.read], graph.gradients)
    hidden = graph.checked[edges.out_of_reach(shown)[graph.checked]]
    if not len(hidden):
        return hidden
    return hidden[edges.out_of_reach(edges.leaving(hidden))[hidden]]  # of those in a row, the last shows the others
