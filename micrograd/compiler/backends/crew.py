"""Crew: threads that wait for tasks, so that native code runs on all cores.

    at_once(3, [mine, another])     # mine(0) in this thread, while another(1) runs in another one; one of them takes 2

While native code runs, Python goes on in other threads. Whoever is free takes the next task, so a thread that is late
leaves them to the others. Handing them over takes some microseconds, and they should take longer than that.

Who is interrupted (by Ctrl-C, say) does not wait for the others: a task must do no harm if it goes on.
"""

from __future__ import annotations

import os
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from micrograd._support.locks import new_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Worker: TypeAlias = Callable[[int], object]
    Queue: TypeAlias = "SimpleQueue[Any]"

_queues: list[Queue] = []  # of what to do, one for each thread
_starting = new_lock()


def cores() -> int:
    """On how many cores to work: MICROGRAD_THREADS in the environment, or those that the system gives to this process.

    OMP_NUM_THREADS may say that it shall be fewer of these, as joblib does for its workers.

    Raises:
        ValueError: if MICROGRAD_THREADS is not an int of at least 1.
    """
    if wanted := os.environ.get("MICROGRAD_THREADS"):
        if not (number := _count(wanted)):
            raise ValueError(f"MICROGRAD_THREADS must be an int of at least 1, not {wanted!r:.80}")
        return number
    # Some systems do not say it of a process.
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(given, _count(os.environ.get("OMP_NUM_THREADS", "")) or given)


def _count(text: str) -> int:
    """The int that a text says; 0 where it says none."""
    return int(text) if text.isascii() and text.isdigit() else 0


def at_once(tasks: int, workers: Sequence[Worker]) -> None:
    """Let workers do tasks, each in a thread of its own.

    Args:
        tasks: how many there are. They are begun in order.
        workers: each is called with the number of a task, and then with that of another one; the first in this thread.

    Raises:
        BaseException: what a worker raises.
    """
    first, *others = workers
    left = iter(range(tasks))  # no two threads get the same number of it
    ended: Queue = SimpleQueue()
    for worker, queue in zip(others, _queues_of(len(others)), strict=True):
        queue.put(partial(_work, worker, left, ended))
    for task in left:
        first(task)
        ended.put(None)
    for error in [ended.get() for _ in range(tasks)]:
        if error is not None:
            raise error


def _queues_of(count: int) -> list[Queue]:
    """The queues of so many threads, which are started if they are not there yet."""
    with _starting:
        while len(_queues) < count:
            queue: Queue = SimpleQueue()
            Thread(target=_wait, args=(queue,), name=f"micrograd-{len(_queues) + 1}", daemon=True).start()
            _queues.append(queue)
        return _queues[:count]


def _wait(queue: Queue) -> None:
    while True:
        queue.get()()


def _work(worker: Worker, left: Iterator[int], ended: Queue) -> None:
    for task in left:
        error: BaseException | None = None
        try:
            worker(task)
        except BaseException as raised:
            error = raised
        ended.put(error)


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows does not fork
    os.register_at_fork(after_in_child=_queues.clear)  # the threads of the parent are not there
