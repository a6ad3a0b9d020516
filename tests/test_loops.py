"""scan and vmap: the Python loops that they stand for, containers, axes, and what they refuse."""

import inspect
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.loops import OPERATIONS, SMOOTH, WIDTH, bodies, plain_scan

pytestmark = pytest.mark.slow

Point = namedtuple("Point", ["x", "y"])
small = st.integers(-3, 3).map(float)
fractions = st.floats(-2, 2).map(lambda x: round(x, 3))


def accumulate(total, x):
    return total + x, total * x


def loss_of(scan, body, count):
    """A function of the weights, the first state and the inputs, all in one list."""

    def loss(numbers):
        weights, state, xs = numbers[:2], numbers[2 : 2 + WIDTH], numbers[2 + WIDTH :]
        assert len(xs) == count
        state, outputs = scan(lambda state, x: body(weights, state, x), tuple(state), xs)
        return sum(outputs) + sum(state) * 2.0

    return loss


@st.composite
def programs(draw, operations, bound, numbers):
    """A body, how often it runs, and the numbers for it."""
    count = draw(st.integers(1, 4))
    return draw(bodies(operations, bound)), count, [draw(numbers) for _ in range(2 + WIDTH + count)]


class TestScan:
    @given(programs(OPERATIONS, 3.0, small))
    def test_it_is_the_python_loop(self, program):
        body, count, numbers = program
        results = []
        for scan in (mg.scan, plain_scan):
            loss = loss_of(scan, body, count)
            results.append((mg.value_and_grad(loss)(numbers), mg.hessian(loss)(numbers)))
        assert repr(results[0]) == repr(results[1])  # also where there is a -0

    @given(programs(SMOOTH, 0.0, fractions))
    def test_its_derivatives_are_those_of_finite_differences(self, program):
        body, count, numbers = program
        mg.testing.gradcheck(lambda *xs: loss_of(mg.scan, body, count)(list(xs)), numbers)

    def test_second_derivatives_are_those_of_finite_differences(self):
        def swing(length, friction):
            def step(state, _):
                angle, speed = state
                speed = speed + 0.1 * (-mg.sin(angle) / length - friction * speed)
                return (angle + 0.1 * speed, speed), None

            (angle, _), _ = mg.scan(step, (1.0, 0.0), length=6)
            return angle

        mg.testing.gradcheck(swing, [1.3, 0.2], order=2)

    def test_values_in_state_inputs_and_closure_all_get_gradients(self):
        rate, start, xs = Value(0.5), Value(2.0), [Value(1.0), Value(3.0)]
        last, outputs = mg.scan(lambda s, x: (rate * s + x, s * x), start, xs)
        (last + sum(outputs)).backward()
        assert (last.data, [output.data for output in outputs]) == (4.0, [2.0, 6.0])
        assert (rate.grad, start.grad, [x.grad for x in xs]) == (9.0, 2.75, [5.5, 3.0])

    def test_reverse_goes_from_the_end_and_leaves_outputs_in_position(self):
        seen = []
        last, outputs = mg.scan(lambda s, x: (seen.append(x), (s * 10 + x, s))[1], 0, [1, 2, 3], reverse=True)
        assert (seen, last, outputs) == ([3, 2, 1], 321, [32, 3, 0])

    def test_the_body_runs_once_an_iteration(self):
        runs = []
        mg.scan(lambda s, x: (runs.append(x), (s, x))[1], 0.0, range(100))
        assert runs == list(range(100))

    @pytest.mark.parametrize(
        ("inputs", "items"),
        [
            ([1.0, 2.0], [1.0, 2.0]),
            (range(2), [0, 1]),
            ([[1.0, 2.0], [3.0]], [[1.0, 2.0], [3.0]]),
            (["a", None], ["a", None]),
            (([1, 2], [3, 4]), [(1, 3), (2, 4)]),
            ({"x": [1, 2], "y": ([3, 4], [5, 6])}, [{"x": 1, "y": (3, 5)}, {"x": 2, "y": (4, 6)}]),
            (Point([1, 2], [3, 4]), [Point(1, 3), Point(2, 4)]),
            (([1, 2], None), [(1, None), (2, None)]),
            (np.array([1.5, 2.5]), [1.5, 2.5]),
            (np.array([1, 2]), [1, 2]),
        ],
    )
    def test_what_an_iteration_is_given(self, inputs, items):
        seen = []
        mg.scan(lambda s, x: (seen.append(x), (s, None))[1], 0.0, inputs)
        assert seen == items
        assert list(map(type, seen)) == list(map(type, items))

    def test_of_an_array_it_goes_through_the_first_axis(self):
        x = np.arange(12.0).reshape(2, 3, 2)
        last, outputs = mg.scan(lambda s, row: (s + row, row.sum(axis=0)), np.zeros((3, 2)), x)
        np.testing.assert_array_equal(last, x.sum(axis=0))
        np.testing.assert_array_equal(outputs, x.sum(axis=1))
        assert outputs.dtype == float

    @pytest.mark.parametrize(
        ("inputs", "output", "together"),
        [
            ([1, 2], lambda x: x * 2.0, [2.0, 4.0]),
            ([1, 2], lambda x: [x, -x], [[1, -1], [2, -2]]),
            ([1, 2], lambda x: (x, [x]), ([1, 2], [[1], [2]])),
            ([1, 2], lambda x: {"a": x, "b": (x, None)}, {"a": [1, 2], "b": ([1, 2], None)}),
            ([1, 2], lambda x: Point(x, -x), Point([1, 2], [-1, -2])),
            ([1, 2], lambda x: None, None),
            ([1, 2], str, ["1", "2"]),
        ],
    )
    def test_how_outputs_are_put_together(self, inputs, output, together):
        _, outputs = mg.scan(lambda s, x: (s, output(x)), 0.0, inputs)
        assert outputs == together
        assert type(outputs) is type(together)

    def test_arrays_in_arrays_out(self):
        w = Value(2.0)
        _, (values, numbers, names) = mg.scan(lambda s, x: (s, (w * x, x, str(x))), 0.0, np.array([1.0, 2.0]))
        assert (values.shape, values.dtype) == ((2,), object)
        np.testing.assert_array_equal(mg.numbers(values), [2.0, 4.0])
        assert numbers.dtype == float
        assert names == ["1.0", "2.0"]

    def test_an_iteration_has_containers_of_its_own(self):
        first, items = {"h": np.zeros(2), "log": [0.0]}, [np.ones(2), np.ones(2)]

        def step(state, x):
            state["h"] += x
            state["log"][0] += 1.0
            x *= 5.0
            return state, state

        last, outputs = mg.scan(step, first, items)
        np.testing.assert_array_equal(first["h"], [0.0, 0.0])
        np.testing.assert_array_equal(items, np.ones((2, 2)))
        assert (first["log"], last["log"], outputs["log"]) == ([0.0], [2.0], [[1.0], [2.0]])
        np.testing.assert_array_equal(outputs["h"], [[1.0, 1.0], [2.0, 2.0]])

    def test_under_no_grad_and_detect_anomaly(self):
        w = Value(0.5)
        with mg.no_grad():
            last, _ = mg.scan(lambda s, x: (w * s + x, None), 1.0, [1.0] * 5)
        assert not last.requires_grad
        with mg.detect_anomaly(), pytest.raises(FloatingPointError, match="line"):
            mg.scan(lambda s, x: (s * s, None), Value(1e200), [1.0] * 5)

    def test_it_needs_no_numpy(self):
        code = (
            "import sys; sys.modules['numpy'] = None; import micrograd as mg; w = mg.Value(2.0)\n"
            "last, ys = mg.scan(lambda s, x: (w * s + x, [s]), 1.0, [1.0, 2.0]); last.backward()\n"
            "print(last.data, w.grad, len(ys), mg.vmap(lambda x: x * x)([1.0, 2.0]))"
        )
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert run.stdout == "8.0 5.0 2 [1.0, 4.0]\n"


class TestVmap:
    @given(bodies(OPERATIONS, 3.0), st.lists(st.tuples(small, small, small), min_size=1, max_size=4), small, small)
    def test_it_is_the_python_loop(self, body, rows, v, w):
        def mapped(rows, weights):
            return sum(mg.vmap(lambda row, ws: body(ws, row[:2], row[2])[1], (0, None))(rows, weights))

        def loop(rows, weights):
            return sum([body(weights, row[:2], row[2])[1] for row in rows])

        for derivative in (mg.value_and_grad, mg.jacobian):
            results = [derivative(f, (0, 1))(list(map(list, rows)), [v, w]) for f in (mapped, loop)]
            assert repr(results[0]) == repr(results[1])

    @pytest.mark.parametrize(
        ("in_axes", "out_axes", "arguments", "expected"),
        [
            (0, 0, ([1.0, 2.0], [3.0, 4.0]), [3.0, 8.0]),
            ((0, None), 0, ([1.0, 2.0], 10.0), [10.0, 20.0]),
            ([None, 0], 0, (10.0, [1.0, 2.0]), [10.0, 20.0]),
            ((0, 0), 0, ([1.0, 2.0], range(2)), [0.0, 2.0]),
        ],
    )
    def test_axes_of_arguments(self, in_axes, out_axes, arguments, expected):
        assert mg.vmap(lambda x, y: x * y, in_axes, out_axes)(*arguments) == expected

    @pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
    @pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -3])
    def test_any_axis_of_an_array_goes_in_and_out(self, axis, out_axis):
        x = np.arange(24.0).reshape(2, 3, 4)
        found = mg.vmap(lambda part: 2.0 * part, axis, out_axis)(x)
        np.testing.assert_array_equal(found, np.moveaxis(2.0 * x, axis, out_axis))

    def test_axes_of_lists_in_lists(self):
        rows = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        assert mg.vmap(lambda column: column, 1)(rows) == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
        assert mg.vmap(lambda column: column, 1, 1)(rows) == rows
        assert mg.vmap(sum, 1)([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).tolist() == [4.0, 6.0]

    def test_axes_in_nested_containers(self):
        def f(pair, point):
            return {"sum": pair[0] + pair[1], "row": np.array([point["x"], point["y"][0]])}

        x = np.array([[1.0], [2.0]])
        found = mg.vmap(f, ((0, None), {"x": 0, "y": 1}), {"row": 1, "sum": 0})(
            ([1.0, 2.0], 5.0), {"x": [3.0, 4.0], "y": x.T}
        )
        assert list(found) == ["sum", "row"]  # as the first iteration has them
        assert list(mg.vmap(lambda x: {"a": x, "b": x} if x else {"b": x, "a": x})([1, 0])) == ["a", "b"]
        np.testing.assert_array_equal(found["sum"], [6.0, 7.0])
        np.testing.assert_array_equal(found["row"], [[3.0, 4.0], [1.0, 2.0]])

    def test_named_arguments_are_gone_through_along_their_first_axis(self):
        assert mg.vmap(lambda x, *, scale: x * scale, None)(2.0, scale=[1.0, 10.0]) == [2.0, 20.0]

    def test_it_nests(self):
        table = mg.vmap(mg.vmap(lambda x, y: x * y, (None, 0)), (0, None))
        assert table([1.0, 2.0], [3.0, 4.0]) == [[3.0, 4.0], [6.0, 8.0]]

    def test_derivatives_of_it_and_it_of_derivatives(self):
        assert mg.vmap(mg.grad(lambda x: x**3))([1.0, 2.0]) == [3.0, 12.0]
        assert mg.jacobian(mg.vmap(lambda x: x**3))([1.0, 2.0]) == [[3.0, 0.0], [0.0, 12.0]]
        assert mg.hessian(lambda xs: sum(mg.vmap(lambda x: x**3)(xs)))([1.0, 2.0]) == [[6.0, 0.0], [0.0, 12.0]]

    def test_it_looks_like_the_function(self):
        def price(x, *, rate=1.0):
            """What it costs."""

        mapped = mg.vmap(price)
        assert (mapped.__name__, mapped.__doc__) == ("price", "What it costs.")
        assert inspect.signature(mapped) == inspect.signature(price)


class TestChoices:
    """cond and switch, as Python decides, compiled too."""

    def test_one_branch_runs_and_gets_the_gradient(self):
        w = Value(3.0)
        for wrap in (lambda f: f, mg.compile):
            chosen = wrap(lambda x: mg.cond(x > 1, lambda x: x * w, lambda x: mg.sqrt(x) * w, x))
            for point, number, slope in ((4.0, 12.0, 3.0), (0.25, 1.5, 3.0), (1.0, 3.0, 1.5)):
                x = Value(point)
                y = chosen(x)
                y.backward()
                assert (y.data, x.grad) == (number, slope)

    def test_switch_takes_a_whole_number(self):
        branches = [lambda x: x, lambda x: x * x, lambda x: x**3]
        for wrap in (lambda f: f, mg.compile):
            chosen = wrap(lambda index, x: mg.switch(index, branches, x) * 1.0)
            for index in (0, 1, 2, 1.0, True):
                assert chosen(index, Value(3.0)).data == 3.0 ** (index + 1)
            with pytest.raises(ValueError, match=r"an index must be whole, not 1\.5"):
                chosen(1.5, 3.0)
            for index in (-1, 3):
                with pytest.raises(IndexError, match=f"no branch {index}: switch was given 3"):
                    chosen(index, 3.0)
        assert mg.switch(Value(2.0), branches, 2.0) == 8.0


class TestWhileLoop:
    """while_loop hands a state on as long as a condition holds."""

    def test_it_is_a_while_statement(self):
        w = Value(2.0)
        for wrap in (lambda f: f, mg.compile):
            doubled = wrap(
                lambda x: mg.while_loop(
                    lambda s: s["x"] < 10, lambda s: {"x": s["x"] * w, "n": s["n"] + 1}, {"x": x, "n": 0}
                )
            )
            for start, number, count in ((3.0, 12.0, 2), (1.0, 16.0, 4), (20.0, 20.0, 0)):
                x, w.grad = Value(start), 0.0
                found = doubled(x)
                assert (float(found["x"]), found["n"]) == (number, count)
                if count:
                    found["x"].backward()
                    assert (x.grad, w.grad) == (2.0**count, count * start * 2.0 ** (count - 1))

    def test_more_iterations_than_the_limit_are_an_error(self):
        for wrap in (lambda f: f, mg.compile):
            halved = wrap(lambda x: mg.while_loop(lambda x: x > 1, lambda x: x / 2, x, limit=3))
            assert halved(8.0) == 1.0
            with pytest.raises(ValueError, match="still holds after 3 iterations"):
                halved(8.1)
        with pytest.raises(ValueError, match="limit must be at least 1"):
            mg.while_loop(lambda x: x > 1, lambda x: x, 1.0, limit=0)

    def test_a_state_keeps_its_structure_and_its_containers(self):
        with pytest.raises(ValueError, match="keep its structure"):
            mg.while_loop(lambda x: True, lambda x: [x], 1.0)
        for functions in ((1, len), (len, 1)):
            with pytest.raises(TypeError, match="while_loop takes a function, not int"):
                mg.while_loop(*functions, 1.0)

        def body(state):
            state[0] = state[0] + 1
            return state

        start = [1.0]
        assert mg.while_loop(lambda state: state[0] < 3, body, start) == [3.0]
        assert start == [1.0]


def crossing(a, b):
    x, y = mg.root(lambda s: [s[0] * s[0] + s[1] - a, s[0] * s[1] - b], [2.0, 1.0])
    return x * y + x


def golden(a, b):
    return mg.fixed_point(lambda x: mg.sqrt(a + x), 1.0) * b


class TestIterationsThatConverge:
    """fixed_point and root solve an equation, and are differentiated as its solution is."""

    @pytest.mark.unmeasured
    @pytest.mark.parametrize("solution", [crossing, golden])
    def test_gradients_of_first_and_second_order(self, solution):
        assert mg.testing.gradcheck(solution, [3.0, 1.5])
        assert mg.testing.gradcheck(mg.grad(solution), [3.0, 1.5])

    def test_derivatives_of_any_order(self):
        # x = (1 + sqrt(1 + 4 a)) / 2
        expected = [3.0, 1 / 5, -2 / 5**3, 12 / 5**5, -120 / 5**7, 1680 / 5**9]
        solution = lambda a: golden(a, 1.0)  # noqa: E731
        for derivative in expected:
            assert solution(6.0) == pytest.approx(derivative, rel=1e-9)
            solution = mg.grad(solution)
        a = Value(6.0)
        first = mg.gradient(golden(a, 1.0), a, create_graph=True)
        second = mg.gradient(first, a, create_graph=True)
        assert mg.gradient(second, a) == pytest.approx(expected[3])

    def test_no_iteration_is_stored(self):
        a = Value(6.0)
        slow = mg.fixed_point(lambda x: 0.99 * x + 0.01 * mg.sqrt(a + x), 1.0, limit=10_000)
        assert len(mg.topological_order(slow)) < 100

    @pytest.mark.parametrize("solution", [crossing, golden])
    def test_compiled_they_give_the_same(self, solution):
        fast = mg.compile(solution)
        for numbers in ((3.0, 1.5), (2.0, 0.5), (3.0, 1.5)):
            found, expected = ([Value(x) for x in numbers] for _ in range(2))
            results = fast(*found), solution(*expected)
            for result in results:
                result.backward()
            assert results[0].data == pytest.approx(results[1].data, rel=1e-12)
            assert [x.grad for x in found] == pytest.approx([x.grad for x in expected], rel=1e-9)

    def test_numbers_and_containers(self):
        found = mg.root(lambda s: {"x": s["x"] - 3.0, "y": [s["y"][0] * 2 - s["x"]]}, {"x": 0.0, "y": [0.0]})
        assert found == {"x": 3.0, "y": [1.5]}
        swapped = mg.root(lambda s: [s[1] - 2.0, s[0] + s[1] - 5.0], [0.0, 0.0])
        assert swapped == [3.0, 2.0]
        assert mg.fixed_point(lambda x: 0.5 * x + 1.0, Value(0.0)).data == pytest.approx(2.0)
