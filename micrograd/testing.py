"""Check gradients against finite differences: numbers that share no code with the derivative rules.

A two-sided difference ``(f(x + h) - f(x - h)) / 2h`` is off by a multiple of h**2 where h is large, and
by the rounding of f divided by h where h is small. No single h suits every function and every point.
So h runs from the scale of the point down to its last digits, in steps of a quarter, and Richardson
extrapolation takes out the error in h**2, then the one in h**4, and so on. How far neighbouring
results lie apart says how exact each of them is; the most exact one wins (C. J. F. Ridders, "Accurate
computation of F'(x) and F'(x) F''(x)", Advances in Engineering Software 4, 1982).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.backpropagation import topological_order
from micrograd.checks import required_number
from micrograd.engine import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ROUNDING = 2.0**-52  # of a float, relative
_LAST_STEP = 2.0**-46  # relative to the scale of the point, or to 1 where that is less
_LAST_STEP_OF_SMALL = 2.0**-20  # relative to a point smaller than 1
_ORDERS = 6  # of h to take out; more would only amplify the rounding
_SAFETY = 4.0  # how much farther off than its estimated error a derivative may be


class GradientError(AssertionError):
    """A gradient is not what finite differences say; the message is a table of all inputs."""


class _Estimate(NamedTuple):
    """A derivative by differences, and how far off it may be."""

    slope: float
    error: float

    @property
    def relative_error(self) -> float:
        """How many of the digits are right: 1e-6 says six."""
        if not self.slope:
            return math.inf if self.error else 0.0
        return self.error / abs(self.slope)

    def is_better_than(self, other: _Estimate) -> bool:
        """Whether it has more digits right, or, where neither has one, is less far off."""
        if min(self.relative_error, other.relative_error) < 0.1:
            return self.relative_error < other.relative_error
        return self.error < other.error


def numerical_gradient(f: Callable[..., Any], inputs: Iterable[Any]) -> list[float]:
    """The gradient of f by finite differences, one number for each input.

    Args:
        f: a function of as many numbers as there are inputs; it is called with plain floats and
            returns a number or a Value.
        inputs: the point to differentiate at.

    Returns:
        The derivatives of f with respect to each input. Where f is smooth and loses no digits to
        cancellation, about 12 of the 16 are right.

    Raises:
        TypeError: if f is not a function, an input is not a number, or f returns no number.
        ValueError: if f is not finite at the point, or not on both sides of it. Where f raises
            ValueError or ArithmeticError a step away from the point, a smaller step is taken.

    Example:
        >>> [round(slope, 9) for slope in numerical_gradient(lambda x, y: x * y + x, [2.0, -3.0])]
        [-2.0, 2.0]
    """
    return [estimate.slope for estimate in _estimates(f, _point(f, inputs))]


def gradcheck(f: Callable[..., Any], inputs: Iterable[Any], *, tolerance: float = 1e-7) -> bool:
    """Check that backpropagation through f gives the gradient that finite differences give.

    Args:
        f: a function of as many numbers as there are inputs, written with operators and the functions of
            micrograd. It is called with Values for the gradient and with floats for the differences.
        inputs: the point to check at, away from kinks.
        tolerance: the relative difference allowed, on top of the error of the differences themselves.

    Returns:
        True, so that ``assert gradcheck(...)`` reads well. It never returns False: it raises.

    Raises:
        GradientError: if a derivative is wrong, with a table of all of them.
        TypeError: if f is not a function, an input is not a number, or f returns neither a number nor
            a Value.
        ValueError: if f is not finite at the point, or not on both sides of it.

    Example:
        >>> import micrograd as mg
        >>> gradcheck(lambda x, y: mg.tanh(x * y + mg.exp(x)), [0.7, -0.4])
        True
    """
    point = _point(f, inputs)
    numeric = _estimates(f, point)
    analytic = _backpropagated(f, point)
    allowed = [
        tolerance * max(abs(gradient), abs(estimate.slope)) + estimate.error
        for gradient, estimate in zip(analytic, numeric, strict=True)
    ]
    right = [
        math.isfinite(gradient) and abs(gradient - estimate.slope) <= limit
        for gradient, estimate, limit in zip(analytic, numeric, allowed, strict=True)
    ]
    if not all(right):
        raise GradientError(_table(point, analytic, numeric, allowed, right))
    return True


def _point(f: object, inputs: object) -> list[float]:
    """The inputs as floats, after a look at what the caller gave."""
    if not callable(f):
        raise TypeError(f"f must be a function, not {type(f).__name__}: {f!r:.80}")
    if not isinstance(inputs, Iterable):
        raise TypeError(f"inputs must be a sequence of numbers, not {type(inputs).__name__}: {inputs!r:.80}")
    point = [required_number(number, "an input") for number in inputs]
    output = _output(f(*point))
    if not all(math.isfinite(number) for number in (*point, output)):
        raise ValueError(f"a derivative needs finite numbers: at {point} f gives {output}")
    return point


def _output(output: object) -> float:
    return output.data if isinstance(output, Value) else required_number(output, "what f returns")


def _backpropagated(f: Callable[..., Any], point: list[float]) -> list[float]:
    """The gradient by backpropagation. Values that f uses besides its inputs keep the gradient they had."""
    values = [Value(number) for number in point]
    output = f(*values)
    _output(output)
    if not isinstance(output, Value) or not output.requires_grad:
        return [0.0] * len(point)  # f does not depend on its inputs, or says so
    before = [(node, node.grad) for node in topological_order(output)]
    try:
        output.backward()
        return [value.grad for value in values]
    finally:
        for node, gradient in before:
            node.grad = gradient


def _estimates(f: Callable[..., Any], point: list[float]) -> list[_Estimate]:
    """The derivative with respect to each input."""
    estimates = []
    for index, x in enumerate(point):
        if (estimate := _derivative(_along(f, point, index), x)) is None:
            raise ValueError(
                f"too few differences at input {index}, {x!r}: f is not finite on both sides of it, "
                "or only so close by that rounding hides the derivative"
            )
        estimates.append(estimate)
    return estimates


def _along(f: Callable[..., Any], point: list[float], index: int) -> Callable[[float], float]:
    """A function of one input alone, the others staying where they are; NaN outside the domain of f."""

    def moved(x: float) -> float:
        try:
            return _output(f(*point[:index], x, *point[index + 1 :]))
        except (ArithmeticError, ValueError):
            return math.nan
        except TypeError:  # f took the point itself; here it met a complex number, as (-1.0) ** 0.5 is
            return math.nan

    return moved


def _derivative(f: Callable[[float], float], x: float) -> _Estimate | None:
    """The derivative of f at x; None where f has no two neighbouring steps on both sides of x."""
    best = None
    row: list[float] = []
    for step in _steps(x):
        above, below = f(x + step), f(x - step)
        width = (x + step) - (x - step)  # after rounding, not quite two steps
        slope = (above - below) / width if width else math.nan
        if not math.isfinite(slope):
            row = []
            continue
        before, row = row, _extrapolated(slope, row)
        rounding = _ROUNDING * max(abs(above), abs(below)) / width
        for estimate in _judged(row, before, rounding):
            if best is None or estimate.is_better_than(best):
                best = estimate
    return best


def _steps(x: float) -> Iterator[float]:
    """Steps from the scale of x down. Powers of two: added to x, they leave its last digits alone."""
    scale = max(1.0, abs(x))
    last = min(scale * _LAST_STEP, abs(x) * _LAST_STEP_OF_SMALL or math.inf)
    step = math.ldexp(1.0, math.frexp(scale)[1] - 1)
    while step >= last and step:
        yield step
        step /= 4


def _extrapolated(slope: float, before: list[float]) -> list[float]:
    """The slope of one step, then with h**2 taken out, then h**4 ..., given that list for the step before."""
    row = [slope]
    for order, coarser in enumerate(before[:_ORDERS], start=1):
        row.append(row[-1] + (row[-1] - coarser) / (16.0**order - 1))
    return row


def _judged(row: list[float], before: list[float], rounding: float) -> Iterator[_Estimate]:
    """Each extrapolation with its error: how far it is from what one order or one step less gave."""
    for order in range(1, len(row)):
        neighbours = [row[order - 1], *before[order - 1 : order + 1]]
        spread = max(abs(row[order] - neighbour) for neighbour in neighbours)
        yield _Estimate(row[order], _SAFETY * (spread + rounding))


def _table(
    point: list[float], analytic: list[float], numeric: list[_Estimate], allowed: list[float], right: list[bool]
) -> str:
    """What each side found, a line for each input."""
    header = f"{'':>5}{'input':>24}{'analytic':>24}{'numeric':>24}{'error':>10}{'allowed':>10}  verdict"
    lines = [
        f"{index:>5}{x!r:>24}{gradient!r:>24}{estimate.slope!r:>24}{abs(gradient - estimate.slope):>10.1e}"
        f"{limit:>10.1e}  {'right' if is_right else 'WRONG'}"
        for index, (x, gradient, estimate, limit, is_right) in enumerate(
            zip(point, analytic, numeric, allowed, right, strict=True)
        )
    ]
    return "\n".join(["backpropagation and finite differences disagree:", header, *lines])
