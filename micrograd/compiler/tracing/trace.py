"""Trace: a function runs once on symbols, and what the tape has then is the trace.

The arguments become symbols, containers are rebuilt with these in them, and the function is called. What it returns is
the result; the Values that it has read from outside, and its arguments, are the inputs.
"""

from __future__ import annotations

import operator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from micrograd._support.checks import are_all
from micrograd.compiler.guards.refusals import TraceError, in_place_of_others
from micrograd.compiler.guards.sources import resting
from micrograd.compiler.guards.structure import Structure, is_unchanged
from micrograd.compiler.ir.entries import INPUT, Called, Decided, Mapped, Trace
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.questions import Questions
from micrograd.compiler.tracing.symbols import Symbol
from micrograd.compiler.tracing.tape import Tape, array_of_symbols, symbols_of, tracing
from micrograd.engine.copying import user_attributes
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.tracing.source import Source


_attributes_of = operator.attrgetter("__dict__")


class RepeatedError(Exception):
    """The function is to be traced again, in another way.

    Args:
        **told: what of the source is another one then.
    """

    def __init__(self, **told: Any) -> None:
        super().__init__()
        self.told = told


class AbandonedError(BaseException):
    """Another trace follows, before which all that the function has changed is put back.

    A function that catches any Exception shall not catch this.

    Attributes:
        has_changed: whether it has changed something.
    """

    has_changed = False


def trace(source: Source) -> Trace:
    """Run a function on symbols in the place of the numbers in its arguments.

    Returns:
        The trace. Its inputs are the Values that were read, in a group for each role, then the arguments, and then the
        results of maps and decisions.

    Raises:
        RepeatedError: if the program cannot decide, if it decides what iterations ask, if it has many short choices
            or calls of functions of whole arrays, or if large scans are to be written out.
    """
    tape = Tape(source.as_floats, source.is_recorded)
    tape.takes_maps, tape.takes_calls = source.takes_maps, source.takes_calls
    tape.takes_decisions, tape.chooses, tape.selects = source.takes_decisions, source.chooses, source.selects
    tape.in_lanes, tape.writes_out = source.in_lanes, source.writes_out
    tape.leaves_calls, tape.counts_calls = source.leaves_calls, source.takes_calls and not source.leaves_calls
    tape.writes_scans = source.writes_scans
    try:
        written = traced_on(tape, source)
    except Exception:
        reasons = tape.looks_into_maps, tape.follows, tape.asks_in_iterations, tape.has_many_choices, tape.calls_often
        if not any(reasons) and tape.writes_scans == source.writes_scans:
            raise
    if tape.writes_scans != source.writes_scans:
        raise RepeatedError(writes_scans=True)
    if tape.calls_often:
        raise RepeatedError(leaves_calls=True)
    if tape.has_many_choices:
        raise RepeatedError(selects=True)
    if tape.asks_in_iterations:
        raise RepeatedError(chooses=True)
    if tape.follows:
        raise RepeatedError(takes_decisions=False, chooses=False)
    if tape.looks_into_maps:
        return trace(source._replace(takes_decisions=False, writes_out=True))
    return written


def traced_on(tape: Tape, source: Source, ask: Callable[..., Questions] = Questions) -> Trace:
    """What a function writes on a tape; ask makes what answers its questions."""
    arguments, rounding = source.arguments, source.rounding
    with tracing(tape):
        for value in source.first:
            tape.position(value, INPUT)  # no operation gives them this role: they are a group of their own
        arguments.check_integers()
        bounds = promotion.EXACT if arguments.largest > promotion.SHORT[1] else promotion.SHORT
        symbols = symbols_of(tape, arguments, bounds)
        tape.all_given()
        if rounding is not None:
            tape.questions = ask(tape, arguments.leaves, rounding, source.answers)
        given = symbols
        if arguments.has_values:
            once: dict[int, Symbol] = {}  # a Value that is given twice is one object
            pairs = zip(arguments.leaves, symbols, strict=True)
            given = [once.setdefault(id(x), symbol) if isinstance(x, Value) else symbol for x, symbol in pairs]
        positional, named = arguments.rebuilt(given, array_of_symbols)
        with tape.questions.undecided_by_errors() if tape.questions else nullcontext(), in_place_of_others():
            result = Structure(source.function(*positional, **named), returned=True)
        if not is_unchanged((positional, named), arguments.rebuilt(given, array_of_symbols)):
            raise TraceError(
                "an argument is changed in place: a compiled function runs once, on copies of the containers in its "
                "arguments, so nothing would be changed for the caller. Change a copy, and return what is needed of it"
            )
        with resting(tape.observer):
            _check_attributes("an argument", symbols)
            _check_attributes("a result", result.leaves)
            leaves = result.leaves
            outputs = tape.positions(leaves if are_all(Value, leaves) else [x for x in leaves if isinstance(x, Value)])
    questions = tape.questions.answered() if tape.questions else ()
    # Values that are used alike lie side by side, in the order of their first use
    groups = [values for values in tape.roles.values() if values]
    positions = [[tape.values[value] for value in values] for values in groups]
    outputs += [question.position for question in questions]
    inputs = [*positions, [symbol._position for symbol in symbols]]
    inputs += [tape.known_rows] if tape.known_rows else []
    inputs += [each.made for each in tape.maps]
    inputs += [each.made for each in tape.decisions]
    maps, needed = numbered(tape.maps, inputs, len(tape.operations))
    decisions, read = numbered(tape.decisions, inputs, len(tape.operations))
    needed += read  # no program has both
    written = tape.trace(inputs, outputs + needed)
    tape.finish()
    values = tuple(value for values in groups for value in values)
    return written._replace(
        values=values,
        maps=maps,
        decisions=decisions,
        needed=len(needed),
        result=result,
        tells_apart=tape.tells_apart,
        depends_on_recording=tape.depends_on_recording,
        takes_numbers=tape.takes_numbers,
        questions=questions,
        repeated=tuple(tape.repeated),
        remarks=tuple(tape.remarks),
    )


_Made = TypeVar("_Made", Mapped | Called, Decided)


def numbered(made: Sequence[_Made], inputs: Sequence[Sequence[int]], size: int) -> tuple[tuple[_Made, ...], list[int]]:
    """Maps or decisions with numbers in the place of positions, and the positions that they read beside inputs."""
    if not made:
        return (), []
    numbers, given = np.full(size, -1), np.concatenate([np.array(group, dtype=np.int64) for group in inputs])
    numbers[given] = np.arange(len(given))
    is_read = np.zeros(size, dtype=bool)
    for each in made:
        is_read[each.read()] = True
    needed = np.flatnonzero(is_read & (numbers < 0))
    numbers[needed] = len(given) + np.arange(len(needed))
    return tuple(each.numbered(numbers) for each in made), needed.tolist()


def _check_attributes(what: str, leaves: Sequence[Any]) -> None:
    """Refuse attributes that the function has set on symbols which stand for Values outside of it."""
    symbols = leaves if are_all(Symbol, leaves) else [leaf for leaf in leaves if isinstance(leaf, Symbol)]
    for symbol in filter(_attributes_of, symbols):
        if attributes := user_attributes(symbol):
            raise TraceError(
                f"the attribute {next(iter(attributes))!r} of {what} is set: a compiled function runs once, on "
                "symbols, so at later calls nothing would be set. Set it outside of the function"
            )


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
