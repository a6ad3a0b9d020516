"""What a function closes over: a few variables are compared in one expression, and many in a map for each kind."""

from types import FunctionType

import pytest

import micrograd as mg
from micrograd import Value

COUNTS = pytest.mark.parametrize("count", [1, 3, 60])  # of variables: few of them are compared in one expression


def with_globals(count):
    """A function that reads so many global variables, and these."""
    names = [f"number_{i}" for i in range(count)]
    variables = dict.fromkeys(names, 1.0)
    code = compile(f"lambda x: x * ({' + '.join(names)})", "<formula>", "eval").co_consts[0]
    return FunctionType(code, variables), variables


@COUNTS
@pytest.mark.parametrize("kind", [float, Value])
def test_a_variable_that_is_replaced_or_deleted_is_noticed(count, kind):
    function, variables = with_globals(count)
    variables |= {name: kind(1.0) for name in variables}
    fast = mg.compile(function)
    for last in (1.0, 1.0, 4.0, 2.0, 2.0, -0.0, 0.0):
        variables[f"number_{count - 1}"] = kind(last)
        assert [float(mg.detach(fast(1.0))) for _ in range(2)] == [count - 1.0 + last] * 2
    del variables["number_0"]
    with pytest.raises(NameError):
        fast(1.0)
    variables["number_0"] = kind(5.0)
    assert float(mg.detach(fast(1.0))) == float(mg.detach(function(1.0)))


@COUNTS
def test_an_equal_number_is_the_same_but_not_one_of_another_class_or_sign(count):
    function, variables = with_globals(count)
    fast = mg.compile(function)
    for number in (2.0, float("2.0"), float("2.00")):  # not the same object
        variables["number_0"] = number
        assert fast(1.0) == count + 1.0
    before = fast.cache_info().traces
    variables["number_0"] = float("2.000")
    assert (fast(1.0), fast(1.0), fast.cache_info().traces) == (count + 1.0, count + 1.0, before)
    variables["number_0"] = 2
    assert (fast(1.0), fast.cache_info().traces) == (count + 1.0, before + 1)
    variables |= dict.fromkeys(variables, 0.0)
    fast(1.0)
    variables["number_0"] = -0.0
    before = fast.cache_info().traces
    fast(1.0)
    assert fast.cache_info().traces == before + 1


@pytest.mark.parametrize("name", ["class", "\N{LATIN SMALL LIGATURE FI}t", "plain"])
def test_attributes_that_cannot_be_written_after_a_dot_or_mean_another_one_there(name):
    item = type("Slotted", (), {"__slots__": (name,)})()
    setattr(item, name, 1.0)
    fast = mg.compile(lambda x: x * getattr(item, name))
    for number in (1.0, 2.0, 3.0):
        setattr(item, name, number)
        assert [fast(1.0), fast(1.0)] == [number, number]
    assert fast.cache_info().traces == 3


def test_a_cell_that_is_emptied_and_filled():
    scale = 2.0

    def function(x):
        return x * scale

    fast = mg.compile(function)
    assert [fast(1.0), fast(1.0)] == [2.0, 2.0]
    (cell,) = function.__closure__
    del cell.cell_contents
    with pytest.raises(NameError):
        fast(1.0)
    cell.cell_contents = 3.0
    assert [fast(1.0), fast(1.0)] == [3.0, 3.0]
