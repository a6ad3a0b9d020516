"""Pickling and deep-copying Values, graphs and models."""

import pickle

import pytest

import micrograd as mg
from micrograd import Value


def test_a_leaf_keeps_its_number_gradient_label_and_freedom(copied):
    leaf = Value(2.5, label="weight")
    leaf.grad = -1.5
    frozen = Value(1.0, requires_grad=False)
    leaf_copy, frozen_copy = copied((leaf, frozen))
    assert (leaf_copy.data, leaf_copy.grad, leaf_copy.label, leaf_copy.requires_grad) == (2.5, -1.5, "weight", True)
    assert not frozen_copy.requires_grad
    assert leaf_copy is not leaf


def test_the_copy_of_a_graph_backpropagates_by_itself(copied):
    x, y = Value(2.0), Value(3.0)
    root = mg.where(True, x * y, 0.0) + mg.leaky_relu(x) / 2
    root_copy, x_copy, y_copy = copied((root, x, y))
    root_copy.backward()
    assert (x_copy.grad, y_copy.grad) == (3.5, 2.0)
    assert (x.grad, y.grad) == (0.0, 0.0)


@pytest.mark.parametrize("root_first", [True, False])
def test_what_two_roots_contribution_their_copies_contribution(copied, root_first):
    x = Value(2.0)
    middle = x * x
    root = middle + 1
    parts = copied([root, middle, x] if root_first else [middle, root, x])
    root_copy, middle_copy = parts[:2] if root_first else parts[1::-1]
    root_copy.backward()
    assert middle_copy in root_copy._prev
    assert middle_copy.grad == 1.0
    assert parts[2].grad == 4.0


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_chain_of_any_depth_can_be_copied(copied):
    x = Value(1.0)
    chain = x
    for _ in range(20_000):
        chain = chain + x
    chain_copy, x_copy = copied((chain, x))
    chain_copy.backward()
    assert x_copy.grad == 20_001


def test_a_model_and_its_loss_are_copied_together(copied):
    model = mg.nn.MLP(2, [3, 1])
    loss = mg.losses.mean_squared_error(model([1.0, -2.0]), 0.5)
    model_copy, loss_copy = copied((model, loss))
    loss.backward()
    loss_copy.backward()
    assert [p.grad for p in model_copy.parameters()] == [p.grad for p in model.parameters()]


def test_copies_made_one_after_the_other_are_independent(copied):
    x = Value(2.0)
    root = x * x
    first, second = copied(root), copied(root)
    first.backward()
    assert second._prev.pop().grad == 0.0


def test_a_hand_written_operation_refuses_to_be_copied(copied):
    x = Value(2.0)
    out = Value(4.0, (x,), "square")
    out._backward = lambda: None
    with pytest.raises(TypeError, match="'square' cannot be copied"):
        copied(out + 1)


def test_an_unknown_primitive_is_named_when_a_pickle_is_read():
    text = pickle.dumps(mg.exp(Value(1.0)), 0).replace(b"Vexp\n", b"Vunheard_of\n")
    with pytest.raises(ValueError, match="'unheard_of'"):
        pickle.loads(text)
