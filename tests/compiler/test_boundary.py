"""What goes into a compiled function and what comes out: arrays as wholes, lists, and Values."""

import inspect
import math
import sys
from fractions import Fraction

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow(together=True)


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "backwards": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda array: np.repeat(array, 2, axis=1)[:, ::2],
    "broadcast": lambda array: np.broadcast_to(array[0], array.shape),
    "read-only": read_only,
    "big-endian": lambda array: array.astype(">f8"),
    "float32": lambda array: array.astype(np.float32),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_are_read_whatever_their_strides_and_their_dtype(layout, backend):
    def f(a, b):
        return (a * b + mg.exp(a[0, 1])).sum() + a[1, 2]

    fast = mg.compile(f, backend=backend)
    for start in (0.0, 3.0):
        a = LAYOUTS[layout](np.arange(start, start + 6.0).reshape(2, 3) / 8)
        b = np.linspace(-1.0, 1.0, 3)
        assert fast(a, b) == pytest.approx(float(f(a.astype(float), b)), rel=1e-12)


def test_an_array_has_a_program_for_its_dtype_and_its_shape():
    fast = mg.compile(lambda a: a.sum())
    for array in (np.ones(3), np.zeros(3), np.ones(6)[::2], np.ones((3, 4)).T[0]):
        assert fast(array) == array.sum()
    assert fast.cache_info().traces == 1
    for array in (np.ones(3, dtype=np.int32), np.ones(3, dtype=int), np.ones((3, 1)), mg.array(np.ones(3))):
        result = fast(array)
        assert (result.data if isinstance(result, Value) else result) == 3.0
    assert fast.cache_info().traces == 5


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16])
def test_whole_numbers_in_arrays_keep_their_meaning(dtype, backend):
    def f(n, x):
        return n * 2, n // 2, n.sum() * x, [number % 3 for number in n]

    fast, given = mg.compile(f, backend=backend), np.array([1, 5, 6], dtype=dtype)
    doubled, halves, total, remainders = fast(given, 0.5)
    assert (doubled.tolist(), halves.tolist(), total, remainders) == ([2, 10, 12], [0, 2, 3], 6.0, [1, 2, 0])
    assert (doubled.dtype, halves.dtype) == (dtype, dtype)
    assert {type(number) for number in remainders} == {int if dtype is np.int64 else dtype}


def test_an_array_of_no_axes_is_an_argument(backend):
    fast = mg.compile(lambda a: a * 2.0, backend=backend)
    assert [float(fast(np.array(number))) for number in (1.5, -2.0)] == [3.0, -4.0]


def test_numbers_of_other_kinds_stand_beside_floats(backend):
    def f(xs, y):
        return sum(x * (position + 1.0) for position, x in enumerate(xs)) * y

    xs = [1.5, 2, np.float64(0.5), Fraction(1, 4), np.int64(3)]
    assert mg.compile(f, backend=backend)(xs, 2) == f([float(x) for x in xs], 2.0)


def test_a_number_that_no_float_can_hold_is_refused():
    fast = mg.compile(lambda xs: xs[0] * 1.0)
    with pytest.raises(mg.TraceError, match=r"an integer of 2\*\*53 or more"):
        fast([10**400])
    assert fast([3]) == 3.0


def test_lists_and_arrays_that_change_between_calls_are_read_again(backend):
    fast = mg.compile(lambda xs, rows, array: sum(xs) + sum(map(sum, rows)) + array.sum(), backend=backend)
    xs, rows, array = [1.0, 2.0], [[1.0], [2.0, 3.0]], np.ones(2)
    assert fast(xs, rows, array) == 11.0
    xs[0], rows[1][1], array[:] = 10.0, 0.5, 4.0
    assert fast(xs, rows, array) == 23.5
    xs.append(1.0)
    assert fast(xs, rows, array) == 24.5
    xs[:] = [Value(1.0), 2.0]
    assert fast(xs, rows, array).data == 14.5


def test_the_results_of_a_call_belong_to_the_caller(backend):
    fast = mg.compile(lambda a: (a * 2.0, a * 2.0, [a + 1.0], 3.0 * a), backend=backend)
    first = fast(np.arange(4.0))
    for array in (*first[:2], first[2][0], first[3]):
        assert array.flags.writeable
        before = [part.copy() for part in (*first[:2], first[2][0], first[3])]
        array += 100.0
        after = (*first[:2], first[2][0], first[3])
        assert sum(not np.array_equal(one, other) for one, other in zip(before, after, strict=True)) == 1
    assert fast(np.arange(4.0))[0].tolist() == [0.0, 2.0, 4.0, 6.0]


@pytest.mark.parametrize(
    ("transform", "f"),
    [
        (mg.value_and_grad, rosenbrock),
        (mg.hessian, rosenbrock),
        (mg.jacobian, lambda x: {"outer": x[:, None] * x[:3], "one": x[0] * 2.0, "none": [x[1], 5.0]}),
    ],
)
@pytest.mark.parametrize("make", [np.array, list, tuple])
def test_derivatives_have_the_form_that_they_have_eagerly(transform, f, make, backend):
    numbers = [0.5, -1.0, 2.0, 1.5]

    def of_array(x):
        return f(mg.array(x) if not isinstance(x, np.ndarray) else x)

    eager = transform(of_array)(make(numbers))
    compiled = mg.compile(transform(of_array), backend=backend)(make(numbers))
    assert_same_form(compiled, eager)


def assert_same_form(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same_form(one, other)
    elif isinstance(expected, dict):
        assert_same_form([*found.items()], [*expected.items()])
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    elif isinstance(expected, str):
        assert found == expected
    else:
        assert found == pytest.approx(expected, rel=1e-12)


def test_what_is_not_computed_stands_among_what_is(backend):
    grown = mg.compile(lambda x, n: np.array([x[0], -0.0, n, 7.0]), backend=backend)(np.array([2.0]), 3)
    assert (grown.dtype, grown.tolist(), math.copysign(1.0, grown[1])) == (np.float64, [2.0, 0.0, 3.0, 7.0], -1.0)
    counts = mg.compile(lambda n: (np.array([n, 4]), [n > 1, True], np.array([n > 1, False])), backend=backend)(3)
    assert [array.dtype.kind for array in (counts[0], counts[2])] == ["i", "b"]
    assert (counts[0].tolist(), counts[1], counts[2].tolist()) == ([3, 4], [True, True], [True, False])
    assert counts[1][0] is True
    long = mg.compile(lambda n: np.array([n * 2**40, 1]), backend=backend)(2**30)
    assert (long.dtype, long.tolist()) == (object, [2**70, 1])


def test_an_array_that_nothing_was_computed_in_is_given_as_a_copy():
    table = np.arange(3, dtype=np.float32)
    fast = mg.compile(lambda x: (x * 2.0, table, np.zeros((2, 0))))
    for _ in range(2):
        doubled, given, empty = fast(1.0)
        assert (doubled, given.dtype, given.tolist(), empty.shape) == (2.0, np.float32, [0.0, 1.0, 2.0], (2, 0))
        given[0] = 9.0
    assert table[0] == 0.0


def test_empty_containers_go_in_and_come_out(backend):
    fast = mg.compile(lambda x, *rest: ([], (), {}, np.zeros(0), [[]], x * 2.0), backend=backend)
    found = fast(1.0, [], {}, np.zeros((0, 3)), [[]])
    assert (found[:3], found[3].shape, found[4:]) == (([], (), {}), (0,), ([[]], 2.0))


def test_results_that_are_one_object_are_one_object(backend):
    def f(x, y):
        z = x * y
        return [z, z, x + y], np.array([z, x * 3.0, z]), z

    x, y = Value(2.0), Value(3.0)
    first, array, last = mg.compile(f, backend=backend)(x, y)
    assert first[0] is first[1] is array[0] is array[2] is last
    assert [value.data for value in (first[2], array[1], last)] == [5.0, 6.0, 6.0]
    (last * 1.0 + array[0] + first[2]).backward()
    assert (x.grad, y.grad) == (7.0, 5.0)


@pytest.mark.parametrize("length", [3, 60])
def test_values_in_a_list_get_the_gradients_that_they_get_eagerly(length, backend):
    def f(xs, weight):
        return sum(x * x * (position + 1.0) for position, x in enumerate(xs)) * weight

    weight, found = Value(0.5), []
    for function in (f, mg.compile(f, backend=backend)):
        xs = [Value(float(position)) for position in range(length)]
        weight.grad = 0.0
        result = function(xs, weight)
        result.backward()
        result.backward(2.0)
        found.append(([x.grad for x in xs], weight.grad, result.data, result.grad))
    assert found[0] == found[1]


@pytest.mark.parametrize("length", [3, 60])
def test_a_gradient_that_is_a_graph_is_added_to(length):
    fast = mg.compile(lambda xs: sum(x * x for x in xs))
    xs = [Value(float(position)) for position in range(length)]
    (xs[1] ** 3).backward(create_graph=True)
    fast(xs).backward()
    assert isinstance(xs[1].grad, Value)
    assert [xs[1].grad.data, xs[2].grad] == [5.0, 4.0]


def test_a_result_among_the_arguments_passes_its_gradient_on(backend):
    fast, x = mg.compile(lambda xs: xs[0] * xs[1] * xs[2], backend=backend), Value(2.0)
    fast([x * 2.0, x, x + 1.0]).backward()
    assert x.grad == 32.0  # of 2 x^3 + 2 x^2


def test_values_that_require_no_gradient_get_none(backend):
    fast = mg.compile(lambda xs, y: sum(x * y for x in xs), backend=backend)
    frozen, free = [Value(float(n), requires_grad=False) for n in range(1, 5)], Value(3.0)
    result = fast(frozen, free)
    result.backward()
    assert (result.data, free.grad, {x.grad for x in frozen}) == (30.0, 10.0, {0.0})
    assert not fast(frozen, 3.0).requires_grad
    mixed = [*frozen[:2], Value(3.0), Value(4.0)]
    fast(mixed, 2.0).backward()
    assert [x.grad for x in mixed] == [0.0, 0.0, 2.0, 2.0]


def test_freezing_an_argument_after_the_call_counts():
    fast, xs = mg.compile(lambda xs: sum(x * x for x in xs)), [Value(1.0), Value(2.0), Value(3.0)]
    result = fast(xs)
    xs[1].requires_grad = False
    result.backward()
    assert [x.grad for x in xs] == [2.0, 0.0, 6.0]


def test_attributes_on_one_of_many_values_are_part_of_the_key():
    fast = mg.compile(lambda xs: sum(xs))
    xs = [Value(1.0) for _ in range(5)]
    fast(xs)
    fast([Value(2.0, label=f"x{position}") for position in range(5)])
    assert fast.cache_info().traces == 1
    xs[3].mine = "attribute"
    assert fast(xs).data == 5.0
    assert fast.cache_info().traces == 2


def test_plain_numbers_beside_values_are_in_no_block():
    """Of results that remember the block of their call, some are no Values."""
    w = Value(2.0)
    fast = mg.compile(lambda x: [w * x, x * 2.0])
    with mg.record_scopes(), mg.scope("head"):
        value, number = fast(3.0)
    assert (value.data, number) == (6.0, 6.0)
    assert value._scope is not None


def test_stored_parameters_are_read_where_they_are_arguments():
    """A step changes arrays only; who is given the Values has their numbers all the same."""
    weights = [Value(float(position)) for position in range(200)]
    optimizer = mg.optim.SGD(weights, 0.5)
    loss = mg.compile(lambda x: sum(w * w for w in weights) * x)
    square, first = mg.compile(lambda ws: sum(w * w for w in ws)), mg.compile(lambda w, x: w * x)
    optimizer.zero_grad()
    loss(1.0).backward()
    optimizer.step()  # w - 0.5 * 2 * w
    assert first(weights[3], 2.0).data == 0.0
    optimizer.zero_grad()
    loss(-1.0).backward()
    optimizer.step()
    assert square(weights).data == 0.0


def test_the_gradients_of_results_are_eager_only_while_the_numbers_are_those_of_the_call():
    x, array = Value(0.0), np.array([2.0, 3.0])
    fast = mg.compile(lambda a: (mg.sqrt(x) * a[0], x * a[1]))
    root, triple = fast(array)
    triple.backward()
    assert x.grad == 3.0
    array[1] = 5.0
    with pytest.raises(ValueError, match="have changed since the call"):
        (root + triple).backward()
    assert x.grad == 3.0


def test_a_result_that_is_too_deep_for_the_rest_of_the_stack_is_refused():
    def nested(x):
        for _ in range(100):
            x = [x]
        return x

    fast = mg.compile(nested)
    assert nested(2.0) == fast(2.0)

    def called_at(frames):
        return called_at(frames - 1) if frames else fast(2.0)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 400)
    try:
        assert called_at(5) == nested(2.0)
        with pytest.raises(ValueError, match="must not be nested this deep"):
            called_at(330)
    finally:
        sys.setrecursionlimit(limit)


# Of fewer levels, the result is written down and too deep to be made again; from 3.12 on, it is made.
FEW = [sys.getrecursionlimit() * 6 // 10] if sys.version_info < (3, 12) else []


@pytest.mark.parametrize("levels", [*FEW, sys.getrecursionlimit() * 12 // 10, sys.getrecursionlimit() * 2])
def test_a_result_that_is_nested_too_deep_is_refused(levels):
    def nested(x):
        for _ in range(levels):
            x = [x]
        return x

    with pytest.raises(ValueError, match="must not be nested this deep"):
        mg.compile(nested)(2.0)


def test_infinities_and_nans_among_many_outputs_run_eagerly(backend):
    fast = mg.compile(lambda x: [mg.exp(x * position) for position in range(60)], backend=backend)
    assert len(fast(1.0)) == 60
    with pytest.raises(OverflowError):
        fast(100.0)
    large = mg.compile(lambda x: [x, x * 0.5], backend=backend)(1.5e308)  # whose sum is none
    assert large == [1.5e308, 0.75e308]
