"""Refusals: what a compiled function may not do while it is traced, and what to write instead."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

from micrograd._support.callers import calling_frame, calling_line, raising_instruction

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType

THE_INT = "the int of a number, or its use as an index,"
FOR_AN_INDEX = "For an index write mg.take(sequence, index)."


class TraceError(TypeError):
    """What a compiled function may not do with a number that it is given, and what to write instead."""


# The last refusal, and the instruction that it was for: libraries may raise an error of their own in its place.
_last: ContextVar[tuple[str, tuple[CodeType, int]] | None] = ContextVar("last", default=None)

# Where indices were refused, if that is taken note of: the code, with all that it is nested in, and its globals
_indices: ContextVar[list[tuple[tuple[CodeType, ...], dict[str, Any]]] | None] = ContextVar("indices", default=None)


def refuse_index(*_: Any) -> NoReturn:
    """Refuse to be the index of an element, and take note of where."""
    from micrograd.compiler.guards.words import reads_an_element

    noted, frame = _indices.get(), calling_frame()
    if noted is not None and reads_an_element(frame):
        noted.append((_nested_codes(frame), frame.f_globals))
    refuse(THE_INT, FOR_AN_INDEX)


@contextmanager
def refused_indices() -> Iterator[list[tuple[tuple[CodeType, ...], dict[str, Any]]]]:
    """Take note of the indices that are refused meanwhile."""
    noted: list[tuple[tuple[CodeType, ...], dict[str, Any]]] = []
    token = _indices.set(noted)
    try:
        yield noted
    finally:
        _indices.reset(token)


def _nested_codes(frame: FrameType) -> tuple[CodeType, ...]:
    """The code that a frame runs, and those around it in the source whose functions have called it."""
    codes = [frame.f_code]
    outer = frame.f_back
    while outer is not None:
        if any(each is codes[-1] for each in outer.f_code.co_consts):
            codes.append(outer.f_code)
        outer = outer.f_back
    return tuple(codes)


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
