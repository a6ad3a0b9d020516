"""Choices: whether a function selected one of several numbers, so that the graph lacks the others.

    with watching_choices() as noted:
        mg.take(xs, 1) * 2.0
    noted                     # [None]: other arguments may select another number

A sparse derivative needs the pattern of all calls. If there were choices, it asks a trace, which has all numbers.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_noted: ContextVar[list[None] | None] = ContextVar("noted", default=None)


@contextmanager
def watching_choices() -> Iterator[list[None]]:
    """Gives a list, which has an element more after each choice that is made inside."""
    noted: list[None] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_choice() -> None:
    """Tell those who watch that a choice is made."""
    if (noted := _noted.get()) is not None:
        noted.append(None)
