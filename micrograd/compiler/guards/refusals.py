"""Refusals: what a compiled function may not do while it is traced, and what to write instead."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

from micrograd._support.callers import calling_frame, calling_line, raising_instruction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

THE_INT = "the int of a number, or its use as an index,"
FOR_AN_INDEX = "For an index write mg.take(sequence, index)."


class TraceError(TypeError):
    """What a compiled function may not do with a number that it is given, and what to write instead."""


# The last refusal, and the instruction that it was for: libraries may raise an error of their own in its place.
_last: ContextVar[tuple[str, tuple[CodeType, int]] | None] = ContextVar("last", default=None)

# The code that was refused indices, if that is taken note of
_indices: ContextVar[list[CodeType] | None] = ContextVar("indices", default=None)


def refuse_index(*_: Any) -> NoReturn:
    """Refuse to be the index of an element, and take note of where."""
    from micrograd.compiler.guards.words import reads_an_element

    noted, frame = _indices.get(), calling_frame()
    if noted is not None and reads_an_element(frame):
        noted.append(frame.f_code)
    refuse(THE_INT, FOR_AN_INDEX)


@contextmanager
def refused_indices() -> Iterator[list[CodeType]]:
    """Take note of the code that is refused indices meanwhile."""
    noted: list[CodeType] = []
    token = _indices.set(noted)
    try:
        yield noted
    finally:
        _indices.reset(token)


def refuse(what: str, instead: str) -> NoReturn:
    """Raise a TraceError that names the user's line.

    Args:
        what: which use of a number cannot be written down.
        instead: a sentence that says what to write.
    """
    from micrograd.compiler.guards.words import in_words_of

    frame = calling_frame()
    what, instead = in_words_of(frame, what, instead, asks_for_an_int=what is THE_INT)
    message = (
        f"{what} would freeze a number into the compiled program ({running_line()}): the function runs once, on "
        f"symbols, and its numbers come later. {instead}"
    )
    _last.set((message, (frame.f_code, frame.f_lasti)))
    raise TraceError(message)


@contextmanager
def in_place_of_others() -> Iterator[None]:
    """Raise the refusals inside of which a library made an error of its own, as NumPy does of an index."""
    token = _last.set(None)
    try:
        yield
    except Exception as error:
        last = _last.get()
        if last is None or isinstance(error, TraceError) or raising_instruction(error.__traceback__) != last[1]:
            raise
        raise TraceError(last[0]) from error
    finally:
        _last.reset(token)


def running_line() -> str:
    """The file and the line of the user's own code that is running."""
    code, line = calling_line()
    return f"{code.co_filename}:{line}"
