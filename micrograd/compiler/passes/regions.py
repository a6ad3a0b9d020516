"""Regions of programs: a graph with decisions in it, as straight programs with these between them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.ir.regions import Region, Step, Straight
from micrograd.compiler.numbers import distinct, no_integers
from micrograd.compiler.passes.stages import Made, run_stages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.compiler.ir.entries import Decided
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.passes.stages import Request


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
    size, steps = inputs + needed, []
    known = np.zeros(size, dtype=bool)  # what one of those before reads, too
    known[:inputs] = True
    for each in decisions:
        targets = distinct(each.read())
        targets = targets[~known[targets]]
        known[targets] = True
        before = None
        if len(targets):
            straight = _straight(made, outputs + targets - inputs, request, gradients, checked=False)
            before = Region(size, size, (), straight)
        parts = []
        for trace in each.traces:
            part = run_stages(Made(trace, {"trace": 0.0}), "normalise", request)
            parts.append(region_of(part, trace.decisions, trace.needed, request, gradients))
        steps.append(Step(before, targets, each._replace(traces=()), (parts[0], parts[1])))
    last = _straight(made, slice(outputs), request, gradients, checked=True)
    return Region(inputs - sum(len(each.made) for each in decisions), size, tuple(steps), last)


def _straight(made: Made, outputs: Any, request: Request, gradients: bool, *, checked: bool) -> Straight:
    """The programs of some outputs of a graph."""
    graph, kept = _part_of(made.thing, outputs, checked=checked)
    programs = [
        run_stages(made._replace(thing=graph), request.passes[-1].name, replace(request, wanted=wanted)).thing
        for wanted in ([no_integers(), np.arange(len(kept))] if gradients else [no_integers()])
    ]
    return Straight(kept, len(graph.outputs), programs[0], programs[-1])


def _part_of(graph: Graph, outputs: Any, *, checked: bool) -> tuple[Graph, Integers]:
    """The graph of some outputs, and the numbers of the inputs that it reads.

    Args:
        graph: with more outputs.
        outputs: a slice of all results, or the numbers of outputs that are read.
        checked: whether it looks for what is not finite.
    """
    answers = graph.answers if isinstance(outputs, slice) else 0
    graph = replace(graph, outputs=graph.outputs[outputs], answers=answers, read=0)
    graph = (graph if checked else replace(graph, checked=no_integers())).without_the_unused()
    is_read = np.zeros(graph.size + 1, dtype=bool)  # the last is ONE
    for nodes in (*graph.edges()[1], graph.outputs):
        is_read[nodes[nodes < graph.size]] = True
    kept = np.flatnonzero(is_read[np.concatenate(graph.inputs)])
    graph = replace(graph, inputs=tuple(group[is_read[group]] for group in graph.inputs))
    is_read[graph.checked] = True
    return graph.of_nodes(is_read[:-1] | graph.is_made()), kept
