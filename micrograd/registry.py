"""What a primitive is, and the registry that finds one by its name."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule: TypeAlias = Callable[..., Any]
    Interval: TypeAlias = tuple[float, float]

PRIMITIVES: dict[str, Primitive] = {}
REAL_LINE = (-math.inf, math.inf)


class Primitive:
    """An operation that the engine knows how to compute and how to differentiate.

    Calling one applies it: floats give a float, and an operand that records what is done with it
    (a Value) gives a result that remembers.

    Args:
        name: unique, a Python identifier; ``find(name)`` gives the primitive back.
        symbol: what pictures, ``_op`` and error messages show.
        forward: floats in, a float out.
        derivatives: for each operand the rule that gives its gradient, or None where no gradient
            flows. A rule is called with the gradient of the output, the output, and the operands.
        domain: for each operand the open interval in which value and derivative are finite; the
            whole real line where it is left out.

    Example:
        >>> from micrograd.primitives import mul, sin
        >>> mul.forward(3.0, 4.0)
        12.0
        >>> sin(0.0)
        0.0
    """

    __slots__ = ("derivatives", "domain", "first", "forward", "name", "second", "symbol")

    def __init__(
        self,
        name: str,
        symbol: str,
        forward: Callable[..., float],
        *derivatives: Rule | None,
        domain: tuple[Interval, ...] = (),
    ) -> None:
        self.name, self.symbol, self.forward = name, symbol, forward
        self.derivatives = derivatives
        self.domain = domain or (REAL_LINE,) * len(derivatives)
        # The rules as the engine calls them where there are one or two operands: always with two, so
        # a rule of one operand is handed a second that it drops.
        self.first: Any = None
        self.second: Any = None
        if len(derivatives) == 2 and None not in derivatives:
            self.first, self.second = derivatives
        elif len(derivatives) == 1 and (rule := derivatives[0]) is not None:
            self.first = lambda g, out, x, _: rule(g, out, x)

    def __call__(self, *operands: Any) -> Any:
        """Apply the primitive: to floats, or as the first operand that records says."""
        for operand in operands:
            if (apply := getattr(type(operand), "_apply", None)) is not None:
                return apply(self, *operands)
        return self.forward(*map(float, operands))

    def receivers(self, node: Any) -> list[Any]:
        """Which of a node's operands gradients flow to, where it has all of them in _x."""
        rules = self.derivatives or (unchanged,) * len(node._x)  # without a derivative: found out in shares
        pairs = zip(node._x, rules, strict=True)
        return [operand for operand, rule in pairs if rule and getattr(operand, "requires_grad", False)]

    def shares(self, node: Any) -> list[tuple[Any, float]]:
        """What a node gives of its gradient to each operand that gradients flow to."""
        if not self.derivatives:
            raise ValueError("this primitive has no derivative")
        inputs = node._inputs()
        return [
            (operand, rule(node._grad, node._data, *inputs))
            for operand, rule in zip(node._operands(), self.derivatives, strict=True)
            if rule and operand.requires_grad
        ]

    def closure(self, node: Any) -> Callable[[], object]:
        """The function of no arguments that adds the shares to the operands' gradients."""

        def backward() -> None:
            for operand, share in [] if node.is_leaf else self.shares(node):
                operand._grad += share

        return backward

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find, (self.name,)


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
        """The children that gradients flow to, each once: the closure serves all of its places."""
        return [child for child in dict.fromkeys(node._x) if child.requires_grad]

    def shares(self, node: Any) -> list[tuple[Any, float]]:
        """What the closure adds to each child's gradient, which itself stays as it was."""
        if self.backpropagate is None:
            raise ValueError("this hand-written operation has no derivative; assign its _backward")
        children = self.receivers(node)
        before = [child._grad for child in children]
        try:
            for child in children:
                child._grad = 0.0
            self.backpropagate()
            return [(child, child._grad) for child in children]
        finally:
            for child, gradient in zip(children, before, strict=True):
                child._grad = gradient

    def closure(self, node: Any) -> Callable[[], object]:
        """The closure as it was assigned."""
        return self.backpropagate or (lambda: None)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"the hand-written operation {self.symbol!r} cannot be copied or pickled: its closure would go on "
            "changing the originals; make it a primitive instead"
        )


def primitive(
    name: str,
    symbol: str,
    forward: Callable[..., float],
    *derivatives: Rule | None,
    domain: tuple[Interval, ...] = (),
) -> Primitive:
    """Make a Primitive and register it under its name; ValueError if the name is taken."""
    if name in PRIMITIVES:
        raise ValueError(f"a primitive named {name!r} is registered already")
    PRIMITIVES[name] = made = Primitive(name, symbol, forward, *derivatives, domain=domain)
    return made


def find(name: str) -> Primitive:
    """The primitive registered under that name; ValueError if there is none."""
    if name not in PRIMITIVES:
        raise ValueError(f"no primitive named {name!r} is registered; import the module that defines it")
    return PRIMITIVES[name]


def unchanged(g: Any, *_: Any) -> Any:
    """The rule of an operand that the gradient reaches as it is."""
    return g


# What stands in place of the primitive in a Value that no primitive made.
LEAF = primitive("leaf", "", float)
CONSTANT = primitive("constant", "", float)  # no gradient flows to it
