"""What is seen first can be read, on a laptop and on a phone: all of the graph, in letters of at least 8 pixels."""

import random
from itertools import pairwise

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.test_explore import chain

pytestmark = pytest.mark.slow

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
SEEN = """() => {
  const frame = document.getElementById("graph").getBoundingClientRect();
  const shown = (element) => element.getBoundingClientRect().width > 0;
  const texts = [...document.querySelectorAll("#graph text")].filter(shown);
  const cut = [...document.querySelectorAll("#graph .item")].map((item) => item.getBoundingClientRect())
    .filter((box) => box.left < frame.left - 2 || box.right > frame.right + 2 ||
      box.top < frame.top - 2 || box.bottom > frame.bottom + 2);
  const size = (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a;
  return [Math.min(...texts.map(size)), cut.length];
}"""


def network(inputs, hidden, outputs, given=None):
    random.seed(0)
    model = mg.nn.MLP(inputs, [hidden, outputs], activation="tanh")
    return mg.losses.cross_entropy(model(given or [Value(random.random()) for _ in range(inputs)]), 1)


def expression():
    a, b = Value(2.0, label="a"), Value(3.0, label="b")
    return mg.tanh(a * b + 1.0) * a


def batch():
    random.seed(0)
    model = mg.nn.MLP(2, [16, 16, 1])
    points = [[random.random(), random.random()] for _ in range(4)]
    return sum(mg.losses.hinge(model(point), 1.0) for point in points) * 0.25


def many_labels():
    values = [Value(0.1 * number, label=f"v{number}") for number in range(12)]
    return mg.softmax(values)[0]


def image():
    return network(64, 16, 10)


PROGRAMS = {
    "an expression": expression,
    "a chain": lambda: chain(5),
    "a small network": lambda: mg.nn.MLP(2, [3, 1])([0.5, -0.5]),
    "a batch": batch,
    "labels": many_labels,
    "an image": image,
}


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_the_graph_is_in_sight_and_can_be_read(show, name, size):
    page = show(PROGRAMS[name](), **size)
    smallest, cut = page.evaluate(SEEN)
    assert smallest >= 8
    assert cut == 0
    page.evaluate("go(Math.floor(0.75 * steps.length))")  # in the backward pass
    assert page.evaluate(SEEN)[0] >= 8
    if page.locator("#expand").is_enabled():
        page.evaluate("document.getElementById('expand').click()")
        assert page.evaluate(SEEN)[0] >= 8
        assert page.evaluate("[...document.querySelectorAll('#graph text')].length") > 0


def test_what_is_too_much_for_the_page_is_shown_in_part_and_can_be_read(show):
    values = [Value(0.1 + 0.01 * number) for number in range(12)]
    tangle = values[0]
    for number in range(40):
        tangle = tangle * values[number * 7 % 12] + values[number * 5 % 12]
    page = show(tangle, **PHONE)
    smallest, cut = page.evaluate(SEEN)
    assert smallest >= 8
    assert cut > 0
    page.locator("#fit").click()
    assert page.evaluate(SEEN)[1] == 0


def test_many_inputs_of_a_layer_are_one_box_and_named_ones_are_a_map(show):
    page = show(image(), **LAPTOP)
    box = page.locator('.item[aria-label^="Inputs"]')
    assert box.count() == 1
    page = show(image(), inputs={"image": (8, 8)}, **LAPTOP)
    box = page.locator('.item[aria-label^="image"]')
    assert box.count() == 1
    assert box.locator(".cells").count() == 2  # its numbers, and its gradients
    page.locator("#last").click()
    widths = (
        box.locator(".cells").nth(1).locator("path").evaluate_all("paths => paths.map((path) => path.getBBox().width)")
    )
    assert max(widths) > 30


class TestLongRows:
    @pytest.fixture(params=[LAPTOP, PHONE], ids=["laptop", "phone"])
    def shape(self, show, request):
        return show(chain(50), **request.param).evaluate("wrapped(passes.shapes[0])")

    def test_are_wrapped_as_a_text_is(self, shape):
        boxes = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for x, y, w, h in shape["places"]]
        for left, top, right, bottom in boxes:
            assert 0 <= left < right <= shape["width"]
            assert -0.01 <= top < bottom <= shape["height"] + 0.01
        for index, one in enumerate(boxes):
            for other in boxes[:index]:
                assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert len([two for one, two in pairwise(sorted(boxes, key=lambda box: box[1])) if two[0] < one[0]]) >= 3

    def test_arrows_lead_from_row_to_row_beside_all_that_stands_there(self, shape):
        places = shape["places"]
        lines = [route for route in shape["routes"] if places[route[1]][0] < places[route[0]][0]]
        assert len(lines) > 2
        for tail, head, points in lines:
            (x, y, w, _), (u, v, width, _) = places[tail], places[head]
            assert points[:2] == pytest.approx([x + w / 2, y], abs=0.1)
            assert points[-2:] == pytest.approx([u - width / 2, v], abs=0.1)
            for at in range(0, len(points), 2):
                inside = [
                    place
                    for place in places
                    if abs(points[at] - place[0]) < place[2] / 2 - 1
                    and abs(points[at + 1] - place[1]) < place[3] / 2 - 1
                ]
                assert inside == []

    def test_follow_the_width_of_the_page_and_are_read_downwards(self, show):
        page = show(chain(20), **LAPTOP)
        page.set_viewport_size(PHONE)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")  # it lays them out again
        left, right = page.evaluate("[view.x, view.x + view.scale * size.width]")
        assert 0 < left < right < PHONE["width"]
        assert page.evaluate("view.y") > 0
        assert page.evaluate(SEEN)[0] >= 8


def test_short_rows_stay_as_they_are(show):
    page = show(chain(3), **LAPTOP)
    assert page.evaluate("wrapped(passes.shapes[0]) === passes.shapes[0]")


def test_the_cells_of_a_film_are_all_in_sight_and_hold_their_numbers(show):
    random.seed(0)
    model = mg.nn.MLP(20, [16, 10], activation="tanh")
    rows = [[random.gauss(0, 1) for _ in range(20)] for _ in range(4)]
    recording = mg.Recording(model, rows)
    optimizer = mg.optim.SGD(model.parameters(), 0.1)
    mg.fit(lambda x: mg.losses.cross_entropy(model(x), 3), [(x,) for x in rows], optimizer, epochs=2, record=recording)
    for size in (LAPTOP, PHONE):
        page = show(recording, **size)
        page.wait_for_selector(".cell")
        network = page.locator("#network").bounding_box()
        for box in [cell.bounding_box() for cell in page.locator(".cell").all()]:
            assert network["x"] <= box["x"]
            assert box["x"] + box["width"] <= network["x"] + network["width"]
            assert box["y"] + box["height"] <= network["y"] + network["height"]
        assert (
            page.locator(".cell .says").evaluate_all(
                "all => all.filter((each) => each.scrollWidth > each.clientWidth).length"
            )
            == 0
        )
