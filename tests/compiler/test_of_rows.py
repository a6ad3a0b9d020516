"""Programs of many rows: made from those of a few, and the same as those of a trace for all rows."""

import contextlib
import itertools
import logging
import math
import random
import re
import signal
from collections import namedtuple
from dataclasses import dataclass
from functools import partial
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import micrograd as mg
from micrograd import losses
from micrograd.compiler.calling import of_rows
from micrograd.compiler.ir.extrapolated import UnlikeRowsError, extrapolated, floats_of, is_same
from micrograd.compiler.tracing import indexing
from micrograd.engine.primitive import Primitive

ROWS = 450
AS_FOR_USERS = of_rows.FEWEST_ROWS, of_rows.FEWEST_ITERATIONS
SIZES = [32, 48, 80]
WEIGHTS = [mg.Value(0.5), mg.Value(-0.25)]


pytestmark = [pytest.mark.slow(together=True), pytest.mark.usefixtures("few_are_many")]


@contextlib.contextmanager
def traced_in_full():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(of_rows, "FEWEST_ROWS", 10**9)
        patch.setattr(of_rows, "FEWEST_ITERATIONS", 10**9)
        yield


def run_in_full(function, *arguments):
    with traced_in_full():
        return mg.compile(function)(*arguments)


def is_traced_in_full(caplog, function, *arguments, fast=None):
    """Whether it is, after a look at what it gives: the same numbers as by a trace for all rows, to the last bit."""
    fast = fast or mg.compile(function)
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        found = fast(*arguments)
    expected = run_in_full(function, *arguments)
    for result in found, fast(*arguments):
        assert are_same(result, expected)
    return any("is traced for all" in record.getMessage() for record in caplog.records)


def are_same(one, other):
    if isinstance(one, mg.Value):
        return is_same(one.data, other.data)
    if isinstance(one, csr_array):
        pairs = [(getattr(one, name), getattr(other, name)) for name in ("data", "indices", "indptr")]
        return one.shape == other.shape and all(is_same(x, y) for x, y in pairs)
    if isinstance(one, (tuple, list)):
        return type(one) is type(other) and len(one) == len(other) and all(map(are_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(are_same(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray) and one.dtype == object:
        return one.shape == other.shape and all(map(are_same, one.flat, other.flat))
    return is_same(one, other)


def flat(result):
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [number for part in result for number in flat(part)]
    return [float(number) for number in np.ravel(result)]


def numbers(*shape):
    return np.random.default_rng(7).uniform(0.1, 1.0, shape)


def chained(x):
    return mg.vmap(lambda a, b: 10 * (b - a * a))(x[:-1], x[1:])


def goes_through(x):
    total = 0.0
    for element in x:
        total = total + element
    return total


Pair = namedtuple("Pair", ["first", "second"])
ALIKE = {
    "a loop over an array": goes_through,
    "elements": lambda x: np.exp(x) * 2 + x,
    "gradient of a sum": mg.value_and_grad(lambda x: np.exp(x).sum()),
    "mean": mg.value_and_grad(lambda x: np.mean(np.where(x > 0.5, x, x * x))),
    "mean of micrograd": mg.grad(mg.mean),
    "a loop of about as many iterations as rows are traced": mg.value_and_grad(
        lambda x: mg.mean(mg.vmap(lambda row: sum(row * n for n in range(50)))(x))
    ),
    "method": lambda x: x.mean() + x.max(),
    "log-sum-exp": mg.value_and_grad(mg.logsumexp),
    "dot": mg.grad(lambda x: mg.dot(x, x)),
    "norm and variance": lambda x: np.linalg.norm(x) + np.var(x) + x.std(),
    "cumulative sum": lambda x: np.cumsum(x),
    "softmax": lambda x: mg.softmax(x)[0],
    "single elements": lambda x: x[0] * x[-1] + x[3] * x,
    "floats in a dict": lambda x: {"sum": x.sum(), "rows": [x, {"mean": x.mean()}]},
    "a named tuple": lambda x: Pair(x.sum(), Pair(x * 2, np.max(x))),
    "bools": lambda x: {"large": x > 0.5, "any": [x.max() > 3.0, x.sum()]},
    "several Values": lambda x: (WEIGHTS[0] * x, [(WEIGHTS[1] * x).sum(), x.max()], np.outer(x, WEIGHTS)),
    "several results": lambda x: {"sines": np.sin(x), "sum": [x.sum(), 1.0], "what": "text", "static": None},
    "steps": lambda x: x[::2] * 2,
    "length": lambda x: (len(x) * x[0], x / x.shape[0], x * (1.0 / len(x))),
    "constants": lambda x: x * np.arange(len(x)) + np.ones(len(x)),
    "rows": lambda x: mg.vmap(lambda a: mg.sin(a) * a)(x),
    "rows of several results": lambda x: mg.vmap(lambda a, b: (a * b, {"sum": a + b}))(x, x * x),
    "scan": lambda x: mg.scan(lambda s, v: (s * 0.5 + v, s * s), 0.0, x),
    "scan of a list, backwards": lambda x: mg.scan(lambda s, v: ([s[0] * v, s[1]], None), [1.0, 2.0], x, reverse=True),
    "gradient of scan": mg.grad(lambda x: mg.scan(lambda s, v: (s * 0.5 + v, s), 1.0, x)[0]),
    "no rows": lambda x: mg.vmap(lambda v: None)(x) or x.sum(),
    "closure": lambda x: mg.vmap(lambda a: a * x[0] + x.shape[0])(x),
    "sparse Jacobian": mg.sparse_jacobian(chained),
    "sparse Jacobian of slices": mg.sparse_jacobian(lambda x: x[1:] * x[:-1] ** 2),
    "sparse Jacobian of a gradient": mg.sparse_jacobian(mg.grad(lambda x: np.sum(x**4))),
    "sparse Hessian": mg.sparse_hessian(lambda x: np.sum((x[1:] - x[:-1] ** 2) ** 2)),
    "a Value": lambda x: (x * WEIGHTS[0]).sum() + WEIGHTS[1],
    "astype": lambda x: x.astype(float) + 1,
    "primitive": lambda x: mg.tanh(x) * 2.0,
    "stacked": lambda x: np.stack([x, x * x]),
    "joined": lambda x: np.concatenate([x, x * x]),
    "small arrays of symbols": lambda x: np.array([x[0], x[1]]) * x[2],
    "rows one by one": lambda x: sum(row[0] for row in np.stack([x, x * x])),
    "number of NumPy": lambda x: x * np.float64(2.5),
    "an index that is an array": lambda x: x[np.arange(3)],
    "rolled, flipped and repeated": lambda x: np.roll(x, 1) * np.flip(x) + np.repeat(x, 2)[::2] + np.tile(x, 2)[-1],
    "like an array": lambda x: np.zeros_like(x) + x * np.full_like(x, 2.0) + np.gradient(x) + np.average(x),
    "sums of products": lambda x: np.einsum("i,i->", x, x) + np.inner(x, x) + np.tensordot(x, x, axes=1),
    "at the edges": lambda x: np.pad(x, 1, mode="edge")[2:] - np.hstack([x[:1], x[:-1]]),
    "an output that is known": lambda x: mg.scan(lambda s, v: (s * 0.5 + v, 1.0), 0.0, x)[0],
    "asked for its shape": lambda x: x * np.shape(x)[0] + np.size(x) * np.ndim(x),
    "a list": lambda x: [element * 2.0 for element in x],
    "mg.mean of rows": lambda x: mg.mean(np.stack([x, x])[0]) + mg.mean(x, axis=0),
    "a list in a tuple, with a number that is known": lambda x: (1.0, [element * x[0] for element in x], x[1]),
}  # fmt: skip


def squares(w, x, y):
    return np.mean((x @ w - y) ** 2)


def logistic(w, x, y):
    return np.mean(np.log1p(np.exp(x @ w)) - y * (x @ w))


def descended(w, x, y):
    def step(state, rate):
        value, slope = mg.value_and_grad(logistic)(state["w"], x, y)
        return {"w": state["w"] - rate * slope}, value

    return mg.scan(step, {"w": w}, np.array([0.1, 0.2, 0.3]))


def pulled_back(w, x, y):
    value, pull_back = mg.vjp(lambda w, shift: x @ w + shift, w, 0.5)
    return value, pull_back(value - y)


def curved(w, x, y):
    def network(point):
        return np.sum(np.tanh(w * point) * w)

    return mg.mean(mg.vmap(lambda point: mg.grad(mg.grad(network))(point) + network(point))(y))


def filtered(w, x, y):
    """The covariances begin with numbers, and depend on no row."""

    def likelihood(w):
        def step(state, seen):
            mean, variance = state[0], state[1] + w[0]
            gain = variance / (variance + w[1])
            return (mean + gain * (seen - mean), (1 - gain) * variance), mg.log(variance + w[1])

        return np.sum(mg.scan(step, (0.0, 1.0), y)[1])

    return mg.value_and_grad(likelihood)(w)


def mapped_tree(function, *trees):
    if isinstance(trees[0], dict):
        return {name: mapped_tree(function, *(tree[name] for tree in trees)) for name in trees[0]}
    if isinstance(trees[0], (list, tuple)):
        return [mapped_tree(function, *parts) for parts in zip(*trees, strict=True)]
    return function(*trees)


def step_of_tree(w, x, y):
    model = {"weights": [w], "shift": 0.5}
    slopes = mg.grad(lambda model: squares(model["weights"][0], x, y + model["shift"]))(model)
    return mapped_tree(lambda number, slope: number - 0.1 * slope, model, slopes)


INSIDE = {  # of w, a matrix x and y: derivatives that are taken inside of the function
    "a step of gradient descent": lambda w, x, y: w - 0.1 * mg.grad(squares)(w, x, y),
    "a model in a dict": lambda w, x, y: mg.value_and_grad(lambda p: squares(p["w"], x, y))({"w": w, "b": [0.5]}),
    "a tree of parameters": step_of_tree,
    "several arguments": lambda w, x, y: mg.grad(squares, argnums=(0, 2))(w, x, y),
    "a gradient by rows": lambda w, x, y: mg.grad(squares, argnums=1)(w, x, y),
    "the Jacobian of an array by a number": lambda w, x, y: mg.jacobian(lambda z: z * z * y)(w[0]),
    "the gradient by an element": lambda w, x, y: mg.grad(lambda z: z * y[1] * squares(w, x, y))(w[0]) * y,
    "Newton's method": lambda w, x, y: np.linalg.solve(mg.hessian(logistic)(w, x, y), mg.grad(logistic)(w, x, y)),
    "a step of Gauss and Newton": lambda w, x, y: mg.jacobian(lambda w: np.exp(x @ w) - y)(w).T @ y,
    "the Jacobian of a dict": lambda w, x, y: mg.jacobian(lambda w: {"sum": w.sum(), "rows": [x @ w]})(w),
    "a Hessian times a vector": lambda w, x, y: mg.hvp(lambda w: logistic(w, x, y))(w, w),
    "a tangent": lambda w, x, y: mg.jvp(lambda w, scale: scale * logistic(w, x, y), (w, 0.5), (w, 1.0)),
    "a pullback": pulled_back,
    "a gradient of a gradient": lambda w, x, y: mg.grad(lambda w: squares(w - mg.grad(squares)(w, x, y), x, y))(w),
    "gradients of all rows": lambda w, x, y: mg.vmap(mg.grad(lambda w, a, b: (w @ a - b) ** 2), (None, 0, 0))(w, x, y),
    "second derivatives in each row": curved,
    "steps in a loop": descended,
    "a state that begins with numbers": filtered,
    "a Value": lambda w, x, y: mg.grad(lambda w: squares(w, x, y) * WEIGHTS[0])(w)[0],
    "ridge regression": lambda w, x, y: np.linalg.solve(x.T @ x + w[0] * np.eye(3), x.T @ y),
}  # fmt: skip


OF_LABELS = {
    "signs": lambda w, x, y: np.log(1 + np.exp((1 - 2 * y) * (x @ w))).mean(),
    "a choice": lambda w, x, y: np.where(y == 1, x @ w, -(x @ w)).sum() * (0.5 + (y == 2).sum()),
    "one of each row": lambda w, x, y: -mg.log(x[np.arange(len(y)), y] @ np.exp(x @ w)),
    "one of each class": lambda w, x, y: np.where(y[:, None] == np.arange(3), x * w, 0.0).sum(),
    "a loop": lambda w, x, y: mg.vmap(lambda row, label: (row @ w) ** 2 * (label - 1))(x, y).mean(),
}
OF_WHOLE_ARRAYS = {  # of w, a matrix x and labels y: functions and losses of this library
    "softmax": lambda w, x, y: (mg.softmax(x * w, axis=1) ** 2).sum(),
    "softmax of the columns": lambda w, x, y: (mg.softmax(x * w, axis=0) * x).sum(axis=0),
    "logsumexp": lambda w, x, y: mg.logsumexp(x * w, axis=-1).mean(),
    "an axis that stays": lambda w, x, y: (x * w - mg.logsumexp(x * w, axis=1, keepdims=True)).sum(),
    "means": lambda w, x, y: mg.mean(x * w, axis=0) * mg.mean(x * w, axis=(0, 1)),
    "cross-entropy": lambda w, x, y: losses.cross_entropy(x * w, y),
    "cross-entropy with weights": lambda w, x, y: losses.cross_entropy(x * w, y, weights=[1.0, 2.0, 0.5]),
    "squared errors": lambda w, x, y: losses.mean_squared_error(x @ w, y),
    "squared errors of known numbers": lambda w, x, y: losses.mean_squared_error(x @ w, TARGETS),
    "known numbers in front": lambda w, x, y: losses.mean_squared_error(TARGETS, x @ w),
    "hinge": lambda w, x, y: losses.hinge(x @ w, 2 * (y > 0) - 1),
    "binary cross-entropy": lambda w, x, y: losses.binary_cross_entropy(x @ w, 0.5 * y, weights=[1.0, 3.0]),
}
LABELS, TARGETS = np.arange(ROWS) % 3, np.cos(np.arange(ROWS))
SHORT_INTEGERS = itertools.cycle([np.int8, np.int32])
OF_PRODUCTS = numbers(10), numbers(ROWS, 10), numbers(ROWS)


def of_several_kinds(x, factors, by=True, count=2):
    return (x * factors[0] + factors[1]).sum() * count if by else x


OF_SEVERAL = {  # functions of several arguments, and these
    "rows that are drawn for a step": (
        lambda w, x, y, chosen: w - 0.1 * mg.grad(squares)(w, x[chosen], y[chosen]),
        (numbers(3), numbers(ROWS, 3), numbers(ROWS), np.random.default_rng(3).integers(0, ROWS, 20)),
    ),
    "rows of a matrix": (
        mg.value_and_grad(lambda w, x, y: np.mean((x @ w["w"] - y) ** 2) + w["b"]),
        ({"w": numbers(4), "b": 0.5}, numbers(ROWS, 4), numbers(ROWS)),
    ),
    "sums along axes": (lambda x: (x.sum(axis=1), x.sum(axis=0), x.T[0]), (numbers(ROWS, 3),)),
    "numbers and lists": (of_several_kinds, (numbers(ROWS), [2.0, mg.Value(0.5)], True, 3)),
    # some lengths have a common factor with the number of weights, and others have none
    "a sum of two arrays of products": (mg.value_and_grad(lambda w, x, y: (x @ w) @ y), OF_PRODUCTS),
}


class TestAlikeRows:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", ALIKE)
    def test_few_rows_are_traced(self, name, caplog):
        assert not is_traced_in_full(caplog, ALIKE[name], numbers(ROWS))

    @pytest.mark.parametrize("name", INSIDE)
    def test_derivatives_inside_of_the_function(self, name, caplog):
        function, arguments = INSIDE[name], (numbers(3), numbers(ROWS, 3), numbers(ROWS))
        fast = mg.compile(function)
        assert not is_traced_in_full(caplog, function, *arguments, fast=fast)
        for found, expected in zip(*map(flat, (fast(*arguments), function(*arguments))), strict=True):
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize("name", OF_WHOLE_ARRAYS)
    def test_functions_of_whole_arrays(self, name, caplog):
        function, arguments = mg.jacobian(OF_WHOLE_ARRAYS[name]), (numbers(3), numbers(ROWS, 3), LABELS[::-1].copy())
        fast = mg.compile(function)
        assert not is_traced_in_full(caplog, function, *arguments, fast=fast)
        assert fast(*arguments) == pytest.approx(np.array(function(*arguments), float), rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize(
        "loss",
        [
            lambda x, y: losses.mean_squared_error(x, 0.5 * x, axis=0).sum(),
            lambda x, y: losses.mean_squared_error(x, 0.5 * x, 0).sum(),
            lambda x, y: losses.mean_squared_error(x, 0.5 * x, axis=-1)[3],
            lambda x, y: losses.cross_entropy(x.T, y, axis=0),
            lambda x, y: losses.cross_entropy(logits=x, targets=y),
        ],
    )
    def test_functions_of_whole_arrays_that_go_through_rows(self, loss, caplog):
        assert is_traced_in_full(caplog, loss, numbers(ROWS, 3), LABELS.copy())

    def test_a_loss_of_known_labels(self, caplog):
        function, arguments = mg.grad(lambda w, x: losses.cross_entropy(x * w, LABELS)), (numbers(3), numbers(ROWS, 3))
        fast = mg.compile(function)
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            found = fast(*arguments)
        assert "is traced for all" not in caplog.text
        assert found == pytest.approx(function(*arguments), rel=1e-12)
        assert fast(*arguments) == pytest.approx(found, rel=0)

    @pytest.mark.parametrize("function", [lambda xs: mg.logsumexp(xs, axis=0), lambda xs: mg.mean(xs, axis=0)])
    def test_lists_with_an_axis(self, function, caplog):
        assert is_traced_in_full(caplog, function, numbers(ROWS).tolist())

    @pytest.mark.parametrize("name", OF_SEVERAL)
    def test_several_arguments(self, name, caplog):
        function, arguments = OF_SEVERAL[name]
        assert not is_traced_in_full(caplog, function, *arguments)

    @pytest.mark.parametrize("rows", [407, *(pytest.param(rows, marks=pytest.mark.slow) for rows in (400, 431, 512))])
    @pytest.mark.unmeasured
    def test_numbers_of_rows(self, rows, caplog):
        assert not is_traced_in_full(caplog, mg.value_and_grad(lambda x: np.sum(chained(x) ** 2)), numbers(rows))

    def test_as_many_columns_as_rows_are_traced(self, caplog, monkeypatch):
        monkeypatch.setattr(of_rows, "FEWEST_ROWS", 200)
        scaled = lambda x: ((x - x.mean(axis=0)) / x.std(axis=0)).sum(axis=1)  # noqa: E731
        assert not is_traced_in_full(caplog, scaled, numbers(204, 44))
        assert "is traced for 76 of 204 rows" in caplog.text

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("name", "dtype"), [(name, dtype) for name in OF_LABELS for dtype in (np.int64, next(SHORT_INTEGERS))]
    )
    @pytest.mark.unmeasured
    def test_integers_beside_floats(self, name, dtype, caplog):
        labels = (np.arange(ROWS) * 7 % 3).astype(dtype)
        function = mg.value_and_grad(OF_LABELS[name])
        assert not is_traced_in_full(caplog, function, numbers(3), numbers(ROWS, 3), labels)

    @pytest.mark.parametrize("is_given", [True, False])
    def test_a_list_of_integers(self, is_given, caplog):
        rows, labels = numbers(ROWS, 2).tolist(), [number * 7 % 3 for number in range(ROWS)]

        def f(w, rows, labels=labels):
            total = 0.0
            for (one, other), label in zip(rows, labels, strict=True):
                total = total + (w[0] * one + w[1] * other) * (label - 1)
            return total

        assert not is_traced_in_full(caplog, mg.value_and_grad(f), [0.5, 2.0], rows, *[labels][:is_given])

    @pytest.mark.parametrize("transform", [lambda f: f, mg.value_and_grad])
    @pytest.mark.unmeasured
    def test_long_rows_are_one_program(self, transform, caplog):
        def paths(rate, x):
            def path(row):
                last, seen = mg.scan(lambda s, z: (s * mg.exp(rate * z), s), 1.0, row)
                return mg.maximum(np.mean(seen) - 0.5, 0.0) * last

            return np.mean(mg.vmap(path)(x))

        fast = mg.compile(transform(paths))
        assert not is_traced_in_full(caplog, fast.function, 0.2, numbers(ROWS, 40), fast=fast)
        assert "450 iterations, of which one program computes" in fast.explain()

    @pytest.mark.slow
    @pytest.mark.parametrize("transform", [lambda f: f, mg.value_and_grad])
    @pytest.mark.unmeasured
    def test_columns(self, transform, caplog):
        def paths(rate, x):
            def step(state, z):
                price, total = state
                price = price * mg.exp(rate / len(x[0]) + len(x[0]) ** -0.5 * z)
                return (price, total + price), None

            return mg.mean(mg.vmap(lambda row: mg.scan(step, (1.0, 0.0), row)[0][1] / len(row))(x))

        assert not is_traced_in_full(caplog, transform(paths), 0.2, numbers(40, ROWS))

    @pytest.mark.parametrize("backend", ["numpy", "jax"])
    def test_backends(self, backend):
        x = numbers(ROWS)
        value, slopes = mg.compile(mg.value_and_grad(lambda x: np.sum(chained(x) ** 2)), backend=backend)(x)
        expected, expected_slopes = run_in_full(mg.value_and_grad(lambda x: np.sum(chained(x) ** 2)), x)
        assert value == pytest.approx(expected, rel=1e-12)
        assert slopes == pytest.approx(expected_slopes, rel=1e-12)

    def test_gradients_of_values(self):
        fast = mg.compile(ALIKE["a Value"])
        x = numbers(ROWS)
        for _ in range(2):
            for weight in WEIGHTS:
                weight.grad = 0.0
            fast(x).backward()
            assert WEIGHTS[0].grad == pytest.approx(x.sum(), rel=1e-12)
            assert WEIGHTS[1].grad == 1.0

    def test_an_array_of_a_value(self):
        def sums(x):
            return mg.array([(x * WEIGHTS[0]).sum()])

        (found,), (expected,) = mg.compile(sums)(numbers(ROWS)), run_in_full(sums, numbers(ROWS))
        assert found.data == expected.data

    def test_under_no_grad(self):
        fast = mg.compile(ALIKE["a Value"])
        with mg.no_grad():
            assert fast(numbers(ROWS)).data == fast(numbers(ROWS)).data
            assert not fast(numbers(ROWS)).requires_grad

    def test_under_no_grad_what_depends_on_it(self, caplog):
        slope = mg.grad(lambda s, x: (x * WEIGHTS[0]).sum() * s * s)
        assert not is_traced_in_full(caplog, slope, 0.5, numbers(ROWS))
        fast = mg.compile(slope)
        assert fast(0.5, numbers(ROWS)).requires_grad
        with mg.no_grad():
            assert fast(0.5, numbers(ROWS)) == pytest.approx(slope(0.5, numbers(ROWS)))

    def test_explain_counts_all_rows(self):
        fast = mg.compile(mg.sparse_jacobian(chained))
        fast(numbers(ROWS))
        assert "Derivatives: 898 entries of 449 rows" in fast.explain()
        assert "1x449" in fast.explain()
        assert fast.explain(passes=True).splitlines()[1].split()[0] == "trace"

    def test_show_and_program(self, capsys):
        fast, x = mg.compile(mg.vmap(lambda a: a * a)), numbers(ROWS)
        fast(x + 1.0)
        assert fast(x).tolist() == (x * x).tolist()
        assert fast.cache_info().traces == 1
        fast.show(after="normalise")
        fast.show(after="adjoint")
        assert "n450 = n0 * n0" in capsys.readouterr().out
        executable = fast.program(x)
        executable.run()
        assert executable.buffer[executable.program.outputs].tolist() == (x * x).tolist()
        assert fast.cache_info().program_bytes > 0

    def test_show_what_is_in_another_order_for_other_rows(self, capsys):
        fast = mg.compile(ALIKE["constants"])
        fast(numbers(ROWS))
        fast.show(after="normalise")
        assert "n198 * 198 + 1" in capsys.readouterr().out

    def test_gradients_of_several_results(self):
        def slopes(results):
            parts = [results["loss"], results["rows"][7], results["loss"] * 2 + results["rows"].sum()]
            return [mg.gradient(part, WEIGHTS) for part in parts]

        def function(x):
            rows = WEIGHTS[0] * x + WEIGHTS[1]
            return {"loss": (rows * rows).mean(), "rows": rows, "largest": x.max()}

        x = numbers(ROWS)
        found = slopes(mg.compile(function)(x))
        assert found == slopes(run_in_full(function, x))
        assert np.allclose(found, slopes(function(x)), 1e-12)


def pendulum(steps, scale=0.01):
    def step(state, _):
        angle, speed = state
        speed = speed - scale * mg.sin(angle)
        return (angle + scale * speed, speed), None

    return lambda angle: mg.scan(step, (angle, 0.0), length=steps)[0][0]


def recurrent(w, x):
    state, _ = mg.scan(lambda h, x: (np.tanh(x + h @ w), None), np.zeros((3, 4)), x)
    return (state**2).sum()


def diffusing(w, x):
    u, _ = mg.scan(lambda u, x: (u + 0.1 * w[0, 0] * (np.roll(u, 1) - 2 * u + np.roll(u, -1)), None), w.ravel(), x)
    return (u**2).sum()


OVER_ITERATIONS = {"a recurrent net of several samples": recurrent, "a stencil": diffusing}


@pytest.mark.slow
class TestLoopsOfALength:
    @pytest.mark.parametrize("steps", [450, 511])
    @pytest.mark.unmeasured
    def test_few_iterations_are_traced(self, steps, caplog):
        assert not is_traced_in_full(caplog, mg.value_and_grad(pendulum(steps)), 1.0)

    def test_a_step_that_depends_on_how_many_there_are(self, caplog):
        assert not is_traced_in_full(caplog, mg.value_and_grad(pendulum(450, 1.0 / 450)), 1.0)

    @pytest.mark.parametrize("name", OVER_ITERATIONS)
    def test_sums_over_iterations_and_elements(self, name, caplog):
        function = mg.value_and_grad(OVER_ITERATIONS[name])
        arguments = numbers(4, 4), numbers(450, 3, 4)
        fast = mg.compile(function)
        assert not is_traced_in_full(caplog, function, *arguments, fast=fast)
        for found, expected in zip(*map(flat, (fast(*arguments), function(*arguments))), strict=True):
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize(
        "item", [lambda w, i: w[i, 1], lambda w, i: w[:, i].sum(), lambda w, i: w[i].sum(), lambda w, i: w.T[..., i][0]]
    )
    def test_indices_that_are_not_known(self, item, caplog):
        def last(w, indices, x):
            return mg.scan(lambda s, i: (np.tanh(0.5 * s + item(w, i[0]) * i[1]), None), 0.0, (indices, x))[0]

        function, arguments = mg.grad(last), (numbers(4, 3), np.arange(450) % 3, numbers(450))
        fast = mg.compile(function)
        assert not is_traced_in_full(caplog, function, *arguments, fast=fast)
        assert fast(*arguments) == pytest.approx(np.array(function(*arguments), float), rel=1e-9, abs=1e-14)

    def test_gradients_that_are_written_many_at_a_time_only_for_more_rows(self, caplog):
        """From 48 steps on, this filter has 16 operations on a level, which makes another order of them quicker."""
        step, seen, x = np.eye(3) + 0.1 * numbers(3, 3), numbers(2, 3), numbers(450, 2)

        def likelihood(noise, error):
            state, spread, total = np.zeros(3), np.eye(3), 0.0
            for observed in x:
                state, spread = step @ state, step @ spread @ step.T + noise * np.eye(3)
                wrong, of_wrong = observed - seen @ state, seen @ spread @ seen.T + error * np.eye(2)
                inverse = np.linalg.inv(of_wrong)
                gain = spread @ seen.T @ inverse
                state, spread = state + gain @ wrong, spread - gain @ seen @ spread
                total = total - 0.5 * (wrong @ inverse @ wrong) - 0.5 * np.log(np.linalg.det(of_wrong))
            return total

        function = mg.value_and_grad(likelihood, (0, 1))
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            value, slopes = mg.compile(function)(0.1, 0.5)
        assert re.findall("is traced for .* rows", caplog.text) == ["is traced for 42 of 450 rows"]
        expected, expected_slopes = function(0.1, 0.5)
        assert (value, *slopes) == pytest.approx((expected, *expected_slopes), rel=1e-9)

    def test_outputs_of_a_loop(self, caplog):
        def mean(x):
            return np.mean(mg.scan(lambda s, _: (s * x, s * s), x, length=450)[1])

        assert not is_traced_in_full(caplog, mean, 0.999)

    @pytest.mark.parametrize("caught", [Exception, BaseException])
    def test_an_exception_that_is_caught_does_not_stop_it(self, caught, caplog):
        def guarded(angle):
            try:
                return pendulum(450)(angle)
            except caught:
                return angle

        assert not is_traced_in_full(caplog, guarded, 1.0)

    def test_errors_of_the_function(self):
        with pytest.raises(ValueError, match="keep its structure"):
            mg.compile(lambda x: mg.scan(lambda s, _: ((s, x), None), x, length=450)[0])(1.0)
        with pytest.raises(TypeError, match="function"):
            mg.compile(lambda x: mg.scan(x, x, length=450)[0])(1.0)

    def test_a_state_that_counts(self, caplog):
        def counting(x):
            return mg.scan(lambda s, _: ((s[0] + 1, s[1] * (x if s[0] < 430 else 1.0)), None), (0, 1.0), length=450)[0][
                1
            ]

        assert is_traced_in_full(caplog, counting, 0.999)


def slopes_of(result):
    for centre in CENTRES:
        for value in centre:
            value.grad = 0.0
    result.backward()
    return [result.data, [value.grad for centre in CENTRES for value in centre]]


def pairs_of(rows):
    def total(w):
        result = 0.0
        for one, other in itertools.pairwise(rows):
            result = result + (one[0] * w - other[1]) ** 2
        return result

    return total


TRIANGLE = [[mg.Value(math.sin(3 * i + j)) for j in range(i + 1)] for i in range(5)]
CENTRES = [[mg.Value(math.cos(5 * k + i)) for i in range(5)] for k in range(3)]


def mixture(x):
    total = 0.0
    for point in x:
        apart = [[one - other for one, other in zip(point, centre, strict=True)] for centre in CENTRES]
        distances = [-sum([mg.dot(row, each[: len(row)]) ** 2 for row in TRIANGLE]) for each in apart]
        total = total + mg.logsumexp(distances)
    return total


class TestFewestIterations:
    @pytest.fixture(autouse=True)
    def _as_for_users(self, few_are_many, monkeypatch):
        monkeypatch.setattr(of_rows, "FEWEST_ROWS", AS_FOR_USERS[0])
        monkeypatch.setattr(of_rows, "FEWEST_ITERATIONS", AS_FOR_USERS[1])

    def test_of_a_scan(self, caplog):
        few = of_rows.FEWEST_ITERATIONS
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            mg.compile(pendulum(few - 1))(1.0)
            mg.compile(mg.vmap(lambda a: mg.sin(a) * a))(numbers(few))
            mg.compile(mg.vmap(lambda a: mg.sin(a) * a))(numbers(few).tolist())
        assert "is traced for" not in caplog.text
        assert not is_traced_in_full(caplog, pendulum(few), 1.0)
        assert f"is traced for 40 of {few} rows" in caplog.text

    @pytest.mark.parametrize("form", ["array", "list", "closed over"])
    def test_of_a_loop_in_python(self, form, caplog):
        x = numbers(of_rows.FEWEST_ITERATIONS)
        x = x if form == "array" else x.tolist()
        if form == "closed over":
            assert not is_traced_in_full(caplog, lambda w: sum(w * element for element in x), 2.0)
        else:
            assert not is_traced_in_full(caplog, goes_through, x)
        assert "is traced for 40" in caplog.text

    def test_beside_arrays_of_other_lengths(self, caplog):
        y = numbers(390)
        loop = pendulum(450)
        assert not is_traced_in_full(caplog, mg.value_and_grad(lambda x: loop(x) + (y * x).sum()), 1.0)
        assert "is traced for 42 of 450 rows" in caplog.text

    @pytest.mark.parametrize("kind", [list, np.array])
    def test_arguments_that_no_loop_goes_through(self, kind, caplog):
        x, y = numbers(500), numbers(3)
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            found = mg.compile(lambda x, y: x[7] * goes_through(y))(kind(x), y)
        assert found == x[7] * goes_through(y)
        assert "is traced for" not in caplog.text

    def test_what_has_no_outline_is_traced_in_its_own_code(self, caplog, monkeypatch):
        runs, attempt = [], indexing._attempt_with
        monkeypatch.setattr(indexing, "_attempt_with", lambda others, run: runs.append(run) or attempt(others, run))
        rows = numbers(500, 2).tolist()
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            value, slope = mg.compile(mg.value_and_grad(pairs_of(rows)))(0.5)
        assert (len(runs), caplog.text.count("trace number")) == (1, 1)
        expected, slope_of_eager = mg.value_and_grad(pairs_of(rows))(0.5)
        assert (value, slope) == (pytest.approx(expected), pytest.approx(slope_of_eager))

    def test_what_an_outline_changes_is_put_back(self):
        calls = [0]
        rows = numbers(500, 2).tolist()

        def counting(w):
            calls[0] += 1
            return pairs_of(rows)(w)

        assert mg.compile(counting)(0.5) == pytest.approx(pairs_of(rows)(0.5))
        assert calls == [1]

    @pytest.mark.parametrize("count", [500, 1100])
    @pytest.mark.parametrize("source", ["random", "generator", "iterator"])
    def test_what_a_refused_trace_has_drawn(self, source, count):
        rows, generator, numbered = numbers(count).tolist(), np.random.default_rng(0), iter(range(9))
        draw = {"random": random.random, "generator": generator.random, "iterator": partial(next, numbered)}[source]

        def noisy(w):
            total = draw() * w
            for row in rows:
                total = total + row * w
            return total

        before = random.getstate(), generator.bit_generator.state
        with pytest.raises(mg.TraceError):
            mg.compile(noisy)(0.5)
        assert (random.getstate(), generator.bit_generator.state) == before


class TestSamples:
    @pytest.mark.slow
    @pytest.mark.parametrize("is_unlike", [False, True])
    def test_they_lie_as_after_a_trace_for_all_rows(self, is_unlike, caplog, monkeypatch):
        found, looks = [], of_rows.has_samples
        monkeypatch.setattr(of_rows, "has_samples", lambda program: found.append(looks(program)) or found[-1])
        if is_unlike:
            monkeypatch.setattr(of_rows._Few, "transposed", Mock(side_effect=UnlikeRowsError))
        x = numbers(460, 5).tolist()
        fast = mg.compile(mixture)
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            slopes = slopes_of(fast(x))
        assert "is traced for all" not in caplog.text
        assert slopes == slopes_of(run_in_full(mixture, x))
        slopes_of(fast(numbers(468, 5).tolist()))
        assert found == [True, True]
        assert fast.cache_info().traces == 1


class TestAnotherNumberOfRows:
    def test_needs_no_trace(self):
        fast = mg.compile(mg.value_and_grad(lambda x: np.mean(np.exp(x) * x[0])))
        for rows in (400, 416, 1600):
            assert are_same(fast(numbers(rows)), run_in_full(fast.function, numbers(rows)))
        assert fast.cache_info().traces == 1
        assert fast.cache_info().programs == 3

    def test_numbers_of_rows_that_it_asks_for(self):
        fast = mg.compile(lambda x: x * (2.0 if len(x) < 1000 else 3.0))
        x = numbers(1600)
        assert (fast(x[:400])[0], fast(x)[0]) == (x[0] * 2.0, x[0] * 3.0)

    @pytest.mark.parametrize("rows_before", [400, 416])
    def test_what_was_replaced_is_traced(self, rows_before):
        settings = {"factor": 2.0}
        fast = mg.compile(lambda x: x * settings["factor"])
        x = numbers(416)
        assert fast(x[:rows_before]).tolist() == (x[:rows_before] * 2.0).tolist()
        settings["factor"] = 3.0
        assert fast(x).tolist() == (x * 3.0).tolist()
        assert fast.cache_info().traces == 2

    def test_another_remainder_is_traced_and_the_oldest_is_forgotten(self):
        fast = mg.compile(lambda x: x * 2)
        for rows in [*range(400, 408), 409]:
            fast(np.stack([numbers(rows)] * 2, axis=1) if rows == 409 else numbers(rows))
        fast(numbers(432))
        assert fast.cache_info().traces == 10


class TestSignalHandlers:
    @pytest.mark.parametrize(
        ("rows", "call", "fewest"), [(ROWS, 1, 400), (ROWS, 6, 400), (390, 2, 400), (390, 3, 400), (ROWS, 1, 1024)]
    )
    def test_what_a_handler_raises_goes_to_the_caller(self, rows, call, fewest, monkeypatch):
        monkeypatch.setattr(of_rows, "FEWEST_ROWS", fewest)

        class StopError(Exception):
            pass

        count = 0

        def handler(number, frame):
            nonlocal count
            count += 1
            if count == call:
                raise StopError

        def body(a):
            for _ in range(60):
                a = mg.sin(a) * a
            signal.raise_signal(signal.SIGUSR1)
            return a

        before = signal.signal(signal.SIGUSR1, handler)
        try:
            with pytest.raises(StopError):
                mg.compile(mg.vmap(body))(numbers(rows))
        finally:
            signal.signal(signal.SIGUSR1, before)


def remembers(x):
    counts = [0]

    def body(a):
        counts[0] += 1
        return a * (1 if counts[0] < 400 else 2)

    return mg.vmap(body)(x)


def counts_steps(x):
    counts = [0]

    def step(total, a):
        counts[0] += 1
        return total + a * (1 if counts[0] < 400 else 2), None

    return mg.scan(step, 0.0, x)[0]


def catches(x):
    try:
        return np.asarray(x)[min(len(x) - 1, 420)] * 2
    except Exception:
        return x[0]


def catches_truth(x):
    try:
        return x[0] if np.asarray(x)[min(len(x) - 1, 420)] else x[1]
    except Exception:
        return x[0]


def catches_keys(x):
    try:
        return {np.asarray(x)[min(len(x) - 1, 420)]: x[0]}.popitem()[1] * 2
    except Exception:
        return x[0]


def changes(x):
    x = x.copy()
    x[0] = 1.0
    return x


def under_no_grad(x):
    with mg.no_grad():
        return x * 2


own = Primitive("own", "own", lambda x: 2.0 * x, lambda gradient, out, x: 2.0 * gradient)

UNLIKE = {
    "a slice by a number": lambda x: x[:420].sum(),
    "an element by a number": lambda x: x[min(len(x) - 1, 420)] * 2,
    "a decision on the length": lambda x: (x * 2 if len(x) < 400 else x * 3).sum(),
    "an array by the length": lambda x: np.where(np.arange(len(x)) < 400, x, 2 * x),
    "many constants": lambda x: np.linspace(0.0, 1.0, len(x)) * x,
    "a row that remembers": remembers,
    "a step that remembers": counts_steps,
    "a state that counts": lambda x: mg.scan(
        lambda s, v: ((s[0] + 1, s[1] + (v if s[0] < 400 else 2 * v)), None), (0, 0.0), x
    )[0][1],
    "rows with numbers": lambda x: mg.vmap(lambda i, v: v * (1 if i < 400 else 2))(np.arange(len(x)), x),
    "rows with a list": lambda x: mg.vmap(lambda i, v: v * (1 if i < 400 else 2))(list(range(len(x))), x),
    "rows of lists": lambda x: mg.vmap(lambda v: [v, v])(x)[0],
    "the numbers in a list": lambda x: x.tolist()[min(len(x) - 1, 420)] * 2,
    "an element behind NumPy's back": lambda x: np.asarray(x)[min(len(x) - 1, 420)] * 2,
    "an error that is caught": catches,
    "a truth that is caught": catches_truth,
    "a key that is caught": catches_keys,
    "a changed array": changes,
    "a long program": lambda x: sum(x[i] for i in range(0, len(x), 200)) + sum(x[0] * k for k in range(2100)),
    "a function without outline": lambda x: np.quantile(x, 0.5),
    "a method of a ufunc": lambda x: np.subtract.accumulate(x),
    "another reduction": lambda x: np.subtract.reduce(np.stack([x, x])),
    "where= of a sum": lambda x: np.add.reduce(x, where=np.arange(len(x)) > 2),
    "two results": lambda x: np.divmod(x, 0.3)[0],
    "an index that is an array": lambda x: x[np.argsort(x)],
    "an index of bools": lambda x: x[np.arange(len(x)) > 3],
    "a view": lambda x: np.stack([x, x]).diagonal() * 2,
    "rounded": lambda x: x.round(1),
    "another dtype": lambda x: x.astype(object) * 2,
    "a transform that asks how many rows there are": lambda x: mg.grad(lambda y: y[:420].sum())(x),
    "a transform of a list": lambda x: mg.jacobian(lambda y: y[0] * x)([x[0], x[1]]),
    "the gradient by an int": lambda x: mg.grad(lambda p: (p["n"] * x).sum())({"n": 3}),
    "a sparse Jacobian inside": lambda x: mg.sparse_jacobian(chained)(x * 1.0),
    "a sparse Jacobian of elements": lambda x: mg.sparse_jacobian(lambda y: [y[0] * y[1]])([x[0], x[1]]),
    "several arrays": lambda x: np.gradient(np.stack([x, x]))[1] * 2,
    "an array of many objects": lambda x: np.array([x[0]] * 1001) * 2.0,
    "the gradient of a known number": lambda x: mg.grad(lambda y: 3.0)(x) + x,
    "a gradient that remembers": lambda x: mg.grad(lambda y: remembers(y).sum())(x),
    "an operand of another class": lambda x: np.transpose(x, range(1)) * 2,
    "under no_grad": under_no_grad,
    "a primitive of the user": own,
    "a primitive of the user on an element": lambda x: own(x[0]) * x,
    "arrays of objects": lambda x: np.array([x[0] for _ in range(100)]) * x[:100],
    "a list as a result": lambda x: [x[0]] * len(x),
    "known numbers as a result": lambda x: (x * 2, np.arange(3.0)),
}  # fmt: skip


class TestOtherRows:
    @pytest.mark.slow
    @pytest.mark.parametrize("name", UNLIKE)
    def test_all_rows_are_traced(self, name, caplog):
        assert is_traced_in_full(caplog, UNLIKE[name], numbers(ROWS))

    @pytest.mark.parametrize("other", [np.float64(2.0), np.arange(ROWS), np.ones(ROWS, bool), [1.0] * 1001])
    def test_other_arguments(self, other, caplog):
        assert is_traced_in_full(caplog, lambda x, other: x * 2 + np.sum(other), numbers(ROWS), other)

    @pytest.mark.unmeasured
    def test_sums_of_integers_that_are_out_of_range_for_more_rows(self, caplog):
        """They are exact as Python's and NumPy's are, or the function runs eagerly."""
        given = numbers(ROWS), np.full(ROWS, 2**31 - 1)
        assert is_traced_in_full(caplog, lambda x, y: (y * 2**15).sum() * 3 + x.sum(), *given)
        assert is_traced_in_full(caplog, lambda x, y: x.sum() * (y // 7 * y // 5).cumsum()[-1], *given)

    def test_integers_that_are_no_floats_are_refused(self):
        fast = mg.compile(lambda x, y: (x * y).sum())
        fast(numbers(ROWS), np.arange(ROWS))
        with pytest.raises(mg.TraceError, match=r"2\*\*53"):
            fast(numbers(ROWS), np.arange(ROWS) + 2**53)

    def test_errors_of_the_function(self):
        with pytest.raises(ValueError, match="give the axis"):
            mg.compile(lambda x: mg.mean(x))(numbers(ROWS, 2))
        with pytest.raises(ValueError, match="mean of nothing: an array of shape"):
            mg.compile(lambda x: mg.mean(x[:, :0], axis=1))(numbers(ROWS, 3))
        with pytest.raises(IndexError):
            mg.compile(lambda x: x[len(x)])(numbers(ROWS))

    def test_a_symbol_that_stays_is_refused(self):
        kept = []
        with pytest.raises(mg.compiler.TraceError, match="kept"):
            mg.compile(lambda x: kept.append(x.sum()) or x)(numbers(ROWS))
        assert kept == []

    def test_what_the_function_counts(self, caplog):
        counts = {"calls": 0}

        def function(x):
            counts["calls"] += 1
            return x * 2

        assert is_traced_in_full(caplog, function, numbers(ROWS))

    def test_programs_that_are_checked(self, caplog):
        with caplog.at_level(logging.DEBUG, logger="micrograd"):
            mg.compile(lambda x: x * 2, verify=True)(numbers(ROWS))
        assert "is traced for all" in caplog.text

    def test_a_large_program(self, caplog, monkeypatch):
        def function(x):
            return mg.vmap(lambda v: v * 2)(x)

        fast = mg.compile(function)
        fast(numbers(ROWS))
        monkeypatch.setattr(of_rows, "_MOST_NUMBERS", 100)
        assert "1x450" in fast.explain()
        assert not is_traced_in_full(caplog, lambda x: x * 3, numbers(ROWS))
        assert is_traced_in_full(caplog, function, numbers(ROWS))


UNARY = [np.sin, np.tanh, mg.tanh, lambda a: a * a, lambda a: 0.5 * a + 1, lambda a: np.where(a > 0.3, a, -a)]
BINARY = [np.add, np.multiply, lambda a, b: a - b, np.maximum, mg.vmap(lambda a, b: mg.sin(a) * b + 1)]
ENDS = [np.sum, np.mean, np.max, lambda a: a[0] * a[-2], lambda a: mg.scan(lambda s, v: (s * 0.5 + v, None), 0.0, a)[0]]
STEPS = st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 30), st.integers(0, 2))


def function_of(steps, end):
    """A random function of two arrays: slices, functions of elements, and loops."""

    def function(x, y):
        arrays = [x, y]
        for what, one, other, cut in steps:
            a, b = arrays[one % len(arrays)], arrays[other % len(arrays)]
            if what == 0:
                made = UNARY[one % len(UNARY)](a)
            elif what == 1:
                made = a[cut:] if other % 2 else a[: len(a) - cut]
            else:
                rows = min(len(a), len(b))
                made = BINARY[one % len(BINARY)](a[:rows], b[len(b) - rows :])
            arrays.append(made)
        return arrays[-1] if end is None else ENDS[end](arrays[-1])

    return function


@pytest.mark.slow
class TestRandomFunctions:
    @settings(max_examples=10)  # each is compiled twice
    @given(st.lists(STEPS, min_size=1, max_size=6), st.integers(0, 4), st.integers(400, 500), st.integers(0, 3))
    def test_same_numbers(self, steps, end, rows, transform):
        function = function_of(steps, None if transform in (0, 3) else end)
        made = [
            mg.vmap(lambda a: a),
            mg.value_and_grad(function),
            mg.sparse_hessian(function),
            mg.sparse_jacobian(function),
        ]
        chosen = function if transform == 0 else made[transform]
        arguments = numbers(rows), numbers(rows)[::-1].copy()
        assert are_same(mg.compile(chosen)(*arguments), run_in_full(chosen, *arguments))


class TestExtrapolated:
    @pytest.mark.parametrize(
        "of",
        [
            np.arange,
            lambda n: np.full(n, -1),
            lambda n: np.arange(n)[::-1] + 100,
            lambda n: np.concatenate([np.arange(n), 7 * n + 2 * np.arange(n - 1)]),
            lambda n: np.arange(0, n, 2),
            lambda n: np.stack([np.arange(n), np.full(n, 7)], axis=1).ravel(),
            lambda n: np.append(np.stack([np.arange(n), 3 * n - np.arange(n)], axis=1).ravel(), [1, 2, n]),
            lambda n: np.arange(2 * n).reshape(2, n),
            lambda n: np.arange(3 * n).reshape(n, 3),
            lambda n: np.arange(n, dtype=np.int32),
            lambda n: np.tile([0.5, 1.5], n),
            lambda n: np.arange(float(n)),
            lambda n: np.array([float(n), 1.0 / n, 0.5]),
            lambda n: np.array([[n, 2], [3, 4 * n]]),
            lambda n: np.zeros(n, dtype=bool),
            lambda n: np.append(np.zeros(60 * n), np.tile([0, 2, 3], n)).astype(int),
            lambda n: np.concatenate([np.zeros(5 * n), np.tile([0, 2, 3], n), [7, 1, 9, 4], np.tile([5, 1], n)]).astype(
                int
            ),
        ],
    )
    @pytest.mark.parametrize("size", [48, 1000])
    def test_arrays(self, of, size):
        assert is_same(extrapolated(SIZES, list(map(of, SIZES)), size), of(size))

    @pytest.mark.parametrize(
        "things",
        [
            [[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.4, 0.5]],
            [[0.1], [0.2], [0.3], [-0.4]],
            [[0.1], [0.2], [0.3], [math.inf]],
            [[0.1], [-0.2], [0.3], [0.4]],
        ],
    )
    def test_floats_that_may_be_another_one(self, things):
        with pytest.raises(UnlikeRowsError):
            floats_of(things[:3], things[3])

    @pytest.mark.parametrize(
        "things",
        [
            [1, 2, 4.0],
            [1, 4, 16],
            [1, 2, 5],
            [0.1, 0.2, 0.3],
            [0.0, 0.5, 0.5],
            [math.inf, 1.0, 1.0],
            ["a 1", "b 2", "a 3"],
            [[1], [1, 2], [1, 2, 3]],
            [len, max, len],
            [np.arange(3), np.arange(3.0), np.arange(3)],
            [np.array([len]), np.array([len]), np.array([len])],
            [np.zeros((2, n, n), dtype=int) for n in SIZES],
            [np.arange(n) ** 2 for n in SIZES],
            [np.arange(100 - n) for n in SIZES],
            [np.arange(n - 31) for n in SIZES],
            [np.arange(n + n // 10) ** 2 for n in SIZES],
            [np.arange(n) ** 2 for n in (20, 36, 68)],
            [np.linspace(0.0, 1.0, 8 * n) for n in SIZES],
            [np.repeat([1, 5, 2], [n, 90 - n, n]) for n in SIZES],
            [np.append(np.tile([5, 1], 95 - n), np.tile([0, 2, 3], n)) for n in SIZES],
            [[float(i) / 7 for i in range(4 * n)] for n in SIZES],
            [[float(i) / 7 for i in range(n // 2)] for n in SIZES],
            [np.linspace(0.0, 1.0, n // 2) for n in SIZES],
        ],
    )
    def test_what_is_not_alike(self, things):
        with pytest.raises(UnlikeRowsError):
            extrapolated(SIZES, things, 100)

    def test_what_is_the_same(self):
        assert is_same({"a": (1, [0.5, np.arange(2)])}, {"a": (1, [0.5, np.arange(2)])})
        assert not is_same([0.0], [-0.0])
        assert not is_same([1], [1, 2])
        assert not is_same({"a": 1}, {"b": 1})
        assert not is_same(np.arange(2), np.arange(2.0))
        assert not is_same(1, 1.0)
        assert is_same(math.nan, math.nan)
        assert is_same(len, len)


THREE = np.array([1.0, 2.0, 3.0])
AT_POSITIONS = {
    "a table": lambda w, y: np.interp(300.5, np.arange(len(y)), y * w),
    "an element": lambda w, y: np.take(y * w, 300, mode="clip"),
    "an element by a method": lambda w, y: (y * w).take(300, mode="clip"),
    "below a diagonal": lambda w, y: np.tril(np.outer(y * w, THREE), -60).sum(),
    "above a diagonal": lambda w, y: np.triu(np.outer(THREE, y * w), k=np.int64(60)).sum(),
    "a diagonal": lambda w, y: np.trace(np.outer(THREE, y * w), 60) + (y * y * w).sum(),
    "a diagonal by a method": lambda w, y: np.outer(THREE, y * w).trace(offset=60) + (y * y * w).sum(),
    "a wrapped end": lambda w, y: np.pad(y * w, (100, 0), mode="wrap")[0] + (y * y * w).sum(),
    "a reflected end": lambda w, y: np.pad(y * w, [[75, 75]], mode="reflect")[0] + (y * y * w).sum(),
    "a shift": lambda w, y: np.roll(y * w, 58)[0] + (y * y * w).sum(),
    "a clipped position beside a longer axis": lambda w, y: (
        np.take(np.pad(np.outer(y * w, THREE), ((0, 0), (0, 1200))), [60, 200], axis=0, mode="clip").sum()
        + (y * y * w).sum()
    ),
    "a diagonal of blocks": lambda w, y: np.tril((y * w).reshape(-1, 8), -100).sum() + (y * y * w).sum(),
    "a trace of blocks": lambda w, y: np.trace((y * w).reshape(-1, 8), -100) + (y * y * w).sum(),
    "a clipped position in every eighth": lambda w, y: (
        np.take((y * w)[::8], [100], mode="clip").sum() + (y * y * w).sum()
    ),
    "the largest of moving sums": lambda w, y: (lambda c: (c[60:] - c[:-60]).max())(np.cumsum(np.sin(50.0 * y) * w)),
    "squares of moving sums": lambda w, y: (lambda c: ((c[100:] - c[:-100]) ** 2).sum())(np.cumsum(y * w)),
    "moving products": lambda w, y: (lambda c: (c[60:] * c[:-60]).sum())(np.cumprod(1.0 + 0.01 * y * w)),
    "averages with a lag": lambda w, y: (lambda c: (c[60:] * c[:-60]).sum())(
        mg.scan(lambda s, v: (0.9 * s + v * w, s * s), 0.0, y)[1]
    ),
}


@pytest.mark.parametrize("name", AT_POSITIONS)
def test_positions_beyond_the_few_rows_that_would_be_traced(name):
    function = mg.value_and_grad(AT_POSITIONS[name])
    for rows in (1024, 2000) if "moving" in name else (1024,):
        y = np.linspace(0.0, 1.0, rows)
        assert mg.compile(function)(1.5, y) == pytest.approx(tuple(map(float, function(1.5, y))), rel=1e-11)


def shifted(a):
    return np.concatenate([np.zeros(30), a[:-30]])


def shifted_often(a):
    for _ in range(25):
        a = np.pad(a, (5, 0))[:-5]
    return a


COUNTED = {
    "ones": lambda w, x: np.minimum(np.sum(np.ones_like(x)), 100.0) * np.sum(x * w),
    "parts of ones": lambda w, x: np.minimum(np.sum(np.ones_like(x)[1:]), 100.0) * np.sum(x * w),
    "ones so far": lambda w, x: np.sum(np.where(np.cumsum(np.full_like(x, 1.0)) > 100, x * w, x)),
    "ones of iterations": lambda w, x: np.sum(np.minimum(np.cumsum(mg.vmap(lambda v: 1.0)(x)), 100.0) * x * w),
    "like a number": lambda w, x: np.minimum(np.sum(np.full_like(x, w, dtype=object)), 100.0) * np.sum(x),
    "four shifts": lambda w, x: np.sum(shifted(shifted(shifted(shifted(x * w)))) * x),
    "many shifts": lambda w, x: np.sum(shifted_often(x * w) * x) + np.sum(x * w),
    "a float for a diagonal": lambda w, x: np.sum(np.tril(np.outer(THREE * w, x), 100.0)),
    "elements of a list": lambda w, x: np.sum(np.take(x * w, [0, 1, 2]) + np.take(x * w, np.array([5, 6, 7]))),
}


@pytest.mark.parametrize("name", COUNTED)
def test_known_numbers_that_depend_on_how_many_rows_there_are(name):
    function, x = mg.value_and_grad(COUNTED[name]), np.linspace(0.2, 1.0, 1035)
    found, expected = mg.compile(function)(0.7, x), function(0.7, x)
    assert tuple(map(float, found)) == pytest.approx(tuple(map(float, expected)), rel=1e-11)


@pytest.mark.usefixtures("few_are_many")
def test_functions_of_arrays_that_are_called_in_each_iteration(caplog):
    def function(w, x):
        total = 0.0
        for v in x:
            total = total + np.sort(np.array([v * w, w, v]))[1]
        return total

    x = numbers(450)
    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        assert mg.compile(function)(0.7, x) == pytest.approx(float(function(0.7, x)), rel=1e-12)
    assert "is traced for all" not in caplog.text


@dataclass(frozen=True)
class Part:
    first: int
    second: int


def test_lists_that_grow_may_have_objects_in_them():
    def made(count):
        return [Part(number, 2 * count - number) for number in range(count)]

    assert extrapolated([40, 48, 56], [made(40), made(48), made(56)], 100, {}) == made(100)


def test_cells_that_are_fewer_than_the_steps_take_no_more_rows(caplog):
    """What moves from cell to cell does so in arrays that do not get longer with the steps."""

    def heated(w):
        def step(u, _):
            return u + w * (np.roll(u, 1) - 2.0 * u + np.roll(u, -1)), None

        return np.sum(mg.scan(step, np.linspace(0.0, 1.0, 30) * w, length=600)[0] ** 2)

    with caplog.at_level(logging.DEBUG, logger="micrograd"):
        assert mg.compile(heated)(0.1) == pytest.approx(float(heated(0.1)), rel=1e-12)
    assert "is traced for all" not in caplog.text
    assert "is traced for 40 of 600 rows" in caplog.text
