"""Progress: a compile that takes longer than two seconds says what it does, where somebody is looking.

    micrograd: compiling loss: reroll, 3.1 s

The line is written anew in its place on stderr, and taken away at the end. It is there on terminals and in notebooks
only. A thread writes it, as the stages are busy; it ends with the compile. (tqdm would need to know how many steps
there are, and what it is drawn on is not a dependency of the compiler.)
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import contextmanager, suppress
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, Any

from micrograd._support.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

DELAY = 2.0  # seconds without a line
PERIOD = 0.2  # seconds between two looks at it
QUICK = 0.005  # where the first stages took less than this part of the delay, the others take less than the delay
clock = time.perf_counter
DEBUGGERS = frozenset(("bdb", "code"))  # modules that ask the user what to do, and have the line to themselves

_screen = new_lock()  # one compile at a time has a line


@contextmanager
def line_of(name: str, before: float = 0.0) -> Iterator[Line]:
    """The line of a compile, which is shown while this is open if it takes long, and if somebody is looking.

    Args:
        name: of what is compiled.
        before: how many seconds have been spent on it already.
    """
    line = Line(name, before)
    if 0.0 < before < DELAY * QUICK or not _is_seen(sys.stderr):
        yield line
    else:
        with line.shown():
            yield line


class Line:
    """The line of one compile.

    Attributes:
        stage: what it does now.
    """

    def __init__(self, name: str, before: float) -> None:
        self.stage = ""
        self._name, self._before, self._begin = name, before, clock() - before
        self._running = Lock()  # held until the compile has ended
        self._caller = get_ident()
        self._stream = sys.stderr
        self._text = ""

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Inside, a thread writes the line; it is gone at the end, whatever is raised."""
        thread = Thread(target=self._keep_writing, name="micrograd progress", daemon=True)
        try:
            with self._running:
                with suppress(RuntimeError):  # where no thread can be started, there is no line
                    thread.start()
                yield
        finally:
            with suppress(RuntimeError):
                thread.join()

    def _keep_writing(self) -> None:
        if self._has_ended(max(DELAY - self._before, 0.0)):
            return
        while not _screen.acquire(blocking=False):
            if self._has_ended(PERIOD):
                return
        try:
            with suppress(OSError, ValueError):  # the terminal is gone
                self._write(self._now())
                while not self._has_ended(PERIOD):
                    self._write(self._now())
                self._write("")
        finally:
            _screen.release()

    def _has_ended(self, timeout: float) -> bool:
        return self._running.acquire(timeout=timeout)

    def _now(self) -> str:
        """What the line says; nothing before the first stage, and while a debugger has the terminal."""
        frame = sys._current_frames().get(self._caller)
        while frame is not None:
            if frame.f_globals.get("__name__") in DEBUGGERS:
                return ""
            frame = frame.f_back
        text = f"micrograd: compiling {self._name}: {self.stage}, {clock() - self._begin:.1f} s"
        return text[: shutil.get_terminal_size().columns - 1] if self.stage else ""

    def _write(self, text: str) -> None:
        if text != self._text:
            self._stream.write(f"\r{text:<{len(self._text)}}" + ("" if text else "\r"))
            self._stream.flush()
            self._text = text


def _is_seen(stream: Any) -> bool:
    """Whether what is written to a stream can be written anew: on a terminal, and in a notebook."""
    try:
        is_terminal = stream.isatty()
    except (AttributeError, ValueError):  # there is no stream, or it is closed
        return False
    if is_terminal:
        return os.environ.get("TERM") != "dumb"
    return any(base.__module__.partition(".")[0] == "ipykernel" for base in type(stream).__mro__)
