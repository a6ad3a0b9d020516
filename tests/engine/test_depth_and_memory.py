"""Graphs of any depth, freed without the collector."""

import gc
import subprocess
import sys

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.engine.commit import commit
from micrograd.nn import MLP
from micrograd.optim import SGD
from tests.engine.common import live_values

pytestmark = pytest.mark.stress


def test_what_sets_gradients_keeps_nothing_of_it():
    x = Value(1.0)
    (x * x).backward()
    before = sys.getsizeof(commit.__self__)  # what plans are drawn through
    for _ in range(1000):
        (x * x).backward()
    assert sys.getsizeof(commit.__self__) == before


class TestDepthAndMemory:
    @pytest.mark.unmeasured
    @pytest.mark.slow
    def test_a_million_additions_build_and_backpropagate_and_are_freed_without_the_collector(self, without_collector):
        a = Value(1.0)
        before = live_values()
        result = a
        for _ in range(1_000_000):
            result = result + 1.0
        result.backward()
        assert (result.data, a.grad) == (1_000_001.0, 1.0)
        del result
        assert live_values() == before

    def test_a_deep_chain_of_hand_written_and_many_operand_nodes_works(self):
        a = Value(1.0)
        result = a
        for _ in range(3_000):
            previous = result
            result = Value(previous.data, (previous,), "same")

            def backward(previous=previous, made=result):
                previous.grad += made.grad

            result._backward = backward
            result = mg.where(True, result, 0.0)
        result.backward()
        assert (result.data, a.grad) == (1.0, 1.0)
        assert len(mg.topological_order(result)) >= 6_000

    @pytest.mark.slow
    def test_three_million_additions_work_in_a_fresh_interpreter(self):
        program = (
            "import gc\n"
            "from micrograd import Value\n"
            "gc.disable()  # for speed\n"
            "a = Value(1.0)\n"
            "result = a\n"
            "for _ in range(3_000_000):\n"
            "    result = result + a\n"
            "result.backward()\n"
            "print(result.data, a.grad)\n"
            "del result\n"
            "print('freed')\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "3000001.0 3000001.0\nfreed\n", "")

    def test_two_hundred_training_steps_leave_nothing_to_the_collector(self, without_collector):
        model = MLP(2, [4, 1], activation="tanh")
        optimizer = SGD(model.parameters(), 0.01)

        def train(steps):
            for _ in range(steps):
                loss = (model([0.5, -1.0]) - 1.0) ** 2
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

        train(1)  # what is loaded for the first step leaves cycles
        gc.collect()
        before = live_values()
        train(200)
        assert live_values() == before
        assert gc.collect() == 0

    def test_a_node_of_two_operands_is_one_object_for_the_collector(self, without_collector):
        a = Value(1.0)
        result = a
        before = len(gc.get_objects())
        for _ in range(1000):
            result = result * a + 1.0
        assert len(gc.get_objects()) - before <= 2001  # the list that they are counted in is one more

    def test_asking_for_operands_and_closures_makes_no_cycles(self, without_collector):
        a = Value(2.0)
        for _ in range(10):
            result = (a * 2 + 1).tanh()
            result._prev, result._backward, mg.topological_order(result)
            result.backward()
            del result
        assert gc.collect() == 0
