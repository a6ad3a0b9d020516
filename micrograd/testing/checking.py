"""gradcheck: gradients against differences of the function itself, which share no code with them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd._support.checks import check_type, real_number, required_number
from micrograd.engine.commit import changing_gradients, commit, keeping_gradients
from micrograd.engine.higher_order import adjoints, contributions
from micrograd.engine.order import topological_order
from micrograd.engine.value import Value
from micrograd.testing.differences import Estimate, differentiate
from micrograd.transforms import gradient as gradient_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Function = Callable[..., Any]

_CANCELLED = 16 * 2.0**-52  # terms that cancel leave up to this, relative to them
_UNCLEAR = 0.01  # differences with fewer than two digits right say little
_UNRECORDED = (
    "f returns a plain number for Values, so nothing is recorded: is there float(x) in it, or math.sin for mg.sin?"
)


class Row(NamedTuple):
    """The result of gradcheck for one derivative: a line of its table.

    Args:
        name: by which input; by which two, as "0, 1", for a second derivative.
        input: the input's number.
        analytic: the derivative to be checked.
        numeric: the derivative by differences; at a kink, the middle between those of its two sides.
        error: their difference.
        allowed: the largest error allowed: the tolerance plus the error of the differences.
        verdict: "right" or "WRONG"; "kink" or "jump" where f has one too near for differences to stay clear
            of, and "unclear" where rounding hides the derivative, or f moves in coarse steps as in 16 bits, so
            that nothing speaks against it.
    """

    name: str
    input: float
    analytic: float
    numeric: float
    error: float
    allowed: float
    verdict: str


class Report(NamedTuple):
    """The result of gradcheck: true if no derivative is wrong, and a table when printed.

    Args:
        rows: one for each derivative.
    """

    rows: tuple[Row, ...]

    def __bool__(self) -> bool:
        return not any(row.verdict == "WRONG" for row in self.rows)

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0) + 4
        header = f"{'':>{width}}{'input':>24}{'analytic':>24}{'numeric':>24}{'error':>10}{'allowed':>10}  verdict"
        return "\n".join([header, *(_line(row, width) for row in self.rows)])

    def __repr__(self) -> str:
        return str(self)


class GradientError(AssertionError):
    """Differences contradict a gradient, or with strict do not confirm it; the message is a table of ``report``.

    Args:
        report: the result of gradcheck.
        hint: a possible cause, for a line below the table.
    """

    def __init__(self, report: Report, hint: str = "") -> None:
        unconfirmed = "finite differences do not confirm the gradient"
        said = unconfirmed if report else "the gradient and finite differences disagree"
        super().__init__("\n".join(filter(None, (f"{said}:", str(report), hint))))
        self.report, self.hint = report, hint

    def __reduce__(self) -> tuple[type[GradientError], tuple[Report, str]]:
        return GradientError, (self.report, self.hint)


def numerical_gradient(f: Function, inputs: Iterable[Any]) -> list[float]:
    """The gradient of f by finite differences, one number for each input.

    Args:
        f: a function of as many numbers as there are inputs; it is called with plain floats and
            returns a number or a Value.
        inputs: the point to differentiate at.

    Returns:
        The derivatives of f with respect to each input. If f is smooth and loses no digits to
        cancellation, about 12 of the 16 digits are right.

    Raises:
        TypeError: if f is not a function, an input is not a number, or f returns no number.
        ValueError: if f is not finite at the point and on both sides of it. If f raises ValueError or
            ArithmeticError a step away from the point, the step gets smaller.

    Example:
        >>> [round(slope, 9) for slope in numerical_gradient(lambda x, y: x * y + x, [2.0, -3.0])]
        [-2.0, 2.0]
    """
    point, output = _point(f, inputs)
    (estimates,) = _estimates(lambda *xs: [_output(f(*xs))], point, [output])
    return [estimate.slope for estimate in estimates]


def gradcheck(
    f: Function,
    inputs: Iterable[Any],
    order: int = 1,
    *,
    gradient: Function | None = None,
    hessian: Function | None = None,
    tolerance: float = 1e-7,
    strict: bool = False,
) -> Report:
    """Check a gradient against finite differences of the function.

    The differences choose their steps, are extrapolated, and come with an estimate of their error. So a right
    gradient passes even if the point is large, tiny or close to the end of a domain. One that is wrong by a
    millionth fails, unless rounding hides it. If f has a kink nearby, as relu has at 0, any slope between those of
    the two sides passes.

    Args:
        f: a function of as many numbers as there are inputs. Without ``gradient``, it is also called with
            Values, so write it with operators and functions of micrograd.
        inputs: the point to check at: numbers, or an array of them from any library.
        order: 2 to check the second derivatives as well, against differences of the first ones.
        gradient: what to check instead of backpropagation: a function of the same floats, from any library,
            that returns one number for each input, or one bare number.
        hessian: for order 2 with ``gradient``, the function that returns a row of second derivatives for
            each input, or one bare number.
        tolerance: the relative difference allowed, on top of the error of the differences themselves.
        strict: whether every derivative must be right. Otherwise derivatives also pass if differences
            cannot tell: at a kink or a jump of f, and where rounding hides them.

    Returns:
        A Report, which is true and prints as a table, so that you can ``assert gradcheck(...)``. gradcheck
        raises an error instead of returning a false one.

    Raises:
        GradientError: if a derivative is wrong, with a table of all of them; with strict, on every verdict
            but "right".
        TypeError: if f is not a function, an input is not a number, or f, gradient or hessian does not
            return numbers.
        ValueError: if f is not finite at the point and on both sides of it; for an order other than 1 and 2,
            or a gradient that does not have one number per input.

    Example:
        >>> import micrograd as mg
        >>> assert gradcheck(lambda x, y: mg.tanh(x * y + mg.exp(x)), [0.7, -0.4])
        >>> assert gradcheck(lambda x: x**3, [2.0], gradient=lambda x: 3 * x**2)
        >>> gradcheck(lambda x: x**3, [2.0], gradient=lambda x: 2 * x**2)
        Traceback (most recent call last):
        ...
        micrograd.testing.checking.GradientError: the gradient and finite differences disagree:
        ...
        >>> assert gradcheck(abs, [0.0], gradient=lambda x: 0.5)  # between the slopes of the two sides
        >>> gradcheck(abs, [0.0], gradient=lambda x: 0.5, strict=True)
        Traceback (most recent call last):
        ...
        micrograd.testing.checking.GradientError: finite differences do not confirm the gradient:
        ...
    """
    tolerance = _checked_settings(order, gradient, hessian, tolerance)
    point, output = _point(f, inputs)
    first = _given(gradient, "gradient") if gradient else _backpropagated(f)
    (numeric,) = _estimates(lambda *xs: [_output(f(*xs))], point, [output])
    analytic = first(*point)
    sizes = [0.0] * len(point) if gradient else _sizes_of_terms(f)(*point)
    rows = [
        _row(str(index), x, slope, size, estimate, tolerance)
        for index, (x, slope, size, estimate) in enumerate(zip(point, analytic, sizes, numeric, strict=True))
    ]
    if order == 2 and Report(tuple(rows)) and all(map(math.isfinite, analytic)):
        second = _rows_given(hessian) if hessian else _backpropagated_twice(f)
        differences = _estimates(first, point, analytic)
        for index, (slopes, row) in enumerate(zip(second(*point), differences, strict=True)):
            rows += [
                _row(f"{index}, {other}", x, slope, 0.0, estimate, tolerance)
                for other, (x, slope, estimate) in enumerate(zip(point, slopes, row, strict=True))
            ]
    report = Report(tuple(rows))
    if not report or (strict and any(row.verdict != "right" for row in rows)):
        unrecorded = not report and not gradient and not isinstance(f(*map(Value, point)), Value)
        raise GradientError(report, _UNRECORDED if unrecorded else "")
    return report


def _checked_settings(order: object, gradient: object, hessian: object, tolerance: object) -> float:
    """The tolerance, after checks of all arguments besides f and the inputs."""
    check_order(order)
    for name, function in (("gradient", gradient), ("hessian", hessian)):
        check_type(function is None or callable(function), f"{name} must be a function of the inputs", function)
    if hessian is not None and order == 1:
        raise ValueError("give order=2 to check a hessian")
    if order == 2 and (gradient is None) != (hessian is None):
        given, missing = ("gradient", "hessian") if gradient else ("hessian", "gradient")
        raise ValueError(f"order 2 with a {given} of your own needs a {missing} too")
    number = required_number(tolerance, "tolerance")
    if not 0 <= number < math.inf:
        raise ValueError(f"tolerance must be finite and not negative, not {number}")
    return number


def check_order(order: object) -> None:
    """Refuse what is neither the order of first derivatives nor that of second ones."""
    if order not in (1, 2) or isinstance(order, bool):
        raise ValueError(f"order must be 1 or 2, not {order!r:.80}")


def _point(f: Any, inputs: Any) -> tuple[list[float], float]:
    """The inputs as floats and what f gives there, after checks of both."""
    check_type(callable(f), "f must be a function", f)
    check_type(isinstance(inputs, Iterable), "inputs must be a sequence of numbers", inputs)
    point = [_scalar(number, "an input") for number in inputs]
    output = _output(f(*point))
    if not all(math.isfinite(number) for number in (*point, output)):
        raise ValueError(f"a derivative needs finite numbers: at {point} f gives {output}")
    return point, output


def _output(output: object) -> float:
    return _number(output, "what f returns")


def _number(thing: object, what: str) -> float:
    """The float of a number, a Value, or a scalar of another library."""
    return thing.data if isinstance(thing, Value) else _scalar(thing, what)


def _scalar(thing: object, what: str) -> float:
    """The float of a number, or of a scalar of another library."""
    if (number := real_number(thing)) is not None:
        return number
    if callable(item := getattr(thing, "item", None)) and getattr(thing, "shape", None) == ():
        return required_number(item(), what)  # a tensor of no dimensions, as PyTorch and JAX return
    return required_number(thing, what)


def _numbers(things: Any, count: int, what: str) -> list[float]:
    """As many numbers as there are inputs; a single one need not be in a list."""
    bare = real_number(things) is not None or isinstance(things, Value) or getattr(things, "shape", None) == ()
    are_numbers = bare or (isinstance(things, Iterable) and not isinstance(things, (str, bytes)))
    check_type(are_numbers, f"what {what} returns must be numbers", things)
    numbers = [_number(thing, f"what {what} returns") for thing in ([things] if bare else things)]
    if len(numbers) != count:
        raise ValueError(f"{what} returns {len(numbers)} numbers, but there are {count} inputs")
    return numbers


def _given(function: Function, what: str) -> Callable[..., list[float]]:
    """The caller's function with a check that it gives a number for each input."""
    return lambda *point: _numbers(function(*point), len(point), what)


def _rows_given(hessian: Function) -> Callable[..., list[list[float]]]:
    """The caller's function with a check that it gives a row for each input."""

    def rows(*point: float) -> list[list[float]]:
        found = hessian(*point)
        if len(point) == 1 and (real_number(found) is not None or getattr(found, "shape", None) == ()):
            return [_numbers(found, 1, "hessian")]
        check_type(isinstance(found, Iterable), "what hessian returns must be rows of numbers", found)
        rows = [_numbers(row, len(point), "a row of hessian") for row in found]
        if len(rows) != len(point):
            raise ValueError(f"hessian returns {len(rows)} rows, but there are {len(point)} inputs")
        return rows

    return rows


def _backpropagated(f: Function) -> Callable[..., list[float]]:
    """The gradient of f by backpropagation. Values that f uses besides its inputs keep the gradient they had."""

    def gradient(*point: float) -> list[float]:
        values = [Value(number) for number in point]
        output = f(*values)
        _output(output)
        if not isinstance(output, Value) or not output.requires_grad:
            return [0.0] * len(point)  # f does not depend on its inputs, or says so
        with changing_gradients:
            undo = keeping_gradients(topological_order(output))
            try:
                output.backward()
                return [value.grad for value in values]
            finally:
                commit(undo)

    return gradient


def _sizes_of_terms(f: Function) -> Callable[..., list[float]]:
    """For each input the sum of the sizes of the terms that backpropagation adds up: it rounds in proportion.

    What is left where they cancel is rounding, and f, whose own terms may cancel exactly, need not show it.
    """

    def sizes(*point: float) -> list[float]:
        values = [Value(number) for number in point]
        output = f(*values)
        if not isinstance(output, Value) or not output.requires_grad:
            return [0.0] * len(point)

        def sizes_of_contributions(*node: Any) -> list[tuple[Any, float]]:
            return [(operand, abs(contribution)) for operand, contribution in contributions(*node)]

        found = adjoints(output, 1.0, False, values, sizes_of_contributions)
        return [found.get(value, 0.0) for value in values]

    return sizes


def _backpropagated_twice(f: Function) -> Callable[..., list[list[float]]]:
    """The second derivatives of f by backpropagation through its gradient: a row for each input."""

    def hessian(*point: float) -> list[list[float]]:
        values = [Value(number) for number in point]
        output = f(*values)
        if not isinstance(output, Value):
            return [[0.0] * len(point) for _ in point]
        return [gradient_of(slope, values) for slope in gradient_of(output, values, create_graph=True)]

    return hessian


def _estimates(f: Callable[..., list[float]], point: list[float], middle: Sequence[float]) -> list[list[Estimate]]:
    """The derivatives of each output of f: a row for each, with an estimate for each input."""
    rows: list[list[Estimate]] = [[] for _ in middle]
    for index, x in enumerate(point):
        along = _along(f, point, index, len(middle))
        for output, (row, number) in enumerate(zip(rows, middle, strict=True)):
            if (estimate := differentiate(along(output), x, number)) is None:
                raise ValueError(
                    f"too few differences at input {index}, {x!r}: f is not finite on both sides of it, "
                    "or only so close by that rounding hides the derivative"
                )
            cancelled = _CANCELLED * abs(number) / max(1.0, abs(x))
            row.append(estimate._replace(error=estimate.error + cancelled))
    return rows


def _along(
    f: Callable[..., list[float]], point: list[float], index: int, count: int
) -> Callable[[int], Callable[[float], float]]:
    """For each output of f, a function of one input alone, the others staying; NaN outside the domain of f."""
    known: dict[float, list[float]] = {}

    def moved(x: float) -> list[float]:
        if x not in known:
            try:
                known[x] = f(*point[:index], x, *point[index + 1 :])
            except (ArithmeticError, ValueError, TypeError):  # of a type: a complex number, as (-1.0) ** 0.5 is
                known[x] = [math.nan] * count
        return known[x]

    return lambda output: lambda x: moved(x)[output]


def _row(name: str, x: float, analytic: float, terms: float, estimate: Estimate, tolerance: float) -> Row:
    """The comparison of a derivative, a sum of terms of so large a size in all, with its estimate."""
    size = max(abs(analytic), abs(estimate.slope))
    error = abs(analytic - estimate.slope)
    agreed = tolerance * size if math.isfinite(size) else 0.0
    if math.isfinite(terms):
        estimate = estimate._replace(error=estimate.error + _CANCELLED * terms)
    allowed = agreed + estimate.error
    if not (math.isfinite(analytic) and error <= allowed):
        verdict = "WRONG"
    elif estimate.corner:
        verdict = estimate.corner
    else:
        hidden = estimate.error > _UNCLEAR * size if error > agreed else estimate.error >= size > 0
        verdict = "unclear" if hidden else "right"
    return Row(name, x, analytic, estimate.slope, error, allowed, verdict)


def _line(row: Row, width: int) -> str:
    """A row of the table; the error and what is allowed get as many digits as it takes to tell them apart."""
    digits = 1
    while row.error > row.allowed and float(f"{row.error:.{digits}e}") <= float(f"{row.allowed:.{digits}e}"):
        digits += 1
    numbers = f"{row.input!r:>23} {row.analytic!r:>23} {row.numeric!r:>23}"
    return f"{row.name:>{width}} {numbers} {row.error:>9.{digits}e} {row.allowed:>9.{digits}e}  {row.verdict}"
