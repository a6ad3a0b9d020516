"""Scans with large iterations: the program runs them as a loop, and arrays inside are recorded as a whole."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.tracing import iterations

pytestmark = pytest.mark.slow(together=True)

BACKENDS = ["llvm", "numpy"]


def drawn(*shape):
    return np.random.default_rng(len(shape) * sum(shape)).standard_normal(shape)


def recurrent(width, steps, rows=None):
    """A layer that sees its own results, and inputs that are not arguments; its state is one row, or several."""
    shape = (width,) if rows is None else (rows, width)
    inputs = drawn(steps, *shape)

    def loss(w, start):
        def step(h, x):
            h = np.tanh(h @ w + x + start)
            return 0.9 * h, (h * h).mean()

        last, outputs = mg.scan(step, np.zeros(shape), inputs)
        return (last * last).sum() + sum(outputs)

    return loss


def in_numpy(width, steps, rows):
    """The same, on floats."""
    inputs = drawn(steps, rows, width)

    def loss(w, start):
        h, total = np.zeros((rows, width)), 0.0
        for x in inputs:
            h = np.tanh(h @ w + x + start)
            h, total = 0.9 * h, total + (h * h).mean()
        return (h * h).sum() + total

    return loss


def checked_along_a_direction(found, loss, w, start):
    """Compare the value, and the gradient along a direction, with a difference of floats."""
    value, (slope, of_start) = found
    far, direction = 1e-6, drawn(*w.shape)
    along = (loss(w + far * direction, start + far) - loss(w - far * direction, start - far)) / (2.0 * far)
    assert float(value) == pytest.approx(loss(w, start), rel=1e-12)
    assert (slope * direction).sum() + of_start == pytest.approx(along, rel=1e-6)


class TestPlainScans:
    def test_they_are_one_loop_with_the_same_numbers(self):
        fast = mg.compile(mg.value_and_grad(recurrent(32, 20, 32), argnums=(0, 1)))
        w = 0.1 * drawn(32, 32)
        for times in (1.0, -2.0):
            checked_along_a_direction(fast(times * w, 0.3), in_numpy(32, 20, 32), times * w, 0.3)
        assert "18 checkpoints: states of 1,025 numbers" in fast.explain()

    def test_as_many_operations_serve_any_number_of_iterations(self):
        w = 0.1 * drawn(32, 32)
        sizes = []
        for steps in (260, 600):
            fast = mg.compile(mg.value_and_grad(recurrent(32, steps, 32), argnums=(0, 1)))
            checked_along_a_direction(fast(w, 0.3), in_numpy(32, steps, 32), w, 0.3)
            assert f"{steps - 2} checkpoints" in fast.explain()
            sizes.append(fast.cache_info().code_bytes)
        assert sizes[1] < 1.1 * sizes[0]

    def test_a_backward_pass_of_the_program_gives_the_same(self):
        loss, weights = in_numpy(32, 20, 32), mg.array(0.1 * drawn(32, 32))
        fast = mg.compile(lambda start: recurrent(32, 20, 32)(weights, start))
        start = Value(0.3)
        found = fast(start)
        found.backward()
        slopes = np.array([weight.grad for weight in weights.flat]).reshape(32, 32)
        w = np.array([weight.data for weight in weights.flat]).reshape(32, 32)
        checked_along_a_direction((found.data, (slopes, start.grad)), loss, w, 0.3)


@pytest.fixture
def any_scan_is_large(monkeypatch):
    monkeypatch.setattr(iterations, "_LARGE", 0)
    monkeypatch.setattr(iterations, "_MOST_WRITTEN_OUT", 0)


@pytest.mark.usefixtures("any_scan_is_large")
class TestSmallOnes:
    @pytest.mark.parametrize("backend", BACKENDS)
    @pytest.mark.parametrize(
        "transform", [mg.jacobian, mg.hessian, lambda f: mg.grad(lambda *x: (mg.grad(f)(*x) ** 2).sum())]
    )
    def test_derivatives_in_many_directions_and_of_higher_order(self, backend, transform):
        f, w = recurrent(3, 12), 0.4 * drawn(3, 3)
        g = f if transform is not mg.jacobian else lambda w, start: mg.array([f(w, start), f(w * w, start)])
        expected = np.array(transform(g)(w, 0.5), dtype=float)
        assert np.array(mg.compile(transform(g), backend=backend)(w, 0.5), dtype=float) == pytest.approx(
            expected, rel=1e-10
        )

    def test_a_scan_whose_iterations_change_something_is_written_out(self):
        seen = []

        def loss(w):
            def step(h, x):
                seen.append(len(seen))
                return h * w + x + len(seen), None

            return mg.scan(step, 1.0, drawn(12))[0]

        fast = mg.compile(mg.value_and_grad(loss))
        found = fast(0.5)
        seen.clear()
        assert found == pytest.approx(mg.value_and_grad(loss)(0.5), rel=1e-12)

    def test_what_the_compiler_looks_at_meanwhile_is_no_read_of_the_function(self):
        tables = {str(n): [float(n)] for n in range(100)}  # so many are compared by their addresses
        gain = "rate"

        class Settings:
            rate = 0.5

        def of_row(row):
            return (getattr(Settings, gain, 1.0) * tables["3"][0] * row).sum()  # which may read memory

        def loss(w):
            last, _ = mg.scan(lambda h, x: (h * w + of_row(x), None), 1.0, drawn(12, 4))
            return last + mg.vmap(lambda row: (mg.tanh(w) * row * of_row(row)).sum())(drawn(40, 900)).sum()

        assert mg.compile(loss)(0.5) == pytest.approx(loss(0.5), rel=1e-12)

    def test_an_error_in_a_late_iteration_is_raised(self):
        def loss(w):
            return mg.scan(lambda h, x: (h - mg.log(h) * w * x, None), 3.0, np.ones(12))[0]

        fast = mg.compile(mg.value_and_grad(loss))
        assert fast(0.5) == pytest.approx(mg.value_and_grad(loss)(0.5), rel=1e-12)
        with pytest.raises(ValueError, match="log"):
            mg.value_and_grad(loss)(3.0)
        with pytest.raises(ValueError, match="log"):
            fast(3.0)


class TestArraysInside:
    @pytest.mark.parametrize("backend", BACKENDS)
    def test_equal_numbers_from_outside_get_their_gradient_once(self, backend):
        size, rates = 16, drawn(16, 16) / 8.0

        def loss(q, r):
            noise, start = np.eye(size) * q, np.zeros((size, size)) + r

            def step(p, _):
                p = rates @ p @ rates.T + noise
                return p, (p * p).sum()

            last, outputs = mg.scan(step, start, length=4, checkpoint=1)
            return (last * noise).sum() + sum(outputs)

        fast = mg.compile(mg.value_and_grad(loss, argnums=(0, 1)), backend=backend)
        value, slopes = mg.value_and_grad(loss, argnums=(0, 1))(0.5, 0.7)
        found, found_slopes = fast(0.5, 0.7)
        assert (float(found), *found_slopes) == pytest.approx((float(value), *slopes), rel=1e-11)

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_of_branches_and_loops_with_values_from_outside(self, backend):
        weights, table = mg.array(0.2 * drawn(5, 5)), drawn(5, 5)

        def loss(x):
            def grows(h):
                return h @ weights + h.sum(axis=0) - np.maximum(h, x)

            def shrinks(h):
                return np.where(h > x, h * table, weights).mean(axis=1) + h

            chosen = mg.cond((x * x).sum() > 1.0, grows, shrinks, x * weights)
            last = mg.while_loop(lambda h: (h * h).sum() > 0.5, lambda h: 0.5 * (h @ table.T) / 5.0, chosen)
            return (last * weights).sum() + chosen.max()

        fast = mg.compile(loss, backend=backend)
        for times in (0.1, 1.0):
            x = [mg.array(times * drawn(5, 5)) for _ in range(2)]
            totals = []
            for run, given in zip((loss, fast), x, strict=True):
                for weight in weights.flat:
                    weight.grad = 0.0
                total = run(given)
                total.backward()
                totals.append([total.data, *(v.grad for v in given.flat), *(v.grad for v in weights.flat)])
            assert totals[1] == pytest.approx(totals[0], rel=1e-10, abs=1e-13)

    def test_of_programs_around_a_decision(self):
        table = drawn(20, 20)

        def loss(w):
            h = np.tanh(table @ w)
            factor = mg.cond(h.sum() > 0.0, lambda s: s * 2.0, lambda s: s * s, h.mean())
            low, high = mg.switch(1, [lambda s: (s, s), lambda s: (s - 1.0, s + h[0, 0])], factor)
            return (np.tanh(h @ w) * factor).sum() + low * high

        for w in (0.2 * drawn(20, 20), -0.1 * drawn(20, 20)):
            value, slope = mg.compile(mg.value_and_grad(loss))(w)
            expected, of_expected = mg.value_and_grad(loss)(w)
            assert float(value) == pytest.approx(float(expected), rel=1e-12)
            assert np.array(slope, dtype=float) == pytest.approx(np.array(of_expected, dtype=float), rel=1e-9)
