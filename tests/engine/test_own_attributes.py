"""Attributes of one's own on a Value: any name, on any Value; copies and pickles keep them."""

import copy
import gc
import pickle

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.contexts.calls import neuron_call

# What pickle.dumps(Value(2.5, label="w"), 2) was when a Value had no attributes of its own.
OLD_LEAF = (
    b"\x80\x02cmicrograd.engine.copying\n_empty\nq\x00)Rq\x01N}q\x02(X\x05\x00\x00\x00_dataq\x03G@\x04\x00\x00\x00\x00"
    b"\x00\x00X\x06\x00\x00\x00_firstq\x04cmicrograd.engine.node\nNUMBER\nq\x05X\x05\x00\x00\x00_gradq\x06G\x00\x00"
    b"\x00\x00\x00\x00\x00\x00X\n\x00\x00\x00_primitiveq\x07cmicrograd.engine.primitive\nfind\nq\x08X\x04\x00\x00\x00"
    b"leafq\t}q\n\x86q\x0bRq\x0cX\x07\x00\x00\x00_secondq\rh\x05X\x05\x00\x00\x00_usesq\x0eK\x00X\x02\x00\x00\x00_xq"
    b"\x0f)X\x02\x00\x00\x00_yq\x10)X\x05\x00\x00\x00labelq\x11X\x01\x00\x00\x00wq\x12u\x86q\x13b."
)


def constant():
    with mg.no_grad():
        return Value(2.0) * 3.0


KINDS = {
    "leaf": lambda: Value(2.0),
    "frozen": lambda: Value(2.0, requires_grad=False),
    "result": lambda: Value(2.0) * 3.0,
    "constant": constant,
    "of a compiled function": lambda: mg.compile(lambda x: x * x, backend="numpy")(Value(2.0)),
}


@pytest.mark.parametrize("made", KINDS.values(), ids=KINDS.keys())
def test_every_value_takes_attributes(made):
    value = made()
    value.m, value._vis_color = 0.5, "red"
    setattr(value, "not an identifier", [1])
    assert (value.m, value._vis_color, getattr(value, "not an identifier")) == (0.5, "red", [1])
    assert value.label == ""
    del value.m
    with pytest.raises(AttributeError, match="'Value' object has no attribute 'm'"):
        value.m  # noqa: B018  # reading it is what raises


def test_an_optimiser_keeps_its_state_on_the_parameters():
    """Momentum, written as programs for micrograd write it, beside the optimiser of the library."""
    ours, theirs = [Value(1.0), Value(-2.0)], [Value(1.0), Value(-2.0)]
    optimizer = mg.optim.SGD(theirs, 0.1, momentum=0.9)
    for p in ours:
        p.m = 0.0
    for _ in range(5):
        for values in (ours, theirs):
            for p in values:
                p.grad = 0.0
            (values[0] ** 2 + values[0] * values[1]).backward()
        for p in ours:
            p.m = 0.9 * p.m + p.grad
            p.data -= 0.1 * p.m
        optimizer.step()
    assert [p.data for p in ours] == [p.data for p in theirs]


def test_results_have_attributes_of_their_own():
    x = Value(2.0)
    x.m = 1.0
    y = x * x
    assert not hasattr(y, "m")
    y.m = 2.0
    assert (x.m, y.m) == (1.0, 2.0)


@pytest.mark.parametrize("name", ["is_leaf", "_op", "_prev"])
def test_what_follows_from_the_graph_cannot_be_set(name):
    with pytest.raises(AttributeError):
        setattr(Value(2.0), name, 3)


def test_they_change_no_number_and_no_gradient():
    x = Value(3.0)
    x.m = y = x * x
    y.seen = True
    y.backward()
    assert (y.data, x.grad, repr(x)) == (9.0, 6.0, "Value(data=3.0, grad=6.0)")


def test_copies_and_pickles_keep_them(copied):
    x = Value(2.0, label="x")
    x.m, x.history = 0.5, [1.0, 2.0]
    y = x * x
    y._vis_color = "red"
    y_copy, x_copy = copied((y, x))
    assert (x_copy.m, x_copy.history, x_copy.label) == (0.5, [1.0, 2.0], "x")
    assert (y_copy._vis_color, y_copy.label) == ("red", "")
    assert x_copy.history is not x.history
    assert (copied(x).m, copied(x).history) == (0.5, [1.0, 2.0])  # also of a leaf alone
    x_copy.m = 7.0
    assert x.m == 0.5
    y_copy.backward()
    assert (x_copy.grad, x.grad) == (4.0, 0.0)


def test_the_copy_of_a_graph_alone_keeps_them_too(copied):
    x = Value(2.0)
    x.m = 0.5
    (x_copy,) = copied(x * x)._prev
    assert x_copy.m == 0.5


def test_values_in_them_are_shared_as_they_were(copied):
    x, shared = Value(2.0), Value(5.0)
    y = x * 3
    x.result, x.twin, shared.other = y, shared, x  # forward, and around in a circle
    for made in (copied((x, y, shared)), copied((y, shared, x))[2:]):
        x_copy = made[0]
        assert x_copy.twin.other is x_copy
        assert x_copy in x_copy.result._prev
    x_copy, y_copy, shared_copy = copied((x, y, shared))
    assert x_copy.result is y_copy
    assert x_copy.twin is shared_copy


@pytest.mark.slow
@pytest.mark.unmeasured
def test_a_long_chain_whose_leaf_refers_to_its_end_is_copied(copied):
    x = Value(1.0)
    chain = x
    for _ in range(3_000):
        chain = chain + x
    x.end = chain
    x_copy, chain_copy = copied((x, chain))
    assert x_copy.end is chain_copy
    assert copied(chain)._prev.pop() is not None


def test_a_shallow_copy_of_a_leaf_has_the_same_attributes_in_its_own_position():
    x = Value(2.0, label="x")
    x.history = [1.0]
    other = copy.copy(x)
    other.m = 3.0
    assert other.history is x.history
    assert (other.label, hasattr(x, "m")) == ("x", False)
    result = x * x
    result.m = 1.0
    assert copy.copy(result).m == 1.0


def test_the_call_of_a_neuron_is_not_copied(copied):
    output = mg.nn.Neuron(1)([Value(1.0)])
    output.m = 1.0
    output_copy = copied(output)
    assert output_copy.m == 1.0
    assert neuron_call(output) is not None
    assert neuron_call(output_copy) is None


def test_a_pickle_from_before_is_read():
    leaf = pickle.loads(OLD_LEAF)
    leaf.m = 1.0
    assert (leaf.data, leaf.label, leaf.requires_grad, leaf.m) == (2.5, "w", True, 1.0)


def test_setting_them_makes_no_cycle(without_collector):
    x = Value(2.0)
    for _ in range(10):
        y = x * x
        y.m = x.m = [1.0]
        y.backward()
    del x, y
    assert gc.collect() == 0


class TestNamesOfPyTorch:
    @pytest.mark.parametrize("made", KINDS.values(), ids=KINDS.keys())
    def test_item_is_the_plain_number(self, made):
        value = made()
        assert (type(value.item()), value.item()) == (float, value.data)

    def test_detach_is_a_constant_of_the_same_number(self):
        x = Value(3.0, label="x")
        constant = x.detach()
        (x * constant).backward()
        assert (constant.data, constant.requires_grad, x.grad, constant.grad) == (3.0, False, 3.0, 0.0)
        assert constant is not x

    def test_zero_grad_is_of_one_value(self):
        x, y = Value(3.0), Value(2.0)
        product = x * y
        product.backward()
        x.zero_grad()
        assert (x.grad, y.grad) == (0.0, 3.0)
        (x**3).backward(create_graph=True)
        x.zero_grad()
        assert type(x.grad) is float

    def test_in_transforms_and_under_no_grad(self):
        assert mg.grad(lambda x: x * x.detach() + x.item())(3.0) == 3.0
        assert mg.hessian(lambda x: x * x * x.detach())(3.0) == 6.0
        with mg.no_grad():
            assert (Value(2.0) * 3).item() == 6.0

    @pytest.mark.parametrize("backend", ["numpy", "llvm"])
    def test_in_compiled_functions(self, backend, own_cache):
        x = Value(3.0)
        mg.compile(lambda x: x * x.detach(), backend=backend)(x).backward()
        assert x.grad == 3.0
        for call in (lambda x: x * x.item(), lambda x: (x.zero_grad(), x)[1]):
            with pytest.raises(mg.TraceError):
                mg.compile(call, backend=backend)(x)
        assert x.grad == 3.0
