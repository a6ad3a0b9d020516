"""Mapped: programs in which mg.vmap runs a function in many iterations, or which call functions of whole arrays.

The function of a vmap has a program of its own, for a block of iterations at a time. A function of whole arrays, such
as the solution of linear equations, is LAPACK's, or JAX's. Everything else is one program around them. What they read
are outputs of that program, and what they give are inputs. It stops where they run:

    inputs -> what the iterations read -> stop: the iterations, block by block -> outputs

Gradients flow backwards through the same program. Gradients of what all iterations read are added up block by block, in
order; the gradients of a function of arrays come from its rule.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from micrograd.compiler.ir.entries import Mapped
from micrograd.compiler.numbers import all_finite, distinct, no_integers, part_of, taken
from micrograd.compiler.passes.packs import Packing
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.contexts.no_grad import differentiating

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        mapped: the function, and what its iterations read and give.
        request: how to compile their programs.

    Attributes:
        mapped: as given.
        graph: that of one iteration.
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
        self._made: dict[bytes, _Block] = {}

    def reached(self, reached: Booleans) -> Integers:
        """The results from which a gradient flows to some of the numbers.

        Args:
            reached: for each number that the iterations may read, whether a gradient is wanted there.
        """
        mapped, width = self.mapped, self.mapped.results.shape[1]
        found = self._reached(reached[mapped.fixed], reached[mapped.moving])
        return np.append(mapped.results[found[:, :width]], mapped.sums[found[:, width:].any(axis=0)])

    def wanted(self, reached: Booleans) -> tuple[Integers, Integers] | None:
        """Which of the shared and of the other inputs need gradients, if these numbers do; None if none does."""
        fixed = np.flatnonzero(reached[self.mapped.fixed])
        moving = np.flatnonzero(reached[self.mapped.moving].any(axis=0))
        return (fixed, moving) if len(fixed) or len(moving) else None

    def on(self, numbers: Floats, at: Integers) -> Callable[[], bool]:
        """What runs the iterations; see ArrayCall."""
        given, mapped, width = self._given(numbers, at), self.mapped, self._width
        results_at, sums_at = part_of(at[mapped.results.ravel()]), part_of(at[mapped.sums])

        def run() -> bool:
            block = self.compiled(no_integers(), no_integers())
            results, sums = np.empty(mapped.results.shape), np.zeros(mapped.sums.shape)
            for begin, end in self._blocks(block, *given()):
                block.run()
                found = block.buffer[block.outputs].reshape(-1, self._results)[: end - begin]
                results[begin:end] = found[:, :width]
                sums += found[:, width:].sum(axis=0)
            numbers[results_at], numbers[sums_at] = results.ravel(), sums
            return all_finite(np.append(results, sums))

        return run

    def back_on(
        self, numbers: Floats, at: Integers, total: Floats, wanted: tuple[Integers, Integers]
    ) -> Callable[[], object]:
        """What runs their gradients; see ArrayCall."""
        given, mapped, width, (fixed, moving) = self._given(numbers, at), self.mapped, self._width, wanted
        before = len(fixed)

        def back() -> None:
            block, seeds = self.compiled(fixed, moving), total[mapped.results]
            of_fixed, of_moving = np.zeros(before), np.empty((len(seeds), len(moving)))
            of_block = np.zeros((self._size, self._results))
            for begin, end in self._blocks(block, *given()):
                of_block[: end - begin, :width], of_block[: end - begin, width:] = seeds[begin:end], total[mapped.sums]
                of_block[end - begin :] = 0.0
                block.buffer[block.seeds] = of_block.ravel()
                block.run()
                found = block.buffer[block.program.gradients]
                of_fixed += found[:before]
                of_moving[begin:end] = found[before:].reshape(self._size, -1)[: end - begin]
            np.add.at(total, mapped.fixed[fixed], of_fixed)
            np.add.at(total, mapped.moving[:, moving], of_moving)

        return back

    def _given(self, numbers: Floats, at: Integers) -> Callable[[], tuple[Floats, Floats]]:
        """What reads the numbers that all iterations share, and the others, with a row for each iteration."""
        fixed, moving = part_of(at[self.mapped.fixed]), part_of(at[self.mapped.moving.ravel()])
        shape = self.mapped.moving.shape
        return lambda: (numbers[fixed], numbers[moving].reshape(shape))

    def _reached(self, fixed: Booleans, moving: Booleans) -> Booleans:
        """For each iteration the results from which a gradient flows to these inputs; equal rows are asked once."""
        users, inputs = self.graph.users(differentiable=True), self.graph.inputs
        if (moving == moving[0]).all():
            kinds, which = moving[:1], np.zeros(len(moving), dtype=np.int64)
        else:
            kinds, which = np.unique(moving, axis=0, return_inverse=True)
        found = [
            ~users.out_of_reach(np.concatenate([inputs[0][fixed], inputs[1][kind]]))[self.graph.outputs]
            for kind in kinds
        ]
        return np.array(found)[which.ravel()]

    def compiled(self, fixed: Integers, moving: Integers) -> _Block:
        """The program of a block of iterations, with the gradients of some of their inputs."""
        name = np.append(fixed, [-1, *moving]).tobytes()
        if name not in self._made:
            before, own = len(self.mapped.fixed), self.mapped.moving.shape[1]
            lanes = before + own * np.arange(self._size)[:, None] + moving
            request = replace(self._request, wanted=np.concatenate([fixed, lanes.ravel()]))
            rolled = run_stages(self._batch, "transpose", request)
            self._made[name] = _Block(rolled.thing, run_stages(rolled, "compile", request), before, own * self._size)
        return self._made[name]

    def _blocks(self, run: _Block, given: Floats, rows: Floats) -> Iterator[tuple[int, int]]:
        """Give a program the numbers of one block after the other. The last iteration also fills the last block."""
        with np.errstate(over="ignore"):  # a buffer may be one of float32
            run.buffer[run.fixed] = given
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
    """The program of a block of iterations.

    Args:
        program: the program.
        made: what runs it, and how that was made.
        fixed: how many inputs all iterations share.
        moving: how many other inputs there are, of all iterations together.

    Attributes:
        program, run, buffer: the program, and what runs it on the numbers in the buffer.
        fixed, moving, seeds, outputs: the positions of these in the buffer.
    """

    def __init__(self, program: Program, made: Made, fixed: int, moving: int) -> None:
        self.program = program.described(0, made.seconds)
        self.run, self.buffer = made.thing.run, made.thing.buffer
        self.fixed, self.moving = part_of(program.inputs[:fixed]), part_of(program.inputs[fixed : fixed + moving])
        self.seeds, self.outputs = part_of(program.seeds), part_of(program.outputs)


class ArrayCall:
    """A call of a function of whole arrays.

    Args:
        called: the function, its operands and its results.
        function: runs it and its rule on the backend.

    Attributes:
        mapped: called.
    """

    def __init__(self, called: Called, function: Any) -> None:
        self.mapped, self._function = called, function

    def reached(self, reached: Booleans) -> Integers:
        """The results from which a gradient flows to some of the numbers; see Iterations."""
        made = self.mapped.made if self.wanted(reached) is not None else []
        return np.array(made, dtype=np.int64)

    def wanted(self, reached: Booleans) -> list[bool] | None:
        """Which of the operands need gradients, if these numbers do; None if none does."""
        called = self.mapped
        found = [given and reached[o].any() for given, o in zip(called.is_given, called.operands, strict=True)]
        return found if called.has_gradient and any(found) else None

    def on(self, numbers: Floats, at: Integers) -> Callable[[], bool]:
        """What computes the results from the operands, and says whether all of them are finite.

        Args:
            numbers: the array that both are in.
            at: the position of each in that array, by its number.
        """
        called, forward = self.mapped.numbered(at), self._function.forward
        operands = _operands(called, numbers)
        # They lie one after the other
        results: list[Any] = [_Elements(positions, numbers).view for positions in called.results]
        made = numbers[part_of(np.array(called.made))]

        def run() -> bool:
            try:
                found = forward(*[operand.now() for operand in operands])
            except (ArithmeticError, ValueError):  # eagerly, it says what is wrong
                return False
            for result, part in zip(results, found, strict=True):
                result[...] = part
            return all_finite(made)

        return run

    def back_on(self, numbers: Floats, at: Integers, total: Floats, wanted: list[bool]) -> Callable[[], object]:
        """What adds the gradients of the operands to a total, from those of the results in the total; see on."""
        called = self.mapped.numbered(at)
        operands, results = _operands(called, numbers), [_Elements(each, numbers) for each in called.results]
        seeds = [_Elements(positions, total) for positions in self.mapped.results]
        targets = _operands(self.mapped, total)

        def back() -> None:
            given = [[each.now() for each in group] for group in (seeds, results, operands)]
            with differentiating():
                contributions = self._function.rule(*given, wanted)
            for target, contribution, is_wanted in zip(targets, contributions, wanted, strict=True):
                if is_wanted:
                    target.add(contribution)

        return back

    def explain(self) -> str:
        """What is called."""
        shapes = ", ".join(" x ".join(map(str, operand.shape)) for operand in self.mapped.operands)
        return f"{self.mapped.function.name}: one call, of {shapes}"

    def held(self) -> list[Any]:
        """What is kept for it, to be counted in bytes."""
        return [*self.mapped.operands, *self.mapped.results]


def _operands(called: Called, numbers: Floats) -> list[_Elements]:
    return [
        _Elements(np.arange(each.size).reshape(each.shape), each.ravel())
        if each.dtype == float
        else _Elements(each, numbers)
        for each in called.operands
    ]


class _Elements:
    """The elements of an array in the buffer of a program.

    Args:
        positions: their positions, in the shape of the array.
        numbers: the buffer.

    Attributes:
        view: the array as a view of the buffer; None where the elements do not lie evenly.
    """

    def __init__(self, positions: Integers, numbers: Floats) -> None:
        self._positions, self._numbers, self.view = positions, numbers, None
        first = int(positions.flat[0]) if positions.size else 0
        evenly, steps = np.full(positions.shape, first), []
        for axis, count in enumerate(positions.shape):
            steps.append(int(positions.take(1, axis).flat[0]) - first if count > 1 and positions.size else 0)
            evenly += np.expand_dims(steps[-1] * np.arange(count), tuple(range(1, positions.ndim - axis)))
        if np.array_equal(positions, evenly) and distinct(positions).size == positions.size:
            strides = [step * numbers.itemsize for step in steps]
            self.view = as_strided(numbers[first:], positions.shape, strides)
        self._is_narrow = numbers.dtype != float

    def now(self) -> Floats:
        """The elements as they are now, in float64: a view where that can be, or a copy."""
        found = self._numbers.take(self._positions) if self.view is None else self.view
        return found.astype(float) if self._is_narrow else found

    def add(self, numbers: Floats) -> None:
        """Add to the elements; a number that is an element twice gets both."""
        if self.view is None:
            np.add.at(self._numbers, self._positions, numbers)
        else:
            self.view += numbers


_NONE = np.zeros(0)


class Maps:
    """All iterations and calls of functions of arrays in a graph.

    Args:
        made: the graph around them, in normal form.
        maps: what they are.
        needed: how many of the graph's outputs they read.
        request: how to compile programs.
        known: the numbers of the last inputs that are not their results, if these are known.
    """

    def __init__(
        self, made: Made, maps: Sequence[Mapped | Called], needed: int, request: Request, known: Floats = _NONE
    ) -> None:
        self._made, self._request, self.known = made, request, known
        self._graph: Graph = made.thing
        self._nodes = np.concatenate(self._graph.inputs)
        self.inputs = len(self._nodes)
        self.given = self.inputs - sum(len(mapped.made) for mapped in maps)
        self.outputs = len(self._graph.outputs) - needed
        self._nodes = np.append(self._nodes, self._graph.outputs[self.outputs :])
        self.all = [
            Iterations(each, request) if isinstance(each, Mapped) else ArrayCall(each, request.arrays(each.function))
            for each in self._together(maps)
        ]

    def _together(self, maps: Sequence[Mapped | Called]) -> list[Mapped | Called]:
        """Iterations that continue earlier ones and need no results of them are joined with those.

        So the gradients of a mean over iterations are computed in the same iterations as the mean.
        """
        found: list[Mapped | Called] = []
        for each in maps:
            if not isinstance(each, Mapped):
                found.append(each)
                continue
            for number, other in enumerate(found):
                if not isinstance(other, Mapped) or not other.is_continued_by(each):
                    continue
                if not self._depends(each, found[number:]):
                    found[number] = other.continued(each)
                    break
            else:
                found.append(each)
        return found

    def _depends(self, each: Mapped, others: Sequence[Mapped | Called]) -> bool:
        """Whether it reads anything that is computed from what others give."""
        made = np.concatenate([other.made for other in others])
        return not self._graph.users().out_of_reach(self._nodes[made])[self._nodes[each.read()]].all()

    def reached(self, wanted: Integers) -> tuple[Booleans, Booleans]:
        """From which numbers, read or given by the maps, and from which outputs a gradient flows to some inputs.

        Args:
            wanted: the numbers of the inputs.
        """
        users = self._graph.users(differentiable=True)
        is_reached, nodes = users.no_marks(), self._nodes[wanted]
        for each in self.all:
            users.mark(nodes, is_reached)
            nodes = self._nodes[each.reached(is_reached[self._nodes])]
        users.mark(nodes, is_reached)
        return is_reached[self._nodes], is_reached[self._graph.outputs[: self.outputs]]

    def run(self, wanted: Integers) -> RunOfMaps:
        """What runs the whole program, with the gradients of some of the inputs."""
        reached = self.reached(wanted)[0] if len(wanted) else np.zeros(len(self._nodes), dtype=bool)
        return RunOfMaps(self, self._made, self._request, wanted, reached)

    @property
    def size(self) -> int:
        """How many numbers there are: the inputs, the results of the functions, and what these read."""
        return len(self._nodes)

    def program(self) -> tuple[Program, list[Called]]:
        """The program without gradients, and the functions that are called in it, by where their numbers are.

        There are no functions of iterations among them.
        """
        stops = _stops(self, np.zeros(self.size, dtype=bool))
        request = replace(self._request, calls=partial(self.calls, stops, no_integers()))
        program: Program = run_stages(self._made, "transpose", request).thing
        at = np.append(program.inputs, program.outputs[self.outputs :])
        return program, [each.mapped.numbered(at) for each in self.all if isinstance(each, ArrayCall)]

    def calls(self, stops: Sequence[_Stop], sources: Integers, graph: Graph) -> list[tuple[Integers, Integers]]:
        """The nodes that each stop reads and gives, in the graph around with its gradients.

        Args:
            stops: in order.
            sources: the numbers whose gradients the graph has.
            graph: the graph.
        """
        found = []
        nodes = np.append(np.concatenate(graph.inputs), graph.outputs[self.outputs :])
        seeds = graph.seeds[len(graph.seeds) - self.size + self.inputs :]
        for stop in stops:
            if stop.wanted is None:
                found.append((nodes[stop.each.mapped.read()], nodes[stop.made]))
            else:
                slopes = graph.gradients[np.isin(sources, stop.made)]
                found.append((np.append(nodes[stop.made], slopes), seeds[stop.flows - self.inputs]))
        return found

    def needed(self, mapped: Mapped | Called) -> Integers:
        """The numbers of what a function reads that is neither an input nor the result of another one."""
        read = mapped.read()
        return distinct(read[read >= self.inputs])


class _Stop(NamedTuple):
    """Where the program around stops: at a call of a function, or of its gradients.

    Attributes:
        each: the function.
        made: the numbers of what it gives.
        flows: the numbers of what the program computes, and whose gradients are known after a stop at gradients.
        wanted: which of the gradients of what it reads are computed; None where the function itself is called.
    """

    each: Iterations | ArrayCall
    made: Integers
    flows: Integers = no_integers()  # nobody writes into it
    wanted: Any = None


class RunOfMaps:
    """Runs a program with iterations or calls of functions of arrays in it.

    Args:
        maps: the iterations and calls.
        made: the graph around.
        request: how to compile programs.
        wanted: the numbers of the inputs whose gradients it computes.
        reached: from which numbers, read or given by the maps, a gradient flows to these inputs.

    Attributes:
        program: the one around; the results of the maps are inputs.
        made: how it was made.
    """

    def __init__(self, maps: Maps, made: Made, request: Request, wanted: Integers, reached: Booleans) -> None:
        self._maps, self._wanted, given = maps, wanted, maps.given
        self._total = np.zeros(maps.size)  # calls run one at a time
        sources = np.concatenate([wanted, given + np.flatnonzero(reached[given : maps.inputs])])
        stops = _stops(maps, reached)
        request = replace(request, wanted=sources, calls=partial(maps.calls, stops, sources))
        rolled = run_stages(made, "transpose", request)
        self.made = run_stages(rolled, "compile", request)
        self.program = replace(rolled.thing, outputs=rolled.thing.outputs[: maps.outputs])
        run = self.made.thing
        (*stretches, self._last), self._buffer, program = run.between_calls(), run.buffer, run.program
        outputs, read = np.split(program.outputs, [maps.outputs])
        seeds, seeds_of_read = np.split(program.seeds, [max(len(program.seeds) - len(read), 0)])
        gradients = program.of_gradients
        self._count = given - len(maps.known)
        self._buffer[program.inputs[self._count : given]] = maps.known
        self._given, self._outputs, self._seeds = map(part_of, (program.inputs[: self._count], outputs, seeds))
        self._gradients = part_of(gradients[: len(wanted)])
        self._buffer[seeds_of_read] = 0.0
        at = np.append(program.inputs[: maps.inputs], read)
        self._there, self._back = [], []
        for stretch, stop in zip(stretches, stops, strict=True):
            if stop.wanted is None:
                self._there.append((stretch, stop.each.on(self._buffer, at)))
            else:
                flowing = np.flatnonzero(np.isin(sources, stop.made))
                found = sources[flowing], gradients[flowing]
                flows = stop.flows, seeds_of_read[stop.flows - maps.inputs]
                self._back.append((stretch, self._call_back(stop, at, *map(part_of, (*found, *flows)))))

    def _call_back(
        self, stop: _Stop, at: Integers, made: Any, made_at: Any, flows: Any, flows_at: Any
    ) -> Callable[[], bool]:
        """What calls the gradients of a function, and says whether they count."""
        buffer, total = self._buffer, self._total
        back = stop.each.back_on(buffer, at, total, stop.wanted)

        def call() -> bool:
            total[made] += buffer[made_at]
            try:
                back()
            except (ArithmeticError, ValueError):  # of a rule: eagerly, it says what is wrong
                return False
            buffer[flows_at] = total[flows]
            return True

        return call

    def __call__(self, numbers: Floats) -> tuple[Floats, Floats]:
        """The outputs and the gradients for these inputs, and seeds where there are several outputs."""
        with np.errstate(all="ignore"):  # it is looked at what is not finite
            return self._found(numbers)

    def _found(self, numbers: Floats) -> tuple[Floats, Floats]:
        buffer, given = self._buffer, self._count
        buffer[self._given] = numbers[:given]
        if len(numbers) > given:
            buffer[self._seeds] = numbers[given:]
        if len(self._wanted):
            self._total[:] = 0.0
        for stretch, call in self._there:
            stretch()
            if not call():  # something raises, which the program around might not show
                return np.full(self._maps.outputs, np.nan), np.zeros(len(self._wanted))
        are_known = True
        for stretch, call in self._back:
            stretch()
            are_known = are_known and call()
        self._last()
        outputs = taken(buffer, self._outputs)
        if not are_known:
            return outputs, np.full(len(self._wanted), np.nan)
        return outputs, self._total[self._wanted] + buffer[self._gradients]


def _stops(maps: Maps, reached: Booleans) -> list[_Stop]:
    """Where the program around stops, in order."""
    there = [_Stop(each, np.array(each.mapped.made, dtype=np.int64)) for each in maps.all]
    known, back = np.zeros(maps.size, dtype=bool), []
    for stop in there:
        if (wanted := stop.each.wanted(reached)) is not None:
            needed = maps.needed(stop.each.mapped)
            back.append(stop._replace(flows=needed[~known[needed]], wanted=wanted))
            known[needed] = True
    return [*there, *reversed(back)]
