"""Sums, dot products, and what is done to many Values side by side: found in the graph, however it was written.

Values are of one class where they were made by the same primitives in the same way from leaves of the same families:
the sixteen sums of a matrix times a vector are. Values of one class in one box are independent of each other, because
they are equally far from the leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.draw.folding.boxes import Box, operation_of
from micrograd.draw.folding.loops import put_into_iterations
from micrograd.draw.text import readable

if TYPE_CHECKING:
    from micrograd.draw.folding.parameters import Place
    from micrograd.engine.value import Value

LEAST_TERMS = 4  # of a sum or a dot product in a box of its own
LEAST_ELEMENTS = 4  # of a vector


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
