"""Fingers in the graph: what is drawn smaller than a fingertip is reached from around it, and the nearest wins."""

import random

import pytest

import micrograd as mg
from micrograd import Value, nn
from tests.explore.browser.test_everyone import PHONE
from tests.explore.browser.test_page import lecture

pytestmark = pytest.mark.slow


def chain():
    """A row of cards, and a few below it, in no box."""
    x, y = Value(0.5, label="x"), Value(-0.5, label="y")
    return mg.tanh(mg.exp(x * y) - mg.sin(y / x)) + mg.cos(x - y)


def boxes(page):
    """The items of the drawing, with where they are on the screen."""
    return page.evaluate(
        """() => [...visible.values()].filter(({ group }) => !(group && isOpen(group.index))).map((shown) => {
            const { item, element } = shown;
            const { x, y, width, height } = element.querySelector(".frame").getBoundingClientRect();
            return { item, x, y, width, height };
        })"""
    )


def gap(box, x, y):
    across = max(box["x"] - x, 0, x - box["x"] - box["width"])
    return (across**2 + max(box["y"] - y, 0, y - box["y"] - box["height"]) ** 2) ** 0.5


def tapped(page, x, y):
    """The item that the page jumps to where a finger touches it; None where it touches nothing."""
    page.evaluate("window.jumped = null; jumpTo = (item) => (window.jumped = item)")
    page.touchscreen.tap(x, y)
    return page.evaluate("window.jumped")


def small_ones(page, scale):
    page.evaluate(f"fit(); zoom({scale} / view.scale)")
    assert max(min(box["width"], box["height"]) for box in boxes(page)) < 44
    return boxes(page)


def in_graph(page, x, y):
    inside = "([x, y]) => { const found = document.elementFromPoint(x, y); return find('graph').contains(found); }"
    return page.evaluate(inside, [x, y])


@pytest.mark.parametrize("scale", [0.12, 0.3, 0.6])
def test_a_finger_chooses_the_nearest_of_what_is_small(show, scale):
    page = show(chain(), **PHONE, fresh=True)
    cards = small_ones(page, scale)
    stage = page.locator("#graph").bounding_box()
    chance = random.Random(1)
    hits = []
    for _ in range(60):
        x = stage["x"] + chance.uniform(2, stage["width"] - 2)
        y = stage["y"] + chance.uniform(2, stage["height"] - 2)
        if not in_graph(page, x, y):
            continue  # on a button that lies on the graph
        gaps = sorted((gap(card, x, y), card["item"]) for card in cards)
        if abs(gaps[0][0] - 22) < 1 or gaps[1][0] - gaps[0][0] < 1:
            continue  # too near to say
        hits.append(tapped(page, x, y))
        assert hits[-1] == (gaps[0][1] if gaps[0][0] < 22 else None)
    assert {None} < set(hits)


def test_what_is_large_enough_and_what_a_mouse_hits_is_exact(show):
    page = show(chain(), **PHONE, fresh=True)
    page.evaluate("view.scale = 1; centre(visible.get(itemOf(root)))")
    card = next(box for box in boxes(page) if box["item"] == page.evaluate("itemOf(root)"))
    assert tapped(page, card["x"] + card["width"] / 2, card["y"] + card["height"] - 4) == card["item"]
    cards = small_ones(page, 0.3)
    card = next(box for box in cards if box["item"] == page.evaluate("itemOf(root)"))
    page.evaluate("window.jumped = null")
    page.mouse.click(card["x"] + card["width"] + 6, card["y"] + card["height"] / 2)
    assert page.evaluate("window.jumped") is None
    page.mouse.click(card["x"] + card["width"] - 2, card["y"] + card["height"] / 2)
    assert page.evaluate("window.jumped") == card["item"]


def test_titles_and_buttons_of_boxes_are_reached_too(show):
    page = show(lecture()[1], **PHONE, fresh=True)
    page.locator("#expand").tap()
    page.evaluate("fit(); zoom(0.35 / view.scale)")
    stack = page.locator(".item.open:has(.turn)").first
    before = page.locator("#stacks span").first.inner_text()
    where = stack.locator('.turn[data-action="next"]').bounding_box()
    page.evaluate("([x, y]) => { view.x += 150 - x; view.y += 200 - y; look(); }", [where["x"], where["y"]])
    button = stack.locator('.turn[data-action="next"]').bounding_box()
    assert button["height"] < 44
    page.touchscreen.tap(button["x"] + button["width"] / 2, button["y"] - 5)
    assert page.locator("#stacks span").first.inner_text() == before.replace("1 of", "2 of")
    where = stack.locator(".name").bounding_box()
    page.evaluate("([x, y]) => { view.x += 150 - x; view.y += 200 - y; look(); }", [where["x"], where["y"]])
    title = stack.locator(".name").bounding_box()
    item = stack.get_attribute("data-item")
    assert tapped(page, title["x"] + 4, title["y"] - 4) == item


def test_moving_and_pinching_choose_nothing(show):
    page = show(nn.MLP(2, [2, 1])([1.0, 2.0]), **PHONE, fresh=True)
    card = small_ones(page, 0.3)[0]
    page.evaluate("window.jumped = null; jumpTo = (item) => (window.jumped = item)")
    session = page.context.new_cdp_session(page)

    def touch(kind, *points):
        places = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    x, y = card["x"] + card["width"] + 8, card["y"] + 8
    before = page.evaluate("({ ...view })")
    touch("touchStart", (x, y))
    touch("touchMove", (x + 20, y + 10))
    touch("touchMove", (x + 40, y + 20))
    touch("touchEnd")
    after = page.evaluate("({ ...view })")
    assert (after["x"] - before["x"], after["scale"]) == (pytest.approx(40, abs=1), before["scale"])
    touch("touchStart", (x, y))
    touch("touchStart", (x, y), (x + 50, y))
    touch("touchMove", (x - 25, y), (x + 75, y))
    touch("touchEnd")
    assert page.evaluate("view.scale") == pytest.approx(2 * before["scale"], rel=0.1)
    assert page.evaluate("window.jumped") is None
