"""fit with compile=True against fit without."""

import random
import sys
from unittest.mock import Mock

import numpy as np
import pytest

import micrograd as mg
from micrograd import Value
from micrograd.compiler.training.update import update_of
from tests.faults import HandlerError

pytestmark = pytest.mark.slow


def network(make=lambda parameters: mg.optim.Adam(parameters, 0.02)):
    """A small classifier, its data and its optimiser, the same ones each time."""
    rng = random.Random(1)
    random.seed(1)
    model = mg.nn.MLP(3, [5, 4], activation="tanh")
    data = [([rng.gauss(0, 1) for _ in range(3)], rng.randrange(4)) for _ in range(23)]
    return model, data, make(model.parameters())


def loss_of(model):
    return lambda x, target: mg.losses.cross_entropy(model(x), target)


OPTIMIZERS = {
    "sgd": lambda p: mg.optim.SGD(p, mg.optim.cosine(0.1, 0.01, 60)),
    "nesterov": lambda p: mg.optim.SGD(p, 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda p: mg.optim.Adam(p, 0.02),
    "adamw": lambda p: mg.optim.AdamW(p, mg.optim.warmup(0.02, 10)),
}


@pytest.mark.unmeasured
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_same_losses_over_a_hundred_steps(name, backend):
    runs = []
    for mode in (False, backend):
        model, data, optimizer = network(OPTIMIZERS[name])
        history = mg.fit(loss_of(model), data, optimizer, epochs=17, batch_size=4, seed=3, compile=mode)
        grads = [p.grad for p in model.parameters()]
        runs.append((history, list(model.state_dict().values()), grads, optimizer))
    (eager, numbers, grads, optimizer), (compiled, found, found_grads, other) = runs
    assert len(compiled.steps) == 17 * 6
    assert compiled.steps == pytest.approx(eager.steps, rel=1e-9)
    assert compiled.epochs == pytest.approx(eager.epochs, rel=1e-9)
    assert found == pytest.approx(numbers, rel=1e-8)
    assert found_grads == pytest.approx(grads, rel=1e-6, abs=1e-12)
    assert (other.steps, other.rate) == (optimizer.steps, optimizer.rate)
    assert [list(state) for state in other._state] == [
        pytest.approx(list(s), rel=1e-7, abs=1e-14) for s in optimizer._state
    ]


@pytest.mark.unmeasured
def test_a_run_goes_on_where_the_last_one_ended(backend):
    model, data, optimizer = network()
    for mode in (False, backend, False, backend):
        history = mg.fit(loss_of(model), data, optimizer, epochs=2, batch_size=5, seed=3, compile=mode)
    model, data, optimizer = network()
    for _ in range(4):
        expected = mg.fit(loss_of(model), data, optimizer, epochs=2, batch_size=5, seed=3)
    assert history.steps == pytest.approx(expected.steps, rel=1e-9)


@pytest.mark.unmeasured
def test_examples_of_several_lengths(backend):
    def run(mode):
        rng = random.Random(2)
        weights = [Value(rng.gauss(0, 1)) for _ in range(2)]
        data = [[rng.gauss(0, 1) for _ in range(length)] for length in (1, 2, 3, 2, 5, 1, 3)]

        def loss(*xs):
            return sum(mg.tanh(weights[0] * x + weights[1]) ** 2 for x in xs) / len(xs)

        optimizer = mg.optim.SGD(weights, 0.1, momentum=0.5)
        return mg.fit(loss, list(map(tuple, data)), optimizer, epochs=5, batch_size=2, seed=1, compile=mode).steps

    assert run(backend) == pytest.approx(run(False), rel=1e-9)


def test_examples_without_numbers(backend):
    def run(mode):
        w = Value(1.0)
        weights = {"up": 2.0, "down": -3.0}

        def loss(*names):
            return sum((w * weights[name] - 1.0) ** 2 for name in names) + w * w

        optimizer = mg.optim.SGD([w], 0.01)
        return mg.fit(loss, ["up", "down", (), ("up", "down")], optimizer, epochs=3, batch_size=2, seed=1, compile=mode)

    assert run(backend).steps == pytest.approx(run(False).steps, rel=1e-12)


def test_values_that_are_no_parameters_lie_apart_from_them(backend):
    def run(mode):
        table = [Value(0.5 * row, requires_grad=False) for row in range(5)]
        extra = Value(3.0)  # requires a gradient, and is not trained
        weights = [Value(0.1), Value(0.2)]

        def loss(index, x):
            return (weights[0] * mg.take(table, index) + weights[1] * x * extra - 1.0) ** 2

        data = [(index, 0.3 * index) for index in range(5)]
        optimizer = mg.optim.Adam(weights, 0.05)
        history = mg.fit(loss, data, optimizer, epochs=4, batch_size=2, seed=1, compile=mode)
        return history.steps + [w.data for w in (*weights, *table, extra)]

    assert run(backend) == pytest.approx(run(False), rel=1e-9)


def test_frozen_parameters_lose_the_gradients_of_before_as_eagerly(backend):
    for compiled in (False, backend):
        w, u, apart = Value(0.5), Value(2.0), Value(1.0)
        w.grad, u.grad, apart.grad = 3.0, 4.0, 5.0
        u.requires_grad = False
        mg.fit(lambda x, w=w, u=u: (w * x - u) ** 2, [1.0], mg.optim.SGD([w, u], 0.25), compile=compiled)
        assert [w.grad, u.grad, apart.grad, u.data] == [-3.0, 0.0, 5.0, 2.0]


@pytest.mark.unmeasured
def test_values_are_up_to_date_in_callbacks_and_when_it_ends(backend):
    model, data, optimizer = network()
    seen = []

    def callback(history):
        seen.append(list(model.state_dict().values()))
        if len(seen) == 3:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mg.fit(loss_of(model), data, optimizer, epochs=9, batch_size=23, seed=0, compile=backend, callback=callback)
    assert len({tuple(numbers) for numbers in seen}) == 3
    assert list(model.state_dict().values()) == seen[-1]
    assert optimizer.steps == 3


@pytest.mark.unmeasured
def test_ctrl_c_keeps_the_last_finished_step(backend):
    model, data, optimizer = network()

    def callback(history):
        if len(history.epochs) == 2:
            raise KeyboardInterrupt

    history = mg.fit(loss_of(model), data, optimizer, epochs=9, seed=0, compile=backend, callback=callback)
    assert history.interrupted
    assert optimizer.steps == len(history.steps) == 46
    model2, data, optimizer = network()
    mg.fit(loss_of(model2), data, optimizer, epochs=2, seed=0)
    assert list(model.state_dict().values()) == pytest.approx(list(model2.state_dict().values()), rel=1e-8)


def test_a_loss_that_fails_raises_what_eager_raises(backend):
    messages = []
    for mode in (False, backend):
        w = Value(1.0, label="w")
        with pytest.raises(ValueError, match="log") as error:
            mg.fit(
                lambda x, w=w: mg.log(w * x), [1.0, 2.0, 0.5], mg.optim.SGD([w], 0.9), epochs=9, seed=0, compile=mode
            )
        messages.append((str(error.value), w.data))
    assert messages[0][0] == messages[1][0]
    assert messages[0][1] == pytest.approx(messages[1][1])


@pytest.mark.parametrize("losses", [(np.inf, -np.inf), (-np.inf, 1.0, np.inf), (1.5e308, 1.5e308)])
def test_losses_that_have_no_sum_are_spoken_of_as_eagerly(losses, backend):
    found = []
    for mode in (False, backend):
        w = Value(1.0)
        try:
            history = mg.fit(
                lambda x, w=w: x + 0.0 * w,
                list(losses),
                mg.optim.SGD([w], 0.1),
                batch_size=len(losses),
                seed=0,
                compile=mode,
            )
        except ArithmeticError as error:
            found.append((str(error), w.data))
        else:
            found.append((history.steps, w.data))
    assert found[0] == found[1]


def test_an_update_that_overflows_raises_and_changes_nothing(backend):
    w = Value(1e200)
    with pytest.raises(ArithmeticError):
        mg.fit(lambda x: w * w * x, [1e100], mg.optim.SGD([w], 1e30), compile=backend)
    assert w.data == 1e200


def test_an_update_that_overflows_where_the_loss_does_not_raises_what_eager_raises(backend):
    messages = []
    for mode in (False, backend):
        w = Value(1.0, label="w")
        with pytest.raises(ArithmeticError) as error:
            mg.fit(lambda x, w=w: w * x, [1e200], mg.optim.SGD([w], 1e200), compile=mode)
        assert w.data == 1.0
        messages.append(str(error.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("result", [3.0, [1.0], None])
def test_a_loss_that_is_no_value_is_refused(result, backend):
    w = Value(1.0)
    for mode in (False, backend):
        with pytest.raises(TypeError, match=f"loss must return a Value, not {type(result).__name__}"):
            mg.fit(lambda x: result, [1.0], mg.optim.SGD([w], 0.1), compile=mode)


def test_where_nothing_requires_a_gradient_there_is_nothing_to_train(backend):
    w = Value(1.0)
    optimizer = mg.optim.SGD([w], 0.1)
    w.requires_grad = False
    with pytest.raises(ValueError, match="no parameter requires a gradient: there is nothing to train"):
        mg.fit(lambda x: w * x, [1.0], optimizer, compile=backend)


CONSTANT_LOSSES = {
    "of floor": lambda w, x: mg.floor(w * x),
    "detached": lambda w, x: mg.detach(w) * x,
    "of sign": lambda w, x: mg.sign(w) * x + mg.floor(w),
    "largest of two": lambda w, x: mg.maximum(mg.floor(w), mg.detach(w)) + 0,
}


@pytest.mark.parametrize("name", CONSTANT_LOSSES)
def test_a_loss_that_no_gradient_reaches_raises_what_eager_raises(name, backend):
    messages = []
    for mode in (False, backend):
        w = Value(0.7)
        optimizer = mg.optim.SGD([w], 0.1)
        with pytest.raises(ValueError, match="requires no gradient: it is a constant") as caught:
            mg.fit(lambda x, w=w: CONSTANT_LOSSES[name](w, x), [0.5, 1.2], optimizer, seed=0, compile=mode)
        messages.append((str(caught.value), w.data, w.grad, optimizer.steps))
    assert messages[0] == messages[1]


def test_steps_before_a_loss_that_no_gradient_reaches_stay(backend):
    found = []
    for mode in (False, backend):
        w = Value(0.7)
        optimizer = mg.optim.SGD([w], 0.1)

        def loss(*xs, w=w):
            return w * xs[0] if len(xs) == 1 else mg.floor(w) * xs[1]

        with pytest.raises(ValueError, match="requires no gradient"):
            mg.fit(loss, [(0.5,), (0.25,), (1.0, 2.0)], optimizer, batch_size=1, seed=0, compile=mode)
        found.append((w.data, w.grad, optimizer.steps))
    assert found[0] == found[1]
    assert found[0][2] > 0


@pytest.mark.parametrize(
    "loss",
    [
        lambda w, other, x: (w - w) * x,
        lambda w, other, x: 0.0 * w + x,
        lambda w, other, x: w**0,
        lambda w, other, x: mg.where(x > 1, x, w),
        lambda w, other, x: other * x,
    ],
)
def test_a_loss_whose_gradient_is_zero_trains_as_eagerly(loss, backend):
    found = []
    for mode in (False, backend):
        w, other = Value(0.7), Value(0.3)
        optimizer = mg.optim.SGD([w], 0.1)
        mg.fit(lambda x, w=w, other=other: loss(w, other, x), [0.5, 1.2], optimizer, seed=0, compile=mode)
        found.append((w.data, w.grad))
    assert found[0] == found[1]


def test_what_a_signal_handler_raises_inside_numpy_is_raised():
    """NumPy replaces what is raised while it compares structured arrays, as np.unique does with an axis."""

    def run(stop=None):
        seen = set()

        def trace(frame, event, argument):
            position = frame.f_globals.get("__name__", ""), frame.f_code.co_name
            if position[0].startswith("numpy.") and position not in seen:
                seen.add(position)
                if position == stop:
                    raise HandlerError

        w, data = Value(0.7), [0.5, 1.2, 0.1]
        optimizer = mg.optim.SGD([w], 0.1)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            mg.fit(lambda x: mg.maximum(mg.exp(w * x), x) ** 2.5, data, optimizer, progress=False, compile="numpy")
        finally:
            sys.settrace(before)
        return seen

    positions = run()
    assert len(positions) > 10
    for position in sorted(positions):
        with pytest.raises(HandlerError):
            run(position)


@pytest.mark.unmeasured
def test_an_optimizer_of_ones_own_that_hands_its_state_around(backend):
    class Turning(mg.optim.Optimizer):
        states = 3

        def update(self, parameter, gradient, state, rate):
            last, before, same = state
            return parameter - rate * (gradient + last + 2 * before), (before, last + gradient, same)

    runs = []
    for mode in (False, backend):
        model, data, optimizer = network(lambda parameters: Turning(parameters, 0.01))
        history = mg.fit(loss_of(model), data, optimizer, epochs=3, batch_size=7, seed=3, compile=mode)
        runs.append((history.steps, [list(state) for state in optimizer._state]))
    assert runs[1][0] == pytest.approx(runs[0][0], rel=1e-9)
    assert [s for state in runs[1][1] for s in state] == pytest.approx([s for state in runs[0][1] for s in state])


def test_an_optimizer_with_a_step_of_its_own_is_refused():
    class Own(mg.optim.SGD):
        def step(self):
            pass

    w = Value(1.0)
    with pytest.raises(TypeError, match="step of its own"):
        mg.fit(lambda x: w * x, [1.0], Own([w], 0.1), compile=True)


def test_losses_take_targets_that_are_not_known_yet(backend):
    rng = random.Random(4)
    w = [Value(rng.gauss(0, 1)) for _ in range(3)]
    losses = {
        "hinge": (lambda x, y: mg.losses.hinge(mg.dot(w, x), y), [-1, 1]),
        "binary": (lambda x, y: mg.losses.binary_cross_entropy(mg.dot(w, x), y), [0.0, 1.0, 0.25]),
        "squared": (lambda x, y: mg.losses.mean_squared_error(mg.dot(w, x), y), [0.5, -2.0]),
        "cross": (lambda x, y: mg.losses.cross_entropy([wi * xi for wi, xi in zip(w, x, strict=True)], y), [0, 1, 2]),
    }
    for loss, targets in losses.values():
        called = Mock(side_effect=loss)
        fast = mg.compile(called, backend=backend)
        for target in targets:
            x = [rng.gauss(0, 2) for _ in w]
            assert fast(x, target).data == pytest.approx(loss(x, target).data, rel=1e-12)
        assert called.call_count == 1  # traced, and never run in the place of the program


def test_what_a_callback_changes_counts(backend):
    def change(w, u, k, optimizer):
        def callback(history):
            if len(history.epochs) == 2:
                w.data, k.data = 3.0, 0.5
            if len(history.epochs) == 4:
                u.requires_grad = False
            if len(history.epochs) == 6:
                optimizer.momentum = 0.1

        return callback

    runs = []
    for mode in (False, backend):
        w, u, k = Value(0.5), Value(1.0), Value(2.0, requires_grad=False)
        optimizer = mg.optim.SGD([w, u], 0.02, momentum=0.9)
        data = [(1.0, 2.0), (0.5, -1.0), (-1.5, 0.25)]
        history = mg.fit(
            lambda x, y, w=w, u=u, k=k: (w * x + u * k - y) ** 2,
            data,
            optimizer,
            epochs=9,
            seed=0,
            callback=change(w, u, k, optimizer),
            compile=mode,
        )
        runs.append([*history.steps, w.data, u.data, k.data])
    assert runs[1] == pytest.approx(runs[0], rel=1e-9)


def _doubled(array):
    array *= 2.0


def _set_data(value):
    value.data = -2.0


EXAMPLES = {  # how they are made, and what a callback does to the first of them
    "lists": (lambda: [[1.0, 2.0], [0.5, -1.0]], lambda example: example.reverse()),
    "of another length": (lambda: [[1.0, 2.0], [0.5, -1.0]], lambda example: example.append(0.25)),
    "in tuples and dicts": (lambda: [({"x": [1.0]},), ({"x": [2.0]},)], lambda example: example[0]["x"].append(3.0)),
    "of other ints": (lambda: [[1, 2], [3, 4]], lambda example: example.insert(0, example.pop())),
    "rows": (lambda: np.array([[1.0, 2.0], [0.5, -1.0]]), _doubled),
    "columns": (lambda: list(np.array([[1.0, 2.0], [0.5, -1.0]]).T), _doubled),
    "arrays of objects": (lambda: [np.array([1.0, 2.0], dtype=object), np.ones(2)], _doubled),
    "Values": (lambda: [[Value(1.0, requires_grad=False)], [2.0]], lambda example: _set_data(example[0])),
    "that stay": (lambda: [[1.0, 2.0], [0.5, -1.0]], lambda example: None),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_examples_that_a_callback_changes_in_position_are_read_again(kind, backend):
    make, change = EXAMPLES[kind]

    def trained(mode):
        w, examples = Value(0.5), make()

        def loss(example):
            numbers = example["x"] if isinstance(example, dict) else example
            return (sum(w**position * number for position, number in enumerate(numbers, 1)) - 1.0) ** 2

        def callback(history):
            if len(history.epochs) != 2:
                change(examples[0])

        optimizer = mg.optim.SGD([w], 0.01)
        history = mg.fit(loss, examples, optimizer, epochs=4, seed=0, callback=callback, compile=mode)
        return [*history.steps, w.data]

    assert trained(backend) == pytest.approx(trained(False), rel=1e-9)


def test_gradients_that_would_be_lost_are_refused(backend):
    w, u = Value(1.0), Value(2.0)
    with pytest.raises(ValueError, match="example 1 holds a Value that requires a gradient"):
        mg.fit(lambda x: (x * u - 1) ** 2, [1.0, w], mg.optim.SGD([w, u], 0.1), compile=backend)
    double = w * 2
    with pytest.raises(ValueError, match="computed outside of it"):
        mg.fit(lambda x: (double * x - 1) ** 2, [1.0], mg.optim.SGD([w], 0.1), compile=backend)
    assert (w.data, u.data) == (1.0, 2.0)


@pytest.mark.unmeasured
def test_targets_that_are_none_are_refused_as_they_are_without_the_compiler(backend):
    w = [Value(0.1), Value(0.5)]
    fast = mg.compile(lambda t: mg.losses.cross_entropy(w, t), backend=backend)
    with pytest.raises(ValueError, match="target -1 is not the index"):
        fast(-1)
    with pytest.raises(ValueError, match="target 2 is not the index"):
        fast(2)
    for target in (0, 2, -2, 0.5):
        message = f"target of the hinge loss must be the plain number -1 or 1, not {target}"
        with pytest.raises(ValueError, match=message):
            mg.compile(lambda t: mg.losses.hinge(w[0], t), backend=backend)(target)
    for target in (2, 1.5, -0.5, -1):
        with pytest.raises(ValueError, match=f"must be a plain number from 0 to 1, not {target}"):
            mg.compile(lambda t: mg.losses.binary_cross_entropy(w[0], t), backend=backend)(target)
    with pytest.raises(TypeError, match=r"an index must be an int, not float: 0\.5"):
        mg.compile(lambda i: mg.take(w, i), backend=backend)(0.5)


def test_what_is_the_same_for_all_parameters_is_computed_once():
    parameters = [Value(float(number)) for number in range(5)]
    optimizer = mg.optim.Adam(parameters, 0.1)
    update = update_of(optimizer, np.array(optimizer._state, dtype=float))
    assert [position.stop - position.start for position in update.states] == [5, 5, 1]
    positions = update.parameters, update.gradients, update.last_gradients, update.current, update.next
    assert [position.stop - position.start for position in positions] == [5, 5, 5, 5 + 11, 5 + 11]
    assert update.current.start == 0
    *kernels, check = update.program.kernels
    assert (check.terms, check.columns, check.target.base) == (16, 1, update.check)
    columns = [(kernel.kind, kernel.columns) for kernel in kernels]
    assert {columns for kind, columns in columns if kind == "pow"} == {1}
    assert columns.count(("sum", 1)) == 3
    assert [columns for kind, columns in columns if kind in ("div", "sqrt")] == [1, 1, 1, 5, 5]
    assert "copy" not in dict(columns)  # all is computed where it is kept
    program = update.program
    assert {kernel.rows for kernel in program.kernels} == {1}
    assert len(program.inputs) == len(program.seeds) == 0
    assert program.outputs.tolist() == [*range(update.next.start, update.next.stop)]
    assert len(range(program.size)[program.gradients]) == 0


def test_a_state_that_differs_between_parameters_is_a_number_for_each():
    class Counting(mg.optim.Optimizer):
        states = 2

        def update(self, parameter, gradient, state, rate):
            count, other = state
            return parameter - rate * gradient / (1 + count), (count + 1, other + count)

    optimizer = Counting([Value(float(number)) for number in range(3)], 0.1)
    for states, widths in (
        ([[0, 0], [0, 0], [0, 0]], [1, 1]),
        ([[0, 0], [1, 0], [0, 0]], [3, 3]),
        ([[0, 0], [0, 0], [0, 1]], [1, 3]),
    ):
        update = update_of(optimizer, np.array(states, dtype=float))
        assert [position.stop - position.start for position in update.states] == widths
    with pytest.raises(AttributeError):
        update.rate = 0


@pytest.mark.unmeasured
def test_many_steps_with_states_that_differ_are_those_of_the_optimizer(backend):
    runs = []
    for mode in (False, backend):
        model, data, optimizer = network()
        mg.fit(loss_of(model), data, optimizer, epochs=1, batch_size=5, seed=3)
        optimizer._state[0] = (*optimizer._state[0][:2], 7.0)
        history = mg.fit(loss_of(model), data, optimizer, epochs=2, batch_size=5, seed=3, compile=mode)
        runs.append((history.steps, [state[2] for state in optimizer._state]))
    assert runs[1][0] == pytest.approx(runs[0][0], rel=1e-9)
    assert runs[1][1] == runs[0][1]


def test_two_states_that_change_positions(backend):
    class Swapping(mg.optim.Optimizer):
        states = 2

        def update(self, parameter, gradient, state, rate):
            first, second = state
            return parameter - rate * gradient * first, (second, first)

    def run(mode):
        w = Value(2.0)
        optimizer = Swapping([w], 0.1)
        optimizer._state[0] = (1.0, -3.0)
        history = mg.fit(lambda x: (w * x - 1) ** 2, [1.0, 2.0, 0.5], optimizer, epochs=1, seed=0, compile=mode)
        return [*history.steps, w.data, *optimizer._state[0]]

    assert run(backend) == pytest.approx(run(False), rel=1e-12)
    assert run(backend)[-2:] == [-3.0, 1.0]


def test_an_error_before_the_first_step_changes_nothing(backend):
    def schedule(step):
        raise LookupError("no rate")

    w = Value(0.5)
    w.grad = 3.0
    with pytest.raises(LookupError, match="no rate"):
        mg.fit(lambda x: (w * x) ** 2, [1.0], mg.optim.SGD([w], schedule), compile=backend)
    assert (w.data, w.grad) == (0.5, 3.0)


@pytest.mark.unmeasured
def test_programs_are_made_once_where_nothing_but_numbers_changes(backend):
    model, data, optimizer = network()
    loss = Mock(side_effect=loss_of(model))
    mg.fit(loss, data, optimizer, epochs=4, batch_size=5, seed=3, compile=backend, callback=lambda history: None)
    assert loss.call_count == 1


def test_ctrl_c_inside_of_a_primitive_of_ones_own_ends_the_run(backend):
    calls = []

    def forward(x):
        calls.append(x)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return 2 * x

    own = mg.primitive("interrupted_once", "i", forward, lambda g, out, x: 2 * g, replace=True)
    w = Value(1.0)
    optimizer = mg.optim.SGD([w], 0.01)
    history = mg.fit(lambda x: own(w * x) ** 2, [1.0, 2.0], optimizer, epochs=9, batch_size=1, compile=backend)
    assert history.interrupted
    assert len(history.steps) < 5
