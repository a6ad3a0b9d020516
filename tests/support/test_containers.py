"""Containers of the user's own classes, and of Python's, whose numbers are replaced by others."""

import time
from collections import defaultdict

import pytest

import micrograd as mg
from micrograd import Value


class Named(list):
    """It is not made without a name."""

    def __new__(cls, name):
        made = super().__new__(cls)
        made.name = name
        return made

    def __init__(self, name):
        super().__init__()

    def __getnewargs__(self):
        return (self.name,)


def test_a_list_that_is_not_made_without_arguments_keeps_its_class_and_attributes():
    weights = Named("weights")
    weights += [2.0, 3.0]
    for gradient in (mg.grad(lambda w: w[0] * w[1])(weights), mg.compile(lambda w: w, backend="numpy")(weights)):
        assert type(gradient) is Named
        assert gradient.name == "weights"
        assert gradient is not weights
    assert mg.grad(lambda w: w[0] * w[1])(weights) == [3.0, 2.0]
    assert weights == [2.0, 3.0]


def test_a_gradient_by_a_defaultdict_has_its_default():
    gradient = mg.grad(lambda counts: counts["a"] * 2.0)(defaultdict(float, a=1.0))
    assert gradient == {"a": 2.0}
    assert gradient["missing"] == 0.0


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_tuple_that_is_made_in_c_is_one_again(backend):
    moment = time.struct_time([2000.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0])

    def f(moment):
        return moment.tm_hour * moment.tm_min

    gradient = mg.grad(f)(moment)
    assert type(gradient) is time.struct_time
    assert (gradient.tm_hour, gradient.tm_min, gradient.tm_sec) == (4.0, 3.0, 0.0)
    fast = mg.compile(lambda moment: (moment, f(moment)), backend=backend)
    again, product = fast(time.struct_time(map(Value, moment)))
    assert type(again) is time.struct_time
    assert (again.tm_year.data, product.data) == (2000.0, 12.0)
