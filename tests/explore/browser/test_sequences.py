"""Pages of programs that read tokens: letters, blocks, attention and predictions, as a visitor meets them."""

import runpy

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.reader import ALPHABET, Plain, Reader
from tests.folders import DEMOS

pytestmark = pytest.mark.slow

SIZES = [{"width": 1280, "height": 800}, {"width": 360, "height": 740}]
SMALL_TEXTS = """() => [...document.querySelectorAll("body *")].filter((element) => {
  const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  const box = element.getBoundingClientRect();
  return own && box.width > 1 && box.height > 1 && getComputedStyle(element).visibility === "visible"
    && !element.closest("svg, .unseen, script, style, noscript") && parseFloat(getComputedStyle(element).fontSize) < 11;
}).map((element) => element.outerHTML.slice(0, 80))"""
ACROSS = """() => [document.documentElement, document.querySelector("aside")]
  .filter((element) => element.scrollWidth > element.clientWidth).length"""


def text(locator):
    return " ".join(locator.inner_text().split())


def letter(page, name, number):
    return page.locator(f".token[aria-label^='{name}, token {number} ']")


@pytest.fixture(scope="module")
def word(tmp_path_factory):
    """The page of the loss of a word by the transformer of the demo, its loss, and the model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DEMOS))
        model = runpy.run_path(str(DEMOS / "names.py"))["Transformer"](5, 5)
    path = tmp_path_factory.mktemp("word") / "word.html"
    loss = model.loss([0, 2, 1, 1, 0])
    mg.explore(loss, path, classes=ALPHABET)
    return path, loss, model


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The page of another program, with other names."""
    path = tmp_path_factory.mktemp("other") / "other.html"
    loss = Reader().loss([0, 3, 1, 0])
    mg.explore(loss, path, classes=ALPHABET)
    return path, loss


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("which", ["word", "other"])
def test_axe_finds_nothing_and_all_text_can_be_read(show, violations, request, which, size):
    page = show(request.getfixturevalue(which)[0], bypass_csp=True, **size)
    for step in ("#first", "#next", "#last"):
        page.locator(step).dispatch_event("click")
        assert violations(page) == []
    page.locator(".token").nth(1).click()
    assert violations(page) == []
    assert page.evaluate(SMALL_TEXTS) == []
    assert page.evaluate(ACROSS) == 0


def test_in_dark_colours_axe_finds_nothing(show, violations, other):
    page = show(other[0], bypass_csp=True, color_scheme="dark")
    page.locator(".token").nth(1).click()
    assert violations(page) == []


def test_letters_stand_along_the_top_and_blocks_below_them(show, word):
    page = show(word[0])
    assert [text(button) for button in page.locator(".token").all()] == [".", "b", "a", "a"]
    blocks = [
        "embedding",
        "queries, keys, values",
        "head 1",
        "head 2",
        "head 3",
        "head 4",
        "attention",
        "MLP",
        "logits",
    ]
    assert [text(head) for head in page.locator(".blocks tbody th").all()] == [*blocks, "loss"]


def test_attention_is_a_map_with_numbers_for_the_pointer_and_for_screen_readers(show, word):
    page, model = show(word[0]), word[2]
    maps = page.get_by_role("grid", name="which share each token takes of which")
    assert maps.count() == 4
    with mg.no_grad():
        memory, shares = [], []
        for token in (0, 2):
            x = [a + b for a, b in zip(model.letter[token], model.place[len(memory)], strict=True)]
            scale = (mg.dot(x, x) / len(x) + 1e-5) ** -0.5
            x = [number * scale for number in x]
            query, key = ([mg.dot(row, x) for row in rows] for rows in (model.query, model.key))
            memory.append(key)
        shares = mg.softmax([mg.dot(query[4:8], key[4:8]) / 2 for key in memory])  # the second head's
    cell = maps.nth(1).locator("tbody tr").nth(1).locator("td").nth(0)
    wanted = f"{100 * float(shares[0]):.0f} %"
    assert cell.text_content() == wanted
    cell.hover()
    figure = page.locator(".head").nth(1)
    assert f"b (2) → . (1): {wanted}" in text(figure.locator(".said"))
    assert maps.nth(1).locator("tbody tr").nth(1).locator("td").nth(2).text_content() == "none"  # it comes later


def test_arrow_keys_go_through_a_map(show, other):
    page = show(other[0])
    first = page.locator(".map").first.locator("tbody td").first
    first.focus()
    said = page.locator(".head").first.locator(".said")
    assert ". (1) → . (1): 100 %" in text(said)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert "c (2) → c (2): " in text(said)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")  # there is nothing below
    assert "a (3) → c (2): " in text(said)
    assert page.evaluate("block === lastBlock")  # the arrows have moved no step


def test_probabilities_are_bars_and_the_correct_one_is_marked(show, other):
    page, reader = show(other[0]), Reader()
    shares = mg.softmax([score.data for score in reader([0, 3, 1])[1]])
    page.get_by_role("button", name="Next prediction").click()
    assert text(page.locator("#predicts")) == "What follows .c"
    order = sorted(range(5), key=lambda index: -shares[index])
    assert [text(bar.locator(".class")) for bar in page.locator("#probabilities .bars li").all()] == [
        ALPHABET[index] for index in order
    ]
    right = page.locator("#probabilities .right")
    assert right.count() == 1
    assert text(right).startswith("a ")
    assert "the correct one" in right.text_content()
    assert f"{round(100 * shares[1])} % ✓" in text(right)


def test_of_many_classes_the_likely_and_the_correct_one_are_shown_first(show):
    scores = [Value(0.1 * number) * 1.0 for number in range(20)]
    page = show(mg.losses.cross_entropy(scores, 3))
    bars = page.locator("#probabilities .bars .class")
    page.locator("#last").click()
    assert [text(bar) for bar in bars.all()] == [*map(str, range(19, 11, -1)), "3"]
    page.get_by_role("button", name="All 20").click()
    assert bars.count() == 20
    page.get_by_role("button", name="Only the most likely").click()
    assert bars.count() == 9
    page.locator("#first").click()
    assert "not computed yet" in text(page.locator("#probabilities"))


def test_a_prediction_without_a_right_class_has_bars(show):
    page = show(mg.softmax([Value(1.0), Value(2.0)])[0], classes=["cat", "dog"])
    page.locator("#last").click()
    assert [text(bar) for bar in page.locator("#probabilities .bars li").all()] == ["dog 73 %", "cat 27 %"]


def test_the_gradients_of_embeddings_are_those_of_backward(show, word):
    page, loss, model = show(word[0]), *word[1:]
    loss.backward()
    length = sum(value.grad**2 for value in model.letter[2]) ** 0.5
    for value in model.parameters():
        value.grad = 0.0
    label = letter(page, "b", 2).get_attribute("aria-label")
    assert f"gradient of its row of length {length:.4g}" in label
    colours = letter(page, "b", 2).locator(".tile path")
    assert colours.count() > 1
    page.locator("#first").click()
    assert "gradient" not in letter(page, "b", 2).get_attribute("aria-label")


def test_the_steps_go_by_blocks_and_open_into_scalars(show, word):
    page = show(word[0])
    page.locator("#first").click()
    step = page.locator("#step h2")
    seen = []
    for _ in range(3):
        page.keyboard.press("ArrowRight")
        seen.append(text(step))
    assert seen == ["embedding is computed", "queries, keys, values is computed", "head 1 is computed"]
    page.locator(".cell-of-block[aria-label^='MLP at b']").click()
    assert text(step) == "MLP is computed"
    assert page.locator(".cell-of-block.active").count() == 1
    page.locator("#step").get_by_role("button", name="scalars").click()
    assert page.locator("#sequence").is_hidden()
    assert page.locator("#graph .item.active").count() == 1
    page.keyboard.press("ArrowRight")
    assert "forward" in text(page.locator("#count"))
    page.get_by_role("button", name="Blocks").click()
    assert text(step) == "logits is computed"  # the closed box that came next
    page.locator("#last").click()
    assert text(step) == "embedding passes gradients back"
    assert page.evaluate("at === steps.length - 1")


def test_blocks_are_played(show, other):
    page = show(other[0])
    page.locator("#speed").select_option("16")
    page.locator("#play").click()
    while page.evaluate("block") in (0, page.evaluate("lastBlock")):
        page.wait_for_timeout(20)
    page.locator("#play").click()
    stopped = page.evaluate("block")
    page.wait_for_timeout(100)
    assert page.evaluate("block") == stopped


def test_a_letter_shows_what_depends_on_it_forward_and_whose_loss_changes_it_backward(show, other):
    page = show(other[0])
    letter(page, "c", 2).click()
    panel = page.locator("#token")
    assert "2 of 3 predictions depend on it" in text(panel)
    dependent = labels(page.locator(".cell-of-block.depends"))
    assert {label.split(" at ")[1][0] for label in dependent} == {"c", "a"}  # not the letter before it
    reader = Reader()
    lengths = {}
    for place, right in ((1, "a"), (2, ".")):
        rows = reader([0, 3, 1])
        loss = mg.losses.cross_entropy(rows[place], ALPHABET.index(right)) / 3
        loss.backward()
        lengths[right] = sum(value.grad**2 for value in reader.glyphs.rows[3]) ** 0.5
        for value in reader.parameters():
            value.grad = 0.0
    shown = [text(bar).split() for bar in panel.locator(".bars li").all()]
    assert {name: float(number) for name, number in shown} == pytest.approx(lengths, rel=1e-3)
    assert shown[0][0] == max(lengths, key=lengths.get)
    letter(page, "c", 2).click()
    assert panel.is_hidden()


def labels(locator):
    return locator.evaluate_all("all => all.map((each) => each.getAttribute('aria-label'))")


def test_the_first_letter_is_read_by_all(show, other):
    page = show(other[0])
    letter(page, ".", 1).click()
    assert "Each prediction depends on it" in text(page.locator("#token"))
    assert page.locator("#token dt").count() == 3


def test_a_program_without_embedding_block_has_blocks_too(show):
    page = show(Plain().loss([3, 1, 2, 0]), classes=ALPHABET)
    assert text(page.locator(".blocks tbody th").first) == "queries, keys, values"
    assert [text(button) for button in page.locator(".token").all()] == ["c", "a", "b"]
