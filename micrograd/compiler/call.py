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

from struct import error as StructError  # noqa: N812  # it is a class
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd._support.checks import check_unchanged
from micrograd.engine.commit import commit, setting
from micrograd.engine.higher_order import partial_gradients
from micrograd.engine.node import requires_grad_version
from micrograd.engine.primitive import CONSTANT, Primitive
from micrograd.engine.recorder import refusing_floats

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from micrograd.compiler.numbers import Floats, Integers
    from micrograd.compiler.program import Program


class Source(NamedTuple):
    """What a call is a run of: for pages, which open it.

    Attributes:
        function: as it was written.
        program: that computed its results.
        inputs: the numbers that the program was given.
        wanted: which of these are the operands of the call.
    """

    function: Callable[..., Any]
    program: Program
    inputs: Floats
    wanted: Integers


class _OfOneCall(Primitive):
    """A primitive that belongs to one call of a compiled function."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"the result of the compiled {self.name} cannot be copied or pickled; call {self.name} itself")


class _OfProgram(_OfOneCall):
    """The primitive of a node whose operands are what a program read.

    Args:
        name: the function's.
        written: runs the function as it is written on the same numbers, and gives the results.
        source: what it is a run of.
    """

    __slots__ = ("_results", "_written", "source")

    def __init__(self, name: str, written: Callable[[], list[Any]], source: Source) -> None:
        super().__init__(name, f"compiled {name}", float)
        self.source = source
        self._written = written
        self._results: list[Any] | None = None

    def graphs_of(self, result: int, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """What each operand is given by one of the results, as graphs: those of the function as it is written."""
        if self._results is None:
            self._results = self._written()
        operands = [
            o for o in dict.fromkeys(node._x) if o._primitive is not CONSTANT and (useful is None or o in useful)
        ]
        return list(partial_gradients(self._results[result], gradient, node._x, operands).items())

    def gradients(self, gradient: float) -> Floats:
        """What each operand is given, for this gradient of the node."""
        raise NotImplementedError

    def receivers(self, node: Any) -> list[Any]:
        """The operands that gradients flow to."""
        return [operand for operand in node._x if operand._primitive is not CONSTANT]

    def shares(self, node: Any, gradient: float, useful: Container[Any] | None = None) -> list[tuple[Any, float]]:
        """What each operand is given."""
        pairs = zip(node._x, self.gradients(gradient).tolist(), strict=True)
        return [(o, share) for o, share in pairs if o._primitive is not CONSTANT and (useful is None or o in useful)]


class Call(_OfProgram):
    """The primitive of a compiled function's only result, which has its gradients already.

    Args:
        name: the function's.
        derivatives: of the result, with respect to each operand.
        leaves_only: whether all operands are leaves, and none is there twice.
        written, source: see above.
    """

    __slots__ = ("_derivatives", "_version", "leaves_only")

    def __init__(
        self, name: str, derivatives: Floats, leaves_only: bool, written: Callable[[], list[Any]], source: Source
    ) -> None:
        super().__init__(name, written, source)
        self._derivatives = derivatives
        self.leaves_only = leaves_only
        self._version = requires_grad_version()

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """What each operand is given, as graphs."""
        return self.graphs_of(0, node, gradient, useful)

    def gradients(self, gradient: float) -> Floats:
        """The derivatives times the gradient of the result."""
        return gradient * self._derivatives

    def backpropagates_at_once(self, node: Any, gradient: float) -> bool:
        """Add to the gradients of the operands directly; whether that could be done: they must all be leaves."""
        if not self.leaves_only or self._version is not requires_grad_version():
            return False
        before = [leaf._grad for leaf in node._x]
        shares = self.gradients(gradient)
        try:
            with refusing_floats("a gradient that is a graph is not to be made a float"):
                after = (np.frombuffer(pack(f"{len(before)}d", *before)) + shares).tolist()
        except StructError:  # one of them is a graph
            after = [gradient + share for gradient, share in zip(before, shares.tolist(), strict=True)]
        commit(setting([*node._x, node], "_grad", [*after, gradient]))
        return True


class CallOfSeveral(_OfProgram):
    """The primitive of the node below several results.

    Args:
        name: the function's.
        results: how many there are.
        run: takes the gradients of the results, and gives those of the operands.
        written, source: see above.

    Attributes:
        results: the same.
    """

    __slots__ = ("_run", "results")

    def __init__(
        self,
        name: str,
        results: int,
        run: Callable[[Floats], Floats],
        written: Callable[[], list[Any]],
        source: Source,
    ) -> None:
        super().__init__(name, written, source)
        self.results, self._run = results, run

    def gradients(self, gradient: float) -> Floats:
        """What the reverse program gives for the gradients of the results; a plain float is that of each of them."""
        seeds = np.zeros(self.results)
        for number, result in gradient.parts() if isinstance(gradient, Seeds) else [(gradient, None)]:
            seeds[slice(None) if result is None else result] += number
        return self._run(seeds)


class OneOfSeveral(_OfOneCall):
    """The primitive of one of several results: it hands its gradient, and which one it is, to the call.

    Args:
        name: the function's.
        result: the number of the result.

    Attributes:
        result: the same.
    """

    __slots__ = ("result",)

    def __init__(self, name: str, result: int) -> None:
        self.result = result
        symbol = f"output {result + 1} of {name}"
        super().__init__(name, symbol, float, lambda gradient, out, call: Seeds(gradient, result))

    def graphs(self, node: Any, gradient: Any, useful: Container[Any] | None) -> list[tuple[Any, Any]]:
        """What the operands of the call are given, as graphs. The call is passed over: graphs are no Seeds."""
        call = node._first
        check_unchanged(call._x, call._y)
        return cast("CallOfSeveral", call._primitive).graphs_of(self.result, call, gradient, useful)


class Seeds(float):
    """The gradients of some results of a call; as a float, their sum.

    The walk adds up what the results pass on, as it adds up all gradients. Sums keep their parts:

    >>> seeds = 0.0 + Seeds(2.0, 0) + Seeds(3.0, 5)
    >>> seeds, sorted(seeds.parts())
    (5.0, [(0.0, None), (2.0, 0), (3.0, 5)])
    """

    __slots__ = ("_before", "_number", "_result")

    _number: float
    _result: int | None
    _before: Seeds | None

    def __new__(cls, number: float, result: int | None, before: Seeds | None = None) -> Seeds:
        """A gradient of one result, or of each where the result is None; and the sum that it is added to."""
        made = super().__new__(cls, number if before is None else float.__add__(before, number))
        made._number, made._result, made._before = number, result, before
        return made

    def parts(self) -> Iterator[tuple[float, int | None]]:
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

    def __radd__(self, other: float) -> Seeds:
        """A sum that keeps its parts."""
        return Seeds(other, None) + self
