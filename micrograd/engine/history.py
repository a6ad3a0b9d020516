"""Micrograd's names for how a Value was made, computed when someone asks for them.

    out = Value(x.data * y.data, (x, y), "*")
    out._backward = backward        # a closure, which adds to x.grad and y.grad
    out._prev == {x, y}, out._op    # the operands, and the symbol

Each node whose derivative is a closure has a separate primitive, HandWritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_unchanged
from micrograd.engine.commit import changing_gradients, commit, keeping_gradients
from micrograd.engine.node import NUMBER, Node, forget
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import NO_RECORDER, recorder_on_top
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable


def refuse_graphs(primitive: Primitive) -> None:
    """Refuse gradients of gradients through a closure."""
    raise ValueError("its derivative is a closure on floats, no graph; make it a primitive, with a rule")


class HandWritten(Primitive):
    """The primitive of a single node, ``Value(data, children, op)``: its derivative is a closure.

    The closure takes no arguments and adds to the children's ``grad`` what the node's own ``grad``
    says, as each operation in micrograd's lectures does.
    """

    __slots__ = ("backpropagate",)

    def __init__(self, symbol: str, backpropagate: Callable[[], object] | None = None) -> None:
        super().__init__(symbol or "hand-written", symbol, float)
        self.backpropagate = backpropagate

    def receivers(self, node: Any) -> list[Any]:
        """The children that gradients flow to, each once, as the closure adds up a child's positions itself."""
        return [child for child in dict.fromkeys(node._x) if child.requires_grad]

    def contributions(
        self, node: Any, gradient: float, useful: Container[Any] | None = None
    ) -> list[tuple[Any, float]]:
        """What the closure adds to each child's gradient; the gradients themselves stay as they are."""
        if self.backpropagate is None:
            raise ValueError("this hand-written operation has no derivative; assign its _backward")
        bring_up_to_date()
        check_unchanged(node._x, node._y)  # the closure reads the numbers that its operands have now
        children = list(dict.fromkeys(node._x))
        involved, receivers = [node, *children], [child for child in children if child.requires_grad]
        with changing_gradients:
            undo = keeping_gradients(involved)
            try:
                node._grad = gradient
                for child in children:
                    child._grad = 0.0
                self.backpropagate()
                return [(child, child._grad) for child in receivers]
            finally:
                commit(undo)

    check_differentiable_again = refuse_graphs

    def closure(self, node: Any) -> Callable[[], object]:
        """The closure as it was assigned."""
        return self.backpropagate or (lambda: None)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"the hand-written operation {self.symbol!r} cannot be copied or pickled: its closure would go on "
            "changing the originals; make it a primitive instead"
        )


class History(Node):
    """The names of micrograd's lectures, which Value inherits."""

    __slots__ = ()

    @property
    def _op(self) -> str:
        """The symbol of the primitive that made this Value; empty for a leaf."""
        return self._primitive.symbol

    @property
    def _prev(self) -> set[Any]:
        """The operands; a plain number among them is a Value that requires no gradient."""
        return set(self._operands())

    def _operands(self) -> tuple[Any, ...]:
        """The operands in order. A plain number among them becomes a constant Value, and stays one."""
        if self.is_leaf:
            return ()
        kind: Any = type(self)  # Value
        if self._primitive.variadic:
            self._x = tuple(o if isinstance(o, Node) else kind(o, requires_grad=False) for o in self._x)
            return self._x
        if self._first is NUMBER:
            self._first = kind(self._x, requires_grad=False)
        if self._primitive.second is None:
            return (self._first,)
        if self._second is NUMBER:
            self._second = kind(self._y, requires_grad=False)
        return self._first, self._second

    def _inputs(self) -> tuple[float, ...]:
        """The numbers that the operands had."""
        if self.is_leaf:
            return ()
        if self._primitive.variadic:
            return tuple(self._y)
        return (self._x,) if self._primitive.second is None else (self._x, self._y)

    @property
    def _backward(self) -> Callable[[], object]:
        """The closure that adds this node's contribution to its operands' ``grad``, each time it is called."""
        return self._primitive.closure(self)

    @_backward.setter
    def _backward(self, backpropagate: Callable[[], object]) -> None:
        if not callable(backpropagate):
            raise TypeError(f"_backward must be a function of no arguments, not {backpropagate!r:.80}")
        if not self.is_leaf:  # below a leaf there is nothing to pass a gradient to
            self._remember_by_hand(self._operands(), HandWritten(self._op, backpropagate))

    def _made_by_hand(self, children: Iterable[Any], symbol: str) -> None:
        try:
            children = tuple(children)
        except TypeError:
            raise TypeError(f"the children of a Value must be a sequence of Values, not {children!r:.80}") from None
        if children and self.requires_grad:
            self._remember_by_hand(children, HandWritten(symbol))

    def _remember_by_hand(self, children: tuple[Any, ...], primitive: HandWritten) -> None:
        for child in children:
            if not isinstance(child, Node):
                raise TypeError(f"a child must be a Value, not {type(child).__name__}: {child!r:.80}")
        if (tracer := tracer_on_top()) is not None:
            tracer.refused("a derivative that is a closure", "Make it a primitive: see mg.primitive.")
        recorder = recorder_on_top() or NO_RECORDER
        self._primitive, self._first, self._second = primitive, NUMBER, NUMBER
        bring_up_to_date()
        self._x, self._y = children, tuple(child._data for child in children)
        if not recorder.keeps(self) or not primitive.receivers(self):
            forget(self)
