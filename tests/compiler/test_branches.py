"""What loops over many rows ask of their numbers is selected: one program for all answers, and the same as eagerly."""

import logging
import math
import types

import numpy as np
import pytest

import micrograd as mg
from tests.compiler.test_known_rows import numbers

ROWS = 420
SCALE = mg.Value(0.75)

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


def huber(p, xs):
    total = 0.0
    for x in xs:
        rest = p[0] * x - 1
        total += 0.5 * rest * rest if abs(rest) < 1 else abs(rest) - 0.5
    return total


def of_three(p, xs):
    total = 0.0
    for x in xs:
        if x > 1:
            total = total + p[0] * x
        elif x > 0:
            part = p[1] * x
            total = total + part * x
        else:
            total = total - p[0]
    return total


def skipping(p, xs):
    total = 0.0
    for x in xs:
        if x < 0:
            continue
        scaled = p[0] * x
        if scaled > p[1]:
            total += scaled
            continue
        total = total + p[1] * x
    return total


def clipped(p, xs):
    state = p[0]
    for x in xs:
        state = p[1] * state + x
        if state > 2:
            state = 2.0
        if state < -2:
            state = -2.0
    return state * p[0] + sum([min(max(p[0] * x, -1.0), 1.0) for x in xs])


def in_functions(p, xs):
    def each(x):
        if x > 0:
            return p[0] * x
        return p[1] * x * x

    return sum(each(x) for x in xs) + sum(max(0.0, 1 - p[0] * x) for x in xs)


def counted(p, xs):
    count, total, before = 0, 0.0, None
    for x in xs:
        if x > 0:
            count += 1
            total += p[0] * x
        if before is not None and x > before:
            total = total + p[1] * (x - before)
        before = x
    return total / count


def swapped(p, xs):
    total, largest = 0.0, -1e9
    for a, b in zip(xs, xs[1:]):  # noqa: B905, RUF007  # as it is written at times
        low, high = (a, b) if a < b else (b, a)
        total = total + p[0] * high - p[1] * low
        if total > largest:
            largest = total
    return largest


def first_row(p, xs):
    total = 0.0
    for i, x in enumerate(xs):
        if i == 0:
            state = x * p[0]
        elif x > state:
            state = x * p[1]
        else:
            state = 0.9 * state
        total = total + state
    return total


SELECTED = [huber, of_three, skipping, clipped, in_functions, counted, swapped, first_row]


def samples(count=4):
    for seed in range(count):
        xs = (4 * numbers(ROWS, seed=seed) - 2).tolist()
        if seed == 2:
            xs[7], xs[9], xs[11] = 0.0, -0.0, 1.0
        yield xs


def check(fast, function, p, xs):
    value, slopes = fast(p, xs)
    expected, gradient = mg.value_and_grad(function)(p, xs)
    assert value == pytest.approx(expected, rel=1e-11)
    np.testing.assert_allclose(slopes, gradient, rtol=1e-10)


@pytest.mark.parametrize("function", SELECTED)
def test_other_answers_take_the_same_program(function):
    fast = mg.compile(mg.value_and_grad(function))
    for xs in samples():
        check(fast, function, [0.4, 0.9], xs)
    assert fast.cache_info().traces == 1


@pytest.mark.parametrize("function", SELECTED)
@pytest.mark.unmeasured
def test_known_rows_and_other_weights(function):
    for xs in samples(1):
        fast = mg.compile(mg.value_and_grad(lambda p, xs=xs: function(p, xs)))
        for p in ([0.4, 0.9], [1.5, -0.25], [1.0, 1.0]):
            value, slopes = fast(p)
            expected, gradient = mg.value_and_grad(lambda p, xs=xs: function(p, xs))(p)
            assert value == pytest.approx(expected, rel=1e-11)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-10)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.unmeasured
def test_backends(backend):
    fast = mg.compile(mg.value_and_grad(of_three), backend=backend)
    for xs in samples(3):
        check(fast, of_three, [0.4, 0.9], xs)
    assert fast.cache_info().traces == 1


def raising(p, xs):
    total = 0.0
    for x in xs:
        total = total + (mg.log(x) * p[0] if x > 0 else p[1])
    return total


def in_a_list(p, xs):
    sums = [0.0, 0.0]
    for x in xs:
        if x > 0:
            sums[0] = sums[0] + p[0] * x
        else:
            sums[1] = sums[1] + p[1]
    return sums[0] * sums[1]


def remembering(p, xs):
    seen, total = [], 0.0
    for x in xs:
        if x > 1.9:
            seen.append(x * p[0])
        total = total + x * p[1]
    return total + sum(seen)


def changing(p, xs):
    total = 0.0
    for x in xs:
        parts = [x]
        if x > 0:
            parts += [p[0]]
        total = total + sum(parts) * p[1]
    return total


def counting(p, xs):
    calls = []

    def each(x):
        calls.append(x)
        return p[0] * x if x > 0 else p[1]

    return sum([each(x) for x in xs]) * len(calls)


def with_a_state(p, xs):
    is_long, total = False, 0.0
    for x in xs:
        if not is_long and x > 1:
            is_long = True
        elif is_long and x < -1:
            is_long = False
        total = total + (p[0] * x if is_long else p[1])
    return total


def with_an_end(p, xs):
    total = 0.0
    for x in xs:
        if x > 1.5:
            break
        total = total + p[0] * x
    return total * p[1]


class Counter:
    calls = 0


def counting_elsewhere(p, xs):
    def each(x):
        Counter.calls += 1
        return p[0] * x if x > 0 else p[1]

    return sum([each(x) for x in xs]) + 0.0 * Counter.calls


@pytest.mark.parametrize(
    "function", [raising, in_a_list, remembering, changing, counting, with_a_state, with_an_end, counting_elsewhere]
)
@pytest.mark.unmeasured
def test_what_cannot_be_selected_has_the_numbers_of_eager(function):
    fast = mg.compile(mg.value_and_grad(function))
    for xs in samples(3):
        check(fast, function, [0.4, 0.9], xs)


def test_a_variable_that_has_no_value():
    def largest(p, xs):
        for x in xs:
            if x > 1e6:
                best = x * p[0]
        return best

    with pytest.raises(UnboundLocalError):
        mg.compile(largest)([0.5, 1.0], numbers(ROWS).tolist())


def test_where_rounding_might_decide_the_call_runs_eagerly(caplog):
    def steps(p, xs):
        total = 0.0
        for x in xs:
            total = total + (1.0 if p[0] * x + 0.1 > 0.3 else x)
        return total

    fast = mg.compile(steps)
    xs = numbers(ROWS).tolist()
    fast([1.0], xs)
    xs[100] = 0.2  # 0.2 + 0.1 is larger than 0.3, by the last bit
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        assert fast([1.0], xs) == pytest.approx(steps([1.0], xs), rel=1e-12)


def test_not_a_number():
    fast = mg.compile(mg.value_and_grad(huber))
    xs = numbers(ROWS).tolist()
    fast([0.4], xs)
    xs[300] = math.nan
    value, _ = fast([0.4], xs)
    assert math.isnan(value)
    assert math.isnan(huber([0.4], xs))


def test_values_that_are_closed_over():
    def loss(xs):
        total = SCALE
        for x in xs:
            total = total + (SCALE * x if x > 0.5 else SCALE)
        return total

    fast = mg.compile(loss)
    for xs in samples(3):
        SCALE.grad = 0.0
        fast(xs).backward()
        found, SCALE.grad = SCALE.grad, 0.0
        loss(xs).backward()
        assert found == pytest.approx(SCALE.grad, rel=1e-12)
    assert fast.cache_info().traces == 1


TABLE = [1.0, 2.0, 5.0]
LIMIT = 5.0


def of_a_global(p, xs):
    global LIMIT  # which is what is tested
    for k, x in enumerate(xs):
        if k > 10**6:
            LIMIT = 7.0
        p = p + x * LIMIT
    return p


def of_containers(p, xs):
    first, second = [p], [0.0]
    for x in xs:
        chosen = first if x > 0 else second
        chosen[0] = chosen[0] + x * p
    return first[0] - second[0]


def of_a_list_that_is_kept(p, xs):
    kept = [p, 0.0]
    other = kept
    for x in xs:
        kept = [x, 0.0] if x > 5 else kept
    kept[1] = 7.0
    return other[0] + other[1]


def read_by_a_closure(p, xs):
    scale, total = 0.0, p
    scaled = lambda: scale * p  # noqa: E731  # which is what is tested
    for x in xs:
        if x > 0:
            scale = x
            total = total + scaled()
    return total


def changed_by_a_closure(p, xs):
    scale, total = p, 0.0

    def halve():
        nonlocal scale
        scale = scale * 0.5
        return scale

    for x in xs:
        if x > 1.9:
            scale = 1.0
            total = total + halve()
        total = total + scale * x
    return total


def in_a_class(p, xs):
    total, x = 100.0, 2.0

    class Scope:
        total = p * 1.0
        for x in xs:
            if x > 0:
                total = total + x

    return p * Scope.total + total + x


def without_a_value_before(p, xs):
    total = p
    for k, x in enumerate(xs):
        if k == 0:
            start = x * p
        total = total + start * x
    return total


def counting_class():
    count = 0

    class Counting:
        def step(self):
            nonlocal count
            count += 1
            return count

    return Counting()


def of_a_class_that_counts(p, xs):
    counter, total = counting_class(), p
    for x in xs:
        total = total + (x * p if counter.step() % 100 != 99 else 1000.0)
    return total


def count(what):
    what.n += 1
    return what.n


def of_what_counts(made):
    def run(p, xs):
        counter, total = made(), p
        counter.n = 0
        for x in xs:
            total = total + (x * p if count(counter) % 100 != 99 else 1000.0)
        return total

    return run


def of_a_value_that_counts(p, xs):
    counter, total = SCALE * 1.0, p
    counter.n = 0

    def hit(x):
        count(counter)
        return x * p

    for x in xs:
        total = total + (hit(x) if x > 0 else 0.0)
    return total + counter.n


class Base:
    __slots__ = ("n",)


class Derived(Base):
    __slots__ = ("n",)


def with_a_walrus(p, xs):
    total = p
    for x in xs:
        if x > 0:
            total = total + (y := x) * p * y
    return total


SEEN = [
    *(of_a_global, of_containers, of_a_list_that_is_kept, read_by_a_closure, changed_by_a_closure, in_a_class),
    *(without_a_value_before, of_a_class_that_counts, of_a_value_that_counts, with_a_walrus),
    of_what_counts(lambda: lambda: None),
    of_what_counts(lambda: type("Made", (), {})),
    of_what_counts(lambda: types.ModuleType("made")),
    of_what_counts(Derived),
]


@pytest.mark.parametrize("function", SEEN)
def test_what_others_can_see(function):
    fast = mg.compile(function)
    for xs in samples(2):
        assert numbers_of(fast(0.5, xs)) == pytest.approx(numbers_of(function(0.5, xs)), rel=1e-11)
    assert LIMIT == 5.0


def numbers_of(result):
    return getattr(result, "data", result)


def test_few_iterations_beside_a_table():
    def summed(p, j):
        total = p * TABLE[j]
        scaled = lambda: scale * p  # noqa: E731  # which is what is tested
        for k in range(4):
            if k == 0:
                scale = TABLE[j]
            if k > 1:
                scale = k * 1.0
                total = total + scaled()
            total = total + scale + len([name for name in locals() if name[0] != "_"])
        return total

    fast = mg.compile(summed)
    assert [fast(0.5, j) for j in range(3)] == [summed(0.5, j) for j in range(3)]


def never_called():  # a function without parameters, whose first variable a branch assigns to
    for k in range(3):
        if k == 0:
            first = 5.0
    return first
