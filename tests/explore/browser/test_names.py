"""What Values without a label are called, and compiled functions with their kernels as boxes."""

import random

import pytest

import micrograd as mg
from micrograd import Value, nn
from tests.explore.browser.test_everyone import word  # noqa: F401  # a fixture
from tests.explore.browser.test_page import lecture

pytestmark = pytest.mark.slow


def names(page):
    """The short and the full names of all results."""
    return page.evaluate(
        "nodes.filter(({ kind }) => kind === 'result').map(({ index }) => [nameOf(index), fullNameOf(index)])"
    )


def test_results_are_called_by_what_made_them_and_counted_where_they_are(show):
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    page = show(mg.tanh(x * y + y * 2.0) - x)
    assert [name for name, _ in names(page)] == ["product 1", "product 2", "sum", "tanh", "result"]
    page.keyboard.press("ArrowRight")
    assert page.locator("#step h2").inner_text() == "product 1 is computed"
    page.keyboard.press("End")
    assert page.locator("#step h2").inner_text() == "product 1 passes its gradient on"
    assert "∂result/∂product 1" in page.locator("#step").inner_text()
    page.locator("#find-text").fill("product 2")
    page.locator("#find-text").press("Enter")
    assert page.locator("#node h2").inner_text() == "product 2"
    assert page.locator("#find-count").inner_text() == "1 of 1"


def test_full_names_say_where_and_no_two_are_the_same(show):
    page = show(lecture()[1])
    found = [full for _, full in names(page)]
    assert len(set(found)) == len(found)
    assert any(full.endswith("layer 1, neuron 3, tanh") for full in found)
    page.locator("#find-text").fill("layer 1, neuron 3, tanh")
    page.locator("#find-text").press("Enter")
    assert page.locator("#node h2").inner_text().endswith("layer 1, neuron 3, tanh")


def test_names_of_a_transformer_are_all_different_and_short(show, word):  # noqa: F811  # it is that fixture
    page = show(word)
    found = names(page)
    assert len({full for _, full in found}) == len(found) > 1_000
    assert max(len(short) for short, _ in found) <= 20
    assert max(len(full) for _, full in found) <= 100
    assert any("softmax" in full for _, full in found)


STICKING_OUT = """[...document.querySelectorAll("#nodes .item")].flatMap((item) => {
    const frame = item.querySelector(".frame").getBoundingClientRect();
    return [...item.querySelectorAll(":scope > text")].filter((text) => text.textContent !== "").filter((text) => {
        const { left, right } = text.getBoundingClientRect();
        return left < frame.left || right > frame.right;
    }).map((text) => text.textContent);
})"""


def test_names_are_cut_to_the_width_of_their_cards(show):
    values = [
        Value(2.0, label=label) for label in ("W" * 40, "i" * 100, "é" * 30, "日本" * 9, "🚀" * 9, "rate of layer 3")
    ]
    result = values[0] * 1.0001
    for value in values:
        result = mg.tanh(result * value + 0.123456) * 123456.789
        result.label = f"{value.label}, done"
    page = show(result)
    page.evaluate("document.getElementById('expand').click()")
    assert page.evaluate(STICKING_OUT) == []
    shown = page.locator("#nodes .item .name").all_text_contents()
    assert "rate of layer 3" in shown
    assert any(name.startswith("WWWW") and name.endswith("…") for name in shown)


def test_a_label_is_the_name(show):
    x = Value(2.0, label="x")
    y = x * 3.0
    y.label = "y"
    assert names(show(y * y)) == [["y", "y"], ["result", "result"]]


def test_the_kernels_of_several_results_are_boxes_with_their_shapes(show):
    network = nn.MLP(3, [4, 4, 1])
    xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]

    def losses(xs, ys):
        outputs = [network(x) for x in xs]
        return mg.mean([(output - y) ** 2 for output, y in zip(outputs, ys, strict=True)]), outputs

    loss, outputs = mg.compile(losses)(xs, [1.0, -1.0, -1.0, 1.0])
    page = show(loss + outputs[0] * 0.1)
    assert page.locator('.item[aria-label^="compiled losses"]').count() == 1
    page.locator('.item[aria-label^="compiled losses"]').press("Enter")
    kernel = page.locator('.item.closed[aria-label*=": matrix product"]').first
    assert "4 × 4, 4 terms each" in kernel.locator("text").all_text_contents()
    page.locator("#last").click()
    page.locator("#find-text").fill("layers[0].neurons[1].w[0]")
    page.locator("#find-text").press("Enter")
    (loss + outputs[0] * 0.1).backward()
    weight = network.layers[0].neurons[1].w[0]
    text = page.locator("#node .grad").inner_text().replace("−", "-")
    assert float(text) == pytest.approx(weight.grad, rel=1e-9)


def test_a_weight_is_found_as_a_program_writes_it_with_the_name_of_the_model_too(show):
    random.seed(0)
    model = nn.MLP(2, [3, 1])
    model.layers[1].neurons[0].b.label = "last"
    page = show(model([0.5, -0.5]))
    weights = {
        "model.layers[0].neurons[2].w[1]": ("layers[0].neurons[2].w[1]", model.layers[0].neurons[2].w[1]),
        "layers[0].neurons[0].b": ("layers[0].neurons[0].b", model.layers[0].neurons[0].b),
        "layers[1].neurons[0].b": ("last", model.layers[1].neurons[0].b),
    }
    for typed, (name, weight) in weights.items():
        page.locator("#find-text").fill(typed)
        page.locator("#find-text").press("Enter")
        assert page.locator("#node h2").inner_text() == name
        assert page.locator("#node").get_by_text("attribute").count() == (name == "last")
        assert page.evaluate("document.activeElement.value") == typed
        assert page.locator(f'.item[aria-label^="{name},"]').count() == 1
        assert page.evaluate("nodes[selected].data") == weight.data


def test_large_kernels_are_closed_and_their_sums_stand_on_one_card(show):
    random.seed(1)
    network = nn.MLP(12, [40, 40, 1])
    xs = [[random.uniform(-1, 1) for _ in range(12)] for _ in range(32)]
    page = show(mg.compile(lambda xs: mg.mean([network(x) ** 2 for x in xs]))(xs))
    page.keyboard.press("End")
    page.evaluate("setAll(false)")
    page.locator('.item[aria-label^="compiled"]').press("Enter")
    kernel = page.locator(".item.closed").filter(has_text="32 × 40, 13 terms each")
    assert kernel.locator(".cells").count() == 2
    kernel.press("Enter")
    card = page.locator('.item[aria-label*="all terms of a kernel: 32 × 40, 13 terms each"]')
    assert card.locator("text").all_text_contents()[-2:] == ["32 × 40", "13 terms each"]
    page.locator("#find-text").fill("matrix product[3][17]")
    page.locator("#find-text").press("Enter")
    assert page.locator("#node h2").inner_text().endswith(": matrix product, matrix product[3][17]")
    page.evaluate("selected = nodes.find(({ terms }) => terms).index; explainNode()")
    assert page.locator("#node .grad").inner_text() == "those of its results"


def test_names_that_are_the_same_beside_each_other_say_where_they_are(show):
    x = Value(2.0, label="x")

    @mg.scope
    def doubled(y):
        return y * 2.0

    @mg.scope
    def tripled(y):
        return y * 3.0

    page = show(tripled(doubled(x)) + 1.0)
    page.locator("#find-text").fill("tripled, product")
    page.locator("#find-text").press("Enter")
    page.get_by_role("button", name="Its forward step").click()
    assert page.locator("#step .math").first.inner_text() == "product = doubled, product × 3"
    page.get_by_role("button", name="Its backward step").click()
    assert page.locator("#step h3").inner_text() == "To doubled, product"
    page.locator("#previous").click()
    page.get_by_role("button", name="You compute it").click()
    page.locator("#next").click()
    assert "gradient of doubled, product?" in page.locator("#asking label").inner_text()
    page.locator("#collapse").click()
    page.get_by_role("button", name="You compute it").click()
    page.evaluate("go(nodes.find(({ index }) => fullNameOf(index) === 'tripled, product').backward)")
    text = page.locator("#step").inner_text()
    assert "product = 12" in text
    assert "∂result/∂doubled, product = 3" in text


def test_a_product_that_has_the_name_of_its_operand_outside_of_any_box(show):
    x = Value(2.0, label="x")

    @mg.scope
    def tripled(y):
        return y * 3.0

    page = show(tripled(x * x) + 1.0)
    page.locator("#find-text").fill("tripled, product")
    page.locator("#find-text").press("Enter")
    page.get_by_role("button", name="Its forward step").click()
    assert page.locator("#step .math").first.inner_text() == "product = outer product × 3"


def test_users_of_one_name_are_told_apart_by_sample_and_kernel(show):
    model, loss = lecture()
    page = show(loss)
    page.keyboard.press("End")
    page.locator("#find-text").fill("layers[0].neurons[0].w[0]")
    page.locator("#find-text").press("Enter")
    users = page.locator("#node .link").all_inner_texts()
    assert {f"Sample {number}, product 1" for number in (1, 2, 3, 4)} <= set(users)
    samples = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5]]
    page = show(mg.compile(lambda xs: mg.mean([model(x) ** 2 for x in xs]))(samples))
    page.keyboard.press("End")
    page.locator("#find-text").fill("layers[0].neurons[1].w[2]")
    page.locator("#find-text").press("Enter")
    shares = page.locator("#contributions .link").all_inner_texts()
    assert sorted(shares) == [f"1: matrix product, product[{sample}][1][3]" for sample in (0, 1)]


def test_of_a_matrix_with_more_numbers_than_a_box_has_cells_some_rows_and_columns_are_drawn(show):
    random.seed(1)
    network = nn.MLP(12, [60, 1])
    xs = [[random.uniform(0.1, 1) for _ in range(12)] for _ in range(72)]
    page = show(mg.compile(lambda xs: mg.mean([network(x) ** 2 for x in xs]))(xs))
    page.keyboard.press("End")
    page.evaluate("setAll(false)")
    page.locator('.item[aria-label^="compiled"]').press("Enter")
    kernel = page.locator(".item.closed").filter(has_text="72 × 60, 13 terms each")
    drawn = (
        kernel.locator(".cells")
        .first.locator("path")
        .evaluate_all("paths => paths.map((path) => path.getAttribute('d')).join('')")
    )
    assert drawn.count("M") == 36 * 30  # every second
