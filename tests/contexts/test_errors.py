"""errors: infinity and NaN as NumPy gives them, forward and backward, eagerly, compiled and in fit."""

import contextlib
import math
import pickle
import threading

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

ALL = {"overflow": "inf", "divide": "inf", "invalid": "nan"}
inf, nan = math.inf, math.nan
BACKENDS = pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])

# A function, where, and its value and derivative there.
CASES = {
    "exp": (lambda x: mg.exp(x), 1000.0, inf, inf),
    "expm1": (lambda x: mg.expm1(x), 1000.0, inf, inf),
    "exp2": (lambda x: mg.exp2(x), 2000.0, inf, inf),
    "cosh": (lambda x: mg.cosh(x), -1000.0, inf, -inf),
    "sinh": (lambda x: mg.sinh(x), -1000.0, -inf, inf),
    "power": (lambda x: x**2, 1e200, inf, 2e200),
    "product": (lambda x: x * x, 1e200, inf, 2e200),
    "a float to a power": (lambda x: 10.0**x, 400.0, inf, inf),
    "log of 0": (lambda x: mg.log(x), 0.0, -inf, inf),
    "log below": (lambda x: mg.log(x), -1.0, nan, -1.0),
    "log1p": (lambda x: mg.log1p(x), -1.0, -inf, inf),
    "log2": (lambda x: mg.log2(x), 0.0, -inf, inf),
    "log10": (lambda x: mg.log10(x), 0.0, -inf, inf),
    "sqrt of 0": (lambda x: mg.sqrt(x), 0.0, 0.0, inf),
    "sqrt below": (lambda x: mg.sqrt(x), -1.0, nan, nan),
    "quotient": (lambda x: x / 0.0, 1.0, inf, inf),
    "reflected": (lambda x: 1.0 / x, 0.0, inf, -inf),
    "0 / 0": (lambda x: x / x, 0.0, nan, nan),
    "a negative power of 0": (lambda x: x**-1.0, 0.0, inf, -inf),
    "a root of a negative number": (lambda x: x**0.5, -1.0, nan, nan),
    "asin": (lambda x: mg.asin(x), 2.0, nan, nan),
    "acos": (lambda x: mg.acos(x), 2.0, nan, nan),
    "acosh": (lambda x: mg.acosh(x), 0.0, nan, nan),
    "atanh": (lambda x: mg.atanh(x), 1.0, inf, inf),
    "sin of infinity": (lambda x: mg.sin(x), inf, nan, nan),
    "chain": (lambda x: mg.sin(mg.exp(x)), 1000.0, nan, nan),
    "what is left out": (lambda x: mg.minimum(mg.detach(mg.exp(x)), 3.0) + x, 1000.0, 1003.0, 1.0),
    "lgamma": (lambda x: mg.lgamma(x), 1e307, inf, math.log(1e307)),
    "lgamma at a pole": (lambda x: mg.lgamma(x), 0.0, inf, -inf),
    "mean": (lambda x: mg.mean([mg.exp(x), x]), 1000.0, inf, inf),
    "logaddexp": (lambda x: mg.logaddexp(mg.exp(x), 1.0), 1000.0, inf, nan),
}
EACH = pytest.mark.parametrize(("f", "at", "value", "slope"), CASES.values(), ids=CASES)


def same(found, expected):
    return found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def check_infinities(f, derivative, at, value, slope):
    with mg.errors(**ALL):
        x = Value(at)
        y = f(x)
        y.backward()
        assert same(y.data, value)
        assert same(x.grad, slope)
        assert same(derivative(at), slope)
        with mg.no_grad():
            assert same(f(x).data, value)


@EACH
def test_values_and_derivatives_are_infinities_and_nan(f, at, value, slope):
    check_infinities(f, mg.grad(f), at, value, slope)


@pytest.mark.slow
@EACH
@BACKENDS
@pytest.mark.unmeasured
def test_so_they_are_compiled(f, at, value, slope, backend):
    check_infinities(mg.compile(f, backend=backend), mg.compile(mg.grad(f), backend=backend), at, value, slope)


def test_a_graph_that_was_made_inside_is_differentiated_outside():
    x = Value(0.0)
    with mg.errors(**ALL):
        y = mg.sqrt(x)
    y.backward()
    assert x.grad == inf


@pytest.mark.parametrize(
    ("f", "at"), [(mg.exp, 1000.0), (lambda x: x**-2.0, 0.0), (lambda x: 1 / x, 0.0), (mg.log, 0.0), (mg.log, -1.0)]
)
def test_the_default_is_an_error_outside_and_again_afterwards(f, at):
    for _ in range(2):
        with pytest.raises((ArithmeticError, ValueError)):
            f(Value(at))
        with mg.errors(**ALL):
            f(Value(at))


@pytest.mark.parametrize(
    ("settings", "raised"),
    [
        ({"overflow": "inf"}, {"divide", "invalid"}),
        ({"divide": "inf"}, {"overflow", "invalid"}),
        ({"invalid": "nan"}, {"overflow", "divide"}),
        ({}, {"overflow", "divide", "invalid"}),
        (ALL, set()),
    ],
)
def test_each_setting_is_for_its_kind(settings, raised):
    kinds = {
        "overflow": lambda: mg.exp(Value(1000.0)),
        "divide": lambda: mg.log(Value(0.0)),
        "invalid": lambda: mg.log(Value(-1.0)),
    }
    found = set()
    with mg.errors(**settings):
        for kind, compute in kinds.items():
            with contextlib.suppress(ArithmeticError, ValueError):
                compute()
                found.add(kind)
    assert found == set(kinds) - raised


def test_a_rule_that_raises_what_is_not_allowed_raises():
    x = Value(0.0, label="x")
    with mg.errors(overflow="inf"):
        y = mg.sqrt(x)
        with pytest.raises(ZeroDivisionError, match=r"derivative of sqrt\(x = 0.0\)"):
            y.backward()
    assert x.grad == 0.0


def test_it_decorates_functions_and_blocks_nest():
    @mg.errors(overflow="inf")
    def large(x):
        return mg.exp(x).data

    assert [large(Value(1000.0)) for _ in range(2)] == [inf, inf]
    with mg.errors(overflow="inf"):
        with mg.errors(invalid="nan"), pytest.raises(OverflowError):
            mg.exp(Value(1000.0))
        assert mg.exp(Value(1000.0)).data == inf
        with mg.no_grad(), mg.errors(invalid="nan"):
            assert math.isnan(mg.log(Value(-1.0)).data)


def test_another_thread_raises():
    caught = []

    def run():
        try:
            mg.exp(Value(1000.0))
        except OverflowError as error:
            caught.append(error)

    with mg.errors(**ALL):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert len(caught) == 1


def test_second_derivatives_and_transforms():
    with mg.errors(**ALL):
        x = Value(1000.0)
        mg.exp(x).backward(create_graph=True)
        assert x.grad.data == inf
        y = Value(0.0)
        root = mg.sqrt(y)
    root.backward(create_graph=True)
    assert y.grad.data == inf
    with mg.errors(**ALL):
        assert mg.hessian(mg.exp)(1000.0) == inf
        assert mg.vjp(mg.exp, 1000.0)[1](1.0) == (inf,)
        assert mg.numbers(mg.vmap(mg.exp)([Value(1000.0), 0.0])).tolist() == [inf, 1.0]
        with mg.no_grad():
            assert mg.grad(mg.sqrt)(0.0) == inf


def test_arrays_sums_of_products_and_settings():
    with mg.errors(**ALL):
        x = mg.array([Value(1000.0), Value(0.0)])
        assert mg.numbers(np.exp(x)).tolist() == [inf, 1.0]
        assert mg.dot([Value(1e200)], [Value(1e200)]).data == inf
        neuron = mg.nn.Neuron(1, activation=mg.exp, initial=0.0)
        neuron.b.data = 1000.0
        assert neuron([1.0]).data == inf
        assert mg.leaky_relu(Value(-1e308), 1e9).data == -inf


def test_a_primitive_of_ones_own():
    grown = mg.primitive(
        "grown_in_a_test",
        "grown",
        lambda x, rate=1.0: math.exp(rate * x),
        lambda g, out, x, rate=1.0: g * out * rate,
        replace=True,
    )
    with mg.errors(**ALL):
        for settings in ({}, {"rate": 2.0}):
            x = Value(1000.0)
            y = grown(x, **settings)
            y.backward()
            assert (y.data, x.grad) == (inf, inf)
            assert grown(Value(0.0), **settings).data == 1.0


def test_a_primitive_of_ones_own_without_a_result():
    def refused(x):
        raise ValueError("no result")

    primitive = mg.primitive("refused_in_a_test", "refused", refused, lambda g, out, x: g, replace=True)
    with mg.errors(invalid="nan"):
        assert math.isnan(primitive(Value(1.0)).data)


def test_an_operation_of_ones_own():
    @mg.operation
    def inverse(x):
        return 1 / x, lambda g: -g / (x * x)

    with mg.errors(**ALL):
        assert inverse(Value(0.5)).data == 2.0
        x = Value(2.0)
        result = Value(4.0, (x,), "double")
        result._backward = lambda: setattr(x, "grad", 2.0)
        (result * 1.0).backward()
    assert x.grad == 2.0


def test_an_anomaly_is_still_found():
    with mg.errors(**ALL), mg.detect_anomaly(), pytest.raises(FloatingPointError, match="gives inf"):
        mg.exp(Value(1000.0))
    with mg.detect_anomaly(), mg.errors(**ALL):
        with pytest.raises(FloatingPointError, match="gives inf"):
            mg.exp(Value(1000.0))
        x = Value(0.0)
        with pytest.raises(FloatingPointError, match="derivative of"):
            mg.sqrt(x).backward()


def test_inside_of_a_compiled_function():
    @mg.compile
    def guarded(x):
        with mg.errors(overflow="inf"):
            return mg.exp(x) + 1.0

    assert guarded(Value(0.0)).data == 2.0
    assert guarded(Value(1000.0)).data == inf
    assert guarded(Value(0.0)).data == 2.0


def test_a_pickle_of_the_graph_has_plain_primitives():
    with mg.errors(**ALL):
        y = mg.exp(Value(0.0))
    again = pickle.loads(pickle.dumps(y))
    assert again._primitive is Value(0.0).exp()._primitive


@pytest.mark.parametrize("mode", [False, "numpy", "llvm", "jax"])
def test_in_fit(mode):
    def run(data, **settings):
        w = Value(2.0)

        def loss(x):
            return (w - 1.0) ** 2 + mg.minimum(mg.detach(mg.exp(w * x)), 3.0)

        return w, mg.fit(loss, data, mg.optim.SGD([w], 0.1), compile=mode, **settings)

    with pytest.raises(OverflowError, match="example 0 in epoch 1"):
        run([1000.0])
    with mg.errors(overflow="inf"):
        w, history = run([1000.0], validation=[1000.0])
    assert (history.steps, w.data) == ([4.0], pytest.approx(1.8))
    assert history.validation == [pytest.approx(3.64)]


# What operators give where the result is too large, and the derivative there
TOO_LARGE = {
    "+": (lambda x: x + x, 1.7e308, inf, 2.0),
    "-": (lambda x: -x - x, 1.7e308, -inf, -2.0),
    "*": (lambda x: x * x, 1e200, inf, 2e200),
    "/": (lambda x: x / 1e-200, 1e200, inf, 1e200),
    "** 2": (lambda x: x**2, 1e200, inf, 2e200),
    "** 3 of a negative number": (lambda x: x**3, -1e150, -inf, 3e300),
    "** 2 of a negative number": (lambda x: x**2, -1e200, inf, -2e200),
    "** 1.5": (lambda x: x**1.5, 1e208, inf, 1.5e104),
    "** -2": (lambda x: x**-2, 1e-160, inf, -inf),
    "a number to the power": (lambda x: 1e200 ** (1.0 * x), 2.0, inf, inf),
}


@pytest.mark.parametrize("backend", [None, "numpy", "llvm"])
@pytest.mark.parametrize("settings", [{}, {"overflow": "inf"}, ALL], ids=["by default", "overflow", "all"])
@pytest.mark.parametrize("name", TOO_LARGE)
@pytest.mark.unmeasured
def test_operators_have_one_rule_they_give_infinity(name, settings, backend):
    f, at, value, slope = TOO_LARGE[name]
    with mg.errors(**settings):
        x = Value(at)
        y = (mg.compile(f, backend=backend) if backend else f)(x)
        y.backward()
        assert (y.data, x.grad) == (value, pytest.approx(slope, rel=1e-12))
        hidden = mg.tanh(f(x)) if backend is None else mg.compile(lambda x: mg.tanh(f(x)), backend=backend)(x)
        assert hidden.data == math.copysign(1.0, value)


@pytest.mark.parametrize("mode", [False, "numpy", "llvm"])
@pytest.mark.parametrize("settings", [{}, ALL], ids=["by default", "all"])
@pytest.mark.parametrize("square", [lambda x: x * x, lambda x: x**2], ids=["*", "**"])
def test_a_loss_that_operators_made_infinite_is_an_error_in_fit(square, settings, mode):
    w = Value(1e200)
    message = r"the loss of example 0 is inf in epoch 1; .*smaller learning rate"
    with mg.errors(**settings), pytest.raises(ArithmeticError, match=message):
        mg.fit(lambda x: square(w * x), [1.0], mg.optim.SGD([w], 0.1), compile=mode)
    assert w.data == 1e200


@pytest.mark.parametrize("square", [lambda x: x * x, lambda x: x**2], ids=["*", "**"])
def test_detect_anomaly_finds_the_operator_that_gives_infinity(square):
    with mg.detect_anomaly(), pytest.raises(FloatingPointError, match="gives inf"):
        square(Value(1e200))
