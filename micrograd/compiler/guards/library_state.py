"""How to read the numbers in objects of libraries and of C, so that two readings can be compared.

An object of a class in Python has attributes, which are watched one by one. This is about the others:

    ContextVar, threading.local, weak references       what they stand for now
    array.array, bytearray, memoryview, ctypes         their bytes
    pandas, torch, and what else NumPy makes arrays of the bytes of that array; where NumPy has no such dtype, a pickle
    dict.get, dict.values(), mapping proxies           the object that they belong to
    anything else                                      its pickle
"""

from __future__ import annotations

import csv
import gc
import io
import locale
import logging
import pickle
import signal
import sys
import threading
import time
import weakref
from array import array
from collections import defaultdict
from contextlib import suppress
from contextvars import Context, ContextVar
from functools import lru_cache, partial
from marshal import dumps
from operator import attrgetter, methodcaller
from types import (
    BuiltinFunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodWrapperType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import numpy as np

from micrograd.compiler.guards.libraries import is_foreign

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_KEPT = 256  # results that are looked at in each call
EXACT = 2  # the version of marshal's format: this one writes each number with its type, and to the bit
MISSING: Any = object()
_MEMBERS = (GetSetDescriptorType, MemberDescriptorType)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()), MappingProxyType)


class Reading:
    """What an object stands for, read again whenever it is compared.

    Args:
        read: gives a list of objects: the same ones, or equal numbers and texts, while nothing has changed.
        asked: the names by which code asks for it: it counts where one of them is mentioned. None: always.
        put: puts back what was read; None where that cannot be.
    """

    def __init__(
        self,
        read: Callable[[], list[Any]],
        asked: frozenset[str] | None = None,
        put: Callable[[list[Any]], None] | None = None,
    ) -> None:
        self.read, self.asked, self.put = read, asked, put


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
    for kinds, read, *put in _READERS:
        if issubclass(kind, kinds):
            return Reading(partial(read, item), None, *(partial(each, item) for each in put))
    if kind.__module__ == "unittest.mock":  # each has a class of its own
        return Reading(partial(_of_mock, item))
    if (told := told_by(item)) is not None:
        return told
    home = next((base for base in kind.__mro__ if "__array__" in vars(base)), None)
    if home is not None and is_foreign(home.__module__):  # in a class of the user, it reads attributes
        return _readable(_columns if hasattr(kind, "columns") else _elements, item) or pickled(item)
    return _readable(_bytes, item, _put_bytes)


def told_by(item: Any) -> Reading | None:
    """How to read what an object of a library tells of its state; None of others."""
    for base in type(item).__mro__:
        if (told := _TOLD.get(f"{base.__module__}.{base.__qualname__}")) is not None:
            names, read = told
            return Reading(partial(read, item), frozenset(names.split()) or None)
    return None


def members_of(item: Any) -> Reading:
    """What an object written in C tells by attributes that code names."""
    kinds = [base for base in type(item).__mro__ if base is not object]
    names = [n for base in kinds for n, part in vars(base).items() if type(part) in _MEMBERS and n[0] != "_"]
    return Reading(partial(_attributes(*names), item), frozenset((*names, "getgeneratorstate")))


def pickled(item: Any) -> Reading | None:
    """An object by its pickle, which takes long; None where it has none."""
    return _readable(lambda item: [pickle.dumps(item)], item)


def _readable(
    read: Callable[[Any], list[Any]], item: Any, put: Callable[[Any, list[Any]], None] | None = None
) -> Reading | None:
    try:
        read(item)
    except Exception:  # whatever a library raises
        return None
    return Reading(partial(read, item), None, None if put is None else partial(put, item))


def _referent(proxy: Any) -> list[Any]:
    try:
        return [proxy.__str__.__self__]
    except ReferenceError:
        return [MISSING]


def _of_this_thread(local: Any) -> list[Any]:
    attributes = local.__dict__  # another dict in each thread
    return [len(attributes), *attributes, *attributes.values()]


def _put_in_this_thread(local: Any, found: list[Any]) -> None:
    count = found[0]
    attributes = local.__dict__
    attributes.clear()
    attributes.update(zip(found[1 : 1 + count], found[1 + count :], strict=True))


def _of_mock(mock: Any) -> list[Any]:
    """What a mock gives; what it notes of its calls is nothing that a function computes with."""
    given = ("_mock_return_value", "_mock_side_effect")
    return [i for name, i in vars(mock).items() if name in given or not name.startswith(("_mock_", "method_calls"))]


def _elements(item: Any) -> list[Any]:
    numbers = np.asarray(_strided(item) if hasattr(type(item), "detach") else item)
    content = dumps(numbers.ravel().tolist(), EXACT) if numbers.dtype == object else numbers.tobytes()
    index = getattr(item, "index", None)  # of a series
    labels = _elements(index) if hasattr(type(index), "__array__") else []
    of_pandas = [repr(getattr(item, name, None)) for name in ("name", "attrs")]
    return [str(numbers.dtype), str(numbers.shape), content, *of_pandas, *labels]


def _strided(tensor: Any) -> Any:
    """A tensor that requires a gradient, is sparse, or of a dtype that NumPy has not, as one that NumPy can read."""
    tensor = tensor.detach()
    with suppress(TypeError):
        return np.asarray(tensor)
    return tensor.to_dense().double()


def _columns(table: Any) -> list[Any]:
    parts = [table.columns, *(column for _, column in table.items())]
    return [repr(getattr(table, "attrs", None)), *(part for column in parts for part in _elements(column))]


def _bytes(item: Any) -> list[Any]:
    pointed_at = [bytes(item.contents)] if hasattr(type(item), "contents") and item else []  # a pointer of ctypes
    return [memoryview(item).tobytes(), *pointed_at]


def _put_bytes(item: Any, found: list[Any]) -> None:
    if isinstance(item, bytearray):
        item[:] = found[0]
    elif isinstance(item, array):
        del item[:]
        item.frombytes(found[0])
    else:
        memoryview(item).cast("B")[:] = found[0]


def _levels() -> list[Any]:
    loggers = [logging.root, *list(logging.root.manager.loggerDict.values())]
    return [logging.root.manager.disable, *(getattr(logger, "level", None) for logger in loggers)]


def _attributes(*names: str) -> Callable[[Any], list[Any]]:
    return lambda item: [_attribute(item, name) for name in names]


def _attribute(item: Any, name: str) -> Any:
    try:
        return getattr(item, name)
    except Exception:  # whatever a library raises
        return MISSING


_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_PROCESS = _attributes("_config", "_popen", "name", "daemon")
# What classes of libraries tell, beside doing something: by the class, the names that code asks by, and how it is read.
_TOLD: dict[str, tuple[str, Callable[[Any], list[Any]]]] = {
    "logging.Logger": (
        "level disabled handlers isEnabledFor getEffectiveLevel hasHandlers",
        lambda of: [of.getEffectiveLevel(), of.level, of.disabled, of.manager.disable, *of.handlers],
    ),
    "logging.Handler": ("level", _attributes("level")),
    "_thread.lock": ("locked", lambda lock: [lock.locked()]),
    "_thread.RLock": ("_is_owned", lambda lock: [lock._is_owned()]),
    "threading.Condition": ("_is_owned", lambda condition: [condition._is_owned()]),
    "concurrent.futures._base.Future": ("", _attributes("_state", "_result", "_exception")),
    "asyncio.locks.Event": ("", _attributes("_value")),
    "asyncio.locks.Lock": ("locked", _attributes("_locked")),
    "asyncio.locks.Semaphore": ("locked _value", _attributes("_value")),
    "asyncio.events.AbstractEventLoop": ("is_closed is_running", lambda loop: [loop.is_closed(), loop.is_running()]),
    "multiprocessing.process.BaseProcess": ("name daemon", _PROCESS),
    "multiprocessing.sharedctypes.SynchronizedBase": ("", lambda item: [memoryview(item.get_obj()).tobytes()]),
    "multiprocessing.managers.BaseProxy": ("", lambda proxy: [pickle.dumps(proxy._getvalue())]),
    "multiprocessing.shared_memory.SharedMemory": ("", lambda memory: [bytes(memory.buf)]),
    "tqdm.std.tqdm": ("n total last_print_n format_dict", _attributes("n", "total")),
    "decimal.Context": ("", _attributes(*_DECIMAL)),
}


def decimal_context() -> list[Any]:
    """How decimal computes in this context."""
    return [getattr(sys.modules["decimal"].getcontext(), name) for name in _DECIMAL]


# What functions of libraries tell that is set elsewhere: by the names that code calls them by.
SETTINGS: dict[str, Callable[[], list[Any]]] = {
    **dict.fromkeys(
        ("mktime", "fromtimestamp", "timestamp", "astimezone"), lambda: [time.timezone, time.altzone, *time.tzname]
    ),
    "getcontext": decimal_context,
    "getrecursionlimit": lambda: [sys.getrecursionlimit()],
    "getswitchinterval": lambda: [sys.getswitchinterval()],
    "get_threshold": lambda: [gc.get_threshold()],
    "getsignal": lambda: [signal.getsignal(number) for number in sorted(signal.valid_signals())],
    "get_ident": lambda: [threading.get_ident()],
    "get_native_id": lambda: [threading.get_native_id()],
    "current_thread": lambda: [thread := threading.current_thread(), thread.name],
    "active_count": lambda: [threading.active_count()],
    "geterr": lambda: [*np.geterr().values()],
    "getbufsize": lambda: [np.getbufsize()],
    "get_printoptions": lambda: [repr(np.get_printoptions())],
    "field_size_limit": lambda: [csv.field_size_limit()],
    "setlocale": lambda: [locale.setlocale(locale.LC_ALL)],
    "localeconv": lambda: [repr(locale.localeconv())],
    "getLogger": _levels,
}


def _kept(function: Any) -> list[Any]:
    """How often something was not found in the cache of a function, and what it keeps."""
    own = vars(function)
    kept = next((each for each in gc.get_referents(function) if type(each) is dict and each is not own), {})
    return [function.cache_info().misses, *(kept.values() if len(kept) <= _MOST_KEPT else ())]


def _put_variable(variable: Any, found: list[Any]) -> None:
    variable.set(Context().run(variable.get) if found[0] is MISSING else found[0])  # its default, or a LookupError


def _put_error(error: Any, found: list[Any]) -> None:
    count = len(error.args) + len(found) - len(_of_error(error))
    error.args = tuple(found[:count])


def _of_error(error: Any) -> list[Any]:
    return [*error.args, error.__cause__, error.__context__, *vars(error).values()]


# By their classes: how objects are read, and how that is put back.
_READERS: list[tuple[Any, ...]] = [
    (weakref.ProxyTypes, _referent),
    (weakref.ref, lambda reference: [reference()]),
    (ContextVar, lambda variable: [variable.get(MISSING)], _put_variable),
    (threading.local, _of_this_thread, _put_in_this_thread),
    (type(lru_cache(len)), _kept),
    (defaultdict, lambda table: [table.default_factory]),
    (BaseException, _of_error, _put_error),
    (Context, lambda context: [*context, *context.values()]),
    (weakref.finalize, lambda finalizer: [finalizer.alive]),
    (np.void, lambda record: [record.tobytes()]),
    ((io.StringIO, io.BytesIO), lambda file: [file.tell(), file.getvalue()]),
]
