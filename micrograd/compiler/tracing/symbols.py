"""Symbols: numbers that are not known yet, in the place of Values, floats, ints and bools.

A symbol has the operators and the methods of what it stands for. Each of them records an operation on the symbol's tape
and returns another symbol:

    x * y      writes  mul, position of x, position of y      and is the symbol of the new position

What would freeze a number into the program raises a TraceError: the float of a symbol, or its text. Its truth and its
int are questions, where the tape takes them; see questions.py.
"""

from __future__ import annotations

import math
import operator
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from micrograd._support.checks import is_array, is_unknown
from micrograd.compiler.guards.refusals import FOR_AN_INDEX, THE_INT, TraceError, refuse, refuse_index, running_line
from micrograd.compiler.guards.sources import resuming
from micrograd.compiler.ir.entries import TAKE
from micrograd.compiler.tracing import promotion
from micrograd.compiler.tracing.counting import number_of
from micrograd.compiler.tracing.largest import Reading, is_handed_on
from micrograd.engine import further_primitives, primitives
from micrograd.engine.node import Node
from micrograd.engine.primitive import Primitive, named
from micrograd.engine.recorder import float_read, recording_in_use
from micrograd.engine.tracer import tracer_on_top
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


new: Callable[[type[Symbol]], Symbol] = object.__new__


def is_plain_kind(kind: type) -> bool:
    """Whether numbers of a class are plain, or stand for plain ones."""
    return not issubclass(kind, Value) or issubclass(kind, Plain)


def _refused(what: str, instead: str) -> Callable[..., NoReturn]:
    return lambda *_: refuse(what, instead)


def _read(symbol: Symbol) -> FloatSymbol:
    """``.data``, which is refused unless a generator hands it on to ``max``; see largest.py."""
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
    """A method that gives the int of a symbol for this call, where the tape takes questions."""

    def whole(self: Symbol, *digits: Any) -> Any:
        if digits not in _NO_DIGITS:
            return refuse("round to digits", "Write np.round(x, digits), which rounds as NumPy does.")
        if (questions := self._tape.asked()) is None:
            return refuse(THE_INT, FOR_AN_INDEX)
        if not is_plain(self):
            float_read()
        return questions.whole(self._position, of_number)

    return whole


_NO_DIGITS = (), (None,)


class _Unknown:
    """The number of a symbol. Computing with it is refused, as that can only happen after the trace."""

    __float__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refused(
        "a symbol, used after its trace has ended,", "Return what is needed from the function."
    )
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = __float__
    __bool__ = __eq__ = __float__
    __hash__ = None  # type: ignore[assignment]  # as of all classes with an equality of their own


def _operator(primitive: Primitive, general: Any, reflected: bool = False, takes_numbers: bool = True) -> Any:
    """An operator of Value with a fast path for the usual operands: symbols of the tape, and numbers that it knows.

    Args:
        primitive: what the fast path records.
        general: the operator of Value, for all other operands.
        reflected: whether the symbol is on the right.
        takes_numbers: whether the fast path takes plain numbers and Values from outside.
    """

    @resuming
    def operator(self: Symbol, other: Any) -> Any:  # tracing spends its time here
        tape: Any = self._tape
        try:
            in_use: Any = recording_in_use()
            if in_use is not None:
                in_use = in_use.recorder  # a traceback that someone keeps may keep no Recording
            if in_use is tape and type(self) is Symbol and tape.is_open:
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
                    symbol = new(Symbol)
                    symbol._position, symbol._tape, symbol._is_used = len(written.primitives), tape, False
                    written.first.append(first)  # as Entries.append does
                    written.second.append(second)
                    written.primitives.append(primitive)
                    return symbol
        finally:
            if tape.observer is not None and tape.observer.is_paused:
                tape.observer.resume()
        return general(self, number_of(other))

    return named(operator, primitive)


_INSTEAD_OF_EQUALITY = "Compare with < and <=, or choose with mg.where and mg.take."


class Symbol(Value):
    """A number that is not known yet, in the place of a Value or of a float."""

    known = False

    # A symbol has no uses, no gradient and no operands. These slots hold its position on the tape, the tape, and
    # whether it has been an operand: an operation on one that has not cannot be a repetition, so it is not looked up.
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
            refuse("==", _INSTEAD_OF_EQUALITY)
        self._tape.tell_apart(self)
        return self is other

    def __ne__(self, other: object) -> Any:
        """Whether == does not hold."""
        if is_array(other):
            return NotImplemented
        if not isinstance(other, Value) and not is_plain(self):
            refuse("!=", _INSTEAD_OF_EQUALITY)
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
    data = property(_read, _refused("setting .data", "Set it outside of the function."))
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
        if not is_plain(self) and self._tape.is_given(self._position):
            refuse("a copy of a Value that is an argument", "Use it as it is: no gradient would flow to it.")
        return self._tape._symbol(self._position, type(self))

    def __repr__(self) -> str:
        return f"<symbol {self._position}>"


class Picked(Symbol):
    """A symbol for one of two Values, as NumPy's maximum picks them; which one is not known."""

    __slots__ = ()
    __hash__ = Symbol.__hash__

    def __eq__(self, other: object) -> Any:
        """Whether it is that Value depends on numbers, unless it is this one."""
        if is_array(other):
            return NotImplemented
        if self is not other:
            refuse("== of a Value that was picked from others", "Write x >= x.max() for where x is largest.")
        return True


class Given(Symbol):
    """A symbol for a Value that differs between iterations: to ask for its identity, label or text is refused."""

    __slots__ = ()

    def __eq__(self, other: object) -> Any:
        """Whether it is that Value."""
        return True if self is other else self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        self._tape.has_refused = True
        refuse("which Value is given in an iteration of a loop", "Write the loop in Python.")

    __hash__ = __copy__ = __repr__ = __str__ = _refuse
    label = is_leaf = requires_grad = property(_refuse, _refuse)


class Attributed(Symbol):
    """A symbol for an argument on which the user has set attributes."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse to read one: at the next call another Value may be given, with others."""
        if name in self._tape.attributes.get(self._position, ()):
            refuse(f"the attribute {name!r} of an argument", "Give it as an argument, or close over the Value.")
        raise AttributeError(f"'Value' object has no attribute {name!r}")


class Plain(Symbol):
    """A symbol for a plain number: two of them are equal if their numbers are."""

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

    def _as_float(self) -> Any:
        return self.as_plain(float)

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
        return getattr(self._array(self._tape.arrays.box(self)), name) if name != "dtype" else np.dtype(self.kind)

    def __eq__(self, other: object) -> Any:
        """Whether two plain numbers are equal."""
        if isinstance(other, Value) and not is_plain(other):
            return super().__eq__(other)
        tracer = tracer_on_top()
        recorded = None if tracer is None else tracer.compared(operator.eq, self, other)
        if recorded is NotImplemented:
            return super().__eq__(other)
        return refuse("==", "Compare with < and <=.") if recorded is None else recorded


class FloatSymbol(Plain):
    """A symbol for a plain float, as isinstance says."""

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
    """A symbol for the number of a Value that a generator expression hands on; see largest.py."""

    __slots__ = ()

    def __gt__(self, other: Any) -> Any:
        """Whether it is larger. If max asks, this stands for the larger one from now on, so the answer is yes."""
        tape: Any = self._tape
        if tape.reading is None or not tape.reading.compares(sys._getframe(1), self, other):
            return super().__gt__(other)
        self._position = tape.apply(primitives.maximum, other, self)._position
        return True


class IntSymbol(Plain):
    """A symbol for a plain int."""

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
        result._tape.require(result, promotion.limits(self.kind), (0, max(-low, high)))
        return result

    def as_integer_ratio(self) -> Any:
        """The number, and 1."""
        return self, 1


def _of_bools(combine: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def operator(self: BoolSymbol, other: object) -> Any:
        return combine(self, other) if isinstance(other, bool) else NotImplemented

    return operator


class BoolSymbol(Plain):
    """A symbol for a bool, as comparisons give them: 1 or 0."""

    __slots__ = ()
    __class__ = property(lambda self: bool)
    kind: Any = bool

    def as_plain(self, kind: Any) -> Any:
        """The same number, as a plain one of a kind; of an int it is known that it is 0 or 1."""
        self._tape.bounds[self._position] = 0, 1
        return super().as_plain(kind)

    __index__ = refuse_index
    __and__ = __rand__ = _of_bools(lambda x, y: x.picks(y, False))
    __or__ = __ror__ = _of_bools(lambda x, y: x.picks(True, y))
    __xor__ = __rxor__ = _of_bools(lambda x, y: x.picks(y.negated() if isinstance(y, Symbol) else not y, y))
    __invert__ = _refused("~ of a comparison", "Write x <= 0 for not x > 0, or np.logical_not(x > 0).")


for _class, _name in ((Symbol, "Value"), (FloatSymbol, "float"), (IntSymbol, "int"), (BoolSymbol, "bool")):
    _class.__name__ = _class.__qualname__ = _name  # as type(x).__name__ is eagerly


@cache
def class_of(kind: Any) -> type[Symbol]:
    """The class of the symbols for numbers of a kind."""
    if promotion.is_dtype(kind):
        base = FloatSymbol if kind.kind == "f" else IntSymbol
        seen = property(lambda self: kind.type)  # isinstance asks for it
        own = {"__slots__": (), "kind": kind, "__hash__": base.__hash__, "__class__": seen}
        return type(kind.name, (base,), own)
    for of, symbols in ((bool, BoolSymbol), (Value, Symbol), (float, FloatSymbol), (int, IntSymbol)):
        if issubclass(kind, of):
            return symbols
    return type(kind.__name__, (FloatSymbol,), {"__slots__": (), "kind": kind, "__hash__": FloatSymbol.__hash__})


def kind_of_result(primitive: Primitive, operands: Sequence[Any]) -> type[Symbol]:
    """The class of the symbol for a result: that of Values, or of plain numbers if all operands are plain."""
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
    return issubclass(type(number), Plain)
