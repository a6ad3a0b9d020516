"""Deciding on JAX: a plan as one function of arrays, with ``lax.cond`` and ``lax.while_loop``.

All arrays of the plan are handed on from step to step. The states that a loop keeps for its gradients have a fixed
size on JAX, so there is room for some at first. Where that is not enough, XLA compiles the plan once more, with twice
as much.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from micrograd.compiler.backends.shared.deciding import (
    FIRST_ROWS,
    Check,
    Choose,
    Move,
    Repeat,
    Run,
    RunOfRegion,
    Unwind,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from micrograd.compiler.backends.shared.deciding import Cells, Plan, States
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Floats

Arrays = dict[int, Any]  # by the identity of those of the plan; of states, the rows, and under ~identity their number
_FULL = 0  # where the number of states is that there was no room for


class Part:
    """A program between decisions.

    Args:
        program: the program.
        function: of the constants, of what is given, and of seeds: it gives the results.

    Attributes:
        buffer: its numbers, as they are at first.
    """

    def __init__(self, program: Program, function: Callable[..., Any]) -> None:
        self.buffer: Floats = program.fill(np.zeros(program.size))
        self._function = function
        self._inputs, self._seeds = program.inputs, program.seeds
        constants = [start + np.arange(len(numbers)) for start, numbers in program.constants]
        self._constants = np.concatenate([*constants, program.seeds])  # XLA shall not know them
        self._results = program.results

    def run(self, buffer: Any) -> Any:
        """The buffer with the results in it."""
        given = (buffer[positions] for positions in (self._constants, self._inputs, self._seeds))
        return buffer.at[self._results].set(self._function(*given))


class JaxRun(RunOfRegion):
    """A run of a region on JAX.

    Args:
        region, wanted: as before.
        lower: makes a Part of a program.
        compiled: compiles a function of arrays for arguments of their shapes.
    """

    def __init__(self, *arguments: Any, compiled: Callable[..., Any], **named: Any) -> None:
        self._compiled, self._rooms = compiled, FIRST_ROWS
        super().__init__(*arguments, **named)

    def prepared(self, plan: Plan) -> Callable[[], object]:
        """What runs a plan; XLA compiles it at the first run."""
        found = {id(array): array for array in _arrays(plan)}
        states = {id(each): each for each in _states(plan)}
        made: dict[int, Any] = {}

        def start() -> Arrays:
            arrays = {key: jnp.asarray(array) for key, array in found.items()}
            for key, each in states.items():
                arrays[key] = jnp.zeros((self._rooms if each.is_kept else 0, len(each.state.at)))
                arrays[~key] = jnp.zeros((), dtype=jnp.int64)
            return {**arrays, _FULL: jnp.zeros((), dtype=jnp.int64)}

        def run() -> None:
            while True:
                if self._rooms not in made:
                    made[self._rooms] = self._compiled(lambda given: _run(plan, {**start(), **given}), dict(found))
                after = made[self._rooms](dict(found))
                if int(after[_FULL]) == 0:
                    break
                self._rooms *= 2
            for key, array in found.items():
                array[...] = after[key]

        return run


def _parts(plan: Plan) -> Iterator[Any]:
    """All steps of a plan, and those of the plans in it."""
    for step in plan:
        yield step
        for part in step:
            if isinstance(part, list):
                yield from _parts(part)


def _arrays(plan: Plan) -> Iterator[Floats]:
    for step in _parts(plan):
        if isinstance(step, Run):
            yield step.executable.buffer
        for part in step:
            if hasattr(part, "at"):
                yield part.array


def _states(plan: Plan) -> Iterator[States]:
    return (step.states for step in _parts(plan) if isinstance(step, Repeat))


def _run(plan: Plan, arrays: Arrays) -> Arrays:
    for step in plan:
        arrays = _STEPS[type(step)](arrays, *step)
    return arrays


def _taken(arrays: Arrays, cells: Cells) -> Any:
    return arrays[id(cells.array)][cells.at]


def _put(arrays: Arrays, cells: Cells, numbers: Any) -> Arrays:
    return {**arrays, id(cells.array): arrays[id(cells.array)].at[cells.at].set(numbers)}


def _move(arrays: Arrays, source: Cells, target: Cells, adds: bool, row: Cells | None) -> Arrays:
    at, to = source.at, target.at
    if row is not None:
        number = _taken(arrays, row)[0].astype(int)
        at, to = (jnp.asarray(cells)[number] if cells.ndim > 1 else cells for cells in (at, to))
    found, others = arrays[id(source.array)][at], arrays[id(target.array)].at[to]
    return {**arrays, id(target.array): others.add(found) if adds else others.set(found)}


def _check(arrays: Arrays, source: Cells, failed: Cells) -> Arrays:
    found = _taken(arrays, source)
    key = id(failed.array)
    return {**arrays, key: arrays[key] + jnp.where(jnp.isfinite(found).all(), 0.0, jnp.nan)}


def _program(arrays: Arrays, executable: Any) -> Arrays:
    key = id(executable.buffer)
    return {**arrays, key: executable.run(arrays[key])}


def _choose(arrays: Arrays, predicate: Cells, then: Plan, otherwise: Plan) -> Arrays:
    holds = _taken(arrays, predicate)[0] != 0.0
    found: Arrays = lax.cond(holds, partial(_run, then), partial(_run, otherwise), arrays)
    return found


def _repeat(
    arrays: Arrays, condition: Plan, answer: Cells, body: Plan, limit: int | None, failed: Cells, states: States
) -> Arrays:
    key = id(states)

    def goes_on(arrays: Arrays) -> Any:
        holds = _taken(arrays, answer)[0] != 0.0
        return holds if limit is None else holds & (arrays[~key] < limit)

    def iteration(arrays: Arrays) -> Arrays:
        count = arrays[~key]
        if states.is_kept:
            rows = arrays[key]
            arrays = {**arrays, key: rows.at[count].set(_taken(arrays, states.state), mode="drop")}
        return _run(condition, {**_run(body, arrays), ~key: count + 1})

    arrays = _run(condition, {**arrays, ~key: jnp.zeros_like(arrays[~key])})
    arrays = lax.while_loop(goes_on, iteration, arrays)
    if states.is_kept:
        missing = jnp.maximum(arrays[~key] - arrays[key].shape[0], 0)
        arrays = {**arrays, _FULL: arrays[_FULL] + missing, ~key: arrays[~key] - missing}
    number = arrays[id(failed.array)] + jnp.where(_taken(arrays, answer)[0] != 0.0, jnp.nan, 0.0)
    return {**arrays, id(failed.array): number}


def _unwind(arrays: Arrays, states: States, body: Plan) -> Arrays:
    key = id(states)

    def iteration(arrays: Arrays) -> Arrays:
        count = arrays[~key] - 1
        row = arrays[key][count]
        return {**_run(body, _put(arrays, states.state, row)), ~key: count}

    found: Arrays = lax.while_loop(lambda arrays: arrays[~key] > 0, iteration, arrays)
    return found


_STEPS: dict[type, Callable[..., Arrays]] = {
    Move: _move,
    Check: _check,
    Run: _program,
    Choose: _choose,
    Repeat: _repeat,
    Unwind: _unwind,
}
