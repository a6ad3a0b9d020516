"""Kinds of exercises with questions that no chapter asks yet."""

from micrograd.learn.kinds.functions import Same


def test_arguments_that_are_no_floats_stay_as_they_are_and_have_no_gradient():
    kind = Same([([3.0], 2), ([2.0], 3)], reference=lambda xs, power: xs[0] ** power, gradients=True)
    assert kind.first_fault(lambda xs, power: xs[0] * xs[0] ** (power - 1)) is None
    wrong = kind.first_fault(lambda xs, power: xs[0] * power)
    assert wrong == "your function([3], 2): expected 9, not 6."


def test_a_function_may_give_a_list():
    kind = Same([([1.0, 2.0, 4.0],)], reference=lambda xs: [2 * x for x in xs])
    assert kind.first_fault(lambda xs: [x + x for x in xs]) is None
    assert kind.first_fault(lambda xs: [*xs]) == "your function([4]): expected [8], not [4]."
    assert kind.first_fault(lambda xs: 2 * xs[0]) == "your function([4]): expected [8], not 8."


def test_lists_that_belong_together_are_made_shorter_together_and_others_stay():
    kind = Same(
        [([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [[1.0], [2.0], [3.0]])],
        reference=lambda weights, xs, table: [sum(w * x for w, x in zip(weights, xs, strict=True)), table[2][0]],
    )
    wrong = kind.first_fault(lambda weights, xs, table: [weights[0] * xs[0], table[2][0]])
    assert wrong == "your function([2, 3, 4], [6, 7, 8], [[1], [2], [3]]): expected [65, 3], not [12, 3]."
