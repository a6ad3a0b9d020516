"""How much memory there is, so that a program which needs more is refused before any of it is taken."""

from __future__ import annotations

import math
import os
from pathlib import Path

try:
    import resource
except ImportError:  # pragma: no cover  # Windows has no limits of this kind
    resource = None  # type: ignore[assignment]

_LIMITS_OF_CONTAINER = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_PAGES_IN_USE = Path("/proc/self/statm")


def bytes_there() -> float:
    """How many bytes of memory there are for this process; infinity where the system does not say.

    That is the least of what the machine has, of what a container may have, and of what is left of the limit that the
    process has itself, as ``ulimit -v`` sets it.
    """
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        machine: float = os.sysconf("SC_PHYS_PAGES") * page
    except (AttributeError, ValueError, OSError):
        return math.inf
    limits = [int(text) for path in _LIMITS_OF_CONTAINER if (text := _text(path).strip()).isdecimal()]
    if resource is not None:  # pragma: no branch
        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        if own != resource.RLIM_INFINITY:
            limits.append(max(own - page * int((_text(_PAGES_IN_USE).split() or ["0"])[0]), 0))
    return min([machine, *limits])


def check_memory(needed: float, there: float, what: str) -> None:
    """Refuse what there is no memory for.

    Args:
        needed: how many bytes it takes.
        there: how many there are.
        what: what takes them; the message begins with it.

    Raises:
        MemoryError: if it needs more than there is.

    Example:
        >>> check_memory(3e9, 2e9, "1,000 iterations")
        Traceback (most recent call last):
        MemoryError: 1,000 iterations take about 3.0 GB, and there are 2.0 GB of memory: go through fewer in one call
    """
    if needed > there:
        digits = 1 if there >= 1e8 else 4
        raise MemoryError(
            f"{what} take about {needed / 1e9:,.{digits}f} GB, and there are {there / 1e9:,.{digits}f} GB of memory: "
            "go through fewer in one call"
        )


def _text(path: Path) -> str:
    """What is in a file of the system; nothing where there is none."""
    try:
        return path.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""
