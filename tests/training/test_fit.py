"""fit: what it learns, records and shows, and what is left when Ctrl-C or an error ends it."""

import math
import random
import subprocess
import sys
import types
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value, fit
from micrograd.nn import MLP
from micrograd.optim import SGD, Adam, cosine
from micrograd.training import History
from tests.interrupts import interrupted_at

pytestmark = pytest.mark.slow(together=True)

POINTS = [(1.0, 2.0), (2.0, 4.1), (-1.0, -2.2), (0.5, 1.3), (3.0, 5.7)]


def line(optimizer_of=lambda leaves: Adam(leaves, 0.05)):
    """The leaves of a line, its optimiser, and the squared error of a point."""
    slope, intercept = Value(0.3), Value(-0.2)
    return [slope, intercept], optimizer_of([slope, intercept]), lambda x, y: (slope * x + intercept - y) ** 2


def numbers(leaves):
    return [leaf.data for leaf in leaves]


def clean_runs(epochs=2, batch_size=2, seed=5):
    """The parameters after 0, 1, 2, ... steps of the run that the tests of Ctrl-C interrupt."""
    leaves, optimizer, loss = line()
    states = [numbers(leaves)]
    step = optimizer.step

    def step_and_look():
        step()
        states.append(numbers(leaves))

    optimizer.step = step_and_look
    fit(loss, POINTS, optimizer, epochs=epochs, batch_size=batch_size, seed=seed, progress=False)
    return states


class TestLearning:
    def test_a_line_is_found(self):
        leaves, optimizer, loss = line(lambda leaves: SGD(leaves, 0.05))
        history = fit(loss, [(x, 2 * x - 1) for x in (-2.0, -1.0, 0.0, 1.0, 2.0)], optimizer, epochs=300, seed=1)
        assert numbers(leaves) == pytest.approx([2.0, -1.0], abs=1e-6)
        assert history.epochs[-1] < 1e-9 < history.epochs[0]

    def test_a_network_learns_exclusive_or(self):
        random.seed(3)
        model = MLP(2, [8, 1], activation="tanh")
        points = [([a, b], float(a != b)) for a in (0.0, 1.0) for b in (0.0, 1.0)]
        fit(
            lambda x, y: mg.losses.binary_cross_entropy(model(x), y),
            points,
            Adam(model.parameters(), cosine(0.1, 0.01, 400)),
            epochs=100,
            seed=0,
        )
        assert [float(model(x) > 0) for x, _ in points] == [y for _, y in points]

    @given(seed=st.integers(0, 2**32), batch_size=st.integers(1, 7), epochs=st.integers(1, 3))
    def test_the_same_seed_gives_the_same_run(self, seed, batch_size, epochs):
        runs = []
        for _ in range(2):
            leaves, optimizer, loss = line()
            history = fit(loss, POINTS, optimizer, epochs=epochs, batch_size=batch_size, seed=seed)
            runs.append((numbers(leaves), history.steps, history.epochs))
        assert runs[0] == runs[1]

    def test_another_seed_gives_another_order_and_the_global_random_state_is_neither_used_nor_changed(self):
        runs = []
        for global_seed, seed in ((1, 9), (2, 9), (1, 0), (1, 1), (1, 2)):
            random.seed(global_seed)
            before = random.getstate()
            leaves, optimizer, loss = line()
            fit(loss, POINTS, optimizer, seed=seed)
            assert random.getstate() == before
            runs.append(tuple(numbers(leaves)))
        assert runs[0] == runs[1]
        assert len(set(runs)) == 4

    @given(batch_size=st.integers(1, 12), epochs=st.integers(1, 3), seed=st.integers(0, 1000))
    def test_each_epoch_visits_every_example_once_in_an_order_of_its_own(self, batch_size, epochs, seed):
        leaf, visits = Value(1.0), []

        def loss(example):
            visits.append(example)
            return leaf * example

        fit(loss, range(10), SGD([leaf], 0.0), epochs=epochs, batch_size=batch_size, seed=seed)
        rounds = [visits[start : start + 10] for start in range(0, len(visits), 10)]
        assert [sorted(visited) for visited in rounds] == [list(range(10))] * epochs

    @pytest.mark.parametrize("batch_size", [1, 2, 3, 5, 100])
    def test_a_step_follows_the_mean_loss_of_its_batch_the_last_one_smaller(self, batch_size):
        leaves, optimizer, loss = line(lambda leaves: SGD(leaves, 0.1))
        order = []

        def noted(x, y):
            order.append((x, y))
            return loss(x, y)

        history = fit(noted, POINTS, optimizer, batch_size=batch_size, seed=2)
        slope, intercept = 0.3, -0.2
        means = []
        for start in range(0, len(POINTS), batch_size):
            batch = order[start : start + batch_size]
            errors = [slope * x + intercept - y for x, y in batch]
            means.append(sum(error**2 for error in errors) / len(batch))
            slope -= 0.1 * sum(2 * error * x for error, (x, _) in zip(errors, batch, strict=True)) / len(batch)
            intercept -= 0.1 * sum(2 * error for error in errors) / len(batch)
        assert numbers(leaves) == pytest.approx([slope, intercept], rel=1e-12)
        assert history.steps == pytest.approx(means, rel=1e-12)
        sizes = [len(order[start : start + batch_size]) for start in range(0, len(POINTS), batch_size)]
        weighted = sum(mean * size for mean, size in zip(means, sizes, strict=True)) / len(POINTS)
        assert history.epochs == pytest.approx([weighted], rel=1e-12)

    def test_gradients_left_from_before_do_not_count(self):
        results = []
        for left in (0.0, 1e6):
            leaves, optimizer, loss = line()
            for leaf in leaves:
                leaf.grad = left
            fit(loss, POINTS, optimizer, seed=0)
            results.append(numbers(leaves))
        assert results[0] == results[1]


class TestData:
    def test_a_generator_is_read_once_and_used_in_every_epoch(self):
        results = []
        for data in (POINTS, (point for point in POINTS)):
            leaves, optimizer, loss = line()
            history = fit(loss, data, optimizer, epochs=3, batch_size=2, seed=4)
            results.append((numbers(leaves), history.steps))
        assert results[0] == results[1]
        assert len(results[1][1]) == 9

    def test_tuples_become_arguments_and_anything_else_is_one(self):
        leaf, seen = Value(1.0), []

        def loss(*arguments):
            seen.append(arguments)
            return leaf * 1

        fit(loss, [(1, 2), [3, 4], 5, {"a": 6}], SGD([leaf], 0.0), seed=0)
        assert sorted(seen, key=repr) == sorted([(1, 2), ([3, 4],), (5,), ({"a": 6},)], key=repr)

    @pytest.mark.parametrize("empty", [list, tuple, dict, lambda: iter([]), lambda: range(0)])
    def test_no_data_is_an_error(self, empty):
        _, optimizer, loss = line()
        with pytest.raises(ValueError, match="no data"):
            fit(loss, empty(), optimizer)


class TestHistory:
    def test_repr_is_a_summary(self):
        _, optimizer, loss = line()
        assert repr(History()) == "History(0 epochs, 0 steps)"
        history = fit(loss, POINTS, optimizer, epochs=2, batch_size=5, seed=0)
        first, last = history.steps[0], history.epochs[-1]
        assert repr(history) == f"History(2 epochs, 2 steps, loss {first:.4g} -> {last:.4g})"

    def test_the_callback_sees_the_history_after_each_epoch(self):
        _, optimizer, loss = line()
        seen = []
        history = fit(
            loss,
            POINTS,
            optimizer,
            epochs=3,
            batch_size=2,
            seed=0,
            callback=lambda history: seen.append((history, len(history.steps), len(history.epochs))),
        )
        assert seen == [(history, 3, 1), (history, 6, 2), (history, 9, 3)]
        assert (len(history.steps), len(history.epochs), history.interrupted) == (9, 3, False)
        assert {type(number) for number in history.steps + history.epochs} == {float}
        assert optimizer.steps == 9

    def test_what_the_callback_raises_ends_the_run(self):
        leaves, optimizer, loss = line()

        class EnoughError(Exception):
            pass

        def stop(history):
            if len(history.epochs) == 2:
                raise EnoughError

        with pytest.raises(EnoughError):
            fit(loss, POINTS, optimizer, epochs=5, batch_size=2, seed=5, callback=stop)
        assert numbers(leaves) == clean_runs()[6]


class TestWrongLoss:
    @pytest.mark.parametrize("wrong", [1.0, None, "loss", [Value(1.0)]], ids=repr)
    def test_a_loss_that_is_no_value_is_refused(self, wrong):
        leaves, optimizer, _ = line()
        with pytest.raises(TypeError, match=f"loss must return a Value, not {type(wrong).__name__}"):
            fit(lambda x, y: wrong, POINTS, optimizer)
        assert numbers(leaves) == [0.3, -0.2]

    def test_a_loss_that_depends_on_no_parameter_is_refused(self):
        _, optimizer, _ = line()
        with pytest.raises(ValueError, match="requires no gradient"):
            fit(lambda x, y: Value(x, requires_grad=False) * y, POINTS, optimizer)

    @pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
    def test_a_loss_that_is_not_finite_names_epoch_and_example_and_keeps_the_finished_steps(self, bad):
        leaves, optimizer, loss = line()
        calls = []

        def faulty(x, y):
            calls.append(POINTS.index((x, y)))
            return loss(x, y) + (bad if len(calls) == 8 else 0.0)

        with pytest.raises(ArithmeticError, match="in epoch 2") as caught:
            fit(faulty, POINTS, optimizer, epochs=2, batch_size=2, seed=5)
        assert f"example {calls[-1]} is {bad}" in str(caught.value)
        assert numbers(leaves) == clean_runs()[4]  # calls 6 and 7 were a step; the bad one is in the fifth

    def test_an_update_that_overflows_keeps_the_finished_steps(self):
        leaf = Value(1.0)
        with pytest.raises(ArithmeticError, match="parameter 0"):
            fit(lambda weight: leaf * weight, [1e300] * 4, SGD([leaf], lambda step: [1e-300, 1e300][step]), seed=0)
        assert leaf.data == 0.0

    def test_what_the_loss_raises_comes_through(self):
        leaves, optimizer, loss = line()

        with pytest.raises(ValueError, match=r"nothing = 0\.0"):
            fit(lambda x, y: loss(x, y) + Value(0.0, label="nothing").log(), POINTS, optimizer)
        assert numbers(leaves) == [0.3, -0.2]


class TestProgressBar:
    def run(self, progress, **settings_given):
        _, optimizer, loss = line()
        return fit(loss, POINTS, optimizer, batch_size=2, epochs=2, seed=0, progress=progress, **settings_given)

    def test_it_is_shown_when_asked_for_and_says_epoch_loss_and_steps(self, capsys):
        history = self.run(True)
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "6/6" in shown.err
        assert f"epoch 2, loss {history.epochs[-1]:.4f}" in shown.err

    @pytest.mark.parametrize("progress", [None, False])
    def test_it_is_quiet_otherwise_and_where_there_is_no_standard_error(self, capsys, monkeypatch, progress):
        self.run(progress)
        assert capsys.readouterr() == ("", "")
        monkeypatch.setattr(sys, "stderr", None)
        assert len(self.run(progress).steps) == 6

    def test_it_is_shown_on_a_terminal_and_not_when_refused(self, capsys, monkeypatch):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
        self.run(False)
        assert capsys.readouterr().err == ""
        self.run(None)
        assert "6/6" in capsys.readouterr().err

    def test_a_missing_tqdm_is_an_error_that_says_what_to_install_where_the_bar_was_asked_for(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        with pytest.raises(ImportError, match=r"tqdm.*pip install tqdm"):
            self.run(True)

    @pytest.mark.parametrize("terminal", [True, False])
    def test_a_missing_tqdm_is_no_error_otherwise(self, monkeypatch, capsys, terminal):
        monkeypatch.setitem(sys.modules, "tqdm", None)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        assert len(self.run(None).steps) == 6
        assert len(self.run(False).steps) == 6
        assert capsys.readouterr().err == ""

    @pytest.mark.parametrize("ending", [KeyboardInterrupt, RuntimeError])
    def test_the_bar_is_closed_however_the_run_ends(self, monkeypatch, ending):
        events = []

        class Bar:
            def __init__(self, **settings_given):
                events.append(settings_given["total"])

            def set_postfix_str(self, text, refresh):
                pass

            def update(self, steps):
                events.append("update")

            def close(self):
                events.append("close")

        monkeypatch.setitem(sys.modules, "tqdm", types.SimpleNamespace(tqdm=Bar))

        def end(history):
            raise ending

        if ending is KeyboardInterrupt:
            assert self.run(True, callback=end).interrupted
        else:
            with pytest.raises(ending):
                self.run(True, callback=end)
        assert events == [6, "update", "update", "update", "close"]


class TestInterrupts:
    @pytest.mark.parametrize("call", range(1, 11))
    def test_an_interrupt_in_the_loss_leaves_the_last_finished_step(self, call):
        leaves, optimizer, loss = line()
        calls = []

        def interrupted(x, y):
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return loss(x, y)

        history = fit(interrupted, POINTS, optimizer, epochs=2, batch_size=2, seed=5)
        finished = [0, 0, 1, 1, 2, 3, 3, 4, 4, 5][call - 1]
        assert history.interrupted
        assert (len(history.steps), len(history.epochs), optimizer.steps) == (finished, int(call > 5), finished)
        assert numbers(leaves) == clean_runs()[finished]
        assert "interrupted" in repr(history)

    def test_an_interrupt_in_the_callback_returns_the_history_so_far(self):
        leaves, optimizer, loss = line()

        def interrupt(history):
            raise KeyboardInterrupt

        history = fit(loss, POINTS, optimizer, epochs=2, batch_size=2, seed=5, callback=interrupt)
        assert (history.interrupted, len(history.steps), len(history.epochs)) == (True, 3, 1)
        assert numbers(leaves) == clean_runs()[3]

    @pytest.mark.slow
    @pytest.mark.unmeasured
    def test_an_interrupt_anywhere_inside_leaves_a_whole_number_of_steps(self):
        states = clean_runs()
        settings_given = {"epochs": 2, "batch_size": 2, "seed": 5, "progress": False}
        seen, complete, count = set(), False, 1
        while not complete:
            leaves, optimizer, loss = line()
            try:
                history = interrupted_at(count, partial(fit, loss, POINTS, optimizer, **settings_given))
            except KeyboardInterrupt:  # before the run began or after it ended
                assert optimizer.steps in (0, len(states) - 1)
            else:
                complete = not history.interrupted
                assert optimizer.steps - len(history.steps) in (0, 1)
            assert numbers(leaves) == states[optimizer.steps]
            seen.add(optimizer.steps)
            count += 23
        assert seen == set(range(len(states)))
        assert count > 500

    def test_training_goes_on_after_an_interrupt_as_if_there_had_been_none(self):
        leaves, optimizer, loss = line()
        calls = []

        def interrupted(x, y):
            calls.append(1)
            if len(calls) == 4:
                raise KeyboardInterrupt
            return loss(x, y)

        first = fit(interrupted, POINTS, optimizer, epochs=1, seed=1)
        assert (first.interrupted, optimizer.steps) == (True, 3)
        twins, twin, twin_loss = line()
        clean = random.Random(1).sample(range(5), 5)[:3]
        for index in clean:
            twin.zero_grad()
            twin_loss(*POINTS[index]).backward()
            twin.step()
        assert numbers(leaves) == numbers(twins)
        second = fit(loss, POINTS, optimizer, epochs=2, seed=2)
        expected = fit(twin_loss, POINTS, twin, epochs=2, seed=2)
        assert (numbers(leaves), second.steps) == (numbers(twins), expected.steps)

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="os.kill ends the process there")
    def test_a_real_interrupt_signal_at_any_time_leaves_a_whole_number_of_steps(self):
        done = subprocess.run(
            [sys.executable, "-c", REAL_INTERRUPTS], capture_output=True, text=True, timeout=600, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        trials, inside, different = map(int, done.stdout.split())
        assert trials == 40
        assert inside >= 20
        assert different >= 10


REAL_INTERRUPTS = """
import os, random, signal, threading
from micrograd import Value, fit
from micrograd.nn import MLP
from micrograd.optim import Adam

points = [([float(i % 3), float(i % 5)], float(i % 2)) for i in range(12)]

def run(after_step):
    random.seed(0)
    model = MLP(2, [3, 1], activation="tanh")
    optimizer = Adam(model.parameters(), 0.01)
    step = optimizer.step
    def step_and_more():
        step()
        after_step(model, optimizer)
    optimizer.step = step_and_more
    loss = lambda x, y: (model(x) - y) ** 2
    return model, optimizer, lambda: fit(loss, points, optimizer, epochs=100, batch_size=1, seed=3, progress=False)

def look(model, optimizer):
    states.append([p.data for p in model.parameters()])

states = []
model, optimizer, train = run(look)
look(model, optimizer)
train()
chance = random.Random(8)
trials = inside = 0
counts = set()
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
while trials < 40:
    last, delay = chance.randrange(1, 1100), chance.uniform(0.0001, 0.001)
    def interrupt_soon(model, optimizer):
        if optimizer.steps == last:
            signal.setitimer(signal.ITIMER_REAL, delay)
    model, optimizer, train = run(interrupt_soon)
    history = None
    try:
        history = train()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        pass
    trials += 1
    finished = [p.data for p in model.parameters()]
    assert finished == states[optimizer.steps], (trials, optimizer.steps)
    if history is not None:
        inside += history.interrupted
        counts.add(len(history.steps))
        assert optimizer.steps - len(history.steps) in (0, 1)
thread = threading.Thread(target=(Value(1.0) * 2).backward, daemon=True)
thread.start()
thread.join(600)
assert not thread.is_alive(), "the engine is locked"
print(trials, inside, len(counts))
"""
