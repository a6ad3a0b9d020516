"""Programs of many rows, made from those of a few: so the first call takes as long for a million rows as for 1,000.

    fast(x)      x has 100,000 rows (or columns; or a loop in fast has the length 100,000)

    outlines     what the function does to arrays of 100,000, 40, 48 and 56 rows: does it do the same to all?
    traces       with the first 40, 48 and 56 rows of the arguments, each with its program
    program      what that is for 100,000 rows, if the three differ by the number of rows alone

If any of this fails, the function is traced for all rows, as one with few rows is. A function must be traced for 8
rows more to see what grows, as arrays begin at multiples of 8 numbers. The three programs are kept: for 200,000 rows
they are used again.

So it is with arrays of numbers that the function knows, as it closes over them or makes them of such, and with lists
and arrays that its loops go through. Where they meet numbers that are not known, symbols stand for the first rows of
them. Their numbers are constants of the program.
"""

from __future__ import annotations

import logging
import math
import operator
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from micrograd._support.containers import remade
from micrograd._support.interrupts import is_of_handler
from micrograd._support.memory import bytes_there, check_memory
from micrograd.compiler.calling.boundary import Results, shapes_of
from micrograd.compiler.calling.mapped import Maps
from micrograd.compiler.calling.specialise import Compiled, Specialised
from micrograd.compiler.guards.closed_over import ClosedOver
from micrograd.compiler.guards.code_names import asks_for_classes, catches_errors, has_loops, matches_classes
from micrograd.compiler.guards.structure import Structure, is_named_tuple
from micrograd.compiler.ir.arrays import conflicts
from micrograd.compiler.ir.entries import Mapped
from micrograd.compiler.ir.extrapolated import UnlikeRowsError, extrapolated, floats_of, is_same
from micrograd.compiler.numbers import shape_of_numbers
from micrograd.compiler.passes.regions import region_of
from micrograd.compiler.passes.stages import Made, run_stages
from micrograd.compiler.passes.transposing import has_samples
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.indexing import with_indices
from micrograd.compiler.tracing.iterations import BYTES_OF_AN_OPERATION
from micrograd.compiler.tracing.outline import EDGE, AskedError, OutlineError, farthest, outline
from micrograd.compiler.tracing.tape import Tape
from micrograd.compiler.tracing.trace import AbandonedError
from micrograd.engine.tracer import tracer_on_top
from micrograd.loops import Rows, taking_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from micrograd.compiler.ir.program import Program
    from micrograd.compiler.ir.regions import Region
    from micrograd.compiler.numbers import Floats
    from micrograd.loops import Distance, Move

_LOG = logging.getLogger("micrograd")
# Of fewer, one trace takes no longer than three. An iteration of mg.scan, or of a loop in Python, is traced by itself;
# rows of arrays and of mg.vmap are traced at once.
FEWEST_ROWS, FEWEST_ITERATIONS = 1024, 256
# From 40 to 63 rows are traced; or from 72 to 95, where as many columns of an array, or iterations of a loop, look
# like rows. So 1 / rows is no power of two, by which a product is no quotient, and there are more than 32 iterations,
# which some passes look for.
_FEW, _MORE, _STEP = 40, 72, 8
_MORE_THAN_NEEDED = 4  # times as many rows: of fewer, all are traced as soon
_MOST_PARTS = 1000  # of a list or a dict among the arguments
_BYTES_OF_AN_INPUT = 24  # beside its number: positions, and a copy
_BYTES_OF_A_MAPPED = 150  # for each number that iterations of mg.vmap read and give
_MOST_NUMBERS = 1 << 27  # of a program; of a larger one, iterations of mg.vmap go through memory that is used again


class _NeededError(UnlikeRowsError):
    """More rows are needed to show what loops do.

    Args:
        rows: how many, or infinity.
    """

    def __init__(self, rows: float) -> None:
        super().__init__(f"{rows} rows are needed")
        self.rows = rows


class _MemoryOfMapsError(UnlikeRowsError):
    """A program for which mg.vmap had better go through memory that is used again."""


class _OfRows(Specialised):
    """The programs of a function for many rows.

    Args:
        few_rows: those for a few rows.
        size: how many there are.
        floats: which float stands for three in those programs.
        given: the arguments.
        known: the arrays of known numbers that the programs are given after those of the arguments.
        in_full: makes the programs by a trace for all rows.
    """

    is_of_rows = True

    def __init__(
        self,
        few_rows: _Few,
        size: int,
        floats: dict[tuple[float, ...], float],
        given: Structure,
        known: Sequence[Floats],
        in_full: Callable[[], Specialised],
    ) -> None:
        few = few_rows.programs
        vars(self).update(vars(few[-1]))
        self._few, self._rows, self._floats, self._in_full = few_rows, size, floats, in_full
        self._known = np.concatenate([np.zeros(0), *map(np.ravel, known)])
        self._given = given.count()
        self._graph: Made | None = None
        self.shapes = shapes_of(self._function, given)
        told = [(each.values, each.wanted, each._nodes, each.remarks) for each in few]
        self.values, self.wanted, self._nodes, self.remarks = self._of_all(told)
        kinds, plan = self._of_all([(each.results.kinds, each.results.plan) for each in few])
        self.results = Results.of_plan(plan, kinds, few[-1].results.outputs)
        self.requires_grad = self._of_all([each.requires_grad for each in few])
        self._compiled, self._size = {}, (-1, 0)
        if few[-1]._under_no_grad is few[-1]:
            self._under_no_grad = self
        gradients = self.is_differentiable and len(self.results.kinds) == 1
        if self.maps:
            size = self._of_all([sum(map(len, each.graph.thing.inputs)) for each in few])
            self._check_memory(size * _BYTES_OF_A_MAPPED, f"{size:,} numbers that mg.vmap reads and gives")
            self._graph = self._extrapolated_graph()
            parts = self._of_all([[_bare(part.mapped) for part in each.maps.all] for each in few if each.maps])
            self.maps = Maps(
                self._graph, parts, self._of_all([each.needed for each in few]), self._request, self._known
            )
        elif self.decisions:
            self._arguments = given
            self._compiled[gradients] = self._deciding(gradients)
        else:
            self._compiled[gradients] = self._extrapolated(gradients)

    def _of_all(self, things: list[Any]) -> Any:
        return extrapolated(self._few.sizes, things, self._rows, self._floats)

    def compiled(self, gradients: bool) -> Compiled:
        """A program that can be run; it is made once."""
        if gradients not in self._compiled and not self.maps:
            with suppress(UnlikeRowsError):
                self._compiled[gradients] = (self._deciding if self.decisions else self._extrapolated)(gradients)
        if gradients not in self._compiled and self.decisions:  # pragma: no cover  # no program is known that needs it
            self._compiled[gradients] = self._in_full().compiled(gradients)
        return super().compiled(gradients)

    def _deciding(self, gradients: bool) -> Compiled:
        """The program, where it decides."""
        made = super().compiled(gradients)
        run: Any = made.run
        run.keep(self._known)
        return made

    def decided(self) -> list[str]:
        """A line for each decision of the program."""
        with suppress(UnlikeRowsError):
            lines: list[str] = self._of_all([each.decided() for each in self._few.programs])
            return lines
        return super().decided()  # pragma: no cover  # no program is known that needs it

    def _region(self, gradients: bool) -> tuple[Region, dict[str, float]]:
        names = [each.name for each in self._request.passes]
        end = names.index("transpose") + 1  # those after it make new primitives, which are never the same
        request = replace(self._request, stands_for_more=True, passes=self._request.passes[:end])
        regions = [
            region_of(each.graph, each.decisions, each.needed, request, gradients) for each in self._few.programs
        ]
        self._check_size(self._of_all([each.size for each in regions]), 0)

        def finished(program: Program) -> Program:
            made: Program = run_stages(Made(program, dict.fromkeys(names[:end], 0.0)), names[-1], self._request).thing
            return made

        return self._of_all(regions).changed(finished), self._few.programs[-1].graph.seconds

    def _extrapolated(self, gradients: bool) -> Compiled:
        made = self._few.made(gradients)
        self._check_size(*self._of_all([(each.thing.size, len(each.thing.inputs)) for each in made]))
        program = self._of_all([each.thing for each in made])
        if any(map(operator.gt, conflicts(program), conflicts(made[-1].thing))):
            raise UnlikeRowsError("a program that reads what is not written yet")
        if has_samples(program):
            with suppress(UnlikeRowsError):  # else all rows are transposed
                of_samples = self._few.transposed(gradients)
                program, made = self._of_all([each.thing for each in of_samples]), of_samples
        effects = self._of_all([each.effects for each in made])
        program = self._with_known(program)
        ready = run_stages(made[-1]._replace(thing=program, effects=effects), "compile", self._request)
        return self._that_runs(self._described(program, ready), ready)

    def _check_size(self, size: int, inputs: int) -> None:
        """Refuse a program of so many numbers, some of them inputs, before any memory is taken for it.

        Raises:
            MemoryError: if there is not enough.
            _MemoryOfMapsError: if mg.vmap would take less of it.
        """
        each = getattr(self._request.lower, "dtype", np.dtype(float)).itemsize
        self._check_memory(size * each + inputs * _BYTES_OF_AN_INPUT, f"{size:,} numbers of {each} bytes")
        if size > _MOST_NUMBERS and any("vmap" in code.co_names for code in self.closed_over.codes):
            raise _MemoryOfMapsError("much memory")

    def _check_memory(self, needed: int, what: str) -> None:
        check_memory(needed, bytes_there(), f"{what} in {self.name}, for {self._rows:,} rows or iterations,")

    def _with_known(self, program: Program) -> Program:
        """The program, in which the inputs whose numbers are known are constants."""
        if not len(self._known):
            return program
        begin = len(self.values) + self._given
        end = begin + len(self._known)
        at = program.inputs[begin:end]
        start = int(at.min())
        at = at - start
        numbers, is_known = np.zeros(at.max() + 1), np.zeros(at.max() + 1, dtype=bool)
        numbers[at], is_known[at] = self._known, True
        edges = np.flatnonzero(np.diff(is_known, prepend=False, append=False)).reshape(-1, 2)
        parts = [(start + first, numbers[first:last].copy()) for first, last in edges.tolist()]
        inputs = np.delete(program.inputs, slice(begin, end))
        return replace(program, inputs=inputs, constants=(*program.constants, *parts))

    @property
    def graph(self) -> Made:  # type: ignore[override]  # it is only made where it is asked for
        """What programs are made of that are not extrapolated themselves."""
        if self._graph is None:
            try:
                if len(self._known):
                    raise UnlikeRowsError("inputs that are known")
                self._graph = self._extrapolated_graph()
            except UnlikeRowsError:  # its terms may be in an order of their own
                self._graph = self._in_full().graph
        return self._graph

    def _extrapolated_graph(self) -> Made:
        made = [each.graph for each in self._few.programs]
        thing, effects = self._of_all([(each.thing, each.effects) for each in made])
        return made[-1]._replace(thing=thing, effects=effects)

    def own_size(self) -> int:
        """About how many bytes it has."""
        return sum(each.own_size() for each in self._few.programs) + 8 * sum(
            compiled.program.size for compiled in self._compiled.values()
        )


class ManyRows:
    """The programs of one function for many rows, and those for a few rows that they are made of.

    Args:
        function: the function.
        make: makes the programs by a trace, for arguments; with ``in_lanes`` if these stand for others with more rows.
    """

    def __init__(self, function: Callable[..., Any], make: Callable[..., Specialised]) -> None:
        self._function, self._make = function, make
        self._known: OrderedDict[Any, _Few] = OrderedDict()

    def of(self, given: Structure, traces: Callable[[], None], answers: Sequence[float] = ()) -> Specialised:
        """The programs for these arguments, from those for a few rows of them if that can be.

        Args:
            given: the arguments.
            traces: called if the function is traced.
            answers: to the first questions that it asks, as far as they are known.
        """
        size = max(_lengths(given.nested), default=0)
        if size >= FEWEST_ROWS:
            return self._of_rows(given, size, traces, answers) or self._in_full(given, traces)
        refusing = _Refusing(size)
        try:
            with taking_rows(refusing):
                special = self._make(given)
        except (AbandonedError, Exception) as error:
            if not (refusing.found or refusing.has_loops):
                traces()
                raise
            if getattr(error, "has_changed", False):
                return self._in_full(given, traces)
        if refusing.has_loops and not refusing.found:
            refusing = self._looked_into_loops(given, size)
        elif not refusing.found:
            traces()
            return special
        made = self._of_rows(given, refusing.found[0], traces, answers) if refusing.found else None
        return made or self._in_full(given, traces)

    def _looked_into_loops(self, given: Structure, size: int) -> _Refusing:
        """What ended an outline, in which loops in Python may be the first to have many iterations.

        A trace would go through all loops before in other code, and so take half as long again. An outline is given up
        after some operations; and where it is, so is that for all rows.
        """
        roots = self._roots(given)
        refusing, reached, (positional, named) = _Refusing(size), ClosedOver(roots), given.nested
        rows = size if size >= FEWEST_ITERATIONS else _MOST_NUMBERS  # none of the arguments has so many
        try:
            with taking_rows(refusing), reached.sources.restored():
                with_indices(
                    lambda: outline(self._function, positional, named, rows=rows, reached=ClosedOver(roots)),
                    reached,
                    goes_in=True,
                )
        except (AbandonedError, Exception) as error:
            if is_of_handler(error):
                raise
        finally:
            if not reached.is_current():
                reached.put_back(whole=True)
        return refusing

    def _roots(self, given: Structure) -> list[tuple[str, Any]]:
        """The function and the objects that it is given, from which all that it can reach is found."""
        return [("", self._function), *((type(item).__name__, item) for item in given.objects)]

    def _in_full(self, given: Structure, traces: Callable[[], None]) -> Specialised:
        count = given.count()
        what = f"{count:,} numbers among the arguments, traced one by one,"
        check_memory(count * BYTES_OF_AN_OPERATION, bytes_there(), what)
        traces()
        return self._make(given)

    def _of_rows(
        self, given: Structure, size: int, traces: Callable[[], None], answers: Sequence[float]
    ) -> Specialised | None:
        """The programs for so many rows or iterations; None if they must be traced for all of them."""
        given.check_integers()
        function, reached = self._function, ClosedOver(self._roots(given))
        chosen, other = _sizes(_FEW + size % _STEP), _sizes(_MORE + size % _STEP)
        if not set(chosen).isdisjoint(_lengths(given.nested)):
            chosen, other = other, chosen
        sizes = chosen
        try:
            while True:
                looked = None
                try:
                    looked = self._looked(given, size, sizes, reached, answers)
                    return self._made_as_asked(given, size, looked, reached, traces)
                except _NeededError as error:
                    if _MORE_THAN_NEEDED * error.rows > size or not reached.is_current():
                        raise
                    few = math.ceil(error.rows)
                    sizes = _sizes(few + (size - few) % _STEP)
                except (OutlineError, UnlikeRowsError) as error:
                    # Some loops are found only among more iterations. Where rows are few, all are traced as soon
                    of_traces = looked is not None and (isinstance(error, _MemoryOfMapsError) or size < FEWEST_ROWS)
                    if sizes is not chosen or of_traces or not reached.is_current():
                        raise
                    sizes = other
        except Exception as error:  # one of the function's own comes again
            if is_of_handler(error) or isinstance(error, MemoryError):
                raise
            _LOG.debug("%r is traced for all of %d rows: %r", function, size, error)
            return None
        finally:
            if not reached.is_current():
                reached.put_back(whole=True)

    def _made_as_asked(
        self, given: Structure, size: int, looked: _Looked, reached: ClosedOver, traces: Callable[[], None]
    ) -> Specialised:
        """The programs for so many rows, with a second look if few rows have other answers than the outline."""
        try:
            return self._made_of_few(given, size, looked, traces)
        except AskedError as error:
            looked = self._looked(given, size, looked.sizes, reached, *error.args)
            return self._made_of_few(given, size, looked, traces)

    def _made_of_few(self, given: Structure, size: int, looked: _Looked, traces: Callable[[], None]) -> Specialised:
        """The programs for so many rows, made of those for three sizes.

        Raises:
            UnlikeRowsError: if they cannot be.
        """
        sizes, known, cut = looked.sizes, looked.known, [Structure(each) for each in looked.arguments[1:]]
        key = size if cut[0].key == given.key else None, *(each.key for each in cut), looked.answers
        few_rows = self._known.get(key)
        if few_rows is None or not few_rows.are_of(looked.outlines):
            traces()
            _LOG.debug("%r is traced for %d of %d rows", self._function, sizes[0], size)
            seen = looked.looks if known else None
            does = looked.goes_in, looked.counts, looked.chooses
            quick = list[bool]()
            both = zip(sizes, looked.growing, strict=True)
            others = [_OtherRows(size, count, seen, *does, quick, growing) for count, growing in both]
            programs = [
                self._special(rows, each, known, looked.answers) for rows, each in zip(others, cut, strict=True)
            ]
            few_rows = _Few(sizes, programs, looked.outlines)
        in_full = partial(self._make, given, answers=looked.answers)
        made_of_few = _OfRows(few_rows, size, looked.floats, given, [numbers for *_, numbers in known], in_full)
        self._known[key] = few_rows
        self._known.move_to_end(key)
        if len(self._known) > _STEP:
            self._known.popitem(last=False)
        return made_of_few

    def _looked(
        self, given: Structure, size: int, sizes: list[int], reached: ClosedOver, answers: Sequence[float]
    ) -> _Looked:
        """What outlines show of all rows, and of some sizes.

        Raises:
            OutlineError, UnlikeRowsError: if the function does not do the same to any number of rows.
        """
        arguments = [_cut(given.nested, size, count) for count in (size, *sizes)]
        looks = _Looks(reached)
        goes_in = looks.may_go_into_loops()

        def outlines_of(answers: Sequence[float]) -> tuple[_OtherRows, list[Any], list[set[int]]]:
            run = partial(self._outlines, size, sizes, arguments, looks, answers)
            with reached.sources.restored():
                if goes_in:
                    return with_indices(lambda: run(ClosedOver(self._roots(given))), reached, goes_in)
                return run()

        try:
            rows, outlines, growing = outlines_of(answers)
        except AskedError:  # few rows answer; if all rows have other answers, the program will say so
            few = _OtherRows(size, sizes[-1], looks, goes_in, counts=goes_in, chooses=goes_in)
            with taking_rows(few):
                special = self._make(Structure(arguments[-1]), in_lanes=True, answers=answers)
            answers = [question.answer for question in special.questions]
            rows, outlines, growing = outlines_of(answers)
        whole, *parts = outlines
        floats = floats_of(parts, whole)
        if not is_same(extrapolated(sizes, parts, size, floats), whole) or not reached.is_current():
            raise OutlineError("another number of rows is another program")
        does = goes_in, rows.counts, rows.chooses
        return _Looked(sizes, arguments, looks, *does, rows.known, parts, growing, floats, tuple(answers))

    def _outlines(
        self,
        size: int,
        sizes: Sequence[int],
        arguments: list[Any],
        looks: _Looks,
        answers: Sequence[float],
        reached: ClosedOver | None = None,
    ) -> tuple[_OtherRows, list[Any], list[set[int]]]:
        """What stood for all rows, with the known numbers that were met, and an outline for all and for each size.

        And how many iterations the loops have, for each size, that have more for all rows.
        """
        for looking in (looks, None):  # pragma: no branch  # without a look, no numbers are known
            every, outlines = [], []
            for count, each in zip((size, *sizes), arguments, strict=True):
                every.append(_OtherRows(size, count, looking, reached is not None))
                with taking_rows(every[-1]):
                    outlines.append(outline(self._function, *each, rows=count, reached=reached, answers=answers))
            if not every[0].known or every[1].known:  # or they are as many as the rows of the arguments are
                break
        # What is so far from both ends is to be in the middle, too
        needed = max(every[0].needed, 2 * farthest(size, every[0].moves, every[1].moves) + 2 * EDGE)
        if needed > min(sizes):
            raise _NeededError(needed)
        growing = [{n for n, more in zip(each.loops, every[0].loops, strict=False) if n != more} for each in every[1:]]
        return every[0], outlines, growing

    def _special(self, rows: _OtherRows, given: Structure, known: list[Any], answers: tuple[float, ...]) -> Specialised:
        """The programs for fewer rows, which meet the same known numbers, for answers to what the function asks.

        Raises:
            UnlikeRowsError: if they meet others.
            AskedError: if the function asks for other answers.
        """
        with taking_rows(rows):
            special = _whole(self._make(given, in_lanes=True, answers=answers))
        if (found := tuple([question.answer for question in special.questions])) != answers:
            raise AskedError(found)  # more than the outline, which left it to the program, or less
        if rows.needed > rows.count:
            raise _NeededError(rows.needed)
        if rows.sums_integers:
            raise UnlikeRowsError("sums of integers")
        if not is_same(rows.known, known):
            raise UnlikeRowsError("other known numbers")
        return special


class _Looked(NamedTuple):
    """What outlines show of a function.

    Attributes:
        sizes: how many rows are traced: three numbers of them.
        arguments: those for all rows, and then for each of the sizes.
        looks: looks at known numbers.
        goes_in: whether loops in Python are looked into.
        counts, chooses: see Rows.
        known: the known numbers that are as many as the rows.
        outlines: of the sizes.
        growing: for each size, how many iterations the loops have that have more for all rows.
        floats: which float stands for three that depend on the number of rows; see floats_of.
        answers: to what the function asks of numbers.
    """

    sizes: list[int]
    arguments: list[Any]
    looks: _Looks
    goes_in: bool
    counts: bool
    chooses: bool
    known: list[Any]
    outlines: list[Any]
    growing: list[set[int]]
    floats: dict[tuple[float, ...], float]
    answers: tuple[float, ...]


class _Few:
    """The programs of a function for three numbers of rows, few of them.

    Args:
        sizes: how many rows these have.
        programs: of the function.
        outlines: of the function.
    """

    def __init__(self, sizes: Sequence[int], programs: Sequence[Specialised], outlines: Sequence[Any]) -> None:
        self.sizes, self.programs, self._outlines = sizes, programs, outlines
        for each in programs:  # all that the function reads is kept once
            each.closed_over = programs[-1].closed_over
        self._made: dict[bool, list[Made]] = {}
        self._transposed: dict[bool, list[Made]] = {}

    def are_of(self, outlines: Sequence[Any]) -> bool:
        """Whether a trace would make the same ones now, where the function has these outlines."""
        return is_same(list(self._outlines), list(outlines)) and not any(each.is_outdated() for each in self.programs)

    def made(self, gradients: bool) -> list[Made]:
        """Those of the passes that do not look at how many rows there are: they come before "transpose"."""
        if gradients not in self._made:
            self._made[gradients] = [each._made(gradients, "reroll") for each in self.programs]
        return self._made[gradients]

    def transposed(self, gradients: bool) -> list[Made]:
        """The same after "transpose", where there are samples enough in the program for all rows."""
        if gradients not in self._transposed:
            request = replace(self.programs[-1]._request, stands_for_more=True)
            self._transposed[gradients] = [run_stages(each, "transpose", request) for each in self.made(gradients)]
        return self._transposed[gradients]


class _Refusing(Rows):
    """What ends a trace at the first loop of many iterations, or where it meets many known numbers.

    It does so before the trace begins, where loops in Python may have many iterations.

    Args:
        size: how many rows the arguments have.

    Attributes:
        found: how many there are.
        has_loops: whether there may be such loops.
    """

    has_loops = False

    def __init__(self, size: int) -> None:
        self._size = size
        self.found: list[int] = []

    def given(self, known: Any, of_iterations: bool = False) -> Any:
        """Known numbers, or a range, that are not many."""
        if type(known) is range:
            self.goes_through(len(known))
        elif (length := max(_shape_of(known), default=0)) >= FEWEST_ROWS:
            self._end(length)
        return known

    def goes_through(self, *counts: int) -> None:
        """Give up if a loop has many iterations."""
        if (count := max(counts, default=0)) >= FEWEST_ITERATIONS:
            self._end(count)

    def _end(self, count: int) -> NoReturn:
        self.found.append(count)
        raise AbandonedError

    def goes_into_loops(self, reached: ClosedOver) -> bool:
        """No; an outline goes into them, if there are loops, and something to go through."""
        are_many = self._size >= FEWEST_ITERATIONS or reached.reaches_many(FEWEST_ITERATIONS)
        may_run = are_many and not reached.sources.iterators  # which could not be put back
        self.has_loops = may_run and _Looks(reached).may_go_into_loops()
        if self.has_loops:
            raise AbandonedError
        return False


class _Looks:
    """Looks at known numbers: once, where they are watched, so that a change would be noticed.

    What stands for them may be refused where numbers are not. So they stay where the function catches exceptions.

    Args:
        reached: what is watched.
    """

    def __init__(self, reached: ClosedOver) -> None:
        self._reached, self._catches = reached, catches_errors(reached.codes)
        self._matches = matches_classes(reached.codes)
        self._seen: dict[int, tuple[Any, ...]] = {}

    def may_go_into_loops(self) -> bool:
        """Whether loops in Python may be looked into."""
        return not (self._catches or self._matches) and has_loops(self._reached.codes)

    def may_be_items(self) -> bool:
        """Whether iterations may get what stands for items: not where these are asked for their class unnoticed.

        What stands for a number is also a Value. Where loops are looked into, so are calls that ask.
        """
        return self.may_go_into_loops() or not (self._matches or asks_for_classes(self._reached.codes))

    def at(self, known: Any) -> tuple[Any, ...]:
        """What it is: two classes and an array; nothing if there are no long rows of numbers in it."""
        found = self._seen.get(id(known))
        if found is None:
            is_long = not self._catches and max(_shape_of(known), default=0) >= FEWEST_ITERATIONS - EDGE
            found = (type(known), type(known[0]), np.array(known)) if is_long else ()
            if self._reached.holds(known):
                self._seen[id(known)] = found
        return found


class _OtherRows(Rows):
    """Another number of rows, for arguments that have it.

    Args:
        size: how many rows there are.
        count: how many there are to be.
        looks: looks at known numbers; None if these are to have all of their rows.
        goes_in: whether loops in Python are looked into.
        counts, chooses: see Rows.
        quick: the answers to questions of quickness that were given for fewer rows, which this adds to.
        growing: how many iterations those loops have that have more for more rows; None if nobody knows.

    Attributes:
        count: how many there are to be.
        known: what was found of the known numbers that were met, each once, with all of their rows.
        moves: the operations on arrays that an outline has; see farthest.
        loops: how many iterations the loops have that were met.
    """

    def __init__(
        self,
        size: int,
        count: int,
        looks: _Looks | None,
        goes_in: bool = False,
        counts: bool = False,
        chooses: bool = False,
        quick: list[bool] | None = None,
        growing: set[int] | None = None,
    ) -> None:
        self._quick, self._asked, self._growing = [] if quick is None else quick, 0, growing
        self._size, self.count, self._looks, self._goes_in = size, count, looks, goes_in
        self.counts, self.chooses = counts, chooses
        self.choosing = {}
        self.known: list[tuple[Any, ...]] = []
        self._numbers: dict[range, Any] = {}
        self._stands: list[Any] = []
        self.moves: list[Move] = []
        self.loops: list[int] = []

    def given(self, known: Any, of_iterations: bool = False) -> Any:
        """What stands for known numbers, or a range, that are as many as the rows, or a few more or fewer."""
        if type(known) is range:
            is_near = known.step == 1 and abs(len(known) - self._size) <= EDGE
            return known[: len(known) - self._size + self.count] if is_near else known
        tape = tracer_on_top()
        if self._looks is None or not isinstance(tape, Tape) or not (found := self._looks.at(known)):
            return known
        if of_iterations and not self._looks.may_be_items():
            return known
        numbers = found[-1]
        near = [abs(length - self._size) <= EDGE for length in numbers.shape]
        if any(length >= FEWEST_ROWS and not is_near for length, is_near in zip(numbers.shape, near, strict=True)):
            if self.count == self._size:  # if they are as many as the rows of the arguments are, they become fewer
                return known
            raise UnlikeRowsError(f"known numbers of the shape {numbers.shape}")
        if not any(near):
            return known
        position = next((n for n, before in enumerate(self.known) if is_same(before, found)), len(self.known))
        if position == len(self.known):
            less = self._size - self.count
            counts = [length - less * is_near for length, is_near in zip(numbers.shape, near, strict=True)]
            rows = known[: counts[0]] if type(known) is list else known[tuple(map(slice, counts))]
            self.known.append(found)
            self._stands.append(tape.outermost.standing_for(position, rows, _bounds_of(numbers)))
        return self._stands[position]

    def numbers(self, counted: range) -> Any:
        """What stands for the numbers of iterations where these are computed with."""
        if counted not in self._numbers:
            self.counts = True
            whole = range(counted.start, counted.stop - self.count + self._size)
            self._numbers[counted] = self.given([*whole])
        return self._numbers[counted]

    def is_near(self, counted: range) -> bool:
        """Whether there are about as many as rows."""
        return counted.step == 1 and abs(len(counted) - self.count) <= EDGE

    def goes_through(self, *counts: int) -> None:
        """Take a note of it."""
        self.loops += counts

    def grows(self, count: int) -> bool:
        """Whether a loop of so many iterations has more of them for more rows; as long as nobody knows, a long one."""
        return count >= self.count - EDGE if self._growing is None else count in self._growing

    def moved(self, made: int, arrays: Sequence[int], distances: Sequence[Distance]) -> None:
        """Take a note of it."""
        self.moves.append((made, arrays, distances))

    def as_for_fewer(self, answer: bool) -> bool:
        """The answer that was given for the fewest rows, as programs of several sizes are to be alike."""
        if self._asked == len(self._quick):
            self._quick.append(answer)
        self._asked += 1
        return self._quick[self._asked - 1]

    def goes_into_loops(self, reached: ClosedOver) -> bool:
        """Whether outlines have shown what they do."""
        return self._goes_in


def _shape_of(known: Any) -> tuple[int, ...]:
    """The shape of an array of plain numbers, or of a long list of them or of rows of floats; () of anything else."""
    kind = type(known)
    if kind is np.ndarray and known.dtype.kind in "biuf" and known.dtype.itemsize <= np.float64().itemsize:
        return tuple(known.shape) if known.size else ()
    return shape_of_numbers(known) if kind is list and len(known) >= FEWEST_ITERATIONS - EDGE else ()


def _bounds_of(numbers: Any) -> promotion.Bounds:
    """Two integers between which all numbers are, if they are integers.

    Raises:
        UnlikeRowsError: if one of them is no float.
    """
    largest = max(int(numbers.max()), -int(numbers.min())) if numbers.dtype.kind in "iu" else 0
    if largest > promotion.EXACT[1]:
        raise UnlikeRowsError("an integer that is no float")
    return promotion.SHORT if largest <= promotion.SHORT[1] else promotion.EXACT


def _whole(special: Specialised) -> Specialised:
    """Programs that stay, and are not to be checked.

    Raises:
        UnlikeRowsError: if they are something else.
    """
    if special.is_outdated() or special._request.verify:
        raise UnlikeRowsError("programs that change, or that are to be checked")
    return special


def _bare(mapped: Any) -> Any:
    """What mg.vmap runs, without what has found the equal operations of one iteration."""
    return replace(mapped, trace=mapped.trace._replace(equals=None)) if isinstance(mapped, Mapped) else mapped


def _sizes(few: int) -> list[int]:
    return [few, few + _STEP, few + 2 * _STEP]


def _lengths(nested: Any) -> Iterator[int]:
    """How long the axes of the arrays, and of the long lists and ranges, among arguments are."""
    if type(nested) is range:
        yield len(nested) if nested.step == 1 else 0
    elif shape := _shape_of(nested):
        yield from shape
    elif isinstance(nested, (list, tuple, dict)) and len(nested) <= _MOST_PARTS:
        for part in nested.values() if isinstance(nested, dict) else nested:
            yield from _lengths(part)


def _cut(nested: Any, size: int, count: int) -> Any:
    """The arguments with so many of the first elements along each axis of an array, or a range, as long as the size.

    Raises:
        UnlikeRowsError: if there are arrays of something else than floats and integers, or other long lists.
    """
    kind, shape = type(nested), _shape_of(nested)
    if (kind is range and len(nested) == size and nested.step == 1) or (kind is list and shape[:1] == (size,)):
        return nested[:count]
    if kind in (list, tuple, dict) or is_named_tuple(kind):
        if len(nested) > _MOST_PARTS or size in shape:
            raise UnlikeRowsError("a long list")
        return remade(nested, [_cut(part, size, count) for part in (nested.values() if kind is dict else nested)])
    if not isinstance(nested, np.ndarray) or size not in nested.shape:
        return nested
    if kind is not np.ndarray or not (nested.dtype == np.float64 or nested.dtype.kind in "iu"):
        raise UnlikeRowsError("arrays of other numbers than floats and integers")
    part = nested[tuple([slice(count if length == size else None) for length in nested.shape])]
    return part.copy(order="K") if nested.flags.f_contiguous else part
