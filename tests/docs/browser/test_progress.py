"""What a learner has done: kept in the browser, shown on the pages of the path, and forgotten when asked."""

import pytest

from tests.docs.browser.test_cells import Learner

pytestmark = pytest.mark.slow

CHAPTER = "learn/01-one-multiplication.html"
NOTES = '{"version": 1, "exercises": {"%s": {"tries": 1, "hints": 0, "right": true, "solution": false}}}'
UNKNOWN = '{"exercises": {"99.1": {"right": true}}}'


def keep(number):
    return f"localStorage.getItem('seen') || localStorage.setItem('micrograd-progress', '{NOTES % number}')"


def shown(page):
    page.locator("article .progress").wait_for()
    return page.locator("article .progress").inner_text()


def test_it_is_kept_shown_handed_to_python_and_forgotten(open_page):
    page = open_page(CHAPTER, before=keep("2.3"))
    page.on("dialog", lambda dialog: dialog.accept())
    learner = Learner(page)
    assert shown(page) == "Exercises of this chapter: ○○○○○○ 0 of 6 right"
    number = 1 + page.evaluate(
        "[...document.querySelectorAll('.cell')].findIndex((cell) => cell.innerText.includes('1.2'))"
    )
    learner.run(number, "mg.learn.check('1.2', 2.0)\nprint(mg.learn.progress().right)\nprint(mg.learn.progress())")
    said = learner.output(number).splitlines()
    assert said[0] == "['1.2', '2.3']"  # what other pages have kept is known here
    assert said[-1] == "kept in this browser"
    assert shown(page) == "Exercises of this chapter: ○●○○○○ 1 of 6 right"
    assert page.locator(".exercise-done").all_inner_texts() == ["1.2 The other slope."]

    page.evaluate("localStorage.setItem('seen', 'yes')")
    page.reload()
    assert shown(page) == "Exercises of this chapter: ○●○○○○ 1 of 6 right"

    page.goto(page.url.replace("01-one-multiplication", "index"))
    assert shown(page).startswith("2 of ")
    assert page.locator(".progress a").all_inner_texts() == ["1.1, A nudge", "All exercises"]
    assert page.locator("article ol li").nth(1).inner_text().endswith(" 1 of 9 right")
    page.get_by_role("button", name="Forget it").click()
    assert shown(page).startswith("0 of ")
    page.reload()
    assert shown(page).startswith("0 of ")
    assert page.evaluate("localStorage.getItem('micrograd-progress')") is None


def test_damaged_notes_are_none_and_harm_nothing(open_page):
    page = open_page("learn/index.html")
    for damaged in ("{", "[]", '{"exercises": 3}', '{"exercises": {"1.1": null}}', UNKNOWN):
        page.evaluate("(text) => localStorage.setItem('micrograd-progress', text)", damaged)
        page.reload()
        assert shown(page).startswith("0 of "), damaged
        assert page.get_by_role("button", name="Forget it").is_visible(), damaged


def test_where_the_browser_keeps_nothing_the_page_shows_that(open_page):
    refused = "Object.defineProperty(window, 'localStorage', { get() { throw new Error('refused'); } })"
    assert shown(open_page(CHAPTER, before=refused, allowed=["refused"])).endswith("0 of 6 right")


def test_frames_are_light_or_dark_as_the_site_is(open_page):
    page = open_page(CHAPTER, color_scheme="light")
    frame = page.locator('.cell-outputs iframe[data-kind="page"]').first
    frame.scroll_into_view_if_needed()
    inside = frame.content_frame.locator("html")
    inside.and_(frame.content_frame.locator('[data-theme="light"]')).wait_for()
    page.get_by_title("Switch to dark mode").click()
    inside.and_(frame.content_frame.locator('[data-theme="dark"]')).wait_for()
    picture = page.locator(".cell-outputs figure img").first
    assert "invert" in picture.evaluate("(image) => getComputedStyle(image).filter")
