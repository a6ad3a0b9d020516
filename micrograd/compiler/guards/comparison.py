"""Comparison: whether objects are as they were, asked at each call of a compiled function.

Each kind of object is compared in the way that is fastest for it: a few calls of functions written in C for all objects
of a kind, whatever their number. Measured for a million numbers: an array takes 0.13 ms (its bytes against a copy of
them; a sum of the bytes takes 0.12 ms and would miss some changes, a CRC 1.1 ms, and copying the array at each call as
an input of the program 0.13 ms, and then all kernels would have to read it from there); a list takes 0.39 ms (its
pointers against a copy of them), and 11 ms if the type and sign of each number are compared too, as those of shorter
lists are. An array that is not writeable would need no comparison, but can be made writeable again.
"""

from __future__ import annotations

from itertools import chain
from marshal import dumps
from operator import eq, is_
from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.guards.library_state import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sized


class Comparison:
    """What was there before, and functions that give what is there now.

    Attributes:
        equal: lists and dicts that are compared with copies of them by equality.
        numbers: functions that give plain numbers, which are compared with their types, and to the bit.
        keys: iterables of names.
        sized: objects whose lengths are compared.
        instances: objects whose classes are compared.
        getters: functions that give objects, which are compared by identity, and plain numbers by value.
    """

    def __init__(self) -> None:
        self.equal: list[Any] = []
        self.numbers: list[Callable[[], Iterable[Any]]] = []
        self.keys: list[Iterable[Any]] = []
        self.sized: list[Sized] = []
        self.getters: list[Callable[[], Iterable[Any]]] = []
        self.instances: list[Any] = []
        self._equal_before: list[Any] = []
        self._arrays: list[tuple[Any, Any, Any, Any, bytearray]] = []

    def add_equal(self, container: Any, copy: Any) -> None:
        """Compare a list or a dict with a copy of it by equality."""
        self.equal.append(container)
        self._equal_before.append(copy)

    def add_array(self, array: Any) -> None:
        """Compare an array by its shape, its type and its bytes; of objects, these are their addresses."""
        plain = np.asarray(array)
        if plain.flags.f_contiguous:
            plain = plain.T
        if plain.flags.c_contiguous and plain.dtype != object:
            content = plain.reshape(-1).view(np.uint8)  # the memory itself
            self._arrays.append((array, array.shape, array.dtype, content, bytearray(content)))
        else:
            self.getters.append(lambda: [array.shape, array.dtype.str, array.tobytes()])

    def has_same_bytes(self, array: Any) -> bool:
        """Whether an array has the bytes that it had; so has what is no array."""
        return all(map(_has_same_bytes, (entry for entry in self._arrays if entry[0] is array)))

    def freeze(self) -> None:
        """Take note of what is there now: it is what there was before."""
        self._getters_before = self._now()
        self._numbers_before = self._numbers_now()
        self._lengths = list(map(len, self.sized))
        self._kinds = list(map(type, self.instances))
        self._keys = list(chain.from_iterable(self.keys))

    def is_same(self) -> bool:
        """Whether the same is there now."""
        try:
            if self.equal != self._equal_before:
                return False
            if self.numbers and self._numbers_now() != self._numbers_before:
                return False
            if self.keys and list(chain.from_iterable(self.keys)) != self._keys:
                return False
            if self.sized and list(map(len, self.sized)) != self._lengths:
                return False
            if self.instances and list(map(type, self.instances)) != self._kinds:
                return False
            if self._arrays and not all(map(_has_same_bytes, self._arrays)):
                return False
            if all(map(is_, chain.from_iterable([get() for get in self.getters]), self._getters_before)):
                return True
            now = self._now()
        except Exception:  # an object that cannot be compared, a variable that was deleted, a dict that grows
            return False
        if len(now) != len(self._getters_before) or not all(map(is_same, now, self._getters_before)):
            return False
        self._getters_before = now  # equal numbers: the next comparison is quick again
        return True

    def _numbers_now(self) -> bytes:
        return dumps([list(get()) for get in self.numbers], EXACT)

    def _now(self) -> list[Any]:
        return list(chain.from_iterable([get() for get in self.getters]))


def _has_same_bytes(entry: tuple[Any, Any, Any, Any, bytearray]) -> bool:
    array, shape, kind, content, before = entry
    return array.shape == shape and array.dtype == kind and eq(before, content)


def is_same(item: Any, before: Any) -> bool:
    """Whether it is the same object, or an equal plain number or text of the same type."""
    if item is before:
        return True
    kind = type(item)
    if kind is not type(before):
        return False
    if kind is float:
        return pack("d", item) == pack("d", before)
    if isinstance(item, np.generic):
        return item.tobytes() == before.tobytes()
    if kind is tuple:
        return len(item) == len(before) and all(map(is_same, item, before))
    return kind in (int, bool, str, bytes) and bool(item == before)
