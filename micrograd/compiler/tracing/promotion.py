"""Promotion: what kind of number an operator gives for plain numbers, as Python and NumPy say.

A program computes in float64. So the kind of each plain number is known while a function is traced, as the program must
give what eager gives:

    kind                    what is done
    float, np.float64       computed
    ints of all widths      computed, and the program checks that each result is in range; if not, eager runs
    float16, float32        not computed with one another: their results would be rounded; with Values they are
"""

from __future__ import annotations

import sys
from functools import lru_cache, partial, reduce
from numbers import Rational
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from micrograd._support.checks import is_unknown
from micrograd.compiler.guards.refusals import TraceError, running_line
from micrograd.engine import further_primitives, primitives
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from micrograd.engine.primitive import Primitive

Kind: TypeAlias = Any  # a type of Python's, or a dtype
Bounds: TypeAlias = tuple[int, int]  # the least and the largest integer

OPERATORS: dict[Primitive, np.ufunc] = {
    primitives.add: np.add,
    primitives.sub: np.subtract,
    primitives.mul: np.multiply,
    primitives.div: np.true_divide,
    primitives.pow: np.power,
    primitives.neg: np.negative,
    further_primitives.floor_divide: np.floor_divide,
    further_primitives.remainder: np.remainder,
}
FLOAT64, INT64 = np.dtype(float), np.dtype(np.int64)
EXACT: Bounds = (1 - 2**53, 2**53 - 1)  # each of these integers is a float, and no other is rounded to one of them
SHORT: Bounds = (1 - 2**31, 2**31 - 1)


def is_seen_by_library() -> bool:
    """Whether NumPy or this library asks for an attribute, and not the user's code."""
    return sys._getframe(2).f_globals.get("__name__", "").partition(".")[0] in ("numpy", "micrograd")


def is_dtype(kind: Kind) -> bool:
    """Whether a kind is one of NumPy's."""
    return isinstance(kind, np.dtype)


def kind_of_class(number: type) -> Kind:
    """The kind of the numbers of a class."""
    if issubclass(number, np.bool_):
        return bool
    return np.dtype(number) if issubclass(number, np.generic) else number


def kind_of_number(number: Any) -> Kind:
    """The kind of a plain number, or of one that a symbol stands for; Value for a Value."""
    if is_unknown(number):
        return getattr(type(number), "kind", Value)
    return kind_of_class(type(number))


def kind_of(x: Any) -> Kind:
    """The kind of the plain numbers in an operand; None where there are Values, or nothing."""
    if not isinstance(x, np.ndarray):
        return kind_of_number(x) if isinstance(x, (int, float, np.generic)) else None
    if x.dtype != object:
        return bool if x.dtype == bool else x.dtype
    elements = x.ravel().tolist()
    first = dict(zip(map(type, elements), elements, strict=True))
    kinds = [kind_of_number(element) for element in first.values()]
    if not kinds or any(kind is Value for kind in kinds):
        return None
    return reduce(partial(promoted, np.maximum), kinds)


def is_rounded(kind: Kind) -> bool:
    """Whether arithmetic of this kind is rounded to another width than that of programs, or is not that of floats."""
    return (kind.kind == "f" and kind != FLOAT64) if is_dtype(kind) else not issubclass(kind, (int, float))


@lru_cache(4096)
def promoted(ufunc: np.ufunc, *kinds: Kind) -> Kind:
    """The kind that a function gives for operands of these kinds."""
    if any(map(is_dtype, kinds)):
        numbers = [kind.type(1) if is_dtype(kind) else 1 if issubclass(kind, int) else 1.0 for kind in kinds]
        with np.errstate(all="ignore"):
            return np.asarray(ufunc(*numbers)).dtype
    if all(issubclass(kind, int) for kind in kinds):
        return float if ufunc is np.true_divide else int
    if all(issubclass(kind, (int, float)) for kind in kinds):
        return float
    is_float = any(issubclass(kind, float) for kind in kinds)  # of a Fraction and a float, Python makes a float
    others = [kind for kind in kinds if not issubclass(kind, (int, float))]
    return float if is_float and all(issubclass(kind, Rational) for kind in others) else others[0]


def check_width(kind: Kind, kinds: Sequence[Kind]) -> None:
    """Refuse to compute what eager rounds to another width, or does not compute in floats."""
    is_plain = all(is_dtype(other) or not is_rounded(other) for other in kinds) or kind is float
    if is_plain and not is_rounded(kind):
        return
    if is_dtype(kind):
        reason = f"{kind.name} numbers are computed with in {kind.name}"
        instead = "write x.astype(float), or give numbers of float64"
    else:
        reason, instead = f"numbers of the class {kind.__name__} are computed with", "give float(x)"
    raise TraceError(
        f"{reason} ({running_line()}), which a compiled function does in float64 only, so its results would differ: "
        f"{instead}. With Values they are computed in float64, here and eagerly"
    )


def limits(kind: Kind) -> Bounds:
    """Between which integers a program computes this kind exactly, and as eager does."""
    if not is_dtype(kind):
        return EXACT
    info = np.iinfo(kind)
    return max(int(info.min), EXACT[0]), min(int(info.max), EXACT[1])


def check_constant(number: int, kind: Kind) -> None:
    """Refuse an int beside integers of NumPy's that are too narrow for it, as NumPy does."""
    if is_dtype(kind) and not np.iinfo(kind).min <= number <= np.iinfo(kind).max:
        raise OverflowError(f"Python integer {number} out of bounds for {kind.name}")


def bounds_of_result(primitive: Primitive, bounds: Sequence[Bounds]) -> Bounds | None:
    """Between which integers a result is; None where that is not known."""
    (a, b), (c, d) = bounds[0], bounds[-1]
    if primitive is primitives.add:
        return a + c, b + d
    if primitive is primitives.sub:
        return a - d, b - c
    if primitive is primitives.mul:
        products = a * c, a * d, b * c, b * d
        return min(products), max(products)
    if primitive is primitives.neg:
        return -b, -a
    if primitive is further_primitives.floor_divide:
        largest = max(-a, b)
        return -largest, largest
    if primitive is further_primitives.remainder:
        return min(c, 0), max(d, 0)
    return None


def kind_of_one(kinds: set[Kind]) -> Kind:
    """The kind of a number that is one of several, when it is not known which.

    Raises:
        TraceError: if it decides about the width of what is computed with it.
    """
    if len(kinds) == 1:
        return next(iter(kinds))
    dtypes = {kind for kind in kinds if is_dtype(kind)}
    if narrow := dtypes - {FLOAT64, INT64}:
        name = min(kind.name for kind in narrow)
        raise TraceError(
            f"an element is taken ({running_line()}) that is of {name} or of another kind, and which is not known: "
            "give elements of one kind, such as x.astype(float)"
        )
    return int if all(kind == INT64 if is_dtype(kind) else issubclass(kind, int) for kind in kinds) else float


def kind_of_both(x: Any, y: Any) -> Kind:
    """The kind of the array in which NumPy has two plain numbers."""
    return promoted(np.maximum, kind_of_number(x), kind_of_number(y))


def like_numbers(x: Any, y: Any) -> tuple[Any, Any]:
    """Two plain numbers, of which one will be picked, as NumPy has them in one array: of one kind."""
    kind = kind_of_both(x, y)
    return like(kind, x), like(kind, y)


def like(kind: Kind, x: Any) -> Any:
    """A plain number as one of a kind: of Python's numbers, NumPy makes numbers of its own kinds beside them."""
    own = kind_of_number(x)
    if not is_dtype(kind) or is_dtype(own):
        return x
    if not is_unknown(x):
        return kind.type(x)
    if is_rounded(kind):
        check_width(kind, [own])
    if kind.kind in "iu":
        x.require_like(kind)
    return x
