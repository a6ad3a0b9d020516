"""Loops of compiled functions: their bodies run a few times, and the tape is the one that the plain loop writes."""

import collections
import copy
import functools
import itertools
import random
import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.ir.entries import INPUT, LITERAL, equals_in_order
from micrograd.compiler.tracing.trace import trace
from micrograd.compiler.tracing.turns import _MOST_RECORDINGS, traced_once
from tests.compiler.backends.sparing import is_left_out
from tests.loops import OPERATIONS, SMOOTH, WIDTH, bodies

pytestmark = pytest.mark.slow

TURNS = 20
REPEATED = 3  # runs of a body that is repeated: one as it is written, and two to compare
Point = collections.namedtuple("Point", ["x", "y"])
NUMBERS = [float(number) for number in range(1, TURNS + 1)]


def traced(f, *arguments):
    """The trace of a function, and how often the functions named "step" ran."""
    runs = collections.Counter()

    def profile(frame, event, _):
        runs["step"] += event == "call" and frame.f_code.co_name == "step"

    sys.setprofile(profile)
    try:
        return trace(f, Structure((arguments, {}))), runs["step"]
    finally:
        sys.setprofile(None)


def runs_with_the_same_tape(f, *arguments, plain=TURNS):
    """How often the body of a loop runs; the tape is that of the plain loop, each operation at its place."""
    (expected, runs), (found, fewer) = traced(f, *arguments), traced(traced_once(f), *arguments)
    assert runs == plain
    assert comparable(found, expected) == comparable(expected, found)
    assert found.result.key == expected.result.key
    return fewer


def comparable(one, other):
    """A trace without its result; the Values that the function has made itself are told by their numbers.

    Of equal entries only the first one is there, and the places are those among these.
    """
    made = {value: ("made", value.data) for value in {*one.values} - {*other.values}}
    equal = equals_in_order(one)
    places = {first: place for place, first in enumerate(dict.fromkeys(equal))}
    now = [places[first] for first in equal]

    def entry(place):
        primitive, *rest = one.operations[place]
        if primitive in (INPUT, LITERAL):
            return primitive, *[made.get(part, part) if type(part) is Value else repr(part) for part in rest]
        first = [now[operand] for operand in rest[:1]]
        return primitive, *first, *[now[operand] for operand in one.operands(place)]

    groups = [[now[place] for place in group] for group in (*one.inputs, one.outputs, one.checked)]
    checked = dict.fromkeys(groups.pop())
    return [entry(place) for place in places], groups, list(checked), [made.get(value, value) for value in one.values]


w, v = Value(0.5), Value(-1.5)
frozen = Value(2.0, requires_grad=False)
labelled = [Value(float(number), label=f"w{number}") for number in range(TURNS)]
table = [Value(1.0), Value(2.0), Value(3.0)]
matrix = np.array([[0.5, -0.25], [0.125, 1.0]])
layer = mg.nn.Layer(2, 2, activation="tanh")
constants = {"scale": 2.0, "mode": "tanh"}


@functools.cache
def power(n):
    return 2.0**n


def scanned(step, start=None, inputs=None, **options):
    """A function that scans its argument."""

    def f(xs):
        return mg.scan(step, xs[0] * w if start is None else start, xs if inputs is None else inputs, **options)

    return f


ALIKE = {
    "weights from outside": lambda s, x: (mg.tanh(w * s + v * x), s),
    "no outputs": lambda s, x: (s * x, None),
    "a pair": lambda s, x: ((s + x), (x, [s * w, s])),
    "a state that is given back": lambda s, x: (s, s * x),
    "an input that is given back": lambda s, x: (x, s),
    "a Value from outside is given back": lambda s, x: (s * w, w),
    "a dot product": lambda s, x: (mg.dot([s, x, w], [x, s, v]), None),
    "take by a known index": lambda s, x: (mg.take([s, x, w], 1) * s, None),
    "take by a number": lambda s, x: (mg.take([s, x * w, w], x) * mg.take(table, s), None),
    "choices": lambda s, x: (mg.where(s < x, s, x * w), mg.maximum(s, x)),
    "literals": lambda s, x: (s * 2.0 + 1.0 - x / 4 + x**2 + s**3 + x**-1 + x**0.5 + s**1, -0.0 * s),
    "a constant": lambda s, x: (s * 0.0 + x, 3.0),
    "what raises where it overflows": lambda s, x: ((s * x) ** 2, mg.exp(x)),
    "without a gradient": lambda s, x: (s * mg.detach(x), None),
    "derivatives inside": lambda s, x: (mg.grad(lambda z: z**3 * w)(x) + s, mg.hessian(lambda z: z[0] ** 3 * s)([x])),
    "a product with a Jacobian inside": lambda s, x: (s + mg.jvp(lambda z: z * mg.sin(z), (x,), (w,))[1], None),
    "frozen": lambda s, x: (s * frozen + x, None),
    "an array from outside": lambda s, x: ((matrix @ [s, x])[0], None),
    "a layer": lambda s, x: (layer([s, x])[1], None),
    "constants of a dict": lambda s, x: (getattr(mg, constants["mode"])(s * constants["scale"]) + x, None),
    "a cached function": lambda s, x: (s * power(3) + x, None),
    "other kinds of constants": lambda s, x: (s * Fraction(1, 2) + np.float64(0.5) * x, None),
    "a primitive with settings": lambda s, x: (mg.leaky_relu(s, 0.25) + mg.clip(x, 0.0, 2.0), None),
    "comparisons": lambda s, x: ((s < x) * 1.0 + (s <= w) * x, None),
    "what is there already": lambda s, x: (w * v + s, w * v * x),
}


def named_step(body):
    def step(s, x):
        return body(s, x)

    return step


class TestAlike:
    @pytest.mark.parametrize("what", ALIKE)
    @pytest.mark.parametrize("kind", [Value, float])
    def test_the_body_runs_three_times(self, what, kind):
        for reverse in (False, True):
            f = scanned(named_step(ALIKE[what]), reverse=reverse)
            assert runs_with_the_same_tape(f, list(map(kind, NUMBERS))) == REPEATED

    @pytest.mark.parametrize("what", ALIKE)
    def test_a_first_state_of_plain_numbers_is_of_another_kind(self, what):
        f = scanned(named_step(ALIKE[what]), 1 if what == "take by a number" else 0.0)
        runs = runs_with_the_same_tape(f, list(map(Value, NUMBERS)))
        assert runs <= REPEATED + 1 + (what == "a state that is given back")

    @pytest.mark.parametrize("what", ALIKE)
    def test_what_the_loop_needs_may_stand_on_the_tape_before(self, what):
        body = ALIKE[what]

        def f(xs):
            before = [body(xs[0], xs[1]), body(xs[1], xs[1]), xs[0] * xs[0], w * xs[2]]
            return before, mg.scan(named_step(body), xs[0], xs)

        runs_with_the_same_tape(f, list(map(Value, NUMBERS)))

    def test_numbers_that_move_from_place_to_place(self):
        def step(state, x):
            a, b, c = state
            return (b, c, a * x), a

        assert runs_with_the_same_tape(scanned(step, (0.0, 1.0, 2.0)), list(map(Value, NUMBERS))) <= 8

    def test_ints_and_comparisons_in_a_state(self):
        def step(state, x):
            count, was_less = state
            return (count + 1, x < 3), mg.where(was_less, count, x)

        def f(start, xs):
            return mg.scan(step, (start, start < 0), xs)

        found, expected = (
            mg.compile(f)(3, NUMBERS),
            f(3, NUMBERS),
        )  # each turn checks that its int is no longer than 2**53
        assert (found, type(found[0][0])) == (expected, int)

    def test_weights_as_inputs_stay_in_their_order_and_roles(self):
        weights = [[Value(1.0), Value(2.0)] for _ in range(TURNS)]

        def step(s, x):
            return mg.tanh(x[1] * s + x[0]), x[0] + s

        assert runs_with_the_same_tape(lambda s: mg.scan(step, s, weights), Value(1.0)) == REPEATED

        def trained_only(s, x):
            return s * (x if x.requires_grad else 1.0), None

        frozen_ones = [Value(2.0, requires_grad=False) for _ in range(TURNS)]
        inputs = [value for pair in zip(frozen_ones, labelled, strict=True) for value in pair][:TURNS]
        runs_with_the_same_tape(lambda s: mg.scan(named_step(trained_only), s, inputs), Value(1.0))
        frozen_ones = [[Value(1.0, requires_grad=False), Value(2.0)] for _ in range(TURNS)]
        assert runs_with_the_same_tape(lambda s: mg.scan(step, s, frozen_ones), Value(1.0)) == REPEATED

    def test_weights_that_only_later_turns_use_stay_in_their_roles(self):
        def step(s, item):
            kind, x = item
            return mg.tanh(s * w + x) if kind == "early" else mg.tanh(s * v + x), None

        def f(xs):
            return mg.scan(step, xs[0] * w, [*zip(["early"] * 8 + ["late"] * (TURNS - 8), xs, strict=True)])

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS))) == REPEATED + 2

    def test_labelled_values_as_inputs(self):
        def step(s, x):
            return s * x, None

        assert runs_with_the_same_tape(lambda s: mg.scan(step, s, labelled), Value(1.0)) == REPEATED

    def test_arrays_and_containers(self):
        def step(state, item):
            h = np.maximum(matrix @ state["h"] + item[0], 0)
            point = Point(item[1].x * h[0], -item[1].x)
            return {"h": h, "seen": state["seen"] + h.sum()}, (h, [point, None, "text", True])

        def f(x, y):
            return mg.scan(step, {"h": x[0], "seen": 0.0}, (x, Point(y, y)))

        x = np.arange(2.0 * TURNS).reshape(TURNS, 2)
        assert runs_with_the_same_tape(f, x, list(map(Value, NUMBERS))) == REPEATED

    def test_an_array_of_values_from_outside(self):
        rows = mg.array(np.arange(2.0 * TURNS).reshape(TURNS, 2))

        def step(s, row):
            return s * row[0] + row[1], row * s

        assert runs_with_the_same_tape(lambda s: mg.scan(step, s, rows), Value(1.0)) == REPEATED

    def test_what_is_changed_in_place_is_the_turns_own(self):
        def step(state, x):
            state["h"] += x
            state["log"].append(x)
            state["log"].pop(0)
            return state, state["h"].sum()

        def f(xs):
            return mg.scan(step, {"h": np.array([xs[0], xs[1]]), "log": [0.0, 0.0]}, xs)

        runs_with_the_same_tape(f, list(map(Value, NUMBERS)))

    def test_one_value_twice_in_a_state(self):
        def step(state, x):
            a, b = state
            return (a * x, b + x) if a is b else (a, b * x), np.where(x > 2, a, b)

        runs_with_the_same_tape(lambda xs: mg.scan(step, (xs[0], xs[0]), xs), list(map(Value, NUMBERS)))

        def step_of_one(state, x):
            return (state[0] * x,) * 2, state[0] is state[1]

        def f(xs):
            return mg.scan(named_step(step_of_one), (xs[0], xs[0]), xs)

        found, runs = traced(traced_once(f), list(map(Value, NUMBERS)))
        assert set(found.result.nested[1]) == {True}
        assert runs == REPEATED

    def test_inside_no_grad_and_no_grad_inside(self):
        def step(s, x):
            with mg.no_grad():
                constant = s * x
            return s + constant * w, None

        assert runs_with_the_same_tape(scanned(step), list(map(Value, NUMBERS))) == REPEATED

        def outside(xs):
            with mg.no_grad():
                return mg.scan(step, xs[0], xs)

        assert runs_with_the_same_tape(outside, list(map(Value, NUMBERS))) == TURNS

    def test_loops_in_loops(self):
        def inner(s, x):
            return mg.tanh(s * w + x), s * v

        def step(s, x):
            last, outputs = mg.scan(inner, s, [x, v, x * s, s, w, x])
            return last, sum(mg.vmap(lambda y, z: y * z + s, (0, None))(outputs, x))

        assert runs_with_the_same_tape(scanned(step), list(map(Value, NUMBERS))) == REPEATED

    def test_an_outer_number_in_a_loop_in_a_loop(self):
        def f(xs, outer):
            weights = [outer, *xs[:5]]

            def step(s, x):
                return mg.scan(lambda t, y: (t * outer + y * x, mg.where(t < outer, t, y)), s, weights)[0], None

            return mg.scan(step, xs[0], xs)

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS)), Value(2.0)) == REPEATED

    def test_vmap_with_what_every_turn_is_handed(self):
        def step(x, scale, *, model):
            return [scale * mg.dot(x, model["w"]), model["b"] * w]

        def f(x, scale, b):
            return mg.vmap(step, (1, None))(x, scale, model=[{"w": [w, b], "b": b}] * TURNS)

        x = np.arange(2.0 * TURNS).reshape(2, TURNS)
        assert runs_with_the_same_tape(f, x, Value(2.0), Value(3.0)) == REPEATED

        def of_a_model(x, scale):
            return mg.vmap(lambda row, model: model(row)[0] * scale, (0, None))(x, layer)

        runs_with_the_same_tape(of_a_model, x.T, Value(2.0), plain=0)

    def test_strings_and_plain_numbers_each_have_a_recording(self):
        def step(s, item):
            name, factor, x = item
            return getattr(mg, name)(s * factor + x), name

        inputs = list(zip(["tanh", "sin"] * (TURNS // 2), [1, 2.0] * (TURNS // 2), NUMBERS, strict=True))
        assert runs_with_the_same_tape(scanned(step, inputs=inputs), list(map(Value, NUMBERS))) == TURNS

        def f(xs):
            items = [(name, factor, x) for (name, factor, _), x in zip(inputs, xs, strict=True)]
            return mg.scan(step, xs[0], items)

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS))) == 1 + 2 * 2

    def test_of_turns_of_many_kinds_the_first_are_repeated(self):
        def step(s, item):
            return s * len(item[0]) + item[1], item[0]

        def runs_of(kinds):
            def f(xs):
                return mg.scan(step, xs[0] * w, [*zip(kinds, xs, strict=True)])

            return runs_with_the_same_tape(f, list(map(Value, NUMBERS)))

        assert runs_of(["x", "yy"] * 10) == 1 + 2 * 2
        assert runs_of(["x", "yy", "zzz", "uuuu"] * 5) == 1 + _MOST_RECORDINGS
        assert runs_of(["x", "yy", "zzz", "uuuu", "vvvvv"] * 4) == TURNS
        assert runs_of(["x" * place for place in range(TURNS)]) == TURNS
        assert runs_of("aaabbccddaaaeaaaaaaa") == 1 + _MOST_RECORDINGS + len("eaaaaaaa")

    def test_a_derivative_of_a_loop_inside(self):
        def step(s, x):
            return mg.tanh(s * w + x), s * x

        def f(xs):
            def loss(ys):
                return mg.scan(step, ys[0], ys)[0]

            return mg.grad(loss)(xs), mg.hvp(loss)(xs, xs), mg.jvp(loss, (xs,), (xs,))

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS)), plain=3 * TURNS) == 3 * REPEATED


class Recurrent:
    """A network that remembers, as users write one."""

    def __init__(self):
        self.w, self.count, self.h, self.log = Value(0.5), 0, 0.0, []


def changing_a_variable():
    count = 0

    def step(s, x):
        nonlocal count
        count += 1
        return s * x + count, count

    return step, lambda: count


def changing_a_global():
    globals()["turn"] = 0

    def step(s, x):
        global turn
        turn += 1
        return s * x + turn, None

    return step, lambda: turn


def appending():
    seen = []

    def step(s, x):
        seen.append(1.0)
        return s * x + len(seen), None

    return step, lambda: len(seen)


def appending_by_a_method_that_was_taken_out():
    seen = []
    append = seen.append

    def step(s, x):
        append(None)
        return s * x, None

    return step, lambda: len(seen)


def changing_an_attribute():
    net = Recurrent()

    def step(s, x):
        net.count += 1
        return s * net.w + net.count, None

    return step, lambda: net.count


def changing_an_attribute_of_a_value():
    weight = Value(0.5)
    weight.turns = 0

    def step(s, x):
        weight.turns += 1
        return s * weight + weight.turns, None

    return step, lambda: weight.turns


def setting_a_new_attribute_of_a_value():
    weight = Value(0.5)

    def step(s, x):
        weight.turns = getattr(weight, "turns", 0) + 1
        return s * weight + weight.turns, None

    return step, lambda: weight.turns


def changing_a_default():
    def step(s, x, seen=[0]):  # noqa: B006  # this is what is tried
        seen[0] += 1
        return s * x + seen[0], None

    return step, lambda: step.__defaults__[0][0]


def changing_an_array():
    counts = np.zeros(3)

    def step(s, x):
        counts[1] += 1.0
        return s * x + counts[1], None

    return step, lambda: counts[1]


def changing_itself():
    class Step:
        def __init__(self):
            self.count = 0

        def __call__(self, s, x):
            return self.step(s, x)

        def step(self, s, x):
            self.count += 1
            return s * x + self.count, None

    step = Step()
    return step, lambda: step.count


def going_through(iterator):
    def make():
        given_out = iterator()

        def step(s, x):
            return s * x + next(given_out), None

        return step, lambda: next(given_out) - 1

    return make


def counting_in_a_generator():
    def counting():
        count = 0
        while True:
            count += 1
            yield count

    return counting()


REMEMBERING = {
    make.__name__: make
    for make in (
        *(changing_a_variable, changing_a_global, appending, appending_by_a_method_that_was_taken_out),
        *(changing_an_attribute, changing_an_attribute_of_a_value, setting_a_new_attribute_of_a_value),
        *(changing_a_default, changing_an_array, changing_itself),
    )
} | {
    "count": going_through(lambda: itertools.count(1)),
    "a list's iterator": going_through(lambda: iter(range(1, 1000))),
    "a generator": going_through(counting_in_a_generator),
    "the same twice": going_through(lambda: iter([1, 1, 1, 1, 5, 6, 7, *range(8, 1000)])),
}


class TestRemembering:
    """Bodies that must run in each turn, and do."""

    @pytest.mark.parametrize("what", REMEMBERING)
    def test_it_runs_in_every_turn(self, what):
        found = []
        for way in (lambda f: f, traced_once):
            step, count = REMEMBERING[what]()
            trace_, runs = traced(way(scanned(step)), list(map(Value, NUMBERS)))
            found.append((runs, count(), trace_.operations))
        assert found[0][:2] == found[1][:2]
        assert found[0][0] == TURNS
        without_values = [[[part for part in key if type(part) is not Value] for key in keys] for *_, keys in found]
        assert without_values[0] == without_values[1]

    @pytest.mark.parametrize(
        "draw",
        [
            lambda: random.randint(0, 1),
            lambda: random.choice("ab") == "a",
            lambda: np.random.randint(0, 2),
            random.Random(3).random,
            lambda generator=np.random.default_rng(3): generator.integers(2),  # noqa: B008  # made once, as a user does
            lambda rng=random.Random(3): rng.randint(0, 1),  # noqa: B008  # so is this one
        ],
    )
    def test_random_numbers_in_a_body_are_refused(self, draw):
        """Also where two recordings happen to draw the same."""

        def step(s, x):
            return s * x + float(draw()), None

        fast = mg.compile(lambda xs: mg.scan(step, w, xs)[0], backend="numpy")
        with pytest.raises(mg.TraceError, match=r"a random number is drawn \(.*test_turns\.py:\d+\)"):
            fast(NUMBERS)

    def test_what_two_recordings_do_not_have_in_common(self):
        def step(s, x):
            return s + mg.Value(0.0) * x, None  # a Value that is made in each turn

        found = traced(traced_once(scanned(step)), list(map(Value, NUMBERS)))
        assert found[1] == TURNS
        assert len(found[0].values) == len(traced(scanned(step), list(map(Value, NUMBERS)))[0].values)

        def returning(s, x):
            return s * x, mg.Value(0.0)

        outputs = traced(traced_once(scanned(returning)), list(map(Value, NUMBERS)))[0].result.nested[1]
        assert len(set(map(id, outputs))) == TURNS

    def test_objects_in_a_state_run_in_every_turn(self):
        def step(net, x):
            net.h = net.h * w + x
            return net, net.h

        def f(xs):
            return mg.scan(step, SimpleNamespace(h=v), xs)[1]

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS))) == TURNS

    def test_only_later_turns_remember(self):
        """What a recorded turn changes is changed once; it runs as it is written from then on."""
        seen = []

        def step(s, x):
            kind, number = x
            if kind == "late":
                seen.append(1)
            return s * number, len(seen)

        inputs = ["early"] * 8 + ["late"] * (TURNS - 8)

        def f(xs):
            return mg.scan(step, xs[0] * w, [*zip(inputs, xs, strict=True)])

        result, runs = traced(traced_once(f), list(map(Value, NUMBERS)))
        assert result.result.nested[1] == [0] * 8 + list(range(1, TURNS - 7))
        assert runs == REPEATED + TURNS - 8

    def test_only_later_turns_remember_what_they_do_not_use(self):
        seen = []

        def step(s, x):
            if x[0] == "late":
                seen.append(1)
            return s * x[1], None

        def f(xs):
            return mg.scan(step, xs[0] * w, [*zip(["early"] * 8 + ["late"] * (TURNS - 8), xs, strict=True)])

        assert traced(traced_once(f), list(map(Value, NUMBERS)))[1] == REPEATED + TURNS - 8
        assert len(seen) == TURNS - 8

    def test_a_number_that_is_kept_by_a_recorded_turn_is_refused(self):
        kept = []

        def step(s, x):
            if x[0] == "late":
                kept.append(s)
            return s * x[1] + sum(kept), None

        def f(xs):
            kept.clear()
            return mg.scan(step, xs[0] * w, [*zip(["early"] * 8 + ["late"] * (TURNS - 8), xs, strict=True)])

        with pytest.raises(TraceError, match=r"a number of another trace is used here \(.*test_turns.py"):
            mg.compile(f)(NUMBERS)
        kept.clear()

    def test_a_number_left_behind_is_refused_as_without_a_loop(self):
        net = Recurrent()

        def step(s, x):
            net.h = mg.tanh(net.w * s + x)
            return net.h, None

        with pytest.raises(TraceError, match=r"a number is left behind in net\.h"):
            mg.compile(lambda xs: mg.scan(step, 0.0, xs)[0])(NUMBERS)
        assert net.h == 0.0


def keyed(s, x):
    return s * {s: 2.0, x: 3.0}[x], None


def compared_by_identity(s, x):
    return s * (2.0 if s == x else 3.0), None


def looked_for_in_a_list(s, x):
    return s * (2.0 if x in (s, w, v) else 3.0), None


def named(s, x):
    return s * (len(x.label) + 1.0) * x, None


def asked_with_care(s, x):
    try:
        return s * (2.0 if x == s else 3.0), None
    except TypeError:
        return s * 4.0, None


def differentiated_with_care(s, x):
    s = s * w + x
    try:
        return s, mg.gradient(s, w, create_graph=True)
    except TypeError:
        return s, 0.0


def asked_whether_it_is_trained(s, x):
    return s * (2.0 if x.requires_grad else 3.0), None


def shown(s, x):
    return s * (2.0 if "4" in repr(x) else 3.0) + x * len(str(x)), None


def asked_whether_it_is_a_leaf(s, x):
    return s * (2.0 if x.is_leaf else 3.0), None


def differentiated_by_a_weight(s, x):
    s = s * w + x
    return s, mg.gradient(s, w, create_graph=True)


def differentiated_by_what_was_before(s, x):
    return s * x, mg.jvp(lambda z: (z * s, w * s), (x,), (1.0,))


ASKING = [
    *(keyed, compared_by_identity, looked_for_in_a_list, named, shown, asked_with_care, differentiated_with_care),
    *(asked_whether_it_is_trained, asked_whether_it_is_a_leaf, differentiated_by_a_weight),
]


class TestAsking:
    """Bodies that ask what only the Value of that turn knows."""

    @pytest.mark.parametrize("body", ASKING, ids=lambda body: body.__name__)
    @pytest.mark.parametrize(
        "values",
        [labelled, [*labelled[:3], *labelled[:3], *labelled[:14]], [*labelled[:7], frozen, *labelled[7:-1]]],
        ids=["different", "some again", "one frozen"],
    )
    def test_it_runs_as_it_is_written(self, body, values):
        step = named_step(body)
        start = 1.0 if body.__name__.startswith("differentiated") else w
        runs = runs_with_the_same_tape(scanned(step, start, values), 1.0)
        assert runs >= TURNS  # what was tried and given up counts, too

    def test_a_derivative_by_what_other_turns_were_given_too(self):
        def step(s, x):
            s = s * x + x
            return s, mg.gradient(s, x, create_graph=True)

        runs_with_the_same_tape(lambda x: mg.scan(step, 1.0, [x] * TURNS), Value(2.0))
        runs_with_the_same_tape(scanned(step), list(map(Value, NUMBERS)))

    @pytest.mark.parametrize("place", range(12))
    def test_a_derivative_by_a_number_that_has_the_place_of_a_copy(self, place):
        def f(xs):
            def step(s, x):
                s = s * xs[place] + mg.grad(lambda z: z * z)(x)
                return s, mg.gradient(s, xs[place], create_graph=True)

            return mg.scan(step, xs[0] * w, [x * w for x in xs])

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS))) > TURNS

    def test_attributes_of_values_are_those_of_each(self):
        scaled = [Value(1.0) for _ in range(TURNS)]
        for number, value in enumerate(scaled):
            value.scale = float(number % 4)

        def step(s, x):
            return s * x * getattr(x, "scale", 5.0), None

        assert runs_with_the_same_tape(lambda s: mg.scan(step, s, scaled), Value(1.0)) == TURNS

        def of_arguments(s, x):
            return s * x, None

        assert runs_with_the_same_tape(scanned(named_step(of_arguments)), scaled) == TURNS

    def test_a_value_is_itself(self):
        def step(s, x):
            return s * (2.0 if x == x else 3.0), None

        assert runs_with_the_same_tape(scanned(step), list(map(Value, NUMBERS))) == REPEATED

    def test_tuples_of_classes_with_ways_of_their_own(self):
        class Pair(tuple):
            __slots__ = ()

        class Longer(Point):
            __slots__ = ()

        def step(state, x):
            return type(state)([state[0] * x, state[1] + x]) if type(state) is Pair else type(state)(x, state[0]), None

        for start in (Pair((w, v)), Longer(w, v)):
            runs = runs_with_the_same_tape(lambda xs, start=start: mg.scan(step, start, xs)[0][0], NUMBERS)
            assert runs == TURNS

    def test_a_copy_is_made_in_every_turn(self):
        def step(s, x):
            return copy.copy(x) * s, None

        assert runs_with_the_same_tape(scanned(step), list(map(Value, NUMBERS))) > TURNS
        assert runs_with_the_same_tape(scanned(step), NUMBERS) == REPEATED  # plain numbers are what they are

    def test_an_attribute_of_a_result_is_handed_on(self):
        def step(s, x):
            new = s * x
            new.turn = getattr(s, "turn", 0) + 1
            return new, new.turn

        def f(xs):
            return mg.scan(step, xs[0] * w, xs)[1]

        found = traced(traced_once(f), list(map(Value, NUMBERS)))[0]
        assert found.result.nested == list(range(1, TURNS + 1))

        def of_an_output(s, x):
            new = s * x
            new.turn = 1
            return s, new

        with pytest.raises(TraceError, match="the attribute 'turn' of a result is set"):
            mg.compile(lambda xs: mg.scan(of_an_output, w, xs))(NUMBERS)

    def test_a_condition_from_outside_picks_in_every_turn(self):
        def f(xs, y):
            mask = y > 0

            def step(s, x):
                return np.where(mask, s * x, s + x)[0], None

            return mg.scan(step, xs[0] * w, [np.array([x], dtype=object) for x in xs])

        runs_with_the_same_tape(f, list(map(Value, NUMBERS)), np.array([1.0]))

    def test_a_product_with_a_jacobian_of_what_is_from_outside(self):
        def f(xs, y):
            def step(s, x):
                return s * x, mg.jvp(lambda z: [z * s, y], (x,), (1.0,))[1]

            return mg.scan(step, xs[0] * w, xs)

        assert runs_with_the_same_tape(f, list(map(Value, NUMBERS)), Value(3.0)) > TURNS

    @pytest.mark.parametrize(
        ("body", "advice"),
        [
            (lambda s, x: (s * float(x), None), "mg.exp"),
            (lambda s, x: (s * x.data, None), "mg.detach"),
            (lambda s, x: (s * table[x], None), "mg.take"),
        ],
    )
    def test_what_would_freeze_a_number_is_refused_with_the_line(self, body, advice):
        with pytest.raises(TraceError, match=advice) as error:
            mg.compile(lambda xs: mg.scan(body, xs[0] * w, xs)[0])(NUMBERS)
        assert f"{__file__}:{body.__code__.co_firstlineno}" in str(error.value)

    @pytest.mark.parametrize("turn", [0, 1, 2, 3, TURNS - 1])
    def test_an_error_in_a_turn_comes_out_as_it_is(self, turn):
        def step(s, x):
            return s * (1 / x[0]) * x[1], None

        divisors = [float(number != turn) for number in range(TURNS)]
        with pytest.raises(ZeroDivisionError, match="float division by zero"):
            mg.compile(lambda xs: mg.scan(step, xs[0] * w, [*zip(divisors, xs, strict=True)])[0])(NUMBERS)

    def test_an_error_after_a_change_is_not_tried_again(self):
        seen = []

        def step(s, x):
            if x[0]:
                seen.append(1)
                s == x[1]  # noqa: B015  # which Value it is, a recorded turn does not know
            return s * x[1], None

        def f(xs):
            return mg.scan(step, xs[0] * w, [*zip([False] * 8 + [True] * (TURNS - 8), xs, strict=True)])[0]

        with pytest.raises(
            TraceError, match=r"which Value is given in a turn of a loop would freeze .* Write the loop"
        ):
            mg.compile(f)(list(map(Value, NUMBERS)))
        assert seen == [1]

    @pytest.mark.parametrize("interrupted", [1, 2, 3])
    def test_an_interrupt_leaves_nothing_behind(self, interrupted):
        def step(s, x):
            return s * x, None

        def profile(frame, event, _):
            if event == "call" and frame.f_code is step.__code__ and next(runs) == interrupted:
                raise KeyboardInterrupt

        fast, runs = mg.compile(lambda xs: mg.scan(step, w, xs)[0], backend="numpy"), itertools.count(1)
        sys.setprofile(profile)
        try:
            with pytest.raises(KeyboardInterrupt):
                fast([1.0] * TURNS)
        finally:
            sys.setprofile(None)
        assert (w * v)._prev == {w, v}  # nothing records any more
        assert fast([1.0] * TURNS).data == 0.5

    def test_few_turns_run_as_they_are_written(self):
        def step(s, x):
            return s * x, None

        for count in range(1, 6):
            runs = runs_with_the_same_tape(scanned(step), NUMBERS[:count], plain=count)
            assert runs == (count if count < 5 else REPEATED)


def loss_of(body, turns):
    """A loss of the weights and the first state, with a loop and what it goes through as arguments."""

    def loss(numbers, xs):
        state, outputs = mg.scan(lambda state, x: body(numbers[:2], state, x), tuple(numbers[2:]), xs)
        return sum(outputs) + sum(state) * 2.0 + sum(mg.vmap(lambda x: x * numbers[0])(xs))

    return loss


small = st.integers(-3, 3).map(float)
exact = st.lists(small, min_size=2 + WIDTH, max_size=2 + WIDTH)


@pytest.mark.slow
class TestRandomBodies:
    @settings(max_examples=40)
    @given(bodies(OPERATIONS, 3.0), bodies(OPERATIONS, 3.0), exact, st.data())
    def test_the_tape_is_that_of_the_plain_loop(self, body, other, numbers, data):
        """Of turns that get arguments, Values from outside, constants, or what other turns got; in loops in loops."""
        xs = [-1.0, 2.0, 3.0, 0.0, 1.0, -3.0, 2.0, 2.0]
        weights = [Value(x) for x in xs]
        kinds = data.draw(st.lists(st.sampled_from(["x", "x", "x", "weight", "1.0", "state", "first"]), min_size=8))
        is_nested, reverse = data.draw(st.booleans()), data.draw(st.booleans())
        kind = data.draw(st.sampled_from([float, Value]))

        def f(numbers, xs):
            def step(state, x):
                state, output = body((numbers[0], w), state, x)
                if is_nested:
                    state, outputs = mg.scan(lambda t, y: other((output, x), t, y), state, [*xs[:3], x, output, v])
                    output = outputs[0] + outputs[5]
                return state, output

            found = {"x": xs, "weight": weights, "1.0": [1.0] * 8, "state": [numbers[1]] * 8, "first": [xs[0]] * 8}
            inputs = [found[name][place % 8] for place, name in enumerate(kinds)]
            mapped = mg.vmap(lambda x: body((x, w), (x, numbers[2]), numbers[3]))(xs)
            return mapped, mg.scan(step, (0.0, numbers[1]), inputs, reverse=reverse)

        runs_with_the_same_tape(f, list(map(kind, numbers)), list(map(kind, xs)), plain=len(kinds))

    @settings(max_examples=25)
    @given(bodies(OPERATIONS, 3.0), exact, st.lists(small, min_size=6, max_size=6))
    def test_compiled_is_eager_bit_for_bit_on_small_integers(self, backend, body, numbers, xs):
        if is_left_out(backend, (body, numbers, xs)):
            return
        loss = loss_of(body, 6)
        found = []
        for f in (loss, mg.compile(loss, backend=backend)):
            leaves = list(map(Value, numbers))
            result = f(leaves, xs)
            assume(abs(result.data) < 2.0**30)
            if result.requires_grad:
                result.backward()
            found.append([result.data, *(leaf.grad for leaf in leaves)])
        assume(max(map(abs, found[0])) < 2.0**30)
        assert found[0] == found[1]

    @settings(max_examples=25)
    @given(bodies(SMOOTH, 0.0), st.lists(st.floats(-1, 1), min_size=2 + WIDTH, max_size=2 + WIDTH))
    def test_compiled_derivatives_are_those_of_eager_to_second_order(self, body, numbers):
        xs = [0.5, -0.25, 1.0, 0.75, -1.0, 0.125]
        for derivative in (mg.grad, mg.hessian):
            f = derivative(lambda numbers: loss_of(body, 6)(numbers, xs))
            np.testing.assert_allclose(mg.compile(f, backend="numpy")(numbers), f(numbers), rtol=1e-9, atol=1e-11)


class TestUse:
    def test_training_compiled_is_training_eager(self, backend):
        histories = []
        for way in (False, backend):
            net = {"w": Value(0.5), "u": Value(-0.25)}

            def loss(words, target, net=net):
                def step(h, x):
                    return mg.tanh(net["w"] * h + net["u"] * x), None

                return (mg.scan(step, 0.0, words)[0] - target) ** 2

            data = [([0.5, -1.0, 0.25, 2.0, 1.0, -0.5, float(n)], 0.1 * n) for n in range(6)]
            optimizer = mg.optim.SGD(list(net.values()), 0.1)
            history = mg.fit(loss, data, optimizer, epochs=3, batch_size=2, seed=0, progress=False, compile=way)
            histories.append([*history.steps, *(p.data for p in net.values())])
        np.testing.assert_allclose(histories[1], histories[0], rtol=1e-12)

    def test_it_is_used_by_compile(self):
        def step(s, x):
            return mg.tanh(s * w + x), None

        runs = itertools.count()

        def profile(frame, event, _):
            if event == "call" and frame.f_code is step.__code__:
                next(runs)

        fast = mg.compile(lambda xs: mg.scan(step, 0.0, xs)[0], backend="numpy")
        sys.setprofile(profile)
        try:
            result = fast(NUMBERS)
        finally:
            sys.setprofile(None)
        assert next(runs) == REPEATED
        assert result.data == pytest.approx(fast.function(NUMBERS).data, rel=1e-14)

    def test_what_raises_eagerly_raises_compiled(self, backend):
        fast = mg.compile(lambda s, xs: mg.scan(lambda s, x: (s**2 * x, None), s, xs)[0], backend=backend)
        with pytest.raises(OverflowError, match="1e"):
            fast(Value(1e300), [1.0] * TURNS)
        assert fast(Value(1.0), [1.0] * TURNS).data == 1.0

    def test_what_it_closes_over_is_noticed(self):
        scale = {"factor": 2.0}
        fast = mg.compile(lambda xs: mg.scan(lambda s, x: (s * x * scale["factor"], None), w, xs)[0], backend="numpy")
        assert fast([1.0] * 6).data == 32.0
        scale["factor"] = 1.0
        assert fast([1.0] * 6).data == 0.5
