"""mg.scan(..., checkpoint=k): compiled functions keep every k-th state, and give the same numbers."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow(together=True)

W, RATES = Value(0.7), np.linspace(0.1, 0.9, 11)


def pendulum(k, length=10, reverse=False):
    """A state of two, outputs, and a Value from outside."""

    def step(state, _):
        height, speed = state
        speed = speed - 0.1 * W * mg.sin(height)
        return (height + 0.1 * speed, speed), height * speed

    def run(height, speed):
        (last, speed), outputs = mg.scan(step, (height, speed), length=length, reverse=reverse, checkpoint=k)
        return last * last + speed + sum((1.0 + n) * each for n, each in enumerate(outputs))

    return run


def driven(k, reverse=False):
    """Inputs that are arguments, others that are plain numbers, a state in a dict, and rows of outputs."""

    def step(state, item):
        x, given = state["x"], item["given"]
        after = {"x": mg.tanh(x * W + given[0] * item["rate"]), "before": x}
        return after, {"all": [x * given[1], 0.5], "none": None}

    def run(start, *rest):
        given = [[rest[0] * n, rest[1] - 0.1 * n] for n in range(len(RATES))]
        state = {"x": start, "before": 0.0}
        last, outputs = mg.scan(step, state, {"given": given, "rate": RATES}, reverse=reverse, checkpoint=k)
        return (
            last["x"]
            + last["before"] * rest[0]
            + sum(row[0] * (n % 3) + row[1] for n, row in enumerate(outputs["all"]))
        )

    return run


def nested(k):
    """A scan in each iteration of a scan; both keep some."""

    def run(x, w):
        def inner(state, y):
            return state + 0.1 * mg.sin(w * y), state * y

        def outer(state, rate):
            last, outputs = mg.scan(
                inner, state * rate, [x, w, state, x * w, x - w], checkpoint=None if k is None else 2
            )
            return mg.tanh(last), sum(outputs)

        last, outputs = mg.scan(outer, x, [0.1, 0.2, w, 0.3, 0.4, x, 0.5], checkpoint=k)
        return last * 2.0 + sum(o * o for o in outputs)

    return run


def in_rows(k):
    """An array is gone through, row by row."""

    def run(x, y, z):
        table = mg.array([[x * n, y - n, z + 0.1 * n] for n in range(9)])
        weights, outputs = mg.scan(
            lambda w, row: (w * 0.9 + 0.1 * row, (w * row).sum()), mg.array([x, y, 1.0]), table, checkpoint=k
        )
        return weights.sum() + (outputs * outputs).sum()

    return run


def plain(x):
    """The number of a Value, or a number."""
    return getattr(x, "data", x)


def keeps(fast):
    """How many scans keep some states only."""
    return fast.explain().count(" checkpoints: states of ")


def numbers(function, *point):
    """The result, and its gradients by the arguments and by W."""
    W.grad, given = 0.0, [Value(x) for x in point]
    result = function(*given)
    result.backward()
    return [result.data, *(x.grad for x in given), W.grad]


def skip_slow(name, backend, *others):
    """XLA compiles all blocks in one another anew, which takes minutes."""
    if backend == "jax" and name == "nested" and others != (3,):
        pytest.skip("XLA takes minutes")


PROGRAMS = {
    "pendulum": (pendulum, (1.0, 0.5)),
    "backwards": (lambda k: pendulum(k, 11, True), (1.0, 0.5)),
    "driven": (driven, (0.3, 0.2, 1.1)),
    "driven backwards": (lambda k: driven(k, True), (0.3, 0.2, 1.1)),
    "nested": (nested, (0.4, 1.3)),
    "rows": (in_rows, (0.4, 1.3, -0.2)),
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in PROGRAMS if name != "rows"]


OTHER_INTERVALS = [("pendulum", 1), ("driven backwards", 1), ("rows", 1), ("driven", 100), ("nested", 100)]


@pytest.mark.parametrize(
    ("name", "k"),
    [*((name, 3) for name in PROGRAMS), *(pytest.param(*each, marks=pytest.mark.slow) for each in OTHER_INTERVALS)],
)
def test_results_and_gradients_are_the_same(name, k, backend):
    skip_slow(name, backend, k)
    program, point = PROGRAMS[name]
    fast, expected = mg.compile(program(k), backend=backend), numbers(program(None), *point)
    assert numbers(program(k), *point) == expected  # eager
    for _ in range(2):
        assert numbers(fast, *point) == pytest.approx(expected, rel=1e-11, abs=1e-13)
    assert (keeps(fast) > 0) is (name == "nested" or k < 5)
    assert fast.cache_info().traces == 1


@pytest.mark.parametrize("name", ["rows", *SLOW])
def test_derivatives_inside_keep_some_states_too(name, backend):
    skip_slow(name, backend)
    program, point = PROGRAMS[name]
    slopes = mg.compile(mg.value_and_grad(lambda v: program(3)(*v)), backend=backend)
    value, found = slopes(list(point))
    expected = mg.value_and_grad(lambda v: program(None)(*v))(list(point))
    found = [plain(value), *map(plain, found)]
    assert found == pytest.approx([plain(expected[0]), *map(plain, expected[1])], rel=1e-11, abs=1e-13)
    assert keeps(slopes) >= 2  # there and back


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "rows"])
def test_hessians(name):
    program, point = PROGRAMS[name]
    fast = mg.compile(mg.hessian(lambda v: program(4)(*v)))
    expected = mg.hessian(lambda v: program(None)(*v))(list(point))
    np.testing.assert_allclose(*(np.vectorize(plain)(each) for each in (fast(list(point)), expected)), 1e-9, 1e-11)
    assert keeps(fast) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["backwards", "driven backwards", "nested"])
def test_gradients_of_gradients(name):
    program, point = PROGRAMS[name]

    def twice(k):
        return mg.grad(lambda v: sum(mg.grad(lambda v: program(k)(*v))(v)))

    fast = mg.compile(twice(4), backend="numpy")
    assert [plain(x) for x in fast(list(point))] == pytest.approx(
        [plain(x) for x in twice(None)(list(point))], rel=1e-9, abs=1e-11
    )
    assert keeps(fast) > 0


def test_tangents_of_inputs_and_of_values_from_outside(backend):
    def f(xs, w):
        last, outputs = mg.scan(lambda s, x: (mg.sin(s * w + x), s * x), xs[0], xs, checkpoint=2)
        return [last, sum(outputs)]

    def along(function):
        return lambda xs, w: mg.jvp(function, (xs, w), ([1.0, 0.0, 0.5, 0.0, -1.0], 0.25))[1]

    point = [0.1, 0.2, 0.3, 0.4, 0.5], 0.6
    assert mg.compile(along(f), backend=backend)(*point) == pytest.approx(along(f)(*point), rel=1e-12)


def test_many_parameters_are_differentiated_by(backend):
    """Forward mode would take a direction for each; and an input that is not reached has no gradient."""

    def loss(ws, k=None):
        last, _ = mg.scan(lambda s, w: (mg.tanh(s + w), None), ws[0], ws[1:-1], checkpoint=k)
        return last * last

    point = [0.01 * n for n in range(60)]
    fast = mg.compile(mg.grad(lambda ws: loss(ws, 7)), backend=backend)
    assert fast(point) == pytest.approx(mg.grad(loss)(point), rel=1e-12, abs=1e-15)
    assert keeps(fast) > 0


def test_a_state_that_is_plain_at_first(backend):
    def f(x, k=None):
        last, outputs = mg.scan(
            lambda s, n: ((s[0] + x * s[1], s[1] * 0.5, s[2]), s[0]), (0.0, 1.0, 3.0), length=8, checkpoint=k
        )
        return last[0] * last[2] + sum(outputs)

    x, y = Value(2.0), Value(2.0)
    f(x).backward()
    mg.compile(lambda x: f(x, 3), backend=backend)(y).backward()
    assert y.grad == pytest.approx(x.grad, rel=1e-14)


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (-2, ValueError), (2.0, TypeError), (True, TypeError)])
def test_wrong_intervals(wrong, error):
    for run in (pendulum(wrong), mg.compile(pendulum(wrong))):
        with pytest.raises(error, match="checkpoint must be"):
            run(Value(1.0), Value(2.0))


def test_errors_are_those_of_the_plain_loop():
    def grows(state, item):
        return [*state, item], None

    with pytest.raises(ValueError, match="the state must keep its structure: iteration 0"):
        mg.compile(lambda x: mg.scan(grows, [x], length=9, checkpoint=2)[0][0])(1.0)
    with pytest.raises(TypeError, match="step must return a tuple"):
        mg.compile(lambda x: mg.scan(lambda s, _: s, x, length=9, checkpoint=2)[0])(1.0)
    log = mg.compile(lambda x: mg.scan(lambda s, _: (mg.log(s) + 0.1, None), x, length=9, checkpoint=2)[0])
    with pytest.raises(ValueError, match="log"):
        log(Value(0.5))


@pytest.mark.parametrize(
    "loop",
    [
        lambda x, k: mg.scan(lambda _, y: (None, x * y), None, [1.0, 2.0, 3.0, 4.0], checkpoint=k)[1][3],
        lambda x, k: mg.scan(lambda s, y: (s * x + y[-1], None), x, [[x], [x, x], [x], [x]], checkpoint=k)[0],
        lambda x, k: mg.scan(lambda s, y: (s * x if s > 1 else s + x, None), x, length=5, checkpoint=k)[0],
        lambda x, k: mg.scan(lambda s, n: (s * (1, 2, 3, 4)[:n][-1], None), x, range(1, 5), checkpoint=k)[0],
    ],
    ids=["no numbers", "uneven inputs", "decides", "indices"],
)
def test_what_has_no_checkpoints_runs_without(loop):
    """Where an iteration is not like the others, or decides, all is kept."""
    fast = mg.compile(lambda x: loop(x, 2))
    assert plain(fast(1.5)) == pytest.approx(plain(loop(1.5, None)), rel=1e-14)
    assert not keeps(fast)


def test_in_float32_and_in_vmap_all_is_kept():
    half = mg.compile(lambda x: pendulum(3)(x, 0.5), precision="float32")
    assert half(1.0).data == pytest.approx(pendulum(None)(1.0, 0.5).data, rel=1e-5)
    assert not keeps(half)
    many = [0.01 * n for n in range(10)]
    paths = mg.compile(lambda xs: mg.mean(mg.vmap(lambda x: pendulum(3, 10)(x, 0.5))(xs)))
    assert paths(many).data == pytest.approx(mg.mean([pendulum(None, 10)(x, 0.5) for x in many]).data, rel=1e-12)


def test_long_loops_are_traced_for_one_block(monkeypatch):
    """Neither does a long array among the arguments make the function be traced for all iterations."""
    steps = 0

    def run(x, noise, k):
        def step(state, shock):
            nonlocal steps
            steps += 1
            return state + 0.001 * (mg.sin(state) + shock), None

        return mg.scan(step, mg.scan(step, x, noise, checkpoint=k)[0], [0.5] * 1500, checkpoint=k)[0]

    noise = np.sin(np.arange(1200.0))
    expected = run(0.5, noise, None)
    fast, steps = mg.compile(mg.value_and_grad(lambda x, noise: run(x, noise, 100))), 0
    assert fast(0.5, noise)[0] == pytest.approx(expected, rel=1e-12)
    assert steps < 600
    assert "15 checkpoints" in fast.explain()
