"""Passes, what is asked of them, and what runs and times them.

Each pass makes one thing that does not change of another one, which it leaves as it is; lists.py has their lists. One
trace serves several programs, with gradients and without. So whoever runs the passes may stop after each, and go on
from there as often as needed:

    graph = run_stages(Made(Source(function, arguments)), "normalise", request)
    program = run_stages(graph, "transpose", request)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.compiler.numbers import no_integers
from micrograd.compiler.passes.listing import effect_of
from micrograd.compiler.passes.packs import Packing
from micrograd.compiler.passes.progress import line_of
from micrograd.compiler.passes.verifier import Verifier
from micrograd.compiler.tracing.tape import without_collecting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.passes.listing import Effect
    from micrograd.engine.array_calls import ArrayFunction
    from micrograd.engine.primitive import Primitive


class Pass(NamedTuple):
    """A step from one thing to the next.

    Attributes:
        name: what explain() calls it.
        make: makes its thing of the one before; the request says which of several there may be.
        without: what runs in its place where it is disabled; None if it is not an optimisation.
    """

    name: str
    make: Callable[[Any, Request], Any]
    without: Callable[[Any, Request], Any] | None = None

    def of(self, thing: Any, request: Request, verifier: Verifier) -> Any:
        """What it makes of a thing, or what comes in its place where it is disabled."""
        if self.without is not None and self.name in request.disabled:
            return self.without(thing, request)
        made = self.make(thing, request)
        if request.verify:
            verifier.check(self.name, thing, made, request.wanted)
        return made


@dataclass(frozen=True)
class Request:
    """What is asked of the passes.

    Attributes:
        lower: makes what runs a program: that of a backend.
        passes: those that come before.
        wanted: the numbers of the inputs whose gradients it returns too.
        start: where in the buffer all but the first inputs begin; see reroll.
        name: what is compiled, as the line of a long compile says it.
        examples: how many sets of arguments there are at a time.
        packing: how many of them may be in a program; see packs.py.
        has_code: whether the backend has code for a primitive.
        disabled: the names of the passes that do not run.
        verify: whether each pass is checked; see verifier.py.
        arrays: makes what runs a function of whole arrays: that of a backend.
        calls: finds the calls of functions outside of a program in its graph; see reroll.
        stands_for_more: whether the program is one of few rows, from which that of many is made.
    """

    lower: Callable[[Program], Any]
    passes: tuple[Pass, ...]
    wanted: Integers = field(default_factory=no_integers)
    start: int = 0
    name: str = ""
    examples: int = 1
    packing: Packing = Packing()  # noqa: RUF009  # a tuple of two numbers
    has_code: Callable[[Primitive], object] = bool
    disabled: frozenset[str] = frozenset()
    verify: bool = False
    arrays: Callable[[ArrayFunction], Any] = lambda function: function
    calls: Callable[[Graph], Sequence[tuple[Integers, Integers]]] = lambda graph: ()
    stands_for_more: bool = False


class Made(NamedTuple):
    """What the passes have made so far, how many seconds each took, and how large the program was after each."""

    thing: Any
    seconds: dict[str, float] = {}  # noqa: RUF012  # never changed: run_stages makes another one
    effects: dict[str, Effect] = {}  # noqa: RUF012  # the same


def run_stages(made: Made, last: str, request: Request) -> Made:
    """Run the passes that come after those that have run, up to and including the last one; say so if it takes long."""
    thing, seconds, verifier = made.thing, dict(made.seconds), Verifier()
    effects: dict[str, Effect | None] = {**made.effects}
    passes = (*request.passes, Pass("compile", lambda program, request: request.lower(program)))
    names = [each.name for each in passes]
    with without_collecting(), line_of(request.name):
        for each in passes[len(seconds) : names.index(last) + 1]:
            begin = time.perf_counter()
            thing = each.of(thing, request, verifier)
            seconds[each.name] = time.perf_counter() - begin
            effects[each.name] = effect_of(thing)
    return Made(thing, seconds, {name: effect for name, effect in effects.items() if effect is not None})
