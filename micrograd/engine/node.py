"""Node: the fields of a Value.

The product of a Value x, which is 3.0, and the plain number 2.0 is a node with

    _data 6.0, _primitive mul, _first x, _x 3.0, _second NUMBER, _y 2.0

It keeps the numbers beside the operands: the gradient belongs to the numbers of the forward pass, even if x.data is
set afterwards. Operators make nodes: see value.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import Operand, required_number
from micrograd.engine.primitive import CONSTANT, LEAF
from micrograd.engine.stored import LATER, SPECIAL, looked_at, requires_grad_was_set, set_on
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from micrograd.engine.primitive import Primitive


def forget(node: Node) -> None:
    """Turn a node into a constant."""
    node._primitive, node._first, node._second, node._x, node._y = CONSTANT, NUMBER, NUMBER, (), ()


class Node(Operand):
    """What a Value remembers."""

    # How it was made: a primitive, its operands _first and _second, and the numbers _x and _y that they had.
    # NUMBER stands for a plain number, and for no operand. A variadic primitive (of more operands, or hand-written)
    # has all of them in _x and their numbers in _y. A leaf has () in both, or says in _x that it is the input of a
    # transform (see differentiation.py). There is no tuple and no closure, because the garbage
    # collector's time grows with the objects that it tracks: a node is one of them. _uses is 0 unless backward()
    # is running. All other attributes are in a dictionary, which is made when the first of them is set: the label,
    # custom ones, and two by which pages find groups: _calls, the calls that gave a node (see contexts/calls.py), and
    # _scope, the block around, where mg.record_scopes() is on.
    __slots__ = ("__dict__", "_data", "_first", "_grad", "_primitive", "_second", "_uses", "_x", "_y")

    _data: float
    _grad: Any
    _primitive: Primitive
    _first: Any
    _second: Any
    _x: Any
    _y: Any
    _uses: int
    label = ""
    _calls: Any = None
    _scope: Any = None

    @property
    def data(self) -> float:
        """The number. A leaf's may be set; a result's follows from its operands."""
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            tracer.refused("reading the number of a Value", "Write mg.where, mg.maximum, mg.exp or mg.detach.")
        if LATER:
            looked_at(self)
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if not self.is_leaf:
            raise ValueError(
                f"{self!r} is the result of {self._primitive.symbol!r}: set the data of a leaf, and compute it again"
            )
        number = required_number(data, "the data of a Value")
        set_on(self, "_data", number)

    @property
    def grad(self) -> Any:
        """The gradient: the derivative, with respect to this Value, of what was backpropagated from.

        A float; after ``backward(create_graph=True)`` a Value.
        """
        if SPECIAL and (tracer := tracer_on_top()) is not None:
            tracer.refused("reading the gradient of a Value", "Read it outside, and pass it as an argument.")
        if LATER:
            looked_at(self)
        return self._grad

    @grad.setter
    def grad(self, grad: Any) -> None:
        graph = isinstance(grad, Node) and isinstance(self._grad, Node)  # a graph in place of a graph: grad *= 0.5
        grad = grad if graph else required_number(grad, "the grad of a Value")
        if self.is_leaf:
            set_on(self, "_grad", grad)
        else:
            self._grad = grad

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this Value."""
        return self._primitive is LEAF or self._primitive is CONSTANT

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to this Value. A leaf's may be set, to freeze it or to free it."""
        return self._primitive is not CONSTANT

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        if not self.is_leaf:
            raise ValueError(f"{self!r} is the result of {self._primitive.symbol!r}: set requires_grad of its leaves")
        self._primitive = LEAF if requires_grad else CONSTANT
        requires_grad_was_set()


NUMBER: Any = object.__new__(Node)
NUMBER._data, NUMBER._grad, NUMBER._uses = 0.0, 0.0, 0
forget(NUMBER)  # every Node refers to it, and so does it itself
