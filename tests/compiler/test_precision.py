"""mg.compile(..., precision="float32"): the same numbers to seven digits, in half of the memory, on every backend."""

import math
import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.shared import executable
from micrograd.compiler.backends.shared.backend import Backend
from micrograd.engine.primitive import Primitive

pytestmark = pytest.mark.slow
GENERATOR = np.random.default_rng(0)
MATRIX = GENERATOR.normal(size=(20, 33))
BATCH = GENERATOR.normal(size=(24, 33))


def network(x):
    """Products of matrices, a batch of points, and a mean."""
    hidden = np.tanh(x @ MATRIX.T)
    return (hidden @ MATRIX[:, :20]).mean() + (hidden * hidden).sum()


def every_primitive(x):
    y = x[0] * x[0] + 0.5
    parts = [mg.exp(-y), mg.log(y), mg.sin(y), mg.sqrt(y), y**1.7, y**-0.5, mg.softplus(y), mg.relu(x[1]), abs(x[1])]
    parts += [mg.maximum(x[0], x[1]), mg.where(x[0] > x[1], y, 3.0), mg.take([x[0], x[1], y], 1), y % 0.7, y // 0.3]
    return sum(parts) / (1.0 + mg.erf(y))


def vectors(x):
    """Primitives of many numbers, gathered ones too, their largest, and sums of various lengths."""
    y = mg.array(x)
    shuffled = [x[(7 * position) % len(x)] for position in range(len(x))]
    rows = [mg.dot(x[:position], shuffled[:position]) for position in range(1, len(x), 5)]
    return (
        np.exp(-y * y).sum()
        + y.max()
        + sum(mg.sigmoid(s * t) for s, t in zip(shuffled, x, strict=True))
        + mg.logsumexp(rows)
    )


def recurrent(x):
    """A loop of kernels, with small ones in it."""

    def step(state, item):
        height, speed = state
        return (height + 0.1 * speed, speed - 0.1 * mg.sin(height) + 0.01 * item), height

    (height, _), heights = mg.scan(step, (x[0], x[1]), x[2:])
    return height + sum(heights)


def irregular(x):
    """Thousands of operations of which hardly two are alike."""
    draw = random.Random(5)
    numbers = list(x)
    for _ in range(1200):
        a, b, c = draw.choices(numbers[-50:], k=3)
        kind = draw.randrange(3)
        made = a * b - 0.5 * c if kind == 0 else mg.tanh(a + b) if kind == 1 else mg.maximum(a, 0.5 * c)
        numbers.append(mg.tanh(made))
    return sum(numbers[-9:])


cube = Primitive("cube_of_mine", "cube", lambda x: math.pow(x, 3), lambda g, out, x: 3.0 * g * x * x)


def called_back(x):
    return sum(cube(each) for each in x)


PROGRAMS = {
    "network": (network, BATCH),
    "primitives": (every_primitive, [0.5, -0.25]),
    "vectors": (vectors, GENERATOR.normal(size=41).tolist()),
    "loop": (recurrent, GENERATOR.normal(size=42).tolist()),
    "irregular": (irregular, GENERATOR.normal(size=50).tolist()),
    "a primitive in Python": (called_back, GENERATOR.normal(size=40).tolist()),
}


def flat(nested):
    return np.array(nested, dtype=float).ravel()


@pytest.mark.parametrize(("f", "x"), PROGRAMS.values(), ids=PROGRAMS.keys())
def test_values_and_gradients_are_those_of_float64_to_six_digits(f, x, backend):
    if f is irregular and backend == "jax":
        pytest.skip("XLA takes minutes for thousands of small kernels")
    value, gradient = mg.compile(mg.value_and_grad(f), backend=backend)(x)
    fast = mg.compile(mg.value_and_grad(f), backend=backend, precision="float32")
    rounded, slopes = fast(x)
    assert type(rounded) is type(value)
    assert rounded == pytest.approx(value, rel=1e-5)
    assert np.allclose(flat(slopes), flat(gradient), rtol=1e-3, atol=1e-4 * np.abs(flat(gradient)).max())
    if isinstance(x, np.ndarray):
        assert slopes.dtype == np.float64
    assert fast.program(x).buffer.dtype == np.float32
    assert not np.array_equal(flat(slopes), flat(gradient))  # so it was not computed in float64


def test_values_get_their_gradients(backend):
    w = [Value(0.1 * n) for n in range(30)]
    x = [0.3 * n - 2.0 for n in range(30)]

    def f():
        return mg.tanh(mg.dot(w, x)) + w[0] * w[1]

    expected = f()
    expected.backward()
    gradients = [v.grad for v in w]
    for v in w:
        v.grad = 0.0
    found = mg.compile(f, backend=backend, precision="float32")()
    found.backward()
    assert found.data == pytest.approx(expected.data, rel=1e-6)
    assert [v.grad for v in w] == pytest.approx(gradients, rel=1e-5, abs=1e-7)


def test_what_float32_cannot_hold_runs_eagerly(backend):
    large = 1e300

    def f(x):
        return mg.exp(x) + large / 1e299

    fast = mg.compile(f, backend=backend, precision="float32")
    assert fast(1.0) == pytest.approx(f(1.0), rel=1e-6)  # a large constant
    assert fast(100.0) == f(100.0)  # 2.7e43
    with pytest.raises(OverflowError, match="exp"):
        fast(1000.0)
    assert mg.compile(lambda x: x * 2.0, backend=backend, precision="float32")(1e200) == 2e200  # a large argument
    assert mg.compile(lambda x: mg.sqrt(x) * 1e60, backend=backend, precision="float32")(4.0) == 2e60
    with pytest.raises(ValueError, match="sqrt"):
        mg.compile(mg.sqrt, backend=backend, precision="float32")(-1.0)


def test_several_results_are_differentiated_and_run_as_written(backend):
    fast = mg.compile(lambda x: [mg.sin(x), x * x], backend=backend, precision="float32")
    x = Value(0.7)
    first, second = fast(x)
    (first * 3.0 + second).backward()
    assert x.grad == pytest.approx(3 * math.cos(0.7) + 1.4, rel=1e-6)
    slope = mg.gradient(fast(x)[0], x, create_graph=True)  # of the function as it was written
    assert slope.data == pytest.approx(math.cos(0.7), rel=1e-12)


def test_both_precisions_of_a_function_stand_side_by_side(backend):
    def f(x):
        return x * 3.0

    double, single = (mg.compile(f, backend=backend, precision=precision) for precision in ("float64", "float32"))
    assert [double(0.1), single(0.1), double(0.1)] == [0.1 * 3.0, float(np.float32(0.1) * np.float32(3.0)), 0.1 * 3.0]


def test_half_of_the_memory(backend):
    xs = [0.5] * 500
    sizes = [
        mg.compile(lambda xs: mg.dot(xs, xs), backend=backend, precision=precision).program(xs).buffer.nbytes
        for precision in ("float64", "float32")
    ]
    assert sizes[0] == 2 * sizes[1]


def test_indices_that_float32_cannot_tell_apart(backend, monkeypatch):
    monkeypatch.setattr(executable, "_WHOLE_NUMBERS", 4)
    fast = mg.compile(lambda xs, i: mg.take(xs, i), backend=backend, precision="float32")
    assert fast([1.0, 2.0, 3.0, 4.0], 2) == 3.0
    with pytest.raises(mg.TraceError, match="the indices of 5 elements"):
        fast([1.0, 2.0, 3.0, 4.0, 5.0], 2)


def test_kernels_are_measured(backend):
    fast = mg.compile(lambda xs: mg.dot(xs, xs), backend=backend, precision="float32")
    fast([1.0, 2.0, 3.0])
    assert "matrix-vector" in fast.profile()


def test_jax_needs_no_float64_for_it():
    jax = pytest.importorskip("jax")
    fast = mg.compile(lambda x: mg.sin(x), backend="jax", precision="float32")
    with jax.enable_x64(False):
        assert fast(1.0) == pytest.approx(math.sin(1.0), rel=1e-6)
        with pytest.raises(RuntimeError, match="float64"):
            mg.compile(lambda x: mg.sin(x), backend="jax")(1.0)


def test_a_backend_that_has_no_float32_says_so():
    with pytest.raises(ValueError, match="the plain backend computes in float64 only"):
        Backend("plain", lambda program: lambda numbers: (numbers, numbers)).in_precision("float32")


@pytest.mark.parametrize("backend", ["numpy", "auto", "jax"])
def test_rounding(backend):
    x = np.array([0.5, 1.5, 2.5, -0.5, -2.5, 1.7, -2.6, 30.2, 1234567.5, 0.0])

    def rounded(x):
        return np.round(x) * 1.0, np.rint(x * 3.0) + np.round(x, 2)

    found = mg.compile(rounded, backend=backend, precision="float32")(x)
    for one, other in zip(found, rounded(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
