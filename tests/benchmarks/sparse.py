"""Sparse derivatives beside CasADi's: ``python tests/benchmarks/sparse.py [400 4000 40000]``.

With the word ``solve``, ``bundle``, ``rows`` or ``memory`` in place of sizes, only that part is measured.

The chained problems 5.1 to 5.5 of Luksan and Vlcek (1999), in plain loops: the Jacobian of the constraints, and the
Hessian of the Lagrangian. Ours return a ``csr_array`` for an array of variables. CasADi's SX functions are called in
two ways: as functions, which give a sparse ``DM`` for an array, and through a buffer, where they write the entries into
an array that is given once; that is the fastest way to call them, and gives no matrix. Beside that is our program from
buffer to buffer, which gives none either. All are called in turns, and the least time of each counts. First all must
have equal entries. Without CasADi its columns are left out. Seconds until ready are processor time, as other programs
may run.

JAX has no sparse Jacobians. Where all rows read equally many neighbours, its column is the band by hand: the gradient
of one row, mapped over the windows of x by ``vmap`` and compiled by ``jit``. Its result is a dense band.

Then the collocation of a cart-pole with 200 intervals: the Jacobian of its constraints and the Hessian of its
Lagrangian, beside CasADi; and the complete solution by IPOPT in a process of its own, from its start to its end, with
all imports. Without cyipopt or CasADi that is left out. Then the Jacobian of a bundle adjustment with 20 cameras and
200 points, in multiples of the fastest primal. Then the seconds until a Jacobian of many equal rows is ready, stated by
an array, by ``vmap``, or by a plain loop, each in a process of its own. At last the memory that the Hessian of problem
5.1 takes at most, in a process of its own for each size: what is there before is subtracted.
"""

import importlib.util
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from programs.bundle import data, projected
from run import table

import micrograd as mg
from micrograd.compiler.numbers import part_of

ROUNDS = 100
WIDTHS = {1: 3, 4: 3, 5: 5}  # of the bands, by the number of the problem


def _imported(name: str) -> Any:
    """A package, imported when it is first asked for, as what is solved without it shall not wait; None without it."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


casadi, jax = cache(partial(_imported, "casadi")), cache(partial(_imported, "jax"))


class Problem:
    """Chained problems, in terms of sin, exp and tan of Values or of CasADi's symbols."""

    def __init__(self, library: Any, number: int) -> None:
        self.number = number
        self.sin, self.exp, self.tan = library.sin, library.exp, library.tan
        self.absolute = (lambda x: mg.abs(x)) if library is mg else library.fabs
        terms = self._objective_1, self._objective_2, self._objective_3, self._objective_4, self._objective_5
        self.term = terms[number - 1]
        self.residual = {
            1: self._constraint_1,
            2: self._constraint_2,
            4: self._constraint_4,
            5: self._constraint_5,
        }.get(number)

    def objective(self, x: Any) -> Any:
        """The objective of problem 5.number."""
        number, n = self.number, len(x)
        total = 0.0
        for i in range(n) if number == 5 else range(n - 1) if number == 1 else range(0, n - 3, 2):
            total = total + self.term(x, i)
        return total

    def constraints(self, x: Any) -> list[Any]:
        """The constraints of problem 5.number."""
        n = len(x)
        if self.residual is None:
            last = 4 * x[n - 1] - x[n - 2] * self.exp(x[n - 2] - x[n - 1]) - 3
            return [3 * x[0] ** 3 + 2 * x[1] - 5 + self.sin(x[0] - x[1]) * self.sin(x[0] + x[1]), last]
        return [self.residual(x, k) for k in range(n - {1: 2, 2: 7, 4: 2, 5: 4}[self.number])]

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


def ours(problem: Any, kind: str) -> Callable[..., Any]:
    """The function of x and the multipliers, not yet traced."""
    if kind == "Jacobian":
        return mg.compile(mg.sparse_jacobian(problem.constraints))

    def lagrangian(x: Any, multipliers: Any) -> Any:
        total = problem.objective(x)
        for multiplier, residual in zip(multipliers, problem.constraints(x), strict=True):
            total = total + multiplier * residual
        return total

    return mg.compile(mg.sparse_hessian(lagrangian))


def theirs(problem: Any, kind: str, n: int, m: int) -> tuple[Any, Callable[..., Any], Callable[..., Any]]:
    """CasADi's pattern, what writes its entries into a buffer, and its function."""
    x, multipliers = casadi().SX.sym("x", n), casadi().SX.sym("l", m)
    variables = casadi().vertsplit(x)
    residuals = casadi().vertcat(*problem.constraints(variables))
    if kind == "Jacobian":
        matrix, inputs = casadi().jacobian(residuals, x), [x]
    else:
        total = problem.objective(variables) + casadi().dot(multipliers, residuals)
        matrix, inputs = casadi().hessian(total, x)[0], [x, multipliers]
    function = casadi().Function("f", inputs, [matrix])
    buffer, run = function.buffer()
    result, kept = np.zeros(matrix.nnz()), []

    def call(*arguments: Any) -> Any:
        kept[:] = [np.ascontiguousarray(a) for a in arguments]
        for position, array in enumerate(kept):
            buffer.set_arg(position, memoryview(array))
        run()
        return result

    buffer.set_res(0, memoryview(result))
    return matrix.sparsity(), call, function


def band(number: int, n: int) -> Callable[..., Any]:
    """JAX's band of a Jacobian."""
    jax().config.update("jax_enable_x64", True)  # there is no other way
    jnp, width = jax().numpy, WIDTHS[number]
    of_row = jax().grad(lambda window: Problem(jnp, number).residual(window, 0))
    windows = np.arange(n - width + 1)[:, None] + np.arange(width)
    compiled = jax().jit(lambda x: jax().vmap(of_row)(x[windows]))
    return lambda x: np.asarray(compiled(x))


def from_buffer_to_buffer(fast: Any, arguments: list[Any]) -> Callable[..., Any]:
    """Our program without a matrix: it gives a view of the entries."""
    run = fast.program(*arguments)
    inputs, begin = [], 0
    for argument in arguments:
        inputs.append(part_of(run.program.inputs[begin : begin + len(argument)]))
        begin += len(argument)
    outputs, buffer = part_of(run.program.outputs), run.buffer

    def call(*arguments: Any) -> Any:
        for part, argument in zip(inputs, arguments, strict=True):
            buffer[part] = argument
        run.run()
        return buffer[outputs]

    return call


def seconds(call: Callable[[], Any], least: float = 0.001) -> float:
    """Of one call, in a time so short that other programs rarely interrupt it."""
    count, taken = 1, 0.0
    while taken < least:
        begin = time.perf_counter()
        for _ in range(count):
            call()
        taken, count = time.perf_counter() - begin, 2 * count
    return taken / (count // 2)


def chained_row(number: int, kind: str, n: int) -> list[str]:
    """The row of a matrix of a chained problem."""
    x = 0.3 + 0.2 * np.sin(np.arange(n))
    has_band = jax() is not None and kind == "Jacobian" and number in WIDTHS
    problems = Problem(mg, number), casadi() and Problem(casadi(), number)
    return [f"5.{number}", *row(*problems, kind, x, band(number, n) if has_band else None)]


def row(problem: Any, of_casadi: Any, kind: str, x: Any, by_hand: Callable[..., Any] | None = None) -> list[str]:
    """The row of a matrix: entries, seconds until ready, and microseconds of a call, ours and theirs."""
    m, n = len(problem.constraints(x)), len(x)
    arguments = [x] if kind == "Jacobian" else [x, 0.5 + 0.1 * np.cos(np.arange(m))]
    begin = time.process_time()
    fast = ours(problem, kind)
    matrix = fast(*arguments)
    found = [kind, f"{n:,}", f"{matrix.nnz:,}", f"{time.process_time() - begin:.2f}"]
    if casadi() is None:
        return [*found, f"{1e6 * seconds(lambda: fast(*arguments)):.0f}"]
    begin = time.process_time()
    pattern, call, function = theirs(of_casadi, kind, n, m)
    entries = call(*arguments).copy()
    ready = time.process_time() - begin
    import scipy.sparse

    dense = scipy.sparse.csc_array((entries, np.array(pattern.row()), np.array(pattern.colind())), shape=matrix.shape)
    scale = np.abs(entries).max()
    assert np.abs(matrix - dense).max() <= 1e-9 * scale, kind
    mine_buffered = from_buffer_to_buffer(fast, arguments)
    assert (mine_buffered(*arguments) == matrix.data).all()
    runs: list[Callable[..., Any]] = [fast, function, mine_buffered, call]
    if by_hand is not None:
        assert np.allclose(by_hand(x).ravel(), matrix.data)
        runs.append(by_hand)
    mine, other, ours_buffered, buffered, *of_jax = fastest(*(lambda run=run: run(*arguments) for run in runs))
    numbers = [f"{mine:.0f}", f"{len(entries):,}", f"{ready:.2f}", f"{other:.0f}", f"{mine / other:.2f}"]
    numbers += [f"{ours_buffered:.1f}", f"{buffered:.1f}", f"{ours_buffered / buffered:.2f}"]
    return [*found, *numbers, f"{of_jax[0]:.0f}" if of_jax else ""]


class CartPole:
    """The swing-up of demos/collocation.py, in terms of sin and cos of Values or of CasADi's symbols."""

    def __init__(self, library: Any, intervals: int = 200) -> None:
        self.sin, self.cos, self.intervals = library.sin, library.cos, intervals
        self.step = 2.0 / intervals

    def law(self, point: list[Any]) -> list[Any]:
        """How fast the state changes."""
        _, angle, speed, turning, force = point
        sine, cosine = self.sin(angle), self.cos(angle)
        mass = 1.0 + 0.3 * (1 - cosine**2)
        pull = 0.15 * sine * turning**2
        ahead = (pull + force + 0.3 * 9.81 * cosine * sine) / mass
        return [speed, turning, ahead, -(pull * cosine + force * cosine + 1.3 * 9.81 * sine) / (0.5 * mass)]

    def objective(self, x: Any) -> Any:
        """The square of the force, over time."""
        forces = [x[5 * k + 4] ** 2 for k in range(self.intervals + 1)]
        return self.step * (sum(forces[1:-1], 0.5 * forces[0]) + 0.5 * forces[-1])

    def constraints(self, x: Any) -> list[Any]:
        points = [[x[5 * k + i] for i in range(5)] for k in range(self.intervals + 1)]
        rates = [self.law(point) for point in points]
        found = [
            points[k + 1][i] - points[k][i] - 0.5 * self.step * (rates[k][i] + rates[k + 1][i])
            for k in range(self.intervals)
            for i in range(4)
        ]
        for point, goal in (points[0], (0.0, 0.0, 0.0, 0.0)), (points[-1], (1.0, math.pi, 0.0, 0.0)):
            found += [point[i] - goal[i] for i in range(4)]
        return found

    def guess(self) -> Any:
        """A straight line from the start to the end."""
        x = np.zeros((self.intervals + 1, 5))
        x[:, 0], x[:, 1] = np.linspace(0, 1.0, len(x)), np.linspace(0, math.pi, len(x))
        return x.ravel()


def solve_with_ours() -> None:
    """Swing up the pole with cyipopt."""
    cyipopt: Any = importlib.import_module("cyipopt")
    ours = CartPole(mg)
    program = mg.nlp(ours.objective, ours.constraints, start=ours.guess())
    zeros = np.zeros(program.constraint_count)
    problem = cyipopt.Problem(program.variables, len(zeros), problem_obj=program, cl=zeros, cu=zeros)
    problem.add_option("print_level", 0)
    problem.add_option("sb", "yes")
    solution, _ = problem.solve(ours.guess())
    sys.stdout.write(f"{program.objective(solution)} {abs(program.constraints(solution)).max()}\n")


def solve_with_theirs() -> None:
    """Swing up the pole with CasADi."""
    other, x = CartPole(casadi()), casadi().SX.sym("x", CartPole(casadi()).guess().size)
    variables = casadi().vertsplit(x)
    residuals = casadi().vertcat(*other.constraints(variables))
    options = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
    solver = casadi().nlpsol("s", "ipopt", {"x": x, "f": other.objective(variables), "g": residuals}, options)
    found = solver(x0=other.guess(), lbg=0, ubg=0)
    effort, defect = float(found["f"]), abs(np.array(found["g"])).max()
    sys.stdout.write(f"{effort} {defect}\n")


def solve_row(name: str, rounds: int = 3) -> list[str]:
    """Seconds of a process that solves the problem: the least of some rounds, and of its processor."""
    text = "import sys; import sparse; sparse." + name + "()"
    taken = []
    for _ in range(rounds):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        command = [sys.executable, "-c", text]
        run = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    effort, defect = map(float, run.stdout.split()[-2:])
    least = map(min, zip(*taken, strict=True))
    return [name.rpartition("_")[2], f"{effort:.4f}", f"{defect:.1e}", *(f"{each:.2f}" for each in least)]


def output_of(text: str) -> str:
    """What a process of its own prints, which runs this text beside this file."""
    command = [sys.executable, "-c", text]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout


def most_memory() -> int:
    """The most memory that this process has had, in kilobytes.

    Linux counts what the process had that started this one as well in ``ru_maxrss``, so its own number is read there.
    """
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class Rows:
    """Residuals that are computed alike, stated in three ways."""

    @staticmethod
    def one(a: Any, b: Any, c: Any) -> Any:
        return c**2 - 2 * mg.sin(b) * a + b

    def array(self, x: Any) -> Any:
        """All of them, by slices of an array."""
        return self.one(x[:-2], x[1:-1], x[2:])

    def vmap(self, x: Any) -> Any:
        """All of them, by vmap."""
        return mg.vmap(self.one)(x[:-2], x[1:-1], x[2:])

    def loop(self, x: Any) -> Any:
        """All of them, in a plain loop."""
        return [self.one(x[k], x[k + 1], x[k + 2]) for k in range(len(x) - 2)]


def rows_row(name: str, n: int) -> list[str]:
    """How long the Jacobian of so many rows takes until it is ready, and how many kernels it has."""
    text = f"""
import time, sparse, numpy as np
residuals, x = sparse.Rows().{name}, 0.3 + 0.2 * np.sin(np.arange({n} + 2))
sparse.mg.compile(sparse.mg.sparse_jacobian(residuals))(x[:50])
fast = sparse.mg.compile(sparse.mg.sparse_jacobian(residuals))
begin = time.process_time()
matrix = fast(x)
taken = time.process_time() - begin
print(taken, len(fast.program(x).program.kernels), 1e6 * sparse.seconds(lambda: fast(x)))
"""
    taken, kernels, call = map(min, zip(*(map(float, output_of(text).split()) for _ in range(3)), strict=True))
    return [name, f"{n:,}", f"{taken:.3f}", f"{1e6 * taken / n:.1f}", f"{kernels:.0f}", f"{call:.0f}"]


def memory_row(n: int) -> list[str]:
    """The most memory that a compiled Hessian took, with its trace."""
    text = f"""
import resource, sparse, numpy as np
problem, x = sparse.Problem(sparse.mg, 1), 0.3 + 0.2 * np.sin(np.arange({n}))
sparse.ours(problem, "Hessian")(x[:8], np.ones(6))
fast = sparse.ours(problem, "Hessian")
before = sparse.most_memory()
matrix = fast(x, np.ones({n} - 2))
print(matrix.nnz, sparse.most_memory() - before, fast.cache_info().program_bytes)
"""
    entries, most, kept = map(int, output_of(text).split())
    return [f"{n:,}", f"{entries:,}", f"{most / 1024:.0f}", f"{1024 * most / entries:.0f}", f"{kept / entries:.0f}"]


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
    if jax() is not None:
        jax().config.update("jax_enable_x64", True)  # there is no other way
        compiled = jax().jit(lambda x: in_arrays(jax().numpy, x))
        primals["JAX"] = lambda: np.asarray(compiled(x))
    for call in primals.values():
        np.testing.assert_allclose(call(), primal(x), rtol=1e-9, atol=1e-9)
    step = 1e-6 * np.cos(np.arange(len(x)))
    moved = (primal(x + step) - primal(x - step)) / 2e-6
    assert np.abs(matrix @ step / 1e-6 - moved).max() <= 1e-4 * np.abs(moved).max()
    mine, *others = fastest(lambda: slopes(x), *primals.values())
    least, name = min(zip(others, primals, strict=True))
    return [f"{matrix.nnz:,}", f"{ready:.2f}", f"{mine:.0f}", f"{least:.0f} ({name})", f"{mine / least:.1f}"]


def head() -> list[str]:
    """What the columns of a matrix's row say."""
    ours = ["matrix", "n", "entries", "ready, s", "call, us"]
    of_casadi = ["CasADi's entries", "ready, s", "function, us", "ours / its"]
    of_casadi += ["our buffer, us", "its buffer, us", "ours / its"]
    of_casadi += ["JAX's band, us"]
    return ours + (of_casadi if casadi() is not None else [])


def main() -> None:
    """Measure the sizes that are named, or 400 and 4,000; or the part that is."""
    parts = {"solve": measure_collocation, "bundle": measure_bundle, "rows": measure_rows, "memory": measure_memory}
    if sys.argv[1:2] and sys.argv[1] in parts:
        parts[sys.argv[1]]()
        return
    sizes = [int(each) for each in sys.argv[1:]] or [400, 4000]
    rows = [chained_row(number, kind, n) for n in sizes for number in range(1, 6) for kind in ("Jacobian", "Hessian")]
    table("sparse derivatives", [["problem", *head()], *rows])
    for measure in parts.values():
        measure()


def measure_collocation() -> None:
    """The callbacks, and complete solutions."""
    problems = CartPole(mg), casadi() and CartPole(casadi())
    rows = [row(*problems, kind, problems[0].guess()) for kind in ("Jacobian", "Hessian")]
    table("collocation of a cart-pole, 200 intervals", [head(), *rows])
    solvers = {"solve_with_ours": "cyipopt", "solve_with_theirs": "casadi"}
    columns = ["solution", "effort", "largest defect", "process, s", "of the processor, s"]
    rows = [solve_row(name) for name, package in solvers.items() if importlib.util.find_spec(package)]
    table("solved by IPOPT", [columns, *rows])


def measure_bundle() -> None:
    """The Jacobian of the bundle adjustment."""
    columns = ["entries", "ready, s", "Jacobian, us", "fastest primal, us", "Jacobian / primal"]
    table("bundle adjustment", [columns, bundle_row()])


def measure_rows() -> None:
    """The time until Jacobians of many rows are ready."""
    columns = ["stated by", "rows", "ready, s", "us of a row", "kernels", "call, us"]
    ways = [(name, n) for name in ("array", "vmap", "loop") for n in (1000, 10_000, 100_000)]
    table("rows that are computed alike", [columns, *(rows_row(*way) for way in ways)])


def measure_memory() -> None:
    columns = ["n", "entries", "most, MB", "most, bytes per entry", "kept, bytes per entry"]
    table("memory of the Hessian of 5.1", [columns, *(memory_row(n) for n in (1000, 4000, 16_000, 40_000))])


if __name__ == "__main__":
    main()
