"""What a user of Value sees: numbers in, operators, gradients, errors, threads, depth and memory."""

import asyncio
import contextvars
import dis
import gc
import math
import operator
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.nn import MLP
from micrograd.optim import SGD
from tests.strategies import by_hand, micrograds_example

repeatable = settings(derandomize=True, deadline=None, max_examples=200, database=None)
finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-2.0, 2.0)


def same_float(first, second):
    """Whether two floats are the same to the bit, NaN included."""
    return (math.isnan(first) and math.isnan(second)) or (
        first == second and math.copysign(1.0, first) == math.copysign(1.0, second)
    )


def live_values():
    """How many Values there are."""
    return sum(type(thing) is Value for thing in gc.get_objects())


@pytest.fixture
def without_collector():
    """Run a test without the cycle collector, which otherwise would hide what only it frees."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class TestNumbersIn:
    @pytest.mark.parametrize(
        ("given_number", "stored"),
        [
            (3, 3.0),
            (0.1, 0.1),
            (True, 1.0),
            (-0.0, -0.0),
            (2**53 + 1, float(2**53)),
            (Fraction(1, 3), 1 / 3),
            (Decimal("0.1"), 0.1),
            (np.float64(0.1), 0.1),
            (np.float32(0.5), 0.5),
            (np.float16(0.5), 0.5),
            (np.int64(-7), -7.0),
            (np.uint8(7), 7.0),
            (np.True_, 1.0),
            (math.inf, math.inf),
        ],
        ids=repr,
    )
    def test_real_numbers_are_accepted_and_stored_as_exactly_float(self, given_number, stored):
        for number in (Value(given_number).data, (Value(0.0) + given_number).data, (given_number + Value(0.0)).data):
            assert type(number) is float
            assert number == stored
        assert same_float(Value(given_number).data, stored)

    @pytest.mark.parametrize(
        "thing",
        [
            "3",
            b"3",
            None,
            1j,
            complex(1, 0),
            np.complex128(1),
            [1],
            (1.0,),
            {},
            {1.0},
            Value(1),
            object(),
            float,
            np.array(1.0),
            np.array([1.0]),
            np.array([[1.0]]),
            np.datetime64("2020-01-01"),
            np.timedelta64(3, "s"),
            np.str_("3"),
            lambda: 1.0,
        ],
        ids=lambda thing: f"{type(thing).__name__} {thing!r:.20}",
    )
    def test_what_is_no_real_number_is_refused_as_data_and_gradient(self, thing):
        with pytest.raises(TypeError, match=f"the data of a Value must be a real number, not {type(thing).__name__}"):
            Value(thing)
        leaf = Value(1.0)
        with pytest.raises(TypeError, match="real number"):
            leaf.data = thing
        with pytest.raises(TypeError, match="real number"):
            leaf.grad = thing
        with pytest.raises(TypeError, match="real number"):
            leaf.backward(gradient=thing)
        assert (leaf.data, leaf.grad) == (1.0, 0.0)

    @pytest.mark.parametrize("thing", ["3", b"3", None, 1j, [1], {}, object()], ids=repr)
    @pytest.mark.parametrize(
        "operation",
        [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.lt, operator.ge],
    )
    def test_operators_refuse_what_is_no_number_on_either_side(self, operation, thing):
        with pytest.raises(TypeError):
            operation(Value(2.0), thing)
        with pytest.raises(TypeError):
            operation(thing, Value(2.0))

    @pytest.mark.parametrize("thing", ["3", None, [1.0]], ids=repr)
    @pytest.mark.parametrize("name", ["maximum", "minimum"])
    def test_functions_refuse_what_is_no_number(self, name, thing):
        with pytest.raises(TypeError, match="real number"):
            getattr(mg, name)(Value(1.0), thing)

    @pytest.mark.parametrize("thing", ["3", None, [1.0]], ids=repr)
    @pytest.mark.parametrize("name", ["maximum", "minimum"])
    def test_methods_refuse_what_is_no_number(self, name, thing):
        with pytest.raises(TypeError):
            getattr(Value(1.0), name)(thing)

    def test_an_int_beyond_every_float_raises_as_float_does(self):
        for make in (Value, lambda number: Value(1.0) + number, lambda number: number * Value(1.0)):
            with pytest.raises(OverflowError, match="too large"):
                make(10**400)

    def test_comparing_with_an_int_beyond_every_float_works_as_for_floats(self):
        assert Value(1.0) < 10**400
        assert Value(1.0) > -(10**400)

    def test_the_message_about_bad_data_stays_short(self):
        with pytest.raises(TypeError) as caught:
            Value("x" * 10_000)
        assert len(str(caught.value)) < 200


class TestActsAsFloat:
    @repeatable
    @given(x=st.floats(), y=st.floats(), name=st.sampled_from(["add", "sub", "mul", "truediv", "pow"]))
    @example(x=-8.0, y=1 / 3, name="pow")
    @example(x=0.0, y=-1.0, name="pow")
    @example(x=10.0, y=400.0, name="pow")
    @example(x=1.0, y=-0.0, name="truediv")
    def test_arithmetic_gives_what_floats_give_or_raises_the_same(self, x, y, name):
        operation = getattr(operator, name)
        complex_power = name == "pow" and x < 0 and math.isfinite(y) and not y.is_integer()
        expected = ValueError if complex_power else None
        if expected is None:
            try:
                result = operation(x, y)
            except ArithmeticError as error:
                expected = type(error)
        for left, right in ((Value(x), Value(y)), (Value(x), y), (x, Value(y))):
            if expected is None:
                made = operation(left, right)
                assert type(made) is Value
                assert type(made.data) is float
                assert same_float(made.data, result)
            else:
                with pytest.raises(expected) as caught:
                    operation(left, right)
                assert type(caught.value) is expected

    @repeatable
    @given(x=st.floats(), y=st.floats(), name=st.sampled_from(["lt", "le", "gt", "ge"]))
    def test_comparisons_compare_data_and_give_a_bool(self, x, y, name):
        compare = getattr(operator, name)
        for left, right in ((Value(x), Value(y)), (Value(x), y), (x, Value(y))):
            assert compare(left, right) is compare(x, y)

    def test_equality_and_hash_are_identity(self):
        a, b = Value(1.0), Value(1.0)
        assert a == a
        assert a != b
        assert a != 1.0
        assert len({a, b, a}) == 2
        assert {a: "a", b: "b"}[a] == "a"

    @repeatable
    @given(x=st.floats())
    def test_float_and_bool_are_those_of_the_data(self, x):
        assert type(float(Value(x))) is float
        assert same_float(float(Value(x)), x)
        assert bool(Value(x)) is bool(x)

    def test_format_with_a_specification_formats_the_number_and_without_shows_the_value(self):
        value = Value(3.14159)
        assert f"{value:8.2f}|{value:.1e}|{value:+}" == "    3.14|3.1e+00|+3.14159"
        assert f"{value}" == str(value) == repr(value) == "Value(data=3.14159, grad=0.0)"

    def test_repr_shows_data_gradient_and_label(self):
        a = Value(2, label="a")
        (a * a).backward()
        assert repr(a) == "Value(data=2.0, grad=4.0, label='a')"
        assert repr(Value(-0.0)) == "Value(data=-0.0, grad=0.0)"
        assert repr(Value(1.0, label="it's")) == 'Value(data=1.0, grad=0.0, label="it\'s")'

    def test_negative_and_absolute_value_and_sum_work(self):
        a = Value(-2.0)
        total = sum([-a, abs(a), a, 1])
        total.backward()
        assert (total.data, a.grad) == (3.0, -1.0 - 1.0 + 1.0)

    def test_sorting_and_the_largest_follow_the_data(self):
        values = [Value(number) for number in (3.0, -1.0, 2.0)]
        assert [value.data for value in sorted(values)] == [-1.0, 2.0, 3.0]
        assert max(values) is values[0]

    def test_augmented_assignment_rebinds_and_leaves_the_old_value_alone(self):
        a = before = Value(2.0)
        a += 1
        a *= a
        a -= 1
        a /= 2
        a **= 2
        a.backward()
        assert (a.data, before.data, before.grad) == (16.0, 2.0, 2 * 4.0 * 0.5 * 2 * 3.0)

    def test_unary_plus_works_as_for_floats(self):
        a = Value(2.0)
        (+a * 3).backward()
        assert a.grad == 3.0


class TestErrors:
    @pytest.mark.parametrize(
        ("compute", "kind", "parts"),
        [
            (lambda: Value(1.0) / 0.0, ZeroDivisionError, ["1.0 / 0.0"]),
            (
                lambda: Value(1.0, label="top") / Value(0.0, label="zero"),
                ZeroDivisionError,
                ["top = 1.0", "zero = 0.0"],
            ),
            (lambda: 1 / Value(0.0, label="zero"), ZeroDivisionError, ["1.0 / ", "zero = 0.0"]),
            (lambda: Value(-1.0, label="x").log(), ValueError, ["log(", "x = -1.0"]),
            (lambda: mg.log(Value(0.0)), ValueError, ["log(0.0)"]),
            (lambda: Value(1000.0, label="big").exp(), OverflowError, ["exp(", "big = 1000.0"]),
            (lambda: Value(-2.0).sqrt(), ValueError, ["sqrt(-2.0)"]),
            (lambda: Value(-8.0, label="base") ** 0.5, ValueError, ["base = -8.0", "** 0.5", "fractional exponent"]),
            (lambda: (-8.0) ** Value(0.5, label="power"), ValueError, ["-8.0 ** ", "power = 0.5"]),
            (lambda: Value(10.0) ** 400, OverflowError, ["10.0 ** 400.0"]),
            (lambda: Value(0.0) ** -1, ZeroDivisionError, ["0.0 ** -1.0"]),
            (lambda: Value(2.0).asin(), ValueError, ["asin(2.0)"]),
            (lambda: Value(1e5).cosh(), OverflowError, ["cosh(100000.0)"]),
            (lambda: Value(-1.0).log1p(), ValueError, ["log1p(-1.0)"]),
        ],
    )
    def test_errors_are_those_of_floats_and_say_operation_numbers_and_labels(self, compute, kind, parts):
        for compute_so in (compute, mg.no_grad()(compute)):
            with pytest.raises(kind) as caught:
                compute_so()
            assert type(caught.value) is kind
            for part in parts:
                assert part in str(caught.value)

    def test_a_failed_operation_leaves_no_value_behind(self, without_collector):
        a, zero = Value(1.0), Value(0.0)
        before = live_values()
        for _ in range(10):
            for compute in (lambda: a / zero, lambda: zero.log(), lambda: (-a) ** 0.5, lambda: 1e9 ** (a * 1e9)):
                with pytest.raises((ArithmeticError, ValueError)):
                    compute()
        assert live_values() == before
        assert (a.grad, zero.grad) == (0.0, 0.0)

    def test_an_error_in_a_derivative_says_operation_numbers_and_labels(self):
        x = Value(0.0, label="x")
        with pytest.raises(ZeroDivisionError, match=r"derivative of sqrt\(.*x = 0\.0"):
            (x.sqrt() * 2).backward()
        with pytest.raises(ZeroDivisionError, match=r"derivative of .*x = 0\.0.* \*\* 0\.5"):
            (x**0.5).backward()

    def test_a_negative_base_has_no_derivative_with_respect_to_its_exponent(self):
        base, exponent = Value(-2.0), Value(2.0, label="exponent")
        with pytest.raises(ValueError, match=r"derivative of -2\.0 \*\* .*exponent = 2\.0"):
            (base**exponent).backward()
        (base**2).backward()
        assert base.grad == -4.0


class TestNumPy:
    @pytest.mark.parametrize(
        "scalar", [np.float64(2), np.float32(2), np.int64(2)], ids=lambda scalar: scalar.dtype.name
    )
    def test_a_numpy_scalar_on_the_left_gives_a_value_with_gradients(self, scalar):
        v = Value(3.0)
        results = [scalar * v, scalar + v, scalar - v, scalar / v, scalar**v]
        assert [type(result) for result in results] == [Value] * 5
        assert [result.data for result in results] == pytest.approx([6.0, 5.0, -1.0, 2 / 3, 8.0])
        sum(results).backward()
        assert v.grad == pytest.approx(2 + 1 - 1 - 2 / 9 + 8 * math.log(2))
        assert type(v.grad) is float
        assert scalar < v
        assert v > scalar

    def test_an_array_beside_a_value_gives_an_array_of_values(self):
        v = Value(3.0)
        numbers = np.array([1.0, 2.0])
        for array in (numbers * v, v * numbers, numbers + v, v - numbers, v / numbers, v**numbers):
            assert array.dtype == object
            assert [type(element) for element in array] == [Value, Value]
        (numbers * v).sum().backward()
        assert v.grad == 3.0
        assert list(v > np.array([1.0, 5.0])) == [True, False]

    def test_arrays_of_values_multiply_as_matrices_and_call_the_methods(self):
        matrix = np.array([[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]])
        total = np.exp((matrix @ np.array([0.1, 0.2])).T).sum()
        total.backward()
        assert total.data == pytest.approx(math.exp(0.5) + math.exp(1.1))
        assert matrix[1, 0].grad == pytest.approx(0.1 * math.exp(1.1))


class TestRequiresGrad:
    def test_results_of_constants_are_constants_and_leaves(self):
        a, b = Value(2.0, requires_grad=False), Value(3.0, requires_grad=False)
        for result in (a * b, a + 1, 1 / b, a.tanh(), mg.where(a > 1, a, b), mg.maximum(a, 1.0), -a, a**b):
            assert not result.requires_grad
            assert result.is_leaf
            assert result._prev == set()
            with pytest.raises(ValueError, match="requires no gradient"):
                result.backward()

    def test_a_result_requires_a_gradient_where_one_operand_does(self):
        a, b = Value(2.0), Value(3.0, requires_grad=False)
        result = a * b
        assert (a.is_leaf, b.is_leaf, result.is_leaf) == (True, True, False)
        assert (a.requires_grad, b.requires_grad, result.requires_grad) == (True, False, True)
        result.backward()
        assert (a.grad, b.grad) == (3.0, 0.0)

    def test_a_leaf_frozen_between_forward_and_backward_gets_no_gradient(self):
        a, b = Value(2.0), Value(3.0)
        result = a * b + a.tanh() + mg.where(True, a, b)
        a.requires_grad = False
        result.backward()
        assert (a.grad, b.grad) == (0.0, 2.0)
        a.requires_grad = True
        result.backward()
        assert a.grad == pytest.approx(3.0 + 1.0 + 1 / math.cosh(2.0) ** 2)

    def test_requires_grad_of_a_result_cannot_be_set(self):
        result = Value(2.0) * 3
        for wanted in (True, False):
            with pytest.raises(ValueError, match="result of '\\*'"):
                result.requires_grad = wanted

    def test_a_leaf_backpropagated_from_gets_the_gradient_itself(self):
        a = Value(2.0)
        a.backward()
        a.backward(gradient=0.5)
        assert a.grad == 1.5

    def test_detach_stops_the_gradient(self):
        a = Value(2.0)
        (a * mg.detach(a)).backward()
        assert a.grad == 2.0

    def test_a_hand_written_constant_is_a_constant(self):
        assert not Value(2.0, (Value(1.0),), "operation", requires_grad=False).requires_grad

    def test_the_data_of_a_result_cannot_be_set(self):
        a = Value(2.0, label="a")
        result = a * 3
        with pytest.raises(ValueError, match="result of '\\*'"):
            result.data = 1.0
        assert result.data == 6.0

    @repeatable
    @given(before=moderate, after=moderate, other=moderate)
    def test_setting_a_leaf_between_forward_and_backward_gives_the_recorded_gradient(self, before, after, other):
        a, b = Value(before), Value(other)
        result = a * b + a.tanh() * a**2 + mg.where(a > 0, a * 3, b) + mg.maximum(a, b)
        expected = Value(before), Value(other)
        x, y = expected
        (x * y + x.tanh() * x**2 + mg.where(x > 0, x * 3, y) + mg.maximum(x, y)).backward()
        a.data, b.data = after, after
        result.backward()
        assert (a.grad, b.grad) == (x.grad, y.grad)


OPERATIONS = [
    (lambda x, y: (x + y) * 0.5, lambda x, y: (0.5, 0.5)),
    (lambda x, y: x * y, lambda x, y: (y, x)),
    (lambda x, y: x - y, lambda x, y: (1.0, -1.0)),
    (lambda x, y: mg.sin(x) / (2 + mg.cos(y)), None),
    (lambda x, y: mg.tanh(x) + mg.sigmoid(y), None),
]


def with_tangents(number, first, second):
    """The operations on dual numbers (a float and its derivative by each leaf), apart from the engine."""
    (x, dx), (y, dy) = first, second
    value, by_x, by_y = [
        lambda: ((x + y) * 0.5, 0.5, 0.5),
        lambda: (x * y, y, x),
        lambda: (x - y, 1.0, -1.0),
        lambda: (
            math.sin(x) / (2 + math.cos(y)),
            math.cos(x) / (2 + math.cos(y)),
            math.sin(x) * math.sin(y) / (2 + math.cos(y)) ** 2,
        ),
        lambda: (
            math.tanh(x) + 1 / (1 + math.exp(-y)),
            1 - math.tanh(x) ** 2,
            math.exp(-abs(y)) / (1 + math.exp(-abs(y))) ** 2,
        ),
    ][number]()
    return value, [by_x * tangent + by_y * other for tangent, other in zip(dx, dy, strict=True)]


@st.composite
def programs(draw):
    """Numbers of three leaves, and steps that each apply an operation to two earlier results."""
    numbers = draw(st.lists(moderate, min_size=3, max_size=3))
    steps = [
        (draw(st.integers(0, len(OPERATIONS) - 1)), draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1)))
        for size in range(3, 3 + draw(st.integers(1, 7)))
    ]
    return numbers, steps


def run(program):
    """The leaves and the result of a program."""
    numbers, steps = program
    leaves = [Value(number) for number in numbers]
    results = list(leaves)
    for number, first, second in steps:
        results.append(OPERATIONS[number][0](results[first], results[second]))
    return leaves, results[-1]


class TestBackward:
    @repeatable
    @given(program=programs())
    def test_gradients_agree_with_forward_differentiation(self, program):
        leaves, result = run(program)
        result.backward()
        numbers, steps = program
        duals = [(number, [float(index == leaf) for leaf in range(3)]) for index, number in enumerate(numbers)]
        for number, first, second in steps:
            duals.append(with_tangents(number, duals[first], duals[second]))
        value, tangents = duals[-1]
        size = max(abs(tangent) for _, row in duals for tangent in row) * max(1.0, *(abs(dual[0]) for dual in duals))
        assert result.data == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert [leaf.grad for leaf in leaves] == pytest.approx(tangents, rel=1e-9, abs=1e-12 * max(size, 1.0))

    @repeatable
    @given(program=programs())
    def test_backward_twice_exactly_doubles_the_leaves(self, program):
        leaves, result = run(program)
        result.backward()
        once = [leaf.grad for leaf in leaves]
        result.backward()
        assert [leaf.grad for leaf in leaves] == [2 * gradient for gradient in once]

    @repeatable
    @given(program=programs(), exponent=st.integers(-8, 8), sign=st.sampled_from([-1.0, 1.0]))
    def test_the_gradient_argument_weighs_every_gradient(self, program, exponent, sign):
        leaves, result = run(program)
        result.backward()
        once = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = 0.0
        weight = sign * 2.0**exponent
        result.backward(gradient=weight)
        # a power of two scales exactly; only what becomes denormal is rounded
        weighed = [weight * gradient for gradient in once]
        assert [leaf.grad for leaf in leaves] == pytest.approx(weighed, rel=0, abs=1e-315)
        assert result.grad == weight

    def test_leaves_accumulate_over_graphs_until_they_are_set_to_zero(self):
        a = Value(3.0)
        (a * a).backward()
        (a * 2).backward()
        assert a.grad == 8.0
        a.grad = 0
        (a * 2).backward()
        assert a.grad == 2.0

    def test_nodes_between_hold_the_gradient_of_the_last_call_only(self):
        a = Value(3.0)
        between = a * 2
        result = between * between
        for _ in range(3):
            result.backward()
            assert (between.grad, result.grad) == (12.0, 1.0)
        assert a.grad == 3 * 24.0

    def test_two_results_of_a_shared_part_each_pass_their_own_gradient(self):
        a = Value(3.0)
        shared = a * a
        first, second = shared * 2, shared + a
        first.backward()
        assert (a.grad, shared.grad) == (12.0, 2.0)
        second.backward()
        assert (a.grad, shared.grad) == (12.0 + 7.0, 1.0)

    def test_an_operand_used_many_times_gets_the_gradient_of_each_use(self):
        a = Value(2.0)
        result = a + a
        for _ in range(20):
            result = result + result
        result.backward()
        assert a.grad == 2.0**21

    def test_the_example_of_micrograd_gives_its_numbers(self):
        a, b = Value(-4.0), Value(2.0)
        g = micrograds_example(a, b)
        g.backward()
        assert f"{g.data:.4f} {a.grad:.4f} {b.grad:.4f}" == "24.7041 138.8338 645.5773"


def square_root_at_zero(a, times):
    return (a - a).sqrt()


def operation_without_derivative(a, times):
    return Value(1.0, (a,), "mystery")


def closure_that_raises(kind):
    def make(a, times):
        result = Value(a.data, (a,), "faulty")

        def backward():
            a.grad += 100.0  # what it did before it failed must not stay either
            times.append(1)
            if len(times) == 1:
                raise kind("from the closure")
            a.grad += result.grad - 100.0

        result._backward = backward
        return result

    return make


def interrupted_at(count, action):
    """Run an action with Ctrl-C at the count-th place inside micrograd where Python looks for one.

    CPython looks when a function begins, before it jumps back in a loop, and after a call of what is
    not written in Python.
    """
    places = 0
    after_call = {}

    def trace(frame, event, argument):
        nonlocal places
        if event == "call":
            after_call[frame.f_back] = False
        if not frame.f_globals.get("__name__", "").startswith("micrograd"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if name.startswith(("RESUME", "JUMP_BACKWARD", "JUMP_ABSOLUTE")) or after_call.get(frame):
                places += 1
            after_call[frame] = name.startswith("CALL")
            if places == count:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return action()
    finally:
        sys.settrace(before)
        after_call.clear()


def interrupted_and_recording(count, action):
    """Whether Ctrl-C at the count-th place came through, and whether results are recorded afterwards."""
    interrupted = False
    try:
        interrupted_at(count, action)
    except KeyboardInterrupt:
        interrupted = True
    return interrupted, (Value(3.0) * 2).requires_grad


class TestFailingBackward:
    @pytest.mark.parametrize(
        ("make", "kind"),
        [
            (square_root_at_zero, ZeroDivisionError),
            (operation_without_derivative, ValueError),
            (closure_that_raises(ValueError), ValueError),
            (closure_that_raises(RuntimeError), RuntimeError),
            (closure_that_raises(KeyboardInterrupt), KeyboardInterrupt),
        ],
        ids=["derivative", "no derivative", "ValueError", "RuntimeError", "KeyboardInterrupt"],
    )
    @pytest.mark.parametrize("first", [True, False], ids=["failing part first", "failing part last"])
    def test_a_failing_backward_leaves_the_leaves_as_before_and_the_graph_usable(self, make, kind, first):
        a, b = Value(2.0), Value(3.0)
        (a * b).backward()
        times = []
        healthy = (a * b).tanh() * b
        faulty = make(a * b, times) * a
        result = faulty + healthy if first else healthy + faulty
        with pytest.raises(kind):
            result.backward()
        assert (a.grad, b.grad) == (3.0, 2.0)
        assert [node.grad for node in mg.topological_order(result) if not node.is_leaf and node.grad] == []
        a.grad = b.grad = 0.0
        healthy.backward()
        slope = 1 / math.cosh(6.0) ** 2
        assert (a.grad, b.grad) == pytest.approx((9.0 * slope, math.tanh(6.0) + 6.0 * slope))
        if times:  # the closure fails once only, so the very same graph works now
            a.grad = b.grad = 0.0
            result.backward()
            assert (a.grad, b.grad) == pytest.approx((9.0 * slope + 12.0, math.tanh(6.0) + 6.0 * slope + 4.0))
        else:
            with pytest.raises(kind):
                result.backward()

    def test_a_failure_deep_inside_a_long_chain_is_undone(self):
        a = Value(0.0)
        a.grad = 7.0
        result = a.sqrt()
        for _ in range(50_000):
            result = result + a
        with pytest.raises(ZeroDivisionError):
            result.backward()
        assert a.grad == 7.0
        (a * 2).backward()
        assert a.grad == 9.0

    def test_a_failing_backward_leaves_the_gradient_of_a_frozen_leaf(self):
        frozen = Value(2.0)
        frozen.grad = 5.0
        frozen.requires_grad = False
        with pytest.raises(ZeroDivisionError):
            (Value(0.0).sqrt() + frozen).backward()
        assert frozen.grad == 5.0

    @pytest.mark.parametrize(
        "create_graph",
        [
            False,
            True,
        ],
    )
    def test_an_interrupt_anywhere_in_backward_leaves_all_gradients_or_none(self, create_graph):
        count, outcomes = 0, []
        while not outcomes or outcomes[-1] != "finished":
            count += 1
            a, b = Value(2.0), Value(3.0)
            a.grad, b.grad = 5.0, 7.0
            result = mg.where(True, a * b, a) * a + b * b
            try:
                backward = partial(result.backward, create_graph=create_graph)
                contextvars.copy_context().run(interrupted_at, count, backward)
            except KeyboardInterrupt:
                outcomes.append("interrupted")
            else:
                outcomes.append("finished")
            before, after = (5.0, 7.0), (5.0 + 12.0, 7.0 + 10.0)
            assert (float(a.grad), float(b.grad)) in ([after] if outcomes[-1] == "finished" else [before, after]), count
            a.grad = b.grad = 0.0
            result.backward()
            assert (a.grad, b.grad) == (12.0, 10.0), count
        assert len(outcomes) > 20
        thread = threading.Thread(target=result.backward, daemon=True)
        thread.start()
        thread.join(10)
        assert not thread.is_alive()  # none of the interrupts left the engine locked

    def test_an_interrupt_anywhere_in_backward_keeps_no_graph_alive(self, without_collector):
        alive = []
        for _ in range(2):
            for count in range(1, 60):
                result = Value(2.0) * Value(3.0)
                interrupted = False
                try:
                    interrupted_at(count, result.backward)
                except KeyboardInterrupt:
                    interrupted = True
                del result
                if not interrupted:
                    break
            assert count > 10
            gc.collect()
            alive.append(live_values())
        assert alive[0] == alive[1]

    def test_an_interrupt_anywhere_in_a_differentiable_backward_leaves_float_working(self):
        def interrupted(count, result):
            try:
                interrupted_at(count, partial(result.backward, create_graph=True))
            except KeyboardInterrupt:
                assert float(result) == 8.0, count
                return True
            return False

        for count in range(1, 2000):
            if not contextvars.copy_context().run(interrupted, count, Value(2.0) ** 3):
                break
        assert 20 < count < 1999

    def test_a_value_without_operands_that_require_gradients_cannot_start(self):
        with pytest.raises(ValueError, match="requires no gradient"):
            Value(1.0, requires_grad=False, label="constant").backward()


def test_numbers_among_three_operands_are_values_that_require_no_gradient():
    x = Value(2.0)
    chosen = mg.where(1.0, x, 3.0)
    assert {(operand.data, operand.requires_grad) for operand in chosen._prev} == {
        (1.0, False),
        (2.0, True),
        (3.0, False),
    }


class TestNoGrad:
    def test_nothing_is_recorded_inside(self):
        a = Value(3.0)
        with mg.no_grad():
            results = [a * a, a + 1, 1 - a, -a, a.exp(), mg.where(a > 0, a, 0.0), a**2, mg.softmax([a, 1.0])[0]]
        for result in results:
            assert not result.requires_grad
            assert result._prev == set()
            assert result._op == ""
            assert result.grad == 0.0
        assert results[0].data == 9.0
        assert (a * a).requires_grad

    def test_it_decorates_what_is_no_python_function_too(self):
        a = Value(3.0)
        for double in (partial(operator.mul, 2.0), a.__add__):
            result = mg.no_grad()(double)(a)
            assert (result.data, result.requires_grad) == (6.0, False)

    def test_a_result_can_be_freed_to_be_a_leaf_like_any_other(self):
        with mg.no_grad():
            leaf = Value(3.0) * 2
        leaf.requires_grad = True
        (leaf * leaf + leaf).backward()
        assert leaf.grad == 13.0
        with pytest.raises(ZeroDivisionError):
            (leaf + mg.sqrt(Value(0.0))).backward()
        assert leaf.grad == 13.0

    def test_a_dot_product_is_a_number_where_all_is_numbers(self):
        a = Value(3.0)
        with mg.no_grad():
            assert type(mg.dot([1.0, 2.0], [3.0, 4.0])) is float
            assert mg.dot([1.0, 2.0], [3.0, 4.0]) == 11.0
            assert mg.dot([1.0, a], [3.0, 4.0]).data == 15.0
            assert not mg.dot([1.0, a], [3.0, 4.0]).requires_grad

    def test_it_nests(self):
        a = Value(3.0)
        with mg.no_grad():
            with mg.no_grad():
                assert not (a * 2).requires_grad
            assert not (a * 2).requires_grad
        assert (a * 2).requires_grad

    def test_an_interrupt_anywhere_does_not_leave_it_on(self):
        def silent():
            with mg.no_grad():
                return Value(3.0) * 2

        for count in range(1, 60):
            interrupted, recording = contextvars.copy_context().run(interrupted_and_recording, count, silent)
            assert recording, count
            if not interrupted:
                break
        assert count > 5

    def test_it_ends_with_an_exception(self):
        a = Value(3.0)
        with pytest.raises(RuntimeError, match="inside"), mg.no_grad():
            raise RuntimeError("inside")
        assert (a * 2).requires_grad

    def test_it_decorates_a_function_that_may_be_called_again_and_recursively(self):
        a = Value(3.0)

        @mg.no_grad()
        def power(exponent):
            """A power."""
            return a * power(exponent - 1) if exponent else a * 1

        for _ in range(2):
            assert not power(3).requires_grad
            assert (a * 2).requires_grad
        assert (power.__name__, power.__doc__) == ("power", "A power.")

    @pytest.mark.parametrize("kind", ["coroutine", "generator"])
    def test_it_decorates_what_runs_later_or_refuses_to(self, kind):
        a, recorded = Value(3.0), []
        try:
            if kind == "coroutine":

                @mg.no_grad()
                async def later():
                    recorded.append((a * 2).requires_grad)

                asyncio.run(later())
            else:

                @mg.no_grad()
                def steps():
                    recorded.append((a * 2).requires_grad)
                    yield

                list(steps())
        except TypeError:
            return
        assert recorded == [False]

    def test_leaves_made_inside_still_require_gradients(self):
        with mg.no_grad():
            leaf = Value(3.0)
        (leaf * 2).backward()
        assert leaf.grad == 2.0

    def test_a_hand_written_operation_inside_is_a_constant(self):
        a = Value(3.0)
        with mg.no_grad():
            result = Value(9.0, (a,), "square")
        result._backward = lambda: None
        assert (result.requires_grad, result.is_leaf) == (False, True)

    def test_backward_of_an_earlier_graph_works_inside(self):
        a = Value(3.0)
        result = a.tanh() * a
        with mg.no_grad():
            result.backward()
        assert a.grad == pytest.approx(math.tanh(3.0) + 3.0 / math.cosh(3.0) ** 2)

    def test_other_threads_keep_recording(self):
        a, recorded = Value(3.0), []
        with mg.no_grad():
            thread = threading.Thread(target=lambda: recorded.append((a * 2).requires_grad))
            thread.start()
            thread.join()
        assert recorded == [True]

    def test_a_decorated_function_may_run_in_several_threads_at_a_time(self):
        a, together, outcomes = Value(3.0), threading.Barrier(2, timeout=10), []

        @mg.no_grad()
        def silent(first):
            together.wait()
            if not first:
                done.wait(10)
            return (a * 2).requires_grad

        def work(first):
            try:
                outcomes.append((silent(first), (a * 2).requires_grad))
            except BaseException as error:
                outcomes.append(error)
            done.set()

        done = threading.Event()
        threads = [threading.Thread(target=work, args=(first,)) for first in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == [(False, True), (False, True)]

    def test_other_tasks_keep_recording(self):
        a = Value(3.0)

        async def silent(seen):
            with mg.no_grad():
                for _ in range(3):
                    await asyncio.sleep(0)
                    seen.append((a * 2).requires_grad)

        async def recording(seen):
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append((a * 2).requires_grad)

        async def both():
            first, second = [], []
            await asyncio.gather(silent(first), recording(second))
            return first, second, (a * 2).requires_grad

        assert asyncio.run(both()) == ([False] * 3, [True] * 3, True)


class TestThreads:
    def test_threads_backpropagating_through_shared_leaves_lose_nothing(self):
        a, b = Value(2.0), Value(3.0)
        shared = a * b
        workers, rounds, failures = 4, 150, []

        def work():
            try:
                for _ in range(rounds):
                    (a * 2 + b * a).backward()
                    (shared + a).backward()
            except BaseException as error:
                failures.append(error)

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=work) for _ in range(workers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert failures == []
        assert (a.grad, b.grad) == (workers * rounds * (2 + 3 + 3 + 1), workers * rounds * (2 + 2))


class TestByHand:
    @pytest.mark.parametrize(
        ("make", "symbol"),
        [
            (lambda a, b: a + b, "+"),
            (lambda a, b: a - b, "-"),
            (lambda a, b: a * b, "*"),
            (lambda a, b: a / b, "/"),
            (lambda a, b: a**b, "**"),
            (lambda a, b: -a, "-"),
            (lambda a, b: a.relu(), "ReLU"),
            (lambda a, b: a.tanh(), "tanh"),
            (lambda a, b: a.exp(), "exp"),
            (lambda a, b: mg.maximum(a, b), "maximum"),
        ],
    )
    def test_each_result_has_its_operands_and_symbol_and_a_leaf_has_none(self, make, symbol):
        a, b = Value(2.0), Value(3.0)
        result = make(a, b)
        assert result._op == symbol
        assert type(result._op) is str
        assert type(result._prev) is set
        assert result._prev in ({a}, {a, b})
        assert (a._prev, a._op) == (set(), "")

    def test_a_plain_number_among_the_operands_is_a_constant_that_stays_the_same(self):
        a = Value(2.0)
        result = a * 3
        (number,) = result._prev - {a}
        assert (number.data, number.requires_grad) == (3.0, False)
        assert result._prev == {a, number}
        result.backward()
        assert (a.grad, number.grad) == (3.0, 0.0)

    def test_calling_backward_node_by_node_as_the_lectures_do(self):
        x1, x2, w1, w2, b = (Value(number) for number in (2.0, 0.0, -3.0, 1.0, 6.8813735870195432))
        first, second = x1 * w1, x2 * w2
        both = first + second
        n = both + b
        o = n.tanh()
        o.grad = 1.0
        for node in (o, n, b, both, first, second):
            node._backward()
        assert [round(leaf.grad, 4) for leaf in (x1, w1, x2, w2)] == [-1.5, 1.0, 0.5, 0.0]
        assert b.grad == pytest.approx(0.5)

    def test_calling_backward_by_hand_adds_each_time_and_for_each_place(self):
        a = Value(3.0)
        square = a * a
        square.grad = 2.0
        square._backward()
        square._backward()
        assert a.grad == 2 * 2.0 * 6.0

    @repeatable
    @given(program=programs())
    def test_all_nodes_by_hand_in_reverse_topological_order_give_the_same(self, program):
        leaves, result = run(program)
        result.backward()
        expected = [leaf.grad for leaf in leaves]
        order = mg.topological_order(result)
        for node in order:
            node.grad = 0.0
        by_hand(result, order)
        assert [leaf.grad for leaf in leaves] == pytest.approx(expected, rel=1e-9, abs=1e-9)

    @pytest.mark.parametrize("kind", [tuple, list, set, iter])
    def test_a_hand_written_operation_takes_part_in_backward(self, kind):
        a, b = Value(2.0), Value(3.0)
        product = Value(a.data * b.data, kind([a, b]), "times")

        def backward():
            a.grad += b.data * product.grad
            b.grad += a.data * product.grad

        product._backward = backward
        assert (product._op, product._prev, product.is_leaf) == ("times", {a, b}, False)
        result = product * product + a
        result.backward()
        result.backward()
        assert (a.grad, b.grad) == (2 * (2 * 6.0 * 3.0 + 1.0), 2 * (2 * 6.0 * 2.0))

    def test_a_hand_written_operation_of_one_operand_twice_counts_its_closure_once(self):
        a = Value(3.0)
        square = Value(9.0, (a, a), "square")

        def backward():
            a.grad += 2 * a.data * square.grad

        square._backward = backward
        (square * 2).backward()
        assert (a.grad, square._prev) == (12.0, {a})

    def test_a_closure_may_be_assigned_to_the_result_of_an_operator(self):
        a, b = Value(2.0), Value(3.0)
        product = a * b

        def backward():
            a.grad += 10 * product.grad

        product._backward = backward
        assert product._backward is backward
        (product + 1).backward()
        assert (a.grad, b.grad, product._op, product._prev) == (10.0, 0.0, "*", {a, b})

    def test_a_closure_may_backpropagate_through_a_graph_of_its_own(self):
        weight, x = Value(0.5), Value(2.0)
        middle = x * 3
        again = Value(math.tanh(0.5 * 6.0), (middle, weight), "again")

        def backward():
            fresh = Value(middle.data)
            (fresh * weight).tanh().backward(again.grad)
            middle.grad += fresh.grad

        again._backward = backward
        (again * 2 + weight * x).backward()
        slope = 2 / math.cosh(3.0) ** 2
        assert (x.grad, weight.grad) == pytest.approx((slope * 0.5 * 3 + 0.5, slope * 6.0 + 2.0))

    def test_a_closure_gives_a_frozen_operand_no_gradient(self):
        frozen, b = Value(2.0, requires_grad=False), Value(3.0)
        product = Value(6.0, (frozen, b), "times")

        def backward():
            frozen.grad += b.data * product.grad
            b.grad += frozen.data * product.grad

        product._backward = backward
        product.backward()
        assert (frozen.grad, b.grad) == (0.0, 2.0)

    def test_an_operation_without_a_closure_says_so(self):
        a = Value(2.0, label="a")
        mystery = Value(5.0, (a,), "mystery")
        with pytest.raises(ValueError, match=r"mystery.*a = 2\.0.*_backward"):
            (mystery * 2).backward()
        mystery._backward()
        assert a.grad == 0.0

    def test_children_and_closures_of_a_wrong_type_are_refused(self):
        with pytest.raises(TypeError, match="a child must be a Value, not float"):
            Value(1.0, (2.0,), "operation")
        result = Value(1.0) * 2
        with pytest.raises(TypeError, match="_backward must be a function"):
            result._backward = 3.0


class TestTopologicalOrder:
    @repeatable
    @given(program=programs())
    def test_every_node_stands_once_after_its_operands_and_the_root_last(self, program):
        _, result = run(program)
        order = mg.topological_order(result)
        place = {node: index for index, node in enumerate(order)}
        assert len(place) == len(order)
        assert order[-1] is result
        for node in order:
            assert all(place[operand] < place[node] for operand in node._prev)


class TestCycles:
    def test_a_root_that_is_its_own_operand_raises(self):
        a = Value(2.0)
        root = a * a
        root._second = root
        with pytest.raises(ValueError, match="cycle"):
            root.backward()
        with pytest.raises(ValueError, match="cycle"):
            mg.topological_order(root)

    def test_a_cycle_deep_inside_raises_and_leaves_everything_usable(self):
        a, b = Value(2.0), Value(3.0)
        a.grad = 5.0
        first = a * b
        second = first + a
        first._second = second
        root = second.tanh() * b
        for _ in range(2):
            with pytest.raises(ValueError, match="cycle"):
                root.backward()
            assert (a.grad, b.grad) == (5.0, 0.0)
        (a * b).backward()
        assert (a.grad, b.grad) == (8.0, 2.0)

    def test_a_hand_written_operation_that_is_its_own_child_raises(self):
        a = Value(2.0)
        root = Value(4.0, (a,), "loop")
        root._backward = lambda: None
        root._x = (a, root)
        root._y = (2.0, 4.0)
        with pytest.raises(ValueError, match="cycle"):
            root.backward()

    def test_a_cycle_without_leaves_raises(self):
        first = -Value(2.0)
        second = -first
        first._first = second
        with pytest.raises(ValueError, match="cycle"):
            (second * 2.0).backward()


class TestDepthAndMemory:
    def test_a_million_additions_build_and_backpropagate_and_are_freed_without_the_collector(self, without_collector):
        a = Value(1.0)
        before = live_values()
        result = a
        for _ in range(1_000_000):
            result = result + 1.0
        result.backward()
        assert (result.data, a.grad) == (1_000_001.0, 1.0)
        del result
        assert live_values() == before

    def test_a_deep_chain_of_hand_written_and_many_operand_nodes_works(self):
        a = Value(1.0)
        result = a
        for _ in range(10_000):
            previous = result
            result = Value(previous.data, (previous,), "same")

            def backward(previous=previous, made=result):
                previous.grad += made.grad

            result._backward = backward
            result = mg.where(True, result, 0.0)
        result.backward()
        assert (result.data, a.grad) == (1.0, 1.0)
        assert len(mg.topological_order(result)) >= 20_000

    def test_three_million_additions_work_in_a_fresh_interpreter(self):
        program = (
            "import gc\n"
            "from micrograd import Value\n"
            "gc.disable()  # for speed\n"
            "a = Value(1.0)\n"
            "result = a\n"
            "for _ in range(3_000_000):\n"
            "    result = result + a\n"
            "result.backward()\n"
            "print(result.data, a.grad)\n"
            "del result\n"
            "print('freed')\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "3000001.0 3000001.0\nfreed\n", "")

    def test_two_hundred_training_steps_leave_nothing_to_the_collector(self, without_collector):
        model = MLP(2, [4, 1], activation="tanh")
        optimizer = SGD(model.parameters(), 0.01)
        before = live_values()
        for _ in range(200):
            loss = (model([0.5, -1.0]) - 1.0) ** 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            del loss
        assert live_values() == before
        assert gc.collect() == 0

    def test_asking_for_operands_and_closures_makes_no_cycles(self, without_collector):
        a = Value(2.0)
        for _ in range(10):
            result = (a * 2 + 1).tanh()
            result._prev, result._backward, mg.topological_order(result)
            result.backward()
            del result
        assert gc.collect() == 0


def test_a_notebook_shows_a_picture():
    pytest.importorskip("graphviz")
    assert "<svg" in (Value(2.0) * 3)._repr_svg_()


def test_a_derivative_that_backpropagates_through_the_graph_it_is_in_is_refused():
    x = Value(2.0)
    middle = x * x
    out = Value(8.0, (middle,), "op")
    out._backward = lambda: (middle + 1).backward()
    with pytest.raises(ValueError, match="is being backpropagated through already"):
        out.backward()
    assert (x.grad, middle.grad) == (0.0, 0.0)
    (x * 3).backward()
    assert x.grad == 3.0


class Weight(Value):
    """A Value of a program's own class."""


@pytest.mark.parametrize(
    "f",
    [lambda w: w * w, lambda w: 2.0 * w + 1.0, lambda w: mg.where(1.0, w, 3.0) ** 2, lambda w: mg.leaky_relu(w, 0.1)],
)
def test_a_subclass_is_an_operand_like_any_other(f):
    weight, value = Weight(3.0), Value(3.0)
    ours, plain = f(weight), f(value)
    ours.backward()
    plain.backward()
    assert (ours.data, weight.grad) == (plain.data, value.grad)
    with mg.no_grad():
        assert f(weight).data == plain.data
