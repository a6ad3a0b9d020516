"""Packs: several examples of a batch in one program."""

import functools
import math
import operator
import random
from itertools import chain

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value
from micrograd.compiler import compiled_steps
from micrograd.compiler.backends.shared.batches import in_packs
from micrograd.compiler.backends.shared.choice import backend_of
from micrograd.compiler.calling.boundary import numbers_of
from micrograd.compiler.calling.specialise import Specialised
from micrograd.compiler.guards.structure import Structure
from micrograd.compiler.passes import normalise, packs
from micrograd.compiler.tracing.source import Source
from micrograd.training import rows
from tests.compiler.backends.sparing import is_left_out
from tests.strategies import programs

pytestmark = pytest.mark.slow


@pytest.fixture
def long_stay_whole(monkeypatch):
    """Long dot products are not taken one by one, though they are few."""
    monkeypatch.setattr(normalise, "MANY", 1000)


@pytest.fixture(params=["numpy", "llvm"], scope="module")
def backend(request):
    """Those that have packs: JAX maps over the examples of a batch by itself."""
    return request.param


def values(rng, *shape):
    """Parameters in nested lists."""
    if not shape:
        return Value(rng.gauss(0, 0.7))
    return [values(rng, *shape[1:]) for _ in range(shape[0])]


def leaves_of(nested):
    return [leaf for part in nested for leaf in leaves_of(part)] if isinstance(nested, list) else [nested]


def a_network(rng):
    model = mg.nn.MLP(3, [5, 4], activation="tanh")
    examples = [([rng.gauss(0, 1) for _ in range(3)], rng.randrange(4)) for _ in range(20)]
    return model.parameters(), lambda x, y: mg.losses.cross_entropy(model(x), y), examples


def long_dot_products(rng):
    """Those of the weights with themselves are shared."""
    weights = values(rng, 12, 90)
    examples = [[rng.gauss(0, 1) for _ in range(90)] for _ in range(9)]

    def loss(x):
        hidden = [mg.tanh(mg.dot(row, x) + mg.dot(row, row)) for row in weights]
        return mg.dot(hidden, hidden) + 0.1 * mg.dot(x, x)

    return leaves_of(weights), loss, examples


def attention(rng):
    """Letters that are looked up, a shared table of exponentials, the largest of some numbers, and comparisons."""
    table, query = values(rng, 6, 4), values(rng, 4)
    examples = [([rng.randrange(6) for _ in range(5)], rng.gauss(0, 1)) for _ in range(18)]

    def loss(letters, target):
        wide = [[mg.exp(w) for w in row] for row in table]  # of parameters only
        rows = [mg.take(wide, letter) for letter in letters]
        shares = mg.softmax([mg.dot(query, row) for row in rows])
        mixed = [mg.dot(shares, column) for column in zip(*rows, strict=True)]
        best = mg.maximum(mg.maximum(mixed[0], mixed[1]), target)
        chosen = mg.take([mixed[2] * target, mixed[3], best], letters[0] % 3)
        return (best - target) ** 2 + mg.where(best > target, mixed[2], mixed[3] ** 2) + mg.relu(chosen)

    return [*leaves_of(table), *query], loss, examples


def a_loop(rng):
    """A recurrence of 40 iterations, which is rolled."""
    weights, other = values(rng, 2), Value(0.3)
    examples = [([rng.gauss(0, 1) for _ in range(40)],) for _ in range(11)]

    def loss(numbers):
        state, _ = mg.scan(lambda h, x: (mg.tanh(weights[0] * h + weights[1] * x), None), mg.detach(other), numbers)
        return state * state

    return weights, loss, examples


def several_lengths(rng):
    model = mg.nn.MLP(2, [3, 1], activation="relu")
    examples = [[rng.gauss(0, 1) for _ in range(2 * rng.choice([1, 1, 2, 3]))] for _ in range(23)]

    def loss(numbers):
        return mg.mean([model(numbers[start : start + 2]) ** 2 for start in range(0, len(numbers), 2)])

    return model.parameters(), loss, examples


PROGRAMS = [a_network, long_dot_products, attention, a_loop, several_lengths]


def trained(program, mode, batch_size, epochs=2):
    """What one training run gives: losses, parameters and gradients."""
    random.seed(1)
    parameters, loss, examples = program(random.Random(2))
    optimizer = mg.optim.Adam(parameters, 0.02)
    history = mg.fit(loss, examples, optimizer, epochs=epochs, batch_size=batch_size, seed=4, compile=mode)
    return history.steps, [p.data for p in parameters], [p.grad for p in parameters]


@functools.cache
def trained_eagerly(program, batch_size):
    """The same without the compiler, once for all backends."""
    return trained(program, False, batch_size)


@pytest.mark.unmeasured
@pytest.mark.usefixtures("long_stay_whole")
@pytest.mark.parametrize(
    ("program", "batch_size"),
    [*((program, 7) for program in PROGRAMS), (a_network, 4), (a_network, 18), (several_lengths, 18), (attention, 18)],
)
def test_batches_have_the_losses_and_gradients_of_eager(program, batch_size, backend):
    expected = trained_eagerly(program, batch_size)
    for found, numbers in zip(trained(program, backend, batch_size), expected, strict=True):
        assert found == pytest.approx(numbers, rel=1e-8, abs=1e-11)


@pytest.mark.usefixtures("long_stay_whole")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_pack_computes_what_a_program_of_one_example_does(program):
    parameters, loss, examples = program(random.Random(7))
    structures = [Structure((example if isinstance(example, tuple) else (example,), {})) for example in examples]
    alike = [structure for structure in structures if structure.key == structures[0].key]
    special = Specialised(Source(loss, structures[0], parameters), backend_of("llvm"))
    special.want(range(len(parameters)))
    one, several = special.program(True), special.program(True, examples=4, packing=packs.Packing(4, irregular=True))
    assert (len(one.outputs), len(several.outputs), len(several.seeds)) == (1, 4, 4)
    alone, together = (backend_of("numpy").run_of(made) for made in (one, several))
    shared = [value.data for value in special.values]
    numbers = [numbers_of(alike[position % len(alike)]) for position in range(4)]
    seeds = np.array([1.0, 0.0, -2.0, 1.0])
    singly = [alone(np.array([*shared, *given])) for given in numbers]
    losses, gradients = together(np.array([*shared, *(x for given in numbers for x in given), *seeds]))
    assert losses.tolist() == pytest.approx([float(loss[0]) for loss, _ in singly], rel=1e-12)
    expected = sum(seed * gradient for seed, (_, gradient) in zip(seeds, singly, strict=True))
    assert gradients.tolist() == pytest.approx(expected.tolist(), rel=1e-10, abs=1e-12)


@settings(max_examples=12)
@given(program=programs(), count=st.integers(4, 9), seed=st.integers(0, 100))
def test_random_losses(program, count, seed, backend):
    if is_left_out(backend, program):
        return
    rng = random.Random(seed)
    examples = [[rng.choice([1.0, 1.01, 1.02]) for _ in program.inputs] for _ in range(count)]
    found = []
    for mode in (False, backend):
        weights = list(map(Value, program.inputs))

        def loss(factors, weights=weights):
            return program(*(weight * factor for weight, factor in zip(weights, factors, strict=True)))

        result = loss(examples[0])
        assume(isinstance(result, Value) and result.requires_grad)
        optimizer = mg.optim.SGD(weights, 1e-9)
        try:
            history = mg.fit(loss, examples, optimizer, batch_size=count, seed=0, compile=mode)
        except (ArithmeticError, ValueError) as error:
            found.append((type(error), str(error)))
        else:
            found.append([*history.steps, *(weight.grad for weight in weights)])
    eager, compiled = found
    assert compiled == (eager if isinstance(eager, tuple) else pytest.approx(eager, rel=1e-8, abs=1e-11))


@pytest.mark.parametrize(
    ("programs", "sizes", "order", "expected"),
    [
        ([0], [4], [0], [[0, 0, 1]]),
        ([0] * 4, [4], [0, 1, 2, 3], [[0, 0, 4]]),
        ([0] * 5, [2], [0, 1, 2, 3, 4], [[0, 0, 2], [0, 2, 4], [0, 4, 5]]),
        ([1, 0, 0, 0, 1], [2, 2], [1, 2, 3, 0, 4], [[0, 0, 2], [0, 2, 3], [1, 3, 5]]),
        ([2, 0, 2, 0, 2], [1, 8, 2], [1, 3, 0, 2, 4], [[0, 0, 1], [0, 1, 2], [2, 2, 4], [2, 4, 5]]),
    ],
)
def test_examples_are_put_into_packs_of_those_with_one_program(programs, sizes, order, expected):
    which = [None, *programs]  # example 0 is not in the batch
    found, made = in_packs(range(1, len(which)), which, sizes)
    assert ([example - 1 for example in found], made) == (order, [*chain(*expected)])


def sizes_of(examples, batch_size, loss=None, backend="llvm"):
    """How many examples are in a pack of each program."""
    weight = Value(1.0)
    optimizer = mg.optim.SGD([weight], 0.1)
    loss = loss or (lambda numbers: mg.dot([weight] * len(numbers), numbers) ** 2)
    return compiled_steps(loss, examples, optimizer, None, backend, batch_size)._batches._sizes


def test_packs_are_as_large_as_batches_fill():
    assert sizes_of([[1.0]] * 100, 1) == [1]
    assert sizes_of([[1.0]] * 3, 100) == [3]  # no batch has more than all
    assert sizes_of([[1.0]] * 100, 5) == [5]
    assert sizes_of([[1.0]] * 100, 9) == [5]
    assert sizes_of([[1.0]] * 100, 32) == [8]
    assert sizes_of([[1.0]] * 100, 32, backend="numpy") == [32]
    assert sizes_of([[1.0]] * 100, 100, backend="numpy") == [50]
    assert sizes_of([[1.0]] * 80 + [[1.0, 2.0]] * 15 + [[1.0] * 3] * 5, 40) == [8, 3, 1]


def test_packs_of_large_programs_are_small(monkeypatch):
    monkeypatch.setattr(packs, "_COPIED", 200)
    for length, size in ((8, 8), (16, 5), (24, 3), (40, 2), (60, 1), (300, 1)):
        assert sizes_of([[1.0] * length] * 100, 32) == [size]
    # what examples share is not copied
    weights = [Value(0.1)] * 200
    assert sizes_of([[1.0] * 2] * 100, 32, lambda x: mg.dot(list(map(mg.exp, weights)), weights) * x[0]) == [8]


@pytest.mark.unmeasured
@pytest.mark.parametrize(("size", "expected"), [(6, 8), (24, 1)])
def test_cholesky_factors_of_examples_have_no_packs(size, expected):
    """What they compute of their own numbers is not shared, and the kernels of a pack are slower."""
    weight = Value(0.5)

    def loss(x):
        rows = []
        for i in range(size):
            rows.append([])
            for j in range(i + 1):
                rest = mg.exp(-((x[i] - x[j]) ** 2) * weight) + (i == j) - sum(map(operator.mul, rows[i], rows[j]))
                rows[i].append(mg.sqrt(rest) if i == j else rest / rows[j][j])
        return mg.mean([mg.log(row[-1]) for row in rows])

    assert sizes_of([[0.1 * position for position in range(size)]] * 100, 32, loss) == [expected]


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    ("differ", "size", "backend"), [(True, 1, "llvm"), (False, 4, "llvm"), (True, 4, "numpy"), (False, 4, "numpy")]
)
def test_programs_whose_operations_are_hardly_alike_have_no_packs_natively(differ, size, backend):
    """In a pack each would be a kernel, and there may be many thousands. NumPy has a call for each in any case."""
    choose = random.Random(5).choice if differ else lambda numbers: numbers[-1]
    operations = [[choose(range(number + 2)) for _ in "abc"] for number in range(150)]

    def loss(x):
        numbers = [Value(0.3), x]
        for a, b, c in operations:
            numbers.append(mg.sin(numbers[a] + numbers[b]) * numbers[c])
        return mg.mean(numbers)

    assert sizes_of([0.2] * 100, 4, loss, backend) == [size]


@pytest.mark.parametrize(("read", "loss", "slope"), [(lambda w: w * w, 9.0, 6.0), (lambda w: w, 3.0, 1.0)])
def test_a_loss_that_does_not_depend_on_the_example_stays_as_it_is(read, loss, slope, backend):
    weight = Value(3.0)
    optimizer = mg.optim.SGD([weight], 0.1)
    history = mg.fit(lambda x: read(weight), [1.0] * 6, optimizer, batch_size=6, compile=backend)
    assert history.steps == [loss]
    assert weight.grad == pytest.approx(slope, rel=1e-14)


def test_one_example_that_fails_fails_as_it_does_eagerly(backend):
    """It is named, though others are in its pack."""
    examples = [1.0, 2.0, 4.0, 0.0, 3.0]
    for read in (lambda w, x: mg.log(w * x), lambda w, x: 1 / (w * x), lambda w, x: mg.exp(1000 * w / (x + 1))):
        messages = []
        for mode in (False, backend):
            weight = Value(1.0)
            optimizer = mg.optim.SGD([weight], 0.1)
            with pytest.raises((ArithmeticError, ValueError)) as raised:
                mg.fit(lambda x, w=weight, r=read: r(w, x), examples, optimizer, batch_size=5, seed=1, compile=mode)
            messages.append((type(raised.value), str(raised.value)))
            assert (weight.data, optimizer.steps) == (1.0, 0)
        assert messages[0] == messages[1]


def test_where_no_example_is_left_nothing_is_added(backend):
    """The gradient of the root is infinite at 0, which is no example of the last batch."""
    weight = Value(2.0)
    optimizer = mg.optim.SGD([weight], 0.0)
    examples = [float(x) for x in range(1, 7)]
    history = mg.fit(lambda x: mg.sqrt(weight * x), examples, optimizer, batch_size=5, seed=2, compile=backend)
    order = random.Random(2).sample(range(6), 6)
    assert history.steps[1] == math.sqrt(2.0 * examples[order[5]])
    assert weight.grad == pytest.approx(0.5 * examples[order[5]] / history.steps[1], rel=1e-14)


def test_a_primitive_in_python_runs_in_packs(backend):
    double = mg.primitive("doubled_in_python", "d", lambda x: 2.0 * x, lambda g, out, x: 2.0 * g, replace=True)
    weight = Value(1.5)
    optimizer = mg.optim.SGD([weight], 0.0)
    history = mg.fit(lambda x: double(weight * x), [1.0, 2.0, 3.0, 4.0, 5.0], optimizer, batch_size=5, compile=backend)
    assert history.steps == [pytest.approx(2 * 1.5 * 3)]
    assert weight.grad == pytest.approx(6.0)


@pytest.mark.filterwarnings("ignore:the loss still fell", "ignore:Got `batch_size` ")
@pytest.mark.unmeasured
def test_what_an_estimator_learns_does_not_depend_on_what_was_trained_before():
    """A network that is kept for small batches, whose sums come in another order, is not taken for large ones."""
    pytest.importorskip("sklearn")
    from micrograd.estimators import MLPRegressor  # scikit-learn is an extra

    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(200, 10))
    targets = inputs[:, 0] - inputs[:, 1] * inputs[:, 2]
    found = {}
    for sizes in (((100, 32),), ((100, 1), (100, 32)), ((2, 32), (100, 32)), ((200, 5), (100, 1), (200, 5))):
        rows._networks.clear()
        for count, batch_size in sizes:
            estimator = MLPRegressor((20,), max_iter=5, batch_size=batch_size, random_state=0)
            learned = estimator.fit(inputs[:count], targets[:count]).predict(inputs).tolist()
            assert found.setdefault((count, batch_size), learned) == learned
