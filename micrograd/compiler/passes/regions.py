"""Regions of programs: a graph with decisions in it, as straight programs with these between them."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.regions import Region, Step, Straight
from micrograd.compiler.numbers import distinct, no_integers
from micrograd.compiler.passes.stages import Made, run_stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.entries import Decided, Trace
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.traversals import Edges
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.passes.stages import Request

_KINDS = 8  # of branches that come again and again


def region_of(made: Made, decisions: Sequence[Decided], needed: int, request: Request, gradients: bool) -> Region:
    """What decides, made of a graph and of the decisions whose results are its last inputs.

    Args:
        made: the graph, in normal form.
        decisions: in order.
        needed: how many of the graph's outputs, the last ones, these read.
        request: how to compile programs.
        gradients: whether there are programs with gradients.
    """
    graph: Graph = made.thing
    inputs, outputs = sum(map(len, graph.inputs)), len(graph.outputs) - needed
    size, steps, operands = inputs + needed, [], graph.operands()
    made_before: deque[tuple[Trace, Region]] = deque(maxlen=_KINDS)
    known = np.zeros(size, dtype=bool)  # what one of those before reads, too
    known[:inputs] = True
    for each in decisions:
        targets = distinct(each.read())
        targets = targets[~known[targets]]
        known[targets] = True
        before = None
        if len(targets):
            straight = _straight(made, operands, outputs + targets - inputs, request, gradients, checked=False)
            before = Region(size, size, (), straight)
        parts = []
        for trace in each.traces:
            region = next((region for other, region in made_before if _are_equal(trace, other)), None)
            if region is None:
                part = run_stages(Made(trace, {"trace": 0.0}), "normalise", request)
                region = region_of(part, trace.decisions, trace.needed, request, gradients)
                made_before.append((trace, region))
            parts.append(region)
        steps.append(Step(before, targets, each._replace(traces=()), (parts[0], parts[1])))
    last = _straight(made, operands, slice(outputs), request, gradients, checked=True)
    return Region(inputs - sum(len(each.made) for each in decisions), size, tuple(steps), last)


def _are_equal(one: Trace, other: Trace) -> bool:
    """Whether two branches, or parts of loops, are the same, as those of one decision in all iterations are.

    What they are given may be different numbers.
    """
    if one.decisions or other.decisions or one.values or other.values or len(one.operations) != len(other.operations):
        return False
    described = ("tables", "rows", "inputs", "outputs", "checked", "repeated")
    return (
        one.needed == other.needed
        and one.operations.begin_like(other.operations)
        and all(list(getattr(one, name)) == list(getattr(other, name)) for name in described)
    )


def _straight(
    made: Made, operands: Edges, outputs: Any, request: Request, gradients: bool, *, checked: bool
) -> Straight:
    """The programs of some outputs of a graph."""
    graph, kept = _part_of(made.thing, operands, outputs, checked=checked)
    programs = [
        run_stages(made._replace(thing=graph), request.passes[-1].name, replace(request, wanted=wanted)).thing
        for wanted in ([no_integers(), np.arange(len(kept))] if gradients else [no_integers()])
    ]
    return Straight(kept, len(graph.outputs), programs[0], programs[-1])


def _part_of(graph: Graph, operands: Edges, outputs: Any, *, checked: bool) -> tuple[Graph, Integers]:
    """The graph of some outputs, and the numbers of the inputs that it reads.

    Args:
        graph: with more outputs.
        operands: the edges to its operands.
        outputs: a slice of all results, or the numbers of outputs that are read.
        checked: whether it looks for what is not finite.
    """
    answers = graph.answers if isinstance(outputs, slice) else 0
    graph = replace(graph, outputs=graph.outputs[outputs], answers=answers, read=0)
    graph = graph if checked else replace(graph, checked=no_integers())
    marks = operands.no_marks()  # from a few outputs on: most of the graph is before another decision
    operands.mark(np.concatenate([graph.results, graph.checked]), marks)
    needed = marks[: graph.size]
    groups = [group[needed[group]] for group in graph.inputs]  # one for each decision; most have none that is read
    inputs = tuple(group for group in groups if len(group)) or (no_integers(),)
    kept = np.flatnonzero(needed[np.concatenate(graph.inputs)])
    return replace(graph.making(needed), inputs=inputs).of_nodes(needed), kept
