"""Random programs that decide on numbers: compiled equals eager, whatever is decided.

``python -m tests.campaigns.decisions --count 1000 --inputs 200 --seed 0`` prints what disagrees. Each program has ifs,
whiles, breaks, max, sorted and ints of numbers, nested in one another and in a function of its own. Many inputs are
ties, some are NaN or infinite, and what is closed over changes between calls. Every program follows from the seed and
its number: ``--only 1234`` prints one, and runs it again. Processes share the programs by ``--first``: two of them took
41 minutes for 1,000, on two cores that others used. Every fourth program runs on NumPy, too.
"""

import math
import random
import sys
import warnings
from typing import Any

import micrograd as mg
from micrograd import Value
from tests.campaigns.numbered import numbers_of, parser_of

_OFTEN = 4  # programs, of which one runs on NumPy, too
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 1e-3, 0.1, 0.3)
NAMES = ("a", "b", "c", "x", "y", "z", "w")
NEARLY = 1e-8


class Writer:
    """Writes one program: a function of x, y and z, which closes over w.

    Args:
        seed: of all programs.
        number: of this one.
    """

    def __init__(self, seed: int, number: int) -> None:
        self._draw = random.Random(f"{seed}-{number}")

    def program(self) -> str:
        inner = ["def g(a, b):", "    c = x = y = z = a", *self._block(1, 2, False), "    return c * b + a", ""]
        outer = ["def f(x, y, z):", "    a, b, c = x, y, z", *self._block(1, 0, False), "    return a * b + c * w"]
        return "\n".join([*inner, *outer])

    def _expression(self, depth: int = 0) -> str:
        draw = self._draw
        if depth > 2 or draw.random() < 0.35:
            return draw.choice(NAMES) if draw.random() < 0.75 else repr(draw.choice(NUMBERS))
        a, b, c = (self._expression(depth + 1) for _ in range(3))
        forms = (
            *(f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a}) ** 2", f"-{a}", f"abs({a})"),
            *(
                f"mg.tanh({a})",
                f"mg.sin({a})",
                f"mg.exp(mg.tanh({a}))",
                f"mg.relu({a})",
                f"mg.where({a} > {b}, {a}, {b})",
            ),
            *(f"max({a}, {b})", f"min({a}, {b}, {c})", f"sorted([{a}, {b}, {c}])[{draw.randrange(3)}]"),
            *(f"({a} if {self._condition(depth + 1)} else {b})", f"mg.cond({self._condition(2)}, max, min, {a}, {b})"),
        )
        return draw.choice(forms)

    def _condition(self, depth: int = 0) -> str:
        draw, kind = self._draw, self._draw.random()
        if kind < 0.2 and depth < 2:
            return (
                f"({self._condition(depth + 1)} {draw.choice(['and', 'or', 'and not'])} {self._condition(depth + 1)})"
            )
        if kind < 0.25:
            return draw.choice(NAMES)
        if kind < 0.3:
            return f"({self._expression(3)} < {self._expression(2)} <= {self._expression(3)})"
        return f"({self._expression(depth + 1)} {draw.choice(['<', '<=', '>', '>='])} {self._expression(depth + 1)})"

    def _block(self, indent: int, depth: int, in_loop: bool) -> list[str]:
        lines = []
        for _ in range(self._draw.randint(1, 3)):
            lines += self._statement(indent, depth, in_loop)
        return lines

    def _statement(self, indent: int, depth: int, in_loop: bool) -> list[str]:
        draw, kind, margin = self._draw, self._draw.random(), "    " * indent
        if kind < 0.4 or depth > 2:
            call = f"g({self._expression(2)}, {self._expression(2)})" if indent == 1 and depth == 0 else None
            chosen = call if call and draw.random() < 0.2 else self._expression()
            return [f"{margin}{draw.choice('abc')} = {chosen}"]
        if kind < 0.6:
            lines = [f"{margin}if {self._condition()}:", *self._block(indent + 1, depth + 1, in_loop)]
            return lines + (
                [f"{margin}else:", *self._block(indent + 1, depth + 1, in_loop)] if draw.random() < 0.5 else []
            )
        inside = self._block(indent + 1, depth + 1, True) if kind < 0.84 else []
        if kind < 0.72:
            count = f"n{indent}"
            head = [f"{margin}{count} = 0", f"{margin}while {self._condition()} and {count} < {draw.randint(1, 4)}:"]
            return [*head, f"{margin}    {count} += 1", *inside]
        if kind < 0.84:
            often = draw.choice(["3", "int(abs(mg.tanh(a)) * 3)", "round(mg.tanh(b) * 2 + 2)"])
            return [f"{margin}for _ in range({often}):", *inside]
        if in_loop:
            return [f"{margin}if {self._condition()}:", f"{margin}    {draw.choice(['break', 'continue'])}"]
        if kind > 0.95:
            return [f"{margin}if {self._condition()}:", f"{margin}    return {self._expression()}"]
        index = f"[1.0, 2.0, 3.0, 4.0][int(abs({self._expression(2)})) % 4]"
        return [f"{margin}a = a + {index} * math.floor(mg.tanh({self._expression(2)}) * 3)"]


def outcome(function: Any, numbers: list[float], are_values: list[bool], w: Value) -> list[Any]:
    """What a call gives: its number and its gradients, or the kind of its error."""
    w.grad = 0.0
    given: list[Any] = [Value(x) if is_value else x for x, is_value in zip(numbers, are_values, strict=True)]
    found: list[Any] = []
    try:
        result = function(*given)
        found = [float(result), isinstance(result, Value)]
        if isinstance(result, Value):
            result.backward()
    except (ArithmeticError, ValueError) as error:
        return [*found, type(error).__name__]
    return [*found, w.grad, *(x.grad for x in given if isinstance(x, Value))]


def agree(one: list[Any], other: list[Any]) -> bool:
    """Whether two outcomes are the same, but for rounding."""
    return len(one) == len(other) and all(
        x == y
        or (
            isinstance(x, float)
            and isinstance(y, float)
            and (x != x) == (y != y)
            and not abs(x - y) > NEARLY * (1 + abs(x))
        )
        for x, y in zip(one, other, strict=True)
    )


def disagreements(seed: int, number: int, inputs: int) -> list[str]:
    """How a program differs when it is compiled, at so many inputs."""
    draw, w, text = random.Random(f"inputs {seed}-{number}"), Value(0.7), Writer(seed, number).program()
    names: dict[str, Any] = {"mg": mg, "math": math, "w": w}
    exec(text, names)  # it was written above
    backends = ["llvm", "numpy"] if number % _OFTEN == 0 else ["llvm"]
    compiled = {backend: mg.compile(names["f"], backend=backend) for backend in backends}
    are_values = [draw.random() < 0.6 for _ in range(3)]
    for call in range(inputs):
        extremes = (math.nan, math.inf, -math.inf) * (call % 7 == 0)
        choices = (*NUMBERS, *extremes)
        numbers = [draw.choice(choices) if draw.random() < 0.4 else draw.uniform(-3.0, 3.0) for _ in range(3)]
        if call % 50 == 20:
            w.data = draw.choice([0.7, 1.0, -0.5, 0.0])
        expected = outcome(names["f"], numbers, are_values, w)
        for backend, fast in compiled.items():
            found = outcome(fast, numbers, are_values, w)
            if not agree(expected, found):
                return [f"program {number}, {backend}, at {numbers}, w = {w.data}: eager {expected}, compiled {found}"]
    return []


def main(arguments: list[str] | None = None) -> int:
    """Run the campaign; the number of programs that disagree."""
    parser = parser_of(__doc__)
    parser.add_argument("--inputs", type=int, default=200, help="of each program")
    options = parser.parse_args(arguments)
    done = wrong = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of paths that are too many, and of what rounding loses
        for number in numbers_of(options):
            if options.only is not None:
                print(Writer(options.seed, number).program())  # noqa: T201
            for line in disagreements(options.seed, number, options.inputs):
                print(line, flush=True)  # noqa: T201
                wrong += 1
            done += 1
    print(f"{done} programs at {options.inputs} inputs: {wrong} disagreements")  # noqa: T201
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
