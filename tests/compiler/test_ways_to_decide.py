"""All ways in which Python decides on numbers, at ties, at both zeros and at NaN: compiled equals eager."""

import bisect
import itertools
import math
import warnings

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

W = Value(1.5)
POINTS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 2.5, math.nan, -math.inf]


def branch(x, y):
    if x > y:
        return x * W
    if x >= y:
        return y * W + x
    return y - x


def loop(x, y):
    count = 0
    while x < y and count < 5:
        x, count = x * 1.5 + 0.25, count + 1
    return x * W + count


def loops(x, y):
    while x > 1:
        x = x / 2
        while y > x and y > -9:
            y = y / 2 - 0.25
    return x * y * W


def assertion(x, y):
    assert x <= y, "they are in no order"
    return x * W + y


def left_early(x, y):
    total = W * 0.0
    for factor in range(4):
        if factor * x > y:
            continue
        if total > 5:
            break
        total = total + x * factor
    else:
        total = total + 1
    return total


def in_a_function(x, y):
    def leaky(z):
        return z * W if z > 0 else -z

    return leaky(x) + leaky(y) if leaky(x) > leaky(y) else leaky(x * y)


def list_sort(x, y):
    numbers = [x, y, W * x]
    numbers.sort()
    return numbers[0] * 2 + numbers[2]


def match_with_guards(x, y):
    match [x, y]:
        case [a, b] if a > b:
            return a * W
        case [a, b] if a < b:
            return b * W
    return x * 0.5 + W


def match_with_bools(x, y):
    match (x > 0, y > 0):
        case (True, True):
            return x * y
        case (True, False):
            return x - y * W
    return W


def is_true(x, y):
    is_less = x < y
    if is_less is False and (x > y) is True:
        return x * W
    return y


def number_of_turns(x, y):
    total = x
    for step in range(int(y)):
        total = total * W + step
    return total


def position_of_the_first(x, y):
    for position, number in enumerate([x, y, W]):
        if number >= 1:
            return number * position
    return x


WAYS = {
    **{f.__name__: f for f in (branch, loop, loops, assertion, left_early, in_a_function, list_sort, is_true)},
    **{f.__name__: f for f in (match_with_guards, match_with_bools, number_of_turns, position_of_the_first)},
    "and": lambda x, y: x and y * W,
    "or": lambda x, y: x or y * W,
    "not": lambda x, y: W * x if not y else y * x,
    "max": lambda x, y: max(x, y, W) * x,
    "min": lambda x, y: min(x, y, W) * y,
    "max by a key": lambda x, y: max([x, y, W], key=abs) * 2,
    "max of none": lambda x, y: max([number for number in (x, y) if number > 0], default=W) * x,
    "sorted": lambda x, y: sum(n * number for n, number in enumerate(sorted([x, y, W, 0.0]))),
    "sorted in reverse": lambda x, y: sorted([x, y, W, x * y], reverse=True)[1] * x,
    "sorted tuples": lambda x, y: sorted([(x, 1.0), (y, 2.0)], key=lambda pair: pair[0])[0][1] * x * W,
    "bisect": lambda x, y: W * bisect.bisect([0.0, 1.0, 2.0], x) * y,
    "chained": lambda x, y: x * W if -1 <= x < y <= 2 else y,
    "any": lambda x, y: x * W if any(number > 1 for number in (x, y)) else y,
    "all": lambda x, y: x * W if all(number >= 0 for number in (x, y)) else y,
    "of a comparison a number": lambda x, y: W * (x > y) + x * ((x > 0) + (y > 0)),
    "bool": lambda x, y: W * x if bool(x) else W * y,
    "int": lambda x, y: x * int(y) * W,
    "round": lambda x, y: x * round(y) * W,
    "floor": lambda x, y: x * math.floor(y) * W,
    "index": lambda x, y: [1.0, W, x][int(y)] * x,
    "index by truths": lambda x, y: [x, y, W][[x > 0, y > 0].count(True)] * x,
    "text": lambda x, y: {"above": x * W, "below": y}["above" if x > y else "below"],
}
OF_FLOATS = {
    "in a range": lambda x, y: W * x if x in range(-2, 4) else y * W,
    "is_integer": lambda x, y: x * W if y.is_integer() else y,
    "is_integer, rounded": lambda x, y: x * W if (0.1 * y + 0.2 * y + x).is_integer() else y,
}


def outcome(function, numbers, are_values):
    """What a call gives, with its gradients; or the error."""
    W.grad = 0.0
    given = [Value(x) if is_value else x for x, is_value in zip(numbers, are_values, strict=True)]
    try:
        result = function(*given)
        if isinstance(result, Value):
            result.backward()
    except (ArithmeticError, ValueError, IndexError, AssertionError) as error:
        return type(error), str(error)
    slopes = [W.grad, *(x.grad for x in given if isinstance(x, Value))]
    return type(result), repr(getattr(result, "data", result)), slopes


def check(function, are_values):
    """Compare a function with itself, compiled."""
    fast = mg.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # eager, of gradients that get lost in round; and of too many paths
        for numbers in itertools.product(POINTS, POINTS):
            expected, found = outcome(function, numbers, are_values), outcome(fast, numbers, are_values)
            assert found[:2] == expected[:2], numbers
            assert found[2:] == expected[2:] or found[2] == pytest.approx(expected[2], nan_ok=True), numbers


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("are_values", [(True, True), (False, True), (False, False)])
@pytest.mark.parametrize("name", WAYS)
def test_compiled_decides_as_eager(name, are_values):
    check(WAYS[name], are_values)


@pytest.mark.parametrize("name", OF_FLOATS)
def test_compiled_decides_on_plain_floats_as_eager(name):
    check(OF_FLOATS[name], (False, False))


def test_whether_a_float_is_whole_is_known_of_an_argument():
    fast = mg.compile(lambda x: x * 2.0 if x.is_integer() else x)
    for x in (3.0, 2.5, 4.0, 1e300, math.inf, -math.inf, -0.0, 3.0):
        assert fast(x) == fast.function(x)
    assert fast.cache_info().traces == 2


def test_in_iterations_and_branches_it_may_be_asked_whether_a_comparison_is_true(backend):
    def f(xs):
        mapped = mg.vmap(lambda x: x * W if (x > 1) is True else -x)(xs)
        return mg.cond(xs[0] > 0, lambda: sum(mapped), lambda: W if (xs[1] > 0) is True else xs[2])

    fast = mg.compile(f, backend=backend)
    for first in (2.0, 0.5, -1.0):
        for second in (2.0, -2.0):
            xs = [first, second, *(0.1 * n for n in range(40))]
            assert float(fast(xs)) == pytest.approx(float(f(xs)))


def test_a_flag_that_is_true_leaves_comparisons_data():
    class Settings:
        doubled = True

    def f(x, is_shifted=True):
        y = mg.where(x > 0, x, 0.1 * x) * W
        if is_shifted is True and Settings.doubled is True:
            y = y * 2.0
        return y

    fast = mg.compile(f)
    assert [fast(x).data for x in (1.0, -1.0)] == [f(x).data for x in (1.0, -1.0)]
    assert fast.cache_info().traces == 1
    assert not fast.has_paths()


def test_calls_that_raise_are_not_traced_for_ever():
    fast = mg.compile(lambda x: mg.sqrt(x) * W if mg.log(x) > 0 else x, paths=3)
    assert fast(2.0).data == fast.function(2.0).data
    for _ in range(2):
        with pytest.raises(ValueError, match="log"):
            fast(-1.0)
    with pytest.warns(RuntimeWarning, match="3 ways"):
        assert fast(0.5) == 0.5
    for x in (-1.0, -2.0) * 5:
        with pytest.raises(ValueError, match="log"):
            fast(x)
    assert fast(4.0).data == fast.function(4.0).data
    assert fast.cache_info().traces == 3


@pytest.mark.parametrize(
    "ask", [lambda x: (x > 1.0).any(), lambda x: np.isfinite(x).all(), lambda x: np.allclose(x, 1)]
)
def test_a_truth_of_many_numbers_is_looked_through_once(ask):
    """24 of them took minutes once."""
    fast = mg.compile(lambda x: x.sum() if ask(x) else x[0])
    for x in (np.arange(60.0), np.ones(60), np.full(60, 0.5)):
        assert fast(x) == (x.sum() if ask(x) else x[0])
