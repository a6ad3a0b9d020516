"""Losses that decide on numbers: compiled, fit takes the steps that it takes eagerly."""

import random
from functools import partial

import numpy as np
import pytest

import micrograd as mg
from micrograd import TraceError, Value, nn
from micrograd.compiler.training.buffer_steps import BufferSteps
from micrograd.compiler.training.steps import Task

pytestmark = pytest.mark.slow(together=True)

EXAMPLES = [
    ([x, y], label, float(kind))
    for source in [random.Random(5)]
    for x, y, label, kind in (
        (source.gauss(0, 1), source.gauss(0, 1), source.choice([-1.0, 1.0]), source.random() < 0.5) for _ in range(60)
    )
]


def network():
    random.seed(3)
    return nn.MLP(2, [6, 2])


def hinge(net, x, label, kind):
    margin = net(x)[0] * label
    if margin < 1:
        return 1 - margin
    return margin * 0.0


def mixed(net, x, label, kind):
    """A class or a number, as the example says."""
    a, b = net(x)
    if kind > 0.5:
        share = mg.sigmoid(a)
        return -mg.log(share) if label > 0 else -mg.log(1 - share)
    distance = b - label
    if abs(distance) < 1:
        return 0.5 * distance * distance
    return mg.sqrt(distance * distance) - 0.5


def chosen(net, x, label, kind):
    a, b = net(x)
    shares = mg.array([a, b, b - a]) / 2.0
    largest = max(a, b) * mg.take([a, b], 1 if kind > 0.5 else 0)
    return mg.cond(a > 0, lambda: 1 / a, lambda: (a - 1) ** 2) * 0.01 + mg.dot(shares, shares) + (largest - label) ** 2


def asserted(net, x, label, kind):
    """A path that no example takes raises nothing."""
    a, b = net(x)
    if abs(a) > 1e6:
        raise ValueError("too large")
    assert b <= 1e6
    return (a - label) ** 2 + b * b


def undecided(net, x, label, kind):
    return (net(x)[0] - label) ** 2


def trained(loss, is_compiled, examples=EXAMPLES, steps_of=mg.optim.Adam, **options):
    """The losses, and the numbers of the parameters."""
    net = network()
    history = mg.fit(
        lambda *example, **named: loss(net, *example, **named),
        examples,
        steps_of(net.parameters(), 0.03),
        epochs=3,
        batch_size=7,
        seed=1,
        compile=is_compiled,
        **options,
    )
    return history.loss, [parameter.data for parameter in net.parameters()]


def indexed(net, x, label, kind):
    a, b = net(x)
    if a < b:
        return (mg.take([a, b], kind) - label) ** 2
    return (a + b) ** 2


def test_an_index_may_be_data():
    examples = [(x, label, int(kind)) for x, label, kind in EXAMPLES]
    (losses, numbers), (expected, parameters) = (trained(indexed, given, examples) for given in ("numpy", False))
    assert losses == pytest.approx(expected, rel=1e-9)
    assert numbers == pytest.approx(parameters, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "backend"),
    [
        *((loss, backend) for loss in (hinge, mixed, chosen, asserted, undecided) for backend in ("numpy", "llvm")),
        (chosen, "jax"),
        (undecided, "jax"),
    ],
    ids=lambda given: getattr(given, "__name__", given),
)
def test_compiled_losses_are_eager_s(loss, backend):
    for found, expected in zip(trained(loss, backend), trained(loss, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_steps_are_taken_by_the_program(monkeypatch):
    """Eagerly, the loss would run for each example of each step."""
    calls = []

    def counted(net, *example):
        calls.append(1)
        return mixed(net, *example)

    trained(counted, "numpy")
    assert len(calls) < len(EXAMPLES)


def test_where_rounding_might_decide_a_step_is_taken_eagerly():
    def close(net, x, label, kind):
        a, b = net(x)
        return a * a if a + 0.1 - 0.1 < a else b * b + (a - label) ** 2

    for found, expected in zip(trained(close, "numpy"), trained(close, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_path_that_an_example_takes_raises():
    def positive(net, x, label, kind):
        if label < 0:
            raise ValueError("a negative label")
        return net(x)[0] ** 2

    with pytest.raises(ValueError, match="a negative label"):
        trained(positive, "numpy")

    def always(net, x, label, kind):
        raise KeyError("nothing")

    with pytest.raises(KeyError, match="nothing"):
        trained(always, "numpy")

    def either(net, x, label, kind):
        raise KeyError("one" if label > 0 else "one more")

    with pytest.raises(KeyError, match="one"):
        trained(either, "numpy")


def test_what_has_too_many_paths_is_refused():
    def endless(net, x, label, kind):
        a = net(x)[0]
        while a * a > 1.0:
            a = a * 0.5
        return (a - label) ** 2

    def many(net, x, label, kind):
        a, b = net(x)
        return sum(sorted([a, b, a - b, a + b, 2.0 * a, 2.0 * b])[:2]) ** 2

    for loss in (endless, many):
        with pytest.raises(TraceError, match=r"more than 64 ways through the function.*mg\.where"):
            trained(loss, "numpy")
    with pytest.raises(TraceError, match="the int of a number"):
        trained(lambda net, x, label, kind: net(x)[int(net(x)[0] > 0)] ** 2, "numpy")
    with pytest.raises(TraceError, match="a choice between results of two structures"):
        trained(lambda net, x, label, kind: net(x)[0] if label > 0 else [net(x)[0]], "numpy")
    with pytest.raises(TraceError, match="the text of a number"):
        trained(lambda net, x, label, kind: net(x)[0] if label > 0 else f"{label}", "numpy")


def tasks(net, x, label, kind):
    """Examples of several tasks, each with a part of the network of its own, as a number says."""
    a, b = net(x)
    for _ in range(int(kind)):
        a, b = mg.tanh(a + b), mg.sin(a - b) * mg.exp(b) / 4.0
    if a > b:  # a decision on parameters is in each program
        return (a - label) ** 2
    return (b + label) ** 2


OF_TASKS = [(x, label, 2 * number % 3) for number, (x, label, _) in enumerate(EXAMPLES)]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_examples_that_take_the_same_way_run_together(backend):
    for found, expected in zip(trained(tasks, backend, OF_TASKS), trained(tasks, False, OF_TASKS), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    net = network()
    loss = partial(tasks, net)
    task = Task(loss, OF_TASKS, mg.optim.SGD(net.parameters(), 0.1), None, 7)
    if backend == "jax":
        from micrograd.compiler.training.mesh_steps import MeshSteps

        steps = MeshSteps(task, 1, "float64")
    else:
        steps = BufferSteps(task, backend)
    groups = [steps._which[number::3].tolist() for number in range(3)]
    assert [len(set(group)) for group in groups] == [1] * 3
    assert sorted(group[0] for group in groups) == [*range(3)]


def test_one_program_has_all_ways_where_these_are_little_more_to_do():
    net = network()
    steps = BufferSteps(Task(partial(mixed, net), EXAMPLES, mg.optim.SGD(net.parameters(), 0.1), None, 7), "numpy")
    assert set(steps._which.tolist()) == {0}


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.unmeasured
def test_an_example_that_is_changed_may_take_another_way(backend):
    losses = []
    for compiled in (backend, False):
        net, examples = network(), [(list(x), label, [kind]) for x, label, kind in OF_TASKS]

        def turn(history, examples=examples):
            for _, _, kind in examples:
                kind[0] = (kind[0] + len(history.epochs)) % 2

        history = mg.fit(
            lambda x, label, kind, net=net: tasks(net, x, label, kind[0]),
            examples,
            mg.optim.SGD(net.parameters(), 0.01),
            epochs=2,
            batch_size=7,
            seed=1,
            compile=compiled,
            callback=turn,
        )
        losses.append(history.loss)
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_noise_decides_again_in_each_step():
    def noisy(net, x, label, kind, noise):
        a, b = net(x)
        if noise[0] > 0:
            return (a - label) ** 2
        return (b - label) ** 2 if kind > 0.5 else b**2

    drawn = []
    for compiled in ("numpy", False):
        generator = np.random.default_rng(1)
        drawn.append(
            trained(noisy, compiled, noise=lambda count, generator=generator: generator.normal(size=(count, 1)))
        )
    for found, expected in zip(*drawn, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_ways_that_raise_or_are_many_are_in_one_program():
    """A number of the example that cannot be computed raises where the example is trained on, and not before."""

    def logarithm(net, x, label, kind):
        return net(x)[0] ** 2 if mg.log(label + 2.0) > kind else net(x)[1] ** 2

    for found, expected in zip(trained(logarithm, "numpy"), trained(logarithm, False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    examples = [*EXAMPLES, ([1.0, 1.0], -3.0, 0.0)]
    for compiled in ("numpy", False):
        with pytest.raises(ValueError, match="log"):
            trained(logarithm, compiled, examples)

    def either(net, x, label, kind):
        if net(x)[0] > 0 and x[0] > 5:
            raise ValueError("far away")
        return (net(x)[0] - label) ** 2

    far = [*EXAMPLES, *(([9.0, side], 1.0, 0.0) for side in (9.0, -9.0))]
    for compiled in ("numpy", False):
        with pytest.raises(ValueError, match="far away"):
            trained(either, compiled, far)

    many = [(x, label, number) for number, (x, label, _) in enumerate(EXAMPLES[:3] * 30, 1)]
    with pytest.raises(TraceError, match="the int of a number"):
        trained(lambda net, x, label, kind: sum(net(x)[0] ** 2 for _ in range(int(kind))), "numpy", many)


@pytest.mark.slow
@pytest.mark.unmeasured
def test_functions_of_jax_decide_too():
    jax = pytest.importorskip("jax")
    weight = Value(2.0)

    def leaky(x):
        return x * weight if x > 0 else mg.exp(x) * weight

    function, parameters = mg.to_jax(leaky, 1.0)
    for x in (1.5, -0.5):
        given = Value(x)
        result = leaky(given)
        expected = mg.gradient(result, [given])
        value, slope = jax.value_and_grad(function, argnums=1)(parameters, x)
        assert float(value) == pytest.approx(result.data, rel=1e-6)
        assert float(slope) == pytest.approx(expected[0], rel=1e-6)
