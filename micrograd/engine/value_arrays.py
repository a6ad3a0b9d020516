"""Arrays of Values: NumPy's object arrays, with the functions that NumPy cannot carry out on objects.

NumPy adds, multiplies and compares Values, and for ``np.exp(a)`` it calls ``exp()`` of each element. It has no rule for
a plain number between them, nor for ``np.rint``, ``np.isfinite`` or ``np.logaddexp``. A ValueArray is an ndarray that
is asked first (`NEP 13 <https://numpy.org/neps/nep-0013-ufunc-overrides.html>`_, NEP 18). What NumPy can do is left to
NumPy; the rest is in one table of functions of single elements, which compiled code uses too: so both give the same.
"""

from __future__ import annotations

import math
from sys import float_info
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from micrograd._support.checks import Operand, is_unknown
from micrograd.engine import further_primitives, linear_algebra, primitives, scipy_functions
from micrograd.engine.lost_gradients import array_compared_with_numbers
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable

LARGEST, _INTEGERS, _LOG_2 = float_info.max, 2.0**52, math.log(2.0)  # from 2 ** 52 on, every float is an integer

_EQUALITIES = (np.equal, np.not_equal)


class ValueArray(np.ndarray[Any, Any]):
    """An array of Values, as ``micrograd.array`` makes it."""

    __slots__ = ()
    __array_priority__ = 1.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function that works element by element gives."""
        tracer = tracer_on_top()
        if tracer is not None and any(type(x) is ValueArray for x in inputs):  # a function is compiled
            traced = [tracer.array(x.view(np.ndarray)) if type(x) is ValueArray else x for x in inputs]
            return getattr(ufunc, method)(*traced, **settings)
        if ufunc in _EQUALITIES and not all(isinstance(x, (Operand, ValueArray)) for x in inputs):
            array_compared_with_numbers(inputs)
        if settings and (out := settings.get("out")):
            settings["out"] = tuple(map(plain, out))
        result = computed(ufunc, method, [plain(x) for x in inputs], settings)
        if settings and out and len(out) == 1:
            return out[0]
        return arranged(result)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy gives."""
        return called(function, arguments, settings)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """The numbers rounded to so many decimals, as constants; see np.round."""
        scale = 10.0 ** abs(decimals)
        if not decimals:
            return np.rint(self, out=out)
        scaled = np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale
        return scaled if out is None else np.positive(scaled, out=out)


def plain(x: Any) -> Any:
    """A ValueArray as NumPy's own array of objects; all else as it is."""
    return x.view(np.ndarray) if isinstance(x, ValueArray) else x


def arranged(result: Any) -> Any:
    """An array of objects as a ValueArray; so in a list or tuple. All else stays as it is."""
    if type(result) is np.ndarray and result.dtype == object:
        return result.view(ValueArray)
    if type(result) in (list, tuple):
        return type(result)(map(arranged, result))
    if isinstance(result, tuple) and hasattr(result, "_fields"):  # such as NumPy's EighResult
        return type(result)(*map(arranged, result))
    return result


def computed(ufunc: np.ufunc, method: str, operands: list[Any], settings: dict[str, Any]) -> Any:
    """What a function of NumPy that works element by element makes of arrays of objects.

    Args:
        ufunc: the function.
        method: which method of it: "__call__", "reduce", "accumulate" and so on.
        operands: arrays that are no ValueArrays, and numbers.
        settings: the named arguments.

    Raises:
        TypeError: if there is no such function of Values.
    """
    function = FUNCTIONS.get(ufunc.__name__)
    if ufunc in _OF_INTS:  # NumPy takes the ints of Values
        refuse_function(ufunc.__name__)
    if function is None or ufunc.__name__ in METHODS:
        try:
            return getattr(ufunc, method)(*operands, **settings)
        except (TypeError, AttributeError) as error:  # an element has no such method
            if settings.get("dtype") is not None or not _is_lack(error, ufunc.__name__):
                raise
            if function is None:
                refuse_function(ufunc.__name__, error)
    with np.errstate(invalid="ignore"):  # NumPy warns where a function of Python compares NaN
        return getattr(function, method)(*operands, **settings)


def called(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What another function of NumPy makes of arrays of Values, such as np.where and np.concatenate."""
    instead = INSTEAD.get(function)
    if instead is not None:
        with np.errstate(invalid="ignore"):
            return instead(*arguments, **settings)
    try:
        result = np.ndarray.__array_function__(np.empty(0), function, (np.ndarray,), arguments, settings)
    except (TypeError, AttributeError) as error:
        if not _is_lack(error, function.__name__):
            raise
        refuse_function(function.__name__, error)
    return arranged(result)


def refuse_function(name: str, error: Exception | None = None) -> NoReturn:
    """Raise the error of a function that Values do not have."""
    instead = _WRITE.get(name, "write it with operators and functions of micrograd")
    raise TypeError(
        f"micrograd has no np.{name} of Values: {instead}; or take the numbers first, by micrograd.numbers(x), "
        "through which no gradient flows"
    ) from error


def _is_lack(error: Exception, name: str) -> bool:
    """Whether NumPy says by an error that it has no such function of objects."""
    text = str(error)
    return not text.startswith("micrograd") and (
        any(part in text for part in _LACKS) or (isinstance(error, AttributeError) and text.endswith(f"'{name}'"))
    )


_LACKS = (
    "loop of ufunc does not support argument",
    "not supported for the input types",
    "Cannot cast ufunc",
    "from dtype('O') to",
    "array type object is unsupported",
)

_OF_INTS = (np.gcd, np.lcm)

_WRITE = {
    "copysign": "write micrograd.where(y < 0, -abs(x), abs(x))",
    "heaviside": "write micrograd.where(x < 0, 0.0, 1.0)",
    "fmod": "write x % y, which has the sign of y",
    "signbit": "write x < 0",
    "divmod": "write x // y and x % y",
}


# What of single elements gives what, whether they are Values, symbols or plain numbers


def _not(holds: Any) -> Any:
    return holds.negated() if is_unknown(holds) else not holds


def _is_finite(x: Any) -> Any:
    return abs(x) <= LARGEST


def _is_nan(x: Any) -> Any:
    return _not(x <= math.inf)


def _is_infinite(x: Any) -> Any:
    return abs(x) >= math.inf


def _rounded(x: Any) -> Any:
    """The nearest integer as a float, the even one of two; no gradient flows through it."""
    x = primitives.detach(x)
    size = primitives.abs(x)
    whole = primitives.where(size < _INTEGERS, size + _INTEGERS - _INTEGERS, size)  # the addition rounds
    return primitives.where(x < 0, -whole, primitives.where(x > 0, whole, x))


def _truncated(x: Any) -> Any:
    """The integer next to x on the side of 0."""
    return primitives.where(x < 0, further_primitives.ceil(x), further_primitives.floor(x))


def _whole(rounded: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rounding of one element: an int of an int and of a Value, and a float of a float."""

    def function(x: Any) -> Any:
        if isinstance(x, int):
            return x
        whole = rounded(x)
        if is_unknown(x):
            return whole.only_finite().as_plain(int if is_value(x) else x.kind)
        return int(whole.data) if is_value(x) else whole

    return function


def _sign(x: Any) -> Any:
    """-1, 0 or 1, as an int of an int and of a Value; of NaN there is none."""
    if is_unknown(x):
        is_zero = x >= 0 if is_value(x) else x == 0  # of Values, == is identity
        sign = (x < 0).picks(-1, (x > 0).picks(1, is_zero.picks(0, math.nan))).only_finite()
        return sign.as_plain(int if is_value(x) else x.kind)
    if x != x or not x <= math.inf:
        raise ValueError(f"NaN has no sign: {x!r:.80}")
    sign = (x > 0) - (x < 0)
    return float(sign) if isinstance(x, float) else sign


def is_value(x: object) -> bool:
    """Whether it is a Value, or stands for one, and for no plain number."""
    return isinstance(x, Operand) and not isinstance(x, (float, int))


def _cube_root(x: Any) -> Any:
    return primitives.where(x < 0, -1.0, 1.0) * primitives.abs(x) ** (1 / 3)


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), without overflow."""
    first = x >= y
    larger, smaller = primitives.where(first, x, y), primitives.where(first, y, x)
    at_infinity = primitives.where(smaller <= larger, 0.0, smaller)  # of two infinities the difference is NaN
    gap = primitives.where(abs(larger) <= LARGEST, smaller - larger, at_infinity)
    return larger + primitives.softplus(gap)


def _log_2_of_sum(x: Any, y: Any) -> Any:
    return _log_of_sum(x * _LOG_2, y * _LOG_2) / _LOG_2


def _function(function: Callable[..., Any], count: int) -> Any:
    """A function of single elements as one of arrays."""
    return np.frompyfunc(function, count, 1)


class _OfNumbers:
    """A function of single elements whose results are plain numbers: of known ones NumPy's own array of such."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = _function(function, 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __call__(self, *operands: Any, **settings: Any) -> Any:
        result = self._function(*operands, **settings)
        if not isinstance(result, np.ndarray) or not _NUMBERS.issuperset(map(type, result.flat)):
            return result
        numbers = np.array(result.ravel().tolist())
        return numbers.reshape(result.shape) if numbers.dtype != object else result


_NUMBERS = {bool, int, float}


# By the names of NumPy's functions: those that Values have as methods, of which NumPy asks each element
_METHODS_OF_ONE = {
    **{name: getattr(primitives, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tan")},
    **{name: getattr(primitives, name) for name in ("sinh", "cosh", "tanh")},
    **{name: getattr(further_primitives, name) for name in ("exp2", "log2", "log10", "degrees", "radians")},
    "rad2deg": further_primitives.degrees,
    "deg2rad": further_primitives.radians,
    "arcsin": primitives.asin,
    "arccos": primitives.acos,
    "arctan": primitives.atan,
    "arcsinh": further_primitives.asinh,
    "arccosh": further_primitives.acosh,
    "arctanh": further_primitives.atanh,
}
_METHODS_OF_TWO = {"arctan2": further_primitives.atan2, "hypot": further_primitives.hypot}

FUNCTIONS: dict[str, Any] = {
    **{name: _function(primitive, 1) for name, primitive in _METHODS_OF_ONE.items()},
    **{name: _function(primitive, 2) for name, primitive in _METHODS_OF_TWO.items()},
    "fabs": _function(primitives.abs, 1),
    "cbrt": _function(_cube_root, 1),
    "rint": _function(_rounded, 1),
    "float_power": _function(primitives.pow, 2),
    "logaddexp": _function(_log_of_sum, 2),
    "logaddexp2": _function(_log_2_of_sum, 2),
    "isfinite": _OfNumbers(_is_finite),
    "isnan": _OfNumbers(_is_nan),
    "isinf": _OfNumbers(_is_infinite),
    "floor": _OfNumbers(_whole(further_primitives.floor)),
    "ceil": _OfNumbers(_whole(further_primitives.ceil)),
    "trunc": _OfNumbers(_whole(_truncated)),
    "sign": _OfNumbers(_sign),
    **{name: _function(function, count) for name, (function, count) in scipy_functions.OF_ARRAYS.items()},
}
METHODS = {*_METHODS_OF_ONE, *_METHODS_OF_TWO}


# What of whole arrays NumPy does by other means


def _is_close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    a, b = _as_values(a), _as_values(b)
    close = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b)
    close = close | ((a >= b) & (a <= b))
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def _all_close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    result = np.all(_is_close(a, b, rtol, atol, equal_nan))
    return bool(result) if isinstance(result, np.bool_) else result


def _as_values(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else arranged(np.array(x, dtype=object))


def _without_nan(function: Callable[..., Any], instead: float) -> Callable[..., Any]:
    """A reduction, with a number in the place of each NaN."""

    def reduction(a: Any, *arguments: Any, **settings: Any) -> Any:
        a = _as_values(a)
        return function(np.where(np.isnan(a), instead, a), *arguments, **settings)

    return reduction


def _mean_without_nan(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    a = _as_values(a)
    missing = np.isnan(a)
    count = np.sum(np.where(missing, 0.0, 1.0), axis=axis, keepdims=keepdims)
    return np.sum(np.where(missing, 0.0, a), axis=axis, keepdims=keepdims) / count


def _variance_without_nan(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    a = _as_values(a)
    missing = np.isnan(a)
    gaps = np.where(missing, 0.0, a - _mean_without_nan(a, axis, keepdims=True))
    count = np.sum(np.where(missing, 0.0, 1.0), axis=axis, keepdims=keepdims)
    return np.sum(gaps * gaps, axis=axis, keepdims=keepdims) / (count - ddof)


def _covariance(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None,
) -> Any:  # fmt: skip
    variables = [np.atleast_2d(_as_values(part)) for part in (m, y) if part is not None]
    if not rowvar:
        variables = [part if len(part) == 1 else part.T for part in variables]
    x = np.concatenate(variables)
    ddof = (0 if bias else 1) if ddof is None else ddof
    weights: Any = 1.0
    for given in (fweights, aweights):
        weights = weights if given is None else weights * np.asarray(given)
    if fweights is None and aweights is None:
        total = divisor = x.shape[1]
        divisor = total - ddof
    else:
        total = np.sum(weights)
        divisor = total - ddof * (1.0 if aweights is None else np.sum(weights * aweights) / total)
    gaps = x - np.sum(x * weights, axis=1, keepdims=True) / total
    return (gaps @ (gaps * weights).T / divisor).squeeze()


def _correlation(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    covariance = _covariance(x, y, rowvar)
    if not covariance.ndim:
        return covariance / covariance
    deviations = np.sqrt(np.diag(covariance))
    return covariance / deviations[:, None] / deviations


def _gradient(f: Any, *spacings: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = _as_values(f)
    axes = range(f.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    steps = list(spacings or [1.0]) * (1 if len(spacings) > 1 else len(axes))
    if len(steps) != len(axes):
        raise TypeError(f"np.gradient takes one spacing, or one for each of {len(axes)} axes, not {len(steps)}")
    found = [_slopes(f, each, step, edge_order) for each, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Any, axis: int, step: Any, edge_order: int) -> Any:
    """Central differences along an axis, and one-sided ones at the ends. The step is one gap, or all coordinates."""
    y = np.moveaxis(f, axis, 0)
    if len(y) <= edge_order:
        raise ValueError(f"np.gradient takes more than {edge_order} elements along an axis, not {len(y)}")
    if np.ndim(step) and len(step) != len(y):
        raise ValueError(f"np.gradient takes as many coordinates as elements: {len(y)}, not {len(step)}")
    gaps = np.diff(step) if np.ndim(step) else np.full(len(y) - 1, step)
    gaps = gaps.reshape(-1, *[1] * (y.ndim - 1))
    a, b = gaps[:-1], gaps[1:]
    if not np.ndim(step) or (gaps.dtype != object and (gaps == gaps[0]).all()):
        inner = (y[2:] - y[:-2]) / (2 * a)
    else:
        inner = -b / (a * (a + b)) * y[:-2] + (b - a) / (a * b) * y[1:-1] + a / (b * (a + b)) * y[2:]
    first, last = (_slope_of_end(y[::way], gaps[::way], edge_order) for way in (1, -1))
    return np.moveaxis(np.concatenate([first, inner, -last]), 0, axis)


def _slope_of_end(y: Any, gaps: Any, order: int) -> Any:
    a, b = gaps[:1], gaps[1:2]
    if order == 1:
        return (y[1:2] - y[:1]) / a
    return -(2 * a + b) / (a * (a + b)) * y[:1] + (a + b) / (a * b) * y[1:2] - a / (b * (a + b)) * y[2:3]


def _inserted(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arguments = arranged(np.asarray(arr).astype(object)), obj, values, axis  # in floats, Values would be floats
    return arranged(np.ndarray.__array_function__(np.empty(0), np.insert, (np.ndarray,), arguments, {}))


def _arranging(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments, **settings: arranged(function(*arguments, **settings))


INSTEAD: dict[Any, Callable[..., Any]] = {
    np.isclose: _is_close,
    np.allclose: _all_close,
    np.isposinf: lambda x: x >= math.inf,
    np.isneginf: lambda x: x <= -math.inf,
    np.nansum: _without_nan(np.sum, 0.0),
    np.nanprod: _without_nan(np.prod, 1.0),
    np.nancumsum: _without_nan(np.cumsum, 0.0),
    np.nancumprod: _without_nan(np.cumprod, 1.0),
    np.nanmax: _without_nan(np.max, -math.inf),
    np.nanmin: _without_nan(np.min, math.inf),
    np.nanmean: _mean_without_nan,
    np.nanvar: _variance_without_nan,
    np.nanstd: lambda *arguments, **settings: np.sqrt(_variance_without_nan(*arguments, **settings)),
    np.cov: _covariance,
    np.insert: _inserted,
    np.corrcoef: _correlation,
    np.gradient: _gradient,
    np.i0: FUNCTIONS["i0"],
    **{function: _arranging(instead) for function, instead in linear_algebra.OF_NUMPY.items()},
}
