"""Outline: what a function does to whole arrays, without a look at their elements.

A function that never asks how many rows there are does the same to 300 as to 300,000. Whether that is so, is found by
running it for both on arrays that have a shape, and in the place of their elements one symbol. For

    def f(x):
        return np.exp(x[1:] - x[:-1]).sum()

and x of n rows, the outline is, for any n,

    x          n rows
    x[1:]      n - 1 rows
    x[:-1]     n - 1 rows
    subtract   n - 1 rows
    exp        n - 1 rows
    sum        a number

A function that takes ``x[:1000]`` has another outline for another n, or none. The body of a loop runs once. What has an
outline is listed here: functions of NumPy that work element by element, reductions, slices, ``mg.vmap`` and
``mg.scan``, and in plain_loops.py, loops in Python. All else is an OutlineError.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import chain
from operator import is_not
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from micrograd._support.axes import checked_axes
from micrograd._support.checks import is_array, is_unknown
from micrograd._support.containers import remade
from micrograd._support.interrupts import is_of_handler
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.structure import is_named_tuple
from micrograd.compiler.numbers import shape_of_numbers
from micrograd.compiler.tracing.choices import FEWEST_CHOOSING, Choosing
from micrograd.compiler.tracing.counting import Counted
from micrograd.compiler.tracing.lanes import OF_LIBRARY
from micrograd.compiler.tracing.promotion import SHORT, is_seen_by_library
from micrograd.compiler.tracing.questions import Question, Questions
from micrograd.compiler.tracing.symbol_arrays import SymbolArray, known_rows
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape, tracing
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import Iterations, rows_in_use, taking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.engine.primitive import Primitive
    from micrograd.loops import Distance, Move

EDGE = 8  # iterations, or elements of an array, more or fewer than there are rows
FEW = 64  # elements that are looked at one by one
_MOST = 2000  # operations; a function of more goes through arrays in Python
_MOST_OBJECTS = 1000  # symbols in an array, as in one that has ``ridge * np.eye(30)`` in it

_REDUCED = ("add", "multiply", "maximum", "minimum", "logaddexp")
_NAMES = """
    sum mean prod max min dot outer where clip diff concatenate var std cumsum cumprod stack expand_dims squeeze
    moveaxis swapaxes transpose reshape ravel roll flip tile repeat pad diag tril triu hstack vstack column_stack
    broadcast_to atleast_1d atleast_2d average trace einsum tensordot inner kron zeros_like ones_like full_like
    gradient interp convolve cross vdot nansum nanmean fliplr flipud append take ptp nanmax nanmin nanprod nanstd
    nanvar cov corrcoef nancumsum rot90 delete insert vander polyval ediff1d dstack block nan_to_num sinc trapezoid
"""  # NumPy 1 calls the last one trapz
_FUNCTIONS: set[Any] = {getattr(np, name) for name in _NAMES.split() if hasattr(np, name)}
_FUNCTIONS |= {np.linalg.norm, np.linalg.multi_dot}
_LIKE = {np.ones_like, np.zeros_like, np.full_like}
# Where these put an element, or whether, depends on the numbers and the short arrays that they are given.
_MOVING = {np.roll, np.tril, np.triu, np.trace, np.pad, np.take, np.concatenate, np.append, np.insert, np.delete}
_MOVING |= {np.hstack, np.vstack, np.convolve, np.diff, np.ediff1d, np.diag}
_LARGEST_TABLE = 32  # for np.interp, which finds a number at any position: all few rows have as many
_LINEAR: dict[Any, Callable[..., tuple[int, ...]]] = {  # the shapes of results, without the numbers
    np.linalg.solve: lambda a, b: np.shape(b),
    np.linalg.inv: np.shape,
    np.linalg.cholesky: np.shape,
    np.linalg.det: lambda a: np.shape(a)[:-2],
}


def _operands_in(nested: Any) -> Iterator[Any]:
    """What is in dicts, tuples and lists, but for lists that have no elements."""
    if isinstance(nested, dict):
        nested = [*nested.values()]
    if isinstance(nested, (tuple, list)) and not isinstance(nested, OutlinedList):
        for part in nested:
            yield from _operands_in(part)
    else:
        yield nested


def _arrays_in(nested: Any) -> tuple[list[int], bool]:
    """The positions of the arrays of an outline among operands, and whether there are numbers of it among them."""
    arrays, has_numbers = list[int](), False
    for operand in _operands_in(nested):
        if isinstance(operand, Outlined) and operand.position is not None:
            arrays.append(operand.position)
        else:
            has_numbers |= isinstance(operand, (Value, OutlinedList))
            has_numbers |= is_array(operand) and operand.dtype == object
    return arrays, has_numbers


class OutlineError(Exception):
    """A function does something to arrays that has no outline."""


class AskedError(OutlineError):
    """A function decides on a number, and no answer is given."""


class OutlineTape(Tape):
    """A tape for an outline: an array is one input, whose name says what it is made by.

    Args:
        rows: how many there are.
        reached: what the function can reach; None where it does not go through rows in Python.

    Attributes:
        has_failed: whether something had no outline, even if the function caught what was raised.
        nothing: what is in the place of elements.
        taken: rows that were taken from lists, each with its elements.
        growing: lists that loops append to.
        known_arrays: the positions of arrays of known numbers, which are folded where the function is traced.
    """

    has_failed = takes_lanes = False

    def __init__(self, rows: int, reached: Any = None) -> None:
        super().__init__()
        self.count, self.reached = rows, reached
        self.taken: list[tuple[Sequence[Any], tuple[Any, ...]]] = []
        self.growing: list[Any] = []
        self.known_arrays: set[int] = set()
        self.nothing = _Nothing(self)._symbol(0, Symbol)

    def fail(self, what: str) -> NoReturn:
        """Give up."""
        self.has_failed = True
        raise OutlineError(what)

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down, if its derivative is known to be the same each time."""
        if primitive not in OF_LIBRARY:
            self.fail("a primitive of the user")
        self._check_length()
        return super().apply(primitive, *operands)

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """Write start + xs[0] * ys[0] + xs[1] * ys[1] ... as one operation."""
        self._check_length()
        return super().sum_of_products(xs, ys, start)

    def _check_length(self) -> None:
        if len(self.operations) > _MOST:
            self.fail("many operations")

    def position(self, operand: Any, primitive: Primitive | None = None, index: int = 0) -> int:
        """The position of an operand, which is no element of an array that has none."""
        if isinstance(operand, Symbol) and operand._tape is not self:
            self.fail("an element")
        return super().position(operand, primitive, index)

    def made(self, by: Any, operands: Any, shape: tuple[int, ...], distances: Sequence[Distance] = ()) -> Any:
        """What an operation makes: an array, or one number.

        Args:
            by: what says which operation it is.
            operands: of the operation.
            shape: of what it makes.
            distances: how far on the elements are that one is made of, and how long the axes are where that may be.
        """
        self._check_length()
        position = self.operations.append_input((by, self.told(operands), shape))
        arrays, has_numbers = _arrays_in(operands)
        rows: Any = rows_in_use()
        rows.moved(position, arrays, distances)
        if arrays and not has_numbers and self.known_arrays.issuperset(arrays):
            if by != "[]":
                self.fail("what is computed of as many known numbers as there are rows")
            self.known_arrays.add(position)
        symbol = self._symbol(position, Symbol)
        if not shape:
            return symbol
        array = np.empty((), dtype=object)
        array[()] = self.nothing
        made: Any = np.broadcast_to(array, shape).view(Outlined)
        made.position = position
        return made

    def _distance(self, nested: Any) -> int:
        """The sum of the numbers, and of the lengths of short arrays, among operands.

        Numbers count from the nearer end: all but the last 30 elements are 30 away from all of them.
        """
        return sum(map(self._distance_of_one, _operands_in(nested)))

    def _distance_of_one(self, operand: Any) -> int:
        if isinstance(operand, slice):
            return self._distance([operand.start, operand.stop])
        if type(operand) in (int, float) or isinstance(operand, np.number):
            number = abs(float(operand))
            return int(min(number, abs(self.count - number))) if number < self.count else self.count
        if isinstance(operand, np.ndarray) and operand.ndim:
            far = self._distance_of_one(int(np.max(np.abs(operand), initial=0))) if operand.dtype.kind in "iu" else 0
            return far + (len(operand) if 2 * len(operand) < self.count else 0)
        return 0

    def standing_for(self, number: int, rows: Any, bounds: Any) -> Any:
        """What stands for an array or a list of known numbers; see Tape."""
        if is_array(rows):
            return self.made(("known", number, rows.dtype.str, bounds), None, rows.shape)
        return self.list_of(("known", number), rows)

    def list_of(self, by: Any, rows: list[Any]) -> Any:
        """What stands for a list of numbers, or of rows of them."""
        row = rows[0]
        shape = None if type(row) in (float, int) else (type(row), len(row))
        return OutlinedList((*by, type(row).__name__), len(rows), shape, self.nothing)

    def told(self, x: Any) -> Any:
        """What stands for operands and settings, to be compared."""
        kind = getattr(type(x), "stands_for", type(x))
        if kind is Outlined:
            if x.position is None:
                self.fail("a view of an array")
            return "array", x.position, x.shape
        if kind is OutlinedList:
            return x.by, len(x)
        if kind is Index:
            return "index", x.begin, x.last
        if isinstance(x, Value):
            return "number", self.position(x)
        if kind in (list, tuple) or is_named_tuple(kind):
            told = map(self.told, x) if len(x) < max(self.count, FEW) else self.fail("a list of known numbers")
            return kind(told) if kind in (list, tuple) else (kind.__name__, *told)
        if kind is dict:
            return {name: self.told(part) for name, part in x.items()}
        if kind is slice:
            return slice(self.told(x.start), self.told(x.stop), self.told(x.step))
        if isinstance(x, np.ndarray):
            if x.dtype == object and x.size > _MOST_OBJECTS:
                self.fail("an array of objects")
            return (x.shape, list(map(self.told, x.ravel().tolist()))) if x.dtype == object else np.asarray(x)
        if x is None or x is Ellipsis or kind in (int, float, bool, str, type):
            return x
        if isinstance(x, np.generic):
            return np.asarray(x)
        return self.fail(f"an operand of the class {kind.__name__}")

    def of_elements(self, ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """What a function of NumPy that works element by element makes of arrays."""
        inputs = known_rows(inputs)
        if not any(isinstance(x, Outlined) or self._is_as_long(x) for x in inputs):
            return super().of_elements(ufunc, method, inputs, settings)
        plain, name = [_stand_in(x) for x in inputs], ufunc.__name__
        given = {key: x for key, x in settings.items() if x is not None}
        if "out" in given or "where" in given or ufunc.nout > 1:
            self.fail(f"np.{name} with out= or where=")
        if method == "__call__" and ufunc.signature is None:
            return self.made(name, (inputs, given), np.broadcast_shapes(*map(np.shape, plain)))
        is_known = method in ("reduce", "accumulate") and name in _REDUCED
        if ufunc is not np.matmul and not is_known:
            self.fail(f"np.{name}.{method}")
        return self.made((name, method), (inputs, given), np.shape(getattr(ufunc, method)(*plain, **settings)))

    def _is_as_long(self, x: Any) -> bool:
        """Whether it is an array of plain numbers, with about as many as there are rows, such as np.ones(len(rows))."""
        return type(x) is np.ndarray and x.dtype != object and any(abs(n - self.count) <= EDGE for n in x.shape)

    def of_arrays(self, function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """What another function of NumPy makes of arrays."""
        arguments, settings = known_rows((arguments, settings))
        if function in (np.shape, np.ndim, np.size):
            return function(*_stand_in(arguments), **settings)
        if function in _LINEAR and not settings:
            return self.made(function.__name__, arguments, _LINEAR[function](*_stand_in(arguments)))
        if function not in _FUNCTIONS:
            self.fail(f"np.{function.__name__}")
        if (
            function is np.interp
            and max(map(np.size, _stand_in([*arguments[1:], *settings.values()]))) > _LARGEST_TABLE
        ):
            self.fail("np.interp in a table of many numbers")
        made = function(*_stand_in(arguments), **_stand_in(settings))
        if isinstance(made, (list, tuple)):
            self.fail(f"several arrays of np.{function.__name__}")
        given = arguments, settings
        if function in _LIKE and not _arrays_in((arguments[1:], settings))[1]:
            return self.known_array((function.__name__, self.told(given)), np.shape(made))
        distances = [(self._distance(given), (*np.shape(made), *_lengths(given)))] if function in _MOVING else ()
        return self.made(function.__name__, given, np.shape(made), distances)

    def known_array(self, by: Any, shape: tuple[int, ...]) -> Any:
        """An array of known numbers, of which there are as many as rows."""
        made = self.made(by, None, shape)
        self.known_arrays.add(made.position)
        return made

    def transformed(self, name: str, f: Any, arguments: tuple[Any, ...], settings: dict[str, Any], by: Any) -> Any:
        """Derivatives, which follow from what the function does: they have a shape, and say of what they are."""
        result = f(*arguments, **settings)
        if name == "jvp":
            return result, self._like(result, (name, self.told([result, arguments, by])))
        chosen = [arguments[number] for number in (by if isinstance(by, tuple) else (by,))]
        made_by = name, self.told([result, chosen, by])
        if name == "vjp":
            return result, lambda cotangent: tuple([self._like(x, (made_by, self.told(cotangent))) for x in chosen])
        if name == "grad" and not isinstance(result, Value):
            self.fail("the gradient of what is no number")
        found = [self._like(result, made_by, argument) for argument in chosen]
        joined = tuple(found) if isinstance(by, tuple) else found[0]
        return (result, joined) if name == "grad" else joined

    def _like(self, nested: Any, by: Any, other: Any = None, around: tuple[int, ...] = ()) -> Any:
        """New numbers and arrays in the structure of nested ones; for each of these, in that of others if there are."""
        if isinstance(nested, (tuple, dict)) or type(nested) is list:
            if around:
                self.fail("the derivative of an array by a list")
            return _in_each(nested, lambda part: self._like(part, by, other))
        if not isinstance(nested, (Value, Outlined, float)):
            self.fail("the derivative of, or by, what is no number or array")
        shape = (*around, *(nested.shape if isinstance(nested, Outlined) else ()))
        return self.made(by, None, shape) if other is None else self._like(other, by, None, shape)

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """The element at an index: a number, or a row of numbers."""
        if (row := shape_of_item(self, elements[0])) is None:
            return self.made("take", (elements, index), ())
        return OutlinedList(("take", self.told((elements, index))), len(elements), row, self.nothing)[0]

    def copies(self, scalars: Sequence[Any], source: Any) -> NoReturn:
        """Give up: a derivative is asked for inside of the function."""
        self.fail("a transform")

    def has_taken(self, item: Any) -> bool:
        """Whether it is a row that was taken from a list."""
        return any(item is row for row, _ in self.taken)

    def written(self, result: Any) -> Any:
        """All that was done, with what the function returned."""
        if any(len(row) != len(before) or any(map(is_not, row, before)) for row, before in self.taken):
            self.fail("a changed row")
        entries = [self.operations[position] for position in range(len(self.operations))]
        return entries, list(self.tables), list(self.rows), self.told(result)


class _Nothing(Tape):
    """The tape of what is in the place of elements, about which nothing may be asked."""

    takes_lanes = False

    def __init__(self, outlined: OutlineTape) -> None:
        super().__init__()
        self._outlined = outlined

    def asked(self) -> NoReturn:
        """Give up: somebody asks for the truth of an element."""
        self._outlined.fail("an element")

    def tell_apart(self, symbol: Symbol) -> NoReturn:
        """Give up: somebody asks which element it is."""
        self._outlined.fail("an element")


class _Answered(Questions):
    """What a function asks of numbers of an outline, which have no values: all answers are given.

    Args:
        tape: of the outline.
        given: the answers.
    """

    def __init__(self, tape: OutlineTape, given: Sequence[float]) -> None:
        super().__init__(tape, (), 0.0, given)

    def truth(self, position: int, is_bool: bool) -> bool:
        """Whether a number is not 0."""
        return bool(self._answer("truth", position))

    def whole(self, position: int, of_number: Callable[[float], int]) -> int:
        """The int of a number."""
        return int(self._answer(of_number.__name__, position))

    def _answer(self, what: str, position: int) -> float:
        if (answer := self.next_given()) is None:
            self._tape.has_failed = True
            raise AskedError
        self._asked.append(Question(position, answer, "", what, "", is_truth=True))
        self._tape.operations.append_input(("asked", what, position))
        return answer


class Outlined(SymbolArray):
    """An array with a shape and no elements.

    Attributes:
        position: where the tape says what it is made by; None for what NumPy has made of another one by itself.
    """

    position: int | None = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function that works element by element gives."""
        return _tape().of_elements(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, types: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy gives."""
        return _tape().of_arrays(function, arguments, settings)

    def of_terms(self, name: str, *others: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """What a function of sequences, such as mg.mean, makes of them: a number; or as many, of mg.softmax.

        With an axis, it makes that of each row along it.
        """
        if self.ndim != 1 and axis is None:
            _tape().fail(f"{name} of an array with axes")
        axes = range(self.ndim) if axis is None else checked_axes(axis, self.ndim)
        shape = self.shape
        if not all(shape[each] for each in axes):
            _tape().fail(f"{name} of nothing")
        if name != "softmax":
            left = [(each in axes, length) for each, length in enumerate(shape) if keepdims or each not in axes]
            shape = tuple(1 if is_reduced else length for is_reduced, length in left)
        return _tape().made(name, (self, others, axis, keepdims), shape)

    @staticmethod
    def of_rows(name: str, sides: tuple[Any, ...], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """What a loss of predictions and targets makes of them: a number."""
        usual = -1 if name == "cross_entropy" else None
        if settings.get("axis", usual) != usual or arguments:
            _tape().fail(f"{name} with an axis")
        return _tape().made(name, (known_rows(sides), settings), ())

    @staticmethod
    def of_each(primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """What a primitive gives for each element."""
        if primitive not in OF_LIBRARY:
            _tape().fail("a primitive of the user")
        operands = known_rows(operands)
        return _tape().made(primitive.name, operands, np.broadcast_shapes(*map(np.shape, map(_stand_in, operands))))

    def __getitem__(self, index: Any) -> Any:
        """The elements at an index, which is part of the outline."""
        tape = _tape()
        parts = index if type(index) is tuple else (index,)
        if not all(map(_is_index, parts)):
            tape.fail("an index of this kind")
        first = _first(parts[0], len(self)), *parts[1:]
        some = tuple([np.zeros(np.shape(one), int) if _is_unknown_index(one) else one for one in first])
        # This library takes the items of vmap and scan, from any position
        chosen = [] if is_seen_by_library() else [n for n, part in enumerate(parts) if type(part) in (int, slice)]
        are_all = len(chosen) == len(parts)  # else nobody knows which axis each is of
        distances = [(tape._distance(parts[n]), self.shape[n : n + 1] if are_all else self.shape) for n in chosen]
        return tape.made("[]", (self, index), np.shape(_stand_in(self)[some]), distances)

    def __setitem__(self, index: Any, item: Any) -> None:
        """Give up: arrays in an outline do not change."""
        _tape().fail("a changed array")

    def __iter__(self) -> Any:
        """The rows, if they are few."""
        if len(self) > FEW:
            _tape().fail("a loop over an array")
        return iter([self[row] for row in range(len(self))])

    def tolist(self) -> Any:
        """Something to take elements of, for this library."""
        if self.ndim != 1 or not is_seen_by_library():
            _tape().fail("tolist")
        return self

    def tobytes(self, order: Any = "C") -> bytes:
        """Nothing, for this library, which compares what a loop closes over before and after."""
        return b"" if is_seen_by_library() else _tape().fail("tobytes")

    def astype(self, dtype: Any, *arguments: Any, **settings: Any) -> Any:
        """The same array: its numbers are floats; or one of bools."""
        if np.dtype(dtype) == bool:
            return _tape().made("astype", (self, "bool"), self.shape)
        if np.dtype(dtype) != np.float64:
            _tape().fail("astype")
        return self


class OutlinedList(list[Any]):
    """A list with a length, and no elements but for those that a loop asks for.

    Args:
        by: what says which list it is.
        length: how long it is.
        row: of rows of numbers, their class and length, or shape; None for a list of numbers.
        nothing: what is in the place of elements.

    Attributes:
        changes: how often it was changed.
    """

    def __init__(self, by: Any, length: int, row: tuple[Any, Any] | None, nothing: Any) -> None:
        super().__init__([nothing] * length)
        self.by, self.row, self._nothing, self.changes = by, row, nothing, 0

    def __getitem__(self, index: Any) -> Any:
        """An element, or a part of the list."""
        tape, found = _tape(), super().__getitem__(_first(index, len(self)))
        by = self.by, len(self), tape.told(index)
        if isinstance(found, list):
            return OutlinedList(by, len(found), self.row, self._nothing)
        if self.row is None:
            return tape.made(by, None, ())
        kind, width = self.row
        if kind is Outlined:
            return tape.made(by, None, width)
        row = kind([tape.made((*by, column), None, ()) for column in range(width)])
        tape.taken.append((row, tuple(row)))
        return row

    def pop(self, index: Any = -1) -> Any:
        """The element at an index, which is not in the list any more."""
        found = self[index]
        del self[index]
        return found

    def shape_of_row(self) -> tuple[int, ...]:
        """The shape of an element, in an array of the list."""
        if self.row is None:
            return ()
        kind, width = self.row
        return width if kind is Outlined else (width,)

    def __iter__(self) -> Any:
        """The elements, if they are few; nothing that can be used, for this library, which looks at what is reached."""
        if is_seen_by_library():
            return super().__iter__()
        if len(self) >= FEW // 2:
            _tape().fail("a loop over a list")
        return iter([self[index] for index in range(len(self))])

    def of_terms(self, name: str, *others: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """What a function of sequences makes of its numbers: a number."""
        if self.row is not None or name == "softmax" or axis is not None or keepdims:
            _tape().fail(f"{name} of a list")
        return _tape().made(name, (self, others), ())


def shape_of_item(tape: OutlineTape, item: Any) -> Any:
    """What a row of an OutlinedList is; see there."""
    kind = type(item)
    if is_array(item):
        return Outlined, item.shape
    if issubclass(kind, (list, tuple)) and all(isinstance(part, (Value, float)) for part in item):
        return list if issubclass(kind, list) else tuple, len(item)
    return None if isinstance(item, Value) or kind is float else tape.fail("a list of something else than numbers")


class Index(Counted):
    """The number of an iteration, of which an outline has the first ones.

    Args:
        loop: whose iterations are counted, with the number of the one that runs; None where that is unknown.
        counted, times, plus: see Counted.
    """

    def __init__(self, loop: Any, counted: range, times: int = 1, plus: int = 0) -> None:
        super().__init__(counted, times, plus)
        self.loop = loop

    @property
    def begin(self) -> int:
        """What it is in the first iteration."""
        return self.counted.start * self.times + self.plus

    @property
    def last(self) -> int:
        """What it is in the last iteration."""
        return (self.counted.stop - 1) * self.times + self.plus

    def now(self) -> int:
        """What it is in the iteration that runs."""
        if self.loop is None:
            _tape().fail("a count")
        return (self.counted.start + self.loop.number) * self.times + self.plus

    def changed(self, times: int, plus: int) -> Index:
        """One with another factor, to which something else is added."""
        return Index(self.loop, self.counted, times, plus)

    def itself(self) -> Any:
        """What stands for the number of the iteration."""
        rows: Any = rows_in_use()
        numbers = rows.numbers(self.counted)
        return numbers[Index(None, range(len(numbers)))]  # of a plain list, it gives up

    def __bool__(self) -> bool:
        """Whether it is not 0, now and in all iterations that follow."""
        return self.__ne__(0)


def _is_index(part: Any) -> bool:
    """Whether it is part of an index; what is in an array without elements, a trace looks at."""
    if part is None or part is Ellipsis or isinstance(part, (int, slice)) or _is_unknown_index(part):
        return True
    return type(part) is np.ndarray and part.dtype.kind in "iu"


def _is_unknown_index(part: Any) -> bool:
    return type(part) is Outlined or is_unknown(part)


def _first(index: Any, length: int) -> Any:
    """An index, in the first iteration, where in each there is an element at it, or there are so many from it on."""
    if type(index) is slice and type(index.start) is type(index.stop) is Index and index.step is None:
        start, stop = index.start, index.stop
        is_same = start.loop is stop.loop and start.times == stop.times == 1
        if not is_same or not 0 <= start.begin <= stop.begin or stop.last > length:
            _tape().fail("a part beyond the rows")
        return slice(start.begin, stop.begin)
    if type(index) is not Index:
        return index
    is_inside = min(index.begin, index.last) >= 0 and max(index.begin, index.last) < length
    return index.begin if is_inside else _tape().fail("an index beyond the rows")


def _noted(name: str) -> Any:
    """A method of arrays that is part of the outline."""

    def method(self: Outlined, *arguments: Any, **settings: Any) -> Any:
        made = getattr(_stand_in(self), name)(*_stand_in(arguments), **_stand_in(settings))
        return _tape().made(name, (self, arguments, settings), np.shape(made))

    return method


def _compared(name: str) -> Any:
    """A comparison of the number of an iteration with an integer."""

    def method(self: Index, other: Any) -> Any:
        if type(other) is not int or self.times != 1:
            return _tape().fail("a count")
        now = self.now()
        self.loop.compared.add(other - self.begin)
        return getattr(int, name)(now, other)

    return method


def _changed(name: str) -> Any:
    """A method that changes a list, which is part of the outline."""

    def method(self: OutlinedList, *arguments: Any) -> Any:
        tape = _tape()
        if name in _GIVEN_ITEMS:
            given = arguments[-1]
            is_one = name in ("append", "insert") or (name == "__setitem__" and type(arguments[0]) is not slice)
            if not is_one and not isinstance(given, (list, tuple)):
                tape.fail("a list that is changed by something else than a list")
            is_known = isinstance(given, OutlinedList) and not is_one
            rows = [given.row] if is_known else [shape_of_item(tape, each) for each in ([given] if is_one else given)]
            if any(row != self.row for row in rows):
                tape.fail("a list of several kinds of items")
        self.by = self.by, len(self), name, tape.told(arguments)
        self.changes += 1
        return getattr(list, name)(self, *arguments)

    return method


def _refused(name: str) -> Any:
    def method(self: Any, *arguments: Any, **settings: Any) -> Any:
        return _tape().fail(name)

    return method


for _name in ("sum", "mean", "prod", "max", "min", "dot", "reshape", "ravel", "flatten", "transpose", "copy",
              "squeeze", "swapaxes", "var", "std", "cumsum", "cumprod"):  # fmt: skip
    setattr(Outlined, _name, _noted(_name))
for _name in ("item", "fill", "round", "view", "put", "resize"):
    setattr(Outlined, _name, _refused(_name))
_GIVEN_ITEMS = ("append", "insert", "__setitem__", "__iadd__", "extend")
for _name in (*_GIVEN_ITEMS, "__delitem__", "__imul__", "clear", "reverse"):
    setattr(OutlinedList, _name, _changed(_name))
for _name in ("remove", "sort"):
    setattr(OutlinedList, _name, _refused(_name))
_COMPARISONS = ("__eq__", "__ge__", "__gt__", "__le__", "__lt__", "__ne__")
_OF_OBJECTS = {*dir(object)} - {"__format__", "__hash__", "__repr__", "__str__"}
for _name in {*dir(int)} - _OF_OBJECTS - {*vars(Counted), "__bool__"}:
    setattr(Index, _name, _refused("a count"))
for _name in _COMPARISONS:
    setattr(Index, _name, _compared(_name))
Outlined.T = property(lambda array: array.transpose())  # type: ignore[assignment, method-assign]


def _tape() -> OutlineTape:
    tape = recorder_on_top()
    if not isinstance(tape, OutlineTape):
        raise OutlineError("another recorder")
    return tape


def _lengths(nested: Any) -> tuple[int, ...]:
    """How long the axes of arrays, and lists of rows, among operands are."""
    shapes = [(len(x),) if isinstance(x, OutlinedList) else np.shape(_stand_in(x)) for x in _operands_in(nested)]
    return tuple(chain.from_iterable(shapes))


def _stand_in(x: Any) -> Any:
    """Numbers in the place of symbols, in nested lists, tuples and dicts."""
    if isinstance(x, (list, tuple, dict)):
        return _in_each(x, _stand_in)
    if isinstance(x, np.ndarray) and x.dtype == object:
        return np.broadcast_to(1.0, x.shape)
    return 1.0 if isinstance(x, Value) else x


class _OneIteration(Iterations):
    """Loops, of which an outline has one iteration."""

    def of(self, function: Callable[..., Any], count: int, keeps_all: bool = False) -> Callable[..., Any]:
        """The function."""
        return function

    def mapped(self, function: Callable[..., Any], item: Callable[[int], Any], count: int) -> list[Any]:
        """Nothing: ``at_once`` has the results of all iterations."""
        return []

    def blocks(self) -> NoReturn:
        """What runs a scan in blocks: it has no outline."""
        _tape().fail("checkpoints")

    def deciding(self, number: Any) -> _Decisions | None:
        """What has the outline of a decision, if a program would decide on a number: not where there are answers."""
        questions = _tape().questions
        is_followed = questions is not None and questions.next_given() is not None
        return _Decisions() if is_unknown(number) and not is_followed else None

    def at_once(self, run: Callable[[Any], Any], item: Callable[[int], Any], count: int, axis: Any) -> Any:
        """What all iterations of vmap give, put together."""
        tape = _tape()
        begin, questions = len(tape.operations), tape.questions
        is_followed = questions is None or questions.are_given() or count < FEWEST_CHOOSING
        with unchanged(run):
            each = run if is_followed else partial(choosing_of(tape).of, run)
            result = each(_unknown(item(0), count))
        return self._stacked(result, ("vmap", begin), count, axis)

    def handed_on(
        self, step: Callable[[Any, Any], Any], state: Any, take: Callable[[int], Any], count: int, reverse: bool
    ) -> Any:
        """The last state of scan, and all outputs."""
        by = "scan", len(_tape().operations), reverse, _tape().told(state)
        with unchanged(step):
            after, _ = step(state, _unknown(take(0), count))
            after, output = step(self._again(after, state, by), _unknown(take(1), count))
        return self._again(after, state, by), self._stacked(output, by, count, 0)

    def _again(self, nested: Any, before: Any, by: Any) -> Any:
        """A state after other iterations, of the same structure."""
        if isinstance(nested, (list, tuple)):
            return remade(nested, [self._again(*parts, by) for parts in zip(nested, before, strict=True)])
        if isinstance(nested, dict):
            return remade(nested, [self._again(part, before[name], by) for name, part in nested.items()])
        if not isinstance(nested, Value) and not (is_array(nested) and nested.dtype == object):
            return nested if np.array_equal(nested, before) else _tape().fail("a state that counts")
        return _tape().made(by, nested, np.shape(nested) if is_array(nested) else ())

    def _stacked(self, nested: Any, by: Any, count: int, axis: Any) -> Any:
        """What one iteration gives, for all of them."""
        if nested is None:
            return None
        if isinstance(nested, (tuple, dict)):
            return _in_each(nested, lambda part: self._stacked(part, by, count, axis))
        shape = np.shape(nested) if is_array(nested) else ()
        if type(nested) in (int, float) and isinstance(axis, int):
            return _tape().known_array((by, nested, axis), (count,))
        if not (isinstance(nested, Value) or is_array(nested)) or not isinstance(axis, int):
            return _tape().fail("an iteration that gives no number or array")
        end = axis + len(shape) + 1 if axis < 0 else axis
        return _tape().made((by, axis), nested, (*shape[:end], count, *shape[end:]))


class _Decisions:
    """Decisions of a program: all branches are in an outline, and one iteration of a loop."""

    def chosen(
        self, number: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...], mixes: bool = False
    ) -> Any:
        """What one of the branches returns."""
        results = []
        for branch in branches:
            with unchanged(branch):
                results.append(branch(*operands))
        return _unknown_like(results[0], ("choice", _tape().told([number, results])))

    switched = chosen

    def repeated(self, condition: Any, body: Any, state: Any, limit: int | None) -> Any:
        """The last state of a loop."""
        tape = _tape()
        by = "while", len(tape.operations), limit, tape.told(state)
        given = _unknown_like(state, by)
        with unchanged(condition), unchanged(body):
            found = [condition(given), body(given)]
        return _unknown_like(state, (by, tape.told(found)))


def choosing_of(tape: OutlineTape, of_branch: Callable[[Any], Any] | None = None) -> Choosing:
    """What has the outline of all branches of what asks for the truth of numbers."""
    return Choosing(tape, _Decisions().chosen, None, of_branch)


def _unknown_like(nested: Any, by: Any) -> Any:
    """Unknown numbers and arrays in the structure of others."""
    if isinstance(nested, (list, tuple, dict)):
        return _in_each(nested, lambda part: _unknown_like(part, by))
    return _tape().made(by, None, np.shape(nested) if is_array(nested) else ())


@contextmanager
def unchanged(function: Callable[..., Any]) -> Iterator[None]:
    """Give up if a function changes something that it can reach, and so may do something else each time."""
    reached = ClosedOver([("", function)])
    yield
    if not reached.is_as_before() or reached.sources.generators:
        _tape().fail("a loop that remembers something")


def _in_each(nested: Any, function: Callable[[Any], Any]) -> Any:
    """A list, tuple or dict like this one, with what a function gives for each item."""
    return remade(nested, [function(part) for part in (nested.values() if isinstance(nested, dict) else nested)])


def _unknown(nested: Any, count: int) -> Any:
    """What an iteration is given, with symbols for floats that are known: by those, it may do something else each time.

    Args:
        nested: numbers, arrays and Values.
        count: how many iterations there are. Of many, the known numbers are as many as there are rows.
    """
    if isinstance(nested, (list, tuple, dict)):
        return _in_each(nested, lambda part: _unknown(part, count))
    if isinstance(nested, float) and count < FEW:
        return _tape().made("known in a loop", None, ())
    if nested is not None and not isinstance(nested, (Value, Outlined)):
        _tape().fail("a loop over known numbers")
    return nested


def farthest(rows: int, moves: Sequence[Move], of_fewer: Sequence[Move]) -> float:
    """How far on elements are, along axes that get longer with the rows, that others are made of: in rows.

    Args:
        rows: how many there are.
        moves: the operations of an outline: position, operands, and how far each is along which axes.
        of_fewer: those of an outline of fewer rows; if it has others, nobody asks.
    """
    found: dict[int, float] = {}
    for (position, arrays, distances), (*_, others) in zip(moves, of_fewer, strict=False):
        own = 0.0
        for (far, lengths), (_, less) in zip(distances, others, strict=False):
            growing = [length for length, other in zip(lengths, less, strict=False) if length != other]
            own += far * max(1.0, rows / min(growing)) if growing else 0.0
        found[position] = own + max([found.get(array, 0.0) for array in arrays], default=0.0)
    return max(found.values(), default=0.0)


def outline(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    named: dict[str, Any],
    *,
    rows: int,
    reached: ClosedOver | None = None,
    answers: Sequence[float] = (),
) -> Any:
    """What a function does to whole arrays.

    Args:
        function: the function; of a transform, the one that is differentiated.
        arguments: numbers, Values and arrays of floats, in lists, tuples and dicts.
        named: the named ones.
        rows: how many there are; lists of so many floats, or of rows of floats, have no elements either.
        reached: what the function can reach, if it has other code, for loops in Python.
        answers: to what it asks of numbers.

    Returns:
        Nested lists and tuples. Those for two numbers of rows differ by these numbers if the function does the same for
        both.

    Raises:
        OutlineError: if there is no outline, or the function raises something.
        AskedError: if it asks for more than there are answers.
        Exception: what a handler of a signal raises meanwhile.
    """
    while hasattr(function, "differentiated"):
        function = function.differentiated
    tape = OutlineTape(rows, reached)
    tape.questions = _Answered(tape, answers)
    try:
        with tracing(tape), taking(_OneIteration()):
            result = function(*_given(tape, arguments, rows), **_given(tape, named, rows))
            written = tape.written(result)
            if tape.questions.next_given() is not None:
                tape.fail("another number of questions")
    except OutlineError:
        raise
    except Exception as error:
        if is_of_handler(error):
            raise
        raise OutlineError(repr(error)) from None
    finally:
        has_failed = tape.has_failed
        tape.finish()
    if has_failed:
        raise OutlineError("what was caught")
    return written


def _given(tape: OutlineTape, nested: Any, rows: int) -> Any:
    """Arguments with arrays that have no elements, and symbols for numbers."""
    kind = type(nested)
    if kind is list and len(nested) == rows and shape_of_numbers(nested):
        return tape.list_of(("argument", len(tape.operations)), nested)
    if kind in (list, tuple, dict) or is_named_tuple(kind):
        return _in_each(nested, lambda part: _given(tape, part, rows))
    if kind is np.ndarray and (nested.dtype == float or nested.dtype.kind in "iu"):
        return tape.made(("argument", nested.dtype.str), None, nested.shape)
    if kind in (float, int, Value):
        return tape.argument(len(tape.operations), nested, kind, SHORT)
    if isinstance(nested, (Value, np.ndarray, np.generic, list, tuple, dict)):
        tape.fail(f"an argument of the class {kind.__name__}")
    return nested
