"""Linear algebra beside JAX: ``python tests/benchmarks/linear_algebra.py [10 100 500]``.

Value and gradient of a function of a matrix, compiled: a solution of linear equations, Cholesky's factor, and a
determinant, with as many rows as given; and the marginal likelihood of a Gaussian process at 64 points, in ten lines.
Arrays of NumPy go in and come out. Both run in one process, on one core with one thread, in doubles; values and
gradients are compared first. Each call gets another matrix than the last ones, as factors are kept. Calls are taken in
turns, and the least time of each counts. The first call, from the function to the first gradient, is processor time, as
other programs may run.

OpenBLAS chooses its kernels by the processor, or by OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE: the title says which.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.scipy import linalg as jax_linalg
from run import table

import micrograd as mg

jax.config.update("jax_enable_x64", True)
ROUNDS, SECONDS = 9, 0.1  # of each, of which the least time counts
MATRICES = 5  # in turns: more than lapack.py keeps the factors of
ONE_THREAD = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # which libraries read when they are loaded


def solution(library: Any, a: Any, b: Any) -> Any:
    """The sum of the squares of a solution."""
    return library.sum(library.linalg.solve(a, b) ** 2)


def factor(library: Any, a: Any) -> Any:
    """A sum of the elements of Cholesky's factor, which looks at the lower triangle of what is symmetric."""
    return library.sum(library.linalg.cholesky((a + a.T) / 2) ** 3)


def determinant(library: Any, a: Any) -> Any:
    return library.linalg.det(a)


def likelihood(library: Any, w: Any, points: Any, heights: Any) -> Any:
    """The marginal likelihood of a Gaussian process, but for a constant; the parameters are logarithms."""
    triangular = mg.solve_triangular if library is np else jax_linalg.solve_triangular
    scaled = points * library.exp(-w[:2])
    apart = library.sum((scaled[:, None] - scaled) ** 2, axis=2)
    covariances = library.exp(2 * w[2]) * library.exp(-0.5 * apart) + library.exp(2 * w[3]) * np.eye(len(points))
    below = library.linalg.cholesky(covariances)
    white = triangular(below, heights, lower=True)
    return 0.5 * white @ white + library.sum(library.log(library.diagonal(below)))


def cases(sizes: list[int]) -> list[tuple[str, Callable[..., Any], list[tuple[Any, ...]]]]:
    """A name, a function of a library and of arrays, and several of these."""
    made: list[tuple[str, Callable[..., Any], list[tuple[Any, ...]]]] = []
    for size in sizes:
        draw = np.random.default_rng(size)
        several = [np.eye(size) + draw.normal(size=(size, size)) / (4 * size**0.5) for _ in range(MATRICES)]
        made.append((f"solve, {size}", solution, [(a, draw.normal(size=size)) for a in several]))
        made.append((f"cholesky, {size}", factor, [(a @ a.T,) for a in several]))
        made.append((f"det, {size}", determinant, [(a,) for a in several]))
    draw = np.random.default_rng(0)
    points = draw.uniform(-2.0, 2.0, size=(64, 2))
    heights = np.sin(points[:, 0]) * np.cos(points[:, 1]) + 0.1 * draw.normal(size=64)
    parameters = np.array([0.1, -0.2, 0.2, -1.5]) + 0.1 * draw.normal(size=(MATRICES, 4))
    made.append(("Gaussian process, 64 points", likelihood, [(w, points, heights) for w in parameters]))
    return made


def ready(function: Callable[..., Any], given: tuple[Any, ...]) -> float:
    begin = time.process_time()
    function(*given)
    return time.process_time() - begin


def fastest(functions: list[Callable[..., Any]], several: list[tuple[Any, ...]]) -> list[float]:
    """The least seconds of a call of each."""
    least, endless = [float("inf")] * len(functions), cycle(several)
    for _ in range(ROUNDS):
        for number, function in enumerate(functions):
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                given = next(endless)
                begin = time.perf_counter()
                function(*given)
                least[number] = min(least[number], time.perf_counter() - begin)
    return least


def row(name: str, function: Callable[..., Any], several: list[tuple[Any, ...]]) -> list[str]:
    """What the table says of one function."""
    ours = mg.compile(mg.value_and_grad(partial(function, np)))
    traced = jax.jit(jax.value_and_grad(partial(function, jnp)))

    def theirs(*given: Any) -> Any:
        return jax.tree.map(np.asarray, traced(*given))

    first = [ready(each, several[0]) for each in (ours, theirs)]
    for given in several:
        (value, slopes), (expected, their_slopes) = ours(*given), theirs(*given)
        slopes = slopes[0] if isinstance(slopes, (list, tuple)) else slopes
        assert np.allclose(value, expected, 1e-9)
        assert np.allclose(slopes, their_slopes, 1e-8, 1e-9 * np.abs(their_slopes).max())
    seconds = fastest([ours, theirs], several)
    times = [f"{1e6 * each:,.0f}" for each in seconds]
    return [name, *times, f"{seconds[0] / seconds[1]:.2f}", *(f"{each:.2f}" for each in first)]


def main(sizes: list[int]) -> None:
    if not ONE_THREAD.items() <= os.environ.items():
        command = [sys.executable, *sys.argv]
        raise SystemExit(subprocess.run(command, env={**os.environ, **ONE_THREAD}, check=False).returncode)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = [["value and gradient", "call, us", "JAX", "times JAX", "first call, s", "JAX"]]
    rows += [row(*case) for case in cases(sizes)]
    chosen = [f"{name}={os.environ[name]}" for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ]
    table(f"linear algebra beside JAX, with {', '.join(chosen) or 'the kernels of OpenBLAS for this processor'}", rows)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [10, 100, 500])
