"""mg.cond, mg.switch and mg.while_loop in compiled functions: the program decides, in one trace for all numbers."""

import math
import os
import signal
import threading
import time

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value
from micrograd.compiler.backends.shared import deciding

pytestmark = pytest.mark.slow(together=True)

W = Value(1.5)


def plain(x):
    """The number of a Value, or a number."""
    return getattr(x, "data", x)


def numbers_and_slopes(function, *arguments):
    """The results, and the gradients of their sum by the arguments and by W; or the error."""
    W.grad, given = 0.0, [Value(x) for x in arguments]
    try:
        result = function(*given)
    except (ArithmeticError, ValueError, IndexError) as error:
        return [str(error)]
    results = result if isinstance(result, tuple) else (result,)
    if values := [each for each in results if isinstance(each, Value)]:
        sum(values, Value(0.0)).backward()
    return [*map(plain, results), *(x.grad for x in given), W.grad]


def agrees(function, backend, *points, traces=1):
    """Check a function against eager, and that it was traced once."""
    fast = mg.compile(function, backend=backend)
    for point in points:
        expected, found = numbers_and_slopes(function, *point), numbers_and_slopes(fast, *point)
        if isinstance(expected[0], str):
            assert found == expected
        else:
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-14), point
    assert fast.cache_info().traces == traces
    return fast


def test_where_no_native_code_is_kept(monkeypatch, tmp_path):
    """As in the first process of all: in others, an earlier test may have made the code of decisions."""
    monkeypatch.setenv("MICROGRAD_CACHE", str(tmp_path / "cache"))
    mg.compile(newton).cache_clear()
    agrees(newton, "llvm", (2.0,), (9.0,))
    agrees(chosen, "llvm", (2.0,), (-9.0,))


def newton(x):
    return mg.while_loop(lambda y: abs(y * y - x) > 1e-9 * x, lambda y: 0.5 * (y + x / y), x)


def chosen(x):
    return mg.cond(x > 0, lambda x: x * x * W, lambda x: mg.sin(x) - W, x) * 3.0 + x


def switched(x, index):
    return mg.switch(index, [lambda x: x, lambda x: x * x * W, mg.sin], x) * W


def nested(x):
    def body(state):
        y, n = state
        y = mg.cond(y > 1, lambda y: y * 0.5 * W, lambda y: mg.sin(y) + W, y)
        z = mg.while_loop(lambda z: z < n, lambda z: z * 1.5 + x, abs(y) + 0.1)
        return z * 0.9, n + 1.0

    return mg.while_loop(lambda state: state[1] < 5, body, (x, 0.0 * x))[0]


def in_a_row(x):
    y = mg.while_loop(lambda y: y < 10 * W, lambda y: y * 1.7 + mg.exp(-x), x * x)
    z = mg.cond(y * x > 20.0, lambda: y * x, lambda: y - x)
    return mg.sin(z) * y, z


@pytest.mark.unmeasured
@pytest.mark.parametrize("function", [newton, chosen, nested, in_a_row], ids=lambda f: f.__name__)
def test_one_trace_serves_all_numbers(function, backend):
    agrees(function, backend, (0.3,), (2.0,), (9.0,), (1e3,), (1.0,))


def test_a_switch_runs_one_of_its_branches(backend):
    agrees(switched, backend, *((0.7, float(index)) for index in (0, 2, 1, 3, -1)), (0.7, 1.5))
    alone = mg.compile(lambda i, x: mg.switch(i, [lambda x: x * W], x), backend=backend)
    assert alone(0, 2.0).data == 3.0


def test_one_branch_runs():
    """What the other branch would raise, or take long for, does not happen."""
    agrees(lambda x: mg.cond(x > 0, lambda: mg.log(x), lambda: mg.sqrt(-x)), "numpy", (2.0,), (-2.0,), (4.0,))

    def patient(x):
        return mg.cond(x > 0, lambda: x * W, lambda: mg.while_loop(lambda y: y < 1e12, lambda y: y + W, x))

    agrees(patient, "llvm", (1.0,), (2.0,))


def test_the_sign_of_zero_is_kept(backend):
    def selected(x):
        return mg.cond(x > 0, lambda x: x, lambda x: x * W, x)

    def repeated(x):
        return mg.while_loop(lambda s: s[1] < 2.0, lambda s: (s[0] * W, s[1] + 1.0), (x, 0.0))

    for function in (selected, lambda x: repeated(x)[0], repeated):
        fast = mg.compile(function, backend=backend)
        for x in (-0.0, 0.0, 1.0, -0.0):
            for given in (x, Value(x)):
                found, expected = (call(given) for call in (fast, function))
                assert str(found).replace("-0.0", "minus") == str(expected).replace("-0.0", "minus")


def test_many_iterations_are_kept_as_they_happen(backend):
    def decayed(x):
        return mg.while_loop(lambda s: s[0] > 1.0, lambda s: (s[0] - 0.01 * s[0] * W, s[1] + mg.sin(s[0])), (x, x))[1]

    agrees(decayed, backend, (1.1,), (2.0,), (1.05,), (50.0,), (2.0,))


def test_the_limit_is_an_error_and_not_a_wrong_number(backend):
    def limited(x):
        return mg.while_loop(lambda y: y < 100.0, lambda y: y * W, x, limit=7)

    agrees(limited, backend, (50.0,), (6.0,), (1.0,), (200.0,))
    with pytest.raises(ValueError, match="still holds after 7 iterations"):
        mg.compile(limited, backend=backend)(1.0)


def test_what_is_not_finite_on_the_way_raises_what_eager_raises(backend):
    def hidden(x):
        return (
            mg.while_loop(lambda s: s[1] < 3.5, lambda s: (mg.minimum(s[0], mg.log(2.5 - s[1])), s[1] + 1.0), (x, x))[0]
            * W
        )

    agrees(hidden, backend, (3.0,), (1.2,), (0.5,), (-1.5,))
    agrees(lambda x: mg.cond(x > 0, lambda: 1 / (x - 1), lambda: x) * W, backend, (2.0,), (1.0,), (-1.0,))
    agrees(lambda x: mg.cond(x > 0, lambda: mg.exp(x), lambda: x) * 0.0 + x, backend, (2.0,), (800.0,))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_plain_numbers_keep_their_class(backend):
    def counted(x):
        y, steps, even = mg.while_loop(
            lambda s: s[0] < 100.0, lambda s: (s[0] * 2.0, s[1] + 1, s[1] % 2 == 1), (x, 0, True)
        )
        return y, steps, even, mg.cond(y > 120, lambda: 1, lambda: 2), mg.cond(y > 120, lambda: 0.5, lambda: y * 0.0)

    fast = mg.compile(counted, backend=backend)
    for x in (1.0, 30.0, 60.0, 200.0):
        for given in (x, Value(x)):
            expected, found = counted(given), fast(given)
            assert [*map(plain, found)] == [*map(plain, expected)]
            assert [*map(type, found)] == [*map(type, expected)]


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_no_gradient_flows_where_none_flows_eagerly(backend):
    def constant(x):
        return mg.while_loop(lambda s: s[1] < W, lambda s: (s[0] * mg.detach(s[1] + 2.0), s[1] + 1.0), (2.0, x))[0]

    def shifting(x):  # the gradient takes a few iterations to get to the result
        return mg.while_loop(lambda s: s[3] < 5.0, lambda s: (s[1], s[2], x, s[3] + 1.0), (W, 0.5, 0.5, 0.0 * x))[0]

    for function in (constant, shifting, lambda x: mg.cond(x > 0, lambda: mg.detach(x), lambda: mg.detach(-x))):
        fast, x = mg.compile(function, backend=backend), Value(0.25)
        expected, found = function(x), fast(x)
        assert (found.data, found.requires_grad) == (expected.data, expected.requires_grad)


def test_a_body_may_read_nothing(backend):
    agrees(lambda x: mg.while_loop(lambda y: y < 2.0, lambda _: 3.0, x) * x, backend, (1.0,), (2.5,))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])  # for jax, XLA takes long
@pytest.mark.slow
def test_derivatives_inside_are_decisions_too(backend):
    def slope(x):
        return mg.grad(newton)(x) * x + mg.grad(mg.grad(nested))(x)

    agrees(slope, backend, (2.1,), (0.3,), (5.0,))

    def pair(x, y):
        value, slopes = mg.value_and_grad(lambda p: mg.cond(p[0] > p[1], lambda: p[0] * p[1] * W, lambda: p[0]))([x, y])
        return value, slopes[0] * x, slopes[1] + x

    agrees(pair, backend, (2.0, 1.0), (1.0, 2.0))

    def growing(p):
        return mg.while_loop(lambda s: s[0] < 10, lambda s: [s[0] * p[0] + 0.5, s[1] * p[1] + mg.sin(s[0])], [*p])[1]

    for transform in (mg.hessian, mg.jacobian, mg.grad):
        function = transform(lambda p: growing(p) * p[0])
        fast = mg.compile(function, backend=backend)
        for point in ([1.3, 1.2], [2.0, 0.5]):
            np.testing.assert_allclose(fast(point), function(point), rtol=1e-11)
        assert not fast.has_paths()
    several = mg.jacobian(lambda p: [growing(p), newton(p[0] * p[1]), p[0] * 2.0])
    np.testing.assert_allclose(
        *([[plain(x) for x in row] for row in wrap(several)([1.3, 1.2])] for wrap in (lambda f: f, mg.compile))
    )
    moved = mg.compile(lambda x, y: mg.jvp(lambda p, q: newton(p) * q + p, (x, y), (1.0, 2.0)), backend=backend)
    expected = mg.jvp(lambda p, q: newton(p) * q + p, (3.0, 4.0), (1.0, 2.0))
    assert [*map(plain, moved(3.0, 4.0))] == pytest.approx([*map(plain, expected)])


def test_derivatives_by_what_only_one_branch_reads(backend):
    slopes = mg.grad(
        lambda p: mg.cond(p[0] > 0, lambda: p[1] * p[1], lambda: 2.0) + mg.cond(p[0] > 1, lambda: 1.0, lambda: W)
    )
    fast = mg.compile(slopes, backend=backend)
    for point in ([0.5, 3.0], [-0.5, 3.0]):
        assert [*map(plain, fast(point))] == [*map(plain, slopes(point))]


# Where the program cannot decide, the decision is followed


def asks(x):
    return mg.while_loop(lambda y: y < 50.0, lambda y: y * 2.0 if y > 3 else y + W, x)


def followed_for_many(x):
    weights = [x * (0.1 * n) for n in range(30)]
    return mg.grad(lambda ws: mg.while_loop(lambda y: y < 50.0, lambda y: y * 1.2 + sum(ws), x))(weights)[3] * x


def asked_after(x):
    y = newton(x)
    return y * W if y > 1.5 else y - W


def asked_before(x):
    return newton(x) * W if x > 1 else newton(x + 1.0)


def raising(x):
    def wrong(x):
        raise ValueError("negative")

    return mg.cond(x > 0, lambda x: x * W, wrong, x)


def unlike(x):
    return mg.cond(x > 0, lambda: (x, 1), lambda: (x * W, "one"))[0]


def of_texts(x):
    return x * mg.cond(x > 0, lambda: (x, "a"), lambda: (W, "bc"))[0]


def with_a_swallowed_error(x):
    def body(y):
        try:
            return y * 2.0 if y > 3 else y + W
        except TypeError:  # as a TraceError is one
            return y + 1.0

    return mg.while_loop(lambda y: y < 50.0, body, x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [asks, followed_for_many, asked_after, asked_before, raising, unlike, of_texts, with_a_swallowed_error],
    ids=lambda f: f.__name__,
)
def test_what_the_program_cannot_decide_is_followed(function, backend):
    fast = mg.compile(function, backend=backend)
    for x in (2.0, 0.5, 4.0, -1.0, 2.0):
        if x > 0 or function in (raising, unlike, of_texts):
            expected, found = numbers_and_slopes(function, x), numbers_and_slopes(fast, x)
            assert found == (expected if isinstance(expected[0], str) else pytest.approx(expected, rel=1e-11))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_vmaps_and_calls_of_arrays_go_with_decisions(backend):
    def mapped(xs):
        first = mg.vmap(lambda x: mg.sin(x) * x)(xs)
        return mg.while_loop(lambda y: y < 10.0, lambda y: y * 2.0, abs(sum(first)) + 0.1) * W

    def after(xs):
        start = mg.while_loop(lambda y: y < 10.0, lambda y: y * 2.0, xs[0])
        return sum(mg.vmap(lambda x: mg.sin(x + start) * x)(xs)) * W

    def solved(xs):
        start = mg.while_loop(lambda y: y < 10.0, lambda y: y * 2.0, xs[0])
        found = np.linalg.eigvalsh(mg.array([[start, 1.0], [1.0, xs[1]]]))
        return mg.while_loop(lambda y: y < 99.0, lambda y: y * 2.0, found[0] + 10.0) * W

    for function in (mapped, after, solved):
        fast = mg.compile(function, backend=backend if function is not solved else "numpy")
        for start in (0.5, 3.0):
            xs = [start + 0.1 * n for n in range(4)]
            assert float(fast(xs)) == pytest.approx(float(function(xs)), rel=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_under_no_grad_and_with_plain_numbers(backend):
    fast = mg.compile(newton, backend=backend)
    with mg.no_grad():
        assert fast(Value(2.0)).data == newton(2.0)
    assert fast(2.0) == newton(2.0)
    with mg.no_grad():
        assert mg.compile(nested, backend=backend)(2.0).data == nested(2.0).data


def test_it_is_explained_and_can_be_written_out():
    fast = mg.compile(lambda x: nested(x) + mg.cond(x > 0, lambda: (x, W), lambda: (W, x))[0], backend="numpy")
    fast(Value(2.0))
    text = fast.explain()
    assert "loop    any number of iterations of a state of 2 numbers" in text
    assert "\n  choice  of 1 number;" in text
    assert "\nchoice  of 2 numbers;" in text
    assert "at most 9 iterations" in mg.compile(
        lambda x: mg.while_loop(lambda y: y < 1, lambda y: y + W, x, 9), backend="numpy"
    ).explain(0.5)
    assert "compile" in fast.explain(passes=True)
    run = fast.program(Value(2.0))
    run.run()
    assert run.buffer[run.program.outputs][0] == pytest.approx(fast(Value(2.0)).data)
    assert fast.program(Value(2.0)) is run
    single = mg.compile(newton, precision="float32", backend="numpy")
    assert single(2.0) == pytest.approx(math.sqrt(2.0), rel=1e-6)
    assert single.has_paths()


def test_several_threads_decide_at_once():
    fast, found = mg.compile(nested), {}

    def work(start):
        found[start] = [numbers_of(fast, start + 0.25 * n) for n in range(40)]

    def numbers_of(function, x):
        point = Value(x)
        result = function(point)
        slopes = mg.gradient(result, [point])
        return result.data, slopes[0]

    threads = [threading.Thread(target=work, args=(start,)) for start in (0.1, 0.2, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for start, results in found.items():
        for n, result in enumerate(results):
            assert result == pytest.approx(numbers_of(nested, start + 0.25 * n), rel=1e-12)


@pytest.mark.parametrize("is_differentiable", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_endless_loop_can_be_interrupted(is_differentiable):
    """Control-C reaches native code, and the function goes on to work."""
    wrap = Value if is_differentiable else float
    fast = mg.compile(lambda x: mg.while_loop(lambda y: y < 5.0, lambda y: y * x, x), backend="llvm")
    assert float(fast(wrap(2.0))) == 8.0
    main = threading.main_thread().ident

    def interrupt():
        time.sleep(0.2)
        signal.pthread_kill(main, signal.SIGINT)

    thread = threading.Thread(target=interrupt)

    def run():
        thread.start()
        fast(wrap(1.0))

    with pytest.raises(KeyboardInterrupt):  # wherever it comes: a busy machine may take long to start the loop
        run()
    thread.join()
    assert float(fast(wrap(2.0))) == 8.0


def test_a_primitive_in_python_runs_between_decisions(backend):
    halved = mg.primitive("halved_in_decisions", "½", lambda x: x / 2, lambda g, out, x: g / 2, replace=True)
    agrees(lambda x: mg.while_loop(lambda y: y > 1.0, lambda y: halved(y) * W, x), backend, (9.0,), (0.5,))
    failing = mg.primitive("failing_in_decisions", "!", _fail, lambda g, out, x: g, replace=True)
    fast = mg.compile(lambda x: mg.while_loop(lambda y: y > 1.0, lambda y: failing(y), x), backend=backend)
    assert fast(0.5) == 0.5
    with pytest.raises(KeyError, match="no such"):
        fast(2.0)


def _fail(x):
    raise KeyError("no such")


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_where_there_is_no_memory_for_the_states_that_is_the_error(backend, monkeypatch):
    fast = mg.compile(lambda x: mg.while_loop(lambda y: y < 1e3, lambda y: y * 1.01, x), backend=backend)
    assert fast(Value(900.0)).data > 1e3

    def fail(states):
        raise MemoryError(len(states.rows))

    monkeypatch.setattr(deciding.States, "grow", fail)
    with pytest.raises(MemoryError, match=str(deciding.FIRST_ROWS)):
        fast(Value(1.0))
    monkeypatch.undo()
    assert fast(Value(1.0)).data > 1e3


def test_large_bodies_and_takes(backend):
    weights = [[Value(0.01 * (row - column), label="w") for column in range(20)] for row in range(20)]

    def body(state):
        xs, n = state
        return [mg.tanh(mg.dot(row, xs)) for row in weights], n + 1.0

    def f(x):
        xs, n = mg.while_loop(lambda s: s[1] < 4.0, body, ([x * (0.1 * n) for n in range(20)], 0.0 * x))
        return sum(xs) * n

    agrees(f, backend, (0.7,), (-2.0,))


def test_errors_are_those_of_the_function():
    with pytest.raises(ValueError, match="keep its structure"):
        mg.compile(lambda x: mg.while_loop(lambda y: [y, y][0] < 1.0, lambda y: [y], x))(0.5)
    with pytest.raises(TraceError, match="the text of a number"):
        mg.compile(lambda x: mg.cond(x > 0, lambda: f"{x}", lambda: x))(0.5)
    assert mg.compile(lambda x: mg.cond(x > 0, lambda: "yes", lambda: "yes"))(0.5) == "yes"


def test_pid_is_not_frozen():
    """A function that is traced twice, as it cannot decide, leaves nothing behind of the first time."""
    made = []

    def f(x):
        made.append(os.getpid() * 0)
        return mg.while_loop(lambda y: y < 50.0, lambda y: y * 2.0 if y > 3 else y + W, x)

    with pytest.raises(TraceError):
        mg.compile(f)(1.0)


def in_a_loop(step):
    """A plain loop of 40 choices between short branches."""

    def loop(x, y):
        for n in range(40):
            x = step(n, x, y)
        return x

    return loop


MANY_CHOICES = {
    "numbers": lambda n, x, y: mg.cond(x > y, lambda s: 0.9 * s, lambda s: s + 0.1 * y * y, x),
    "ties": lambda n, x, y: mg.cond(x >= y, lambda: y * 1.0, lambda: x + (y - x) * W),
    "a tuple": lambda n, x, y: sum(mg.cond(x < y, lambda: (x * 0.5, y * 0.25), lambda: (y * 0.125, x * 0.5))),
    "dicts in another order": lambda n, x, y: (
        lambda found: found["a"] - 0.5 * found["b"]
    )(mg.cond(x < y, lambda: {"a": x * 0.5, "b": y}, lambda: {"b": x, "a": y * 0.125})),
    "a number that is known": lambda n, x, y: x + mg.cond(x > y, lambda: -0.25, lambda: 0.5),
    "a number that decides": lambda n, x, y: mg.cond(x - y, lambda: 0.5 * (x + y), lambda: x + 1.0),
    "some that may raise": lambda n, x, y: mg.cond(x > y, lambda: mg.log(x) if n % 3 else 0.5 * x, lambda: x + y * y),
    "some in others": lambda n, x, y: mg.cond(
        x > y, lambda: mg.cond(x > 2 * y, lambda: 0.5 * x, lambda: 0.75 * x) if n % 2 else 0.9 * x, lambda: x + 0.25
    ),
    "code that catches": lambda n, x, y: caught(lambda: mg.cond(x > y, lambda: 0.9 * x, lambda: x + 0.1)),
}  # fmt: skip


def caught(function):
    try:
        return function()
    except Exception:
        return 0.0


@pytest.mark.parametrize("backend", ["numpy", "llvm", pytest.param("jax", marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", MANY_CHOICES)
def test_many_short_choices(step, backend):
    points = [(2.0, 0.5), (-1.0, 0.75), (0.5, 0.5), (1.0, 1.25)]
    fast = agrees(in_a_loop(MANY_CHOICES[step]), backend, *points)
    assert ("choice  of" in fast.explain()) == step.startswith("some")


def test_derivatives_of_many_short_choices():
    loop = in_a_loop(MANY_CHOICES["numbers"])
    for transform in (mg.grad(mg.grad(loop)), mg.grad(mg.grad(loop), argnums=1), mg.value_and_grad(loop)):
        fast = mg.compile(transform)
        for point in ((2.0, 0.5), (0.25, 0.75), (-1.0, 0.5)):
            assert fast(*point) == pytest.approx(transform(*point), rel=1e-12)


def test_a_loop_of_choices_takes_few_programs_however_long_it_is():
    def loop(x, ys):
        for y in ys:
            x = mg.cond(x > y, lambda s: 0.9 * s, lambda s, y=y: s + 0.1 * y * y, x)
        return x

    fast = mg.compile(loop)
    for seed in range(2):
        ys = np.random.default_rng(seed).random(2000).tolist()
        assert fast(0.5, ys) == pytest.approx(loop(0.5, ys), rel=1e-12)
    assert fast.cache_info().traces == 1
    assert "choice" not in fast.explain()
