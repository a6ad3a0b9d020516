"""Softmax, logsumexp and losses along an axis of an array: beside NumPy, differentiated, compiled, and refused."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value, losses

SHAPES_AND_AXES = [
    ((4,), 0),
    ((4,), -1),
    ((2, 3), 0),
    ((2, 3), 1),
    ((2, 3), -2),
    ((2, 3), (0, 1)),
    ((2, 3), (1, 0)),
    ((2, 3, 4), 1),
    ((2, 3, 4), (0, 2)),
    ((2, 3, 4), (-1, 0)),
    ((1, 1), 0),
    ((2, 1, 3), 1),
    ((0, 3), 1),
]
each_axis = pytest.mark.parametrize(("shape", "axis"), SHAPES_AND_AXES, ids=str)
REDUCTIONS = {
    "mean_squared_error": (losses.mean_squared_error, lambda p, t: (p - t) ** 2, [0.5, -1.0, 2.0]),
    "hinge": (losses.hinge, lambda p, t: np.maximum(1 - t * p, 0), [1, -1]),
    "binary_cross_entropy": (
        losses.binary_cross_entropy,
        lambda p, t: t * np.logaddexp(0, -p) + (1 - t) * np.logaddexp(0, p),
        [0, 1, 0.25],
    ),
}
each_reduction = pytest.mark.parametrize(("loss", "formula", "targets"), REDUCTIONS.values(), ids=REDUCTIONS.keys())
backends = pytest.mark.parametrize("backend", ["numpy", "llvm"])


def sample(shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape) * 2


def np_logsumexp(x, axis, keepdims=False):
    largest = x.max(axis=axis, keepdims=True)
    total = np.log(np.exp(x - largest).sum(axis=axis, keepdims=True)) + largest
    return total if keepdims else total.squeeze(axis=axis)


def np_softmax(x, axis):
    return np.exp(x - np_logsumexp(x, axis, keepdims=True))


def np_cross_entropy(x, targets, axis):
    rows = -np.log(np_softmax(x, axis))
    return np.take_along_axis(rows, np.expand_dims(targets, axis), axis).mean()


def drawn(choices, shape):
    return np.random.default_rng(1).choice(choices, size=shape)


def same(found, expected):
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found, dtype=float) == pytest.approx(np.asarray(expected, dtype=float), rel=1e-13, abs=1e-14)


class TestNumbers:
    @each_axis
    def test_logsumexp(self, shape, axis):
        x = sample(shape)
        same(mg.logsumexp(x, axis), np_logsumexp(x, axis))
        same(mg.logsumexp(x, axis=axis, keepdims=True), np_logsumexp(x, axis, keepdims=True))

    @each_axis
    def test_mean(self, shape, axis):
        x = sample(shape)
        same(mg.mean(x, axis), x.mean(axis=axis))
        same(mg.mean(x, axis=axis, keepdims=True), x.mean(axis=axis, keepdims=True))

    @each_axis
    def test_softmax(self, shape, axis):
        x = sample(shape)
        found = mg.softmax(x, axis)
        same(found, np_softmax(x, axis))
        assert found.dtype == float
        assert found.sum(axis=axis) == pytest.approx(np.ones_like(found.sum(axis=axis)))

    @each_axis
    @each_reduction
    def test_losses(self, shape, axis, loss, formula, targets):
        x, t = sample(shape), drawn(targets, shape)
        same(loss(x, t, axis), formula(x, t).mean(axis=axis))

    @pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((2, 3), 0), ((2, 3), 1), ((2, 3, 4), 1), ((2, 3, 4), -1)])
    def test_cross_entropy(self, shape, axis):
        x = sample(shape)
        targets = drawn(shape[axis], np.delete(shape, axis))
        same(losses.cross_entropy(x, targets, axis), np_cross_entropy(x, targets, axis))
        same(losses.cross_entropy(x.tolist(), targets.tolist(), axis), np_cross_entropy(x, targets, axis))
        same(losses.cross_entropy(x, targets, np.int64(axis)), np_cross_entropy(x, targets, axis))

    def test_nested_lists_and_tuples_and_iterables_are_arrays(self):
        rows = [[1.0, 2.0], (3.0, Value(5.0))]
        same(mg.numbers(mg.softmax(rows, axis=1)), np_softmax(np.array([[1.0, 2.0], [3.0, 5.0]]), 1))
        same(mg.logsumexp(iter([[1.0, 2.0]]), axis=0), [1.0, 2.0])
        same(losses.mean_squared_error([[1.0, 2.0], [3.0, 4.0]], ((0, 0), (0, 0)), axis=0), [5.0, 10.0])
        assert losses.cross_entropy([[1e4, 0.0, 0.0], [0.0, 1e4]], [0, 1]) == 0.0  # rows of several lengths

    @pytest.mark.parametrize("dtype", [np.float32, int, bool])
    def test_arrays_of_other_numbers(self, dtype):
        x = np.array([[0, 1], [1, 1]], dtype=dtype)
        same(mg.softmax(x, axis=0), np_softmax(x.astype(float), 0))

    def test_views_and_other_orders_of_memory(self):
        x = sample((4, 6))
        for view in (x.T, x[::2, ::-1], np.asfortranarray(x), np.broadcast_to(x[0], (3, 6))):
            same(mg.softmax(view, axis=0), np_softmax(view, 0))

    def test_masks_of_minus_infinity(self):
        x = np.array([[-math.inf, 0.0], [-math.inf, 1.0]])
        same(mg.logsumexp(x, axis=0), [-math.inf, np.logaddexp(0.0, 1.0)])
        same(mg.softmax(x, axis=1), [[0.0, 1.0], [0.0, 1.0]])

    def test_nan_stays_in_its_row(self):
        x = np.array([[math.nan, 0.0], [1.0, 1.0]])
        for found in (mg.softmax(x, axis=1), mg.logsumexp(x, axis=1)):
            assert np.isnan(found[0]).all()
            assert np.isfinite(found[1]).all()

    def test_tails_keep_their_digits(self):
        x = np.array([[800.0, 0.0], [-800.0, 0.0], [40.0, 0.0]])
        same(mg.softmax(x, axis=1)[:, 1], [0.0, 1.0, math.exp(-40) / (1 + math.exp(-40))])
        assert mg.softmax(x[2:], axis=1)[0, 1] == pytest.approx(math.exp(-40), rel=1e-14)
        assert losses.cross_entropy(x[2:].T, [0], axis=0) == pytest.approx(math.exp(-40), rel=1e-14)
        assert losses.binary_cross_entropy(x[2:], [[1, 1]], axis=0)[0] == pytest.approx(math.exp(-40), rel=1e-14)
        same(mg.logsumexp(np.array([[1e4], [1e4]]), axis=0), [1e4 + math.log(2)])

    def test_without_an_axis_a_sequence_is_as_before(self):
        assert mg.softmax([1e4, 1e4]) == [0.5, 0.5]
        assert mg.softmax(np.array([0.0, 0.0])) == [0.5, 0.5]
        assert type(mg.logsumexp(np.array([0.0]))) is float
        assert losses.mean_squared_error(sample((2, 3)), np.zeros((2, 3))) == pytest.approx(
            (sample((2, 3)) ** 2).mean()
        )


def weighted(f):
    """One number out of an array: a sum with other weights everywhere."""

    def scalar(x):
        found = np.ravel(np.asarray(f(x), dtype=object))
        return sum((index + 1.5) * item for index, item in enumerate(found))

    return scalar


def of_numbers(f, shape):
    """The same, as a function of the elements."""
    return lambda *elements: weighted(f)(np.array(elements, dtype=object).reshape(shape))


def programs(axis):
    """Each function of an array along an axis, as a function of the array alone."""

    def over(loss, targets):
        return lambda x: loss(x, drawn(targets, x.shape), axis)

    found = {name: over(loss, targets) for name, (loss, _, targets) in REDUCTIONS.items()}
    found["softmax"] = lambda x: mg.softmax(x, axis)
    found["logsumexp"] = lambda x: mg.logsumexp(x, axis)
    found["kept"] = lambda x: x - mg.logsumexp(x, axis, keepdims=True)
    if isinstance(axis, int):
        found["cross_entropy"] = lambda x: losses.cross_entropy(x, drawn(x.shape[axis], np.delete(x.shape, axis)), axis)
    return found


@pytest.mark.slow
class TestGradients:
    @pytest.mark.unmeasured
    @pytest.mark.parametrize(
        ("shape", "axis"), [((3,), 0), ((2, 3), 0), ((2, 3), (0, 1)), ((2, 1, 2), -1), ((2, 2, 2), (0, 2))], ids=str
    )
    def test_are_those_of_finite_differences(self, shape, axis):
        for f in programs(axis).values():
            mg.testing.gradcheck(of_numbers(f, shape), sample(shape).ravel())

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_second_derivatives_are_those_of_finite_differences(self):
        for f in programs(1).values():
            mg.testing.gradcheck(of_numbers(f, (2, 2)), sample((2, 2)).ravel(), order=2)

    @given(st.integers(0, 2**32 - 1), st.sampled_from(SHAPES_AND_AXES[:-1]))
    @settings(max_examples=12)
    def test_of_logsumexp_is_softmax(self, seed, shape_and_axis):
        shape, axis = shape_and_axis
        x = mg.array(sample(shape, seed))
        np.sum(mg.logsumexp(x, axis)).backward()
        same(mg.gradients(x), mg.numbers(mg.softmax(x, axis)))

    def test_ties_share(self):
        x = mg.array(np.zeros((2, 2)))
        mg.logsumexp(x, axis=1).sum().backward()
        assert mg.gradients(x).tolist() == [[0.5, 0.5], [0.5, 0.5]]

    def test_constants_frozen_values_and_no_grad(self):
        x = mg.array(sample((2, 3)), requires_grad=False)
        assert not mg.logsumexp(x, axis=1)[0].requires_grad
        x = mg.array(sample((2, 3)))
        with mg.no_grad():
            found = mg.softmax(x, axis=0)
        assert not found[0, 0].requires_grad
        same(mg.numbers(found), np_softmax(sample((2, 3)), 0))

    def test_one_value_in_several_positions_gets_the_sum(self):
        v = Value(0.5)
        result = mg.logsumexp([[v, v], [v, 1.0]], axis=1)
        result.sum().backward()
        assert v.grad == pytest.approx(1 + 1 / (1 + math.exp(0.5)))


@pytest.mark.slow
class TestCompiled:
    @pytest.mark.unmeasured
    @backends
    @pytest.mark.parametrize(("shape", "axis"), [((4,), 0), ((2, 3), 0), ((2, 3), -1), ((2, 3, 2), (0, 2))], ids=str)
    def test_is_what_eager_is(self, shape, axis, backend, own_cache):
        for f in programs(axis).values():
            fast = mg.compile(f, backend=backend)
            for argument in (mg.array(sample(shape)), sample(shape)):
                eager, compiled = f(argument), fast(argument)
                assert type(compiled) is type(eager)
                same(mg.numbers(compiled), mg.numbers(eager))
            x, y = mg.array(sample(shape)), mg.array(sample(shape))
            weighted(f)(x).backward()
            weighted(fast)(y).backward()
            same(mg.gradients(y), mg.gradients(x))

    @backends
    def test_targets_may_be_arguments(self, backend, own_cache):
        x, classes = mg.array(sample((3, 2))), np.array([0, 2])
        fast = mg.compile(lambda x, t: losses.cross_entropy(x, t, axis=0), backend=backend)
        for targets in (classes, classes[::-1].copy(), [1, 1]):
            assert fast(x, targets).data == pytest.approx(losses.cross_entropy(x, targets, axis=0).data, rel=1e-14)
        with pytest.raises(ValueError, match="target 3 is not the index of one of 3 classes"):
            fast(x, np.array([3, 0]))
        both = mg.compile(lambda x, t: losses.hinge(x, t, axis=1), backend=backend)
        t = drawn([-1, 1], (3, 2))
        same(mg.numbers(both(x, t)), mg.numbers(losses.hinge(x, t, axis=1)))

    @backends
    def test_what_is_compared_inside_can_be_compiled(self, backend, own_cache):
        def f(x):
            shares = mg.softmax(x, axis=1)
            return np.where(shares > 0.3, shares, 0.0).sum()

        x = mg.array(sample((2, 3)))
        assert mg.compile(f, backend=backend)(x).data == pytest.approx(f(x).data, rel=1e-14)

    def test_derivatives_of_it_can_be_compiled(self, own_cache):
        def f(x):
            return (mg.softmax(x, axis=0) ** 2).sum()

        x = sample((2, 2))
        same(mg.compile(mg.hessian(f))(x), mg.hessian(f)(x))


def test_a_target_may_be_an_array_without_axes():
    assert losses.cross_entropy([0.0, 0.0], np.array(1)) == pytest.approx(math.log(2))


def test_without_numpy_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    for call in (lambda: mg.softmax([[1.0]], axis=0), lambda: losses.cross_entropy([[1.0]], [0], axis=0)):
        with pytest.raises(ImportError, match="need NumPy: pip install numpy"):
            call()
    assert mg.softmax([0.0, 0.0]) == [0.5, 0.5]
    assert losses.cross_entropy([[0.0, 0.0]], [1]) == pytest.approx(math.log(2))
