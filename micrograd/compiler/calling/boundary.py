"""The boundary: the numbers of a call's arguments become one array, and outputs become what the function returned.

An array among the arguments is copied at once, whatever its strides are, and a list of floats in one call into C. What
the function returned at its trace says how results are made: where it returned an array of 1,000 floats, a slice of the
outputs is copied.
"""

from __future__ import annotations

import math
from collections import deque
from functools import cached_property
from inspect import signature
from itertools import chain, islice
from operator import attrgetter
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import are_all, is_array
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
from micrograd.compiler.numbers import part_of, shape_of_floats, taken
from micrograd.compiler.tracing.promotion import is_dtype
from micrograd.compiler.tracing.symbols import is_plain
from micrograd.engine.primitive import CONSTANT
from micrograd.engine.stored import LATER, bring_up_to_date
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from micrograd.compiler.numbers import Floats

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


class Results:
    """How the results of a function are made of the outputs of its program.

    Args:
        returned: what it returned when it was traced: symbols where the program computes a number.

    Attributes:
        kinds: for each output, the class of numbers where it is a plain one; None for a Value.
        has_values: whether any of them is one.
        outputs: for each leaf of the result, which output it is; None for what the program does not compute.
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
            self._make = self._maker(returned.nested)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None

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

    def _maker(self, item: Any) -> Make:
        """What makes this of the outputs. It takes the next of the leaves for those in it."""
        parts = parts_of(item)
        if parts is None:
            return self._maker_of_leaf(next(self._positions)) if is_leaf(item) else lambda numbers, nodes: item
        if is_array(item) and item.dtype != object:  # nothing in it was computed
            deque(zip(parts, self._positions, strict=False), maxlen=0)  # its numbers are leaves
            return lambda numbers, nodes: item.copy()
        if type(item) is list and len(shape := _shape_of_lists(item)) > 1:
            positions = list(islice(self._positions, math.prod(shape)))
            if (floats := self._floats(positions, float)) is not None:
                return lambda numbers, nodes: floats(numbers).reshape(shape).tolist()
            self._positions = chain(positions, self._positions)
        if not parts or not (are_all(Value, parts) or all(map(is_leaf, parts))):
            makers = [self._maker(part) for part in parts]
            return _joined(assembler_of(item), makers)
        positions = list(islice(self._positions, len(parts)))
        if is_array(item):
            return self._maker_of_array(item, positions)
        return _assembled(assembler_of(item), self._maker_of_leaves(positions))

    def _maker_of_leaf(self, position: int) -> Make:
        leaf, output = self._leaves[position], self.outputs[position]
        if output is None:
            return lambda numbers, nodes: leaf
        kind = self.kinds[output]
        if kind is None:
            return lambda numbers, nodes: nodes[output]
        if kind is float:
            return lambda numbers, nodes: numbers.item(output)
        return lambda numbers, nodes: kind(numbers.item(output))

    def _maker_of_leaves(self, positions: list[int]) -> Make:
        """What makes a list of leaves, at once where all are floats or all are Values."""
        if (floats := self._floats(positions, float)) is not None:
            return lambda numbers, nodes: floats(numbers).tolist()
        outputs = [self.outputs[position] for position in positions]
        if all(output is not None and self.kinds[output] is None for output in outputs):
            part = part_of(np.array(outputs))
            if isinstance(part, slice):
                return lambda numbers, nodes: nodes[part]
        return _joined(list, [self._maker_of_leaf(position) for position in positions])

    def _maker_of_array(self, item: Any, positions: list[int]) -> Make:
        shape, by_element = item.shape, _assembled(assembler_of(item), self._maker_of_leaves(positions))
        if not is_result(item):
            return by_element
        if (floats := self._floats(positions, float)) is not None:
            return lambda numbers, nodes: floats(numbers).reshape(shape)
        if (bools := self._floats(positions, bool)) is not None:
            return lambda numbers, nodes: bools(numbers).astype(bool).reshape(shape)
        classes = self._classes_at(positions)
        if None not in classes and any(issubclass(kind, np.number) for kind in classes):
            of_kinds: Any = self._floats(positions, *classes)
            dtype = np.result_type(*[kind(0) for kind in classes])
            return lambda numbers, nodes: of_kinds(numbers).astype(dtype).reshape(shape)
        ints = self._floats(positions, int)

        def make(numbers: Floats, nodes: Sequence[Any]) -> Any:
            if ints is not None and (np.abs(found := ints(numbers)) < _TOO_LONG).all():
                return found.astype(np.int_).reshape(shape)
            return by_element(numbers, nodes)

        return make

    def _are_for_one(self, part: Any) -> bool:
        """Whether most of the outputs are in one result, and nobody else gets or keeps them: so they are not copied."""
        count, are_once = self._given
        return isinstance(part, slice) and 2 * (part.stop - part.start) > count and not self.has_values and are_once

    @cached_property
    def _given(self) -> tuple[int, bool]:
        """How many leaves are outputs, and whether each output is one leaf."""
        found = [output for output in self.outputs if output is not None]
        return len(found), len(set(found)) == len(found)

    def _classes_at(self, positions: list[int]) -> set[Any]:
        """The classes of some leaves; None for a Value."""
        return {self._classes[type(self._leaves[position])] for position in positions}

    def _floats(self, positions: list[int], *kinds: type) -> Callable[[Floats], Floats] | None:
        """What makes a new array of plain numbers of these kinds; None where there are others among the leaves."""
        if not self._classes_at(positions).issubset(kinds):
            return None
        outputs = [self.outputs[position] for position in positions]
        sources = np.array([output for output in outputs if output is not None], dtype=np.int64)
        if len(sources) == len(positions):
            part = part_of(sources)
            if self._are_for_one(part):
                return lambda numbers: numbers[part]
            return lambda numbers: taken(numbers, part)
        leaves = [(self._leaves[position], output) for position, output in zip(positions, outputs, strict=True)]
        template = np.array([float(leaf) if output is None else 0.0 for leaf, output in leaves])
        targets = np.flatnonzero([output is not None for _, output in leaves])

        def filled(numbers: Floats) -> Floats:
            made = template.copy()
            made[targets] = numbers[sources]
            return made

        return filled


_TOO_LONG = 2.0**63  # for the integers of NumPy


def _class_of(symbol: Any) -> Any:
    """The class of a plain number that a symbol stands for. As arguments, and elsewhere, Python's are as good."""
    kind = symbol.kind
    if not is_dtype(kind):
        return symbol.__class__
    return {"float64": float, "int64": int}.get(kind.name, kind.type)


def _joined(assemble: Callable[[list[Any]], Any], makers: list[Make]) -> Make:
    return lambda numbers, nodes: assemble([make(numbers, nodes) for make in makers])


def _assembled(assemble: Callable[[list[Any]], Any], make_parts: Make) -> Make:
    return lambda numbers, nodes: assemble(make_parts(numbers, nodes))


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
    found = [(name, _shape(argument)) for name, argument in given]
    return [(name, shape) for name, shape in found if 0 not in shape]


def _shape(item: Any) -> tuple[int, ...]:
    """The shape of nested numbers; where their rows are of several lengths, how many there are."""
    if is_array(item):
        return tuple(item.shape)
    if isinstance(item, (list, tuple)) and item:
        if shape := shape_of_floats(item):
            return shape
        shapes = {()} if _NUMBERS.issuperset(map(type, item)) else {_shape(part) for part in item}
        if len(shapes) == 1:
            return (len(item), *shapes.pop())
    return () if is_leaf(item) else (len(Structure(item).leaves),)


_NUMBERS = {float, int, Value}
