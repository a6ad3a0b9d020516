"""Gradients that are graphs themselves, gradients that are returned and leave no trace, and tangents.

The rules of the table are written with operators, so handed Values they record what they compute. At
``y = x ** 3`` with a gradient g the rule for x gives ``g * 3 * x ** 2``: a float where g and x are
floats, and a graph, to be differentiated again, where they are Values.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_unchanged, explained
from micrograd.engine.commit import changing_gradients, commit, setting, traversal
from micrograd.engine.history import History
from micrograd.engine.order import order_of, topological_order
from micrograd.engine.primitive_base import passed_on
from micrograd.engine.recorder import recorder_on_top, refusing_floats
from micrograd.engine.stored import bring_up_to_date, changing
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from micrograd.engine.recorder import Contributions

_is_leaf = attrgetter("is_leaf")


def contributions(
    node: History, gradient: Any, create_graph: bool = False, useful: Collection[History] | None = None
) -> Contributions:
    """What a node with this gradient gives to each of its operands, or to the useful ones."""
    recorder = recorder_on_top()
    if recorder is None:
        return _contributions(node, gradient, create_graph, useful)
    return recorder.contributions(node, gradient, lambda: _contributions(node, gradient, create_graph, useful))


def adjoints(
    root: Any,
    start: Any,
    create_graph: bool,
    wanted: Collection[History] | None = None,
    give: Callable[..., Contributions] = contributions,
) -> dict[Any, Any]:
    """The adjoints under root: its gradient, times start, with respect to each Value there; floats, or graphs.

    Where only some are wanted, what does not lie on a way to them is not differentiated.
    """
    tracer = tracer_on_top()
    differentiating = None if tracer is None else tracer.derivatives_of([root], wanted or ())
    if differentiating is not None and (unknown := differentiating.adjoints(root, wanted, create_graph)) is not None:
        return unknown
    bring_up_to_date()
    order = topological_order(root)
    every = set(order)
    needed, useful = (every, every) if wanted is None else _leading_to(frozenset(wanted), order)
    found = {root: start}
    for node in reversed(order):
        if node in found and node in needed:
            for operand, contribution in give(node, found[node], create_graph, useful):
                found[operand] = found[operand] + contribution if operand in found else contribution
    return found


def partial_gradients(
    root: History, start: Any, operands: Collection[History], wanted: Collection[History], create_graph: bool = True
) -> dict[Any, Any]:
    """The gradient of a root, times start, by some of its operands, while the others stand still; 0 is left out."""
    standing = set(operands)

    def give(node: History, *settings: Any) -> Contributions:
        return [] if node in standing else contributions(node, *settings)

    found = adjoints(root, start, create_graph, wanted, give)
    return {operand: found[operand] for operand in wanted if operand in found}


def jacobian(outputs: Sequence[Any], inputs: Sequence[Any], create_graph: bool) -> list[Mapping[Any, Any]]:
    """For each output, Value or plain number, its gradients by the inputs; zeros may be left out."""
    if (tracer := tracer_on_top()) is not None:
        return tracer.derivatives_of(outputs, inputs).jacobian(outputs, inputs, create_graph)
    start: Any = type(inputs[0])(1.0, requires_grad=False) if create_graph and inputs else 1.0
    wanted = frozenset(inputs)
    return [
        adjoints(output, start, create_graph, wanted) if isinstance(output, History) and output.requires_grad else {}
        for output in outputs
    ]


def sparse_entries(
    outputs: Sequence[Any], inputs: Sequence[Any], symmetric: bool
) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
    """For each output its gradients by those of the inputs that it depends on, and by no others.

    A row takes a time that grows with what its output depends on, however many inputs there are. The rows are
    symmetric if the outputs are the gradients of one number by the inputs: then entries may be those on the other side
    of the diagonal.

    Returns:
        The number of the output and that of the input of each gradient, and the gradients, in any order.
    """
    if (tracer := tracer_on_top()) is not None:
        return tracer.derivatives_of(outputs, inputs).sparse_entries(outputs, inputs, symmetric)
    numbers = {value: number for number, value in enumerate(inputs)}
    found = [
        (row, numbers[value], slope)
        for row, slopes in enumerate(jacobian(outputs, inputs, create_graph=False))
        for value, slope in slopes.items()
        if value in numbers
    ]
    return [row for row, _, _ in found], [column for _, column, _ in found], [slope for _, _, slope in found]


def tangents(
    outputs: Sequence[History], directions: Sequence[Mapping[History, Any]], create_graph: bool
) -> list[list[Any]]:
    """How fast outputs change where some Values change as fast as given: the chain rule from the operands on.

    Args:
        outputs: whose tangents are wanted.
        directions: in each, the tangents of some Values; a node is computed with in those only that reach it.
        create_graph: whether the tangents are graphs.

    Returns:
        For each direction, the tangents of the outputs.

    A rule is linear in the gradient that it is handed. So it gives the tangent of the output, too, if it is handed that
    of the operand. Where a tangent is the plain number 0, no derivative is asked for.
    """
    given = {node for direction in directions for node in direction}
    if (tracer := tracer_on_top()) is not None:
        return list(tracer.derivatives_of(outputs, given).tangents(outputs, directions, create_graph))
    bring_up_to_date()
    found: dict[History, dict[int, Any]] = {}  # of each node, by the number of the direction
    for number, direction in enumerate(directions):
        for node, tangent in direction.items():
            if isinstance(tangent, History) or tangent:
                if create_graph and not isinstance(tangent, History):
                    constant: Any = type(node)  # Value
                    tangent = constant(tangent, requires_grad=False)
                found.setdefault(node, {})[number] = tangent
    for node in order_of(outputs):
        moving = [(n, found[n]) for n in dict.fromkeys(node._operands()) if n in found] if node not in given else []
        for number in sorted({number for _, rates in moving for number in rates}):
            of_one = {operand: rates[number] for operand, rates in moving if number in rates}
            if terms := _terms(node, [*of_one], of_one, create_graph):
                found.setdefault(node, {})[number] = sum(terms[1:], terms[0])
    return [[found.get(output, {}).get(number, 0.0) for output in outputs] for number in range(len(directions))]


def _terms(node: History, moving: list[History], found: Mapping[History, Any], create_graph: bool) -> list[Any]:
    """What the tangents of the operands that move add to that of a node."""
    if (tangents := node._primitive.tangents(node, found, create_graph, _gradients)) is not None:
        return tangents
    if not node._primitive.derivatives:  # a closure: it is asked once
        pairs = contributions(node, 1.0, create_graph, set(moving))
        return [contribution * found[operand] for operand, contribution in pairs if operand in found]
    return [
        contribution
        for operand in moving
        for _, contribution in contributions(node, found[operand], create_graph, (operand,))
    ]


def _gradients(root: History, wanted: Sequence[History], create_graph: bool) -> dict[Any, Any]:
    kind: Any = type(root)  # Value
    start = kind(1.0, requires_grad=False) if create_graph else 1.0
    return adjoints(root, start, create_graph, frozenset(wanted))


def set_adjoints(root: History, start: Any, create_graph: bool) -> dict[Any, Any]:
    """Set the gradients of all the Values under root, leaves added up over calls; all of them, or none."""
    with changing_gradients:
        running = traversal.undo is not None
        if running and any(node._uses > traversal.floor for node in topological_order(root) if not node.is_leaf):
            raise ValueError(f"the graph of {root!r} is being backpropagated through already; detach what they share")
        found = adjoints(root, start, create_graph)
        leaves = list(filter(_is_leaf, found))
        with changing(leaves):
            for leaf in leaves:
                found[leaf] = leaf._grad + found[leaf] if isinstance(leaf._grad, History) or leaf._grad else found[leaf]
            commit(setting(list(found), "_grad", list(found.values())))
    return found


def _leading_to(wanted: frozenset[History], order: list[History]) -> tuple[set[History], set[History]]:
    """The nodes that a wanted Value was an operand of, directly or further down; and these with the wanted ones."""
    leading: set[History] = set()
    useful: set[History] = set()
    for node in order:
        if not useful.isdisjoint(node._operands()):
            leading.add(node)
            useful.add(node)
        elif node in wanted:
            useful.add(node)
    return leading, useful


def _contributions(
    node: History, gradient: Any, create_graph: bool, useful: Collection[History] | None
) -> Contributions:
    if node.is_leaf:
        return []
    primitive = node._primitive
    try:
        return _graphs(node, gradient, useful) if create_graph else primitive.contributions(node, gradient, useful)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise explained(error, primitive, node._inputs(), node._operands(), "the derivative of ") from error


def _graphs(node: History, gradient: Any, useful: Collection[History] | None) -> Contributions:
    """What a node gives to each of its operands, as graphs on the operands themselves."""
    primitive, operands = node._primitive, node._operands()
    primitive.check_differentiable_again()
    check_unchanged(operands, node._inputs())
    if (graphs := primitive.graphs(node, gradient, useful)) is not None:
        return graphs
    if not primitive.derivatives:
        raise ValueError("this primitive has no derivative")
    asked = [
        (operand, rule)
        for operand, rule in zip(operands, primitive.derivatives, strict=True)
        if rule and operand.requires_grad and (useful is None or operand in useful)
    ]
    with refusing_floats("a rule must be written with operators and mg.exp, not math.exp, to be differentiated again"):
        return [(operand, rule(gradient, node, *operands)) for operand, rule in asked]


def pass_watched_gradients(root: History, floor: int) -> list[History]:
    """As _pass_gradients in backward.py does, where the recorder in use looks at what each node gives."""
    waiting, visited = [root], list[Any]()
    while waiting:
        node = waiting.pop()
        visited.append(node)
        waiting += passed_on(contributions(node, node._grad), floor)
    return visited
