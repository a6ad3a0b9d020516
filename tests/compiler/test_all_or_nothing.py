"""What changes several numbers changes all of them or none, whatever fails: in compiled functions, fit, and checks."""

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler import compiled_steps
from micrograd.draw.array_steps import with_numbers
from micrograd.pages.passes import _gradients
from micrograd.testing.checking import _backpropagated
from tests import faults
from tests.engine.test_all_or_nothing import KINDS, grads

pytestmark = pytest.mark.stress

COMPILED = mg.compile(lambda ws, x: sum(w * x for w in ws) ** 2, backend="numpy")
SEVERAL = mg.compile(lambda ws, x: (sum(w * x for w in ws) ** 2, ws[0] * ws[1]), backend="numpy")


def compiled_backward():
    ws = [Value(1.0), Value(2.0), Value(3.0)]
    for position, w in enumerate(ws):
        w.grad = float(position)
    y = COMPILED(ws, 2.0)
    return y.backward, lambda: [*grads(*ws)(), y.grad]


def compiled_call():
    ws = [Value(1.0), Value(2.0), Value(3.0)]
    return lambda: COMPILED(ws, 2.0).backward(), grads(*ws)


def backward_of_several():
    ws = [Value(1.0), Value(2.0), Value(3.0)]
    for position, w in enumerate(ws):
        w.grad = float(position)
    first, second = SEVERAL(ws, 2.0)
    loss = first * second + first
    return loss.backward, grads(*ws)


TRAINED = [Value(1.0), Value(2.0), Value(3.0)]
ADAM = mg.optim.Adam(TRAINED, 0.1)
STEPS = compiled_steps(lambda x: sum(w * w * x for w in TRAINED), [1.0, 2.0], ADAM, None, "numpy")


def write_back():
    """What fit does after its last step, before a callback, and when it is interrupted."""
    for number, w in enumerate(TRAINED):
        w.data, w.grad = 1.0 + number, 0.0
    ADAM._kept, ADAM.steps, ADAM.rate = [(0.0,) * ADAM.states] * 3, 0, None
    STEPS.step([0, 1], 0)
    return STEPS.update_values, lambda: ([(w.data, w.grad) for w in TRAINED], list(ADAM._state), ADAM.steps, ADAM.rate)


def check():
    w = Value(2.0)
    w.grad = 5.0
    gradient = _backpropagated(lambda x: w * x)
    return lambda: gradient(3.0), grads(w)


def page():
    x, w = Value(2.0), Value(3.0)
    y = x * w
    x.grad, w.grad, y.grad = 7.0, 8.0, 9.0
    return lambda: _gradients(y, [x, w, y]), grads(x, w, y)


def recording():
    ws = [Value(1.0), Value(2.0), Value(3.0)]
    return lambda: with_numbers(ws, [4.0, 5.0, 6.0], lambda: {"sum": sum(ws)}), lambda: [w.data for w in ws]


CASES = {
    case.__name__: case
    for case in (compiled_backward, compiled_call, backward_of_several, write_back, check, page, recording)
}
ALLOWED = {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_or_nothing_whatever_fails(kind):
    faults.check(__name__, kind)
