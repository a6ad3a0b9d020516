"""Random numbers in the loss of fit: drawn for each step, and the same with and without the compiler."""

import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

BACKENDS = ["numpy", "llvm", "jax"]


def trained(mode, loss, draw, examples, epochs=3, batch_size=2):
    """The history and the parameters of a short training."""
    w = [Value(0.5), Value(-0.25)]
    history = mg.fit(
        lambda *given, **named: loss(w, *given, **named),
        examples,
        mg.optim.Adam(w, 0.05),
        epochs=epochs,
        batch_size=batch_size,
        seed=3,
        compile=mode,
        noise=draw,
        progress=False,
    )
    return history.steps, [value.data for value in w]


def of_pair(w, x, y, noise):
    return (w[0] * (x + noise) + w[1] - y) ** 2


def of_array(w, x, noise):
    return (noise * np.array([w[0], w[1], w[0]]) * x).sum() ** 2


def of_nested(w, x, noise):
    return (w[0] * noise["a"] + w[1] * x * noise["b"][1] - noise["b"][0]) ** 2


def normal_numbers():
    rng = random.Random(5)
    return lambda count: [rng.gauss(0, 1) for _ in range(count)]


def rows_of_an_array():
    rng = np.random.default_rng(5)
    return lambda count: rng.normal(size=(count, 3))


def masks():
    rng = np.random.default_rng(6)
    return lambda count: (rng.random((count, 3)) > 0.5).astype(int)


def list_of_arrays():
    rng = np.random.default_rng(7)
    return lambda count: tuple(rng.normal(size=3) for _ in range(count))


def nested():
    rng = random.Random(8)
    return lambda count: [{"a": rng.random(), "b": [rng.random(), rng.randrange(5)]} for _ in range(count)]


PAIRS = [(0.5, 1.0), (1.5, 2.0), (-1.0, 0.25), (2.0, -1.0), (0.0, 1.0)]
NUMBERS = [0.5, 1.5, -1.0, 2.0, 0.25]


@pytest.mark.slow
@pytest.mark.parametrize("compiled", BACKENDS)
@pytest.mark.parametrize(
    ("loss", "make", "examples"),
    [
        (of_pair, normal_numbers, PAIRS),
        (of_array, rows_of_an_array, NUMBERS),
        (of_array, masks, NUMBERS),
        (of_array, list_of_arrays, NUMBERS),
        (of_nested, nested, NUMBERS),
    ],
)
@pytest.mark.parametrize("batch_size", [1, 2, 5])
@pytest.mark.unmeasured
def test_noise_is_the_same_with_and_without_the_compiler(loss, make, examples, batch_size, compiled):
    steps, numbers = trained(False, loss, make(), examples, batch_size=batch_size)
    found, found_numbers = trained(compiled, loss, make(), examples, batch_size=batch_size)
    assert found == pytest.approx(steps, rel=1e-9)
    assert found_numbers == pytest.approx(numbers, rel=1e-9)
    assert len(set(steps)) == len(steps)


@pytest.mark.parametrize("compiled", BACKENDS)
def test_noise_goes_to_the_examples_of_a_batch_in_order_where_these_have_several_programs(compiled):
    examples = [[1.0], [1.0, 2.0], [0.5], [2.0, 3.0], [1.0, 2.0, 3.0]]

    def loss(w, row, noise):
        return (w[0] * sum(row) + w[1] * noise) ** 2

    expected = trained(False, loss, normal_numbers(), examples, batch_size=3)
    found = trained(compiled, loss, normal_numbers(), examples, batch_size=3)
    assert found[0] == pytest.approx(expected[0], rel=1e-9)
    assert found[1] == pytest.approx(expected[1], rel=1e-9)


@pytest.mark.parametrize("compiled", [False, *BACKENDS])
def test_noise_is_drawn_once_for_each_step_with_the_number_of_examples(compiled):
    counts = []

    def draw(count):
        counts.append(count)
        return [0.5] * count

    trained(compiled, of_pair, draw, PAIRS, epochs=2, batch_size=3)
    assert counts == [3, 2, 3, 2]


@pytest.mark.parametrize("compiled", [False, *BACKENDS])
def test_the_order_of_draws_and_shuffles_is_the_same_for_one_source(compiled):
    def run(mode):
        w = Value(0.5)
        random.seed(4)
        history = mg.fit(
            lambda x, noise: (w * x + noise) ** 2,
            NUMBERS,
            mg.optim.SGD([w], 0.01),
            epochs=2,
            compile=mode,
            progress=False,
            noise=lambda count: [random.random() for _ in range(count)],
        )
        return history.steps

    assert run(compiled) == pytest.approx(run(False), rel=1e-9)


@pytest.mark.parametrize("compiled", ["numpy", "llvm"])
def test_noise_is_kept_where_a_callback_changes_the_examples(compiled):
    def run(mode):
        w, rows = Value(0.5), [[1.0], [2.0], [3.0]]

        def callback(history):
            rows[0][0] += 1.0

        history = mg.fit(
            lambda row, noise: (w * row[0] + noise) ** 2,
            rows,
            mg.optim.SGD([w], 0.01),
            epochs=3,
            seed=1,
            callback=callback,
            compile=mode,
            progress=False,
            noise=normal_numbers(),
        )
        return history.steps

    assert run(compiled) == pytest.approx(run(False), rel=1e-9)


@pytest.mark.parametrize("compiled", ["numpy", "llvm"])
def test_a_step_that_is_taken_eagerly_has_its_noise(compiled):
    def draw(count):
        return [1000.0] * count

    for mode in (False, compiled):
        with pytest.raises(ArithmeticError):
            trained(mode, lambda w, x, noise: w[0] * x + w[1] * mg.exp(noise), draw, NUMBERS)


@pytest.mark.parametrize("compiled", [False, "numpy"])
@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda count: 0.5, TypeError, "an item for each example, not float: 0.5"),
        (lambda count: np.array(0.5), TypeError, "an item for each example, not ndarray"),
        (lambda count: [0.5], ValueError, "an item for each of 2 examples, not 1 items"),
        (lambda count: np.zeros((3, 2)), ValueError, "an item for each of 2 examples, not 3 items"),
        (lambda count: [0.5, [0.5]], ValueError, "alike for all examples and steps: the first was like 0.5"),
        (lambda count: [[0.5] * count] * count, ValueError, r"like \[0.5, 0.5\], and now there is \[0.5\]"),
        (lambda count: [True] * count, TypeError, r"be numbers.*not True; write \.astype\(float\)"),
        (lambda count: [{"a": ["x"]}] * count, TypeError, "be numbers"),
        (lambda count: np.zeros((count, 2), dtype=bool), TypeError, "be numbers"),
        (lambda count: [Value(1.0)] * count, TypeError, "be numbers"),
    ],
)
def test_noise_of_another_kind_is_refused(draw, error, message, compiled):
    with pytest.raises(error, match=f"noise must .*{message}"):
        trained(compiled, lambda w, x, noise: w[0] * x + w[1] * 0.0, draw, [0.5, 1.0, 2.0])
