"""Body: the recording of one iteration of a vmap, which stands for many.

The body of ``vmap(lambda h, x: mg.tanh(w * h + x))`` runs on symbols for h and x on a tape of its own:

    0  given        h
    1  given        x
    2  outside      w, which stands on the tape around this one
    3  mul   2 0
    4  add   3 1
    5  tanh  4
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.containers import remade
from micrograd.compiler.guards.refusals import in_place_of_others, refuse
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import INPUT, LITERAL, SUM_OF_PRODUCTS, Trace
from micrograd.compiler.ir.safe import is_safe
from micrograd.compiler.tracing.symbol_arrays import SymbolArray
from micrograd.compiler.tracing.symbols import Given, Symbol, is_plain
from micrograd.compiler.tracing.tape import Tape, tracing
from micrograd.compiler.tracing.trace import numbered
from micrograd.engine.copying import user_attributes
from micrograd.engine.value import Value
from micrograd.engine.value_arrays import ValueArray

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from micrograd.compiler.tracing.questions import Questions
    from micrograd.engine.primitive import Primitive


# What is given and returned


class UnlikeError(Exception):
    """An argument or a result of an iteration cannot be recorded once for all iterations."""


def told(nested: Any, of_value: Callable[[Value], Any]) -> Any:
    """The structure of what an iteration is given or returns, to be compared: equal for iterations of one form.

    Args:
        nested: what is given or returned in the iteration.
        of_value: what stands for a Value.

    Raises:
        UnlikeError: if there is anything else than numbers, texts, None, lists, tuples, dicts and arrays of Values.
    """
    kind = type(nested)
    if issubclass(kind, Value):
        return kind, of_value(nested)
    if _is_sequence(kind):
        return kind, *[told(part, of_value) for part in nested]
    if kind is dict and _STATIC.issuperset(map(type, nested)):
        return kind, *[(type(name), name, told(part, of_value)) for name, part in nested.items()]
    if kind in (np.ndarray, ValueArray, SymbolArray) and nested.dtype == object:
        return kind, nested.shape, *[told(part, of_value) for part in nested.ravel().tolist()]
    if kind is float:
        return kind, pack("d", nested)
    if kind in _STATIC:
        return kind, nested
    raise UnlikeError


def filled(nested: Any, of_value: Callable[[Value], Any]) -> Any:
    """The same containers with each Value replaced by what a function makes of it."""
    kind = type(nested)
    if issubclass(kind, Value):
        return of_value(nested)
    if _is_sequence(kind):
        return remade(nested, [filled(part, of_value) for part in nested])
    if kind is dict:
        return remade(nested, [filled(part, of_value) for part in nested.values()])
    if not issubclass(kind, np.ndarray):
        return nested
    elements = np.empty(nested.size, dtype=object)
    for position, part in enumerate(nested.ravel().tolist()):
        elements[position] = filled(part, of_value)
    return elements.reshape(nested.shape).view(kind)


_STATIC = frozenset((int, bool, str, type(None)))
_SHORT = 64  # operations that take no longer than a decision


def _is_sequence(kind: type) -> bool:
    """Whether it is a list or tuple that is nothing else, or a named tuple."""
    return kind is list or kind is tuple or (kind.__bases__ == (tuple,) and hasattr(kind, "_fields"))


class Leaves:
    """The Values among what an iteration is given, each once.

    Attributes:
        all: in order.
    """

    def __init__(self) -> None:
        self.all: list[Value] = []
        self._numbers: dict[int, int] = {}

    def number(self, leaf: Value) -> int:
        """The number of a Value among them."""
        number = self._numbers.setdefault(id(leaf), len(self.all))
        if number == len(self.all):
            self.all.append(leaf)
        return number

    def described(self, leaf: Value) -> Any:
        """What stands for a Value in ``told``: its number, and whether gradients may flow to it.

        Raises:
            UnlikeError: if it is of a class of the user's, or has attributes of the user's.
        """
        is_own = leaf._position in leaf._tape.attributes if isinstance(leaf, Symbol) else type(leaf) is not Value
        if is_own or user_attributes(leaf):
            raise UnlikeError
        return self.number(leaf), isinstance(leaf, Symbol) or leaf.requires_grad


def plain_rows(rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
    """The symbols of each row, if it is plain to see that ``told`` is equal for all rows; else nothing.

    That is so if all rows have symbols of the same classes and arrays of the same shapes, and each symbol once.
    """
    if len({tuple(map(_form, row)) for row in rows}) > 1:
        return []
    rows = [list(chain.from_iterable(map(_symbols_in, row))) for row in rows]
    kinds = [set(map(type, column)) for column in zip(*rows, strict=True)]
    if any(len(each) > 1 for each in kinds) or not all(type(x) is Symbol or is_plain(x) for x in rows[0]):
        return []
    are_told_alike = all(len(set(map(id, row))) == len(row) for row in rows)
    return rows if are_told_alike and not any(map(_attributes_of, chain(*rows))) else []


def _form(part: Any) -> Any:
    return (SymbolArray, part.shape) if type(part) is SymbolArray else type(part)


def _symbols_in(part: Any) -> Sequence[Any]:
    return part.ravel().tolist() if type(part) is SymbolArray else (part,)


_attributes_of = attrgetter("__dict__")
_position_of_symbol, _tape_of = attrgetter("_position"), attrgetter("_tape")


# One iteration


def returned(nested: Any) -> Structure:
    """The result of a function, in which symbols that it was given have become ordinary symbols."""
    return Structure(
        filled(nested, lambda leaf: leaf._tape._symbol(leaf._position, Symbol) if type(leaf) is Given else leaf),
        returned=True,
    )


class Body(Tape):
    """What a function writes down in one iteration.

    Args:
        outer: the tape around it, whose numbers are inputs here, as Values from outside are.

    Attributes:
        size: how many operations it is, as size_from counts them.
        has_refused: whether something was refused that differs between iterations; the function may have caught that.
        rounded: the numbers of those inputs that may have been rounded.
        asks_what_is_reached: whether the iteration depends on which of its inputs require gradients.
    """

    def __init__(self, outer: Tape) -> None:
        super().__init__(outer.as_floats, outer.is_recorded)
        self._outer, self.decides_at_once = outer, outer.decides_at_once
        self._given: list[Symbol] = []
        self._outside: dict[int, int] = {}  # the positions here, by those on the tape around
        # For the position of each input: where on the tape, and as which operand of which primitive, it is first used.
        self._uses: dict[int, tuple[int, Primitive | None, int]] = {}
        self._result: Any = None
        self._result_told: Any = None
        self.size = 0
        self.rounded: Collection[int] = ()
        self.has_refused = self.asks_what_is_reached = False
        self._now: Sequence[Value] = ()  # what is given

    def record(self, function: Callable[..., Any], arguments: Any, leaves: Leaves) -> None:
        """Run a function on symbols in the place of the Values among its arguments.

        Raises:
            UnlikeError: if it cannot be repeated.
            Exception: whatever the function raises, which it may not do where it runs as it is written.
        """
        self._now = leaves.all
        for number, leaf in enumerate(leaves.all):
            kind: type[Symbol] = type(leaf) if is_plain(leaf) else Given  # type: ignore[assignment]  # it is plain
            self._given.append(self._symbol(self.operations.append_input(("given", number)), kind))
        with tracing(self), in_place_of_others():
            self._result = function(*filled(arguments, lambda leaf: self._given[leaves.number(leaf)]))
        if self.has_refused:
            raise UnlikeError
        self._result_told = told(self._result, self._describing())
        self.size = self.size_from(len(self._given))
        self._entries = Trace(
            self.operations, tuple(self.tables), tuple(self.rows), (), (), checked=tuple(self.checked)
        )
        self._fixed: list[tuple[Any, int]] = [*self.values.items(), *self._outside.items()]
        self.finish()

    def written(self) -> Any:
        """What was recorded, equal for two iterations if the function does the same in both."""
        entries = self._entries
        recorded = tuple(entries.operations), entries.tables, entries.rows, entries.checked
        return *recorded, frozenset(self._copies), tuple(self._uses.items()), self._result_told

    def is_safe(self) -> bool:
        """Whether what was recorded raises for no numbers."""
        return all(
            primitive in (INPUT, LITERAL, SUM_OF_PRODUCTS) or is_safe(primitive)
            for primitive in self._entries.operations.primitives
        )

    def is_simple(self) -> bool:
        """Whether it may run where it is not needed: it is short, raises for no numbers, and decides nothing."""
        return self.size <= _SHORT and self.is_safe() and not (self.maps or self.decisions)

    def mapped(self, rows: Sequence[Sequence[Value]]) -> list[Any]:
        """Record all iterations on the tape around this one, and give the result of each.

        Args:
            rows: the Values of each iteration.

        Returns:
            The results; nothing if the function has to run for each iteration.
        """
        outer, own = self._outer, dict[int, int]()
        filled(self._result, lambda leaf: self._note(leaf, own))
        if not own or self.asks_what_is_reached or self.takes_numbers:
            return []
        fixed = self._positions_outside()
        if all(isinstance(leaf, Symbol) for leaf in rows[0]) and {outer}.issuperset(map(_tape_of, chain(*rows))):
            moving = np.fromiter(map(_position_of_symbol, chain(*rows)), np.int64).reshape(len(rows), -1)
        else:
            uses = [self._uses[position][1:] if position in self._uses else () for position in range(len(self._given))]
            moving = np.array(
                [[outer.position(leaf, *use) for leaf, use in zip(row, uses, strict=True)] for row in rows],
                dtype=np.int64,
            )
        inputs = tuple(position for _, position in self._fixed), tuple(range(len(self._given)))
        trace = self._entries._replace(inputs=inputs, outputs=tuple(own))
        results = (
            outer.write_out(trace, fixed, moving) if outer.writes_out else outer.add_map(trace, fixed, moving).results
        )
        if self._is_own(self._result):
            return outer.symbols(results.ravel().tolist(), type(self._result))
        return [
            self._result_of(given, dict(zip(own, positions, strict=True)))
            for given, positions in zip(rows, results.tolist(), strict=True)
        ]

    def part(self, outputs: Sequence[int]) -> tuple[Trace, list[int]]:
        """The trace with outputs at these positions, and the positions of its inputs on the tape around.

        The last inputs are the arguments, which have no positions there yet.
        """
        inputs = [[*(position for _, position in self._fixed), *range(len(self._given))]]
        inputs += [each.made for each in self.decisions]
        decisions, needed = numbered(self.decisions, inputs, len(self._entries.operations))
        trace = self._entries._replace(
            inputs=tuple(map(tuple, inputs)), outputs=(*outputs, *needed), decisions=decisions, needed=len(needed)
        )
        return trace, self._positions_outside()

    def _positions_outside(self) -> list[int]:
        """The positions of its inputs, without the arguments, on the tape around."""
        return [
            self._outer.position(source, *self._uses[position][1:]) if isinstance(source, Value) else source
            for source, position in self._fixed
        ]

    def _describing(self) -> Callable[[Value], Any]:
        """What stands for a Value of the result in ``told``: where it was made, or which one from outside it is."""
        objects: dict[int, int] = {}

        def described(leaf: Any) -> Any:
            if user_attributes(leaf):
                raise UnlikeError
            if not self._is_own(leaf):
                return id(leaf)
            return leaf._position, self._is_given(leaf), objects.setdefault(id(leaf), len(objects))

        return described

    def _is_own(self, leaf: Any) -> bool:
        return isinstance(leaf, Symbol) and leaf._tape is self

    def _is_given(self, leaf: Any) -> bool:
        return leaf._position < len(self._given) and self._given[leaf._position] is leaf

    def position(self, operand: Any, primitive: Primitive | None = None, index: int = 0) -> int:
        """The position of an operand; see Tape. A symbol of the tape around becomes an input."""
        if not isinstance(operand, Value):
            return super().position(operand, primitive, index)
        if isinstance(operand, Symbol):
            if operand._tape is not self:
                outside = self._outer.position(operand)
                if outside not in self._outside:
                    self._outside[outside] = self.operations.append_input(("outside", outside))
                return self._outside[outside]
            position = operand._position
            if position >= len(self._given):
                return position
        else:
            if operand not in self.values:
                self.values[operand] = self.operations.append_input(operand)
            position = self.values[operand]
        self._uses.setdefault(position, (len(self.operations), primitive, index))
        return position

    def positions(self, numbers: Sequence[Any]) -> list[int]:
        """The positions of several; each is noted."""
        return list(map(self.position, numbers))

    def positions_read(self, values: Sequence[Value], primitive: Primitive | None, index: int) -> list[int]:
        """The positions of operands of one primitive; each is noted."""
        return [self.position(value, primitive, index) for value in values]

    def asked(self) -> Questions | None:
        """What answers questions, if the program does; else nothing: another iteration may have another answer."""
        if (answers_on := self.outermost.answers_on) is not None:
            return answers_on(self)
        self.has_refused = True
        if self.takes_decisions and self.outermost.may_choose():
            self.outermost.asks_in_iterations = True
        return None

    def around(self, name: tuple[str, int]) -> tuple[Tape, int]:
        """The tape around this one, and where on it an input is, by its name."""
        kind, number = name
        return self._outer, number if kind == "outside" else self._outer.position(self._now[number])

    def at_home(self, leaf: Any) -> Any:
        """The symbol on this tape for one of the tape around; anything else is returned as it is."""
        return (
            self._symbol(self.position(leaf), Symbol) if isinstance(leaf, Symbol) and leaf._tape is not self else leaf
        )

    def outside(self, position: int) -> Symbol | None:
        """The symbol for a position on the tape around; None if that was not read."""
        found = self._outside.get(position)
        if found is None:
            found = next((own for value, own in self.values.items() if self._outer.position(value) == position), None)
        return None if found is None else self._symbol(found, Symbol)

    @property
    def outermost(self) -> Tape:
        """The tape of the whole function."""
        return self._outer.outermost

    def reaches(self, results: Sequence[Any], sources: Sequence[Any]) -> bool:
        """Whether a gradient flows to results from a source; see Tape."""
        self.asks_what_is_reached = True
        found = super().reaches(results, sources)
        self._outer.depends_on_recording = self._outer.depends_on_recording or self.depends_on_recording
        return found

    def is_reached(self, result: Value, source: Any) -> bool:
        """Whether a gradient flows to a symbol of this tape or one around it, or to a Value, from a source."""
        if isinstance(result, Symbol) and result._tape is not self:
            return self._outer.is_reached(result, source)
        return super().is_reached(result, source)

    def _is_source(self, position: int, source: Any) -> bool:
        if self.operations.primitives[position] is INPUT and isinstance(name := self.operations[position][1], tuple):
            kind, number = name
            if kind == "given":
                return self._outer.is_reached(self._now[number], source)
            return self._outer.position_is_reached(number, source)
        return super()._is_source(position, source)

    def _has_source(self, source: Any) -> bool:
        """What is given may be one, or come from one."""
        return True

    def derivatives_of(self, results: Collection[Any], sources: Collection[Any]) -> Any:
        """What differentiates by copies that were made in this iteration; others, which lead out of it, are refused."""
        if not all(map(self._is_own, results)) or not all(
            self._is_own(source) and source._position in self._copies for source in sources
        ):
            self.has_refused = True
            refuse("a derivative by what was there before an iteration of a loop", "Write the loop in Python.")
        return super().derivatives_of(results, sources)

    def _note(self, leaf: Any, positions: dict[int, int]) -> Any:
        """Number the position of what was made in the iteration."""
        if self._is_own(leaf) and not self._is_given(leaf):
            positions.setdefault(leaf._position, len(positions))
        return leaf

    def _result_of(self, given: Sequence[Value], positions: Mapping[int, int]) -> Any:
        """The result of an iteration with these arguments, whose own results are at these positions around."""
        made: dict[int, Any] = {}

        def now(leaf: Any) -> Any:
            if not self._is_own(leaf):
                return leaf
            if self._is_given(leaf):
                return given[leaf._position]
            if id(leaf) not in made:
                made[id(leaf)] = self._outer._symbol(positions[leaf._position], type(leaf))
            return made[id(leaf)]

        return filled(self._result, now)
