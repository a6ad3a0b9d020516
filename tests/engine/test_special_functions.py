"""The gamma function's logarithm, sinc, and their slopes: what the table's tests do not reach.

Left of 0, at poles, far from the first two derivatives, and on both backends. The truth is mpmath at 50 digits.
"""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special

import micrograd as mg
from micrograd import Value
from micrograd.engine import further_primitives, special_functions
from tests.engine.test_composites import compiled

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("own_cache")]

mp = mpmath.mp.clone()
mp.dps = 50


def bessel(order, x):
    """The spherical Bessel function at pi * x, by its definition."""
    if not x:
        return mp.mpf(not order)
    angle = mp.pi * abs(mp.mpf(x))
    return mp.sign(x) ** order * mp.sqrt(mp.pi / 2 / angle) * mp.besselj(order + mp.mpf(1) / 2, angle)


def slope(name, order, x):
    """The derivative of that order, in mpmath."""
    if name == "sinc":
        return mp.diff(mp.sincpi, x, order) if order else mp.sincpi(x)
    if name == "digamma":
        return mp.psi(order, x)
    return mp.psi(order - 1, x) if order else mp.log(abs(mp.gamma(x)))


def test_the_numbers_in_the_series_are_those_of_the_books():
    own = special_functions
    assert [float(mp.bernoulli(2 * n)) for n in range(1, len(own._BERNOULLI) + 1)] == list(own._BERNOULLI)
    assert [float(mp.zeta(k) - 1) for k in range(2, len(own._ZETA_LESS_ONE) + 2)] == list(own._ZETA_LESS_ONE)
    root = mp.findroot(mp.digamma, 1.46)
    assert [float(mp.euler), float(root), float(root - own._ROOT)] == [own._EULER, own._ROOT, own._REST_OF_ROOT]


@pytest.mark.slow
def test_the_polynomial_around_the_root_has_all_digits():
    """A fit, so that its numbers may be others; but far less than rounding off."""
    root = mp.findroot(mp.digamma, 1.46)
    for distance in mp.linspace(-0.25, 0.25, 41):
        fitted = sum(mp.mpf(c) * distance**power for power, c in enumerate(special_functions._AROUND_ROOT))
        true = mp.digamma(root + distance) / distance if distance else mp.psi(1, root)
        assert abs(fitted - true) <= 2e-16 * abs(true)


def nth_derivative(function, order):
    for _ in range(order):
        function = mg.grad(function)
    return function


@pytest.mark.slow
@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("name", ["sinc", "lgamma", "digamma"])
def test_derivatives_to_the_fourth_on_both_sides_of_0(name, order):
    function = nth_derivative(getattr(mg, name), order)
    for x in (0.01, 0.4999, 0.5, 0.9, 1.0, 1.2, 1.46, 1.5, 1.7, 2.0, 3.3, 8.6, 9.4, 9.5, 11.0, 40.25, 3000.5):
        for side in (x, -x):
            if name != "sinc" and side < 0 and side.is_integer():
                continue
            true = slope(name, order, mp.mpf(side))
            size = max(abs(true), 0.05 if side > 0 else math.factorial(order) * max(math.pi, 1 / x) ** (order + 1))
            assert abs(function(side) - true) <= 2e-13 * size, side


@pytest.mark.slow
@settings(max_examples=80)
@given(st.floats(-40, 40) | st.floats(-170, 170))
@example(-2.457024738220801)
def test_left_of_0_they_are_right_to_the_size_of_1(x):
    if x == round(x) and x <= 0:
        return
    for name in ("lgamma", "digamma"):
        true = slope(name, 0, mp.mpf(x))
        # near a pole, the digits that x has of its distance from there are what the result has
        allowed = 16 * math.ulp(max(1.0, abs(float(true)))) + math.ulp(x) / abs(x - round(x) or 1.0)
        assert abs(getattr(mg, name)(x) - true) <= allowed


@pytest.mark.parametrize("order", range(3))
@pytest.mark.parametrize("x", [-3.0 + 2.0**-30, -3.0 - 2.0**-30, -(2.0**-40), -7.0 + 2.0**-20, -12.0 - 2.0**-13])
def test_beside_a_pole_slopes_have_all_their_digits(order, x):
    true = float(slope("digamma", order, mp.mpf(x)))
    assert nth_derivative(mg.digamma, order)(x) == pytest.approx(true, rel=2e-15)


@pytest.mark.parametrize("x", [1.0, 2.0])
@pytest.mark.parametrize("distance", [2.0**-52, -(2.0**-53), 1e-9, -1e-5])
def test_near_its_roots_the_logarithm_has_all_its_digits(x, distance):
    true = mp.loggamma(mp.mpf(x + distance))
    assert abs(mg.lgamma(x + distance) - true) <= 4 * math.ulp(float(true))
    assert mg.lgamma(x) == 0.0


@pytest.mark.parametrize("distance", [0.0, 2.0**-52, -1e-9, 0.2499, 0.2501, -0.2499, -0.2501])
def test_near_its_root_digamma_has_all_its_digits(distance):
    x = 1.4616321449683622 + distance
    true = mp.digamma(mp.mpf(x))
    assert abs(mg.digamma(x) - true) <= 4 * math.ulp(float(true))


@pytest.mark.parametrize("backend", ["numpy", "llvm", None])
@pytest.mark.parametrize("x", [0.0, -0.0, -1.0, -7.0, -1e300])
@pytest.mark.slow
@pytest.mark.unmeasured
def test_at_a_pole_they_raise(backend, x):
    for function, error in ((mg.lgamma, ValueError), (mg.digamma, ZeroDivisionError)):
        run = function if backend is None else mg.compile(function, backend=backend)
        hidden = lambda x, f=function: mg.tanh(f(x))  # noqa: E731
        hidden = hidden if backend is None else mg.compile(hidden, backend=backend)
        for f in (run, hidden):
            with pytest.raises(error):
                f(x)
            with pytest.raises(error):
                f(Value(x)).backward()


def test_far_out_and_at_what_is_no_number():
    assert [mg.lgamma(math.inf), mg.digamma(math.inf), mg.digamma(1e300)] == [math.inf, math.inf, math.log(1e300)]
    assert mg.lgamma(5e-324) == pytest.approx(-math.log(5e-324), rel=1e-15)
    for function in (mg.lgamma, mg.digamma, mg.sinc, mg.sign, mg.floor, mg.ceil):
        assert math.isnan(function(math.nan))
    assert math.isinf(mg.lgamma(1e307))
    assert [mg.sinc(1e300), mg.sinc(2.0**52 + 1)] == [0.0, 0.0]
    assert [mg.sinc(x) for x in (0.0, -0.0, 5e-324, 1e-200, 1e-9, -1e-9)] == [1.0] * 6


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", ["lgamma", "digamma"])
@settings(max_examples=24)
@given(xs=st.lists(st.floats(-30, 30) | st.floats(min_value=1e-300, max_value=1e300), min_size=9, max_size=9))
def test_backends_compute_what_floats_do(backend, name, xs):
    primitive = getattr(further_primitives, name)
    for lanes in (1, 9):
        for x, found in zip(xs, compiled(primitive, backend, lanes)(xs[:lanes]), strict=False):
            if x <= 0 and x == round(x):
                assert not math.isfinite(found)
            else:
                expected = primitive.forward(x)
                near_a_pole = math.ulp(x) / abs(x - round(x) or 1.0) if x < 0 else 0.0
                assert (
                    abs(found - expected) <= 16 * math.ulp(max(1.0, abs(expected))) + near_a_pole or found == expected
                )


class TestSlopes:
    """The functions that slopes are made of."""

    def test_a_zeta_function_next_to_whole_numbers(self):
        """Where x + n is rounded to a whole number, no term may be left out."""
        for whole in range(1, 26):
            for x in (math.nextafter(whole, 0.0), float(whole), math.nextafter(whole, math.inf)):
                true = mp.zeta(2, mp.mpf(x))
                found = further_primitives.hurwitz_zeta(x, 2.0)
                assert abs(found - true) <= 6 * math.ulp(float(true)), x

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_zeta_functions_that_stop_at_other_terms_side_by_side(self, backend):
        xs = [0.5, 4.999999999999998, 19.9, 3.0, 25.0, 12.25, 1e3, 7.0, 20.0]
        for x, found in zip(xs, compiled(further_primitives.hurwitz_zeta, backend, 9)(xs, [2.0] * 9), strict=True):
            true = mp.zeta(2, mp.mpf(x))
            assert abs(found - true) <= 8 * math.ulp(float(true)), x

    @pytest.mark.parametrize("name", ["lgamma", "digamma"])
    def test_next_to_whole_numbers(self, name):
        for whole in range(2, 26):
            for x in (math.nextafter(whole, 0.0), math.nextafter(whole, math.inf)):
                for order, found in enumerate((getattr(mg, name)(x), mg.grad(getattr(mg, name))(x))):
                    true = slope(name, order, x)
                    assert abs(found - true) <= 8 * math.ulp(max(1.0, abs(float(true)))), (x, order)

    @pytest.mark.parametrize("power", [1.5, 2.0, 3.0, 4.0, 6.0, 9.0])
    def test_a_zeta_function(self, power):
        for x in (1e-30, 0.1, 1.0, 2.5, 18.9, 19.9, 20.0, 21.5, 1e6, 1e30):
            true = mp.zeta(mp.mpf(power), mp.mpf(x))
            found = further_primitives.hurwitz_zeta(x, power)
            assert abs(found - true) <= 6 * math.ulp(float(true)), x
            for backend in ("numpy", "llvm"):
                (result,) = compiled(further_primitives.hurwitz_zeta, backend, 1)([x], [power])
                assert abs(result - true) <= 8 * math.ulp(float(true)), x

    @pytest.mark.parametrize("order", range(6))
    def test_spherical_bessel_functions(self, order):
        primitive = further_primitives.spherical_bessel.with_settings(order=order)
        edge = (order + 1) / math.pi
        for x in (0.0, 1e-3, 0.3, edge - 1e-6, edge, edge + 1e-6, 1.0, 3.25, 17.75, 1e3, 1e9):
            for side in (x, -x):
                true = bessel(order, side)
                allowed = 8 * math.ulp(float(abs(true) if x < edge else 1 / (mp.pi * x)))
                assert abs(primitive(side) - true) <= allowed, side
                for backend in ("numpy", "llvm"):
                    (result,) = compiled(primitive, backend, 1)([side])
                    assert abs(result - true) <= 2 * allowed, side

    def test_their_derivatives_and_domains_by_themselves(self):
        bessel_of_1, zeta = further_primitives.spherical_bessel, further_primitives.hurwitz_zeta
        assert bessel_of_1(0.3) == bessel_of_1(0.3, order=1)
        assert mg.grad(bessel_of_1)(0.3) == mg.grad(lambda x: bessel_of_1(x, order=1))(0.3)
        assert mg.grad(bessel_of_1)(0.3) == pytest.approx(float(mp.diff(lambda x: bessel(1, x), 0.3)), rel=1e-14)
        assert mg.grad(zeta)(2.5, 1.5) == pytest.approx(float(mp.diff(lambda x: mp.zeta(1.5, x), 2.5)), rel=1e-14)
        (low_x, high_x), (low_power, high_power) = zeta.domain  # below a power of 1 the sum is infinite
        assert (low_x, low_power, high_x, high_power) == (0.0, 1.0, math.inf, math.inf)

    def test_they_are_no_part_of_random_programs_and_not_in_expressions(self):
        from micrograd.command.grammar import functions
        from micrograd.testing import strategies

        for name in ("hurwitz_zeta", "spherical_bessel", "lower_power"):
            assert getattr(further_primitives, name, None) not in strategies.registered()
            assert name not in functions()


class TestSteps:
    @pytest.mark.parametrize("x", [-2.5, -1.0, -0.3, -0.0, 0.0, 5e-324, 0.7, 3.0, 4.000000001, 1e300, -1e300])
    def test_they_are_those_of_math_as_floats(self, x):
        expected = [math.floor(x), math.ceil(x), (x > 0) - (x < 0)]
        found = [mg.floor(x), mg.ceil(x), mg.sign(x)]
        assert (found, {type(y) for y in found}) == (expected, {float})
        assert [Value(x).floor().data, Value(x).ceil().data, Value(x).sign().data] == expected

    def test_no_gradient_flows_through_them(self):
        x = Value(2.5)
        (mg.floor(x) * x + mg.ceil(x) * x * x + mg.sign(x)).backward()
        assert x.grad == 2.0 + 3.0 * 2 * 2.5
        assert not any(f(x).requires_grad for f in (mg.floor, mg.ceil, mg.sign))

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    @pytest.mark.parametrize("number", [1.5, -2.5, 3.0])
    def test_numpys_own_round_arrays_inside_of_compiled_functions_as_outside(self, backend, number):
        def f(xs):
            return [np.floor(xs)[0] * xs[1], np.ceil(xs)[0], np.floor(xs).sum()]

        for xs in (np.array([number, 0.5]), mg.array([number, 0.5]), np.array([3, 4])):
            expected, found = f(xs), mg.compile(f, backend=backend)(xs)
            assert [float(x) for x in found] == [float(x) for x in expected]
            kinds = [
                int if isinstance(x, np.integer) else float if isinstance(x, np.floating) else type(x) for x in expected
            ]
            assert [type(x) for x in found] == kinds
        with pytest.raises(OverflowError):
            mg.compile(f, backend=backend)(mg.array([math.inf, 1.0]))

    def test_numpys_sinc_of_an_array_of_values(self):
        xs = mg.array([0.3, -1.7])
        ys = np.sinc(xs)
        ys.sum().backward()
        assert [y.data for y in ys] == pytest.approx([mg.sinc(0.3), mg.sinc(-1.7)], rel=1e-14)
        assert [x.grad for x in xs] == pytest.approx([mg.grad(mg.sinc)(0.3), mg.grad(mg.sinc)(-1.7)], rel=1e-13)


class TestNamesOfSciPy:
    NAMES = (
        *("erf", "erfc", "erfinv", "gammaln", "digamma", "expit", "logit"),
        *("ndtr", "log_ndtr", "ndtri", "i0", "i1", "entr"),
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_of_floats_values_and_arrays_and_scipys_own_function_of_arrays_of_values(self, name):
        numbers = np.array([0.2, 0.5, 0.7])
        ours, theirs = getattr(mg, name), getattr(special, name)
        assert ours(0.2) == pytest.approx(theirs(0.2), rel=1e-14)
        assert ours(numbers) == pytest.approx(theirs(numbers), rel=1e-14)
        values = mg.array(numbers)
        result = theirs(values)
        assert type(result) is type(values)
        assert mg.numbers(result) == pytest.approx(theirs(numbers), rel=1e-14)
        slopes = mg.gradient(result.sum(), list(values))
        assert slopes == pytest.approx([mg.grad(ours)(x) for x in numbers], rel=1e-14)

    @pytest.mark.parametrize("name", ["betaln", "xlogy", "rel_entr"])
    def test_of_two_operands(self, name):
        x, y = np.array([0.2, 0.5, 3.0]), np.array([0.4, 0.5, 40.0])
        ours, theirs = getattr(mg, name), getattr(special, name)
        assert mg.numbers(theirs(mg.array(x), mg.array(y))) == pytest.approx(theirs(x, y), rel=1e-13)
        first, second = Value(0.2), Value(0.4)
        assert getattr(first, name)(second).data == ours(first, second).data == ours(0.2, 0.4)

    @pytest.mark.slow
    @pytest.mark.unmeasured
    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    def test_compiled(self, backend):
        names = self.NAMES[:: 3 if backend == "jax" else 1]  # XLA takes a second for each

        def f(x):
            total = sum(getattr(special, name)(x).sum() for name in names)
            return total + special.betaln(x, 2.0).sum() + special.rel_entr(x, 0.3)[0] + mg.polygamma(2, x[1])

        x = mg.array([0.2, 0.5, 0.7])
        fast = mg.compile(f, backend=backend)
        assert fast(x).data == pytest.approx(f(x).data, rel=1e-13)
        assert mg.gradient(fast(x), list(x)) == pytest.approx(mg.gradient(f(x), list(x)), rel=1e-12)

    def test_polygamma_of_every_order(self):
        for order in range(5):
            for x in (0.1, 1.0, 3.5, 40.0):
                true = mp.psi(order, x)
                assert abs(mg.polygamma(order, x) - true) <= 16 * math.ulp(float(true))
        assert mg.grad(lambda x: mg.polygamma(2, x))(0.5) == pytest.approx(float(mp.psi(3, 0.5)), rel=1e-14)
        assert mg.numbers(mg.polygamma(1, mg.array([1.0, 2.0]))) == pytest.approx(special.polygamma(1, [1.0, 2.0]))
        with pytest.raises(ValueError, match=r"digamma_slope\(-0.5, order=1\): math domain error"):
            mg.polygamma(1, -0.5)
        with pytest.raises(ValueError, match="must be 0 or more, not -1"):
            mg.polygamma(-1, 0.5)
        with pytest.raises(TypeError, match=r"must be an int, not float: 1\.0"):
            mg.polygamma(1.0, 0.5)

    def test_nothing_times_the_logarithm_of_nothing(self):
        assert [mg.xlogy(0.0, y) for y in (0.0, -1.0, math.inf)] == [0.0, 0.0, 0.0]
        assert math.isnan(mg.xlogy(0.0, math.nan))
        assert (mg.entr(0.0), mg.rel_entr(0.0, 0.5)) == (0.0, 0.0)
        x, y = Value(0.0), Value(0.0)
        assert mg.gradient(mg.xlogy(0.0, y), [y]) == [0.0]
        with pytest.raises(ValueError, match="the derivative of xlogy"):
            mg.xlogy(x, y).backward()
        assert mg.grad(mg.grad(lambda y: mg.xlogy(0.0, y)))(0.0) == 0.0

    def test_the_slopes_of_higher_orders(self):
        for name, x in (("i0", 1.5), ("i1", -30.0), ("log_ndtr", -2.0), ("log_ndtr", 1.0), ("erfinv", 0.3)):
            f = getattr(mg, name)
            third = mg.grad(mg.grad(mg.grad(f)))(x)
            true = {
                "i0": lambda x: mp.besseli(0, x),
                "i1": lambda x: mp.besseli(1, x),
                "log_ndtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
                "erfinv": mp.erfinv,
            }[name]
            assert third == pytest.approx(float(mp.diff(true, x, 3)), rel=1e-12)
        assert mg.grad(lambda x: further_primitives.modified_bessel(x))(0.5) == pytest.approx(
            float(mp.diff(lambda x: mp.besseli(2, x), 0.5)), rel=1e-14
        )
        assert mg.grad(further_primitives.log_ratio)(2.0, 3.0) == 0.5
        assert further_primitives.log_ratio(1e300, 1e-300) == pytest.approx(600 * math.log(10), rel=1e-15)

    def test_infinite_where_no_float_is_large_enough(self):
        assert (mg.i0(720.0), mg.i1(-720.0)) == (math.inf, -math.inf)
        assert mg.i0(713.0) == pytest.approx(float(mp.besseli(0, 713.0)), rel=1e-14)
        assert mg.log_ndtr(math.inf) == 0.0
        assert mg.log_ndtr(-1e200) == -math.inf
