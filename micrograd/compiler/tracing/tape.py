"""Tape: the list of operations that a trace records.

A Symbol stands for a number that is not known yet. It has the operators and methods of a Value. Each of them appends
an operation to the tape: the primitive, and the positions of its operands on the tape. For ``x * y + x`` these are

    0  input        x
    1  input        y
    2  mul   0 1
    3  add   2 0

Common subexpressions are eliminated after the trace (see equals.py); until then each result is a symbol of its own, as
each Value is. A plain number is recorded as a literal. The float of a symbol would freeze a number into the program, so
it is a TraceError, which says what to write instead.
"""

from __future__ import annotations

import gc
import math
import operator
from collections import Counter
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from micrograd._support.checks import are_all, is_array, is_unknown, required_number
from micrograd._support.interrupts import is_of_handler
from micrograd.compiler.guards.refusals import TraceError, refuse, running_line
from micrograd.compiler.guards.sources import observing, resting
from micrograd.compiler.guards.structure import ARRAY, Structure, array_of, kinds_of
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
from micrograd.compiler.ir.safe import is_of_library
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.detached_tape import DetachedTape
from micrograd.compiler.tracing.rewrites import REWRITES, bound_of
from micrograd.compiler.tracing.symbols import (
    Attributed,
    BoolSymbol,
    FloatSymbol,
    IntSymbol,
    Plain,
    Symbol,
    class_of,
    is_plain,
    is_plain_kind,
    kind_of_result,
    new,
)
from micrograd.engine import primitives
from micrograd.engine.copying import user_attributes
from micrograd.engine.operations import Operations
from micrograd.engine.primitive import Primitive
from micrograd.engine.recorder import Recorder, passed_over, using
from micrograd.engine.tracer import Tracer
from micrograd.engine.value import Value
from micrograd.loops import rows_in_use

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Sequence
    from types import ModuleType

    from micrograd.compiler.numbers import Integers
    from micrograd.compiler.tracing.largest import Reading
    from micrograd.compiler.tracing.questions import Questions
    from micrograd.engine.array_calls import ArrayFunction


# Calls of a function of matrices, and the sum of the cubes of their rows: more of both are as those of a loop. Written
# out, five solutions for 10 x 10 have a first call of 1.2 s, and a call of 59 us; called, they take 0.5 s and 180 us.
_FEW_CALLS, _FEW_STEPS = 2, 1 << 13
_DEEPEST, _LARGEST_COUNT = 8, 4096  # of integers in a trace of 40 rows or more, which stand for others
_NONE_KNOWN: tuple[tuple[Any, ...], int] = (), -1
_FLOATS_AND_VALUES = {float, np.float64, Value}
_FLOATS = {float, promotion.FLOAT64, Value}
# The primitive of each of Python's comparisons, and whether the operands change positions.
_COMPARISONS: dict[Any, tuple[Primitive, bool]] = {
    operator.lt: (LESS, False),
    operator.gt: (LESS, True),
    operator.le: (LESS_EQUAL, False),
    operator.ge: (LESS_EQUAL, True),
    operator.eq: (EQUAL, False),  # of plain numbers; Values are equal to themselves only
}
_position_of, _tape_of = operator.attrgetter("_position"), operator.attrgetter("_tape")


class Tape(Tracer):
    """The operations of one trace, in order; an operation's position is its number.

    Attributes:
        operations: what was recorded.
        known: the position of each operation that may be repeated: all of its operands had been operands before.
        values: the position of each Value that was read from outside.
        placed: the positions of these Values and of literals, for operators; a zero is there with its sign.
        roles: the Values by their first use, a primitive and which operand of it: weights, say, or biases.
        tables: the number of each table that elements are taken from, by the positions of its elements.
        rows: the number of each row of factors in sums of products, by their positions.
        checked: the positions of results that must be finite, as those of products in the place of powers.
        attributes: for the positions of arguments, the names of the attributes that the user has set on them.
        bounds: for the positions of plain integers, between which two each of them is known to be.
        remarks: what explain() says of how derivatives are computed.
        as_floats: whether no gradient flows through derivatives that are plain numbers, as eagerly they are floats.
        tells_apart: whether the function compared the identity of arguments; a Value given twice would be another case.
        is_recorded: whether calls are recorded; under no_grad, no Value from outside requires a gradient.
        depends_on_recording: whether the function asked for a gradient that flows to a Value from outside.
        takes_numbers: whether gradients of what depends on such Values were taken as plain numbers.
        questions: answers what the function asks of numbers; None where it may not ask. See questions.py.
        answers_on: gives what answers questions on a tape inside of an iteration that leaves them to the program; None
            elsewhere. See choices.py.
        chooses: whether the iterations of mg.vmap leave to the program what they ask.
        selects: whether choices between short branches that raise nothing are computed on both sides.
        has_many_choices: whether there were so many of them that they had better be.
        asks_in_iterations: whether such an iteration has asked, so that the trace is repeated and leaves it to the
            program.
        decides_at_once: whether a comparison is asked for its truth when it is made, as the code writes ``is True``.
        takes_maps: whether what mg.vmap runs may be recorded once for many iterations.
        takes_calls: whether functions of whole arrays may be called when the program runs.
        counts_calls: whether calls of one such function are counted, of which a loop makes many.
        calls_often: whether there were many of one, so that the trace is repeated and leaves them to the program.
        leaves_calls: whether it does.
        leaves_scans: whether large iterations of a scan were left to the program, although nobody asked for that.
        writes_scans: whether all iterations of such scans are written out, as derivatives in many directions are faster
            then.
        maps: the iterations and the calls that were recorded so.
        repeated: the positions of what was recorded for a first item, which a map computes again with all others.
        takes_decisions: whether the program may decide on numbers, as mg.cond does.
        decisions: what it decides.
        parts: for each decision the functions that it consists of; see decisions.py.
        follows: whether a decision could not be left to the program: then the trace is repeated and follows them all.
        takes_lanes: whether operations may be written many at a time.
        observer: what looks for sources; it may rest while no code of the user runs. See sources.py.
        reading: the generator that reads the numbers of Values; see largest.py.
        looks_into_maps: whether a derivative was asked for that needs all iterations written out.
        writes_out: whether all iterations are written out.
        in_lanes: whether gradients are always written many at a time, as they would be for more rows.
        known_rows: the positions of symbols in the place of known numbers, the last arguments; see of_rows.py.
    """

    takes_lanes = True
    questions: Questions | None = None
    answers_on: Callable[[Tape], Questions] | None = None
    chooses = asks_in_iterations = decides_at_once = selects = has_many_choices = False
    reading: Reading | None = None
    counts_calls = calls_often = leaves_calls = leaves_scans = writes_scans = False
    takes_maps = takes_calls = looks_into_maps = takes_decisions = follows = writes_out = in_lanes = False
    arrays: ClassVar[ModuleType]  # symbol_arrays.py, which stands above this module and sets it, as the next
    derivatives: ClassVar[type[Any]]  # Derivatives, of derivatives.py

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
        self.exactness: dict[int, int] = {}  # how often numbers were rounded, as far as somebody asked
        self.attributes: dict[int, Collection[str]] = {}
        self.bounds: dict[int, promotion.Bounds] = {}
        self._depths: dict[int, int] = {}
        self.maps: list[Mapped | Called] = []
        self._calls, self._steps = Counter[Any](), Counter[Any]()
        self.repeated: list[range] = []
        self.decisions: list[Decided] = []
        self.parts: list[Any] = []  # of each decision, what has written it
        self.known_rows: list[int] = []
        self.remarks: list[str] = []
        self.gone_through = 0  # how many operations there were when all of them were compared at once

    def argument(self, number: int, leaf: Any, kind: Any, bounds: promotion.Bounds) -> Symbol:
        """A new number in the place of a Value or a plain number among the arguments.

        Args:
            number: its index among all arguments.
            leaf: the Value or the number.
            kind: the class or the dtype of a plain number.
            bounds: the least and the largest that an integer may be.
        """
        if isinstance(leaf, Value) and leaf.requires_grad:
            self._trained.add(len(self.operations))
        if isinstance(leaf, Value) and (attributes := user_attributes(leaf)):
            self.attributes[len(self.operations)] = attributes.keys()
            return self._symbol(self.operations.append_input(number), Attributed)
        symbol = self.input(number, Value if isinstance(leaf, Value) else kind)
        if isinstance(symbol, IntSymbol):
            low, high = promotion.limits(symbol.kind)
            self.bounds[symbol._position] = max(low, bounds[0]), min(high, bounds[1])
        return symbol

    def standing_for(self, number: int, rows: Any, bounds: promotion.Bounds) -> Any:
        """An array or a list of known numbers, with symbols in the place of these.

        Args:
            number: its index among all such arrays.
            rows: the array or the list.
            bounds: the least and the largest that its integers may be.
        """
        given = Structure(rows.astype(np.uint8) if is_array(rows) and rows.dtype == bool else rows)
        symbols = symbols_of(self, given, bounds)
        if is_array(rows) and rows.dtype == bool:
            symbols = [symbol.as_plain(bool) for symbol in symbols]
        self.known_rows += [symbol._position for symbol in symbols]
        return given.rebuilt(symbols, array_of_symbols)

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
        made = list(map(new, repeat(kind, len(positions))))
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
        found = self.require(symbol, promotion.limits(symbol.kind), promotion.bounds_of_result(primitive, bounds))
        if self.in_lanes and (rows := rows_in_use()) is not None:
            depths = [self._depths.get(self.position(operand), 0) for operand in operands if isinstance(operand, Plain)]
            self._depths[symbol._position] = depth = 1 + max(depths, default=0)
            # Of more rows, a sum may be out of range; a count of bools is not
            rows.sums_integers = rows.sums_integers or (depth > _DEEPEST and found[1] > _LARGEST_COUNT)

    def _bounds_of(self, operand: Any, kind: Any) -> promotion.Bounds:
        """The bounds of an integer operand of an operation whose result is of a kind; an int counts as of that kind."""
        if not isinstance(operand, Plain):
            promotion.check_constant(operand, kind if promotion.kind_of_number(operand) in (int, bool) else int)
            return int(operand), int(operand)
        if isinstance(operand, BoolSymbol):
            return 0, 1
        allowed = promotion.limits(kind if operand.kind is int else operand.kind)
        return self.require(operand, allowed, self.bounds.get(self.position(operand)))

    def require(
        self, integer: Any, allowed: promotion.Bounds, known: promotion.Bounds | None = None
    ) -> promotion.Bounds:
        """Let the program check that an integer is within bounds, or else the function runs eagerly.

        Args:
            integer: a symbol.
            allowed: the bounds.
            known: narrower bounds that it is known to be within, if any: then nothing is checked.

        Returns:
            The bounds that hold from now on.
        """
        (low, high), position = allowed, self.position(integer)
        if known is None or known[0] < low or known[1] > high:
            known = low, high
            distance = primitives.abs(self._symbol(position, FloatSymbol) - (low + high) / 2)
            self.apply(primitives.sqrt, (high - low) / 2 - distance)  # it is NaN, which is noticed
        self.bounds[position] = known
        return known

    def _written(self, operation: tuple[Any, ...], is_repeatable: bool, kind: type[Symbol]) -> Symbol:
        """A symbol for an operation; a repeatable one that is recorded already is not recorded again."""
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
        """Record the operations of a composite, so that the program notices where one of them would raise."""
        assert primitive.composite is not None
        questions, self.questions = self.questions, None
        with suppress(TraceError):  # then it runs in Python, which says where it raises
            primitive.composite(Operations(lambda operation: operation), *operands)
        self.questions = questions

    def size_from(self, position: int) -> int:
        """How many operations were recorded from a position on; a sum of n products counts as n."""
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
        return DetachedTape(self)

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

    def positions_read(self, values: Sequence[Value], primitive: Primitive | None, index: int) -> list[int]:
        """The positions of Values, which are operands of one primitive."""
        positions: list[Any] = [*map(self.values.get, values)]  # weights come again and again, for each sample
        return [self.position(value, primitive, index) for value in values] if None in positions else positions

    def positions_of_literals(self, numbers: Sequence[float]) -> list[int]:
        """The positions of plain numbers, no two of which are the same; new ones are written down."""
        names = [number or (number, math.copysign(1.0, number)) for number in numbers]
        fresh = [(name, number) for name, number in zip(names, numbers, strict=True) if name not in self.placed]
        positions = self.operations.append_literals([number for _, number in fresh])
        self.placed.update(zip([name for name, _ in fresh], positions, strict=True))
        return list(map(self.placed.__getitem__, names))

    def sum_of_products(self, xs: Sequence[Any], ys: Sequence[Any], start: Any) -> Any:
        """Write start + xs[0] * ys[0] + xs[1] * ys[1] ... as one operation; give None if all are plain numbers."""
        kinds = {*map(type, xs[:1]), *map(type, ys[:1])}  # nearly always they tell
        if Symbol not in kinds:
            kinds = {type(start), *map(type, xs), *map(type, ys)}
        if Symbol in kinds or (Value in kinds and kinds <= _FLOATS_AND_VALUES):
            kind = Symbol
        else:
            operands = start, *xs, *ys
            of_each_class = dict(zip(map(type, operands), operands, strict=True)).values()
            kinds = set(map(promotion.kind_of_number, of_each_class))
            if not any(isinstance(operand, Value) for operand in of_each_class) or not kinds <= _FLOATS:
                return None  # what is made of integers may have to be checked step by step
            kind = Symbol if Value in kinds else FloatSymbol
        if start is not self._start[0]:  # nearly always it is the same 0.0
            self._start = start, self.position(start, SUM_OF_PRODUCTS)
        before = len(self.rows)
        written = SUM_OF_PRODUCTS, self._start[1], self._row(xs, 1), self._row(ys, 2)
        return self._written(written, len(self.rows) == before, kind)

    def sums_of_products(self, starts: Integers | int, first: Integers, second: Integers) -> Integers:
        """Write many down, and give their positions, given what they start with and the numbers of their rows."""
        operands = [starts, first, second]
        begin = self.operations.append_block([SUM_OF_PRODUCTS], 1, len(first), [operands])
        return np.arange(begin, begin + len(first))

    def row_numbers(self, positions: Integers) -> Integers:
        """The numbers of rows of factors, given the positions of these."""
        rows = np.ascontiguousarray(positions)
        keys = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel().tolist()
        numbers = {
            key: self.rows.setdefault(tuple(rows[at].tolist()), len(self.rows))
            for key, at in dict(zip(keys, range(len(keys)), strict=True)).items()
        }
        return np.array([numbers[key] for key in keys])

    def _row(self, factors: Sequence[Any], side: int) -> int:
        """The number of a row of factors. Rows recur: weights for each sample, inputs for each neuron."""
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
        if not isinstance(y, Value) and (y := bound_of(compare, x, y)) is None:
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

    def may_choose(self) -> bool:
        """Whether the trace may be repeated to leave to the program what iterations and branches ask."""
        questions = self.questions
        return self.takes_decisions and not self.chooses and questions is not None and not questions.are_given()

    def decides(self) -> bool:
        """Whether the program decides on numbers: not where it asks questions, or where it has parts of other kinds."""
        return self.takes_decisions and not self.maps and not (self.questions is not None and self.questions.count())

    @contextmanager
    def following_errors(self) -> Generator[None, None, None]:
        """Let the function be traced again if an error is raised inside, and follow its decisions, if that may be."""
        try:
            yield
        except Exception as error:
            self.outermost.follows = self.may_follow and not is_of_handler(error)
            raise

    def follow(self) -> None:
        """End a trace in which the program decides, if decisions may also be followed."""
        if self.may_follow:
            self.outermost.follows = True
            raise TraceError("what depends on a decision is asked for")  # and it is traced again

    def look_into_scans(self) -> None:
        """End a trace in which large scans were left to the program: derivatives in many directions are asked for."""
        outermost = self.outermost
        if outermost.leaves_scans:
            outermost.writes_scans = True
            raise TraceError("derivatives look into large scans")  # and it is traced again

    def asked(self) -> Questions | None:
        """What answers questions about numbers; None where they are refused."""
        if self.is_open and (answers_on := self.outermost.answers_on) is not None:
            return answers_on(self)
        if self.is_open:
            if self.decisions:
                self.follow()
            self._look_into_maps()  # their results are no numbers before the program runs
        return self.questions if self.is_open else None

    @contextmanager
    def answering(self, answers_on: Callable[[Tape], Questions] | None) -> Generator[None, None, None]:
        """Let questions inside be answered so; for None, they may not be asked."""
        before, self.answers_on = self.answers_on, answers_on
        try:
            yield
        finally:
            self.answers_on = before

    def of_elements(self, ufunc: Any, method: str, inputs: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Write down what a function of NumPy that works element by element does."""
        return Tape.arrays.of_elements(ufunc, method, inputs, settings)

    def of_arrays(self, function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        """Write down what another function of NumPy does."""
        return Tape.arrays.of_arrays(function, arguments, settings)

    def refused(self, what: str, instead: str) -> NoReturn:
        """Say that this use of numbers cannot be written down."""
        refuse(what, instead)

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
        """``x * 1`` for each number, excluded from common subexpression elimination, to differentiate by."""
        positions = np.array(self.positions(scalars), dtype=np.int64)
        ones = self.operations.append_literals([1.0] * len(positions))  # each of which is used nowhere else
        begin = self.operations.append_block([primitives.mul], 1, len(positions), [[positions, np.array(ones)]])
        made = range(begin, begin + len(positions))
        self._copies.update(dict.fromkeys(made, source))
        return self.symbols(made, Symbol)

    def is_given(self, position: int) -> bool:
        """Whether a position is that of an input, or of what a transform differentiates by."""
        return self.operations.primitives[position] is INPUT or position in self._copies

    def reaches(self, results: Sequence[Any], sources: Sequence[Any]) -> bool:
        """Whether a gradient flows to results from a source: a transform, or None for Values that require one."""
        with resting(self.observer):
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
        """A derivative, or a Value that was differentiated, as a plain number."""
        position = self.position(value)
        return self._symbol(
            self.operations.append(primitives.detach, position) if self.as_floats else position, FloatSymbol
        )

    def derivatives_of(self, results: Collection[Any], sources: Collection[Any]) -> Any:
        """What differentiates any symbols on this tape; see derivatives.py."""
        return self.derivatives(self)

    def _look_into_maps(self) -> None:
        """End a trace in which a function is written once for many iterations: it has to be written out."""
        if self._has_iterations():
            self.looks_into_maps = True
            raise TraceError("derivatives look into what mg.vmap runs")  # and it is traced again

    def _has_iterations(self) -> bool:
        """Whether a function is written once for many iterations."""
        return any(isinstance(each, Mapped) for each in self.maps)

    def add_map(self, trace: Trace, fixed: Sequence[int], moving: Any, sums: int = 0) -> Mapped:
        """Record a trace that runs in many iterations.

        Args:
            trace: of one iteration.
            fixed: the positions of the inputs that all iterations share.
            moving: those of the other inputs, with a row for each iteration.
            sums: how many outputs, the last ones, are only needed as sums over all iterations.
        """
        moving, width = np.array(moving, dtype=np.int64), len(trace.outputs) - sums
        size = len(moving) * width
        positions = np.array(self.operations.append_inputs(["mapped"] * (size + sums)))
        results = positions[:size].reshape(len(moving), width)
        made = Mapped(trace, np.array(fixed, dtype=np.int64), moving, results, positions[size:])
        self.maps.append(made)
        return made

    def write_out(self, trace: Trace, fixed: Sequence[int], moving: Any) -> Any:
        """Record all iterations of a trace, one operation for all of them after the other; see add_map.

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
        """The results of a function of arrays that the program calls when it runs; None where it may not."""
        if not self.takes_calls:
            return None
        if self.decisions:
            self.follow()
        operands = [a.astype(float) if a.dtype != object else self.positions_in(a) for a in arrays]
        elements = [x for a in arrays if a.dtype == object for x in set(map(type, a.flat))]
        kind = FloatSymbol if all(map(is_plain_kind, elements)) else Symbol
        return tuple(self.symbols_at(positions, kind) for positions in self._call(function, operands, has_gradient))

    def calls_again(self, function: ArrayFunction, size: float) -> bool:
        """Take note of another call of a function of matrices of a size; whether it is one of many."""
        self._calls[function] += 1
        self._steps[function] += int(size) ** 3
        if self.counts_calls and self._calls[function] > _FEW_CALLS and self._steps[function] > _FEW_STEPS:
            self.calls_often = True
            raise TraceError("a function of arrays is called again and again")  # and it is traced again
        return self.leaves_calls

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
        if set(map(type, numbers)) == {float}:
            names = [number or (number, math.copysign(1.0, number)) for number in numbers]
            self.positions_of_literals([*dict(zip(names, numbers, strict=True)).values()])
            return list(map(self.placed.__getitem__, names))
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
        """The trace until now, without what derivatives do not read: outputs, and what is checked."""
        written = self.operations, tuple(self.tables), tuple(self.rows)
        return Trace(*written, (), (), maps=tuple(self.maps), decisions=tuple(self.decisions))

    def finish(self) -> None:
        """Empty the tape: a symbol that is kept somewhere would keep all of it."""
        self.operations, self.questions, self.reading = Entries(), None, None
        self._equals = EqualsInOrder()
        self._start = _NONE_KNOWN
        written = self.known, self.values, self.placed, self.roles, self.tables, self.rows, self._rows_known
        positions = self.checked, self.exactness, self.attributes, self.bounds, self._depths
        for each in (*written, *positions, self._reached, self.parts):
            each.clear()

    def _symbol(self, position: int, kind: type[Symbol]) -> Symbol:
        """A new symbol for what stands at a position."""
        symbol = new(kind)
        symbol._position, symbol._tape, symbol._is_used = position, self, True
        return symbol


class _Reached(set[int]):
    """The positions from which a gradient flows to a source, among the first ones; ``size`` is how many were asked."""

    size = 0


def symbols_of(tape: Tape, arguments: Structure, bounds: promotion.Bounds) -> list[Symbol]:
    """A symbol for each number in the arguments; integers are within the bounds."""
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


def array_of_symbols(like: Any, parts: list[Any]) -> Any:
    """An array like one of the arguments, with these symbols as its elements."""
    if not parts:
        return like.copy()
    array = array_of(like, parts)
    return Tape.arrays.arranged(array) if any(map(is_unknown, parts)) else array


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
    """Stop the garbage collector: a trace makes no garbage, and the collector would go through all of it again."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
