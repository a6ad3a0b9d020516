"""What a learning rate, a callback or noise changes between the steps of fit, compiled and eagerly."""

import os
import warnings

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow(together=True)

BACKENDS = ["numpy", "llvm", "jax"]
POINTS = [(0.5, 1.0), (1.5, 2.0), (-1.0, 0.25), (2.0, -1.0), (0.0, 1.0)]
SCALE = 1.0


class World:
    """What a loss closes over, and what trains it."""

    def __init__(self):
        self.w = [Value(0.5), Value(-0.25)]
        self.settings = {"scale": 1.0}
        self.frozen = Value(1.0, requires_grad=False)
        self.frozen.factor = 1.0
        self.factors = np.ones(3)
        self.large = np.ones(200_000)
        self.rates = []

    def loss(self, x, y, noise=0.0):
        scale = self.settings["scale"] * self.factors[1] * self.large[150_000] * SCALE
        return (self.w[0] * x * scale + self.w[1] * self.frozen * self.frozen.factor + noise - y) ** 2


def number_of(world):
    """What every change is derived from."""
    return 1.0 + 0.125 * len(world.rates)


def a_dict(world):
    world.settings["scale"] = number_of(world)


def an_array(world):
    world.factors[1] = number_of(world)


def a_large_array(world):
    world.large[150_000] = number_of(world)


def a_frozen_value(world):
    world.frozen.data = number_of(world)


def an_attribute_of_a_value(world):
    world.frozen.factor = number_of(world)


def a_parameter(world):
    world.w[0].data *= 0.5


def a_global(world):
    global SCALE
    SCALE = number_of(world)


def what_it_reads_itself(world):
    world.settings["scale"] = 1.0 + world.w[0].data


def the_gradient_that_it_reads(world):
    world.settings["scale"] = 1.0 + 0.125 * world.w[0].grad


def nothing(world):
    pass


CHANGES = [
    a_dict,
    an_array,
    a_large_array,
    a_frozen_value,
    an_attribute_of_a_value,
    a_parameter,
    a_global,
    what_it_reads_itself,
    the_gradient_that_it_reads,
    nothing,
]


def trained(mode, way, change, batch_size=2):
    """The losses and all numbers after a training in which something changes in one way."""
    global SCALE
    SCALE = 1.0
    world = World()

    def rate(step):
        world.rates.append(step)
        if step % 3 == 1:
            change(world)
        return 0.05 / (1 + step)

    def callback(history):
        world.rates.append(0)
        change(world)

    def draw(count):
        world.rates.append(0)
        if len(world.rates) % 3 == 0:
            change(world)
        return [0.125 * position for position in range(count)]

    settings = {"rate": {}, "callback": {"callback": callback}, "noise": {"noise": draw}}[way]
    optimizer = mg.optim.Adam(world.w, rate if way == "rate" else 0.05)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the learning rate is a function that may read", RuntimeWarning)
        history = mg.fit(
            world.loss,
            POINTS,
            optimizer,
            epochs=3,
            batch_size=batch_size,
            seed=3,
            compile=mode,
            progress=False,
            **settings,
        )
    numbers = [value.data for value in (*world.w, world.frozen)]
    return history.steps, numbers, [value.grad for value in world.w], world.rates, optimizer.steps


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("way", ["rate", "callback", "noise"])
@pytest.mark.parametrize("compiled", BACKENDS)
def test_what_is_changed_is_noticed_as_eagerly(compiled, way, change):
    expected = trained(False, way, change)
    found = trained(compiled, way, change)
    for number, other in zip(found[:3], expected[:3], strict=True):
        assert number == pytest.approx(other, rel=1e-9)
    assert found[3:] == expected[3:]


@pytest.mark.parametrize("change", [a_dict, an_array, a_global])
@pytest.mark.parametrize("reads_array", [False, True])
def test_programs_for_examples_of_other_lengths_notice_it_too(change, reads_array):
    def run(mode):
        global SCALE
        SCALE = 1.0
        world = World()

        def loss(row):
            scale = world.settings["scale"] * SCALE * (world.factors[1] if reads_array else 1.0)
            return (mg.dot(world.w[: len(row)], row) * scale - 1.0) ** 2

        def callback(history):
            world.rates.append(0)
            change(world)

        optimizer = mg.optim.Adam(world.w, 0.05)
        rows = [[1.0], [0.5, -1.0], [2.0], [1.5, 0.25]]
        history = mg.fit(loss, rows, optimizer, epochs=4, seed=3, compile=mode, progress=False, callback=callback)
        return [*history.steps, *(value.data for value in world.w)]

    assert run("llvm") == pytest.approx(run(False), rel=1e-9)


@pytest.mark.parametrize("compiled", ["numpy", "llvm"])
@pytest.mark.parametrize("way", ["rate", "noise"])
def test_examples_that_are_changed_between_steps_are_read_again(compiled, way):
    def run(mode):
        w, rows = Value(0.5), [[1.0], [2.0], [3.0]]

        def change(number):
            rows[0][0] += 0.5
            return 0.01 if way == "rate" else [0.5] * number

        history = mg.fit(
            lambda row, noise=0.0: (w * row[0] + noise) ** 2,
            rows,
            mg.optim.SGD([w], change if way == "rate" else 0.01),
            epochs=3,
            seed=1,
            compile=mode,
            progress=False,
            noise=change if way == "noise" else None,
        )
        return history.steps

    assert run(compiled) == pytest.approx(run(False), rel=1e-9)


@pytest.mark.parametrize("compiled", ["numpy", "llvm"])
def test_a_rate_of_an_optimiser_of_ones_own(compiled):
    class Own(mg.optim.SGD):
        def next_rate(self, step=None):
            return 0.01 / (1.0 + abs(self.parameters[0].grad))

    def run(mode):
        w = Value(0.5)
        return mg.fit(lambda x: (w * x - 1) ** 2, [1.0, 2.0], Own([w]), epochs=3, seed=1, compile=mode).steps

    assert run(compiled) == pytest.approx(run(False), rel=1e-9)


def test_a_rate_that_only_computes_leaves_the_update_to_the_program(monkeypatch):
    steps = []
    monkeypatch.setattr(mg.optim.SGD, "_next", lambda *given: steps.append(given))
    w, base, rates = Value(0.5), {"rate": 0.01}, []

    def rate(step):
        rates.append(step)
        return base["rate"] / (1 + step) * float(os.environ.get("NO_SUCH_FACTOR", "1"))

    mg.fit(lambda x: (w * x - 1) ** 2, [1.0, 2.0], mg.optim.SGD([w], rate), epochs=2, compile="numpy", progress=False)
    assert steps == []
    assert rates == [0, 1, 2, 3]


def test_ten_traces_of_a_loss_in_a_row_are_warned_of_once():
    w, settings = Value(0.5), {"scale": 1.0}

    def draw(count):
        settings["scale"] += 0.125
        return [0.0] * count

    def run(epochs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            mg.fit(
                lambda x, noise: (w * x * settings["scale"] - 1) ** 2,
                [1.0],
                mg.optim.SGD([w], 0.01),
                epochs=epochs,
                compile="numpy",
                progress=False,
                noise=draw,
            )
        return [str(warning.message) for warning in caught]

    assert run(9) == []
    (message,) = run(12)
    assert "was traced again before each of 10 steps, as settings['scale'] was replaced" in message


@pytest.mark.slow
def test_jax_says_once_that_a_rate_makes_all_steps_eager():
    w, settings = Value(0.5), {"scale": 1.0}

    def rate(step):
        settings["scale"] = 1.0 + step
        return 0.01

    with pytest.warns(RuntimeWarning, match="the learning rate is a function that may read or change") as caught:
        mg.fit(
            lambda x: (w * x * settings["scale"] - 1) ** 2,
            [1.0, 2.0],
            mg.optim.SGD([w], rate),
            epochs=2,
            compile="jax",
            progress=False,
        )
    assert len(caught) == 1
    assert caught[0].filename == __file__
