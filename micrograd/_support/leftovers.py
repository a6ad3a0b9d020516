"""Temporary files that a killed process left behind: known by their names, and removed once they are certainly ours.

    .micrograd-02c1d5ae9f1f4b0ab1a7e1d5c80a3b52.4026531836-41822-9be0c1d27a63f458.tmp

The name says on which machine, since which start of it, by which process it was made; the end is random. A process
of another machine may live though nobody here knows its number, as on a disk in a network: its files count as left
behind only when they are a week old.
"""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_UNKNOWN = "unknown"  # the machine, where there is no telling
OLD = 7 * 24 * 3600.0  # seconds; nobody takes so long to write a file
_NAME = re.compile(r"\.micrograd-([0-9a-f]{32}\.[0-9]{1,20}|unknown)-([1-9][0-9]{0,8})-[0-9a-f]{16}\.tmp")


def temporary_name() -> str:
    """A name for a temporary file, which nothing else has."""
    return f".micrograd-{_machine()}-{os.getpid()}-{os.urandom(8).hex()}.tmp"


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of this user in a folder whose processes are gone; errors are passed over.

    Windows cannot be asked whether a process lives without ending it: nothing is removed there.
    """
    if not hasattr(os, "geteuid"):
        return
    with suppress(OSError):
        for name in os.listdir(folder):
            if found := _NAME.fullmatch(name):
                with suppress(OSError):
                    _remove(folder / name, found[1], int(found[2]))


def _remove(path: Path, machine: str, process: int) -> None:
    known = os.lstat(path)
    if not stat.S_ISREG(known.st_mode) or known.st_uid != os.geteuid():
        return
    is_here = machine == _machine() != _UNKNOWN
    is_left = not _lives(process) if is_here else time.time() - known.st_mtime > OLD
    if is_left:
        path.unlink()


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        pass
    return True


@lru_cache(maxsize=1)
def _machine() -> str:
    """Identifies the boot of a machine, and the container, within which process numbers are unique; on Linux only."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            start = file.read().decode().strip().replace("-", "")
        return f"{start}.{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return _UNKNOWN
