"""Array calls: functions of whole arrays with many results, such as a solution of linear equations.

A call is one node, whose operands are the elements that gradients flow to. Each element of its results is a node on
top of the call:

    solve(a, b)   =   [2.0 + call, 3.0 + call]        call   =   ArrayCall("solve")(a00, a01, a10, a11, b0, b1)

What these pass on to the call are Seeds, and when all have done so, one rule on arrays gives the gradients of the
operands. A rule is written with functions of this kind and operators. Handed arrays of floats, it computes by NumPy;
handed arrays of Values, it makes a graph, which can be differentiated again.

While a function is traced, nothing is known of the numbers, and a call is written down in steps of single numbers.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.checks import Operand, is_value, required_number
from micrograd.engine import primitives
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.tracer import tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

ARRAY_FUNCTIONS: dict[str, ArrayFunction] = {}
_FLOATS = np.dtype(float)
LARGEST = 24  # rows or columns; of a matrix with more, some n ** 3 operations take long to compile


# What gives the functions of another library, while rules run on its arrays
_library: ContextVar[Callable[[ArrayFunction], Callable[..., Any]] | None] = ContextVar("library", default=None)


@contextmanager
def calling(library: Callable[[ArrayFunction], Callable[..., Any]]) -> Iterator[None]:
    """Inside, functions of arrays call what another library has for them, as it is given here."""
    token = _library.set(library)
    try:
        yield
    finally:
        _library.reset(token)


class ArrayFunction:
    """A function of arrays that has a rule, and is registered under its name.

    Args:
        name: unique; what pictures and messages show.
        forward: takes arrays of floats, and gives a tuple of them.
        rule: takes the gradients of the results, the results, the operands, and which operands need a gradient; gives
            the gradient of each operand, or None. All are arrays of floats or of Values.
        shapes: takes the shapes of the operands, and gives those of the results.
        steps: takes one matrix of each operand, of symbols and numbers, and gives the matrices of the results; None if
            compiled functions have to call it when they run.
        largest: up to which size compiled functions have the steps; beyond, they call it if they can.
        size: takes the operands; by default, the number of rows or of columns.
        largest_of_many: the same where there are many calls, as in a loop; by default, it makes no difference.
        is_gradient: whether it is the rule of another function.
    """

    def __init__(
        self,
        name: str,
        forward: Callable[..., tuple[Any, ...]],
        rule: Callable[..., Sequence[Any]],
        shapes: Callable[..., Sequence[tuple[int, ...]]],
        steps: Callable[..., tuple[Any, ...]] | None = None,
        largest: float = LARGEST,
        size: Callable[..., float] | None = None,
        is_gradient: bool = False,
        largest_of_many: float = math.inf,
    ) -> None:
        self.name, self.forward, self.rule, self.shapes, self.steps = name, forward, rule, shapes, steps
        self.largest, self._size, self.is_gradient = largest, size or _size, is_gradient
        self.largest_of_many = largest_of_many
        self._parts: list[Result] = []  # the primitives of single elements, which all calls have in common
        ARRAY_FUNCTIONS[name] = self

    def __call__(self, *operands: Any) -> tuple[Any, ...]:
        """The results: arrays of floats where all operands are, and else arrays of Values."""
        if (library := _library.get()) is not None:
            return library(self)(*operands)
        for operand in operands:
            if type(operand) is not np.ndarray or operand.dtype is not _FLOATS:
                break
        else:  # as within rules, mostly
            return self.forward(*operands)
        arrays = [np.asarray(operand) for operand in operands]
        if all(array.dtype != object for array in arrays):
            return self.forward(*(np.asarray(array, dtype=float) for array in arrays))
        if (tracer := tracer_on_top()) is not None:
            objects = (a.dtype == object for a in arrays)
            symbols = [tracer.array(a).view(np.ndarray) if o else a for a, o in zip(arrays, objects, strict=True)]
            return self._traced(symbols, tracer)
        bring_up_to_date()
        numbers, positions, values = [], [], list[Any]()
        for array in arrays:
            found, indices, those = _elements(array, self.name)
            numbers.append(found)
            positions.append(indices)
            values += those
        results = self.forward(*numbers)
        objects = (x for array in arrays if array.dtype == object for x in array.flat)
        kind: Any = next((type(x) for x in objects if is_value(x)), None)
        if kind is None:
            return results
        recorder = recorder_on_top()
        if not values or (recorder is not None and not recorder.remembers):
            return tuple(_constants(kind, result) for result in results)
        call = kind(0.0)
        call._primitive = ArrayCall(self, numbers, positions, results)
        call._x, call._y = tuple(values), [value._data for value in values]
        return self.results_of(call, results)

    def results_of(self, call: Any, results: Sequence[Any]) -> tuple[Any, ...]:
        """The nodes of all results of a call, in arrays."""
        made, count = list[Any](), 0
        for result in results:
            nodes = np.empty(result.size, dtype=object)
            pairs = zip(self.parts(count, result.size), result.ravel().tolist(), strict=True)
            nodes[:] = [part.node(number, call) for part, number in pairs]
            made.append(nodes.reshape(result.shape))
            count += result.size
        return tuple(made)

    def parts(self, begin: int, size: int) -> list[Result]:
        """The primitives of some elements of the results."""
        self._parts += [Result(self.name, part) for part in range(len(self._parts), begin + size)]
        return self._parts[begin : begin + size]

    def _traced(self, arrays: Sequence[Any], tracer: Any) -> tuple[Any, ...]:
        """The results for arrays of symbols, matrix by matrix."""
        size = self._size(*arrays)
        is_large = self.steps is None or size > self.largest
        is_large = is_large or (size > self.largest_of_many and tracer.calls_again(self, size))
        if is_large and (made := tracer.called(self, arrays)) is not None:
            return made
        if self.steps is None or (size > self.largest and self._size is _size):
            what = "" if self.steps is None else f" of more than {self.largest} rows or columns"
            tracer.refused(f"{self.name}{what}", "Call it outside of the compiled function, and pass the result in.")
        steps: Any = self.steps
        value = next((x for array in arrays for x in array.flat if is_value(x)), None)
        as_values: Any = np.frompyfunc(partial(_as_value, value), 1, 1)
        found = self.in_steps(steps, arrays)
        return found if value is None else tuple(as_values(each) if each.size else each for each in found)

    def in_steps(self, steps: Callable[..., tuple[Any, ...]], arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The results by steps, matrix by matrix."""
        shape = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
        stacks = [np.broadcast_to(array, (*shape, *array.shape[-2:])) for array in arrays]
        found = {index: steps(*(stack[index] for stack in stacks)) for index in np.ndindex(shape)}
        if not found:
            return tuple(map(np.zeros, self.shapes(*(array.shape for array in arrays))))
        made = []
        for part, first in enumerate(next(iter(found.values()))):
            result = np.empty((*shape, *np.shape(first)), dtype=object)
            for index, parts in found.items():
                result[index] = parts[part]
            made.append(result)
        return tuple(made)

    def operations(self, arrays: Sequence[Any]) -> float:
        """About how many operations the steps are, by the size of the arrays alone."""
        stacks = np.broadcast_shapes(*(array.shape[:-2] for array in arrays))
        return math.prod(stacks) * (self._size(*arrays) ** 3 if self._size is _size else self._size(*arrays))


class OfCall(Primitive):
    """A primitive of the node of one call, whose operands get their gradients from one computation."""

    __slots__ = ()

    forward = float
    composite, first, second, variadic = None, None, None, True
    derivatives = ()
    domain = ()
    settings: dict[str, Any] = {}  # noqa: RUF012  # there are none

    def receivers(self, node: Any) -> list[Any]:
        """The operands that gradients flow to."""
        return [operand for operand in node._x if operand._primitive is not CONSTANT]

    def floats(self, gradient: float) -> Sequence[float]:
        """The contribution to each operand, for this gradient of the node."""
        raise NotImplementedError

    def contributions(
        self, node: Any, gradient: float, useful: Container[Any] | None = None
    ) -> list[tuple[Any, float]]:
        """The contribution to each operand that requires a gradient."""
        return self._useful(node, self.floats(gradient), useful)

    def _useful(self, node: Any, given: Sequence[Any], useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        pairs = zip(node._x, given, strict=True)
        return [pair for pair in pairs if pair[0]._primitive is not CONSTANT and (useful is None or pair[0] in useful)]


class ArrayCall(OfCall):
    """The primitive of the node of one call.

    Args:
        function: what is called.
        numbers: the operands, as arrays of floats.
        positions: for each operand, where in it the elements stand that gradients flow to.
        results: what the call gave, as arrays of floats.

    Attributes:
        function: the same.
    """

    __slots__ = ("_numbers", "_positions", "_results", "function")

    def __init__(
        self, function: ArrayFunction, numbers: Sequence[Any], positions: Sequence[Any], results: Sequence[Any]
    ) -> None:
        self.name = self.symbol = function.name
        self.function, self._numbers, self._positions, self._results = function, numbers, positions, results

    def floats(self, gradient: float) -> Sequence[float]:
        """What each operand is given."""
        seeds = [np.zeros(result.shape) for result in self._results]
        return self._given(seeds, gradient, self._results, self._numbers)

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """What each operand is given, as graphs."""
        seeds = [np.zeros(result.shape).astype(object) for result in self._results]
        given = self._given(seeds, gradient, self.function.results_of(node, self._results), self.operands(node))
        return self._useful(node, given, useful)

    def operands(self, node: Any) -> list[Any]:
        """The operands as arrays of Values and numbers."""
        values, arrays = iter(node._x), []
        for numbers, positions in zip(self._numbers, self._positions, strict=True):
            array = numbers
            if len(positions):
                array = numbers.astype(object)
                array.reshape(-1)[positions] = [next(values) for _ in range(len(positions))]
            arrays.append(array)
        return arrays

    def tangents(
        self, node: Any, found: Mapping[Any, Any], create_graph: bool, gradients: Callable[..., Any]
    ) -> list[Any]:
        """The tangents of all results, as one object that the results pick theirs from.

        A rule is linear in the gradients of the results: so its own derivative by them gives the tangents.
        """
        kind = type(node)
        seeds = [_leaves(kind, result.shape) for result in self._results]
        if create_graph:
            results, operands = self.function.results_of(node, self._results), self.operands(node)
        else:
            results, operands = tuple(self._results), list(self._numbers)
        contributions = self._picked(self.function.rule(seeds, results, operands, self._needed()))
        moving = [
            (contribution, found[o]) for contribution, o in zip(contributions, node._x, strict=True) if o in found
        ]
        terms = [contribution * tangent for contribution, tangent in moving]
        leaves = [leaf for array in seeds for leaf in array.flat]
        total = sum(terms)
        slopes = gradients(total, leaves, create_graph) if is_value(total) else {}
        return [[slopes.get(leaf, 0.0) for leaf in leaves]]

    def _needed(self) -> list[bool]:
        return [bool(len(positions)) for positions in self._positions]

    def _given(self, seeds: list[Any], gradient: Any, results: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """What the operands are given for the Seeds, which are put into arrays of zeros."""
        parts: Any = gradient.parts() if isinstance(gradient, Seeds) else ()
        pairs = [pair for pair in parts if pair[1] is not None]  # without the zero that sums begin with
        whole = np.concatenate([seed.ravel() for seed in seeds])
        if whole.dtype == object:
            for number, result in pairs:
                whole[result] = whole[result] + number
        else:
            np.add.at(whole, [result for _, result in pairs], [number for number, _ in pairs])
        ends = np.cumsum([seed.size for seed in seeds])[:-1]
        shaped = [flat.reshape(seed.shape) for flat, seed in zip(np.split(whole, ends), seeds, strict=True)]
        return self._picked(self.function.rule(shaped, results, operands, self._needed()))

    def _picked(self, gradients: Sequence[Any]) -> list[Any]:
        """The gradients of the operands that gradients flow to, in their order."""
        picked = list[Any]()
        for positions, gradient in zip(self._positions, gradients, strict=True):
            if len(positions):
                picked += np.asarray(gradient).reshape(-1)[positions].tolist()
        return picked

    def __reduce__(self) -> tuple[Any, ...]:
        return _call, (self.name, self._numbers, self._positions, self._results)


class Result(Primitive):
    """The primitive of one element of the results: it hands its gradient, and which one it is, to the call."""

    __slots__ = ("part",)

    def __init__(self, name: str, part: int) -> None:
        self.part = part
        super().__init__(name, f"output {part + 1} of {name}", float, lambda gradient, out, call: Seeds(gradient, part))

    def node(self, data: float, call: Any) -> Any:
        """The node of this result of a call."""
        node = object.__new__(type(call))
        node._data, node._grad, node._uses = data, 0.0, 0
        node._primitive = self
        node._first, node._second = call, call._second
        node._x, node._y = 0.0, 0.0
        return node

    def tangents(
        self, node: Any, found: Mapping[Any, Any], create_graph: bool, gradients: Callable[..., Any]
    ) -> list[Any]:
        """The tangent among those of the call."""
        return [found[node._first][self.part]]

    def __reduce__(self) -> tuple[Any, ...]:
        return _part, (self.name, self.part)


class Seeds(float):
    """The gradients of some results of a call; as a float, their sum.

    The traversal adds up what the results pass on, as it adds up all gradients. Sums keep their parts, which are
    floats or Values:

    >>> seeds = 0.0 + Seeds(2.0, 0) + Seeds(3.0, 5)
    >>> seeds, sorted(seeds.parts())
    (5.0, [(0.0, None), (2.0, 0), (3.0, 5)])
    """

    __slots__ = ("_before", "_number", "_result")

    _number: Any
    _result: int | None
    _before: Seeds | None

    def __new__(cls, number: Any, result: int | None, before: Seeds | None = None) -> Seeds:
        """A gradient of one result, or of each where the result is None; and the sum that it is added to."""
        data = number if isinstance(number, float) else number._data
        made = super().__new__(cls, data if before is None else float.__add__(before, data))
        made._number, made._result, made._before = number, result, before
        return made

    def parts(self) -> Iterator[tuple[Any, int | None]]:
        """The gradients that were added up, each with the number of its result."""
        part: Seeds | None = self
        while part is not None:
            yield part._number, part._result
            part = part._before

    def __add__(self, other: float) -> Seeds:
        """A sum that keeps its parts."""
        for number, result in other.parts() if isinstance(other, Seeds) else [(other, None)]:
            self = Seeds(number, result, self)  # a sum grows part by part
        return self

    def __abs__(self) -> Seeds:
        """The sizes of the parts."""
        sizes = [Seeds(abs(number), result) for number, result in self.parts()]
        return sum(sizes[1:], sizes[0])

    def __radd__(self, other: float) -> Seeds:
        """A sum that keeps its parts."""
        return Seeds(other, None) + self


def _size(*arrays: Any) -> float:
    """The number of rows or of columns."""
    return float(max(max(array.shape[-2:]) for array in arrays))


def _as_value(value: Any, x: Any) -> Any:
    """A result that is a plain number, such as the 0 in a corner, as a Value like the other results."""
    return x if isinstance(x, Operand) else value._apply(primitives.where, 1.0, float(x), value)


def _elements(array: Any, name: str) -> tuple[Any, Any, list[Any]]:
    """The floats of an array, where in it Values stand that gradients flow to, and these."""
    if array.dtype != object:
        return array.astype(float), (), []
    numbers, positions, values = [], [], []
    for position, x in enumerate(array.ravel().tolist()):
        if is_value(x):
            numbers.append(x._data)
            if x._primitive is not CONSTANT:
                positions.append(position)
                values.append(x)
        else:
            numbers.append(required_number(x, f"an element of what {name} takes"))
    return np.array(numbers, dtype=float).reshape(array.shape), np.array(positions, dtype=int), values


def _constants(kind: Any, numbers: Any) -> Any:
    constants = np.empty(numbers.size, dtype=object)
    constants[:] = [kind(number, requires_grad=False) for number in numbers.ravel().tolist()]
    return constants.reshape(numbers.shape)


def _leaves(kind: Any, shape: tuple[int, ...]) -> Any:
    leaves = np.empty(shape, dtype=object)
    for index in np.ndindex(shape):
        leaves[index] = kind(0.0)
    return leaves


def _call(name: str, numbers: Any, positions: Any, results: Any) -> ArrayCall:
    return ArrayCall(ARRAY_FUNCTIONS[name], numbers, positions, results)


def _part(name: str, part: int) -> Result:
    return ARRAY_FUNCTIONS[name].parts(part, 1)[0]
