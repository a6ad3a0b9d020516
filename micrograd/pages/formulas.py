"""The derivative rules of primitives.py, and its composites, as formulas that a page can show and compute.

A rule is written with operators and primitives, so it works on whatever it is handed. Here it is handed
Quantities, which write down what is done with them:

    lambda g, out, x, y: -g * out / y    ->    ["div", ["mul", ["neg", "g"], "out"], "1"]

A list is a primitive and its operands, a number is itself, ``"g"`` and ``"out"`` are what they are called
in the rule, and ``"0"``, ``"1"``, ... the operands. A composite is handed Quantities in the same way. So there is one
list of derivatives and one of forward functions, in Python, and what the page computes after an edit follows from them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd._support.checks import Operand
from micrograd.engine import further_primitives, primitives
from micrograd.engine.further_primitives import TABLE
from micrograd.engine.operations import Operations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from micrograd.engine.primitive import Primitive

Formula: TypeAlias = "str | float | list[Any]"


class Quantity(Operand):
    """A quantity in a rule: what is done with it becomes a formula.

    Example:
        >>> x = Quantity("0")
        >>> (2 * primitives.cos(x)).formula
        ['mul', 2.0, ['cos', '0']]
    """

    __slots__ = ("formula",)

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    @staticmethod
    def _apply(primitive: Primitive, *operands: Any) -> Quantity:
        if in_library(primitive):
            return Quantity([primitive.name, *map(_formula, operands)])
        if primitive.composite:
            return Quantity(_formula(primitive.composite(_QUANTITIES, *operands)))
        raise TypeError(f"{primitive.name} is no primitive of the library")

    @staticmethod
    def _operator(primitive: Primitive) -> tuple[Callable[..., Quantity], Callable[..., Quantity]]:
        """The operator of two operands, and its reflection."""
        return (
            lambda self, other: Quantity._apply(primitive, self, other),
            lambda self, other: Quantity._apply(primitive, other, self),
        )

    def __neg__(self) -> Quantity:
        return Quantity._apply(primitives.neg, self)

    def __lt__(self, other: Any) -> Quantity:
        return Quantity(["<", self.formula, _formula(other)])

    def __le__(self, other: Any) -> Quantity:
        return Quantity(["<=", self.formula, _formula(other)])

    def __gt__(self, other: Any) -> Quantity:
        return Quantity([">", self.formula, _formula(other)])

    def __ge__(self, other: Any) -> Quantity:
        return Quantity([">=", self.formula, _formula(other)])

    def __bool__(self) -> bool:
        raise TypeError("a rule cannot branch on a number that is not known yet: use where")

    __add__, __radd__ = _operator(primitives.add)
    __sub__, __rsub__ = _operator(primitives.sub)
    __mul__, __rmul__ = _operator(primitives.mul)
    __truediv__, __rtruediv__ = _operator(primitives.div)
    __pow__, __rpow__ = _operator(primitives.pow)


_QUANTITIES = Operations(lambda primitive: primitive)  # a primitive applied to Quantities gives a Quantity


def _formula(operand: Any) -> Formula:
    if isinstance(operand, Quantity):
        return operand.formula
    if not math.isfinite(number := float(operand)):
        raise ValueError("a formula holds finite numbers")
    return number


def in_library(primitive: Primitive) -> bool:
    """Whether this is an entry of the table, so that its name says what it computes.

    Example:
        >>> from micrograd.engine.primitive import Primitive
        >>> in_library(primitives.exp), in_library(Primitive("exp", "exp", lambda x: 0.0))
        (True, False)
    """
    return TABLE.get(primitive.name) is primitive


def formulas(primitive: Primitive) -> list[Formula | None]:
    """The rule of each operand as a formula; None where no gradient flows, or where a rule is no formula.

    Example:
        >>> formulas(primitives.mul), formulas(primitives.detach)
        ([['mul', 'g', '1'], ['mul', 'g', '0']], [None])
    """
    operands = [Quantity(str(position)) for position in range(len(primitive.derivatives))]
    return [_written(rule, Quantity("g"), Quantity("out"), *operands) for rule in primitive.derivatives]


# The rules of the table keep their digits; these are the same rules as books have them. A page shows them, and computes
# with those of the table.
FOR_READING: dict[str, tuple[Callable[..., Any] | None, ...]] = {
    "tanh": (lambda g, out, x: g * (1 - out**2),),
    "sigmoid": (lambda g, out, x: g * (out * (1 - out)),),
    "silu": (lambda g, out, x: g * (primitives.sigmoid(x) + out * (1 - primitives.sigmoid(x))),),
    "gelu": (lambda g, out, x: g * (further_primitives.normal_cdf(x) + x * further_primitives.normal_pdf(x)),),
    "erf": (lambda g, out, x: g * (2 / math.sqrt(math.pi) * primitives.exp(-(x**2))),),
    "erfc": (lambda g, out, x: -g * (2 / math.sqrt(math.pi) * primitives.exp(-(x**2))),),
    "pow": (None, lambda g, out, x, y: g * (out * primitives.log(x))),
}


def formulas_for_reading(primitive: Primitive) -> list[Formula | None]:
    """The rules of a primitive of the library as books have them; none for one whose rules are so already.

    Example:
        >>> formulas_for_reading(primitives.tanh), formulas_for_reading(primitives.exp)
        ([['mul', 'g', ['sub', 1.0, ['pow', 'out', 2.0]]]], [])
    """
    rules = FOR_READING.get(primitive.name, ()) if in_library(primitive) else ()
    operands = [Quantity(str(position)) for position in range(len(rules))]
    return [_written(rule, Quantity("g"), Quantity("out"), *operands) for rule in rules]


def forward_formula(primitive: Primitive) -> Formula | None:
    """The forward function as a formula, where it is a composite of primitives of the library.

    Example:
        >>> forward_formula(further_primitives.gelu), forward_formula(primitives.exp)
        (['mul', ['maximum', '0', -50.0], ['normal_cdf', '0']], None)
    """
    operands = [Quantity(str(position)) for position in range(len(primitive.derivatives))]
    return _written(primitive.composite, _QUANTITIES, *operands)


def composites(used: Iterable[Formula | None]) -> dict[str, Formula | None]:
    """The forward functions that are formulas over others: those whose names are in formulas, and in theirs.

    Example:
        >>> composites([["gelu", "0"]]).keys()
        dict_keys(['gelu', 'normal_cdf'])
    """
    found: dict[str, Formula | None] = {}
    left = [name for formula in used for name in _names(formula)]
    while left:
        if (name := left.pop(0)) not in found and TABLE[name].composite:
            found[name] = forward_formula(TABLE[name])
            left += _names(found[name])
    return found


def _names(formula: Formula | None) -> list[str]:
    """The names of the primitives in a formula."""
    if not isinstance(formula, list):
        return []
    name, *operands = formula
    return [name] * (name in TABLE) + [found for operand in operands for found in _names(operand)]


def _written(function: Callable[..., Any] | None, *operands: Any) -> Formula | None:
    if function is None:
        return None
    try:
        return _formula(function(*operands))
    except Exception:  # a user's own function may do anything to a Quantity: then there is no formula
        return None
