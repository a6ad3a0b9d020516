"""Compiled functions against the same functions run eagerly: values and gradients, with each backend."""

import math
import operator
import random
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.compiler.backends.sparing import is_left_out
from tests.strategies import programs

pytestmark = pytest.mark.slow(together=True)


def gradients(f, leaves):
    """The value of f and the gradients of the leaves."""
    for leaf in leaves:
        leaf.grad = 0.0
    output = f()
    output.backward()
    return [output.data, *(leaf.grad for leaf in leaves)]


def assert_same(f, leaves, backend):
    """Eager and compiled agree to 1e-9, twice: with the numbers of the trace, and with others."""
    fast = mg.compile(f, backend=backend)
    for factor in (1.0, 1.01):
        for leaf in leaves:
            leaf.data *= factor
        expected = gradients(f, leaves)
        assert gradients(fast, leaves) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    return fast


@pytest.mark.slow
@settings(max_examples=12)
@given(program=programs())
def test_random_expressions(program, backend):
    if is_left_out(backend, program):
        return
    leaves = list(map(Value, program.inputs))
    fast = mg.compile(lambda: program(*leaves), backend=backend)
    if not program(*leaves).requires_grad:
        return
    expected = gradients(lambda: program(*leaves), leaves)
    assert gradients(fast, leaves) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=5)
@given(
    sizes=st.lists(st.integers(1, 9), min_size=2, max_size=4),
    activation=st.sampled_from(["relu", "tanh", "sigmoid", "softplus", "gelu", "elu", "silu", "leaky_relu"]),
    batch=st.integers(1, 5),
    seed=st.integers(0, 100),
)
def test_random_networks(sizes, activation, batch, seed, backend):
    if is_left_out(backend, (sizes, activation, batch, seed)):
        return
    random.seed(seed)
    model = mg.nn.MLP(sizes[0], sizes[1:], activation=activation)
    points = [[random.gauss(0, 1) for _ in range(sizes[0])] for _ in range(batch)]

    def loss():
        outputs = [model(point) for point in points]
        outputs = [output if isinstance(output, list) else [output] for output in outputs]
        return mg.mean(mg.logsumexp(output) + mg.tanh(output[0]) ** 2 for output in outputs)

    assert_same(loss, model.parameters(), backend)


def test_a_convolution_in_loops(backend):
    random.seed(5)
    image = [[Value(random.gauss(0, 1)) for _ in range(8)] for _ in range(7)]
    filters = [[[Value(random.gauss(0, 1)) for _ in range(3)] for _ in range(3)] for _ in range(2)]

    def loss():
        total = 0.0
        for f in filters:
            for row in range(5):
                for column in range(0, 6, 2):
                    window = sum(f[i][j] * image[row + i][column + j] for i in range(3) for j in range(3))
                    total = total + mg.maximum(window, 0.1 * window) ** 2
        return total

    assert_same(loss, [w for m in (image, *filters) for row in m for w in row], backend)


def test_arguments_of_all_kinds(backend):
    w = [Value(0.5), Value(-1.5)]

    def f(x, pair, settings, *, rows, name="a"):
        total = x * w[0] + pair[0] * pair[1] * w[1]
        if name == "b":
            total = total * 2
        for row in rows:
            total = total + (row * settings["scale"]).sum() * w[0]
        return total

    fast = mg.compile(f, backend=backend)
    for name in ("a", "b", "a"):
        for factor in (1.0, 2.0):
            v, u = Value(3.0 * factor), Value(factor)
            arguments = (1.5 * factor, (v, 2.0), {"scale": u})
            named = {"rows": np.array([[1.0, 2.0], [3.0, factor]]), "name": name}
            expected = gradients(lambda: f(*arguments, **named), [v, u, *w])  # noqa: B023  # called at once
            found = gradients(lambda: fast(*arguments, **named), [v, u, *w])  # noqa: B023  # called at once
            assert found == pytest.approx(expected, rel=1e-12)


def test_take_gathers_and_its_gradient_scatters(backend):
    table = [[Value(10.0 * row + column) for column in range(3)] for row in range(4)]
    leaves = [v for row in table for v in row]

    def f(indices):
        return sum(x * x for index in indices for x in mg.take(table, index))

    fast = mg.compile(f, backend=backend)
    for indices in ([0, 1, 1], [3, 3, 3], [-1, -4, 2]):
        expected = gradients(lambda: f(indices), leaves)  # noqa: B023  # called at once
        assert gradients(lambda: fast(indices), leaves) == pytest.approx(expected)  # noqa: B023
    with pytest.raises(IndexError):
        fast([0, 1, 4])
    with pytest.raises(IndexError):
        fast([0, 1, -5])


def test_a_result_is_an_operand_like_any_other(backend):
    w = Value(3.0)
    fast = mg.compile(lambda x: w * x, backend=backend)
    x = Value(2.0)
    (fast(x * x) * fast(x)).backward()  # w * x**2 * w * x
    assert [w.grad, x.grad] == [2 * 3.0 * 8.0, 9.0 * 12.0]


@pytest.mark.parametrize("f", [mg.minimum, mg.maximum])
def test_of_zeros_with_two_signs_the_first_is_taken(f, backend):
    for x, y in [(0.0, -0.0), (-0.0, 0.0)]:
        eager, compiled = f(Value(x), Value(y)), mg.compile(f, backend=backend)(Value(x), Value(y))
        assert math.copysign(1.0, compiled.data) == math.copysign(1.0, eager.data)


def test_a_largest_number_that_no_gradient_flows_through(backend):
    leaves = [Value(0.5), Value(2.0), Value(-1.0)]

    def f():
        largest = mg.detach(mg.maximum(mg.maximum(leaves[0], leaves[1]), mg.maximum(leaves[2], 0.25)))
        return sum(mg.exp(x - largest) for x in leaves)

    assert_same(f, leaves, backend)


def test_powers_with_constant_exponents(backend):
    leaves = [Value(0.5 + index) for index in range(4)]

    def f():
        return sum(x**n for x in leaves for n in (-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 2.5)) + sum(2**x for x in leaves)

    assert_same(f, leaves, backend)


def test_powers_with_many_constant_exponents_are_one_program(backend):
    x = Value(1.25)
    fast = assert_same(lambda: sum(x ** (1.1 + 0.05 * index) for index in range(60)), [x], backend)
    assert int(re.search(r"became (\d+) kernels", fast.explain())[1]) < 40  # not some for each exponent


def test_squares_differences_and_cancelling_terms(backend):
    x, y, z = leaves = [Value(1.5), Value(-0.5), Value(2.0)]

    def f():
        total = x * x * y - x * y + (x - x) * z - 2 * (y - z) * (y - z) - (-z)
        return total * total - x * 0.0 + (x * y - (z + x)) * -1.0 + max_of(x, y, z)

    def max_of(*values):
        largest = values[0]
        for value in values[1:]:
            largest = mg.maximum(largest, -value)
        return largest + mg.detach(mg.maximum(mg.maximum(x, y), -z)) * y

    assert_same(f, leaves, backend)


def test_tables_of_values_and_numbers(backend):
    w = [Value(2.0), Value(3.0)]
    fast = mg.compile(lambda index: mg.take([w[0], 7.0, w[1] * w[1]], index) * w[0], backend=backend)
    for index, expected in ((0, [4.0, 4.0, 0.0]), (1, [14.0, 7.0, 0.0]), (-1, [18.0, 9.0, 12.0])):
        assert gradients(lambda: fast(index), w) == expected  # noqa: B023  # called at once


def test_a_gradient_that_is_constant_or_nothing(backend):
    flat = mg.primitive("steep_compiled", "steep", lambda x: 2 * x, lambda g, out, x: 2.0, replace=True)
    x, y = Value(1.0), Value(5.0)
    fast = mg.compile(lambda: flat(x) + 0.0 * mg.where(y > 0, 1.0, y), backend=backend)
    assert gradients(fast, [x, y]) == [2.0, 2.0, 0.0]
    step = mg.primitive("step_compiled", "step", lambda x: float(x > 0), lambda g, out, x: 0.0, replace=True)
    fast = mg.compile(lambda: step(mg.exp(x)) + 3 * y, backend=backend)
    assert gradients(fast, [x, y]) == [16.0, 0.0, 3.0]


def test_arrays_that_mix_values_numbers_and_constants(backend):
    a, b = Value(2.0), Value(3.0, requires_grad=False)
    fast = mg.compile(lambda xs: (xs * xs).sum(), backend=backend)
    for xs in (np.array([a, b, 1.0]), np.array([b, a, 1.0]), np.array([1.0, b, a])):
        assert gradients(lambda: fast(xs), [a, b]) == [14.0, 4.0, 0.0]  # noqa: B023  # called at once


def test_gradients_add_up_also_to_those_that_are_graphs(backend):
    x = Value(3.0)
    fast = mg.compile(lambda: x * x, backend=backend)
    (x**3).backward(create_graph=True)
    fast().backward(2.0)
    assert float(x.grad) == 27.0 + 12.0
    assert mg.gradient(x.grad, x) == pytest.approx(18.0)  # of the part that is a graph


def test_comparisons_of_values_from_outside_are_made_at_each_call(backend):
    w = Value(1.0)
    fast = mg.compile(lambda: mg.where(w > 0, w * 2, w * 5) + mg.where(w <= 1.0, 0.0, 100.0), backend=backend)
    for number, expected in ((1.0, 2.0), (-1.0, -5.0), (3.0, 106.0)):
        w.data = number
        assert fast().data == expected


BETWEEN_FLOATS = {
    "an int above 2 ** 53": 2**53 + 1,
    "an int below another float": 2**53 + 3,
    "a negative int": -(2**53) - 1,
    "an int too large for a float": 10**400,
    "a negative int too large for one": -(10**400),
    "a Fraction": Fraction(1, 3),
    "a negative Fraction": -Fraction(1, 3),
    "a Fraction too large for a float": Fraction(10**400, 3),
    "a Decimal": Decimal("0.1"),
    "an int that is a float": 2**60,
    "NumPy's int": np.int64(2**53 + 1),
}


@pytest.mark.slow
@pytest.mark.parametrize("number", BETWEEN_FLOATS.values(), ids=BETWEEN_FLOATS)
def test_comparisons_with_numbers_between_two_floats_are_those_of_eager(number, backend):
    def orders(x):
        found = [x < number, x <= number, x > number, x >= number]
        if type(number) is int:  # a Fraction on the left asks for the float, which is refused
            found += [number < x, number <= x, number > x, number >= x]
        return [mg.where(holds, 1.0, 0.0) for holds in found]

    def equal(x):
        return [mg.where(holds, 1.0, 0.0) for holds in (x == number, x != number)]

    fast_orders, fast_equal = mg.compile(orders, backend=backend), mg.compile(equal, backend=backend)
    try:
        nearest = float(number)
    except OverflowError:
        nearest = math.inf if number > 0 else -math.inf
    around = nearest, math.nextafter(nearest, math.inf), math.nextafter(nearest, -math.inf)
    for x in (*around, 0.0, math.inf, -math.inf, math.nan):
        if not isinstance(number, np.int64) and not (isinstance(number, Decimal) and math.isnan(x)):  # which raises
            assert fast_orders(x) == orders(x), x
            assert fast_equal(x) == equal(x), x
        assert list(map(float, fast_orders(Value(x)))) == list(map(float, orders(Value(x)))), x


def test_a_plain_number_is_equal_to_no_value(backend):
    fast = mg.compile(lambda number, x: 3.0 * x if number == x or number in [x] else 2.0 * x, backend=backend)
    assert fast(2.0, Value(2.0)).data == 4.0


def test_ctrl_c_in_a_primitive_of_ones_own_comes_through_though_it_comes_once(backend, own_registry):
    coming = [KeyboardInterrupt]

    def forward(x):
        if coming:
            raise coming.pop()
        return x * 2

    p = mg.primitive("interrupted_once_compiled", "p", forward, lambda g, out, x: g * 2)
    fast = mg.compile(lambda x: p(x) + 1, backend=backend)
    with pytest.raises(KeyboardInterrupt):
        fast(Value(3.0))
    assert fast(Value(3.0)).data == 7.0


def test_errors_in_a_primitive_of_ones_own_come_through(backend):
    def positive(x):
        if x == 0:
            raise KeyboardInterrupt
        assert x > 0, "positive!"
        return x

    p = mg.primitive("positive_compiled", "p", positive, lambda g, out, x: g, replace=True)
    fast = mg.compile(lambda x: p(x) + 1, backend=backend)
    assert fast(Value(1.0)).data == 2.0
    with pytest.raises(AssertionError, match="positive!"):
        fast(Value(-1.0))
    with pytest.raises(KeyboardInterrupt):
        fast(Value(0.0))
    assert fast(Value(2.0)).data == 3.0


def test_what_a_primitive_of_ones_own_refuses_is_said_as_without_the_compiler(backend):
    def root(x):
        if x < 0:
            raise ValueError("no root of this")
        return x**0.5

    own = mg.primitive("root_compiled", "√", root, lambda g, out, x: g / (2 * out), replace=True)
    x = Value(4.0, label="x")
    fast = mg.compile(lambda: own(x) * 3, backend=backend)
    assert gradients(fast, [x]) == [6.0, 0.75]
    x.data = -1.0
    with pytest.raises(ValueError, match=r"root_compiled\(x = -1.0\).*no root of this"):
        fast()


def test_what_cannot_be_differentiated_fails_only_in_backward(backend):
    flat = mg.primitive("flat2_compiled", "flat", lambda x, y: x * y, replace=True)
    x = Value(3.0)
    for f, value in ((lambda: flat(x, x) + x, 12.0), (lambda: (-2.0) ** x, -8.0)):
        fast = mg.compile(f, backend=backend)
        for _ in range(2):  # at the first call it is found out
            result = fast()
            assert result.data == value
            with pytest.raises(ValueError, match=r"no derivative|log"):
                result.backward()
    assert mg.compile(lambda: mg.detach(flat(x, x)) + x, backend=backend)().data == 12.0


def test_freezing_between_forward_and_backward_counts(backend):
    x, y = Value(2.0), Value(3.0)
    result = mg.compile(lambda: x * y, backend=backend)()
    x.requires_grad = False
    result.backward()
    assert (x.grad, y.grad) == (0.0, 2.0)


def test_gradients_of_what_is_computed_before_or_given_twice(backend):
    w, x = Value(3.0), Value(2.0)
    fast = mg.compile(lambda a, b: w * a * b, backend=backend)
    for arguments in (lambda: (x * x, 5.0), lambda: (x, x), lambda: (w, x), lambda: (x, w * 2)):
        expected = gradients(lambda: w * math.prod(arguments()), [w, x])  # noqa: B023  # called at once
        assert gradients(lambda: fast(*arguments()), [w, x]) == expected  # noqa: B023


def test_what_a_table_holds_is_computed_where_it_is_used_besides(backend):
    x, y, z = leaves = [Value(2.0), Value(3.0), Value(5.0)]

    def f(index):
        total, copy, negative = x + y, z + 0.0, -(y * z)
        return mg.take([total, copy, negative, 7.0], index) + (total + z) * (negative - x) + copy

    fast = mg.compile(f, backend=backend)
    for index in range(4):
        expected = gradients(lambda: f(index), leaves)  # noqa: B023  # called at once
        assert gradients(lambda: fast(index), leaves) == pytest.approx(expected)  # noqa: B023


def test_a_table_of_one_number(backend):
    x, y = leaves = [Value(2.0), Value(3.0)]
    fast = mg.compile(lambda index: mg.take([x], index) * mg.take([x, y], index) * y, backend=backend)
    assert gradients(lambda: fast(0), leaves) == [12.0, 12.0, 4.0]
    assert gradients(lambda: fast(-1), leaves) == [18.0, 9.0, 12.0]
    with pytest.raises(IndexError):
        fast(1)


@pytest.mark.parametrize("compare", [operator.lt, operator.gt, operator.le, operator.ge])
def test_numbers_are_compared_as_without_the_compiler(compare, backend):
    def f(x, y):
        return [mg.where(compare(x, y), 1.0, 2.0), mg.where(compare(x, 0.5), x, y), mg.where(compare(0.5, x), x, y)]

    fast = mg.compile(f, backend=backend)
    for x in (0.25, 0.5, 0.75):
        assert fast(x, 0.5) == f(x, 0.5)


def test_zeros_of_both_signs_are_constants_of_their_own(backend):
    fast = mg.compile(lambda x: [mg.maximum(zero, x) for zero in (0.0, -0.0)], backend=backend)
    assert [math.copysign(1.0, number) for number in fast(-1.0)] == [1.0, -1.0]


def test_zeros_of_both_signs_are_factors_of_their_own(backend):
    neuron = mg.nn.Neuron(1, nonlin=False)
    neuron.w[0].data, neuron.b.data = 1.0, -0.0
    fast = mg.compile(lambda: [neuron([zero]) for zero in (0.0, -0.0)], backend=backend)
    assert [math.copysign(1.0, number.data) for number in fast()] == [1.0, -1.0]


def test_the_elements_of_some_tables_have_a_gradient_and_those_of_others_have_none(backend):
    frozen, w, u = ([Value(number + 0.5 * k, requires_grad=k > 0) for number in range(3)] for k in range(3))
    fast = mg.compile(lambda i, j: mg.take(frozen, i) * mg.take(w, j) + mg.take(u, i) * mg.take(w, i), backend=backend)
    for i, j in ((0, 2), (2, 2), (1, -3)):
        expected = gradients(lambda: frozen[i] * w[j] + u[i] * w[i], [*w, *u])  # noqa: B023  # called at once
        assert gradients(lambda: fast(i, j), [*w, *u]) == expected  # noqa: B023
