"""Where a number that is not finite was born: the page says so, marks the place and leads to it."""

import math

import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow


def born(page):
    """What the page says of births, one by one, without their buttons."""
    return [text.removesuffix(" Go there") for text in page.locator("#births p").all_inner_texts()]


def flagged(page):
    return [
        label.split(",")[0]
        for label in page.locator(".item.born").evaluate_all("items => items.map((item) => item.ariaLabel)")
    ]


def test_forward_it_is_the_first_result_of_finite_numbers_and_a_button_goes_there(show):
    x = Value(1e200, label="x")
    y = x * x
    y.label = "y"
    later = y * 2.0 - y  # not finite either, and not born there
    page = show(later)
    assert born(page) == ["Forward: y = 1e+200 × 1e+200 is ∞, and what it is computed from is finite."]
    assert flagged(page) == ["y"]
    assert page.locator('.item[aria-label$="where a number that is not finite comes from"] .flag').count() == 1
    page.locator("#births button").focus()
    page.keyboard.press("Enter")
    assert page.locator("#step h2").inner_text() == "y is computed"
    assert page.locator("#node h2").inner_text() == "y"


def test_backward_it_is_the_first_share_or_sum_of_finite_numbers(show):
    x, c = Value(2e-200, label="x"), Value(1e200, label="c")
    y = x * 1e200
    y.label = "y"
    page = show(y * c * 1e-180 * c)
    assert born(page) == [
        "Backward: y adds 1e+220 × 1e+200 = ∞ to ∂result/∂x, and what this is computed from is finite."
    ]
    page.locator("#births button").click()
    assert page.locator("#step h2").inner_text() == "y passes its gradient on"
    assert page.locator(".contribution .product").inner_text() == "1e+220 × 1e+200 = ∞"

    a = Value(0.0, label="a")
    total = a * 1.5e308 + a * 1.5e308
    page = show(total)
    assert len(born(page)) == 1
    assert born(page)[0].endswith("adds 1.500e308 to ∂result/∂a, which was 1.500e308. The sum is ∞.")
    page.locator("#births button").click()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("gradients.every(Number.isFinite)")  # the step before, all was finite


def test_a_closed_box_or_a_stack_is_marked_and_opened(show):
    @mg.scope
    def energy(mass, speed):
        return mass * speed * speed / 2

    page = show(energy(Value(1.0), Value(2.0)) + energy(Value(1e200), Value(1e100)))
    page.locator("#collapse").click()
    assert flagged(page) == ["energy"]
    page.locator("#births button").click()
    assert page.locator(".item.open.born").count() == 0
    assert flagged(page) == [page.locator("#node h2").inner_text().split(",")[0]]
    assert page.locator(".item.open[aria-label^='energy, 2 of 2']").count() == 1
    page.locator(".item.open").focus()
    page.keyboard.press("[")  # the other member hides it: the stack is marked
    assert flagged(page) == ["energy"]


def test_what_is_given_so_is_said_and_an_edit_that_heals_takes_all_marks_away(show):
    x = Value(math.nan, label="<b>x")
    page = show(mg.maximum(x * 3.0, -math.inf))
    assert born(page) == ["<b>x is given as NaN."]
    assert flagged(page) == ["<b>x"]
    page.locator("#births button").click()
    assert page.locator("#step h2").inner_text() == "What is given"
    page.locator("#edit input").fill("2")
    page.keyboard.press("Enter")
    assert page.locator("#births").is_hidden()  # maximum(x, −∞) is x: the constant does no harm
    assert flagged(page) == []
    assert born(show(Value(2.0) + math.inf)) == ["A constant is given as ∞."]


def test_in_a_recording_it_is_shown_in_the_step_and_not_beside_the_time_of_training(show):
    model = mg.nn.MLP(1, [1])
    recording = mg.Recording(model, [[1e200]], [0.0])
    mg.fit(
        lambda x, y: (model(x) - y) * 1e-300, [([1e200], 0.0)], mg.optim.SGD(model.parameters(), 0.0), record=recording
    )
    recording.model.parameters()[0].data = 1e200
    recording.step(math.inf)
    page = show(recording)
    page.keyboard.press("End")
    assert page.locator("#births").is_hidden()
    page.get_by_role("button", name="One step").click()
    assert page.locator("#order").is_hidden()  # the training's numbers are in the right order
    assert len(born(page)) == 1
    assert "1e+200 × 1e+200 is ∞" in born(page)[0]
    page.get_by_role("button", name="Training", exact=True).click()
    assert page.locator("#births").is_hidden()
