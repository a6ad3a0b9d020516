"""Fuzz the reader of expressions: only ExpressionError ever comes out, soon, and with little memory.

    python -m tests.campaigns.parser             # 100,000 inputs
    python -m tests.campaigns.parser 1000000 7   # so many, from another seed

Half the inputs are Hypothesis's text, of any characters and of those an expression has; half are valid
expressions with some of their characters deleted, doubled, moved, replaced or repeated thousands of times.
"""

import random
import sys
import time
import tracemalloc
from collections import Counter

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from micrograd import Value
from micrograd.command.grammar import LONGEST, ExpressionError, ParsedExpression, functions

SECONDS = 2.0  # for one input, also while tracing memory on a busy machine; most take less than a millisecond
BYTES = 30_000_000
PIECES = [
    *functions(), *"xyz+-*/%@&|^~<>=!,.:;()[]{}'\"\\#_ \t\n\r\f\0", "**", "//", "==", ":=", "->", "...", "0x", "1e",
    "1j", "lambda", "if", "else", "for", "in", "is", "not", "and", "or", "await", "yield", "None", "True", "import",
    "f'{x}'", "__class__", "__import__('os')", "x.data", "9" * 30, "1e308", "1e-320", "é", "\U0001d431",
    "\ufb01", "\u200b", "\u2028", "\ud800", "\ufeff", "🎉", "٣", "²",
]  # fmt: skip


def expression(chance, depth):
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(["x", "y", "z", "2", "0.5", "1e3", "7", "0", "1e-300"])
    part = lambda: expression(chance, depth - 1)  # noqa: E731  # it is called twice on each of the lines below
    return chance.choice(
        [
            lambda: f"{part()} {chance.choice(['+', '-', '*', '/', '**'])} {part()}",
            lambda: f"({part()})",
            lambda: f"-{part()}",
            lambda: f"{chance.choice([name for name, (count, _) in functions().items() if count == 1])}({part()})",
            lambda: f"maximum({part()}, {part()})",
        ]
    )()


def mutated(chance):
    """A valid expression with up to five faults in it; without any one time in six."""
    text = expression(chance, chance.randrange(1, 6))
    for _ in range(chance.randrange(6)):
        start, end = sorted(chance.randrange(len(text) + 1) for _ in range(2))
        piece = chance.choice([chance.choice(PIECES), text[start:end], chr(chance.randrange(0x110000))])
        match chance.randrange(5):
            case 0:
                text = text[:start] + text[end:]
            case 1:
                text = text[:start] + piece + text[start:]
            case 2:
                text = text[:start] + piece + text[end:]
            case 3:
                text = text[end:] + text[start:end] + text[:start]
            case 4:
                times = chance.choice([2, 50, 5_000])
                text = text[:start] + piece * min(times, LONGEST // max(len(piece), 1)) + text[end:]
    return text


texts = st.text() | st.text("xyz0123456789.+-*/()e sinlog,=[]'\"\n", max_size=60)
mutants = st.integers(0, 2**64 - 1).map(lambda number: mutated(random.Random(number)))


def outcome(text):
    """What reading and computing a text comes to; anything but a Value and an ExpressionError goes through."""
    names = {name: Value(number, label=name) for name, number in (("x", 0.5), ("y", -2.0), ("z", 0.0))}
    tracemalloc.start()
    start = time.process_time()
    try:
        result = ParsedExpression(text)(names)
    except ExpressionError:
        return "refused"
    else:
        assert isinstance(result, Value)
        return "computed"
    finally:
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert seconds < SECONDS, f"{seconds:.2f} s for {text!r:.200}"
        assert peak < BYTES, f"{peak} bytes for {text!r:.200}"
        outcome.slowest, outcome.largest = max(outcome.slowest, seconds), max(outcome.largest, peak)


outcome.slowest, outcome.largest = 0.0, 0


def read(inputs, strategy, start):
    """Give the reader so many inputs, and count what they came to."""
    results = Counter()

    @seed(start)
    @settings(
        max_examples=inputs,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def read_one(text):
        results[outcome(text)] += 1

    read_one()
    return results


def main(inputs="100000", start="1"):
    """Run the campaign and print its figures; an input that breaks the promise ends it with a traceback."""
    for kind, strategy in (("text", texts), ("mutated", mutants)):
        counts = read(int(inputs) // 2, strategy, int(start))
        computed, refused = counts["computed"], counts["refused"]
        sys.stdout.write(f"{kind}: {computed + refused:,} inputs, {computed:,} computed, {refused:,} refused\n")
    sys.stdout.write(f"the slowest took {outcome.slowest:.3f} s, the largest {outcome.largest / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
