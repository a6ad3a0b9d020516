"""The thread pool, in which native code runs on all cores.

    beside([left, right])     # each is called in a thread of its own, while this one goes on

While native code runs, Python goes on in other threads. A thread takes ten to a hundred microseconds to wake, and then
it waits for Python's lock, which it may not get between two short calls of native code. So what is called here should
make a single call, in which all threads share out the work; whoever is late finds nothing left to do.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Call: TypeAlias = Callable[[], object]

_TIME_OF_CONTAINER = Path("/sys/fs/cgroup/cpu.max")  # microseconds, and the period in which it may use them


def cores() -> int:
    """On how many cores to work: MICROGRAD_THREADS in the environment, or those that the system gives to this process.

    OMP_NUM_THREADS may say that it shall be fewer of these, as joblib does for its workers. And a container may have
    less time than its cores have: then threads that look out for work would only take it from each other.

    Raises:
        ValueError: if MICROGRAD_THREADS is not an int of at least 1.
    """
    if wanted := os.environ.get("MICROGRAD_THREADS"):
        if not (number := _count(wanted)):
            raise ValueError(f"MICROGRAD_THREADS must be an int of at least 1, not {wanted!r:.80}")
        return number
    # Some systems do not say it of a process.
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(given, _count(os.environ.get("OMP_NUM_THREADS", "")) or given, _cores_of_container() or given)


def _count(text: str) -> int:
    """The int that a text says; 0 where it says none."""
    return int(text) if text.isascii() and text.isdigit() else 0


def _cores_of_container() -> int:
    """How many cores' time Linux gives to this container, rounded up; 0 where it says nothing, or sets no limit."""
    try:
        time, period = map(int, _TIME_OF_CONTAINER.read_text(encoding="ascii").split())
        return -(-time // period)
    except (OSError, ValueError, ZeroDivisionError):  # without a limit it says "max"
        return 0


def beside(calls: Sequence[Call]) -> None:
    """Have each of these called, in a thread of its own; and do not wait for them.

    Args:
        calls: take no arguments. What one raises is shown as it is for any thread. Where the system lets no more
            threads be started, the last ones are not called.
    """
    with suppress(RuntimeError):
        for call in calls:
            _pool.submit(_shown, call)


def _shown(call: Call) -> None:
    """Call it, and show what it raises."""
    try:
        call()
    except BaseException as error:
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread()))
        )


def _begin_again() -> None:
    """Forget all threads: in a child that was forked there are none."""
    global _pool
    _pool = ThreadPoolExecutor(_MOST, "micrograd")


_pool: ThreadPoolExecutor
_MOST = 1 << 16  # threads; one is started where all others are busy
_begin_again()
if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows does not fork
    os.register_at_fork(after_in_child=_begin_again)
