"""Linear algebra on arrays of Values: values as NumPy's, derivatives as differences and JAX have them, and limits."""

import copy
import pickle
import re
from functools import partial

import numpy as np
import pytest
import scipy.linalg

import micrograd as mg
from micrograd import Value
from micrograd.engine import array_calls, lapack, linear_algebra
from tests.compiler.runs import compiled_only

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("own_cache")]

RANDOM = np.random.default_rng(7)
SQUARE = RANDOM.normal(size=(3, 3))
SYMMETRIC = SQUARE @ SQUARE.T + 3 * np.eye(3)
TALL = RANDOM.normal(size=(4, 2))
VECTOR, COLUMNS, LONG = RANDOM.normal(size=3), RANDOM.normal(size=(3, 2)), RANDOM.normal(size=4)


def half(a):
    return (a + np.swapaxes(a, -1, -2)) / 2


def both_signs(a):
    """Two matrices on top of one another."""
    return np.stack([a, 2 * a + np.eye(len(a))])


# A function, and the arrays that it is called with; those that compiled functions have steps for come first
IN_STEPS = {
    "solve": (np.linalg.solve, SQUARE, COLUMNS),
    "solve of a vector": (np.linalg.solve, SQUARE, VECTOR),
    "solve of a stack": (lambda a, b: np.linalg.solve(both_signs(a), b), SQUARE, COLUMNS),
    "solve of numbers": (lambda b: np.linalg.solve(SQUARE, b), VECTOR),
    "inv": (np.linalg.inv, SQUARE),
    "det": (np.linalg.det, SQUARE),
    "det of a stack": (lambda a: np.linalg.det(both_signs(a)), SQUARE),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], SQUARE),
    "slogdet of a stack": (lambda a: np.linalg.slogdet(both_signs(a)).logabsdet, SQUARE),
    "cholesky": (lambda a: np.linalg.cholesky(half(a)), SYMMETRIC),
    "cholesky of the lower triangle": (np.linalg.cholesky, SYMMETRIC),
    "qr": (lambda a: np.concatenate(np.linalg.qr(a)), TALL),
    "qr of a wide matrix": (lambda a: np.linalg.qr(a.T, mode="r"), TALL),
    "qr of a triangle": (lambda a: np.linalg.qr(np.triu(a), mode="complete")[1], SQUARE),
    "pinv": (np.linalg.pinv, TALL),
    "pinv of a wide matrix": (lambda a: np.linalg.pinv(a.T), TALL),
    "lstsq": (lambda a, b: np.concatenate(np.linalg.lstsq(a, b, rcond=None)[:2]), TALL, LONG),
    "lstsq of columns": (lambda a, b: np.linalg.lstsq(a.T, b, rcond=None)[0], TALL, TALL[:2]),
    "matrix_power": (lambda a: np.linalg.matrix_power(a, 5), SQUARE),
    "matrix_power of the inverse": (lambda a: np.linalg.matrix_power(a, -2), SQUARE),
    "matrix_power of 0": (lambda a: np.linalg.matrix_power(a, 0) @ a, SQUARE),
    "norm": (np.linalg.norm, TALL),
    "norm of rows": (lambda a: np.linalg.norm(a, axis=1, keepdims=True), TALL),
    "norm, kept": (lambda a: np.linalg.norm(a, keepdims=True), TALL),
    "norm 1 of columns": (lambda a: np.linalg.norm(a, 1, axis=0), TALL),
    "norm 3": (lambda a: np.linalg.norm(a, 3), VECTOR),
    "norm inf": (lambda a: np.linalg.norm(a, np.inf), VECTOR),
    "norm -inf": (lambda a: np.linalg.norm(a, -np.inf), VECTOR),
    "norm 1 of a matrix": (lambda a: np.linalg.norm(a, 1), TALL),
    "norm -inf of a matrix": (lambda a: np.linalg.norm(a, -np.inf, axis=(0, 1)), TALL),
    "norm fro of a stack": (lambda a: np.linalg.norm(both_signs(a), "fro", axis=(1, 2)), SQUARE),
}
CALLED = {
    "eigh": (lambda a: np.concatenate([np.linalg.eigh(half(a))[0][None], np.linalg.eigh(half(a))[1]]), SYMMETRIC),
    "eigh of the upper triangle": (lambda a: np.linalg.eigh(a, UPLO="U").eigenvectors, SYMMETRIC),
    "eigh of the lower triangle": (lambda a: np.linalg.eigh(a)[1], SYMMETRIC),
    "eigvalsh of a stack": (lambda a: np.linalg.eigvalsh(both_signs(half(a))), SYMMETRIC),
    "svd": (lambda a: np.concatenate([np.linalg.svd(a)[0], np.linalg.svd(a).Vh]), SQUARE),
    "svd of a tall matrix": (lambda a: np.linalg.svd(a, full_matrices=False)[0], TALL),
    "svd of a wide matrix": (lambda a: np.linalg.svd(a.T, full_matrices=False)[2], TALL),
    "singular values": (lambda a: np.linalg.svd(a, compute_uv=False), TALL),
    "norm 2 of a matrix": (lambda a: np.linalg.norm(a, 2), TALL),
    "norm -2 of a matrix": (lambda a: np.linalg.norm(a, -2), TALL),
    "norm nuc of a matrix": (lambda a: np.linalg.norm(a, "nuc"), TALL),
}
OF_SCIPY = {
    "expm": (mg.expm, scipy.linalg.expm, 4 * SQUARE),
    "solve_triangular": (mg.solve_triangular, scipy.linalg.solve_triangular, SYMMETRIC, COLUMNS),
    "solve_triangular, transposed": (
        lambda a, b: mg.solve_triangular(a, b, trans="T", lower=True, unit_diagonal=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, trans="T", lower=True, unit_diagonal=True),
        SYMMETRIC,
        VECTOR,
    ),
    "cho_solve": (
        lambda a, b: mg.cho_solve((np.linalg.cholesky(half(a)), True), b),
        lambda a, b: scipy.linalg.cho_solve((np.linalg.cholesky(half(a)), True), b),
        SYMMETRIC,
        COLUMNS,
    ),
    "cho_solve with the upper factor": (
        lambda a, b: mg.cho_solve((np.linalg.cholesky(half(a)).T, False), b),
        lambda a, b: scipy.linalg.cho_solve((np.linalg.cholesky(half(a)).T, False), b),
        SYMMETRIC,
        COLUMNS,
    ),
}
EVERY = {name: (case[0], *case) for name, case in {**IN_STEPS, **CALLED}.items()} | OF_SCIPY


def weighted(result):
    """A number in which each element of the result counts."""
    return sum(x * (0.3 + 0.7 * position) for position, x in enumerate(np.ravel(result)))


def of_one_point(function, operands):
    """The same as a function of one list of numbers."""

    def f(point):
        point = np.array(point) if isinstance(point[0], float) else mg.array(point)
        parts = np.split(point, np.cumsum([operand.size for operand in operands])[:-1])
        return weighted(function(*(part.reshape(x.shape) for part, x in zip(parts, operands, strict=True))))

    return f, np.concatenate([operand.ravel() for operand in operands]).tolist()


def differences(f, point, step=1e-6):
    steps = step * np.eye(len(point))
    return np.array([(np.array(f((point + s).tolist())) - f((point - s).tolist())) / (2 * step) for s in steps])


@pytest.mark.parametrize("name", EVERY)
class TestOfEach:
    def test_values_are_numpys(self, name):
        ours, theirs, *operands = EVERY[name]
        result, expected = ours(*map(mg.array, operands)), theirs(*operands)
        assert np.shape(result) == np.shape(expected)
        assert mg.numbers(result) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        if np.ndim(result):
            assert type(result) is type(mg.array([1.0]))
        with mg.no_grad():
            constants = np.ravel(ours(*map(mg.array, operands)))
        assert not any(getattr(x, "requires_grad", False) for x in constants)

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_derivatives_of_both_orders_are_those_of_differences(self, name):
        ours, theirs, *operands = EVERY[name]
        f, point = of_one_point(ours, operands)
        of_numbers, _ = of_one_point(theirs, operands)
        slopes = mg.grad(f)(point)
        assert slopes == pytest.approx(differences(of_numbers, point), rel=1e-6, abs=1e-6 * np.abs(slopes).max())
        hessian = np.array(mg.hessian(f)(point))
        along = np.cos(np.arange(len(point)))
        up, down = (np.array(mg.grad(f)((point + step * along).tolist())) for step in (1e-6, -1e-6))
        largest = 1 + np.abs(hessian).max()
        assert hessian @ along == pytest.approx((up - down) / 2e-6, rel=1e-5, abs=1e-6 * largest)
        assert hessian == pytest.approx(hessian.T, rel=1e-8, abs=1e-10 * largest)


ON_LLVM = ("solve", "slogdet of a stack", "cho_solve", "eigh", "svd", "expm", "qr of a wide matrix")
BACKENDS = [
    *((name, "numpy") for name in EVERY),
    *((name, "llvm") for name in ON_LLVM),
    *((name, "jax") for name in ("solve", "svd")),  # one in steps, and one that is called
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), BACKENDS)
def test_compiled_as_eagerly(name, backend):
    ours, _, *operands = EVERY[name]
    f, point = of_one_point(ours, operands)
    fast = mg.compile(f, backend=backend)
    values, others = [*map(Value, point)], [*map(Value, point)]
    result, expected = fast(values), f(others)
    assert result.data == pytest.approx(expected.data, rel=1e-11)
    slopes = mg.gradient(expected, others)
    assert mg.gradient(result, values) == pytest.approx(slopes, rel=1e-9, abs=1e-10 * np.abs(slopes).max())


OF_MATRICES = {
    "solve": lambda a: np.linalg.solve(a, SQUARE),
    "solve of numbers": lambda a: np.linalg.solve(SQUARE, a) * a,
    "inv": np.linalg.inv,
    "det": lambda a: np.linalg.det(a) * a,
    "slogdet": lambda a: np.linalg.slogdet(a)[1] * np.linalg.slogdet(a)[0] * a,
    "cholesky": np.linalg.cholesky,
    "qr": lambda a: np.linalg.qr(a)[1],
    "eigh": lambda a: np.linalg.eigh(a)[1] * np.linalg.eigvalsh(a),
    "svd": lambda a: np.linalg.svd(a)[0] + np.linalg.svd(a, compute_uv=False),
    "pinv": np.linalg.pinv,
    "expm": mg.expm,
    "solve_triangular": lambda a: mg.solve_triangular(a, SQUARE, lower=True),
    "matrix_power": lambda a: np.linalg.matrix_power(np.linalg.inv(a), 3),
    "fft": lambda a: np.fft.fft2(a).imag * a,
}


def tangent(f, a):
    """How fast a function of a matrix changes in one direction."""
    return mg.jvp(lambda *x: f(mg.array(x).reshape(3, 3)), a.ravel().tolist(), LADDER.ravel().tolist())[1]


DERIVATIVES = {
    "the gradient": lambda f: mg.grad(f),
    "the Hessian": lambda f: mg.hessian(f),
    "the gradient of a gradient": lambda f: mg.grad(lambda a: (mg.grad(f)(a) * LADDER).sum()),
    "a tangent": lambda f: partial(tangent, f),
    "a Jacobian": lambda f: mg.jacobian(lambda a: np.array([f(a), f(a * a)])),
}
LADDER = np.arange(9.0).reshape(3, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "derivative"),
    [
        (name, derivative)
        for number, name in enumerate(OF_MATRICES)
        for derivative in DERIVATIVES
        # These take the most time, and what the gradient of a gradient takes
        if number % {"the Hessian": 6, "a Jacobian": 3}.get(derivative, 1) == 0
    ],
)
def test_derivatives_in_compiled_functions_by_calls_of_lapack(name, derivative, monkeypatch):
    """As those of large matrices are computed, whose steps would be too many."""
    for function in array_calls.ARRAY_FUNCTIONS.values():
        monkeypatch.setattr(function, "largest", 1)
    of_matrix = DERIVATIVES[derivative](lambda a: (OF_MATRICES[name](a) * LADDER).sum())
    found, expected = compiled_only(of_matrix, SYMMETRIC), of_matrix(SYMMETRIC)
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-10 * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["solve", "det", "cholesky", "eigh", "svd", "expm"])
def test_large_matrices_are_called_when_the_program_runs(name):
    size = 30
    a = np.eye(size) + RANDOM.normal(size=(size, size)) / 20
    a, weights = np.arange(1.0, size + 1) * (a @ a.T), RANDOM.normal(size=(size, size))
    of_matrix = {"solve": lambda a: np.linalg.solve(a, weights)}.get(name) or OF_MATRICES[name]

    def f(a):
        return (of_matrix(a + a.T) * weights).sum()

    found, slopes = compiled_only(mg.value_and_grad(f), a, backend="llvm")
    assert found == pytest.approx(f(a), rel=1e-10)
    direction = RANDOM.normal(size=a.shape)
    step = 1e-6 * direction
    assert (slopes * direction).sum() == pytest.approx((f(a + step) - f(a - step)) / 2e-6, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inv", "solve", "det", "slogdet", "qr"])
def test_what_takes_many_steps_is_called_in_loops(name):
    of_matrix = {
        "solve": lambda a: np.linalg.solve(a, a[:, :3] ** 2).sum(),
        "slogdet": lambda a: np.linalg.slogdet(a)[1],
        "qr": lambda a: (np.linalg.qr(a)[1] ** 3).sum(),
        "inv": lambda a: (np.linalg.inv(a) ** 2).sum(),
    }.get(name, np.linalg.det)
    for size, count in ((8, 4), (9, 2), (9, 4), (17, 2), (14, 4)):
        a = np.eye(size) + RANDOM.normal(size=(size, size)) / 8
        derivative = mg.value_and_grad(lambda a, n=count: sum(of_matrix(a * (1 + k / 8)) for k in range(n)))
        fast = mg.compile(derivative)
        found, expected = fast(a), derivative(a)
        assert found[0] == pytest.approx(expected[0], rel=1e-11)
        assert found[1] == pytest.approx(expected[1], rel=1e-9, abs=1e-9)
        assert (f"one call, of {size} x {size}" in fast.explain()) == (size > 9 and count > 2)


def two_calls(b):
    with mg.no_grad():
        size = np.linalg.eigvalsh(b)[-1]
    return np.linalg.eigh(b)[0][0] * size + (np.linalg.svd(b)[1] * b[0]).sum()


class TestCallsInPrograms:
    def test_gradients_of_values_and_of_what_they_are_made_of(self):
        def f(a, b):
            x = np.linalg.eigh(mg.sin(b) * (a + a.T))[1]
            return (x * LADDER).sum() + np.linalg.svd(x + a)[1].sum()

        fast = mg.compile(f, backend="numpy")
        (a, b), (c, d) = [(mg.array(SQUARE), Value(0.7)) for _ in range(2)]
        result, expected = fast(a, b), f(c, d)
        result.backward()
        expected.backward()
        assert result.data == pytest.approx(expected.data, rel=1e-13)
        assert mg.gradients(a) == pytest.approx(mg.gradients(c), rel=1e-10, abs=1e-12)
        assert b.grad == pytest.approx(d.grad, rel=1e-10)
        assert "eigh: one call, of 3 x 3" in fast.explain()
        assert fast.cache_info().program_bytes > 0

    @pytest.mark.parametrize(
        ("f", "precision", "close"),
        [
            (lambda a: mg.grad(lambda a: (np.linalg.eigh(a + a.T)[1] * LADDER).sum())(a * a).sum(), "float64", 1e-9),
            (lambda a: two_calls(a + a.T), "float64", 1e-10),
            (lambda a: (np.linalg.eigh(a @ a.T)[1] * LADDER).sum() + np.linalg.svd(a + 1.0)[1].sum(), "float32", 1e-3),
        ],
        ids=["of gradients", "of two calls that read the same, of which the first has no gradient", "in float32"],
    )
    def test_gradients(self, f, precision, close):
        a, c = mg.array(SQUARE), mg.array(SQUARE)
        mg.compile(f, backend="numpy", precision=precision)(a).backward()
        f(c).backward()
        assert mg.gradients(a) == pytest.approx(mg.gradients(c), rel=close, abs=close)

    def test_an_element_that_is_given_several_times_gets_all_contributions(self):
        def f(x, y):
            return (np.linalg.eigvalsh(mg.array([[x, y], [y, x]])) * np.array([1.0, 3.0])).sum()

        x, y = Value(2.0), Value(0.5)
        mg.compile(f, backend="numpy")(x, y).backward()
        assert (x.grad, y.grad) == (pytest.approx(4.0), pytest.approx(2.0))

    def test_equal_eigenvalues_are_named_by_compiled_functions_too(self):
        fast = mg.compile(mg.grad(lambda a: np.linalg.eigh(a)[1][0, 0]), backend="numpy")
        assert np.isfinite(fast(SYMMETRIC)).all()
        with pytest.raises(ValueError, match=r"the eigenvalues 0 and 1 of np\.linalg\.eigh are equal"):
            fast(np.diag([2.0, 5.0, 2.0]))
        of_values = mg.compile(lambda a: np.linalg.eigh(a)[1][0, 0], backend="numpy")
        with pytest.raises(ValueError, match="the eigenvalues 0 and 1"):
            of_values(mg.array(np.diag([2.0, 5.0, 2.0]))).backward()

    def test_nothing_flows_under_no_grad(self):
        with mg.no_grad():
            result = mg.compile(lambda a: np.linalg.eigvalsh(a).sum(), backend="numpy")(mg.array(SYMMETRIC))
            found = mg.compile(mg.grad(lambda a: np.linalg.eigvalsh(a)[0]), backend="numpy")(SYMMETRIC)
        assert not result.requires_grad
        assert found == pytest.approx(mg.grad(lambda a: np.linalg.eigvalsh(a)[0])(SYMMETRIC))

        def detached(a):
            with mg.no_grad():
                size = np.linalg.eigvalsh(a)[-1]
            return size * a.sum()

        a = mg.array(SYMMETRIC)
        mg.compile(detached, backend="numpy")(a).backward()
        assert mg.gradients(a) == pytest.approx(np.linalg.eigvalsh(SYMMETRIC)[-1] * np.ones((3, 3)))

    def test_a_function_decides_on_what_is_called(self):
        def f(a):
            return a.sum() if np.linalg.eigvalsh(a)[0] < 1.5 else np.linalg.eigh(a)[0].sum()

        fast = mg.compile(f, backend="numpy")
        for a in (SYMMETRIC, SYMMETRIC - 3 * np.eye(3), SYMMETRIC + np.eye(3)):
            assert fast(a) == pytest.approx(f(a), rel=1e-12)
        assert fast.has_paths()

    @pytest.mark.slow
    def test_iterations_and_calls_in_one_function(self):
        def f(a):
            return sum(mg.vmap(lambda x: mg.sin(x) * mg.exp(x) * x)(list(np.linalg.eigvalsh(a @ a.T))))

        a = RANDOM.normal(size=(130, 3))
        found = mg.compile(mg.value_and_grad(f), backend="llvm")(a)
        assert found[0] == pytest.approx(f(a), rel=1e-10)

    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    @pytest.mark.unmeasured
    def test_calls_in_each_iteration_of_a_recurrence(self, backend):
        def f(a, b):
            for _ in range(2 if backend == "jax" else 4):  # for XLA, each has a code of its own
                b = mg.tanh(b * 0.5 + 0.1)
                a = np.linalg.eigh(a + a.T + b)[1] + a * b
            return (a * LADDER).sum() * b

        a, b = mg.array(SQUARE), Value(0.3)
        f(a, b).backward()
        expected, slopes = f(SQUARE, 0.3), [mg.gradients(a), b.grad]
        found, given = mg.compile(mg.value_and_grad(f, argnums=(0, 1)), backend=backend)(SQUARE, 0.3)
        assert found == pytest.approx(expected, rel=1e-9)
        assert given[0] == pytest.approx(slopes[0], rel=1e-6, abs=1e-9)
        assert given[1] == pytest.approx(slopes[1], rel=1e-6)
        a, b = mg.array(SQUARE), Value(0.3)
        mg.compile(f, backend=backend)(a, b).backward()
        assert mg.gradients(a) == pytest.approx(slopes[0], rel=1e-6, abs=1e-9)
        assert b.grad == pytest.approx(slopes[1], rel=1e-6)

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    @pytest.mark.usefixtures("own_registry")
    def test_what_is_read_before_and_after_a_call_is_computed_once(self, backend):
        computed = []

        def forward(x):
            computed.append(x)
            return 2.0 * x

        doubled = mg.primitive("doubled", "doubled", forward, lambda g, out, x: 2.0 * g)

        def f(a):
            b = np.frompyfunc(doubled, 1, 1)(a)
            return (np.linalg.eigvalsh(b) * b[0]).sum()

        fast, a = mg.compile(f, backend=backend), mg.array(SYMMETRIC)
        fast(a)
        computed.clear()
        found = fast(a)
        assert len(computed) == SYMMETRIC.size
        assert found.data == pytest.approx(f(a).data, rel=1e-12)

    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    def test_several_results_have_gradients_of_their_own(self, backend):
        def f(a):
            w, v = np.linalg.eigh(a + a.T)
            return w.sum() * v[0, 0], (w * v[1]).sum(), a[0, 0] * 1.0

        a, c = mg.array(SQUARE), mg.array(SQUARE)
        fast = mg.compile(f, backend=backend)
        for weights in ((1.0, 0.0, 0.0), (0.5, -2.0, 1.0)):
            for x, function in ((a, fast), (c, f)):
                for element in x.flat:
                    element.grad = 0.0
                sum(result * weight for result, weight in zip(function(x), weights, strict=True)).backward()
            assert mg.gradients(a) == pytest.approx(mg.gradients(c), rel=1e-9, abs=1e-10)

    @pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
    def test_what_overflows_before_a_call_raises_as_eagerly(self, backend):
        def f(a):
            return np.linalg.eigvalsh(1.0 / np.exp(a))[0]

        fast = mg.compile(f, backend=backend)
        assert fast(mg.array(SYMMETRIC)).data == pytest.approx(f(SYMMETRIC), rel=1e-12)
        with pytest.raises(OverflowError, match="exp"):
            fast(mg.array(SYMMETRIC + 1e3))

    def test_a_rule_that_raises_says_so_after_the_results_of_others(self):
        def f(a, b):
            return np.linalg.eigh(a)[1][0, 0] + np.linalg.svd(b)[1].sum() * mg.exp(b[0, 0])

        fast = mg.compile(f, backend="llvm")
        a, b = mg.array(np.diag([2.0, 5.0, 2.0])), mg.array(SQUARE)
        result = fast(a, b)
        with pytest.raises(ValueError, match="the eigenvalues 0 and 1"):
            result.backward()

    def test_singular_values_of_least_squares(self):
        fast = mg.compile(lambda a, b: np.linalg.lstsq(a, b, rcond=1e-10), backend="numpy")
        x, squares, rank, singular = fast(TALL, LONG)
        for found, expected in zip((x, squares, rank, singular), np.linalg.lstsq(TALL, LONG, rcond=1e-10), strict=True):
            assert found == pytest.approx(expected)
        assert fast(np.ones((4, 2)), LONG)[2] == 1  # of which the sums have another shape: it runs eagerly

    def test_a_file_has_steps_or_is_refused(self, tmp_path):
        assert mg.compile(lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0].sum()).export(
            tmp_path / "least.c", mg.array(TALL), mg.array(LONG)
        )
        with pytest.raises(mg.TraceError, match=r"eigh would freeze .* outside of the compiled function"):
            mg.compile(lambda a: np.linalg.eigvalsh(a)[0]).export(tmp_path / "eigen.c", mg.array(SYMMETRIC))
        with pytest.raises(mg.TraceError, match="det of more than 24 rows or columns"):
            mg.compile(np.linalg.det).export(tmp_path / "det.c", mg.array(np.eye(30)))


class TestOneNodeForEachCall:
    def test_its_operands_are_the_elements_that_gradients_flow_to(self):
        a, b = mg.array(SQUARE), mg.array(VECTOR, requires_grad=False)
        x = np.linalg.solve(a, b)
        (call,) = {*x[0]._prev, *x[1]._prev, *x[2]._prev}
        assert call._op == "solve"
        assert call._prev == {*a.ravel()}
        assert x[1]._op == "output 2 of solve"
        assert "solve" in mg.draw_dot(x.sum()).source

    def test_it_can_be_copied_and_pickled_with_its_graph(self):
        a = mg.array(SQUARE)
        root = np.linalg.inv(a).sum()
        for twin in (copy.deepcopy(root), pickle.loads(pickle.dumps(root))):
            twin.backward()
            leaves = {value for value in mg.topological_order(twin) if value.is_leaf and value.requires_grad}
            assert sorted(leaf.grad for leaf in leaves) == pytest.approx(sorted(mg.gradient(root, [*a.ravel()])))

    def test_a_part_is_found_by_its_number_also_in_a_process_that_has_made_none(self):
        inverse = array_calls.ARRAY_FUNCTIONS["inv"]
        assert inverse.parts(9999, 1)[0].part == 9999
        assert inverse.parts(2, 1)[0] is inverse.parts(2, 1)[0]

    def test_an_element_that_is_used_twice_gets_both_contributions(self):
        def f(x):
            return np.linalg.det(np.array([[x, 2.0], [3.0, x]], dtype=object).view(type(mg.array([1.0]))))

        assert mg.grad(f)(5.0) == pytest.approx(10.0)
        assert mg.grad(mg.grad(f))(5.0) == pytest.approx(2.0)

    def test_inside_of_detect_anomaly_and_with_a_gradient_that_is_not_finite(self):
        a = mg.array(SQUARE)
        with mg.detect_anomaly():
            np.linalg.inv(a).sum().backward()
            with pytest.raises(FloatingPointError, match="the gradient that reaches"):
                np.linalg.inv(a)[0, 0].backward(np.inf)

    def test_a_hand_written_closure_and_a_second_backward(self):
        a = mg.array(SQUARE)
        x = np.linalg.inv(a)[0, 1]
        x.backward()
        once = mg.gradients(a)
        x.backward()
        assert mg.gradients(a) == pytest.approx(2 * once)

    def test_gradcheck_pages_and_a_closure_called_by_hand(self, tmp_path):
        def determinant(*x):
            return np.linalg.det(mg.array(list(x)).reshape(2, 2))

        assert mg.testing.gradcheck(determinant, [2.0, 1.0, 1.0, 3.0])
        a = mg.array(SQUARE)
        root = np.linalg.inv(a).sum()
        mg.explore(root, tmp_path / "page.html")
        assert '"name":"inv"' in (tmp_path / "page.html").read_text(encoding="utf-8")
        (call,) = np.linalg.inv(a)[0, 0]._prev
        call._backward()
        assert not mg.gradients(a).any()

    def test_numbers_changed_after_the_forward_pass_are_refused_for_graphs_only(self):
        a = mg.array(SQUARE)
        x = np.linalg.inv(a)[0, 1]
        a[0, 0].data = 9.0
        with pytest.raises(ValueError, match="in the forward pass"):
            x.backward(create_graph=True)

    def test_tangents_through_constants_and_through_what_does_not_reach(self):
        def triangle(x):
            return mg.solve_triangular([[2.0, 1.0], [0.0, 4.0]], np.array([x, 2.0], dtype=object), lower=True).sum()

        def corner(x):
            return np.linalg.qr(np.array([[x[0], 0.0], [0.0, 2.0]], dtype=object).view(type(mg.array([1.0]))))[1][1, 1]

        assert mg.jvp(triangle, [3.0], [1.0])[1] == pytest.approx(0.5)
        of_jvp = mg.grad(lambda x: mg.jvp(lambda y: np.linalg.slogdet(y * np.eye(2))[1], [x], [1.0])[1])
        assert of_jvp(2.0) == pytest.approx(-0.5)  # of 2 / x
        assert mg.hessian(lambda x: corner(x) * x[1])([3.0, 1.0]) == [[0.0, 0.0], [0.0, 0.0]]


class TestLapack:
    @pytest.fixture(params=["with SciPy", "without"])
    def routines(self, request, monkeypatch):
        if request.param == "without":
            monkeypatch.setattr(lapack, "_routines", lambda name="lapack": None)

    @pytest.mark.usefixtures("routines")
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_as_numpys_whatever_lies_where(self, order):
        a, b = np.array(SQUARE, order=order), np.array(COLUMNS, order=order)
        for matrix in (a, a.T, a[::-1, ::-1], both_signs(a)):
            assert lapack.inv(matrix) == pytest.approx(np.linalg.inv(matrix), rel=1e-12)
            assert lapack.det(matrix) == pytest.approx(np.linalg.det(matrix), rel=1e-12)
            for found, expected in zip(lapack.slogdet(matrix), np.linalg.slogdet(matrix), strict=True):
                assert found == pytest.approx(expected, rel=1e-12)
            for columns in (b, b[::-1], b[:, ::-1]):
                assert lapack.solve(matrix, columns) == pytest.approx(np.linalg.solve(matrix, columns), rel=1e-11)
                for lower, half_of in ((True, np.tril), (False, np.triu)):
                    expected = np.linalg.solve(half_of(matrix), columns)
                    assert lapack.solve_triangular(matrix, columns, lower) == pytest.approx(expected, rel=1e-11)
        assert lapack.cholesky(np.array(SYMMETRIC, order=order)) == pytest.approx(np.linalg.cholesky(SYMMETRIC))

    @pytest.mark.usefixtures("routines")
    def test_what_is_singular(self):
        singular = np.zeros((2, 2))
        for refused in (lapack.inv, lapack.cholesky, lambda a: lapack.solve(a, a)):
            with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular|positive definite"):
                refused(singular)
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            lapack.solve_triangular(np.triu(np.ones((2, 2)), 1), np.ones((2, 1)), lower=False)
        assert lapack.det(singular) == 0.0
        assert [float(part) for part in lapack.slogdet(singular)] == [0.0, -np.inf]

    def test_a_matrix_is_factorised_once_for_both_directions(self, monkeypatch):
        calls = []
        routines = lapack._routines()

        class Counting:
            def __getattr__(self, name):
                calls.append(name)
                return getattr(routines, name)

        monkeypatch.setattr(lapack, "_routines", lambda name="lapack": Counting())
        a = mg.array(RANDOM.normal(size=(4, 4)))
        np.linalg.solve(a, np.ones(4)).sum().backward()
        np.linalg.det(a).backward()
        assert calls.count("dgetrf") == 1

    def test_without_scipy(self, monkeypatch):
        monkeypatch.setattr(lapack, "import_module", lambda name: __import__("no_such_package"))
        assert lapack._routines.__wrapped__() is None


class TestLimits:
    def test_equal_eigenvalues_have_slopes_and_vectors_have_none(self):
        a = mg.array(np.diag([2.0, 5.0, 2.0]))
        values, vectors = np.linalg.eigh(a)
        values.sum().backward()
        assert mg.gradients(a) == pytest.approx(np.eye(3))
        with pytest.raises(ValueError, match=r"the eigenvalues 0 and 1 of np\.linalg\.eigh are equal"):
            vectors[0, 0].backward()
        assert mg.gradients(a) == pytest.approx(np.eye(3))  # nothing half changed

    def test_equal_singular_values(self):
        a = mg.array(np.eye(2))
        u, s, _ = np.linalg.svd(a)
        with pytest.raises(ValueError, match="the singular values 0 and 1 of np"):
            u[0, 0].backward()
        s.sum().backward()
        assert mg.gradients(a) == pytest.approx(np.eye(2))

    def test_a_message_about_a_large_matrix_is_short(self):
        vectors = np.linalg.eigh(mg.array(np.eye(20)))[1]
        with pytest.raises(ValueError, match="are equal") as raised:
            vectors[0, 0].backward()
        assert len(str(raised.value)) < 500

    def test_a_singular_matrix_has_a_determinant_with_a_gradient_and_no_inverse(self):
        singular = np.array([[1.0, 2.0], [2.0, 4.0]])
        a = mg.array(singular)
        np.linalg.det(a).backward()
        assert mg.gradients(a) == pytest.approx(np.array([[4.0, -2.0], [-2.0, 1.0]]))
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            np.linalg.inv(a)
        fast = mg.compile(np.linalg.inv, backend="numpy")
        assert mg.numbers(fast(mg.array(SQUARE))) == pytest.approx(np.linalg.inv(SQUARE))
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            fast(mg.array(np.zeros((2, 2))))

    def test_a_matrix_that_is_not_positive_has_no_cholesky_factor(self):
        fast = mg.compile(np.linalg.cholesky, backend="numpy")
        for function in (np.linalg.cholesky, fast):
            with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
                function(mg.array([[1.0, 2.0], [2.0, 1.0]]))

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_gradients_in_a_function_for_jax(self):
        jax = pytest.importorskip("jax")
        before = jax.config.read("jax_enable_x64")
        jax.config.update("jax_enable_x64", True)
        try:
            function, parameters = mg.to_jax(mg.grad(lambda x: (x * x * x).sum()), np.ones(5))
            slopes = jax.jit(jax.grad(lambda x: function(parameters, x).sum()))(np.arange(5.0))
        finally:
            jax.config.update("jax_enable_x64", before)
        assert np.array(slopes) == pytest.approx(6.0 * np.arange(5.0))

    def test_what_has_no_numbers_in_it(self):
        assert mg.expm(np.zeros((2, 2))).tolist() == [[1.0, 0.0], [0.0, 1.0]]
        assert np.linalg.norm(mg.array([0.0, 3.0, -4.0]), 0).data == 2.0
        assert np.linalg.cholesky(mg.array(SYMMETRIC), upper=True)[1, 0] == 0.0
        with pytest.raises(ZeroDivisionError):
            np.linalg.norm(mg.array([0.0, 0.0])).backward()
        assert mg.numbers(np.linalg.lstsq(mg.array(TALL.T), mg.array(TALL[:2, 0]), rcond=None)[1]).size == 0
        assert mg.compile(lambda a: np.linalg.det(a[:0]), backend="numpy")(mg.array(np.ones((2, 3, 3)))).shape == (0,)

    def test_the_sign_of_a_determinant_is_a_number(self):
        a = mg.array([[0.0, 2.0], [3.0, 0.0]])
        sign, logarithm = np.linalg.slogdet(a)
        assert (sign, logarithm.data) == (-1.0, pytest.approx(np.log(6.0)))
        fast = mg.compile(lambda a: np.linalg.slogdet(a)[0] * a[0, 1], backend="numpy")
        assert fast(a).data == -2.0

    @pytest.mark.filterwarnings("ignore:Calling expm with arguments of dtype=object")  # so SciPy 1.18 warns, too
    def test_scipys_own_function_says_which_one_to_write(self):
        with pytest.warns(mg.GradientWarning, match=r"scipy converts .* write mg\.expm"):
            scipy.linalg.expm(mg.array(SQUARE))


NEAR_SINGULAR = [
    *("solve", "inv", "det", "slogdet", "cholesky", "eigvalsh", "eigh", "qr", "svd", "pinv", "lstsq"),
    *("norm", "matrix_power", "expm", "solve_triangular", "cho_solve"),
]


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize(("name", "is_called"), [(name, number % 2 == 1) for number, name in enumerate(NEAR_SINGULAR)])
def test_near_singular_matrices_as_jax_has_them(name, is_called, monkeypatch):
    """The smallest singular value is a thousandth of the largest: error is counted in that much rounding."""
    jax = pytest.importorskip("jax")
    from jax import numpy as jnp
    from jax.scipy import linalg as jax_linalg

    jax.config.update("jax_enable_x64", True)
    of_scipy = {np: mg, jnp: jax_linalg}
    n, smallest = 3, 1e-3
    random = np.random.default_rng(3)
    left, right = (np.linalg.qr(random.normal(size=(n, n)))[0] for _ in range(2))
    sizes = np.geomspace(smallest, 1.0, n)
    a = (left * sizes) @ (left.T if name in ("cholesky", "eigvalsh", "eigh", "cho_solve") else right)
    functions = {
        "solve": lambda np_, a: np_.linalg.solve(a, np.ones(n)),
        "slogdet": lambda np_, a: np_.linalg.slogdet(a)[1],
        "cholesky": lambda np_, a: np_.linalg.cholesky(half(a)),
        "eigvalsh": lambda np_, a: np_.linalg.eigvalsh(half(a)),
        "qr": lambda np_, a: np_.linalg.qr(a)[1],
        "svd": lambda np_, a: np_.linalg.svd(a, compute_uv=False),
        "eigh": lambda np_, a: (
            np.arange(9.0).reshape(n, n) ** 2 * np_.linalg.eigh(half(a))[1] ** 2
        ),  # whatever its sign
        "lstsq": lambda np_, a: np_.linalg.lstsq(a, np.ones(n))[0],
        "matrix_power": lambda np_, a: np_.linalg.matrix_power(a, 3),
        "expm": lambda np_, a: of_scipy[np_].expm(a),
        "solve_triangular": lambda np_, a: of_scipy[np_].solve_triangular(a, np.ones(n), lower=True),
        "cho_solve": lambda np_, a: of_scipy[np_].cho_solve((np_.linalg.cholesky(half(a)), True), np.ones(n)),
    }
    function = functions.get(name, lambda np_, a: getattr(np_.linalg, name)(a))
    f = lambda np_, a: np_.sum(function(np_, a))  # noqa: E731
    theirs = jax.value_and_grad(lambda a: f(jnp, a))
    direction = random.normal(size=a.shape)
    if name == "expm":  # JAX takes ten seconds to compile the second ones: differences have to do, in TestOfEach
        (expected, slopes), second = theirs(jnp.array(a)), None
    else:
        (expected, slopes), second = jax.jit(
            lambda a: (theirs(a), jax.grad(lambda a: (theirs(a)[1] * direction).sum())(a))
        )(a)
    lost = 1e-12 / smallest**2
    for called in array_calls.ARRAY_FUNCTIONS.values() if is_called else ():
        monkeypatch.setattr(called, "largest", 1)  # as for larger matrices
    values = mg.array(a)
    result = f(np, values)
    result.backward()
    fast = mg.compile(mg.value_and_grad(lambda a: f(np, a)), backend="numpy")
    for value, found in ((result.data, mg.gradients(values)), fast(a)):
        assert value == pytest.approx(float(expected), rel=lost, abs=lost)
        assert found == pytest.approx(np.array(slopes), rel=lost, abs=lost * np.abs(slopes).max())
    if second is None:
        return
    of_gradient = lambda a: (mg.grad(lambda a: f(np, a))(a) * direction).sum()  # noqa: E731
    lost = lost / smallest
    for found in (mg.grad(of_gradient)(a), mg.compile(mg.grad(of_gradient), backend="numpy")(a)):
        assert found == pytest.approx(np.array(second), rel=lost, abs=lost * (1 + np.abs(second).max()))


SPECIAL_MATRICES = {
    "upper triangular": [[2.0, 1.0, 3.0], [0.0, -1.0, 0.5], [0.0, 0.0, 4.0]],
    "diagonal": [[1.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 3.0]],
    "with a zero on top": [[0.0, 1.0, 3.0], [2.0, 0.0, 0.5], [1.0, 0.0, 4.0]],
    "with a column of zeros": [[0.0, 1.0, 3.0], [0.0, 2.0, 0.5], [0.0, 3.0, 4.0]],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECIAL_MATRICES)
@pytest.mark.parametrize(
    "function",
    [
        np.linalg.det,
        lambda a: np.linalg.slogdet(a)[1],
        lambda a: (np.linalg.inv(a) * np.arange(9.0).reshape(3, 3)).sum(),
        lambda a: np.linalg.solve(a, np.array([1.0, 2.0, -1.0])) @ np.array([0.5, -2.0, 1.0]),
        lambda a: sum((part * np.arange(9.0).reshape(3, 3)).sum() for part in np.linalg.qr(a)),
    ],
    ids=["det", "slogdet", "inv", "solve", "qr"],
)
@pytest.mark.unmeasured
def test_compiled_gradients_where_a_column_ends_in_zeros(function, name):
    def outcome(make):
        a = mg.array(SPECIAL_MATRICES[name])
        try:
            result = make(function)(a)
            result.backward()
        except (ArithmeticError, ValueError, np.linalg.LinAlgError) as error:
            return type(error)
        return [result.data, *mg.gradients(a).ravel().tolist()]

    expected, found = outcome(lambda f: f), outcome(lambda f: mg.compile(f, backend="numpy"))
    assert found == (expected if isinstance(expected, type) else pytest.approx(expected, rel=1e-12, abs=1e-13))


def test_zeros_that_are_known_below_the_diagonal_need_no_reflection():
    function = lambda x: np.linalg.solve(np.diag([2.0, -4.0, 8.0]), x)  # noqa: E731
    for make in (function, mg.compile(function, backend="numpy")):
        x = mg.array([1.0, 2.0, 3.0])
        found = make(x)
        assert mg.numbers(found).tolist() == [0.5, -0.5, 0.375]
        found.sum().backward()
        assert mg.gradients(x).tolist() == [0.5, -0.25, 0.125]


def test_the_gradient_of_a_large_factor_goes_block_by_block():
    size = 100
    along, weights = RANDOM.normal(size=(2, size, size))
    a, along = along @ along.T + size * np.eye(size), np.tril(along)
    (slopes,) = linear_algebra.CHOLESKY.rule([weights], [np.linalg.cholesky(a)], [a], [True])
    up, down = (np.vdot(np.tril(np.linalg.cholesky(a + step * along)), weights) for step in (1e-4, -1e-4))
    assert np.vdot(slopes, along) == pytest.approx((up - down) / 2e-4, rel=1e-6)
    assert not np.triu(slopes, 1).any()


@pytest.mark.parametrize("shape", [(), (2,), (5,), (2, 3), (4, 1)], ids=str)
def test_right_hand_sides_of_another_length_are_refused(shape):
    message = re.escape(f"as many rows in b as in a, not shapes (3, 3) and {shape}")
    solvers = (
        partial(mg.solve_triangular, SYMMETRIC, lower=True),
        partial(mg.solve_triangular, mg.array(SYMMETRIC)),
        mg.compile(partial(mg.solve_triangular, mg.array(SYMMETRIC)), backend="numpy"),
        mg.compile(lambda b: mg.cho_solve((SYMMETRIC, True), b), backend="numpy"),
    )
    for solve in solvers:
        with pytest.raises(ValueError, match=message):
            solve(np.ones(shape))


@pytest.mark.parametrize("name", ["qr", "eigh", "svd", "slogdet"])
def test_several_results_of_plain_numbers_are_arrays_of_floats(name):
    function = getattr(np.linalg, name)
    expected, found = function(SYMMETRIC), mg.compile(function, backend="numpy")(SYMMETRIC)
    assert type(found) is type(expected)
    assert [np.asarray(x).dtype for x in found] == [np.float64] * len(expected)
