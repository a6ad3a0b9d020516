"""Compiled means what eager means: the same numbers, at ties too, and the same errors, with each backend."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.engine.primitive import composite
from tests.campaigns.integers import disagreement, program_of
from tests.compiler.backends.sparing import is_left_out
from tests.compiler.runs import Runs

pytestmark = pytest.mark.slow


def found(f, numbers):
    """The value of f and the gradients of its arguments."""
    leaves = [Value(number) for number in numbers]
    output = f(*leaves)
    output.backward()
    return [output.data, *(leaf.grad for leaf in leaves)]


def assert_equal(f, *numbers, backend):
    """Eager and compiled are equal bit for bit; gives what they are."""
    expected = found(f, numbers)
    assert found(mg.compile(f, backend=backend), numbers) == expected
    return expected


def kahan(x):
    total, lost = x, 0.0
    for _ in range(20):
        term = 1e-16 - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    return total


@pytest.mark.unmeasured
def test_a_chain_is_computed_from_left_to_right(backend):
    def f(w, a, b, c):
        return ((a - b) + c) * w

    assert assert_equal(f, 1.0, 1e16 + 2, 1e16, 0.123, backend=backend)[0] == 2.123
    assert assert_equal(f, 1.0, 1.7e9 + 0.5, 1.7e9, 1e-7, backend=backend)[0] == 0.5000001
    assert assert_equal(lambda a, b, c: sum([a, -b, c]), 1e16 + 2, 1e16, 0.123, backend=backend)[0] == 2.123
    eight = (1e16, 1.0, -1e16, 3.0, 1e16, 1.0, -1e16, 0.25)
    assert assert_equal(lambda *xs: sum(xs), *eight, backend=backend)[0] == 4.25
    for terms in (2, 3, 5, 8):
        assert_equal(lambda *xs: sum(xs), *eight[-terms:], backend=backend)
        assert_equal(lambda *xs: sum(xs[::-1]), *eight[-terms:], backend=backend)
        assert_equal(lambda *xs: mg.dot(xs, xs[::-1]), *[1 / (3 + x) for x in range(terms)], backend=backend)
        assert_equal(lambda *xs: sum([1 / x for x in xs]) * 3.0, *[3.0 + x for x in range(terms)], backend=backend)


def test_a_product_that_was_computed_before_stands_where_it_is_used(backend):
    def f(a, b, c, d, e):
        product = d * e
        return a + b + c + product

    assert assert_equal(f, 1.0, 1e16, -1e16, 0.5, 0.5, backend=backend)[0] == 0.25


def test_chains_side_by_side_are_computed_from_left_to_right(backend):
    def f(*xs):
        rows = [xs[index : index + 6] for index in range(len(xs) - 5)]
        return [a - b * c + d * 0.1 - e + f for a, b, c, d, e, f in rows] + [mg.dot(row, row[::-1]) for row in rows]

    numbers = [10.0 ** (index % 7) / 7 for index in range(40)]
    values = [Value(number) for number in numbers]
    compiled = mg.compile(f, backend=backend)(*values)
    assert [value.data for value in compiled] == [value.data for value in f(*values)]


@pytest.mark.unmeasured
def test_parentheses_on_the_right_are_rounded_on_their_own(backend):
    assert assert_equal(kahan, 1.0, backend=backend)[0] == 1 + 2e-15
    assert assert_equal(lambda x: (x + 1) - x, 1e16, backend=backend)[0] == 0
    assert assert_equal(lambda x, y: y - (x - x * 1.0), 7.0, 1e-17, backend=backend)[0] == 1e-17
    assert assert_equal(lambda x, y, z: y - (x - z), 7.0, 1e-17, 7.0, backend=backend)[0] == 1e-17
    assert assert_equal(lambda x, y, z: y + (x - z), 7.0, 1e-17, 7.0, backend=backend)[0] == 1e-17
    assert assert_equal(lambda x, y, z: y + -(x - z), 7.0, 1e-17, 7.0, backend=backend)[0] == 1e-17
    assert assert_equal(lambda x, y, z: y * 2 + sum([x, -z]), 7.0, 1e-17, 7.0, backend=backend)[0] == 2e-17
    two = [1.0, 0.75, 0.5, 1e16 + 2, 1e16]
    assert assert_equal(lambda a, b, c, d, e: a + (b - c) + (d - e), *two, backend=backend)[0] == 3.25


def test_at_ties_no_product_is_rounded_with_the_sum(backend):
    numbers = (0.1, 0.3, 0.1, 0.3)
    for f in (mg.abs, mg.relu, lambda x: mg.maximum(0.0, x), lambda x: mg.minimum(0.0, x)):
        assert assert_equal(lambda a, b, c, d: f(a * b - c * d), *numbers, backend=backend) == [0.0] * 5  # noqa: B023
    assert assert_equal(lambda a, b, c, d: mg.where(c * d - a * b > 0, a * 100, b), *numbers, backend=backend)[0] == 0.3

    def loss(w0, w1, x, y):
        return mg.abs(w0 * x + w1 * y - 0.1 * 0.3 - 0.7 * 0.9)

    assert assert_equal(loss, 0.1, 0.7, 0.3, 0.9, backend=backend) == found(loss, (0.1, 0.7, 0.3, 0.9))
    assert found(loss, (0.1, 0.7, 0.3, 0.9))[0] == 0


@pytest.mark.unmeasured
def test_of_equal_operands_the_same_one_is_given_the_gradient(backend):
    for largest in (mg.maximum, mg.minimum):
        for f in (
            lambda x, y, z: largest(largest(x, y), z),  # noqa: B023
            lambda x, y, z: largest(x, largest(y, z)),  # noqa: B023
            lambda x, y, z: largest(-x, -largest(y, z)) * 3 + largest(x, y),  # noqa: B023
        ):
            fast = mg.compile(f, backend=backend)
            for numbers in ((1.0, 1.0, 1.0), (2.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.0, 2.0, 2.0), (-1.0, 1.0, 1.0)):
                assert found(fast, numbers) == found(f, numbers)


@pytest.mark.parametrize("divisor", [3, 7, 10, 49, 0.1, -3, 8, -0.25, 1e-3])
def test_quotients_by_constants_are_quotients(divisor, backend):
    fast = mg.compile(lambda x: x / divisor, backend=backend)
    for number in range(1, 50):
        assert found(fast, [float(number)]) == found(fast.function, [float(number)])


def test_quotients_of_numbers_below_the_normal_floats(backend):
    if backend == "jax":
        pytest.skip("XLA takes numbers below the normal floats for 0, as docs/compiler.md says")
    for divisor in (2.0**-1060, 2.0**-1000, 2.0**1000):
        runs = Runs()
        counted = lambda x, divisor=divisor, runs=runs: (print(end="", file=runs), x / divisor)[1]  # noqa: E731
        fast = mg.compile(counted, backend=backend)
        for number in (2.0**-1070, 3.0 * 2.0**-1040):
            assert fast(number) == number / divisor
        assert runs.times == 1


@pytest.mark.parametrize("exponent", [-1, 0.5, 1, 2, 3])
@pytest.mark.unmeasured
def test_powers_of_integers_below_a_thousand_are_the_same_and_others_almost(exponent, backend):
    fast = mg.compile(lambda x: x**exponent, backend=backend)
    x = Value(0.0)
    for x.data in range(1, 1000):
        assert fast(x).data == (x**exponent).data
    for x.data in (math.exp(0.1037 * number) for number in range(-200, 200)):
        assert abs(fast(x).data - (x**exponent).data) <= 2 * math.ulp((x**exponent).data)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**9))
def test_small_integers_are_equal_bit_for_bit(seed, backend):
    if is_left_out(backend, seed):
        return
    assert disagreement(program_of(0, seed), backend) is None


def raised(f, arguments):
    try:
        f(*arguments)
    except Exception as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("f", [lambda x: x**2, lambda x: x**2 - 2 * x + 1, lambda x: x**3, lambda x: x**4])
@pytest.mark.parametrize("x", [1e200, -1e200])
def test_powers_that_are_too_large_are_infinite_as_eagerly(f, x, backend):
    function = lambda x: [f(x), mg.atan(f(x))]  # noqa: E731
    assert str(mg.compile(function, backend=backend)(Value(x))) == str(function(Value(x)))


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("f", "good", "bad"),
    [
        (lambda x: mg.tanh(mg.exp(x)), 1.0, 1000.0),
        (lambda x: mg.minimum(1 / x, 5.0), 1.0, 0.0),
        (lambda x: mg.where(x > 0, x, 1 / x), 1.0, 0.0),
        (lambda x: mg.relu(mg.log(x)), 1.0, 0.0),
        (lambda x: mg.relu(mg.log(x)), 1.0, -1.0),
        (lambda x: mg.exp(-mg.exp(x)), 1.0, 1000.0),
        (lambda x: 1 / mg.exp(x), 1.0, 1000.0),
        (lambda x: mg.maximum(mg.sqrt(x), 1.0) * 2, 1.0, -1.0),
        (lambda x: mg.atan(x**-1), 1.0, 0.0),
        (lambda x: mg.atan(x**2.5), 1.0, -2.0),
        (lambda x: mg.atan(mg.cosh(x)), 1.0, 1000.0),
        (lambda x: mg.atan(mg.grad(lambda a: a**0.25)(x)), 1.0, 0.0),
        (lambda x: mg.atan(mg.grad(lambda a: a ** (x + 0.3))(x)), 1.0, 0.0),
        (lambda x: x + mg.detach(mg.maximum(-(1 / x), 1.0)), 1.0, 0.0),
        (lambda x: mg.where(x > 1, 0.0, mg.sin(x)), 1.0, math.inf),
        (lambda x: [mg.exp(x), x * 2][1], 1.0, 1000.0),
        (lambda x: [mg.exp(x), x][1], 1.0, 1000.0),
        (lambda x: [mg.exp(x), 2.0][1], 1.0, 1000.0),
        (lambda x: x * 0.0 + mg.detach(mg.where(x < 1e3, mg.exp(x), 1.0)), 1.0, 1000.0),
    ],
)
def test_what_eager_raises_on_the_way_is_raised(f, good, bad, backend):
    fast = mg.compile(f, backend=backend)
    for argument in (lambda number: number, Value):
        expected = f(argument(good))
        result = fast(argument(good))
        assert float(getattr(result, "data", result)) == pytest.approx(float(getattr(expected, "data", expected)))
        expected = raised(f, [argument(bad)])
        assert expected is not None
        assert raised(fast, [argument(bad)]) == expected
        with mg.no_grad():
            assert raised(fast, [argument(bad)]) == expected


def may_raise(x, count):
    """A number behind so many operations that may raise, each of which is noticed by itself."""
    for _ in range(count):
        x = mg.tanh(mg.exp(x))
    return x


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("count", "picked"), [(8, [0]), (8, [0, 1]), (7, [0, 1, 2]), (8, [0, 1, 2, 3]), (7, [0, 1, 2, 3]), (3, [1, 3, 1])]
)
def test_each_of_many_operations_that_may_raise_raises(count, picked, backend):
    """Each is noticed by itself, and what is right stays as it is, in results that lie side by side or apart."""

    def f(factors):
        x = factors[0]
        for factor in factors:
            x = mg.tanh(mg.exp(x * factor))
        results = [x, x * 2, factors[0] * 3, x + 1]
        return [results[position] for position in picked]

    fast = mg.compile(f, backend=backend)
    assert fast([1.0] * count) == pytest.approx(f([1.0] * count), rel=1e-15)
    for position in range(count):
        factors = [1.0] * count
        factors[position] = 5000.0
        assert raised(fast, [factors]) == raised(f, [factors])
        assert raised(fast, [factors])[0] is OverflowError


def test_a_quotient_by_a_constant_of_zero_is_refused(backend):
    for argument in (1.0, Value(1.0)):
        with pytest.raises(ZeroDivisionError):
            mg.compile(lambda x: mg.atan(x / 0.0), backend=backend)(argument)


def test_what_a_result_shows_gets_no_check():
    program = mg.compile(lambda x: mg.sqrt(mg.exp(x) / 3.0), backend="numpy").program(Value(1.0)).program
    forward = [kernel.kind for kernel in program.kernels][:3]
    assert forward == ["exp", "div", "sqrt"]
    assert not any(part.coefficient == 0 for kernel in program.kernels for part in getattr(kernel, "segments", ()))


@pytest.mark.parametrize("bias", [1.5, -0.0, 0.0, 7])
def test_a_neuron_with_a_plain_number_for_its_bias(bias, backend):
    neuron = mg.nn.Neuron(2, nonlin=False)
    neuron.b = bias
    x, y = Value(0.5), Value(0.25)
    assert mg.compile(lambda: neuron([x, y]), backend=backend)().data == neuron([x, y]).data


def test_what_raises_inside_of_a_formula_is_raised(backend):
    bounded = mg.primitive(
        "bounded_compiled",
        "b",
        composite(lambda on, x: 1 / (1 + on.exp(x)) + on.where(x > 0, 0.0, 1 / (3 + x))),
        lambda g, out, x: g * out,
        replace=True,
    )
    fast = mg.compile(lambda x: mg.tanh(bounded(x)) * 2, backend=backend)
    for number in (1.0, -2.0):
        assert fast(number) == pytest.approx(2 * math.tanh(bounded(number)))
        assert found(fast, [number]) == pytest.approx(found(fast.function, [number]))
    for number in (1000.0, -3.0):
        for argument in (number, Value(number)):
            assert raised(fast, [argument]) == raised(fast.function, [argument])
            assert raised(fast, [argument])[0] in (OverflowError, ZeroDivisionError)


def test_an_index_out_of_range_is_noticed_wherever_it_is(backend):
    x = Value(2.0)
    for f in (
        lambda index: mg.where(x < 5, 7.0 * x, mg.take([1.0, x, 2.0], index)),
        lambda index: mg.minimum(mg.take([1.0, x, 2.0], index), x),
        lambda index: [mg.take([1.0, x, 2.0], index), x * 2][1],
    ):
        fast = mg.compile(f, backend=backend)
        for index in (0, 1, -1, -3):
            assert fast(index).data == f(index).data
        for index in (3, -4):
            assert raised(fast, [index]) == raised(f, [index])
            assert raised(fast, [index])[0] is IndexError


def test_what_eager_raises_on_the_way_back_is_raised(backend):
    x = Value(0.0)
    fast = mg.compile(lambda: mg.where(x > 0, mg.sqrt(x), 1.0) + mg.maximum(x, 2.0), backend=backend)
    with pytest.raises(ZeroDivisionError):
        fast().backward()
    several = mg.compile(lambda: (mg.where(x > 0, mg.sqrt(x), 1.0), x * 2), backend=backend)()
    with pytest.raises(ZeroDivisionError):
        several[0].backward()


def test_what_a_rule_raises_and_would_get_lost_in_it_is_raised(backend, own_registry):
    lost = mg.primitive("lost", "lost", lambda x: x, lambda g, out, x: g * mg.tanh(1 / x))
    fast = mg.compile(lambda x: lost(x) * 2, backend=backend)
    x = Value(0.5)
    fast(x).backward()
    assert x.grad == pytest.approx(2 * math.tanh(2.0))
    with pytest.raises(ZeroDivisionError):
        fast(Value(0.0)).backward()


def test_masks_of_infinity_are_computed_without_the_eager_function(backend):
    calls = Runs()

    def f(xs, mask):
        print(end="", file=calls)
        masked = [mg.where(m, x, -math.inf) for x, m in zip(xs, mask, strict=True)]
        shares = mg.softmax([x / math.sqrt(3) for x in masked])
        return mg.dot(shares, xs) + mg.logsumexp([*masked, -math.inf]) + mg.maximum(masked[1], masked[0] + 1)

    xs, mask = [Value(0.5), Value(1.5), Value(-1.0)], [1.0, 0.0, 1.0]
    expected = [f(xs, mask).data]
    fast = mg.compile(f, backend=backend)
    results = [fast(xs, mask) for _ in range(3)]
    results[0].backward()
    assert [result.data for result in results] == pytest.approx(expected * 3)
    assert calls.times == 2  # eager, and traced


def test_what_is_not_finite_on_the_way_stops_a_fit_as_eager_does(backend):
    def losses(compile_):
        w = Value(1.0)
        optimizer = mg.optim.SGD([w], learning_rate=1.0)
        numbers = [(0.5,), (1.0,), (0.0,)]
        with pytest.raises(ZeroDivisionError) as error:
            mg.fit(lambda x: w + mg.minimum(1 / x, 5.0), numbers, optimizer, seed=0, compile=compile_)
        return str(error.value), w.data

    assert losses(backend) == losses(False)


def test_gradients_of_sums_that_cancel_are_zero(backend):
    def f(x, y):
        a, b = mg.abs(x * y - y * x), mg.abs(x - y + (y - x))
        return a + b + mg.abs(x * 0.1 * y - y * (0.1 * x)) * 0.0

    assert_equal(f, 0.3, 0.7, backend=backend)


PLAIN = mg.nn.Neuron(2, nonlin=False)
PLAIN.w, PLAIN.b = [Value(1.0), Value(2.0)], 0.0


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x + y,
        lambda x, y: 0 + x,
        lambda x, y: x + 0.0,
        lambda x, y: x - 0.0,
        lambda x, y: 0.0 - x,
        lambda x, y: sum([x, y]),
        lambda x, y: x + sum([y]),
        lambda x, y: x + y * 1.0,
        lambda x, y: x * y + sum([x * y]),
        lambda x, y: mg.dot([x, y], [1.0, 2.0]),
        lambda x, y: mg.jvp(lambda t: mg.dot([t], [y]), (x,), (1.0,))[1] * 1.0,
        lambda x, y: PLAIN([x, y]),
        lambda x, y: -(x + y),
        lambda x, y: -(x - y) + x,
        lambda x, y: x - (x - y),
        lambda x, y: mg.relu(x) * y,
        lambda x, y: mg.where(x < 0, x, -y),
        lambda x, y: mg.maximum(x, y) + mg.minimum(x, y),
        lambda x, y: mg.where(x < 1, -y, x**2),
        lambda x, y: mg.where(x < 1, -y, mg.sqrt(x**2 + 1) - 5),
        lambda x, y: mg.where(x < 1, -y, may_raise(x, 7)),
        lambda x, y: mg.where(x < 1, -y, may_raise(x, 8)),
    ],
)
def test_zeros_have_the_same_sign(f, backend):
    fast = mg.compile(f, backend=backend)
    for x in (0.0, -0.0):
        for y in (0.0, -0.0):
            assert repr(fast(x, y)) == repr(f(x, y))
            assert str(found(fast, [x, y])) == str(found(f, [x, y]))


def test_arrays_of_integers(backend):
    random = np.random.default_rng(0)
    w, x = (random.integers(-3, 4, (6, 12)).astype(float) for _ in range(2))
    rows = [[Value(number) for number in row] for row in w]

    def f():
        hidden = [[mg.relu(mg.dot(row, point) - 1) for row in rows] for point in x]
        return sum(sum(h * h for h in point) - mg.maximum(*point[:2]) for point in hidden)

    results = []
    for g in (f, mg.compile(f, backend=backend)):
        for row in rows:
            for value in row:
                value.grad = 0.0
        output = g()
        output.backward()
        results.append([output.data, *(value.grad for row in rows for value in row)])
    assert results[0] == results[1]
