"""Chapter 1, One multiplication: a derivative by hand, by differences, by the chain rule."""

from __future__ import annotations

from micrograd.engine.value import Value
from micrograd.learn.contributions import named
from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Gradients, Number


def square(x: float) -> float:
    """One of the functions whose slope is asked for."""
    return x * x


def cube(x: float) -> float:
    """Another one; its slope is 0 at 0."""
    return x * x * x


def seventh(x: float) -> float:
    """One that is not curved at all."""
    return x / 7 + 1


def fourth(x: float) -> float:
    """One that bends more and more."""
    return x**4


def _two_products() -> Value:
    x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(4.0, label="z")
    return named("f", named("a", x * y) * z)


EXERCISES = (
    Exercise(
        "1.1",
        "A nudge",
        "Take f = x * y, with x = 2 and y = -3. Now x grows by 0.01, and y stays. By how much does f change?",
        Number(),
        ("Compute f before and after, and subtract.", "Before, f is 2 * -3. After, it is 2.01 * -3."),
        "2.01 * -3 - 2 * -3",
        "Each 0.01 of x is worth -0.03 of f: that is y times as much.",
        (
            Mistake("the new f", "-6.03", "That is what f is after the nudge. How far is it from what it was, -6?"),
            Mistake("times x", "0.02", "You multiplied the nudge by x. But x is what is nudged; its partner is y."),
            Mistake("the nudge", "0.01", "That is by how much x grows. Each bit of x counts as often as y says."),
            Mistake("no sign", "0.03", "y is negative: when x grows, f becomes smaller."),
            Mistake(
                "the slope", "-3.0", "That is the slope: the change of f for each 1 that x grows by. x grew by 0.01."
            ),
        ),
    ),
    Exercise(
        "1.2",
        "The other slope",
        "Again f = x * y, with x = 2 and y = -3. What is the slope of f with respect to y?",
        Number(),
        ("Nudge y by 0.01 and look at f.", "(2 * -2.99 - 2 * -3) / 0.01 is the slope."),
        "2.0",
        "If y grows by a little, f grows by x times as much.",
        (
            Mistake("its own number", "-3.0", "That is y itself, and it is the slope with respect to x."),
            Mistake("the product", "-6.0", "That is f. A slope says how f changes, not what it is."),
            Mistake("no factor", "1.0", "That would be the slope of x + y. In a product, the other factor counts."),
            Mistake("a sign", "-2.0", "Its size is that of x. But x is positive: when y grows, f grows."),
        ),
    ),
    Exercise(
        "1.3",
        "A slope by differences",
        "Write slope(f, x): the slope of the function f at the number x, by a difference. Four digits must be right.",
        Same(
            [(square, 3.0), (cube, 2.0), (cube, -1.0), (seventh, 5.0), (square, -0.5), (cube, 0.0), (fourth, -1.5)],
            draw=lambda source: (
                source.choice([square, cube, fourth]),
                source.choice([-1, 1]) * round(source.uniform(0.5, 3.0), 2),
            ),
            tolerance=1e-4,
        ),
        (
            "Call f at x and a small step further, subtract, and divide by the step.",
            "A step such as 1e-6 is small enough, and not so small that the digits run out.",
            "(f(x + step) - f(x - step)) / (2 * step) looks to both sides and is better still.",
        ),
        "def slope(f, x):\n    step = 1e-6\n    return (f(x + step) - f(x - step)) / (2 * step)",
        "This works for any function, and so it can check every derivative of this book.",
        (
            Mistake(
                "not divided",
                "def slope(f, x):\n    step = 1e-6\n    return f(x + step) - f(x)",
                "This is the change of f. The slope is the change for each unit: divide by the step.",
            ),
            Mistake(
                "half the way",
                "def slope(f, x):\n    step = 1e-6\n    return (f(x + step) - f(x - step)) / step",
                "From x - step to x + step, x moves by two steps: divide by 2 * step.",
            ),
            Mistake(
                "a large step",
                "def slope(f, x):\n    return (f(x + 0.1) - f(x)) / 0.1",
                "The step is too large: the slope changes on the way. Take 1e-6.",
            ),
            Mistake(
                "too small a step",
                "def slope(f, x):\n    return (f(x + 1e-17) - f(x)) / 1e-17",
                "The step is so small that x + step is x: a float has 16 digits. Take 1e-6.",
            ),
            Mistake(
                "the wrong way",
                "def slope(f, x):\n    step = 1e-6\n    return (f(x - step) - f(x)) / step",
                "You went backwards, so the difference has the other sign: f(x) - f(x - step).",
            ),
        ),
    ),
    Exercise(
        "1.4",
        "A slope by rules",
        "Write slope(x), the derivative of x**3 - 2*x at any x, without differences.",
        Same([(2.0,), (-1.5,), (0.5,), (0.0,)]),
        (
            "The derivative of a sum is the sum of the derivatives.",
            "The derivative of x**n is n * x**(n - 1), and that of 2*x is 2.",
        ),
        "def slope(x):\n    return 3 * x**2 - 2",
        "Rules give the exact slope at every x at once; a difference gives it roughly, and at one x.",
        (
            Mistake("one term", "def slope(x):\n    return 3 * x**2", "Where is the derivative of -2*x?"),
            Mistake(
                "no factor", "def slope(x):\n    return x**2 - 2", "The exponent comes down as a factor: 3 * x**2."
            ),
            Mistake(
                "the exponent stays", "def slope(x):\n    return 3 * x**3 - 2", "The exponent is one less: 3 * x**2."
            ),
            Mistake("f itself", "def slope(x):\n    return x**3 - 2 * x", "This is the function, not its derivative."),
            Mistake(
                "x kept",
                "def slope(x):\n    return 3 * x**2 - 2 * x",
                "The derivative of 2*x is 2: the same slope everywhere.",
            ),
        ),
    ),
    Exercise(
        "1.5",
        "A chain of two",
        "Take a = 2*x + 1 and f = a**2, with x = 3. What is the slope of f with respect to x?",
        Number(),
        (
            "Two slopes: of a with respect to x, and of f with respect to a.",
            "a moves 2 times as much as x. f moves 2*a times as much as a, and a is 7.",
            "Multiply the two.",
        ),
        "2 * 7 * 2.0",
        "f moves 14 times as much as a, and a moves 2 times as much as x: 14 times 2.",
        (
            Mistake("the outer alone", "14.0", "That is the slope with respect to a. How much does a move with x?"),
            Mistake("the inner alone", "2.0", "That is the slope of a. How much does f move with a?"),
            Mistake("added", "16.0", "You added the two slopes. Along a chain they are multiplied."),
            Mistake("at x", "12.0", "You took 2*x for the outer slope. It is 2*a, and a is 7."),
            Mistake("the value", "49.0", "That is f, not how it moves."),
        ),
    ),
    Exercise(
        "1.6",
        "All the gradients",
        "Take a = x * y and f = a * z, with x = 2, y = -3 and z = 4. Work out by hand how f moves with each of them: "
        'a dict with a number for "f", "a", "x", "y" and "z".',
        Gradients(_two_products),
        (
            "Begin with f: how does f move with f? Once as much.",
            "a and z are the factors of f: each gets the other one.",
            "x gets the gradient of a, times the other factor of a.",
        ),
        '{"f": 1.0, "a": 4.0, "z": -6.0, "x": -12.0, "y": 8.0}',
        "You have just done a backward pass: from f to its operands, and from there on.",
        (
            Mistake(
                "without the chain",
                '{"f": 1.0, "a": 4.0, "z": -6.0, "x": -3.0, "y": 2.0}',
                "x and y move a, and a moves f 4 times as much. Take that factor along.",
            ),
            Mistake(
                "added",
                '{"f": 1.0, "a": 4.0, "z": -6.0, "x": 1.0, "y": 6.0}',
                "Gradient times local derivative: a product, not a sum.",
            ),
            Mistake(
                "own numbers",
                '{"f": 1.0, "a": -6.0, "z": 4.0, "x": -12.0, "y": 18.0}',
                "A factor gets the other factor, not itself.",
            ),
            Mistake(
                "begins with f",
                '{"f": -24.0, "a": -96.0, "z": 144.0, "x": 288.0, "y": -192.0}',
                "The gradient of f is how f moves with f: 1. It is not the number of f.",
            ),
        ),
    ),
)
