"""Small random programs to try a learner's operations on, and simpler ones that show the same failure.

They share operands freely: ``a = x * x; f = a + a`` is what tells a gradient that is added from one that overwrites.
The smallest come first, and what fails is shrunk to the smallest that fails.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from micrograd.draw.text import readable
from micrograd.engine.primitive import find
from micrograd.testing.programs import is_tame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_NUMBERS = [quarter / 4 for quarter in range(-12, 13)]
# For each place; no 1 at first, with which much that is wrong looks right
_SIMPLE = ((2.0, 3.0, 1.0, -1.0, 0.5), (3.0, 2.0, 1.0, -1.0, 0.5), (5.0, 3.0, 2.0, 1.0, -1.0, 0.5))
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}


class Step(NamedTuple):
    """A primitive by name, and the places of its operands: those of the inputs come first, then those of results."""

    name: str
    operands: tuple[int, ...]


class Program(NamedTuple):
    """Steps on inputs; the last result is the output.

    Args:
        inputs: the numbers.
        plain: the places of inputs that stay plain numbers and do not become Values.
        steps: what is done.
    """

    inputs: tuple[float, ...]
    plain: frozenset[int]
    steps: tuple[Step, ...]

    def run(self, value: Callable[[float], Any], apply: Callable[..., Any]) -> list[Any]:
        """The inputs and all results in order.

        Args:
            value: makes a Value of a number.
            apply: takes the name of a primitive and operands, and applies it.
        """
        places: list[Any] = [
            (int(x) if x.is_integer() else x) if place in self.plain else value(x)
            for place, x in enumerate(self.inputs)
        ]
        for name, operands in self.steps:
            places.append(apply(name, *(places[operand] for operand in operands)))
        return places

    def name(self, place: int) -> str:
        """What a message calls a place: x, y, z for inputs; a, b, c, ... for results, and f for the last."""
        if place < len(self.inputs):
            values = [index for index in range(len(self.inputs)) if index not in self.plain]
            return readable(self.inputs[place]) if place in self.plain else "xyz"[values.index(place)]
        last = len(self.inputs) + len(self.steps) - 1
        return "f" if place == last else "abcdeghij"[place - len(self.inputs)]

    def __str__(self) -> str:
        lines = []
        for place, (name, operands) in enumerate(self.steps, start=len(self.inputs)):
            texts = [self.name(operand) for operand in operands]
            if name in _SIGNS:
                first, second = texts
                text = f"{first} {_SIGNS[name]} {second}"
            else:
                text = f"-{texts[0]}" if name == "neg" else f"{name}({', '.join(texts)})"
            lines.append(f"{self.name(place)} = {text}")
        numbers = [f"{self.name(i)} = {readable(x)}" for i, x in enumerate(self.inputs) if i not in self.plain]
        return "; ".join([", ".join(numbers), *lines])


@lru_cache
def programs(names: tuple[str, ...], count: int, *, plain: bool = False, most_steps: int = 6) -> tuple[Program, ...]:
    """Random programs, the same each time, from one step up; each name comes first with one operand twice.

    Args:
        names: the primitives; a "pow" gets a plain number for its exponent.
        count: how many, beside those of one step.
        plain: whether plain numbers stand among the operands.
        most_steps: how long the longest are; 9 at most, as there are no more names.
    """
    source = random.Random(0)
    found = [p for name in names if name != "pow" for p in _of_one_step(name)]
    found += [p for name in names for p in _at_edges(name, plain)]
    while len(found) < count:
        size = 1 + most_steps * len(found) // count
        inputs = tuple(source.choice(_NUMBERS) for _ in range(source.randint(1, 3)))
        kept = frozenset(i for i in range(1, len(inputs)) if plain and source.random() < 0.6)
        program = _grown(Program(inputs, kept, ()), names, size, source)
        if program.steps:
            found.append(pruned(program))
    return tuple(found)


def _of_one_step(name: str) -> Iterator[Program]:
    arity = len(find(name).derivatives)
    for inputs in ((2.0, 3.0)[:arity], (2.0,)):
        program = Program(inputs, frozenset(), (Step(name, ((0, 1) if len(inputs) == 2 else (0, 0))[:arity]),))
        if _works(program):
            yield program


def _at_edges(name: str, plain: bool) -> Iterator[Program]:
    """One step at 0; and where plain numbers are allowed, with a negative one that is no whole number on each side."""
    arity = len(find(name).derivatives)
    cases = [((0.0, -1.5)[:arity], frozenset[int]())]
    if plain and arity == 2:
        cases += [((2.0, -1.5), frozenset({1})), ((-1.5, 2.0), frozenset({0}))]
    for inputs, kept in cases:
        program = Program(inputs, kept, (Step(name, (0, 1)[:arity]),))
        if _works(program):
            yield program


def _grown(program: Program, names: Sequence[str], size: int, source: random.Random) -> Program:
    """The program with steps up to a size, or fewer where few primitives are tame at its numbers."""
    for _ in range(20 * size):
        name = source.choice(names)
        count = len(program.inputs) + len(program.steps)
        operands = [source.randrange(count) for _ in find(name).derivatives]
        if program.steps and source.random() < 0.8:
            operands[0] = count - 1  # so that most of the results are used
        longer = program._replace(steps=(*program.steps, Step(name, tuple(operands))))
        if _works(longer):
            program = longer
        if len(program.steps) == size:
            break
    return program


def _works(program: Program) -> bool:
    """Whether every step is tame, has a Value among its operands, and only an exponent that is a plain number."""
    numbers = list(program.inputs)
    for name, operands in program.steps:
        are_plain = [operand in program.plain for operand in operands]
        if all(are_plain) or (name == "pow" and are_plain != [False, True]) or (len(operands) == 1 and any(are_plain)):
            return False
        primitive, inputs = find(name), [numbers[operand] for operand in operands]
        if not is_tame(primitive, inputs) and not (name == "div" and is_tame(primitive, [inputs[0], abs(inputs[1])])):
            return False
        numbers.append(primitive.forward(*inputs))
    return True


def simpler(program: Program) -> Iterator[Program]:
    """Programs that are simpler than this one, the shortest first."""
    for place in range(len(program.steps)):
        for operand in dict.fromkeys(program.steps[place].operands):
            shorter = _without_step(program, place, operand)
            if shorter.steps and _works(shorter):
                yield pruned(shorter)
    for place, number in enumerate(program.inputs):
        better = _SIMPLE[place]
        for simple in better[: better.index(number)] if number in better else better:
            changed = program._replace(inputs=(*program.inputs[:place], simple, *program.inputs[place + 1 :]))
            if _works(changed):
                yield changed


def pruned(program: Program) -> Program:
    """The program without the steps and the inputs that its output does not depend on."""
    last = len(program.inputs) + len(program.steps) - 1
    needed = {last}
    for place in range(last, len(program.inputs) - 1, -1):
        if place in needed:
            needed.update(program.steps[place - len(program.inputs)].operands)
    moved = {place: index for index, place in enumerate(sorted(needed))}
    steps = [step for place, step in enumerate(program.steps, len(program.inputs)) if place in needed]
    return Program(
        tuple(number for place, number in enumerate(program.inputs) if place in needed),
        frozenset(moved[place] for place in program.plain & needed),
        tuple(Step(name, tuple(moved[operand] for operand in operands)) for name, operands in steps),
    )


def _without_step(program: Program, index: int, operand: int) -> Program:
    """The program in which an operand of a step stands wherever its result stood; the last step just goes."""
    gone = len(program.inputs) + index

    def moved(place: int) -> int:
        return operand if place == gone else place - (place > gone)

    rest = program.steps[:index] + program.steps[index + 1 :]
    return program._replace(steps=tuple(Step(name, tuple(map(moved, operands))) for name, operands in rest))
