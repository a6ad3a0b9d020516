"""What compiled functions do where several of their abilities meet."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler import TraceError
from micrograd.engine import methods

XS = np.linspace(-1.0, 1.0, 3000)


def body(x, w):
    return mg.tanh(x * w) + x**2 + mg.exp(-x) * mg.sin(w * x) * mg.cos(x) / (1 + x * x)


def decides_after(xs, w):
    total = sum(mg.vmap(lambda x: body(x, w))(xs))
    return total * 2 if w > 1 else total


def decides_before(xs, w):
    if w > 1:
        xs = xs * 2
    return sum(mg.vmap(lambda x: body(x, w))(xs))


def decides_inside(xs, w):
    return sum(mg.vmap(lambda x: body(x, w) if x > 0 else x * w)(xs))


def decides_on_a_result(xs, w):
    ys = mg.vmap(lambda x: body(x, w))(xs)
    return ys[0] * 3 if ys[0] > ys[1] else ys[1]


@pytest.mark.slow
@pytest.mark.parametrize("function", [decides_after, decides_before, decides_inside, decides_on_a_result])
def test_decisions_beside_a_vmap_of_many_items(function):
    fast = mg.compile(function, backend="numpy")
    for w in (0.5, 2.0, 0.5):
        assert fast(XS, w) == pytest.approx(function(XS, w), rel=1e-9)
    ours, eager = Value(0.7), Value(0.7)
    fast(XS, ours).backward()
    function(XS, eager).backward()
    assert ours.grad == pytest.approx(eager.grad, rel=1e-9)


def test_arrays_are_filled():
    def function(x):
        filled = x.copy()
        filled.fill(x[0])
        return (filled * x + np.full_like(x, 2.0) + np.full_like(x, 1.0, dtype=float)).sum()

    numbers = np.array([1.0, 2.0, 3.0])
    assert mg.compile(function)(numbers) == function(numbers)
    of_values = mg.compile(function)(mg.array(numbers))
    assert of_values.data == function(mg.array(numbers)).data


def test_refusals_under_no_grad():
    w = Value(2.0)

    def gradient(x):
        with mg.no_grad():
            return x * w.grad

    with pytest.raises(TraceError, match="grad"):
        mg.compile(gradient)(1.0)


def test_a_decision_that_cannot_be_computed_is_left_to_eager_code():
    def inverse(x):
        try:
            return 1 / x if 1 / x > 0 else -1 / x
        except ZeroDivisionError:
            return 0.0

    assert mg.compile(inverse)(0.0) == 0.0
    fast = mg.compile(inverse)
    assert [fast(x) for x in (2.0, 0.0, -4.0)] == [0.5, 0.0, 0.25]


@pytest.mark.parametrize("make", [lambda f: f, mg.compile], ids=["eager", "compiled"])
def test_results_of_numpy_have_nowhere_to_go(make):
    with pytest.raises(TypeError, match=r"micrograd has no np\.nanmean.*leave out= out"):
        make(lambda x: np.nanmean(x, out=np.zeros(())))(mg.array(XS[:3]))
    with pytest.raises(TypeError):
        make(lambda x: np.add(x, 1.0, out=np.zeros(3)))(mg.array(XS[:3]))
    with pytest.raises(TypeError):
        make(lambda x: np.hypot(x, 1.0, out=[0.0]))(mg.array(XS[:3]))


def test_what_numpy_does_with_a_value_is_loaded_when_it_is_asked_for():
    assert methods._value_arrays.__wrapped__() is methods._value_arrays()
    assert np.hypot(Value(3.0), 4.0).data == 5.0


def test_constants_too_large_for_float32_are_infinite_in_c(tmp_path):
    fast = mg.compile(lambda x: x * 1e300)
    fast.export(tmp_path / "large.c", 1e-300, precision="float32")
    assert "INFINITY" in (tmp_path / "large.c").read_text(encoding="utf-8")
