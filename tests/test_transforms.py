"""grad, value_and_grad, jacobian, hessian and hvp: over numbers and containers, composed, and handed to SciPy."""

import math
import threading
from collections import namedtuple
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.strategies import programs

Line = namedtuple("Line", ["slope", "offset"])

CONTAINERS = {
    "float": 2.0,
    "int": 2,
    "NumPy scalar": np.float64(2.0),
    "list": [2.0, -3.0, 0.5],
    "tuple": (2.0, -3.0),
    "list of one": [2.0],
    "named tuple": Line(2.0, -3.0),
    "dict": {"slope": 2.0, "offset": -3.0},
    "array": np.array([2.0, -3.0, 0.5]),
    "array of ints": np.array([2, -3]),
    "matrix": np.array([[2.0, -3.0], [0.5, 1.0]]),
    "array of no axes": np.array(2.0),
    "lists in a list": [[2.0], [-3.0, 0.5]],
    "arrays in a dict": {"weights": np.array([[2.0, -3.0]]), "bias": np.array([0.5])},
    "everything": ({"line": Line(2.0, [-3.0]), "scale": 0.5}, [np.array([[1.0], [3.0]]), (4.0,)]),
    "empty list": [],
    "empty array": np.zeros((2, 0)),
    "empty list in a dict": {"none": [], "one": 2.0},
}
each_container = pytest.mark.parametrize("argument", CONTAINERS.values(), ids=CONTAINERS.keys())
lists_of_numbers = st.lists(st.floats(-3, 3).map(lambda x: round(x, 3)), min_size=1, max_size=4)


def scalars(nested):
    """The numbers in a container, in order."""
    if isinstance(nested, dict):
        return [number for item in nested.values() for number in scalars(item)]
    if isinstance(nested, (list, tuple)):
        return [number for item in nested for number in scalars(item)]
    return list(nested.ravel()) if isinstance(nested, np.ndarray) else [nested]


def shape(nested):
    """What must be the same in an argument and its gradient: kinds, keys, lengths and shapes."""
    if isinstance(nested, dict):
        return {key: shape(item) for key, item in nested.items()}
    if isinstance(nested, (list, tuple)):
        return type(nested), [shape(item) for item in nested]
    return ("array", nested.shape) if isinstance(nested, np.ndarray) else "number"


def curved(argument):
    """x0**3 + 2 * x1**3 + ... + x0 * x1 + x1 * x2 + ...; the sum starts as a float."""
    xs = scalars(argument)
    cubes = sum(((index + 1) * x**3 for index, x in enumerate(xs)), 0.25)
    return cubes + sum(x * y for x, y in pairwise(xs))


def slopes_of_curved(argument):
    xs = [float(x) for x in scalars(argument)]
    padded = [0.0, *xs, 0.0]
    return [3 * (i + 1) * x**2 + padded[i] + padded[i + 2] for i, x in enumerate(xs)]


def hessian_of_curved(argument):
    xs = [float(x) for x in scalars(argument)]
    size = range(len(xs))
    return [[6.0 * (i + 1) * xs[i] if i == j else float(abs(i - j) == 1) for j in size] for i in size]


class TestGrad:
    @each_container
    def test_the_gradient_has_the_shape_of_the_argument_and_the_value_comes_with_it(self, argument):
        value, slopes = mg.value_and_grad(curved)(argument)
        for found in (mg.grad(curved)(argument), slopes):
            assert shape(found) == shape(argument)
            assert scalars(found) == slopes_of_curved(argument)
            assert all(type(number) in (float, np.float64) for number in scalars(found))
        assert (value, type(value)) == (curved(argument), float)

    def test_the_argument_itself_stays_as_it_is(self):
        numbers, nested = np.array([2.0, 3.0]), {"a": [1.0]}
        mg.grad(curved)(numbers)
        mg.grad(curved)(nested)
        assert numbers.dtype == float
        assert nested == {"a": [1.0]}

    @given(programs())
    @settings(max_examples=16)
    def test_it_is_what_backward_gives(self, program):
        leaves = [Value(number) for number in program.inputs]
        program(*leaves).backward()
        found = mg.grad(lambda numbers: program(*numbers))(program.inputs)
        assert found == pytest.approx([leaf.grad for leaf in leaves], rel=1e-12, abs=1e-12)

    def test_the_name_of_a_numpy_function_is_as_good(self):
        assert mg.grad(np.sin)(1.0) == math.cos(1.0)

    def test_inputs_that_the_function_ignores_get_zero(self):
        assert mg.grad(lambda p: p["used"] ** 2)({"used": 3.0, "unused": [1.0, 2.0]}) == {
            "used": 6.0,
            "unused": [0.0, 0.0],
        }

    @pytest.mark.parametrize("constant", [3.0, 3, True, np.float64(3.0), Value(3.0, requires_grad=False)], ids=repr)
    def test_a_function_that_returns_a_constant_has_gradient_zero(self, constant):
        value, slopes = mg.value_and_grad(lambda p: constant)([1.0, 2.0])
        assert (type(value), value) == (float, float(constant))
        assert slopes == [0.0, 0.0]
        assert mg.hessian(lambda p: constant)([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]

    def test_keyword_arguments_are_handed_on_and_not_differentiated(self):
        assert mg.grad(lambda x, *, power, scale=1.0: scale * x**power)(2.0, power=3) == 12.0

    def test_an_error_of_the_function_comes_through_and_harms_no_later_call(self):
        with pytest.raises(ValueError, match=r"log\(-1\.0\)"):
            mg.grad(mg.log)(-1.0)
        with pytest.raises(ZeroDivisionError, match="the derivative of sqrt"):
            mg.grad(mg.sqrt)(0.0)
        assert type(mg.grad(mg.sqrt)(4.0)) is float


class TestArgnums:
    def test_which_arguments_to_differentiate_by(self):
        def f(x, y, z):
            return x * y * y * z

        assert mg.grad(f)(2.0, 3.0, 5.0) == 45.0
        assert mg.grad(f, 1)(2.0, 3.0, 5.0) == 60.0
        assert mg.grad(f, -1)(2.0, 3.0, 5.0) == 18.0
        assert mg.grad(f, -3)(2.0, 3.0, 5.0) == 45.0
        assert mg.grad(f, (2, 0))(2.0, 3.0, 5.0) == (18.0, 45.0)
        assert mg.grad(f, (1,))(2.0, 3.0, 5.0) == (60.0,)
        assert mg.value_and_grad(f, (0, 1))(2.0, 3.0, 5.0) == (90.0, (45.0, 60.0))
        assert mg.jacobian(lambda x, y: [x * y, y])(2.0, 3.0) == [3.0, 0.0]
        assert mg.jacobian(lambda x, y: [x * y, y], 1)(2.0, 3.0) == [2.0, 1.0]
        assert mg.hessian(f)(2.0, 3.0, 5.0) == 0.0
        assert mg.hessian(lambda x, y: x * x * y)(2.0, 3.0) == 6.0
        assert mg.hessian(f, 1)(2.0, 3.0, 5.0) == 20.0

    def test_each_argument_keeps_its_shape(self):
        slopes = mg.grad(lambda w, b: (w * w).sum() * b["scale"], (0, 1))(np.array([1.0, 2.0]), {"scale": 3.0})
        assert slopes[0].tolist() == [6.0, 12.0]
        assert slopes[1] == {"scale": 5.0}

    def test_the_other_arguments_may_be_anything(self):
        assert mg.grad(lambda x, name, none: x * len(name))(2.0, "abc", None) == 3.0


class TestWrongInput:
    def test_losing_the_gradient_in_a_float_array_is_an_error_too(self):
        def f(x):
            numbers = np.zeros(2)
            numbers[0] = x * x
            return numbers.sum()

        with pytest.raises((TypeError, ValueError)):
            mg.grad(f)(3.0)

    def test_the_number_of_a_value_may_be_read_on_purpose(self):
        assert mg.grad(lambda x: x * x.data)(3.0) == 3.0
        assert mg.grad(lambda x: x * mg.detach(x))(3.0) == 3.0
        assert mg.grad(lambda x: x * x if x > 2 else x)(3.0) == 6.0
        assert f"{mg.value_and_grad(lambda x: [f'{x:.1f}', x][1])(3.0)}" == "(3.0, 1.0)"


class TestJacobian:
    @each_container
    def test_one_number_has_its_gradient_for_a_jacobian(self, argument):
        found = mg.jacobian(curved)(argument)
        assert shape(found) == shape(argument)
        assert scalars(found) == slopes_of_curved(argument)

    def test_each_output_has_a_gradient_in_its_position(self):
        def f(p):
            return {"product": p[0] * p[1], "powers": (p[0] ** 2, [p[1] ** 3, 7.0])}

        found = mg.jacobian(f)([2.0, 3.0])
        assert found == {"product": [3.0, 2.0], "powers": ([4.0, 0.0], [[0.0, 27.0], [0.0, 0.0]])}

    def test_arrays_of_outputs_and_inputs_make_one_array(self):
        weights = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        point = np.array([1.0, -1.0, 2.0])
        assert mg.jacobian(lambda x: weights @ x)(point).tolist() == weights.tolist()
        by_weights = mg.jacobian(lambda w: w @ point)(weights)
        assert by_weights.shape == (2, 2, 3)
        assert by_weights[1].tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 2.0]]

    def test_outputs_that_are_plain_numbers_have_zeros(self):
        assert mg.jacobian(lambda p: np.array([p[0], 5.0]))(np.array([2.0, 3.0])).tolist() == [[1.0, 0.0], [0.0, 0.0]]

    def test_an_array_of_outputs_by_arguments_of_different_shapes(self):
        by_vector, by_number = mg.jacobian(lambda x, y: x * y, (0, 1))(np.array([1.0, 2.0]), 3.0)
        assert by_vector.tolist() == [[3.0, 0.0], [0.0, 3.0]]
        assert by_number.tolist() == [1.0, 2.0]
        by_x, by_y = mg.jacobian(lambda x, y: x * y, (0, 1))(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
        assert (by_x.tolist(), by_y.tolist()) == ([[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]])

    def test_no_outputs(self):
        assert mg.jacobian(lambda p: [])([1.0]) == []

    @given(lists_of_numbers)
    @settings(max_examples=10)
    def test_the_jacobian_of_a_gradient_is_the_hessian(self, point):
        """One goes backwards twice, the other forwards: factors are multiplied in another order."""
        for found, expected in zip(mg.jacobian(mg.grad(curved))(point), mg.hessian(curved)(point), strict=True):
            assert found == pytest.approx(expected, rel=1e-15)


class TestHessian:
    @pytest.mark.parametrize("name", ["float", "list", "tuple", "named tuple", "dict", "array", "array of no axes"])
    def test_second_derivatives_row_by_row(self, name):
        argument = CONTAINERS[name]
        found = mg.hessian(curved)(argument)
        assert scalars(found) == [number for row in hessian_of_curved(argument) for number in row]

    def test_of_a_container_it_has_the_shape_of_the_container_twice(self):
        assert mg.hessian(lambda p: p["a"] ** 2 * p["b"][0])({"a": 2.0, "b": [3.0]}) == {
            "a": {"a": 6.0, "b": [4.0]},
            "b": [{"a": 4.0, "b": [0.0]}],
        }
        assert mg.hessian(lambda p: p.slope**2 * p.offset)(Line(2.0, 3.0)) == Line(Line(6.0, 4.0), Line(4.0, 0.0))

    def test_of_a_matrix_it_has_four_axes(self):
        found = mg.hessian(lambda m: (m @ m).sum())(np.ones((2, 2)))
        assert found.shape == (2, 2, 2, 2)
        assert found.reshape(4, 4).tolist() == found.reshape(4, 4).T.tolist()
        assert found[0, 0, 0, 0] == 2.0

    def test_of_arrays_in_a_container_it_has_a_block_for_each_pair(self):
        weights, scale = np.array([1.0, 2.0]), 3.0
        in_dict = mg.hessian(lambda p: (p["w"] ** 2).sum() * p["b"])({"w": weights, "b": scale})
        assert in_dict["w"]["w"].tolist() == [[6.0, 0.0], [0.0, 6.0]]
        assert in_dict["w"]["b"].tolist() == in_dict["b"]["w"].tolist() == [2.0, 4.0]
        assert in_dict["b"]["b"] == 0.0
        in_list = mg.hessian(lambda p: (p[0] ** 2).sum() * p[1])([weights, scale])
        assert in_list[0][0].tolist() == [[6.0, 0.0], [0.0, 6.0]]
        assert in_list[0][1].tolist() == in_list[1][0].tolist() == [2.0, 4.0]

    def test_of_a_straight_line_it_is_zero(self):
        assert mg.hessian(lambda p: 3 * p[0] + p[1])([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
        assert mg.hessian(lambda p: p.sum())(np.ones(2)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


class TestHvp:
    @each_container
    def test_it_is_the_hessian_times_the_vector(self, argument):
        count = len(scalars(argument))
        vector = mg.grad(lambda p: sum((w * x for w, x in zip(range(1, count + 1), scalars(p), strict=True)), 0.0))
        found = mg.hvp(curved)(argument, vector(argument))
        assert shape(found) == shape(argument)
        products = [sum(h * (j + 1) for j, h in enumerate(row)) for row in hessian_of_curved(argument)]
        assert scalars(found) == pytest.approx(products, rel=1e-14)

    @given(programs(), st.data())
    @settings(max_examples=12)
    def test_of_random_programs(self, program, data):
        size = len(program.inputs)
        vector = data.draw(st.lists(st.floats(-2, 2), min_size=size, max_size=size))
        hessian = mg.hessian(lambda p: program(*p))(program.inputs)
        products = [sum(h * v for h, v in zip(row, vector, strict=True)) for row in hessian]
        scale = max(abs(number) for row in hessian for number in row)
        assert mg.hvp(lambda p: program(*p))(program.inputs, vector) == pytest.approx(
            products, rel=1e-9, abs=1e-11 * (1 + scale)
        )

    def test_of_straight_lines_and_constants_it_is_zero(self):
        assert mg.hvp(lambda p: p[0])([1.0], [1.0]) == [0.0]
        assert mg.hvp(lambda p: 5.0)([1.0, 2.0], [1.0, 1.0]) == [0.0, 0.0]
        assert mg.hvp(lambda p: 5.0)([], []) == []

    def test_a_dict_is_matched_by_its_keys_not_by_their_order(self):
        found = mg.hvp(lambda p: p["a"] ** 2 * p["b"] ** 3)({"a": 2.0, "b": 3.0}, {"b": 0.0, "a": 1.0})
        assert found == {"a": 54.0, "b": 108.0}


class TestComposition:
    def test_third_derivatives_of_containers(self):
        found = mg.jacobian(mg.hessian(lambda p: p[0] ** 3 * p[1]))([2.0, 3.0])
        assert found == [[[18.0, 12.0], [12.0, 0.0]], [[12.0, 0.0], [0.0, 0.0]]]
        as_array = mg.jacobian(mg.hessian(lambda p: p[0] ** 3 * p[1]))(np.array([2.0, 3.0]))
        assert as_array.tolist() == found

    def test_transforms_of_different_kinds_compose(self):
        assert mg.grad(lambda x: mg.hvp(lambda y: y**4)(x, 1.0))(2.0) == 48.0
        assert mg.grad(lambda x: mg.value_and_grad(lambda y: y**3)(x)[0])(2.0) == 12.0
        assert mg.grad(lambda x: mg.value_and_grad(lambda y: y**3)(x)[1])(2.0) == 12.0
        assert mg.grad(lambda x: mg.hessian(lambda y: y**4)(x))(2.0) == 48.0
        assert mg.hessian(mg.grad(lambda x: x**5))(2.0) == 240.0
        assert mg.grad(lambda p: sum(mg.jacobian(lambda q: [q[0] ** 2, q[1] ** 3])(p)[1]))([1.0, 2.0]) == [0.0, 12.0]

    @pytest.mark.parametrize(
        ("f", "x", "slope"),
        [
            # Each derivative must tell its own variable from those of the functions around it.
            (lambda x: x * mg.grad(lambda y: x * y)(2.0), 3.0, 6.0),
            (lambda x: x * mg.grad(lambda y: x + y)(1.0), 1.0, 1.0),
            (lambda x: x * mg.grad(lambda y: x * y)(x), 3.0, 6.0),
            (lambda x: mg.grad(lambda y: x * x * y * y)(5.0), 3.0, 60.0),
            (lambda x: mg.grad(lambda y: x * x * y * y)(x), 3.0, 6 * 9.0),
            (lambda x: mg.grad(lambda y: mg.grad(lambda z: x * y * z)(y) * y)(x), 2.0, 8.0),
            (lambda x: mg.grad(lambda x: x * x)(x * x), 3.0, 12.0),
            (lambda x: mg.grad(lambda y: mg.grad(lambda z: z**3)(y) * x)(2.0), 7.0, 12.0),
            (lambda x: x * mg.grad(lambda y: 3.0)(x), 2.0, 0.0),
            (lambda x: x * mg.grad(lambda y: x * x)(x), 2.0, 0.0),
            (lambda x: mg.hvp(lambda y: x * y**3)(2.0, x), 3.0, 72.0),
            (lambda x: mg.grad(lambda p: p[0] * p[1] * x)([x, x * x])[1], 3.0, 6.0),
        ],
    )
    def test_a_derivative_inside_a_function_to_differentiate(self, f, x, slope):
        assert mg.grad(f)(x) == slope

    def test_a_frozen_value_as_an_argument_is_differentiated_by(self):
        """It is frozen outside; inside, the derivative by it is asked for."""
        x = Value(3.0, requires_grad=False)
        assert mg.grad(lambda y: y * y)(x).data == 6.0
        assert mg.grad(lambda y: mg.grad(lambda z: z**3)(mg.detach(y)) * y)(2.0) == 12.0
        assert mg.compile(mg.grad(lambda y: y * y), backend="numpy")(x).data == 6.0

    def test_a_derivative_by_a_number_of_its_own_can_be_compiled(self):
        fast = mg.compile(lambda x: (mg.value_and_grad(lambda y: y)(2.0), x * 2), backend="numpy")
        assert fast(3.0) == ((2.0, 1.0), 6.0)

    @given(st.floats(-2, 2), st.floats(-2, 2))
    @settings(max_examples=10)
    def test_the_order_of_differentiation_does_not_matter(self, x, y):
        def f(x, y):
            return mg.sin(x * y) + mg.exp(x - y * y)

        x_then_y = mg.grad(lambda y: mg.grad(lambda x: f(x, y))(x))(y)
        y_then_x = mg.grad(lambda x: mg.grad(lambda y: f(x, y))(y))(x)
        assert x_then_y == pytest.approx(y_then_x, rel=1e-12, abs=1e-12)


class TestClosedOverValues:
    def test_no_gradients_are_left_behind(self):
        weight = Value(3.0)
        square = weight * weight
        weight.grad, square.grad = 7.0, -1.0

        def f(x):
            return x**3 * square * weight

        mg.grad(f)(2.0)
        mg.value_and_grad(f)(2.0)
        mg.jacobian(lambda x: [f(x), x])(2.0)
        mg.hessian(f)(2.0)
        mg.hvp(f)(2.0, 1.0)
        mg.grad(mg.grad(mg.grad(f)))(2.0)
        assert (weight.grad, square.grad) == (7.0, -1.0)
        (square * 1.0).backward()
        assert weight.grad == 13.0

    def test_what_the_output_does_not_depend_on_has_a_gradient_that_is_a_constant(self):
        x, other = Value(2.0), Value(3.0)
        slope, nothing = mg.gradient(x * x, [x, other], create_graph=True)
        assert (slope.data, slope.requires_grad) == (4.0, True)
        assert (nothing.data, nothing.requires_grad) == (0.0, False)

    def test_they_are_constants_to_the_derivative(self):
        weight = Value(3.0)
        assert mg.grad(lambda x: x * weight)(2.0).data == 3.0
        assert mg.hessian(lambda x: x * x * weight)(2.0).data == 6.0

    def test_also_those_that_have_no_second_derivative(self):
        other = Value(3.0)
        by_hand = Value(9.0, (other,), "square")
        assert mg.grad(mg.grad(lambda x: x * x * by_hand))(2.0).data == 18.0

    def test_a_value_as_argument_is_not_the_same_as_that_value_closed_over(self):
        x = Value(3.0)
        slope = mg.grad(lambda y: y * x)(x)
        assert float(slope) == 3.0
        assert x.grad == 0.0

    def test_values_in_the_arguments_make_the_result_a_graph(self):
        x, y = Value(3.0), Value(2.0)
        slope = mg.grad(lambda p: p[0] ** 2 * p[1])([x, y])[0]
        slope.backward()
        assert (slope.data, x.grad, y.grad) == (12.0, 4.0, 6.0)
        array = mg.array([1.0, 2.0])
        slopes = mg.grad(lambda p: (p**3).sum())(array)
        slopes.sum().backward()
        assert mg.gradients(array).tolist() == [6.0, 12.0]


class TestNoGrad:
    def test_inside_the_function_it_makes_constants(self):
        def f(x):
            with mg.no_grad():
                constant = x * x
            return constant * x

        assert mg.grad(f)(3.0) == 9.0

    def test_it_is_as_before_afterwards(self):
        x = Value(3.0)
        with mg.no_grad():
            mg.grad(lambda y: y * y)(3.0)
            assert not (x * x).requires_grad
        assert (x * x).requires_grad


def test_threads_differentiate_at_the_same_time():
    """Each has its own nesting, and they share a Value that all of them close over."""
    weight = Value(3.0)
    found = {}

    def work(index):
        found[index] = [mg.hessian(lambda x: weight * x**3)(float(index)).data for _ in range(30)]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {index: [18.0 * index] * 30 for index in range(4)}


def test_a_deep_function_needs_no_recursion():
    def f(x):
        for _ in range(3000):
            x = mg.sin(x)
        return x

    slope = mg.grad(f)
    difference = (slope(0.5 + 2.0**-20) - slope(0.5 - 2.0**-20)) * 2.0**19
    assert mg.grad(slope)(0.5) == pytest.approx(difference, rel=1e-6)


def rosenbrock(p):
    """The valley with its minimum, 0, where all coordinates are 1."""
    return sum(100 * (p[i + 1] - p[i] ** 2) ** 2 + (1 - p[i]) ** 2 for i in range(len(p) - 1))


def minimize(*arguments, **named):
    from scipy import optimize

    return optimize.minimize(*arguments, **named)


@pytest.mark.slow  # loading SciPy takes half a second
class TestSciPy:
    def test_rosenbrock_in_10_dimensions(self):
        found = minimize(mg.value_and_grad(rosenbrock), np.full(10, -1.2), jac=True)
        assert found.success
        assert found.x == pytest.approx(np.ones(10), abs=1e-5)

    def test_rosenbrock_written_for_arrays(self):
        def f(p):
            return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()

        found = minimize(mg.value_and_grad(f), np.full(10, 0.5), jac=True, method="L-BFGS-B")
        assert found.success
        assert found.x == pytest.approx(np.ones(10), abs=1e-3)

    def test_rosenbrock_with_its_hessian(self):
        found = minimize(
            mg.value_and_grad(rosenbrock),
            np.full(10, -1.2),
            jac=True,
            hess=mg.hessian(rosenbrock),
            method="trust-exact",
        )
        assert found.success
        assert found.x == pytest.approx(np.ones(10), abs=1e-5)

    @pytest.mark.unmeasured
    def test_rosenbrock_with_the_hessian_times_a_vector(self):
        found = minimize(
            mg.value_and_grad(rosenbrock), np.full(10, 0.5), jac=True, hessp=mg.hvp(rosenbrock), method="Newton-CG"
        )
        assert found.success
        assert found.x == pytest.approx(np.ones(10), abs=1e-3)

    def test_further_arguments_are_handed_on(self):
        found = minimize(mg.value_and_grad(lambda p, target: ((p - target) ** 2).sum()), np.zeros(3), (2.0,), jac=True)
        assert found.x == pytest.approx(np.full(3, 2.0), abs=1e-6)

    @given(programs())
    @settings(max_examples=5)
    def test_gradients_are_those_of_its_differences(self, program):
        from scipy.optimize import approx_fprime

        found = mg.grad(lambda p: program(*p))(np.array(program.inputs))
        assume(np.abs(found).max() < 1e4)
        differences = approx_fprime(np.array(program.inputs), lambda p: program(*map(float, p)))
        assert found == pytest.approx(differences, rel=1e-2, abs=1e-2 * (1 + np.abs(found).max()))
