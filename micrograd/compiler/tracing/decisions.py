"""Decisions that the program takes when it runs: ``mg.cond``, ``mg.switch``, ``mg.while_loop``, blocks of ``mg.scan``.

Each branch, condition or body is a part, which is recorded once, on a tape of its own. What it reads of the tape around
are inputs of the part, and the results of the decision are inputs of the tape around. Where a part cannot be recorded,
as it asks for the truth of a number or raises, the function is traced again and follows the decision as it does an
``if``. Exported code has no other way.

The adjoint of a scan with checkpoints is another scan, from the last block to the first. It is given the state that
each block begins with, and computes the block again.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.refusals import refuse
from micrograd.compiler.guards.sources import observing_again
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import EQUAL, NO_ROWS, Decided
from micrograd.compiler.tracing.body import Body, Leaves, returned
from micrograd.compiler.tracing.choices import (
    Choosing,
    kind_of_both,
    kinds_of,
    kinds_of_either,
    rounded_columns,
    selected,
)
from micrograd.compiler.tracing.promotion import kind_of_number
from micrograd.compiler.tracing.symbols import FloatSymbol, Symbol, class_of
from micrograd.engine import primitives
from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.value import Value
from micrograd.loops import form_of, in_order_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from micrograd.compiler.ir.entries import Trace
    from micrograd.compiler.tracing.dependence import Dependence
    from micrograd.compiler.tracing.tape import Tape


class _Recorded(NamedTuple):
    """The recording of a part.

    Attributes:
        trace: its operations.
        reads: the positions of its inputs on the tape around.
        result: what it returns.
        is_simple: whether it is short, raises for no numbers, and decides nothing.
    """

    trace: Trace
    reads: list[int]
    result: Structure
    is_simple: bool


class _Reached:
    """What the user's functions of a decision close over, as it was when they were recorded.

    Args:
        functions: these functions.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self._functions = functions
        self.look()

    def look(self) -> None:
        """Take what is there now."""
        self._found = ClosedOver([("", function) for function in self._functions])

    def is_as_before(self) -> bool:
        return self._found.is_as_before()


class _Parts(NamedTuple):
    """The functions behind a decision, which its derivatives run again.

    Attributes:
        functions: both branches, or the condition and the body, which take the leaves of the state; or the iteration of
            a scan, see _scan.
        kinds: the classes of the symbols for these leaves.
        reached: what the user's functions in them close over.
    """

    functions: Sequence[Callable[..., Any]]
    kinds: Sequence[type[Symbol]]
    reached: _Reached


class Deciding:
    """What a tape records where ``mg.cond``, ``mg.switch`` and ``mg.while_loop`` leave a decision to the program."""

    def __init__(self, tape: Tape) -> None:
        self.chosen, self.switched, self.repeated = (partial(each, tape) for each in (chosen, switched, repeated))


def chosen(
    tape: Tape,
    predicate: Any,
    branches: Sequence[Callable[..., Any]],
    operands: tuple[Any, ...],
    reached: _Reached | None = None,
    mixes: bool = False,
) -> Any:
    """What ``mg.cond`` returns where the program is to decide; it may be told that a float may be a Value as well."""
    with tape.following_errors():
        reached = reached or _Reached(branches)
        position = tape.position(predicate)
        asking, like = [_choosing(tape, branch) for branch in branches], list[Any]()

        def run(branch: Callable[..., Any]) -> Structure:
            result = branch(*operands)
            like.append(result)
            return returned(in_order_of(result, like[0]))

        functions = [partial(run, branch) for branch in asking]
        recorded = [_recorded(tape, function, []) for function in functions]
        first, second = recorded
        del like[1:]
        kinds = kinds_of_either(first.result, second.result, mixes, exactly=tape.may_follow)
        if not kinds:
            return first.result.nested
        if tape is tape.outermost and first.is_simple and second.is_simple:
            if tape.selects:
                number = tape._symbol(position, FloatSymbol)
                then, otherwise = (function() for function in functions)
                return selected(tape, number, then, otherwise, kinds)
            if len(tape.decisions) >= _MANY:
                tape.has_many_choices = True
                refuse("a program of so many choices", "Write mg.where.")  # and it is traced again
        results = _written(tape, recorded, _Parts(functions, kinds, reached), predicate=position)
        return first.result.rebuilt(_symbols(tape, results, kinds))


def chosen_on_top(*given: Any, **told: Any) -> Any:
    """What one of two branches returns, on the tape that records."""
    return chosen(cast("Tape", recorder_on_top()), *given, **told)


def switched(tape: Tape, index: Any, branches: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """What ``mg.switch`` returns where the program is to decide."""
    with tape.following_errors():
        number = tape._symbol(tape.position(index), FloatSymbol)
        holds = [tape.apply(EQUAL, number, float(position)) for position in range(len(branches))]
        found, reached = cast("Any", sum(holds[1:], holds[0])), _Reached(branches)
        tape.apply(primitives.sqrt, found - 1.0)  # of an index without a branch it is NaN, which is noticed

        def beginning(position: int) -> Callable[..., Any]:
            """The branches from this one on."""
            if position == len(branches) - 1:
                return branches[position]
            two = branches[position], beginning(position + 1)
            return lambda *given: chosen(cast("Tape", recorder_on_top()), holds[position], two, given, reached)

        return beginning(0)(*operands)


def repeated(tape: Tape, condition: Callable[..., Any], body: Callable[..., Any], state: Any, limit: int | None) -> Any:
    """What ``mg.while_loop`` returns where the program is to decide."""
    with tape.following_errors():
        first, reached = returned(state), _Reached([condition, body])
        positions, kinds, form = [tape.position(leaf) for leaf in first.leaves], kinds_of(first), form_of(state)
        if not kinds:
            refuse("a loop whose state has no numbers", "Let the state be what body computes.")

        def handed_on(function: Callable[..., Any]) -> Callable[..., Structure]:
            function = _choosing(tape, function)
            return lambda *leaves: returned(in_order_of(function(first.rebuilt(leaves)), first.nested))

        functions = handed_on(condition), handed_on(body)
        while True:
            following = _recorded(tape, functions[1], _symbols(tape, positions, kinds), range(len(kinds)))
            if form_of(following.result.nested) != form:
                raise ValueError(f"the state must keep its structure, and body was given {state!r:.60}")
            both = [kind_of_both(x, y) for x, y in zip(kinds, kinds_of(following.result), strict=True)]
            if both == kinds:
                break
            kinds = both  # a plain number in the first state only
        asked = _recorded(tape, functions[0], _symbols(tape, positions, kinds), range(len(kinds)))
        if len(asked.result.leaves) != 1:
            refuse("a condition that is no number", "Let it be a comparison, or a number.")
        results = _written(tape, [asked, following], _Parts(functions, kinds, reached), state=positions, limit=limit)
        return first.rebuilt(_symbols(tape, results, kinds))


def in_blocks(
    tape: Tape, run: Callable[..., Any], state: Any, take: Callable[[int], Any], order: range, size: int
) -> tuple[Any, list[Any]]:
    """The last state of ``mg.scan`` and all outputs, where the program keeps the states between blocks.

    Args:
        tape: where the scan is recorded.
        run: gives the state and the output of each iteration, for a state, what gives items, and their numbers.
        state: the first one.
        take: gives the item of each iteration.
        order: the numbers of these.
        size: how many iterations a block has.
    """
    with tape.following_errors():
        first, item, outputs = returned(state), returned(take(order[0])), list[Structure]()
        if not first.leaves:
            refuse("a scan whose state has no numbers", "Leave out checkpoint=.")

        def numbers(index: int) -> list[Any]:
            """Those that an iteration is given."""
            if item.nested is None:
                return []
            given = returned(take(index))
            if given.key != item.key and _without_numbers(given) != _without_numbers(item):
                refuse("a scan whose inputs differ in more than numbers", "Leave out checkpoint=.")
            return given.leaves

        def block(state: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
            """The state after some iterations, and their outputs, none of which is summed."""
            width = len(item.leaves)
            items = [item.rebuilt(row[width * number : width * (number + 1)]) for number in range(size)]
            pairs = list(run(first.rebuilt(state), items.__getitem__, range(size)))
            outputs[:] = [returned(output) for _, output in pairs]
            after = returned(in_order_of(pairs[-1][0], first.nested)).leaves
            return after, [leaf for output in outputs for leaf in output.leaves], []

        end = len(order) - len(order) % size
        rows = [
            [number for index in order[begin : begin + size] for number in numbers(index)]
            for begin in range(0, end, size)
        ]
        last, stacked, _ = _scan(tape, block, _Reached([run]), first.leaves, rows)
        made = list[Any]()
        for row in stacked:
            leaves = iter(row)
            made += [
                each.rebuilt([next(leaves) for _ in each.leaves]) if each.leaves else each.nested for each in outputs
            ]
        pairs = list(run(first.rebuilt(last), take, order[end:]))
        return (pairs[-1][0] if pairs else first.rebuilt(last)), made + [output for _, output in pairs]


def may_be_in_blocks(state: Any, take: Callable[[int], Any], order: Sequence[int]) -> bool:
    """Whether in_blocks takes them: the state has numbers, and the items differ in numbers only.

    Integers among floats would become floats.
    """
    given = [returned(take(index)) for index in order]
    keys = [(_without_numbers(each), [kind_of_number(leaf) in _OF_FLOATS for leaf in each.leaves]) for each in given]
    return len(returned(state).leaves) > 0 and all(key == keys[0] for key in keys)


_OF_FLOATS = (float, np.dtype(float), Value)


def _without_numbers(structure: Structure) -> Any:
    """A key of a structure in which the kinds of its numbers do not count."""
    return Structure(structure.rebuilt([0.0] * len(structure.leaves))).key


_Iteration: TypeAlias = "Callable[[Sequence[Any], Sequence[Any]], tuple[Sequence[Any], Sequence[Any], Sequence[Any]]]"


def _scan(
    tape: Tape, iteration: _Iteration, reached: _Reached, state: Sequence[Any], rows: Sequence[Sequence[Any]]
) -> tuple[list[Symbol], list[list[Symbol]], list[Symbol]]:
    """Record a loop in which the program runs a function.

    Args:
        tape: where to record it.
        iteration: from the numbers of the state and a row to the next state, the outputs, and further ones, of which
            only the sums over all iterations are wanted.
        reached: what the user's functions in it close over.
        state: the first state.
        rows: the row of each iteration; there is at least one.

    Returns:
        The last state, the outputs of each iteration, and the sums.
    """
    iteration = _choosing(tape, iteration)
    scans = [part.reached for each, part in zip(tape.decisions, tape.parts, strict=True) if each.is_scan]
    unchanged = [each for each in scans if each.is_as_before()]
    width, positions = len(state), tape.positions([*state, 0.0])
    moving = np.array([tape.positions(row) for row in rows], dtype=np.int64).reshape(len(rows), -1)
    kinds = [class_of(kind_of_number(leaf)) for leaf in [*state, 0.0]]
    columns = [dict(zip(map(type, column), column, strict=True)).values() for column in zip(*rows, strict=True)]
    of_row = [reduce(kind_of_both, [class_of(kind_of_number(leaf)) for leaf in of_types]) for of_types in columns]
    rounded, count = [*range(width + 1), *(width + 1 + column for column in rounded_columns(tape, moving))], 0

    def recorded(*given: Any) -> Structure:
        nonlocal count
        after, outputs, sums = iteration(given[:width], given[width + 1 :])
        count = len(sums)
        return returned([*after, given[width] + 1.0, *given[:width], *outputs, *sums])

    while True:
        symbols = [*_symbols(tape, positions, kinds), *_symbols(tape, moving[0].tolist(), of_row)]
        body = _recorded(tape, recorded, symbols, rounded)
        both = [kind_of_both(x, y) for x, y in zip(kinds, kinds_of(body.result), strict=False)]
        if both == kinds:
            break
        kinds = both  # a plain number in the first state only
    asked = _recorded(tape, lambda *given: returned(given[width] < float(len(rows))), _symbols(tape, positions, kinds))
    parts, of_outputs = _Parts([iteration], [*kinds[:width], *of_row], reached), kinds_of(body.result)[len(kinds) :]
    outputs = len(of_outputs) - count
    results = _written(tape, [asked, body], parts, state=positions, moving=moving, outputs=outputs, sums=count)
    for each in (*unchanged, reached):  # a change that the iteration makes itself, as one that counts, is none
        each.look()
    decided = tape.decisions[-1]
    return (
        _symbols(tape, results[:width], kinds[:width]),
        [_symbols(tape, row, of_outputs[width:outputs]) for row in decided.stacked[:, width:].tolist()],
        _symbols(tape, decided.sums.tolist(), of_outputs[outputs:]),
    )


# Derivatives


def adjoint_of_scan(tape: Tape, decided: Decided, dependence: Dependence, found: dict[int, Any]) -> None:
    """Add what a scan contributes to the gradients of what it reads, by a scan from the last iteration to the first.

    Args:
        tape: where the scan is recorded.
        decided: the scan.
        dependence: the positions that gradients flow through.
        found: the gradients so far, by their positions.
    """
    (iteration,), kinds, reached = _parts_of(tape, decided)
    width, items = len(decided.state) - 1, decided.moving.shape[1]
    equal, stacked = dependence.equal, decided.stacked
    fixed = [position for position in decided.fixed.tolist() if equal[position] in dependence]
    seeded = [column for column in range(stacked.shape[1]) if any(row in found for row in stacked[:, column].tolist())]
    wanted = [
        column
        for column in range(items)
        if any(equal[position] in dependence for position in decided.moving[:, column].tolist())
    ]

    first_sum = width + stacked.shape[1]
    of_sums = [(number, found[at]) for number, at in enumerate(decided.sums.tolist()) if at in found]

    def back(state: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The gradients of what an iteration begins with, of its row, and of what is the same for all."""
        inner = cast("Body", recorder_on_top())
        given = [inner._symbol(each._position, kind) for each, kind in zip(row, kinds, strict=False)]
        after, outputs, sums = iteration(given[:width], given[width:])
        results = [*after, *given[:width], *outputs, *sums]
        numbers = [*range(width), *(width + column for column in seeded), *(first_sum + n for n, _ in of_sums)]
        seeds = zip(numbers, [*state, *row[width + items :], *(seed for _, seed in of_sums)], strict=True)
        total = 0.0
        for number, seed in seeds:
            total = total + seed * inner._symbol(inner.position(results[number]), Symbol)
        outside = [cast("Symbol", inner.outside(position)) for position in fixed]  # which the iteration has read
        at = [symbol._position for symbol in [*given, *outside]]
        root, derivatives = inner._symbol(inner.position(total), Symbol), inner.derivatives(inner)
        dependence_inside = derivatives.dependence([root], set(at))
        slopes = derivatives.gradients_of_one(root, dependence_inside, {position: [position] for position in at}, True)
        own, of_fixed = ([slopes.get(symbol._position, 0.0) for symbol in part] for part in (given, outside))
        return own[:width], [own[width + column] for column in wanted], of_fixed

    with observing_again(tape.observer), tape.following_errors():
        nothing = tape._symbol(tape.position(0.0), Symbol)  # of one class with what the iterations give
        start = [found.get(position, nothing) for position in decided.results.tolist()[:width]]
        every = np.concatenate([stacked[:, :width], decided.moving], axis=1).tolist()
        rows = [
            [*_symbols(tape, given, [Symbol] * len(given)), *(found.get(at, nothing) for at in seeds)]
            for given, seeds in zip(every, stacked[:, seeded].tolist(), strict=True)
        ]
        last, of_rows, of_fixed = _scan(tape, back, reached, start, rows[::-1])
    pairs = [*zip([*decided.state.tolist()[:width], *fixed], [*last, *of_fixed], strict=True)]
    for positions, slopes in zip(decided.moving[::-1, wanted].tolist(), of_rows, strict=True):
        pairs += zip(positions, slopes, strict=True)
    for position, slope in pairs:
        if (first := equal[position]) in dependence:
            add_gradient(found, first, slope)


def add_gradient(found: dict[int, Any], position: int, contribution: Any) -> None:
    """Add a contribution to the gradient at a position, among the gradients so far."""
    found[position] = found[position] + contribution if position in found else contribution


def tangents_of_scan(tape: Tape, decided: Decided, found: dict[int, dict[int, Any]]) -> None:
    """Add the tangents of all results of a scan, by another scan of states together with their tangents.

    Args:
        tape: where the scan is recorded.
        decided: the scan.
        found: the tangents so far: by position, and by the number of the direction.
    """
    (iteration,), kinds, reached = _parts_of(tape, decided)
    width, items = len(decided.state) - 1, decided.moving.shape[1]
    fixed = [position for position in decided.fixed.tolist() if position in found]
    inputs = [*decided.state.tolist()[:width], *fixed, *decided.moving.ravel().tolist()]
    directions = sorted({number for position in inputs for number in found.get(position, ())})

    def of(position: int) -> list[Any]:
        return [found.get(position, {}).get(number, 0.0) for number in directions]

    def along(state: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """The results of an iteration and their tangents."""
        inner = cast("Body", recorder_on_top())
        numbers, tangents = [*state[:width], *row[:items]], [*state[width:], *row[items:]]
        given = [inner._symbol(x._position, kind) for x, kind in zip(numbers, kinds, strict=True)]
        after, outputs, sums = iteration(given[:width], given[width:])
        results = [inner.at_home(leaf) for leaf in [*after, *given[:width], *outputs, *sums]]
        own = _symbols(inner, [x._position for x in numbers], [Symbol] * len(numbers))
        maps: list[dict[Any, Any]] = [{} for _ in directions]
        for number, each in enumerate(maps):
            each.update(zip(own, tangents[number :: len(directions)], strict=True))
            each.update((inner.outside(position), inner.at_home(of(position)[number])) for position in fixed)
        columns = inner.derivatives(inner).tangents(results, maps, True)
        slopes = [slope for of_result in zip(*columns, strict=True) for slope in of_result]
        of_state, of_sums = width * len(directions), len(slopes) - len(sums) * len(directions)
        return [*results[:width], *slopes[:of_state]], slopes[of_state:of_sums], slopes[of_sums:]

    with observing_again(tape.observer), tape.following_errors():
        begin = decided.state.tolist()[:width]
        start = [*_symbols(tape, begin, kinds[:width]), *(tangent for position in begin for tangent in of(position))]
        rows = [
            [*_symbols(tape, row, kinds[width:]), *(tangent for position in row for tangent in of(position))]
            for row in decided.moving.tolist()
        ]
        last, of_rows, of_sums = _scan(tape, along, reached, start, rows)
    slopes = iter([*last[width:], *(slope for row in of_rows for slope in row), *of_sums])
    results = decided.results.tolist()[:width], decided.stacked.ravel().tolist(), decided.sums.tolist()
    for position in chain(*results):
        found.setdefault(position, {}).update((number, next(slopes)) for number in directions)


def _parts_of(tape: Tape, decided: Decided) -> _Parts:
    """The parts of a decision, whose functions a derivative runs again: they must do the same as when recorded."""
    found: _Parts = next(part for each, part in zip(tape.decisions, tape.parts, strict=True) if each is decided)
    if not found.reached.is_as_before():
        tape.follow()
        refuse(
            "the derivative of a decision whose functions close over what has changed since",
            "Let them take it as an operand.",
        )
    return found


def jacobian_of(tape: Tape, decided: Decided, reads: Sequence[int]) -> list[list[Any]]:
    """The derivatives of all results of a decision, by another decision, whose parts compute tangents too.

    Args:
        tape: where the decision is recorded.
        decided: the decision.
        reads: the positions to differentiate by, some of those that it reads.

    Returns:
        For each of these positions, the derivative of each result.
    """
    if len(reads) > _MOST_DIRECTIONS:
        tape.follow()
    parts = _parts_of(tape, decided)
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
        tangents = inner.derivatives(inner).tangents(found, directions, True)
        return [*found, *(tangent for row in tangents for tangent in row)]

    with observing_again(tape.observer), tape.following_errors():
        if not decided.is_loop:
            functions = [
                lambda function=function: Structure(sloping(function)[results:], returned=True)
                for function in parts.functions
            ]
            recorded = [_recorded(tape, function, []) for function in functions]
            kinds: list[type[Symbol]] = [Symbol] * (results * count)
            made = _written(
                tape, recorded, _Parts(functions, kinds, parts.reached), predicate=int(decided.predicate[0])
            )
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
            made = _written(
                tape, recorded, _Parts(functions, kinds, parts.reached), state=positions, limit=decided.limit
            )[results:]
    symbols = _symbols(tape, made, [Symbol] * len(made))
    return [symbols[begin : begin + results] for begin in range(0, len(symbols), results)]


_MANY = 16  # choices; each has two programs of its own, which take 80 ms of the first call
_MOST_DIRECTIONS = 24  # of more, it is less to do to follow the decisions, where that may be


def choosing_on(tape: Tape) -> Choosing | None:
    """What lets the program decide what functions ask; None if this trace does not do so."""
    outermost = tape.outermost
    if not outermost.chooses or outermost.questions is None:
        return None
    return Choosing(outermost, chosen_on_top, outermost.questions.rounding)


def _choosing(tape: Tape, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which leaves what it asks to the program if this trace does so."""
    choosing = choosing_on(tape)
    return function if choosing is None else lambda *given: choosing.result(lambda: function(*given))


def _recorded(
    tape: Tape, function: Callable[..., Structure], state: Sequence[Symbol], rounded: Collection[int] = ()
) -> _Recorded:
    """Record a part on a tape of its own, which is given these symbols; of them, some may have been rounded."""
    body, leaves, found = Body(tape), Leaves(), list[Any]()
    body.takes_decisions, body.rounded = True, rounded
    for leaf in state:
        leaves.number(leaf)

    def run(*given: Any) -> None:
        result = function(*given)
        found.append((result, [body.position(leaf) for leaf in result.leaves]))

    with tape.outermost.answering(None):
        body.record(run, list(state), leaves)
    ((result, outputs),) = found
    return _Recorded(*body.part(outputs), result, body.is_simple())


def _written(
    tape: Tape,
    recorded: Sequence[_Recorded],
    parts: _Parts,
    predicate: int | None = None,
    state: Sequence[int] = (),
    limit: int | None = None,
    moving: Any = NO_ROWS,
    outputs: int = 0,
    sums: int = 0,
) -> list[int]:
    """The positions of the results of a decision, which are new inputs of the tape around."""
    sizes = len(state) or len(parts.kinds), len(moving) * outputs, sums
    made = np.array(tape.operations.append_inputs(["decided"] * sum(sizes)), dtype=np.int64)
    of_state, stacked, summed = np.split(made, np.cumsum(sizes)[:-1])
    results = of_state.tolist()
    given = results if state else []
    reads = tuple(np.array([*part.reads, *given], dtype=np.int64) for part in recorded)
    asked = np.array([] if predicate is None else [predicate], dtype=np.int64)
    traces = tuple(part.trace for part in recorded)
    first = np.array(state, dtype=np.int64)
    rows = stacked.reshape(len(moving), outputs)
    tape.decisions.append(Decided(traces, reads, asked, first, of_state, limit, moving, rows, summed))
    tape.parts.append(parts)
    return results


def _symbols(tape: Tape, positions: Sequence[int], kinds: Sequence[type[Symbol]]) -> list[Symbol]:
    """A new symbol for each position."""
    return [tape._symbol(position, kind) for position, kind in zip(positions, kinds, strict=True)]
