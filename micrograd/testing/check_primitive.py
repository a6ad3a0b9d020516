"""check_primitive: everything that a primitive must do to be one, in one call."""

from __future__ import annotations

import math
import pickle
import random
import re
from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

from micrograd._support.checks import check_type, required_number
from micrograd.engine.primitive import Primitive, find
from micrograd.engine.value import Value
from micrograd.testing.checking import GradientError, check_order, gradcheck

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Point = tuple[float, ...]

_ORDINARY = 3.0  # every primitive is tried at points up to so far from 0
_POINTS = 10
_NEAR_AN_EDGE = [10.0**-exponent for exponent in (1, 3, 6, 9)]
_FAR = [30.0, 1e3]
_TOLERANCE = 1e-6


class PrimitiveError(AssertionError):
    """A primitive fails requirements; the message lists which, and at which operands."""


def check_primitive(primitive: Primitive, points: Iterable[Iterable[float]] | None = None, *, order: int = 2) -> bool:
    """Check everything that a primitive must do, at many points of its domain.

    It must be found by its name. forward must give finite floats inside the domain, and the same ones again. Each
    rule must be the derivative, proportional to the incoming gradient. Backpropagation through Values must agree
    with the rules, also if some operands are plain numbers; an operand without a rule gets no gradient. The rules
    must have right derivatives, a graph with it must survive pickling, and it must work on arrays, if NumPy is
    installed. Kinks are no failure.

    Args:
        primitive: with its static parameters, if it has any: ``huber.with_settings(delta=1.0)``.
        points: operands to check in addition to those that its domain suggests.
        order: 1 for a primitive whose rules cannot be differentiated again.

    Returns:
        True, so that you can ``assert check_primitive(...)``. It raises an error instead of returning False.

    Raises:
        PrimitiveError: with a list of the failed checks.
        TypeError: if this is not a primitive, or a point does not have one number per operand.
        ValueError: if the primitive has no rules, or for an order other than 1 and 2.

    Example:
        >>> import micrograd as mg
        >>> cube = mg.primitive("third_power", "³", lambda x: x**3, lambda g, out, x: g * 3 * x * x)
        >>> check_primitive(cube)
        True
    """
    check_type(isinstance(primitive, Primitive), "check_primitive takes a primitive", primitive)
    if not primitive.derivatives:
        raise ValueError(f"{primitive.name} has no rules, so there is no derivative to check")
    check_order(order)
    ordinary = [*_given(primitive, points or ()), *_ordinary(primitive)]
    failures = list(_failures(primitive, ordinary, [*ordinary, *_extreme(primitive)], order))
    if failures:
        raise PrimitiveError(f"{primitive.name} is not as a primitive must be:\n" + "\n".join(failures))
    return True


def _given(primitive: Primitive, points: Iterable[Iterable[float]]) -> list[Point]:
    """The points of the caller's, as tuples of floats."""
    check_type(isinstance(points, Iterable), "points must be a list of points", points)
    found = []
    for point in points:
        check_type(isinstance(point, Iterable), "a point must have a number for each operand", point)
        found.append(tuple(required_number(number, "a number of a point") for number in point))
        if len(found[-1]) != len(primitive.derivatives):
            raise TypeError(
                f"{primitive.name} takes {len(primitive.derivatives)} operands, not {len(found[-1])}: {point}"
            )
    return found


def _ordinary(primitive: Primitive) -> list[Point]:
    """Points of moderate size well inside the domain, the same in every run."""
    source = random.Random("ordinary")

    def number(low: float, high: float) -> float:
        middle = min(max(0.0, low + _ORDINARY), high - _ORDINARY) if high - low > 2 * _ORDINARY else (low + high) / 2
        reach = min(_ORDINARY, (high - low) / 2)
        return middle + 0.98 * reach * source.uniform(-1, 1)

    return [tuple(number(*interval) for interval in primitive.domain) for _ in range(_POINTS)]


def _extreme(primitive: Primitive) -> list[Point]:
    """Points next to the edges of the domain, far out, and at 0."""
    choices = []
    for low, high in primitive.domain:
        near = [low + distance for distance in _NEAR_AN_EDGE] + [high - distance for distance in _NEAR_AN_EDGE]
        far = [0.0, 1.0, *_FAR, *(-number for number in _FAR)]
        choices.append([number for number in dict.fromkeys(near + far) if low < number < high])
    points = list(product(*choices))
    return random.Random("extreme").sample(points, min(len(points), _POINTS))


def _failures(primitive: Primitive, ordinary: list[Point], points: list[Point], order: int) -> Iterator[str]:
    """A line for each requirement that is not met, with the first point where it is not."""
    yield from _first(_is_found, primitive, [()])
    broken = list(_first(_gives_floats, primitive, points))
    yield from broken
    if broken:
        return  # the other requirements would fail for the same reason
    usable = [point for point in points if _output(primitive, point) is not None]
    wrong = list(_first(_has_right_rules, primitive, usable))
    yield from wrong
    for requirement in (_is_proportional, _backpropagates, _takes_plain_numbers):
        yield from _first(requirement, primitive, usable)
    usual = [point for point in ordinary if point in usable][:_POINTS]
    yield from _first(_can_be_pickled, primitive, usual)
    yield from _first(_works_on_arrays, primitive, usual)
    if order == 2 and not wrong:
        yield from _first(_has_right_second_derivatives, primitive, usual)


def _first(requirement: Callable[[Primitive, Point], str], primitive: Primitive, points: Iterable[Point]) -> list[str]:
    """What a requirement says at the first point where it is not met, as a line of the message."""
    for point in points:
        try:
            said = requirement(primitive, point)
        except Exception as error:  # whatever the primitive's own functions raise is a finding
            said = f"raises {type(error).__name__}: {error}"
        if said:
            what = re.sub("^_", "", requirement.__name__).replace("_", " ")
            return [f"- not so: {what}{f', at {point}' if point else ''}: {said}"]
    return []


def _output(primitive: Primitive, point: Point) -> float | None:
    """The output of forward; None where it overflows."""
    try:
        output = primitive(*point)
    except OverflowError:
        return None
    return output if math.isfinite(output) else None


def _slopes(primitive: Primitive, point: Point, gradient: float = 1.0) -> list[float]:
    """The gradients that the rules give, 0 where there is no rule."""
    output = primitive(*point)
    return [float(rule(gradient, output, *point)) if rule else 0.0 for rule in primitive.derivatives]


def _leaves(primitive: Primitive, point: Point, constant: int | None = None) -> tuple[Value, list[Any]]:
    """The primitive applied to Values, and these; one operand may be a plain number."""
    leaves = [number if index == constant else Value(number) for index, number in enumerate(point)]
    result = primitive(*leaves)
    if isinstance(result, Value) and result.requires_grad:
        result.backward()
    return result, leaves


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _is_found(primitive: Primitive, _: Point) -> str:
    """By its name, in the registry."""
    if find(primitive.name, primitive.settings or None) is not primitive:
        return "another primitive is registered under its name"
    return ""


def _gives_floats(primitive: Primitive, point: Point) -> str:
    """Forward, inside the domain."""
    try:
        output, again = primitive.forward(*point), primitive.forward(*point)
    except OverflowError:
        return ""
    if isinstance(output, (str, bytes)) or not hasattr(output, "__float__"):
        return f"forward gives {output!r:.80}"
    if not _same(float(output), float(again)):
        return f"forward gives {output} and then {again}"
    return f"forward gives {output}" if math.isnan(output) else ""


def _has_right_rules(primitive: Primitive, point: Point) -> str:
    """The derivative, by finite differences."""
    positions, merged = _differentiated(primitive, point)

    def gradient(*numbers: float) -> list[float]:
        slopes = _slopes(primitive, tuple(merged(numbers)))
        return [slopes[position] for position in positions]

    try:
        gradcheck(
            lambda *numbers: primitive(*merged(numbers)),
            [point[position] for position in positions],
            gradient=gradient,
            tolerance=_TOLERANCE,
        )
    except GradientError as error:
        return str(error)
    except ValueError as error:
        if "too few differences" not in str(error):
            raise  # so close to an edge that f is not finite on both sides
    return ""


def _is_proportional(primitive: Primitive, point: Point) -> str:
    """Each rule, to the gradient of the output."""
    for index, (once, twice) in enumerate(zip(_slopes(primitive, point), _slopes(primitive, point, -2.0), strict=True)):
        if not math.isclose(twice, -2 * once, rel_tol=1e-9, abs_tol=1e-300) and math.isfinite(once):
            return f"rule {index} gives {once} for a gradient of 1, and {twice} for one of -2"
    return ""


def _backpropagates(primitive: Primitive, point: Point) -> str:
    """Through Values, what the rules say."""
    result, leaves = _leaves(primitive, point)
    if not _same(result.data, primitive(*point)):
        return f"Values give {result.data}, floats {primitive(*point)}"
    for index, (leaf, slope) in enumerate(zip(leaves, _slopes(primitive, point), strict=True)):
        if not _same(leaf.grad, slope):
            return f"operand {index} gets {leaf.grad}, and its rule gives {slope}"
    return ""


def _takes_plain_numbers(primitive: Primitive, point: Point) -> str:
    """Among its operands, which changes no other gradient."""
    _, values = _leaves(primitive, point)
    for constant in range(len(point)) if len(point) > 1 else ():
        _, leaves = _leaves(primitive, point, constant)
        for index, (leaf, value) in enumerate(zip(leaves, values, strict=True)):
            if index != constant and not _same(leaf.grad, value.grad):
                return f"operand {index} gets {leaf.grad} beside a plain number, {value.grad} beside a Value"
    return ""


def _can_be_pickled(primitive: Primitive, point: Point) -> str:
    """A graph with it, which then gives the same gradients."""
    result, leaves = _leaves(primitive, point)
    copy = pickle.loads(pickle.dumps(result))
    if not result.requires_grad:
        return "" if _same(copy.data, result.data) else f"{copy.data} after pickling, {result.data} before"
    if copy._primitive is not primitive:
        return f"after pickling it is {copy._primitive!r}"
    before = [operand.grad for operand in copy._operands()]
    copy.backward()
    doubled = [operand.grad for operand in copy._operands()]
    expected = [2 * leaf.grad for leaf in leaves]
    return "" if doubled == expected else f"gradients {doubled} after pickling (from {before}), expected {expected}"


def _works_on_arrays(primitive: Primitive, point: Point) -> str:
    """Element by element."""
    try:
        import numpy
    except ImportError:
        return ""
    found = primitive(*(numpy.array([number, number]) for number in point))
    return "" if all(_same(element, primitive(*point)) for element in found) else f"an array gives {found}"


def _has_right_second_derivatives(primitive: Primitive, point: Point) -> str:
    """Rules that can be differentiated again."""
    positions, merged = _differentiated(primitive, point)
    inputs = [point[position] for position in positions]
    try:
        gradcheck(lambda *numbers: primitive(*merged(numbers)), inputs, order=2, tolerance=_TOLERANCE)
    except GradientError as error:
        return str(error)
    return ""


def _differentiated(primitive: Primitive, point: Point) -> tuple[list[int], Callable[[Sequence[Any]], list[Any]]]:
    """Which operands have a rule, and what puts other numbers in their places."""
    positions = [index for index, rule in enumerate(primitive.derivatives) if rule]

    def merged(numbers: Sequence[Any]) -> list[Any]:
        given = dict(zip(positions, numbers, strict=True))
        return [given.get(index, number) for index, number in enumerate(point)]

    return positions, merged
