"""jvp and vjp: Jacobians times vectors, from both sides; over containers, composed, compiled, and refused."""

import math
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.compiler.runs import Runs
from tests.strategies import programs

pytestmark = pytest.mark.slow

Line = namedtuple("Line", ["slope", "offset"])
backends = pytest.mark.parametrize("backend", ["numpy", "llvm"])


def f(x, y):
    """Several numbers, in containers of every kind."""
    return {
        "product": x * y["b"][0],
        "list": [mg.tanh(x), x**2 * y["a"], 7.0],
        "line": Line(mg.exp(y["a"]), mg.where(x > 0, x, y["a"])),
        "array": y["c"] * x,
    }


def point():
    return 0.5, {"a": -0.25, "b": [2.0], "c": np.array([1.0, 3.0])}


def direction():
    return 2.0, {"a": 1.0, "b": [-1.0], "c": np.array([0.5, 0.25])}


def flat(nested):
    """The numbers in a container, in order."""
    if isinstance(nested, dict):
        return [number for item in nested.values() for number in flat(item)]
    if isinstance(nested, (list, tuple, np.ndarray)):
        return [number for item in nested for number in flat(item)]
    return [float(nested)]


def moved(step):
    """The value of f a step along the direction."""
    (x, y), (dx, dy) = point(), direction()
    y = {"a": y["a"] + step * dy["a"], "b": [y["b"][0] + step * dy["b"][0]], "c": y["c"] + step * dy["c"]}
    return flat(f(x + step * dx, y))


class TestJvp:
    def test_it_is_the_slope_along_the_direction(self):
        value, tangent = mg.jvp(f, point(), direction())
        assert flat(value) == flat(f(*point()))
        slopes = (np.array(moved(1e-6)) - np.array(moved(-1e-6))) / 2e-6
        assert flat(tangent) == pytest.approx(slopes, rel=1e-8, abs=1e-9)

    def test_both_have_the_shape_of_what_is_returned_and_are_plain(self):
        value, tangent = mg.jvp(f, list(point()), list(direction()))
        for found in (value, tangent):
            assert list(found) == ["product", "list", "line", "array"]
            assert type(found["line"]) is Line
            assert type(found["product"]) is float
            assert found["array"].dtype == float
        assert tangent["list"][2] == 0.0

    @given(programs(), st.data())
    @settings(max_examples=16)
    def test_it_is_the_gradient_times_the_direction(self, program, data):
        size = len(program.inputs)
        rates = data.draw(st.lists(st.floats(-2, 2), min_size=size, max_size=size))
        slopes = mg.grad(lambda p: program(*p))(program.inputs)
        value, tangent = mg.jvp(program, program.inputs, rates)
        scale = max(abs(slope * rate) for slope, rate in zip(slopes, rates, strict=True))
        expected = math.fsum(slope * rate for slope, rate in zip(slopes, rates, strict=True))
        assert value == program(*program.inputs)
        assert tangent == pytest.approx(expected, rel=1e-9, abs=1e-11 * (1 + scale))

    def test_where_an_argument_stands_still_no_derivative_is_asked_for(self):
        assert mg.jvp(lambda x, y: x**y, (-2.0, 3.0), (1.0, 0.0)) == (-8.0, 12.0)
        assert mg.jvp(lambda x, y: mg.sqrt(x) + y, (0.0, 1.0), (0, 2)) == (1.0, 2.0)
        with pytest.raises(ValueError, match="the derivative of"):
            mg.jvp(lambda x, y: x**y, (-2.0, 3.0), (1.0, 1.0))
        with pytest.raises(ZeroDivisionError, match=r"the derivative of sqrt\(0\.0\)"):
            mg.jvp(mg.sqrt, (0.0,), (1.0,))

    @pytest.mark.parametrize(
        ("g", "x", "slope"),
        [
            (mg.relu, 0.0, 0.0),
            (mg.abs, 0.0, 0.0),
            (lambda x: mg.maximum(x, x), 2.0, 1.0),
            (lambda x: mg.maximum(1.0, x), 1.0, 0.0),
            (lambda x: mg.detach(x) * x, 3.0, 3.0),
            (lambda x: x > 2, 3.0, 0.0),
            (lambda x: x, 3.0, 1.0),
            (lambda x: 5.0, 3.0, 0.0),
            (lambda x: x - x, 3.0, 0.0),
            (lambda x: mg.take([x, 2 * x], 1), 3.0, 2.0),
            (lambda x: mg.dot([x, 2.0, x], [x, x, 1.0]), 3.0, 9.0),
        ],
    )
    def test_ties_kinks_and_constants_are_those_of_the_gradient(self, g, x, slope):
        assert mg.jvp(g, (x,), (2.0,))[1] == 2 * slope
        assert mg.vjp(g, x)[1](2.0) == (2 * slope,)

    def test_nan_goes_through(self):
        assert math.isnan(mg.jvp(lambda x: x * x, (2.0,), (math.nan,))[1])
        assert math.isnan(mg.jvp(lambda x: x * x, (math.nan,), (1.0,))[1])

    def test_a_function_of_many_numbers(self):
        weights = np.arange(12.0).reshape(3, 4)
        value, tangent = mg.jvp(lambda x: weights @ x, (np.ones(4),), (np.array([1.0, 0.0, 0.0, -1.0]),))
        assert (value.tolist(), tangent.tolist()) == ([6.0, 22.0, 38.0], [-3.0, -3.0, -3.0])
        assert mg.jvp(lambda x: [], (1.0,), (1.0,)) == ([], [])
        assert mg.jvp(lambda x: 2.0, ([],), ([],)) == (2.0, 0.0)

    def test_what_is_written_by_hand_and_compiled_functions_inside(self):
        @mg.operation
        def product(x, y):
            return x * y, lambda g: (g * y, g * x)

        other = Value(5.0, requires_grad=False)
        several = mg.compile(lambda x: [x * x * other, x * 3.0], backend="numpy")
        assert mg.jvp(product, (2.0, 3.0), (1.0, 10.0)) == (6.0, 23.0)
        assert mg.jvp(lambda x: product(x, x), (3.0,), (1.0,)) == (9.0, 6.0)
        assert mg.jvp(lambda x: product(x, 4.0), (3.0,), (1.0,)) == (12.0, 4.0)
        assert mg.jvp(several, (2.0,), (1.0,)) == ([20.0, 6.0], [20.0, 3.0])
        with pytest.raises(ValueError, match="closure"):
            mg.jvp(product, (Value(2.0), 3.0), (1.0, 10.0))
        with pytest.raises(ValueError, match="no derivative"):
            mg.jvp(lambda x: mg.engine.primitive.Primitive("blind", "s", lambda x: x)(x), (2.0,), (1.0,))


class TestVjp:
    def test_it_is_the_gradient_of_the_weighted_sum(self):
        value, pull_back = mg.vjp(f, *point())
        assert flat(value) == flat(f(*point()))
        weights = [0.5, -1.0, 2.0, 3.0, 1.5, -2.0, 0.25, 4.0]
        cotangent = {"product": 0.5, "list": [-1.0, 2.0, 3.0], "line": Line(1.5, -2.0), "array": np.array([0.25, 4.0])}
        found = pull_back(cotangent)
        expected = mg.grad(lambda x, y: sum(w * o for w, o in zip(weights, flat_values(f(x, y)), strict=True)), (0, 1))(
            *point()
        )
        assert flat(found) == pytest.approx(flat(expected), rel=1e-14)
        assert type(found) is tuple
        assert list(found[1]) == ["a", "b", "c"]
        assert found[1]["c"].shape == (2,)
        assert type(found[0]) is float

    def test_it_may_be_called_often(self):
        _, pull_back = mg.vjp(lambda x: [x * x, mg.exp(x)], 1.0)
        assert pull_back([1.0, 0.0]) == pull_back([1.0, 0.0]) == (2.0,)
        assert pull_back([0, 1]) == (math.e,)
        assert pull_back((0.0, 0.0)) == (0.0,)

    def test_what_has_no_weight_needs_no_derivative(self):
        assert mg.vjp(lambda x: [x, mg.sqrt(x)], 0.0)[1]([2.0, 0.0]) == (2.0,)

    @given(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.lists(st.floats(-2, 2), min_size=2, max_size=2))
    @settings(max_examples=16)
    def test_the_two_products_agree(self, rates, weights):
        """A weighted sum of tangents is the gradient of the weighted sum, along the direction."""

        def g(p):
            return [p[0] * p[1] + mg.sin(p[2]), p[2] ** 2 * p[0]]

        p = [0.5, -1.5, 2.0]
        (slopes,) = mg.vjp(g, p)[1](weights)
        _, tangents = mg.jvp(g, (p,), (rates,))
        forward = math.fsum(w * t for w, t in zip(weights, tangents, strict=True))
        assert forward == pytest.approx(math.fsum(s * r for s, r in zip(slopes, rates, strict=True)), abs=1e-12)

    def test_of_a_compiled_function(self):
        w = Value(2.0)
        fast = mg.compile(lambda x: [x * w, x * x], backend="numpy")
        with mg.no_grad():
            value, pull_back = mg.vjp(fast, 3.0)
            assert (value, pull_back([1.0, 10.0])) == ([6.0, 9.0], (62.0,))
        value, pull_back = mg.vjp(fast, 3.0)
        assert ([v.data for v in value], pull_back([1.0, 10.0])[0].data) == ([6.0, 9.0], 62.0)
        assert w.grad == 0.0


def flat_values(nested):
    """The numbers and Values in a container, in order."""
    if isinstance(nested, dict):
        return [item for part in nested.values() for item in flat_values(part)]
    if isinstance(nested, (list, tuple, np.ndarray)):
        return [item for part in nested for item in flat_values(part)]
    return [nested]


def slope(g):
    """The derivative of a function of one number, forward."""
    return lambda x: mg.jvp(g, (x,), (1.0,))[1]


def backward_slope(g):
    """The same, backward."""
    return lambda x: mg.vjp(g, x)[1](1.0)[0]


class TestHigherOrders:
    ways = pytest.mark.parametrize("first", [slope, backward_slope, mg.grad])

    @ways
    @pytest.mark.parametrize("second", [slope, backward_slope, mg.grad])
    @pytest.mark.parametrize("third", [slope, backward_slope, mg.grad])
    def test_in_all_orders(self, first, second, third):
        x = 0.75
        exact = (6 - 9 * x * x) * math.sin(x) + (18 * x - x**3) * math.cos(x)
        assert third(second(first(lambda x: mg.sin(x) * x**3)))(x) == pytest.approx(exact, rel=1e-13)

    @ways
    def test_a_derivative_inside_of_a_function(self, first):
        def g(x):
            return x * first(lambda y: x * y * y)(x)  # 2 * x**3

        assert first(g)(3.0) == 54.0

    def test_forward_over_reverse_is_the_hessian_times_a_vector(self):
        def g(p):
            return p[0] ** 2 * p[1] + mg.exp(p[0] * p[1])

        p, v = [0.5, -1.0], [2.0, 3.0]
        assert mg.jvp(mg.grad(g), (p,), (v,))[1] == pytest.approx(mg.hvp(g)(p, v), rel=1e-14)

    def test_values_in_the_arguments_make_graphs(self):
        x, t, w = Value(3.0), Value(2.0), Value(5.0)
        value, tangent = mg.jvp(lambda x: [x**2, 1.0], (x,), (t,))
        tangent[0].backward()
        assert (value[0].data, value[1], tangent[0].data, x.grad, t.grad) == (9.0, 1.0, 12.0, 4.0, 6.0)
        x.grad = 0.0
        _, tangent = mg.jvp(lambda x: x**2, (3.0,), (t,))
        assert (tangent.data, mg.gradient(tangent, t)) == (12.0, 6.0)
        (slope_of_x,) = mg.vjp(lambda x: x**2, x)[1](1.0)
        slope_of_x.backward()
        assert (slope_of_x.data, x.grad) == (6.0, 2.0)
        (slope_of_x,) = mg.vjp(lambda x: x**2, 3.0)[1](w)
        slope_of_x.backward()
        assert w.grad == 6.0

    def test_a_pull_back_is_differentiated_by_what_it_is_given(self):
        _, pull_back = mg.vjp(lambda x: [x**2, x], 3.0)
        assert mg.jacobian(lambda w: pull_back(w))([1.0, 1.0]) == ([6.0, 1.0],)
        assert mg.jvp(pull_back, ([1.0, 1.0],), ([1.0, 0.0],)) == ((7.0,), (6.0,))


class TestStateAround:
    def test_no_gradient_is_left_behind_and_none_is_read(self):
        w = Value(2.0)
        w.grad = 7.0
        mg.jvp(lambda x: x * w, (3.0,), (1.0,))
        mg.vjp(lambda x: x * w, 3.0)[1](1.0)
        assert w.grad == 7.0

    def test_what_is_closed_over_stands_still(self):
        x = Value(3.0)
        assert mg.jvp(lambda y: y * x, (x,), (1.0,))[1].data == 3.0
        assert mg.vjp(lambda y: y * x, 3.0)[1](1.0)[0].data == 3.0

    def test_under_no_grad(self):
        with mg.no_grad():
            assert mg.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
            assert mg.vjp(lambda x: x * x, 3.0)[1](1.0) == (6.0,)
        assert mg.jvp(lambda x: mg.no_grad()(lambda: x * x)() * x, (3.0,), (1.0,)) == (27.0, 9.0)

    def test_an_anomaly_is_found(self):
        with mg.detect_anomaly(), pytest.raises(FloatingPointError, match="nan"):
            mg.jvp(lambda x: x * 2, (3.0,), (math.nan,))

    def test_frozen_values_as_arguments(self):
        x = Value(3.0, requires_grad=False)
        assert mg.jvp(lambda x: x * x, (x,), (1.0,))[1].data == 6.0
        assert mg.vjp(lambda x: x * x, x)[1](1.0)[0].data == 6.0

    def test_a_deep_chain(self):
        def g(x):
            for _ in range(3_000):
                x = mg.sin(x)
            return x

        assert mg.jvp(g, (0.5,), (1.0,))[1] == pytest.approx(mg.grad(g)(0.5), rel=1e-12)


PROGRAMS = {
    "containers": (
        lambda x, t: mg.jvp(
            f,
            (x[0], {"a": x[1], "b": [x[2]], "c": np.array(x[:2])}),
            (t[0], {"a": t[1], "b": [t[2]], "c": np.array(t[:2])}),
        )
    ),
    "a sum of products": lambda x, t: mg.jvp(lambda p: mg.dot(p, [2.0, p[0], p[1]]), (list(x),), (list(t),)),
    "primitives": lambda x, t: mg.jvp(
        lambda p: [mg.leaky_relu(p[0], p[1]), mg.gelu(p[1]) / p[2], p[2] ** p[0], mg.maximum(p[0], p[1])], (x,), (t,)
    ),
    "at ties": lambda x, t: mg.jvp(lambda p: [mg.maximum(p[0], p[0] * 1.0), mg.relu(p[0] - p[0])], (x,), (t,)),
    "only one moves": lambda x, t: mg.jvp(lambda p, q: p * q + q, (x[0], x[1]), (t[0], 0.0)),
    "taken": lambda x, t: mg.jvp(lambda p: mg.take([p[0], p[1] ** 2, 5.0], 1), (x,), (t,)),
    "constants": lambda x, t: mg.jvp(lambda p: [3.0, p[0] > 0, mg.detach(p[0])], (x,), (t,)),
    "itself": lambda x, t: mg.jvp(lambda p: p, (2.0,), (t[0],)),
    "numbers": lambda x, t: mg.jvp(lambda p: p * x[0], (2.0,), (t[0],)),
    "second order": lambda x, t: mg.jvp(mg.grad(lambda p: mg.sin(p[0]) * p[1] ** 2 * p[2]), (x,), (t,)),
    "forward twice": lambda x, t: mg.jvp(
        lambda p: mg.jvp(lambda q: mg.tanh(q[0] * q[1]) * q[2], (p,), (t,))[1], (x,), (t,)
    ),
    "under no_grad": lambda x, t: mg.no_grad()(lambda: mg.jvp(lambda p: p[0] * p[1], (x,), (t,)))(),
    "backward": lambda x, t: mg.vjp(lambda p: [p[0] * p[1], mg.exp(p[2])], x)[1]([t[0], t[1]]),
    "backward, its value": lambda x, t: mg.vjp(lambda p: {"a": p[0] * p[1], "b": 2.0}, x)[0],
    "forward over backward": lambda x, t: mg.jvp(lambda p: mg.vjp(lambda q: q[0] ** 3 * q[1], p)[1](t[2]), (x,), (t,)),
}


class TestCompiled:
    @backends
    @pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
    def test_is_what_eager_is(self, program, backend, own_cache):
        fast = mg.compile(program, backend=backend)
        for as_values in (False, True):
            for x, t in (([0.5, -0.25, 2.0], [2.0, 1.0, -1.0]), ([1.5, 0.75, 0.5], [0.5, 0.0, 3.0])):
                if as_values:
                    x, t = [Value(item) for item in x], [Value(item) for item in t]
                else:
                    x, t = np.array(x), np.array(t)
                eager, compiled = flat_values(program(x, t)), flat_values(fast(x, t))
                assert flat(compiled) == pytest.approx(flat(eager), rel=1e-13, abs=1e-14)
                assert [isinstance(item, Value) for item in compiled] == [isinstance(item, Value) for item in eager]

    @backends
    def test_its_gradients_are_those_of_eager(self, backend, own_cache):
        def g(x, t):
            return mg.jvp(lambda p: mg.sin(p[0]) * p[1] ** 2, (x,), (t,))[1]

        found = []
        for function in (g, mg.compile(g, backend=backend)):
            x, t = [Value(0.5), Value(-1.5)], [Value(2.0), Value(1.0)]
            function(x, t).backward()
            found.append([value.grad for value in (*x, *t)])
        assert found[1] == pytest.approx(found[0], rel=1e-13)

    @backends
    def test_an_index_that_is_an_argument(self, backend, own_cache):
        def g(x, t, index):
            return mg.jvp(lambda p: mg.take([p[0], p[1] ** 2, 5.0], index) * p[0], (x,), (t,))

        runs = Runs()
        fast = mg.compile(lambda x, t, index: (print(end="", file=runs), g(x, t, index))[1], backend=backend)
        for index in range(-3, 3):
            assert fast([0.5, 3.0], [1.0, 2.0], index) == pytest.approx(g([0.5, 3.0], [1.0, 2.0], index))
        assert runs.times == 1

    @backends
    def test_a_bias_that_moves_where_weights_and_inputs_do_not(self, backend, own_cache):
        neuron = mg.nn.Neuron(3, activation=lambda x: x * x)
        for weight, number in zip(neuron.w, [1.0, 2.0, 3.0], strict=True):
            weight.data = number

        def with_bias(bias, x):
            before, neuron.b = neuron.b, bias
            try:
                return neuron(x)
            finally:
                neuron.b = before

        def g(bias, x):
            return mg.jvp(lambda b: with_bias(b, x), (bias,), (1.0,))

        for function in (g, mg.compile(g, backend=backend)):
            assert [found.data for found in function(0.5, [1.0, 1.0, 1.0])] == [42.25, 13.0]
            with mg.no_grad():
                assert function(0.5, [1.0, 1.0, 1.0]) == (42.25, 13.0)

    @backends
    def test_where_a_derivative_does_not_exist_it_raises_what_eager_raises(self, backend, own_cache):
        fast = mg.compile(lambda x, t: mg.jvp(mg.sqrt, (x,), (t,))[1], backend=backend)
        assert fast(4.0, 1.0) == 0.25
        assert fast(0.0, 0.0) == 0.0
        with pytest.raises(ZeroDivisionError, match="the derivative of sqrt"):
            fast(0.0, 1.0)

    def test_what_has_no_derivative_is_named(self, own_cache):
        blind = mg.primitive("blind_of_jvp", "blind", lambda x: x, replace=True)
        fast = mg.compile(lambda x: mg.jvp(blind, (x,), (1.0,))[1], backend="numpy")
        with pytest.raises(ValueError, match="no derivative"):
            fast(2.0)


@pytest.mark.parametrize("transform", [mg.grad, mg.value_and_grad, mg.hessian])
@pytest.mark.parametrize("output", [[1.0], (1.0, 2.0), {"a": 1.0}, np.array([1.0]), Line(1.0, 2.0)], ids=repr)
def test_a_gradient_of_several_numbers_is_refused_and_the_jacobian_is_named(transform, output):
    with pytest.raises(TypeError, match=rf"one number, not {type(output).__name__}: mg.jacobian takes those"):
        transform(lambda x: output)(1.0)
    assert flat(mg.jacobian(lambda x: output)(1.0)) == [0.0] * len(output)


def test_the_tangent_of_a_choice_that_only_its_condition_moves_is_0():
    w = Value(2.0)
    value, tangent = mg.jvp(lambda c: mg.where(c, w, 3.0), (1.0,), (1.0,))
    assert value.data == 2.0
    assert getattr(tangent, "data", tangent) == 0.0
