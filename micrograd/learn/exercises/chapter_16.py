"""Chapter 16, Shared weights: a filter that slides over an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

SLIDE = """
def slide(image, weights):
    height, width = len(weights), len(weights[0])
    return [
        [
            sum(weights[i][j] * image[top + i][left + j] for i in range(height) for j in range(width))
            for left in range(len(image[0]) - width + 1)
        ]
        for top in range(len(image) - height + 1)
    ]
"""
PLACES = """
def places(size, width, stride, padding):
    return (size + 2 * padding - width) // stride + 1
"""
SHARED = """
def shared(numbers, incoming):
    return [
        sum(gradient * numbers[place] for place, gradient in enumerate(incoming)),
        sum(gradient * numbers[place + 1] for place, gradient in enumerate(incoming)),
    ]
"""
POOL = """
def pool(table, size):
    return [
        [
            max(table[top + i][left + j] for i in range(size) for j in range(size))
            for left in range(0, len(table[0]), size)
        ]
        for top in range(0, len(table), size)
    ]
"""


def _table(source: random.Random, height: int, width: int) -> list[list[float]]:
    return [[source.randint(-8, 8) / 4 for _ in range(width)] for _ in range(height)]


def _image(source: random.Random) -> tuple[list[list[float]], list[list[float]]]:
    height, width = source.randint(1, 3), source.randint(1, 3)
    image = _table(source, height + source.randint(0, 3), width + source.randint(0, 3))
    return image, _table(source, height, width)


def _sizes(source: random.Random) -> tuple[int, int, int, int]:
    return source.randint(5, 30), source.randint(1, 5), source.randint(1, 4), source.randint(0, 3)


def _row(source: random.Random) -> tuple[list[float], list[float]]:
    count = source.randint(2, 6)
    return [source.randint(-8, 8) / 4 for _ in range(count + 1)], [source.randint(-8, 8) / 4 for _ in range(count)]


def _squares(source: random.Random) -> tuple[list[list[float]], int]:
    size = source.randint(1, 3)
    return _table(source, size * source.randint(1, 3), size * source.randint(1, 3)), size


EXERCISES = (
    Exercise(
        "16.1",
        "Slide it",
        "Write slide(image, weights): both are tables, as lists of rows. Lay the weights on each position of the "
        "image where they fit completely. Return the table of the sums of weight times pixel, a row for each row of "
        "positions.",
        Same(
            [
                ([[1.0, 2.0, 4.0], [0.0, 3.0, 5.0]], [[1.0, -1.0]]),
                ([[2.0]], [[3.0]]),
                ([[1.0, 2.0, 0.0], [3.0, 5.0, 1.0], [0.0, 2.0, 4.0]], [[1.0, 2.0], [3.0, -4.0]]),
                ([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, -1.0]]),
                ([[1.0, 0.0, 2.0, 1.0], [3.0, 1.0, 1.0, 0.0], [2.0, 2.0, 0.0, 1.0]], [[1.0], [2.0]]),
            ],
            draw=_image,
        ),
        (
            "In a row of 8 pixels, 3 weights fit at 6 places: 8 - 3 + 1.",
            "At the place (top, left), weights[i][j] lies on image[top + i][left + j].",
            "For each top, for each left: the sum over all i and j of weights[i][j] * image[top + i][left + j].",
        ),
        SLIDE,
        "The same few weights everywhere: what they have learned at one place, they know at all places.",
        (
            Mistake(
                "turned over",
                ("weights[i][j]", "weights[height - 1 - i][width - 1 - j]"),
                "In mathematics, a convolution turns the weights over first. Networks do not, and here it is not asked "
                "for.",
            ),
            Mistake(
                "one place too few",
                (" + 1)", ")"),
                "The last place counts as well: 3 weights fit into 8 pixels at 8 - 3 + 1 places.",
            ),
            Mistake(
                "side by side",
                ("width + 1)", "width + 1, width)", "height + 1)", "height + 1, height)"),
                "The filter moves by one pixel each time, so that places overlap.",
            ),
            Mistake(
                "the mean",
                ("for j in range(width))", "for j in range(width)) / (height * width)"),
                "The sum is asked for, and not the mean.",
            ),
            Mistake(
                "rows for columns",
                ("image[top + i][left + j]", "image[top + j][left + i]"),
                "weights[i][j] lies on image[top + i][left + j]: rows on rows.",
            ),
        ),
    ),
    Exercise(
        "16.2",
        "Count them",
        "An image has 8 by 8 pixels. Four filters of 3 by 3 weights slide over it, and each has a bias. How many "
        "numbers are learned?",
        Number(),
        ("The size of the image does not count: the weights are the same everywhere.", "Each filter has 9 and 1."),
        "4 * (9 + 1)",
        "A layer with a weight from each pixel to each of the 144 results would have 9,360.",
        (
            Mistake("no biases", "36", "Each of the four filters has a bias, too."),
            Mistake("one bias", "37", "Each filter has a bias of its own."),
            Mistake("at each place", "1440", "The weights at all 36 places are the same ones. Count them once."),
            Mistake("a full layer", "9360", "That is a weight from each pixel to each result. Here they are shared."),
            Mistake("one filter", "10", "That is one filter, and there are four."),
        ),
    ),
    Exercise(
        "16.3",
        "How many places?",
        "Write places(size, width, stride, padding). A row of size pixels has padding zeros on either side. A filter "
        "of that width starts at the left end, and moves by stride pixels. At how many positions does it fit "
        "completely?",
        Same(
            [(8, 3, 1, 0), (8, 3, 2, 0), (8, 3, 1, 1), (5, 5, 1, 0), (7, 2, 3, 2), (10, 4, 3, 0), (9, 1, 2, 0)],
            draw=_sizes,
        ),
        (
            "With the zeros there are size + 2 * padding pixels.",
            "The filter can move by that minus its width, in steps of stride; and it begins at one place.",
        ),
        PLACES,
        "With a padding of 1, a filter of 3 leaves the size as it is. So layers can be put on each other.",
        (
            Mistake("the first one", (" + 1", ""), "This counts moves. It is at one place before."),
            Mistake("one side", ("2 * padding", "padding"), "There are zeros on both sides."),
            Mistake(
                "a part of a place",
                ("//", "/"),
                "If the last move does not fit as a whole, it does not count: divide with //.",
            ),
            Mistake("no stride", (" // stride", ""), "It moves by stride pixels each time."),
            Mistake(
                "side by side",
                "def places(size, width, stride, padding):\n    return (size + 2 * padding) // width",
                "The places overlap: it moves by the stride, and not by its width.",
            ),
            Mistake(
                "rounded up",
                "def places(size, width, stride, padding):\n    return -(-(size + 2 * padding - width) // stride) + 1",
                "What does not fit as a whole does not count. Round down.",
            ),
        ),
    ),
    Exercise(
        "16.4",
        "One weight, many places",
        "A filter of two weights slides over a row: out[i] = a * numbers[i] + b * numbers[i + 1]. incoming has the "
        "gradient of each out. Write shared(numbers, incoming): the gradients of a and of b, as a list.",
        Same(
            [
                ([2.0, 3.0], [5.0]),
                ([1.0, 2.0, 4.0], [1.0, 3.0]),
                ([0.0, -1.0, 2.0, 0.5], [1.0, -2.0, 4.0]),
                ([1.0, 1.0, 3.0], [0.0, 0.0]),
            ],
            draw=_row,
        ),
        (
            "Chapter 2: each use contributes, and contributions add. What does out[i] contribute to a?",
            "incoming[i] * numbers[i] for a, and incoming[i] * numbers[i + 1] for b; each added up over i.",
        ),
        SHARED,
        "Sharing a weight is using a Value several times. The engine needed nothing new for it.",
        (
            Mistake(
                "the last one alone",
                "def shared(numbers, incoming):\n"
                "    return [incoming[-1] * numbers[len(incoming) - 1], incoming[-1] * numbers[len(incoming)]]",
                "This is the contribution of the last position: = where += belongs. All contributions add up.",
            ),
            Mistake(
                "the mean",
                "def shared(numbers, incoming):\n    n = len(incoming)\n"
                "    return [sum(g * x for g, x in zip(incoming, numbers)) / n, "
                "sum(g * x for g, x in zip(incoming, numbers[1:])) / n]",
                "Contributions add. To divide them by how many there are is not part of the chain rule.",
            ),
            Mistake(
                "without the inputs",
                "def shared(numbers, incoming):\n    return [sum(incoming), sum(incoming)]",
                "The slope of out[i] for a is numbers[i]. This would be right for a bias.",
            ),
            Mistake(
                "the same for both",
                ("numbers[place + 1]", "numbers[place]"),
                "b lies on the next number: its slope at the place i is numbers[i + 1].",
            ),
            Mistake(
                "the inputs alone",
                "def shared(numbers, incoming):\n    n = len(incoming)\n"
                "    return [sum(numbers[:n]), sum(numbers[1 : n + 1])]",
                "The chain rule: multiply each slope by the gradient that comes in.",
            ),
        ),
    ),
    Exercise(
        "16.5",
        "One pixel to the right",
        "You move a digit by one pixel to the right, on empty paper. What happens to the table that the filter gives? "
        '"it moves along", "it stays as it is", "it becomes zero", or "it changes everywhere".',
        Choice("it moves along", "it stays as it is", "it becomes zero", "it changes everywhere"),
        (
            "At the next place to the right, the filter sees now what it saw here before.",
            "The weights are the same at both places. So what does it give there?",
        ),
        '"it moves along"',
        "What it knows at one place, it knows everywhere. A layer with a weight for each pixel does not.",
        (
            Mistake(
                "no change",
                '"it stays as it is"',
                "It gives the same numbers, but at other places: where the edge is now.",
            ),
            Mistake(
                "all new",
                '"it changes everywhere"',
                "That is what happens to a layer with a weight for each pixel. Here all places have the same weights.",
            ),
            Mistake("nothing there", '"it becomes zero"', "The edges are still there, one pixel to the right."),
        ),
    ),
    Exercise(
        "16.6",
        "The largest of four",
        "Write pool(table, size): cut the table into squares of size rows and columns, and return the table of the "
        "largest number of each. The table can be cut without remainder.",
        Same(
            [
                ([[1.0, 2.0], [4.0, 3.0]], 2),
                ([[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 7.0, 6.0]], 2),
                ([[-1.0, -2.0], [-4.0, -3.0]], 2),
                ([[3.0, 1.0], [2.0, 5.0]], 1),
                ([[1.0, 2.0, 9.0], [4.0, 8.0, 3.0], [7.0, 6.0, 5.0]], 3),
                ([[1.0, 2.0], [3.0, 9.0], [5.0, 6.0], [8.0, 7.0]], 2),
            ],
            draw=_squares,
        ),
        (
            "Squares begin at 0, size, 2 * size, ... in both directions.",
            "max(table[top + i][left + j] for i in range(size) for j in range(size)), for each square.",
        ),
        POOL,
        "Where exactly in the square it was is forgotten, and that is what it is for.",
        (
            Mistake(
                "overlapping",
                ("len(table[0]), size)", "len(table[0]) - size + 1)", "len(table), size)", "len(table) - size + 1)"),
                "The squares lie side by side: the next begins where this one ends.",
            ),
            Mistake(
                "the mean",
                (
                    "max(table[top + i][left + j] for i in range(size) for j in range(size))",
                    "sum(table[top + i][left + j] for i in range(size) for j in range(size)) / size**2",
                ),
                "The largest is asked for. (Means are used for this, too.)",
            ),
            Mistake(
                "the corner",
                ("max(table[top + i][left + j] for i in range(size) for j in range(size))", "table[top][left]"),
                "This is one corner of each square. Which of its numbers is the largest?",
            ),
            Mistake(
                "never below zero",
                ("max(table[top", "max(0.0, *(table[top", "for j in range(size))", "for j in range(size)))"),
                "All numbers of a square may be below 0. Then the largest of them is, too.",
            ),
            Mistake(
                "rows alone",
                ("for i in range(size) ", "for i in [0] ", "len(table), size)", "len(table))"),
                "A square has size rows, too: take the largest over both directions.",
            ),
        ),
    ),
)
