"""The stages of the compiler, in the order in which they run, and what runs and times them.

Each stage makes one thing that does not change of another one, which it leaves as it is:

    Source  --trace-->  Columns  --normalise-->  Graph  --adjoint-->  Graph  --reroll-->  Program  --compile-->  Run

One trace serves several programs, with gradients and without. So whoever runs the stages may stop after
each, and go on from there as often as needed:

    graph = run_stages(Made(Source(function, arguments)), "normalise", request)
    program = run_stages(graph, "reroll", request)
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.compiler.numbers import no_integers
from micrograd.compiler.passes.adjoint import adjoint
from micrograd.compiler.passes.equals import in_columns
from micrograd.compiler.passes.normalise import normalise
from micrograd.compiler.passes.progress import line_of
from micrograd.compiler.passes.reroll import reroll
from micrograd.compiler.tracing.trace import trace, without_collecting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.guards.structure import Structure
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Integers
    from micrograd.engine.value import Value


class Source(NamedTuple):
    """What the first stage is handed: a function, and the arguments that it is traced for.

    Attributes:
        function: as it was written.
        arguments: its positional and its named arguments.
        first: Values that shall be the first inputs; see trace.
        as_floats: whether no gradient flows through derivatives that are plain numbers; see trace.
        is_recorded: whether calls are recorded; see trace.
    """

    function: Callable[..., Any]
    arguments: Structure
    first: Sequence[Value] = ()
    as_floats: bool = True
    is_recorded: bool = True


@dataclass(frozen=True)
class Request:
    """What is asked of the stages.

    Attributes:
        run_of: makes what runs a program: that of a backend.
        wanted: the numbers of the inputs whose gradients it returns too.
        start: where in the buffer all but the first inputs begin; see reroll.
        name: what is compiled, as its progress shows it.
    """

    run_of: Callable[[Program], Any]
    wanted: Integers = field(default_factory=no_integers)
    start: int = 0
    name: str = ""


class Stage(NamedTuple):
    """A step from one thing to the next.

    Attributes:
        name: what explain() calls it.
        make: makes its thing of the one before; the request says which of several there may be.
    """

    name: str
    make: Callable[[Any, Request], Any]


STAGES = (
    Stage("trace", lambda source, request: in_columns(trace(*source))),
    Stage("normalise", lambda columns, request: normalise(columns)),
    Stage("adjoint", lambda graph, request: adjoint(graph, request.wanted)),
    Stage("reroll", lambda graph, request: reroll(graph, request.start)),
    Stage("compile", lambda program, request: request.run_of(program)),
)


class Made(NamedTuple):
    """What the stages have made so far, and how many seconds each took."""

    thing: Any
    seconds: dict[str, float] = {}  # noqa: RUF012  # never changed: run_stages makes another one


def run_stages(made: Made, last: str, request: Request) -> Made:
    """Run the stages that come after those that have run, up to and including the last one; say so if it takes long."""
    thing, seconds = made.thing, dict(made.seconds)
    names = [stage.name for stage in STAGES]
    with without_collecting(), line_of(request.name, sum(seconds.values())) as line:
        for stage in STAGES[len(seconds) : names.index(last) + 1]:
            line.stage = stage.name
            begin = time.perf_counter()
            thing = stage.make(thing, request)
            seconds[stage.name] = time.perf_counter() - begin
    return Made(thing, seconds)
