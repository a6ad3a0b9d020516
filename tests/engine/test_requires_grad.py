"""Which Values take part: leaves, constants and results, and what may be set on them."""

import math

import pytest
from hypothesis import given

import micrograd as mg
from micrograd import Value
from tests.engine.common import moderate


class TestRequiresGrad:
    def test_results_of_constants_are_constants_and_leaves(self):
        a, b = Value(2.0, requires_grad=False), Value(3.0, requires_grad=False)
        for result in (a * b, a + 1, 1 / b, a.tanh(), mg.where(a > 1, a, b), mg.maximum(a, 1.0), -a, a**b):
            assert not result.requires_grad
            assert result.is_leaf
            assert result._prev == set()
            with pytest.raises(ValueError, match="requires no gradient"):
                result.backward()

    def test_a_result_requires_a_gradient_where_one_operand_does(self):
        a, b = Value(2.0), Value(3.0, requires_grad=False)
        result = a * b
        assert (a.is_leaf, b.is_leaf, result.is_leaf) == (True, True, False)
        assert (a.requires_grad, b.requires_grad, result.requires_grad) == (True, False, True)
        result.backward()
        assert (a.grad, b.grad) == (3.0, 0.0)

    def test_a_leaf_frozen_between_forward_and_backward_gets_no_gradient(self):
        a, b = Value(2.0), Value(3.0)
        result = a * b + a.tanh() + mg.where(True, a, b)
        a.requires_grad = False
        result.backward()
        assert (a.grad, b.grad) == (0.0, 2.0)
        a.requires_grad = True
        result.backward()
        assert a.grad == pytest.approx(3.0 + 1.0 + 1 / math.cosh(2.0) ** 2)

    def test_a_leaf_backpropagated_from_gets_the_gradient_itself(self):
        a = Value(2.0)
        a.backward()
        a.backward(gradient=0.5)
        assert a.grad == 1.5

    def test_detach_stops_the_gradient(self):
        a = Value(2.0)
        (a * mg.detach(a)).backward()
        assert a.grad == 2.0

    def test_a_hand_written_constant_is_a_constant(self):
        assert not Value(2.0, (Value(1.0),), "operation", requires_grad=False).requires_grad

    @given(before=moderate, after=moderate, other=moderate)
    def test_setting_a_leaf_between_forward_and_backward_gives_the_recorded_gradient(self, before, after, other):
        a, b = Value(before), Value(other)
        result = a * b + a.tanh() * a**2 + mg.where(a > 0, a * 3, b) + mg.maximum(a, b)
        expected = Value(before), Value(other)
        x, y = expected
        (x * y + x.tanh() * x**2 + mg.where(x > 0, x * 3, y) + mg.maximum(x, y)).backward()
        a.data, b.data = after, after
        result.backward()
        assert (a.grad, b.grad) == (x.grad, y.grad)


def test_numbers_among_three_operands_are_values_that_require_no_gradient():
    x = Value(2.0)
    chosen = mg.where(1.0, x, 3.0)
    assert {(operand.data, operand.requires_grad) for operand in chosen._prev} == {
        (1.0, False),
        (2.0, True),
        (3.0, False),
    }


class Weight(Value):
    """A Value of a program's own class."""


@pytest.mark.parametrize(
    "f",
    [lambda w: w * w, lambda w: 2.0 * w + 1.0, lambda w: mg.where(1.0, w, 3.0) ** 2, lambda w: mg.leaky_relu(w, 0.1)],
)
def test_a_subclass_is_an_operand_like_any_other(f):
    weight, value = Weight(3.0), Value(3.0)
    ours, plain = f(weight), f(value)
    ours.backward()
    plain.backward()
    assert (ours.data, weight.grad) == (plain.data, value.grad)
    with mg.no_grad():
        assert f(weight).data == plain.data
