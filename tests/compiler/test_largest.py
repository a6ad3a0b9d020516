"""The largest of numbers that a generator reads, as in a softmax: no path, and the numbers and gradients of eager."""

import itertools
from functools import reduce

import pytest

import micrograd as mg
from micrograd import Value

POINTS = [(1.0, -2.0, 0.5), (-1.0, 3.0, 2.0), (0.0, 0.0, 0.0), (2.0, 2.0, -7.0)]


def softmax(xs):
    largest = max(x.data for x in xs)
    powers = [(x - largest).exp() for x in xs]
    return powers[0] / sum(powers)


def kept(xs):
    """What else somebody may take of a generator."""
    read = (x.data for x in xs)
    first = next(read)
    return xs[0] * max(read) + first


def twice(xs):
    one, other = itertools.tee(x.data for x in xs)
    return xs[0] * max(one) + sum(other)


def seen(xs):
    numbers = []

    def noted(number):
        numbers.append(number)
        return number

    return sum(xs) * max(map(noted, (x.data for x in xs))) + numbers[-1]


def by_hand(xs):
    largest = -1e9
    for number in (x.data for x in xs):
        if number > largest:
            largest = number
    return sum(xs) * largest


OTHERS = {
    "min": lambda xs: sum(xs) * min(x.data for x in xs),
    "sum": lambda xs: xs[0] * sum(x.data for x in xs),
    "sorted": lambda xs: xs[0] * sorted(x.data for x in xs)[1],
    "key": lambda xs: xs[0] * max((x.data for x in xs), key=abs),
    "default": lambda xs: xs[0] * max((x.data for x in xs), default=0.0),
    "reduce": lambda xs: xs[0] * reduce(max, (x.data for x in xs)),
    "of one": lambda xs: xs[0] * max(x.data for x in xs[:1]),
    "in one another": lambda xs: sum(xs) * max(max(y.data for y in (x, 2 * x)) for x in xs),
    "kept": kept,
    "twice": twice,
    "seen": seen,
    "by hand": by_hand,
}


def agrees(function, fast, point):
    eager, compiled = ([Value(number) for number in point] for _ in range(2))
    truth, found = function(eager), fast(compiled)
    truth.backward()
    found.backward()
    assert found.data == pytest.approx(truth.data, rel=1e-14)
    assert [x.grad for x in compiled] == pytest.approx([x.grad for x in eager], rel=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_largest_number_is_no_question(backend):
    fast = mg.compile(softmax, backend=backend)
    for point in POINTS:
        agrees(softmax, fast, point)
    assert fast.cache_info().traces == 1
    assert "asked" not in fast.explain()


@pytest.mark.parametrize("name", OTHERS)
def test_who_else_takes_the_numbers_gets_them_as_they_are(name):
    fast = mg.compile(OTHERS[name], backend="numpy")
    for point in POINTS:
        agrees(OTHERS[name], fast, point)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.data,
        lambda x: x * max([y.data for y in (x, 2 * x)]),
        lambda x: x * max(y.data + 1 for y in (x, 2 * x)),
    ],
    ids=["alone", "list", "computed"],
)
def test_other_readings_are_refused(function):
    with pytest.raises(mg.TraceError, match=r"\.data would freeze .* mg\.detach"):
        mg.compile(function, backend="numpy")(Value(2.0))


def test_plain_numbers_have_no_data_and_none_is_read_after_the_trace():
    kept = []
    fast = mg.compile(lambda x: kept.append(x) or x * max(y.data for y in (x, 2 * x)), backend="numpy")
    with pytest.raises(mg.TraceError, match=r"\.data would freeze"):
        fast(2.0)
    with pytest.raises(mg.TraceError, match="left behind"):
        fast(Value(2.0))
