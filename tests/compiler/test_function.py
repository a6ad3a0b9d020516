"""What else is done with a compiled function: asked before it was called, copied, and sent to other processes."""

import copy
import pickle
from unittest.mock import Mock

import pytest

import micrograd as mg
from micrograd import Value


@mg.compile
def squared(x):
    return x * x


class Model:
    """A model that keeps its compiled loss."""

    def __init__(self):
        self.weight = Value(2.0)
        self.loss = mg.compile(lambda x: self.weight * x)


def f(x):
    return x * x


def test_a_function_without_arguments_needs_no_call_to_be_explained():
    w = Value(3.0)
    assert "kernels" in mg.compile(lambda: w * w).explain()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_compiled_function_of_a_module_is_pickled_by_its_name(protocol):
    assert pickle.loads(pickle.dumps(squared, protocol)) is squared


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_are_the_function_itself_as_those_of_functions_are(duplicate):
    fast = mg.compile(lambda x: x * x)
    assert duplicate(fast) is fast


def test_a_model_with_a_compiled_function_can_be_copied():
    model = Model()
    assert model.loss(2.0).data == 4.0
    twin = copy.deepcopy(model)
    assert twin.weight is not model.weight
    assert twin.loss is model.loss


BIASES = [Value(5.0), Value(7.0)]


class TestAValueThatIsGivenTwice:
    """Each position has a symbol of its own: where a function asks which is which, that is not the whole answer."""

    @pytest.mark.parametrize(
        "f",
        [
            lambda x, y: x * 2.0 if x == y else y,
            lambda x, y: x * 2.0 if x != y else y,
            lambda x, y: sum(p * p for p in (x, y, 3.0 * x) if p not in BIASES),
            lambda x, y: {x: 2.0, y: 3.0}[x] * y,
            lambda x, y: x * len({x, y, *BIASES}),
            lambda x, y: mg.gradient(x * y, [x])[0] * x,
            lambda x, y: mg.gradient(x * y * BIASES[0], [BIASES[0]])[0] * x,
            lambda x, y: mg.grad(lambda z: z * y)(x) * x,
        ],
    )
    @pytest.mark.unmeasured
    def test_it_is_known_again(self, f, backend):
        fast, (bias, other) = mg.compile(f, backend=backend), BIASES
        x, y = Value(2.0), Value(3.0)
        for given in ((x, y), (x, x), (y, x), (bias, x), (y, bias), (bias, other), (other, other), (x, y)):
            assert fast(*given).data == f(*given).data
            assert found(fast, given) == found(f, given)

    def test_it_costs_nothing_where_nobody_asks(self, backend):
        calls = Mock(side_effect=lambda x, y: mg.tanh(x * y) + mg.grad(lambda z: z * y)(x))
        fast, x = mg.compile(lambda *given: calls(*given), backend=backend), Value(2.0)
        assert len({fast(x, x).data for _ in range(3)}) == 1
        assert calls.call_count == 1


def found(f, given):
    """The gradients of what is given."""
    for value in given:
        value.grad = 0.0
    f(*given).backward()
    return [value.grad for value in given]
