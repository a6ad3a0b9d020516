"""NumPy's functions of arrays of Values, the same eagerly and compiled: values, shapes, types, gradients and errors."""

import copy
import math
import pickle

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from tests.numpy_expressions import DIFFERENT, KINDS, differences, expressions, of_namespace

X = np.array([[0.5, -1.25, 2.0], [0.0, 3.5, -0.5]])
Y = np.array([[2.0, 0.5, 3.0], [0.25, 2.0, 1.0]])

MODES = pytest.mark.parametrize(
    "make", [lambda f: f, lambda f: mg.compile(f, backend="numpy")], ids=["eager", "compiled"]
)

FUNCTIONS = {
    "a number among Values": lambda x, y: np.exp(np.maximum(x, 0)),
    "a number from np.clip": lambda x, y: np.log(np.clip(x, 1e-9, None)),
    "a number from np.where": lambda x, y: np.exp(np.where(x > 1, x, 0)),
    "ints behind Values": lambda x, y: np.sin(np.concatenate([x.ravel(), np.arange(3)])),
    "zeros around Values": lambda x, y: np.hypot(np.pad(x, 1), 1.0),
    "zeros below Values": lambda x, y: np.sqrt(1 + np.triu(y)),
    "np.arctan2 of a number": lambda x, y: np.arctan2(1.5, y),
    "np.hypot of a number": lambda x, y: np.hypot(1.5, y),
    "nothing but numbers": lambda x, y: np.exp(np.ones_like(x)) * x,
    "a power of a number": lambda x, y: 2**x,
    "x.round": lambda x, y: x.round() * y,
    "x.round to decimals": lambda x, y: [x.round(1) * y, (10 * x).round(-1) * y],
    "x.round, out=": lambda x, y: [z := x.copy(), x.round(out=z), x.round(1, out=z), z * y],
    "np.rint": lambda x, y: np.rint(x) * y,
    "np.trunc": lambda x, y: np.trunc(x) * y,
    "np.trunc of ints": lambda x, y: np.trunc(np.ones_like(x)) * y,
    "np.float_power": lambda x, y: np.float_power(y, 1.5),
    "np.cbrt": lambda x, y: np.cbrt(y),
    "np.cbrt of negative numbers": lambda x, y: np.cbrt(-y),
    "np.fabs": lambda x, y: np.fabs(x),
    "np.isfinite": lambda x, y: [np.isfinite(x), np.isnan(x), np.isinf(x)],
    "infinities by sign": lambda x, y: [np.isposinf(x), np.isneginf(x)],
    "np.isclose": lambda x, y: [np.isclose(x, y), np.isclose(x, x), np.isclose(x, 0.5, equal_nan=True)],
    "np.allclose": lambda x, y: [np.allclose(x, y), np.allclose(x, x)],
    "np.logaddexp": lambda x, y: np.logaddexp(x, y),
    "np.logaddexp of equal numbers": lambda x, y: np.logaddexp(x, x + 0.0),
    "np.logaddexp2": lambda x, y: np.logaddexp2(x, y),
    "np.logaddexp.reduce": lambda x, y: np.logaddexp.reduce(x),
    "np.nansum": lambda x, y: [np.nansum(x), np.nansum(x, axis=0)],
    "np.nanprod": lambda x, y: [np.nanprod(y), np.nancumsum(y), np.nancumprod(y)],
    "np.nanmax": lambda x, y: [np.nanmax(x), np.nanmin(x, axis=1)],
    "np.nanvar": lambda x, y: [np.nanvar(x), np.nanvar(x, axis=1, keepdims=True), np.nanstd(x, axis=0, ddof=1)],
    "np.cov": lambda x, y: [np.cov(x), np.cov(x, y, ddof=0), np.cov(x, y[:1], rowvar=True, bias=True), np.cov(x[0])],
    "np.cov of columns": lambda x, y: [np.cov(x, y, rowvar=False), np.cov(x.T, y[0], rowvar=False)],
    "np.cov with weights": lambda x, y: [
        np.cov(x, fweights=[1, 2, 1]),
        np.cov(x, aweights=[0.5, 1.0, 2.0]),
        np.cov(x, y, fweights=np.array([1, 2, 1]), aweights=[0.5, 1.0, 2.0]),
    ],
    "np.corrcoef": lambda x, y: [np.corrcoef(x), np.corrcoef(x[0], y[0])[0, 1], np.corrcoef(x[1])],
    "np.gradient": lambda x, y: [np.gradient(x), np.gradient(x, 0.5, axis=1), np.gradient(x[0]) * y[0]],
    "np.gradient at points": lambda x, y: [
        np.gradient(x, [0.0, 0.5], [0.0, 1.0, 3.0]),
        np.gradient(x[0], [0.0, 1.0, 2.0], edge_order=2),
        np.gradient(x, [1.0, 2.0, 4.0], axis=(1,), edge_order=2),
        np.gradient(x[0], np.cumsum(y[0])),
        np.gradient(x[0], y[0, 0]),
    ],
    "np.insert": lambda x, y: [
        np.insert(X, 0, y[0], axis=0),
        np.insert(x, 1, 5.0, axis=1),
        np.insert(x, [0, 2], y[0, :2]),
    ],
    "np.floor.at": lambda x, y: [z := x.copy(), np.floor.at(z, np.array([True, False])), z * y][::2],
    "np.sign and np.floor": lambda x, y: [np.sign(x) * y, np.floor(x), np.ceil(x * y), np.floor(x, out=y.copy())],
    "signs and remainders": lambda x, y: [
        *(np.copysign(y, x), np.copysign(2.0, x), np.signbit(x), np.fmod(x, y), np.heaviside(x, y)),
        *(*np.divmod(x, y), *np.modf(x), *divmod(np.float64(7.0), y[0, 0])),
    ],
    "np.sinc": lambda x, y: np.sinc(x),
    "np.interp": lambda x, y: [
        np.interp(x, [0.0, 1.0, 3.0], y[0]),
        np.interp(x, np.cumsum(y[0]), y[1], left=x[0, 0], right=-5.0),
        np.interp(x[0, 0], [0, 1], [0, 2]) * 2,
        np.interp([0.5, 9.0], [0.0, 2.0], y[0, :2]),
    ],
    "np.linspace": lambda x, y: [
        *(np.linspace(x[0, 0], y[0, 0], 3), np.linspace(x, 5, 2, endpoint=False), np.linspace(x[0], y, 1)),
        np.linspace(1.0, y[0, 1], 4),
    ],
    "single Values": lambda x, y: [
        *(np.exp(y[0, 0]), np.hypot(x[0, 0], 1.0), np.isfinite(x[0, 0]), np.arctan2(x[0, 0], y[0, 0])),
        *(np.float_power(y[0, 0], 2), np.logaddexp(x[0, 0], y[0, 0]), np.isclose(x[0, 0], 0.5), np.cbrt(y[0, 0])),
        *(np.rint(x[0, 0]), np.maximum(x[0, 1], 0), np.where(x[0, 0] > 0, x[0, 0], 0), np.clip(x[0, 1], 0, 1)),
        *(np.round(x[0, 1], 1), np.float64(2.0) * x[0, 0], x[0, 0] * np.float64(2.0), np.float64(2.0) / y[0, 0]),
        *(X * y[0, 0], y[0, 0] - X, Y[0] ** y[0, 1:2], np.stack([x[0, 0], y[0, 0]]), np.sum(x[0, 0])),
        *(
            np.add(x[0, 0], 1),
            np.multiply(2.0, y[0, 0]),
            np.multiply([1.0, 2.0], y[0, 0]),
            np.add.reduce([x[0, 0], 1.0]),
        ),
        *(np.allclose(x[0, 0], 0.5), np.int64(2) ** x[0, 0], np.float64(7.0) % y[0, 0], np.sign(x[0, 0])),
    ],
    "np.linalg.cholesky": lambda x, y: [  # NumPy takes the numbers below the diagonal
        np.linalg.cholesky(y[:, :2]),
        np.linalg.cholesky(mg.array([[y[0, 0], y[1, 0]], [y[1, 0], y[1, 1]]])),
    ],
    "where= of reductions": lambda x, y: [np.sum(x, where=Y > 1), x.prod(axis=1, where=Y > 1), np.mean(x, where=Y > 1)],
    "np.nanmean": lambda x, y: [np.nanmean(x), np.nanmean(x, axis=1, keepdims=True)],
    "out=": lambda x, y: [z := x.copy(), np.exp(x, out=z) is z, z * y],
}
REFUSED = {
    "nextafter": lambda x, y: np.nextafter(x, y),
    "linspace": lambda x, y: np.linspace(x, y, 3, axis=1),
    "spacing": lambda x, y: np.spacing(x),
    "fft.hfft": lambda x, y: np.fft.hfft(x),
    "gcd": lambda x, y: np.gcd(x, y),
    "linalg.eig": lambda x, y: np.linalg.eig(x[:, :2]),
    "fft.ihfft": lambda x, y: np.fft.ihfft(x),
    "polydiv": lambda x, y: np.polydiv(x[0], y[0]),
    "roots": lambda x, y: np.roots(x[0]),
    "linalg.svd": lambda x, y: np.linalg.svd(x),
    "linalg.pinv": lambda x, y: np.linalg.pinv(x, rcond=1e-3),
}


def parts_of(result):
    if isinstance(result, (list, tuple)):
        return [part for item in result for part in parts_of(item)]
    if isinstance(result, np.ndarray):
        return [result.shape, *result.ravel().tolist()]
    return [result]


def outcome(function):
    """The numbers, shapes and kinds of what a function of two arrays of Values gives, and the gradients."""
    x, y = mg.array(X), mg.array(Y)
    parts = parts_of(function(x, y))
    roots = [weight * part for weight, part in enumerate(parts) if isinstance(part, Value) and part.requires_grad]
    if roots:
        sum(roots).backward()
    shown = [part.data if isinstance(part, Value) else part for part in parts]
    return shown, mg.gradients(x).ravel().tolist() + mg.gradients(y).ravel().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_as_eagerly(backend, name):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    expected, found = outcome(FUNCTIONS[name]), outcome(mg.compile(FUNCTIONS[name], backend=backend))
    assert len(found[0]) == len(expected[0])
    for x, y in zip(found[0], expected[0], strict=True):
        assert x == (y if isinstance(y, (bool, tuple)) else pytest.approx(y, rel=1e-14))
    assert found[1] == pytest.approx(expected[1], rel=1e-13)


@pytest.mark.parametrize("name", REFUSED)
@MODES
def test_a_function_that_values_do_not_have(name, make):
    with pytest.raises(TypeError, match=rf"micrograd has no np\.{name} of Values.*: (write|leave) "):
        make(REFUSED[name])(mg.array(X), mg.array(Y))


@pytest.mark.parametrize("function", [np.rint, np.isfinite, np.isnan, np.isinf, np.fabs, np.trunc])
def test_numbers_as_numpy_has_them(function):
    numbers = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 1e300, 2.0**52 + 1, 0.0])
    assert mg.numbers(function(mg.array(numbers))).tolist() == function(numbers).tolist()


def test_what_is_not_finite():
    x = mg.array([math.inf, -math.inf, math.nan, 1.0])
    assert np.isfinite(x).tolist() == [False, False, False, True]
    assert np.isnan(x).tolist() == [False, False, True, False]
    assert np.isinf(x).tolist() == [True, True, False, False]
    assert np.nansum(x[2:]).data == np.nanmean(x[2:]).data == 1.0
    assert np.isclose(x, x).tolist() == [True, True, False, True]
    assert np.isclose(x, x, equal_nan=True).tolist() == [True] * 4
    for a in (math.inf, -math.inf, math.nan, 0.0):
        for b in (math.inf, -math.inf, math.nan, 700.0):
            with np.errstate(invalid="ignore"):
                expected = np.logaddexp(a, b)
            assert np.logaddexp(mg.array([a]), b)[0].data == pytest.approx(expected, nan_ok=True)


def test_views_copies_and_elements():
    w = mg.array(X)
    kind = type(w)
    for made in (w[0], w.T, w.reshape(-1), w.copy(), w + 1, np.where([True, False, True], w, 0), np.stack([w, w])):
        assert type(made) is kind
    assert type(copy.deepcopy(w)) is type(pickle.loads(pickle.dumps(w))) is kind
    assert isinstance(w[0, 0], Value)
    assert isinstance(w.sum(), Value)
    assert type(np.asarray(w)) is np.ndarray
    w += 1
    assert type(w) is kind
    assert np.where(mg.array([0.0, 2.0]))[0].tolist() == [1]


def test_an_array_of_objects_is_numpys_own():
    plain = np.array([Value(1.0), 2], dtype=object)
    with pytest.raises(TypeError, match="loop of ufunc does not support"):
        np.exp(plain)


def test_parts_of_a_plain_float():
    fast = mg.compile(lambda x: x.real * 2 + x.imag + x.conjugate(), backend="numpy")
    assert fast(1.5) == 4.5
    fast = mg.compile(lambda x: (x.is_integer(), abs(x)), backend="numpy")
    assert [fast(-1.5), fast(2.0)] == [(False, 1.5), (True, 2.0)]
    fast = mg.compile(
        lambda n: (n.real * 2 + n.imag, n.numerator, n.denominator, abs(n), n.conjugate(), +n), backend="numpy"
    )
    assert fast(-3) == (-6, -3, 1, 3, -3, -3)
    assert mg.compile(lambda n: n.as_integer_ratio()[0] * 2, backend="numpy")(3) == 6
    for method in ("hex", "as_integer_ratio"):
        with pytest.raises(mg.TraceError, match="would freeze a number"):
            mg.compile(lambda x, method=method: getattr(x, method)(), backend="numpy")(1.5)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda w, x: mg.detach(w) * x, [False]),
        (lambda w, x: mg.floor(w * x), [False]),
        (lambda w, x: mg.sign(w) // x, [False]),
        (lambda w, x: [w * x, mg.floor(w * x), x * 2, mg.detach(w) + x, w], [True, False, False, False, True]),
        (lambda w, x: [mg.floor(w), x + 1], [False, False]),
        (lambda w, x: [w * 0, mg.where(w > 0, x, 1.0), mg.where(x > 0, w, x)], [True, False, True]),
    ],
)
def test_a_compiled_result_requires_a_gradient_where_an_eager_one_does(backend, function, expected):
    w, x = Value(3.0), Value(2.0, requires_grad=False)
    fast = mg.compile(function, backend=backend)
    found, eager = parts_of(fast(w, x)), parts_of(function(w, x))
    assert [each.requires_grad for each in found] == [each.requires_grad for each in eager] == expected
    assert [each.data for each in found] == [each.data for each in eager]
    if any(expected):
        sum(found).backward()
        of_compiled, w.grad = w.grad, 0.0
        sum(eager).backward()
        assert of_compiled == w.grad


@pytest.mark.parametrize(
    "function",
    [
        *(np.cov, np.corrcoef, np.gradient, np.nanstd, np.sign, np.floor, np.ceil, np.trunc),
        lambda x: np.cov(x, bias=True),
        lambda x: np.cov(x, rowvar=False, fweights=[2, 1]),
        lambda x: np.cov(x, fweights=[1, 2, 1], aweights=[0.5, 1.0, 2.0]),
        lambda x: np.gradient(x, 0.5, [0.0, 1.0, 3.0]),
        lambda x: np.interp(
            [-1.0, 0.0, 0.5, 1.0, 2.5, 4.0, math.nan, math.inf], x[0, 0] + np.array([-0.5, 0.5, 2.5]), x[1]
        ),
        lambda x: np.interp(3 * x, [-3.0, 0.0, 6.0], [1.0, 2.0, 7.0], left=-5.0, right=x[0, 0]),
        lambda x: np.linspace(x, 3 * x + 1, 7),
        lambda x: np.linspace(x[0], x, 5, endpoint=False),
        lambda x: [np.linspace(x[0, 0], 2.0, 1), np.linspace(x[0, 0], x[0, 1], 0)],
        lambda x: [np.fmod(x, 1.5), *np.modf(x), np.heaviside(x, 0.5), np.copysign(x, -x), np.sinc(x)],
        lambda x: np.gradient(x[0], [0.0, 1.0, 3.0], edge_order=2),
        lambda x: np.gradient(x[0], 0.25, edge_order=2),
        lambda x: np.nanvar(x, axis=1, ddof=1),
    ],
)
def test_whole_functions_give_the_numbers_that_numpy_has_for_floats(function):
    with np.errstate(invalid="ignore"):
        found, expected = parts_of(function(mg.array(X))), parts_of(function(X))
    found = [part.data if isinstance(part, Value) else part for part in found]
    assert found == [
        part if isinstance(part, tuple) else pytest.approx(part, rel=1e-12, nan_ok=True) for part in expected
    ]


def test_an_infinity_stays_where_it_is():
    x = mg.array([math.inf, 1.0, 2.0, 4.0])
    assert mg.numbers(np.gradient(x)).tolist() == [-math.inf, -math.inf, 1.5, 2.0]
    assert np.nanvar(mg.array([math.nan, 1.0, 3.0])).data == 1.0


def test_steps_of_values_are_numbers_of_numpy():
    for function in (np.sign, np.floor, np.ceil, np.trunc):
        assert function(mg.array(X)).dtype == mg.compile(function, backend="numpy")(mg.array(X)).dtype == int
    assert np.floor(mg.array([1e300])).tolist() == [int(1e300)]
    mixed = mg.array([2.5, -1.0])
    mixed[1] = -1.5
    assert np.sign(mixed).tolist() == [1, -1]
    for make in (lambda f: f, lambda f: mg.compile(f, backend="numpy")):
        with pytest.raises(ValueError, match="NaN has no sign"):
            make(lambda x: np.sign(x))(mg.array([math.nan]))


EXPRESSIONS = [expression for expression in expressions() if expression not in DIFFERENT]
NAMESPACE = [expression for expression in of_namespace() if expression not in DIFFERENT]


@pytest.mark.slow
@pytest.mark.parametrize("expression", [*EXPRESSIONS[::25], *NAMESPACE[::123]])
def test_some_expressions(expression):
    assert differences(expression, "signs") == []


# Each expression meets ties and other numbers, and each function of the namespace is called in half of the ways, with
# four kinds of arrays. With python -m tests.numpy_expressions, all of them meet all.


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("part", range(2))  # on several processors at once
def test_the_whole_namespace(part):
    assert len(NAMESPACE) > 2500
    found = [
        different
        for number, expression in enumerate(NAMESPACE)
        if (number + number // 8) % 4 == 2 * part  # other arguments for the next function
        for different in differences(expression, "signs", [[*KINDS][number // 2 % len(KINDS)]])
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("part", range(2))
def test_all_expressions(part):
    assert len(EXPRESSIONS) > 500
    found = [
        different
        for number, expression in enumerate(EXPRESSIONS)
        for different in differences(
            expression,
            "ties" if part == number % 2 else ["signs", "unit"][number // 2 % 2],
            [[*KINDS][3 * part + number // 4 % 3]],
        )
    ]
    assert found == []


@pytest.mark.parametrize("run", [lambda f: f, lambda f: mg.compile(f, backend="numpy")], ids=["eager", "compiled"])
def test_weights_of_a_mean_have_gradients(run):
    x, w = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 5.0]]), np.array([1.0, 2.0, 5.0])

    def slopes(mean):
        return run(mg.value_and_grad(mean, argnums=(0, 1)))(x, w)

    value, (of_x, of_w) = slopes(lambda x, w: np.average(x, axis=1, weights=w).sum())
    assert value == pytest.approx(25 / 8 + 28 / 8)
    assert of_x == pytest.approx(np.tile(w / 8, (2, 1)))
    assert of_w == pytest.approx(((x - np.array([[25 / 8], [28 / 8]])) / 8).sum(axis=0))
    value, _ = slopes(lambda x, w: np.average(x, axis=(1, 0), weights=np.stack([w, w + 1], axis=1), returned=True)[0])
    assert value == pytest.approx(np.average(x, axis=(1, 0), weights=np.stack([w, w + 1], axis=1)))
    value, (of_x, _) = run(mg.value_and_grad(lambda x, w: np.average(x * w, weights=x), argnums=(0, 1)))(x, w)
    assert value == pytest.approx(np.average(x * w, weights=x))
    assert of_x == pytest.approx((2 * x * w - value) / x.sum())
    with pytest.raises(ValueError, match=r"[Ss]hape of weights"):
        slopes(lambda x, w: np.average(x, axis=0, weights=w))


@MODES
def test_signs_of_zeros_and_of_what_is_not_finite(make):
    numbers = np.array([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, 5e-324, -5e-324])
    for function in (np.signbit, lambda x: np.copysign(2.0, x), lambda x: np.heaviside(x, 0.5)):
        found = make(function)(mg.array(numbers))
        assert repr(mg.numbers(found).tolist()) == repr([float(x) for x in function(numbers)])
    for x in (7.5, -7.5, -0.0, 0.25):
        for y in (2.0, -2.0):
            assert repr(make(lambda x, y: np.fmod(x, y))(Value(x), Value(y)).data) == repr(math.fmod(x, y))


def test_arrays_of_numbers_and_a_value():
    v, numbers = Value(2.0), np.array([1.0, 2.0])
    for made in (
        numbers * v,
        v * numbers,
        numbers - v,
        v**numbers,
        np.add(numbers, v),
        np.where([True, False], v, 0.0),
    ):
        assert type(made) is type(mg.array([1.0]))
    plain = np.array([Value(1.0), 2], dtype=object)
    assert type(plain * v) is type(v * plain) is type(plain + 1) is np.ndarray
    assert type(np.float64(2.0) * v) is type(v * np.float64(2.0)) is type(np.exp(v)) is Value


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: np.add(x, x, out=np.zeros(2)),
        lambda x, y: np.floor(x, out=np.zeros(2)),
        lambda x, y: np.isfinite(x, out=np.zeros(2, dtype=bool)),
        lambda x, y: np.add(y, x, out=y),
    ],
)
def test_values_into_an_array_of_numbers(function):
    with pytest.raises(TypeError, match=r"micrograd has no np\.\w+ of Values into an array of \w+: leave out= out"):
        function(mg.array([1.0, 2.0]), np.ones(2))
    with pytest.raises(mg.TraceError, match=r"(an array of numbers as out= of np\.\w+|put into an array of numbers)"):
        mg.compile(function, backend="numpy")(mg.array([1.0, 2.0]), np.ones(2))
    assert np.greater(mg.array([1.0, -2.0]), 0, out=np.zeros(2, dtype=bool)).tolist() == [True, False]


@pytest.mark.parametrize(
    "function", [np.spacing, np.fft.fft, lambda x: np.nextafter(x, x), lambda x: np.frexp(x)[0], np.common_type]
)
def test_functions_that_no_program_has_of_plain_numbers(function):
    with pytest.raises(mg.TraceError, match=r"(of numbers|of arrays) would freeze .*outside of the function"):
        mg.compile(function, backend="numpy")(X)


def _set(x, v):
    x = x.copy()
    x[0] = v
    return x


@pytest.mark.parametrize(
    "function",
    [
        _set,
        lambda x, v: np.full_like(x, v),
        lambda x, v: [x := x.copy(), x.fill(v)],
        lambda x, v: [x := x.copy(), np.put(x, [0], [v])],
        lambda x, v: [x := x.copy(), np.copyto(x, mg.array([v, v]))],
    ],
)
def test_a_value_in_an_array_of_numbers_that_is_an_argument(function):
    with pytest.raises((mg.GradientWarning, TypeError), match="gradient"):
        function(np.array([1.0, 2.0]), Value(3.0))
    with pytest.raises(mg.TraceError, match=r"a Value put into an array of numbers .*Write mg\.array\(x\)"):
        mg.compile(function, backend="numpy")(np.array([1.0, 2.0]), Value(3.0))
    fast = mg.compile(lambda x, v: _set(mg.array(x), v) * v, backend="numpy")
    assert mg.numbers(fast(np.array([1.0, 2.0]), Value(3.0))).tolist() == [9.0, 6.0]
    fast = mg.compile(lambda x, v: _set(np.zeros_like(x), v) * v + np.full_like(x, v), backend="numpy")
    assert mg.numbers(fast(mg.array([1.0, 2.0]), Value(3.0))).tolist() == [12.0, 3.0]


@MODES
@pytest.mark.parametrize("function", [np.mean, np.var, np.std, np.nanmean, np.nanvar, np.nanstd])
@pytest.mark.parametrize("kind", [np.array, mg.array])
@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom|invalid value):RuntimeWarning")
def test_averages_of_no_elements_are_nan(function, make, kind):
    assert np.isnan(make(lambda x: function(x[:0]))(kind(X)))


@MODES
@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated:DeprecationWarning")
@pytest.mark.parametrize(
    ("error", "message", "function"),
    [
        (TypeError, "must be an array|must be of ArrayType", lambda x, y: np.fix(x[0, 0], y[0, 0])),
        (TypeError, "must be an array|must be of ArrayType", lambda x, y: np.isposinf(x[0, 0], y[0, 0])),
        (TypeError, "integer|would freeze", lambda x, y: np.fft.fft(x, y[0, 0])),
        (TypeError, "integer", lambda x, y: np.fft.irfft(x, 2.5)),
        (ValueError, "ambiguous|one int", lambda x, y: np.fft.irfft(x, y)),
        (AttributeError, "upper", lambda x, y: np.linalg.eigh(x, y)),
        (ValueError, "UPLO", lambda x, y: np.linalg.eigh(x[:, :2], "M")),
        (ValueError, "ambiguous|must be a str", lambda x, y: np.linalg.qr(x, y)),
        (np.linalg.LinAlgError, "at least two-dim|takes matrices", lambda x, y: np.linalg.cond(x[0])),
        (np.linalg.LinAlgError, "not defined|with elements", lambda x, y: np.linalg.cond(x[:, :0])),
        (TypeError, "one spacing|invalid number", lambda x, y: np.gradient(x, y)),
        (ValueError, "one axis|1d", lambda x, y: np.gradient(x[0], y)),
        (TypeError, "each of 2 axes, not 3|invalid number", lambda x, y: np.gradient(x, 1.0, 1.0, 1.0)),
        (ValueError, "more than 2 elements.*not 2|too small", lambda x, y: np.gradient(x, axis=0, edge_order=2)),
        (ValueError, "as elements: 3, not 2|must match", lambda x, y: np.gradient(x[0], [0.0, 1.0])),
        (ValueError, r"\(2,\) and \(3,\)|same length", lambda x, y: np.interp(x, [0.0, 1.0], [1.0, 2.0, 3.0])),
        (np.linalg.LinAlgError, r"at least two|pinv takes .*\(3,\)", lambda x, y: np.linalg.pinv(x[0])),
        (np.linalg.LinAlgError, r"at least two|svd takes .*\(3,\)", lambda x, y: np.linalg.svd(x[0], False)),
        (np.linalg.LinAlgError, r"at least two|qr takes .*\(3,\)", lambda x, y: np.linalg.qr(x[0])),
        (TypeError, "integral", lambda x, y: np.pad(x, y[0, 0])),
        (ValueError, "broadcast", lambda x, y: x + y[:, :2]),
    ],
)
@pytest.mark.parametrize("kind", [np.array, mg.array])
def test_wrong_calls_raise_the_same(make, error, message, function, kind):
    with pytest.raises(error, match=message):
        make(function)(kind(X), kind(Y))


TRIMS_NUMBERS = np.lib.NumpyVersion(np.__version__) >= "2.2.0"  # before, np.trim_zeros refuses single numbers


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.transpose(x),
        lambda x: np.squeeze(x),
        lambda x: np.real(x),
        lambda x: np.trim_zeros(x) if TRIMS_NUMBERS else x,
        lambda x: np.isfortran(x),
        lambda x: np.i0(x),
        lambda x: np.pad(x, 1) if np.ndim(x) else x,
    ],
)
def test_single_numbers_of_numpy_are_arrays_where_numpy_has_them_so(function):
    fast = mg.compile(lambda x, t: (function(x), t * 2), backend="numpy")
    for number in (np.float64(0.5), np.array(0.5)):
        found, expected = fast(number, 1.0)[0], function(number)
        assert isinstance(found, np.ndarray) is isinstance(expected, np.ndarray)
        assert found == pytest.approx(expected, rel=1e-15)
    assert mg.compile(lambda x: np.real(x) * 2, backend="numpy")(0.5) == 1.0
    assert np.shape(np.real(Value(0.5))) == np.shape(mg.compile(np.real, backend="numpy")(Value(0.5))) == ()
    assert mg.compile(lambda x: np.i0(x[0]), backend="numpy")(mg.array([0.0])).data == 1.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: np.astype(x[0, 0], y[0, 0]),
        lambda x, y: np.ones_like(x[0, 0], dtype=y[0, 0]),
        lambda x, y: np.histogramdd(x[0, 0]),
        lambda x, y: np.nanpercentile(x[0, 0], y[0, 0]),
        lambda x, y: np.linalg.svd(x),
    ],
)
def test_what_numpy_alone_can_do_is_refused_by_the_compiler(function):
    function(X, Y)
    with pytest.raises(mg.TraceError, match=r"would freeze .*(Compute it outside of the function|Write np\.where)"):
        mg.compile(function, backend="numpy")(X, Y)


@MODES
@pytest.mark.parametrize("p", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"])
def test_condition_numbers(make, p):
    numbers = np.array([[2.0, 1.0], [0.5, 3.0]])
    x = mg.array(numbers)
    found = make(lambda x: np.linalg.cond(x, p))(x)
    assert found.data == pytest.approx(np.linalg.cond(numbers, p), rel=1e-14)
    found.backward()
    step = np.array([[1e-6, 0.0], [0.0, 0.0]])
    slope = (np.linalg.cond(numbers + step, p) - np.linalg.cond(numbers - step, p)) / 2e-6
    assert x[0, 0].grad == pytest.approx(slope, rel=1e-6)


@MODES
def test_a_dtype_of_floats_keeps_the_gradients_of_values(make):
    for function in (np.sum, np.mean, np.cumsum):
        x = mg.array([1.0, 2.0])
        np.sum(make(lambda x, function=function: function(x, dtype=float))(x)).backward()
        assert mg.gradients(x).all()
    assert make(lambda x: np.sum(x, dtype=np.float64))(np.array([1, 2])) == 3.0


@MODES
@pytest.mark.parametrize("backend", ["values", "numbers"])
def test_differences_of_neighbours(make, backend):
    kind = mg.array if backend == "values" else np.array
    whole = make(lambda x, y: np.ediff1d(x, y[0], y[1, 0]))(kind(X), mg.array(Y))
    assert mg.numbers(whole).tolist() == np.ediff1d(X, Y[0], Y[1, 0]).tolist()
    assert mg.numbers(make(np.ediff1d)(kind(X))).tolist() == np.ediff1d(X).tolist()


EMPTY = {
    "a product": lambda a, v: a * v,
    "a product with a number": lambda a, v: a * 2,
    "np.exp": lambda a, v: np.exp(a),
    "itself": lambda a, v: a,
    "a part": lambda a, v: a[:0] * 1,
    "np.where": lambda a, v: np.where(a > 0, v, a),
    "np.maximum": lambda a, v: np.maximum(a, 0),
    "np.concatenate": lambda a, v: np.concatenate([a, a]),
    "np.floor": lambda a, v: np.floor(a),
    "a comparison": lambda a, v: a > 0,
    "np.isfinite": lambda a, v: np.isfinite(a),
    "mg.array": lambda a, v: mg.array([]),
    "np.zeros": lambda a, v: np.zeros(0),
    "in a list": lambda a, v: np.stack([a, a]),
    "a sum": lambda a, v: a.sum(),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.array, mg.array, np.float32, np.int8], ids=["floats", "Values", "float32", "int8"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "part"])
@pytest.mark.unmeasured
def test_an_empty_array_has_the_dtype_that_it_has_eagerly(kind, whole):
    given = kind([]) if whole else kind([1.0, 2.0])

    def function(a, v):
        return [make(a if whole else a[:0], v) for make in EMPTY.values()], v * 2

    def described(results):
        return {
            name: (type(found), np.shape(found), getattr(found, "dtype", None))
            for name, found in zip(EMPTY, results, strict=True)
        }

    found = mg.compile(function, backend="numpy")(given, Value(0.5))[0]
    assert described(found) == described(function(given, Value(0.5))[0])


@MODES
def test_a_number_picked_in_the_position_of_a_value_is_a_node_that_gives_it_no_gradient(make):
    x, constant = mg.array([1.0, -2.0]), mg.array([5.0, 6.0], requires_grad=False)
    for other, expected in ((0, [1.0, 0.0]), (constant, [1.0, 6.0])):
        found = make(lambda x, other: np.where(x > 0, x, other))(x, other)
        assert mg.numbers(found).tolist() == expected
        assert [each.requires_grad for each in found] == [True, True]
        found.sum().backward()
        assert mg.gradients(x).tolist() == [1.0, 0.0]
        x[0].grad = 0.0


def test_a_picked_number_has_derivatives_and_a_picture_as_where_has():
    x = Value(3.0)
    found = np.where([False], mg.array([x]), 2.0)[0] * x
    first = mg.gradient(found, x, create_graph=True)
    assert (first.data, mg.gradient(first, x)) == (2.0, 0.0)
    constants = mg.array([1.0, 2.0], requires_grad=False)
    assert [each.requires_grad for each in np.where([True, False], constants, 0)] == [False, False]
    with mg.no_grad():
        assert not np.where([False], mg.array([x]), 2.0)[0].requires_grad


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0, [0.1, 0.5], [[0.2], [0.9]]], ids=repr)
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), None), ((7,), 0), ((1,), 0), ((3, 4), -1), ((2, 3, 4), (0, 2)), ((2, 3, 4), None)]
)
def test_quantiles_are_numpys(shape, axis, q, keepdims):
    numbers = np.random.default_rng(0).normal(size=shape).round(1)
    for function, parts in ((np.quantile, q), (np.percentile, 100 * np.array(q))):
        found = function(mg.array(numbers), parts, axis=axis, keepdims=keepdims)
        expected = function(numbers, parts, axis=axis, keepdims=keepdims)
        assert np.shape(found) == np.shape(expected)
        assert np.array_equal(mg.numbers(found), expected)


def test_the_gradient_of_a_quantile_goes_to_its_two_neighbours():
    x = mg.array([3.0, 1.0, 2.0])
    np.percentile(x, 30).backward()
    assert mg.gradients(x) == pytest.approx([0.0, 0.4, 0.6])
    assert math.isnan(np.quantile(mg.array([1.0, math.nan]), 0.2).data)
    assert np.quantile(mg.array([1.0, math.inf]), 0.0).data == 1.0
