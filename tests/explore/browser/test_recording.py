"""The recording of a training in a real browser: at each frame the network is as it was after that step."""

import random

import pytest

import micrograd as mg
from tests.explore.browser.test_page import number

pytestmark = pytest.mark.slow


@pytest.fixture
def training():
    """A network that learns a line, and the numbers of its parameters along the way."""
    random.seed(2)
    model = mg.nn.MLP(2, [3, 1], activation="tanh")
    points = [([random.uniform(-1, 1), random.uniform(-1, 1)], 0) for _ in range(40)]
    points = [(place, 1 if place[0] + place[1] > 0.1 else -1) for place, _ in points]
    recording = mg.Recording(model, [place for place, _ in points], [side for _, side in points])
    optimizer = mg.optim.Adam(model.parameters(), 0.05)
    mg.fit(
        lambda place, side: mg.losses.hinge(model(place), side),
        points,
        optimizer,
        epochs=8,
        batch_size=8,
        record=recording,
    )
    return model, points, recording


def turn_to(page, frame):
    page.get_by_role("button", name="Training", exact=True).click()
    page.locator("#slider").fill(str(frame))


def one_step(page):
    page.get_by_role("button", name="One step").click()


def test_the_slider_moves_the_numbers_of_the_network(show, training):
    model, points, recording = training
    page = show(recording)
    one_step(page)
    page.locator("#collapse").click()
    final = [parameter.data for parameter in model.parameters()]
    for frame in (0, 17, 40):
        _, numbers = recording.frames()[frame]
        turn_to(page, frame)
        one_step(page)
        page.keyboard.press("End")
        page.get_by_label("The example in the graph").fill("3")
        page.keyboard.press("Enter")
        for parameter, saved in zip(model.parameters(), numbers, strict=True):
            parameter.data = saved
        output = model(points[2][0])
        label = page.locator('.item[aria-label^="Layer 2,"] .number').first.text_content()
        assert number(label) == pytest.approx(output.data, rel=1e-3)
    assert numbers == final  # the last frame is the model as it is now


def test_the_loss_and_the_step_are_shown(show, training):
    _, _, recording = training
    page = show(recording)
    turn_to(page, 17)
    assert page.get_by_label("Training step", exact=True).get_attribute("aria-valuetext") == "Step 17 of 40, recorded"
    caption = page.locator("#recording figcaption").nth(1).inner_text()
    assert number(caption.split()[1].rstrip(",")) == pytest.approx(recording.losses[17], rel=1e-3)


def test_the_boundary_is_the_networks(show, training):
    model, _, recording = training
    page = show(recording)
    turn_to(page, 40)
    image = page.evaluate(
        """() => {
            const [left, right, low, high] = square(passes.recording.points);
            const drawn = document.querySelector("#boundary canvas").getContext("2d");
            const pixels = drawn.getImageData(0, 0, SIDE, SIDE).data;
            return { square: [left, right, low, high], side: SIDE, pixels: [...pixels] };
        }"""
    )
    left, right, low, high = image["square"]
    side = image["side"]
    for row in range(1, side, 6):
        for column in range(1, side, 6):
            score = model(
                [left + (column + 0.5) / side * (right - left), high - (row + 0.5) / side * (high - low)]
            ).data
            red, _, blue, _ = image["pixels"][4 * (row * side + column) :][:4]
            assert (blue > red) == (score > 0)


def test_play_turns_to_the_last_frame(show, training):
    page = show(training[2])
    turn_to(page, 37)
    page.locator("#play").click()
    page.locator("#play[aria-label='Pause the training']").wait_for()
    page.locator("#count", has_text="step 40").wait_for()
    page.locator("#play[aria-label='Play the training']").wait_for()


def test_several_outputs_have_a_class_each(show):
    random.seed(0)
    model = mg.nn.MLP(2, [4, 3])
    points = [([x, y], int(x > 0) + int(y > 0)) for x in (-1.0, 1.0) for y in (-1.0, 1.0)]
    recording = mg.Recording(model, [place for place, _ in points], [kind for _, kind in points])
    optimizer = mg.optim.SGD(model.parameters(), 0.1)
    mg.fit(
        lambda place, kind: mg.losses.cross_entropy(model(place), kind), points, optimizer, epochs=2, record=recording
    )
    page = show(recording)
    assert page.locator("#boundary .point").count() == 4
    turn_to(page, 8)
    one_step(page)
    assert page.locator('.item[aria-label^="loss,"]').count() == 1


def test_a_network_of_other_inputs_has_no_boundary_and_an_unknown_activation_a_note(show):
    @mg.operation
    def squared(x):
        return x * x, lambda g: g * 2 * x

    model = mg.nn.MLP(3, [2, 1], activation=squared)
    recording = mg.Recording(model, [[0.1, 0.2, 0.3]])
    mg.fit(
        lambda x: model(x) ** 2, [[0.1, 0.2, 0.3]], mg.optim.SGD(model.parameters(), 0.01), epochs=3, record=recording
    )
    page = show(recording)
    turn_to(page, 3)
    assert page.locator("#boundary").count() == 0
    one_step(page)
    assert page.locator('.item[aria-label^="loss,"]').count() == 1
    page.get_by_role("button", name="Training", exact=True).click()
    assert (
        "This page replays the training, but cannot go on with it: this page cannot compute squared"
        in page.locator("#recording").inner_text()
    )
    assert "Only the parameters move: this page cannot compute squared" in page.locator("#recording").inner_text()


def test_the_step_of_the_optimiser_is_shown_in_words_and_numbers(show, training):
    model, points, recording = training
    page = show(recording)
    turn_to(page, 17)
    one_step(page)
    parameters = page.evaluate("steps.map(({ parameter }) => parameter ?? -1)")
    page.locator("#slider").fill(str(parameters.index(4)))
    snapshot, after = recording.snapshots()[17:19]
    mean, square, count = snapshot.state[4]
    assert page.locator("#step h2").inner_text() == "layers[0].neurons[1].w[1] takes its step"
    for parameter, saved in zip(model.parameters(), snapshot.numbers, strict=True):
        parameter.data = saved
    gradients = []
    for index in snapshot.batch:
        model.zero_grad()
        mg.losses.hinge(model(points[index][0]), points[index][1]).backward()
        gradients.append(model.parameters()[4].grad)
    gradient = sum(gradients) / len(gradients)
    most = snapshot.batch[max(range(len(gradients)), key=lambda place: abs(gradients[place]))]
    shown = [text.splitlines() for text in page.locator("#step .math").all_inner_texts()]
    assert number(shown[0][0].split(" = ")[1]) == pytest.approx(gradient, rel=1e-3)
    assert f"Example {most + 1} gives most" in page.locator("#step").inner_text()
    assert [lines[0] for lines in shown[1:5]] == [
        "t = t + 1",
        "m = 0.9 × m + 0.1 × gradient",
        "v = 0.999 × v + 0.001 × gradient × gradient",
        "w −= rate / (1 − 0.9 ** t) × m / (1 / sqrt(1 − 0.999 ** t) × sqrt(v) + 1e−8)",
    ]
    mean, square, count = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2, count + 1
    outcomes = [number(lines[-1].removeprefix("= ").replace("e−", "e-")) for lines in shown[1:5]]
    step = snapshot.numbers[4] - after.numbers[4]
    assert outcomes == pytest.approx([count, mean, square, step], rel=1e-3)
    assert number(shown[5][0].split(" → ")[1]) == pytest.approx(after.numbers[4], rel=1e-3)


def test_neurons_have_maps_and_edges_are_as_wide_as_their_weights(show, training):
    model, _, recording = training
    page = show(recording)
    turn_to(page, 40)
    told = page.evaluate(
        """() => {
            const wanted = picture.cells.map(({ node }) => node);
            const maps = mapsOf(networkProgram(), wanted, snapshotNow().numbers, board.bounds(), SMALL);
            return { bounds: board.bounds(), side: SMALL, maps: maps.map((map) => [...map]),
                pixels: picture.cells.map(({ canvas }) => [...canvas.getContext("2d").getImageData(5, 7, 1, 1).data]),
                widths: [...document.querySelectorAll(".weight")].map(({ style }) => parseFloat(style.strokeWidth)) };
        }"""
    )
    left, right, low, high = told["bounds"]
    side = told["side"]
    place = [left + 5.5 / side * (right - left), high - 7.5 / side * (high - low)]
    hidden = model.layers[0].outputs(place)
    says = [*place, *(neuron.data for neuron in hidden), model.layers[1](hidden).data]
    assert [cell[7 * side + 5] for cell in told["maps"]] == pytest.approx(says)
    for (red, _, blue, alpha), said in zip(told["pixels"], says, strict=True):
        assert (blue > red) == (said > 0) or alpha < 3
    weights = [abs(weight.data) for layer in model.layers for neuron in layer.neurons for weight in neuron.w]
    most = max(1, *weights)
    assert told["widths"] == pytest.approx([0.4 + 8 * weight / most for weight in weights], abs=0.01)


def test_a_click_on_a_point_shows_its_loss(show, training):
    model, points, recording = training
    page = show(recording)
    left, right, low, high = page.evaluate("board.bounds()")
    x, y = points[11][0]
    side = page.locator("#boundary").bounding_box()["width"]
    place = {"x": (x - left) / (right - left) * side, "y": (high - y) / (high - low) * side}
    page.locator("#boundary").click(position=place)
    page.keyboard.press("End")
    assert page.get_by_label("The example in the graph").input_value() == "12"
    for parameter, saved in zip(model.parameters(), recording.frames()[0][1], strict=True):
        parameter.data = saved
    loss = mg.losses.hinge(model(points[11][0]), points[11][1])
    shown = page.locator('.item[aria-label^="loss,"] .number').first.text_content()
    assert number(shown) == pytest.approx(loss.data, rel=1e-3)
