"""The obvious tape with objects for indices: each node has its parents and the local gradients.

Faster than the list of indices, and the one here that is hardest to beat: it has no graph to walk, as
the tape is in order already. In return it keeps every node until it is truncated, used or not.
"""

from __future__ import annotations

import math
from typing import Any

TAPE: list[Node] = []


class Node:
    """A number, its gradient, its parents and the derivatives with respect to them."""

    __slots__ = ("data", "grad", "local", "parents")

    def __init__(self, data: float, parents: tuple[Node, ...] = (), local: tuple[float, ...] = ()) -> None:
        self.data, self.grad, self.parents, self.local = data, 0.0, parents, local
        TAPE.append(self)

    def __add__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other: Any) -> Node:
        other = other if isinstance(other, Node) else Node(other)
        return Node(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, power: float) -> Node:
        return Node(self.data**power, (self,), (power * self.data ** (power - 1),))

    def exp(self) -> Node:
        data = math.exp(self.data)
        return Node(data, (self,), (data,))

    def log(self) -> Node:
        return Node(math.log(self.data), (self,), (1 / self.data,))

    def relu(self) -> Node:
        return Node(max(0.0, self.data), (self,), (float(self.data > 0),))

    def __neg__(self) -> Node:
        return self * -1

    def __sub__(self, other: Any) -> Node:
        return self + -other

    def __truediv__(self, other: Any) -> Node:
        return self * other**-1

    __radd__, __rmul__ = __add__, __mul__

    def backward(self) -> None:
        """Fill the gradients of all nodes, from this one back."""
        self.grad = 1.0
        for node in reversed(TAPE):
            for parent, local in zip(node.parents, node.local):  # noqa: B905  # strict=True would cost time
                parent.grad += local * node.grad
