"""fit on several devices of JAX against fit without: four virtual ones, and two processes of four each."""

import json
import math
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
from functools import partial

import jax
import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler import compiled_steps
from micrograd.compiler.backends.jax import jax_mesh, jax_processes
from micrograd.compiler.backends.jax.jax_mesh import Devices
from micrograd.compiler.backends.jax.jax_processes import Processes, Word
from tests.compiler import in_two_processes
from tests.interrupts import interrupted_at

pytestmark = pytest.mark.slow


def line(optimizer_of=lambda leaves: mg.optim.SGD(leaves, 0.05, momentum=0.5)):
    """The leaves of a line, its optimiser, and the squared error of a point."""
    leaves = [Value(0.3), Value(-0.2)]
    return leaves, optimizer_of(leaves), lambda x, y: (leaves[0] * x + leaves[1] - y) ** 2


POINTS = [(0.5 * position, 1.0 - position) for position in range(7)]


def after(made, examples=POINTS, **settings):
    """The history of a fit, and all that it leaves behind."""
    leaves, optimizer, loss = made
    given = {"epochs": 3, "batch_size": 3, "seed": 1, "progress": False, **settings}
    history = mg.fit(loss, examples, optimizer, **given)
    numbers = [(leaf.data, leaf.grad) for leaf in leaves]
    return [*history.steps, *history.epochs, *np.ravel(numbers), *np.ravel(optimizer._state), optimizer.rate]


def same(found, expected):
    return found == pytest.approx(expected, rel=1e-10, abs=1e-12)


class TestTheSameAsEager:
    @pytest.mark.unmeasured
    @pytest.mark.parametrize("devices", [3, "all"])
    def test_losses_parameters_gradients_and_state_of_a_network(self, devices):
        def network():
            model, optimizer, loss, examples = in_two_processes.network()
            return (model.parameters(), optimizer, loss), examples

        expected, found = (
            after(*network(), batch_size=8, **settings) for settings in ({}, {"compile": "jax", "devices": devices})
        )
        assert same(found, expected)

    @pytest.mark.parametrize(("count", "batch_size"), [(1, 1), (2, 3), (5, 4), (5, 100)])
    def test_however_many_examples_there_are(self, count, batch_size):
        expected, found = (
            after(line(), POINTS[:count], batch_size=batch_size, **settings)
            for settings in ({}, {"compile": "jax", "devices": 4})
        )
        assert same(found, expected)

    def test_with_a_schedule_of_rates_and_the_shuffling_of_python_itself(self):
        def adam(leaves):
            return mg.optim.AdamW(leaves, mg.optim.warmup(mg.optim.linear(0.1, 0.0, 9), 3))

        runs = []
        for settings in ({}, {"compile": "jax", "devices": 3}):
            random.seed(5)
            runs.append(after(line(adam), seed=None, **settings))
        assert same(runs[1], runs[0])

    def test_examples_with_programs_of_their_own_also_more_of_one_than_its_share(self):
        def made():
            leaves = [Value(0.4), Value(-0.3)]

            def loss(*xs):
                return sum(mg.tanh(leaves[0] * x + leaves[1]) ** 2 for x in xs) / len(xs)

            return leaves, mg.optim.Adam(leaves, 0.05), loss

        examples = [(0.1 * position,) * (1 + position // 6) for position in range(18)]
        expected, found = (
            after(made(), examples, batch_size=5, epochs=4, **settings)
            for settings in ({}, {"compile": "jax", "devices": 2})
        )
        assert same(found, expected)

    def test_loops_and_what_is_taken_by_an_index(self):
        def made():
            w, table = Value(0.4), [Value(0.3 * position) for position in range(3)]

            def loss(xs, index):
                state, _ = mg.scan(lambda h, x: (mg.tanh(w * h + x), None), 0.1, xs)
                return state * state + mg.mean(mg.vmap(lambda x: mg.exp(w * x))(xs)) * mg.take(table, index)

            return [w, *table], mg.optim.Adam([w, *table], 0.05), loss

        examples = [([0.1 * position + iteration for iteration in range(6)], position % 3) for position in range(5)]
        expected, found = (after(made(), examples, **settings) for settings in ({}, {"compile": "jax", "devices": 3}))
        assert same(found, expected)

    def test_a_shared_parameter_a_frozen_one_and_values_that_are_none(self):
        def made():
            w, frozen, apart = Value(0.5), Value(2.0), Value(1.5, requires_grad=False)
            optimizer = mg.optim.Adam([w, frozen], 0.1)
            frozen.requires_grad = False
            frozen.grad = 7.0
            return [w, frozen, apart], optimizer, lambda x, y: (w * x + mg.sin(w) * frozen + apart - y) ** 2

        expected, found = (after(made(), **settings) for settings in ({}, {"compile": "jax", "devices": 2}))
        assert same(found, expected)

    def test_what_a_callback_changes_counts_and_what_it_does_not_change_stays_where_it_is(self, monkeypatch):
        put = []
        given = Devices.same

        def noted(devices, numbers):
            put.append(np.shape(numbers))
            return given(devices, numbers)

        monkeypatch.setattr(Devices, "same", noted)

        def run(**settings):
            other = Value(3.0, requires_grad=False)
            (leaves, optimizer, _), seen = line(), []

            def callback(history):
                seen.append([leaf.data for leaf in leaves])
                if len(history.epochs) == 2:
                    leaves[0].data = -0.0
                if len(history.epochs) == 4:
                    other.data = 0.5
                if len(history.epochs) == 6:
                    optimizer.momentum = 0.1

            made = leaves, optimizer, lambda x, y: (leaves[0] * x + leaves[1] * other - y) ** 2
            return after(made, epochs=8, batch_size=7, callback=callback, **settings), seen

        expected = run()
        found = run(compile="jax", devices=2)
        assert same(found[0], expected[0])
        assert [same(after_epoch, numbers) for after_epoch, numbers in zip(found[1], expected[1], strict=True)]
        # the state, which has the gradients in it, was given at first, after both changes, and to the new program
        assert put.count((6,)) == 4

    def test_an_optimiser_that_is_pickled_after_a_fit_goes_on(self):
        leaves, optimizer, loss = line(lambda leaves: mg.optim.Adam(leaves, 0.1))
        after((leaves, optimizer, loss), compile="jax", devices=2)
        copy = pickle.loads(pickle.dumps((optimizer.parameters, optimizer._state, optimizer.steps)))
        expected = after((leaves, optimizer, loss))
        other_leaves, other, other_loss = line(lambda leaves: mg.optim.Adam(leaves, 0.1))
        for leaf, saved in zip(other_leaves, copy[0], strict=True):
            leaf.data = saved.data
        other._kept, other.steps = copy[1:]
        assert same(after((other_leaves, other, other_loss), compile="jax", devices=3), expected)

    def test_a_recording_sees_each_step(self):
        recordings = []
        for settings in ({}, {"compile": "jax", "devices": 2}):
            model, optimizer, loss, examples = in_two_processes.line()
            recordings.append(mg.training.Recording(model, [[1.0]]))
            after((optimizer.parameters, optimizer, loss), examples, record=recordings[-1], **settings)
        eager, sharded = (
            [number for step, numbers in each.frames() for number in (step, *numbers)] for each in recordings
        )
        assert len(eager) == 7 * 3  # at first and after each of six steps: the weight and the bias
        assert same(sharded, eager)

    @pytest.mark.filterwarnings("ignore:JAX calls primitive:RuntimeWarning")
    @pytest.mark.parametrize("precision", ["float64", "float32"])
    def test_a_primitive_that_is_called_back_in_python(self, own_registry, precision):
        own = mg.primitive("twice_in_python", "t", lambda x: 2 * x, lambda g, out, x: 2 * g)

        def made():
            leaves, optimizer, _ = line()
            return leaves, optimizer, lambda x, y: (own(leaves[0] * x) + leaves[1] - y) ** 2

        expected, found = (
            after(made(), **settings) for settings in ({}, {"compile": "jax", "devices": 3, "precision": precision})
        )
        assert found == pytest.approx(expected, rel=1e-10 if precision == "float64" else 1e-4)


class TestPrecision:
    def test_float32_needs_no_float64_of_jax(self):
        expected = after(line())
        with jax_mesh.in_float64(False):
            found = after(line(), compile="jax", devices=2, precision="float32")
        assert found == pytest.approx(expected, rel=1e-4)
        parameters = found[-7:-3:2]
        assert parameters == np.float32(parameters).tolist() != expected[-7:-3:2]

    def test_float64_needs_it_and_the_error_says_what_to_write(self):
        with jax_mesh.in_float64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
            after(line(), compile="jax", devices=2)

    def test_a_step_that_is_too_large_for_float32_is_taken_in_float64_with_a_warning(self):
        def made():
            w = Value(1e30)
            return [w], mg.optim.SGD([w], 1e-3), lambda x, y: w * w * x

        with pytest.warns(RuntimeWarning, match="step 0 is not finite in float32") as warned:
            found = after(made(), compile="jax", precision="float32")
        assert found == pytest.approx(after(made()), rel=1e-12)
        assert len(warned) == 1


class TestOneProgram:
    def test_xla_compiles_it_once_whatever_the_last_batch(self, monkeypatch):
        made = []
        compiled = Devices.compiled

        def noted(devices, function, arguments, *rest, **named):
            made.append([shape for shape, _ in arguments])
            return compiled(devices, function, arguments, *rest, **named)

        monkeypatch.setattr(Devices, "compiled", noted)
        after(line(), compile="jax", devices=4, batch_size=6)
        assert [(8, 3) in shapes for shapes in made] == [True]  # two examples each, and their weights

    def test_a_batch_is_shared_out_and_the_state_is_on_all_devices(self):
        _, optimizer, loss = line()
        steps = compiled_steps(loss, POINTS, optimizer, None, "jax", 4, "all")
        steps.step([0, 1, 2, 3], 0)
        assert len(steps._numbers.sharding.device_set) == 4
        assert steps._numbers.is_fully_replicated
        rows = steps._groups[0].rows(np.arange(3), 0.5)
        assert [shard.data.shape for shard in rows.addressable_shards] == [(1, 3)] * 4
        assert np.asarray(rows)[:, -1].tolist() == [0.5, 0.5, 0.5, 0.0]

    def test_without_a_number_of_devices_it_is_that_on_which_jax_computes(self):
        with jax.default_device(jax.devices()[2]):
            assert compiled_steps(line()[2], POINTS, line()[1], None, "jax")._devices.firsts == [jax.devices()[2]]


class TestAllOrNothing:
    def test_an_error_of_arithmetic_is_that_of_eager_after_as_many_steps(self):
        found = []
        for settings in ({}, {"compile": "jax", "devices": 3}):
            w = Value(1.0, label="w")
            made = [w], mg.optim.SGD([w], 0.9), lambda x, y, w=w: mg.log(w * x)
            with pytest.raises(ValueError, match="log") as error:
                after(made, [(1.0, 0), (2.0, 0), (0.5, 0)], epochs=9, batch_size=2, **settings)
            found.append((str(error.value), made[1].steps, pytest.approx(w.data)))
        assert found[1] == found[0]
        assert found[0][1] > 0

    def test_an_infinite_derivative_behind_a_relu_raises_what_eager_raises(self):
        w, v = Value(-1.0), Value(1.0)
        made = [w, v], mg.optim.SGD([w, v], 0.1), lambda x, y: mg.sqrt(mg.relu(w * x)) + v * v
        with pytest.raises(ZeroDivisionError, match=r"the derivative of sqrt\(0\.0\)"):
            after(made, [(1.0, 0)], compile="jax", devices=2)
        assert (w.data, v.data) == (-1.0, 1.0)

    def test_a_loss_that_is_not_finite_names_the_example(self):
        w = Value(1.0)
        made = [w], mg.optim.SGD([w], 0.1), lambda x, y: w * x
        with pytest.raises(ArithmeticError, match="the loss of example 1 is nan in epoch 1"):
            after(made, [(1.0, 0), (math.nan, 0)], batch_size=2, compile="jax", devices=4)
        assert (w.data, made[1].steps) == (1.0, 0)

    def test_a_callback_that_raises_leaves_the_last_finished_step(self):
        made, expected = line(), line()

        def callback(history):
            if len(history.epochs) == 2:
                raise LookupError("enough")

        with pytest.raises(LookupError, match="enough"):
            after(made, callback=callback, compile="jax", devices=2)
        after(expected, epochs=2)
        assert same([leaf.data for leaf in made[0]], [leaf.data for leaf in expected[0]])
        assert made[1].steps == expected[1].steps

    @pytest.mark.parametrize("examples", [POINTS[:3], [(1.0, 2.0), (0.5, 1), (2, 0.5)]])
    def test_ctrl_c_anywhere_in_a_step_leaves_a_whole_number_of_steps(self, examples):
        """The second examples have a program each."""
        leaves, optimizer, loss = line()
        steps = compiled_steps(loss, examples, optimizer, None, "jax", 3, 2)

        def numbers():
            steps.update_values()
            return [*(leaf.data for leaf in leaves), *np.ravel(optimizer._state)]

        states = [numbers()]
        for _ in range(3):
            steps.step([0, 1, 2], 0)
            states.append(numbers())
        outcomes, count, complete = set(), 0, False
        while not complete:
            for leaf, number in zip(leaves, states[0], strict=False):
                leaf.data = number
            optimizer._kept, optimizer.steps = [(0.0,), (0.0,)], 0
            steps.step([0, 1, 2], 0)
            count += 1
            try:
                interrupted_at(count, partial(steps.step, [0, 1, 2], 0))
                complete = True
            except KeyboardInterrupt:
                pass
            assert numbers() == states[optimizer.steps]
            outcomes.add(optimizer.steps)
        assert outcomes == {1, 2}
        assert count > 10


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "kind", "message"),
        [
            ({"devices": 2}, ValueError, 'devices=2 needs compile="jax", not compile=False'),
            ({"devices": "all", "compile": True}, ValueError, 'needs compile="jax", not compile=True'),
            ({"precision": "float32", "compile": "numpy"}, ValueError, "precision='float32' needs compile=\"jax\""),
            ({"devices": 0}, ValueError, "devices must be at least 1, not 0"),
            ({"devices": True}, TypeError, "devices must be an int, not bool"),
            ({"devices": 2.0}, TypeError, "devices must be an int, not float"),
            ({"devices": "every"}, ValueError, "devices must be an int or \"all\", not 'every'"),
            ({"devices": 5}, ValueError, r"devices=5, but JAX finds 4 \(cpu\); XLA_FLAGS=.*=5 in the environment"),
            ({"precision": "float16"}, ValueError, "precision must be .* not 'float16'"),
            ({"precision": None}, ValueError, "precision must be .* not None"),
        ],
    )
    def test_what_is_wrong_is_said_and_nothing_changes(self, settings, kind, message):
        made = line()
        given = settings if "needs" in message else {"compile": "jax", **settings}
        with pytest.raises(kind, match=message):
            after(made, **given)
        assert (made[0][0].data, made[1].steps) == (0.3, 0)

    def test_without_jax_it_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jax", None)
        with pytest.raises(ImportError, match="the jax backend needs JAX: pip install jax"):
            after(line(), compile="jax", devices=2)


def test_what_differs_between_processes_has_another_digest():
    def digest(rate=2.0, momentum=0.5, examples=POINTS, devices=2, precision="float64"):
        leaves, optimizer, _ = line(lambda leaves: mg.optim.SGD(leaves, 0.05, momentum))
        loss = lambda x, y: (leaves[0] * x + leaves[1] - rate * y) ** 2  # noqa: E731  # one that is made again
        return compiled_steps(loss, examples, optimizer, None, "jax", 2, devices, precision)._digest

    others = {"rate": 3.0}, {"momentum": 0.6}, {"examples": POINTS[:-1]}, {"devices": 3}, {"precision": "float32"}
    assert digest() == digest() not in [digest(**other) for other in others]


class Answer:
    """What the other processes say, when it has come."""

    def __init__(self, rows):
        self.rows, self.looks = rows, 0

    def is_ready(self):
        self.looks += 1
        return self.looks > 1

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=dtype)


@pytest.fixture
def two_processes(monkeypatch):
    """The four devices are those of two processes, as far as micrograd sees."""
    for module in (jax_mesh, jax_processes):
        monkeypatch.setattr(module, "process_of", lambda device: device.id // 2)
    monkeypatch.setattr(jax, "process_count", lambda: 2)


@pytest.fixture
def other(two_processes, monkeypatch):
    """The second of two processes: what it says is put into a list; where that is empty, it says the same."""
    processes, said = Processes(Devices(2, "float64").firsts), []
    exchange = processes._table

    def table(own):
        mine = np.asarray(exchange(own)).tolist()[0]
        return Answer([mine, said.pop(0) if said else mine])

    monkeypatch.setattr(processes, "_table", table)
    processes.said = said
    return processes


class TestWhatProcessesAgreeOn:
    def test_both_train_the_same(self, two_processes):
        expected, found = (after(line(), **settings) for settings in ({}, {"compile": "jax", "devices": 4}))
        assert same(found, expected)

    def test_one_that_has_no_tqdm_for_its_bar_tells_the_other(self, two_processes, monkeypatch):
        told = []
        exchanged = Processes._exchanged
        monkeypatch.setattr(Processes, "_exchanged", lambda self, *words: told.append(words) or exchanged(self, *words))
        monkeypatch.setitem(sys.modules, "tqdm", None)
        with pytest.raises(ImportError, match="pip install tqdm"):
            after(line(), compile="jax", devices=2, progress=True)
        assert told == [(Word.FAILED,)]

    def test_each_has_as_many_of_the_devices(self, two_processes):
        assert [device.id for device in Devices(2, "float64").firsts] == [0, 2]
        for wanted in (1, 3):
            with pytest.raises(ValueError, match=f"devices={wanted} cannot be shared alike by 2 processes.* have 2, 2"):
                Devices(wanted, "float64")

    def test_the_first_leads(self, two_processes):
        devices = Devices(2, "float64").firsts
        assert Processes(devices).leads
        assert not Processes(devices[::-1]).leads

    def test_what_a_callback_saves_the_first_alone_writes(self, two_processes, tmp_path):
        devices = Devices(2, "float64").firsts
        model = mg.nn.MLP(1, [1])
        for leads, order in ((True, devices), (False, devices[::-1])):
            with Processes(order).together():
                model.save(tmp_path / f"{leads}.json")
                mg.save(mg.tanh(Value(1.0)), tmp_path / f"{leads}.dot")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["True.dot", "True.json"]
        with pytest.raises(LookupError), Processes(devices[::-1]).together():
            raise LookupError
        model.save(tmp_path / "after.json")  # as usual
        assert (tmp_path / "after.json").exists()

    @pytest.mark.parametrize(
        ("said", "message"),
        [
            ([Word.FAILED, 0, 0, 0], "process 1 has stopped with an error"),
            ([Word.END, 0, 0, 0], "process 1 has taken its last step, and others go on"),
            ([Word.STEP, 2, 1, 1], "process 1 differs from process 0 in its loss, examples, optimiser or devices"),
            ([Word.STEP, 1, 2, 1], "process 1 differs from process 0 in its parameters"),
            ([Word.STEP, 1, 1, 2], "process 1 differs from process 0 in its learning rate, batches or seed"),
        ],
    )
    def test_what_the_other_does_differently_is_said_once(self, other, said, message):
        other.said += [said, ["nothing is asked any more"]]
        with pytest.raises(RuntimeError, match=message), other.together():
            other.agree(1, 1, 1)
        assert len(other.said) == 1

    def test_an_interrupt_of_the_other_interrupts(self, other):
        other.said.append([Word.INTERRUPTED, 0, 0, 0])
        with pytest.raises(KeyboardInterrupt), other.together():
            other.agree(1, 1, 1)

    @pytest.mark.parametrize(("error", "word"), [(LookupError, Word.FAILED), (KeyboardInterrupt, Word.INTERRUPTED)])
    def test_an_error_is_told_to_the_other(self, other, monkeypatch, error, word):
        told = []
        exchange = other._table
        monkeypatch.setattr(other, "_table", lambda own: told.append(np.asarray(own)[0, 0]) or exchange(own))
        with pytest.raises(error), other.together():  # noqa: PT012  # it is raised inside
            other.agree(1, 1, 1)
            raise error
        assert told == [Word.STEP, word]

    def test_ctrl_c_is_told_at_the_next_step_and_then_it_is_python_again_that_hears_it(self, other):
        steps = []
        with pytest.raises(KeyboardInterrupt), other.together():  # noqa: PT012  # it is to go on at first
            signal.raise_signal(signal.SIGINT)
            steps.append("goes on")
            other.agree(1, 1, 1)
            steps.append("never")
        assert steps == ["goes on"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_a_second_ctrl_c_does_not_wait_for_the_other(self, other):
        other.said.append(["nothing is asked"])
        with pytest.raises(KeyboardInterrupt), other.together():  # noqa: PT012  # the first does not raise
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        assert other.said == [["nothing is asked"]]

    def test_ctrl_c_after_the_last_step_is_not_lost(self, other):
        judge = other._judge

        def late(table):
            judge(table)
            signal.raise_signal(signal.SIGINT)

        other._judge = late
        with pytest.raises(KeyboardInterrupt), other.together():
            pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    def test_ctrl_c_stays_with_whoever_asked_for_it_and_with_the_main_thread(self, other):
        before = signal.signal(signal.SIGINT, lambda number, frame: None)
        try:
            handler = signal.getsignal(signal.SIGINT)
            with other.together():
                assert signal.getsignal(signal.SIGINT) is handler
        finally:
            signal.signal(signal.SIGINT, before)
        ended = []

        def train():
            with other.together():
                other.agree(1, 1, 1)
            ended.append(True)

        thread = threading.Thread(target=train)
        thread.start()
        thread.join()
        assert ended == [True]

    def test_where_the_other_is_gone_the_error_says_so_and_nobody_is_told(self, other, monkeypatch):
        calls = []

        def broken(own):
            calls.append(own)
            raise ValueError("UNKNOWN: Connection reset by peer")

        monkeypatch.setattr(other, "_table", broken)
        with pytest.raises(RuntimeError, match=r"is gone, or cannot be reached .*reset by peer"), other.together():
            other.agree(1, 1, 1)
        assert len(calls) == 1


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def run_two_processes(folder):
    """What both have printed, a list of trainings for each, and the standard error of each."""
    for _ in range(5):  # between its being found and its being taken, another process may take the port
        command = [sys.executable, "-m", in_two_processes.__name__, str(free_port())]
        processes = [
            subprocess.Popen(
                [*command, str(number), str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            for number in range(2)
        ]
        try:
            leads = processes[0].communicate(timeout=600)
            if processes[0].returncode != in_two_processes.PORT_IS_TAKEN:
                texts = [leads, processes[1].communicate(timeout=600)]
                break
        finally:
            for process in processes:
                process.kill()
                process.wait()
    assert [process.returncode for process in processes] == [0, -signal.SIGKILL], texts
    # The collectives write to standard output too
    trainings = [[json.loads(row) for row in out.splitlines() if row.startswith("{")] for out, _ in texts]
    return trainings, [errors for _, errors in texts]


@pytest.mark.unmeasured
def test_two_processes_of_four_devices_each(tmp_path):
    (first, second), errors = run_two_processes(tmp_path)
    *both, killed = first
    assert len(both) == len(second) == 5
    whole, failed, interrupted, other_seed, other_epochs = zip(both, second, strict=True)

    model, optimizer, loss, examples = in_two_processes.network()
    history = mg.fit(loss, examples, optimizer, epochs=3, batch_size=8, seed=3)
    for found in whole:
        assert found["steps"] == pytest.approx(history.steps, abs=1e-10)
        assert found["parameters"] == pytest.approx([p.data for p in model.parameters()], abs=1e-10)
        assert np.array(found["state"]) == pytest.approx(np.array(optimizer._state), abs=1e-10)
    assert "9/9" in errors[0]
    assert "step" not in errors[1]  # the first one alone shows a bar

    _, optimizer, loss, examples = in_two_processes.line()
    history = mg.fit(loss, examples, optimizer, epochs=2, batch_size=8, seed=3)
    after_two = pytest.approx([optimizer.parameters[0].data, optimizer._state[0][0]], abs=1e-10)
    for found in (*failed, *interrupted, *other_epochs, killed):
        assert [found["parameters"][0], found["state"][0][0]] == after_two
        assert found["taken"] == 2
    assert ["process 1 has stopped with an error" in failed[0]["error"], failed[1]["error"]] == [
        True,
        "LookupError: there is no third epoch",
    ]
    for found in interrupted:
        assert (found["error"], found["interrupted"]) == ("", True)
        assert found["steps"] == pytest.approx(history.steps, abs=1e-10)
    for found in other_seed:
        assert "process 1 differs from process 0 in its learning rate, batches or seed" in found["error"]
        assert found["taken"] == 0
    assert all("process 0 has taken its last step" in found["error"] for found in other_epochs)
    assert "a process that trains together with this one is gone" in killed["error"]
    model, *_ = in_two_processes.line()
    model.load(tmp_path / "model0.json")  # which the first process saved after each epoch
    assert model.layers[0].neurons[0].w[0].data == killed["parameters"][0]
    assert [path.name for path in tmp_path.iterdir()] == ["model0.json"]  # the second one was told to save, too
