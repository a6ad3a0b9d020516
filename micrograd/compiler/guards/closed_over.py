"""ClosedOver: what a function reads beside its arguments, and whether any of it was replaced since.

    scale = 2.0
    fast = mg.compile(lambda x: scale * model.w * x)

The program of this function has the 2.0 in it, and reads the Value that model.w was. So before the trace, a walk
over the variables that the code names (closures, globals, attributes, defaults), the functions that it calls and
the containers that it reaches writes down which objects are where. At the next call it is compared with what is
there now, container by container in C, and the function is traced anew where something else is there.

Attributes are followed where some code that is reached names them, those that the user has set on Values, too.
What belongs to Python, NumPy or another installed package is not looked into.
"""

from __future__ import annotations

import dis
import sys
from collections import ChainMap, UserDict, UserList, deque
from contextlib import suppress
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, repeat
from marshal import dumps
from operator import attrgetter, is_, itemgetter
from struct import pack
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd._support.checks import is_array, is_unknown
from micrograd._support.containers import base_of
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_MISSING: Any = object()
_by_identity: Any = object.__eq__
_LENGTH: Any = ("length",)  # in the place of keys: look at the length only
_INSIDE = ("micrograd.engine.", "micrograd.compiler.")  # nothing there is read by name
_NUMBERS = frozenset((float, int, bool, complex, type(None)))
_SINGLE = frozenset((bool, type(None)))  # of which there is one object each
_TEXTS = frozenset((str, bytes))
_ATOMS = _NUMBERS | _TEXTS
_OPAQUE = (BuiltinFunctionType, CodeType, Enum, GetSetDescriptorType, MemberDescriptorType, type(Ellipsis))
_LOOKED_AT_ONE_BY_ONE = 256  # texts in a list; in a longer one, equal texts of other types are alike
_LOOKED_AT = 100_000  # plain numbers in a list or an array; of a longer one, the length
EXACT = 2  # the version of marshal's format: this one writes each number with its type, and to the bit
_DEFAULTS = ("__defaults__", "__kwdefaults__")
_LONGEST = 200  # characters of how a place is written
_OF_COLLECTIONS = (ChainMap, UserDict, UserList)
# Code that names one of these may read any attribute.
_READS_ALL = frozenset(
    [
        *("__dict__", "__getattribute__", "asdict", "astuple", "attrgetter", "copy", "deepcopy", "delattr", "dir"),
        *("eval", "exec", "getattr", "getmembers", "hasattr", "methodcaller", "named_parameters", "parameters"),
        *("replace", "setattr", "state_dict", "vars"),
    ]
)
# Code that names one of these may read any attribute of a Value; or notice that there is none.
_READS_ALL_OF_VALUES = _READS_ALL - frozenset(
    ("asdict", "astuple", "copy", "deepcopy", "named_parameters", "parameters", "replace", "state_dict")
)
_MISSES_OF_VALUES = _READS_ALL_OF_VALUES | {"AttributeError", "Exception"}
_MAKE = frozenset(("__init__", "__new__", "__post_init__", "__repr__", "__str__"))  # run for no instance that is there
_READ_BY_NAME_ONLY = ("__annotations__", "__dict__", "__doc__", "__module__", "__qualname__", "__weakref__")
_SET = ("STORE_ATTR", "STORE_GLOBAL", "STORE_DEREF")
_ADD = frozenset(("add", "append", "appendleft", "extend", "insert", "setdefault", "update"))


class _Names(NamedTuple):
    """The names in a code object and those nested in it."""

    of_globals: frozenset[str]
    of_attributes: frozenset[str]


class _Watched(NamedTuple):
    """A container, what was in it, and how it is written.

    Attributes:
        path: how it is written: model.layers[0].
        form: what a place in it looks like: "." of attributes, "[" of elements, "" of variables.
        container: that is looked at.
        keys: of the places that are looked at; None for all.
        items: what was there.
        names: the keys of all items, where there are some.
    """

    path: str
    form: str
    container: Any
    keys: tuple[Any, ...] | None
    items: list[Any]
    names: tuple[Any, ...] = ()


class ClosedOver:
    """What some objects read beside their arguments, as it is now.

    Args:
        roots: functions, and objects that they are given; each with how it is written.
        whole: whether all attributes count, whatever the code names.

    Attributes:
        symbols: how the places are written where there is a symbol.
    """

    def __init__(self, roots: Iterable[tuple[str, Any]], whole: bool = False) -> None:
        self._seen: dict[int, Any] = {}
        self._names: set[str] = {"vars"} if whole else set()
        self._codes: dict[CodeType, None] = {}
        self._globals: dict[int, tuple[dict[str, Any], dict[str, None]]] = {}
        self._open: dict[int, tuple[str, str, Any, Any, dict[str, None]]] = {}
        self._new: list[int] = []
        self._queue = deque(roots)
        self._watched: list[_Watched] = []
        self._bare: dict[Value, None] = {}  # the Values that have no attributes of their own
        self._attributed: list[tuple[dict[str, Any], list[str]]] = []  # those of the others, and their names
        self._has_new_attributes = False
        self.symbols: list[str] = []
        self._before: list[Any] = []
        self._lengths: list[int] = []
        self._keys: list[Any] = []
        self._walk()
        self._arrange()

    def is_current(self) -> bool:
        """Whether all of it is still there."""
        try:
            if self._has_new_attributes or self._alike != self._alike_before:
                return False
            if self._numbers and self._numbers_now() != self._numbers_before:
                return False
            if self._keyed and list(chain.from_iterable(self._keyed)) != self._keys:
                return False
            if self._sized and list(map(len, self._sized)) != self._lengths:
                return False
            if self._made and [get() for get in self._made] != self._made_before:
                return False
            if all(map(is_, chain.from_iterable([get() for get in self._getters]), self._before)):
                return True
            now = self._now()
        except Exception:  # an object that cannot be compared, a variable that was deleted, a dict that grows
            return False
        if not all(map(_same, now, self._before)):
            return False
        self._before = now  # equal numbers: the next look is quick again
        return True

    def holds(self, value: Value) -> bool:
        """Whether a Value is among what is reached."""
        return value in self._bare or id(value) in self._seen

    def _numbers_now(self) -> bytes:
        return dumps([list(get()) for get in self._numbers], EXACT)

    def _now(self) -> list[Any]:
        return list(chain.from_iterable([get() for get in self._getters]))

    def change(self) -> str:
        """How the first place is written where there is something else now."""
        for watched in self._watched:
            now = _items(watched.container, watched.keys)
            if len(now) != len(watched.items):
                return f"the length of {watched.path}" if watched.form == "[" else watched.path
            for number, (item, before) in enumerate(zip(now, watched.items, strict=True)):
                if not _same(item, before):
                    return _written(watched, number)
        return "something"

    def notice_new_attributes(self) -> None:
        """Take note of Values that have other attributes now. This is for after the trace: no call pays for it."""
        changed = any(list(attributes) != names for attributes, names in self._attributed)
        self._has_new_attributes = changed or any(value.__dict__ for value in self._bare)

    def put_back(self) -> None:
        """Put what was there before into each container that has a symbol now."""
        for watched in self._watched:
            with suppress(Exception):  # what takes nothing back keeps its symbol, which is refused when it is used
                container = watched.container
                items: Any = container.ravel() if is_array(container) else _items(container, watched.keys)
                keys = container if isinstance(container, dict) and watched.keys is None else ()
                if any(map(_holds_symbol, chain(items, keys))):
                    _restore(watched)
                for name in list(container) if watched.form == "." and isinstance(container, dict) else ():
                    if name not in watched.names and _holds_symbol(container[name]):  # a new attribute
                        del container[name]
        for value in self._bare:
            for name in [name for name, item in value.__dict__.items() if _holds_symbol(item)]:
                delattr(value, name)

    def line_of(self, place: str) -> tuple[str, int] | None:
        """The file and the line where such a place is set; None if that cannot be told, or there are several."""
        found: set[tuple[str, int]] = set()
        while place and not found:
            if place.endswith("]"):
                place, name = place.rpartition("[")[0], ""
            else:
                place, _, name = place.rpartition(".")
            found = {
                (code.co_filename, line)
                for code in self._codes
                for nested in _nested(code)
                for line, operation, argument in _instructions(nested)
                if (operation in _SET and argument == name if name else _sets_an_element(operation, argument))
            }
        return found.pop() if len(found) == 1 else None

    def _walk(self) -> None:
        """Visit all that is reached, until no code names an attribute that was not looked at."""
        known = -1
        while True:
            while self._queue:
                self._visit(*self._queue.popleft())
            # Names that are new may be those of attributes of all objects; otherwise only new objects are looked at.
            objects, self._new = self._new, []
            if len(self._names) > known:
                known, objects = len(self._names), list(self._open)
            all_names = not self._names.isdisjoint(_READS_ALL)
            all_of_values = not self._names.isdisjoint(_READS_ALL_OF_VALUES)
            for key in objects:
                path, form, owner, content, taken = self._open[key]
                whole = form == "*" or (all_names and form == ".") or (all_of_values and form == "V")
                for name, item in list(content.items()):
                    if name in taken or not (whole or name in self._names or (form == "C" and _is_special(name))):
                        continue
                    if form == "C" and name in _MAKE and not isinstance(owner, _ByName):
                        continue
                    taken[name] = None
                    self._queue.append((f"{path}.{name}", item))
            if not self._queue and len(self._names) == known and not self._new:
                return

    def _open_up(self, key: int, path: str, form: str, owner: Any, content: Any, taken: dict[str, None]) -> None:
        """Let the attributes of an object be looked at."""
        self._open[key] = path, form, owner, content, taken
        self._new.append(key)

    def _visit(self, path: str, item: Any) -> None:
        kind = type(item)
        if kind is Value:
            self._visit_value(path, item)
            return
        if kind in _ATOMS or id(item) in self._seen:
            return
        if issubclass(kind, Value) and not kind.known:
            self.symbols.append(path)
            return
        self._seen[id(item)] = item
        path = path if len(path) < _LONGEST else f"...{path[-_LONGEST // 2 :]}"
        if kind is FunctionType:
            self._visit_function(path, item)
        elif isinstance(item, (list, tuple, dict, set, frozenset, deque)):
            self._visit_container(path, item)
        elif is_array(item):
            self._visit_array(path, item)
        elif kind is MethodType:
            self._queue += [("self" if path == "" else path, item.__self__), (path, item.__func__)]
        elif kind is partial:
            self._queue += [(path, item.func), (path, item.args), (path, item.keywords)]
        elif kind is staticmethod or kind is classmethod:
            self._queue.append((path, item.__func__))
        elif kind is property:
            self._queue += [(path, function) for function in (item.fget, item.fset) if function is not None]
        elif isinstance(item, _OPAQUE):
            return
        elif kind is ModuleType:
            if not is_foreign(item.__name__):
                self._open_up(id(item), path, "M", item, vars(item), {})
        elif isinstance(item, type):
            self._visit_class(item.__qualname__, item, _ByName())
        else:
            self._visit_object(path, item)

    def _visit_value(self, path: str, value: Value) -> None:
        attributes = value.__dict__
        if not attributes:
            self._bare[value] = None
        elif id(value) not in self._seen:
            self._seen[id(value)] = value
            self._attributed.append((attributes, list(attributes)))
            self._open_up(id(attributes), path, "V", value, attributes, {})

    def _visit_values(self, path: str, keys: Iterable[Any], items: Iterable[Any]) -> None:
        """Visit those among the items of a container, which has Values, numbers and texts only."""
        for key, item in zip(keys, items, strict=True):
            if type(item) is Value:
                self._visit_value(f"{path}[{key!r:.40}]" if item.__dict__ else "", item)

    def _visit_function(self, path: str, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in self._seen:
                self._seen[id(cell)] = cell
                content = _contents(cell)
                self._watched.append(_Watched(name, "", cell, None, [content]))
                self._queue.append((name, content))
        if function.__defaults__ or function.__kwdefaults__:
            found = _items(function, _DEFAULTS)
            self._watched.append(_Watched(path or function.__name__, ".", function, _DEFAULTS, found))
            self._queue += [(path, part) for part in found]
        if function.__dict__:
            self._open_up(id(function), function.__name__, ".", function, function.__dict__, {})
        if not is_foreign(function.__globals__.get("__name__") or ""):
            self._codes[function.__code__] = None
            of_globals, of_attributes = _names_in(function.__code__)
            self._names |= of_attributes
            known, names = self._globals.setdefault(id(function.__globals__), (function.__globals__, {}))
            self._names |= of_globals & (_READS_ALL | _MISSES_OF_VALUES)
            for name in of_globals:
                if name in known and name not in names:
                    names[name] = None
                    self._queue.append((name, known[name]))

    def _visit_container(self, path: str, container: Any) -> None:
        items = _items(container, None)
        kinds = set(map(type, items))
        names = tuple(base_of(container).keys(container)) if isinstance(container, dict) else ()
        if kinds <= _ATOMS and len(items) > _LOOKED_AT:
            self._watched.append(_Watched(path, "[", container, _LENGTH, [len(items)]))
        elif not isinstance(container, (tuple, frozenset)):
            self._watched.append(_Watched(path, "[", container, None, items, names))
        if any(map(is_unknown, names)):
            self.symbols.append(path)
        if kinds <= _ATOMS:
            pass
        elif kinds <= _ATOMS | {Value}:
            self._visit_values(path, names or range(len(items)), items)
        elif isinstance(container, dict):
            self._queue += [(f"{path}[{key!r:.40}]", item) for key, item in zip(names, items, strict=True)]
        else:
            self._queue += [(f"{path}[{number}]", item) for number, item in enumerate(items)]
        if type(container) not in (list, tuple, dict, set, frozenset, deque):
            self._visit_object(path, container)

    def _visit_array(self, path: str, array: Any) -> None:
        if array.dtype == object:
            elements = np.asarray(array).ravel().tolist()
            self._watched.append(_Watched(path, "[", array, None, _items(array, None), tuple(elements)))
            if set(map(type, elements)) <= _ATOMS | {Value}:
                self._visit_values(path, range(len(elements)), elements)
            else:
                self._queue += [(f"{path}[{number}]", element) for number, element in enumerate(elements)]
        else:
            keys = None if array.size <= _LOOKED_AT else _LENGTH
            self._watched.append(_Watched(path, "[", array, keys, _items(array, keys)))

    def _visit_object(self, path: str, item: Any) -> None:
        kind, attributes = type(item), _attributes(item)
        if attributes is not None and "__wrapped__" in attributes:  # a compiled function, or one with a cache
            self._queue.append((path, attributes["__wrapped__"]))
        ours = [base for base in kind.__mro__ if base.__module__.startswith("micrograd.") or base in _OF_COLLECTIONS]
        own = [base for base in kind.__mro__ if not is_foreign(base.__module__)]
        if any(base.__module__.startswith(_INSIDE) for base in ours) and not issubclass(kind, Value):
            return
        if not own and not ours and kind is not SimpleNamespace:
            return
        # Code that is not looked into may read all attributes; a Module itself reads none.
        form = "." if own and all(base.__name__ == "Module" or issubclass(base, Value) for base in ours) else "*"
        if attributes is not None and attributes is not item:
            self._open_up(id(attributes), path, form, item, attributes, {})
        if slots := tuple(name for base in own for name in _slots(base)):
            found = _items(item, slots)
            self._watched.append(_Watched(path, ".", item, slots, found))
            self._queue += [(f"{path}.{name}", part) for name, part in zip(slots, found, strict=True)]
        for base in own:
            if id(base) not in self._open:
                self._visit_class(base.__qualname__, base, base)

    def _visit_class(self, path: str, kind: type, owner: Any) -> None:
        for base in kind.__mro__:
            if not is_foreign(base.__module__) and (id(base) not in self._open or isinstance(owner, _ByName)):
                taken = self._open[id(base)][-1] if id(base) in self._open else {}
                self._open_up(id(base), base.__qualname__, "C", owner, vars(base), taken)

    def _arrange(self) -> None:
        """Sort what is watched by how it is compared fastest."""
        for content, taken in self._globals.values():
            self._watch("", content, taken, "")
        for path, form, _, content, taken in self._open.values():
            if form in (".", "*") and len(taken) == len(content):
                self._watched.append(_Watched(path, ".", content, None, list(content.values()), tuple(content)))
            elif form == "C":  # or a class below might get what is one of a class above
                absent = {name: None for name in self._names if name not in content and self._is_in_a_class(name)}
                self._watch(path, content, {**taken, **absent}, ".")
            else:
                self._watch(path, content, taken, ".")
        self._alike: list[Any] = []
        self._alike_before: list[Any] = []
        self._sized: list[Any] = []
        self._keyed: list[Any] = []
        cells: list[Any] = []
        views: list[Any] = []
        self._numbers: list[Callable[[], Iterable[Any]]] = []
        self._made: list[Callable[[], list[Any]]] = []  # what is made anew each time, lengths and bytes
        self._getters: list[Callable[[], Iterable[Any]]] = []
        of_numbers: dict[tuple[str, ...], list[Any]] = {}  # dicts that have plain numbers under these names
        named: dict[tuple[Any, tuple[str, ...]], list[Any]] = {}  # containers that have items of these names
        misses_of_values = not self._names.isdisjoint(_MISSES_OF_VALUES)
        in_order = not self._names.isdisjoint(_READS_ALL)  # or the order of attributes makes no difference
        for watched in self._watched:
            container, items = watched.container, watched.items
            if type(container) is CellType and items[0] is not _MISSING:
                cells.append(container)
            elif watched.keys is not None and watched.keys is not _LENGTH:
                get = itemgetter if isinstance(container, _MAPPINGS) else attrgetter
                missing = tuple(k for k, item in zip(watched.keys, items, strict=True) if item is _MISSING)
                if present := tuple(key for key in watched.keys if key not in missing):
                    named.setdefault((get, present), []).append(container)
                if missing:
                    self._getters.append(partial(_items, container, missing))
            elif watched.keys is not None or is_array(container):
                self._made.append(partial(_items, container, watched.keys))
            elif not isinstance(container, (list, dict)):
                self._getters.append(partial(_items, container, None))
                if type(container) is not CellType:
                    self._sized.append(container)
            elif type(container) is list and _is_compared_by_equality(items):
                self._alike.append(container)
                self._alike_before.append(items)
            elif type(container) is list and set(map(type, items)) <= _NUMBERS:
                self._numbers.append(partial(iter, container))
            elif watched.form == "." and not in_order and all(type(i) in _ATOMS or _is_told_apart(i) for i in items):
                self._alike.append(container)
                self._alike_before.append(dict(zip(watched.names, items, strict=True)))
                pairs = list(zip(watched.names, items, strict=True))
                if names := tuple(name for name, item in pairs if type(item) in _NUMBERS - _SINGLE):
                    of_numbers.setdefault(names, []).append(container)
                if names := tuple(name for name, item in pairs if type(item) in _TEXTS | _SINGLE):
                    named.setdefault((itemgetter, names), []).append(container)
            else:
                views.append(base_of(container).values(container) if isinstance(container, dict) else container)
                if isinstance(container, dict):
                    self._keyed.append(base_of(container).keys(container))
        self._numbers += [_getter(itemgetter, *found) for found in of_numbers.items()]
        self._getters += [_getter(get, names, containers) for (get, names), containers in named.items()]
        for _, form, _, content, taken in self._open.values():
            if form in (".", "*") and len(taken) < len(content):  # a new attribute may come before that of a class
                self._keyed.append(content.keys())
            elif form == "V" and misses_of_values:
                self._keyed.append(content.keys())
                self._sized.append(content)
        if misses_of_values:
            self._sized += [value.__dict__ for value in self._bare]
        self._sized += views
        if cells:
            self._getters.append(partial(map, _cell_contents, cells))
        if views:
            self._getters.append(partial(chain.from_iterable, views))
        self._made_before = [get() for get in self._made]
        self._before = self._now()
        self._numbers_before = self._numbers_now()
        self._lengths = list(map(len, self._sized))
        self._keys = list(chain.from_iterable(self._keyed))

    def _watch(self, path: str, content: Mapping[str, Any], names: dict[str, None], form: str) -> None:
        if names or form == ".":
            keys, known = tuple(names), tuple(content) if form == "." else ()
            self._watched.append(_Watched(path, form, content, keys, _items(content, keys), known))

    def _is_in_a_class(self, name: str) -> bool:
        return any(form == "C" and name in content for _, form, _, content, _ in self._open.values())


class _ByName:
    """Stands for a class that code names, and so may call."""


def _sets_an_element(operation: str, argument: Any) -> bool:
    return operation == "STORE_SUBSCR" or (_of_attributes(operation) and argument in _ADD)


def _of_attributes(operation: str) -> bool:
    return "ATTR" in operation or "METHOD" in operation


def _holds_symbol(item: Any, depth: int = 10) -> bool:
    """Whether it is a symbol, or a container of some."""
    if isinstance(item, (list, tuple, dict, set, deque)) and depth:
        return any(_holds_symbol(part, depth - 1) for part in (item.values() if isinstance(item, dict) else item))
    return is_unknown(item)


_cell_contents = attrgetter("cell_contents")


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return _MISSING


def _items(container: Any, keys: tuple[Any, ...] | None) -> list[Any]:
    """What is in a container."""
    if type(container) is CellType:
        return [_contents(container)]
    if keys is _LENGTH:
        return [container.shape if is_array(container) else len(container)]
    if is_array(container):  # an array of objects has their addresses in its bytes
        return [container.shape, container.dtype.str, container.tobytes()]
    if keys is None:
        return list(base_of(container).values(container) if isinstance(container, dict) else container)
    if isinstance(container, _MAPPINGS):
        return list(map(container.get, keys, repeat(_MISSING)))
    return [getattr(container, key, _MISSING) for key in keys]


_MAPPINGS: Any = (dict, type(vars(object)))


def _attributes(item: Any) -> Any:
    try:
        return object.__getattribute__(item, "__dict__")
    except AttributeError:
        return None


def _getter(get: Any, names: tuple[str, ...], containers: list[Any]) -> Callable[[], Iterable[Any]]:
    """What gives the items of these names of each container again."""
    get_all = partial(map, get(*names), containers)
    return get_all if len(names) == 1 else lambda: chain.from_iterable(get_all())


def _restore(watched: _Watched) -> None:
    """Put the items back into a container."""
    container, items, keys = watched.container, watched.items, watched.keys
    if type(container) is CellType:
        container.cell_contents = items[0]
    elif is_array(container):
        for place, item in enumerate(watched.names):
            container.flat[place] = item
    elif isinstance(container, dict):
        for key, item in zip(keys or watched.names, items, strict=True):
            container.pop(key, None)
            container[key] = item
        old = set(map(id, watched.names))  # not compared: a new key may be a symbol, which refuses that
        for key in [key for key in container if keys is None and id(key) not in old]:
            del container[key]
    elif keys is not None:
        for key, item in zip(keys, items, strict=True):
            if item is not _MISSING:
                setattr(container, key, item)
            elif hasattr(container, key):  # a slot that was empty
                delattr(container, key)
    elif isinstance(container, list):
        container[:] = items
    else:
        container.clear()
        (container.update if isinstance(container, set) else container.extend)(items)


def _written(watched: _Watched, number: int) -> str:
    """How a place in a container is written."""
    keys = watched.keys or watched.names
    if is_array(watched.container):
        return watched.path
    if watched.form == "":
        return str(keys[number]) if keys else watched.path
    if watched.form == "[":
        return f"{watched.path}[{keys[number] if keys else number!r}]"
    return f"{watched.path}.{keys[number]}"


def _same(item: Any, before: Any) -> bool:
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
    return kind in (int, bool, str, bytes, tuple) and _equal(item, before)


def _equal(item: Any, before: Any) -> bool:
    if type(item) is tuple:
        return len(item) == len(before) and all(map(_same, item, before))
    return bool(item == before)


def _is_compared_by_equality(items: list[Any]) -> bool:
    """Whether two lists are equal only if they hold the same; and long lists of texts, to be quick."""
    return all(map(_is_told_apart, items)) or (len(items) > _LOOKED_AT_ONE_BY_ONE and set(map(type, items)) <= _TEXTS)


def _is_told_apart(item: Any, depth: int = 3) -> bool:
    """Whether it is equal to nothing but itself; so are two lists or tuples that hold the same such things."""
    kind = type(item)
    if kind is list or kind is tuple:
        return depth > 0 and all(_is_told_apart(part, depth - 1) for part in item)
    return kind is Value or kind.__eq__ is _by_identity


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _READ_BY_NAME_ONLY


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    mangled = (f"_{kind.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names)
    return [name for name in mangled if name not in ("__dict__", "__weakref__")]


@lru_cache(1024)
def is_foreign(module: str) -> bool:
    """Whether a module belongs to Python, NumPy, this package or another one that is installed."""
    top = module.partition(".")[0]
    if top == "__main__":  # in a notebook, its file is that of another package
        return False
    if top in ("micrograd", "numpy") or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" in file or "dist-packages" in file


@lru_cache(1024)
def _names_in(code: CodeType) -> _Names:
    of_globals: set[str] = set()
    of_attributes: set[str] = set()
    for nested in _nested(code):
        for _, operation, argument in _instructions(nested):
            if operation in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"):
                of_globals.add(argument)
            elif _of_attributes(operation):
                of_attributes.add(argument)
        for constant in nested.co_consts:
            constants = constant if isinstance(constant, tuple) else (constant,)
            of_attributes.update(text for text in constants if isinstance(text, str) and text.isidentifier())
    return _Names(frozenset(of_globals), frozenset(of_attributes))


def _nested(code: CodeType) -> list[CodeType]:
    found = [code]
    for outer in found:
        found += [constant for constant in outer.co_consts if isinstance(constant, CodeType)]
    return found


def _instructions(code: CodeType) -> list[tuple[int, str, Any]]:
    """The line, the operation and the argument of each instruction."""
    line, found = code.co_firstlineno, []
    for instruction in dis.get_instructions(code):
        starts: Any = getattr(instruction, "line_number", instruction.starts_line)
        line = starts or line
        found.append((line, instruction.opname, instruction.argval))
    return found
