"""Progress: a compile that takes longer than two seconds says so on stderr, where somebody is looking.

    micrograd: compiling loss ...

The line is gone at the end. It is there on terminals and in notebooks only.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from threading import Timer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAY = 2.0  # seconds without a line


@contextmanager
def line_of(name: str) -> Iterator[None]:
    """Say what is compiled if this is open for longer than DELAY, until it is closed, whatever is raised inside."""
    stream, text = sys.stderr, f"micrograd: compiling {name:.50} ..."
    if not _is_seen(stream):
        yield
        return
    written: list[str] = []

    def write() -> None:
        written.append(text)
        _write(stream, text)

    timer = Timer(DELAY, write)
    timer.daemon = True
    try:
        _start(timer)
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:  # it was started
            timer.join()
        if written:
            _write(stream, f"\r{' ' * len(text)}\r")


def _start(timer: Timer) -> None:
    """Start a timer; where no thread can be started, there is no line."""
    before = sys.exc_info()[1]
    try:
        timer.start()
    except RuntimeError as error:
        # An interrupt while it waits for its thread leaves a lock open, and to release that raises a RuntimeError.
        interrupt = error.__context__
        if interrupt is not None and interrupt is not before:
            raise interrupt from None


def _write(stream: Any, text: str) -> None:
    with suppress(OSError, ValueError):  # the terminal is gone
        stream.write(text)
        stream.flush()


def _is_seen(stream: Any) -> bool:
    """Whether somebody sees a stream that can go back to the start of a line: a terminal, or that of a notebook."""
    try:
        is_terminal = stream.isatty()
    except (AttributeError, ValueError):  # there is no stream, or it is closed
        return False
    if is_terminal:
        return os.environ.get("TERM") != "dumb"
    return any(base.__module__.partition(".")[0] == "ipykernel" for base in type(stream).__mro__)
