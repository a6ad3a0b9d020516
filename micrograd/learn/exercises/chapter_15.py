"""Chapter 15, By heart: overfitting, and four ways against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.values import Choice, Number

if TYPE_CHECKING:
    import random

SPLIT = """
def split(rows, every):
    return [[row for place, row in enumerate(rows) if place % every], rows[::every]]
"""
DECAYED = """
def decayed(loss, weights, amount):
    return loss + amount * sum(weight**2 for weight in weights)
"""
DROPOUT = """
def dropout(numbers, kept, rate):
    return [number * keep / (1 - rate) for number, keep in zip(numbers, kept)]
"""
BEST = """
def best(losses, patience):
    place = 0
    for epoch, loss in enumerate(losses):
        if loss < losses[place]:
            place = epoch
        elif epoch - place >= patience:
            break
    return place
"""


def _rows(source: random.Random) -> tuple[list[float], int]:
    rows = [float(source.randint(-4, 4)) for _ in range(source.randint(6, 12))]  # some are there twice
    return rows, source.randint(2, 5)


def _kept(source: random.Random) -> tuple[list[float], list[int], float]:
    count = source.randint(2, 6)
    numbers = [round(source.uniform(-3, 3), 2) for _ in range(count)]
    return numbers, [1, 0, *source.choices([0, 1], k=count - 2)], round(source.uniform(0.1, 0.9), 2)


def _losses(source: random.Random) -> tuple[list[float], int]:
    """Few different ones, so that some are the same, and the smallest often comes after the end."""
    return [source.randint(1, 8) / 8 for _ in range(source.randint(3, 12))], source.randint(1, 4)


def _priced(source: random.Random) -> tuple[float, list[float], float]:
    weights = [round(source.uniform(-3, 3), 2) for _ in range(source.randint(1, 5))]
    return round(source.uniform(0, 5), 2), weights, round(source.uniform(0.01, 2), 3)


EXERCISES = (
    Exercise(
        "15.1",
        "Every second row",
        "Write split(rows, every). The rows at the indices 0, every, 2 * every, ... are set aside, and all others are "
        "for training. Return [training, aside], both in order.",
        Same(
            [([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2), ([5.0, 3.0, 4.0, 1.0, 2.0], 3), ([1.5, 2.5, 3.5], 4)],
            draw=_rows,
        ),
        (
            "rows[::every] are the ones that are set aside.",
            "A row at a place is for training if place % every is not 0.",
        ),
        SPLIT,
        "No row is in both, and none is lost. And both parts come from all over the table.",
        (
            Mistake(
                "trained on all",
                "def split(rows, every):\n    return [rows, rows[::every]]",
                "What is set aside must not be trained on. Then it would say nothing.",
            ),
            Mistake(
                "the other way round",
                "def split(rows, every):\n    return [rows[::every], [r for i, r in enumerate(rows) if i % every]]",
                "Training comes first: it gets all rows but each every-th one.",
            ),
            Mistake(
                "from the end",
                "def split(rows, every):\n    size = len(rows) // every\n"
                "    return [rows[: len(rows) - size], rows[len(rows) - size :]]",
                "The last rows may be of another sort than the first. Take them from all over the table.",
            ),
            Mistake(
                "counted from 1",
                "def split(rows, every):\n    return [[r for i, r in enumerate(rows) if (i + 1) % every], "
                "rows[every - 1 :: every]]",
                "Places begin at 0, and the row at 0 is set aside.",
            ),
            Mistake(
                "one row for one",
                "def split(rows, every):\n    return [rows[1::every], rows[::every]]",
                "With 2 this is right. With 3, a third of the rows is in neither list.",
            ),
        ),
    ),
    Exercise(
        "15.2",
        "A price on weights",
        "Write decayed(loss, weights, amount): the loss, plus amount times the sum of the squares of the weights. It "
        "is also called with Values.",
        Same(
            [(2.0, [3.0, -1.0], 0.5), (0.0, [1.0, 2.0, -2.0], 0.1), (5.0, [0.0], 1.0), (1.0, [-0.5], 0.25)],
            draw=_priced,
            gradients=True,
        ),
        (
            "sum(weight**2 for weight in weights) is what to pay for.",
            "Compute with the Values themselves, so that the gradient goes back into the weights.",
        ),
        DECAYED,
        "Its slope for a weight is 2 * amount * weight: the larger a weight, the harder it is pulled back.",
        (
            Mistake(
                "signs cancel",
                ("weight**2", "weight"),
                "Without the square, a negative weight makes the loss smaller, and nothing holds it.",
            ),
            Mistake(
                "sizes",
                ("weight**2", "abs(weight)"),
                "This is a price, too, on sizes (it makes many weights exactly 0). Squares are asked for.",
            ),
            Mistake(
                "a reward",
                ("loss + amount", "loss - amount"),
                "Subtracted, it is a reward: the larger the weights, the smaller the loss.",
            ),
            Mistake(
                "the mean",
                ("for weight in weights)", "for weight in weights) / len(weights)"),
                "The sum is asked for: each weight has its price, however many there are.",
            ),
            Mistake(
                "the square of the sum",
                ("sum(weight**2 for weight in weights)", "sum(weights) ** 2"),
                "Square each weight, then add. Otherwise weights of both signs cancel.",
            ),
            Mistake("the price alone", ("loss + ", ""), "The price comes on top of the loss."),
        ),
    ),
    Exercise(
        "15.3",
        "A little smaller",
        "The loss is 0.05 * w**2, and nothing else. The rate is 0.1. By which factor does one step of gradient descent "
        "multiply w?",
        Number(),
        ("The slope is 2 * 0.05 * w.", "w - 0.1 * 0.1 * w: how much is left of w?"),
        "1 - 0.1 * 2 * 0.05",
        "After a hundred steps a third is left. A weight that the data does not hold fades away.",
        (
            Mistake("the slope of a square", "1 - 0.1 * 0.05", "The slope of 0.05 * w**2 is 2 * 0.05 * w."),
            Mistake("what goes", "0.01", "That is how much w loses. How much is left?"),
            Mistake("uphill", "1.01", "The step goes against the slope: w becomes smaller."),
            Mistake("without the rate", "0.9", "The step is the rate times the slope."),
        ),
    ),
    Exercise(
        "15.4",
        "Some by chance",
        "Write dropout(numbers, kept, rate): kept has a 1 for each number that is kept, and a 0 for each that is "
        "dropped. Dropped ones become 0. Kept ones are divided by the fraction that is kept on average, 1 - rate.",
        Same(
            [
                ([1.0, 2.0, -3.0], [1, 0, 1], 0.5),
                ([4.0, 6.0], [0, 1], 0.2),
                ([2.0], [1], 0.75),
                ([1.0, 1.0], [0, 0], 0.5),
                ([5.0, -1.0], [1, 1], 0.0),
            ],
            draw=_kept,
        ),
        (
            "number * keep is the number itself, or 0.",
            "Of those that are kept, each is divided by 1 - rate: with a rate of 0.5, it is doubled.",
        ),
        DROPOUT,
        "On average, each number is what it was. So nothing has to be changed when all of them are on.",
        (
            Mistake(
                "not scaled",
                (" / (1 - rate)", ""),
                "Then the sum is larger when all are on than it was in training. Divide by 1 - rate.",
            ),
            Mistake(
                "divided by the rate",
                ("/ (1 - rate)", "/ (rate or 1.0)"),
                "The rate is the fraction that is dropped. The fraction that is kept is 1 - rate.",
            ),
            Mistake("scaled down", ("/ (1 - rate)", "* (1 - rate)"), "Few are on, so those have to be larger: divide."),
            Mistake(
                "left out",
                "def dropout(numbers, kept, rate):\n"
                "    return [number / (1 - rate) for number, keep in zip(numbers, kept) if keep]",
                "Dropped ones become 0, and keep their places.",
            ),
            Mistake(
                "by what was kept",
                "def dropout(numbers, kept, rate):\n    fraction = sum(kept) / len(kept) or 1.0\n"
                "    return [number * keep / fraction for number, keep in zip(numbers, kept)]",
                "Divide by the fraction that is kept on average, 1 - rate, and not by that of this one draw.",
            ),
            Mistake("the dropped ones", ("number * keep", "number * (1 - keep)"), "A 1 means that the number is kept."),
        ),
    ),
    Exercise(
        "15.5",
        "Patience",
        "Write best(losses, patience): losses are those of the validation rows, epoch by epoch. Training stops after "
        "patience epochs without a loss below the smallest so far. Return the index of the smallest loss up to then; "
        "of equal ones, the first.",
        Same(
            [
                ([5.0, 3.0, 4.0, 2.0, 2.5, 2.6, 1.0], 2),
                ([3.0, 2.0, 1.0], 1),
                ([2.0, 2.0, 2.0, 1.0], 3),
                ([2.0, 3.0, 3.0, 1.0], 2),
                ([4.0, 2.0, 2.0, 3.0], 5),
                ([2.0, 3.0, 1.0, 2.0, 0.5], 2),
                ([2.0, 3.0, 3.0, 3.0, 3.0, 1.0], 2),
                ([4.0, 2.0, 3.0, 2.5, 2.25, 1.0], 2),
                ([1.0, 2.0], 4),
            ],
            draw=_losses,
        ),
        (
            "Go through the losses one by one, and remember the place of the smallest.",
            "Stop where the place now minus that of the smallest is patience, and this loss is no smaller.",
        ),
        BEST,
        "mg.fit(..., validation=, patience=) does this, and puts the weights of that epoch back.",
        (
            Mistake(
                "no end",
                "def best(losses, patience):\n    return losses.index(min(losses))",
                "What comes after the end of the training is not seen.",
            ),
            Mistake(
                "where it stopped",
                ("    return place", "    return epoch"),
                "The place of the best loss is asked for, and not the one at which the training stops.",
            ),
            Mistake(
                "one too patient",
                ("epoch - place >= patience", "epoch - place > patience"),
                "With a patience of 1 it stops at the first epoch that is no better.",
            ),
            Mistake(
                "the same is better",
                ("loss < losses[place]", "loss <= losses[place]"),
                "A loss that is only as small as the best one is no progress: the first one counts.",
            ),
            Mistake(
                "compared with the one before",
                "def best(losses, patience):\n    bad = 0\n    for epoch in range(1, len(losses)):\n"
                "        bad = bad + 1 if losses[epoch] >= losses[epoch - 1] else 0\n"
                "        if bad >= patience:\n            return losses.index(min(losses[: epoch + 1]))\n"
                "    return losses.index(min(losses))",
                "Compare with the smallest so far, and not with the one before: it may fall and still be worse.",
            ),
            Mistake("counted from 1", ("return place", "return place + 1"), "Places begin at 0."),
        ),
    ),
    Exercise(
        "15.6",
        "Is it honest?",
        "You have tried twenty amounts of decay, and take the one with the smallest loss on the rows that were set "
        'aside. You tell your friends this loss. What is it, as a promise for new rows? "too good", "too bad", '
        '"just right", or "nobody knows".',
        Choice("too good", "too bad", "just right", "nobody knows"),
        (
            "Of twenty runners who are equally fast, one wins. Is the time of the winner that of the next run?",
            "The smallest of twenty losses is small by merit, and by luck. What is left of the luck on new rows?",
        ),
        '"too good"',
        "Choosing is a little training. Whoever is in earnest sets rows aside twice, and opens the second lot once.",
        (
            Mistake(
                "not trained on",
                '"just right"',
                "No weight was trained on them, but the decay was chosen by them. The smallest of twenty has luck.",
            ),
            Mistake("the wrong way", '"too bad"', "You took the smallest of twenty. Luck has helped it, not hurt it."),
            Mistake(
                "no idea",
                '"nobody knows"',
                "For one choice nobody can. But the smallest of twenty is too small on average, and that can be said.",
            ),
        ),
    ),
)
