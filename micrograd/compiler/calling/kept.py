"""Kept: the programs of a compiled function, by the structure of their arguments.

Those for lengths, texts and the like are kept up to a limit in bytes, MICROGRAD_PROGRAMS_MB. Beyond it, the one that
was not used for longest is given up. An object, such as a model or a lambda, may be another one at each call. So of the
programs for objects there is room for 32; the one that was not used for longest is put out. Where its objects are given
again later, more than 32 take turns, and the room is doubled.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from micrograd.compiler.backends.shared.limits import limit

if TYPE_CHECKING:
    from micrograd.compiler.calling.specialise import Specialised
    from micrograd.compiler.guards.structure import Structure

ROOM = 32
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
