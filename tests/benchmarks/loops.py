"""Stated loops beside JAX's: ``python tests/benchmarks/loops.py [1024x252 8192x252 64x5000]``.

The price of an Asian option and its three derivatives: ``vmap`` over paths of a ``scan`` over steps. The first call is
timed in a new process with an empty cache, from before the import of the library to the results, by the clock. Then
come further calls, from an array of noise to floats: the median. The memory is the most that the process had. The
libraries take turns, and of the first calls the fastest counts: the process before it has written Python's bytecode.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from run import show, table

if TYPE_CHECKING:
    from collections.abc import Callable

    from micrograd.compiler.numbers import Floats

LIBRARIES = ["micrograd", "jax"]
CALLS, ROUNDS = 9, 3
GIVEN = [100.0, 0.2, 0.03]  # the price at the start, the volatility, and the rate


def payoff(library: Any, scan: Any, given: Any, noise: Any) -> Any:
    """What the option pays on one path."""
    start, volatility, rate = given
    steps = len(noise)

    def step(state: Any, shock: Any) -> Any:
        price, total = state
        drift = (rate - 0.5 * volatility * volatility) / steps
        price = price * library.exp(drift + volatility * steps**-0.5 * shock)
        return (price, total + price), None

    (_, total), _ = scan(step, (start, 0.0 * start), noise)
    return library.maximum(total / steps - 100.0, 0.0) * library.exp(-rate)


def in_micrograd() -> Callable[[Floats], list[float]]:
    """The price and its derivatives, in micrograd."""
    import micrograd as mg

    def price(given: Any, noise: Any) -> Any:
        return mg.mean(mg.vmap(lambda path: payoff(mg, mg.scan, given, path))(noise))

    compiled = mg.compile(mg.value_and_grad(price))

    def run(noise: Floats) -> list[float]:
        value, slopes = compiled(GIVEN, noise)
        return [value, *slopes]

    return run


def in_jax() -> Callable[[Floats], list[float]]:
    import jax

    jax.config.update("jax_enable_x64", True)

    def price(given: Any, noise: Any) -> Any:
        return jax.numpy.mean(jax.vmap(lambda path: payoff(jax.numpy, jax.lax.scan, given, path))(noise))

    compiled = jax.jit(jax.value_and_grad(price))

    def run(noise: Floats) -> list[float]:
        value, slopes = compiled(GIVEN, noise)
        return [float(value), *map(float, slopes)]

    return run


def measure(library: str, paths: int, steps: int) -> dict[str, Any]:
    """In a process of its own: what one library takes."""
    noise = np.random.default_rng(0).standard_normal((paths, steps))
    begin = time.perf_counter()
    run = in_micrograd() if library == "micrograd" else in_jax()
    results = run(noise)
    first, seconds = time.perf_counter() - begin, []
    for _ in range(CALLS):
        begin = time.perf_counter()
        run(noise)
        seconds.append(time.perf_counter() - begin)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"results": results, "first": first, "call": statistics.median(seconds), "memory": memory}


def measured(library: str, size: str) -> dict[str, Any]:
    """What a new process with an empty cache measures."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MICROGRAD_CACHE": cache, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, __file__, library, size]
        found = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def main(sizes: list[str]) -> None:
    """Measure these sizes in all libraries that are installed."""
    rows = [["paths x steps", "library", "first call", "call", "memory"]]
    for size in sizes:
        found: dict[str, dict[str, Any]] = {}
        for _ in range(ROUNDS):
            for library in filter(find_spec, LIBRARIES):
                one = measured(library, size)
                first = min(one["first"], found.get(library, one)["first"])
                found[library] = {**one, "first": first}
        for library, one in found.items():
            np.testing.assert_allclose(one["results"], found["micrograd"]["results"], rtol=1e-9)
            times = f"{one['first']:.1f} s", f"{1e3 * one['call']:.1f} ms"
            rows.append([size, library, *times, f"{one['memory']:,.0f} MB"])
    table("price of an Asian option, and three derivatives", rows)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in LIBRARIES:
        show(json.dumps(measure(sys.argv[1], *map(int, sys.argv[2].split("x")))))
    else:
        main(sys.argv[1:] or ["1024x252", "8192x252", "64x5000"])
