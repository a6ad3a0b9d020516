"""Loops in Python over many rows: traced for a few of them where all rows are alike, and the same as eagerly."""

import dataclasses
import functools
import heapq
import itertools
import logging
import operator
import random
import re
import threading
from collections import Counter, deque
from typing import NamedTuple

import numpy as np
import pytest

import micrograd as mg
from micrograd.engine.primitive import Primitive
from tests.compiler.test_known_rows import numbers

ROWS = 448
WEIGHTS = [mg.Value(0.5), mg.Value(-0.25), mg.Value(0.125)]
SCALE = mg.Value(0.75)


pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


def slopes_of(result):
    """The result's numbers, and the gradients of all Values."""
    values = [*WEIGHTS, SCALE]
    for value in values:
        value.grad = 0.0
    if isinstance(result, mg.Value):
        result.backward()
    return [*np.ravel([getattr(part, "data", part) for part in np.ravel(result).tolist()]),
            *(value.grad for value in values)]  # fmt: skip


def is_traced_in_full(caplog, function, *arguments):
    """Whether a function is traced for all rows, after a look at its results: they are what eager gives, twice."""
    fast = mg.compile(function)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        found = slopes_of(fast(*arguments))
    expected = slopes_of(function(*arguments))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(slopes_of(fast(*arguments)), expected, rtol=1e-11, atol=1e-14)
    return re.search(r"is traced for \d+ of", caplog.text) is None


def error_of(row, target):
    return (mg.dot(row, WEIGHTS) - target) ** 2


def in_a_statement(x, y):
    total = 0.0
    for row, target in zip(x, y, strict=True):
        total = total + error_of(row, target)
    return total / len(x)


def with_indices(x, y):
    total = 0.0
    for i in range(len(y)):
        total += error_of(x[i], y[i])
    return total


def with_neighbours(x, y):
    total = SCALE
    for i in range(1, len(y) - 1):
        total = total + (y[i + 1] - 2 * y[i] + y[-1 + i]) * SCALE
    return total


def with_enumerate(x, y):
    total = 0.0
    for i, row in enumerate(x):
        total = total + error_of(row, y[i])
    return total


def with_enumerate_from_one(x, y):
    total = 0.0
    for i, (row, target) in enumerate(zip(x, y), 1):  # noqa: B905
        total = total + error_of(row, target) * y[i - 1]
    return total


def with_a_state(x, y):
    state, before = [SCALE, 0.0], None
    for target in y:
        if before is not None:
            state = [0.5 * state[0] + mg.tanh(target * SCALE) - before, state[1] + state[0]]
        before = target
    return state[0] + state[1]


def with_loops_inside(x, y):
    total = 0.0
    for row in x:
        hidden = 0.0
        for weight, number in zip(WEIGHTS, row, strict=True):
            hidden = hidden + weight * number
        for k in range(2):
            hidden = mg.sin(hidden) + k
        total = total + hidden
    return total


def with_dictionaries(x, y):
    state = {"sum": 0.0, "last": (SCALE, None)}
    for target in y:
        state = {"sum": state["sum"] + target * state["last"][0], "last": (mg.cos(state["last"][0]), None)}
    return state["sum"]


def with_arrays(x, y):
    state = np.array([SCALE, SCALE * 2])
    for target in y:
        state = np.tanh(state * target)
    return state.sum()


def steps(count):
    def run(x, y):
        height, speed = SCALE, 0.0
        for _ in range(count):
            height, speed = height + 0.01 * speed, speed - 0.01 * mg.sin(height)
        return height

    return run


def with_functions(x, y):
    total, add, square = 0.0, operator.add, lambda number: number * number
    for target in y:
        total = add(total, square(target * SCALE))
    return total


def with_else(x, y):
    total = 0.0
    for target in y:
        total = total + target * SCALE
    else:
        total = total * 2
    return total


def swapping(x, y):
    first, second = [SCALE], [1.0]
    for target in y:
        first[0] = first[0] + target
        first, second = second, first
    return first[0] + second[0] * 2


def changed(state, y):
    for target in y:
        state[0] = state[0] + target * state[1]
    return state[0]


def growing(x, y):
    states = [SCALE]
    for target in y:
        states.append(mg.tanh(states[-1] * SCALE + target))
    return sum(states) / len(states) + states[3]


def growing_by_numbers(x, y):
    states = [SCALE, 0.5 * SCALE]
    for i in range(2, len(y)):
        states.append(mg.tanh(states[i - 1] + states[i - 2] * y[i]))
    return states[-1] + sum([number * target for number, target in zip(states, y, strict=True)])


def two_that_grow(x, y):
    highs, lows, scales = [], list(), []  # noqa: C408  # as it is written at times
    for k in range(2):
        scales.append(k * SCALE)  # noqa: PERF401  # which is what is tested
    for target in y:
        highs.append(target * SCALE)
        lows.append(mg.exp(-target * SCALE))
    total = 0.0
    for high, low in zip(highs, lows, strict=True):
        total = total + high * low
    return (total + np.array(highs)[1:].mean()) * mg.take(scales, 1)


def rows_that_grow(x, y):
    path = [(SCALE, 0.0)]
    for target in y:
        height, speed = path[-1]
        path.append((height + 0.1 * speed, speed - 0.1 * mg.sin(height) + target))
    return sum([height * speed for height, speed in path]) + np.array(path)[:, 1].mean()


def lists_in_a_list(x, y):
    rows = []
    for target in y:
        row = []
        for k in range(3):
            row.append(mg.sin(target * SCALE + k))  # noqa: PERF401  # which is what is tested
        rows.append(row)
    return sum([row[0] * row[2] for row in rows])


def arrays_in_a_list(x, y):
    states, state = [], np.zeros(3)
    for target in y:
        state = np.tanh(state * WEIGHTS + target)
        states.append(state)
    return (np.stack(states) ** 2).mean() + np.array(states)[:, 1].sum() + states[-1].max()


def except_the_last(x, y):
    total = 0.0
    for i in range(len(y)):
        total = total + y[i] * (SCALE if i < len(y) - 1 else 3.0)
    return total


def growing_in_an_object(x, y):
    recorder, record = Recorder(), {"scales": [], "last": SCALE}
    for target in y:
        recorder.step(target)
        record["last"] = mg.tanh(record["last"] + target)
        record["scales"].append(record["last"])
    return sum(recorder.seen) + sum(record["scales"]) + recorder.seen[3]


class Recorder:
    def __init__(self):
        self.state, self.seen = SCALE, []

    def step(self, target):
        self.state = mg.tanh(self.state * target)
        self.seen.append(self.state)


def with_times(x, y):
    height, speed, weights = SCALE, 0.0, np.array([1.0, 2.0])
    for i in range(1, len(y)):
        time, place = 0.01 * i, (i + 1) * SCALE
        speed = speed - 0.01 * (height + mg.sin(time)) + y[i - 1] * place / len(y)
        for k, weight in enumerate(WEIGHTS):
            speed = speed + (weight * k if i else 0.0) * 1e-3
        height = height + 0.01 * speed + SCALE**2 / i + (weights * i * 0.01 * SCALE).sum() + (i * i - 2.0) * 1e-5
    return height + speed


def discounted(x, y):
    discounts = []
    for i in range(len(y)):
        discounts.append(mg.exp(-SCALE * i * 0.01))  # noqa: PERF401  # which is what is tested
    return sum([d * t * (2 - i) for i, (d, t) in enumerate(zip(discounts, y, strict=True), 1)])


def windows(x, y):
    total = 0.0
    for i in range(2, len(y) - 1):
        a, b, c = y[i - 2 : i + 1]
        total = total + (a - SCALE * b + c) ** 2
    for one, other in zip(y, y[1:]):  # noqa: B905, RUF007  # as it is written at times
        total = total + one * other * SCALE
    return total


def backwards(x, y):
    total, last = SCALE, len(y) - 1
    for i in range(len(y)):
        total = mg.tanh(total * SCALE + y[last - i] * x[-i + last][0]) + 2 * i * 1e-4
    return total


def another_first_row(x, y):
    total, scale = 0.0, SCALE
    for i, target in enumerate(y):
        scale = scale * target if i == 0 else mg.tanh(scale + target)
        total = total + (scale if i else 3.0 * scale) + (scale if i <= 2 else 0.5 * scale)
    return total


def until_an_early_row(x, y):
    total = 0.0
    for i, target in enumerate(y):
        if i == 5:
            break
        total = total + target * SCALE
    return total + sum([target * SCALE for target in y])


class Named(NamedTuple):
    height: object
    speed: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    height: object
    speed: object


@dataclasses.dataclass
class Mutable:
    height: object
    speed: object


class Slotted:
    __slots__ = ("height", "nothing", "speed")

    def __init__(self, height, speed):
        self.height, self.speed = height, speed


def made_anew(kind):
    def run(x, y):
        state = kind(SCALE, 0.0)
        for target in y:
            state = kind(state.height + 0.1 * state.speed, state.speed - 0.1 * mg.sin(state.height) + 0.01 * target)
        return state.height

    return run


def changed_in_place(x, y):
    state = Mutable(SCALE, 0.0)
    move = functools.partial(setattr, state)
    for target in y:
        move("height", state.height + 0.1 * state.speed)
        state.speed = state.speed - 0.1 * mg.sin(state.height) + 0.01 * target
    return state.height


class Momentum:
    def __init__(self):
        self.mean = 0.0

    def step(self, weight, gradient):
        self.mean = 0.9 * self.mean + gradient
        return weight - 0.1 * self.mean


def optimised(x, y):
    weight, step, slope = SCALE, Momentum().step, mg.grad(lambda w, t: (w - t) ** 2)
    for target in y:
        weight = step(weight, slope(weight, target))
    return weight


ALIKE = {
    "a statement": in_a_statement,
    "indices": with_indices,
    "neighbours": with_neighbours,
    "enumerate": with_enumerate,
    "enumerate of zip": with_enumerate_from_one,
    "a state": with_a_state,
    "loops inside": with_loops_inside,
    "dictionaries": with_dictionaries,
    "steps": steps(448),
    "a few more steps": steps(455),
    "else": with_else,
    "a list that grows": growing,
    "a list that grows, by numbers": growing_by_numbers,
    "two lists that grow": two_that_grow,
    "rows that grow": rows_that_grow,
    "lists in a list that grows": lists_in_a_list,
    "arrays in a list that grows": arrays_in_a_list,
    "lists in an object and in a dict": growing_in_an_object,
    "times": with_times,
    "discounts": discounted,
    "a time that decides": lambda x, y: sum([t * (SCALE if 0.01 * i < 4.2 else 2.0) for i, t in enumerate(y)]),
    "windows": windows,
    "another first row": another_first_row,
    "an early exit": until_an_early_row,
    "an object": changed_in_place,
    "an optimiser": optimised,
    **{kind.__name__: made_anew(kind) for kind in (Named, Frozen, Mutable, Slotted)},
    "functions in variables": with_functions,
    "two lists, one after the other": swapping,
    "a changed array": lambda x, y: changed(np.array([SCALE, SCALE]), y),
    "sum of a generator": lambda x, y: sum(error_of(row, target) for row, target in zip(x, y, strict=True)),
    "sum with a start": lambda x, y: sum([error_of(row, target) for row, target in zip(x, y, strict=True)], SCALE),
    "mean of a list": lambda x, y: mg.mean([error_of(row, target) for row, target in zip(x, y, strict=True)]),
    "mean of a generator": lambda x, y: mg.mean(mg.tanh(SCALE * target) for target in y),
    "dot of lists": lambda x, y: mg.dot([mg.tanh(SCALE * t) for t in y], [t * SCALE for t in y]),
    "log-sum-exp": lambda x, y: mg.logsumexp([SCALE * t for t in y]),
    "lists one after the other": lambda x, y: mg.mean([t - m for m in [sum([SCALE * t for t in y])] for t in [y[0]]]),
    "a list of a list": lambda x, y: sum([e * SCALE for e in [error_of(row, t) for row, t in zip(x, y, strict=True)]]),
    "a list with indices": lambda x, y: sum([error_of(x[i], y[i]) for i in range(len(x))]),
    "a list inside": lambda x, y: sum(sum([w * v for w, v in zip(WEIGHTS, row, strict=True)]) for row in x),
    "elements of a list": lambda x, y: (lambda e: e[0] * e[-1] + e[3] + len(e))([SCALE * t for t in y]),
    "two loops": lambda x, y: in_a_statement(x, y) + with_indices(x, y),
    "a loop in a function": lambda x, y: mg.exp(-in_a_statement(x, y)) * SCALE,
    "parts of lists": lambda x, y: sum((b - SCALE * a) ** 2 for a, b in zip(y[:-2], y[2:], strict=True)),
}  # fmt: skip
FORMS = {
    "lists": lambda x, y: (x.tolist(), y.tolist()),
    "arrays": lambda x, y: (x, y),
    "tuples in a list": lambda x, y: (list(map(tuple, x.tolist())), y.tolist()),
}
OTHERS = itertools.cycle(list(FORMS)[1:])


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, "lists") for name in ALIKE] + [pytest.param(name, next(OTHERS), marks=pytest.mark.slow) for name in ALIKE],
)
def test_few_rows_are_traced(name, form, caplog):
    x, y = FORMS[form](numbers(ROWS, 3), numbers(ROWS))
    function = ALIKE[name]
    assert not is_traced_in_full(caplog, function, x, y)
    assert not is_traced_in_full(caplog, lambda: function(x, y))


def counting(x, y):
    total, count = 0.0, 0
    for row, target in zip(x, y, strict=True):
        total = total + error_of(row, target) * (1.0 if count < 840 else 2.0)
        count += 2
    return total


def counting_in_a_list(x, y):
    total, seen = 0.0, []
    for row, target in zip(x, y, strict=True):
        total = total + error_of(row, target) * (1.0 if len(seen) < 420 else 2.0)
        seen.append(None)
    return total


def counting_in_an_object(x, y):
    total, counter = 0.0, Counter()
    for target in y:
        total = total + target * SCALE * (1.0 if counter["rows"] < 420 else 2.0)
        counter["rows"] += 1
    return total


def counting_in_a_closure(x, y):
    count = 0

    def weight():
        nonlocal count
        count += 1
        return 1.0 if count < 420 else 2.0

    return sum([target * SCALE * weight() for target in y])


def counting_in_attributes(x, y):
    def term(target):
        term.calls += 1
        return target * SCALE * (1.0 if term.calls < 420 else 2.0)

    term.calls = 0
    total = 0.0
    for target in y:
        total = total + term(target)
    return total


def counting_by_an_iterator(x, y):
    total, counts = 0.0, itertools.count()
    for target in y:
        total = total + target * SCALE * (1.0 if next(counts) < 420 else 2.0)
    return total


def counting_by_a_list_iterator(x, y):
    total, weights = 0.0, iter([1.0] * 420 + [2.0] * len(y))
    for target in y:
        total = total + target * SCALE * next(weights)
    return total


def every_other(x, y):
    total, is_even = 0.0, True
    for target in y:
        total, is_even = (total + target * SCALE if is_even else total - target), not is_even
    return total


def until_a_row(x, y):
    total = 0.0
    for i, target in enumerate(y):
        if i == 420:
            break
        total = total + target * SCALE
    return total


def remembering_rows(x, y):
    rows = [y[0], y[1], y[2]]
    total = SCALE
    for i, target in enumerate(y):
        rows[i % 3] = target
        total = total + rows[0] * rows[1] * SCALE
    return total


def the_same_list_at_times(x, y):
    lists, total = [[SCALE] for _ in range(449)], 0.0
    for target in y:
        one = lists.pop()
        total = total + target * one[0]
    return total


def catching(x, y):
    total = 0.0
    for i, target in enumerate(y):
        try:
            total = total + [1.0][min(i, 1)] * target * SCALE
        except IndexError:  # noqa: PERF203  # which is what is tested
            total = total + target * SCALE * 3
    return total


def generating(x, y):
    def terms():
        for target in y:
            yield target * SCALE

    return sum(1.0 * term if n < 420 else 2.0 * term for n, term in enumerate(terms()))


def by_map(x, y):
    return sum(map(lambda target, weight: target * weight * SCALE, y, [1.0] * 420 + [2.0] * 28))


def known_beside_others(x, y):
    total = 0.0
    for target, weight in zip(y, (1.0,) * 420 + (2.0,) * 28, strict=True):
        total = total + target * weight * SCALE
    return total


def by_length(x, y):
    total = 0.0
    for target in y:
        total = total + target * (SCALE if len(y) < 400 else 3.0 * SCALE)
    return total


def triangular(x, y):
    return sum([sum([y[j] * SCALE for j in range(i)], SCALE) * 1e-3 for i in range(0, len(y), 9)])


def under_a_comparison(x, y):
    return sum([target * SCALE if i > 420 else target for i, target in enumerate(y)])


def total_of(terms):
    if isinstance(terms, list):
        return sum(terms)
    return sum([term * (1.0 if i < 420 else 2.0) for i, term in enumerate([*terms])])


def other_after(number, one, other):
    return one if number < 420 else other


def by_class(ask):
    return lambda x, y: sum([SCALE * t * (2.0 if ask(i, t) and i > 420 else 1.0) for i, t in enumerate(y)])


def weight_of(i):
    return 3.0 if isinstance(i, mg.Value) else (1.0 if i < 420 else 2.0)


def asking(ask):
    def run(x, y):
        seen, total = [], 0.0
        for target in y:
            seen.append(target * SCALE)
            total = total + seen[-1] * (1.0 if ask(seen) < 420 else 2.0)
        return total

    return run


ASKED_OF_LISTS = {
    "its length": len,
    "its items": lambda seen: sum(1 for _ in seen),
    "a part": lambda seen: len(seen[:500]),
    "a tuple": lambda seen: len(tuple(seen)),
    "its copy": lambda seen: len(seen.copy()),
    "an array": lambda seen: np.array(seen).size,
    "a list that it is added to": lambda seen: len([0.0] + seen),  # noqa: RUF005  # which is what is tested
    "others that are added": lambda seen: len([*seen, 0.0]),
    "its first item": lambda seen: 1 if seen[0] is seen[-1] else 0,
    "an item far from its end": lambda seen: 0 if len(seen) > 5 and seen[-6] is None else len(seen),
    "its truth": lambda seen: 1 if seen else 500,
    "its text": lambda seen: str([part is None for part in seen]).count("False"),
    "a deque": lambda seen: len(deque(seen)),
    "an item that is taken out": lambda seen: 1 if len(seen) < 9 or seen.pop(0) is None else 0,
    "a heap": lambda seen: len(heapq.nlargest(500, range(len(seen)))),
    "its size by another name": lambda seen: operator.length_hint(seen),
    "whether it is equal to another": lambda seen: 1 if seen == [] else 0,
}


class Counting:
    def __init__(self):
        self.count = 0

    def more(self):
        self.count += 1
        return self.count


class CountingInASlot:
    __slots__ = ("count",)

    def __init__(self):
        self.count = 0

    more = Counting.more


class CountingInAList(list):
    def more(self):
        self.append(0)
        return len(self)


class CountingInADeque:
    def __init__(self):
        self.seen = deque()

    def more(self):
        self.seen.append(0)
        return len(self.seen)


class CountingInAnObject:
    def __init__(self):
        self.inner = self.itself = self
        self.counter = Counting()

    def more(self):
        return self.itself.inner.counter.more()


OBJECTS = {kind.__name__: kind for kind in (Counting, CountingInASlot, CountingInAList, CountingInADeque,
                                            CountingInAnObject)}  # fmt: skip
OBJECTS["partial"] = lambda: functools.partial(Mutable, Counting())


def counting_in_attributes_of(made):
    def run(x, y):
        counter, total = made(), 0.0
        more = counter.more if hasattr(counter, "more") else counter.args[0].more
        for target in y:
            total = total + target * SCALE * (1.0 if more() < 420 else 2.0)
        return total

    return run


def comparing(y):
    total = 0.0
    for i, target in enumerate(y):
        total = total + (target if i > 3.5 else SCALE)
    return total


def growing_at_times(x, y):
    seen, total = [SCALE], 0.0
    for i, target in enumerate(y):
        if i < 420:
            seen.append(target * SCALE)
        total = total + seen[-1]
    return total


def growing_by_two(x, y):
    seen, total = [SCALE], 0.0
    for i, target in enumerate(y):
        total = total + seen[i]
        seen.append(target * SCALE)
        seen.append(target + SCALE)
    return total


def growing_and_far(x, y):
    seen = [SCALE, SCALE, 0.5 * SCALE, 0.25 * SCALE, SCALE, SCALE]
    for i, target in enumerate(y):
        seen.append(target * seen[i])
    return seen[-1] + sum(seen)


def naming(x, y):
    names, total = [], 0.0
    for target in y:
        names.append("a")
        total = total + target * SCALE
    return total * len(names)


def growing_with_others(x, y):
    seen = [(SCALE, SCALE)]
    for target in y:
        seen.append(target * SCALE)  # noqa: PERF401  # which is what is tested
    return sum(seen[1:]) + seen[0][1]


def growing_until_the_last(x, y):
    seen = [SCALE]
    for i, target in enumerate(y):
        seen.append(target * seen[-1 if i > len(y) - 3 else i])
    return sum(seen)


def a_late_row(x, y):
    total = 0.0
    for i, target in enumerate(y):
        before = i - 1
        total = total + target * (SCALE if before != 420 else 2.0)
    return total


UNLIKE = {
    "whether an index is an int": by_class(lambda i, t: type(i) is int),
    "whether a number is a float": by_class(lambda i, t: isinstance(t, float)),
    "what has an attribute": by_class(lambda i, t: hasattr(t, "is_integer")),
    "a table of classes": lambda x, y: sum([{int: other_after}[type(i)](i, 1.0, SCALE) * t for i, t in enumerate(y)]),
    "a function of a generator": lambda x, y: total_of(SCALE * t for t in y),
    "the class of an index": lambda x, y: sum([weight_of(i) * SCALE * t for i, t in enumerate(y)]),
    "all of a generator": lambda x, y: sum([*(SCALE * t for t in y)][:420]),
    "sum of another name": lambda x, y: (lambda sum: sum([SCALE * t for t in y]))(total_of),  # noqa: A006
    "a dot with known numbers": lambda x, y: mg.dot([t * SCALE for t in y], [1.0] * 420 + [2.0] * 28),
    "a count": counting,
    "a list that counts": counting_in_a_list,
    **{f"a list that grows, and {name}": asking(ask) for name, ask in ASKED_OF_LISTS.items()},
    **{f"an object, {name}": counting_in_attributes_of(made) for name, made in OBJECTS.items()},
    "a list that grows at times": growing_at_times,
    "a list of different items": growing_with_others,
    "a list that grows by two": growing_by_two,
    "a list that grows, and items long before": growing_and_far,
    "a list of texts": naming,
    "a comparison of an index with a float": lambda x, y: sum([SCALE * t for i, t in enumerate(y) if i < 420.5]),
    "a float beside an index": lambda x, y: comparing(y),
    "a late row": a_late_row,
    "a whole time": lambda x, y: sum([y[int(i * 0.5)] * SCALE for i in range(len(y))]),
    "a power of two numbers": lambda x, y: sum([t * SCALE * (i % 7) ** 2 for i, t in enumerate(y)]),
    "parts that grow": lambda x, y: sum([sum(y[:i]) * SCALE * 1e-3 for i in range(len(y))]),
    "parts beyond the end": lambda x, y: sum([sum(y[i : i + 3]) * SCALE for i in range(len(y))]),
    "one of the last rows, and a list that grows": growing_until_the_last,
    "an object that counts": counting_in_an_object,
    "a closure that counts": counting_in_a_closure,
    "an attribute that counts": counting_in_attributes,
    "an iterator": counting_by_an_iterator,
    "an iterator of a list": counting_by_a_list_iterator,
    "every other row": every_other,
    "a late exit": until_a_row,
    "rows in a list": remembering_rows,
    "a list that shrinks": the_same_list_at_times,
    "an error that is caught": catching,
    "a generator": generating,
    "map": by_map,
    "a tuple of known numbers": known_beside_others,
    "the length": by_length,
    "a triangle": triangular,
    "a comparison of an index": under_a_comparison,
    "a product with an index": lambda x, y: sum([y[i] * abs(i - 420) * SCALE for i in range(len(y))]),
    "an index of a part": lambda x, y: sum([y[i // 2] * SCALE for i in range(len(y))]),
    "an index of known numbers": lambda x, y: sum([y[i] * ((1.0,) * 420 + (2.0,) * 28)[i] * SCALE for i in range(448)]),
    "an index from the end": lambda x, y: sum([(y[i] - y[i - 1]) ** 2 * SCALE for i in range(len(y))]),
    "a key": lambda x, y: sum([t * {420: 2.0}.get(i, 1.0) * SCALE for i, t in enumerate(y)]),
    "a text": lambda x, y: sum([t * len(str(i)) * SCALE for i, t in enumerate(y)]),
    "some rows": lambda x, y: sum(t * SCALE for i, t in enumerate(y) if i < 420),
    "a sum of a part": lambda x, y: sum([t * SCALE for t in y[:420]]),
    "a list of lists": lambda x, y: sum(a for row in [[t * SCALE, t] for t in y] for a in row),
    "a list of known numbers": lambda x, y: sum([1.0 for _ in y]) * SCALE,
    "a list that is joined": lambda x, y: mg.mean([t * SCALE for t in y] + [SCALE]),
    "what is sorted": lambda x, y: mg.mean(sorted([t * SCALE for t in y], key=id)) + 0.0,
    "softmax": lambda x, y: mg.softmax([t * SCALE for t in y])[0],
    "a sum of rows": lambda x, y: sum(np.array(row) * SCALE for row in x).sum(),
    "a primitive of the user": lambda x, y: sum([own(t) * SCALE for t in y]),
    "two lengths": lambda x, y: sum([a * b * SCALE for a, b in zip(y, x[1:], strict=False) for b in b[:1]]),
    "a large program": lambda x, y: sum([sum(t * k for k in range(2100)) * SCALE for t in y[:2]]) + sum(y),
}  # fmt: skip
own = Primitive("own", "own", lambda x: 2.0 * x, lambda gradient, out, x: 2.0 * gradient)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNLIKE)
def test_all_rows_are_traced(name, caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    function = UNLIKE[name]
    assert is_traced_in_full(caplog, function, x, y)
    is_traced_in_full(caplog, lambda: function(x, y))


@pytest.mark.parametrize("function", [in_a_statement, with_indices, with_enumerate])
@pytest.mark.unmeasured
def test_arrays(function, caplog):
    x, y = numbers(ROWS, 3), numbers(ROWS)
    assert not is_traced_in_full(caplog, function, x, y)
    assert not is_traced_in_full(caplog, lambda: function(x, y))


def test_a_function_with_the_name_of_a_builtin(caplog):
    def zip(rows, targets):  # noqa: A001
        return [(target, row) for row, target in enumerate(targets)]

    y = numbers(ROWS).tolist()
    assert is_traced_in_full(caplog, lambda y: sum([a * b * SCALE for a, b in zip(y, y)]), y)


def test_the_same_trace_serves_other_rows():
    fast = mg.compile(in_a_statement)
    for rows in (ROWS, ROWS + 16, 800):
        x, y = numbers(rows, 3), numbers(rows)
        assert slopes_of(fast(x, y)) == pytest.approx(slopes_of(in_a_statement(x, y)), rel=1e-11)
    assert fast.cache_info().traces == 1


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_backends(backend):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    fast = mg.compile(in_a_statement, backend=backend)
    assert slopes_of(fast(x, y)) == pytest.approx(slopes_of(in_a_statement(x, y)), rel=1e-11)


@pytest.mark.parametrize("transform", [mg.value_and_grad, mg.hessian, mg.grad])
@pytest.mark.unmeasured
def test_transforms(transform, caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()

    def loss(w):
        return sum((mg.dot(row, w) - t) ** 2 * mg.sin(w[0]) for row, t in zip(x, y, strict=True))

    fast = mg.compile(transform(loss))
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        found = fast([0.5, -0.25, 0.125])
    assert "is traced for 40 of 448 rows" in caplog.text
    expected = transform(loss)([0.5, -0.25, 0.125])
    parts = zip(found, expected, strict=True)
    for one, other in parts:
        np.testing.assert_allclose(one, other, rtol=1e-11)


CHANGES = {
    "a number": lambda x, y: x[420].__setitem__(1, 7.0),
    "the sign of zero": lambda x, y: y.__setitem__(430, -0.0),
    "a row": lambda x, y: x.__setitem__(0, [1.0, 2.0, 3.0]),
    "two rows that are one": lambda x, y: x.__setitem__(slice(3, 5), [x[3], x[3]]),
    "all rows": lambda x, y: x.__setitem__(slice(None), x[::-1]),
    "more rows": lambda x, y: (x.extend(x[:16]), y.extend(y[:16])),
    "fewer rows": lambda x, y: (x.__delitem__(slice(30, None)), y.__delitem__(slice(30, None))),
    "an int": lambda x, y: y.__setitem__(430, 3),
    "a Value": lambda x, y: y.__setitem__(430, SCALE),
    "a tuple": lambda x, y: x.__setitem__(430, (1.0, 2.0, 3.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("function", [in_a_statement, with_indices])
@pytest.mark.unmeasured
def test_what_is_changed_between_calls(change, function):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    closing, given = mg.compile(lambda: function(x, y)), mg.compile(function)
    for is_changed in (False, True):
        if is_changed:
            CHANGES[change](x, y)
        expected = pytest.approx(slopes_of(function(x, y)), rel=1e-11)
        assert slopes_of(closing()) == expected
        assert slopes_of(given(x, y)) == expected


def changing_rows(x):
    total = 0.0
    for row in x:
        row[0] = row[0] * 0.5
        total = total + row[0] * SCALE
    return total


def changing_a_row(x):
    x[0][1] = x[0][1] + 1.0
    return sum([row[1] * SCALE for row in x])


def growing_rows(x):
    return sum([row[0] * SCALE for row in x if row.append(1.0) is None]) if len(x[0]) > 9 else with_longer_rows(x)


def with_longer_rows(x):
    total = 0.0
    for row in x:
        row.append(row[0])
        total = total + row[-1] * SCALE
    return total


@pytest.mark.parametrize("function", [changing_rows, changing_a_row, growing_rows])
def test_a_function_that_changes_rows(function):
    mine, other = numbers(ROWS, 3).tolist(), numbers(ROWS, 3).tolist()
    fast = mg.compile(lambda: function(mine))
    for _ in range(3):
        assert slopes_of(fast()) == pytest.approx(slopes_of(function(other)), rel=1e-11)
        assert mine == other
    with pytest.raises(mg.TraceError, match="changed in place"):
        mg.compile(function)(mine)


def test_numbers_drawn_inside(caplog):
    def dropped(y):
        generator = random.Random(3)
        return sum([t * SCALE * (generator.random() > 0.5) for t in y])

    assert is_traced_in_full(caplog, dropped, numbers(ROWS).tolist())


def test_rows_that_are_one_list():
    row = [0.25, 0.5, 0.75]
    x, y = [row] * ROWS, numbers(ROWS).tolist()
    fast, given = mg.compile(lambda: in_a_statement(x, y)), mg.compile(in_a_statement)
    for _ in range(2):
        expected = pytest.approx(slopes_of(in_a_statement(x, y)), rel=1e-11)
        assert slopes_of(fast()) == expected
        assert slopes_of(given(x, y)) == expected
        row[1] = 3.0


def test_the_same_numbers_in_the_first_rows():
    x, y = [[1.0, 1.0, 1.0]] * 300 + numbers(148, 3).tolist(), [2.0] * 300 + numbers(148).tolist()
    expected = pytest.approx(slopes_of(in_a_statement(x, y)), rel=1e-11)
    assert slopes_of(mg.compile(lambda: in_a_statement(x, y))()) == expected
    assert slopes_of(mg.compile(lambda y: in_a_statement(x, y))(y)) == expected


LOGARITHM = {"list": lambda y: sum([mg.log(t) for t in y]), "generator": lambda y: sum(mg.log(t) * SCALE for t in y)}


@pytest.mark.parametrize("name", LOGARITHM)
def test_errors_in_a_row(name):
    function, y = LOGARITHM[name], numbers(ROWS).tolist()
    y[430] = -1.0
    with pytest.raises(ValueError, match="log") as expected:
        function([mg.Value(t) for t in y])
    with pytest.raises(ValueError, match="log") as found:
        mg.compile(function)(y)
    assert str(found.value)[:20] == str(expected.value)[:20]


def test_errors_of_the_loop():
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    for function in (in_a_statement, lambda x, y: in_a_statement(x, y)):
        with pytest.raises(ValueError, match="shorter"):
            mg.compile(function)(x, y[1:])
    with pytest.raises(IndexError, match="out of range"):
        mg.compile(lambda y: sum([y[i + 1] * SCALE for i in range(len(y))]))(y)
    with pytest.raises(TypeError, match="keyword argument"):
        mg.compile(lambda y: sum(t * SCALE for i, t in enumerate(y, begin=2)))(y)
    with pytest.raises(ValueError, match="unpack"):
        mg.compile(lambda x: sum([a * b * SCALE for a, b in x]))(x)


def test_what_the_function_counts():
    calls = {"rows": 0}

    def term(target):
        calls["rows"] += 1
        return target * SCALE

    y = numbers(ROWS).tolist()
    expected = slopes_of(sum([term(t) for t in y]))
    calls["rows"] = 0
    assert slopes_of(mg.compile(lambda y: sum([term(t) for t in y]))(y)) == pytest.approx(expected, rel=1e-11)
    assert calls["rows"] == ROWS


def test_functions_have_their_own_code_again():
    codes = [each.__code__ for each in (in_a_statement, error_of)]
    seen = []

    def watching(x, y):
        seen.append(in_a_statement.__code__)
        return in_a_statement(x, y)

    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    with pytest.raises(mg.TraceError, match="seen"):  # it keeps what is no number
        mg.compile(lambda: seen.append(watching(x, y)))()
    mg.compile(in_a_statement)(x, y)
    assert [each.__code__ for each in (in_a_statement, error_of)] == codes


def test_in_another_thread_meanwhile():
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    expected, found, ends = in_a_statement(x, y).data, set(), threading.Event()

    def run():
        while not ends.is_set():
            found.add(in_a_statement(x, y).data)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(3):
            mg.compile(lambda: in_a_statement(x, y))()
    finally:
        ends.set()
        thread.join()
    assert found <= {expected}


def test_without_a_source(caplog):
    variables = {"SCALE": SCALE, "mg": mg}
    exec("def function(y):\n    return sum([mg.tanh(t) * SCALE for t in y])", variables)
    assert is_traced_in_full(caplog, variables["function"], numbers(ROWS).tolist())


class Model:
    """A model with a method that goes through rows."""

    def __init__(self):
        self.weights, self.seen = WEIGHTS, 0

    def loss(self, x, y):
        total = 0.0
        for row, target in zip(x, y, strict=True):
            total = total + (self.output(row) - target) ** 2
        return total

    def output(self, row):
        return mg.tanh(mg.dot(row, self.weights))


class CountingModel(Model):
    """A model whose outputs depend on how many there were."""

    def output(self, row):
        self.seen += 1
        return super().output(row) * (1.0 if self.seen < 420 else 2.0)


@pytest.mark.parametrize("is_same", [lambda one, other: one is other, lambda one, other: not one is not other,
                                     lambda one, other: id(one) == id(other)])  # fmt: skip
def test_rows_that_are_told_apart(is_same, caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    x[420] = x[3]
    assert is_traced_in_full(
        caplog, lambda: sum([t * (SCALE if is_same(r, x[3]) else 1.0) for r, t in zip(x, y, strict=True)])
    )


def test_known_numbers_that_are_floats(caplog):
    y = numbers(ROWS).tolist()
    for ask in (lambda t: type(t) is float, lambda t: not isinstance(t, mg.Value), lambda t: repr(t)[0] == "0",
                lambda t: not hasattr(t, "_position")):  # fmt: skip
        assert is_traced_in_full(caplog, lambda ask=ask: sum([t * SCALE if ask(t) else SCALE for t in y]))


def test_classes_and_what_an_object_is(caplog):
    def loss(x, y):
        total, start = 0.0, None if isinstance(x, list) and x is not y else 1.0
        for row, target in zip(x, y, strict=True):
            row = [2.0 * v for v in row] if isinstance(row, tuple) or type(row) is tuple else row
            start = SCALE if start is None else start * 0.5
            total = total + error_of(row, target) * start
        return total

    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    assert not is_traced_in_full(caplog, lambda: loss(x, y))


class Counted:
    """A class that counts what its instances are asked."""

    asked = 0


def test_a_class_that_counts(caplog):
    def weighted(y):
        total = 0.0
        for target in y:
            Counted.asked += 1
            total = total + target * (SCALE if Counted.asked <= 420 else 2.0)
        return total

    y, results = numbers(ROWS).tolist(), []
    for function in (weighted, mg.compile(weighted)):
        Counted.asked = 0
        results.append((slopes_of(function(y)), Counted.asked))
    assert results[1][0] == pytest.approx(results[0][0], rel=1e-11)
    assert results[1][1] == results[0][1] == ROWS


def test_methods(caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    assert not is_traced_in_full(caplog, Model().loss, x, y)
    expected = CountingModel().loss(x, y)
    assert mg.compile(CountingModel().loss)(x, y).data == pytest.approx(expected.data, rel=1e-11)


def test_operators_of_the_number_of_an_iteration(caplog):
    def summed(y):
        total = 0.0
        for i, target in enumerate(y):
            total = total + (i / 448 + (1.5 + i) + (0.5 - i) + (2 + i) + (i + 0.5) + (i - 0.5)) * 1e-5 * target
            total = total + (i**2 * 1e-6 + 1.001**i + 1.0 / (i + 1)) * SCALE
        return total

    is_traced_in_full(caplog, summed, numbers(ROWS).tolist())


@pytest.mark.parametrize("function", [except_the_last, backwards])
def test_loops_that_know_how_many_rows_there_are(function, caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()
    assert not is_traced_in_full(caplog, function, x, y)
    assert is_traced_in_full(caplog, lambda: function(x, y))  # the length of y is what it is


def test_a_range_among_the_arguments(caplog):
    def stepped(weight, steps):
        total = 0.0
        for _ in steps:
            weight = mg.tanh(weight * SCALE + 0.1)
            total = total + weight
        return total

    assert not is_traced_in_full(caplog, stepped, 0.5, range(3, ROWS))
    assert is_traced_in_full(caplog, stepped, 0.5, range(0, 3 * ROWS, 3))


def test_objects_that_are_made_inside(caplog):
    x, y = numbers(ROWS, 3).tolist(), numbers(ROWS).tolist()

    def loss(x, y):
        model, total = CountingModel(), 0.0
        for row, target in zip(x, y, strict=True):
            total = total + (model.output(row) - target) ** 2
        return total

    assert is_traced_in_full(caplog, loss, x, y)


def test_tables_of_few_numbers(caplog):
    def pooled(weights, groups, y):
        total = 0.0
        for group, target in zip(groups, y, strict=True):
            first, second = [(weights[0], 1.0), (weights[1], 2.0), (weights[2], 3.0)][group]
            total = total + (weights[group] - target) ** 2 + first * second * SCALE
        return total

    y = numbers(ROWS).tolist()
    groups = [k % 3 for k in range(ROWS)]
    assert not is_traced_in_full(caplog, pooled, [0.1, 0.2, 0.3], groups, y)


def test_arrays_that_are_as_long_as_the_rows(caplog):
    def paths(weight, x):
        state = weight * np.ones(x.shape[0])
        for column in x.T:
            state = state * np.exp(0.1 * column)
        return state.mean() + (np.arange(len(x)) * weight * 1e-3).sum()

    assert not is_traced_in_full(caplog, paths, 0.5, numbers(ROWS, 3))
