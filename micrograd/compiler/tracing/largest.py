"""The largest of numbers that are read: ``max(x.data for x in xs)``, as softmaxes have it.

To read the number of a Value is refused, as ``mg.detach`` says what is meant. Here it may be read: a generator
expression hands each number on at once, so nobody else has it. ``max`` then compares, and keeps one of both:

    read x1    read x2    x2 > x1    read x3    x3 > x2    ...

The trace answers each comparison by yes, and lets the number on the left stand for the larger one from then on. So what
``max`` returns is the largest, and the program has no question to answer, whose answers would be paths.
"""

from __future__ import annotations

import dis
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType


class Reading:
    """A generator expression that reads numbers one by one.

    Args:
        frame: of the generator.
        first: the first number that somebody takes.
    """

    def __init__(self, frame: FrameType, first: Any) -> None:
        self._frame, self._largest, self._last = frame, first, first
        self._taken = _running(frame.f_back)

    def goes_on(self, frame: FrameType, number: Any) -> bool:
        """Whether a number that is read is the next one of these."""
        if frame is not self._frame or _running(frame.f_back) != self._taken:
            return False
        self._last = number
        return True

    def compares(self, frame: FrameType, number: Any, other: Any) -> bool:
        """Whether it is max that compares two numbers. Then the one on the left is to be the larger one."""
        are_next = number is self._last and other is self._largest and _running(frame) == self._taken
        if not are_next or not _is_call_with_generator(frame.f_code, frame.f_lasti):
            return False
        self._largest = number
        return True


def _running(frame: Any) -> tuple[FrameType, int]:
    """A frame, and the instruction that it is at."""
    return frame, frame.f_lasti


@cache
def is_handed_on(code: CodeType, position: int) -> bool:
    """Whether a generator expression hands on what it reads by an instruction as soon as it has read it."""
    following = next(each.opname for each in dis.get_instructions(code) if each.offset > position)
    return code.co_name == "<genexpr>" and following == "YIELD_VALUE"


@cache
def _is_call_with_generator(code: CodeType, position: int) -> bool:
    """Whether an instruction is a call that has one argument: a generator expression, which nobody else can read."""
    before: list[dis.Instruction] = []
    for each in dis.get_instructions(code):
        is_half = each.opname == "CALL" and before and before[-1].opname == "PRECALL"  # both are one, on Python 3.11
        if each.offset <= position and not is_half:
            before.append(each)
    iterated, made, called = before[-3:]
    calls = ("CALL", "PRECALL", "CALL_FUNCTION")
    return iterated.opname == "GET_ITER" and made.opname in calls and called.opname in calls and called.arg == 1
