"""Losses with derivatives inside, from all sides: what is refused, what changes between calls, and what is around."""

import math

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.differentiation import Differentiation, differentiated, running

NATIVE = [pytest.param("numpy", marks=pytest.mark.slow), pytest.param("llvm", marks=pytest.mark.slow)]
each_backend = pytest.mark.parametrize("backend", [*NATIVE, "jax"])
eager_and_compiled = pytest.mark.parametrize("backend", [None, *NATIVE])


def made(function, backend):
    return function if backend is None else mg.compile(function, backend=backend)


def number(found):
    return found.data if isinstance(found, Value) else found


def plain(found):
    """Whether it is a float, and no Value."""
    return type(found) in (float, np.float64)


class TestIssue:
    def test_the_gradient_of_a_loss_with_a_derivative_inside(self):
        w = Value(5.0)
        (w + mg.grad(lambda x: w * x**3)(2.0) ** 2).backward()
        assert w.grad == 1441.0

    @eager_and_compiled
    def test_the_inputs_of_a_derivative_that_is_over_are_no_values_to_others(self, backend):
        """2 * x depends on the input of the inner derivative, which is nobody's Value."""
        slope = made(mg.grad(lambda z: z * mg.grad(lambda x: x**2 + z)(2.0)), backend)(3.0)
        assert plain(slope)
        assert slope == 4.0

    @eager_and_compiled
    def test_a_derivative_inside_that_reaches_nothing_is_a_number_inside_of_another(self, backend):
        seen = []

        def f(x):
            slope = mg.grad(lambda y: y**2)(3.0)
            seen.append(isinstance(slope, float))
            return slope * x

        assert made(mg.grad(lambda x: f(x) * x), None)(2.0) == 24.0
        assert seen == [True]
        assert made(mg.grad(lambda x: mg.grad(lambda y: y**2)(3.0) * x * x), backend)(2.0) == 24.0

    @eager_and_compiled
    def test_a_value_that_is_argument_and_closed_over(self, backend):
        w = Value(3.0)
        loss = made(lambda v: mg.grad(lambda y: y * y * w)(v), backend)
        loss(w).backward()
        assert w.grad == 12.0  # of 2 * v * w, by both

    @eager_and_compiled
    def test_a_function_that_returns_what_it_closes_over(self, backend):
        w = Value(3.0)

        def loss(x):
            value, slope = mg.value_and_grad(lambda y: w)(x)
            forward, tangent = mg.jvp(lambda y: [w, y], (x,), (2.0,))
            return value + slope + sum(forward) + 10 * sum(tangent)

        result = made(loss, backend)(2.0)
        result.backward()
        assert (result.data, w.grad) == (3.0 + 3.0 + 2.0 + 20.0, 2.0)

    @eager_and_compiled
    def test_a_value_computed_outside(self, backend):
        w = Value(3.0)
        square = w * w
        made(lambda x: mg.grad(lambda y: square * y * y)(x), backend)(2.0).backward()
        assert w.grad == 24.0

    def test_nan_and_depth(self):
        w = Value(math.nan)
        assert math.isnan(mg.grad(lambda x: w * x)(2.0).data)
        w = Value(1.0)

        def deep(x):
            for _ in range(3000):
                x = x * w
            return x

        slope = mg.grad(deep)(2.0)
        slope.backward()
        assert (slope.data, w.grad) == (1.0, 3000.0)

    def test_what_f_raises_leaves_nothing_running(self):
        w = Value(2.0)
        with pytest.raises(ZeroDivisionError):
            mg.grad(lambda x: w / (x - 2.0))(2.0)
        assert running() == []
        (w * w).backward()
        assert w.grad == 4.0

    def test_containers_and_arrays_hold_values(self):
        w = Value(2.0)
        slopes = mg.grad(lambda p: (w * p["a"] ** 2).sum() + p["b"])({"a": np.array([1.0, 2.0]), "b": 1.0})
        (slopes["a"].sum() + slopes["b"]).backward()
        assert w.grad == 6.0
        table = mg.jacobian(lambda x: w * x * x)(np.array([1.0, 3.0]))
        table.sum().backward()
        assert w.grad == 14.0


class TestConstants:
    """What SciPy needs are plain numbers: said by requires_grad=False, no_grad or detach."""

    @eager_and_compiled
    def test_values_that_require_no_gradient(self, backend):
        frozen = Value(5.0, requires_grad=False)
        assert plain(made(mg.grad(lambda x: frozen * x**3), backend)(2.0))
        w = Value(5.0)
        assert plain(made(mg.grad(lambda x: mg.detach(w) * x**3), backend)(2.0))
        assert plain(made(mg.grad(lambda x: mg.floor(w * x) * x), backend)(2.0))

    @eager_and_compiled
    def test_under_no_grad(self, backend):
        w = Value(5.0)
        for f, expected in (
            (mg.grad(lambda x: w * x**3), 60.0),
            (mg.hessian(lambda x: w * x**3), 60.0),
            (lambda x: mg.jvp(lambda y: w * y**3, (x,), (1.0,))[1], 60.0),
            (lambda x: mg.vjp(lambda y: w * y**3, x)[1](1.0)[0], 60.0),
            (lambda x: mg.hvp(lambda y: w * y**3)(x, 1.0), 60.0),
            (lambda x: mg.grad(lambda y: mg.grad(lambda z: w * y * z**2)(y) * y)(x), 120.0),
        ):
            function = made(f, backend)
            with mg.no_grad():
                found = [function(2.0), function(2.0)]
            assert found == [expected, expected]
            assert all(map(plain, found))
            assert isinstance(function(2.0), Value)
            with mg.no_grad():
                assert plain(function(2.0))

    @eager_and_compiled
    def test_under_no_grad_inside(self, backend):
        w = Value(5.0)

        def loss(x):
            with mg.no_grad():
                slope = mg.grad(lambda y: w * y**3)(x)
            return slope * w

        result = made(loss, backend)(2.0)
        result.backward()
        assert (result.data, w.grad) == (300.0, 60.0)
        assert made(loss, backend)(Value(2.0)).data == 300.0

    @eager_and_compiled
    def test_of_values_the_results_are_values_under_no_grad(self, backend):
        w = Value(5.0)
        function = made(mg.value_and_grad(lambda x: w * x**3), backend)
        with mg.no_grad():
            found = function(Value(2.0))
        assert [value.data for value in found] == [40.0, 60.0]
        assert not any(value.requires_grad for value in found)
        rates = mg.jvp(lambda x: x**3, (2.0,), (Value(1.0, requires_grad=False),))
        assert [value.data for value in rates] == [8.0, 12.0]
        assert not any(value.requires_grad for value in rates)

    @eager_and_compiled
    def test_frozen_arguments(self, backend):
        w, frozen = Value(5.0), Value(2.0, requires_grad=False)
        slope = made(mg.grad(lambda x: x**3), backend)(frozen)
        assert (slope.data, slope.requires_grad) == (12.0, False)
        made(mg.grad(lambda x: w * x**3), backend)(frozen).backward()
        assert (w.grad, frozen.grad) == (12.0, 0.0)
        assert mg.value_and_grad(lambda x: 7.0)(frozen) == (7.0, 0.0)

    def test_a_pull_back_under_no_grad_or_of_a_function_run_under_it(self):
        w = Value(5.0)
        _, pull_back = mg.vjp(lambda x: w * x**3, 2.0)
        with mg.no_grad():
            assert pull_back(1.0) == (60.0,)
            _, constant = mg.vjp(lambda x: w * x**3, 2.0)
        pull_back(1.0)[0].backward()
        assert w.grad == 12.0
        assert constant(1.0) == (60.0,)
        weight = Value(3.0)
        constant(weight)[0].backward()
        assert weight.grad == 60.0
        assert number(mg.grad(lambda c: constant(c)[0])(3.0)) == 60.0

    @pytest.mark.slow
    @pytest.mark.parametrize("compiled", [False, True])
    def test_scipy(self, compiled):
        from scipy.optimize import minimize

        scale = mg.array([1.0, 10.0])

        def valley(p):
            return (scale * (p - 3.0) ** 2).sum()

        value_and_grad = mg.value_and_grad(valley)
        if compiled:
            value_and_grad = mg.compile(value_and_grad)
        with mg.no_grad():
            found = minimize(value_and_grad, np.zeros(2), jac=True)
        assert found.x == pytest.approx([3.0, 3.0], abs=1e-5)
        for weight in scale:
            weight.requires_grad = False
        found = minimize(value_and_grad, np.zeros(2), jac=True, hess=mg.hessian(valley), method="trust-exact")
        assert found.x == pytest.approx([3.0, 3.0], abs=1e-5)
        assert found.nit < 20


class TestPlainNumbersInside:
    """Numbers of what depends on the inputs of a derivative would lose gradients without a word."""

    @pytest.mark.parametrize(
        "transform",
        [
            mg.grad,
            mg.value_and_grad,
            mg.jacobian,
            mg.hessian,
            lambda f: lambda x: mg.hvp(f)(x, 1.0),
            lambda f: lambda x: mg.jvp(f, (x,), (1.0,)),
            lambda f: lambda x: mg.vjp(f, x),
        ],
    )
    @pytest.mark.parametrize("x", [2.0, Value(2.0), Value(2.0, requires_grad=False)], ids=["float", "Value", "frozen"])
    def test_a_gradient_without_a_graph_is_refused(self, transform, x):
        with pytest.raises(ValueError, match=r"^mg.gradient inside of .* write create_graph=True; or.*no_grad"):
            transform(lambda y: mg.gradient(y**3, y) * y)(x)
        with pytest.raises(ValueError, match=r"^backward\(\) inside of .* write create_graph=True"):
            transform(lambda y: (y**3).backward() or y)(x)

    def test_with_a_graph_they_are_right(self):
        def by_backward(y):
            cube = y**3
            cube.backward(create_graph=True)
            return y.grad * y

        for f in (by_backward, lambda y: mg.gradient(y**3, y, create_graph=True) * y):
            assert mg.grad(f)(2.0) == 36.0
            assert mg.grad(f)(Value(2.0)).data == 36.0

    @eager_and_compiled
    def test_under_no_grad_they_are_constants(self, backend):
        def f(y):
            cube = y**3
            with mg.no_grad():
                slope = mg.gradient(cube, y)
            return slope * y

        def by_backward(y):
            cube = y**3
            with mg.no_grad():
                cube.backward()
            return y.grad * y

        assert made(mg.grad(f), backend)(2.0) == mg.grad(by_backward)(2.0) == 12.0

    @pytest.mark.parametrize("backend", NATIVE)
    def test_compiled_they_are_refused_too(self, backend):
        w = Value(2.0)
        with pytest.raises(ValueError, match=r"mg\.gradient inside of a function"):
            mg.compile(mg.grad(lambda y: mg.gradient(y**3, y) * y), backend=backend)(2.0)
        fast = mg.compile(lambda y: mg.grad(lambda z: z * mg.gradient(w**3, w))(y), backend=backend)
        assert fast(2.0) == 12.0  # it depends on w alone

    @pytest.mark.parametrize("backend", NATIVE)
    def test_a_program_with_such_numbers_is_no_way_around(self, backend):
        """It was traced where they are allowed, and is differentiated later."""

        def in_iterations(x):
            return sum(mg.vmap(lambda n: mg.gradient(x**3 * n, x) * x)([1.0] * 8))

        def under_no_grad(x):
            with mg.no_grad():
                return mg.grad(lambda y: y * mg.gradient(x**3, x))(x) * x

        for function in (lambda x: mg.gradient(x**3, x) * x, in_iterations):
            fast = mg.compile(function, backend=backend)
            assert fast(Value(2.0)).data == function(Value(2.0)).data
            for transform in (mg.grad, mg.hessian):
                with pytest.raises(ValueError, match=r"^mg\.gradient inside of a function"):
                    transform(fast)(2.0)
        fast = mg.compile(under_no_grad, backend=backend)
        assert fast(Value(2.0)).data == under_no_grad(Value(2.0)).data == 24.0

    def test_what_does_not_depend_on_the_inputs_may_be_trained_inside(self):
        def f(x, by=1.0):
            w = Value(0.0)
            mg.fit(lambda t: (w - t * by) ** 2, [3.0], mg.optim.SGD([w], 0.5))
            return w.data * x * x

        assert mg.grad(f)(2.0) == 12.0
        with pytest.raises(ValueError, match=r"backward\(\) inside of a function"):
            mg.grad(lambda x: f(x, x))(2.0)

    @pytest.mark.parametrize("backend", NATIVE)
    def test_a_graph_by_a_frozen_argument_is_refused_compiled_too(self, backend):
        fast = mg.compile(lambda v: mg.gradient(v**3 * 2.0, v, create_graph=True), backend=backend)
        assert fast(Value(2.0)).data == 24.0
        with pytest.raises(ValueError, match="requires no gradient, so what is computed from it is not recorded"):
            fast(Value(2.0, requires_grad=False))

    @pytest.mark.slow
    def test_a_value_of_a_number_is_refused_and_grad_is_named(self):
        w = Value(2.0)

        def loss(t):
            time = Value(t)
            return mg.gradient(w * time**2, time, create_graph=True)

        assert loss(3.0).data == 12.0
        with pytest.raises(mg.TraceError, match=r"as by a Value\(x\), write mg\.grad\(f\)\(x\)"):
            mg.compile(loss)(3.0)


class TestChanges:
    def test_a_change_between_the_loss_and_backward_is_an_error(self):
        w = Value(5.0)
        slope = mg.grad(mg.grad(lambda x: w * x**3))(2.0)
        w.data = 7.0
        slope.backward()
        assert w.grad == 12.0  # of the forward pass
        _, pull_back = mg.vjp(lambda x: w * x**3, 2.0)
        w.data = 8.0
        with pytest.raises(ValueError, match=r"was 7\.0 in the forward pass"):
            pull_back(1.0)

    @eager_and_compiled
    def test_freezing_and_freeing(self, backend):
        w = Value(5.0)
        slope = made(mg.grad(lambda x: w * x**3), backend)
        for _ in range(2):
            w.requires_grad, w.grad = True, 0.0
            result = slope(2.0)
            result.backward()
            assert (result.data, w.grad) == (60.0, 12.0)
            w.requires_grad = False
            assert plain(slope(2.0))
            assert slope(2.0) == 60.0

    @pytest.mark.parametrize("backend", [False, *NATIVE])
    def test_a_callback_of_fit_freezes_a_parameter(self, backend):
        w, v = Value(1.25), Value(0.5)

        def freeze(_):
            v.requires_grad = False

        def loss(x):
            return mg.grad(lambda y: w * y**3 + v * y)(x) ** 2

        mg.fit(loss, [0.5, 1.0], mg.optim.SGD([w, v], 0.01), epochs=3, seed=0, callback=freeze, compile=backend)
        assert v.data != 0.5
        after = w.data, v.data
        w.data, v.data, v.requires_grad = 1.25, 0.5, True
        mg.fit(loss, [0.5, 1.0], mg.optim.SGD([w, v], 0.01), epochs=3, seed=0, callback=freeze)
        assert after == pytest.approx((w.data, v.data), rel=1e-12)


class TestCompiledFunctionsInside:
    @pytest.mark.parametrize("backend", NATIVE)
    def test_a_program_runs_where_its_gradients_suffice(self, backend):
        fast = mg.compile(lambda x, y: x * x * mg.sin(y), backend=backend)
        made_by = []

        def f(x):
            for _ in range(3):
                x = fast(x * 0.5, 2.0)
                made_by.append(x._op.startswith("compiled"))
            return x

        def as_written(x):
            return fast.function(fast.function(fast.function(x * 0.5, 2.0) * 0.5, 2.0) * 0.5, 2.0)

        assert mg.grad(f)(1.5) == pytest.approx(mg.grad(as_written)(1.5))
        assert made_by == [True] * 3
        assert mg.hessian(f)(1.5) == pytest.approx(mg.hessian(as_written)(1.5))
        assert made_by == [True] * 3 + [False] * 3

    @pytest.mark.parametrize("backend", NATIVE)
    def test_with_values_around_it(self, backend):
        w = Value(5.0)
        closed = mg.compile(lambda x: w * x**3, backend=backend)
        given = mg.compile(lambda v, x: v * x**3, backend=backend)
        several = mg.compile(lambda v, x: [v * x**3, x], backend=backend)
        for f in (
            closed,
            lambda x: closed(x * 1.0),
            lambda x: given(w, x),
            lambda x: given(w * 1.0, x),
            lambda x: given(1.0, x) * w,
            lambda x: several(w, x)[0],
            lambda x: given(w * x, x) / x,
        ):
            for order in (1, 2):
                w.grad = 0.0
                result = (mg.grad if order == 1 else mg.hessian)(f)(2.0)
                result.backward()
                assert (result.data, w.grad) == pytest.approx((60.0, 12.0))
            with mg.no_grad():
                assert mg.grad(f)(2.0) == pytest.approx(60.0)

    @pytest.mark.parametrize("backend", NATIVE)
    def test_inside_of_two_derivatives(self, backend):
        fast = mg.compile(lambda v, x: v * x**3, backend=backend)
        assert mg.grad(lambda v: mg.grad(lambda x: fast(v, x))(2.0))(5.0) == 12.0
        assert mg.grad(lambda v: mg.grad(lambda x: fast(3.0, x))(2.0) * v)(5.0) == 36.0

    @pytest.mark.parametrize("backend", NATIVE)
    def test_the_result_of_a_program_from_outside(self, backend):
        w = Value(5.0)
        outside = mg.compile(lambda: w * w, backend=backend)()
        mg.grad(lambda x: outside * x**3)(2.0).backward()
        assert w.grad == 120.0


class TestLoops:
    @eager_and_compiled
    def test_iterations_that_are_given_frozen_and_other_values(self, backend):
        weights = [Value(0.5 * n, requires_grad=n % 3 == 0) for n in range(12)]
        given = made(lambda vs: mg.vmap(lambda v: mg.grad(lambda y: v * y**2)(3.0))(vs), backend)(weights)
        assert [number(slope) for slope in given] == [3.0 * n for n in range(12)]
        assert [plain(slope) for slope in given] == [n % 3 != 0 for n in range(12)]

    @eager_and_compiled
    def test_iterations_of_detached_and_other_numbers(self, backend):
        """Symbols alike: what tells the iterations apart is whether a gradient flows to them."""
        w = Value(2.0)

        def f(x):
            given = [mg.detach(w * x) if n < 6 else w * x for n in range(12)]
            return mg.vmap(lambda v: mg.grad(lambda y: v * y**2)(3.0))(given)

        slopes = made(f, backend)(Value(1.0))
        assert [plain(slope) for slope in slopes] == [n < 6 for n in range(12)]
        assert [number(slope) for slope in slopes] == [12.0] * 12
        sum(slopes).backward()
        assert w.grad == 36.0

    @eager_and_compiled
    def test_a_state_that_becomes_connected_on_the_way(self, backend):
        w = Value(2.0)

        def step(state, x):
            return mg.where(x > 3, w, mg.detach(state)) * 1.0, mg.grad(lambda y: state * y**2)(x)

        def f(xs):
            return mg.scan(step, Value(1.0, requires_grad=False), xs)[1]

        xs = [float(n) for n in range(10)]
        expected = f(xs)
        found = made(f, backend)(xs)
        assert [number(slope) for slope in found] == [number(slope) for slope in expected]
        sum(found[5:]).backward()
        assert w.grad == 70.0

    @pytest.mark.parametrize("backend", NATIVE)
    def test_bodies_with_derivatives_by_plain_numbers_run_a_few_times_only(self, backend):
        w, runs = Value(2.0), 0

        class Counter:
            def __call__(self, x):
                return mg.grad(lambda y: w * y**3)(x) + mg.grad(lambda y: w * y**2)(3.0)

        body = Counter()
        fast = mg.compile(lambda xs: sum(mg.vmap(lambda x: body(x))(xs)), backend=backend)
        result = fast([float(n) for n in range(50)])
        result.backward()
        assert w.grad == sum(3 * n * n + 6.0 for n in range(50))
        assert runs == 0

    @eager_and_compiled
    def test_a_loop_inside_of_a_derivative_around_a_derivative(self, backend):
        def f(v):
            slopes = mg.vmap(lambda x: mg.grad(lambda y: v * y**3)(x) * v)([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
            return sum(slopes)

        assert made(mg.grad(f), backend)(5.0) == 2 * 5.0 * 3 * 140
        assert made(mg.hessian(f), backend)(5.0) == 2 * 3 * 140

    @eager_and_compiled
    def test_a_loop_in_a_loop(self, backend):
        w = Value(2.0)

        def f(x):
            outer, inner = [w * x * n for n in range(7)], [x * n for n in range(7)]

            def cell(a, b):
                value, slope = mg.value_and_grad(lambda y: a)(3.0)
                return value + slope + mg.grad(lambda y: a * y**2 * b)(3.0)

            return sum(sum(row) for row in mg.vmap(lambda a: mg.vmap(lambda b: cell(a, b))(inner))(outer))

        result = made(f, backend)(Value(1.0))
        result.backward()
        assert (result.data, w.grad) == (2 * 7 * 21 + 2 * 6 * 21 * 21, 7 * 21 + 6 * 21 * 21)

    @eager_and_compiled
    def test_a_derivative_around_a_loop_that_closes_over_values(self, backend):
        w = Value(0.5)

        def swing(x):
            return mg.scan(lambda h, _: (mg.sin(w * h) + x, None), x, length=9)[0]

        w.grad = 0.0
        result = made(mg.grad(swing), backend)(0.7)
        result.backward()
        step = 2.0**-20
        with mg.no_grad():
            slopes = []
            for data in (0.5 + step, 0.5 - step):
                w.data = data
                slopes.append(mg.grad(swing)(0.7))
        assert w.grad == pytest.approx((slopes[0] - slopes[1]) / (2 * step), rel=1e-6)


class TestAround:
    def test_runs_that_end_in_another_order(self):
        """As those of two generators may."""
        runs = [Differentiation(), Differentiation()]
        first, second = (differentiated(run, (), as_written=False) for run in runs)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert running() == [runs[1]]
        second.__exit__(None, None, None)
        assert running() == []

    def test_parameters_of_modules_reach_the_loss(self):
        model = mg.nn.MLP(1, [3, 1], activation="tanh")
        loss = sum(mg.grad(lambda x: mg.tanh(model([x])) ** 2)(x) ** 2 for x in (0.5, -1.0))
        loss.backward()
        found = [parameter.grad for parameter in model.parameters()]

        def penalty(numbers):
            for parameter, data in zip(model.parameters(), numbers, strict=True):
                parameter.data = data
            with mg.no_grad():
                return sum(mg.grad(lambda x: mg.tanh(model([x])) ** 2)(x) ** 2 for x in (0.5, -1.0))

        numbers, step = [parameter.data for parameter in model.parameters()], 2.0**-18
        for position, slope in enumerate(found):
            both = []
            for sign in (step, -step):
                moved = list(numbers)
                moved[position] += sign
                both.append(penalty(moved))
            assert slope == pytest.approx((both[0] - both[1]) / (2 * step), rel=1e-5, abs=1e-8)

    def test_graphs_of_graphs_to_the_third_order(self):
        w = Value(2.0)
        slope = mg.grad(lambda x: mg.sin(w * x))(0.5)  # w cos(w / 2)
        by_w = mg.gradient(slope, w, create_graph=True)
        twice = mg.gradient(by_w, w, create_graph=True)
        thrice = mg.gradient(twice, w)
        cos, sin = math.cos(1.0), math.sin(1.0)
        assert by_w.data == pytest.approx(cos - sin)
        assert twice.data == pytest.approx(-sin - 0.5 * cos)
        assert thrice == pytest.approx(-0.75 * cos + 0.25 * sin)

    @each_backend
    def test_jax_and_the_others_of_a_network(self, backend):
        model = mg.nn.MLP(1, [4, 1], activation="tanh")

        def loss(t):
            return (mg.grad(lambda s: model([s]))(t) + model([t])) ** 2

        parameters = model.parameters()
        expected = loss(0.5)
        expected.backward()
        slopes = [parameter.grad for parameter in parameters]
        model.zero_grad()
        found = mg.compile(loss, backend=backend)(0.5)
        found.backward()
        assert found.data == pytest.approx(expected.data)
        assert [parameter.grad for parameter in parameters] == pytest.approx(slopes)

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_a_pure_function_of_jax(self):
        import jax

        w = Value(1.25, label="w")

        def loss(xs):
            return sum(mg.vmap(lambda x: mg.grad(lambda y: w * y**3)(x) ** 2)(xs))

        xs = [0.5 + 0.1 * n for n in range(7)]
        pure, parameters = mg.to_jax(loss, xs)
        by_parameters, by_xs = jax.grad(pure, (0, 1))(parameters, np.array(xs))
        (slope,) = by_parameters.values()
        assert float(slope) == pytest.approx(sum(18 * 1.25 * x**4 for x in xs))
        assert by_xs == pytest.approx([36 * 1.25**2 * x**3 for x in xs])
