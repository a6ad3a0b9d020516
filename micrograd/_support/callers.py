"""Which line of the user's program is running: the one that messages name."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def calling_line() -> tuple[CodeType, int]:
    """The innermost line of the user's program that is running. Lines of NumPy, which calls back, do not count."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename.startswith(_PACKAGE) or frame.f_globals.get("__name__", "").startswith("numpy.")
    ):
        frame = frame.f_back
    return frame.f_code, frame.f_lineno
