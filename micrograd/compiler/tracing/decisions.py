"""Decisions that stay decisions: each branch of ``mg.cond`` and the body of ``mg.while_loop``, recorded once.

Each part runs on symbols, on a tape of its own. What it reads of the tape around are its inputs there, and its results
are inputs of the tape around. Where that cannot be, as a part asks for the truth of a number itself, or raises, the
function is traced again, and the decision is followed as an ``if`` is. Exported code has no other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EQUAL, Decided
from micrograd.compiler.tracing.body import Body, Leaves
from micrograd.compiler.tracing.promotion import kind_of_number
from micrograd.compiler.tracing.trace import FloatSymbol, Symbol, class_of
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top
from micrograd.loops import form_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.tracing.trace import Tape


class _Recorded(NamedTuple):
    """What a part does.

    Attributes:
        trace: what it writes down.
        reads: where its inputs come from, on the tape around.
        result: what it returns.
        form: of that.
    """

    trace: Trace
    reads: list[int]
    result: Structure
    form: Any


def chosen(tape: Tape, predicate: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """What ``mg.cond`` returns where the program is to decide."""
    with tape.following_errors():
        place = tape.place(predicate)
        recorded = [_recorded(tape, lambda branch=branch: branch(*operands), []) for branch in branches]
        first, second = recorded
        kinds, others = _kinds(first.result), _kinds(second.result)
        if first.form != second.form or (tape.may_follow and (kinds != others or not _is_same(first, second))):
            refuse(
                "a choice between results of two structures",
                "Let both functions that mg.cond is given return the same containers.",
            )
        if not kinds:
            return first.result.nested
        kinds = [_kind_of_both(x, y) for x, y in zip(kinds, others, strict=True)]
        results = _written(tape, recorded, len(kinds), predicate=place)
        return first.result.rebuilt(_symbols(tape, results, kinds))


def switched(tape: Tape, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """What ``mg.switch`` returns where the program is to decide."""
    with tape.following_errors():
        number = tape._symbol(tape.place(index), FloatSymbol)
        holds = [tape.apply(EQUAL, number, float(place)) for place in range(len(branches))]
        found: Any = sum(holds[1:], holds[0])
        tape.apply(primitives.sqrt, found - 1.0)  # of an index without a branch it is NaN, which is noticed

        def beginning(place: int) -> Callable[..., Any]:
            """The branches from this one on."""
            if place == len(branches) - 1:
                return branches[place]
            two = branches[place], beginning(place + 1)
            return lambda *given: chosen(cast("Tape", recorder_on_top()), holds[place], two, given)

        return beginning(0)(*operands)


def repeated(tape: Tape, condition: Callable[..., Any], body: Callable[..., Any], state: Any, limit: int | None) -> Any:
    """What ``mg.while_loop`` returns where the program is to decide."""
    with tape.following_errors():
        first = Structure(state, returned=True)
        places, kinds = [tape.place(leaf) for leaf in first.leaves], _kinds(first)
        if not kinds:
            refuse("a loop whose state has no numbers", "Let the state be what body computes.")
        while True:
            state = first.rebuilt(_symbols(tape, places, kinds))
            following = _recorded(tape, body, [state])
            if following.form != form_of(state):
                raise ValueError(f"the state must keep its structure, and body was given {state!r:.60}")
            both = [_kind_of_both(x, y) for x, y in zip(kinds, _kinds(following.result), strict=True)]
            if both == kinds:
                break
            kinds = both  # a plain number in the first state only
        asked = _recorded(tape, condition, [state])
        if len(asked.result.leaves) != 1:
            refuse("a condition that is no number", "Let it be a comparison, or a number.")
        results = _written(tape, [asked, following], len(kinds), state=places, limit=limit)
        return first.rebuilt(_symbols(tape, results, kinds))


def _is_same(first: _Recorded, second: _Recorded) -> bool:
    """Whether two results differ in numbers only."""
    both = [each.result.rebuilt([0.0] * len(each.result.leaves)) for each in (first, second)]
    return bool(both[0] == both[1])


def _recorded(tape: Tape, function: Callable[..., Any], arguments: list[Any]) -> _Recorded:
    """Run a part on a tape of its own."""
    body, leaves, found = Body(tape), Leaves(), list[Any]()
    body.takes_decisions = True
    for leaf in Structure(arguments, returned=True).leaves:
        leaves.number(leaf)

    def run(*given: Any) -> None:
        result = function(*given)
        structure = Structure(result, returned=True)
        found.append((structure, form_of(result), [body.place(leaf) for leaf in structure.leaves]))

    body.record(run, arguments, leaves)
    ((result, form, outputs),) = found
    return _Recorded(*body.part(outputs), result, form)


def _written(
    tape: Tape,
    recorded: Sequence[_Recorded],
    count: int,
    predicate: int | None = None,
    state: Sequence[int] = (),
    limit: int | None = None,
) -> list[int]:
    """The places of the results of a decision, which are new inputs of the tape around."""
    results = [*tape.operations.append_inputs(["decided"] * count)]
    given = results if state else []
    reads = tuple(np.array([*part.reads, *given], dtype=np.int64) for part in recorded)
    asked = np.array([] if predicate is None else [predicate], dtype=np.int64)
    traces = tuple(part.trace for part in recorded)
    tape.decisions.append(Decided(traces, reads, asked, np.array(state, dtype=np.int64), np.array(results), limit))
    return results


def _kinds(structure: Structure) -> list[type[Symbol]]:
    """The symbols in the place of each leaf: those of Values, or of plain numbers of a kind."""
    return [class_of(kind_of_number(leaf)) for leaf in structure.leaves]


def _kind_of_both(x: type[Symbol], y: type[Symbol]) -> type[Symbol]:
    """The symbols in the place of one of two numbers: a Value if one is, or a float."""
    if x is y:
        return x
    return Symbol if Symbol in (x, y) else FloatSymbol


def _symbols(tape: Tape, places: Sequence[int], kinds: Sequence[type[Symbol]]) -> list[Symbol]:
    """A symbol of its own for each place."""
    return [tape._symbol(place, kind) for place, kind in zip(places, kinds, strict=True)]
