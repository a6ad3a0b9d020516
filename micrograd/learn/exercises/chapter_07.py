"""Chapter 7, Going down: optimisers as programs."""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Number

SGD = """
def step(weights, gradients, rate):
    return [weight - rate * gradient for weight, gradient in zip(weights, gradients)]
"""
MOMENTUM = """
def step(weight, velocity, gradient, rate, keep):
    velocity = keep * velocity + gradient
    return [weight - rate * velocity, velocity]
"""
ADAM = """
def step(weight, mean, square, gradient, rate, count):
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.999 * square + 0.001 * gradient**2
    fair_mean = mean / (1 - 0.9**count)
    fair_square = square / (1 - 0.999**count)
    return [weight - rate * fair_mean / (fair_square**0.5 + 1e-8), mean, square]
"""
COSINE = """import math

def rate_at(step, steps, highest):
    return highest * (1 + math.cos(math.pi * step / steps)) / 2
"""


EXERCISES = (
    Exercise(
        "7.1",
        "Gradient descent",
        "Write step(weights, gradients, rate): the list of the weights after one step of gradient descent.",
        Same([([2.0, -1.0], [3.0, 0.5], 0.1), ([1.0], [-4.0], 0.5), ([0.5, 0.25, 2.0], [0.0, 1.0, -2.0], 1.0)]),
        ("You have done it for one weight in 5.5.", "weight - rate * gradient, for each pair."),
        SGD,
        "This one line, with small changes, has trained every large network there is.",
        (
            Mistake("uphill", ("weight - rate", "weight + rate"), "This makes the loss larger: subtract."),
            Mistake(
                "without a rate",
                ("rate * gradient", "gradient"),
                "The rate says how long the step is: multiply by it.",
            ),
            Mistake(
                "the sign alone",
                ("rate * gradient", "rate * (1 if gradient > 0 else -1)"),
                "A large gradient takes a long step, a small one a short step.",
            ),
            Mistake(
                "the steps",
                ("weight - rate", "- rate"),
                "These are the steps. Where do they lead to from the weights?",
            ),
        ),
    ),
    Exercise(
        "7.2",
        "How long may a step be?",
        "Take the loss 3 * w**2. A step goes from w to w - rate * 6 * w. With a small rate, w comes closer to 0. From "
        "which rate on does it jump as far to the other side, or farther?",
        Number(digits=3),
        ("After a step, w is (1 - 6 * rate) * w.", "It is as far on the other side where 1 - 6 * rate is -1."),
        "2 / 6",
        "2 divided by the curvature. The steepest direction of a loss decides how long a step may be.",
        (
            Mistake(
                "straight to the bottom", "1 / 6", "With this rate one step ends at 0 exactly. Longer ones overshoot."
            ),
            Mistake("half of it", "1 / 12", "That is a careful rate. It may be longer."),
            Mistake("without the 3", "1.0", "That is the limit for w**2. This valley is three times as steep."),
            Mistake("the slope of the slope", "6.0", "That is the curvature. The limit is 2 divided by it."),
        ),
    ),
    Exercise(
        "7.3",
        "Momentum",
        "Write step(weight, velocity, gradient, rate, keep). The new velocity is keep times the old one plus the "
        "gradient. The weight then moves against the new velocity, rate times as far. Return [weight, velocity].",
        Same([(2.0, 0.0, 3.0, 0.1, 0.9), (1.0, 2.0, -1.0, 0.5, 0.5), (0.0, -3.0, 0.0, 0.1, 0.9)]),
        ("First the velocity, then the weight.", "velocity = keep * velocity + gradient"),
        MOMENTUM,
        "Where the gradients agree, it gets faster. Where they take turns, they cancel.",
        (
            Mistake(
                "the old velocity",
                "def step(weight, velocity, gradient, rate, keep):\n"
                "    return [weight - rate * velocity, keep * velocity + gradient]",
                "The weight moves with the new velocity: compute that first.",
            ),
            Mistake(
                "nothing lost",
                ("keep * velocity", "velocity"),
                "Without keep there is no friction, and it never comes to rest.",
            ),
            Mistake(
                "the gradient alone",
                ("weight - rate * velocity", "weight - rate * gradient"),
                "The velocity was computed, and the weight did not move with it.",
            ),
            Mistake(
                "a mean",
                ("+ gradient", "+ (1 - keep) * gradient"),
                "This is a running mean, as Adam has. Here the whole gradient is added.",
            ),
            Mistake("uphill", ("weight - rate", "weight + rate"), "Against the velocity: subtract."),
        ),
    ),
    Exercise(
        "7.4",
        "Adam",
        "Write step(weight, mean, square, gradient, rate, count), a step of Adam. Two running means, mean of the "
        "gradient and square of its square, keep 0.9 and 0.999 of the old number. Both start at 0, so for the step "
        "they are divided by 1 - 0.9**count and 1 - 0.999**count. In the first step, count is 1. The weight moves by "
        "rate times the mean, divided by the root of the square plus 1e-8. Return [weight, mean, square], the last "
        "two before the division.",
        Same(
            [
                (2.0, 0.0, 0.0, 3.0, 0.1, 1),
                (1.0, 0.5, 0.25, -1.0, 0.01, 7),
                (0.0, 0.0, 0.0, 1e-4, 0.5, 1),
                (1.0, 0.0, 0.0, 0.0, 0.1, 1),
            ]
        ),
        (
            "mean = 0.9 * mean + 0.1 * gradient, and the same for the square, with 0.999 and 0.001.",
            "For the step, fair_mean = mean / (1 - 0.9**count). The mean that is kept stays as it is.",
            "weight - rate * fair_mean / (fair_square**0.5 + 1e-8)",
        ),
        ADAM,
        "In the first step mean and root are the gradient and its size, so every weight moves by the rate.",
        (
            Mistake(
                "not made fair",
                ("mean / (1 - 0.9**count)", "mean", "square / (1 - 0.999**count)", "square"),
                "In the first steps both means are too small. Divide by 1 - 0.9**count and 1 - 0.999**count.",
            ),
            Mistake(
                "no root",
                ("fair_square**0.5", "fair_square"),
                "Divide by the root of the square, which has the size of a gradient.",
            ),
            Mistake(
                "not squared",
                ("gradient**2", "gradient"),
                "The second mean is that of the squares of the gradient.",
            ),
            Mistake(
                "the fair ones are kept",
                ("mean, square]", "fair_mean, fair_square]"),
                "What is kept are the means as they are. They are made fair again in each step.",
            ),
            Mistake(
                "the gradient alone",
                ("rate * fair_mean", "rate * gradient"),
                "The step goes along the mean, and not along the last gradient.",
            ),
        ),
    ),
    Exercise(
        "7.5",
        "A rate that falls",
        "Write rate_at(step, steps, highest): a learning rate that falls from highest at step 0 to 0 at the last one, "
        "steps. It follows half a period of a cosine: slow at both ends, and fastest in the middle.",
        Same(
            [(0, 100, 0.5), (100, 100, 0.5), (50, 100, 0.5), (25, 100, 1.0), (3, 7, 2.0), (1, 4, 0.3)],
            draw=lambda source: (source.randint(0, 20), 20, round(source.uniform(0.01, 2.0), 3)),
        ),
        ("cos goes from 1 to -1 as its angle goes from 0 to pi.", "(1 + cos) / 2 goes from 1 to 0."),
        COSINE,
        "Long steps at first to get there, short ones at the end to stay there.",
        (
            Mistake(
                "a straight line",
                "def rate_at(step, steps, highest):\n    return highest * (1 - step / steps)",
                "This is a straight line from highest to 0. A good one, but no cosine.",
            ),
            Mistake(
                "below zero",
                ("(1 + math.cos(math.pi * step / steps)) / 2", "math.cos(math.pi * step / steps)"),
                "From the middle on this is negative, and steps go uphill. Lift the cosine by 1 and halve it.",
            ),
            Mistake(
                "a whole turn",
                ("math.pi * step", "2 * math.pi * step"),
                "This goes down and up again: half a turn is pi.",
            ),
            Mistake("not halved", (") / 2", ")"), "At step 0 this is twice the highest."),
        ),
    ),
)
