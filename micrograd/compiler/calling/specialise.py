"""Specialised: a function traced for one structure of its arguments, and its programs.

``fast([1.0, 2.0])`` and ``fast([1.0, 2.0, 3.0])`` differ in their structure, so they are two Specialised
of one function. Each is traced once, and makes a program when it is first needed: one that computes the
outputs, one that computes the gradients too, and so on. They all start from the same graph.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakMethod

import numpy as np

from micrograd.compiler.backends.shared.executable import Executable
from micrograd.compiler.backends.shared.limits import bytes_of
from micrograd.compiler.calling.boundary import Results, numbers_of, shapes_of
from micrograd.compiler.calling.call import Origin
from micrograd.compiler.calling.mapped import Maps
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.code_names import tests_bools
from micrograd.compiler.guards.refusals import TraceError
from micrograd.compiler.guards.structure import ARRAY, Structure, is_leaf
from micrograd.compiler.numbers import part_of
from micrograd.compiler.passes.listing import table_of
from micrograd.compiler.passes.lists import disabled_passes
from micrograd.compiler.passes.packs import Packing
from micrograd.compiler.passes.regions import region_of
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.compiler.tracing.body import UnlikeError
from micrograd.compiler.tracing.indexing import watched, with_indices
from micrograd.compiler.tracing.iterations import traced_once
from micrograd.compiler.tracing.questions import UndecidedError
from micrograd.compiler.tracing.source import Source
from micrograd.compiler.tracing.trace import AbandonedError, RepeatedError
from micrograd.engine.storage import Stored
from micrograd.engine.stored import requires_grad_version
from micrograd.engine.value import Value
from micrograd.optim import FEWEST_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from micrograd.compiler.backends.shared.backend import Backend, Run
    from micrograd.compiler.ir.columns import Columns
    from micrograd.compiler.ir.graph import Graph
    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.ir.regions import Region
    from micrograd.compiler.numbers import Booleans, Floats


TOO_OFTEN = 10  # traces in a row, of which the user is warned
_ALONE = Packing()
_LOG = logging.getLogger("micrograd")


class Compiled(NamedTuple):
    """A program, what runs it, and what nodes remember of it."""

    program: Program
    run: Run
    origin: Origin
    passes: str  # a table of them


class Specialised:
    """A function traced for one structure of its arguments: its programs, and where their numbers come from.

    Args:
        source: the function, and the arguments that it is traced for.
        backend: what its programs are compiled for.
        disable: the names of passes that shall not run.
        verify: whether each pass is checked.

    Attributes:
        name: of the function.
        is_recorded: whether the programs are for calls where operations are recorded, and not under no_grad.
        maps: what runs in many iterations, or calls functions of arrays, as programs of its own; None without any.
        values: the Values that the function read from outside.
        shapes: what the arguments with numbers are called, and the shape of each.
        result: what the function returned: symbols, where it computed numbers.
        decisions: what is left to the program, whose results are the last inputs of its graph.
        needed: how many outputs of the graph, the last ones, are what these read, or what maps read.
        results: how that is made of the outputs of a program.
        wanted: the numbers of the inputs whose gradients are wanted.
        requires_grad: for each output, whether a gradient flows from it to an input that requires one.
        is_differentiable: whether one does from any of them.
        trained: the Values read from outside that gradients flow to.
        leaves_only: whether all Values read from outside are leaves.
        closed_over: what else the function reads, as it was before the trace.
        takes_numbers: whether it takes gradients as plain numbers, which is refused inside of a transform.
        remarks: what explain() says of how derivatives are computed.
        only_eager: whether its gradient cannot be compiled.
        questions: what the function asks of numbers.
        serves: whether these programs are for the numbers of another example, too.
        answers: what the outputs of its programs end with, if the questions have the answers of the trace.
        paths: the programs for other answers, if it asks.
        merged: the one for all answers, if all that it asks is data.
        quick: what runs its program for plain floats and Values; see quick.py.
        taken: how many calls have had these answers.
        graph: what its programs are made of, in normal form.
        is_of_rows: whether they are made of programs for fewer rows.
        retraced: how many calls in a row found that something was replaced; -1 before the first call that did not.
    """

    is_of_rows = False

    def __init__(self, source: Source, backend: Backend, disable: Sequence[str] = (), verify: bool = False) -> None:
        function, arguments = source.function, source.arguments
        self.is_recorded, self._function = source.is_recorded, function
        self._made_by = backend, disable, verify
        self._takes = {name: getattr(source, name) for name in ("takes_maps", "takes_decisions", "takes_calls")}
        self._rounding, self._decide = source.rounding, backend.decide
        self.name = getattr(function, "__name__", type(function).__name__)
        self._request = backend.request(self.name, disabled_passes(disable), verify)
        once = traced_once(function, lambda: tests_bools(self.closed_over.codes))
        traced = self._traced(source._replace(function=once), [("", function), *_named(arguments.objects)])
        self.graph = run_stages(traced, "normalise", self._request)
        columns: Columns = traced.thing
        trace = columns.trace
        self.result: Structure = trace.result
        self.decisions, self.needed = trace.decisions, trace.needed
        self._arguments = arguments if self.decisions else None
        self.values = trace.values
        self.shapes = shapes_of(function, arguments)
        self._tells_apart = trace.tells_apart
        self.questions = trace.questions
        self.serves = trace.serves
        self.answers = np.array([question.answer for question in self.questions]).tobytes()
        self.paths: Any = None
        self.merged: Specialised | None = None
        self.quick: Any = None
        self.taken = 0
        self._kinds = [value._primitive for value in self.values]
        self._version = requires_grad_version()
        leaves = [*self.values, *(arguments.leaves if arguments.has_values else ())]
        given = [isinstance(leaf, Value) and leaf.requires_grad for leaf in leaves]
        self.wanted = np.flatnonzero(given)
        self.maps = Maps(self.graph, trace.maps, trace.needed, self._request) if trace.maps else None
        self.requires_grad = self._outputs_reached()
        del self._reached
        self.is_differentiable = any(self.requires_grad)
        self.results = Results(self.result)
        self.trained = tuple(value for value in self.values if value.requires_grad)
        self.leaves_only = all(value.is_leaf for value in self.values)
        # Of fewer Values than this, it is quicker to read each of them at every call.
        many = self.leaves_only and len(self.values) >= FEWEST_AT_ONCE
        self.stored = Stored(self.values) if many else None
        self.stored_and_trained = Stored(self.trained) if many and self.trained else None
        # Whether a call has little to do but to compute one float or one Value; see quick.py
        self.gives_one_number = (
            not (self.maps or trace.takes_numbers)
            and is_leaf(self.result.nested)
            and self.results.kinds in ([None], [float])
            and self.results.has_values == self.is_differentiable
        )
        self.gives_numbers = bool(self.results.kinds) and not self.results.has_values
        self.is_of_few_numbers = self.gives_one_number and not many and not (trace.tells_apart and arguments.has_values)
        self._nodes = columns.nodes
        self.takes_numbers, self.remarks = trace.takes_numbers, trace.remarks
        self._under_no_grad = None if trace.depends_on_recording else self
        self._written_out: Specialised | None = None
        self._compiled: dict[bool, Compiled] = {}
        self._size = (-1, 0)  # for how many compiled programs it was found, and the bytes
        self.only_eager = False
        self.retraced = -1

    def _outputs_reached(self) -> list[bool]:
        """For each output, whether a gradient flows from it to one of the inputs whose gradients are wanted."""
        graph: Graph = self.graph.thing
        inputs = np.concatenate(graph.inputs)
        if self.decisions:
            is_wanted = np.zeros(len(inputs), dtype=bool)
            is_wanted[self.wanted] = True
            return self._reached(is_wanted.tolist())
        if self.maps:
            return self.maps.reached(self.wanted)[1].tolist()
        reached = bool(graph.differentiable[inputs[self.wanted]].any())
        if not reached or len(graph.differentiated) == 1:
            return [reached] * len(graph.differentiated)
        unreached: Booleans = graph.users(differentiable=True).out_of_reach(inputs[self.wanted])
        return (~unreached[graph.differentiated]).tolist()

    def _traced(self, source: Source, roots: list[tuple[str, Any]]) -> Made:
        """The columns of a trace, during which what the function closes over is watched.

        Raises:
            TraceError: if a number of the trace stays anywhere but in containers that the function returns.
        """
        while True:
            self.closed_over = watched(roots)
            try:
                return self._traced_once(source, roots)
            except RepeatedError as error:
                source = source._replace(**error.told)

    def _traced_once(self, source: Source, roots: list[tuple[str, Any]]) -> Made:
        try:
            made = self.closed_over.refusing_sources(
                lambda: with_indices(lambda: run_stages(Made(source), "trace", self._request), self.closed_over)
            )
        except BaseException as error:
            if isinstance(error, AbandonedError):
                error.has_changed = not self.closed_over.is_current()
                if not error.has_changed:
                    raise
            runs_again = isinstance(error, (AbandonedError, UndecidedError, RepeatedError)) or source.asked > 0
            self.closed_over.put_back(whole=runs_again)
            raise
        self.closed_over.notice_new_attributes()
        if source.asked and not self.closed_over.is_current():
            self.closed_over.put_back(whole=True)
            raise UnlikeError  # what was changed may decide, too
        if not self.closed_over.is_current():
            self._check_no_symbol_stays(roots)
        else:
            self.closed_over.watch_what_ran()
        self._reached = made.thing.reached  # the columns have no operations any more
        traced = run_stages(made, "cse", self._request)
        if symbols := ClosedOver(_named(traced.thing.trace.result.objects), whole=True).symbols:
            raise TraceError(
                f"a number is in {symbols[0]}, in an object that the compiled function returns: return numbers in "
                "lists, tuples, dicts or arrays, and make the object of them outside"
            )
        return traced

    def under_no_grad(self, arguments: Structure) -> Specialised:
        """The programs for calls under no_grad, where transforms inside give plain numbers in the place of Values.

        Args:
            arguments: of the same structure as before.
        """
        if self._under_no_grad is None:
            self._under_no_grad = self._made_again(arguments, is_recorded=False, rounding=self._rounding, **self._takes)
        return self._under_no_grad

    def _made_again(self, arguments: Structure, **told: Any) -> Specialised:
        """The programs for arguments, traced as told."""
        return Specialised(Source(self._function, arguments, **told), *self._made_by)

    def written_out(self, arguments: Structure) -> Specialised:
        """The programs in which all iterations of mg.vmap are written out, and all decisions are followed.

        Args:
            arguments: of the same structure as before.
        """
        if self.maps is None and not self.decisions:
            return self
        if self._written_out is None:
            self._written_out = self._made_again(arguments, rounding=self._rounding if self.decisions else None)
        return self._written_out

    def path_of(self, inputs: Floats) -> Specialised:
        """The programs of the path that is taken with these inputs, which decide nothing but ask.

        Meanwhile, the Values that the function reads from outside must have these numbers.

        Args:
            inputs: of a call, as numbers() gives them.
        """
        assert self._arguments is not None  # it decides
        given = self._arguments.leaves
        leaves = [
            Value(number, requires_grad=leaf.requires_grad) if isinstance(leaf, Value) else type(leaf)(number)
            for leaf, number in zip(given, inputs[len(inputs) - len(given) :].tolist(), strict=True)
        ]
        return self._made_again(Structure(self._arguments.rebuilt(leaves)), rounding=self._rounding)

    def explain(self) -> str:
        """What was compiled: the kernels of the program, and of those of the iterations in it."""
        program = self.compiled(True).program
        if self.decisions:
            return "\n".join(["The program decides:", *self.decided(), "", "After that:", program.explain()])
        return "\n\n".join([program.explain(), *(each.explain() for each in (self.maps.all if self.maps else ()))])

    def decided(self) -> list[str]:
        """A line for each decision of the program."""
        return [line for each in self.decisions for line in each.described()]

    def is_outdated(self) -> bool:
        """Whether what it closes over was replaced since it was traced, or gradients are wanted elsewhere."""
        if not self.closed_over.is_current():
            return True
        if self._version is not requires_grad_version():
            if self._kinds != [value._primitive for value in self.values]:
                return True
            self._version = requires_grad_version()
        return False

    def _check_no_symbol_stays(self, roots: list[tuple[str, Any]]) -> None:
        """Refuse a function that keeps numbers of its trace; what it changed is put back."""
        after = ClosedOver(roots)
        if not after.symbols:
            return
        self.closed_over.put_back()
        position = after.symbols[0]
        line = after.line_of(position)
        where = f" ({line[0]}:{line[1]})" if line else ""
        raise TraceError(
            f"a number is left behind in {position}{where}: a compiled function runs once, "
            f"on symbols, so at later calls nothing would be put there. Return the number, and pass it in as an "
            f"argument at the next call"
        )

    def confuses(self, arguments: Structure) -> bool:
        """Whether the function asks which Value is which, and reads one of these from outside, too."""
        return self._tells_apart and any(
            self.closed_over.holds(leaf) for leaf in arguments.leaves if isinstance(leaf, Value)
        )

    def numbers(self, arguments: Structure) -> Floats:
        """What the inputs of the programs are now: the Values that the function reads, and those of its arguments.

        It is only read, and not kept by those who get plain numbers: it may be an array that is an argument.
        """
        if not (self.values or self.results.has_values) and len(arguments.runs) == 1:
            holds, run = arguments.runs[0]
            if holds is ARRAY:  # the program copies it, and nobody keeps it
                return np.asarray(run, np.float64).ravel()
        if self.stored is None:
            return numbers_of(arguments, self.values)
        stored = self.stored.data()
        return numbers_of(arguments, (), [stored]) if arguments.runs else stored

    def size(self) -> int:
        """About how many bytes it has, and its other paths."""
        others = (self.paths.size(self) if self.paths else 0) + (self.merged.own_size() if self.merged else 0)
        return self.own_size() + others

    def own_size(self) -> int:
        """About how many bytes it has: its graph, its programs, and what runs them."""
        if self._size[0] != len(self._compiled):
            runs = [(compiled.program, getattr(compiled.run, "buffer", None)) for compiled in self._compiled.values()]
            held = [each.held() for each in self.maps.all] if self.maps else []
            self._size = len(self._compiled), bytes_of([self.graph.thing, runs, held])
        return self._size[1]

    def want(self, inputs: Iterable[int]) -> None:
        """Ask for the gradients of these inputs only."""
        self.wanted = np.array(list(inputs), dtype=np.int64)

    def program(self, gradients: bool, start: int = 0, examples: int = 1, packing: Packing = _ALONE) -> Program:
        """A program.

        Args:
            gradients: whether it computes the gradients, too.
            start: where in the buffer it begins; see reroll.
            examples: how many sets of arguments there are at a time.
            packing: how many of them may be in the program, which has an output for each; see packs.py.
        """
        made = self._made(gradients, start=start, examples=examples, packing=packing)
        return self._described(made.thing, made)

    def compiled(self, gradients: bool) -> Compiled:
        """A program that can be run; it is made once."""
        if gradients not in self._compiled:
            if self.decisions:
                wanted = self.wanted if gradients else self.wanted[:0]
                assert self._decide is not None  # else decisions are followed
                begin = time.perf_counter()
                region, seconds = self._region(gradients)
                deciding = self._decide(region, wanted)
                made = Made(deciding, {**seconds, "compile": time.perf_counter() - begin})
                program = self._described(deciding.program, made)
            elif self.maps:
                run = self.maps.run(self.wanted if gradients else self.wanted[:0])
                made, program = run.made._replace(thing=run), self._described(run.program, run.made)
            else:
                rerolled = self._made(gradients)
                made = run_stages(rerolled, "compile", self._request)
                program = self._described(rerolled.thing, made)
            self._compiled[gradients] = self._that_runs(program, made)
            how = "with" if gradients else "without"
            _LOG.debug("%s: compiled %s gradients in %.3f s", self.name, how, sum(made.seconds.values()))
        return self._compiled[gradients]

    def _region(self, gradients: bool) -> tuple[Region, dict[str, float]]:
        """What decides, and how long the passes took to make what it is made of."""
        region = region_of(self.graph, self.decisions, self.needed, self._request, gradients)
        return region, self.graph.seconds

    def _that_runs(self, program: Program, made: Made) -> Compiled:
        """A program with what the passes have made to run it."""
        origin = Origin(
            self.name,
            f"compiled {self.name}",
            self._function,
            program,
            wanted=part_of(self.wanted),
            trained=len(self.trained),
            leaves_only=self.leaves_only,
            stored=self.stored_and_trained,
            is_whole=self.maps is None,
            questions=self.questions,
            path=WeakMethod(self.path_of) if self.decisions else None,
        )
        passes = table_of(made.seconds, made.effects, self._request.disabled)
        if isinstance(made.thing, Executable):
            made.thing.program = program
        return Compiled(program, made.thing, origin, passes)

    def _made(self, gradients: bool, last: str = "transpose", **asked: Any) -> Made:
        """The program of the passes that all backends have, or of those up to and including the last one."""
        wanted = self.wanted if gradients else self.wanted[:0]
        return run_stages(self.graph, last, replace(self._request, wanted=wanted, **asked))

    def after(self, name: str) -> Any:
        """The graph or the program, gradients included, after a pass of this name.

        Raises:
            ValueError: if there is no such pass, or what it makes is not kept, or cannot be shown.
        """
        names = [each.name for each in self._request.passes]
        shown = names[names.index("normalise") :]
        if name not in shown:
            raise ValueError(f"show takes one of {', '.join(shown)} for after, not {name!r:.80}")
        return run_stages(self.graph, name, replace(self._request, wanted=self.wanted)).thing

    def _described(self, program: Program, made: Made) -> Program:
        """The program, with what is known of how it was made."""
        return program.described(self._nodes, made.seconds)


def _named(objects: Iterable[Any]) -> list[tuple[str, Any]]:
    """Objects, each with how it is written: the name of its class."""
    return [(type(item).__name__, item) for item in objects]
