"""The trace of an optimiser's update: what one parameter, its gradient and its state become."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.compiler.tracing.tape import Tape, tracing

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.ir.entries import Trace


def trace_of_update(update: Callable[..., Any], states: int) -> Trace:
    """The trace of an update for one parameter.

    Args:
        update: of an optimiser.
        states: how many numbers it keeps for a parameter.

    Returns:
        The trace. Its inputs are the parameter, the gradient, the learning rate and the state; its outputs are the next
        parameter and the next state.

    Example:
        >>> import micrograd as mg
        >>> trace = trace_of_update(mg.optim.SGD([mg.Value(1.0)], momentum=0.9).update, 1)
        >>> [primitive.name for primitive in trace.operations.primitives]
        ['input', 'input', 'input', 'input', 'literal', 'mul', 'add', 'mul', 'sub']
    """
    tape = Tape()
    with tracing(tape):
        symbols = [tape.input(number) for number in range(3 + states)]
        parameter, gradient, rate, *state = symbols
        number, following = update(parameter, gradient, tuple(state), rate)
        results = [tape.position(result) for result in (number, *following)]
    return tape.trace([[symbol._position for symbol in symbols]], results)
