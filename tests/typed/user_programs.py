"""Programs as users write them, with types: README's, the documents', micrograd's lectures and the articles'.

`mypy --strict` and Pyright in strict mode find nothing in this file, and tests/test_types.py runs it.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np

import micrograd as mg
from micrograd import Value, grad, nn
from micrograd.nn import MLP, Module
from micrograd.optim import SGD

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import assert_type
else:

    def assert_type(thing: Any, _: Any) -> Any:
        """Only the checkers know types."""
        return thing


def wave(u: Value, v: Value) -> Value:
    """What README checks."""
    return mg.tanh(u * v + mg.exp(u))


def first_expression() -> tuple[float, float, float]:
    """README's first program."""
    x, y, z = Value(2.0, label="x"), Value(-3.0, label="y"), Value(10.0, label="z")
    f = x * y + z
    f.backward()
    mg.testing.gradcheck(wave, [0.7, -0.4])
    return f.data, x.grad, y.grad


def lecture() -> float:
    """The neuron of micrograd's lecture, and what its own README shows."""
    x1, w1 = Value(2.0, label="x1"), Value(-3.0, label="w1")
    n: Value = x1 * w1 + 6.88
    o: Value = n.tanh()
    o.backward()
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    d += d * 2 + (b + a).relu()
    e: Value = abs(c - d) / 2.0 - 1
    e.backward()
    return a.grad + b.grad + w1.grad


class Line(Module):
    """A user's own module."""

    def __init__(self) -> None:
        self.slope, self.intercept = Value(1.0), Value(0.0)

    def __call__(self, x: float) -> Value:
        """The line at x."""
        return self.slope * x + self.intercept


def training() -> list[float]:
    """A training loop as every tutorial writes it."""
    model = Line()
    optimizer = SGD(model.parameters(), 0.1)
    losses: list[float] = []
    for _ in range(3):
        loss = sum(((model(x) - 2 * x) ** 2 for x in (0.0, 1.0, 2.0)), Value(0.0))
        model.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.data)
    return losses


def network() -> int:
    """A network of the library, saved and read."""
    random.seed(0)
    model = MLP(2, [4, 1])
    names: dict[str, float] = model.state_dict()
    model.load_state_dict(names)
    scores = [model([0.5, x]) for x in (1.0, -1.0)]
    mg.losses.hinge(scores, [1, -1]).backward()
    layer: nn.Layer = model.layers[0]
    neuron: nn.Neuron = layer.neurons[0]
    weight: Value = neuron.w[0]
    assert weight.grad == weight.grad
    return len(names)


def losses_and_layers() -> float:
    """What is a Value, and what is a float."""
    x, y = Value(0.5), Value(-0.25)
    squared = assert_type(mg.losses.mean_squared_error([x, y], [0.0, 1.0]), Value)
    largest = assert_type(mg.losses.hinge(assert_type(abs(x), Value), 1), Value)
    entropy = assert_type(mg.losses.binary_cross_entropy([0.0, 0.0], [0, 1], weights=[1.0, 2.0]), float)
    of_classes = assert_type(mg.losses.cross_entropy([[x, y], [y, x]], [0, 1]), Value)
    by_column: Any = mg.losses.mean_squared_error(mg.array([[1.0, 2.0]]), np.zeros((1, 2)), axis=0)
    neuron = nn.Neuron(2)
    output = assert_type(neuron([x, 1.0]), Value)
    outputs = assert_type(nn.Layer(2, 3).outputs(np.ones(2)), list[Value])
    letter = assert_type(nn.Embedding(3, 2)(1), list[Value])
    points: Any = MLP(2, [2, 1])(np.array([[0.0, 1.0], [1.0, 0.0]]))
    middle = assert_type(mg.mean([output, *outputs, *letter]), Value)
    total = squared + largest + of_classes + middle * 0.0 + mg.detach(x) + by_column[0]
    total.backward()
    return assert_type(mg.mean([entropy, mg.detach(0.5)]), float) + len(points)


def models(image: NDArray[np.float64]) -> int:
    """What a module gives for a point, for a batch in lists and for a batch in an array."""
    scorer, classifier = MLP(2, (4, 1)), MLP(2, (4, 3))
    score = assert_type(scorer([0.5, Value(1.0)]), Value)
    scores = assert_type(scorer([[0.5, 1.0], [1.0, 0.5]]), list[Value])
    assert_type(scorer(np.ones((2, 2))).shape, Any)
    classes = assert_type(classifier([score, 1.0]), list[Value])
    stated: MLP[Value] = MLP(2, [4, 1])
    named = MLP[list[Value]](2, [4, 2])
    total = assert_type(stated([score, 0.0]), Value) + assert_type(named([score, 0.0]), list[Value])[1]
    assert_type(nn.Layer(2, 1)([0.0, 1.0]), Value)
    layer = assert_type(nn.Layer(2, 3)(classes[:2]), list[Value])
    count = len(classes) - 2
    total += assert_type(nn.Layer[Value](2, count)([0.0, 1.0]), Value)
    parts = nn.Sequential(nn.Layer(2, 3), mg.tanh, nn.Layer(3, 1))
    total += assert_type(parts([0.0, 1.0]), Value) + assert_type(parts([[0.0, 1.0]]), list[Value])[0]
    total += assert_type(nn.Sequential(MLP(2, (3, 2)))([0.0, 1.0]), list[Value])[1]
    total += assert_type(nn.Sequential[Value](nn.Dropout(0.5), nn.Layer(2, 1))([0.0, 1.0]), Value)
    letters: list[Value] = nn.Sequential(nn.Embedding(27, 2), nn.Layer(2, 1))([5, 6])
    normal = assert_type(nn.LayerNorm(3)(layer), list[Value])
    kept = assert_type(nn.Dropout(0.5)(normal), list[Value])
    edges: list[list[list[Value]]] = nn.Convolution2d(1, 2, 2)([[0.0, 1.0], [1.0, 0.0]])
    channels = assert_type(nn.Convolution2d(1, 2, 2)(image).shape, Any)
    neurons: list[Value] = nn.Neuron(2)([[0.0, 1.0], [1.0, 0.0]])
    (abs(total) + sum(kept, Value(0.0)) + edges[0][0][0]).backward()
    return len(scores) + len(neurons) + len(channels) + len(letters)


def transforms() -> float:
    """Functions keep their parameters."""

    def area(width: float, height: float) -> float:
        return mg.exp(width) * height

    slope = grad(area)
    value, both = mg.value_and_grad(area, argnums=(0, 1))(1.0, 2.0)
    sums: NDArray[np.float64] = np.asarray(mg.vmap(scaled)(np.arange(3.0), np.ones(3)), dtype=float)
    return float(slope(1.0, height=2.0)) + float(value) + float(both[1]) + float(sums.sum())


def scaled(x: float | NDArray[np.float64], factor: float | NDArray[np.float64]) -> Any:
    """For single numbers, and by vmap for arrays of them."""
    return x * factor


@mg.compile
def energy(points: NDArray[np.float64], stiffness: float = 1.0) -> Any:
    """A compiled function of an array."""
    stretches = points[1:] - points[:-1]
    return stiffness * (stretches * stretches).sum()


@mg.compile(backend="numpy")
def product(x: float, y: float) -> float:
    """A compiled function of floats, whose result is known to be one."""
    return x * y


@mg.operation
def cube(x: Value | float) -> Any:
    """A user's own operation."""

    def backpropagate(gradient: float) -> Value | float:
        return gradient * 3 * x**2

    return x**3, backpropagate


def arrays() -> float:
    """Arrays of numbers and of Values go through the functions of one operand."""
    xs: NDArray[np.float64] = np.linspace(0.0, 1.0, 3)
    energies = float(energy(xs, stiffness=2.0)) + product(2.0, 3.0)
    total: Value = mg.array([1.0, 2.0]).sum() + cube(Value(2.0))
    return energies + float(mg.tanh(xs).sum()) + total.data


def mixed(x: Value | float) -> Value | float:
    """A function for both."""
    return mg.tanh(x) * 2


def run() -> None:
    """Everything above, with the numbers that it gives."""
    assert first_expression() == (4.0, -3.0, 2.0)
    assert round(lecture(), 4) == 14.0019
    losses = training()
    assert losses[2] < losses[0]
    assert network() == 17
    assert round(losses_and_layers(), 4) == 2.7699
    assert models(np.eye(3)) == 9
    assert round(transforms(), 4) == 16.5914
    assert round(arrays(), 4) == 19.2237
    assert mixed(0.0) == 0.0


if __name__ == "__main__":
    run()
