"""Kept: the programs of a compiled function, by the structure of their arguments.

Those for lengths, texts and the like are kept up to a limit in bytes, MICROGRAD_PROGRAMS_MB. Beyond it, the one that
was not used for longest is given up. An object, such as a model or a lambda, may be another one at each call. So of the
programs for objects there is room for 32; the one that was not used for longest is put out. Where its objects are given
again later, more than 32 take turns, and the room is doubled. CacheInfo says how much is kept.
"""

from __future__ import annotations

import logging
import sys
from collections import OrderedDict
from contextlib import suppress
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from micrograd.compiler.backends.shared.limits import limit

if TYPE_CHECKING:
    from micrograd.compiler.calling.specialise import Specialised
    from micrograd.compiler.guards.structure import Structure

ROOM = 32
_LLVM = "micrograd.compiler.backends.llvm."
_LOG = logging.getLogger("micrograd")


class Kept:
    """The programs of a compiled function.

    Attributes:
        programs: by the key of the structure that they were traced for, the last used one last.
        traces: how many programs were traced.
        given_up: how many of these were given up for others.
    """

    def __init__(self) -> None:
        self.programs: OrderedDict[Any, Specialised] = OrderedDict()
        self.traces = self.given_up = 0
        # The objects that programs were traced for, the last used one last
        self._owners: OrderedDict[Any, list[Any]] = OrderedDict()
        self._put_out: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._room = ROOM
        self._warned = False

    def add(self, given: Structure, special: Specialised) -> bool:
        """Keep the program for what was given; whether to warn that it is always given other objects."""
        if given.objects:
            # methods are made again whenever they are read
            owners = [item.__self__ if type(item) is MethodType else item for item in given.objects]
            if all(self._put_out.get(id(owner)) is owner for owner in owners):
                self._room *= 2
            self._owners[given.key] = owners
        self.programs[given.key] = special
        self._keep_to_the_limit()
        return len(self._owners) > self._room and self._puts_out_the_oldest()

    def use(self, given: Structure) -> None:
        """Note that the program for what was given is the last used one."""
        self.programs.move_to_end(given.key)
        if given.objects:
            self._owners.move_to_end(given.key)

    def size(self) -> int:
        """About how many bytes the programs have."""
        return sum(special.size() for special in self.programs.values())

    def _keep_to_the_limit(self) -> None:
        """Give up programs that were not used for longest, but for the last one."""
        left, most = self.size(), limit("MICROGRAD_PROGRAMS_MB")
        while left > most and len(self.programs) > 1:
            key, special = self.programs.popitem(last=False)
            left -= special.size()
            self._owners.pop(key, None)
            self.given_up += 1
            _LOG.debug("%s: a program was given up, as all have more than MICROGRAD_PROGRAMS_MB", special.name)

    def _puts_out_the_oldest(self) -> bool:
        """Let a program go; whether that is the first time for one that was not used again."""
        oldest = next(iter(self._owners))
        special = self.programs.pop(oldest)
        self.given_up += 1
        _LOG.debug("%s: a program was given up, as there are %d for other objects", special.name, self._room)
        for owner in self._owners.pop(oldest):
            with suppress(TypeError):  # nothing can refer to it weakly: then it counts as another object each time
                self._put_out[id(owner)] = owner
        warns = special.retraced != 0 and not self._warned
        self._warned = self._warned or warns
        return warns


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
    def of(cls, *kept: Kept) -> CacheInfo:
        """What is kept now, by all of these together."""
        machine, disk = _loaded("llvm_machine"), _loaded("object_cache")
        return cls(
            sum(len(each.programs) for each in kept),
            sum(each.traces for each in kept),
            sum(each.given_up for each in kept),
            sum(each.size() for each in kept),
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
