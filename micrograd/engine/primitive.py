"""Primitive: an operation with its derivative; and the registry that finds one by its name.

    exp = define("exp", math.exp, lambda g, out, x: g * out)
    exp(0.0)           # 1.0: floats give a float
    exp(Value(0.0))    # a Value, which remembers exp and its operand

The table of them is primitives.py. What ``backward()`` does not need of a primitive is in primitive_base.py.
"""

from __future__ import annotations

import math
from types import MethodType
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import Operand, explained, required_number
from micrograd.engine.primitive_base import PrimitiveBase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.primitive_base import Interval, Rule

PRIMITIVES: dict[str, Primitive] = {}
PUBLIC: dict[str, tuple[Primitive, tuple[str, ...]]] = {}  # what is a function and a method, by name, with its doc
REAL_LINE = (-math.inf, math.inf)


class _Floats:
    """The operations on floats: ``define`` makes each forward function an attribute, which is found quickly."""

    somewhere = bool


FLOATS: Any = _Floats()


def composite(formula: Callable[..., Any]) -> Callable[..., float]:
    """A forward function made of other primitives: what can compute these can compute it too.

    Args:
        formula: takes the operations and the operands; see composites.py for what it may do with them.

    Example:
        >>> @composite
        ... def softsign(on, x):
        ...     return x / (1 + on.abs(x))
        >>> softsign(-3.0)
        -0.75
    """
    return MethodType(formula, FLOATS)


class Primitive(PrimitiveBase):
    """An operation that the engine knows how to compute and how to differentiate.

    Call it to apply it. Floats give a float; if an operand is a Value, the result is one that remembers its operands.

    Args:
        name: unique, a Python identifier; ``find(name)`` gives the primitive back.
        symbol: what pictures, ``_op`` and error messages show.
        forward: floats in, a float out; or a composite, which is a formula over other primitives.
        derivatives: for each operand the rule that gives its gradient, or None where no gradient flows. A rule
            takes the gradient of the output, the output, and the operands.
        domain: for each operand the open interval in which value and derivative are finite; by default the real line.
        c: the forward function in C, for exported files.

    Example:
        >>> from micrograd.engine.primitives import mul, sin
        >>> mul.forward(3.0, 4.0)
        12.0
        >>> sin(0.0)
        0.0
    """

    __slots__ = (
        *("__weakref__", "name", "symbol", "forward", "composite", "derivatives", "domain", "c", "settings"),
        *("first", "second", "variadic"),
    )

    def __init__(
        self,
        name: str,
        symbol: str,
        forward: Callable[..., float],
        *derivatives: Rule | None,
        domain: tuple[Interval, ...] = (),
        c: str | None = None,
    ) -> None:
        self.name, self.symbol, self.forward, self.c = name, symbol, forward, c
        is_composite = isinstance(forward, MethodType) and forward.__self__ is FLOATS
        self.composite: Callable[..., Any] | None = forward.__func__ if is_composite else None  # type: ignore[attr-defined]
        self.derivatives = derivatives
        self.settings: dict[str, Any] = {}
        self.domain = domain or (REAL_LINE,) * len(derivatives)
        # One or two operands, each with a rule: a node has them in slots, and backward() calls the rules first and
        # second, always with two operands; a rule of one operand drops the second. Any other primitive is variadic:
        # a node has all operands in one tuple, and backward() asks for their contributions.
        self.first: Any = None
        self.second: Any = None
        if len(derivatives) == 2 and None not in derivatives:
            self.first, self.second = derivatives
        elif len(derivatives) == 1 and (rule := derivatives[0]) is not None:
            self.first = lambda g, out, x, _: rule(g, out, x)
        self.variadic = self.first is None

    def __call__(self, *operands: Any, **settings: Any) -> Any:
        """Apply the primitive: to floats, to arrays element by element, or to Values, which record it.

        Settings go to the forward function and to every rule as keywords; no gradient flows to them.
        """
        if settings:
            return self.with_settings(**settings)(*operands)
        if self.derivatives and len(operands) != len(self.derivatives):
            raise TypeError(f"{self.name} takes {len(self.derivatives)} operands, not {len(operands)}")
        record, inputs = None, operands
        for operand in operands:
            if type(operand) is not float:
                inputs = ()
                if isinstance(operand, Operand):
                    record = record or operand._apply
                elif hasattr(type(operand), "__array_function__"):
                    return self._elementwise(operands)
        if record is not None:
            return record(self, *operands)
        return self.computed(inputs or tuple(map(self.number, operands)), operands)

    def number(self, operand: Any) -> float:
        """The float of an operand that is a plain number; a TypeError for anything else."""
        return operand if type(operand) is float else required_number(operand, f"an operand of {self.name}")

    def computed(self, inputs: Sequence[float], operands: Sequence[Any]) -> float:
        """The result of the forward function for the operands' numbers; errors name the operands."""
        try:
            data = self.forward(*inputs)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, self, inputs, operands) from error
        return data if type(data) is float else required_number(data, f"the output of {self.name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return find, (self.name, self.settings)


def define(
    name: str,
    forward: Callable[..., float],
    *derivatives: Rule | None,
    symbol: str | None = None,
    domain: tuple[Interval, ...] = (),
    c: str | None = None,
    doc: tuple[str, ...] = (),
) -> Primitive:
    """Make a primitive of the table and register it; its symbol is its name where none is given.

    Not validated; tests cover the primitives of the table. Users call ``primitive`` in custom.py.
    """
    shown = name if symbol is None else symbol
    PRIMITIVES[name] = made = Primitive(name, shown, forward, *derivatives, domain=domain, c=c)
    setattr(FLOATS, name, made.forward)
    if doc:
        PUBLIC[name] = made, doc
    return made


def find(name: str, settings: dict[str, Any] | None = None) -> Primitive:
    """The primitive registered under that name, with settings; ValueError if there is none."""
    if name not in PRIMITIVES:
        raise ValueError(f"no primitive named {name!r} is registered; import the module that defines it")
    found = PRIMITIVES[name]
    return found.with_settings(**settings) if settings else found


def named(method: Any, primitive: Primitive) -> Any:
    """Give a method the name of its primitive, for tracebacks and help()."""
    method.__name__, method.__qualname__ = primitive.name, f"Value.{primitive.name}"
    method.__doc__ = f"See micrograd.{primitive.name}."
    return method


# Rules of sums and products, which are most nodes: backward() knows these by identity, and does not call them.
def unchanged(g: Any, *_: Any) -> Any:
    """The rule of an operand that the gradient reaches as it is."""
    return g


def times_second(g: Any, out: Any, x: Any, y: Any) -> Any:
    """The rule of a product's first operand."""
    return g * y


def times_first(g: Any, out: Any, x: Any, y: Any) -> Any:
    """The rule of a product's second operand."""
    return g * x


# What stands in place of the primitive in a Value that no primitive made.
LEAF = define("leaf", float, symbol="")
CONSTANT = define("constant", float, symbol="")  # no gradient flows to it
LEAF.variadic = CONSTANT.variadic = False
