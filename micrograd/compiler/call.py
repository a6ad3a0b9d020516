"""Call: the primitive of a compiled function's result.

The result of ``fast(x)`` is one node of the graph, and its operands are all Values that the function read:

    fast(x)   =   Call("fast")(w, b, x)

When backward() arrives there, nothing is left to derive: the program has computed the gradients with
respect to w, b and x already, and the Call multiplies them by the gradient of the result.
"""

from __future__ import annotations

from struct import error as StructError  # noqa: N812  # it is a class
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.engine.commit import commit, setting
from micrograd.engine.node import requires_grad_version
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import refusing_floats

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from micrograd.compiler.numbers import Floats


class Call(Primitive):
    """The primitive of a compiled function's result, which has its gradients already.

    Args:
        name: the function's.
        gradients: the derivatives with respect to the operands, or a function that computes them when asked.
        leaves_only: whether all operands are leaves, and none is there twice.
    """

    __slots__ = ("_gradients", "_version", "leaves_only")

    def __init__(self, name: str, gradients: Floats | Callable[[], Floats], leaves_only: bool) -> None:
        super().__init__(name, f"compiled {name}", float)
        self._gradients: Any = gradients
        self.leaves_only = leaves_only
        self._version = requires_grad_version()

    def check_differentiable_again(self) -> None:
        """Refuse: these gradients are numbers, and no graphs."""
        raise ValueError("the gradient of a compiled function is no graph: differentiate the function itself")

    @property
    def gradients(self) -> Floats:
        """The derivative of the output with respect to each operand."""
        if callable(self._gradients):
            self._gradients = self._gradients()
        return self._gradients

    def receivers(self, node: Any) -> list[Any]:
        """The operands that gradients flow to."""
        return [operand for operand in node._x if operand._primitive is not CONSTANT]

    def shares(self, node: Any, gradient: float, useful: Container[Any] | None = None) -> list[tuple[Any, float]]:
        """The gradients times that of the output."""
        pairs = zip(node._x, (gradient * self.gradients).tolist(), strict=True)
        return [(o, share) for o, share in pairs if o._primitive is not CONSTANT and (useful is None or o in useful)]

    def backpropagates_at_once(self, node: Any, gradient: float) -> bool:
        """Add to the gradients of the operands directly; whether that could be done: they must all be leaves."""
        if not self.leaves_only or self._version is not requires_grad_version():
            return False
        before = [leaf._grad for leaf in node._x]
        shares = gradient * self.gradients
        try:
            with refusing_floats("a gradient that is a graph is not to be made a float"):
                after = (np.frombuffer(pack(f"{len(before)}d", *before)) + shares).tolist()
        except StructError:  # one of them is a graph
            after = [gradient + share for gradient, share in zip(before, shares.tolist(), strict=True)]
        commit(setting([*node._x, node], "_grad", [*after, gradient]))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the result of the compiled {self.name} cannot be copied or pickled; call {self.name} itself")
