"""Calls with plain floats and Values are quick from the second one on, and nobody notices, except by the clock."""

import gc
import math
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.calling.quick import EAGER, QuickOfArrays
from micrograd.compiler.guards.refusals import TraceError

pytestmark = pytest.mark.slow(together=True)


@pytest.fixture
def weights():
    return [Value(0.5), Value(-1.5)]


class TestArguments:
    def test_others_after_floats(self):
        calls = (1.0, 2.0), (1.0, 2.0, 3.0), (1.0, 2.0), (3, 4.0), (5.0, 6.0), (True, 1.0), (7.0, 8.0)
        fast = mg.compile(lambda *xs: mg.dot(xs, xs))
        for arguments in calls:
            assert fast(*arguments) == mg.dot(arguments, arguments)

    def test_named_arguments(self):
        fast = mg.compile(lambda x, y: x - y)
        assert [fast(5.0, 3.0), fast(7.0, 4.0), fast(y=5.0, x=9.0), fast(8.0, y=3.0)] == [2.0, 3.0, 4.0, 5.0]

    def test_the_last_call_is_known_whatever_it_was(self):
        fast = mg.compile(lambda x: x * 2.0)
        for argument in (1.0, 2.0, 3.0, Value(4.0), 5.0, 6.0):
            fast(argument)
            assert fast.last_call()[0].data == 2.0 * float(mg.detach(argument))


class TestValues:
    """Arguments that are Values are as quick; what sets one apart from others is noticed."""

    @pytest.fixture
    def fast(self, weights):
        fast = mg.compile(lambda x, y: weights[0] * x * y + mg.sin(y))
        for _ in range(2):
            assert fast(Value(3.0), 2.0).data == 3.0 + math.sin(2.0)
        return fast

    def test_floats_and_values_in_other_places(self, fast):
        x, y = Value(3.0), Value(2.0)
        for arguments in ((3.0, y), (x, y), (3.0, 2.0), (x, 2.0)):
            result = fast(*arguments)
            assert result.data == 3.0 + math.sin(2.0)
            assert mg.gradient(result, [each for each in arguments if each is x]) == [1.0] * (arguments[0] is x)

    def test_one_that_is_given_twice_or_read_from_outside(self, fast, weights):
        product = mg.compile(lambda x, y: x * y * weights[0])
        results = [product(Value(2.0), Value(3.0)) for _ in range(3)]
        x = Value(4.0)
        results += [product(x, x), product(x, weights[0])]
        assert [result.data for result in results] == [3.0, 3.0, 3.0, 8.0, 1.0]
        results[3].backward()
        results[4].backward()
        assert (x.grad, weights[0].grad) == (4.25, 16.0 + 4.0)

    def test_one_that_requires_no_gradient_or_has_attributes(self, fast):
        constant, named = Value(3.0, requires_grad=False), Value(3.0)
        named.unit = "metres"
        assert fast(constant, 2.0).data == fast(named, 2.0).data == 3.0 + math.sin(2.0)
        results = [fast(constant, 2.0), fast(named, 2.0)]
        for result in results:
            result.backward()
        assert (constant.grad, named.grad) == (0.0, 1.0)

    def test_which_one_it_is_may_be_asked(self, weights):
        fast = mg.compile(lambda x: x * {weights[0]: 10.0}.get(x, 1.0))
        assert [fast(x).data for x in (Value(3.0), Value(3.0), weights[0], Value(2.0))] == [3.0, 3.0, 5.0, 2.0]


class TestLists:
    """Lists of floats and Values are as quick; lists of other forms are noticed."""

    @staticmethod
    def weighted(xs, y):
        return xs[0] * 2.0 + xs[1] * y if xs[0] > y else xs[-1] * y

    def test_their_numbers_and_gradients(self):
        fast = mg.compile(self.weighted)
        for first, second, y in ((3.0, 2.0, 1.0), (4.0, 1.0, 2.0), (0.5, 1.5, 1.0), (5.0, 0.5, 3.0), (0.5, 2.0, 1.0)):
            for wrap in (float, Value):
                points = [wrap(first), wrap(second)]
                found, expected = fast(points, y), self.weighted(points, y)
                assert (type(found), float(found)) == (type(expected), float(expected))
                if wrap is Value:
                    assert mg.gradient(found, points) == mg.gradient(expected, points)

    def test_other_forms(self):
        fast = mg.compile(self.weighted)
        x = Value(3.0)
        for xs in (
            [3.0, 2.0],
            [3.0, 2.0],
            (3.0, 2.0),
            [3.0, 2.0, 1.0],
            [3, 2.0],
            [x, 2.0],
            [x, x],
            [3.0, 2.0],
            4 * [1.0],
        ):
            for y in (1.0, 5.0):
                assert float(fast(xs, y)) == float(self.weighted(xs, y))
        assert fast([3.0, 2.0], 1.0) == 8.0
        with pytest.raises(TypeError, match="positional argument"):
            fast([3.0, 2.0])
        assert mg.compile(lambda *xs: mg.dot(xs[0], xs[0]))([1.0] * 65) == 65.0


class _Float(float):
    """A float of a class of its own."""


def printed(function, *arguments):
    """What is printed of the result, to the last digit, or the type of the error."""
    try:
        result = function(*arguments)
    except (ArithmeticError, ValueError, TypeError) as error:
        return type(error)
    return type(result), repr(mg.detach(result))


class TestNative:
    """Where a native function takes the floats, it notices whatever is none, and what only eager code may decide."""

    @pytest.mark.parametrize("other", [1, True, _Float(1.5), np.float64(1.5), "a", None, [1.5], 1j, Value(1.5)])
    def test_what_is_no_float(self, weights, other):
        def f(x, y):
            return weights[0] * x + weights[1] * y

        fast = mg.compile(f)
        for arguments in ((1.0, 2.0), (3.0, 4.0), (other, 4.0), (5.0, other), (1.0, 2.0)):
            assert printed(fast, *arguments) == printed(f, *arguments)

    def test_counts_of_arguments(self):
        fast = mg.compile(lambda x, y=2.0: x - y)
        assert [fast(5.0, 3.0), fast(5.0, 4.0), fast(5.0), fast(5.0, 1.0)] == [2.0, 1.0, 3.0, 4.0]
        for arguments in ((), (1.0, 2.0, 3.0)):
            with pytest.raises(TypeError, match="argument"):
                fast(*arguments)

    @pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, 1e308, -1e308, 0.0, -0.0, 5e-324])
    def test_numbers_at_the_ends(self, weights, x):
        def f(x, y):
            return weights[0] * x * 4.0 - y * x

        for function in (f, lambda x, y: x * 4.0 - y, lambda x, y: mg.exp(x) + weights[1] * y / x):
            fast = mg.compile(function)
            for arguments in ((2.0, 3.0), (1.0, 3.0), (x, 3.0), (x, math.inf), (2.0, x)):
                assert printed(fast, *arguments) == printed(function, *arguments)

    def test_a_derivative_that_is_not_finite(self):
        w = Value(1.0)

        def f(x):
            return w * x * 1e200

        fast = mg.compile(f)
        for x in (1.0, 2.0, 1e150, 3.0):
            w.data = 1e-100 if x == 1e150 else 1.0  # w.grad is infinite, but not the result
            results = []
            for function in (fast, f):
                w.grad = 0.0
                try:
                    function(x).backward()
                    results.append(w.grad)
                except ArithmeticError as error:
                    results.append(type(error))
            assert results[0] == results[1]

    def test_a_value_without_gradients(self):
        w = Value(2.0, requires_grad=False)
        fast = mg.compile(lambda x: w * x)
        results = [fast(x) for x in (1.0, 2.0, 3.0, 4.0)]
        assert [(type(each), each.data, each.requires_grad) for each in results] == [
            (Value, 2.0 * x, False) for x in (1.0, 2.0, 3.0, 4.0)
        ]

    @pytest.mark.unmeasured
    def test_no_object_is_left_behind(self, weights):
        x = float("2.5")
        fast = mg.compile(lambda x, y: weights[0] * x + y)
        plain = mg.compile(lambda x, y: x * y)

        def call():
            for _ in range(100):
                for y in (3.5, 3.5, 3):  # the next call after an int is looked at anew
                    fast(x, y).backward()
                    plain(x, y)
                for function in (fast, plain):
                    with pytest.raises(TypeError):
                        function("a", x)

        def count():
            gc.collect()
            return len(gc.get_objects()), sys.getrefcount(x), sys.getrefcount(None)

        call()
        found = []
        for _ in range(3):  # objects of other tests may come and go meanwhile
            before = count()
            call()
            found.append([abs(now - then) for now, then in zip(count(), before, strict=True)])
        assert min(of_x for _, of_x, _ in found) == 0
        assert min(max(objects, of_none) for objects, _, of_none in found) < 100

    def test_threads_whose_calls_are_of_other_kinds(self, weights):
        fast = mg.compile(lambda x, y: weights[0] * x + mg.sin(y))

        def results(seed):
            rng = random.Random(seed)
            numbers = [rng.randrange(9) for _ in range(500)]
            kind = (float, int, np.float64)[seed % 3]
            return [fast(kind(n), 1.0).data == 0.5 * n + math.sin(1.0) for n in numbers]

        with ThreadPoolExecutor(4) as pool:
            assert all(map(all, pool.map(results, range(12))))

    def test_a_finaliser_that_calls_it_in_the_middle(self, weights):
        fast = mg.compile(lambda x: weights[0] * x)
        plain = mg.compile(lambda x: x * x)
        assert [fast(3.0).data, fast(4.0).data, plain(3.0), plain(4.0)] == [1.5, 2.0, 9.0, 16.0]
        called = []

        class Cycle:
            def __init__(self):
                self.itself = self

            def __del__(self):
                called.append((fast(7.0).data, plain(7.0)))

        before = gc.get_threshold()
        try:
            gc.set_threshold(1)
            for n in range(200):
                Cycle()
                assert (fast(float(n)).data, plain(float(n))) == (0.5 * n, float(n * n))
        finally:
            gc.set_threshold(*before)
        gc.collect()
        assert called == [(3.5, 49.0)] * 200

    @pytest.mark.parametrize("grad", [0.0, -0.0, 1e308, math.inf, math.nan])
    def test_gradients_that_are_there_already(self, weights, grad):
        def f(x):
            return weights[0] * x * 1e308 - weights[1] * x

        fast = mg.compile(f)
        fast(0.5), fast(0.5)  # the next calls are quick
        found = []
        for function in (fast, f):
            weights[0].grad, weights[1].grad = grad, -grad
            result = function(0.5)
            result.backward()
            found.append(repr([weights[0].grad, weights[1].grad, result.grad]))
        assert found[0] == found[1]

    def test_gradients_that_are_values(self):
        w = Value(3.0)

        def f(x):
            return w * x

        fast = mg.compile(f)
        fast(1.0), fast(2.0)  # the next call is quick
        (w * w).backward(create_graph=True)
        assert isinstance(w.grad, Value)
        before = w.grad.data
        fast(5.0).backward()
        assert float(w.grad) == before + 5.0


class TestPaths:
    """Where the function decides on numbers, each path runs as quickly."""

    @pytest.fixture
    def fast(self, weights):
        def chosen(x):
            if x < 1.0:
                return mg.sqrt(weights[0] * x) if x < 0.5 else x * x
            return weights[1] * x if x < 2.0 else mg.exp(x)

        fast = mg.compile(chosen)
        for x in (0.25, 0.75, 1.5, 3.0) * 2:
            assert float(fast(x)) == float(chosen(x))
            assert fast(Value(x)).data == float(chosen(x))
        return fast

    def test_each_is_found_from_each(self, fast, weights):
        points = 0.25, 3.0, 0.75, 1.5, 0.25, 1.5, 3.0, 0.25, 0.25
        for x in points:
            for wrap in (float, Value):
                expected, found = fast.function(wrap(x)), fast(wrap(x))
                assert (type(found), float(found)) == (type(expected), float(expected))
        for n, x in enumerate(points):
            point = Value(x)
            fast(point).backward()
            slope = point.grad
            fast.function(point).backward()
            assert point.grad == pytest.approx(2.0 * slope), n
        assert fast.cache_info().traces == 8

    def test_all_answers_are_data_and_not_all_arguments_have_gradients(self):
        def walk(x, y, z):
            for _ in range(12):
                x = x * 0.9 if x > y else x * 1.5 + z
            return x

        fast = mg.compile(walk)
        for number in (1.0, 3.0, 0.25, 2.0, 9.0, 1.0, 0.5):
            x, z = Value(number), Value(0.25 * number)
            found, expected = fast(x, 2.0, z), walk(x, 2.0, z)
            assert found.data == pytest.approx(expected.data, rel=1e-14)
            assert mg.gradient(found, [x, z]) == pytest.approx(mg.gradient(expected, [x, z]), rel=1e-13)

    def test_how_often_each_was_taken_is_counted(self, fast):
        before = fast.explain()
        for _ in range(9):
            fast(3.0)
        assert "0 2 times" in before
        assert "0 11 times" in fast.explain()

    def test_numbers_that_are_not_finite_are_what_eager_gives(self, fast):
        assert fast(Value(0.0)).data == 0.0
        with pytest.raises(ZeroDivisionError):
            fast(Value(0.0)).backward()
        with pytest.raises(OverflowError):
            fast(1000.0)
        with pytest.raises(ValueError, match="sqrt"):
            fast(-1.0)

    def test_what_one_of_them_reads_was_replaced(self, fast, weights):
        weights[1] = Value(7.0)
        assert [float(fast(x)) for x in (1.5, 0.75, 1.5, 1.5)] == [10.5, 0.5625, 10.5, 10.5]

    def test_one_that_gives_a_constant(self):
        fast = mg.compile(lambda x: x * 2.0 if x > 0 else 0.0)
        for wrap in (float, Value):
            for x in (1.0, 1.0, -1.0, -1.0, 2.0, -2.0, 3.0):
                assert float(fast(wrap(x))) == fast.function(x)

    def test_a_primitive_that_is_not_pure_makes_no_call_go_on_for_ever(self, weights):
        draw = random.Random(0)
        flipping = mg.primitive("flipping", "flip", lambda x: draw.choice([1.0, -1.0]), lambda g, out, x: g)
        for paths, argument in ((64, 3.0), (4, 3)):  # an int is no quick argument
            fast = mg.compile(lambda x: x * weights[0] if flipping(x) > 0 else -x * weights[0], paths=paths)
            assert {abs(fast(argument).data) for _ in range(30)} == {1.5}

    @pytest.mark.unmeasured
    def test_histories_that_are_data(self, weights):
        def bouncing(x):
            height, speed = x, 0.0 * x
            for _ in range(30):
                speed = speed - 0.1
                height = height + 0.1 * speed
                if height < 0:
                    height, speed = weights[1] * height, -0.9 * speed
            return height

        fast = mg.compile(bouncing)
        for x in (0.1, 0.2, 0.3, 5.0, 0.1):
            point, other = Value(x), Value(x)
            found, expected = fast(point), bouncing(other)
            found.backward()
            expected.backward()
            assert (found.data, point.grad) == pytest.approx((expected.data, other.grad))
        assert fast.cache_info().traces == 2
        for x in (5.0, 0.1, 0.2):
            assert float(fast(x)) == pytest.approx(float(bouncing(x)))


class TestResults:
    def test_backward_twice_and_graphs(self, weights):
        fast = mg.compile(lambda x: weights[0] ** 2 * x + mg.sin(weights[1]))
        fast(3.0)
        loss = fast(3.0)
        loss.backward()
        loss.backward()
        assert weights[0].grad == 6.0
        for weight in weights:
            weight.grad = 0.0
        fast(3.0).backward(create_graph=True)
        assert weights[0].grad.data == 3.0
        assert mg.gradient(weights[0].grad, weights) == [6.0, 0.0]
        assert weights[1].grad.data == math.cos(-1.5)

    def test_derivatives_of_it(self):
        fast = mg.compile(lambda x: x**3)
        assert [fast(2.0), fast(2.0)] == [8.0, 8.0]
        assert mg.grad(fast)(2.0) == 12.0
        assert mg.grad(mg.grad(fast))(2.0) == 12.0
        assert fast(3.0) == 27.0

    def test_programs_that_were_given_up(self):
        fast = mg.compile(lambda x: x + 1.0)
        assert [fast(1.0), fast(2.0)] == [2.0, 3.0]
        fast.cache_clear()
        assert [fast(1.0), fast(2.0)] == [2.0, 3.0]
        assert fast.cache_info().programs == 1


def counted_calls(monkeypatch):
    """What quick calls of arrays give, in order."""
    quick, answers = QuickOfArrays.call, []

    def call(self, arguments):
        answers.append(quick(self, arguments))
        return answers[-1]

    monkeypatch.setattr(QuickOfArrays, "call", call)
    return answers


class TestArraysOfNumbers:
    """A function from arrays of numbers to arrays of numbers, as a gradient is."""

    POINTS = np.linspace(-1.0, 1.0, 12).reshape(4, 3)

    @pytest.fixture
    def fast(self):
        return mg.compile(mg.value_and_grad(lambda x, scale: (np.tanh(x) * x).sum() * scale))

    def test_calls_are_quick_and_give_new_arrays(self, fast, monkeypatch):
        answers = counted_calls(monkeypatch)
        expected = mg.value_and_grad(lambda x: (np.tanh(x) * x).sum() * 3.0)
        found = [fast(self.POINTS + number, 3.0) for number in range(4)]
        assert len(answers) == 3
        assert None not in answers
        for number, (value, slopes) in enumerate(found):
            assert type(value) is float
            assert value == pytest.approx(expected(self.POINTS + number)[0], rel=1e-12)
            assert slopes == pytest.approx(expected(self.POINTS + number)[1], rel=1e-12)
        assert not any(np.shares_memory(a[1], b[1]) for a, b in pairwise(found))

    @pytest.mark.parametrize(
        "others",
        [(POINTS[:2], 3.0), (POINTS.T, 3.0), (POINTS.astype(int), 3.0), (POINTS, 3)],
        ids=["shape", "order", "ints", "int"],
    )
    def test_other_arguments_come_between(self, fast, others):
        expected = mg.value_and_grad(lambda x, scale: (np.tanh(x) * x).sum() * scale)
        for arguments in ((self.POINTS, 3.0), (self.POINTS, 4.0), others, (self.POINTS, 5.0), others):
            (value, slopes), (other, other_slopes) = fast(*arguments), expected(*arguments)
            assert value == pytest.approx(other, rel=1e-12)
            assert np.array(slopes) == pytest.approx(np.array(other_slopes), rel=1e-12)

    def test_an_error_that_someone_keeps_makes_no_call_slower(self, fast, monkeypatch):
        with pytest.raises(TraceError, match="float16") as kept:  # its traceback has the frames of the trace
            mg.compile(lambda a: a[0] + a[1])(np.array([0.1, 0.2], dtype=np.float16))
        answers = counted_calls(monkeypatch)
        for _ in range(4):
            fast(self.POINTS, 3.0)
        assert len(answers) == 3
        assert None not in answers
        assert kept.value.__traceback__ is not None

    def test_calls_on_the_path_of_the_call_before_are_quick(self, monkeypatch):
        answers = counted_calls(monkeypatch)

        def f(x, scale):
            return (x * x).sum() * scale if scale > 0 else x.sum() - scale

        fast, expected = mg.compile(mg.value_and_grad(f)), mg.value_and_grad(f)
        for scale in (2.0, 3.0, -1.0, -2.0, 4.0, 5.0, 6.0):
            (value, slopes), (other, other_slopes) = fast(self.POINTS, scale), expected(self.POINTS, scale)
            assert value == pytest.approx(other, rel=1e-12)
            assert slopes == pytest.approx(other_slopes.astype(float), rel=1e-12)
        assert [answer is None for answer in answers] == [False, True, False, True, False, False]
        assert "0 2 times, 1 5 times" in fast.explain()

    def test_calls_after_too_many_paths_are_right(self):
        fast = mg.compile(mg.value_and_grad(lambda x, times: (x * int(times)).sum()), paths=2)
        factors = (1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 2.0, 2.0, 1.0)
        with pytest.warns(RuntimeWarning, match="was traced for 2 ways"):
            found = [fast(np.array([0.5, 1.0]), factor) for factor in factors]
        assert [(value, *slopes) for value, slopes in found] == [(1.5 * each, each, each) for each in factors]

    def test_what_raises_eagerly_raises(self, monkeypatch):
        fast = mg.compile(mg.grad(lambda x: np.exp(x).sum()))
        for _ in range(2):
            fast(self.POINTS)
        answers = counted_calls(monkeypatch)
        with pytest.raises(OverflowError, match="exp"):
            fast(self.POINTS + 1e3)
        assert answers == [EAGER]

    def test_with_a_call_of_a_function_of_arrays(self, monkeypatch):
        f = mg.value_and_grad(lambda a: np.linalg.eigvalsh(a @ a.T)[0])
        fast, matrix = mg.compile(f), self.POINTS[:3] + np.eye(3)
        fast(matrix)
        answers = counted_calls(monkeypatch)
        value, slopes = fast(matrix + 1.0)
        assert None not in answers
        assert len(answers) == 1
        assert value == pytest.approx(f(matrix + 1.0)[0], rel=1e-12)
        assert slopes == pytest.approx(f(matrix + 1.0)[1], rel=1e-9)


class TestLossesOfArrays:
    """A loss of arrays and lists, of parameters that an optimiser trains as arrays."""

    @pytest.fixture
    def model(self):
        weights = [Value(0.1 * number - 0.9) for number in range(20)]

        def loss(xs, ys):
            return mg.mean([(mg.dot(weights, x) - y) ** 2 for x, y in zip(xs, ys, strict=True)])

        return weights, loss, mg.compile(loss)

    XS = np.linspace(-1.0, 1.0, 60).reshape(3, 20)

    @pytest.fixture
    def counted(self, monkeypatch):
        """Counts the calls that are quick."""
        return counted_calls(monkeypatch)

    def test_a_training_loop_is_quick_and_the_same_as_eager(self, model, counted):
        def trained(loss):
            losses = []
            for number in range(5):
                optimizer.zero_grad()
                result = loss(self.XS + number, [number, 2, 3])
                result.backward()
                optimizer.step()
                losses.append(result.data)
            return losses, [(weight.data, weight.grad) for weight in weights]

        weights, loss, fast = model
        start = [weight.data for weight in weights]
        optimizer = mg.optim.SGD(weights, 0.001)
        found = trained(fast)
        assert len(counted) == 4
        assert None not in counted
        for weight, number in zip(weights, start, strict=True):
            weight.data = number
        losses, numbers = trained(loss)
        assert found[0] == pytest.approx(losses, rel=1e-12)
        assert np.array(found[1]) == pytest.approx(np.array(numbers), rel=1e-12)

    @pytest.mark.parametrize(
        "others",
        [
            (XS[:2], [1, 2]),
            (XS[::-1], [1, 2, 3]),
            (np.asfortranarray(XS), [1, 2, 3]),
            (XS.astype(np.float32), [1, 2, 3]),
            (XS.tolist(), [1, 2, 3]),
            (XS, (1, 2, 3)),
            (XS, [1.0, 2.0, 3.0]),
            (XS, [True, 2, 3]),
            (XS, [1, 2.5, 3]),
            (XS, [Value(1.0), Value(2.0), Value(3.0)]),
            (XS, [2**31, 2, 3]),
            (XS, [2**52, 2, 3]),
            (XS, np.array([1.0, 2.0, 3.0])),
        ],
        ids=str,
    )
    def test_other_arguments_come_between(self, model, others):
        weights, loss, fast = model
        for arguments in ((self.XS, [1, 2, 3]), (self.XS, [4, 5, 6]), others, (self.XS, [7, 8, 9]), others):
            expected = loss(*arguments)
            found = fast(*arguments)
            assert found.data == pytest.approx(expected.data, rel=1e-12)
            assert mg.gradient(found, weights) == pytest.approx(mg.gradient(expected, weights), rel=1e-12)

    def test_named_arguments_and_fewer_of_them_come_between(self, model):
        _, loss, fast = model
        for _ in range(2):
            fast(self.XS, [1, 2, 3])
        assert fast(self.XS, ys=[1, 2, 3]).data == fast(self.XS, [1, 2, 3]).data
        with pytest.raises(TypeError, match="missing 1 required positional argument"):
            fast(self.XS)
        assert fast(self.XS, [1, 2, 3]).data == pytest.approx(loss(self.XS, [1, 2, 3]).data, rel=1e-12)

    def test_what_is_not_finite_is_computed_eagerly(self, model):
        _, loss, fast = model
        fast(self.XS, [1, 2, 3])
        assert fast(self.XS * 1e200, [1, 2, 3]).data == loss(self.XS * 1e200, [1, 2, 3]).data == math.inf
        assert math.isnan(fast(self.XS * math.nan, [1, 2, 3]).data)

    def test_what_it_reads_may_be_replaced_or_set(self, model):
        weights, loss, fast = model
        calls = [fast(self.XS, [1, 2, 3]).data for _ in range(2)]
        weights[3].data = 2.0
        changed = fast(self.XS, [1, 2, 3]).data
        weights[4] = Value(5.0)
        replaced = fast(self.XS, [1, 2, 3])
        assert calls[0] == calls[1] != changed
        assert replaced.data == pytest.approx(loss(self.XS, [1, 2, 3]).data, rel=1e-12)
        replaced.backward()
        assert weights[4].grad == pytest.approx(mg.gradient(loss(self.XS, [1, 2, 3]), [weights[4]])[0], rel=1e-12)

    def test_no_grad_and_derivatives_of_derivatives_come_between(self, model):
        weights, _, fast = model
        results = [fast(self.XS, [1, 2, 3]) for _ in range(3)]
        with mg.no_grad():
            assert not fast(self.XS, [1, 2, 3]).requires_grad
        results[-1].backward(create_graph=True)
        second = mg.gradient(weights[0].grad, [weights[1]])
        assert second == pytest.approx([2.0 * (self.XS[:, 0] * self.XS[:, 1]).mean()], rel=1e-9)

    def test_a_plain_number_and_the_last_call(self, counted):
        fast = mg.compile(lambda x, scale: mg.dot(x, x) * scale)
        for number in (1.0, 2.0, 3.0):
            found = fast(self.XS[0] * number, number)
            assert type(found) is float
            assert found == pytest.approx(float(self.XS[0] @ self.XS[0]) * number**3, rel=1e-12)
            assert fast.last_call()[0].data == found
        assert len(counted) == 2
        assert math.isinf(fast(self.XS[0], math.inf))

    def test_an_optimiser_that_trains_more_than_the_loss_reads(self, model, counted):
        weights, loss, fast = model
        more = [Value(1.0) for _ in range(20)]
        optimizer = mg.optim.Adam([*more, *weights[::-1]], 0.1)
        for _ in range(3):
            optimizer.zero_grad()
            result = fast(self.XS, [1, 2, 3])
            expected = mg.gradient(loss(self.XS, [1, 2, 3]), weights)
            result.backward()
            assert [weight.grad for weight in weights] == pytest.approx(expected, rel=1e-12)
            assert {weight.grad for weight in more} == {0.0}
            optimizer.step()
        assert len(counted) == 2


def total(weights, data):
    """A sum over all numbers in lists and tuples, nested in any way, each with another factor."""
    flat = [number for part in data for number in (part if isinstance(part, SEQUENCES) else [part])]
    deep = [number for part in flat for number in (part if isinstance(part, SEQUENCES) else [part])]
    return sum((weights[n % len(weights)] * (x + n) for n, x in enumerate(deep)), 0.0)


SEQUENCES = list, tuple, np.ndarray
ROWS = [[0.5, 2.0, -0.0], [1.0, 4.0, 3.0]]
PAIRS = [([0.0, 1.0], 1.0), ([1.0, 0.0], 2.0), ([1.0, 1.0], 3.0)]


class TestNestedLists:
    """Data in nested lists, as tutorials have them, of a function that reads a few Values or many."""

    @pytest.fixture(params=[2, 40])
    def weights(self, request):
        return [Value(0.1 * number + 0.5) for number in range(request.param)]

    @pytest.mark.parametrize(
        "data",
        [
            ROWS,
            tuple(map(tuple, ROWS)),
            PAIRS,
            [[1, 2], [3, 4]],
            [[1.0, 2], [3.0, -4]],
            [[1.0], [2.0, 3.0]],
            [ROWS, ROWS],
            [[1.0, 2.0, 3.0]] * 50,
        ],
        ids=["rows", "tuples", "pairs", "ints", "floats and ints", "of two lengths", "deeper", "many"],
    )
    def test_calls_are_quick_and_give_what_eager_gives(self, weights, data, monkeypatch):
        fast = mg.compile(lambda data: total(weights, data))
        answers = counted_calls(monkeypatch)
        for number in range(4):
            weights[1].data = float(number)
            found, expected = fast(data), total(weights, data)
            assert found.data == pytest.approx(expected.data, rel=1e-12)
            assert mg.gradient(found, weights) == pytest.approx(mg.gradient(expected, weights), rel=1e-12)
        assert len(answers) == 3
        assert None not in answers

    @pytest.mark.parametrize(
        "other",
        [
            [[0.5, 2.0, 1.0], [1.0, 4.0]],
            [[0.5, 2.0], [1.0, 4.0]],
            [*ROWS, [1.0, 2.0, 3.0]],
            [ROWS[0], tuple(ROWS[1])],
            [[0.5, 2.0, 1.0], [1.0, 4, 3.0]],
            [[0.5, 2.0, 1.0], [1.0, 2**31, 3.0]],
            [[0.5, 2.0, 1.0], [1.0, True, 3.0]],
            [[0.5, 2.0, 1.0], [1.0, np.float64(4.0), 3.0]],
            [[0.5, 2.0, 1.0], [1.0, Value(4.0), 3.0]],
            [[0.5, 2.0, 1.0], np.array([1.0, 4.0, 3.0])],
            [0.5, 2.0],
            [[], []],
        ],
        ids=str,
    )
    def test_other_arguments_come_between(self, weights, other):
        fast = mg.compile(lambda data: total(weights, data))
        for data in (ROWS, [[9.0, 8.0, 7.0], ROWS[0]], other, ROWS, other, ROWS):
            assert float(mg.detach(fast(data))) == pytest.approx(float(mg.detach(total(weights, data))), rel=1e-12)

    @pytest.mark.parametrize(
        "data", [[[1.0], [2.0, 3.0]] * 20, [[1.0, True], [2.0, False]]], ids=["of many lengths", "bools"]
    )
    def test_those_that_are_not_alike_are_looked_at_one_by_one(self, weights, data, monkeypatch):
        fast = mg.compile(lambda data: total(weights, data))
        answers = counted_calls(monkeypatch)
        for _ in range(3):
            assert fast(data).data == pytest.approx(total(weights, data).data, rel=1e-12)
        assert answers == []

    def test_infinities_and_nan_are_computed_eagerly(self, weights):
        fast = mg.compile(lambda data: total(weights, data))
        assert fast(ROWS).data == fast(ROWS).data
        assert fast([[math.inf, 2.0, 1.0], ROWS[1]]).data == math.inf
        assert math.isnan(fast([[math.nan, 2.0, 1.0], ROWS[1]]).data)

    def test_a_list_that_is_changed_later_is_noticed(self, weights):
        data = [[1.0, 2.0], [3.0, 4.0]]
        fast = mg.compile(lambda data: total(weights, data) * weights[0])
        results = [fast(data) for _ in range(3)]
        data[0][0] = 5.0
        assert fast(data).data == pytest.approx((total(weights, data) * weights[0]).data, rel=1e-12)
        with pytest.raises(ValueError, match="gives other numbers now"):
            results[-1].backward(create_graph=True)
