"""Signal handlers: whether an exception is one that the user's handler of a signal has raised, wherever it came."""

from __future__ import annotations

import signal
from typing import Any


def is_of_handler(error: BaseException) -> bool:
    """Whether an exception was raised by a handler of a signal, and not by what it came in between.

    Example:
        >>> is_of_handler(ValueError())
        False
    """
    codes = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code not in codes:
        traceback = traceback.tb_next
    return traceback is not None


def _code_of(handler: Any) -> Any:
    """The code of a handler: a function, a method, or an object that is called; None for those of Python itself."""
    return getattr(handler, "__code__", None) or getattr(type(handler).__call__, "__code__", None)
