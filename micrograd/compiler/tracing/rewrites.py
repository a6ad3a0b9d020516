"""Operations that a tape writes down as others: small powers as products, division by a power of two as a product."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import real_number
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.symbols import IntSymbol, is_plain
from micrograd.engine import primitives
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.engine.primitive import Primitive


def bound_of(compare: Callable[..., bool], x: Any, number: Any) -> float | None:
    """The float that x is compared with in the place of a plain number; None for what is no number.

    Python compares exactly where eager does not round first: a Value with an int, a plain number with a Fraction too.
    Of a number between two floats, x is less than it if x is less than the next float above, which is infinity where
    the number is too large for a float.
    """
    exactly = type(number) is int or is_plain(x)
    if is_plain(x) and promotion.is_rounded(x.kind) and type(number) in (int, float):
        number = promotion.like(x.kind, number)
    try:
        nearest = real_number(number)
    except OverflowError:
        nearest, exactly = math.inf if number > 0 else -math.inf, True
    if nearest is None or not exactly or nearest == number:
        return nearest
    if compare is operator.eq:
        return math.nan  # no float is equal to it
    upwards = compare in (operator.lt, operator.ge)
    return nearest if (nearest > number) == upwards else math.nextafter(nearest, math.inf if upwards else -math.inf)


def _power(tape: Any, x: Any, y: Any) -> Any:
    """A power with a small constant exponent, without pow, where that gives the same for small integers."""
    if isinstance(y, Value) or not isinstance(x, Value):
        return None
    if y == 1:
        return x
    if isinstance(x, IntSymbol) and isinstance(y, int) and y > 3:  # by products, each of which is exact
        return (x ** (y // 2)) ** 2 * (x if y % 2 else 1)
    if y == -1:
        return 1.0 / x
    if y == 0.5:
        return tape.apply(primitives.sqrt, x)
    if y not in (2, 3):
        return None
    product: Any = x * x if y == 2 else x * x * x
    tape.checked[product._position] = None  # eager may round it otherwise, which questions ask
    return product


def _quotient(tape: Any, x: Any, y: Any) -> Any:
    """A quotient with a power of two for its divisor, as a product, which is rounded alike."""
    if isinstance(y, Value) or not isinstance(x, Value):
        return None
    return x * (1.0 / y) if 1e-300 < abs(y) < 1e300 and abs(math.frexp(y)[0]) == 0.5 else None


def _lower_power(tape: Any, x: Any, y: Any, k: Any) -> Any:
    """What stands in the derivative of a power with a constant exponent, as a power, which may do without pow."""
    if isinstance(y, Value) or isinstance(k, Value) or y == k - 1 or (y - k) + k != y:
        return None
    return tape.apply(primitives.pow, x, y - k)


REWRITES: dict[Primitive, Callable[..., Any]] = {
    primitives.pow: _power,
    primitives.lower_power: _lower_power,
    primitives.div: _quotient,
    primitives.identity: lambda tape, x: x,
}
