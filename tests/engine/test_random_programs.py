"""Random expression graphs with shared parts: backpropagation against truths that share no code with it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.command.grammar import ExpressionError, ParsedExpression
from tests.engine.test_primitives import TRUTHS, exact, mp
from tests.strategies import Program, by_hand, lecture_order, programs

pytestmark = pytest.mark.slow

seeds = st.integers(0, 2**32 - 1)


def forward_mode(program: Program, values: list[Value]) -> list[tuple[object, object]]:
    """For each leaf the derivative of the last result in mpmath, and the sum of the sizes of its terms.

    The chain rule is run forwards, from each leaf to the end, at the numbers that the nodes recorded.
    Differences in the last places of a float are allowed in units of the sum of sizes: the terms may
    cancel, which no order of adding them up prevents.
    """
    gradients = []
    for chosen in range(len(program.inputs)):
        tangents = [(mp.mpf(index == chosen),) * 2 for index in range(len(program.inputs))]
        for primitive, indices in program.steps:
            inputs = exact(tuple(values[index].data for index in indices))
            tangent, size = mp.zero, mp.zero
            for index, derivative in zip(indices, TRUTHS[primitive.name].derivatives, strict=True):
                if derivative is not None:
                    slope = derivative(*inputs)
                    tangent += slope * tangents[index][0]
                    size += abs(slope) * tangents[index][1]
            tangents.append((tangent, size))
        gradients.append(tangents[-1])
    return gradients


def sizes(program: Program) -> list[float]:
    """For each leaf what rounding errors are a fraction of."""
    return [float(size) for _, size in forward_mode(program, program.run([Value(x) for x in program.inputs]))]


def backpropagated(program: Program) -> tuple[list[Value], Value]:
    """The leaves after backward() from the last result, and that result."""
    leaves = [Value(x) for x in program.inputs]
    root = program(*leaves)
    if root.requires_grad:
        root.backward()
    return leaves, root


def assert_close(gradients, expected, sizes):
    for gradient, other, size in zip(gradients, expected, sizes, strict=True):
        assert abs(gradient - other) <= 1e-13 * size


@given(programs(smooth=False))
def test_every_node_is_what_mpmath_makes_of_its_operands(program):
    values = program.run([Value(x) for x in program.inputs])
    for value, (primitive, indices) in zip(values[len(program.inputs) :], program.steps, strict=True):
        true = TRUTHS[primitive.name].forward(*exact(tuple(values[index].data for index in indices)))
        assert value.data == pytest.approx(float(true), rel=1e-14, abs=1e-300)


@settings(max_examples=80)
@given(programs(smooth=False))
def test_backward_against_the_chain_rule_run_forwards_in_mpmath(program):
    values = program.run([Value(x) for x in program.inputs])
    if values[-1].requires_grad:
        values[-1].backward()
    for leaf, (true, size) in zip(values, forward_mode(program, values), strict=False):
        assert abs(leaf.grad - true) <= 1e-13 * size


@given(programs(smooth=False))
def test_backward_twice_exactly_doubles_the_leaves(program):
    leaves, root = backpropagated(program)
    once = [leaf.grad for leaf in leaves]
    between = [node.grad for node in mg.topological_order(root) if not node.is_leaf]
    if root.requires_grad:
        root.backward()
    assert [leaf.grad for leaf in leaves] == [2 * gradient for gradient in once]
    assert [node.grad for node in mg.topological_order(root) if not node.is_leaf] == between


@given(programs(smooth=False), st.sampled_from([-8.0, 0.5, 0.0, 3.0]))
def test_backward_is_linear_in_its_gradient(program, weight):
    leaves, _ = backpropagated(program)
    weighted = [Value(x) for x in program.inputs]
    root = program(*weighted)
    if root.requires_grad:
        root.backward(weight)
    scaled = [abs(weight) * size for size in sizes(program)]
    assert_close([leaf.grad for leaf in weighted], [weight * leaf.grad for leaf in leaves], scaled)


def shuffled_order(root: Value, seed: int) -> list[Value]:
    """Any order that puts no node before its operands: each time one of those that can come next."""
    choose = random.Random(seed)
    waiting, order = lecture_order(root), []
    while waiting:
        ready = [node for node in waiting if node._prev.isdisjoint(waiting)]
        node = choose.choice(ready)
        waiting.remove(node)
        order.append(node)
    return order


@given(programs(smooth=False), seeds)
def test_backward_by_hand_in_the_order_of_the_lectures_or_in_any_other(program, seed):
    leaves, _ = backpropagated(program)
    for order in lecture_order, lambda root: shuffled_order(root, seed):
        others = [Value(x) for x in program.inputs]
        root = program(*others)
        if root.requires_grad:
            by_hand(root, order(root))
        assert_close([leaf.grad for leaf in others], [leaf.grad for leaf in leaves], sizes(program))


@given(programs(smooth=False))
def test_topological_order_has_every_node_once_and_after_its_operands(program):
    root = program(*(Value(x) for x in program.inputs))
    order = mg.topological_order(root)
    position = {node: index for index, node in enumerate(order)}
    assert len(position) == len(order)
    assert order[-1] is root
    assert position.keys() == set(lecture_order(root))
    assert all(position[operand] < position[node] for node in order for operand in node._prev)


def hand_written(primitive, *operands):
    """What a primitive does, as a lecture writes it: a node and a closure that adds to the operands' gradients."""
    inputs = [operand.data for operand in operands]
    out = Value(primitive.forward(*inputs), operands, primitive.symbol)

    def _backward():
        for operand, rule in zip(operands, primitive.derivatives, strict=True):
            if rule is not None:
                operand.grad += rule(out.grad, out.data, *inputs)

    out._backward = _backward
    return out


@given(programs(smooth=False), st.data())
def test_a_hand_written_backward_in_the_middle(program, data):
    chosen = data.draw(st.sets(st.integers(0, len(program.steps) - 1), min_size=1))
    steps = iter(range(len(program.steps)))

    def apply(primitive, *operands):
        return hand_written(primitive, *operands) if next(steps) in chosen else primitive(*operands)

    leaves, root = backpropagated(program)
    others = [Value(x) for x in program.inputs]
    by_closure = program.run(others, apply)[-1]
    assert by_closure.data == root.data
    if by_closure.requires_grad:
        by_closure.backward()
    assert_close([leaf.grad for leaf in others], [leaf.grad for leaf in leaves], sizes(program))


@given(programs(smooth=False))
def test_constants_among_the_leaves_change_no_other_gradient(program):
    leaves, _ = backpropagated(program)
    for frozen in range(len(program.inputs)):
        others = [Value(x, requires_grad=index != frozen) for index, x in enumerate(program.inputs)]
        root = program(*others)
        if root.requires_grad:
            root.backward()
        expected = [0.0 if index == frozen else leaf.grad for index, leaf in enumerate(leaves)]
        assert_close([leaf.grad for leaf in others], expected, sizes(program))


def test_text_that_no_parser_takes_is_refused():
    with pytest.raises(ExpressionError, match="at most 1000 operators"):
        ParsedExpression("-" * 9_000)({})
    with pytest.raises(ExpressionError, match="cannot stand"):
        ParsedExpression("1 + \0")({})
