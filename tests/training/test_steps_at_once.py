"""Steps that native code takes at once give the numbers of steps one by one, whatever comes between them."""

from functools import partial

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.backends.llvm import llvm_batches
from micrograd.compiler.training import buffer_steps
from micrograd.engine.primitive import Primitive
from micrograd.training import History
from tests.interrupts import interrupted_at

pytestmark = pytest.mark.slow(together=True)

POINTS = [([0.1 * number - 1.5, (number % 7) / 7.0], float(number % 3) - 1.0) for number in range(30)]
LONGER = [(x + [0.25] * (number % 2), y) for number, (x, y) in enumerate(POINTS)]  # of two structures


@pytest.fixture
def calls(monkeypatch):
    """For each native call that takes steps, how many it was given; it is given as many as there are."""
    given, take_steps = [], llvm_batches.NativeBatches.take_steps

    def counted(self, batches, *rest):
        given.append(len(batches))
        take_steps(self, batches, *rest)

    monkeypatch.setattr(llvm_batches.NativeBatches, "take_steps", counted)
    monkeypatch.setattr(buffer_steps, "_AT_ONCE", 1e9)
    return given


def one_by_one(monkeypatch):
    """Let steps be taken one by one."""
    monkeypatch.setattr(buffer_steps, "_AT_ONCE", 0.0)


def network(optimizer_of=lambda leaves: mg.optim.Adam(leaves, 0.02), units=3):
    """Leaves of two layers, their optimiser, and the squared error of a point."""
    hidden = [[Value(0.3 * row - 0.2 * column + 0.1) for column in range(3)] for row in range(units)]
    last = [Value(0.4 - 0.3 * number) for number in range(units)]
    leaves = [weight for row in [*hidden, last] for weight in row]

    def loss(x, y):
        return (mg.dot(last, [mg.tanh(mg.dot(row[: len(x)], x)) for row in hidden]) - y) ** 2

    return leaves, optimizer_of(leaves), loss


def everything(leaves, optimizer, history):
    """All that a run leaves behind."""
    state = optimizer.state_dict()
    return [(leaf.data, leaf.grad) for leaf in leaves], state, optimizer.rate, history.steps, history.epochs


def trained(
    points, optimizer_of=lambda leaves: mg.optim.Adam(leaves, 0.02), units=3, loss_of=lambda loss: loss, **settings
):
    leaves, optimizer, loss = network(optimizer_of, units)
    history = mg.fit(loss_of(loss), points, optimizer, seed=1, compile="llvm", progress=False, **settings)
    return everything(leaves, optimizer, history)


def test_in_numpy_steps_are_taken_one_by_one(monkeypatch):
    """However fast they are."""
    found = []
    for seconds in (0.0, 1e9):
        monkeypatch.setattr(buffer_steps, "_AT_ONCE", seconds)
        leaves, optimizer, loss = network()
        history = mg.fit(loss, POINTS, optimizer, batch_size=3, epochs=3, seed=1, compile="numpy", progress=False)
        found.append(everything(leaves, optimizer, history))
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("points", [POINTS, LONGER], ids=["alike", "of two lengths"])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize("units", [3, 9], ids=["few parameters", "more"])
@pytest.mark.parametrize(
    "optimizer_of",
    [
        partial(mg.optim.SGD, learning_rate=0.05, momentum=0.5),
        partial(mg.optim.Adam, learning_rate=mg.optim.linear(0.05, 0.01, 60)),
    ],
    ids=["momentum", "a schedule"],
)
def test_they_are_those_that_are_taken_one_by_one(points, batch_size, units, optimizer_of, calls, monkeypatch):
    seen = []
    settings = {"epochs": 3, "batch_size": batch_size, "callback": lambda history: seen.append(history.epochs[-1])}
    found = trained(points, optimizer_of, units, **settings)
    assert bool(calls) == (batch_size == 1 or points is POINTS)
    one_by_one(monkeypatch)
    expected = trained(points, optimizer_of, units, **settings)
    assert found == expected
    assert seen[:3] == seen[3:]


class Remembers(mg.optim.Optimizer):
    """Its states change places, one is the gradient as it is, and one stays as it is."""

    states = 4

    def update(self, parameter, gradient, state, rate):
        first, second, _, fixed = state
        return parameter - rate * (gradient + 0.5 * first + fixed), (second, gradient, gradient, fixed)


class Sign(mg.optim.Optimizer):
    """Only the sign of the gradient counts, and a count of steps that is one for all parameters."""

    states = 1

    def update(self, parameter, gradient, state, rate):
        return parameter - rate * (mg.sign(gradient) / (1 + state[0])), (state[0] + 1,)


def of_groups(kind):
    def optimizer_of(leaves):
        return kind([{"parameters": leaves[:4], "weight_decay": 0.1}, {"parameters": leaves[4:], "scale": 0.5}], 0.02)

    return optimizer_of


@pytest.mark.parametrize("units", [3, 9])
@pytest.mark.parametrize(
    "optimizer_of",
    [
        partial(Remembers, learning_rate=0.01),
        partial(Sign, learning_rate=0.01),
        of_groups(mg.optim.AdamW),
        of_groups(partial(mg.optim.SGD, momentum=0.5, nesterov=True)),
    ],
    ids=["states that change places", "the sign", "groups", "groups and momentum"],
)
def test_updates_of_all_kinds(optimizer_of, units, calls, monkeypatch):
    found = trained(POINTS, optimizer_of, units, epochs=3)
    assert calls
    one_by_one(monkeypatch)
    assert found == trained(POINTS, optimizer_of, units, epochs=3)


@pytest.mark.parametrize("at", [20, 21])
def test_a_derivative_that_fails_is_noticed_where_the_update_hides_it(at, calls, monkeypatch):
    points = [*[0.5] * at, 0.0, 0.5]

    def run(mode):
        leaf = Value(0.0)
        optimizer = Sign([leaf], 0.0)
        with pytest.raises(ZeroDivisionError, match="derivative of sqrt"):
            mg.fit(lambda x: mg.sqrt(leaf + x), points, optimizer, shuffle=False, compile=mode, progress=False)
        return leaf.data, leaf.grad, optimizer.state_dict()

    found = run("llvm")
    assert calls
    assert found == run(False)
    one_by_one(monkeypatch)
    assert found == run("llvm")


@pytest.mark.parametrize("size", [8, 30])
def test_a_batch_of_several_blocks_is_summed_in_the_same_order(size, calls, monkeypatch):
    points = POINTS * 10
    found = trained(points, batch_size=size, steps=40, epochs=2)
    assert calls
    one_by_one(monkeypatch)
    assert found == trained(points, batch_size=size, steps=40, epochs=2)


def test_a_smaller_last_batch_is_taken_by_itself(calls):
    trained(POINTS, batch_size=1, epochs=2)
    trained(POINTS * 3, batch_size=4, epochs=1)
    assert calls == [
        29,
        30,
        21,
    ]  # the first step of a run shows how long one takes; 90 examples are 22 batches of 4 and 2


def test_what_threads_or_python_do_is_left_to_them(calls, monkeypatch):
    own = Primitive("own", "own", lambda x: 2.0 * x, lambda g, out, x: 2.0 * g)
    trained(POINTS, loss_of=lambda loss: lambda x, y: own(loss(x, y)))

    class OwnOptimizer(mg.optim.Optimizer):
        def update(self, parameter, gradient, state, rate):
            return parameter - rate * own(gradient), state

    trained(POINTS, lambda leaves: OwnOptimizer(leaves, 0.01))
    monkeypatch.setattr(llvm_batches, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(llvm_batches, "cores", lambda: 2)
    trained(POINTS, batch_size=30, steps=20)
    assert calls == []


@pytest.mark.parametrize("clip_norm", [None, 0.1])
@pytest.mark.parametrize("at", [20, 21])
def test_a_step_that_is_not_finite_names_its_example_and_keeps_those_before(at, clip_norm, calls, monkeypatch):
    points = [(number - float(at),) for number in range(30)]

    def run():
        leaf = Value(1.0)
        optimizer = mg.optim.SGD([leaf], 0.01, momentum=0.5)
        settings = {"shuffle": False, "clip_norm": clip_norm, "compile": "llvm", "progress": False}
        with pytest.raises(ArithmeticError, match=rf"example {at} in epoch 1: .*division by zero"):
            mg.fit(lambda x: leaf / x, points, optimizer, **settings)
        return leaf.data, leaf.grad, optimizer.state_dict()

    found = run()
    assert bool(calls) == (clip_norm is None)
    one_by_one(monkeypatch)
    assert found == run()
    assert found[2]["steps"] == at


@pytest.mark.parametrize("at", [20, 21])
def test_an_update_that_is_not_finite_keeps_the_steps_before(at, calls, monkeypatch):
    def run():
        leaf = Value(1.0)
        optimizer = mg.optim.SGD([leaf], 1.0, momentum=0.5)
        points = [*[0.5] * at, 1e308, 1e308]
        with pytest.raises(ArithmeticError, match=r"epoch 1"):
            mg.fit(lambda x: leaf * x, points, optimizer, shuffle=False, compile="llvm", progress=False)
        return leaf.data, leaf.grad, optimizer.state_dict()

    found = run()
    assert calls
    one_by_one(monkeypatch)
    assert found == run()
    assert found[2]["steps"] >= at


class OwnError(Exception):
    pass


@pytest.mark.parametrize("at", [1, 17])
def test_a_learning_rate_that_raises_does_so_after_the_steps_before(at, calls, monkeypatch):
    def rate(step):
        if step == at:
            raise OwnError
        return 0.01

    def run():
        leaves, optimizer, loss = network(lambda leaves: mg.optim.SGD(leaves, rate))
        with pytest.raises(OwnError):
            mg.fit(loss, POINTS, optimizer, seed=1, compile="llvm", progress=False)
        return [leaf.data for leaf in leaves], optimizer.steps

    found = run()
    assert calls == ([16] if at == 17 else [])
    one_by_one(monkeypatch)
    assert found == run()
    assert found[1] == at


def test_steps_of_which_python_does_not_hear_are_in_the_history(calls, monkeypatch):
    """Python looks for Ctrl-C when native code has returned, before anybody knows what it has done."""
    expected = trained(POINTS, epochs=2)
    take_steps = llvm_batches.NativeBatches.take_steps

    def interrupted(self, *arguments):
        take_steps(self, *arguments)
        monkeypatch.setattr(llvm_batches.NativeBatches, "take_steps", take_steps)
        raise KeyboardInterrupt

    monkeypatch.setattr(llvm_batches.NativeBatches, "take_steps", interrupted)
    leaves, optimizer, loss = network()
    fit = partial(mg.fit, loss, POINTS, optimizer, seed=1, compile="llvm", progress=False, epochs=2)
    history = fit()
    assert (history.interrupted, len(history.steps), optimizer.steps) == (True, 30, 30)
    assert everything(leaves, optimizer, fit(resume=history)) == expected


@pytest.mark.slow
@pytest.mark.unmeasured
def test_ctrl_c_anywhere_leaves_a_whole_number_of_steps(calls):
    expected = trained(POINTS, epochs=2)
    count, inside = 300, 0
    while True:
        leaves, optimizer, loss = network()
        fit = partial(mg.fit, loss, POINTS, optimizer, seed=1, compile="llvm", progress=False, epochs=2)
        try:
            history = interrupted_at(count, fit)
        except KeyboardInterrupt:  # before the run began, or after it ended
            history = History()
            if inside:
                break
        else:
            inside += history.interrupted and len(history.steps) > 0
            assert len(history.steps) == optimizer.steps
            if not history.interrupted:
                break
        if optimizer.steps == len(history.steps):
            assert everything(leaves, optimizer, fit(resume=history)) == expected
        count += 97 if inside else 633  # most positions come before the first step
    assert inside > 3


def test_gradients_that_are_graphs_are_no_hindrance(calls, monkeypatch):
    """They may be those of other leaves, which an optimiser has trained together with these."""

    def run():
        leaves, optimizer, loss = network(units=9)
        other = Value(2.0)
        both = mg.optim.Adam([*leaves, other], 0.01)
        (loss(*POINTS[0]) * other).backward()
        both.step()  # puts them all into one storage
        (other**3).backward(create_graph=True)
        history = mg.fit(loss, POINTS, optimizer, seed=1, compile="llvm", progress=False, epochs=2)
        return everything(leaves, optimizer, history), other.grad.data

    found = run()
    assert calls
    one_by_one(monkeypatch)
    assert found == run()
