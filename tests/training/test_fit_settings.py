"""Settings of fit beside the first ones: each eagerly, compiled, and with others."""

import itertools
import math
import pickle
import random
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.training.buffer_steps import BufferSteps
from micrograd.nn import MLP
from micrograd.training import History
from tests.interrupts import interrupted_at

pytestmark = pytest.mark.slow(together=True)

JAX = "jax"
MODES = pytest.mark.parametrize("mode", [False, "numpy", "llvm", JAX])
POINTS = [(1.0, 2.0), (2.0, 4.1), (-1.0, -2.2), (0.5, 1.3), (3.0, 5.7)]
OTHERS = [(0.0, 0.5), (1.5, 3.0)]


def line(learning_rate=0.05):
    """The leaves of a line, an optimiser, and the squared error of a point."""
    slope, intercept = Value(0.3), Value(-0.2)
    leaves = [slope, intercept]

    def loss(x, y, noise=0.0):
        return (slope * (x + noise) + intercept - y) ** 2

    return leaves, mg.optim.Adam(leaves, learning_rate), loss


def numbers(leaves):
    return [leaf.data for leaf in leaves]


def trained(mode, data=POINTS, **settings):
    """The numbers of a line after a training, and its history."""
    leaves, optimizer, loss = line()
    settings = {"epochs": 2, "batch_size": 2, "seed": 5, "progress": False} | settings
    history = mg.fit(loss, data, optimizer, compile=mode, **settings)
    return numbers(leaves), history


def drawing(seed=4):
    rng = random.Random(seed)
    return lambda count: [rng.gauss(0, 0.1) for _ in range(count)]


class TestOrder:
    @MODES
    def test_without_shuffling_the_examples_come_in_order(self, mode):
        leaf = Value(1.0)
        examples = [1.0, 2.0, 4.0]
        history = mg.fit(lambda x: leaf * x, examples, mg.optim.SGD([leaf], 0.0), epochs=2, shuffle=False, compile=mode)
        assert history.steps == examples * 2

    @MODES
    def test_an_epoch_of_a_list_has_as_many_steps_as_asked_for(self, mode):
        leaf = Value(1.0)
        optimizer = mg.optim.SGD([leaf], 0.0)
        history = mg.fit(lambda x: leaf * x, [1.0, 2.0, 4.0], optimizer, shuffle=False, steps=5, compile=mode)
        assert (history.steps, len(history.epochs)) == ([1.0, 2.0, 4.0, 1.0, 2.0], 1)

    @MODES
    @pytest.mark.parametrize("batch_size", [1, 2])
    def test_an_endless_generator_is_taken_as_it_comes(self, mode, batch_size):
        leaf, count = Value(1.0), itertools.count()
        history = mg.fit(
            lambda x: leaf * x,
            (float(number) for number in count),
            mg.optim.SGD([leaf], 0.0),
            epochs=2,
            steps=3,
            batch_size=batch_size,
            compile=mode,
        )
        means = [sum(range(i * batch_size, (i + 1) * batch_size)) / batch_size for i in range(6)]
        assert history.steps == means
        assert history.epochs == [sum(means[:3]) / 3, sum(means[3:]) / 3]
        assert next(count) == 6 * batch_size

    @MODES
    def test_examples_of_a_generator_may_be_of_several_structures(self, mode):
        leaf = Value(1.0)
        rows = iter([[1.0], [1.0, 2.0], [4.0], [8.0]])
        history = mg.fit(lambda row: leaf * sum(row), rows, mg.optim.SGD([leaf], 0.5), steps=4, compile=mode)
        assert history.steps == [1.0, 1.5, -4.0, -24.0]

    @MODES
    @pytest.mark.parametrize("length", [3, 4, 6])
    def test_a_generator_that_ends_ends_the_run(self, mode, length):
        _, history = trained(mode, (point for point in (POINTS * 2)[:length]), epochs=9, steps=2)
        assert (len(history.steps), len(history.epochs)) == {3: (2, 1), 4: (2, 1), 6: (3, 2)}[length]
        means = history.steps
        if length == 3:
            assert history.epochs == [(means[0] * 2 + means[1]) / 3]

    def test_a_generator_without_examples_is_no_data(self):
        with pytest.raises(ValueError, match="no data"):
            trained(False, iter([]), steps=2)

    def test_an_error_names_the_example_of_a_generator_by_its_number_in_all(self):
        leaf = Value(1.0)
        with pytest.raises(OverflowError, match="example 4 in epoch 2"):
            mg.fit(
                lambda x: leaf * mg.exp(x),
                iter([1.0, 1.0, 1.0, 1.0, Value(1e4)]),
                mg.optim.SGD([leaf], 0.0),
                epochs=2,
                steps=3,
            )

    def test_a_recording_needs_a_list(self):
        model = MLP(1, [1])
        record = mg.Recording(model, [[0.0]])
        with pytest.raises(ValueError, match="record needs a list"):
            trained(False, iter(POINTS), steps=2, record=record)


class TestValidation:
    @MODES
    def test_its_loss_and_metrics_are_those_of_the_model_after_each_epoch(self, mode):
        leaves, optimizer, loss = line()
        expected = []

        def note(history):
            (slope, intercept) = numbers(leaves)
            errors = [slope * x + intercept - y for x, y in OTHERS]
            expected.append([sum(e * e for e in errors) / 2, sum(map(abs, errors)) / 2, sum(e > 0 for e in errors) / 2])

        def error(x, y):
            return leaves[0] * x + leaves[1] - y

        metrics = {"far": lambda x, y: abs(error(x, y)), "above": lambda x, y: error(x, y) > 0}
        settings = {"validation": OTHERS, "metrics": metrics, "callback": note, "compile": mode}
        history = mg.fit(loss, POINTS, optimizer, epochs=4, batch_size=2, seed=5, **settings)
        found = zip(history.validation, history.metrics["far"], history.metrics["above"], strict=True)
        assert [pytest.approx(row, rel=1e-12) for row in expected] == list(map(list, found))
        assert list(history.metrics) == ["far", "above"]

    @MODES
    def test_it_changes_nothing_in_the_training(self, mode):
        assert trained(mode)[0] == trained(mode, validation=iter(OTHERS), patience=9, epochs=2)[0]

    @MODES
    def test_a_metric_that_cannot_be_compiled_is_computed_eagerly(self, mode):
        def best(x, y):
            return np.float64(max(range(3), key=lambda index: Value(index) * 1.0))

        assert trained(mode, validation=OTHERS, metrics={"best": best})[1].metrics == {"best": [2.0, 2.0]}

    @MODES
    def test_a_metric_that_reads_numbers_is_computed_eagerly(self, mode):
        metrics = {"sign": lambda x, y: math.copysign(1.0, x - y)}
        assert trained(mode, validation=OTHERS, metrics=metrics)[1].metrics == {"sign": [-1.0, -1.0]}

    @MODES
    @pytest.mark.unmeasured
    def test_noise_is_for_training_only(self, mode):
        _, history = trained(mode, noise=drawing(), validation=OTHERS)
        leaves, _, loss = line()
        found, _ = trained(mode, noise=drawing())
        for leaf, number in zip(leaves, found, strict=True):
            leaf.data = number
        assert history.validation[-1] == pytest.approx(sum(loss(*point).data for point in OTHERS) / 2, rel=1e-12)

    def test_a_loss_that_needs_noise_is_refused(self):
        leaves, optimizer, _ = line()
        with pytest.raises(TypeError, match="noise=None"):
            mg.fit(lambda x, y, noise: leaves[0] * x, POINTS, optimizer, validation=OTHERS, noise=drawing())

    def test_a_loss_that_does_not_say_what_it_takes_is_called(self):
        leaf = Value(2.0)
        history = mg.fit(leaf.__mul__, [1.0], mg.optim.SGD([leaf], 0.0), validation=[3.0])
        assert history.validation == [6.0]

        class Loss:
            __signature__ = "unknown"

            def __call__(self, x):
                return leaf * x

        assert mg.fit(Loss(), [1.0], mg.optim.SGD([leaf], 0.0), validation=[3.0]).validation == [6.0]

    def test_a_metric_that_gives_no_number_is_refused_by_name(self):
        with pytest.raises(TypeError, match="the a of validation example 0"):
            trained(False, validation=OTHERS, metrics={"a": lambda x, y: "b"})

    @MODES
    def test_a_validation_loss_that_is_not_finite_names_epoch_and_example(self, mode):
        leaf = Value(1.0)
        for bad, words in (([1e4], "the loss of validation example 0 in epoch 1"), ([math.inf], "is inf in epoch 1")):
            with pytest.raises(ArithmeticError, match=words):
                mg.fit(
                    lambda row: leaf * (mg.exp(row[0]) if len(row) == 1 else row[1]),
                    [[1.0]],
                    mg.optim.SGD([leaf], 0.1),
                    validation=[bad if bad[0] == 1e4 else [1.0, math.inf]],
                    compile=mode,
                )

    def test_the_bar_shows_what_the_last_epoch_gave(self, capsys, monkeypatch):
        monkeypatch.setenv("COLUMNS", "200")  # by which some versions of tqdm cut it off
        metrics = {"accuracy": lambda x, y: 0.25}
        _, history = trained(False, validation=OTHERS, metrics=metrics, progress=True)
        shown = capsys.readouterr().err
        assert f"validation {history.validation[0]:.4f}, accuracy 0.2500" in shown


class TestPatience:
    @MODES
    @pytest.mark.parametrize("epochs", [40, 6])
    @pytest.mark.unmeasured
    def test_it_ends_the_run_and_gives_the_best_parameters_back(self, mode, epochs):
        leaves, optimizer, loss = line(0.4)
        after = []
        settings = {"validation": [(1.0, 0.5)], "patience": 3, "compile": mode, "epochs": epochs}
        history = mg.fit(
            loss, POINTS, optimizer, seed=5, callback=lambda history: after.append(numbers(leaves)), **settings
        )
        best = history.best_epoch
        assert history.validation[best - 1] == min(history.validation)
        assert numbers(leaves) == after[best - 1] != after[-1]
        assert len(history.epochs) == min(best + 3, epochs)

    def test_after_an_interrupt_the_parameters_are_the_last_ones(self):
        leaves, optimizer, loss = line(0.4)
        after = []

        def interrupt(history):
            after.append(numbers(leaves))
            if len(after) == 3:
                raise KeyboardInterrupt

        history = mg.fit(
            loss, POINTS, optimizer, seed=5, epochs=9, validation=[(1.0, 0.5)], patience=8, callback=interrupt
        )
        assert history.interrupted
        assert numbers(leaves) == after[-1]


class TestCallback:
    @MODES
    @pytest.mark.parametrize("true", [True, np.True_], ids=repr)
    @pytest.mark.unmeasured
    def test_true_ends_the_run(self, mode, true):
        found, history = trained(mode, epochs=5, callback=lambda history: len(history.loss) == 2 and true)
        assert (len(history.epochs), found) == (2, trained(mode)[0])

    @pytest.mark.parametrize("answer", [None, False, np.False_, 1, "yes", [1]], ids=repr)
    def test_nothing_else_does(self, answer):
        assert len(trained(False, callback=lambda history: answer)[1].epochs) == 2


class TestClipping:
    @MODES
    @pytest.mark.parametrize("norm", [0.5, 1e6])
    def test_a_gradient_of_a_larger_norm_is_scaled_down(self, mode, norm):
        leaves = [Value(1.0), Value(2.0), Value(3.0, requires_grad=False)]
        optimizer = mg.optim.SGD(leaves, 1.0)
        mg.fit(
            lambda x: leaves[0] * 3 * x + leaves[1] * 4 * x + leaves[2], [2.0], optimizer, clip_norm=norm, compile=mode
        )
        scale = min(norm / 10, 1)
        assert numbers(leaves) == pytest.approx([1 - 6 * scale, 2 - 8 * scale, 3.0], rel=1e-12)
        assert [leaf.grad for leaf in leaves] == pytest.approx([6 * scale, 8 * scale, 0.0], rel=1e-12)

    @MODES
    @pytest.mark.parametrize("large", [0.0, 1.5e308])
    def test_norms_of_zero_and_beyond_floats_are_no_exception(self, mode, large):
        leaves = [Value(1.0), Value(1.0)]
        optimizer = mg.optim.SGD(leaves, 1.0)
        mg.fit(lambda x: leaves[0] * x - leaves[1] * x, [large], optimizer, clip_norm=1.0, compile=mode)
        away = math.sqrt(0.5) if large else 0.0
        assert numbers(leaves) == pytest.approx([1 - away, 1 + away], rel=1e-12)

    @MODES
    def test_it_is_the_same_with_batches_and_noise_and_a_learning_rate_that_looks(self, mode):
        settings = {"clip_norm": 0.1, "noise": drawing(), "epochs": 3}
        expected = trained(False, **settings)[0]
        assert trained(mode, **settings | {"noise": drawing()})[0] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize("mode", ["numpy", "llvm"])
    def test_the_optimizer_gets_it_where_its_learning_rate_may_change_what_the_loss_reads(self, mode):
        results = []
        for compiled in (False, mode):
            leaves = [Value(1.0), Value(2.0)]
            optimizer = mg.optim.SGD(leaves, lambda step, leaves=leaves: 0.1 * abs(leaves[0].data))
            mg.fit(
                lambda x, leaves=leaves: (leaves[0] * x + leaves[1]) ** 2,
                [1.0, 2.0],
                optimizer,
                clip_norm=0.5,
                compile=compiled,
                seed=0,
            )
            results.append(numbers(leaves))
        assert results[0] == pytest.approx(results[1], rel=1e-12)

    @MODES
    def test_a_gradient_that_is_not_finite_is_an_error_as_without(self, mode):
        leaf = Value(1e-200)
        with pytest.raises(ArithmeticError, match="epoch 1"):
            mg.fit(lambda x: leaf**0.01 * x * x, [1e154], mg.optim.SGD([leaf], 1.0), clip_norm=1.0, compile=mode)
        assert leaf.data == 1e-200


class TestOverflow:
    @MODES
    def test_a_loss_that_overflows_names_epoch_and_example_and_gives_advice(self, mode):
        leaf = Value(1.0)
        optimizer = mg.optim.SGD([leaf], 0.0)
        with pytest.raises(OverflowError, match=r"example 1 in epoch 1: .*smaller learning rate, clip_norm=") as caught:
            mg.fit(lambda x: mg.exp(leaf * x), [1.0, 1e4], optimizer, shuffle=False, compile=mode)
        assert isinstance(caught.value.__cause__, OverflowError)
        assert optimizer.steps == 1

    @MODES
    def test_so_does_an_update(self, mode):
        leaf = Value(1.0)
        optimizer = mg.optim.SGD([leaf], 1e300)
        with pytest.raises(ArithmeticError, match=r"epoch 1: .*parameter 0.*smaller learning rate"):
            mg.fit(lambda x: leaf * x, [1e300], optimizer, compile=mode)
        assert leaf.data == 1.0


def interrupted(leaves, at):
    """Adam whose learning rate raises KeyboardInterrupt once, before the step with this number from 1."""
    pending = [at - 1]

    def rate(step):
        if pending == [step]:
            pending.clear()
            raise KeyboardInterrupt
        return 0.05

    return mg.optim.Adam(leaves, rate)


class TestResuming:
    @pytest.mark.slow
    @pytest.mark.unmeasured
    @MODES
    @pytest.mark.parametrize("step", range(1, 7))
    @pytest.mark.parametrize("seed", [5, None])
    @pytest.mark.parametrize("again", [lambda history: history, lambda history: pickle.loads(pickle.dumps(history))])
    def test_a_run_that_is_continued_is_one_that_was_not_interrupted(self, mode, step, seed, again):
        random.seed(3)
        settings = {"batch_size": 2, "seed": seed, "epochs": 2, "compile": mode, "validation": OTHERS, "patience": 9}
        expected, whole = trained(mode, noise=drawing(), **{k: v for k, v in settings.items() if k != "compile"})
        random.seed(3)
        leaves, _, loss = line()
        noise = drawing()
        optimizer = interrupted(leaves, step)
        first = mg.fit(loss, POINTS, optimizer, **settings, noise=noise)
        assert (first.interrupted, len(first.steps)) == (True, step - 1)
        second = mg.fit(loss, POINTS, optimizer, **settings, noise=noise, resume=again(first))
        assert (numbers(leaves), second.steps, second.epochs, second.validation) == (
            expected,
            whole.steps,
            whole.epochs,
            whole.validation,
        )
        assert not second.interrupted

    @MODES
    def test_a_generator_goes_on_with_the_batch_of_the_interrupted_step(self, mode):
        stream = [(float(number % 4), float(number % 3)) for number in range(12)]
        expected, whole = trained(mode, iter(stream), steps=3)
        source, settings = iter(stream), {"epochs": 2, "batch_size": 2, "steps": 3, "compile": mode}
        leaves, _, loss = line()
        optimizer = interrupted(leaves, 5)
        first = mg.fit(loss, source, optimizer, **settings)
        history = mg.fit(loss, source, optimizer, resume=first, **settings)
        assert (numbers(leaves), history.steps, history.epochs) == (expected, whole.steps, whole.epochs)

    @pytest.mark.slow
    @pytest.mark.unmeasured
    @pytest.mark.parametrize("mode", [False, "numpy"])
    def test_a_run_that_is_interrupted_anywhere_can_be_continued(self, mode):
        def run(train):
            leaves, optimizer, loss = line()
            metrics = {"far": lambda x, y: abs(leaves[0] * x - y)}
            settings = {"epochs": 2, "batch_size": 2, "seed": 5, "validation": OTHERS, "metrics": metrics}
            settings |= {"patience": 5, "clip_norm": 1.0, "compile": mode, "progress": False}
            history = train(partial(mg.fit, loss, POINTS, optimizer, **settings))
            return numbers(leaves), history.steps, history.epochs, history.validation, history.metrics

        expected = run(lambda fit: fit())
        count, inside, first, stride = 1, 0, *((1, 37) if not mode else (1499, 251))
        while True:
            ended = []

            def train(fit, ended=ended, count=count):
                try:
                    history = interrupted_at(count, fit)
                except KeyboardInterrupt:  # before the run began, or after it ended
                    ended.append(None)
                    return History()
                ended.append(history.interrupted)
                return fit(resume=history)

            found = run(train)
            if ended == [None]:
                if inside:
                    break
            else:
                assert found == expected
                inside += ended == [True]
                if ended == [False]:
                    break
            count += stride if inside else first
        assert inside > 20

    @MODES
    @pytest.mark.unmeasured
    def test_more_epochs_continue_a_run_that_has_ended(self, mode):
        expected, whole = trained(mode, epochs=4)
        leaves, optimizer, loss = line()
        settings = {"batch_size": 2, "seed": 5, "compile": mode}
        first = mg.fit(loss, POINTS, optimizer, epochs=2, **settings)
        assert mg.fit(loss, POINTS, optimizer, epochs=2, **settings, resume=first) is first
        assert len(first.steps) == 6
        history = mg.fit(loss, POINTS, optimizer, epochs=4, **settings, resume=first)
        assert (numbers(leaves), history.steps) == (expected, whole.steps)

    def test_a_step_that_was_done_when_ctrl_c_came_is_in_the_history(self):
        leaves, optimizer, loss = line()
        step = optimizer.step

        def stepping():
            step()
            if optimizer.steps == 2:
                raise KeyboardInterrupt

        optimizer.step = stepping
        history = mg.fit(loss, POINTS, optimizer, epochs=2, batch_size=2, seed=5)
        assert (optimizer.steps, len(history.steps)) == (2, 2)
        history = mg.fit(loss, POINTS, optimizer, epochs=2, batch_size=2, seed=5, resume=history)
        expected, whole = trained(False)
        assert (numbers(leaves), history.steps, history.epochs) == (expected, whole.steps, whole.epochs)

    @pytest.mark.parametrize("settings", [{"batch_size": 3}, {"data": POINTS[:4]}, {"steps": 2}, {"seed": 6}])
    def test_other_settings_are_refused(self, settings):
        _, history = trained(False)
        with pytest.raises(ValueError, match="resume needs the same data of this length, batch_size, steps and seed"):
            trained(False, **settings, resume=history)

    def test_the_bar_has_the_steps_that_are_left(self, capsys):
        leaves, _, loss = line()
        settings, optimizer = {"epochs": 2, "batch_size": 2, "seed": 5}, interrupted(leaves, 3)
        first = mg.fit(loss, POINTS, optimizer, **settings)
        mg.fit(loss, POINTS, optimizer, **settings, resume=first, progress=True)
        assert "4/4" in capsys.readouterr().err


class TestHistory:
    def test_it_prints_as_a_table(self):
        history = History()
        assert str(history) == "History(0 epochs, 0 steps)"
        history.steps = history.epochs = [2.0, 0.5]
        history.validation, history.metrics = [3.0, 1.23456], {"accuracy": [0.5, 1.0]}
        assert str(history).splitlines() == [
            "epoch  loss  validation  accuracy",
            "    1     2           3       0.5",
            "    2   0.5       1.235         1",
        ]
        assert history.loss == [2.0, 0.5]
        assert (history.best_epoch, History().best_epoch) == (2, None)

    def test_a_long_table_leaves_the_middle_out(self):
        history = History()
        history.epochs = [float(number) for number in range(100)]
        lines = str(history).splitlines()
        assert [line.split()[0] for line in lines] == ["epoch", *"123456", "...", "96", "97", "98", "99", "100"]
        history.epochs = history.epochs[:12]
        assert len(str(history).splitlines()) == 13

    @pytest.mark.slow  # it loads Matplotlib
    def test_it_plots_itself(self):
        mpl = pytest.importorskip("matplotlib")
        mpl.use("agg")
        _, history = trained(False, validation=OTHERS)
        axes = history.plot()
        assert [line.get_label() for line in axes.get_lines()] == ["loss", "validation"]
        assert axes.get_lines()[1].get_ydata().tolist() == history.validation
        assert history.plot(axes) is axes
        mpl.pyplot.close("all")

    def test_a_missing_matplotlib_is_named(self, monkeypatch):
        monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
        with pytest.raises(ImportError, match="pip install matplotlib"):
            History().plot()


@MODES
def test_a_recording_with_validation_and_clipping(mode):
    random.seed(1)
    model = MLP(1, [2, 1])
    record = mg.Recording(model, [[0.0]])
    history = mg.fit(
        lambda x, y: (model([x]) - y) ** 2,
        POINTS,
        mg.optim.SGD(model, 0.05),
        record=record,
        validation=OTHERS,
        clip_norm=1.0,
        compile=mode,
        shuffle=False,
    )
    assert (record.losses, len(history.validation)) == (history.steps, 1)


@pytest.mark.parametrize("eagerly", [False, True])
def test_a_compiled_step_that_was_done_when_ctrl_c_came_is_in_the_history(monkeypatch, eagerly):
    _, optimizer, loss = line()
    if eagerly:
        monkeypatch.setattr(BufferSteps, "_has_constant_loss", lambda steps, batch: True)
    expected = trained("numpy")[1].steps[0]
    step = BufferSteps.step

    def interrupted_after(steps, batch, epoch, noise=None):
        step(steps, batch, epoch, noise)
        raise KeyboardInterrupt

    monkeypatch.setattr(BufferSteps, "step", interrupted_after)
    history = mg.fit(loss, POINTS, optimizer, batch_size=2, seed=5, compile="numpy")
    assert history.interrupted
    assert history.steps == pytest.approx([expected], rel=1e-12)
