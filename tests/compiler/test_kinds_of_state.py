"""All ways in which a number that a function closes over can change: none may be missed.

Each case makes a function and something that changes what it reads. After the change, the compiled function gives what
the function gives, or it is refused with a TraceError. A case says which, so that neither happens by chance.
"""

import abc
import argparse
import array
import asyncio
import builtins
import collections
import concurrent.futures
import configparser
import contextlib
import contextvars
import csv
import ctypes
import dataclasses
import datetime
import decimal
import enum
import functools
import gc
import glob
import importlib
import io
import itertools
import logging
import math
import mmap
import multiprocessing
import multiprocessing.shared_memory
import numbers
import operator
import os
import pathlib
import queue
import random
import re
import secrets
import signal
import sqlite3
import string
import struct
import subprocess
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
import pandas
import pytest
import tqdm

import micrograd as mg
from micrograd import TraceError, Value
from tests.folders import ROOT

WATCHED, REFUSED = "watched", "refused"
SCALE = 2.0
CASES = {}
FILES = []
CLEANUP = []
BUFFER = ctypes.create_string_buffer(b"abcd")
POINTER = ctypes.POINTER(ctypes.c_byte)
LIMIT, THRESHOLD, NAME = sys.getrecursionlimit(), gc.get_threshold(), threading.current_thread().name
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


def of(name, make, get, put):
    """Note a case: a container is made, and a number in it is read and replaced."""

    def made():
        item = make()
        return lambda x: x * get(item), lambda: put(item)

    watched(name, made)


def behind(name, make, wrap, get, change):
    """Note a case: a container changes, of which the function has only something that is made of it."""

    def made():
        inner = make()
        outer = wrap(inner)
        return lambda x: x * get(outer), lambda: change(inner)

    watched(name, made)


def put(position, item):
    return lambda container: container.__setitem__(position, item)


def to(name, item):
    return lambda made: setattr(made, name, item)


def lengthen(item, name):
    """Make an attribute, a text, longer."""
    setattr(item, name, f"{getattr(item, name)}x")


def lengthening(name):
    """What makes an attribute longer."""
    return lambda made: lengthen(made, name)


def more_scale():
    globals().update(SCALE=SCALE + 1.0)


# Variables, attributes and containers of Python


@case()
def closed_over_variable():
    scale = 2.0

    def change():
        nonlocal scale
        scale = 3.0

    return lambda x: x * scale, change


watched("global variable", lambda: (lambda x: x * SCALE, more_scale))
watched("global variable, read by globals", lambda: (lambda x: x * globals()["SCALE"], more_scale))
watched("global variable, read by eval", lambda: (lambda x: x * eval("SCALE * 2"), more_scale))


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
    scale = 2.0

    def __init__(self, number=2.0):
        self.number = number

    def __call__(self, x):
        return x * self.number

    def times(self, x):
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


of("attribute", Plain, lambda p: p.number, set_number)
of("attribute by getattr", Plain, lambda p: getattr(p, "num" + "ber"), set_number)
of("attribute by vars", Plain, lambda p: vars(p)["number"], set_number)
of("property", Plain, lambda p: p.doubled, set_number)
of("cached property", Plain, lambda p: p.cached, to("cached", 9.0))
of("slot", WithSlots, lambda p: p.number, set_number)
of("field of a dataclass", Record, lambda p: p.number, set_number)
of("namespace", lambda: types.SimpleNamespace(number=2.0), lambda p: p.number, set_number)
of("attribute that hides the class's", Plain, lambda p: p.scale, to("scale", 3.0))
of("class of an object", Plain, lambda p: p(1.0), to("__class__", Other))
of("element of a list", lambda: [2.0], lambda p: p[0], put(0, 3.0))
of("length of a list", lambda: [2.0], len, lambda p: p.append(1.0))
of("item of a dict", lambda: {"a": 2.0}, lambda p: p["a"], lambda p: p.update(a=3.0))
of("element of a set", lambda: {2.0}, sum, lambda p: p.add(1.0))
of("element of a deque", lambda: collections.deque([2.0]), lambda p: p[0], lambda p: p.append(p.pop() + 1))
of("UserDict", lambda: collections.UserDict(a=2.0), lambda p: p["a"], lambda p: p.update(a=3.0))
of("UserList", lambda: collections.UserList([2.0]), lambda p: p[0], put(0, 3.0))
of("ChainMap", lambda: collections.ChainMap({"a": 2.0}), lambda p: p["a"], lambda p: p.update(a=3.0))
of("Counter", lambda: collections.Counter(a=2), lambda p: p["a"], lambda p: p.update(a=3))
of("OrderedDict", lambda: collections.OrderedDict(a=2.0), lambda p: p["a"], lambda p: p.update(a=3.0))
of("dict of a class of its own", Dict, lambda p: p["b"], to("factor", 4.0))
of(
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


of("element of a tuple in a list", lambda: [(2.0, [3.0])], lambda p: p[0][1][0], lambda p: p[0][1].__setitem__(0, 4.0))
of("attribute of a class", lambda: type("Settings", (), {"scale": 2.0}), lambda k: k.scale, to("scale", 3.0))
of("attribute by a class method", lambda: type("Derived", (Plain,), {}), lambda k: k.of_class(), to("scale", 3.0))
of("attribute of a metaclass", lambda: OfMeta, lambda k: k.scale, lambda k: setattr(Meta, "scale", k.scale + 1.0))
of(
    "method of a class",
    lambda: type("Derived", (Plain,), {})(),
    lambda p: p(1.0),
    lambda p: setattr(type(p), "__call__", lambda *_: 9.0),
)
of("value of an enum member", lambda: Kind, lambda k: k.A.value, lambda k: setattr(k.A, "_value_", k.A._value_ + 1.0))


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


of("bound method", lambda: Plain().__call__, lambda call: call(1.0), lambda call: set_number(call.__self__))
of("bound method of a dict", lambda: {"a": 2.0}.get, lambda get: get("a"), lambda get: get.__self__.update(a=3.0))
of("bound method of a list", lambda: [2.0].__getitem__, lambda get: get(0), lambda get: put(0, 3.0)(get.__self__))
of("method wrapper", lambda: [2.0].__len__, lambda length: length(), lambda length: length.__self__.append(3.0))
of("attrgetter", Plain, operator.attrgetter("number"), set_number)
of(
    "attrgetter of a path",
    lambda: types.SimpleNamespace(inner=Plain()),
    operator.attrgetter("inner.number"),
    lambda p: set_number(p.inner),
)
of("itemgetter", lambda: {"a": 2.0}, operator.itemgetter("a"), lambda p: p.update(a=3.0))
of("methodcaller", Plain, operator.methodcaller("times", 2.0), set_number)
of("methodcaller with a named argument", Plain, operator.methodcaller("times", x=2.0), set_number)
of(
    "partial of getattr",
    lambda: functools.partial(getattr, Plain(), "number"),
    lambda get: get(),
    lambda get: set_number(get.args[0]),
)


@case()
def partial_of_a_function():
    numbers = [2.0]
    scaled = functools.partial(lambda n, x: x * n[0], numbers)
    return lambda x: scaled(x), lambda: numbers.__setitem__(0, 3.0)


def cached_scale(is_filled):
    """A function with a cache that is cleared; then somebody else may ask first."""
    scale = 2.0

    @functools.cache
    def cached():
        return scale

    def change():
        nonlocal scale
        scale = 3.0
        cached.cache_clear()
        if is_filled:
            cached()

    return lambda x: x * cached(), change


@case()
def function_with_a_cache_that_is_cleared():
    return cached_scale(is_filled=False)


@case()
def function_with_a_cache_that_is_cleared_and_filled():
    return cached_scale(is_filled=True)


@case()
def function_with_a_small_cache_that_is_cleared_and_filled():
    scale = [2.0]
    cached = functools.lru_cache(4)(lambda: scale[0])

    def change():
        scale[0] = 3.0
        cached.cache_clear()
        cached()

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


behind(
    "single dispatch",
    lambda: [2.0],
    lambda n: functools.singledispatch(lambda x: x * n[0]),
    lambda f: f(2.0),
    put(0, 3.0),
)


@case()
def compiled_function():
    numbers = [2.0]
    inner = mg.compile(lambda x: x * numbers[0], backend="numpy")
    return lambda x: inner(x), lambda: numbers.__setitem__(0, 3.0)


for view in (dict.keys, dict.values, dict.items):
    behind(
        f"dict.{view.__name__}()",
        lambda: {2.0: 5.0},
        view,
        lambda shown: float(str(list(shown)).strip("[]()").split(",")[-1]),
        lambda table: table.update({3.0: 7.0}),
    )
behind("mapping proxy", lambda: {"a": 2.0}, types.MappingProxyType, lambda p: p["a"], lambda t: t.update(a=3.0))
behind("weak reference", Plain, weakref.ref, lambda reference: reference().number, set_number)
behind(
    "weak reference to what is gone",
    lambda: [Plain()],
    lambda held: weakref.ref(held[0]),
    lambda reference: 9.0 if reference() is None else 2.0,
    lambda held: held.clear(),
)
behind("weak proxy", Plain, weakref.proxy, lambda p: p.number, set_number)
behind(
    "weak value dictionary",
    Plain,
    lambda first: weakref.WeakValueDictionary(a=first),
    lambda p: p["a"].number,
    set_number,
)

of("context variable", lambda: contextvars.ContextVar("scale", default=2.0), lambda v: v.get(), lambda v: v.set(3.0))


@case()
def list_in_a_context_variable():
    numbers = contextvars.ContextVar("numbers")
    numbers.set([2.0])
    return lambda x: x * numbers.get()[0], lambda: numbers.get().__setitem__(0, 3.0)


# The standard library


of("argparse namespace", lambda: argparse.Namespace(number=2.0), lambda space: space.number, set_number)


@case()
def configparser_section():
    parser = configparser.ConfigParser()
    parser["a"] = {"number": "2.0"}
    return lambda x: x * parser.getfloat("a", "number"), lambda: parser.set("a", "number", "3.0")


def of_environ(name, read):
    """Note a case: a variable of the environment is another one."""

    def made():
        os.environ["MICROGRAD_TEST_SCALE"] = "2.0"
        return lambda x: x * float(read()), lambda: os.environ.update(MICROGRAD_TEST_SCALE="3.0")

    watched(name, made)


of_environ("os.environ", lambda: os.environ["MICROGRAD_TEST_SCALE"])
of_environ("os.getenv", lambda: os.getenv("MICROGRAD_TEST_SCALE"))
of_environ("environ in a variable", lambda environ=os.environ: environ["MICROGRAD_TEST_SCALE"])


@case()
def sys_argv():
    length = len(sys.argv)
    return lambda x: x * len(sys.argv), lambda: sys.argv.append("a") if len(sys.argv) == length else None


of(
    "template",
    lambda: string.Template("$a"),
    lambda text: float(text.substitute(a=2.0)) * len(text.template),
    to("template", "1$a"),
)

of("array.array", lambda: array.array("d", [2.0]), lambda p: p[0], put(0, 3.0))
of("bytearray", lambda: bytearray(b"\x02"), lambda p: p[0], put(0, 3))
of("memoryview", lambda: memoryview(bytearray(b"\x02")), lambda p: p[0], put(0, 3))
of("array of ctypes", lambda: (ctypes.c_double * 2)(2.0), lambda p: p[0], put(0, 3.0))
of("number of ctypes", lambda: ctypes.c_double(2.0), lambda p: p.value, to("value", 3.0))
of(
    "pointer of ctypes",
    lambda: ctypes.pointer(ctypes.c_double(2.0)),
    lambda p: p.contents.value,
    lambda p: setattr(p.contents, "value", 3.0),
)
of("null pointer", ctypes.POINTER(ctypes.c_double), lambda p: 2.0 + bool(p), lambda p: None)
of("mmap", lambda: mmap.mmap(-1, 8), lambda p: p[0] + 1.0, put(0, 3))
of("StringIO", lambda: io.StringIO("2.0"), lambda p: float(p.getvalue()), lambda p: (p.seek(0), p.write("3.0")))


class Structure(ctypes.Structure):
    _fields_ = (("number", ctypes.c_double),)


of("structure of ctypes", lambda: Structure(2.0), lambda p: p.number, set_number)


# Modules


def new_module(number=2.0):
    """A module as if it had been imported."""
    module = sys.modules["an_inner_module_of_the_user"] = types.ModuleType("an_inner_module_of_the_user")
    module.number = number
    return module


of("global of a module", new_module, lambda module: module.number, set_number)


def importing(x):
    import an_inner_module_of_the_user

    return x * an_inner_module_of_the_user.number


def importing_a_name(x):
    from an_inner_module_of_the_user import number

    return x * number


watched("import inside", lambda: (importing, functools.partial(set_number, new_module())))
watched("import of a name inside", lambda: (importing_a_name, functools.partial(set_number, new_module())))


@case()
def import_of_another_module_of_that_name():
    new_module()
    return importing, lambda: new_module(3.0)


@case()
def sys_modules():
    module = new_module()
    return lambda x: x * sys.modules["an_inner_module_of_the_user"].number, lambda: set_number(module)


@case()
def import_module():
    module = new_module()
    return lambda x: x * importlib.import_module("an_inner_module_of_the_user").number, lambda: set_number(module)


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


def installed(name="a_package_of_the_user_that_is_installed"):
    """Import a package of the user's from a folder of installed packages."""
    with tempfile.TemporaryDirectory() as folder:
        (package := pathlib.Path(folder, "site-packages", name)).mkdir(parents=True)
        (package / "__init__.py").write_text(INSTALLED, encoding="utf-8")
        sys.path.insert(0, str(package.parent))
        sys.modules.pop(name, None)
        try:
            return __import__(name)
        finally:
            sys.path.remove(str(package.parent))


@case()
def installed_package():
    package = installed()
    return package.scaled, lambda: setattr(package, "scale", 3.0)


@case()
def function_of_an_installed_package_that_is_called():
    scaled = installed().scaled
    return lambda x: scaled(x), lambda: scaled.__globals__.update(scale=3.0)


of("object of an installed package", lambda: installed().Model(), lambda model: model(1.0), set_number)


@case()
def module_of_the_user_with_the_name_of_a_standard_one():
    before = sys.modules.get("this")
    package = sys.modules["this"] = installed("this")
    scaled = package.scaled

    def change():
        package.scale = 3.0
        if before is not None:
            sys.modules["this"] = before

    return lambda x: scaled(x), change


# NumPy, SciPy, pandas, scikit-learn


of("array", lambda: np.array(NUMBERS), lambda p: p[0], put(0, 3.0))
of("array of floats of 32 bits", lambda: np.float32(NUMBERS), lambda p: float(p[0]), put(0, 3))
of("array without axes", lambda: np.array(2.0), float, put((), 3.0))
of("array by columns", lambda: np.ones((3, 2)).T, lambda p: p[0, 0], put((0, 0), 3.0))
of("array of every other", lambda: np.ones(8)[::2], lambda p: p[1], put(1, 3.0))
of("array of bools", lambda: np.zeros(2, bool), lambda p: p[0] + 1.0, put(0, True))
of("array of texts", lambda: np.array(["2.0"]), lambda p: float(p[0]), put(0, "3.0"))
of("array of objects", lambda: np.array([2.0, None]), lambda p: p[0], put(0, 3.0))
of(
    "array of records",
    lambda: np.zeros(2, [("a", float)]),
    lambda p: p["a"][0] + 1.0,
    lambda p: p["a"].__setitem__(0, 3.0),
)
of(
    "array of dates",
    lambda: np.array(["2020-01-01"], "datetime64[D]"),
    lambda p: 2.0 + float(str(p[0])[:4]),
    put(0, np.datetime64("2021-01-01")),
)
of("shape of an array", lambda: np.arange(4.0), len, to("shape", (2, 2)))
of("array that is swapped", lambda: np.array(NUMBERS), lambda p: p[0], lambda p: p.__setitem__(0, -p[0]))
of(
    "order of an array",
    lambda: np.arange(200_000.0),
    lambda p: p[1],
    lambda p: p.sort() if p[0] else p.__setitem__(slice(None), p[::-1].copy()),
)
of("large array", lambda: np.ones(200_000), lambda p: p[7], put(7, 3.0))
of("large list", lambda: [1.0] * 200_000, lambda p: p[7], put(7, 3.0))
of("large tuple in a list", lambda: [(1.0,) * 200_000], lambda p: p[0][7], put(0, (3.0,) * 9))
of("large dict", lambda: dict.fromkeys(range(120_000), 1.0), lambda p: p[7], lambda p: p.update({7: 3.0}))
of("record array", lambda: np.rec.array([(2.0,)], names="a"), lambda p: p.a[0], lambda p: p.a.fill(3.0))
of("mask of an array", lambda: np.ma.array([2.0, 3.0], mask=[0, 0]), lambda p: float(p.sum()), put(0, np.ma.masked))
of(
    "attribute of an array of a class of its own",
    lambda: np.zeros(2).view(Array),
    lambda p: getattr(p, "number", 2.0),
    set_number,
)
of("polynomial", lambda: np.poly1d([2.0]), lambda p: float(p(1.0)), lambda p: p.coef.__setitem__(0, 3.0))


def scaler():
    """A scaler of scikit-learn that is fitted."""
    return pytest.importorskip("sklearn.preprocessing").StandardScaler().fit([[1.0], [3.0]])


def fit_again(scaler):
    scaler.fit([[1.0], [7.0]])


def fitted_tree():
    """The inner tree of one of scikit-learn's that is fitted."""
    return pytest.importorskip("sklearn.tree").DecisionTreeRegressor().fit([[1.0], [3.0]], [1.0, 2.0]).tree_


of(
    "sparse matrix",
    lambda: pytest.importorskip("scipy.sparse").csr_matrix([[2.0]]),
    lambda m: m[0, 0],
    lambda m: m.data.__setitem__(0, 3.0),
)
of("column of pandas", lambda: pandas.Series([2.0, 3.0]), lambda c: c.iloc[0], put(0, 4.0))
of("index of a column", lambda: pandas.Series([2.0, 3.0]), lambda c: c[1], to("index", [1, 0]))
of(
    "frame of pandas",
    lambda: pandas.DataFrame({"a": [2.0, 3.0], "b": ["x", "y"]}),
    lambda f: f["a"].iloc[0],
    put("a", [4.0, 5.0]),
)
of(
    "names in a frame",
    lambda: pandas.DataFrame({"a": [2.0], "b": [3.0]}),
    lambda f: f["a"].iloc[0],
    to("columns", ["b", "a"]),
)
of("scaler that is fitted again", scaler, lambda s: s.mean_[0] / s.scale_[0], fit_again)
of("transform of a scaler", scaler, lambda s: float(s.transform([[5.0]])[0, 0]), fit_again)
of(
    "tree that is fitted again",
    fitted_tree,
    lambda t: float(t.value[0, 0, 0]),
    lambda t: t.value.__setitem__((0, 0, 0), 9.0),
)


class OwnArray(Plain):
    """With an array made of an attribute."""

    def __array__(self, dtype=None, copy=None):
        return np.full(2, self.number)


class OwnLocal(threading.local):
    number = 2.0


def plain_local():
    """What each thread has of its own, with a number."""
    local = threading.local()
    local.number = 2.0
    return local


of("class with an array of its own", OwnArray, lambda p: float(np.asarray(p)[0]), set_number)
of("attribute of a class with an array of its own", OwnArray, lambda p: p.number, set_number)
of("thread-local", plain_local, lambda p: p.number, set_number)
of("thread-local of a class of its own", OwnLocal, lambda p: p.number, set_number)


@case()
def frame_of_a_class_of_its_own():
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

    def __setitem__(self, position, number):
        _OF_TENSORS[id(self)][position] = number

    def __getitem__(self, position):
        return _OF_TENSORS[id(self)][position]


_OF_TENSORS = {}


@case()
def tensor():
    made = Tensor()
    _OF_TENSORS[id(made)] = [2.0, 3.0]
    return lambda x: x * made[0], lambda: made.__setitem__(0, 4.0)


# Values


of("value", lambda: [Value(2.0)], lambda holder: holder[0], put(0, Value(3.0)))
of("number of a value", lambda: Value(2.0), lambda w: w, to("data", 3.0))


def value_with_an_attribute():
    """A Value with an attribute of the user's."""
    w = Value(2.0)
    w.scale = 2.0
    return w


of("attribute of a value", value_with_an_attribute, lambda w: w * w.scale, to("scale", 3.0))
of(
    "parameter of a module",
    lambda: mg.nn.MLP(1, [1]),
    lambda model: model([1.0]),
    lambda model: setattr(model.layers[0].neurons[0], "b", Value(3.0)),
)

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


of("__format__", Hooks, lambda p: float(f"{p}"), set_number_to_an_int)
of("__bool__", Hooks, lambda p: 2.0 if p else 3.0, set_number_to_an_int)
of("__index__", Hooks, lambda p: NUMBERS_TO_INDEX[p], set_number_to_an_int)
of("__contains__", Hooks, lambda p: 3.0 if 2 in p else 2.0, set_number_to_an_int)
of("__iter__", Hooks, sum, set_number_to_an_int)
of("__hash__", Hooks, hash, set_number_to_an_int)
of("__getattr__", Hooks, lambda p: p.other, set_number_to_an_int)
of("length of a list of a class of its own", Long, len, set_number_to_an_int)
of("attribute of a text", lambda: Text("a"), lambda p: getattr(p, "number", 2.0), set_number)
of("arguments of an exception", lambda: ValueError(2.0), lambda p: p.args[0], set_error)
of("attribute of an exception", lambda: ValueError(2.0), lambda p: getattr(p, "number", 2.0), set_number)
of(
    "cause of an exception",
    lambda: ValueError(2.0),
    lambda p: p.__cause__.args[0] if p.__cause__ else 2.0,
    to("__cause__", ValueError(3.0)),
)
of("key of a dict", lambda: {Key(): 1.0}, lambda p: next(iter(list(p))).number, lambda p: set_number(next(iter(p))))
of("order of a dict", lambda: {"a": 2.0, "b": 3.0}, lambda p: next(iter(p.values())), lambda p: p.update(a=p.pop("a")))
of(
    "object in a frozenset",
    lambda: frozenset([Key()]),
    lambda p: min(k.number for k in p),
    lambda p: set_number(min(p)),
)
of("event", threading.Event, lambda p: 3.0 if p.is_set() else 2.0, lambda p: p.set())
of("items of a queue", queue.Queue, lambda p: p.qsize() + 1.0, lambda p: p.put(1.0))
of("mock", lambda: mock.Mock(return_value=2.0), lambda p: p(), to("return_value", 3.0))
of(
    "side effect of a mock",
    lambda: mock.Mock(side_effect=Plain()),
    lambda p: p(1.0),
    lambda p: set_number(p.side_effect),
)
of("attribute of a mock", lambda: mock.Mock(number=2.0), lambda p: p.number, set_number)
of(
    "named tuple's default",
    lambda: collections.namedtuple("Pair", "a", defaults=[2.0]),
    lambda p: p().a,
    lambda p: setattr(p.__new__, "__defaults__", (3.0,)),
)
of(
    "flags of an array",
    lambda: np.ones(3),
    lambda p: 2.0 + p.flags.writeable,
    lambda p: setattr(p.flags, "writeable", False),
)
of("record", lambda: np.zeros(1, [("a", float)])[0], lambda p: p["a"] + 2.0, put("a", 3.0))
of("flat elements", lambda: np.ones(3).flat, lambda p: p[0], put(0, 3.0))
of("zero of the other sign in a large list", lambda: [0.0] * 200_000, lambda p: math.copysign(2.0, p[7]), put(7, -0.0))
of("bool in a large list", lambda: [1] * 200_000, lambda p: len(repr(p[7])), put(7, True))
of(
    "equal numbers in a large list",
    lambda: [2.5] * 200_000,
    lambda p: p[7],
    lambda p: p.__setitem__(slice(None), [float(str(n)) for n in p[:-1]] + [p[-1] + 1.0]),
)
of("text in a large list", lambda: ["a"] * 300, lambda p: len(p[7]), put(7, "abc"))
of("text of another class in a large list", lambda: ["a"] * 300, lambda p: len(type(p[7]).__name__), put(7, Text("a")))
NUMBERS_TO_INDEX = [5.0, 6.0, 7.0, 8.0, 9.0]


of("__class_getitem__", lambda: type("Derived", (Hooks,), {}), lambda k: k[2], to("number", 3))


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


watched("globals of a function", lambda: (lambda x: x * half.__globals__["SCALE"], more_scale))
behind(
    "function that is vectorised",
    lambda: [2.0],
    lambda numbers: np.vectorize(lambda n: n * numbers[0]),
    lambda scaled: float(scaled(1.0)),
    put(0, 3.0),
)


@case()
def variable_of_a_context():
    number = contextvars.ContextVar("number")
    number.set(2.0)
    context = contextvars.copy_context()
    return lambda x: x * context[number], lambda: context.run(number.set, 3.0)


behind(
    "finalizer",
    lambda: [Plain()],
    lambda held: weakref.finalize(held[0], lambda: None),
    lambda final: 2.0 if final.alive else 3.0,
    lambda held: held.clear(),
)


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
        twice = functools.partialmethod(Plain.times, 2.0)

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


of("seed of a generator that is made inside", lambda: [3], lambda p: np.random.default_rng(p[0]).normal(), put(0, 4))
of(
    "memory that is packed into",
    lambda: bytearray(struct.pack("d", 2.0)),
    lambda p: struct.unpack_from("d", p)[0],
    lambda p: struct.pack_into("d", p, 0, 3.0),
)


@case()
def file_that_is_mapped():
    with tempfile.NamedTemporaryFile() as file:
        np.arange(2.0, 9.0).tofile(file.name)
        read, written = (np.memmap(file.name, dtype=float, mode=mode) for mode in ("r", "r+"))
    return lambda x: x * float(read[0]), lambda: written.__setitem__(0, 7.0)


# What libraries and Python tell: settings, introspection, locks, logs, names that are made at run time


def setting(name, read, change, other, before):
    """Note a case: what a function of a library tells is set to something else, and in the end as it was."""

    def made():
        CLEANUP.append(lambda: change(before))
        return lambda x: x * read(), lambda: change(other)

    watched(name, made)


def zone(name):
    os.environ["TZ"] = name
    time.tzset()


def with_zone(name, read):
    """Note a case: the time zone is another one."""
    if hasattr(time, "tzset"):
        before = os.environ.get("TZ", "UTC0")
        setting(name, read, lambda to: zone(to or ("EST5" if time.timezone != 18000 else "CET-1")), None, before)


def half(x, k: int = 2):
    """Half."""
    return x / k


JOINED = ("".join(["SC", "ALE"]), "".join(["num", "ber"]), "".join(["sca", "le"]))
MADE = types.ModuleType("made_module", "of a test")
MADE.scale = 2.0
LATER = [itertools.count(3)]


def made_class(**content):
    return type("Made", (), {"__doc__": "of a test", "__annotations__": {}, **content})


def copied(function):
    """A function that may be changed, as nothing else has it."""
    made = types.FunctionType(function.__code__, globals(), "made", function.__defaults__)
    made.__doc__, made.__annotations__ = "of a test", {}
    return made


of("__qualname__", lambda: copied(half), lambda f: len(f.__qualname__), lengthening("__qualname__"))
of("__module__", lambda: copied(half), lambda f: len(f.__module__), lengthening("__module__"))
of("__name__ of a function by name", lambda: copied(half), lambda f: len(f.__name__), lengthening("__name__"))
of("__doc__ of a function by name", lambda: copied(half), lambda f: len(f.__doc__), lengthening("__doc__"))
of(
    "annotations",
    lambda: copied(half),
    lambda f: len(f.__annotations__),
    lambda f: f.__annotations__.update({str(next(LATER[0])): int}),
)
of(
    "an annotation",
    lambda: copied(half),
    lambda f: len(typing.get_type_hints(f)),
    lambda f: f.__annotations__.update({str(next(LATER[0])): int}),
)
of("__name__ of a class", made_class, lambda k: len(k.__name__), lengthening("__name__"))
of(
    "__name__ of the class of an object",
    lambda: made_class()(),
    lambda o: len(type(o).__name__),
    lambda o: lengthen(type(o), "__name__"),
)
of("__doc__ of a class", made_class, lambda k: len(k.__doc__), lengthening("__doc__"))
of("__doc__ of a module", lambda: types.ModuleType("made", "doc"), lambda m: len(m.__doc__), lengthening("__doc__"))
of("__name__ of a module", lambda: types.ModuleType("made", "doc"), lambda m: len(m.__name__), lengthening("__name__"))
of(
    "classes below",
    made_class,
    lambda k: 1 + len(k.__subclasses__()),
    lambda k: CLEANUP.append(type("Below", (k,), {})),
)
of("class attribute by a made name", lambda: made_class(scale=2.0), lambda k: getattr(k, JOINED[2]), to("scale", 3.0))
of("class attribute by vars", lambda: made_class(scale=2.0), lambda k: vars(k)[JOINED[2]], to("scale", 3.0))
of(
    "attribute of a module by a made name",
    lambda: MADE,
    lambda m: getattr(m, JOINED[2]),
    lambda m: setattr(m, "scale", m.scale + 1.0),
)
of(
    "attribute of a module by vars",
    lambda: MADE,
    lambda m: vars(m)[JOINED[2]],
    lambda m: setattr(m, "scale", m.scale + 1.0),
)
of(
    "attribute of a module by its dict",
    lambda: MADE,
    lambda m: m.__dict__[JOINED[2]],
    lambda m: setattr(m, "scale", m.scale + 1.0),
)
of("attribute of a class that is new", made_class, lambda k: getattr(k, JOINED[2], 1.0), to("scale", 3.0))


COMPILED = compile("SCALE", "<made>", "eval")


def executed(x):
    """Run a text that is made at run time."""
    found = {}
    exec("".join(["r = SC", "ALE"]), globals(), found)
    return x * found["r"]


class WithMadeNames:
    """Calls a method by a name that is made at run time."""

    def __init__(self):
        self.kind = "first"

    def by_first(self, x):
        return x * SCALE

    def __call__(self, x):
        return getattr(self, f"by_{self.kind}")(x)


case(REFUSED, "global by a made name")(lambda: (lambda x: x * globals()[JOINED[0]], more_scale))
case(REFUSED, "global by get and a made name")(
    lambda: (lambda x: x * globals().get("".join(["SC", "ALE"])), more_scale)
)
watched("global by get and a constant", lambda: (lambda x: x * globals().get("SCALE", 1.0), more_scale))
case(REFUSED, "global of a function by a made name")(lambda: (lambda x: x * half.__globals__[JOINED[0]], more_scale))
case(REFUSED, "global of a frame by a made name")(
    lambda: (lambda x: x * sys._getframe(0).f_globals[JOINED[0]], more_scale)
)
watched("what eval is given at run time", lambda: (lambda x: x * eval("".join(["SC", "ALE"])), more_scale))
watched("what eval is given compiled", lambda: (lambda x: x * eval(COMPILED), more_scale))
watched("what exec is given", lambda: (executed, more_scale))
watched("function that is made of code", lambda: (lambda x: x * types.FunctionType(COMPILED, globals())(), more_scale))
watched("global that a method of a made name reads", lambda: (WithMadeNames(), more_scale))


@case()
def cell_of_a_function_of_a_made_name():
    scale = 2.0

    class Own:
        def by_first(self, x):
            return x * scale

    def change():
        nonlocal scale
        scale = 3.0

    own = Own()
    return lambda x: getattr(own, "".join(["by_", "first"]))(x), change


def set_precision(digits):
    decimal.getcontext().prec = digits


def precision(name, read):
    """Note a case: decimals have another precision."""
    setting(name, read, set_precision, 3, 28)


setting("constant of a module of the library", lambda: math.tau, lambda to: setattr(math, "tau", to), 3.0, math.tau)
setting("np.geterr", lambda: len(np.geterr()["divide"]), lambda to: np.seterr(divide=to), "ignore", "warn")
setting("np.getbufsize", np.getbufsize, np.setbufsize, 16384, 8192)
setting("np.get_printoptions", lambda: np.get_printoptions()["precision"],
        lambda to: np.set_printoptions(precision=to), 3, 8)  # fmt: skip
setting("recursion limit", lambda: sys.getrecursionlimit() / LIMIT, lambda by: sys.setrecursionlimit(LIMIT + by), 50, 0)
setting("switch interval", sys.getswitchinterval, sys.setswitchinterval, 0.25, 0.005)
setting("threshold of the collector", lambda: gc.get_threshold()[2], lambda to: gc.set_threshold(*to),
        (700, 10, 11), THRESHOLD)  # fmt: skip
precision("precision of decimals", lambda: decimal.getcontext().prec)
precision("precision of decimals that are computed with", lambda: float(decimal.Decimal(1) / 3))
precision("precision of decimals that are there", lambda third=decimal.Decimal(3): float(1 / third))
of(
    "context of decimals",
    lambda: decimal.Context(prec=9),
    lambda c: float(c.divide(decimal.Decimal(1), decimal.Decimal(3))),
    to("prec", 3),
)
with_zone("time.timezone", lambda: time.timezone + 1)
with_zone("time.mktime", lambda: time.mktime((2020, 1, 1, 0, 0, 0, 0, 0, 0)))
with_zone("fromtimestamp", lambda: datetime.datetime.fromtimestamp(1e6).hour + 1)
with_zone("timestamp", lambda: datetime.datetime(2020, 1, 1).timestamp())
if hasattr(signal, "SIGUSR1"):
    setting("handler of a signal", lambda: 1 + (signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN),
            lambda to: signal.signal(signal.SIGUSR1, to), signal.SIG_IGN, signal.SIG_DFL)  # fmt: skip
setting("limit of csv", lambda: csv.field_size_limit() / 1000, csv.field_size_limit, 1000, 131072)
setting("level of all loggers", lambda: 1 + logging.getLogger("made").isEnabledFor(10),
        logging.getLogger("made").setLevel, 10, 0)  # fmt: skip
setting("level of the root", lambda: logging.root.level, logging.root.setLevel, 17, 30)
setting("name of the thread", lambda: len(threading.current_thread().name),
        lambda to: setattr(threading.current_thread(), "name", to), f"{NAME}x", NAME)  # fmt: skip


def logger():
    return logging.getLogger(f"made_{next(LATER[0])}")


of("level of a logger", logger, lambda log: 1 + log.level, lambda log: log.setLevel(log.level + 10))
of("whether a logger is enabled", logger, lambda log: 1 + log.isEnabledFor(30), lambda log: log.setLevel(50))
of("effective level of a logger", logger, lambda log: log.getEffectiveLevel(), lambda log: log.setLevel(17))
of("whether a logger is disabled", logger, lambda log: 1 + log.disabled, to("disabled", True))
of("handlers of a logger", logger, lambda log: 1 + len(log.handlers), lambda log: log.addHandler(logging.NullHandler()))
of("level of a handler", logging.NullHandler, lambda log: 1 + log.level, lambda log: log.setLevel(10))
of("lock", threading.Lock, lambda lock: 1 + lock.locked(), lambda lock: lock.acquire(blocking=False))
of("condition", threading.Condition, lambda c: 1 + c._is_owned(), lambda c: c.acquire())
of("future", concurrent.futures.Future, lambda f: 1 + f.done(), lambda f: f.done() or f.set_result(4.0))
of("event of asyncio", asyncio.Event, lambda e: 1 + e.is_set(), lambda e: e.set())
of("loop of asyncio", asyncio.new_event_loop, lambda loop: 1 + loop.is_closed(), lambda loop: loop.close())
of("name of a process", lambda: multiprocessing.Process(target=print), lambda p: len(p.name), lengthening("name"))
of("number of several processes", lambda: multiprocessing.Value("d", 2.0), lambda v: v.value, to("value", 3.0))
of("array of several processes", lambda: multiprocessing.Array("d", [2.0, 3.0]), lambda v: v[0], put(0, 3.0))
of(
    "member of an object in C",
    lambda: sqlite3.connect(":memory:"),
    lambda base: 1 + base.total_changes,
    lambda base: base.executescript("create table a(b); insert into a values (1); drop table a"),
)
of(
    "whether a generator has ended",
    lambda: (i for i in ()),
    lambda g: 1 + (g.gi_frame is None),
    lambda g: next(g, None),
)
of(
    "class registered as a number",
    lambda: made_class()(),
    lambda o: 1 + isinstance(o, numbers.Number),
    lambda o: numbers.Number.register(type(o)),
)


@case()
def memory_that_processes_share():
    shared = multiprocessing.shared_memory.SharedMemory(create=True, size=8)
    CLEANUP.extend([shared.unlink, shared.close])
    return lambda x: x * (1 + shared.buf[0]), lambda: shared.buf.__setitem__(0, shared.buf[0] + 1)


@case()
def progress_bar():
    bar = tqdm.tqdm(total=10, disable=False, file=io.StringIO())
    CLEANUP.append(bar.close)
    return lambda x: x * (1 + bar.n), lambda: bar.update(1)


of("name of a column", lambda: pandas.Series([1.0, 2.0], name="a"), lambda c: len(c.name), lengthening("name"))
of(
    "attributes of a frame",
    lambda: pandas.DataFrame({"a": [1.0]}),
    lambda f: f.attrs.get("k", 1.0),
    lambda f: f.attrs.update(k=3.0),
)


# Tensors, as PyTorch has them


class FakeTensor:
    """As much of a tensor as is read."""

    def __init__(self, *numbers, is_plain=True):
        self._numbers, self._is_plain = np.array(numbers), is_plain

    def __array__(self, dtype=None, copy=None):
        if not self._is_plain:
            raise TypeError("call detach first")
        return self._numbers

    def detach(self):
        return self

    to_dense = detach

    def double(self):
        return self._numbers

    def first(self):
        return float(self._numbers[0])

    def double_(self):
        self._numbers *= 2


FakeTensor.__module__ = "torch"
of("fake tensor", lambda: FakeTensor(1.0, 2.0), lambda t: t.first(), lambda t: t.double_())
of("tensor of another kind", lambda: FakeTensor(1.0, 2.0, is_plain=False), lambda t: t.first(), lambda t: t.double_())


class FakeGenerator:
    """As much of a generator of PyTorch as is read."""

    def __init__(self):
        self.state = np.arange(3)

    def get_state(self):
        return self.state

    def set_state(self, state):
        self.state = state

    def draw(self):
        self.state = self.state + 1
        return float(self.state[0])


FakeGenerator.__module__ = "torch._C"


def with_torch(make):
    """What is made where there is as much of PyTorch as is read."""

    def made():
        shared = FakeGenerator()
        torch = types.SimpleNamespace(as_tensor=list, get_rng_state=shared.get_state, set_rng_state=shared.set_state)
        before = sys.modules.get("torch")
        CLEANUP.append(lambda: sys.modules.update(torch=before) if before else sys.modules.pop("torch"))
        sys.modules["torch"] = torch
        return make(shared)

    return made


# What gives another number each time


def draws(name, make):
    """Note a case that is refused: it makes a function without arguments, which gives another number each time."""

    def made():
        draw = make()
        return lambda x: x * float(draw()), lambda: None

    case(REFUSED, name)(made)


def simple_queue():
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
draws("references", lambda: lambda: sys.getrefcount(half))
draws("objects of the collector", lambda: lambda: len(gc.get_objects()))
draws("references of the collector", lambda: lambda: len(gc.get_referrers(half)))
draws("whether the collector runs", lambda: lambda: 1 + gc.isenabled())
draws("profile function", lambda: lambda: 1.0 if sys.getprofile() is None else 2.0)
draws("timer", lambda: lambda: 1 + signal.getitimer(signal.ITIMER_REAL)[0])
draws("address as a text", lambda: lambda: ctypes.string_at(ctypes.addressof(BUFFER), 1)[0])
draws("address as a number", lambda: lambda: ctypes.c_byte.from_address(ctypes.addressof(BUFFER)).value)
draws("address as a pointer", lambda: lambda: ctypes.cast(ctypes.addressof(BUFFER), POINTER)[0])
draws("gradient of a Value", lambda: lambda w=Value(2.0): w.grad + 1.0)  # noqa: B008
draws("gradients of a model", lambda: lambda net=mg.nn.Neuron(2): sum(p.grad for p in net.parameters()))  # noqa: B008
draws("generator of PyTorch", with_torch(lambda shared: lambda made=FakeGenerator(): made.draw()))  # noqa: B008
draws(
    "generator that functions of PyTorch share",
    with_torch(lambda shared: lambda: eval("shared.draw()", {"shared": shared})),
)
draws("open file", lambda: lambda file=opened(): len(file.readline()))  # noqa: B008
draws("lines of a file", lambda: lambda file=opened(): len(next(file)))  # noqa: B008


# All modules of the process are watched: those of a new one, which are few and nobody else's.
ALONE = (
    "from tests.compiler import test_kinds_of_state as it; make, outcome = it.CASES[{!r}]; it._check(*make(), outcome)"
)
READING_ALL = ("sys_modules",)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array")  # since NumPy 2.5
@pytest.mark.parametrize("name", CASES, ids=lambda name: f"{CASES[name][1]}-{name}")
def test_a_number_that_changes_is_never_silently_the_old_one(name, monkeypatch):
    if name in READING_ALL:
        subprocess.run([sys.executable, "-c", ALONE.format(name)], cwd=ROOT, stdin=subprocess.DEVNULL, check=True)
        return
    for variable in ("SCALE", "abs"):
        monkeypatch.setitem(globals(), variable, globals().get(variable))
    if globals()["abs"] is None:
        monkeypatch.delitem(globals(), "abs")
    make, outcome = CASES[name]
    try:
        _check(*make(), outcome)
    finally:
        while CLEANUP:
            if callable(clean := CLEANUP.pop()):
                clean()


def _check(f, change, outcome):
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
    assert f"can change in {len(CASES)} ways" in text
    assert f"For {outcomes.count(WATCHED)} of them, the next call" in text
    assert f"The other {outcomes.count(REFUSED)} give another number" in text
