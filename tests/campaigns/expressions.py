"""Random expressions on this engine, on finite differences, and on other engines: they must agree.

``python tests/campaigns/expressions.py --count 200000 --seed 0`` takes a while and shows how far it is. Every
expression follows from the seed and its number, so what fails can be run again alone: ``--only 1234``.
The other engines take part where they are installed: HIPS autograd, PyTorch and JAX; and ``micrograd.compile``
with each of its backends, which are handed several expressions at a time, as one program. What is slow takes part
in some of the expressions only.
"""

import argparse
import math
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import micrograd as mg
from micrograd import Value
from micrograd.engine.further_primitives import TABLE as LIBRARY
from micrograd.testing import GradientError, Program, gradcheck
from micrograd.testing.programs import grow, registered

ALLOWED = 1e-9  # between engines: of the sum of the sizes of a gradient's terms, which may cancel
LEAST = 1e-6  # so that an error of 1e-15 in a local derivative is allowed to engines whose formulas cancel in tails
SHOWN = 10  # failures
TOGETHER = 50  # expressions in one compiled program: kernels for all of them cost less than for each
# The library's own primitives that a gradient flows through, whatever else is registered.
TABLE = [p for p in registered() if any(p.derivatives) and LIBRARY.get(p.name) is p]


class RandomChoices:
    """Choices by a random.Random, which is fast."""

    def __init__(self, source):
        self._source = source

    def integer(self, low, high):
        return self._source.randint(low, high)

    def number(self):
        return round(self._source.uniform(-3, 3), 3)

    def one_of(self, candidates, fits):
        while not fits(candidate := self._source.choice(candidates)):
            pass
        return candidate


class Engine(NamedTuple):
    """Something that computes gradients of several expressions at a time, and takes part in one of every so many.

    No local derivative counts for less than least: 1 - tanh(x)**2 has an error of 1e-16, however small it is.
    """

    name: str
    gradients: Callable[[list[Program]], list[Iterable[Any]]]
    least: float = 0.0
    every: int = 1
    together: int = 1


class Expected(NamedTuple):
    """An expression with the gradient that this engine found."""

    number: int
    program: Program
    found: list[float]


class Failure(NamedTuple):
    """What went wrong where."""

    number: int
    engine: str
    program: Program
    what: str


def expression(seed: int, number: int, size: int) -> Program:
    """The expression of that number: the same in every run with that seed."""
    choices = RandomChoices(random.Random(f"{seed} {number}"))
    return grow(choices, TABLE, (1, 4), (1, size))


def eager(program: Program) -> tuple[list[float], float]:
    """The gradient and the value, of this engine."""
    leaves = [Value(number) for number in program.inputs]
    root = program(*leaves)
    if root.requires_grad:
        root.backward()
    return [leaf.grad for leaf in leaves], root.data


def sizes(program: Program, least: float = 0.0) -> list[float]:
    """For each input the sum of the sizes of the terms of its gradient: what rounding is a fraction of.

    Args:
        program: the expression, at its inputs.
        least: what a local derivative counts for where it is smaller, but not 0.
    """
    numbers = program.run(program.inputs)
    totals = []
    for chosen in range(len(program.inputs)):
        terms = [float(index == chosen) for index in range(len(program.inputs))]
        for (primitive, positions), output in zip(program.steps, numbers[len(program.inputs) :], strict=True):
            inputs = [numbers[position] for position in positions]
            slopes = [abs(rule(1.0, output, *inputs)) if rule else 0.0 for rule in primitive.derivatives]
            slopes = [max(slope, least) if slope else 0.0 for slope in slopes]
            terms.append(sum(slope * terms[position] for slope, position in zip(slopes, positions, strict=True)))
        totals.append(terms[-1])
    return totals


def functions(np: Any, special: Any) -> dict[str, Callable[..., Any]]:
    """Every primitive with the functions of another library, written from its definition."""
    circular = ["sin", "cos", "tan", "sinh", "cosh", "tanh"]
    elementary = ["exp", "expm1", "log", "log1p", "sqrt", *circular, "maximum", "minimum", "abs"]
    steps = ["sign", "floor", "ceil"]

    def sinc(x: Any) -> Any:
        angle = math.pi * np.where(x == 0, 1.0, x)
        return np.where(x == 0, 1.0, np.sin(angle) / angle)

    return {
        **{name: getattr(np, name) for name in (*elementary, *steps)},
        "identity": lambda x: x * 1.0,
        "where": lambda condition, x, y: np.where(condition != 0, x, y),
        "neg": lambda x: -x,
        "add": lambda x, y: x + y,
        "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y,
        "div": lambda x, y: x / y,
        "pow": lambda x, y: x**y,
        "asin": np.arcsin,
        "acos": np.arccos,
        "atan": np.arctan,
        "exp2": lambda x: 2.0**x,
        "log2": lambda x: np.log(x) / math.log(2),
        "log10": lambda x: np.log(x) / math.log(10),
        "asinh": np.arcsinh,
        "acosh": np.arccosh,
        "atanh": np.arctanh,
        "atan2": np.arctan2,
        "hypot": lambda x, y: np.sqrt(x * x + y * y),
        "fma": lambda x, y, z: x * y + z,
        "floor_divide": lambda x, y: np.floor(x / y),
        "remainder": lambda x, y: x - y * np.floor(x / y),
        "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "softplus": lambda x: np.logaddexp(0.0, x),
        "relu": lambda x: np.where(x > 0, x, 0.0),
        "leaky_relu": lambda x, slope: np.where(x > 0, x, slope * x),
        "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
        "silu": lambda x: x / (1 + np.exp(-x)),
        "sinc": sinc,
        "lgamma": special.gammaln,
        "digamma": special.digamma,
        "erf": special.erf,
        "erfc": special.erfc,
        "normal_cdf": lambda x: special.erfc(-x * math.sqrt(0.5)) / 2,
        "logistic_pdf": lambda x: 1 / (2 + np.exp(-x) + np.exp(x)),
        "normal_pdf": lambda x: np.exp(-x * x / 2) / math.sqrt(2 * math.pi),
        "gaussian": lambda x: np.exp(-x * x),
        "lorentzian": lambda x: 1 / (1 + x * x),
        "gelu": lambda x: x * special.erfc(-x * math.sqrt(0.5)) / 2,
        **{
            name: getattr(special, name, None)
            for name in ("betaln", "erfinv", "i0", "i1", "log_ndtr", "logit", "ndtri")
        },
        **{name: getattr(special, name, None) for name in ("rel_entr", "xlogy")},
    }


def by_library(grad: Callable[..., Any], np: Any, special: Any) -> Callable[[list[Program]], list[Iterable[Any]]]:
    """Gradients by another engine whose grad takes a function and the numbers of its arguments."""
    table = functions(np, special)

    def gradient(program: Program) -> Iterable[Any]:
        def run(*operands):
            return program.run(operands, lambda primitive, *inputs: table[primitive.name](*inputs))[-1]

        return grad(run, tuple(range(len(program.inputs))))(*program.inputs)

    return lambda programs: [gradient(program) for program in programs]


def by_torch(torch: Any) -> Callable[[list[Program]], list[Iterable[Any]]]:
    """Gradients by PyTorch, in 64 bits."""
    as_tensor = partial(torch.as_tensor, dtype=torch.float64)
    names = {"arcsin": torch.asin, "arccos": torch.acos, "arctan": torch.atan, "floor": torch.floor}
    names |= {"arcsinh": torch.asinh, "arccosh": torch.acosh, "arctanh": torch.atanh}
    names["arctan2"] = lambda y, x: torch.atan2(as_tensor(y), as_tensor(x))
    names["where"] = lambda condition, x, y: torch.where(condition, as_tensor(x), as_tensor(y))
    names["logaddexp"] = lambda x, y: torch.logaddexp(as_tensor(x), as_tensor(y))
    for name in (
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "expm1",
        "log",
        "log1p",
        "sqrt",
        "abs",
        "sign",
        "ceil",
    ):
        names[name] = getattr(torch, name)
    table = functions(SimpleNamespace(maximum=torch.maximum, minimum=torch.minimum, **names), torch.special)

    def gradient(program: Program) -> Iterable[float]:
        leaves = [as_tensor(number).requires_grad_() for number in program.inputs]
        root = program.run(leaves, lambda primitive, *inputs: table[primitive.name](*inputs))[-1]
        if root.requires_grad:
            root.backward()
        return [0.0 if leaf.grad is None else leaf.grad.item() for leaf in leaves]

    return lambda programs: [gradient(program) for program in programs]


def by_compiler(backend: str) -> Callable[[list[Program]], list[Iterable[float]]]:
    """Gradients by compiled code: the sum of all the expressions is one program."""

    def gradients(programs: list[Program]) -> list[Iterable[float]]:
        written = [eval(program.source(), {"mg": mg}) for program in programs]

        def total(inputs):
            return sum(function(*operands) for function, operands in zip(written, inputs, strict=True))

        leaves = [[Value(number) for number in program.inputs] for program in programs]
        result = mg.compile(total, backend=backend)(leaves)
        if result.requires_grad:
            result.backward()
        return [[leaf.grad for leaf in inputs] for inputs in leaves]

    return gradients


def engines(rarely: int) -> list[Engine]:
    """Those that are installed."""
    found = []
    try:
        import autograd
        import autograd.numpy
        import autograd.scipy.special

        found.append(Engine("autograd", by_library(autograd.grad, autograd.numpy, autograd.scipy.special), LEAST))
    except ImportError:
        show("autograd is not installed, and takes no part")
    try:
        import torch

        torch.set_num_threads(1)
        found.append(Engine("PyTorch", by_torch(torch), LEAST))
    except ImportError:
        show("PyTorch is not installed, and takes no part")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        found.append(Engine("JAX", by_library(jax.grad, jax.numpy, jax.scipy.special), LEAST, every=rarely))
    except ImportError:
        show("JAX is not installed, and takes no part")
    for backend in ("numpy", "llvm"):
        every = math.ceil(rarely / 100)
        found.append(Engine(f"compiled ({backend})", by_compiler(backend), every=every, together=TOGETHER))
    return found


class Campaign:
    """A run over many expressions: what was checked, how far apart the engines were, and what failed."""

    def __init__(self, others: list[Engine]) -> None:
        self.others = others
        self.checked: Counter[str] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.worst: dict[str, float] = {}
        self.failures: list[Failure] = []
        self.waiting: dict[str, list[Expected]] = {engine.name: [] for engine in others}

    def check(self, number: int, program: Program) -> None:
        """One expression, on everything that takes part in it."""
        try:
            found, value = eager(program)
            pasted = eval(repr(program), {"mg": mg})(*program.inputs)
            if pasted != value:
                self.failures.append(Failure(number, "printed", program, f"gives {pasted}, and not {value}"))
            self.differences(number, program)
        except Exception as error:  # whatever is raised is what this looks for
            self.failures.append(Failure(number, "eager", program, f"{type(error).__name__}: {error}"))
            return
        expected = Expected(number, program, found)
        for engine in self.others:
            if number % engine.every == 0:
                self.waiting[engine.name].append(expected)
                if len(self.waiting[engine.name]) == engine.together:
                    self.compare_waiting(engine)

    def finish(self) -> None:
        """Compare what is still waiting for others to be compared with."""
        for engine in self.others:
            self.compare_waiting(engine)

    def differences(self, number: int, program: Program) -> None:
        """Backpropagation beside finite differences."""
        self.checked["differences"] += 1
        try:
            report = gradcheck(program, program.inputs)
        except GradientError as error:
            report = error.report
            self.failures.append(Failure(number, "differences", program, str(report)))
        else:
            shares = [row.error / row.allowed for row in report.rows if row.allowed]
            self.worst["differences"] = max(self.worst.get("differences", 0.0), *shares, 0.0)
        self.verdicts.update(row.verdict for row in report.rows)

    def compare_waiting(self, engine: Engine) -> None:
        """Backpropagation beside another engine, on what waits: together, and alone where that goes wrong."""
        waiting = self.waiting[engine.name]
        self.waiting[engine.name] = []
        self.checked[engine.name] += len(waiting)
        together = self.disagreements(engine, waiting) if waiting else []
        if together and len(waiting) > 1:
            alone = [failure for expected in waiting for failure in self.disagreements(engine, [expected])]
            together = alone or together  # what goes wrong only together is wrong too
        self.failures += together

    def disagreements(self, engine: Engine, several: list[Expected]) -> list[Failure]:
        """Where another engine's gradients are others than this one's."""
        try:
            gradients = engine.gradients([expected.program for expected in several])
            others = [[float(gradient) for gradient in of_one] for of_one in gradients]
        except Exception as error:  # theirs or ours: both are to be looked at
            number, program, *_ = several[0]
            return [Failure(number, engine.name, program, f"{type(error).__name__}: {error}")]
        failures = []
        for (number, program, found), of_one in zip(several, others, strict=True):
            terms = sizes(program, engine.least)
            for index, (gradient, size, other) in enumerate(zip(found, terms, of_one, strict=True)):
                apart = abs(gradient - other) / size if size else abs(gradient - other)
                if apart <= ALLOWED:
                    self.worst[engine.name] = max(self.worst.get(engine.name, 0.0), apart)
                else:
                    what = f"gradient {index} is {gradient!r} here and {other!r} there; its terms add up to {size:.3g}"
                    failures.append(Failure(number, engine.name, program, what))
        return failures

    def table(self) -> str:
        """The result in Markdown."""
        lines = ["| beside | expressions | disagreements | worst error where they agree |", "|---|---|---|---|"]
        for name, count in self.checked.items():
            failed = len({failure.number for failure in self.failures if failure.engine == name})
            unit = "of what is allowed" if name == "differences" else "of the terms"
            lines.append(f"| {name} | {count:,} | {failed:,} | {self.worst.get(name, 0.0):.1e} {unit} |")
        return "\n".join(lines)


def progress(numbers: range, minutes: float) -> Iterable[int]:
    """The numbers, with a bar where tqdm is installed, until the time is up."""
    end = time.monotonic() + 60 * minutes
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = iter
    for number in tqdm(numbers):
        if time.monotonic() > end:
            return
        yield number


def show_failures(campaign: Campaign, before: int) -> None:
    """Print the failures that are new, unless there have been many."""
    for failure in campaign.failures[before:][: max(0, SHOWN - before)]:
        show("", f"expression {failure.number}, {failure.engine}: {failure.what}", repr(failure.program))


def show(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Random expressions on several engines, which must agree.")
    parser.add_argument("--count", type=int, default=200_000, help="how many expressions (default: 200,000)")
    parser.add_argument("--start", type=int, default=0, help="the number of the first, to share them among processes")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other expressions (default: 0)")
    parser.add_argument("--size", type=int, default=12, help="how many primitives at most (default: 12)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="the expression of that number alone")
    parser.add_argument(
        "--rarely",
        type=int,
        default=100,
        metavar="N",
        help="JAX sees one expression in N, and compiled code 100 times as many (default: 100)",
    )
    return parser


def main(words: list[str] | None = None) -> int:
    """Run the campaign; 1 if anything disagrees."""
    options = arguments().parse_args(words)
    warnings.simplefilter("ignore")  # of other engines, where a gradient is 0
    campaign = Campaign(engines(1 if options.only is not None else options.rarely))
    start = time.monotonic()
    steps = count = 0
    numbers = range(options.start, options.start + options.count)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    try:
        for number in progress(numbers, options.minutes):
            program = expression(options.seed, number, options.size)
            before = len(campaign.failures)
            campaign.check(number, program)
            steps, count = steps + len(program.steps), count + 1
            show_failures(campaign, before)
        before = len(campaign.failures)
        campaign.finish()
        show_failures(campaign, before)
    except KeyboardInterrupt:
        show("", "interrupted; so far:")
    rate = f"{count:,} expressions of {steps / max(count, 1):.1f} primitives in {time.monotonic() - start:.0f} s"
    show("", f"{rate}; differences: {dict(campaign.verdicts)}", "", campaign.table())
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
