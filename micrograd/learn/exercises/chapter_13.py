"""Chapter 13, How it bends: second derivatives, and Newton's method."""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

STEP = """
def step(x, slope, curvature):
    return x - slope / curvature
"""
TABLE = """
def bends(x, y):
    return [[2 * y, 2 * x], [2 * x, 6 * y]]
"""
TWO = """
def step(place, slopes, table):
    (x, y), (slope_x, slope_y), ((a, b), (c, d)) = place, slopes, table
    size = a * d - b * c
    return [x - (d * slope_x - b * slope_y) / size, y - (a * slope_y - c * slope_x) / size]
"""


EXERCISES = (
    Exercise(
        "13.1",
        "The slope of the slope",
        "Write curvature(x), the second derivative of x**4 - 3*x**2 at any x.",
        Same([(2.0,), (-1.5,), (0.5,), (0.0,)]),
        (
            "First the slope: 4*x**3 - 6*x. Then the slope of that.",
            "The slope of 4*x**3 is 12*x**2, and that of 6*x is 6.",
        ),
        "def curvature(x):\n    return 12 * x**2 - 6",
        "Where it is above 0 the slope grows and the curve bends up; below 0 it bends down.",
        (
            Mistake(
                "the slope",
                "def curvature(x):\n    return 4 * x**3 - 6 * x",
                "This is the slope. Take the derivative once more.",
            ),
            Mistake(
                "the square of the slope",
                "def curvature(x):\n    return (4 * x**3 - 6 * x) ** 2",
                "The second derivative is the slope of the slope, and not its square.",
            ),
            Mistake(
                "a term is lost",
                "def curvature(x):\n    return 12 * x**2",
                "The slope of -6*x is -6: it belongs to the answer.",
            ),
            Mistake(
                "the power alone",
                "def curvature(x):\n    return 4 * x**2 - 6",
                "The power comes down as a factor the second time, too: 4 times 3.",
            ),
        ),
    ),
    Exercise(
        "13.2",
        "A Newton step",
        "Write step(x, slope, curvature): the position of the lowest point of the parabola that has this slope and "
        "this curvature at x.",
        Same([(3.0, 4.0, 2.0), (1.0, -6.0, 3.0), (0.0, 0.5, 8.0), (2.0, 0.0, 5.0), (1.0, 3.0, -1.5)]),
        (
            "Where you have gone by d, the slope is slope + d * curvature.",
            "At the lowest point the slope is 0: d is -slope / curvature.",
        ),
        STEP,
        "There is no rate in it: the curvature says how far.",
        (
            Mistake("uphill", ("x - slope", "x + slope"), "Where the slope is above 0, go back: subtract."),
            Mistake("the way alone", ("x - slope", "-slope"), "This is the way. Where does it lead from x?"),
            Mistake(
                "multiplied",
                ("slope / curvature", "slope * curvature"),
                "The more it bends, the sooner the bottom comes: divide by the curvature.",
            ),
            Mistake(
                "upside down",
                "def step(x, slope, curvature):\n    return x - (curvature / slope if slope else 0.0)",
                "The steeper it is, the farther away is the bottom: the slope is above the line.",
            ),
            Mistake(
                "twice as far",
                ("slope / curvature", "2 * slope / curvature"),
                "This leads as high up on the other side. The slope itself is 0 at half the way.",
            ),
        ),
    ),
    Exercise(
        "13.3",
        "On a hill",
        "f = x**4 - 3*x**2 has two valleys, at -1.22 and 1.22, and a hilltop between them, at 0. There the curvature "
        'is -6. Newton\'s method begins at x = 0.1. Where does it go? "the valley at 1.22", "the valley at -1.22", '
        '"the hilltop", or "nowhere".',
        Choice("the valley at 1.22", "the valley at -1.22", "the hilltop", "nowhere"),
        (
            "The slope at 0.1 is about -0.6, and the curvature about -5.9. Which way does the step go?",
            "A parabola that bends down has no lowest point. What does it have?",
        ),
        '"the hilltop"',
        "Newton's method looks for a slope of 0, and a hilltop has one, too.",
        (
            Mistake(
                "downhill",
                '"the valley at 1.22"',
                "Down is to the right, but the step is -slope / curvature, and both are below 0.",
            ),
            Mistake(
                "too far",
                '"the valley at -1.22"',
                "It goes to the left, but not nearly so far: 0.6 / 5.9 is about 0.1.",
            ),
            Mistake("it stays", '"nowhere"', "The slope at 0.1 is -0.6, and not 0, so it moves."),
        ),
    ),
    Exercise(
        "13.4",
        "All four",
        "Write bends(x, y): the table of the second derivatives of x*x*y + y**3, as a list of two rows. The first row "
        "says how the slope for x changes with x and with y; the second row, how the slope for y does.",
        Same([(2.0, 5.0), (-1.0, 3.0), (0.5, -0.25), (4.0, 0.0)]),
        (
            "First the two slopes: 2*x*y for x, and x*x + 3*y**2 for y.",
            "The slope for x, 2*x*y, changes with x by 2*y, and with y by 2*x.",
        ),
        TABLE,
        "The two in the corners are the same, always: how the one slope changes with the other number.",
        (
            Mistake(
                "only straight ones",
                ("2 * x", "0.0"),
                "x and y are multiplied in x*x*y: the slope for x changes with y, too.",
            ),
            Mistake(
                "half of the mixed ones",
                ("[2 * x, 6 * y]", "[0.0, 6 * y]"),
                "The slope for y is x*x + 3*y**2, and that changes with x.",
            ),
            Mistake(
                "the rows turned",
                ("[[2 * y, 2 * x], [2 * x, 6 * y]]", "[[2 * x, 2 * y], [6 * y, 2 * x]]"),
                "In each row comes first what changes with x.",
            ),
            Mistake(
                "products of slopes",
                "def bends(x, y):\n    a, b = 2 * x * y, x * x + 3 * y * y\n"
                "    return [[a * a, a * b], [a * b, b * b]]",
                "These are products of the slopes. Take the derivatives of the slopes.",
            ),
            Mistake(
                "not brought down",
                ("6 * y", "3 * y"),
                "The slope of 3*y**2 is 6*y: the power comes down as a factor.",
            ),
        ),
    ),
    Exercise(
        "13.5",
        "Newton in two directions",
        "Write step(place, slopes, table): the next place, a list of two numbers. place is [x, y], slopes are the two "
        "slopes there, and table has the second derivatives, [[a, b], [c, d]]. The step [p, q] changes both slopes to "
        "0: a * p + b * q is minus the first slope, and c * p + d * q minus the second.",
        Same(
            [
                ([1.0, 2.0], [4.0, 6.0], [[2.0, 1.0], [1.0, 3.0]]),
                ([0.0, 0.0], [1.0, -1.0], [[4.0, -2.0], [-2.0, 2.0]]),
                ([-4.0, 1.0], [-8.0, 60.0], [[2.0, 0.0], [0.0, 60.0]]),
                ([1.5, -0.5], [0.5, 3.0], [[1.0, 2.0], [2.0, 1.0]]),
                ([1.0, 1.0], [2.0, -1.0], [[2.0, 1.0], [-3.0, 4.0]]),
            ]
        ),
        (
            "Two equations with two unknowns: multiply the first by d and the second by b, and subtract.",
            "p is -(d * first - b * second) / (a * d - b * c).",
            "q is -(a * second - c * first) / (a * d - b * c).",
        ),
        TWO,
        "With more directions there are more equations. The step is the same.",
        (
            Mistake(
                "each for itself",
                "def step(place, slopes, table):\n    return [place[i] - slopes[i] / table[i][i] for i in range(2)]",
                "A step in one direction changes the slope in the other: b and c say by how much.",
            ),
            Mistake("uphill", ("x - (d", "x + (d", "y - (a", "y + (a"), "The slopes are to become 0: go against them."),
            Mistake(
                "a sum below the line",
                ("a * d - b * c", "a * d + b * c"),
                "Below the line stands a difference: a * d - b * c.",
            ),
            Mistake(
                "the table times the slopes",
                (
                    "(d * slope_x - b * slope_y) / size",
                    "(a * slope_x + b * slope_y)",
                    "(a * slope_y - c * slope_x) / size",
                    "(c * slope_x + d * slope_y)",
                ),
                "This multiplies by the table. The equations must be solved, which is a division by it.",
            ),
            Mistake(
                "the way alone",
                ("x - (d", "-(d", "y - (a", "-(a"),
                "This is the way. Where does it lead from the place?",
            ),
        ),
    ),
    Exercise(
        "13.6",
        "How many are there?",
        "A network has 1,000 weights. How many second derivatives does its loss have? The slope for v changes with w "
        "exactly as the slope for w changes with v: count such a pair once.",
        Number(),
        (
            "The table has 1,000 rows of 1,000 numbers. Which of them are there twice?",
            "1,000 on the diagonal, and half of all others.",
        ),
        "1000 + 1000 * 999 / 2",
        "For a million weights it is half a million millions. Nobody keeps such a table.",
        (
            Mistake("slopes", "1000.0", "So many are the slopes. Each of them changes with each weight."),
            Mistake("all", "1000.0 * 1000", "That is the whole table. All but its diagonal is there twice."),
            Mistake(
                "no diagonal", "1000 * 999 / 2", "These are the pairs. The slope for w changes with w itself, too."
            ),
            Mistake("half", "1000 * 1000 / 2", "The diagonal is there only once, so do not halve it."),
        ),
    ),
)
