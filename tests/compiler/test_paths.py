"""Decisions on numbers in compiled functions: each way through a function is a program, and equals eager."""

import itertools
import math
import re
import signal
import threading
import warnings

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value

pytestmark = pytest.mark.slow(together=True)

W = Value(2.0)


def outcome(function, *arguments):
    """What a call gives, with its gradients; or the error."""
    W.grad = 0.0
    given = [Value(x.data) if isinstance(x, Value) else x for x in arguments]
    try:
        result = function(*given)
        results = result if isinstance(result, tuple) else (result,)
        if values := [each for each in results if isinstance(each, Value)]:
            sum(values, Value(0.0)).backward()
    except (ArithmeticError, ValueError, IndexError, AssertionError) as error:
        return str(error)
    numbers = [x.data if isinstance(x, Value) else x for x in results]
    slopes = [W.grad, *[x.grad for x in given if isinstance(x, Value)]]
    return repr([numbers, slopes, list(map(type, results))])


def leaky(x):
    if x > 0:
        return x * W
    return 0.01 * x * W


def newton(x):
    root = x
    for _ in range(50):
        if abs(root * root - x) <= 1e-9 * x:
            break
        root = 0.5 * (root + x / root)
    return root * W


def largest(x):
    return max(x, W, -x) * W + min([x, 1.0]) - sorted([x, W, 0.5], reverse=True)[0]


def skipping(x):
    total = 0.0
    for step in range(6):
        if x * step < 2:
            continue
        total = total + x * step * W
        if total > 30:
            break
    else:
        total = -total
    return total


FUNCTIONS = [leaky, newton, largest, skipping]
POINTS = [0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 3.7, -2.3, 5.0, 6.5, math.nan, math.inf, 1e308, 1.0]


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_decides_as_it_does_eagerly(function, backend):
    fast = mg.compile(function, backend=backend)
    for x in POINTS:
        for given in (Value(x), x):
            for weight in (2.0, -0.5, 0.0):
                W.data = weight
                assert outcome(fast, given) == outcome(function, given), (x, weight)
    W.data = 2.0


WHOLE = {
    "int": int,
    "round": round,
    "round with None": lambda x: round(x, None),
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::micrograd.GradientWarning")  # eager, of round
@pytest.mark.parametrize("name", WHOLE)
def test_the_int_of_a_number_is_this_call_s(name, backend):
    whole = WHOLE[name]

    def f(x):
        rows = [10.0, 20.0, 30.0, 40.0]
        return x * W * rows[whole(x) % 4] + sum(range(abs(whole(x * W + 0.25)))), whole(x)

    fast = mg.compile(f, backend=backend)
    points = 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999999999999994, 3.0, -0.3, math.nan, math.inf
    for x in points[:: 3 if backend == "jax" else 1]:  # whose compiler takes long for each way
        for given in (Value(x), x):
            assert outcome(fast, given) == outcome(f, given), x
    assert outcome(mg.compile(lambda: whole(W) * W)) == outcome(lambda: whole(W) * W)


def test_numbers_that_are_ints_bools_and_whole():
    def f(n, flag, x):
        if n == 2 or n in range(5, 7):
            return W * n
        if flag[0]:
            return W * int(n)
        return W if x.is_integer() else -W

    fast = mg.compile(f)
    for n, flag, x in itertools.product((2, 3, 5, 6, 9), (True, False), (1.0, 1.5)):
        arguments = n, np.array([flag]), x
        assert outcome(fast, *arguments) == outcome(f, *arguments), arguments


def test_each_way_is_traced_once_and_only_where_it_is_taken(backend):
    fast = mg.compile(leaky, backend=backend)
    for x in (1.0, 2.0, -1.0, 3.0, -2.0, 0.0):
        fast(x)
    info = fast.cache_info()
    assert (info.programs, info.traces) == (1, 2)
    assert info.program_bytes > mg.compile(leaky).cache_info().program_bytes


def test_a_question_in_a_wrong_branch_raises_nothing(backend):
    def f(x):
        if x > 0:
            return mg.log(x) * W if mg.sqrt(x) > 1 else 1 / x
        return -x * W

    fast = mg.compile(f, backend=backend)
    for x in (4.0, -4.0, 0.25, 0.0, -1.0, 9.0, -1e308, math.nan):
        assert outcome(fast, Value(x)) == outcome(f, Value(x)), x


def test_a_number_that_cannot_be_computed_is_decided_eagerly():
    def f(x):
        return x * W if 1 / x > 2 else -x * W

    def beyond(x):
        index = [3, 1, 2][n] if (n := int(x)) < 3 else n
        return x * W if mg.take([1.0, 2.0, 3.0, 5.0], index) > mg.log(x + 1.0) else x

    def caught(x):
        try:
            found = 1 / x > 2
        except TypeError:  # also of a TraceError
            found = False
        return x * W if found else W

    for function in (f, beyond, caught):
        fast = mg.compile(function)
        for x in (0.0, 0.0, 0.25, 4.0, 0.0, 1.0):
            assert outcome(fast, x) == outcome(function, x)
    with pytest.raises(ZeroDivisionError):
        mg.compile(f)(0.0)
    with pytest.raises(TraceError, match="cannot be computed for these arguments"):
        mg.compile(f).explain(0.0)


def test_an_error_that_the_function_swallows_is_not_forgotten():
    def f(x):
        try:
            return x * W if 1 / x > 2 else -x
        except TypeError:
            return x

    with pytest.raises(ZeroDivisionError):
        mg.compile(f)(0.0)


def test_powers_and_taken_comparisons_may_be_asked():
    def f(x, i):
        if x**2 > 0.09 and mg.take([x > W, x < W], i):
            return x * W
        return W

    for first in (0.3, math.nan, 5.0):
        fast = mg.compile(f)
        for x, i in itertools.product((first, 0.1, 3.0, 0.3), (0, 1)):
            assert outcome(fast, x, i) == outcome(f, x, i)
    assert outcome(mg.compile(lambda x: W * int(x)), math.nan) == "cannot convert float NaN to integer"


def test_a_path_that_raises_raises_as_it_does_eagerly():
    def f(x):
        if x < 0:
            raise ValueError(f"{x} is negative")
        if x > 5:
            f"{x}"  # which raises nothing
        return x * W

    fast = mg.compile(f)
    for x in (-1.0, 1.0, -2.0, 2.0, -1.0):
        assert outcome(fast, x) == outcome(f, x)
    with pytest.raises(TraceError, match="the text of a number"):
        fast(6.0)
    assert fast(1.0).data == 2.0


def test_what_rounding_might_decide_is_decided_eagerly(backend):
    def f(x, y, z):
        if x + y + z > 0.6:
            return W * x
        return W * y if x * y + z * x != 0 and not x * y + z * z < 0.1 else W * z

    def times(x):
        time, count = 0.0, 0
        while time < 1.0:
            time, count = time + x, count + 1
        return W * count + round(x * 5 + x * 5)

    fast, counted = mg.compile(f, backend=backend), mg.compile(times, backend=backend)
    for arguments in itertools.permutations((0.1, 0.2, 0.3)):
        assert outcome(fast, *arguments) == outcome(f, *arguments)
    for x in (0.1, 0.25, 0.1, 0.05, 1 / 3, 0.7):
        assert outcome(counted, x) == outcome(times, x)


def test_dot_products_absolutes_and_takes_may_be_asked():
    def f(xs, i):
        total = mg.dot(xs, [0.1, 0.2, 0.3])
        if abs(-total) > mg.take([0.5, 1.5], i) or mg.detach(total) * 2.0 < mg.dot(xs, xs):
            return total * W
        return mg.dot(xs, xs) * W if mg.dot(xs, [W, W, W]) > 1 else W

    fast = mg.compile(f)
    for xs in itertools.product((0.0, 1.0, 3.0), repeat=3):
        for i in (0, 1):
            assert nearly(outcome(fast, list(xs), i), outcome(f, list(xs), i))


def nearly(found, expected):
    """Whether two outcomes are the same, up to rounding."""
    found, expected = (re.split(r"(-?\d[-+.e\d]*)", text) for text in (found, expected))
    return found[::2] == expected[::2] and [*map(float, found[1::2])] == pytest.approx([*map(float, expected[1::2])])


def test_derivatives_inside_ask_too(backend):
    def f(x):
        slope = mg.grad(lambda y: y * y * W if y > 1 else mg.sin(y))(x)
        value, other = mg.value_and_grad(lambda y: max(y, W) * y)(x)
        curved = mg.hessian(lambda ys: ys[0] ** 3 * ys[1] if ys[0] > ys[1] else ys[1] ** 2 * ys[0])([x, W])
        return slope * value + other if slope > 0.5 else slope + curved[0][0] * curved[0][1]

    fast = mg.compile(f, backend=backend)
    for x in (0.5, 1.0, 2.0, 2.5, -1.0, 3.0):
        assert nearly(outcome(fast, Value(x)), outcome(f, Value(x)))


@pytest.mark.slow
@pytest.mark.unmeasured
def test_iterations_of_loops_ask_one_by_one(backend):
    def f(xs):
        mapped = mg.vmap(lambda x: x * W if x > 0 else -x)(xs)
        last, outputs = mg.scan(lambda h, x: (h * 0.5 + x if h > x else h - x * W, max(h, x)), 0.5, mapped)
        return last + sum(outputs)

    fast = mg.compile(f, backend=backend)
    every = 16 if backend == "jax" else 5  # whose compiler takes long for each way
    for signs in itertools.islice(itertools.product((1.0, -1.0), repeat=6), 0, 64, every):
        xs = [sign * (n + 0.5) for n, sign in enumerate(signs)]
        assert nearly(outcome(fast, xs), outcome(f, xs))


def test_compiled_functions_inside_of_others_ask():
    inner = mg.compile(lambda x: x * W if x > 1 else x)
    outer = mg.compile(lambda x: inner(x) + inner(-x) if x > -2 else inner(x) * 3)
    for x in (0.5, 1.5, -1.5, -3.0, 1.0):
        assert outcome(outer, x) == outcome(outer.function, x)


def test_several_results_graphs_and_no_grad():
    def f(x):
        if x * W > 1:
            return x * W, mg.exp(x), 3
        return (x - W,)

    fast = mg.compile(f)
    for x in (1.0, 0.1, 2.0, -1.0):
        assert outcome(fast, Value(x)) == outcome(f, Value(x))
        with mg.no_grad():
            assert [float(r) for r in fast(Value(x))] == [float(r) for r in f(Value(x))]
    cubed = mg.compile(lambda x: x**3 if x > W else x**2)
    for point, second in ((3.0, 18.0), (1.0, 2.0)):
        x = Value(point)
        slope = mg.gradient(cubed(x), x, create_graph=True)
        assert mg.gradient(slope, x) == second


def test_under_no_grad_the_paths_are_others():
    def f(x):
        slope = mg.grad(lambda y: y * y * y)(x)
        return slope * W if slope > 3 else -slope

    fast = mg.compile(f)
    for x in (2.0, 0.5, -2.0, 0.1):
        with mg.no_grad():
            assert float(fast(x)) == float(f(x))
        assert float(fast(x)) == float(f(x))


def test_what_only_decides_runs_eagerly_and_right():
    fast = mg.compile(lambda x: "above" if x > W else "below")
    assert [fast(x) for x in (3.0, 1.0, 2.0, 3.0)] == ["above", "below", "below", "above"]


def test_a_formula_that_decides_is_no_question():
    def f(x):
        return mg.gelu(x) if x > 0 else mg.elu(x, 1.0)

    fast = mg.compile(f)
    for x in (1.0, -1.0, 0.0):
        assert outcome(fast, Value(x)) == outcome(f, Value(x))
    assert fast.cache_info().traces == 2


def test_each_pass_keeps_the_answers():
    def f(x, y):
        return (x * W, y) if x * x + y * y > 1 else (y * W * mg.exp(x), x)

    def g(x):
        return x * W if x > 1 else -x

    for function, points in (f, [(1.0, 2.0), (0.1, 0.2)]), (g, [(2.0,), (0.0,)]):
        fast = mg.compile(function, verify=True)
        for point in points:
            given = [Value(x) for x in point]
            assert nearly(outcome(fast, *given), outcome(function, *given))


def test_in_float32_what_rounding_might_decide_is_decided_eagerly(backend):
    def f(x):
        return W * x if x > 1.0 else W + x

    fast = mg.compile(f, backend=backend, precision="float32")
    for x in (1.0, 1.0 + 1e-9, 1.0 - 1e-9, 3.0, 0.0):
        assert float(fast(x)) == pytest.approx(float(f(x)), rel=1e-6)


def test_paths_that_are_outdated_one_by_one():
    class Setting:
        pass

    above, below = Setting(), Setting()
    above.factor, below.factor = 2.0, 3.0

    def f(x):
        return x * W * (above if x > 0 else below).factor

    fast = mg.compile(f)
    for _ in range(3):
        above.factor += 1.0
        assert [fast(x).data for x in (-1.0, 1.0, -1.0)] == [f(x).data for x in (-1.0, 1.0, -1.0)]
        below.factor += 1.0
        assert [fast(x).data for x in (-1.0, 1.0, -1.0)] == [f(x).data for x in (-1.0, 1.0, -1.0)]


@pytest.mark.parametrize("questions", [1, 9])
def test_a_function_that_changes_what_it_reads_runs_once_in_a_call(questions):
    results = []
    for compiles in (False, True):
        calls = []

        def f(x, calls=calls):
            calls.append(None)
            return sum(x * len(calls) if x > number else -x for number in range(questions))

        run = mg.compile(f, backend="numpy") if compiles else f
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is traced in each call
            results.append([run(x) for x in (0.5, -1.0, 2.5, 0.25, -3.0)])
        assert len(calls) == 5
    assert results[1] == pytest.approx(results[0])


_counted = []


def test_a_function_that_counts_on_one_path_counts_each_call_once():
    def f(x):
        for number in range(9):
            if x > number + 100.0:
                _counted.append(None)
                x = x * 0.9
            else:
                x = x + 1.0
        return x

    fast, given = mg.compile(f, backend="numpy"), (0.5, 150.0, 1.5, 105.0, 300.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is traced in each call that counts
        found = [fast(x) for x in given]
    counted = len(_counted)
    assert found == pytest.approx([f(x) for x in given])
    assert counted == len(_counted) - counted


def test_a_path_alone_is_traced_again_where_gradients_are_wanted_elsewhere():
    above, below = Value(2.0), Value(3.0)

    fast = mg.compile(lambda x: x * above if x > 0 else x * below)
    for wanted in (True, False, True):
        below.requires_grad = wanted
        for x in (1.0, -1.0, -2.0, 2.0):
            result = fast(x)
            above.grad = below.grad = 0.0
            if result.requires_grad:
                result.backward()
            assert (above.grad, below.grad) == ((x, 0.0) if x > 0 else (0.0, x * wanted))


def test_a_block_without_gradients_asks_too():
    def f(x):
        with mg.no_grad():
            sign = 1.0 if W and x * W > 1 else -1.0
        return sign * x * W

    fast = mg.compile(f)
    for x in (1.0, 0.1, 3.0):
        assert outcome(fast, Value(x)) == outcome(f, Value(x))


def test_threads_take_different_paths():
    fast, wrong = mg.compile(leaky), []

    def run(sign):
        for n in range(200):
            x = sign * (n % 7 + 0.5)
            point = Value(x)
            result = fast(point)
            if (result.data, mg.gradient(result, point)) != (leaky(x).data, 2.0 if x > 0 else 0.02):
                wrong.append(x)

    threads = [threading.Thread(target=run, args=(sign,)) for sign in (1.0, -1.0, 1.0, -1.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_interrupt_while_a_new_path_is_traced_leaves_the_others():
    interrupted = []

    def f(x):
        if x > 0:
            return x * W
        if interrupted:
            raise interrupted.pop()
        return -x * W

    fast = mg.compile(f)
    assert fast(1.0).data == 2.0
    interrupted.append(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        fast(-1.0)
    assert (fast(1.0).data, fast(-1.0).data, fast(1.0).data) == (2.0, 2.0, 2.0)


def steps_of(x):
    count = 0
    while x * W > count:
        count += 1
    return x * count * W


def test_the_path_that_was_not_taken_for_longest_is_given_up(monkeypatch):
    monkeypatch.setattr("micrograd.compiler.calling.paths._ENOUGH_CALLS", 0)
    fast = mg.compile(steps_of, paths=2)
    for x in (0.5, 1.0, 1.5, 0.5, 2.0, 2.5, 0.5, 0.5):
        assert fast(x).data == steps_of(x).data
    assert fast.cache_info().traces == 7
    assert "paths  2 kept, at most 2; traced 7 times" in fast.explain()


@pytest.mark.parametrize("wrap", [float, lambda x: [[x]]], ids=["of a number", "of a list in a list"])
@pytest.mark.parametrize("is_value", [True, False])
def test_where_there_are_too_many_paths_the_faster_way_is_taken(wrap, is_value, monkeypatch):
    """The clock has all calls take as long. An eager Value has its gradient still to compute, which counts."""
    monkeypatch.setattr("micrograd.compiler.calling.paths.perf_counter", itertools.count().__next__)

    def f(given):
        x = given[0][0] if isinstance(given, list) else given
        count = 0.0
        while x > count:
            count += 1.0
        return x * count * (W if is_value else 2.0)

    fast = mg.compile(f, paths=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in (0.5, 1.5, 2.5, *(0.5, 1.5, 3.5, math.inf) * 8):
            if x < math.inf:
                assert float(fast(wrap(x))) == float(f(wrap(x)))
    asked = fast.explain().partition("paths")[2]
    for _ in range(50):
        for x in (0.5, 1.5, 2.5):
            assert float(fast(wrap(x))) == float(f(wrap(x)))
    assert (fast.explain().partition("paths")[2] == asked) is not is_value
    assert fast.cache_info().traces == 2


def test_what_comes_after_what_is_remembered_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("micrograd.compiler.calling.paths._REMEMBERED", 1)
    fast = mg.compile(steps_of)
    for x in (0.5, 2.5, 1.0, 0.5, 2.0, 2.5, 1.0):
        assert fast(x).data == steps_of(x).data
    assert fast.cache_info().traces == 4


def test_after_too_many_paths_one_warning_says_which_line_asks_and_the_rest_is_eager():
    fast = mg.compile(steps_of, paths=3)
    for x in (0.5, 1.0, 1.5):
        fast(x)
    with pytest.warns(RuntimeWarning, match=r"3 ways .*test_paths\.py:\d+ asks, last 3 < 3\..*mg\.while_loop") as found:
        assert fast(2.0).data == steps_of(2.0).data
    assert found[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in (9.0, 0.5, 30.0, 1.5, -3.0):
            assert fast(x).data == steps_of(x).data
    assert fast.cache_info().traces == 3


def test_explain_says_which_line_asks_and_how_often_each_answer_occurred():
    fast = mg.compile(leaky)
    for x in (1.0, 2.0, -1.0, 3.0):
        fast(x)
    line = leaky.__code__.co_firstlineno + 1
    assert f"asked  test_paths.py:{line}: 0 1 times, 1 3 times" in fast.explain()
    assert "paths  2 kept" in fast.explain(-4.0)
    assert fast.explain(1.0).splitlines()[0] != fast.explain(-1.0).splitlines()[0]
    many = mg.compile(lambda x: W * int(x))
    for x in range(9):
        many(float(x))
    assert "5 1 times, and 3 other answers" in many.explain()


class Kept:
    number = None


NUMBERS = iter([1.0, 2.0])


def leaving(x):
    Kept.number = Kept.another = x * W
    return x * W


REFUSED = {
    "an attribute": (leaving, r"left behind in Kept\.number.*Return the number"),
    "an iterator": (lambda x: x * next(NUMBERS), "an iterator is read"),
    "the hash": (lambda x: hash(x) * W, "a number as a key"),
    "a key": (lambda x: {x: 1.0}[x], "a number as a key.*mg.take"),
    "equality": (lambda x: W if x * W == 2 else x, "== would freeze"),
    "inequality": (lambda x: W if x * W != 2 else x, "!= would freeze"),
    "a text": (lambda x: f"{x:.2f}", "the text of a number"),
    "digits": (lambda x: round(x, 2), r"round to digits.*np\.round\(x, digits\)"),
    "data": (lambda x: (x * W).data * W, r"\.data would freeze.*mg\.detach\(x\)"),
    "data of a Value outside": (lambda x: x * W.data, r"number of a Value would freeze.*mg\.detach"),
    "a float": (lambda x: math.exp(x), "the float of a number.*mg.exp"),
    "an index": (lambda x: [1.0, 2][x], r"mg\.take\("),
}


@pytest.mark.filterwarnings("ignore:`==` compares Values")
@pytest.mark.parametrize("name", REFUSED)
def test_other_uses_of_a_number_are_still_refused(name):
    """Also after a decision, on a path that is traced for it."""
    function, said = REFUSED[name]
    for refused in (function, lambda x: function(x) if x > 0 else x):
        with pytest.raises(TraceError, match=said):
            mg.compile(refused)(1)
    assert Kept.number is None
    assert not hasattr(Kept, "another")


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.parametrize("rounds", [1, 40])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_gradients_flow_through_calls_of_arrays_beside_decisions(backend, rounds):
    matrix = np.random.default_rng(0).normal(size=(30, 30)) + 30 * np.eye(30)

    def f(x):
        total = x
        for number in range(rounds):
            solved = np.linalg.solve(matrix * x, np.full(30, number + 1.0)).sum()
            total = total + 0.1 * solved if total * solved > 0.1 * number else total - 0.2
        return total

    fast = mg.compile(f, backend=backend)
    for number in (1.0, -2.0, 0.3):
        given, expected = Value(number), Value(number)
        result, eager = fast(given), f(expected)
        result.backward()
        eager.backward()
        assert result.data == pytest.approx(eager.data, rel=1e-12)
        assert given.grad == pytest.approx(expected.grad, rel=1e-10)


class RefusedError(Exception):
    """An error of the user's."""


def raise_of(x):
    raise RefusedError(x)


@pytest.mark.parametrize(
    "function",
    [
        raise_of,
        lambda x: raise_of(x) if x < 0 else x,
        lambda x: mg.dot(x, x),
        lambda x: mg.vmap(mg.sin)(x),
        lambda x: mg.scan(lambda s, y: (s + y, s), 0.0, x),
        lambda x: mg.losses.cross_entropy(x, 1),
        lambda x: np.full(2, x).nothing,
    ],
)
def test_errors_show_the_numbers_of_the_call_and_no_symbols(function):
    for x in (-1.5, np.float64(-2.5), Value(-3.0)):
        with pytest.raises((RefusedError, TypeError, AttributeError)) as expected:
            function(x)
        fast = mg.compile(function, backend="numpy")
        for call in (fast, fast, fast.explain):
            with pytest.raises(type(expected.value)) as found:
                call(x)
            assert type(found.value) is type(expected.value)
            assert str(found.value) == str(expected.value)
        with pytest.raises(type(expected.value)) as found:
            fast(x)
        assert found.value.__context__ is None


def test_what_a_function_changes_before_it_raises_is_changed_once():
    calls = []

    def refuses(x):
        calls.append(len(calls))
        raise RefusedError(x)

    with pytest.raises(RefusedError):
        mg.compile(refuses)(1.0)
    assert calls == [0]


def test_an_error_that_comes_only_from_symbols_is_raised():
    def on_symbols(x):
        if type(x) is not float:
            raise RefusedError("no float")
        return x

    fast = mg.compile(on_symbols)
    for call in (fast, fast.explain):
        with pytest.raises(RefusedError, match="no float"):
            call(1.0)


@pytest.mark.parametrize("decides", [False, True])
def test_what_a_handler_of_a_signal_raises_ends_the_call(decides):
    calls = []

    def late(*_):
        raise TimeoutError("too late")

    def interrupted(x):
        calls.append(x)
        if decides and x > 0:
            x = x * 2
        if len(calls) == 1:
            signal.raise_signal(signal.SIGALRM)
        return x

    before = signal.signal(signal.SIGALRM, late)
    try:
        with pytest.raises(TimeoutError, match="too late"):
            mg.compile(interrupted)(1.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(calls) <= 1
