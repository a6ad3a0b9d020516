"""Decisions that stay decisions: each branch of ``mg.cond`` and the body of ``mg.while_loop``, recorded once.

That is for programs without Python, which cannot ask again. Each part runs on symbols, on a tape of its own. What it
reads of the tape around are its inputs there, and its results are inputs of the tape around.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import Decided
from micrograd.compiler.tracing.body import Body, Leaves
from micrograd.compiler.tracing.trace import FloatSymbol, Symbol, is_plain
from micrograd.engine.value import Value
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
    place = tape.place(predicate)
    recorded = [_recorded(tape, lambda branch=branch: branch(*operands), []) for branch in branches]
    first, second = recorded
    if first.form != second.form:
        refuse(
            "a choice between results of two structures",
            "Let both functions that mg.cond is given return the same containers.",
        )
    kinds = [x or y for x, y in zip(_are_values(first.result), _are_values(second.result), strict=True)]
    if not kinds:
        return first.result.nested
    results = _written(tape, recorded, len(kinds), predicate=place)
    return first.result.rebuilt(_symbols(tape, results, kinds))


def repeated(tape: Tape, condition: Callable[..., Any], body: Callable[..., Any], state: Any, limit: int | None) -> Any:
    """What ``mg.while_loop`` returns where the program is to decide."""
    first = Structure(state, returned=True)
    places, kinds = [tape.place(leaf) for leaf in first.leaves], _are_values(first)
    if not kinds:
        refuse("a loop whose state has no numbers", "Let the state be what body computes.")
    while True:
        state = first.rebuilt(_symbols(tape, places, kinds))
        following = _recorded(tape, body, [state])
        if following.form != form_of(state):
            raise ValueError(f"the state must keep its structure, and body was given {state!r:.60}")
        values = [x or y for x, y in zip(kinds, _are_values(following.result), strict=True)]
        if values == kinds:
            break
        kinds = values  # a plain number in the first state only
    asked = _recorded(tape, condition, [state])
    if len(asked.result.leaves) != 1:
        refuse("a condition that is no number", "Let it be a comparison, or a number.")
    results = _written(tape, [asked, following], len(kinds), state=places, limit=limit)
    return first.rebuilt(_symbols(tape, results, kinds))


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


def _are_values(structure: Structure) -> list[bool]:
    """Of each leaf, whether it is a Value and no plain number."""
    return [isinstance(leaf, Value) and not is_plain(leaf) for leaf in structure.leaves]


def _symbols(tape: Tape, places: Sequence[int], are_values: Sequence[bool]) -> list[Symbol]:
    """A symbol of its own for each place. Plain numbers are floats, whatever they were before."""
    kinds = [Symbol if is_value else FloatSymbol for is_value in are_values]
    return [tape._symbol(place, kind) for place, kind in zip(places, kinds, strict=True)]
