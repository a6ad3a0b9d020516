"""Chapter 11, Attention: queries, keys and values, and a transformer made of them."""

from __future__ import annotations

from micrograd.engine.value import Value
from micrograd.functional import dot, softmax
from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.graphs import Zeros
from micrograd.learn.kinds.values import Number

WEIGHTS = """
def weights(query, keys):
    fits = [sum(q * k for q, k in zip(query, key)) / len(query) ** 0.5 for key in keys]
    return [float(weight) for weight in mg.softmax(fits)]
"""
MIXED = """
def mixed(weights, values):
    return [sum(weight * number for weight, number in zip(weights, column)) for column in zip(*values)]
"""
CHANCES = """
def chances(scores, temperature):
    return [float(chance) for chance in mg.softmax([score / temperature for score in scores])]
"""


def _taken_by_two() -> tuple[Value, dict[str, Value]]:
    """What the first two of three letters take, each from itself and those before it."""
    numbers = {"q1": 0.5, "q2": 1.5, "q3": -1.0, "k1": 1.0, "k2": -0.5, "k3": 2.0, "v1": 3.0, "v2": -1.0, "v3": 0.5}
    values = {name: Value(number, label=name) for name, number in numbers.items()}
    total = Value(0.0)
    for asking in (1, 2):
        seen = range(1, asking + 1)
        fits = [values[f"q{asking}"] * values[f"k{place}"] for place in seen]
        total = total + dot(softmax(fits), [values[f"v{place}"] for place in seen])
    return total, values


EXERCISES = (
    Exercise(
        "11.1",
        "Attention weights",
        "Write weights(query, keys): query is a list of numbers, and keys is a list of such lists. For each key, take "
        "its dot product with query, divided by the root of the length of query. Return the softmax of these: a list "
        "with a weight for each key.",
        Same(
            [
                ([1.0], [[1.0], [3.0]]),
                ([1.0, 2.0, -1.0, 0.5], [[1.0, 0.0, 2.0, 1.0], [0.5, 1.0, 0.0, -1.0], [-1.0, 1.0, 1.0, 2.0]]),
                ([2.0, -1.0], [[1.0, 1.0], [0.5, -1.0], [3.0, 0.0], [0.0, 0.0]]),
                ([0.0, 3.0, 1.0], [[1.0, 1.0, 1.0], [2.0, 0.5, -1.0]]),
            ]
        ),
        (
            "A dot product is sum(q * k for q, k in zip(query, key)).",
            "Divide each of them by len(query) ** 0.5, and give all of them to mg.softmax.",
        ),
        WEIGHTS,
        "The key that fits best gets most, and none gets nothing: so all of them can still learn.",
        (
            Mistake(
                "not divided",
                (" / len(query) ** 0.5", ""),
                "The dot products of longer vectors are larger. Divide by the root of their length before softmax.",
            ),
            Mistake(
                "divided by the length",
                ("len(query) ** 0.5", "len(query)"),
                "By the root of the length: a sum of n numbers of either sign grows like the root of n.",
            ),
            Mistake(
                "divided afterwards",
                (" / len(query) ** 0.5", "", "float(weight)", "float(weight) / len(query) ** 0.5"),
                "Divided after softmax, the weights do not add up to 1. Divide what goes into it.",
            ),
            Mistake(
                "no softmax",
                ("[float(weight) for weight in mg.softmax(fits)]", "fits"),
                "These are how well the keys fit. Softmax makes weights of them.",
            ),
            Mistake(
                "all to the best",
                (
                    "[float(weight) for weight in mg.softmax(fits)]",
                    "[float(i == fits.index(max(fits))) for i in range(len(fits))]",
                ),
                "All to the best is a hard choice. It has no slope, and nothing could be learned from it.",
            ),
        ),
    ),
    Exercise(
        "11.2",
        "A mixture",
        "Write mixed(weights, values): weights is a list of numbers, and values has a list of numbers for each weight, "
        "all of one length. Return a list of that length: at each index, the sum of the values' numbers, each times "
        "its weight.",
        Same(
            [
                ([1.0], [[5.0]]),
                ([0.25, 0.75], [[4.0, 8.0], [0.0, -4.0]]),
                ([0.5, 0.25, 0.25], [[1.0, 2.0], [3.0, -1.0], [5.0, 4.0]]),
                ([0.125, 0.875], [[8.0, 0.0, 16.0], [8.0, 1.0, -8.0]]),
            ]
        ),
        (
            "zip(*values) gives the columns: what all values have at the first place, at the second, ...",
            "For each column: sum(weight * number for weight, number in zip(weights, column)).",
        ),
        MIXED,
        "A mean in which some count more: that is all that a letter hears of the others.",
        (
            Mistake(
                "rows for columns",
                "def mixed(weights, values):\n"
                "    return [weight * sum(value) for weight, value in zip(weights, values)]",
                "This adds up each value by itself. Add what all of them have at the same place.",
            ),
            Mistake(
                "a plain mean",
                ("sum(weight * number", "sum(number / len(weights)"),
                "Here all of them count alike. Each number is multiplied by the weight of its value.",
            ),
            Mistake(
                "only the best",
                "def mixed(weights, values):\n    return values[weights.index(max(weights))]",
                "Only the value with the largest weight is heard. All of them are, each as much as its weight.",
            ),
            Mistake("no weights", ("weight * number", "number"), "Each number counts as much as its weight."),
            Mistake(
                "not added up",
                "def mixed(weights, values):\n"
                "    return [[weight * number for number in value] for weight, value in zip(weights, values)]",
                "Each value was multiplied by its weight. Now add them up, place by place, to one list.",
            ),
        ),
    ),
    Exercise(
        "11.3",
        "Who gets nothing?",
        "Three letters have queries q1, q2, q3, keys k1, k2, k3 and values v1, v2, v3, each a single number. The "
        "first letter takes v1, weighted by softmax over q1 * k1 alone. The second one takes v1 and v2, weighted by "
        "softmax over q2 * k1 and q2 * k2. f is the sum of what these two take. Which gradients of f are "
        'exactly zero, and why? "alone": it only decides between one. "later": f does not depend on it. Give a dict '
        'such as {"q1": "later"} with all that are zero.',
        Zeros(
            _taken_by_two,
            {
                "alone": "there are others in the same softmax, or it is in none, so this is not why",
                "later": "something in f was made from it, so this is not why",
            },
            {"q1": "alone", "q3": "later", "k3": "later", "v3": "later"},
        ),
        (
            "Softmax over one number gives 1, whatever that number is.",
            "What belongs to the third letter is used by the third letter only, and that is not in f.",
        ),
        '{"q1": "alone", "q3": "later", "k3": "later", "v3": "later"}',
        "k1 does get a gradient: not from the first letter, but from the second, which could have taken less of it.",
        (
            Mistake(
                "the first letter forgotten",
                '{"q3": "later", "k3": "later", "v3": "later"}',
                "Where there is one to choose from, its weight is 1. What does q1 change?",
            ),
            Mistake(
                "k1 as well",
                '{"q1": "alone", "k1": "alone", "q3": "later", "k3": "later", "v3": "later"}',
                "For the first letter k1 decides nothing, but the second one compares it with k2.",
            ),
            Mistake(
                "only the key and the value",
                '{"q1": "alone", "k3": "later", "v3": "later"}',
                "What the third letter asks is not in f either.",
            ),
            Mistake(
                "all for one reason",
                '{"q1": "later", "q3": "later", "k3": "later", "v3": "later"}',
                "q1 is in f: it is multiplied by k1. Why does it make no difference?",
            ),
            Mistake(
                "the first value",
                '{"q1": "alone", "v1": "alone", "q3": "later", "k3": "later", "v3": "later"}',
                "v1 is what is taken. Its weight is 1, and a larger v1 makes f larger.",
            ),
        ),
    ),
    Exercise(
        "11.4",
        "Ten layers deep",
        "Ten layers follow each other, each with a slope of 0.1. Without the way round, x becomes g(x), ten times. "
        "With it, x becomes x + g(x), ten times. How many times larger is the gradient at the very beginning with the "
        "way round than without it?",
        Number(digits=2),
        (
            "Along a chain, slopes are multiplied. What is the slope of x + g(x)?",
            "1.1 ten times, beside 0.1 ten times.",
        ),
        "1.1**10 / 0.1**10",
        "26 thousand million times: without the way round, the first layers would hear nothing.",
        (
            Mistake("one layer", "1.1 / 0.1", "That is one layer. There are ten, and slopes along a chain multiply."),
            Mistake("added up", "10 * 1.1 / 0.1", "Along a chain slopes are multiplied, not added."),
            Mistake("with it", "1.1**10", "That is the gradient with the way round. How large is it without?"),
            Mistake("without it", "0.1**10", "That is the gradient without the way round. How large is it with it?"),
            Mistake("only the way round", "1 / 0.1**10", "The layers are there, too: x + g(x) has a slope of 1.1."),
        ),
    ),
    Exercise(
        "11.5",
        "How many questions?",
        "A name of 9 letters has a dot before it, so 10 signs go in. Each asks itself and all before it. How many dot "
        "products of a query and a key are that?",
        Number(),
        ("The first sign asks 1, the second 2.", "1 + 2 + ... + 10"),
        "sum(range(1, 11))",
        "Twice as long a text has four times as many. That is what makes long texts expensive.",
        (
            Mistake("each asks all", "10.0 * 10", "Nobody asks those who come later."),
            Mistake("one each", "10.0", "Each sign has one query, and asks as many keys as there are so far."),
            Mistake("one left out", "sum(range(10))", "Each asks itself, too; and the dot is one of the ten."),
            Mistake("counted twice", "10.0 * 11", "That is twice as many: the half of them would look ahead."),
        ),
    ),
    Exercise(
        "11.6",
        "Temperature",
        "Write chances(scores, temperature): the softmax of the scores, each divided by temperature.",
        Same([([0.0, 1.0], 2.0), ([1.0, 2.0, 4.0], 0.5), ([3.0, -1.0, 0.5, 2.0], 4.0), ([1.0, 1.5, -2.0], 1.0)]),
        ("First divide, then softmax.", "mg.softmax([score / temperature for score in scores])"),
        CHANCES,
        "Near 0 it always takes the largest; far above 1 it throws a fair dice of 27 sides.",
        (
            Mistake(
                "multiplied",
                ("score / temperature", "score * temperature"),
                "This is the other way round: a high temperature makes the chances more alike.",
            ),
            Mistake(
                "divided afterwards",
                ("score / temperature", "score", "float(chance)", "float(chance) / temperature"),
                "Divided after softmax, they do not add up to 1.",
            ),
            Mistake(
                "no temperature",
                ("score / temperature", "score"),
                "The temperature makes no difference here. (What is taken away from all scores makes none, either.)",
            ),
            Mistake(
                "no softmax",
                ("mg.softmax([score / temperature for score in scores])", "[s / temperature for s in scores]"),
                "These are scores. Softmax makes chances of them.",
            ),
        ),
    ),
)
