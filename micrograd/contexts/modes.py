"""Modes of modules: whether they are being evaluated, and where dropout gets its masks.

A mask is a list of numbers, each 0 for what is dropped and 1 / (1 - rate) for what is kept.
"""

from __future__ import annotations

import random
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from micrograd.engine.recorder import recorder_on_top
from micrograd.engine.tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Source = Callable[[int, float], list[Any]]

_evaluating: ContextVar[bool] = ContextVar("evaluating", default=False)
_source: ContextVar[Source | None] = ContextVar("source", default=None)


class MaskError(TypeError):
    """Dropout in a program that is being compiled, where no masks are given."""


@contextmanager
def evaluating() -> Iterator[None]:
    """Let all modules be in evaluation mode."""
    token = _evaluating.set(True)
    try:
        yield
    finally:
        _evaluating.reset(token)


def is_evaluating() -> bool:
    """Whether all modules are in evaluation mode."""
    return _evaluating.get()


@contextmanager
def masks_from(source: Source) -> Iterator[None]:
    """Let dropout ask a function for its masks, which takes how many numbers and the rate."""
    token = _source.set(source)
    try:
        yield
    finally:
        _source.reset(token)


def mask(count: int, rate: float) -> list[Any]:
    """A mask of so many numbers, drawn from Python's ``random`` where nothing else gives one.

    Raises:
        MaskError: while a function is being compiled, where it would be the same at each call.
    """
    if (source := _source.get()) is not None:
        return source(count, rate)
    if isinstance(recorder_on_top(), Tracer):
        raise MaskError(
            "dropout draws another mask at each call, and a compiled function would keep the first one: call eval() of "
            "the module first, or train with mg.fit, which draws a mask for each step"
        )
    return drawn_mask(count, rate)


def drawn_mask(count: int, rate: float) -> list[float]:
    """A mask from Python's ``random``."""
    kept = 1 / (1 - rate)
    return [0.0 if random.random() < rate else kept for _ in range(count)]
