"""All ways in which a number that a function closes over can change: none may be missed.

Each case makes a function and something that changes what it reads. After the change, the compiled function gives what
the function gives, or it is refused with a TraceError. A case says which, so that neither happens by chance.
"""

import abc
import argparse
import array
import builtins
import collections
import configparser
import contextlib
import contextvars
import ctypes
import dataclasses
import datetime
import enum
import functools
import glob
import io
import itertools
import math
import mmap
import operator
import os
import pathlib
import queue
import random
import re
import secrets
import sqlite3
import string
import struct
import sys
import tempfile
import threading
import time
import types
import typing
import uuid
import weakref
import zlib
from unittest import mock

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from tests.folders import ROOT

WATCHED, REFUSED = "watched", "refused"
SCALE = 2.0
CASES = {}
FILES = []
NUMBERS = [2.0, 3.0]


def case(outcome=WATCHED, name=None):
    """Note a case: a function that gives a function of x, and what changes what it reads."""

    def noted(make):
        CASES[name or make.__name__] = make, outcome
        return make

    return noted


def watched(name, make):
    """Note a case that is written as an expression."""
    case(name=name)(make)


def of_container(name, make, get, put):
    """Note a case: a container is made, and a number in it is read and replaced."""

    def made():
        item = make()
        return lambda x: x * get(item), lambda: put(item)

    watched(name, made)


# Variables, attributes and containers of Python


@case()
def closed_over_variable():
    scale = 2.0

    def change():
        nonlocal scale
        scale = 3.0

    return lambda x: x * scale, change


@case()
def global_variable():
    return lambda x: x * SCALE, lambda: globals().update(SCALE=SCALE + 1.0)


@case()
def global_variable_read_by_globals():
    return lambda x: x * globals()["SCALE"], lambda: globals().update(SCALE=SCALE + 1.0)


@case()
def global_variable_read_by_eval():
    return lambda x: x * eval("SCALE * 2"), lambda: globals().update(SCALE=SCALE + 1.0)


@case()
def global_that_shadows_a_builtin():
    def change():
        globals()["abs"] = lambda x: 100.0

    return lambda x: x * abs(-2.0), change


@case()
def default_argument():
    def f(x, scale=2.0):
        return x * scale

    return f, lambda: setattr(f, "__defaults__", (3.0,))


@case()
def named_default_argument():
    def f(x, *, scale=2.0):
        return x * scale

    return f, lambda: f.__kwdefaults__.update(scale=3.0)


@case()
def code_of_a_function():
    def f(x):
        return x * 2.0

    def g(x):
        return x * 3.0

    return f, lambda: setattr(f, "__code__", g.__code__)


@case()
def code_of_a_function_that_is_called():
    def helper(x):
        return x * 2.0

    def g(x):
        return x * 3.0

    return lambda x: helper(x), lambda: setattr(helper, "__code__", g.__code__)


@case()
def attribute_of_a_function():
    def f(x):
        return x * f.scale

    f.scale = 2.0
    return f, lambda: setattr(f, "scale", 3.0)


class Plain:
    """With an attribute."""

    scale = 2.0

    def __init__(self, number=2.0):
        self.number = number

    def __call__(self, x):
        return x * self.number

    @property
    def doubled(self):
        return 2 * self.number

    @classmethod
    def of_class(cls):
        return cls.scale

    @functools.cached_property
    def cached(self):
        return self.number


class Other(Plain):
    """Of another number."""

    def __call__(self, x):
        return x * 7.0


class WithSlots:
    __slots__ = ("number",)

    def __init__(self):
        self.number = 2.0


@dataclasses.dataclass
class Record:
    number: float = 2.0


class Kind(enum.Enum):
    A = 2.0
    B = 5.0


class Meta(type):
    scale = 2.0


class OfMeta(metaclass=Meta):
    pass


class Array(np.ndarray):
    """An array with an attribute."""


class Dict(dict):
    """A dict with a method of its own."""

    factor = 2.0

    def __missing__(self, key):
        return self.factor


def set_number(item):
    """Set an attribute that many cases have."""
    item.number = 3.0


of_container("attribute", Plain, lambda p: p.number, set_number)
of_container("attribute by getattr", Plain, lambda p: getattr(p, "num" + "ber"), set_number)
of_container("attribute by vars", Plain, lambda p: vars(p)["number"], set_number)
of_container("property", Plain, lambda p: p.doubled, set_number)
of_container("cached property", Plain, lambda p: p.cached, lambda p: setattr(p, "cached", 9.0))
of_container("slot", WithSlots, lambda p: p.number, set_number)
of_container("field of a dataclass", Record, lambda p: p.number, set_number)
of_container("namespace", lambda: types.SimpleNamespace(number=2.0), lambda p: p.number, set_number)
of_container("attribute that hides the class's", Plain, lambda p: p.scale, lambda p: setattr(p, "scale", 3.0))
of_container("class of an object", Plain, lambda p: p(1.0), lambda p: setattr(p, "__class__", Other))
of_container("element of a list", lambda: [2.0], lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container("length of a list", lambda: [2.0], len, lambda p: p.append(1.0))
of_container("item of a dict", lambda: {"a": 2.0}, lambda p: p["a"], lambda p: p.update(a=3.0))
of_container("element of a set", lambda: {2.0}, sum, lambda p: p.add(1.0))
of_container("element of a deque", lambda: collections.deque([2.0]), lambda p: p[0], lambda p: p.append(p.pop() + 1))
of_container("UserDict", lambda: collections.UserDict(a=2.0), lambda p: p["a"], lambda p: p.update(a=3.0))
of_container("UserList", lambda: collections.UserList([2.0]), lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container("ChainMap", lambda: collections.ChainMap({"a": 2.0}), lambda p: p["a"], lambda p: p.update(a=3.0))
of_container("Counter", lambda: collections.Counter(a=2), lambda p: p["a"], lambda p: p.update(a=3))
of_container("OrderedDict", lambda: collections.OrderedDict(a=2.0), lambda p: p["a"], lambda p: p.update(a=3.0))
of_container("dict of a class of its own", Dict, lambda p: p["b"], lambda p: setattr(p, "factor", 4.0))
of_container(
    "factory of a defaultdict",
    lambda: collections.defaultdict(lambda: 2.0),
    lambda p: p["b"],
    lambda p: (setattr(p, "default_factory", lambda: 3.0), p.clear()),
)


@case()
def what_the_factory_of_a_defaultdict_reads():
    default = [2.0]
    table = collections.defaultdict(lambda: default[0])
    return lambda x: x * table["a"], lambda: (default.__setitem__(0, 3.0), table.clear())


@case()
def element_of_a_tuple_in_a_list():
    pairs = [(2.0, [3.0])]
    return lambda x: x * pairs[0][1][0], lambda: pairs[0][1].__setitem__(0, 4.0)


@case()
def attribute_of_a_class():
    class Settings:
        scale = 2.0

    return lambda x: x * Settings.scale, lambda: setattr(Settings, "scale", 3.0)


@case()
def attribute_of_a_class_by_a_class_method():
    class Derived(Plain):
        pass

    return lambda x: x * Derived.of_class(), lambda: setattr(Derived, "scale", 3.0)


@case()
def attribute_of_a_metaclass():
    return lambda x: x * OfMeta.scale, lambda: setattr(Meta, "scale", Meta.scale + 1.0)


@case()
def method_of_a_class():
    class Derived(Plain):
        pass

    item = Derived()
    return lambda x: item(x), lambda: setattr(Derived, "__call__", lambda self, x: x * 9.0)


@case()
def value_of_an_enum_member():
    return lambda x: x * Kind.A.value, lambda: setattr(Kind.A, "_value_", Kind.A._value_ + 1.0)


@case()
def attribute_of_an_enum_member():
    Kind.B.factor = 2.0
    return lambda x: x * Kind.B.factor, lambda: setattr(Kind.B, "factor", 3.0)


@case()
def base_class():
    class First:
        number = 2.0

    class Second:
        number = 3.0

    class Derived(First):
        pass

    item = Derived()
    return lambda x: x * item.number, lambda: setattr(Derived, "__bases__", (Second,))


# What calls or shows other objects


@case()
def bound_method():
    item = Plain()
    call = item.__call__
    return lambda x: call(x), lambda: set_number(item)


@case()
def bound_method_of_a_dict():
    table = {"a": 2.0}
    get = table.get
    return lambda x: x * get("a"), lambda: table.update(a=3.0)


@case()
def bound_method_of_a_list():
    numbers = [2.0]
    get = numbers.__getitem__
    return lambda x: x * get(0), lambda: numbers.__setitem__(0, 3.0)


@case()
def method_wrapper():
    numbers = [2.0]
    length = numbers.__len__
    return lambda x: x * length(), lambda: numbers.append(3.0)


@case()
def attrgetter():
    item, get = Plain(), operator.attrgetter("number")
    return lambda x: x * get(item), lambda: set_number(item)


@case()
def attrgetter_of_a_path():
    item, get = types.SimpleNamespace(inner=Plain()), operator.attrgetter("inner.number")
    return lambda x: x * get(item), lambda: set_number(item.inner)


@case()
def itemgetter():
    table, get = {"a": 2.0}, operator.itemgetter("a")
    return lambda x: x * get(table), lambda: table.update(a=3.0)


@case()
def methodcaller():
    class Scaled(Plain):
        def times(self, x):
            return x * self.number

    item, call = Scaled(), operator.methodcaller("times", 2.0)
    return lambda x: x * call(item), lambda: set_number(item)


@case()
def methodcaller_with_a_named_argument():
    class Scaled(Plain):
        def times(self, x):
            return x * self.number

    item, call = Scaled(), operator.methodcaller("times", x=2.0)
    return lambda x: x * call(item), lambda: set_number(item)


@case()
def partial_of_getattr():
    item = Plain()
    get = functools.partial(getattr, item, "number")
    return lambda x: x * get(), lambda: set_number(item)


@case()
def partial_of_a_function():
    numbers = [2.0]
    scaled = functools.partial(lambda n, x: x * n[0], numbers)
    return lambda x: scaled(x), lambda: numbers.__setitem__(0, 3.0)


@case()
def function_with_a_cache_that_is_cleared():
    scale = 2.0

    @functools.cache
    def cached():
        return scale

    def change():
        nonlocal scale
        scale = 3.0
        cached.cache_clear()

    return lambda x: x * cached(), change


@case()
def wrapped_function():
    numbers = [2.0]

    def inner(x):
        return x * numbers[0]

    @functools.wraps(inner)
    def outer(x):
        return inner(x)

    return outer, lambda: numbers.__setitem__(0, 3.0)


@case()
def single_dispatch():
    numbers = [2.0]
    scaled = functools.singledispatch(lambda x: x * numbers[0])
    return lambda x: scaled(2.0) * x, lambda: numbers.__setitem__(0, 3.0)


@case()
def compiled_function():
    numbers = [2.0]
    inner = mg.compile(lambda x: x * numbers[0], backend="numpy")
    return lambda x: inner(x), lambda: numbers.__setitem__(0, 3.0)


for view in ("keys", "values", "items"):

    def _view(view=view):
        table = {2.0: 5.0}
        shown = getattr(table, view)()
        return lambda x: x * float(str(list(shown)).strip("[]()").split(",")[-1]), lambda: table.update({3.0: 7.0})

    watched(f"dict.{view}()", _view)


@case()
def mapping_proxy():
    table = {"a": 2.0}
    proxy = types.MappingProxyType(table)
    return lambda x: x * proxy["a"], lambda: table.update(a=3.0)


@case()
def weak_reference():
    first = Plain()
    reference = weakref.ref(first)
    return lambda x: x * reference().number, lambda: set_number(first)


@case()
def weak_reference_to_what_is_gone():
    holder = [Plain()]
    reference = weakref.ref(holder[0])
    return lambda x: x * (9.0 if reference() is None else 2.0), holder.clear


@case()
def weak_proxy():
    first = Plain()
    proxy = weakref.proxy(first)
    return lambda x: x * proxy.number, lambda: set_number(first)


@case()
def weak_value_dictionary():
    first = Plain()
    table = weakref.WeakValueDictionary(a=first)
    return lambda x: x * table["a"].number, lambda: set_number(first)


@case()
def context_variable():
    scale = contextvars.ContextVar("scale", default=2.0)
    return lambda x: x * scale.get(), lambda: scale.set(3.0)


@case()
def list_in_a_context_variable():
    numbers = contextvars.ContextVar("numbers")
    numbers.set([2.0])
    return lambda x: x * numbers.get()[0], lambda: numbers.get().__setitem__(0, 3.0)


@case()
def thread_local():
    local = threading.local()
    local.number = 2.0
    return lambda x: x * local.number, lambda: set_number(local)


# The standard library


@case()
def argparse_namespace():
    space = argparse.Namespace(number=2.0)
    return lambda x: x * space.number, lambda: set_number(space)


@case()
def configparser_section():
    parser = configparser.ConfigParser()
    parser["a"] = {"number": "2.0"}
    return lambda x: x * parser.getfloat("a", "number"), lambda: parser.set("a", "number", "3.0")


@case()
def os_environ():
    os.environ["MICROGRAD_TEST_SCALE"] = "2.0"
    change = functools.partial(os.environ.__setitem__, "MICROGRAD_TEST_SCALE", "3.0")
    return lambda x: x * float(os.environ["MICROGRAD_TEST_SCALE"]), change


@case()
def os_getenv():
    os.environ["MICROGRAD_TEST_SCALE"] = "2.0"
    change = functools.partial(os.environ.__setitem__, "MICROGRAD_TEST_SCALE", "3.0")
    return lambda x: x * float(os.getenv("MICROGRAD_TEST_SCALE")), change


@case()
def environ_in_a_variable():
    environ = os.environ
    environ["MICROGRAD_TEST_SCALE"] = "2.0"
    change = functools.partial(environ.__setitem__, "MICROGRAD_TEST_SCALE", "3.0")
    return lambda x: x * float(environ["MICROGRAD_TEST_SCALE"]), change


@case()
def sys_argv():
    length = len(sys.argv)
    return lambda x: x * len(sys.argv), lambda: sys.argv.append("a") if len(sys.argv) == length else None


@case()
def template():
    text = string.Template("$a")
    return lambda x: x * float(text.substitute(a=2.0)) * len(text.template), lambda: setattr(text, "template", "1$a")


of_container("array.array", lambda: array.array("d", [2.0]), lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container("bytearray", lambda: bytearray(b"\x02"), lambda p: p[0], lambda p: p.__setitem__(0, 3))
of_container("memoryview", lambda: memoryview(bytearray(b"\x02")), lambda p: p[0], lambda p: p.__setitem__(0, 3))
of_container("array of ctypes", lambda: (ctypes.c_double * 2)(2.0), lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container("number of ctypes", lambda: ctypes.c_double(2.0), lambda p: p.value, lambda p: setattr(p, "value", 3.0))
of_container(
    "pointer of ctypes",
    lambda: ctypes.pointer(ctypes.c_double(2.0)),
    lambda p: p.contents.value,
    lambda p: setattr(p.contents, "value", 3.0),
)
of_container("null pointer", ctypes.POINTER(ctypes.c_double), lambda p: 2.0 + bool(p), lambda p: None)
of_container("mmap", lambda: mmap.mmap(-1, 8), lambda p: p[0] + 1.0, lambda p: p.__setitem__(0, 3))
of_container(
    "StringIO", lambda: io.StringIO("2.0"), lambda p: float(p.getvalue()), lambda p: (p.seek(0), p.write("3.0"))
)


class Structure(ctypes.Structure):
    _fields_ = (("number", ctypes.c_double),)


of_container("structure of ctypes", lambda: Structure(2.0), lambda p: p.number, set_number)


# Modules


def new_module(name, **contents):
    """A module as if it had been imported."""
    module = types.ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module
    return module


@case()
def global_of_a_module():
    module = new_module("a_module_of_the_user", number=2.0)
    return lambda x: x * module.number, lambda: set_number(module)


@case()
def import_inside():
    module = new_module("an_inner_module_of_the_user", number=2.0)

    def f(x):
        import an_inner_module_of_the_user

        return x * an_inner_module_of_the_user.number

    return f, lambda: set_number(module)


@case()
def import_of_a_name_inside():
    module = new_module("an_inner_module_of_the_user", number=2.0)

    def f(x):
        from an_inner_module_of_the_user import number

        return x * number

    return f, lambda: set_number(module)


@case()
def import_of_another_module_of_that_name():
    new_module("an_inner_module_of_the_user", number=2.0)

    def f(x):
        import an_inner_module_of_the_user

        return x * an_inner_module_of_the_user.number

    return f, lambda: new_module("an_inner_module_of_the_user", number=3.0)


@case()
def sys_modules():
    module = new_module("an_inner_module_of_the_user", number=2.0)
    return lambda x: x * sys.modules["an_inner_module_of_the_user"].number, lambda: set_number(module)


@case()
def import_module():
    import importlib

    module = new_module("an_inner_module_of_the_user", number=2.0)
    return lambda x: x * importlib.import_module("an_inner_module_of_the_user").number, lambda: set_number(module)


def installed(folder, text, name="a_package_of_the_user_that_is_installed"):
    """Import a package of the user's from a folder of installed packages."""
    place = os.path.join(folder, "site-packages")
    os.makedirs(os.path.join(place, name), exist_ok=True)
    with open(os.path.join(place, name, "__init__.py"), "w", encoding="utf-8") as file:
        file.write(text)
    sys.path.insert(0, place)
    sys.modules.pop(name, None)
    try:
        return __import__(name)
    finally:
        sys.path.remove(place)


INSTALLED = """
scale = 2.0

class Model:
    def __init__(self):
        self.number = 2.0
    def __call__(self, x):
        return x * self.number * scale

def scaled(x):
    return x * scale
"""


@case()
def installed_package():
    with tempfile.TemporaryDirectory() as folder:
        package = installed(folder, INSTALLED)
    return package.scaled, lambda: setattr(package, "scale", 3.0)


@case()
def function_of_an_installed_package_that_is_called():
    with tempfile.TemporaryDirectory() as folder:
        scaled = installed(folder, INSTALLED).scaled
    return lambda x: scaled(x), lambda: scaled.__globals__.update(scale=3.0)


@case()
def object_of_an_installed_package():
    with tempfile.TemporaryDirectory() as folder:
        model = installed(folder, INSTALLED).Model()
    return lambda x: model(x), lambda: set_number(model)


@case()
def module_of_the_user_with_the_name_of_a_standard_one():
    with tempfile.TemporaryDirectory() as folder:
        before = sys.modules.get("this")
        package = installed(folder, INSTALLED, "this")
        sys.modules["this"] = package
    scaled = package.scaled

    def change():
        package.scale = 3.0
        if before is not None:
            sys.modules["this"] = before

    return lambda x: scaled(x), change


# NumPy, SciPy, pandas, scikit-learn


of_container("array", lambda: np.array(NUMBERS), lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container(
    "array of floats of 32 bits", lambda: np.float32(NUMBERS), lambda p: float(p[0]), lambda p: p.__setitem__(0, 3)
)
of_container("array without axes", lambda: np.array(2.0), float, lambda p: p.__setitem__((), 3.0))
of_container("array by columns", lambda: np.ones((3, 2)).T, lambda p: p[0, 0], lambda p: p.__setitem__((0, 0), 3.0))
of_container("array of every other", lambda: np.ones(8)[::2], lambda p: p[1], lambda p: p.__setitem__(1, 3.0))
of_container("array of bools", lambda: np.zeros(2, bool), lambda p: p[0] + 1.0, lambda p: p.__setitem__(0, True))
of_container("array of texts", lambda: np.array(["2.0"]), lambda p: float(p[0]), lambda p: p.__setitem__(0, "3.0"))
of_container("array of objects", lambda: np.array([2.0, None]), lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container(
    "array of records",
    lambda: np.zeros(2, [("a", float)]),
    lambda p: p["a"][0] + 1.0,
    lambda p: p["a"].__setitem__(0, 3.0),
)
of_container(
    "array of dates",
    lambda: np.array(["2020-01-01"], "datetime64[D]"),
    lambda p: 2.0 + float(str(p[0])[:4]),
    lambda p: p.__setitem__(0, np.datetime64("2021-01-01")),
)
of_container("shape of an array", lambda: np.arange(4.0), len, lambda p: setattr(p, "shape", (2, 2)))
of_container("array that is swapped", lambda: np.array(NUMBERS), lambda p: p[0], lambda p: p.__setitem__(0, -p[0]))
of_container("order of an array", lambda: np.arange(200_000.0), lambda p: p[1], lambda p: p.sort()
             if p[0] else p.__setitem__(slice(None), p[::-1].copy()))  # fmt: skip
of_container("large array", lambda: np.ones(200_000), lambda p: p[7], lambda p: p.__setitem__(7, 3.0))
of_container("large list", lambda: [1.0] * 200_000, lambda p: p[7], lambda p: p.__setitem__(7, 3.0))
of_container(
    "large tuple in a list", lambda: [(1.0,) * 200_000], lambda p: p[0][7], lambda p: p.__setitem__(0, (3.0,) * 9)
)
of_container("large dict", lambda: dict.fromkeys(range(120_000), 1.0), lambda p: p[7], lambda p: p.update({7: 3.0}))
of_container("record array", lambda: np.rec.array([(2.0,)], names="a"), lambda p: p.a[0], lambda p: p.a.fill(3.0))
of_container(
    "mask of an array", lambda: np.ma.array([2.0, 3.0], mask=[0, 0]), lambda p: float(p.sum()),
    lambda p: p.__setitem__(0, np.ma.masked),
)  # fmt: skip
of_container(
    "attribute of an array of a class of its own",
    lambda: np.zeros(2).view(Array),
    lambda p: getattr(p, "number", 2.0),
    set_number,
)
of_container("polynomial", lambda: np.poly1d([2.0]), lambda p: float(p(1.0)), lambda p: p.coef.__setitem__(0, 3.0))


@case()
def sparse_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix([[2.0]])
    return lambda x: x * matrix[0, 0], lambda: matrix.data.__setitem__(0, 3.0)


@case()
def column_of_pandas():
    column = pytest.importorskip("pandas").Series([2.0, 3.0])
    return lambda x: x * column.iloc[0], lambda: column.__setitem__(0, 4.0)


@case()
def index_of_a_column():
    column = pytest.importorskip("pandas").Series([2.0, 3.0])
    return lambda x: x * column[1], lambda: setattr(column, "index", [1, 0])


@case()
def frame_of_pandas():
    frame = pytest.importorskip("pandas").DataFrame({"a": [2.0, 3.0], "b": ["x", "y"]})
    return lambda x: x * frame["a"].iloc[0], lambda: frame.__setitem__("a", [4.0, 5.0])


@case()
def names_in_a_frame():
    frame = pytest.importorskip("pandas").DataFrame({"a": [2.0], "b": [3.0]})
    return lambda x: x * frame["a"].iloc[0], lambda: setattr(frame, "columns", ["b", "a"])


@case()
def scaler_that_is_fitted_again():
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler().fit([[1.0], [3.0]])
    return lambda x: (x - scaler.mean_[0]) / scaler.scale_[0], lambda: scaler.fit([[1.0], [7.0]])


@case()
def transform_of_a_scaler():
    scaler = pytest.importorskip("sklearn.preprocessing").StandardScaler().fit([[1.0], [3.0]])
    return lambda x: x * float(scaler.transform([[5.0]])[0, 0]), lambda: scaler.fit([[1.0], [7.0]])


@case()
def tree_that_is_fitted_again():
    tree = pytest.importorskip("sklearn.tree").DecisionTreeRegressor().fit([[1.0], [3.0]], [1.0, 2.0])
    inner = tree.tree_
    return lambda x: x * float(inner.value[0, 0, 0]), lambda: inner.value.__setitem__((0, 0, 0), 9.0)


class OwnArray(Plain):
    """With an array made of an attribute."""

    def __array__(self, dtype=None, copy=None):
        return np.full(2, self.number)


class OwnLocal(threading.local):
    number = 2.0


of_container("class with an array of its own", OwnArray, lambda p: float(np.asarray(p)[0]), set_number)
of_container("attribute of a class with an array of its own", OwnArray, lambda p: p.number, set_number)
of_container("thread-local of a class of its own", OwnLocal, lambda p: p.number, set_number)


@case()
def frame_of_a_class_of_its_own():
    pandas = pytest.importorskip("pandas")

    class Frame(pandas.DataFrame):
        _metadata = ("number",)

    frame = Frame({"a": [2.0, 3.0]})
    frame.number = 2.0

    def change():
        frame.loc[0, "a"] += 1.0
        frame.number += 1.0

    return lambda x: x * frame["a"].iloc[0] * frame.number, change


class Tensor:
    """As torch has them: NumPy makes an array of it, and what it holds is not in attributes."""

    __module__ = "torch"
    __slots__ = ()

    def __array__(self, dtype=None, copy=None):
        return np.array(_OF_TENSORS[id(self)])

    def __setitem__(self, place, number):
        _OF_TENSORS[id(self)][place] = number

    def __getitem__(self, place):
        return _OF_TENSORS[id(self)][place]


_OF_TENSORS = {}


@case()
def tensor():
    made = Tensor()
    _OF_TENSORS[id(made)] = [2.0, 3.0]
    return lambda x: x * made[0], lambda: made.__setitem__(0, 4.0)


# Values


@case()
def value():
    holder = [Value(2.0)]
    return lambda x: x * holder[0], lambda: holder.__setitem__(0, Value(3.0))


@case()
def number_of_a_value():
    w = Value(2.0)
    return lambda x: x * w, lambda: setattr(w, "data", 3.0)


@case()
def attribute_of_a_value():
    w = Value(2.0)
    w.scale = 2.0
    return lambda x: x * w * w.scale, lambda: setattr(w, "scale", 3.0)


@case()
def parameter_of_a_module():
    model = mg.nn.MLP(1, [1])
    return lambda x: model([x]), lambda: setattr(model.layers[0].neurons[0], "b", Value(3.0))


# What a second reviewer found: hooks, introspection, objects of the standard library and of NumPy


class Base(abc.ABC):  # noqa: B024
    """With classes that are registered later."""


class Key:
    number = 2.0


class Hooks:
    """With methods that operators call, which read an attribute."""

    number = 2

    def __format__(self, _):
        return str(self.number)

    def __bool__(self):
        return self.number < 3

    def __index__(self):
        return self.number

    def __contains__(self, item):
        return item < self.number

    def __iter__(self):
        return iter(range(self.number))

    def __hash__(self):
        return self.number

    def __class_getitem__(cls, item):
        return cls.number * item

    def __getattr__(self, name):
        return self.__dict__["number"] if name == "other" and "number" in self.__dict__ else 2


class Text(str):
    """A text with an attribute."""


class Long(list):
    """A list whose length is another one."""

    number = 2

    def __len__(self):
        return self.number


def set_error(error):
    error.args = (3.0,)


def set_number_to_an_int(item):
    """Set an attribute that many cases have."""
    item.number = 4


of_container("__format__", Hooks, lambda p: float(f"{p}"), set_number_to_an_int)
of_container("__bool__", Hooks, lambda p: 2.0 if p else 3.0, set_number_to_an_int)
of_container("__index__", Hooks, lambda p: NUMBERS_TO_INDEX[p], set_number_to_an_int)
of_container("__contains__", Hooks, lambda p: 3.0 if 2 in p else 2.0, set_number_to_an_int)
of_container("__iter__", Hooks, sum, set_number_to_an_int)
of_container("__hash__", Hooks, hash, set_number_to_an_int)
of_container("__getattr__", Hooks, lambda p: p.other, set_number_to_an_int)
of_container("length of a list of a class of its own", Long, len, set_number_to_an_int)
of_container("attribute of a text", lambda: Text("a"), lambda p: getattr(p, "number", 2.0), set_number)
of_container("arguments of an exception", lambda: ValueError(2.0), lambda p: p.args[0], set_error)
of_container("attribute of an exception", lambda: ValueError(2.0), lambda p: getattr(p, "number", 2.0), set_number)
of_container(
    "cause of an exception",
    lambda: ValueError(2.0),
    lambda p: p.__cause__.args[0] if p.__cause__ else 2.0,
    lambda p: setattr(p, "__cause__", ValueError(3.0)),
)
of_container(
    "key of a dict", lambda: {Key(): 1.0}, lambda p: next(iter(list(p))).number, lambda p: set_number(next(iter(p)))
)
of_container("order of a dict", lambda: {"a": 2.0, "b": 3.0}, lambda p: next(iter(p.values())),
             lambda p: p.update(a=p.pop("a")))  # fmt: skip
of_container("object in a frozenset", lambda: frozenset([Key()]), lambda p: min(k.number for k in p),
             lambda p: set_number(min(p)))  # fmt: skip
of_container("event", threading.Event, lambda p: 3.0 if p.is_set() else 2.0, lambda p: p.set())
of_container("items of a queue", queue.Queue, lambda p: p.qsize() + 1.0, lambda p: p.put(1.0))
of_container("mock", lambda: mock.Mock(return_value=2.0), lambda p: p(), lambda p: setattr(p, "return_value", 3.0))
of_container("side effect of a mock", lambda: mock.Mock(side_effect=Plain()), lambda p: p(1.0),
             lambda p: set_number(p.side_effect))  # fmt: skip
of_container("attribute of a mock", lambda: mock.Mock(number=2.0), lambda p: p.number, set_number)
of_container("named tuple's default", lambda: collections.namedtuple("Pair", "a", defaults=[2.0]), lambda p: p().a,
             lambda p: setattr(p.__new__, "__defaults__", (3.0,)))  # fmt: skip
of_container("flags of an array", lambda: np.ones(3), lambda p: 2.0 + p.flags.writeable,
             lambda p: setattr(p.flags, "writeable", False))  # fmt: skip
of_container(
    "record", lambda: np.zeros(1, [("a", float)])[0], lambda p: p["a"] + 2.0, lambda p: p.__setitem__("a", 3.0)
)
of_container("flat elements", lambda: np.ones(3).flat, lambda p: p[0], lambda p: p.__setitem__(0, 3.0))
of_container("zero of the other sign in a large list", lambda: [0.0] * 200_000, lambda p: math.copysign(2.0, p[7]),
             lambda p: p.__setitem__(7, -0.0))  # fmt: skip
of_container("bool in a large list", lambda: [1] * 200_000, lambda p: len(repr(p[7])), lambda p: p.__setitem__(7, True))
of_container("equal numbers in a large list", lambda: [2.5] * 200_000, lambda p: p[7],
             lambda p: p.__setitem__(slice(None), [float(str(n)) for n in p[:-1]] + [p[-1] + 1.0]))  # fmt: skip
of_container("text in a large list", lambda: ["a"] * 300, lambda p: len(p[7]), lambda p: p.__setitem__(7, "abc"))
of_container("text of another class in a large list", lambda: ["a"] * 300, lambda p: len(type(p[7]).__name__),
             lambda p: p.__setitem__(7, Text("a")))  # fmt: skip
NUMBERS_TO_INDEX = [5.0, 6.0, 7.0, 8.0, 9.0]


@case()
def class_getitem():
    class Derived(Hooks):
        pass

    return lambda x: x * Derived[2], lambda: setattr(Derived, "number", 3)


@case()
def instance_check():
    class Kinds(type):
        found = False

        def __instancecheck__(cls, item):
            return cls.found

    class Odd(metaclass=Kinds):
        pass

    item = Plain()
    return lambda x: x * (3.0 if isinstance(item, Odd) else 2.0), lambda: setattr(Kinds, "found", True)


@case()
def class_that_is_registered():
    class Derived:
        pass

    item = Derived()
    return lambda x: x * (3.0 if isinstance(item, Base) else 2.0), lambda: Base.register(Derived)


@case()
def function_that_a_module_gives_names_by():
    module, table = types.ModuleType("a_module_of_the_user"), {"number": 2.0}
    module.__getattr__ = lambda name: table[name]
    return lambda x: x * module.number, lambda: table.update(number=3.0)


@case()
def builtin_of_the_user():
    builtins.a_builtin_of_the_user = 2.0
    return lambda x: x * a_builtin_of_the_user, lambda: setattr(builtins, "a_builtin_of_the_user", 3.0)  # noqa: F821


@case()
def globals_of_a_function():
    def helper():
        pass

    return lambda x: x * helper.__globals__["SCALE"], lambda: globals().update(SCALE=SCALE + 1.0)


@case()
def function_that_is_vectorised():
    numbers = [2.0]
    scaled = np.vectorize(lambda n: n * numbers[0])
    return lambda x: x * float(scaled(1.0)), lambda: numbers.__setitem__(0, 3.0)


@case()
def variable_of_a_context():
    number = contextvars.ContextVar("number")
    number.set(2.0)
    context = contextvars.copy_context()
    return lambda x: x * context[number], lambda: context.run(number.set, 3.0)


@case()
def finalizer():
    holder = [Plain()]
    alive = weakref.finalize(holder[0], lambda: None)
    return lambda x: x * (2.0 if alive.alive else 3.0), holder.clear


@case()
def context_manager():
    numbers = [2.0]

    @contextlib.contextmanager
    def given():
        yield numbers[0]

    def f(x):
        with given() as number:
            return x * number

    return f, lambda: numbers.__setitem__(0, 3.0)


@case()
def generator_function():
    numbers = [2.0]

    def given():
        yield numbers[0]

    return lambda x: x * next(given()), lambda: numbers.__setitem__(0, 3.0)


@case()
def coroutine():
    numbers = [2.0]

    async def given():
        return numbers[0]

    def run():
        try:
            given().send(None)
        except StopIteration as stop:
            return stop.value

    return lambda x: x * run(), lambda: numbers.__setitem__(0, 3.0)


@case()
def method_of_a_partial():
    class Scaled(Plain):
        def times(self, number):
            return number * self.number

        twice = functools.partialmethod(times, 2.0)

    item = Scaled()
    return lambda x: x * item.twice(), lambda: set_number(item)


@case()
def factory_of_a_field():
    numbers = [2.0]

    @dataclasses.dataclass
    class Made:
        number: float = dataclasses.field(default_factory=lambda: numbers[0])

    return lambda x: x * Made().number, lambda: numbers.__setitem__(0, 3.0)


@case()
def classes_below():
    class Above:
        known: typing.ClassVar[list] = []

        def __init_subclass__(cls):
            Above.known.append(cls)

    return lambda x: x * (1 + len(Above.known)), lambda: type("Below", (Above,), {})


@case()
def seed_of_a_generator_that_is_made_inside():
    seeds = [3]
    return lambda x: x * np.random.default_rng(seeds[0]).normal(), lambda: seeds.__setitem__(0, 4)


@case()
def memory_that_is_packed_into():
    memory = bytearray(8)
    struct.pack_into("d", memory, 0, 2.0)
    return lambda x: x * struct.unpack_from("d", memory)[0], lambda: struct.pack_into("d", memory, 0, 3.0)


@case()
def file_that_is_mapped():
    with tempfile.NamedTemporaryFile() as file:
        np.arange(2.0, 9.0).tofile(file.name)
        read, written = (np.memmap(file.name, dtype=float, mode=mode) for mode in ("r", "r+"))
    return lambda x: x * float(read[0]), lambda: written.__setitem__(0, 7.0)


# What gives another number each time


def draws(name, make):
    """Note a case that is refused: it makes a function without arguments, which gives another number each time."""

    def made():
        draw = make()
        return lambda x: x * float(draw()), lambda: None

    case(REFUSED, name)(made)


def simple_queue():
    """A queue of two numbers."""
    made = queue.SimpleQueue()
    made.put(2.0)
    made.put(3.0)
    return made


def opened():
    """This file, which is closed when the test is done."""
    FILES.append(open(__file__, encoding="utf-8"))  # noqa: SIM115
    return FILES[-1]


draws("random", lambda: lambda: random.random())
draws("random as a variable", lambda: random.random)
draws("random.uniform", lambda: lambda: random.uniform(1.0, 2.0))
draws("random.shuffle", lambda: lambda numbers=list(range(9)): (random.shuffle(numbers), numbers[0])[1])
draws("generator of random", lambda: random.Random(3).random)
draws("generator of random as a variable", lambda: lambda rng=random.Random(3): rng.gauss(0.0, 1.0))  # noqa: B008
draws("random.Random without a seed", lambda: lambda: secrets.SystemRandom().random())
draws("np.random", lambda: lambda: np.random.normal())
draws("np.random as a variable", lambda: np.random.rand)
draws("generator of NumPy", lambda: lambda rng=np.random.default_rng(3): rng.normal())  # noqa: B008
draws("method of a generator of NumPy", lambda: np.random.default_rng(3).normal)
draws("old generator of NumPy", lambda: lambda rng=np.random.RandomState(3): rng.normal())  # noqa: B008
draws("bits of a generator", lambda: lambda bits=np.random.PCG64(3): bits.random_raw() % 7 + 1)  # noqa: B008
draws("generator without a seed", lambda: lambda: np.random.default_rng().normal())
draws("secrets", lambda: lambda: secrets.randbelow(1000) + 1)
draws("os.urandom", lambda: lambda: os.urandom(1)[0] + 1)
draws("file by its path", lambda: lambda path=pathlib.Path(__file__): len(path.read_text("utf-8")))
draws("whether a path exists", lambda: lambda path=pathlib.Path(__file__): path.exists())
draws("working directory", lambda: lambda: len(os.getcwd()))
draws("process", lambda: lambda: os.getpid())
draws("files in a folder", lambda: lambda: len(glob.glob("*")))
draws("database", lambda: lambda base=sqlite3.connect(":memory:"): base.execute("select 2.0").fetchone()[0])  # noqa: B008
draws("items of a simple queue", lambda: lambda items=simple_queue(): items.get())  # noqa: B008
draws("compressor", lambda: lambda made=zlib.compressobj(): len(made.compress(bytes(9))) + 1)  # noqa: B008
draws("scanner", lambda: lambda made=re.compile("[0-9]").scanner("23"): made.match().group())  # noqa: B008
draws("np.nditer", lambda: lambda made=np.nditer(np.arange(2.0, 9.0)): float(next(made)))  # noqa: B008
draws("np.broadcast", lambda: lambda made=np.broadcast(np.ones(3), 2.0): next(made)[0])  # noqa: B008
draws("uuid", lambda: lambda: uuid.uuid4().int % 1000 + 1)
draws("time.time", lambda: lambda: time.time())
draws("time.time as a variable", lambda: time.time)
draws("perf_counter", lambda: lambda: time.perf_counter())
draws("datetime.now", lambda: lambda: datetime.datetime.now().timestamp())
draws("date.today", lambda: lambda: datetime.date.today().toordinal())
draws("next", lambda: lambda numbers=iter([2.0, 3.0, 4.0]): next(numbers))  # noqa: B008
draws("iterator as a variable", lambda: iter([2.0, 3.0, 4.0]).__next__)
draws("count", lambda: lambda numbers=itertools.count(1): next(numbers))  # noqa: B008
draws("generator", lambda: lambda numbers=(float(n) for n in range(1, 9)): next(numbers))
draws("zip", lambda: lambda numbers=zip([2.0, 3.0], [4.0, 5.0], strict=True): next(numbers)[0])  # noqa: B008
draws("map", lambda: lambda numbers=map(float, [2, 3]): next(numbers))  # noqa: B008
draws("cycle", lambda: lambda numbers=itertools.cycle([2.0, 3.0]): next(numbers))  # noqa: B008
draws("loop over an iterator", lambda: lambda numbers=iter([2.0, 3.0]): sum(n for n in numbers))  # noqa: B008
draws("file", lambda: lambda: float(len(open(__file__, encoding="utf-8").read())))  # noqa: SIM115
draws("size of a file", lambda: lambda: os.path.getsize(__file__))
draws("np.fromfile", lambda: lambda: np.fromfile(__file__, dtype=np.uint8)[0])
draws("open file", lambda: lambda file=opened(): len(file.readline()))  # noqa: B008
draws("lines of a file", lambda: lambda file=opened(): len(next(file)))  # noqa: B008


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CASES, ids=[f"{outcome}-{name}" for name, (_, outcome) in CASES.items()])
def test_a_number_that_changes_is_never_silently_the_old_one(name, monkeypatch):
    for variable in ("SCALE", "abs"):
        monkeypatch.setitem(globals(), variable, globals().get(variable))
    if globals()["abs"] is None:
        monkeypatch.delitem(globals(), "abs")
    make, outcome = CASES[name]
    f, change = make()
    fast = mg.compile(f, backend="numpy")
    if outcome == REFUSED:
        with pytest.raises(TraceError, match=r"(?s)test_kinds_of_state\.py:\d+.* as an argument") as error:
            fast(2.0)
        assert f"{__file__}:" in str(error.value)
        while FILES:
            FILES.pop().close()
        return
    for step in (lambda: None, change):
        step()
        for x in (2.0, 3.0):
            assert number_of(fast(x)) == number_of(f(x))
    change()
    assert number_of(fast(2.0)) == number_of(f(2.0))


def number_of(result):
    """The number of a Value, or the number itself."""
    return result.data if isinstance(result, Value) else float(result)


def test_there_are_as_many_cases_as_the_page_says():
    outcomes = [outcome for _, outcome in CASES.values()]
    text = " ".join((ROOT / "docs" / "reliability.md").read_text("utf-8").split())
    assert f"{len(CASES)} ways in which a number that a function reads" in text
    assert f"of {outcomes.count(WATCHED)}, the next call" in text
    assert f"{outcomes.count(REFUSED)} sources that give another number" in text
