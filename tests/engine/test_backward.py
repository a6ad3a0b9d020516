"""Gradients: against forward differentiation, over shared parts and several calls, and the order of the nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from tests.engine.common import programs, run, with_tangents
from tests.strategies import micrograds_example


class TestBackward:
    @given(program=programs())
    def test_gradients_agree_with_forward_differentiation(self, program):
        leaves, result = run(program)
        result.backward()
        numbers, steps = program
        duals = [(number, [float(index == leaf) for leaf in range(3)]) for index, number in enumerate(numbers)]
        for number, first, second in steps:
            duals.append(with_tangents(number, duals[first], duals[second]))
        value, tangents = duals[-1]
        size = max(abs(tangent) for _, row in duals for tangent in row) * max(1.0, *(abs(dual[0]) for dual in duals))
        assert result.data == pytest.approx(value, rel=1e-9, abs=1e-9)
        assert [leaf.grad for leaf in leaves] == pytest.approx(tangents, rel=1e-9, abs=1e-12 * max(size, 1.0))

    @given(program=programs(), exponent=st.integers(-8, 8), sign=st.sampled_from([-1.0, 1.0]))
    def test_the_gradient_argument_weighs_every_gradient(self, program, exponent, sign):
        leaves, result = run(program)
        result.backward()
        once = [leaf.grad for leaf in leaves]
        for leaf in leaves:
            leaf.grad = 0.0
        weight = sign * 2.0**exponent
        result.backward(gradient=weight)
        # a power of two scales exactly; only what becomes denormal is rounded
        weighed = [weight * gradient for gradient in once]
        assert [leaf.grad for leaf in leaves] == pytest.approx(weighed, rel=0, abs=1e-315)
        assert result.grad == weight

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

    def test_the_example_of_micrograd_gives_its_numbers(self):
        a, b = Value(-4.0), Value(2.0)
        g = micrograds_example(a, b)
        g.backward()
        assert f"{g.data:.4f} {a.grad:.4f} {b.grad:.4f}" == "24.7041 138.8338 645.5773"


class TestTopologicalOrder:
    @given(program=programs())
    def test_every_node_stands_once_after_its_operands_and_the_root_last(self, program):
        _, result = run(program)
        order = mg.topological_order(result)
        position = {node: index for index, node in enumerate(order)}
        assert len(position) == len(order)
        assert order[-1] is result
        for node in order:
            assert all(position[operand] < position[node] for operand in node._prev)


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
