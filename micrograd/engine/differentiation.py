"""Differentiation: which function a transform such as mg.grad is running, and what its result depends on.

A transform runs f on new Values, and differentiates by these. Two questions follow. Does a gradient flow from the
result to other Values, as to w in ``mg.grad(lambda x: w * x**3)(2.0)``? Then the transform must return a graph on them.
Does f make plain numbers of what depends on its inputs, as ``backward()`` does? Then the transform would lose their
gradients, so it raises an error.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd.engine.order import recorded
from micrograd.engine.primitive import LEAF
from micrograd.engine.recorder import ContextEntry, holding, on_top, recorder_on_top
from micrograd.engine.tracer import Tracer, tracer_on_top

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import NoReturn

INPUT_OF_A_TRANSFORM = ("the input of a transform",)  # what such a leaf has for _x, where other leaves have ()


class Differentiation(ContextEntry):
    """One run of a function by a transform, which differentiates it.

    Attributes:
        is_recorded: whether the transform was called where operations are recorded, and not under no_grad.
        inputs: the Values that it is differentiated by; none before and after the run.
        as_written: whether the transform needs graphs, so that compiled functions inside run as they are written,
            which need not run twice then.
    """

    def __init__(self) -> None:
        self.is_recorded = is_recording()
        self.inputs: Sequence[Any] = ()
        self.as_written = False


_differentiation: ContextVar[Differentiation | None] = ContextVar("differentiation", default=None)
differentiation_in_use = _differentiation.get  # backward() calls this: it may be over


@contextmanager
def differentiated(run: Differentiation, inputs: Sequence[Any], as_written: bool) -> Iterator[None]:
    """Run a function inside, to differentiate it by these inputs."""
    run.inputs, run.as_written = inputs, as_written
    try:
        yield from holding(_differentiation, run)
    finally:
        run.inputs = ()


def running() -> list[Differentiation]:
    """The differentiations that are running, the innermost first."""
    runs, run = [], on_top(_differentiation)
    while run is not None:
        if run.is_open:
            runs.append(run)
        run = run.below
    return runs


def reaches(results: Sequence[Any], sources: Sequence[Differentiation | None]) -> bool:
    """Whether a gradient flows to one of several Values from a source.

    Args:
        results: the Values.
        sources: None stands for all leaves that require a gradient, other than the inputs of transforms; a
            differentiation for its inputs.
    """
    recorder = recorder_on_top()
    while recorder is not None:  # detect_anomaly checks what another recorder makes
        if isinstance(recorder, Tracer):
            return recorder.reaches(results, sources)
        recorder = recorder.inner
    inputs = {value for run in sources if run is not None for value in run.inputs}
    leaves = None in sources
    return any((leaves and node._primitive is LEAF and not node._x) or node in inputs for node in recorded(results))


def needs_graphs() -> bool:
    """Whether the transform that runs this, if any, differentiates gradients again."""
    return (run := on_top(_differentiation)) is not None and run.as_written


def is_differentiated() -> bool:
    """Whether a transform runs this."""
    return on_top(_differentiation) is not None


def is_recording() -> bool:
    """Whether operations are recorded: not under no_grad."""
    return (recorder := recorder_on_top()) is None or recorder.remembers


def check_no_gradient_is_lost(output: Any, name: str) -> None:
    """Refuse plain numbers for gradients inside of a function that is differentiated, if they depend on its inputs.

    Args:
        output: what is backpropagated from.
        name: of the function that does it.
    """
    if (tracer := tracer_on_top()) is not None:
        tracer.numbers_taken(output)
    if _differentiation.get() is not None and (runs := running()) and is_recording() and reaches([output], runs):
        raise ValueError(
            f"{name} inside of a function that mg.grad or another transform differentiates gives plain numbers, and no "
            f"gradient would flow through them: write create_graph=True; or, if they are to be constants, call it "
            f"inside `with mg.no_grad():`"
        )


def refuse_constant(shown: str) -> NoReturn:
    """Refuse a gradient that is a graph by a constant."""
    raise ValueError(
        f"{shown} requires no gradient, so what is computed from it is not recorded: leave it out of the inputs, or "
        "set its requires_grad = True before the output is computed"
    )
