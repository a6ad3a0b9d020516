"""The film of a training in a real browser: at each frame the network is as it was after that step."""

from __future__ import annotations

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
    caption = page.locator("#film figcaption").nth(1).inner_text()
    assert number(caption.split()[1].rstrip(",")) == pytest.approx(recording.losses[17], rel=1e-3)


def test_the_boundary_is_the_networks(show, training):
    model, _, recording = training
    page = show(recording)
    turn_to(page, 40)
    image = page.evaluate(
        """() => {
            const [left, right, low, high] = square(passes.film.points);
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
    turn_to(page, 30)
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
    assert "This page does not train by itself: this page cannot compute squared" in page.locator("#film").inner_text()
    assert "Only the parameters move: this page cannot compute squared" in page.locator("#film").inner_text()
