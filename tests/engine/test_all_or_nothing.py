"""What changes several numbers changes all of them or none, whatever fails, at whatever position."""

from contextlib import suppress

import pytest

import micrograd as mg
from micrograd import Value
from tests import faults

pytestmark = pytest.mark.stress

NO_MEMORY = pytest.mark.skipif(faults._testcapi is None, reason="this Python cannot run short")
KINDS = ["call", "signal", pytest.param("memory", marks=NO_MEMORY)]


def grads(*values):
    return lambda: [value.grad for value in values]


def backward():
    """The program of the report: gradients were lost, and the next ones wrong."""
    x, w = Value(0.5), Value(2.0)
    y = mg.tanh(x * w) * w + mg.gelu(x) * 2.0
    x.grad = 7.0
    return y.backward, grads(x, w)


def backward_again():
    x, w = Value(0.5), Value(2.0)
    y = x * w + mg.where(x > w, x, w * 3.0)
    y.backward()
    return y.backward, grads(x, w)


def by_hand(x, w):
    """A product whose derivative is a closure."""
    out = Value(x.data * w.data, (x, w), "by hand")

    def derivative():
        x.grad += w.data * out.grad
        w.grad += x.data * out.grad

    out._backward = derivative
    return out


def backward_by_hand():
    x, w = Value(0.5), Value(2.0)
    y = by_hand(x, w) * x + w
    return y.backward, grads(x, w)


def backward_inside_of_another():
    x, w = Value(0.5), Value(2.0)
    out = Value(3.0, (x,), "nested")

    def derivative():
        (w * w).backward()
        x.grad += out.grad

    out._backward = derivative
    y = out * x
    return y.backward, grads(x, w)


def backward_that_fails():
    """It is undone, and so is it where something else fails while it is undone."""
    leaves = [Value(0.0), Value(2.0), Value(3.0)]
    for position, leaf in enumerate(leaves):
        leaf.grad = float(position + 1)
    y = leaves[0].sqrt() * leaves[1] + leaves[2]

    def action():
        with suppress(ZeroDivisionError):
            y.backward()

    return action, grads(*leaves)


def gradient_by_hand():
    """The closure works on the gradients themselves, which get back what they had."""
    x, w = Value(0.5), Value(2.0)
    x.grad, w.grad = 7.0, 8.0
    out = by_hand(x, w)
    return lambda: mg.gradient(out * 2.0, [x, w]), grads(x, w, out)


def backward_watched():
    x, w = Value(0.5), Value(2.0)
    y = x * w + x

    def action():
        with mg.detect_anomaly():
            y.backward()

    return action, grads(x, w)


def graphs():
    x, w = Value(0.5), Value(2.0)
    y = x * x * w
    return lambda: y.backward(create_graph=True), lambda: [float(value.grad) for value in (x, w)]


def step(make):
    def case():
        leaves = [Value(1.0), Value(2.0), Value(3.0)]
        optimizer = make(leaves)
        for leaf in leaves:
            leaf.grad = leaf.data
        optimizer.step()
        return optimizer.step, lambda: (
            [leaf.data for leaf in leaves],
            optimizer._state,
            optimizer.steps,
            optimizer.rate,
        )

    return case


def zero_grad():
    model = mg.nn.MLP(2, [2, 1])
    for position, parameter in enumerate(model.parameters()):
        parameter.grad = float(position + 1)
    return model.zero_grad, lambda: [parameter.grad for parameter in model.parameters()]


def load():
    model = mg.nn.MLP(2, [2, 1])
    state = {name: float(position) for position, name in enumerate(model.state_dict())}
    model.load_state_dict(dict.fromkeys(state, -1.0))
    return lambda: model.load_state_dict(state), model.state_dict


def transform():
    w = Value(2.0)
    return lambda: mg.grad(mg.grad(lambda x: x**3 * w))(2.0), grads(w)


def silent():
    x = Value(3.0)

    def action():
        with mg.no_grad():
            mg.grad(lambda y: y * y * x)(2.0)

    return action, lambda: (x * x).requires_grad


CASES = {
    case.__name__: case
    for case in (
        backward,
        backward_again,
        backward_by_hand,
        backward_inside_of_another,
        backward_that_fails,
        gradient_by_hand,
        backward_watched,
        graphs,
        zero_grad,
        load,
        transform,
        silent,
    )
}
CASES |= {
    "momentum": step(lambda leaves: mg.optim.SGD(leaves, 0.1, momentum=0.9)),
    "Adam": step(lambda leaves: mg.optim.Adam(leaves, 0.1)),
}


# A backpropagation that was started inside of another one, and ended before that failed, is done.
ALLOWED = {"backward_inside_of_another": [[0.0, 4.0]]}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_or_nothing_whatever_fails(kind):
    faults.check(__name__, kind)
