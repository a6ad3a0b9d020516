"""Measure scalar programs on a GPU: ``python tests/benchmarks/gpu.py``.

Prints the Markdown tables on GPUs of docs/scaling.md, in some minutes. JAX takes the first device that it finds, so the
command runs without a GPU as well. Times are by the clock; steps are interleaved, and the fastest run of each counts.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scaling
from by_hand import loss_by_hand
from run import table

import micrograd as mg

BATCHES = (32, 1_024, 8_192)

jax.config.update("jax_enable_x64", True)


def of_words() -> None:
    """Loss and gradients of many words side by side, as scalars and as arrays by hand."""
    weights, word = scaling.of_a_word()
    function, parameters = mg.to_jax(lambda word: scaling.loss_of_word(weights, word), word)
    by_hand = {name.partition(".")[2]: array for name, array in parameters.items()}
    rng = np.random.default_rng(0)
    lines = [["words", "mg.to_jax", "by hand in JAX", "mg.to_jax, float32", "by hand, float32"]]
    for count in BATCHES:
        words = scaling.random_words(rng, count)
        steps: dict[str, Callable[[], object]] = {}
        losses = []
        for precision in (jnp.float64, jnp.float32):
            for name, loss, given in (("ours", function, parameters), ("hand", loss_by_hand, by_hand)):
                of_all = jax.jit(
                    jax.value_and_grad(lambda p, words, f=loss: jax.vmap(f, (None, 0))(p, words).mean())  # type: ignore[misc]
                )
                p = jax.tree.map(lambda array, precision=precision: array.astype(precision), given)
                steps[f"{name} {precision}"] = lambda f=of_all, p=p, w=words: jax.block_until_ready(f(p, w))
                losses.append(float(of_all(p, words)[0]))
        assert abs(losses[0] - losses[1]) < 1e-12
        seconds = scaling.taking_turns(steps, time.perf_counter)
        lines.append([f"{count:,}", *(f"{1e6 * s:,.0f} µs" for s in seconds.values())])
    table("loss and gradients of the benchmark's transformer", lines)


def of_fit() -> None:
    """A step of fit with large batches, natively and on JAX's first device."""
    lines = [["model", "batch", "native", "JAX", "JAX, float32"]]
    for title, make in (
        ("network 784-256-10", lambda: scaling.network(784, 256, 10)),
        ("transformer, words of 6 letters", lambda: scaling.words(6)),
    ):
        for count in BATCHES:
            scaling.BATCH = count
            kinds = {"native": ("llvm", count), "JAX": ("jax", count, 1), "JAX, float32": ("jax", count, 1, "float32")}
            seconds = scaling.taking_turns(scaling.steps_of_fit(make(), kinds), time.perf_counter)
            lines.append([title, f"{count:,}", *(f"{1e3 * s:,.2f} ms" for s in seconds.values())])
    table("a step of fit: losses, gradients and Adam's update", lines)


TABLES = {"words": of_words, "fit": of_fit}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure programs on a GPU.")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    device = jax.devices()[0]
    print(f"JAX {jax.__version__} on {device.platform}: {device.device_kind}")  # noqa: T201  # it is a command
    for name in parser.parse_args().only:
        TABLES[name]()
