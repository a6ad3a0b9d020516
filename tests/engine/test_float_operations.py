"""What floats have beside arithmetic: remainders, rounding, and NumPy's functions by its names for them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.engine.floats import exact_fma
from micrograd.engine.primitive import find

numbers = st.floats(-1e6, 1e6)


class TestRemainders:
    @given(numbers, numbers)
    def test_they_are_those_of_floats(self, x, y):
        assume(y != 0)
        for a, b in ((Value(x), Value(y)), (Value(x), y), (x, Value(y))):
            assert [(a % b).data, (a // b).data] == [x % y, x // y]
            assert [part.data for part in divmod(a, b)] == list(divmod(x, y))

    def test_both_at_once(self):
        assert [part.data for part in divmod(Value(-7.5), 2.0)] == [-4.0, 0.5]

    def test_the_slopes_are_one_and_minus_the_whole_part(self):
        x, y = Value(7.5), Value(2.0)
        (x % y).backward()
        assert (x.grad, y.grad) == (1.0, -3.0)
        assert not (x // y).requires_grad
        assert mg.testing.gradcheck(lambda x, y: x % y + (x // y) * x, [-7.3, 2.2])

    def test_nothing_is_divided_by_zero(self):
        for divide in (lambda x: x % 0, lambda x: x // 0.0, lambda x: divmod(x, 0), lambda x: 1 % (x - x)):
            with pytest.raises(ZeroDivisionError):
                divide(Value(1.0))

    @pytest.mark.parametrize("other", ["2", None, 1j, [2.0]])
    def test_what_is_no_number_is_refused(self, other):
        for divide in (lambda x: x % other, lambda x: x // other, lambda x: divmod(x, other)):
            with pytest.raises(TypeError, match="unsupported operand"):
                divide(Value(1.0))
        for divide in (lambda x: None % x, lambda x: None // x, lambda x: divmod(None, x)):
            with pytest.raises(TypeError, match="unsupported operand"):
                divide(Value(1.0))

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_compiled_ones_are_those_of_floats(self, backend):
        fast = mg.compile(lambda x, y: [x % y, x // y], backend=backend)
        few = [0.5, 1.0, 2.0, 3.0, 7.5, 1e17, 5e-324, 0.1]
        for x in [0.0, -0.0, *few, *(-number for number in few)]:
            for y in [*few, *(-number for number in few)]:
                expected = [x % y, x // y]
                found = fast(x, y)
                assert list(map(repr, found)) == list(map(repr, expected)), (x, y)
        for x, y in ((36094705145.142845, 138.42857142857142), (2341381969581618.5, 9.303711084281492)):
            assert list(fast(x, y)) == [x % y, x // y]  # the quotient is rounded to just below a whole number
            assert list(fast(-x, y)) == [-x % y, -x // y]
        with pytest.raises(ZeroDivisionError):
            fast(1.0, 0.0)

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_of_ints_they_are_ints_when_compiled_too(self, backend):
        fast = mg.compile(lambda n, x: [n % 3, n // 3, x % 3], backend=backend)
        assert [(number, type(number)) for number in fast(7, 7.0)] == [(1, int), (2, int), (1.0, float)]


class TestRounding:
    def test_to_ints_and_to_digits(self):
        x = Value(-7.65)
        with pytest.warns(mg.GradientWarning, match=r"round\(\) gives a plain number"):
            rounded, digits = round(x), round(x, 1)
        assert [int(x), rounded, math.trunc(x), math.floor(x), math.ceil(x)] == [-7, -8, -7, -8, -7]
        assert all(type(number) is int for number in (int(x), rounded, math.trunc(x)))
        assert (digits, type(digits)) == (round(-7.65, 1), float)

    def test_they_are_refused_where_a_gradient_would_be_lost(self):
        for whole in (int, round, math.trunc, math.floor):
            slope = mg.grad(lambda x, whole=whole: x * whole(x))
            for function in (slope, mg.compile(slope)):
                with pytest.raises(TypeError, match="no gradient"):
                    function(1.5)


class TestNumPy:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            *((name, (1.5,)) for name in ("log2", "log10", "exp2", "arcsinh", "arccosh", "degrees", "rad2deg")),
            *((name, (0.5,)) for name in ("arctanh", "radians", "deg2rad")),
            *((name, (1.5, -2.0)) for name in ("hypot", "arctan2", "mod", "remainder", "floor_divide")),
            ("clip", (1.5, 0.0, 1.0)),
            ("clip", (0.5, 0.0, 1.0)),
        ],
    )
    def test_its_functions_work_on_arrays_of_values(self, name, arguments):
        function, (first, *others) = getattr(np, name), arguments
        (found,) = function(mg.array([first]), *others)
        assert float(getattr(found, "data", found)) == pytest.approx(function(first, *others), rel=1e-15)


@pytest.mark.parametrize(("name", "number"), [("acosh", 1.001), ("exp2", 1023.9), ("atanh", -0.999), ("log2", 5e-324)])
def test_domains_reach_as_far_as_there_are_numbers(name, number):
    primitive = find(name)
    ((low, high),) = primitive.domain
    assert low < number < high
    assert math.isfinite(primitive(number))


class TestManyOperands:
    def test_the_largest_and_the_smallest_of_many(self):
        values = [Value(3.0), Value(7.0), Value(7.0), Value(-1.0)]
        (mg.maximum(*values) + 2 * mg.minimum(*values)).backward()
        assert [value.grad for value in values] == [0.0, 1.0, 0.0, 2.0]

    def test_a_clipped_number_gets_no_gradient_beyond_the_limits(self):
        for number, expected in ((-1.0, (0.0, 0.0)), (0.25, (0.25, 1.0)), (3.0, (1.0, 0.0))):
            for clip in (mg.clip, Value.clip):
                x = Value(number)
                result = clip(x, 0.0, 1.0)
                result.backward()
                assert (result.data, x.grad) == expected

    def test_angles(self):
        x = Value(math.pi)
        mg.degrees(x).backward()
        assert (mg.degrees(x).data, mg.radians(Value(180.0)).data, x.grad) == (180.0, math.pi, 180 / math.pi)

    def test_the_logarithm_of_a_sum_of_powers(self):
        for x, y in ((1000.0, 1000.0), (-1000.0, -999.0), (0.5, -0.25), (-math.inf, 2.0), (math.inf, math.inf)):
            assert mg.logaddexp(Value(x), y).data == pytest.approx(np.logaddexp(x, y), rel=1e-15)
        x, y = Value(3.0), Value(3.0)
        mg.logaddexp(x, y).backward()
        assert (x.grad, y.grad) == (0.5, 0.5)

    @pytest.mark.parametrize("f", [mg.hypot, mg.atan2])
    def test_at_the_origin_there_is_no_slope(self, f):
        assert f(Value(0.0), Value(0.0)).data == 0.0
        with pytest.raises(ZeroDivisionError):
            f(Value(0.0), Value(0.0)).backward()


class TestFma:
    CASES = (
        (0.1, 10.0, -1.0, 2.0**-54),
        (1 + 2.0**-30, 1 - 2.0**-30, -1.0, -(2.0**-60)),
        (5e-324, 0.5, 5e-324, 1e-323),  # the half is rounded to even
        (1e308, 10.0, -math.inf, -math.inf),
        (1e200, 1e200, -math.inf, -math.inf),
        (-0.0, 2.0, -0.0, -0.0),
        (3.0, -2.0, 6.0, 0.0),
        (-5e-324, 5e-324, 0.0, -0.0),
        (1.5e308, 2.0, -1.6e308, 1.4e308),  # the product alone is too large
    )

    @pytest.mark.parametrize(("x", "y", "z", "expected"), CASES)
    @pytest.mark.parametrize(
        "f", [mg.fma, exact_fma, *(mg.compile(mg.fma, backend=name) for name in ("numpy", "llvm"))]
    )
    def test_the_product_and_the_sum_are_rounded_once(self, f, x, y, z, expected):
        found = float(f(x, y, z))
        assert (found, math.copysign(1.0, found)) == (expected, math.copysign(1.0, expected))

    @pytest.mark.parametrize("f", [mg.fma, exact_fma])
    def test_what_it_raises(self, f):
        with pytest.raises(OverflowError, match="overflow in fma"):
            f(1e308, 10.0, 0.0)
        with pytest.raises(ValueError, match="invalid operation in fma"):
            f(math.inf, 0.0, 1.0)
        assert math.isnan(f(math.nan, 1.0, 2.0))

    def test_derivatives_of_any_order(self):
        assert mg.hessian(lambda p: mg.fma(p[0], p[1], p[2]))([2.0, 3.0, 4.0]) == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        cube = mg.grad(mg.grad(mg.grad(lambda x: mg.fma(x, x * x, x))))
        assert (cube(1.7), float(mg.compile(cube)(1.7))) == pytest.approx((6.0, 6.0), rel=1e-12)

    def test_many_at_once_in_native_code(self):
        xs = [0.1 * number for number in range(40)]
        fast = mg.compile(lambda xs: [mg.fma(x, 10.0, -x) for x in xs], backend="llvm")
        assert [float(y) for y in fast(xs)] == [exact_fma(x, 10.0, -x) for x in xs]
