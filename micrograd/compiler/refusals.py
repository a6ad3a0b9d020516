"""Refusals: what a compiled function may not do while it is traced, and what to write instead."""

from __future__ import annotations

from typing import NoReturn

from micrograd._support.callers import calling_line


class TraceError(TypeError):
    """What a compiled function may not do with a number that it is given, and what to write instead."""


def refuse(what: str, instead: str) -> NoReturn:
    """Raise a TraceError that names the user's line.

    Args:
        what: which use of a number cannot be written down.
        instead: a sentence that says what to write.
    """
    raise TraceError(
        f"{what} would freeze a number into the compiled program ({running_line()}): the function runs once, on "
        f"symbols, and its numbers come later. {instead}"
    )


def running_line() -> str:
    """The file and the line of the user's own code that is running."""
    code, line = calling_line()
    return f"{code.co_filename}:{line}"
