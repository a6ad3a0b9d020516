"""The notes on micrograd: its programs, numbers, names and reprs, and what its users missed.

The numbers of the seeded network were printed by the micrograd 0.1.0 of PyPI.
"""

import random

import pytest

from micrograd.engine import Value
from micrograd.nn import MLP, Module
from tests.strategies import micrograds_example


class TestNotesExample:
    TARGET = 45.0

    def graph(self):
        a, b = Value(2.0, label="a"), Value(4.0, label="b")
        c = a + b
        d = c * 2
        e = c - 1
        f = d / e
        g = f**2
        loss = g - self.TARGET
        return a, b, c, d, e, f, g, loss

    def test_the_gradients_are_those_of_the_formula(self):
        a, b, *_, g, loss = self.graph()
        loss.backward()
        assert (g.data, loss.data) == (pytest.approx(5.76, rel=1e-15), pytest.approx(5.76 - self.TARGET, rel=1e-15))
        # g = (2c / (c - 1)) ** 2, so dg/dc = 2 (2c / (c - 1)) (-2 / (c - 1) ** 2), with c = 6
        slope = 2 * (12 / 5) * (-2 / 25)
        assert (a.grad, b.grad) == (pytest.approx(slope, rel=1e-14), pytest.approx(slope, rel=1e-14))


class TestMicrogradExample:
    def test_the_example_gives_its_numbers(self):
        a = Value(-4.0)
        b = Value(2.0)
        g = micrograds_example(a, b)
        g.backward()
        assert f"{g.data:.4f} {a.grad:.4f} {b.grad:.4f}" == "24.7041 138.8338 645.5773"


POINTS = [(2.0, -1.0, 1), (-1.5, 0.5, -1), (0.5, 1.5, 1), (-0.5, -2.0, -1)]
SCORES = [-1.0321957129960317, 0.0, -0.00494532847475115, -0.26550675436173876]
GRADIENTS = [
    *(0.4642630675523236, 0.18549292303526524, 0.0, -0.09787479080783476, -0.39124992584547, 0.1955696050703648),
    *(-0.07303342580422895, 0.039457106446218734, -0.03535439878510342, -0.05969951553214872, -0.3155225062094844),
    *(0.14022914548151416, 0.0, -0.00018808111222477186, -0.00011254481007855866, 0.11543310444867215),
    *(0.15058117465667575, -0.20260417045923712, -0.0021730656740246612, 0.0),
]
LOSSES = [1.193470608368149, 1.1615279343892067, 1.1323988358243997, 1.1045354406015535, 1.0776505336064344]
TRAINED = [
    *(0.16382814046393182, -0.9959355972004935, 0.0, -0.42678445011120736, -0.4610131792004308, -0.046268833064655804),
    *(0.4926550100841506, 0.3433720757176127, 0.009807636203490509, 0.8067227571122156, -0.7544294294948455),
    *(-0.19189354467155514, 0.0, -0.9403585417861993, -0.5626959147529921, 0.00493872343041513),
    *(-0.007528757575001881, -0.9112106517316716, -0.6021919570625153, 0.0),
]


class TestSeededNetwork:
    @pytest.fixture
    def model(self):
        random.seed(42)
        return MLP(2, [3, 2, 1])

    def loss_of(self, model):
        scores = [model([Value(x), Value(y)]) for x, y, _ in POINTS]
        margins = [(1 + -target * score).relu() for score, (_, _, target) in zip(scores, POINTS, strict=True)]
        decay = 1e-4 * sum(p * p for p in model.parameters())
        return scores, sum(margins) * (1.0 / len(margins)) + decay

    def test_the_weights_are_drawn_in_the_same_order_from_the_same_numbers(self, model):
        random.seed(42)
        for neuron in [neuron for layer in model.layers for neuron in layer.neurons]:
            assert [w.data for w in neuron.w] == [random.uniform(-1, 1) for _ in neuron.w]
            assert neuron.b.data == 0.0

    def test_scores_and_first_loss_are_equal_and_gradients_to_the_last_digits(self, model):
        scores, loss = self.loss_of(model)
        loss.backward()
        assert [score.data for score in scores] == SCORES
        assert loss.data == LOSSES[0]
        assert [p.grad for p in model.parameters()] == pytest.approx(GRADIENTS, rel=1e-13, abs=1e-16)

    def test_five_steps_of_training_give_the_same_losses_and_weights(self, model):
        losses = []
        for _ in LOSSES:
            _, loss = self.loss_of(model)
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.05 * p.grad
            losses.append(loss.data)
        assert losses == pytest.approx(LOSSES, rel=1e-14)
        assert [p.data for p in model.parameters()] == pytest.approx(TRAINED, rel=1e-13)

    def test_parameters_come_in_the_order_of_micrograd_and_zero_grad_clears_them(self, model):
        in_order = [p for layer in model.layers for n in layer.neurons for p in (*n.w, n.b)]
        assert model.parameters() == in_order
        assert len(in_order) == 20
        assert model.layers[0].parameters() == in_order[:9]
        assert isinstance(model, Module)
        model([1.0, 2.0]).backward()
        assert any(p.grad for p in in_order)
        model.zero_grad()
        assert not any(p.grad for p in in_order)
