"""What a compiled function reads beside its arguments, and what becomes of it when that is replaced."""

import contextvars
import functools
import gc
import math
import re
import sys
import threading
import types
import warnings
import weakref
from collections import deque
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow

SCALE = 2.0
W = Value(2.0)
TABLE = {"w": Value(2.0), "scale": 3.0}
KEPT = None


class Model:
    """As users write them."""

    offset = 1.0

    def __init__(self):
        self.w, self.scale, self.layers, self.flag = Value(2.0), 3.0, [Value(4.0), Value(5.0)], True
        self.steps, self.rows = 0, [[float(number), 1.0] for number in range(30)]

    def __call__(self, x):
        total = self.scale * self.w * x + self.offset
        for layer in self.layers:
            total = total * layer
        return total if self.flag else -total


class Slotted:
    __slots__ = ("__hidden", "w")

    def __init__(self):
        self.w, self.__hidden = Value(2.0), 3.0

    def change(self):
        self.__hidden = 7.0

    def __call__(self, x):
        return self.w * x * self.__hidden


@dataclass
class Config:
    scale: float = 2.0
    mode: str = "plain"
    weights: list = field(default_factory=lambda: [Value(3.0)])


class Kind(Enum):
    A = 1
    B = 2


def scaled(x):
    return x * SCALE


def check(f, *changes, arguments=(1.5,), backend):
    """After each change, the compiled function gives what f gives; and without one, it is not traced again."""
    fast = mg.compile(f, backend=backend)

    def number(result):
        return result.data if isinstance(result, Value) else result

    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            assert number(fast(*arguments)) == pytest.approx(number(f(*arguments)), rel=1e-14)
        before = fast._last
        assert number(fast(*arguments)) == pytest.approx(number(f(*arguments)), rel=1e-14)
        assert fast._last is before


class Word(str):
    __slots__ = ()

    def __repr__(self):
        return "a word"


@pytest.mark.parametrize(
    "numbers",
    [
        *((1, 1.0), (1.0, True), (True, 1), (False, 0.0), (0.0, -0.0), (2.0, "2"), ("two", Word("two"))),
        *((None, 0.0), (2.0, np.float64(2.0)), (1.0, math.nan)),
    ],
)
def test_equal_numbers_of_other_types_and_the_sign_of_zero_are_replacements(numbers):
    for fast, change in _of_number(numbers):
        assert [fast(1.0), change(), fast(1.0)][::2] == [1.0 + _told_by_text(number) for number in numbers]


def _told_by_text(number):
    """A number that tells any two others apart, zeros and those of other types too."""
    return float(int.from_bytes(repr(number).encode()[:6]))


def _of_number(numbers):
    old, new = numbers
    cell = old
    items, table, model = [old], {"n": old}, types.SimpleNamespace(n=old)

    def change():
        nonlocal cell
        cell = new

    yield mg.compile(lambda x: x + _told_by_text(cell)), change
    yield mg.compile(lambda x: x + _told_by_text(items[0])), lambda: items.__setitem__(0, new)
    yield mg.compile(lambda x: x + _told_by_text(table["n"])), lambda: table.update(n=new)
    yield mg.compile(lambda x: x + _told_by_text(model.n)), lambda: setattr(model, "n", new)


def test_equal_numbers_that_are_other_objects_are_no_replacement():
    scale, traces = [float("2.5"), math.nan, (1.0, "a"), np.float64(2.0)], Runs()
    fast = mg.compile(lambda x: (print(end="", file=traces), x * scale[0])[1])
    assert fast(2.0) == 5.0
    scale[:] = [float("2.5"), math.nan, (float("1.0"), "a"), np.float64(2.0)]
    assert fast(2.0) == 5.0
    assert traces.times == 1


def test_an_attribute_that_was_replaced_by_an_equal_list_is_watched(backend):
    model = Model()
    check(
        model,
        lambda: setattr(model, "layers", list(model.layers)),
        lambda: model.layers.__setitem__(0, Value(7.0)),
        lambda: setattr(model, "layers", tuple(model.layers)),
        backend=backend,
    )


def test_rows_that_are_empty_or_pass_numbers_on(backend):
    rows, empty = [[1.0] for _ in range(18)] + [[0.5, 2.0], [4.0]], [[] for _ in range(20)]
    check(
        lambda x: x * sum(map(len, empty)) + len(rows[-1]) * rows[-2][0] * x,
        lambda: rows[-1].insert(0, rows[-2].pop()),
        lambda: empty[3].append(1.0),
        backend=backend,
    )


def test_rows_of_numbers(backend):
    rows, row = [[float(number), 1.0, "a"] for number in range(20)], [0.5, 0.25]
    check(
        lambda x: x * rows[3][0] + len(rows) + sum(rows[-1][:2]) + len(rows[0]) + (rows[5] is row),
        lambda: rows[3].__setitem__(0, 7.0),
        lambda: rows[3].__setitem__(0, float("7")),
        lambda: rows.append([1.0, 2.0]),
        lambda: rows[0].append(3.0),
        lambda: rows.__setitem__(5, row),
        lambda: rows.__setitem__(5, [0.5, 0.25]),
        lambda: row.clear(),
        lambda: rows[-1].__setitem__(0, Value(0.5)),
        lambda: rows[-1].__setitem__(0, 0.5),
        lambda: rows.pop(),
        backend=backend,
    )


class Line(mg.nn.Module):
    """A module with what none of its code names."""

    def __init__(self):
        self.w = Value(2.0)

    def __call__(self, x):
        return self.w * x


@pytest.mark.parametrize("kind", [Model, Line])
def test_attributes_that_the_function_does_not_name_are_not_watched(kind):
    model, traces = kind(), Runs()
    fast = mg.compile(lambda x: (print(end="", file=traces), model(x))[1])
    for step in range(5):
        model.steps, model.history = step, [step]
        fast(2.0)
    assert traces.times <= 2


def left_in_an_attribute(model, x):
    model.w = model.w * x
    return model.w


def left_in_a_list(model, x):
    model.layers[0] = model.layers[0] * x
    return model.layers[0]


def appended(model, x):
    model.layers.append(x * 2)
    return x * 1.0


def left_in_a_dict(model, x):
    TABLE["w"] = TABLE["w"] * x
    return TABLE["w"]


def added_to_a_dict(model, x):
    TABLE["new"] = x * 2
    return x * 1.0


def left_in_a_global(model, x):
    global W
    W = W * x
    return W


def left_in_a_global_that_is_not_read(model, x):
    global KEPT
    KEPT = x * 2
    return x * 1.0


def left_by_setattr(model, x):
    setattr(model, "w" + "2", x * 2)
    return x * 1.0


def left_in_a_row(model, x):
    model.rows[20][1] = x
    return x * model.rows[3][0]


def left_in_a_nested_list(model, x):
    model.kept = [[x * 2]]
    return x * 1.0


@pytest.mark.parametrize(
    ("f", "position"),
    [
        (left_in_an_attribute, "w"),
        (left_in_a_list, "layers[0]"),
        (appended, "layers[2]"),
        (left_in_a_dict, "TABLE['w']"),
        (added_to_a_dict, "TABLE['new']"),
        (left_in_a_global, "W"),
        (left_in_a_global_that_is_not_read, "KEPT"),
        (left_by_setattr, "w2"),
        (left_in_a_row, "rows[20][1]"),
        (left_in_a_nested_list, "kept[0][0]"),
    ],
)
@pytest.mark.parametrize("given", ["closed over", "an argument"])
def test_a_number_that_is_left_behind_is_refused_with_its_position_and_line(f, position, given, backend):
    model = Model()
    w, layers, table, of_module = model.w, list(model.layers), dict(TABLE), W
    fast = mg.compile(f if given == "an argument" else lambda x: f(model, x), backend=backend)
    arguments = (model, 2.0) if given == "an argument" else (2.0,)
    for _ in range(2):
        with pytest.raises(TraceError, match="pass it in as an argument") as error:
            fast(*arguments)
        assert position in str(error.value)
        if f is not left_by_setattr:
            assert f"{__file__}:{f.__code__.co_firstlineno + 1 + ('global' in f.__name__)}" in str(error.value)
        # and all is as it was before
        assert (model.w, model.layers, TABLE, W, KEPT) == (w, layers, table, of_module, None)
        assert model.rows == Model().rows
        assert not hasattr(model, "w2")
        assert not hasattr(model, "kept")


def test_a_number_that_is_left_in_any_container_is_refused_and_taken_out(backend):
    """A key, an element of a set, a deque or an array of objects, and a slot that was empty or not."""
    table, bag, queue, array, slotted = {"a": 1.0}, {Value(3.0)}, deque([W], 1), np.array([W, None]), Slotted()
    array[1] = [W]
    del slotted.w, slotted._Slotted__hidden
    kept = list(bag), list(queue), list(array)

    def as_key(x):
        table[x * 2] = 1.0

    def in_set(x):
        bag.add(x * 2)

    def in_deque(x):
        queue.append(x * 2)

    def in_array(x):
        array[0] = array[0] * x

    def in_slot(x):
        slotted.w = x * 2

    for f, position in (
        (as_key, "table"),
        (in_set, "bag"),
        (in_deque, "queue[0]"),
        (in_array, "array[0]"),
        (in_slot, "w"),
    ):
        for number in (2.0, Value(2.0)):
            said = rf"left behind in [\w.]*{re.escape(position)}.*as an argument"
            if type(number) is float and f in (as_key, in_set):
                said = "a number as a key, or in a set, would freeze a number"
            with pytest.raises(TraceError, match=said):
                mg.compile(lambda x, f=f: (f(x), x * 1.0)[1], backend=backend)(number)
            assert (list(bag), list(queue), list(array)) == kept
            assert list(table.items()) == [("a", 1.0)]
            assert not hasattr(slotted, "w")
    slotted.w = w = Value(1.0)
    with pytest.raises(TraceError, match=r"left behind in slotted\.w"):
        mg.compile(lambda x: (in_slot(x), slotted.w)[1], backend=backend)(2.0)
    assert slotted.w is w


def test_an_object_without_methods_that_is_returned_with_a_number_in_it_is_refused():
    class Box:
        pass

    def f(x):
        box = Box()
        vars(box)["".join(["n", "umber"])] = x
        return box

    with pytest.raises(TraceError, match=r"a number is in Box\.number, in an object that .* returns"):
        mg.compile(f)(1.0)


def test_positions_are_written_as_the_function_has_them():
    class Recurrent:
        def __init__(self):
            self.w, self.h = Value(2.0), 0.0

        def step(self, x):
            self.h = self.w * x
            return self.h

    with pytest.raises(TraceError, match=r"left behind in self\.h \("):
        mg.compile(Recurrent().step)(1.0)

    nest = {}
    for _ in range(50):
        nest = {"inside": nest}

    def deep(x):
        position = nest
        while "inside" in position:
            position = position["inside"]
        position["last"] = x
        return x

    with pytest.raises(TraceError, match=r"left behind in \.\.\.(\w*'?\]?)(\['inside'\]){5,20}\['last'\]") as error:
        mg.compile(deep)(1.0)
    assert len(str(error.value)) < 600


def test_ten_traces_in_a_row_are_warned_of_once():
    model = types.SimpleNamespace(scale=0.0)
    fast = mg.compile(lambda x: x * model.scale, backend="numpy")

    def warnings_of(changes):
        fast(2.0)  # nothing has changed: a row of traces ends here
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(changes):
                model.scale += 1.0
                assert fast(2.0) == 2.0 * model.scale
        return [str(warning.message) for warning in caught]

    fast(2.0)
    assert [len(warnings_of(changes)) for changes in (9, 9, 10, 12, 9)] == [0, 0, 1, 1, 0]
    (message,) = warnings_of(10)
    assert "as model.scale was replaced before each" in message


def test_new_attributes_have_no_position_to_be_named_by():
    used = Used()
    fast = mg.compile(lambda x: used.w * x, backend="numpy")

    def call_with_new_attributes():
        for number in range(11):
            setattr(used, f"new{number}", 0.0)
            assert fast(1.0).data == 2.0

    with pytest.warns(RuntimeWarning, match="as something was replaced before each"):
        call_with_new_attributes()


def test_attributes_that_comprehensions_and_patterns_name(backend):
    items, tagged = [Used(), Used()], Tagged()
    tagged.tag = 3.0

    def f(x):
        match tagged:
            case Tagged(tag=number):
                return sum(item.w * x for item in items) * number

    check(f, lambda: setattr(items[1], "w", Value(5.0)), lambda: setattr(tagged, "tag", 7.0), backend=backend)


class Bare:
    def __init__(self):
        self.unused = 1.0


class Tagged:
    tag: float


class Used:
    def __init__(self):
        self.w, self.unused = Value(2.0), 1.0


def test_variables_new_attributes_and_rings_are_put_back_after_a_refused_trace():
    bare, ring, kept = Bare(), [1.0], "before"
    ring.append(ring)

    def keep(x):
        nonlocal kept
        kept = x

    def set_attribute(x):
        bare.new = x

    def append(x):
        ring.append(x)

    for change in (keep, set_attribute, append):
        with pytest.raises(TraceError, match="left behind"):
            mg.compile(lambda x, change=change: (change(x), x)[1])(1.0)
    assert (kept, list(vars(bare)), ring[0], len(ring)) == ("before", ["unused"], 1.0, 2)


def test_what_holds_no_number_of_a_refused_trace_stays():
    model = Model()
    names = list(vars(model))

    def f(x):
        model.seen, model.h = "yes", model.w * x
        return model.h

    with pytest.raises(TraceError, match=r"left behind in model\.h"):
        mg.compile(f)(1.0)
    assert list(vars(model)) == [*names, "seen"]


def test_a_global_that_is_deleted_is_missed_as_eagerly(monkeypatch, backend):
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    fast = mg.compile(scaled, backend=backend)
    assert fast(2.0) == 6.0
    monkeypatch.delattr(sys.modules[__name__], "SCALE")
    with pytest.raises(NameError, match="SCALE"):
        fast(2.0)


@pytest.mark.parametrize(("length", "in_rows"), [(1, False), (65, False), (100_000, False), (30, True)])
@pytest.mark.parametrize("change", [-0.0, 0, False, None, np.float64(0.0), 5e-324, Value(0.0)])
@pytest.mark.unmeasured
def test_equal_numbers_in_lists_of_any_length_are_told_apart(length, change, in_rows):
    rows = [[0.0, 1.0] for _ in range(length)] if in_rows else [[0.0] * length]
    fast = mg.compile(lambda x: x + _told_by_text(rows[-1][0]), backend="numpy")
    assert fast(1.0) == 1.0 + _told_by_text(0.0)
    rows[-1][0] = change
    assert fast(1.0) == 1.0 + _told_by_text(change)


@pytest.mark.parametrize(("name", "value"), [("_is_gil_enabled", lambda: False), ("implementation", None)])
def test_long_lists_of_other_pythons_are_watched_too(monkeypatch, name, value):
    """Where the pointers of a list cannot be read."""
    monkeypatch.setattr(sys, name, value or types.SimpleNamespace(name="pypy"), raising=False)
    test_equal_numbers_in_lists_of_any_length_are_told_apart(300, -0.0, False)


def test_a_long_list_that_another_thread_changes_is_watched():
    numbers, stop = [float(number) for number in range(1000)], threading.Event()

    def change():
        while not stop.is_set():
            numbers.extend([1.0] * 5000)
            del numbers[1000:]

    fast = mg.compile(lambda x: x * numbers[7], backend="numpy")
    thread = threading.Thread(target=change)
    thread.start()
    try:
        assert {fast(2.0) for _ in range(200)} == {14.0}
    finally:
        stop.set()
        thread.join()
    numbers[7] = 1.0
    assert fast(2.0) == 2.0


def test_a_long_list_with_equal_numbers_is_traced_once():
    numbers, traces = [float(number) for number in range(1000)], Runs()
    fast = mg.compile(lambda x: (print(end="", file=traces), x * numbers[7])[1], backend="numpy")
    for _ in range(5):
        numbers[:] = [float(str(number)) for number in numbers]
        assert fast(2.0) == 14.0
    assert traces.times == 1


def test_a_list_of_numbers_that_comes_to_hold_itself_is_noticed():
    numbers = [1.0, 2.0]
    fast = mg.compile(lambda x: x * len(numbers), backend="numpy")
    assert fast(1.0) == 2.0
    numbers.append(numbers)
    assert fast(1.0) == 3.0


@pytest.mark.parametrize("length", [64, 65])
def test_equal_texts_of_other_types_in_a_list(length):
    texts, traced = ["a"] * length, Runs()
    fast = mg.compile(lambda x: (print(end="", file=traced), x * len(texts[0]))[1], backend="numpy")
    fast(1.0)
    texts[0] = np.str_("a")
    fast(1.0)
    assert traced.times == 2


def test_a_variable_that_has_no_value_yet(backend):
    traces = Runs()

    def f(x):
        print(end="", file=traces)
        return x * later if early is None else x + early

    early = 1.0
    fast = mg.compile(f, backend=backend)
    assert [fast(2.0), fast(3.0)] == [3.0, 4.0]
    assert traces.times == 1
    later, early = 5.0, None
    assert fast(2.0) == 10.0


def test_slots_that_are_set_and_that_are_empty(backend):
    class Pair:
        __slots__ = ("first", "second")

    pairs = [Pair(), Pair()]
    pairs[0].first, pairs[1].first = 2.0, Value(3.0)
    check(
        lambda x: sum(pair.first * x + getattr(pair, "second", 0.0) for pair in pairs),
        lambda: setattr(pairs[0], "first", 5.0),
        lambda: setattr(pairs[1], "second", 7.0),
        lambda: setattr(pairs[1], "second", 8.0),
        lambda: delattr(pairs[1], "second"),
        backend=backend,
    )


def test_an_attribute_that_a_function_gets_later(backend):
    def scaled(x):
        return x * getattr(scaled, "scale", 1.0)

    def counted(x):
        counted.calls = counted.calls + 1 if hasattr(counted, "calls") else 1
        return x * counted.calls

    fast, counts = (mg.compile(each, backend=backend) for each in (scaled, counted))
    assert fast(2.0) == 2.0
    scaled.scale = 3.0
    assert fast(2.0) == 6.0
    del scaled.scale
    assert fast(2.0) == 2.0
    assert [counts(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_plain_numbers_that_the_function_changes_itself_are_read_each_time(backend):
    model, seen = Model(), []

    def f(x):
        model.steps += 1
        seen.append(model.steps)
        return x * model.steps

    fast = mg.compile(f, backend=backend)
    assert [fast(2.0) for _ in range(4)] == [2.0, 4.0, 6.0, 8.0]
    assert seen == [1, 2, 3, 4]


def test_the_warning_names_whatever_is_replaced(monkeypatch):
    number, items, array, model, table = 0.0, [], np.array([0.0]), types.SimpleNamespace(n=0.0), {"n": 0.0}
    variable, objects = contextvars.ContextVar("variable", default=0.0), np.array([0.0, None])
    rows = [[float(number), 1.0] for number in range(30)]

    def next_number(n):
        nonlocal number
        number = n

    for f, change, what in (
        (lambda x: x * number, next_number, "number"),
        (lambda x: x * len(items), items.append, "the length of items"),
        (lambda x: x * array[0], lambda n: array.__setitem__(0, n), "array"),
        (lambda x: x * model.n, lambda n: setattr(model, "n", n), "model.n"),
        (lambda x: x * table["n"], lambda n: table.update(n=n), "table['n']"),
        (lambda x: x * variable.get(), variable.set, "variable"),
        (lambda x: x * objects[0], lambda n: objects.__setitem__(0, n), "objects"),
        (lambda x: x * rows[20][0], lambda n: rows[20].__setitem__(0, n), "rows[20][0]"),
        (lambda x: x * SCALE, lambda n: monkeypatch.setattr(sys.modules[__name__], "SCALE", n), "SCALE"),
    ):
        fast = mg.compile(f)
        for n in range(10):
            change(float(n))
            assert fast(2.0) == f(2.0)
        change(10.0)
        with pytest.warns(RuntimeWarning, match=rf"as {re.escape(what)} was replaced before each"):
            assert fast(2.0) == f(2.0)


def test_caches_are_no_symbols_left_behind():
    class Lazy:
        @functools.cached_property
        def table(self):
            return [1.0, 2.0]

        @functools.cache  # noqa: B019
        def power(self, n):
            return 2.0**n

    lazy, traces = Lazy(), Runs()

    def f(x):
        print(end="", file=traces)
        return x * lazy.table[1] * lazy.power(3)

    fast = mg.compile(f)
    assert [fast(1.0) for _ in range(4)] == [16.0] * 4
    assert traces.times <= 2


@pytest.mark.unmeasured
def test_a_function_that_closes_over_odd_objects_is_compiled():
    class Odd:
        def __eq__(self, other):
            raise RuntimeError

        __hash__ = None

        def __getattr__(self, name):
            raise KeyError(name)

    cycle = []
    cycle.append(cycle)
    deep = []
    for _ in range(5000):
        deep = [deep]
    odd = [Odd(), cycle, deep, np.array([1.0, 2.0]), object(), range(3), Kind.A, sys, iter([1]), Odd, {}.keys(), gc]
    undefined = Value(2.0)

    def f(x):
        return x * len(odd) if x is None else x * undefined  # noqa: F821  # it is deleted below

    fast = mg.compile(f)
    assert [fast(1.0).data, fast(1.0).data] == [2.0, 2.0]
    odd[0] = Odd()
    assert fast(1.0).data == 2.0
    del undefined
    with pytest.raises(NameError):
        fast(1.0)


def test_a_function_and_its_snapshot_are_freed():
    class Watched(list):
        pass

    weights = Watched([Value(2.0)])
    seen = weakref.ref(weights)

    def make(weights):
        return mg.compile(lambda x: weights[0] * x)

    fast = make(weights)
    fast(1.0)
    del weights, fast
    gc.collect()
    assert seen() is None


def test_equal_operations_are_different_objects(backend):
    w = Value(3.0)

    def f(x):
        products = [w * x, w * x, w**1, w**1, x + 0.5, x + 0.5, mg.dot([w, w], [x, x]), mg.dot([w, w], [x, x])]
        kinds = {product: number for number, product in enumerate(products)}
        again = [products[0], products[0]]
        return len(set(map(id, products))) + sum(kinds.values()) + 0 * x, products, again

    fast = mg.compile(f, backend=backend)
    for argument in (Value(2.0), Value(4.0)):
        (number, products, again), (expected, others, _) = fast(argument), f(argument)
        assert number.data == expected.data == 36.0
        assert [p.data for p in products] == [p.data for p in others]
        assert len(set(products)) == 8
        assert again[0] is again[1]


def test_plain_numbers_are_floats_and_ints_to_isinstance(backend):
    w, table = Value(3.0), [1.0, 2.0]

    def f(x, n, v):
        numbers = [x, x * 2, x + n, n * 2, n - 1, mg.exp(x), x**2, 1 / n, mg.dot([x, n], [1.0, x]), mg.take(table, n)]
        with mg.no_grad():
            numbers.append(x * 3)
        kinds = [isinstance(number, float) + 2 * isinstance(number, int) for number in numbers]
        values = [isinstance(number, (float, int)) for number in (v, w * x, v + n, mg.exp(v))]
        return kinds, values, numbers, [x * v, w * n]

    fast = mg.compile(f, backend=backend)
    for arguments in ((0.5, 1, Value(2.0)), (1.5, 0 + 1, Value(4.0))):
        with mg.no_grad():
            numbers = fast(*arguments)[2]
        expected = f(*arguments)
        assert list(map(type, numbers)) == list(map(type, expected[2]))
        kinds, values, numbers, products = fast(*arguments)
        assert (kinds, values) == expected[:2]
        assert numbers == pytest.approx(expected[2], rel=1e-14)
        assert list(map(type, numbers)) == list(map(type, expected[2]))
        assert [type(product) for product in products] == [Value, Value]
        assert [p.data for p in products] == [p.data for p in expected[3]]
        products[0].backward()


def test_a_branch_on_whether_a_number_is_a_float(backend):
    def f(x):
        if isinstance(x, float):
            return x * 10
        if isinstance(x, int):
            return x * 100
        return x

    fast = mg.compile(f, backend=backend)
    assert [fast(2.0), fast(2), fast(Value(2.0)).data, fast(np.float64(3.0))] == [20.0, 200, 2.0, 30.0]
    assert type(fast(2)) is int


def test_a_number_in_an_object_that_is_returned_is_refused(backend):
    with pytest.raises(TraceError, match=r"a number is in Config\.scale, in an object that .* returns"):
        mg.compile(lambda x: Config(scale=x * 2), backend=backend)(1.0)
    with pytest.raises(TraceError, match=r"in an object that the compiled function returns"):
        mg.compile(lambda x: lambda: x, backend=backend)(1.0)
    config = Config()
    assert mg.compile(lambda x: (config, x * 2), backend=backend)(1.0) == (config, 2.0)


def test_explain_says_how_long_a_call_looks_for_changes():
    numbers = [1.0] * 1_000
    fast = mg.compile(lambda x: x * numbers[-1])
    fast(2.0)
    (said,) = [line for line in fast.explain().splitlines() if line.startswith("Each call first compares")]
    assert re.fullmatch(r"Each call first compares what the function closes over with what it was, in \d+\.\d us", said)


KIND = int | None


@dataclass
class Optional:
    scale: float | None = None


def test_a_union_of_classes_is_not_looked_into_at_each_call(monkeypatch):
    """A pickle of one takes longer than the call."""
    options = Optional(3.0)
    fast = mg.compile(lambda x: x * options.scale if options.scale and isinstance(2.0, KIND) else -x)
    assert fast(2.0) == -2.0
    monkeypatch.setattr("pickle.dumps", None)
    assert fast(4.0) == -4.0
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "KIND", float | None)
    assert fast(2.0) == 6.0
