"""Ten families of programs that others chose, beside JAX: ``python tests/benchmarks/families.py [ode lse ...]``.

Most follow the formulas of GradBench and ADBench. Ours are as a user writes them: plain loops over lists, or NumPy on
arrays. JAX's are written for JAX, with ``lax.scan`` and whole arrays. Both compute a value and its gradient by the
first argument, from plain data to plain results, and have to agree to nine digits.

Each library runs in a process of its own, in turn, several times, and the least times count. The first call has an
empty cache, and includes the import of the library, whose bytecode the first process has written; the other calls
follow in the same process.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from run import show, table

LIBRARIES = ["micrograd", "jax"]
ROUNDS = 3
SECONDS = 0.5  # of calls after the first, in each round
STEPS = 100  # of ordinary differential equations


class Family(NamedTuple):
    """A program in two libraries.

    Attributes:
        title: what stands in the table.
        data: makes the arguments, plain data.
        plain: gives the function, as a user of micrograd writes it.
        arrays: gives that for JAX.
        forwards: whether JAX can only differentiate it forwards.
    """

    title: str
    data: Callable[[], tuple[Any, ...]]
    plain: Callable[[], Callable[..., Any]]
    arrays: Callable[[], Callable[..., Any]]
    forwards: bool = False


def drawn(*shape: int) -> Any:
    """Numbers of a normal distribution in nested lists, the same each time."""
    return np.random.default_rng(0).standard_normal(shape).tolist()


# An ordinary differential equation: Lotka and Volterra's, by Runge and Kutta's method


def ode() -> Callable[..., Any]:
    """Plain loops over lists."""

    def slope(p: Any, state: Any) -> list[Any]:
        prey, hunters = state
        return [p[0] * prey - p[1] * prey * hunters, p[2] * prey * hunters - p[3] * hunters]

    def moved(state: Any, slopes: Any, by: float) -> list[Any]:
        return [x + by * s for x, s in zip(state, slopes, strict=True)]

    def last(p: Any, state: Any) -> Any:
        h = 0.05
        for _ in range(STEPS):
            a = slope(p, state)
            b = slope(p, moved(state, a, h / 2))
            c = slope(p, moved(state, b, h / 2))
            d = slope(p, moved(state, c, h))
            state = [x + h / 6 * (i + 2 * j + 2 * k + m) for x, i, j, k, m in zip(state, a, b, c, d, strict=True)]
        return state[0] * state[0] + state[1]

    return last


def ode_jax() -> Callable[..., Any]:
    """A scan over arrays."""
    import jax
    from jax import numpy as jnp

    def last(p: Any, state: Any) -> Any:
        h = 0.05

        def slope(x: Any) -> Any:
            both = x[0] * x[1]
            return jnp.stack([p[0] * x[0] - p[1] * both, p[2] * both - p[3] * x[1]])

        def step(x: Any, _: Any) -> Any:
            a = slope(x)
            b = slope(x + h / 2 * a)
            c = slope(x + h / 2 * b)
            d = slope(x + h * c)
            return x + h / 6 * (a + 2 * b + 2 * c + d), None

        x, _ = jax.lax.scan(step, state, None, length=STEPS)
        return x[0] * x[0] + x[1]

    return last


# The logarithm of a sum of exponentials


def lse() -> Callable[..., Any]:
    """The library's own."""
    import micrograd as mg

    return mg.logsumexp


def lse_jax() -> Callable[..., Any]:
    """JAX's own."""
    import jax

    return jax.nn.logsumexp


def by_hand() -> Callable[..., Any]:
    """NumPy on an array; the first of its largest numbers gets the gradient."""

    def logsumexp(x: Any) -> Any:
        largest = x.max()
        return largest + np.log(np.exp(x - largest).sum())

    return logsumexp


def by_hand_jax() -> Callable[..., Any]:
    """The same on an array of JAX."""
    from jax import numpy as jnp

    def logsumexp(x: Any) -> Any:
        largest = x.max()
        return largest + jnp.log(jnp.exp(x - largest).sum())

    return logsumexp


# A determinant


def det() -> Callable[..., Any]:
    """Elimination in plain loops."""

    def determinant(matrix: Any) -> Any:
        rows, product = [list(row) for row in matrix], 1.0
        for k, pivot in enumerate(rows):
            product = product * pivot[k]
            for row in rows[k + 1 :]:
                factor = row[k] / pivot[k]
                for column in range(k + 1, len(rows)):
                    row[column] = row[column] - factor * pivot[column]
        return product

    return determinant


def det_jax() -> Callable[..., Any]:
    """JAX's own."""
    from jax import numpy as jnp

    return jnp.linalg.det


def dominant() -> Any:
    """A matrix that needs no pivoting."""
    return [[x + 8.0 * (i == j) for j, x in enumerate(row)] for i, row in enumerate(drawn(12, 12))]


# Linear least squares: a polynomial through the signs of points


def llsq() -> Callable[..., Any]:
    """Plain loops over a list of points."""

    def half(x: Any, points: Any) -> Any:
        total = 0.0
        for t in points:
            predicted, power = 0.0, 1.0
            for coefficient in x:
                predicted = predicted + coefficient * power
                power = power * t
            total = total + (math.copysign(1.0, t) - predicted) ** 2
        return 0.5 * total

    points = np.linspace(-1.0, 1.0, 200).tolist()
    return lambda x: half(x, points)


def llsq_jax() -> Callable[..., Any]:
    """A matrix of powers."""
    from jax import numpy as jnp

    points = np.linspace(-1.0, 1.0, 200)
    powers, signs = np.vander(points, 8, increasing=True), np.copysign(1.0, points)
    return lambda x: 0.5 * ((signs - jnp.asarray(powers) @ x) ** 2).sum()


# The loss of k-means


def kmeans() -> Callable[..., Any]:
    """NumPy on arrays."""

    def loss(centres: Any, points: Any) -> Any:
        apart = points[:, None, :] - centres[None, :, :]
        return (apart * apart).sum(axis=2).min(axis=1).sum()

    return loss


def two_arrays() -> tuple[Any, ...]:
    """Ten centres and a thousand points."""
    points = np.array(drawn(1000, 3))
    return points[:10] + 0.1, points


# Of ADBench's programs this repository has both forms in the suite


def of_suite(name: str) -> Family:
    """A program of the suite, smaller."""
    from programs.bundle import bundle
    from programs.lstm import lstm

    program = {"lstm": lstm(2, 64), "ba": bundle(5, 50, 150)}[name]
    parameters, given = program.data()

    def arrays() -> Callable[..., Any]:
        import jax
        from array_libraries import Jax

        known = jax.tree.map(np.asarray, given, is_leaf=lambda item: isinstance(item, list))
        return lambda w: program.arrays(Jax(), w, known)

    return Family(program.title, lambda: (parameters,), lambda: lambda w: program.scalars(w, given), arrays)


# Hand tracking: where the bones of fingers end, beside where they were seen

FINGERS, BONES = 5, 4


def hand() -> Callable[..., Any]:
    """Plain loops; each bone turns about two axes."""
    import micrograd as mg

    def turned(x: Any, spread: Any, bend: Any) -> Any:
        x = [mg.cos(spread) * x[0] - mg.sin(spread) * x[1], mg.sin(spread) * x[0] + mg.cos(spread) * x[1], x[2]]
        return [x[0], mg.cos(bend) * x[1] - mg.sin(bend) * x[2], mg.sin(bend) * x[1] + mg.cos(bend) * x[2]]

    def loss(angles: Any, seen: Any) -> Any:
        total = 0.0
        for finger, of_finger in enumerate(angles):
            at, direction = [0.3 * finger, 0.0, 0.0], [0.0, 1.0, 0.1]
            for bone, (spread, bend) in enumerate(of_finger):
                direction = turned(direction, spread, bend)
                at = [a + d / (bone + 1.0) for a, d in zip(at, direction, strict=True)]
                total = total + sum((a - s) ** 2 for a, s in zip(at, seen[finger][bone], strict=True))
        return total

    return loss


def hand_jax() -> Callable[..., Any]:
    """A vmap over fingers of a scan over bones."""
    import jax
    from jax import numpy as jnp

    def step(state: Any, given: Any) -> Any:
        at, x = state
        (spread, bend), seen, length = given
        x = jnp.stack(
            [jnp.cos(spread) * x[0] - jnp.sin(spread) * x[1], jnp.sin(spread) * x[0] + jnp.cos(spread) * x[1], x[2]]
        )
        x = jnp.stack([x[0], jnp.cos(bend) * x[1] - jnp.sin(bend) * x[2], jnp.sin(bend) * x[1] + jnp.cos(bend) * x[2]])
        at = at + x * length
        return (at, x), ((at - seen) ** 2).sum()

    def of_finger(angles: Any, seen: Any, begin: Any) -> Any:
        state = jnp.stack([begin, 0.0 * begin, 0.0 * begin]), jnp.array([0.0, 1.0, 0.1])
        return jax.lax.scan(step, state, (angles, seen, 1.0 / jnp.arange(1.0, BONES + 1.0)))[1].sum()

    return lambda angles, seen: jax.vmap(of_finger)(angles, seen, 0.3 * jnp.arange(float(FINGERS))).sum()


# A particle that falls between charges, until it meets the ground


def particle() -> Callable[..., Any]:
    """A plain loop that decides, and a derivative in it."""
    import micrograd as mg

    def hit(w: Any) -> Any:
        charges = [[10.0, 10.0 - w], [10.0, 0.0]]

        def potential(x: Any) -> Any:
            return sum(1.0 / mg.sqrt((x[0] - a) ** 2 + (x[1] - b) ** 2) for a, b in charges)

        pull, x, v, step = mg.grad(potential), [0.0, 8.0], [0.75, 0.0], 0.1
        while True:
            slopes = pull(x)
            after = [x[0] + step * v[0], x[1] + step * v[1]]
            if not after[1] > 0:
                break
            x, v = after, [v[0] - step * slopes[0], v[1] - step * slopes[1]]
        left = -x[1] / v[1]
        return (x[0] + left * v[0]) ** 2

    return hit


def particle_jax() -> Callable[..., Any]:
    """A while_loop, which JAX differentiates forwards."""
    import jax
    from jax import numpy as jnp

    def hit(w: Any) -> Any:
        charges = jnp.stack([jnp.stack([10.0 + 0.0 * w, 10.0 - w]), jnp.array([10.0, 0.0])])

        def potential(x: Any) -> Any:
            return (1.0 / jnp.sqrt(((x - charges) ** 2).sum(1))).sum()

        def body(state: Any) -> Any:
            x, v = state
            return x + 0.1 * v, v - 0.1 * jax.grad(potential)(x)

        start = jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0])
        x, v = jax.lax.while_loop(lambda state: state[0][1] + 0.1 * state[1][1] > 0, body, start)
        return (x[0] - x[1] / v[1] * v[0]) ** 2

    return hit


# A saddle: down in one pair of variables, and up in another one, each by its gradient


def saddle() -> Callable[..., Any]:
    """Plain loops in one another, and derivatives in them."""
    import micrograd as mg

    def height(x: Any, y: Any) -> Any:
        return (x[0] ** 2 + y[0] ** 2) - (x[1] ** 2 + y[1] ** 2) + 0.3 * mg.sin(x[0] * y[1])

    def highest(x: Any) -> Any:
        y = [0.5, 0.4]
        for _ in range(10):
            slopes = mg.grad(lambda y: -height(x, [y[0] * 0.1, y[1]]))(y)
            y = [a - 0.1 * s for a, s in zip(y, slopes, strict=True)]
        return height(x, [y[0] * 0.1, y[1]])

    def lowest(x: Any) -> Any:
        for _ in range(10):
            slopes = mg.grad(highest)(x)
            x = [a - 0.05 * s for a, s in zip(x, slopes, strict=True)]
        return x[0] * x[0] + x[1]

    return lowest


def saddle_jax() -> Callable[..., Any]:
    """Scans in one another, and derivatives in them."""
    import jax
    from jax import numpy as jnp

    scale = jnp.array([0.1, 1.0])

    def height(x: Any, y: Any) -> Any:
        return (x[0] ** 2 + y[0] ** 2) - (x[1] ** 2 + y[1] ** 2) + 0.3 * jnp.sin(x[0] * y[1])

    def highest(x: Any) -> Any:
        slope = jax.grad(lambda y: -height(x, y * scale))
        y, _ = jax.lax.scan(lambda y, _: (y - 0.1 * slope(y), None), jnp.array([0.5, 0.4]), None, length=10)
        return height(x, y * scale)

    def lowest(x: Any) -> Any:
        x, _ = jax.lax.scan(lambda x, _: (x - 0.05 * jax.grad(highest)(x), None), x, None, length=10)
        return x[0] * x[0] + x[1]

    return lowest


def angles() -> Any:
    """How far each bone of each finger turns about two axes."""
    return (0.3 * np.array(drawn(FINGERS, BONES, 2))).tolist()


FAMILIES: dict[str, Callable[[], Family]] = {
    "ode": lambda: Family("ODE, 100 steps, lists", lambda: ([1.1, 0.4, 0.1, 0.4], [10.0, 5.0]), ode, ode_jax),
    "lse": lambda: Family("LSE, array of 10,000", lambda: (np.array(drawn(10_000)),), lse, lse_jax),
    "by_hand": lambda: Family("the same by hand", lambda: (np.array(drawn(10_000)),), by_hand, by_hand_jax),
    "det": lambda: Family("det, 12 x 12, lists", lambda: (dominant(),), det, det_jax),
    "llsq": lambda: Family("llsq, 200 points, lists", lambda: ([0.1 * n for n in range(8)],), llsq, llsq_jax),
    "kmeans": lambda: Family("k-means, 1,000 points, arrays", two_arrays, kmeans, kmeans),
    "lstm": lambda: of_suite("lstm"),
    "ba": lambda: of_suite("ba"),
    "ht": lambda: Family("HT, 5 fingers, lists", lambda: (angles(), drawn(FINGERS, BONES, 3)), hand, hand_jax),
    "particle": lambda: Family("particle, plain while", lambda: (0.2,), particle, particle_jax, forwards=True),
    "saddle": lambda: Family("saddle, 10 x 10 steps, lists", lambda: ([0.7, 0.3],), saddle, saddle_jax),
}


def flat(nested: Any) -> list[float]:
    """All numbers, in order."""
    if isinstance(nested, dict):
        return [number for _, part in sorted(nested.items()) for number in flat(part)]
    if isinstance(nested, (list, tuple)):
        return [number for part in nested for number in flat(part)]
    return np.asarray(nested, dtype=float).ravel().tolist()


def call_of(library: str, family: Family) -> Callable[..., Any]:
    """From plain data to plain results."""
    if library == "micrograd":
        import micrograd as mg

        return mg.compile(mg.value_and_grad(family.plain()))
    import jax

    jax.config.update("jax_enable_x64", True)
    function = family.arrays()
    if family.forwards:
        both = jax.jit(lambda w: jax.jvp(function, (w,), (1.0,)))
    else:
        both = jax.jit(jax.value_and_grad(function))

    def run(*arguments: Any) -> Any:
        given = jax.tree.map(np.asarray, arguments, is_leaf=lambda item: isinstance(item, list))
        return jax.tree.map(np.asarray, both(*given))

    return run


def measure(library: str, name: str) -> dict[str, Any]:
    """In a process of its own: what one library takes."""
    begin = time.perf_counter()
    import_module(library)  # before the programs of the suite, which import micrograd
    imported = time.perf_counter() - begin
    family = FAMILIES[name]()
    arguments = family.data()
    begin = time.perf_counter() - imported
    run = call_of(library, family)
    results = run(*arguments)
    first, calls = time.perf_counter() - begin, []
    end = time.perf_counter() + SECONDS
    while len(calls) < 5 or time.perf_counter() < end:
        begin = time.perf_counter()
        run(*arguments)
        calls.append(time.perf_counter() - begin)
    return {"results": flat(results), "first": first, "call": min(calls)}


def measured(library: str, name: str) -> dict[str, Any]:
    """What a new process with an empty cache measures."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MICROGRAD_CACHE": cache, "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, __file__, "--one", library, name]
        found = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def main(names: list[str]) -> None:
    """Measure these families in all libraries that are installed."""
    libraries = [each for each in LIBRARIES if find_spec(each)]
    rows = [["family", "first call, s", "JAX", "times JAX", "call, µs", "JAX", "times JAX"]]
    for name in names:
        found: dict[str, list[dict[str, Any]]] = {library: [] for library in libraries}
        for _ in range(ROUNDS):
            for library in libraries:
                found[library].append(measured(library, name))
                np.testing.assert_allclose(found[library][-1]["results"], found["micrograd"][0]["results"], 1e-9, 1e-11)
        cells = [FAMILIES[name]().title]
        for what, scale, digits in (("first", 1.0, 2), ("call", 1e6, 1)):
            times = [scale * min(one[what] for one in found[library]) for library in libraries]
            cells += [f"{each:,.{digits}f}" for each in times]
            cells += [f"{times[0] / times[-1]:.2f}"] if len(times) > 1 else ["", ""]
        rows.append(cells)
        show(" | ".join(cells))
    table("families of programs", rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        show(json.dumps(measure(*sys.argv[2:])))
    else:
        main(sys.argv[1:] or list(FAMILIES))
