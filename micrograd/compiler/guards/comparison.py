"""Comparison: whether objects are as they were, asked at each call of a compiled function.

Each kind of object is compared in the way that is fastest for it: a few calls of functions written in C for all objects
of a kind, whatever their number. Measured for a million numbers: an array takes 0.13 ms (its bytes against a copy of
them; a sum of the bytes takes 0.12 ms and would miss some changes, a CRC 1.1 ms, and copying the array at each call as
an input of the program 0.13 ms, and then all kernels would have to read it from there); a list takes 0.13 ms too (the
memory with its pointers against a copy of that; Python's own comparison with another list takes 0.38 ms, and misses an
equal number of another type). Where the pointers differ, the numbers are compared by type and bits, in 20 ms. An array
that is not writeable would need no comparison, but can be made writeable again. A few variables and attributes are
compared by one expression, written for them: six take 0.1 us, and with a map for each kind 0.6.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import lru_cache, partial
from itertools import chain
from marshal import dumps
from operator import eq, is_, itemgetter
from struct import pack
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd._support.locks import has_gil
from micrograd.compiler.guards.library_state import EXACT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence, Sized

_FEW = 32  # variables and attributes that one expression compares, and objects that are compared one by one


class Comparison:
    """What was there before, and functions that give what is there now.

    Attributes:
        equal: lists and dicts that are compared with copies of them by equality.
        keys: iterables of names.
        sized: objects whose lengths are compared.
        instances: objects whose classes are compared.
        getters: functions that give objects, which are compared by identity, and plain numbers by type and bits.
        named: items and attributes that are compared in the same way: itemgetter or attrgetter, their names, and the
            containers that have them.
        is_stale: whether something else is known to have changed.
    """

    is_stale = False

    def __init__(self) -> None:
        self.equal: list[Any] = []
        self.keys: list[Iterable[Any]] = []
        self.sized: list[Sized] = []
        self.getters: list[Callable[[], Iterable[Any]]] = []
        self.named: list[tuple[Any, tuple[Any, ...], Sequence[Any]]] = []
        self.instances: list[Any] = []
        self._equal_before: list[Any] = []
        self._arrays: list[tuple[Any, Any, Any, Any, bytearray]] = []
        self._lists: list[LongList] = []

    def add_equal(self, container: Any, copy: Any) -> None:
        """Compare a list or a dict with a copy of it by equality."""
        self.equal.append(container)
        self._equal_before.append(copy)

    def add_long_list(self, items: Any) -> None:
        """Compare a list of plain numbers and texts by its pointers, and by type and value where these differ."""
        self._lists.append(LongList(items))

    def add_rows(self, rows: Any) -> Rows:
        """Compare a list of lists of numbers and texts: the lists by identity, what is in them by type and value."""
        made = Rows(rows)
        self._lists.append(made)
        return made

    def add_array(self, array: Any, with_layout: bool) -> None:
        """Compare an array by its shape, type, bytes and perhaps layout; of objects, the bytes are their addresses."""
        if with_layout:
            self.getters.append(lambda: [array.flags.num, array.strides])
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

    def put_arrays_back(self) -> None:
        """Let arrays have the bytes that they had."""
        for entry in self._arrays:
            if not _has_same_bytes(entry):
                with suppress(ValueError):  # of one that is read-only now
                    entry[3][...] = np.frombuffer(entry[4], np.uint8)

    def freeze(self) -> None:
        """Take note of what is there now: it is what there was before."""
        self._reads = [(get, name, each) for get, names, all_of in self.named for each in all_of for name in names]
        if len(self._reads) > _FEW:
            self._reads = []
            self.getters += [_getter(*named) for named in self.named]
        self._has_getters = bool(self.getters)
        self._has_same_reads = FunctionType(_comparison_of(tuple(get is itemgetter for get, _, _ in self._reads)), {})
        self._remember(self._now(self._got_now()))
        self._lengths = list(map(len, self.sized))
        self._kinds = list(map(type, self.instances))
        self._keys = list(chain.from_iterable(self.keys))
        checks: list[tuple[Any, Callable[[], bool]]] = [
            (self.keys, lambda: list(chain.from_iterable(self.keys)) == self._keys),
            (self.sized, lambda: list(map(len, self.sized)) == self._lengths),
            (self.instances, lambda: list(map(type, self.instances)) == self._kinds),
            (self._arrays, lambda: all(map(_has_same_bytes, self._arrays))),
            (self._lists, lambda: all(each.has_same_items() for each in self._lists)),
        ]
        self._checks = [check for things, check in checks if things]

    def is_same(self) -> bool:
        """Whether the same is there now."""
        if self.is_stale:
            return False
        try:
            if self.equal != self._equal_before:
                return False
            for check in self._checks:
                if not check():
                    return False
            has_same_reads = self._has_same_reads()
            if has_same_reads and not self._has_getters:
                return True
            got = self._got_now()
            if has_same_reads and self._got.are(got):
                return True
            now = self._now(got)
        except Exception:  # an object that cannot be compared, a variable that was deleted, a dict that grows
            return False
        if len(now) != len(self._before) or not all(map(is_same, now, self._before)):
            return False
        self._remember(now)  # equal numbers: the next comparison is quick again
        return True

    def _got_now(self) -> list[Any]:
        return joined([get() for get in self.getters])

    def _now(self, got: list[Any]) -> list[Any]:
        return [get(name)(each) for get, name, each in self._reads] + got

    def _remember(self, now: list[Any]) -> None:
        count, containers = len(self._reads), [each for _, _, each in self._reads]
        self._before, self._got = now, _Objects(now[count:])
        keys = [name if get is itemgetter else get(name) for get, name, _ in self._reads]
        self._has_same_reads.__defaults__ = (*containers, *keys, *now[:count])


class _Objects:
    """Objects, which are compared with others by identity: if they are many, by their addresses if these can be read.

    Args:
        items: the objects.
    """

    def __init__(self, items: list[Any]) -> None:
        self._items = items  # no other objects get these addresses
        self._pointers = _pointers(items) if len(items) > _FEW and can_read_pointers() else None

    def are(self, others: list[Any]) -> bool:
        """Whether others are the same objects, in the same order."""
        if self._pointers is None:
            return len(others) == len(self._items) and all(map(is_, others, self._items))
        return _pointers(others) == self._pointers


@lru_cache(maxsize=256)
def _comparison_of(are_items: tuple[bool, ...]) -> CodeType:
    """The code that compares items and attributes of objects with what was there.

    Its arguments are the objects, the keys of items and what gets attributes, and what was there.

    Args:
        are_items: of which of the objects an item is read.
    """
    numbers = range(len(are_items))
    arguments = [f"{name}{number}" for name in "okb" for number in numbers]
    reads = [f"o{number}[k{number}]" if are_items[number] else f"k{number}(o{number})" for number in numbers]
    terms = [f"{read} is b{number}" for number, read in enumerate(reads)]
    code: CodeType = eval(f"lambda {', '.join(arguments)}: {' and '.join(terms) or True}").__code__
    return code


def _getter(get: Any, names: tuple[Any, ...], containers: Sequence[Any]) -> Callable[[], Iterable[Any]]:
    """What gives the items of these names of each container again."""
    get_all = partial(map, get(*names), containers)
    return get_all if len(names) == 1 else lambda: chain.from_iterable(get_all())


def _has_same_bytes(entry: tuple[Any, Any, Any, Any, bytearray]) -> bool:
    array, shape, kind, content, before = entry
    return array.shape == shape and array.dtype == kind and eq(before, content)


class LongList:
    """A list of plain numbers and texts, and the pointers that it had: in CPython, they are all in one piece of memory.

    Args:
        items: the list.
    """

    def __init__(self, items: list[Any]) -> None:
        self._items, self._before = items, list(items)
        self._length, self._memory = _memory(items, len(self._before))
        self._pointers, self._count = _pointers(self._before), len(self._before)

    def has_same_items(self) -> bool:
        """Whether each is the same object, or an equal one of the same type."""
        if self._has_same_pointers():
            return True
        if dumps(self._items, EXACT) != dumps(self._before, EXACT):
            return False
        self._before[:] = self._items  # the next comparison is quick again, and no other objects get these addresses
        self._pointers = _pointers(self._before)
        return True

    def _has_same_pointers(self) -> bool:
        # No call between the two, at which another thread could move the memory
        return self._length.value == self._count and self._pointers == self._memory.contents


class Rows(LongList):
    """A list of short lists of plain numbers and texts: all of these are put into one list, to compare their pointers.

    Args:
        rows: the list.

    Attributes:
        written: what was in it.
    """

    def __init__(self, rows: list[Any]) -> None:
        super().__init__(rows)
        self.written = dumps(rows, EXACT)
        self._lengths, numbers = self._content()
        self._numbers = _Objects(numbers)

    def _content(self) -> tuple[list[int], list[Any]]:
        """How long the rows are, and what is in them."""
        return list(map(len, self._items)), joined(self._items)

    def has_same_items(self) -> bool:
        """Whether the lists are the same objects, and equal numbers and texts of the same types are in them."""
        if not self._has_same_pointers():
            return False
        lengths, numbers = self._content()
        if lengths == self._lengths and self._numbers.are(numbers):
            return True
        if dumps(self._items, EXACT) != self.written:
            return False
        self._numbers = _Objects(numbers)  # the next comparison is quick again
        return True


def joined(parts: Iterable[Iterable[Any]]) -> list[Any]:
    """All items of all parts, in half the time of a list of itertools.chain."""
    items: list[Any] = []
    for part in parts:
        items += part
    return items


def can_read_pointers() -> bool:
    """Whether a list has its pointers where CPython puts them, and no other thread can move them meanwhile."""
    if sys.implementation.name != "cpython" or not has_gil():
        return False
    items = [object(), object()]
    return bytes(_pointers(items)) == pack("2P", *map(id, items))


def _memory(items: list[Any], length: int) -> tuple[Any, Any]:
    """The length of a list and the pointer to the memory with its pointers: its last fields but one."""
    step = ctypes.sizeof(ctypes.c_void_p)
    kind = ctypes.POINTER(ctypes.c_char * (length * step))
    end = id(items) + list.__basicsize__
    return ctypes.c_ssize_t.from_address(end - 3 * step), kind.from_address(end - 2 * step)


def _pointers(items: list[Any]) -> bytearray:
    return bytearray(_memory(items, len(items))[1].contents if items else b"")  # an empty list has no memory


def is_same(item: Any, before: Any) -> bool:
    """Whether it is the same object, or an equal plain number or text of the same type."""
    if item is before:
        return True
    kind = type(item)
    if kind is not type(before):
        return False
    if kind is float or kind is complex:
        return dumps(item, EXACT) == dumps(before, EXACT)
    if isinstance(item, np.generic):
        return item.tobytes() == before.tobytes()
    if kind is tuple:
        return len(item) == len(before) and all(map(is_same, item, before))
    return kind in (int, bool, str, bytes) and bool(item == before)
