"""Stated loops beside JAX's: ``python tests/benchmarks/loops.py [option:1024x252 gru:100 ...]``.

The price of an Asian option and its three derivatives: ``vmap`` over paths of a ``scan`` over steps. A recurrent net of
32 neurons (a GRU, Cho et al., 2014) that sees 16 rows of 8 numbers in each step: a ``scan`` of products of matrices.

The first call is timed in a new process with an empty cache, from before the import of the library to the results, by
the clock. Then come further calls, from arrays to floats and arrays: the median. The memory is the most that the
process had. The libraries take turns, and of the first calls the fastest counts: the process before it has written
Python's bytecode.
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
OPTION = 100.0, 0.2, 0.03  # the price at the start, the volatility, and the rate
ROWS, INPUTS, NEURONS = 16, 8, 32
SIZES = ["option:1024x252", "option:8192x252", "option:64x5000", "gru:30", "gru:100", "gru:1000"]


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


def price(library: Any, scan: Any, vmap: Any, given: Any, noise: Any) -> Any:
    """The mean over all paths."""
    return vmap(lambda path: payoff(library, scan, given, path))(noise).mean()


def recurrent(library: Any, scan: Any, _: Any, given: Any, inputs: Any) -> Any:
    """The sum of the squares of the last state."""
    of_inputs, of_state, bias = given

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + library.exp(-x))

    def step(state: Any, rows: Any) -> Any:
        x, h = rows @ of_inputs + bias, state @ of_state
        reset = sigmoid(x[:, :NEURONS] + h[:, :NEURONS])
        update = sigmoid(x[:, NEURONS : 2 * NEURONS] + h[:, NEURONS : 2 * NEURONS])
        candidate = library.tanh(x[:, 2 * NEURONS :] + reset * h[:, 2 * NEURONS :])
        return update * state + (1.0 - update) * candidate, None

    last, _ = scan(step, library.zeros((ROWS, NEURONS)), inputs)
    return (last * last).sum()


def program_of(size: str) -> tuple[Callable[..., Any], tuple[Any, ...], Floats]:
    """The program, its arguments, and its data."""
    name, _, lengths = size.partition(":")
    drawn = np.random.default_rng(0).standard_normal
    if name == "option":
        return price, OPTION, drawn([int(length) for length in lengths.split("x")])
    weights = 0.2 * drawn((INPUTS, 3 * NEURONS)), 0.2 * drawn((NEURONS, 3 * NEURONS)), 0.1 * drawn(3 * NEURONS)
    return recurrent, weights, drawn((int(lengths), ROWS, INPUTS))


def compiled(library: str, program: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The value of a program and its gradients by the first arguments, so many."""
    argnums = tuple(range(count))
    if library == "micrograd":
        import micrograd as mg

        def ours(*given: Any) -> Any:
            return program(np, mg.scan, mg.vmap, given[:count], given[count])

        return mg.compile(mg.value_and_grad(ours, argnums=argnums))
    import jax

    jax.config.update("jax_enable_x64", True)

    def theirs(*given: Any) -> Any:
        return program(jax.numpy, jax.lax.scan, jax.vmap, given[:count], given[count])

    run: Callable[..., Any] = jax.jit(jax.value_and_grad(theirs, argnums=argnums))
    return run


def measure(library: str, size: str) -> dict[str, Any]:
    """In a process of its own: what one library takes."""
    program, given, data = program_of(size)

    def call() -> list[float]:
        value, slopes = run(*given, data)
        return [float(value), *(number for slope in slopes for number in np.ravel(slope).tolist())]

    begin = time.perf_counter()
    run = compiled(library, program, len(given))
    results = call()
    first, seconds = time.perf_counter() - begin, []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
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
    rows = [["program: paths x steps, or steps", "library", "first call", "call", "memory"]]
    for size in sizes:
        found: dict[str, dict[str, Any]] = {}
        for _ in range(ROUNDS):
            for library in filter(find_spec, LIBRARIES):
                one = measured(library, size)
                first = min(one["first"], found.get(library, one)["first"])
                found[library] = {**one, "first": first}
        for library, one in found.items():
            np.testing.assert_allclose(one["results"], found["micrograd"]["results"], rtol=1e-9, atol=1e-12)
            times = f"{one['first']:.1f} s", f"{1e3 * one['call']:.1f} ms"
            rows.append([size, library, *times, f"{one['memory']:,.0f} MB"])
    table("stated loops", rows)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in LIBRARIES:
        show(json.dumps(measure(sys.argv[1], sys.argv[2])))
    else:
        main(sys.argv[1:] or SIZES)
