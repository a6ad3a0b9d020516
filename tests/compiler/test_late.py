"""What interrupts a loop is late, so that the loop has all iterations that are alike."""

import math
import random

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.ir.program import Loop

pytestmark = pytest.mark.slow(together=True)


def loops(run):
    """How many iterations each loop has, and its kernels."""
    return [(each.iterations, each.kernels) for each in run.program.kernels if isinstance(each, Loop)]


def of_letters(count, width=3):
    """A network that reads a row for each letter; some letters are rare."""
    rng = random.Random(3)
    rows = {letter: [Value(rng.uniform(-1, 1)) for _ in range(width)] for letter in "abcxyz"}
    text = [rng.choice("abc") for _ in range(count)]
    for position, letter in ((count // 4, "x"), (count // 3, "y"), (count // 2, "z")):
        text[position] = letter

    def f(w):
        h = [0.1] * width
        for letter in text:
            h = [mg.tanh(w * each + mg.sigmoid(x)) for each, x in zip(h, rows[letter], strict=True)]
        return sum(h)

    return f


def test_gradients_of_rare_rows_wait_until_the_loop_has_ended():
    """They could be computed as soon as their row has been read for the last time, which is in the middle."""
    f = of_letters(40)
    run = mg.compile(f, backend="numpy").program(Value(0.5))
    (forward, _), (backward, kernels) = loops(run)
    assert forward >= 36
    assert backward >= 36
    assert all(kernel.rows * kernel.columns == 3 for kernel in kernels)


def test_what_is_late_has_the_numbers_of_eager():
    f = of_letters(24)
    w, again = Value(0.4), Value(0.4)
    f(w).backward()
    mg.compile(f)(again).backward()
    assert again.grad == pytest.approx(w.grad, rel=1e-12)


def test_rows_that_are_the_same_in_all_iterations_are_read_like_those_beside_them():
    """The last columns of the text are 0 always, and still there is one kernel for all columns."""
    rng = random.Random(5)
    bits = [[float(rng.random() < 0.5) for _ in range(4)] + [0.0, 0.0] for _ in range(30)]
    scale = [Value(rng.random()) for _ in range(6)]

    def f(w):
        h = [0.1] * 6
        for row in bits:
            h = [mg.tanh(w * each + mg.sigmoid(bit * s)) for each, bit, s in zip(h, row, scale, strict=True)]
        return sum(h)

    run = mg.compile(f, backend="numpy").program(Value(0.5))
    for iterations, kernels in loops(run):
        assert iterations >= 26
        assert {kernel.rows * kernel.columns for kernel in kernels} == {6}
    w, again = Value(0.5), Value(0.5)
    f(w).backward()
    mg.compile(f)(again).backward()
    assert again.grad == pytest.approx(w.grad, rel=1e-12)


def slow_beside_fast(count):
    """A state of one operation an iteration, and one of three that reads it."""
    x = [math.sin(number) for number in range(count)]

    def f(w, v):
        slow, fast = w, v
        for each in x:
            slow = mg.tanh(slow * w + each)
            fast = mg.sigmoid(slow * v + fast)
        return fast * slow

    return f


def test_a_state_that_could_be_ahead_of_another_waits_for_it():
    """In the reverse program that of the sigmoid is ready after two operations, and the other after three."""
    f = slow_beside_fast(60)
    given, again = [Value(0.4), Value(-0.7)], [Value(0.4), Value(-0.7)]
    result = mg.compile(f)(*again)
    result.backward()
    expected = f(*given)
    expected.backward()
    assert result.data == pytest.approx(expected.data, rel=1e-13)
    assert [each.grad for each in again] == pytest.approx([each.grad for each in given], rel=1e-11)
    (forward, _), (backward, _) = loops(mg.compile(f, backend="numpy").program(*given))
    assert min(forward, backward) >= 56


@pytest.mark.parametrize("count", [40, 90])
def test_rows_that_are_read_once_do_not_interrupt_a_loop(count):
    """Each letter of the alphabet has a row, so that every other iteration is the last that reads one."""
    rng = random.Random(4)
    rows = [[Value(rng.uniform(-1, 1)) for _ in range(3)] for _ in range(count // 2)]
    text = [rng.randrange(len(rows)) for _ in range(count)]

    def f(w):
        h = [w, w, w]
        for letter in text:
            h = [mg.tanh(w * each + x) for each, x in zip(h, rows[letter], strict=True)]
        return sum(h)

    found = loops(mg.compile(f, backend="numpy").program(Value(0.5)))
    assert [iterations >= count - 4 for iterations, _ in found] == [True, True]
    leaves = [each for row in rows for each in row]
    w, again = Value(0.5), Value(0.5)
    slopes = [mg.gradient(of(each), [each, *leaves]) for of, each in ((f, w), (mg.compile(f), again))]
    assert [float(slope) for slope in slopes[1]] == pytest.approx([float(slope) for slope in slopes[0]], rel=1e-11)


def kalman(p, ys):
    mean, variance, total = 0.0, 1.0, 0.0
    for y in ys:
        variance, error = variance + p[0], y - mean
        spread = variance + p[1]
        total += mg.log(spread) + error * error / spread
        gain = variance / spread
        mean, variance = mean + gain * error, (1 - gain) * variance
    return total


def filtered(p, ys):
    def step(state, y):
        x, weights = state
        x = p[0] * x + p[1] * np.array([0.3, -0.2, 0.1])
        weights = weights - 0.5 * (y - x) ** 2
        total = mg.logsumexp(weights)
        return (x, weights - total), total

    return mg.scan(step, (np.zeros(3), np.zeros(3)), np.array(ys))[1].sum()


def runge_kutta(p, ys):
    """Its adjoints do not read the states, so they need not wait for these."""
    y, h = 1.0, 0.01
    for u in ys:
        k1 = u - p[0] * y
        k2 = u - p[0] * (y + h / 2 * k1)
        k3 = u - p[0] * (y + h / 2 * k2)
        k4 = u - p[1] * (y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def heun(p, ys):
    y, h = 1.0, 0.01
    for u in ys:
        first = -p[0] * y + u
        second = -p[0] * (y + h * first) + u
        y = y + h * 0.5 * (first + second)
    return y


def leapfrog(p, ys):
    """Two coefficients take turns in the adjoints."""
    place, speed, h = 1.0, p[1], 0.01
    for _ in ys:
        speed = speed - h / 2 * p[0] * place
        place = place + h * speed
        speed = speed - h / 2 * p[0] * place
    return place * place


def two_filters(p, ys):
    first, second = 0.0, p[1]
    for u in ys:
        first = p[0] * first + u
        second = 0.9 * second + 0.1 * first
    return first * second


@pytest.mark.parametrize("f", [kalman, filtered, runge_kutta, heun, leapfrog, two_filters])
def test_chains_that_advance_at_different_paces_are_one_loop_for_any_number_of_steps(f):
    counts = []
    for steps in (43, 48, 53, 60):
        p, ys = np.array([0.3, 0.7]), [math.sin(k) for k in range(steps)]
        fast = mg.compile(mg.value_and_grad(f), backend="numpy")
        np.testing.assert_allclose(fast(p, ys)[1], mg.grad(f)(p, ys), rtol=1e-9)
        (forward, _), (backward, _) = loops(fast.program(p, ys))
        assert min(forward, backward) >= steps - 4
        counts.append(len(fast.program(p, ys).program.kernels))
    assert len(set(counts)) == 1
