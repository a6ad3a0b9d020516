"""Random programs over the primitives, and how they print: as Python that can be pasted and run.

A program is grown forwards. It starts from numbers, and each step applies a primitive to results that
are there already, chosen among the primitives that are smooth and of moderate size at these very numbers. So
every program can be computed and differentiated at its point, and results are shared freely.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from micrograd import functional
from micrograd._support.checks import check_type, required_number
from micrograd.engine import further_primitives, primitives
from micrograd.engine.primitive import CONSTANT, LEAF, PRIMITIVES, Primitive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Step = tuple[Primitive, tuple[int, ...]]

T = TypeVar("T")

CLEAR_OF_KINKS = 0.05  # so far from kinks, a difference and a higher precision see the same branch as the float
CLEAR_OF_EDGES = 0.01  # so far inside of the edges of a domain
MODERATE = 30.0  # results and derivatives stay below, so that rounding stays small in a chain of them
KINKS: dict[str, Callable[..., float]] = {  # what is 0 at the kink
    "relu": lambda x: x,
    "leaky_relu": lambda x, slope: x,
    "elu": lambda x, alpha: x,
    "abs": lambda x: x,
    "maximum": lambda x, y: x - y,
    "minimum": lambda x, y: x - y,
    "where": lambda condition, x, y: condition,
    "is_zero": lambda x: x,
    "equal": lambda x, y: x - y,
    "less": lambda x, y: x - y,
    "less_equal": lambda x, y: x - y,
    "atan2": lambda y, x: y if x <= 0 else x,
    "hypot": lambda x, y: abs(x) + abs(y),
    "floor_divide": lambda x, y: min(x % y, y - x % y, key=abs),
    "remainder": lambda x, y: min(x % y, y - x % y, key=abs),
    "sign": lambda x: x,
    "floor": lambda x: x - round(x),
    "ceil": lambda x: x - round(x),
}
# Those that are for rules, and exist for some operands only, are no part of a program
HELPERS = (
    *(primitives.lower_power, further_primitives.spherical_bessel, further_primitives.hurwitz_zeta),
    *(
        further_primitives.digamma_slope,
        further_primitives.modified_bessel,
        further_primitives.normal_hazard,
        further_primitives.hazard_gap,
        further_primitives.log_ratio,
    ),
)
_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "remainder": "%", "floor_divide": "//"}
_SIGNS = {"neg": "-", "identity": "+"}
_LONGEST = 200  # characters of a part that gets no name of its own


class Expression:
    """A function and a point to call it at, which print as Python.

    Args:
        function: takes as many numbers or Values as there are inputs.
        inputs: the point.

    Raises:
        TypeError: if function is not one, or an input is no number.

    Example:
        >>> import micrograd as mg
        >>> expression = Expression(lambda x, y: mg.tanh(x * y), [0.5, 0.0])
        >>> expression(*expression.inputs)
        0.0
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[float]) -> None:
        check_type(callable(function), "an expression needs a function", function)
        self.function, self.inputs = function, [required_number(number, "an input") for number in inputs]

    def __call__(self, *operands: Any) -> Any:
        """What the function gives for these operands."""
        return self.function(*operands)

    def __repr__(self) -> str:
        return f"mg.testing.Expression({self.function!r}, {self.inputs})"


class Program(Expression):
    """An expression made of steps, each a primitive and the positions of its operands.

    Args:
        inputs: the point; positions 0, 1, ... are the inputs.
        steps: a primitive and the positions of its operands; the positions of their results follow the inputs'.

    Example:
        >>> from micrograd.engine.primitives import mul, sin
        >>> program = Program([0.5, 2.0], [(mul, (0, 1)), (sin, (2,)), (mul, (2, 3))])
        >>> program
        mg.testing.Expression(lambda x, y: (t1 := x * y, t1 * mg.sin(t1))[-1], [0.5, 2.0])
        >>> program(*program.inputs)
        0.8414709848078965
    """

    def __init__(self, inputs: Sequence[float], steps: Sequence[Step]) -> None:
        super().__init__(lambda *operands: self.run(operands)[-1], inputs)
        self.steps = list(steps)

    def run(
        self, operands: Sequence[Any], apply: Callable[..., Any] = lambda primitive, *operands: primitive(*operands)
    ) -> list[Any]:
        """All results in order, the operands first.

        Args:
            operands: in place of the inputs: whatever apply takes.
            apply: what applies a primitive to operands; calls it if left out.
        """
        if len(operands) != len(self.inputs):
            raise TypeError(f"this program takes {len(self.inputs)} operands, not {len(operands)}")
        results = list(operands)
        for primitive, positions in self.steps:
            results.append(apply(primitive, *(results[position] for position in positions)))
        return results

    def __repr__(self) -> str:
        return f"mg.testing.Expression({self.source()}, {self.inputs})"

    def source(self) -> str:
        """The program as a lambda of Python; what occurs twice in it gets a name."""
        count = len(self.inputs)
        names = ["x", "y", "z"][:count] if count <= 3 else [f"x{index}" for index in range(count)]
        uses = [0] * (count + len(self.steps))
        for _, positions in self._used_steps():
            for position in positions:
                uses[position] += 1
        texts, assignments = dict(enumerate(names)), list[str]()
        last = count + len(self.steps) - 1
        for (primitive, positions), position in zip(self.steps, range(count, last + 1), strict=True):
            if uses[position] or position == last:
                text = _call(primitive, [texts[operand] for operand in positions])
                if position != last and (uses[position] > 1 or len(text) > _LONGEST):
                    name = f"t{len(assignments) + 1}"
                    assignments.append(f"{name} := {_bare(text)}")
                    text = name
                texts[position] = text
        body = _bare(texts[last])
        return f"lambda {', '.join(names)}: " + (f"({', '.join([*assignments, body])})[-1]" if assignments else body)

    def _used_steps(self) -> list[Step]:
        """The steps that the last result depends on."""
        used: set[int] = set()
        found: list[Step] = []
        for position, step in reversed(list(enumerate(self.steps, start=len(self.inputs)))):
            if not found or position in used:
                found.append(step)
                _, operands = step
                used.update(operands)
        return found


def _call(primitive: Primitive, operands: list[str]) -> str:
    """The text of a primitive applied to operands, in parentheses where it is an operator."""
    if not primitive.settings:
        if primitive.name in _OPERATORS:
            return f"({operands[0]} {_OPERATORS[primitive.name]} {operands[1]})"
        if primitive.name in _SIGNS:
            return f"({_SIGNS[primitive.name]}{operands[0]})"
    settings = [f"{name}={setting!r}" for name, setting in primitive.settings.items()]
    if hasattr(functional, primitive.name):
        function = f"mg.{primitive.name}"
    elif hasattr(primitives, primitive.name):
        function = f"mg.engine.primitives.{primitive.name}"
    else:
        function = f"mg.engine.primitive.find({primitive.name!r})"
    return f"{function}({', '.join([*map(_bare, operands), *settings])})"


def _bare(text: str) -> str:
    """A text without the parentheses around all of it. Only the text of an operator begins with one."""
    return text[1:-1] if text.startswith("(") else text


class Choices(Protocol):
    """Makes the choices for a program, from random numbers or by Hypothesis."""

    def integer(self, low: int, high: int) -> int:
        """A whole number, both ends included."""

    def number(self) -> float:
        """A float between -3 and 3, with few digits."""

    def one_of(self, candidates: Sequence[T], fits: Callable[[T], bool]) -> T:
        """One of the candidates that fit."""


def registered() -> list[Primitive]:
    """All primitives with operands that are registered now, also those of users; without the helpers of rules."""
    unfit = (LEAF, CONSTANT, *HELPERS)
    return [primitive for primitive in PRIMITIVES.values() if primitive not in unfit and primitive.derivatives]


def grow(choices: Choices, table: Sequence[Primitive], inputs: tuple[int, int], size: tuple[int, int]) -> Program:
    """Grow a program; its last steps add up every result that nothing else uses, so all of it counts.

    Args:
        choices: where the choices come from.
        table: the primitives; add, neg and mul join them, as what fits everywhere.
        inputs: how many there are at least and at most.
        size: how many steps there are at least and at most, before those that add up.
    """
    point = [choices.number() for _ in range(choices.integer(*inputs))]
    everywhere = (primitives.neg, primitives.add, primitives.mul)
    candidates = [*table, *(primitive for primitive in everywhere if primitive not in table)]
    most = max(len(primitive.domain) for primitive in candidates)
    results = list(point)
    steps: list[Step] = []
    least, greatest = size
    # Each step asks whether there is one more, so that Hypothesis can drop one from the middle
    while len(steps) < least or (len(steps) < greatest and choices.integer(0, 9)):
        # Counted from the newest result, so that Hypothesis shrinks a program to a chain
        chosen = [len(results) - 1 - choices.integer(0, len(results) - 1) for _ in range(most)]
        primitive = choices.one_of(candidates, _tame_at([results[position] for position in chosen]))
        positions = tuple(chosen[: len(primitive.domain)])
        steps.append((primitive, positions))
        results.append(primitive.forward(*(results[position] for position in positions)))
    used = {position for _, positions in steps for position in positions}
    loose = [position for position in range(len(results)) if position not in used]
    last = loose.pop()
    for position in loose:
        steps.append((primitives.add, (last, position)))
        last = len(point) + len(steps) - 1
    return Program(point, steps)


def _tame_at(operands: list[float]) -> Callable[[Primitive], bool]:
    """A function that says whether a primitive is tame at these operands, or at as many of them as it takes."""
    return lambda primitive: is_tame(primitive, operands[: len(primitive.domain)])


def is_tame(primitive: Primitive, inputs: Sequence[float]) -> bool:
    """Whether a primitive is smooth and of moderate size and slope at these numbers, and clear of any edge."""
    for (low, high), x in zip(primitive.domain, inputs, strict=True):
        if not low + CLEAR_OF_EDGES < x < high - CLEAR_OF_EDGES:
            return False
    if primitive.name in KINKS and abs(KINKS[primitive.name](*inputs)) < CLEAR_OF_KINKS:
        return False
    try:
        output = primitive.forward(*inputs)
        slopes = [rule(1.0, output, *inputs) for rule in primitive.derivatives if rule]
    except (ArithmeticError, ValueError, TypeError):  # a TypeError: settings are missing
        return False
    return all(math.isfinite(number) and abs(number) < MODERATE for number in (output, *slopes))
