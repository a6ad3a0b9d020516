"""What counts as a number, and errors that say which operation, numbers and labels they are about."""

from __future__ import annotations

import math
import operator
import sys
from functools import lru_cache
from itertools import takewhile
from numbers import Complex, Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable


class Operand:
    """An operand that is no number: it records what is done with it, as a Value does."""

    __slots__ = ()

    known: ClassVar[bool] = True  # whether its number is known; while a function is traced it is not
    is_number: ClassVar[bool] = False  # whether it stands for a plain number, as it may while a function is traced

    @staticmethod
    def _apply(primitive: Any, *operands: Any) -> Any:
        """Apply a primitive to operands, one of which is of this class, and record it."""
        raise NotImplementedError

    @staticmethod
    def _array(array: Any) -> Any:
        """What stands for an array that has operands of this class in it."""
        raise NotImplementedError

    def _as_float(self) -> Any:
        """What stands for the float of the plain number that this stands for."""
        raise NotImplementedError


def is_bool(value: object) -> bool:
    """Whether it is a bool of Python or of NumPy, which need not be loaded."""
    return type(value).__name__ in ("bool", "bool_")


def real_number(value: object) -> float | None:
    """The float that a real number stands for; None for what is not one (a string, an array, a Value).

    Ints, bools, NumPy scalars, Fraction and Decimal are real numbers.

    Raises:
        OverflowError: for an int that no float can hold.
    """
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]  # kind says that it is a float
    if kind is not int and kind is not bool and not _is_real(value):
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # it has __float__
    except TypeError:  # NumPy's dates have __float__ and refuse it
        return None
    except OverflowError as error:
        raise OverflowError(f"{error}: no float is as large as a number given here") from None


def is_number(value: object) -> bool:
    """Whether this is a real number: an int, a float, a NumPy scalar, a Fraction or a Decimal."""
    return type(value) in (int, float, bool) or _is_real(value)


def _is_real(value: object) -> bool:
    kind = type(value)
    if not hasattr(kind, "__float__") or hasattr(value, "__len__") or isinstance(value, Operand):
        return False  # no string, array (even of one element) or Value is a plain number
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.timedelta64):
        return False  # NumPy takes a span of time for an integer; in some units it even has a float
    return not isinstance(value, Complex) or isinstance(value, Real)


def is_array(value: object) -> bool:
    """Whether this is a NumPy array. NumPy is not imported to find out."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_unknown(value: object) -> bool:
    """Whether this stands for a number that is not known yet, because a function is being traced."""
    return isinstance(value, Operand) and not value.known


def are_all(kind: type, items: Iterable[object]) -> bool:
    """Whether all items are instances of a class. Each type among them is checked once, as there are few."""
    return all(issubclass(each, kind) for each in set(map(type, items)))


def is_value(value: object) -> bool:
    """Whether it is a Value, or stands for one, and for no plain number."""
    return isinstance(value, Operand) and not value.is_number


def is_whole(value: object) -> bool:
    """Whether it is an int, or stands for a plain integer, of Python or of NumPy."""
    return isinstance(value, Integral if is_unknown(value) else int)


def check_class(value: Any, replacing: str) -> None:
    """Refuse an instance of a user's subclass of Value, where another Value replaces it without what the subclass adds.

    Args:
        value: the Value.
        replacing: what takes its place, for the message.
    """
    kind: Any = type(value)
    if (name := _own_name(kind)) is not None:
        raise TypeError(
            f"{replacing}, which would lose the `{name}` of {kind.__name__}: write {name} as a function of Values, or "
            f"let the function close over the {kind.__name__}"
        )


@lru_cache(256)
def _own_name(kind: type) -> str | None:
    """A name that a user's subclass adds, other than those of construction and display; None if there is none."""
    users = takewhile(lambda base: base.__module__.partition(".")[0] != "micrograd", kind.__mro__)
    return min(own_names(kind, tuple(users)), default=None)


@lru_cache(256)
def own_names(kind: type, bases: tuple[type, ...]) -> tuple[str, ...]:
    """The names that some bases of a class add, other than those of construction and display."""
    return tuple(name for base in bases for name in vars(base).keys() - _OF_EVERY_CLASS)


_OF_EVERY_CLASS = {
    *vars(type("", (), {})),
    *("__init__", "__new__", "__repr__", "__str__", "__slots__", "__annotations__"),
    *(
        "__firstlineno__",
        "__static_attributes__",
        "__annotate_func__",
        "__annotations_cache__",
    ),  # Python 3.13 and later
}


def check_settings(name: str, settings: dict[str, Any]) -> None:
    """Refuse Values and arrays as settings: no gradient flows to a setting."""
    for key, setting in settings.items():
        if isinstance(setting, Operand) or is_array(setting):
            raise TypeError(f"{key} is a static parameter of {name}, without a gradient: give Values by position")


def check_unchanged(operands: Iterable[Any], inputs: Iterable[float]) -> None:
    """Refuse operands whose numbers are not those of the forward pass any more."""
    for operand, number in zip(operands, inputs, strict=True):
        if operand._data != number and not (math.isnan(operand._data) and math.isnan(number)):
            raise ValueError(f"{operand!r} was {number} in the forward pass; compute the output again")


def check_type(holds: bool, what: str, value: object) -> None:
    """A TypeError that says what was given, unless that is as it must be; what begins the message."""
    if not holds:
        raise TypeError(f"{what}, not {type(value).__name__}: {value!r:.80}")


def required_number(value: object, what: str) -> float:
    """The float of a real number, or a TypeError that says what was given in its place."""
    if (number := real_number(value)) is None:
        if is_unknown(value):
            float(value)  # type: ignore[arg-type]  # raises a TraceError, which names the line
        raise TypeError(f"{what} must be a real number, not {type(value).__name__}: {value!r:.80}")
    return number


_MOST_SHOWN = 8  # operands of a call, where there are more than twice as many


def shown_call(primitive: Any, inputs: Iterable[object], operands: Iterable[Any]) -> str:
    """A call of a primitive as messages show it, with the numbers of its operands and their labels."""
    infix = len(operands := tuple(operands)) == 2 and not any(map(str.isalpha, primitive.symbol))
    others = [f"and {len(operands) - _MOST_SHOWN} more"] if len(operands) > 2 * _MOST_SHOWN else []
    operands, inputs = (operands[:_MOST_SHOWN], [*inputs][:_MOST_SHOWN]) if others else (operands, inputs)
    shown = [
        f"({label} = {number!r})" if infix and label else f"{label} = {number!r}" if label else f"{number!r}"
        for number, label in zip(inputs, (getattr(operand, "label", "") for operand in operands), strict=True)
    ]
    shown += others + [f"{name}={setting!r}" for name, setting in primitive.settings.items()]
    return f" {primitive.symbol} ".join(shown) if infix else f"{primitive.name}({', '.join(shown)})"


def required_count(value: Any, name: str) -> int:
    """An int of at least 1, NumPy's too; or an error that says what was given in its place."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an int, not {type(value).__name__}: {value!r:.80}")
    if (number := operator.index(value)) < 1:
        raise ValueError(f"{name} must be at least 1, not {value}")
    return number


def required_sequence(values: Any, what: str) -> list[Any]:
    """The items of a list, an array or another iterable; or a TypeError that says what was given in its place."""
    if type(values) is list:  # nearly always
        return values.copy()
    if isinstance(values, (str, bytes)) or not (hasattr(values, "__iter__") or hasattr(values, "__getitem__")):
        raise TypeError(f"{what}, not {type(values).__name__}: {values!r:.80}")
    return list(values)


def check_numbers(values: Iterable[Any], what: str) -> None:
    """Refuse what is neither a real number nor something that records what is done with it, as Values do.

    Arrays are accepted: what is written for numbers works on them element by element.
    """
    kinds = set(map(type, values))
    for kind in kinds:
        if kind is not float and not issubclass(kind, Operand):
            break
    else:
        return
    for value in values:
        if not issubclass(type(value), Operand) and not is_array(value) and real_number(value) is None:
            raise TypeError(f"{what} must be a number or a Value, not {type(value).__name__}: {value!r:.80}")


def explained(
    error: Exception, primitive: Any, inputs: Iterable[object], operands: Iterable[Any], what: str = ""
) -> Exception:
    """An error of the same kind, whose message names the primitive, the numbers and their labels."""
    kinds = (ZeroDivisionError, OverflowError, FloatingPointError, ArithmeticError, ValueError, TypeError)
    kind = next(kind for kind in kinds if isinstance(error, kind))
    return kind(
        f"{what}{shown_call(primitive, inputs, operands)}: {error.args[-1] if error.args else type(error).__name__}"
    )
