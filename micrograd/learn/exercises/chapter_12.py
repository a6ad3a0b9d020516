"""Chapter 12, What the compiler sees: levels, kernels, matrices, and what can be done at the same time."""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Number

LEVELS = """
def levels(operands):
    found = []
    for places in operands:
        found.append(1 + max(found[place] for place in places) if places else 0)
    return found
"""
TIMES = """
def times(rows, x):
    return [sum(weight * number for weight, number in zip(row, x)) for row in rows]
"""
BACK = """
def back(rows, gradients):
    return [sum(weight * gradient for weight, gradient in zip(column, gradients)) for column in zip(*rows)]
"""
SLOPES = """
def slopes(gradients, x):
    return [[gradient * number for number in x] for gradient in gradients]
"""


EXERCISES = (
    Exercise(
        "12.1",
        "How many multiplications?",
        "A layer of 10 neurons sees 64 numbers, as in chapter 9. A batch has 100 images. How many multiplications of "
        "a weight and a number does the forward pass take?",
        Number(),
        ("Each neuron has a weight for each number.", "10 * 64 for one image."),
        "10 * 64 * 100",
        "None of them needs any of the others.",
        (
            Mistake("one image", "10 * 64.0", "That is one image. The batch has 100."),
            Mistake("one neuron", "64 * 100.0", "That is one neuron. There are 10."),
            Mistake("with the biases", "10 * 65 * 100.0", "A bias is added. Nothing is multiplied by it."),
            Mistake("added up", "10 + 64 + 100.0", "Each neuron has a weight for each number: these multiply."),
            Mistake("forward and back", "10 * 64 * 100 * 3.0", "With the way back it is about that. Forward alone?"),
        ),
    ),
    Exercise(
        "12.2",
        "Levels",
        "Write levels(operands): for each number, operands has a list of the indices of its operands; they all come "
        "before it. An input has an empty list. Return the list of the levels.",
        Same(
            [
                ([[]],),
                ([[], [], [0, 1]],),
                ([[], [], [0, 1], [2, 0], [1, 3], [4]],),
                ([[], [0], [1], [], [3, 2], [0, 0]],),
                ([[], [], [0, 1], [0], [3], [4], [2, 5], [6, 0]],),
            ],
            draw=lambda source: ([source.sample(range(i), source.randint(0, min(i, 3))) for i in range(8)],),
        ),
        (
            "Go from the first to the last: the levels of the operands are known by then.",
            "1 + max(found[place] for place in places), or 0 where there are no places.",
        ),
        LEVELS,
        "The last level says how many steps it takes, however many workers there are.",
        (
            Mistake(
                "the nearest",
                ("max(", "min("),
                "A number must wait for the last of its operands, not only for the first.",
            ),
            Mistake(
                "the last operand",
                ("max(found[place] for place in places)", "found[places[-1]]"),
                "Any of the operands may be the one to wait for, not only the one named last.",
            ),
            Mistake(
                "one after the other",
                "def levels(operands):\n    return [i if places else 0 for i, places in enumerate(operands)]",
                "That is the order in which they stand. Those that do not need each other have the same level.",
            ),
            Mistake(
                "how many operands",
                "def levels(operands):\n    return [len(places) for places in operands]",
                "That is how many operands each has. When can it be computed?",
            ),
            Mistake(
                "only given or made",
                "def levels(operands):\n    return [1 if places else 0 for places in operands]",
                "What is made of made numbers has to wait for these: its level is one more than theirs.",
            ),
        ),
    ),
    Exercise(
        "12.3",
        "A matrix times a vector",
        "Write times(rows, x): rows is a matrix, a list of rows, and x is a list of numbers. Return a list with a "
        "number for each row: the sum of its numbers, each times the one of x at the same index.",
        Same(
            [
                ([[2.0]], [5.0]),
                ([[1.0, 2.0], [3.0, -1.0]], [4.0, 0.5]),
                ([[1.0, 0.0, -2.0], [0.5, 3.0, 1.0]], [2.0, -1.0, 3.0]),
                ([[1.0, 2.0], [0.0, 1.0], [-1.0, 4.0]], [3.0, 5.0]),
            ]
        ),
        ("Each row gives one number.", "sum(weight * number for weight, number in zip(row, x)), for each row."),
        TIMES,
        "That is a layer without its biases. Everything that a network does at length is this.",
        (
            Mistake(
                "turned on its side",
                ("for row in rows]", "for row in zip(*rows)]"),
                "A number for each row, not for each column.",
            ),
            Mistake(
                "not added up",
                "def times(rows, x):\n    return [[w * number for w, number in zip(row, x)] for row in rows]",
                "Each row was multiplied. Now add up its products: one number for a row.",
            ),
            Mistake(
                "one number of x for a row",
                "def times(rows, x):\n    return [number * sum(row) for row, number in zip(rows, x)]",
                "In each row, the first number goes with the first of x, the second with the second.",
            ),
            Mistake(
                "all in one",
                "def times(rows, x):\n    return [sum(w * n for row in rows for w, n in zip(row, x))]",
                "Each row has a sum of its own.",
            ),
            Mistake("added", ("weight * number", "weight + number"), "Each is multiplied by that of x."),
        ),
    ),
    Exercise(
        "12.4",
        "The way back is a matrix, too",
        "Write back(rows, gradients): gradients are those of the results of times(rows, x), one for each row. Return "
        "the gradients of x, one for each column.",
        Same(
            [
                ([[2.0]], [5.0]),
                ([[1.0, 2.0], [3.0, -1.0]], [4.0, 0.5]),
                ([[1.0, 0.0, -2.0], [0.5, 3.0, 1.0]], [2.0, -1.0]),
                ([[1.0, 2.0], [0.0, 1.0], [-1.0, 4.0]], [3.0, 5.0, 0.25]),
            ]
        ),
        (
            "x[j] gets a contribution from each row i: gradients[i] * rows[i][j].",
            "zip(*rows) gives the columns.",
        ),
        BACK,
        "Forward, rows are added up; backward, columns. The numbers are the same.",
        (
            Mistake(
                "not turned",
                ("zip(*rows)", "rows"),
                "This is times again. x[j] meets the numbers of column j, one in each row.",
            ),
            Mistake(
                "the last one stays",
                "def back(rows, gradients):\n    return [weight * gradients[-1] for weight in rows[-1]]",
                "Each row contributes, and contributions add. Here the last has overwritten the others.",
            ),
            Mistake(
                "without the gradients",
                ("weight * gradient ", "weight "),
                "These are the local derivatives. Each is multiplied by the gradient of its result.",
            ),
            Mistake(
                "not added up",
                "def back(rows, gradients):\n    return [[w * g for w in row] for row, g in zip(rows, gradients)]",
                "These are all the contributions. Add up those of each column: x[j] gets one from every row.",
            ),
            Mistake(
                "divided",
                ("weight * gradient ", "gradient / (weight or 1.0) "),
                "The way back does not undo the way forward. Each contribution is the gradient times the weight.",
            ),
        ),
    ),
    Exercise(
        "12.5",
        "The gradients of the weights",
        "Write slopes(gradients, x): the gradients of all the numbers in rows, as a list of rows.",
        Same(
            [([2.0], [5.0]), ([1.0, -2.0], [3.0, 0.5]), ([2.0, 3.0], [1.0, 4.0, -1.0]), ([0.5, 1.5, 3.0], [2.0, -4.0])]
        ),
        (
            "The weight in row i and column j goes into result i, times x[j].",
            "gradients[i] * x[j]: a row for each gradient.",
        ),
        SLOPES,
        "Every gradient with every number: an outer product. With a batch, one for each image, added up.",
        (
            Mistake(
                "turned on its side",
                "def slopes(gradients, x):\n    return [[gradient * number for gradient in gradients] for number in x]",
                "A row for each result, and in it a column for each number of x.",
            ),
            Mistake(
                "added up",
                "def slopes(gradients, x):\n    return [gradient * sum(x) for gradient in gradients]",
                "Each weight has a gradient of its own: do not add them up.",
            ),
            Mistake(
                "place by place",
                "def slopes(gradients, x):\n    return [g * number for g, number in zip(gradients, x)]",
                "Every gradient meets every number of x, not only the one at its own place.",
            ),
            Mistake(
                "x alone",
                "def slopes(gradients, x):\n    return [list(x) for _ in gradients]",
                "These are the local derivatives. Each is multiplied by the gradient of its result.",
            ),
            Mistake(
                "the gradients alone",
                "def slopes(gradients, x):\n    return [[gradient for _ in x] for gradient in gradients]",
                "The local derivative is what the weight is multiplied by: a number of x.",
            ),
        ),
    ),
    Exercise(
        "12.6",
        "Adding in pairs",
        "Add 1,024 numbers in pairs, all pairs at the same time. Then add the results in pairs, until one is left. "
        "How many steps does that take?",
        Number(),
        ("After one step 512 are left, after two 256.", "How often can 1,024 be halved?"),
        "10.0",
        "As many additions as before, 1,023, but in 10 steps: this is what makes a sum wide.",
        (
            Mistake("one after the other", "1023.0", "It takes that many steps one after the other."),
            Mistake("the first step", "512.0", "The first step has so many pairs, and all are done at once."),
            Mistake("half as many", "1024 / 2 + 1", "Each step adds all of its pairs at once."),
            Mistake("one too many", "11.0", "After 10 steps one number is left: 2**10 is 1,024."),
            Mistake("one too few", "9.0", "After 9 steps two numbers are left."),
        ),
    ),
    Exercise(
        "12.7",
        "Once fetched",
        "A layer of 10 neurons sees 64 numbers. With one image, each weight that is fetched is used in one "
        "multiplication. In how many is it used with a batch of 100 images?",
        Number(),
        (
            "A weight belongs to one neuron, and to one of the 64 numbers.",
            "It is multiplied by one number of each image.",
        ),
        "100.0",
        "A hundred times the work for one fetch: so the workers compute, and do not wait.",
        (
            Mistake("one", "1.0", "With each image it meets another number, and there are 100 images."),
            Mistake("all of them", "64_000.0", "These are the multiplications of the whole layer."),
            Mistake("all its numbers", "6_400.0", "A weight meets one number of each image, not all 64."),
            Mistake("every neuron", "1_000.0", "A weight belongs to one neuron only."),
        ),
    ),
)
