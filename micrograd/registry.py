"""What a primitive is, and the registry that finds one by its name."""

from __future__ import annotations

import math
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd.checks import required_number

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule: TypeAlias = Callable[..., Any]
    Interval: TypeAlias = tuple[float, float]

PRIMITIVES: dict[str, Primitive] = {}
_WITH_SETTINGS: dict[tuple[Any, ...], Primitive] = {}
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

    __slots__ = ("derivatives", "domain", "first", "forward", "name", "second", "settings", "symbol")

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
        self.settings: dict[str, Any] = {}
        self.domain = domain or (REAL_LINE,) * len(derivatives)
        # The rules as the engine calls them where there are one or two operands: always with two, so
        # a rule of one operand is handed a second that it drops.
        self.first: Any = None
        self.second: Any = None
        if len(derivatives) == 2 and None not in derivatives:
            self.first, self.second = derivatives
        elif len(derivatives) == 1 and (rule := derivatives[0]) is not None:
            self.first = lambda g, out, x, _: rule(g, out, x)

    def __call__(self, *operands: Any, **settings: Any) -> Any:
        """Apply the primitive: to floats, to arrays element by element, or as an operand that records says.

        Settings go to the forward function and to every rule as keywords; no gradient flows to them.
        """
        if settings:
            return self.with_settings(**settings)(*operands)
        if self.derivatives and len(operands) != len(self.derivatives):
            raise TypeError(f"{self.name} takes {len(self.derivatives)} operands, not {len(operands)}")
        for operand in operands:
            kind = type(operand)
            if kind is not float:
                if (apply := getattr(kind, "_apply", None)) is not None:
                    return apply(self, *operands)
                if hasattr(kind, "__array_function__"):
                    return self._elementwise(operands)
        return self.forward(*(required_number(operand, f"an operand of {self.name}") for operand in operands))

    def with_settings(self, **settings: Any) -> Primitive:
        """The primitive with its settings fixed: the same one each time, for the same settings."""
        key = (self.name, *sorted(settings.items()))
        try:
            hash(key)
        except TypeError as error:
            raise TypeError(f"the settings of {self.name} must be hashable: {error}") from None
        if key not in _WITH_SETTINGS:
            shown = ", ".join(f"{name}={value}" for name, value in sorted(settings.items()))
            rules = [rule and partial(rule, **settings) for rule in self.derivatives]
            fixed = Primitive(
                self.name, f"{self.symbol} {shown}", partial(self.forward, **settings), *rules, domain=self.domain
            )
            fixed.settings = settings
            _WITH_SETTINGS[key] = fixed
        return _WITH_SETTINGS[key]

    def _elementwise(self, operands: tuple[Any, ...]) -> Any:
        import numpy

        result = numpy.frompyfunc(self, len(operands), 1)(*operands)
        recorded = any(hasattr(type(element), "_apply") for element in numpy.ravel(result))
        return result if recorded else numpy.asarray(result, dtype=float)[()]

    def receivers(self, node: Any) -> list[Any]:
        """Which of a node's operands gradients flow to, where it has all of them in _x."""
        rules = self.derivatives or (unchanged,) * len(node._x)  # without a derivative: found out in shares
        pairs = zip(node._x, rules, strict=True)
        return [operand for operand, rule in pairs if rule and getattr(operand, "requires_grad", False)]

    def shares(self, node: Any, gradient: float) -> list[tuple[Any, float]]:
        """What a node with this gradient gives to each operand that gradients flow to."""
        if not self.derivatives:
            raise ValueError("this primitive has no derivative")
        inputs = node._inputs()
        return [
            (operand, rule(gradient, node._data, *inputs))
            for operand, rule in zip(node._operands(), self.derivatives, strict=True)
            if rule and operand.requires_grad
        ]

    def closure(self, node: Any) -> Callable[[], object]:
        """The function of no arguments that adds the shares to the operands' gradients."""

        def backward() -> None:
            for operand, share in [] if node.is_leaf else self.shares(node, node._grad):
                operand._grad += share

        return backward

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find, (self.name, self.settings)


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

    def shares(self, node: Any, gradient: float) -> list[tuple[Any, float]]:
        """What the closure adds to each child's gradient; the gradients themselves stay as they are."""
        if self.backpropagate is None:
            raise ValueError("this hand-written operation has no derivative; assign its _backward")
        children = list(dict.fromkeys(node._x))
        involved = [node, *children]
        before = [value._grad for value in involved]
        try:
            node._grad = gradient
            for child in children:
                child._grad = 0.0
            self.backpropagate()
            return [(child, child._grad) for child in children if child.requires_grad]
        finally:
            for value, grad in zip(involved, before, strict=True):
                value._grad = grad

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

    __slots__ = ("backpropagate",)

    def __init__(self, function: Callable[..., Any], settings: dict[str, Any]) -> None:
        name = function.__name__

        def forward(*inputs: float) -> Any:
            made = function(*inputs, **settings)
            if not isinstance(made, tuple) or len(made) != 2 or not callable(made[1]):
                raise TypeError(
                    f"operation {name} must return its value and a backpropagate function, not {made!r:.80}"
                )
            value, self.backpropagate = made
            return value

        super().__init__(name, name, forward)

    def receivers(self, node: Any) -> list[Any]:
        """The operands that gradients flow to."""
        return [operand for operand in node._x if getattr(operand, "requires_grad", False)]

    def shares(self, node: Any, gradient: float) -> list[tuple[Any, float]]:
        """What the backpropagate function gives, operand by operand."""
        given = self.backpropagate(gradient)
        given = given if isinstance(given, (tuple, list)) else (given,)
        if len(given) != len(node._x):
            raise ValueError(f"backpropagate gave {len(given)} gradients for {len(node._x)} operands")
        return [
            (operand, 0.0 if share is None else required_number(share, "a gradient"))
            for operand, share in zip(node._operands(), given, strict=True)
            if operand.requires_grad
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the operation {self.name!r} of one call cannot be copied or pickled; make it a primitive")


def operation(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make an operation out of a function that returns its value and a function to backpropagate.

    Args:
        function: takes floats, and settings by keyword; returns the value and a function from the
            gradient of the value to the gradient of each operand (a tuple, or one number for one
            operand; None where no gradient flows).

    Returns:
        The function, to be called with Values and numbers.

    Raises:
        TypeError: when called, if the function does not return such a pair.

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

    @wraps(function)
    def apply(*operands: Any, **settings: Any) -> Any:
        return Operation(function, settings)(*operands)

    return apply


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


def find(name: str, settings: dict[str, Any] | None = None) -> Primitive:
    """The primitive registered under that name, with settings; ValueError if there is none."""
    if name not in PRIMITIVES:
        raise ValueError(f"no primitive named {name!r} is registered; import the module that defines it")
    found = PRIMITIVES[name]
    return found.with_settings(**settings) if settings else found


def unchanged(g: Any, *_: Any) -> Any:
    """The rule of an operand that the gradient reaches as it is."""
    return g


# What stands in place of the primitive in a Value that no primitive made.
LEAF = primitive("leaf", "", float)
CONSTANT = primitive("constant", "", float)  # no gradient flows to it
