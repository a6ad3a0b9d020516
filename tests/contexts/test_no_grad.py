"""Computing without recording: inside a block or a decorated function, in threads and tasks, after an interrupt."""

import asyncio
import math
import operator
import threading
from functools import partial

import pytest

import micrograd as mg
from micrograd import Value


class TestNoGrad:
    def test_nothing_is_recorded_inside(self):
        a = Value(3.0)
        with mg.no_grad():
            results = [a * a, a + 1, 1 - a, -a, a.exp(), mg.where(a > 0, a, 0.0), a**2, mg.softmax([a, 1.0])[0]]
        for result in results:
            assert not result.requires_grad
            assert result._prev == set()
            assert result._op == ""
            assert result.grad == 0.0
        assert results[0].data == 9.0
        assert (a * a).requires_grad

    def test_it_decorates_what_is_no_python_function_too(self):
        a = Value(3.0)
        for double in (partial(operator.mul, 2.0), a.__add__):
            result = mg.no_grad()(double)(a)
            assert (result.data, result.requires_grad) == (6.0, False)

    def test_a_result_can_be_freed_to_be_a_leaf_like_any_other(self):
        with mg.no_grad():
            leaf = Value(3.0) * 2
        leaf.requires_grad = True
        (leaf * leaf + leaf).backward()
        assert leaf.grad == 13.0
        with pytest.raises(ZeroDivisionError):
            (leaf + mg.sqrt(Value(0.0))).backward()
        assert leaf.grad == 13.0

    @pytest.mark.parametrize("x", [0.0, -0.0])
    def test_a_dot_product_that_is_zero_keeps_its_sign(self, x):
        outside = mg.dot([Value(x), x], [1.0, 2.0])
        with mg.no_grad():
            assert repr(mg.dot([Value(x), x], [1.0, 2.0]).data) == repr(outside.data) == repr(x)

    def test_numbers_on_the_left_stay_there(self):
        a = Value(4.0)
        with mg.no_grad():
            found = [(7 - a).data, (2 / a).data, (3**a).data]
        assert found == [3.0, 0.5, 81.0]

    def test_a_neuron_has_its_bias(self):
        neuron = mg.nn.Neuron(2)
        neuron.b.data = 7.0
        outside = neuron([1.0, Value(2.0)])
        with mg.no_grad():
            assert neuron([1.0, Value(2.0)]).data == pytest.approx(outside.data, rel=1e-15)

    def test_it_ends_with_an_exception(self):
        a = Value(3.0)
        with pytest.raises(RuntimeError, match="inside"), mg.no_grad():
            raise RuntimeError("inside")
        assert (a * 2).requires_grad
        with pytest.raises(ZeroDivisionError):
            mg.no_grad()(lambda: a / 0.0)()
        assert (a * 2).requires_grad

    def test_it_decorates_a_function_that_may_be_called_again_and_recursively(self):
        a = Value(3.0)

        @mg.no_grad()
        def power(exponent):
            """A power."""
            return a * power(exponent - 1) if exponent else a * 1

        for _ in range(2):
            assert not power(3).requires_grad
            assert (a * 2).requires_grad
        assert (power.__name__, power.__doc__) == ("power", "A power.")

    @pytest.mark.parametrize("kind", ["coroutine", "generator"])
    def test_it_decorates_what_runs_later_or_refuses_to(self, kind):
        a, recorded = Value(3.0), []
        try:
            if kind == "coroutine":

                @mg.no_grad()
                async def later():
                    recorded.append((a * 2).requires_grad)

                asyncio.run(later())
            else:

                @mg.no_grad()
                def steps():
                    recorded.append((a * 2).requires_grad)
                    yield

                list(steps())
        except TypeError:
            return
        assert recorded == [False]

    def test_leaves_made_inside_still_require_gradients(self):
        with mg.no_grad():
            leaf = Value(3.0)
        (leaf * 2).backward()
        assert leaf.grad == 2.0

    def test_a_hand_written_operation_inside_is_a_constant(self):
        a = Value(3.0)
        with mg.no_grad():
            result = Value(9.0, (a,), "square")
        result._backward = lambda: None
        assert (result.requires_grad, result.is_leaf) == (False, True)

    def test_backward_of_an_earlier_graph_works_inside(self):
        a = Value(3.0)
        result = a.tanh() * a
        with mg.no_grad():
            result.backward()
        assert a.grad == pytest.approx(math.tanh(3.0) + 3.0 / math.cosh(3.0) ** 2)

    def test_a_decorated_function_may_run_in_several_threads_at_a_time(self):
        a, together, outcomes = Value(3.0), threading.Barrier(2, timeout=600), []

        @mg.no_grad()
        def silent(first):
            together.wait()
            if not first:
                done.wait(600)
            return (a * 2).requires_grad

        def work(first):
            try:
                outcomes.append((silent(first), (a * 2).requires_grad))
            except BaseException as error:
                outcomes.append(error)
            done.set()

        done = threading.Event()
        threads = [threading.Thread(target=work, args=(first,)) for first in (True, False)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert outcomes == [(False, True), (False, True)]
