"""Kinds of exercises with questions that no chapter asks yet."""

from micrograd.learn.kinds.functions import Same


def test_arguments_that_are_no_floats_stay_as_they_are_and_have_no_gradient():
    kind = Same(lambda xs, power: xs[0] ** power, [([3.0], 2), ([2.0], 3)], "takes a list and a power", gradients=True)
    assert kind.first_fault(lambda xs, power: xs[0] * xs[0] ** (power - 1)) is None
    wrong = kind.first_fault(lambda xs, power: xs[0] * power)
    assert wrong == "your function([3], 2): expected 9, not 6."


def test_a_function_may_give_a_list():
    kind = Same(lambda xs: [2 * x for x in xs], [([1.0, 2.0, 4.0],)], "doubles each number of a list")
    assert kind.first_fault(lambda xs: [x + x for x in xs]) is None
    assert kind.first_fault(lambda xs: [*xs]) == "your function([4]): expected [8], not [4]."
    assert kind.first_fault(lambda xs: 2 * xs[0]) == "your function([4]): expected [8], not 8."
