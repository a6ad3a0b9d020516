"""Operations of the user's own: a primitive with rules, or a function that returns its value and its derivative.

A primitive of the table serves all the nodes that it makes, and so does one that ``primitive`` registers. An
``operation`` is made again for each node, and keeps what that node needs to pass its gradient on. What its closure
computes is floats, so it cannot be differentiated a second time, and it cannot be copied: for both, register a
primitive with a rule.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_settings, check_type, required_number
from micrograd.engine.history import refuse_graphs
from micrograd.engine.primitive import PRIMITIVES, Primitive, define

if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import ParamSpec

    from micrograd.engine.primitive_base import Interval, Rule

    P = ParamSpec("P")


def primitive(
    name: str,
    symbol: str,
    forward: Callable[..., float],
    *derivatives: Rule | None,
    domain: tuple[Interval, ...] = (),
    replace: bool = False,
    c: str | None = None,
) -> Primitive:
    """Make a custom primitive and register it.

    Args:
        name: unique, a Python identifier.
        symbol: what pictures, ``_op`` and error messages show.
        forward: floats in, a float out.
        derivatives: for each operand the rule that gives its gradient, or None where no gradient
            flows; no rules for a primitive that cannot be differentiated.
        domain: for each operand the open interval in which value and derivative are finite.
        replace: replace a primitive of that name, as when you run a notebook cell again.
        c: the forward function in C, for exported files: an expression of the parameters of forward, which are
            doubles, or statements with a return. It may call functions of math.h.

    Raises:
        ValueError: if the name is taken or no identifier, or if there is not one domain per operand.
        TypeError: if forward or a rule is not a function.

    Example:
        >>> cube = primitive("my_cube", "cube", lambda x: x * x * x, lambda g, out, x: g * 3 * x * x)
        >>> cube(2.0)
        8.0
    """
    check_type(isinstance(name, str), "the name of a primitive must be a str", name)
    if not name.isidentifier():
        raise ValueError(f"the name of a primitive must be a Python identifier, not {name!r}")
    if name in PRIMITIVES and not replace:
        raise ValueError(f"a primitive named {name!r} is registered already; replace=True takes its place")
    check_type(isinstance(symbol, str), f"the symbol of primitive {name} must be a str", symbol)
    for function in (forward, *(rule for rule in derivatives if rule is not None)):
        check_type(callable(function), f"primitive {name} needs functions", function)
    if not isinstance(domain, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in domain):
        raise TypeError(f"the domain of primitive {name} must be a tuple of pairs (low, high), not {domain!r:.80}")
    if domain and len(domain) != len(derivatives):
        raise ValueError(f"primitive {name} has {len(derivatives)} operands, but {len(domain)} domains")
    check_type(c is None or isinstance(c, str), f"the C code of primitive {name} must be a str", c)
    rules = [rule and _checked(rule, name) for rule in derivatives]
    return define(name, forward, *rules, symbol=symbol, domain=domain, c=c)


def _checked(rule: Rule, name: str) -> Rule:
    """The rule with a check: where it is handed a float, it must give one."""

    def checked(g: Any, *operands: Any, **settings: Any) -> Any:
        contribution = rule(g, *operands, **settings)
        return required_number(contribution, f"what a rule of {name} gives") if isinstance(g, float) else contribution

    return checked


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

    check_differentiable_again = refuse_graphs

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
        function: takes floats, and static parameters by keyword. It returns the value, and a function from
            the gradient of the value to the gradient of each operand: a tuple, or one number for one
            operand; None where no gradient flows.

    Returns:
        The function, to be called with Values and numbers.

    Raises:
        TypeError: if it is no function; when called, if the function does not return such a pair.

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
    check_type(callable(function), "operation needs a function", function)

    @wraps(function)
    def apply(*operands: Any, **settings: Any) -> Any:
        return Operation(function, settings)(*operands)

    return apply
