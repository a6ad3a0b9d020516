"""Several threads and tasks at a time: no gradient is lost, and what one of them switches stays its own."""

import asyncio
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.commit import changing_gradients
from tests.locks import is_held

pytestmark = [pytest.mark.slow(together=True), pytest.mark.stress]

PATIENCE = 600  # seconds, after which a thread is taken to hang


@contextmanager
def switching_often():
    """Give the other threads a turn after every few steps of the interpreter."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def together(*jobs):
    """Run jobs at the same time, each in a thread of its own; what one raises is raised here."""
    start = threading.Barrier(len(jobs))

    def run(job):
        start.wait(PATIENCE)
        return job()

    with switching_often(), ThreadPoolExecutor(len(jobs)) as pool:
        return [future.result(PATIENCE) for future in [pool.submit(run, job) for job in jobs]]


class TestSharedLeaves:
    @pytest.mark.parametrize("seed", range(3))
    def test_random_graphs_over_the_same_leaves(self, seed):
        """Sums of integer multiples: the gradients are exact, whatever the order of the additions."""
        random.seed(seed)
        leaves = [Value(float(x)) for x in range(5)]
        weights = [[[random.randint(-9, 9) for _ in leaves] for _ in range(30)] for _ in range(6)]

        def job(rows):
            def run():
                for row in rows:
                    terms = [leaf * weight for leaf, weight in zip(leaves, row, strict=True)]
                    random.shuffle(terms)
                    sum(terms[1:], terms[0]).backward()

            return run

        together(*(job(rows) for rows in weights))
        expected = [sum(row[position] for rows in weights for row in rows) for position in range(len(leaves))]
        assert [leaf.grad for leaf in leaves] == expected

    def test_one_deep_graph_from_all_threads(self):
        x = Value(1.0)
        y = x
        for _ in range(300):
            y = y + x * 2
        together(*[lambda: [y.backward() for _ in range(10)]] * 5)
        assert x.grad == 5 * 10 * 601

    def test_gradients_that_are_graphs(self):
        leaves = [Value(2.0) for _ in range(20)]

        def with_graph():
            for _ in range(60):
                squares = [leaf * leaf for leaf in leaves]
                sum(squares[1:], squares[0]).backward(create_graph=True)

        def plain():
            for _ in range(60):
                sum(leaves[1:], leaves[0]).backward()

        # A plain backpropagation adds to gradients that are numbers; to one that is a graph it adds as a graph does.
        together(with_graph, with_graph, plain, with_graph)
        assert [float(leaf.grad) for leaf in leaves] == [60 * (3 * 4 + 1)] * 20

    def test_a_hand_written_derivative_beside_a_backpropagation(self):
        """To find its contributions the closure runs on the gradients themselves, which the other thread adds to."""
        x = Value(3.0)

        def square():
            out = Value(x.data**2, (x,), "square")

            def backward():
                x.grad += 2 * x.data * out.grad

            out._backward = backward
            return out

        found = []

        def returned():
            found.extend(mg.gradient(square() * 2, x) for _ in range(400))

        def added():
            for _ in range(400):
                (x * 5).backward()
                square().backward()

        together(returned, added, added)
        assert found == [12.0] * 400
        assert x.grad == 2 * 400 * (5 + 6)

    def test_training_and_evaluating_and_looking_for_faults_at_a_time(self):
        w = Value(2.0)

        def train():
            for _ in range(100):
                (w * 3).backward()

        def evaluate():
            with mg.no_grad():
                return {(w * 3).requires_grad for _ in range(300)}

        def watch():
            with mg.detect_anomaly():
                for _ in range(50):
                    (w * 7).backward()
                    with pytest.raises(FloatingPointError):
                        w * 1e308
            return {(w * 1e308).data}

        results = together(train, evaluate, watch, evaluate, watch)
        assert results == [None, {False}, {float("inf")}, {False}, {float("inf")}]
        assert w.grad == 100 * 3 + 2 * 50 * 7

    def test_an_error_in_one_thread_costs_the_others_nothing(self):
        x, zero = Value(2.0), Value(0.0)

        def right():
            for _ in range(100):
                (x * 3).backward()

        def wrong():
            for _ in range(100):
                with pytest.raises(ZeroDivisionError):
                    (x * mg.sqrt(zero)).backward()

        together(right, wrong, right, wrong)
        assert (x.grad, zero.grad) == (600.0, 0.0)


class TestLocks:
    """Each lock is held where it must be. The tests above need luck to notice that one is missing."""

    @pytest.fixture
    def asked(self, own_registry):
        """A primitive whose rule asks whether the lock of the gradients is held, and the answers."""
        answers = []

        def rule(g, out, x):
            answers.append(is_held(changing_gradients))
            return g * 1.0

        return mg.primitive("asked", "asked", lambda x: x, rule), answers

    @pytest.mark.parametrize("create_graph", [False, True])
    def test_a_backpropagation_holds_the_one_of_the_gradients_to_its_end(self, asked, create_graph):
        primitive, answers = asked
        (primitive(Value(2.0)) * 3).backward(create_graph=create_graph)
        assert answers == [True]
        assert not is_held(changing_gradients)

    def test_a_gradient_that_is_returned_needs_none(self, asked):
        primitive, answers = asked
        x = Value(2.0)
        assert mg.gradient(primitive(x) * 3, x) == 3.0
        assert answers == [False]

    def test_a_hand_written_derivative_holds_it_while_it_works_on_the_gradients(self):
        x, answers = Value(3.0), []
        out = Value(9.0, (x,), "square")

        def backward():
            answers.append(is_held(changing_gradients))
            x.grad += 6.0 * out.grad

        out._backward = backward
        assert mg.gradient(out * 2, x) == 12.0
        assert answers == [True]
        assert not is_held(changing_gradients)


class TestNoGrad:
    def test_threads_go_in_and_out_on_their_own(self):
        x = Value(2.0)

        def alternate():
            for _ in range(200):
                with mg.no_grad():
                    silent = (x * 2).requires_grad, mg.exp(x).requires_grad
                if silent != (False, False) or not (x * 2).requires_grad:
                    return False
            return True

        assert together(*[alternate] * 4) == [True] * 4

    def test_a_thread_that_is_started_inside_records(self):
        x, found = Value(2.0), []
        with mg.no_grad():
            thread = threading.Thread(target=lambda: found.append((x * 2).requires_grad))
            thread.start()
            thread.join()
        assert found == [True]

    def test_tasks_go_in_and_out_on_their_own(self):
        x = Value(2.0)

        async def silent(turns):
            with mg.no_grad():
                for _ in range(turns):
                    await asyncio.sleep(0)
                    assert not (x * 2).requires_grad
            assert (x * 2).requires_grad

        async def recording(turns):
            for _ in range(turns):
                await asyncio.sleep(0)
                (x * 2).backward()

        async def main():
            await asyncio.gather(*(job(turns) for turns in range(1, 9) for job in (silent, recording)))

        asyncio.run(main())
        assert x.grad == 2 * sum(range(1, 9))

    def test_work_that_a_task_hands_to_a_thread_takes_it_along(self):
        x = Value(2.0)

        async def main():
            with mg.no_grad():
                return await asyncio.to_thread(lambda: (x * 2).requires_grad)

        assert asyncio.run(main()) is False
