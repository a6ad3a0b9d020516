"""Chapter 6, How wrong is it?: losses and probability."""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Number

SQUARED = """
def mean_squared_error(predictions, targets):
    total = 0.0
    for prediction, target in zip(predictions, targets):
        total = total + (prediction - target) ** 2
    return total / len(predictions)
"""
SOFTMAX = """
def softmax(scores):
    largest = max(scores)
    parts = [mg.exp(score - largest) for score in scores]
    total = sum(parts)
    return [part / total for part in parts]
"""
CROSS_ENTROPY = """
def cross_entropy(scores, target):
    largest = max(scores)
    total = sum(mg.exp(score - largest) for score in scores)
    return largest + mg.log(total) - scores[target]
"""
SLOPES = """import math

def slopes(a, b, c):
    parts = [math.exp(score) for score in (a, b, c)]
    p = [part / sum(parts) for part in parts]
    return [p[0], p[1] - 1, p[2]]
"""


EXERCISES = (
    Exercise(
        "6.1",
        "The mean of the squares",
        "Write mean_squared_error(predictions, targets): the mean of the squares of the errors.",
        Same([([2.5, 0.0, 2.0], [3.0, -0.5, 2.0]), ([1.0], [4.0]), ([1.0, -2.0], [2.0, 1.0])], gradients=True),
        ("Go through both lists side by side, and square each difference.", "Divide by how many there are."),
        SQUARED,
        "Off by 2 counts four times as much as off by 1.",
        (
            Mistake("the sum", ("total / len(predictions)", "total"), "This is the sum. Divide by how many."),
            Mistake(
                "not squared",
                ("(prediction - target) ** 2", "(prediction - target)"),
                "Without the square, too much and too little cancel.",
            ),
            Mistake(
                "sizes",
                ("(prediction - target) ** 2", "abs(prediction - target)"),
                "This is the mean absolute error. It is a loss, too, but another one.",
            ),
            Mistake(
                "the square of the mean",
                (
                    "(prediction - target) ** 2",
                    "(prediction - target)",
                    "total / len(predictions)",
                    "(total / len(predictions)) ** 2",
                ),
                "Square first, then take the mean.",
            ),
            Mistake(
                "halved",
                ("total / len(predictions)", "total / len(predictions) / 2"),
                "Some books halve it, so that the slope is simpler. Here the mean alone is asked for.",
            ),
        ),
    ),
    Exercise(
        "6.2",
        "Scores to probabilities",
        "Write softmax(scores): the exp of each score, divided by the sum of all these. The results add up to 1. The "
        "scores may be as large as 1000.",
        Same(
            [
                ([1.0, 2.0, 3.0],),
                ([0.0, 0.0],),
                ([5.0],),
                ([1000.0, 1001.0],),
                ([-1000.0, 0.0],),
                ([2.0, -1.0, 0.5],),
                ([0.0, 1000.0],),
            ]
        ),
        (
            "Subtract the largest score from all of them first: that changes nothing, as in 4.6.",
            "parts = [mg.exp(score - largest) for score in scores]",
        ),
        SOFTMAX,
        "Whatever the scores are, these are positive and add up to 1.",
        (
            Mistake("too large", ("score - largest", "score"), "exp(1000) is more than a float can hold."),
            Mistake(
                "not divided",
                ("part / total", "part + 0 * total"),
                "They do not add up to 1: divide each by the sum of all.",
            ),
            Mistake(
                "without exp",
                ("mg.exp(score - largest)", "score"),
                "Scores may be negative or all 0. Take the exp of each first.",
            ),
            Mistake(
                "all for the first",
                "def softmax(scores):\n    best = scores.index(max(scores))\n"
                "    return [1.0 if index == best else 0.0 for index in range(len(scores))]",
                "This is the hard choice. The soft one leaves something for each, and has a slope.",
            ),
        ),
    ),
    Exercise(
        "6.3",
        "Cross-entropy",
        "Write cross_entropy(scores, target): minus the log of the probability that softmax gives to the index "
        "target. It must be right for scores of any size: for [1000.0, 0.0] and target 1 it is 1000.",
        Same(
            [
                ([1.0, 2.0, 3.0], 2),
                ([1.0, 2.0, 3.0], 0),
                ([0.0, 0.0], 1),
                ([1000.0, 0.0], 1),
                ([-800.0, 800.0, 0.0], 0),
            ],
            gradients=True,
        ),
        (
            "The log of a quotient is a difference: the log of the sum of exps minus the score itself.",
            "You have written the first part in 4.6.",
            "log_sum_exp(scores) - scores[target]",
        ),
        CROSS_ENTROPY,
        "No probability is computed on the way, so none can become 0, whose log does not exist.",
        (
            Mistake(
                "by way of softmax",
                "def cross_entropy(scores, target):\n    return -mg.log(mg.softmax(scores)[target])",
                "Right, until a probability is so small that it is 0. Take the log by hand before you compute.",
            ),
            Mistake(
                "the sign",
                ("return largest + mg.log(total) - scores[target]", "return scores[target] - largest - mg.log(total)"),
                "This is the log of the probability, which is negative. The loss is minus that.",
            ),
            Mistake(
                "the probability",
                "def cross_entropy(scores, target):\n    return mg.softmax(scores)[target]",
                "This is the probability. The loss is minus its log.",
            ),
            Mistake(
                "whatever is largest",
                ("- scores[target]", "- largest"),
                "What counts is the score of the target, and not that of the winner.",
            ),
            Mistake(
                "not put back",
                ("largest + mg.log", "mg.log"),
                "The largest was taken out of the exponents: add it again.",
            ),
        ),
    ),
    Exercise(
        "6.4",
        "p minus y",
        "Take three scores a, b, c, and the second one is the target: the loss is cross_entropy([a, b, c], 1). Write "
        "slopes(a, b, c), a list of the three derivatives of the loss, for plain numbers.",
        Same([(1.0, 2.0, 3.0), (0.0, 0.0, 0.0), (-1.0, 0.5, 2.0)]),
        (
            "The slope of the log of a sum of exps is the probability of each.",
            "And minus 1 for the score of the target.",
            "[p[0], p[1] - 1, p[2]]",
        ),
        SLOPES,
        "What the network says minus what is so: the most beautiful gradient there is.",
        (
            Mistake(
                "turned around",
                ("[p[0], p[1] - 1, p[2]]", "[-p[0], 1 - p[1], -p[2]]"),
                "This is y minus p, the way to go. The gradient is the other way.",
            ),
            Mistake(
                "the probabilities",
                ("p[1] - 1", "p[1]"),
                "The score of the target is subtracted in the loss. What does that do to its slope?",
            ),
            Mistake(
                "one from each",
                ("[p[0], p[1] - 1, p[2]]", "[q - 1 for q in p]"),
                "Only the target has a 1 to subtract.",
            ),
            Mistake(
                "another target",
                ("[p[0], p[1] - 1, p[2]]", "[p[0] - 1, p[1], p[2]]"),
                "The target is at place 1, which is the second one.",
            ),
            Mistake(
                "the target alone",
                ("[p[0], p[1] - 1, p[2]]", "[0.0, p[1] - 1, 0.0]"),
                "The other scores matter, too: they are in the sum of exps.",
            ),
        ),
    ),
    Exercise(
        "6.5",
        "What to expect at first",
        "A network should tell ten digits apart. It has learned nothing yet, and gives each of them the same "
        "probability. What is its cross-entropy? Three digits are enough.",
        Number(digits=3),
        ("Each has a probability of 0.1.", "Minus the natural log of that: -math.log(0.1)."),
        "-math.log(0.1)",
        "If the first loss of a training is far from this, something is wrong before anything was learned.",
        (
            Mistake("the probability", "0.1", "That is the probability. The loss is minus its log."),
            Mistake("the decimal log", "1.0", "That is the log to base 10. log means the natural one here."),
            Mistake("the rest", "0.9", "That is the probability of being wrong. The loss is minus a log."),
            Mistake("the sign", "-2.302585", "The log of 0.1 is negative, and the loss is minus that."),
        ),
    ),
)
