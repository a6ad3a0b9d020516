"""Chapter 14, Why nothing learns: the first weights, and neurons that are saturated or dead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

SPREAD = """
def spread(inputs, activation):
    return ((2 if activation == "relu" else 1) / inputs) ** 0.5
"""
SATURATED = """
def saturated(outputs):
    return sum(1 - out**2 < 0.1 for out in outputs) / len(outputs)
"""
DEAD = """
def dead(rows):
    return sum(all(row[neuron] == 0 for row in rows) for neuron in range(len(rows[0])))
"""


def _layer(source: random.Random) -> tuple[int, str]:
    return source.randint(2, 900), source.choice(["tanh", "relu"])


def _outputs(source: random.Random) -> tuple[list[float]]:
    """Many of them near the two places at which the slope is 0.1."""
    near = [source.choice([-1, 1]) * source.uniform(0.9, 1.0) for _ in range(source.randint(2, 6))]
    return ([*near, source.uniform(-1.0, 1.0)],)


def _relus(source: random.Random) -> tuple[list[list[float]]]:
    """Outputs of relu neurons, half of them 0; one neuron is 0 for all but one example."""
    examples, neurons = source.randint(2, 4), source.randint(2, 5)
    rows = [[max(0.0, round(source.uniform(-2, 2), 2)) for _ in range(neurons)] for _ in range(examples)]
    late = source.randrange(neurons)
    for row in rows:
        row[late] = 0.0
    rows[source.randrange(examples)][late] = source.choice([0.0, 0.5])
    return (rows,)


EXERCISES = (
    Exercise(
        "14.1",
        "A hundred inputs",
        "A neuron has 100 inputs. They and its weights are drawn by chance around 0, with a spread of 1. What is the "
        "spread of the weighted sum?",
        Number(),
        (
            "For 4 inputs it is 2, and for 25 it is 5.",
            "The squares add up: the mean of the square of the sum is 100. The spread is its root.",
        ),
        "100**0.5",
        "It grows with the root of the number, since half of it cancels and half of it does not.",
        (
            Mistake("no signs", "100", "That would be so if all products were 1. Half are negative, and much cancels."),
            Mistake("all cancels", "0", "That is the mean of the sum. Its spread is how far it usually is from that."),
            Mistake("as one", "1", "That is the spread of one product. A hundred of them do not cancel wholly."),
            Mistake("the mean", "0.1", "That is the spread of the mean of a hundred products. Here they are added."),
            Mistake("half of it", "50", "Half of the products are negative, but the positive ones do not all remain."),
        ),
    ),
    Exercise(
        "14.2",
        "The right spread",
        "Write spread(inputs, activation): the spread of a neuron's weights for which its output is about as large as "
        'its inputs. There are as many as inputs says. activation is "tanh", which you may take for no change, or '
        '"relu", which halves the mean of the squares.',
        Same([(100, "tanh"), (100, "relu"), (1, "tanh"), (2, "relu"), (30, "tanh")], draw=_layer),
        (
            "A sum of n products is root n times as spread as one product. What must each weight be divided by?",
            "Without the relu: 1 / inputs**0.5. What makes up for a half in the squares is a 2 in the squares.",
            "For a relu: (2 / inputs) ** 0.5.",
        ),
        SPREAD,
        "With it, the hundredth layer hears as much as the first.",
        (
            Mistake(
                "without the root",
                (" ** 0.5", ""),
                "A sum of n products is not n times as spread, but root n times: signs cancel.",
            ),
            Mistake(
                "the same for both",
                "def spread(inputs, activation):\n    return (1 / inputs) ** 0.5",
                "A relu throws half of the squares away. Its weights have to make up for that.",
            ),
            Mistake(
                "twice as large",
                'def spread(inputs, activation):\n    return (2 if activation == "relu" else 1) / inputs**0.5',
                "The 2 belongs to the squares: it is root 2 for the weights themselves.",
            ),
            Mistake(
                "half as large",
                ("2 if", "0.5 if"),
                "A relu makes the numbers smaller, so its weights must be larger.",
            ),
            Mistake(
                "the growth itself",
                'def spread(inputs, activation):\n    return inputs**0.5 / (2**0.5 if activation == "relu" else 1)',
                "By this factor the sum grows. The weights have to make it smaller again: divide.",
            ),
        ),
    ),
    Exercise(
        "14.3",
        "How many are saturated?",
        "A tanh with the output out has a slope of 1 - out**2. Write saturated(outputs): the fraction of these "
        "outputs at which the slope is below 0.1.",
        Same(
            [([0.0, 0.99, -0.99, 0.5],), ([0.95, 0.94],), ([-1.0, 1.0],), ([0.2, -0.3, 0.1],), ([0.92, -0.97, 0.9],)],
            draw=_outputs,
        ),
        (
            "Compute the slope of each output, and count those below 0.1.",
            "A comparison is 1 or 0 in a sum: sum(1 - out**2 < 0.1 for out in outputs), divided by how many.",
        ),
        SATURATED,
        "Of the gradients that arrive at these, less than a tenth goes through.",
        (
            Mistake("the count", (" / len(outputs)", ""), "A fraction is wanted: divide by how many."),
            Mistake(
                "one end alone",
                ("1 - out**2 < 0.1", "out > 0.9**0.5"),
                "A tanh is flat at both ends: near -1, too.",
            ),
            Mistake(
                "the output",
                ("1 - out**2 < 0.1", "abs(out) > 0.9"),
                "0.1 is a bound for the slope. At an output of 0.9 the slope is 0.19.",
            ),
            Mistake("the others", ("< 0.1", ">= 0.1"), "This is the fraction that still learns."),
            Mistake(
                "the slope of something else",
                ("1 - out**2 < 0.1", "out * (1 - out) < 0.1"),
                "That is the slope of a sigmoid. The one of tanh is 1 - out**2.",
            ),
            Mistake(
                "tanh once more",
                ("1 - out**2", "1 - mg.tanh(out) ** 2"),
                "The outputs are what tanh gave. Do not apply it again.",
            ),
        ),
    ),
    Exercise(
        "14.4",
        "Ten in a row",
        "The slope of a sigmoid is 1/4 at its middle, and smaller everywhere else. Ten sigmoids follow each other, "
        "with weights of 1 between them. By which factor is the gradient multiplied on its way back through them, at "
        "most?",
        Number(),
        (
            "Going back through one of them multiplies by its slope, which is 1/4 at most.",
            "Along a path, slopes are multiplied: ten times 1/4.",
        ),
        "0.25**10",
        "About a millionth, in the best case. The first layer would need a million steps for one of the last layer.",
        (
            Mistake("one of them", "0.25", "That is one sigmoid. The gradient goes through ten."),
            Mistake("added", "2.5", "Along a path, slopes are multiplied. They add where paths meet."),
            Mistake("divided by ten", "0.025", "Each sigmoid takes its quarter of what the one behind it has left."),
            Mistake("one too few", "0.25**9", "The gradient goes through all ten, the last one too."),
            Mistake("what is lost", "0.75**10", "A quarter is what is left, and not what is lost."),
        ),
    ),
    Exercise(
        "14.5",
        "How many are dead?",
        "rows has a list for each example: the outputs of the relu neurons of a layer, in order. Write dead(rows): how "
        "many neurons give 0 for every example.",
        Same(
            [
                ([[0.0, 1.5, 0.0], [0.0, 0.0, 2.0]],),
                ([[0.0]],),
                ([[0.0, 0.0], [0.0, 0.25]],),
                ([[3.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]],),
                ([[0.5, 1.0], [0.0, 2.0]],),
            ],
            draw=_relus,
        ),
        (
            "A neuron is a column of the table: row[neuron] of each row.",
            "all(row[neuron] == 0 for row in rows), for each neuron; then count.",
        ),
        DEAD,
        "A relu that is silent for some examples does its work. One that is silent for all of them has stopped.",
        (
            Mistake(
                "silent once",
                ("all(", "any("),
                "A relu may be silent for some examples. It is dead if it is so for all of them.",
            ),
            Mistake(
                "zeros",
                "def dead(rows):\n    return sum(out == 0 for row in rows for out in row)",
                "This counts zeros. Count neurons: each is a column of the table.",
            ),
            Mistake(
                "examples",
                "def dead(rows):\n    return sum(all(out == 0 for out in row) for row in rows)",
                "This goes along the rows, which are examples. A neuron is a column.",
            ),
            Mistake("the living", ("sum(all", "sum(not all"), "These are the ones that are not dead."),
            Mistake(
                "the first example alone",
                ("for row in rows)", "for row in rows[:1])"),
                "One example says little. A neuron that is silent here may speak for the next one.",
            ),
        ),
    ),
    Exercise(
        "14.6",
        "No chance",
        "All weights of a network start at the same number, 0.3, and all biases at 0. You train it for a hundred "
        'steps. What happens to the neurons of the first layer? "they stay alike", "they become different", "they '
        'die", or "they saturate".',
        Choice("they stay alike", "they become different", "they die", "they saturate"),
        (
            "Two neurons with the same weights give the same output. What gradients do they get?",
            "If weights and gradients are the same, what differs after a step?",
        ),
        '"they stay alike"',
        "Ten neurons that are alike are one neuron. Chance is what makes them differ; training makes them useful.",
        (
            Mistake(
                "by training",
                '"they become different"',
                "What should make them differ? Same inputs, same weights, same gradients: the same step.",
            ),
            Mistake("dead", '"they die"', "0.3 is no bad size. The trouble is that it is the same for all."),
            Mistake(
                "saturated", '"they saturate"', "0.3 is no bad size, and the sums stay small. What do they all share?"
            ),
        ),
    ),
)
