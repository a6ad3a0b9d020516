"""Both passes through a graph, written down number by number: what a page plays.

The numbers are the engine's own. Its backpropagation runs once and says in which order it visited the
Values; what each visit gave to each operand then comes from the same derivative rules. Adding these
contributions up in that order gives the gradients after every step, to the last bit.
"""

from __future__ import annotations

import math
import os
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.draw.folding.boxes import about
from micrograd.draw.folding.groups import Grouping
from micrograd.draw.folding.order import in_program_order, in_their_operations
from micrograd.draw.folding.parameters import places_of_inputs
from micrograd.draw.text import enclosed, readable
from micrograd.engine.backward import backpropagate
from micrograd.engine.commit import commit, keeping_gradients, setting
from micrograd.engine.stored import changing, temporary
from micrograd.pages.formulas import composites, formulas, formulas_for_reading, forward_formula, in_library
from micrograd.pages.sequences import NO_CLASSES, sequence_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from micrograd.compiler.tracing.questions import Question
    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.primitive import Primitive
    from micrograd.engine.value import Value


class Element(NamedTuple):
    """Where in its kernel a Value is.

    Attributes:
        kernel: the shape of the kernel's results, and how many terms each has: ``16 × 64, 17 terms each``.
        indices: its row and its column, and of a term which it is of its sum; none for the Value that stands for all.
    """

    kernel: str
    indices: tuple[int, ...] = ()


class Opened(NamedTuple):
    """What is known of compiled functions in a graph.

    Attributes:
        elements: of the Values that kernels made, where in its kernel each is.
        places: of the parameters that the functions read.
        asked: the Values that the functions asked a question of, and which: each decided between two paths.
    """

    elements: Mapping[Value, Element]
    places: Mapping[Value, Place]
    asked: Mapping[Value, Question]


NO_INPUTS: Mapping[str, Any] = MappingProxyType({})
NOTHING = Opened(MappingProxyType({}), MappingProxyType({}), MappingProxyType({}))


def passes(
    root: Value,
    opened: Opened = NOTHING,
    inputs: Mapping[str, Any] = NO_INPUTS,
    classes: Sequence[str] = NO_CLASSES,
    tokens: Sequence[str | int] = NO_CLASSES,
) -> tuple[dict[str, Any], list[Value]]:
    """The graph under root, its groups, and both passes through it.

    Args:
        root: the Value to backpropagate from, with gradient 1. No gradient of the graph is changed.
        opened: what is known of the compiled functions in it.
        inputs: boxes of inputs by name, as explore takes them.
        classes: the names of classes, as explore takes them.
        tokens: those to show first, as explore takes them.

    Returns:
        Plain data for JSON, and the Values in the order in which it has them.

    Raises:
        TypeError, ValueError: for inputs that are no names and shapes, for other classes than there are names, for
            tokens that the program cannot read, or if the graph has a cycle.

    Example:
        >>> from micrograd import Value
        >>> x = Value(3.0, label="x")
        >>> [(visit["node"], visit["contributions"]) for visit in passes(x * x)[0]["visits"]]
        [(1, [3.0, 3.0])]
    """
    elements = opened.elements
    order = in_program_order(root, opened.asked)
    grouping = Grouping(order, opened.places, places_of_inputs(order, inputs))
    nodes, places = grouping.in_order(), grouping.places
    folded = in_their_operations(nodes, root)
    sequence, beside = sequence_of(root, nodes, grouping, classes, tokens)
    for value, other in beside.items():
        grouping.of[value] = grouping.of[other]
        if value.requires_grad and (group := grouping.of[value]) is not None:
            grouping.groups[group].make_room(places[value].indices)
        else:
            folded[value] = other
    nodes = [*nodes, *beside]
    number = {node: index for index, node in enumerate(nodes)}
    data, notes = _recorded_numbers(nodes)
    visits = _visits(root, nodes, number, notes)
    keys: dict[Primitive, int] = {}
    cards = [
        {
            "label": enclosed(str(node.label)),
            "hint": places[node].hint if node in places else "",
            "path": places[node].name if node in places else "",
            "indices": places[node].indices if node in places else elements[node].indices if node in elements else (),
            "kind": ("leaf" if node.requires_grad else "constant") if node.is_leaf else "result",
            "primitive": None if node.is_leaf else keys.setdefault(node._primitive, len(keys)),
            "operands": [number[operand] for operand in node._operands()],
            "data": jsonable(data[node]),
            "group": grouping.of[node],
            "folded": number[folded[node]] if node in folded else None,
            "terms": elements[node].kernel if node in elements and not elements[node].indices else "",
            "asked": _asked(opened.asked.get(node)),
        }
        for node in nodes
    ]
    primitives = [entry_of(primitive) for primitive in keys]
    unknown = [entry["name"] for entry in primitives if not entry["library"] and entry["forward"] is None]
    if tokens and unknown:
        raise ValueError(f"tokens: a page cannot compute {unknown[0]}, and so no other word than that of the graph")
    page = {
        "root": number[root],
        "nodes": cards,
        "primitives": primitives,
        "composites": composites(formulas_of(primitives)),
        "groups": _groups(opened, grouping),
        "backward": visits is not None,
        "visits": visits or [],
        "sequence": sequence,
        "notes": [enclosed(note) for note in notes],
    }
    return page, nodes


def _visits(root: Value, nodes: list[Value], number: dict[Value, int], notes: list[str]) -> list[dict[str, Any]] | None:
    """The visits of the backward pass; None where there is none, and a note that says why."""
    if not root.requires_grad:
        notes.append("The result requires no gradient, so there is no backward pass.")
        return None
    try:
        return [_visit(node, gradient, number) for node, gradient in _gradients(root, nodes) if not node.is_leaf]
    except (ArithmeticError, ValueError, TypeError) as error:
        notes.append(f"There is no backward pass: {error}")
        return None


def _groups(opened: Opened, grouping: Grouping) -> list[dict[str, Any]]:
    """What a page knows of each group."""
    kernels = _kernels(opened.elements, grouping)
    lines = _lines(opened.asked, grouping)
    with_negatives = {group for node, group in grouping.of.items() if node.data < 0}  # no grey shows the sign
    return [
        {
            "name": enclosed(box.name),
            "kind": box.kind,
            "image": box.kind == "inputs" and index not in with_negatives,
            "parent": parent,
            "shape": box.shape if index not in kernels or kernels[index][1][0] == 1 else kernels[index][1],
            "about": about(box),
            "kernel": kernels[index][0] if index in kernels else lines.get(index, ""),
            "size": kernels[index][1] if index in kernels else (),
        }
        for index, (box, parent) in enumerate(zip(grouping.groups, grouping.parents, strict=True))
    ]


def _asked(question: Question | None) -> dict[str, Any] | None:
    """What a page knows of a question."""
    return question and {"answer": question.answer, "isTruth": question.is_truth}


def _lines(asked: Mapping[Value, Question], grouping: Grouping) -> dict[int, str]:
    """The groups of questions, and which line asked; of the stack of some, it is that of one of them."""
    found: dict[int, str] = {}
    for value, question in asked.items():
        group = grouping.of[value]
        while group is not None and grouping.groups[group].kind in ("question", "stack"):
            found[group] = os.path.basename(question.line)
            group = grouping.parents[group]
    return found


def _kernels(elements: Mapping[Value, Element], grouping: Grouping) -> dict[int, tuple[str, tuple[int, ...]]]:
    """The groups that are kernels: what each computes in words, and how many rows and columns there are."""
    found: dict[int, tuple[str, tuple[int, ...]]] = {}
    for node, (words, indices) in elements.items():
        group = grouping.of.get(node)
        while group is not None and grouping.groups[group].kind != "run":
            group = grouping.parents[group]
        if group is not None and indices:
            shape = found.get(group, (words, (0, 0)))[1]
            found[group] = words, tuple(max(size, index + 1) for size, index in zip(shape, indices, strict=False))
    return found


def _recorded_numbers(nodes: list[Value]) -> tuple[dict[Value, float], list[str]]:
    """The numbers of the forward pass: a leaf may have been set to another since."""
    data = {node: node.data for node in nodes}
    notes = []
    for node in nodes:
        for operand, recorded in zip(node._operands(), node._inputs(), strict=True):
            if operand.is_leaf and recorded != operand.data and not math.isnan(recorded):
                if data[operand] != recorded:
                    name = operand.label or "A leaf"
                    notes.append(
                        f"{name} is {readable(operand.data)} by now; the page shows the pass that was recorded, "
                        f"where it was {readable(recorded)}."
                    )
                data[operand] = recorded
    return data, notes[:3]


def _gradients(root: Value, nodes: list[Value]) -> list[tuple[Value, float]]:
    """The Values in the order of the engine's backpropagation, with the gradients it gives them."""
    leaves = [node for node in nodes if node.is_leaf]
    with changing(leaves):
        undo = chain(keeping_gradients(nodes), setting([temporary], "on", [temporary.on]))
        try:
            temporary.on = True
            for node in nodes:
                node._grad = 0.0
            visits: Any = backpropagate(root, 1.0)
            return [(node, node._grad) for node in visits]
        finally:
            commit(undo)


def _visit(node: Value, gradient: float, number: dict[Value, int]) -> dict[str, Any]:
    """What a Value gives to each of its operands, and the local derivatives, where these are known."""
    operands = node._operands()
    contributions: list[Any] = [None] * len(operands)
    locals_: list[Any] = [None] * len(operands)
    place = 0
    for operand, contribution in node._primitive.contributions(node, gradient):
        while operands[place] is not operand or not _receives(node, place):
            place += 1
        contributions[place] = jsonable(contribution)
        locals_[place] = _local(node, place)
        place += 1
    return {"node": number[node], "contributions": contributions, "locals": locals_}


def _receives(node: Value, place: int) -> bool:
    rules = node._primitive.derivatives
    return not rules or rules[place] is not None


def _local(node: Value, place: int) -> float | str | None:
    """The local derivative: what the rule gives for a gradient of 1."""
    rules = node._primitive.derivatives
    if not rules or (rule := rules[place]) is None:
        return None
    try:
        return jsonable(rule(1.0, node._data, *node._inputs()))
    except (ArithmeticError, ValueError):  # a gradient of 1 may be too large where the real one is not
        return None


def entry_of(primitive: Primitive) -> dict[str, Any]:
    """What a page knows of a primitive."""
    rules = formulas(primitive)
    known = all(formula is not None or rule is None for formula, rule in zip(rules, primitive.derivatives, strict=True))
    return {
        "name": primitive.name,
        "symbol": enclosed(primitive.symbol or primitive.name),
        "library": in_library(primitive),
        "forward": forward_formula(primitive) if known else None,
        "rules": rules,
        "reading": formulas_for_reading(primitive),
    }


def formulas_of(entries: list[dict[str, Any]]) -> list[Any]:
    """All formulas that are in what a page knows of primitives."""
    return [
        formula
        for entry in entries
        for formula in ([entry["name"]], entry["forward"], *entry["rules"], *entry["reading"])
    ]


def jsonable(number: float) -> float | str:
    """A number; or, where JSON has none, the text that JavaScript's Number() reads it from."""
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
