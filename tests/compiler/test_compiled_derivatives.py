"""Derivatives that are compiled, and derivatives of compiled functions."""

import math

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.tracing.derivatives import Derivatives
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow


def cubic(x):
    return x * x * x + mg.sin(2 * x)


def of_two(p):
    return p[0] ** 2 * p[1] + mg.dot([p[0], p[1]], [p[1], mg.tanh(p[0])]) + mg.maximum(p[0], p[1])


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("transform", "f", "argument"),
    [
        (mg.grad, cubic, 0.5),
        (mg.value_and_grad, cubic, 0.5),
        (mg.hessian, cubic, 0.5),
        (lambda f: mg.grad(mg.grad(mg.grad(f))), cubic, 0.5),
        (mg.grad, of_two, [0.5, -1.5]),
        (mg.value_and_grad, of_two, [0.5, -1.5]),
        (mg.jacobian, lambda p: [p[0] * p[1], mg.exp(p[0]), p[1]], [0.5, -1.5]),
        (mg.hessian, of_two, [0.5, -1.5]),
        (lambda f: lambda p: mg.hvp(f)(p, [1.0, 2.0]), of_two, [0.5, -1.5]),
    ],
)
def test_transforms_are_compiled_and_take_compiled_functions(transform, f, argument, backend):
    def flat(nested):
        parts = nested if isinstance(nested, (list, tuple)) else [nested]
        return [n for part in parts for n in (flat(part) if isinstance(part, (list, tuple)) else [part])]

    expected = flat(transform(f)(argument))
    fast = mg.compile(transform(f), backend=backend)
    for found in (fast(argument), fast(argument), transform(mg.compile(f, backend=backend))(argument)):
        assert flat(found) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert all(type(number) is float for number in flat(found))


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: mg.jvp(lambda y: [y, y * x], (2.0,), (5.0,))[1], [5.0, 15.0]),
        (lambda x: mg.jvp(lambda y: y, (2.0,), (5.0,))[1] * x, 15.0),
        (lambda x: mg.jvp(lambda y, z: [y, y * z, z], (x, 2.0), (5.0, 7.0))[1], [5.0, 31.0, 7.0]),
        (lambda x: mg.jvp(lambda y, z: z, (x, 2.0), (5.0, 7.0))[1], 7.0),
        (lambda x: mg.jvp(lambda y: [y, y * y], (x,), (x,))[1], [3.0, 18.0]),
        (lambda x: mg.grad(lambda y: y)(x) * x, 3.0),
        (lambda x: mg.jacobian(lambda y: [y[0], y[0] * y[1]])([x, 2.0]), [[1.0, 0.0], [2.0, 3.0]]),
        (lambda x: mg.vjp(lambda y: [y, y * y], x)[1]([3.0, 4.0])[0], 27.0),
    ],
    ids=[
        "jvp by a number",
        "jvp by a number alone",
        "jvp by both",
        "jvp by the second",
        "jvp by itself",
        "grad",
        "jacobian",
        "vjp",
    ],
)
def test_a_result_that_is_an_argument_has_its_derivative(f, expected, backend):
    assert f(3.0) == expected
    assert mg.compile(f, backend=backend)(3.0) == expected


def test_derivatives_of_a_number_among_the_arguments_are_numbers():
    w = Value(0.5)
    of_two = mg.jacobian(lambda x, a: [w * 1.0, mg.tanh(a)])
    of_one = mg.value_and_grad(lambda x, a: a * a)
    for found in (of_two([1.0], 2.0)[1][0], mg.compile(of_two)([1.0], 2.0)[1][0]):
        assert type(found) is float
    for found in (of_one([Value(1.0)], 2.0), mg.compile(of_one)([Value(1.0)], 2.0)):
        assert found == (4.0, [0.0])
        assert type(found[1][0]) is float


def test_gradients_inside_of_compiled_functions(backend):
    w, v = Value(0.75), Value(-0.5)

    def penalised(x):
        output = mg.tanh(w * x + v) * x
        slope = mg.gradient(output, [w, v], create_graph=True)
        return output + slope[0] * slope[0] + slope[1]

    for f in (penalised, lambda x: mg.grad(lambda y: y * x * w + w * 1)(w) + mg.take([w, v], 1)):
        results = []
        for function in (f, mg.compile(f, backend=backend)):
            w.grad = v.grad = 0.0
            result = function(Value(0.5))
            result.backward()
            results.append((result.data, w.grad, v.grad))
        assert results[1] == pytest.approx(results[0], rel=1e-12)


def test_a_gradient_through_an_index(backend):
    w = [Value(0.75), Value(-0.5), Value(2.0)]

    def f(x, index):
        row = mg.grad(lambda row: mg.take(row, index) ** 2 * x)(w)
        return row[0] + 2 * row[1] + 3 * row[2]

    runs = Runs()
    fast = mg.compile(lambda x, index: (print(end="", file=runs), f(x, index))[1], backend=backend)
    for index in (0, 1, 2, -1, -3):
        assert fast(Value(0.5), index).data == pytest.approx(f(Value(0.5), index).data)
    assert runs.times == 1


def test_derivatives_of_powers_inside_are_products_and_exist_at_0(backend):
    fast = mg.compile(mg.grad(lambda x: x**4), backend=backend)
    assert [fast(1.5), fast(-1.5)] == [4 * 1.5**3, -4 * 1.5**3]
    kinds = [kernel.kind for kernel in fast._last.compiled(False).program.kernels]
    assert "lower_power" not in kinds
    assert "log" not in kinds  # no derivative by the exponent, which is a plain number

    runs = Runs()
    derivative = mg.grad(lambda a: a**0 + a**4 + 3.0 * a)
    fast = mg.compile(lambda x: (print(end="", file=runs), derivative(x))[1], backend=backend)
    assert [fast(0.0), fast(2.0), fast(-2.0)] == [3.0, 35.0, -29.0]
    assert runs.times == 1


def test_gradients_inside_by_what_is_read_from_outside(backend):
    """Where the Value is the first number of the program, and where it is the start of a sum of products."""
    w, neuron = Value(0.5), mg.nn.Neuron(2, activation="tanh")
    outside = w * w

    def of_a_neuron():
        found = mg.gradient(neuron([w, 2.0]), [*neuron.parameters(), w])
        return [found[0] * 1.0, found[1] * 2.0, found[2] * 3.0, found[3] * 4.0]

    for f in (
        lambda: [mg.gradient(mg.sin(w), [w])[0] * w],
        of_a_neuron,
        lambda: [mg.gradient(outside, [w])[0] * neuron.b],
        lambda: [mg.gradient(w, [w])[0] * neuron.b],
    ):
        found = [getattr(number, "data", number) for number in mg.compile(f, backend=backend)()]
        assert found == pytest.approx([getattr(number, "data", number) for number in f()])


def test_a_gradient_inside_by_a_copy_is_no_gradient_by_the_products_that_are_equal_to_it(backend):
    def f(x, y):
        product = y * 1.0
        by_x = mg.grad(lambda a, b: a * b * product * x, argnums=0)(x, y)
        by_y = mg.grad(lambda a, b: a * b * product, argnums=1)(x, y)
        return by_x + 10 * by_y

    fast = mg.compile(f, backend=backend)
    for numbers in ((2.0, 3.0), (Value(2.0), Value(3.0))):
        assert float(getattr(fast(*numbers), "data", fast(*numbers))) == 2.0 * 9.0 + 10 * 6.0
        assert float(getattr(f(*numbers), "data", f(*numbers))) == 2.0 * 9.0 + 10 * 6.0


def test_a_factor_without_a_derivative_is_no_obstacle_to_the_gradient_by_another(backend, own_registry):
    steps = mg.primitive("steps_beside", "s", math.ceil)

    def f(x, y):
        return mg.grad(lambda a: a * a * steps(y))(x)

    for function in (f, mg.compile(f, backend=backend)):
        assert function(Value(1.5), Value(2.5)).data == 9.0


def test_a_gradient_inside_of_what_has_no_derivative_is_refused(backend, own_registry):
    steps = mg.primitive("steps_up", "s", math.ceil)

    def f(x):
        return mg.grad(lambda y: steps(y) * y)(x)

    for function in (f, mg.compile(f, backend=backend)):
        with pytest.raises(ValueError, match="has no derivative"):
            function(Value(1.5))


def test_an_index_that_is_a_value_is_refused_inside_too(backend):
    w = Value(1.0)

    def f(x):
        return mg.take([x, 2.0], w)

    for function in (f, mg.compile(f, backend=backend)):
        with pytest.raises(TypeError, match="an index must be an int, not Value"):
            function(Value(1.5))


def test_to_detect_anomalies_is_refused_inside_and_works_around_a_call(backend):
    def f(x):
        with mg.detect_anomaly():
            return x * x

    fast = mg.compile(lambda x: x * x, backend=backend)
    with mg.detect_anomaly(), pytest.raises(FloatingPointError, match=r"gives inf"):
        fast(Value(1e200))
    with pytest.raises(mg.TraceError, match=r"looking at results would freeze .*detect_anomaly.*around the call"):
        mg.compile(f, backend=backend)(Value(2.0))
    assert (f(Value(2.0)) * 1.0).data == 4.0  # the refusal has left nothing behind


def pendulum(steps):
    def positions(p):
        angle, speed, found = p[0], p[1], []
        for _ in range(steps):
            angle, speed = angle + 0.01 * speed, speed - 0.01 * p[2] * mg.sin(angle)
            found.append(angle)
        return found

    return positions


def operations(fast):
    """How many operations were traced."""
    return int(fast.explain(passes=True).splitlines()[1].split()[2].replace(",", ""))


class TestPlainNumbersInRows:
    """Rows of a Jacobian that differ in plain numbers are written once, whatever these are."""

    ROWS = ([0.0, 1.0, 2.0], [1.0, 1.0, -1.0], [-0.0, 3.0, 3.0], [2.0, 0.5, 1.0], [0.5, 7.0, 0.0], [1.5, 1.0, 2.0])

    @pytest.mark.parametrize(
        "row",
        [
            lambda p, a, b, c: a * p[0] + mg.exp(b * p[1] - c) / (p[0] + c),
            lambda p, a, b, c: mg.maximum(a * p[0], b * p[1]) - mg.where(p[2] < c, p[0] * c, p[1] * c),
            lambda p, a, b, c: mg.sin(mg.dot([a, b, c], p)) * a,
            lambda p, a, b, c: mg.dot([a, b, c, *[1.0] * 9], [*p] * 4) + mg.dot(p, p) * c,
            lambda p, a, b, c: a * (a * p[0]) + p[1] ** 2.0 * c + p[2] ** (b + 2.0),
        ],
    )
    def test_they_may_be_anything(self, row, backend):
        def residuals(p):
            return [row(p, *numbers) for numbers in self.ROWS]

        point = [0.4, 0.7, 1.1]
        fast = mg.compile(mg.jacobian(residuals), backend=backend)
        np.testing.assert_allclose(fast(point), mg.jacobian(residuals)(point), rtol=1e-14, atol=1e-300)

    def test_the_rules_run_for_all_of_many_rows_at_once(self, monkeypatch):
        asked, tell = [], Derivatives.contributions
        monkeypatch.setattr(
            Derivatives,
            "contributions",
            lambda self, position, *given: asked.append(position) or tell(self, position, *given),
        )
        data = np.random.default_rng(0).standard_normal((600, 3))
        lists = data.tolist()

        def in_lists(p):
            return [*(mg.tanh(mg.dot(numbers, p)) for numbers in lists), p[0] + mg.exp(p[1])]

        for f in (lambda p: np.tanh(data @ p), in_lists):
            asked.clear()
            found = mg.compile(mg.jacobian(f), backend="numpy")(np.array([0.4, 0.7, 1.1]))
            np.testing.assert_allclose(found, mg.jacobian(f)(np.array([0.4, 0.7, 1.1])), rtol=1e-14)
            assert len(asked) <= 2 * 7


class TestModes:
    """A Jacobian is computed forwards where inputs are few and outputs depend on one another; a Hessian always."""

    POINT = (1.0, 0.5, 9.81)

    @pytest.mark.unmeasured
    def test_outputs_that_depend_on_one_another_take_operations_in_proportion_to_their_number(self):
        counts = []
        for steps in (10, 20):
            fast = mg.compile(mg.jacobian(pendulum(steps)), backend="numpy")
            fast([*self.POINT])
            counts.append(operations(fast))
        assert 1.9 < counts[1] / counts[0] < 2.1

    def test_a_few_outputs_at_the_end_of_a_long_chain(self, backend):
        def chain(p):
            end = p[0]
            for _ in range(40):
                end = mg.sin(end) * p[1]
            return [end, end * p[2]]

        fast = mg.compile(mg.jacobian(chain), backend=backend)
        assert np.allclose(fast([*self.POINT]), mg.jacobian(chain)([*self.POINT]), rtol=1e-12, atol=1e-300)

    def test_outputs_that_do_not_take_one_pass_backwards_each(self):
        def apart(p):
            return [mg.exp(p[0] * t) * p[1] + p[2] for t in map(float, range(20))]

        fast = mg.compile(mg.jacobian(apart), backend="numpy")
        assert np.allclose(fast([*self.POINT]), mg.jacobian(apart)([*self.POINT]), rtol=1e-12, atol=0)

    @pytest.mark.unmeasured
    @pytest.mark.parametrize("steps", [1, 3, 18])
    def test_forwards_gives_what_eager_gives_backwards(self, steps, backend):
        fast = mg.compile(mg.jacobian(pendulum(steps)), backend=backend)
        expected = mg.jacobian(pendulum(steps))([*self.POINT])
        assert np.allclose(fast([*self.POINT]), expected, rtol=1e-12, atol=1e-15)

    @pytest.mark.unmeasured
    def test_it_is_differentiated_again(self, backend):
        def total(p):
            return sum(slope**2 for row in mg.jacobian(pendulum(5))(p) for slope in row)

        expected = mg.grad(total)([*self.POINT])
        assert mg.compile(mg.grad(total), backend=backend)([*self.POINT]) == pytest.approx(expected, rel=1e-11)

    @pytest.mark.unmeasured
    def test_ties_constants_and_what_does_not_depend_on_an_input(self, backend):
        def f(p):
            state, found = mg.relu(p[0]) + mg.maximum(p[0], p[1]), [7.0, p[1]]
            for _ in range(6):
                state = mg.where(state > 0, state * p[0], mg.take([p[0], state], 1)) + mg.dot([p[0], 2.0], [state, 1.0])
                found.append(state)
            return found

        fast = mg.compile(mg.jacobian(f), backend=backend)
        for point in ([0.0, 0.0], [1.0, 1.0], [-1.0, 2.0]):
            assert fast(point) == mg.jacobian(f)(point)

    def test_what_a_derivative_raises_is_raised(self):
        def f(p):
            state, found = mg.sqrt(p[0]), []
            for _ in range(6):
                state = state * p[0]
                found.append(state)
            return found

        fast = mg.compile(mg.jacobian(f), backend="numpy")
        assert np.allclose(fast([4.0]), mg.jacobian(f)([4.0]))
        with pytest.raises(ZeroDivisionError, match="sqrt"):
            fast([0.0])

    def test_in_the_body_of_a_loop_and_under_no_grad(self):
        def f(xs):
            with mg.no_grad():
                first = mg.jacobian(pendulum(9))([xs[0], 0.5, 9.81])
            rows = mg.vmap(lambda x: mg.jacobian(pendulum(9))([x, 0.5, 9.81])[-1][0])(xs)
            return [first[-1][0], *rows]

        xs = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
        assert mg.compile(f, backend="numpy")(xs) == pytest.approx(f(xs), rel=1e-12)

    def test_hessians_of_containers_constants_and_closed_over_values(self, backend):
        w = Value(3.0)

        def f(p):
            return w * p["a"] ** 2 * p["b"][0] + p["b"][1]

        point = {"a": 2.0, "b": [0.5, 1.0]}
        expected = {"a": {"a": 3.0, "b": [12.0, 0.0]}, "b": [{"a": 12.0, "b": [0.0, 0.0]}, {"a": 0.0, "b": [0.0, 0.0]}]}
        for hessian in (mg.hessian(f), mg.compile(mg.hessian(f), backend=backend)):
            found = hessian(point)
            w.grad = 0.0
            found["a"]["b"][0].backward()
            assert w.grad == 4.0
            with mg.no_grad():
                assert hessian(point) == expected
