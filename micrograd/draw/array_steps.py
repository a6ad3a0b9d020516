"""Calls of functions of whole arrays, opened: the steps from the operands of a solution of equations to it.

A call of LAPACK is one node. A picture that folds, and a page, show the call as a box, in which are the operations on
single numbers that make the same results: the reflections of Householder, the columns of Cholesky, the rotations of
Jacobi, the sums of a Fourier transform.

    x = np.linalg.solve(a, b)        solve  >  x * x, sqrt, /, ...

The steps are made when a picture or a page is, and as long as it is made, the results of the call are the last of them.
Of large calls there would be too many; these stay single nodes.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

from micrograd.contexts.calls import tick
from micrograd.engine.commit import commit, setting
from micrograd.engine.order import topological_order
from micrograd.engine.stored import changing, temporary
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    Made = TypeVar("Made")

MOST_STEPS = 3_000  # Values of the steps of all calls in a picture
_FIELDS = ("_primitive", "_first", "_second", "_x", "_y", "_scope")  # how a node was made, and where


class BlockOf:
    """The block that Values are put into afterwards, such as the steps of a call; see runs.py.

    Args:
        name: of its box.
        start: when it began.
        below: the block around it.
        kind: of its box.
    """

    def __init__(self, name: str, start: float, below: Any, kind: str = "run") -> None:
        self.name, self.start, self.end, self.below, self.kind = name, start, start, below, kind


@contextmanager
def opened_arrays(root: Value) -> Iterator[None]:
    """Let the results of functions of arrays under a Value be made by steps, as long as this lasts.

    Args:
        root: the Value.
    """
    made: dict[Value, Value] = {}
    room = MOST_STEPS
    for call, results in _calls(topological_order(root)):
        found, count = _made_by_steps(call, results, room)
        made |= found
        room -= count
    with made_as(made):
        yield


@contextmanager
def made_as(made: Mapping[Value, Value]) -> Iterator[None]:
    """Let some Values be made as others are, as long as this lasts; for each of them the other one."""
    nodes = [*made]
    before = [[getattr(node, field) for node in nodes] for field in _FIELDS]
    after = [[getattr(other, field) for other in made.values()] for field in _FIELDS]
    undo = chain.from_iterable([*map(setting, [nodes] * len(_FIELDS), _FIELDS, before)])
    try:
        commit(chain.from_iterable([*map(setting, [nodes] * len(_FIELDS), _FIELDS, after)]))
        yield
    finally:
        commit(undo)


def with_numbers(parameters: list[Value], numbers: list[float], make: Callable[[], Made]) -> Made:
    """What make gives while the parameters have these numbers; then they have their own again."""
    own = [parameter.data for parameter in parameters]
    leaves = [parameter for parameter in parameters if parameter.is_leaf]
    with changing(leaves):
        commit(setting(parameters, "_data", own))  # where there is room on the stack for this, there is to undo it
    undo = chain(setting(parameters, "_data", own), setting([temporary], "on", [temporary.on]))
    try:
        temporary.on = True
        commit(setting(parameters, "_data", numbers))
        return make()
    finally:
        commit(undo)


def _calls(order: Sequence[Value]) -> list[tuple[Any, list[Any]]]:
    """The calls among Values, each with those of its results that are used."""
    found: dict[Any, list[Value]] = {}
    if array_calls := sys.modules.get("micrograd.engine.array_calls"):  # which needs NumPy, as such calls do
        for node in order:
            if isinstance(node._primitive, array_calls.ArrayCall):
                found[node] = []
            elif isinstance(node._primitive, array_calls.Result) and node._first in found:
                found[node._first].append(node)
    return list(found.items())


def _made_by_steps(call: Any, results: list[Any], room: int) -> tuple[dict[Value, Value], int]:
    """What steps make in place of the results of a call, and how many Values they are.

    Nothing is made where there is no room for so many, or where the steps divide by a zero that LAPACK goes around.
    """
    from micrograd.draw.rotations import OF_KNOWN_NUMBERS  # it needs NumPy, which the call has loaded

    function, operands, arrays = call._primitive.function, list(call._x), call._primitive.operands(call)
    steps = OF_KNOWN_NUMBERS.get(function.name, function.steps)
    if steps is None or function.operations(arrays) > room:
        return {}, 0

    def make() -> list[Value]:
        made = [x for array in function.in_steps(steps, arrays) for x in array.ravel().tolist()]
        found = [made[result._primitive.part] for result in results]
        uses = Counter(chain(operands, found, *(node._operands() for node in _between(operands, found))))
        return [_alone(x, uses) for x in found]

    try:
        found = with_numbers(operands, list(call._y), make)
    except ArithmeticError:
        return {}, 0
    inner = _between(operands, found)
    if len(inner) > room:
        return {}, 0
    block = BlockOf(function.name, tick(), results[0]._scope)
    for node in inner:
        node._scope = block
    _add_gradients(inner, zip(found, results, strict=True))
    return dict(zip(results, found, strict=True)), len(inner)


def _between(operands: Sequence[Value], results: Sequence[Any]) -> list[Value]:
    """The Values that results are made of, and these, but no operands and no leaves; each after what it is made of."""
    done = dict.fromkeys(operands, True)
    order = list[Value]()
    stack = [x for x in results if isinstance(x, Value)]
    while stack:
        node = stack[-1]
        if node in done:
            stack.pop()
            if not done[node]:
                done[node] = True
                order.append(node)
        elif node.is_leaf:
            done[stack.pop()] = True
        else:
            done[node] = False
            stack += [operand for operand in node._operands() if operand not in done]
    return order


def _alone(x: Any, uses: Mapping[Any, int]) -> Value:
    """A Value that a step gives, and that nothing else is made of; a constant for a number, as that in a corner."""
    if not isinstance(x, Value):
        return Value(float(x), requires_grad=False)
    return x if uses[x] == 1 else x + 0.0


def _add_gradients(steps: Sequence[Value], results: Iterable[tuple[Value, Value]]) -> None:
    """Give steps the gradients that backward() would have given them, from those of the results."""
    gradients = dict.fromkeys(steps, 0.0)
    gradients.update((made, float(result.grad)) for made, result in results)
    for node in reversed(steps):
        node._grad = gradients[node]
        for operand, contribution in node._primitive.contributions(node, gradients[node]):
            if operand in gradients:
                gradients[operand] += contribution
