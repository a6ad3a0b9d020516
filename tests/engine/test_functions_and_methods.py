"""A function of one or two operands gives what its method gives, for whatever it is handed."""

from inspect import signature

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine import functions

pytestmark = pytest.mark.slow(together=True)

PUBLIC = [name for name in functions.__all__ if len(signature(getattr(mg, name)).parameters) == 1]
OF_ONE = [*PUBLIC, "degrees", "radians"]
OF_TWO = ["maximum", "minimum", "atan2", "hypot", "leaky_relu", "elu"]


class Own(Value):
    """A class of the user's."""


def gradient_of(result, x):
    if not result.requires_grad:
        return None
    x.grad = 0.0
    result.backward()
    return x.grad


@pytest.mark.parametrize("kind", [Value, Own])
@pytest.mark.parametrize("name", OF_ONE)
@pytest.mark.unmeasured
def test_of_one_operand(name, kind):
    number = 1.5 if name == "acosh" else 0.375
    function, x = getattr(mg, name), kind(number)
    plain = function(number)
    assert type(plain) is float
    results = [function(x), getattr(x, name)()]
    assert [result.data for result in results] == [plain, plain]
    assert len({gradient_of(result, x) for result in results}) == 1
    assert function(np.array([number])).tolist() == [plain]
    assert function(np.array([x]))[0].data == plain
    assert mg.compile(function, backend="numpy")(x).data == pytest.approx(plain, rel=1e-14)
    with mg.no_grad():
        assert not function(x).requires_grad
    with pytest.raises(TypeError, match=r"real number, not str|can't multiply sequence"):
        function("a")


@pytest.mark.parametrize("name", OF_TWO)
def test_of_two_operands(name):
    function, x, y = getattr(mg, name), Value(-0.75), Value(0.375)
    plain = function(-0.75, 0.375)
    assert type(plain) is float
    results = [function(x, y), getattr(x, name)(y), function(Own(-0.75), y), function(x, Own(0.375))]
    results += [function(x, 0.375), function(-0.75, y), function(np.float64(-0.75), y)]
    assert [result.data for result in results] == [plain] * len(results)
    slopes = []
    for result in results[:2]:
        x.grad = y.grad = 0.0
        result.backward()
        slopes.append((x.grad, y.grad))
    assert slopes[0] == slopes[1]
    for result, index in [(results[4], 0), (results[5], 1)]:
        x.grad = y.grad = 0.0
        if result.requires_grad:
            result.backward()
        assert (x.grad, y.grad)[index] == slopes[0][index]
        assert (x.grad, y.grad)[1 - index] == 0.0
    assert function(x, 2).data == function(-0.75, 2.0)
    assert function(np.array([-0.75, x]), 0.375)[1].data == plain
    assert mg.compile(function, backend="numpy")(x, y).data == pytest.approx(plain, rel=1e-14)
    with mg.no_grad():
        assert not function(x, y).requires_grad
    with pytest.raises(TypeError, match="must be a real number, not str: 'a'"):
        function(x, "a")


def test_an_error_of_two_operands_names_both():
    with (
        mg.detect_anomaly(),
        pytest.raises(FloatingPointError, match=r"hypot\(x = 1e\+308, y = 1\.7e\+308\) gives inf"),
    ):
        mg.hypot(Value(1e308, label="x"), Value(1.7e308, label="y"))


@pytest.mark.parametrize("name", ["sign", "floor", "ceil"])
def test_the_method_of_a_step_is_a_constant_in_a_graph(name):
    x = Value(2.5)
    step = getattr(x, name)()
    assert not step.requires_grad
    assert step._prev == set()
    (step * x).backward()
    assert x.grad == step.data
