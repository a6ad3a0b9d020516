"""The functions of NumPy for arrays with Values: one table, for eager and for compiled code.

What NumPy does by operators and methods of the elements, it does with Values too. The rest is here:

    FUNCTIONS   by the name of a function that works element by element: what it makes of single elements
    INSTEAD     of another function: what takes its place

A rule has operators and functions of micrograd only, so it works on Values, on symbols and on plain numbers. To add a
function, write its rule, and enter it in one of the two.
"""

from __future__ import annotations

import math
import operator
from functools import partial
from operator import attrgetter
from sys import float_info
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from micrograd._support.checks import Operand, is_unknown, is_value, is_whole
from micrograd.engine import further_primitives, linear_algebra, primitives, signals
from micrograd.engine.choices import note_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LARGEST, _INTEGERS, _LOG_2 = float_info.max, 2.0**52, math.log(2.0)  # from 2 ** 52 on, every float is an integer


def refuse_function(name: str, error: Exception | None = None) -> NoReturn:
    """Raise the error of a function that Values do not have."""
    instead = _WRITE.get(name.rpartition(".")[2], "write it with operators and functions of micrograd")
    raise TypeError(
        f"{_REFUSAL}{name} of Values: {instead}; or take the numbers first, by micrograd.numbers(x), "
        "through which no gradient flows"
    ) from error


def path_in_numpy(function: Any) -> str:
    """What a function of NumPy is called after ``np.``, such as ``linalg.eig``."""
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


_REFUSAL = "micrograd has no np."

OF_INTS = (np.gcd, np.lcm)

_WRITE = {
    **dict.fromkeys(("copyto", "put", "putmask", "position"), "put them into mg.array(x), which keeps gradients"),
    "nanmean": "leave out= out",
    "quantile": "give q as numbers, and leave out=, weights= and other methods than 'linear' out",
    **dict.fromkeys(("nanquantile", "nanpercentile"), "leave what is NaN out, and write np.quantile"),
    "linspace": "leave retstep=, dtype= and axis= out",
    "eig": "write np.linalg.eigh, if the matrix is symmetric",
    "eigvals": "write np.linalg.eigvalsh, if the matrix is symmetric",
    "hfft": "write np.fft.irfft of the conjugate",
    "ihfft": "write the conjugate of np.fft.rfft",
    "roots": "write one step of Newton's from the roots r of the numbers, r - np.polyval(p, r) / np.polyval(slopes, r)",
}


# What of single elements gives what, whether they are Values, symbols or plain numbers


def truth(x: Any) -> Any:
    """What bool(x) is."""
    if isinstance(x, bool):
        return x
    if not isinstance(x, Operand):
        return bool(x)
    is_zero = primitives.is_zero(x)
    return is_zero.negated() if is_unknown(is_zero) else not is_zero.data


def _not(x: Any) -> Any:
    holds = truth(x)
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
    below = further_primitives.floor(size)
    odd, part = below - 2.0 * further_primitives.floor(0.5 * below), size - below
    nearest = primitives.where(part < 0.5, below, primitives.where(part > 0.5, below + 1.0, below + odd))
    whole = primitives.where(size < _INTEGERS, nearest, size)
    return primitives.where(x < 0, -whole, primitives.where(x > 0, whole, x))


def _truncated(x: Any) -> Any:
    """The integer next to x on the side of 0."""
    return primitives.where(x < 0, further_primitives.ceil(x), further_primitives.floor(x))


def _whole(rounded: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A rounding of one element: an int of an int and of a Value, and a float of a float."""

    def function(x: Any) -> Any:
        if is_whole(x):
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


def picked(condition: Any, x: Any, y: Any) -> Any:
    """What ``x if condition else y`` is. Of a Value and a number it is a Value, and of a float and an int a float.

    So the type of a result, and whether it requires a gradient, does not depend on the numbers.
    """
    holds: Any = condition if type(condition) is bool else truth(condition)
    if x is y:
        return x
    if is_unknown(holds):
        return holds.picks(x, y)
    chosen, other = (x, y) if holds else (y, x)
    if not is_value(other):
        return float(chosen) if isinstance(other, float) and isinstance(chosen, (int, np.integer)) else chosen
    if not is_value(chosen):
        chosen = chosen if is_unknown(chosen) else float(chosen)
    elif chosen.requires_grad >= other.requires_grad:
        return chosen
    return other._picked(chosen, other)


def _extreme(primitive: Any, compare: Any, x: Any, y: Any) -> Any:
    """One of two Values or ints: the first if it is not the other one that is larger. Of others NaN is the result."""
    if is_value(x):
        if type(y) in (float, int):  # most often
            return x._applied_with(primitive, float(y))
        if is_value(y):
            return picked(compare(x, y), x, y)
        return x._applied_with(primitive, y if is_unknown(y) else float(y))
    if is_value(y):
        return type(y)._applied_with(x if is_unknown(x) else float(x), primitive, y)
    if not (is_unknown(x) or is_unknown(y)):
        return picked(compare(x, y) or not x <= math.inf, x, y)
    if is_whole(x) and is_whole(y):
        return compare(x, y).picks(x, y)
    return (x if is_unknown(x) else y).one_of(primitive, x, y)


_larger_of = partial(_extreme, primitives.maximum, operator.ge)
_smaller_of = partial(_extreme, primitives.minimum, operator.le)


def _clipped(x: Any, low: Any, high: Any) -> Any:
    return _smaller_of(_larger_of(x, low), high)


def _cube_root(x: Any) -> Any:
    return primitives.where(x < 0, -1.0, 1.0) * primitives.abs(x) ** (1 / 3)


def _is_negative(x: Any) -> Any:
    """Whether a number has a minus; so has -0.0."""
    return further_primitives.atan2(x, -1.0) < 0


def _with_sign(x: Any, y: Any) -> Any:
    size = primitives.abs(x)
    return primitives.where(_is_negative(y), -size, size)


def _step(x: Any, at_zero: Any) -> Any:
    return primitives.where(x < 0, 0.0, primitives.where(x > 0, 1.0, primitives.where(x >= 0, at_zero, x)))


def _fmod(x: Any, y: Any) -> Any:
    """The remainder that has the sign of x."""
    size = further_primitives.remainder(primitives.abs(x), primitives.abs(y))
    return primitives.where(_is_negative(x), -size, size)


def _log_of_sum(x: Any, y: Any) -> Any:
    """log(exp(x) + exp(y)), without overflow."""
    first = x >= y
    larger, smaller = primitives.where(first, x, y), primitives.where(first, y, x)
    at_infinity = primitives.where(smaller <= larger, 0.0, smaller)  # of two infinities the difference is NaN
    gap = primitives.where(abs(larger) <= LARGEST, smaller - larger, at_infinity)
    return larger + primitives.softplus(gap)


def _log_2_of_sum(x: Any, y: Any) -> Any:
    return _log_of_sum(x * _LOG_2, y * _LOG_2) / _LOG_2


def _function(function: Callable[..., Any], count: int, identity: Any = None, results: int = 1) -> Any:
    """A function of single elements as one of arrays; identity None: it has none, and goes in any order of axes."""
    made = np.frompyfunc(function, count, results, identity=identity)
    RULES[made] = function
    return made


RULES: dict[Any, Callable[..., Any]] = {}  # of each function of arrays, that of single elements


class _OfNumbers:
    """A function of single elements whose results are plain numbers: of known ones NumPy's own array of such."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = _function(function, 1)
        RULES[self] = function

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
    **{name: getattr(primitives, name) for name in ("exp", "expm1", "log", "log1p", "sqrt", "sin", "cos")},
    **{name: getattr(primitives, name) for name in ("sinh", "cosh", "tanh")},
    **{name: getattr(further_primitives, name) for name in ("exp2", "log2", "log10", "tan", "degrees", "radians")},
    "rad2deg": further_primitives.degrees,
    "deg2rad": further_primitives.radians,
    "arcsin": further_primitives.asin,
    "arccos": further_primitives.acos,
    "arctan": further_primitives.atan,
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
    "signbit": _OfNumbers(_is_negative),
    "copysign": _function(_with_sign, 2),
    "heaviside": _function(_step, 2),
    "fmod": _function(_fmod, 2),
    "divmod": _function(lambda x, y: (x // y, x % y), 2, results=2),
    "modf": _function(lambda x: (_fmod(x, 1.0), _truncated(x)), 1, results=2),
    # SciPy's
    "gammaln": _function(further_primitives.lgamma, 1),
    "expit": _function(primitives.sigmoid, 1),
    "logit": _function(further_primitives.logit, 1),
    "ndtr": _function(further_primitives.normal_cdf, 1),
    "log_ndtr": _function(further_primitives.log_ndtr, 1),
    "ndtri": _function(further_primitives.ndtri, 1),
    "erf": _function(further_primitives.erf, 1),
    "erfc": _function(further_primitives.erfc, 1),
    "erfinv": _function(further_primitives.erfinv, 1),
    "i0": _function(further_primitives.i0, 1),
    "i1": _function(further_primitives.i1, 1),
    "psi": _function(further_primitives.digamma, 1),
    "betaln": _function(further_primitives.betaln, 2),
    "xlogy": _function(further_primitives.xlogy, 2),
    "rel_entr": _function(further_primitives.rel_entr, 2),
    "entr": _function(lambda x: 0.0 - further_primitives.xlogy(x, x), 1),
    "maximum": _function(_larger_of, 2),
    "fmax": _function(_larger_of, 2),
    "minimum": _function(_smaller_of, 2),
    "fmin": _function(_smaller_of, 2),
    "clip": _function(_clipped, 3),
    "greater": _function(operator.gt, 2),
    "greater_equal": _function(operator.ge, 2),
    "less": _function(operator.lt, 2),
    "less_equal": _function(operator.le, 2),
    "equal": _function(operator.eq, 2),
    "not_equal": _function(operator.ne, 2),
    "bitwise_and": _function(operator.and_, 2),
    "bitwise_or": _function(operator.or_, 2),
    "bitwise_xor": _function(operator.xor, 2),
    "logical_and": _function(lambda x, y: picked(x, y, x), 2, True),
    "logical_or": _function(lambda x, y: picked(x, x, y), 2, False),
    "logical_xor": _function(operator.xor, 2, False),
    "logical_not": _function(_not, 1),
}
# What NumPy does by itself where it can: by the methods of elements, by their comparisons, and by picking some
METHODS = {*_METHODS_OF_ONE, *_METHODS_OF_TWO}
CHOICES = {"maximum", "fmax", "minimum", "fmin", "clip", "logical_and", "logical_or"}
TRUTHS = {
    *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "logical_xor", "logical_not"),
}


# What of whole arrays NumPy does by other means


def by_numpy(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any] | None = None) -> Any:
    """What a function of NumPy gives when it does not ask the arrays among its arguments."""
    return _ASKED_BY_NOBODY.__array_function__(function, _PLAIN, arguments, settings or {})


_ASKED_BY_NOBODY, _PLAIN = np.empty(0), (np.ndarray,)


def is_uniform(arrays: Iterable[Any]) -> bool:
    """Whether all elements are alike in what picked() asks, so that it does not matter which is picked."""
    traits: set[Any] = set()
    for array in arrays:
        if not isinstance(array, np.ndarray):
            traits.add(_trait(array))
        elif array.dtype != object:
            traits.add("float" if array.dtype.kind == "f" else "int")
        else:
            elements = array.ravel().tolist()
            is_of_one = len(set(map(type, elements))) == 1 and is_value(elements[0])
            traits.update(map(attrgetter("requires_grad"), elements) if is_of_one else map(_trait, elements))
    return len(traits) <= 1


def _trait(x: Any) -> Any:
    return x.requires_grad if is_value(x) else "int" if is_whole(x) else "float"


def is_of_bools(x: Any) -> bool:
    """Whether it is a bool, or an array that has dtype bool outside of a compiled function."""
    if not isinstance(x, np.ndarray):
        return isinstance(x, (bool, np.bool_))
    if x.dtype != object:
        return x.dtype == bool
    return x.size > 0 and isinstance(x.item(0), bool) and all(isinstance(element, bool) for element in x.flat)


def has_unknown(x: Any) -> bool:
    """Whether an array, or what is no array, has symbols in it."""
    return any(map(is_unknown, x.flat)) if isinstance(x, np.ndarray) else is_unknown(x)


def _where(condition: Any, *branches: Any) -> Any:
    if len(branches) != 2:
        return by_numpy(np.where, (condition, *branches))
    note_choice()
    known, x, y = map(_as_objects, (condition, *branches))
    if not has_unknown(known) and is_uniform((x, y)):
        return by_numpy(np.where, (condition, *branches))
    return np.asarray(_PICKED(known, x, y), dtype=object)


def _select(conditions: Any, choices: Any, default: Any = 0) -> Any:
    if len(conditions) != len(choices) or not all(map(is_of_bools, conditions)):
        return by_numpy(np.select, (conditions, choices, default))  # which says what is wrong
    result = default
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        result = _where(condition, choice, result)
    return result


def _as_objects(x: Any) -> Any:
    return np.asarray(x) if isinstance(x, np.ndarray) else np.array(x, dtype=object)


def _is_close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    a, b = as_values(a), as_values(b)
    close = (np.abs(a - b) <= atol + rtol * np.abs(b)) & np.isfinite(b)
    close = close | ((a >= b) & (a <= b))
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def _all_close(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    result = np.all(_is_close(a, b, rtol, atol, equal_nan))
    return bool(result) if isinstance(result, np.bool_) else result


def as_values(x: Any) -> Any:
    """An array as it is; a Value, or nested lists with Values in them, as an array that NumPy asks first."""
    if isinstance(x, np.ndarray):
        return x
    array = np.array(x, dtype=object)
    found = next((element for element in array.flat if isinstance(element, Operand)), None)
    return np.asarray(x) if found is None else found._array(array)


def _without_nan(function: Callable[..., Any], instead: float) -> Callable[..., Any]:
    """A reduction, with a number in the place of each NaN."""

    def reduction(a: Any, *arguments: Any, **settings: Any) -> Any:
        a = as_values(a)
        return function(np.where(np.isnan(a), instead, a), *arguments, **settings)

    return reduction


def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """The weighted mean. NumPy's own asks whether the sum of the weights is 0; a division by it raises the same."""
    if weights is None:
        return by_numpy(np.average, (a, axis, None, returned), {"keepdims": keepdims})
    a, weights = as_values(a), as_values(weights)
    if weights.shape != a.shape:
        axes = np.lib.array_utils.normalize_axis_tuple(range(a.ndim) if axis is None else axis, a.ndim)
        if weights.shape != tuple(a.shape[each] for each in axes):
            return by_numpy(np.average, (a, axis, weights, returned), {"keepdims": keepdims})  # it says what is wrong
        weights = np.transpose(weights, np.argsort(axes))
        weights = weights.reshape([length if each in axes else 1 for each, length in enumerate(a.shape)])
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    mean = np.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (mean, np.broadcast_to(total, np.shape(mean))[()]) if returned else mean


def _mean_without_nan(a: Any, axis: Any = None, *, out: Any = None, keepdims: bool = False) -> Any:
    if out is not None:
        refuse_function("nanmean")
    a = as_values(a)
    missing = np.isnan(a)
    count = np.sum(np.where(missing, 0.0, 1.0), axis=axis, keepdims=keepdims)
    return np.sum(np.where(missing, 0.0, a), axis=axis, keepdims=keepdims) / count


def _variance_without_nan(a: Any, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Any:
    a = as_values(a)
    if not a.size:
        return np.nanvar(np.zeros(a.shape), axis=axis, ddof=ddof, keepdims=keepdims)
    missing = np.isnan(a)
    gaps = np.where(missing, 0.0, a - _mean_without_nan(a, axis, keepdims=True))
    count = np.sum(np.where(missing, 0.0, 1.0), axis=axis, keepdims=keepdims)
    return np.sum(gaps * gaps, axis=axis, keepdims=keepdims) / (count - ddof)


def _covariance(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None,
) -> Any:  # fmt: skip
    variables = [np.atleast_2d(as_values(part)) for part in (m, y) if part is not None]
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
    f = as_values(f)
    axes = range(f.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    steps = list(spacings or [1.0])
    if len(steps) == 1 and not np.ndim(steps[0]):
        steps *= len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"np.gradient takes one spacing, or one for each of {len(axes)} axes, not {len(steps)}")
    found = [_slopes(f, each, step, edge_order) for each, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slopes(f: Any, axis: int, step: Any, edge_order: int) -> Any:
    """Central differences along an axis, and one-sided ones at the ends. The step is one gap, or all coordinates."""
    y = np.moveaxis(f, axis, 0)
    if len(y) <= edge_order:
        raise ValueError(f"np.gradient takes more than {edge_order} elements along an axis, not {len(y)}")
    if np.ndim(step) > 1:
        raise ValueError(f"np.gradient takes a spacing that is a number or has one axis, not {np.ndim(step)}")
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


def _interpolated(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    x, xp, fp = as_values(x), as_values(xp), as_values(fp)
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ValueError(f"np.interp takes as many points as values, not arrays of shapes {xp.shape} and {fp.shape}")
    if period is not None:
        if any(isinstance(point, Operand) for point in xp.flat):
            raise TypeError("np.interp with a period takes points xp that are plain numbers known to the function")
        x, points = x % period, xp.astype(float) % period
        order = np.argsort(points)[np.arange(-1, len(xp) + 1) % len(xp)]
        xp = points[order] + period * np.array([-1.0, *[0.0] * len(points), 1.0])
        fp, left, right = fp[order], None, None
    result = np.where(x >= xp[0], fp[0], fp[0] if left is None else left)
    for k in range(len(xp) - 1):
        slope = (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
        result = np.where(x >= xp[k], fp[k] + slope * (x - xp[k]), result)
    result = np.where(x >= xp[-1], fp[-1], result)
    return np.where(x <= xp[-1], result, np.where(x > xp[-1], fp[-1] if right is None else right, x))[()]


def _evenly_spaced(start: Any, stop: Any, num: int = 50, endpoint: bool = True, **settings: Any) -> Any:
    if settings:
        refuse_function("linspace")
    start, stop = as_values(start), as_values(stop)
    gap = np.asanyarray(stop - start)
    parts = np.arange(num) / max(num - endpoint, 1)
    result = start + parts.reshape(-1, *[1] * gap.ndim) * gap
    if endpoint and num > 1:
        result[-1] = stop[()]
    return result


def _quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, **settings: Any
) -> Any:
    """Of the elements in order, those at q, or between two of them the point on the line through both."""
    parts = as_values(q)
    if settings or method != "linear" or parts.dtype == object:
        refuse_function("quantile")
    if not ((parts >= 0) & (parts <= 1)).all():
        raise ValueError(f"np.quantile takes quantiles from 0 to 1, and np.percentile from 0 to 100, not {q!r:.80}")
    a = as_values(a)
    kept = range(a.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, a.ndim)
    others = [each for each in range(a.ndim) if each not in kept]
    shape = [1 if each in kept else length for each, length in enumerate(a.shape)]
    columns = np.transpose(a, [*kept, *others]).reshape(-1, *(a.shape[each] for each in others))
    if not len(columns):
        raise ValueError("np.quantile takes at least one element")
    ordered = np.sort(columns, axis=0)
    position = parts.ravel() * (len(ordered) - 1)
    low = position.astype(int)
    part = (position - low).reshape(-1, *[1] * len(others))
    below, above = ordered[low], ordered[np.minimum(low + 1, len(ordered) - 1)]
    gap = above - below
    between = np.where(part < 0.5, below + gap * part, above - gap * (1 - part))
    result = np.where(np.isnan(columns).any(axis=0), math.nan, np.where(part == 0, below, between))
    return result.reshape((*parts.shape, *(shape if keepdims else columns.shape[1:])))[()]


def _percentile(a: Any, q: Any, *arguments: Any, **settings: Any) -> Any:
    return _quantile(a, as_values(q) / 100, *arguments, **settings)


def _inserted(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    return by_numpy(np.insert, (np.asarray(arr).astype(object), obj, values, axis))  # in floats, Values would be floats


def _consecutive_differences(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    a = as_values(ary).ravel()
    parts = [to_begin, a[1:] - a[:-1], to_end]
    return np.concatenate([as_values(part).ravel() for part in parts if part is not None])


def _into_numbers(function: Any) -> Callable[..., Any]:
    """A function that puts items into an array, which is refused where an array of numbers would lose gradients."""

    def put(array: Any, *arguments: Any, **settings: Any) -> Any:
        items = (x for part in arguments for x in np.ravel(as_values(part)).tolist())
        if array.dtype != object and any(map(is_value, items)):
            refuse_function(function.__name__)
        return by_numpy(function, (array, *arguments), settings)

    return put


def _refused(name: str, *_: Any, **__: Any) -> NoReturn:
    refuse_function(name)


_REFUSED = (
    np.fft.hfft,
    np.fft.ihfft,
    np.nanpercentile,
    np.nanquantile,
    np.polydiv,
    np.roots,
)  # of which NumPy's own would be wrong, or fail in the middle
_INTO = (np.copyto, np.put, np.putmask, np.place)
_PICKED = _function(picked, 3)

INSTEAD: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.select: _select,
    np.isclose: _is_close,
    np.allclose: _all_close,
    np.sinc: _function(further_primitives.sinc, 1),
    np.interp: _interpolated,
    np.quantile: _quantile,
    np.percentile: _percentile,
    **{function: _into_numbers(function) for function in _INTO},
    **{function: partial(_refused, path_in_numpy(function)) for function in _REFUSED},
    np.isposinf: lambda x, out=None: np.greater_equal(x, math.inf, out=out),
    np.isneginf: lambda x, out=None: np.less_equal(x, -math.inf, out=out),
    np.ediff1d: _consecutive_differences,
    np.nansum: _without_nan(np.sum, 0.0),
    np.nanprod: _without_nan(np.prod, 1.0),
    np.nancumsum: _without_nan(np.cumsum, 0.0),
    np.nancumprod: _without_nan(np.cumprod, 1.0),
    np.nanmax: _without_nan(np.max, -math.inf),
    np.nanmin: _without_nan(np.min, math.inf),
    np.average: _average,
    np.nanmean: _mean_without_nan,
    np.nanvar: _variance_without_nan,
    np.nanstd: lambda *arguments, **settings: np.sqrt(_variance_without_nan(*arguments, **settings)),
    np.cov: _covariance,
    np.insert: _inserted,
    np.linspace: _evenly_spaced,
    np.corrcoef: _correlation,
    np.gradient: _gradient,
    np.i0: FUNCTIONS["i0"],
    **linear_algebra.OF_NUMPY,
    **signals.OF_NUMPY,
}
