"""The laboratory in a real browser: what a page trains by itself has the numbers of mg.fit."""

import math
import random

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.browser.test_page import ATTACKS

pytestmark = pytest.mark.slow

CLOSE = {"rel": 1e-9, "abs": 1e-9}


def points_of(count, classes=2, seed=3):
    """Points around the middles of classes, the class of each beside it."""
    generator = random.Random(seed)
    middles = [(1.0, 0.5), (-0.8, 0.9), (0.1, -1.0)]
    kinds = [index % classes for index in range(count)]
    return [([generator.gauss(x, 0.5) for x in middles[kind]], kind) for kind in kinds]


def hinge(model):
    return lambda place, kind: mg.losses.hinge(model(place), 2 * kind - 1)


def binary(model):
    return lambda place, kind: mg.losses.binary_cross_entropy(model(place), kind)


def cross(model):
    return lambda place, kind: mg.losses.cross_entropy(model(place), kind)


def squares(model):
    return lambda place, kind: mg.losses.mean_squared_error(model(place), kind / 3)


def recorded(model, loss, points, optimizer, *, epochs=4, batch=7, seed=5, **options):
    """A recording of a training; losses that ask for targets of -1 and 1 make them of 0 and 1."""
    recording = mg.Recording(model, [place for place, _ in points], [kind for _, kind in points], **options)
    mg.fit(loss(model), points, optimizer, epochs=epochs, batch_size=batch, seed=seed, record=recording)
    return recording


def small(**options):
    random.seed(1)
    model = mg.nn.MLP(2, [3, 1], activation="tanh")
    return recorded(model, binary, points_of(20), mg.optim.SGD(model.parameters(), 0.2), **options)


def trained_in(page, steps):
    """What the page has after so many steps from the start, with the present settings: numbers, state and losses."""
    return page.evaluate(
        """steps => {
            restart();
            for (let step = 0; step < steps; step++) if (!trainOn()) throw new Error(stepAfter(snapshotNow()).trouble);
            const last = trainingRun.snapshots[trainingRun.snapshots.length - 1];
            return { numbers: [...last.numbers], states: last.states.map((column) => [...column]),
                losses: trainingRun.losses.map(([, loss]) => loss) };
        }""",
        steps,
    )


def choose(page, label, value):
    control = page.locator("#laboratory").get_by_label(label, exact=True)
    if control.evaluate("element => element.tagName") == "SELECT":
        control.select_option(label=value)
    else:
        control.fill(str(value))
        control.press("Enter")


def wait_until(page, condition):
    """Playwright's own wait_for_function needs eval, which the page's policy forbids."""
    for _ in range(1000):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(10)
    pytest.fail(f"never: {condition}")


class TestTrainingInThePage:
    @pytest.mark.parametrize(
        ("loss", "sizes", "activation", "optimizer"),
        [
            (hinge, [6, 1], "relu", lambda p: mg.optim.SGD(p, 0.1)),
            (hinge, [4, 3, 1], "gelu", lambda p: mg.optim.SGD(p, 0.1, momentum=0.8, weight_decay=0.01)),
            (binary, [5, 1], "tanh", lambda p: mg.optim.SGD(p, 0.1, momentum=0.9, nesterov=True)),
            (binary, [5, 1], "silu", lambda p: mg.optim.Adam(p, 0.02, betas=(0.8, 0.95), epsilon=1e-6)),
            (cross, [5, 3], "softplus", lambda p: mg.optim.AdamW(p, 0.05, weight_decay=0.1)),
            (squares, [4, 1], "sigmoid", lambda p: mg.optim.Adam(p, 0.02, weight_decay=0.1)),
            (binary, [3, 1], "elu", lambda p: mg.optim.SGD(p, mg.optim.linear(0.3, 0.05, 14))),
        ],
    )
    def test_has_the_numbers_of_fit(self, show, loss, sizes, activation, optimizer):
        random.seed(4)
        model = mg.nn.MLP(2, sizes, activation=activation)
        points = points_of(23, classes=sizes[-1] if sizes[-1] > 1 else 2)
        recording = recorded(model, loss, points, optimizer(model.parameters()))
        page = show(recording)
        assert page.evaluate("refusal") is None
        told = trained_in(page, len(recording.losses))
        assert told["numbers"] == pytest.approx([p.data for p in model.parameters()], **CLOSE)
        assert told["losses"] == pytest.approx(recording.losses, **CLOSE)
        state = recording.snapshots()[-1].state
        assert told["states"] == [pytest.approx(column, **CLOSE) for column in zip(*state, strict=True)]

    def test_goes_on_where_the_recording_ends_as_a_longer_fit_does(self, show):
        short, long = small(epochs=2), small(epochs=5)
        page = show(short)
        page.locator("#last").click()
        for _ in range(len(long.losses) - len(short.losses)):
            page.locator("#next").click()
        assert page.locator("#recording h2").inner_text() == "Step 15, trained in this page"
        numbers = page.evaluate("[...snapshotNow().numbers]")
        assert numbers == pytest.approx(long.frames()[-1][1], **CLOSE)

    def test_other_settings_train_as_fit_does_with_them(self, show):
        page = show(small())
        for label, value in {"Optimiser": "Adam", "Rate": 0.05, "Batch": 6, "Activation": "relu", "Seed": 11}.items():
            choose(page, label, value)
        told = trained_in(page, 9)
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1], activation="relu")
        again = recorded(model, binary, points_of(20), mg.optim.Adam(model.parameters(), 0.05), batch=6, seed=11)
        assert told["numbers"] == pytest.approx(again.frames()[9][1], **CLOSE)

    def test_data_sets_are_of_two_kinds_that_their_shape_keeps_apart_and_train_as_fit_does(self, show):
        page = show(small())
        for name in ("moons", "circles", "spirals", "exclusive or"):
            choose(page, "Data", name)
            choose(page, "Noise", 0)
            assert page.locator("#boundary .point").count() == 100
            data = page.evaluate("pointsNow()")
            points = list(zip(data["points"], data["kinds"], strict=True))
            told = trained_in(page, 12)
            random.seed(1)
            model = mg.nn.MLP(2, [3, 1], activation="tanh")
            again = recorded(model, binary, points, mg.optim.SGD(model.parameters(), 0.2), epochs=1)
            assert told["numbers"] == pytest.approx(again.frames()[12][1], **CLOSE)
            nearest = [
                min((p for p in points if p is not one), key=lambda p, q=one: math.dist(p[0], q[0])) for one in points
            ]
            assert sum(near[1] == one[1] for near, one in zip(nearest, points, strict=True)) >= 97

    def test_points_of_ones_own_are_put_by_clicks_and_by_keys(self, show):
        page = show(small())
        choose(page, "Data", "my own points")
        assert page.locator("#next").is_disabled()
        board = page.locator("#boundary")
        board.click(position={"x": 75, "y": 75})
        choose(page, "Next point", "orange ■")
        board.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        side = board.bounding_box()["width"] - 2
        own = page.evaluate("trainingRun.own")
        assert own["kinds"] == [1, 0]
        assert own["points"][0] == pytest.approx([-1.6 + 3.2 * 74 / side, 1.6 - 3.2 * 74 / side], abs=0.03)
        assert own["points"][1] == pytest.approx([-1.6 + 3.2 * 0.54, 0])
        page.locator("#next").click()
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1], activation="tanh")
        points = list(zip(own["points"], own["kinds"], strict=True))
        again = recorded(model, binary, points, mg.optim.SGD(model.parameters(), 0.2), epochs=1)
        assert page.evaluate("[...snapshotNow().numbers]") == pytest.approx(again.frames()[1][1], **CLOSE)
        page.get_by_role("button", name="Take the last away").click()
        assert page.locator("#boundary .point").count() == 1

    def test_other_weights_are_those_of_pythons_random(self, show):
        page = show(small())
        page.get_by_role("button", name="Other weights").click()
        page.get_by_role("button", name="Other weights").click()
        assert "random.seed(1)" in page.locator("#laboratory").inner_text()
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1])
        assert page.evaluate("[...snapshotNow().numbers]") == [p.data for p in model.parameters()]

    def test_random_numbers_are_pythons(self, show):
        page = show(small())
        for seed in (0, 7, 2**32 - 1):
            told = page.evaluate(
                """seed => {
                    const random = new PythonRandom(seed);
                    const floats = Array.from({ length: 700 }, () => random.random());
                    return [floats, random.uniform(-3, 5), random.below(1000), random.shuffled(300)];
                }""",
                seed,
            )
            generator = random.Random(seed)
            floats = [generator.random() for _ in range(700)]
            ours = [floats, generator.uniform(-3, 5), generator.randrange(1000), generator.sample(range(300), 300)]
            assert told == ours

    def test_a_change_in_the_middle_goes_on_from_there_and_a_button_goes_back(self, show):
        recording = small()
        page = show(recording)
        page.locator("#slider").fill("4")
        choose(page, "Rate", 0)
        assert page.locator("#recording h2").inner_text() == "Step 4, trained in this page"
        page.locator("#next").click()
        assert page.evaluate("[...snapshotNow().numbers]") == recording.frames()[4][1]
        page.get_by_role("button", name="Back to the recording").click()
        assert page.locator("#recording h2").inner_text() == "Step 0 of 12, recorded"
        page.locator("#last").click()
        assert page.evaluate("[...snapshotNow().numbers]") == recording.frames()[-1][1]

    def test_a_change_keeps_the_state_of_the_optimiser_and_another_optimiser_begins_with_none(self, show):
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1], activation="tanh")
        optimizer = mg.optim.SGD(model.parameters(), 0.2, momentum=0.9)
        recording = recorded(model, binary, points_of(20), optimizer)
        page = show(recording)
        page.locator("#slider").fill("4")
        choose(page, "Rate", 0.05)
        page.locator("#next").click()
        numbers = recording.snapshots()[4].numbers
        velocities = [velocity for (velocity,) in recording.snapshots()[5].state]  # they do not depend on the rate
        assert page.evaluate("[...snapshotNow().states[0]]") == pytest.approx(velocities, **CLOSE)
        moved = [number - 0.05 * velocity for number, velocity in zip(numbers, velocities, strict=True)]
        assert page.evaluate("[...snapshotNow().numbers]") == pytest.approx(moved, **CLOSE)
        choose(page, "Optimiser", "SGD, momentum 0.9")
        assert page.evaluate("snapshotNow().states") == []

    @pytest.mark.parametrize("target", [0.0, -0.0, 2.0], ids=str)
    def test_constants_that_differ_between_examples_are_those_of_each(self, show, target):
        def turned(model):
            return lambda place, first, second: (model(place) - mg.atan2(Value(first), Value(-1.0)) * second) ** 2

        random.seed(1)
        model = mg.nn.MLP(2, [3, 1], activation="tanh")
        points = [([0.5, -1.0], 0.0, 0.25), ([0.5, -1.0], 0.0, 0.25), ([-1.0, 0.5], target, 0.75)]
        recording = mg.Recording(model, [place for place, *_ in points])
        mg.fit(turned(model), points, mg.optim.SGD(model.parameters(), 0.1), epochs=3, seed=5, record=recording)
        page = show(recording)
        assert page.evaluate("refusal") is None
        told = trained_in(page, len(recording.losses))
        assert told["numbers"] == pytest.approx([p.data for p in model.parameters()], **CLOSE)
        assert told["losses"] == pytest.approx(recording.losses, **CLOSE)

    def test_remainders_are_those_of_python_with_the_sign_of_their_zeros(self, show):
        page = show(small())
        pairs = [(x, y) for x in (-6.0, -0.5, -0.0, 0.0, 0.5, 6.0) for y in (-3.0, -0.75, 0.75, 3.0)]
        told = page.evaluate("pairs => pairs.map(([x, y]) => [remainder(x, y), 1 / remainder(x, y) > 0])", pairs)
        assert told == [[x % y, math.copysign(1.0, x % y) > 0] for x, y in pairs]

    def test_play_trains_until_it_is_paused(self, show):
        page = show(small())
        page.locator("#speed").select_option("16")
        choose(page, "Batch", 20)
        page.locator("#play").click()
        wait_until(page, "snapshotNow().step > 500")
        page.keyboard.press("Space")
        step = page.locator("#count").inner_text()
        page.wait_for_timeout(200)
        assert page.locator("#count").inner_text() == step
        assert page.evaluate("trainingRun.snapshots.length <= MOST_SNAPSHOTS + 1")
        steps = page.evaluate("trainingRun.snapshots.map(({ step }) => step)")
        assert steps == sorted(set(steps))
        assert page.evaluate("trainingRun.losses[trainingRun.losses.length - 1][1]") < 0.3


class TestWhatIsNoNumber:
    def test_a_step_that_cannot_be_made_is_explained_and_breaks_nothing(self, show):
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1])
        page = show(recorded(model, squares, points_of(20), mg.optim.SGD(model.parameters(), 0.1)))
        choose(page, "Rate", 1e200)
        for _ in range(4):
            if page.locator("#next").is_enabled():
                page.locator("#next").click()
        warning = page.locator("#recording .warning").first.inner_text()
        assert warning.startswith("Step 2 cannot be made: the loss of example ")
        assert "∞" in warning
        assert "mg.fit raises an error" in warning
        assert page.locator("#next").is_disabled()
        page.get_by_role("button", name="One step").click()
        page.keyboard.press("End")
        page.keyboard.press("Home")
        page.get_by_role("button", name="Training", exact=True).click()
        page.get_by_role("button", name="Start again").click()
        assert page.locator("#recording .warning").first.is_hidden()

    def test_a_training_that_fit_gave_up_goes_on_to_the_number_that_ended_it(self, show):
        random.seed(1)
        model, points = mg.nn.MLP(2, [4, 1]), points_of(8)
        recording = mg.Recording(model, [place for place, _ in points], [kind for _, kind in points])
        optimizer = mg.optim.SGD(model.parameters(), 50.0)
        with pytest.raises(ArithmeticError):
            mg.fit(squares(model), points, optimizer, epochs=100, record=recording, seed=0)
        page = show(recording)
        page.locator("#last").click()
        for _ in range(9):
            if page.locator("#next").is_enabled():
                page.locator("#next").click()
        warning = page.locator("#recording .warning").first.inner_text()
        assert warning.startswith(f"Step {len(recording.losses) + 1} cannot be made: the loss of example ")
        assert " × " in warning
        assert " is ∞. mg.fit raises an error there." in warning

    def test_an_update_that_is_no_number_is_explained(self, show):
        random.seed(1)
        model = mg.nn.MLP(2, [3, 1])
        points = [(place, 1000 * kind) for place, kind in points_of(20)]
        page = show(recorded(model, squares, points, mg.optim.SGD(model.parameters(), 1e-6)))
        choose(page, "Rate", 1e308)
        assert page.locator("#next").is_disabled()
        warning = page.locator("#recording .warning").first.inner_text()
        assert warning.startswith("Step 1 cannot be made: the step would set layers[0].neurons[")
        assert "∞, as its gradient is" in warning

    def test_a_recording_of_what_is_not_finite_is_shown(self, show):
        recording = small()
        recording.model.layers[0].neurons[1].b.data = math.nan
        recording.step(math.inf)
        page = show(recording)
        page.locator("#last").click()
        assert "After step 13, layers[0].neurons[1].b is NaN" in page.locator("#recording .warning").first.inner_text()
        page.get_by_role("button", name="One step").click()
        page.keyboard.press("End")
        assert page.locator(".item").count() > 3

    def test_a_rate_that_is_none_changes_nothing(self, show):
        page = show(small())
        for text in ("", "-1", "NaN", "1e999", "two"):
            choose(page, "Rate", text)
            assert "Nothing was changed" in page.locator("#laboratory [role=alert]").inner_text()
            assert page.locator("#laboratory").get_by_label("Rate").input_value() == "0.2"
        assert page.locator("#recording h2").inner_text() == "Step 0 of 12, recorded"


class TestWhereThePageDoesNotTrain:
    def test_it_says_that_the_loss_is_not_a_function_of_the_example(self, show):
        model = mg.nn.MLP(2, [2, 1])

        def noisy(model):
            return lambda place, kind: mg.losses.hinge(model(place), 2 * kind - 1) * random.random()

        page = show(recorded(model, noisy, points_of(8), mg.optim.SGD(model.parameters(), 0.1)))
        assert (
            "This page replays the training, but cannot go on with it: the loss of the first step comes out differently"
            in (page.locator("#recording").inner_text())
        )
        assert page.locator("#laboratory").count() == 0

    def test_it_says_that_the_parameters_were_changed_otherwise(self, show):
        class Halving(mg.optim.SGD):
            def step(self):
                super().step()
                for parameter in self.parameters:
                    parameter.data /= 2

        model = mg.nn.MLP(2, [2, 1])
        page = show(recorded(model, binary, points_of(8), Halving(model.parameters(), 0.1)))
        assert "the first step comes out differently here" in page.locator("#recording").inner_text()

    def test_it_plays_what_was_recorded(self, show):
        model = mg.nn.MLP(2, [2, 1])
        recording = mg.Recording(model, [[0.0, 1.0]])
        model.layers[0].neurons[0].b.data = 3.0
        recording.step(1.0)
        page = show(recording)
        assert "the loss function was not recorded" in page.locator("#recording").inner_text()
        page.locator("#next").click()
        assert page.locator("#recording h2").inner_text() == "Step 1 of 1, recorded"
        page.get_by_role("button", name="One step").click()
        assert page.locator('.item[aria-label^="output,"]').count() or page.locator(".item.closed").count()
        assert page.locator("#passes .update").is_hidden()


class TestEveryone:
    def test_everything_can_be_done_with_keys_alone(self, show):
        page = show(small())
        page.keyboard.press("End")
        assert page.locator("#recording h2").inner_text() == "Step 12 of 12, recorded"
        page.keyboard.press("ArrowRight")
        assert page.locator("#recording h2").inner_text() == "Step 13, trained in this page"
        choose(page, "Data", "my own points")
        reached = set()
        for _ in range(45):
            page.keyboard.press("Tab")
            focused = page.evaluate("[document.activeElement].map((at) => at.id || at.className || at.textContent)[0]")
            reached.add(focused)
        assert {"boundary", "cell", "slider", "play", "speed", "Start again", "One step"} <= reached
        choose(page, "Data", "as recorded")
        page.locator(".cell").nth(3).focus()
        page.keyboard.press("Enter")
        assert page.locator("#neuron h3").inner_text() == "Layer 1, Neuron 2"
        page.get_by_role("button", name="Show it in the graph").focus()
        page.keyboard.press("Enter")
        assert page.locator("#modes [aria-pressed=true]").inner_text() == "One step"
        page.keyboard.press("End")
        assert page.locator("#count").inner_text() == "update 13/13"
        page.keyboard.press("ArrowLeft")
        assert page.locator("#step h2").inner_text() == "layers[1].neurons[0].w[2] takes its step"

    def test_those_who_prefer_less_motion_see_two_pictures_a_second(self, show):
        page = show(small(), reduced_motion="reduce")
        page.locator("#speed").select_option("200")
        page.locator("#play").click()
        wait_until(page, "trainingRun.now === 1")
        page.wait_for_timeout(100)
        assert page.evaluate("trainingRun.now") == 1

    @pytest.mark.parametrize("label", [ATTACKS[1], ATTACKS[2]])
    def test_labels_run_nothing(self, show, label):
        random.seed(1)
        model = mg.nn.MLP(2, [2, 1])
        model.layers[0].neurons[0].w[0].label = label
        page = show(recorded(model, binary, points_of(8), mg.optim.SGD(model.parameters(), 0.1)), title=label)
        page.get_by_role("button", name="One step").click()
        page.locator("#slider").fill(str(page.evaluate("steps.findIndex(({ phase }) => phase === 'update')")))
        assert page.locator("#step h2").text_content() == f"{label} takes its step"

    def test_a_network_of_many_inputs_trains_without_maps(self, show):
        random.seed(1)
        model = mg.nn.MLP(5, [3, 1])
        points = [([random.gauss(0, 1) for _ in range(5)], index % 2) for index in range(9)]
        recording = recorded(model, binary, points, mg.optim.SGD(model.parameters(), 0.1))
        page = show(recording)
        assert page.locator("#boundary").count() == 0
        assert page.locator("#laboratory").get_by_label("Data").count() == 0
        assert page.locator(".cell").count() == 9
        said = page.evaluate("picture.cells.map(({ said }) => said)")
        shown = points[page.evaluate("exampleNow()")][0]
        assert [float(text.replace("−", "-")) for text in said[:5]] == pytest.approx(shown, rel=1e-3)
        assert trained_in(page, 8)["losses"] == pytest.approx(recording.losses, **CLOSE)

    def test_a_frozen_layer_keeps_its_numbers(self, show):
        random.seed(1)
        model = mg.nn.MLP(2, [2, 1])
        frozen = model.layers[0].parameters()
        for parameter in frozen:
            parameter.requires_grad = False
        recording = recorded(model, binary, points_of(8), mg.optim.SGD(model.parameters(), 0.1))
        page = show(recording)
        told = trained_in(page, len(recording.losses))
        assert told["numbers"] == pytest.approx([p.data for p in model.parameters()], **CLOSE)
        assert [Value(number).data for number in told["numbers"][: len(frozen)]] == [p.data for p in frozen]
