"""Running what a learner wrote: it may raise or exit, and the learner is told in plain words."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Mapping, Set
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd._support.checks import real_number
from micrograd.draw.text import readable
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MOST = 1_000  # items of a list; a generator may have no end
LONGEST = 80  # characters of an answer that a message repeats
DEEPEST = 5  # lists inside of lists; one that is inside of itself has no end


class AnswerError(Exception):
    """An answer, or a part of it, cannot be judged; the message says why."""


class Failure(NamedTuple):
    """What went wrong, in place of a result; two that say the same are alike."""

    said: str


def shown(thing: Any, digits: int = 0, depth: int = 0) -> str:
    """A number as a message shows it, or whatever else was given, cut where it is long.

    Args:
        thing: whatever it is.
        digits: of numbers; 0 for as many as are easy to read.
        depth: in how many lists it is.

    Example:
        >>> shown(2.0), shown("two"), shown([0.1 + 0.2]), shown([1.0, 1.00001], digits=10)
        ('2', "'two'", '[0.3000]', '[1, 1.00001]')
    """
    if type(thing) in (int, float) and abs(thing) < 1e300:
        return f"{thing:.{digits}g}" if digits else readable(thing)
    if type(thing) in (list, tuple) and depth < DEEPEST:
        return f"[{', '.join(shown(item, digits, depth + 1) for item in thing[:LONGEST])}]"[:LONGEST]
    if isinstance(thing, FunctionType):
        return thing.__name__
    try:
        text = repr(thing)
    except Exception:  # a class that the learner is still writing may have a __repr__ that raises
        text = f"an object of class {type(thing).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def called(function: Any, arguments: Sequence[Any], call: str) -> Any:
    """What a function of the learner's gives.

    Args:
        function: whatever the learner handed over.
        arguments: what to call it with.
        call: how a message shows the call.

    Raises:
        AnswerError: if it raises, with what it raised.
    """
    try:
        return function(*arguments)
    except (KeyboardInterrupt, AnswerError):
        raise
    except BaseException as error:
        raise AnswerError(f"{call} raised {told(error)}"[: 4 * LONGEST]) from error


def told(error: BaseException) -> str:
    """What an error of the learner's says, after its class; asking for it may raise as well."""
    try:
        said = str(error)
    except Exception:
        said = ""
    return f"{type(error).__name__}: {said}" if said else f"{type(error).__name__}."


def items(thing: Any, what: str, each: Callable[[Any], Any] = lambda item: item) -> list[Any] | None:
    """What is in a list, a tuple, an array, a generator: in whatever has an order; None for anything else.

    Args:
        thing: whatever it is.
        what: how a message calls it.
        each: what is done with an item before the next one is asked for.

    Raises:
        AnswerError: if it has no end, or raises.

    Example:
        >>> items((2.0 * x for x in (1.0, 2.0)), "It"), items("ab", "It"), items({1.0: 2.0}, "It")
        ([2.0, 4.0], None, None)
    """
    if isinstance(thing, (str, bytes, Mapping, Set, Value, type)) or not isinstance(thing, Iterable):
        return None
    if getattr(thing, "shape", None) == ():  # an array of no dimensions is a number
        return None
    found = called(lambda: [each(item) for item in islice(thing, MOST + 1)], (), what)
    if len(found) > MOST:
        raise AnswerError(f"{what} has more than {MOST} items: does it end?")
    return found


def mapping(thing: Any, wanted: str) -> dict[Any, Any]:
    """The dict that an answer is.

    Raises:
        AnswerError: if it is none, with what is wanted in its place.
    """
    if not isinstance(thing, Mapping):
        raise AnswerError(f"The answer is {wanted}, not {shown(thing)}")
    return called(dict, [thing], "The answer")


def number(thing: Any, what: str) -> float:
    """The float of a number or a Value; it may be infinite or NaN.

    Raises:
        AnswerError: for anything else, with what was given in its place.
    """
    if isinstance(thing, Value):
        return thing.data
    if isinstance(thing, int) and abs(thing) > sys.float_info.max:
        raise AnswerError(f"{what} is larger than any float")
    found = None if isinstance(thing, bool) else called(real_number, [thing], what)
    if found is None:
        if type(thing).__module__ == "numpy" and getattr(thing, "size", None) == 1:
            return number(thing.item(), what)
        if thing is None or thing is Ellipsis:
            raise AnswerError(f"{what} is missing: is there a `return` with a number?")
        raise AnswerError(f"{what} must be a number, not {type(thing).__name__}: {shown(thing)}")
    return found


def finite(thing: Any, what: str) -> float:
    """The float of a number or a Value, which must be finite."""
    found = number(thing, what)
    if math.isnan(found):
        raise AnswerError(f"{what} is NaN, which is no number: some step on the way took inf - inf, 0 * inf or 0 / 0")
    if math.isinf(found):
        raise AnswerError(f"{what} is infinite: some step on the way grew too large for a float, or divided by 0")
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """Let nothing be printed inside: an answer that prints is run on many probes, and would fill the screen."""
    with open(os.devnull, "w", encoding="utf-8", errors="replace") as nowhere, redirect_stdout(nowhere):
        yield


def outcome(function: Callable[[], Any]) -> Any:
    """What the function gives, or a Failure in its place."""
    try:
        return function()
    except AnswerError as error:
        if error.__cause__ is not None:
            return Failure(told(error.__cause__))
        return Failure(re.sub(r"\w+\([^)]*\)", "", str(error)))  # whatever the learner's function is called
