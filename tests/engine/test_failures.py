"""What fails: errors name operation, numbers and labels, and a backward that is cut off leaves all as it was."""

import contextvars
import gc
import math
import threading
from functools import partial

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine import backward, commit
from tests.engine.common import live_values
from tests.interrupts import interrupted_at


class TestErrors:
    def test_an_error_in_a_derivative_says_operation_numbers_and_labels(self):
        x = Value(0.0, label="x")
        with pytest.raises(ZeroDivisionError, match=r"derivative of sqrt\(.*x = 0\.0"):
            (x.sqrt() * 2).backward()
        with pytest.raises(ZeroDivisionError, match=r"derivative of .*x = 0\.0.* \*\* 0\.5"):
            (x**0.5).backward()


def square_root_at_zero(a, times):
    return (a - a).sqrt()


def operation_without_derivative(a, times):
    return Value(1.0, (a,), "mystery")


def closure_that_raises(kind):
    def make(a, times):
        result = Value(a.data, (a,), "faulty")

        def backward():
            a.grad += 100.0  # what it did before it failed must not stay either
            times.append(1)
            if len(times) == 1:
                raise kind("from the closure")
            a.grad += result.grad - 100.0

        result._backward = backward
        return result

    return make


class TestFailingBackward:
    @pytest.mark.parametrize(
        ("make", "kind"),
        [
            (square_root_at_zero, ZeroDivisionError),
            (operation_without_derivative, ValueError),
            (closure_that_raises(ValueError), ValueError),
            (closure_that_raises(RuntimeError), RuntimeError),
            (closure_that_raises(KeyboardInterrupt), KeyboardInterrupt),
        ],
        ids=["derivative", "no derivative", "ValueError", "RuntimeError", "KeyboardInterrupt"],
    )
    @pytest.mark.parametrize("first", [True, False], ids=["failing part first", "failing part last"])
    def test_a_failing_backward_leaves_the_leaves_as_before_and_the_graph_usable(self, make, kind, first):
        a, b = Value(2.0), Value(3.0)
        (a * b).backward()
        times = []
        healthy = (a * b).tanh() * b
        faulty = make(a * b, times) * a
        result = faulty + healthy if first else healthy + faulty
        with pytest.raises(kind):
            result.backward()
        assert (a.grad, b.grad) == (3.0, 2.0)
        assert [node.grad for node in mg.topological_order(result) if not node.is_leaf and node.grad] == []
        a.grad = b.grad = 0.0
        healthy.backward()
        slope = 1 / math.cosh(6.0) ** 2
        assert (a.grad, b.grad) == pytest.approx((9.0 * slope, math.tanh(6.0) + 6.0 * slope))
        if times:  # the closure fails once only, so the very same graph works now
            a.grad = b.grad = 0.0
            result.backward()
            assert (a.grad, b.grad) == pytest.approx((9.0 * slope + 12.0, math.tanh(6.0) + 6.0 * slope + 4.0))
        else:
            with pytest.raises(kind):
                result.backward()

    def test_a_failure_deep_inside_a_long_chain_is_undone(self):
        a = Value(0.0)
        a.grad = 7.0
        result = a.sqrt()
        for _ in range(10_000):
            result = result + a
        with pytest.raises(ZeroDivisionError):
            result.backward()
        assert a.grad == 7.0
        (a * 2).backward()
        assert a.grad == 9.0

    def test_a_failing_backward_leaves_the_gradient_of_a_frozen_leaf(self):
        frozen = Value(2.0)
        frozen.grad = 5.0
        frozen.requires_grad = False
        with pytest.raises(ZeroDivisionError):
            (Value(0.0).sqrt() + frozen).backward()
        assert frozen.grad == 5.0

    @pytest.mark.slow
    @pytest.mark.parametrize("create_graph", [False, True])
    @pytest.mark.unmeasured
    def test_an_interrupt_anywhere_in_backward_leaves_all_gradients_or_none(self, create_graph):
        count, outcomes = 0, []
        while not outcomes or outcomes[-1] != "finished":
            count += 1
            a, b = Value(2.0), Value(3.0)
            a.grad, b.grad = 5.0, 7.0
            result = mg.where(True, a * b, a) * a + b * b
            try:
                backward = partial(result.backward, create_graph=create_graph)
                contextvars.copy_context().run(interrupted_at, count, backward)
            except KeyboardInterrupt:
                outcomes.append("interrupted")
            else:
                outcomes.append("finished")
            before, after = (5.0, 7.0), (5.0 + 12.0, 7.0 + 10.0)
            assert (float(a.grad), float(b.grad)) in ([after] if outcomes[-1] == "finished" else [before, after]), count
            a.grad = b.grad = 0.0
            result.backward()
            assert (a.grad, b.grad) == (12.0, 10.0), count
        assert len(outcomes) > 20
        thread = threading.Thread(target=result.backward, daemon=True)
        thread.start()
        thread.join(600)
        assert not thread.is_alive()  # none of the interrupts left the engine locked

    def test_an_interrupt_anywhere_in_backward_keeps_no_graph_alive(self, without_collector):
        alive = []
        for _ in range(2):
            for count in range(1, 60):
                result = Value(2.0) * Value(3.0)
                interrupted = False
                try:
                    interrupted_at(count, result.backward)
                except KeyboardInterrupt:
                    interrupted = True
                del result
                if not interrupted:
                    break
            assert count > 10
            gc.collect()
            alive.append(live_values())
        assert alive[0] == alive[1]

    def test_an_interrupt_anywhere_in_a_differentiable_backward_leaves_float_working(self):
        def interrupted(count, result):
            try:
                interrupted_at(count, partial(result.backward, create_graph=True))
            except KeyboardInterrupt:
                assert float(result) == 8.0, count
                return True
            return False

        for count in range(1, 2000):
            if not contextvars.copy_context().run(interrupted, count, Value(2.0) ** 3):
                break
        assert 20 < count < 1999


def test_a_derivative_that_backpropagates_through_the_graph_it_is_in_is_refused():
    x = Value(2.0)
    middle = x * x
    out = Value(8.0, (middle,), "op")
    out._backward = lambda: (middle + 1).backward()
    with pytest.raises(ValueError, match="is being backpropagated through already"):
        out.backward()
    assert (x.grad, middle.grad) == (0.0, 0.0)
    (x * 3).backward()
    assert x.grad == 3.0


class TestWhatCannotBeClearedAway:
    """After a traversal that failed, its counts may be left in the nodes: there may be no memory to look for them."""

    def test_is_not_trusted_by_the_next_traversal(self, monkeypatch):
        x, w = Value(0.5), Value(2.0)
        shared = x * w
        bad = shared * mg.where(x > 0, shared, w) + (x - 0.5).sqrt()  # whose derivative at 0 does not exist
        monkeypatch.setattr(backward, "clear", out_of_memory)
        for _ in range(3):
            with pytest.raises(MemoryError):
                bad.backward()
            assert (x.grad, w.grad) == (0.0, 0.0)
        assert shared._uses > 0
        for times in (1, 2):
            (shared * shared + shared).backward()
            assert (x.grad, w.grad) == (6.0 * times, 1.5 * times)
        monkeypatch.undo()
        with pytest.raises(ZeroDivisionError):
            bad.backward()
        assert shared._uses == 0
        commit.traversal.floor = 0


def out_of_memory(*_):
    raise MemoryError
