"""Arrays of Values: NumPy's object arrays, with the functions that NumPy cannot carry out on objects.

NumPy adds, multiplies and compares Values, and for ``np.exp(a)`` it calls ``exp()`` of each element. It has no rule for
a plain number between them, nor for ``np.rint``, ``np.isfinite`` or ``np.logaddexp``. A ValueArray is an ndarray that
is asked first (`NEP 13 <https://numpy.org/neps/nep-0013-ufunc-overrides.html>`_, NEP 18), and so is a single Value.
What NumPy can do is left to NumPy; the rest is in the table of numpy_functions.py, which compiled code uses too: so
both give the same.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from micrograd._support.checks import Operand, is_value
from micrograd.engine.lost_gradients import array_compared_with_numbers
from micrograd.engine.numpy_functions import (
    CHOICES,
    FUNCTIONS,
    INSTEAD,
    METHODS,
    OF_INTS,
    TRUTHS,
    by_numpy,
    is_uniform,
    path_in_numpy,
    refuse_function,
)
from micrograd.engine.signals import Parts
from micrograd.engine.stored import SPECIAL
from micrograd.engine.tracer import tracer_on_top

_EQUALITIES = (np.equal, np.not_equal)

# The operators that NumPy's own numbers ask for, with their reflections
OPERATORS: dict[Any, Any] = {
    np.add: (operator.add, "__radd__"),
    np.subtract: (operator.sub, "__rsub__"),
    np.multiply: (operator.mul, "__rmul__"),
    np.true_divide: (operator.truediv, "__rtruediv__"),
    np.power: (operator.pow, "__rpow__"),
}


class ValueArray(np.ndarray[Any, Any]):
    """An array of Values, as ``micrograd.array`` makes it."""

    __slots__ = ()
    __array_priority__ = 1.0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function that works element by element gives."""
        return of_elements(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy gives."""
        return of_arrays(function, arguments, settings)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """The numbers rounded to so many decimals, as constants; see np.round."""
        scale = 10.0 ** abs(operator.index(decimals))
        if not decimals:
            return np.rint(self, out=out)
        scaled = np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale
        return scaled if out is None else np.positive(scaled, out=out)


def _averaging(name: str) -> Any:
    """A method that NumPy computes from sums, and then asks a result without axes for its dtype.

    Of no elements NumPy gives NaN, and a warning.
    """

    def method(self: ValueArray, *arguments: Any, **settings: Any) -> Any:
        if not self.size:
            return getattr(np.zeros(self.shape), name)(*arguments, **settings)
        return getattr(np.ndarray, name)(self if self.ndim else self.reshape(1), *arguments, **settings)

    return method


for _name in ("mean", "std", "var"):
    setattr(ValueArray, _name, _averaging(_name))


def plain(x: Any) -> Any:
    """A ValueArray as NumPy's own array of objects, and a Value as one without axes; all else as it is."""
    if isinstance(x, ValueArray):
        return x.view(np.ndarray)
    return box(x) if isinstance(x, Operand) else x


def box(x: Any) -> np.ndarray[Any, Any]:
    """An array without axes, of one object."""
    array = np.empty((), dtype=object)
    array[()] = x
    return array


def arranged(result: Any) -> Any:
    """An array of objects as a ValueArray; so in a list or tuple. All else stays as it is."""
    if type(result) is np.ndarray and result.dtype == object:
        return result.view(ValueArray)
    if type(result) in (list, tuple):
        return type(result)(map(arranged, result))
    if isinstance(result, Parts):
        return Parts(arranged(result.real), arranged(result.imag))
    if isinstance(result, tuple) and hasattr(result, "_fields"):  # such as NumPy's EighResult
        return type(result)(*map(arranged, result))
    return result


def of_elements(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What a function that works element by element gives, of Values and arrays of them among the inputs."""
    if SPECIAL and (tracer := tracer_on_top()) is not None:
        return tracer.of_elements(ufunc, method, inputs, settings)
    if method == "__call__" and not settings and (result := of_single(ufunc, inputs)) is not None:
        return result
    if ufunc in _EQUALITIES and not all(isinstance(x, (Operand, ValueArray)) for x in inputs):
        array_compared_with_numbers(inputs)
    if settings and (out := settings.get("out")):
        check_out(ufunc, out, inputs)
        settings["out"] = tuple(map(plain, out))
    result = computed(ufunc, method, [plain(x) for x in inputs], settings)
    if settings and out and len(out) == 1:
        return out[0]
    return result if any(type(x) is np.ndarray and x.dtype == object for x in inputs) else arranged(result)


def check_out(ufunc: np.ufunc, out: tuple[Any, ...], inputs: tuple[Any, ...]) -> None:
    """Refuse an array of numbers for the results of Values, unless NumPy compares them."""
    check_arrays(out)
    kinds = [] if ufunc.__name__ in TRUTHS else [a.dtype for a in out if a is not None and a.dtype != object]
    if kinds and any(x.dtype == object if isinstance(x, np.ndarray) else isinstance(x, Operand) for x in inputs):
        raise TypeError(
            f"micrograd has no np.{ufunc.__name__} of Values into an array of {kinds[0]}: leave out= out, and use what "
            "is returned, or write out=x.copy() of an array of Values"
        )


def check_arrays(out: tuple[Any, ...]) -> None:
    """Refuse what is no array, as NumPy does."""
    for array in out:
        if array is not None and not isinstance(array, np.ndarray):
            raise TypeError(f"out= must be an array, not {type(array).__name__}: {array!r:.80}")


def of_single(ufunc: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """What a method or an operator of a single Value gives, as the most frequent functions do; None for others."""
    if len(inputs) == 1:
        return getattr(inputs[0], ufunc.__name__)() if ufunc.__name__ in METHODS and _is_single(inputs[0]) else None
    functions = OPERATORS.get(ufunc)
    if functions is None or not (_is_single(inputs[0]) and _is_single(inputs[1])):
        return None
    if issubclass(type(inputs[0]), np.generic):  # which has brought us here
        return getattr(inputs[1], functions[1])(inputs[0])
    return functions[0](*inputs)


def _is_single(x: Any) -> bool:
    return isinstance(x, (Operand, np.generic, float, int))


def of_arrays(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What another function of NumPy gives, of Values and arrays of them among its arguments."""
    if SPECIAL and (tracer := tracer_on_top()) is not None:
        return tracer.of_arrays(function, arguments, settings)
    return called(function, *with_arrays(function, arguments, settings))


def with_arrays(
    function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Values among the arguments of a function as arrays without axes, which NumPy takes for arrays."""
    check_arrays((settings.get("out"), *(arguments[1:2] if function in _WITH_OUT else ())))
    if settings:
        settings = {name: x._array(box(x)) if isinstance(x, Operand) else x for name, x in settings.items()}
    return tuple([x._array(box(x)) if isinstance(x, Operand) else x for x in arguments]), settings


_WITH_OUT = (np.fix, np.isposinf, np.isneginf)  # which take it in the second position


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
    name = ufunc.__name__
    function = FUNCTIONS.get(name)
    dtype = settings.get("dtype") if function is None else None
    if dtype is not None and np.dtype(dtype) == float and any(map(_has_values, operands)):
        settings = {key: item for key, item in settings.items() if key != "dtype"}  # they are floats, with gradients
    if method == "reduce" and name in IDENTITIES and "where" in settings:
        settings.setdefault("initial", IDENTITIES[name])  # in arrays of objects, NumPy has no identity
    if ufunc in OF_INTS:  # NumPy takes the ints of Values
        refuse_function(name)
    if (
        function is None
        or name in _NUMPYS
        or (name in CHOICES and (settings.get("dtype") is not None or is_uniform(operands)))
    ):
        try:
            return getattr(ufunc, method)(*operands, **settings)
        except (TypeError, AttributeError) as error:  # an element has no such method
            if settings.get("dtype") is not None or not _is_lack(error, name):
                raise
            if function is None or name not in METHODS:
                refuse_function(name, error)
    with np.errstate(invalid="ignore"):  # NumPy warns where a function of Python compares NaN
        return getattr(function, method)(*operands, **settings)


def _has_values(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == object and any(map(is_value, x.flat))


_NUMPYS = METHODS | TRUTHS
IDENTITIES = {"add": 0, "multiply": 1}


def called(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What another function of NumPy makes of arrays of Values, such as np.where and np.concatenate."""
    instead = INSTEAD.get(function)
    if instead is not None:
        with np.errstate(invalid="ignore"):
            return arranged(instead(*arguments, **settings))
    try:
        result = by_numpy(function, arguments, settings)
    except (TypeError, AttributeError) as error:
        if not _is_lack(error, function.__name__):
            raise
        refuse_function(path_in_numpy(function), error)
    return arranged(result)


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
