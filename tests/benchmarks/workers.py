"""A process for each engine, so that its garbage collector sees its own objects only."""

from __future__ import annotations

import multiprocessing
import sys
import threading
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

    def ask(self) -> Any:
        """The next answer.

        Raises:
            OSError, EOFError: if the process has ended; it has printed why.
        """
        self._connection.send(None)
        return self._connection.recv()

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
