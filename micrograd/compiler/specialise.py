"""Specialised: a function traced for one structure of its arguments, and its programs.

``fast([1.0, 2.0])`` and ``fast([1.0, 2.0, 3.0])`` differ in their structure, so they are two Specialised
of one function. Each is traced once, and makes a program when it is first needed: one that computes the
outputs, one that computes the gradients too, and so on. They all start from the same graph.
"""

from __future__ import annotations

from dataclasses import replace
from struct import pack
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.backends.executable import Executable
from micrograd.compiler.closed_over import ClosedOver
from micrograd.compiler.packs import Packing, packed
from micrograd.compiler.stages import Made, Request, Source, run_stages
from micrograd.compiler.trace import TraceError, is_plain
from micrograd.compiler.turns import traced_once
from micrograd.engine.node import requires_grad_version
from micrograd.engine.stored import bring_up_to_date
from micrograd.engine.value import Value
from micrograd.optim import FEWEST_AT_ONCE
from micrograd.storage import Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from micrograd.compiler.backends.backend import Backend, Run
    from micrograd.compiler.columns import Columns
    from micrograd.compiler.graph import Graph
    from micrograd.compiler.numbers import Floats
    from micrograd.compiler.program import Program
    from micrograd.compiler.structure import Structure


_ALONE = Packing()


class Compiled(NamedTuple):
    """A program, and what runs it."""

    program: Program
    run: Run


class Specialised:
    """A function traced for one structure of its arguments: its programs, and where their numbers come from.

    Args:
        function: the function as it was written.
        arguments: those that it is traced for.
        backend: what its programs are compiled for.
        first: Values that shall be its first inputs.
        as_floats: whether no gradient flows through derivatives that are plain numbers; see trace.

    Attributes:
        name: of the function.
        values: the Values that the function read from outside.
        result: what the function returned: symbols, where it computed numbers.
        computed: for each number or Value in the result, whether the program computes it; others stay as they are.
        firsts: for each of them, where in the result the same object is for the first time.
        plain: for each that the program computes, float or int where it is a plain number; None for a Value.
        wanted: the numbers of the inputs whose gradients are wanted.
        requires_grad: whether a gradient flows from the outputs to an input that requires one.
        of_floats: whether there are no Values among the inputs.
        trained: the Values read from outside that gradients flow to.
        leaves_only: whether all Values read from outside are leaves.
        closed_over: what else the function reads, as it was before the trace.
        only_eager: whether its gradient cannot be compiled.
        retraced: how many calls in a row found that something was replaced; -1 before the first call that did not.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Structure,
        backend: Backend,
        first: Sequence[Value] = (),
        as_floats: bool = True,
    ) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._request = Request(backend, name=self.name)
        roots = [("", function), *((type(item).__name__, item) for item in arguments.objects)]
        self.closed_over = ClosedOver(roots)
        try:
            source = Source(traced_once(function), arguments, first, as_floats)
            traced = run_stages(Made(source), "trace", self._request)
        except BaseException:
            self.closed_over.put_back()
            raise
        self.closed_over.notice_new_attributes()
        if not self.closed_over.is_current():
            self._check_no_symbol_stays(roots)
        self._graph = run_stages(traced, "normalise", self._request)
        columns: Columns = traced.thing
        trace = columns.trace
        if symbols := ClosedOver([(type(item).__name__, item) for item in trace.result.objects], whole=True).symbols:
            raise TraceError(
                f"a number is in {symbols[0]}, in an object that the compiled function returns: return numbers in "
                "lists, tuples, dicts or arrays, and make the object of them outside"
            )
        self.result: Structure = trace.result
        self.values = trace.values
        self.computed = [isinstance(leaf, Value) for leaf in self.result.leaves]
        places = {id(leaf): place for place, leaf in reversed(list(enumerate(self.result.leaves)))}
        self.firsts = [places[id(leaf)] for leaf in self.result.leaves]
        self.plain = [
            leaf.__class__ if is_plain(leaf) else None for leaf in self.result.leaves if isinstance(leaf, Value)
        ]
        self._tells_apart = trace.tells_apart
        self._kinds = [value._primitive for value in self.values]
        self._version = requires_grad_version()
        given = [value.requires_grad for value in self.values]
        given += [isinstance(leaf, Value) and leaf.requires_grad for leaf in arguments.leaves]
        self.of_floats = not self.values and not any(isinstance(leaf, Value) for leaf in arguments.leaves)
        self.wanted = np.flatnonzero(given)
        graph: Graph = self._graph.thing
        self.requires_grad = bool(graph.differentiable[np.concatenate(graph.inputs)[self.wanted]].any())
        self.trained = tuple(value for value in self.values if value.requires_grad)
        self.leaves_only = all(value.is_leaf for value in self.values)
        # Of fewer Values than this, it is quicker to read each of them at every call.
        many = self.leaves_only and len(self.values) >= FEWEST_AT_ONCE
        self._stored = Stored(self.values) if many else None
        self.stored_and_trained = Stored(self.trained) if many and self.trained else None
        self._nodes = columns.nodes
        self._compiled: dict[bool, Compiled] = {}
        self.only_eager = False
        self.retraced = -1

    def is_outdated(self) -> bool:
        """Whether what it closes over was replaced since it was traced, or gradients are wanted elsewhere."""
        if not self.closed_over.is_current():
            return True
        if self._version is not requires_grad_version():
            if self._kinds != [value._primitive for value in self.values]:
                return True
            self._version = requires_grad_version()
        return False

    def _check_no_symbol_stays(self, roots: list[tuple[str, Any]]) -> None:
        """Refuse a function that keeps numbers of its trace; what it changed is put back."""
        after = ClosedOver(roots)
        if not after.symbols:
            return
        self.closed_over.put_back()
        place = after.symbols[0]
        line = after.line_of(place)
        where = f" ({line[0]}:{line[1]})" if line else ""
        raise TraceError(
            f"a number is left behind in {place}{where}: a compiled function runs once, "
            f"on symbols, so at later calls nothing would be put there. Return the number, and pass it in as an "
            f"argument at the next call"
        )

    def confuses(self, arguments: Structure) -> bool:
        """Whether the function asks which Value is which, and two symbols stood for one of these."""
        if not self._tells_apart:
            return False
        given = [leaf for leaf in arguments.leaves if isinstance(leaf, Value)]
        return len(set(given)) < len(given) or any(map(self.closed_over.holds, given))

    def numbers(self, arguments: Structure) -> Floats:
        """What the inputs of the programs are now: the Values that the function reads, and those of its arguments."""
        given = arguments.numbers()
        if self._stored is None:
            bring_up_to_date()
            given = [value._data for value in self.values] + given
        numbers = np.frombuffer(pack(f"{len(given)}d", *given))
        return numbers if self._stored is None else np.concatenate([self._stored.data(), numbers])

    def want(self, inputs: Iterable[int]) -> None:
        """Ask for the gradients of these inputs only."""
        self.wanted = np.array(list(inputs), dtype=np.int64)

    def program(self, gradients: bool, start: int = 0, examples: int = 1, packing: Packing = _ALONE) -> Program:
        """A program.

        Args:
            gradients: whether it computes the gradients, too.
            start: where in the buffer it begins; see reroll.
            examples: how many sets of arguments there are at a time.
            packing: how many of them may be in the program, which has an output for each; see packs.py.
        """
        graph = self._graph._replace(thing=packed(self._graph.thing, examples, packing))
        made = self._rerolled(graph, gradients, start)
        return self._described(made.thing, made)

    def compiled(self, gradients: bool) -> Compiled:
        """A program that can be run; it is made once."""
        if gradients not in self._compiled:
            rerolled = self._rerolled(self._graph, gradients, 0)
            made = run_stages(rerolled, "compile", self._request)
            compiled = Compiled(self._described(rerolled.thing, made), made.thing)
            if isinstance(compiled.run, Executable):
                compiled.run.program = compiled.program
            self._compiled[gradients] = compiled
        return self._compiled[gradients]

    def _rerolled(self, graph: Made, gradients: bool, start: int) -> Made:
        wanted = self.wanted if gradients else self.wanted[:0]
        return run_stages(graph, "reroll", replace(self._request, wanted=wanted, start=start))

    def _described(self, program: Program, made: Made) -> Program:
        """The program, with what is known of how it was made."""
        return program.described(self._nodes, made.seconds)
