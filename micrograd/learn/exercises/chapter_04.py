"""Chapter 4, Any function: exp, tanh, and why digits matter."""

from __future__ import annotations

from micrograd.learn.exercise import Exercise, Mistake
from micrograd.learn.kinds.engines import Operation
from micrograd.learn.kinds.functions import Same
from micrograd.learn.kinds.graphs import Checkpoints
from micrograd.learn.kinds.values import Choice

EXP = """
def exp(a):
    out = Value(math.exp(a.data), (a,), "exp")

    def _backward():
        a.grad += out.data * out.grad

    out._backward = _backward
    return out
"""
DIVIDE = """
def divide(a, b):
    out = Value(a.data / b.data, (a, b), "/")

    def _backward():
        a.grad += out.grad / b.data
        b.grad += -a.data / b.data**2 * out.grad

    out._backward = _backward
    return out
"""
FRACTION = """
def fraction(x, y):
    largest = max(abs(x), abs(y))
    x, y = x / largest, y / largest
    return x * x / (x * x + y * y)
"""
LOG_SUM_EXP = """
def log_sum_exp(numbers):
    largest = max(numbers)
    return largest + mg.log(sum(mg.exp(number - largest) for number in numbers))
"""


EXERCISES = (
    Exercise(
        "4.1",
        "exp by hand",
        "Write exp(a): a Value with the number math.exp(a.data) that remembers a, with a `_backward` as in chapter 3. "
        'Begin with out = Value(math.exp(a.data), (a,), "exp").',
        Operation("exp", ("add", "mul")),
        (
            "exp is its own derivative.",
            "The way back needs no second exp: out.data is it.",
            "a.grad += out.data * out.grad",
        ),
        EXP,
        "exp is the one function that is its own slope, so its result is all that has to be kept.",
        (
            Mistake("= for +=", ("a.grad +=", "a.grad ="), "a may be used elsewhere, too: write +=."),
            Mistake("without the chain", ("out.data * out.grad", "out.data"), "Multiply by out.grad."),
            Mistake("of the input", ("out.data *", "a.data *"), "The slope is exp(a), the result; not a, the input."),
            Mistake(
                "passed on",
                ("out.data * out.grad", "out.grad"),
                "The gradient went through unchanged, as through a sum. Multiply by the local derivative.",
            ),
        ),
    ),
    Exercise(
        "4.2",
        "A quotient by hand",
        "Write divide(a, b) in the same way, with two contributions in its `_backward`. It is also tried with "
        "divide(a, a): that is 1 for any a, so the two contributions must cancel.",
        Operation("div", ("add", "mul")),
        ("Nudge a: a / b moves 1 / b times as much.", "Nudge b: it moves -a / b**2 times as much."),
        DIVIDE,
        "For divide(a, a) the contributions are 1 / a and -1 / a. Their sum is 0, as it must be.",
        (
            Mistake("no minus", ("-a.data", "a.data"), "A larger divisor makes the quotient smaller."),
            Mistake("not squared", ("b.data**2", "b.data"), "The derivative of 1 / b is -1 / b**2."),
            Mistake(
                "= for +=",
                ("b.grad +=", "b.grad ="),
                "In divide(a, a) the second line wipes out the first. Write +=.",
            ),
            Mistake(
                "as a product",
                ("out.grad / b.data", "b.data * out.grad"),
                "a counts 1 / b times, not b times: this is the rule of a product.",
            ),
            Mistake(
                "a alone",
                ("        b.grad += -a.data / b.data**2 * out.grad\n", ""),
                "The divisor gets a contribution, too.",
            ),
        ),
    ),
    Exercise(
        "4.3",
        "The slope of softplus",
        "softplus(x) = log(1 + exp(x)) is a relu without a corner. Write slope(x), its derivative, with math.exp for a "
        "plain number.",
        Same([(0.0,), (2.0,), (-1.0,), (6.0,)]),
        ("A chain: log of u, where u = 1 + exp(x).", "1 / u times the slope of u, which is exp(x)."),
        "import math\n\ndef slope(x):\n    return 1 / (1 + math.exp(-x))",
        "exp(x) / (1 + exp(x)) is the sigmoid: the slope goes smoothly from 0 to 1.",
        (
            Mistake(
                "the outer alone",
                "def slope(x):\n    return 1 / (1 + math.exp(x))",
                "That is 1 / u. What is inside of the log moves with x, too.",
            ),
            Mistake("the inner alone", "def slope(x):\n    return math.exp(x)", "That is how u moves. And log(u)?"),
            Mistake(
                "the slope of relu",
                "def slope(x):\n    return 1.0 if x > 0 else 0.0",
                "That is the slope of relu. This one has no corner.",
            ),
            Mistake("softplus itself", "def slope(x):\n    return math.log(1 + math.exp(x))", "This is the function."),
        ),
    ),
    Exercise(
        "4.4",
        "Where is the NaN born?",
        "Take a = x * x, b = y * y, s = a + b, p = a / s, q = 1 - p, with x = 1e200 and y = 1. The result q is NaN. "
        'Which of "a", "b", "s", "p", "q" is the first that is NaN?',
        Choice("a", "b", "s", "p", "q"),
        ("Compute them one by one. A float goes up to about 1.8e308.", "What is infinity divided by infinity?"),
        '"p"',
        "Infinity by infinity can be anything, so it is NaN. mg.detect_anomaly() finds such a place by itself.",
        (
            Mistake(
                "where it overflows",
                '"a"',
                "1e400 is more than a float can hold: a is infinite. There the trouble begins, but inf is no NaN yet.",
            ),
            Mistake("the other square", '"b"', "b is 1."),
            Mistake("the sum", '"s"', "inf + 1 is inf. Only inf - inf, 0 * inf, inf / inf and 0 / 0 make a NaN."),
            Mistake("where it is seen", '"q"', "q is NaN because its operand is. Look further up."),
        ),
    ),
    Exercise(
        "4.5",
        "Mend it",
        "Write fraction(x, y), which returns x*x / (x*x + y*y) for floats and for Values. It must work for x or y as "
        "large as 1e200 or as small as 1e-200, with the same value and gradients.",
        Same(
            [
                (3.0, 4.0),
                (0.0, 2.0),
                (-3.0, 0.0),
                (-4.0, -3.0),
                (-1e200, 1.0),
                (1.0, 1e200),
                (1e200, 1e200),
                (1e-200, 1e-200),
            ],
            gradients=True,
        ),
        (
            "If x and y are both halved, the result stays. So you may divide both by any number.",
            "Divide by the larger one: then nothing is larger than 1.",
            "largest = max(abs(x), abs(y)), then x / largest and y / largest take their places.",
        ),
        FRACTION,
        "Scale by the largest, and nothing overflows. The same trick is inside of hypot and softmax.",
        (
            Mistake(
                "as it stands",
                "def fraction(x, y):\n    return x * x / (x * x + y * y)",
                "1e200 * 1e200 is infinite, 1e-200 * 1e-200 is 0: scale first.",
            ),
            Mistake(
                "scaled by x",
                "def fraction(x, y):\n    ratio = y / x\n    return 1 / (1 + ratio * ratio)",
                "Where x is 0 there is no y / x. Divide both by the larger one of the two.",
            ),
            Mistake(
                "cut off",
                "def fraction(x, y):\n    x, y = mg.clip(x, -1e100, 1e100), mg.clip(y, -1e100, 1e100)\n"
                "    return x * x / (x * x + y * y)",
                "Cutting off hides the overflow of large numbers; small ones still make 0 / 0.",
            ),
            Mistake(
                "something added",
                "def fraction(x, y):\n    largest = max(abs(x), abs(y))\n"
                "    x, y = x / largest, y / largest\n    return x * x / (x * x + y * y + 0.001)",
                "A small number in the divisor hides 0 / 0, but it changes every value.",
            ),
        ),
    ),
    Exercise(
        "4.6",
        "log-sum-exp",
        "Write log_sum_exp(numbers): the log of the sum of exp of each, for a list of floats or Values of any size. A "
        "float cannot hold exp(1000), but it can hold the result: for [1000.0, 1000.0] it is 1000.69. Use mg.exp and "
        "mg.log.",
        Same(
            [
                ([1.0, 2.0],),
                ([1000.0, 1000.0],),
                ([-1000.0, -1001.0],),
                ([-800.0, 800.0],),
                ([0.0, 1000.0, -2000.0],),
                ([700.0, -1500.0],),
                ([-2000.0, -1000.0],),
            ],
            gradients=True,
        ),
        (
            "exp(x + c) is exp(x) * exp(c): a number may be taken out of all of them.",
            "Take out the largest: then every exponent is at most 0.",
            "largest + mg.log(sum(mg.exp(number - largest) for number in numbers))",
        ),
        LOG_SUM_EXP,
        "The exponents are at most 0, and one is exactly 0: nothing overflows, and the log never meets 0.",
        (
            Mistake(
                "as it stands",
                "def log_sum_exp(numbers):\n    return mg.log(sum(mg.exp(x) for x in numbers))",
                "Take the largest out of every exponent first.",
            ),
            Mistake(
                "not put back",
                ("largest + mg", "mg"),
                "What was taken out of the exponents must be added to the log.",
            ),
            Mistake(
                "the smallest",
                ("max(", "min("),
                "With the smallest taken out, the others are still large. Take out the largest.",
            ),
            Mistake(
                "log of each",
                "def log_sum_exp(numbers):\n    return sum(mg.log(mg.exp(x / 1)) for x in numbers)",
                "The log of a sum is not the sum of the logs.",
            ),
            Mistake(
                "the largest alone",
                "def log_sum_exp(numbers):\n    return max(numbers) + 0.0",
                "Near, where one number is much larger than the rest. But the others count.",
            ),
        ),
    ),
    Exercise(
        "4.7",
        "Keep it, or compute it again?",
        "The backward pass needs the results of the forward pass. A chain has results 1 to 16, and the backward pass "
        "needs them from 16 down to 1. There is memory for 7 at any moment, so you cannot keep all. A result that you "
        "did not keep is computed again, from the nearest kept one before it (the input, 0, is always there). That "
        "whole stretch is held until the backward pass has gone through it. At most 13 may be computed again. Which "
        "do you keep? Give a list of numbers.",
        Checkpoints(16, memory=7, again=13),
        (
            "Keep a few, evenly spread: the stretches between them are short then.",
            "With 3 kept, the stretches are 4 long: 3 + 4 are held at the worst moment.",
        ),
        "[4, 8, 12]",
        "About the square root of the length: a chain of a million needs room for two thousand.",
        (
            Mistake("all", "list(range(1, 17))", "Nothing is computed again, but there is no room for 16."),
            Mistake("none", "[]", "Then all 16 are computed again, and held at once."),
            Mistake("too few", "[5, 11]", "The stretches are short enough for the room, but one more helps."),
            Mistake("the first ones", "[1, 2, 3]", "After 3 comes a stretch of 13. Spread them evenly."),
        ),
    ),
)
