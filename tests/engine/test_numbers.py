"""What goes into a Value and how it acts as a float: numbers of every kind, operators, text, NumPy's scalars."""

import math
import operator
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value


def same_float(first, second):
    """Whether two floats are the same to the bit, NaN included."""
    return (math.isnan(first) and math.isnan(second)) or (
        first == second and math.copysign(1.0, first) == math.copysign(1.0, second)
    )


class Whole(IntEnum):
    """An int whose class has a length."""

    TWO = 2


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
            (Whole.TWO, 2.0),
        ],
        ids=repr,
    )
    def test_real_numbers_are_accepted_and_stored_as_exactly_float(self, given_number, stored):
        for number in (Value(given_number).data, (Value(0.0) + given_number).data, (given_number + Value(0.0)).data):
            assert type(number) is float
            assert number == stored
        assert same_float(Value(given_number).data, stored)

    def test_comparing_with_an_int_beyond_every_float_works_as_for_floats(self):
        assert Value(1.0) < 10**400
        assert Value(1.0) > -(10**400)

    def test_comparing_with_an_int_between_two_floats_is_exact_as_for_floats(self):
        assert Value(2.0**53) < 2**53 + 1
        assert not Value(2.0**53) >= 2**53 + 1

    def test_the_message_about_bad_data_stays_short(self):
        with pytest.raises(TypeError) as caught:
            Value("x" * 10_000)
        assert len(str(caught.value)) < 200


class TestActsAsFloat:
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
            except OverflowError:  # of ** alone: a Value gives infinity there, as Python's own product does
                with np.errstate(all="ignore"):
                    result = float(np.float64(x) ** y)
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

    @given(x=st.floats(), y=st.floats(), name=st.sampled_from(["lt", "le", "gt", "ge"]))
    def test_comparisons_compare_data_and_give_a_bool(self, x, y, name):
        compare = getattr(operator, name)
        for left, right in ((Value(x), Value(y)), (Value(x), y), (x, Value(y))):
            assert compare(left, right) is compare(x, y)

    def test_equality_and_hash_are_identity(self):
        a, b = Value(1.0), Value(1.0)
        assert a == a
        assert a != b
        with pytest.warns(mg.GradientWarning, match="by identity"):
            assert a != 1.0
        assert len({a, b, a}) == 2
        assert {a: "a", b: "b"}[a] == "a"

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


@pytest.mark.slow  # loading SymPy takes a second
class TestSymPy:
    @pytest.mark.parametrize("text", ["3", "1/3", "0.5", "pi", "sqrt(2) + 1"])
    @pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "pow"])
    @pytest.mark.unmeasured
    def test_a_number_on_the_left_gives_a_value_with_gradients(self, name, text):
        import sympy

        operation, x, y, number = getattr(operator, name), Value(2.0), Value(2.0), sympy.sympify(text)
        found, expected = operation(number, x), operation(float(number), y)
        assert type(found) is Value
        found.backward()
        expected.backward()
        assert (found.data, x.grad) == (expected.data, y.grad)

    def test_an_expression_with_unknowns_is_refused(self):
        import sympy

        x = Value(2.0)
        for product in (lambda: x * sympy.Symbol("a"), lambda: sympy.Symbol("a") * x):
            with pytest.raises(TypeError, match="unsupported operand"):
                product()


def test_a_notebook_shows_a_picture():
    pytest.importorskip("graphviz")
    assert "<svg" in (Value(2.0) * 3)._repr_svg_()
