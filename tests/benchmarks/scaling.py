"""Measure programs on JAX beside native code and models written by hand: ``python tests/benchmarks/scaling.py``.

Prints the Markdown tables of docs/scaling.md, in some minutes; ``--only`` picks some. All numbers are of one process,
which has four virtual devices. They are processor time of all its threads, as on a machine with other work the clock
says little; how long XLA takes is told by the clock, too, as it compiles on all cores. The steps take turns, and the
fastest turn of each counts.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from itertools import pairwise
from typing import Any, NamedTuple

os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import transformer
from by_hand import loss_by_hand
from programs.gmm import gmm
from programs.lstm import lstm
from programs.program import mapped
from run import table

import micrograd as mg
from micrograd.compiler import compiled_steps
from micrograd.compiler.backends.jax.jax_backend import BACKEND, Lowered
from micrograd.compiler.backends.jax.jax_functions import PLAIN
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.tracing.source import Source

WORDS, ROUNDS, TURN = 32, 15, 0.05
BATCH = 32
TURNS = (100, 1_000, 10_000)


class Duration(NamedTuple):
    """Seconds of the processor, of all threads together, and of the clock."""

    processor: float
    clock: float

    def __add__(self, other: Any) -> Duration:
        return Duration(self.processor + other.processor, self.clock + other.clock)

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.processor - other.processor, self.clock - other.clock)


def now() -> Duration:
    """What the processor and the clock say."""
    return Duration(time.process_time(), time.perf_counter())


def ready(step: Callable[[], object]) -> Duration:
    start = now()
    step()
    return now() - start


def taking_turns(
    steps: dict[str, Callable[[], object]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """The seconds of each step, in its fastest turn."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            repeats, end, start = 0, time.perf_counter() + TURN, clock()
            while time.perf_counter() < end:
                step()
                repeats += 1
            seconds[name].append((clock() - start) / repeats)
    return {name: min(found) for name, found in seconds.items()}


def loss_of_word(weights: Any, tokens: Any) -> Any:
    """The loss of the benchmark's transformer, whose word is an argument."""
    keys: list[Any] = []
    values: list[Any] = []
    losses = []
    for position, (token, following) in enumerate(pairwise(tokens)):
        x = transformer.added(mg.take(weights["letter"], token), weights["position"][position])
        x = transformer.normalised(x)
        x = transformer.added(x, transformer.attention(transformer.normalised(x), weights, keys, values))
        wide = [mg.relu(h) for h in transformer.linear(transformer.normalised(x), weights["widen"])]
        x = transformer.added(x, transformer.linear(wide, weights["narrow"]))
        losses.append(-mg.log(mg.take(mg.softmax(transformer.linear(x, weights["output"])), following)))
    return mg.mean(losses)


def of_a_word() -> tuple[Any, list[int]]:
    """The parameters of the benchmark's transformer, and its word."""
    transformer.softmax = mg.softmax
    return transformer.parameters(mg.Value), [transformer.END, *transformer.WORD, transformer.END]


def random_words(rng: np.random.Generator, count: int) -> Any:
    """Words of six letters between their marks, in an array of JAX."""
    return jnp.array(np.pad(rng.integers(0, transformer.END, (count, 6)), ((0, 0), (1, 1)), constant_values=26))


def of_the_transformer() -> None:
    """Loss and gradients of one word, and of 32 side by side."""
    weights, word = of_a_word()
    steps: dict[str, Callable[[], object]] = {}
    made: dict[str, Duration] = {}

    for backend in ("llvm", "jax"):
        fast = mg.compile(lambda word: loss_of_word(weights, word), backend=backend)
        name = f'mg.compile, backend="{backend}"'
        made[name] = ready(lambda fast=fast: fast(word).backward())
        run = fast._last.compiled(True).run
        numbers = np.array(fast._last.numbers(Structure(((word,), {}))))
        steps[name] = lambda run=run, numbers=numbers: run(numbers)

    begin = now()
    function, parameters = mg.to_jax(lambda word: loss_of_word(weights, word), word)
    traced = now() - begin
    one = jax.jit(jax.value_and_grad(function))
    by_hand = {name.partition(".")[2]: array for name, array in parameters.items()}
    hand = jax.jit(jax.value_and_grad(loss_by_hand))
    words = random_words(np.random.default_rng(0), WORDS)
    many = jax.jit(jax.value_and_grad(lambda p, words: jax.vmap(function, (None, 0))(p, words).mean()))
    many_by_hand = jax.jit(jax.value_and_grad(lambda p, words: jax.vmap(loss_by_hand, (None, 0))(p, words).mean()))
    for name, compiled, arguments in (
        ("mg.to_jax, jax.grad", one, (parameters, jnp.array(word))),
        ("by hand in JAX, jax.grad", hand, (by_hand, jnp.array(word))),
        (f"mg.to_jax, jax.grad, {WORDS} words by jax.vmap", many, (parameters, words)),
        (f"by hand in JAX, jax.grad, {WORDS} words by jax.vmap", many_by_hand, (by_hand, words)),
    ):
        steps[name] = lambda compiled=compiled, arguments=arguments: jax.block_until_ready(compiled(*arguments))
        made[name] = ready(steps[name]) + (traced if "to_jax" in name else Duration(0.0, 0.0))
    assert abs(float(many(parameters, words)[0]) - float(many_by_hand(by_hand, words)[0])) < 1e-12
    seconds = taking_turns(steps)
    lines = [["", "ready after, processor", "ready after, clock", "a step"]]
    lines += [[name, *(f"{s:.1f} s" for s in made[name]), f"{1e6 * seconds[name]:,.0f} µs"] for name in steps]
    table("transformer of the benchmark, loss and gradients", lines)


def of_a_scan() -> None:
    """A recurrent network of eight units: what takes how long until its gradient is there."""
    lines = [["turns", "traced and lowered after", "XLA ready after", "a step"]]
    rng = np.random.default_rng(0)
    w = [[mg.Value(0.3 * x) for x in row] for row in rng.normal(size=(8, 8))]

    def last(xs: Any) -> Any:
        state, _ = mg.scan(lambda h, x: ([mg.tanh(mg.dot(row, h) + x) for row in w], None), [0.0] * 8, xs)
        return mg.dot(state, state)

    for turns in TURNS:
        begin = time.process_time()
        function, parameters = mg.to_jax(last, [0.1] * turns)
        traced = time.process_time() - begin
        gradient, xs = jax.jit(jax.grad(function)), jnp.linspace(-1, 1, turns)

        def step(gradient: Any = gradient, parameters: Any = parameters, xs: Any = xs) -> object:
            return jax.block_until_ready(gradient(parameters, xs))

        compiled = ready(step).processor
        lines.append(
            [f"{turns:,}", f"{traced:.1f} s", f"{compiled:.1f} s", f"{1e6 * taking_turns({'': step})['']:,.0f} µs"]
        )
    table("a recurrent network of eight units by mg.scan, its gradient by jax.grad", lines)


def of_gradients() -> None:
    """Loss and gradients through jax.grad of the forward program, and by the reverse program of the compiler."""
    lines = [["", "jax.grad", "reverse program", "jax.grad ready after", "reverse program ready after"]]
    weights, word = of_a_word()
    cases: list[tuple[str, Callable[..., Any], Any, int]] = [
        ("transformer, one word", lambda word: loss_of_word(weights, word), word, 1),
        (f"transformer, {WORDS} words by jax.vmap", lambda word: loss_of_word(weights, word), word, WORDS),
    ]
    for title, program, key in (
        ("ADBench LSTM, 64 characters", lstm(2, 64), "sequence"),
        ("ADBench GMM, d 2, k 5, n 100", gmm(2, 5, 100), "points"),
    ):
        numbers, given = program.data()
        values = mapped(mg.Value, list(numbers.values()))
        named = dict(zip(numbers, values, strict=True))

        def loss(data: Any, program: Any = program, named: Any = named, given: Any = given, key: str = key) -> Any:
            return program.scalars(named, {**given, key: data})

        cases.append((title, loss, given[key], 1))
    for title, loss, argument, count in cases:
        forward, parameters = mg.to_jax(loss, argument)
        special = Specialised(Source(loss, Structure(((argument,), {}))), BACKEND)
        special.want(range(len(special.values)))
        program = special.program(True)
        positions = np.split(program.inputs, [len(special.values)])
        lowered = Lowered(program, *positions, functions=PLAIN)
        compute = lowered.function(np.concatenate([program.outputs, np.r_[program.gradients]]))
        of_values = jnp.array([value.data for value in special.values])
        array = jnp.array(argument, dtype=float)

        def reverse(values: Any, array: Any, compute: Any = compute, constants: Any = lowered.constants) -> Any:
            return compute(constants, values, array.ravel())

        by_jax = jax.value_and_grad(forward)
        if count > 1:
            array = jnp.tile(array, (count, *[1] * array.ndim))
            by_jax = jax.value_and_grad(
                lambda p, arrays, f=forward: jax.vmap(f, (None, 0))(p, arrays).mean()  # type: ignore[misc]
            )
        many = jax.vmap(reverse, (None, 0))
        compiled = jax.jit(by_jax), jax.jit(reverse if count == 1 else lambda v, a, f=many: f(v, a).mean(0))
        steps = {
            "jax.grad": lambda run=compiled[0], p=parameters, a=array: jax.block_until_ready(run(p, a)),
            "reverse": lambda run=compiled[1], v=of_values, a=array: jax.block_until_ready(run(v, a)),
        }
        made = [ready(step).processor for step in steps.values()]
        assert abs(float(steps["jax.grad"]()[0]) - float(steps["reverse"]()[0])) < 1e-9
        seconds = taking_turns(steps)
        lines.append([title, *(f"{1e6 * s:,.0f} µs" for s in seconds.values()), *(f"{s:.1f} s" for s in made)])
    table("a step of loss and gradients, by jax.grad or by the reverse program", lines)


def network(*sizes: int) -> tuple[Any, Any, list[Any]]:
    """A classifier, its loss and examples for it."""
    random.seed(0)
    rng = np.random.default_rng(0)
    model = mg.nn.MLP(sizes[0], list(sizes[1:]))
    inputs, classes = rng.random((BATCH, sizes[0])), rng.integers(0, sizes[-1], BATCH)
    examples = [(x.tolist(), int(y)) for x, y in zip(inputs, classes, strict=True)]
    return model.parameters(), lambda x, y: mg.losses.cross_entropy(model(x), y), examples


def words(length: int) -> tuple[Any, Any, list[Any]]:
    """The transformer, its loss and words of so many letters."""
    transformer.softmax = mg.softmax
    rng = np.random.default_rng(0)
    weights = transformer.parameters(mg.Value)
    weights["position"] = [[mg.Value(float(x)) for x in row] for row in 0.08 * rng.normal(size=(length + 1, 16))]
    letters = rng.integers(0, transformer.END, (BATCH, length)).tolist()
    examples = [([transformer.END, *word, transformer.END],) for word in letters]
    parameters = [value for rows in weights.values() for row in rows for value in row]
    return parameters, lambda word: loss_of_word(weights, word), examples


def steps_of_fit(
    made: tuple[Any, Any, list[Any]], kinds: dict[str, tuple[Any, ...]]
) -> dict[str, Callable[[], object]]:
    """A step of fit with a whole batch by each of some compiled programs, each of which has run once.

    Args:
        made: parameters, loss and examples.
        kinds: by name, what compiled_steps takes after the optimiser: the backend, the size of a batch, and settings.
    """
    parameters, loss, examples = made
    steps: dict[str, Callable[[], object]] = {}
    for name, settings in kinds.items():
        taken = compiled_steps(loss, examples, mg.optim.Adam(parameters), None, *settings)
        steps[name] = lambda taken=taken: taken.step(list(range(BATCH)), 0)
        steps[name]()
    return steps


def of_fit() -> None:
    """A step of fit with 32 examples, natively and on some devices of JAX."""
    batch = list(range(BATCH))
    lines = [["", *(f"{name}" for name in ("network 64-32-10", "transformer, words of 6 letters"))]]
    cells: dict[str, list[str]] = {}
    for made in (network(64, 32, 10), words(6)):
        parameters, loss, examples = made
        by_clock: dict[str, Callable[[], object]] = {}
        for name, threads in (("one thread", 1), ("two threads", 2)):
            os.environ["MICROGRAD_THREADS"] = str(threads)
            taken = compiled_steps(loss, examples, mg.optim.Adam(parameters), None, "llvm", BATCH)
            taken.step(batch, 0)
            by_clock[f"native, {name}, by the clock"] = lambda taken=taken: taken.step(batch, 0)
            by_clock[f"of these, losses and gradients, {name}"] = lambda taken=taken: taken._batches.run(batch)
        found = taking_turns(by_clock, time.perf_counter)  # before the threads of XLA are there
        os.environ["MICROGRAD_THREADS"] = "1"
        kinds = {
            "native, one thread": ("llvm", BATCH),
            "JAX, 1 device": ("jax", BATCH, 1),
            "JAX, 1 device, float32": ("jax", BATCH, 1, "float32"),
            "JAX, 2 virtual devices": ("jax", BATCH, 2),
            "JAX, 4 virtual devices": ("jax", BATCH, 4),
        }
        found |= taking_turns(steps_of_fit(made, kinds))
        for name, seconds in found.items():
            cells.setdefault(name, [name]).append(f"{1e6 * seconds:,.0f} µs")
    table(f"a step of fit with {BATCH} examples: losses, gradients and Adam's update", lines + list(cells.values()))


def of_size() -> None:
    """What takes how long until the first step, as programs grow: in processor time, which other work changes less."""
    lines = [["", "parameters", "scalars of an example", "traced and laid out", "all, until XLA is ready"]]
    made = {f"network 784-{hidden}-10": network(784, hidden, 10) for hidden in (10, 40, 160)}
    made |= {f"transformer, words of {length} letters": words(length) for length in (6, 14, 30)}
    for name, (parameters, loss, examples) in made.items():
        begin = time.process_time()
        structure = Structure((examples[0], {}))
        program = Specialised(Source(loss, structure, parameters), BACKEND).program(False, start=len(parameters))
        traced = time.process_time()
        compiled_steps(loss, examples, mg.optim.Adam(parameters), None, "jax", BATCH, 1)
        ready = time.process_time() - traced
        seconds = [f"{number:.1f} s" for number in (traced - begin, ready)]
        lines.append([name, f"{len(parameters):,}", f"{program.nodes:,}", *seconds])
    table(f"fit on one device, batches of {BATCH}: processor time", lines)


TABLES = {
    "transformer": of_the_transformer,
    "gradients": of_gradients,
    "scan": of_a_scan,
    "fit": of_fit,
    "size": of_size,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure programs on JAX.")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    print(f"JAX {jax.__version__} on {jax.devices()[0].platform}")  # noqa: T201  # it is a command
    for name in parser.parse_args().only:
        TABLES[name]()
