"""A character-level transformer in scalars: one layer, 16 wide, 4 heads, 4,192 parameters.

Its loss for one six-letter word, with a start and an end token: seven next-letter predictions. Words
are read a letter at a time, the keys and values of earlier letters kept. RMS norms without weights,
no biases, a ReLU layer four times as wide, output weights apart from the embeddings.
"""

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

TITLE = "transformer, one training step on a six-letter word"
LETTERS, WIDTH, HEADS, LONGEST = 27, 16, 4, 16
END = LETTERS - 1  # stands before the word, too
WORD = [18, 14, 15, 7, 8, 0]
SHAPES = {
    "letter": (LETTERS, WIDTH),
    "position": (LONGEST, WIDTH),
    "output": (LETTERS, WIDTH),
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "mix": (WIDTH, WIDTH),
    "widen": (4 * WIDTH, WIDTH),
    "narrow": (WIDTH, 4 * WIDTH),
}


def parameters(leaf: Callable[[float], Any]) -> dict[str, list[list[Any]]]:
    """The weight matrices by name, the same numbers each time."""
    rng = random.Random(42)
    return {
        name: [[leaf(rng.gauss(0.0, 0.08)) for _ in range(columns)] for _ in range(rows)]
        for name, (rows, columns) in SHAPES.items()
    }


def loss(weights: dict[str, list[list[Any]]], leaf: Callable[[float], Any]) -> Any:
    """The mean negative log likelihood of the word's letters and of its end."""
    tokens = [END, *WORD, END]
    keys: list[list[Any]] = []
    values: list[list[Any]] = []
    losses = []
    for position, (token, following) in enumerate(pairwise(tokens)):
        x = normalised(added(weights["letter"][token], weights["position"][position]))
        x = added(x, attention(normalised(x), weights, keys, values))
        wide = [h.relu() for h in linear(normalised(x), weights["widen"])]
        x = added(x, linear(wide, weights["narrow"]))
        losses.append(-softmax(linear(x, weights["output"]))[following].log())
    return sum(losses) / len(losses)


def attention(x: list[Any], weights: dict[str, list[list[Any]]], keys: list[Any], values: list[Any]) -> list[Any]:
    """What the letter x takes from itself and the letters before it; its key and value are appended."""
    query = linear(x, weights["query"])
    keys.append(linear(x, weights["key"]))
    values.append(linear(x, weights["value"]))
    taken = []
    size = WIDTH // HEADS
    for start in range(0, WIDTH, size):
        head = slice(start, start + size)
        shares = softmax([dot(query[head], key[head]) / size**0.5 for key in keys])
        taken += [dot(shares, column) for column in zip(*(value[head] for value in values), strict=True)]
    return linear(taken, weights["mix"])


def linear(x: list[Any], matrix: list[list[Any]]) -> list[Any]:
    return [dot(row, x) for row in matrix]


def dot(xs: Any, ys: Any) -> Any:
    return sum(x * y for x, y in zip(xs, ys, strict=True))


def added(xs: list[Any], ys: list[Any]) -> list[Any]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def softmax(xs: list[Any]) -> list[Any]:
    """Positive shares that sum to 1."""
    largest = max(x.data for x in xs)
    powers = [(x - largest).exp() for x in xs]
    total = sum(powers)
    return [power / total for power in powers]


def normalised(xs: list[Any]) -> list[Any]:
    """The elements divided by their root mean square."""
    scale = (dot(xs, xs) / len(xs) + 1e-5) ** -0.5
    return [x * scale for x in xs]
