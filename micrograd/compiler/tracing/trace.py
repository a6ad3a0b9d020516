"""Trace: run a function once on symbols, and write down every operation that is done to them.

A Symbol stands for a number that is not known yet. It has the operators and the methods of a Value,
and each of them appends to the tape: the primitive, and the positions of its operands on the tape. For
``x * y + x`` the tape says

    0  input        x
    1  input        y
    2  mul   0 1
    3  add   2 0

Equal operations become one when the function is done (see equals.py); the symbols are different objects, as Values are.
A plain number is written down as a literal. The truth or the float of a symbol would freeze a number into the program;
a TraceError says what to write instead.
"""

from __future__ import annotations

import gc
import math
import operator
import sys
from array import array
from collections import Counter
from contextlib import contextmanager, nullcontext, suppress
from functools import cache, wraps
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

import numpy as np

from micrograd._support.checks import are_all, is_array, is_unknown, real_number, required_number
from micrograd.compiler.guards.refusals import (
    FOR_AN_INDEX,
    THE_INT,
    in_place_of_others,
    refuse,
    refuse_index,
    running_line,
)
from micrograd.compiler.guards.refusals import TraceError as TraceError  # those who catch it import it from here
from micrograd.compiler.guards.sources import observing, observing_again, resting, resuming
from micrograd.compiler.guards.structure import ARRAY, Structure, array_of, is_unchanged, kinds_of
from micrograd.compiler.ir.entries import (
    EQUAL,
    INPUT,
    LESS,
    LESS_EQUAL,
    LITERAL,
    SUM_OF_PRODUCTS,
    TAKE,
    Called,
    Decided,
    Entries,
    EqualsInOrder,
    Mapped,
    Trace,
)
from micrograd.compiler.ir.equals import first_equals
from micrograd.compiler.tracing import alike_rows, promotion
from micrograd.compiler.tracing.colours import coloured, star_coloured
from micrograd.compiler.tracing.dependence import Dependence
from micrograd.compiler.tracing.largest import Reading, is_handed_on
from micrograd.compiler.tracing.questions import Questions
from micrograd.engine import composites, further_primitives, primitives, special_functions
from micrograd.engine.copying import user_attributes
from micrograd.engine.differentiation import refuse_constant
from micrograd.engine.node import Node
from micrograd.engine.operations import Operations
from micrograd.engine.primitive import Primitive, named
from micrograd.engine.recorder import Recorder, float_read, passed_over, recording_in_use, using
from micrograd.engine.tracer import Tracer, tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Generator, Iterator, Mapping, Sequence
    from types import ModuleType

    from micrograd.compiler.tracing.source import Source
    from micrograd.engine.array_calls import ArrayFunction

AnyMethod = TypeVar("AnyMethod", bound="Callable[..., Any]")

_FEWEST_STEPS = 2000  # that gradients are written many at a time for
_FLOATS_AND_VALUES = {float, np.float64, Value}
_NONE_KNOWN: tuple[tuple[Any, ...], int] = (), -1

# The primitive of each of Python's comparisons, and whether the operands change positions.
_COMPARISONS: dict[Any, tuple[Primitive, bool]] = {
    operator.lt: (LESS, False),
    operator.gt: (LESS, True),
    operator.le: (LESS_EQUAL, False),
    operator.ge: (LESS_EQUAL, True),
    operator.eq: (EQUAL, False),  # of plain numbers; Values are equal to themselves only
}


_AS_BEFORE = nullcontext()


class AbandonedError(BaseException):
    """Another trace follows, before which all that the function has changed is put back.

    A function that catches any Exception shall not catch this.

    Attributes:
        has_changed: whether it has changed something.
    """

    has_changed = False


class FollowedError(Exception):
    """The program cannot decide: the function is to be traced again, without ``takes_decisions``."""


def _unobserved(method: AnyMethod) -> AnyMethod:
    """A method of a tape inside of which only rules of derivatives may be code of the user."""

    @wraps(method)
    def unobserved(self: Tape, *arguments: Any) -> Any:
        with resting(self.observer):
            return method(self, *arguments)

    return unobserved  # type: ignore[return-value]  # it has the same arguments


class Tape(Tracer):
    """The operations of one trace, in order; an operation's position is its number.

    Attributes:
        operations: what is written.
        known: the positions of operations whose operands have all been operands before.
        values: the position of each Value that was read from outside.
        placed: the positions of these, and of plain numbers, where operators find them quickly; 0 has its sign there.
        roles: for each operand of a primitive, the Values that are first used as that: weights, say, or biases.
        tables: the number of each table, by the positions of its elements.
        rows: the number of each row of factors, by their positions.
        checked: the positions of products that stand for powers, which raise where they overflow.
        attributes: for the positions of arguments, the names of the attributes that the user has set on them.
        bounds: for the positions of plain integers, between which two each of them is known to be.
        remarks: what explain() says of how derivatives are computed.
        as_floats: whether no gradient flows through derivatives that are plain numbers, as eagerly they are floats.
        tells_apart: whether it was asked which argument is which: of two that are one Value, the answer is wrong.
        is_recorded: whether calls are recorded; under no_grad, no Value from outside requires a gradient.
        depends_on_recording: whether it was asked for a gradient that flows to such a Value.
        takes_numbers: whether gradients of what depends on such Values were taken as plain numbers.
        questions: what is asked of numbers, where this may be; see questions.py.
        decides_at_once: whether comparisons are asked for their truth where they are made, as no symbol is True.
        takes_maps: whether a function may be written once for many iterations.
        takes_calls: whether a function of whole arrays may be called when the program runs.
        maps: those that are.
        repeated: the positions of what was written for one item, which a map computes with all others.
        takes_decisions: whether the program may decide on numbers.
        decisions: what it decides.
        parts: for each decision the functions that it consists of; see decisions.py.
        follows: whether it turned out that it cannot, so the trace has to follow all decisions.
        observer: what looks for sources, which may rest while no code of the user runs; see sources.py.
        reading: the generator that reads the numbers of Values; see largest.py.
        looks_into_maps: whether somebody asked what such a function does, which has to be written out for that.
        writes_out: whether all iterations are written out.
        in_lanes: whether gradients are written many at a time however few there are.
        known_rows: the positions of what stands for known numbers, which are the last arguments; see of_rows.py.
    """

    questions: Questions | None = None
    decides_at_once = False
    reading: Reading | None = None
    takes_maps = takes_calls = looks_into_maps = takes_decisions = follows = writes_out = in_lanes = False
    arrays: ClassVar[ModuleType]  # symbol_arrays.py, which stands above this module and sets it, as the next
    gradients_in_lanes: ClassVar[type[Any]]
    gradient_of: ClassVar[Callable[..., ArrayFunction]]
    derivatives_of: ClassVar[Callable[..., list[list[Any]]]]
    adjoint_of_scan: ClassVar[Callable[..., None]]
    tangents_of_scan: ClassVar[Callable[..., None]]

    def __init__(self, as_floats: bool = True, is_recorded: bool = True) -> None:
        self.as_floats, self.is_recorded = as_floats, is_recorded
        self.observer = observing()
        self.tells_apart = self.depends_on_recording = self.takes_numbers = False
        self._arguments = 0  # the positions before this one are those of the arguments
        self.operations = Entries()
        self.known: dict[tuple[Any, ...], int] = {}
        self._equals = EqualsInOrder()
        self.values: dict[Value, int] = {}
        self.roles: dict[tuple[Primitive | None, int], list[Value]] = {}
        self.placed: dict[Value | float | tuple[float, float], int] = {}
        self.tables: dict[tuple[int, ...], int] = {}
        self.rows: dict[tuple[int, ...], int] = {}
        # Rows that were written: by their first factor if it is a Value, else the last one on that side.
        self._rows_known: dict[Value | int, tuple[tuple[Any, ...], int]] = {}
        self._start: tuple[Any, int] = _NONE_KNOWN  # what the last sum of products began with, and its position
        self._copies: dict[int, Any] = {}  # which transform differentiates by it
        self._trained: set[int] = set()  # the positions of arguments that require a gradient
        self._reached: dict[Any, _Reached] = {}  # the positions that a gradient flows from to the inputs of a transform
        self.checked: dict[int, None] = {}
        self.attributes: dict[int, Collection[str]] = {}
        self.bounds: dict[int, promotion.Bounds] = {}
        self.maps: list[Mapped | Called] = []
        self.repeated: list[range] = []
        self._literals: dict[tuple[int, int], int] = {}  # of an operation and an operand, for rows that are alike
        self.decisions: list[Decided] = []
        self.parts: list[Any] = []  # of each decision, what has written it
        self.known_rows: list[int] = []
        self.remarks: list[str] = []
        self._gone_through = 0  # how many operations there were when all of them were compared at once

    def argument(self, number: int, leaf: Any, kind: Any, bounds: promotion.Bounds) -> Symbol:
        """A new number in the place of a Value or a plain number among the arguments.

        Args:
            number: the how-manieth it is.
            leaf: what it stands for.
            kind: of a plain number, its class or its dtype.
            bounds: between which two integers an integer is.
        """
        if isinstance(leaf, Value) and leaf.requires_grad:
            self._trained.add(len(self.operations))
        if isinstance(leaf, Value) and (attributes := user_attributes(leaf)):
            self.attributes[len(self.operations)] = attributes.keys()
            return self._symbol(self.operations.append_input(number), _Attributed)
        symbol = self.input(number, Value if isinstance(leaf, Value) else kind)
        if isinstance(symbol, IntSymbol):
            low, high = promotion.limits(symbol.kind)
            self.bounds[symbol._position] = max(low, bounds[0]), min(high, bounds[1])
        return symbol

    def standing_for(self, number: int, rows: Any, bounds: promotion.Bounds) -> Any:
        """What stands for an array or a list of known numbers: the same with symbols.

        Args:
            number: which of them it is.
            rows: the array or the list.
            bounds: between which two integers all are, if they are integers.
        """
        given = Structure(rows.astype(np.uint8) if is_array(rows) and rows.dtype == bool else rows)
        symbols = _symbols_of(self, given, bounds)
        if is_array(rows) and rows.dtype == bool:
            symbols = [symbol.as_plain(bool) for symbol in symbols]
        self.known_rows += [symbol._position for symbol in symbols]
        return given.rebuilt(symbols, _array)

    def all_given(self) -> None:
        """Take note that there are no more arguments."""
        self._arguments = len(self.operations)

    def tell_apart(self, symbol: Symbol) -> None:
        """Take note that somebody asks which symbol this is."""
        self.tells_apart = self.tells_apart or symbol._position < self._arguments

    def input(self, name: object, kind: Any = Value) -> Symbol:
        """A new number that is given from outside, in the place of a Value or of a plain number of a kind."""
        return self._symbol(self.operations.append_input(name), class_of(kind))

    def inputs(self, names: Sequence[object], kind: Any) -> list[Symbol]:
        """New numbers of one kind that are given from outside."""
        return self.symbols(self.operations.append_inputs(names), class_of(kind))

    def symbols(self, positions: Sequence[int], kind: type[Symbol]) -> list[Symbol]:
        """New symbols for what stands at some positions."""
        made = list(map(_new, repeat(kind, len(positions))))
        for symbol, position in zip(made, positions, strict=True):
            symbol._position, symbol._tape, symbol._is_used = position, self, True
        return made

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down. The operators and primitives call this while the tape records."""
        if not self.is_open:
            return passed_over(primitive, operands)
        positions: tuple[int, ...]
        if len(operands) == 2:  # nearly all operations have two
            x, y = operands
            of_x, of_y, known = type(x), type(y), self.placed.get
            first = (
                x._position
                if of_x is Symbol and x._tape is self
                else (known(x) if of_x is float or of_x is Value else None) or self.position(x, primitive)
            )
            second = (
                y._position
                if of_y is Symbol and y._tape is self
                else (known(y) if of_y is float or of_y is Value else None) or self.position(y, primitive, 1)
            )
            positions = first, second
            if of_x is Symbol or of_y is Symbol or of_x is Value or of_y is Value:
                kind = Symbol
            else:
                kind = kind_of_result(primitive, operands)
        else:
            positions = tuple([self.position(operand, primitive, index) for index, operand in enumerate(operands)])
            kind = kind_of_result(primitive, operands)
        if type(primitive) is not Primitive:
            refuse("a derivative that is a closure", "Make it a primitive, with a rule: see mg.primitive.")
        if primitive in REWRITES and (instead := REWRITES[primitive](self, *operands)) is not None:
            return self._symbol(self.position(instead, primitive), kind)
        fresh = [operand for operand in operands if isinstance(operand, Symbol) and not operand._is_used]
        for operand in fresh:
            operand._is_used = True
        symbol = self._written((primitive, *positions), not fresh, kind)
        if issubclass(kind, IntSymbol) and primitive is not TAKE:
            self._keep_exact(primitive, operands, symbol)
        if not symbol._is_used and primitive.composite is not None and not is_of_library(primitive):
            self._write_formula(primitive, operands)
        return symbol

    def _keep_exact(self, primitive: Primitive, operands: Sequence[Any], symbol: Any) -> None:
        """Let the program check that an integer is in range, unless it is known to be."""
        bounds = [self._bounds_of(operand, symbol.kind) for operand in operands]
        self.require(symbol, promotion.limits(symbol.kind), promotion.bounds_of_result(primitive, bounds))

    def _bounds_of(self, operand: Any, kind: Any) -> promotion.Bounds:
        """Between which integers an operand is, whose result is of a kind; an int is of that kind itself."""
        if not isinstance(operand, _Plain):
            promotion.check_constant(operand, kind if promotion.kind_of_number(operand) in (int, bool) else int)
            return int(operand), int(operand)
        if isinstance(operand, BoolSymbol):
            return 0, 1
        allowed = promotion.limits(kind if operand.kind is int else operand.kind)
        return self.require(operand, allowed, self.bounds.get(operand._position))

    def require(
        self, integer: Any, allowed: promotion.Bounds, known: promotion.Bounds | None = None
    ) -> promotion.Bounds:
        """Let the function run eagerly where an integer is out of bounds.

        Args:
            integer: a symbol.
            allowed: the bounds.
            known: those that it is known to be in, if any.

        Returns:
            Those that it is in.
        """
        (low, high), position = allowed, integer._position
        if known is None or known[0] < low or known[1] > high:
            known = low, high
            distance = primitives.abs(self._symbol(position, FloatSymbol) - (low + high) / 2)
            self.apply(primitives.sqrt, (high - low) / 2 - distance)  # it is NaN, which is noticed
        self.bounds[position] = known
        return known

    def _written(self, operation: tuple[Any, ...], is_repeatable: bool, kind: type[Symbol]) -> Symbol:
        """A symbol for an operation: for the one that stands there already, where it may be repeated."""
        position = self.known.get(operation) if is_repeatable else None
        if position is not None:
            return self._symbol(position, kind)
        position = self.operations.append(*operation)
        if is_repeatable:
            self.known[operation] = position
        symbol = self._symbol(position, kind)
        symbol._is_used = False
        return symbol

    def _write_formula(self, primitive: Primitive, operands: Sequence[Any]) -> None:
        """Write a formula out, for the checks of what raises inside of it. What is computed has no other use."""
        assert primitive.composite is not None
        questions, self.questions = self.questions, None
        with suppress(TraceError):  # then it runs in Python, which says where it raises
            primitive.composite(Operations(lambda operation: operation), *operands)
        self.questions = questions

    def size_from(self, position: int) -> int:
        """How many operations are written from a position on, where a sum of products is as many as it has."""
        written, rows = self.operations, list(self.rows)
        return sum(
            len(rows[written.second[further]]) if written.primitives[further] is SUM_OF_PRODUCTS else 1
            for further in range(position, len(written))
        )

    def write_iterations(self) -> None:
        """Write out what is run many times, as many derivatives of it are asked for."""
        self.writes_out = True

    def under_no_grad(self) -> Recorder:
        """What writes on this tape under no_grad."""
        return QuietTape(self)

    def position(self, operand: Any, primitive: Primitive | None = None, index: int = 0) -> int:
        """The position of an operand: a symbol, a Value from outside, or a plain number.

        Args:
            operand: which is written down where it is not yet.
            primitive: the primitive that it is an operand of.
            index: which operand of that primitive it is.
        """
        kind = type(operand)
        if kind is float or kind is np.float64:
            operand = float(operand)
            name = operand or (operand, math.copysign(1.0, operand))  # 0 is equal to -0, and is another number
            if (position := self.placed.get(name)) is None:
                position = self.placed[name] = self.operations.append_literal(operand)
            return position
        if isinstance(operand, Symbol):
            if operand._tape is not self:
                raise TraceError(f"a number of another trace is used here ({running_line()}): return it, or give it in")
            return operand._position
        if isinstance(operand, Value):
            if operand not in self.values:
                self.values[operand] = self.placed[operand] = self.operations.append_input(operand)
                self.roles.setdefault((primitive, index), []).append(operand)
            return self.values[operand]
        return self.position(required_number(operand, "an operand"))

    def positions_of_literals(self, numbers: Sequence[float]) -> list[int]:
        """The positions of plain numbers, no two of which are the same; new ones are written down."""
        names = [number or (number, math.copysign(1.0, number)) for number in numbers]
        fresh = [(name, number) for name, number in zip(names, numbers, strict=True) if name not in self.placed]
        positions = self.operations.append_literals([number for _, number in fresh])
        self.placed.update(zip([name for name, _ in fresh], positions, strict=True))
        return list(map(self.placed.__getitem__, names))

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """Write start + xs[0] * ys[0] + xs[1] * ys[1] ... as one operation; give None if all are plain numbers."""
        kinds = {type(start), *map(type, xs), *map(type, ys)}
        if Symbol in kinds or (Value in kinds and kinds <= _FLOATS_AND_VALUES):
            kind = Symbol
        else:
            kinds = set(map(promotion.kind_of_number, (start, *xs, *ys)))
            if not any(isinstance(operand, Value) for operand in (start, *xs, *ys)) or not kinds <= _FLOATS:
                return None  # what is made of integers may have to be checked step by step
            kind = Symbol if Value in kinds else FloatSymbol
        if start is not self._start[0]:  # nearly always it is the same 0.0
            self._start = start, self.position(start, SUM_OF_PRODUCTS)
        before = len(self.rows)
        operands = self._start[1], self._row(xs, 1), self._row(ys, 2)
        return self._written((SUM_OF_PRODUCTS, *operands), len(self.rows) == before, kind)

    def _row(self, factors: Sequence[Any], side: int) -> int:
        """The number of a row: a neuron has the same weights for each sample, and a layer's neurons the same inputs."""
        first = factors[0] if len(factors) else None
        name = first if type(first) is Value else side
        found, number = self._rows_known.get(name, _NONE_KNOWN)
        if len(found) == len(factors) and all(map(operator.is_, found, factors)):
            return number
        known, positions = self.placed.get, []
        for operand in factors:  # large programs are rows of symbols mostly
            kind = type(operand)
            if kind is Symbol and operand._tape is self:
                positions.append(operand._position)
            else:
                position = known(operand) if kind is Value or kind is float else None
                positions.append(position or self.position(operand, SUM_OF_PRODUCTS, side))
        number = self.rows.setdefault(tuple(positions), len(self.rows))
        self._rows_known[name] = tuple(factors), number
        return number

    def compared(self, compare: Callable[..., bool], x: Any, y: Any) -> Any:
        """Write a comparison down. Those of Values and of symbols call this while the tape records."""
        is_of_both = is_plain(x) and (is_plain(y) or isinstance(y, np.generic))
        if is_of_both and promotion.is_rounded(promotion.kind_of_both(x, y)):
            promotion.like_numbers(x, y)
        if not isinstance(y, Value) and (y := _bound(compare, x, y)) is None:
            return NotImplemented  # Python then asks the other operand, which may be an array
        primitive, swapped = _COMPARISONS[compare]
        found = self._symbol(self.apply(primitive, *((y, x) if swapped else (x, y)))._position, BoolSymbol)
        return bool(found) if self.decides_at_once else found

    def symbol(self, value: Any) -> Symbol:
        """What stands for a Value from outside."""
        return self._symbol(self.position(value), Symbol)

    def array(self, array: Any) -> Any:
        """The array as one whose comparisons are written down."""
        return Tape.arrays.arranged(array)

    @property
    def outermost(self) -> Tape:
        """The tape of the whole function."""
        return self

    @property
    def may_follow(self) -> bool:
        """Whether decisions on numbers may also be followed, by questions."""
        return self.outermost.questions is not None

    def decides(self) -> bool:
        """Whether the program decides on numbers: not where it asks questions, or where it has parts of other kinds."""
        return (
            self.takes_decisions and not self.maps and not (self.questions is not None and self.questions.has_asked())
        )

    @contextmanager
    def following_errors(self) -> Generator[None, None, None]:
        """Let the function be traced again if an error is raised inside, and follow its decisions, if that may be."""
        try:
            yield
        except Exception:
            self.outermost.follows = self.may_follow
            raise

    def follow(self) -> None:
        """End a trace in which the program decides, if decisions may also be followed."""
        if self.may_follow:
            self.outermost.follows = True
            raise TraceError("what depends on a decision is asked for")  # and it is traced again

    def asked(self) -> Questions | None:
        """What takes questions; None where a number would be frozen."""
        if self.is_open:
            if self.decisions:
                self.follow()
            self._look_into_maps()  # their results are no numbers before the program runs
        return self.questions if self.is_open else None

    def of_elements(self, ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Write down what a function of NumPy that works element by element does."""
        return Tape.arrays.of_elements(ufunc, method, inputs, settings)

    def of_arrays(self, function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Write down what another function of NumPy does."""
        return Tape.arrays.of_arrays(function, arguments, settings)

    def refused(self, what: str, instead: str) -> NoReturn:
        """Say that this use of numbers cannot be written down."""
        refuse(what, instead)

    def number_read(self) -> NoReturn:
        """Say that the number of a Value would be frozen."""
        refuse("reading the number of a Value", "Write mg.where, mg.maximum, mg.exp or mg.detach.")

    def gradient_read(self) -> NoReturn:
        """Say that the gradient of a Value would be frozen."""
        refuse("reading the gradient of a Value", "Read it outside of the function, and pass it as an argument.")

    def closure_given(self) -> NoReturn:
        """Say that a closure works on numbers, which are not known yet."""
        refuse("a derivative that is a closure", "Make it a primitive: see mg.primitive.")

    def take(self, elements: Sequence[Any], index: Any) -> Any:
        """The element at a position that is not known yet."""
        if not isinstance(index, Symbol):
            return super().take(elements, index)
        table = tuple(map(self.position, elements))
        before = len(self.tables)
        number = self.tables.setdefault(table, before)
        return self._written(
            (TAKE, self.position(index), number), number < before, kind_of_result(TAKE, (index, *elements))
        )

    def copies(self, scalars: Sequence[Any], source: Any) -> list[Any] | None:
        """The numbers times one, which are products that no other operation is equal to."""
        positions = np.array(self.positions(scalars), dtype=np.int64)
        ones = self.operations.append_literals([1.0] * len(positions))  # each of which is used nowhere else
        begin = self.operations.append_block([primitives.mul], 1, len(positions), [[positions, np.array(ones)]])
        made = range(begin, begin + len(positions))
        self._copies.update(dict.fromkeys(made, source))
        return self.symbols(made, Symbol)

    @_unobserved
    def reaches(self, results: Sequence[Any], sources: Sequence[Any]) -> bool:
        """Whether a gradient flows to results from a source: a transform, or None for Values that require one."""
        are_own = self._are_own(results)
        for source in sources:
            if are_own and not self._has_source(source):
                continue
            if any(self.is_reached(result, source) for result in results):
                self.depends_on_recording = self.depends_on_recording or source is None
                return True
        return False

    def numbers_taken(self, output: Any) -> None:
        """Take note that gradients of a Value are taken as plain numbers, which would lose those of a transform."""
        self.takes_numbers = self.takes_numbers or self.is_reached(output, None)

    def is_reached(self, result: Value, source: Any) -> bool:
        """Whether a gradient flows to a symbol, or to a Value from outside, from a source."""
        if isinstance(result, Symbol):
            return self.position_is_reached(self.position(result), source)
        return source is None and self.is_recorded and result.requires_grad

    def position_is_reached(self, position: int, source: Any) -> bool:
        """Whether a gradient flows from a position to a source."""
        reached = self._reached.setdefault(source, _Reached())
        if reached.size < self._arguments:  # there may be a million; few of them are trained
            given = (each for each in (*self._trained, *self.values.values()) if each < self._arguments)
            reached.update(each for each in given if self._is_source(each, source))
            reached.size = self._arguments
        if reached.size <= position:
            if not reached and not self._has_source(source):
                reached.size = position + 1
                return False
            written = self._so_far()
            for further in range(reached.size, position + 1):
                if self._is_source(further, source) or not reached.isdisjoint(written.receivers(further)):
                    reached.add(further)
            reached.size = position + 1
        return position in reached

    def _has_source(self, source: Any) -> bool:
        """Whether an input of a transform is on the tape; for None, whether a Value is that requires a gradient."""
        if source is not None:
            return any(each is source for each in self._copies.values())
        return bool(self._trained) or any(value.requires_grad for value in self.values)

    def _is_source(self, position: int, source: Any) -> bool:
        """Whether an input of a transform is at a position; for None, whether a Value is that requires a gradient."""
        if source is not None:
            return self._copies.get(position) is source
        if self.operations.primitives[position] is not INPUT:
            return False
        return self.is_recorded and self._is_trained(position)

    def _is_trained(self, position: int) -> bool:
        """Whether the input at a position stands for a Value that requires a gradient."""
        name = self.operations[position][1]
        return name.requires_grad if isinstance(name, Value) else position in self._trained

    def number_of(self, value: Any) -> Any:
        """The plain number in the place of a Value, which is a derivative or was differentiated."""
        position = self.position(value)
        return self._symbol(
            self.operations.append(primitives.detach, position) if self.as_floats else position, FloatSymbol
        )

    @_unobserved
    def adjoints(self, root: Any, wanted: Collection[Any] | None, create_graph: bool) -> Any:
        """The gradients of a symbol, written on the tape: the rules are run on symbols, from the end of it."""
        if not isinstance(root, Symbol) or wanted is None:
            return None
        positions = self._positions_of(wanted, create_graph)
        dependence = self._dependence([root], set(positions.values()))
        return self._gradients_of_one(root, dependence, _by_position(positions), create_graph)

    def _gradients_of_one(
        self, root: Symbol, dependence: Dependence, values: Mapping[int, list[Any]], create_graph: bool
    ) -> dict[Any, Any]:
        """The gradients of a symbol by the Values at some positions, written many at a time where that is quicker."""
        fewest = 0 if self.in_lanes else _FEWEST_STEPS
        if dependence.steps < fewest or self._has_iterations() or self.decisions:
            return self._gradients(root._position, dependence, values, create_graph)
        lanes = self.gradients_in_lanes(self, dependence, root._position)
        if not lanes.are_wide:
            return self._gradients(root._position, dependence, values, create_graph)
        found = lanes.write(values)
        if not create_graph:
            at = np.array([slope._position for slope in found.values()], dtype=np.int64)
            if self.as_floats:
                begin = self.operations.append_block([primitives.detach], 1, len(at), [[at]])
                at = np.arange(begin, begin + len(at))
            found = dict(zip(found, self.symbols(at.tolist(), FloatSymbol), strict=True))
        return {value: slope for position, slope in found.items() for value in values[position]}

    @_unobserved
    def jacobian(self, outputs: Sequence[Any], inputs: Sequence[Any], create_graph: bool) -> list[Mapping[Any, Any]]:
        """For each output its gradients by the inputs; by tangents, where these are fewer and that is less to do."""
        roots = [output for output in outputs if isinstance(output, Symbol)]
        if len(roots) > 1:
            self._look_into_maps()
        positions = self._positions_of(inputs, create_graph)
        dependence = self._dependence(roots, set(positions.values()))
        of_rows, values, alike = self._roots(outputs), _by_position(positions), list[alike_rows.Alike]()
        if len(roots) > 1 and not self.decisions:
            alike += alike_rows.alike(of_rows, dependence, values)
        if len(inputs) < len(outputs) and dependence.is_large(of_rows, alike, len(inputs)):
            columns = self.tangents(outputs, [{value: 1.0} for value in inputs], create_graph)
            return [dict(zip(inputs, row, strict=True)) for row in zip(*columns, strict=True)]
        if len(outputs) == len(roots) == 1:
            return [self._gradients_of_one(roots[0], dependence, values, create_graph)]
        found = list[Any]({} for _ in outputs)
        for row, position, slope in zip(
            *self._row_by_row(of_rows, alike, dependence, values, create_graph), strict=True
        ):
            found[row].update(dict.fromkeys(values[position], slope))
        return found

    @_unobserved
    def sparse_entries(
        self, outputs: Sequence[Any], inputs: Sequence[Any], symmetric: bool
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The gradients of outputs by the inputs that each depends on: their rows, their columns, and they.

        They are computed row by row, or by directions of several columns where that is less to do.
        """
        self._look_into_maps()
        roots, positions = self._roots(outputs), self.positions(inputs)  # all inputs are copies, so each has its own
        written = self._so_far()
        dependence = Dependence(list(roots.values()), set(positions), written, self._equal(written))
        alike = [] if self.decisions else list(alike_rows.alike(roots, dependence, positions))
        rows, least = dependence.rows(len(outputs), roots, alike, set(positions))
        colours, is_star = coloured(rows, least), False
        if symmetric and dependence.is_symmetric(rows, positions, alike_rows.OF_LIBRARY):
            most = least if colours is None else max(colours.values(), default=0)
            if (fewer := star_coloured(dict(zip(positions, rows, strict=True)), most)) is not None:
                colours, is_star = fewer, True
        if colours is None:
            found = self._row_by_row(roots, alike, dependence, positions, create_graph=False)
            how = "each by its own expression, as directions would be no less work"
        else:
            found = self._by_colours(outputs, inputs, rows, colours, positions)
            kind = "of a star colouring of the columns" if is_star else "of columns"
            how = f"by {len(set(colours.values())):,} directions, one for each colour {kind}"
        self.remarks.append(f"Derivatives: {len(found[2]):,} entries of {len(outputs):,} rows, {how}")
        numbers: Any = np.zeros(1 + max(positions, default=0), dtype=np.int64)
        numbers[positions] = np.arange(len(positions))
        return found[0], numbers[np.array(found[1], dtype=np.int64)], found[2]

    def _roots(self, outputs: Sequence[Any]) -> dict[int, int]:
        """The positions of the outputs that are symbols, by their numbers."""
        if are_all(Symbol, outputs):
            return dict(enumerate(self.positions(outputs)))
        return {row: self.position(output) for row, output in enumerate(outputs) if isinstance(output, Symbol)}

    def _row_by_row(
        self,
        roots: Mapping[int, int],
        alike: Sequence[alike_rows.Alike],
        dependence: Dependence,
        sources: Collection[int],
        create_graph: bool,
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The entries of a Jacobian, row by row from the gradients of its outputs: rows, positions, and entries.

        Args:
            roots: the positions of the outputs, by their rows.
            alike: rows that are alike.
            dependence: what gradients flow through.
            sources: the positions to differentiate by.
            create_graph: whether the entries are graphs.
        """
        rows, by, entries = array("q"), array("q"), list[Any]()
        values, left = {position: [position] for position in sources}, dict(roots)

        def add(row: int, slopes: Mapping[int, Any]) -> None:
            rows.extend([row] * len(slopes))
            by.extend(slopes)
            entries.extend(slopes.values())

        for each in alike:
            slopes, copied = self._of_alike(each, dependence, values, create_graph)
            for row, of_row in zip(each.rows.tolist(), slopes, strict=False):
                add(row, of_row)
                del left[row]
            for of_copied, of_sources, written in copied:
                rows.frombytes(np.repeat(of_copied, of_sources.shape[1]).tobytes())
                by.frombytes(of_sources.tobytes())
                entries += self.symbols(written.ravel().tolist(), Symbol if create_graph else FloatSymbol)
                for row in of_copied.tolist():
                    del left[row]
        for row, root in left.items():
            add(row, self._gradients(root, dependence, values, create_graph))
        return rows, by, entries

    def _by_colours(
        self,
        outputs: Sequence[Any],
        inputs: Sequence[Any],
        rows: Sequence[Sequence[int]],
        colours: Mapping[int, int],
        positions: Sequence[int],
    ) -> tuple[Sequence[int], Sequence[int], Sequence[Any]]:
        """The same from one direction for each colour; some of a Hessian from the column instead of the row."""
        directions: list[dict[Any, float]] = [{} for _ in set(colours.values())]
        for value, position in zip(inputs, positions, strict=True):
            if position in colours:
                directions[colours[position]][value] = 1.0
        tangents = self.tangents(outputs, directions, False)
        numbers, found = {position: number for number, position in enumerate(positions)}, []
        for number, row in enumerate(rows):
            of_colour = Counter(colours[position] for position in row)
            for position in row:
                mirrored = of_colour[colours[position]] > 1
                colour = colours[positions[number] if mirrored else position]
                slope = tangents[colour][numbers[position] if mirrored else number]
                if isinstance(slope, Symbol):
                    found.append((number, position, slope))
        return [row for row, _, _ in found], [position for _, position, _ in found], [slope for _, _, slope in found]

    def _of_alike(
        self,
        alike: alike_rows.Alike,
        dependence: Dependence,
        values: Mapping[int, list[Any]],
        create_graph: bool,
    ) -> tuple[list[dict[Any, Any]], Iterator[tuple[Any, Any, Any]]]:
        """The gradients of rows that are alike: two by the rules, and the others as the second, if that can be.

        Returns:
            Those of the first two. Then, for some of the others at a time, their numbers, and in arrays with a row for
            each the positions to differentiate by and those of the gradients; nothing if the others have to be asked
            for.
        """
        first = self._gradients(int(alike.positions[0, 0]), dependence, values, create_graph)
        begin, checked, known = len(self.operations), len(self.checked), self.known
        self.known, positions = {}, alike.positions[1].tolist()  # all that the row needs is written again
        for column, (operation, index) in alike.literals.items():  # no rule has one of these
            literal = self.operations.append_literal(self.operations.numbers[self.operations.first[positions[column]]])
            self._literals[positions[operation], index] = positions[column] = literal
        begin = len(self.operations)
        try:
            second = self._gradients(positions[0], dependence, values, create_graph)
        finally:
            self.known, self._literals = known, {}
        gradients = {
            position: self.position(second[position]) for position in dict.fromkeys(positions) if position in second
        }
        copied = alike_rows.Copied(self.operations, begin, positions, list(self.checked)[checked:], gradients)
        if not copied.is_whole:
            return [first, second], iter(())
        done = [first] if alike.literals else [first, second]
        left = alike.rows[len(done) :], alike.positions[len(done) :]
        return done, copied.write(self.operations, *left, self.checked)

    def _positions_of(self, wanted: Collection[Any], create_graph: bool) -> dict[Any, int]:
        """The positions of what to differentiate by; a Value that the function has not read has none."""
        if any(map(is_plain, wanted)):
            _refuse_gradient()
        if not all(isinstance(value, Symbol) for value in wanted):
            self.tells_apart = True  # an argument may be one of these Values
        found = {
            value: self.position(value) if isinstance(value, Symbol) else self.values.get(value) for value in wanted
        }
        positions = {value: position for value, position in found.items() if position is not None}
        applied = self.operations.primitives
        if create_graph and any(
            applied[position] is INPUT and not self._is_trained(position) for position in positions.values()
        ):
            refuse_constant("an argument of the compiled function")
        if any(
            position in made for position in positions.values() for made in (*self.maps, *self.decisions)
        ) or not all(position in self._copies or applied[position] is INPUT for position in positions.values()):
            _refuse_gradient()
        return positions

    def _look_into_maps(self) -> None:
        """End a trace in which a function is written once for many iterations: it has to be written out."""
        if self._has_iterations():
            self.looks_into_maps = True
            raise TraceError("derivatives look into what mg.vmap runs")  # and it is traced again

    def _has_iterations(self) -> bool:
        """Whether a function is written once for many iterations."""
        return any(isinstance(each, Mapped) for each in self.maps)

    def _dependence(self, roots: Sequence[Symbol], sources: Collection[int]) -> Dependence:
        written = self._so_far()
        return Dependence(self.positions(roots), sources, written, self._equal(written))

    def _equal(self, written: Trace) -> Sequence[int]:
        """For each position, the first one that is equal to it.

        Where most operations were written many at a time, and many are new since the last time, it is quicker to go
        through all of them at once. Who asks for many derivatives would wait for the square of their number then.
        """
        if 2 * len(self.operations) < 3 * self._gone_through or not self.operations.are_mostly_in_lanes:
            return self._equals.of(written)
        self._gone_through = len(self.operations)
        return first_equals(written)[: self._gone_through].tolist()

    def _gradients(
        self, root: int, dependence: Dependence, values: Mapping[int, list[Any]], create_graph: bool
    ) -> dict[Any, Any]:
        """The gradients of what is at a position by the Values at some positions, as far as it depends on them."""
        equal, written = dependence.equal, dependence.written
        last = equal[root]
        found: dict[int, Any] = {last: self._symbol(self.position(1.0), Symbol)}
        passed: list[Mapped | Called | Decided] = []
        for position in reversed(dependence.order(last)):
            if dependence.passes_on(position) and position in found:
                if self.maps and (mapped := next((made for made in self.maps if position in made), None)) is not None:
                    if isinstance(mapped, Called):
                        self._through_call(mapped, position, dependence, found)
                    elif not any(mapped is made for made in passed):  # its last result, before which all are complete
                        passed.append(mapped)
                        self._through_map(mapped, dependence, found)
                    continue
                if self.decisions and (decided := self._decided_at(position)) is not None:
                    if not any(decided is made for made in passed):
                        passed.append(decided)
                        self._through_decision(decided, dependence, found)
                    continue
                for operand, contribution in self._contributions(position, written, found[position], dependence):
                    first = equal[operand]
                    found[first] = found[first] + contribution if first in found else contribution
        made = {value: found[position] for position in found for value in values.get(position, ())}
        if not create_graph:
            made = {
                value: self.number_of(contribution) if isinstance(contribution, Symbol) else contribution
                for value, contribution in made.items()
            }
        return made

    def add_map(self, trace: Trace, fixed: Sequence[int], moving: Any, sums: int = 0) -> Mapped:
        """Write down what computes this trace in many iterations.

        Args:
            trace: of one iteration.
            fixed: the positions of the inputs that do not differ.
            moving: those of the inputs that do, with a row for each iteration.
            sums: of so many outputs, the last ones, only the sums are asked for.
        """
        moving, width = np.array(moving, dtype=np.int64), len(trace.outputs) - sums
        size = len(moving) * width
        positions = np.array(self.operations.append_inputs(["mapped"] * (size + sums)))
        results = positions[:size].reshape(len(moving), width)
        made = Mapped(trace, np.array(fixed, dtype=np.int64), moving, results, positions[size:])
        self.maps.append(made)
        return made

    def write_out(self, trace: Trace, fixed: Sequence[int], moving: Any) -> Any:
        """Write down what all iterations of a trace do, each operation for all of them at once.

        Args:
            trace: of one iteration.
            fixed: the positions of the inputs that do not differ.
            moving: those of the inputs that do, with a row for each iteration.

        Returns:
            The positions of the outputs, with a row for each iteration.
        """
        given, count = trace.operations, len(moving)
        at: dict[int, Any] = dict(zip(trace.inputs[0], fixed, strict=True))  # an array where they differ
        at.update(zip(trace.inputs[1], moving.T, strict=True))

        def numbered(known: dict[tuple[int, ...], int], sequence: Sequence[int]) -> Any:
            """The number of a row or a table in each iteration."""
            columns = np.stack([np.broadcast_to(at[position], count) for position in sequence], axis=1)
            return np.array([known.setdefault(tuple(each), len(known)) for each in columns.tolist()])

        for position, primitive in enumerate(given.primitives):
            if position in at:
                continue
            if primitive is LITERAL:
                at[position] = self.position(given.numbers[given.first[position]])
                continue
            if primitive is TAKE:
                operands = [at[given.first[position]], numbered(self.tables, trace.tables[given.second[position]])]
            elif primitive is SUM_OF_PRODUCTS:
                start, *sequences = given.operands(position)
                operands = [at[start], *(numbered(self.rows, trace.rows[number]) for number in sequences)]
            else:
                operands = [at[operand] for operand in given.operands(position)]
            begin = self.operations.append_block([primitive], 1, count, [operands])
            at[position] = np.arange(begin, begin + count)
        for position in trace.checked:
            self.checked.update(dict.fromkeys(at[position].tolist()))
        return np.stack([at[position] for position in trace.outputs], axis=1)

    def called(self, function: ArrayFunction, arrays: Sequence[Any], has_gradient: bool = True) -> Any:
        """Let the program call a function of arrays when it runs, and give its results; None where it may not."""
        if not self.takes_calls:
            return None
        if self.decisions:
            self.follow()
        operands = [a.astype(float) if a.dtype != object else self.positions_in(a) for a in arrays]
        elements = [x for a in arrays if a.dtype == object for x in set(map(type, a.flat))]
        kind = FloatSymbol if all(map(_is_plain_kind, elements)) else Symbol
        return tuple(self.symbols_at(positions, kind) for positions in self._call(function, operands, has_gradient))

    def _call(self, function: ArrayFunction, operands: Sequence[Any], has_gradient: bool = True) -> tuple[Any, ...]:
        """Write a call down, and give the positions of its results."""
        shapes = function.shapes(*(operand.shape for operand in operands))
        sizes = list(map(math.prod, shapes))
        positions = np.array(self.operations.append_inputs(["called"] * (1 + sum(sizes))))
        parts = np.split(positions[1:], np.cumsum(sizes)[:-1])
        results = tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))
        self.maps.append(Called(function, tuple(operands), positions[:1], results, has_gradient))
        return results

    def positions(self, numbers: Sequence[Any]) -> list[int]:
        """The positions of symbols, Values from outside, and plain numbers."""
        if self._are_own(numbers):
            return list(map(_position_of, numbers))
        return list(map(self.position, numbers))

    def _are_own(self, numbers: Sequence[Any]) -> bool:
        """Whether all are symbols on this tape."""
        return are_all(Symbol, numbers) and set(map(id, map(_tape_of, numbers))) <= {id(self)}

    def positions_in(self, array: Any) -> Any:
        """The positions of the elements of an array."""
        return np.array(self.positions(array.ravel().tolist()), dtype=np.int64).reshape(array.shape)

    def symbols_at(self, positions: Any, kind: type[Symbol] | None = None) -> Any:
        """The array of the symbols at some positions; those of Values unless there is a kind."""
        made = self.symbols(positions.ravel().tolist(), kind or Symbol)
        return self.array(np.fromiter(made, object, len(made)).reshape(positions.shape))

    def contributions_of_call(self, called: Called, seeds: Sequence[Any], dependence: Dependence) -> list[Any]:
        """For each operand of a call the positions of its elements' gradients; None where no gradient flows to it.

        Args:
            called: the call.
            seeds: the positions of the gradients of its results, or floats.
            dependence: what gradients flow through.
        """
        pairs = list(zip(called.is_given, called.operands, strict=True))
        needed = tuple(is_given and dependence.holds_any(operand) for is_given, operand in pairs)
        if called.function.is_gradient:  # what it is made of is written
            given = [seed if seed.dtype == float else self.symbols_at(seed) for seed in seeds]
            made = called.function.rule(given, *self._symbols_of_call(called), needed)
            contributions = iter(
                [self.positions_in(contribution) for contribution, wanted in zip(made, needed, strict=True) if wanted]
            )
        else:
            function = type(self).gradient_of(called.function, needed)
            contributions = iter(self._call(function, [*seeds, *called.results, *called.operands]))
        return [next(contributions) if wanted else None for wanted in needed]

    def _symbols_of_call(self, called: Called) -> tuple[list[Any], list[Any]]:
        """What stands for the results of a call, and for its operands."""
        pairs = zip(called.is_given, called.operands, strict=True)
        operands = [self.symbols_at(operand) if is_given else operand for is_given, operand in pairs]
        return list(map(self.symbols_at, called.results)), operands

    def _through_call(self, called: Called, position: int, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add what the results of a call give to its operands. The call comes after all of its results."""
        (hub,) = called.hub.tolist()
        if position != hub:
            found.setdefault(hub, None)
            return
        seeds = []
        for positions in called.results:
            slopes = [found.get(each, 0.0) for each in positions.ravel().tolist()]
            seed = np.array([self.position(slope) for slope in slopes], dtype=np.int64).reshape(positions.shape)
            seeds.append(seed if any(isinstance(slope, Value) for slope in slopes) else np.zeros(positions.shape))
        equal = dependence.equal
        for positions, contributions in zip(
            called.operands, self.contributions_of_call(called, seeds, dependence), strict=True
        ):
            if contributions is None:
                continue
            for operand, at in zip(positions.ravel().tolist(), contributions.ravel().tolist(), strict=True):
                first = equal[operand]
                if first in dependence:
                    contribution = self._symbol(at, Symbol)
                    found[first] = found[first] + contribution if first in found else contribution

    def _through_map(self, mapped: Mapped, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add what the results of a map give to what its iterations read: another map, with a seed for each result."""
        equal = np.array(dependence.equal)
        is_source = np.append(np.zeros(dependence.begin, dtype=bool), dependence.inside)
        fixed, moving = equal[mapped.fixed], equal[mapped.moving]
        rows = mapped.results.T.tolist()
        own: dict[int, list[int]] = {}  # for each output with gradients, their positions
        common: dict[int, int] = {}  # the same of those that have one for all iterations, as those of a mean do
        for column, row in enumerate(rows):
            if any(position in found for position in row):
                own[column] = [self.position(found.get(position, 0.0)) for position in row]
                if len(set(own[column])) == 1:
                    common[column] = own.pop(column)[0]
        for number, position in enumerate(mapped.sums.tolist(), len(rows)):
            if position in found:
                common[number] = self.position(found[position])
        wanted = np.flatnonzero(is_source[fixed]).tolist(), np.flatnonzero(is_source[moving].any(axis=0)).tolist()
        trace, of_fixed, of_moving = _gradient_of_map(self.observer, mapped, list(own), list(common), *wanted)
        seeds = np.array(list(own.values()), dtype=np.int64).reshape(len(own), len(moving)).T
        made = self.add_map(
            trace,
            [*mapped.fixed.tolist(), *common.values()],
            np.concatenate([mapped.moving, seeds], axis=1),
            len(of_fixed),
        )
        pairs = [
            *zip(fixed[of_fixed].tolist(), made.sums.tolist(), strict=True),
            *zip(moving[:, of_moving].ravel().tolist(), made.results.ravel().tolist(), strict=True),
        ]
        for position, contribution_at in pairs:
            if is_source[position]:
                contribution = self._symbol(contribution_at, Symbol)
                found[position] = found[position] + contribution if position in found else contribution

    def _decided_at(self, position: int) -> Decided | None:
        """The decision that has a result at a position."""
        return next((each for each in self.decisions if position in each), None)

    def _through_decision(self, decided: Decided, dependence: Dependence, found: dict[int, Any]) -> None:
        """Add what the results of a decision give to what it reads."""
        if decided.is_scan:
            self.adjoint_of_scan(decided, dependence, found)
            return
        reads = [position for position in decided.operands_of(0) if dependence.equal[position] in dependence]
        rows = Tape.derivatives_of(self, decided, reads)
        for position, row in zip(reads, rows, strict=True):
            first = dependence.equal[position]
            for result, slope in zip(decided.made, row, strict=True):
                if result in found and not (isinstance(slope, float) and slope == 0.0):
                    contribution = found[result] * slope
                    found[first] = found[first] + contribution if first in found else contribution

    def _tangents_of_decision(self, decided: Decided, found: dict[int, dict[int, Any]]) -> None:
        """The tangents of all results of a decision, from those of what it reads."""
        if decided.is_scan:
            self.tangents_of_scan(decided, found)
            return
        reads = [position for position in decided.operands_of(0) if position in found]
        rows = Tape.derivatives_of(self, decided, reads)
        for number in sorted({number for position in reads for number in found[position]}):
            moving = [
                (found[position][number], row)
                for position, row in zip(reads, rows, strict=True)
                if number in found[position]
            ]
            for result, *slopes in zip(decided.made, *(row for _, row in moving), strict=True):
                terms = [tangent * slope for (tangent, _), slope in zip(moving, slopes, strict=True)]
                found.setdefault(result, {})[number] = sum(terms[1:], terms[0])

    @_unobserved
    def tangents(self, outputs: Sequence[Any], directions: Sequence[Mapping[Any, Any]], create_graph: bool) -> Any:
        """The tangents of symbols, written on the tape: the rules are run on symbols, from the beginning of it."""
        self._look_into_maps()
        written = self._so_far()
        positions = [output._position if isinstance(output, Symbol) else self.values.get(output) for output in outputs]
        found: dict[int, dict[int, Any]] = {}  # of each position, by the number of the direction
        for number, given in enumerate(directions):
            for value, tangent in given.items():  # what is given is by copies
                found.setdefault(value._position, {})[number] = self._symbol(self.position(tangent), Symbol)
        ends = [position for position in positions if position is not None]
        for position in Dependence(ends, set(found), written, range(len(self.operations))).positions():
            operands = () if position in found else set(written.operands(position))
            moving = [(operand, found[operand]) for operand in operands if operand in found]
            if moving and self.decisions and (decided := self._decided_at(position)) is not None:
                self._tangents_of_decision(decided, found)  # all of them, at the first one
                continue
            called = next((each for each in written.maps if position in each), None) if moving else None
            if isinstance(called, Called):
                self._tangents_of_call(called, found)  # at the call itself, which comes before its results
                continue
            for number in sorted({number for _, tangents in moving for number in tangents}):
                of_one = {operand: tangents[number] for operand, tangents in moving if number in tangents}
                if (tangent := self._tangent(position, written, of_one)) is not None:
                    found.setdefault(position, {})[number] = tangent
        of_outputs = [{} if position is None else found.get(position, {}) for position in positions]
        made = [[tangents.get(number, 0.0) for tangents in of_outputs] for number in range(len(directions))]
        if create_graph:
            return made
        return [[self.number_of(t) if isinstance(t, Symbol) else t for t in tangents] for tangents in made]

    def _tangents_of_call(self, called: Called, found: dict[int, dict[int, Any]]) -> None:
        """The tangents of all results of a call, from those of its operands.

        A rule is linear in the gradients of the results: so its own derivative by them gives the tangents.
        """
        needed = [given and any(each in found for each in operand.ravel().tolist())
                  for given, operand in zip(called.is_given, called.operands, strict=True)]  # fmt: skip
        seeds = []
        for positions in called.results:
            made: Any = self.copies([1.0] * positions.size, called)
            seeds.append(self.array(np.fromiter(made, object, positions.size).reshape(positions.shape)))
        contributions = called.function.rule(seeds, *self._symbols_of_call(called), needed)
        pairs = [
            (position, contribution)
            for positions, given, wanted in zip(called.operands, contributions, needed, strict=True)
            if wanted
            for position, contribution in zip(positions.ravel().tolist(), np.ravel(given).tolist(), strict=True)
            if position in found
        ]
        leaves = [leaf for seed in seeds for leaf in seed.flat]
        results = np.concatenate([positions.ravel() for positions in called.results]).tolist()
        for number in sorted({number for position, _ in pairs for number in found[position]}):
            terms = [
                contribution * found[position][number] for position, contribution in pairs if number in found[position]
            ]
            total: Any = sum(terms[1:], terms[0])
            slopes = self.adjoints(total, leaves, True) if isinstance(total, Symbol) else {}
            for position, leaf in zip(results, leaves, strict=True):
                if leaf in slopes:
                    found.setdefault(position, {})[number] = slopes[leaf]

    def _tangent(self, position: int, written: Trace, found: Mapping[int, Any]) -> Any:
        """The tangent of the operation at a position, from those of its operands; None where no derivative exists."""
        primitive, *operands = written.operations[position]
        if primitive is TAKE:
            elements = [found.get(element, 0.0) for element in written.tables[operands[1]]]
            return self.take(elements, self._symbol(operands[0], Symbol))
        if primitive is SUM_OF_PRODUCTS:
            start, *rows = operands
            first, second = (written.rows[row] for row in rows)
            pairs = list(zip(first, second, strict=True))
            moving = [(found[x], y) for x, y in pairs if x in found] + [(found[y], x) for x, y in pairs if y in found]
            if not moving:
                return found[start]
            factors = [self._symbol(other, Symbol) for _, other in moving]
            return self.sum_of_products([tangent for tangent, _ in moving], factors, found.get(start, -0.0))
        terms = [
            contribution
            for moving in dict.fromkeys(operands)
            if moving in found
            for _, contribution in self._contributions(position, written, found[moving], {moving})
        ]
        return sum(terms[1:], terms[0]) if terms else None

    def _contributions(
        self, position: int, written: Trace, gradient: Any, wanted: Container[int]
    ) -> list[tuple[int, Any]]:
        """What the operation at a position gives to those of its operands that are at the positions wanted."""
        primitive, operands = written.operations.primitives[position], written.operands(position)
        if primitive is TAKE:
            index = self._symbol(written.operations.first[position], Symbol)
            return [  # a negative index counts from the end, as in Python
                (
                    element,
                    gradient
                    * (self.apply(EQUAL, index, float(n)) + self.apply(EQUAL, index, float(n - len(operands)))),
                )
                for n, element in enumerate(operands)
                if element in wanted
            ]
        written_down = self.operations
        applied, first, literals = written_down.primitives, written_down.first, written_down.numbers
        numbers = [literals[first[p]] if applied[p] is LITERAL else self._symbol(p, Symbol) for p in operands]
        if self._literals:
            for number in range(len(operands)):
                if (literal := self._literals.get((position, number))) is not None:
                    numbers[number] = self._symbol(literal, Symbol)
        if primitive is SUM_OF_PRODUCTS:
            half = 1 + len(operands) // 2
            factors = [1.0, *numbers[half:], *numbers[1:half]]
            return [(p, gradient * factor) for p, factor in zip(operands, factors, strict=True) if p in wanted]
        if not primitive.derivatives:
            raise ValueError(f"{primitive.name} has no derivative")
        output = self._symbol(position, Symbol)
        rules = zip(operands, primitive.derivatives, strict=True)
        asked = [(p, rule) for p, rule in rules if rule is not None and p in wanted]
        with _AS_BEFORE if primitive in alike_rows.OF_LIBRARY else observing_again(self.observer):
            return [(p, rule(gradient, output, *numbers)) for p, rule in asked]

    def trace(self, inputs: Sequence[Sequence[int]], outputs: Sequence[int]) -> Trace:
        """What is written, for these groups of inputs and these outputs."""
        if not self.operations.are_whole():
            raise TraceError(
                "the function was interrupted in the middle of an operation, caught that, and went on: let exceptions "
                "such as KeyboardInterrupt pass while it is traced, at its first call"
            )
        written = self.operations, tuple(self.tables), tuple(self.rows)
        equals = self._equals if 4 * len(self._equals) > len(self.operations) else None
        groups = tuple(map(tuple, inputs))
        return Trace(*written, groups, tuple(outputs), checked=tuple(self.checked), equals=equals)

    def _so_far(self) -> Trace:
        """What is written, for derivatives: they are many, and read neither outputs nor what is checked."""
        entries, further = (
            (self.operations, tuple(self.tables), tuple(self.rows)),
            (tuple(self.maps), tuple(self.decisions)),
        )
        return Trace(*entries, (), (), maps=further[0], decisions=further[1])

    def finish(self) -> None:
        """Empty the tape: a symbol that is kept somewhere would keep all of it."""
        self.operations, self.questions, self.reading = Entries(), None, None
        self._equals = EqualsInOrder()
        self._start = _NONE_KNOWN
        for written in (
            self.known,
            self.values,
            self.placed,
            self.roles,
            self.tables,
            self.rows,
            self._rows_known,
            self.checked,
            self.attributes,
            self.bounds,
            self._reached,
            self.parts,
        ):
            written.clear()

    def _symbol(self, position: int, kind: type[Symbol]) -> Symbol:
        """A new symbol for what stands at a position."""
        symbol = _new(kind)
        symbol._position, symbol._tape, symbol._is_used = position, self, True
        return symbol


class _Reached(set[int]):
    """The positions, of the first ones up to size, from which a gradient flows to a source."""

    size = 0


class QuietTape(Tracer):
    """What writes on a tape under no_grad: no gradient flows through the results."""

    remembers = False

    def __init__(self, tape: Tape) -> None:
        self.tape = tape

    @property
    def is_open(self) -> bool:  # type: ignore[override]  # as long as the tape is
        """Whether the tape records."""
        return self.tape.is_open

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down, detached."""
        if not self.is_open:
            return passed_over(primitive, operands)
        result = self.tape.apply(primitive, *operands)
        return result if is_plain(result) else self.tape.apply(primitives.detach, result)

    def called(self, function: ArrayFunction, arrays: Sequence[Any], has_gradient: bool = True) -> Any:
        """What the tape gives; no gradient flows through it, unless this remembers."""
        return self.tape.called(function, arrays, has_gradient and self.remembers)

    def under_no_grad(self) -> Recorder:
        """Another one like it."""
        return QuietTape(self.tape)

    def under_derivative(self) -> Recorder | None:
        """One that writes as the tape does: a derivative is asked for on purpose."""
        return LoudTape(self.tape)

    def numbers_taken(self, output: Any) -> None:
        """They are constants, as all results are."""


def _as_the_tape(name: str) -> Callable[..., Any]:
    """The method that does what that of the tape does."""

    def method(self: QuietTape, *arguments: Any) -> Any:
        return getattr(self.tape, name)(*arguments)

    return method


for _name in (
    *("compared", "symbol", "array", "refused", "number_read", "gradient_read", "closure_given", "take", "copies"),
    *("reaches", "number_of", "adjoints", "jacobian", "write_iterations", "sparse_entries", "tangents"),
):
    setattr(QuietTape, _name, _as_the_tape(_name))


class LoudTape(QuietTape):
    """What writes on a tape where a derivative is asked for under no_grad."""

    remembers = True

    def numbers_taken(self, output: Any) -> None:
        """Let the tape take note."""
        self.tape.numbers_taken(output)

    def apply(self, primitive: Primitive, *operands: Any) -> Any:
        """Write an operation down."""
        return self.tape.apply(primitive, *operands)

    def under_derivative(self) -> None:
        """It is the one."""


_new: Callable[[type[Symbol]], Symbol] = object.__new__
_position_of, _tape_of = operator.attrgetter("_position"), operator.attrgetter("_tape")
_attributes_of = operator.attrgetter("__dict__")


def _is_plain_kind(kind: type) -> bool:
    return not issubclass(kind, Value) or issubclass(kind, _Plain)


def _by_position(positions: Mapping[Any, int]) -> dict[int, list[Any]]:
    """The Values at each position."""
    found: dict[int, list[Any]] = {}
    for value, position in positions.items():
        found.setdefault(position, []).append(value)
    return found


def _refuse_gradient() -> NoReturn:
    refuse("a gradient by a result, or by a plain number,", "Differentiate a function of it: see mg.grad.")


def _refused(what: str, instead: str) -> Callable[..., NoReturn]:
    return lambda *_: refuse(what, instead)


def _read(symbol: Symbol) -> FloatSymbol:
    """What ``.data`` is, where nobody but ``max`` and the like gets it; see largest.py."""
    tape, frame = symbol._tape, sys._getframe(1)
    if is_plain(symbol) or not tape.is_open or not is_handed_on(frame.f_code, frame.f_lasti):
        refuse(".data", "Write mg.detach(x) for a number without a gradient.")
    number: FloatSymbol = tape._symbol(tape.operations.append(primitives.detach, symbol._position), _NumberRead)
    if tape.reading is None or not tape.reading.goes_on(frame, number):
        tape.reading = Reading(frame, number)
    return number


def refuse_int() -> NoReturn:
    """Refuse the int of a number, where each would be another path."""
    refuse(THE_INT, FOR_AN_INDEX)


def _whole(of_number: Callable[[float], int]) -> Callable[..., Any]:
    """What gives the int of a symbol for the numbers of this call, where the tape takes questions."""

    def whole(self: Symbol, *digits: Any) -> Any:
        if digits not in _NO_DIGITS or (questions := self._tape.asked()) is None:
            return refuse(THE_INT, FOR_AN_INDEX)
        if not is_plain(self):
            float_read()
        return questions.whole(self._position, of_number)

    return whole


_NO_DIGITS = (), (None,)


class _Unknown:
    """What a symbol has for its number. Computing with it is refused: it would happen after the trace."""

    __float__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused(
        "a symbol, used after its trace has ended,", "Return what is needed from the function."
    )
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __float__
    __bool__ = __eq__ = __float__
    __hash__ = None  # type: ignore[assignment]  # as of all classes with an equality of their own


def _operator(primitive: Primitive, general: Any, reflected: bool = False, takes_numbers: bool = True) -> Any:
    """An operator of Value, with a shorter way for what nearly all operands are: symbols, and what the tape knows.

    Args:
        primitive: which is written as it is.
        general: what Value has for all operands.
        reflected: whether the symbol is on the right.
        takes_numbers: whether it is written as it is also where the other operand is none of the tape's symbols.
    """

    @resuming
    def operator(self: Symbol, other: Any) -> Any:  # tracing spends its time here
        tape: Tape = self._tape
        try:
            recording = recording_in_use()
            if type(self) is Symbol and recording is not None and recording.recorder is tape and tape.is_open:
                kind, position, is_repeatable = type(other), None, self._is_used
                if kind is Symbol:
                    if other._tape is tape:
                        position = other._position
                        is_repeatable = is_repeatable and other._is_used
                        other._is_used = True
                elif takes_numbers and (kind is float or kind is int):
                    position = tape.placed.get(other)
                    if not position:
                        position, is_repeatable = tape.position(other), False
                elif takes_numbers and kind is Value:
                    position = tape.placed.get(other)  # where it is new, its role is noted
                if position is not None:
                    first, second = (position, self._position) if reflected else (self._position, position)
                    if is_repeatable:
                        return tape._written((primitive, first, second), True, Symbol)
                    self._is_used = True
                    written = tape.operations
                    symbol = _new(Symbol)
                    symbol._position, symbol._tape, symbol._is_used = len(written.primitives), tape, False
                    written.first.append(first)  # as Entries.append does
                    written.second.append(second)
                    written.primitives.append(primitive)
                    return symbol
        finally:
            if tape.observer is not None and tape.observer.is_paused:
                tape.observer.resume()
        return general(self, other)

    return named(operator, primitive)


class Symbol(Value):
    """A number that is not known yet, in the place of a Value or of a float."""

    known = False

    # A symbol has no uses, no gradient and no operands. The slots of these hold its position on the tape, the tape, and
    # whether it has been an operand: an operation on one that has not is the first of its kind, so nobody looks for it.
    __slots__ = ()
    _position: Any = Node.__dict__["_uses"]
    _tape: Any = Node.__dict__["_grad"]
    _is_used: Any = Node.__dict__["_x"]
    _data: Any = _Unknown()

    __add__ = _operator(primitives.add, Value.__add__)
    __radd__ = _operator(primitives.add, Value.__radd__, reflected=True)
    __sub__ = _operator(primitives.sub, Value.__sub__)
    __rsub__ = _operator(primitives.sub, Value.__rsub__, reflected=True)
    __mul__ = _operator(primitives.mul, Value.__mul__)
    __rmul__ = _operator(primitives.mul, Value.__rmul__, reflected=True)
    __truediv__ = _operator(primitives.div, Value.__truediv__, takes_numbers=False)

    def __hash__(self) -> int:
        self._tape.tell_apart(self)
        return object.__hash__(self)

    def __eq__(self, other: object) -> Any:
        """Whether this is the same Value; of plain numbers, whether they are equal."""
        if is_array(other):
            return NotImplemented
        if not isinstance(other, Value):
            refuse("==", "Compare with < and <=, or choose with mg.where and mg.take.")
        self._tape.tell_apart(self)
        return self is other

    def __ne__(self, other: object) -> Any:
        """Whether == does not hold."""
        if is_array(other):
            return NotImplemented
        equal = self == other
        return equal.negated() if isinstance(equal, Symbol) else not equal

    def __bool__(self) -> bool:
        """The truth for the numbers of this call, where the tape takes questions."""
        if (questions := self._tape.asked()) is not None:
            return questions.truth(self._position, isinstance(self, bool))
        return refuse(
            "the truth of a number",
            "Write mg.where(x > 0, a, b), mg.maximum or mg.minimum. Of an array that NumPy made of single Values, or "
            "that the function closes over, write mg.array(x), which can be compared.",
        )

    __float__ = _refused(
        "the float of a number",
        "Write mg.exp for math.exp, and x for float(x). To differentiate by it, as by a Value(x), write mg.grad(f)(x).",
    )
    __index__ = _refused(THE_INT, FOR_AN_INDEX)
    __int__ = __trunc__ = _whole(int)
    __round__, __floor__, __ceil__ = _whole(round), _whole(math.floor), _whole(math.ceil)
    __deepcopy__ = __reduce_ex__ = _refused("a deep copy or a pickle of a number", "Use it as it is, or return it.")
    backward = _refused("backward() inside a compiled function", "Call backward() on the result.")
    __format__ = _refused("the text of a number", "Print the result of the function instead.")
    data = property(
        _read,
        _refused("setting .data", "Set it outside of the function."),
    )
    grad = property(
        _refused(".grad", "Call backward() on the result, and read it then."),
        _refused("setting .grad", "Set it outside of the function."),
    )

    is_leaf = property(lambda self: False)
    requires_grad = property(
        lambda self: True, _refused("setting requires_grad", "Set it outside of the function, or write mg.detach(x).")
    )
    _operands = _backward = _refused("a gradient inside a compiled function", "Compile the function itself.")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """What a function of NumPy that works element by element makes of symbols."""
        return self._tape.of_elements(ufunc, method, inputs, settings)

    def __array_function__(self, function: Any, _: Any, arguments: Any, settings: Any) -> Any:
        """What another function of NumPy makes of symbols."""
        return self._tape.of_arrays(function, arguments, settings)

    def picks(self, x: Any, y: Any) -> Any:
        """What ``x if condition else y`` is, with this for the condition: one of the two, and no operation on it."""
        kind: type[Symbol] = Picked
        if kind_of_result(primitives.where, (x, y)) is not Symbol:
            kind = BoolSymbol
            if not (isinstance(x, bool) and isinstance(y, bool)):
                x, y = promotion.like_numbers(x, y)
                kind = class_of(promotion.kind_of_both(x, y))
        return self._tape._symbol(self._tape.apply(primitives.where, self, x, y)._position, kind)

    def negated(self) -> Any:
        """Whether this is 0."""
        return self._tape._symbol(self._tape.apply(primitives.is_zero, self)._position, BoolSymbol)

    def as_plain(self, kind: Any) -> Any:
        """The same number, as a plain one of a kind: float, int, bool or a dtype."""
        return self._tape._symbol(self._position, class_of(kind))

    def only_finite(self) -> Any:
        """This symbol; where it is not finite, the function is to run eagerly."""
        self._tape.checked[self._position] = None
        return self

    def __copy__(self) -> Symbol:
        return self._tape._symbol(self._position, type(self))

    def __repr__(self) -> str:
        return f"<symbol {self._position}>"


class Picked(Symbol):
    """A symbol in the place of one of two Values, as NumPy's maximum picks them: it is not known which."""

    __slots__ = ()
    __hash__ = Symbol.__hash__

    def __eq__(self, other: object) -> Any:
        """Whether it is that Value depends on numbers, unless it is this one."""
        if is_array(other):
            return NotImplemented
        if self is not other:
            refuse("== of a Value that was picked from others", "Write x >= x.max() for where x is largest.")
        return True


class _Attributed(Symbol):
    """A symbol in the place of an argument that the user has set attributes on."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse to read one: at the next call another Value may be given, with others."""
        if name in self._tape.attributes.get(self._position, ()):
            refuse(f"the attribute {name!r} of an argument", "Give it as an argument, or close over the Value.")
        raise AttributeError(f"'Value' object has no attribute {name!r}")


class _Plain(Symbol):
    """A symbol in the place of a plain number: these are equal if their numbers are."""

    __slots__ = ()
    is_number = True
    __hash__ = _refused(  # nothing would be found by it
        "a number as a key, or in a set,",
        "Write mg.take(list, index), or table[int(x)], where each is a path, or give a string, which is static. What "
        "functools.cache keeps is found by keys: call the __wrapped__ of such a function.",
    )
    __str__ = _refused("the text of a number", "Print the result of the function instead.")
    kind: Any

    def item(self) -> Any:
        """The number as one of Python's."""
        return self.as_plain(type(self.kind.type().item()) if promotion.is_dtype(self.kind) else self.kind)

    def one_of(self, primitive: Primitive, x: Any, y: Any) -> Any:
        """The larger or the smaller one of two plain numbers, which NumPy has in one array."""
        x, y = promotion.like_numbers(x, y)
        result = primitive(x, y)
        return result.only_finite().as_plain(promotion.kind_of_both(x, y)) if is_unknown(result) else result

    def require_like(self, kind: Any) -> None:
        """Let the function run eagerly where this is out of range beside numbers of NumPy's."""
        self._tape._bounds_of(self, kind)

    def __pos__(self) -> Any:
        return self.as_plain(self.kind)

    def __getattr__(self, name: str) -> Any:
        """What numbers of NumPy have, as arrays have it."""
        is_of_numpy = promotion.is_dtype(self.kind) or self.kind is bool
        is_asked = is_of_numpy and hasattr(np.ndarray, name)
        if not is_asked or (promotion.is_seen_by_library() and name not in ("shape", "flags")):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._array(Tape.arrays.box(self)), name) if name != "dtype" else np.dtype(self.kind)

    def __eq__(self, other: object) -> Any:
        """Whether two plain numbers are equal."""
        if isinstance(other, Value) and not is_plain(other):
            return super().__eq__(other)
        tracer = tracer_on_top()
        recorded = None if tracer is None else tracer.compared(operator.eq, self, other)
        if recorded is NotImplemented:
            return super().__eq__(other)
        return refuse("==", "Compare with < and <=.") if recorded is None else recorded


class FloatSymbol(_Plain):
    """A symbol in the place of a plain float, or of what is computed from those only: isinstance says so."""

    __slots__ = ()
    __class__ = property(lambda self: float)  # isinstance asks for it
    kind: Any = float
    real, imag = property(lambda self: self), 0.0
    hex = as_integer_ratio = _refused(
        "the digits of a number", "Call it outside of the function, and pass the result in."
    )

    def __abs__(self) -> Any:
        """The absolute value, of the same kind."""
        return primitives.abs(self).as_plain(self.kind)

    def conjugate(self) -> Any:
        """The number itself."""
        return self

    def is_integer(self) -> Any:
        """Whether there is nothing behind the point."""
        is_whole = (self == further_primitives.floor(self)) | (self == further_primitives.ceil(self))
        return is_whole & (self > -math.inf) & (self < math.inf)


class _NumberRead(FloatSymbol):
    """The number of a Value, which a generator expression hands on."""

    __slots__ = ()

    def __gt__(self, other: Any) -> Any:
        """Whether it is larger. If max asks, this stands for the larger one from now on, so the answer is yes."""
        tape: Tape = self._tape
        if tape.reading is None or not tape.reading.compares(sys._getframe(1), self, other):
            return super().__gt__(other)
        self._position = tape.apply(primitives.maximum, other, self)._position
        return True


class IntSymbol(_Plain):
    """A symbol in the place of a plain int."""

    __slots__ = ()
    __class__ = property(lambda self: int)
    kind: Any = int
    real = numerator = property(lambda self: self)
    imag, denominator = 0, 1
    conjugate = FloatSymbol.conjugate

    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __and__ = __rand__ = __or__ = __ror__ = _refused(
        "the bits of a number", "Compute with them outside of the function, and pass the result in."
    )
    __xor__ = __rxor__ = __invert__ = bit_length = bit_count = to_bytes = __and__
    __index__ = refuse_index

    def __abs__(self) -> Any:
        """The absolute value, of the same kind."""
        low, high = self._tape._bounds_of(self, self.kind)
        result = primitives.abs(self).as_plain(self.kind)
        self._tape.require(result, promotion.limits(self.kind), (0, max(-low, high)))
        return result

    def as_integer_ratio(self) -> Any:
        """The number, and 1."""
        return self, 1


def _of_bools(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operator(self: BoolSymbol, other: object) -> Any:
        return combine(self, other) if isinstance(other, bool) else NotImplemented

    return operator


class BoolSymbol(_Plain):
    """A symbol in the place of a bool, as comparisons give them: 1 or 0."""

    __slots__ = ()
    __class__ = property(lambda self: bool)
    kind: Any = bool

    __index__ = refuse_index
    __and__ = __rand__ = _of_bools(lambda x, y: x.picks(y, False))
    __or__ = __ror__ = _of_bools(lambda x, y: x.picks(True, y))
    __xor__ = __rxor__ = _of_bools(lambda x, y: x.picks(y.negated() if isinstance(y, Symbol) else not y, y))
    __invert__ = _refused("~ of a comparison", "Write x <= 0 for not x > 0, or np.logical_not(x > 0).")


for _class, _name in ((Symbol, "Value"), (FloatSymbol, "float"), (IntSymbol, "int"), (BoolSymbol, "bool")):
    _class.__name__ = _class.__qualname__ = _name  # as type(x).__name__ is eagerly


@cache
def class_of(kind: Any) -> type[Symbol]:
    """The symbols in the place of numbers of a kind."""
    if promotion.is_dtype(kind):
        base = FloatSymbol if kind.kind == "f" else IntSymbol
        seen = property(lambda self: kind.type)  # isinstance asks for it
        own = {"__slots__": (), "kind": kind, "__hash__": base.__hash__, "__class__": seen}
        return type(kind.name, (base,), own)
    if issubclass(kind, bool):
        return BoolSymbol
    if issubclass(kind, Value):
        return Symbol
    if issubclass(kind, (float, int)):
        return FloatSymbol if issubclass(kind, float) else IntSymbol
    return type(kind.__name__, (FloatSymbol,), {"__slots__": (), "kind": kind, "__hash__": FloatSymbol.__hash__})


_FLOATS = {float, promotion.FLOAT64, Value}


def _bound(compare: Callable[..., bool], x: Any, number: Any) -> float | None:
    """The float that x is compared with in the place of a plain number; None for what is no number.

    Python compares exactly where eager does not round first: a Value with an int, a plain number with a Fraction too.
    Of a number between two floats, x is less than it if x is less than the next float above, which is infinity where
    the number is too large for a float.
    """
    exactly = type(number) is int or is_plain(x)
    if is_plain(x) and promotion.is_rounded(x.kind) and type(number) in (int, float):
        number = promotion.like(x.kind, number)
    try:
        nearest = real_number(number)
    except OverflowError:
        nearest, exactly = math.inf if number > 0 else -math.inf, True
    if nearest is None or not exactly or nearest == number:
        return nearest
    if compare is operator.eq:
        return math.nan  # no float is equal to it
    upwards = compare in (operator.lt, operator.ge)
    return nearest if (nearest > number) == upwards else math.nextafter(nearest, math.inf if upwards else -math.inf)


def kind_of_result(primitive: Primitive, operands: Sequence[Any]) -> type[Symbol]:
    """What a result stands for: a Value, or a plain number if the operands are plain, some of them symbols."""
    for operand in operands:
        if type(operand) is Symbol or (isinstance(operand, Value) and not is_plain(operand)):
            return Symbol
    if primitive is TAKE:
        return class_of(promotion.kind_of_one(set(map(promotion.kind_of_number, operands[1:]))))
    if (ufunc := promotion.OPERATORS.get(primitive)) is None:
        return FloatSymbol
    kinds = tuple(map(promotion.kind_of_number, operands))
    kind = promotion.promoted(ufunc, *kinds)
    if primitive is primitives.pow and issubclass(class_of(kind), IntSymbol):
        kind = _kind_of_power(kind, operands[1])
    if primitive is not primitives.neg:
        promotion.check_width(kind, kinds)
    return class_of(kind)


def _kind_of_power(kind: Any, exponent: Any) -> Any:
    """The kind of a power of integers, which the exponent decides."""
    if isinstance(exponent, Symbol):
        raise TraceError(
            f"a power of integers whose exponent is an argument ({running_line()}) is an int or a float, or an error, "
            "depending on the exponent's sign: write a float for one of them, such as 2.0**n"
        )
    if exponent >= 0:
        return kind
    if promotion.is_dtype(kind):
        raise ValueError("Integers to negative integer powers are not allowed.")
    return float


def is_plain(number: object) -> bool:
    """Whether a symbol stands for a plain number."""
    return issubclass(type(number), _Plain)


def is_of_library(primitive: Primitive) -> bool:
    """Whether a primitive is one of the library's formulas, which raise nothing inside."""
    formula = getattr(primitive.composite, "func", primitive.composite)  # where it has settings
    return getattr(formula, "__module__", None) in (composites.__name__, special_functions.__name__)


def _power(tape: Tape, x: Any, y: Any) -> Any:
    """A power with a small constant exponent, without pow, where that gives the same for small integers."""
    if isinstance(y, Value) or not isinstance(x, Value):
        return None
    if y == 1:
        return x
    if isinstance(x, IntSymbol) and isinstance(y, int) and y > 3:  # by products, each of which is exact
        return (x ** (y // 2)) ** 2 * (x if y % 2 else 1)
    if y == -1:
        return 1.0 / x
    if y == 0.5:
        return tape.apply(primitives.sqrt, x)
    if y not in (2, 3):
        return None
    product: Any = x * x if y == 2 else x * x * x
    tape.checked[product._position] = None  # eager may round it otherwise, which questions ask
    return product


def _quotient(tape: Tape, x: Any, y: Any) -> Any:
    """A quotient with a power of two for its divisor, as a product, which is rounded alike."""
    if isinstance(y, Value) or not isinstance(x, Value):
        return None
    return x * (1.0 / y) if 1e-300 < abs(y) < 1e300 and abs(math.frexp(y)[0]) == 0.5 else None


def _lower_power(tape: Tape, x: Any, y: Any, k: Any) -> Any:
    """What stands in the derivative of a power with a constant exponent, as a power, which may do without pow."""
    if isinstance(y, Value) or isinstance(k, Value) or y == k - 1 or (y - k) + k != y:
        return None
    return tape.apply(primitives.pow, x, y - k)


REWRITES: dict[Primitive, Callable[..., Any]] = {
    primitives.pow: _power,
    primitives.lower_power: _lower_power,
    primitives.div: _quotient,
    primitives.identity: lambda tape, x: x,
}


def trace(source: Source) -> Trace:
    """Run a function on symbols in the place of the numbers in its arguments.

    Returns:
        The trace. Its inputs are the Values that were read, in a group for each role, then the arguments, and then the
        results of maps and decisions.

    Raises:
        FollowedError: if the function takes questions, and a decision cannot be left to the program.
    """
    tape = Tape(source.as_floats, source.is_recorded)
    tape.takes_maps, tape.takes_calls = source.takes_maps, source.takes_calls
    tape.takes_decisions = source.takes_decisions
    tape.in_lanes, tape.writes_out = source.in_lanes, source.writes_out
    try:
        written = traced_on(tape, source)
    except Exception:
        if not (tape.looks_into_maps or tape.follows):
            raise
    if tape.follows:
        raise FollowedError
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
        symbols = _symbols_of(tape, arguments, bounds)
        tape.all_given()
        if rounding is not None:
            tape.questions = ask(tape, arguments.leaves, rounding)
        given = symbols
        if arguments.has_values:
            once: dict[int, Symbol] = {}  # a Value that is given twice is one object
            pairs = zip(arguments.leaves, symbols, strict=True)
            given = [once.setdefault(id(x), symbol) if isinstance(x, Value) else symbol for x, symbol in pairs]
        positional, named = arguments.rebuilt(given, _array)
        with tape.questions.undecided_by_errors() if tape.questions else nullcontext(), in_place_of_others():
            result = Structure(source.function(*positional, **named), returned=True)
        if not is_unchanged((positional, named), arguments.rebuilt(given, _array)):
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


def _symbols_of(tape: Tape, arguments: Structure, bounds: promotion.Bounds) -> list[Symbol]:
    """A symbol for each of the numbers in arguments, of which integers are between these two."""
    symbols: list[Symbol] = []
    for holds, run in arguments.runs:
        if holds is float or (holds is ARRAY and run.dtype.kind == "f"):
            kind, count = (float, len(run)) if holds is float else (run.dtype, run.size)
            symbols += tape.inputs(range(len(symbols), len(symbols) + count), kind)
            continue
        leaves = run.ravel().tolist() if holds is ARRAY else run
        for leaf, kind in zip(leaves, kinds_of(holds, run), strict=True):
            symbols.append(tape.argument(len(symbols), leaf, kind, bounds))
    return symbols


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


def _gradient_of_map(
    observer: Any,
    mapped: Mapped,
    own: Sequence[int],
    common: Sequence[int],
    fixed: Sequence[int],
    moving: Sequence[int],
) -> tuple[Trace, list[int], list[int]]:
    """What one iteration of a map does backwards.

    Args:
        observer: what looks for sources.
        mapped: the map.
        own: which outputs have a gradient in each iteration.
        common: which have one for all iterations.
        fixed: which of the inputs that do not differ are to get gradients.
        moving: which of those that do.

    Returns:
        The trace, to whose inputs these gradients come, and which inputs get gradients. Those of what differs are its
        first outputs.
    """
    given, tape = mapped.trace, Tape()
    tape.observer = observer
    tape.operations = given.operations.copy()
    tape.tables, tape.rows = ({part: n for n, part in enumerate(parts)} for parts in (given.tables, given.rows))
    outputs = [*own, *common]
    sources = {(group, n): given.inputs[group][n] for group, chosen in enumerate((fixed, moving)) for n in chosen}
    with tracing(tape):
        seeds = [tape.input("seed") for _ in outputs]
        terms = [seed * tape._symbol(given.outputs[n], Symbol) for seed, n in zip(seeds, outputs, strict=True)]
        root: Any = sum(terms[1:], terms[0])
        found = tape._gradients(root._position, tape._dependence([root], sources.values()), _by_position(sources), True)
        of_fixed = list(filter(lambda n: (0, n) in found, fixed))
        of_moving = list(filter(lambda n: (1, n) in found, moving))
        made = [tape.position(found[1, n]) for n in of_moving] + [tape.position(found[0, n]) for n in of_fixed]
    positions = [seed._position for seed in seeds]
    inputs = [*given.inputs[0], *positions[len(own) :]], [*given.inputs[1], *positions[: len(own)]]
    trace = tape.trace(inputs, made)._replace(checked=given.checked)
    tape.finish()
    return trace, of_fixed, of_moving


def _array(like: Any, parts: list[Any]) -> Any:
    """An array among the arguments, with symbols in it."""
    if not parts:
        return like.copy()
    array = array_of(like, parts)
    return Tape.arrays.arranged(array) if any(map(is_unknown, parts)) else array


def _check_attributes(what: str, leaves: Sequence[Any]) -> None:
    """Refuse attributes that the function has set on symbols which stand for Values outside of it."""
    symbols = leaves if are_all(Symbol, leaves) else [leaf for leaf in leaves if isinstance(leaf, Symbol)]
    for symbol in filter(_attributes_of, symbols):
        if attributes := user_attributes(symbol):
            raise TraceError(
                f"the attribute {next(iter(attributes))!r} of {what} is set: a compiled function runs once, on "
                "symbols, so at later calls nothing would be set. Set it outside of the function"
            )


@contextmanager
def tracing(tape: Tape) -> Generator[None, None, None]:
    """Let every operation be written on the tape, and none any more at the end."""
    try:
        with using(tape), without_collecting():
            yield
    finally:
        tape.is_open = False


@contextmanager
def without_collecting() -> Generator[None, None, None]:
    """Let the garbage collector rest: a trace makes no garbage, and the collector would walk through all of it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
