"""All pages of the site can be read: the chapters and the home page, and what their cells have written."""

import pytest

from tests.docs.browser.test_reading import CHAPTERS, LIVE, PAGES, serious_violations
from tests.legible import SIZES, faults, faults_of_graph, photograph

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("size", SIZES)
def test_what_cells_have_written_can_be_read(browser, site, size):
    page = browser.new_page(viewport=SIZES[size], reduced_motion="reduce")
    found, chapters = {}, set()
    for path in sorted((site / "recorded").glob("*.html")):
        page.goto(path.as_uri())
        is_graph = page.locator("#graph").count() > 0
        while is_graph and not page.evaluate("typeof isShown !== 'undefined' && isShown"):
            page.wait_for_timeout(50)
        chapters.add(path.name.split("-")[1])
        found[path.name] = faults_of_graph(page, f"{path.stem} {size}") if is_graph else faults(page)
    page.close()
    assert len(chapters) > 12
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize("name", [*PAGES, *CHAPTERS])
def test_no_letter_is_too_small_no_page_too_wide_and_axe_finds_no_serious_violation(open_page, axe, name):
    scheme = ("light", "dark")[CHAPTERS.index(name) % 2] if name in CHAPTERS else "dark"
    page = open_page(name, color_scheme=scheme)
    if name in LIVE:
        page.locator(".cm-content").first.wait_for()
    if name == "index.html":
        page.locator("#network .cell").first.wait_for()
    for size in SIZES:
        page.set_viewport_size(SIZES[size])
        assert faults(page) == [], size
        photograph(page, f"{name} {size}".replace("/", "-").replace(" ", "-"))
    page.set_viewport_size(SIZES["phone"])
    assert serious_violations(page, axe) == []
