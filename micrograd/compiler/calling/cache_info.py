"""What compiled functions keep: how many programs, and how many bytes in memory and on disk."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.compiler.backends.shared.limits import limit

if TYPE_CHECKING:
    from micrograd.compiler.calling.kept import Kept

_LLVM = "micrograd.compiler.backends.llvm."


class CacheInfo(NamedTuple):
    """What is kept for one compiled function, and what the process and the disk have of native code.

    Attributes:
        programs: how many programs are kept for the function, each for another structure of its arguments.
        traces: how often the function was traced since it was made, or its cache was cleared.
        given_up: how many programs were given up for others.
        program_bytes: about how many bytes the programs have.
        program_limit: how many they may have: MICROGRAD_PROGRAMS_MB in the environment.
        code_bytes: bytes of the native code in memory that new programs of any function may use.
        code_limit: how many there may be: MICROGRAD_CODE_MB.
        disk_bytes: bytes of the native code on disk.
        disk_limit: how many there may be: MICROGRAD_CACHE_MB.
    """

    programs: int
    traces: int
    given_up: int
    program_bytes: int
    program_limit: int
    code_bytes: int
    code_limit: int
    disk_bytes: int
    disk_limit: int

    @classmethod
    def of(cls, kept: Kept) -> CacheInfo:
        """What is kept now."""
        machine, disk = _loaded("llvm_machine"), _loaded("object_cache")
        return cls(
            len(kept.programs),
            kept.traces,
            kept.given_up,
            kept.size(),
            int(limit("MICROGRAD_PROGRAMS_MB")),
            machine.bytes_in_memory() if machine else 0,
            int(limit("MICROGRAD_CODE_MB")),
            disk.bytes_on_disk() if disk else 0,
            int(limit("MICROGRAD_CACHE_MB")),
        )


def forget_native_code() -> None:
    """Leave the native code in memory to the programs that use it."""
    if machine := _loaded("llvm_machine"):
        machine.forget()


def _loaded(module: str) -> Any:
    """A module of the LLVM backend, if this process has needed it."""
    return sys.modules.get(_LLVM + module)
