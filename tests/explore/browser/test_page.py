"""The page in a real browser: what it shows at each step is what the engine computes."""

import math
import random
import re
from pathlib import Path

import pytest

import micrograd as mg
from micrograd import Value
from micrograd.contexts.calls import neuron_call
from micrograd.draw.text import enclosed
from micrograd.engine.primitive import composite
from micrograd.pages.formulas import TABLE
from micrograd.pages.passes import in_program_order
from tests.legible import CUT, FAULTS, LAPTOP, PHONE, photograph

pytestmark = pytest.mark.slow


def line_of(text):
    return next(number for number, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def shared():
    """A graph whose nodes are used more than once: x three times, s twice by one operation."""
    x, y = Value(2.0, label="x"), Value(-3.0, label="y")
    s = x * y
    s.label = "s"
    q = s * s
    q.label = "q"
    t = mg.tanh(x / 4)
    t.label = "t"
    f = q + t * x
    f.label = "f"
    return f


def labelled(root):
    return {node.label: node for node in mg.topological_order(root) if node.label}


def number(text):
    return float(text.replace("−", "-"))


def rows(page):
    """The rows of the panel about a Value."""
    names, texts = page.locator("#node dt").all_inner_texts(), page.locator("#node dd").all_inner_texts()
    return dict(zip(names, texts, strict=True))


def looked_at(page, label):
    """What the panel says about a Value that is looked at, without a step taken."""
    item = page.locator(f'.item[aria-label^="{label},"]')
    item.dispatch_event("pointerover", {"pointerType": "mouse", "bubbles": True})
    assert page.locator("#node h2").inner_text() == label
    return rows(page)


def passes_by_hand(root):
    """The gradients after each step of the backward pass, by micrograd's closures node by node."""
    nodes = mg.topological_order(root)
    saved = [node.grad for node in nodes]
    order = iter_visits(root)
    for node in nodes:
        node.grad = 0.0
    root.grad = 1.0
    states = [{node: node.grad for node in nodes}]
    for node in order:
        node._backward()
        states.append({node: node.grad for node in nodes})
    for node, grad in zip(nodes, saved, strict=True):
        node.grad = grad
    return states


def iter_visits(root):
    """The engine's order, as operations of one's own see it: each notes when it is visited."""
    from micrograd.engine.backward import backpropagate

    return [node for node in backpropagate(root, 0.0) if not node.is_leaf]


class TestSteps:
    def test_forward_each_number_appears_when_it_is_computed(self, show):
        root = shared()
        page = show(root)
        results = [node for node in in_program_order(root) if not node.is_leaf]
        for step in range(len(results) + 1):
            computed = set(results[:step])
            for label, node in labelled(root).items():
                told = looked_at(page, label)["data"]
                assert told == "not computed yet" if node in set(results) - computed else number(told) == node.data
            page.keyboard.press("ArrowRight")

    def test_backward_each_gradient_is_the_engines_after_that_visit_and_backwards_again(self, show):
        root = shared()
        states = passes_by_hand(root)
        page = show(root)
        page.keyboard.press("End")
        for state in reversed(states):
            for label, node in labelled(root).items():
                told = looked_at(page, label)["grad"].removesuffix(" so far")
                assert told == "not yet" if state[node] == 0 else number(told) == state[node]
            page.mouse.move(5, 300)
            page.keyboard.press("ArrowLeft")

    def test_the_last_step_has_the_gradients_of_backward(self, show):
        root = shared()
        page = show(root)
        page.locator("#last").click()
        root.backward()
        for label, node in labelled(root).items():
            assert number(looked_at(page, label)["grad"]) == node.grad

    def test_the_chain_rule_is_shown_in_words_and_numbers(self, show):
        x, y = Value(2.0, label="x"), Value(-3.0, label="y")
        a = x * y
        a.label = "a"
        f = a + x
        f.label = "f"
        page = show(f)
        page.keyboard.press("End")
        assert page.locator("#step h2").inner_text() == "a passes its gradient on"
        to_x, to_y = page.locator(".contribution").all()
        assert to_x.locator(".local").inner_text() == "∂a/∂x = y = −3"
        assert to_x.locator(".product").inner_text() == "1 × (−3) = −3"
        assert to_x.locator(".sum").inner_text() == "1 + (−3) = −2"
        assert to_x.locator(".left").inner_text() == "Complete."
        assert to_y.locator(".sum").inner_text() == "0 + 2 = 2"
        page.keyboard.press("ArrowLeft")
        assert page.locator(".contribution").nth(1).locator(".left").inner_text() == "1 more contribution to come."

    def test_play_runs_to_the_end_and_pause_stops(self, show):
        page = show(shared(), fresh=True)
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        page.locator("#speed").select_option("200")
        page.locator("#play").click()
        assert page.locator("#play").get_attribute("aria-label") == "Pause"
        page.clock.run_for(60_000)
        assert page.locator("#last").is_disabled()
        assert page.locator("#play").get_attribute("aria-label") == "Play"
        page.locator("#play").click()  # from the start again
        page.clock.run_for(100)
        assert page.locator("#count").inner_text().startswith("forward 1/")
        page.keyboard.press("Space")
        assert page.locator("#play").get_attribute("aria-label") == "Play"
        page.clock.run_for(10_000)
        assert page.locator("#count").inner_text().startswith("forward 1/")

    def test_the_slider_and_a_click_on_a_node_jump(self, show):
        page = show(shared())
        page.locator("#slider").fill("3")
        assert page.locator("#count").inner_text() == "forward 3/6"
        page.locator('.item[aria-label^="q,"]').click()
        assert page.locator("#step h2").inner_text() == "q is computed"
        page.keyboard.press("End")
        page.locator('.item[aria-label^="q,"]').click()
        assert page.locator("#step h2").inner_text() == "q passes its gradient on"

    def test_what_choices_chose_and_why(self, show):
        x = Value(2.0, label="x")
        r = mg.relu(x)
        r.label = "r"
        page = show(r)
        page.keyboard.press("End")
        assert page.locator(".local").inner_text() == "∂r/∂x = 1, as x > 0"

    @pytest.mark.parametrize(
        ("function", "formula"),
        [
            (mg.tanh, "1 − r ** 2 = "),
            (mg.sigmoid, "r × (1 − r) = "),
            (mg.silu, "sigmoid(x) + r × (1 − sigmoid(x)) = "),
            (mg.erf, "1.128 × exp(−x ** 2) = "),
        ],
    )
    def test_rules_are_shown_as_books_have_them(self, show, function, formula):
        r = function(Value(0.5, label="x"))
        r.label = "r"
        page = show(r)
        page.keyboard.press("End")
        assert f"∂r/∂x = {formula}" in page.locator(".local").inner_text()

    @pytest.mark.parametrize("make", [lambda x: mg.no_grad()(lambda: x * 2)(), lambda x: mg.sqrt(x - 2)])
    def test_a_graph_without_a_backward_pass_says_why(self, show, make):
        page = show(make(Value(2.0, label="x")))
        assert "backward pass" in page.locator("#notes").inner_text()
        page.keyboard.press("End")
        assert page.locator("#count").inner_text().startswith(("forward", "start"))


class TestGraph:
    def test_looking_at_a_node_says_who_uses_it_and_lights_the_paths_to_the_root(self, show):
        page = show(shared())
        told = looked_at(page, "s")
        assert page.locator("#node .link bdi").all_inner_texts() == ["x", "y", "q"]
        assert told["operation"] == "mul"
        lit = {
            text.split(",")[0]
            for text in page.locator(".item.path").evaluate_all("items => items.map(i => i.ariaLabel)")
        }
        assert lit == {"s", "q", "f"}

    def test_find_goes_to_the_label_and_opens_the_group_it_is_in(self, show):
        model = mg.nn.MLP(2, [16, 16, 1])
        model.layers[1].neurons[3].w[2].label = "needle"
        page = show(model([1.0, 2.0]))
        assert page.locator('.item[aria-label^="needle,"]').count() == 0
        page.keyboard.press("/")
        page.keyboard.type("NEED")
        page.keyboard.press("Enter")
        assert page.locator("#find-count").inner_text() == "1 of 1"
        assert page.locator("#node h2").inner_text() == "needle"
        assert rows(page)["in"] == "Layer 2 › Neuron 4 › dot of 16"
        assert page.locator('.item[aria-label^="needle,"]').is_visible()

    def test_groups_open_and_close_and_nothing_overlaps(self, show):
        random.seed(0)
        page = show((mg.nn.MLP(2, [3, 2, 1])([1.0, 2.0]) - 1) ** 2, width=3000, height=1500)
        count = page.locator("#nodes .item").count()
        assert_no_overlap(page)
        page.locator("#collapse").click()
        assert page.locator("#nodes .item.closed").count() == 3
        assert_no_overlap(page)
        page.locator('.item[aria-label^="Layer 1,"]').click()
        assert page.locator('.item[aria-label^="Layer 1,"]').get_attribute("aria-expanded") == "true"
        assert page.locator('.item.closed[aria-label^="Neuron"]').count() == 3
        assert_no_overlap(page)
        page.locator("#expand").click()
        assert page.locator("#nodes .item").count() == count
        page.locator('.item.open[aria-label^="Layer 1,"] text').click()
        assert page.locator("#nodes .item").count() < count

    def test_zoom_and_pan(self, show):
        page = show(shared())
        place = page.locator('.item[aria-label^="q,"]')
        before = place.bounding_box()
        page.mouse.move(300, 300)
        page.mouse.wheel(0, -300)
        wider = place.bounding_box()
        assert wider["width"] > before["width"]
        page.mouse.move(40, 120)
        page.mouse.down()
        page.mouse.move(140, 170, steps=4)
        page.mouse.up()
        moved = place.bounding_box()
        assert moved["x"] == pytest.approx(wider["x"] + 100, abs=2)
        assert moved["y"] == pytest.approx(wider["y"] + 50, abs=2)

    def test_what_has_no_label_has_a_name(self, show):
        page = show(mg.nn.Neuron(2, activation="tanh")([1.0, 2.0]) * 2)
        names = page.locator("#nodes .item").evaluate_all("items => items.map((item) => item.ariaLabel.split(',')[0])")
        assert sorted(name for name in names if len(name) < 5) == ["b", "w[0]", "w[1]"]
        results = ["neuron, product 1", "neuron, product 2", "neuron, sum 1", "neuron, sum 2", "neuron, tanh", "result"]
        found = page.evaluate("nodes.filter(({ kind }) => kind === 'result').map(({ index }) => fullNameOf(index))")
        assert sorted(found) == results

    def test_keys_zoom(self, show):
        page = show(shared())
        place = page.locator('.item[aria-label^="q,"]')
        widths = [place.bounding_box()["width"]]
        for key in "+-+0":
            page.keyboard.press(key)
            widths.append(place.bounding_box()["width"])
        all_shown, wider, *back = widths
        assert wider > all_shown
        assert back == pytest.approx([all_shown, wider, all_shown])

    def test_touch(self, show):
        page = show(shared(), width=390, height=844, has_touch=True, is_mobile=True)
        page.locator("#next").tap()
        page.locator("#fit").tap()
        page.locator('.item[aria-label^="x,"]').tap()
        assert page.locator("#node h2").inner_text() == "x"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    def test_3000_values_step_and_zoom_smoothly_from_afar_and_near(self, show):
        random.seed(0)
        values = [Value(random.random()) for _ in range(5)]
        while len(values) < 1740:
            one, other = random.sample(values[-40:], 2)
            values.append(mg.tanh(one * other))
        root = sum(values[-40:])
        assert 2800 < len(mg.topological_order(root)) <= 3000
        page = show(root)
        page.locator("#expand").click()
        page.locator("#fit").click()  # Open all keeps to what can be read
        assert page.locator("#nodes .item").count() > 2800
        processor = page.context.new_cdp_session(page)
        processor.send("Performance.enable", {"timeDomain": "threadTicks"})
        for near in (False, True):
            before = busy(processor)
            page.evaluate(
                """async near => {
                if (near) { view.scale = 0.8; centre(visible.get("n1500")); }
                const frame = () => new Promise(requestAnimationFrame);
                for (let step = 0; step < 20; step++) {
                    document.getElementById("next").click();
                    const wheel = new WheelEvent("wheel", { deltaY: step % 2 ? 40 : -40, cancelable: true });
                    graph.dispatchEvent(wheel);
                    graph.getBoundingClientRect();
                    await frame();
                }
            }""",
                near,
            )
            assert (busy(processor) - before) / 20 < 0.1  # it is 0.01 to 0.04
        processor.detach()

    @pytest.mark.parametrize("size", [3000, 3001])
    def test_a_large_one_opens_closed_and_beyond_3000_values_no_button_opens_all(self, show, size):
        page = show(of_size(Value(0.5), size))
        assert page.locator("#nodes .item").count() < 100
        assert page.locator("#expand").is_hidden() == (size > 3000)

    @pytest.mark.parametrize("count", [12, 60])
    def test_where_there_is_room_the_sums_of_a_small_graph_are_open_too(self, show, count):
        xs = [Value(0.1 * number, label=f"x{number}") for number in range(count)]
        page = show(mg.dot(xs, xs), width=4000, height=3000)
        assert bool(page.locator("#nodes .item.closed").count()) == (count == 60)  # 179 Values


def of_size(root, size):
    for _ in range(size - len(mg.topological_order(root))):
        root = mg.tanh(root)
    return root


def busy(processor):
    """The seconds of processor time that a page has spent on its script, its styles and its layout."""
    metrics = {metric["name"]: metric["value"] for metric in processor.send("Performance.getMetrics")["metrics"]}
    return metrics["ScriptDuration"] + metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]


def assert_no_overlap(page):
    """No card lies on another, and every text is inside its card."""
    boxes = page.locator("#nodes .item").evaluate_all(
        """items => items.map((item) => {
            const { left, top, right, bottom } = item.querySelector(".frame").getBoundingClientRect();
            const texts = [...item.querySelectorAll("text")].map((text) => {
                const box = text.getBoundingClientRect();
                return [box.left, box.right, text.textContent];
            });
            return [left, top, right, bottom, texts];
        })"""
    )
    for index, (left, top, right, bottom, texts) in enumerate(boxes):
        for begin, end, text in texts:
            assert not text or (begin >= left - 1 and end <= right + 1), text
        for other in boxes[:index]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def lecture():
    """The network of micrograd's lecture, and its loss on four samples."""
    random.seed(1337)
    model = mg.nn.MLP(3, [4, 4, 1], activation="tanh")
    inputs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    loss = sum((model(x) - y) ** 2 for x, y in zip(inputs, [1.0, -1.0, -1.0, 1.0], strict=True))
    loss.label = "loss"
    return model, loss


class TestFolding:
    def test_the_lectures_network_opens_as_a_whole_that_can_be_read(self, show):
        page = show(lecture()[1], width=1440, height=900)
        stage = page.locator("#stage").bounding_box()
        for item in page.locator(".item .frame").all():
            box = item.bounding_box()
            assert stage["x"] <= box["x"] <= box["x"] + box["width"] <= stage["x"] + stage["width"]
            assert stage["y"] <= box["y"] <= box["y"] + box["height"] <= stage["y"] + stage["height"]
        sizes = page.locator(".item text").evaluate_all(
            "texts => texts.map((text) => parseFloat(getComputedStyle(text).fontSize) * view.scale)"
        )
        assert min(sizes) >= 8
        assert len(sizes) > 40
        assert page.locator('.item[aria-label^="Neuron"]').count() == 8

    def test_a_stack_is_looked_through_with_keys_and_by_clicking(self, show):
        page = show(lecture()[1], width=1440, height=900)
        page.keyboard.press("End")
        stack = page.locator('.item[aria-label^="Sample,"]')
        assert stack.get_attribute("aria-label").startswith("Sample, 1 of 4")
        seen = []
        for key in "]]][":
            seen.append(page.locator('.item[aria-label^="Neuron 1"] .number').first.text_content())
            stack.focus()
            page.keyboard.press(key)
        assert len(set(seen)) == 4
        assert stack.get_attribute("aria-label").startswith("Sample, 3 of 4")
        page.locator('[data-action="next"]').click()
        page.locator('[data-action="next"]').click()
        assert stack.get_attribute("aria-label").startswith("Sample, 1 of 4")

    def test_a_stack_side_by_side_and_one_by_one_again(self, show):
        page = show(lecture()[1], width=1440, height=900)
        neurons = page.locator('.item[aria-label^="Neuron"]')
        page.locator('[data-action="spread"]').click()
        assert page.locator('.item[aria-label^="Sample "]').count() == 4
        assert_no_overlap(page)
        page.locator('.item.closed[aria-label^="Sample 2"]').click()
        page.locator('.item.open[aria-label^="Sample,"]').focus()
        page.keyboard.press("s")
        assert neurons.count() == 8

    def test_find_turns_a_stack_to_what_is_found(self, show):
        model, loss = lecture()
        nodes = mg.topological_order(loss)
        called = [(call, node) for node in nodes if (call := neuron_call(node)) is not None]
        third = [(call.end, node) for call, node in called if call.of is model.layers[2].neurons[0]]
        sorted(third, key=lambda pair: pair[0])[2][1].label = "third"
        page = show(loss)
        page.locator("#find-text").fill("third")
        page.keyboard.press("Enter")
        assert page.locator("#node h2").inner_text() == "third"
        assert "Sample 3" in rows(page)["in"]
        assert page.locator('.item[aria-label^="Sample,"]').get_attribute("aria-label").startswith("Sample, 3 of 4")

    def test_strips_have_the_colours_of_their_numbers(self, show):
        x = [Value(number) for number in (1.0, -1.0, 0.0, math.nan, 0.01, 0.25)]
        page = show(mg.maximum(*[each * 2.0 for each in x]))
        page.keyboard.press("End")
        page.locator("#collapse").click()
        strip = page.locator('.item.closed[aria-label^="x × 2"] .cells').first
        fills = strip.locator("path").evaluate_all("paths => paths.map((path) => path.style.fill)")
        assert len(fills) >= 4
        assert any("--not-a-number" in fill for fill in fills)
        assert any("--negative" in fill for fill in fills)

    def test_parameters_of_a_matrix_are_a_heat_map(self, show):
        class Head(mg.nn.Module):
            def __init__(self):
                self.query = [[Value(row - column + 0.5) for column in range(5)] for row in range(4)]

            def __call__(self, x):
                return sum(mg.tanh(mg.dot(row, x)) for row in self.query)

        head = Head()
        page = show(head([1.0, 2.0, 3.0, 4.0, 5.0]) + head([1.0] * 5), width=1440, height=900)
        page.keyboard.press("End")
        maps = page.locator('.item[aria-label^="Parameters"] .cells')
        cells = maps.first.locator("path").evaluate_all(
            "paths => paths.map((p) => p.getAttribute('d').split('M').length - 1)"
        )
        assert sum(cells) == 20

    def test_a_compiled_function_opens_to_its_kernels_and_these_to_scalars(self, show):
        weights = [[Value(0.1 * row - 0.2 * column) for column in range(3)] for row in range(4)]

        def layer(x):
            return mg.mean([mg.tanh(mg.dot(row, x)) ** 2 for row in weights])

        page = show(mg.compile(layer)([Value(x, label=f"x{x}") for x in (0.5, -1.0, 2.0)]) * 2.0)
        page.locator("#collapse").click()
        page.keyboard.press("End")
        page.locator('.item.closed[aria-label^="compiled layer"]').press("Enter")
        kernels = page.locator(".item.closed").evaluate_all(
            "items => items.map((item) => item.ariaLabel.split(',')[0])"
        )
        assert kernels == ["Parameters", "1: matrix-vector", "2: tanh", "3: matrix-vector", "4: product"]
        page.locator('.item.closed[aria-label^="2: tanh"]').press("Enter")
        page.locator('.item.closed[aria-label^="tanh"]').press("Enter")
        assert page.locator('.item[aria-label*="result of tanh"]').count() == 4
        page.locator("#find-text").fill("x0.5")
        page.locator("#find-text").press("Enter")
        page.locator("#edit input").fill("0.75")
        page.keyboard.press("Enter")
        again = layer([Value(0.75), -1.0, 2.0]) * 2.0
        assert page.evaluate("nodes[root].data") == pytest.approx(again.data, rel=1e-13)

    def test_a_step_takes_a_closed_box_as_a_whole_and_an_open_one_step_by_step(self, show):
        page = show(lecture()[1], width=1440, height=900)
        page.keyboard.press("ArrowRight")
        assert page.locator("#step h2").inner_text() == "Neuron 1 is computed"
        assert page.locator("#count").inner_text() == "forward 7/300"
        page.get_by_role("button", name="Open it").click()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#count").inner_text() == "forward 6/300"
        page.keyboard.press("Home")
        page.locator("#collapse").click()
        for expected in ("Sample 1 of 4", "loss = sum of 4"):
            page.keyboard.press("ArrowRight")
            assert page.locator("#step h2").inner_text() == f"{expected} is computed"
        for _ in range(2):
            page.keyboard.press("ArrowLeft")
        assert page.locator("#count").inner_text() == "start"

    def test_in_the_backward_pass_arrows_point_backward(self, show):
        page = show(shared())
        edge = page.locator(".edge:not(.active)").first
        ends = "edge => [getComputedStyle(edge).markerStart, getComputedStyle(edge).markerEnd]"
        assert edge.evaluate(ends) == ["none", 'url("#tip")']
        page.keyboard.press("End")
        assert edge.evaluate(ends) == ['url("#tip")', "none"]

    def test_what_a_function_of_the_library_passes_back_is_said_in_words(self, show):
        x = [Value(float(number), label=f"x{number}") for number in range(3)]
        page = show(mg.losses.cross_entropy(x, 1) * 2)
        page.locator("#collapse").click()
        page.keyboard.press("End")
        text = page.locator("#step").inner_text()
        assert "p − y" in text
        assert "−log softmax(x)[target]" in text
        root = mg.losses.cross_entropy(x, 1) * 2
        root.backward()
        largest = max(x, key=lambda value: abs(value.grad))
        first = re.search(r"∂result/∂(\w+) = (\S+)", text)
        assert first[1] == largest.label
        assert number(first[2]) == pytest.approx(largest.grad, rel=1e-3)

    def test_a_play_takes_no_more_steps_than_one_can_watch(self, show):
        page = show(of_size(Value(0.5), 3000), fresh=True)
        page.locator("#expand").click()
        page.clock.install(time=0)
        page.clock.pause_at(1000)
        page.locator("#speed").select_option("200")
        page.locator("#play").click()
        page.clock.run_for(30_000)
        assert page.locator("#last").is_disabled()

    @pytest.mark.parametrize("motion", ["reduce", "no-preference"])
    def test_the_camera_moves_smoothly_but_not_for_those_who_prefer_no_motion(self, show, motion):
        page = show(shared(), reduced_motion=motion)
        page.keyboard.press("+")
        page.keyboard.press("+")
        before = page.evaluate("view.scale")
        at_once = page.evaluate("(fit(), view.scale)")
        assert (at_once == before) == (motion == "no-preference")
        while page.evaluate("scaleFor(size, bounds().width, bounds().height) !== view.scale"):
            page.wait_for_timeout(50)


class TestEditing:
    def edit(self, page, label, text):
        page.locator(f'.item[aria-label^="{label},"]').click()
        page.locator("#edit input").fill(text)
        page.keyboard.press("Enter")

    def test_a_changed_leaf_gives_the_engines_numbers(self, show):
        root = shared()
        page = show(root)
        page.keyboard.press("End")
        self.edit(page, "x", "0.7")
        x, y = Value(0.7), Value(-3.0)
        s = x * y
        f = s * s + mg.tanh(x / 4) * x
        f.backward()
        for label, node in {"x": x, "y": y, "s": s, "f": f}.items():
            told = looked_at(page, label)
            assert number(told["data"]) == pytest.approx(node.data, rel=1e-14)
            assert number(told["grad"]) == pytest.approx(node.grad, rel=1e-14)

    def test_what_is_no_number_changes_nothing(self, show):
        page = show(shared())
        for text in ("", "two", "1e999", "NaN", "0x", "1 2"):
            self.edit(page, "x", text)
            assert "Nothing was changed" in page.get_by_role("alert").inner_text()
            assert looked_at(page, "x")["data"] == "2"
            page.locator('.item[aria-label^="y,"]').click()  # another editor

    def test_where_the_engine_would_raise_nothing_is_changed(self, show):
        x = Value(2.0, label="x")
        page = show(mg.log(x) / x)
        self.edit(page, "x", "-1")
        assert "log(−1)" in page.get_by_role("alert").inner_text()
        assert looked_at(page, "x")["data"] == "2"

    def test_an_unknown_primitive_disables_editing_with_a_note(self, show):
        @mg.operation
        def cube(x):
            return x**3, lambda g: g * 3 * x * x

        x = Value(2.0, label="x")
        page = show(cube(x) + x)
        page.locator('.item[aria-label^="x,"]').click()
        assert page.locator("#edit").count() == 0
        assert "cannot compute cube" in page.locator("#node").inner_text()
        page.keyboard.press("End")
        assert number(looked_at(page, "x")["grad"]) == 13

    def test_a_composite_of_ones_own_is_computed_from_its_formula(self, show):
        swish = mg.engine.primitive.Primitive(
            "swish", "swish", composite(lambda on, x: on.silu(2 * x)), lambda g, out, x: 4 * g * mg.sigmoid(x)
        )
        x = Value(2.0, label="x")
        root = swish(x) * 3
        root.label = "root"
        page = show(root)
        self.edit(page, "x", "0.5")
        again = Value(0.5)
        (swish(again) * 3).backward()
        page.locator("#last").click()
        told = page.evaluate("[nodes[root].data, gradients[nodes.find((node) => node.label === 'x').index]]")
        assert told == pytest.approx([3 * mg.silu(1.0), again.grad], rel=1e-12)

    def test_every_primitive_computes_as_the_engine_does(self, show):
        random.seed(1)
        differentiable = {name: primitive for name, primitive in TABLE.items() if any(primitive.derivatives)}
        rounds = [{name: inside(primitive) for name, primitive in differentiable.items()} for _ in range(8)]
        leaves = {name: [Value(x, label=f"{name}-{i}") for i, x in enumerate(xs)] for name, xs in rounds[0].items()}
        results = {name: TABLE[name](*operands) for name, operands in leaves.items()}
        page = show(sum(results.values()))
        for inputs in rounds:
            ours = page.evaluate(
                """inputs => {
                    const leaf = Object.fromEntries(nodes.map((node) => [node.label, node.index]));
                    const numbers = new Map();
                    for (const [name, xs] of Object.entries(inputs)) {
                        xs.forEach((x, i) => numbers.set(leaf[`${name}-${i}`], x));
                    }
                    setNumbers(numbers);
                    at = steps.length - 1;
                    show();
                    const shown = (index) => [nodes[index].data, gradients[index]];
                    const result = (name) => nodes[leaf[`${name}-0`]].users[0];
                    return Object.fromEntries(Object.entries(inputs).map(([name, xs]) =>
                        [name, [shown(result(name)), ...xs.map((_, i) => shown(leaf[`${name}-${i}`]))]]));
                }""",
                inputs,
            )
            for name, xs in inputs.items():
                operands = [Value(x) for x in xs]
                result = TABLE[name](*operands)
                if result.requires_grad:
                    result.backward()
                theirs = [result.data, *(operand.grad for operand in operands)]
                told = [ours[name][0][0], *(pair[1] for pair in ours[name][1:])]
                assert told == pytest.approx(theirs, rel=1e-12, abs=1e-14), (name, xs)


def inside(primitive):
    """A point of its domain."""
    domain = primitive.domain or ((-math.inf, math.inf),)
    return [random.uniform(max(low, -3) + 0.01, min(high, 3) - 0.01) for low, high in domain]


class TestKeyboard:
    def test_everything_can_be_done_with_keys_alone(self, show):
        page = show((mg.nn.MLP(2, [2, 1])([Value(1.0, label="x"), 2.0]) - 1) ** 2, width=3000, height=1500)
        press = page.keyboard.press
        press("ArrowRight")
        assert page.locator("#count").inner_text().startswith("forward 1/")
        press("End")
        press("Home")
        assert page.locator("#count").inner_text() == "start"
        for _ in range(40):  # to the graph, by Tab alone
            press("Tab")
            if page.evaluate("document.activeElement.classList.contains('item')"):
                break
        first = page.evaluate("document.activeElement.dataset.item")
        press("ArrowLeft")
        assert page.evaluate("document.activeElement.dataset.item") != first
        press("Enter")
        assert page.evaluate("document.activeElement.classList.contains('item')")
        press("/")
        page.keyboard.type("Layer")
        page.keyboard.press("Escape")
        page.locator('.item.open[aria-label^="Layer 1,"]').focus()
        press("Enter")
        assert page.locator('.item[aria-label^="Layer 1,"]').get_attribute("aria-expanded") == "false"
        assert page.evaluate("document.activeElement.ariaLabel").startswith("Layer 1,")
        press("Enter")
        assert page.locator('.item[aria-label^="Layer 1,"]').get_attribute("aria-expanded") == "true"

    def test_each_step_is_said_to_screen_readers(self, show):
        page = show(shared())
        page.keyboard.press("ArrowRight")
        assert re.search(r"is computed", page.locator("#said").text_content())
        assert page.locator("#slider").get_attribute("aria-valuetext") == "forward 1/6"


def test_in_a_notebook_the_page_plays_in_its_frame(browser):
    page = browser.new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: complaints.append(request.url))
    page.set_content(f"<!doctype html><title>Notebook</title>{mg.explore(shared())._repr_html_()}")
    frame = page.frame_locator("iframe")
    frame.locator("#last").click()
    assert frame.locator("#count").inner_text() == "backward 6/6"
    page.close()
    assert complaints == []


ATTACKS = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!--SCRIPT--> --> <!--",
    "{a|b}",
    "\"quoted\" 'twice' `thrice` ${alert(1)}",
    "&lt;b&gt; \\N \\u003c",
    "𝒳 🚀 👩‍👩‍👧 é",
    "שלום, أهلا",
    "\u202eleft \u2066in\u2067",
    "\u2069\u202c\u202bout",
    "two\nlines",
]


@pytest.mark.parametrize("label", ATTACKS)
def test_labels_are_shown_as_typed_and_run_nothing(show, label):
    x, y = Value(2.0, label=label), Value(3.0, label="y")
    root = x * y
    root.label = label
    page = show(root, title=label)
    label = enclosed(label)
    assert page.locator("h1").text_content() == label
    page.keyboard.press("End")
    assert page.locator("#node h2").text_content() == label
    assert page.locator(".contribution h3").nth(0).text_content() == f"To {label}"
    shown = page.locator("#nodes .item .name").all_text_contents()
    assert any(text == label or label.startswith(text.removesuffix("…").split(" ⏎ ")[0]) for text in shown)
    page.locator("#find-text").fill(label.split("\n")[0])
    page.keyboard.press("Enter")
    assert page.locator("#find-count").inner_text() == "1 of 2"


def leaky(x, w):
    y = x * w
    if y < 0:
        y = 0.1 * y
    return y * y


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_a_question_is_a_closed_box_that_says_what_the_other_path_would_answer(show, size):
    fast = mg.compile(leaky)
    fast(Value(-2.0, label="x"), Value(1.5, label="w"))
    page = show(fast, **size)
    photograph(page, f"question-{size['width']}")
    assert page.evaluate(FAULTS) == page.evaluate(CUT) == []
    question = page.locator('.item.closed[aria-label^="y < 0"]')
    texts = question.locator("text")
    assert texts.all_text_contents() == ["▸ y < 0", f"test_page.py:{line_of('if y < 0')}", "taken", "", "other", ""]
    while "y < 0" not in page.locator("#step h2").inner_text():
        page.keyboard.press("ArrowRight")
    assert "So the program took this path" in page.locator("#step").inner_text()
    assert texts.all_text_contents()[2:] == ["taken", "yes", "other", "no"]
    page.keyboard.press("End")
    page.locator("#find-text").fill("x")
    page.locator("#find-text").press("Enter")
    page.locator("#edit input").fill("3")
    page.keyboard.press("Enter")
    assert texts.all_text_contents()[2:] == ["taken", "yes", "other", "no, by now"]
    question.press("Enter")
    assert page.locator('.item.open[aria-label^="y < 0"]').count() == 1
    assert page.locator('.item[aria-label*="result of less"]').count() == 1
