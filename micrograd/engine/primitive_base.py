"""What a primitive can do beside its call and its rules: parameters, arrays, and nodes of more than two operands.

Subclasses override what is here: an operation whose derivative is a closure, a call of a compiled function, a function
of whole arrays.
"""

from __future__ import annotations

from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from micrograd._support.checks import Operand, check_settings
from micrograd.engine.stored import bring_up_to_date, changing

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    Rule: TypeAlias = Callable[..., Any]
    Interval: TypeAlias = tuple[float, float]
    Self = TypeVar("Self")  # what a method is called on

_with_settings: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


class PrimitiveBase:
    """The rarer methods of a Primitive."""

    __slots__ = ()

    name: str
    symbol: str
    forward: Callable[..., float]
    composite: Callable[..., Any] | None
    derivatives: tuple[Rule | None, ...]
    domain: tuple[Interval, ...]
    settings: dict[str, Any]

    def with_settings(self, **settings: Any) -> Any:
        """The primitive with its settings fixed: the same one as long as it is in use, for the same settings."""
        check_settings(self.name, settings)
        shown = ", ".join(f"{name}={value!r}" for name, value in sorted(settings.items()))
        key = (self, shown, *((name, type(value), value) for name, value in sorted(settings.items())))
        try:
            fixed = _with_settings.get(key)
        except TypeError as error:
            raise TypeError(f"the static parameters of {self.name} must be hashable: {error}") from None
        if fixed is None:
            rules = [rule and partial(rule, **settings) for rule in self.derivatives]
            forward: Any = partial(self.composite or self.forward, **settings)
            if self.composite:
                forward = MethodType(forward, self.forward.__self__)  # type: ignore[attr-defined]  # a composite has it
            kind: Any = type(self)
            fixed = kind(self.name, f"{self.symbol} {shown}", forward, *rules, domain=self.domain)
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
        itself: Any = self
        return itself(*operands)

    def receivers(self, node: Any) -> list[Any]:
        """Which of the operands of a variadic primitive's node gradients flow to."""
        # contributions raises for a primitive without a derivative
        pairs = zip(node._x, self.derivatives or (True,) * len(node._x), strict=True)
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


def passed_on(given: Iterable[tuple[Any, Any]], floor: int) -> list[Any]:
    """Add what a node gives to the gradients of its operands; those of them whose gradients are complete now."""
    complete = []
    for operand, contribution in given:
        operand._grad += contribution
        operand._uses -= 1
        if operand._uses == floor:
            complete.append(operand)
    return complete
