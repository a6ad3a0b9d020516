"""A GPT in one file with a Value class of its own, which is then replaced by the library's.

It stands for programs that bring their own forty lines of autograd. This one is built as Karpathy's microgpt is (2026),
and its facts carry over: letters as tokens, and one more before and after a name; embeddings of tokens and places;
RMS norms with 1e-5 and without weights; causal attention in heads, scaled by the root of their width; a ReLU layer
four times as wide; no biases; weights drawn with a deviation of 0.08; the mean negative log likelihood of a name; Adam
with 0.01, which falls linearly, 0.85, 0.99 and 1e-8, its state in two lists; names drawn at a temperature of 0.5; and
in its own size one layer, a width of 16, 4 heads, 16 places and 4,192 parameters. Its class, too, has numbers, operands
and the slopes by them; that class is the truth here. The program is the same for both but for the name of the class.
"""

import functools
import itertools
import math
import random
import string

import pytest

import micrograd as mg

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

NAMES = ["emma", "olivia", "ava"]  # the first of the names that microgpt learns
LETTERS = "".join(NAMES)
RATE, BETA1, BETA2, EPSILON, STEPS = 0.01, 0.85, 0.99, 1e-8, 9

OWN_SIZE = {"letters": string.ascii_lowercase, "width": 16, "heads": 4, "layers": 1, "places": 16}


class Own:
    """A number, its gradient, and the operands that it was made of, each with the slope by it."""

    serial = itertools.count()

    def __init__(self, data, *operands):
        self.data, self.grad, self.operands, self.place = data, 0.0, operands, next(self.serial)

    def __add__(self, other):
        other = as_own(other)
        return Own(self.data + other.data, (self, 1.0), (other, 1.0))

    def __mul__(self, other):
        other = as_own(other)
        return Own(self.data * other.data, (self, other.data), (other, self.data))

    def __pow__(self, exponent):
        return Own(self.data**exponent, (self, exponent * self.data ** (exponent - 1)))

    def exp(self):
        power = math.exp(self.data)
        return Own(power, (self, power))

    def log(self):
        return Own(math.log(self.data), (self, 1 / self.data))

    def relu(self):
        passes = float(self.data > 0)
        return Own(passes * self.data, (self, passes))

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + as_own(other) * -1.0

    def __truediv__(self, other):
        return self * as_own(other) ** -1.0

    __radd__, __rmul__ = __add__, __mul__

    def backward(self):
        """What was made last comes first."""
        reached, waiting = {self}, [self]
        while waiting:
            new = {operand for operand, _ in waiting.pop().operands} - reached
            reached |= new
            waiting += new
        self.grad = 1.0
        for node in sorted(reached, key=lambda node: -node.place):
            for operand, slope in node.operands:
                operand.grad += slope * node.grad


def as_own(number):
    return number if isinstance(number, Own) else Own(number)


class Gpt:
    """The program. The class of its numbers is named in one place."""

    def __init__(self, value, letters=LETTERS, width=8, heads=2, layers=2, places=8):
        self.letters = sorted(set(letters))
        self.end, self.size, self.layers, self.places = len(self.letters), width // heads, layers, places
        source = random.Random(42)

        def matrix(rows, columns):
            return [[value(source.gauss(0, 0.08)) for _ in range(columns)] for _ in range(rows)]

        self.weights = {"in": matrix(self.end + 1, width), "place": matrix(places, width)}
        for layer in range(layers):
            self.weights |= {(name, layer): matrix(width, width) for name in ("query", "key", "value", "mix")}
            self.weights["widen", layer] = matrix(4 * width, width)
            self.weights["narrow", layer] = matrix(width, 4 * width)
        self.weights["out"] = matrix(self.end + 1, width)
        self.parameters = [p for each in self.weights.values() for row in each for p in row]
        self.means, self.squares = [0.0] * len(self.parameters), [0.0] * len(self.parameters)

    def largest(self, scores):
        return max(score.data for score in scores)

    def shares(self, scores):
        largest = self.largest(scores)
        powers = [(score - largest).exp() for score in scores]
        total = sum(powers)
        return [power / total for power in powers]

    def times(self, name, layer, xs):
        return [dot(row, xs) for row in self.weights[name, layer]]

    def attention(self, layer, x, memory):
        query = self.times("query", layer, x)
        memory.append((self.times("key", layer, x), self.times("value", layer, x)))
        taken = []
        for start in range(0, len(x), self.size):
            head = slice(start, start + self.size)
            shares = self.shares([dot(query[head], key[head]) / self.size**0.5 for key, _ in memory])
            taken += [dot(shares, column) for column in zip(*(value[head] for _, value in memory), strict=True)]
        return self.times("mix", layer, taken)

    def scores(self, token, place, memories):
        x = normalised(added(self.weights["in"][token], self.weights["place"][place]))
        for layer, memory in enumerate(memories):
            x = added(self.attention(layer, normalised(x), memory), x)
            wide = [total.relu() for total in self.times("widen", layer, normalised(x))]
            x = added(self.times("narrow", layer, wide), x)
        return [dot(row, x) for row in self.weights["out"]]

    def tokens(self, name):
        return [self.end, *(self.letters.index(letter) for letter in name), self.end][: self.places + 1]

    def loss(self, tokens):
        memories = [[] for _ in range(self.layers)]
        losses = [
            -self.shares(self.scores(token, place, memories))[following].log()
            for place, (token, following) in enumerate(itertools.pairwise(tokens))
        ]
        return (1 / len(losses)) * sum(losses)

    def train(self, loss):
        """The losses and the gradients of all steps."""
        losses, gradients = [], []
        for step in range(STEPS):
            result = loss(self.tokens(NAMES[step % len(NAMES)]))
            result.backward()
            losses.append(result.data)
            gradients.append([p.grad for p in self.parameters])
            self.update(step)
        return losses, gradients

    def update(self, step, steps=STEPS):
        for i, p in enumerate(self.parameters):
            self.means[i] = BETA1 * self.means[i] + (1 - BETA1) * p.grad
            self.squares[i] = BETA2 * self.squares[i] + (1 - BETA2) * p.grad**2
            mean, square = self.means[i] / (1 - BETA1 ** (step + 1)), self.squares[i] / (1 - BETA2 ** (step + 1))
            p.data -= RATE * (1 - step / steps) * mean / (square**0.5 + EPSILON)
            p.grad = 0

    def drawn(self, source):
        name, token, memories = "", self.end, [[] for _ in range(self.layers)]
        for place in range(self.places):
            shares = self.shares([score / 0.5 for score in self.scores(token, place, memories)])
            (token,) = source.choices(range(self.end + 1), weights=[share.data for share in shares])
            if token == self.end:
                break
            name += self.letters[token]
        return name


def dot(xs, ys):
    return sum(x * y for x, y in zip(xs, ys, strict=True))


def added(xs, ys):
    return [x + y for x, y in zip(xs, ys, strict=True)]


def normalised(xs):
    scale = (dot(xs, xs) / len(xs) + 1e-5) ** -0.5
    return [x * scale for x in xs]


def farthest(found, truth):
    """The largest difference, as a share of the largest number."""
    return max(abs(x - y) for x, y in zip(found, truth, strict=True)) / max(map(abs, truth))


@functools.cache
def own():
    model = Gpt(Own)
    return model, *model.train(model.loss)


def check(model, losses, gradients, tolerance):
    truth, true_losses, true_gradients = own()
    assert farthest(losses, true_losses) < tolerance
    for found, true in zip(gradients, true_gradients, strict=True):
        assert farthest(found, true) < tolerance
    assert farthest([p.data for p in model.parameters], [p.data for p in truth.parameters]) < tolerance
    assert true_losses[-1] < true_losses[-1 - len(NAMES)] < true_losses[-1 - 2 * len(NAMES)]  # of one name


@pytest.mark.unmeasured
def test_the_value_of_the_library_takes_the_place_of_its_own():
    model = Gpt(mg.Value)
    check(model, *model.train(model.loss), 1e-12)
    sources = random.Random(7), random.Random(7)
    names = [[each.drawn(source) for _ in range(5)] for each, source in zip((model, own()[0]), sources, strict=True)]
    assert names[0] == names[1]
    assert len(set(names[0])) > 1


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.unmeasured
def test_compiled_with_two_edits_it_prints_the_same_losses(backend):
    """The edits are the decorator, and a function that returns the loss of a step.

    A name is a string, so each of them has a program, which is kept though the lists of Adam change.
    """
    model = Gpt(mg.Value)
    fast = mg.compile(model.loss, backend=backend)
    losses, gradients = model.train(fast)
    check(model, losses, gradients, 1e-10)
    assert [f"{loss:.4f}" for loss in losses] == [f"{loss:.4f}" for loss in own()[1]]
    lengths = set(map(len, NAMES))
    assert [program.retraced for program in fast._kept.programs.values()] == [0] * len(lengths)
    assert fast.cache_info().traces == len(lengths)  # the largest of the scores is no path


@pytest.mark.unmeasured
def test_in_its_own_size():
    """Before it has learned anything, it is as good as a guess among the letters and the end."""
    truth, model = Gpt(Own, **OWN_SIZE), Gpt(mg.Value, **OWN_SIZE)
    losses = [each.loss(each.tokens("emma")) for each in (truth, model)]
    for loss in losses:
        loss.backward()
    assert len(model.parameters) == 4192
    assert abs(losses[0].data - math.log(27)) < 0.3
    assert math.isclose(losses[1].data, losses[0].data, rel_tol=1e-14)
    assert farthest([p.grad for p in model.parameters], [p.grad for p in truth.parameters]) < 1e-14
