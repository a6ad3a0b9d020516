"""Which line of the user's program is running: the one that messages name."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def calling_line() -> tuple[CodeType, int]:
    """The innermost line of the user's program that is running. Lines of NumPy, which calls back, do not count."""
    frame = calling_frame()
    return frame.f_code, frame.f_lineno


def warn_user(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Show a warning at the line of the user's program that is running."""
    code, line = calling_line()
    warnings.warn_explicit(message, category, code.co_filename, line)


def calling_frame() -> FrameType:
    """The frame of that line."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not _is_of_user(frame):
        frame = frame.f_back
    return frame


def raising_instruction(traceback: TracebackType | None) -> tuple[CodeType, int] | None:
    """The innermost instruction of the user's program that an exception came through."""
    found = None
    while traceback is not None:
        if _is_of_user(traceback.tb_frame):
            found = traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next
    return found


def is_of_package(frame: FrameType) -> bool:
    """Whether a frame runs code of this package."""
    return frame.f_code.co_filename.startswith(_PACKAGE)


def _is_of_user(frame: FrameType) -> bool:
    return not (is_of_package(frame) or frame.f_globals.get("__name__", "").startswith("numpy."))
