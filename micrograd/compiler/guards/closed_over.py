"""ClosedOver: what a function reads beside its arguments, and whether any of it was replaced since.

    scale = 2.0
    fast = mg.compile(lambda x: scale * model.w * x)

The program of this function has the 2.0 in it, and reads the Value that model.w was. So before the trace, a traversal
over the variables that the code names (closures, globals, attributes, defaults), the functions that it calls and
the containers that it reaches writes down which objects are where. At the next call it is compared with what is
there now, container by container in C, and the function is traced again where something else is there.

Attributes are followed where some code that is reached names them, those that the user has set on Values, too. The
code of libraries is not inspected (libraries.py), so all attributes of their objects count; objects written in C are
read as library_state.py says. What gives another number each time, such as a generator of random numbers, is
collected in sources.py.
"""

from __future__ import annotations

import builtins
import ctypes
import gc
import os
import sys
import threading
import weakref
from abc import ABCMeta, get_cache_token
from collections import deque
from contextlib import suppress
from enum import Enum
from functools import lru_cache, partial
from itertools import chain, islice, repeat
from marshal import loads
from operator import attrgetter, itemgetter
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    UnionType,
)
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from micrograd._support.checks import is_array, is_unknown
from micrograd._support.containers import base_of
from micrograd.compiler.guards.code_names import (
    full_name,
    line_that_stores,
    names_in,
    nested_in,
    variables_read,
    variables_set,
)
from micrograd.compiler.guards.comparison import Comparison, Rows, can_read_pointers, is_same, joined
from micrograd.compiler.guards.libraries import is_foreign, is_without_numbers
from micrograd.compiler.guards.library_state import (
    MISSING,
    SETTINGS,
    Reading,
    decimal_context,
    members_of,
    names_asked_by,
    owner_of,
    pickled,
    reading_of,
    told_by,
)
from micrograd.compiler.guards.sources import Sources, mentions, observing, resting
from micrograd.engine.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

_by_identity: Any = object.__eq__
_INSIDE = ("micrograd.engine.", "micrograd.compiler.")  # nothing there is read by name
_ATOMS = frozenset((float, int, bool, complex, type(None), str, bytes))
_TYPES = (CodeType, GetSetDescriptorType, MemberDescriptorType, UnionType, type(Ellipsis))
_OPAQUE = (*_TYPES, np.generic, np.dtype, range, slice)
_LONG = 64  # numbers and texts in a list that is compared by its pointers: of 200, in 0.1 us in place of 2.4
_FEW_ROWS = 16  # lists in a list: fewer are looked at one by one, as are those with
_SHORT = 32  # numbers and more, in the mean
_DEFAULTS = ("__defaults__", "__kwdefaults__")
_LONGEST = 200  # characters of how a position is written
_BARE = frozenset(("builtins", "abc", "typing", "enum", "collections.abc", "numpy", "_io", "types"))  # bases' modules
_CACHE: Any = type(lru_cache(len))
_C_DATA: Any = ctypes.c_double.__mro__[2]  # its classes have the names of the modules that made them first
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
# Code that names one of these may read any attribute of a class or a module, too, or run any code.
_READS_BY_NAME = frozenset(
    [
        *("__dict__", "__getattribute__", "attrgetter", "eval", "exec", "getattr", "getmembers", "methodcaller"),
        *("vars", "FunctionType", "globals", "__globals__", "f_globals"),
    ]
)
_MISSES_OF_VALUES = _READS_ALL_OF_VALUES | {"AttributeError", "Exception"}
_MAKE = frozenset(("__init__", "__new__", "__post_init__", "__repr__", "__str__"))  # run for no instance that is there
_READ_BY_NAME_ONLY = ("__annotations__", "__dict__", "__doc__", "__module__", "__qualname__", "__weakref__")
# What functions and classes tell of themselves, by the names by which code asks
_TOLD_OF_CODE = {
    **{name: name for name in ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")},
    "getdoc": "__doc__",
    "get_type_hints": "__annotations__",
    "get_annotations": "__annotations__",
    "signature": "__annotations__",
    "__subclasses__": "__subclasses__",
}
_View: Any = type(vars(object))  # of the attributes of a class
_ENVIRONMENT = frozenset(("environ", "environb", "getenv", "getenvb", "expandvars"))
_IMPORTERS = frozenset(("modules", "import_module", "__import__"))


class _Watched(NamedTuple):
    """A container, what was in it, and how it is written.

    Attributes:
        path: how it is written: model.layers[0].
        form: what a position in it looks like: "." of attributes, "[" of elements, "" of variables.
        container: that is looked at.
        keys: of the positions that are looked at; None for all.
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
        symbols: how the positions are written where there is a symbol.
        functions: those of the user that are reached.
        codes: their code.
        sources: what is reached that gives another number each time, such as iterators.
        is_current: whether all of it is still there.
    """

    is_current: Callable[[], bool]

    def __init__(self, roots: Iterable[tuple[str, Any]], whole: bool = False) -> None:
        self._seen: dict[int, Any] = {}
        self._names: set[str] = {"vars"} if whole else set()
        self._mentioned: set[str] = set()  # all names in code, also those of variables
        self._modules: dict[int, ModuleType] = {}  # of the user
        self._computes_with_decimals = False
        self.codes: dict[CodeType, None] = {}
        self._globals: dict[int, tuple[dict[str, Any], dict[str, None]]] = {}
        self._absent: dict[int, tuple[dict[str, Any], dict[str, None]]] = {}
        self._open: dict[int, tuple[str, str, Any, Any, dict[str, None]]] = {}
        self._new: list[int] = []
        self._classes: dict[int, type] = {}  # of the user
        self._instances: list[Any] = []  # of these
        self.functions: list[FunctionType] = []
        self._queue = deque(roots)
        self._containers: list[_Watched] = []
        self._watched: list[_Watched] = []
        self._tables: dict[int, list[Any]] = {}  # lists of short rows, which are compared at once
        self._rows: dict[int, Rows] = {}  # what was in them
        self._bare: dict[Value, None] = {}  # the Values that have no attributes of their own
        self._attributed: list[tuple[dict[str, Any], list[str]]] = []  # those of the others, and their names
        self.sources = Sources()
        self.symbols: list[str] = []
        with resting(observing()):  # in the middle of a trace, what is read here is nothing that the function reads
            self._traversal()
            self._arrange()

    def is_as_before(self) -> bool:
        """Whether all of it could be looked into, and is still there, in the middle of a trace."""
        with resting(observing()):
            self.notice_new_attributes()
            return not self.sources.iterators and self.is_current()

    def watches_the_same(self, other: ClosedOver) -> bool:
        """Whether it is current whenever the other is: both found the same objects, and code that asks the same."""
        mine, theirs = (
            [each._names, each._mentioned, each._bare, each._classes, each._comparison.is_stale]
            + [(w.path, w.keys, w.names, [*map(id, (_owner(w.container), *w.items))]) for w in each._watched]
            + [rows.written for rows in each._rows.values()]
            for each in (self, other)
        )
        return mine == theirs and not any(is_array(one.container) for one in self._watched)

    def holds(self, item: Any) -> bool:
        """Whether a Value, or something that can be changed in place, is among what is reached."""
        return id(item) in self._seen or (isinstance(item, Value) and item in self._bare)

    def refusing_sources(self, trace: Callable[[], Any]) -> Any:
        """What a trace gives; a TraceError if it asks for something that is another number each time."""
        return self.sources.refusing(self.codes, trace)

    def watch_what_ran(self) -> None:
        """Watch what code reads that was run by the trace and not reached before, such as what eval was given.

        Raises:
            TraceError: if it reaches what gives another number each time.
        """
        if not self.sources.strange:
            return
        referrers = gc.get_referrers(*self.sources.strange)
        functions = [item for item in referrers if type(item) is FunctionType]
        self._queue += [("", function) for function in functions]
        known = {function.__code__ for function in functions}
        for code, variables in self.sources.strange.items():
            if code not in known:
                self._visit_code(code, variables)
        with self.sources.refusing_more():
            self._traversal()
        self._arrange()

    def reaches_many(self, count: int) -> bool:
        """Whether a list or an array is reached that is as long, or an int that is as large."""
        found = [(each.container, each.items) for each in self._watched]
        lengths = [
            max(np.shape(container), default=0) if is_array(container) else len(items) for container, items in found
        ]
        constants = [nested.co_consts for code in self.codes for nested in nested_in(code)]
        ints = (item for items in (*constants, *(items for _, items in found if len(items) < count)) for item in items)
        return max(lengths, default=0) >= count or any(type(item) is int and item >= count for item in ints)

    def reaches_values(self) -> bool:
        """Whether a Value is reached."""
        return bool(self._bare or self._attributed)

    def may_set_what(self, other: ClosedOver) -> bool:
        """Whether code that is reached here may set a variable that code reached there reads: by its name."""
        return not variables_set(self.codes).isdisjoint(variables_read(other.codes))

    def containers(self) -> set[int]:
        """The identities of what is reached and can be changed in place."""
        watched = {id(w.container) for w in self._watched if type(w.container) not in (CellType, FunctionType)}
        opened = {key for key, (_, form, *_) in self._open.items() if form != "L"}
        in_tables = {id(row) for table in self._tables.values() for row in table}
        return (watched | opened | in_tables) - self._globals.keys()

    def change(self) -> str:
        """How the first place is written where there is something else now."""
        for watched in self._row_by_row():
            if not self._comparison.has_same_bytes(watched.container):
                return watched.path
            now = _items(watched.container, watched.keys) if watched.items else []
            if len(now) != len(watched.items):
                return f"the length of {watched.path}" if watched.form == "[" else watched.path
            for number, (item, before) in enumerate(zip(now, watched.items, strict=True)):
                if not is_same(item, before):
                    return _written(watched, number)
        return "something"

    def notice_new_attributes(self) -> None:
        """Take note of Values that have other attributes now. This is for after the trace: no call pays for it."""
        changed = any(list(attributes) != names for attributes, names in self._attributed)
        self._comparison.is_stale = changed or not (
            _are_bare(self._bare) or not any(value.__dict__ for value in self._bare)
        )

    def put_back(self, whole: bool = False) -> None:
        """Put what was there before into each container that has a symbol now.

        Args:
            whole: whether into each that has anything else now.
        """
        if whole:
            self._comparison.put_arrays_back()
        classes = {id(self._open[key][3]): kind for key, kind in self._classes.items()}  # by their attributes
        for watched in self._row_by_row():
            with suppress(Exception):  # what takes nothing back keeps its symbol, which is refused when it is used
                container = watched.container
                if (kind := classes.get(id(container))) is not None:
                    _restore_class(kind, watched, whole)
                    continue
                if is_array(container) and container.dtype != object:
                    continue
                items: Any = container.ravel() if is_array(container) else _items(container, watched.keys)
                keys = container if isinstance(container, dict) and watched.keys is None else ()
                is_other = whole and (len(items) != len(watched.items) or not all(map(is_same, items, watched.items)))
                if is_other or any(map(_holds_symbol, chain(items, keys))):
                    _restore(watched)
                if watched.form == "." and isinstance(container, dict):
                    for name in container.keys() - watched.names:  # new attributes
                        if _holds_symbol(container[name]):
                            del container[name]
        for value in self._bare:
            for name in [name for name, item in value.__dict__.items() if _holds_symbol(item)]:
                delattr(value, name)

    def _row_by_row(self) -> Iterator[_Watched]:
        """All containers that are watched, with the rows of tables."""
        for watched in self._watched:
            yield watched
            if (rows := self._rows.get(id(watched.container))) is not None:
                for number, (row, before) in enumerate(zip(watched.items, loads(rows.written), strict=True)):
                    yield _Watched(f"{watched.path}[{number}]", "[", row, None, before)

    def line_of(self, position: str) -> tuple[str, int] | None:
        """The file and the line where such a position is set; None if that cannot be told, or there are several."""
        found = None
        while position and not found:
            if position.endswith("]"):
                position, name = position.rpartition("[")[0], ""
            else:
                position, _, name = position.rpartition(".")
            found = line_that_stores(self.codes, name)
        return found

    def _traversal(self) -> None:
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
            by_name = not self._names.isdisjoint(_READS_BY_NAME)
            for key in objects:
                form = self._open[key][1]
                if form in ("C", "M") and by_name:
                    self._look_into_data(key)
                self._look_into(key, form == "*" or (all_names and form == ".") or (all_of_values and form == "V"))
            if not self._queue and len(self._names) == known and not self._new:
                return

    def _look_into(self, key: int, whole: bool) -> None:
        """Visit the attributes of an object that code names, or all of them."""
        path, form, owner, content, taken = self._open[key]
        if form == "L":  # a library has hundreds of names
            if not self._names.isdisjoint(_READS_ALL_OF_VALUES):
                self.sources.suspect_module(owner.__name__)
            loaded = _loaded_by_name(owner, self._names - content.keys())
            self._queue += [(f"{path}.{name}", item) for name, item in loaded.items() if name not in content]
            taken.update(dict.fromkeys(new := [n for n in self._names if n in content and n not in taken]))
            self._queue += [(f"{path}.{name}", content[name]) for name in new]
            return
        for name, item in list(content.items()):
            is_called = (form == "C" and _is_special(name)) or (form == "M" and name == "__getattr__")
            if name in taken or not (whole or name in self._names or is_called):
                continue
            if form == "C" and name in _MAKE and not isinstance(owner, _ByName):
                continue
            taken[name] = None
            self._queue.append((f"{path}.{name}", item))

    def _look_into_data(self, key: int) -> None:
        """Visit what a class or a module has beside code, as its names may be made at run time."""
        path, _, _, content, taken = self._open[key]
        for name, item in list(content.items()):
            if name not in taken and not (_is_special(name) or name in _READ_BY_NAME_ONLY) and not _is_code(item):
                taken[name] = None
                self._queue.append((f"{path}.{name}", item))

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
        elif issubclass(kind, weakref.ProxyTypes):
            self._visit_state(path, item)
        elif issubclass(kind, (list, tuple, dict, set, frozenset, deque)):
            self._visit_container(path, item)
        elif is_array(item):
            self._visit_array(path, item)
        elif issubclass(kind, ModuleType):
            is_library = is_foreign(vars(item).get("__name__"))  # the user's own may have lost it
            self._modules |= {} if is_library else {id(item): item}
            self._open_up(id(item), path, "L" if is_library else "M", item, vars(item), {})
        elif issubclass(kind, type):
            self.sources.suspect(item)
            self._visit_class(item.__qualname__, item, _ByName())
        elif (parts := _parts(path, item)) is not None:
            self.sources.take(path, item)
            self.sources.suspect(item)
            self._queue += parts
        elif kind is np.void or not issubclass(kind, _OPAQUE):
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
        if _are_bare(values := [item for item in items if type(item) is Value]):
            self._bare.update(dict.fromkeys(values))
            return
        for key, item in zip(keys, items, strict=True):
            if type(item) is Value:
                self._visit_value(f"{path}[{key!r:.40}]" if item.__dict__ else "", item)

    def _visit_function(self, path: str, function: FunctionType) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if id(cell) not in self._seen:
                self._seen[id(cell)] = cell
                content = _contents(cell)
                self._containers.append(_Watched(name, "", cell, None, [content]))
                self._queue.append((name, content))
        if function.__defaults__ or function.__kwdefaults__:
            found = _items(function, _DEFAULTS)
            self._containers.append(_Watched(path or function.__name__, ".", function, _DEFAULTS, found))
            self._queue += [(path, part) for part in found]
        if function.__dict__:
            self._open_up(id(function), function.__name__, ".", function, function.__dict__, {})
        if is_foreign(function.__globals__.get("__name__") or ""):
            self.sources.suspect(function)
            self._mentioned.add(function.__name__)
        else:
            self.functions.append(function)
            self._visit_code(function.__code__, function.__globals__)

    def _visit_code(self, code: CodeType, variables: dict[str, Any]) -> None:
        """Visit what code of the user names."""
        self.codes[code] = None
        names = names_in(code)
        self._mentioned |= names.of_attributes | names.of_globals
        self.sources.suspect_names(names.of_attributes | names.of_globals)
        self._names.update(f"_{name}_" for name in ("name", "value") if name in names.of_attributes)  # of enum members
        self._names |= names.of_attributes | (names.of_globals & (_READS_ALL | _MISSES_OF_VALUES))
        known = self._globals.setdefault(id(variables), (variables, {}))[1]
        absent = self._absent.setdefault(id(variables), (variables, {}))[1]
        for name in names.of_globals:
            if name not in variables:
                absent[name] = None
                self._visit_builtin(name)
            elif name not in known:
                known[name] = None
                self._queue.append((name, variables[name]))
        if not _ENVIRONMENT.isdisjoint(names.of_attributes | names.of_globals):
            self._queue.append(("os.environ", os.environ))
        modules = {full_name(module, level, variables.get("__package__")) for module, level in names.of_modules}
        if not _IMPORTERS.isdisjoint(names.of_attributes | names.of_globals):
            modules |= {text for text in names.texts if text in sys.modules}
        if modules:
            self._visit_modules(modules)

    def _visit_builtin(self, name: str) -> None:
        """Visit what code finds among the builtins, where the user may have added something."""
        item = getattr(builtins, name, None)
        self.sources.suspect(item)
        if name in vars(builtins) and not is_foreign(getattr(item, "__module__", "")):
            self._globals.setdefault(id(vars(builtins)), (vars(builtins), {}))[1][name] = None
            self._queue.append((name, item))

    def _visit_modules(self, modules: Iterable[str]) -> None:
        """Visit modules that code imports when it runs, and those that they are in."""
        watched = self._globals.setdefault(id(sys.modules), (sys.modules, {}))[1]
        for module in modules:
            parts = module.split(".")
            for length in range(1, len(parts) + 1):
                name = ".".join(parts[:length])
                watched[name] = None
                self._queue.append((name, sys.modules.get(name)))

    def _visit_container(self, path: str, container: Any) -> None:
        items = _items(container, None)
        kinds = set(map(type, items))
        names = tuple(base_of(container).keys(container)) if isinstance(container, dict) else ()
        if not isinstance(container, (tuple, frozenset)):
            self._containers.append(_Watched(path, "[", container, None, items, names))
        if any(map(is_unknown, names)):
            self.symbols.append(path)
        if kinds <= _ATOMS:
            pass
        elif len(kinds) == 1 and len(items) > _LONG and is_unknown(items[0]):
            self.symbols.append(path)
        elif _is_table(container, items):
            self._tables[id(container)] = container
        elif kinds <= _ATOMS | {Value}:
            self._visit_values(path, names or range(len(items)), items)
        elif isinstance(container, dict):
            self._queue += [(f"{path}[{key!r:.40}]", item) for key, item in zip(names, items, strict=True)]
        else:
            self._queue += [(f"{path}[{number}]", item) for number, item in enumerate(items)]
        if not set(map(type, names)) <= _ATOMS:
            self._queue += [(path, key) for key in names]
        if type(container) not in (list, tuple, dict, set, frozenset, deque):
            self._visit_object(path, container)

    def _visit_array(self, path: str, array: Any) -> None:
        if array.dtype == object:
            elements = np.asarray(array).ravel().tolist()
            self._containers.append(_Watched(path, "[", array, None, _items(array, None), tuple(elements)))
            if set(map(type, elements)) <= _ATOMS | {Value}:
                self._visit_values(path, range(len(elements)), elements)
            else:
                self._queue += [(f"{path}[{number}]", element) for number, element in enumerate(elements)]
        else:
            self._containers.append(_Watched(path, "[", array, None, []))
        if type(array) is not np.ndarray:
            self._visit_object(path, array)

    def _visit_object(self, path: str, item: Any) -> None:
        kind, attributes = type(item), _attributes(item)
        if attributes is not None and "__wrapped__" in attributes:  # a compiled function, or one with a cache
            self._queue.append((path, attributes["__wrapped__"]))
        self._names.update(names_asked_by(item))
        if kind is _CACHE:  # what it keeps is for calls that are alike
            self._visit_state(path, item)
            return
        if mentions(item):
            self.sources.suspect(item)
            self._mentioned.add(item.__name__)
            self._names |= _READS_ALL & {item.__name__}
            self._queue += [(path, part) for part in (attributes or {}).values() if type(part) is FunctionType]
            return
        if self.sources.take(path, item):
            if kind is GeneratorType:
                self._visit_reading(path, members_of(item))
            return
        self._computes_with_decimals |= kind.__module__ == "decimal"
        is_c_data = issubclass(kind, _C_DATA)
        ours = [base for base in kind.__mro__ if base.__module__.startswith("micrograd.") and not is_c_data]
        own = [base for base in kind.__mro__ if not is_foreign(base.__module__)]
        if any(base.__module__.startswith(_INSIDE) for base in ours) and not issubclass(kind, Value):
            return
        is_library = not own and not ours
        if is_library:
            self.sources.suspect(kind)
        holds_none = issubclass(kind, Enum) or is_without_numbers(kind.__module__)
        if is_library and holds_none and not (_is_local(kind) or is_c_data):
            self._visit_state(path, item, only_told=True)
            return
        is_read = not ours and not is_array(item) and self._visit_state(path, item)
        is_all = is_read and (is_library or _is_local(kind))  # of a library, nothing else counts
        if attributes is not None and attributes is not item and not is_all:
            self._open_up(id(attributes), path, _form(kind, own, ours), item, attributes, {})
        if slots := tuple(name for base in kind.__mro__ if base not in ours for name in _slots(base)):
            found = _items(item, slots)
            self._containers.append(_Watched(path, ".", item, slots, found))
            self._queue += [(f"{path}.{name}", part) for name, part in zip(slots, found, strict=True)]
        if own:
            self._instances.append(item)
        elif not (attributes is not None or slots or is_read or ours or kind.__module__ == "builtins"):
            self._visit_pickle(path, item)
        for base in own:
            if id(base) not in self._open:
                self._visit_class(base.__qualname__, base, base)

    def _visit_state(self, path: str, item: Any, only_told: bool = False) -> bool:
        """Watch what can be read from an object beside attributes; whether that is all."""
        reading = told_by(item) if only_told else reading_of(item)
        if reading is None:
            return False
        self._queue += [(path, part) for part in self._visit_reading(path, reading)]
        return True

    def _visit_reading(self, path: str, reading: Reading) -> list[Any]:
        found = reading.read()
        self._containers.append(_Watched(path, "", reading, None, found))
        return found

    def _visit_pickle(self, path: str, item: Any) -> None:
        """Watch the pickle of an object that cannot be looked into in any other way."""
        if (reading := pickled(item)) is not None:
            self._visit_reading(path, reading)
        else:
            self._visit_reading(path, members_of(item))
            self.sources.take_unwatched(path, item)

    def _visit_class(self, path: str, kind: type, owner: Any) -> None:
        meta: Any = type(kind)
        for base in (*kind.__mro__, *meta.__mro__):
            if not is_foreign(base.__module__) and (id(base) not in self._open or isinstance(owner, _ByName)):
                taken = self._open[id(base)][-1] if id(base) in self._open else {}
                self._classes[id(base)] = base
                self._open_up(id(base), base.__qualname__, "C", owner, vars(base), taken)

    def _arrange(self) -> None:
        """Sort what is watched by how it is compared fastest."""
        self._comparison, self._watched = Comparison(), [*self._containers]
        for content, taken in self._globals.values():
            self._watch("", content, taken, "")
        in_classes = {name for _, form, _, content, _ in self._open.values() if form == "C" for name in content}
        inherited = in_classes.intersection(self._names)
        for key, (path, form, _, content, taken) in self._open.items():
            if form in (".", "*") and len(taken) == len(content):
                self._watched.append(_Watched(path, ".", content, None, list(content.values()), tuple(content)))
            elif form == "C":  # or a class below might get what is one of a class above
                absent = {name: None for name in self._names if name in inherited and name not in content}
                self._watch(path, content, {**taken, **absent, **self._special_above(self._classes[key])}, ".")
            elif form == "L":
                self._watch(path, content, {name: None for name in taken if _is_data(content[name])}, ".")
            else:
                self._watch(path, content, taken, ".")
        if not self._names.isdisjoint(_MISSES_OF_VALUES):
            bare = [each for each in self.functions if not each.__dict__]
            self._watched += [_Watched(each.__name__, ".", each.__dict__, None, []) for each in bare]
        self._arrange_containers()
        self._arrange_names()
        self._arrange_settings()
        if "requires_grad" in self._names:  # code may decide by it, also of Values that the program does not read then
            owners = (owner for _, form, owner, _, _ in self._open.values() if form == "V")
            self._comparison.getters.append(partial(map, attrgetter("requires_grad"), (*self._bare, *owners)))
        self._comparison.freeze()
        self.is_current = self._comparison.is_same

    def _arrange_containers(self) -> None:
        comparison = self._comparison
        cells: list[Any] = []
        views: list[Any] = []
        named: dict[tuple[Any, tuple[str, ...]], list[Any]] = {}  # containers that have items of these names
        in_order = not self._names.isdisjoint(_READS_ALL)  # or the order of attributes makes no difference
        self._rows = {key: comparison.add_rows(table) for key, table in self._tables.items()}
        for watched in self._watched:
            if id(watched.container) in self._tables:
                continue
            container, items = watched.container, watched.items
            kind = type(container)
            if kind is CellType and items[0] is not MISSING:
                cells.append(container)
            elif kind is Reading:
                if container.asked is None or not container.asked.isdisjoint(self._mentioned):
                    comparison.getters.append(container.read)
            elif watched.keys is not None:
                self._arrange_named(watched, named)
            elif is_array(container):
                comparison.add_array(container, not self._names.isdisjoint(("flags", "strides")))
            elif not isinstance(container, (list, dict)):
                comparison.getters.append(partial(_items, container, None))
                comparison.sized += [container] if kind is not CellType else []
            elif kind is list and _are_told_apart(items):
                comparison.add_equal(container, items)
            elif kind is list and len(items) > _LONG and set(map(type, items)) <= _ATOMS and can_read_pointers():
                comparison.add_long_list(container)
            elif watched.form == "." and not in_order and _are_told_apart([i for i in items if type(i) not in _ATOMS]):
                self._arrange_attributes(watched, named)
            else:
                views.append(base_of(container).values(container) if isinstance(container, dict) else container)
                comparison.keys += [base_of(container).keys(container)] if isinstance(container, dict) else []
        comparison.named += [(get, names, containers) for (get, names), containers in named.items()]
        comparison.sized += views
        if cells:
            comparison.named.append((attrgetter, ("cell_contents",), cells))
        if views:
            comparison.getters.append(partial(joined, views))

    def _arrange_named(self, watched: _Watched, named: dict[tuple[Any, tuple[str, ...]], list[Any]]) -> None:
        """Arrange a container of which some items are looked at, by their names."""
        get = itemgetter if isinstance(watched.container, _MAPPINGS) else attrgetter
        pairs = list(zip(watched.keys or (), watched.items, strict=True))
        if present := tuple(key for key, item in pairs if item is not MISSING):
            named.setdefault((get, present), []).append(watched.container)
        if missing := tuple(key for key, item in pairs if item is MISSING):
            self._comparison.getters.append(partial(_items, watched.container, missing))

    def _arrange_attributes(self, watched: _Watched, named: dict[tuple[Any, tuple[str, ...]], list[Any]]) -> None:
        """Arrange attributes that are compared by equality, with their types where these are plain numbers or texts."""
        pairs = list(zip(watched.names, watched.items, strict=True))
        self._comparison.add_equal(watched.container, dict(pairs))
        if names := tuple(name for name, item in pairs if type(item) in _ATOMS):
            named.setdefault((itemgetter, names), []).append(watched.container)

    def _arrange_names(self) -> None:
        """Arrange the names that there are, and those that there are not."""
        comparison = self._comparison
        misses_of_values = not self._names.isdisjoint(_MISSES_OF_VALUES)
        by_name = not self._names.isdisjoint(_READS_BY_NAME)
        for _, form, _, content, taken in self._open.values():
            if form in (".", "*") and len(taken) < len(content):  # a new attribute may come before that of a class
                comparison.keys.append(content.keys())
            elif form in ("C", "M") and by_name:
                comparison.sized.append(content)
            elif form == "V" and misses_of_values:
                comparison.keys.append(content.keys())
                comparison.sized.append(content)
        if misses_of_values:
            comparison.sized += [value.__dict__ for value in self._bare]
        # What hardly ever changes: the classes of objects, the bases of classes, the code of functions. And a global
        # that is defined later may come before a builtin of its name.
        asks = not self._mentioned.isdisjoint(("isinstance", "issubclass"))
        if asks or any(isinstance(kind, ABCMeta) for kind in self._classes.values()):
            comparison.getters.append(lambda: [get_cache_token()])  # another one once a class is registered
        classes = [kind for kind in self._classes.values() if kind.__bases__ != (object,)]  # others must keep theirs
        comparison.named += [(attrgetter, ("__mro__",), classes), (attrgetter, ("__code__",), self.functions)]
        comparison.instances += self._instances
        comparison.getters += [
            partial(map, variables.keys().isdisjoint, [tuple(absent)])
            for variables, absent in self._absent.values()
            if absent
        ]

    def _arrange_settings(self) -> None:
        """Arrange what functions of libraries tell that is set elsewhere, and what code tells of itself."""
        asked = {SETTINGS[name]: None for name in SETTINGS if name in self._mentioned}
        if self._computes_with_decimals or "Decimal" in self._mentioned:
            asked[decimal_context] = None
        self._comparison.getters += asked
        told = {attribute for name, attribute in _TOLD_OF_CODE.items() if name in self._names}
        items = [*self.functions, *self._classes.values(), *self._modules.values()]
        self._comparison.getters += [partial(_told_of_code, items, name) for name in sorted(told)]

    def _watch(self, path: str, content: Mapping[str, Any], names: dict[str, None], form: str) -> None:
        if names or form == ".":
            keys, known = tuple(names), tuple(content) if form == "." else ()
            self._watched.append(_Watched(path, form, content, keys, _items(content, keys), known))

    def _special_above(self, kind: type) -> dict[str, None]:
        """The special methods that a class has from those above it."""
        above = [self._open[id(base)][-1] for base in kind.__mro__[1:] if id(base) in self._open]
        return {name: None for taken in above for name in taken if _is_special(name) and name not in vars(kind)}


def _owner(container: Any) -> Any:
    """A container; what all views of the attributes of classes have in common, for these."""
    return type(container) if isinstance(container, _View) else container


class _ByName:
    """Stands for a class that code names, and so may call."""


def _parts(path: str, item: Any) -> list[tuple[str, Any]] | None:
    """What an object stands for that calls or shows others; None for other objects."""
    kind = type(item)
    if kind is MethodType:
        return [("self" if path == "" else path, item.__self__), (path, item.__func__)]
    if kind is partial:
        return [(path, item.func), (path, item.args), (path, item.keywords)]
    if kind is staticmethod or kind is classmethod:
        return [(path, item.__func__)]
    if kind is np.flatiter:  # its position is that of an iterator, which is looked at as such
        return [(path, item.base)]
    if kind is property:
        return [(path, function) for function in (item.fget, item.fset) if function is not None]
    owner = owner_of(item)
    return None if owner is MISSING else [(path, owner)]


def _form(kind: type, own: list[type], ours: list[type]) -> str:
    """How attributes of an object count: "." those that code names; "*" all, for code of libraries may read them.

    A Module of micrograd itself reads none, and neither do the classes that are the base of others.
    """
    of_library = [base for base in kind.__mro__ if base not in own and base.__module__ not in _BARE]
    bare = {base for base in ours if base.__name__ in ("Module", "Parameterised", "SavedState")}
    reads = [b for b in of_library if not (b in bare if b in ours else is_without_numbers(b.__module__))]
    return "." if own and all(issubclass(base, Value) for base in reads) else "*"


def _is_local(kind: type) -> bool:
    return issubclass(kind, threading.local)


def _is_data(item: Any) -> bool:
    """Whether an item of a library is no part of its code."""
    return not isinstance(item, (FunctionType, BuiltinFunctionType, type, ModuleType))


def _is_code(item: Any) -> bool:
    """Whether an item of a class or a module is part of its code."""
    return isinstance(item, (FunctionType, BuiltinFunctionType, type, ModuleType, *_DESCRIPTORS))


_DESCRIPTORS = (staticmethod, classmethod, property, GetSetDescriptorType, MemberDescriptorType)


def _told_of_code(items: list[Any], name: str) -> list[Any]:
    """What functions, classes and modules tell of themselves."""
    if name == "__subclasses__":
        classes = (item for item in items if isinstance(item, type))
        return list(chain.from_iterable(map(type.__subclasses__, classes)))
    found = [getattr(item, name, MISSING) for item in items]
    if name != "__annotations__":
        return found
    return [part for item in found if isinstance(item, dict) for part in (*item, *item.values())]


def _loaded_by_name(library: ModuleType, names: set[str]) -> dict[str, Any]:
    """Those parts of a library that it loads when they are named, as NumPy does ``np.random``."""
    found: dict[str, Any] = {}
    if "__getattr__" in vars(library):
        for name in names.intersection(dir(library)):
            with suppress(Exception):  # as where it needs another library
                found[name] = getattr(library, name)
    return found


def _holds_symbol(item: Any, depth: int = 10) -> bool:
    """Whether it is a symbol, or a container of some."""
    if isinstance(item, (list, tuple, dict, set, deque)) and depth:
        return any(_holds_symbol(part, depth - 1) for part in (item.values() if isinstance(item, dict) else item))
    return is_unknown(item)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return MISSING


def _items(container: Any, keys: tuple[Any, ...] | None) -> list[Any]:
    """What is in a container."""
    if type(container) is CellType:
        return [_contents(container)]
    if type(container) is Reading:
        return container.read()
    if is_array(container):  # an array of objects has their addresses in its bytes
        return [container.shape, container.dtype.str, container.tobytes()]
    if keys is None:
        return list(base_of(container).values(container) if isinstance(container, dict) else container)
    if isinstance(container, _MAPPINGS):
        return list(map(container.get, keys, repeat(MISSING)))
    return [getattr(container, key, MISSING) for key in keys]


_MAPPINGS = (dict, _View)


def _attributes(item: Any) -> Any:
    try:
        return object.__getattribute__(item, "__dict__")
    except AttributeError:
        return None


def _restore(watched: _Watched) -> None:
    """Put the items back into a container."""
    container, items, keys = watched.container, watched.items, watched.keys
    if type(container) is CellType:
        container.cell_contents = items[0]
    elif type(container) is Reading:
        if container.put is not None:
            container.put(items)
    elif is_array(container):
        for position, item in enumerate(watched.names):
            container.flat[position] = item
    elif isinstance(container, dict):
        for key, item in zip(keys or watched.names, items, strict=True):
            container.pop(key, None)
            container[key] = item
        old = set(map(id, watched.names))  # not compared: a new key may be a symbol, which refuses that
        for key in [key for key in container if keys is None and id(key) not in old]:
            del container[key]
    elif keys is not None:
        for key, item in zip(keys, items, strict=True):
            if item is not MISSING:
                setattr(container, key, item)
            elif hasattr(container, key):  # a slot that was empty
                delattr(container, key)
    elif isinstance(container, list):
        container[:] = items
    else:
        container.clear()
        (container.update if isinstance(container, set) else container.extend)(items)


def _restore_class(kind: type, watched: _Watched, whole: bool) -> None:
    """Put the attributes back that are symbols now, or all that were changed."""
    before, now = dict(zip(watched.keys or (), watched.items, strict=True)), vars(kind)
    others = [name for name, item in before.items() if whole and not is_same(now.get(name, MISSING), item)]
    for name in dict.fromkeys([*(name for name, item in now.items() if _holds_symbol(item)), *others]):
        if before.get(name, MISSING) is MISSING:
            delattr(kind, name)
        else:
            setattr(kind, name, before[name])


def _written(watched: _Watched, number: int) -> str:
    """How a position in a container is written."""
    keys = watched.keys or watched.names
    if is_array(watched.container):
        return watched.path
    if watched.form == "":
        return str(keys[number]) if keys else watched.path
    if watched.form == "[":
        return f"{watched.path}[{keys[number] if keys else number!r}]"
    return f"{watched.path}.{keys[number]}"


def _are_told_apart(items: Sequence[Any], depth: int = 3) -> bool:
    """Whether each is equal to nothing but itself; so are two lists or tuples that hold the same such things."""
    kinds = set(map(type, items))
    nested = kinds & {list, tuple}
    if not all(kind is Value or kind.__eq__ is _by_identity for kind in kinds - nested):
        return False
    parts = [item for item in items if type(item) in nested] if nested else ()
    return depth > 0 and all(_are_told_apart(part, depth - 1) for part in parts)


def _is_table(container: Any, rows: list[Any]) -> bool:
    """Whether it is a list of short lists of plain numbers and texts, and of some of them."""
    if type(container) is not list or len(rows) < _FEW_ROWS or set(map(type, rows)) != {list}:
        return False
    is_short = sum(map(len, rows)) <= _SHORT * len(rows)
    return is_short and set(map(type, chain.from_iterable(rows))) <= _ATOMS and can_read_pointers()


def _are_bare(values: Collection[Value]) -> bool:
    """Whether Values have no attributes of their own: then they refer to what any other one does, and to no more.

    To ask for a ``__dict__`` would make one, of 64 bytes for each Value. Where some have one already, the answer is no.
    """
    rest = iter(values)
    while some := list(islice(rest, 1000)):  # for all at once, the list of what they refer to would be long
        if len(gc.get_referents(*some)) != _REFERENTS * len(some):
            return False
    return True


_REFERENTS = len(gc.get_referents(Value(0.0)))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _READ_BY_NAME_ONLY


def _slots(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    mangled = (f"_{kind.__name__.lstrip('_')}{n}" if n.startswith("__") and not n.endswith("__") else n for n in names)
    return [name for name in mangled if name not in ("__dict__", "__weakref__")]
