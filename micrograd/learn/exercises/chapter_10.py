"""Chapter 10, Letters: from counting pairs to a network that writes names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Number

if TYPE_CHECKING:
    import random

COUNTS = """
def counts(names, letters):
    table = [[0] * len(letters) for _ in letters]
    for name in names:
        for one, after in zip("." + name, name + "."):
            table[letters.index(one)][letters.index(after)] += 1
    return table
"""
CHANCES = """
def chances(counts, extra):
    total = sum(counts) + extra * len(counts)
    return [(count + extra) / total for count in counts]
"""
DRAW = """
def draw(chances, number):
    total = 0.0
    for place, chance in enumerate(chances):
        total += chance
        if total > number:
            return place
"""
EXAMPLES = """
def examples(signs, size):
    before, made = [0] * size, []
    for sign in [*signs, 0]:
        made.append([*before, sign])
        before = [*before[1:], sign]
    return made
"""


def _names(source: random.Random) -> tuple[list[str], str]:
    return ["".join(source.choices("abc", k=source.randint(1, 5))) for _ in range(source.randint(1, 4))], ".abc"


EXERCISES = (
    Exercise(
        "10.1",
        "Which after which?",
        'Write counts(names, letters): a table, as a list of rows. letters is a string such as ".abc". The number in '
        "row i and column j says how often letters[i] is followed by letters[j]. A dot stands before each name, and "
        "after it.",
        Same(
            [(["ab", "b"], ".ab"), (["aab", "ba", "aab"], ".ab"), (["cab"], ".abc"), (["a"], ".a"), (["baaa"], ".ab")],
            draw=_names,
        ),
        (
            'zip("." + name, name + ".") gives each pair of neighbours in a name.',
            "table[letters.index(one)][letters.index(after)] += 1, for each pair.",
        ),
        COUNTS,
        "The first row says how names begin, and the first column how they end.",
        (
            Mistake(
                "no dots",
                ('zip("." + name, name + ".")', "zip(name, name[1:])"),
                "How names begin and end is missing: a dot stands before each name and after it.",
            ),
            Mistake("no end", ('name + "."', "name"), "A name ends, too: the last letter before a dot."),
            Mistake(
                "no beginning",
                ('zip("." + name, name + ".")', 'zip(name, name[1:] + ".")'),
                "A name begins, too: a dot before the first letter.",
            ),
            Mistake(
                "turned",
                ("[letters.index(one)][letters.index(after)]", "[letters.index(after)][letters.index(one)]"),
                "The row is the letter that comes first, and the column the one after it.",
            ),
            Mistake("at most once", ("+= 1", "= 1"), "The same pair may come again: count it."),
            Mistake(
                "one long text",
                ("in names:", 'in ["".join(names)]:'),
                "The last letter of a name and the first of the next are no pair: between them is a dot.",
            ),
        ),
    ),
    Exercise(
        "10.2",
        "From counts to chances",
        "Write chances(counts, extra): counts is a row of such a table. Add extra to each count, and divide each by "
        "the sum of all, so that they add up to 1.",
        Same(
            [([3, 1], 0), ([3, 1, 0], 1), ([0, 0, 0, 0], 1), ([5, 2, 0, 1], 2)],
            draw=lambda source: (source.choices(range(9), k=source.randint(1, 6)), source.randint(1, 4)),
        ),
        ("What is the sum, after extra was added to each of them?", "sum(counts) + extra * len(counts)"),
        CHANCES,
        "With an extra above 0 nothing is impossible, only rare.",
        (
            Mistake(
                "the old sum",
                (" + extra * len(counts)", " or 1"),
                "These do not add up to 1: the extras belong into the sum, too.",
            ),
            Mistake(
                "one extra in the sum",
                ("extra * len(counts)", "extra"),
                "Each count has got an extra, so the sum has grown by as many.",
            ),
            Mistake(
                "nothing extra",
                "def chances(counts, extra):\n    return [count / (sum(counts) or 1) for count in counts]",
                "A letter that was never seen here has a chance of 0 now: add extra to each count.",
            ),
            Mistake(
                "beside the largest",
                ("total = sum(counts) + extra * len(counts)", "total = max(counts) + extra"),
                "Divided by the largest, they do not add up to 1.",
            ),
            Mistake(
                "softmax",
                "import math\ndef chances(counts, extra):\n"
                "    total = sum(math.exp(count + extra) for count in counts)\n"
                "    return [math.exp(count + extra) / total for count in counts]",
                "Counts are positive already. Divide them by their sum, without exp.",
            ),
        ),
    ),
    Exercise(
        "10.3",
        "Throw the dice",
        "Write draw(chances, number): number is at least 0, and below 1. Add up the chances from the left, and return "
        "the first index at which the sum is greater than number.",
        Same(
            [
                ([0.5, 0.25, 0.25], 0.625),
                ([0.25, 0.25, 0.5], 0.875),
                ([0.0, 1.0], 0.0),
                ([0.25, 0.75], 0.25),
                ([0.125, 0.125, 0.5, 0.25], 0.5),
                ([0.75, 0.25], 0.625),
                ([0.125, 0.875], 0.375),
            ]
        ),
        ("Keep a running sum: total += chance.", "Return the place as soon as total > number."),
        DRAW,
        "A chance of a half gets half of all numbers, so it is drawn half of the time.",
        (
            Mistake(
                "always the likeliest",
                "def draw(chances, number):\n    return chances.index(max(chances))",
                "This draws the same letter every time, whatever the number is.",
            ),
            Mistake(
                "no running sum",
                "def draw(chances, number):\n    for place, chance in enumerate(chances):\n"
                "        if chance > number:\n            return place\n    return place",
                "Compare the sum so far with the number, and not one chance alone.",
            ),
            Mistake(
                "one too late",
                ("return place", "return place + 1"),
                "Places begin at 0, as everywhere in Python.",
            ),
            Mistake(
                "the impossible",
                ("total > number", "total >= number"),
                "Greater than, or a chance of 0 is drawn when the number is 0.",
            ),
            Mistake(
                "all alike",
                "def draw(chances, number):\n    return int(number * len(chances))",
                "Here all places are equally likely. A large chance must get more of the numbers.",
            ),
        ),
    ),
    Exercise(
        "10.4",
        "Knowing nothing",
        "A program that knows nothing gives each of 27 signs the same chance. What is its loss for a letter, the minus "
        "log of the chance of the right one?",
        Number(digits=3),
        ("Each chance is 1 / 27.", "-log(1 / 27) is log(27)."),
        "math.log(27)",
        "Whoever is below this has learned something.",
        (
            Mistake("the chance", "1 / 27", "That is the chance. The loss is minus its log."),
            Mistake("without the minus", "math.log(1 / 27)", "Minus the log: a loss is above 0."),
            Mistake("the count", "27.0", "That is how many there are. The loss is the log of it."),
            Mistake("in bits", "math.log2(27)", "That is the log to the base 2. Here log is the natural one."),
        ),
    ),
    Exercise(
        "10.5",
        "The letters before",
        "Write examples(signs, size): signs is a name as numbers, such as [1, 14, 14]. For each of its numbers, and "
        "for the 0 that ends it, return a list. It has the size numbers before it, in order, and then the number "
        "itself. Before the name there are only zeros.",
        Same(
            [([1, 14, 14], 3), ([1, 2, 3, 4, 5], 2), ([7], 1), ([5, 6], 4)],
            draw=lambda source: (source.choices(range(1, 27), k=source.randint(1, 7)), source.randint(1, 5)),
        ),
        (
            "Begin with before = [0] * size. After each number, drop its first and append the number.",
            "before = [*before[1:], sign]",
        ),
        EXAMPLES,
        "A name of n letters makes n + 1 examples, each of the same size.",
        (
            Mistake("no end", ("[*signs, 0]", "signs"), "That a name ends here must be learned, too: the 0."),
            Mistake(
                "no zeros before",
                "def examples(signs, size):\n    signs = [*signs, 0]\n"
                "    return [signs[i : i + size + 1] for i in range(len(signs) - size)]",
                "How a name begins is missing: before its first number there are zeros.",
            ),
            Mistake(
                "turned around",
                ("[*before[1:], sign]", "[sign, *before[:-1]]"),
                "In order: the number that came last stands last.",
            ),
            Mistake(
                "always the beginning",
                ("        before = [*before[1:], sign]\n", ""),
                "What stands before moves along with the name.",
            ),
            Mistake(
                "it sees the answer",
                ("[*before, sign]", "[*before[1:], sign, sign]"),
                "The number that is to be guessed stands among those before it. That is cheating.",
            ),
        ),
    ),
    Exercise(
        "10.6",
        "Logs as scores",
        "Three scores are the logs of 0.5, 0.25 and 0.25, each plus 7. Which chance does softmax give to the first?",
        Number(),
        ("What is exp(log(0.5) + 7)?", "It is 0.5 * exp(7). What does the division by the sum do to exp(7)?"),
        "0.5",
        "Softmax undoes the log, and what is added to all of them cancels.",
        (
            Mistake("the score", "math.log(0.5) + 7", "That is the score. Softmax makes a chance of it."),
            Mistake("not divided", "0.5 * math.exp(7)", "That is exp of the score: divide by the sum of all three."),
            Mistake("all alike", "1 / 3", "The scores are not the same, so the chances are not either."),
            Mistake(
                "without exp",
                "(math.log(0.5) + 7) / (math.log(0.5) + 2 * math.log(0.25) + 21)",
                "Softmax takes exp of each score before it divides by the sum.",
            ),
        ),
    ),
)
