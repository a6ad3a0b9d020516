"""A character-level transformer: the one of the benchmark for one word and for several, and a larger one.

Words are read a letter at a time, the keys and values of earlier letters kept. RMS norms without weights, no biases, a
ReLU layer four times as wide, output weights apart from the embeddings. The loss is the mean negative log likelihood of
the letters that follow.
"""

import itertools
import random
from functools import partial
from typing import Any, NamedTuple

import micrograd as mg
from programs.program import Numbers, Program

LETTERS = 27
END = LETTERS - 1  # stands before the word, too


class Shape(NamedTuple):
    layers: int
    width: int
    heads: int
    positions: int


SMALL = Shape(layers=1, width=16, heads=4, positions=16)
LARGE = Shape(layers=2, width=64, heads=4, positions=64)


def data(shape: Shape, words: int, length: int) -> tuple[Numbers, Numbers]:
    """Weights, and for each word its tokens with the end before and behind them."""
    rng = random.Random(42)
    width = shape.width

    def matrix(rows: int, columns: int) -> list[list[float]]:
        return [[rng.gauss(0.0, 0.08) for _ in range(columns)] for _ in range(rows)]

    parameters = {name: matrix(rows, width) for name, rows in (("letter", LETTERS), ("position", shape.positions))}
    for layer in range(shape.layers):
        parameters |= {f"{name} {layer}": matrix(width, width) for name in ("query", "key", "value", "mix")}
        parameters |= {f"widen {layer}": matrix(4 * width, width), f"narrow {layer}": matrix(width, 4 * width)}
    parameters["output"] = matrix(LETTERS, width)
    tokens = [[END, *(rng.randrange(END) for _ in range(length)), END] for _ in range(words)]
    return parameters, {"words": tokens}


def scalars(shape: Shape, w: Numbers, given: Numbers) -> Any:
    """The mean of the losses of the words."""
    return mg.mean([loss_of_word(shape, w, word) for word in given["words"]])


def loss_of_word(shape: Shape, w: Numbers, tokens: list[Any]) -> Any:
    """The mean negative log likelihood of a word's letters and of its end."""
    layers = range(shape.layers)
    keys: list[list[Any]] = [[] for _ in layers]
    values: list[list[Any]] = [[] for _ in layers]
    losses = []
    for position, (token, following) in enumerate(itertools.pairwise(tokens)):
        x = normalised(added(mg.take(w["letter"], token), w["position"][position]))
        for layer in layers:
            matrices = {name: w[f"{name} {layer}"] for name in ("query", "key", "value", "mix", "widen", "narrow")}
            x = added(x, attention(shape.heads, normalised(x), matrices, keys[layer], values[layer]))
            wide = [mg.relu(h) for h in linear(normalised(x), matrices["widen"])]
            x = added(x, linear(wide, matrices["narrow"]))
        losses.append(mg.losses.cross_entropy(linear(x, w["output"]), following))
    return mg.mean(losses)


def attention(heads: int, x: list[Any], w: Numbers, keys: list[Any], values: list[Any]) -> list[Any]:
    """What the letter x takes from itself and the letters before it; its key and value are appended."""
    query = linear(x, w["query"])
    keys.append(linear(x, w["key"]))
    values.append(linear(x, w["value"]))
    taken = []
    size = len(x) // heads
    for start in range(0, len(x), size):
        head = slice(start, start + size)
        shares = mg.softmax([mg.dot(query[head], key[head]) / size**0.5 for key in keys])
        taken += [mg.dot(shares, column) for column in zip(*(value[head] for value in values), strict=True)]
    return linear(taken, w["mix"])


def linear(x: list[Any], matrix: list[list[Any]]) -> list[Any]:
    return [mg.dot(row, x) for row in matrix]


def added(xs: list[Any], ys: list[Any]) -> list[Any]:
    return [x + y for x, y in zip(xs, ys, strict=True)]


def normalised(xs: list[Any]) -> list[Any]:
    """The elements divided by their root mean square."""
    scale = (mg.dot(xs, xs) / len(xs) + 1e-5) ** -0.5
    return [x * scale for x in xs]


def arrays(shape: Shape, xp: Any, w: Numbers, given: Numbers) -> Any:
    """The same in arrays, all words and positions at a time, with a mask."""
    words = given["words"]
    tokens, following = words[:, :-1], words[:, 1:]
    count, length = tokens.shape
    size = shape.width // shape.heads
    mask = xp.causal_mask(length)

    def norm(x: Any) -> Any:
        return x * ((x * x).mean(-1)[..., None] + 1e-5) ** -0.5

    def by_head(x: Any) -> Any:
        return x.reshape(count, length, shape.heads, size).swapaxes(1, 2)

    x = norm(w["letter"][tokens] + w["position"][:length])
    for layer in range(shape.layers):
        h = norm(x)
        query, key, value = (by_head(h @ w[f"{name} {layer}"].T) for name in ("query", "key", "value"))
        shares = xp.softmax(query @ key.swapaxes(2, 3) / size**0.5 + mask)
        x = x + (shares @ value).swapaxes(1, 2).reshape(count, length, shape.width) @ w[f"mix {layer}"].T
        x = x + xp.relu(norm(x) @ w[f"widen {layer}"].T) @ w[f"narrow {layer}"].T
    return xp.cross_entropy((x @ w["output"].T).reshape(count * length, LETTERS), following.reshape(-1))


def transformer(title: str, shape: Shape, words: int, length: int, arguments: bool = False) -> Program:
    """The program for so many words of a length, which are constants of it or its arguments."""
    made = partial(data, shape, words, length)
    return Program(title, made, partial(scalars, shape), partial(arrays, shape), arguments=arguments)
