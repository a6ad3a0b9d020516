"""Pages of programs that read tokens: letters, blocks, attention and predictions, as a visitor meets them."""

import itertools
import runpy

import pytest

import micrograd as mg
from micrograd import Value
from tests.explore.reader import ALPHABET, Plain, Reader
from tests.folders import DEMOS
from tests.legible import faults, photograph

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
    photograph(page, f"transformer-{which}-{size['width']}")


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
    maps = page.get_by_role("grid", name="attention weights")
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


def test_a_tiny_probability_fits_beside_its_bar(show):
    page = show(mg.losses.cross_entropy([Value(16.0) * 1.0, Value(0.0) * 1.0], 1), width=360, height=740)
    page.locator("#last").click()
    assert text(page.locator("#probabilities .right .number")).startswith("0.00001 % ✓")
    assert faults(page) == []


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


def test_stacks_of_the_graph_stay_away_from_the_blocks_when_the_page_gets_narrow(show, word):
    page = show(word[0])
    page.get_by_role("button", name="Scalars", exact=True).click()
    assert page.locator("#stacks").is_visible()
    page.get_by_role("button", name="Blocks").click()
    page.set_viewport_size({"width": 390, "height": 844})
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")  # it is drawn again
    assert page.locator("#stacks").is_hidden()


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


def typed(page, word):
    page.locator("#word").fill(word)
    return page.evaluate("nodes[root].data")


def indices(word):
    return [0, *map(ALPHABET.index, word), 0]


class TestAnotherWord:
    @pytest.mark.parametrize("letters", ["cab", "da", "a", ""])
    def test_is_what_the_program_makes_of_it(self, show, word, letters):
        page, model = show(word[0]), word[2]
        loss = model.loss(indices(letters))
        assert typed(page, letters) == pytest.approx(loss.data, rel=1e-12)
        assert [text(button) for button in page.locator(".token:visible").all()] == [".", *letters]
        loss.backward()
        wanted = {at: value.grad for at, row in enumerate(model.letter) for value in row[:1]}
        assert page.evaluate("sequence.rows.map((row) => gradients[row[0]])") == pytest.approx(
            [wanted[at] for at in range(5)], rel=1e-9, abs=1e-15
        )
        for value in model.parameters():
            value.grad = 0.0

    def test_changes_maps_predictions_and_steps(self, show, other):
        page = show(other[0])
        loss = Reader().loss(indices("b"))
        assert typed(page, "b") == pytest.approx(loss.data, rel=1e-12)
        assert page.locator(".map").first.locator("tbody td:visible").count() == 4
        page.get_by_role("button", name="Next prediction").click()
        assert text(page.locator("#predicts")) == "What follows .b"
        assert text(page.locator("#probabilities .right .class")) == "."
        page.get_by_role("button", name="Next prediction").click()
        assert text(page.locator("#predicts")) == "What follows ."
        page.locator("#first").click()
        for _ in range(2):
            page.keyboard.press("ArrowRight")
        assert text(page.locator("#step .soft")) == "for b, token 2"
        page.locator(".token").nth(1).click()
        assert "1 of 2 predictions depend on it" in text(page.locator("#token"))
        typed(page, "")
        assert page.locator("#token").is_hidden()

    def test_is_in_the_graph_of_scalars_too(self, show, other):
        page = show(other[0])
        typed(page, "ad")
        page.get_by_role("button", name="Scalars", exact=True).click()
        page.locator("#previous").click()
        page.locator("#next").click()
        assert page.evaluate("nodes[root].data") == pytest.approx(Reader().loss(indices("ad")).data, rel=1e-12)
        page.get_by_role("button", name="Blocks").click()
        assert page.locator("#word").input_value() == "ad"

    def test_is_longer_than_the_one_that_is_shown_first_where_the_graph_is_that_of_a_longer_one(self, show):
        reader = Reader()
        page = show(reader.loss(indices("abcda")), classes=ALPHABET, tokens="ab")
        assert page.locator("#word").input_value() == "ab"
        assert [text(button) for button in page.locator(".token:visible").all()] == [".", "a", "b"]
        assert page.evaluate("nodes[root].data") == pytest.approx(reader.loss(indices("ab")).data, rel=1e-12)
        assert text(page.locator("label[for=word]")) == "Word, up to 5"
        for word in ("dabac", "", "abc"):
            assert typed(page, word) == pytest.approx(reader.loss(indices(word)).data, rel=1e-12)
        page.get_by_role("button", name="Scalars", exact=True).click()
        assert page.locator("#graph .item").count() > 1

    def test_that_is_shown_first_may_be_as_long_as_the_graph(self, show):
        page = show(Reader(sees_all=True).loss(indices("cab")), classes=ALPHABET, tokens="bad")
        assert page.evaluate("nodes[root].data") == pytest.approx(
            Reader(sees_all=True).loss(indices("bad")).data, rel=1e-12
        )

    def test_that_is_too_long_is_told_how_to_be_shown(self, show):
        page = show(Reader().loss(indices("ca")), classes=["|", "the", "cat", "sat", "down"])
        typed(page, "cat sat down")
        assert 'tokens=["sat","the"]' in text(page.locator("#try [role=alert]"))

    def test_is_refused_where_the_graph_has_no_place_for_it(self, show, other):
        page = show(other[0])
        before = typed(page, "ab")
        problem = page.locator("#try [role=alert]")
        assert typed(page, "abca") == before
        assert "At most 2 fit: the graph has 3 places" in text(problem)
        assert 'a longer word, and say which one to show: mg.explore(loss, tokens="ab")' in text(problem)
        assert typed(page, "é") == before
        assert "“é” is none of the 5 that this program knows" in text(problem)
        typed(page, "d")
        assert problem.is_hidden()

    def test_has_the_same_length_where_later_letters_are_read(self, show):
        reader = Reader(sees_all=True)
        page = show(reader.loss(indices("cab")), classes=ALPHABET)
        assert typed(page, "bad") == pytest.approx(reader.loss(indices("bad")).data, rel=1e-12)
        typed(page, "ba")
        assert "It has to be 3 long" in text(page.locator("#try [role=alert]"))
        assert page.get_by_role("button", name="Make one up").count() == 0

    def test_of_a_program_with_other_classes_is_typed_in_numbers(self, show):
        page = show(kind_of([2, 0, 1]), classes=["noun", "verb"])
        assert [text(button) for button in page.locator(".token").all()] == ["2", "0", "1"]
        assert typed(page, "102") == pytest.approx(kind_of([1, 0, 2]).data, rel=1e-12)
        typed(page, "10")
        assert "It has to be 3 long" in text(page.locator("#try [role=alert]"))

    def test_takes_rows_of_a_table_that_is_not_trained(self, show):
        reader = Reader()
        for value in itertools.chain(*reader.glyphs.rows):
            value.requires_grad = False
        page = show(reader.loss(indices("ca")), classes=ALPHABET)
        assert typed(page, "bd") == pytest.approx(reader.loss(indices("bd")).data, rel=1e-12)

    def test_of_words_is_typed_with_spaces(self, show):
        page = show(Reader().loss(indices("ca")), classes=["|", "the", "cat", "sat", "down"])
        assert page.locator("#word").input_value() == "sat the"
        assert typed(page, "cat down") == pytest.approx(Reader().loss([0, 2, 4, 0]).data, rel=1e-12)

    def test_cannot_be_typed_where_the_page_cannot_compute(self, show, own_registry):
        double = mg.primitive("double", "double", lambda x: 2 * x, lambda g, out, x: g * 2)
        reader = Reader()
        page = show(double(reader.loss(indices("ca"))), classes=ALPHABET)
        assert "this page cannot compute double" in text(page.locator("#try"))
        assert page.locator("#word").count() == 0


class Kind(mg.nn.Module):
    def __init__(self):
        self.table = [[Value(0.1 * row), Value(0.3 - row)] for row in range(3)]

    def __call__(self, words):
        rows = [[x + place for x in self.table[word]] for place, word in enumerate(words)]
        return [sum(column) for column in zip(*rows, strict=True)]


def kind_of(words):
    return mg.losses.cross_entropy(Kind()(words), 1)


def test_the_temperature_changes_the_bars_and_not_the_loss(show, other):
    page = show(other[0])
    before = page.evaluate("nodes[root].data")
    scores = page.evaluate("predictions[0].scores.map((index) => nodes[index].data)")
    page.locator("#temperature").fill("0.5")
    shares = sorted(mg.softmax([score / 0.5 for score in scores]), reverse=True)
    assert text(page.locator("#probabilities .number").first).startswith(f"{100 * shares[0]:.0f} %")
    assert "the bars are at 0.5" in text(page.locator("#probabilities"))
    assert page.evaluate("nodes[root].data") == before


def test_words_are_made_up_at_this_temperature(show, word):
    page = show(word[0])
    made = set()
    for _ in range(6):
        page.get_by_role("button", name="Make one up").click()
        made.add(page.locator("#word").input_value())
    assert len(made) > 1
    assert all(set(each) <= set("abcd") and len(each) <= 3 for each in made)
    page.evaluate("setWord(rowsOf('cab'))")
    counts = page.evaluate(
        """() => {
            const [draw, data, counts] = [drawsOf(3), Float64Array.from(nodes, (node) => node.data), {}];
            for (let made = 0; made < 200; made++) {
              const first = rowName(madeUp(draw, data).rows[1]);
              counts[first] = (counts[first] ?? 0) + 1;
            }
            return [counts, probabilitiesOf(predictionAt(0)), lettersOf(wordNow())];
        }"""
    )
    for index, letter_ in enumerate(ALPHABET):
        assert counts[0].get(letter_, 0) / 200 == pytest.approx(counts[1][index], abs=0.12)
    assert counts[2] == "cab"


def test_a_program_without_embedding_block_has_blocks_too(show):
    page = show(Plain().loss([3, 1, 2, 0]), classes=ALPHABET)
    assert text(page.locator(".blocks tbody th").first) == "queries, keys, values"
    assert [text(button) for button in page.locator(".token").all()] == ["c", "a", "b"]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The page of a training of another program, the recording, and the program after it."""
    reader = Reader(layers=1)
    recording = mg.Recording(reader, frames=8)
    words = [indices(word) for word in ("ab", "cab", "abc", "b")]
    mg.fit(reader.loss, words, mg.optim.SGD(reader.parameters(), 0.05), epochs=10, record=recording)
    path = tmp_path_factory.mktemp("recording") / "recording.html"
    mg.explore(recording, path, classes=ALPHABET)
    return path, recording, reader


class TestARecording:
    def test_shows_maps_and_made_up_words_at_each_moment(self, show, recorded):
        page, recording = show(recorded[0]), recorded[1]
        assert [text(button) for button in page.locator(".token").all()] == [".", "c", "a", "b"]  # the longest word
        made = page.locator("#made-up li")
        share = page.locator(".map").first.locator("tbody tr").nth(2).locator("td").first
        seen = []
        for frame in (0, len(recording.frames()) - 1):
            page.evaluate("(frame) => TIME.go(frame)", frame)
            assert made.count() == 10
            seen.append((share.text_content(), [text(word) for word in made.all()]))
        assert seen[0][0] != seen[1][0]
        assert seen[0][1] != seen[1][1]
        assert page.evaluate("nodes[root].data") == pytest.approx(recorded[2].loss(indices("cab")).data, rel=1e-12)

    def test_shows_another_word_at_each_moment(self, show, recorded):
        page, reader = show(recorded[0]), recorded[2]
        typed(page, "ba")
        page.locator("#last").click()
        assert page.evaluate("nodes[root].data") == pytest.approx(reader.loss(indices("ba")).data, rel=1e-12)
        letter(page, "b", 2).click()
        assert "2 of 3 predictions depend on it" in text(page.locator("#token"))
        assert "recorded" in text(page.locator("#recording h2"))  # it is still a recording
        page.locator("#temperature").fill("0.1")
        likely = {text(word) for word in page.locator("#made-up li").all()}
        page.locator("#temperature").fill("3")
        assert len({text(word) for word in page.locator("#made-up li").all()}) > len(likely)

    def test_goes_into_the_blocks_and_scalars_of_a_moment_and_back(self, show, recorded):
        page = show(recorded[0])
        page.locator(".cell-of-block[aria-label^='MLP at a']").click()
        assert page.get_by_role("button", name="Blocks").get_attribute("aria-pressed") == "true"
        assert text(page.locator("#step h2")) == "MLP passes gradients back"
        page.locator("#step").get_by_role("button", name="scalars").click()
        assert page.locator("#sequence").is_hidden()
        assert page.get_by_role("button", name="Scalars", exact=True).get_attribute("aria-pressed") == "true"
        page.get_by_role("button", name="Blocks").click()
        page.keyboard.press("Home")
        assert text(page.locator("#count")) == "start"
        page.get_by_role("button", name="Training").click()
        assert text(page.locator("#recording h2")).startswith("Step 0")
        page.keyboard.press("ArrowRight")
        assert not text(page.locator("#recording h2")).startswith("Step 0")

    @pytest.mark.parametrize("size", SIZES, ids=str)
    def test_axe_finds_nothing_and_all_text_can_be_read(self, show, violations, recorded, size):
        page = show(recorded[0], bypass_csp=True, **size)
        assert violations(page) == []
        assert page.evaluate(SMALL_TEXTS) == []
        assert page.evaluate(ACROSS) == 0
        photograph(page, f"recording-of-letters-{size['width']}")
        page.get_by_role("button", name="Blocks").click()
        assert violations(page) == []

    def test_is_played(self, show, recorded):
        page = show(recorded[0])
        page.locator("#speed").select_option("16")
        page.locator("#play").click()
        while page.evaluate("trainingRun.now < trainingRun.snapshots.length - 1"):
            page.wait_for_timeout(20)
        assert text(page.locator("#recording h2")).startswith(f"Step {len(recorded[1].losses)} of")
