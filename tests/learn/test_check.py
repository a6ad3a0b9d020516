"""mg.learn as a learner meets it: what it says to answers that are wrong, odd, or no answers at all."""

import itertools
import math
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.learn import deadline
from micrograd.learn.catalogue import EXERCISES
from micrograd.learn.exercise import answer_of, without
from micrograd.learn.exercises import chapter_03

pytestmark = pytest.mark.slow(together=True)

ENGINE = chapter_03.WITH_BACKWARD
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def said(number, answer):
    verdict = mg.learn.check(number, answer)
    assert not verdict
    return verdict.message


class TestWords:
    def test_a_verdict_is_true_or_false_and_prints_as_a_sentence(self):
        right, wrong = mg.learn.check("1.2", 2.0), mg.learn.check("1.2", -3.0)
        assert right
        assert not wrong
        assert str(right) == repr(right) == "1.2: right. If y grows by a little, f grows by x times as much."
        assert repr(wrong).startswith("1.2: not yet. It is not -3; the right number is larger.\nThat is y itself")

    def test_dots_are_no_answer_yet_and_no_try(self):
        assert said("1.2", ...) == "Put your answer in the place of the dots."
        assert repr(mg.learn.check("1.2", ...)) == "1.2: no answer yet"
        assert "1.2" not in mg.learn.progress().notes

    def test_a_question_is_what_the_exercise_asks(self):
        assert str(mg.learn.question("1.2")) == f"1.2 The other slope\n{EXERCISES['1.2'].question}"

    def test_a_long_question_is_wrapped_and_a_record_in_it_stays_as_it_is(self):
        text = str(mg.learn.question("2.4"))
        assert max(map(len, text.splitlines())) <= 100
        assert "\n\n    f -> d    1\n    f -> b    4\n" in text
        assert text.split()[6:] == EXERCISES["2.4"].question.split()

    def test_hints_come_one_after_the_other_and_the_last_one_stays(self):
        hints = [str(mg.learn.hint("1.2")) for _ in range(3)]
        assert hints[0] == "Hint 1 of 2: Nudge y by 0.01 and look at f."
        assert hints[1] == "Hint 2 of 2: (2 * -2.99 - 2 * -3) / 0.01 is the slope."
        assert hints[2] == hints[1] + '\nThere are no more; mg.learn.solution("1.2") shows one way.'

    def test_a_solution_is_python_that_is_right(self):
        text = mg.learn.solution("1.4")
        assert repr(text) == str(text)
        assert mg.learn.check("1.4", answer_of(text))


class TestNumbers:
    @pytest.mark.parametrize(
        ("number", "error", "says"),
        [
            ("2.33", ValueError, "there is no exercise '2.33': did you mean '2.3'?"),
            ("which node comes next?", ValueError, "did you mean '2.2'?"),
            ("", ValueError, "there is no exercise '': they go from '1.1' to"),
            (2.3, TypeError, 'an exercise is named by a text such as "2.3", not by float: 2.3'),
            (None, TypeError, "not by NoneType: None"),
        ],
    )
    @pytest.mark.parametrize("function", ["hint", "question", "solution", "check"])
    def test_unknown_ones_are_errors(self, number, error, says, function):
        arguments = [number, 1.0] if function == "check" else [number]
        with pytest.raises(error) as raised:
            getattr(mg.learn, function)(*arguments)
        assert says in str(raised.value)

    def test_spaces_around_one_do_not_matter(self):
        assert mg.learn.check(" 1.2 ", 2)

    @pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf])
    def test_a_limit_that_is_none_is_an_error(self, seconds):
        with pytest.raises(ValueError, match="seconds must be positive and finite, or None for no limit"):
            mg.learn.check("1.2", 2.0, seconds=seconds)
        with pytest.raises(TypeError, match="seconds must be a real number"):
            mg.learn.check("1.2", 2.0, seconds="long")


class TestAnswersThatAreNone:
    @pytest.mark.parametrize(
        ("number", "answer", "says"),
        [
            ("1.1", "six", "The answer must be a number, not str: 'six'"),
            ("1.1", True, "The answer must be a number, not bool: True"),
            ("1.1", None, "The answer is missing: is there a `return` with a number?"),
            ("1.1", math.nan, "The answer is NaN, which is no number"),
            ("1.1", -math.inf, "The answer is infinite"),
            ("1.1", 10**400, "The answer is larger than any float"),
            ("1.1", [1.0] * 1000, "The answer must be a number, not list: [1, 1, 1"),
            ("1.3", 3.0, "The answer is your function slope(f, x), not float: 3"),
            ("1.4", lambda x: [x, x], "your function(2): expected 10, not [2, 2]."),
            ("1.4", lambda x: None, "What your function(2) gave is missing: is there a `return` with a number?"),
            ("1.4", lambda: 1.0, "takes 0 positional arguments but 1 was given"),
            ("1.4", lambda x: x / 0, "your function(2) raised ZeroDivisionError: "),
            ("1.4", lambda x: sys.exit(), "your function(2) raised SystemExit"),
            ("1.6", 3.0, "The answer is a dict with a gradient for each name, such as {'f': 1.0, ...}, not 3"),
            ("1.6", {"f": 1.0}, "A gradient is missing for z, a, y, x"),
            ("1.6", {"ff": 1.0}, "Nothing here is called 'ff': did you mean 'f'?"),
            ("1.6", {"f": 1.0, 7: 1.0}, "Nothing here is called 7: asked for are f, z, a, y, x"),
            ("1.6", {"f": 1.0, "a": "4", "z": 0, "x": 0, "y": 0}, "The gradient of a must be a number, not str"),
            ("2.2", 7, "The answer is a list of names in the order of their visits"),
            ("2.2", ["f", "a"], "A visit is missing for b, y, x"),
            ("2.2", ["f", "b", "a", "x", "y", "f"], "f is there 2 times: each Value is visited once"),
            ("2.3", [12.0, 21.0], "The answer is a dict with a number for each path"),
            ("2.3", {3: 12.0}, "The answer is a dict whose keys are paths"),
            ("2.3", {"f -> x": 12.0}, "f -> x is no path from the result to x: follow the arrows"),
            ("2.4", "d", 'An edge leads from a result to one of its operands: "f -> a"'),
            ("2.4", "a -> d", "a contributes nothing to d: the gradient goes the other way"),
            ("2.4", "f -> z", "f contributes nothing to z"),
            ("2.6", ["z"], 'The answer is a dict such as {"x": \'unused\'}'),
            ("2.6", {"z": "off"}, "'off' is none of the reasons: 'unused', 'switched off', 'cancels', 'times zero'"),
            ("2.6", {"q": "unused"}, "Nothing here is called 'q'"),
            ("2.7", {"x": 1.0, "y": 2.0}, "The answer is a dict with the one input that changes"),
            ("2.7", {"w": 1.0}, "Nothing here is called 'w': asked for are x, y, z"),
            ("2.7", {"y": 1e308 * 10}, "The new number of y is infinite"),
            ("2.9", lambda x, y: 25.0, "where its arguments were Values; it must give a Value"),
            ("2.9", lambda x, y: "25", "must be a number, not str"),
            ("3.1", 7, "The answer is your class, Value, not 7"),
            ("3.1", Value, "This is mg.Value: hand over the class that you wrote yourself"),
            ("3.7", lambda root: None, "It gave None: return the list of Values"),
            ("3.7", lambda root: root, "It gave the Value f: return the list of Values"),
            ("3.7", lambda root: [1], "It gave 1 in its list, which is no Value of the graph"),
            ("4.1", lambda a: None, "it gave None: return the Value, `return out`"),
            ("4.1", mg.exp, 'its operands: begin with `out = Value(..., (a,), "exp")`'),
            ("4.2", lambda a, b: Value(a.data / b.data), "did not make its Value by hand"),
            ("4.4", 3, "The answer is one of 'a', 'b', 's', 'p', 'q', not 3"),
            ("4.4", "x", "'x' is not on the list: choose one of 'a', 'b', 's', 'p', 'q'"),
            ("4.7", 4, "The answer is the list of the results that are kept, such as [2, 5], not 4"),
            ("4.7", [0, 4], "The results are 1 to 16; there is no result 0"),
            ("4.7", ["4"], "What is kept must be a number, not str: '4'"),
            ("4.7", "four", "The answer is the list of the results that are kept, such as [2, 5], not 'four'"),
        ],
    )  # fmt: skip
    def test_each_is_told_what_is_wanted(self, number, answer, says):
        assert says in said(number, answer)

    def test_case_and_spaces_of_a_choice_do_not_matter(self):
        assert mg.learn.check("4.4", " P ")

    def test_a_value_is_as_good_as_its_number(self):
        assert mg.learn.check("1.2", Value(2.0))

    def test_an_object_whose_repr_raises_is_named_by_its_class(self):
        class Unfinished:
            def __repr__(self):
                return self.dta

        assert said("1.1", Unfinished()) == (
            "The answer must be a number, not Unfinished: an object of class Unfinished"
        )  # fmt: skip

    @pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit, type("Mine", (BaseException,), {})])
    def test_whatever_an_answer_raises_while_it_is_looked_at_is_a_verdict(self, kind):
        class Raising(float):
            def __float__(self):
                raise kind("from inside")

            __sub__ = __rsub__ = __eq__ = __lt__ = __gt__ = __hash__ = __abs__ = __float__

        for answer in (Raising(2.0), {"f": Raising(1.0)}, lambda x: Raising(1.0)):
            for number in ("1.2", "1.4", "1.6", "2.7"):
                assert not mg.learn.check(number, answer)
        said_of_x = said("1.6", {"f": 1.0, "z": 1.0, "a": 1.0, "y": 1.0, "x": Raising()})
        assert said_of_x == f"The gradient of x raised {kind.__name__}: from inside"

    @pytest.mark.parametrize("says", ["", None])
    def test_an_error_that_says_nothing_or_raises_itself_is_named(self, says):
        class OddError(Exception):
            def __str__(self):
                return says or [][0]

        class Raising(float):
            def __float__(self):
                raise OddError

            __sub__ = __rsub__ = __eq__ = __abs__ = __float__

        assert "raised OddError." in said("1.6", {"f": 1.0, "z": 1.0, "a": 1.0, "y": 1.0, "x": Raising()})


class TestWhatIsWrong:
    """Answers that are no known mistake, and what is said of them all the same."""

    def test_the_first_wrong_gradient_backwards_is_shown_with_its_contributions(self):
        text = said("2.1", {"x": 7.5, "w": 3.0})
        assert text == (
            "The first wrong one, backwards from f, is x: expected 8, not 7.5. "
            "It gets: b gives 2 (1 times 2); a gives 3 (1 times 3); a gives 3 (1 times 3); together 8."
        )

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            (-8.0, "Its size is right, its sign is not."),
            (0.0, "Nothing has arrived at x."),
            (2.0 + 3.0, "Only one of two contributions from a is there: x is its operand twice."),
            (6.0, "What comes by b -> x is missing."),
            (16.0, "It is twice what it should be: something is counted two times."),
            (4.0, "The contribution from b has the wrong sign."),
            (10.0, "The contribution from b is counted twice."),
        ],
    )
    def test_a_wrong_sum_is_told_from_a_forgotten_contribution(self, given, says):
        assert said("2.1", {"x": given, "w": 3.0}).split("together 8. ")[1].startswith(says)

    def test_every_valid_order_is_right(self):
        for order in ("f b a x y", "f b a y x", ["f", "b", "a", "y", "x"], "f -> b -> a -> x -> y"):
            assert mg.learn.check("2.2", order)
        assert "a is visited before b, whose contribution is still missing: what a passes" in said("2.2", "f a b y x")

    def test_every_input_that_reaches_it_will_do(self):
        assert mg.learn.check("2.7", {"z": 9.0})
        assert mg.learn.check("2.7", {"y": 7.0001})
        assert "(as before)" in said("2.7", {"x": -5.0})

    def test_other_ways_to_keep_little_are_right_too(self):
        for kept in ([5, 9, 13], (4, 8, 12, 14), {4, 8, 12}, range(4, 16, 4)):
            assert mg.learn.check("4.7", kept)

    def test_a_derivative_is_shown_beside_the_one_that_is_expected(self):
        assert said("1.4", lambda x: 3 * x * x - 2.001) == "your function(2): expected 10, not 9.999."
        assert mg.learn.check("1.4", lambda x: [3 * x * x - 2])

    def test_a_function_that_raises_for_some_numbers_is_told_what_was_expected(self):
        text = said("8.2", lambda one, other: abs(one - other) / max(abs(one), abs(other)) <= 1e-6)
        assert text == (
            "your function(0, 0) raised ZeroDivisionError: float division by zero; expected 1.\n"
            "your function(1, 1.0000001) is right; it must be right for all numbers."
        )
        assert said("1.4", lambda x: sys.exit()) == "your function(2) raised SystemExit; expected 10."

    def test_a_function_that_is_right_for_some_numbers_is_told_for_which(self):
        text = said("13.2", lambda x, slope, curvature: x - slope / abs(curvature))
        assert text == (
            "your function(1, 3, -1.5): expected 3, not -1.\n"
            "your function(3, 4, 2) is right; it must be right for all numbers."
        )

    def test_a_generator_that_never_ends_or_raises_is_named(self):
        def failing(weights, gradients, rate):
            yield weights[0] / 0

        call = "([-1], [0.5], 0.1) gave"
        text = said("7.1", lambda weights, gradients, rate: itertools.count())
        assert text == f"What your function{call} has more than 1000 items: does it end?"
        assert said("7.1", failing).startswith(f"What failing{call} raised ZeroDivisionError: ")

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (
                "self.grad += 1.0",
                "f had a gradient of 5 before f.backward(), and has 6 after it; expected 1, as the backward pass "
                "begins at f.",
            ),
            (
                "[setattr(node, 'grad', 0.0) for node in order_of(self)]; self.grad = 1.0",
                "x had a gradient of 10 before f.backward(), and has 1 after it; expected 11, as each use of a Value "
                "adds to its gradient.",
            ),
        ],
    )
    def test_gradients_that_were_there_before_are_added_to(self, change, says):
        assert says in said("3.8", answer_of(ENGINE.replace("self.grad = 1.0", change)))

    def test_a_program_is_shrunk_to_the_smallest_that_fails(self):
        text = said("3.8", answer_of(ENGINE.replace("self.grad += other.data * out.grad", "self.grad += 3 * out.grad")))
        assert text.startswith("For x = 2; f = x * x: the first wrong edge backwards is f -> x. Expected 4, not 5.")

    def test_a_product_that_overwrites_is_found_however_it_is_written(self):
        """This passed all tests of a course elsewhere."""
        wrong = ENGINE.replace(
            "self.grad += other.data * out.grad", "self.grad = 0 * self.grad + other.data * out.grad"
        )
        assert "Only one of two contributions from a is there" in said("3.8", answer_of(wrong))
        by_hand = """
def divide(a, b):
    out = Value(a.data / b.data, (a, b), "/")
    def _backward():
        one, other = out.grad / b.data, -out.data / b.data * out.grad
        a.grad, b.grad = a.grad + one, b.grad + other
    out._backward = _backward
    return out
"""
        assert "divide" not in said("4.2", answer_of(by_hand))

    def test_a_wrong_number_forward_comes_before_any_gradient(self):
        wrong = answer_of(EXERCISES["4.1"].solution.replace("math.exp(a.data)", "2.0 ** a.data"))
        assert said("4.1", wrong) == "For x = 2; f = exp(x): f is 4; expected 7.389."

    def test_a_reason_that_is_another_and_what_is_missing(self):
        assert said("2.6", {}).startswith("4 more are exactly zero.")
        assert "not because of 'cancels': its contributions do not add up to zero." in said("2.6", {"z": "cancels"})

    def test_a_path_that_is_missing_among_several(self):
        assert said("2.3", {}).startswith("There are 2 more paths to x.")

    def test_pairs_that_overlap_are_counted_each(self):
        """str.count jumps over what it has found: in "aaa" it sees one "aa"."""

        def counts(names, letters):
            return [[sum(f".{name}.".count(one + after) for name in names) for after in letters] for one in letters]

        assert said("10.1", counts).startswith("counts(['baaa'], '.ab'): expected")

    @pytest.mark.parametrize(
        ("old", "new", "says"),
        [
            ("self._prev = set(operands)", "self._prev = None", "x._prev is None; expected the set of its operands"),
            (
                "self._prev = set(operands)",
                "self._prev = {self}",
                "x._prev is not right: expected empty; it has 1 in it.",
            ),
            ("self._op = op", 'self._op = "?"', "x._op is '?'; expected ''."),
            ("self._op = op", "pass", "x has no _op: set self._op in __init__"),
            ("self.data = data", "self.data = str(data)", "The data of Value(2) must be a number, not str: '2.0'"),
            ("self.grad = 0.0", "self.grad = None", "The grad of x is missing"),
            ('return f"Value', 'return f"{self.nothing}', ""),
        ],
    )
    def test_what_a_class_forgets(self, old, new, says):
        verdict = mg.learn.check("3.4", answer_of(without(chapter_03.REMEMBERS, old, new)))
        assert bool(verdict) is (not says)
        assert says in verdict.message

    def test_a_class_whose_values_are_equal_by_number_cannot_be_put_into_a_set(self):
        code = chapter_03.REMEMBERS + "\n    def __eq__(self, other):\n        return self.data == other.data\n"
        assert "unhashable type: 'Value'" in said("3.4", answer_of(code))

    def test_a_class_with_a_hash_of_its_own_is_right_as_well_and_keeps_it(self):
        made = answer_of(ENGINE + "\n    def __hash__(self):\n        return 7\n")
        assert mg.learn.check("3.8", made)
        assert hash(made(1.0)) == 7

    def test_a_class_is_left_as_it_was(self):
        made = answer_of(ENGINE)
        before = dict(vars(made))
        assert mg.learn.check("3.8", made)
        assert dict(vars(made)) == before

    def test_a_gradient_that_leaks_to_a_value_before_any_backward_pass(self):
        code = chapter_03.NUMBER + chapter_03.ADDS.replace("return", "self.grad = 3.0\n        return")
        assert "the grad of x is 3 before any backward pass; expected 0." in said("3.2", answer_of(code))

    def test_a_function_that_changes_its_arguments_is_judged_by_what_it_gives(self):
        def log_sum_exp(numbers):
            numbers.sort(key=lambda number: getattr(number, "data", number))
            largest = numbers.pop()
            return largest + mg.log(1.0 + sum((mg.exp(number - largest) for number in numbers), 0.0))

        assert mg.learn.check("4.6", log_sum_exp)

    def test_a_derivative_that_raises_on_the_way_back_is_named(self):
        text = said("2.9", lambda x, y: mg.sqrt((x + y) ** 2) ** 2)
        assert "has no gradient: the derivative of sqrt(0.0)" in text or "it makes" in text
        text = said("4.5", lambda x, y: mg.sqrt(abs(x) * 0.0) + x * x / (x * x + y * y))
        assert "has no gradient: the derivative of sqrt(0.0)" in text

    def test_a_number_that_has_no_gradient_where_one_is_wanted(self):
        assert "expected [10, 10], not [0, 0]" in said(
            "2.9",
            lambda x, y: (x + y) * (x + y) if type(x) is float else Value((x.data + y.data) ** 2, requires_grad=False),
        )


class Contrary:
    """Raises whatever is asked of it."""

    def __init__(self, *_):
        pass

    def _refuse(self, *_):
        raise RuntimeError("no")

    __bool__ = __len__ = __iter__ = __float__ = __hash__ = __eq__ = __repr__ = __call__ = __add__ = __mul__ = _refuse
    data = grad = property(_refuse)


class AtTheBottomError(BaseException):
    """What no `except Exception` catches."""


class Unreadable:
    """Raises an error that is no Exception when its number is asked for."""

    def __float__(self):
        raise AtTheBottomError("no")

    __index__ = __int__ = __len__ = __iter__ = __bool__ = __eq__ = __hash__ = __float__


@dataclass
class Point:
    """Has an __eq__, and so no __hash__."""

    data: float
    grad: float = 0.0


ENDLESS = []
ENDLESS.append(ENDLESS)
ODD = [
    None, True, 0, math.nan, -math.inf, 10**400, 10**5000, 1j, "", "x", b"", "f -> a", [], [[]], ENDLESS, {}, {1: 2},
    {"x": []}, {"z": ["a"]}, {"x": None}, {"y": 10**400}, {"f -> s -> x": True}, set(), frozenset({2}), [True], [1.5],
    ["f", ["a"]], range(3), object(), NotImplemented, int, str, dict, type, type("Value", (), {}), Contrary, Contrary(),
    print, len, Value(2.0), np.ones(3), np.float32(2), np.array(2.0), lambda: 0, lambda *given: given,
    lambda *given: None, lambda *given: given[0], lambda *given: [object()], lambda *given: math.nan, lambda *given: {},
    lambda *given: "s", lambda *given: ENDLESS, lambda *given: Value(1.0), lambda *given: np.ones(2),
    lambda *given: Contrary(), lambda *given: [given[0]] * 3, lambda *given: iter([1]), itertools.count(),
    lambda *given: itertools.count(), lambda *given: [itertools.repeat(1.0)], Unreadable(), [Unreadable()],
    {"x": Unreadable()}, lambda *given: Unreadable(), lambda *given: (1 / 0 for _ in "ab"), Point, Point(1.0, 2.0),
    lambda *given: Point(1.0, 2.0), np.ones((2, 2)), np.array("f -> a"), np.array([None]), lambda *given: {1.0, 2.0},
]  # fmt: skip
OF_EACH_KIND = ["1.1", "1.3", "1.6", "2.2", "2.3", "2.4", "2.6", "2.7", "2.9", "3.1", "3.4", "3.7", "4.1", "4.4", "4.7",
                "9.2", "10.3"]  # fmt: skip


def test_an_error_that_is_no_exception_is_a_verdict_wherever_it_is_raised():
    class Number:
        def __init__(self, data):
            self.data = data

        @property
        def grad(self):
            raise AtTheBottomError("no")

    assert said("3.1", Number) == "Something in the answer raised AtTheBottomError: no"


@pytest.mark.slow
@pytest.mark.parametrize("number", OF_EACH_KIND)
def test_no_answer_is_so_odd_that_it_gets_anything_but_words(number):
    for answer in ODD:
        verdict = mg.learn.check(number, answer)
        assert verdict.message
        assert len(repr(verdict)) < 1500
    assert {type(EXERCISES[one].kind) for one in OF_EACH_KIND} == {type(e.kind) for e in EXERCISES.values()}


def test_what_an_answer_prints_is_not_shown(capsys):
    def slope(x):
        print("at", x)  # noqa: T201  # as a learner does who looks for a mistake
        return 3 * x * x - 2

    assert mg.learn.check("1.4", slope)
    assert capsys.readouterr().out == ""


def children():
    """The processes that this one has started, those that other tests have left to go on too, as Linux lists them."""
    return sorted(number for path in Path("/proc/self/task").glob("*/children") for number in path.read_text().split())


class TestWhatNeverEnds:
    @pytest.fixture(autouse=True)
    def in_a_child(self, in_this_process):
        deadline.set_timer(None)

    @forks
    def test_a_loop_is_stopped(self):
        def slope(x):
            while True:
                pass

        verdict = mg.learn.check("1.4", slope, seconds=0.2)
        assert not verdict
        assert verdict.message.startswith("It was stopped after 0.2 s: is there a loop that never ends?")

    @forks
    def test_so_is_one_that_catches_everything(self):
        def slope(x):
            while True:
                try:
                    while True:
                        pass
                except BaseException:  # noqa: PERF203
                    pass

        assert "It was stopped" in mg.learn.check("1.4", slope, seconds=0.1).message

    @forks
    def test_so_is_one_that_waits_in_c_or_in_a_thread(self):
        found = []
        held = threading.Lock()
        held.acquire()
        thread = threading.Thread(
            target=lambda: found.append(mg.learn.check("1.4", lambda x: held.acquire(), seconds=0.1))
        )
        thread.start()
        thread.join()
        assert "It was stopped" in found[0].message

    @forks
    @pytest.mark.parametrize(
        ("end", "how"),
        [(lambda x: os._exit(3), "exit code 3"), (lambda x: os.kill(os.getpid(), signal.SIGKILL), "signal 9")],
    )
    def test_an_answer_that_ends_its_process_ends_that_of_nobody_else(self, end, how):
        assert said("1.4", end) == f"It ended the process that it ran in ({how})."

    @forks
    def test_no_child_and_no_file_is_left(self):
        open_before, before = os.listdir("/dev/fd"), children()
        for answer in (lambda x: 3 * x * x - 2, lambda x: os._exit(1), lambda x: threading.Event().wait()):
            mg.learn.check("1.4", answer, seconds=0.1)
        assert os.listdir("/dev/fd") == open_before
        assert children() == before

    @forks
    def test_an_alarm_of_somebody_else_goes_on(self):
        rung = []
        before = signal.signal(signal.SIGALRM, lambda *_: rung.append(True))
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            assert mg.learn.check("1.2", 2.0)
            while not rung:  # pause() would wait for ever if another thread were given the alarm
                time.sleep(0.01)
            assert rung == [True]
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    def test_without_a_limit_it_runs_in_this_process(self):
        ran = []
        assert mg.learn.check("1.4", lambda x: ran.append(os.getpid()) or 3 * x * x - 2, seconds=None)
        assert set(ran) == {os.getpid()}

    def test_a_limit_of_a_thousand_years_is_one(self):
        assert mg.learn.check("1.2", 2.0, seconds=1e300)

    @forks
    @pytest.mark.parametrize("wakes", [True, False])
    def test_ctrl_c_goes_through_and_ends_the_child(self, wakes):
        """Also where it does not wake this thread, as when it comes just before the thread sleeps."""
        began, go_on = os.pipe()

        def slope(x):
            os.write(go_on, b"!")
            while True:
                with suppress(BaseException):
                    threading.Event().wait()

        def press():
            os.read(began, 1)
            main = threading.main_thread().ident
            while sys._current_frames()[main].f_code.co_name != "select":
                time.sleep(0.001)  # Python loses what is raised in the functions that it calls after a fork
            os.kill(os.getpid(), signal.SIGINT)

        before = children()
        thread = threading.Thread(target=press)
        thread.start()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [] if wakes else [signal.SIGINT])
        try:
            with pytest.raises(KeyboardInterrupt):
                mg.learn.check("1.4", slope, seconds=600)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        thread.join()
        assert children() == before
        os.close(began)
        os.close(go_on)

    @forks
    def test_what_an_answer_prints_and_changes_stays_in_the_child(self, capfd):
        changed = []

        def slope(x):
            sys.stdout.write("a line\n")
            changed.append(x)
            return 3 * x * x - 2

        assert mg.learn.check("1.4", slope)
        assert changed == []
        assert capfd.readouterr() == ("", "")

    @pytest.mark.slow
    @forks
    @pytest.mark.parametrize("number", ["1.4", "3.8", "9.2", "10.1"])
    @pytest.mark.unmeasured
    def test_verdicts_are_those_of_this_process(self, number):
        exercise = EXERCISES[number]
        for source in (exercise.solution, *(mistake.answer(exercise.solution) for mistake in exercise.mistakes)):
            answer = answer_of(source)
            assert mg.learn.check(number, answer) == mg.learn.check(number, answer, seconds=None)

    @forks
    def test_an_answer_that_raises_it_is_wrong(self):
        def slope(x):
            raise KeyboardInterrupt

        assert said("1.4", slope) == "Something in the answer raised KeyboardInterrupt."

    def test_without_a_limit_it_goes_through(self):
        def slope(x):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            mg.learn.check("1.4", slope, seconds=None)

    @forks
    @pytest.mark.parametrize("error", [None, BlockingIOError])
    def test_where_there_are_no_further_processes_it_runs_in_this_one(self, monkeypatch, error):
        def fork():
            raise error

        if error:
            monkeypatch.setattr(os, "fork", fork)
        else:
            monkeypatch.delattr(os, "fork")
        ran = []
        assert mg.learn.check("1.4", lambda x: ran.append(os.getpid()) or 3 * x * x - 2)
        assert set(ran) == {os.getpid()}

    @forks
    @pytest.mark.parametrize("error", [None, KeyboardInterrupt])
    def test_what_the_child_does(self, monkeypatch, error):
        """Nobody measures the child itself: here this process takes its part, up to its end."""
        done = []

        def slope(x):
            if error:
                raise error
            return 3 * x * x - 2

        def end(code):
            raise RuntimeError(f"ended with {code}")

        monkeypatch.setattr(os, "fork", lambda: 0)
        monkeypatch.setattr(os, "_exit", end)
        monkeypatch.setattr(signal, "signal", lambda *said: done.append(said))
        monkeypatch.setattr(signal, "setitimer", lambda *said: done.append(said))
        with pytest.raises(RuntimeError, match="ended with 0"):
            mg.learn.check("1.4", slope, seconds=3)
        assert done == [(signal.SIGINT, signal.SIG_IGN), (signal.SIGALRM, signal.SIG_DFL), (signal.ITIMER_REAL, 4.0)]

    def test_on_a_page_the_page_is_told_how_long_it_may_run(self):
        told, ran = [], []
        deadline.set_timer(told.append)
        try:
            assert mg.learn.check("1.4", lambda x: ran.append(os.getpid()) or 3 * x * x - 2)
            with pytest.raises(KeyboardInterrupt):
                mg.learn.check("1.4", lambda x: signal.raise_signal(signal.SIGINT), seconds=2)
        finally:
            deadline.set_timer(None)
        assert told == [10.0, 0.0, 2.0, 0.0]
        assert set(ran) == {os.getpid()}

    def test_an_endless_recursion_is_an_error_like_others(self):
        def slope(x):
            return slope(x)

        assert "slope(2) raised RecursionError" in said("1.4", slope)


def test_it_loads_when_it_is_asked_for():
    import subprocess

    loaded = "print('micrograd.learn' in sys.modules)"
    code = f"import sys, micrograd as mg; {loaded}; mg.learn; {loaded}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="module 'micrograd' has no attribute 'lern'"):
        _ = mg.lern


def test_a_part_that_is_not_in_a_solution_is_an_error():
    with pytest.raises(ValueError, match="'b' is not in the solution"):
        without("a", "b", "c")
