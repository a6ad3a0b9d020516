"""Every primitive of the table against mpmath at 40 digits, over its whole domain, and at its edges and kinks.

The errors are counted in units in the last place of the true result. An intermediate result may be too
small for a normal float; what is lost there is at most half the smallest float, times what the rest of the
formula multiplies it by: the ``lost`` of a truth.
"""

import gc
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.engine import further_primitives
from micrograd.engine.primitive import Primitive
from micrograd.testing import numerical_gradient
from tests.strategies import KINKS, TABLE, operands

mp = mpmath.mp.clone()
mp.dps = 40
ONE = mp.mpf(1)
LARGEST = mp.mpf(1.7976931348623157e308)
SMALLEST_NORMAL = 2.0**-1022


class Truth(NamedTuple):
    """A primitive in mpmath, written from its definition.

    Args:
        forward: the value.
        derivatives: the derivative for each operand; None where no gradient flows.
        ulps: the error allowed, in units in the last place.
        lost: what an intermediate result that is too small for a normal float is multiplied by.
        terms: for a derivative that is a sum with a root, the sum of the terms' sizes: near the root the
            error is counted in units of that.
    """

    forward: Callable[..., Any]
    derivatives: tuple[Callable[..., Any] | None, ...]
    ulps: Callable[..., float] = lambda *_: 4.0
    lost: Callable[..., float] = lambda *_: 4.0
    terms: Callable[..., Any] = lambda *_: 0


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def length(x, y):
    return mp.sqrt(x * x + y * y)


def fraction(x):
    """The number itself, with all its digits."""
    digits, power = mp.mpf(x).man_exp
    return int(mp.sign(x)) * digits * Fraction(2) ** power


def whole_part(x, y):
    return mp.mpf(math.floor(fraction(x) / fraction(y)))


def what_is_left(x, y):
    left = fraction(x) % fraction(y)
    return mp.mpf(left.numerator) / left.denominator


def slope_of_sinc(x):
    if abs(x) > 1e-9:
        return (mp.cospi(x) - mp.sincpi(x)) / x
    return -(mp.pi**2) * x / 3 * (1 - (mp.pi * x) ** 2 / 10)  # its series, as the terms above cancel


def logistic_pdf(x):
    return logistic(x) * logistic(-x)


def density(x):
    return mp.exp(-(x**2) / 2) / mp.sqrt(2 * mp.pi)


def complement(x):
    if abs(x) > 1e6:  # mpmath's erfc refuses; beyond 1e-10000 of it is no float
        return 0 * ONE if x > 0 else 2 * ONE
    return mp.erfc(x)


def distribution(x):
    return complement(-x / mp.sqrt(2)) / 2


def quantile(x):
    """The normal quantile, by Newton's method from the float; mpmath's erfinv has too few digits in the tails."""
    if x > 0.5:
        return -quantile(1 - x)
    found = mp.mpf(further_primitives.ndtri.forward(float(x)))
    for _ in range(3):
        found -= (distribution(found) - x) / density(found)
    return found


def inverse_erf(x):
    return mp.erfinv(x) if abs(x) < 0.9 else -mp.sign(x) * quantile((1 - abs(x)) / 2) / mp.sqrt(2)


def hazard(x):
    if x < -1e5:  # where the distribution is below mpmath's floats
        return -x + 1 / (-x) - 2 / (-x) ** 3
    return density(x) / distribution(x)


def log_distribution(x):
    if x < -1e5:
        return -(x**2) / 2 - mp.log(2 * mp.pi) / 2 - mp.log(hazard(x))
    return mp.log1p(-distribution(-x)) if x > 0 else mp.log(distribution(x))


def log_beta(x, y):
    small, large = min(x, y), max(x, y)
    if large > 1e30:  # Stirling's series, without the terms that cancel
        gap = small - (large - ONE / 2) * mp.log1p(small / large) - small * mp.log(large + small)
        return mp.loggamma(small) + gap if small < 1e30 else _log_beta_of_large(small, large)
    with mp.workdps(120):
        return mp.loggamma(small) + (mp.loggamma(large) - mp.loggamma(large + small))


def _log_beta_of_large(small, large):
    halves = mp.log(2 * mp.pi / small) / 2
    return halves - small * mp.log1p(large / small) - (large - ONE / 2) * mp.log1p(small / large)


def digamma_gap(x, y):
    """The slope of log_beta by x."""
    if y < 1e-30 * x:
        return -y * mp.psi(1, x)
    with mp.workdps(100):
        return mp.digamma(x) - mp.digamma(x + y)


TRUTHS = {
    "identity": Truth(lambda x: x, (lambda x: ONE,)),
    "detach": Truth(lambda x: x, (None,)),
    "is_zero": Truth(lambda x: ONE * (x == 0), (None,)),
    "equal": Truth(lambda x, y: ONE * (x == y), (None, None)),
    "less": Truth(lambda x, y: ONE * (x < y), (None, None)),
    "less_equal": Truth(lambda x, y: ONE * (x <= y), (None, None)),
    "where": Truth(
        lambda c, x, y: x if c else y,
        (None, lambda c, x, y: ONE if c else 0 * ONE, lambda c, x, y: 0 * ONE if c else ONE),
    ),
    "neg": Truth(lambda x: -x, (lambda x: -ONE,)),
    "add": Truth(lambda x, y: x + y, (lambda x, y: ONE, lambda x, y: ONE)),
    "sub": Truth(lambda x, y: x - y, (lambda x, y: ONE, lambda x, y: -ONE)),
    "mul": Truth(lambda x, y: x * y, (lambda x, y: y, lambda x, y: x)),
    "fma": Truth(lambda x, y, z: x * y + z, (lambda x, y, z: y, lambda x, y, z: x, lambda x, y, z: ONE)),
    # The derivative is the quotient over y: where the quotient is below the normal floats, so are its digits.
    "div": Truth(lambda x, y: x / y, (lambda x, y: 1 / y, lambda x, y: -x / y**2), lost=lambda x, y: 1 + 1 / abs(y)),
    "pow": Truth(
        lambda x, y: mp.power(x, y),
        (lambda x, y: y * mp.power(x, y - 1), lambda x, y: mp.power(x, y) * mp.log(x)),
        lost=lambda x, y: 2.0 + abs(y) + abs(math.log(x)),
    ),
    "exp": Truth(lambda x: mp.exp(x), (lambda x: mp.exp(x),)),
    "expm1": Truth(lambda x: mp.expm1(x), (lambda x: mp.exp(x),)),
    "log": Truth(lambda x: mp.log(x), (lambda x: 1 / x,)),
    "log1p": Truth(lambda x: mp.log1p(x), (lambda x: 1 / (1 + x),)),
    "exp2": Truth(lambda x: mp.power(2, x), (lambda x: mp.power(2, x) * mp.log(2),)),
    "log2": Truth(lambda x: mp.log(x) / mp.log(2), (lambda x: 1 / x / mp.log(2),)),
    "log10": Truth(lambda x: mp.log10(x), (lambda x: 1 / x / mp.log(10),)),
    "asinh": Truth(lambda x: mp.asinh(x), (lambda x: 1 / length(ONE, x),)),
    "acosh": Truth(lambda x: mp.acosh(x), (lambda x: 1 / mp.sqrt((x - 1) * (x + 1)),)),
    "atanh": Truth(lambda x: mp.atanh(x), (lambda x: 1 / (1 - x**2),)),
    "atan2": Truth(
        lambda y, x: mp.atan2(y, x),
        (lambda y, x: x / (x**2 + y**2), lambda y, x: -y / (x**2 + y**2)),
        # The length may be below the normal floats, or beyond all floats.
        lost=lambda y, x: 4.0 + 4 / (abs(x) + abs(y) or math.inf) + (1e20 if max(abs(x), abs(y)) > 1e308 else 0.0),
    ),
    "hypot": Truth(
        length,
        (lambda x, y: x / length(x, y), lambda x, y: y / length(x, y)),
        lost=lambda x, y: 4.0 + 4 / (abs(x) + abs(y) or math.inf),
    ),
    "floor_divide": Truth(whole_part, (None, None)),
    "remainder": Truth(what_is_left, (lambda x, y: ONE, lambda x, y: -whole_part(x, y))),
    "sign": Truth(lambda x: mp.sign(x), (None,)),
    "floor": Truth(lambda x: mp.floor(x), (None,)),
    "ceil": Truth(lambda x: mp.ceil(x), (None,)),
    "sinc": Truth(lambda x: mp.sincpi(x), (slope_of_sinc,), terms=lambda x: 1 / abs(x) if abs(x) > 0.5 else 0),
    "lgamma": Truth(lambda x: mp.loggamma(x).real, (lambda x: mp.digamma(x),), ulps=lambda *_: 8.0),
    "digamma": Truth(lambda x: mp.digamma(x), (lambda x: mp.psi(1, x),), ulps=lambda *_: 8.0),
    "betaln": Truth(
        log_beta,
        (digamma_gap, lambda x, y: digamma_gap(y, x)),
        ulps=lambda *_: 16.0,
        terms=lambda x, y: 1 + abs(mp.digamma(x)) + abs(mp.digamma(y)) + abs(mp.digamma(x + y)),
    ),
    "i0": Truth(lambda x: mp.besseli(0, x), (lambda x: mp.besseli(1, x),), ulps=lambda *_: 16.0),
    "i1": Truth(
        lambda x: mp.besseli(1, x), (lambda x: (mp.besseli(0, x) + mp.besseli(2, x)) / 2,), ulps=lambda *_: 16.0
    ),
    "ndtri": Truth(
        quantile,
        (lambda x: 1 / density(quantile(x)),),
        ulps=lambda x: 8 + 8 * further_primitives.ndtri.forward(x) ** 2,  # so much the density's exponent multiplies
    ),
    "erfinv": Truth(
        inverse_erf,
        (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(inverse_erf(x) ** 2),),
        ulps=lambda x: 8 + 16 * further_primitives.erfinv.forward(x) ** 2,
    ),
    "log_ndtr": Truth(log_distribution, (hazard,), ulps=lambda *_: 8.0),
    "logit": Truth(lambda x: mp.log(x) - mp.log1p(-x), (lambda x: 1 / (x * (1 - x)),)),
    "xlogy": Truth(lambda x, y: x * mp.log(y), (lambda x, y: mp.log(y), lambda x, y: x / y)),
    "rel_entr": Truth(
        lambda x, y: x * mp.log(x / y),
        (lambda x, y: mp.log(x / y) + 1, lambda x, y: -x / y),
        terms=lambda x, y: 1 + abs(mp.log(x / y)),
        lost=lambda x, y: 4 + 8 * float(min(y / x, mp.mpf(10) ** 300)),
    ),
    "sqrt": Truth(lambda x: mp.sqrt(x), (lambda x: mp.power(x, -ONE / 2) / 2,)),
    "sin": Truth(lambda x: mp.sin(x), (lambda x: mp.cos(x),)),
    "cos": Truth(lambda x: mp.cos(x), (lambda x: -mp.sin(x),)),
    "tan": Truth(lambda x: mp.tan(x), (lambda x: mp.sec(x) ** 2,)),
    "asin": Truth(lambda x: mp.asin(x), (lambda x: 1 / mp.sqrt(1 - x**2),)),
    "acos": Truth(lambda x: mp.acos(x), (lambda x: -1 / mp.sqrt(1 - x**2),)),
    "atan": Truth(lambda x: mp.atan(x), (lambda x: 1 / (1 + x**2),)),
    "tanh": Truth(lambda x: mp.tanh(x), (lambda x: mp.sech(x) ** 2,)),
    "sigmoid": Truth(logistic, (lambda x: logistic(x) * logistic(-x),)),
    "softplus": Truth(lambda x: mp.log1p(mp.exp(x)), (logistic,)),
    "relu": Truth(lambda x: max(x, 0 * x), (lambda x: ONE * (x > 0),)),
    "leaky_relu": Truth(
        lambda x, slope: x if x > 0 else slope * x,
        (lambda x, slope: ONE if x > 0 else slope, lambda x, slope: min(x, 0 * x)),
    ),
    "elu": Truth(
        lambda x, alpha: x if x > 0 else alpha * mp.expm1(x),
        (lambda x, alpha: ONE if x > 0 else alpha * mp.exp(x), lambda x, alpha: mp.expm1(min(x, 0 * x))),
        lost=lambda x, alpha: 1 + abs(alpha),
    ),
    "silu": Truth(
        lambda x: x * logistic(x),
        (lambda x: logistic(x) + x * logistic(x) * logistic(-x),),
        terms=lambda x: logistic(x) + abs(x) * logistic(x) * logistic(-x),
    ),
    "gelu": Truth(
        lambda x: x * distribution(x),
        (lambda x: distribution(x) + x * density(x),),
        lost=lambda x: 4 + abs(x),
        terms=lambda x: distribution(x) + abs(x) * density(x),
    ),
    "erf": Truth(lambda x: mp.erf(x), (lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-(x**2)),)),
    "erfc": Truth(complement, (lambda x: -2 / mp.sqrt(mp.pi) * mp.exp(-(x**2)),)),
    "normal_cdf": Truth(distribution, (density,)),
    "logistic_pdf": Truth(logistic_pdf, (lambda x: -logistic_pdf(x) * mp.tanh(x / 2),)),
    "normal_pdf": Truth(density, (lambda x: -x * density(x),), lost=lambda x: 4 + abs(x)),
    "gaussian": Truth(lambda x: mp.exp(-(x**2)), (lambda x: -2 * x * mp.exp(-(x**2)),), lost=lambda x: 4 + 2 * abs(x)),
    "lorentzian": Truth(lambda x: 1 / (1 + x**2), (lambda x: -2 * x / (1 + x**2) ** 2,), lost=lambda x: 4 + abs(x)),
    "abs": Truth(lambda x: abs(x), (lambda x: mp.sign(x),)),
    "maximum": Truth(lambda x, y: max(x, y), (lambda x, y: ONE * (x >= y), lambda x, y: ONE * (x < y))),
    "minimum": Truth(lambda x, y: min(x, y), (lambda x, y: ONE * (x <= y), lambda x, y: ONE * (x > y))),
}


def slope_of(name, order=1):
    """A derivative of a function of mpmath, by differences that leave enough of 800 digits also next to 0."""

    def slope(x):
        with mp.workdps(800):
            return mp.diff(getattr(mp, name), x, order, relative=abs(x) > 1)

    return slope


# A function of one operand that mpmath has by the name of the primitive needs no line above.
for primitive in TABLE:
    if primitive.name not in TRUTHS and primitive.first is not None and len(primitive.derivatives) == 1:
        TRUTHS[primitive.name] = Truth(getattr(mp, primitive.name), (slope_of(primitive.name),))


def has_no_truth(primitive, inputs):
    """Whether an angle jumps there, by the sign of a zero that mpmath does not have, or a length has no slope."""
    if primitive.name == "atan2":
        return inputs[0] == 0 and inputs[1] <= 0
    return primitive.name == "hypot" and not any(inputs)


def _beside(primitive):
    """A number for the other operands; negative, as a power with such an exponent has a pole at 0."""
    return 0.5 if primitive.name in ("betaln", "xlogy", "rel_entr") else -0.5


ORDINARY = {"acosh": 1.5}  # a point inside of the domain, where 0.5 is none

each_primitive = pytest.mark.parametrize("primitive", TABLE, ids=lambda primitive: primitive.name)


def allowed_error(primitive: Primitive, inputs: tuple[float, ...], true: Any, terms: Any = 0) -> Any:
    truth = TRUTHS[primitive.name]
    ulp = math.ulp(float(max(abs(true), terms)))
    return mp.mpf(truth.ulps(*inputs)) * ulp + mp.mpf(truth.lost(*inputs)) * 5e-324


@cache
def middle(primitive: Primitive) -> st.SearchStrategy[tuple[float, ...]]:
    """Operands of moderate size, with room on both sides."""
    intervals = [(max(low, -30.0) + 1e-3, min(high, 30.0) - 1e-3) for low, high in primitive.domain]
    return st.tuples(*(st.floats(low, high) for low, high in intervals))


def exact(inputs: tuple[float, ...]) -> list[Any]:
    return [mp.mpf(x) for x in inputs]


def test_every_primitive_has_a_truth_with_a_derivative_for_each_of_its_rules():
    """So a new primitive comes with its line of mpmath, or with the name that mpmath has for it."""
    assert {primitive.name for primitive in TABLE} == TRUTHS.keys()
    for primitive in TABLE:
        flows = [rule is not None for rule in primitive.derivatives]
        assert flows == [derivative is not None for derivative in TRUTHS[primitive.name].derivatives]
        assert len(primitive.domain) == len(flows)


@pytest.mark.slow
@each_primitive
@settings(max_examples=24)
@given(data=st.data())
def test_forward_is_right_to_the_last_positions(primitive, data):
    inputs = data.draw(operands(primitive))
    assume(not has_no_truth(primitive, inputs))
    true = TRUTHS[primitive.name].forward(*exact(inputs))
    try:
        output = primitive.forward(*inputs)
    except OverflowError:
        assert abs(true) > LARGEST
        return
    if math.isinf(output):
        assert abs(true) > LARGEST
    else:
        assert abs(output - true) <= allowed_error(primitive, inputs, true)


@pytest.mark.slow
@each_primitive
@settings(max_examples=24)
@given(data=st.data())
def test_derivatives_are_right_to_the_last_positions(primitive, data):
    inputs = data.draw(operands(primitive))
    truth = TRUTHS[primitive.name]
    if primitive.name == "pow":
        assume(inputs[0] >= SMALLEST_NORMAL)  # 1 / x overflows below, though y / x need not
    assume(not has_no_truth(primitive, inputs))
    assume(abs(truth.forward(*exact(inputs))) <= LARGEST)
    output = primitive.forward(*inputs)
    for rule, derivative in zip(primitive.derivatives, truth.derivatives, strict=True):
        if rule is None:
            continue
        true = derivative(*exact(inputs))
        try:
            found = rule(1.0, output, *inputs)
        except OverflowError:
            found = math.inf
        if math.isinf(found):  # an intermediate result may be somewhat larger than the derivative
            assert abs(true) > LARGEST / 1000
        else:
            assert abs(found - true) <= allowed_error(primitive, inputs, true, truth.terms(*exact(inputs)))


@pytest.mark.slow
@each_primitive
@settings(max_examples=20)
@given(data=st.data())
def test_backward_scales_the_derivatives_with_the_gradient(primitive, data):
    inputs = data.draw(middle(primitive))
    assume(not has_no_truth(primitive, inputs))
    assume(abs(TRUTHS[primitive.name].forward(*exact(inputs))) < 1e100)
    output = primitive.forward(*inputs)
    slopes = [rule(1.0, output, *inputs) if rule else 0.0 for rule in primitive.derivatives]
    values = [Value(x) for x in inputs]
    result = primitive(*values)
    assert result.data == output
    if not any(primitive.derivatives):
        assert not result.requires_grad
        return
    result.backward(-4.0)  # a power of two: exact
    assert [value.grad for value in values] == pytest.approx([-4 * slope for slope in slopes], rel=1e-15, abs=1e-300)


@pytest.mark.slow
@each_primitive
@settings(max_examples=5)
@given(data=st.data())
def test_derivatives_agree_with_finite_differences(primitive, data):
    inputs = data.draw(middle(primitive))
    assume(not has_no_truth(primitive, inputs))
    if primitive.name in KINKS:
        assume(abs(KINKS[primitive.name](*inputs)) > 1e-3)
    assume(abs(TRUTHS[primitive.name].forward(*exact(inputs))) < 1e6)
    output = primitive.forward(*inputs)
    differences = numerical_gradient(primitive, inputs)
    for rule, difference in zip(primitive.derivatives, differences, strict=True):
        if rule is not None:
            assert rule(1.0, output, *inputs) == pytest.approx(difference, rel=1e-6, abs=1e-9 * (1 + abs(output)))


@each_primitive
def test_nan_in_gives_nan_out(primitive):
    if primitive.name in ("is_zero", "equal", "less", "less_equal"):
        assert primitive.forward(*[math.nan] * len(primitive.domain)) == 0.0
        return
    for position in range(primitive.name == "where", len(primitive.domain)):  # where: NaN is true, as for Python
        inputs = [_beside(primitive)] * len(
            primitive.domain
        )  # leaky_relu and elu look at their setting for negative x only
        inputs[position] = math.nan
        if not (primitive.name == "where" and position == 2):  # not chosen
            assert math.isnan(primitive.forward(*inputs))


# Stability, far out


def gradient(f, *inputs):
    """The gradient of f, one number for each input."""
    values = [Value(x) for x in inputs]
    f(*values).backward()
    return [value.grad for value in values]


@pytest.mark.parametrize(
    ("f", "x", "value", "slope"),
    [
        (mg.sigmoid, 1e4, 1.0, 0.0),
        (mg.sigmoid, -1e4, 0.0, 0.0),
        (mg.softplus, 1e4, 1e4, 1.0),
        (mg.softplus, -1e4, 0.0, 0.0),
        (mg.tanh, 1e4, 1.0, 0.0),
        (mg.tanh, -1e4, -1.0, 0.0),
        (mg.silu, 1e4, 1e4, 1.0),
        (mg.silu, -1e4, 0.0, 0.0),
        (mg.gelu, 1e4, 1e4, 1.0),
        (mg.gelu, -1e4, 0.0, 0.0),
        (mg.elu, -1e4, -1.0, 0.0),
        (mg.elu, 1e4, 1e4, 1.0),
    ],
)
def test_activations_far_out(f, x, value, slope):
    assert f(x) == value
    assert gradient(f, x) == [slope]


@pytest.mark.parametrize(
    ("f", "left", "right"),
    [
        (mg.sigmoid, 0.0, 0.0),
        (mg.tanh, 0.0, 0.0),
        (mg.softplus, 0.0, 1.0),
        (mg.relu, 0.0, 1.0),
        (mg.silu, 0.0, 1.0),
        (mg.gelu, 0.0, 1.0),
        (mg.elu, 0.0, 1.0),
        (mg.erf, 0.0, 0.0),
        (mg.atan, 0.0, 0.0),
        (mg.abs, -1.0, 1.0),
    ],
)
def test_slopes_at_infinity_and_that_they_stay_there(f, left, right):
    for far_left in (-1e155, -1e308, -math.inf):
        assert gradient(f, far_left) == pytest.approx([left], abs=1e-300)
        assert gradient(f, -far_left) == pytest.approx([right], abs=1e-300)
        slope = mg.grad(f)
        for _ in range(3):
            slope = mg.grad(slope)
            assert slope(far_left) == slope(-far_left) == 0.0


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5))
@example([1e4, -1e4])
@example([1e4, 1e4, 1e4])
@example([-1e4, -1e4 + 1e-3])
def test_logsumexp_and_softmax_far_out(xs):
    weights = [mp.exp(mp.mpf(x)) for x in xs]
    total = mp.fsum(weights)
    assert mg.logsumexp(xs) == pytest.approx(float(mp.log(total)), rel=1e-14, abs=1e-14)
    assert mg.softmax(xs) == pytest.approx([float(weight / total) for weight in weights], rel=1e-13, abs=1e-300)
    assert gradient(lambda *values: mg.logsumexp(values), *xs) == pytest.approx(
        [float(weight / total) for weight in weights], rel=1e-13, abs=1e-300
    )
    first = weights[0] / total
    assert gradient(lambda *values: mg.softmax(values)[0], *xs) == pytest.approx(
        [float(first * (1 - first)), *(float(-first * weight / total) for weight in weights[1:])], rel=1e-9, abs=1e-15
    )


@pytest.mark.parametrize("others", [[], [1.0], [800.0], [-800.0, 1e308]], ids=repr)
@pytest.mark.parametrize("kind", [float, Value], ids=["floats", "Values"])
def test_logsumexp_and_softmax_of_infinity_and_nan(others, kind):
    others = [kind(other) for other in others]
    assert float(mg.logsumexp([*others, math.inf])) == math.inf
    assert float(mg.logsumexp([math.inf, *others])) == math.inf
    for terms in ([math.nan, *others], [*others, math.nan], [math.nan, math.inf, -math.inf, *others]):
        assert math.isnan(float(mg.logsumexp(terms)))
        assert math.isnan(float(mg.softmax(terms)[0]))
    assert float(mg.logsumexp([kind(-math.inf)] * 2)) == -math.inf


def test_dot_is_the_sum_of_the_products_of_values_and_numbers():
    x = Value(2.0)
    result = mg.dot([x, 3.0, x], [4, x, x])
    result.backward()
    assert (result.data, x.grad) == (18.0, 11.0)


def test_normal_cdf_keeps_its_digits_where_its_tail_begins():
    for step in range(1000):
        x = -1 - step / 1000
        true = distribution(mp.mpf(x))
        assert abs(further_primitives.normal_cdf(x) - true) < 4 * math.ulp(float(true)), x


def is_finite(primitive, inputs):
    try:
        output = primitive.forward(*inputs)
        slopes = [rule(1.0, output, *inputs) for rule in primitive.derivatives if rule]
    except (ArithmeticError, ValueError):
        return False
    return all(map(math.isfinite, (output, *slopes)))


@pytest.mark.parametrize("primitive", TABLE, ids=lambda primitive: primitive.name)
def test_inside_of_a_domain_value_and_derivative_are_finite_and_at_its_end_or_a_step_beyond_one_is_not(primitive):
    for position, interval in enumerate(primitive.domain):
        for end, outwards in zip(interval, (-1, 1), strict=True):
            if math.isfinite(end):
                inputs = [_beside(primitive)] * len(
                    primitive.domain
                )  # negative: a power with such an exponent has a pole at 0
                inputs[position] = end - outwards * 1e-6
                assert is_finite(primitive, inputs)
                inputs[position] = end if abs(end) <= 1 else end + outwards
                assert not is_finite(primitive, inputs)


# Kinks and ties


def test_leaky_relu_and_elu_have_the_same_defaults_as_methods_and_as_functions():
    assert Value(-2.0).leaky_relu().data == mg.leaky_relu(-2.0) == -0.02
    assert Value(-2.0).elu().data == mg.elu(-2.0) == math.expm1(-2.0)


def test_relu_gives_no_negative_zero():
    assert [math.copysign(1, mg.relu(x)) for x in (-0.0, 0.0, -1.0)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)], ids=repr)
def test_of_equal_operands_the_first_is_chosen_as_by_pythons_max_and_min(zeros):
    for mine, pythons in ((mg.maximum, max), (mg.minimum, min)):
        assert math.copysign(1, mine(*zeros)) == math.copysign(1, pythons(*zeros)) == math.copysign(1, zeros[0])


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_the_derivative_at_a_kink(zero):
    assert gradient(mg.relu, zero) == [0.0]
    assert gradient(lambda x: mg.leaky_relu(x, 0.25), zero) == [0.25]
    assert gradient(lambda x: mg.elu(x, 0.5), zero) == [0.5]
    assert gradient(mg.abs, zero) == [0.0]
    assert gradient(abs, zero) == [0.0]


@pytest.mark.parametrize("f", [mg.maximum, mg.minimum])
def test_the_first_of_two_equals_gets_the_gradient(f):
    assert gradient(f, 2.0, 2.0) == [1.0, 0.0]
    assert gradient(f, 0.0, -0.0) == [1.0, 0.0]
    both = Value(2.0)
    f(both, both).backward()
    assert both.grad == 1.0


@pytest.mark.parametrize("f", [mg.maximum, mg.minimum])
@pytest.mark.parametrize(
    ("x", "y", "slopes"), [(math.nan, 1.0, [1.0, 0.0]), (1.0, math.nan, [0.0, 1.0]), (math.nan, math.nan, [1.0, 0.0])]
)
def test_of_a_nan_and_a_number_the_nan_gets_the_gradient(f, x, y, slopes):
    assert gradient(f, x, y) == slopes
    values = [Value(x), Value(y)]
    assert [float(slope) for slope in mg.gradient(f(*values), values, create_graph=True)] == slopes


def test_the_derivative_at_nan_is_that_of_the_branch_that_forward_takes():
    assert gradient(mg.relu, math.nan) == [1.0]
    assert gradient(lambda x: mg.leaky_relu(x, 0.25), math.nan) == [0.25]
    assert math.isnan(gradient(mg.elu, math.nan)[0])
    assert gradient(mg.abs, math.nan) == [0.0]
    for f in (mg.sigmoid, mg.tanh, mg.softplus, mg.silu, mg.gelu, mg.erf, mg.atan, mg.exp, mg.sin):
        assert math.isnan(gradient(f, math.nan)[0])


def test_learned_slope_and_alpha():
    assert gradient(mg.leaky_relu, -2.0, 0.1) == [0.1, -2.0]
    assert gradient(mg.leaky_relu, 2.0, 0.1) == [1.0, 0.0]
    assert gradient(mg.elu, -1.0, 3.0) == pytest.approx([3 * math.exp(-1), math.expm1(-1)])
    assert gradient(mg.elu, 1.0, 3.0) == [1.0, 0.0]


@pytest.mark.parametrize(("condition", "expected"), [(1.0, [1.0, 0.0]), (0.0, [0.0, 1.0]), (-3.0, [1.0, 0.0])])
def test_where_gives_the_gradient_to_what_was_chosen(condition, expected):
    assert gradient(lambda x, y: mg.where(condition, x, y), 5.0, 7.0) == expected
    assert mg.where(condition, 5.0, 7.0) == (5.0 if condition else 7.0)


# Powers


@pytest.mark.parametrize(
    ("base", "exponent", "value", "slopes"),
    [
        (0.0, 0.0, 1.0, [0.0, 0.0]),
        (0.0, 1.0, 0.0, [1.0, 0.0]),
        (0.0, 2.0, 0.0, [0.0, 0.0]),
        (0.0, 3.5, 0.0, [0.0, 0.0]),
        (3.0, 0.0, 1.0, [0.0, math.log(3)]),
        (1.0, 7.5, 1.0, [7.5, 0.0]),
        (2.0, 3.0, 8.0, [12.0, 8 * math.log(2)]),
        (4.0, 0.5, 2.0, [0.25, 2 * math.log(4)]),
        (2.0, -1.0, 0.5, [-0.25, 0.5 * math.log(2)]),
    ],
)
def test_power_and_both_of_its_derivatives(base, exponent, value, slopes):
    x, y = Value(base), Value(exponent)
    assert (x**exponent).data == (base**y).data == (x**y).data == value
    assert gradient(lambda x, y: x**y, base, exponent) == pytest.approx(slopes, rel=1e-15)
    assert gradient(lambda x: x**exponent, base) == pytest.approx(slopes[:1], rel=1e-15)
    assert gradient(lambda y: base**y, exponent) == pytest.approx(slopes[1:], rel=1e-15)


@pytest.mark.parametrize(
    ("base", "exponent", "value", "slope"),
    [(-2.0, 3, -8.0, 12.0), (-2.0, 2.0, 4.0, -4.0), (-2.0, -1, -0.5, -0.25), (-2.0, 0, 1.0, 0.0), (-2.0, 1, -2.0, 1.0)],
)
def test_negative_base_with_integer_exponent(base, exponent, value, slope):
    assert (Value(base) ** exponent).data == value
    assert gradient(lambda x: x**exponent, base) == [slope]
    assert gradient(lambda x: x ** Value(exponent, requires_grad=False), base) == [slope]


@pytest.mark.parametrize("backend", ["none", "numpy", "llvm"])
@pytest.mark.parametrize(
    ("base", "exponent"),
    [(8.681e-98, -6.538e-06), (1.127e90, -5.222e-15), (1e-60, 1 / 3), (1e60, -1.9999999999999998), (3e-40, 0.1)],
)
def test_the_power_rule_where_the_exponent_less_one_is_rounded(base, exponent, backend):
    x, y = mp.mpf(base), mp.mpf(exponent)
    first, second = y * mp.power(x, y - 1), y * (y - 1) * mp.power(x, y - 2)

    def compiled(f):
        return f if backend == "none" else mg.compile(f, backend=backend)

    for f, numbers in [(lambda x, y: x**y, (base, exponent)), (lambda x: x**exponent, (base,))]:
        assert abs(gradient(compiled(f), *numbers)[0] - first) <= 4 * math.ulp(float(abs(first)))
    if backend == "none":
        assert abs(mg.grad(mg.grad(lambda x: x**exponent))(base) - second) <= 4 * math.ulp(float(abs(second)))


@pytest.mark.parametrize("backend", ["none", "numpy", "llvm"])
def test_where_the_base_has_no_logarithm_the_power_rule_says_what_a_power_says(backend):
    f = (lambda x: x**0.3) if backend == "none" else mg.compile(lambda x: x**0.3, backend=backend)
    assert gradient(f, math.inf) == [0.0]
    assert math.isnan(gradient(f, math.nan)[0])
    with pytest.raises(ZeroDivisionError):
        gradient(f, 0.0)
    if backend == "none":
        assert mg.grad(mg.grad(f))(1e-200) == -math.inf


@pytest.mark.slow
@each_primitive
@settings(max_examples=10)
@given(data=st.data())
def test_rules_work_on_arrays_element_by_element(primitive, data):
    points = data.draw(st.lists(middle(primitive), min_size=2, max_size=4))
    assume(not any(has_no_truth(primitive, point) for point in points))
    outputs = [primitive(*point) for point in points]
    columns = np.array(points).T
    for rule in filter(None, primitive.derivatives):
        one_by_one = [rule(1.0, output, *point) for output, point in zip(outputs, points, strict=True)]
        together = rule(1.0, np.array(outputs), *columns)
        assert np.broadcast_to(together, len(points)) == pytest.approx(one_by_one, rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("exponent", [0.3, np.array([0.3, -6.538e-06]), 2.0])
def test_the_power_rule_on_arrays_of_bases(exponent):
    bases = np.array([1e-60, 8.681e-98])
    rule = mg.engine.primitives.pow.derivatives[0]
    exponents = np.broadcast_to(exponent, 2).tolist()
    one_by_one = [rule(1.0, x**y, x, y) for x, y in zip(bases.tolist(), exponents, strict=True)]
    assert rule(1.0, bases**exponent, bases, exponent) == pytest.approx(one_by_one, rel=1e-14)


def test_the_power_rule_on_arrays_with_exponents_that_are_0_or_infinite():
    bases = np.array([0.0, 1e-310, 0.5, 2.0, 0.0, 2.0, 0.5])
    exponents = np.array([0.0, 0.0, 0.0, 0.0, 2.0, math.inf, -math.inf])
    rule = mg.engine.primitives.pow.derivatives[0]
    one_by_one = [rule(1.0, x**y, x, y) for x, y in zip(bases.tolist(), exponents.tolist(), strict=True)]
    assert one_by_one[:5] == [0.0] * 5
    with np.errstate(invalid="ignore"):  # infinity minus infinity on the way
        assert rule(1.0, bases**exponents, bases, exponents).tolist() == one_by_one


def test_the_power_rule_at_0_where_1_less_than_the_exponent_is_rounded():
    exponent = 2.0**53 + 2
    assert (exponent - 1) + 1 != exponent
    assert mg.grad(lambda x: x**exponent)(0.0) == mg.grad(lambda x: x**exponent)(-0.0) == 0.0


def test_a_negative_base_has_no_derivative_by_its_exponent():
    x, y = Value(-2.0, label="x"), Value(3.0, label="y")
    z = x**y
    assert z.data == -8.0
    with pytest.raises(ValueError, match=r"derivative of \(x = -2\.0\) \*\* \(y = 3\.0\)"):
        z.backward()
    assert x.grad == y.grad == 0.0


# Errors


def values_alive() -> int:
    gc.collect()
    return sum(type(thing) is Value for thing in gc.get_objects())


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("compute", "like_float", "inputs", "words"),
    [
        (lambda a, b: a / b, lambda a, b: a / b, (1.0, 0.0), "(a = 1.0) / (b = 0.0)"),
        (lambda a: 1 / a, lambda a: 1 / a, (0.0,), "1.0 / (a = 0.0)"),
        (lambda a: a / 0, lambda a: a / 0, (1.5,), "(a = 1.5) / 0.0"),
        (mg.log, math.log, (-1.0,), "log(a = -1.0)"),
        (mg.log, math.log, (0.0,), "log(a = 0.0)"),
        (mg.log1p, math.log1p, (-1.0,), "log1p(a = -1.0)"),
        (mg.sqrt, math.sqrt, (-4.0,), "sqrt(a = -4.0)"),
        (mg.asin, math.asin, (1.5,), "asin(a = 1.5)"),
        (mg.acos, math.acos, (-1.5,), "acos(a = -1.5)"),
        (mg.sin, math.sin, (math.inf,), "sin(a = inf)"),
        (mg.exp, math.exp, (1000.0,), "exp(a = 1000.0)"),
        (mg.expm1, math.expm1, (1000.0,), "expm1(a = 1000.0)"),
        (mg.cosh, math.cosh, (-1000.0,), "cosh(a = -1000.0)"),
        (lambda a: a**-1, lambda a: a**-1, (0.0,), "(a = 0.0) ** -1.0"),
        (lambda a, b: a**b, lambda a, b: a**b, (0.0, -0.5), "(a = 0.0) ** (b = -0.5)"),
    ],
)
def test_errors_are_those_of_floats_and_say_what_happened(compute, like_float, inputs, words):
    with pytest.raises((ArithmeticError, ValueError)) as expected:
        like_float(*inputs)
    values = [Value(x, label=label) for x, label in zip(inputs, "ab", strict=False)]
    before = values_alive()
    with pytest.raises(expected.type) as raised:
        compute(*values)
    assert raised.type is expected.type
    assert words in str(raised.value)
    del raised
    assert values_alive() == before
    assert all(value.is_leaf and value.grad == 0 for value in values)
    (values[0] * 2).backward()
    assert values[0].grad == 2.0


@pytest.mark.parametrize(
    ("f", "edge"), [(mg.sqrt, 0.0), (lambda x: x**0.5, 0.0), (mg.asin, 1.0), (mg.asin, -1.0), (mg.acos, 1.0)]
)
def test_an_infinite_derivative_raises_and_leaves_the_gradients_as_they_were(f, edge):
    x = Value(edge, label="x")
    x.grad = 3.0
    with pytest.raises(ZeroDivisionError, match="derivative of"):
        f(x).backward()
    assert x.grad == 3.0


# The public functions and methods

PUBLIC = [primitive for primitive in TABLE if hasattr(mg, primitive.name)]


@pytest.mark.parametrize("primitive", PUBLIC, ids=lambda primitive: primitive.name)
def test_functions_give_floats_for_floats_and_values_for_values(primitive):
    function = getattr(mg, primitive.name)
    inputs = [ORDINARY.get(primitive.name, 0.5)] * len(primitive.domain)
    plain = function(*inputs)
    assert type(plain) is float
    assert plain == primitive.forward(*inputs)
    for position in range(len(inputs)):
        mixed = [Value(x) if position == index else x for index, x in enumerate(inputs)]
        result = function(*mixed)
        assert type(result) is Value
        assert result.data == plain
    if primitive.name in ("where", "detach"):  # not methods: where's condition is no Value, detach changes nothing
        return
    values, others = [Value(x) for x in inputs], [Value(x) for x in inputs]
    result, by_method = function(*values), getattr(Value, primitive.name)(*others)
    assert by_method.data == plain
    if not any(primitive.derivatives):
        return
    result.backward()
    by_method.backward()
    assert [value.grad for value in values] == [value.grad for value in others]
