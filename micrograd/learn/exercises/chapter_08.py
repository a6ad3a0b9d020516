"""Chapter 8, Is it right?: differences, gradcheck, and random programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

GRADIENT = """
def gradient(f, numbers):
    slopes = []
    for index in range(len(numbers)):
        more, less = list(numbers), list(numbers)
        more[index] += 1e-5
        less[index] -= 1e-5
        slopes.append((f(more) - f(less)) / 2e-5)
    return slopes
"""
CLOSE = """
def is_close(one, other):
    return abs(one - other) <= 1e-6 * max(abs(one), abs(other))
"""
TRUST = """
def trust(f, slope):
    for x in (-2.0, -0.5, 0.0, 0.5, 1.0, 3.0):
        difference = (f(x + 1e-5) - f(x - 1e-5)) / 2e-5
        if abs(slope(x) - difference) > 1e-4:
            return 0
    return 1
"""


def product(numbers: list[float]) -> float:
    """One of the functions whose gradient is asked for; its slopes depend on all the other numbers."""
    result = 1.0
    for number in numbers:
        result *= number
    return result


def weighted(numbers: list[float]) -> float:
    """Another one, in which the place of a number counts."""
    return sum((index + 1) * number**2 for index, number in enumerate(numbers))


def cubes(numbers: list[float]) -> float:
    """One that bends, and that all numbers are in together."""
    return sum(numbers) ** 3


def first_of(numbers: list[float]) -> float:
    """One that depends on one number only."""
    return 5 * numbers[0]


def cube(x: float) -> float:
    """The function that slopes are claimed for."""
    return x**3


def right(x: float) -> float:
    """The slope of the cube."""
    return 3 * x**2


def no_factor(x: float) -> float:
    """Right at 0 only."""
    return x**2


def too_low(x: float) -> float:
    """Right where x is 0 or 1."""
    return 3 * x


def wrong_below(x: float) -> float:
    """Right for positive numbers only."""
    return 3 * x**2 if x >= 0 else -3 * x**2


def wrong_far_out(x: float) -> float:
    """Right near 0 only, as a relu that is cut off."""
    return 3 * x**2 if x < 2 else 12.0


def _near_the_limit(source: random.Random) -> tuple[float, float]:
    one = source.choice([-1, 1]) * source.uniform(1.0, 9.0) * 10.0 ** source.randint(-9, 9)
    numbers = [one, one * (1 + source.choice([-1, 1]) * source.choice([0.2e-6, 0.9e-6, 1.2e-6, 1.8e-6, 5e-6]))]
    source.shuffle(numbers)
    return numbers[0], numbers[1]


def _cube_by_chance(source: random.Random) -> tuple[Any, Any]:
    """A multiple of the cube, with its slope or with another one."""
    size, factor = source.uniform(0.5, 3.0), source.choice([2.0, 3.0])
    return (lambda x: size * x**3), (lambda x: size * factor * x**2)


EXERCISES = (
    Exercise(
        "8.1",
        "A whole gradient by differences",
        "Write gradient(f, numbers), where f takes a list of numbers. Return the list of the slopes of f with respect "
        "to each of them, by differences. Four digits must be right.",
        Same(
            [
                (product, [2.0, 3.0, 5.0]),
                (weighted, [1.0, -1.0, 2.0]),
                (first_of, [4.0, 7.0]),
                (weighted, [0.0]),
                (cubes, [3.0, 2.0]),
            ],
            tolerance=1e-4,
        ),
        (
            "Move one number at a time; the others stay where they are.",
            "Copy the list before you move something in it: list(numbers).",
            "(f(more) - f(less)) / (2 * step), for each place.",
        ),
        GRADIENT,
        "Two calls of f for each number. Backpropagation needs one for all of them: that is why it exists.",
        (
            Mistake(
                "moved and left",
                "def gradient(f, numbers):\n    slopes = []\n    numbers = list(numbers)\n"
                "    for index in range(len(numbers)):\n        before = f(numbers)\n        numbers[index] += 1e-2\n"
                "        slopes.append((f(numbers) - before) / 1e-2)\n    return slopes",
                "The step is too long, and the number is still moved when the next one is tried. Begin with a fresh "
                "copy for each.",
            ),
            Mistake(
                "all at once",
                "def gradient(f, numbers):\n    more = [number + 1e-5 for number in numbers]\n"
                "    less = [number - 1e-5 for number in numbers]\n"
                "    return [(f(more) - f(less)) / 2e-5 for _ in numbers]",
                "All numbers were moved together. A slope is about one of them, while the others stay.",
            ),
            Mistake("one step for two", ("/ 2e-5", "/ 1e-5"), "From less to more there are two steps."),
            Mistake("not divided", (" / 2e-5", ""), "A slope is the change for each unit: divide."),
        ),
    ),
    Exercise(
        "8.2",
        "Close enough?",
        "Two ways to compute a slope never agree to the last digit. Write is_close(one, other). It returns 1 (or "
        "True) if they differ by at most a millionth of the larger one's size, otherwise 0 (or False). Slopes may be "
        "as small as 1e-9 or as large as 1e9.",
        Same(
            [
                (1.0, 1.0000001),
                (1.0, 1.001),
                (1e9, 1e9 + 1.0),
                (1e-9, 2e-9),
                (-3.0, 3.0),
                (0.0, 0.0),
                (-1e6, -1e6 - 0.5),
                (2.0, 2.0000019),
                (-5e-3, -5.000007e-3),
            ],
            draw=_near_the_limit,
        ),
        (
            "Compare the difference with the size: a millionth of 1e9 is 1000.",
            "abs(one - other) <= 1e-6 * max(abs(one), abs(other)): with <=, so that two zeros are close.",
        ),
        CLOSE,
        "What counts is the error relative to the size. gradcheck does this, and measures its own error besides.",
        (
            Mistake(
                "the difference alone",
                ("1e-6 * max(abs(one), abs(other))", "1e-6"),
                "1e-9 and 2e-9 differ by very little, and one is twice the other. Compare with their size.",
            ),
            Mistake(
                "exactly",
                ("abs(one - other) <= 1e-6 * max(abs(one), abs(other))", "one == other"),
                "Two roundings are enough to make them differ in the last digit.",
            ),
            Mistake(
                "no sizes",
                ("abs(one - other) <=", "one - other <="),
                "Where one is the smaller, the difference is negative, and everything is close. Take its size.",
            ),
            Mistake("zeros differ", ("<=", "<"), "Two zeros are close. With < they are not, as a millionth of 0 is 0."),
            Mistake(
                "signed size",
                ("max(abs(one), abs(other))", "max(one, other)"),
                "For negative numbers the larger one is no size. Take abs of both.",
            ),
        ),
    ),
    Exercise(
        "8.3",
        "Whom do you trust?",
        "Write trust(f, slope). It returns 1 (or True) if slope is the derivative of f, otherwise 0 (or False). Both "
        "are functions of one number between -3 and 3. It must accept the right slope of x**3, and refuse every wrong "
        "one. Some of them are right at 0, at 1, or on one side.",
        Same(
            [(cube, right), (cube, no_factor), (cube, too_low), (cube, wrong_below), (cube, wrong_far_out)],
            draw=_cube_by_chance,
        ),
        (
            "Compare with a difference, as in chapter 1, at one place. Then think of a slope that is right just there.",
            "Try several places: below 0 and above, near and far.",
        ),
        TRUST,
        "A test is as good as the mistakes that it notices. So make mistakes on purpose, and see whether it does.",
        (
            Mistake(
                "at one place",
                ("(-2.0, -0.5, 0.0, 0.5, 1.0, 3.0)", "(1.0,)"),
                "There are wrong slopes that are right at 1. One place is never enough.",
            ),
            Mistake(
                "at zero",
                ("(-2.0, -0.5, 0.0, 0.5, 1.0, 3.0)", "(0.0,)"),
                "At 0 the slope of x**3 is 0, and so are many wrong ones. It is the worst place to look.",
            ),
            Mistake(
                "on one side",
                ("(-2.0, -0.5, 0.0, 0.5, 1.0, 3.0)", "(0.5, 1.0, 3.0)"),
                "Some are right for positive numbers only. Look below 0 as well.",
            ),
            Mistake(
                "too strict",
                ("> 1e-4", "> 0.0"),
                "A difference is never exact, so this refuses the right one, too. Allow a little.",
            ),
            Mistake("too generous", ("> 1e-4", "> 20.0"), "With so much allowed, it trusts those that are wrong."),
            Mistake(
                "near zero",
                ("(-2.0, -0.5, 0.0, 0.5, 1.0, 3.0)", "(-1.0, -0.5, 0.5, 1.0)"),
                "Some are right near 0 and wrong farther out. Go as far as 3.",
            ),
        ),
    ),
    Exercise(
        "8.4",
        "Which test would have noticed?",
        'Somebody wrote = instead of += in the _backward of a product. Which of these programs shows it? "x * y", "x '
        '* y + z", "x * x", "exp(x * y)".',
        Choice("x * y", "x * y + z", "x * x", "exp(x * y)"),
        (
            "With =, the second contribution overwrites the first. Where are there two?",
            "Only one of the four uses a Value twice.",
        ),
        '"x * x"',
        "This mistake has passed all the tests of a course elsewhere. To test an engine, use an operand twice.",
        (
            Mistake(
                "the plain one",
                '"x * y"',
                "Each of the two is used once. Where nothing is shared, = does what += does.",
            ),
            Mistake(
                "with a sum", '"x * y + z"', "Three numbers, three uses: nothing is shared, so nothing is overwritten."
            ),
            Mistake("with a function", '"exp(x * y)"', "A longer chain is still a chain: every Value is used once."),
        ),
    ),
    Exercise(
        "8.5",
        "How many calls?",
        "A network has 1,000 weights. By differences to both sides, how many times must the loss be computed for one "
        "gradient?",
        Number(),
        ("Each weight is moved by itself.", "It is moved up once and down once."),
        "2 * 1000",
        "One pass forward and one back give the same for the price of a few calls, however many weights there are.",
        (
            Mistake("one each", "1000", "To both sides: each weight is moved two times."),
            Mistake("to one side", "1001", "That is for differences to one side: one for each, and one in the middle."),
            Mistake(
                "as backpropagation",
                "1",
                "That is what backpropagation needs. Differences move every weight by itself.",
            ),
            Mistake("pairs", "1000000", "Weights are moved one at a time, not in pairs."),
        ),
    ),
)
