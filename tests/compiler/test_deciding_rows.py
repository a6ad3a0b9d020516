"""Functions of many rows that decide on numbers: what they do is found with a few rows, and checked with all."""

import itertools
import logging
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd.compiler.calling import of_rows
from micrograd.compiler.ir.extrapolated import UnlikeRowsError
from micrograd.compiler.tracing.trace import trace_of_update
from tests.compiler.test_of_rows import are_same, flat, is_traced_in_full, numbers, run_in_full, traced_in_full

ROWS = 450
KNOWN = np.linspace(-1.0, 2.0, ROWS)

pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


def loss(w, x):
    return np.mean(np.log(1.0 + np.exp(-w * x)))


def line_search(x):
    step, w = 16.0, 0.5
    value, slope = mg.value_and_grad(loss)(w, x)
    while loss(w - step * slope, x) > value - 0.5 * step * slope * slope:
        step = step * 0.5
    return w - step * slope


def until_small(x):
    mean = 0.0
    for _ in range(20):
        change = np.mean(x - mean)
        mean = mean + 0.5 * change
        if abs(change) < 0.02:
            break
    return mean


def with_an_adaptive_step(x):
    time, step = 0.0, 0.25
    while time < 0.3:
        slope = -x * x
        error = np.max(np.abs(step * (-((x + step * slope) ** 2) - slope)))
        if error > 0.5:
            step = step * 0.5
            continue
        x = x + step * slope
        time = time + step
    return x.sum()


def clipped(x):
    slope = mg.grad(lambda y: np.sum(y**3))(x)
    norm = np.sqrt(np.sum(slope * slope))
    return slope / norm if norm > 1.0 else slope


def raises_if_small(x):
    if x.sum() < 100.0:
        raise ValueError("a small sum")
    return x * 2.0


def several(x):
    low, high = x.min(), x.max()
    found = x - low if low < 0.5 else x
    found = found / high if high > 1.0 and high < 100.0 else found
    return [found, {"low": low if low > 0 else 0.0}]


DECIDING = {
    "a branch": lambda x: x.sum() if x.mean() > 0.5 else x.max(),
    "a branch in a gradient": mg.value_and_grad(lambda x: (x * x).sum() if x.mean() > 0.5 else (x**3).mean()),
    "a loop that ends where the numbers say": until_small,
    "the gradient through such a loop": mg.grad(until_small),
    "a line search": line_search,
    "an adaptive step": with_an_adaptive_step,
    "a clipped gradient": clipped,
    "an int": lambda x: x * int(x.sum()) + round(x.mean()),
    "several decisions": several,
    "the rows that it knows": lambda x: np.sum(x * KNOWN) if np.mean(KNOWN * x) > 0.2 else np.sum(x),
    "a vmap after a decision": lambda x: mg.vmap(lambda v: v * v if x.shape else v)(x * 2 if x.sum() > 9.0 else x),
    "the truth of a number": lambda x: x.sum() if x[0] else x.max(),
    "a scan": lambda x: (lambda s: s if s > 3.0 else s * 2)(mg.scan(lambda s, v: (s * 0.5 + v, None), 0.0, x)[0]),
}

DATA = {
    "alike": numbers(ROWS),
    "other first rows": np.concatenate([np.full(70, 0.01), numbers(ROWS - 70) + 1.0]),
    "large first rows": np.concatenate([np.full(70, 3.0), numbers(ROWS - 70) * 0.1]),
}


OTHERS = itertools.cycle(list(DATA)[1:])


class TestDecisions:
    @pytest.mark.slow
    @pytest.mark.parametrize(("name", "data"), [(name, data) for name in DECIDING for data in ("alike", next(OTHERS))])
    def test_few_rows_are_traced(self, name, data, caplog):
        """The numbers are those of a trace for all rows, to the last bit, and those of the function itself."""
        function, x = DECIDING[name], DATA[data]
        fast = mg.compile(function)
        assert not is_traced_in_full(caplog, function, x, fast=fast)
        assert flat(fast(x)) == pytest.approx(flat(function(x)), rel=1e-9)

    def test_other_numbers_decide_otherwise(self, caplog):
        fast = mg.compile(line_search)
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            for x in DATA.values():
                for factor in (1.0, 5.0, 1.0):
                    assert fast(factor * x) == pytest.approx(line_search(factor * x), rel=1e-12)
        assert "is traced for all" not in caplog.text

    def test_the_gradient_of_a_value(self):
        w = mg.Value(0.3)

        def function(x):
            return np.sum(w * x) if np.sum(x) > 40.0 else np.sum(w * w * x)

        fast = mg.compile(function)
        for x in DATA.values():
            for factor in (1.0, 0.01, 1.0):
                w.grad = 0.0
                fast(factor * x).backward()
                found, w.grad = w.grad, 0.0
                function(factor * x).backward()
                assert found == pytest.approx(w.grad, rel=1e-12)

    @pytest.mark.parametrize("data", DATA)
    def test_errors_that_few_rows_would_raise(self, data):
        """They are raised for all rows or not at all: a few of them do not decide it."""
        x = DATA[data]
        assert np.array_equal(mg.compile(raises_if_small)(x * 10), x * 20)
        with pytest.raises(ValueError, match="a small sum"):
            mg.compile(raises_if_small)(x * 0.01)

    def test_numbers_that_are_not_finite(self):
        fast = mg.compile(DECIDING["a branch"])
        assert fast(numbers(ROWS)) == pytest.approx(DECIDING["a branch"](numbers(ROWS)))
        for number in (math.nan, math.inf):
            x = np.append(numbers(ROWS - 1), number)
            assert are_same(fast(x), DECIDING["a branch"](x))

    def test_close_decisions_run_as_written(self):
        x = numbers(ROWS)
        mean = float(np.mean(x))

        def function(x):
            return x.sum() if x.mean() > mean else x.max()

        assert mg.compile(function)(x) == function(x)

    @pytest.mark.slow
    def test_a_loop_that_is_longer_than_any_guess(self):
        def function(x):
            total, steps = x.sum(), 0
            while total > 1.0:
                total, steps = total * 0.9, steps + 1
            return total * steps

        for factor in (1.0, 1e-2, 1e3):
            x = factor * numbers(ROWS)
            assert mg.compile(function)(x) == pytest.approx(function(x), rel=1e-12)

    @pytest.mark.slow
    @pytest.mark.parametrize("backend", ["numpy", "jax"])
    def test_other_backends(self, backend):
        pytest.importorskip(backend)
        fast = mg.compile(line_search, backend=backend)
        for data in ("alike", "other first rows"):
            assert fast(DATA[data]) == pytest.approx(line_search(DATA[data]), rel=1e-9)

    @pytest.mark.slow
    @settings(max_examples=6)  # each is compiled twice
    @given(
        st.lists(st.tuples(st.sampled_from(["sum", "mean", "max", "min"]), st.floats(-2, 2)), min_size=1, max_size=3),
        st.lists(st.floats(-3, 3), min_size=3, max_size=3),
        st.booleans(),
    )
    def test_random_decisions(self, asked, parts, has_gradient):
        def function(x):
            for what, limit in asked:
                number = getattr(x, what)()
                x = x * 0.5 + number * 1e-3 if number > limit else x * x - 0.25
            return x.sum()

        x = np.repeat(parts, ROWS // 3) + 0.1 * numbers(ROWS)
        with np.errstate(over="ignore"):
            chosen = mg.value_and_grad(function) if has_gradient else function
            assert are_same(mg.compile(chosen)(x), run_in_full(chosen, x))


def test_an_update_decides_nothing():
    with pytest.raises(mg.TraceError, match="int of a number"):
        trace_of_update(lambda parameter, gradient, state, rate: (parameter * int(gradient), ()), 0)


class TestDecisionsOnEachRow:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "function",
        [
            lambda x: sum((mg.log(v) if v > 0.5 else 2.0 * v) for v in x),
            lambda x: x[0] if x[len(x) - 1] > x[400] else x[1],
            lambda x: [x * 2.0, x][int(3.0 * x[0]) % 2].sum() if len(x) > 400 and x[420] > 0.5 else x.max(),
        ],
    )
    def test_all_rows_are_traced(self, function, caplog):
        assert is_traced_in_full(caplog, function, numbers(ROWS))


def slope_of_fit(w, x):
    residuals = w[0] * x + w[1] - x * x
    return np.array([np.mean(residuals * x), np.mean(residuals)])


def descends(x):
    start = np.array([0.3, -0.2]) * x[0]
    return mg.while_loop(
        lambda w: np.sum(slope_of_fit(w, x) ** 2) > 1e-4, lambda w: w - 0.5 * slope_of_fit(w, x), start
    )


def halves_rows(x):
    small, count = mg.while_loop(lambda s: np.max(s[0]) > 0.1, lambda s: (0.5 * s[0], s[1] + 1), (x, 0), limit=60)
    return np.sum(small) * count


LEFT_TO_THE_PROGRAM = {
    "a choice": lambda x: mg.cond(np.mean(x) > 0.5, lambda: np.sum(x * x), lambda: np.max(x)),
    "a choice between arrays": lambda x: mg.cond(np.mean(x) > 0.5, lambda y: y * 2.0, lambda y: y - x[0], x),
    "a switch": lambda x: mg.switch(mg.floor(4.0 * np.mean(x) / 3.0), [np.sum, np.max, lambda v: v[3]], x),
    "a loop": descends,
    "a loop of rows": halves_rows,
    "a choice for each row": lambda x: mg.vmap(lambda v: mg.cond(v > 0.5, lambda: mg.log(v), lambda: v - 1.0))(x),
    "a loop for each row": lambda x: mg.vmap(
        lambda v: mg.while_loop(lambda s: s > 0.1, lambda s: 0.5 * s * v, v, limit=99) if x.ndim else v
    )(0.3 * x),
    "known rows": lambda x: mg.mean(mg.vmap(lambda v, k: mg.cond(v > k, lambda: v * k, lambda: v))(x, KNOWN)),
    "choices in a scan": lambda x: mg.scan(
        lambda s, v: (mg.cond(s > v, lambda: 0.5 * s, lambda: s + v), s * v), 0.1 * x[0], x
    ),
    "a gradient of choices": mg.value_and_grad(
        lambda x: np.sum(mg.vmap(lambda v: mg.cond(v > 0.5, lambda: v**3, lambda: 2.0 * v))(x))
    ),
    "a gradient of a loop for each row": mg.grad(
        lambda x: np.sum(mg.vmap(lambda v: mg.while_loop(lambda s: s > 0.1, lambda s: 0.5 * s * v, v))(0.3 * x))
    ),
    "a gradient of a choice": mg.grad(lambda x: mg.cond(np.mean(x) > 0.5, lambda: np.sum(x * x), lambda: np.max(x))),
}


class TestDecisionsOfPrograms:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", LEFT_TO_THE_PROGRAM)
    def test_few_rows_are_traced(self, name, caplog):
        """Sums of many terms may be in another order."""
        function = LEFT_TO_THE_PROGRAM[name]
        fast, in_full = mg.compile(function), mg.compile(function)
        with traced_in_full():
            in_full(DATA["alike"])
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            for x in DATA.values():
                found = flat(fast(x))
                assert found == flat(fast(x))
                assert found == pytest.approx(flat(in_full(x)), rel=1e-13, abs=1e-15)
                assert found == pytest.approx(flat(function(x)), rel=1e-9, abs=1e-12)
        assert "is traced for all" not in caplog.text

    @pytest.mark.parametrize("backend", ["llvm", "numpy", pytest.param("jax", marks=pytest.mark.slow)])
    @pytest.mark.parametrize("name", ["a loop", "known rows", "a gradient of choices"])
    def test_one_trace_serves_all_numbers(self, name, backend):
        function = LEFT_TO_THE_PROGRAM[name]
        fast = mg.compile(function, backend=backend)
        for x in DATA.values():
            assert flat(fast(x)) == pytest.approx(flat(function(x)), rel=1e-9, abs=1e-12)
        assert fast.cache_info().traces == 1

    def test_a_program_that_is_not_alike_is_made_of_all_rows(self, monkeypatch):
        w = mg.Value(0.4)

        def function(x):
            rows = mg.vmap(lambda a: mg.cond(a > w, lambda: a * a, lambda: w * a))(x)
            return [mg.mean(rows), np.sum(rows * rows)]

        def refuse(*_):
            raise UnlikeRowsError("no")

        first, second = mg.compile(function)(DATA["alike"])
        monkeypatch.setattr(of_rows, "extrapolated", refuse)
        found, expected = (mg.gradient(a * b, [w]) for a, b in ((first, second), function(DATA["alike"])))
        assert found == pytest.approx(expected, rel=1e-10)

    def test_gradients_of_values(self):
        w = [mg.Value(0.4), mg.Value(-1.5)]

        def function(x):
            rows = mg.vmap(lambda a, k: mg.cond(a > w[0], lambda: w[1] * a * k, lambda: w[0] * a * a))(x, KNOWN)
            return [mg.mean(rows), np.sum(rows * rows), float(len(x))]

        fast = mg.compile(function)
        for x in DATA.values():
            for weights in ([1.0, 0.0], [0.5, 2.0]):
                found, expected = (
                    mg.gradient(sum(a * b for a, b in zip(each(x), weights, strict=False)), w)
                    for each in (fast, function)
                )
                assert found == pytest.approx(expected, rel=1e-10)
