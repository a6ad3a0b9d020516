"""Pages for everyone: on a phone, much enlarged, by touch, with keys alone, for screen readers, in any script."""

import random
import runpy

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.browser.test_laboratory import choose, small
from tests.explore.browser.test_page import lecture
from tests.folders import ROOT

pytestmark = pytest.mark.slow

PHONE = {"width": 390, "height": 844, "has_touch": True, "is_mobile": True}
ENLARGED = {"width": 360, "height": 225, "has_touch": True, "is_mobile": True}  # 1440 x 900 at 400 %


@pytest.fixture(scope="module")
def word(tmp_path_factory):
    """The page of the loss of a word of one letter by the transformer of the demo."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "demos"))
        demo = runpy.run_path(str(ROOT / "demos" / "names.py"))
    random.seed(42)
    path = tmp_path_factory.mktemp("word") / "word.html"
    mg.explore(demo["Transformer"](3, 4).loss([0, 1, 0]), path)
    return path


def wrong():
    """A page with all its warnings."""
    a = Value(1e308, label="a")
    b = a + a
    return b * 0.5 + b


def compiled_losses():
    """A sum of two results of one compiled function."""
    model, _ = lecture()
    first, second = mg.compile(lambda x: (model(x) ** 2, sum(p * p for p in model.parameters())))([1.0, 2.0, 3.0])
    return first + second


@pytest.mark.parametrize(("scheme", "width"), [("dark", 390), ("light", 1280)])
def test_axe_finds_no_violation(show, violations, word, scheme, width):
    options = {"width": width, "color_scheme": scheme, "bypass_csp": True}
    page = show(lecture()[1], **options)
    page.locator("#keys summary").click()
    page.locator("#save summary").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator('.item[aria-label^="Parameters"]').press("Enter")
    page.locator("#last").click()
    assert violations(page) == []
    page = show(word, **options)
    page.keyboard.press("ArrowRight")
    assert violations(page) == []
    page = show(compiled_losses(), **options)
    page.keyboard.press("End")
    page.locator("#find-text").fill("neurons[1].w[0]")
    page.locator("#find-text").press("Enter")
    assert violations(page) == []
    page = show(wrong(), **options)
    page.get_by_role("button", name="Wrong order").click()
    page.keyboard.press("End")
    page.locator('.item[aria-label^="a,"]').click()
    assert violations(page) == []
    page = show(small(), **options)
    choose(page, "Data", "my own points")
    page.locator(".cell").nth(3).click()
    assert violations(page) == []
    page.get_by_role("button", name="One step").click()
    page.keyboard.press("End")
    assert violations(page) == []


def is_in_sight(page, locator):
    """Whether it is in the window as a whole, and on top there."""
    return locator.evaluate(
        """element => {
            const { left, top, right, bottom } = element.getBoundingClientRect();
            const on = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
            return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight && element.contains(on);
        }"""
    )


def assert_targets_are_large(page):
    """Every target outside of the graph is 44 pixels wide and high; in it, as much as one zooms in."""
    found = page.locator("button, summary, select, input").evaluate_all(
        """targets => targets.filter((target) => target.checkVisibility()).map((target) => {
            const { width, height } = target.getBoundingClientRect();
            return [Math.min(width, height), target.outerHTML];
        })"""
    )
    assert found
    assert [target for size, target in found if size < 44] == []


@pytest.mark.parametrize("size", [PHONE, ENLARGED])
@pytest.mark.parametrize("weight", ["layers[0].neurons[1].w[0]", "query[0][0]"])
def test_a_page_is_used_by_touch_on_a_phone_and_at_400_percent(show, word, size, weight):
    page = show(word if weight.startswith("query") else lecture()[1], **size)
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert page.evaluate(fits)
    if weight.startswith("query"):
        page.locator(".token").first.tap()
        assert_targets_are_large(page)
        assert page.evaluate(fits)
        page.get_by_role("button", name="Scalars", exact=True).tap()
        page.locator("#first").tap()
    page.locator("#next").tap()
    assert is_in_sight(page, page.locator("#next"))
    page.locator("#step h2").scroll_into_view_if_needed()
    assert is_in_sight(page, page.locator("#step h2"))
    page.locator("#last").tap()
    page.locator("#fit").tap()
    before = page.locator("#stacks span").first.inner_text()
    page.locator("#stacks").get_by_role("button", name="Next").first.tap()
    assert page.locator("#stacks span").first.inner_text() == before.replace("1 of", "2 of")
    page.locator("#find-text").fill(weight)
    page.locator("#find-text").press("Enter")
    page.locator("#zoom-in").tap()
    chosen = page.evaluate("drawnFor(matches[0])")
    page.locator(f'[data-item="{chosen}"]').tap()
    assert is_in_sight(page, page.locator("#edit input"))
    page.locator("#edit input").fill("0.25")
    page.locator("#edit").get_by_role("button", name="Set").tap()
    assert page.locator("#node .data").inner_text() == "0.25"
    page.locator("#slider").fill("2")
    page.locator("#pace select").select_option("fast")
    assert page.locator("#slider").get_attribute("aria-valuetext").startswith("forward 2/")
    page.locator("#collapse").tap()
    page.locator("#keys summary").tap()
    page.locator("#save summary").tap()
    assert is_in_sight(page, page.locator("#save-png"))
    assert_targets_are_large(page)
    assert page.evaluate(fits)


@pytest.mark.parametrize("size", [PHONE, ENLARGED])
def test_the_laboratory_is_used_by_touch_on_a_phone_and_at_400_percent(show, size):
    page = show(small(), **size)
    page.locator("#next").tap()
    page.locator(".cell").nth(2).tap()
    assert page.locator("#neuron h3").is_visible()
    page.locator("#laboratory").get_by_label("Rate").tap()
    assert_targets_are_large(page)
    page.get_by_role("button", name="Start again").tap()
    page.get_by_role("button", name="One step").tap()
    page.locator("#last").tap()
    assert page.locator("#step h2").inner_text() == "layers[1].neurons[0].b takes its step"
    page.locator("#step h2").scroll_into_view_if_needed()
    assert is_in_sight(page, page.locator("#step h2"))
    assert_targets_are_large(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_much_enlarged_the_wheel_and_a_finger_scroll_the_page_and_the_steps_stay_in_sight(show):
    page = show(lecture()[1], width=360, height=225)
    scale = page.evaluate("view.scale")
    page.locator("#graph").hover()
    page.mouse.wheel(0, 400)
    page.wait_for_timeout(100)
    assert page.evaluate("scrollY") > 100
    assert page.evaluate("view.scale") == scale
    assert is_in_sight(page, page.locator("#next"))
    assert page.locator("#graph").evaluate("graph => getComputedStyle(graph).touchAction") == "pan-y"
    page.locator("#graph").scroll_into_view_if_needed()
    page.locator("#graph").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    assert page.evaluate("view.scale") > scale


def test_boxes_are_opened_turned_and_closed_with_keys_alone(show):
    page = show(lecture()[1], width=1440, height=900)
    page.keyboard.press("End")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('item')"):
            break
    focused = "document.activeElement.ariaLabel"
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    assert page.evaluate(focused).startswith("Neuron 1")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.ariaExpanded") == "true"
    inside = page.locator('.item[aria-label^="layers[0].neurons[0].w[0]"]').count()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.ariaExpanded") == "false"
    assert page.locator('.item[aria-label^="layers[0].neurons[0].w[0]"]').count() <= inside
    next_of_stack = page.locator("#stacks").get_by_role("button", name="Next").first
    next_of_stack.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert page.locator("#stacks span").first.inner_text().endswith("3 of 4")
    assert next_of_stack.evaluate("button => button === document.activeElement")
    page.locator("#stacks").get_by_role("button", name="All side by side").focus()
    page.keyboard.press("Space")
    assert page.locator("#stacks span").first.inner_text().endswith("× 4")
    assert next_of_stack.is_disabled()


def test_a_value_of_a_sample_gives_way_to_its_like_in_the_next(show):
    page = show(lecture()[1], width=1440, height=900)
    page.keyboard.press("End")
    page.locator('.item.closed[aria-label^="Neuron 1"]').first.press("Enter")
    page.locator('.item[aria-label*="result of tanh"]').first.click()
    of, number = (page.locator("#node h2").inner_text(), page.locator("#node .data").inner_text())
    twin = page.evaluate("selected")
    page.locator("#stacks").get_by_role("button", name="Next").first.click()
    assert page.evaluate("selected") != twin
    assert page.locator("#node h2").inner_text() != of
    assert page.locator("#node .data").inner_text() != number
    assert page.evaluate("nodes[selected].primitive") == page.evaluate(f"nodes[{twin}].primitive")
    page.locator("#stacks").get_by_role("button", name="Previous").first.click()
    assert page.evaluate("selected") == twin


@pytest.mark.parametrize(
    "attack", ["ab\u202ecd", "ab\u2069\u202ecd", "ab\u202d\u2067cd", "ab\u2069\u2069\u202c\u202b\u202ecd"]
)
def test_an_override_of_direction_stays_in_its_label(show, attack):
    x = Value(2.0, label=attack)

    @mg.scope
    def doubled(x):
        y = x + x
        y.label = attack
        return y

    page = show(doubled(x) * x, title=attack)
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.locator("#collapse").click()
    lefts = """(element, text) => {
        const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
        for (let node; (node = walker.nextNode()); ) {
            const start = node.data.indexOf(text);
            if (start < 0) continue;
            return [...text].map((_, index) => {
                const range = document.createRange();
                range.setStart(node, start + index);
                range.setEnd(node, start + index + 1);
                return range.getBoundingClientRect().left;
            });
        }
    }"""
    written = []
    for where, text in (
        ("#step h2", " passes"),
        ("#step .math", " = "),
        ("#node dl", "operands"),
        ("#edit ~ *, #node", "operation"),
    ):
        found = page.locator(where).first.evaluate(lefts, text)
        if found:
            assert found == sorted(found), (where, text)
            written.append(text)
    assert len(written) >= 2
    box = page.locator(".item.closed .name").first
    shown = box.text_content()
    at = shown.index(" = doubled")
    places = [box.evaluate("(text, index) => text.getStartPositionOfChar(index).x", at + index) for index in range(10)]
    assert places == sorted(places)


class TestTheQuestionsOfAStranger:
    """From the page alone: why is a gradient this number, which sample makes most of it, what does softmax pass on."""

    def test_why_is_the_gradient_of_this_weight_that_number_and_which_sample_makes_most_of_it(self, show):
        model, loss = lecture()
        page = show(loss, width=1440, height=900)
        page.keyboard.press("End")
        page.keyboard.press("/")
        page.keyboard.type("layers[0].neurons[1].w[0]")
        page.keyboard.press("Enter")
        names = page.locator("#contributions dt").all_inner_texts()
        shares = [
            text.rpartition("= ")[2].replace("−", "-") for text in page.locator("#contributions dd").all_inner_texts()
        ]
        loss.backward()
        weight = model.layers[0].neurons[1].w[0]
        uses = [node for node in mg.topological_order(loss) if weight in node._operands()]
        by_hand = sorted(
            (dict(use._primitive.contributions(use, use.grad))[weight] for use in uses), key=abs, reverse=True
        )
        assert [float(share) for share in shares] == pytest.approx([*by_hand, weight.grad], rel=1e-3)
        assert names[-1] == "sum"
        assert sorted(name.partition(",")[0] for name in names[:-1]) == [f"Sample {k}" for k in (1, 2, 3, 4)]
        page.locator("#contributions button").first.click()
        assert page.locator("#stacks span").inner_text() == f"{names[0].partition(',')[0]} of 4"
        assert page.locator("#step h2").inner_text() == f"{names[0].partition(', ')[2]} passes its gradient on"
        assert page.locator(".contribution .product").first.inner_text().endswith(f"= {shares[0].replace('-', '−')}")
        assert page.locator("#node h2").inner_text() == "layers[0].neurons[1].w[0]"

    def test_many_shares_are_summed_by_sample(self, show):
        weight = Value(0.5, label="weight")

        @mg.scope
        def often(x):
            return weight * x + mg.tanh(weight * x) + weight * weight

        page = show(sum(mg.exp(often(Value(0.1 * k))) for k in range(1, 9)))
        page.keyboard.press("End")
        page.locator('.item[aria-label^="weight,"]').click()
        names, sums = (
            page.locator("#contributions dt").all_inner_texts(),
            page.locator("#contributions dd").all_inner_texts(),
        )
        assert names == [*(f"Sample {k}" for k in (8, 7, 6, 5, 4, 3)), "2 more", "sum"]
        assert all(text.startswith("4 contributions, together ") for text in sums[:6])
        numbers = [float(text.rpartition(" ")[2]) for text in sums]
        assert sum(numbers[:-1]) == pytest.approx(numbers[-1], rel=1e-3)
        page.keyboard.press("Home")
        assert page.locator("#contributions").inner_text() == ""

    def test_a_share_that_is_no_number_comes_first(self, show):
        x = Value(0.0, label="x")
        page = show(x * 2.0 + x * 1e308 * 10.0 + x * 3.0)
        page.keyboard.press("End")
        page.locator('.item[aria-label^="x,"]').click()
        assert page.locator("#contributions dd").first.inner_text() == "10 × 1e+308 = ∞"
        assert page.locator("#contributions dd").last.inner_text() == "∞"

    def test_what_does_the_softmax_of_attention_pass_back(self, show, word):
        page = show(word)
        page.keyboard.press("End")
        page.keyboard.press("/")
        page.keyboard.type("softmax")
        page.keyboard.press("Enter")
        assert page.locator("#find-count").inner_text().startswith("1 of ")
        assert page.locator("#step h2").inner_text() == "softmax passes gradients on"
        text = page.locator("#step").inner_text()
        assert "p (g − Σ p g)" in text
        assert "What it computed, and the gradient of each:" in text
        assert "The gradients that it has added to" in text
        for _ in range(2):  # the next of them, in another head or step
            page.keyboard.press("Enter")
            assert page.locator("#step h2").inner_text() == "softmax passes gradients on"
        page.locator("#first").click()
        page.locator("#find-text").press("Enter")
        assert page.locator("#step h2").inner_text() == "softmax is computed"
