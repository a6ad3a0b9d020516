"""What the tests of the engine share: settings of Hypothesis, a count of Values, small programs with their truth."""

import gc
import math

from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value

moderate = st.floats(-2.0, 2.0)


def live_values():
    return sum(type(thing) is Value for thing in gc.get_objects())


OPERATIONS = [
    lambda x, y: (x + y) * 0.5,
    lambda x, y: x * y,
    lambda x, y: x - y,
    lambda x, y: mg.sin(x) / (2 + mg.cos(y)),
    lambda x, y: mg.tanh(x) + mg.sigmoid(y),
]


def with_tangents(number, first, second):
    """The operations on dual numbers (a float and its derivative by each leaf), apart from the engine."""
    (x, dx), (y, dy) = first, second
    value, by_x, by_y = [
        lambda: ((x + y) * 0.5, 0.5, 0.5),
        lambda: (x * y, y, x),
        lambda: (x - y, 1.0, -1.0),
        lambda: (
            math.sin(x) / (2 + math.cos(y)),
            math.cos(x) / (2 + math.cos(y)),
            math.sin(x) * math.sin(y) / (2 + math.cos(y)) ** 2,
        ),
        lambda: (
            math.tanh(x) + 1 / (1 + math.exp(-y)),
            1 - math.tanh(x) ** 2,
            math.exp(-abs(y)) / (1 + math.exp(-abs(y))) ** 2,
        ),
    ][number]()
    return value, [by_x * tangent + by_y * other for tangent, other in zip(dx, dy, strict=True)]


@st.composite
def programs(draw):
    """Numbers of three leaves, and steps that each apply an operation to two earlier results."""
    numbers = draw(st.lists(moderate, min_size=3, max_size=3))
    steps = [
        (draw(st.integers(0, len(OPERATIONS) - 1)), draw(st.integers(0, size - 1)), draw(st.integers(0, size - 1)))
        for size in range(3, 3 + draw(st.integers(1, 7)))
    ]
    return numbers, steps


def run(program):
    """The leaves and the result of a program."""
    numbers, steps = program
    leaves = [Value(number) for number in numbers]
    results = list(leaves)
    for number, first, second in steps:
        results.append(OPERATIONS[number](results[first], results[second]))
    return leaves, results[-1]
