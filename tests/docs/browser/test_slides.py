"""A chapter as slides: the same page, one idea at a time, by keyboard alone; what was run and typed stays."""

import pytest

from tests.docs.browser.test_cells import Learner
from tests.docs.browser.test_reading import serious_violations
from tests.legible import PHONE, faults, photograph

pytestmark = pytest.mark.slow

CHAPTER = "learn/01-one-multiplication.html"
SEEN = """[...document.querySelector("article").children].flatMap((part, place) =>
  part.checkVisibility() && part.textContent.trim() ? [place] : [])"""
COUNT = ".slide-bar [role=status]"
SLIDE = f"""() => {{
  const cells = [...document.querySelectorAll("article > .cell, article > .cell-recorded")];
  const status = document.querySelector("{COUNT}").innerText;
  return [status, {SEEN}, cells.filter((cell) => cell.checkVisibility()).length];
}}"""


def begin(page):
    page.locator(".cm-content").first.wait_for()
    page.get_by_role("button", name="This chapter as slides").click()


def number(page):
    """Which slide is shown, and of how many."""
    words = page.locator(COUNT).inner_text().split()
    return int(words[1]), int(words[3])


def assert_slides_show_all_once_and_in_its_order(page):
    page.locator(".exercise-bar").first.wait_for()
    page.locator(".cm-content").first.wait_for()
    whole = page.evaluate(SEEN)
    bar = page.locator(".cell-page-bar").evaluate("bar => [...bar.parentElement.children].indexOf(bar)")
    begin(page)
    _, count = number(page)
    shown = []
    for slide in range(1, count + 1):
        status, parts, cells = page.evaluate(SLIDE)
        assert status == f"Slide {slide} of {count}"
        assert cells <= 2
        shown += parts
        page.keyboard.press("ArrowRight")
    assert shown == [place for place in whole if place != bar]
    assert count > 8


def test_keys_turn_them_and_leave_them_and_a_reload_stays(open_page):
    page = open_page(CHAPTER)
    begin(page)
    _, count = number(page)
    for key, slide in (("End", count), ("PageUp", count - 1), ("Home", 1), ("ArrowLeft", 1), ("PageDown", 2)):
        page.keyboard.press(key)
        assert number(page)[0] == slide, key
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert number(page)[0] == 3
    page.reload()
    page.locator(COUNT, has_text="Slide 3 of").wait_for()
    page.locator(".cm-content").first.wait_for(state="attached")
    page.locator(".exercise-bar").first.wait_for(state="attached")  # they come later, and stay on their slides
    assert page.locator(".exercise-bar:visible, .progress:visible").count() == 0
    page.get_by_role("button", name="The slide before").focus()
    page.keyboard.press("Space")  # it presses the button
    assert number(page)[0] == 2
    page.keyboard.press("Control+ArrowRight")
    assert number(page)[0] == 2
    page.keyboard.press("Escape")
    assert page.locator(".slide-bar").is_hidden()
    assert page.locator(".md-header").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.locator(".slide-bar").is_hidden()
    page.evaluate("location.hash = '#slide-4'")
    page.locator(COUNT, has_text="Slide 4 of").wait_for()


def test_a_cell_is_changed_and_run_on_a_slide_and_stays_so_on_the_page(open_page):
    page = open_page(CHAPTER)
    begin(page)
    while not page.locator("#cell-1").is_visible():
        page.keyboard.press("ArrowRight")
    before = number(page)
    learner = Learner(page)
    learner.write(1, "print('on a', 'slide')")
    page.keyboard.press("ArrowLeft")  # the cursor moves, and no slide
    assert number(page) == before
    page.keyboard.press("Shift+Enter")
    learner.wait(1, "done")
    assert learner.output(1) == "on a slide\n"
    page.get_by_role("button", name="Leave the slides").click()
    assert learner.output(1) == "on a slide\n"
    assert page.locator("#cell-2").is_visible()


def test_on_a_phone_they_can_be_read_and_used_by_all(open_page, axe):
    page = open_page(CHAPTER, **PHONE)
    begin(page)
    _, count = number(page)
    for _ in range(count):
        assert faults(page) == []
        photograph(page, f"slide-{number(page)[0]}-phone")
        page.get_by_role("button", name="The next slide").click(force=True)
    page.keyboard.press("Home")
    assert serious_violations(page, axe) == []
