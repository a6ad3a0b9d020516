"""Strategies for Hypothesis: numbers, random programs, networks and data, to test gradients on.

    from hypothesis import given
    from micrograd.testing import gradcheck
    from micrograd.testing.strategies import expressions

    @given(expressions())
    def test_gradients(expression):
        assert gradcheck(expression, expression.inputs)

What fails is shrunk to the smallest program that fails, and printed as Python that can be pasted.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError("these strategies need Hypothesis: pip install hypothesis") from error

from micrograd._support.checks import check_type, required_number
from micrograd.engine.primitive import Primitive
from micrograd.nn import ACTIVATIONS, MLP
from micrograd.testing.programs import Expression, Program, grow, registered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.primitive_base import Interval

T = TypeVar("T")

__all__ = ["Expression", "Program", "datasets", "expressions", "network", "networks", "numbers", "operands"]

EXTREMES = [sign * x for x in (0.0, math.ulp(0.0), sys.float_info.min, 1.0, sys.float_info.max) for sign in (1.0, -1.0)]


@cache  # to build a strategy takes longer than to draw from it
def numbers(interval: Interval) -> st.SearchStrategy[float]:
    """Floats strictly inside an interval: ordinary ones, of any magnitude, and as near the ends as floats come.

    Args:
        interval: both ends, which may be infinite; ``primitive.domain`` has one for each operand.

    Raises:
        TypeError: if this is not a pair of numbers.
        ValueError: if no float lies inside.

    Example:
        >>> strategy = numbers((0.0, float("inf")))
    """
    if not isinstance(interval, tuple) or len(interval) != 2:
        raise TypeError(f"an interval must be a pair of numbers, not {interval!r:.80}")
    low, high = (required_number(end, "an end of an interval") for end in interval)
    if not math.nextafter(low, math.inf) < high:
        raise ValueError(f"there is no float between {low!r} and {high!r}")
    first, last = math.nextafter(low, math.inf), math.nextafter(high, -math.inf)
    ordinary = [
        st.floats(max(first, -reach), min(last, reach))
        for reach in (10.0, 800.0, sys.float_info.max)
        if max(first, -reach) <= min(last, reach)
    ]
    signs = [sign for sign in (1.0, -1.0) if low < sign < high]
    wide = [_powers_of_ten(0.0, sign, sys.float_info.min_10_exp, sys.float_info.max_10_exp) for sign in signs]
    near = [_powers_of_ten(edge, sign, -18, 0) for edge, sign in ((low, 1.0), (high, -1.0)) if math.isfinite(edge)]
    extremes = [x for x in [*EXTREMES, first, last] if low < x < high]
    return st.one_of(
        *ordinary,
        st.sampled_from(extremes),
        *(strategy.filter(lambda x: low < x < high) for strategy in (*near, *wide)),
    )


def _powers_of_ten(start: float, sign: float, least: int, greatest: int) -> st.SearchStrategy[float]:
    """Numbers on one side of a start, where every order of magnitude of the distance is as likely."""
    return st.floats(least, greatest).map(lambda exponent: start + sign * 10.0**exponent)


@cache
def operands(primitive: Primitive) -> st.SearchStrategy[tuple[float, ...]]:
    """Numbers for each operand of a primitive, anywhere in its domain: large, tiny and next to its edges.

    Example:
        >>> from micrograd.engine.primitives import log
        >>> strategy = operands(log)
    """
    return st.tuples(*map(numbers, _checked([primitive])[0].domain))


class _Drawn:
    """Choices by Hypothesis, which then knows how to shrink them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def number(self) -> float:
        return self._draw(st.floats(-3, 3).map(lambda x: round(x, 3)))

    def one_of(self, candidates: Sequence[T], fits: Callable[[T], bool]) -> T:
        return self._draw(st.sampled_from([candidate for candidate in candidates if fits(candidate)]))


def expressions(
    *,
    size: int | tuple[int, int] = (1, 12),
    inputs: int | tuple[int, int] = (1, 4),
    primitives: Sequence[Primitive] | None = None,
    smooth: bool = True,
) -> st.SearchStrategy[Program]:
    """Random programs with shared parts, each at a point away from kinks and from the edges of domains.

    Args:
        size: how many primitives a program has, or the least and the most; a few additions may join
            them, which gather what would be left over.
        inputs: how many inputs it has, or the least and the most.
        primitives: what it is made of, besides neg, add and mul; all that are registered if left out.
        smooth: leave out primitives that no gradient flows through, whose gradient is by design not the
            derivative.

    Returns:
        A strategy of programs: called with Values or floats, ``expression(*expression.inputs)``. One prints as
        ``mg.testing.Expression(lambda x, y: ..., [0.5, 2.0])``, which runs after ``import micrograd as mg``.
        Kinks are known of the library's own primitives only.

    Raises:
        TypeError: if size or inputs is neither a whole number nor two of them, or primitives has something else.
        ValueError: if one of them is below 1, or the least is above the most.

    Example:
        >>> small = expressions(size=(1, 3), inputs=2)
    """
    bounds = _bounds(inputs, "inputs"), _bounds(size, "size")
    chosen = None if primitives is None else _checked(primitives)

    @st.composite
    def programs(draw: st.DrawFn) -> Program:
        table = registered() if chosen is None else chosen
        return grow(_Drawn(draw), [p for p in table if any(p.derivatives) or not smooth], *bounds)

    return programs()


def network(nin: int, nouts: Sequence[int], activation: str, parameters: Sequence[float]) -> MLP:
    """An MLP with the parameters given; what networks draws prints as a call of this.

    Example:
        >>> network(1, [1], "tanh", [0.5, -1.0])([3.0]).data
        0.5
    """
    state = random.getstate()
    try:
        model = MLP(nin, nouts, activation)
    finally:
        random.setstate(state)  # the initial weights were drawn, and are not used
    if len(parameters) != len(model.parameters()):
        raise ValueError(f"this network has {len(model.parameters())} parameters, not {len(parameters)}")
    for parameter, number in zip(model.parameters(), parameters, strict=True):
        parameter.data = number
    return model


def networks(
    *, nin: int | tuple[int, int] = (1, 3), nouts: Sequence[int] | None = None, activations: Sequence[str] | None = None
) -> st.SearchStrategy[MLP]:
    """Small MLPs with parameters between -2 and 2.

    Args:
        nin: the number of inputs, or the least and the most.
        nouts: the number of neurons in each layer; one to three layers of one to four if left out.
        activations: names to choose from; all that nn knows if left out.

    Raises:
        TypeError: if nin is neither a whole number nor two of them.
        ValueError: if nin is below 1, nouts is empty, or nn knows no such activation.

    Example:
        >>> from hypothesis import find
        >>> find(networks(nin=1, nouts=[1]), lambda model: True)
        MLP of [Layer of [LinearNeuron(1)]]
    """
    bounds = _bounds(nin, "nin")
    names = list(ACTIVATIONS if activations is None else activations)
    for name in names:
        if name not in ACTIVATIONS:
            raise ValueError(f"no activation {name!r}; choose from {', '.join(ACTIVATIONS)}")
    if not names or (nouts is not None and not len(nouts)):
        raise ValueError("a network needs at least one layer, and an activation to choose")

    @st.composite
    def calls(draw: st.DrawFn) -> MLP:
        inputs = draw(st.integers(*bounds))
        outputs = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) if nouts is None else list(nouts)
        sizes = [inputs, *outputs]
        count = sum((sizes[layer] + 1) * sizes[layer + 1] for layer in range(len(outputs)))
        parameters = st.lists(_small_numbers(), min_size=count, max_size=count)
        return draw(st.builds(network, st.just(inputs), st.just(outputs), st.sampled_from(names), parameters))

    return calls()


def datasets(
    *, inputs: int = 2, outputs: int = 1, size: int | tuple[int, int] = (1, 8)
) -> st.SearchStrategy[list[tuple[list[float], list[float]]]]:
    """Examples to train on: pairs of inputs and targets, numbers between -2 and 2.

    Args:
        inputs: how many numbers an input has.
        outputs: how many numbers a target has.
        size: how many examples, or the least and the most.

    Example:
        >>> from hypothesis import find
        >>> find(datasets(inputs=2, outputs=1, size=1), lambda data: True)
        [([0.0, 0.0], [0.0])]
    """
    least, most = _bounds(size, "size")
    (nin, _), (nout, _) = _bounds(inputs, "inputs"), _bounds(outputs, "outputs")
    number = _small_numbers()
    example = st.tuples(st.lists(number, min_size=nin, max_size=nin), st.lists(number, min_size=nout, max_size=nout))
    return st.lists(example, min_size=least, max_size=most)


def _checked(primitives: Sequence[Primitive]) -> Sequence[Primitive]:
    """Primitives, after a look at what the caller gave."""
    check_type(isinstance(primitives, Iterable), "primitives must be a list of them", primitives)
    for primitive in primitives:
        check_type(isinstance(primitive, Primitive), "a primitive is needed", primitive)
    return primitives


def _small_numbers() -> st.SearchStrategy[float]:
    return st.floats(-2, 2).map(lambda x: round(x, 3))


def _bounds(count: int | tuple[int, int], name: str) -> tuple[int, int]:
    """The least and the most of what the caller asks for."""
    bounds = tuple(count) if isinstance(count, (tuple, list)) else (count, count)
    if len(bounds) != 2 or any(isinstance(bound, bool) or not isinstance(bound, int) for bound in bounds):
        raise TypeError(f"{name} must be a whole number or two of them, not {count!r:.80}")
    if not 1 <= bounds[0] <= bounds[1]:
        raise ValueError(f"{name} must be at least 1, the least not above the most, not {count!r:.80}")
    return bounds
