"""How to read the numbers in objects of libraries and of C, so that two readings can be compared.

An object of a class in Python has attributes, which are watched one by one. This is about the others:

    ContextVar, threading.local, weak references       what they stand for now
    array.array, bytearray, memoryview, ctypes         their bytes
    pandas, torch, and what else NumPy makes arrays of the bytes of that array
    dict.get, dict.values(), mapping proxies           the object that they belong to
    anything else                                      its pickle
"""

from __future__ import annotations

import gc
import io
import pickle
import threading
import weakref
from collections import defaultdict
from contextvars import Context, ContextVar
from functools import lru_cache, partial
from marshal import dumps
from operator import attrgetter, methodcaller
from types import BuiltinFunctionType, MappingProxyType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.guards.libraries import is_foreign

if TYPE_CHECKING:
    from collections.abc import Callable

EXACT = 2  # the version of marshal's format: this one writes each number with its type, and to the bit
MISSING: Any = object()
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), MappingProxyType)


class Reading:
    """What an object stands for, read again whenever it is compared.

    Args:
        read: gives a list of objects: the same ones, or equal numbers and texts, while nothing has changed.
    """

    def __init__(self, read: Callable[[], list[Any]]) -> None:
        self.read = read


def owner_of(item: Any) -> Any:
    """The object that a method written in C or a view belongs to; MISSING for anything else."""
    if issubclass(type(item), (BuiltinFunctionType, MethodWrapperType)):
        owner = item.__self__
        return MISSING if owner is None or isinstance(owner, ModuleType) else owner
    return gc.get_referents(item)[0] if issubclass(type(item), _VIEWS) else MISSING


def names_asked_by(item: Any) -> list[str]:
    """The attributes that an attrgetter or a methodcaller asks for."""
    if type(item) is attrgetter:
        paths: Any = item.__reduce__()[1]
        return [name for path in paths for name in path.split(".")]
    if type(item) is methodcaller:
        made: Any = item.__reduce__()
        return [getattr(made[0], "args", made[1])[0]]  # with named arguments, it is a partial
    return []


def reading_of(item: Any) -> Reading | None:
    """How to read an object whose state is not in attributes; None where it is, or where there is none."""
    kind = type(item)
    for kinds, read in _READERS:
        if issubclass(kind, kinds):
            return Reading(partial(read, item))
    if kind.__module__ == "unittest.mock":  # each has a class of its own
        return Reading(partial(_of_mock, item))
    home = next((base for base in kind.__mro__ if "__array__" in vars(base)), None)
    if home is not None and is_foreign(home.__module__):  # in a class of the user, it reads attributes
        return _readable(_columns if hasattr(kind, "columns") else _elements, item)
    return _readable(_bytes, item)


def pickled(item: Any) -> Reading | None:
    """An object by its pickle, which takes long; None where it has none."""
    return _readable(lambda item: [pickle.dumps(item)], item)


def _readable(read: Callable[[Any], list[Any]], item: Any) -> Reading | None:
    try:
        read(item)
    except Exception:  # whatever a library raises
        return None
    return Reading(partial(read, item))


def _referent(proxy: Any) -> list[Any]:
    try:
        return [proxy.__str__.__self__]
    except ReferenceError:
        return [MISSING]


def _of_this_thread(local: Any) -> list[Any]:
    attributes = local.__dict__  # another dict in each thread
    return [len(attributes), *attributes, *attributes.values()]


def _of_mock(mock: Any) -> list[Any]:
    """What a mock gives; what it notes of its calls is nothing that a function computes with."""
    given = ("_mock_return_value", "_mock_side_effect")
    return [i for name, i in vars(mock).items() if name in given or not name.startswith(("_mock_", "method_calls"))]


def _elements(item: Any) -> list[Any]:
    array = np.asarray(item)
    content = dumps(array.ravel().tolist(), EXACT) if array.dtype == object else array.tobytes()
    index = getattr(item, "index", None)  # of a series
    labels = _elements(index) if hasattr(type(index), "__array__") else []
    return [str(array.dtype), str(array.shape), content, *labels]


def _columns(table: Any) -> list[Any]:
    parts = [table.columns, *(column for _, column in table.items())]
    return [part for column in parts for part in _elements(column)]


def _bytes(item: Any) -> list[Any]:
    pointed_at = [bytes(item.contents)] if hasattr(type(item), "contents") and item else []  # a pointer of ctypes
    return [memoryview(item).tobytes(), *pointed_at]


_READERS: list[tuple[Any, Callable[[Any], list[Any]]]] = [
    (weakref.ProxyTypes, _referent),
    (weakref.ref, lambda reference: [reference()]),
    (ContextVar, lambda variable: [variable.get(MISSING)]),
    (threading.local, _of_this_thread),
    (type(lru_cache(len)), lambda function: [function.cache_info().misses]),  # none, once it was cleared
    (defaultdict, lambda table: [table.default_factory]),
    (BaseException, lambda error: [*error.args, error.__cause__, error.__context__, *vars(error).values()]),
    (Context, lambda context: [*context, *context.values()]),
    (weakref.finalize, lambda finalizer: [finalizer.alive]),
    (np.void, lambda record: [record.tobytes()]),
    ((io.StringIO, io.BytesIO), lambda file: [file.tell(), file.getvalue()]),
]
