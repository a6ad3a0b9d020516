"""What is seen first can be read, on a laptop and on a phone: all of the graph, in letters of at least 8 pixels."""

import random
from itertools import pairwise

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.test_explore import chain
from tests.legible import CUT, FAULTS, LAPTOP, PHONE, SIZES, faults, faults_of_graph, photograph

pytestmark = pytest.mark.slow


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


def attention():
    query, keys = (
        [Value(1.5), Value(-0.5)],
        [[Value(1.0), Value(0.5)], [Value(-1.0), Value(0.2)], [Value(0.3), Value(1.0)]],
    )
    values = [Value(number, label=f"value {place}") for place, number in enumerate((0.8, -0.3, 0.4))]
    return mg.dot(mg.softmax([mg.dot(query, key) / 2**0.5 for key in keys]), values)


def convolution():
    random.seed(0)
    layer = mg.nn.Convolution2d(1, 2, 3)
    image = [[Value(random.random()) for _ in range(8)] for _ in range(8)]
    return mg.mean([number**2 for plane in layer(image) for row in plane for number in row])


def recurrent():
    weight, state = Value(0.9, label="w"), Value(0.1, label="s")
    return mg.scan(lambda state, x: (mg.tanh(weight * state + x), None), state, [0.1 * k for k in range(12)])[0]


def compiled():
    random.seed(0)
    model = mg.nn.MLP(3, [8, 1])
    fast = mg.compile(lambda xs: sum(model(x) ** 2 for x in xs))
    fast([[random.random() for _ in range(3)] for _ in range(5)])
    return fast


PROGRAMS = {
    "an expression": expression,
    "a chain": lambda: chain(5),
    "a small network": lambda: mg.nn.MLP(2, [3, 1])([0.5, -0.5]),
    "a batch": batch,
    "labels": many_labels,
    "an image": image,
    "attention": attention,
    "a convolution": convolution,
    "a loop": recurrent,
    "a compiled function": compiled,
    "a call of a compiled function": lambda: compiled()([[0.1, 0.2, 0.3]]),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_of_the_graph_is_in_sight_and_can_be_read(show, name, size):
    options = {"inputs": mg.learn.digits().inputs} if name == "an image" else {}
    assert faults_of_graph(show(PROGRAMS[name](), **options, **SIZES[size]), f"{name} {size}") == []


def recording_of(inputs, labels, **options):
    random.seed(0)
    model = mg.nn.MLP(inputs, [16, labels], activation="tanh")
    rows = [[random.gauss(0, 1) for _ in range(inputs)] for _ in range(4)]
    recording = mg.Recording(model, rows, **options)
    optimizer = mg.optim.SGD(model.parameters(), 0.1)
    mg.fit(lambda x: mg.losses.cross_entropy(model(x), 1), [(x,) for x in rows], optimizer, epochs=2, record=recording)
    return recording


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("inputs", [2, 20])
def test_a_recording_can_be_read_as_a_whole_and_step_by_step(show, inputs, size):
    page = show(recording_of(inputs, 3), **SIZES[size])
    page.wait_for_selector(".cell")
    assert faults(page) == []
    photograph(page, f"recording-{inputs}-{size}")
    page.get_by_role("button", name="One step").click()
    page.locator("#last").click()
    assert faults(page) == []


@pytest.mark.parametrize("size", SIZES)
def test_what_a_notebook_shows_can_be_read(browser, tmp_path, size):
    random.seed(0)
    model = mg.nn.MLP(2, [3, 1])
    points = [([0.1, 0.2], 1), ([0.5, -0.5], -1)] * 4
    history = mg.fit(
        lambda x, side: mg.losses.hinge(model(x), side), points, mg.optim.SGD(model.parameters(), 0.1), epochs=3
    )
    shown = [model._repr_html_(), history._repr_html_(), mg.explore(model([0.5, -0.5]))._repr_html_()]
    path = tmp_path / "notebook.html"
    path.write_text("<!doctype html>" + "".join(f"<div>{html}</div>" for html in shown), encoding="utf-8")
    page = browser.new_page(viewport=SIZES[size])
    page.goto(path.as_uri())
    assert faults(page) == []
    frame = page.locator("iframe").content_frame
    frame.locator("#graph .item").first.wait_for()
    assert frame.locator("html").evaluate(FAULTS) == []
    page.close()


def test_what_is_too_much_for_the_page_is_shown_in_part_and_can_be_read(show):
    values = [Value(0.1 + 0.01 * number) for number in range(12)]
    tangle = values[0]
    for number in range(40):
        tangle = tangle * values[number * 7 % 12] + values[number * 5 % 12]
    page = show(tangle, **PHONE)
    assert faults(page) == []
    assert page.evaluate(CUT)
    page.locator("#fit").click()
    assert page.evaluate(CUT) == []


def test_on_a_phone_the_title_takes_two_lines_before_it_is_cut(show):
    page = show(expression(), **PHONE)
    assert page.locator("h1").inner_text() == "Backpropagation, step by step"
    assert page.locator("h1").evaluate("h => h.scrollWidth <= h.clientWidth && h.scrollHeight <= h.clientHeight")


def test_many_inputs_of_a_layer_are_one_box_and_named_ones_are_a_map(show):
    page = show(image(), **LAPTOP)
    box = page.locator('.item[aria-label^="Inputs"]')
    assert box.count() == 1
    page = show(image(), inputs={"image": (8, 8)}, **LAPTOP)
    box = page.locator('.item[aria-label^="image"]')
    assert box.count() == 1
    pixels, gradients = (box.locator(".cells").nth(number) for number in range(2))
    assert gradients.get_attribute("transform") == pixels.get_attribute("transform")  # they are on top
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
        assert faults(page) == []


def test_short_rows_stay_as_they_are(show):
    page = show(chain(3), **LAPTOP)
    assert page.evaluate("wrapped(passes.shapes[0]) === passes.shapes[0]")


@pytest.mark.parametrize(("inputs", "labels"), [(2, 3), (20, 10)])
def test_the_cells_of_a_recording_are_all_in_sight_and_hold_their_numbers(show, inputs, labels):
    recording = recording_of(inputs, labels)
    for size in SIZES.values():
        page = show(recording, **size)
        page.wait_for_selector(".cell")
        network = page.locator("#network").bounding_box()
        for box in [cell.bounding_box() for cell in page.locator(".cell").all()]:
            assert network["x"] <= box["x"]
            assert box["x"] + box["width"] <= network["x"] + network["width"]
            assert box["y"] + box["height"] <= network["y"] + network["height"]
