"""Loops of compiled functions: their iterations are those of eager code."""

import functools
import itertools
import random
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import TraceError, Value
from tests.compiler.backends.sparing import is_left_out
from tests.loops import OPERATIONS, SMOOTH, WIDTH, bodies

pytestmark = pytest.mark.slow

ITERATIONS = 20
NUMBERS = [float(number) for number in range(1, ITERATIONS + 1)]

w, v = Value(0.5), Value(-1.5)
frozen = Value(2.0, requires_grad=False)
table = [Value(1.0), Value(2.0), Value(3.0)]
matrix = np.array([[0.5, -0.25], [0.125, 1.0]])
layer = mg.nn.Layer(2, 2, activation="tanh")
constants = {"scale": 2.0, "mode": "tanh"}


@functools.cache
def power(n):
    return 2.0**n


def numbers_in(nested):
    """The numbers in lists and tuples of Values and numbers, in order."""
    if isinstance(nested, (list, tuple)):
        return [number for part in nested for number in numbers_in(part)]
    return [] if nested is None else [float(nested.data if isinstance(nested, Value) else nested)]


ALIKE = {
    "weights from outside": lambda s, x: (mg.tanh(w * s + v * x), s),
    "no outputs": lambda s, x: (s * x, None),
    "a pair": lambda s, x: ((s + x), (x, [s * w, s])),
    "a state that is given back": lambda s, x: (s, s * x),
    "an input that is given back": lambda s, x: (x, s),
    "a Value from outside is given back": lambda s, x: (s * w, w),
    "a dot product": lambda s, x: (mg.dot([s, x, w], [x, s, v]), None),
    "take by a known index": lambda s, x: (mg.take([s, x, w], 1) * s, None),
    "choices": lambda s, x: (mg.where(s < x, s, x * w), mg.maximum(s, x)),
    "literals": lambda s, x: (s * 2.0 + 1.0 - x / 4 + x**2 + s**3 + x**-1 + x**0.5 + s**1, -0.0 * s),
    "a constant": lambda s, x: (s * 0.0 + x, 3.0),
    "what raises where it overflows": lambda s, x: ((s * x) ** 2, mg.exp(x)),
    "without a gradient": lambda s, x: (s * mg.detach(x), None),
    "derivatives inside": lambda s, x: (mg.grad(lambda z: z**3 * w)(x) + s, mg.hessian(lambda z: z[0] ** 3 * s)([x])),
    "a product with a Jacobian inside": lambda s, x: (s + mg.jvp(lambda z: z * mg.sin(z), (x,), (w,))[1], None),
    "frozen": lambda s, x: (s * frozen + x, None),
    "an array from outside": lambda s, x: ((matrix @ [s, x])[0], None),
    "a layer": lambda s, x: (layer([s, x])[1], None),
    "constants of a dict": lambda s, x: (getattr(mg, constants["mode"])(s * constants["scale"]) + x, None),
    "a cached function": lambda s, x: (s * power(3) + x, None),
    "other kinds of constants": lambda s, x: (s * Fraction(1, 2) + np.float64(0.5) * x, None),
    "a primitive with settings": lambda s, x: (mg.leaky_relu(s, 0.25) + mg.clip(x, 0.0, 2.0), None),
    "comparisons": lambda s, x: ((s < x) * 1.0 + (s <= w) * x, None),
    "what is there already": lambda s, x: (w * v + s, w * v * x),
}


@pytest.mark.parametrize("what", ALIKE)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.unmeasured
def test_a_compiled_loop_gives_what_the_loop_gives(what, reverse):
    def f(start, xs):
        return mg.scan(ALIKE[what], start, xs, reverse=reverse)

    start, xs = Value(0.5), [Value(0.25 * x) for x in NUMBERS[:4]]
    assert numbers_in(mg.compile(f, backend="numpy")(start, xs)) == pytest.approx(numbers_in(f(start, xs)), rel=1e-12)


class TestBodies:
    def test_a_body_that_remembers_runs_in_every_iteration(self):
        seen = []

        def step(s, x):
            seen.append(1.0)
            return s * x + len(seen), len(seen)

        found = mg.compile(lambda xs: mg.scan(step, w, xs), backend="numpy")(NUMBERS)[1]
        assert found == list(range(1, ITERATIONS + 1))
        assert len(seen) == ITERATIONS

    def test_ints_and_comparisons_in_a_state(self):
        def step(state, x):
            count, was_less = state
            return (count + 1, x < 3), mg.where(was_less, count, x)

        def f(start, xs):
            return mg.scan(step, (start, start < 0), xs)

        found, expected = (
            mg.compile(f)(3, NUMBERS),
            f(3, NUMBERS),
        )  # each iteration checks that its int is no longer than 2**53
        assert (found, type(found[0][0])) == (expected, int)

    @pytest.mark.parametrize(
        "draw",
        [
            lambda: random.randint(0, 1),
            lambda: random.choice("ab") == "a",
            lambda: np.random.randint(0, 2),
            random.Random(3).random,
            lambda generator=np.random.default_rng(3): generator.integers(2),  # noqa: B008  # made once, as a user does
            lambda rng=random.Random(3): rng.randint(0, 1),  # noqa: B008  # so is this one
        ],
    )
    def test_random_numbers_in_a_body_are_refused(self, draw):
        def step(s, x):
            return s * x + float(draw()), None

        fast = mg.compile(lambda xs: mg.scan(step, w, xs)[0], backend="numpy")
        with pytest.raises(mg.TraceError, match=r"a random number is drawn \(.*test_iterations\.py:\d+\)"):
            fast(NUMBERS)

    def test_a_number_left_behind_is_refused_as_without_a_loop(self):
        net = mg.nn.Layer(1, 1)
        net.w, net.h = Value(0.5), 0.0

        def step(s, x):
            net.h = mg.tanh(net.w * s + x)
            return net.h, None

        with pytest.raises(TraceError, match=r"a number is left behind in net\.h"):
            mg.compile(lambda xs: mg.scan(step, 0.0, xs)[0])(NUMBERS)
        assert net.h == 0.0

    @pytest.mark.parametrize(
        ("body", "advice"),
        [
            (lambda s, x: (s * float(x), None), "mg.exp"),
            (lambda s, x: (s * x.data, None), "mg.detach"),
            (lambda s, x: (s * table[x], None), "mg.take"),
        ],
    )
    def test_what_would_freeze_a_number_is_refused_with_the_line(self, body, advice):
        with pytest.raises(TraceError, match=advice) as error:
            mg.compile(lambda xs: mg.scan(body, xs[0] * w, xs)[0])(NUMBERS)
        assert f"{__file__}:{body.__code__.co_firstlineno}" in str(error.value)

    @pytest.mark.parametrize("iteration", [0, 1, 2, 3, ITERATIONS - 1])
    def test_an_error_in_an_iteration_comes_out_as_it_is(self, iteration):
        def step(s, x):
            return s * (1 / x[0]) * x[1], None

        divisors = [float(number != iteration) for number in range(ITERATIONS)]
        with pytest.raises(ZeroDivisionError, match="float division by zero"):
            mg.compile(lambda xs: mg.scan(step, xs[0] * w, [*zip(divisors, xs, strict=True)])[0])(NUMBERS)

    @pytest.mark.parametrize("interrupted", [1, 2, 3])
    def test_an_interrupt_leaves_nothing_behind(self, interrupted):
        def step(s, x):
            return s * x, None

        def profile(frame, event, _):
            if event == "call" and frame.f_code is step.__code__ and next(runs) == interrupted:
                raise KeyboardInterrupt

        fast, runs = mg.compile(lambda xs: mg.scan(step, w, xs)[0], backend="numpy"), itertools.count(1)
        sys.setprofile(profile)
        try:
            with pytest.raises(KeyboardInterrupt):
                fast([1.0] * ITERATIONS)
        finally:
            sys.setprofile(None)
        assert (w * v)._prev == {w, v}  # nothing records any more
        assert fast([1.0] * ITERATIONS).data == 0.5


def loss_of(body, iterations):
    """A loss of the weights and the first state, with a loop and what it goes through as arguments."""

    def loss(numbers, xs):
        state, outputs = mg.scan(lambda state, x: body(numbers[:2], state, x), tuple(numbers[2:]), xs)
        return sum(outputs) + sum(state) * 2.0 + sum(mg.vmap(lambda x: x * numbers[0])(xs))

    return loss


small = st.integers(-3, 3).map(float)
exact = st.lists(small, min_size=2 + WIDTH, max_size=2 + WIDTH)


class TestRandomBodies:
    @settings(max_examples=10)
    @given(bodies(OPERATIONS, 3.0), exact, st.lists(small, min_size=6, max_size=6))
    def test_compiled_is_eager_bit_for_bit_on_small_integers(self, backend, body, numbers, xs):
        if is_left_out(backend, (body, numbers, xs)):
            return
        loss = loss_of(body, 6)
        found = []
        for f in (loss, mg.compile(loss, backend=backend)):
            leaves = list(map(Value, numbers))
            result = f(leaves, xs)
            assume(abs(result.data) < 2.0**30)
            if result.requires_grad:
                result.backward()
            found.append([result.data, *(leaf.grad for leaf in leaves)])
        assume(max(map(abs, found[0])) < 2.0**30)
        assert found[0] == found[1]

    @settings(max_examples=10)
    @given(bodies(SMOOTH, 0.0), st.lists(st.floats(-1, 1), min_size=2 + WIDTH, max_size=2 + WIDTH))
    def test_compiled_derivatives_are_those_of_eager_to_second_order(self, body, numbers):
        xs = [0.5, -0.25, 1.0, 0.75, -1.0, 0.125]
        for derivative in (mg.grad, mg.hessian):
            f = derivative(lambda numbers: loss_of(body, 6)(numbers, xs))
            np.testing.assert_allclose(mg.compile(f, backend="numpy")(numbers), f(numbers), rtol=1e-9, atol=1e-11)


class TestUse:
    @pytest.mark.unmeasured
    def test_training_compiled_is_training_eager(self, backend):
        histories = []
        for way in (False, backend):
            net = {"w": Value(0.5), "u": Value(-0.25)}

            def loss(words, target, net=net):
                def step(h, x):
                    return mg.tanh(net["w"] * h + net["u"] * x), None

                return (mg.scan(step, 0.0, words)[0] - target) ** 2

            data = [([0.5, -1.0, 0.25, 2.0, 1.0, -0.5, float(n)], 0.1 * n) for n in range(6)]
            optimizer = mg.optim.SGD(list(net.values()), 0.1)
            history = mg.fit(loss, data, optimizer, epochs=3, batch_size=2, seed=0, progress=False, compile=way)
            histories.append([*history.steps, *(p.data for p in net.values())])
        np.testing.assert_allclose(histories[1], histories[0], rtol=1e-12)

    def test_what_raises_eagerly_raises_compiled(self, backend):
        fast = mg.compile(lambda s, xs: mg.scan(lambda s, x: (mg.sqrt(s) * x, None), s, xs)[0], backend=backend)
        with pytest.raises(ValueError, match=r"sqrt\(-1"):
            fast(Value(-1.0), [1.0] * ITERATIONS)
        assert fast(Value(1.0), [1.0] * ITERATIONS).data == 1.0

    def test_what_it_closes_over_is_noticed(self):
        scale = {"factor": 2.0}
        fast = mg.compile(lambda xs: mg.scan(lambda s, x: (s * x * scale["factor"], None), w, xs)[0], backend="numpy")
        assert fast([1.0] * 6).data == 32.0
        scale["factor"] = 1.0
        assert fast([1.0] * 6).data == 0.5
