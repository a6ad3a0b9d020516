"""What a recording has for a page that trains by itself: programs, examples, updates; or why it has none."""

import base64
import copy
import dataclasses
import math
import pickle
import random
import re
import struct
from collections import Counter
from importlib.resources import files

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.pages import laboratory as made_of
from micrograd.pages import page
from micrograd.pages import recording as recordings
from tests.explore.test_explore import explored


def points_of(count):
    return [([0.1 * index, -0.2 * index], index % 2) for index in range(count)]


def recorded(loss, points, model=None, optimizer=None, **options):
    random.seed(0)
    model = model or mg.nn.MLP(2, [2, 1])
    recording = mg.Recording(model, [[1.0, 2.0]])
    optimizer = optimizer or mg.optim.SGD(model.parameters(), 0.1)
    mg.fit(loss(model), points, optimizer, seed=0, **options, record=recording)
    return recording


def hinge(model):
    return lambda place, kind: mg.losses.hinge(model(place), 2 * kind - 1)


def training_of(recording, folder):
    return explored(recording, folder)["recording"]["training"]


def floats(text):
    raw = base64.b64decode(text)
    return list(struct.unpack(f"<{len(raw) // 8}d", raw))


class TestSnapshots:
    @pytest.mark.parametrize("compiled", [False, True])
    def test_have_the_state_the_batch_and_the_rate_of_each_step(self, compiled):
        model = mg.nn.MLP(2, [2, 1])
        optimizer = mg.optim.Adam(model.parameters(), mg.optim.linear(0.1, 0.0, 10))
        recording = recorded(hinge, points_of(5), model, optimizer, batch_size=2, epochs=2, compile=compiled)
        snapshots = recording.snapshots()
        order = random.Random(0)
        batches = []
        for _ in range(2):
            indices = order.sample(range(5), 5)
            batches += [indices[:2], indices[2:4], indices[4:]]
        assert [snapshot.batch for snapshot in snapshots] == [*batches, None]
        assert [snapshot.rate for snapshot in snapshots[:-1]] == pytest.approx([0.1 - 0.01 * step for step in range(6)])
        assert [snapshot.step for snapshot in snapshots] == list(range(7))
        assert snapshots[0].state == [(0.0, 0.0, 0.0)] * 9
        assert snapshots[-1].state == optimizer._state
        assert {state[2] for snapshot in snapshots for state in snapshot.state} == set(range(7))

    def test_are_thinned_with_their_batches(self):
        recording = recorded(hinge, points_of(30), batch_size=1)
        thin = mg.Recording(recording.model, [[1.0, 2.0]], frames=8)
        mg.fit(hinge(thin.model), points_of(30), recording.run.optimizer, seed=0, record=thin)
        for snapshot in thin.snapshots()[:-1]:
            assert snapshot.batch == random.Random(0).sample(range(30), 30)[snapshot.step : snapshot.step + 1]

    def test_of_another_training_before_have_no_state(self):
        recording = recorded(hinge, points_of(3))
        model, same = recording.model, recording.run.examples
        mg.fit(hinge(model), same, recording.run.optimizer, record=recording)
        assert all(snapshot.state is not None for snapshot in recording.snapshots())
        other = mg.optim.Adam(model.parameters(), 0.1)
        mg.fit(hinge(model), same, other, record=recording)
        assert [snapshot.state is None for snapshot in recording.snapshots()] == [True] * 6 + [False] * 4
        assert [snapshot.batch is None for snapshot in recording.snapshots()] == [True] * 6 + [False] * 3 + [True]

    def test_of_parameters_that_are_not_trained_have_none_either(self):
        model = mg.nn.MLP(2, [1])
        recording = recorded(hinge, points_of(3), model, mg.optim.SGD(model.parameters()[:2], 0.1, momentum=0.5))
        assert [state is None for state in recording.snapshots()[-1].state] == [False, False, True]

    def test_a_recording_is_copied_and_pickled_without_the_loss(self):
        recording = recorded(hinge, points_of(3))
        for again in (copy.deepcopy(recording), pickle.loads(pickle.dumps(recording))):
            assert again.run is None
            assert again.frames() == recording.frames()
        assert recording.run is not None


class TestRecording:
    def test_has_the_numbers_and_the_state_as_floats(self, tmp_path):
        model = mg.nn.MLP(2, [2, 1])
        recording = recorded(hinge, points_of(4), model, mg.optim.Adam(model.parameters(), 0.1), batch_size=3)
        shown = explored(recording, tmp_path)["recording"]
        snapshots = recording.snapshots()
        assert floats(shown["numbers"]) == [number for snapshot in snapshots for number in snapshot.numbers]
        means, squares, counts = map(floats, shown["states"])
        assert means == [state[0] for snapshot in snapshots for state in snapshot.state]
        assert squares == [state[1] for snapshot in snapshots for state in snapshot.state]
        assert counts == [0, 1, 2]  # the same for all parameters

    def test_of_a_machine_with_the_highest_byte_first_is_the_same(self, tmp_path, monkeypatch):
        recording = recorded(hinge, points_of(2))
        here = floats(explored(recording, tmp_path)["recording"]["numbers"])
        monkeypatch.setattr("sys.byteorder", "big" if struct.pack("=h", 1) == struct.pack("<h", 1) else "little")
        swapped = base64.b64decode(explored(recording, tmp_path)["recording"]["numbers"])
        assert list(struct.unpack(f">{len(swapped) // 8}d", swapped)) == here

    def test_has_what_is_not_finite(self, tmp_path):
        recording = recorded(hinge, points_of(2))
        recording.model.layers[1].neurons[0].b.data = math.inf
        recording.step(math.nan)
        shown = explored(recording, tmp_path)["recording"]
        assert shown["losses"][-1] == [3, "NaN"]
        assert floats(shown["numbers"])[-1] == math.inf

    def test_of_a_loss_has_that_as_its_root_and_the_inputs_as_leaves(self, tmp_path):
        data = explored(recorded(hinge, points_of(4)), tmp_path)
        shown, nodes = data["recording"], data["nodes"]
        assert nodes[data["root"]]["hint"] == "loss"
        assert [nodes[index]["label"] for index in shown["inputs"]] == ["x1", "x2"]
        program = shown["training"]["programs"][0]
        kinds = {"p": "leaf", "x": "leaf", "c": "constant"}
        for node, index in zip(program["nodes"], shown["nodes"], strict=True):
            assert nodes[index]["kind"] == kinds.get(node[0], "result")
        assert shown["nodes"][program["root"]] == data["root"]

    def test_is_made_with_the_numbers_of_the_start_and_gives_the_others_back(self, tmp_path):
        recording = recorded(hinge, points_of(4))
        end = [parameter.data for parameter in recording.model.parameters()]
        seen = []

        def loss(place, kind):
            seen.append([parameter.data for parameter in recording.model.parameters()])
            if len(seen) == 2:
                raise KeyboardInterrupt
            return hinge(recording.model)(place, kind)

        recording.run = dataclasses.replace(recording.run, loss=loss)
        with pytest.raises(KeyboardInterrupt):
            mg.explore(recording, tmp_path / "recording.html")
        assert seen == [recording.frames()[0][1]] * 2
        assert [parameter.data for parameter in recording.model.parameters()] == end
        assert not list(tmp_path.iterdir())

    def test_of_a_very_large_network_has_no_map(self, tmp_path, monkeypatch):
        recording = recorded(hinge, points_of(2))
        assert explored(recording, tmp_path)["recording"]["network"]["layers"]
        monkeypatch.setattr(recordings, "MOST_OF_NETWORK", 10)
        assert explored(recording, tmp_path)["recording"]["network"] is None


class TestExamples:
    def test_of_one_shape_share_a_program_and_are_the_numbers_that_differ(self, tmp_path):
        training = training_of(recorded(hinge, points_of(4)), tmp_path)
        (program,) = training["programs"]
        (varying,) = program["varying"]
        assert program["nodes"][varying] == ["c", -1]
        assert training["examples"] == [[0, *place, 2 * kind - 1] for place, kind in points_of(4)]
        assert training["classes"] == [{"target": 0.0, "example": [0, -1]}, {"target": 1.0, "example": [0, 1]}]
        assert training["batch"] == 1
        assert training["seed"] == 0

    def test_of_several_constants_that_differ_have_each_of_them_and_the_sign_of_a_zero(self, tmp_path):
        def turned(model):
            return lambda place, kind: (model(place) - mg.atan2(Value(kind[0]), Value(-1.0)) * kind[1]) ** 2

        training = training_of(recorded(turned, [([1.0, 2.0], (0.0, 3.0)), ([1.0, 2.0], (-0.0, 5.0))]), tmp_path)
        (program,) = training["programs"]
        assert [program["nodes"][place][0] for place in program["varying"]] == ["c", "c"]
        assert sorted(map(repr, training["examples"][0][3:])) == ["0.0", "3.0"]
        assert sorted(map(repr, training["examples"][1][3:])) == ["-0.0", "5.0"]

    def test_of_other_shapes_have_their_own_programs(self, tmp_path):
        def cross(model):
            return lambda place, kind: mg.losses.cross_entropy(model(place), kind)

        training = training_of(recorded(cross, points_of(4), mg.nn.MLP(2, [2])), tmp_path)
        assert [example[0] for example in training["examples"]] == [0, 1, 0, 1]
        assert [made["example"][0] for made in training["classes"]] == [0, 1]
        assert all(program["varying"] for program in training["programs"])  # the largest score is a constant

    @pytest.mark.parametrize(
        "points",
        [
            [([0.0, 1.0], index / 10) for index in range(9)],  # more targets than there are colours
            [([0.0, 1.0], 1), ([1.0, 0.0], 1)],  # one class alone
        ],
    )
    def test_without_classes_are_trained_on_as_they_are(self, tmp_path, points):
        def squares(model):
            return lambda place, target: mg.losses.mean_squared_error(model(place), target)

        training = training_of(recorded(squares, points), tmp_path)
        assert training["classes"] == []
        assert len(training["examples"]) == len(points)

    def test_of_one_class_that_differ_otherwise_have_no_classes(self, tmp_path):
        def weighted(model):
            return lambda place, kind: hinge(model)(place, kind) * (1 + getattr(place[0], "data", place[0]))

        training = training_of(recorded(weighted, points_of(4)), tmp_path)
        assert training["classes"] == []
        for (place, _), example in zip(points_of(4), training["examples"], strict=True):
            assert 1 + place[0] in example[3:]

    def test_of_one_class_whose_losses_take_other_ways_have_no_classes(self, tmp_path):
        def bent(model):
            return lambda place, kind: (
                hinge(model)(place, kind) * (2.0 if place[0] > 0.15 else model.layers[0].neurons[0].b)
            )

        def narrow(model):
            return lambda place, kind: (
                hinge(model)(place, kind) * mg.log(place[0] * 99 + 1.0 - 99 * getattr(place[0], "data", place[0]))
            )

        assert training_of(recorded(bent, points_of(4)), tmp_path)["classes"] == []
        assert training_of(recorded(narrow, points_of(4)[::-1]), tmp_path)["classes"] == []

    def test_with_text_before_the_inputs(self, tmp_path):
        def named(model):
            return lambda name, place, pair: hinge(model)(place, len(pair) % 2)

        points = [("a", [0.0, 1.0], [1, 2, 3]), ("b", [1.0, 0.5], [4, 5, 6, 7])]
        shown = explored(recorded(named, points), tmp_path)["recording"]
        assert [example[1:3] for example in shown["training"]["examples"]] == [[0.0, 1.0], [1.0, 0.5]]

    def test_that_are_no_pairs_have_no_targets(self, tmp_path):
        def energy(model):
            return lambda place: model(place) ** 2

        training = training_of(recorded(energy, [[0.0, 1.0], [1.0, 0.5]]), tmp_path)
        assert training["targets"] == training["classes"] == []
        assert training["examples"] == [[0, 0.0, 1.0], [0, 1.0, 0.5]]

    def test_whose_targets_are_no_numbers(self, tmp_path):
        def sides(model):
            return lambda place, side: mg.losses.hinge(model(place), 1 if side == "left" else -1)

        training = training_of(recorded(sides, [([0.0, 1.0], "left"), ([1.0, 0.5], "right")]), tmp_path)
        assert training["targets"] == []
        assert [example[3] for example in training["examples"]] == [1, -1]

    def test_whose_loss_needs_plain_numbers_have_them_as_constants(self, tmp_path):
        def scaled(model):
            return lambda place, kind: hinge(model)([float.__mul__(x, 2.0) for x in place], kind)

        data = explored(recorded(scaled, points_of(3)), tmp_path)
        assert data["recording"]["inputs"] == []
        assert data["recording"]["training"]["classes"] == []
        assert len(data["recording"]["training"]["examples"]) == 3

    def test_whose_inputs_are_not_found_are_constants(self, tmp_path):
        def flat(model):
            return lambda kind, x, y, more: hinge(model)([x, y], kind)

        shown = explored(recorded(flat, [(1, 0.5, 0.25, [7]), (0, 0.125, 2.0, [7])]), tmp_path)["recording"]
        assert shown["inputs"] == []
        assert {0.5, 0.25} < set(shown["training"]["examples"][0])
        assert {0.125, 2.0} < set(shown["training"]["examples"][1])

    def test_constants_that_are_not_finite_are_written_as_text(self, tmp_path):
        def odd(model):
            return lambda place, kind: mg.relu(hinge(model)(place, kind) * 1.0 - mg.maximum(Value(-math.inf), place[0]))

        data = explored(recorded(odd, points_of(2)), tmp_path)
        assert ["c", "-Infinity"] in data["recording"]["training"]["programs"][0]["nodes"] or any(
            node["data"] == "-Infinity" for node in data["nodes"]
        )


class TestUpdates:
    def test_are_formulas_of_the_parameter_the_gradient_the_rate_and_the_state(self, tmp_path):
        own, sgd, momentum, _, adam, _ = training_of(recorded(hinge, points_of(2)), tmp_path)["optimizers"]
        assert own["name"] == "SGD, recorded"
        assert sgd["parameter"] == ["sub", "0", ["mul", "2", "1"]]
        assert sgd["names"] == sgd["state"] == []
        assert momentum["names"] == ["velocity"]
        assert adam["names"] == ["m", "v", "t"]
        assert adam["state"][2] == ["add", "5", 1.0]

    def test_of_ones_own_name_their_state_as_they_like(self, tmp_path):
        class Counting(mg.optim.Optimizer):
            states = 2

            def update(self, parameter, gradient, state, rate):
                return parameter - rate * gradient, (state[0] + 1, 7.0)

        model = mg.nn.MLP(2, [1])
        training = training_of(recorded(hinge, points_of(2), model, Counting(model.parameters(), 0.1)), tmp_path)
        own = training["optimizers"][0]
        assert own["names"] == ["state 1", "state 2"]
        assert own["state"] == [["add", "3", 1.0], 7.0]


class TestReasons:
    def reason(self, recording, folder):
        return training_of(recording, folder)["reason"]

    def test_no_fit(self, tmp_path):
        recording = mg.Recording(mg.nn.MLP(2, [1]), [[1.0, 2.0]])
        recording.step(1.0)
        data = explored(recording, tmp_path)
        assert data["recording"]["training"]["reason"] == "the loss function was not recorded, as mg.fit does"
        assert data["nodes"][data["root"]]["hint"] == "output"

    def test_a_loss_with_dropout(self, tmp_path):
        model = mg.nn.Sequential(mg.nn.Layer(2, 3), mg.nn.Dropout(0.5), mg.nn.Layer(3, 1, nonlin=False))
        recording = recorded(hinge, points_of(2), model)
        says = "the loss cannot be computed again: dropout draws other numbers at each step"
        assert self.reason(recording, tmp_path) == says

    def test_a_loss_that_raises_or_gives_no_value(self, tmp_path):
        answers = []

        model = mg.nn.MLP(2, [1])
        answers += [hinge(model)(place, kind) for place, kind in points_of(2)]
        recording = recorded(lambda model: lambda place, kind: answers.pop(), points_of(2), model)
        assert self.reason(recording, tmp_path) == "the loss cannot be computed again: pop from empty list"
        answers += [1.0]
        assert self.reason(recording, tmp_path) == "the loss is no Value, but float"

    def test_too_many_numbers_and_too_many_nodes(self, tmp_path, monkeypatch):
        recording = recorded(hinge, points_of(4))
        monkeypatch.setattr(made_of, "MOST_WORK", 10)
        assert self.reason(recording, tmp_path) == "4 examples are too many for a loss this large"
        monkeypatch.setattr(made_of, "MOST_NUMBERS", 11)
        data = explored(recording, tmp_path)
        assert data["recording"]["training"]["reason"] == "4 examples of 2 inputs are more than fit into a page"
        assert data["nodes"][data["root"]]["hint"] == "loss"

    def test_optimisers_that_a_page_cannot_run(self, tmp_path):
        class Plain:
            def __init__(self, model):
                self.model = model

            def zero_grad(self):
                self.model.zero_grad()

            def step(self):
                pass

        class Branching(mg.optim.SGD):
            def update(self, parameter, gradient, state, rate):
                return super().update(parameter, gradient if gradient > 0 else 0.0, state, rate)

        model = mg.nn.MLP(2, [1])
        for optimizer, reason in (
            (Plain(model), "Plain is not an Optimizer of mg.optim"),
            (Branching(model, 0.1), "the update of Branching is no formula: a rule cannot branch"),
            (mg.optim.SGD([*model.parameters(), Value(1.0)], 0.1), "trains Values that are not the model's"),
        ):
            assert reason in self.reason(recorded(hinge, points_of(2), model, optimizer), tmp_path)

    @pytest.mark.parametrize("seed", [None, "five", -1, 2**40])
    def test_a_seed_that_a_page_cannot_take_is_left_out(self, tmp_path, seed):
        recording = recorded(hinge, points_of(2))
        mg.fit(recording.run.loss, recording.run.examples, recording.run.optimizer, seed=seed, record=recording)
        assert training_of(recording, tmp_path)["seed"] is None


def test_pages_of_values_have_no_script_of_recordings(tmp_path):
    mg.explore(Value(1.0), tmp_path / "page.html")
    mg.explore(recorded(hinge, points_of(2)), tmp_path / "recording.html")
    assert "PythonRandom" not in (tmp_path / "page.html").read_text()
    assert "PythonRandom" in (tmp_path / "recording.html").read_text()


def test_the_scripts_of_a_page_declare_each_name_once():
    """They are one text, so a name that two of them declare ends all of them."""
    folder, names = files("micrograd.pages"), []
    for script in (*page.SCRIPTS, *page.RECORDING):
        text = folder.joinpath(f"{script}.js").read_text(encoding="utf-8")
        for declared in re.findall(r"^(?:const|let|function|class) ([\w$]+|[{\[][^=]*)", text, re.MULTILINE):
            names += re.findall(r"[\w$]+", declared)
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert {"nodes", "network", "points", "MOST_NEURONS", "PythonRandom", "startRecording"} <= set(names)
