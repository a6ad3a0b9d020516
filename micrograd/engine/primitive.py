"""What a primitive is, and the registry that finds one by its name."""

from __future__ import annotations

import math
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakValueDictionary

from micrograd._support.checks import Operand, check_settings, explained, required_number
from micrograd.engine.stored import bring_up_to_date, changing

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    Rule: TypeAlias = Callable[..., Any]
    Interval: TypeAlias = tuple[float, float]

PRIMITIVES: dict[str, Primitive] = {}
_with_settings: WeakValueDictionary[tuple[Any, ...], Primitive] = WeakValueDictionary()
REAL_LINE = (-math.inf, math.inf)


class Operations:
    """The primitives by their names, as functions of one kind of operand: what a composite is written with.

    Args:
        function: gives the function of a primitive on that kind of operand.
        somewhere: whether a condition may hold for an operand, or for one of its elements. Where it says no, a
            formula may leave out what it computes for that case alone.

    Example:
        >>> on = Operations(lambda primitive: primitive.forward)
        >>> on.maximum(on.exp(0.0), 0.5)
        1.0
    """

    def __init__(
        self,
        function: Callable[[Primitive], Callable[..., Any]],
        somewhere: Callable[[Any], bool] = lambda condition: True,
    ) -> None:
        self._function, self.somewhere = function, somewhere

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in PRIMITIVES:
            raise AttributeError(f"no primitive named {name!r} is registered")
        return self._function(PRIMITIVES[name])


class _Floats:
    """The operations on floats. define makes each primitive's forward function an attribute, which is found quickly."""

    somewhere = bool


FLOATS: Any = _Floats()


def composite(formula: Callable[..., Any]) -> Callable[..., float]:
    """A forward function made of other primitives: what can compute these can compute it too.

    Args:
        formula: takes the operations and the operands; see composites.py for what it may do with them.

    Example:
        >>> from micrograd.engine import primitives
        >>> @composite
        ... def softsign(on, x):
        ...     return x / (1 + on.abs(x))
        >>> softsign(-3.0)
        -0.75
        >>> made = Primitive("softsign", "softsign", softsign, lambda g, out, x: g * (1 - primitives.abs(out)) ** 2)
        >>> made.composite is None, primitives.exp.composite is None
        (False, True)
    """
    return MethodType(formula, FLOATS)


class Primitive:
    """An operation that the engine knows how to compute and how to differentiate.

    Calling one applies it. Floats give a float. Where an operand is a Value, the result is a Value that
    remembers.

    Args:
        name: unique, a Python identifier; ``find(name)`` gives the primitive back.
        symbol: what pictures, ``_op`` and error messages show.
        forward: floats in, a float out; or a composite, which is a formula over other primitives.
        derivatives: for each operand the rule that gives its gradient, or None where no gradient
            flows. A rule is called with the gradient of the output, the output, and the operands.
        domain: for each operand the open interval in which value and derivative are finite; the
            whole real line where it is left out.
        c: the forward function in C, for files that are exported.

    Example:
        >>> from micrograd.engine.primitives import mul, sin
        >>> mul.forward(3.0, 4.0)
        12.0
        >>> sin(0.0)
        0.0
    """

    __slots__ = (
        "__weakref__",
        "c",
        "composite",
        "derivatives",
        "domain",
        "first",
        "forward",
        "name",
        "second",
        "settings",
        "symbol",
        "variadic",
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
        # A narrow primitive has one or two operands, each with a rule; a node has them in slots of their own, and
        # the engine calls the rules first and second. They are called with two operands always: a rule of one
        # operand drops the second. A variadic primitive has all operands in one tuple, and gives them their
        # contributions.
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
        """What the forward function gives for the numbers of operands; errors name the operands."""
        try:
            data = self.forward(*inputs)
        except (ArithmeticError, ValueError) as error:
            raise explained(error, self, inputs, operands) from error
        return data if type(data) is float else required_number(data, f"the output of {self.name}")

    def with_settings(self, **settings: Any) -> Primitive:
        """The primitive with its settings fixed: the same one as long as it is in use, for the same settings."""
        check_settings(self.name, settings)
        shown = ", ".join(f"{name}={value!r}" for name, value in sorted(settings.items()))
        key = (self, shown, *((name, type(value), value) for name, value in sorted(settings.items())))
        try:
            fixed = _with_settings.get(key)
        except TypeError as error:
            raise TypeError(f"the settings of {self.name} must be hashable: {error}") from None
        if fixed is None:
            rules = [rule and partial(rule, **settings) for rule in self.derivatives]
            symbol, formula = f"{self.symbol} {shown}", self.composite
            forward = composite(partial(formula, **settings)) if formula else partial(self.forward, **settings)
            fixed = Primitive(self.name, symbol, forward, *rules, domain=self.domain)
            fixed.settings = settings
            _with_settings[key] = fixed
        return fixed

    def _elementwise(self, operands: tuple[Any, ...]) -> Any:
        """The array of what the primitive makes of each element; a float array where nothing records."""
        import numpy

        of_each = next((kind.of_each for kind in map(type, operands) if hasattr(kind, "of_each")), None)
        if of_each is not None and (written := of_each(self, operands)) is not None:
            return written
        result = numpy.frompyfunc(self._again, len(operands), 1)(*operands)
        recorded = any(isinstance(element, Operand) for element in numpy.ravel(result))
        return result if recorded else numpy.asarray(result, dtype=float)[()]

    def _again(self, *operands: Any) -> Any:
        return self(*operands)

    def receivers(self, node: Any) -> list[Any]:
        """Which of the operands of a variadic primitive's node gradients flow to."""
        # contributions raises for a primitive without a derivative
        rules = self.derivatives or (unchanged,) * len(node._x)
        pairs = zip(node._x, rules, strict=True)
        return [operand for operand, rule in pairs if rule and getattr(operand, "requires_grad", False)]

    def contributions(
        self, node: Any, gradient: float, useful: Container[Any] | None = None
    ) -> list[tuple[Any, float]]:
        """What a node with this gradient gives to each operand that gradients flow to, or to the useful ones."""
        if not self.derivatives:
            raise ValueError("this primitive has no derivative")
        inputs = node._inputs()
        return [
            (operand, rule(gradient, node._data, *inputs))
            for operand, rule in zip(node._operands(), self.derivatives, strict=True)
            if rule and operand.requires_grad and (useful is None or operand in useful)
        ]

    def check_differentiable_again(self) -> None:
        """Raise where only another kind of primitive could have gradients of gradients."""

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]] | None:
        """What a node gives to its operands as graphs; None where the rules say it."""
        return None

    def tangents(
        self, node: Any, found: Mapping[Any, Any], create_graph: bool, gradients: Callable[..., Any]
    ) -> list[Any] | None:
        """What the tangents of operands add to that of a node; None where the rules say it."""
        return None

    def backpropagates_at_once(self, node: Any, gradient: float) -> bool:
        """Run the whole backpropagation from a node, if this primitive can do that at once. Says whether it did."""
        return False

    def closure(self, node: Any) -> Callable[[], object]:
        """The function of no arguments that adds the contributions to the operands' gradients."""

        def backward() -> None:
            if node.is_leaf:
                return
            bring_up_to_date()
            with changing([operand for operand in node._operands() if operand.is_leaf]):
                for operand, contribution in self.contributions(node, node._grad):
                    operand._grad += contribution

        return backward

    def __repr__(self) -> str:
        return f"<primitive {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find, (self.name, self.settings)


def primitive(
    name: str,
    symbol: str,
    forward: Callable[..., float],
    *derivatives: Rule | None,
    domain: tuple[Interval, ...] = (),
    replace: bool = False,
    c: str | None = None,
) -> Primitive:
    """Make a primitive of your own and register it; see Primitive for what it takes.

    Args:
        name: unique, a Python identifier.
        symbol: what pictures, ``_op`` and error messages show.
        forward: floats in, a float out.
        derivatives: for each operand the rule that gives its gradient, or None where no gradient
            flows; none at all for a primitive that cannot be differentiated.
        domain: for each operand the open interval in which value and derivative are finite.
        replace: register it in place of one of that name, as a notebook cell run again does.
        c: the forward function in C, for files that are exported: an expression of the parameters of forward, which
            are doubles, or statements with a return. It may call functions of math.h.

    Raises:
        ValueError: if the name is taken, or is no identifier, or there is not one domain an operand.
        TypeError: if forward or a rule is not a function.

    Example:
        >>> cube = primitive("my_cube", "cube", lambda x: x * x * x, lambda g, out, x: g * 3 * x * x)
        >>> cube(2.0)
        8.0
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a primitive must be a str, not {type(name).__name__}: {name!r:.80}")
    if not name.isidentifier():
        raise ValueError(f"the name of a primitive must be a Python identifier, not {name!r}")
    if name in PRIMITIVES and not replace:
        raise ValueError(f"a primitive named {name!r} is registered already; replace=True takes its place")
    if not isinstance(symbol, str):
        raise TypeError(f"the symbol of primitive {name} must be a str, not {type(symbol).__name__}: {symbol!r:.80}")
    for function in (forward, *(rule for rule in derivatives if rule is not None)):
        if not callable(function):
            raise TypeError(f"primitive {name} needs functions, not {type(function).__name__}: {function!r:.80}")
    if not isinstance(domain, tuple) or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in domain):
        raise TypeError(f"the domain of primitive {name} must be a tuple of pairs (low, high), not {domain!r:.80}")
    if domain and len(domain) != len(derivatives):
        raise ValueError(f"primitive {name} has {len(derivatives)} operands, but {len(domain)} domains")
    if c is not None and not isinstance(c, str):
        raise TypeError(f"the C code of primitive {name} must be a str, not {type(c).__name__}: {c!r:.80}")
    rules = [rule and _checked(rule, name) for rule in derivatives]
    return define(name, forward, *rules, symbol=symbol, domain=domain, c=c)


def define(
    name: str,
    forward: Callable[..., float],
    *derivatives: Rule | None,
    symbol: str | None = None,
    domain: tuple[Interval, ...] = (),
    c: str | None = None,
) -> Primitive:
    """Make a primitive of the table and register it; its symbol is its name where none is given.

    Its tests stand for what ``primitive`` checks at each call.
    """
    shown = name if symbol is None else symbol
    PRIMITIVES[name] = made = Primitive(name, shown, forward, *derivatives, domain=domain, c=c)
    setattr(FLOATS, name, made.forward)
    return made


def _checked(rule: Rule, name: str) -> Rule:
    """The rule with a check: where it is handed a float, it must give one."""

    def checked(g: Any, *operands: Any, **settings: Any) -> Any:
        contribution = rule(g, *operands, **settings)
        return required_number(contribution, f"what a rule of {name} gives") if isinstance(g, float) else contribution

    return checked


def find(name: str, settings: dict[str, Any] | None = None) -> Primitive:
    """The primitive registered under that name, with settings; ValueError if there is none."""
    if name not in PRIMITIVES:
        raise ValueError(f"no primitive named {name!r} is registered; import the module that defines it")
    found = PRIMITIVES[name]
    return found.with_settings(**settings) if settings else found


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
