"""What a call costs from the user's side, beside peers: ``python tests/benchmarks/door.py``, which takes ten minutes.

Plain data go in, and plain results come out: lists, floats, and arrays of NumPy. Each side lives in a process of its
own, with one thread and with the garbage collector on. The sides take turns on one core; what stands in the table are
medians of the processor's seconds. First each side must compute the same numbers as its peer, or as eager does, to
nine digits. Peers that are not installed are left out.
"""

import argparse
import importlib.util
import itertools
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

os.environ |= {  # before NumPy and JAX read them
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MICROGRAD_THREADS"), "1"),
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}

from collections.abc import Callable, Iterator

import steps
from engines import CACHE, Engine, Ours, Pypi
from run import processor, show, table
from workers import Worker

ROOT = Path(__file__).resolve().parents[2]
BEFORE = "526f4af"  # the commit that eager steps are compared with
SAMPLE = 0.01  # seconds of calls that are timed together


class Side(NamedTuple):
    """One side of a row, in its process.

    Attributes:
        numbers: what it computes, flat.
        sample: the seconds that one call takes.
    """

    numbers: list[float]
    sample: Callable[[], float]


class Case(NamedTuple):
    """How a worker makes a side: a function of this module, and its arguments."""

    make: Callable[..., Side]
    arguments: tuple[Any, ...] = ()
    needs: str = ""  # the package without which it is left out
    name: str = ""  # what the table calls it, where that is not the package
    recursive = False

    def __call__(self) -> Side:
        """Make the side."""
        return self.make(*self.arguments)


class Row(NamedTuple):
    """A line of the table.

    Attributes:
        what: is computed.
        ours: this package.
        peer: the other side, if any.
        bar: how many times the peer's seconds it may take; without a peer, the seconds themselves.
        rounds: the largest number of samples of each.
    """

    what: str
    ours: Case
    peer: Case | None
    bar: float
    rounds: int = 1000


def timed(step: Callable[[], object]) -> Callable[[], float]:
    """A sample of a step: the seconds of one of as many calls as take a hundredth of a second."""
    count = 1
    while True:
        start = time.process_time()
        for _ in range(count):
            step()
        if time.process_time() - start > SAMPLE:
            break
        count *= 2

    def sample() -> float:
        start = time.process_time()
        for _ in range(count):
            step()
        return (time.process_time() - start) / count

    return sample


def flat(result: Any) -> list[float]:
    """The numbers of a result in order."""
    if isinstance(result, (tuple, list)):
        return [number for part in result for number in flat(part)]
    return [float(number) for number in result.ravel()] if hasattr(result, "ravel") else [float(result)]


def check(found: list[float], expected: list[float], what: str) -> None:
    """Compare all numbers, to nine digits."""
    largest = max(map(abs, expected), default=0.0)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        if not math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9 * largest):
            raise ValueError(f"{what}: number {number} is {one!r}, not {other!r}")


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function of an array."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def residuals(xp: Any) -> Callable[[Any], Any]:
    """How far two exponentials and a line are from 1,000 points."""
    times = xp.linspace(0.0, 4.0, 1000)
    points = 3.0 * xp.exp(-0.5 * times) + xp.exp(-2.0 * times) + 0.1 * xp.sin(40.0 * times)
    return lambda p: p[0] * xp.exp(-p[1] * times) + p[2] * xp.exp(-p[3] * times) + p[4] + p[5] * times - points


def derivative_by_ours(transform: str, function: str, size: int) -> Side:
    """A compiled derivative, of an array and as an array."""
    import numpy as np

    import micrograd as mg

    f = rosenbrock if function == "rosenbrock" else residuals(np)
    derivative, x = getattr(mg, transform)(f), np.linspace(0.2, 1.4, size)
    fast = mg.compile(derivative)
    if size < 1000:
        check(flat(fast(x)), flat(derivative(x)), f"{transform} of {size}, beside eager")
    return Side(flat(fast(x)), timed(lambda: fast(x)))


def derivative_by_jax(transform: str, function: str, size: int) -> Side:
    """A derivative of JAX, of an array of NumPy and as one."""
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    f = rosenbrock if function == "rosenbrock" else residuals(jax.numpy)
    of_jax = {"jacobian": "jacfwd"}.get(transform, transform)  # which is the faster one for few parameters
    jitted, x = jax.jit(getattr(jax, of_jax)(f)), np.linspace(0.2, 1.4, size)
    if transform == "value_and_grad":

        def call() -> Any:
            value, slope = jitted(x)
            return float(value), np.array(slope)

    else:

        def call() -> Any:
            return np.array(jitted(x))

    return Side(flat(call()), timed(call))


def minimised(value_and_slope: Callable[[Any], Any]) -> Side:
    """A complete run of SciPy's BFGS on Rosenbrock's function of 50 numbers."""
    import numpy as np
    from scipy.optimize import minimize

    start = np.linspace(-1.0, 1.0, 50)

    def solve() -> Any:
        return minimize(value_and_slope, start, jac=True, method="BFGS", options={"maxiter": 1000})

    if (found := solve()).fun > 1e-9:
        raise ValueError(f"BFGS ends at {found.fun}")
    return Side(flat(value_and_slope(start)), timed(solve))


def bfgs_by_ours() -> Side:
    """With a compiled gradient."""
    import micrograd as mg

    return minimised(mg.compile(mg.value_and_grad(rosenbrock)))


def bfgs_by_jax() -> Side:
    """With a jitted gradient."""
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    jitted = jax.jit(jax.value_and_grad(rosenbrock))

    def value_and_slope(x: Any) -> Any:
        value, slope = jitted(x)
        return float(value), np.array(slope)

    return minimised(value_and_slope)


def three_floats(backward: bool) -> Side:
    """A function of three floats; with backward(), one that reads three Values."""
    import micrograd as mg

    w = [mg.Value(number) for number in ((0.5, -1.5, 2.0) if backward else ())]

    def f(x: float, y: float, z: float) -> Any:
        return w[0] * x * y + w[1] * mg.sin(z) + w[2] if backward else x * y + mg.sin(z)

    fast = mg.compile(f)
    results = [function(1.0, 2.0, 3.0) for function in (fast, f)]
    if not backward:
        check([results[0]], [results[1]], "three floats, beside eager")
        return Side([], timed(lambda: fast(1.0, 2.0, 3.0)))
    gradients = [mg.gradient(result, w) for result in results]
    check(*gradients, "three floats, beside eager")
    return Side([], timed(lambda: fast(1.0, 2.0, 3.0).backward()))


def samples_of(sizes: tuple[int, ...]) -> tuple[list[list[float]], list[int], list[list[list[float]]]]:
    """32 samples, their classes or sides, and the weights of layers: a row a neuron, its bias last."""
    import random

    rng = random.Random(5)
    xs = [[rng.uniform(0.0, 1.0) for _ in range(sizes[0])] for _ in range(32)]
    ys = [rng.randrange(sizes[-1]) if sizes[-1] > 1 else rng.choice((-1, 1)) for _ in xs]
    layers = [
        [[rng.gauss(0.0, inputs**-0.5) for _ in range(inputs)] + [0.0] for _ in range(neurons)]
        for inputs, neurons in itertools.pairwise(sizes)
    ]
    return xs, ys, layers


def loop_by_ours(*sizes: int) -> Side:
    """A training loop as tutorials write it, whose loss is compiled; its samples are an array."""
    import numpy as np

    import micrograd as mg

    samples, ys, numbers = samples_of(sizes)
    xs = np.array(samples)
    layers = [[[mg.Value(number) for number in row] for row in rows] for rows in numbers]

    def model(x: Any) -> Any:
        for rows in layers[:-1]:
            x = [mg.tanh(mg.dot(row[:-1], x) + row[-1]) for row in rows]
        return [mg.dot(row[:-1], x) + row[-1] for row in layers[-1]]

    def loss(xs: Any, ys: Any) -> Any:
        scores = [model(x) for x in xs]
        if sizes[-1] > 1:
            return mg.losses.cross_entropy(scores, ys)
        return mg.mean([mg.log1p(mg.exp(-y * score)) for (score,), y in zip(scores, ys, strict=True)])

    fast, parameters = mg.compile(loss), [weight for rows in layers for row in rows for weight in row]
    optimizer = mg.optim.Adam(parameters, 1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        output = fast(xs, ys)
        output.backward()
        optimizer.step()
        return output

    losses = [step().data for _ in range(3)]
    return Side([*losses, *(weight.data for weight in parameters[:50])], timed(step))


def loop_by_torch(*sizes: int) -> Side:
    """The same with PyTorch, eager, in doubles."""
    import torch

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    xs, ys, numbers = samples_of(sizes)
    weights = [torch.tensor([row[:-1] for row in rows], requires_grad=True) for rows in numbers]
    biases = [torch.tensor([row[-1] for row in rows], requires_grad=True) for rows in numbers]
    given, truth = torch.tensor(xs), torch.tensor(ys)
    optimizer = torch.optim.Adam([*weights, *biases], 1e-3)

    def step() -> Any:
        optimizer.zero_grad()
        x = given
        for weight, bias in zip(weights[:-1], biases[:-1], strict=True):
            x = torch.tanh(x @ weight.T + bias)
        scores = x @ weights[-1].T + biases[-1]
        output = torch.nn.functional.cross_entropy(scores, truth) if sizes[-1] > 1 else None
        if output is None:
            output = torch.log1p(torch.exp(-truth * scores[:, 0])).mean()
        output.backward()
        optimizer.step()
        return output

    losses = [step().item() for _ in range(3)]
    rows = torch.cat([weights[0], biases[0][:, None]], dim=1).ravel().tolist()
    rows += torch.cat([weights[1], biases[1][:, None]], dim=1).ravel().tolist()
    return Side([*losses, *rows[:50]], timed(step))


def epochs_of(fit: Callable[..., Any], count: int) -> list[float]:
    """The seconds of each epoch of a fit but the first."""
    ends: list[float] = []
    fit(epochs=count + 1, callback=lambda history: ends.append(time.process_time()))
    return [end - start for start, end in itertools.pairwise(ends)]


def digits_by_ours() -> Side:
    """An epoch of fit on the digits: 64-64-10, batches of 32, Adam."""
    from functools import partial

    from sklearn.datasets import load_digits

    import micrograd as mg

    images, digits = load_digits(return_X_y=True)
    data = list(zip((images / 16).tolist(), digits.tolist(), strict=True))

    def fit(data: Any, compile: bool, **settings: Any) -> Any:  # noqa: A002  # as fit has it
        import random

        random.seed(1)
        model = mg.nn.MLP(64, [64, 10])
        loss = partial(lambda model, x, y: mg.losses.cross_entropy(model(x), y), model)
        optimizer = mg.optim.Adam(model, 1e-3)
        return mg.fit(loss, data, optimizer, batch_size=32, compile=compile, seed=0, progress=False, **settings).steps

    few = [fit(data[:64], compile=compiled) for compiled in (True, False)]
    check(*few, "fit, beside eager")
    return Side([], lambda: statistics.median(epochs_of(partial(fit, data, compile=True), 5)))


def digits_by_sklearn() -> Side:
    """An epoch of partial_fit on the same digits."""
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    images, digits = load_digits(return_X_y=True)
    network = MLPClassifier((64,), batch_size=32, random_state=0)
    network.partial_fit(images / 16, digits, classes=range(10))
    scaled = images / 16
    return Side([], timed(lambda: network.partial_fit(scaled, digits)))


def names_and_model() -> tuple[Any, list[list[int]], Callable[[], Any]]:
    """demos/names.py, the tokens of 200 names, and what makes a model of it, the same one each time."""
    import random

    sys.path.insert(0, str(ROOT / "demos"))
    import names

    words = names.NAMES.read_text("utf-8").split()[:200]
    letters = ["", *sorted(set("".join(words)))]
    tokens = [[names.END, *map(letters.index, word), names.END] for word in words]

    def make() -> Any:
        random.seed(1)
        return names.Transformer(len(letters), max(map(len, tokens)))

    return names, tokens, make


def names_by_ours() -> Side:
    """A step of demos/names.py on one name, in fit."""
    from functools import partial

    import micrograd as mg

    _, names, make = names_and_model()
    examples = [(tokens,) for tokens in names]

    def fit(examples: Any, compile: bool, **settings: Any) -> Any:  # noqa: A002  # as fit has it
        model = make()
        optimizer = mg.optim.Adam(model, 0.01)
        return mg.fit(model.loss, examples, optimizer, compile=compile, seed=0, progress=False, **settings).steps

    losses = fit(examples[:1], compile=True, epochs=3)
    check(losses, fit(examples[:1], compile=False, epochs=3), "names.py, beside eager")
    return Side(losses, lambda: statistics.median(epochs_of(partial(fit, examples, compile=True), 5)) / len(examples))


def names_by_c() -> Side:
    """The same, written by hand in C."""
    import ctypes
    import tempfile

    import numpy as np

    library = Path(tempfile.mkdtemp()) / "names.so"
    source = Path(__file__).parent / "programs" / "names.c"
    options = ["-O3", "-march=native", "-ffast-math", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).names_step
    function.restype = ctypes.c_double
    long = ctypes.c_long
    function.argtypes = [ctypes.c_void_p, long, ctypes.c_void_p, *[long] * 4, ctypes.c_double]
    _, names, make = names_and_model()
    model = make()
    numbers = [parameter.data for parameter in model.parameters()]
    state = np.zeros((4, len(numbers)))
    state[0] = numbers
    arrays = [np.array(tokens, np.int64) for tokens in names]
    done = 0

    def step(number: int) -> float:
        nonlocal done
        name = arrays[number]
        counts = len(name), len(model.letter), len(model.place), done
        loss = function(state.ctypes.data, len(numbers), name.ctypes.data, *counts, 0.01)
        done += 1
        return float(loss)

    losses = [step(0) for _ in range(3)]

    def epoch() -> None:
        for number in range(len(arrays)):
            step(number)

    sample = timed(epoch)
    return Side(losses, lambda: sample() / len(arrays))


def memory_of(compiled: bool) -> float:
    """The largest memory of a process that trains a model of 200,000 parameters, in bytes for each parameter."""
    found = subprocess.run(
        [sys.executable, "-c", _TRAIN, "fast" if compiled else "eager"], check=True, capture_output=True, text=True
    )
    return float(found.stdout)


_TRAIN = """
import random, resource, sys
import micrograd as mg

random.seed(0)
weights = [[mg.Value(random.gauss(0, 0.05)) for _ in range(500)] for _ in range(400)]
optimizer = mg.optim.Adam([weight for row in weights for weight in row], 1e-3)
x = [random.random() for _ in range(500)]

def loss(x):
    return mg.mean([mg.tanh(mg.dot(row, x)) ** 2 for row in weights])

function = mg.compile(loss) if sys.argv[1] == "fast" else loss
for _ in range(5):
    optimizer.zero_grad()
    function(x).backward()
    optimizer.step()
print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 200_000)
"""


def memory_row() -> list[str]:
    """The cells of the row on memory."""
    ours, eager = memory_of(True), memory_of(False)
    more = ours - eager
    cells = ["memory, own loop, 200,000 parameters, bytes for each", f"{ours:.0f}", f"{eager:.0f} (eager)"]
    return [*cells, f"{more:.0f} more", "100 more", verdict(more, 100)]


def rows() -> list[Row]:
    """The lines of the table that time calls."""

    def derivative(name: str, transform: str, function: str, size: int, bar: float) -> Row:
        arguments = transform, function, size
        return Row(name, Case(derivative_by_ours, arguments), Case(derivative_by_jax, arguments, "jax"), bar)

    sizes = ((2, 16, 16, 1), 0.15), ((64, 32, 10), 0.3), ((784, 64, 10), 0.8), ((784, 256, 10), 0.8)
    return [
        *(
            derivative(f"value and gradient, array of {size:,}", "value_and_grad", "rosenbrock", size, 1.0)
            for size in (3, 50, 1000, 10_000)
        ),
        derivative("Hessian, array of 50", "hessian", "rosenbrock", 50, 1.0),
        derivative("Jacobian of 1,000 residuals, 6 parameters", "jacobian", "residuals", 6, 1.5),
        Row("function of three floats", Case(three_floats, (False,)), None, 3e-6),
        Row("function of three floats, with backward()", Case(three_floats, (True,)), None, 6e-6),
        Row("SciPy's BFGS, Rosenbrock of 50", Case(bfgs_by_ours), Case(bfgs_by_jax, (), "jax"), 1.0),
        *(
            Row(
                f"own loop, Adam, batch 32, MLP {'-'.join(map(str, layers))}",
                Case(loop_by_ours, layers),
                Case(loop_by_torch, layers, "torch"),
                bar,
            )
            for layers, bar in sizes
        ),
        Row("fit on the digits, an epoch", Case(digits_by_ours), Case(digits_by_sklearn, (), "sklearn"), 1.0, 5),
        Row("a step of names.py, batch of 1", Case(names_by_ours), Case(names_by_c, (), "ctypes", "C"), 1.0, 5),
    ]


def serve(side: Side) -> Iterator[Any]:
    """In the worker: yield the numbers, and then one sample after another."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    yield side.numbers
    while True:
        yield side.sample()


def measured(row: Row, rounds: int) -> list[str]:
    """The cells of a row."""
    cases = [row.ours]
    if row.peer is not None and importlib.util.find_spec(row.peer.needs):
        cases.append(row.peer)
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(case, serve)) for case in cases]  # type: ignore[arg-type]
        numbers = [worker.ask() for worker in workers]
        for other in numbers[1:]:
            check(numbers[0], other, row.what)
        seconds: list[list[float]] = [[] for _ in workers]
        for _ in range(min(rounds, row.rounds)):
            for worker, found in zip(workers, seconds, strict=True):
                found.append(worker.ask())
    ours, *peers = map(statistics.median, seconds)
    if row.peer is None:
        return [row.what, shown(ours), "", "", "" if math.isnan(row.bar) else shown(row.bar), verdict(ours, row.bar)]
    if not peers:
        return [row.what, shown(ours), f"{row.peer.needs} is not installed", "", f"{row.bar:g} times", ""]
    ratio = ours / peers[0]
    cells = [
        row.what,
        shown(ours),
        f"{shown(peers[0])} ({row.peer.name or row.peer.needs})",
        f"{ratio:.2f}",
        f"{row.bar:g} times",
    ]
    return [*cells, verdict(ratio, row.bar)]


def verdict(found: float, bar: float) -> str:
    """Whether a bar is met."""
    return "" if math.isnan(bar) else "met" if found <= bar else "missed"


def shown(seconds: float) -> str:
    """A time as a table shows it."""
    return f"{1e6 * seconds:.3g} us" if seconds < 1e-3 else f"{1e3 * seconds:.3g} ms"


class Before(Ours):
    """This package at an earlier commit."""

    name = f"micrograd at {BEFORE}"

    def __init__(self) -> None:
        folder = CACHE / BEFORE
        if not (folder / "micrograd").exists():
            folder.mkdir(parents=True, exist_ok=True)
            archive = subprocess.run(["git", "archive", BEFORE, "micrograd"], cwd=ROOT, check=True, capture_output=True)
            subprocess.run(["tar", "-x", "-C", str(folder)], input=archive.stdout, check=True)
        sys.path.insert(0, str(folder))
        super().__init__()


class FirstOurs(Ours):
    """This package, from the first step of a process on."""

    warm_up = 0


class FirstBefore(Before):
    """The earlier commit, from the first step of a process on."""

    warm_up = 0


def eager_rows(rounds: int) -> list[list[str]]:
    """How long an eager step takes, beside others: the processor's seconds."""

    def line(what: str, ours: type[Engine], peer: type[Engine], bar: float, processes: int, count: int) -> list[str]:
        found = [result for _ in range(processes) for result in [steps.compare("perceptron", [ours, peer], count)[1]]]
        mine = statistics.median(seconds for result in found for seconds in result.before)
        others = statistics.median(seconds for result in found for seconds in result.seconds)
        ratio = mine / others
        cells = [what, shown(mine), f"{shown(others)} ({peer.name})", f"{ratio:.2f}", f"{bar:.2g} times"]
        return [*cells, verdict(ratio, bar)]

    return [
        line("eager steps, the first eight of a process", FirstOurs, FirstBefore, 0.9, 3, 8),
        line("eager steps, later ones", Ours, Before, 0.9, 1, rounds),
        line("eager steps, later ones", Ours, Pypi, 1 / 9, 1, rounds),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Measure calls from the user's side.")
    parser.add_argument("--rounds", type=int, default=31, help="how many samples to take of each side (default: 31)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the rows with this in their name")
    options = parser.parse_args()
    show(f"Python {platform.python_version()} ({platform.python_implementation()}), {processor()}")
    lines = [["what", "ours", "the peer", "times the peer's", "bar", ""]]
    for row in rows():
        if options.only in row.what:
            lines.append(measured(row, options.rounds))
            show(" | ".join(lines[-1]))
    if options.only in "memory":
        lines.append(memory_row())
        show(" | ".join(lines[-1]))
    if options.only in "eager steps":
        lines += eager_rows(options.rounds)
    table("a call from the user's side, medians", lines)


if __name__ == "__main__":
    main()
