"""What repeats becomes a loop. The verifier compares each loop with its iterations written out."""

import math
import random
from functools import reduce

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler.ir.program import Loop

pytestmark = pytest.mark.slow


def loops(run):
    """How many iterations each loop of a program has, and how many kernels."""
    return [(kernel.iterations, len(kernel.kernels)) for kernel in run.program.kernels if isinstance(kernel, Loop)]


def recurrent(xs, w, u, b, h=None):
    """A recurrent network: its states are h."""
    h = h or [0.0] * len(w)
    for x in xs:
        h = [mg.tanh(mg.dot(row, h) + mg.dot(column, x) + c) for row, column, c in zip(w, u, b, strict=True)]
    return h


def network(hidden=3, inputs=2):
    w = [[Value(0.1 * (i + 2 * j - 3)) for i in range(hidden)] for j in range(hidden)]
    u = [[Value(0.2 * (i - j)) for i in range(inputs)] for j in range(hidden)]
    return w, u, [Value(0.1 * i) for i in range(hidden)]


def series(length, width=2):
    return [[math.sin(3.0 * t + i) for i in range(width)] for t in range(length)]


@pytest.mark.unmeasured
@pytest.mark.parametrize("hidden", [1, 3, 8])
def test_a_recurrent_network_is_a_loop_each_way_however_long_it_is(hidden):
    w, u, b = network(hidden)

    def f(xs):
        h = recurrent(xs, w, u, b)
        return mg.dot(h, h)

    found = {}
    for length in (12, 18):
        run = mg.compile(f, backend="numpy").program(series(length))
        found[length] = [kernels for _, kernels in loops(run)], len(list(run.program.with_iterations()))
        assert [iterations > length - 4 for iterations, _ in loops(run)] == [True, True]
    assert found[12] == found[18]


@pytest.mark.unmeasured
def test_runge_kutta_is_a_loop_each_way():
    k, damping = Value(2.0), Value(0.3)

    def slope(y):
        return [y[1], -k * mg.sin(y[0]) - damping * y[1]]

    def f(y, steps):
        for _ in range(len(steps)):
            first = slope(y)
            second = slope([a + 0.05 * d for a, d in zip(y, first, strict=True)])
            y = [a + 0.05 * (c + d) for a, c, d in zip(y, first, second, strict=True)]
        return y[0] * y[0]

    run = mg.compile(f, backend="numpy").program([1.0, 0.0], [0.0] * 16)
    assert len(loops(run)) == 2


def test_gradients_of_what_each_iteration_reads_lie_where_they_were_asked_for():
    w = Value(0.5)
    xs = [Value(0.1 * i) for i in range(20)]
    ys = [Value(0.1 * i) for i in range(40)]

    def f():
        h = 0.0
        for t, x in enumerate(xs):
            h = mg.tanh(w * h + x * ys[2 * t])
        return h + sum(ys[1::2])

    fast = mg.compile(f, backend="numpy")
    assert len(loops(fast.program())) == 2
    fast().backward()
    found = [value.grad for value in (w, *xs, *ys)]
    for value in (w, *xs, *ys):
        value.grad = 0.0
    f().backward()
    assert found == pytest.approx([value.grad for value in (w, *xs, *ys)], rel=1e-12)


def test_constants_that_are_others_at_each_iteration_are_a_table():
    w = Value(0.5)
    data = [0.1 * t * t for t in range(20)]

    def f(h):
        for x in data:
            h = mg.sin(w * h + x) + mg.maximum(h, x) ** 2
        return h

    run = mg.compile(f, backend="numpy").program(0.3)
    assert len(loops(run)) == 2


def test_what_lies_unevenly_in_the_buffer_is_put_in_a_table():
    """Equal operations are one node, so what an iteration reads is now one of a few that are computed before."""
    w, v = Value(0.5), Value(0.25)
    rng = random.Random(1)
    bits = [rng.choice([0.0, 1.0, 2.0]) for _ in range(30)]

    def f(h):
        h = 1.0 * h
        for bit in bits:
            h = mg.sin(w * h + mg.sigmoid(bit * v)) + mg.cos(v * bit)
        return h

    run = mg.compile(f, backend="numpy").program(0.3)
    assert [iterations > 15 for iterations, _ in loops(run)] == [True, True]


@pytest.mark.unmeasured
@pytest.mark.parametrize("iterations", [30, 70])
def test_an_iteration_may_read_what_many_iterations_before_made(iterations):
    w, v = Value(0.3), Value(0.4)

    def f(x):
        line = [x * i for i in range(20)]
        for iteration in range(iterations):
            line.append(mg.tanh(w * line[iteration] + v * line[-1]))
        return line[-1]

    run = mg.compile(f, backend="numpy").program(0.5)
    assert loops(run)[0][0] >= 19


def test_signs_that_change_from_iteration_to_iteration():
    w = Value(0.5)
    rng = random.Random(2)
    signs = [rng.choice([1, -1]) for _ in range(30)]

    def f(h, x):
        for sign in signs:
            h = mg.sin(w * h + x if sign > 0 else w * h - x)
        return h

    fast = mg.compile(f, backend="numpy")
    assert fast(0.3, 0.7).data == pytest.approx(f(0.3, 0.7).data, rel=1e-14)


def test_a_state_that_begins_as_two_things_begins_the_loop_an_iteration_later():
    w, x, y = Value(0.5), Value(0.3), Value(0.7)

    def f():
        state = x
        for iteration in range(20):
            state = mg.sin(w * state) + mg.cos(state if iteration else y)
        return state

    fast = mg.compile(f, backend="numpy")
    assert loops(fast.program())[0] == (19, 6)  # of 20: the first one has two beginnings


@pytest.mark.parametrize("width", [1, 2])
def test_a_program_may_begin_with_a_constant(width):
    w = [Value(0.5 - 0.1 * number) for number in range(width)]

    def f():
        states = [mg.maximum(0.25, weight) for weight in w]
        for _ in range(20):
            states = [mg.tanh(weight * state + 0.5) for weight, state in zip(w, states, strict=True)]
        return sum(states)

    fast = mg.compile(f, backend="numpy")
    assert len(loops(fast.program())) == 2


def test_an_iteration_may_gather():
    """Nothing lies evenly in what is drawn, so there are tables, and they move on from iteration to iteration."""
    rng = random.Random(3)
    drawn = [rng.randrange(9) for _ in range(12)]
    w = [Value(0.1 * i - 0.4) for i in range(12)]

    def f(x):
        h = [x * (i + 1) for i in range(9)]
        for _ in range(15):
            total = mg.dot(w, [h[i] for i in drawn])
            h = [mg.tanh(h[i] + total) for i in range(9)]  # which raises nothing, so that nothing is checked
        return h[0] * h[8]

    run = mg.compile(f, backend="numpy").program(0.1)
    (forward, backward) = [kernel for kernel in run.program.kernels if isinstance(kernel, Loop)]
    assert any(a.gathers for kernel in forward.kernels for a in kernel.accesses)
    assert any(a.table is not None for kernel in backward.kernels for a in kernel.accesses)
    compiled, eager = mg.compile(f)(0.1), f(0.1)
    assert mg.gradient(compiled, w) == pytest.approx(mg.gradient(eager, w), rel=1e-11)


@pytest.mark.parametrize("iterations", [1, 7, 15, 16, 17])
def test_few_iterations_are_written_out(iterations):
    def f(x):
        for _ in range(iterations):
            x = mg.sin(x)
        return x

    run = mg.compile(f, backend="numpy").program(0.5)
    assert bool(loops(run)) == (iterations >= 16)


def test_many_short_stretches_that_repeat_are_found_without_recursion():
    rng = random.Random(4)
    lengths = [rng.randrange(16, 24) for _ in range(40)]

    def f(x):
        for iteration, length in enumerate(lengths):
            for _ in range(length):
                x = mg.tanh(x)
            x = (mg.atan, mg.relu, mg.sigmoid)[iteration % 3](x) if length % 2 else mg.softplus(x)
        return x

    run = mg.compile(f, backend="numpy").program(0.5)
    assert len(loops(run)) > 30


def test_the_switch_turns_loops_off(monkeypatch):
    def f(x):
        for _ in range(30):
            x = mg.sin(x)
        return x

    assert loops(mg.compile(f, backend="numpy").program(0.5)) == [(30, 1)]
    monkeypatch.setenv("MICROGRAD_LOOPS", "0")
    assert loops(mg.compile(f, backend="numpy").program(0.5)) == []


# Programs that nobody chose

leaves = st.sampled_from(
    ["state 0", "state 1", "before 0", "input 0", "next input", "weight 0", "weight 1", "table", "constant"]
)
steps = st.recursive(
    leaves,
    lambda parts: st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "maximum", "minimum"]), parts, parts),
        st.tuples(st.sampled_from(["neg", "relu", "abs", "bounded"]), parts),
    ),
    max_leaves=6,
)
programs = st.fixed_dictionaries(
    {
        "step": st.lists(steps, min_size=1, max_size=2),
        "iterations": st.integers(12, 20),
        "result": st.sampled_from(["last", "sum of states", "sum of all"]),
        "odd": st.sampled_from([None, None, 0, 2, 11]),
        "before": st.sampled_from([0.0, 1.0, 2.0]),
    }
)


def made(step, leaf):
    """An expression of numbers, given the leaves."""
    if isinstance(step, str):
        return leaf(step)
    name, *operands = step
    x, *others = (made(operand, leaf) for operand in operands)
    if others:
        (y,) = others
        return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y}.get(name, lambda: getattr(mg, name)(x, y))()
    if name == "bounded":  # so that integers stay small, and are exact
        return mg.maximum(mg.minimum(x, 9.0), -9.0)
    return -x if name == "neg" else getattr(mg, name)(x)


def function_of(program, weights, table):
    """A function of the inputs of all iterations, written as a loop of Python."""

    def f(state, xs):
        state = [program["before"] * x for x in state]
        before, seen = state, []
        for iteration in range(program["iterations"]):
            sources = {"state": state, "before": before, "input": [xs[iteration]], "weight": weights}
            fixed = {"next input": xs[iteration + 1], "table": table[iteration], "constant": 3.0}

            def leaf(name, sources=sources, fixed=fixed):
                if name in fixed:
                    return fixed[name]
                kind, number = name.split()
                return sources[kind][int(number) % len(sources[kind])]

            step = program["step"] if iteration != program["odd"] else ["input 0"] * len(program["step"])
            changes = [made(part, leaf) for part in step]
            moved = [weights[i % 2] * h + change for i, (h, change) in enumerate(zip(state, changes, strict=True))]
            before, state = state, [mg.maximum(mg.minimum(h, 50.0), -50.0) for h in moved]
            seen += state
        results = {"last": lambda: state[0], "sum of states": lambda: sum(state), "sum of all": lambda: sum(seen)}
        return results[program["result"]]() + 0.0 * weights[1]

    return f


# At the first iteration of this one a term has one factor, and at all others two.
one_factor = {"step": [("*", "before 0", ("+", "state 0", "weight 1"))], "iterations": 12, "result": "last"}


@settings(max_examples=5)
@given(programs, st.integers(0, 1000))
@example({**one_factor, "odd": 0, "before": 0.0}, 0)
def test_a_loop_is_its_iterations_written_out(program, seed):
    drawn = np.random.default_rng(seed)
    weights = [Value(float(w)) for w in drawn.choice([-1, 1, 2], size=2)]
    f = function_of(program, weights, drawn.integers(-2, 3, size=program["iterations"]).astype(float).tolist())
    state = [float(x) for x in drawn.integers(-3, 4, size=len(program["step"]))]
    xs = [float(x) for x in drawn.integers(-3, 4, size=program["iterations"] + 1)]
    expected = f(state, xs)
    expected.backward()
    gradients = [w.grad for w in weights]
    for backend in ("numpy", "llvm"):
        for w in weights:
            w.grad = 0.0
        result = mg.compile(f, backend=backend)(state, xs)
        result.backward()
        assert (result.data, [w.grad for w in weights]) == (expected.data, gradients)


def test_what_raises_in_an_iteration_raises_as_eager_does():
    w = Value(1.0)

    def f(x, down):
        for d in down:
            x = mg.sqrt(w * x) - d
        return mg.tanh(mg.exp(-x))

    fast = mg.compile(f)
    assert fast(1.0, [0.0] * 20).data == f(1.0, [0.0] * 20).data
    for iteration in (0, 7, 18):
        down = [0.0] * 20
        down[iteration] = 4.0
        with pytest.raises(ValueError, match="sqrt") as eager:
            f(1.0, down)
        with pytest.raises(ValueError, match="sqrt") as compiled:
            fast(1.0, down)
        assert str(compiled.value) == str(eager.value)


def test_derivatives_of_loops_are_loops():
    w = Value(0.3)

    def f(x):
        return reduce(lambda h, _: mg.sin(w * h + x), range(18), x)

    second = mg.compile(mg.grad(mg.grad(f)))
    assert second(0.7).data == pytest.approx(mg.grad(mg.grad(f))(0.7).data, rel=1e-12)
    assert "times" in second.explain(0.7)


def test_the_picture_and_the_explanation_show_a_loop_once():
    w, u, b = network()

    @mg.compile(backend="numpy")
    def f(xs):
        return sum(recurrent(xs, w, u, b))

    f(series(20))
    assert "run 19 times" in f.explain(series(20))
    assert "19 times" in f.draw_dot().source


def test_small_kernels_of_a_loop_become_one_function_that_computes_the_same():
    """Sums from 0, sums of many terms, maxima, factors of other signs and a primitive that is composed of others."""
    w = [Value(0.1 * i - 0.5) for i in range(10)]

    def f(x):
        h = x
        for _ in range(12):
            summed = sum([h * w[0], x])
            h = mg.silu(summed) - 0.5 * mg.tanh(mg.dot(w, [h, x, summed, h, x, h, x, h, x, h])) - w[1] * h
            h = h - mg.detach(mg.maximum(mg.maximum(h, x), summed))
        return h

    fast = mg.compile(f, backend="llvm")
    assert fast(0.3).data == pytest.approx(f(0.3).data, rel=1e-13)
    assert mg.gradient(fast(0.3), w) == pytest.approx(mg.gradient(f(0.3), w), rel=1e-12)


def test_a_zero_keeps_its_sign_in_a_loop():
    def f(x, zeros):
        found = []
        for zero in zeros:
            x = -(x * zero)
            found.append(x)
        return found

    def from_zero(x, zeros):
        found = []
        for zero in zeros:
            x = -sum([x, zero])
            found.append(x)
        return found

    zeros = [0.0, -0.0] * 6
    for function in (f, from_zero):
        for backend in ("numpy", "llvm"):
            compiled = mg.compile(function, backend=backend)(Value(-0.0), zeros)
            signs = [math.copysign(1.0, value.data) for value in function(Value(-0.0), zeros)]
            assert [math.copysign(1.0, value.data) for value in compiled] == signs


def test_a_primitive_of_ones_own_runs_in_a_loop(own_registry):
    cube = mg.primitive("cube", "cube", lambda x: x * x * x, lambda g, out, x: 3.0 * g * x * x)

    def f(x):
        for _ in range(10):
            x = 0.5 * cube(x) + 0.3
        return x

    w = Value(0.9)
    for backend in ("numpy", "llvm"):
        fast = mg.compile(lambda: f(w), backend=backend)
        (slope,) = mg.gradient(fast(), [w])
        (expected,) = mg.gradient(f(w), [w])
        assert (fast().data, slope) == (f(w).data, pytest.approx(expected, rel=1e-13))
