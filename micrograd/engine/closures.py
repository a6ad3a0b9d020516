"""Operations whose derivative is a closure: hand-written as in micrograd's lectures, or by a decorator.

A primitive of the table serves all the nodes that it makes. Those here are made again for each node, and
keep what that node needs to pass its gradient on. What a closure computes is floats, so it cannot be
differentiated a second time, and it cannot be copied: for both, register a primitive with a rule.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_settings, check_unchanged, required_number
from micrograd.engine.commit import changing_gradients, commit, keeping_gradients
from micrograd.engine.primitive import Primitive
from micrograd.engine.stored import bring_up_to_date

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import ParamSpec

    P = ParamSpec("P")


def _refuse_graphs(primitive: Primitive) -> None:
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

    check_differentiable_again = _refuse_graphs

    def closure(self, node: Any) -> Callable[[], object]:
        """The closure as it was assigned."""
        return self.backpropagate or (lambda: None)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"the hand-written operation {self.symbol!r} cannot be copied or pickled: its closure would go on "
            "changing the originals; make it a primitive instead"
        )


class Operation(Primitive):
    """The primitive of a single node, made by a function that gives its value and how to backpropagate."""

    __slots__ = ("backpropagate", "function")

    def __init__(self, function: Callable[..., Any], settings: dict[str, Any]) -> None:
        name = getattr(function, "__name__", "operation")
        check_settings(name, settings)

        def forward(*inputs: float) -> Any:
            made = function(*inputs, **settings)
            if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
                raise TypeError(
                    f"operation {name} must return its value and a backpropagate function, not {made!r:.80}"
                )
            value, self.backpropagate = made
            return value

        super().__init__(name, name, forward)
        self.function = function
        self.settings = settings

    def _again(self, *operands: Any) -> Any:
        return Operation(self.function, self.settings)(*operands)  # each element has a closure of its own

    check_differentiable_again = _refuse_graphs

    def receivers(self, node: Any) -> list[Any]:
        """The operands that gradients flow to."""
        return [operand for operand in node._x if getattr(operand, "requires_grad", False)]

    def contributions(
        self, node: Any, gradient: float, useful: Container[Any] | None = None
    ) -> list[tuple[Any, float]]:
        """What the backpropagate function gives, operand by operand."""
        given = self.backpropagate(gradient)
        given = given if isinstance(given, (tuple, list)) else (given,)
        if len(given) != len(node._x):
            raise ValueError(f"backpropagate gave {len(given)} gradients for {len(node._x)} operands")
        return [
            (operand, 0.0 if contribution is None else required_number(contribution, "a gradient"))
            for operand, contribution in zip(node._operands(), given, strict=True)
            if operand.requires_grad
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the operation {self.name!r} of one call cannot be copied or pickled; make it a primitive")


def operation(function: Callable[P, Any]) -> Callable[P, Any]:
    """Make an operation out of a function that returns its value and a function to backpropagate.

    Args:
        function: takes floats, and settings by keyword; returns the value and a function from the
            gradient of the value to the gradient of each operand (a tuple, or one number for one
            operand; None where no gradient flows).

    Returns:
        The function, to be called with Values and numbers.

    Raises:
        TypeError: for what is no function; and when called, if the function does not return such a pair.

    Example:
        >>> from micrograd import Value
        >>> @operation
        ... def product(x, y):
        ...     return x * y, lambda g: (g * y, g * x)
        >>> x = Value(3.0)
        >>> product(x, 2.0).backward()
        >>> x.grad
        2.0
    """
    if not callable(function):
        raise TypeError(f"operation needs a function, not {type(function).__name__}: {function!r:.80}")

    @wraps(function)
    def apply(*operands: Any, **settings: Any) -> Any:
        return Operation(function, settings)(*operands)

    return apply
