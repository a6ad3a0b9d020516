"""Sparse derivatives beside CasADi's: ``python tests/benchmarks/sparse.py [400 4000 40000]``.

The chained problems 5.1 to 5.5 of Luksan and Vlcek (1999), in plain loops: the Jacobian of the constraints, and the
Hessian of the Lagrangian. Ours return a ``csr_array`` for an array of variables. CasADi's SX functions are called in
two ways: as functions, which give a sparse ``DM`` for an array, and through a buffer, where they write the entries into
an array that is given once; that is the fastest way to call them, and gives no matrix. All are called in turns,
and the least time of each counts. First all must have equal entries. Without CasADi its columns are left out. Seconds
until ready are processor time, as other programs may run.

JAX has no sparse Jacobians. Where all rows read equally many neighbours, its column is the band by hand: the gradient
of one row, mapped over the windows of x by ``vmap`` and compiled by ``jit``. Its result is a dense band.

Then the Jacobian of a bundle adjustment with 20 cameras and 200 points, in multiples of the fastest primal.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from programs.bundle import data, projected
from run import table

import micrograd as mg

if TYPE_CHECKING:
    from collections.abc import Callable

casadi: Any = importlib.import_module("casadi") if importlib.util.find_spec("casadi") else None
jax: Any = importlib.import_module("jax") if importlib.util.find_spec("jax") else None
ROUNDS = 15
WIDTHS = {1: 3, 4: 3, 5: 5}  # of the bands, by the number of the problem


class Problem:
    """Chained problems, in terms of sin, exp and tan of Values or of CasADi's symbols."""

    def __init__(self, library: Any) -> None:
        self.sin, self.exp, self.tan = library.sin, library.exp, library.tan
        self.absolute = (lambda x: mg.abs(x)) if library is mg else library.fabs

    def objective(self, number: int, x: Any) -> Any:
        """The objective of problem 5.number."""
        terms = getattr(self, f"_objective_{number}")
        count = range(len(x)) if number == 5 else range(len(x) - 1) if number == 1 else range(0, len(x) - 3, 2)
        total = 0.0
        for i in count:
            total = total + terms(x, i)
        return total

    def constraints(self, number: int, x: Any) -> list[Any]:
        """The constraints of problem 5.number."""
        n = len(x)
        if number == 3:
            last = 4 * x[n - 1] - x[n - 2] * self.exp(x[n - 2] - x[n - 1]) - 3
            return [3 * x[0] ** 3 + 2 * x[1] - 5 + self.sin(x[0] - x[1]) * self.sin(x[0] + x[1]), last]
        count = {1: n - 2, 2: n - 7, 4: n - 2, 5: n - 4}[number]
        return [getattr(self, f"_constraint_{number}")(x, k) for k in range(count)]

    def _objective_1(self, x: Any, i: int) -> Any:
        return 100 * (x[i] ** 2 - x[i + 1]) ** 2 + (x[i] - 1) ** 2

    def _objective_2(self, x: Any, i: int) -> Any:
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        first = 100 * (a**2 - b) ** 2 + (a - 1) ** 2 + 90 * (c**2 - d) ** 2
        return first + (c - 1) ** 2 + 10 * (b + d - 2) ** 2 + (b - d) ** 2 / 10

    def _objective_3(self, x: Any, i: int) -> Any:
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        return (a + 10 * b) ** 2 + 5 * (c - d) ** 2 + (b - 2 * c) ** 4 + 10 * (a - 10 * d) ** 4

    def _objective_4(self, x: Any, i: int) -> Any:
        a, b, c, d = x[i], x[i + 1], x[i + 2], x[i + 3]
        return (self.exp(a) - b) ** 4 + 100 * (b - c) ** 6 + self.tan(c - d) ** 4 + a**8 + (d - 1) ** 2

    def _objective_5(self, x: Any, i: int) -> Any:
        before = x[i - 1] if i else 0.0
        after = x[i + 1] if i + 1 < len(x) else 0.0
        return self.absolute((3 - 2 * x[i]) * x[i] - before - after + 1) ** (7 / 3)

    def _constraint_1(self, x: Any, k: int) -> Any:
        sines = self.sin(x[k + 1] - x[k + 2]) * self.sin(x[k + 1] + x[k + 2])
        return 3 * x[k + 1] ** 3 + 2 * x[k + 2] - 5 + sines + 4 * x[k + 1] - x[k] * self.exp(x[k] - x[k + 1]) - 3

    def _constraint_2(self, x: Any, k: int) -> Any:
        total = (2 + 5 * x[k + 5] ** 2) * x[k + 5] + 1
        for i in range(max(k - 5, 0), k + 2):
            total = total + x[i] * (x[i] + 1)
        return total

    def _constraint_4(self, x: Any, k: int) -> Any:
        return 8 * x[k + 1] * (x[k + 1] ** 2 - x[k]) - 2 * (1 - x[k + 1]) + 4 * (x[k + 1] - x[k + 2] ** 2)

    def _constraint_5(self, x: Any, k: int) -> Any:
        first = 8 * x[k + 2] * (x[k + 2] ** 2 - x[k + 1]) - 2 * (1 - x[k + 2]) + 4 * (x[k + 2] - x[k + 3] ** 2)
        return first + x[k + 1] ** 2 - x[k] + x[k + 3] - x[k + 4] ** 2


def ours(number: int, kind: str) -> Callable[..., Any]:
    """The function of x and the multipliers, not yet traced."""
    problem = Problem(mg)
    if kind == "Jacobian":
        return mg.compile(mg.sparse_jacobian(lambda x: problem.constraints(number, x)))

    def lagrangian(x: Any, multipliers: Any) -> Any:
        total = problem.objective(number, x)
        for multiplier, residual in zip(multipliers, problem.constraints(number, x), strict=True):
            total = total + multiplier * residual
        return total

    return mg.compile(mg.sparse_hessian(lagrangian))


def theirs(number: int, kind: str, n: int, m: int) -> tuple[Any, Callable[..., Any], Callable[..., Any]]:
    """CasADi's pattern, what writes its entries into a buffer, and its function."""
    problem, x, multipliers = Problem(casadi), casadi.SX.sym("x", n), casadi.SX.sym("l", m)
    variables = casadi.vertsplit(x)
    residuals = casadi.vertcat(*problem.constraints(number, variables))
    if kind == "Jacobian":
        matrix, inputs = casadi.jacobian(residuals, x), [x]
    else:
        total = problem.objective(number, variables) + casadi.dot(multipliers, residuals)
        matrix, inputs = casadi.hessian(total, x)[0], [x, multipliers]
    function = casadi.Function("f", inputs, [matrix])
    buffer, run = function.buffer()
    result, kept = np.zeros(matrix.nnz()), []

    def call(*arguments: Any) -> Any:
        kept[:] = [np.ascontiguousarray(a) for a in arguments]
        for place, array in enumerate(kept):
            buffer.set_arg(place, memoryview(array))
        run()
        return result

    buffer.set_res(0, memoryview(result))
    return matrix.sparsity(), call, function


def band(number: int, n: int) -> Callable[..., Any]:
    """JAX's band of a Jacobian."""
    jax.config.update("jax_enable_x64", True)  # there is no other way
    jnp, width = jax.numpy, WIDTHS[number]
    problem = Problem(jnp)
    of_row = jax.grad(lambda window: getattr(problem, f"_constraint_{number}")(window, 0))
    windows = np.arange(n - width + 1)[:, None] + np.arange(width)
    compiled = jax.jit(lambda x: jax.vmap(of_row)(x[windows]))
    return lambda x: np.asarray(compiled(x))


def seconds(call: Callable[[], Any], least: float = 0.02) -> float:
    """Of one call."""
    count, taken = 1, 0.0
    while taken < least:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        taken, count = time.perf_counter() - begin, 2 * count
    return taken / (count // 2)


def row(number: int, kind: str, n: int) -> list[str]:
    """The row of a matrix: entries, seconds until ready, and microseconds of a call, ours and theirs."""
    x = 0.3 + 0.2 * np.sin(np.arange(n))
    m = 2 if number == 3 else n - {1: 2, 2: 7, 4: 2, 5: 4}[number]
    arguments = [x] if kind == "Jacobian" else [x, 0.5 + 0.1 * np.cos(np.arange(m))]
    begin = time.process_time()
    fast = ours(number, kind)
    matrix = fast(*arguments)
    found = [f"5.{number}", kind, f"{n:,}", f"{matrix.nnz:,}", f"{time.process_time() - begin:.2f}"]
    if casadi is None:
        return [*found, f"{1e6 * seconds(lambda: fast(*arguments)):.0f}"]
    begin = time.process_time()
    pattern, call, function = theirs(number, kind, n, m)
    entries = call(*arguments).copy()
    ready = time.process_time() - begin
    import scipy.sparse

    dense = scipy.sparse.csc_array((entries, np.array(pattern.row()), np.array(pattern.colind())), shape=matrix.shape)
    scale = np.abs(entries).max()
    assert np.abs(matrix - dense).max() <= 1e-9 * scale, (number, kind)
    runs: list[Callable[..., Any]] = [fast, function, call]
    if jax is not None and kind == "Jacobian" and number in WIDTHS:
        by_hand = band(number, n)
        assert np.allclose(by_hand(x).ravel(), matrix.data)
        runs.append(by_hand)
    mine, other, buffered, *of_jax = fastest(*(lambda run=run: run(*arguments) for run in runs))
    numbers = [f"{mine:.0f}", f"{len(entries):,}", f"{ready:.2f}", f"{other:.0f}", f"{mine / other:.2f}"]
    return [*found, *numbers, f"{buffered:.0f}", f"{mine / buffered:.2f}", f"{of_jax[0]:.0f}" if of_jax else ""]


def fastest(*calls: Callable[[], Any]) -> list[float]:
    """Microseconds of each, called in turns: the least, as other programs may run."""
    samples = [[seconds(call) for call in calls] for _ in range(ROUNDS)]
    return [1e6 * min(column) for column in zip(*samples, strict=True)]


def bundle_row(cameras: int = 20, points: int = 200, observations: int = 1000) -> list[str]:
    """The sparse Jacobian of ADBench's residuals, and their fastest computation."""
    w, given = data(cameras, points, observations)
    x = np.concatenate([np.ravel(w[name]) for name in ("cameras", "points", "weights")])
    indices = list(zip(given["cameras"], given["points"], given["seen"], strict=True))

    def residuals(x: Any) -> Any:
        of_cameras = x[: 11 * cameras].reshape(cameras, 11)
        of_points = x[11 * cameras : 11 * cameras + 3 * points].reshape(points, 3)
        weights, found = x[-observations:], []
        for weight, (camera, point, (x_seen, y_seen)) in zip(weights, indices, strict=True):
            across, down = projected(of_cameras[camera], of_points[point])
            found += [weight * (across - x_seen), weight * (down - y_seen), 1 - weight * weight]
        return np.array(found)

    arrays = {name: np.array(values) for name, values in given.items()}

    def in_arrays(xp: Any, x: Any) -> Any:
        of_cameras = x[: 11 * cameras].reshape(cameras, 11)
        of_points = x[11 * cameras : 11 * cameras + 3 * points].reshape(points, 3)
        weights = x[-observations:]
        chosen = of_cameras[arrays["cameras"]]
        aside = of_points[arrays["points"]] - chosen[:, 3:6]
        angle = xp.sqrt((chosen[:, :3] ** 2).sum(1))[:, None]
        axis = chosen[:, :3] / angle
        along = (axis * aside).sum(1)[:, None] * (1 - xp.cos(angle))
        aside = aside * xp.cos(angle) + xp.cross(axis, aside) * xp.sin(angle) + axis * along
        plane = aside[:, :2] / aside[:, 2:]
        square = (plane * plane).sum(1)
        stretched = chosen[:, 6] * (1 + chosen[:, 9] * square + chosen[:, 10] * square * square)
        errors = weights[:, None] * (plane * stretched[:, None] + chosen[:, 7:9] - arrays["seen"])
        return xp.concatenate([errors, (1 - weights**2)[:, None]], axis=1).ravel()

    primal, slopes = mg.compile(residuals), mg.compile(mg.sparse_jacobian(residuals))
    begin = time.process_time()
    matrix = slopes(x)
    ready = time.process_time() - begin
    primals = {"micrograd": lambda: primal(x), "NumPy": lambda: in_arrays(np, x)}
    if jax is not None:
        jax.config.update("jax_enable_x64", True)  # there is no other way
        compiled = jax.jit(lambda x: in_arrays(jax.numpy, x))
        primals["JAX"] = lambda: np.asarray(compiled(x))
    for call in primals.values():
        np.testing.assert_allclose(call(), primal(x), rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.cos(np.arange(len(x)))
    moved = (primal(x + step) - primal(x - step)) / 2e-6
    assert np.abs(matrix @ step / 1e-6 - moved).max() <= 1e-4 * np.abs(moved).max()
    mine, *others = fastest(lambda: slopes(x), *primals.values())
    least, name = min(zip(others, primals, strict=True))
    return [f"{matrix.nnz:,}", f"{ready:.2f}", f"{mine:.0f}", f"{least:.0f} ({name})", f"{mine / least:.1f}"]


def main() -> None:
    """Measure the sizes that are named, or 400 and 4,000."""
    sizes = [int(each) for each in sys.argv[1:]] or [400, 4000]
    head = ["problem", "matrix", "n", "entries", "ready, s", "call, us"]
    if casadi is not None:
        head += [
            "CasADi's entries",
            "ready, s",
            "function, us",
            "ours / its",
            "buffer, us",
            "ours / its",
            "JAX's band, us",
        ]
    rows = [row(number, kind, n) for n in sizes for number in range(1, 6) for kind in ("Jacobian", "Hessian")]
    table("sparse derivatives", [head, *rows])
    head = ["entries", "ready, s", "Jacobian, us", "fastest primal, us", "Jacobian / primal"]
    table("bundle adjustment", [head, bundle_row()])


if __name__ == "__main__":
    main()
