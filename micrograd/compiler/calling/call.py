"""Call: the primitive of a compiled function's result.

The result of ``fast(x)`` is one node of the graph, and its operands are all Values that the function read:

    fast(x)   =   Call("fast")(w, b, x)

When backward() arrives there, nothing is left to derive: the program has computed the gradients with
respect to w, b and x already, and the Call multiplies them by the gradient of the result.

Where there are several results, the gradients depend on which of them were used. So each of them is a node on top
of one more, the call, whose number is 0:

    fast(x)[0]   =   8.0 + call          call   =   CallOfSeveral("fast")(w, b, x)
    fast(x)[1]   =   6.0 + call

What the results pass on to the call are Seeds. When all have done so, one run of the reverse program takes them.
"""

from __future__ import annotations

from itertools import chain
from operator import add, attrgetter, countOf
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd._support.checks import check_unchanged
from micrograd.engine.array_calls import OfCall, Result, Seeds
from micrograd.engine.commit import commit, setting
from micrograd.engine.higher_order import partial_gradients
from micrograd.engine.node import NUMBER
from micrograd.engine.primitive import CONSTANT, LEAF, Primitive
from micrograd.engine.stored import forget_stored, requires_grad_version
from micrograd.engine.value import _VALUE, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats
    from micrograd.compiler.tracing.questions import Question
    from micrograd.engine.storage import Stored


class Origin(NamedTuple):
    """What all calls of a program have in common.

    Attributes:
        name: the name of the function.
        symbol: what pictures show for a call.
        function: as it was written.
        program: computes its results.
        wanted: which inputs of the program are the operands of a call: indices, or a slice.
        trained: how many of these the function reads from outside; they are the first ones.
        leaves_only: whether all Values that the function reads from outside are leaves.
        stored: the array that the trained Values are stored in, if there is one.
        is_whole: whether the program computes everything: not where iterations of mg.vmap have one of their own.
        questions: what the function asked of numbers; the last outputs of the program are the answers.
        path: where the program decides itself, a weak reference to what finds the path for inputs; see Specialised.
        add: adds to the gradients of leaves and sets that of the node, where there is a faster way; see Ports.
    """

    name: str
    symbol: str
    function: Callable[..., Any]
    program: Program
    wanted: Any
    trained: int
    leaves_only: bool
    stored: Stored | None
    is_whole: bool
    questions: Sequence[Question]
    path: Callable[[], Callable[[Floats], Any] | None] | None
    add: Callable[[Any, Any, Any, float], bool] | None = None


class _OfOneCall(Primitive):
    """A primitive that belongs to one call of a compiled function."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the result of the compiled {self.name} cannot be copied or pickled; call {self.name} itself")


class _OfProgram(_OfOneCall, OfCall):
    """The primitive of a node whose operands are what a program read; ``node_of_call`` makes both.

    Each call makes one, so what all calls have in common is in the class and in the origin.

    Attributes:
        origin: what it has in common with the other calls.
    """

    __slots__ = ("_computed", "_inputs", "_results", "_version", "_written", "origin")

    name = property(attrgetter("origin.name"))
    symbol = property(attrgetter("origin.symbol"))

    origin: Origin
    _inputs: Sequence[float] | Floats
    _computed: Any
    _written: tuple[Any, ...]
    _version: object
    _results: list[Any] | None

    @property
    def inputs(self) -> Floats:
        """The numbers that the program was given; pages open them."""
        return np.asarray(self._inputs)

    def graphs_of(self, result: int, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """The gradient contribution of one result to each operand, as a graph of the function as it is written."""
        if self._results is None:
            written, *arguments = self._written
            self._results = written(*arguments)
        operands = [
            o for o in dict.fromkeys(node._x) if o._primitive is not CONSTANT and (useful is None or o in useful)
        ]
        return list(partial_gradients(self._results[result], gradient, node._x, operands).items())

    def gradients(self, gradient: float) -> Floats:
        """The contribution to each operand, for this gradient of the node."""
        raise NotImplementedError

    def floats(self, gradient: float) -> Sequence[float]:
        """The same as floats."""
        found: list[float] = self.gradients(gradient).tolist()
        return found


class Call(_OfProgram):
    """The primitive of a compiled function with one result; its derivatives by the operands are computed already."""

    __slots__ = ()

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """The contribution to each operand, as a graph."""
        return self.graphs_of(0, node, gradient, useful)

    def gradients(self, gradient: float) -> Floats:
        """The derivatives times the gradient of the result."""
        derivatives: Floats = np.asarray(self._computed)
        return derivatives if gradient == 1.0 else gradient * derivatives + 0.0

    def floats(self, gradient: float) -> Sequence[float]:
        """The same as floats, which they mostly are already."""
        is_done = type(self._computed) is tuple and gradient == 1.0
        return self._computed if is_done else super().floats(gradient)

    def backpropagates_at_once(self, node: Any, gradient: float) -> bool:
        """Add to the gradients of the operands in one step, if all of them are leaves; whether that was done."""
        origin, leaves = self.origin, node._x
        if not origin.leaves_only or self._version is not requires_grad_version():
            return False
        if len(leaves) > origin.trained:
            if countOf(map(_primitive_of, leaves), LEAF) < len(leaves) or len(set(leaves)) < len(leaves):
                return False
        elif origin.stored is not None and (plan := origin.stored.adding(self.gradients(gradient))) is not None:
            commit(chain(plan, setting([node], "_grad", [gradient])))
            return True
        forget_stored(leaves)
        if origin.add is not None and gradient == 1.0 and origin.add(leaves, self._computed, node, gradient):
            return True
        after = map(add, map(_gradient_of, leaves), self.floats(gradient))
        commit(setting([*leaves, node], "_grad", [*after, gradient]))
        return True


_primitive_of, _gradient_of = attrgetter("_primitive"), attrgetter("_grad")


class CallOfSeveral(_OfProgram):
    """The primitive of the node below several results.

    What was computed is a function from the gradients of the results to those of the operands.
    """

    __slots__ = ()

    @property
    def results(self) -> int:
        """How many results there are."""
        program = self.origin.program
        return len(program.outputs) - program.answers

    def gradients(self, gradient: float) -> Floats:
        """The contributions for the gradients of all results; a plain float is the gradient of each of them."""
        seeds = np.zeros(self.results)
        for number, result in gradient.parts() if isinstance(gradient, Seeds) else [(gradient, None)]:
            seeds[slice(None) if result is None else result] += number
        found: Floats = self._computed(seeds)
        return found


class OneOfSeveral(_OfOneCall, Result):
    """The primitive of one of several results: it hands its gradient and its number to the call."""

    __slots__ = ()

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """The contributions to the operands of the call, as graphs; the call itself has no graph."""
        call = node._first
        check_unchanged(call._x, call._y)
        return cast("CallOfSeveral", call._primitive).graphs_of(self.part, call, gradient, useful)


def node_of_call(
    kind: type[_OfProgram],
    origin: Origin,
    inputs: Sequence[float] | Floats,
    computed: Any,
    written: tuple[Any, ...],
    data: float,
    operands: tuple[Any, ...],
) -> Value:
    """The node of a call.

    Args:
        kind: of its primitive.
        origin: what it has in common with the other calls.
        inputs: the numbers that the program was given.
        computed: what the program computed for the gradients of the operands; see the subclasses.
        written: a function and its arguments. It runs the function as it is written, and gives the results.
        data: the result.
        operands: in the order of the inputs.
    """
    call = _new(kind)  # __init__ would take as long as all else here
    call.origin, call._inputs, call._computed, call._written = origin, inputs, computed, written
    call._version, call._results = requires_grad_version(), None
    wanted = origin.wanted
    node = _new(*_VALUE)  # as operators make it, without the check of whether gradients flow to its operands
    node._data, node._grad, node._uses = data, 0.0, 0
    node._primitive = call
    node._first = node._second = NUMBER
    node._x, node._y = operands, inputs[wanted] if type(wanted) is slice else np.asarray(inputs)[wanted]
    return node


_new = object.__new__
