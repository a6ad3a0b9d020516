"""Operations and closures written by hand, as micrograd's lectures do."""

import math

import pytest

import micrograd as mg
from micrograd import Value


class TestByHand:
    @pytest.mark.parametrize(
        ("make", "symbol"),
        [
            (lambda a, b: a + b, "+"),
            (lambda a, b: a - b, "-"),
            (lambda a, b: a * b, "*"),
            (lambda a, b: a / b, "/"),
            (lambda a, b: a**b, "**"),
            (lambda a, b: -a, "-"),
            (lambda a, b: a.relu(), "ReLU"),
            (lambda a, b: a.tanh(), "tanh"),
            (lambda a, b: a.exp(), "exp"),
            (lambda a, b: mg.maximum(a, b), "maximum"),
        ],
    )
    def test_each_result_has_its_operands_and_symbol_and_a_leaf_has_none(self, make, symbol):
        a, b = Value(2.0), Value(3.0)
        result = make(a, b)
        assert result._op == symbol
        assert type(result._op) is str
        assert type(result._prev) is set
        assert result._prev in ({a}, {a, b})
        assert (a._prev, a._op) == (set(), "")

    def test_a_plain_number_among_the_operands_is_a_constant_that_stays_the_same(self):
        a = Value(2.0)
        result = a * 3
        (number,) = result._prev - {a}
        assert (number.data, number.requires_grad) == (3.0, False)
        assert result._prev == {a, number}
        result.backward()
        assert (a.grad, number.grad) == (3.0, 0.0)

    def test_calling_backward_node_by_node_as_the_lectures_do(self):
        x1, x2, w1, w2, b = (Value(number) for number in (2.0, 0.0, -3.0, 1.0, 6.8813735870195432))
        first, second = x1 * w1, x2 * w2
        both = first + second
        n = both + b
        o = n.tanh()
        o.grad = 1.0
        for node in (o, n, b, both, first, second):
            node._backward()
        assert [round(leaf.grad, 4) for leaf in (x1, w1, x2, w2)] == [-1.5, 1.0, 0.5, 0.0]
        assert b.grad == pytest.approx(0.5)

    def test_calling_backward_by_hand_adds_each_time_and_for_each_position(self):
        a = Value(3.0)
        square = a * a
        square.grad = 2.0
        square._backward()
        square._backward()
        assert a.grad == 2 * 2.0 * 6.0

    @pytest.mark.parametrize("kind", [tuple, list, set, iter])
    def test_a_hand_written_operation_takes_part_in_backward(self, kind):
        a, b = Value(2.0), Value(3.0)
        product = Value(a.data * b.data, kind([a, b]), "times")

        def backward():
            a.grad += b.data * product.grad
            b.grad += a.data * product.grad

        product._backward = backward
        assert (product._op, product._prev, product.is_leaf) == ("times", {a, b}, False)
        result = product * product + a
        result.backward()
        result.backward()
        assert (a.grad, b.grad) == (2 * (2 * 6.0 * 3.0 + 1.0), 2 * (2 * 6.0 * 2.0))

    def test_a_hand_written_operation_of_one_operand_twice_counts_its_closure_once(self):
        a = Value(3.0)
        square = Value(9.0, (a, a), "square")

        def backward():
            a.grad += 2 * a.data * square.grad

        square._backward = backward
        (square * 2).backward()
        assert (a.grad, square._prev) == (12.0, {a})

    def test_a_closure_may_be_assigned_to_the_result_of_an_operator(self):
        a, b = Value(2.0), Value(3.0)
        product = a * b

        def backward():
            a.grad += 10 * product.grad

        product._backward = backward
        assert product._backward is backward
        (product + 1).backward()
        assert (a.grad, b.grad, product._op, product._prev) == (10.0, 0.0, "*", {a, b})

    def test_a_closure_may_backpropagate_through_a_graph_of_its_own(self):
        weight, x = Value(0.5), Value(2.0)
        middle = x * 3
        again = Value(math.tanh(0.5 * 6.0), (middle, weight), "again")

        def backward():
            fresh = Value(middle.data)
            (fresh * weight).tanh().backward(again.grad)
            middle.grad += fresh.grad

        again._backward = backward
        (again * 2 + weight * x).backward()
        slope = 2 / math.cosh(3.0) ** 2
        assert (x.grad, weight.grad) == pytest.approx((slope * 0.5 * 3 + 0.5, slope * 6.0 + 2.0))

    def test_a_closure_gives_a_frozen_operand_no_gradient(self):
        frozen, b = Value(2.0, requires_grad=False), Value(3.0)
        product = Value(6.0, (frozen, b), "times")

        def backward():
            frozen.grad += b.data * product.grad
            b.grad += frozen.data * product.grad

        product._backward = backward
        product.backward()
        assert (frozen.grad, b.grad) == (0.0, 2.0)

    def test_an_operation_without_a_closure_says_so(self):
        a = Value(2.0, label="a")
        mystery = Value(5.0, (a,), "mystery")
        with pytest.raises(ValueError, match=r"mystery.*a = 2\.0.*_backward"):
            (mystery * 2).backward()
        mystery._backward()
        assert a.grad == 0.0
