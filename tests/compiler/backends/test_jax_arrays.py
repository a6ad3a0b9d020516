"""Linear algebra in functions compiled for JAX: JAX's own, with our derivatives of any order."""

import numpy as np
import pytest

import micrograd as mg
from micrograd.engine import array_calls, lapack

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.slow

RANDOM = np.random.default_rng(5)
SIZE = 3
SQUARE = np.eye(SIZE) + RANDOM.normal(size=(SIZE, SIZE)) / 4
POSITIVE = SQUARE @ SQUARE.T
TALL = RANDOM.normal(size=(4, 2))
WEIGHTS = RANDOM.normal(size=(4, 4))


@pytest.fixture(autouse=True)
def calls_for_all_sizes(monkeypatch):
    """Compiled functions have the steps of no call, as of those with large matrices."""
    for function in array_calls.ARRAY_FUNCTIONS.values():
        monkeypatch.setattr(function, "largest", 0)


def weighted(*arrays):
    """A number that depends on all elements."""
    return sum((np.cos(WEIGHTS[: array.shape[-2], : array.shape[-1]]) * array**2).sum() for array in arrays)


CALLS = {
    "solve": (lambda a: weighted(np.linalg.solve(a, WEIGHTS[:SIZE, :2])), SQUARE),
    "solve_triangular": (lambda a: weighted(mg.solve_triangular(a, WEIGHTS[:SIZE, :2], lower=True)), POSITIVE),
    "inv, of two": (lambda a: weighted(np.linalg.inv(a)), np.stack([SQUARE, POSITIVE])),
    "det": (np.linalg.det, SQUARE),
    "slogdet": (lambda a: np.linalg.slogdet(a)[1], SQUARE),
    "cholesky": (lambda a: weighted(np.linalg.cholesky(a) + 0.5), POSITIVE),
    "qr": (lambda a: weighted(*(part + 0.5 for part in np.linalg.qr(a))), SQUARE),
    "eigh": (lambda a: weighted(np.linalg.eigh(a)[1] * np.linalg.eigh(a)[0]), POSITIVE),
    "eigh, of the upper triangle": (lambda a: weighted(np.linalg.eigh(a, "U")[1]), POSITIVE),
    "svd": (lambda a: weighted(*np.linalg.svd(a, full_matrices=False)[::2]), TALL),
    "pinv": (lambda a: weighted(np.linalg.pinv(a)), TALL),
    "lstsq": (lambda a: (np.linalg.lstsq(a, TALL[:, 1] ** 2, rcond=None)[0] ** 2).sum(), TALL),
    "expm": (lambda a: weighted(mg.expm(a)), SQUARE),
    "sort": (lambda a: weighted(np.sort(a) ** 2), SQUARE),
    "positions": (lambda a: (a[np.argsort(a[:, 0]), 0] * np.arange(SIZE)).sum() * a[0, np.argmax(a[0])], SQUARE),
    "median": (lambda a: np.median(a) * np.quantile(a, 0.3), SQUARE),
    "fft": (lambda a: (np.fft.fft(a).real ** 3 + np.fft.fft(a).imag).sum(), WEIGHTS[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_derivatives_are_those_of_eager_code(name):
    f, a = CALLS[name]
    fast = mg.compile(mg.value_and_grad(f), backend="jax")
    fast(a)
    value, slopes = fast(a)
    expected, their_slopes = mg.value_and_grad(f)(a)
    assert value == pytest.approx(expected, rel=1e-10)
    assert slopes == pytest.approx(np.asarray(their_slopes), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", ["solve", "inv, of two", "svd", "sort", "positions", "median", "fft"])
def test_values_are_given_the_gradients_of_eager_code(name):
    f, a = CALLS[name]
    x = mg.array(a)
    mg.compile(f, backend="jax")(x).backward()
    assert mg.gradients(x) == pytest.approx(np.asarray(mg.grad(f)(a)), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", ["inv, of two", "cholesky", "qr", "eigh", "svd", "sort"])
def test_second_derivatives_are_those_of_numpys_backend(name):
    f, a = CALLS[name]
    direction = np.resize(RANDOM.normal(size=7), a.shape)

    def along(x):
        return (mg.grad(f)(x) * direction).sum()

    second = mg.compile(mg.grad(along), backend="numpy")(a)
    x = mg.array(a)
    mg.compile(along, backend="jax")(x).backward()  # the rule of a gradient, which JAX differentiates
    assert mg.gradients(x) == pytest.approx(second, rel=1e-6, abs=1e-7)


def test_lapack_is_not_called(monkeypatch):
    f, a = CALLS["solve"]
    expected = mg.value_and_grad(f)(a)
    monkeypatch.setattr(lapack, "solve", None)
    value, slopes = mg.compile(mg.value_and_grad(f), backend="jax")(a)
    assert value == pytest.approx(expected[0])
    assert slopes == pytest.approx(np.asarray(expected[1]))


def test_what_numpy_refuses_is_raised():
    solve = mg.compile(lambda a: np.linalg.solve(a, WEIGHTS[:SIZE, :2])[0, 0], backend="jax")
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        solve(np.zeros((SIZE, SIZE)))
    assert solve(np.eye(SIZE)) == WEIGHTS[0, 0]
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        mg.compile(lambda a: np.linalg.cholesky(a)[0, 0], backend="jax")(-POSITIVE)
    vector = mg.compile(mg.grad(lambda a: np.linalg.eigh(a)[1][0, 0]), backend="jax")
    with pytest.raises(ValueError, match=r"the eigenvalues 0 and 1 of np.linalg.eigh are equal"):
        vector(np.eye(2))


def test_indices_out_of_range_and_nan_run_eagerly():
    fast = mg.compile(lambda a, n: a[n].sum() + np.sort(a[0])[0], backend="jax")
    assert fast(SQUARE, np.array([0, -1])) == pytest.approx(SQUARE[[0, -1]].sum() + SQUARE[0].min())
    with pytest.raises(IndexError, match="out of bounds"):
        fast(SQUARE, np.array([0, SIZE]))
    assert np.isnan(fast(SQUARE * np.nan, np.array([0, 1])))


def test_second_derivatives_of_a_program_that_has_both():
    f, a = CALLS["cholesky"]
    second = mg.grad(lambda x: (mg.grad(f)(x) * WEIGHTS[:SIZE, :SIZE]).sum())
    assert mg.compile(second, backend="jax")(a) == pytest.approx(np.asarray(second(a)), rel=1e-9)


def test_between_programs_in_float32():
    f, a = CALLS["cholesky"]
    value, slopes = mg.compile(mg.value_and_grad(f), backend="jax", precision="float32")(a)
    expected, their_slopes = mg.value_and_grad(f)(a)
    assert value == pytest.approx(expected, rel=1e-4)
    assert value != pytest.approx(expected, rel=1e-12)
    assert slopes == pytest.approx(np.asarray(their_slopes), rel=1e-2, abs=1e-3)


def test_the_slope_of_a_determinant_of_a_singular_matrix():
    a = np.diag(np.append(np.ones(SIZE - 1), 0.0))
    expected = np.zeros((SIZE, SIZE))
    expected[-1, -1] = 1.0
    assert mg.compile(mg.grad(np.linalg.det), backend="jax")(a) == pytest.approx(expected)


class TestToJax:
    @pytest.mark.unmeasured
    def test_jax_differentiates_what_calls_jax(self):
        a, b = mg.array(SQUARE), WEIGHTS[:SIZE, :2]
        function, parameters = mg.to_jax(lambda b: weighted(np.linalg.solve(a @ a.T, b * 2.0)), b)

        def ours(numbers):
            return weighted(np.linalg.solve(numbers @ numbers.T, b * 2.0))

        assert float(function(parameters, b)) == pytest.approx(ours(SQUARE))
        (slopes,) = jax.jit(jax.grad(function))(parameters, b).values()
        assert slopes == pytest.approx(np.asarray(mg.grad(ours)(SQUARE)), rel=1e-9)
        second = mg.grad(lambda x: (mg.grad(ours)(x) * SQUARE).sum())(SQUARE)
        along = jax.jit(jax.grad(lambda p: sum((jax.grad(function)(p, b)[name] * SQUARE).sum() for name in p)))
        (found,) = along(parameters).values()
        assert found == pytest.approx(np.asarray(second), rel=1e-8)
        several = jax.jit(jax.vmap(lambda b: function(parameters, b)))(np.stack([b, 2 * b]))
        assert several[1] == pytest.approx(4 * several[0])

    def test_jax_differentiates_what_is_sorted(self):
        def ours(a):
            return weighted(np.sort(a)) * a[0, np.argmax(a[0])] * np.median(a)

        function, parameters = mg.to_jax(ours, SQUARE)
        slopes = jax.jit(jax.grad(function, argnums=1))(parameters, SQUARE)
        assert slopes == pytest.approx(np.asarray(mg.grad(ours)(SQUARE)), rel=1e-9)

    @pytest.mark.unmeasured
    def test_what_a_rule_calls_and_what_nobody_reads(self):
        def slope(a):
            return mg.grad(lambda a: np.linalg.slogdet(a)[1])(a)[0, 1]

        function, parameters = mg.to_jax(slope, POSITIVE)
        assert float(function(parameters, POSITIVE)) == pytest.approx(np.linalg.inv(POSITIVE)[0, 1])
        slopes = jax.jit(jax.grad(function, argnums=1))(parameters, POSITIVE)
        assert slopes == pytest.approx(np.asarray(mg.grad(slope)(POSITIVE)), rel=1e-9)

    def test_least_squares_with_singular_values(self):
        function, parameters = mg.to_jax(lambda a: np.linalg.lstsq(a, TALL[:, 1], rcond=None), TALL)
        for found, expected in zip(
            function(parameters, TALL), np.linalg.lstsq(TALL, TALL[:, 1], rcond=None), strict=True
        ):
            assert np.asarray(found) == pytest.approx(expected, abs=1e-12)
        assert np.isnan(function(parameters, np.ones((4, 2)))[3]).all()
        compiled = mg.compile(lambda a: np.linalg.lstsq(a, TALL[:, 1], rcond=None)[3].sum(), backend="jax")
        assert float(compiled(TALL)) == pytest.approx(np.linalg.svd(TALL, compute_uv=False).sum())

    def test_calls_on_both_sides_of_a_decision(self):
        def f(a):
            if np.linalg.eigvalsh(a)[0] > 0:
                return np.log(np.linalg.cholesky(a).diagonal()).sum() + np.linalg.solve(a, WEIGHTS[:SIZE, :1]).sum()
            return np.linalg.eigh(a)[1][0, 1] + np.linalg.slogdet(a)[1]

        function, parameters = mg.to_jax(f, POSITIVE)
        compiled = jax.jit(jax.value_and_grad(function, argnums=1))
        for a in (POSITIVE, POSITIVE - np.eye(SIZE)):  # of the second, there is no factor of Cholesky
            value, slopes = compiled(parameters, a)
            expected, their_slopes = mg.value_and_grad(f)(a)
            assert float(value) == pytest.approx(expected, rel=1e-10)
            assert slopes == pytest.approx(np.asarray(their_slopes), rel=1e-8, abs=1e-10)


def test_a_decision_after_a_long_chain():
    def f(x):
        for _ in range(400):
            x = x * 0.999
        return x if x > 0 else -x

    function, parameters = mg.to_jax(f, 1.0)
    assert float(jax.jit(function)(parameters, -2.0)) == pytest.approx(f(-2.0))
