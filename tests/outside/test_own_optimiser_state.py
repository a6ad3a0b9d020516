"""Training with an optimiser of one's own, whose state lies beside the parameters, in a dict keyed by them.

It stands for programs that grew in a notebook: a network as lists of Values, a loop over its parameters, and running
means for each in a dict. The optimiser is Adam: Kingma and Ba, Adam: A Method for Stochastic Optimization (2015),
algorithm 1, with the settings given there. The truth is the same algorithm on arrays, with the gradients of a network
of one hidden layer in closed form: Goodfellow, Bengio and Courville, Deep Learning (2016), section 6.5.
"""

import copy
import math
import warnings

import numpy as np
import pytest

import micrograd as mg

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

RATE, BETA1, BETA2, EPSILON = 0.05, 0.9, 0.999, 1e-8
INPUTS, HIDDEN = 2, 5

WAYS = {
    "eager": lambda f: f,
    "numpy": lambda f: mg.compile(f, backend="numpy"),
    "llvm": lambda f: mg.compile(f, backend="llvm"),
}


def data():
    random = np.random.default_rng(3)
    xs = random.uniform(-1, 1, size=(16, INPUTS))
    return xs, np.sin(2 * xs[:, 0]) + xs[:, 1] ** 2


XS, YS = data()


class Network:
    """A hidden layer with tanh, and a sum of it."""

    def __init__(self):
        random = np.random.default_rng(4)
        self.hidden = [[mg.Value(w) for w in row] for row in random.normal(size=(HIDDEN, INPUTS)).tolist()]
        self.biases = [mg.Value(0.0) for _ in range(HIDDEN)]
        self.out = [mg.Value(w) for w in random.normal(size=HIDDEN).tolist()]

    def __call__(self, x):
        hidden = [mg.tanh(mg.dot(row, x) + b) for row, b in zip(self.hidden, self.biases, strict=True)]
        return mg.dot(self.out, hidden)

    def parameters(self):
        return [*(w for row in self.hidden for w in row), *self.biases, *self.out]


def trained(way, steps=30):
    """The losses and the network after some steps, and the state."""
    network = Network()
    means, squares = dict.fromkeys(network.parameters(), 0.0), dict.fromkeys(network.parameters(), 0.0)
    loss = WAYS[way](lambda xs, ys: mg.mean([(network(x) - y) ** 2 for x, y in zip(xs, ys, strict=True)]))
    losses = []
    for step in range(1, steps + 1):
        result = loss(XS, YS)
        losses.append(result.data)
        for parameter in network.parameters():
            parameter.grad = 0.0
        result.backward()
        for p in network.parameters():
            means[p] = BETA1 * means[p] + (1 - BETA1) * p.grad
            squares[p] = BETA2 * squares[p] + (1 - BETA2) * p.grad**2
            mean, square = means[p] / (1 - BETA1**step), squares[p] / (1 - BETA2**step)
            p.data -= RATE * mean / (math.sqrt(square) + EPSILON)
    return losses, network, means


def truly_trained(steps=30):
    """The same on arrays."""
    network = Network()
    w = np.array([[p.data for p in row] for row in network.hidden])
    b, out = np.zeros(HIDDEN), np.array([p.data for p in network.out])
    parameters, losses = [w, b, out], []
    means, squares = [np.zeros_like(p) for p in parameters], [np.zeros_like(p) for p in parameters]
    for step in range(1, steps + 1):
        hidden = np.tanh(XS @ w.T + b)
        errors = hidden @ out - YS
        losses.append(np.mean(errors**2))
        by_output = 2 * errors / len(YS)
        by_sum = by_output[:, None] * out * (1 - hidden**2)
        for p, g, m, v in zip(
            parameters, [by_sum.T @ XS, by_sum.sum(0), by_output @ hidden], means, squares, strict=True
        ):
            m += (1 - BETA1) * (g - m)
            v += (1 - BETA2) * (g**2 - v)
            p -= RATE * (m / (1 - BETA1**step)) / (np.sqrt(v / (1 - BETA2**step)) + EPSILON)
    return losses, np.concatenate([w.ravel(), b, out]), np.concatenate([m.ravel() for m in means])


@pytest.mark.parametrize("way", WAYS)
def test_it_trains_as_on_arrays(way):
    losses, network, means = trained(way)
    true_losses, true_parameters, true_means = truly_trained()
    np.testing.assert_allclose(losses, true_losses, rtol=1e-8)
    np.testing.assert_allclose([p.data for p in network.parameters()], true_parameters, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose([means[p] for p in network.parameters()], true_means, rtol=1e-6, atol=1e-9)
    assert losses[-1] < 0.2 * losses[0]


@pytest.mark.parametrize("way", WAYS)
def test_it_trains_as_with_the_optimiser_of_the_library(way):
    losses, network, _ = trained(way)
    other = Network()
    loss = WAYS[way](lambda: mg.mean([(other(x) - y) ** 2 for x, y in zip(XS, YS, strict=True)]))
    optimizer = mg.optim.Adam(other.parameters(), learning_rate=RATE)
    for expected in losses:
        result = loss()
        assert math.isclose(result.data, expected, rel_tol=1e-9)
        optimizer.zero_grad()
        result.backward()
        optimizer.step()
    for p, q in zip(network.parameters(), other.parameters(), strict=True):
        assert math.isclose(p.data, q.data, rel_tol=1e-7, abs_tol=1e-9)


class Trainer:
    """A network, its state and a compiled loss in one object, as a notebook ends up with."""

    def __init__(self):
        self.network = Network()
        self.momentum = {}
        self.traces = 0

    def step(self, loss):
        result = loss(self, XS, YS)
        for p in self.network.parameters():
            p.grad = 0.0
        result.backward()
        for p in self.network.parameters():
            self.momentum[p] = 0.8 * self.momentum.get(p, 0.0) - 0.05 * p.grad
            p.data += self.momentum[p]
        return result.data


def loss_of(trainer, xs, ys):
    return mg.mean([(trainer.network(x) - y) ** 2 for x, y in zip(xs, ys, strict=True)])


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_the_state_that_changes_at_each_step_does_not_trace_anew(backend):
    eager, compiled = Trainer(), Trainer()
    fast = mg.compile(loss_of, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(25):
            assert math.isclose(eager.step(loss_of), compiled.step(fast), rel_tol=1e-10)
    assert [s.retraced for s in fast._kept.programs.values()] == [0]
    assert len(compiled.momentum) == len(compiled.network.parameters())


@pytest.mark.parametrize("way", WAYS)
def test_parameters_stay_the_keys_that_they_were(way):
    """Whatever their numbers: they are told apart by identity, and so are two that are equal."""
    a, b = mg.Value(1.0), mg.Value(1.0)
    names = {a: "a", b: "b"}
    f = WAYS[way](lambda: (a * 2.0 - b) ** 2)
    f().backward()
    a.data, b.data = 5.0, 5.0
    assert (names[a], names[b], len(names)) == ("a", "b", 2)
    assert (a.grad, b.grad) == (4.0, -2.0)


def test_a_copy_of_network_and_state_together_keeps_them_together():
    """As before an experiment that may go wrong."""
    trainer = Trainer()
    trainer.step(loss_of)
    saved = copy.deepcopy(trainer)
    for _ in range(3):
        trainer.step(loss_of)
    assert set(saved.momentum) == set(saved.network.parameters())
    again = [saved.step(loss_of) for _ in range(3)]
    other = Trainer()
    expected = [other.step(loss_of) for _ in range(4)][1:]
    assert again == expected
