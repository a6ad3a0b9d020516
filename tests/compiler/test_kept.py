"""Which arguments share a program, and how many programs are kept."""

import gc
import math
import warnings
import weakref
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property, partial

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.calling.kept import ROOM
from micrograd.compiler.guards.structure import Structure
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow

SCALE = 2.0


class Mode(Enum):
    FAST = 1
    SLOW = 2


@dataclass(frozen=True)
class Settings:
    rate: object
    name: object = "a"

    def scaled(self, x):
        return x * self.rate * SCALE


@dataclass(frozen=True)
class Slotted:
    __slots__ = ("rate",)
    rate: object


@dataclass(frozen=True)
class SlottedAll:
    __slots__ = ("__dict__", "__weakref__", "rate")
    rate: object


@dataclass(frozen=True)
class Nested(Settings):
    inner: object = None
    hidden: object = field(default=0, compare=False)


class Model:
    def __init__(self, w):
        self.w = Value(w)

    def forward(self, x):
        return self.w * x


def counting(f, **settings):
    """The compiled function, and what says how often it has been traced."""
    traces = Runs()  # which is not looked into: the function would be traced again

    def traced(*arguments):
        print(end="", file=traces)
        return f(*arguments)

    return mg.compile(traced, **settings), lambda: traces.times


def same(*arguments):
    """Whether all of them share a program."""
    return len({Structure(argument).key for argument in arguments}) == 1


ALIKE = {
    "ranges": lambda: range(2, 10, 3),
    "slices": lambda: slice(None, 3),
    "bytes": lambda: b"ab"[:1],
    "members of an Enum": lambda: Mode(1),
    "frozensets": lambda: frozenset(["a", 1.5, (2, None)]),
    "frozen dataclasses": lambda: Settings(0.1, "a"),
    "frozen dataclasses with slots": lambda: Slotted(2.0),
    "frozen dataclasses with slots and attributes": lambda: SlottedAll(2.0),
    "frozen dataclasses in each other": lambda: Nested(1, True, (Settings(-0.0), b"a", Mode.FAST), range(3)),
    "frozen dataclasses with a function": lambda: Settings(mg.tanh, Model),
    "frozen dataclasses with NaN": lambda: Settings(math.nan),
    "methods": lambda: MODEL.forward,
}
MODEL = Model(3.0)


@pytest.mark.parametrize("name", ALIKE)
def test_what_is_made_again_at_each_call_and_cannot_be_told_apart_shares_a_program(name, backend):
    make = ALIKE[name]
    fast, traces = counting(lambda x, made: x * 2.0, backend=backend)
    assert [fast(Value(float(i)), make()).data for i in range(5)] == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert traces() == 1
    assert same(make(), make())


def test_what_could_be_told_apart_does_not_share_a_program():
    alike = [
        *[Settings(number) for number in (1, True, 1.0, "1", b"1", None, 2, Mode.FAST, Mode.SLOW, (1,), (True,))],
        *[Settings(0.0), Settings(-0.0), Settings(0), Settings(False), Settings([1]), Settings([1])],
        *[
            Settings(slice(1.5)),
            Settings(slice(1.5)),
            Nested(1),
            Nested(1, hidden=1),
            Settings(1, "b"),
            Slotted(1),
            Slotted(1.0),
        ],
        *["a", b"a", True, False, None, Mode.FAST, Mode.SLOW, type("Text", (str,), {})("a")],
        *[range(1, 3), range(0, 3, 2), range(0, 4, 2), range(1)],
        *[range(3), slice(3), slice(0, 3), slice(1), slice(3, None, 1)],
        *[frozenset([1]), frozenset([True]), frozenset([1.0]), frozenset([0.0]), frozenset([-0.0]), frozenset(["1"])],
        *[Model(1.0), Model(1.0), MODEL, MODEL.forward, Model(3.0).forward, lambda v: v, lambda v: v],
        *[{1: "a"}, {True: "a"}, {1.0: "a"}, {0.0: "a"}, {-0.0: "a"}, {(1,): "a"}, {(True,): "a"}, {Mode.FAST: "a"}],
    ]
    assert len({Structure(item).key for item in alike}) == len(alike)


def test_the_order_of_a_set_counts():
    """Equal sets may have their elements in different orders, and a sum is taken in that order."""
    forth, back = frozenset([0, 8]), frozenset([8, 0])
    assert forth == back
    assert same(forth, back) == (list(forth) == list(back))


def test_a_frozen_dataclass_that_holds_more_than_its_fields_is_told_apart():
    @dataclass(frozen=True)
    class Cached:
        rate: float

        @cached_property
        def double(self):
            return self.rate * 2.0

    class Marked(Settings):
        pass

    @dataclass(frozen=True)
    class More(Settings):
        __slots__ = ("extra",)

    @dataclass(frozen=True, eq=False)
    class ByIdentity:
        rate: float

    @dataclass(frozen=True)
    class Unset:
        rate: float = field(init=False)

    first, second = Cached(1.0), Cached(1.0)
    assert same(first, second)
    assert first.double == 2.0
    assert not same(first, second)
    marked = Settings(1.0)
    object.__setattr__(marked, "mark", 5.0)
    assert not same(marked, Settings(1.0))
    for make in (lambda: Marked(1.0), lambda: More(1.0), lambda: ByIdentity(1.0), lambda: Unset()):
        one = make()
        assert same(one, one)
        assert not same(one, make())
    unset = Slotted(1.0)
    object.__delattr__(unset, "rate")
    assert not same(unset, Slotted(1.0))


def test_what_a_shared_program_reads_is_noticed_when_it_changes(monkeypatch, backend):
    fast = mg.compile(lambda x, settings: settings.scaled(x), backend=backend)
    assert fast(Value(1.0), Settings(3.0)).data == 6.0
    monkeypatch.setitem(globals(), "SCALE", 10.0)
    assert fast(Value(1.0), Settings(3.0)).data == 30.0
    changed = Settings(3.0)
    object.__setattr__(changed, "rate", 4.0)
    assert fast(Value(1.0), changed).data == 40.0
    assert fast(Value(1.0), Settings(3.0)).data == 30.0
    monkeypatch.setattr(Settings, "scaled", lambda self, x: x - self.rate)
    assert fast(Value(1.0), Settings(3.0)).data == -2.0


def test_a_list_in_a_frozen_dataclass_is_looked_at(backend):
    rates = [2.0]
    fast = mg.compile(lambda x, settings: x * settings.rate[0], backend=backend)
    assert fast(Value(1.0), Settings(rates)).data == 2.0
    rates[0] = 3.0
    assert fast(Value(1.0), Settings(rates)).data == 3.0
    assert fast(Value(1.0), Settings([5.0])).data == 5.0


def test_methods_of_one_object_share_a_program_and_read_its_numbers(backend):
    fast, traces = counting(lambda x, function: function(x) * 2.0, backend=backend)
    model, other = Model(3.0), Model(5.0)
    assert [fast(Value(1.0), m.forward).data for m in (model, other, model, other)] == [6.0, 10.0, 6.0, 10.0]
    assert traces() == 2
    model.w = Value(7.0)
    assert fast(Value(1.0), model.forward).data == 14.0


def test_functions_made_alike_are_not_taken_for_each_other(backend):
    """They may be told apart by a table, and what they close over may change later."""

    def scaled_by(factor):
        def change(to):
            nonlocal factor
            factor = to

        return lambda v: v * factor, change

    (first, change_first), (second, change_second) = scaled_by(2.0), scaled_by(2.0)
    shares = {first: 10.0, second: 20.0}
    fast = mg.compile(lambda x, g: g(x) * shares[g], backend=backend)
    assert [fast(Value(1.0), g).data for g in (first, second)] == [20.0, 40.0]
    change_second(3.0)
    assert [fast(Value(1.0), g).data for g in (first, second)] == [20.0, 60.0]
    change_first(5.0)
    assert [fast(Value(1.0), g).data for g in (first, second)] == [50.0, 60.0]
    with_default = [lambda v, by=by: v * by for by in (2.0, 3.0)]
    assert [mg.compile(lambda x, g: g(x), backend=backend)(Value(1.0), g).data for g in with_default] == [2.0, 3.0]


MAKERS = {
    "functions": (lambda: lambda v: v * 2.0, r"the last a function <lambda>"),
    "methods": (lambda: Model(2.0).forward, r"the last a function forward"),
    "objects": (lambda: partial(mg.dot, [2.0]), r"the last a partial"),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.unmeasured
def test_another_object_at_each_call_is_warned_of_once_and_does_not_fill_the_memory(name):
    make, what = MAKERS[name]
    fast, traces = counting(lambda x, g: x * 2.0, backend="numpy")
    seen, x = [], Value(3.0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(3 * ROOM):
            made = make()
            seen.append(weakref.ref(getattr(made, "__self__", made)))
            assert fast(x, made).data == 6.0
            del made
    assert traces() == 3 * ROOM
    gc.collect()
    assert sum(ref() is not None for ref in seen) <= ROOM + 1
    assert len(warned) == 1
    assert warned[0].filename == __file__
    message = str(warned[0].message)
    assert message.startswith(f"<compiled traced> was traced for {ROOM + 1} objects in its arguments, ")
    assert what in message
    assert "Make such an object once, before the calls" in message


def test_many_objects_that_take_turns_are_all_kept_after_a_while():
    models = [Model(float(n)) for n in range(2 * ROOM + 5)]
    fast, traces = counting(lambda model, x: model.w * x, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            assert [fast(model, 2.0).data for model in models] == [2.0 * n for n in range(len(models))]
        before = traces()
        for _ in range(3):
            assert [fast(model, 2.0).data for model in models] == [2.0 * n for n in range(len(models))]
    assert traces() == before


def test_as_many_objects_as_there_is_room_for_are_all_kept():
    models = [Model(float(n)) for n in range(ROOM)]
    fast, traces = counting(lambda model, x: model.w * x, backend="numpy")
    for _ in range(2):
        assert [fast(model, 2.0).data for model in models] == [2.0 * n for n in range(ROOM)]
    assert traces() == ROOM


def test_objects_that_are_used_again_before_the_next_one_comes_are_not_warned_of():
    fast, traces = counting(lambda model, x: model.w * x, backend="numpy")
    always = Model(1.0)
    for n in range(2 * ROOM):
        model = Model(float(n))
        for x in (1.0, 2.0):
            assert fast(model, x).data == n * x
            assert fast(always, x).data == x
    assert traces() == 2 * ROOM + 1  # the one that is always used stays


def test_lengths_texts_and_ranges_are_all_kept():
    fast, traces = counting(
        lambda xs, name, positions: sum(xs[position] for position in positions) * 2.0, backend="numpy"
    )
    for _ in range(2):
        for n in range(1, 2 * ROOM):
            assert fast([1.0] * n, str(n), range(n)) == 2.0 * n
    assert traces() == 2 * ROOM - 1
