"""Locks that a forked child finds open, whatever other threads of its parent were doing.

A fork copies the locks as they are, and of the threads only the one that forks. A lock that another thread holds
would stay locked in the child for ever.
"""

from __future__ import annotations

import os
import sys
from threading import RLock
from typing import Any
from weakref import WeakSet

_locks: WeakSet[Any] = WeakSet()  # what they protect is consistent at any instruction, or is made again in the child
_held_while_forking: list[Any] = []


def new_lock() -> Any:
    """A lock for data of Python's own. Its holder may take it again. In a forked child no other thread holds it."""
    lock = RLock()
    _locks.add(lock)
    return lock


def new_lock_for_library() -> Any:
    """A lock around a library that keeps its own state: a fork waits until nobody is inside."""
    lock = RLock()
    _held_while_forking.append(lock)
    return lock


def has_gil() -> bool:
    """Whether a call of a C function is never interrupted by the code of another thread."""
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _before_fork() -> None:
    for lock in _held_while_forking:
        lock.acquire()


def _after_fork() -> None:
    for lock in _held_while_forking:
        lock.release()


def _in_child() -> None:
    _after_fork()
    for lock in _locks:
        if not lock._is_owned():  # the thread that forked goes on, with the locks that it holds
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):  # pragma: no branch  # Windows does not fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
