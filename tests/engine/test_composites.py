"""Forward functions that are formulas: the same number from floats, arrays and native code, and the right one.

Over the whole range of floats: the tails, where results are below the normal floats, infinities and NaN.
"""

import math
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.ir.program import Access, Map, Program
from micrograd.engine import further_primitives, primitives
from micrograd.engine.further_primitives import TABLE as LIBRARY
from micrograd.engine.operations import Operations
from micrograd.engine.primitive import FLOATS, composite
from micrograd.pages.formulas import forward_formula
from tests.engine.test_primitives import LARGEST, TRUTHS, allowed_error, mp
from tests.strategies import EXTREMES, TABLE

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(("x", "expected"), [(1e152, 1e-304), (-3e153, 1e-306 / 9), (1e160, 1e-320), (1e200, 0.0)])
def test_a_lorentzian_far_out(x, expected):
    assert further_primitives.lorentzian(x) == pytest.approx(expected, rel=1e-15, abs=1e-323)


POLES = {
    "lgamma",
    "digamma",
    "betaln",
    "erfinv",
    "logit",
    "ndtri",
    "xlogy",
    "rel_entr",
}  # where floats raise; see test_special_functions
COMPOSITES = [primitive for primitive in TABLE if primitive.composite and primitive.name not in POLES]
NUMBERS = st.floats() | st.floats(-50, 50) | st.floats(-800, 800) | st.sampled_from([*EXTREMES, math.nan])
TAILS = [-1e308, -1e155, -1e3, -746.0, -745.1, -709.0, -600.0, -40.0, -38.5, -37.62, -27.3, -26.6, -1.0, -0.0]
SPECIAL = [*TAILS, *(-x for x in TAILS), 5e-324, -5e-324, 1e-310, math.inf, -math.inf, math.nan]
LANES = 9  # a vector of eight, and one more
ULPS = 8  # that two ways of computing may be apart: exp and erfc have one or two of their own in each

each_composite = pytest.mark.parametrize("primitive", COMPOSITES, ids=lambda primitive: primitive.name)


@cache
def compiled(primitive, backend, lanes):
    """A primitive as a function of columns of numbers, by a kernel."""
    count = len(primitive.derivatives)
    operands = tuple(Access(position * lanes, column_step=1) for position in range(count))
    kernel = Map(primitive, 1, lanes, Access(count * lanes, column_step=1), operands)
    nothing = np.zeros(0, dtype=np.int64)
    program = Program((count + 1) * lanes, (kernel,), nothing, nothing, nothing, slice(0, 0), ())
    executable = backend_of(backend).run_of(program)

    def run(*columns):
        executable.buffer[: count * lanes] = np.concatenate(columns)
        executable.run()
        return executable.buffer[count * lanes :].tolist()

    return run


def eager(primitive, inputs):
    """By floats; arithmetic that has no answer gives NaN, as it does in a kernel."""
    try:
        return primitive.forward(*inputs)
    except (ArithmeticError, ValueError):
        return math.nan


def steps_apart(x, y):
    """How many units in the last place; those of the smallest floats are all alike."""
    if x == y or (math.isnan(x) and math.isnan(y)):
        return 0
    return abs(x - y) / math.ulp(max(abs(x), abs(y)))


def test_those_that_are_made_of_others_and_those_that_backends_have_to_know():
    bells = {"logistic_pdf", "normal_pdf", "gaussian", "lorentzian"}
    activations = {"sigmoid", "softplus", "leaky_relu", "elu", "silu", "gelu", "normal_cdf"}
    assert {primitive.name for primitive in COMPOSITES} == activations | bells | {
        "sign",
        "ceil",
        "sinc",
        "i0",
        "i1",
        "log_ndtr",
    }
    assert LIBRARY["lower_power"].composite
    for name in ("relu", "tanh", "exp", "mul", "erfc"):
        assert LIBRARY[name].composite is None


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, LANES])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@each_composite
@settings(max_examples=24)
@given(data=st.data())
def test_backends_compute_what_floats_do(primitive, backend, lanes, data):
    count = len(primitive.derivatives)
    columns = [data.draw(st.lists(NUMBERS, min_size=lanes, max_size=lanes)) for _ in range(count)]
    found = compiled(primitive, backend, lanes)(*columns)
    for result, *inputs in zip(found, *columns, strict=True):
        expected = eager(primitive, inputs)
        assert steps_apart(result, expected) <= ULPS, (inputs, result, expected)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@each_composite
def test_in_the_tails_and_at_what_is_no_number(primitive, backend):
    for x in SPECIAL:
        for other in SPECIAL if len(primitive.derivatives) == 2 else [None]:
            inputs = (x,) if other is None else (x, other)
            (result,) = compiled(primitive, backend, 1)(*([number] for number in inputs))
            expected = eager(primitive, inputs)
            assert steps_apart(result, expected) <= ULPS, (inputs, result, expected)
            assert math.copysign(1, result) == math.copysign(1, expected) or math.isnan(expected), inputs


@pytest.mark.slow
@each_composite
@settings(max_examples=32)
@given(data=st.data())
def test_floats_are_right_wherever_there_is_a_number(primitive, data):
    finite = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-45, 45) | st.floats(-800, 800)
    inputs = data.draw(st.tuples(*[finite] * len(primitive.derivatives)))
    true = TRUTHS[primitive.name].forward(*map(mp.mpf, inputs))
    found = primitive.forward(*inputs)
    if math.isinf(found):
        assert abs(true) > LARGEST / 2
    else:
        assert abs(found - true) <= allowed_error(primitive, inputs, true)


# The power in the derivatives of a power

bases = st.floats(1e-290, 1e290) | st.floats(0.1, 10)
exponents = st.floats(-3, 3) | st.sampled_from([0.0, 1.0, 2.0, 3.0, 1e-20, 0.3, -1e-7]) | st.floats(-100, 100)


@settings(max_examples=60)
@given(bases, exponents, st.sampled_from([1.0, 2.0, 3.0]))
@example(1e-200, 0.3, 1.0)
@example(1e200, -1e-17, 2.0)
def test_lower_powers_are_right_where_the_lower_exponent_is_rounded(x, y, k):
    true = mpmath.mpf(0)
    with mpmath.workdps(40):
        true = mpmath.power(x, mpmath.mpf(y) - k)
        if not 1e-300 < true < 1e300:
            return
        found = primitives.lower_power(x, y, k)
        assert abs(found - true) <= 2 * math.ulp(float(true))
    for backend in ("numpy", "llvm"):
        (result,) = compiled(primitives.lower_power, backend, 1)([x], [y], [k])
        assert steps_apart(result, found) <= ULPS


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("x", [0.0, -0.0, 1e-310, 5e-324])
def test_at_0_a_lower_power_is_1_where_the_factor_beside_it_is_0(backend, x):
    for k in (1.0, 2.0, 3.0):
        assert primitives.lower_power(x, k - 1, k) == 1.0
        assert compiled(primitives.lower_power, backend, 1)([x], [k - 1], [k]) == [1.0]
    assert compiled(primitives.lower_power, backend, 1)([x], [2.0], [1.0]) == [x]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_all_derivatives_of_a_whole_power_at_0(exponent):
    f = lambda x: x**exponent  # noqa: E731
    for order in range(6):
        true = math.factorial(exponent) if order == exponent else 0.0
        assert f(0.0) == true
        f = mg.grad(f)


def test_an_infinite_or_unknown_operand_of_a_lower_power():
    assert primitives.lower_power(math.inf, 0.3, 1.0) == 0.0
    assert primitives.lower_power(2.0, math.inf, 1.0) == math.inf
    assert primitives.lower_power(0.5, math.inf, 1.0) == 0.0
    assert primitives.lower_power(math.nan, 1.0, 1.0) == 1.0
    assert math.isnan(primitives.lower_power(math.nan, 0.3, 1.0))


# What a composite is


def test_a_composite_is_computed_by_whatever_has_the_operations():
    formula = primitives.softplus.composite
    assert formula(FLOATS, 2.0) == primitives.softplus(2.0)
    on_fractions = Operations({primitives.maximum: max, primitives.abs: abs}.__getitem__)
    assert on_fractions.maximum(on_fractions.abs(-3), 2) == 3
    with pytest.raises(AttributeError, match="no primitive named 'tanhh' is registered"):
        on_fractions.tanhh  # noqa: B018


def test_what_is_left_out_where_no_operand_needs_it():
    asked = []
    on = Operations(lambda primitive: primitive.forward, lambda condition: asked.append(condition) or condition)
    assert further_primitives.normal_cdf.composite(on, 0.0) == 0.5
    assert further_primitives.normal_cdf.composite(on, -2.0) == further_primitives.normal_cdf(-2.0)
    assert asked == [False, True]
    assert Operations(lambda primitive: primitive).somewhere(False)


def test_settings_reach_the_formula():
    scaled = mg.primitive(
        "composite_scaled",
        "scaled",
        composite(lambda on, x, *, by: on.exp(-by * on.abs(x))),
        lambda g, out, x, *, by: -by * g * out * primitives.where(x > 0, 1.0, -1.0),
        replace=True,
    )
    x = Value(0.5)
    y = scaled(x, by=2.0)
    y.backward()
    assert (y.data, x.grad) == (math.exp(-1.0), -2 * math.exp(-1.0))
    for backend in ("numpy", "llvm"):
        assert mg.compile(lambda x: scaled(x, by=2.0), backend=backend)(x).data == pytest.approx(y.data, rel=1e-15)
        assert mg.compile(lambda x: scaled(x, by=3.0), backend=backend)(x).data == pytest.approx(math.exp(-1.5))


def test_a_replaced_primitive_is_used_by_composites_made_of_it():
    def define_inner(factor):
        mg.primitive("composite_inner", "i", lambda x: factor * x, lambda g, out, x: g * factor, replace=True)

    define_inner(2.0)
    outer = mg.engine.primitive.Primitive("outer", "o", composite(lambda on, x: on.composite_inner(x) + 1))
    assert outer.forward(3.0) == 7.0
    define_inner(5.0)
    assert outer.forward(3.0) == 16.0


def test_a_formula_of_a_page_has_the_names_of_the_librarys_own_and_the_insides_of_others():
    twice = mg.primitive("composite_twice", "t", composite(lambda on, x: x + x), lambda g, out, x: 2 * g, replace=True)
    outer = mg.engine.primitive.Primitive("outer", "o", composite(lambda on, x: on.silu(on.composite_twice(x))), None)
    assert twice.composite
    assert forward_formula(outer) == ["silu", ["add", "0", "0"]]
