"""Training with an optimiser that keeps its state on the parameters, as p.m and p.v.

It stands for programs written for a Value class of one's own, on which any attribute can be set. This one is the lesson
on backpropagation of the course LLM101n, an early version of EurekaLabsAI/micrograd on GitHub: points of the plane in
three classes, 99 parameters, and AdamW (Loshchilov and Hutter, Decoupled Weight Decay Regularization (2019), algorithm
2) in the loop. What carries over is the task, the sizes, the settings and the random numbers: a generator of
Marsaglia's kind (xorshift64*: Vigna, An experimental exploration of Marsaglia's xorshift generators (2016)) from the
seed 42. So the losses must be those that the lesson's own class gave: wdndev/llm101n-zh on GitHub, the chapter on
micrograd, has them printed.
"""

import copy
import math
import pickle
import warnings

import pytest

import micrograd as mg
from micrograd import Value

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

PRINTED = {
    0: 0.9811897737392364,
    1: 0.514887446788358,
    2: 0.3165791889134888,
    5: 0.1376637835538695,
    10: 0.07694778561832522,
    15: 0.03945831296100578,
    19: 0.025962780159194516,
}
PRINTED_BESIDE = {0: 0.917090, 10: 0.003921}  # the losses of the ten points beside, before the step
RATE, BETA1, BETA2, EPSILON, DECAY = 0.1, 0.9, 0.95, 1e-8, 1e-4


class Generator:
    """Three shifts of 64 bits and a product; the 24 highest bits of it are the number."""

    def __init__(self, seed):
        self.state = seed

    def uniform(self, low, high):
        x = self.state
        x ^= x >> 12
        x = (x ^ (x << 25)) % 2**64
        self.state = x ^ (x >> 27)
        bits = self.state * 0x2545F4914F6CDD1D >> 40
        return low + (high - low) * (bits % 2**24 / 2**24)


class Neuron:
    def __init__(self, inputs, generator):
        self.weights = [Value(generator.uniform(-1, 1) * inputs**-0.5) for _ in range(inputs)]
        self.bias = Value(0)

    def __call__(self, xs):
        return sum((w * x for w, x in zip(self.weights, xs, strict=True)), self.bias)

    def parameters(self):
        return [*self.weights, self.bias]


class Classifier:
    """Two inputs, 16 neurons with tanh, three scores."""

    def __init__(self, generator):
        self.hidden = [Neuron(2, generator) for _ in range(16)]
        self.scores = [Neuron(16, generator) for _ in range(3)]

    def __call__(self, xs):
        hidden = [neuron(xs).tanh() for neuron in self.hidden]
        return [neuron(hidden) for neuron in self.scores]

    def parameters(self):
        return [p for neuron in self.hidden + self.scores for p in neuron.parameters()]


def points():
    """A generator that has made the points, 80 of them to learn from, and ten to look at beside."""
    generator = Generator(42)
    pairs = [(generator.uniform(-2.0, 2.0), generator.uniform(-2.0, 2.0)) for _ in range(100)]
    marked = [((x, y), 0 if x < 0 else 1 if y < 0 else 2) for x, y in pairs]
    return generator, marked[:80], marked[80:90]


GENERATOR, LEARNED, BESIDE = points()
FIRST = Classifier(GENERATOR)


def largest_of(scores):
    """As a number: no gradient flows through it."""
    return max(score.data for score in scores)


def largest_of_detached(scores):
    """The same with functions of the library."""
    return mg.maximum(*(mg.detach(score) for score in scores))


def negative_log_likelihood(scores, target, largest_of):
    largest = largest_of(scores)
    powers = [(score - largest).exp() for score in scores]
    return -(powers[target] / sum(powers)).log()


def loss_of(model, examples, largest_of=largest_of):
    total = Value(0)
    for (x, y), target in examples:
        total += negative_log_likelihood(model([Value(x), Value(y)]), target, largest_of)
    return total * (1.0 / len(examples))


def begun():
    model = copy.deepcopy(FIRST)
    for p in model.parameters():
        p.m = p.v = 0.0
    return model


def update(model, step):
    for p in model.parameters():
        p.m = BETA1 * p.m + (1 - BETA1) * p.grad
        p.v = BETA2 * p.v + (1 - BETA2) * p.grad**2
        mean, square = p.m / (1 - BETA1 ** (step + 1)), p.v / (1 - BETA2 ** (step + 1))
        p.data -= RATE * (mean / (square**0.5 + EPSILON) + DECAY * p.data)
        p.grad = 0


def trained(model, loss, steps):
    """The losses before each of these steps."""
    losses = {}
    for step in steps:
        result = loss()
        result.backward()
        update(model, step)
        losses[step] = result.data
    return losses


def test_the_points_are_those_of_the_lesson():
    assert LEARNED[0] == ((-0.6436591148376465, 1.1290233135223389), 0)
    assert LEARNED[-1] == ((0.6179506778717041, -0.6032657623291016), 1)
    assert BESIDE[0] == ((-0.6666977405548096, 1.137477159500122), 0)
    assert len(FIRST.parameters()) == 99


@pytest.mark.unmeasured
def test_it_gives_the_losses_that_the_lesson_printed():
    model = begun()
    losses = {}
    for step, printed in PRINTED_BESIDE.items():
        assert round(loss_of(model, BESIDE).data, 6) == printed
        losses |= trained(model, lambda: loss_of(model, LEARNED), range(step, step + 10))
    for step, printed in PRINTED.items():
        assert math.isclose(losses[step], printed, rel_tol=1e-13), step


@pytest.mark.parametrize("largest", [largest_of, largest_of_detached])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.unmeasured
def test_compiled_it_gives_them_too(backend, largest):
    """The state changes at each step and is set on what the loss closes over; that traces nothing again."""
    model = begun()
    fast = mg.compile(lambda: loss_of(model, LEARNED, largest), backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        losses = trained(model, fast, range(20))
    for step, printed in PRINTED.items():
        assert math.isclose(losses[step], printed, rel_tol=1e-10), step
    assert [program.retraced for program in fast._kept.programs.values()] == [0]


COPIES = {"copied": copy.deepcopy, "pickled": lambda model: pickle.loads(pickle.dumps(model))}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
@pytest.mark.unmeasured
def test_a_copy_goes_on_where_the_model_stood(copied):
    """Its state is in it, and is its own."""
    model = begun()
    trained(model, lambda: loss_of(model, LEARNED), range(4))
    other = copied(model)
    expected = trained(model, lambda: loss_of(model, LEARNED), range(4, 8))
    assert trained(other, lambda: loss_of(other, LEARNED), range(4, 8)) == expected
    assert [(p.m, p.v) for p in other.parameters()] == [(p.m, p.v) for p in model.parameters()]


@pytest.mark.unmeasured
def test_the_optimiser_of_the_library_takes_the_same_steps():
    model = copy.deepcopy(FIRST)
    optimizer = mg.optim.AdamW(model.parameters(), RATE, betas=(BETA1, BETA2), epsilon=EPSILON, weight_decay=DECAY)
    for step in range(6):
        optimizer.zero_grad()
        result = loss_of(model, LEARNED)
        result.backward()
        optimizer.step()
        if step in PRINTED:
            assert math.isclose(result.data, PRINTED[step], rel_tol=1e-12)
