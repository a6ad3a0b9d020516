"""Signals such as Ctrl-C: finishing what must not be left half done, and telling what their handlers raised."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def finish(action: Callable[[], object]) -> None:
    """Run an action to its end, from the start again if Ctrl-C cuts it off; then let Ctrl-C through.

    Args:
        action: takes no arguments; it must be harmless to run it again after a part of it was done.
    """
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            action()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


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
