"""Lanes: an operation on arrays of symbols, recorded for all elements at once.

For ``x * y`` of two arrays, NumPy would call an operator for each element. Here one symbol stands for all elements of
an array: its position is an array of positions, a lane for each element. Operators, functions of micrograd and the
rules of numpy_functions.py run once on such symbols, as on single ones, and each operation is recorded for all lanes:

    x           lanes at 0, 1, 2
    y           lanes at 3, 4, 5
    x * y       mul  0 3, 1 4, 2 5, at 6, 7, 8

These are the operations that NumPy's loops would record, on the same operands, so the numbers are bitwise equal. What
depends on single elements (integers whose range is checked, elements of several kinds, questions about numbers) is
declined: then NumPy's loops go through the elements, and errors are raised there.
"""

from __future__ import annotations

import math
import operator
from functools import cache
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from micrograd._support.checks import Operand
from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.ir.entries import DIFFERENTIATED_AS, INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE
from micrograd.compiler.tracing.detached_tape import DetachedTape
from micrograd.compiler.tracing.promotion import FLOAT64
from micrograd.compiler.tracing.rewrites import REWRITES
from micrograd.compiler.tracing.symbols import (
    BoolSymbol,
    FloatSymbol,
    Given,
    IntSymbol,
    Picked,
    Symbol,
    class_of,
    kind_of_result,
)
from micrograd.compiler.tracing.tape import Tape
from micrograd.engine import further_primitives, primitives, special_functions
from micrograd.engine.numpy_functions import CHOICES, FUNCTIONS, RULES, picked
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import recorder_on_top, using
from micrograd.engine.tracer import Tracer
from micrograd.engine.value import Value
from micrograd.engine.value_arrays import IDENTITIES, OPERATORS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.numbers import Integers

    Array = np.ndarray[Any, Any]

FEWEST = 16  # elements; of fewer, NumPy's loops are as quick
_LONG = 4  # terms: to write a dot product takes less than its products and sums one by one
_LARGEST_INT = 2**53  # not all of the larger ones are floats
_position_of, _tape_of = attrgetter("_position"), attrgetter("_tape")
_new: Callable[[Any], Any] = object.__new__

# The rules of a user's primitives may do something else each time they run.
OF_LIBRARY = {INPUT, LITERAL, SUM_OF_PRODUCTS, TAKE, DIFFERENTIATED_AS}.union(
    each
    for module in (primitives, further_primitives, special_functions)
    for each in vars(module).values()
    if isinstance(each, Primitive)
)
# Their rules do not ask whether an operand is a number, or what they give is rounded alike
TAKE_LITERALS = frozenset(
    (
        *(primitives.add, primitives.sub, primitives.mul, primitives.div, primitives.where),
        *(primitives.maximum, primitives.minimum, primitives.less, primitives.less_equal),
    )
)


class _Declined(Exception):  # noqa: N818  # nobody sees it
    """Something depends on single elements, so NumPy's loops have to go through them."""


# What is wrong with operands or settings is found again, and said, element by element; nothing else is caught
_WRONG = (_Declined, TraceError, ArithmeticError, IndexError, TypeError, ValueError)


class LanesTape(Tracer):
    """Records on a tape for many symbols at once.

    Attributes:
        tape: where it records.
        size: how many lanes there are.
        observer, decides_at_once: see Tape.
        checked: takes the positions of results that must be finite.
        written: the operations so far: the primitive, the positions of its operands (an array of lanes, or one for all)
            and its own positions.
    """

    def __init__(self, tape: Tape, size: int) -> None:
        self.tape, self.size = tape, size
        self.observer, self.decides_at_once = tape.observer, tape.decides_at_once
        self.checked = _Checked(tape.checked)
        self.written: list[tuple[Primitive, list[Any], Integers]] = []

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down for all lanes."""
        if not any(map(is_lanes, operands)):
            return self.tape.apply(primitive, *operands)
        kind = kind_of_result(primitive, operands)
        if issubclass(kind, IntSymbol):
            raise _Declined  # whose range is checked one by one
        if primitive in REWRITES and (instead := REWRITES[primitive](self, *operands)) is not None:
            return self._symbol(instead._position, kind)
        positions = [self.position(operand, primitive, index) for index, operand in enumerate(operands)]
        begin = self.tape.operations.append_block([primitive], 1, self.size, [positions])
        made = np.arange(begin, begin + self.size)
        self.written.append((primitive, positions, made))
        return self._symbol(made, kind)

    compared, of_elements, of_arrays = Tape.compared, Tape.of_elements, Tape.of_arrays

    def position(self, operand: Any, primitive: Primitive | None = None, index: int = 0) -> Any:
        """The positions of an operand; a single one where it is the same for all lanes."""
        if not is_lanes(operand):
            return self.tape.position(operand, primitive, index)
        if operand._position.dtype == object:  # Values, whose role is noted when they are used first
            positions = self.tape.positions_read(operand._position.ravel().tolist(), primitive, index)
            operand._position = np.array(positions, dtype=np.int64).reshape(operand._position.shape)
        return operand._position

    def _symbol(self, position: Any, kind: type[Symbol]) -> Symbol:
        """A symbol at these positions."""
        made: Any = kind
        symbol = _new(made if hasattr(made, "of_lane") else _lanes_of(made))
        # one may be that of all lanes
        symbol._position = np.full(self.size, position) if isinstance(position, int) else position
        symbol._tape, symbol._is_used = self, True
        return symbol

    def tell_apart(self, symbol: Symbol) -> NoReturn:
        """Decline: somebody asks which symbol this is."""
        raise _Declined

    def recorder(self) -> Tracer:
        """What writes for all lanes in the place of the recorder in use."""
        recorder = recorder_on_top()
        return DetachedTape(self, recorder.remembers) if isinstance(recorder, DetachedTape) else self


class _Checked:
    """Notes positions of many lanes in the ``checked`` of a tape, as single symbols do."""

    def __init__(self, checked: dict[int, None]) -> None:
        self._checked = checked
        self.noted: list[Integers] = []

    def __setitem__(self, positions: Integers, _: None) -> None:
        self.noted.append(positions)
        self._checked.update(dict.fromkeys(positions.tolist()))


def is_lanes(x: object) -> bool:
    """Whether it is a symbol that stands for many."""
    return hasattr(type(x), "of_lane")


@cache
def _lanes_of(kind: Any) -> type[Symbol]:
    """The class of symbols that stand for many of a class."""
    return type(kind.__name__, (kind,), {"__slots__": (), "of_lane": kind, "__hash__": kind.__hash__})


# Arrays of symbols, and lanes for them


class _Elements(NamedTuple):
    """The elements of an array.

    Attributes:
        kind: the class of the symbols.
        positions: where they are; or an array of Values from outside, and of symbols that an iteration is given.
        is_known: whether they are literals.
    """

    kind: type[Symbol]
    positions: Array
    is_known: bool = False


_OWN: set[type[Symbol]] = {Symbol, Picked, FloatSymbol, class_of(FLOAT64), BoolSymbol}
_KINDS: dict[Any, type[Symbol]] = {**{kind: kind for kind in _OWN}, Value: Symbol, Given: Symbol}


def _tape_in_use() -> Tape:
    """The tape that operators write on."""
    recorder = recorder_on_top()
    tape = recorder.tape if isinstance(recorder, DetachedTape) else recorder
    if not (isinstance(tape, Tape) and tape.takes_lanes and tape.is_open):
        raise _Declined
    return tape


def _elements(tape: Tape, array: Any) -> _Elements:
    """The elements of an array, if they are all symbols of one kind on the tape, all Values, or all numbers."""
    array = plain_array(array)
    if array.dtype != object:
        return _literals(tape, array)
    elements = array.ravel().tolist()
    classes = set(map(type, elements))
    kinds = {*map(_KINDS.get, classes)}
    if len(kinds) != 1 or None in kinds:
        raise _Declined
    kind: Any = kinds.pop()
    if classes <= _OWN and set(map(id, map(_tape_of, elements))) == {id(tape)}:
        return _Elements(kind, np.fromiter(map(_position_of, elements), np.int64, len(elements)).reshape(array.shape))
    if classes != {Value} and tape is tape.outermost:
        raise _Declined
    return _Elements(kind, array)


def _literals(tape: Tape, array: Array) -> _Elements:
    """Numbers in an array as literals, each of which is written once."""
    if array.dtype.kind not in "iu" and array.dtype != FLOAT64:
        raise _Declined
    if array.dtype.kind in "iu" and array.size and max(abs(int(array.min())), abs(int(array.max()))) > _LARGEST_INT:
        raise _Declined
    kind = class_of(float if array.dtype == FLOAT64 else int)
    bits = np.ascontiguousarray(array, dtype=float).view(np.int64).ravel()
    _, first, inverse = np.unique(bits, return_index=True, return_inverse=True)
    order = np.argsort(first)  # in the order of the elements, not of their sizes
    positions = np.empty(len(first), dtype=np.int64)
    positions[order] = tape.positions_of_literals(bits[first[order]].view(np.float64).tolist())
    return _Elements(kind, positions[inverse].reshape(array.shape), is_known=True)


def _array_of(symbol: Any, shape: tuple[int, ...], layout: Array | None = None) -> Any:
    """An array of a new symbol for each lane; without axes a single symbol.

    Sums add elements in their order in memory. So the array has the strides of NumPy's own result, those of the layout.
    """
    if not is_lanes(symbol):
        raise _Declined
    tape = symbol._tape.tape
    made = tape.symbols(symbol._position.tolist(), type(symbol).of_lane)
    if not shape:
        return made[0]
    array = np.fromiter(made, object, len(made)).reshape(shape)
    if layout is not None and layout.strides != array.strides:
        array, elements = layout, array
        array[...] = elements
    return tape.array(array)


def _layout_of(arrays: Sequence[Array]) -> Array:
    """An empty array with the strides of what NumPy computes of arrays element by element."""
    operands: Any = [*arrays, None]
    flags: Any = [*[["readonly"]] * len(arrays), ["writeonly", "allocate"]]
    return np.nditer(operands, ["refs_ok"], flags, [*[None] * len(arrays), np.dtype(object)]).operands[-1]


def _layout_of_reduced(array: Array, settings: dict[str, Any]) -> Array:
    """An empty array with the strides of what NumPy reduces an array to."""
    steps = [stride // array.itemsize for stride in array.strides]
    ends = [step * (length - 1) for step, length in zip(steps, array.shape, strict=True)]
    first, last = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    bits = np.ndarray(array.shape, bool, np.zeros(last - first + 1, dtype=bool), -first, steps)
    made = np.logical_or.reduce(bits, axis=settings.get("axis", 0), keepdims=settings.get("keepdims", False))
    return np.empty_like(made, dtype=object)


# What NumPy is asked for

_ARITHMETIC = ("add", "subtract", "multiply", "divide")
_OPERATORS: dict[str, Callable[..., Any]] = {
    **{ufunc.__name__: function for ufunc, (function, _) in OPERATORS.items()},
    "negative": operator.neg,
    "absolute": operator.abs,
    "square": lambda x: x * x,
}
_COMPARISONS = ("greater", "greater_equal", "less", "less_equal")
_OF_BOOLS = ("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or")
_REDUCED = {"add": operator.add, "multiply": operator.mul, **dict.fromkeys(("maximum", "minimum"))}


def of_elements(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """The result of a ufunc; None where NumPy's loops have to go through the elements, as in all that follows."""
    name = ufunc.__name__
    if (rule := _rule(name)) is None:
        return None
    takes_literals = name in _ARITHMETIC or name in _COMPARISONS
    return _applied(rule, inputs, takes_literals, of_bools=name in _OF_BOOLS, picks=name in CHOICES)


def of_each(primitive: Primitive, operands: Sequence[Any]) -> Any:
    """A primitive of one operand, for each element."""
    is_known = primitive in OF_LIBRARY and len(primitive.derivatives) == 1
    return _applied(primitive, operands, takes_literals=False) if is_known else None


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """``np.where(condition, x, y)``."""
    if isinstance(condition, np.ndarray) and condition.dtype != object:
        return None  # it is known
    return _applied(picked, (condition, x, y), picks=True)


def _rule(name: str) -> Callable[..., Any] | None:
    """The function of single elements for one of NumPy's."""
    return _OPERATORS.get(name) or RULES.get(FUNCTIONS.get(name))


def _applied(
    rule: Callable[..., Any],
    inputs: Sequence[Any],
    takes_literals: bool = True,
    of_bools: bool = False,
    picks: bool = False,
) -> Any:
    """The array of what a function gives for each element.

    Args:
        rule: the function.
        inputs: arrays, symbols and numbers.
        takes_literals: whether lanes may stand for known numbers.
        of_bools: whether it is a function of bools.
        picks: whether it gives one of its operands, so that it asks whether two of them are the same.
    """
    shapes = [x.shape for x in inputs if isinstance(x, np.ndarray)]
    if not shapes or max(map(math.prod, shapes)) < FEWEST:
        return None
    try:
        tape, shape = _tape_in_use(), np.broadcast_shapes(*shapes)
        lanes = LanesTape(tape, math.prod(shape))
        operands: list[Any] = []
        for x in inputs:
            if isinstance(x, np.ndarray):
                elements = _elements(tape, x)
                if elements.is_known and not takes_literals:
                    return None
                x = lanes._symbol(np.broadcast_to(elements.positions, shape).ravel(), elements.kind)
            elif not isinstance(x, (Operand, float, int)):
                return None
            operands.append(x)
        are_bools = [isinstance(x, (bool, np.bool_)) for x in operands]
        if all(are_bools) != of_bools:
            return None
        if picks:
            _check_different(lanes, operands)
        layout = _layout_of([plain_array(x) for x in inputs if isinstance(x, np.ndarray)])
        with using(lanes.recorder()):
            return _array_of(rule(*operands), shape, layout)
    except _WRONG:
        return None


def _check_different(lanes: LanesTape, operands: Sequence[Any]) -> None:
    """Decline operands that are the same symbol in some lane."""
    positions = [lanes.position(operand, primitives.where) for operand in operands if isinstance(operand, Value)]
    if any(np.equal(x, y).any() for x, y in combinations(positions, 2)):
        raise _Declined


def reduced(ufunc: np.ufunc, array: Any, settings: dict[str, Any]) -> Any:
    """The sum, the product or the extremes of the elements along axes."""
    name = ufunc.__name__
    if name not in _REDUCED or array.size < FEWEST or not _is_plain(settings):
        return None
    try:
        tape = _tape_in_use()
        elements = _elements(tape, array)
        positions = elements.positions
        if positions.dtype == object and tape is not tape.outermost:
            positions = tape.positions_in(positions)
        found = _along(positions, plain_array(array).strides, settings)
        if found is None or elements.kind is BoolSymbol or elements.is_known or positions.dtype == object:
            return None
        rows, shape = found
        rule: Any = _REDUCED[name] or _rule(name)
        if name not in _ARITHMETIC and (rows[0] == rows[1]).any():
            return None  # it is asked whether two of them are one
        start = IDENTITIES.get(name) if "where" in settings else None
        layout = _layout_of_reduced(plain_array(array), settings) if shape else None
        is_picked = name not in _ARITHMETIC and elements.kind in (Symbol, Picked)
        # A chain of as many columns runs in vectors: of 32 x 1,000 elements, it takes 52 us and reductions take 65. Of
        # 512 x 1, it takes 11.8 us and they take 7.5; of 10,000 x 1, 77 us and 9. Of 16 to 128 x 32, both take as long.
        if is_picked and rows.shape[1] < FEWEST <= len(rows):
            return _array_of(_extreme(tape, rows, is_largest=name == "maximum"), shape, layout)
        return _array_of(_chain(tape, rule, elements.kind, rows, start), shape, layout)
    except _WRONG:
        return None


def _is_plain(settings: dict[str, Any]) -> bool:
    """Whether a reduction has no settings but axes."""
    return (
        settings.keys() <= {"axis", "keepdims", "dtype", "where", "out"}
        and settings.get("where", True) is True
        and settings.get("dtype") is None
        and settings.get("out") is None
    )


def _along(
    positions: Integers, strides: Sequence[int], settings: dict[str, Any]
) -> tuple[Integers, tuple[int, ...]] | None:
    """Positions with a column for each element of the result, in NumPy's order of summation; and the result's shape.

    NumPy adds elements in their order in memory; None where that is not the order of the axes.
    """
    axis = settings.get("axis", 0)
    axes = range(positions.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    axes = sorted(each % positions.ndim for each in axes)
    steps = [strides[each] for each in axes if positions.shape[each] > 1]
    if not steps or steps != sorted(steps, reverse=True) or steps[-1] <= 0:
        return None
    kept = [each for each in range(positions.ndim) if each not in axes]
    shape = tuple(positions.shape[each] for each in kept)
    rows = positions.transpose(*axes, *kept).reshape(-1, math.prod(shape))
    if settings.get("keepdims"):
        shape = tuple(1 if each in axes else length for each, length in enumerate(positions.shape))
    return (rows, shape) if len(rows) > 1 and rows.shape[1] else None


def product(first: Any, second: Any) -> Any:
    """The product of matrices, or of a matrix and a vector."""
    try:
        tape = _tape_in_use()
        x, y = _elements(tape, first), _elements(tape, second)
        if BoolSymbol in (x.kind, y.kind) or (x.is_known and y.is_known):
            return None
        left, right = _rows_beside_columns(x.positions, y.positions)
        if left.size < FEWEST:
            return None
        *shape, rows, columns, length = left.shape
        shape += [rows] * (x.positions.ndim > 1) + [columns] * (y.positions.ndim > 1)
        if length >= _LONG and (kind := _kind_of_dots(x.kind, y.kind)) and recorder_on_top() is tape:
            of_left = _row_numbers(tape, left[..., 0, :])[..., None]
            of_right = _row_numbers(tape, right[..., 0, :, :])[..., None, :]
            at = tape.sums_of_products(tape.position(-0.0), *map(np.ravel, np.broadcast_arrays(of_left, of_right)))
            return tape.symbols_at(at.reshape(shape), kind) if shape else tape._symbol(int(at[0]), kind)
        lanes = LanesTape(tape, left.size)
        pairs = [np.moveaxis(each, -1, 0).ravel() for each in (left, right)]
        with using(lanes.recorder()):
            terms: Any = lanes._symbol(pairs[0], x.kind) * lanes._symbol(pairs[1], y.kind)
        return _array_of(
            _chain(tape, operator.add, type(terms).of_lane, terms._position.reshape(length, -1)), tuple(shape)
        )
    except _WRONG:
        return None


def _rows_beside_columns(first: Array, second: Array) -> tuple[Array, ...]:
    """Each row of the first matrix beside each column of the second one; a vector is a matrix of one row or column."""
    left = first[None, :] if first.ndim == 1 else first
    right = second[:, None] if second.ndim == 1 else second
    if left.shape[-1] != right.shape[-2] or left.shape[-1] < 2:
        raise _Declined
    return tuple(np.broadcast_arrays(left[..., :, None, :], right.swapaxes(-1, -2)[..., None, :, :]))


def _kind_of_dots(x: type[Symbol], y: type[Symbol]) -> type[Symbol] | None:
    """The class of the sum of their products; None where integers may have to be checked step by step."""
    kinds = Symbol, class_of(FLOAT64), FloatSymbol
    return next(kind for kind in kinds if kind in (x, y)) if {x, y} <= {*kinds} else None


def _row_numbers(tape: Tape, factors: Array) -> Integers:
    """The numbers of rows of factors, which may be Values from outside."""
    rows: Any = factors.reshape(-1, factors.shape[-1])
    if rows.dtype == object:
        rows = tape.positions_in(rows)
    return tape.row_numbers(rows).reshape(factors.shape[:-1])


def _chain(tape: Tape, rule: Callable[..., Any], kind: type[Symbol], rows: Integers, start: float | None = None) -> Any:
    """The left fold of a function of two over rows of symbols.

    The function runs for two rows after the first. The operations of the last of these are repeated for all others.

    Args:
        tape: where it is recorded.
        rule: the function.
        kind: the class of the symbols.
        rows: their positions, with a row for each step.
        start: a number before the first row.
    """
    width = rows.shape[1]
    result: Any = start
    if start is None:
        result, rows = LanesTape(tape, width)._symbol(rows[0], kind), rows[1:]
    for row in rows[:2]:
        before, step = result, LanesTape(tape, width)
        x = step._symbol(row, kind)
        if is_lanes(before):
            before = step._symbol(before._position, type(before))
        with using(step.recorder()):
            result = rule(before, x)
    left, operations = rows[2:], [id(made) for *_, made in step.written]
    if not len(left):
        return result
    assert type(result) is type(before)
    begin, steps, size = len(tape.operations), len(left), len(operations)
    positions = begin + np.arange(steps * size * width).reshape(steps, size, width)
    last = operations.index(id(result._position))
    fillings: dict[int, Any] = {made: positions[:, number] for number, made in enumerate(operations)}
    fillings[id(x._position)] = left
    fillings[id(before._position)] = np.concatenate([result._position[None], positions[:-1, last]])
    operands = [
        [each if isinstance(each, int) else fillings[id(each)] for each in of_one] for _, of_one, _ in step.written
    ]
    tape.operations.append_block([primitive for primitive, *_ in step.written], steps, width, operands)
    for noted in step.checked.noted:
        tape.checked.update(dict.fromkeys(fillings[id(noted)].ravel().tolist()))
    return step._symbol(positions[-1, last], type(result))


def _extreme(tape: Tape, rows: Integers, is_largest: bool) -> Any:
    """The first of the largest or smallest elements of each column, as three reductions.

    These find the largest number, the first index of it, and the element there; a chain of choices would give the same.
    The gradient is that of a sum over the column, with 0 for all other elements; the sum itself might lose the sign of
    -0. A chain begins again after a NaN, so where there is one, the function runs eagerly.

    Args:
        tape: where they are recorded.
        rows: the positions of the elements.
        is_largest: whether the largest one is asked for, or the smallest.
    """
    count, width = rows.shape
    every, of_columns = LanesTape(tape, rows.size), LanesTape(tape, width)

    def for_all(symbol: Any) -> Symbol:
        return every._symbol(np.tile(symbol._position, count), Symbol)

    def reduced_by(primitive: Primitive, symbol: Any) -> Any:
        found = _chain(tape, lambda x, y: y._tape.apply(primitive, x, y), Symbol, symbol._position.reshape(rows.shape))
        return of_columns._symbol(found._position, Symbol)

    x, on = every._symbol(rows.ravel(), Symbol), of_columns.apply
    if is_largest:
        number = reduced_by(primitives.maximum, x)
    else:
        number = on(primitives.neg, reduced_by(primitives.maximum, every.apply(primitives.neg, x)))
    places = np.array(tape.positions_of_literals((-np.arange(1.0, count + 1.0)).tolist()))
    place = every._symbol(np.repeat(places, width), Symbol)
    is_there = every.apply(primitives.equal, x, for_all(number))
    first = reduced_by(primitives.maximum, every.apply(primitives.where, is_there, place, -math.inf))
    is_first = every.apply(primitives.equal, place, for_all(first))
    found = reduced_by(primitives.maximum, every.apply(primitives.where, is_first, x, -math.inf))
    total = reduced_by(primitives.add, every.apply(primitives.where, is_first, x, 0.0))
    is_number = on(primitives.less_equal, number, number)
    on(primitives.where, is_number, 0.0, number).only_finite()
    return of_columns._symbol(on(DIFFERENTIATED_AS, found, total)._position, Picked)


def plain_array(array: Any) -> Array:
    """The array as one of NumPy's own class."""
    return np.asarray(array).view(np.ndarray)
