"""Random programs of nested loops, stated and plain: all ways of running them give the same numbers.

``python -m tests.campaigns.nested_loops --count 1000 --seed 0`` prints what disagrees. Each program goes through an
array of two axes, by ``mg.scan`` and ``mg.vmap`` in one another; and once more in plain Python loops. The value and all
gradients of both are compared with those of the plain loops, eagerly, natively and on NumPy; every eighth program runs
on JAX, too. A program whose value depends on the last digits of its inputs cannot be compared: it is counted, and no
more. Every third one has many rows, so that it is traced for a few of them. Every program follows from the seed
and its number: ``--only 1234`` prints one, and runs it again. Processes share the programs by ``--first``.
"""

import random
import sys
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np

import micrograd as mg
from micrograd.compiler.calling import of_rows
from tests.campaigns.numbered import numbers_of, parser_of

FEWEST_ROWS = 150  # that are extrapolated here, so that eager runs take no time
_OFTEN_ROWS, _OFTEN_JAX = 3, 8
_NUMBERS = ("0.5", "-0.25", "1.5", "0.1")


class Writer:
    """Writes one program, in two ways.

    Args:
        seed: of all programs.
        number: of this one.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._draw = random.Random(f"loops {seed}-{number}")
        self._names = 0

    def program(self) -> tuple[str, str]:
        """The text with stated loops, and that with plain ones: a function of a dict with x, y and w."""
        stated, plain, result = self._nest("x", 2, ("w",), 1)
        head = ["def f(given):", "    x, y, w = given['x'], given['y'], given['w']"]
        return tuple("\n".join([*head, *lines, f"    return {result}"]) for lines in (stated, plain))  # type: ignore[return-value]

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _expression(self, names: tuple[str, ...], depth: int = 0) -> str:
        draw = self._draw
        if depth > 2 or draw.random() < 0.25:
            return draw.choice(names) if draw.random() < 0.8 else draw.choice((*_NUMBERS, "y[0]", "y[-1]"))
        a, b = (self._expression(names, depth + 1) for _ in range(2))
        forms = f"({a} + {b})", f"({a} - {b})", f"{a} * {b}", f"mg.sin({a})", f"mg.tanh({a})", f"mg.maximum({a}, {b})"
        return draw.choice((*forms, f"mg.exp(mg.tanh({a}))", f"abs({a})", f"({a}) ** 2", f"{a} / (1.5 + ({b}) ** 2)"))

    def _nest(self, sequence: str, axes: int, names: tuple[str, ...], indent: int) -> tuple[list[str], list[str], str]:
        """Lines that go through a sequence, stated and plain, and what the result is called."""
        draw, margin, item, out = self._draw, "    " * indent, self._name("item"), self._name("out")
        is_scan, back = draw.random() < 0.6, draw.random() < 0.25
        state = (self._name("s"), self._name("s")) if is_scan else ()
        inner: tuple[list[str], list[str], str] = ([], [], item)
        if axes > 1:
            inner = self._nest(item, axes - 1, (*names, *state), indent + 1)
        known = (*names, *state, inner[2])
        body, result = self._name("body"), self._name("r")
        made = self._expression(known)
        if is_scan:
            s, t = state
            begin = f"({self._expression(names, 2)}, {draw.choice(_NUMBERS)})"
            after = f"(mg.tanh({self._expression(known)}), 0.5 * {t} + mg.tanh({self._expression(known)}))"
            stated = [f"{margin}def {body}(state, {item}):", f"{margin}    {s}, {t} = state", *inner[0],
                      f"{margin}    return {after}, {made}",
                      f"{margin}({s}, {t}), {out} = mg.scan({body}, {begin}, {sequence}, reverse={back})"]  # fmt: skip
            through = f"list({sequence})[::-1]" if back else f"list({sequence})"
            plain = [f"{margin}({s}, {t}), {out} = {begin}, []", f"{margin}for {item} in {through}:", *inner[1],
                     f"{margin}    {out}.append({made})", f"{margin}    {s}, {t} = {after}"]  # fmt: skip
        else:
            stated = [f"{margin}def {body}({item}):", *inner[0], f"{margin}    return {made}",
                      f"{margin}{out} = mg.vmap({body})({sequence})"]  # fmt: skip
            plain = [f"{margin}{out} = []", f"{margin}for {item} in list({sequence}):", *inner[1],
                     f"{margin}    {out}.append({made})"]  # fmt: skip
        reduced = draw.choice([f"mg.mean(list({out}))", f"sum(list({out}))", f"mg.logsumexp(list({out}))"])
        last = [f"{margin}m = {reduced}",
                f"{margin}{result} = mg.tanh({self._expression((*names, *state, 'm'), 1)}) + 0.01 * m"]  # fmt: skip
        return stated + last, plain + last, result


def disagreements(seed: int, number: int) -> list[str] | None:
    """How the ways of running a program differ; None if they cannot be compared."""
    draw, texts = random.Random(f"loop inputs {seed}-{number}"), Writer(seed, number).program()
    rows = draw.randint(FEWEST_ROWS, FEWEST_ROWS + 40) if number % _OFTEN_ROWS == 0 else draw.randint(2, 40)
    columns = draw.randint(2, 6 if rows >= FEWEST_ROWS else 20)
    numbers = np.random.default_rng(number).uniform(-1.0, 1.0, (rows, columns))
    given = {"x": numbers, "y": [0.3, draw.uniform(-1.0, 1.0)], "w": draw.uniform(-1.0, 1.0)}
    functions = []
    for text in texts:
        names: dict[str, Any] = {"mg": mg}
        exec(text, names)  # it was written above
        functions.append(mg.value_and_grad(names["f"]))
    backends = ["llvm", "numpy"]
    if number % _OFTEN_JAX == 0 and rows < FEWEST_ROWS and find_spec("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
        backends.append("jax")
    expected = functions[1](given)
    found = []
    for way, function in zip(("stated", "plain"), functions, strict=True):
        ways = {"eager": function, **{name: mg.compile(function, backend=name) for name in backends}}
        for name, run in ways.items():
            for call in (1, 2):
                if not agree(outcome := run(given), expected):
                    found.append(
                        f"program {number}, {way}, {name}, call {call}: {outcome!r:.200}, not {expected!r:.200}"
                    )
                    break
    return None if found and is_chaotic(functions[1], given, expected) else found


def is_chaotic(function: Any, given: dict[str, Any], expected: Any) -> bool:
    """Whether other last digits of the inputs give another value or gradient."""
    close = [
        {"x": given["x"] * scale, "y": [each * scale for each in given["y"]], "w": given["w"] * scale}
        for scale in (1.0 - 2e-16, 1.0 + 4e-16, 1.0 - 1e-15)
    ]
    return not all(agree(function(each), expected) for each in close)


def agree(one: Any, other: Any) -> bool:
    """Whether a value and its gradients are the same as others, but for rounding."""
    (value, slopes), (expected, others) = one, other
    pairs = [(value, expected), *((slopes[name], others[name]) for name in ("x", "y", "w"))]
    return all(np.allclose(np.asarray(x, float), np.asarray(y, float), rtol=1e-8, atol=1e-10) for x, y in pairs)


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; the number of programs that disagree, at most 1."""
    options = parser_of(__doc__).parse_args(arguments)
    done = wrong = chaotic = 0
    with patch.multiple(of_rows, FEWEST_ROWS=FEWEST_ROWS, FEWEST_ITERATIONS=FEWEST_ROWS):
        for number in numbers_of(options):
            if options.only is not None:
                print(*Writer(options.seed, number).program(), sep="\n\n")  # noqa: T201
            found = disagreements(options.seed, number)
            for line in found or []:
                print(line, flush=True)  # noqa: T201
            wrong += bool(found)
            chaotic += found is None
            done += 1
    print(f"{done} programs: {wrong} disagree, {chaotic} cannot be compared")  # noqa: T201
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
