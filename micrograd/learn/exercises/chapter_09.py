"""Chapter 9, Real digits: handwriting, and what to count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

ACCURACY = """
def accuracy(rows, digits):
    right = 0
    for scores, digit in zip(rows, digits):
        right += scores.index(max(scores)) == digit
    return right / len(digits)
"""
CONFUSION = """
def confusion(digits, guesses, kinds):
    table = [[0] * kinds for _ in range(kinds)]
    for digit, guess in zip(digits, guesses):
        table[digit][guess] += 1
    return table
"""
BATCHES = """
def batches(rows, size):
    return [rows[start : start + size] for start in range(0, len(rows), size)]
"""


def accuracy(rows: list[list[float]], digits: list[int]) -> float:
    """As the solution; it raises where there is no score for a digit, so that nothing is shrunk to that."""
    return sum(scores[digit] == max(scores) for scores, digit in zip(rows, digits, strict=True)) / len(digits)


def _guesses(source: random.Random) -> tuple[list[int], list[int], int]:
    kinds, count = source.randint(2, 5), source.randint(3, 9)
    return source.choices(range(kinds), k=count), source.choices(range(kinds), k=count), kinds


EXERCISES = (
    Exercise(
        "9.1",
        "On which images?",
        "You want to know how good the network will be on handwriting that it has never seen. On which images do you "
        'measure its accuracy? "those it was trained on", "those that were set aside", "all of them", or "the ones it '
        'got right".',
        Choice("those it was trained on", "those that were set aside", "all of them", "the ones it got right"),
        ("Who has seen the questions of an exam before?", "Some images must not be used for training at all."),
        '"those that were set aside"',
        "And they may be used once. Whoever chooses between networks by them has trained on them, too.",
        (
            Mistake(
                "by heart", '"those it was trained on"', "It may know these by heart. That says nothing about new ones."
            ),
            Mistake("all", '"all of them"', "Most of these are those it was trained on, which it may know by heart."),
            Mistake(
                "the right ones", '"the ones it got right"', "That is 1, always. Ask all the questions of the exam."
            ),
        ),
    ),
    Exercise(
        "9.2",
        "In batches",
        "Write batches(rows, size): the rows cut into lists of that size, in order. The last one may be shorter.",
        Same([([1.0, 2.0, 3.0, 4.0, 5.0], 2), ([4.0, 2.0, 3.0, 1.0], 2), ([7.0], 3), ([1.0, 2.0, 3.0], 1)]),
        ("Begin at 0, at size, at 2 * size, ...", "rows[start : start + size] may run over the end."),
        BATCHES,
        "One step for each batch: rougher than one for all, and many times as often.",
        (
            Mistake(
                "the rest is lost",
                ("range(0, len(rows), size)", "range(0, len(rows) - size + 1, size)"),
                "What is left at the end makes a batch as well, a shorter one.",
            ),
            Mistake(
                "overlapping",
                ("range(0, len(rows), size)", "range(len(rows))"),
                "Each row belongs into one batch: begin the next where the last one ended.",
            ),
            Mistake(
                "one too many",
                ("start + size]", "start + size + 1]"),
                "A slice ends before its second number: start + size is right.",
            ),
            Mistake(
                "so many batches",
                "def batches(rows, size):\n    return [rows[start::size] for start in range(size)]",
                "size is how long a batch is, and not how many there are.",
            ),
        ),
    ),
    Exercise(
        "9.3",
        "How many are right?",
        "Write accuracy(rows, digits): rows has a list of scores for each image, one for each digit; digits has what "
        "each image shows. The guess is the index of the largest score. Return the fraction of right guesses, between "
        "0 and 1.",
        Same(
            [
                ([[0.1, 2.0, -1.0], [3.0, 0.0, 1.0], [0.0, 0.5, 0.7]], [1, 0, 1]),
                ([[-5.0, -1.0]], [1]),
                ([[0.9, 0.1], [0.2, 0.8]], [1, 0]),
            ],
            reference=accuracy,
        ),
        ("scores.index(max(scores)) is the place of the largest.", "Count, then divide by how many there are."),
        ACCURACY,
        "This is what people want to know. It has no slope, so the network learns from the loss instead.",
        (
            Mistake("the count", ("right / len(digits)", "right"), "A fraction is wanted: divide by how many."),
            Mistake(
                "counted from 1",
                ("max(scores)) == digit", "max(scores)) + 1 == digit"),
                "Places are counted from 0, as digits are.",
            ),
            Mistake("the smallest", ("max(scores)", "min(scores)"), "The guess is the largest score."),
            Mistake(
                "the size of the score",
                ("scores.index(max(scores)) == digit", "scores[digit] > 0.5"),
                "What counts is which score is the largest, and not how large it is.",
            ),
            Mistake("the wrong ones", ("== digit", "!= digit"), "This is the fraction that is wrong."),
        ),
    ),
    Exercise(
        "9.4",
        "Better than nothing?",
        "Of 1,000 images 900 show a 0, and 100 something else. A program that has not looked at any of them always "
        "says 0. What is its accuracy?",
        Number(),
        ("How often is it right?", "It is right for every image that shows a 0."),
        "900 / 1000",
        "So an accuracy says little before you know what a stone would have got.",
        (
            Mistake("a coin", "0.5", "It does not toss a coin. It always says 0."),
            Mistake("a digit of ten", "0.1", "That would be so if all ten were as frequent. Most are 0 here."),
            Mistake("nothing", "0.0", "It has not learned anything, but it is right whenever a 0 comes."),
            Mistake("the count", "900.0", "A fraction is between 0 and 1."),
        ),
    ),
    Exercise(
        "9.5",
        "Which for which?",
        "Write confusion(digits, guesses, kinds): a table, as a list of rows. The number in row i and column j says "
        "how often i was taken for j. There are as many rows and columns as kinds says.",
        Same(
            [([0, 1, 2, 1], [0, 2, 2, 2], 3), ([1, 1, 0], [0, 0, 1], 2), ([3], [0], 4), ([0, 0, 1], [0, 0, 1], 4)],
            draw=_guesses,
        ),
        (
            "Begin with a table of zeros; each row must be a list of its own.",
            "table[digit][guess] += 1, for each pair.",
        ),
        CONFUSION,
        "On the diagonal is what was right. Everything else tells you what to look at.",
        (
            Mistake("turned", ("table[digit][guess]", "table[guess][digit]"), "Rows are what is so."),
            Mistake(
                "one row, many times",
                ("[[0] * kinds for _ in range(kinds)]", "[[0] * kinds] * kinds"),
                "All rows are the same list here, so a count in one is in all of them. Make each again.",
            ),
            Mistake("at most once", ("+= 1", "= 1"), "The same mix-up may come again: count it."),
            Mistake(
                "the mistakes alone",
                ("        table[digit]", "        if digit != guess:\n            table[digit]"),
                "What was right belongs on the diagonal.",
            ),
        ),
    ),
)
