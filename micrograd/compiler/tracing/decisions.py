"""Decisions that stay decisions: each branch of ``mg.cond`` and the body of ``mg.while_loop``, recorded once.

Each part runs on symbols, on a tape of its own. What it reads of the tape around are its inputs there, and its results
are inputs of the tape around. Where that cannot be, as a part asks for the truth of a number itself, or raises, the
function is traced again, and the decision is followed as an ``if`` is. Exported code has no other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.guards.sources import observing_again
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EQUAL, Decided
from micrograd.compiler.tracing.body import Body, Leaves
from micrograd.compiler.tracing.promotion import kind_of_number
from micrograd.compiler.tracing.trace import FloatSymbol, Symbol, Tape, class_of
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top
from micrograd.loops import form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.entries import Trace


class _Recorded(NamedTuple):
    """What a part does.

    Attributes:
        trace: what it writes down.
        reads: where its inputs come from, on the tape around.
        result: what it returns.
    """

    trace: Trace
    reads: list[int]
    result: Structure


class _Parts(NamedTuple):
    """What has written a decision, for its derivatives.

    Attributes:
        functions: both branches, or the condition and the body, which take the leaves of what is handed on.
        kinds: the symbols in the place of these leaves.
    """

    functions: Sequence[Callable[..., Structure]]
    kinds: Sequence[type[Symbol]]


def chosen(tape: Tape, predicate: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """What ``mg.cond`` returns where the program is to decide."""
    with tape.following_errors():
        position = tape.position(predicate)
        functions = [lambda branch=branch: Structure(branch(*operands), returned=True) for branch in branches]
        recorded = [_recorded(tape, function, []) for function in functions]
        first, second = recorded
        kinds, others = _kinds(first.result), _kinds(second.result)
        if form_of(first.result.nested) != form_of(second.result.nested) or (
            tape.may_follow and (kinds != others or not _is_same(first.result, second.result))
        ):
            refuse(
                "a choice between results of two structures",
                "Let both functions that mg.cond is given return the same containers.",
            )
        if not kinds:
            return first.result.nested
        kinds = [_kind_of_both(x, y) for x, y in zip(kinds, others, strict=True)]
        results = _written(tape, recorded, _Parts(functions, kinds), predicate=position)
        return first.result.rebuilt(_symbols(tape, results, kinds))


def switched(tape: Tape, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """What ``mg.switch`` returns where the program is to decide."""
    with tape.following_errors():
        number = tape._symbol(tape.position(index), FloatSymbol)
        holds = [tape.apply(EQUAL, number, float(position)) for position in range(len(branches))]
        found: Any = sum(holds[1:], holds[0])
        tape.apply(primitives.sqrt, found - 1.0)  # of an index without a branch it is NaN, which is noticed

        def beginning(position: int) -> Callable[..., Any]:
            """The branches from this one on."""
            if position == len(branches) - 1:
                return branches[position]
            two = branches[position], beginning(position + 1)
            return lambda *given: chosen(cast("Tape", recorder_on_top()), holds[position], two, given)

        return beginning(0)(*operands)


def repeated(tape: Tape, condition: Callable[..., Any], body: Callable[..., Any], state: Any, limit: int | None) -> Any:
    """What ``mg.while_loop`` returns where the program is to decide."""
    with tape.following_errors():
        first = Structure(state, returned=True)
        positions, kinds, form = [tape.position(leaf) for leaf in first.leaves], _kinds(first), form_of(state)
        if not kinds:
            refuse("a loop whose state has no numbers", "Let the state be what body computes.")

        def handed_on(function: Callable[..., Any]) -> Callable[..., Structure]:
            return lambda *leaves: Structure(function(first.rebuilt(leaves)), returned=True)

        functions = handed_on(condition), handed_on(body)
        while True:
            following = _recorded(tape, functions[1], _symbols(tape, positions, kinds))
            if form_of(following.result.nested) != form:
                raise ValueError(f"the state must keep its structure, and body was given {state!r:.60}")
            both = [_kind_of_both(x, y) for x, y in zip(kinds, _kinds(following.result), strict=True)]
            if both == kinds:
                break
            kinds = both  # a plain number in the first state only
        asked = _recorded(tape, functions[0], _symbols(tape, positions, kinds))
        if len(asked.result.leaves) != 1:
            refuse("a condition that is no number", "Let it be a comparison, or a number.")
        results = _written(tape, [asked, following], _Parts(functions, kinds), state=positions, limit=limit)
        return first.rebuilt(_symbols(tape, results, kinds))


# Derivatives


def derivatives_of(tape: Tape, decided: Decided, reads: Sequence[int]) -> list[list[Any]]:
    """The derivatives of all results of a decision: another decision, whose parts go along with the tangents.

    Args:
        tape: that it is on.
        decided: the decision.
        reads: the positions of what to differentiate by, of all that it reads.

    Returns:
        For each of these, the derivative of each result.
    """
    if len(reads) > _MOST_DIRECTIONS:
        tape.follow()
    parts: _Parts = next(part for each, part in zip(tape.decisions, tape.parts, strict=True) if each is decided)
    count, results = len(reads), len(decided.results)

    def sloping(function: Callable[..., Structure], *state: Any) -> list[Any]:
        """The results of a part, and then their tangents in each direction."""
        given, inner = state[:results], cast("Body", recorder_on_top())
        found = [inner.at_home(leaf) for leaf in function(*given).leaves]
        own = [inner._symbol(symbol._position, Symbol) for symbol in given]
        directions: list[dict[Any, Any]] = [{} for _ in reads]
        for number, position in enumerate(reads):
            directions[number].update(zip(own, state[results * (number + 1) :], strict=False))
            if (outside := inner.outside(position)) is not None:
                directions[number][outside] = 1.0
        tangents = Tape.tangents(inner, found, directions, True)
        return [*found, *(tangent for row in tangents for tangent in row)]

    with observing_again(tape.observer), tape.following_errors():
        if not decided.is_loop:
            functions = [
                lambda function=function: Structure(sloping(function)[results:], returned=True)
                for function in parts.functions
            ]
            recorded = [_recorded(tape, function, []) for function in functions]
            kinds: list[type[Symbol]] = [Symbol] * (results * count)
            made = _written(tape, recorded, _Parts(functions, kinds), predicate=int(decided.predicate[0]))
        else:
            condition, body = parts.functions
            functions = [
                lambda *state: condition(*state[:results]),
                lambda *state: Structure(sloping(body, *state), returned=True),
            ]
            kinds = [*parts.kinds, *[Symbol] * (results * count)]
            starts = [tape.position(float(position == read)) for read in reads for position in decided.state.tolist()]
            positions = [*decided.state.tolist(), *starts]
            recorded = [_recorded(tape, function, _symbols(tape, positions, kinds)) for function in functions]
            made = _written(tape, recorded, _Parts(functions, kinds), state=positions, limit=decided.limit)[results:]
    symbols = _symbols(tape, made, [Symbol] * len(made))
    return [symbols[begin : begin + results] for begin in range(0, len(symbols), results)]


_MOST_DIRECTIONS = 24  # of more, it is less to do to follow the decisions, where that may be
Tape.derivatives_of = derivatives_of


def _is_same(*results: Structure) -> bool:
    """Whether two results differ in numbers only."""
    both = [each.rebuilt([0.0] * len(each.leaves)) for each in results]
    return bool(both[0] == both[1])


def _recorded(tape: Tape, function: Callable[..., Structure], state: Sequence[Symbol]) -> _Recorded:
    """Run a part on a tape of its own."""
    body, leaves, found = Body(tape), Leaves(), list[Any]()
    body.takes_decisions = True
    for leaf in state:
        leaves.number(leaf)

    def run(*given: Any) -> None:
        result = function(*given)
        found.append((result, [body.position(leaf) for leaf in result.leaves]))

    body.record(run, list(state), leaves)
    ((result, outputs),) = found
    return _Recorded(*body.part(outputs), result)


def _written(
    tape: Tape,
    recorded: Sequence[_Recorded],
    parts: _Parts,
    predicate: int | None = None,
    state: Sequence[int] = (),
    limit: int | None = None,
) -> list[int]:
    """The positions of the results of a decision, which are new inputs of the tape around."""
    results = [*tape.operations.append_inputs(["decided"] * len(parts.kinds))]
    given = results if state else []
    reads = tuple(np.array([*part.reads, *given], dtype=np.int64) for part in recorded)
    asked = np.array([] if predicate is None else [predicate], dtype=np.int64)
    traces = tuple(part.trace for part in recorded)
    tape.decisions.append(Decided(traces, reads, asked, np.array(state, dtype=np.int64), np.array(results), limit))
    tape.parts.append(parts)
    return results


def _kinds(structure: Structure) -> list[type[Symbol]]:
    """The symbols in the place of each leaf: those of Values, or of plain numbers of a kind."""
    return [class_of(kind_of_number(leaf)) for leaf in structure.leaves]


def _kind_of_both(x: type[Symbol], y: type[Symbol]) -> type[Symbol]:
    """The symbols in the place of one of two numbers: a Value if one is, or a float."""
    if x is y:
        return x
    return Symbol if Symbol in (x, y) else FloatSymbol


def _symbols(tape: Tape, positions: Sequence[int], kinds: Sequence[type[Symbol]]) -> list[Symbol]:
    """A symbol of its own for each position."""
    return [tape._symbol(position, kind) for position, kind in zip(positions, kinds, strict=True)]
