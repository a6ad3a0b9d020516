"""Sums, dot products, and what is done to many Values side by side: found in the graph, however it was written.

Values are of one class where they were made by the same primitives in the same way from leaves of the same families:
the sixteen sums of a matrix times a vector are. Values of one class in one box are independent of each other, because
they are equally far from the leaves. What a program does again and again is a loop, also where nobody named it.
"""

from __future__ import annotations

from operator import eq
from re import finditer
from typing import TYPE_CHECKING, Any

from micrograd.draw.folding.boxes import Box, operation_of
from micrograd.draw.text import readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.value import Value

LEAST_TERMS = 4  # of a sum or a dot product in a box of its own
LEAST_ELEMENTS = 4  # of a vector
LONGEST = 60  # operations of an iteration
LEAST_ITERATIONS = 6
LEAST_LENGTH = 40  # operations of all iterations


class Patterns:
    """What repeats between the Values of a graph.

    Args:
        nodes: the Values, each after its operands.
        of: the box of each; boxes of patterns are added.
        users: of each, who uses it.
        places: what is known of parameters.
    """

    def __init__(
        self,
        nodes: list[Value],
        of: dict[Value, Box | None],
        users: dict[Value, list[Value]],
        places: dict[Value, Place],
    ) -> None:
        self.nodes, self.of, self.users, self.places = nodes, of, users, places
        self._position = {node: index for index, node in enumerate(nodes)}

    def add(self) -> None:
        """Put Values into boxes of patterns, inside of the boxes that they are in."""
        classes = self._classes()
        sums = self._sums()
        alone = [node for node in self.nodes if not node.is_leaf and node not in self._inside]
        put_into_iterations(alone, self.of, lambda leaf: leaf if leaf.requires_grad else "constant")
        vectors: dict[tuple[Box | None, int], list[Value]] = {}
        for node in self.nodes:
            if not node.is_leaf and (node in sums or node not in self._inside):
                vectors.setdefault((self.of[node], classes[node]), []).append(node)
        for (around, _), elements in vectors.items():
            start = self._position[elements[0]]
            if len(elements) >= LEAST_ELEMENTS:
                name = self._name(sums[elements[0]]) if elements[0] in sums else _formula(elements)
                box = Box(name, "vector", around, start)
                box.shape = (len(elements),)
                self._put(elements, box)
            for element in elements:
                if element in sums:
                    inner = self.of[element]
                    self._put(sums[element], Box(self._name(sums[element]), self._kind(sums[element]), inner, start))

    def _classes(self) -> dict[Value, int]:
        """The class of each Value, as a number."""
        numbers: dict[Any, int] = {}
        classes: dict[Value, int] = {}
        for node in self.nodes:
            if node.is_leaf:
                place = self.places.get(node)
                key: Any = place.family if place is not None else ("leaf" if node.requires_grad else "constant")
            else:
                key = (operation_of(node), *(classes[operand] for operand in node._operands()))
            classes[node] = numbers.setdefault(key, len(numbers))
        return classes

    def _sums(self) -> dict[Value, list[Value]]:
        """The sums that are long enough, by their results: what only they are made of, additions and products."""
        sums: dict[Value, list[Value]] = {}
        self._inside: set[Value] = set()
        for node in reversed(self.nodes):
            if node._primitive.name != "add" or node in self._inside:
                continue
            own, terms = [node], []
            stack = list(node._operands())[::-1]
            while stack:
                operand = stack.pop()
                if operand._primitive.name == "add" and self._is_only_used_here(operand, node):
                    own.append(operand)
                    stack += operand._operands()[::-1]
                else:
                    terms.append(operand)
            products = [term for term in terms if term._primitive.name == "mul" and self._is_only_used_here(term, node)]
            is_dot = len(products) >= len(terms) - 1  # a bias may be added
            if is_dot:
                own += products
            if len(products if is_dot else [term for term in terms if term.requires_grad]) < LEAST_TERMS:
                continue
            sums[node] = own
            self._inside.update(own)
        return sums

    def _is_only_used_here(self, operand: Value, node: Value) -> bool:
        return len(self.users[operand]) == 1 and self.of[operand] is self.of[node]

    def _kind(self, members: list[Value]) -> str:
        return "dot" if any(node._primitive.name == "mul" for node in members) else "sum"

    def _name(self, members: list[Value]) -> str:
        products = sum(node._primitive.name == "mul" for node in members)
        constants = sum(not operand.requires_grad for node in members for operand in node._operands())
        return f"dot of {products}" if products else f"sum of {len(members) + 1 - constants}"

    def _put(self, members: list[Value], box: Box) -> None:
        """Put Values into a box, and with them the constants that only they use."""
        before = box.parent
        for node in members:
            self.of[node] = box
            for operand in node._operands():
                if (
                    operand.is_leaf
                    and self.of[operand] is before
                    and all(self.of[user] is box for user in self.users[operand])
                ):
                    self.of[operand] = box


INFIX = {"add": "+", "sub": "−", "mul": "×", "div": "/", "pow": "**"}


def _formula(elements: list[Value]) -> str:
    """What is done to each of these Values, in short: x + y, x ** 2, tanh."""
    primitive = elements[0]._primitive
    if primitive.name not in INFIX:
        return primitive.symbol or primitive.name
    numbers = {operand.data for node in elements for operand in node._operands()[1:] if not operand.requires_grad}
    second = readable(numbers.pop()) if len(numbers) == 1 else "y"
    return f"x {INFIX[primitive.name]} {second}"


def put_into_iterations(nodes: Iterable[Value], of: dict[Value, Box | None], family: Callable[[Value], Any]) -> None:
    """Put the iterations of loops into boxes of their own, inside of the box that they are in.

    Args:
        nodes: the results that may be of iterations, each after its operands.
        of: the box of each; those of iterations are added.
        family: what leaves that are used alike have in common.
    """
    inside: dict[Box | None, list[Value]] = {}
    for node in nodes:
        inside.setdefault(of[node], []).append(node)
    for around, results in inside.items():
        if len(results) >= LEAST_LENGTH and (around is None or around.kind == "run"):
            start, length, count = _iterations(_signatures(results, family))
            for iteration in range(count):
                box = Box(f"Step {iteration + 1}", "run", around, start + iteration, ("step", around, start))
                own = results[start + iteration * length : start + (iteration + 1) * length]
                of.update(dict.fromkeys(own, box))
                leaves = [operand for node in own for operand in node._operands() if operand.is_leaf]
                of.update((leaf, box) for leaf in leaves if not leaf.requires_grad and of[leaf] is around)


def _signatures(results: list[Value], family: Callable[[Value], Any]) -> list[Any]:
    """What each does, and how far back its operands are."""
    position = {node: index for index, node in enumerate(results)}
    return [
        (
            operation_of(node),
            *(index - position[x] if x in position else family(x) if x.is_leaf else "other" for x in node._operands()),
        )
        for index, node in enumerate(results)
    ]


def _iterations(signatures: list[Any]) -> tuple[int, int, int]:
    """Where the longest loop starts, how long its iterations are and how many there are; none where it is too short.

    Example:
        >>> _iterations([("exp", "x"), *[("mul", 3), ("add", 1), ("tanh", 1)] * 20, ("log", 1)])
        (1, 3, 20)
    """
    best = (0, 0, 0)
    numbers: dict[Any, int] = {}
    kinds = [numbers.setdefault(signature, len(numbers)) for signature in signatures]
    for length in range(1, min(LONGEST, len(kinds) // LEAST_ITERATIONS) + 1):
        same = bytes(map(eq, kinds[length:], kinds))  # whether each is as the one an iteration before it
        for run in finditer(rb"\x01{%d,}" % (length * (LEAST_ITERATIONS - 1)), same):
            start, count = run.start(), (run.end() - run.start()) // length + 1
            is_longer = count * length > max(LEAST_LENGTH - 1, best[1] * best[2] + length)
            if is_longer and _is_handed_on(signatures[start : start + length]):
                best = (start, length, count)
    return best


def _is_handed_on(iteration: list[Any]) -> bool:
    """Whether an iteration uses what the one before it computed."""
    return any(
        isinstance(back, int) and back > index for index, (_, *operands) in enumerate(iteration) for back in operands
    )
