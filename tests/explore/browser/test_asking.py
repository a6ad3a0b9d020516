"""You compute it: the page asks for shares before it shows them, and says what a wrong answer was made of."""

import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow


def graph():
    x, y = Value(2.0, label="x"), Value(-3.0, label="y")
    s = x * y
    s.label = "s"
    f = s * s + 4 * x
    f.label = "f"
    return f


class Learner:
    def __init__(self, page):
        self.page = page
        page.get_by_role("button", name="You compute it").click()

    def answer(self, text):
        self.page.locator("#answer").fill(text)
        self.page.keyboard.press("Enter")
        return self.page.locator("#asking [role=status]").inner_text()

    def question(self):
        return self.page.locator("#asking label").inner_text()

    def count(self):
        return self.page.locator("#count").inner_text()


def test_every_share_that_is_asked_for_is_known_and_the_numbers_wait_for_the_answer(show):
    learner = Learner(page := show(graph()))
    assert learner.count() == "backward"  # it goes to where the questions begin
    page.keyboard.press("ArrowRight")
    asked = 0
    while page.locator("#answer").count():
        before = learner.count()
        assert learner.question().startswith("How much does ")
        page.locator("#next").click()  # an answer is waited for
        assert learner.count() == before
        share = page.evaluate("asked().contribution")
        assert learner.answer(repr(share)).startswith("Right: ")
        assert learner.count() != before
        asked += 1
        if page.locator("#next").is_enabled():
            page.keyboard.press("Enter")  # the button Next has the focus
    assert asked == page.evaluate("visits.length") == 4
    assert page.locator("#asking [role=status]").inner_text().endswith(" 4 of 4 at the first try.")
    shown = dict(page.evaluate("nodes.filter((node) => node.label).map((node) => [node.label, gradients[node.index]])"))
    root = graph()
    root.backward()
    assert shown == {node.label: node.grad for node in mg.topological_order(root) if node.label}


def test_a_wrong_answer_is_told_what_it_was_made_of(show):
    learner = Learner(page := show(graph()))
    page.keyboard.press("ArrowRight")
    while "s add" not in learner.question():
        learner.answer(str(page.evaluate("asked().contribution")))
        page.keyboard.press("Enter")
    # s = x * y, with a gradient of -12: x gets -12 * -3, or y gets -12 * 2
    about = page.evaluate("({...asked(), name: nameOf(asked().operand), so: gradients[asked().operand]})")
    assert about["gradient"] == -12
    told = {
        str(-about["contribution"]): "The size is right, the sign is not.",
        str(about["local"]): "That is the local derivative alone. Multiply it by the gradient of s, −12.",
        "-12": "That is the gradient of s alone. Multiply it by the local derivative.",
        str(about["local"] - 12): "Gradient and local derivative are multiplied, not added.",
        "1000": "Not 1000. It is the gradient of s, −12, times the local derivative",
        "": "That is no number.",
        "2 * * 3": "That is no number.",
    }
    for answer, message in told.items():
        assert message in learner.answer(answer)
    assert "The local derivative is" in learner.answer("1000")  # from the second try on
    assert learner.count() == page.evaluate("`backward ${steps[question.step].visit}/${visits.length}`")
    assert "0 of" not in learner.answer(f"{about['local']} × −12")  # a product, as the page writes it


def test_it_can_be_shown_left_and_turned_off(show):
    learner = Learner(page := show(graph()))
    page.locator("#play").click()
    page.locator("#answer").wait_for()  # playing stops at a question
    assert page.locator("#play").get_attribute("aria-label") == "Play"
    page.get_by_role("button", name="Show it").click()
    assert page.locator("#asking [role=status]").inner_text() == "It was 1. 0 of 1 at the first try."
    page.keyboard.press("Enter")
    assert page.locator("#answer").count() == 1
    page.locator("#first").click()  # elsewhere there is no question
    assert page.locator("#answer").count() == 0
    learner = Learner(page)
    assert page.get_by_role("button", name="You compute it").get_attribute("aria-pressed") == "false"
    page.locator("#last").click()
    page.locator("#previous").click()
    page.locator("#next").click()
    assert learner.count() == "backward 4/4"


def test_it_is_off_in_the_wrong_order_and_absent_where_there_is_nothing_to_ask(show):
    page = show(graph())
    page.get_by_role("button", name="Wrong order").click()
    assert page.get_by_role("button", name="You compute it").is_disabled()
    page = show(Value(2.0, label="x", requires_grad=False) * 3.0)
    assert page.get_by_role("button", name="You compute it").count() == 0


def test_what_is_in_a_closed_box_is_not_asked_for(show):
    page = show(mg.nn.MLP(2, [4, 4, 1])([Value(1.0), Value(-2.0)]))
    page.get_by_role("button", name="Close all").click()
    Learner(page)
    page.evaluate(
        "for (let step = seed; step < steps.length - 1 && !question; step = Math.max(step + 1, at)) controls.next()"
    )
    asked = page.evaluate("question && itemsOf[steps[question.step].node][0]")
    assert asked in (None, "n")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_a_phone(show, axe, scheme):
    page = show(graph(), width=390, height=844, color_scheme=scheme)
    Learner(page)
    page.locator("#next").click()
    assert page.locator("#answer").is_visible()
    assert page.evaluate("document.activeElement.id") == "answer"
    found = page.evaluate(f"async () => {{ {axe}; return (await axe.run()).violations; }}")
    assert [(item["id"], item["nodes"][0]["html"][:200]) for item in found] == []
