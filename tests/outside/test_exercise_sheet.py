"""A scalar exercise sheet: the derivatives of an expression, and a softmax on a Value class of one's own.

It stands for what a learner does first: compute the same derivative in several ways and compare, and write the
operations of a Value by hand. The sheet is Karpathy's "micrograd exercises", which belongs to his course Neural
Networks: Zero to Hero. What carries over is the expression of three inputs and the point (2, 3, 4), the four logits,
the class 3, the gradients that the sheet expects, to 1e-5, and the head of the class that it gives. More digits of
them are from mpmath.
"""

import math

import pytest

import micrograd as mg
from tests.outside.ways import WAYS
from tests.strategies import by_hand, lecture_order

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_cache")]

POINT = (2, 3, 4)
VALUE, SLOPES = 6.336362190988558, [-12.353553390593273, 10.25699027111255, 0.0625]
LOGITS, LABEL = [0.0, 3.0, -2.0, 1.0], 3
LOSS = 2.1755153626167147
LOSS_SLOPES = [0.041772570515350445, 0.8390245074625319, 0.005653302662216329, -0.8864503806400986]


def expression(a, b, c):
    return -(a**3) + mg.sin(3 * b) - 1.0 / c + b**2.5 - a**0.5


def errors(slopes, truth=SLOPES):
    return [abs(slope - exact) for slope, exact in zip(slopes, truth, strict=True)]


def softmax(logits):
    powers = [logit.exp() for logit in logits]
    return [power / sum(powers) for power in powers]


def negative_log_likelihood(logits):
    return -softmax(logits)[LABEL].log()


@pytest.mark.parametrize("way", WAYS)
def test_the_expression_has_the_value_and_the_slopes_of_the_sheet(way):
    value, slopes = WAYS[way](mg.value_and_grad(expression, (0, 1, 2)))(*POINT)
    assert math.isclose(value, VALUE, rel_tol=1e-14)
    assert max(errors(slopes)) < 1e-13
    a, b, c = (mg.Value(number) for number in POINT)
    WAYS[way](expression)(a, b, c).backward()
    assert max(errors([a.grad, b.grad, c.grad])) < 1e-13


@pytest.mark.parametrize("way", WAYS)
def test_the_softmax_has_the_loss_and_the_slopes_of_the_sheet(way):
    logits = [mg.Value(logit) for logit in LOGITS]
    loss = WAYS[way](negative_log_likelihood)(logits)
    loss.backward()
    assert math.isclose(loss.data, LOSS, rel_tol=1e-14)
    assert max(errors([logit.grad for logit in logits], LOSS_SLOPES)) < 1e-14


class Written(mg.Value):
    """The class as a learner completes it, but for backward(): each operation a closure, and nothing inherited."""

    def __init__(self, data, _children=(), _op="", label=""):
        super().__init__(data, _children, _op, label=label)

    def with_slopes(self, *shares):
        """Assign the closure: for each operand what it gets of the gradient."""

        def backward():
            for operand, slope in shares:
                operand.grad += slope * self.grad

        self._backward = backward
        return self

    def __add__(self, other):
        other = as_written(other)
        return Written(self.data + other.data, (self, other), "+").with_slopes((self, 1.0), (other, 1.0))

    def __mul__(self, other):
        other = as_written(other)
        result = Written(self.data * other.data, (self, other), "*")
        return result.with_slopes((self, other.data), (other, self.data))

    def __pow__(self, exponent):
        result = Written(self.data**exponent, (self,), f"**{exponent}")
        return result.with_slopes((self, exponent * self.data ** (exponent - 1)))

    def exp(self):
        result = Written(math.exp(self.data), (self,), "exp")
        return result.with_slopes((self, result.data))

    def log(self):
        return Written(math.log(self.data), (self,), "log").with_slopes((self, 1 / self.data))

    def __radd__(self, other):
        return self + other

    def __truediv__(self, other):
        return self * other**-1

    def __neg__(self):
        return self * -1


def as_written(number):
    return number if isinstance(number, Written) else Written(number)


def backward_by_hand(root):
    """As the sheet has it: an order by recursion over _prev, and then each closure from the root down."""
    by_hand(root, lecture_order(root))


@pytest.mark.parametrize("backward", [mg.Value.backward, backward_by_hand], ids=["inherited", "written"])
def test_a_class_completed_by_a_learner_gives_them_too(backward):
    logits = [Written(logit, label=f"logit {i}") for i, logit in enumerate(LOGITS)]
    loss = negative_log_likelihood(logits)
    backward(loss)
    order = mg.topological_order(loss)
    assert {type(node) for node in order} == {Written}
    assert {node._op for node in order} == {"", "+", "*", "**-1", "exp", "log"}
    assert math.isclose(loss.data, LOSS, rel_tol=1e-14)
    assert max(errors([logit.grad for logit in logits], LOSS_SLOPES)) < 1e-14


def test_a_method_assigned_to_the_class_in_a_later_cell_is_there(monkeypatch):
    """Eagerly and compiled."""
    monkeypatch.setattr(mg.Value, "odds", lambda self: self / (1 - self), raising=False)
    for way in WAYS.values():
        x = mg.Value(0.75)
        odds = way(lambda x: x.odds())(x)
        odds.backward()
        assert (odds.data, x.grad) == (3.0, 16.0)
