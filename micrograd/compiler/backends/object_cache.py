"""Compiled kernels on disk: the next process finds them, and checks them before it uses them.

An entry is the object code of one kernel. Its name is a hash of the kernel's name, the processor and the
versions of what compiled it. Its first line is a hash of the rest:

    ~/.cache/micrograd/3f2a...      5d41...
                                    object code

An entry that is cut off or damaged is compiled anew. An entry is written to a file of another name first,
which is then renamed, so processes may share the folder.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from micrograd._support.files import checksum, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable


def folder() -> Path:
    """The folder of the entries: MICROGRAD_CACHE if it is set, or else a folder among the user's caches."""
    if chosen := os.environ.get("MICROGRAD_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "micrograd" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "micrograd"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "micrograd"


def cached(key: str, make: Callable[[], bytes]) -> bytes:
    """The entry of a key. It is made if it is not there or not whole, and kept if the folder can be written."""
    try:
        path = _path(key)
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest == checksum(content).encode():
            return content
    except (OSError, RuntimeError):  # not there, not readable, or no home to look in
        pass
    content = make()
    with contextlib.suppress(OSError, RuntimeError):  # a cache that cannot be written is no cache
        path = _path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Waiting for the disk takes half a millisecond a kernel or more, and a damaged entry is made anew
        write_atomically(path, checksum(content).encode() + b"\n" + content, durable=False)
    return content


def _path(key: str) -> Path:
    return folder() / checksum(key.encode())[:32]
