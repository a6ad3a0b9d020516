"""What writes on a tape under no_grad: all results are detached, but where a derivative is asked for on purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.compiler.tracing.symbols import is_plain
from micrograd.engine import primitives
from micrograd.engine.recorder import Recorder, passed_over
from micrograd.engine.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.engine.array_calls import ArrayFunction
    from micrograd.engine.primitive import Primitive


class DetachedTape(Tracer):
    """What writes on a tape under no_grad: no gradient flows through the results.

    Args:
        tape: the tape.
        remembers: whether a derivative is asked for on purpose: then it writes as the tape does.
    """

    def __init__(self, tape: Tracer, remembers: bool = False) -> None:
        self.tape, self.remembers = tape, remembers

    @property
    def is_open(self) -> bool:  # type: ignore[override]  # as long as the tape is
        """Whether the tape records."""
        return self.tape.is_open

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down, detached."""
        if not self.is_open:
            return passed_over(primitive, operands)
        result = self.tape.apply(primitive, *operands)
        return result if self.remembers or is_plain(result) else self.tape.apply(primitives.detach, result)

    def called(self, function: ArrayFunction, arrays: Sequence[Any], has_gradient: bool = True) -> Any:
        """What the tape gives; no gradient flows through it, unless this remembers."""
        return self.tape.called(function, arrays, has_gradient and self.remembers)

    def under_no_grad(self) -> Recorder:
        """Another one like it."""
        return DetachedTape(self.tape)

    def under_derivative(self) -> Recorder | None:
        """One that remembers, unless this does."""
        return None if self.remembers else DetachedTape(self.tape, remembers=True)

    def numbers_taken(self, output: Any) -> None:
        """Let the tape take note, if this remembers; else they are constants, as all results are."""
        if self.remembers:
            self.tape.numbers_taken(output)


def _as_the_tape(name: str) -> Callable[..., Any]:
    """The method that does what that of the tape does."""

    def method(self: DetachedTape, *arguments: Any) -> Any:
        return getattr(self.tape, name)(*arguments)

    return method


for _name in vars(Tracer).keys() - vars(DetachedTape).keys():  # all else that a tracer is asked
    setattr(DetachedTape, _name, _as_the_tape(_name))
