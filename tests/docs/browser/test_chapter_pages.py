"""The pages that cells have written can be read: at first, in the backward pass, with all open."""

from __future__ import annotations

import pytest

from tests.explore.browser.test_first_view import LAPTOP, PHONE, SEEN

pytestmark = pytest.mark.slow

LEAST = 8  # pixels, of a letter


@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_no_letter_is_too_small(browser, site, size):
    page = browser.new_page(viewport=size, reduced_motion="reduce")
    small, chapters = [], set()
    for path in sorted((site / "recorded").glob("*.html")):
        if 'id="graph"' not in path.read_text(encoding="utf-8"):
            continue  # a table, or sliders
        page.goto(path.as_uri())
        while not page.evaluate("typeof isShown !== 'undefined' && isShown"):
            page.wait_for_timeout(50)
        chapters.add(path.name.split("-")[1])
        views = {"at first": "", "in the backward pass": "go(Math.floor(0.75 * steps.length))"}
        views["with all open"] = "find('expand').hidden || find('expand').click()"
        for name, act in views.items():
            page.evaluate(act)
            if not page.evaluate(SEEN)[0] >= LEAST:
                small.append((path.name, name))
    page.close()
    assert len(chapters) > 10
    assert small == []
