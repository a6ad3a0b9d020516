"""A scan whose iterations call mg.cond, mg.switch or mg.while_loop: compiled once, and equal to eager code."""

import itertools

import numpy as np
import pytest

import micrograd as mg

pytestmark = pytest.mark.slow(together=True)

BACKENDS = ["llvm", "numpy", "jax"]
INPUTS = [0.01 * number for number in range(12)]


def chosen(p, inputs, reverse=False):
    def step(state, x):
        y = mg.cond(state > 0.5, lambda s: p * s, lambda s: s + 2.0 * x * p, state)
        return y, y * x

    state, outputs = mg.scan(step, 0.1 * p, inputs, reverse=reverse)
    return state * state + 2.0 * sum(outputs)


def backwards(p, inputs):
    return chosen(p, inputs, reverse=True)


def whole_numbers(p, inputs):
    def step(count, x):
        return mg.cond(x > p, lambda c: c + 1, lambda c: c, count), count

    count, counts = mg.scan(step, 0, inputs)
    return count * p + sum(counts)


def in_containers(p, inputs):
    def step(state, item):
        a, (b, c) = state["pair"]
        a, b = mg.cond(a > b, lambda u, v: (v, u), lambda u, v: (u + item["x"], v * p), a, b)
        return {"pair": (a, (b, c))}, (a, item["name"])

    state, outputs = mg.scan(step, {"pair": (0.1 * p, (0.2 * p, 7))}, [{"x": x, "name": "same"} for x in inputs])
    a, (b, c) = state["pair"]
    return a + b * c + outputs[0][-1] * len(outputs[1][-1])


def nested(p, inputs):
    def outer(state, x):
        def inner(total, y):
            return mg.cond(total * y > p, lambda t: 0.5 * t, lambda t: t + y, total), total

        total, totals = mg.scan(inner, state, inputs)
        return 0.1 * total, x + sum(totals)

    state, outputs = mg.scan(outer, 0.1 * p, inputs)
    return state + sum(outputs)


def with_a_loop(p, inputs):
    def step(state, x):
        small = mg.while_loop(lambda t: t > p, lambda t: 0.5 * t, state + x, limit=50)
        return 0.9 * state + small, small

    state, outputs = mg.scan(step, 2.0 + p, inputs)
    return state + sum(outputs)


def with_a_switch(p, inputs):
    def step(state, x):
        index = mg.floor(30.0 * x) - 3.0 * mg.floor(10.0 * x)
        return mg.switch(index, [mg.sin, lambda s: p * s, lambda s: s + 1.0], state), index

    state, outputs = mg.scan(step, 0.3 * p, inputs)
    return state + sum(outputs)


def with_a_derivative(p, inputs):
    def step(state, x):
        slope = mg.grad(lambda z: mg.cond(z > p, lambda q: q**3, lambda q: p * q * q, z))(state)
        return state - 0.1 * slope + x, slope

    state, slopes = mg.scan(step, 2.0 + p, inputs)
    return state + sum(slopes)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function",
    [chosen, backwards, whole_numbers, in_containers, with_a_loop, with_a_switch, with_a_derivative, nested],
)
def test_numbers_are_those_of_eager_code(function, backend):
    eager = mg.value_and_grad(function)
    fast = mg.compile(eager, backend=backend)
    for p in (0.5, 0.05, 3.0):
        assert fast(p, INPUTS) == pytest.approx(eager(p, INPUTS), rel=1e-12, abs=1e-14)
    assert fast.cache_info().traces == 1


@pytest.mark.parametrize("function", [chosen, nested])
def test_second_derivatives(function):
    found = mg.compile(mg.hessian(function))(0.5, INPUTS)
    assert found == pytest.approx(mg.hessian(function)(0.5, INPUTS), rel=1e-11)


def test_more_iterations_are_no_more_code():
    fast = mg.compile(mg.value_and_grad(chosen))
    sizes = [0]
    for length in (20, 40, 80):
        inputs = np.linspace(0.0, 1.0, length)
        assert fast(0.5, inputs) == pytest.approx(mg.value_and_grad(chosen)(0.5, inputs), rel=1e-12)
        sizes.append(fast.cache_info().code_bytes)
    first, second, third = np.diff(sizes)
    assert first > 0
    assert max(second, third) <= first


def counted(p, inputs):
    calls = []

    def step(state, x):
        calls.append(state)
        factor = len(calls)
        return mg.cond(state > 0.5, lambda s: p * s * factor, lambda s: s + x, state), state * factor

    state, outputs = mg.scan(step, 0.1 * p, inputs)
    return state + sum(outputs) + sum(calls)


def numbered(p, inputs):
    numbers = itertools.count(1)

    def step(state, x):
        number = next(numbers)
        return mg.cond(state > 0.5, lambda s: p * s * number, lambda s: s + x, state), state * number

    state, outputs = mg.scan(step, 0.1 * p, inputs)
    return state + sum(outputs)


def counted_once(p, inputs):
    """Its first iteration changes nothing, and the second one does."""
    seen = {"first": True, "factor": 1.0}

    def step(state, x):
        if seen["factor"] == 1.0 and not seen["first"]:
            seen["factor"] = 2.0
        result = mg.cond(state > 0.5, lambda s: p * s * seen["factor"], lambda s: s + x, state)
        return result, state * seen["factor"]

    first, _ = step(0.1 * p, 0.2)
    seen["first"] = False
    state, outputs = mg.scan(step, first, inputs)
    return state + sum(outputs)


def told_from_a_float(p, inputs):
    """Where an iteration stands for others, it is given no float."""
    factor = {"of": 1.0}

    def step(state, x):
        if type(x) is not float:
            factor["of"] = 2.0
        return mg.cond(state > 0.5, lambda s: p * s * factor["of"], lambda s: s + x, state), state * factor["of"]

    state, outputs = mg.scan(step, 0.1 * p, [0.01 * number for number in range(12)])
    return state + sum(outputs) + inputs[0]


def labelled(p, inputs):
    def step(state, item):
        label, x = item
        following = mg.cond(state > 0.5, lambda s: p * s, lambda s: s + x, state)
        return 2.0 * following if label == "a" else following, state

    state, outputs = mg.scan(step, 0.1 * p, list(zip("aabb" * 3, inputs, strict=True)))
    return state + sum(outputs)


def without_a_number_in_the_state(p, inputs):
    def step(state, x):
        return state, mg.cond(x > p, lambda q: p * q, lambda q: q + x, x)

    _, outputs = mg.scan(step, "nothing", inputs)
    return sum(outputs)


def late(p, inputs):
    """A change in one of the later iterations, after which the recording of the others no longer holds."""
    seen = []

    def step(state, x):
        if len(seen) == 1:
            seen.append("changed")
        factor = float(len(seen))
        return mg.cond(state > 0.5, lambda s: p * s * factor, lambda s: s + x, state), factor

    step(0.1 * p, 0.2)
    seen.append("ready")
    state, outputs = mg.scan(step, 0.6 * p, inputs)
    return state + sum(outputs)


@pytest.mark.parametrize(
    "function", [counted, numbered, counted_once, told_from_a_float, late, labelled, without_a_number_in_the_state]
)
def test_iterations_that_differ_are_written_out(function):
    eager = mg.value_and_grad(function)
    fast = mg.compile(eager)
    for p in (0.05, 2.0):
        assert fast(p, INPUTS) == pytest.approx(eager(p, INPUTS), rel=1e-12)


def changed_between(p, inputs):
    """What a branch closes over changes before its derivative is taken."""
    factor = {"of": 1.0}
    y = mg.cond(p > 0.5, lambda q: q * q * factor["of"], lambda q: q, p)
    factor["of"] = 5.0
    return y + mg.cond(p > 0.5, lambda q: q * q * factor["of"], lambda q: q, p) * inputs[1]


def changed_between_loops(p, inputs, checkpoint=None):
    factor = {"of": 1.0}

    def step(state, x):
        return mg.cond(state > 0.5, lambda s: p * s * factor["of"], lambda s: s + x * p, state), state

    state, first = mg.scan(step, 0.1 * p, inputs, checkpoint=checkpoint)
    factor["of"] = 5.0
    state, second = mg.scan(step, state, inputs, checkpoint=checkpoint)
    small = mg.while_loop(lambda s: s > 0.1, lambda s: s / (p + factor["of"]), state, limit=50)
    factor["of"] = 2.0
    return state + sum(first) * sum(second) + small


def with_checkpoints(p, inputs):
    return changed_between_loops(p, inputs, 3)


@pytest.mark.parametrize("function", [changed_between, changed_between_loops, with_checkpoints])
def test_what_functions_close_over_is_that_of_their_call(function):
    eager = mg.value_and_grad(function)
    fast = mg.compile(eager)
    for p in (0.4, 1.2):
        assert fast(p, INPUTS) == pytest.approx(eager(p, INPUTS), rel=1e-12)


def test_an_exported_function_has_no_derivative_of_functions_that_have_changed(tmp_path):
    with pytest.raises(mg.TraceError, match="has changed since"):
        mg.compile(mg.grad(changed_between)).export(tmp_path / "f.c", 1.2, INPUTS)


def test_a_branch_may_give_a_value_from_outside():
    outside = mg.Value(3.0)

    def loss(p):
        def step(state, x):
            return mg.cond(state > x, lambda s: outside, lambda s: p * s, state), None

        return mg.scan(step, 2.0 * p, INPUTS)[0] * p

    value, slope = mg.compile(mg.value_and_grad(loss))(0.5)
    assert (value.data, slope.data) == (1.5, 3.0)


def test_errors_are_those_of_eager_code():
    def logarithms(p, inputs):
        def step(state, x):
            return mg.cond(state > p, mg.log, lambda s: s + 0.3 + 0.0 * x, state), state

        state, outputs = mg.scan(step, 0.1 * p, inputs)
        return state + sum(outputs)

    def changing(p, inputs):
        def step(state, x):
            return [mg.cond(state[0] > p, mg.sin, mg.cos, state[0]), *state], x

        return sum(mg.scan(step, [0.1 * p], inputs)[0])

    for function, p in ((logarithms, -5.0), (changing, 0.5)):
        with pytest.raises(ValueError) as eager:  # noqa: PT011  # its text is compared
            function(p, INPUTS)
        with pytest.raises(ValueError) as compiled:  # noqa: PT011  # with this one
            mg.compile(function)(p, INPUTS)
        assert str(compiled.value) == str(eager.value)
