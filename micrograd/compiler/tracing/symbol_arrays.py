"""Arrays of symbols: what NumPy does with them is written down, where it would ask for numbers.

Inside a compiled function an array argument has symbols for its elements. NumPy adds and multiplies them as it does
Values, but of a comparison it asks the truth, which is not known yet. A SymbolArray is an object array that NumPy asks
first (`NEP 13 <https://numpy.org/neps/nep-0013-ufunc-overrides.html>`_, NEP 18):

    x > 0                       # an array of BoolSymbols: x[0] > 0, x[1] > 0 ...
    np.maximum(x, 0)            # of each element: x if x >= 0 else 0, which is written down as a choice

The functions are those of the table that eager code has (numpy_functions.py). Here is what depends on how eager code
has the numbers: of which dtype plain ones are, and what is refused, because it depends on numbers.

Of plain numbers in arrays it is not known whether the function would have them in an array of floats, which treats NaN
in another way than an array of objects. Where a NaN would matter, the function runs eagerly.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import Operand, is_unknown, is_value, is_whole
from micrograd.compiler.guards.refusals import FOR_AN_INDEX, THE_INT, TraceError, refuse
from micrograd.compiler.tracing import lanes, orders
from micrograd.compiler.tracing.contractions import contracted
from micrograd.compiler.tracing.promotion import (
    FLOAT64,
    INT64,
    OPERATORS,
    check_width,
    is_dtype,
    is_seen_by_library,
    kind_of,
    kind_of_number,
    promoted,
)
from micrograd.compiler.tracing.tape import Tape
from micrograd.engine import value_arrays
from micrograd.engine.numpy_functions import CHOICES, FUNCTIONS, TRUTHS, is_of_bools, path_in_numpy, truth
from micrograd.engine.value_arrays import ValueArray, box, plain, with_arrays
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from micrograd.engine.primitive import Primitive

    Array = np.ndarray[Any, Any]


class SymbolArray(ValueArray):
    """An object array with symbols in it, which writes down what NumPy cannot carry out."""

    __slots__ = ()
    of_symbols = True  # which a structure tells an array of the function's own by

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function that works element by element gives."""
        return of_elements(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy gives."""
        return of_arrays(function, arguments, settings)

    @staticmethod
    def of_each(primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """What a primitive gives for each element; None where they have to come one by one."""
        return lanes.of_each(primitive, known_rows(operands))

    def __iter__(self) -> Any:
        """The elements, or the rows. Lists of weights go through the same row of numbers again and again."""
        return iter(self.view(np.ndarray).tolist()) if self.ndim == 1 else super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        """The elements at an index."""
        if orders.is_unknown_index(index) and (picked := orders.picked(self, index)) is not None:
            return picked
        try:
            found = super().__getitem__(index)
        except IndexError:
            _check_index(index)
            raise
        if type(found) is not SymbolArray or found.size or is_seen_by_library():
            return found
        kind = kind_of(self.view(np.ndarray))  # which no element of it says
        return found.view(ValueArray) if kind is None else np.empty(found.shape, kind)

    def __setitem__(self, index: Any, item: Any) -> None:
        """Put something at an index, which must be known; or one number where the elements of a mask hold."""
        if type(index) is SymbolArray and is_of_bools(index) and index.shape == self.shape and not np.ndim(item):
            index, item = ..., np.where(index, item, self)
        if is_of_bools(self) and not is_of_bools(item):
            item = _each(truth, np.array(plain(item), dtype=object))
        elif not is_seen_by_library():
            item = _fitting(self, item)
        try:
            super().__setitem__(index, item)
        except IndexError:
            _check_index(index)
            raise

    def astype(self, dtype: Any, *arguments: Any, **settings: Any) -> Any:
        """The same numbers as floats, ints, bools or objects, where that changes none of them."""
        converted = _as_type(self, np.dtype(dtype))
        return super().astype(dtype, *arguments, **settings) if converted is None else converted

    def tolist(self) -> Any:
        """The numbers as Python's, in nested lists."""
        numbers = self if is_seen_by_library() else _each(_python, self)
        return numbers.view(np.ndarray).tolist()

    def item(self, *index: Any) -> Any:
        """A number as Python's."""
        number = self.view(np.ndarray).item(*index)
        return number if is_seen_by_library() else _python(number)

    def round(self, decimals: Any = 0, out: Any = None) -> Any:
        """The numbers rounded to so many decimals; see np.round. Integers are what they are."""
        kind = kind_of(self.view(np.ndarray))
        if kind is None or not _is_of_integers(kind):
            return super().round(decimals, out)
        if decimals < 0:
            refuse("rounding integers", "Write np.round(x.astype(float), decimals).")
        return np.positive(self, out=out)

    def conj(self) -> Any:
        """The same numbers: an array of plain numbers is its own conjugate, also where it has no axes."""
        return super().conj() if kind_of(self.view(np.ndarray)) is None else self

    conjugate = conj

    def fill(self, value: Any) -> None:
        """Put something at each index."""
        self[...] = _fitting(self, value)

    @staticmethod
    def beside(other: Any) -> Any:
        """What stands for an array of known numbers, one for each of these."""
        return known_rows(other)

    def dot(self, other: Any, out: Any = None) -> Any:
        """The product of two matrices; see np.dot."""
        return np.dot(self, other, out)


def _seen(name: str, of_dtype: Callable[[Array, np.dtype[Any]], Any] | None) -> Any:
    """An attribute of arrays as it is where the function is not compiled. NumPy and this library see an object array.

    Args:
        name: of the attribute.
        of_dtype: says what it is for an array and the dtype of its elements; None if that is not known.
    """

    def attribute(array: Any) -> Any:
        if is_seen_by_library():
            return getattr(np.ndarray, name).__get__(array)  # its own: NumPy sets flags
        if of_dtype is None:
            refuse(f"the {name} of an array", "Ask for it outside of the function, and pass the answer in.")
        kind = kind_of(array.view(np.ndarray))
        return of_dtype(array, np.dtype(object if kind is None else kind))

    return property(attribute)


SymbolArray.dtype = _seen("dtype", lambda array, dtype: dtype)  # type: ignore[method-assign]
SymbolArray.itemsize = _seen("itemsize", lambda array, dtype: dtype.itemsize)  # type: ignore[method-assign]
SymbolArray.nbytes = _seen("nbytes", lambda array, dtype: array.size * dtype.itemsize)  # type: ignore[method-assign]
for _name in ("flags", "strides", "data", "ctypes"):
    setattr(SymbolArray, _name, _seen(_name, None))


def _averaging(name: str) -> Any:
    """A method that NumPy computes from sums, and makes of the dtype again, which symbols have not."""

    def method(self: SymbolArray, *arguments: Any, **settings: Any) -> Any:
        kind = kind_of(self.view(np.ndarray))
        if kind is not None:
            check_width(kind, [kind])
        return getattr(ValueArray, name)(self, *arguments, **settings)

    return method


for _name in ("mean", "std", "var"):
    setattr(SymbolArray, _name, _averaging(_name))


def _finding(name: str) -> Any:
    """A method of arrays that finds or sorts, as the function with its name does, or is refused."""

    def method(self: Array, *arguments: Any, **settings: Any) -> Any:
        found = _INSTEAD[getattr(np, name)](self, *arguments, **settings)
        return getattr(np.ndarray, name)(self, *arguments, **settings) if found is None else found

    return method


def _in_place(name: str) -> Callable[..., None]:
    """A method that puts the elements of the array itself in an order."""

    def method(self: Array, *arguments: Any, **settings: Any) -> None:
        if _has_symbols(self):
            self[...] = getattr(np, name)(self, *arguments, **settings)
        else:
            getattr(np.ndarray, name)(self, *arguments, **settings)

    return method


for _name in ("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "nonzero", "searchsorted"):
    setattr(SymbolArray, _name, _finding(_name))
for _name in ("partition", "sort"):
    setattr(SymbolArray, _name, _in_place(_name))


def arranged(result: Any) -> Any:
    """An object array as one whose comparisons are written down; so in a list or tuple. All else stays as it is.

    An empty array has no elements that say whether Values would be in it: an array of Values stays one.
    """
    kind = type(result)
    if kind in (np.ndarray, ValueArray) and result.dtype == object and (result.size or kind is np.ndarray):
        return result.view(SymbolArray)
    if type(result) in (list, tuple):
        return type(result)(map(arranged, result))
    if hasattr(kind, "_make"):  # such as that of np.linalg.qr
        return kind._make(map(arranged, result))
    return result


def _of_values_too(result: Any, inputs: Any) -> Any:
    """The result; an empty one as an array of Values, if it was made of such."""
    is_empty = type(result) is SymbolArray and not result.size
    return result.view(ValueArray) if is_empty and _has_arrays_of_values(inputs) else result


def _has_arrays_of_values(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return any(map(_has_arrays_of_values, x))
    return type(x) is ValueArray or _has_values(x)


def known_rows(nested: Any) -> Any:
    """Operands, in tuples, lists and dicts, with what stands for the arrays among them whose numbers are known."""
    if (rows := rows_in_use()) is None:
        return nested
    kind = type(nested)
    if kind is tuple or kind is list:
        return kind(map(known_rows, nested))
    if kind is dict:
        return {name: known_rows(part) for name, part in nested.items()}
    return rows.given(nested) if kind is np.ndarray else nested


def of_elements(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What a function of NumPy that works element by element makes of symbols; see _of_elements."""
    inputs = known_rows(inputs)
    return _of_values_too(_of_elements(ufunc, method, inputs, settings), inputs)


def _of_elements(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What a function of NumPy that works element by element makes of symbols.

    Args:
        ufunc: the function.
        method: which method of it: "__call__", "reduce", "accumulate" and so on.
        inputs: arrays, symbols, numbers.
        settings: the named arguments; ``out`` is a tuple.
    """
    if method == "__call__" and not settings and (result := value_arrays.of_single(ufunc, inputs)) is not None:
        return result
    if (result := _in_lanes(ufunc, method, inputs, settings)) is not None:
        return result
    name, operands = ufunc.__name__, [plain(operand) for operand in inputs]
    if method == "at" and orders.is_unknown_index(inputs[1]):
        refuse(
            f"np.{name}.at with indices that are arguments",
            "Close over the indices; or, to add up, write out + (np.arange(len(out))[:, None] == indices) @ x.",
        )
    if method == "at" and ufunc.nin == 2:
        _check_room(operands[0], operands[2])
    if ufunc is np.divmod and not any(map(_has_values, operands)):
        return np.floor_divide(*inputs, **settings), np.remainder(*inputs, **settings)
    if method in ("__call__", "outer"):
        if any(_is_array(x) and not x.size and x.dtype != object for x in operands) and not any(
            map(_has_values, operands)
        ):
            return getattr(ufunc, method)(*map(_ones_like, operands), **settings)  # the result is empty
        operands = _of_kinds(ufunc, operands)
    if method in ("__call__", "outer") and settings.get("dtype") is not None:
        operands = _before_computing(name, operands, settings)
    if method in ("reduce", "accumulate", "reduceat"):
        operands[0] = _before_reducing(name, operands[0], settings)
    elif name in _OF_BOOLS and all(map(is_of_bools, operands)):
        if (of_bools := _OF_BOOLS[name]) is None:
            return ufunc(*[np.True_] * len(operands))  # NumPy says what is wrong
        name, operands = of_bools, operands if ufunc.nin == 2 or of_bools == "logical_not" else operands * 2
    elif ufunc.signature is not None:
        _check_product(name, operands)
    elif ufunc.nin == 1 and name not in _WRITTEN and hasattr(np, name) and is_of_bools(operands[0]):
        refuse(f"np.{name} of a comparison, a float of 16 bits,", "Write mask.astype(float).")
    if name in _LOGICAL:
        _check_logical(name, operands)
    is_empty = method == "reduce" and not np.size(operands[0])  # of which NumPy asks nothing
    function = FUNCTIONS[name] if name in _WRITTEN and not is_empty else None
    if not settings and function is None:
        return arranged(_as_eagerly(value_arrays.computed, ufunc, method, operands, settings))
    if _has_symbols(settings.get("where")):
        refuse(f"where= of np.{name}", "Write np.where(condition, x, 0), and leave where= out.")
    if out := settings.get("out", ()):
        if method == "__call__" and all(kind_of(plain(x)) is not None for x in (*operands, *out)):
            _compute_eagerly(ufunc, _stand_in(operands), _stand_in({**settings, "out": tuple(map(plain, out))}))
        _check_out(name, out, operands, function)
        settings["out"] = tuple(map(plain, out))
    finish = None
    if function is not None and settings.get("dtype") is not None:
        finish = {"b": truth, "O": _number}.get(np.dtype(settings["dtype"]).kind)
        if finish is None:
            return getattr(ufunc, method)(*operands, **settings)  # NumPy says what is wrong
        del settings["dtype"]
    if function is None:
        result = _as_eagerly(value_arrays.computed, ufunc, method, operands, settings)
    else:
        result = getattr(function, method)(*operands, **settings)
    if len(out) == 1:
        return out[0]
    if finish is not None:
        result = _each(finish, result) if isinstance(result, np.ndarray) else finish(result)
    is_of_truths = isinstance(result, np.ndarray) and all(type(x) is bool for x in result.flat)
    if is_of_truths and function is not None and (result.size or name in TRUTHS):
        return result.astype(bool)
    return arranged(result)


def _check_out(name: str, out: tuple[Any, ...], operands: list[Any], function: Any) -> None:
    """Refuse arrays that results cannot be written to."""
    value_arrays.check_arrays(out)
    for array in out:
        _check_room(array, operands)
    if any(array is not None and array.dtype != object for array in out):
        refuse(f"an array of numbers as out= of np.{name}", "Leave it out, and use what is returned.")
    if function is None and any(map(is_of_bools, out)):
        refuse(f"an array of comparisons as out= of np.{name}", "Leave it out, and use what is returned.")


def _in_lanes(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What is written for all elements at once; None where they come one by one."""
    if method == "reduce":
        return lanes.reduced(ufunc, inputs[0], settings)
    if method != "__call__" or settings:
        return None
    return lanes.product(*inputs) if ufunc is np.matmul else lanes.of_elements(ufunc, inputs)


def of_arrays(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """What another function of NumPy makes of symbols, such as np.where and np.concatenate."""
    arguments, settings = known_rows((arguments, settings))
    if function in _OF_ONE and len(arguments) == 1 and not settings and _has_itself(function, arguments[0]):
        return arguments[0]
    arguments, settings = with_arrays(function, arguments, settings)
    instead = _INSTEAD.get(function)
    if instead is not None and (result := instead(*arguments, **settings)) is not None:
        return result
    if function in _PRODUCTS:
        _check_product(function.__name__, arguments)
    return _of_values_too(arranged(_as_eagerly(value_arrays.called, function, arguments, settings)), arguments)


_OF_ONE = (np.transpose, np.squeeze, np.real, np.trim_zeros)


def _has_itself(function: Any, x: Any) -> bool:
    """Whether NumPy gives a plain number itself, of its own kinds, and no array without axes."""
    return is_unknown(x) and not is_value(x) and (is_dtype(x.kind) or function is np.real)


def _as_eagerly(compute: Callable[..., Any], function: Any, *parts: Any) -> Any:
    """What the table gives. Where it has nothing for plain numbers, NumPy says what is wrong, or it is refused."""
    try:
        return compute(function, *parts)
    except TraceError:
        raise
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        if _has_arrays_of_values(parts):
            if any(text in str(error) for text in _OF_NO_DTYPE):
                refuse("a number as a dtype", "Write the dtype itself, such as float.")
            raise
    _compute_eagerly(function, *map(_stand_in, parts))
    return refuse(
        f"np.{path_in_numpy(function)} of numbers", "Compute it outside of the function, and pass the result in."
    )


_OF_NO_DTYPE = ("as a data type", "Cannot construct a dtype")


def _compute_eagerly(function: Any, *parts: Any) -> None:
    """Let NumPy say what is wrong with numbers of these kinds and shapes, if there is something."""
    *method, arguments, settings = parts
    with np.errstate(all="ignore"):
        (getattr(function, method[0]) if method else function)(*arguments, **settings)


def _stand_in(x: Any) -> Any:
    """Ones in the place of symbols, in nested lists, tuples and dicts."""
    if is_unknown(x):
        kind = kind_of_number(x)
        return kind.type(1) if is_dtype(kind) else kind(1)
    if isinstance(x, dict):
        return {name: _stand_in(part) for name, part in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(map(_stand_in, x))
    return np.asarray(_ones_like(x))[()] if _is_array(x) and not x.ndim else _ones_like(x)


# What the elements of arrays give


def _number(x: Any) -> Any:
    """A bool as an int."""
    if is_unknown(x):
        return x.as_plain(int) if isinstance(x, bool) else x  # type: ignore[attr-defined]  # it is a BoolSymbol
    return int(x) if isinstance(x, bool) else x


def _converted(x: Any, dtype: np.dtype[Any] = FLOAT64) -> Any:
    """A number as a float, or as an int."""
    return x.as_plain(dtype) if is_unknown(x) else (float if dtype == FLOAT64 else int)(x)


def _check_logical(name: str, operands: Iterable[Any]) -> None:
    """Refuse plain numbers: in an array of objects the result is one of the two, in an array of floats a bool."""
    for x in operands:
        for element in x.ravel().tolist() if isinstance(x, np.ndarray) else [x]:
            if not isinstance(element, (bool, np.bool_)) and (name == "logical_xor" or not is_value(element)):
                refuse(f"np.{name} of numbers", f"Write np.{name}(x != 0, y != 0).")


_LOGICAL = ("logical_and", "logical_or", "logical_xor")

# What NumPy would ask the truth of, or pick from; of bools it gives bools
_WRITTEN = {*TRUTHS, *CHOICES, "sign", "floor", "ceil", "trunc"}

# Those of them that give numbers of numbers
_OF_NUMBERS = ("maximum", "fmax", "minimum", "fmin", "clip", "sign", "floor", "ceil", "trunc")

# What NumPy does with arrays of bools in the place of arithmetic; None where it refuses
_OF_BOOLS = {
    "absolute": "logical_or",
    "add": "logical_or",
    "multiply": "logical_and",
    "invert": "logical_not",
    "subtract": None,
    "negative": None,
    "positive": None,
    "sign": None,
}


# What NumPy does not do by functions of elements


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    """np.dot of vectors and matrices, as @; None for others."""
    return lanes.product(a, b) if out is None and np.ndim(a) in (1, 2) and np.ndim(b) in (1, 2) else None


def _where(condition: Any, *branches: Any) -> Any:
    """np.where of three, for all elements at once; None where it goes the ordinary way."""
    if not branches and _has_symbols(condition):
        _refuse_order()
    return lanes.chosen(condition, *branches) if len(branches) == 2 else None


def _count_nonzero(array: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """np.count_nonzero; None where the numbers are known."""
    if not _has_symbols(array):
        return None
    holds = _each(truth, np.asarray(array))
    return holds.sum(axis=axis, keepdims=keepdims)


def _pad(array: Any, pad_width: Any, mode: Any = "constant", **settings: Any) -> Any:
    """np.pad, whose constants are of the dtype of the array; None where there are Values, or nothing to convert."""
    kind = kind_of(plain(array)) if _is_array(array) else None
    constants = settings.get("constant_values", 0)
    if _has_symbols(pad_width):
        _compute_eagerly(np.pad, [np.zeros(1), _stand_in(pad_width)], {})  # NumPy says what is wrong
        refuse("a width of np.pad that depends on numbers", "Give it outside of the function: as an int that is known.")
    is_known = mode == "constant" and not _has_symbols(constants)
    if kind is None or mode in _REPEATING:
        return None
    if not array.ndim:
        return array
    if not is_known and kind in (float, FLOAT64) and not _has_values(constants):
        return None
    if not is_known:
        refuse("np.pad of numbers with others", "Write np.pad(x.astype(float), ...), or np.concatenate.")
    padded = _with_kinds(np.pad(np.zeros(array.shape, kind), pad_width, mode, **settings))
    padded[~np.pad(np.zeros(array.shape, bool), pad_width, constant_values=True)] = plain(array).ravel()
    return arranged(padded)


_REPEATING = ("edge", "empty", "maximum", "minimum", "reflect", "symmetric", "wrap")


def _of_no_axes(x: Any) -> Any:
    """np.i0 of a plain number, of which NumPy makes an array; None of others."""
    return None if x.ndim or _has_values(x) else arranged(box(FUNCTIONS["i0"](plain(x))))


def _copyto(to: Any, array: Any, casting: str = "same_kind", where: Any = True) -> None:
    """np.copyto goes the ordinary way, if it is known where to."""
    if _has_symbols(where):
        refuse("where= of np.copyto", "Write np.where(condition, a, b).")
    _check_room(to, array)


def _full_like(a: Any, fill_value: Any, dtype: Any = None, *arguments: Any, **settings: Any) -> Any:
    """np.full_like of a number that is not known goes the ordinary way, if the array has room for it."""
    if dtype is not None:
        return None
    if _has_symbols(fill_value):
        _check_room(a, fill_value)
        return None
    return _like(partial(np.full_like, fill_value=fill_value), a, *arguments, **settings)


def _like(function: Any, a: Any, *arguments: Any, **settings: Any) -> Any:
    """An array like one of plain numbers, with numbers of its dtype; None if there are Values, or comparisons."""
    kind = kind_of(a)
    if arguments or settings or kind is None or kind is bool or not _is_array(a):
        return None
    made = function(_ones_like(a))
    numbers = np.empty(made.shape, dtype=object)
    # Integers of NumPy show that it has no room for fractions
    numbers[...] = made if not _is_of_integers(kind) else np.frompyfunc(made.dtype.type, 1, 1)(made)
    return arranged(numbers)


def _check_room(array: Any, item: Any) -> None:
    """Refuse to put into an array of the numbers that an argument has what it keeps a part of eagerly.

    Of a Value that is its number, and in an array of integers, of a float the whole part.
    """
    if array is None or not array.size:
        return
    if _has_values(item):
        if all(is_unknown(x) and not is_value(x) and not isinstance(x, bool) for x in array.flat):
            instead = "Write mg.array(x) for the array, which keeps gradients too."
            refuse("a Value put into an array of numbers", instead)
    elif _has_floats(item) and _has_integers_only(array):
        refuse("a float put into an array of integers", "Write x.astype(float) for the array.")


def _fitting(array: Array, item: Any) -> Any:
    """What is to be put into an array: in one of integers, known numbers as its dtype has them."""
    if _has_symbols(item) or not _has_integers_only(array):
        _check_room(array, item)
        return item
    numbers = np.empty(np.shape(item), kind_of(array.view(np.ndarray)))
    numbers[...] = item
    return numbers[()]


def _has_floats(x: Any) -> bool:
    """Whether there are floats among plain numbers, in nested lists and arrays."""
    if isinstance(x, (list, tuple)):
        return any(map(_has_floats, x))
    kind = kind_of(x)
    return kind is not None and kind is not bool and not _is_of_integers(kind)  # a dtype is equal to None


def _has_integers_only(array: Array) -> bool:
    """Whether an array is one of integers where the function is not compiled."""
    return bool(array.size) and all(
        is_whole(x) if is_unknown(x) and not isinstance(x, bool) else isinstance(x, np.integer) for x in array.flat
    )


def _find(*arguments: Any, **settings: Any) -> None:
    """What finds or sorts goes the ordinary way, where the numbers are known."""
    if _has_symbols([*arguments, *settings.values()]):
        _refuse_order()


def _refuse_order() -> NoReturn:
    refuse(
        "an order or a number of elements that depends on numbers",
        "Write np.where(x > 0, a, b), np.maximum, x.max() or mg.take(sequence, index).",
    )


def _of_unknown(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that goes the ordinary way, where the numbers are known."""

    def instead(*arguments: Any, **settings: Any) -> Any:
        return function(*arguments, **settings) if _has_symbols([*arguments, *settings.values()]) else None

    return instead


_FINDING = (
    *(np.nanargmax, np.nanargmin, np.argpartition, np.argwhere, np.choose, np.compress, np.digitize, np.extract),
    *(np.flatnonzero, np.lexsort, np.nonzero, np.piecewise, np.place, np.putmask, np.searchsorted),
    np.unique,
)
_ORDERING = (
    *("argmax", "argmin", "argsort", "median", "partition", "percentile", "quantile", "sort", "take"),
    "take_along_axis",
)

_INSTEAD: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(_FINDING, _find),
    **{getattr(np, name): _of_unknown(getattr(orders, name)) for name in _ORDERING},
    np.copyto: _copyto,
    np.full_like: _full_like,
    np.zeros_like: partial(_like, np.zeros_like),
    np.ones_like: partial(_like, np.ones_like),
    np.empty_like: partial(_like, np.zeros_like),
    np.put: lambda a, ind, v, mode="raise": _check_room(a, v),
    np.pad: _pad,
    np.where: _where,
    np.i0: _of_no_axes,
    np.real: lambda x: None if _has_values(x) else x,  # what it makes of an object depends on the version
    np.dot: _dot,
    np.einsum: contracted,
    np.common_type: lambda *_: refuse("the common type of arrays", "Ask for it outside of the function."),
    np.count_nonzero: _count_nonzero,
}

# Of two arrays of bools these give bools, which are no sums of products
_PRODUCTS = {np.dot, np.vdot, np.inner, np.tensordot, np.einsum, np.convolve, np.correlate, np.kron}


# What works on whole arrays


def _is_of_integers(kind: Any) -> bool:
    return kind.kind in "iu" if is_dtype(kind) else issubclass(kind, int)


def _is_narrow(kind: Any) -> bool:
    return not issubclass(kind, (int, float)) if isinstance(kind, type) else kind not in (FLOAT64, INT64)


def _has_values(x: Any) -> bool:
    return any(map(is_value, _symbols(x)))


def _ones_like(x: Any) -> Any:
    """Ones in the place of symbols, of which nothing but the kind is looked at."""
    if not _is_array(x) or x.dtype != object:
        return x
    kind = kind_of(x)
    return np.ones(x.shape, kind) if kind is None or is_dtype(kind) or x.ndim else kind(1)


def _python(x: Any) -> Any:
    """A plain number as one of Python's."""
    if not is_unknown(x) or is_value(x):
        return x.item() if isinstance(x, np.generic) else x
    return x.as_plain(bool if isinstance(x, bool) else int if is_whole(x) else float)


def _of_kinds(ufunc: np.ufunc, operands: list[Any]) -> list[Any]:
    """Operands with plain numbers that say which dtype they are of, where that decides about the result.

    Raises:
        TraceError: if it would be rounded to another width than that of a program.
    """
    operands = [np.array(x) if isinstance(x, (list, tuple)) and not _has_symbols(x) else x for x in operands]
    kinds = list(map(kind_of, operands))
    if any(kind is None for kind in kinds):  # a dtype is equal to None
        return operands
    if ufunc is np.float_power:
        return [plain(_each(_converted, x)) if isinstance(x, np.ndarray) and x.dtype == object else x for x in operands]
    if ufunc is np.reciprocal and _is_of_integers(kinds[0]):
        refuse("np.reciprocal of integers", "Write 1.0 / x.")
    if ufunc is np.fmod and all(map(_is_of_integers, kinds)):
        refuse("np.fmod of integers", "Write np.fmod(x.astype(float), y), or x % y, which has the sign of y.")
    if not any(map(_is_narrow, kinds)):
        return operands
    if ufunc.__name__ not in _CHECKED_ELSEWHERE and ufunc.nout == 1 and ufunc.signature is None:
        check_width(promoted(ufunc, *kinds), kinds)
    if ufunc.nout > 1:  # np.modf and np.frexp, which round as np.sqrt does
        check_width(promoted(np.sqrt, kinds[0]), kinds)
    return [_with_kinds(x) for x in operands]


def _with_kinds(x: Any) -> Any:
    """Known numbers of NumPy's in an array of objects, where they keep their dtype."""
    if issubclass(type(x), np.generic):
        return box(x)
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "iuf":
        return x
    return np.fromiter(x.flat, object, x.size).reshape(x.shape)


# What gives bools, or one of the numbers, or a number that needs no more digits; and operators, which look themselves
_CHECKED_ELSEWHERE = {
    *("greater", "greater_equal", "less", "less_equal", "equal", "not_equal", "isfinite", "isnan", "isinf"),
    *("logical_and", "logical_or", "logical_xor", "logical_not", "negative", "absolute", "positive", "conjugate"),
    *_OF_NUMBERS,
    *(ufunc.__name__ for ufunc in OPERATORS.values()),
}

_EXACT = (FLOAT64, INT64)  # others would round


def _each(function: Callable[[Any], Any], array: Array) -> Array:
    """The array of what a function gives for each element."""
    result = np.empty(array.shape, dtype=object)
    result[...] = np.frompyfunc(function, 1, 1)(array.view(np.ndarray))
    return result.view(SymbolArray)


def _as_type(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """The elements as floats, ints, bools or objects; None where that is for NumPy to do, which asks for numbers."""
    if dtype.kind == "b":
        return _each(truth, array)
    if dtype.kind == "O":
        return _each(_number, array) if is_of_bools(array) else None
    if dtype not in _EXACT or any(map(is_value, array.flat)):
        return None
    is_exact = dtype.kind == "f" or all(map(is_whole, array.flat))
    return _each(partial(_converted, dtype=dtype), array) if is_exact else None


def _before_computing(name: str, operands: list[Any], settings: dict[str, Any]) -> list[Any]:
    """What is to be computed with, as the dtype says, which is left out then; as it is where only bools come out."""
    dtype = np.dtype(settings["dtype"])
    if dtype.kind == "b" or (name in _WRITTEN and name not in _OF_NUMBERS):
        return operands
    converted = [_as_type(np.array(operand, dtype=object), dtype) for operand in operands]
    if any(array is None for array in converted):
        return operands
    del settings["dtype"]
    return list(map(plain, converted))


def _before_reducing(name: str, operand: Any, settings: dict[str, Any]) -> Any:
    """What is to be reduced, as the dtype says, which is left out then. A sum of bools is an int."""
    dtype = settings.get("dtype")
    if dtype is None and name in ("add", "multiply"):
        if is_of_bools(operand):
            dtype = object
        elif (kind := kind_of(operand)) is not None and is_dtype(kind) and kind.kind in "iu":
            wide = np.add.reduce(np.zeros(1, kind)).dtype  # NumPy adds up narrow integers in wide ones
            return plain(_each(lambda x: x.as_plain(wide) if is_unknown(x) else x, operand))
    if dtype is None or not _is_array(operand):
        return operand
    converted = _as_type(operand, np.dtype(dtype))
    if converted is None:
        return operand
    settings.pop("dtype", None)
    return plain(converted)


def _check_product(name: str, operands: Iterable[Any]) -> None:
    """Refuse a product of arrays of bools, which NumPy makes of "and" and "or"."""
    operands = list(operands)
    kinds = [kind_of(x) for x in operands if _is_array(x)]
    if kinds and not any(kind is None for kind in kinds):  # np.dot goes on after an error
        check_width(promoted(np.multiply, *kinds[:2]) if kinds[1:] else kinds[0], kinds)
    if all(map(is_of_bools, filter(_is_array, operands))):
        refuse(f"np.{name} of comparisons", "Write mask.astype(int), or np.any and np.all.")


def _is_array(x: object) -> bool:
    return isinstance(x, np.ndarray)


def _symbols(x: Any) -> Iterable[Any]:
    """The Values and symbols in nested lists, dicts and arrays."""
    if isinstance(x, np.ndarray):
        return _symbols(x.ravel().tolist()) if x.dtype == object else ()
    if isinstance(x, (list, tuple, dict)):
        return (symbol for item in (x.values() if isinstance(x, dict) else x) for symbol in _symbols(item))
    return (x,) if isinstance(x, Operand) else ()


def _has_symbols(x: Any) -> bool:
    return any(True for _ in _symbols(x))


def _check_index(index: Any) -> None:
    """Refuse an index with symbols in it."""
    if any(is_unknown(part) and not isinstance(part, bool) for part in (index if type(index) is tuple else (index,))):
        refuse(THE_INT, FOR_AN_INDEX)
    if _has_symbols(index):
        refuse("an index that depends on numbers", "Write np.where(x > 0, a, b), or mg.take(sequence, index).")


Tape.arrays = sys.modules[__name__]
