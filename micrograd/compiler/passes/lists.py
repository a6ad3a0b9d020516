"""The lists of the passes: what is done to a function until a backend runs it, in this order.

    trace       Source   Trace     run the function once on symbols, which write down what is done to them
    cse         Trace    Columns   equal operations become one (common subexpression elimination)
    normalise   Columns  Graph     everything becomes a sum of products, or a primitive
    batch       Graph    Graph     several examples of a batch get one program
    adjoint     Graph    Graph     the reverse program, from the primitives' own derivative rules
    split       Graph    Graph     dot products that cannot stay whole are taken term by term
    reroll      Graph    Program   what is alike becomes a kernel over arrays, and what repeats a loop
    transpose   Program  Program   the numbers of all samples are neighbours
    fuse        Program  Program   one kernel of two, where only the one reads what the other writes
    allocate    Program  Program   arrays get the memory of arrays that nobody reads any more

Then the backend makes something that runs the program. Where a pass is an optimisation, its last argument says what
runs in its place if it is disabled. What these gain was measured on 2026-11-26 on the programs of tests/benchmarks,
natively, each variant in a process of its own. Without it, a run takes so many times as long:

    cse         a particle's path 1.2, a Hessian 1.1
    transpose   a mixture of Gaussians of two dimensions 3.7
    fuse        a parabola through 150,000 points 1.3, LSE of 10,000 numbers 1.1, 32 words of a transformer 1.05
    allocate    as long; but a chain of maps of 1,000,000 numbers takes 340 MB in place of 310, and without fuse 410
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from micrograd.compiler.ir.equals import in_columns
from micrograd.compiler.passes.adjoint import adjoint
from micrograd.compiler.passes.allocate import allocate
from micrograd.compiler.passes.every_path import trace_of_every_path
from micrograd.compiler.passes.fusing import fused
from micrograd.compiler.passes.histories import merged
from micrograd.compiler.passes.normalise import normalise
from micrograd.compiler.passes.packs import packed
from micrograd.compiler.passes.reroll import reroll
from micrograd.compiler.passes.stages import Pass, Request
from micrograd.compiler.passes.sums import in_pieces
from micrograd.compiler.passes.transposing import transposed
from micrograd.compiler.tracing.trace import trace

if TYPE_CHECKING:
    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.tracing.source import Source


def _as_it_is(thing: Any, request: Request) -> Any:
    return thing


def _traced(source: Source) -> Trace:
    if source.asked:
        return merged(source)
    return trace(source) if source.every_path is None else trace_of_every_path(source)


COMMON = (
    Pass("trace", lambda source, request: _traced(source)),
    Pass("cse", lambda trace, request: in_columns(trace), lambda trace, request: in_columns(trace, merged=False)),
    Pass("normalise", lambda columns, request: normalise(columns)),
    Pass("batch", lambda graph, request: packed(graph, request.examples, request.packing), _as_it_is),
    Pass("adjoint", lambda graph, request: adjoint(graph, request.wanted)),
    Pass("split", lambda graph, request: in_pieces(graph)),
    Pass("reroll", lambda graph, request: reroll(graph, request.start, request.calls(graph))),
    Pass("transpose", lambda program, request: transposed(program, request.stands_for_more), _as_it_is),
)
NATIVE = (
    *COMMON,
    Pass("fuse", lambda program, request: fused(program, request.has_code), _as_it_is),
    Pass("allocate", lambda program, request: allocate(program), _as_it_is),
)
NUMPY = JAX = COMMON

OPTIONAL = tuple(each.name for each in NATIVE if each.without is not None)  # those that can be disabled


def disabled_passes(names: Any) -> frozenset[str]:
    """The names of passes that shall not run, with those in the environment variable MICROGRAD_DISABLE.

    Args:
        names: some of OPTIONAL.

    Raises:
        TypeError: if names is no list, tuple or set of texts.
        ValueError: if there is no such pass, or one that cannot be left out.
    """
    if not isinstance(names, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"disable takes a list of names of passes, not {names!r:.80}")
    variable = os.environ.get("MICROGRAD_DISABLE", "").replace(",", " ").split()
    for source, found in ("disable", names), ("MICROGRAD_DISABLE", variable):
        if unknown := [name for name in found if name not in OPTIONAL]:
            raise ValueError(
                f"{source} names {unknown[0]!r:.80}; the passes that can be left out are {', '.join(OPTIONAL)}"
            )
    return frozenset([*names, *variable])
