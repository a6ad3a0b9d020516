"""Temporary files that a killed process left behind: the next write in their folder removes them when they are old."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OLD = 24 * 3600.0  # seconds; nobody takes so long to write a file
_NAME = re.compile(r"\.micrograd-[0-9a-f]{32}\.tmp")


def temporary_name() -> str:
    """A name for a temporary file, which nothing else has."""
    return f".micrograd-{os.urandom(16).hex()}.tmp"


def remove_leftovers(folder: Path) -> None:
    """Remove the old temporary files of this user in a folder; errors are passed over."""
    with suppress(OSError):
        for name in filter(_NAME.fullmatch, os.listdir(folder)):
            with suppress(OSError):
                known = os.lstat(folder / name)
                is_own = not hasattr(os, "geteuid") or known.st_uid == os.geteuid()
                if is_own and stat.S_ISREG(known.st_mode) and time.time() - known.st_mtime > OLD:
                    (folder / name).unlink()
