"""Parameters that are stored in arrays: nobody notices, except by the clock.

A step of an optimiser on many parameters replaces arrays, and the Values are brought up to date when somebody looks.
Each test takes such steps, looks in one way, and compares with an optimiser that updates parameter by parameter.
"""

import copy
import gc
import math
import os
import pickle
import random
import threading
import weakref
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import micrograd as mg
from micrograd import Value, nn, optim
from micrograd.compiler.backends.llvm.llvm_update import NativeUpdate
from micrograd.engine.stored import LATER, SPECIAL
from tests import faults
from tests.engine.test_all_or_nothing import KINDS

pytestmark = pytest.mark.slow(together=True)

COUNT = 20  # parameters: enough for a step to update them at once
MAKE = {
    "sgd": lambda leaves: optim.SGD(leaves, 0.1),
    "momentum": lambda leaves: optim.SGD(leaves, 0.1, momentum=0.5, nesterov=True, weight_decay=0.01),
    "adam": lambda leaves: optim.Adam(leaves, 0.1, weight_decay=0.01),
    "adamw": lambda leaves: optim.AdamW(leaves, optim.linear(0.1, 0.0, 9)),
}


EVENTS = [*["step"] * 3, "zero", "data", "grad", "eager", "compiled", "freeze", "look", "state"]


def leaves_of(count=COUNT):
    return [Value(math.sin(index + 1)) for index in range(count)]


def stepped(make=MAKE["adam"], steps=3, count=COUNT):
    """Leaves and an optimiser after some steps, the last of which nobody has looked at."""
    leaves = leaves_of(count)
    optimizer = make(leaves)
    for step in range(steps):
        for index, leaf in enumerate(leaves):
            leaf.grad = math.cos(index * (step + 1))
        optimizer.step()
    return leaves, optimizer


@pytest.fixture
def one_by_one(monkeypatch):
    """Calls a function while optimisers update parameter by parameter."""

    def call(function, *arguments):
        with monkeypatch.context() as patch:
            patch.setattr(optim, "FEWEST_AT_ONCE", math.inf)
            return function(*arguments)

    return call


def numbers_of(leaves):
    return [(leaf.data, leaf.grad) for leaf in leaves]


class TestSteps:
    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_many_parameters_get_the_numbers_of_single_updates_to_the_last_bit(self, make, one_by_one):
        leaves, optimizer = stepped(make, 9)
        assert LATER
        expected, reference = one_by_one(stepped, make, 9)
        assert numbers_of(leaves) == numbers_of(expected)
        assert optimizer.state_dict() == reference.state_dict()
        assert (optimizer.steps, optimizer.rate) == (reference.steps, reference.rate)

    @settings(max_examples=16)
    @given(data=st.data())
    def test_whatever_happens_between_steps(self, data):
        """Random programs on parameters, beside the same on parameters that are updated one by one."""
        make = MAKE[data.draw(st.sampled_from(sorted(MAKE)))]
        ours, theirs = leaves_of(), leaves_of()
        optimizers = make(ours), make(theirs)
        fast = [mg.compile(lambda x, w=w: mg.dot(w, w) * x, backend="numpy") for w in (ours, theirs)]
        for _ in range(data.draw(st.integers(1, 12))):
            what = data.draw(st.sampled_from(EVENTS))
            index, number = data.draw(st.integers(0, COUNT - 1)), data.draw(st.floats(-2, 2))
            for leaves, optimizer, function in zip((ours, theirs), optimizers, fast, strict=True):
                optim.FEWEST_AT_ONCE, before = (16 if leaves is ours else math.inf), optim.FEWEST_AT_ONCE
                try:
                    match what:
                        case "step":
                            optimizer.step()
                        case "zero":
                            optimizer.zero_grad()
                        case "data":
                            leaves[index].data = number
                        case "grad":
                            leaves[index].grad = number
                        case "eager":
                            (leaves[index] * leaves[index - 1] * number).backward()
                        case "compiled":
                            function(number).backward()
                        case "freeze":
                            leaves[index].requires_grad = not leaves[index].requires_grad
                        case "look":
                            assert isinstance(leaves[index].data, float)
                        case "state":
                            optimizer.load_state_dict(optimizer.state_dict())
                finally:
                    optim.FEWEST_AT_ONCE = before
        assert numbers_of(ours) == numbers_of(theirs)
        assert optimizers[0].state_dict() == optimizers[1].state_dict()

    def test_gradients_that_are_graphs_are_taken_one_by_one(self, one_by_one):
        def run():
            leaves, optimizer = stepped()
            mg.dot(leaves, leaves).backward(create_graph=True)
            optimizer.step()
            optimizer.zero_grad()
            return numbers_of(leaves)

        assert run() == one_by_one(run)

    def test_graphs_among_the_gradients_of_some_of_the_leaves_are_set_to_zero(self):
        leaves, optimizer = stepped()
        some = optim.SGD(leaves[4:], 0.1)
        some.step()
        mg.dot(leaves, leaves).backward(create_graph=True)
        some.zero_grad()
        assert [leaf.grad for leaf in leaves[4:]] == [0.0] * (COUNT - 4)
        assert all(isinstance(leaf.grad, Value) for leaf in leaves[:4])
        assert optimizer.steps == 3

    def test_a_custom_update_is_not_given_arrays(self, one_by_one):
        class Signs(optim.Adam):
            def update(self, parameter, gradient, state, rate):
                return parameter - (rate if gradient > 0 else -rate), state

        assert numbers_of(stepped(Signs)[0]) == numbers_of(one_by_one(stepped, Signs)[0])

    def test_counts_that_differ_are_taken_one_by_one(self, one_by_one):
        def run():
            leaves = leaves_of()
            leaves[3].requires_grad = False
            optimizer = optim.Adam(leaves, 0.1)
            optimizer.step()
            leaves[3].requires_grad = True
            for leaf in leaves:
                leaf.grad = 1.0
            optimizer.step()
            return numbers_of(leaves)

        assert run() == one_by_one(run)

    def test_a_parameter_may_be_replaced_in_the_list(self):
        leaves, optimizer = stepped()
        other = optimizer.parameters[0] = Value(5.0)
        other.grad = 1.0
        optimizer.step()
        assert other.data < 5.0
        optimizer.zero_grad()
        assert (other.grad, leaves[1].grad) == (0.0, 0.0)


def saved(model, path):
    model.save(path)
    return path.read_text(encoding="utf-8")


# Each takes leaves, looks at one or all of them in one way, and returns what it saw.
LOOKS = {
    "data": lambda leaves: leaves[0].data,
    "grad": lambda leaves: leaves[0].grad,
    "item": lambda leaves: leaves[0].item(),
    "float": lambda leaves: float(leaves[0]),
    "int": lambda leaves: int(leaves[0]),
    "bool": lambda leaves: bool(leaves[0]),
    "repr": lambda leaves: repr(leaves[0]),
    "format": lambda leaves: f"{leaves[0]:.12f} {leaves[0]}",
    "compare": lambda leaves: (leaves[0] < leaves[1], leaves[0] >= 0.3, leaves[2] < 0.3),
    "add": lambda leaves: (leaves[0] + leaves[1]).data,
    "add a number": lambda leaves: (leaves[0] + 1.0).data,
    "reflected": lambda leaves: (1.0 - leaves[0]).data,
    "a number and a leaf": lambda leaves: (Value(1.0) * leaves[0]).data,
    "negate": lambda leaves: (-leaves[0]).data,
    "method": lambda leaves: leaves[0].tanh().data,
    "function": lambda leaves: mg.exp(leaves[0]).data,
    "wide": lambda leaves: mg.where(leaves[0] > 0, leaves[1], leaves[2]).data,
    "remainder": lambda leaves: (leaves[0] % 0.25).data,
    "dot": lambda leaves: mg.dot(leaves, leaves).data,
    "dot under no_grad": lambda leaves: mg.no_grad()(lambda: mg.dot(leaves, leaves).data)(),
    "no_grad": lambda leaves: mg.no_grad()(lambda: (leaves[0] * 2.0).data)(),
    "anomaly": lambda leaves: mg.detect_anomaly()(lambda: (leaves[0] * 2.0).data)(),
    "numpy": lambda leaves: (np.array(leaves) * 2.0).sum().data,
    "numbers": lambda leaves: mg.numbers(leaves),
    "detach": lambda leaves: leaves[0].detach().data,
    "operands": lambda leaves: [operand.data for operand in (leaves[0] * 2.0)._prev if operand.requires_grad],
    "pickle": lambda leaves: numbers_of(pickle.loads(pickle.dumps(leaves))),
    "copy": lambda leaves: numbers_of([copy.copy(leaves[0])]),
    "deepcopy": lambda leaves: numbers_of(copy.deepcopy(leaves)),
    "picture": lambda leaves: mg.draw_dot(leaves[0] * leaves[1]).source,
    "lecture": lambda leaves: mg.draw_dot(leaves[0] - leaves[1], style="micrograd").source,
    "gradient": lambda leaves: mg.gradient(mg.dot(leaves, leaves), leaves),
    "gradient of the leaf itself": lambda leaves: mg.gradient(leaves[0] * leaves[0], leaves[0], create_graph=True).data,
    "jvp": lambda leaves: mg.jvp(lambda x: x * leaves[0], [2.0], [1.0]),
    "grad of a function": lambda leaves: mg.numbers(mg.grad(lambda x: x * x * leaves[0])(leaves[1])),
    "hand-written": lambda leaves: by_hand(leaves[0]),
    "compiled argument": lambda leaves: mg.compile(lambda w: mg.dot(w, w), backend="numpy")(leaves).data,
    "compiled": lambda leaves: mg.compile(lambda: mg.dot(leaves, leaves), backend="numpy")().data,
    "few compiled": lambda leaves: mg.compile(lambda x: leaves[0] * x, backend="numpy")(2.0).data,
    "program": lambda leaves: program_inputs(leaves),
    "scan": lambda leaves: mg.scan(lambda state, w: (state * w, None), 1.0, leaves)[0].data,
    "hash and identity": lambda leaves: leaves.index(leaves[3]),
}


def by_hand(leaf):
    out = Value(leaf.data * 2, (leaf,), "double")

    def backward():
        leaf.grad += 2 * out.grad

    out._backward = backward
    out.grad = 3.0
    out._backward()
    (leaf * leaf)._backward()
    return leaf.grad


def program_inputs(leaves):
    fast = mg.compile(lambda: mg.dot(leaves, leaves), backend="numpy")
    executable = fast.program()
    return executable.buffer[executable.program.inputs].tolist()


class Note:
    """What can be referred to weakly, as a Value cannot."""


class TestLeavesThatAreUsedNoMore:
    def test_others_do_not_keep_them(self):
        backbone, alive = leaves_of(), []
        first = optim.Adam(backbone[5:], 0.1)
        first.step()
        for _ in range(4):
            head = leaves_of()
            head[0].note = Note()
            alive.append(weakref.ref(head[0].note))
            optimizer = optim.SGD([*backbone, *head], 0.1)
            mg.dot(backbone, head).backward()
            optimizer.step()
            optimizer.zero_grad()
        del head
        gc.collect()
        assert [note() is None for note in alive] == [True, True, True, False]

    def test_they_keep_their_numbers(self, one_by_one):
        def trained():
            backbone, heads = leaves_of(), [leaves_of() for _ in range(3)]
            optimizers = [optim.Adam(backbone[2:], 0.1)]
            for head in [*heads, *heads]:
                optimizer = optim.SGD([*backbone, *head], 0.1, momentum=0.5)
                mg.dot(backbone, head).backward()
                optimizer.step()
                optimizers[0].step()
            return [numbers_of(leaves) for leaves in (backbone, *heads)], optimizers[0].state_dict()

        assert trained() == one_by_one(trained)


@pytest.mark.usefixtures("own_cache")
class TestManyParameters:
    """In native code they are updated in vectors, the last of which overlaps the one before."""

    COUNT = 1_100

    @pytest.fixture(autouse=True, params=["native", "numpy"])
    def updates(self, monkeypatch, request):
        monkeypatch.setattr(optim.native, "update", NativeUpdate if request.param == "native" else None)

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    def test_steps_give_the_numbers_of_single_updates(self, one_by_one, make):
        def trained():
            leaves, optimizer = stepped(make, steps=2, count=self.COUNT)
            return numbers_of(leaves), optimizer.state_dict()

        assert trained() == one_by_one(trained)

    @pytest.mark.parametrize("name", ["beta1", "epsilon", "weight_decay"])
    @pytest.mark.unmeasured
    def test_a_setting_that_was_changed_counts_from_the_next_step_on(self, one_by_one, name):
        def trained():
            leaves, optimizer = stepped(steps=2, count=self.COUNT)
            setattr(optimizer, name, np.float64(0.25))
            optimizer.step()
            return numbers_of(leaves), optimizer.state_dict()

        assert trained() == one_by_one(trained)

    def test_groups_have_their_own_settings(self, one_by_one):
        def trained():
            leaves = leaves_of(self.COUNT)
            groups = [{"parameters": leaves[:500], "weight_decay": 0.1}, {"parameters": leaves[500:], "scale": 0.5}]
            optimizer = optim.AdamW(groups, 0.1)
            for leaf in leaves:
                leaf.grad = leaf.data
            for _ in range(3):
                optimizer.step()
            return numbers_of(leaves), optimizer.state_dict()

        assert trained() == one_by_one(trained)

    def test_numbers_whose_squares_are_not_finite_are_stepped(self):
        leaves = [Value(1e200) for _ in range(self.COUNT)]
        optimizer = optim.SGD(leaves, 0.5)
        leaves[-1].grad = 1e200
        optimizer.step()
        assert [leaf.data for leaf in leaves] == [1e200] * (self.COUNT - 1) + [0.5e200]

    @pytest.mark.parametrize(
        ("count", "where", "bad"),
        [(20, 7, math.inf), (20, 7, math.nan), (COUNT, 0, 1e200), (COUNT, 700, 1e200), (COUNT, COUNT - 1, 1e200)],
    )
    def test_nothing_is_stepped_where_one_would_not_be_finite(self, count, where, bad):
        leaves, optimizer = stepped(count=count)
        leaves[where].grad = bad
        before, state = numbers_of(leaves), optimizer.state_dict()
        with pytest.raises(ArithmeticError, match=f"parameter {where}"):
            optimizer.step()
        assert repr((numbers_of(leaves), optimizer.state_dict())) == repr((before, state))


class TestBackward:
    """A compiled loss adds to all gradients as a whole, if they are numbers."""

    def test_it_adds_to_zeros_and_to_what_is_there(self):
        leaves = leaves_of()
        optimizer, fast = optim.SGD(leaves, 0.0), mg.compile(lambda: mg.dot(leaves, leaves))
        optimizer.step()
        optimizer.zero_grad()
        losses = [fast(), fast()]
        for times, loss in enumerate([losses[0], losses[0], losses[1]], 1):
            loss.backward()
            assert [leaf.grad for leaf in leaves] == [times * 2.0 * leaf.data for leaf in leaves]

    def test_a_gradient_of_minus_zero_is_added_to_zero(self):
        leaves = leaves_of()
        optimizer, fast = optim.SGD(leaves, 0.0), mg.compile(lambda x: mg.dot(leaves, [x] * COUNT))
        optimizer.step()
        for weight in (1.0, -2.0):
            for x in (-0.0, 0.0):
                optimizer.zero_grad()
                fast(x).backward(weight)
                assert {math.copysign(1.0, leaf.grad) for leaf in leaves} == {1.0}

    def test_one_of_them_is_a_graph(self):
        leaves = leaves_of()
        fast = mg.compile(lambda: mg.dot(leaves, leaves))
        fast().backward()
        (leaves[0] ** 3).backward(create_graph=True)
        fast().backward()
        assert leaves[0].grad.data == pytest.approx(4.0 * leaves[0].data + 3.0 * leaves[0].data ** 2)
        assert [leaf.grad for leaf in leaves[1:]] == [4.0 * leaf.data for leaf in leaves[1:]]


class TestParametersReplaced:
    """The list of parameters, and the update, may be others at the next step."""

    @pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
    @pytest.mark.parametrize("fewer", [COUNT - 1, 3])
    def test_some_are_taken_out_of_the_list(self, one_by_one, make, fewer):
        def trained():
            leaves, optimizer = stepped(make)
            del optimizer.parameters[fewer:]
            optimizer.step()
            optimizer.step()
            return numbers_of(leaves), optimizer.state_dict()

        assert trained() == one_by_one(trained)

    @pytest.mark.parametrize("kind", [tuple, list, np.array])
    def test_another_sequence_takes_the_position_of_the_list(self, one_by_one, kind):
        def trained():
            leaves = leaves_of()
            optimizer = optim.Adam(leaves, 0.1)
            optimizer.parameters = kind(leaves[1:])
            for leaf in leaves:
                leaf.grad = leaf.data
            optimizer.step()
            optimizer.step()
            return numbers_of(leaves)

        assert trained() == one_by_one(trained)

    @pytest.mark.parametrize("name", ["adam", "sgd"])
    def test_what_is_put_into_the_list_has_no_state(self, name):
        leaves, optimizer = stepped(MAKE[name])
        before = numbers_of(leaves)
        optimizer.parameters.append(Value(1.0))
        with pytest.raises(IndexError):
            optimizer.step()
        assert numbers_of(leaves) == before

    def test_an_update_of_ones_own_on_the_object_is_given_numbers(self, one_by_one):
        def trained():
            leaves, optimizer = stepped(MAKE["sgd"])
            optimizer.update = lambda parameter, gradient, state, rate: (parameter - max(gradient, 0.0), state)
            optimizer.step()
            return numbers_of(leaves)

        assert trained() == one_by_one(trained)


class TestLooks:
    @pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
    @pytest.mark.parametrize("last", ["step", "zero_grad"])
    def test_each_way_of_looking_sees_the_last_step(self, look, last, one_by_one):
        def run():
            leaves, optimizer = stepped()
            if last == "zero_grad":
                optimizer.zero_grad()
            return look(leaves), numbers_of(leaves)

        assert repr(run()) == repr(one_by_one(run))

    def test_models_are_saved_and_drawn_as_they_are(self, tmp_path, one_by_one):
        def run():
            model = seeded()
            optimizer = optim.Adam(model, 0.1)
            for _ in range(3):
                model.zero_grad()
                (model([1.0, 2.0]) ** 2).backward()
                optimizer.step()
            text = saved(model, tmp_path / "model.json")
            optimizer.step()
            state = model.state_dict()
            model.load_state_dict(dict.fromkeys(state, 1.0))
            optimizer.step()
            return text, state, model.state_dict(), model([1.0, 2.0]).data

        assert run() == one_by_one(run)

    def test_a_page_shows_the_numbers_of_the_last_step(self, tmp_path, one_by_one):
        def run():
            leaves, _ = stepped()
            mg.explore(leaves[0] * leaves[1] + leaves[2], tmp_path / "page.html")
            return (tmp_path / "page.html").read_text(encoding="utf-8"), numbers_of(leaves)

        assert run() == one_by_one(run)

    @pytest.mark.parametrize("compiled", [False, True])
    def test_a_page_of_a_network_leaves_its_numbers_and_gradients_alone(self, compiled, tmp_path):
        model = seeded()
        optimizer = optim.Adam(model, 0.1)
        fast = mg.compile(lambda x: model(x) ** 2, backend="numpy") if compiled else lambda x: model(x) ** 2
        for _ in range(2):
            loss = fast([1.0, 2.0])
            loss.backward()
            optimizer.step()
        other = mg.compile(lambda x: model(x) * 3.0, backend="numpy")
        before = numbers_of(model.parameters())
        mg.explore(loss, tmp_path / "page.html")
        assert numbers_of(model.parameters()) == before
        assert other([1.0, 2.0]).data == pytest.approx(3.0 * model([1.0, 2.0]).data)
        optimizer.step()
        assert numbers_of(model.parameters()) != before

    def test_fit_begins_with_the_last_step_and_its_end_is_seen(self, one_by_one):
        def run(compiled):
            leaves, optimizer = stepped()
            mg.fit(lambda x: mg.dot(leaves, leaves) * x, [1.0, 2.0], optimizer, epochs=2, seed=0, compile=compiled)
            optimizer.step()
            return numbers_of(leaves), optimizer.state_dict()

        assert run("numpy") == one_by_one(run, "numpy")
        assert run(False) == one_by_one(run, False)

    def test_fit_with_a_rate_that_reads_a_parameter_updates_from_the_gradients_of_its_steps(self):
        def run(compiled):
            leaves, optimizer = stepped(MAKE["sgd"])
            optimizer.learning_rate = lambda step: 0.01 * abs(leaves[0].data)
            mg.fit(lambda x: mg.dot(leaves, leaves) * x, [1.0, 2.0], optimizer, epochs=3, seed=0, compile=compiled)
            return [leaf.data for leaf in leaves]

        assert run("numpy") == pytest.approx(run(False), rel=1e-12)


def seeded():
    random.seed(3)
    return nn.MLP(2, [4, 1])


def own_loop(backend=None, manual=False, both=False):
    """A training loop as a tutorial writes it; the losses, and the parameters in the end."""
    model = seeded()
    points = [([0.1, 0.2], 1.0), ([0.5, -0.4], -1.0), ([-0.3, 0.9], 1.0)]

    def loss(inputs, targets):
        return mg.mean([(model(x) - y) ** 2 for x, y in zip(inputs, targets, strict=True)])

    fast = mg.compile(loss, backend=backend) if backend else loss
    optimizer = optim.Adam(model.parameters(), 0.05)
    second = optim.SGD(model.layers[0].parameters(), 0.01) if both else None
    losses = []
    for step in range(6):
        value = fast([x for x, _ in points], [y for _, y in points])
        losses.append(value.data)
        optimizer.zero_grad() if step % 2 else model.zero_grad()
        value.backward()
        if manual:
            for parameter in model.parameters():
                parameter.data -= 0.05 * parameter.grad
        else:
            optimizer.step()
        if second is not None:
            second.step()
    return losses, numbers_of(model.parameters())


class TestOwnLoop:
    @pytest.mark.parametrize("backend", [None, "numpy", "llvm"])
    @pytest.mark.parametrize("manual", [False, True])
    @pytest.mark.parametrize("both", [False, True])
    def test_it_trains_as_one_by_one(self, backend, manual, both, one_by_one):
        assert own_loop(backend, manual, both) == one_by_one(own_loop, backend, manual, both)

    def test_two_functions_and_two_optimisers_that_share_some_leaves(self, one_by_one):
        def run():
            leaves = leaves_of(60)
            first, second = leaves[:40], leaves[20:][::-1]
            fast = [mg.compile(lambda x, w=w: mg.dot(w, w) * x, backend="numpy") for w in (first, second)]
            optimizers = [optim.Adam(first, 0.1), optim.SGD(second, 0.1, momentum=0.5)]
            for step in range(4):
                for function, optimizer in zip(fast, optimizers, strict=True):
                    function(1.0 + step).backward()
                    optimizer.step()
                optimizers[step % 2].zero_grad()
            return numbers_of(leaves)

        assert run() == one_by_one(run)

    def test_a_loss_that_is_read_leaves_the_parameters_stored(self):
        leaves, optimizer = stepped()
        fast = mg.compile(lambda x: mg.dot(leaves, leaves) * x, backend="numpy")
        loss = fast(1.0)
        loss.backward()
        optimizer.step()
        assert loss.data > 0
        assert LATER
        assert set(SPECIAL) >= set(LATER)
        assert leaves[0].grad != 0
        assert not LATER
        assert not SPECIAL


class TestLife:
    def test_a_model_that_nobody_refers_to_is_freed(self):
        leaves, optimizer = stepped()
        gone = weakref.ref(optimizer)
        count, special = len(LATER), len(SPECIAL)
        assert count
        del leaves, optimizer
        gc.collect()
        assert gone() is None
        assert len(LATER) < count
        assert len(SPECIAL) < special

    def test_pickles_and_copies_of_an_optimiser_are_stored_apart(self):
        leaves, optimizer = stepped()
        for twin in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
            assert numbers_of(twin.parameters) == numbers_of(leaves)
            twin.step()
            assert twin.parameters[0].data != leaves[0].data
            assert twin.state_dict()["steps"] == 4.0

    def test_threads_that_look_disturb_no_step(self):
        leaves, optimizer = stepped(MAKE["sgd"], 1)
        for leaf in leaves:
            leaf.data, leaf.grad = 0.0, -1.0
        seen, done = [], threading.Event()

        def watch(leaf):
            found = [leaf.data]
            while not done.is_set():
                found.append(leaf.data)
            seen.append(found)

        watchers = [threading.Thread(target=watch, args=(leaf,)) for leaf in leaves[:2]]
        for watcher in watchers:
            watcher.start()
        for _ in range(200):
            optimizer.step()
        done.set()
        for watcher in watchers:
            watcher.join()
        assert all(found == sorted(found) for found in seen)
        assert {leaf.data for leaf in leaves} == {[*accumulate([0.1] * 200)][-1]}  # as sum() does up to Python 3.11

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
    def test_a_forked_child_goes_on_by_itself(self):
        leaves, optimizer = stepped()
        before = numbers_of(leaves)
        optimizer.step()
        child = os.fork()
        if child == 0:
            code = 1
            try:
                optimizer.step()
                code = 0 if numbers_of(leaves) != before else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert optimizer.steps == 4


def step():
    leaves, optimizer = stepped(steps=2)
    return optimizer.step, lambda: (numbers_of(leaves), optimizer.state_dict(), optimizer.rate)


def zero_grad():
    leaves, optimizer = stepped(steps=2)
    return optimizer.zero_grad, lambda: numbers_of(leaves)


def look():
    leaves, _ = stepped(steps=2)
    expected = [leaf.grad for leaf in stepped(steps=2)[0]]
    return lambda: leaves[0].data, lambda: [leaf.grad for leaf in leaves] == expected


def set_data():
    leaves, _ = stepped(steps=2)

    def action():
        leaves[1].data = 7.0

    return action, lambda: numbers_of(leaves)


def backward_of_compiled():
    leaves, optimizer = stepped(steps=2)
    fast = mg.compile(lambda x: mg.dot(leaves, leaves) * x, backend="numpy")
    loss = fast(2.0)
    optimizer.step()
    return loss.backward, lambda: numbers_of(leaves)


def backward_of_eager():
    leaves, optimizer = stepped(steps=2)
    loss = leaves[0] * leaves[1]
    optimizer.step()
    return loss.backward, lambda: numbers_of(leaves)


CASES = {case.__name__: case for case in (step, zero_grad, look, set_data, backward_of_compiled, backward_of_eager)}
ALLOWED = {}


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize("kind", KINDS)
def test_all_or_nothing_wherever_something_fails(kind):
    faults.check(__name__, kind)
