"""The programs as one writes them for CasADi: matrices (MX), and functions that it maps over columns or steps.

Its scalars (SX) are straight lines, which compilers of C do not finish for most of these programs. Here, what is
computed for each column is a matrix operation; what is computed for each observation is a function of scalars with
``map``; and a loop is one with ``mapaccum``. Parameters come as matrices that lie as ours do: CasADi keeps the numbers
of a column together, so a matrix of ours is transposed there.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from programs.bundle import projected
from programs.gmm import GAMMA, below_diagonal, constant_part
from programs.program import flat
from programs.runge_kutta import step as runge_kutta_step
from programs.transformer import LARGE, SMALL, Shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from programs.program import Numbers


def parameters(numbers: Numbers, vector: Any) -> Numbers:
    """The parameters as parts of a vector: each a number, a column, or a matrix with a column for each inmost list."""
    found, start = {}, 0
    for name, nested in numbers.items():
        size, rows = len(flat(nested)), np.shape(nested)[-1:] or (1,)
        found[name] = ca.reshape(vector[start : start + size], rows[0], size // rows[0])
        start += size
    return found


def matrix(rows: Any) -> Any:
    """Constants, a column for each list."""
    return ca.DM(np.array(rows, dtype=float).T)


def by_column(row: Any, columns: Any) -> Any:
    """The columns, each times an element of a row."""
    return columns * ca.repmat(row, columns.rows(), 1)


def logsumexp(terms: list[Any]) -> Any:
    """The logarithm of the sum of exponentials, element by element."""
    largest = terms[0]
    for term in terms[1:]:
        largest = ca.fmax(largest, term)
    return largest + ca.log(sum(ca.exp(term - largest) for term in terms))


def gmm(w: Numbers, given: Numbers) -> Any:
    """The likelihood of all points at a time, a component after the other."""
    points = matrix(given["points"])
    dimensions, count = points.shape
    components = w["weights"].rows()
    rows, columns = zip(*below_diagonal(dimensions), strict=True)
    diagonals, terms = ca.exp(w["diagonals"]), []
    for k in range(components):
        lower = ca.MX(ca.Sparsity.triplet(dimensions, dimensions, rows, columns), w["below"][:, k])
        turned = ca.mtimes(lower + ca.diag(diagonals[:, k]), points - ca.repmat(w["means"][:, k], 1, count))
        terms.append(w["weights"][k] + ca.sum1(w["diagonals"][:, k]) - 0.5 * ca.sum1(turned * turned))
    prior = 0.5 * GAMMA**2 * (ca.sumsqr(diagonals) + ca.sumsqr(w["below"]))
    normalised = ca.sum2(logsumexp(terms)) - count * logsumexp(ca.vertsplit(w["weights"]))
    return normalised + prior + constant_part(dimensions, components, count)


def bundle(w: Numbers, given: Numbers) -> Any:
    """The errors of an observation as a function of scalars."""
    camera, point, weight, seen = (ca.SX.sym(*each) for each in (("c", 11), ("p", 3), ("w", 1), ("s", 2)))
    x, y = projected(ca.vertsplit(camera), ca.vertsplit(point))
    squares = (weight * (x - seen[0])) ** 2 + (weight * (y - seen[1])) ** 2 + (1 - weight * weight) ** 2
    each = ca.Function("observation", [camera, point, weight, seen], [squares]).map(len(given["seen"]))
    chosen = w["cameras"][:, given["cameras"]], w["points"][:, given["points"]]
    return 0.5 * ca.sum2(each(*chosen, w["weights"].T, matrix(given["seen"])))


def lstm(w: Numbers, given: Numbers) -> Any:
    """A step as a function of scalars."""
    text = matrix(given["sequence"])
    bits, count = text.shape
    layers = len(given["hidden"])
    names = {"states": (bits, 2 * layers), "total": (1, 1), "now": (bits, 1), "following": (bits, 1)}
    shapes = names | {name: part.shape for name, part in w.items()}
    s = {name: ca.SX.sym(name, *shape) for name, shape in shapes.items()}
    x, after = s["now"] * s["outside"][:, 0], []
    for layer in range(layers):
        hidden, cell = s["states"][:, 2 * layer], s["states"][:, 2 * layer + 1]
        read = x, hidden, x, hidden
        forget, take, give, change = (
            read[gate] * s["weights"][:, 4 * layer + gate] + s["biases"][:, 4 * layer + gate] for gate in range(4)
        )
        forget, take, give = (1 / (1 + ca.exp(-gate)) for gate in (forget, take, give))
        cell = cell * forget + take * ca.tanh(change)
        x = give * ca.tanh(cell)
        after += [x, cell]
    predicted = x * s["outside"][:, 1] + s["outside"][:, 2]
    total = s["total"] + ca.dot(s["following"], predicted - ca.log(2 + ca.sum1(ca.exp(predicted))))
    step = ca.Function("step", [*s.values()], [ca.horzcat(*after), total]).mapaccum("steps", count - 1, 2)
    pairs = zip(given["hidden"], given["cells"], strict=True)
    start = matrix([state for pair in pairs for state in pair])
    fixed = (ca.repmat(part, 1, count - 1) for part in w.values())
    return -step(start, 0, text[:, :-1], text[:, 1:], *fixed)[1][-1] / ((count - 1) * bits)


def recurrent(w: Numbers, given: Numbers) -> Any:
    """A step in matrices; the errors are computed at the end, all at a time."""
    series = np.array(given["series"])[None]
    width, count = w["bias"].rows(), series.shape[1] - 1
    state, rows, known = ca.MX.sym("state", width), ca.MX.sym("rows", width, width), ca.MX.sym("known", width)
    next_state = ca.tanh(ca.mtimes(rows, state) + known)
    step = ca.Function("step", [state, rows, known], [next_state]).mapaccum("steps", count)
    known = ca.mtimes(w["input"], ca.DM(series[:, :-1])) + ca.repmat(w["bias"], 1, count)
    states = step(ca.DM.zeros(width), ca.repmat(w["recurrent"].T, 1, count), known)
    return ca.sumsqr(ca.mtimes(w["output"].T, states) + w["output bias"] - ca.DM(series[:, 1:])) / count


def gaussian_process(w: Numbers, given: Numbers) -> Any:
    """Cholesky's factor column by column."""
    points, numbers = matrix(given["points"]), ca.DM(given["numbers"])
    count = points.columns()
    square: Any = 0.0
    for row, scale in zip(ca.vertsplit(points), ca.vertsplit(ca.exp(-w["lengths"])), strict=True):
        apart = (ca.repmat(row.T, 1, count) - ca.repmat(row, count, 1)) * scale
        square = square + apart * apart
    left = ca.exp(2 * w["height"]) * ca.exp(-0.5 * square) + ca.exp(2 * w["noise"]) * ca.DM.eye(count)
    number, value = ca.MX(numbers), 0.0
    for after in range(count - 1, -1, -1):  # so many columns come after this one
        root = ca.sqrt(left[0, 0])
        solved = number[0] / root
        value = value + 0.5 * solved * solved + ca.log(root)
        if after:
            column = left[1:, 0] / root
            left, number = left[1:, 1:] - ca.mtimes(column, column.T), number[1:] - column * solved
    return value + 0.5 * count * math.log(2 * math.pi)


def runge_kutta(w: Numbers, given: Numbers) -> Any:
    """A step as a function of scalars."""
    counted = matrix(given["counted"])
    count, rates = counted.columns(), ("a", "b", "c", "d")
    state, total, seen, s = ca.SX.sym("state", 2), ca.SX.sym("total"), ca.SX.sym("seen", 2), ca.SX.sym("rates", 4)
    after = ca.vertcat(*runge_kutta_step(dict(zip(rates, ca.vertsplit(s), strict=True)), ca.vertsplit(state)))
    outputs = [after, total + ca.sumsqr(after - seen)]
    step = ca.Function("step", [state, total, seen, s], outputs).mapaccum("steps", count, 2)
    fixed = ca.repmat(ca.vertcat(*(w[name] for name in rates)), 1, count)
    return step(ca.vertcat(w["prey"], w["predators"]), 0, counted, fixed)[1][-1] / count


def mlp(w: Numbers, given: Numbers) -> Any:
    """Batch by features, so that no matrix is transposed on the way."""
    images, classes = matrix(given["images"]).T, given["classes"]
    batch = len(classes)
    hidden = ca.fmax(ca.mtimes(images, w["hidden"]) + ca.repmat(w["hidden bias"].T, batch, 1), 0)
    scores = ca.mtimes(hidden, w["output"]) + ca.repmat(w["output bias"].T, batch, 1)
    return cross_entropy(scores.T, classes)


def cross_entropy(scores: Any, classes: list[int]) -> Any:
    """The mean over columns."""
    rows, columns = scores.shape
    normaliser = logsumexp(ca.vertsplit(scores))
    return ca.sum2(normaliser - scores.nz[[rows * n + each for n, each in enumerate(classes)]].T) / columns


def transformer(shape: Shape, w: Numbers, given: Numbers) -> Any:
    """All letters of all words at a time; what looks back is a function of a word, mapped over words."""
    words = given["words"]
    length = len(words[0]) - 1
    tokens, following = ([token for word in words for token in word[part]] for part in (slice(-1), slice(1, None)))

    def linear(name: str, x: Any) -> Any:
        return ca.mtimes(w[name].T, x)

    def normalised(x: Any) -> Any:
        return by_column((ca.sum1(x * x) / shape.width + 1e-5) ** -0.5, x)

    look_back = attention(shape, length).map(len(words))
    x = normalised(w["letter"][:, tokens] + ca.repmat(w["position"][:, :length], 1, len(words)))
    for layer in range(shape.layers):
        h = normalised(x)
        taken = look_back(*(linear(f"{name} {layer}", h) for name in ("query", "key", "value")))
        x = x + linear(f"mix {layer}", taken)
        x = x + linear(f"narrow {layer}", ca.fmax(linear(f"widen {layer}", normalised(x)), 0))
    return cross_entropy(linear("output", x), following)


def attention(shape: Shape, length: int) -> Any:
    """What the letters of a word take from themselves and earlier ones; their shares are of upper triangles."""
    whole = [ca.MX.sym(name, shape.width, length) for name in ("query", "key", "value")]
    size, taken = shape.width // shape.heads, []
    for query, key, value in zip(*(ca.vertsplit(each, size) for each in whole), strict=True):
        powers = ca.exp(ca.mtimes(key.T, query) / size**0.5) * ca.DM(np.triu(np.ones((length, length))))
        taken.append(ca.mtimes(value, by_column(1 / ca.sum1(powers), powers)))
    return ca.Function("attention", whole, [ca.vertcat(*taken)])


def parabola(w: Numbers, given: Numbers) -> Any:
    """Vectors."""
    x, y = ca.DM(given["x"]), ca.DM(given["y"])
    a, b, c = ca.vertsplit(w["coefficients"])
    return ca.sumsqr(a * x * x + b * x + c - y)


IN_MATRICES: dict[str, Callable[[Numbers, Numbers], Any]] = {
    **dict.fromkeys(("gmm-2-5", "gmm-10-5", "gmm-10-25"), gmm),
    "ba": bundle,
    "lstm": lstm,
    **dict.fromkeys(("rnn-50", "rnn-500"), recurrent),
    "gp": gaussian_process,
    **dict.fromkeys(("rk-200", "rk-1000"), runge_kutta),
    "mlp": mlp,
    "transformer": partial(transformer, LARGE),
    **{name: partial(transformer, SMALL) for name in ("word", "words")},
    "parabola": parabola,
}
