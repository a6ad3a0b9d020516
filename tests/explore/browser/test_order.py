"""Visits in a wrong order: the gradients that come out of it, beside the right ones."""

import pytest

import micrograd as mg
from micrograd import Value

pytestmark = pytest.mark.slow


def doubled():
    """c = b + b, b = a + a: one node is heard from twice, by one other."""
    a = Value(3.0, label="a")
    b = a + a
    b.label = "b"
    c = b + b
    c.label = "c"
    return c


def at_depths(x=2.0):
    """s is used directly and below tanh."""
    x, y = Value(x, label="x"), Value(-3.0, label="y")
    s = x * y
    s.label = "s"
    t = mg.tanh(s / 8)
    t.label = "t"
    f = t * x + s * s
    f.label = "f"
    return f


def without_waiting(root):
    """The gradients by recursion: whoever hears a first share passes on at once what it has."""
    gradients, begun = {root: 1.0}, set()

    def visit(node):
        begun.add(node)
        for operand, share in node._primitive.contributions(node, gradients[node]):
            gradients[operand] = gradients.get(operand, 0.0) + share
            if operand not in begun and not operand.is_leaf:
                visit(operand)

    visit(root)
    return {node.label: gradient for node, gradient in gradients.items() if node.label}


def switch(page):
    return page.get_by_role("button", name="Wrong order")


def shown_gradients(page):
    numbers = page.evaluate("nodes.filter((node) => node.label).map((node) => [node.label, gradients[node.index]])")
    return dict(numbers)


def test_b_passes_on_before_it_has_heard_all_and_a_is_wrong_before_ones_eyes(show):
    page = show(doubled())
    assert switch(page).get_attribute("aria-pressed") == "false"
    page.keyboard.press("End")
    assert page.evaluate("gradients[0]") == 4
    switch(page).focus()
    page.keyboard.press("Enter")
    assert switch(page).get_attribute("aria-pressed") == "true"
    assert page.locator("#count").inner_text() == "backward 3/3"
    told = page.locator('.item[aria-label^="a,"]')
    assert told.get_attribute("aria-label") == "a, leaf, data 3, gradient 2, wrong: 4 is right"
    assert told.locator(".number.off").text_content() == "2 ≠ 4"
    assert page.locator(".item.off").count() == 1
    assert "1 gradient is wrong so far." in page.locator("#order .warning").inner_text()
    assert (
        page.locator(".contribution .off").inner_text()
        == "It has been visited, and does not pass this contribution on."
    )
    page.keyboard.press("ArrowLeft")
    assert page.locator("#step .warning").inner_text() == (
        "Too early: b has heard 1 of its 2 contributions. It passes 1 on as ∂c/∂b, where 2 is right. "
        "The contribution to come will change its own gradient, and go no further."
    )
    assert page.locator(".contribution .off").all_inner_texts() == ["2 is wrong, 4 is right."]
    page.keyboard.press("Enter")  # the switch has the focus still
    assert page.locator(".item.off, #step .warning").count() == 0
    assert page.locator("#step h2").inner_text() == "b passes its gradient on"
    page.keyboard.press("End")
    assert page.locator("#count").inner_text() == "backward 2/2"
    assert page.evaluate("gradients[0]") == 4


def test_the_wrong_gradients_are_those_of_visits_that_do_not_wait_also_after_an_edit(show):
    root = at_depths()
    page = show(root)
    switch(page).click()
    page.keyboard.press("End")
    wrong = without_waiting(root)
    assert shown_gradients(page) == pytest.approx(wrong, rel=1e-12)
    root.backward()
    right = {node.label: node.grad for node in mg.topological_order(root) if node.label}
    off = {label for label in wrong if wrong[label] != pytest.approx(right[label], rel=1e-9)}
    assert off == {"x", "y"}
    marked = page.locator(".item.off").evaluate_all("items => items.map((item) => item.ariaLabel.split(',')[0])")
    assert set(marked) == off
    page.locator('.item[aria-label^="x,"]').click()
    page.locator("#edit input").fill("0.5")
    page.keyboard.press("Enter")
    page.locator("#last").click()
    assert shown_gradients(page) == pytest.approx(without_waiting(at_depths(0.5)), rel=1e-12)


def test_a_closed_box_is_marked_and_by_chance_nothing_is_wrong(show):
    @mg.scope
    def eightfold(x):
        c = x * 2.0
        d = c + c
        return d + d

    page = show(eightfold(Value(3.0, label="x")) * 1.0)
    page.locator("#collapse").click()
    switch(page).click()
    page.keyboard.press("End")
    labels = page.locator(".item.off").evaluate_all("items => items.map((item) => item.ariaLabel)")
    assert [label.split(",")[0] for label in labels] == ["eightfold"]
    assert labels[0].endswith("with wrong gradients")
    assert page.locator("#step .math").last.inner_text().endswith("= 2, wrong: 8 is right")

    b = Value(0.0) * 3.0
    page = show(b * b)
    switch(page).click()
    page.keyboard.press("End")
    assert page.locator("#order p").inner_text().endswith("By chance, no gradient is wrong.")
    assert page.locator(".item.off").count() == 0


def test_it_is_not_offered_where_the_page_cannot_compute_or_no_result_is_used_twice(show):
    x = Value(2.0, label="x")
    cube = mg.operation(lambda x: (x**3, lambda g: g * 3 * x * x))
    y = cube(x)
    assert show(y * y).locator("#order").is_hidden()
    page = show(mg.tanh(x * x) + x)  # a leaf that is used three times passes nothing on
    assert page.locator("#order").is_hidden()
