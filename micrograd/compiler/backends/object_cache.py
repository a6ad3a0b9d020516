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
import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

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
        path = folder() / hashlib.sha256(key.encode()).hexdigest()[:32]
        digest, _, content = path.read_bytes().partition(b"\n")
        if digest == _digest(content):
            return content
    except (OSError, RuntimeError):  # not there, not readable, or no home to look in
        pass
    content = make()
    with contextlib.suppress(OSError, RuntimeError):  # a cache that cannot be written is no cache
        _write(folder() / hashlib.sha256(key.encode()).hexdigest()[:32], content)
    return content


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_digest(content) + b"\n" + content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
