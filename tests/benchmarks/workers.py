"""A process for each engine, so that its garbage collector sees its own objects only."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import threading
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from engines import Engine

STACK = 512 * 2**20  # bytes
RECURSION = 3_000_000


class Worker:
    """A process that makes an engine and answers requests for it, one at a time.

    Args:
        make: the class of the engine.
        serve: called there with the engine and the arguments; a generator, it yields the answers.
        arguments: picklable.
    """

    def __init__(self, make: type[Engine], serve: Callable[..., Any], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, other_end = context.Pipe()
        self._process = context.Process(target=answer, args=(other_end, make, serve, arguments), daemon=True)
        self._process.start()
        other_end.close()

    def ask(self, limit: float | None = None) -> Any:
        """The next answer.

        Args:
            limit: how many seconds of the processor it may take; the process is ended if it takes more.

        Raises:
            OSError, EOFError: if the process has ended; it has printed why.
            TimeoutError: if it took too long.
        """
        self._connection.send(None)
        end = math.inf if limit is None else self._used() + limit
        while not self._connection.poll(None if limit is None else 0.1):
            if self._used() > end:
                self._process.kill()
                raise TimeoutError(f"no answer within {limit} s")
        return self._connection.recv()

    def _used(self) -> float:
        """The seconds that the process has run; where the system does not say it, those of the clock."""
        status = Path(f"/proc/{self._process.pid}/stat")
        if not status.exists():
            return monotonic()
        user, system = status.read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def exit_code(self) -> int | None:
        """How the process ended, once it has: the negative number of the signal that ended it, or 0."""
        self._process.join()
        return self._process.exitcode

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.join()


def answer(connection: Connection, make: type[Engine], serve: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Send an answer for each request, until the other end is closed."""

    def run() -> None:
        answers = serve(make(), *arguments)
        try:
            while True:
                connection.recv()
                connection.send(next(answers))
        except EOFError:
            pass
        finally:
            connection.close()

    if make.recursive:
        recursively(run)
    else:
        run()


def recursively(function: Callable[[], None]) -> None:
    """Run a function that recurses deeply: in a thread, as only a new one's stack can be made larger."""
    sys.setrecursionlimit(RECURSION)
    threading.stack_size(STACK)
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
