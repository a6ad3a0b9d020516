"""Which line of the user's program is running: the one that messages name."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, FrameType, TracebackType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_SITE_PACKAGES = tuple(_LIBRARY + name for name in ("site-packages", "dist-packages"))


def calling_line() -> tuple[CodeType, int]:
    """The innermost line of the user's program that is running.

    Lines of NumPy and of Python's library, which call back, do not count if there is another one.
    """
    innermost = calling_frame()
    outer: FrameType | None = innermost
    while outer is not None and (_is_of_library(outer) or not _is_of_user(outer)):
        outer = outer.f_back
    frame = outer or innermost
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


def _is_of_library(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return path.startswith(("<frozen ", _LIBRARY)) and not path.startswith(_SITE_PACKAGES)


def _is_of_user(frame: FrameType) -> bool:
    return not (is_of_package(frame) or frame.f_globals.get("__name__", "").startswith("numpy."))
