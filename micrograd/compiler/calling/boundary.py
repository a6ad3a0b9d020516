"""The boundary: the numbers of a call's arguments become one array, and outputs become what the function returned.

An array among the arguments is copied at once, whatever its strides are, and a list of floats in one call into C. What
the function returned at its trace says how results are made: the plan. Where it returned an array of 1,000 floats, a
slice of the outputs is copied.

    fast([1.0, 2.0], "up", x)           the numbers  1.0, 2.0, and that of x
    return {"sums": [a, b], "n": 2}     the plan     a dict of a list of the outputs 0 and 1, and of 2, which is known
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property, partial
from inspect import signature
from itertools import chain, islice
from operator import attrgetter
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import are_all, is_array
from micrograd._support.containers import shape_of
from micrograd.compiler.guards.structure import (
    ARRAY,
    MIXED,
    TOO_DEEP,
    Structure,
    assembler_of,
    is_leaf,
    is_result,
    parts_of,
)
from micrograd.compiler.numbers import part_of, taken
from micrograd.compiler.tracing.promotion import is_dtype
from micrograd.compiler.tracing.symbols import is_plain
from micrograd.engine.primitive import CONSTANT
from micrograd.engine.stored import LATER, bring_up_to_date
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from micrograd.compiler.numbers import Floats, Integers

    Make: TypeAlias = Callable[[Floats, Sequence[Any]], Any]  # of the outputs, and of those that are Values


def numbers_of(arguments: Structure, values: Sequence[Value] = (), before: Sequence[Floats] = ()) -> Floats:
    """The numbers of some Values, and then those in the arguments, in a new array.

    Args:
        arguments: a structure.
        values: these Values.
        before: arrays of numbers that come first.

    Raises:
        OverflowError: for an int that no float can hold.
    """
    if LATER and (values or arguments.has_values):
        bring_up_to_date()
    scalars: list[Any] = list(map(_number_of, values)) if values else []
    arrays = [*before]
    for holds, run in arguments.runs:
        if holds is ARRAY:
            if scalars:
                arrays.append(_array_of(scalars))
                scalars = []
            arrays.append(np.asarray(run).ravel())
        else:
            scalars += run if holds is float or holds is int else map(_READERS[holds], run)
    if not arrays:
        return _array_of(scalars)
    if scalars:
        arrays.append(_array_of(scalars))
    return np.concatenate(arrays, dtype=np.float64, casting="unsafe")


def _array_of(numbers: list[float]) -> Floats:
    """An array of floats: NumPy takes 0.2 us for three, in place of 0.4, and three times as long for many."""
    if len(numbers) < _MANY:
        return np.fromiter(numbers, np.float64, len(numbers))
    return np.frombuffer(pack(f"{len(numbers)}d", *numbers))


_MANY = 40
_number_of = attrgetter("_data")


def number_of(leaf: Any) -> float:
    """The number of a leaf."""
    return leaf._data if isinstance(leaf, Value) else float(leaf)


_READERS: dict[Any, Callable[[Any], float]] = {MIXED: number_of, Value: _number_of, CONSTANT: _number_of}


@dataclass(frozen=True)
class _Known:
    """A part of a result that is always the same object."""

    item: Any


@dataclass(frozen=True)
class _Leaf:
    """A number in a result: which output it is, and its class; None for a Value."""

    output: int
    kind: Any


@dataclass(frozen=True)
class _Row:
    """Plain numbers in a result that are copied at once: an array, or lists.

    Attributes:
        outputs: which outputs these are, in its shape; -1 for numbers that are known.
        known: these, in order.
        finish: makes the result of an array of floats.
    """

    outputs: Integers
    known: Floats
    finish: Callable[[Floats], Any]


@dataclass(frozen=True)
class _Values:
    """Values in a result that lie side by side, and what makes a container or an array of them."""

    part: slice
    assemble: Any


@dataclass(frozen=True)
class _Container:
    """Anything else with parts, and what makes it of them."""

    assemble: Any
    parts: list[Any]


@dataclass(frozen=True)
class _Named:
    """Makes a dict of its items."""

    names: list[Any]

    def __call__(self, items: list[Any]) -> dict[Any, Any]:
        return dict(zip(self.names, items, strict=True))


@dataclass(frozen=True)
class _OfFloats:
    """Makes a container of an array of floats."""

    assemble: Any

    def __call__(self, floats: Floats) -> Any:
        return self.assemble(floats.tolist())


@dataclass(frozen=True)
class _As:
    """Makes an array of other numbers of one of floats."""

    dtype: np.dtype[Any]

    def __call__(self, floats: Floats) -> Any:
        return floats.astype(self.dtype)


class Results:
    """How the results of a function are made of the outputs of its program.

    Args:
        returned: what it returned when it was traced: symbols where the program computes a number.

    Attributes:
        kinds: for each output, the class of numbers where it is a plain one; None for a Value.
        has_values: whether any of them is one.
        outputs: for each leaf of the result, which output it is; None for what the program does not compute.
        plan: the result with a _Leaf, _Row, _Values or _Known in the place of its numbers, or what makes a part.
    """

    def __init__(self, returned: Structure) -> None:
        self._leaves = returned.leaves
        classes = {type(leaf): leaf for leaf in self._leaves}
        self._classes = {  # of the numbers, by those of the leaves; None for a Value
            kind: (_class_of(leaf) if is_plain(leaf) else None) if issubclass(kind, Value) else kind
            for kind, leaf in classes.items()
        }
        self.kinds = [self._classes[kind] for kind in map(type, self._leaves) if issubclass(kind, Value)]
        self.has_values = None in self.kinds
        self.outputs: list[int | None] = list(range(len(self.kinds)))
        if len(set(map(id, self._leaves))) < len(self._leaves) or len(self.kinds) < len(self._leaves):
            outputs, first = iter(range(len(self.kinds))), dict[int, int]()
            self.outputs = [  # an object that is there twice is the first one twice
                first.setdefault(id(leaf), next(outputs)) if isinstance(leaf, Value) else None for leaf in self._leaves
            ]
        self._positions = iter(range(len(self._leaves)))
        try:
            self.plan = self._planned(returned.nested)
            self._make = self._maker(self.plan)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None

    @classmethod
    def of_plan(cls, plan: Any, kinds: list[Any], outputs: list[int | None]) -> Results:
        """Those with another plan, such as that for more rows."""
        made = cls.__new__(cls)
        made.plan, made.kinds, made.outputs, made.has_values = plan, kinds, outputs, None in kinds
        made._given = 0, False
        made._make = made._maker(plan)
        return made

    def of(self, numbers: Floats, nodes: Sequence[Any]) -> Any:
        """What the function returns.

        Args:
            numbers: the outputs.
            nodes: a Value for each output that is one.
        """
        try:
            return self._make(numbers, nodes)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None

    # The plan

    def _planned(self, item: Any) -> Any:
        """The plan of a part of the result. It takes the next of the leaves for those in it."""
        parts = parts_of(item)
        if parts is None:
            return self._leaf(next(self._positions)) if is_leaf(item) else _Known(item)
        if is_array(item) and item.dtype != object:  # nothing in it was computed
            deque(zip(parts, self._positions, strict=False), maxlen=0)  # its numbers are leaves
            return lambda numbers, nodes: item.copy()
        if type(item) is list and len(shape := _shape_of_lists(item)) > 1:
            positions = list(islice(self._positions, math.prod(shape)))
            if (row := self._row(positions, shape, _LISTS[list], float)) is not None:
                return row
            self._positions = chain(positions, self._positions)
        assemble = _Named(list(item)) if type(item) is dict else assembler_of(item)
        if not parts or not (are_all(Value, parts) or all(map(is_leaf, parts))):
            return _Container(assemble, [self._planned(part) for part in parts])
        positions = list(islice(self._positions, len(parts)))
        return (self._array if is_array(item) and is_result(item) else self._leaves_of)(item, assemble, positions)

    def _leaf(self, position: int) -> Any:
        output = self.outputs[position]
        return _Known(self._leaves[position]) if output is None else _Leaf(output, self.kinds[output])

    def _leaves_of(self, item: Any, assemble: Callable[[list[Any]], Any], positions: list[int]) -> Any:
        """The plan of a container of leaves, which is made at once where all are floats or all are Values."""
        finish = _LISTS.get(type(item)) or _OfFloats(assemble)
        if (row := self._row(positions, (len(positions),), finish, float)) is not None:
            return row
        outputs = [self.outputs[position] for position in positions]
        if all(output is not None and self.kinds[output] is None for output in outputs):
            part = part_of(np.array(outputs))
            if isinstance(part, slice):
                return _Values(part, assemble)
        return _Container(assemble, [self._leaf(position) for position in positions])

    def _array(self, item: Any, assemble: Callable[[list[Any]], Any], positions: list[int]) -> Any:
        """The plan of an array that was made on symbols: one of plain numbers, where its elements are."""
        classes, row = self._classes_at(positions), partial(self._row, positions, item.shape)
        if (floats := row(_as_it_is, float)) is not None:
            return floats
        if (bools := row(_As(np.dtype(bool)), bool)) is not None:
            return bools
        if None not in classes and any(issubclass(kind, np.number) for kind in classes):
            return row(_As(np.result_type(*[kind(0) for kind in classes])), *classes)
        elements = self._leaves_of(item, assemble, positions)
        if (ints := row(_as_it_is, int)) is None:
            return elements
        as_floats, by_element = self._maker(ints), self._maker(elements)

        def make(numbers: Floats, nodes: Sequence[Any]) -> Any:
            found = as_floats(numbers, nodes)
            return found.astype(np.int_) if (np.abs(found) < _TOO_LONG).all() else by_element(numbers, nodes)

        return make

    def _classes_at(self, positions: list[int]) -> set[Any]:
        """The classes of some leaves; None for a Value."""
        return {self._classes[type(self._leaves[position])] for position in positions}

    def _row(
        self, positions: list[int], shape: tuple[int, ...], finish: Callable[[Floats], Any], *kinds: type
    ) -> _Row | None:
        """The plan of plain numbers of these kinds; None where there are others among the leaves."""
        if not self._classes_at(positions).issubset(kinds):
            return None
        outputs = [self.outputs[position] for position in positions]
        known = [float(self._leaves[at]) for at, output in zip(positions, outputs, strict=True) if output is None]
        numbers = np.array([-1 if output is None else output for output in outputs], dtype=np.int64)
        return _Row(numbers.reshape(shape), np.array(known), finish)

    # What makes it

    def _maker(self, plan: Any) -> Make:
        """What makes a part of the result of the outputs."""
        if isinstance(plan, _Known):
            item = plan.item
            return lambda numbers, nodes: item
        if isinstance(plan, _Leaf):
            return _maker_of_leaf(plan.output, plan.kind)
        if isinstance(plan, _Container):
            assemble, makers = plan.assemble, list(map(self._maker, plan.parts))
            return lambda numbers, nodes: assemble([make(numbers, nodes) for make in makers])
        if isinstance(plan, _Values):
            part, finish = plan.part, plan.assemble
            return lambda numbers, nodes: finish(nodes[part])
        return self._maker_of_row(plan) if isinstance(plan, _Row) else plan

    def _maker_of_row(self, row: _Row) -> Make:
        shape, finish, known = row.outputs.shape, row.finish, row.known
        outputs = row.outputs.ravel()
        is_known, part = outputs < 0, part_of(np.maximum(outputs, 0))

        def make(numbers: Floats, nodes: Sequence[Any]) -> Any:
            return finish(taken(numbers, part).reshape(shape))

        def filled(numbers: Floats, nodes: Sequence[Any]) -> Any:
            made = taken(numbers, part)
            made[is_known] = known
            return finish(made.reshape(shape))

        if len(known):
            return filled
        return (lambda numbers, nodes: finish(numbers[part].reshape(shape))) if self._are_for_one(part) else make

    def _are_for_one(self, part: Any) -> bool:
        """Whether most of the outputs are in one result, and nobody else gets or keeps them: so they are not copied."""
        count, are_once = self._given
        return isinstance(part, slice) and 2 * (part.stop - part.start) > count and not self.has_values and are_once

    @cached_property
    def _given(self) -> tuple[int, bool]:
        """How many leaves are outputs, and whether each output is one leaf."""
        found = [output for output in self.outputs if output is not None]
        return len(found), len(set(found)) == len(found)


def _maker_of_leaf(output: int, kind: Any) -> Make:
    if kind is None:
        return lambda numbers, nodes: nodes[output]
    if kind is float:
        return lambda numbers, nodes: numbers.item(output)
    return lambda numbers, nodes: kind(numbers.item(output))


def _as_it_is(floats: Floats) -> Floats:
    return floats


_LISTS: dict[type, Callable[[Floats], Any]] = {list: np.ndarray.tolist, tuple: lambda floats: tuple(floats.tolist())}
_TOO_LONG = 2.0**63  # for the integers of NumPy


def _class_of(symbol: Any) -> Any:
    """The class of a plain number that a symbol stands for. As arguments, and elsewhere, Python's are as good."""
    kind = symbol.kind
    if not is_dtype(kind):
        return symbol.__class__
    return {"float64": float, "int64": int}.get(kind.name, kind.type)


def _shape_of_lists(item: Any, depth: int = 4) -> tuple[int, ...]:
    """The shape of lists of leaves that are nested evenly, and not too deeply; () of anything else."""
    if type(item) is not list or not item or not depth:
        return ()
    if all(map(is_leaf, item)):
        return (len(item),)
    shapes = {_shape_of_lists(part, depth - 1) for part in item}
    return (len(item), *shapes.pop()) if len(shapes) == 1 and () not in shapes else ()


def shapes_of(function: Callable[..., Any], arguments: Structure) -> list[tuple[str, tuple[int, ...]]]:
    """What the arguments of a call with numbers in them are called, and their shapes, in the order of the numbers."""
    positional, named = arguments.nested
    try:
        parameters = list(signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C
        parameters = []
    names = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    names += [f"argument {position}" for position in range(len(names) + 1, len(positional) + 1)]
    given = [*zip(names, positional, strict=False), *named.items()]
    found = [(name, shape_of_all(argument, Structure(argument).count())) for name, argument in given]
    return [(name, shape) for name, shape in found if 0 not in shape]


def shape_of_all(nested: Any, count: int) -> tuple[int, ...]:
    """The shape of something with so many numbers in it: that of a row where it has none, or holds other things."""
    shape = shape_of(nested)
    return (count,) if shape is None or math.prod(shape) != count else shape
