"""Comparisons and choices of arrays inside compiled functions, against what the function gives without the compiler."""

import copy
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

import micrograd as mg
from micrograd import Value
from micrograd.compiler import TraceError
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow

NAN, INF = float("nan"), float("inf")
# Ties, zeros of both signs, and order both ways
X = np.array([[3.0, 0.0, -1.0], [-0.0, 2.0, 2.0]])
Y = np.array([[3.0, -0.0, 2.0], [0.0, -5.0, 2.0]])


def parts_of(result):
    """The numbers and Values in a result, in order; of an array first the shape."""
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in parts_of(item)]
    if isinstance(result, np.ndarray):
        assert type(result) in (np.ndarray, type(mg.array([])))
        return [result.shape, *result.ravel().tolist()]
    return [result.item() if isinstance(result, np.generic) else result]


def number_of(part):
    return part.data if isinstance(part, Value) else part


def outcome(function, numbers):
    """What a function of arrays of Values gives, and its gradients; or the class of what it raises."""
    values = [mg.array(array) for array in numbers]
    with np.errstate(invalid="ignore"):
        try:
            parts = parts_of(function(*values))
            weighted = [(weight, part) for weight, part in enumerate(parts, 1) if isinstance(part, Value)]
            terms = [weight * result for weight, result in weighted if result.requires_grad]
            if terms:
                sum(terms[1:], terms[0]).backward()
        except TraceError:
            raise
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            return type(error)
    gradients = [mg.gradients(array).tolist() for array in values]
    return [repr(number_of(part)) for part in parts], gradients


def as_numbers(texts):
    """Integers and floats alike: of a choice between a Value and an int, the compiler makes a Value."""
    return [text if text[0] == "(" or text in ("True", "False") else repr(float(text)) for text in texts]


def almost(found, expected):
    """Whether texts are those of the same numbers, but for the last digit: XLA has an exp of its own."""
    pairs = zip(as_numbers(found[0]), as_numbers(expected[0]), strict=True)
    return all(x == y or float(x) == pytest.approx(float(y), rel=4e-16) for x, y in pairs)


def agrees(backend, function, *sets_of_numbers):
    """Check that the compiled function gives the same, bit for bit, of arrays of Values."""
    fast = mg.compile(function, backend=backend)
    for numbers in sets_of_numbers:
        expected, found = outcome(function, numbers), outcome(fast, numbers)
        if isinstance(expected, type) or isinstance(found, type):
            assert found is expected
        else:
            assert as_numbers(found[0]) == as_numbers(expected[0]) or (backend == "jax" and almost(found, expected))
            assert found[1] == expected[1]


def float_of(part):
    """A number without the sign of a 0, to be compared where it may be NaN; a shape as it is."""
    return part if isinstance(part, tuple) else str(part + 0.0)


def agrees_of_numbers(backend, function, *numbers):
    """The same of arrays of plain numbers."""
    fast = mg.compile(function, backend=backend)
    with np.errstate(invalid="ignore"):
        expected, found = function(*numbers), fast(*numbers)
    found, expected = parts_of(found), parts_of(expected)
    assert found == expected  # of 0.0 and -0.0, NumPy's maximum of floats gives one or the other
    assert [type(part) is bool for part in found] == [type(part) is bool for part in expected]


OF_BOTH = {
    "greater": lambda x, y: mg.where(x > y, x, y * 2),
    "less": lambda x, y: mg.where(x < y, x, y * 2),
    "greater or equal": lambda x, y: mg.where(x >= y, x, y * 2),
    "less or equal": lambda x, y: mg.where(x <= y, x, y * 2),
    "the mask itself": lambda x, y: x > y,
    "masks by name": lambda x, y: [np.greater(x, y), np.less_equal(0, y), np.less(x, y), np.greater_equal(x, 1)],
    "np.where": lambda x, y: np.where(x > 0, x, y),
    "np.where, scalars": lambda x, y: np.where(x > y, 1.0, 0.5) * x,
    "np.where, broadcast": lambda x, y: np.where(x[:, :1] > 0, x, y[:1]),
    "np.where, nested": lambda x, y: np.where(x > 0, np.where(y > 0, x, y), x * y),
    "np.where of an element": lambda x, y: np.where(x[0, 0] > 0, x, y),
    "np.where of numbers and lists": lambda x, y: np.where(x > 0, x, [[1.0, 2.0, 3.0]]),
    "mg.where, scalars": lambda x, y: mg.where(x > 0, 1.0, 0.0) * y,
    "np.maximum": np.maximum,
    "np.minimum": np.minimum,
    "np.maximum, other order": lambda x, y: np.maximum(y, x),
    "np.fmax and np.fmin": lambda x, y: np.fmax(x, 0) + np.fmin(y, x),
    "np.maximum with a number": lambda x, y: np.maximum(x, 0),
    "np.maximum of a number": lambda x, y: np.maximum(0, x),
    "np.maximum of itself": lambda x, y: np.maximum(x, x),
    "np.maximum of equal operations": lambda x, y: np.maximum(x * y, x * y),
    "np.maximum, broadcast": lambda x, y: np.maximum(x[:, :1], y[0]),
    "np.maximum of elements": lambda x, y: [np.maximum(x[0, 0], y[0, 0]), np.minimum(x[0, 1], 0)],
    "mg.maximum": mg.maximum,
    "mg.minimum": mg.minimum,
    "mg.relu": lambda x, y: mg.relu(x) * y,
    "x.max": lambda x, y: x.max(),
    "x.min": lambda x, y: x.min(),
    "x.max, axis": lambda x, y: x.max(axis=0),
    "x.max, axes": lambda x, y: x.max(axis=(0, 1)),
    "x.min, axes, kept": lambda x, y: x.min(axis=(1, 0), keepdims=True) * y,
    "x.max, kept": lambda x, y: x - x.max(axis=1, keepdims=True),
    "x.max, initial": lambda x, y: x.max(initial=2.0),
    "x.max, where": lambda x, y: x.max(axis=0, where=np.array([[True, False, True]] * 2), initial=-9.0),
    "np.max": lambda x, y: np.max(x + y, axis=-1),
    "np.amin": lambda x, y: np.amin(x, axis=1),
    "np.ptp": lambda x, y: np.ptp(x, axis=1),
    "max of transposed": lambda x, y: x.T.max(axis=(0, 1)) + x.T.max(),
    "max of three axes": lambda x, y: np.stack([x, y, x * y]).max(axis=(0, 2)),
    "maximum.accumulate": lambda x, y: np.maximum.accumulate(x, axis=1),
    "maximum.outer": lambda x, y: np.maximum.outer(x[0], y[1]),
    "maximum.reduceat": lambda x, y: np.maximum.reduceat(x[0], [0, 2]),
    "maximum.reduce": lambda x, y: np.maximum.reduce(x),
    "maximum.at": lambda x, y: [z := x.copy(), np.maximum.at(z, ([0, 0], [1, 1]), y[0, 2])][0],
    "np.maximum of numbers among Values": lambda x, y: np.maximum(np.stack([x, X]), 1.0),
    "np.fmax and np.fmin, compared": lambda x, y: [np.fmax(x, 0.5) > 0, np.fmin(-0.5, y) < 0],
    "np.clip": lambda x, y: np.clip(x, 0, 2),
    "np.clip, ends": lambda x, y: np.clip(x, y, 2),
    "np.clip, ends crossed": lambda x, y: np.clip(x, 2, 1) * y,
    "np.clip, one end": lambda x, y: np.clip(x, None, 1) + np.clip(x, -1, None),
    "x.clip": lambda x, y: x.clip(0, 2) * y.clip(max=1),
    "clip of an element": lambda x, y: np.clip(x[0, 0], 0, 1) * y[0, 0],
    "out=": lambda x, y: np.maximum(x, y, out=x.copy()),
    "out= is returned": lambda x, y: [z := x.copy(), np.maximum(x, y, out=z) is z, np.add(x, y, out=z) is z],
    "out= of elements": lambda x, y: [z := x[0].copy(), np.add(x[0, 1], y[0, 2], out=z), z * 2],
    "+=": lambda x, y: operator.iadd(x.copy(), np.maximum(x, y)),
    "abs": lambda x, y: np.abs(x) + abs(y),
    "and": lambda x, y: np.where((x > 0) & (y < 3), x, y),
    "or": lambda x, y: np.where((x > 0) | (y < 0), x, y),
    "xor": lambda x, y: np.where((x > 0) ^ (y > 0), x, y),
    "not": lambda x, y: np.where(~(x > 0), x, y),
    "known masks": lambda x, y: [(x > 0) & np.array([True, False, True]), (x > 0) | True, True ^ (x > 0)],
    "logical functions": lambda x, y: [
        np.logical_and(x > 0, y > 0),
        np.logical_or(x > 0, y > 0),
        np.logical_xor(x > 0, y > 0),
        np.logical_not(x > 0),
    ],
    "logical functions of Values": lambda x, y: [np.logical_and(x, y) * 1, np.logical_or(x, y) * 1],
    "logical functions of Values, dtype=": lambda x, y: [
        np.logical_and(x, y, dtype=bool),
        np.logical_or(x, y, dtype="?"),
    ],
    "logical not of Values": lambda x, y: np.where(np.logical_not(x), 1.0, y),
    "any and all": lambda x, y: [(x > 0).any(), (x > 0).all(axis=0), np.any(x > 2, axis=(0, 1)), np.all(x < y)],
    "any and all of Values": lambda x, y: [x.any(), np.all(x), x.all(axis=1), np.any(y, axis=0, keepdims=True)],
    "logical reduce of Values": lambda x, y: [np.logical_or.reduce(x[0]) * 1, np.logical_and.reduce(x, axis=1) * 1],
    "how many": lambda x, y: [(x > 0).sum(), np.sum(x > y, axis=0), np.count_nonzero(x > 0)],
    "how many are not zero": lambda x, y: [np.count_nonzero(x), np.count_nonzero(y, axis=1, keepdims=True)],
    "the mean of a mask": lambda x, y: [(x > 0).mean(), np.mean(x > y, axis=0)],
    "masks as numbers": lambda x, y: [(x > 0) * y, (x > 0) * 2.0, (x > 0) + 1, 1 - (x > 0), (x > 0) / 2],
    "a power of a mask": lambda x, y: (x > 0) ** 2,
    "sums and products of masks": lambda x, y: [(x > 0) + (y > 0), (x > 0) * (y > 0), (x > 0) + True],
    "running and reduced masks": lambda x, y: [(x > 0).cumsum(), (x > 0).prod(), np.add.reduce(x > 0), (x > 0).max()],
    "differences of masks": lambda x, y: (x > 0) - (y > 0),
    "minus a mask": lambda x, y: -(x > 0),
    "plus a mask": lambda x, y: +(x > 0),
    "the sign of a mask": lambda x, y: np.sign(x > 0),
    "a mask and Values": lambda x, y: (x > 0) & y,
    "~ of Values": lambda x, y: ~x,
    "masks of masks": lambda x, y: [(x > 0) > (y > 0), (x > 0) == (y > 0), (x > 0) != (y > 0), (x > 0) <= True],
    "maximum of masks": lambda x, y: [np.maximum(x > 0, y > 0), np.minimum(x > 0, 0), np.clip(x > 0, 0, 1)],
    "astype of masks": lambda x, y: [(x > 0).astype(float).sum(), (x > 0).astype(int) + 1, (x > 0).astype(bool)],
    "astype of objects": lambda x, y: [(x > 0).astype(object) + (y > 0).astype(object), x.astype(object) * y],
    "dtype=": lambda x, y: [(x > 0).sum(dtype=float), (x > 0).mean(dtype=float), np.greater(x, y, dtype=bool)],
    "dtype=object": lambda x, y: np.where(
        np.greater_equal(x, y, dtype=object) + np.less_equal(x, y, dtype=object) > 1, x, 2 * y
    ),
    "masks and known arrays": lambda x, y: [(x > 0) + (X > 0), (x > 0) * (X > 0), (x > 0) + X, (x > 0) * X],
    "a mask times a vector": lambda x, y: (x > 0) @ y[0],
    "masks rearranged": lambda x, y: np.where(np.concatenate([x > 0, y > 0])[1:3].T.reshape(2, 3), x, y),
    "elements of a mask": lambda x, y: mg.where((x > 0)[0, 0] & (y > 0)[0, 0], x[0, 0], y[0, 0]),
    "a mask with an element put in": lambda x, y: [m := x > 0, operator.setitem(m, 0, 2), m + (y > 9)][2],
    "np.select": lambda x, y: np.select([x > 1, x < 0], [x, y], 7.0) * x,
    "np.select of nothing else": lambda x, y: np.select([x > 2, x < 0], [x, y]) + y,
    "np.select of elements": lambda x, y: np.select([x[0, 0] > 1, x[0, 1] < 0], [x[0], y[0]]),
    "identity of Values": lambda x, y: [x == y, x == x, x != y, x[0] == x[:1], x[0, 0] == x, x[0, 0] != x],
    "identity of what was picked": lambda x, y: [
        (z := np.maximum(x, y)) == z,
        z[0, 0] == z[:1, :1],
        z[0, 0] != z[0, 0],
        z[0, 0] == z[:1, :1],
    ],
    "identity as an index": lambda x, y: x[x == x],
    "np.where of a known mask": lambda x, y: np.where(np.array([True, False, True]), x, y),
    "the largest": lambda x, y: np.where(x >= x.max(axis=1, keepdims=True), x, 0) * y,
    "no axes": lambda x, y: [np.maximum(x[0, 0:1].reshape(()), 0), x[0, 0:1].reshape(()) > 0],
    "empty": lambda x, y: [
        np.maximum(x[:0], y[:0]),
        x[:0] > 0,
        (x[:0] > 0).sum(),
        (x[:0] > 0).any(),
        x[:0].max(axis=1),
    ],
    "empty arithmetic": lambda x, y: [x[:0] + y[:0], -x[:0], x[:0].sum(), abs(y[:0]), x.sum()],
    "logical functions of nothing": lambda x, y: [
        *(np.logical_and.reduce(x[:0]) * y, np.logical_or.reduce(x[:0]) * y, np.logical_xor.reduce(x[:0]) * y),
        *(x[:0].all() * y, x[:0].any(axis=0) * y),
    ],
    "np.where, empty": lambda x, y: np.where(x[:0] > 0, x[:0], y[:0]),
    "max of nothing": lambda x, y: x[:0].max(),
    "shapes that do not fit": lambda x, y: np.maximum(x, y.T),
    "where of shapes that do not fit": lambda x, y: np.where(x > 0, x, y.T),
    "select of different lengths": lambda x, y: np.select([x > 0], [x, y]),
    "select of Values": lambda x, y: np.select([x, y], [x, y]),
    "an index that is too large": lambda x, y: x[0, [5]],
    "an index to put at that is too large": lambda x, y: operator.setitem(x, (0, 5), y[0, 0]),
    "sign at zero": lambda x, y: np.sign(x) * y,
    "sign": lambda x, y: np.sign(x + 0.5) * y,
    "views": lambda x, y: np.maximum(x[::-1, ::2], y[:, 1:]).ravel(),
    "no gradient": lambda x, y: np.where(x > 0, 1, 2),
    "rows": lambda x, y: [row.max() for row in np.maximum(x, y)],
    "dot of a known array": lambda x, y: X.T.dot(y) > 1,
    "matrix products": lambda x, y: np.maximum(x @ y.T, 0) @ np.where(x > 0, x, y),
    "an element and an array": lambda x, y: [x[0, 0] > y, y[0] <= x[0, 0], x[0, 0] >= X, y[0, 0] > X, x[0] > [0, 1, 2]],
    "mixed with numbers": lambda x, y: np.sign(np.stack([x + 0.5, np.ones((2, 3))])),
    "arithmetic of masks, dtype=": lambda x, y: [
        *(np.add(x > 0, y > 0, dtype=int), np.add(x > 0, X > 0, dtype=float), np.add(x > 0, True, dtype="i8")),
        *(np.subtract(x > 0, y > 0, dtype=float), np.negative(x > 0, dtype=int), np.abs(x > 0, dtype=float)),
        *(np.add(x[0, 0] > 0, y[0, 0] > 0, dtype=int), np.multiply.outer(x[0] > 0, y[1] > 0, dtype=int)),
        *(np.add(x > 0, y > 0, dtype=object), np.subtract(x > 0, y > 0, dtype=object)),
        *(np.exp(x > 2, dtype=float), np.matmul(x > 0, (y > 0).T, dtype=int), np.add(x > 0, y > 0, dtype=bool)),
    ],
    "choices between masks, dtype=": lambda x, y: [
        np.maximum(x > 0, y > 0, dtype=float) + np.clip(x > 0, y > 0, x > 1, dtype=int),
        np.fmin(x > 0, y > 0, dtype=float) + np.sign(x > 0, dtype=float),
    ],
    "comparisons of elements, dtype=": lambda x, y: [
        np.greater_equal(x[0, 0], y[0, 0], dtype=object) + np.less_equal(x[0, 0], y[0, 0], dtype=np.dtype("O")),
        np.greater_equal(x, y, dtype="O") + np.less_equal(x, y, dtype="object"),
        np.greater(x[0, 0], y[0, 0], dtype=bool),
    ],
    "a dtype that there is not": lambda x, y: np.greater(x, y, dtype=float),
    "maximum of Values as floats": lambda x, y: np.maximum(x, y, dtype=float),
    "a mask with known parts": lambda x, y: np.stack([x > 0, X > 0]).sum(axis=0) + np.stack([y > 0, X > 0]).sum(),
    "not of a mask with known parts": lambda x, y: np.logical_not(np.stack([x > 0, X > 0])),
    "a mask with known parts as ints": lambda x, y: np.stack([x > 0, X > 0]).astype(int),
    "in place": lambda x, y: [m := x > 0, operator.ior(m, y > 0), m + (y > 2), abs(m), operator.iadd(m, x < 0)],
    "what is known": lambda x, y: [
        *(np.zeros_like(x).argmax(), np.sort(np.ones_like(x)), np.sign(np.zeros_like(x))),
        *(np.count_nonzero(np.ones_like(x)), np.flatnonzero(np.ones_like(x)), np.where([True, False, True], x, y)),
    ],
    "copied": lambda x, y: [z := np.zeros_like(x), np.copyto(z, np.maximum(x, y)), z.max()][2],
    "element by element": lambda x, y: [element > 0 for element in x.flat],
    "elements put in": lambda x, y: [
        *(z := x.copy(), operator.setitem(z, 0, y[1]), operator.setitem(z, (1, 1), 7.0), z * y)
    ][3],
    "at known positions": lambda x, y: [z := x.copy(), np.square.at(z, np.array([True, False])), z * y][2],
    "einsum": lambda x, y: np.clip(np.einsum("ij,kj->ik", x, y), -1, 8),
}


@pytest.mark.parametrize("name", OF_BOTH)
def test_arrays_of_values(backend, name):
    agrees(backend, OF_BOTH[name], (X, Y), (Y, X))


_INTEGERS = st.integers(-2, 2).map(float)


@given(
    st.sampled_from(sorted(OF_BOTH)),
    arrays_of.arrays(float, (2, 3), elements=_INTEGERS),
    arrays_of.arrays(float, (2, 3), elements=_INTEGERS),
)
def test_small_integers_and_ties_everywhere(name, x, y):
    agrees("numpy", OF_BOTH[name], (x, y))


STEPS = [
    *(operator.add, operator.sub, operator.mul, np.maximum, np.minimum, np.fmax, mg.maximum),
    lambda a, b: np.where(a > b, a, 2 * b),
    lambda a, b: np.where((a >= b) & (b <= 1), b, 1),
    lambda a, b: np.where(~(a < b) | (a > 1), a * b, b),
    lambda a, b: mg.where((a > 0) ^ (b > 0), a, b),
    lambda a, b: np.clip(a, -1, b),
    lambda a, b: np.clip(a, b, None),
    lambda a, b: a - b.max(axis=1, keepdims=True),
    lambda a, b: np.maximum(a, b.min(axis=0)),
    lambda a, b: a * (b >= b.max()),
    lambda a, b: a + (a > b).sum(axis=1, keepdims=True),
    lambda a, b: np.where((a > b).any(axis=0), a, b),
    lambda a, b: np.where(np.logical_not(a <= b), b[::-1], a[:, ::-1]),
    lambda a, b: np.maximum.accumulate(a, axis=1) * abs(b),
    lambda a, b: np.where(a > 0, 1, 0) - mg.relu(b),
    lambda a, b: np.select([a > 1, b > 0], [a, b], 3),
]


@given(
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6),
    st.sampled_from(["numpy", "llvm"]),
    st.lists(arrays_of.arrays(float, (2, 3), elements=_INTEGERS), min_size=4, max_size=4),
)
def test_one_step_after_the_other(steps, backend, numbers):
    def function(x, y):
        found = [x, y]
        for step, first, second in steps:
            found.append(step(found[first % len(found)], found[second % len(found)]))
        return found[-1] * x + found[-2]

    agrees(backend, function, numbers[:2], numbers[2:])
    agrees_of_numbers(backend, function, *numbers[:2])


# What NumPy refuses, or does in another way, where the arrays are of objects
_OF_OBJECTS = ("logical functions of Values", "logical functions of Values, dtype=", "maximum of Values as floats",
               "logical reduce of Values", "astype of objects", "dtype=object",
               "identity of Values", "identity as an index", "~ of Values", "a mask and Values",
               "select of Values", "identity of what was picked", "what is known")  # fmt: skip
_RAISING = ("differences of masks", "minus a mask", "plus a mask", "the sign of a mask", "max of nothing",
            "shapes that do not fit", "where of shapes that do not fit", "select of different lengths",
            "an index that is too large", "an index to put at that is too large",
            "a dtype that there is not")  # fmt: skip


@pytest.mark.parametrize("name", sorted({*OF_BOTH} - {*_OF_OBJECTS, *_RAISING}))
@pytest.mark.parametrize("kind", [float, int])
def test_arrays_of_numbers(name, kind):
    agrees_of_numbers("numpy", OF_BOTH[name], X.astype(kind), Y.astype(kind))


@pytest.mark.parametrize("name", ["np.maximum", "x.max", "np.clip", "sign of numbers", "equal numbers", "any and all"])
def test_arrays_of_numbers_with_each_backend(backend, name):
    agrees_of_numbers(backend, (OF_BOTH | OF_NUMBERS)[name], X, Y)


OF_NUMBERS = {
    "sign of numbers": lambda x, y: np.sign(x) * y,
    "equal numbers": lambda x, y: [x == y, x != y, x == 2, x != 2, np.where(x == 0, 1.0, x), x[0, 0] == y[0, 0]],
    "an element and numbers": lambda x, y: [x[0, 0] == y, y[0, 0] != x, x[0, 0] == X],
    "an equal number of them": lambda x, y: (x == y).sum() / x.size,
    "logical functions of numbers": lambda x, y: np.logical_and(x != 0, y != 0),
    "in order": lambda x, y: np.where((x >= y).all(), x, y),
    "to floats": lambda x, y: (x > 0).astype(float) * y.astype(float),
    "sum as floats": lambda x, y: x.sum(dtype=float) + np.prod(y, axis=0, dtype=float),
    "dtype=": lambda x, y: [
        *(np.add(x, y, dtype=float), np.maximum(x, 1, dtype=float), np.power(abs(x), 2, dtype=float) + x),
        *(np.sign(x, dtype=float), np.multiply(x, X > 0, dtype=float), np.negative(x[0, 0], dtype=float)),
    ],
    "truth": lambda x, y: [x.astype(bool), x.any(), np.count_nonzero(x, axis=0), np.logical_not(x)],
}


@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("kind", [float, int])
def test_arrays_of_plain_numbers_only(name, kind):
    agrees_of_numbers("numpy", OF_NUMBERS[name], X.astype(kind), Y.astype(kind))


def test_numbers_that_are_not_whole(backend):
    def softmax(x):
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    for function in (lambda x: softmax(x)[:, 0], lambda x: np.where(x > 0, x, x * x).var(axis=1)):
        (expected, gradients), (found, others) = (
            outcome(f, [X]) for f in (function, mg.compile(function, backend=backend))
        )
        assert list(map(float, found[1:])) == pytest.approx(list(map(float, expected[1:])))
        assert others[0] == [pytest.approx(row) for row in gradients[0]]


NOT_FINITE = np.array([[NAN, 1.0, -INF], [2.0, INF, NAN]])


@pytest.mark.parametrize("name", ["np.maximum", "np.minimum", "np.fmax and np.fmin", "x.max", "x.max, axis", "np.clip",
                                  "np.where", "greater or equal", "any and all", "any and all of Values",
                                  "np.fmax and np.fmin, compared", "np.maximum with a number",
                                  "np.maximum of a number"])  # fmt: skip
def test_what_is_not_finite(backend, name):
    agrees(backend, OF_BOTH[name], (NOT_FINITE, Y), (Y, NOT_FINITE))
    fast = mg.compile(OF_BOTH[name], backend=backend)
    with np.errstate(invalid="ignore"):
        for numbers in ((NOT_FINITE, Y), (Y, NOT_FINITE)):
            expected, found = parts_of(OF_BOTH[name](*numbers)), parts_of(fast(*numbers))
            assert list(map(float_of, found)) == list(map(float_of, expected))


@pytest.mark.parametrize("number", [3.0, 0.25, 0.0, -0.0, -0.25, -3.0, 3, 0, -3, NAN])
def test_the_sign_of_one_number(backend, number):
    numbers = np.array([number])
    agrees(backend, np.sign, (numbers,))
    signs = mg.compile(lambda x: [np.sign(x), np.sign(x) == 1, np.sign(x) + 0.5], backend=backend)
    with np.errstate(invalid="ignore"):
        assert list(map(float_of, parts_of(signs(numbers)))) == list(map(float_of, parts_of(signs.function(numbers))))


def test_signs_of_what_is_known():
    known = np.array([3.0, 0.25, -0.25, -3.0])
    agrees("numpy", lambda x: np.sign(np.concatenate([x, known])), (np.array([2.0, -0.5]),))
    agrees_of_numbers("numpy", lambda x: np.sign(np.concatenate([x, known, [0.0]])), np.array([2.0, 0.0, -0.5]))


def test_the_signs_of_small_numbers_and_of_zero_are_computed():
    runs = Runs()
    signs = mg.compile(lambda x: (print(end="", file=runs), np.sign(x))[1])
    for numbers in ([1.0, -2.0], [0.0, -0.0], [0.5, -0.5]):
        assert signs(np.array(numbers)).tolist() == np.sign(numbers).tolist()
    assert runs.times == 1  # and not once more, eagerly


def test_the_sign_of_an_int_is_an_int(backend):
    for kind in (int, float):
        first = mg.compile(lambda x: [x.sum(), np.sign(x)[0]], backend=backend)(np.array([-2, 1], dtype=kind))[1]
        assert (first, type(first)) == (-1, kind)


def test_a_mask_of_minus_infinity(backend):
    agrees(backend, lambda x, y: np.where(y > 0, x, -INF).max(axis=1), (X, Y))


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", ["np.where", "np.maximum", "x.max", "np.clip", "the largest", "matrix products"])
def test_derivatives_inside_and_outside(backend, name):
    def loss(x):
        return np.sum(OF_BOTH[name](x, x * x - 2) ** 3)

    numbers = X
    for transform in (mg.grad, mg.value_and_grad, mg.hessian, mg.jacobian):
        expected = transform(loss)(numbers)
        for found in (mg.compile(transform(loss), backend=backend)(numbers),
                      transform(mg.compile(loss, backend=backend))(numbers)):  # fmt: skip
            for part, other in zip(parts_of(found), parts_of(expected), strict=True):
                assert part == other


def test_gradients_taken_inside(backend):
    def penalty(x):
        slope = mg.gradient((np.maximum(x, 0) ** 2).sum(), x, create_graph=True)
        return np.maximum(slope, 1).sum() + (slope > 2).sum()

    agrees(backend, penalty, (X,))


def test_what_is_picked_under_no_grad_is_the_value_itself(backend):
    def function(x, y):
        with mg.no_grad():
            larger = np.maximum(x, y)
            known = np.where(x > 0, mg.array([1.0, 2.0, 3.0]), y)
        return [larger * x, known * x, mg.array([x[0, 0], 2.0]) > 1]

    agrees(backend, function, (X, Y))


def test_scalars(backend):
    functions = [
        lambda x, y: np.maximum(x, y) * 2,
        lambda x, y: np.where(x > y, x, y)[()] * y,
        lambda x, y: [x > y, (x > y) & (y > 0), (x > 0) | (y > 0), (x > 0) ^ (y > 0), True & (x > 0), (x > 0) + 1],
        lambda x, y: np.stack([x, y]).max(),
        lambda x, y: np.maximum(np.array([1.0, -1.0, 0.0]) * x, np.float64(2.0) * y).sum(),
        lambda x, y: np.select([x > 0, y > 0], [x, y])[()] * y,
        lambda x, y: np.float64(1.0) > x,
        lambda x, y: mg.where(x > y, 1.0, 2.0),
        lambda x, y: copy.copy(x * 1.0) * 2 + copy.copy(y * 1.0),
        lambda x, y: np.concatenate([[x], [y]])[0] * 2,
        lambda x, y: np.bool_(True) & (x > y),
    ]
    for function in functions:
        fast = mg.compile(function, backend=backend)
        for x in (-1.0, 0.0, 2.0):
            for y in (-0.0, 2.0):
                expected, found = (parts_of(f(Value(x), Value(y))) for f in (function, fast))
                assert [number_of(part) for part in found] == [number_of(part) for part in expected]
                assert [type(part) is bool for part in found] == [type(part) is bool for part in expected]
                assert parts_of(fast(x, y)) == parts_of(function(x, y))


def test_a_copy_of_an_argument_is_refused():
    def function(x):
        return copy.copy(x) * 2 + x

    for number in (Value(2.0), Value(2.0) * 3):
        with pytest.raises(mg.TraceError, match="a copy of a Value that is an argument"):
            mg.compile(function)(number)
    with pytest.raises(mg.TraceError, match="a copy of a Value that is an argument"):
        mg.compile(mg.grad(function))(2.0)
    assert mg.compile(function)(2.0) == 6.0


def test_dtype_says_which_numbers_are_computed_with():
    fast = mg.compile(lambda x: [np.maximum(x, 1, dtype=float)[0], np.add(x, 1, dtype=int)[0], np.add(x, 1)[0]])
    assert [type(number) for number in fast(np.array([1, 2]))] == [float, int, int]
    for kind in (int, np.float32):
        with pytest.raises(TypeError, match="Cannot cast"):
            mg.compile(lambda x, kind=kind: np.maximum(x, 1, dtype=kind))(X)
    with pytest.raises(TypeError, match="Cannot cast"):
        mg.compile(lambda x: np.add(x, 1, dtype=bool))(X)
    with pytest.raises(TypeError, match="No loop"):
        mg.compile(lambda x: np.greater(x, 1, dtype=float))(X)


def test_equal_numbers(backend):
    for function in (lambda x, y: x * mg.where(x == y, 1.0, 2.0), lambda x, y: x * mg.where(x != y, 1.0, 2.0),
                     lambda x, y: [x == 1, x == 1.0, x != 1], lambda x, y: mg.where(x == y, 1, 0) + x):  # fmt: skip
        fast = mg.compile(function, backend=backend)
        for x in (1.0, 2, -0.0):
            for y in (1.0, 0.0):
                assert parts_of(fast(x, y)) == parts_of(function(x, y))


class TestClosedOver:
    """Arrays that are no arguments: NumPy makes them, or has them already."""

    w = mg.array([[1.0, -2.0, 0.5], [0.0, 3.0, -1.0]])

    def test_computed_with_an_argument(self, backend):
        agrees(backend, lambda x, y: np.maximum(self.w @ x.T, 0) * np.where(x @ self.w.T > 0, 1, 2), (X, Y))
        agrees(backend, lambda x, y: np.maximum(x, self.w) + np.maximum(self.w, x) + mg.where(self.w > x, x, y), (X, Y))

    def test_compared_as_it_is(self, backend):
        agrees(backend, lambda x, y: [np.maximum(self.w, 0) + x, mg.where(self.w > 0, x, y)], (X, Y))
        agrees(backend, lambda x, y: [self.w.max() * x, self.w > 0, self.w.clip(0, 1) * y], (X, Y))

    def test_made_by_array(self, backend):
        agrees(backend, lambda x, y: [mg.array(self.w) > 0, np.maximum(mg.array(np.asarray(x)), 0)], (X, Y))
        agrees(backend, lambda x, y: mg.array([[x[0, 0], 2.0], [y[0, 1], y[1, 1]]]).max(axis=0), (X, Y))

    def test_its_gradients(self, backend):
        w = mg.array([1.0, 0.0, -2.0])
        found = []
        for make in (lambda f: f, lambda f: mg.compile(f, backend=backend)):
            result = make(lambda: np.maximum(mg.array(w), 0).sum() + np.clip(mg.array(w) * 2, -1, 1) @ w)()
            for value in w:
                value.grad = 0.0
            result.backward()
            found.append((result.data, mg.gradients(w).tolist()))
        assert found[0] == found[1]

    @pytest.mark.parametrize(
        "function",
        [
            lambda x, w: np.maximum(np.array(w, subok=False), 0) + x,
            lambda x, w: np.maximum(np.asarray(x), 0),
            lambda x, w: np.array([x[0, 0], x[0, 1]]).max(),
        ],
    )
    def test_what_numpy_does_alone_is_decided_for_each_call(self, function):
        fast = mg.compile(lambda x: function(x, self.w))
        for x in (X, -X):
            assert str(fast(mg.array(x))) == str(function(mg.array(x), self.w))

    def test_modules(self, backend):
        model = mg.nn.MLP(3, [4, 2])

        def function(x):
            return (np.maximum(mg.array(model(x)), 0.1) * 2 + model(x)).sum() + (x > 0).sum()

        assert mg.compile(function, backend=backend)(X[0]).data == pytest.approx(function(X[0]).data)


REFUSED = {
    "a sum in the place of a mask": (
        lambda x, y: operator.setitem(x, x > 0, y[x > 0]),
        "an index that depends on numbers",
    ),
    "argsort as a key": (lambda x, y: {x[0][np.argsort(x[0])][0]: 1}, "as a key, or in a set"),
    "an element by its order and ==": (lambda x, y: np.sort(x[0])[0] == x[0, 0], "x >= x.max()"),
    "out= of argmax": (lambda x, y: np.argmax(x, axis=0, out=np.zeros(3, int)), "out=, mode= or a heap sort"),
    "mode= of take": (lambda x, y: np.take(x, np.argmax(x), mode="wrap"), "mode= or a heap sort"),
    "order= of sort": (lambda x, y: np.sort(x, order="a"), "order=, out="),
    "a heap sort": (lambda x, y: np.sort(x, kind="heapsort"), "or a heap sort"),
    "a percentile": (lambda x, y: np.percentile(x, y[0]), "of an unknown share"),
    "a quantile": (lambda x, y: np.quantile(x, 0.5 * np.argmax(x[0]) / 2), "of an unknown share"),
    "np.partition": (lambda x, y: np.partition(np.where(x[0] > y[0], 1.0, 2.0), 1), "the order in which np.partition"),
    "np.argpartition": (lambda x, y: np.argpartition(x[0], 1), "an order or a number of elements"),
    "np.searchsorted": (lambda x, y: np.searchsorted(x[0], y[0]), "an order or a number of elements"),
    "np.digitize": (lambda x, y: np.digitize(y, [0.0, 1.0]), "an order or a number of elements"),
    "a quantile by another method": (lambda x, y: np.quantile(x, 0.5, method="lower"), "a quantile by another method"),
    "two orders": (lambda x, y: x[np.argsort(x[:, 0]), np.argsort(x[0, :2])], "an index that depends on numbers"),
    "a float beside an index": (
        lambda x, y: x[0][np.array([np.argmax(x[0]), 1.5])],
        "an index that depends on numbers",
    ),
    "a bool beside an index": (lambda x, y: x[np.True_, np.argmax(x[0])], r"would freeze.*mg\.take"),
    "a mask beside an index": (lambda x, y: x[[True, False], np.argmax(x[0])], r"would freeze.*mg\.take"),
    "an index": (lambda x, y: x[x > 0], "an index that depends on numbers"),
    "one comparison as an index": (lambda x, y: x[x[0, 0] > 0], "an index that depends on numbers"),
    "a number as an index": (lambda x, y: x[x[0, 0]], r"^(?!an index that depends).*mg\.take"),
    "an index in a tuple": (lambda x, y: x[0, x[0] > 0], "an index that depends on numbers"),
    "np.where of one": (lambda x, y: np.where(x > 0), "an order or a number of elements"),
    "np.argwhere": (lambda x, y: np.argwhere(x > 0), "an order or a number of elements"),
    "np.nonzero": (lambda x, y: np.nonzero(x > 0), "an order or a number of elements"),
    "x.nonzero": (lambda x, y: (x > 0).nonzero(), "an order or a number of elements"),
    "np.flatnonzero": (lambda x, y: np.flatnonzero(x > 0), "an order or a number of elements"),
    "np.unique": (lambda x, y: np.unique(x), "an order or a number of elements"),
    "np.extract": (lambda x, y: np.extract(x > 0, x), "an order or a number of elements"),
    "np.compress": (lambda x, y: np.compress(x[0] > 0, x, axis=1), "an order or a number of elements"),
    "np.piecewise": (lambda x, y: np.piecewise(x, [x > 0], [1.0, 2.0]), "an order or a number of elements"),
    "np.choose": (lambda x, y: np.choose(x > 0, [x, y]), "an order or a number of elements"),
    "np.copyto": (lambda x, y: np.copyto(x, y, where=x > 0), "Write np.where"),
    "np.putmask": (lambda x, y: np.putmask(x, x > 0, y), "an order or a number of elements"),
    "np.place": (lambda x, y: np.place(x, x > 0, y), "an order or a number of elements"),
    "in": (lambda x, y: 3.0 in x, "=="),
    "== of Values and numbers": (lambda x, y: x == 0, "=="),
    "== of what was picked": (lambda x, y: x == x.max(), "x >= x.max()"),
    "!= of what was picked": (lambda x, y: np.where(x > 0, x, y) != y, "x >= x.max()"),
    "known Values and what was picked": (lambda x, y: TestClosedOver.w == np.maximum(TestClosedOver.w, x), "picked"),
    "where= of sum": (lambda x, y: x.sum(where=x > 0, initial=0), "where= of np.add"),
    "where= of maximum": (lambda x, y: np.maximum(x, y, where=x > 0, out=x.copy()), "where= of np.maximum"),
    "out= of numbers": (lambda x, y: np.maximum(x, y, out=np.zeros((2, 3))), "out= of np.maximum"),
    "out= of bools": (lambda x, y: np.less(x, y, out=np.zeros((2, 3), bool)), "out= of np.less"),
    "+= of a mask": (lambda x, y: operator.iadd(x > 0, y), "an array of comparisons as out= of np.add"),
    "exp of a mask": (lambda x, y: np.exp(x > 0), r"Write mask.astype\(float\)"),
    "+= of numbers": (lambda x, y: operator.iadd(np.zeros((2, 3)), x), "out= of np.add"),
    "products of masks": (lambda x, y: (x > 0) @ (y > 0).T, "of comparisons"),
    "np.dot of masks": (lambda x, y: np.dot(x > 0, (y > 0).T), "of comparisons"),
    "dot of masks": (lambda x, y: (x > 0).dot((y > 0).T), "of comparisons"),
    "einsum of masks": (lambda x, y: np.einsum("ij,ij->i", x > 0, y > 0), "of comparisons"),
    "xor of Values": (lambda x, y: np.logical_xor(x, y), "np.logical_xor"),
    "~ of one comparison": (lambda x, y: ~(x[0, 0] > 0), "np.logical_not"),
    "an element that was picked": (lambda x, y: x.max() == x[0, 0], "x >= x.max()"),
    "an element and what was picked": (lambda x, y: x[0, 0] == x.max(), "x >= x.max()"),
    "astype(float) of Values": (lambda x, y: x.astype(float), "the float"),
    "a float in an array of numbers": (lambda x, y: operator.setitem(np.zeros(3), 0, x[0, 0]), "the float"),
    "a pickled mask": (lambda x, y: pickle.loads(pickle.dumps(x > 0)), "a deep copy or a pickle"),
    "a deep copy": (lambda x, y: copy.deepcopy(x), "a deep copy or a pickle"),
}


DECIDED = {
    "np.array_equal": lambda x, y: np.array_equal(x > 0, y > 0),
    "if": lambda x, y: 1 if (x > 0).any() else 2,
    "max of Python": lambda x, y: max(x[0]),
    "not": lambda x, y: not x[0, 0] > 0,
    "astype(int) of Values": lambda x, y: x.astype(int),
}


@pytest.mark.parametrize("name", DECIDED)
def test_what_decides_on_numbers_is_decided_for_each_call(name):
    fast = mg.compile(DECIDED[name])
    for x, y in ((X, Y), (Y, X), (-X, Y), (X, Y)):
        found, eager = fast(mg.array(x), mg.array(y)), DECIDED[name](mg.array(x), mg.array(y))
        assert str(found) == str(eager)


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_freeze_a_number_is_refused(name):
    function, message = REFUSED[name]
    fast = mg.compile(function)
    with pytest.raises(TraceError, match=message) as caught:
        fast(mg.array(X), mg.array(Y))
    if name != "a deep copy":  # which runs in Python's library
        assert f"{__file__}:{function.__code__.co_firstlineno}" in str(caught.value)
    with pytest.raises(TraceError, match=message):  # at the next call, too
        fast(mg.array(X), mg.array(Y))


@pytest.mark.parametrize("make", [lambda f: f, mg.compile], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "function", [lambda x: np.maximum(x, 0), lambda x: np.clip(x, 0, 5), lambda x: np.where(x > 0, x, 0)]
)
def test_a_number_that_is_picked_beside_a_value_is_a_value_through_which_no_gradient_flows(make, function):
    x = mg.array([-1.0, 2.0])
    first, second = make(function)(x)
    assert (first.requires_grad, second.requires_grad) == (True, True)
    (first * 3 + second).backward()
    assert (first.data, mg.gradients(x).tolist()) == (0.0, [0.0, 1.0])
    constants = make(function)(mg.array([-1.0, 2.0], requires_grad=False))
    assert [(each.data, each.requires_grad) for each in constants] == [(0.0, False), (2.0, False)]


def test_numbers_whose_kind_of_array_is_not_known():
    for function in (np.logical_and, np.logical_or, np.logical_xor):
        with pytest.raises(TraceError, match=r"of numbers .*Write np.logical_\w+\(x != 0, y != 0\)"):
            mg.compile(function)(X, Y)
    assert mg.compile(lambda x: x.astype(int))(X).tolist() == X.astype(int).tolist()
    with pytest.raises(TraceError, match="the float of a number"):
        mg.compile(lambda x: x.astype(np.float32))(X)


def test_a_nan_that_is_compared_with_itself(backend):
    numbers = np.array([NAN, 1.0])
    for array in (numbers, np.array([NAN, Value(1.0)])):
        for function in (lambda x: x == x, lambda x: x != x):
            assert mg.compile(function, backend=backend)(array).tolist() == function(array).tolist()


def test_a_mask_that_is_left_behind():
    kept = []
    with pytest.raises(TraceError, match="left behind in kept"):
        mg.compile(lambda x: (kept.append(x > 0), x.sum())[1])(X)
    outside = {}

    def keep(x):
        outside["mask"] = iter([x > 0])
        return x.sum()

    mg.compile(keep)(X)
    (mask,) = outside["mask"]
    for use in (lambda: bool(mask[0, 0]), lambda: mg.where(mask, 1.0, 2.0), lambda: mask[0, 0] == 1.0,
                lambda: np.where(mask, X, 0.0), lambda: mask.sum(), lambda: mg.compile(lambda x: x * mask)(X),
                lambda: mask[0, 0] == mask[0, 1]):  # fmt: skip
        with pytest.raises(TraceError):
            use()


def test_results_are_arrays_as_eagerly(backend):
    class Points(np.ndarray):
        pass

    function = lambda x: {"max": np.maximum(x, 0) * 1.0, "parts": [x > 0, x], "view": x.T}  # noqa: E731
    fast = mg.compile(function, backend=backend)
    for argument in (mg.array(X), X):
        result, eager = fast(argument), function(argument)
        kinds = [[type(array) for array in (r["max"], *r["parts"], r["view"])] for r in (result, eager)]
        assert kinds[0] == kinds[1]
        assert result["parts"][0].dtype == bool
    points = X.view(Points)
    doubled = mg.compile(lambda x: (isinstance(x, Points), x * 2), backend=backend)(points)
    assert doubled[0]
    assert type(doubled[1]) is Points
    assert doubled[1].tolist() == (X * 2).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: mg.array(x)[0] * 2,
        lambda x: mg.array(x.tolist()) ** 2,
        lambda x: [x * 2, mg.array(x).sum(), np.exp(x)],
        lambda x: {"a": mg.array([x[0], 1.0]).tolist(), "b": x},
    ],
    ids=["an element", "an array", "beside numbers", "in containers"],
)
def test_what_array_makes_of_plain_numbers_are_values_as_eagerly(backend, function):
    x = np.array([0.5, -2.0])
    assert str(mg.compile(function, backend=backend)(x)) == str(function(x))


def test_inside_it_is_an_array(backend):
    def shapes(x):
        assert isinstance(x, np.ndarray)
        assert isinstance(np.maximum(x, 0), np.ndarray)
        assert x.dtype == object
        return x.sum() * len(x)

    agrees(backend, shapes, (X,))


def test_several_results_of_one_function(backend):
    agrees(backend, lambda x, y: np.split(np.maximum(x, y), 3, axis=1), (X, Y))
    agrees(backend, lambda x, y: np.broadcast_arrays(x[0] > 0, y)[0] * y, (X, Y))


def test_under_fit(backend):
    w = mg.array([0.5, -0.25, 1.0])
    examples = [(x, y) for x in X for y in (1, -1)]

    def loss(x, y):
        return np.maximum(1 - y * (w * x), 0).sum() + np.where(x == 0, 1.0, 0.0).sum()

    losses = []
    for compiled in (False, True):
        for value, number in zip(w, (0.5, -0.25, 1.0), strict=True):
            value.data = number
        history = mg.fit(
            loss, examples, mg.optim.SGD(list(w), 0.01), epochs=3, seed=0, compile=compiled, progress=False
        )
        losses.append((history.steps, mg.numbers(w).tolist()))
    assert losses[0][0] == pytest.approx(losses[1][0])
    assert losses[0][1] == pytest.approx(losses[1][1])


@pytest.mark.parametrize("shape", [(4, 6), (1100, 3)])
@pytest.mark.parametrize("order", ["A", "K", "F"])
def test_memory_with_gaps(shape, order):
    rows, columns = shape
    numbers = np.random.default_rng(0).normal(size=(2 * rows, columns))
    weights = np.arange(float(rows * columns))
    fast = mg.compile(lambda x: (x.ravel(order=order) * weights).sum() + (x.flatten(order=order) * weights).max())
    in_columns = np.asfortranarray(numbers)
    for x in (in_columns[:rows], in_columns[::2], np.asfortranarray(numbers[:rows])[::-1], numbers[::2]):
        assert fast(x) == pytest.approx(fast.function(x), rel=1e-12)
