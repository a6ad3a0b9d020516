"""Gradients over shared parts and several calls, and cycles. Random programs have a module of their own."""

import pytest

import micrograd as mg
from micrograd import Value


class TestBackward:
    def test_leaves_accumulate_over_graphs_until_they_are_set_to_zero(self):
        a = Value(3.0)
        (a * a).backward()
        (a * 2).backward()
        assert a.grad == 8.0
        a.grad = 0
        (a * 2).backward()
        assert a.grad == 2.0

    def test_nodes_between_hold_the_gradient_of_the_last_call_only(self):
        a = Value(3.0)
        between = a * 2
        result = between * between
        for _ in range(3):
            result.backward()
            assert (between.grad, result.grad) == (12.0, 1.0)
        assert a.grad == 3 * 24.0

    def test_two_results_of_a_shared_part_each_pass_their_own_gradient(self):
        a = Value(3.0)
        shared = a * a
        first, second = shared * 2, shared + a
        first.backward()
        assert (a.grad, shared.grad) == (12.0, 2.0)
        second.backward()
        assert (a.grad, shared.grad) == (12.0 + 7.0, 1.0)

    def test_an_operand_used_many_times_gets_the_gradient_of_each_use(self):
        a = Value(2.0)
        result = a + a
        for _ in range(20):
            result = result + result
        result.backward()
        assert a.grad == 2.0**21


class TestCycles:
    def test_a_root_that_is_its_own_operand_raises(self):
        a = Value(2.0)
        root = a * a
        root._second = root
        with pytest.raises(ValueError, match="cycle"):
            root.backward()
        with pytest.raises(ValueError, match="cycle"):
            mg.topological_order(root)

    def test_a_cycle_deep_inside_raises_and_leaves_everything_usable(self):
        a, b = Value(2.0), Value(3.0)
        a.grad = 5.0
        first = a * b
        second = first + a
        first._second = second
        root = second.tanh() * b
        for _ in range(2):
            with pytest.raises(ValueError, match="cycle"):
                root.backward()
            assert (a.grad, b.grad) == (5.0, 0.0)
        (a * b).backward()
        assert (a.grad, b.grad) == (8.0, 2.0)

    def test_a_hand_written_operation_that_is_its_own_child_raises(self):
        a = Value(2.0)
        root = Value(4.0, (a,), "loop")
        root._backward = lambda: None
        root._x = (a, root)
        root._y = (2.0, 4.0)
        with pytest.raises(ValueError, match="cycle"):
            root.backward()

    def test_a_cycle_without_leaves_raises(self):
        first = -Value(2.0)
        second = -first
        first._first = second
        with pytest.raises(ValueError, match="cycle"):
            (second * 2.0).backward()
