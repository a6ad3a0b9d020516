"""Hypothesis strategies: numbers in a primitive's domain, and random programs over the primitives."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from micrograd.registry import CONSTANT, LEAF, PRIMITIVES, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.registry import Interval

# Every primitive that importing micrograd registers. The two without operands stand for a number in the graph.
TABLE = [primitive for primitive in PRIMITIVES.values() if primitive not in (LEAF, CONSTANT)]

EXTREMES = [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, -(2.0**-1022), 1.0, -1.0, 1.7976931348623157e308, -1e308]


@cache  # a strategy takes longer to build than to draw from
def numbers(interval: Interval) -> st.SearchStrategy[float]:
    """Floats strictly inside: ordinary ones, ones of any magnitude, and ones as near the edges as floats come."""
    low, high = interval
    magnitudes = st.builds(
        lambda sign, exponent: sign * 10.0**exponent, st.sampled_from([1.0, -1.0]), st.floats(-307, 308)
    )
    near = [
        st.builds(
            lambda edge, exponent, inward=inward: edge + inward * 10.0**exponent, st.just(edge), st.floats(-18, 0)
        )
        for edge, inward in [(low, 1.0), (high, -1.0)]
        if math.isfinite(edge)
    ]
    last = [math.nextafter(low, math.inf), math.nextafter(high, -math.inf)]
    drawn = st.one_of(st.floats(-10, 10), st.floats(-800, 800), magnitudes, st.sampled_from(EXTREMES + last), *near)
    return drawn.filter(lambda x: low < x < high)


@cache
def operands(primitive: Primitive) -> st.SearchStrategy[tuple[float, ...]]:
    """Numbers for each operand of a primitive, in its domain."""
    return st.tuples(*map(numbers, primitive.domain))


class Program(NamedTuple):
    """A random expression graph: numbers to start from, then one primitive after another.

    An operand is an index: of a leaf, or past the leaves of the result of an earlier primitive.
    """

    leaves: list[float]
    steps: list[tuple[Primitive, tuple[int, ...]]]

    def run(self, leaves: Sequence[Any], apply: Callable[..., Any] = lambda primitive, *operands: primitive(*operands)):
        """All results in order, leaves first, on whatever the leaves are and with whatever applies a primitive."""
        results = list(leaves)
        for primitive, indices in self.steps:
            results.append(apply(primitive, *(results[index] for index in indices)))
        return results

    def __call__(self, *leaves: Any) -> Any:
        """The last result."""
        return self.run(leaves)[-1]


# A difference or a derivative in higher precision sees the same branch as the float where a kink is this far.
CLEAR_OF_KINKS = 0.05
KINKS: dict[str, Callable[..., float]] = {
    "relu": lambda x: x,
    "leaky_relu": lambda x, slope: x,
    "elu": lambda x, alpha: x,
    "abs": lambda x: x,
    "maximum": lambda x, y: x - y,
    "minimum": lambda x, y: x - y,
    "where": lambda condition, x, y: condition,
    "is_zero": lambda x: x,
}
MODERATE = 30.0  # results and their derivatives stay below, so that a chain of them does not drown in rounding


def _fits(primitive: Primitive, inputs: Sequence[float]) -> bool:
    """Whether a primitive is smooth and of moderate size and slope at these numbers."""
    for (low, high), x in zip(primitive.domain, inputs, strict=True):
        if not low + 0.01 < x < high - 0.01:
            return False
    if primitive.name in KINKS and abs(KINKS[primitive.name](*inputs)) < CLEAR_OF_KINKS:
        return False
    try:
        output = primitive.forward(*inputs)
        slopes = [rule(1.0, output, *inputs) for rule in primitive.derivatives if rule]
    except (ArithmeticError, ValueError):
        return False
    return all(abs(number) < MODERATE for number in (output, *slopes))


@st.composite
def programs(draw: st.DrawFn, smooth: bool = True) -> Program:
    """Programs of up to 12 primitives with shared operands, away from the edges of domains and from kinks.

    The last primitives add up every result that nothing else uses, so all of the graph counts.

    Args:
        draw: what Hypothesis draws with.
        smooth: leave out primitives whose gradient is by design not what differences give.
    """
    leaves = draw(st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=1, max_size=4))
    table = [primitive for primitive in TABLE if not smooth or any(primitive.derivatives)]
    results, steps = list(leaves), []
    for _ in range(draw(st.integers(1, 12))):
        chosen = draw(st.lists(st.integers(0, len(results) - 1), min_size=3, max_size=3))
        fitting = [p for p in table if _fits(p, [results[index] for index in chosen[: len(p.domain)]])]
        primitive = draw(st.sampled_from(fitting))  # neg, add or mul of moderate numbers always fits
        indices = tuple(chosen[: len(primitive.domain)])
        steps.append((primitive, indices))
        results.append(primitive.forward(*(results[index] for index in indices)))
    add = PRIMITIVES["add"]
    used = {index for _, indices in steps for index in indices}
    loose = [index for index in range(len(results)) if index not in used]
    last = loose.pop()
    for index in loose:
        steps.append((add, (last, index)))
        last = len(leaves) + len(steps) - 1
    return Program(leaves, steps)
