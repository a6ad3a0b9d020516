"""The life of a model, step by step in any order, against a reference of floats.

A small network is called and backpropagated through, eagerly and compiled, alone and under no_grad; it is trained by
hand and by fit, frozen and freed, set, replaced, saved, loaded and copied, and errors come in between. The reference
does the same with plain floats, formulas written out by hand, and nothing of micrograd. After each step all that a
user can see must agree: numbers, gradients, what is frozen, and the optimiser's steps and rate.
"""

import json
import math
import pickle
import random
from cmath import tanh
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import micrograd as mg
from micrograd import Value
from tests.machines import machine_settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("own_cache"),
    pytest.mark.filterwarnings("ignore:.*was traced again at each:RuntimeWarning"),
]

NUMBERS = st.sampled_from([-1.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.0])
POINT = st.tuples(NUMBERS, NUMBERS)
POINTS = st.lists(POINT, min_size=1, max_size=3)
TOO_FAR = (1.0, 1e200)  # a point whose loss raises an OverflowError
BACKENDS = st.sampled_from([None, "numpy", "llvm"])
LIVES = POSITIONS = st.integers(0, 7)
RATES = st.sampled_from([0.0, 0.0625, 0.125, lambda step: 0.125 / (1 + step)])
SGD = [
    (mg.optim.SGD, {}),
    (mg.optim.SGD, {"weight_decay": 0.25}),
    (mg.optim.SGD, {"momentum": 0.5}),
    (mg.optim.SGD, {"momentum": 0.5, "nesterov": True, "weight_decay": 0.125}),
]
# An epsilon far above the rounding of gradients, which would else be scaled up to whole steps
USUAL = {"betas": (0.5, 0.75), "epsilon": 0.0625}
ADAM = [
    (mg.optim.Adam, USUAL),
    (mg.optim.Adam, {**USUAL, "weight_decay": 0.125}),
    (mg.optim.AdamW, {**USUAL, "weight_decay": 0.125}),
]
OPTIMIZERS = st.sampled_from(SGD + ADAM)


# The reference


def loss_and_slopes(numbers, points):
    """The mean loss of points, and its derivatives by the numbers; these may be complex."""
    w0, b0, w1, b1, v0, v1, c, scale = numbers
    loss, slopes = 0.0, [0.0] * 8
    for x, y in points:
        h0, h1 = tanh(w0 * x + b0), tanh(w1 * x + b1)
        out = v0 * h0 + v1 * h1 + c
        error = scale * out - y
        loss += (error * error + scale * scale / 8) / len(points)
        up = 2 * error * scale
        up0, up1 = up * v0 * (1 - h0 * h0), up * v1 * (1 - h1 * h1)
        terms = [up0 * x, up0, up1 * x, up1, up * h0, up * h1, up, 2 * error * out + scale / 4]
        slopes = [slope + term / len(points) for slope, term in zip(slopes, terms, strict=True)]
    return loss, slopes


@dataclass(eq=False)
class Leaf:
    """A parameter, and what an optimiser keeps for it."""

    number: float
    grad: float = 0.0
    free: bool = True
    first: float = 0.0  # the velocity of SGD, or Adam's mean gradient
    second: float = 0.0  # Adam's mean square
    count: int = 0  # how many gradients are in them


class Reference:
    """A model and its optimiser, in plain floats."""

    def __init__(self, numbers):
        self.leaves = [Leaf(number) for number in numbers]
        self.waiting = []  # slopes of losses that are backpropagated from later

    def optimize(self, positions, kind, how, rate):
        self.trained = [self.leaves[position] for position in positions]
        for leaf in self.trained:
            leaf.first, leaf.second, leaf.count = 0.0, 0.0, 0
        self.kind, self.how, self.steps, self.rate = kind.__name__, how, 0, None
        self.learning_rate = rate if callable(rate) else lambda step: rate

    def loss(self, points):
        """The loss, and its slope beside each leaf."""
        loss, slopes = loss_and_slopes([leaf.number for leaf in self.leaves], points)
        return loss.real, [(leaf, slope.real) for leaf, slope in zip(self.leaves, slopes, strict=True)]

    def penalised(self, points):
        """The loss plus an eighth of the squares of its slopes. A complex step gives the derivative of these."""
        loss, slopes = self.loss(points)
        along = [slope if leaf.free else 0.0 for leaf, slope in slopes]
        moved = [leaf.number + 1e-30j * step for leaf, step in zip(self.leaves, along, strict=True)]
        bends = [bend.imag / 1e-30 for bend in loss_and_slopes(moved, points)[1]]
        total = loss + sum(slope * slope for slope in along) / 8
        return total, [(leaf, slope + bend / 4) for (leaf, slope), bend in zip(slopes, bends, strict=True)]

    def backward(self, slopes, gradient=1.0):
        for leaf, slope in slopes:
            leaf.grad += gradient * slope if leaf.free else 0.0

    def step(self):
        self.rate, self.steps = self.learning_rate(self.steps), self.steps + 1
        for leaf in self.trained:
            if leaf.free:
                self.update(leaf, self.rate, **self.how)

    def update(self, leaf, rate, momentum=0.0, nesterov=False, weight_decay=0.0, betas=None, epsilon=None):
        gradient = leaf.grad
        if self.kind == "AdamW":
            leaf.number -= rate * weight_decay * leaf.number
        else:
            gradient += weight_decay * leaf.number
        if self.kind == "SGD":
            leaf.first = momentum * leaf.first + gradient
            leaf.number -= rate * (gradient + momentum * leaf.first if nesterov else leaf.first)
            return
        leaf.count += 1
        leaf.first = betas[0] * leaf.first + (1 - betas[0]) * gradient
        leaf.second = betas[1] * leaf.second + (1 - betas[1]) * gradient**2
        mean, square = leaf.first / (1 - betas[0] ** leaf.count), leaf.second / (1 - betas[1] ** leaf.count)
        leaf.number -= rate * mean / (math.sqrt(square) + epsilon)

    def fit(self, data, epochs, batch_size, seed, only_trained, after_first):
        """The mean loss of each step, and the numbers after each epoch. It ends before a batch with a bad point."""
        shuffler, losses, seen = random.Random(seed), [], []
        for epoch in range(epochs):
            order = [data[position] for position in shuffler.sample(range(len(data)), len(data))]
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                if TOO_FAR in batch:
                    return losses, seen
                for leaf in self.trained:
                    leaf.grad = 0.0
                loss, slopes = self.loss(batch)
                self.backward([pair for pair in slopes if pair[0] in self.trained or not only_trained])
                self.step()
                losses.append(loss)
            seen.append([leaf.number for leaf in self.leaves])
            if epoch == 0:
                after_first(self)
        return losses, seen

    def is_tame(self):
        """Whether all is so small that rounding stays small."""
        return all(abs(leaf.number) < 8 and abs(leaf.grad) < 1000 for leaf in {*self.leaves, *self.trained})


# What is tested


class Model(mg.nn.MLP):
    """A network, and a number that its loss has twice."""

    def __init__(self):
        super().__init__(1, [2, 1], activation="tanh")
        self.scale = Value(1.0)
        numbers = [0.5, -0.25, -1.0, 0.125, 1.0, 0.5, -0.5, 1.0]
        self.load_state_dict(dict(zip(self.state_dict(), numbers, strict=True)))

    def __call__(self, x):
        return self.scale * super().__call__([x])


class Life:
    """A model, what trains it, its compiled functions, and the reference for it."""

    def __init__(self, model, reference):
        self.model, self.reference = model, reference
        self.saved = model.state_dict()
        self.waiting = []
        self.compiled = {}

        def loss(x, y):
            return (model(x) - y) ** 2 + model.scale**2 / 8 + 0.0 * mg.exp(y)

        def mean_loss(points):
            return mg.mean([loss(x, y) for x, y in points])

        def penalised(points):
            total = mean_loss(points)
            free = [parameter for parameter in model.parameters() if parameter.requires_grad]
            return total + sum(slope**2 for slope in mg.gradient(total, free, create_graph=True)) / 8

        self.loss, self.functions = loss, {"mean_loss": mean_loss, "penalised": penalised}

    def function(self, name, backend):
        if backend is None:
            return self.functions[name]
        if (name, backend) not in self.compiled:
            self.compiled[name, backend] = mg.compile(self.functions[name], backend=backend)
        return self.compiled[name, backend]

    def optimize(self, positions, kind, how, rate):
        parameters = self.model.parameters()
        self.optimizer = kind([parameters[position] for position in positions], rate, **how)
        self.reference.optimize(positions, kind, how, rate)

    def position(self, number):
        """A position among the parameters: the leaf of the reference, and the Value."""
        return self.reference.leaves[number % 8], self.model.parameters()[number % 8]

    def is_free(self):
        """Whether the loss has a gradient."""
        return any(leaf.free for leaf in self.reference.leaves)

    @contextmanager
    def frozen(self, positions):
        """Some parameters are frozen inside."""
        meanwhile = [pair for pair in map(self.position, positions) if pair[0].free]
        for leaf, value in meanwhile:
            leaf.free = value.requires_grad = False
        yield
        for leaf, value in meanwhile:
            leaf.free = value.requires_grad = True

    def zero_grad(self):
        self.model.zero_grad()
        self.optimizer.zero_grad()
        for leaf in (*self.reference.leaves, *self.reference.trained):
            leaf.grad = 0.0

    def check(self):
        reference, optimizer = self.reference, self.optimizer
        parameters = self.model.parameters()
        for leaves, values in ((reference.leaves, parameters), (reference.trained, optimizer.parameters)):
            agree([value.data for value in values], [leaf.number for leaf in leaves])
            agree([number(value.grad) for value in values], [leaf.grad for leaf in leaves])
            assert [value.requires_grad for value in values] == [leaf.free for leaf in leaves]
        assert list(map(parameters.__contains__, optimizer.parameters)) == list(
            map(reference.leaves.__contains__, reference.trained)
        )
        assert (optimizer.steps, optimizer.rate) == (reference.steps, reference.rate)


def agree(found, expected):
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def number(grad):
    """A gradient as a float; after create_graph it is a Value."""
    return grad.data if isinstance(grad, Value) else grad


def replace(model, name, value):
    """Put another Value where the name leads."""
    *path, last = name.split(".")
    owner = model
    for part in path:
        owner = owner[int(part)] if isinstance(owner, list) else getattr(owner, part)
    if isinstance(owner, list):
        owner[int(last)] = value
    else:
        setattr(owner, last, value)


class Lives(RuleBasedStateMachine):
    """Up to three models, copied one from another; each rule is about one of them."""

    begins_with = SGD

    @initialize(rate=RATES, position=POSITIONS)
    def begin(self, rate, position):
        model = Model()
        life = Life(model, Reference(model.state_dict().values()))
        life.optimize(range(8), *self.begins_with[position % len(self.begins_with)], rate)
        self.lives = [life]

    def life(self, which):
        return self.lives[which % len(self.lives)]

    @invariant()
    def all_lives_are_as_they_should_be(self):
        for life in self.lives:
            life.check()

    # Gradients

    @rule(
        which=LIVES,
        name=st.sampled_from(["mean_loss", "penalised"]),
        backend=BACKENDS,
        points=POINTS,
        gradient=NUMBERS,
        later=st.booleans(),
        frozen=st.sets(POSITIONS, max_size=1),
    )
    def backward(self, which, name, backend, points, gradient, later, frozen):
        """The gradient belongs to the numbers of the forward pass, and goes to what is not frozen by now."""
        life = self.life(which)
        if name == "penalised" and not life.is_free():
            return
        loss = life.function(name, backend)(points)
        expected, slopes = life.reference.loss(points) if name == "mean_loss" else life.reference.penalised(points)
        agree(loss.data, expected)
        assert loss.requires_grad == life.is_free()
        if not life.is_free():
            with pytest.raises(ValueError, match="requires no gradient"):
                loss.backward(gradient)
        elif later:
            life.waiting.append(loss)
            life.reference.waiting.append(slopes)
        else:
            with life.frozen(frozen):
                loss.backward(gradient)
                life.reference.backward(slopes, gradient)

    @rule(which=LIVES, factor=NUMBERS, summed=st.booleans())
    def backward_from_what_waits(self, which, factor, summed):
        life = self.life(which)
        if summed and life.waiting:
            sum(loss * factor for loss in life.waiting).backward()
        else:
            for loss in life.waiting:
                loss.backward(factor)
        for slopes in life.reference.waiting:
            life.reference.backward(slopes, factor)

    @rule(which=LIVES, backend=BACKENDS, points=POINTS)
    def backward_with_a_graph(self, which, backend, points):
        life = self.life(which)
        if not life.is_free():
            return
        loss = life.function("mean_loss", backend)(points)
        loss.backward(create_graph=True)
        life.reference.backward(life.reference.loss(points)[1])

    @rule(which=LIVES, backend=BACKENDS, points=POINTS)
    def quiet(self, which, backend, points):
        life = self.life(which)
        with mg.no_grad():
            loss = life.function("mean_loss", backend)(points)
        agree(loss.data, life.reference.loss(points)[0])
        assert not loss.requires_grad
        with pytest.raises(ValueError, match="requires no gradient"):
            loss.backward()

    @rule(which=LIVES, how=st.sampled_from(["model", "optimizer", "scale"]), factor=NUMBERS)
    def change_gradients(self, which, how, factor):
        life = self.life(which)
        if how == "scale":
            for value in life.model.parameters():
                value.grad *= factor
        else:
            getattr(life, how).zero_grad()
        for leaf in life.reference.trained if how == "optimizer" else life.reference.leaves:
            leaf.grad *= factor if how == "scale" else 0.0

    # Training

    @rule(which=LIVES, optimizer=OPTIMIZERS, rate=RATES, positions=st.sets(st.integers(0, 7), min_size=4))
    def take_another_optimizer(self, which, optimizer, rate, positions):
        self.life(which).optimize(sorted(positions), *optimizer, rate)

    @rule(which=LIVES, rate=st.sampled_from([0.03125, 0.0625, 0.125]))
    def change_the_rate(self, which, rate):
        life = self.life(which)
        life.optimizer.learning_rate = mg.optim.constant(rate)
        life.reference.learning_rate = lambda step: rate

    @rule(
        which=LIVES,
        backend=BACKENDS,
        points=POINTS,
        steps=st.integers(1, 3),
        fresh=st.booleans(),
        frozen=st.sets(POSITIONS, max_size=3),
    )
    def train(self, which, backend, points, steps, fresh, frozen):
        """Steps by hand, with some parameters frozen meanwhile; gradients are set to 0 before each, or add up."""
        life = self.life(which)
        with life.frozen(frozen):
            for _ in range(steps):
                if fresh:
                    life.zero_grad()
                if life.is_free():
                    life.function("mean_loss", backend)(points).backward()
                    life.reference.backward(life.reference.loss(points)[1])
                after = deepcopy(life.reference)
                after.step()
                if not after.is_tame():
                    life.zero_grad()
                    return
                life.optimizer.step()
                life.reference.step()
                life.check()

    @rule(
        which=LIVES,
        compiled=BACKENDS,
        data=POINTS,
        bad=st.sampled_from([False, False, False, True]),
        epochs=st.integers(1, 3),
        batch_size=st.integers(1, 3),
        seed=st.integers(0, 9),
        position=POSITIONS,
        then=st.sampled_from(["go on", "freeze", "set", "replace", "raise", "interrupt"]),
    )
    def fit(self, which, compiled, data, bad, epochs, batch_size, seed, position, then):
        life = self.life(which)
        frozen = life.reference.leaves[position] if then == "freeze" else None  # after the first epoch
        read = any(leaf.free and leaf is not frozen for leaf in life.reference.leaves)
        trained = any(leaf.free and leaf is not frozen for leaf in life.reference.trained)
        if not read or (frozen and not trained):
            return
        ends = then in ("raise", "interrupt")
        data = [*data, TOO_FAR] if bad else data
        after = deepcopy(life.reference)

        def change(reference):
            if then == "replace":
                reference.leaves[position] = Leaf(0.75)
            elif then == "set":
                reference.leaves[position].number = 0.75
            elif then == "freeze":
                reference.leaves[position].free = False

        losses, seen = after.fit(data, 1 if ends else epochs, batch_size, seed, bool(compiled), change)
        if not after.is_tame():
            return

        def callback(history):
            epoch = len(history.epochs)
            agree([value.data for value in life.model.parameters()], seen[epoch - 1])
            name, value = list(life.model.named_parameters())[position]
            if epoch == 1:
                if ends:
                    raise RuntimeError("enough") if then == "raise" else KeyboardInterrupt
                if then == "replace":
                    replace(life.model, name, Value(0.75))
                elif then == "set":
                    value.data = 0.75
                elif then == "freeze":
                    value.requires_grad = False

        def run():
            return mg.fit(
                life.loss,
                data,
                life.optimizer,
                epochs=epochs,
                batch_size=batch_size,
                seed=seed,
                callback=callback,
                compile=compiled or False,
                progress=False,
            )

        if compiled and not trained:
            with pytest.raises(ValueError, match="nothing to train"):
                run()
            return
        if bad or then == "raise":
            with pytest.raises(ArithmeticError if bad else RuntimeError):
                run()
        else:
            history = run()
            agree(history.steps, losses)
            assert history.interrupted == (then == "interrupt")
            assert len(history.epochs) == len(seen)
        life.reference = after
        if bad:  # the step that failed had begun to fill them
            life.zero_grad()

    # Changes

    @rule(which=LIVES, position=POSITIONS, free=st.booleans(), several=st.booleans())
    def freeze(self, which, position, free, several):
        life = self.life(which)
        for number in range(position, position + 4) if several else [position]:
            leaf, value = life.position(number)
            if free and not leaf.free:  # what was a constant to them may or may not get a gradient
                life.waiting, life.reference.waiting = [], []
            leaf.free = value.requires_grad = free

    @rule(
        which=LIVES,
        position=POSITIONS,
        number=NUMBERS,
        how=st.sampled_from(["set", "replace", "replace frozen"]),
        point=POINT,
    )
    def change_a_parameter(self, which, position, number, how, point):
        """One that is replaced is still the optimiser's. What is compiled already notices either."""
        life = self.life(which)
        name, value = list(life.model.named_parameters())[position]
        if how == "set":
            life.reference.leaves[position].number = value.data = number
        else:
            life.reference.leaves[position] = Leaf(number, free=how == "replace")
            replace(life.model, name, Value(number, requires_grad=how == "replace"))
        for compiled, backend in life.compiled:
            if compiled == "mean_loss":
                agree(life.function(compiled, backend)([point]).data, life.reference.loss([point])[0])

    @rule(which=LIVES, save=st.booleans())
    def save_or_load(self, which, save):
        life = self.life(which)
        if save:
            life.saved = json.loads(json.dumps(life.model.state_dict()))
            agree(list(life.saved.values()), [leaf.number for leaf in life.reference.leaves])
        else:
            life.model.load_state_dict(life.saved)
            for leaf, number in zip(life.reference.leaves, life.saved.values(), strict=True):
                leaf.number = number

    @rule(which=LIVES)
    def compile_again(self, which):
        self.life(which).compiled.clear()

    @rule(which=LIVES, pickled=st.booleans(), optimizer=OPTIMIZERS, rate=RATES)
    def copy(self, which, pickled, optimizer, rate):
        """A copy is alike, and goes on by itself; a pickle is of the model alone."""
        old = self.life(which)
        reference = deepcopy(old.reference)
        reference.waiting = []
        if pickled:
            life = Life(pickle.loads(pickle.dumps(old.model)), reference)
            life.optimize(range(8), *optimizer, rate)
        else:
            model, trains = deepcopy((old.model, old.optimizer))
            life = Life(model, reference)
            life.optimizer = trains
        self.lives = [*self.lives[-2:], life]

    @rule(
        which=LIVES,
        what=st.sampled_from(["loss", "backward", "step", "load", "load without"]),
        backend=BACKENDS,
        points=POINTS,
        position=POSITIONS,
    )
    def fail(self, which, what, backend, points, position):
        """Errors, after which all is as it was."""
        life = self.life(which)
        leaf, value = life.position(position)
        if what == "loss":
            with pytest.raises(ArithmeticError):
                life.function("mean_loss", backend)([*points, TOO_FAR])
        elif what == "backward" and leaf.free:
            loss = life.function("mean_loss", backend)(points) + mg.sqrt(value * 0.0)
            with pytest.raises(ArithmeticError):
                loss.backward()
        elif what == "step" and leaf.free and leaf in life.reference.trained:
            before, value.grad = number(value.grad), math.inf
            with pytest.raises(ArithmeticError):
                life.optimizer.step()
            value.grad = before
        elif what.startswith("load"):
            state = dict.fromkeys(life.saved, 3.0)
            name = list(state)[position]
            state[name] = math.nan
            if what == "load without":
                del state[name]
            with pytest.raises(ValueError, match=name):
                life.model.load_state_dict(state)


class LivesWithAdam(Lives):
    """The same, beginning with Adam."""

    begins_with = ADAM


class TestFromSGD(Lives.TestCase):
    settings = machine_settings(examples=10, steps=40)


class TestFromAdam(LivesWithAdam.TestCase):
    settings = machine_settings(examples=10, steps=40)
