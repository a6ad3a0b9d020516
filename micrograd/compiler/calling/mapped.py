"""Mapped: programs in which mg.vmap runs a function in many iterations, or which call functions of whole arrays.

The function of a vmap has a program of its own, for some iterations at a time. A function of whole arrays, such as the
solution of linear equations, is LAPACK's, or JAX's. All else is in the program around, to which the results of both are
inputs. What they read is computed before, by a program of its own if it is computed:

    inputs -> what the iterations read -> the iterations, block by block -> outputs

Gradients take the same way back. Those of what all iterations read are added up block by block, in order; those of a
function of arrays are what its rule gives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from micrograd.compiler.ir.entries import Mapped
from micrograd.compiler.ir.traversals import Edges
from micrograd.compiler.numbers import all_finite, distinct, no_integers, part_of, stretches_of, taken
from micrograd.compiler.passes.packs import Packing
from micrograd.compiler.passes.regions import part_of_graph
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.contexts.no_grad import differentiating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from micrograd.compiler.backends.shared.backend import Run
    from micrograd.compiler.ir.entries import Called
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.numbers import Booleans, Floats, Integers
    from micrograd.compiler.passes.stages import Request

# How many iterations a program computes at a time: so many nodes at most, as more take longer to compile and are no
# quicker; and so many iterations, which are a multiple of those that fill a vector.
_NODES, _MOST, _IN_VECTOR = 1 << 16, 1024, 8


class Iterations:
    """The iterations of one function.

    Args:
        mapped: what they are.
        request: how to compile their programs.

    Attributes:
        mapped: the same.
        graph: of one iteration.
    """

    def __init__(self, mapped: Mapped, request: Request) -> None:
        self.mapped = mapped
        normalised = run_stages(Made(mapped.trace, {"trace": 0.0}), "normalise", request)
        self.graph: Graph = normalised.thing
        size = len(self.graph.terms.owner) + sum(len(each.nodes) for each in self.graph.applications)
        most = min(_NODES // size, _MOST, len(mapped.moving) + _IN_VECTOR - 1)
        at_a_time = max(most // _IN_VECTOR, 1) * _IN_VECTOR
        self._request = replace(request, examples=at_a_time, packing=Packing(at_a_time, True))
        self._batch = run_stages(normalised, "batch", self._request)
        self._results = len(self.graph.outputs)
        self._width = self._results - len(mapped.sums)
        self._size = len(self._batch.thing.outputs) // self._results
        self._fixed = part_of(mapped.fixed)
        self._moving = part_of(mapped.moving.ravel())
        self._made: dict[bytes, _Block] = {}

    def reached(self, reached: Booleans) -> Integers:
        """The numbers of the results that a gradient flows from to some numbers."""
        mapped, width = self.mapped, self.mapped.results.shape[1]
        found = self._reached(reached[mapped.fixed], reached[mapped.moving])
        return np.append(mapped.results[found[:, :width]], mapped.sums[found[:, width:].any(axis=0)])

    def wanted(self, reached: Booleans) -> tuple[Integers, Integers] | None:
        """Which of what the iterations read a gradient flows to, if it flows to these numbers; None if to nothing."""
        fixed = np.flatnonzero(reached[self.mapped.fixed])
        moving = np.flatnonzero(reached[self.mapped.moving].any(axis=0))
        return (fixed, moving) if len(fixed) or len(moving) else None

    def run(self, state: Floats) -> bool:
        """Put the results where they belong, where all that is read is; whether all of them are finite."""
        results, sums = self.results(state)
        state[self.mapped.results], state[self.mapped.sums] = results, sums
        return all_finite(np.append(results, sums))

    def back(self, state: Floats, total: Floats, wanted: tuple[Integers, Integers]) -> None:
        """Add the gradients of what is read to the total, from those of the results there."""
        fixed, moving = wanted
        of_fixed, of_moving = self.gradients(state, total, fixed, moving)
        np.add.at(total, self.mapped.fixed[fixed], of_fixed)
        np.add.at(total, self.mapped.moving[:, moving], of_moving)

    def _reached(self, fixed: Booleans, moving: Booleans) -> Booleans:
        """Which results of which iterations a gradient flows from to some of what these read."""
        users, used = self.graph.edges(differentiable=True)
        edges, inputs = Edges(self.graph.size, used, users), self.graph.inputs
        if (moving == moving[0]).all():
            kinds, which = moving[:1], np.zeros(len(moving), dtype=np.int64)
        else:
            kinds, which = np.unique(moving, axis=0, return_inverse=True)
        found = [
            ~edges.out_of_reach(np.concatenate([inputs[0][fixed], inputs[1][kind]]))[self.graph.outputs]
            for kind in kinds
        ]
        return np.array(found)[which.ravel()]

    def results(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The results of all iterations, and the sums, where all that they read is among these numbers."""
        run = self.compiled(no_integers(), no_integers())
        results, sums = np.empty(self.mapped.results.shape), np.zeros(self.mapped.sums.shape)
        for begin, end in self._blocks(run, numbers):
            run.run()
            found = run.buffer[run.outputs].reshape(-1, self._results)[: end - begin]
            results[begin:end] = found[:, : self._width]
            sums += found[:, self._width :].sum(axis=0)
        return results, sums

    def gradients(self, numbers: Floats, given: Floats, fixed: Integers, moving: Integers) -> tuple[Floats, Floats]:
        """The gradients of what the iterations read.

        Args:
            numbers: what they read is among these.
            given: the gradients of the results and the sums are.
            fixed: which of the inputs that do not differ.
            moving: which of those that do.

        Returns:
            The gradients of the former, and those of the latter with a row for each iteration.
        """
        run, seeds, width = self.compiled(fixed, moving), given[self.mapped.results], self._width
        total, rows, before = np.zeros(len(fixed)), np.empty((len(seeds), len(moving))), len(fixed)
        of_block = np.zeros((self._size, self._results))
        for begin, end in self._blocks(run, numbers):
            of_block[: end - begin, :width], of_block[: end - begin, width:] = seeds[begin:end], given[self.mapped.sums]
            of_block[end - begin :] = 0.0
            run.buffer[run.seeds] = of_block.ravel()
            run.run()
            found = run.buffer[run.program.gradients]
            total += found[:before]
            rows[begin:end] = found[before:].reshape(self._size, -1)[: end - begin]
        return total, rows

    def compiled(self, fixed: Integers, moving: Integers) -> _Block:
        """A program of some iterations, with the gradients of some of what they read."""
        name = np.append(fixed, [-1, *moving]).tobytes()
        if name not in self._made:
            before, own = len(self.mapped.fixed), self.mapped.moving.shape[1]
            lanes = before + own * np.arange(self._size)[:, None] + moving
            request = replace(self._request, wanted=np.concatenate([fixed, lanes.ravel()]))
            rolled = run_stages(self._batch, "transpose", request)
            self._made[name] = _Block(rolled.thing, run_stages(rolled, "compile", request), before, own * self._size)
        return self._made[name]

    def _blocks(self, run: _Block, numbers: Floats) -> Iterator[tuple[int, int]]:
        """Give a program the numbers of some iterations at a time, and say of which. The last fills what is left."""
        fixed, rows = numbers[self._fixed], numbers[self._moving].reshape(self.mapped.moving.shape)
        with np.errstate(over="ignore"):  # a buffer may be one of float32
            run.buffer[run.fixed] = fixed
            for begin in range(0, len(rows), self._size):
                block = rows[begin : begin + self._size]
                end = begin + len(block)
                if len(block) < self._size:
                    block = np.concatenate([block, np.repeat(block[-1:], self._size - len(block), axis=0)])
                run.buffer[run.moving] = block.ravel()
                yield begin, end

    def explain(self) -> str:
        """What was compiled."""
        about = f"vmap: {len(self.mapped.moving):,} iterations, of which one program computes {self._size} at a time"
        return "\n\n".join([about, *(made.program.explain() for made in self._made.values())])

    def held(self) -> list[Any]:
        """What is kept for it, to be counted in bytes."""
        made = [(made.program, made.buffer) for made in self._made.values()]
        return [self.graph, [self.mapped.fixed, self.mapped.moving, self.mapped.results, self.mapped.sums], made]


class _Block:
    """A program of some iterations, and where its numbers are.

    Args:
        program: the program.
        made: what runs it, and how that was made.
        fixed: how many inputs do not differ.
        moving: how many do, of all iterations together.

    Attributes:
        program, run, buffer: the same, what runs it on the numbers in the buffer, and these.
        fixed, moving, seeds, outputs: where they are in the buffer.
    """

    def __init__(self, program: Program, made: Made, fixed: int, moving: int) -> None:
        self.program = program.described(0, made.seconds)
        self.run, self.buffer = made.thing.run, made.thing.buffer
        self.fixed, self.moving = part_of(program.inputs[:fixed]), part_of(program.inputs[fixed : fixed + moving])
        self.seeds, self.outputs = part_of(program.seeds), part_of(program.outputs)


class ArrayCall:
    """A call of a function of whole arrays.

    Args:
        called: what it is.
        function: runs it, and its rule, as the backend does.

    Attributes:
        mapped: the same as called.
    """

    def __init__(self, called: Called, function: Any) -> None:
        self.mapped, self._function = called, function
        self._operands = [operand if operand.dtype == float else _Elements(operand) for operand in called.operands]
        self._results = [_Elements(positions) for positions in called.results]
        self._made = part_of(np.array(called.made))

    def reached(self, reached: Booleans) -> Integers:
        """The numbers of the results that a gradient flows from to some numbers."""
        made = self.mapped.made if self.wanted(reached) is not None else []
        return np.array(made, dtype=np.int64)

    def wanted(self, reached: Booleans) -> list[bool] | None:
        """Which of the operands a gradient flows to, if it flows to these numbers; None if to nothing."""
        called = self.mapped
        found = [given and reached[o].any() for given, o in zip(called.is_given, called.operands, strict=True)]
        return found if called.has_gradient and any(found) else None

    def run(self, state: Floats) -> bool:
        """Put the results where they belong, where all that is read is; whether all of them are finite."""
        try:
            found = self._function.forward(*self._given(state))
        except (ArithmeticError, ValueError):  # eagerly, it says what is wrong
            return False
        for elements, numbers in zip(self._results, found, strict=True):
            elements.of(state)[...] = numbers  # they lie one after the other
        return all_finite(state[self._made])

    def back(self, state: Floats, total: Floats, wanted: list[bool]) -> None:
        """Add the gradients of what is read to the total, from those of the results there."""
        seeds, results = ([elements.of(numbers) for elements in self._results] for numbers in (total, state))
        with differentiating():
            shares = self._function.rule(seeds, results, self._given(state), wanted)
        for operand, share, is_wanted in zip(self._operands, shares, wanted, strict=True):
            if is_wanted:
                operand.add(total, share)

    def _given(self, state: Floats) -> list[Floats]:
        """The operands."""
        return [operand.of(state) if isinstance(operand, _Elements) else operand for operand in self._operands]

    def explain(self) -> str:
        """What is called."""
        shapes = ", ".join(" x ".join(map(str, operand.shape)) for operand in self.mapped.operands)
        return f"{self.mapped.function.name}: one call, of {shapes}"

    def held(self) -> list[Any]:
        """What is kept for it, to be counted in bytes."""
        return [*self.mapped.operands, *self.mapped.results]


class _Elements:
    """The elements of an array among the numbers of a program.

    Args:
        positions: where they are.
    """

    def __init__(self, positions: Integers) -> None:
        self._positions, self._steps = positions, None
        self._views: dict[int, tuple[Floats, Floats]] = {}  # by identity, the arrays of each run, and of each the view
        self._first = int(positions.flat[0]) if positions.size else 0
        evenly = np.full(positions.shape, self._first)
        steps = []
        for axis, count in enumerate(positions.shape):
            steps.append(int(positions.take(1, axis).flat[0]) - self._first if count > 1 and positions.size else 0)
            evenly += np.expand_dims(steps[-1] * np.arange(count), tuple(range(1, positions.ndim - axis)))
        if np.array_equal(positions, evenly) and distinct(positions).size == positions.size:
            self._steps = steps

    def of(self, numbers: Floats) -> Floats:
        """Their numbers: a view where they lie evenly, or a copy."""
        if self._steps is None:
            return numbers.take(self._positions)
        if id(numbers) not in self._views:
            steps = [step * numbers.itemsize for step in self._steps]
            view = as_strided(numbers[self._first :], self._positions.shape, steps)
            self._views[id(numbers)] = numbers, view
        return self._views[id(numbers)][1]

    def add(self, total: Floats, numbers: Floats) -> None:
        """Add to their numbers; to one that is an element more than once, each time."""
        if self._steps is None:
            np.add.at(total, self._positions, numbers)
        else:
            view = self.of(total)
            view += numbers


class _Part:
    """A program that computes some outputs of a graph.

    Args:
        graph: the graph.
        outputs: the numbers of the outputs.
        checked: whether it looks for what is not finite.
        wanted: the numbers of the inputs whose gradients it computes.
        request: how to compile it.
        made: how the graph was made.
    """

    def __init__(self, made: Made, outputs: Any, wanted: Integers, request: Request, *, checked: bool) -> None:
        graph, kept = part_of_graph(made.thing, outputs, wanted, checked=checked)
        self._inputs = [part for _, part in stretches_of(kept)]
        request = replace(request, wanted=np.searchsorted(kept, wanted))
        rolled = run_stages(made._replace(thing=graph), "transpose", request)
        self.made = run_stages(rolled, "compile", request)
        self.program: Program = rolled.thing
        self._run: Run = self.made.thing
        self._outputs = len(graph.differentiated)
        self._has_seeds = self._outputs > 1 and len(wanted) > 0

    def __call__(self, numbers: Floats, seeds: Floats | None = None) -> tuple[Floats, Floats]:
        """The outputs and the gradients."""
        if len(self._inputs) == 1:
            numbers = taken(numbers, self._inputs[0])
        else:
            numbers = np.concatenate([numbers[part] for part in self._inputs])
        if self._has_seeds:
            return self._run(np.append(numbers, np.zeros(self._outputs) if seeds is None else seeds))
        if seeds is None:
            return self._run(numbers)
        outputs, gradients = self._run(numbers)
        return outputs, seeds.item() * gradients


class Maps:
    """All functions in a graph that run in many iterations.

    Args:
        made: the graph around, in normal form.
        maps: the functions.
        needed: how many of the graph's outputs they read.
        request: how to compile programs.
    """

    def __init__(self, made: Made, maps: Sequence[Mapped | Called], needed: int, request: Request) -> None:
        self._made, self._request = made, request
        self._graph: Graph = made.thing
        self.all = [
            Iterations(each, request) if isinstance(each, Mapped) else ArrayCall(each, request.arrays(each.function))
            for each in maps
        ]
        self._nodes = np.concatenate(self._graph.inputs)
        self.inputs = len(self._nodes)
        self.given = self.inputs - sum(len(mapped.made) for mapped in maps)
        self.outputs = len(self._graph.outputs) - needed
        self._nodes = np.append(self._nodes, self._graph.outputs[self.outputs :])

    def reached(self, wanted: Integers) -> tuple[Booleans, Booleans]:
        """From which numbers a gradient flows to some inputs: of those that the maps read or give, and of the outputs.

        Args:
            wanted: the numbers of the inputs.
        """
        users, used = self._graph.edges(differentiable=True)
        edges, nodes = Edges(self._graph.size, used, users), self._nodes[wanted]
        for each in self.all:
            reached = ~edges.out_of_reach(nodes)[self._nodes]
            nodes = np.append(nodes, self._nodes[each.reached(reached)])
        unreached = edges.out_of_reach(nodes)
        return ~unreached[self._nodes], ~unreached[self._graph.outputs[: self.outputs]]

    def run(self, wanted: Integers) -> RunOfMaps:
        """What runs all of it, with the gradients of some of the inputs."""
        reached = self.reached(wanted)[0] if len(wanted) else np.zeros(len(self._nodes), dtype=bool)
        return RunOfMaps(self, self._made, self._request, wanted, reached)

    @property
    def size(self) -> int:
        """How many numbers there are: the inputs, the results of the functions, and what these read."""
        return len(self._nodes)

    def in_parts(self, lower: Callable[[Program, Integers], Any]) -> tuple[list[tuple[Any, Integers, Any]], Any]:
        """All of it for somebody else to run, without gradients.

        Args:
            lower: makes what runs a program; takes it, and where its inputs are among all numbers.

        Returns:
            Each function, the numbers of what it reads that is computed then, and what runs the program of these, or
            None. The other result runs the program of the outputs.
        """

        def part(outputs: Any, *, checked: bool) -> Any:
            graph, kept = part_of_graph(self._graph, outputs, no_integers(), checked=checked)
            return lower(run_stages(self._made._replace(thing=graph), "transpose", self._request).thing, kept)

        found = []
        for each in self.all:
            needed = self.needed(each.mapped)
            outputs = self.outputs + needed - self.inputs
            found.append((each.mapped, needed, part(outputs, checked=False) if len(needed) else None))
        return found, part(slice(self.outputs), checked=True)

    def needed(self, mapped: Mapped | Called) -> Integers:
        """The numbers of what a function reads that is neither an input nor the result of another one."""
        read = mapped.read()
        return distinct(read[read >= self.inputs])


class RunOfMaps:
    """A run of a program with functions in it that run in many iterations.

    Args:
        maps: the functions.
        made: the graph around.
        request: how to compile programs.
        wanted: the numbers of the inputs whose gradients it computes.
        reached: from which numbers, of those that the functions read or give, a gradient flows to these.

    Attributes:
        program: the one that computes the outputs; the results of the functions are its last inputs.
        seconds: how long its passes took.
    """

    def __init__(self, maps: Maps, made: Made, request: Request, wanted: Integers, reached: Booleans) -> None:
        self._maps, self._wanted = maps, wanted
        self._given = maps.given
        self._state, self._total = np.zeros((2, maps._nodes.size))  # calls run one at a time
        end, self._stages = self._given, []
        known = np.zeros(len(reached), dtype=bool)  # what one of those before reads, too
        for each in maps.all:
            needed = maps.needed(each.mapped)
            needed = needed[~known[needed]]
            known[needed] = True
            sources = np.concatenate([wanted, self._given + np.flatnonzero(reached[self._given : end])])
            before = None
            if len(needed):
                outputs = maps.outputs + needed - maps.inputs
                before = _Part(made, outputs, sources, request, checked=False)
            end += len(each.mapped.made)
            flows = before is not None and bool(reached[needed].any())
            self._stages.append((each, part_of(needed), before, sources, each.wanted(reached), flows))
        self._sources = np.concatenate([wanted, self._given + np.flatnonzero(reached[self._given : end])])
        self._last = _Part(made, slice(maps.outputs), self._sources, request, checked=True)
        self.program, self.made = self._last.program, self._last.made

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs, and seeds where there are several outputs."""
        with np.errstate(all="ignore"):  # it is looked at what is not finite
            return self._found(numbers)

    def _found(self, numbers: Floats) -> tuple[Floats, Floats]:
        maps, seeds, state = self._maps, None, self._state
        state[: self._given] = numbers[: self._given]
        if len(numbers) > self._given:
            seeds = numbers[self._given :]
        for each, needed, before, *_ in self._stages:
            if before is not None:
                state[needed] = before(state[: maps.inputs])[0]
            if not each.run(state):  # something raises, which the program around might not show
                return np.full(maps.outputs, np.nan), np.zeros(len(self._wanted))
        outputs, found = self._last(state[: maps.inputs], seeds)
        if not len(self._wanted):
            return outputs, found
        try:
            return outputs, self._back(state, found)
        except (ArithmeticError, ValueError):  # of a rule: eagerly, it says what is wrong
            return outputs, np.full(len(self._wanted), np.nan)

    def _back(self, state: Floats, found: Floats) -> Floats:
        """The gradients of the inputs, from those of the last program."""
        maps, total = self._maps, self._total
        total[:] = 0.0
        total[self._sources] = found
        for each, needed, before, sources, wanted, flows in reversed(self._stages):
            if wanted is not None:
                each.back(state, total, wanted)
            if flows:
                of_needed = total[needed].copy()
                total[sources] += before(state[: maps.inputs], of_needed)[1]
        return total[self._wanted] + 0.0
