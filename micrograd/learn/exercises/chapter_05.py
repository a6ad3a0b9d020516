"""Chapter 5, A network: neurons, layers, and two moons."""

from __future__ import annotations

from micrograd import functional
from micrograd.engine.value import Value
from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.graphs import Zeros
from micrograd.learn.kinds.values import Number

NEURON = """
def neuron(weights, bias, inputs):
    total = bias
    for weight, x in zip(weights, inputs):
        total = total + weight * x
    return mg.tanh(total)
"""
LAYER = """
def layer(rows, biases, inputs):
    outputs = []
    for row, bias in zip(rows, biases):
        total = bias
        for weight, x in zip(row, inputs):
            total = total + weight * x
        outputs.append(mg.tanh(total))
    return outputs
"""
REASONS = {
    "switched off": "no relu that is in its flat part is between it and the result",
    "times zero": "what it is multiplied by is not 0",
}


def _half_asleep() -> tuple[Value, dict[str, Value]]:
    numbers = {"w1": 2.0, "w2": -3.0, "b": -1.0, "u1": 1.0, "u2": 2.0, "c": 0.5, "v1": 4.0, "v2": -2.0}
    values = {name: Value(number, label=name) for name, number in numbers.items()}
    x1, x2 = 0.0, 1.0
    h1 = functional.relu(values["w1"] * x1 + values["w2"] * x2 + values["b"])
    h2 = functional.relu(values["u1"] * x1 + values["u2"] * x2 + values["c"])
    return values["v1"] * h1 + values["v2"] * h2, values


EXERCISES = (
    Exercise(
        "5.1",
        "A neuron",
        "Write neuron(weights, bias, inputs): tanh of the bias plus each weight times its input. The lists have the "
        "same length, and may hold Values. Use mg.tanh.",
        Same(
            [([0.5, -1.0], 0.25, [1.0, 2.0]), ([1.0], 0.0, [0.5]), ([0.1, 0.2, -0.3], -0.5, [1.0, -1.0, 2.0])],
            gradients=True,
        ),
        ("zip(weights, inputs) goes through both lists side by side.", "Begin the sum with the bias; tanh comes last."),
        NEURON,
        "A neuron is a weighted sum that is bent.",
        (
            Mistake("no bias", ("total = bias", "total = 0.0"), "The bias belongs into the sum."),
            Mistake("not bent", ("mg.tanh(total)", "total"), "The sum goes through tanh before it goes out."),
            Mistake(
                "the bias outside",
                ("total = bias", "total = 0.0", "mg.tanh(total)", "mg.tanh(total) + bias"),
                "The bias is added before the tanh: it moves the bend to another place.",
            ),
            Mistake(
                "each one bent",
                ("total + weight * x", "total + mg.tanh(weight * x)", "return mg.tanh(total)", "return total"),
                "There is one tanh, around the whole sum.",
            ),
            Mistake("added", ("weight * x", "weight + x"), "Each weight is multiplied by its input."),
        ),
    ),
    Exercise(
        "5.2",
        "How many numbers?",
        "A network has 2 inputs, a layer of 16 neurons, another one of 16, and 1 neuron at the end. Every neuron has a "
        "weight for each number that comes in, and a bias. How many weights and biases are there together?",
        Number(),
        (
            "A neuron of the first layer has 2 weights and a bias: 3 numbers. There are 16 of them.",
            "In the second layer each has 16 weights and a bias.",
            "16 * 3 + 16 * 17 + 1 * 17",
        ),
        "16 * (2 + 1) + 16 * (16 + 1) + 1 * (16 + 1)",
        "Most of them are between the two wide layers: that is where large networks have their weights.",
        (
            Mistake("no biases", "2 * 16 + 16 * 16 + 16 * 1", "Each neuron has a bias as well."),
            Mistake("a bias a layer", "2 * 16 + 16 * 16 + 16 * 1 + 3", "Not each layer, each neuron has a bias."),
            Mistake("the neurons", "16 + 16 + 1", "That is how many neurons there are. How many numbers has each?"),
            Mistake("one layer forgotten", "16 * 3 + 1 * 17", "There are two layers of 16."),
        ),
    ),
    Exercise(
        "5.3",
        "A layer",
        "Write layer(rows, biases, inputs): the list of the outputs of a layer. For each neuron, rows has a list of "
        "weights. All neurons see the same inputs, and each ends with tanh.",
        Same(
            [
                ([[0.5, -1.0], [0.25, 1.0]], [0.25, -0.5], [1.0, 2.0]),
                ([[1.0, 2.0]], [0.0], [0.5, -0.5]),
                ([[0.5], [-0.5], [1.5]], [0.1, 0.2, 0.3], [1.0]),
            ]
        ),
        ("Go through rows and biases side by side: each pair is a neuron.", "Inside of that loop stands 5.1."),
        LAYER,
        "Neurons side by side, and they know nothing of each other.",
        (
            Mistake(
                "one bias for all",
                ("        total = bias\n", "        total = biases[0]\n"),
                "Each neuron has a bias of its own.",
            ),
            Mistake(
                "the last one",
                ("return outputs", "return outputs[-1:]"),
                "Every neuron gives an output: return the whole list.",
            ),
            Mistake(
                "summed up",
                ("return outputs", "return sum(outputs)"),
                "The outputs stay side by side: the next layer weighs each of them by itself.",
            ),
            Mistake(
                "the sum goes on",
                (
                    "    outputs = []\n",
                    "    outputs, total = [], 0.0\n",
                    "        total = bias\n",
                    "        total = total + bias\n",
                ),
                "The sum of the neuron before is still in total: begin again for each.",
            ),
            Mistake("not bent", ("mg.tanh(total)", "total"), "Each output goes through tanh."),
        ),
    ),
    Exercise(
        "5.4",
        "Half asleep",
        "Two relu neurons see x1 = 0 and x2 = 1: h1 = relu(w1*x1 + w2*x2 + b) and h2 = relu(u1*x1 + u2*x2 + c). The "
        "result is f = v1*h1 + v2*h2. With w1 = 2, w2 = -3, b = -1, u1 = 1, u2 = 2, c = 0.5, v1 = 4, v2 = -2: which of "
        'these eight have a gradient of exactly 0, and why? A dict with "switched off" or "times zero" for each. For '
        'one behind a relu in its flat part, say "switched off".',
        Zeros(
            _half_asleep,
            REASONS,
            {"w1": "switched off", "w2": "switched off", "b": "switched off", "u1": "times zero", "v1": "times zero"},
        ),
        (
            "What is inside of the first relu? 2*0 - 3*1 - 1.",
            "A weight gets the number that it is multiplied by. Which of these numbers are 0?",
            "There are five.",
        ),
        '{"w1": "switched off", "w2": "switched off", "b": "switched off", "u1": "times zero", "v1": "times zero"}',
        "For this one example h1 learns nothing. If that is so for every example, it sleeps for ever.",
        (
            Mistake(
                "v1 forgotten",
                '{"w1": "switched off", "w2": "switched off", "b": "switched off", "u1": "times zero"}',
                "What is v1 multiplied by?",
            ),
            Mistake(
                "v1 switched off",
                '{"w1": "switched off", "w2": "switched off", "b": "switched off", "u1": "times zero", '
                '"v1": "switched off"}',
                "v1 comes after the relu. It is multiplied by h1, which is 0.",
            ),
            Mistake(
                "the weights alone",
                '{"w1": "switched off", "w2": "switched off", "u1": "times zero", "v1": "times zero"}',
                "The bias is inside of the relu, too.",
            ),
            Mistake(
                "negative ones",
                '{"w2": "switched off", "b": "switched off", "v2": "switched off"}',
                "What counts is the sign of the whole sum inside of a relu, not that of a weight.",
            ),
        ),
    ),
    Exercise(
        "5.5",
        "One step down",
        "A weight is 2, its gradient is 3, and the learning rate is 0.1. What is the weight after one step of gradient "
        "descent?",
        Number(),
        ("The loss grows with the weight. So the weight becomes smaller.", "2 - 0.1 * 3"),
        "2 - 0.1 * 3",
        "Against the gradient, as far as the rate says.",
        (
            Mistake("uphill", "2 + 0.1 * 3", "With the gradient the loss grows. Go against it."),
            Mistake("the rate alone", "2 - 0.1", "The step is the rate times the gradient."),
            Mistake("without a rate", "2.0 - 3", "That step is ten times too long: multiply by the rate."),
            Mistake("the step", "0.1 * 3", "That is the length of the step. Where does it lead to from 2?"),
        ),
    ),
)
