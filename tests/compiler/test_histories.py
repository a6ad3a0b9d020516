"""Loops that ask in every iteration: where iterations differ in the answer only, the answers are data."""

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow

W = Value(1.25)
POINTS = [0.3, -0.7, 1.0, 0.0, -1.0, 2.5, 0.9, -0.2, 1.7, 0.1]


def outcome(function, x):
    """The result, and the gradients by the argument and by W."""
    W.grad, point = 0.0, Value(x)
    result = function(point)
    if isinstance(result, Value):
        result.backward()
        return [result.data, point.grad, W.grad]
    return [float(result)]


def agrees(function, backend="numpy", points=POINTS, is_merged=True):
    """Check a function against eager; where all is data there are two traces, for all histories."""
    fast = mg.compile(function, backend=backend)
    for x in points:
        assert outcome(fast, x) == pytest.approx(outcome(function, x), rel=1e-11, abs=1e-12), x
    assert (fast.cache_info().traces == 2) == is_merged
    return fast


def ball(x):
    height, speed = x, 0.0 * x
    for _ in range(20):
        speed = speed - 0.05 * 9.81
        height = height + 0.05 * speed
        if height < 0:
            height, speed = -0.9 * height, -0.9 * speed
    return height * W


def test_a_bouncing_ball_is_two_bodies(backend):
    fast = agrees(ball, backend, [0.5, 1.0, 1.5, 3.0, 0.1])
    assert "loop    at most 18 iterations" in fast.explain()
    line = ball.__code__.co_firstlineno + 5
    assert f"asked  test_histories.py:{line}: 20 times in a call; the answers are data" in fast.explain()
    assert fast.cache_info().program_bytes < 1e6


@pytest.mark.unmeasured
def test_questions_of_several_kinds_in_one_iteration():
    def f(x):
        total, best, worst, xs = x, x * W, x - W, [x, W * 2.0]
        for n, rate in zip(range(12), [0.5, 0.25] * 6, strict=True):
            total = total * 0.7 + mg.sin(xs[0]) if total > x else total + rate
            best = best if best > total else total * W
            if not (worst < total or worst < 0.5):
                worst = total
            xs[0] = max(xs[1], total) - 0.1 * n
        return total + best * worst + xs[0]

    agrees(f, points=POINTS[:5], is_merged=False)  # `or` asks once or twice, and `max` has one that is in no variable

    def g(x):
        total, best, xs = x, x * W, [x * 1.0, W * 2.0]
        for rate in [0.5, 0.25] * 6:
            total = total * 0.7 + mg.sin(xs[0]) if total > x else total + rate
            best = best if best > total else total * W
            if best > 1.0:
                xs[0] = best * 0.5
        return total + best * xs[0]

    agrees(g)


def test_arrays_dicts_closures_and_sums_of_products():
    def f(x):
        state, rows = {"y": x, "n": np.array([1.0, 2.0])}, mg.array([x * 1.0, x * W, x * 0.5])

        def kick(y):
            return y - 2.0 * W

        for n in range(10):
            state["y"] = state["y"] + mg.dot([state["y"], x], [0.1 * n, W])
            if state["y"] > 1.5:
                state["y"] = kick(state["y"])
            rows = rows * state["y"]
            rows = rows / (1.0 + abs(rows[0]))
        return state["y"] + rows[1] + mg.take([x, W], 1)

    agrees(f)


def test_derivatives_in_a_loop_and_powers_and_takes():
    def f(x):
        y = x
        for _ in range(9):
            slope = mg.grad(lambda y: y**2 * W)(y)
            y = y - 0.1 * slope + mg.take([W, x], 0) * 0.01
            if y < 0.2:
                y = y + 1.0
        return y

    agrees(f)


def count(x):
    bounces = 0
    for _ in range(10):
        x = x * 0.9 - 0.1
        if x < 0:
            x, bounces = -x, bounces + 1
    return x * bounces


def listed(x):
    found = []
    for n in range(10):
        x = x + mg.sin(x * n)
        if x > 1:
            found.append(x)
            x = x - 1
    return sum(found) + x


def left(x):
    for _ in range(20):
        x = x * 0.8 + 0.05
        if x < 0.3:
            return x * W
    return x


def doubled(x):
    """The same number may be in a variable for one history, and be computed again for another."""
    y = x * 2.0
    for _ in range(9):
        y = y - 0.3
        if y < 0:
            y = x * 2.0
        y = y + 0.01 * (x * 2.0)
    return y * W


def renamed(x):
    """What only one branch makes another name of."""
    y, kept = x * 1.0, x * 1.0
    for _ in range(9):
        y = y - 0.3 * W
        if y < 0:
            kept = y
            y = y + 1.0
        else:
            kept = kept * 1.0
        y = y + 0.1 * kept
    return y


def restarted(x):
    """A variable that is the argument before the first question, and something else after it."""
    a = b = x
    for _ in range(9):
        b = mg.tanh(x)
        if mg.tanh(W) - 1.0 < b:
            b = -x
        a = mg.tanh(W) * 2.0
    return a + b


def constant(x):
    """A variable that is the argument at times, or a parameter."""
    y, z = x * 1.0, x * 0.5
    for n in range(9):
        y = y - 0.3
        if y < 0:
            y, z = x, W**1
        z = z * 1.0 if n % 2 else z
    return y * z


def shared(x):
    """Two lists that are one for some histories."""
    first, second = [x], [x * 1.0]
    for _ in range(9):
        first[0] = first[0] - 0.2
        if first[0] < 0:
            second = first
            first[0] = first[0] + 1.0
        else:
            second = [first[0]]
        second[0] = second[0] * 0.9
    return first[0] + second[0]


def skipping(x):
    """The iterator is in no variable."""
    skip = False
    for _ in [None] * 16:
        if skip:
            skip = False
            continue
        x = x * 0.9 - 0.1
        if x < 0:
            x, skip = x + 1.0, True
    return x


def whole(x):
    for _ in range(9):
        x = x * 0.9 - 0.1 if int(x * 4.0) % 2 else x + 0.3
    return x


def wrong_in_a_branch(x):
    for _ in range(9):
        x = x * 0.9
        if x > 100.0:
            raise ValueError("it is too large")
    return x if x < 0 else x * W


class Counter:
    count = 0


def counted_outside(x):
    found = Counter()
    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            found.count += 1
            x = x + 1.0
    return x * found.count


def in_a_vmap(x):
    xs = mg.vmap(lambda y: y * 0.5 if y > 0 else y + W)([x - 0.1 * n for n in range(12)])
    return sum(xs)


def last_of(numbers, x):
    last = 0
    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            x, last = x + 1.0, next(numbers)
    return x * last


def from_an_iterator(x):
    return last_of(iter(range(10)), x)


def from_a_generator(x):
    return last_of((number * number for number in range(10)), x)


def turned_over(x):
    is_up = True
    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            x, is_up = x + 1.0, not is_up
    return x * W if is_up else x


def kept_in_an_object(x):
    state = Counter()
    state.height, state.best = x, x
    for _ in range(9):
        state.height = state.height * 0.9 - 0.1
        if state.height < 0:
            state.height, state.best = state.height + 1.0, state.height
    return state.height * state.best


def written_into_an_array(x):
    state = mg.array([x, x * W])
    for _ in range(9):
        state[0] = state[0] * 0.9 - 0.1 * state[1]
        if state[0] < 0:
            state[0], state[1] = state[0] + 1.0, state[0]
    return state[0] * state[1]


def taken_back(x):
    found = []
    for _ in range(9):
        x = x * 0.9 - 0.1
        found.append(x)
        if x < 0:
            found.pop()
            x = x + 1.0
    return sum(found) + x


def on_the_stack(x):
    for _ in range(9):
        x = x * 0.9 + (x - 0.1 if x < 0.2 else -0.3 * x)  # the first product is in no variable
    return x * W


def named_later(x):
    def shifted(y):
        return y + offset

    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            x = x + 1.0
    offset = 2.0
    return shifted(x) * W


def deep(x):
    nested = [x]
    for _ in range(60):
        nested = [nested]
    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            x = x + 1.0
    return x * W if nested else x


def unlike(x):
    for number in range(70):
        x = x * 0.9 - 0.01 * number
        if x < 0.0:
            x = x + 0.1 * number
    return x * W


def in_a_scan(x):
    def step(y, _):
        y = y * 0.9 - 0.1
        if y < 0:
            y = y + x
        return y, None

    return mg.scan(step, x, length=9)[0] * W


def counted_in_a_global(x):
    COUNTS[0] = 0
    for _ in range(9):
        x = x * 0.9 - 0.1
        if x < 0:
            x = x + 1.0
            COUNTS[0] += 1
    return x * COUNTS[0]


COUNTS = [0]


@pytest.mark.parametrize(
    "function",
    [
        *(count, listed, left, doubled, renamed, restarted, constant, shared, skipping, whole, counted_outside),
        *(in_a_vmap, from_an_iterator, from_a_generator, turned_over, kept_in_an_object, written_into_an_array),
        *(taken_back, on_the_stack, named_later, deep, unlike, in_a_scan),
    ],
    ids=lambda f: f.__name__,
)
def test_what_depends_on_the_history_is_right(function):
    fast = mg.compile(function, backend="numpy")
    for x in np.linspace(-1.5, 2.5, 9).tolist():
        assert outcome(fast, x) == pytest.approx(outcome(function, x), rel=1e-11, abs=1e-12), x


OF_MANY = {
    "max": lambda x, y: max(x) * y,
    "min of computed numbers": lambda x, y: min([each * y for each in x]),
    "sorted": lambda x, y: sorted(x)[1] * y,
    "filter": lambda x, y: len(list(filter(lambda each: each > 0, x))) * y,
    "choices in a list": lambda x, y: mg.mean([1.0 if each > 0 else 2.0 for each in [each * y for each in x]]) * y,
    "a count": lambda x, y: sum(1 for each in [each * y for each in x] if each > 0) * y,
}


@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, backend) for name in OF_MANY for backend in ("numpy", "llvm")), ("max", "jax"), ("sorted", "jax")],
)
def test_what_is_in_no_variable_is_right(name, backend):
    numbers = np.random.default_rng(0).uniform(-1.0, 1.0, (5, 12)).tolist()
    fast = mg.compile(OF_MANY[name], backend=backend)
    for row in numbers:
        assert fast(row, 0.5) == pytest.approx(OF_MANY[name](row, 0.5))


def test_a_choice_in_an_expression_is_right():
    def f(x):
        y = x
        for _ in range(6):
            y = mg.tanh(sum([W if y > 0.4 else x, x if y * x > 0.2 else 1.0]) * y)
        return y

    agrees(f, is_merged=False)


def test_a_number_that_two_answers_make_is_right():
    def f(x):
        y, different = x * 2.0, 1
        for _ in range(4):
            different = len({bool(y > 0.5), bool(y > 1.5)})
            y = y * 0.9 if y > 0.25 else y * 1.1
        return y * different

    agrees(f, is_merged=False)


def test_an_index_may_be_data():
    def f(x, index):
        for _ in range(9):
            x = x * 0.9 - 0.1 * mg.take([W, x], index)
            if x < 0:
                x = x + 1.0
        return x * W

    fast = mg.compile(f, backend="numpy")
    for x in POINTS:
        for index in (0, 1):
            at_index = [outcome(lambda x, each=each, index=index: each(x, index), x) for each in (fast, f)]
            assert at_index[0] == pytest.approx(at_index[1], rel=1e-11, abs=1e-12)


def test_what_is_left_outside_is_left_as_eagerly():
    fast = mg.compile(counted_in_a_global, backend="numpy")
    for x in (0.5, -0.5, 2.0):
        assert outcome(fast, x) == pytest.approx(outcome(counted_in_a_global, x), rel=1e-11)


def test_a_branch_that_raises_is_a_path():
    fast = mg.compile(wrong_in_a_branch, backend="numpy")
    for x in (1.0, -1.0, 2.0):
        assert outcome(fast, x) == pytest.approx(outcome(wrong_in_a_branch, x))
    with pytest.raises(ValueError, match="too large"):
        fast(Value(1e4))


def test_ties_and_what_is_not_finite_run_eagerly():
    def f(x):
        y = x
        for _ in range(9):
            y = y * 0.5 - 0.25 + 0.1 - 0.1
            if y < -0.25:
                y = y + 1.0
        return mg.sqrt(y + 0.5) * W

    fast = agrees(f, points=[0.0, 1.0, -1.0, 0.5, 0.25])
    for x in (float("nan"), float("inf")):
        assert repr(fast(x)) == repr(f(x))


def test_what_changes_between_calls_is_seen():
    scale = [1.0]

    def f(x):
        for _ in range(9):
            x = x - 0.3 * scale[0]
            if x < 0:
                x = x + W
        return x

    fast = mg.compile(f, backend="numpy")
    for factor in (1.0, 1.0, 2.0):
        scale[0] = factor
        for x in POINTS:
            assert outcome(fast, x) == pytest.approx(outcome(f, x))
    W.data = 1.5
    try:
        assert outcome(fast, 0.7) == pytest.approx(outcome(f, 0.7))
    finally:
        W.data = 1.25
