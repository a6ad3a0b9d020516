"""The scalar tests of an autograd for NumPy: 42 operations, each to the second order.

It stands for programs that were written for another engine, in NumPy's names. The operations, and the numbers that each
is tried at: HIPS/autograd, tests/test_scalar_ops.py. What its tests check carries over, too: the first derivatives by
every argument, backward and forward, and all second derivatives, the mixed ones among them. It has two tests of most
operations of two operands, one for each of them; here these are one program. The truth is mpmath, with 50 digits and
numerical differentiation of its own.
"""

import math
import random

import mpmath
import numpy as np
import pytest

import micrograd as mg
from tests.outside.ways import WAYS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

TIMES = 5  # how often numbers are drawn for an operation


def drawn(point):
    return lambda source: [point(source) for _ in range(TIMES)]


def at(*numbers):
    return lambda source: [(number,) for number in numbers]


normal = drawn(lambda source: (source.gauss(0.0, 1.0),))
positive = drawn(lambda source: (abs(source.gauss(0.0, 1.0)),))
above_one = drawn(lambda source: (source.gauss(0.0, 1.0) ** 2 + 1.2,))
to_one = drawn(lambda source: (source.random(),))
to_ten = drawn(lambda source: (10.0 * source.random(),))
two_to_one = drawn(lambda source: (source.random(), source.random()))
one_and_more = drawn(lambda source: (source.random() ** 2 + 1.0, source.gauss(0.0, 1.0) ** 2 + 1.0))
square_to_one = drawn(lambda source: (source.random() ** 2,))

OF_ONE = {  # NumPy's name: the truth, and the numbers
    "abs": (abs, at(1.1, -1.1)),
    "absolute": (abs, at(1.1, -1.1)),
    "sin": (mpmath.sin, normal),
    "sign": (mpmath.sign, at(1.1, -1.1)),
    "exp": (mpmath.exp, normal),
    "log": (mpmath.log, positive),
    "log2": (lambda x: mpmath.log(x, 2), positive),
    "log10": (mpmath.log10, positive),
    "log1p": (mpmath.log1p, positive),
    "expm1": (mpmath.expm1, positive),
    "exp2": (lambda x: mpmath.mpf(2) ** x, positive),
    "cos": (mpmath.cos, normal),
    "tan": (mpmath.tan, normal),
    "cosh": (mpmath.cosh, normal),
    "sinh": (mpmath.sinh, normal),
    "tanh": (mpmath.tanh, normal),
    "arccos": (mpmath.acos, at(0.1, 0.2)),
    "arcsin": (mpmath.asin, at(0.1, 0.2)),
    "arctan": (mpmath.atan, at(0.2, 0.3)),
    "arccosh": (mpmath.acosh, above_one),
    "arcsinh": (mpmath.asinh, normal),
    "arctanh": (mpmath.atanh, at(0.2, 0.3)),
    "sqrt": (mpmath.sqrt, to_ten),
    "reciprocal": (lambda x: 1 / x, to_one),
    "negative": (lambda x: -x, to_one),
    "rad2deg": (mpmath.degrees, to_ten),
    "deg2rad": (mpmath.radians, to_ten),
    "radians": (mpmath.radians, to_ten),
    "degrees": (mpmath.degrees, to_ten),
}
OF_TWO = {
    "power": (lambda x, y: x**y, one_and_more),
    "mod": (lambda x, y: x - y * mpmath.floor(x / y), two_to_one),
    "divide": (lambda x, y: x / y, two_to_one),
    "multiply": (lambda x, y: x * y, two_to_one),
    "true_divide": (lambda x, y: x / y, two_to_one),
}
PROGRAMS = {
    **{
        name: (lambda x, name=name: 3.0 * getattr(np, name)(x), lambda x, truth=truth: 3 * truth(x), points)
        for name, (truth, points) in OF_ONE.items()
    },
    **{name: (getattr(np, name), truth, points) for name, (truth, points) in OF_TWO.items()},
    "neg": (lambda x: 3.0 * -x, lambda x: -3 * x, normal),
    "power of zero": (lambda y: np.power(0.0, y), lambda y: mpmath.mpf(0) ** y, square_to_one),
    # np.sinc takes arrays of floats only
    "sinc": (lambda x: 3.0 * mg.sinc(x), lambda x: 3 * mpmath.sincpi(x), to_ten),
}


def to_the_second_order(f):
    """A function of a list: the value, the gradient backward and forward, and the second derivatives."""

    def g(xs):
        return f(*xs)

    def everything(xs):
        units = [[float(i == j) for j in range(len(xs))] for i in range(len(xs))]
        return {
            "value": g(xs),
            "backward": mg.grad(g)(xs),
            "forward": [mg.jvp(g, (xs,), (unit,))[1] for unit in units],
            "second": mg.hessian(g)(xs),
        }

    return everything


def true_derivative(truth, point, *by):
    orders = tuple(by.count(i) for i in range(len(point)))
    return float(mpmath.diff(truth, tuple(map(mpmath.mpf, point)), orders) if by else truth(*map(mpmath.mpf, point)))


def close(found, truth):
    return math.isclose(float(found), truth, rel_tol=1e-12, abs_tol=1e-13)


def test_there_are_42_of_them():
    """Those of two operands were two each."""
    assert len(PROGRAMS) + len(OF_TWO) == 42


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.unmeasured
def test_an_operation_to_the_second_order(way, name):
    f, truth, points = PROGRAMS[name]
    everything = WAYS[way](to_the_second_order(f))
    for point in points(random.Random(name)):
        found = everything(list(point))
        with mpmath.workdps(50):
            assert close(found["value"], true_derivative(truth, point))
            for i in range(len(point)):
                slope = true_derivative(truth, point, i)
                assert close(found["backward"][i], slope), (point, i)
                assert close(found["forward"][i], slope), (point, i)
                for j in range(len(point)):
                    assert close(found["second"][i][j], true_derivative(truth, point, i, j)), (point, i, j)


@pytest.mark.parametrize("way", WAYS)
def test_the_slope_of_abs_at_its_kink_is_the_mean_of_both_sides(way):
    for kink in (0.0, -0.0):
        assert WAYS[way](mg.grad(lambda x: 3.0 * np.abs(x)))(kink) == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_the_power_zero_is_a_constant_at_zero_too(way):
    """Its slope is 0 times 0 to the power -1."""
    slope = mg.grad(lambda x: np.power(x, 0.0))
    for f in (slope, mg.grad(slope)):
        assert WAYS[way](f)(0.0) == 0.0
